/* SPDX-License-Identifier: Apache-2.0 */
/* Test sinogram objects: written values are read back, in any order of roles and chunks; values for quantification and
 * orientation are read from standard attributes. */
#include "dicom/object/dicom_tags.h"
#include "tests/node/sinogram/sinogram_facts.h"
#include "tests/node/sinogram/sinogram_fixture.h"
#include "tests/test.h"

TEST(test_roundtrip, .teardown = clean)
{
	static const unsigned roles[] = {EMISSION, EMISSION | ADDITIVE, ALL};
	struct err err;
	struct sinogram *s;

	for (size_t i = 0; i < 3; i++)
		for (int chunked = 0; chunked < 2; chunked++) {
			size_t n = write_objects(roles[i], chunked ? 100 : 0, N_BASICS, basics);

			s = open_all(&err);
			if (!s)
				fail_msg("%s", err.msg);
			assert_int_equal(s->n_files, n);
			assert_int_equal(s->part[SINOGRAM_EMISSION].n_chunks, chunked ? (BINS * 4 + 99) / 100 : 1);
			check_values(s, roles[i]);
			assert_true(s->centre[0] == 1 && s->centre[1] == 2 && s->centre[2] == 3.5);
			sinogram_close(s);
			list_folder(true);
		}
	assert_null(sinogram_close(NULL));
}

/* Equal data have equal UIDs, different data different ones. */
TEST(test_uids, .teardown = clean)
{
	struct sinogram_facts f[4];
	char *other[] = {"PatientPosition=HFP"};
	struct err err = {0};

	for (int i = 0; i < 4; i++) {
		write_objects(i == 2 ? EMISSION | ADDITIVE : EMISSION, 0, i == 3 ? 1 : N_BASICS, i == 3 ? other : basics);
		assert_int_equal(read_facts(in_folder("emission.dcm"), &f[i], &err), 1);
		list_folder(true);
	}
	assert_string_equal(f[0].sop_instance, f[1].sop_instance);
	assert_string_equal(f[0].series, f[1].series);
	assert_string_not_equal(f[0].series, f[2].series);
	assert_string_not_equal(f[0].series, f[3].series);
	assert_int_equal(f[0].role, SINOGRAM_EMISSION);
	assert_true(f[0].chunk == 0 && f[0].n_chunks == 1 && f[0].instances == 1 && f[2].instances == 2);
	assert_true(f[0].bytes == BINS * 4 && f[0].chunk_bytes == BINS * 4);
}

/* Moments that are none count as missing (pet_facts_read()). */
TEST(test_moments)
{
	static const struct {
		const char *date, *time;
		double seconds; /* since 1970; negative: not a moment */
	} cases[] = {
		{"19700102", "000001", 86401},	{"20260601", "101500.5", 1780308900},
		{"20240229", "23", 1709247600}, {"20230229", "10", -1},
		{"20261301", "10", -1},		{"20260600", "10", -1},
		{"2026-06-", "10", -1},		{"", "10", -1},
		{"20260601", "", -1},		{"20260601", "2460", -1},
		{"20260601", "10:15", -1},	{"20260601", "101", -1},
		{"20260601", "1015.5", -1},
	};
	double seconds;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool valid = pet_facts_moment(cases[i].date, cases[i].time, &seconds);

		if (valid != (cases[i].seconds >= 0) || (valid && fabs(seconds - cases[i].seconds) > 0.6))
			fail_msg("%s %s: %s, %.1f", cases[i].date, cases[i].time, valid ? "valid" : "refused", seconds);
	}
}

/* When it was injected, in s after 1 June 2026 00:00 on the clock of the object. */
TEST(test_injection)
{
	static const struct {
		const char *injected, *zone;
		double start, end;
		enum pet_injection found;
		double seconds;
	} cases[] = {
		{"", "", 0, 0, PET_INJECTION_NONE, 0},
		{"0930", "", 36000, 36600, PET_INJECTION_KNOWN, 34200},
		{"100500", "", 36000, 36600, PET_INJECTION_KNOWN, 36300},
		{"101500", "", 36000, 36600, PET_INJECTION_NO_DAY, 0},
		{"000030", "", 86340, 86940, PET_INJECTION_KNOWN, 86430}, /* midnight is in the acquisition */
		{"001030", "", 86340, 86940, PET_INJECTION_KNOWN, 630},
		{"20260531230000.5", "", 0, 0, PET_INJECTION_KNOWN, -3599.5},
		{"20260601070000+0000", "+0200", 36000, 36600, PET_INJECTION_KNOWN, 32400},
		{"2026060107-0330", "-1000", 36000, 36600, PET_INJECTION_KNOWN, 1800},
		{"20260601070000+0000", "", 36000, 36600, PET_INJECTION_NO_ZONE, 0},
		{"20260601070000+9900", "+0200", 36000, 36600, PET_INJECTION_INVALID, 0},
		{"20260601", "", 36000, 36600, PET_INJECTION_INVALID, 0},
		{"noon", "", 36000, 36600, PET_INJECTION_INVALID, 0},
	};
	double day, seconds;

	assert_true(pet_facts_moment("20260601", "00", &day));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pet_facts f = {.half_life = NAN};
		enum pet_injection found;

		snprintf(f.injected, sizeof(f.injected), "%s", cases[i].injected);
		snprintf(f.zone, sizeof(f.zone), "%s", cases[i].zone);
		found = pet_facts_injection(&f, day + cases[i].start, day + cases[i].end, &seconds);
		if (found != cases[i].found || (found == PET_INJECTION_KNOWN && fabs(seconds - day - cases[i].seconds) > 1e-3))
			fail_msg("%s: %d, %.1f", cases[i].injected, (int)found, seconds - day);
	}
}

/* Attributes of one object that say the same, and do not. */
TEST(test_contradictions)
{
	/* NULL: "6586.2", "HFS", "102540008", "", F-18 with "^18^Fluorine", of another code "another", no drug, no contradiction */
	static const struct {
		const char *half_life, *position, *gantry, *moment, *code, *meaning, *drug, *drug_code;
		const char *says;
	} cases[] = {
		{.moment = "20260601101500"},
		{.half_life = "6588", .moment = "20260601101500.4"},
		{.position = "", .gantry = "102541007"},
		{.half_life = "109.77",
		 .says = "Radionuclide Half Life (0018,1075) is 109.77 s, but that of the radionuclide F18"},
		{.half_life = "4062.6", .says = "is 4062.6 s"},
		{.gantry = "102541007", .says = "Patient Position (0018,5100) is HFS, but the codes of (0054,0410)"},
		{.position = "FFS", .says = "are those of HFS"},
		{.moment = "20260601121500", .says = "Acquisition DateTime (0008,002A) is 20260601121500"},
		{.moment = "20260602101500", .says = "(0008,0022) and (0008,0032) are 20260601101500"},
		{.says = "is \"[68Ga]Ga-PSMA-11\", which names Ga68 with a half-life of 4062.6 s, but "
			 "Radionuclide Code Sequence (0054,0300) is F18 with one of 6586.2 s",
		 .drug = "[68Ga]Ga-PSMA-11"},
		{.says = "which names Ga68 with a half-life of 4062.6 s, but Radionuclide Half Life (0018,1075) is 6586.2 s",
		 .drug = "[68Ga]Ga-PSMA-11",
		 .code = "1"},
		{.half_life = "23410080", .drug = "Ga-68 cylinder", .code = "53315004"}, /* of Ge-68 */
		{.half_life = "23410080", .drug = "Ga-68 cylinder", .code = "1"},
		{.half_life = "4062.6", .drug = "Ge68 rod", .code = "35337001"},
		{.half_life = "2190240", .drug = "Rubidium-82 chloride", .code = "1"}, /* of Sr-82 */
		{.half_life = "23410080",
		 .says = "names Cu62 with a half-life of 580.38 s, but Radionuclide Code Sequence (0054,0300) is Ge68",
		 .drug = "Cu-62",
		 .code = "53315004"},
		{.says = "names Ga68", .drug = "Ga-68 DOTATATE"},
		{.says = "names C11", .drug = "Choline C-11"},
		{.says = "names N13", .drug = "Ammonia ^13^N"},
		{.says = "names O15", .drug = "Oxygen 15"},
		{.says = "names Tc94m", .drug = "Tc-94m MIBI"},
		{.drug = "[18F]PSMA-1007"},
		{.drug = "FDG"},
		{.drug = "PSMA-11"},
		{.drug = "Florbetapir AV-45 (F 18)"},
		{.drug = "O-(2-[18F]fluoroethyl)-L-tyrosine"},
		{.drug = "PIB C-11, FDG F-18"},
		{.drug = "11"},
		{.drug = "C-11111"},
		{.says = "Code Meaning of Radionuclide Code Sequence (0054,0300) is \"^68^Gallium\", which names Ga68",
		 .code = "77004003",
		 .meaning = "^68^Gallium"},
		{.says = "is \"68 Ga\", which names Ga68", .code = "77004003", .meaning = "68 Ga"},
		{.code = "C-111A1", .meaning = "F^18^"},
		{.code = "77004003", .meaning = "Fluor"},
		{.half_life = "23410080", .code = "53315004", .meaning = "^68^Ge/^68^Ga"},
		{.drug_code = "C-B1031"},
		{.drug_code = "C-B10"},
		{.drug_code = "99"},
		{.says = "Code Value of Radiopharmaceutical Code Sequence (0054,0304) is \"126759\", which names Ga68",
		 .drug_code = "126759"},
		{.says = "is \"C-B103C\", which names N13", .drug_code = "C-B103C"},
		{.half_life = "4062.6", .code = "35337001", .meaning = "Ga-68", .drug_code = "129516007"}, /* of Ge-68 */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};
		struct dicom_file *file;
		struct item_writer root = {.err = &err}, item;
		int rc;

		assert_int_equal(dicom_new(CLASS_RAW_DATA, "1.2.3.4", &file, &err), 0);
		root.item = dicom_root(file);
		item = item_begin(&root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE);
		item_put_code(&item, TAG_RADIONUCLIDE_CODE, cases[i].code ? cases[i].code : "77004003", "SCT",
			      cases[i].meaning ? cases[i].meaning
			      : cases[i].code  ? "another"
					       : "^18^Fluorine");
		if (cases[i].drug_code)
			item_put_code(&item, TAG_RADIOPHARMACEUTICAL_CODE, cases[i].drug_code, "SCT", "a drug");
		item_put_text(&item, TAG_RADIONUCLIDE_HALF_LIFE, cases[i].half_life ? cases[i].half_life : "6586.2");
		if (cases[i].drug)
			item_put_text(&item, TAG_RADIOPHARMACEUTICAL, cases[i].drug);
		item_end(&root, &item);
		item_put_text(&root, TAG_PATIENT_POSITION, cases[i].position ? cases[i].position : "HFS");
		item_put_code(&root, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE,
			      cases[i].gantry ? cases[i].gantry : "102540008", "SCT", "headfirst or feet-first");
		item = item_begin(&root, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE);
		item_put_code(&item, TAG_PATIENT_ORIENTATION_MODIFIER_CODE_SEQUENCE, "40199007", "SCT", "supine");
		item_end(&root, &item);
		item_put_text(&root, TAG_ACQUISITION_DATE, "20260601");
		item_put_text(&root, TAG_ACQUISITION_TIME, "101500");
		item_put_text(&root, TAG_ACQUISITION_DATE_TIME, cases[i].moment ? cases[i].moment : "");
		assert_int_equal(root.rc, 0);
		rc = pet_facts_check(dicom_root(file), &err);
		if (cases[i].says)
			assert_error(rc, &err, EBADMSG, cases[i].says);
		else
			assert_int_equal(rc, 0);
		dicom_close(file);
	}
}

/* A decay that is corrected is listed in Corrected Image, or would be corrected again. */
TEST(test_decay_contradictions)
{
	static const struct {
		const char *to, *factor, *corrected, *says; /* says: NULL: no contradiction */
	} cases[] = {
		{"START", "1.2", "ATTN\\DECY", NULL},
		{"START", "1", "NORM", NULL},
		{"NONE", "1.2", "NORM", NULL},
		{"START", "1.2", "", NULL},
		{"START", "1.2", "NORM\\ATTN",
		 "Decay Correction (0054,1102) is START with the Decay Factor (0054,1321) 1.2, but Corrected Image (0028,0051) "
		 "is NORM\\ATTN, without DECY"},
		{"ADMIN", "0.7", "NORM", "Decay Correction (0054,1102) is ADMIN"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};
		struct dicom_file *file;
		struct item_writer root = {.err = &err};
		int rc;

		assert_int_equal(dicom_new(CLASS_RAW_DATA, "1.2.3.4", &file, &err), 0);
		root.item = dicom_root(file);
		item_put_text(&root, TAG_DECAY_CORRECTION, cases[i].to);
		item_put_text(&root, TAG_DECAY_FACTOR, cases[i].factor);
		item_put_text(&root, TAG_CORRECTED_IMAGE, cases[i].corrected);
		assert_int_equal(root.rc, 0);
		rc = pet_facts_check(dicom_root(file), &err);
		if (cases[i].says)
			assert_error(rc, &err, EBADMSG, cases[i].says);
		else
			assert_int_equal(rc, 0);
		dicom_close(file);
	}
}

/* The factor of a decay is that of half-life, duration and times, where all are known. */
TEST(test_decay_factors)
{
	static const struct {
		const char *to, *factor, *half_life, *series, *injected, *says; /* says: NULL: no contradiction */
	} cases[] = {
		{"START", "1.0321", "6586.2", "101500", "20260601091500", NULL},
		{"START", "1", "6586.2", "101500", "", NULL}, /* without the decay during the acquisition */
		{"START", "5", "6586.2", "101500", "",
		 "Decay Factor (0054,1321) is 5 with Decay Correction (0054,1102) START, but "},
		{"START", "0.9", "6586.2", "101500", "",
		 "the start 20260601101500 and the start of the series 20260601101500 make"},
		{"START", "5", "6586.2", "060000", "", NULL}, /* another acquisition of the series was first */
		{"START", "5", "6586.2", "", "", NULL},
		{"START", "5", "6586.2", "120000", "", NULL}, /* a series made later */
		{"START", "5", "", "101500", "", NULL},
		{"ADMIN", "1.507", "6586.2", "101500", "20260601091500", NULL},
		{"ADMIN", "1.03", "6586.2", "101500", "20260601091500",
		 "ADMIN, but a half-life of 6586.2 s, a duration of 600 s, "},
		{"ADMIN", "0.68", "6586.2", "101500", "20260601091500", "the injection 20260601091500 make it"},
		{"ADMIN", "5", "6586.2", "101500", "", NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};
		struct dicom_file *file;
		struct item_writer root = {.err = &err}, item;
		int rc;

		assert_int_equal(dicom_new(CLASS_RAW_DATA, "1.2.3.4", &file, &err), 0);
		root.item = dicom_root(file);
		item = item_begin(&root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE);
		item_put_text(&item, TAG_RADIONUCLIDE_HALF_LIFE, cases[i].half_life);
		item_put_text(&item, TAG_RADIOPHARMACEUTICAL_START_DATE_TIME, cases[i].injected);
		item_end(&root, &item);
		item_put_text(&root, TAG_ACQUISITION_DATE, "20260601");
		item_put_text(&root, TAG_ACQUISITION_TIME, "101500");
		item_put_text(&root, TAG_ACTUAL_FRAME_DURATION, "600000");
		item_put_text(&root, TAG_SERIES_DATE, "20260601");
		item_put_text(&root, TAG_SERIES_TIME, cases[i].series);
		item_put_text(&root, TAG_DECAY_CORRECTION, cases[i].to);
		item_put_text(&root, TAG_DECAY_FACTOR, cases[i].factor);
		item_put_text(&root, TAG_CORRECTED_IMAGE, "NORM\\DECY");
		assert_int_equal(root.rc, 0);
		rc = pet_facts_check(dicom_root(file), &err);
		if (cases[i].says)
			assert_error(rc, &err, EBADMSG, cases[i].says);
		else if (rc != 0)
			fail_msg("case %zu: %s", i, err.msg);
		dicom_close(file);
	}
}

TEST(test_facts, .teardown = clean)
{
	char *few[] = {"PatientPosition=FFDR"};
	struct err err;
	struct sinogram *s;

	write_objects(EMISSION, 0, N_BASICS, basics);
	s = open_all(&err);
	assert_non_null(s);
	assert_true(s->facts.weight == 70 && isnan(s->facts.size) && s->facts.dose == 3.7e8);
	assert_true(fabs(s->facts.half_life - 6586.2) < 1e-9 && s->facts.duration == 600 && s->facts.calibration == 0.25);
	assert_string_equal(s->facts.radionuclide, "^18^Fluorine");
	assert_string_equal(s->facts.acquisition_date, "20260601");
	assert_string_equal(s->facts.acquisition_time, "101500");
	assert_string_equal(s->facts.patient_position, "HFS");
	sinogram_close(s);
	list_folder(true);

	/* weight and half-life may be unknown */
	write_objects(EMISSION, 0, 1, few);
	s = open_all(&err);
	assert_non_null(s);
	assert_true(isnan(s->facts.weight) && isnan(s->facts.half_life) && isnan(s->facts.dose) && isnan(s->facts.calibration));
	assert_true(s->facts.acquisition_date[0] == '\0' && s->facts.injected[0] == '\0');
	assert_true(s->axis[0][1] == -1 && s->axis[1][0] == -1 && s->axis[2][2] == -1);
	assert_true(s->centre[0] == 0 && s->centre[1] == 0 && s->centre[2] == 0);
	sinogram_close(s);
	list_folder(true);

	/* the patient position must be known */
	write_objects(EMISSION, 0, 0, NULL);
	must_refuse(EBADMSG, "the patient's position is \"\" in (0054,0410) and (0054,0414), or (0018,5100); supported: HFS");
}

static void code_position(struct dicom_item *root, const char *first, const char *on)
{
	struct err err = {0};
	struct dicom_item *item;

	assert_int_equal(dicom_put_empty(root, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE, &err), 0);
	assert_int_equal(dicom_put_empty(root, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE, &err), 0);
	assert_int_equal(dicom_add_code(root, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE, "F-10450", "SRT", "recumbent", &err), 0);
	item = dicom_item_at(root, TAG_PATIENT_ORIENTATION_CODE_SEQUENCE, 0);
	assert_int_equal(dicom_add_code(item, TAG_PATIENT_ORIENTATION_MODIFIER_CODE_SEQUENCE, on, "X", "so", &err), 0);
	assert_int_equal(dicom_add_code(root, TAG_PATIENT_GANTRY_RELATIONSHIP_CODE_SEQUENCE, first, "X", "so", &err), 0);
}

/* Codes of SNOMED CT and SNOMED-RT take precedence over Patient Position (0018,5100). */
TEST(test_positions, .teardown = clean)
{
	static const struct {
		const char *first, *on, *want;
	} cases[] = {
		{"F-10470", "F-10340", "HFS"},	    {"F-10480", "F-10310", "FFP"},  {"102540008", "102535000", "HFDR"},
		{"102541007", "102536004", "FFDL"}, {"F-10480", "F-10317", "FFDR"}, {"102540008", "1240000", "HFP"},
		{"102541007", "40199007", "FFS"},   {"F-10470", "F-10319", "HFDL"}, {"F-10470", "F-10320", "FFP"}, /* standing */
	};
	static const char *const names[] = {"HFS", "HFP", "FFS", "FFP", "HFDL", "HFDR", "FFDL", "FFDR"};
	struct dicom_file *file = NULL;
	struct pet_facts f;
	double a[3][3];
	struct err err = {0};

	assert_int_equal(dicom_new(CLASS_RAW_DATA, "1.2.3", &file, &err), 0);
	assert_int_equal(dicom_put_text(dicom_root(file), TAG_PATIENT_POSITION, "FFP", &err), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		code_position(dicom_root(file), cases[i].first, cases[i].on);
		pet_facts_read(dicom_root(file), &f);
		assert_string_equal(f.patient_position, cases[i].want);
	}
	dicom_close(file);
	for (size_t i = 0; i < 8; i++) { /* right-handed; z to the head or the feet; y to the side the patient lies on */
		const char *n = names[i];

		assert_true(pet_facts_axes(n, a));
		for (int c = 0; c < 3; c++) {
			int d = (c + 1) % 3, e = (c + 2) % 3;

			assert_true(a[2][c] == a[0][d] * a[1][e] - a[0][e] * a[1][d]);
		}
		assert_true(a[2][2] == (n[0] == 'H' ? 1 : -1));
		if (n[2] == 'D')
			assert_true(a[1][0] == (n[3] == 'L' ? 1 : -1)); /* left is +x of LPS */
		else
			assert_true(a[1][1] == (n[2] == 'S' ? 1 : -1)); /* the back is +y */
	}
	assert_false(pet_facts_axes("HFX", a));
	assert_false(pet_facts_axes("", a));
}

/* Duration and decay factor of the chosen frame, gate or bed: T / I, I = integral of exp(-lambda t) over its times. */
TEST(test_times)
{
	static int64_t marks[] = {1000, 3000, 5000};
	const double lambda = 0.1;
	struct sinogram s = {.facts.duration = 40};
	double first = (exp(-0.2) - exp(-0.3)) / lambda, second = (exp(-0.4) - exp(-0.5)) / lambda;

	assert_true(sinogram_duration(&s) == 40 && sinogram_decay_factor(&s, 0) == 1);
	assert_true(fabs(sinogram_decay_factor(&s, lambda) / (4 / (1 - exp(-4))) - 1) < 1e-12);
	s.images = (struct pet_images){PET_FRAMES, 2, {[1].time = {5000, 15000}}};
	s.chosen = 1;
	assert_true(sinogram_duration(&s) == 10);
	assert_true(fabs(sinogram_decay_factor(&s, lambda) / (1 / (1 - exp(-1))) - 1) < 1e-12);
	s.images = (struct pet_images){PET_BEDS, 2, {[1].time = {5000, 25000}}};
	assert_true(sinogram_duration(&s) == 20);
	pet_images_set_gates(&s.images, &(struct pet_gates){.n = 2, .marks = {.ms = marks, .n = 3}});
	assert_true(sinogram_duration(&s) == 2); /* 2 to 3 s and 4 to 5 s */
	assert_true(fabs(sinogram_decay_factor(&s, lambda) * (first + second) / 2 - 1) < 1e-12);
}

TESTS_SETUP(make_folder, remove_folder);
