/* SPDX-License-Identifier: Apache-2.0 */
/* Test the import of Interfile files: patient of another object, refused files, all objects or none. */
#include "dicom/object/attribute.h"
#include "dicom/object/item_writer.h"
#include "node/sinogram/fact_origins.h"
#include "node/sinogram/sinogram_internal.h"
#include "tests/node/sinogram/sinogram_fixture.h"
#include "tests/test.h"

static char *interfile_text(const char *data_file, const char *scanner)
{
	struct interfile f = {.kind = INTERFILE_PROJECTIONS,
			      .number = INTERFILE_SIGNED,
			      .bytes = 2,
			      .big_endian = true,
			      .offset = 3,
			      .scale = 0.5,
			      .order = INTERFILE_BY_VIEW,
			      .m = geometry,
			      .duration = 90,
			      .start = NAN,
			      .date = "20100629",
			      .time = "102030",
			      .position = "HFP"};
	struct err err = {0};
	char *text = NULL;

	snprintf(f.data_file, sizeof(f.data_file), "%s", data_file);
	snprintf(f.scanner, sizeof(f.scanner), "%s", scanner);
	assert_done(interfile_write(&f, &text, &err), &err);
	return text;
}

TEST(test_import, .teardown = clean)
{
	char *set[] = {"0010,1020=1.8", "RadiopharmaceuticalStartDateTime=20100629090000", "CorrectedImage=NORM\\DTIM",
		       "PatientID=P-7"};
	char warnings[600] = "";
	struct sinogram_import conf = {.set = set,
				       .n_set = 4,
				       .folder = folder,
				       .now = 1782726000,
				       .warnings = warnings,
				       .warnings_size = sizeof(warnings)};
	uint8_t data[BINS * 2 + 3], *bytes = NULL;
	char *text = interfile_text("a.s", "Bench"), found[17];
	struct err err = {0};
	struct sinogram *s;
	size_t n = 0;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37);
	test_put_file(in_folder("a.hs"), text, strlen(text));
	test_put_file(in_folder("a.s"), data, sizeof(data));
	conf.header[SINOGRAM_EMISSION] = in_folder("a.hs");
	assert_done(sinogram_import(&conf, &n, &err), &err);
	assert_int_equal(n, 1);
	assert_string_equal(warnings, "The half-life is missing, so decay will not be corrected: --set Radionuclide=F18.");
	s = open_all(&err);
	if (!s)
		fail_msg("%s", err.msg);
	assert_string_equal(s->part[SINOGRAM_EMISSION].text, text);	  /* verbatim */
	assert_int_equal(s->part[SINOGRAM_EMISSION].bytes, sizeof(data)); /* an odd number: the chunk is padded */
	assert_int_equal(sinogram_read(s, SINOGRAM_EMISSION, &bytes, &err), 0);
	assert_memory_equal(bytes, data, sizeof(data));
	free(bytes);
	assert_string_equal(s->facts.patient_position, "HFP"); /* from the header */
	assert_string_equal(s->facts.acquisition_date, "20100629");
	assert_string_equal(s->facts.acquisition_time, "102030");
	assert_true(s->facts.duration == 90 && s->facts.size == 1.8);
	assert_string_equal(s->facts.injected, "20100629090000");
	assert_string_equal(s->facts.corrected, "NORM\\DTIM");
	assert_int_equal(dicom_get_text(dicom_root(s->files[0]), TAG_PATIENT_ID, found, sizeof(found), &err), 1);
	assert_string_equal(found, "P-7");
	sinogram_close(s);
	free(text);
}

/* --like copies patient and acquisition of another object, but not the attributes that describe an image. */
TEST(test_like, .teardown = clean)
{
	struct sinogram_arrays a = {.m = &geometry, .duration = 60};
	struct sinogram_import conf = {.folder = folder, .like = in_folder("like"), .now = 1782726000};
	struct dicom_file *file = NULL;
	struct err err = {0};
	struct sinogram *s;
	size_t n;

	for (int sinogram = 0; sinogram < 2; sinogram++) {
		assert_int_equal(dicom_new(sinogram ? CLASS_RAW_DATA : CLASS_PET, "1.2.3.4", &file, &err), 0);
		const struct {
			uint32_t tag;
			const char *text;
		} texts[] = {{TAG_PATIENT_NAME, "Somebody^Else"}, {TAG_STUDY_INSTANCE_UID, "1.2.3"},
			     {TAG_SERIES_INSTANCE_UID, "1.2.4"},  {TAG_FRAME_OF_REFERENCE_UID, "1.2.5"},
			     {TAG_PATIENT_POSITION, "FFS"},	  {TAG_CORRECTED_IMAGE, "ATTN\\DECY"},
			     {TAG_DOSE_CALIBRATION_FACTOR, "3"},  {TAG_PATIENT_WEIGHT, "55"},
			     {TAG_MANUFACTURER, "Maker"}};

		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
			assert_int_equal(dicom_put_text(dicom_root(file), texts[i].tag, texts[i].text, &err), 0);
		assert_int_equal(dicom_write(in_folder("like"), file, &err), 0);
		dicom_close(file);
		a.values[SINOGRAM_EMISSION] = values[SINOGRAM_EMISSION];
		assert_done(sinogram_write(&a, &conf, &n, &err), &err);
		s = open_all(&err);
		if (!s)
			fail_msg("%s", err.msg);
		char text[65];
		const struct dicom_item *root = dicom_root(s->files[0]);

		assert_int_equal(dicom_get_text(root, TAG_PATIENT_NAME, text, sizeof(text), &err), 1);
		assert_string_equal(text, "Somebody^Else");
		assert_int_equal(dicom_get_text(root, TAG_STUDY_INSTANCE_UID, text, sizeof(text), &err), 1);
		assert_string_equal(text, "1.2.3");
		assert_int_equal(dicom_get_text(root, TAG_FRAME_OF_REFERENCE_UID, text, sizeof(text), &err), 1);
		assert_string_equal(text, "1.2.5");
		assert_int_equal(dicom_get_text(root, TAG_SERIES_INSTANCE_UID, text, sizeof(text), &err), 1);
		assert_string_not_equal(text, "1.2.4"); /* the series is new */
		assert_string_equal(s->facts.patient_position, "FFS");
		assert_true(s->facts.weight == 55);
		assert_string_equal(s->facts.corrected, sinogram ? "ATTN\\DECY" : "");
		assert_true(sinogram ? s->facts.calibration == 3 : isnan(s->facts.calibration));
		sinogram_close(s);
		list_folder(true);
	}
}

TEST(test_import_refusals, .teardown = clean)
{
	static const struct {
		const char *data_file;
		size_t size;
		char *set;
		int code;
		const char *says;
	} cases[] = {
		{"a.s", BINS * 2 + 2, "PatientWeight=70", EBADMSG,
		 "a.hs: a.s has 322 bytes; its header requires 320 (8 planes, 4 angles, 5"},
		{"a.s", BINS * 2 + 4, "PatientWeight=70", EBADMSG, "a.s has 324 bytes"},
		{"b.s", BINS * 2 + 3, "PatientWeight=70", EBADMSG, "b.s: No such file"},
		{"../a.s", BINS * 2 + 3, "PatientWeight=70", ENOTSUP, "name of data file := ../a.s; allowed"},
		{"/etc/passwd", BINS * 2 + 3, "PatientWeight=70", ENOTSUP, "name of data file := /etc/passwd"},
		{"sub/../a.s", BINS * 2 + 3, "PatientWeight=70", ENOTSUP, "name of data file := sub/../a.s; allowed"},
		{".hidden.s", BINS * 2 + 3, "PatientWeight=70", ENOTSUP, "name of data file := .hidden.s; allowed"},
		{"sub/.hidden/x.s", BINS * 2 + 3, "PatientWeight=70", ENOTSUP, "name of data file := sub/.hidden/x.s; allowed"},
		{"sub//x.s", BINS * 2 + 3, "PatientWeight=70", ENOTSUP, "name of data file := sub//x.s; allowed"},
		{"sub/", BINS * 2 + 3, "PatientWeight=70", ENOTSUP, "name of data file := sub/; allowed"},
		{"a.s", BINS * 2 + 3, "PatientPosition=HF", EINVAL, "PatientPosition=HF; allowed: HFS"},
		{"a.s", BINS * 2 + 3, "AcquisitionDate=202606010", EINVAL, "AcquisitionDate=202606010; allowed: a date"},
		{"a.s", BINS * 2 + 3, "AcquisitionTime=930", EINVAL, "AcquisitionTime=930; allowed: a time HH, HHMM, HHMMSS or"},
		{"a.s", BINS * 2 + 3, "PatientSex=male", EINVAL, "PatientSex=male; allowed: M, F, O"},
		{"a.s", BINS * 2 + 3, "RadiopharmaceuticalStartDateTime=4.3.2026", EINVAL, "allowed: a date and time"},
		{"a.s", BINS * 2 + 3, "SeriesNumber=abc", EINVAL, "SeriesNumber=abc; allowed: a whole number"},
		{"a.s", BINS * 2 + 3, "AccessionNumber=12345678901234567", EINVAL, "567; allowed: at most 16 characters"},
		{"a.s", BINS * 2 + 3, "Radionuclide=U235", EINVAL, "Radionuclide=U235; known: C11"},
		{"a.s", BINS * 2 + 3, "ScannerCentre=1\\2", EINVAL, "ScannerCentre=1\\2; allowed: three numbers"},
		{"a.s", BINS * 2 + 3, "PatientWeigth=70", EINVAL, "\"PatientWeigth\" is neither a keyword"},
		{"a.s", BINS * 2 + 3, "PatientWeight", EINVAL, "Keyword=value"},
		{"a.s", BINS * 2 + 3, "SOPInstanceUID=1.2", EINVAL, "SOPInstanceUID cannot be set"},
		{"a.s", BINS * 2 + 3, "0071,1003=EMISSION", EINVAL, "0071,1003 cannot be set"},
		{"a.s", BINS * 2 + 3, "0002,0010=1.2", EINVAL, "0002,0010 cannot be set"},
		{"a.s", BINS * 2 + 3, "7fe0,0010=1", EINVAL, "7fe0,0010 cannot be set"},
		{"a.s", BINS * 2 + 3, "0028,00100=1", EINVAL, "\"0028,00100\" is neither a keyword"},
		{"a.s", BINS * 2 + 3, "PatientWeight=-1", EINVAL, "PatientWeight=-1; allowed: a number of 0 or more"},
		{"a.s", BINS * 2 + 3, "PatientWeight=nan", EINVAL, "PatientWeight=nan"},
		{"a.s", BINS * 2 + 3, "PatientWeight=1e30", EINVAL, "PatientWeight=1e30"},
		{"a.s", BINS * 2 + 3, "PatientWeight=", EINVAL, "PatientWeight="},
		{"a.s", BINS * 2 + 3, "PatientSize=3.01", EINVAL, "metres, at most 3"},
		{"a.s", BINS * 2 + 3, "DecayFactor=x", EINVAL, "DecayFactor=x"},
		{"a.s", BINS * 2 + 3, "StudyDate=20260229", EINVAL, "StudyDate=20260229; allowed: a date"},
		{"a.s", BINS * 2 + 3, "SeriesTime=240000", EINVAL, "SeriesTime=240000; allowed: a time"},
		{"a.s", BINS * 2 + 3, "ScannerCentre=1\\2\\nan", EINVAL, "ScannerCentre="},
		{"a.s", BINS * 2 + 3, "=1", EINVAL, "Keyword=value"},
		{"a.s", BINS * 2 + 3, "", EINVAL, "Keyword=value"},
		{"a.s", BINS * 2 + 3, "A234567890123456789012345678901234567890123456789012345678901234=1", EINVAL,
		 "neither a keyword"},
		{"a.s", BINS * 2 + 3, "A2345678901234567890123456789012345678901234567890123456789012345=1", EINVAL,
		 "Keyword=value"},
	};
	uint8_t data[BINS * 2 + 4] = {0};
	struct err err;
	size_t n;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = interfile_text(cases[i].data_file, ""), *set[] = {cases[i].set};
		struct sinogram_import conf = {.set = set, .n_set = 1, .folder = folder};

		test_put_file(in_folder("a.hs"), text, strlen(text));
		test_put_file(in_folder("a.s"), data, cases[i].size);
		conf.header[SINOGRAM_EMISSION] = in_folder("a.hs");
		memset(&err, 0, sizeof(err));
		if (sinogram_import(&conf, &n, &err) >= 0 || err.code != cases[i].code || !strstr(err.msg, cases[i].says))
			fail_msg("case %zu: %d \"%s\"; wanted %d \"%s\"", i, err.code, err.msg, cases[i].code, cases[i].says);
		free(text);
		list_folder(true);
	}
}

/* The same values from the other side of their limits. */
TEST(test_import_just_allowed, .teardown = clean)
{
	static char *const sets[] = {"PatientWeight=0",
				     "PatientWeight=9e29",
				     "PatientSize=3",
				     "AcquisitionDate=20240229",
				     "AcquisitionTime=235959.999999",
				     "AcquisitionTime=0930",
				     "RadiopharmaceuticalStartTime=0900",
				     "SeriesTime=09",
				     "SeriesTime=000000",
				     "PatientSex=",
				     "PatientSex=O",
				     "AccessionNumber=1234567890123456",
				     "ScannerCentre=-1e3\\0\\.5",
				     "0010,1030=70",
				     "PatientPosition=FFDR",
				     "Radionuclide=I124"};
	uint8_t data[BINS * 2 + 3] = {0};
	struct err err = {0};
	size_t n;

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		char *text = interfile_text("a.s", ""), *set[] = {sets[i]};
		struct sinogram_import conf = {.set = set, .n_set = 1, .folder = folder};

		test_put_file(in_folder("a.hs"), text, strlen(text));
		test_put_file(in_folder("a.s"), data, sizeof(data));
		conf.header[SINOGRAM_EMISSION] = in_folder("a.hs");
		if (sinogram_import(&conf, &n, &err) < 0)
			fail_msg("%s: %s", sets[i], err.msg);
		free(text);
		list_folder(true);
	}
}

/* Save a header without the lines that begin with a key, with further lines, and its data. */
static void save_without(const char *const *keys, const char *header, const char *data_file, const char *lines)
{
	static const uint8_t data[BINS * 2 + 3];
	char *text = interfile_text(data_file, ""), *end, *whole;

	for (; *keys; keys++)
		while ((end = strstr(text, *keys)))
			memmove(end, strchr(end, '\n') + 1, strlen(strchr(end, '\n') + 1) + 1);
	end = strstr(text, "!END OF INTERFILE");
	assert_non_null(end);
	*end = '\0';
	assert_true(asprintf(&whole, "%s%s!END OF INTERFILE :=\n", text, lines) > 0);
	test_put_file(in_folder(header), whole, strlen(whole));
	test_put_file(in_folder(data_file), data, sizeof(data));
	free(text);
	free(whole);
}

static void save_pair(const char *header, const char *data_file, const char *lines)
{
	static const char *const position[] = {"patient ", NULL};

	save_without(position, header, data_file, lines);
}

/* Import a.hs, completed by `like` (NULL: by nothing) and what is set (a list that ends with NULL). Then the folder is empty again;
 * *ret_facts and *ret_file, which the caller closes, are those of the object. */
static int import_one(const char *like, char *const *set, struct dicom_file **ret_file, struct pet_facts *ret_facts,
		      struct err *err)
{
	struct sinogram_import conf = {.folder = folder, .now = 1782726000, .set = (char **)set};
	char header[500], other[500];
	size_t n;
	int rc;

	while (set[conf.n_set])
		conf.n_set++;
	snprintf(header, sizeof(header), "%s", in_folder("a.hs"));
	snprintf(other, sizeof(other), "%s", in_folder(like ? like : ""));
	conf.header[SINOGRAM_EMISSION] = header;
	conf.like = like ? other : NULL;
	rc = sinogram_import(&conf, &n, err);
	if (rc == 0)
		rc = dicom_open(in_folder("emission.dcm"), ret_file, err);
	if (rc == 0)
		pet_facts_read(dicom_root(*ret_file), ret_facts);
	list_folder(true);
	return rc;
}

/* Import two beds, a.hs and b.hs. */
static int import_beds(struct sinogram_import_bed beds[2], char *const *set, struct err *err)
{
	struct sinogram_import conf = {
		.beds = beds, .n_beds = 2, .folder = folder, .now = 1782726000, .set = (char **)set, .n_set = set && set[0]};
	char header[2][500];
	size_t n;

	for (int b = 0; b < 2; b++) {
		snprintf(header[b], sizeof(header[b]), "%s", in_folder(b ? "b.hs" : "a.hs"));
		beds[b].header[SINOGRAM_EMISSION] = header[b];
	}
	beds[1].z = 30;
	return sinogram_import(&conf, &n, err);
}

/* Position and tracer of several headers of one acquisition. */
TEST(test_headers_agree, .teardown = clean)
{
	static const char supine[] = "patient orientation := head_in\npatient rotation := supine\n";
	static const struct {
		const char *first, *second, *set, *says; /* says: NULL: accepted */
		bool attenuation;			 /* the second header is that of ATTENUATION of one acquisition */
	} cases[] = {
		{supine, "patient orientation := head_in\npatient rotation := prone\n", NULL,
		 "bed 2 (b.hs) has patient rotation := prone, bed 1 (a.hs) has supine: they are not of one acquisition, or one "
		 "is wrong; correct the header, or set PatientPosition",
		 false},
		{supine, "patient orientation := FFS\n", NULL, "patient orientation := feet_in, bed 1 (a.hs) has head_in", false},
		{supine, "patient orientation := head_in\npatient rotation := other\n", NULL,
		 "patient rotation := other, bed 1 (a.hs) has supine", false},
		{supine, "patient orientation := HFP\n", "PatientPosition=HFS", NULL, false},
		{supine, "patient orientation := HFP\n", "0018,5100=HFS", NULL, false},
		{"radionuclide name[1] := C-11\n", "radionuclide name[1] := O-15\n", NULL,
		 "bed 2 (b.hs) has radionuclide name[1] := O15, bed 1 (a.hs) has C11", false},
		{"radionuclide name[1] := C-11\n", "radionuclide name[1] := O-15\n", "RadionuclideHalfLife=122",
		 "set Radionuclide", false},
		{"radionuclide name[1] := C-11\n", "radionuclide name[1] := O-15\n", "Radionuclide=O15", NULL, false},
		{"radionuclide halflife (sec)[1] := 1222\n", "radionuclide halflife (sec)[1] := 122\n", NULL,
		 "radionuclide halflife (sec)[1] := 122, bed 1 (a.hs) has 1222", false},
		{"radionuclide halflife (sec)[1] := 1222\n", "radionuclide halflife (sec)[1] := 122\n",
		 "RadionuclideHalfLife=122", NULL, false},
		{"radionuclide branching factor[1] := 0.99\n", "radionuclide branching factor[1] := 0.5\n", NULL,
		 "radionuclide branching factor[1] := 0.5, bed 1 (a.hs) has 0.99", false},
		{"tracer activity at time of injection (Bq) := 3e8\n", "tracer activity at time of injection (Bq) := 2e8\n", NULL,
		 "(Bq) := 200000000, bed 1 (a.hs) has 300000000", false},
		{"", supine, NULL, NULL, false},
		{supine, "patient orientation := HFP\n", NULL,
		 "ATTENUATION (b.hs) has patient rotation := prone, EMISSION (a.hs) has supine", true},
		{"radionuclide name[1] := C-11\n", "isotope name := Ge-68\n", NULL, NULL, true}, /* of a transmission scan */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *set[] = {(char *)cases[i].set, NULL}, first[500], second[500];
		struct sinogram_import_bed beds[2] = {{.start = NAN}, {.start = 100}};
		struct sinogram_import conf = {.folder = folder, .now = 1782726000};
		struct err err = {0};
		size_t n;
		int rc;

		save_pair("a.hs", "a.s", cases[i].first);
		save_pair("b.hs", "b.s", cases[i].second);
		snprintf(first, sizeof(first), "%s", in_folder("a.hs"));
		snprintf(second, sizeof(second), "%s", in_folder("b.hs"));
		conf.header[SINOGRAM_EMISSION] = first;
		conf.header[SINOGRAM_ATTENUATION] = second;
		rc = cases[i].attenuation ? sinogram_import(&conf, &n, &err) : import_beds(beds, set, &err);
		if (cases[i].says ? rc != -EBADMSG || !strstr(err.msg, cases[i].says) : rc < 0)
			fail_msg("case %zu: %d \"%s\"; wanted \"%s\"", i, rc, err.msg, cases[i].says ? cases[i].says : "");
		list_folder(true);
	}
}

/* Save a file for --like, with a tracer, the nuclide's code, or its half-life; NULL: without. */
static void save_like(bool tracer, const char *meaning, const char *half_life)
{
	struct err err = {0};
	struct dicom_file *file;
	struct item_writer root = {.err = &err}, f;

	assert_int_equal(dicom_new(CLASS_PET, "1.2.3.4", &file, &err), 0);
	root.item = dicom_root(file);
	item_put_text(&root, TAG_STUDY_INSTANCE_UID, "1.2.3");
	if (tracer) {
		f = item_begin(&root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE);
		item_put_text(&f, TAG_RADIONUCLIDE_TOTAL_DOSE, "2.01e8");
		if (meaning)
			item_put_code(&f, DICOM_TAG(0x0054, 0x0300), "1", "SCT", meaning);
		if (half_life)
			item_put_text(&f, TAG_RADIONUCLIDE_HALF_LIFE, half_life);
		item_end(&root, &f);
	}
	assert_int_equal(root.rc, 0);
	assert_int_equal(dicom_write(in_folder("like"), file, &err), 0);
	dicom_close(file);
}

/* The header completes the tracer of --like, and must not contradict it. */
TEST(test_like_tracer, .teardown = clean)
{
	static const char carbon[] = "radionuclide name[1] := C-11\ntracer activity at time of injection (Bq) := 2e8\n"
				     "radionuclide branching factor[1] := 0.99\n";
	static const struct {
		const char *meaning, *half_life, *nuclide; /* nuclide: of the object; NULL: refused */
		double result;
	} cases[] = {
		{NULL, NULL, "^11^Carbon", 20.364 * 60}, /* a tracer without a nuclide */
		{NULL, NULL, "^11^Carbon", 20.364 * 60}, /* without a tracer */
		{"^11^Carbon", NULL, "^11^Carbon", 20.364 * 60},
		{NULL, "1224", "^11^Carbon", 1224},
		{"^15^Oxygen", NULL, NULL, 0},
		{NULL, "122.24", NULL, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pet_facts facts;
		struct dicom_file *file;
		struct err err = {0};
		double fraction = 0;
		int rc;

		save_pair("a.hs", "a.s", carbon);
		save_like(i != 1, cases[i].meaning, cases[i].half_life);
		rc = import_one("like", (char *[]){NULL}, &file, &facts, &err);
		if (!cases[i].nuclide) {
			assert_error(rc, &err, EBADMSG, "the header's half-life is 1221.84 s, that of --like 122.24 s");
			continue;
		}
		if (rc < 0)
			fail_msg("case %zu: %s", i, err.msg);
		assert_string_equal(facts.radionuclide, cases[i].nuclide);
		assert_true(fabs(facts.half_life - cases[i].result) < 1e-3);
		assert_true(facts.dose == 2e8); /* that of the header */
		assert_int_equal(
			dicom_get_double(dicom_item_at(dicom_root(file), TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0),
					 DICOM_TAG(0x0018, 0x1076), 0, &fraction, &err),
			1);
		assert_true(fraction == 0.99);
		dicom_close(file);
	}
}

#define AT_TEN "study date (yyyy:mm:dd) := 2026:06:01\nstudy time (hh:mm:ss) := 10:00:00\n"
#define LASTS_600 "image duration (sec)[1] := 600\n"

struct like_case {
	const char *modality, *header, *time, *duration, *dose; /* time and what follows: of --like, which was made on 20260601 */
	char *set;						/* NULL: nothing */
	const char *says;					/* NULL: the import succeeds with */
	const char *start;					/* "": none */
	double seconds, bq;					/* 0: none */
};

/* Save a file of another scan for --like; text: start, duration, dose. */
static void save_like_of(const struct like_case *c)
{
	struct err err = {0};
	struct dicom_file *file;
	struct item_writer root = {.err = &err}, f;

	assert_int_equal(dicom_new("1.2.3", "1.2.3.4", &file, &err), 0);
	root.item = dicom_root(file);
	item_put_text(&root, TAG_STUDY_INSTANCE_UID, "1.2.3");
	item_put_text(&root, TAG_MODALITY, c->modality);
	item_put_text(&root, TAG_ACQUISITION_DATE, "20260601");
	item_put_text(&root, TAG_SERIES_DATE, "20260601");
	item_put_text(&root, TAG_ACQUISITION_TIME, c->time);
	item_put_text(&root, TAG_SERIES_TIME, c->time);
	item_put_text(&root, TAG_ACTUAL_FRAME_DURATION, c->duration);
	f = item_begin(&root, TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE);
	item_put_text(&f, TAG_RADIONUCLIDE_TOTAL_DOSE, c->dose);
	item_end(&root, &f);
	assert_int_equal(root.rc, 0);
	assert_int_equal(dicom_write(in_folder("like"), file, &err), 0);
	dicom_close(file);
}

/* Start, duration and dose are those of the header; --like completes them only if it is of PET and of the same acquisition. */
TEST(test_like_measurement, .teardown = clean)
{
	static const struct like_case cases[] = {
		{"CT", AT_TEN LASTS_600, "073000", "1000", "2e8", NULL, NULL, "100000", 600, 0},
		{"MR", "", "073000", "1000", "2e8", NULL, NULL, "", 0, 0},
		{"CT", LASTS_600, "073000", "", "", "AcquisitionTime=094500", NULL, "094500", 600, 0},
		{"PT", AT_TEN LASTS_600, "100000.2", "60000", "2e8", NULL, NULL, "100000", 600, 2e8},
		{"PT", AT_TEN LASTS_600, "092000", "600000", "2e8", NULL,
		 "start is 20260601 100000, that of --like 20260601 092000", NULL, 0, 0},
		{"PT", AT_TEN LASTS_600, "092000", "600000", "2e8", "AcquisitionTime=092100", NULL, "092100", 600, 2e8},
		{"PT", AT_TEN "image relative start time (sec)[1] := 1800.5\n", "100000", "600000", "2e8", NULL, NULL,
		 "103000.500", 600, 2e8},
		{"PT", LASTS_600, "092000", "600000", "2e8", NULL, NULL, "092000", 600, 2e8},
		{"PT", LASTS_600, "092000", "60000", "2e8", NULL, "the header's duration is 600 s, that of --like 60 s", NULL, 0,
		 0},
		{"PT", "", "092000", "60000", "2e8", NULL, NULL, "092000", 60, 2e8},
		{"PT", "tracer activity at time of injection (Bq) := 1e8\n", "092000", "60000", "2e8", NULL,
		 "dose is 100000000 Bq (tracer activity at time of injection), that of --like 200000000 Bq", NULL, 0, 0},
		{"PT", "tracer activity at time of injection (Bq) := 1e8\n", "092000", "60000", "2e8",
		 "RadionuclideTotalDose=1.5e8", NULL, "092000", 60, 1.5e8},
		{"CT", "tracer activity at time of injection (Bq) := 1e8\n", "092000", "60000", "2e8", NULL, NULL, "", 0, 1e8},
		{"PT", "image duration (sec)[1] := 1e9\n", "092000", "", "", NULL,
		 "image duration (sec) := 1e+09; allowed: at most 2147483", NULL, 0, 0},
		{"PT", "image duration (sec)[1] := 1e9\n", "092000", "", "", "ActualFrameDuration=60000", NULL, "092000", 60, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct like_case *c = &cases[i];
		struct pet_facts facts;
		struct dicom_file *file;
		struct err err = {0};
		int rc;

		save_without((const char *const[]){"patient ", "study ", "image duration", NULL}, "a.hs", "a.s", c->header);
		save_like_of(c);
		rc = import_one("like", (char *[]){c->set, NULL}, &file, &facts, &err);
		if (c->says) {
			assert_error(rc, &err, EBADMSG, c->says);
			continue;
		}
		if (rc < 0)
			fail_msg("case %zu: %s", i, err.msg);
		if (strcmp(facts.acquisition_time, c->start) != 0 || facts.acquisition_date[0] != (c->start[0] ? '2' : '\0') ||
		    (c->seconds > 0 ? facts.duration != c->seconds : facts.duration > 0) ||
		    (c->bq > 0 ? facts.dose != c->bq : facts.dose > 0))
			fail_msg("case %zu: start %s %s, %g s, %g Bq", i, facts.acquisition_date, facts.acquisition_time,
				 facts.duration, facts.dose);
		dicom_close(file);
	}
}

/* Values that the header of bed 1 lacks are those of bed 2. */
TEST(test_beds_complete, .teardown = clean)
{
	struct sinogram_import_bed beds[2] = {{.start = NAN}, {.start = 100}};
	struct dicom_file *file;
	struct pet_facts facts;
	struct err err = {0};

	save_pair("a.hs", "a.s", "patient rotation := prone\nradionuclide halflife (sec)[1] := 1222\n");
	save_pair("b.hs", "b.s",
		  "patient orientation := head_in\nradionuclide name[1] := C-11\n"
		  "tracer activity at time of injection (Bq) := 2e8\n");
	assert_done(import_beds(beds, NULL, &err), &err);
	for (int b = 1; b <= 2; b++) {
		char name[64];

		snprintf(name, sizeof(name), "emission-bed%03d.dcm", b);
		assert_done(dicom_open(in_folder(name), &file, &err), &err);
		pet_facts_read(dicom_root(file), &facts);
		assert_string_equal(facts.patient_position, "HFP");
		assert_string_equal(facts.radionuclide, "^11^Carbon");
		assert_true(facts.half_life == 1222 && facts.dose == 2e8);
		dicom_close(file);
	}
}

/* Times that --bed has are of that origin. */
TEST(test_origins_of_beds, .teardown = clean)
{
	static const struct {
		double start, duration[2];
		const char *of_start, *of_duration;
	} cases[] = {
		{NAN, {NAN, NAN}, "\nstart: header: study date #", "\nduration: header: image duration (sec) #"},
		{700, {NAN, NAN}, "\nstart: header: study date, of 1 of 2 beds --bed: start #", "image duration (sec) #"},
		{700,
		 {60, NAN},
		 "study date, of 1",
		 "\nduration: header: image duration (sec), of 1 of 2 beds --bed: duration #"},
		{700, {60, 60}, "study date, of 1", "\nduration: --bed: duration #"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sinogram_import_bed beds[2] = {{.start = NAN}, {.start = cases[i].start}};
		char name[] = "a.hs", data[] = "a.s", origins[2 * FACT_ORIGINS_SIZE] = "";
		struct dicom_file *file;
		struct err err = {0};
		unsigned block;

		for (int b = 0; b < 2; b++, name[0] = data[0] = 'b') {
			save_pair(name, data, b && isnan(cases[i].start) ? "image relative start time (sec) := 700\n" : "");
			beds[b].duration = cases[i].duration[b];
		}
		if (import_beds(beds, NULL, &err) < 0 || dicom_open(in_folder("emission-bed001.dcm"), &file, &err) < 0)
			fail_msg("case %zu: %s", i, err.msg);
		block = private_block(dicom_root(file), SINOGRAM_GROUP, SINOGRAM_CREATOR);
		dicom_get_text(dicom_root(file), sinogram_tag(block, SINOGRAM_ORIGINS), origins, sizeof(origins), NULL);
		if (!strstr(origins, cases[i].of_start) || !strstr(origins, cases[i].of_duration))
			fail_msg("case %zu: %s", i, origins);
		dicom_close(file);
		list_folder(true);
	}
}

#define MOMENT "RadiopharmaceuticalStartDateTime="
#define TIME "RadiopharmaceuticalStartTime="

/* Both attributes of the injection are written on the clock of the object; one that is set replaces the other. */
TEST(test_injection, .teardown = clean)
{
	static const struct {
		const char *header;			  /* beside the start at 10:00 and 600 s */
		char *set[3];				  /* ends with NULL */
		const char *start, *zone, *time, *moment; /* start: NULL: refused with `zone` */
	} cases[] = {
		{"", {MOMENT "20260531235900"}, "100000", "", "235900", "20260531235900"},
		{"", {TIME "091500.5", "Radionuclide=F18"}, "100000", "", "091500.5", "20260601091500.500"},
		{"", {TIME "100030", "Radionuclide=F18"}, "100000", "", "100030", "20260601100030"},
		{"", {TIME "101500", "Radionuclide=F18"}, "100000", "", "101500", ""},	/* of another day
														 */
		{"", {TIME "091500", "Radionuclide=Zr89"}, "100000", "", "091500", ""}, /* perhaps */
		{"", {MOMENT "20260601070000+0000"}, "100000", "", "", "20260601070000+0000"},
		{"",
		 {MOMENT "20260601000000+0000", "TimezoneOffsetFromUTC=-0130"},
		 "100000",
		 "-0130",
		 "223000",
		 "20260531223000"},
		{"", {MOMENT "20260601091500", TIME "091530"}, "100000", "", "091530", "20260601091500"},
		{"",
		 {MOMENT "20260601091500", TIME "101500"},
		 NULL,
		 "is 20260601091500 in Radiopharmaceutical Start DateTime (0018,1078), and 101500 in",
		 NULL,
		 NULL},
		{"", {"TimezoneOffsetFromUTC=CEST"}, NULL, "TimezoneOffsetFromUTC=CEST; allowed: an offset from UTC", NULL, NULL},
		{"", {MOMENT "20260601091500+1500"}, NULL, "allowed: a date and time", NULL, NULL},
		{"study time (hh:mm:ss GMT+00:00) := 08:00:00\n", {NULL}, "080000", "+0000", "", ""},
		{"study time (hh:mm:ss GMT+00:00) := 23:00:00\n", {"TimezoneOffsetFromUTC=+0200"}, "010000", "+0200", "", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char time[17] = "", moment[27] = "", lines[300];
		struct pet_facts facts;
		struct dicom_file *file;
		struct err err = {0};
		int rc;

		snprintf(lines, sizeof(lines), "%s%s" LASTS_600, "study date (yyyy:mm:dd) := 2026:06:01\n",
			 cases[i].header[0] ? cases[i].header : "study time (hh:mm:ss) := 10:00:00\n");
		save_without((const char *const[]){"study ", "image duration", NULL}, "a.hs", "a.s", lines);
		rc = import_one(NULL, cases[i].set, &file, &facts, &err);
		if (!cases[i].start) {
			if (rc >= 0 || !strstr(err.msg, cases[i].zone))
				fail_msg("case %zu: %d \"%s\"", i, rc, err.msg);
			continue;
		}
		if (rc < 0)
			fail_msg("case %zu: %s", i, err.msg);
		struct dicom_item *item = dicom_item_at(dicom_root(file), TAG_RADIOPHARMACEUTICAL_INFORMATION_SEQUENCE, 0);

		if (item) {
			dicom_get_text(item, TAG_RADIOPHARMACEUTICAL_START_TIME, time, sizeof(time), NULL);
			dicom_get_text(item, TAG_RADIOPHARMACEUTICAL_START_DATE_TIME, moment, sizeof(moment), NULL);
		}
		if (strcmp(facts.acquisition_time, cases[i].start) != 0 || strcmp(facts.zone, cases[i].zone) != 0 ||
		    strcmp(time, cases[i].time) != 0 || strcmp(moment, cases[i].moment) != 0)
			fail_msg("case %zu: start %s, zone %s, time \"%s\", moment \"%s\"", i, facts.acquisition_time, facts.zone,
				 time, moment);
		dicom_close(file);
	}
}

/* The start of a bed, and of the acquisition, contains the relative start of its header. */
TEST(test_beds_relative_start, .teardown = clean)
{
	static const char *const none[] = {"study ", "image duration", NULL};
	static const struct {
		const char *first, *second, *start; /* start: of the acquisition */
	} cases[] = {
		{AT_TEN "image relative start time (sec)[1] := 90\n", AT_TEN "image relative start time (sec)[1] := 800.25\n",
		 "100130"},
		{"image relative start time (sec) := 0\n", "!image relative start time (sec) := 710.25\n", ""},
	};

	for (size_t i = 0; i < 2; i++) {
		struct sinogram_import_bed beds[2] = {{.start = NAN, .duration = 600}, {.start = NAN, .duration = 60}};
		struct sinogram_facts facts;
		struct dicom_file *file;
		struct pet_facts of_bed;
		struct err err = {0};

		save_without(none, "a.hs", "a.s", cases[i].first);
		save_without(none, "b.hs", "b.s", cases[i].second);
		if (import_beds(beds, NULL, &err) < 0 || dicom_open(in_folder("emission-bed002.dcm"), &file, &err) < 0)
			fail_msg("case %zu: %s", i, err.msg);
		assert_int_equal(sinogram_facts_of(file, &facts, &err), 1);
		assert_int_equal(facts.start, 710250);
		pet_facts_read(dicom_root(file), &of_bed);
		assert_string_equal(of_bed.acquisition_time, cases[i].start);
		dicom_close(file);
		list_folder(true);
	}
}

/* All objects or none. */
TEST(test_all_or_none, .teardown = clean)
{
	struct sinogram_arrays a = {.m = &geometry, .duration = NAN, .values = {NULL, values[1]}};
	struct sinogram_import conf = {.folder = "/nowhere/at/all"};
	struct err err = {0};
	size_t n = 77;

	assert_true(sinogram_write(&a, &conf, &n, &err) < 0);
	conf.folder = folder;
	conf.chunk = 1; /* too small: chunks have an even size */
	assert_int_equal(sinogram_write(&a, &conf, &n, &err), -EINVAL);
	conf.chunk = SINOGRAM_CHUNK_MAX + 2;
	assert_int_equal(sinogram_write(&a, &conf, &n, &err), -EINVAL);
	conf.chunk = 100;
	assert_int_equal(mkdir(in_folder("emission-0004.dcm.part"), 0700), 0); /* prevents the fourth object from being written */
	assert_true(sinogram_write(&a, &conf, &n, &err) < 0);
	assert_int_equal(rmdir(in_folder("emission-0004.dcm.part")), 0);
	assert_int_equal(list_folder(false), 0);
	assert_int_equal(n, 77);
	a.values[SINOGRAM_EMISSION] = NULL;
	assert_int_equal(sinogram_write(&a, &conf, &n, &err), -EINVAL);
}

TESTS_SETUP(make_folder, remove_folder);
