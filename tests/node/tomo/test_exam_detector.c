/* SPDX-License-Identifier: Apache-2.0 */
/* Test the size of bins, images of a part of the detector, the meanings of (0018,1111), and where the geometry is from. */
#include "node/tomo/exam_internal.h"
#include "tests/node/tomo/exam_edits.h"
#include "tests/test.h"

TEST(test_pitch)
{
	static const struct {
		const char *spacing, *element, *binning;
		double bin; /* 0: refused */
	} cases[] = {
		{"1\\1", "1\\1", NULL, 1},
		{"1\\1", "0.5\\0.5", "2\\2", 1},
		{"1\\1", "0.5\\0.5", NULL, 1}, /* binned without saying so */
		{NULL, "1\\1", "2\\2", 2},
		{NULL, NULL, "2\\2", 2}, /* of elements of the profile */
		{NULL, "1\\1", NULL, 1},
		{"2\\2", NULL, "1\\1", 2},	     /* without the size of an element, binning proves nothing */
		{"0.96\\0.96", "1\\1", "1\\1", 1},   /* (640 - 26) / 640: in the breast */
		{"0.93\\0.93", "1\\1", "1\\1", 0},   /* above it */
		{"0.985\\0.985", "1\\1", "1\\1", 0}, /* below it */
		{"1\\1", "1\\1", "2\\2", 0},
		{"2\\2", "1\\1", "1\\1", 0},
		{"1\\1", "1\\2", NULL, 0},
		{"1\\1", "0.7\\0.7", "1\\1", 0},
		{"0.7\\0.7", "0.7\\0.7", "1\\1", 0}, /* not of this detector */
		{NULL, NULL, NULL, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct edit edits[] = {{-1, TAG_IMAGER_PIXEL_SPACING, cases[i].spacing},
					     {-1, TAG_DETECTOR_ELEMENT_SPACING, cases[i].element},
					     {-1, TAG_DETECTOR_BINNING, cases[i].binning},
					     {0}};
		struct exam *exam;

		if (!(cases[i].bin > 0)) {
			refused(edits, EBADMSG, PARTS("(0018,"));
			continue;
		}
		exam = exam_of(edits);
		assert_true(fabs(exam->scan->h[0] - cases[i].bin) < 1e-9);
		assert_non_null(strstr(exam->warnings, "Geometry from literature"));
		assert_null(strstr(strstr(exam->warnings, "Geometry from literature"), "scaled")); /* it is the last sentence */
		assert_true(!strstr(exam->warnings, "scaled to a plane") == !(cases[i].spacing && cases[i].spacing[0] == '0'));
	}
	refused(EDITS({-1, TAG_DETECTOR_ELEMENT_SPACING, "1\\1"}, {-1, TAG_IMAGER_PIXEL_SPACING, "0.9\\0.9"}), EBADMSG,
		PARTS("(0018,1164) is 0.9 mm", "(0018,7022) 1 mm"));
	refused(EDITS({2, TAG_DETECTOR_BINNING, "2\\2"}), EBADMSG, PARTS("detector binning (0018,701A)", "2.dcm"));
}

/* SID 640, support 20, thickness 12 */
TEST(test_distance_to_patient)
{
	static const struct {
		const char *distance, *meaning;
	} cases[] = {{"620", "the top of the breast support"},
		     {"617", "the top of the breast support"},
		     {"608", "the top of the breast"},
		     {"640", "the detector"},
		     {"645", "the detector"},
		     {NULL, NULL}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exam *exam = exam_of(EDITS({-1, TAG_DISTANCE_SOURCE_TO_PATIENT, cases[i].distance}));

		assert_true(!cases[i].meaning == !exam->sod_meaning);
		if (cases[i].meaning)
			assert_string_equal(exam->sod_meaning, cases[i].meaning);
		assert_true(exam->support == 20); /* never derived */
	}
	refused(EDITS({-1, TAG_DISTANCE_SOURCE_TO_PATIENT, "630.5"}), EBADMSG,
		PARTS("(0018,1111) is 630.5 mm", "620 mm", "608 mm", "640 mm"));
	refused(EDITS({-1, TAG_DISTANCE_SOURCE_TO_PATIENT, "595"}), EBADMSG, PARTS("(0018,1111) is 595 mm"));
	refused(EDITS({-1, TAG_DISTANCE_SOURCE_TO_PATIENT, "-10"}), EBADMSG, PARTS("(0018,1111) is -10 mm"));
}

/* ---- part of the detector ---- */

#define DETECTOR_ROWS 50 /* of the profile "window"; x runs along them or along the columns */

struct picture {
	int rows, columns;
	int at[64][64][2]; /* row and column in the detector */
};

static struct picture turned(const struct picture *p)
{
	struct picture q = {.rows = p->columns, .columns = p->rows};

	for (int i = 0; i < q.rows; i++)
		for (int j = 0; j < q.columns; j++)
			memcpy(q.at[i][j], p->at[p->rows - 1 - j][i],
			       sizeof(q.at[i][j])); /* clockwise: the left column becomes the top row */
	return q;
}

static struct picture flipped(const struct picture *p)
{
	struct picture q = *p;

	for (int i = 0; i < q.rows; i++)
		for (int j = 0; j < q.columns; j++)
			memcpy(q.at[i][j], p->at[i][p->columns - 1 - j], sizeof(q.at[i][j]));
	return q;
}

/* Return how many elements of the detector are before pixel `a`, going from it to pixel `b`. */
static int elements_before(const int a[2], const int b[2], const int size[2])
{
	int axis = a[0] == b[0];

	return b[axis] > a[axis] ? a[axis] : size[axis] - 1 - a[axis];
}

/* Cut the images out of a detector whose elements are numbered, turn and flip them; then look where the corner x, y is. */
static void check_window(int turns, bool flip, const char *orientation, bool toward_chest, bool toward_minus_y)
{
	static struct picture p;
	int origin[2] = {3, 4}, size[2];
	char text[32], turn[8];
	struct exam *exam;
	double x, y;

	p = (struct picture){.rows = turns % 2 ? COLUMNS : ROWS, .columns = turns % 2 ? ROWS : COLUMNS};
	size[0] = turns % 2 ? 30 : DETECTOR_ROWS;
	size[1] = turns % 2 ? DETECTOR_ROWS : 30;
	for (int i = 0; i < p.rows; i++)
		for (int j = 0; j < p.columns; j++)
			p.at[i][j][0] = origin[0] + i, p.at[i][j][1] = origin[1] + j;
	for (int i = 0; i < turns; i++)
		p = turned(&p);
	if (flip)
		p = flipped(&p);
	assert_true(p.rows == ROWS && p.columns == COLUMNS);
	{
		int j = toward_chest ? COLUMNS - 1 : 0, i = toward_minus_y ? ROWS - 1 : 0;
		const int *corner = p.at[i][j];

		x = elements_before(corner, p.at[i][toward_chest ? j - 1 : j + 1], size);
		y = elements_before(corner, p.at[toward_minus_y ? i - 1 : i + 1][j], size) + ROWS / 2.0 - DETECTOR_ROWS / 2.0;
	}
	snprintf(text, sizeof(text), "%d\\%d", origin[0], origin[1]);
	snprintf(turn, sizeof(turn), "%d", 90 * turns);
	exam = exam_of(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Window"}, {-1, TAG_FIELD_OF_VIEW_ORIGIN, text},
			     {-1, TAG_FIELD_OF_VIEW_ROTATION, turn}, {-1, TAG_FIELD_OF_VIEW_HORIZONTAL_FLIP, flip ? "YES" : "NO"},
			     {-1, TAG_PATIENT_ORIENTATION, orientation}));
	assert_true(exam->window[0] == x && exam->window[1] == y);
	assert_true(exam->scan->lo[0] == x && exam->scan->lo[1] == y - ROWS / 2.0);
	assert_non_null(strstr(exam->warnings, "part of the detector"));
}

TEST(test_window)
{
	static const struct {
		const char *orientation;
		bool toward_chest, toward_minus_y;
	} ways[] = {{"A\\R", false, true}, {"P\\L", true, false}, {"A\\L", false, false}, {"P\\R", true, true}};

	for (int turns = 0; turns < 4; turns++)
		for (int flip = 0; flip < 2; flip++)
			for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
				check_window(turns, flip, ways[i].orientation, ways[i].toward_chest, ways[i].toward_minus_y);
}

TEST(test_window_refused)
{
	const struct edit of_window = {-1, TAG_MANUFACTURER_MODEL_NAME, "Window"};
	struct exam *exam;

	refused(EDITS(of_window), EBADMSG, PARTS("(0018,7030) is missing", "32 of the 50 elements", "'window'"));
	refused(EDITS(of_window, {-1, TAG_FIELD_OF_VIEW_ORIGIN, "30\\0"}), EBADMSG, PARTS("30\\0", "not inside the detector"));
	refused(EDITS(of_window, {-1, TAG_FIELD_OF_VIEW_ORIGIN, "0\\20"}), EBADMSG, PARTS("not inside the detector"));
	refused(EDITS(of_window, {-1, TAG_FIELD_OF_VIEW_ORIGIN, "-3\\0"}), EBADMSG, PARTS("(0018,7030)"));
	refused(EDITS(of_window, {-1, TAG_FIELD_OF_VIEW_ORIGIN, "3"}), EBADMSG, PARTS("(0018,7030)"));
	refused(EDITS(of_window, {-1, TAG_FIELD_OF_VIEW_ORIGIN, "3\\4"}, {-1, TAG_FIELD_OF_VIEW_ROTATION, "45"}), EBADMSG,
		PARTS("(0018,7032) is 45"));
	refused(EDITS(of_window, {-1, TAG_FIELD_OF_VIEW_ORIGIN, "3\\4"}, {2, TAG_FIELD_OF_VIEW_ORIGIN, "3\\5"}), EBADMSG,
		PARTS("column of the field of view (0018,7030)", "2.dcm"));
	/* a profile without the size of the detector */
	refused(EDITS({-1, TAG_FIELD_OF_VIEW_ORIGIN, "3\\0"}), EBADMSG, PARTS("(0018,7030) is 3\\0", "elements_y", "'bench'"));
	exam = exam_of(EDITS({-1, TAG_FIELD_OF_VIEW_ORIGIN, "0\\0"}, {-1, TAG_FIELD_OF_VIEW_ROTATION, "180"}));
	assert_true(exam->window[0] == 0 && exam->window[1] == 0);
}

/* ---- where the geometry is from ---- */

TEST(test_source)
{
	struct exam *exam = exam_of(EDITS({0}));

	assert_non_null(strstr(exam->warnings, "Geometry from literature: the profile 'bench'"));
	assert_string_equal(exam->geometry, "");
	exam = exam_of(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Fitted"}));
	assert_string_equal(exam->warnings, "");
	assert_string_equal(exam->geometry, "Geometry calibrated on 2026-05-31 with residuals of 0.05 bins.");
	exam = exam_of(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Window"}, {-1, TAG_FIELD_OF_VIEW_ORIGIN, "9\\0"}));
	assert_string_equal(exam->warnings, "");
	assert_string_equal(exam->geometry, "");
}

/* Matrices of the header replace the geometry of the profile, whose source is then not stated. */
TEST(test_source_header)
{
	static const enum geometry_source sources[] = {GEOMETRY_LITERATURE, GEOMETRY_CALIBRATED, GEOMETRY_SIMULATED};

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		const struct profile_conf p = {.name = "matrices", .pose_in_header = true, .geometry_source = sources[i]};
		struct exam exam = {.profile = &p};

		exam_geometry_source(&exam);
		assert_string_equal(exam.geometry, "Geometry from the projection matrices of the images.");
		assert_string_equal(exam.warnings, "");
	}
}

/* ---- numbers of projections ---- */

TEST(test_announced)
{
	const struct edit of_window = {-1, TAG_MANUFACTURER_MODEL_NAME, "Window"},
			  origin = {-1, TAG_FIELD_OF_VIEW_ORIGIN, "9\\0"};
	static const char *const lies[] = {"15", "61", "6", "4"};
	struct exam *exam;

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		exam = exam_of(EDITS(of_window, origin, {-1, TAG_IMAGES_IN_ACQUISITION, lies[i]}));
		assert_int_equal(exam->n_views, 5);
		assert_int_equal(exam->announced, 5); /* not called partial */
		assert_non_null(strstr(exam->warnings, "(0020,1002) announces "));
	}
	refused_n(4, EDITS(of_window, origin, {-1, TAG_IMAGES_IN_ACQUISITION, "6"}), EBADMSG,
		  PARTS("4 projections", "(0020,1002)", "6"));
	/* fewer than the system makes: reconstructed, but not silently */
	fixture_write_mg(&(struct fixture_mg){
		.n = 4, .change = edit, .ctx = EDITS(of_window, origin, {-1, TAG_IMAGES_IN_ACQUISITION, "4"})});
	{
		struct err err = {0};

		assert_int_equal(fixture_open(4, &exam, &err), 0);
	}
	assert_non_null(strstr(exam->warnings, "4 projections, as (0020,1002) announces; a complete exam of this system has 5"));
	/* more */
	exam = exam_of(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Four"}));
	assert_non_null(strstr(exam->warnings, "5 projections, as (0020,1002) announces; a complete exam of this system has 4"));
}

TESTS_SETUP(fixture_start, fixture_stop);
