/* SPDX-License-Identifier: Apache-2.0 */
/* PETSIRD files: values computed by hand from a file made byte by byte; schemas without a field; damaged and hostile files. */
#include <sys/mman.h>

#include "node/base/thread_pool.h"
#include "node/format/petsird.h"
#include "tests/node/format/petsird_fixture.h"
#include "tests/test.h"

static char path[64];
static int fd;

static int set_up(void **state)
{
	petsird_fixture_start();
	fd = memfd_create("petsird", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	return close(fd);
}

static void store(const uint8_t *bytes, size_t n)
{
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, bytes, n, 0), n);
}

/* Open the bytes and read all events in pieces of `piece`. Returns the result of the first function that failed. */
static int read_all(const struct petsird_bytes *o, size_t piece, struct petsird_event *ret_events, size_t max, size_t *ret_n,
		    struct err *err)
{
	struct petsird_event events[64];
	struct petsird *p = NULL;
	size_t n = 0, got = 1;
	int rc;

	memset(err, 0, sizeof(*err));
	store(o->at, o->n);
	rc = petsird_open(path, &p, err);
	while (rc == 0 && got > 0) {
		got = 0;
		rc = petsird_next(p, events, piece, &got, err);
		for (size_t i = 0; i < got && n + i < max; i++)
			ret_events[n + i] = events[i];
		n += got;
	}
	petsird_close(p);
	if (ret_n)
		*ret_n = n;
	return rc;
}

TEST_GIVES_BACK(petsird_close);

static struct petsird *open_bytes(struct petsird_bytes *o)
{
	struct petsird *p = NULL;
	struct err err = {0};

	store(o->at, o->n);
	free(o->at);
	assert_done(petsird_open(path, &p, &err), &err);
	test_later(give_back_petsird_close, p);
	return p;
}

/* ---- values ---- */

TEST(header)
{
	struct petsird_bytes o = petsird_make(NULL);
	struct petsird *p = open_bytes(&o);
	const struct petsird_header *h = petsird_header(p);

	assert_string_equal(h->model, "TEST?1"); /* the newline has been replaced */
	assert_int_equal(h->n_types, 2);
	assert_int_equal(h->type[0].modules, 4);
	assert_int_equal(h->type[0].elements, 2);
	assert_int_equal(h->type[0].energies, 2);
	assert_int_equal(h->type[1].energies, 1);
	assert_int_equal(h->type[1].first, 8);
	assert_int_equal(h->n_detectors, 11);
	assert_int_equal(petsird_type_of(h, 7), 0);
	assert_int_equal(petsird_type_of(h, 8), 1);
	assert_int_equal(h->tof[0][0].n, 3);
	assert_true(h->tof[0][0].edges[3] == 30 && h->tof[0][0].resolution == 12);
	assert_int_equal(h->tof[1][1].n, 2);
	assert_true(h->tof[1][0].resolution == 13 && h->tof[1][1].resolution == 14);
	assert_true(petsird_tof_of(h, 0, 1) == &h->tof[1][0]);
	assert_true(h->calibration == 2.5);
	assert_true(h->has_efficiencies);
	assert_false(h->aligned);
	assert_near(h->exam.start, -1.5, 1e-12);
}

/* 0 is what the package writes where no factor is known. */
TEST(no_calibration)
{
	struct petsird_bytes o = petsird_make(NULL);
	struct petsird *p;

	petsird_replace(&o, MARK_CALIBRATION, 4, "\0\0\0\0", 4);
	p = open_bytes(&o);
	assert_true(petsird_header(p)->calibration == 1);
}

/* The centre of a box is (10, 2, 1) mm; the element moves it to (110, 0, 1 + 4 i), the module turns it and adds 1 mm along z. */
TEST(positions)
{
	static const float expected[11][3] = {{110, 0, 2},  {110, 0, 6},  {0, 110, 2}, {0, 110, 6}, {-110, 0, 2}, {-110, 0, 6},
					      {0, -110, 2}, {0, -110, 6}, {60, 0, 2},  {0, 60, 2},  {-60, 0, 2}};
	struct petsird_bytes o = petsird_make(NULL);
	struct petsird *p = open_bytes(&o);

	for (int i = 0; i < 11; i++)
		for (int k = 0; k < 3; k++)
			assert_near((double)petsird_header(p)->position[i][k], (double)expected[i][k], 1e-5); /* floats of 100 */
}

static void check_event(const struct petsird_event *e, uint32_t a, uint16_t energy_a, uint32_t b, uint16_t energy_b, uint16_t tof,
			bool delayed, uint32_t time)
{
	assert_int_equal(e->detector[0], a);
	assert_int_equal(e->energy[0], energy_a);
	assert_int_equal(e->detector[1], b);
	assert_int_equal(e->energy[1], energy_b);
	assert_int_equal(e->tof, tof);
	assert_int_equal(e->delayed, delayed);
	assert_int_equal(e->time, time);
}

static void check_events(const char *schema)
{
	struct petsird_bytes o = petsird_make(schema);
	struct petsird_event e[20];
	struct err err;
	size_t n;

	for (size_t piece = 1; piece <= 64; piece = piece * 3 + 1) {
		assert_int_equal(read_all(&o, piece, e, 20, &n, &err), 0);
		assert_int_equal(n, 15);
		for (int i = 0; i < 15; i += 3) { /* blocks: 3 prompts and 3 delayeds, 3 prompts, 3 and 3 */
			bool delayed = i == 3 || i == 12;
			uint32_t time = i < 6 ? 1000 : i < 9 ? 1500 : 300000;

			check_event(&e[i], 7, 0, 0, 1, 2, delayed, time); /* bins 14 and 1 of type 0: 2 energies */
			check_event(&e[i + 1], 8 + 2, 0, 7, 1, 0, delayed, time);
			check_event(&e[i + 2], 8, 0, 0, 0, 0, delayed, time);
		}
	}
	free(o.at);
}

/* Return the schema with `from` replaced by `to`, once. */
static char *schema_with(const char *from, const char *to)
{
	const char *at = strstr(petsird_fixture_schema, from);
	char *text = take_memory(sizeof(petsird_fixture_schema) + strlen(to) + 1);

	assert_non_null(at);
	sprintf(text, "%.*s%s%s", (int)(at - petsird_fixture_schema), petsird_fixture_schema, to, at + strlen(from));
	return text;
}

/* Events of the usual type are decoded at once; those of another type with the same bytes by their fields. */
TEST(events)
{
	char *other = schema_with("{\"vector\":{\"items\":\"PETSIRD.DetectionBin\",\"length\":2}}",
				  "{\"array\":{\"items\":\"PETSIRD.DetectionBin\",\"dimensions\":[{\"length\":2}]}}");

	check_events(NULL);
	check_events(other);
}

/* All pairs of detection bins, with a dead bin, and with modules that are not in coincidence. */
TEST(alive)
{
	static const struct {
		enum petsird_mark at;
		size_t removed;
		const void *by;
		size_t n;
	} changes[] = {{MARK_MODEL, 0, "", 0},
		       {MARK_BINS, 1 + 4, "\x10\0\0\0\0", 5},
		       {MARK_GROUP, 1, "\1", 1},
		       {MARK_GROUP, 1, "\0", 1}};
	int least = 0;

	for (size_t k = 0; k < sizeof(changes) / sizeof(changes[0]); k++) {
		struct petsird_bytes o = petsird_make(NULL);
		const struct petsird_header *h;
		struct petsird *p;
		int dead = 0;

		petsird_replace(&o, changes[k].at, changes[k].removed, changes[k].by, changes[k].n);
		p = open_bytes(&o);
		h = petsird_header(p);
		for (uint32_t i = 0; i < h->n_detectors * h->n_detectors; i++) {
			uint32_t detector[2] = {i / (uint32_t)h->n_detectors, i % (uint32_t)h->n_detectors};
			size_t energies[2] = {h->type[petsird_type_of(h, detector[0])].energies,
					      h->type[petsird_type_of(h, detector[1])].energies};

			for (size_t e = 0; e < energies[0] * energies[1]; e++) {
				uint16_t energy[2] = {(uint16_t)(e / energies[1]), (uint16_t)(e % energies[1])};
				bool is = petsird_efficiency(p, detector, energy) > 0;

				assert_int_equal(petsird_is_alive(p, detector, energy), is);
				dead += !is;
			}
		}
		assert_true(dead > least);
		least = k == 0 ? dead : least;
	}
}

/* ---- many events: beyond the buffer, by threads ---- */

#define MANY ((size_t)400000)
#define MANY_PIECE ((size_t)1 << 17)

static struct petsird_event many_event(size_t i)
{
	return (struct petsird_event){.detector = {(uint32_t)(i * 7 % 16) / 2, (uint32_t)(i / 3 % 16) / 2},
				      .energy = {i * 7 % 16 % 2, i / 3 % 16 % 2},
				      .tof = i % 3};
}

/* Write a value with `more` bytes that add nothing, and return the end. */
static uint8_t *write_value(uint8_t *at, unsigned v, int more)
{
	for (int i = 0; i < more; i++, v = 0)
		*at++ = (uint8_t)(v | 0x80);
	*at++ = (uint8_t)v;
	return at;
}

/* Make a file with MANY events of types 0, 0 in its first block, some of them longer than needed. Event `wrong` and every
 * 5000th behind it has `by` in place of its first bin; SIZE_MAX: none. */
static struct petsird_bytes make_many(const char *schema, size_t wrong, const void *by, size_t n)
{
	struct petsird_bytes o = petsird_make(schema), count = {0};
	uint8_t *events = take_memory(MANY * 30), *at = events;

	put_unsigned(&count, MANY);
	at = mempcpy(at, count.at, count.n);
	for (size_t i = 0; i < MANY; i++) {
		struct petsird_event e = many_event(i);

		at = i >= wrong && (i - wrong) % 5000 == 0
			     ? mempcpy(at, by, n)
			     : write_value(at, 2 * e.detector[0] + e.energy[0], i % 2 ? (int)(i / 2 % 10) : 0);
		at = write_value(at, 2 * e.detector[1] + e.energy[1], i % 101 == 0 ? 4 : 0);
		at = write_value(at, e.tof, i % 89 == 0 ? 1 : 0);
	}
	petsird_replace(&o, MARK_EVENTS, 4, events, (size_t)(at - events));
	free(count.at);
	return o;
}

static int read_many(const struct petsird_bytes *o, int threads, size_t piece, struct petsird_event *ret, size_t *ret_n,
		     struct err *err)
{
	struct thread_pool *pool = NULL;
	struct petsird *p = NULL;
	size_t n = 0, got = 1;
	int rc;

	store(o->at, o->n);
	assert_int_equal(petsird_open(path, &p, err), 0);
	assert_int_equal(thread_pool_create(threads, &pool, NULL), 0);
	petsird_use_threads(p, threads > 1 ? pool : NULL);
	do {
		rc = petsird_next(p, ret + n, piece, &got, err);
		n += rc == 0 ? got : 0;
	} while (rc == 0 && got > 0);
	petsird_close(p);
	thread_pool_free(pool);
	*ret_n = n;
	return rc;
}

TEST(many_events)
{
	struct petsird_event *e = take_memory((MANY + MANY_PIECE) * sizeof(*e));
	struct petsird_bytes o = make_many(NULL, SIZE_MAX, NULL, 0);
	struct err err = {0};
	size_t n = 0;

	for (int threads = 1; threads <= 3; threads += 2)
		for (size_t piece = 1000; piece <= MANY_PIECE; piece *= MANY_PIECE / 1000) {
			assert_done(read_many(&o, threads, piece, e, &n, &err), &err);
			assert_int_equal(n, MANY + 14);
			for (size_t i = 0; i < MANY; i++) {
				struct petsird_event w = many_event(i);

				check_event(&e[i], w.detector[0], w.energy[0], w.detector[1], w.energy[1], w.tof, false, 1000);
			}
			check_event(&e[MANY], 8 + 2, 0, 7, 1, 0, false, 1000);
		}
	free(o.at);
}

/* Return the place in "byte N: ...", less that of the first event, and the text behind it. */
static long place_of(const struct err *err, const struct petsird_bytes *o, const char **ret_text)
{
	char *end;
	long place = strtol(err->msg + strlen("byte "), &end, 10);

	*ret_text = end;
	return place - (long)o->mark[MARK_EVENT];
}

/* The first invalid event is refused in the same words, wherever it is, as by the reader of events by their fields. */
TEST(many_events_with_an_error)
{
	static const uint8_t over[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2};
	static const uint8_t wide[] = {0x81, 0x80, 0x80, 0x80, 0x10};
	static const struct {
		const void *by;
		size_t n;
	} wrong[] = {{"\x10", 1}, {over, sizeof(over)}, {wide, sizeof(wide)}};
	static const size_t at[] = {0, 2047, 2048, MANY / 2, MANY - 1};
	char *other = schema_with("{\"vector\":{\"items\":\"PETSIRD.DetectionBin\",\"length\":2}}",
				  "{\"array\":{\"items\":\"PETSIRD.DetectionBin\",\"dimensions\":[{\"length\":2}]}}");
	struct petsird_event *e = take_memory((MANY + MANY_PIECE) * sizeof(*e));

	for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++)
		for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
			struct petsird_bytes plain = make_many(NULL, at[i], wrong[k].by, wrong[k].n);
			struct petsird_bytes fields = make_many(other, at[i], wrong[k].by, wrong[k].n);
			struct err err[2] = {{0}, {0}};
			const char *text[2];
			long place[2];
			size_t n;

			assert_int_equal(read_many(&plain, 3, MANY_PIECE, e, &n, &err[0]), -EBADMSG);
			place[0] = place_of(&err[0], &plain, &text[0]);
			assert_int_equal(read_many(&fields, 3, MANY_PIECE, e, &n, &err[1]), -EBADMSG);
			place[1] = place_of(&err[1], &fields, &text[1]);
			assert_int_equal(place[0], place[1]);
			assert_string_equal(text[0], text[1]);
			free(plain.at);
			free(fields.at);
		}
}

TEST(counts)
{
	struct petsird_bytes o = petsird_make(NULL);
	struct petsird *p = open_bytes(&o);
	struct petsird_event e[64];
	size_t n = 0;

	for (int turn = 0; turn < 2; turn++) {
		const struct petsird_counts *c = petsird_counts(p);

		assert_int_equal(petsird_next(p, e, 64, &n, NULL), 0);
		assert_int_equal(n, 15);
		assert_int_equal(petsird_next(p, e, 64, &n, NULL), 0);
		assert_int_equal(n, 0);
		assert_int_equal(c->prompts, 9);
		assert_int_equal(c->delayeds, 6);
		assert_int_equal(c->surplus, 2); /* the third row of the second block */
		assert_int_equal(c->event_blocks, 3);
		assert_int_equal(c->other_blocks, 2);
		assert_int_equal(c->bed_movements, 1); /* the first one is before all events */
		assert_int_equal(c->start, 1000);
		assert_int_equal(c->stop, 300001);
		assert_int_equal(c->covered, 1500 + 1);
		petsird_rewind(p);
		assert_int_equal(c->prompts, 0);
	}
}

TEST(efficiencies)
{
	static const uint16_t low[2] = {0, 0}, high[2] = {1, 1}, mixed[2] = {1, 0};
	struct petsird_bytes o = petsird_make(NULL);
	struct petsird *p = open_bytes(&o);

	/* Detector 7: module 3, element 1, bins 14 and 15; detector 0: module 0, bins 0 and 1. Group (3 + 0) % 2 = 1. */
	assert_near(petsird_efficiency(p, (uint32_t[]){7, 0}, low), 15 * 1 * 120.0, 1e-3); /* floats of 1e3 */
	assert_near(petsird_efficiency(p, (uint32_t[]){7, 0}, high), 16 * 2 * 131.0, 1e-3);
	assert_near(petsird_efficiency(p, (uint32_t[]){7, 0}, mixed), 16 * 1 * 130.0, 1e-3);
	assert_near(petsird_efficiency(p, (uint32_t[]){0, 7}, mixed), 15 * 2 * 121.0, 1e-3); /* the same table, exchanged */
	assert_near(petsird_efficiency(p, (uint32_t[]){5, 1}, low), 11 * 3 * 22.0, 1e-3);    /* modules 2 and 0: group 0 */
	assert_true(petsird_efficiency(p, (uint32_t[]){1, 0}, low) == 0);		     /* one module */
	assert_near(petsird_efficiency(p, (uint32_t[]){9, 3}, (uint16_t[]){0, 1}), 8, 1e-6); /* types 1, 0: bin 7 of type 0 */
	assert_near(petsird_efficiency(p, (uint32_t[]){9, 10}, low), 1, 1e-6);
}

/* ---- schemas ---- */

static int read_schema(const char *from, const char *to, struct err *err)
{
	char *schema = schema_with(from, to);
	struct petsird_bytes o = petsird_make(schema);
	int rc = read_all(&o, 64, NULL, 0, NULL, err);

	free(o.at);
	return rc;
}

TEST(missing_fields)
{
	static const char *const needed[] = {
		"scanner",
		"scannerGeometry",
		"replicatedModules",
		"object",
		"detectingElements",
		"shape",
		"corners",
		"matrix",
		"tofBinEdges",
		"tofResolution",
		"edges",
		"sgid",
		"eventEnergyBinEdges",
		"detectionEfficiencies",
		"transforms",
		"timeInterval",
		"promptEvents",
		"detectionBinEfficiencies",
		"modulePairSGIDLUT",
		"delayedEvents",
		"detectionBins",
		"tofIdx",
		"start",
		"modulePairEfficienciesVectors",
	};

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		char from[80], to[80], quoted[80];
		struct err err;

		snprintf(from, sizeof(from), "{\"name\":\"%s\",\"type\"", needed[i]);
		snprintf(to, sizeof(to), "{\"name\":\"%sZ\",\"type\"", needed[i]);
		snprintf(quoted, sizeof(quoted), "\"%s\"", needed[i]);
		assert_int_equal(read_schema(from, to, &err), -ENOTSUP);
		if (!strstr(err.msg, "has no field") || !strstr(err.msg, quoted))
			fail_msg("without %s: %s", needed[i], err.msg);
	}
}

TEST(other_schemas)
{
	static const struct {
		const char *from, *to;
		int code;
		const char *says;
	} cases[] = {
		{"\"PETSIRD\",\"sequence\"", "\"MRD\",\"sequence\"", ENOTSUP, "protocol is \"MRD\""},
		{"\"header\"", "\"head\"", ENOTSUP, "\"head\" instead of \"header\""},
		{"{\"stream\":{\"items\":\"PETSIRD.TimeBlock\"}}", "\"PETSIRD.TimeBlock\"", ENOTSUP, "not a stream"},
		{"\"PETSIRD.Header\"", "\"PETSIRD.Nothing\"", EBADMSG, "not defined: PETSIRD.Nothing"},
		{"[null,\"datetime\"]", "\"PETSIRD.ExamInformation\"", EBADMSG, "contain themselves"},
		{"[null,\"datetime\"]", "{\"vector\":{\"items\":\"PETSIRD.Header\"}}", EBADMSG, "contain themselves"},
		{"[null,\"datetime\"]", "{\"array\":{\"items\":\"uint8\",\"dimensions\":99}}", EBADMSG, "dimensions"},
		{"[null,\"datetime\"]", "{\"vector\":{\"items\":\"uint8\",\"length\":-1}}", EBADMSG, "length"},
		{"\"complexfloat32\"", "{\"vector\":{\"items\":\"uint8\",\"length\":1000000000000000000}}", EBADMSG,
		 "the file ends"},
		{"[null,\"datetime\"]", "{\"vector\":{\"items\":null}}", EBADMSG, "no bytes"},
		{"[null,\"datetime\"]", "{\"vector\":{\"items\":{\"vector\":{\"items\":\"uint8\",\"length\":0}}}}", EBADMSG,
		 "no bytes"},
		{"[null,\"datetime\"]", "[]", EBADMSG, "alternatives"},
		{"[null,\"datetime\"]", "{\"tree\":1}", ENOTSUP, "not supported"},
		{"[null,\"datetime\"]", "7", EBADMSG, "missing"},
		{"[null,\"datetime\"]", "null", EBADMSG, "null"},
		{"[null,\"datetime\"]", "\"string\"", ENOTSUP, "an integer is needed"},
		{"\"typeArguments\":[\"PETSIRD.BoxSolidVolume\"]", "\"typeArguments\":[]", EBADMSG, "arguments"},
		{"\"EventTimeBlock\",\"type\":\"PETSIRD", "\"EventBlock\",\"type\":\"PETSIRD", ENOTSUP, "EventTimeBlock"},
		{"{\"protocol\"", "{{\"protocol\"", EBADMSG, "not JSON"},
		{"\"modelName\",\"type\":\"string\"", "\"modelName\",\"type\":\"float32\"", ENOTSUP, "a string is needed"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err;
		int rc = read_schema(cases[i].from, cases[i].to, &err);

		if (rc != -cases[i].code || (rc < 0 && !strstr(err.msg, cases[i].says)))
			fail_msg("%s: %d: %s", cases[i].to, rc, err.msg);
	}
}

/* Sixty definitions, each of which uses the one before twice. */
TEST(growing_schema)
{
	char text[8000] = "\"PETSIRD.T60\"", *schema;
	struct petsird_bytes o;
	struct err err;
	size_t n = 0;

	n += (size_t)sprintf(text, "{\"name\":\"T0\",\"fields\":[]}");
	for (int i = 1; i <= 60; i++)
		n += (size_t)sprintf(text + n,
				     ",{\"name\":\"T%d\",\"fields\":[{\"name\":\"a\",\"type\":\"T%d\"},{\"name\":\"b\",\"type\":"
				     "\"T%d\"}]}",
				     i, i - 1, i - 1);
	sprintf(text + n, ",{\"name\":\"ExamInformation\",\"fields\":[{\"name\":\"a\",\"type\":\"T50\"}]},{\"name\":\"Choice\"");
	schema = schema_with("{\"name\":\"Choice\"", text);
	o = petsird_make(schema);
	assert_error(read_all(&o, 64, NULL, 0, NULL, &err), &err, ENOTSUP, "types");
	free(o.at);
}

/* Two fields, or two alternatives, of one name: values are found by their names. */
TEST(repeated_names)
{
	static const struct {
		const char *from, *to, *says;
	} cases[] = {
		{"{\"name\":\"delayedEvents\"", "{\"name\":\"promptEvents\"", "two fields of the same name: promptEvents"},
		{"{\"name\":\"tofResolution\"", "{\"name\":\"eventEnergyBinEdges\"",
		 "two fields of the same name: eventEnergyBinEdges"},
		{"{\"tag\":\"BedMovementTimeBlock\"", "{\"tag\":\"EventTimeBlock\"",
		 "two alternatives of the same name: EventTimeBlock"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *schema = schema_with(cases[i].from, cases[i].to);
		struct petsird_bytes o = petsird_make(schema);
		struct err err;
		int rc = read_all(&o, 64, NULL, 0, NULL, &err);

		if (rc != -EBADMSG || !strstr(err.msg, cases[i].says))
			fail_msg("case %zu, \"%s\": %d: %s", i, cases[i].says, rc, err.msg);
		free(o.at);
	}
}

/* ---- bytes ---- */

TEST(hostile)
{
	static const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};	 /* 2^63 - 1 */
	static const uint8_t half[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1}; /* 2^63 */
	static const uint8_t over[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2};
	static const uint8_t endless[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	static const uint8_t nan_bytes[] = {0, 0, 0xc0, 0x7f}, infinite[] = {0, 0, 0x80, 0x7f};
	static const uint8_t negative[] = {0, 0, 0x80, 0xbf}, far[] = {0, 0x24, 0x74, 0x4b};
	static const struct {
		enum petsird_mark at;
		size_t removed;
		const void *by;
		size_t n;
		const char *says;
	} cases[] = {
		{MARK_SCHEMA, 2, huge, sizeof(huge), "items of at least"},
		{MARK_SCHEMA, 2, over, sizeof(over), "more than 64 bits"},
		{MARK_MODEL, 1, huge, sizeof(huge), "items of at least"},
		{MARK_MODEL, 1, endless, sizeof(endless), "more than 64 bits"},
		{MARK_TYPES, 1, half, sizeof(half), "items of at least"},
		{MARK_TYPES, 1, "\0", 1, "without modules"},
		{MARK_TRANSFORM, 4, nan_bytes, 4, "a coordinate of"},
		{MARK_TRANSFORM, 4, infinite, 4, "a coordinate of"},
		{MARK_TRANSFORM, 4, far, 4, "a coordinate of"},
		{MARK_TRANSFORMS, 1, "\0", 1, "0 transforms"},
		{MARK_TRANSFORMS, 1, half, sizeof(half), "items of at least"},
		{MARK_TOF, 1, "\1", 1, "edges; allowed"},
		{MARK_TOF, 1, huge, sizeof(huge), "an array larger than the file"},
		{MARK_TOF, 1 + 4, "\4\0\0\xc0\x7f", 5, "not finite"},
		{MARK_TOF, 1 + 8, "\4\0\0\0\0\0\0\0\0", 9, "is not above"},
		{MARK_ENERGY, 1 + 13 + 9, "\1\2\0\x80\xd9\x43\0\x80\x22\x44", 10, "energy bins of 1 types"},
		{MARK_CALIBRATION, 4, nan_bytes, 4, "calibration"},
		{MARK_CALIBRATION, 4, negative, 4, "calibration"},
		{MARK_BINS, 1 + 4, "\x0f", 1, "efficiencies of 15 detection bins"},
		{MARK_BINS, 1 + 4, "\x10\0\0\x80\xbf", 5, "an efficiency of -1"},
		{MARK_GROUP, 1, "\4", 1, "symmetry group 2"},
		{MARK_GROUP, 1, "\xfe\xff\xff\xff\x0f", 5, "symmetry group"},
		{MARK_GROUP_ID, 1, "\2", 1, "number 0 are of symmetry group 1"},
		{MARK_EXAM, 1, "\2", 1, "alternative 2"},
		{MARK_STREAM, 1, half, sizeof(half), "items of at least"},
		{MARK_BLOCK, 1, "\2", 1, "kind 2"},
		{MARK_INTERVAL, 2, "\xff\xff\xff\xff\x0f", 5, "a time block from"},
		{MARK_INTERVAL, 4, "\x80\xb5\x18\x81\xb5\x18", 6, "before the one that it follows"},
		{MARK_INTERVAL, 2, "\xff\xff\xff\xff\x1f", 5, "does not fit into 32 bits"},
		{MARK_ROWS, 1, huge, sizeof(huge), "items of at least"},
		{MARK_EVENTS, 1, half, sizeof(half), "items of at least"},
		{MARK_EVENTS, 1, huge, sizeof(huge), "items of at least"},
		{MARK_EVENT, 1, "\x10", 1, "detection bin 16"},
		{MARK_EVENT, 2, "\1\x10", 2, "detection bin 16"},
		{MARK_EVENT, 1, "\xff\xff\xff\xff\x0f", 5, "detection bin 4294967295"},
		{MARK_EVENT, 1, over, sizeof(over), "more than 64 bits"},
		{MARK_EVENT_TOF, 1, "\3", 1, "TOF bin 3 of 3"},
		{MARK_END, 1, "\0\0", 2, "behind the end"},
		{MARK_END, 1, "\1", 1, "more bytes: it is cut off or damaged"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct petsird_bytes o = petsird_make(NULL);
		struct err err;
		int rc;

		petsird_replace(&o, cases[i].at, cases[i].removed, cases[i].by, cases[i].n);
		rc = read_all(&o, 64, NULL, 0, NULL, &err);
		if (rc != -EBADMSG || !strstr(err.msg, cases[i].says))
			fail_msg("case %zu, \"%s\": %d: %s", i, cases[i].says, rc, err.msg);
		free(o.at);
	}
}

/* A file cut anywhere is refused; one with any byte changed is read or refused with a reason. */
TEST(damaged)
{
	struct petsird_bytes o = petsird_make(NULL), cut;
	size_t data = o.mark[MARK_MODEL];
	struct err err;

	cut = o;
	for (cut.n = 0; cut.n < o.n; cut.n += cut.n < data - 8 ? 97 : 1) {
		assert_true(read_all(&cut, 64, NULL, 0, NULL, &err) < 0);
		assert_true(err.msg[0]);
	}
	for (size_t i = 0; i < o.n; i += i < data - 8 ? 23 : 1)
		for (int k = 0; k < 3; k++) {
			uint8_t before = o.at[i];

			o.at[i] = k == 0 ? 0xff : k == 1 ? 0 : before ^ 1;
			if (read_all(&o, 64, NULL, 0, NULL, &err) < 0)
				assert_true(err.msg[0]);
			o.at[i] = before;
		}
	assert_int_equal(read_all(&o, 64, NULL, 0, NULL, &err), 0);
	free(o.at);
}

TEST(not_petsird)
{
	static const uint8_t other[9] = "yardl\2\0\0";
	struct petsird_bytes o = {malloc(sizeof(other)), sizeof(other), {0}};
	struct petsird *p = NULL;
	struct err err;

	assert_non_null(o.at);
	memcpy(o.at, other, sizeof(other));
	assert_error(read_all(&o, 64, NULL, 0, NULL, &err), &err, ENOTSUP, "version 2");
	o.at[0] = 'Y';
	assert_error(read_all(&o, 64, NULL, 0, NULL, &err), &err, EBADMSG, "not a yardl file");
	o.n = 0;
	assert_int_equal(read_all(&o, 64, NULL, 0, NULL, &err), -EBADMSG);
	free(o.at);
	assert_int_equal(petsird_open("/tmp", &p, &err), -EBADMSG);
	assert_int_equal(petsird_open("/nonexistent/file", &p, &err), -ENOENT);
}

TESTS_SETUP(set_up, tear_down);
