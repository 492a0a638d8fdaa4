/* SPDX-License-Identifier: Apache-2.0 */
/* Test cases that are accepted: order, angles, orientation, intensity, flat field. */
#include "tests/node/tomo/exam_edits.h"
#include "tests/test.h"

TEST(test_series)
{
	/* angles in another order than file names and instance numbers */
	struct exam *e = exam_of(EDITS({0, TAG_POSITIONER_PRIMARY_ANGLE, "3.5"}, {3, TAG_POSITIONER_PRIMARY_ANGLE, "-11.25"}));
	static const int files[] = {3, 1, 2, 0, 4};
	static const double angles[] = {-11.25, -5, 0, 3.5, 10};

	assert_int_equal(e->source, EXAM_MG_SERIES);
	assert_string_equal(e->profile->name, "bench");
	assert_int_equal(e->n_views, N_VIEWS);
	for (int i = 0; i < N_VIEWS; i++) {
		double a = angles[i] * M_PI / 180;

		assert_int_equal(e->views[i].file, files[i]);
		assert_true(fabs(e->views[i].angle - angles[i]) < 1e-9);
		assert_true(fabs(e->scan->views[i].src[1] - 600 * sin(a)) < 1e-6);
		assert_true(fabs(e->scan->views[i].src[2] - (40 + 600 * cos(a))) < 1e-6);
	}
	assert_int_equal(e->scan->n_u, COLUMNS);
	assert_int_equal(e->scan->n_v, ROWS);
	assert_true(e->scan->h[0] == 1 && e->scan->lo[0] == 0 && e->scan->lo[1] == -ROWS / 2.0);
	assert_true(e->thickness == 12 && e->support == 20);
	assert_true(e->laterality == 'L' && !strcmp(e->view, "CC") && e->gantry == 0);
}

/* The same twice, a view that is no term, and a thickness that is none. */
TEST(test_agreement)
{
	struct exam *e;

	exam_of(EDITS({-1, TAG_LATERALITY, "L"}, {1, TAG_VIEW_POSITION, "cc"}, {2, TAG_VIEW_POSITION, "ANY"}));
	e = exam_of(EDITS({-1, TAG_BODY_PART_THICKNESS, "12"}));
	assert_null(strstr(e->warnings, "is it in cm?"));
	e = exam_of(EDITS({-1, TAG_BODY_PART_THICKNESS, "11.9"}));
	assert_non_null(strstr(e->warnings, "11.9 mm, less than any compressed breast has: is it in cm?"));
	exam_of(EDITS({1, TAG_BODY_PART_THICKNESS, "12.9"})); /* measured for each projection */
}

/* A pause within the sweep: shorter than what proves two sweeps, and no warning without one. */
TEST(test_pause)
{
	struct exam *e = exam_of(
		EDITS({-1, TAG_CONTENT_TIME, "101500"}, {3, TAG_CONTENT_TIME, "101530"}, {4, TAG_CONTENT_TIME, "101530"}));

	assert_non_null(strstr(e->warnings, "Content Time (0008,0033) has a pause of 30 s, after 3 of 5 projections"));
	e = exam_of(EDITS({-1, TAG_CONTENT_TIME, "101500"}, {3, TAG_CONTENT_TIME, "101510"}, {4, TAG_CONTENT_TIME, "101510"}));
	assert_null(strstr(e->warnings, "pause"));
	e = exam_of(
		EDITS({-1, TAG_COMPRESSION_FORCE, "100"}, {1, TAG_COMPRESSION_FORCE, "80"}, {3, TAG_COMPRESSION_FORCE, "80"}));
	assert_non_null(strstr(e->warnings,
			       "Compression Force (0018,11A2): 3 have 100, 2 have 80; no projection has a value between these"));
}

/* What each projection has for itself, what one lacks, and a tube voltage that is measured, are no other exposure. */
TEST(test_one_exposure)
{
	exam_of(EDITS({0, TAG_IRRADIATION_EVENT_UID, "1.2.1"}, {1, TAG_IRRADIATION_EVENT_UID, "1.2.2"},
		      {2, TAG_IRRADIATION_EVENT_UID, "1.2.3"}, {3, TAG_IRRADIATION_EVENT_UID, "1.2.4"},
		      {4, TAG_IRRADIATION_EVENT_UID, "1.2.5"}));
	exam_of(EDITS({0, TAG_ACQUISITION_NUMBER, "7"}, {1, TAG_ACQUISITION_NUMBER, "7"}));
	exam_of(EDITS({-1, TAG_IMAGE_TYPE, "ORIGINAL\\PRIMARY\\TOMO_PROJ\\LEFT"},
		      {2, TAG_IMAGE_TYPE, "DERIVED\\PRIMARY\\TOMO_PROJ\\LEFT"}));
	exam_of(EDITS({-1, TAG_KVP, "28"}, {3, TAG_KVP, "28.9"}));
	exam_of(EDITS({0, TAG_ACQUISITION_TIME, "101500"}, {1, TAG_ACQUISITION_TIME, "101512"},
		      {2, TAG_ACQUISITION_TIME, "101524"}, {3, TAG_ACQUISITION_TIME, "101536"}));
	exam_of(EDITS({-1, TAG_COMPRESSION_FORCE, "100"}, {2, TAG_COMPRESSION_FORCE, "93.5"}));
}

/* Three of five projections are refused unless as_is is true; one projection always is. */
TEST(test_as_is)
{
	struct exam *e = NULL;
	struct err err = {0};
	char names[3][256];
	const char *paths[3];

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	for (int i = 0; i < 3; i++) {
		snprintf(names[i], sizeof(names[i]), "%s/%d.dcm", fixture_folder, i + 1);
		paths[i] = names[i];
	}
	assert_int_equal(exam_open(paths, 3, false, NULL, fixture_config, &e, &err), -EBADMSG);
	assert_int_equal(exam_open(paths, 1, true, NULL, fixture_config, &e, &err), -EBADMSG);
	assert_null(e);
	assert_done(exam_open(paths, 3, true, NULL, fixture_config, &e, &err), &err);
	test_later(give_back_exam_close, e);
	assert_int_equal(e->n_views, 3);
	assert_int_equal(e->announced, N_VIEWS);
	assert_true(e->views[0].angle == -5 && e->views[2].angle == 5);
}

TEST(test_projection_object)
{
	struct exam *e = NULL;
	struct err err = {0};

	fixture_write_bp(NULL);
	assert_done(fixture_open(1, &e, &err), &err);
	assert_int_equal(e->source, EXAM_BREAST_PROJECTION);
	assert_int_equal(e->n_views, N_VIEWS);
	for (int i = 0; i < N_VIEWS; i++) { /* a = Ab1 - As1, docs/geometry.md */
		assert_true(fabs(e->views[i].angle - (-10 + 5 * i)) < 1e-9);
		assert_int_equal(e->views[i].frame, i);
	}
	assert_true(e->laterality == 'R' && !strcmp(e->view, "MLO"));
	assert_true(fabs(e->gantry - 50) < 1e-9 && e->gantry_recorded);
	/* right MLO: the tube is superior-medial, and medial is to the left of a right breast */
	assert_true(fabs(e->axis[2][0] - sin(50 * M_PI / 180)) < 1e-12 && fabs(e->axis[2][2] - cos(50 * M_PI / 180)) < 1e-12);
	assert_true(e->columns_toward_chest && !e->rows_toward_minus_y);
}

static void no_isocenter(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	(void)root;
	(void)shared;
	for (int i = 0; i < N_VIEWS; i++) {
		put_number(dicom_item_at(frames[i], TAG_ISOCENTER_REFERENCE_SYSTEM_SEQUENCE, 0),
			   TAG_X_RAY_SOURCE_ISOCENTER_PRIMARY_ANGLE, 0);
		assert_true(dicom_put_empty(dicom_item_at(frames[i], TAG_ISOCENTER_REFERENCE_SYSTEM_SEQUENCE, 0),
					    TAG_X_RAY_SOURCE_ISOCENTER_PRIMARY_ANGLE, NULL) >= 0);
		put_number(add(frames[i], TAG_POSITIONER_POSITION_SEQUENCE), TAG_POSITIONER_PRIMARY_ANGLE, 10 - 5 * i);
	}
}

TEST(test_projection_positioner)
{
	struct exam *e = NULL;
	struct err err = {0};

	fixture_write_bp(no_isocenter);
	assert_done(fixture_open(1, &e, &err), &err);
	for (int i = 0; i < N_VIEWS; i++)
		assert_int_equal(e->views[i].frame, N_VIEWS - 1 - i); /* sorted by the positioner's angle */
}

/* Directions from the patient's axes alone: +L = +x, +P = +y, +H = +z. */
TEST(test_axes)
{
	static const struct orientation_case cases[] = {
		{"L", "R-10242", "A\\R", false, true, 1, 0},   {"R", "R-10242", "P\\L", true, false, 1, 0},
		{"L", "R-10226", "A\\F", false, true, 1, 1},   {"L", "R-10226", "A\\FR", false, true, 1, 1},
		{"R", "R-10226", "P\\FL", true, false, 1, -1}, {"R", "R-10226", "P\\F", true, false, 1, -1},
		{"L", "R-10242", "A\\L", false, false, 1, 0},  {"R", "R-10242", "A\\R", false, true, 1, 0},
		{"R", "R-10226", "P\\H", true, true, 1, -1},   {"L", "399162004", "P\\L", true, false, 1, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exam *e = NULL;
		struct err err = {0};

		fixture_write_mg(&(struct fixture_mg){.n = 2, .change = put_orientation_case, .ctx = &cases[i]});
		if (fixture_open(2, &e, &err) < 0)
			fail_msg("%s: %s", cases[i].orientation, err.msg);
		assert_int_equal(e->columns_toward_chest, cases[i].columns_toward_chest);
		assert_int_equal(e->rows_toward_minus_y, cases[i].rows_toward_minus_y);
		assert_true(e->axis[0][0] == 0 && e->axis[0][1] == -1 &&
			    e->axis[0][2] == 0); /* away from the chest wall: anterior */
		assert_true(e->axis[1][0] * cases[i].y_left > 0);
		if (cases[i].y_head != 0)
			assert_true(e->axis[1][2] * cases[i].y_head > 0);
		for (int c = 0; c < 3; c++) { /* right-handed: z = x cross y */
			const double *x = e->axis[0], *y = e->axis[1];
			int a = (c + 1) % 3, b = (c + 2) % 3;

			assert_true(fabs(x[a] * y[b] - x[b] * y[a] - e->axis[2][c]) < 1e-12);
		}
		assert_true(e->axis[2][2] > 0); /* the tube is above */
	}
}

/* Where the tube is in the views of CID 4014, of the left breast: the beam goes from there to the other side. Medial of a left
 * breast is toward the right, -x in LPS. */
TEST(test_views)
{
	static const struct {
		struct orientation_case orientation;
		const char *name;
		double tube[3];
	} cases[] = {
		{{"L", "399260004", "A\\F", false, true, 0, 1}, "ML", {-1, 0, 0}},
		{{"R", "399260004", "P\\F", true, false, 0, -1}, "ML", {1, 0, 0}},
		{{"L", "399352003", "A\\F", false, false, 0, -1}, "LM", {1, 0, 0}},
		{{"R", "R-10228", "A\\F", false, true, 0, 1}, "LM", {-1, 0, 0}},
		{{"L", "399099002", "A\\F", false, false, -1, -1}, "LMO", {M_SQRT1_2, 0, -M_SQRT1_2}},
		{{"L", "399188001", "A\\F", false, false, 1, -1}, "SIO", {M_SQRT1_2, 0, M_SQRT1_2}},
		{{"L", "441555000", "A\\H", false, false, -1, 1}, "ISO", {-M_SQRT1_2, 0, -M_SQRT1_2}},
		{{"L", "399196006", "A\\R", false, false, -1, 0}, "FB", {0, 0, -1}},
		{{"L", "399192008", "A\\R", false, true, 1, 0}, "XCCL", {0, 0, 1}},
		{{"R", "R-1024B", "A\\R", false, true, 1, 0}, "XCCM", {0, 0, 1}},
		{{"R", "R-102CF", "A\\R", false, true, 1, 0}, "XCC", {0, 0, 1}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct orientation_case *o = &cases[i].orientation;
		struct exam *e = NULL;
		struct err err = {0};

		fixture_write_mg(&(struct fixture_mg){.n = 2, .change = put_orientation_case, .ctx = o});
		if (fixture_open(2, &e, &err) < 0)
			fail_msg("%s: %s", cases[i].name, err.msg);
		assert_string_equal(e->view, cases[i].name);
		assert_int_equal(e->rows_toward_minus_y, o->rows_toward_minus_y);
		for (int c = 0; c < 3; c++)
			assert_true(fabs(e->axis[2][c] - cases[i].tube[c]) < 1e-12);
		assert_true(o->y_left == 0 || e->axis[1][0] * o->y_left > 0);
		assert_true(o->y_head == 0 || e->axis[1][2] * o->y_head > 0);
	}
}

/* Old objects have the abbreviation alone; one with a modifier is no contradiction of its view. */
TEST(test_view_position)
{
	struct exam *e = exam_of(EDITS({-1, TAG_VIEW_POSITION, "RL"})); /* rolled, and CC by its code */

	assert_string_equal(e->view, "CC");
	assert_string_equal(exam_view_kind("AT")->sct, "399368009");
	assert_string_equal(exam_view_kind("AT")->modifier, "399011000");
	assert_null(exam_view_kind("SPECIM"));
}

/* Read a view, and prepare it with the I0 that it shows alone. */
static int read_view(const struct exam *e, int view, uint16_t *raw, struct prep *ret_prep, struct err *err)
{
	struct exam_i0 alone;
	struct view_air air;
	int rc = exam_read_view(e, view, raw, err);

	if (rc == 0 && !e->prep.is_log)
		rc = exam_measure_view(e, view, raw, &air, &alone, err);
	if (rc == 0)
		*ret_prep = exam_view_prep(e, e->prep.is_log ? NULL : &alone);
	return rc;
}

/* The value of stored row r, column c is at the position defined by the directions, also if a few rows are read at a time. */
TEST(test_read_view)
{
	static const struct {
		const char *orientation;
		bool mirror_u, mirror_v;
	} cases[] = {{"A\\L", false, false}, {"A\\R", false, true}, {"P\\L", true, false}, {"P\\R", true, true}};
	uint16_t raw[ROWS * COLUMNS];

	for (size_t i = 0; i < 4; i++) {
		struct exam *e = exam_of(EDITS({-1, TAG_PATIENT_ORIENTATION, cases[i].orientation}));
		struct err err = {0};
		struct prep prep;

		for (int view = 0; view < N_VIEWS; view++) {
			e->band = view == 1 ? 6 * COLUMNS : view == 2 ? 1 : e->band; /* 7 rows of 32; 1 row */
			assert_done(read_view(e, view, raw, &prep, &err), &err);
			for (int v = 0; v < ROWS; v++)
				for (int u = 0; u < COLUMNS; u++) {
					int row = cases[i].mirror_v ? ROWS - 1 - v : v,
					    column = cases[i].mirror_u ? COLUMNS - 1 - u : u;

					assert_int_equal(raw[v * COLUMNS + u], 100 + 20 * row + column + view);
				}
			assert_true(prep.i0 == 1000 && prep.offset == 0 && !prep.is_log && !prep.inverted && !prep.has_padding);
			assert_true(prep.max_value == 4095 && prep.saturation == 0);
		}
	}
}

TEST(test_intensity)
{
	uint16_t raw[ROWS * COLUMNS];
	struct err err = {0};
	struct prep prep;
	struct exam *e;

	/* exposure scaling in uAs, angle in (0018,1531) with sign and offset, sign -1, padding with a range limit */
	e = exam_of(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Scaled"}, {-1, TAG_EXPOSURE_IN_UAS, "4000"},
			  {2, TAG_EXPOSURE_IN_UAS, "9000"}, {0, TAG_DETECTOR_SECONDARY_ANGLE, "-8"},
			  {1, TAG_DETECTOR_SECONDARY_ANGLE, "-4"}, {2, TAG_DETECTOR_SECONDARY_ANGLE, "0"},
			  {3, TAG_DETECTOR_SECONDARY_ANGLE, "4"}, {4, TAG_DETECTOR_SECONDARY_ANGLE, "8"},
			  {-1, TAG_POSITIONER_PRIMARY_ANGLE, "0"}, {-1, TAG_PIXEL_INTENSITY_RELATIONSHIP_SIGN, "-1"},
			  {-1, TAG_PIXEL_PADDING_VALUE, "4095"}, {-1, TAG_PIXEL_PADDING_RANGE_LIMIT, "4090"},
			  {-1, TAG_PHOTOMETRIC_INTERPRETATION, "MONOCHROME2"}));
	assert_true(fabs(e->views[0].angle - (-8 + 1.5)) < 1e-9 && e->views[0].file == 4); /* -1 * 8 + 1.5 */
	assert_int_equal(read_view(e, 2, raw, &prep, &err), 0);
	assert_true(prep.inverted && prep.has_padding && prep.padding_lo == 4090 && prep.padding_hi == 4095);
	assert_true(fabs(prep.i0 - (4095 - 1050 - 50) * 9000.0 / 5000) <
		    1e-6); /* mean 5000 uAs; a stored 1050 of inverted values */
	assert_int_equal(read_view(e, 0, raw, &prep, &err), 0);
	assert_true(fabs(prep.i0 - (4095 - 1050 - 50) * 4000.0 / 5000) < 1e-6);

	/* the angle as seen from the detector, and an axis that is not above the detector's middle: the source is on the line of
	 * that angle, at the axis' distance */
	e = exam_of(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Seen"}));
	for (int i = 0; i < N_VIEWS; i++) {
		const double *source = e->scan->views[i].src;

		assert_true(fabs(atan2(source[1] - 2, source[2]) * 180 / M_PI - (e->views[i].stated + 0.5)) < 1e-9);
		assert_true(fabs(hypot(source[1] - 2, source[2] - 40) - 600) < 1e-9);
		assert_true(e->views[i].by_profile);
	}

	/* logarithmic values, and the chest wall from the profile because (0020,0020) is missing */
	e = exam_of(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Log"}, {-1, TAG_PIXEL_INTENSITY_RELATIONSHIP, "LOG"},
			  {-1, TAG_PATIENT_ORIENTATION, NULL}, {-1, TAG_PIXEL_PADDING_VALUE, "3"},
			  {-1, TAG_PIXEL_PADDING_RANGE_LIMIT, "7"}));
	assert_true(e->columns_toward_chest && !e->rows_toward_minus_y);
	assert_int_equal(read_view(e, 2, raw, &prep, &err), 0);
	assert_true(prep.is_log && prep.log_zero == 4000 && prep.log_scale == 0.001);
	assert_true(prep.has_padding && prep.padding_lo == 3 && prep.padding_hi == 7);

	/* padding is a number as its VR says, SS here: a value that the unsigned pixels cannot have marks none of them */
	e = exam_of(EDITS({-1, TAG_PIXEL_REPRESENTATION, "1"}, {-1, TAG_PIXEL_PADDING_VALUE, "-2000"},
			  {-1, TAG_PIXEL_REPRESENTATION, "0"}));
	assert_false(e->prep.has_padding);
	assert_non_null(strstr(
		e->warnings, "Pixel Padding Value (0028,0120) is -2000, which the pixels, of 12 bits and unsigned, cannot have"));
	e = exam_of(EDITS({-1, TAG_PIXEL_PADDING_VALUE, "4096"}));
	assert_false(e->prep.has_padding);
	assert_non_null(strstr(e->warnings, "(0028,0120) is 4096"));
	e = exam_of(EDITS({-1, TAG_PIXEL_REPRESENTATION, "1"}, {-1, TAG_PIXEL_PADDING_VALUE, "-2000"},
			  {-1, TAG_PIXEL_PADDING_RANGE_LIMIT, "12"}, {-1, TAG_PIXEL_REPRESENTATION, "0"}));
	assert_true(e->prep.has_padding && e->prep.padding_lo == 0 && e->prep.padding_hi == 12);
	assert_null(strstr(e->warnings, "(0028,0120)"));
	e = exam_of(EDITS({-1, TAG_PIXEL_PADDING_VALUE, "4095"}, {-1, TAG_PIXEL_PADDING_RANGE_LIMIT, "65535"}));
	assert_true(e->prep.has_padding && e->prep.padding_lo == 4095 && e->prep.padding_hi == 4095);

	e = exam_of(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Top"}, {3, TAG_LARGEST_IMAGE_PIXEL_VALUE, "3000"}));
	assert_int_equal(read_view(e, 0, raw, &prep, &err), 0);
	assert_true(prep.i0 == 4095 && prep.saturation == 0);
	assert_int_equal(read_view(e, 3, raw, &prep, &err), 0);
	assert_true(prep.i0 == 3000);

	/* the largest value of an image depends on its exposure, the top of the range does not */
	e = exam_of(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "TopScaled"}, {-1, TAG_EXPOSURE_IN_UAS, "4000"},
			  {3, TAG_EXPOSURE_IN_UAS, "9000"}, {3, TAG_LARGEST_IMAGE_PIXEL_VALUE, "3000"}));
	assert_int_equal(read_view(e, 0, raw, &prep, &err), 0);
	assert_true(fabs(prep.i0 - 4095 * 4000.0 / 5000) < 1e-6);
	assert_int_equal(read_view(e, 3, raw, &prep, &err), 0);
	assert_true(prep.i0 == 3000);

	e = exam_of(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Part"}));
	assert_int_equal(read_view(e, 0, raw, &prep, &err), 0);
	assert_true(prep.i0 > 600 && prep.i0 < 743); /* 90 % of 100 .. 743 */
}

/* A flat field is mirrored according to its own orientation, and replaces I0 bin by bin. */
TEST(test_flatfield)
{
	static const struct {
		const char *orientation;
		bool mirror_columns, mirror_rows;
	} flips[] = {{"A\\L", false, false}, {"A\\R", false, true}, {"P\\L", true, false}, {"P\\R", true, true}};
	static const struct edit flat[] = {{-1, TAG_MANUFACTURER_MODEL_NAME, "Flat"}, {0}};
	uint16_t values[ROWS * COLUMNS], raw[ROWS * COLUMNS];
	struct config *fixed = fixture_config;
	struct err err = {0};
	char conf[1024], path[256], before[DIGEST_SIZE];
	double mean = 0;
	struct exam *e = NULL;
	struct prep prep;

	snprintf(path, sizeof(path), "%s/5.dcm", fixture_folder);
	snprintf(conf, sizeof(conf),
		 "profiles = ( { name = \"flat\"; manufacturer = \"Bench*\"; model = \"Flat\"; axis_height = 40.0;"
		 "  source_axis = 600.0; support = 20.0; pitch = 1.0; i0_mode = \"flatfield\"; flatfield = \"%s\"; offset = "
		 "20.0; } );",
		 path);
	assert_int_equal(config_parse(conf, "flat.conf", NULL, NULL, &fixture_config, &err), 0);
	fixture_pixels(N_VIEWS, values); /* the sixth image is the flat field */
	for (size_t i = 0; i < ROWS * COLUMNS; i++)
		mean += (values[i] - 20.0) / (ROWS * COLUMNS);
	for (size_t k = 0; k < sizeof(flips) / sizeof(flips[0]); k++) {
		struct edit edits[] = {flat[0],
				       {N_VIEWS, TAG_PATIENT_ORIENTATION, flips[k].orientation},
				       {-1, TAG_IMAGES_IN_ACQUISITION, "5"},
				       {0}};

		fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS + 1, .change = edit, .ctx = edits});
		assert_done(fixture_open(N_VIEWS, &e, &err), &err);
		assert_int_equal(read_view(e, 1, raw, &prep, &err), 0);
		assert_true(fabs(prep.i0 - mean) < 1e-9 * mean);
		assert_ptr_equal(prep.flatfield, e->flatfield);
		assert_string_equal(exam_used_flatfield(e), ""); /* nothing is decided */
		assert_int_equal(strlen(e->flatfield_digest), DIGEST_SIZE - 1);
		if (k > 0)
			assert_string_not_equal(e->flatfield_digest, before);
		memcpy(before, e->flatfield_digest, sizeof(before));
		for (int v = 0; v < ROWS; v++)
			for (int u = 0; u < COLUMNS; u++) {
				int row = flips[k].mirror_rows ? ROWS - 1 - v : v,
				    column = flips[k].mirror_columns ? COLUMNS - 1 - u : u;
				double want = values[row * COLUMNS + column] - 20.0;

				assert_true(fabs(prep.i0 * (double)prep.flatfield[v * COLUMNS + u] - want) < 1e-4 * want);
			}
		e = NULL;
	}
	fixture_write_mg(&(struct fixture_mg){
		.n = N_VIEWS + 1,
		.change = edit,
		.ctx = (const struct edit[]){
			flat[0], {N_VIEWS, TAG_PATIENT_ORIENTATION, NULL}, {-1, TAG_IMAGES_IN_ACQUISITION, "5"}, {0}}});
	expect_refusal(fixture_open(N_VIEWS, &e, &err), EBADMSG, &err, e,
		       PARTS("flat field of the profile 'flat'", "no Patient Orientation"));
	fixture_write_mg(&(struct fixture_mg){
		.n = N_VIEWS + 1,
		.change = edit,
		.ctx = (const struct edit[]){
			flat[0], {N_VIEWS, TAG_PIXEL_REPRESENTATION, "1"}, {-1, TAG_IMAGES_IN_ACQUISITION, "5"}, {0}}});
	expect_refusal(fixture_open(N_VIEWS, &e, &err), EBADMSG, &err, e, PARTS("flat field of the profile 'flat'", "signed"));
	unlink(path);
	expect_refusal(fixture_open(N_VIEWS, &e, &err), ENOENT, &err, e,
		       PARTS("flat field of the profile 'flat'", "No such file"));
	config_free(fixture_config);
	fixture_config = fixed;
}

TESTS_SETUP(fixture_start, fixture_stop);
