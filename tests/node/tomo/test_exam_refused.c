/* SPDX-License-Identifier: Apache-2.0 */
/* Test cases that are refused: each message names the cause. */
#include "tests/node/tomo/exam_edits.h"
#include "tests/test.h"

TEST(test_series_refused)
{
	refused_n(1, EDITS({0, TAG_IMAGES_IN_ACQUISITION, NULL}), EBADMSG, PARTS("1 projection", "at least 2"));
	refused(EDITS({3, TAG_POSITIONER_PRIMARY_ANGLE, "-5"}), EBADMSG, PARTS("same angle", "-5 degrees", "1.dcm", "3.dcm"));
	refused(EDITS({-1, TAG_POSITIONER_PRIMARY_ANGLE, "45"}), EBADMSG, PARTS("(0018,1510)", "same in all 5", "bench"));
	refused(EDITS({2, TAG_POSITIONER_PRIMARY_ANGLE, NULL}), EBADMSG, PARTS("2.dcm", "(0018,1510)", "missing"));
	refused(EDITS({2, TAG_POSITIONER_PRIMARY_ANGLE, "NaN"}), EBADMSG, PARTS("2.dcm", "(0018,1510)"));
	refused(EDITS({2, TAG_POSITIONER_PRIMARY_ANGLE, "7\\8"}), EBADMSG,
		PARTS("2.dcm", "(0018,1510)", "more than one value (7\\8)"));
	refused(EDITS({2, TAG_POSITIONER_PRIMARY_ANGLE, "170"}), EBADMSG, PARTS("2.dcm", "170 degrees", "out of range"));
	refused(EDITS({-1, TAG_IMAGES_IN_ACQUISITION, "25"}), EBADMSG, PARTS("5 projections", "(0020,1002)", "25"));
	refused(EDITS({-1, TAG_IMAGES_IN_ACQUISITION, NULL}, {-1, TAG_NUMBER_OF_TOMOSYNTHESIS_SOURCE_IMAGES, "4"}), EBADMSG,
		PARTS("5 projections", "(0018,1495)", "4", "give those of one exposure"));
}

/* Too many projections: how many are of which exposure. */
TEST(test_too_many)
{
	refused(EDITS({-1, TAG_IMAGES_IN_ACQUISITION, "6"}), EBADMSG,
		PARTS("5 projections are present of L CC, but (0020,1002) is 6: give all of this side and view"));
	refused(EDITS({-1, TAG_IMAGES_IN_ACQUISITION, "3"}, {-1, TAG_ACQUISITION_NUMBER, "1"}, {3, TAG_ACQUISITION_NUMBER, "2"},
		      {4, TAG_ACQUISITION_NUMBER, "2"}),
		EBADMSG,
		PARTS("(0020,1002) is 3: give those of one exposure; Acquisition Number (0020,0012): 3 have 1, 2 have 2"));
	/* a number for each projection tells nothing */
	refused(EDITS({-1, TAG_IMAGES_IN_ACQUISITION, "3"}, {0, TAG_ACQUISITION_NUMBER, "1"}, {1, TAG_ACQUISITION_NUMBER, "2"},
		      {2, TAG_ACQUISITION_NUMBER, "3"}, {3, TAG_ACQUISITION_NUMBER, "4"}, {4, TAG_ACQUISITION_NUMBER, "5"},
		      {2, TAG_IRRADIATION_EVENT_UID, "1.2.3"}),
		EBADMSG, PARTS("give those of one exposure; Irradiation Event UID (0008,3010): 4 have none, 1 has 1.2.3"));
}

/* As many projections as announced, but of two exposures: a retake, a mammogram, a scout. What each image has for itself, and
 * what an image lacks, tells nothing. */
TEST(test_two_exposures)
{
	static const char more[] = "more than one sweep: ";

	refused(EDITS({-1, TAG_IRRADIATION_EVENT_UID, "1.2.1"}, {1, TAG_IRRADIATION_EVENT_UID, "1.2.2"},
		      {2, TAG_IRRADIATION_EVENT_UID, "1.2.2"}),
		EBADMSG, PARTS(more, "Irradiation Event UID (0008,3010): 3 have 1.2.1, 2 have 1.2.2; give recon those of one"));
	refused(EDITS({-1, TAG_ACQUISITION_NUMBER, "1"}, {4, TAG_ACQUISITION_NUMBER, "2"}), EBADMSG,
		PARTS(more, "Acquisition Number (0020,0012): 4 have 1, 1 has 2"));
	refused(EDITS({-1, TAG_IMAGE_TYPE, "ORIGINAL\\PRIMARY\\TOMO_PROJ"}, {2, TAG_IMAGE_TYPE, "ORIGINAL\\PRIMARY"}), EBADMSG,
		PARTS(more, "Image Type, value 3 (0008,0008): 4 have TOMO_PROJ, 1 has none"));
	refused(EDITS({-1, TAG_IMAGE_TYPE, "ORIGINAL\\PRIMARY\\\\LEFT"}, {2, TAG_IMAGE_TYPE, "ORIGINAL\\PRIMARY\\\\RIGHT"}),
		EBADMSG, PARTS(more, "Image Type, value 4 (0008,0008): 4 have LEFT, 1 has RIGHT"));
	refused(EDITS({-1, TAG_FILTER_MATERIAL, "ALUMINUM"}, {0, TAG_FILTER_MATERIAL, "RHODIUM"}), EBADMSG,
		PARTS(more, "Filter Material (0018,7050)"));
	refused(EDITS({-1, TAG_ANODE_TARGET_MATERIAL, "TUNGSTEN"}, {0, TAG_ANODE_TARGET_MATERIAL, "MOLYBDENUM"}), EBADMSG,
		PARTS(more, "Anode Target Material (0018,1191)"));
	refused(EDITS({-1, TAG_KVP, "28"}, {3, TAG_KVP, "29.1"}), EBADMSG, PARTS(more, "KVP (0018,0060): 4 have 28, 1 has 29.1"));
	refused(EDITS({-1, TAG_ACQUISITION_TIME, "101500"}, {3, TAG_ACQUISITION_TIME, "102107"},
		      {4, TAG_ACQUISITION_TIME, "102107"}),
		EBADMSG, PARTS(more, "Acquisition Time (0008,0032): 3 have 101500, 2 have 102107"));
	refused(EDITS({-1, TAG_COMPRESSION_FORCE, "110"}, {0, TAG_COMPRESSION_FORCE, "85"}), EBADMSG,
		PARTS(more, "Compression Force (0018,11A2): 4 have 110, 1 has 85"));
	/* a scout of a tenth of the dose, a mammogram of 25 times as much; one value for all tells nothing */
	refused(EDITS({-1, TAG_EXPOSURE_IN_UAS, "4000"}, {2, TAG_EXPOSURE_IN_UAS, "400"}), EBADMSG,
		PARTS(more, "Exposure in uAs (0018,1153): 4 have 4000, 1 has 400"));
	refused(EDITS({-1, TAG_EXPOSURE, "4"}, {0, TAG_EXPOSURE, "100"}), EBADMSG,
		PARTS(more, "Exposure (0018,1152): 4 have 4, 1 has 100"));
}

/* Systems may give some projections more dose: up to four times the median. */
TEST(test_doses_of_one_exposure)
{
	exam_of(EDITS({-1, TAG_EXPOSURE, "10"}, {0, TAG_EXPOSURE, "40"}, {4, TAG_EXPOSURE, "3"}));
	refused(EDITS({-1, TAG_EXPOSURE, "10"}, {0, TAG_EXPOSURE, "41"}), EBADMSG, PARTS("4 have 10, 1 has 41"));
	refused(EDITS({-1, TAG_EXPOSURE, "9"}, {0, TAG_EXPOSURE, "2"}), EBADMSG, PARTS("4 have 9, 1 has 2"));
}

/* Attributes that say the same. */
TEST(test_contradictions)
{
	refused(EDITS({3, TAG_LATERALITY, "R"}), EBADMSG,
		PARTS("3.dcm", "'L' by Image Laterality (0020,0062)", "'R' by Laterality (0020,0060)"));
	refused(EDITS({-1, TAG_LATERALITY, "R"}), EBADMSG, PARTS("0.dcm", "'R' by Laterality (0020,0060)"));
	refused(EDITS({-1, TAG_VIEW_POSITION, "MLO"}), EBADMSG,
		PARTS("CC by View Code Sequence (0054,0220)", "MLO by View Position (0018,5101)"));
}

/* "A projection from another exam": the attribute, both values, the file. */
TEST(test_other_exam_refused)
{
	refused(EDITS({4, TAG_STUDY_INSTANCE_UID, "1.2.9"}), EBADMSG,
		PARTS("study (0020,000D)", "'1.2.9' in 4.dcm", "'1.2.3.1' in 0.dcm", "another exam"));
	refused(EDITS({2, TAG_SERIES_INSTANCE_UID, "1.2.9"}), EBADMSG, PARTS("series (0020,000E)", "2.dcm", "another exam"));
	refused(EDITS({2, TAG_FRAME_OF_REFERENCE_UID, "1.2.9"}), EBADMSG, PARTS("frame of reference (0020,0052)", "2.dcm"));
	refused(EDITS({3, TAG_IMAGE_LATERALITY, "R"}), EBADMSG, PARTS("laterality", "'R' in 3.dcm", "'L' in 0.dcm"));
	refused(EDITS({3, TAG_PATIENT_ORIENTATION, "P\\L"}), EBADMSG, PARTS("patient orientation (0020,0020)", "P\\L", "3.dcm"));
	refused(EDITS({1, TAG_BODY_PART_THICKNESS, "13.1"}), EBADMSG,
		PARTS("compressed thickness (0018,11A0)", "'13.1' in 1.dcm", "'12' in 0.dcm"));
	refused(EDITS({1, TAG_IMAGER_PIXEL_SPACING, "1\\2"}), EBADMSG, PARTS("pixel pitch (0018,1164)", "'2'", "1.dcm"));
	refused(EDITS({1, TAG_MANUFACTURER_MODEL_NAME, "Log"}), EBADMSG, PARTS("model (0008,1090)", "1.dcm"));
	refused(EDITS({1, TAG_PIXEL_REPRESENTATION, "1"}), EBADMSG, PARTS("pixel representation (0028,0103)", "'1' in 1.dcm"));
	refused(EDITS({-1, TAG_PIXEL_PADDING_VALUE, "1"}, {2, TAG_PIXEL_PADDING_RANGE_LIMIT, "9"}), EBADMSG,
		PARTS("pixel padding range limit (0028,0121)", "'9' in 2.dcm", "'' in 0.dcm"));
	refused(EDITS({4, TAG_SOP_INSTANCE_UID, "1.2.3.4.2"}), EBADMSG, PARTS("1.2.3.4.2", "1.dcm", "4.dcm"));
	refused(EDITS({4, TAG_SOP_INSTANCE_UID, "1.2.3.4.1"}), EBADMSG, PARTS("1.2.3.4.1", "0.dcm", "4.dcm"));
}

/* Headers of one series that name two patients; values are compared as dicom/object/patient.h describes. */
TEST(test_other_patient_refused)
{
	struct patient_statement same = {.same = true};
	char names[N_VIEWS][256];
	const char *paths[N_VIEWS];
	struct exam *exam = NULL;
	struct err err = {0};

	refused(EDITS({3, TAG_PATIENT_ID, "P2"}), ENOTUNIQ, PARTS("Patient ID (0010,0020) differs between 0.dcm and 3.dcm"));
	refused(EDITS({4, TAG_PATIENT_NAME, "Keller^Test"}, {4, TAG_PATIENT_BIRTH_DATE, "19700629"}), ENOTUNIQ,
		PARTS("Patient's Birth Date (0010,0030), Patient's Name (0010,0010) differ between 0.dcm and 4.dcm"));
	refused(EDITS({1, TAG_ISSUER_OF_PATIENT_ID, "H"}, {3, TAG_ISSUER_OF_PATIENT_ID, "J"}), ENOTUNIQ,
		PARTS("Issuer of Patient ID (0010,0021) differs between 1.dcm and 3.dcm"));
	refused(EDITS({2, TAG_PATIENT_NAME, NULL}, {2, TAG_PATIENT_ID, NULL}), ENOTUNIQ, PARTS("neither Patient ID", "2.dcm"));
	for (int i = 0; i < N_VIEWS; i++)
		paths[i] = strcpy(names[i], fixture_path((char[]){(char)('0' + i), '.', 'd', 'c', 'm', '\0'}));
	assert_int_equal(exam_open(paths, N_VIEWS, false, &same, fixture_config, &exam, &err), 0);
	assert_ptr_equal(exam->patient, exam->files[N_VIEWS - 1]);
	exam = exam_close(exam);
	same.header = "/elsewhere/2.dcm";
	assert_int_equal(exam_open(paths, N_VIEWS, false, &same, fixture_config, &exam, &err), 0);
	assert_ptr_equal(exam->patient, exam->files[2]);
	exam = exam_close(exam);
	same.header = "9.dcm";
	assert_int_equal(exam_open(paths, N_VIEWS, false, &same, fixture_config, &exam, &err), -EBADMSG);
	/* padding, case and empty values are no difference */
	exam = exam_of(EDITS({1, TAG_PATIENT_NAME, "M\xDCLLER ^test^^"}, {2, TAG_PATIENT_BIRTH_DATE, NULL},
			     {3, TAG_PATIENT_ID, "p1 "}, {4, TAG_PATIENT_NAME, NULL}));
	assert_null(exam->patient);
}

TEST(test_geometry_refused)
{
	refused(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Other"}), ENOKEY,
		PARTS("no geometry profile", "'Bench Works'", "'Other'"));
	refused(EDITS({-1, TAG_IMAGER_PIXEL_SPACING, "0.8\\0.8"}), EBADMSG, PARTS("(0018,1164)", "0.8 mm", "bench", "1 mm"));
	refused(EDITS({-1, TAG_IMAGER_PIXEL_SPACING, "1\\1.5"}), EBADMSG, PARTS("(0018,1164)", "two equal values"));
	refused(EDITS({-1, TAG_IMAGER_PIXEL_SPACING, NULL}), EBADMSG, PARTS("(0018,1164)", "missing"));
	refused(EDITS({-1, TAG_DISTANCE_SOURCE_TO_DETECTOR, "700"}), EBADMSG,
		PARTS("(0018,1110)", "700 mm", "640 mm", "tolerance 2"));
	refused(EDITS({-1, TAG_DISTANCE_SOURCE_TO_DETECTOR, "1e999"}), EBADMSG, PARTS("0018,1110"));
	refused(EDITS({-1, TAG_DISTANCE_SOURCE_TO_PATIENT, "700"}), EBADMSG, PARTS("(0018,1111)", "700 mm", "640 mm"));
	refused(EDITS({-1, TAG_BODY_PART_THICKNESS, NULL}), EBADMSG, PARTS("(0018,11A0)", "missing"));
	refused(EDITS({-1, TAG_MANUFACTURER, "1234567890123456789012345678901234567890123456789012345678901234567890"}), EBADMSG,
		PARTS("(0008,0070)", "70 bytes, more than 64"));
	refused(EDITS({-1, TAG_BODY_PART_THICKNESS, "4.5"}), EBADMSG, PARTS("(0018,11A0)", "4.5 mm", "5 to 200"));
	refused(EDITS({-1, TAG_BODY_PART_THICKNESS, "NaN"}), EBADMSG, PARTS("0018,11A0"));
	refused(EDITS({-1, TAG_PATIENT_ORIENTATION, NULL}), EBADMSG, PARTS("(0020,0020)", "missing", "chest_wall"));
	refused(EDITS({-1, TAG_PATIENT_ORIENTATION, "L\\A"}), EBADMSG, PARTS("(0020,0020)", "L\\A"));
	refused(EDITS({-1, TAG_PATIENT_ORIENTATION, "A\\H"}), EBADMSG, PARTS("(0020,0020)", "rows", "H"));
	refused(EDITS({-1, TAG_IMAGE_LATERALITY, "B"}), EBADMSG, PARTS("laterality", "'B'"));
	refused(EDITS({-1, TAG_IMAGE_LATERALITY, "L\\R"}), EBADMSG, PARTS("laterality", "'?'"));
	refused(EDITS({-1, TAG_IMAGER_PIXEL_SPACING, "1"}), EBADMSG, PARTS("(0018,1164)", "has one value instead of two"));
	refused(EDITS({-1, TAG_IMAGE_LATERALITY, NULL}), EBADMSG, PARTS("laterality"));
}

/* Just beyond a limit, and just within. */
TEST(test_limits)
{
	static const struct {
		uint32_t tag;
		int image;
		const char *allowed, *refused, *names;
	} rows[] = {
		{TAG_BODY_PART_THICKNESS, -1, "5", "4.99", "(0018,11A0)"},
		{TAG_BODY_PART_THICKNESS, -1, "200", "200.1", "(0018,11A0)"},
		{TAG_DISTANCE_SOURCE_TO_DETECTOR, -1, "642", "642.1", "(0018,1110)"},
		{TAG_DISTANCE_SOURCE_TO_DETECTOR, -1, "638", "637.9", "(0018,1110)"},
		{TAG_POSITIONER_PRIMARY_ANGLE, 4, "75", "75.1", "out of range"},
		{TAG_POSITIONER_PRIMARY_ANGLE, 0, "-75", "-75.1", "out of range"},
		{TAG_RESCALE_SLOPE, 2, "1", "1.001", "(0028,1053)"},
		{TAG_RESCALE_INTERCEPT, 2, "0", "0.001", "(0028,1052)"},
		{TAG_PIXEL_INTENSITY_RELATIONSHIP_SIGN, -1, "1", "0", "(0028,1041)"},
		{TAG_IMAGES_IN_ACQUISITION, -1, "5", "6", "(0020,1002)"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		exam_of(EDITS({rows[i].image, rows[i].tag, rows[i].allowed}));
		refused(EDITS({rows[i].image, rows[i].tag, rows[i].refused}), EBADMSG, PARTS(rows[i].names));
	}
}

TEST(test_intensity_refused)
{
	refused(EDITS({-1, TAG_PIXEL_INTENSITY_RELATIONSHIP, NULL}), EBADMSG, PARTS("(0028,1040)", "LIN, LOG"));
	refused(EDITS({-1, TAG_PIXEL_INTENSITY_RELATIONSHIP, "DISP"}), ENOTSUP, PARTS("(0028,1040)", "'DISP'"));
	refused(EDITS({-1, TAG_PIXEL_INTENSITY_RELATIONSHIP, "LOG"}), ENOTSUP, PARTS("logarithmic", "bench", "log_scale"));
	refused(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Log"}, {-1, TAG_PIXEL_INTENSITY_RELATIONSHIP, "LOG"},
		      {-1, TAG_PIXEL_INTENSITY_RELATIONSHIP_SIGN, "-1"}),
		EBADMSG, PARTS("(0028,1041)", "-1", "sign of one of them"));
	refused(EDITS({2, TAG_LOSSY_IMAGE_COMPRESSION, "01"}), ENOTSUP, PARTS("2.dcm", "(0028,2110)"));
	refused(EDITS({2, DICOM_TAG(0x0028, 0x2112), "10"}), ENOTSUP, PARTS("2.dcm", "(0028,2112) is 10"));
	refused(EDITS({2, DICOM_TAG(0x0028, 0x2114), "ISO_10918_1"}), ENOTSUP, PARTS("2.dcm", "(0028,2114) is ISO_10918_1"));
	refused(EDITS({2, TAG_RESCALE_SLOPE, "2"}), EBADMSG, PARTS("2.dcm", "Rescale Slope (0028,1053) is 2"));
	refused(EDITS({3, TAG_RESCALE_INTERCEPT, "-1000"}), EBADMSG, PARTS("3.dcm", "Rescale Intercept (0028,1052) is -1000"));
	refused(EDITS({-1, TAG_PIXEL_INTENSITY_RELATIONSHIP_SIGN, "3"}), EBADMSG, PARTS("(0028,1041)", "3"));
	refused(EDITS({-1, TAG_MANUFACTURER_MODEL_NAME, "Scaled"}, {0, TAG_DETECTOR_SECONDARY_ANGLE, "1"},
		      {1, TAG_DETECTOR_SECONDARY_ANGLE, "2"}, {2, TAG_DETECTOR_SECONDARY_ANGLE, "3"},
		      {3, TAG_DETECTOR_SECONDARY_ANGLE, "4"}, {4, TAG_DETECTOR_SECONDARY_ANGLE, "5"},
		      {-1, TAG_EXPOSURE_IN_UAS, "4000"}, {2, TAG_EXPOSURE_IN_UAS, "4"}),
		EBADMSG, PARTS("(0018,1153)", "units are mixed"));
}

TEST(test_orientation_refused)
{
	static const struct {
		struct orientation_case orientation;
		int code;
		const char *parts[4];
	} cases[] = {
		{{"L", "G-8310", "A\\R", 0, 0, 0, 0}, ENOTSUP, {"view G-8310", "(0054,0220)", "supported: CC, MLO, ML", NULL}},
		{{"L", "R-10224", "A\\R", 0, 0, 0, 0},
		 EBADMSG,
		 {"(0020,0020)", "rows toward R are impossible in this view", NULL}},
		{{"L", "R-99999", "A\\R", 0, 0, 0, 0}, ENOTSUP, {"view R-99999", NULL}},
		{{"L", "R-10226", "A\\FL", 0, 0, 0, 0}, EBADMSG, {"(0020,0020)", "A\\FL", NULL}}, /* feet and left: not along y */
		{{"L", "R-10242", "A", 0, 0, 0, 0}, EBADMSG, {"(0020,0020)", "two directions", NULL}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exam *exam = NULL;
		struct err err = {0};

		fixture_write_mg(&(struct fixture_mg){.n = 2, .change = put_orientation_case, .ctx = &cases[i].orientation});
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
	    0) /* the writer refuses the value: write an empty one */
		assert_true(dicom_put_empty(item, TAG_X_RAY_SOURCE_ISOCENTER_PRIMARY_ANGLE, &err) >= 0);
}

/* Another attribute of the frame has an angle, with another sign and origin. */
static void no_source_angle(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	(void)root;
	(void)shared;
	assert_true(dicom_put_empty(dicom_item_at(frames[2], TAG_ISOCENTER_REFERENCE_SYSTEM_SEQUENCE, 0),
				    TAG_X_RAY_SOURCE_ISOCENTER_PRIMARY_ANGLE, NULL) >= 0);
	put_number(add(frames[2], TAG_POSITIONER_POSITION_SEQUENCE), TAG_POSITIONER_PRIMARY_ANGLE, 3);
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
	for (int i = 0; i < N_VIEWS; i++) /* 30 to 50 degrees are valid projection angles */
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

static void left_of_series(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	(void)shared;
	(void)frames;
	put(root, TAG_LATERALITY, "L");
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

/* Frames of two sweeps in one object. */
static void two_sweeps(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	(void)root;
	(void)shared;
	for (int i = 0; i < N_VIEWS; i++)
		put(add(frames[i], TAG_FRAME_CONTENT_SEQUENCE), TAG_FRAME_ACQUISITION_DATE_TIME,
		    i % 2 ? "20260629101500" : "20260629102107");
}

static void two_events(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	(void)root;
	(void)shared;
	for (int i = 0; i < N_VIEWS; i++)
		put(add(frames[i], TAG_IRRADIATION_EVENT_IDENTIFICATION_SEQUENCE), TAG_IRRADIATION_EVENT_UID,
		    i % 2 ? "1.2.1" : "1.2.2");
}

static void turned_frame(struct dicom_item *root, struct dicom_item *shared, struct dicom_item *const *frames)
{
	(void)root;
	(void)shared;
	put(add(frames[1], TAG_PATIENT_ORIENTATION_IN_FRAME_SEQUENCE), TAG_PATIENT_ORIENTATION, "A\\FL");
}

TEST(test_projection_refused)
{
	static const struct {
		void (*change)(struct dicom_item *, struct dicom_item *, struct dicom_item *const *);
		int code;
		const char *parts[4];
	} cases[] = {
		{view_lm, EBADMSG, {"(0018,9545) is -50 degrees; allowed in a view LM: 80 to 100", NULL}},
		{view_magnified, ENOTSUP, {"magnification", NULL}},
		{equal_frames, EBADMSG, {"same angle", "frame 3", "frame 4", NULL}},
		{nan_angle, EBADMSG, {"0.dcm, frame 3", NULL}},
		{no_source_angle,
		 EBADMSG,
		 {"0.dcm: the source's angle (0018,9543) is present in frame 1 and missing in frame 3", NULL}},
		{gantry_flat, EBADMSG, {"gantry", "(0018,9545)", "MLO", NULL}},
		{oblique_cc, EBADMSG, {"(0018,9545) is -50 degrees", "in a CC view", NULL}},
		{other_side, EBADMSG, {"(0018,9545) is -50 degrees", "laterality is L", NULL}},
		{left_of_series, EBADMSG, {"'R' by Frame Laterality (0020,9072) and 'L' by Laterality (0020,0060)", NULL}},
		{no_support_angle, EBADMSG, {"(0018,9545) is missing", "frame 1", NULL}},
		{other_sign, EBADMSG, {"(0028,1041) is '-1' in frame", "'1' in frame", NULL}},
		{two_sweeps,
		 EBADMSG,
		 {"Frame Acquisition DateTime (0018,9074): 3 have 20260629102107, 2 have 20260629101500; they are frames of one "
		  "object",
		  NULL}},
		{two_events, EBADMSG, {"Irradiation Event UID (0008,3010): 3 have 1.2.2, 2 have 1.2.1", NULL}},
		{turned_frame, EBADMSG, {"(0020,0020) is 'A\\FL' in frame 2", NULL}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exam *exam = NULL;
		struct err err = {0};

		fixture_write_bp(cases[i].change);
		expect_refusal(fixture_open(1, &exam, &err), cases[i].code, &err, exam, cases[i].parts);
	}
}

TEST(test_broken_files)
{
	struct exam *exam = NULL;
	struct err err = {0};

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	assert_int_equal(truncate(fixture_path("2.dcm"), 1200), 0);
	expect_refusal(fixture_open(N_VIEWS, &exam, &err), EBADMSG, &err, exam, PARTS("2.dcm"));
	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	assert_int_equal(unlink(fixture_path("4.dcm")), 0);
	assert_true(fixture_open(N_VIEWS, &exam, &err) < 0);
	assert_non_null(strstr(err.msg, "4.dcm"));
	assert_int_equal(fixture_open(0, &exam, &err), -EBADMSG);
}

/* A view of one value is neither an object nor air. */
TEST(test_empty_view)
{
	static uint16_t same[ROWS * COLUMNS];
	uint16_t values[ROWS * COLUMNS];
	struct exam *exam = NULL;
	struct err err = {0};
	char says[100];
	FILE *f;

	for (int value = 0; value <= 4095; value += 4095) { /* of 12 bits */
		for (int i = 0; i < ROWS * COLUMNS; i++)
			same[i] = (uint16_t)value;
		fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
		f = fopen(fixture_path("2.dcm"), "r+b");
		assert_non_null(f);
		assert_int_equal(fseek(f, -(long)sizeof(same), SEEK_END), 0);
		assert_int_equal(fwrite(same, sizeof(same), 1, f), 1);
		assert_int_equal(fclose(f), 0);
		assert_int_equal(fixture_open(N_VIEWS, &exam, &err), 0);
		assert_int_equal(exam_read_view(exam, 1, values, &err), 0);
		assert_int_equal(exam_read_view(exam, 2, values, &err), -EBADMSG);
		snprintf(says, sizeof(says), "2.dcm, frame 1: every stored value is %d, which is no projection", value);
		assert_string_equal(err.msg, says);
	}
}

TESTS_SETUP(fixture_start, fixture_stop);
