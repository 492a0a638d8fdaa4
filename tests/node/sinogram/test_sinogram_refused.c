/* SPDX-License-Identifier: Apache-2.0 */
/* Test sinogram objects that are missing, duplicate, damaged or of another acquisition: each is refused with a message that names
 * it.
 */
#include "tests/node/sinogram/sinogram_facts.h"
#include "tests/node/sinogram/sinogram_fixture.h"
#include "tests/test.h"

/* Copy an object, under the same or another name, with another value of a private element. */
static void change(const char *from, const char *to, enum sinogram_element element, const char *vr, const char *value)
{
	struct dicom_file *file = NULL;
	struct err err = {0};

	if (dicom_open(in_folder(from), &file, &err) < 0 ||
	    dicom_put_private(dicom_root(file), SINOGRAM_GROUP, SINOGRAM_CREATOR, (uint8_t)element, vr, value, &err) < 0 ||
	    dicom_write(in_folder(to), file, &err) < 0)
		fail_msg("%s", err.msg);
	dicom_close(file);
}

static void change_text(const char *name, uint32_t tag, const char *value)
{
	struct dicom_file *file = NULL;
	struct err err = {0};

	if (dicom_open(in_folder(name), &file, &err) < 0 || dicom_put_text(dicom_root(file), tag, value, &err) < 0 ||
	    dicom_write(in_folder(name), file, &err) < 0)
		fail_msg("%s", err.msg);
	dicom_close(file);
}

/* Find the eight bytes in a file and change the first of them. */
static void flip_byte(const char *name, const uint8_t *bytes)
{
	static uint8_t all[100000];
	FILE *f = fopen(in_folder(name), "r+b");
	uint8_t *at;
	size_t n;

	assert_non_null(f);
	n = fread(all, 1, sizeof(all), f);
	at = memmem(all, n, bytes, 8);
	assert_non_null(at);
	assert_int_equal(fseek(f, at - all, SEEK_SET), 0);
	assert_true(fputc(*at ^ 1, f) != EOF);
	assert_int_equal(fclose(f), 0);
}

#define EMISSION_2 "emission-0002.dcm"
#define OTHER_HASH "00000000000000000000000000000000000000000000000000000000000000ff"

TEST(test_chunks, .teardown = clean)
{
	struct err err;
	struct sinogram *s;
	uint8_t *bytes = NULL;

	/* a missing, a duplicate, a changed chunk */
	write_objects(EMISSION, 300, N_BASICS, basics); /* 640 bytes in 3 chunks */
	unlink(in_folder(EMISSION_2));
	must_refuse(EBADMSG, "EMISSION: chunk 2 of 3 is missing");
	write_objects(EMISSION, 300, N_BASICS, basics);
	change(EMISSION_2, "again.dcm", SINOGRAM_ROLE, "CS", "EMISSION");
	must_refuse(EBADMSG, "chunk 2 of role EMISSION is in two objects: again.dcm and " EMISSION_2);
	list_folder(true);

	write_objects(EMISSION, 300, N_BASICS, basics);
	change(EMISSION_2, EMISSION_2, SINOGRAM_SHA256, "LO", OTHER_HASH);
	must_refuse(EBADMSG, "with another SHA-256");
	for (int i = 1; i <= 3; i++) {
		char name[32];

		snprintf(name, sizeof(name), "emission-%04d.dcm", i);
		change(name, name, SINOGRAM_SHA256, "LO", OTHER_HASH);
	}
	s = open_all(&err); /* the hash is checked when the data are read */
	assert_non_null(s);
	assert_error(sinogram_read(s, SINOGRAM_EMISSION, &bytes, &err), &err, EBADMSG, "EMISSION: the data's SHA-256 is ");
	assert_non_null(strstr(err.msg, OTHER_HASH));
	assert_null(bytes);
	sinogram_close(s);
	list_folder(true);

	/* one byte of the data is changed */
	write_objects(EMISSION, 300, N_BASICS, basics);
	flip_byte(EMISSION_2,
		  (const uint8_t *)values[SINOGRAM_EMISSION] + 2 * ANGLES * RADIAL * sizeof(float) + 17); /* byte 337 */
	s = open_all(&err);
	assert_non_null(s);
	assert_error(sinogram_read(s, SINOGRAM_EMISSION, &bytes, &err), &err, EBADMSG, s->part[SINOGRAM_EMISSION].sha256);
	sinogram_close(s);
	list_folder(true);

	write_objects(EMISSION, 300, N_BASICS, basics);
	change(EMISSION_2, EMISSION_2, SINOGRAM_HEADER, "UT", "!INTERFILE :=");
	must_refuse(EBADMSG, "the Interfile header of " EMISSION_2 " differs");
}

TEST(test_object_refusals, .teardown = clean)
{
	static const struct {
		enum sinogram_element element;
		const char *vr, *value;
		int code;
		const char *says;
	} cases[] = {
		{SINOGRAM_FORMAT_ID, "LO", "INTERFILE_4", ENOTSUP,
		 "emission.dcm: sinogram object: format \"INTERFILE_4\"; supported: "},
		{SINOGRAM_FORMAT_ID, "LO", "", EBADMSG, "format (0071,1001) is missing"},
		{SINOGRAM_ROLE, "CS", "RANDOMS", EBADMSG, "role \"RANDOMS\"; allowed: EMISSION"},
		{SINOGRAM_ROLE, "CS", "ADDITIVE", EBADMSG, "no object of role EMISSION among the 1 objects"},
		{SINOGRAM_CHUNK_INDEX, "UL", "1", EBADMSG, "index of the chunk (0071,1011) is 1; allowed: 0 to 0"},
		{SINOGRAM_CHUNK_COUNT, "UL", "0", EBADMSG, "count of chunks (0071,1012) is 0"},
		{SINOGRAM_CHUNK_COUNT, "UL", "4000000000", EBADMSG, "count of chunks (0071,1012) is 4000000000"},
		{SINOGRAM_CHUNK_COUNT, "LO", "many", EBADMSG, "is not a number"},
		{SINOGRAM_LENGTH, "UL", "4294967295", EBADMSG, "640 bytes in 1 chunks, but 4294967295 in the header"},
		{SINOGRAM_LENGTH, "UL", "0", EBADMSG, "length of the data is 0"},
		{SINOGRAM_LENGTH, "UL", "636", EBADMSG, "640 bytes in 1 chunks, but 636 in the header"},
		{SINOGRAM_SHA256, "LO", "12ab", EBADMSG, "SHA-256 \"12ab\" does not have 64"},
		{SINOGRAM_INSTANCES, "UL", "2", EBADMSG, "the acquisition has 2 instances, but 1 is present"},
		{SINOGRAM_INSTANCES, "UL", "0", EBADMSG, "instances of the acquisition (0071,1015) is 0"},
		{SINOGRAM_HEADER, "UT", "", EBADMSG, "the Interfile header (0071,1002) is missing"},
		{SINOGRAM_HEADER, "UT", "!INTERFILE :=\nname of data file := a", EBADMSG,
		 "EMISSION: \"number format\" is missing"},
		{SINOGRAM_CENTRE, "FD", "1\\2", EBADMSG, "centre is not three numbers"},
		{SINOGRAM_CENTRE, "FD", "1\\2\\1e9", EBADMSG, "centre is 1, 2, 1e+09 mm"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_objects(EMISSION, 0, N_BASICS, basics);
		change("emission.dcm", "emission.dcm", cases[i].element, cases[i].vr, cases[i].value);
		must_refuse(cases[i].code, cases[i].says);
		list_folder(true);
	}
}

/* A length of 4 GiB or more is stored in another element. */
TEST(test_large_length, .teardown = clean)
{
	struct err err;
	struct sinogram *s;

	write_objects(EMISSION, 0, N_BASICS, basics);
	change("emission.dcm", "emission.dcm", SINOGRAM_LENGTH, "UL", "0");
	change("emission.dcm", "emission.dcm", SINOGRAM_LENGTH_LARGE, "UV", "5000000000");
	must_refuse(EBADMSG, "640 bytes in 1 chunks, but 5000000000 in the header");
	change("emission.dcm", "emission.dcm", SINOGRAM_LENGTH_LARGE, "UV", "640");
	s = open_all(&err);
	if (!s)
		fail_msg("%s", err.msg);
	check_values(s, EMISSION);
	sinogram_close(s);
	change("emission.dcm", "emission.dcm", SINOGRAM_LENGTH_LARGE, "UV", "18446744073709551615");
	must_refuse(EBADMSG, "(0071,1017)");
}

/* Replace a text in the header of an object by one of the same length. */
static void change_header(const char *name, const char *from, const char *to)
{
	struct dicom_file *file = NULL;
	static char text[INTERFILE_TEXT_MAX + 1];
	struct err err = {0};
	char *at;

	assert_int_equal(dicom_open(in_folder(name), &file, &err), 0);
	assert_int_equal(dicom_get_text(dicom_root(file), 0x00711002, text, sizeof(text), &err), 1);
	dicom_close(file);
	at = strstr(text, from);
	assert_non_null(at);
	assert_int_equal(strlen(from), strlen(to));
	memcpy(at, to, strlen(to));
	change(name, name, SINOGRAM_HEADER, "UT", text);
}

TEST(test_together, .teardown = clean)
{
	static const struct {
		const char *from, *to, *says;
	} geometries[] = {
		{"View offset (degrees) := 10", "View offset (degrees) := 11",
		 "EMISSION and ADDITIVE: different geometry: first angle"},
		{"Distance between rings (cm) := 0.654", "Distance between rings (cm) := 0.655",
		 "different geometry: distance of rings"},
		{"!matrix size [1] := 5", "!matrix size [1] := 7",
		 "ADDITIVE: the header requires 896 bytes (8 planes, 4 angles, 7"},
		{"Number of rings := 4", "Number of rings := 5",
		 "ADDITIVE: segment 0 has 7 planes (matrix size), but ring differences -1 to 1 of 5 rings (Number of rings) make "
		 "9"},
		{":= { 7,1}", ":= { 8,1}", "ADDITIVE: segment 0 has 8 planes (matrix size), but ring differences"},
	};
	struct err err;

	for (size_t i = 0; i < sizeof(geometries) / sizeof(geometries[0]); i++) {
		write_objects(EMISSION | ADDITIVE, 0, N_BASICS, basics);
		change_header("additive.dcm", geometries[i].from, geometries[i].to);
		must_refuse(EBADMSG, geometries[i].says);
		list_folder(true);
	}
	write_objects(EMISSION | ADDITIVE, 0, N_BASICS, basics);
	change_text("additive.dcm", TAG_SERIES_INSTANCE_UID, "1.2.3");
	must_refuse(EBADMSG, "emission.dcm belong to different acquisitions (series 1.2.3 and 2.25.");
	list_folder(true);
	write_objects(EMISSION | ADDITIVE, 0, N_BASICS, basics);
	change_text("additive.dcm", TAG_FRAME_OF_REFERENCE_UID, "1.2.3");
	must_refuse(EBADMSG, "different frames of reference");
	list_folder(true);
	write_objects(EMISSION | ADDITIVE, 0, N_BASICS, basics);
	unlink(in_folder("additive.dcm"));
	must_refuse(EBADMSG, "the acquisition has 2 instances, but 1 is present");
	list_folder(true);
	assert_int_equal(sinogram_open(NULL, 0, NULL, config, &(struct sinogram *){NULL}, &err), -EBADMSG);
}

/* Roles, and chunks of one role, whose headers name two patients. */
TEST(test_other_patient, .teardown = clean)
{
	struct patient_statement same = {.same = true, .header = "additive-0001.dcm"};
	struct sinogram *s = NULL;
	struct paths p;
	struct err err = {0};

	write_objects(EMISSION | ADDITIVE, 300, N_BASICS, basics);
	change_text("additive-0001.dcm", TAG_PATIENT_ID, "another");
	must_refuse(ENOTUNIQ, "Patient ID (0010,0020) differs between additive-0001.dcm and ");
	p = find_paths();
	assert_done(sinogram_open((const char *const *)p.path, p.n, &same, config, &s, &err), &err);
	assert_ptr_equal(s->patient, s->files[0]);
	assert_string_equal(p.path[0] + strlen(folder), "/additive-0001.dcm");
	sinogram_close(s);
	change_text("additive-0001.dcm", TAG_SPECIFIC_CHARACTER_SET, "ISO_IR 100");
	assert_error(sinogram_open((const char *const *)p.path, p.n, &same, config, &s, &err), &err, ENOTSUP,
		     "additive-0001.dcm cannot give the patient");
	free_paths(&p);
	clean(NULL);
	write_objects(EMISSION, 300, N_BASICS, basics);
	change_text(EMISSION_2, TAG_PATIENT_ID, "another");
	must_refuse(ENOTUNIQ, "Patient ID (0010,0020) differs between emission-0001.dcm and " EMISSION_2);
}

/* Raw data and images of other programs are not sinogram objects. */
TEST(test_others, .teardown = clean)
{
	struct sinogram_facts f;
	struct dicom_file *file = NULL;
	struct err err = {0};
	static const struct {
		const char *sop_class, *part;
	} foreign[] = {{"1.3.12.2.1107.5.9.1", "Siemens"},
		       {"1.2.840.113619.4.30", "GE"},
		       {CLASS_RAW_DATA, "an unknown manufacturer without the private block"}};
	char reason[256];

	write_objects(EMISSION, 0, N_BASICS, basics);
	change_text("emission.dcm", DICOM_TAG(0x0008, 0x9123), "1.2.3");
	assert_int_equal(read_facts(in_folder("emission.dcm"), &f, &err), 0);
	assert_non_null(strstr(err.msg, "Raw Data Storage of another program"));
	must_refuse(EBADMSG, "emission.dcm: Raw Data Storage of another program");
	assert_int_equal(dicom_new(CLASS_CT, "1.2.3", &file, &err), 0);
	assert_int_equal(sinogram_facts_of(file, &f, &err), 0);
	assert_non_null(strstr(err.msg, "CTImageStorage, not Raw Data Storage"));
	assert_false(sinogram_unsupported(dicom_root(file), reason, sizeof(reason)));
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		assert_true(dicom_put_text(dicom_root(file), TAG_SOP_CLASS_UID, foreign[i].sop_class, &err) >= 0);
		assert_true(sinogram_unsupported(dicom_root(file), reason, sizeof(reason)));
		assert_non_null(strstr(reason, foreign[i].part));
	}
	dicom_close(file);
}

TESTS_SETUP(make_folder, remove_folder);
