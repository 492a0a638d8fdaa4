/* SPDX-License-Identifier: Apache-2.0 */
/* Test what is said about angles that no known system has. Two projections at one angle: test_exam_refused.c. */
#include "tests/node/tomo/exam_edits.h"

#define ANGLES(a, b, c, d, e)                                                                                                    \
	{0, TAG_POSITIONER_PRIMARY_ANGLE, a}, {1, TAG_POSITIONER_PRIMARY_ANGLE, b}, {2, TAG_POSITIONER_PRIMARY_ANGLE, c},        \
		{3, TAG_POSITIONER_PRIMARY_ANGLE, d},                                                                            \
	{                                                                                                                        \
		4, TAG_POSITIONER_PRIMARY_ANGLE, e                                                                               \
	}
#define TIMES(a, b, c, d, e)                                                                                                     \
	{0, TAG_ACQUISITION_TIME, a}, {1, TAG_ACQUISITION_TIME, b}, {2, TAG_ACQUISITION_TIME, c}, {3, TAG_ACQUISITION_TIME, d},  \
	{                                                                                                                        \
		4, TAG_ACQUISITION_TIME, e                                                                                       \
	}
#define RANGE                                                                                                                    \
	{                                                                                                                        \
		-1, TAG_MANUFACTURER_MODEL_NAME, "Range"                                                                         \
	}

/* Check the sentence about the angles; NULL: there is none. */
static void says(const struct exam *exam, const char *sentence)
{
	const char *words[] = {"The angles", "degrees apart"};

	if (sentence && !strstr(exam->warnings, sentence))
		fail_msg("'%s' does not hold '%s'", exam->warnings, sentence);
	for (int i = 0; i < 2 && !sentence; i++)
		assert_null(strstr(exam->warnings, words[i]));
}

static void check(const struct edit *edits, const char *sentence)
{
	struct exam *exam = exam_of(edits);

	says(exam, sentence);
}

TEST(test_units)
{
	check(EDITS(ANGLES("-4", "-2", "0", "2", "4")), NULL);
	check(EDITS(ANGLES("-0.1745", "-0.0873", "0", "0.0873", "0.1745")),
	      "The angles of the source span 0.35 degrees, less than any tomosynthesis has: are they in radians?");
	check(EDITS(ANGLES("-1.25", "-0.6", "0", "0.6", "1.25")),
	      "The angles of the source span 2.5 degrees, less than any tomosynthesis has: are they ten times too small?");
}

/* The fixture's own are from -10 to 10. */
TEST(test_range_of_the_profile)
{
	check(EDITS(RANGE), NULL);
	check(EDITS(RANGE, ANGLES("-8", "-4", "0", "4", "8.1")), NULL);
	check(EDITS(RANGE, ANGLES("-7.9", "-4", "0", "4", "8")), "from -7.9 to 8 degrees; complete exams of this system have a "
								 "range of 20 (arc of the profile 'range'): is it another mode?");
	check(EDITS(RANGE, ANGLES("-6", "-1", "4", "9", "14.1")), "from -6 to 14.1 degrees; complete exams");
	check(EDITS(RANGE, ANGLES("-1", "-0.5", "0", "0.5", "1")), "(arc of the profile 'range'): are they ten times too small?");
	check(EDITS(RANGE, ANGLES("-0.1745", "-0.0873", "0", "0.0873", "0.1745")),
	      "(arc of the profile 'range'): are they in radians?");
}

TEST(test_beside_the_vertical)
{
	check(EDITS(ANGLES("0", "5", "10", "15", "20")), NULL);
	check(EDITS(ANGLES("35", "40", "45", "50", "55")),
	      "from 35 to 55 degrees, all on one side of the vertical: are they those of the gantry?");
}

TEST(test_almost_the_same_angle)
{
	check(EDITS(ANGLES("-10", "-5", "-4.4", "5", "10")), NULL);
	check(EDITS(ANGLES("-10", "-5", "-4.6", "5", "10")), "1.dcm and 2.dcm are 0.4 degrees apart, the others mostly 5");
}

/* A sweep goes in one direction, whichever; times of a whole second may be the same; numbers alone may be of any order. */
TEST(test_order)
{
	check(EDITS(TIMES("101500", "101501", "101501", "101502", "101503")), NULL);
	check(EDITS(TIMES("000001", "000000.5", "235959", "235958.7", "235958")), NULL);
	check(EDITS(TIMES("101500", "101502", "101501", "101503", "101504")),
	      "do not follow the order of acquisition: by Acquisition Time (0008,0032), 1 of 4 steps");
	check(EDITS({-1, TAG_ACQUISITION_TIME, "101500"}, ANGLES("-10", "10", "0", "5", "-5")),
	      "do not follow the order of acquisition: by Instance Number (0020,0013), 2 of 4 steps");
	check(EDITS({2, TAG_INSTANCE_NUMBER, NULL}, ANGLES("-10", "10", "0", "5", "-5")), NULL);
}

/* Frames at the angles -10, 0, -5, 5, 10. */
static void mixed_frames(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	(void)root;
	(void)shared;
	for (int i = 1; i < 3; i++)
		put_number(dicom_item_at(frames[i], TAG_ISOCENTER_REFERENCE_SYSTEM_SEQUENCE, 0),
			   TAG_X_RAY_SOURCE_ISOCENTER_PRIMARY_ANGLE, -50 - (i == 1 ? 0 : -5));
}

TEST(test_order_of_frames)
{
	struct exam *exam = NULL;
	struct err err = {0};

	fixture_write_bp(NULL);
	assert_int_equal(fixture_open(1, &exam, &err), 0);
	says(exam, NULL);
	fixture_write_bp(mixed_frames);
	assert_int_equal(fixture_open(1, &exam, &err), 0);
	says(exam, "by the order of the frames, 1 of 4 steps");
}

TESTS_SETUP(fixture_start, fixture_stop);
