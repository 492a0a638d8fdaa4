/* SPDX-License-Identifier: Apache-2.0 */
/* Options of simulated exams at their limits: what is just allowed is planned, what is beyond is refused by name. */
#include "node/simulate/simulate.h"
#include "node/simulate/simulate_parallel.h"
#include "node/simulate/simulate_pet.h"
#include "recon/pet/beds.h"
#include "tests/test.h"

static struct config *config;

static const struct scanner_conf *scanner(const char *name)
{
	for (size_t i = 0; i < config->n_scanners; i++)
		if (!strcmp(config->scanners[i].name, name))
			return &config->scanners[i];
	fail_msg("no scanner %s", name);
	return NULL;
}

/* ---- tomosynthesis ---- */

struct dbt {
	REFUSED;
	void (*change)(struct simulate_options *o, struct profile_conf *p);
};

static int plan_dbt(void (*change)(struct simulate_options *o, struct profile_conf *p), struct err *err)
{
	struct profile_conf p = {.name = "p", .pitch = 1, .axis_height = 0, .source_axis = 600, .support = 20, .angle_sign = 1};
	struct simulate_options o = {.profile = &p,
				     .phantom = PHANTOM_BEADS,
				     .i0 = 1000,
				     .binning = 1,
				     .side = 'L',
				     .view = "CC",
				     .seed = 1,
				     .thickness = 50,
				     .exposure_swing = -1,
				     .air = -1,
				     .views = 5,
				     .arc = 20,
				     .columns = 64,
				     .rows = 96};
	struct simulation *s = NULL;
	int rc;

	if (change)
		change(&o, &p);
	rc = simulate_plan(&o, &s, err);
	assert_int_equal(!s, rc < 0);
	simulate_free(s);
	return rc;
}

#define CHANGE(name, statement)                                                                                                  \
	static void name(struct simulate_options *o, struct profile_conf *p)                                                     \
	{                                                                                                                        \
		statement;                                                                                                       \
	}

CHANGE(no_pitch, p->pitch = 0)
CHANGE(no_number_pitch, p->pitch = NAN)
CHANGE(one_view, o->views = 1)
CHANGE(two_views, o->views = 2)
CHANGE(most_views, o->views = SIMULATE_VIEWS_MAX)
CHANGE(more_views, o->views = SIMULATE_VIEWS_MAX + 1)
CHANGE(short_arc, o->arc = 0.0999)
CHANGE(shortest_arc, o->arc = 0.1)
CHANGE(longest_arc, (o->arc = 120, o->thickness = 5))
CHANGE(long_arc, (o->arc = 120.1, o->thickness = 5))
CHANGE(no_arc, o->arc = NAN)
CHANGE(dark, o->i0 = 9.99)
CHANGE(darkest, o->i0 = 10)
CHANGE(no_binning, o->binning = 0)
CHANGE(few_columns, o->columns = 15)
CHANGE(fewest_columns, o->columns = 16)
CHANGE(few_rows, o->rows = 15)
CHANGE(merged_columns, (o->columns = 63, o->binning = 4))
CHANGE(merged, o->binning = 4)
CHANGE(thin, o->thickness = 4.99)
CHANGE(thinnest, o->thickness = 5)
CHANGE(thick, (p->source_axis = 250, o->thickness = 0.9 * 250 * cos(10 * M_PI / 180) - 20 + 0.01))
CHANGE(thickest, (p->source_axis = 250, o->thickness = 0.9 * 250 * cos(10 * M_PI / 180) - 20 - 0.01))
CHANGE(padded_whole, o->collimate = 48)
CHANGE(padded_most, o->collimate = 47)
CHANGE(padded_negative, o->collimate = -1)
CHANGE(wide, p->elements_x = 63)
CHANGE(widest, p->elements_x = 64)
CHANGE(high, p->elements_y = 95)
CHANGE(highest, p->elements_y = 96)
CHANGE(shifted, (p->elements_x = 70, o->window[0] = 6.01))
CHANGE(shifted_most, (p->elements_x = 70, o->window[0] = 6))
CHANGE(shifted_back, (p->elements_x = 70, o->window[0] = -0.01))
CHANGE(lifted, (p->elements_y = 100, o->window[1] = 2.01))
CHANGE(lifted_most, (p->elements_y = 100, o->window[1] = -2))
CHANGE(lowered, (p->elements_y = 100, o->window[1] = -2.01))
CHANGE(far_offset, p->offset = 65530)

CHANGE(thin_breast, (o->breast = true, o->glandular = 20, o->thickness = 19.9))
CHANGE(thinnest_breast, (o->breast = true, o->glandular = 5, o->thickness = 20))
CHANGE(fat_breast, (o->breast = true, o->glandular = 4.9))
CHANGE(dense_breast, (o->breast = true, o->glandular = 60.1))
CHANGE(densest_breast, (o->breast = true, o->glandular = 60, o->thickness = 20, o->clips = 1))
CHANGE(stretched_breast, (o->breast = true, o->glandular = 20, o->air = 30))
CHANGE(breast_on_strip, (o->breast = true, o->glandular = 20, o->columns = 39))

static const struct dbt refused_dbt[] = {
	{{"no pitch", EINVAL, "no detector pitch"}, no_pitch},
	{{"a pitch that is no number", EINVAL, "no detector pitch"}, no_number_pitch},
	{{"one view", EINVAL, "1 views"}, one_view},
	{{"201 views", EINVAL, "201 views"}, more_views},
	{{"a short arc", EINVAL, "an arc of 0.0999"}, short_arc},
	{{"a long arc", EINVAL, "an arc of 120.1"}, long_arc},
	{{"an arc that is no number", EINVAL, "an arc of nan"}, no_arc},
	{{"few counts", EINVAL, "9.99 counts"}, dark},
	{{"no binning", EINVAL, "binned by 0"}, no_binning},
	{{"few columns", EINVAL, "15 x 96 bins"}, few_columns},
	{{"few rows", EINVAL, "64 x 15 bins"}, few_rows},
	{{"few columns after binning", EINVAL, "binned by 4"}, merged_columns},
	{{"thin", EINVAL, "a thickness of 4.99"}, thin},
	{{"up to the source", EINVAL, "below the source"}, thick},
	{{"all padded", EINVAL, "padding of 48 mm"}, padded_whole},
	{{"negative padding", EINVAL, "padding of -1 mm"}, padded_negative},
	{{"wider than the detector", EINVAL, "64 x 96 bins"}, wide},
	{{"higher than the detector", EINVAL, "64 x 96 bins"}, high},
	{{"beside the detector", EINVAL, "x = 6.01 mm"}, shifted},
	{{"before the chest wall", EINVAL, "x = -0.01 mm"}, shifted_back},
	{{"above the detector", EINVAL, "y = 2.01 mm"}, lifted},
	{{"below the detector", EINVAL, "y = -2.01 mm"}, lowered},
	{{"a thin breast", EINVAL, "19.9 mm thick"}, thin_breast},
	{{"a breast of fat", EINVAL, "4.9 percent"}, fat_breast},
	{{"a dense breast", EINVAL, "60.1 percent"}, dense_breast},
	{{"a breast that is stretched", EINVAL, "not allowed for a breast"}, stretched_breast},
	{{"a breast on a strip", EINVAL, "39 x 96 mm"}, breast_on_strip},
	{{"an offset at the largest value", EINVAL, "offset 65530"}, far_offset},
};

static int try_dbt(const void *row, struct err *err)
{
	return plan_dbt(((const struct dbt *)row)->change, err);
}

REFUSES(tomosynthesis, refused_dbt, try_dbt)

TEST(tomosynthesis_at_the_limits)
{
	void (*const allowed[])(struct simulate_options *, struct profile_conf *) = {
		NULL,		two_views, most_views, shortest_arc, longest_arc, darkest,
		fewest_columns, merged,	   thinnest,   thickest,     padded_most, thinnest_breast,
		densest_breast, widest,	   highest,    shifted_most, lifted_most};

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		struct err err = {0};

		if (plan_dbt(allowed[i], &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
	}
}

/* The angles are symmetric in the side of the breast, and the exposures have the mean 1. */
TEST(angles_and_exposures)
{
	for (int right = 0; right < 2; right++) {
		struct profile_conf p = {.name = "p", .pitch = 1, .source_axis = 600, .support = 20, .angle_sign = 1};
		struct simulate_options o = {.profile = &p,
					     .phantom = PHANTOM_BEADS,
					     .i0 = 1000,
					     .binning = 1,
					     .side = right ? 'R' : 'L',
					     .view = "CC",
					     .seed = test_seed(),
					     .thickness = 50,
					     .exposure_swing = 10,
					     .air = -1,
					     .views = 9,
					     .arc = 20,
					     .columns = 64,
					     .rows = 96};
		struct simulation *s = NULL;
		struct err err = {0};
		double sum = 0;

		assert_int_equal(simulate_plan(&o, &s, &err), 0);
		for (int i = 0; i < 9; i++) {
			sum += s->exposure[i];
			assert_true(fabs(s->angle[i]) <= 11);
			assert_true(i == 0 || (right ? s->angle[i] < s->angle[i - 1] : s->angle[i] > s->angle[i - 1]));
		}
		assert_near(sum, 9, 1e-12);
		simulate_free(s);
	}
}

/* ---- PET ---- */

struct pet {
	REFUSED;
	struct simulate_pet_options o;
};

/* counts 0: usual; position "": HFS */
#define PET .phantom = PET_PHANTOM_CYLINDER, .radius = 30, .length = 40

static const struct pet refused_pet[] = {
	{{"few counts", EINVAL, "0.9 counts"}, {PET, .counts = 0.9}},
	{{"many counts", EINVAL, "counts; allowed"}, {PET, .counts = 1.001e12}},
	{{"counts that are no number", EINVAL, "nan counts"}, {PET, .counts = NAN}},
	{{"negative randoms", EINVAL, "randoms of -0.1"}, {PET, .randoms = -0.1}},
	{{"many randoms", EINVAL, "randoms of 100.1"}, {PET, .randoms = 100.1}},
	{{"a negative size", EINVAL, "a phantom of -1"}, {PET, .size = -1}},
	{{"a size of too much", EINVAL, "a phantom of 10.1"}, {PET, .size = 10.1}},
	{{"negative beds", EINVAL, "-1 beds"}, {PET, .beds = -1}},
	{{"many beds", EINVAL, "beds, 10 mm apart"}, {PET, .beds = PET_BEDS_MAX + 1, .bed_step = 10}},
	{{"far beds", EINVAL, "5001 mm apart"}, {PET, .beds = 2, .bed_step = 5001}},
	{{"list mode of beds", EINVAL, "several beds"}, {PET, .beds = 2, .bed_step = 10, .petsird = true, .noise = true}},
	{{"delayed coincidences without randoms", EINVAL, "delayed coincidences without randoms"}, {PET, .delayeds = true}},
	{{"singles without randoms", EINVAL, "singles without randoms"}, {PET, .singles = true}},
	{{"list mode and singles", EINVAL, "list mode and singles"},
	 {PET, .singles = true, .randoms = 1, .petsird = true, .noise = true}},
	{{"list mode and delayed coincidences", EINVAL, "of its own"},
	 {PET, .delayeds = true, .randoms = 1, .petsird = true, .noise = true}},
	{{"list mode without noise", EINVAL, "without noise"}, {PET, .petsird = true}},
	{{"no position", EINVAL, "patient position"}, {PET, .position = "HFX"}},
	{{"half a position", EINVAL, "patient position"}, {PET, .position = "HF"}},
	{{"a phantom of too much", EINVAL, "extends to"}, {PET, .size = 4}},
};

static int try_pet(const void *row, struct err *err)
{
	struct simulate_pet_options o = ((const struct pet *)row)->o;
	struct simulate_pet *s = NULL;
	int rc;

	o.scanner = scanner("small");
	o.counts = o.counts == 0 ? 1e5 : o.counts;
	if (!o.position[0])
		strcpy(o.position, "HFS");
	rc = simulate_pet_plan(&o, &s, err);
	assert_int_equal(!s, rc < 0);
	simulate_pet_free(s);
	return rc;
}

REFUSES(pet, refused_pet, try_pet)

TEST(pet_at_the_limits)
{
	static const struct pet rows[] = {
		{{"usual", 0, NULL}, {PET}},
		{{"one count", 0, NULL}, {PET, .counts = 1}},
		{{"most counts", 0, NULL}, {PET, .counts = 1e12}},
		{{"most randoms", 0, NULL}, {PET, .randoms = 100}},
		{{"most beds", 0, NULL}, {PET, .beds = PET_BEDS_MAX, .bed_step = -5000}},
		{{"list mode", 0, NULL}, {PET, .petsird = true, .noise = true}},
		{{"singles and delayed coincidences", 0, NULL}, {PET, .singles = true, .delayeds = true, .randoms = 1}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = {0};

		if (try_pet(&rows[i], &err) < 0)
			fail_msg("%s: %s", rows[i].refused.what, err.msg);
	}
}

/* ---- parallel beams ---- */

struct parallel {
	REFUSED;
	double taper, counts;
	const char *picture, *position;
};

static const struct parallel refused_parallel[] = {
	{{"a taper of a picture", EINVAL, "taper 0.1"}, 0.1, 0, "/none.png", "HFS"},
	{{"a negative taper", EINVAL, "taper -0.1"}, -0.1, 0, NULL, "HFS"},
	{{"a whole taper", EINVAL, "taper 1"}, 1, 0, NULL, "HFS"},
	{{"a taper that is no number", EINVAL, "taper nan"}, NAN, 0, NULL, "HFS"},
	{{"few counts", EINVAL, "0.5 counts"}, 0, 0.5, NULL, "HFS"},
	{{"negative counts", EINVAL, "-1 counts"}, 0, -1, NULL, "HFS"},
	{{"many counts", EINVAL, "counts; allowed"}, 0, 1.001e12, NULL, "HFS"},
	{{"no position", EINVAL, "'ABC'"}, 0, 0, NULL, "ABC"},
	{{"no picture", ENOENT, "/none.png"}, 0, 0, "/none.png", "HFS"},
};

static int try_parallel(const void *row, struct err *err)
{
	const struct parallel *r = row;
	struct simulate_parallel_options o = {
		.size = 16, .angles = 16, .slices = 1, .taper = r->taper, .counts = r->counts, .picture = r->picture};
	struct simulate_parallel_report report;

	snprintf(o.position, sizeof(o.position), "%s", r->position);
	return simulate_parallel_run(&o, "/none", NULL, &report, err);
}

REFUSES(parallel_beams, refused_parallel, try_parallel)

/* ---- systems ---- */

TEST(texts_that_match_patterns)
{
	static const struct {
		const char *pattern, *other, *text;
	} rows[] = {{"SIEMENS*", "X", "SIEMENS"},
		    {"*a?c*", "X", "aXc"},
		    {"*", "other", "other"},
		    {"", "other", "other"},
		    {"?", "X", "X"}};
	char text[16];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		simulate_matching_text(rows[i].pattern, rows[i].other, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
	simulate_matching_text("abcdef", "X", text, 4);
	assert_string_equal(text, "abc");
}

static int start(void **state)
{
	setenv("TOMONODE_SPOOL", "/spool", 1);
	return config_parse("", "test", NULL, NULL, &config, NULL);
}

static int stop(void **state)
{
	config_free(config);
	return 0;
}

TESTS_SETUP(start, stop);
