/* SPDX-License-Identifier: Apache-2.0 */
/* Test views whose counts are not those of their neighbours. */
#include "node/tomo/exam_internal.h"
#include "tests/node/tomo/exam_edits.h"

#define LEVEL 1000.0 /* intensity of air; also the I0 of the profile "bench" */
#define DARK 100.0   /* of the darkest part, at 0 degrees */
#define MODEL(name)                                                                                                              \
	{                                                                                                                        \
		-1, TAG_MANUFACTURER_MODEL_NAME, name                                                                            \
	}

/* Views of a slab; image k has `air` of the air's counts, `object` of its darkest part's, `bright` of its brightest part's. */
static void decide(struct exam *exam, int k, double air, double object, double bright)
{
	struct view_air views[N_VIEWS];
	struct err err = {0};

	for (int i = 0; i < N_VIEWS; i++) {
		double path = log(LEVEL / DARK) / cos(exam->views[i].angle * M_PI / 180);

		views[i] = (struct view_air){
			.air = {.verdict = AIR_FOUND, .level = LEVEL, .noise = 0.01, .share = 0.2, .over_code = -1},
			.percentile = LEVEL,
			.dark = LEVEL * exp(-path),
			.bright = LEVEL * exp(-0.1 * path)};
	}
	views[k].air.level *= air;
	views[k].percentile *= air;
	views[k].dark *= object;
	views[k].bright *= bright;
	assert_done(exam_decide_i0(exam, views, &err), &err);
}

TEST(test_air_of_the_views)
{
	static const struct {
		int view;
		double air, object, i0; /* of that view, relative to the others */
		bool warned;
	} cases[] = {
		{2, 1, 1, 1, false},					/* as it should be */
		{2, 0.5, 0.5, 0.5, true},				/* half the dose */
		{0, 0.5, 0.5, 0.5, true},				/* of the first one */
		{4, 0.8, 0.8, 0.8, true},				/* somewhat less of the last one */
		{1, 1.5, 1.5, 1.5, true},				/* more */
		{2, 0.5, 1, 1, false},					/* covered air */
		{4, 0.8, 1, 1, false},	  {2, 0.95, 0.95, 0.95, false}, /* what views differ in */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exam *exam = exam_of(EDITS(MODEL("Part")));

		decide(exam, cases[i].view, cases[i].air, cases[i].object, cases[i].object);
		assert_near(exam->i0[cases[i].view].i0, cases[i].i0 * LEVEL, 1e-9 * LEVEL);
		assert_string_equal(exam->relative, "");
		if ((strstr(exam->warnings, "which no exposure in the headers explains") != NULL) != cases[i].warned)
			fail_msg("case %zu: %s", i, exam->warnings);
	}
}

/* The dose that the header has is no difference. */
TEST(test_exposure_of_the_header)
{
	struct exam *exam = exam_of(EDITS(MODEL("Part"), {-1, TAG_EXPOSURE_IN_UAS, "8000"}, {2, TAG_EXPOSURE_IN_UAS, "4000"}));

	decide(exam, 2, 0.5, 0.5, 0.5);
	assert_near(exam->i0[2].i0, 0.5 * LEVEL, 1e-6 * LEVEL);
	assert_null(strstr(exam->warnings, "counts"));
}

/* Where I0 is the profile's, no air can explain the counts of a view: the attenuation is relative. */
TEST(test_without_air)
{
	static const struct {
		double object, bright;
		const char *relative; /* NULL: quantitative */
	} cases[] = {{1, 1, NULL},
		     {0.8, 0.8, NULL},
		     {0.5, 1, NULL}, /* something dark came into the field */
		     {3, 1, NULL},   /* it left the field */
		     {0.5, 0.5, "1 projection, 2.dcm most, with 50 % of the counts that the others let expect"},
		     {2, 2, "1 projection, 2.dcm most, with 200 % of the counts that the others let expect"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exam *exam = exam_of(EDITS(MODEL("One")));

		decide(exam, 2, cases[i].object, cases[i].object, cases[i].bright);
		if (cases[i].relative ? !strstr(exam->relative, cases[i].relative) : exam->relative[0])
			fail_msg("%g: %s", cases[i].object, exam->relative);
	}
}

TEST(test_levels)
{
	static uint16_t raw[100][100];
	static uint32_t hist[PREP_VALUES];

	for (int inverted = 0; inverted < 2; inverted++) {
		struct prep p = {.n_u = 100, .n_v = 100, .max_value = 4095, .inverted = inverted, .offset = 50};
		struct view_air air = {.air.shadow.far = 20};

		for (int v = 0; v < 100; v++)
			for (int u = 0; u < 100; u++) {
				int x = u < 1 ? 90 : u < 10 ? 300 : u < 80 ? 3000 : 60; /* a clip, tissue, air, the shadow */

				raw[v][u] = (uint16_t)(inverted ? 4095 - x : x);
			}
		exam_measure_levels(&p, raw[0], hist, &air);
		assert_near(air.dark, 250, 1e-9);
		assert_near(air.bright, 2950, 1e-9);
		p.has_padding = true;
		p.padding_lo = p.padding_hi = inverted ? 3795 : 300;
		exam_measure_levels(&p, raw[0], hist, &air);
		assert_near(air.dark, 2950, 1e-9);
		memset(raw, 0, sizeof(raw));
		p.padding_lo = p.padding_hi = 0;
		exam_measure_levels(&p, raw[0], hist, &air);
		assert_near(air.dark, 0, 1e-9);
	}
}

TESTS_SETUP(fixture_start, fixture_stop);
