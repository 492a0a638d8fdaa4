/* SPDX-License-Identifier: Apache-2.0 */
/* Test case_read_facts(): each kind recognises only its own objects, cases have the key of their kind, and other objects have a
 * reason.
 */
#include "node/reconstruct/reconstruct_internal.h"
#include "tests/node/tomo/exam_edits.h"
#include "tests/test.h"

/* ---- an object of each kind, as 0.dcm ---- */

static void write_dbt(void)
{
	fixture_write_mg(&(struct fixture_mg){.n = 1});
}

static void write_sinogram(const struct sinogram_arrays *a, const char *file)
{
	char *set[] = {"PatientPosition=HFS", "AcquisitionDate=20260601", "AcquisitionTime=101500", "Radionuclide=F18"};
	struct sinogram_import conf = {.set = set, .n_set = 4, .folder = fixture_folder, .now = 1782726000};
	struct err err = {0};
	size_t n = 0;

	assert_done(sinogram_write(a, &conf, &n, &err), &err);
	assert_int_equal(n, 1);
	assert_int_equal(rename(fixture_path(file), fixture_path("0.dcm")), 0);
}

static float values[6 * 4 * 5];

static void write_pet(void)
{
	static struct michelogram_segment direct = {0, 0, 6};
	static const struct michelogram m = {.scanner = {6, 16, 6.54, 100, 7, 3},
					     .n_radial = 5,
					     .n_angles = 4,
					     .arc_corrected = true,
					     .n_segments = 1,
					     .segments = &direct};
	struct sinogram_arrays a = {.m = &m, .duration = 600};

	a.values[SINOGRAM_EMISSION] = values;
	write_sinogram(&a, "emission.dcm");
}

static void write_parallel(void)
{
	static const struct parallel_scan beams = {
		.n_slices = 6, .n_angles = 4, .n_radial = 5, .bin = 1.5, .slice = 2, .arc = 180};
	struct sinogram_arrays a = {.beams = &beams, .duration = NAN};

	a.values[SINOGRAM_LINES] = values;
	write_sinogram(&a, "lines.dcm");
}

static void (*const writers[KIND_COUNT])(void) = {
#define X(constant, name) [KIND_##constant] = write_##name,
	KINDS(X)
#undef X
};

TEST(each_its_own)
{
	struct case_facts f;
	struct err err = {0};

	for (int i = 0; i < KIND_COUNT; i++) {
		struct dicom_file *file = NULL;

		writers[i]();
		assert_int_equal(dicom_open(fixture_path("0.dcm"), &file, &err), 0);
		assert_done(case_read_facts(fixture_path("0.dcm"), &f, &err), &err);
		assert_ptr_equal(f.kind, kind_of((enum case_kind)i));
		assert_string_equal(f.reason, "");
		assert_false(f.refused);
		for (int k = 0; k < KIND_COUNT; k++)
			assert_int_equal(reconstruct_kind_of((enum case_kind)k)->recognise(file, &f, &err), i == k);
		dicom_close(file);
		fixture_clean();
	}
}

/* What routes are chosen by: printable ASCII without blanks at the ends, one ? for each other letter. */
TEST(what_routes_are_chosen_by)
{
	struct case_facts f;
	struct err err = {0};

	fixture_write_mg(&(struct fixture_mg){.n = 1,
					      .change = edit,
					      .ctx = EDITS({-1, TAG_SPECIFIC_CHARACTER_SET, "ISO_IR 192"},
							   {-1, TAG_STUDY_DESCRIPTION,
							    " Brust \xC3\x9C"
							    "bersicht"},
							   {-1, TAG_PROTOCOL_NAME, "TOMO"}, {-1, TAG_STATION_NAME, NULL},
							   {-1, TAG_INSTITUTION_NAME,
							    "0123456789012345678901234567890123456789"
							    "0123456789012345678901234567890123456789"})});
	assert_int_equal(case_read_facts(fixture_path("0.dcm"), &f, &err), 0);
	assert_string_equal(f.route.kind, "dbt");
	assert_string_equal(f.route.calling, "");
	assert_string_equal(f.route.value[ROUTE_STUDY_DESCRIPTION], "Brust ?bersicht");
	assert_string_equal(f.route.value[ROUTE_PROTOCOL_NAME], "TOMO");
	assert_string_equal(f.route.value[ROUTE_STATION], "");
	assert_int_equal(strlen(f.route.value[ROUTE_INSTITUTION]), 64); /* of 80 */
	assert_string_equal(f.route.value[ROUTE_VIEW], "LCC");
	fixture_clean();
	write_pet();
	assert_int_equal(case_read_facts(fixture_path("0.dcm"), &f, &err), 0);
	assert_string_equal(f.route.value[ROUTE_VIEW], "HFS");
	fixture_clean();
}

/* The key contains the attributes of the kind in order, and kind_key_attribute() extracts each of them. */
TEST(keys)
{
	static const char *const expected[] = {[CASE_STUDY] = "1.2",
					       [CASE_SERIES] = "1.3",
					       [CASE_LATERALITY] = "R",
					       [CASE_VIEW] = "MLO",
					       [CASE_FRAME_OF_REFERENCE] = "1.4"};
	struct case_facts f = {.study = "1.2", .series = "1.3", .laterality = "R", .view = "MLO", .frame_of_reference = "1.4"};
	char key[400], part[65];

	for (int i = 0; i < KIND_COUNT; i++) {
		f.kind = kind_of((enum case_kind)i);
		case_key(&f, key, sizeof(key));
		for (enum case_attribute which = CASE_STUDY; which <= CASE_FRAME_OF_REFERENCE; which++) {
			bool has = false;

			for (size_t k = 0; f.kind->key[k]; k++)
				has = has || f.kind->key[k] == which;
			kind_key_attribute(f.kind, key, which, part, sizeof(part));
			assert_string_equal(part, has ? expected[which] : "");
		}
		kind_key_attribute(f.kind, "", CASE_STUDY, part, sizeof(part));
		assert_string_equal(part, "");
	}
	kind_key_attribute(NULL, "1|2", CASE_STUDY, part, sizeof(part));
	assert_string_equal(part, "");
	f.kind = &kind_dbt;
	case_key(&f, key, sizeof(key));
	assert_string_equal(key, "1.2|1.3|R|MLO|1.4");
	f.kind = &kind_pet;
	case_key(&f, key, sizeof(key));
	assert_string_equal(key, "1.2|1.3|1.4");
}

/* A table with an empty member is refused. */
TEST(empty_slots)
{
	struct err err = {0};

	for (int i = 0; i < KIND_COUNT; i++) {
		const struct reconstruct_kind *whole = reconstruct_kind_of((enum case_kind)i);

		assert_int_equal(reconstruct_kind_check(whole, &err), 0);
		for (size_t at = 0; at < sizeof(*whole); at += sizeof(void *)) {
			struct reconstruct_kind k = *whole;

			memset((char *)&k + at, 0, sizeof(void *));
			assert_error(reconstruct_kind_check(&k, &err), &err, EINVAL, "is empty");
		}
	}
}

/* ---- tomosynthesis and other objects ---- */

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

/* A Mammomat's slices have neither a view code nor the modality of mammograms. */
static void siemens_ct(struct dicom_item *root, int i, const void *ctx)
{
	(void)i;
	put(root, TAG_SOP_CLASS_UID, ctx);
	put(root, TAG_MODALITY, "CT");
	put(root, TAG_MANUFACTURER, "SIEMENS");
	put(root, TAG_MANUFACTURER_MODEL_NAME, "MAMMOMAT Inspiration");
	assert_true(dicom_put_empty(root, TAG_VIEW_CODE_SEQUENCE, NULL) >= 0);
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

/* ctx: the type of raw data of a Siemens mMR */
static void siemens_raw(struct dicom_item *root, int i, const void *ctx)
{
	(void)i;
	put(root, TAG_SOP_CLASS_UID, "1.3.12.2.1107.5.9.1");
	put(root, TAG_MANUFACTURER_MODEL_NAME, "Biograph_mMR");
	put(root, TAG_IMAGE_TYPE, ctx);
}

/* List mode and normalisation are one case of their study, whatever their series are; other types are named. */
TEST(raw_data)
{
	static const struct {
		const char *type, *lacks;
	} cases[] = {{"ORIGINAL\\PRIMARY\\PET_LISTMODE", "the normalisation (PET_NORM)"},
		     {"ORIGINAL\\PRIMARY\\PET_NORM", "the list mode (PET_LISTMODE)"}};
	char key[400], expected[DICOM_UID_SIZE + 2];
	struct case_facts f;

	for (size_t i = 0; i < 2; i++) {
		fixture_write_mg(&(struct fixture_mg){.n = 1, .change = siemens_raw, .ctx = cases[i].type});
		assert_int_equal(case_read_facts(fixture_path("0.dcm"), &f, NULL), 0);
		assert_ptr_equal(f.kind, &kind_pet);
		assert_int_equal(f.expected, 2);
		assert_string_equal(f.lacks, cases[i].lacks);
		assert_true(f.series[0] && f.frame_of_reference[0]);
		case_key(&f, key, sizeof(key));
		snprintf(expected, sizeof(expected), "%s||", f.study);
		assert_string_equal(key, expected);
	}
	fixture_write_mg(&(struct fixture_mg){.n = 1, .change = siemens_raw, .ctx = "ORIGINAL\\PRIMARY\\PET_EM_SINO"});
	assert_int_equal(case_read_facts(fixture_path("0.dcm"), &f, NULL), 0);
	assert_true(!f.kind && f.refused);
	assert_non_null(strstr(f.reason, "compressed by the scanner"));
}

TEST(tomosynthesis)
{
	static const struct {
		const char *sop_class;
		void (*change)(struct dicom_item *, int, const void *);
		bool refused;
		const char *part;
		bool tomo; /* it is a mammogram, so that exam_open() refuses it with the same reason */
	} cases[] = {
		{CLASS_SECONDARY_CAPTURE, hologic_capture, true, "Hologic SCO", true},
		{CLASS_SECONDARY_CAPTURE, class_of, false, "no projections"},
		{CLASS_CT, hologic_ct, true, "tomosynthesis slices stored as CT Image", true},
		{CLASS_CT, siemens_ct, true, "tomosynthesis slices stored as CT Image", true},
		{CLASS_CT, breast_ct, false, "no projections"},
		{CLASS_RAW_DATA, class_of, true, "without the private block of sinogram objects"},
		{"1.2.840.113619.4.30", class_of, true, "GE raw data (private class 1.2.840.113619.4.30)"},
		{"1.3.12.2.1107.5.9.1", class_of, true, "(private class 1.3.12.2.1107.5.9.1): a closed format"},
		{"1.2.840.113619.4.99", class_of, true, "private SOP class 1.2.840.113619.4.99"},
		{CLASS_MG_PRESENTATION, class_of, false, "For Presentation", true},
		{"ORIGINAL\\PRIMARY\\STEREO_PLUS", image_type, false, "STEREO_PLUS: a stereotactic image", true},
		{"DERIVED\\PRIMARY\\TOMOSYNTHESIS\\GENERATED_2D", image_type, false, "GENERATED_2D: computed", true},
		{CLASS_TOMOSYNTHESIS, class_of, false, "already reconstructed", true},
	};
	static const char *const projections[] = {"ORIGINAL\\PRIMARY\\TOMO_PROJ", "ORIGINAL\\PRIMARY\\TOMO_SCOUT",
						  "ORIGINAL\\PRIMARY\\", "ORIGINAL\\PRIMARY", "DERIVED\\PRIMARY\\POSTBIOPSY"};
	struct case_facts f;
	struct err err = {0};
	char key[400];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exam *exam = NULL;

		fixture_write_mg(&(struct fixture_mg){.n = 2, .change = cases[i].change, .ctx = cases[i].sop_class});
		assert_done(case_read_facts(fixture_path("0.dcm"), &f, &err), &err);
		assert_null(f.kind);
		assert_int_equal(f.refused, cases[i].refused);
		if (!strstr(f.reason, cases[i].part))
			fail_msg("'%s' does not hold '%s'", f.reason, cases[i].part);
		expect_refusal(fixture_open(2, &exam, &err), ENOTSUP, &err, exam,
			       PARTS(cases[i].tomo ? cases[i].part : "no projections"));
	}
	for (size_t i = 0; i < sizeof(projections) / sizeof(projections[0]); i++) { /* these are, or may be, projections */
		fixture_write_mg(&(struct fixture_mg){.n = 2, .change = image_type, .ctx = projections[i]});
		assert_int_equal(case_read_facts(fixture_path("0.dcm"), &f, &err), 0);
		assert_ptr_equal(f.kind, &kind_dbt);
	}
	fixture_write_mg(&(struct fixture_mg){.n = 1, .change = strange_words});
	assert_int_equal(case_read_facts(fixture_path("0.dcm"), &f, &err), 0);
	assert_string_equal(f.view, "C?"
				    "?-1");
	assert_string_equal(f.laterality, "?");
	fixture_write_mg(&(struct fixture_mg){.n = 3});
	assert_int_equal(case_read_facts(fixture_path("1.dcm"), &f, &err), 0);
	assert_ptr_equal(f.kind, &kind_dbt);
	assert_string_equal(f.reason, "");
	assert_string_equal(f.laterality, "L");
	assert_string_equal(f.view, "CC");
	assert_int_equal(f.expected, 3);
	assert_int_equal(f.frames, 1);
	assert_true(f.angle == -5);
	case_key(&f, key, sizeof(key));
	assert_string_equal(key, "1.2.3.1|1.2.3.2|L|CC|1.2.3.3");
	fixture_write_bp(NULL);
	assert_int_equal(case_read_facts(fixture_path("0.dcm"), &f, &err), 0);
	assert_ptr_equal(f.kind, &kind_dbt);
	assert_string_equal(f.laterality, "R");
	assert_string_equal(f.view, "MLO");
	assert_int_equal(f.expected, 1);
	assert_int_equal(f.frames, N_VIEWS);
}

TEST(broken)
{
	struct case_facts f = {.frames = 77};
	struct err err = {0};

	fixture_write_mg(&(struct fixture_mg){.n = 1});
	assert_int_equal(truncate(fixture_path("0.dcm"), 1200), 0);
	assert_int_equal(case_read_facts(fixture_path("0.dcm"), &f, &err), -EBADMSG);
	assert_int_equal(case_read_facts(fixture_path("nothing.dcm"), &f, &err), -ENOENT);
	assert_int_equal(f.frames, 77); /* written only on success */
}

TESTS_SETUP(fixture_start, fixture_stop);
