/* Cases that are read: order, angles, orientation, intensity. Cases that are not: each with the sentence that names the cause. */
#include "tests/node/exam_fixture.h"

#include <errno.h>
#include <math.h>

/* One attribute of one image (or of all: image -1) set to a text, a number, or nothing. */
struct edit {
	int image;
	uint32_t tag;
	const char *text; /* NULL: empty */
};

static void edit(struct dicom_item *root, int i, const void *ctx)
{
	for (const struct edit *e = ctx; e->tag; e++) {
		struct err err = {0};

		if (e->image >= 0 && e->image != i)
			continue;
		if (!e->text) {
			assert_true(dicom_put_empty(root, e->tag, &err) >= 0);
		} else if (dicom_put_text(root, e->tag, e->text, &err) < 0) {
			if (dicom_put_double(root, e->tag, atof(e->text), &err) < 0)
				assert_true(dicom_put_int(root, e->tag, atol(e->text), &err) >= 0);
		}
	}
}

static struct exam *opened(const struct edit *edits)
{
	struct exam *exam = NULL;
	struct err err = {0};

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS, .change = edits ? edit : NULL, .ctx = edits});
	if (fixture_open(N_VIEWS, &exam, &err) < 0)
		fail_msg("refused: %s", err.msg);
	return exam;
}

static void expect_refusal(int rc, int code, const struct err *err, struct exam *exam, const char *const *parts)
{
	if (rc != -code || err->code != code)
		fail_msg("%d and not %d: %s", rc, -code, rc < 0 ? err->msg : "accepted");
	assert_null(exam);
	for (; *parts; parts++)
		if (!strstr(err->msg, *parts))
			fail_msg("'%s' does not hold '%s'", err->msg, *parts);
	assert_null(strstr(err->msg, "ller")); /* no patient's name */
}

#define PARTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void refused_n(int n, const struct edit *edits, int code, const char *const *parts)
{
	struct exam *exam = NULL;
	struct err err = {0};

	fixture_write_mg(&(struct fixture_mg){.n = n, .change = edit, .ctx = edits});
	expect_refusal(fixture_open(n, &exam, &err), code, &err, exam, parts);
}

static void refused(const struct edit *edits, int code, const char *const *parts)
{
	refused_n(N_VIEWS, edits, code, parts);
}

#define EDITS(...) ((const struct edit[]){__VA_ARGS__, {0}})

static void test_series(void **state)
{
	/* angles out of order against names and instance numbers */
	struct exam *e = opened(EDITS({0, TAG_POSITIONER_PRIMARY_ANGLE, "3.5"}, {3, TAG_POSITIONER_PRIMARY_ANGLE, "-11.25"}));
	static const int files[] = {3, 1, 2, 0, 4};
	static const double angles[] = {-11.25, -5, 0, 3.5, 10};

	(void)state;
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
	exam_close(e);
}

static void test_projection_object(void **state)
{
	struct exam *e = NULL;
	struct err err = {0};

	(void)state;
	fixture_write_bp(NULL);
	if (fixture_open(1, &e, &err) < 0)
		fail_msg("%s", err.msg);
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
	exam_close(e);
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

static void test_projection_positioner(void **state)
{
	struct exam *e = NULL;
	struct err err = {0};

	(void)state;
	fixture_write_bp(no_isocenter);
	if (fixture_open(1, &e, &err) < 0)
		fail_msg("%s", err.msg);
	for (int i = 0; i < N_VIEWS; i++)
		assert_int_equal(e->views[i].frame, N_VIEWS - 1 - i); /* sorted by the positioner's angle */
	exam_close(e);
}

struct lie {
	const char *laterality, *view_code, *orientation;
	bool columns_toward_chest, rows_toward_minus_y;
	double y_left, y_head; /* sign of the scan's y along L and H; 0: not looked at */
};

static void lie_so(struct dicom_item *root, int i, const void *ctx)
{
	struct dicom_item *view = dicom_item_at(root, TAG_VIEW_CODE_SEQUENCE, 0);
	const struct lie *lie = ctx;

	(void)i;
	put(root, TAG_IMAGE_LATERALITY, lie->laterality);
	put(root, TAG_PATIENT_ORIENTATION, lie->orientation);
	put(view, TAG_CODE_VALUE, lie->view_code);
	put(view, TAG_CODING_SCHEME_DESIGNATOR, lie->view_code[0] == 'R' ? "SRT" : "SCT");
}

/* Directions from the patient's axes alone: +L = +x, +P = +y, +H = +z. */
static void test_axes(void **state)
{
	static const struct lie cases[] = {
		{"L", "R-10242", "A\\R", false, true, 1, 0},   {"R", "R-10242", "P\\L", true, false, 1, 0},
		{"L", "R-10226", "A\\F", false, true, 1, 1},   {"L", "R-10226", "A\\FR", false, true, 1, 1},
		{"R", "R-10226", "P\\FL", true, false, 1, -1}, {"R", "R-10226", "P\\F", true, false, 1, -1},
		{"L", "R-10242", "A\\L", false, false, 1, 0},  {"R", "R-10242", "A\\R", false, true, 1, 0},
		{"R", "R-10226", "P\\H", true, true, 1, -1},   {"L", "399162004", "P\\L", true, false, 1, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exam *e = NULL;
		struct err err = {0};

		fixture_write_mg(&(struct fixture_mg){.n = 2, .change = lie_so, .ctx = &cases[i]});
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
		exam_close(e);
	}
}

/* Stored row r, column c lands where the directions say. */
static void test_read_view(void **state)
{
	static const struct {
		const char *orientation;
		bool mirror_u, mirror_v;
	} cases[] = {{"A\\L", false, false}, {"A\\R", false, true}, {"P\\L", true, false}, {"P\\R", true, true}};
	uint16_t raw[ROWS * COLUMNS];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct exam *e = opened(EDITS({-1, TAG_PATIENT_ORIENTATION, cases[i].orientation}));
		struct err err = {0};
		struct prep prep;

		for (int view = 0; view < N_VIEWS; view++) {
			if (exam_read_view(e, view, raw, &prep, &err) < 0)
				fail_msg("%s", err.msg);
			for (int v = 0; v < ROWS; v++)
				for (int u = 0; u < COLUMNS; u++) {
					int row = cases[i].mirror_v ? ROWS - 1 - v : v,
					    column = cases[i].mirror_u ? COLUMNS - 1 - u : u;

					assert_int_equal(raw[v * COLUMNS + u], 100 + 20 * row + column + view);
				}
			assert_true(prep.i0 == 1000 && prep.offset == 0 && !prep.is_log && !prep.inverted && !prep.has_padding);
			assert_true(prep.max_value == 4095 && prep.saturation == 0);
		}
		exam_close(e);
	}
}

static void test_intensity(void **state)
{
	uint16_t raw[ROWS * COLUMNS];
	struct err err = {0};
	struct prep prep;
	struct exam *e;

	(void)state;
	/* exposure scaling in uAs, angle in (0018,1531) with sign and offset, sign -1, padding with a range limit */
	e = opened(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Scaled"}, {-1, TAG_EXPOSURE_IN_UAS, "4000"},
			 {2, TAG_EXPOSURE_IN_UAS, "9000"}, {0, TAG_DETECTOR_SECONDARY_ANGLE, "-8"},
			 {1, TAG_DETECTOR_SECONDARY_ANGLE, "-4"}, {2, TAG_DETECTOR_SECONDARY_ANGLE, "0"},
			 {3, TAG_DETECTOR_SECONDARY_ANGLE, "4"}, {4, TAG_DETECTOR_SECONDARY_ANGLE, "8"},
			 {-1, TAG_POSITIONER_PRIMARY_ANGLE, "0"}, {-1, TAG_PIXEL_INTENSITY_RELATIONSHIP_SIGN, "-1"},
			 {-1, TAG_PIXEL_PADDING_VALUE, "4095"}, {-1, TAG_PIXEL_PADDING_RANGE_LIMIT, "4090"},
			 {-1, TAG_PHOTOMETRIC_INTERPRETATION, "MONOCHROME2"}));
	assert_true(fabs(e->views[0].angle - (-8 + 1.5)) < 1e-9 && e->views[0].file == 4); /* -1 * 8 + 1.5 */
	assert_int_equal(exam_read_view(e, 2, raw, &prep, &err), 0);
	assert_true(prep.inverted && prep.has_padding && prep.padding_lo == 4090 && prep.padding_hi == 4095);
	assert_true(fabs(prep.i0 - (4095 - 1050 - 50) * 9000.0 / 5000) <
		    1e-6); /* mean 5000 uAs; a stored 1050 of inverted values */
	assert_int_equal(exam_read_view(e, 0, raw, &prep, &err), 0);
	assert_true(fabs(prep.i0 - (4095 - 1050 - 50) * 4000.0 / 5000) < 1e-6);
	exam_close(e);

	/* logarithmic values, and the chest wall from the profile because (0020,0020) is missing */
	e = opened(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Log"}, {-1, TAG_PIXEL_INTENSITY_RELATIONSHIP, "LOG"},
			 {-1, TAG_PATIENT_ORIENTATION, NULL}));
	assert_true(e->columns_toward_chest && !e->rows_toward_minus_y);
	assert_int_equal(exam_read_view(e, 2, raw, &prep, &err), 0);
	assert_true(prep.is_log && prep.log_zero == 4000 && prep.log_scale == 0.001);
	exam_close(e);

	e = opened(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Top"}, {3, TAG_LARGEST_IMAGE_PIXEL_VALUE, "3000"}));
	assert_int_equal(exam_read_view(e, 0, raw, &prep, &err), 0);
	assert_true(prep.i0 == 4095 && prep.saturation == 0);
	assert_int_equal(exam_read_view(e, 3, raw, &prep, &err), 0);
	assert_true(prep.i0 == 3000);
	exam_close(e);

	/* the largest value of an image follows its exposure, the top of the range does not */
	e = opened(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "TopScaled"}, {-1, TAG_EXPOSURE_IN_UAS, "4000"},
			 {3, TAG_EXPOSURE_IN_UAS, "9000"}, {3, TAG_LARGEST_IMAGE_PIXEL_VALUE, "3000"}));
	assert_int_equal(exam_read_view(e, 0, raw, &prep, &err), 0);
	assert_true(fabs(prep.i0 - 4095 * 4000.0 / 5000) < 1e-6);
	assert_int_equal(exam_read_view(e, 3, raw, &prep, &err), 0);
	assert_true(prep.i0 == 3000);
	exam_close(e);

	e = opened(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Part"}));
	assert_int_equal(exam_read_view(e, 0, raw, &prep, &err), 0);
	assert_true(prep.i0 > 600 && prep.i0 < 743); /* 90 % of 100 .. 743 */
	exam_close(e);
}

static void test_series_refused(void **state)
{
	(void)state;
	refused_n(1, EDITS({0, TAG_IMAGES_IN_ACQUISITION, NULL}), EBADMSG, PARTS("1 projection", "at least 2"));
	refused(EDITS({3, TAG_POSITIONER_PRIMARY_ANGLE, "-5"}), EBADMSG, PARTS("same angle", "-5 degrees", "1.dcm", "3.dcm"));
	refused(EDITS({-1, TAG_POSITIONER_PRIMARY_ANGLE, "45"}), EBADMSG, PARTS("(0018,1510)", "same in all 5", "bench"));
	refused(EDITS({2, TAG_POSITIONER_PRIMARY_ANGLE, NULL}), EBADMSG, PARTS("2.dcm", "(0018,1510)", "missing"));
	refused(EDITS({2, TAG_POSITIONER_PRIMARY_ANGLE, "NaN"}), EBADMSG, PARTS("2.dcm", "(0018,1510)"));
	refused(EDITS({2, TAG_POSITIONER_PRIMARY_ANGLE, "170"}), EBADMSG, PARTS("2.dcm", "170 degrees", "out of range"));
	refused(EDITS({-1, TAG_IMAGES_IN_ACQUISITION, "25"}), EBADMSG, PARTS("5 projections", "(0020,1002)", "25"));
	refused(EDITS({-1, TAG_IMAGES_IN_ACQUISITION, NULL}, {-1, TAG_NUMBER_OF_TOMOSYNTHESIS_SOURCE_IMAGES, "4"}), EBADMSG,
		PARTS("5 projections", "(0018,1495)", "4"));
}

/* "A projection from another exam": the attribute, both values, the file. */
static void test_stranger_refused(void **state)
{
	(void)state;
	refused(EDITS({4, TAG_STUDY_INSTANCE_UID, "1.2.9"}), EBADMSG,
		PARTS("study (0020,000D)", "'1.2.9' in 4.dcm", "'1.2.3.1' in 0.dcm", "another exam"));
	refused(EDITS({2, TAG_SERIES_INSTANCE_UID, "1.2.9"}), EBADMSG, PARTS("series (0020,000E)", "2.dcm", "another exam"));
	refused(EDITS({2, TAG_FRAME_OF_REFERENCE_UID, "1.2.9"}), EBADMSG, PARTS("frame of reference (0020,0052)", "2.dcm"));
	refused(EDITS({3, TAG_IMAGE_LATERALITY, "R"}), EBADMSG, PARTS("laterality", "'R' in 3.dcm", "'L' in 0.dcm"));
	refused(EDITS({3, TAG_PATIENT_ORIENTATION, "P\\L"}), EBADMSG, PARTS("patient orientation (0020,0020)", "P\\L", "3.dcm"));
	refused(EDITS({1, TAG_BODY_PART_THICKNESS, "13"}), EBADMSG,
		PARTS("compressed thickness (0018,11A0)", "'13' in 1.dcm", "'12' in 0.dcm"));
	refused(EDITS({1, TAG_IMAGER_PIXEL_SPACING, "1\\2"}), EBADMSG, PARTS("pixel pitch (0018,1164)", "'2'", "1.dcm"));
	refused(EDITS({1, TAG_MANUFACTURER_MODEL_NAME, "Log"}), EBADMSG, PARTS("model (0008,1090)", "1.dcm"));
	refused(EDITS({1, TAG_PIXEL_REPRESENTATION, "1"}), EBADMSG, PARTS("pixel representation (0028,0103)", "'1' in 1.dcm"));
	refused(EDITS({4, TAG_SOP_INSTANCE_UID, "1.2.3.4.2"}), EBADMSG, PARTS("1.2.3.4.2", "1.dcm", "4.dcm"));
}

static void test_geometry_refused(void **state)
{
	(void)state;
	refused(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Other"}), ENOKEY,
		PARTS("no geometry profile", "'Bench Works'", "'Other'"));
	refused(EDITS({-1, TAG_IMAGER_PIXEL_SPACING, "0.8\\0.8"}), EBADMSG, PARTS("(0018,1164)", "0.8 mm", "bench", "1 mm"));
	refused(EDITS({-1, TAG_IMAGER_PIXEL_SPACING, "1\\1.5"}), EBADMSG, PARTS("(0018,1164)", "square"));
	refused(EDITS({-1, TAG_IMAGER_PIXEL_SPACING, NULL}), EBADMSG, PARTS("(0018,1164)", "missing"));
	refused(EDITS({-1, TAG_DISTANCE_SOURCE_TO_DETECTOR, "700"}), EBADMSG,
		PARTS("(0018,1110)", "700 mm", "640 mm", "tolerance 2"));
	refused(EDITS({-1, TAG_DISTANCE_SOURCE_TO_DETECTOR, "1e999"}), EBADMSG, PARTS("0018,1110"));
	refused(EDITS({-1, TAG_DISTANCE_SOURCE_TO_PATIENT, "700"}), EBADMSG, PARTS("(0018,1111)", "700 mm", "640 mm"));
	refused(EDITS({-1, TAG_BODY_PART_THICKNESS, NULL}), EBADMSG, PARTS("(0018,11A0)", "missing"));
	refused(EDITS({-1, TAG_BODY_PART_THICKNESS, "4.5"}), EBADMSG, PARTS("(0018,11A0)", "4.5 mm", "5 to 200"));
	refused(EDITS({-1, TAG_BODY_PART_THICKNESS, "NaN"}), EBADMSG, PARTS("0018,11A0"));
	refused(EDITS({-1, TAG_PATIENT_ORIENTATION, NULL}), EBADMSG, PARTS("(0020,0020)", "missing", "chest_wall"));
	refused(EDITS({-1, TAG_PATIENT_ORIENTATION, "L\\A"}), EBADMSG, PARTS("(0020,0020)", "L\\A"));
	refused(EDITS({-1, TAG_PATIENT_ORIENTATION, "A\\H"}), EBADMSG, PARTS("(0020,0020)", "rows", "H"));
	refused(EDITS({-1, TAG_IMAGE_LATERALITY, "B"}), EBADMSG, PARTS("laterality", "'B'"));
	refused(EDITS({-1, TAG_IMAGE_LATERALITY, NULL}), EBADMSG, PARTS("laterality"));
}

static void test_intensity_refused(void **state)
{
	(void)state;
	refused(EDITS({-1, TAG_PIXEL_INTENSITY_RELATIONSHIP, NULL}), EBADMSG, PARTS("(0028,1040)", "LIN or LOG"));
	refused(EDITS({-1, TAG_PIXEL_INTENSITY_RELATIONSHIP, "DISP"}), ENOTSUP, PARTS("(0028,1040)", "'DISP'"));
	refused(EDITS({-1, TAG_PIXEL_INTENSITY_RELATIONSHIP, "LOG"}), ENOTSUP, PARTS("logarithmic", "bench", "log_scale"));
	refused(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Log"}, {-1, TAG_PIXEL_INTENSITY_RELATIONSHIP, "LOG"},
		      {-1, TAG_PIXEL_INTENSITY_RELATIONSHIP_SIGN, "-1"}),
		EBADMSG, PARTS("(0028,1041)", "-1", "upside down"));
	refused(EDITS({2, TAG_LOSSY_IMAGE_COMPRESSION, "01"}), ENOTSUP, PARTS("2.dcm", "(0028,2110)"));
	refused(EDITS({-1, TAG_PIXEL_INTENSITY_RELATIONSHIP_SIGN, "3"}), EBADMSG, PARTS("(0028,1041)", "3"));
	refused(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Scaled"}, {0, TAG_DETECTOR_SECONDARY_ANGLE, "1"},
		      {1, TAG_DETECTOR_SECONDARY_ANGLE, "2"}, {2, TAG_DETECTOR_SECONDARY_ANGLE, "3"},
		      {3, TAG_DETECTOR_SECONDARY_ANGLE, "4"}, {4, TAG_DETECTOR_SECONDARY_ANGLE, "5"},
		      {-1, TAG_EXPOSURE_IN_UAS, "4000"}, {2, TAG_EXPOSURE_IN_UAS, "4"}),
		EBADMSG, PARTS("(0018,1153)", "mix of units"));
}

static void test_lie_refused(void **state)
{
	static const struct {
		struct lie lie;
		int code;
		const char *parts[3];
	} cases[] = {
		{{"L", "R-10224", "A\\R", 0, 0, 0, 0}, ENOTSUP, {"view ML", "(0054,0220)", NULL}},
		{{"L", "R-10228", "A\\R", 0, 0, 0, 0}, ENOTSUP, {"view LM", "(0054,0220)", NULL}},
		{{"L", "R-99999", "A\\R", 0, 0, 0, 0}, ENOTSUP, {"view R-99999", NULL}},
		{{"L", "R-10226", "A\\FL", 0, 0, 0, 0},
		 EBADMSG,
		 {"(0020,0020)", "A\\FL", NULL}}, /* feet and left: no way along y */
		{{"L", "R-10242", "A", 0, 0, 0, 0}, EBADMSG, {"(0020,0020)", "two directions", NULL}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exam *exam = NULL;
		struct err err = {0};

		fixture_write_mg(&(struct fixture_mg){.n = 2, .change = lie_so, .ctx = &cases[i].lie});
		expect_refusal(fixture_open(2, &exam, &err), cases[i].code, &err, exam, cases[i].parts);
	}
}

static void view_lm(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	(void)shared;
	(void)frames;
	put(dicom_item_at(root, TAG_VIEW_CODE_SEQUENCE, 0), TAG_CODE_VALUE, "399352003");
}

static void view_magnified(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	struct err err = {0};

	(void)shared;
	(void)frames;
	assert_true(dicom_add_code(dicom_item_at(root, TAG_VIEW_CODE_SEQUENCE, 0), TAG_VIEW_MODIFIER_CODE_SEQUENCE, "399163009",
				   "SCT", "Magnification", &err) >= 0);
}

static void equal_frames(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	(void)root;
	(void)shared;
	put_number(dicom_item_at(frames[3], TAG_ISOCENTER_REFERENCE_SYSTEM_SEQUENCE, 0), TAG_X_RAY_SOURCE_ISOCENTER_PRIMARY_ANGLE,
		   -50);
}

static void nan_angle(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	struct dicom_item *item = dicom_item_at(frames[2], TAG_ISOCENTER_REFERENCE_SYSTEM_SEQUENCE, 0);
	struct err err = {0};

	(void)root;
	(void)shared;
	if (dicom_put_double(item, TAG_X_RAY_SOURCE_ISOCENTER_PRIMARY_ANGLE, NAN, &err) <
	    0) /* the writer refuses it: then nothing at all */
		assert_true(dicom_put_empty(item, TAG_X_RAY_SOURCE_ISOCENTER_PRIMARY_ANGLE, &err) >= 0);
}

static void gantry_flat(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	(void)root;
	(void)shared;
	put_number(dicom_item_at(frames[0], TAG_ISOCENTER_REFERENCE_SYSTEM_SEQUENCE, 0),
		   TAG_BREAST_SUPPORT_ISOCENTER_PRIMARY_ANGLE, 0);
}

static void no_support_angle(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	(void)root;
	(void)shared;
	for (int i = 0; i < N_VIEWS; i++) /* 30 to 50 degrees would pass for projection angles */
		assert_true(dicom_put_empty(dicom_item_at(frames[i], TAG_ISOCENTER_REFERENCE_SYSTEM_SEQUENCE, 0),
					    TAG_BREAST_SUPPORT_ISOCENTER_PRIMARY_ANGLE, NULL) >= 0);
}

/* R MLO is at -50 degrees, L MLO at +50 */
static void other_side(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	(void)root;
	(void)frames;
	put(dicom_item_at(shared, TAG_FRAME_ANATOMY_SEQUENCE, 0), TAG_FRAME_LATERALITY, "L");
	put(dicom_item_at(shared, TAG_PATIENT_ORIENTATION_IN_FRAME_SEQUENCE, 0), TAG_PATIENT_ORIENTATION, "A\\F");
}

static void oblique_cc(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	(void)shared;
	(void)frames;
	put(dicom_item_at(root, TAG_VIEW_CODE_SEQUENCE, 0), TAG_CODE_VALUE, "399162004");
}

static void other_sign(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	(void)root;
	(void)shared;
	put_number(dicom_item_at(frames[3], TAG_FRAME_PIXEL_DATA_PROPERTIES_SEQUENCE, 0), TAG_PIXEL_INTENSITY_RELATIONSHIP_SIGN,
		   -1);
}

static void turned_frame(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	(void)root;
	(void)shared;
	put(add(frames[1], TAG_PATIENT_ORIENTATION_IN_FRAME_SEQUENCE), TAG_PATIENT_ORIENTATION, "A\\FL");
}

static void test_projection_refused(void **state)
{
	static const struct {
		void (*change)(struct dicom_item *, struct dicom_item *, struct dicom_item *const *);
		int code;
		const char *parts[4];
	} cases[] = {
		{view_lm, ENOTSUP, {"view LM", "(0054,0220)", NULL}},
		{view_magnified, ENOTSUP, {"magnification", NULL}},
		{equal_frames, EBADMSG, {"same angle", "frame 3", "frame 4", NULL}},
		{nan_angle, EBADMSG, {"0.dcm, frame 3", NULL}},
		{gantry_flat, EBADMSG, {"gantry", "(0018,9545)", "MLO", NULL}},
		{oblique_cc, EBADMSG, {"(0018,9545) is -50 degrees", "no CC view", NULL}},
		{other_side, EBADMSG, {"(0018,9545) is -50 degrees", "other breast than L", NULL}},
		{no_support_angle, EBADMSG, {"(0018,9545) is missing", "frame 1", NULL}},
		{other_sign, EBADMSG, {"(0028,1041) is '-1' in frame", "'1' in frame", NULL}},
		{turned_frame, EBADMSG, {"(0020,0020) is 'A\\FL' in frame 2", NULL}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exam *exam = NULL;
		struct err err = {0};

		fixture_write_bp(cases[i].change);
		expect_refusal(fixture_open(1, &exam, &err), cases[i].code, &err, exam, cases[i].parts);
	}
}

static void class_of(struct dicom_item *root, int i, const void *ctx)
{
	(void)i;
	put(root, TAG_SOP_CLASS_UID, ctx);
}

static void hologic_ct(struct dicom_item *root, int i, const void *ctx)
{
	(void)i;
	put(root, TAG_SOP_CLASS_UID, ctx);
	put(root, TAG_MODALITY, "CT");
	put(root, TAG_MANUFACTURER, "HOLOGIC, Inc.");
}

/* ctx: Image Type of a mammogram for processing */
static void image_type(struct dicom_item *root, int i, const void *ctx)
{
	(void)i;
	put(root, TAG_IMAGE_TYPE, ctx);
}

static void hologic_capture(struct dicom_item *root, int i, const void *ctx)
{
	struct err err = {0};

	(void)i;
	put(root, TAG_SOP_CLASS_UID, ctx);
	assert_true(dicom_put_private(root, 0x7E01, "HOLOGIC, Inc.", 0x10, "LO", "payload", &err) >= 0);
}

static void breast_ct(struct dicom_item *root, int i, const void *ctx)
{
	(void)i;
	put(root, TAG_SOP_CLASS_UID, ctx);
	put(root, TAG_MODALITY, "CT");
	put(root, TAG_BODY_PART_EXAMINED, "BREAST");
	assert_true(dicom_put_empty(root, TAG_VIEW_CODE_SEQUENCE, NULL) >= 0);
}

static void strange_words(struct dicom_item *root, int i, const void *ctx)
{
	(void)i;
	(void)ctx;
	put(dicom_item_at(root, TAG_VIEW_CODE_SEQUENCE, 0), TAG_CODE_VALUE, "C|\xFC-1");
	put(root, TAG_IMAGE_LATERALITY, "\xFC");
}

/* A flat field is turned by its own orientation; bin by bin it takes the place of I0. */
static void test_flatfield(void **state)
{
	static const struct {
		const char *orientation;
		bool mirror_columns, mirror_rows;
	} lies[] = {{"A\\L", false, false}, {"A\\R", false, true}, {"P\\L", true, false}, {"P\\R", true, true}};
	static const struct edit flat[] = {{-1, TAG_MANUFACTURER_MODEL_NAME, "Flat"}, {0}};
	uint16_t values[ROWS * COLUMNS], raw[ROWS * COLUMNS];
	struct config *fixed = fixture_config;
	struct err err = {0};
	char conf[1024], path[256];
	double mean = 0;
	struct exam *e = NULL;
	struct prep prep;

	(void)state;
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
	for (size_t k = 0; k < sizeof(lies) / sizeof(lies[0]); k++) {
		struct edit edits[] = {flat[0],
				       {N_VIEWS, TAG_PATIENT_ORIENTATION, lies[k].orientation},
				       {-1, TAG_IMAGES_IN_ACQUISITION, "5"},
				       {0}};

		fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS + 1, .change = edit, .ctx = edits});
		if (fixture_open(N_VIEWS, &e, &err) < 0)
			fail_msg("%s", err.msg);
		assert_int_equal(exam_read_view(e, 1, raw, &prep, &err), 0);
		assert_true(fabs(prep.i0 - mean) < 1e-9 * mean);
		assert_ptr_equal(prep.flatfield, e->flatfield);
		for (int v = 0; v < ROWS; v++)
			for (int u = 0; u < COLUMNS; u++) {
				int row = lies[k].mirror_rows ? ROWS - 1 - v : v,
				    column = lies[k].mirror_columns ? COLUMNS - 1 - u : u;
				double want = values[row * COLUMNS + column] - 20.0;

				assert_true(fabs(prep.i0 * (double)prep.flatfield[v * COLUMNS + u] - want) < 1e-4 * want);
			}
		e = exam_close(e);
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

static void test_facts(void **state)
{
	static const struct {
		const char *sop_class;
		void (*change)(struct dicom_item *, int, const void *);
		bool refused;
		const char *part;
	} cases[] = {
		{CLASS_SECONDARY_CAPTURE, hologic_capture, true, "Hologic SCO"},
		{CLASS_SECONDARY_CAPTURE, class_of, false, "no projections"},
		{CLASS_CT, hologic_ct, true, "Hologic CTO"},
		{CLASS_CT, breast_ct, false, "no projections"},
		{CLASS_RAW_DATA, class_of, true, "without the private block of sinogram objects"},
		{"1.2.840.113619.4.30", class_of, true, "GE raw data (private class 1.2.840.113619.4.30)"},
		{"1.3.12.2.1107.5.9.1", class_of, true, "Siemens raw data (private class 1.3.12.2.1107.5.9.1)"},
		{"1.2.840.113619.4.99", class_of, true, "private SOP class 1.2.840.113619.4.99"},
		{CLASS_MG_PRESENTATION, class_of, false, "For Presentation"},
		{"ORIGINAL\\PRIMARY\\STEREO_PLUS", image_type, false, "STEREO_PLUS: a stereotactic image"},
		{"DERIVED\\PRIMARY\\TOMOSYNTHESIS\\GENERATED_2D", image_type, false, "GENERATED_2D: computed"},
		{CLASS_TOMOSYNTHESIS, class_of, false, "reconstructed already"},
	};
	static const char *const projections[] = {"ORIGINAL\\PRIMARY\\TOMO_PROJ", "ORIGINAL\\PRIMARY\\TOMO_SCOUT",
						  "ORIGINAL\\PRIMARY\\", "ORIGINAL\\PRIMARY", "DERIVED\\PRIMARY\\POSTBIOPSY"};
	struct exam_facts f;
	struct err err = {0};
	char key[400];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exam *exam = NULL;

		fixture_write_mg(&(struct fixture_mg){.n = 2, .change = cases[i].change, .ctx = cases[i].sop_class});
		if (exam_read_facts(fixture_path("0.dcm"), &f, &err) < 0)
			fail_msg("%s", err.msg);
		assert_string_equal(f.kind, "");
		assert_int_equal(f.refused, cases[i].refused);
		if (!strstr(f.reason, cases[i].part))
			fail_msg("'%s' does not hold '%s'", f.reason, cases[i].part);
		expect_refusal(fixture_open(2, &exam, &err), ENOTSUP, &err, exam, PARTS(cases[i].part));
	}
	for (size_t i = 0; i < sizeof(projections) / sizeof(projections[0]); i++) { /* these are, or may be, projections */
		fixture_write_mg(&(struct fixture_mg){.n = 2, .change = image_type, .ctx = projections[i]});
		assert_int_equal(exam_read_facts(fixture_path("0.dcm"), &f, &err), 0);
		assert_string_equal(f.kind, "dbt");
	}
	fixture_write_mg(&(struct fixture_mg){.n = 1, .change = strange_words});
	assert_int_equal(exam_read_facts(fixture_path("0.dcm"), &f, &err), 0);
	assert_string_equal(f.view, "C?"
				    "?-1");
	assert_string_equal(f.laterality, "?");
	fixture_write_mg(&(struct fixture_mg){.n = 3});
	assert_int_equal(exam_read_facts(fixture_path("1.dcm"), &f, &err), 0);
	assert_string_equal(f.kind, "dbt");
	assert_string_equal(f.reason, "");
	assert_string_equal(f.laterality, "L");
	assert_string_equal(f.view, "CC");
	assert_int_equal(f.expected, 3);
	assert_int_equal(f.frames, 1);
	assert_true(f.angle == -5);
	exam_case_key(&f, key, sizeof(key));
	assert_string_equal(key, "1.2.3.1|1.2.3.2|L|CC|1.2.3.3");
	fixture_write_bp(NULL);
	assert_int_equal(exam_read_facts(fixture_path("0.dcm"), &f, &err), 0);
	assert_string_equal(f.kind, "dbt");
	assert_string_equal(f.laterality, "R");
	assert_string_equal(f.view, "MLO");
	assert_int_equal(f.expected, 1);
	assert_int_equal(f.frames, N_VIEWS);
}

static void test_broken_files(void **state)
{
	struct exam_facts f;
	struct exam *exam = NULL;
	struct err err = {0};

	(void)state;
	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	assert_int_equal(truncate(fixture_path("2.dcm"), 1200), 0);
	assert_int_equal(exam_read_facts(fixture_path("2.dcm"), &f, &err), -EBADMSG);
	expect_refusal(fixture_open(N_VIEWS, &exam, &err), EBADMSG, &err, exam, PARTS("2.dcm"));
	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	assert_int_equal(unlink(fixture_path("4.dcm")), 0);
	assert_true(fixture_open(N_VIEWS, &exam, &err) < 0);
	assert_non_null(strstr(err.msg, "4.dcm"));
	assert_int_equal(fixture_open(0, &exam, &err), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_series),
		cmocka_unit_test(test_projection_object),
		cmocka_unit_test(test_projection_positioner),
		cmocka_unit_test(test_axes),
		cmocka_unit_test(test_read_view),
		cmocka_unit_test(test_intensity),
		cmocka_unit_test(test_series_refused),
		cmocka_unit_test(test_stranger_refused),
		cmocka_unit_test(test_geometry_refused),
		cmocka_unit_test(test_intensity_refused),
		cmocka_unit_test(test_lie_refused),
		cmocka_unit_test(test_projection_refused),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_flatfield),
		cmocka_unit_test(test_broken_files),
	};

	return cmocka_run_group_tests_name("exam", tests, fixture_start, fixture_stop);
}
