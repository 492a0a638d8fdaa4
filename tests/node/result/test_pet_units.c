/* SPDX-License-Identifier: Apache-2.0 */
/* Test the units of a PET series: which values each unit requires, their sources, and the warnings about missing values. */
#include "node/result/pet_result_internal.h"
#include "tests/node/result/pet_result_fixture.h"
#include "tests/test.h"

static bool has(const char *values, const char *term)
{
	const char *at = strstr(values, term);

	return at && (at[strlen(term)] == '\\' || !at[strlen(term)]);
}

/* Every combination of the values required for quantification, and of their sources. */
TEST(test_units)
{
	double lambda = log(2) / HALF_LIFE, decay = lambda * DURATION / (1 - exp(-lambda * DURATION));
	struct input in;

	input_make(&in);
	for (unsigned bits = 0; bits < 128; bits++) {
		bool factor = bits & 1, half_life = bits & 2, attn = bits & 4, norm = bits & 8, attenuation = bits & 16,
		     normalisation = bits & 32, multiplicative = bits & 64;
		bool attenuated = attn || attenuation || multiplicative, normalised = norm || normalisation || multiplicative;
		bool twice = attn + attenuation + multiplicative > 1 || norm + normalisation + multiplicative > 1;
		bool bqml = factor && attenuated && normalised && !twice;
		struct series_report report;
		struct image im;

		in.s.facts.calibration = factor ? CALIBRATION : NAN;
		in.s.facts.half_life = half_life ? HALF_LIFE : NAN;
		snprintf(in.s.facts.corrected, sizeof(in.s.facts.corrected), "%s%s%s", attn ? "ATTN" : "",
			 attn && norm ? "\\" : "", norm ? "NORM" : "");
		in.s.part[SINOGRAM_ATTENUATION].present = attenuation;
		in.s.part[SINOGRAM_NORMALISATION].present = normalisation;
		in.s.part[SINOGRAM_MULTIPLICATIVE].present = multiplicative;
		report = write_series(&in);
		im = image_open(report.file[0]);
		assert_string_equal(report.units, bqml ? "BQML" : "CNTS");
		assert_string_equal(text(im.root, TAG_UNITS), report.units);
		assert_string_equal(text(im.root, TAG_CORRECTED_IMAGE), report.corrected);
		assert_int_equal(has(report.corrected, "ATTN"), attenuated);
		assert_int_equal(has(report.corrected, "NORM"), normalised);
		assert_int_equal(has(report.corrected, "DCAL"), bqml);
		assert_int_equal(has(report.corrected, "DECY"), bqml && half_life);
		assert_false(has(report.corrected, "SCAT") || has(report.corrected, "RAN"));
		assert_string_equal(text(im.root, TAG_DECAY_CORRECTION), bqml && half_life ? "START" : "NONE");
		assert_int_equal(dicom_has(im.root, TAG_DECAY_FACTOR), bqml && half_life);
		assert_int_equal(dicom_has(im.root, TAG_DOSE_CALIBRATION_FACTOR), bqml);
		assert_true(fabs(report.factor / (!bqml ? 1 : CALIBRATION / DURATION * (half_life ? decay : 1)) - 1) < 1e-9);
		assert_true(fabs(number(im.root, TAG_FRAME_REFERENCE_TIME, 0) -
				 1000 * (half_life ? log(decay) / lambda : DURATION / 2)) < 1e-3);
		assert_int_equal(strstr(report.warnings, "ot in Bq/ml") != NULL, !bqml);
		assert_int_equal(strstr(report.warnings, "No SUV") != NULL, !half_life);
		assert_non_null(strstr(report.warnings, "Not corrected for randoms and scatter."));
		assert_non_null(strstr(text(im.root, TAG_DERIVATION_DESCRIPTION), report.warnings));
		compare_places(&in, &im, report.factor);
	}
}

/* Times of injection from which a viewer would compute a wrong SUV. The acquisition begins at 8:10:00.5 on 29 June 2026 and lasts
 * 600 s. */
TEST(test_injection)
{
	static const struct {
		const char *injected, *zone, *time, *warning; /* zone: of the object; time: (0018,1072) beside; NULL: none */
		double half_life;			      /* 0: that of F-18 */
	} cases[] = {
		{"070000", "", "", NULL, 0},
		{"235900", "", "",
		 "the time of injection 235900 is after the start of the acquisition, 20260629081000.5, and its day", 0},
		{"20260629070000", "", "", NULL, 0},
		{"20260629070000.25", "", "070000", NULL, 0},
		{"20260629070000", "", "080000",
		 "Start DateTime (0018,1078) is 20260629070000, Radiopharmaceutical Start Time (0018,1072) 080000", 0},
		{"20260629070000-0500", "", "",
		 "injection 20260629070000-0500 has an offset from UTC, and the start of the acquisition has none", 0},
		{"20260629001000-0500", "+0200", "071000", NULL, 0},
		{"20260629001000-0500", "+0200", "", "the injection (20260629001000-0500) is 30 half-lives before", 120.0167},
		{"20260629042100-0200", "+0200", "", "the injection (20260629042100-0200) is after the acquisition", 0},
		{"071500.000000", "", "", NULL, 0},
		{"071500.000000", "", "", "The day of the injection (071500.000000) is not in the data", 282276},
		{"20260629071500", "", "", NULL, 282276},
		{"081900", "", "", NULL, 0},
		{"20260629081900", "", "", NULL, 0},
		{"20260629082100", "", "", "the injection (20260629082100) is after the acquisition", 0},
		{"20260630070000", "", "",
		 "the injection (20260630070000) is after the acquisition, which began at 20260629081000.5", 0},
		{"20250629070000", "", "", "half-lives before the acquisition", 0},
		{"20260628135400", "", "", NULL, 0},
		{"20260628070000", "", "", "the injection (20260628070000) is 13.8 half-lives before the acquisition", 0},
		{"20260699070000", "", "", "\"20260699070000\" is not a date and time", 0},
		{"20260629256199", "", "", "\"20260629256199\" is not a date and time", 0},
	};
	struct series_report report;
	struct input in;

	input_make(&in);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pet_facts *f = &in.s.facts;

		snprintf(f->injected, sizeof(f->injected), "%s", cases[i].injected);
		snprintf(f->injected_time, sizeof(f->injected_time), "%s", cases[i].time);
		snprintf(f->zone, sizeof(f->zone), "%s", cases[i].zone);
		f->half_life = cases[i].half_life > 0 ? cases[i].half_life : HALF_LIFE;
		report = write_series(&in);
		if (cases[i].warning ? !strstr(report.warnings, cases[i].warning)
				     : strstr(report.warnings, "SUV") || strstr(report.warnings, "injection"))
			fail_msg("injected %s: '%s'", cases[i].injected, report.warnings);
	}
}

/* A Start DateTime that is not valid: Start Time is taken, and the result does not have it. */
TEST(test_damaged_injection)
{
	static const struct {
		const char *moment, *time, *says, *result; /* result: its Start DateTime */
	} cases[] = {
		{"garbage", "070000",
		 "is \"garbage\", which is not a valid date and time: Radiopharmaceutical Start Time (0018,1072), 070000,",
		 "20260629070000"},
		{"20260629", "070000", "is \"20260629\", which is not a valid date and time", "20260629070000"},
		{"garbage", "", "the time of injection \"garbage\" is not a date and time", ""},
		{"garbage", "noon", "the time of injection \"garbage\" is not a date and time", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct series_report report;
		struct pet_facts f;
		struct dicom_item *item;
		struct input in;
		struct image im;

		input_make(&in);
		item = dicom_item_at(dicom_root(in.files[1]), TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0);
		put(item, TAG_RADIOPHARMACEUTICAL_START_DATE_TIME, cases[i].moment);
		put(item, TAG_RADIOPHARMACEUTICAL_START_TIME, cases[i].time);
		pet_facts_read(dicom_root(in.files[1]), &f);
		memcpy(in.s.facts.injected, f.injected, sizeof(f.injected));
		memcpy(in.s.facts.injected_time, f.injected_time, sizeof(f.injected_time));
		report = write_series(&in);
		if (!strstr(report.warnings, cases[i].says))
			fail_msg("case %zu: '%s'", i, report.warnings);
		im = image_open(report.file[0]);
		item = dicom_item_at(im.root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0);
		assert_string_equal(text(item, TAG_RADIOPHARMACEUTICAL_START_DATE_TIME), cases[i].result);
	}
}

/* A weight in g and a dose in MBq would give an SUV that is wrong by powers of ten. */
TEST(test_no_suv)
{
	static const struct {
		double weight, dose;
		const char *says; /* NULL: an SUV */
	} cases[] = {
		{70, 3.7e8, NULL},
		{1000, 1e5, NULL},
		{0.5, 1e12, NULL},
		{1000.1, 3.7e8, "Patient's Weight (0010,1030) is 1000.1 kg; allowed: above 0, at most 1000"},
		{70000, 3.7e8, "Patient's Weight (0010,1030) is 70000 kg"},
		{70, 99999, "Radionuclide Total Dose (0018,1074) is 99999 Bq; allowed: 100000 to 1e+12"},
		{70, 370, "Radionuclide Total Dose (0018,1074) is 370 Bq"},
		{70, 1.1e12, "Radionuclide Total Dose (0018,1074) is 1.1e+12 Bq"},
	};
	struct series_report report;
	struct input in;

	input_make(&in);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		in.s.facts.weight = cases[i].weight;
		in.s.facts.dose = cases[i].dose;
		report = write_series(&in);
		if (cases[i].says ? !strstr(report.warnings, cases[i].says) : strstr(report.warnings, "SUV") != NULL)
			fail_msg("case %zu: '%s'", i, report.warnings);
	}
}

/* Of more sentences than fit, whole ones remain; the derivation (1024 characters) has those that fit, too. A short CT takes SCAT.
 */
TEST(test_whole_sentences)
{
	char note[6000] = "";
	struct series_report report;
	struct input in;
	struct image im;
	size_t n;

	input_make(&in);
	for (int i = 0; i < 120; i++)
		snprintf(note + strlen(note), sizeof(note) - strlen(note), "%sSentence %d has some words at its end.",
			 i ? " " : "", 1000 + i);
	in.s.made_note = note;
	in.s.made = PET_CORRECT_SCATTER;
	in.s.made_in_part = true;
	report = write_series(&in);
	n = strlen(report.warnings);
	assert_true(n > 4000);
	assert_string_equal(report.warnings + n - 24, "s some words at its end.");
	assert_false(has(report.corrected, "SCAT"));
	im = image_open(report.file[0]);
	assert_non_null(strstr(text(im.root, TAG_DERIVATION_DESCRIPTION), "at its end. Research use only."));
	in.s.made_in_part = false;
	report = write_series(&in);
	assert_true(has(report.corrected, "SCAT"));

	/* in part: the sentence with the reason is the only one about scatter */
	snprintf(note, sizeof(note), "Not corrected for scatter in all planes: the CT is short.");
	in.s.made_in_part = true;
	in.s.facts.calibration = NAN;
	report = write_series(&in);
	assert_string_equal(report.units, "CNTS");
	assert_string_equal(report.warnings,
			    "Not corrected for scatter in all planes: the CT is short. Not in Bq/ml: no calibration "
			    "factor. Not corrected for randoms.");
}

/* Randoms and scatter in the model; calibration of the scanner; data already corrected for decay; unknown weight. */
TEST(test_units_further)
{
	struct scanner_conf scanner = {.name = "bench", .calibration = 10}, ecat = scanner;
	struct series_report report;
	struct err err = {0};
	struct input in;
	struct image im;

	input_make(&in);
	in.s.part[SINOGRAM_ADDITIVE].present = true;
	in.s.scanner = &scanner;
	in.s.facts.calibration = NAN;
	in.s.facts.weight = NAN;
	report = write_series(&in);
	im = image_open(report.file[0]);
	assert_string_equal(report.corrected, "ATTN\\NORM\\DTIM\\RAN\\SCAT\\RADL\\DCAL\\DECY");
	assert_true(number(im.root, TAG_DOSE_CALIBRATION_FACTOR, 0) == 10);
	assert_string_equal(report.warnings, "No SUV can be computed: not in the data: patient's weight.");
	assert_string_equal(text(im.root, TAG_RANDOMS_CORRECTION_METHOD), "DLYD");
	assert_string_equal(text(im.root, TAG_ATTENUATION_CORRECTION_METHOD), "measured, by the source");
	assert_string_equal(text(im.root, TAG_SCATTER_CORRECTION_METHOD), "background in the system model");

	/* a scanner is calibrated with F-18 */
	for (int i = 0; i < 3; i++) {
		in.s.facts.half_life = i == 0 ? 4057.7 : i == 1 ? NAN : 6584.0; /* Ga-68, unknown, F-18 with another rounding */
		report = write_series(&in);
		assert_string_equal(report.units, i < 2 ? "CNTS" : "BQML");
		assert_int_equal(strstr(report.warnings, "the configured calibration is for F-18") != NULL, i < 2);
		assert_null(strstr(report.warnings, "no calibration factor"));
	}
	in.s.facts.half_life = HALF_LIFE;
	in.s.scanner = NULL;
	for (int i = 0; i < 3; i++) {
		static const char *const says[][2] = {{"", "Not in Bq/ml: no calibration factor. "},
						      {"0", "Not in Bq/ml: no calibration factor (its value is 0). "},
						      {"-1", "no calibration factor (its value is -1). "}};

		put(dicom_root(in.files[1]), TAG_DOSE_CALIBRATION_FACTOR, says[i][0]);
		report = write_series(&in);
		assert_non_null(strstr(report.warnings, says[i][1]));
	}
	ecat.calibration = 0;
	ecat.ecat_counts = 2.05;
	in.s.scanner = &ecat;
	report = write_series(&in);
	assert_non_null(
		strstr(report.warnings, "Not in Bq/ml: ecat_counts is for the list mode of an mMR, and sinograms have no"));
	in.s.scanner = &scanner;

	/* one correction may be in the data and the other in the model, but none in both */
	for (int scatter = 0; scatter < 2; scatter++) {
		snprintf(in.s.facts.corrected, sizeof(in.s.facts.corrected), "ATTN\\NORM\\RAN%s", scatter ? "\\SCAT" : "");
		report = write_series(&in);
		assert_string_equal(report.units, scatter ? "CNTS" : "BQML");
		assert_int_equal(strstr(report.warnings, "corrected for RAN and SCAT and come with a background") != NULL,
				 scatter);
	}

	snprintf(in.s.facts.corrected, sizeof(in.s.facts.corrected), "ATTN\\NORM\\DECY");
	assert_error(pet_result_check(&in.s, &err), &err, EBADMSG, "Decay Correction (0054,1102) is \"\"; allowed: START, ADMIN");
	put(dicom_root(in.files[1]), TAG_DECAY_CORRECTION, "ADMIN");
	for (int i = 0; i < 3; i++) {
		static const char *const says[][2] = {{"0", "but Decay Factor (0054,1321) is \"0\"; allowed: a number above 0"},
						      {"-1", "is \"-1\""},
						      {"", "but Decay Factor (0054,1321) is \"\""}};

		put(dicom_root(in.files[1]), TAG_DECAY_FACTOR, says[i][0]);
		assert_error(pet_result_check(&in.s, &err), &err, EBADMSG, says[i][1]);
	}
	put(dicom_root(in.files[1]), TAG_DECAY_FACTOR, "1.5");
	report = write_series(&in);
	im = image_open(report.file[0]);
	assert_string_equal(text(im.root, TAG_DECAY_CORRECTION), "ADMIN");
	assert_true(number(im.root, TAG_DECAY_FACTOR, 0) == 1.5);
	assert_true(fabs(report.factor - 10 / DURATION) < 1e-12); /* decay is not corrected twice */
}

/* What the data state twice, in two ways. */
TEST(test_doubts)
{
	static const struct {
		double attribute, header, delayeds;
		const char *decay, *corrected, *method;
		int made;
		const char *says;   /* NULL: nothing */
		const char *factor; /* NULL: 1.5 */
	} cases[] = {
		{60, NAN, NAN, "NONE", "", "DLYD", 0, NULL},
		{60, 60.5, 60, "NONE", "", "NONE", PET_CORRECT_RANDOMS, NULL},
		{60, 120, 60, "NONE", "", "", 0,
		 "(0018,1242) is 60 s, image duration (sec) in the header of EMISSION 120: 60 s is taken."},
		{NAN, 120, NAN, "NONE", "", "", 0, NULL},
		{60, 60, 30, "NONE", "", "", 0,
		 "image duration (sec) in the header of DELAYEDS is 30 s, the duration of EMISSION 60 s"},
		{60, 60, NAN, "START", "", "", 0, "Decay Correction (0054,1102) is START with the Decay Factor (0054,1321) 1.5"},
		{60, 60, NAN, "START", "ATTN\\DECY", "", 0, NULL},
		{60, 60, NAN, "START", "DECY", "", 0, "Decay Factor (0054,1321) is 0.9 with Decay Correction (0054,1102) START",
		 "0.9"},
		{60, 60, NAN, "START", "DECY", "", 0, "where 0.952 to 4 are usual", "5"},
		{60, 60, NAN, "ADMIN", "DECY", "", 0, NULL, "5"},
		{60, 60, NAN, "ADMIN", "ATTN", "", 0, "is ADMIN, but Corrected Image (0028,0051) has no DECY", "1"},
		{60, 60, NAN, "ADMIN", "", "", 0, "is ADMIN, but Corrected Image (0028,0051) has no DECY", ""},
		{60, 60, NAN, "START", "ATTN", "", 0, NULL, "1"},
		{60, 60, NAN, "NONE", "", "DLYD", PET_CORRECT_RANDOMS, "Randoms Correction Method (0054,1100) is \"DLYD\""},
		{60, 60, NAN, "NONE", "", "DLYD", PET_CORRECT_DEAD_TIME, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[1200];
		struct input in;
		struct dicom_item *root;

		input_make(&in);
		root = dicom_root(in.files[1]);
		in.s.facts.duration = cases[i].attribute;
		in.s.part[SINOGRAM_EMISSION].header.duration = cases[i].header;
		in.s.part[SINOGRAM_DELAYEDS].present = true;
		in.s.part[SINOGRAM_DELAYEDS].header.duration = cases[i].delayeds;
		in.s.facts.half_life = NAN; /* the factor cannot be computed */
		in.s.made = cases[i].made;
		snprintf(in.s.facts.corrected, sizeof(in.s.facts.corrected), "%s", cases[i].corrected);
		put(root, TAG_DECAY_CORRECTION, cases[i].decay);
		put(root, TAG_DECAY_FACTOR, cases[i].factor ? cases[i].factor : "1.5");
		put(root, TAG_RANDOMS_CORRECTION_METHOD, cases[i].method);
		pet_result_doubts(&in.s, cases[i].attribute > 0 ? 60 : 120, text, sizeof(text));
		if (cases[i].says ? !strstr(text, cases[i].says) : text[0] != '\0')
			fail_msg("case %zu: \"%s\"", i, text);
	}
	for (int listed = 0; listed < 2; listed++) {
		char text[1200];
		struct input in;

		input_make(&in);
		snprintf(in.s.part[SINOGRAM_EMISSION].header.corrections, sizeof(in.s.part[SINOGRAM_EMISSION].header.corrections),
			 "decay correction");
		snprintf(in.s.facts.corrected, sizeof(in.s.facts.corrected), listed ? "NORM\\DECY" : "NORM");
		pet_result_doubts(&in.s, DURATION, text, sizeof(text));
		assert_int_equal(strstr(text, "applied corrections in the header of EMISSION names decay") != NULL, !listed);
	}
	for (int i = 0; i < 5; i++) { /* of another time, or scanner */
		static const char *const times[][3] = {
			{"20260629", "000000", ""},
			{"20260629", "220000", "ATTENUATION was measured at 20260629 220000, EMISSION at"},
			{"20260701", "080000", "measured at 20260701 080000, EMISSION at 20260629 081000"},
			{"", "", ""},
			{"", "", "of ATTENUATION is \"mCT\", of EMISSION \"mMR\""}};
		static size_t chunk[2] = {1, 2};
		struct dicom_item *attenuation;
		char text[1200];
		struct input in;

		input_make(&in);
		attenuation = dicom_root(in.files[2]);
		in.s.part[SINOGRAM_ATTENUATION] = (struct sinogram_part){.present = true, .n_chunks = 2, .file = chunk};
		put(attenuation, TAG_ACQUISITION_DATE, times[i][0]);
		put(attenuation, TAG_ACQUISITION_TIME, times[i][1]);
		put(attenuation, TAG_MANUFACTURER_MODEL_NAME, i == 4 ? "mCT" : "mmr");
		put(dicom_root(in.files[1]), TAG_MANUFACTURER_MODEL_NAME, "mMR");
		pet_result_doubts(&in.s, DURATION, text, sizeof(text));
		if (times[i][2][0] ? !strstr(text, times[i][2]) : text[0] != '\0')
			fail_msg("case %d: \"%s\"", i, text);
		in.s.part[SINOGRAM_ATTENUATION].present = false;
	}
	{
		static struct sinogram_part parts[2][SINOGRAM_ROLES + 1];
		char text[1200];
		struct input in;

		input_make(&in);
		in.s.facts.duration = 60; /* not used */
		in.s.part[SINOGRAM_EMISSION].header.duration = 90;
		in.s.images = (struct pet_images){PET_BEDS, 2, {{.time = {0, 90000}}, {.time = {100000, 280000}}}};
		in.s.frame_part = parts;
		parts[0][SINOGRAM_EMISSION].header.duration = 90;
		parts[1][SINOGRAM_EMISSION].header.duration = NAN;
		pet_result_doubts(&in.s, 90, text, sizeof(text));
		assert_string_equal(text, "");
		parts[1][SINOGRAM_EMISSION].header.duration = 60;
		pet_result_doubts(&in.s, 90, text, sizeof(text));
		assert_string_equal(text, "Bed 2 lasts 180 s, image duration (sec) in its header is 60: 180 s is taken.");
		parts[1][SINOGRAM_EMISSION].header.duration = 180;
		parts[1][SINOGRAM_ATTENUATION] = (struct sinogram_part){.present = true, .n_chunks = 1, .file = &(size_t){2}};
		put(dicom_root(in.files[2]), TAG_ACQUISITION_DATE, "20260701");
		put(dicom_root(in.files[2]), TAG_ACQUISITION_TIME, "0800");
		pet_result_doubts(&in.s, 90, text, sizeof(text));
		assert_true(strstr(text, "ATTENUATION was measured at 20260701 080000") == text);
		in.s.frame_part = NULL;
	}
}

TEST(test_refused)
{
	struct err err = {0};
	struct input in;

	input_make(&in);
	assert_int_equal(pet_result_check(&in.s, &err), 0);
	in.s.facts.duration = NAN;
	assert_error(pet_result_check(&in.s, &err), &err, EBADMSG, "(0018,1242)");
	in.s.part[SINOGRAM_EMISSION].header.duration = 60;
	assert_int_equal(pet_result_check(&in.s, &err), 0);
	in.s.facts.acquisition_time[0] = '\0';
	assert_int_equal(pet_result_check(&in.s, &err), 0);
	in.s.facts.series_date[0] = '\0';
	assert_error(pet_result_check(&in.s, &err), &err, EBADMSG, "(0008,0022)");
}

TESTS_SETUP(start, stop);
