/* SPDX-License-Identifier: Apache-2.0 */
/* Test files of parallel beams: valid and invalid headers (PARALLEL_1), other number formats, objects written from arrays and
 * read back in any order of chunks, objects of other kinds. Test pictures. */
#include <dirent.h>

#include "dicom/object/dicom_tags.h"
#include "dicom/pixels/pixels.h"
#include "dicom/pixels/start.h"
#include "node/format/picture.h"
#include "node/sinogram/sinogram.h"
#include "tests/node/sinogram/sinogram_facts.h"
#include "tests/test.h"

#define SLICES 3
#define ANGLES 4
#define RADIAL 5
#define BINS (SLICES * ANGLES * RADIAL)

static char folder[64];

static const char *in_folder(const char *name)
{
	return test_path(folder, name);
}

static int make_folder(void **state)
{
	struct err err = {0};

	test_folder(folder, sizeof(folder));
	return dicom_start(&err) == 0 ? 0 : -1;
}

static int clean(void **state)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
	return 0;
}

static int remove_folder(void **state)
{
	dicom_stop();
	return 0;
}

/* ---- the header ---- */

#define GOOD                                                                                                                     \
	"!INTERFILE :=\nname of data file := a.s\n!type of data := PARALLEL\n!number format := float\n"                          \
	"!number of bytes per pixel := 4\nimagedata byte order := LITTLEENDIAN\nnumber of slices := 3\nnumber of angles := 4\n"  \
	"number of radial bins := 5\nbin size (mm) := 1.5\nslice spacing (cm) := 0.2\naxis offset (mm) := -0.25\n"               \
	"first angle (degrees) := 10\narc (degrees) := 360\nunit := 1/mm\n!END OF INTERFILE :=\n"

/* GOOD with one text replaced; malloc'ed. */
static char *changed(const char *from, const char *to)
{
	const char *at = strstr(GOOD, from);
	char *text = malloc(sizeof(GOOD) + strlen(to));

	assert_non_null(at);
	sprintf(text, "%.*s%s%s", (int)(at - GOOD), GOOD, to, at + strlen(from));
	return text;
}

TEST(test_header)
{
	struct interfile f GOES(interfile_clear) = {0};
	struct err err = {0};
	char *text;

	assert_done(interfile_parse(GOOD, strlen(GOOD), &f, &err), &err);
	assert_int_equal(f.kind, INTERFILE_PARALLEL);
	assert_int_equal(f.parallel.n_slices, 3);
	assert_int_equal(f.parallel.n_angles, 4);
	assert_int_equal(f.parallel.n_radial, 5);
	assert_true(f.parallel.bin == 1.5 && f.parallel.slice == 2 && f.parallel.offset == -0.25);
	assert_true(f.parallel.first_angle == 10 && f.parallel.arc == 360 && !f.parallel.angle);
	assert_string_equal(f.unit, "1/mm");
	assert_int_equal(interfile_bytes(&f), BINS * 4);
	interfile_clear(&f);

	text = changed("first angle (degrees) := 10\narc (degrees) := 360\nunit := 1/mm\n",
		       "angles (degrees) := {0, -30,\n 45.5, 400}\n");
	assert_done(interfile_parse(text, strlen(text), &f, &err), &err);
	assert_non_null(f.parallel.angle);
	assert_true(parallel_angle(&f.parallel, 1) == -30 && parallel_angle(&f.parallel, 2) == 45.5 &&
		    parallel_angle(&f.parallel, 3) == 400);
	assert_string_equal(f.unit, "1/mm"); /* the default, attenuation */
	interfile_clear(&f);
	free(text);

	text = changed("first angle (degrees) := 10\narc (degrees) := 360\n", "");
	assert_int_equal(interfile_parse(text, strlen(text), &f, &err), 0);
	assert_true(f.parallel.first_angle == 0 && f.parallel.arc == 180);
	free(text);
}

#define MANY 16384

/* The largest number of angles, of the most digits, in one line or in a line each, and as this program writes them; one more is
 * refused, and so is a header of more keys. */
TEST(test_many_angles)
{
	char *list = malloc(MANY * 30), *text, *again;
	struct interfile f;
	struct err err = {0};

	for (int lines = 0; lines < 2; lines++) {
		size_t n = (size_t)sprintf(list, "number of angles := %d\nangles (degrees) := {", MANY);

		for (int a = 0; a < MANY; a++)
			n += (size_t)sprintf(list + n, "%s%.17g", a == 0 ? "" : lines ? ",\n" : ",", -180 + a / 97.0 / MANY);
		sprintf(list + n, "}\nunit := 1/mm\n");
		text = changed(
			"number of angles := 4\nnumber of radial bins := 5\nbin size (mm) := 1.5\nslice spacing (cm) := "
			"0.2\naxis offset (mm) := -0.25\nfirst angle (degrees) := 10\narc (degrees) := 360\nunit := 1/mm\n",
			"number of radial bins := 5\nbin size (mm) := 1.5\nslice spacing (cm) := 0.2\n");
		again = malloc(strlen(text) + strlen(list) + 1);
		sprintf(again, "%.*s%s%s", (int)(strstr(text, "!END") - text), text, list, strstr(text, "!END"));
		free(text);
		assert_done(interfile_parse(again, strlen(again), &f, &err), &err);
		free(again);
		for (int a = 0; a < MANY; a++)
			assert_true(parallel_angle(&f.parallel, a) == -180 + a / 97.0 / MANY);
		assert_int_equal(interfile_write(&f, &again, &err), 0);
		assert_true(strlen(again) > 18 * MANY);
		interfile_clear(&f);
		free(again);
	}
	text = changed("number of angles := 4", "number of angles := 16385");
	assert_error(interfile_parse(text, strlen(text), &f, &err), &err, EBADMSG, "number of angles := 16385; allowed");
	free(text);
	for (int more = 0; more < 2; more++) {
		size_t n = 0;

		for (int i = 0; i < MANY - 15 + more; i++)
			n += (size_t)sprintf(list + n, "key %d := 1\n", i);
		text = changed("unit := 1/mm\n", list);
		assert_int_equal(interfile_parse(text, strlen(text), &f, &err), more ? -EBADMSG : 0);
		if (more)
			assert_non_null(strstr(err.msg, "more than 16384 keys"));
		else
			interfile_clear(&f);
		free(text);
	}
	free(list);
}

TEST(test_bad_headers)
{
	static const struct {
		const char *from, *to;
		int code;
		const char *says;
	} cases[] = {
		{"number of slices := 3\n", "", EBADMSG, "\"number of slices\" is missing"},
		{"number of angles := 4\n", "", EBADMSG, "\"number of angles\" is missing"},
		{"number of radial bins := 5\n", "", EBADMSG, "\"number of radial bins\" is missing"},
		{"bin size (mm) := 1.5\n", "", EBADMSG, "\"bin size (mm)\" is missing"},
		{"slice spacing (cm) := 0.2\n", "", EBADMSG, "\"slice spacing (mm)\" is missing"},
		{"slices := 3", "slices := 0", EBADMSG, "line 7: number of slices := 0; allowed: a number from 1 to 65535"},
		{"slices := 3", "slices := 70000", EBADMSG, "line 7: number of slices := 70000"},
		{"angles := 4", "angles := 1.5", EBADMSG, "line 8: number of angles := 1.5 is not an integer"},
		{"angles := 4", "angles := 20000", EBADMSG,
		 "line 8: number of angles := 20000; allowed: a number from 1 to 16384"},
		{"bins := 5", "bins := -5", EBADMSG, "line 9: number of radial bins := -5"},
		{"mm) := 1.5", "mm) := 0", EBADMSG, "line 10: bin size (mm) := 0"},
		{"mm) := 1.5", "mm) := nan", EBADMSG, "line 10: bin size (mm) := nan"},
		{"cm) := 0.2", "cm) := -1", EBADMSG, "line 11: slice spacing (cm) := -1"},
		{"mm) := -0.25", "mm) := 1e9", EBADMSG, "line 12: axis offset (mm) := 1e9"},
		{"degrees) := 10", "degrees) := 720", EBADMSG, "line 13: first angle (degrees) := 720"},
		{"degrees) := 360", "degrees) := 361", EBADMSG, "line 14: arc (degrees) := 361"},
		{"degrees) := 360", "degrees) := 0", EBADMSG, "line 14: arc (degrees) := 0"},
		{"degrees) := 360", "degrees) := 1e-300", EBADMSG, "line 14: arc (degrees) := 1e-300"},
		{"arc (degrees) := 360", "angles (degrees) := {1,2,3,4}", EBADMSG,
		 "\"angles (degrees)\" and \"first angle (degrees)\" in one header"},
		{"first angle (degrees) := 10", "angles (degrees) := {1,2,3,4}", EBADMSG,
		 "\"angles (degrees)\" and \"arc (degrees)\" in one header"},
		{"first angle (degrees) := 10\narc (degrees) := 360", "angles (degrees) := {1,2,3}", EBADMSG,
		 "3 angles in \"angles (degrees)\", number of angles := 4"},
		{"first angle (degrees) := 10\narc (degrees) := 360", "angles (degrees) := {1,2,3,4,5}", EBADMSG,
		 "line 13: angles (degrees) := {1,2,3,4,5}; allowed: at most 4 numbers"},
		{"first angle (degrees) := 10\narc (degrees) := 360", "angles (degrees) := {1,2,x,4}", EBADMSG, "line 13"},
		{"unit := 1/mm", "unit := a\\b", EBADMSG, "line 15: unit := a\\b; allowed: printable ASCII"},
		{"unit := 1/mm", "unit := 123456789012345678901234567890123", EBADMSG, "at most 32 letters"},
		{"first angle", "frist angle", EBADMSG,
		 "line 13: \"frist angle (degrees)\" is no key that is known: did you mean \"first angle (degrees)\"?"},
		{"axis offset", "axis ofset", EBADMSG, "did you mean \"axis offset (mm)\"?"},
		{"axis offset (mm)", "axis offset (bins)", EBADMSG, "did you mean \"axis offset (mm)\"? Convert the value"},
		{"axis offset (mm)", "axis offset (pixels)", EBADMSG, "line 12: \"axis offset (pixels)\" has another unit"},
		{"axis offset (mm) := -0.25", "axis offset (mm) := -2\naxis offset (cm) := -0.4", EBADMSG,
		 "axis offset (cm) := -0.4"},
		{"PARALLEL", "SPECT", ENOTSUP, "line 3: !type of data := SPECT; supported: PET, PARALLEL"},
		{"name of data file := a.s\n", "", EBADMSG, "\"name of data file\" is missing"},
		{":= float", ":= bit", ENOTSUP, "number format := bit"},
		{"pixel := 4", "pixel := 2", EBADMSG, "a float has 4 or 8"},
		{"number of slices := 3\n", "number of slices := 3\nnumber of slices := 4\n", EBADMSG, "line 8"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = changed(cases[i].from, cases[i].to);
		struct err err = {0};
		struct interfile f;

		if (interfile_parse(text, strlen(text), &f, &err) != -cases[i].code || !strstr(err.msg, cases[i].says))
			fail_msg("case %zu: \"%s\" wanted, not: %s", i, cases[i].says, err.msg);
		free(text);
	}
}

/* A written header has the same values when it is parsed. */
TEST(test_written_header)
{
	double angle[ANGLES] = {1.0 / 3, -77.123456789012345, 0, 359};
	struct err err = {0};

	for (int list = 0; list < 2; list++) {
		struct interfile f = {.kind = INTERFILE_PARALLEL,
				      .number = INTERFILE_SIGNED,
				      .bytes = 2,
				      .big_endian = true,
				      .offset = 17,
				      .scale = 1e-3,
				      .data_file = "x.s",
				      .unit = "Bq/ml",
				      .duration = NAN,
				      .start = NAN,
				      .parallel =
					      {.n_slices = 2, .n_angles = ANGLES, .n_radial = 7, .bin = 0.1, .slice = 1.0 / 3}},
				 g;
		char *text;

		f.parallel.offset = 0.7;
		if (list)
			f.parallel.angle = angle;
		else
			f.parallel.first_angle = -1.0 / 7, f.parallel.arc = 123.456;
		if (interfile_write(&f, &text, &err) < 0 || interfile_parse(text, strlen(text), &g, &err) < 0)
			fail_msg("%s", err.msg);
		assert_true(g.kind == f.kind && g.number == f.number && g.bytes == 2 && g.big_endian && g.offset == 17);
		assert_true(g.scale == f.scale && !strcmp(g.unit, "Bq/ml") && !strcmp(g.data_file, "x.s"));
		assert_true(g.parallel.bin == f.parallel.bin && g.parallel.slice == f.parallel.slice &&
			    g.parallel.offset == f.parallel.offset);
		for (int a = 0; a < ANGLES; a++)
			assert_true(parallel_angle(&g.parallel, a) == parallel_angle(&f.parallel, a));
		interfile_clear(&g);
		free(text);
	}
}

TEST(test_values)
{
	uint8_t bytes[17 + BINS * 2] = {0};
	struct interfile f = {.kind = INTERFILE_PARALLEL,
			      .number = INTERFILE_SIGNED,
			      .bytes = 2,
			      .big_endian = true,
			      .offset = 17,
			      .scale = 0.5,
			      .parallel = {.n_slices = SLICES, .n_angles = ANGLES, .n_radial = RADIAL}};
	float slice[ANGLES * RADIAL];

	for (int i = 0; i < BINS; i++) {
		bytes[17 + 2 * i] = (uint8_t)((i * 99 - 3000) >> 8);
		bytes[18 + 2 * i] = (uint8_t)(i * 99 - 3000);
	}
	for (int k = 0; k < SLICES; k++) {
		interfile_plane(&f, bytes, (size_t)k, slice);
		for (int i = 0; i < ANGLES * RADIAL; i++)
			assert_true(slice[i] == 0.5f * (float)((k * ANGLES * RADIAL + i) * 99 - 3000));
	}
}

/* ---- objects ---- */

static float values[BINS];
static const struct parallel_scan beams = {
	.n_slices = SLICES, .n_angles = ANGLES, .n_radial = RADIAL, .bin = 1.5, .slice = 2, .offset = 0.5, .arc = 180};

static size_t write_objects(uint64_t chunk, const char *position)
{
	char text[64], *set[] = {text, "ScannerCentre=1\\2\\3.5"};
	struct sinogram_arrays a = {.beams = &beams, .duration = NAN};
	struct sinogram_import conf = {.set = set, .n_set = 2, .folder = folder, .chunk = chunk, .now = 1782726000};
	struct err err = {0};
	size_t n = 0;

	snprintf(text, sizeof(text), "PatientPosition=%s", position);
	for (int i = 0; i < BINS; i++)
		values[i] = (float)i * 0.37f - 5;
	a.values[SINOGRAM_LINES] = values;
	assert_done(sinogram_write(&a, &conf, &n, &err), &err);
	return n;
}

TEST(test_objects, .teardown = clean)
{
	const char *paths[3];
	struct sinogram *s;
	struct sinogram_facts facts;
	struct err err = {0};
	uint8_t *bytes;
	char modality[17];

	assert_int_equal(write_objects(100, "FFP"), 3);
	paths[0] = in_folder("lines-0003.dcm");
	paths[1] = in_folder("lines-0001.dcm");
	paths[2] = in_folder("lines-0002.dcm");
	assert_int_equal(read_facts(paths[0], &facts, &err), 1);
	assert_string_equal(facts.format->type->id, "PARALLEL_1");
	assert_int_equal(facts.role, SINOGRAM_LINES);
	assert_int_equal(facts.instances, 3);
	assert_done(sinogram_open(paths, 3, NULL, NULL, &s, &err), &err);
	assert_int_equal(s->format->first, SINOGRAM_LINES);
	assert_true(s->part[SINOGRAM_LINES].header.parallel.offset == 0.5);
	assert_true(s->axis[0][0] == 1 && s->axis[1][1] == -1 && s->axis[2][2] == -1);
	assert_true(s->centre[0] == 1 && s->centre[1] == 2 && s->centre[2] == 3.5);
	dicom_get_text(dicom_root(s->files[0]), TAG_MODALITY, modality, sizeof(modality), NULL);
	assert_string_equal(modality, "CT");
	assert_done(sinogram_read(s, SINOGRAM_LINES, &bytes, &err), &err);
	assert_memory_equal(bytes, values, sizeof(values));
	free(bytes);
	assert_int_equal(sinogram_read(s, SINOGRAM_EMISSION, &bytes, &err), -EINVAL);
	sinogram_close(s);
	assert_error(sinogram_open(paths, 2, NULL, NULL, &s, &err), &err, EBADMSG, "LINES: chunk 2 of 3 is missing");
}

/* The planes of groups, and what use() refuses from `bad` on. */
struct used {
	struct interfile header;
	float values[BINS];
	size_t next, bad;
};

static int use_planes(void *ctx, const uint8_t *bytes, size_t first, size_t n, struct err *err)
{
	struct used *u = ctx;

	assert_int_equal(first, u->next);
	for (size_t k = 0; k < n; k++)
		interfile_plane(&u->header, bytes, k, u->values + (first + k) * ANGLES * RADIAL);
	u->next += n;
	return first >= u->bad ? err_set(err, ERANGE, "plane %zu", first) : 0;
}

/* Groups of any size, over the ends of chunks, have the same values; what is wrong with the data comes before what a user of them
 * says. */
TEST(test_groups, .teardown = clean)
{
	struct sinogram_part *part;
	struct sinogram *s;
	struct err err = {0};
	const char *path;

	for (size_t group = 1; group <= SLICES; group++)
		for (uint64_t chunk = 0; chunk < 200; chunk += 52) {
			const char *paths[5];
			size_t n = write_objects(chunk, "HFS");
			struct used used = {.bad = SLICES};
			const struct sinogram_planes use = {group, use_planes, &used};

			for (size_t i = 0; i < n; i++) {
				char name[32];

				snprintf(name, sizeof(name), "lines-%04zu.dcm", i + 1);
				paths[i] = in_folder(n > 1 ? name : "lines.dcm");
			}
			assert_done(sinogram_open(paths, n, NULL, NULL, &s, &err), &err);
			used.header = s->part[SINOGRAM_LINES].header;
			assert_done(sinogram_read_planes(s, SINOGRAM_LINES, &use, &err), &err);
			assert_memory_equal(used.values, values, sizeof(values));
			sinogram_close(s);
			clean(NULL);
		}
	write_objects(0, "HFS");
	path = in_folder("lines.dcm");
	assert_int_equal(sinogram_open(&path, 1, NULL, NULL, &s, &err), 0);
	part = &s->part[SINOGRAM_LINES];
	for (int damaged = 0; damaged < 2; damaged++) {
		struct used used = {.header = part->header, .bad = 1};
		const struct sinogram_planes use = {1, use_planes, &used};

		part->sha256[0] ^= (char)damaged;
		if (damaged)
			assert_error(sinogram_read_planes(s, SINOGRAM_LINES, &use, &err), &err, EBADMSG,
				     "LINES: the data's SHA-256");
		else
			assert_error(sinogram_read_planes(s, SINOGRAM_LINES, &use, &err), &err, ERANGE, "plane 1");
		assert_int_equal(used.next, 2); /* not used after the error */
	}
	sinogram_close(s);
}

/* Change one element of the only object: it is refused. */
TEST(test_bad_objects, .teardown = clean)
{
	static const struct {
		enum sinogram_element element;
		const char *vr, *value;
		int code;
		const char *says;
	} cases[] = {
		{SINOGRAM_FORMAT_ID, "LO", "INTERFILE_3.3", EBADMSG, "role \"LINES\"; allowed: EMISSION"},
		{SINOGRAM_FORMAT_ID, "LO", "PARALLEL_2", ENOTSUP, "format \"PARALLEL_2\"; supported: INTERFILE_3.3, PARALLEL_1"},
		{SINOGRAM_ROLE, "CS", "EMISSION", EBADMSG, "role \"EMISSION\"; allowed: LINES"},
		{SINOGRAM_LENGTH, "UL", "236", EBADMSG, "240 bytes in 1 chunks, but 236 in the header"},
		{SINOGRAM_HEADER, "UT", "!INTERFILE :=\nname of data file := a", EBADMSG, "LINES: \"number format\" is missing"},
		{SINOGRAM_HEADER, "UT", GOOD, 0, ""},
	};
	struct err err = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *path = in_folder("lines.dcm");
		struct dicom_file *file = NULL;
		struct sinogram *s = NULL;
		int rc;

		write_objects(0, "HFS");
		assert_int_equal(dicom_open(path, &file, &err), 0);
		assert_true(dicom_put_private(dicom_root(file), SINOGRAM_GROUP, SINOGRAM_CREATOR, (uint8_t)cases[i].element,
					      cases[i].vr, cases[i].value, &err) >= 0);
		assert_true(dicom_write(in_folder("changed.dcm"), file, &err) >= 0);
		dicom_close(file);
		path = in_folder("changed.dcm");
		rc = sinogram_open(&path, 1, NULL, NULL, &s, &err);
		if (rc != -cases[i].code || (rc < 0 && !strstr(err.msg, cases[i].says)))
			fail_msg("case %zu: %d, \"%s\" wanted, not: %s", i, cases[i].code, cases[i].says, err.msg);
		sinogram_close(s);
		clean(NULL);
	}
}

/* ---- pictures ---- */

TEST(test_pictures, .teardown = clean)
{
	static const struct {
		const char *text;
		size_t n;
		const char *says; /* NULL: 3 x 2 pixels, of which the last is white and the first black */
	} cases[] = {
#define TEXT(t) t, sizeof(t) - 1
		{TEXT("P2\n# a comment\n3 2 # another\n10\n0 5 5\n5 5 10\n"), NULL},
		{TEXT("P5 3 2 255\n\0\1\2\3\4\377"), NULL},
		{TEXT("P5 3 2 512\n\0\0\0\1\0\2\0\3\0\4\2\0"), NULL},
		{TEXT("P5 3 2 255\n\0\1\2\3\4"), "value 6 of 6 is missing"},
		{TEXT("P5 3 2 100\n\0\1\2\3\4\377"), "value 6 of 6 is missing or above 100"},
		{TEXT("P2 3 2 10 0 5 5 5 5 11"), "value 6 of 6 is missing or above 10"},
		{TEXT("P5 3 2 0\n"), "largest value (1 to 65535)"},
		{TEXT("P5 3"), "the header of a PGM"},
		{TEXT("P5 0 2 255\n"), "0 x 2 pixels; allowed: sides of 1 to 8192"},
		{TEXT("P5 99999 99999 255\n"), "99999 x 99999 pixels"},
		{TEXT("P6 3 2 255\n"), "neither PNG nor PGM"},
		{TEXT(""), "the file is empty"},
		{TEXT("\x89PNG\r\n\x1a\nnothing more"), "a.pgm: "},
	};
	struct picture p;
	struct err err = {0};

	assert_true(picture_has_extension("a.png") && picture_has_extension("B.PGM") && !picture_has_extension("a.hs") &&
		    !picture_has_extension(".png"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc;

		test_put_file(in_folder("a.pgm"), cases[i].text, cases[i].n);
		rc = picture_read(in_folder("a.pgm"), &p, &err);
		if (cases[i].says) {
			if (rc != -EBADMSG || !strstr(err.msg, cases[i].says))
				fail_msg("case %zu: \"%s\" wanted, not: %s", i, cases[i].says, err.msg);
			continue;
		}
		if (rc < 0)
			fail_msg("case %zu: %s", i, err.msg);
		assert_true(p.width == 3 && p.height == 2 && p.value[0] == 0 && p.value[5] == 1);
		picture_clear(&p);
	}
	assert_int_equal(picture_read(in_folder("nothing.png"), &p, &err), -ENOENT);
}

TESTS_SETUP(make_folder, remove_folder);
