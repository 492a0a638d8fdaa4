/* SPDX-License-Identifier: Apache-2.0 */
/* petsird_plain.c - plain events, many at a time: two detection bins and a TOF bin, all of them LEB128.
 *
 * - A value ends with its first byte below 0x80. So the end of n events is found by counting such bytes, and lists are cut into
 *   runs of whole events before any of them is decoded. The threads of the caller decode the runs.
 * - Runs wait until there are enough of them, but not longer than their bytes are in the buffer (struct yardl_in, leave).
 * - The first event of the file that is not valid ends the reading. petsird_events.c reads it again, and says what is wrong. */
#include "node/base/thread_pool.h"
#include "node/format/petsird_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VALUES 3		 /* of an event */
#define RUN 2048		 /* events, at most */
#define RUNS 256		 /* that wait */
#define THREADS_FROM 8192	 /* events that are worth the threads */
#define PARTS 4			 /* for each thread */
#define ENDS 0x8080808080808080u /* the bits of eight bytes that are 0 where a value ends */
#define VALUE_BYTES 10		 /* of 64 bits */

struct petsird_run {
	const uint8_t *bytes;
	struct petsird_event *events;
	size_t n, valid; /* of them, the first ones */
	size_t used;	 /* bytes of the valid ones */
	struct petsird_cursor cursor;
};

struct petsird_plain {
	struct petsird_run run[RUNS];
	size_t n, events;
	struct thread_pool *pool; /* borrowed; NULL: none */
	bool failed;
	uint64_t failed_at;		     /* position in the file of the event that is not valid */
	struct petsird_cursor failed_cursor; /* of its list */
};

/* ---- where events end ---- */

static uint64_t load_bytes(const uint8_t *at)
{
	uint64_t bytes;

	memcpy(&bytes, at, sizeof(bytes));
	return bytes;
}

/* Return the number of values that end in eight bytes. */
static size_t count_ends(uint64_t bytes)
{
	return (size_t)(((~bytes & ENDS) >> 7) * 0x0101010101010101u >> 56);
}

/* Move *at behind n events, or as many as there are as a whole before `end`. Returns their number. */
static size_t pass_events(const uint8_t **at, const uint8_t *end, size_t n)
{
	const uint8_t *begin = *at, *i = begin;
	size_t values = VALUES * n, passed = 0;

	for (; values - passed > sizeof(uint64_t) && (size_t)(end - i) >= sizeof(uint64_t); i += sizeof(uint64_t))
		passed += count_ends(load_bytes(i));
	for (; passed < values && i < end; i++)
		passed += *i < 0x80;
	for (size_t over = passed % VALUES + (i > begin && i[-1] >= 0x80); over > 0; over--) {
		i -= i > begin && i[-1] < 0x80;
		while (i > begin && i[-1] >= 0x80)
			i--;
	}
	*at = i;
	return passed / VALUES;
}

/* ---- decoding ---- */

struct values { /* of one event */
	uint64_t bin[2], tof;
	size_t bytes; /* 0: one of them has more than 64 bits */
};

/* Join the groups of seven bits of two values of at most four bytes, each in a half. */
static inline uint64_t join_groups(uint64_t x)
{
	x = (x & 0x007f007f007f007fu) | (x & 0x7f007f007f007f00u) >> 1;
	return (x & 0x00003fff00003fffu) | (x & 0x3fff00003fff0000u) >> 2;
}

static inline uint64_t bits_below(int n) /* n < 64 */
{
	return ((uint64_t)1 << n) - 1;
}

/* Decode an event of at most eight bytes, four for each value. false: it has more. */
static inline bool decode_short(const uint8_t *at, struct values *ret)
{
	uint64_t x = load_bytes(at), ends = ~x & ENDS, second = ends & (ends - 1), third = second & (second - 1);
	uint64_t one, two, three, bins;
	int behind_one, behind_two;

	if (!third)
		return false;
	behind_one = __builtin_ctzll(ends) + 1;
	behind_two = __builtin_ctzll(second) + 1;
	one = x & bits_below(behind_one);
	two = (x & bits_below(behind_two)) >> behind_one;
	three = (x & (third ^ (third - 1))) >> behind_two;
	if ((one | two | three) >> 32)
		return false;
	bins = join_groups(one | two << 32);
	*ret = (struct values){{(uint32_t)bins, bins >> 32}, join_groups(three), ((size_t)__builtin_ctzll(third) + 1) / 8};
	return true;
}

/* Decode a value of up to 64 bits. Returns its bytes; 0: it has more. */
static size_t decode_value(const uint8_t *at, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < VALUE_BYTES; i++) {
		*ret |= (uint64_t)(at[i] & 0x7f) << (7 * i);
		if (at[i] < 0x80)
			return i == VALUE_BYTES - 1 && at[i] > 1 ? 0 : i + 1;
	}
	return 0;
}

static struct values decode_long(const uint8_t *at)
{
	struct values v = {.bytes = 0};
	size_t one = decode_value(at, &v.bin[0]), two = one ? decode_value(at + one, &v.bin[1]) : 0;
	size_t three = two ? decode_value(at + one + two, &v.tof) : 0;

	v.bytes = three ? one + two + three : 0;
	return v;
}

/* Return the number of values below `n` that an unsigned type can have. */
static uint64_t limit_of(const struct yardl_type *t, uint64_t n)
{
	return t->bits < 64 && n > (uint64_t)1 << t->bits ? (uint64_t)1 << t->bits : n;
}

struct bins { /* of the modules of one type */
	uint64_t limit;
	uint32_t first, energies;
};

static struct bins bins_of(const struct petsird_modules *m, const struct yardl_type *t)
{
	return (struct bins){limit_of(t, m->modules * m->elements * m->energies), (uint32_t)m->first, (uint32_t)m->energies};
}

/* Decode the events of a run up to the first one that is not valid. energies: detectors have several; else nothing is divided. */
static inline void decode_events(const struct petsird *p, struct petsird_run *r, const struct bins bins[2], bool energies)
{
	const struct petsird_cursor *c = &r->cursor;
	const struct petsird_event shared = {.delayed = c->delayed, .time = c->time, .stop = c->stop};
	const struct bins a = bins[0], b = bins[1];
	const size_t n_tof = petsird_tof_of(&p->header, (size_t)c->row, (size_t)c->column)->n, n = r->n;
	const uint64_t tof = limit_of(c->event->of[1], n_tof);
	struct petsird_event *events = r->events;
	const uint8_t *at = r->bytes;
	size_t i = 0;

	for (; i < n; i++) {
		uint32_t first, second;
		struct values v;

		if (!decode_short(at, &v))
			v = decode_long(at);
		if (v.bytes == 0 || v.bin[0] >= a.limit || v.bin[1] >= b.limit || v.tof >= tof)
			break;
		at += v.bytes;
		first = energies ? (uint32_t)v.bin[0] / a.energies : (uint32_t)v.bin[0];
		second = energies ? (uint32_t)v.bin[1] / b.energies : (uint32_t)v.bin[1];
		events[i] = (struct petsird_event){
			.detector = {a.first + first, b.first + second},
			.energy = {energies ? (uint16_t)(v.bin[0] - first * a.energies) : 0,
				   energies ? (uint16_t)(v.bin[1] - second * b.energies) : 0},
			.tof = (uint16_t)v.tof,
			.delayed = shared.delayed,
			.time = shared.time,
			.stop = shared.stop,
		};
	}
	r->valid = i;
	r->used = (size_t)(at - r->bytes);
}

static void decode_run(const struct petsird *p, struct petsird_run *r)
{
	const struct yardl_type *bin = r->cursor.event->of[0]->of[0];
	const struct bins bins[2] = {bins_of(&p->header.type[r->cursor.row], bin),
				     bins_of(&p->header.type[r->cursor.column], bin)};

	if (bins[0].energies > 1 || bins[1].energies > 1)
		decode_events(p, r, bins, true);
	else
		decode_events(p, r, bins, false);
}

/* ---- runs ---- */

static size_t parts_of(const struct petsird_plain *w)
{
	size_t most = PARTS * (size_t)thread_pool_size(w->pool);

	return w->n < most ? w->n : most;
}

static void decode_part(void *ctx, size_t part)
{
	struct petsird *p = ctx;
	struct petsird_plain *w = p->plain;
	size_t parts = parts_of(w);

	for (size_t i = part * w->n / parts; i < (part + 1) * w->n / parts; i++)
		decode_run(p, &w->run[i]);
}

static void note_failure(struct petsird *p)
{
	struct petsird_plain *w = p->plain;

	for (size_t i = 0; !w->failed && i < w->n; i++) {
		const struct petsird_run *r = &w->run[i];

		if (r->valid == r->n)
			continue;
		w->failed = true;
		w->failed_at = p->in.base + (uint64_t)(r->bytes - p->in.buffer) + r->used;
		w->failed_cursor = r->cursor;
	}
}

void petsird_plain_decode(struct petsird *p)
{
	struct petsird_plain *w = p->plain;

	if (w->pool && w->events >= THREADS_FROM)
		thread_pool_run(w->pool, parts_of(w), decode_part, p);
	else
		for (size_t i = 0; i < w->n; i++)
			decode_run(p, &w->run[i]);
	note_failure(p);
	w->n = w->events = 0;
}

size_t petsird_plain_add(struct petsird *p, struct petsird_event *ret_events, size_t max)
{
	struct petsird_plain *w = p->plain;
	const uint8_t *begin = p->in.buffer + p->in.at, *at = begin;
	size_t n = pass_events(&at, p->in.buffer + p->in.end, max < RUN ? max : RUN);

	if (n == 0)
		return 0;
	if (w->n == RUNS)
		petsird_plain_decode(p);
	w->run[w->n++] = (struct petsird_run){.bytes = begin, .events = ret_events, .n = n, .cursor = p->cursor};
	w->events += n;
	p->in.at += (size_t)(at - begin);
	return n;
}

bool petsird_plain_type(const struct yardl_type *t)
{
	const struct yardl_type *bins = t->of[0];

	return t->n == 2 && strcmp(t->names[0], "detectionBins") == 0 && bins->kind == YARDL_VECTOR && bins->length == 2 &&
	       bins->of[0]->kind == YARDL_UNSIGNED && t->of[1]->kind == YARDL_UNSIGNED;
}

bool petsird_plain_failed(const struct petsird *p)
{
	return p->plain->failed;
}

void petsird_plain_seek_failed(struct petsird *p)
{
	yardl_seek(&p->in, p->plain->failed_at);
	p->cursor = p->plain->failed_cursor;
}

void petsird_plain_forget(struct petsird *p)
{
	p->plain->failed = false;
}

void petsird_use_threads(struct petsird *p, struct thread_pool *pool)
{
	p->plain->pool = pool;
}

static void decode_before(void *ctx)
{
	petsird_plain_decode(ctx);
}

int petsird_plain_create(struct petsird *p, struct err *err)
{
	p->plain = calloc(1, sizeof(*p->plain));
	if (!p->plain)
		return err_set(err, ENOMEM, "no memory to read events");
	p->in.leave = decode_before;
	p->in.ctx = p;
	return 0;
}

void petsird_plain_free(struct petsird *p)
{
	free(p->plain);
}
