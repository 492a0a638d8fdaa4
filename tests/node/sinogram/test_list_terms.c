/* SPDX-License-Identifier: Apache-2.0 */
/* Computed corrections of single events, on random scanners and events: which bin an event is in, against a table of the pairs of
 * all bins; counts of prompts and delayed coincidences in frames; the factors of the sensitivity, and b / m of each event. */
#include "node/reconstruct/case_event_terms.h"
#include "node/sinogram/sinogram_list_internal.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

#define RINGS 5
#define CRYSTALS 24
#define DETECTORS (RINGS * CRYSTALS)
#define RADIAL 15
#define EVENTS 70000 /* more than a piece */
#define TOF 7
#define FRAME 400 /* ms */

/* Where the ordered pair of detectors is. */
struct pair {
	bool there, exchanged;
	size_t plane, bin;
};

struct run {
	struct michelogram m;
	struct michelogram_index x;
	uint16_t place[DETECTORS][2]; /* detectors are numbered in a random order */
	struct pair pairs[DETECTORS][DETECTORS];
	struct event *events; /* [EVENTS] */
	bool *delayed;
	uint32_t *ms;
	size_t at;
	bool choose_delayed;
	uint64_t dead;
	float *factors, *background; /* [plane][bin]; [TOF bin][plane][bin] */
	size_t planes, bins;
};

static int rewind_run(void *ctx, struct err *err)
{
	struct run *s = ctx;

	(void)err;
	s->at = 0;
	return 0;
}

static int read_run(void *ctx, struct event *ret, uint32_t *ret_ms, size_t most, size_t *ret_n, struct err *err)
{
	struct run *s = ctx;

	(void)err;
	for (*ret_n = 0; *ret_n < most && s->at < EVENTS; s->at++)
		if (s->delayed[s->at] == s->choose_delayed) {
			ret_ms[*ret_n] = s->ms[s->at];
			ret[(*ret_n)++] = s->events[s->at];
		}
	return 0;
}

static void choose_run(void *ctx, bool delayed)
{
	struct run *s = ctx;

	s->choose_delayed = delayed;
}

static void keep_run(void *ctx)
{
	(void)ctx;
}

static void factor_row(void *ctx, int plane, int angle, int first, int step, float *ret, size_t stride)
{
	const struct run *s = ctx;

	for (size_t i = (size_t)first; i < RADIAL; i += (size_t)step, ret += stride)
		*ret = s->factors[(size_t)plane * s->bins + (size_t)angle * RADIAL + i];
}

/* Number the detectors at random. */
static void place_detectors(struct run *s, uint32_t *seed)
{
	for (int i = 0; i < DETECTORS; i++) {
		int k = (int)(fixture_random(seed) * (float)(i + 1));

		memcpy(s->place[i], s->place[k], sizeof(s->place[i]));
		s->place[k][0] = (uint16_t)(i / CRYSTALS);
		s->place[k][1] = (uint16_t)(i % CRYSTALS);
	}
}

/* Fill the table from the ring pairs and crystals of all bins. */
static void find_pairs(struct run *s)
{
	int number[RINGS][CRYSTALS];

	for (int i = 0; i < DETECTORS; i++)
		number[s->place[i][0]][s->place[i][1]] = i;
	for (size_t plane = 0; plane < s->planes; plane++) {
		struct michelogram_rings r = michelogram_plane_rings(&s->x, (int)plane);

		for (size_t bin = 0; bin < s->bins; bin++) {
			int crystal[2];

			michelogram_crystals(&s->x, (int)(bin / RADIAL), (int)(bin % RADIAL), 0, crystal);
			for (int i = 0; i < r.n; i++) {
				int difference = r.difference + 2 * i;
				int first = number[(r.sum + difference) / 2][crystal[0]],
				    second = number[(r.sum - difference) / 2][crystal[1]];

				s->pairs[first][second] = (struct pair){true, false, plane, bin};
				s->pairs[second][first] = (struct pair){true, true, plane, bin};
			}
		}
	}
}

static struct run *make_run(int span, uint32_t seed)
{
	struct run *s = calloc(1, sizeof(*s));
	size_t n;

	assert_non_null(s);
	s->m = (struct michelogram){.scanner = {.rings = RINGS, .detectors = CRYSTALS, .ring_spacing = 5, .radius = 60, .bin = 8},
				    .n_radial = RADIAL,
				    .n_angles = CRYSTALS / 2};
	assert_int_equal(michelogram_segments_all(RINGS, span, &s->m.segments, &s->m.n_segments, NULL), 0);
	assert_int_equal(michelogram_index_init(&s->m, &s->x, NULL), 0);
	s->planes = michelogram_planes(&s->m);
	s->bins = (size_t)s->m.n_angles * RADIAL;
	n = s->planes * s->bins;
	place_detectors(s, &seed);
	find_pairs(s);
	s->factors = fixture_floats(n, seed + 1, 0.1f, 2);
	s->background = fixture_floats(TOF * n, seed + 2, 0, 3);
	s->events = malloc(EVENTS * sizeof(*s->events));
	s->delayed = malloc(EVENTS * sizeof(*s->delayed));
	s->ms = malloc(EVENTS * sizeof(*s->ms));
	assert_true(s->events && s->delayed && s->ms);
	for (size_t i = 0; i < EVENTS; i++) {
		int a = (int)(fixture_random(&seed) * DETECTORS), b = (int)(fixture_random(&seed) * (DETECTORS - 1));

		s->events[i] = (struct event){{a, b + (b >= a)}, (int)(fixture_random(&seed) * TOF), 0};
		s->delayed[i] = fixture_random(&seed) < 0.3f;
		s->ms[i] = (uint32_t)(i * 1000 / EVENTS);
	}
	return s;
}

static void free_run(struct run *s)
{
	free(s->m.segments);
	free(s->events);
	free(s->delayed);
	free(s->ms);
	free(s);
}

static struct sinogram_list *make_list(struct run *s, bool rows, bool kept)
{
	static const struct pet_images frames = {PET_FRAMES, 2, {{{0, FRAME}}, {{FRAME, 900}}}};
	struct sinogram_list *l = list_new(&frames, NULL);

	assert_non_null(l);
	l->source = (struct list_source){s, rewind_run, read_run, choose_run, keep_run};
	l->dead = &s->dead;
	l->data.michelogram = &s->m;
	l->data.tof = (struct scan_tof){TOF, 20, 10};
	l->data.factors = rows ? NULL : s->factors;
	l->data.factor_row = rows ? factor_row : NULL;
	l->data.factor_ctx = s;
	assert_int_equal(list_set_bins(l, (const uint16_t(*)[2])s->place, NULL), 0);
	assert_int_equal(list_load(l, kept ? SIZE_MAX / 2 : 1000, NULL), 0);
	return l;
}

static bool in_frame(const struct run *s, size_t i, int frame)
{
	return s->ms[i] < 900 && (s->ms[i] >= FRAME) == frame;
}

TEST(counts_are_those_of_the_pairs)
{
	for (int kind = 0; kind < 4; kind++) {
		struct run *s = make_run(kind & 1 ? 3 : 1, (uint32_t)(20 + kind));
		struct sinogram_list *l = make_list(s, false, kind & 2);
		struct sinogram sinogram = {.list = l};
		size_t n = s->planes * s->bins;
		float *found = malloc(n * sizeof(*found)), *wanted = malloc(n * sizeof(*wanted));

		assert_true(found && wanted);
		assert_true(sinogram_list_has_delayeds(&sinogram));
		for (int frame = 0; frame < 2; frame++)
			for (int delayed = 0; delayed < 2; delayed++) {
				memset(wanted, 0, n * sizeof(*wanted));
				for (size_t i = 0; i < EVENTS; i++) {
					const struct pair *p = &s->pairs[s->events[i].detector[0]][s->events[i].detector[1]];

					if (p->there && s->delayed[i] == (bool)delayed && in_frame(s, i, frame))
						wanted[p->plane * s->bins + p->bin]++;
				}
				list_choose_frame(l, frame);
				assert_int_equal(delayed ? sinogram_list_delayeds(&sinogram, found, NULL)
							 : sinogram_list_count(&sinogram, found, NULL),
						 0);
				assert_memory_equal(found, wanted, n * sizeof(*found));
			}
		free(found);
		free(wanted);
		list_free(l);
		free_run(s);
	}
}

/* ---- terms ---- */

static float attenuation_of(size_t plane, size_t bin)
{
	return plane == 3 && bin % 7 == 0 ? 0 : 1 / (1 + 0.1f * (float)((plane * 31 + bin) % 17));
}

static void multiply(const void *ctx, size_t plane, float *m)
{
	const struct run *s = ctx;

	for (size_t i = 0; i < s->bins; i++)
		m[i] *= attenuation_of(plane, i);
}

static float background_at(const void *ctx, size_t k, size_t plane, size_t bin)
{
	const struct run *s = ctx;

	return s->background[(k * s->planes + plane) * s->bins + bin];
}

static void no_planes(const void *ctx, size_t k, size_t plane, float *b)
{
	(void)ctx;
	fail_msg("plane %zu of TOF bin %zu of %p is not for events", plane, k, (void *)b);
}

static void check_events(const struct run *s, const struct pet_list *list, int frame)
{
	struct event *e = malloc(5000 * sizeof(*e));
	size_t n = 1, at = 0, outside = 0, dead = 0;

	assert_non_null(e);
	assert_int_equal(list->events.rewind(list->events.ctx, NULL), 0);
	while (n > 0) {
		assert_int_equal(list->events.read(list->events.ctx, e, 5000, &n, NULL), 0);
		for (size_t i = 0; i < n; i++, at++) {
			const struct pair *p = &s->pairs[e[i].detector[0]][e[i].detector[1]];
			size_t k = (size_t)(p->exchanged ? TOF - 1 - e[i].tof : e[i].tof);

			while (s->delayed[at] || !in_frame(s, at, frame))
				at++;
			assert_memory_equal(e[i].detector, s->events[at].detector, sizeof(e[i].detector));
			outside += !p->there;
			if (!p->there)
				assert_near((double)e[i].add, 0, 0);
			else if (attenuation_of(p->plane, p->bin) > 0)
				assert_near(
					(double)e[i].add,
					(double)(2 * background_at(s, k, p->plane, p->bin) /
						 (s->factors[p->plane * s->bins + p->bin] * attenuation_of(p->plane, p->bin))),
					1e-5 * (double)e[i].add);
			else
				dead += e[i].add > 1e15f;
		}
	}
	assert_true(outside > 100 && dead > 10);
	free(e);
}

TEST(events_have_their_background)
{
	for (int kind = 0; kind < 4; kind++) {
		struct run *s = make_run(kind & 1 ? 3 : 1, (uint32_t)(40 + kind));
		struct sinogram_list *l = make_list(s, kind & 1, kind & 2);
		struct sinogram sinogram = {.list = l};
		struct case_profiles profiles = {.n = 1, .plane = {2}, .counts = calloc(RADIAL, sizeof(double))};
		struct case_terms terms = {.profiles = &profiles,
					   .n_factors = 1,
					   .n_backgrounds = 2,
					   .factor = {{multiply, s}},
					   .background = {{no_planes, background_at, s}, {no_planes, background_at, s}}};
		struct case_event_terms t = {0};

		assert_ptr_equal(case_event_terms_list(&t, &sinogram), &l->data); /* none yet */
		for (int frame = 0; frame < 2; frame++) {
			const struct pet_list *list;
			double sum = 0;

			list_choose_frame(l, frame);
			assert_int_equal(case_event_terms_make(&t, &sinogram, &terms, 12, NULL), 0);
			list = case_event_terms_list(&t, &sinogram);
			assert_true(list->with_background && list->n_events == l->data.n_events);
			assert_near(list->background, 12, 0);
			check_events(s, list, frame);
			for (size_t i = 0; i < s->planes * s->bins; i++)
				assert_near((double)list->factors[i],
					    (double)(s->factors[i] * attenuation_of(i / s->bins, i % s->bins)), 1e-6);
			memset(profiles.counts, 0, RADIAL * sizeof(double));
			assert_int_equal(case_event_terms_profiles(&t, NULL), 0);
			for (size_t i = 0; i < EVENTS; i++) {
				const struct pair *p = &s->pairs[s->events[i].detector[0]][s->events[i].detector[1]];

				if (p->there && p->plane == 2 && !s->delayed[i] && in_frame(s, i, frame))
					profiles.counts[p->bin % RADIAL]--;
			}
			for (size_t i = 0; i < RADIAL; i++)
				sum += fabs(profiles.counts[i]);
			assert_near(sum, 0, 0);
		}
		case_event_terms_clear(&t);
		free(profiles.counts);
		list_free(l);
		free_run(s);
	}
}
