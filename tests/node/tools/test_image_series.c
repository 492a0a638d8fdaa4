/* SPDX-License-Identifier: Apache-2.0 */
/* PET and CT series: values and places of their slices, and the reasons to refuse one; those that are of a slice alone:
 * tests/dicom/object/test_ct_series.c. */
#include "node/tools/image_series.h"

#include "dicom/pixels/start.h"
#include "tests/dicom/object/slices_fixture.h"

#define ORIENTATION TAG_IMAGE_ORIENTATION_PATIENT
#define POSITION TAG_IMAGE_POSITION_PATIENT

static const struct edit usual[] = {
	{0, TAG_SERIES_TYPE, "STATIC\\IMAGE"},
	{0, ORIENTATION, "1\\0\\0\\0\\1\\0"},
	{0, TAG_PIXEL_SPACING, "0.5\\0.25"},
	{0, TAG_SLICE_THICKNESS, "-"},
	{0, TAG_ROWS, "2"},
	{0, TAG_COLUMNS, "3"},
	{0, TAG_SAMPLES_PER_PIXEL, "1"},
	{0, PHOTOMETRIC, "MONOCHROME2"},
	{0, TAG_PIXEL_REPRESENTATION, "0"},
	{0, TAG_BITS_ALLOCATED, "16"},
	{0, TAG_BITS_STORED, "12"},
	{0, TAG_HIGH_BIT, "11"},
	{0, TAG_RESCALE_SLOPE, "0.5"},
	{0, TAG_RESCALE_INTERCEPT, "0"},
	{0, TAG_RESCALE_TYPE, "-"},
	{0, TAG_UNITS, "BQML"},
	{0, TAG_NUMBER_OF_SLICES, "4"},
	{0, TAG_NUMBER_OF_TIME_SLICES, "-"},
	{0, TAG_NUMBER_OF_TIME_SLOTS, "-"},
	{0, TAG_NUMBER_OF_R_R_INTERVALS, "-"},
	{0, TAG_IMAGES_IN_ACQUISITION, "-"},
	{0, TAG_IMAGE_INDEX, "-"},
	{0, TAG_ACTUAL_FRAME_DURATION, "30000"},
	{0, TAG_TRIGGER_TIME, "-"},
	{0, TAG_FRAME_TIME, "-"},
	{0, TAG_TIME_SLOT_TIME, "-"},
	{0, TAG_WINDOW_CENTER, "-"},
	{0, TAG_WINDOW_WIDTH, "-"},
	{0, TAG_VOI_LUT_FUNCTION, "-"},
	{0, TAG_PATIENT_ID, "P1"},
	{0, TAG_SERIES_INSTANCE_UID, "1.2.8"},
	{0, TAG_FRAME_OF_REFERENCE_UID, "1.2.9"},
	{1, POSITION, "10\\20\\10"},
	{2, POSITION, "10\\20\\0"},
	{3, POSITION, "10\\20\\15"},
	{4, POSITION, "10\\20\\5"},
};
static const int order[N_SLICES] = {2, 4, 1, 3}; /* along z */

static char folder[64];

/* Open a series of n slices; pixel i of slice k, from 1 on, has the stored value 10 k + i. */
static int open_series(const char *class, int n, const struct edit *edits, size_t n_edits, struct image_series **ret,
		       struct err *err)
{
	static char names[N_SLICES][100];
	char *paths[N_SLICES];

	for (int k = 1; k <= n; k++) {
		uint16_t values[64];

		for (int i = 0; i < 64; i++)
			values[i] = (uint16_t)(10 * k + i);
		paths[k - 1] = names[k - 1];
		snprintf(names[k - 1], sizeof(names[0]), "%s/s%d.dcm", folder, k);
		write_slice(names[k - 1], make_slice(k, class, usual, sizeof(usual) / sizeof(usual[0]), edits, n_edits), values);
	}
	return image_series_open(paths, (size_t)n, false, ret, err);
}

#define N_EDITS 6

struct row {
	REFUSED;
	int slices; /* 0: all; -1: none */
	struct edit edits[N_EDITS];
	bool ct;
};

static int try_row(const void *row, struct err *err)
{
	const struct row *r = row;
	struct image_series *s = NULL;
	int rc = open_series(r->ct ? CLASS_CT : CLASS_PET,
			     r->slices < 0 ? 0
			     : r->slices   ? r->slices
					   : N_SLICES,
			     r->edits, N_EDITS, &s, err);

	assert_int_equal(!s, rc < 0);
	image_series_close(s);
	return rc;
}

/* Two images of two slices. */
#define DYNAMIC                                                                                                                  \
	{                                                                                                                        \
		0, TAG_SERIES_TYPE, "DYNAMIC\\IMAGE"                                                                             \
	}
#define GATED                                                                                                                    \
	{                                                                                                                        \
		0, TAG_SERIES_TYPE, "GATED\\IMAGE"                                                                               \
	}
#define TWO_SLICES                                                                                                               \
	{                                                                                                                        \
		0, TAG_NUMBER_OF_SLICES, "2"                                                                                     \
	}

static const struct row refused_series[] = {
	{{"no files", EBADMSG, "none of the files"}, -1, {{0}}},
	{{"an image of MR", EBADMSG, "s2.dcm: MRImageStorage"}, 0, {{2, TAG_SOP_CLASS_UID, "1.2.840.10008.5.1.4.1.1.4"}}},
	{{"a colour image", ENOTSUP, "s2.dcm"}, 0, {{2, PHOTOMETRIC, "PALETTE COLOR"}}},
	{{"no spacing", EBADMSG, "0030"}, 0, {{3, TAG_PIXEL_SPACING, "-"}}},
	{{"no slope", EBADMSG, "1053"}, 0, {{4, TAG_RESCALE_SLOPE, "-"}}},
	{{"no intercept", EBADMSG, "1052"}, 0, {{4, TAG_RESCALE_INTERCEPT, "-"}}},
	{{"no position", EBADMSG, "s4.dcm: no (0020,0032)"}, 0, {{4, POSITION, "-"}}},
	{{"two series", EBADMSG, "1.2.88"}, 0, {{2, TAG_SERIES_INSTANCE_UID, "1.2.88"}}},
	{{"other rows", EBADMSG, "3 x 5 pixels"}, 0, {{4, TAG_ROWS, "5"}}},
	{{"other units", EBADMSG, "\"CNTS\", \"BQML\""}, 0, {{4, TAG_UNITS, "CNTS"}}},
	{{"other units of CT", EBADMSG, "\"HU\", \"\""}, 0, {{4, TAG_RESCALE_TYPE, "HU"}}, true},
	{{"two patients", EBADMSG, "s1.dcm and s3.dcm"}, 0, {{3, TAG_PATIENT_ID, "P2"}}},
	{{"a slice too few", EBADMSG, "4 of 5 slices"}, 0, {{0, TAG_NUMBER_OF_SLICES, "5"}}},
	{{"a slice too many", EBADMSG, "4 of 3 slices"}, 0, {{0, TAG_NUMBER_OF_SLICES, "3"}}},
	{{"a slice twice", EBADMSG, "3 of 4 slices"}, 0, {{4, TAG_SOP_INSTANCE_UID, "1.2.3.1"}}},
	{{"a gap", EBADMSG, "slice 2 of 4"}, 0, {{3, POSITION, "10\\20\\20"}}, true},
	{{"a slice that is near", EBADMSG, "slice 2 of 4"}, 0, {{4, POSITION, "10\\20\\4.979"}}},
	{{"a slice that is far", EBADMSG, "slice 2 of 4"}, 0, {{4, POSITION, "10\\20\\5.021"}}},
	{{"a slice beside", EBADMSG, "slice 2 of 4"}, 0, {{4, POSITION, "10\\20.021\\5"}}},
	{{"all at one place", EBADMSG, "spacing of 0 mm"}, 0, {{0, POSITION, "10\\20\\10"}}},
	{{"one slice of unknown thickness", EBADMSG, "0050"}, 1, {{0, TAG_NUMBER_OF_SLICES, "1"}}},
	{{"one slice of no thickness", EBADMSG, "0050"}, 1, {{0, TAG_NUMBER_OF_SLICES, "1"}, {0, TAG_SLICE_THICKNESS, "0"}}},
	{{"one slice of an unknown number", EBADMSG, "0081"}, 1, {{0, TAG_NUMBER_OF_SLICES, "-"}, {0, TAG_SLICE_THICKNESS, "2"}}},
	{{"time frames without a number", EBADMSG, "0101"}, 0, {DYNAMIC, TWO_SLICES, {0, TAG_IMAGE_INDEX, "1"}}},
	{{"0 time frames", EBADMSG, "0101"}, 0, {DYNAMIC, TWO_SLICES, {0, TAG_NUMBER_OF_TIME_SLICES, "0"}}},
	{{"10001 time frames", EBADMSG, "10001"}, 0, {DYNAMIC, TWO_SLICES, {0, TAG_NUMBER_OF_TIME_SLICES, "10001"}}},
	{{"gates without a number", EBADMSG, "0071"}, 0, {GATED, TWO_SLICES, {0, TAG_NUMBER_OF_R_R_INTERVALS, "1"}}},
	{{"0 gates", EBADMSG, "0071"},
	 0,
	 {GATED, TWO_SLICES, {0, TAG_NUMBER_OF_TIME_SLOTS, "0"}, {0, TAG_NUMBER_OF_R_R_INTERVALS, "1"}}},
	{{"intervals without a number", EBADMSG, "0061"}, 0, {GATED, TWO_SLICES, {0, TAG_NUMBER_OF_TIME_SLOTS, "2"}}},
	{{"10002 gates", EBADMSG, "10002 images"},
	 0,
	 {GATED, TWO_SLICES, {0, TAG_NUMBER_OF_TIME_SLOTS, "5001"}, {0, TAG_NUMBER_OF_R_R_INTERVALS, "2"}}},
	{{"images of an unknown number of slices", EBADMSG, "2 images of 0 slices"},
	 0,
	 {DYNAMIC, {0, TAG_NUMBER_OF_SLICES, "-"}, {0, TAG_NUMBER_OF_TIME_SLICES, "2"}}},
	{{"a slice without an index", EBADMSG, "1330"}, 0, {DYNAMIC, TWO_SLICES, {0, TAG_NUMBER_OF_TIME_SLICES, "2"}}},
	{{"an index of 0", EBADMSG, "is 0; allowed: 1 to 4"},
	 0,
	 {DYNAMIC, TWO_SLICES, {0, TAG_NUMBER_OF_TIME_SLICES, "2"}, {0, TAG_IMAGE_INDEX, "0"}}},
	{{"an index of too much", EBADMSG, "is 5; allowed: 1 to 4"},
	 0,
	 {DYNAMIC, TWO_SLICES, {0, TAG_NUMBER_OF_TIME_SLICES, "2"}, {0, TAG_IMAGE_INDEX, "5"}}},
	{{"three slices of one image", EBADMSG, "image 2 of 2"},
	 0,
	 {DYNAMIC, TWO_SLICES, {0, TAG_NUMBER_OF_TIME_SLICES, "2"}, {0, TAG_IMAGE_INDEX, "2"}, {3, TAG_IMAGE_INDEX, "4"}}},
};

REFUSES(every_wrong_series, refused_series, try_row)

TEST(within_the_tolerances)
{
	static const struct row rows[] = {
		{{"nothing changed", 0, NULL}, 0, {{0}}},
		{{"CT", 0, NULL}, 0, {{0, TAG_NUMBER_OF_SLICES, "-"}}, true},
		{{"a slice that is near", 0, NULL}, 0, {{4, POSITION, "10\\20\\4.981"}}},
		{{"a slice beside", 0, NULL}, 0, {{4, POSITION, "10\\20.019\\5"}}},
		{{"an unknown number", 0, NULL}, 0, {{0, TAG_NUMBER_OF_SLICES, "-"}}},
		{{"one slice", 0, NULL}, 1, {{0, TAG_NUMBER_OF_SLICES, "1"}, {0, TAG_SLICE_THICKNESS, "2"}}},
		{{"one slice of CT", 0, NULL}, 1, {{0, TAG_IMAGES_IN_ACQUISITION, "1"}, {0, TAG_SLICE_THICKNESS, "2"}}, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = {0};

		if (try_row(&rows[i], &err) != 0)
			fail_msg("%s: %s", rows[i].refused.what, err.msg);
	}
}

TEST(values_and_places)
{
	static const struct edit edits[] = {{1, TAG_RESCALE_SLOPE, "2"}, {1, TAG_RESCALE_INTERCEPT, "-3"}};
	struct image_series *s = NULL;
	const float *values;
	struct err err = {0};

	assert_int_equal(open_series(CLASS_PET, N_SLICES, edits, 2, &s, &err), 0);
	for (int c = 0; c < 3; c++) {
		assert_int_equal(s->n[c], ((int[]){3, 2, 4})[c]);
		assert_near(s->spacing[c], ((double[]){0.25, 0.5, 5})[c], 1e-12);
		assert_near(s->corner[c], ((double[]){10, 20, 0})[c], 0);
		assert_near(s->normal[c], ((double[]){0, 0, 1})[c], 0);
	}
	assert_int_equal(s->n_images, 1);
	assert_string_equal(s->type, "STATIC");
	assert_string_equal(s->units, "BQML");
	assert_string_equal(s->series, "1.2.8");
	assert_false(s->ct);
	assert_near(s->duration, 30, 0);
	assert_true(isnan(s->window[0]));
	for (int scaled = 0; scaled < 2; scaled++) {
		for (int k = 0; k < N_SLICES; k++) {
			assert_int_equal(image_series_slice(s, 0, k, &values, &err), 0);
			for (int i = 0; i < 6; i++) {
				double stored = 10 * order[k] + i, value = order[k] == 1 ? 2 * stored - 3 : stored / 2;

				assert_near(values[i], scaled ? 4 * value : value, 0);
			}
		}
		image_series_scale(s, 4, "GML");
	}
	assert_string_equal(s->units, "GML");
	image_series_close(s);
	assert_null(image_series_close(NULL));
}

/* Negative values, and the window for which PS3.3 C.11.2.1.2 has two definitions. */
TEST(signed_values_and_windows)
{
	static const struct {
		struct edit edits[6];
		double low, high;
	} rows[] = {
		{{{0, TAG_WINDOW_CENTER, "40"}, {0, TAG_WINDOW_WIDTH, "401"}}, -160.5, 239.5},
		{{{0, TAG_WINDOW_CENTER, "40"}, {0, TAG_WINDOW_WIDTH, "400"}, {0, TAG_VOI_LUT_FUNCTION, "LINEAR_EXACT"}},
		 -160,
		 240},
		{{{0, TAG_WINDOW_CENTER, "40"}, {0, TAG_WINDOW_WIDTH, "0"}}, NAN, NAN},
		{{{0, TAG_WINDOW_CENTER, "40"}}, NAN, NAN},
		{{{0, TAG_WINDOW_WIDTH, "40"}}, NAN, NAN},
	};
	static const struct edit negative[] = {
		{0, TAG_PIXEL_REPRESENTATION, "1"}, {0, TAG_BITS_STORED, "5"}, {0, TAG_HIGH_BIT, "4"}};
	struct image_series *s = NULL;
	const float *values;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(open_series(CLASS_CT, N_SLICES, rows[i].edits, 6, &s, &err), 0);
		assert_true(s->ct);
		if (isnan(rows[i].low)) {
			assert_true(isnan(s->window[0]) && isnan(s->window[1]));
		} else {
			assert_near(s->window[0], rows[i].low, 0);
			assert_near(s->window[1], rows[i].high, 0);
		}
		s = image_series_close(s);
	}
	assert_int_equal(open_series(CLASS_CT, N_SLICES, negative, 3, &s, &err), 0);
	assert_int_equal(image_series_slice(s, 0, 2, &values, &err), 0); /* file 1: 10 to 15 */
	assert_near(values[5], 7.5, 0);
	assert_int_equal(image_series_slice(s, 0, 0, &values, &err), 0); /* file 2: 20 to 25, of five bits */
	assert_near(values[0], (20 - 32) / 2.0, 0);
	image_series_close(s);
}

TEST(images_of_a_series)
{
	static const struct edit dynamic[] = {DYNAMIC,
					      TWO_SLICES,
					      {0, TAG_NUMBER_OF_TIME_SLICES, "2"},
					      {1, TAG_IMAGE_INDEX, "4"},
					      {2, TAG_IMAGE_INDEX, "1"},
					      {3, TAG_IMAGE_INDEX, "2"},
					      {4, TAG_IMAGE_INDEX, "3"},
					      {3, POSITION, "10\\20\\10"},
					      {4, POSITION, "10\\20\\0"},
					      {4, TAG_ACTUAL_FRAME_DURATION, "60000"},
					      {1, TAG_ACTUAL_FRAME_DURATION, "60000"}};
	static const struct edit gated[] = {GATED,
					    TWO_SLICES,
					    {0, TAG_NUMBER_OF_TIME_SLOTS, "2"},
					    {0, TAG_NUMBER_OF_R_R_INTERVALS, "1"},
					    {1, TAG_IMAGE_INDEX, "4"},
					    {2, TAG_IMAGE_INDEX, "1"},
					    {3, TAG_IMAGE_INDEX, "2"},
					    {4, TAG_IMAGE_INDEX, "3"},
					    {3, POSITION, "10\\20\\10"},
					    {4, POSITION, "10\\20\\0"},
					    {0, TAG_TRIGGER_TIME, "250"},
					    {0, TAG_FRAME_TIME, "500"},
					    {0, TAG_TIME_SLOT_TIME, "9000"}};
	static const int files[2][2] = {{2, 3}, {4, 1}};

	for (int g = 0; g < 2; g++) {
		struct image_series *s = NULL;
		const float *values;
		struct err err = {0};

		assert_done(open_series(CLASS_PET, N_SLICES, g ? gated : dynamic, g ? 13 : 11, &s, &err), &err);
		assert_int_equal(s->n_images, 2);
		assert_int_equal(s->n[2], 2);
		assert_string_equal(s->type, g ? "GATED" : "DYNAMIC");
		for (int image = 0; image < 2; image++)
			for (int k = 0; k < 2; k++) {
				assert_int_equal(image_series_slice(s, image, k, &values, &err), 0);
				assert_near(values[0], 5 * files[image][k], 0);
			}
		assert_near(s->time[1].duration, g ? 0.5 : 60, 1e-12);
		if (g) {
			assert_near(s->time[0].start, 0.25, 1e-12);
			assert_near(s->time[0].live, 9, 1e-12);
		} else {
			assert_near(s->time[0].duration, 30, 1e-12);
		}
		image_series_close(s);
	}
}

TEST(units_for_people)
{
	assert_string_equal(image_series_unit("BQML"), "Bq/ml");
	assert_string_equal(image_series_unit("GML"), "g/ml (SUV)");
	assert_string_equal(image_series_unit("US"), "");
	assert_string_equal(image_series_unit(""), "");
	assert_string_equal(image_series_unit("HU"), "HU");
}

static int start(void **state)
{
	test_folder(folder, sizeof(folder));
	return dicom_start(NULL);
}

static int stop(void **state)
{
	dicom_stop();
	return 0;
}

TESTS_SETUP(start, stop);
