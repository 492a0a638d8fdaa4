/* Sinogram objects: what goes in comes out, in any order of roles and chunks; what is missing, twice, or of another acquisition
 * is named; quantification and orientation out of standard attributes; Interfile files in. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dicom/pixels.h"
#include "node/dicom_tags.h"
#include "node/sinogram.h"

#define RADIAL 5
#define ANGLES 4
#define PLANES 8 /* 4 rings: -1 .. 1: 7 planes; 3: 1 plane */
#define BINS (PLANES * ANGLES * RADIAL)

static char folder[64];
static struct config *config;

static const char *in_folder(const char *name)
{
	static char path[8][400];
	static int k;

	k = (k + 1) % 8;
	snprintf(path[k], sizeof(path[k]), "%s/%s", folder, name);
	return path[k];
}

static int make_folder(void **state)
{
	struct err err = {0};
	(void)state;

	snprintf(folder, sizeof(folder), "/tmp/tomonode-test-XXXXXX");
	if (!mkdtemp(folder) || dicom_start(&err) < 0 || config_load(NULL, NULL, NULL, &config, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return -1;
	}
	return 0;
}

static int list_folder(bool remove)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.') {
			n++;
			if (remove)
				unlinkat(dirfd(d), e->d_name, 0);
		}
	closedir(d);
	return n;
}

static int clean(void **state)
{
	(void)state;
	list_folder(true);
	return 0;
}

static int remove_folder(void **state)
{
	clean(state);
	config = config_free(config);
	dicom_stop();
	return rmdir(folder);
}

/* ---- an acquisition ---- */

static struct michelogram_segment segments[] = {{-1, 1, 7}, {3, 3, 1}};
static const struct michelogram geometry = {
	.scanner = {4, 16, 6.54, 100, 7, 3},
	.n_radial = RADIAL,
	.n_angles = ANGLES,
	.angle_offset = 10,
	.arc_corrected = true,
	.n_segments = 2,
	.segments = segments,
};
static float values[SINOGRAM_ROLES + 1][BINS];

static char *basics[] = {"PatientPosition=HFS",	    "AcquisitionDate=20260601",	 "AcquisitionTime=101500",
			 "Radionuclide=F18",	    "PatientWeight=70",		 "RadionuclideTotalDose=3.7e8",
			 "ScannerCentre=1\\2\\3.5", "DoseCalibrationFactor=0.25"};
#define N_BASICS 8

/* All objects in the folder, of the roles asked for (bits). Emission has chunks of 100 bytes where `chunked`. */
static size_t write_objects(unsigned roles, uint64_t chunk, size_t n_set, char *const *set)
{
	struct sinogram_arrays a = {.m = &geometry, .duration = 600};
	struct sinogram_import conf = {.set = set, .n_set = n_set, .folder = folder, .chunk = chunk, .now = 1782726000};
	struct err err = {0};
	size_t n = 0;

	for (int role = 1; role <= SINOGRAM_ROLES; role++)
		for (int i = 0; i < BINS; i++)
			values[role][i] = (float)(role * 1000 + i) * 0.37f;
	for (int role = 1; role <= SINOGRAM_ROLES; role++)
		a.values[role] = roles >> role & 1 ? values[role] : NULL;
	if (sinogram_write(&a, &conf, &n, &err) < 0)
		fail_msg("%s", err.msg);
	return n;
}

#define EMISSION (1u << SINOGRAM_EMISSION)
#define ADDITIVE (1u << SINOGRAM_ADDITIVE)
#define ALL 0x3eu

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct paths {
	char *path[64];
	size_t n;
};

static struct paths find_paths(void)
{
	struct paths p = {.n = 0};
	DIR *d = opendir(folder);
	struct dirent *e;

	while ((e = readdir(d)))
		if (strstr(e->d_name, ".dcm") && p.n < 64)
			p.path[p.n++] = strdup(in_folder(e->d_name));
	closedir(d);
	qsort(p.path, p.n, sizeof(p.path[0]), by_name);
	return p;
}

static void free_paths(struct paths *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->path[i]);
	p->n = 0;
}

static struct sinogram *open_all(struct err *err)
{
	struct paths p = find_paths();
	struct sinogram *s = NULL;
	int rc;

	memset(err, 0, sizeof(*err));
	rc = sinogram_open((const char *const *)p.path, p.n, config, &s, err);
	assert_int_equal(rc == 0, s != NULL);
	free_paths(&p);
	return s;
}

static void must_refuse(int code, const char *says)
{
	struct err err;
	struct sinogram *s = open_all(&err);

	if (s || err.code != code || !strstr(err.msg, says))
		fail_msg("%d \"%s\"; wanted %d \"%s\"", err.code, s ? "opened" : err.msg, code, says);
}

/* Every role's planes are what was written. */
static void check_values(const struct sinogram *s, unsigned roles)
{
	float plane[ANGLES * RADIAL];
	struct err err = {0};

	for (int role = 1; role <= SINOGRAM_ROLES; role++) {
		uint8_t *bytes = NULL;

		assert_int_equal(s->part[role].present, roles >> role & 1);
		if (!s->part[role].present) {
			assert_int_equal(sinogram_read(s, (enum sinogram_role)role, &bytes, &err), -EINVAL);
			continue;
		}
		if (sinogram_read(s, (enum sinogram_role)role, &bytes, &err) < 0)
			fail_msg("%s", err.msg);
		assert_memory_equal(bytes, values[role], sizeof(values[role]));
		for (size_t p = 0; p < PLANES; p++) {
			interfile_plane(&s->part[role].header, bytes, p, plane);
			assert_memory_equal(plane, values[role] + p * ANGLES * RADIAL, sizeof(plane));
		}
		free(bytes);
	}
}

static void test_roundtrip(void **state)
{
	static const unsigned roles[] = {EMISSION, EMISSION | ADDITIVE, ALL};
	struct err err;
	struct sinogram *s;
	(void)state;

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

/* The same data give the same UIDs; others give others. */
static void test_uids(void **state)
{
	struct sinogram_facts f[4];
	char *other[] = {"PatientPosition=HFP"};
	struct err err = {0};
	(void)state;

	for (int i = 0; i < 4; i++) {
		write_objects(i == 2 ? EMISSION | ADDITIVE : EMISSION, 0, i == 3 ? 1 : N_BASICS, i == 3 ? other : basics);
		assert_int_equal(sinogram_read_facts(in_folder("emission.dcm"), &f[i], &err), 1);
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

/* ---- what is wrong with objects ---- */

/* An object once more, with another private value, under the same or another name. */
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

/* The first of the eight bytes, where they lie in a file. */
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

static void test_chunks(void **state)
{
	struct err err;
	struct sinogram *s;
	uint8_t *bytes = NULL;
	(void)state;

	/* a chunk is missing; one is there twice; one has changed */
	write_objects(EMISSION, 300, N_BASICS, basics); /* 640 bytes in 3 chunks */
	unlink(in_folder(EMISSION_2));
	must_refuse(EBADMSG, "EMISSION: chunk 2 of 3 is missing");
	write_objects(EMISSION, 300, N_BASICS, basics);
	change(EMISSION_2, "again.dcm", SINOGRAM_ROLE, "CS", "EMISSION");
	must_refuse(EBADMSG, "chunk 2 of EMISSION twice: again.dcm, " EMISSION_2);
	list_folder(true);

	write_objects(EMISSION, 300, N_BASICS, basics);
	change(EMISSION_2, EMISSION_2, SINOGRAM_SHA256, "LO", OTHER_HASH);
	must_refuse(EBADMSG, "with another SHA-256");
	for (int i = 1; i <= 3; i++) {
		char name[32];

		snprintf(name, sizeof(name), "emission-%04d.dcm", i);
		change(name, name, SINOGRAM_SHA256, "LO", OTHER_HASH);
	}
	s = open_all(&err); /* the data are looked at when they are read */
	assert_non_null(s);
	assert_int_equal(sinogram_read(s, SINOGRAM_EMISSION, &bytes, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "EMISSION: the data's SHA-256 is "));
	assert_non_null(strstr(err.msg, OTHER_HASH));
	assert_null(bytes);
	sinogram_close(s);
	list_folder(true);

	/* one byte of the data is another */
	write_objects(EMISSION, 300, N_BASICS, basics);
	flip_byte(EMISSION_2, (const uint8_t *)values[SINOGRAM_EMISSION] + 300 + 17);
	s = open_all(&err);
	assert_non_null(s);
	assert_int_equal(sinogram_read(s, SINOGRAM_EMISSION, &bytes, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, s->part[SINOGRAM_EMISSION].sha256));
	sinogram_close(s);
	list_folder(true);

	write_objects(EMISSION, 300, N_BASICS, basics);
	change(EMISSION_2, EMISSION_2, SINOGRAM_HEADER, "UT", "!INTERFILE :=");
	must_refuse(EBADMSG, EMISSION_2 " has another Interfile header");
}

static void test_object_refusals(void **state)
{
	static const struct {
		enum sinogram_element element;
		const char *vr, *value;
		int code;
		const char *says;
	} cases[] = {
		{SINOGRAM_FORMAT_ID, "LO", "INTERFILE_4", ENOTSUP,
		 "emission.dcm: sinogram object: format \"INTERFILE_4\"; read is"},
		{SINOGRAM_FORMAT_ID, "LO", "", EBADMSG, "format (0071,1001) is missing"},
		{SINOGRAM_ROLE, "CS", "RANDOMS", EBADMSG, "role \"RANDOMS\"; allowed: EMISSION"},
		{SINOGRAM_ROLE, "CS", "ADDITIVE", EBADMSG, "no object of role EMISSION among 1"},
		{SINOGRAM_CHUNK_INDEX, "UL", "1", EBADMSG, "index of the chunk (0071,1011) is 1; allowed: 0 to 0"},
		{SINOGRAM_CHUNK_COUNT, "UL", "0", EBADMSG, "count of chunks (0071,1012) is 0"},
		{SINOGRAM_CHUNK_COUNT, "UL", "4000000000", EBADMSG, "count of chunks (0071,1012) is 4000000000"},
		{SINOGRAM_CHUNK_COUNT, "LO", "many", EBADMSG, "no number"},
		{SINOGRAM_LENGTH, "UL", "4294967295", EBADMSG, "640 bytes in 1 chunks, 4294967295 are promised"},
		{SINOGRAM_LENGTH, "UL", "0", EBADMSG, "length of the data is 0"},
		{SINOGRAM_LENGTH, "UL", "636", EBADMSG, "640 bytes in 1 chunks, 636 are promised"},
		{SINOGRAM_SHA256, "LO", "12ab", EBADMSG, "SHA-256 \"12ab\" has not 64"},
		{SINOGRAM_INSTANCES, "UL", "2", EBADMSG, "the acquisition has 2 instances, and 1 is here"},
		{SINOGRAM_INSTANCES, "UL", "0", EBADMSG, "instances of the acquisition (0071,1015) is 0"},
		{SINOGRAM_HEADER, "UT", "", EBADMSG, "the Interfile header (0071,1002) is missing"},
		{SINOGRAM_HEADER, "UT", "!INTERFILE :=\nname of data file := a", EBADMSG,
		 "EMISSION: \"number format\" is missing"},
		{SINOGRAM_CENTRE, "FD", "1\\2", EBADMSG, "centre is not three numbers"},
		{SINOGRAM_CENTRE, "FD", "1\\2\\1e9", EBADMSG, "centre is 1, 2, 1e+09 mm"},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_objects(EMISSION, 0, N_BASICS, basics);
		change("emission.dcm", "emission.dcm", cases[i].element, cases[i].vr, cases[i].value);
		must_refuse(cases[i].code, cases[i].says);
		list_folder(true);
	}
}

/* A length that UL cannot hold stands in an element of its own. */
static void test_large_length(void **state)
{
	struct err err;
	struct sinogram *s;
	(void)state;

	write_objects(EMISSION, 0, N_BASICS, basics);
	change("emission.dcm", "emission.dcm", SINOGRAM_LENGTH, "UL", "0");
	change("emission.dcm", "emission.dcm", SINOGRAM_LENGTH_LARGE, "UV", "5000000000");
	must_refuse(EBADMSG, "640 bytes in 1 chunks, 5000000000 are promised");
	change("emission.dcm", "emission.dcm", SINOGRAM_LENGTH_LARGE, "UV", "640");
	s = open_all(&err);
	if (!s)
		fail_msg("%s", err.msg);
	check_values(s, EMISSION);
	sinogram_close(s);
	change("emission.dcm", "emission.dcm", SINOGRAM_LENGTH_LARGE, "UV", "18446744073709551615");
	must_refuse(EBADMSG, "(0071,1017)");
}

/* The role's header with a text replaced by one of the same length. */
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

static void test_together(void **state)
{
	static const struct {
		const char *from, *to, *says;
	} geometries[] = {
		{"View offset (degrees) := 10", "View offset (degrees) := 11",
		 "EMISSION and ADDITIVE: another geometry: first angle"},
		{"Distance between rings (cm) := 0.654", "Distance between rings (cm) := 0.655",
		 "another geometry: distance of rings"},
		{"!matrix size [1] := 5", "!matrix size [1] := 7",
		 "ADDITIVE: the header asks for 896 bytes (8 planes, 4 angles, 7"},
		{"Number of rings := 4", "Number of rings := 5", "ADDITIVE: michelogram: segment 0 has 7 planes"},
		{":= { 7,1}", ":= { 8,1}", "ADDITIVE: michelogram: segment 0 has 8 planes"},
	};
	struct err err;
	(void)state;

	for (size_t i = 0; i < sizeof(geometries) / sizeof(geometries[0]); i++) {
		write_objects(EMISSION | ADDITIVE, 0, N_BASICS, basics);
		change_header("additive.dcm", geometries[i].from, geometries[i].to);
		must_refuse(EBADMSG, geometries[i].says);
		list_folder(true);
	}
	write_objects(EMISSION | ADDITIVE, 0, N_BASICS, basics);
	change_text("additive.dcm", TAG_SERIES_INSTANCE_UID, "1.2.3");
	must_refuse(EBADMSG, "emission.dcm are of two acquisitions (series 1.2.3 and 2.25.");
	list_folder(true);
	write_objects(EMISSION | ADDITIVE, 0, N_BASICS, basics);
	change_text("additive.dcm", TAG_FRAME_OF_REFERENCE_UID, "1.2.3");
	must_refuse(EBADMSG, "two frames of reference");
	list_folder(true);
	write_objects(EMISSION | ADDITIVE, 0, N_BASICS, basics);
	unlink(in_folder("additive.dcm"));
	must_refuse(EBADMSG, "the acquisition has 2 instances, and 1 is here");
	list_folder(true);
	assert_int_equal(sinogram_open(NULL, 0, config, &(struct sinogram *){NULL}, &err), -EBADMSG);
}

/* Neither ours nor broken. */
static void test_others(void **state)
{
	struct sinogram_facts f;
	struct dicom_file *file = NULL;
	struct err err = {0};
	const char *reason = NULL;
	(void)state;

	write_objects(EMISSION, 0, N_BASICS, basics);
	change_text("emission.dcm", DICOM_TAG(0x0008, 0x9123), "1.2.3");
	assert_int_equal(sinogram_read_facts(in_folder("emission.dcm"), &f, &err), 0);
	assert_non_null(strstr(err.msg, "Raw Data Storage of another maker"));
	must_refuse(EBADMSG, "emission.dcm: Raw Data Storage of another maker");
	assert_int_equal(dicom_new(CLASS_CT, "1.2.3", &file, &err), 0);
	assert_int_equal(sinogram_facts_of(file, &f, &err), 0);
	assert_non_null(strstr(err.msg, "CTImageStorage, no Raw Data Storage"));
	dicom_close(file);
	assert_true(sinogram_vendor("1.3.12.2.1107.5.9.1", &reason) && strstr(reason, "Siemens"));
	assert_true(sinogram_vendor("1.2.840.113619.4.30", &reason) && strstr(reason, "GE"));
	assert_false(sinogram_vendor(SINOGRAM_CLASS, &reason));
	assert_int_equal(sinogram_read_facts(in_folder("nothing.dcm"), &f, &err), -ENOENT);
}

/* ---- what standard attributes say ---- */

static void test_facts(void **state)
{
	char *few[] = {"PatientPosition=FFDR"};
	struct err err;
	struct sinogram *s;
	(void)state;

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

	/* weight, half-life: not known is allowed */
	write_objects(EMISSION, 0, 1, few);
	s = open_all(&err);
	assert_non_null(s);
	assert_true(isnan(s->facts.weight) && isnan(s->facts.half_life) && isnan(s->facts.dose) && isnan(s->facts.calibration));
	assert_true(s->facts.acquisition_date[0] == '\0' && s->facts.injected[0] == '\0');
	assert_true(s->axis[0][1] == -1 && s->axis[1][0] == -1 && s->axis[2][2] == -1);
	assert_true(s->centre[0] == 0 && s->centre[1] == 0 && s->centre[2] == 0);
	sinogram_close(s);
	list_folder(true);

	/* how the patient lies must be */
	write_objects(EMISSION, 0, 0, NULL);
	must_refuse(EBADMSG, "how the patient lies is \"\" in (0054,0410) and (0054,0414), or (0018,5100); read: HFS");
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

/* Codes of both vocabularies; they win over the old attribute. */
static void test_positions(void **state)
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
	(void)state;

	assert_int_equal(dicom_new(SINOGRAM_CLASS, "1.2.3", &file, &err), 0);
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

/* ---- Interfile files ---- */

static void save(const char *name, const void *bytes, size_t n)
{
	FILE *f = fopen(in_folder(name), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static char *header_text(const char *data_file, const char *scanner)
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
	if (interfile_write(&f, &text, &err) < 0)
		fail_msg("%s", err.msg);
	return text;
}

static void test_import(void **state)
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
	char *text = header_text("a.s", "Bench"), found[17];
	struct err err = {0};
	struct sinogram *s;
	size_t n = 0;
	(void)state;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37);
	save("a.hs", text, strlen(text));
	save("a.s", data, sizeof(data));
	conf.header[SINOGRAM_EMISSION] = in_folder("a.hs");
	if (sinogram_import(&conf, &n, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(n, 1);
	assert_string_equal(warnings, "The half-life is not known, so decay will not be corrected for: --set Radionuclide=F18.");
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

/* The patient and the acquisition of another object. What describes an image is not taken from one. */
static void test_like(void **state)
{
	struct sinogram_arrays a = {.m = &geometry, .duration = 60};
	struct sinogram_import conf = {.folder = folder, .like = in_folder("like"), .now = 1782726000};
	struct dicom_file *file = NULL;
	struct err err = {0};
	struct sinogram *s;
	size_t n;
	(void)state;

	for (int sinogram = 0; sinogram < 2; sinogram++) {
		assert_int_equal(dicom_new(sinogram ? SINOGRAM_CLASS : "1.2.840.10008.5.1.4.1.1.128", "1.2.3.4", &file, &err), 0);
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
		if (sinogram_write(&a, &conf, &n, &err) < 0)
			fail_msg("%s", err.msg);
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
		assert_string_not_equal(text, "1.2.4"); /* a new one */
		assert_string_equal(s->facts.patient_position, "FFS");
		assert_true(s->facts.weight == 55);
		assert_string_equal(s->facts.corrected, sinogram ? "ATTN\\DECY" : "");
		assert_true(sinogram ? s->facts.calibration == 3 : isnan(s->facts.calibration));
		sinogram_close(s);
		list_folder(true);
	}
}

static void test_import_refusals(void **state)
{
	static const struct {
		const char *data_file;
		size_t size;
		char *set;
		int code;
		const char *says;
	} cases[] = {
		{"a.s", BINS * 2 + 2, "PatientWeight=70", EBADMSG,
		 "a.hs: a.s has 322 bytes; its header asks for 320 (8 planes, 4 angles, 5"},
		{"a.s", BINS * 2 + 4, "PatientWeight=70", EBADMSG, "a.s has 324 bytes"},
		{"b.s", BINS * 2 + 3, "PatientWeight=70", EBADMSG, "b.s: No such file"},
		{"../a.s", BINS * 2 + 3, "PatientWeight=70", ENOTSUP, "name of data file := ../a.s; allowed"},
		{"/etc/passwd", BINS * 2 + 3, "PatientWeight=70", ENOTSUP, "name of data file := /etc/passwd"},
		{"a.s", BINS * 2 + 3, "PatientWeight=heavy", EINVAL, "PatientWeight=heavy: a number"},
		{"a.s", BINS * 2 + 3, "PatientPosition=HF", EINVAL, "PatientPosition=HF; allowed: HFS"},
		{"a.s", BINS * 2 + 3, "AcquisitionDate=1.6.2026", EINVAL, "AcquisitionDate=1.6.2026: a date"},
		{"a.s", BINS * 2 + 3, "AcquisitionTime=9:30", EINVAL, "AcquisitionTime=9:30: a time"},
		{"a.s", BINS * 2 + 3, "Radionuclide=U235", EINVAL, "Radionuclide=U235; known: C11"},
		{"a.s", BINS * 2 + 3, "ScannerCentre=1\\2", EINVAL, "ScannerCentre=1\\2; three numbers"},
		{"a.s", BINS * 2 + 3, "PatientWeigth=70", EINVAL, "\"PatientWeigth\" is no keyword"},
		{"a.s", BINS * 2 + 3, "PatientWeight", EINVAL, "Keyword=value"},
		{"a.s", BINS * 2 + 3, "SOPInstanceUID=1.2", EINVAL, "SOPInstanceUID cannot be set"},
		{"a.s", BINS * 2 + 3, "0071,1003=EMISSION", EINVAL, "0071,1003 cannot be set"},
	};
	uint8_t data[BINS * 2 + 4] = {0};
	struct err err;
	size_t n;
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = header_text(cases[i].data_file, ""), *set[] = {cases[i].set};
		struct sinogram_import conf = {.set = set, .n_set = 1, .folder = folder};

		save("a.hs", text, strlen(text));
		save("a.s", data, cases[i].size);
		conf.header[SINOGRAM_EMISSION] = in_folder("a.hs");
		memset(&err, 0, sizeof(err));
		if (sinogram_import(&conf, &n, &err) >= 0 || err.code != cases[i].code || !strstr(err.msg, cases[i].says))
			fail_msg("case %zu: %d \"%s\"; wanted %d \"%s\"", i, err.code, err.msg, cases[i].code, cases[i].says);
		free(text);
		list_folder(true);
	}
}

/* All objects or none. */
static void test_all_or_none(void **state)
{
	struct sinogram_arrays a = {.m = &geometry, .duration = NAN, .values = {NULL, values[1]}};
	struct sinogram_import conf = {.folder = "/nowhere/at/all"};
	struct err err = {0};
	size_t n = 77;
	(void)state;

	assert_true(sinogram_write(&a, &conf, &n, &err) < 0);
	conf.folder = folder;
	conf.chunk = 1; /* no whole pair of bytes */
	assert_int_equal(sinogram_write(&a, &conf, &n, &err), -EINVAL);
	conf.chunk = SINOGRAM_CHUNK_MAX + 2;
	assert_int_equal(sinogram_write(&a, &conf, &n, &err), -EINVAL);
	conf.chunk = 100;
	assert_int_equal(mkdir(in_folder("emission-0004.dcm.part"), 0700), 0); /* in the way of the fourth */
	assert_true(sinogram_write(&a, &conf, &n, &err) < 0);
	assert_int_equal(rmdir(in_folder("emission-0004.dcm.part")), 0);
	assert_int_equal(list_folder(false), 0);
	assert_int_equal(n, 77);
	a.values[SINOGRAM_EMISSION] = NULL;
	assert_int_equal(sinogram_write(&a, &conf, &n, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_roundtrip, clean),    cmocka_unit_test_teardown(test_uids, clean),
		cmocka_unit_test_teardown(test_chunks, clean),	     cmocka_unit_test_teardown(test_object_refusals, clean),
		cmocka_unit_test_teardown(test_large_length, clean), cmocka_unit_test_teardown(test_together, clean),
		cmocka_unit_test_teardown(test_others, clean),	     cmocka_unit_test_teardown(test_facts, clean),
		cmocka_unit_test_teardown(test_positions, clean),    cmocka_unit_test_teardown(test_import, clean),
		cmocka_unit_test_teardown(test_like, clean),	     cmocka_unit_test_teardown(test_import_refusals, clean),
		cmocka_unit_test_teardown(test_all_or_none, clean),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
