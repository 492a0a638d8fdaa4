/* SPDX-License-Identifier: Apache-2.0 */
/* What a person sets replaces what a file of --like says in another attribute. */
#include "dicom/object/attribute.h"
#include "dicom/object/item_writer.h"
#include "node/sinogram/fact_origins.h"
#include "node/sinogram/sinogram_internal.h"
#include "tests/node/sinogram/sinogram_fixture.h"
#include "tests/test.h"

/* Save a PET image of a patient on the back, feet first, in codes; F-18; from 10:00. */
static void save_like(void)
{
	struct err err = {0};
	struct dicom_file *file;
	struct item_writer root = {.err = &err}, item;

	assert_int_equal(dicom_new(CLASS_PET, "1.2.3.4", &file, &err), 0);
	root.item = dicom_root(file);
	item_put_text(&root, TAG_STUDY_INSTANCE_UID, "1.2.3");
	item_put_text(&root, TAG_PATIENT_ID, "7");
	item_put_text(&root, TAG_ACQUISITION_DATE, "20260601");
	item_put_text(&root, TAG_ACQUISITION_TIME, "100000");
	item_put_text(&root, TAG_PATIENT_POSITION, "FFS");
	item_put_code(&root, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE, "102541007", "SCT", "feet-first");
	item = item_begin(&root, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE);
	item_put_code(&item, TAG_PATIENT_ORIENTATION_MODIFIER_CODE_SEQUENCE, "40199007", "SCT", "supine");
	item_end(&root, &item);
	item = item_begin(&root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE);
	item_put_code(&item, TAG_RADIONUCLIDE_CODE, "77004003", "SCT", "^18^Fluorine");
	item_put_text(&item, TAG_RADIONUCLIDE_HALF_LIFE, "6586.2");
	item_put_text(&item, TAG_RADIONUCLIDE_POSITRON_FRACTION, "0.967");
	item_put_text(&item, TAG_RADIONUCLIDE_TOTAL_DOSE, "2e8");
	item_put_text(&item, TAG_RADIOPHARMACEUTICAL_START_DATE_TIME, "20260601090000");
	item_put_text(&item, TAG_RADIOPHARMACEUTICAL, "FDG F-18");
	item_put_code(&item, TAG_RADIOPHARMACEUTICAL_CODE, "35321007", "SCT", "Fluorodeoxyglucose F^18^");
	item_end(&root, &item);
	assert_int_equal(root.rc, 0);
	assert_int_equal(dicom_write(in_folder("like"), file, &err), 0);
	dicom_close(file);
}

TEST(test_set_replaces_like, .teardown = clean)
{
	static const struct {
		char *set[2];
		const char *says; /* NULL: accepted, and the rest is given */
		const char *position, *nuclide, *date, *time;
		double half_life;
		const char *origin; /* part of the text about the origin of facts */
	} cases[] = {
		{{NULL}, NULL, "FFS", "^18^Fluorine", "20260601", "100000", 6586.2, "half-life: --like: Radion"},
		{{"PatientPosition=HFP"}, NULL, "HFP", "^18^Fluorine", "20260601", "100000", 6586.2, "position: set: P"},
		{{"0018,5100=HFDL"}, NULL, "HFDL", "^18^Fluorine", "20260601", "100000", 6586.2, "duration: header: im"},
		{{"RadionuclideHalfLife=1000"}, NULL, "FFS", "", "20260601", "100000", 1000, "nuclide: none"},
		{{"RadionuclideHalfLife=6590"}, NULL, "FFS", "^18^Fluorine", "20260601", "100000", 6590, "start: --like"},
		{{"Radionuclide=C11"}, NULL, "FFS", "^11^Carbon", "20260601", "100000", 1221.84, "injection: none"},
		{{"Radionuclide=Ga68"}, NULL, "FFS", "^68^Gallium", "20260601", "100000", 4062.6, "dose: none"},
		{{"Radionuclide=F-18"}, NULL, "FFS", "^18^Fluorine", "20260601", "100000", 6586.2, "positron fraction: --like"},
		{{"Radionuclide=C11", "Radiopharmaceutical=FDG F18"}, "\"FDG F18\", which names F18"},
		{{"Radionuclide=C11", "RadionuclideHalfLife=1000"}, "that of the radionuclide C11"},
		{{"AcquisitionTime=113000"},
		 NULL,
		 "FFS",
		 "^18^Fluorine",
		 "20260601",
		 "113000",
		 6586.2,
		 "start: date --like: Acquisition Date (0008,0022), time set: AcquisitionTime\n"},
		{{"PatientName=A^B"},
		 NULL,
		 "FFS",
		 "^18^Fluorine",
		 "20260601",
		 "100000",
		 6586.2,
		 "patient: ID --like: Patient ID (0010,0020), name set: PatientName\n"},
		{{"AcquisitionDateTime=20260602113000"}, NULL, "FFS", "^18^Fluorine", "20260602", "113000", 6586.2, "start: set"},
		{{"AcquisitionDateTime=20260602113000", "AcquisitionTime=113100"}, "but (0008,0022) and"},
		{{"AcquisitionDateTime=20260602"}, "AcquisitionDateTime=20260602; allowed: YYYYMMDDHHMMSS"},
		{{"AcquisitionDateTime=20260602113000+0100"}, "an offset is set as Timezone"},
	};

	save_like();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sinogram_arrays a = {.m = &geometry, .duration = 60};
		char like[400], origins[FACT_ORIGINS_SIZE];
		struct sinogram_import conf = {.set = (char *const *)cases[i].set,
					       .n_set = cases[i].set[1]	  ? 2
							: cases[i].set[0] ? 1
									  : 0,
					       .folder = folder,
					       .like = like,
					       .now = 1782726000};
		struct err err = {0};
		struct sinogram *s;
		size_t n;
		int rc;

		snprintf(like, sizeof(like), "%s", in_folder("like"));
		a.values[SINOGRAM_EMISSION] = values[SINOGRAM_EMISSION];
		rc = sinogram_write(&a, &conf, &n, &err);
		if (cases[i].says ? rc >= 0 || !strstr(err.msg, cases[i].says) : rc < 0)
			fail_msg("case %zu: %d \"%s\"", i, rc, err.msg);
		if (rc < 0)
			continue;
		s = open_all(&err);
		if (!s)
			fail_msg("case %zu: %s", i, err.msg);
		assert_string_equal(s->facts.patient_position, cases[i].position);
		assert_string_equal(s->facts.radionuclide, cases[i].nuclide);
		assert_string_equal(s->facts.acquisition_date, cases[i].date);
		assert_string_equal(s->facts.acquisition_time, cases[i].time);
		assert_true(fabs(s->facts.half_life - cases[i].half_life) < 0.01);
		assert_string_equal(s->facts.radiopharmaceutical, strcmp(cases[i].nuclide, "^18^Fluorine") ? "" : "FDG F-18");
		fact_origins_read(s, false, origins);
		if (!strstr(origins, cases[i].origin))
			fail_msg("case %zu: \"%s\" is not in %s", i, cases[i].origin, origins);
		sinogram_close(s);
		assert_int_equal(unlink(in_folder("emission.dcm")), 0);
	}
}

/* An origin is that of the value at the import: where another one is in the object now, the object is the origin. */
TEST(test_origins_of_an_object, .teardown = clean)
{
	static const struct {
		uint32_t tag; /* of an attribute with another value; 0: none */
		const char *value, *origin;
	} cases[] = {
		{0, "", "dose: set: RadionuclideTotalDose\n"},
		{0, "", "start: set: AcquisitionDate\n"},
		{0, "", "injection: none\n"},
		{TAG_RADIONUCLIDE_TOTAL_DOSE, "370000000.0", "dose: set: RadionuclideTotalDose\n"}, /* the same */
		{TAG_RADIONUCLIDE_TOTAL_DOSE, "3.71e8", "dose: object: Radionuclide Total Dose (0018,1074)\n"},
		{TAG_PATIENT_WEIGHT, "71", "weight: object: Patient's Weight (0010,1030)\n"},
		{TAG_PATIENT_WEIGHT, "0", "weight: none\n"},
		{TAG_PATIENT_ID, "8", "patient: object: Patient ID (0010,0020)\n"},
		{TAG_PATIENT_NAME, "A^B", "patient: object: Patient ID (0010,0020)\n"},
		{TAG_STUDY_INSTANCE_UID, "1.2.9", "study: object: Study Instance UID (0020,000D)\n"},
		{TAG_RADIONUCLIDE_HALF_LIFE, "0", "half-life: none\n"},
		{TAG_RADIONUCLIDE_HALF_LIFE, "6600", "half-life: object: Radionuclide Half Life (0018,1075)\n"},
		{TAG_RADIONUCLIDE_POSITRON_FRACTION, "0.9", "fraction: object: Radionuclide Positron Fraction (0018,1076)\n"},
		{TAG_RADIOPHARMACEUTICAL_START_DATE_TIME, "garbage", "injection: none\n"},
		{TAG_RADIOPHARMACEUTICAL_START_DATE_TIME, "2026060109",
		 "injection: object: Radiopharmaceutical Start DateTime (0018,1078)\n"},
		{TAG_RADIOPHARMACEUTICAL_START_TIME, "0900", "injection: object: Radiopharmaceutical Start Time (0018,1072)\n"},
		{TAG_ACQUISITION_TIME, "abc", "start: object: Series Date (0008,0021)\n"},
		{TAG_ACQUISITION_DATE, "", "start: object: Series Date (0008,0021)\n"},
		{TAG_ACQUISITION_TIME, "101501", "start: object: Acquisition Date (0008,0022)\n"},
		{TAG_SERIES_TIME, "101300", "start: set: AcquisitionDate\n"}, /* not used */
		{TAG_ACTUAL_FRAME_DURATION, "601000", "duration: object: Actual Frame Duration (0018,1242)\n"},
		{TAG_DECAY_CORRECTION, "START", "decay correction: object: Decay Correction (0054,1102)\n"},
	};
	char origins[FACT_ORIGINS_SIZE], *set[N_BASICS + 2] = {[N_BASICS] = "SeriesDate=20260601", "SeriesTime=101400"};

	memcpy(set, basics, sizeof(basics));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};
		struct dicom_item *root;
		struct sinogram *s;

		write_objects(EMISSION, 0, N_BASICS + 2, set);
		s = open_all(&err);
		assert_non_null(s);
		root = dicom_root(s->files[0]);
		if (cases[i].tag)
			dicom_put_text(cases[i].tag >> 16 == 0x0018 && cases[i].tag != TAG_ACTUAL_FRAME_DURATION
					       ? dicom_item_at(root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0)
					       : root,
				       cases[i].tag, cases[i].value, &err);
		s->no_position = true;
		fact_origins_read(s, true, origins);
		if (!strstr(origins, cases[i].origin) || !strstr(origins, "position: assumed\n") ||
		    !strstr(origins, "calibration factor: configuration: calibration of the scanner\n"))
			fail_msg("case %zu: \"%s\" is not in %s", i, cases[i].origin, origins);
		sinogram_close(s);
		list_folder(true);
	}
}

/* The text of an object of outside. */
TEST(test_origins_of_another_text, .teardown = clean)
{
	static const struct {
		const char *begin, *end; /* around the mark of the dose; NULL: without it */
		const char *origin;
	} cases[] = {
		{"dose: a\x01"
		 "b\\c",
		 "\n", "dose: a?b?c\nin"},
		{"dose: header", "\nweight: ", "weight: object: Patient's Weight (0010,1030)\n"}, /* no line */
		{"<b>: x\ndose: header", "\n", "dose: object: Radionuclide Total Dose (0018,1074)\n"},
		{"dose: header\n", NULL, "dose: object: Radionuclide Total Dose (0018,1074)\n"},
		{"dose: header", "X\n", "dose: object: Radionuclide Total Dose (0018,1074)\n"},
		{"", NULL, "start: object: Acquisition Date (0008,0022)\n"},
	};
	char origins[FACT_ORIGINS_SIZE], text[2 * FACT_ORIGINS_SIZE], mark[8];
	struct err err = {0};
	struct dicom_item *root;
	struct sinogram *s;
	uint32_t tag;

	write_objects(EMISSION, 0, N_BASICS, basics);
	s = open_all(&err);
	assert_non_null(s);
	root = dicom_root(s->files[0]);
	tag = sinogram_tag(private_block(root, SINOGRAM_GROUP, SINOGRAM_CREATOR), SINOGRAM_ORIGINS);
	assert_int_equal(dicom_get_text(root, tag, text, sizeof(text), NULL), 1);
	snprintf(mark, sizeof(mark), "%.6s", strchr(strstr(text, "dose: "), '\n') - 6);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "%s%s%s", cases[i].begin, cases[i].end ? mark : "",
			 cases[i].end ? cases[i].end : "");
		assert_int_equal(dicom_put_private(root, SINOGRAM_GROUP, SINOGRAM_CREATOR, SINOGRAM_ORIGINS, "UT", text, &err),
				 0);
		fact_origins_read(s, false, origins);
		if (!strstr(origins, cases[i].origin))
			fail_msg("case %zu: \"%s\" is not in %s", i, cases[i].origin, origins);
	}
	sinogram_close(s);
}

TESTS_SETUP(make_folder, remove_folder);
