/* SPDX-License-Identifier: Apache-2.0 */
/* Decide I0 from what the views show: air, the air of other views, the profile, or nothing. */
#include "recon/phantom/poisson.h"
#include "tests/node/tomo/exam_edits.h"
#include "tests/test.h"

#define LEVEL 3000.0 /* stored value of air */

/* Views with air that covers `share`; the percentile is 1 % above the level. */
static void fill(struct view_air air[N_VIEWS], double share)
{
	for (int i = 0; i < N_VIEWS; i++)
		air[i] = (struct view_air){
			.air = {.verdict = AIR_FOUND, .level = LEVEL, .noise = 0.01, .share = share, .over_code = -1},
			.percentile = 1.01 * LEVEL};
}

static void hide(struct view_air *air, enum air_verdict verdict)
{
	air->air.verdict = verdict;
	air->air.level = 0;
	air->percentile = 400;
}

static void decided(struct exam *e, const struct view_air air[N_VIEWS], const double want[N_VIEWS], enum i0_source source)
{
	struct err err = {0};

	assert_done(exam_decide_i0(e, air, &err), &err);
	for (int i = 0; i < N_VIEWS; i++) {
		bool own = air[i].air.verdict == AIR_FOUND && source != I0_UNKNOWN;

		if (!(fabs(e->i0[i].i0 - want[i]) < 1e-6 * want[i]))
			fail_msg("view %d: %g, not %g", i, e->i0[i].i0, want[i]);
		assert_int_equal(e->i0[i].source, own ? I0_OF_VIEW : source);
	}
	assert_true((e->relative[0] != '\0') == (source == I0_UNKNOWN));
}

#define EACH(a, b, c, d, e) ((const double[]){a, b, c, d, e})
#define MODEL(name)                                                                                                              \
	{                                                                                                                        \
		-1, TAG_MANUFACTURER_MODEL_NAME, name                                                                            \
	}
/* images 0..4 are views 0..4, with 4, 4, 8, 8 and 8 mAs */
#define EXPOSURES                                                                                                                \
	{-1, TAG_EXPOSURE_IN_UAS, "8000"}, {0, TAG_EXPOSURE_IN_UAS, "4000"},                                                     \
	{                                                                                                                        \
		1, TAG_EXPOSURE_IN_UAS, "4000"                                                                                   \
	}

/* A view whose air has far less noise than that of the others is clipped, although its level is near theirs; with little noise,
 * and where the noise is not known, nothing is compared. */
TEST(test_noise)
{
	struct exam *e = exam_of(EDITS(MODEL("Part")));
	struct view_air air[N_VIEWS];
	struct err err = {0};

	for (int way = 0; way < 3; way++) {
		fill(air, 0.09);
		for (int i = 0; i < N_VIEWS; i++)
			air[i].air.gain = way == 1 ? 0.001 : 1 + 0.1 * i;
		air[3].air.gain = way == 2 ? -1 : 0;
		air[3].air.level = 0.95 * LEVEL;
		assert_int_equal(exam_decide_i0(e, air, &err), 0);
		assert_int_equal(e->i0[3].source, way == 0 ? I0_OF_OTHERS : I0_OF_VIEW);
		assert_true(fabs(e->i0[3].i0 / LEVEL - (way == 0 ? 1 : 0.95)) < 1e-9);
		assert_true(e->i0[0].source == I0_OF_VIEW && e->i0[4].source == I0_OF_VIEW);
	}
}

/* The shadow of a collimator is passed on, and named. */
TEST(test_shadow)
{
	struct exam *e = exam_of(EDITS(MODEL("Part")));
	struct view_air air[N_VIEWS];
	struct err err = {0};

	fill(air, 0.09);
	air[1].air.shadow = (struct prep_shadow){5, 0, 3};
	assert_int_equal(exam_decide_i0(e, air, &err), 0);
	assert_true(exam_view_prep(e, &e->i0[1]).shadow.far == 5 && exam_view_prep(e, &e->i0[1]).shadow.last == 3);
	assert_true(exam_view_prep(e, &e->i0[0]).shadow.far == 0);
	assert_non_null(strstr(e->warnings, "collimator is left out of 1 projection: up to 5 mm at the far side, 3 mm"));
	/* beside it there is only tissue: still a collimator; only air, by the other views: then it is the object */
	e->warnings[0] = '\0';
	hide(&air[1], AIR_NO_CONTRAST);
	assert_int_equal(exam_decide_i0(e, air, &err), 0);
	assert_true(exam_view_prep(e, &e->i0[1]).shadow.far == 5);
	e->warnings[0] = '\0';
	air[1].percentile = 0.98 * LEVEL;
	assert_int_equal(exam_decide_i0(e, air, &err), 0);
	assert_true(exam_view_prep(e, &e->i0[1]).shadow.far + exam_view_prep(e, &e->i0[1]).shadow.last == 0);
	assert_null(strstr(e->warnings, "collimator"));
}

TEST(test_own)
{
	struct exam *e = exam_of(EDITS(MODEL("Part"))); /* percentile 90 */
	const double level = LEVEL, part = 1.01 * LEVEL;
	struct view_air air[N_VIEWS];

	fill(air, 0.4);
	decided(e, air, EACH(part, part, part, part, part), I0_OF_VIEW);
	fill(air, 0.09);
	decided(e, air, EACH(level, level, level, level, level), I0_OF_VIEW);
	fill(air, 0.4);
	air[2].percentile = 0.9 * LEVEL; /* not a value of the plateau */
	decided(e, air, EACH(part, part, level, part, part), I0_OF_VIEW);
}

TEST(test_others)
{
	const double level = LEVEL;
	struct view_air air[N_VIEWS];
	struct exam *e = exam_of(EDITS(MODEL("Part")));

	fill(air, 0.05);
	hide(&air[1], AIR_NO_EDGE);
	hide(&air[4], AIR_NO_PLATEAU);
	decided(e, air, EACH(level, level, level, level, level), I0_OF_OTHERS);
	/* one view shows something else */
	fill(air, 0.05);
	air[3].air.level = LEVEL / 2;
	assert_int_equal(exam_decide_i0(e, air, NULL), 0);
	assert_true(e->i0[3].i0 == LEVEL && e->i0[3].source == I0_OF_OTHERS && !e->relative[0]);
	/* the percentile of a view that does not prove its air: used if it agrees with the air of the others within 2 % */
	fill(air, 0.05);
	hide(&air[1], AIR_NO_CONTRAST);
	hide(&air[4], AIR_NO_EDGE);
	air[1].percentile = 0.99 * LEVEL;
	air[4].percentile = 0.97 * LEVEL;
	assert_int_equal(exam_decide_i0(e, air, NULL), 0);
	assert_true(fabs(e->i0[1].i0 - 0.99 * LEVEL) < 1e-6 * LEVEL && e->i0[1].source == I0_OF_VIEW);
	assert_true(e->i0[4].i0 == LEVEL && e->i0[4].source == I0_OF_OTHERS && !e->relative[0]);

	e = exam_of(EDITS(MODEL("Part"), EXPOSURES));
	assert_true(e->views[0].charge == 4 && e->views[4].charge == 8);
	fill(air, 0.05);
	air[0].air.level = air[1].air.level = LEVEL / 2; /* agrees with the exposure */
	hide(&air[1], AIR_NO_EDGE);
	hide(&air[4], AIR_NO_EDGE);
	decided(e, air, EACH(level / 2, level / 2, level, level, level), I0_OF_OTHERS);
}

TEST(test_profile)
{
	struct exam *e = exam_of(EDITS(MODEL("Air"), EXPOSURES)); /* 1000 above the offset at 5 mAs */
	struct view_air air[N_VIEWS];

	fill(air, 0.05);
	for (int i = 0; i < N_VIEWS; i++)
		hide(&air[i], AIR_OVER_RANGE);
	air[2].air.over_code = 4095;
	decided(e, air, EACH(800, 800, 1600, 1600, 1600), I0_OF_PROFILE);
	assert_true(e->i0[2].over_code == 4095 && e->i0[1].over_code == -1);

	/* without exposure in the header, the value cannot be scaled */
	e = exam_of(EDITS(MODEL("Air")));
	decided(e, air, EACH(300, 300, 300, 300, 300), I0_UNKNOWN);
	assert_non_null(strstr(e->relative, "over range"));
}

TEST(test_unknown)
{
	struct exam *e = exam_of(EDITS(MODEL("Part")));
	struct view_air air[N_VIEWS];

	fill(air, 0.05);
	for (int i = 0; i < N_VIEWS; i++)
		hide(&air[i], AIR_NO_EDGE);
	decided(e, air, EACH(400, 400, 400, 400, 400), I0_UNKNOWN);
	assert_non_null(strstr(e->relative, "brightest region"));
	/* found, but never the same */
	fill(air, 0.05);
	for (int i = 0; i < N_VIEWS; i++) {
		air[i].air.level = LEVEL * (1 + (i * 3) % 5);
		air[i].percentile = 400;
	}
	assert_int_equal(exam_decide_i0(e, air, NULL), 0);
	assert_true(e->i0[4].source == I0_UNKNOWN && e->i0[4].i0 == 400);
	assert_non_null(strstr(e->relative, "air in 4 projections disagree"));
}

/* The highest level in range is found among the values without the over-range code, also where it is the percentile at first. */
TEST(test_over_percent)
{
	enum { U = 240, V = 300 };
	static uint16_t raw[U * V];
	static uint32_t hist[PREP_VALUES];
	struct exam *e = exam_of(EDITS(MODEL("Top")));

	e->prep.n_u = U;
	e->prep.n_v = V;
	e->prep.max_value = 16383;
	for (int way = 0; way < 2; way++) {
		struct prep p;
		struct view_air air;
		struct exam_i0 alone;
		struct err err = {0};
		double want = 0;

		for (int i = 0; i < U * V; i++) { /* a slab beside air that is clipped */
			double mean = i % U < U - 24 ? 12000 * exp(-2.5) : 12000, value;

			value = fmin(poisson_draw(mean, poisson_stream(7, (size_t)i)), 9000);
			raw[i] = (uint16_t)(way ? 16383 - value : value);
		}
		e->prep.inverted = way;
		p = e->prep;
		assert_done(exam_measure_view(e, 0, raw, &air, &alone, &err), &err);
		assert_int_equal(air.air.verdict, AIR_OVER_RANGE);
		p.has_over_code = true;
		p.over_code = air.air.over_code;
		assert_int_equal(prep_histogram(&p, raw, hist, &err), 0);
		assert_int_equal(prep_percentile(&p, hist, way ? 100 - 99.9 : 99.9, &want, &err), 0);
		if (air.percentile != want)
			fail_msg("inverted %d: %g, not %g", way, air.percentile, want);
	}
}

/* The largest value of the header is not believed if it is over range. */
TEST(test_header_max)
{
	struct exam *e = exam_of(EDITS(MODEL("Top")));
	struct view_air air[N_VIEWS];

	fill(air, 0.05);
	for (int i = 0; i < N_VIEWS; i++)
		hide(&air[i], AIR_NO_EDGE);
	assert_int_equal(exam_decide_i0(e, air, NULL), 0);
	assert_true(e->i0[0].i0 == 4095 && e->i0[0].source == I0_OF_PROFILE && !e->relative[0]);
	for (int i = 0; i < N_VIEWS; i++) {
		hide(&air[i], AIR_OVER_RANGE);
		air[i].air.over_code = 4095;
	}
	decided(e, air, EACH(400, 400, 400, 400, 400), I0_UNKNOWN);
}

/* With an open field, the levels of all views must agree within 2 %, also if they drift from view to view. */
TEST(test_model)
{
	struct exam *e = exam_of(EDITS(MODEL("Distance")));
	struct view_air air[N_VIEWS];

	fill(air, 0.4);
	for (int i = 0; i < N_VIEWS; i++)
		air[i].air.level = LEVEL * (1 + 0.009 * (i - 2));
	air[4].air.level = LEVEL * 1.05;
	assert_int_equal(exam_decide_i0(e, air, NULL), 0);
	for (int i = 0; i < N_VIEWS; i++) {
		struct prep prep = exam_view_prep(e, &e->i0[i]);

		assert_true(prep.open.distance);
		assert_int_equal(e->i0[i].source, i == 4 ? I0_OF_OTHERS : I0_OF_VIEW);
		assert_true(e->i0[i].i0 == (i == 4 ? LEVEL : air[i].air.level)); /* never the percentile */
	}
	e = exam_of(EDITS(MODEL("Part")));
	assert_int_equal(exam_decide_i0(e, air, NULL), 0);
	assert_true(e->i0[4].source == I0_OF_VIEW && open_field_is_uniform(&e->i0[4].open));
}

/* A view that does not determine the slope has the median of the others, at the middle of the detector. */
TEST(test_fit)
{
	struct exam *e = exam_of(EDITS(MODEL("Fit")));
	struct view_air air[N_VIEWS];

	fill(air, 0.4);
	for (int i = 0; i < N_VIEWS; i++)
		air[i].air.field = (struct air_field){{true, true}, {1e-3 * (1 + 0.1 * i), -2e-3}, 0.03, LEVEL};
	air[0].air.field = (struct air_field){.along = {false, true}, .slope = {0, -1e-3}};
	air[0].air.at[0] = 10;
	air[0].air.at[1] = 5;
	air[0].air.level = LEVEL * exp(1.3e-3 * 10);
	hide(&air[3], AIR_NO_EDGE);
	assert_int_equal(exam_decide_i0(e, air, NULL), 0);
	assert_true(!e->relative[0]);
	assert_true(fabs(e->i0[0].i0 / (LEVEL * exp(1e-3)) - 1) < 1e-9);
	assert_true(fabs(e->i0[0].open.slope[0] - 1.2e-3) < 1e-9 && fabs(e->i0[0].open.slope[1] + 1e-3) < 1e-9);
	assert_true(fabs(e->i0[3].open.slope[0] - 1.2e-3) < 1e-9 && e->i0[3].source == I0_OF_OTHERS);
	assert_true(e->i0[4].open.slope[0] == 1.4e-3);
	assert_int_equal(e->open_field.n_along[0], 4);
	/* along x: by no view */
	for (int i = 0; i < N_VIEWS; i++)
		air[i].air.field.along[0] = false;
	assert_int_equal(exam_decide_i0(e, air, NULL), 0);
	assert_non_null(strstr(e->relative, "open field along x, which open_field_fit"));
}

/* A profile that declares a uniform field: the air within the views, and of the views, shows that it is not. */
TEST(test_not_uniform)
{
	struct exam *e = exam_of(EDITS(MODEL("Part")));
	struct view_air air[N_VIEWS];

	fill(air, 0.05);
	for (int i = 0; i < N_VIEWS; i++)
		air[i].air.field.variation = 0.99 * AIR_LOG_ERROR * e->thickness;
	assert_int_equal(exam_decide_i0(e, air, NULL), 0);
	assert_true(!e->relative[0] && e->open_field.variation > 0);
	air[0].air.field.variation = 0.2; /* one view of five proves nothing */
	assert_int_equal(exam_decide_i0(e, air, NULL), 0);
	assert_true(!e->relative[0]);
	air[4].air.field.variation = 0.1;
	assert_int_equal(exam_decide_i0(e, air, NULL), 0);
	assert_non_null(strstr(e->relative, "air of 2 projections varies by up to 22 %"));
	/* levels that follow the distance of the source to air at y = 100 mm, or vary by as much in another order */
	for (int way = 0; way < 2; way++) {
		fill(air, 0.05);
		for (int i = 0; i < N_VIEWS; i++) {
			double a = (-10 + 5 * (way ? (2 * i) % 5 : i)) * M_PI / 180, y = 600 * sin(a), z = 40 + 600 * cos(a);

			air[i].air.at[1] = 100;
			air[i].air.level = LEVEL * z / pow(pow(y - 100, 2) + z * z + 144, 1.5) * 640 * 640;
		}
		assert_int_equal(exam_decide_i0(e, air, NULL), 0);
		if ((e->relative[0] != '\0') != (way == 0))
			fail_msg("levels %s the distance: '%s'", way ? "do not follow" : "follow", e->relative);
		assert_true(way == 1 || strstr(e->relative, "distance of the source"));
	}
}

/* The range ends above I0 in the middle of the detector, but not at its corners. */
TEST(test_saturation)
{
	struct exam *e = exam_of(EDITS(MODEL("Fit")));
	struct exam_i0 i0 = {.i0 = 0.995 * e->prep.max_value, .source = I0_OF_VIEW, .over_code = -1};

	assert_true(exam_view_prep(e, &i0).saturation == 0);
	open_field_set_slope(e->scan, (const double[]){-1e-3, 0}, &i0.open);
	assert_true(exam_view_prep(e, &i0).saturation == e->prep.max_value);
}

/* Open an exam whose sixth image is the flat field of a profile with these keys. The profile is used until close_flat(). */
static struct config *fixture_standard;

static void (*flat_pixels)(int view, uint16_t values[ROWS * COLUMNS]); /* NULL: as usual */

static int open_flat(const char *keys, const struct edit *edits, struct exam **ret, struct err *err)
{
	char conf[1024];

	snprintf(conf, sizeof(conf),
		 "profiles = ( { name = \"flat\"; manufacturer = \"Bench*\"; model = \"Flat\"; axis_height = 40.0;"
		 "  source_axis = 600.0; support = 20.0; pitch = 1.0; flatfield = \"%s/5.dcm\"; %s } );",
		 fixture_folder, keys);
	fixture_standard = fixture_config;
	assert_int_equal(config_parse(conf, "flat.conf", NULL, NULL, &fixture_config, err), 0);
	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS + 1, .change = edit, .ctx = edits, .pixels = flat_pixels});
	return fixture_open(N_VIEWS, ret, err);
}

static void close_flat(struct exam *e)
{
	config_free(fixture_config);
	fixture_config = fixture_standard;
}

#define FLAT                                                                                                                     \
	MODEL("Flat"),                                                                                                           \
	{                                                                                                                        \
		-1, TAG_IMAGES_IN_ACQUISITION, "5"                                                                               \
	}

/* Where the levels of air disagree, the flat field replaces them, and the slope of the air. */
TEST(test_flat_slope)
{
	struct exam *e = NULL;
	struct view_air air[N_VIEWS];
	struct err err = {0};

	assert_done(open_flat("open_field_fit = true;", EDITS(FLAT), &e, &err), &err);
	fill(air, 0.05);
	for (int i = 0; i < N_VIEWS; i++) {
		air[i].air.field = (struct air_field){{true, true}, {1e-3, -2e-3}, 0.03, LEVEL};
		air[i].air.level = LEVEL * (1 + (i * 3) % 5);
	}
	assert_int_equal(exam_decide_i0(e, air, &err), 0);
	for (int i = 0; i < N_VIEWS; i++) {
		assert_true(e->i0[i].use_flatfield && e->i0[i].source == I0_OF_PROFILE);
		assert_true(open_field_is_uniform(&e->i0[i].open));
	}
	assert_string_equal(exam_used_flatfield(e), e->flatfield_digest);
	assert_non_null(strstr(e->warnings, "disagree: the flat field of the profile is used"));
	close_flat(e);
}

/* The sixth image is a flat field of 800, with the heel effect and what the case has. */
enum shape { NOTHING, SHADOW, BREAST, BOTH, ROUND, CORNERS, TILES, PADDLE, THIN_BREAST, HALF_PLATE, SPOT };
static struct {
	bool heel;
	enum shape shape;
} flat_shows;

/* Return the transmission at a place, 0 to 1 along each side; y begins at the chest wall. */
static double transmission(enum shape shape, double x, double y)
{
	bool breast = (x - 0.5) * (x - 0.5) + y * y < 0.1;

	switch (shape) {
	case SHADOW:
		return x < 0.15 || y > 0.85 ? 0.1 : 1;
	case BREAST:
		return breast ? 0.1 : 1;
	case BOTH:
		return x < 0.15 || y > 0.85 || breast ? 0.1 : 1;
	case ROUND:
		return hypot(x - 0.5, y - 0.5) > 0.48 ? 0.02 : 1;
	case CORNERS:
		return fabs(x - 0.5) + y > 1.2 ? 0.02 : 1;
	case TILES:
		return ((int)(x * 4) + (int)(y * 2)) % 2 ? 1 : 0.88;
	case PADDLE:
		return x > 0.1 && x < 0.9 && y < 0.7 ? 0.87 : 1;
	case THIN_BREAST:
		return breast ? 0.55 : 1;
	case HALF_PLATE:
		return x < 0.5 ? 0.6 : 1;
	case SPOT:
		return hypot(x - 0.5, y - 0.3) > 0.2 ? 0.02 : 1;
	default:
		return 1;
	}
}

static void pixels_of_flat(int view, uint16_t values[ROWS * COLUMNS])
{
	if (view < N_VIEWS) {
		fixture_pixels(view, values);
		return;
	}
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++) {
			double heel = flat_shows.heel ? 1 - 0.45 * i / ROWS : 1;

			values[i * COLUMNS + j] =
				(uint16_t)(800 * heel * transmission(flat_shows.shape, (i + 0.5) / ROWS, (j + 0.5) / COLUMNS));
		}
}

TEST(test_flat_shows)
{
	static const struct {
		enum shape shape;
		const char *says; /* NULL: nothing */
	} cases[] = {{NOTHING, NULL},
		     {SHADOW, NULL},
		     {BREAST, "shows an object: "},
		     {BOTH, "shows an object: "},
		     {ROUND, NULL},
		     {CORNERS, NULL},
		     {TILES, NULL},
		     {PADDLE, NULL},
		     {THIN_BREAST, "is not smooth: "},
		     {HALF_PLATE, "is not smooth: "},
		     {SPOT, "% of the image only"}};

	for (size_t k = 0; k < 2 * sizeof(cases) / sizeof(cases[0]); k++) {
		struct exam *e = NULL;
		struct err err = {0};
		const char *says = cases[k / 2].says, *said;

		flat_shows.heel = k % 2;
		flat_shows.shape = cases[k / 2].shape;
		flat_pixels = pixels_of_flat;
		assert_int_equal(open_flat("i0_mode = \"flatfield\";", EDITS(FLAT), &e, &err), 0);
		flat_pixels = NULL;
		said = strstr(e->warnings, "flat field of the profile 'flat' ");
		if ((said != NULL) != (says != NULL) || (says && !strstr(said, says)))
			fail_msg("case %zu: '%s'", k, e->warnings);
		close_flat(e);
	}
}

#define FLAT_SCALED "i0_mode = \"flatfield\"; scale_by_exposure = true;"
#define UAS(text)                                                                                                                \
	{                                                                                                                        \
		-1, TAG_EXPOSURE_IN_UAS, text                                                                                    \
	}

/* The exposures of projections and flat field are from one attribute, and not of mixed units. */
TEST(test_flat_exposure)
{
	struct exam *e = NULL;
	struct err err = {0};

	assert_int_equal(open_flat(FLAT_SCALED, EDITS(FLAT, UAS("8000"), {N_VIEWS, TAG_EXPOSURE_IN_UAS, "4000"}), &e, &err), 0);
	assert_true(e->flatfield_scaled && e->views[1].exposure == 2 && !strstr(e->warnings, "exposure"));
	close_flat(e);
	/* the flat field has another attribute only */
	assert_int_equal(open_flat(FLAT_SCALED,
				   EDITS(FLAT, UAS("8000"), {N_VIEWS, TAG_EXPOSURE_IN_UAS, NULL}, {N_VIEWS, TAG_EXPOSURE, "4"}),
				   &e, &err),
			 0);
	assert_true(!e->flatfield_scaled && e->views[1].exposure == 1);
	assert_non_null(strstr(e->warnings, "no exposure (0018,1153)"));
	close_flat(e);
	e = NULL;
	expect_refusal(open_flat(FLAT_SCALED, EDITS(FLAT, UAS("8000"), {N_VIEWS, TAG_EXPOSURE_IN_UAS, "8"}), &e, &err), EBADMSG,
		       &err, e, PARTS("(0018,1153)", "units are mixed"));
	close_flat(e);
}

#define FLAT_WINDOW "i0_mode = \"flatfield\"; elements_x = 30; elements_y = 50;"
#define ORIGIN(image, text)                                                                                                      \
	{                                                                                                                        \
		image, TAG_FIELD_OF_VIEW_ORIGIN, text                                                                            \
	}

/* The flat field shows the same part of the detector as the projections, to one bin. */
TEST(test_flat_window)
{
	struct exam *e = NULL;
	struct err err = {0};

	assert_int_equal(open_flat(FLAT_WINDOW, EDITS(FLAT, ORIGIN(-1, "4\\3"), ORIGIN(N_VIEWS, "5\\3")), &e, &err), 0);
	close_flat(e);
	for (int way = 0; way < 3; way++) {
		e = NULL;
		expect_refusal(open_flat(FLAT_WINDOW,
					 EDITS(FLAT, ORIGIN(-1, "4\\3"),
					       ORIGIN(N_VIEWS, way == 0	  ? "4\\5"
							       : way == 1 ? "6\\3"
									  : NULL)),
					 &e, &err),
			       EBADMSG, &err, e, PARTS("flat field of the profile 'flat'", "(0018,7030)"));
		close_flat(e);
	}
}

TESTS_SETUP(fixture_start, fixture_stop);
