/* SPDX-License-Identifier: Apache-2.0 */
/* mmr_list.c - count the prompts of a list mode.
 *
 * The bin of an event is that of a span-1 michelogram with the views and radial bins of the result, so that only its plane is
 * converted, by a table. A word costs one division. The counts are far larger than a cache, and neighbouring events are
 * in different places: a count is requested from memory some events before it is increased. */
#include "node/format/mmr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD 32 /* events */
#define SEGMENTS (2 * MMR_LARGEST + 1)
#define EVENT_BINS ((uint32_t)MMR_PLANES * MMR_ANGLES * MMR_RADIAL)

int mmr_check_michelogram(const struct michelogram *m, struct err *err)
{
	if (m->scanner.rings != MMR_RINGS || m->scanner.detectors != MMR_DETECTORS)
		return err_set(err, ENOTSUP, "%d rings of %d detectors; those of a Siemens mMR are %d of %d", m->scanner.rings,
			       m->scanner.detectors, MMR_RINGS, MMR_DETECTORS);
	if (m->n_angles != MMR_ANGLES || m->n_radial != MMR_RADIAL)
		return err_set(err, ENOTSUP, "sinograms of %d angles and %d radial bins; those of a Siemens mMR have %d and %d",
			       m->n_angles, m->n_radial, MMR_ANGLES, MMR_RADIAL);
	if (m->arc_corrected)
		return err_set(err, ENOTSUP, "arc-corrected sinograms; those of a Siemens mMR are not");
	return 0;
}

bool mmr_is_gap(int c)
{
	return c % MMR_BLOCK == 0;
}

/* Return the ring difference of segment i of events, in the numbers of the file: 0, -1, +1, -2 ... */
static int difference_of(int i)
{
	return i % 2 ? -(i + 1) / 2 : i / 2;
}

int mmr_list_begin(const struct michelogram *m, struct mmr_list *ret, struct err *err)
{
	struct michelogram_index x;
	int rc = mmr_check_michelogram(m, err), at = 0;

	if (rc == 0)
		rc = michelogram_index_init(m, &x, err);
	if (rc < 0)
		return rc;
	memset(ret, 0, sizeof(*ret));
	ret->report.first = ret->report.last = -1;
	ret->frame = (struct pet_frame){0, INT64_MAX};
	for (int i = 0; i < SEGMENTS; i++) {
		int d = difference_of(i), size = d < 0 ? -d : d;

		for (int low = 0; low < MMR_RINGS - size; low++, at++) {
			struct michelogram_ends e = {{mmr_ring(low + (d > 0 ? d : 0)), mmr_ring(low + (d < 0 ? -d : 0))},
						     {MMR_ANGLES, 0}};
			struct michelogram_bin b;

			ret->ring[at][0] = (uint8_t)e.ring[0];
			ret->ring[at][1] = (uint8_t)e.ring[1];
			ret->plane[at] = michelogram_bin_of(&x, &e, &b) ? b.plane : -1;
		}
	}
	return 0;
}

static uint32_t word_at(const uint8_t *words, size_t i)
{
	const uint8_t *b = words + 4 * i;

	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static bool is_mark(uint32_t word)
{
	return word >> 29 == 4;
}

static long mark_time(uint32_t word)
{
	return (long)(word & 0x1fffffff);
}

size_t mmr_list_in_frame(const struct mmr_list *l, const uint8_t *words, size_t n)
{
	long first = l->report.first;
	size_t i = 0;

	for (; i < n; i++) {
		uint32_t word = word_at(words, i);

		if (!is_mark(word))
			continue;
		first = first < 0 ? mark_time(word) : first;
		if (mark_time(word) - first >= l->frame.stop)
			break;
	}
	return i;
}

void mmr_list_choose_gate(struct mmr_list *l, const struct pet_gates *gates, int gate)
{
	l->gates = gates;
	l->gate = gate;
	l->cycle = 0;
	l->now = pet_gates_find(gates, 0, &l->cycle);
}

static int add_mark(struct mmr_list *l, uint32_t word, struct err *err)
{
	struct mmr_list_report *r = &l->report;
	long ms = mark_time(word);

	if (ms < r->last)
		return err_set(err, EBADMSG, "list mode: word %llu is a time mark of %ld ms, after one of %ld ms",
			       (unsigned long long)r->words, ms, r->last);
	r->first = r->marks ? r->first : ms;
	r->last = ms;
	r->marks++;
	if (l->gates)
		l->now = pet_gates_find(l->gates, r->last - r->first, &l->cycle);
	return 0;
}

/* ---- gating words ---- */

#define GATING_WORD 0x1c     /* bits 27 to 31 */
#define GATING_FORMAT 1	     /* bits 24 to 26 */
#define GATING_RESPIRATION 1 /* bits 12 to 14 */
#define GATING_R_WAVE 2

static bool is_gating(uint32_t word, enum pet_signal signal)
{
	uint32_t type = signal == PET_SIGNAL_ECG ? GATING_R_WAVE : GATING_RESPIRATION;

	return word >> 27 == GATING_WORD && (word >> 24 & 7) == GATING_FORMAT && (word >> 12 & 7) == type && (word & 0x3ff) == 0;
}

static int add_gating(struct mmr_marks *m, struct err *err)
{
	long ms = m->last - m->first;

	if (m->marks.n > 0 && m->marks.ms[m->marks.n - 1] == ms)
		return 0;
	return pet_marks_add(&m->marks, ms, err);
}

static int add_time(struct mmr_marks *m, long ms, struct err *err)
{
	if (ms < m->last)
		return err_set(err, EBADMSG, "a time mark of %ld ms, after one of %ld ms", ms, m->last);
	m->first = m->first < 0 ? ms : m->first;
	m->last = ms;
	return 0;
}

int mmr_marks_add(struct mmr_marks *m, const uint8_t *words, size_t n, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		uint32_t word = word_at(words, i);

		if (is_mark(word))
			rc = add_time(m, mark_time(word), err);
		else if (is_gating(word, m->signal))
			rc = add_gating(m, err);
		if (rc < 0)
			err_prefix(err, "list mode: word %llu", (unsigned long long)m->words);
		m->words++;
	}
	return rc;
}

/* ---- events ---- */

/* Whether an event of the current time is counted; else it is in another gate, or is between frames or gates. */
static bool is_chosen(struct mmr_list *l)
{
	bool chosen;

	if (l->gates) {
		l->report.between += l->now < 0;
		return l->now == l->gate;
	}
	chosen = pet_frame_has(&l->frame, l->report.last - l->report.first);
	l->report.between += !chosen;
	return chosen;
}

/* Counts that are to be increased, the oldest first. */
struct requested {
	uint32_t *count[AHEAD];
	size_t n; /* number of all so far */
};

static void request_count(struct requested *q, uint32_t *count)
{
	uint32_t **slot = &q->count[q->n % AHEAD];

	if (q->n++ >= AHEAD)
		++**slot;
	__builtin_prefetch(count, 1);
	*slot = count;
}

static void finish_counts(const struct requested *q)
{
	for (size_t i = 0; i < (q->n < AHEAD ? q->n : AHEAD); i++)
		++*q->count[i];
}

/* Count an event. 1: one of those that are counted, in a plane of the michelogram; *ret_plane: its plane of span 1, *ret_rest:
 * its bin there. */
static int count_event(struct mmr_list *l, uint32_t word, uint32_t *ret_plane, uint32_t *ret_rest, struct err *err)
{
	uint32_t bin = word & 0x3fffffff, plane = bin / (uint32_t)MMR_PLANE_BINS;
	bool delayed = !(word & 0x40000000);

	if (bin >= EVENT_BINS)
		return err_set(err, EBADMSG, "list mode: word %llu is an event in plane %u of %d",
			       (unsigned long long)l->report.words, plane, MMR_PLANES);
	l->report.delayeds += delayed;
	l->report.prompts += !delayed;
	if (delayed != l->delayed)
		return 0;
	*ret_plane = plane;
	*ret_rest = bin % (uint32_t)MMR_PLANE_BINS;
	l->report.outside += l->plane[plane] < 0;
	return l->plane[plane] >= 0;
}

static int add_event(struct mmr_list *l, uint32_t word, uint32_t *counts, struct requested *q, struct err *err)
{
	uint32_t plane = 0, rest = 0;
	int rc = count_event(l, word, &plane, &rest, err);

	if (rc <= 0)
		return rc;
	if (is_chosen(l))
		request_count(q, &counts[(size_t)l->plane[plane] * MMR_PLANE_BINS + rest]);
	return 0;
}

/* Count a word that is not an event. */
static int add_other(struct mmr_list *l, uint32_t word, struct err *err)
{
	if (is_mark(word))
		return add_mark(l, word, err);
	if (word >> 29 == 5)
		l->report.singles++;
	else
		l->report.skipped++;
	return 0;
}

int mmr_list_add(struct mmr_list *l, const uint8_t *words, size_t n, uint32_t *counts, struct err *err)
{
	struct requested q = {.n = 0};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		uint32_t word = word_at(words, i);

		if (word >> 31 == 0)
			rc = add_event(l, word, counts, &q, err);
		else
			rc = add_other(l, word, err);
		l->report.words++;
	}
	finish_counts(&q);
	return rc;
}

/* Compute the detectors of a bin of span 1 (recon/pet/michelogram_pairs.h). */
static struct mmr_event event_of(const struct mmr_list *l, uint32_t plane, uint32_t rest)
{
	int view = (int)(rest / MMR_RADIAL), t = (int)(rest % MMR_RADIAL) - MMR_RADIAL / 2;
	int first = (view - ((t + 1) >> 1) + MMR_DETECTORS / 2) % MMR_DETECTORS;
	int second = (view + (t >> 1) + MMR_DETECTORS) % MMR_DETECTORS;

	return (struct mmr_event){
		.detector = {l->ring[plane][0] * MMR_DETECTORS + first, l->ring[plane][1] * MMR_DETECTORS + second},
		.bin = (uint32_t)l->plane[plane] * (uint32_t)MMR_PLANE_BINS + rest,
		.ms = l->report.marks ? (uint32_t)(l->report.last - l->report.first) : 0,
	};
}

int mmr_list_events(struct mmr_list *l, const uint8_t *words, size_t n, struct mmr_event *ret, size_t *ret_n, struct err *err)
{
	size_t found = 0;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < n; i++) {
		uint32_t word = word_at(words, i), plane = 0, rest = 0;

		rc = word >> 31 == 0 ? count_event(l, word, &plane, &rest, err) : add_other(l, word, err);
		if (rc > 0)
			ret[found++] = event_of(l, plane, rest);
		l->report.words++;
	}
	*ret_n = found;
	return rc < 0 ? rc : 0;
}

/* ---- singles ---- */

void mmr_singles_begin(struct mmr_singles *s, const struct pet_frame *frame, double scale)
{
	*s = (struct mmr_singles){
		.scale = scale, .frame = frame ? *frame : (struct pet_frame){0, INT64_MAX}, .first = -1, .last = -1};
}

void mmr_singles_add(struct mmr_singles *s, const uint8_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t word = word_at(words, i), bucket = word >> 19 & 0x3ff;

		if (is_mark(word)) {
			s->last = mark_time(word);
			s->first = s->first < 0 ? s->last : s->first;
		} else if (word >> 29 == 5 && bucket < MMR_BUCKETS && pet_frame_has(&s->frame, s->last - s->first)) {
			s->sum[bucket] += s->scale * (word & 0x7ffff);
			s->n[bucket]++;
		}
	}
}

/* ---- single words ---- */

int mmr_event_segments(struct michelogram_segment **ret, int *ret_n, struct err *err)
{
	struct michelogram_segment *s = calloc(SEGMENTS, sizeof(*s));

	if (!s)
		return err_set(err, ENOMEM, "no memory for %d segments", SEGMENTS);
	for (int i = 0; i < SEGMENTS; i++) {
		int d = difference_of(i);

		s[i] = (struct michelogram_segment){-d, -d, MMR_RINGS - (d < 0 ? -d : d)};
	}
	*ret = s;
	*ret_n = SEGMENTS;
	return 0;
}

/* Return the plane of mmr_event_segments() of a plane of the file: the other way round in its segment. */
static int turn_plane(int plane)
{
	int start = 0, size = MMR_RINGS;

	for (int i = 0; plane >= start + size; i++) {
		start += size;
		size = MMR_RINGS - abs(difference_of(i + 1));
	}
	return 2 * start + size - 1 - plane;
}

int mmr_word_read(const uint8_t *words, size_t i, struct pet_entry *ret, struct err *err)
{
	uint32_t word = word_at(words, i), bin = word & 0x3fffffff, plane = bin / (uint32_t)MMR_PLANE_BINS,
		 at = bin % (uint32_t)MMR_PLANE_BINS;

	*ret = (struct pet_entry){PET_ENTRY_OTHER};
	if (is_mark(word)) {
		ret->type = PET_ENTRY_MARK;
		ret->ms = mark_time(word);
	}
	if (word >> 31)
		return 0;
	if (plane >= MMR_PLANES)
		return err_set(err, EBADMSG, "list mode: an event in plane %u of %d", plane, MMR_PLANES);
	ret->type = word & 0x40000000 ? PET_ENTRY_PROMPT : PET_ENTRY_DELAYED;
	ret->bin = (struct michelogram_bin){
		.plane = turn_plane((int)plane), .angle = (int)(at / MMR_RADIAL), .radial = (int)(at % MMR_RADIAL)};
	return 0;
}
