/* SPDX-License-Identifier: Apache-2.0 */
/* Attenuation maps in files: units that are stated, found, contradicted or unknown, limits of values and of a matrix on both
 * sides, the place of Interfile images, the order of the axes. That NIfTI and MetaImage are read is tested in
 * test_label_volume.c. */
#include "node/format/map_file.h"
#include "tests/test.h"

static char folder[64];

#define N 400 /* voxels, 10 x 8 x 5 */
static float values[N];

/* Interfile image of `values`; keys: further lines, or those in place of the usual ones with the same key. */
static void write_interfile(const char *keys)
{
	static const char *const usual[] = {"name of data file := m.v",
					    "imagedata byte order := LITTLEENDIAN",
					    "!PET data type := Image",
					    "!number format := float",
					    "!number of bytes per pixel := 4",
					    "number of dimensions := 3",
					    "!matrix size [1] := 10",
					    "!matrix size [2] := 8",
					    "!matrix size [3] := 5",
					    "scaling factor (mm/pixel) [1] := 2",
					    "scaling factor (mm/pixel) [2] := 3",
					    "scaling factor (mm/pixel) [3] := 4"};
	char text[2000] = "!INTERFILE :=\n";
	FILE *f = fopen(test_path(folder, "m.v"), "wb");

	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		char key[60];

		snprintf(key, sizeof(key), "%.*s", (int)(strcspn(usual[i], ":") + 2), usual[i]);
		if (!strstr(keys, key))
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s\n", usual[i]);
	}
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s\n!END OF INTERFILE :=\n", keys);
	test_put_file(test_path(folder, "m.hv"), text, strlen(text));
	assert_non_null(f);
	assert_int_equal(fwrite(values, sizeof(float), N, f), N);
	fclose(f);
}

/* A part of the voxels that attenuate has one value, as water has, the others another one; a last one is the largest. */
static void fill(double water, int n_water, double other, double most)
{
	for (int i = 0; i < N; i++)
		values[i] = (float)(i < n_water ? water : other);
	values[N - 1] = (float)most;
}

static int open_and_read(const struct map_request *r, struct map_file *m, struct err *err)
{
	int rc = map_file_open(r, m, err);

	return rc == 0 ? map_file_read(m, err) : rc;
}

TEST(units)
{
	static const struct {
		const char *what, *header; /* "": no unit in the header */
		enum map_unit stated;
		double water;
		int n_water;
		double other, most;
		enum map_unit unit; /* MAP_UNKNOWN: refused */
		const char *names;
	} rows[] = {
		{"found, 1/cm", "", MAP_UNKNOWN, 0.096, 200, 0, 0.16, MAP_PER_CM, ""},
		{"found, 1/mm", "", MAP_UNKNOWN, 0.0096, 200, 0, 0.016, MAP_PER_MM, ""},
		{"10000/cm or HU with an offset", "", MAP_UNKNOWN, 1000, 200, 0, 1600, MAP_UNKNOWN, "state unit=10000/cm"},
		{"found, HU", "", MAP_UNKNOWN, 40, 200, -1000, 1600, MAP_HU, ""},
		{"of the header", "1/mm", MAP_UNKNOWN, 0.02, 200, 0, 0.02, MAP_PER_MM, ""},
		{"stated before the header", "1/cm", MAP_PER_MM, 0.02, 200, 0, 0.02, MAP_PER_MM, ""},
		{"a word of the header", "1 / CM", MAP_UNKNOWN, 0.05, 10, 0, 0.05, MAP_PER_CM, ""},
		{"no unit of the header", "1/m", MAP_UNKNOWN, 0.096, 200, 0, 0.1, MAP_UNKNOWN, "quantification units"},
		{"a quarter is water", "", MAP_UNKNOWN, 0.096, 100, 0.05, 0.05, MAP_PER_CM, ""},
		{"less is water", "", MAP_UNKNOWN, 0.096, 99, 0.05, 0.05, MAP_UNKNOWN, "its unit is not known"},
		{"as much as a map has", "", MAP_PER_CM, 0.05, 100, 0, 0.4, MAP_PER_CM, ""},
		{"more", "", MAP_PER_CM, 0.05, 100, 0, 0.401, MAP_UNKNOWN, "0.401/cm"},
		{"contradicted", "", MAP_PER_MM, 0.096, 200, 0, 0.1, MAP_UNKNOWN, "1/mm, but its values"},
		{"contradicted HU", "", MAP_HU, 1000, 200, 0, 1100, MAP_UNKNOWN, "HU, but its values"},
		{"HU without air", "", MAP_HU, 40, N, 40, 60, MAP_HU, ""},
		{"nothing", "", MAP_PER_CM, 0, N, 0, 0, MAP_UNKNOWN, "nothing attenuates"},
		{"not a number", "", MAP_PER_CM, 0.096, 200, 0, NAN, MAP_UNKNOWN, "voxel 9, 7, 4"},
		{"infinite", "", MAP_PER_CM, 0.096, 200, 0, INFINITY, MAP_UNKNOWN, "voxel 9, 7, 4"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct map_request r = {.path = test_path(folder, "m.hv"), .unit = rows[i].stated};
		struct map_file m GOES(map_file_clear) = {0};
		struct err err = {0};
		char keys[80] = "";

		fill(rows[i].water, rows[i].n_water, rows[i].other, rows[i].most);
		if (rows[i].header[0])
			snprintf(keys, sizeof(keys), "quantification units := %s", rows[i].header);
		write_interfile(keys);
		if (rows[i].unit == MAP_UNKNOWN) {
			assert_true(open_and_read(&r, &m, &err) < 0);
			if (!strstr(err.msg, rows[i].names))
				fail_msg("%s: \"%s\" is not in \"%s\"", rows[i].what, rows[i].names, err.msg);
			assert_null(m.hu);
			continue;
		}
		if (open_and_read(&r, &m, &err) < 0)
			fail_msg("%s: %s", rows[i].what, err.msg);
		assert_int_equal(m.unit, rows[i].unit);
		assert_int_equal(m.found, rows[i].stated == MAP_UNKNOWN && !rows[i].header[0]);
	}
}

/* 0.096/cm is 960 - 1000 in each linear unit; HU are themselves, limited to 16 bits. */
TEST(values_of_maps)
{
	static const struct {
		enum map_unit unit;
		double value;
		int hu;
	} rows[] = {{MAP_PER_CM, 0.096, -40}, {MAP_PER_MM, 0.0096, -40},   {MAP_TEN_THOUSANDTHS, 960, -40},
		    {MAP_HU, 40, 40},	      {MAP_PER_CM, -0.002, -1020}, {MAP_HU, 1e6, 32767},
		    {MAP_HU, -1e6, -32768},   {MAP_PER_CM, 0.40, 3000}};
	struct err err = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct map_request r = {.path = test_path(folder, "m.hv"), .unit = rows[i].unit};
		struct map_file m GOES(map_file_clear) = {0};

		fill(0, 0, rows[i].unit == MAP_HU ? 500 : 1e-3, rows[i].unit == MAP_HU ? 500 : 1e-3);
		values[0] = (float)rows[i].value;
		write_interfile("");
		if (open_and_read(&r, &m, &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
		assert_int_equal(m.hu[0], rows[i].hu);
	}
}

/* x and y as the header says, or centred on STIR's index 0; z out of the gantry from the middle of the slices. */
TEST(places_of_interfile)
{
	static const struct {
		const char *keys;
		double corner[3];
	} rows[] = {{"", {-10, -12, 8}},
		    {"first pixel offset (mm) [1] := -7\nfirst pixel offset (mm) [2] := 5\nfirst pixel offset (mm) [3] := 6",
		     {-7, 5, 2}}};
	struct err err = {0};

	fill(0.096, 300, 0, 0.096);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct map_file m = {0};

		write_interfile(rows[i].keys);
		assert_done(map_file_open(&(struct map_request){.path = test_path(folder, "m.hv")}, &m, &err), &err);
		assert_true(m.of_scanner && m.n[0] == 10 && m.n[1] == 8 && m.n[2] == 5);
		for (int c = 0; c < 3; c++) {
			assert_near(m.corner[c], rows[i].corner[c], 1e-12);
			for (int a = 0; a < 3; a++)
				assert_near(m.step[a][c], a == c ? ((const double[]){2, 3, -4})[c] : 0, 0);
		}
	}
}

/* A matrix that turns x into z: the axis x of the file becomes that of the slices, and every voxel keeps its value. */
TEST(order_of_axes)
{
	struct map_request r = {.unit = MAP_PER_CM};
	static const char matrix[] = "0 0 -1 5\n0, 1, 0, 6\n1 0 0 7\n\n0 0 0 1\n";
	struct map_file m GOES(map_file_clear) = {0};
	struct err err = {0};

	for (int i = 0; i < N; i++)
		values[i] = (float)(1e-4 * i);
	write_interfile("$origin offset (mm) [1] := 3"); /* of a table: the matrix says where it is */
	test_put_file(test_path(folder, "m.txt"), matrix, strlen(matrix));
	r.path = test_path(folder, "m.hv");
	r.matrix = test_path(folder, "m.txt");
	assert_done(open_and_read(&r, &m, &err), &err);
	assert_true(m.n[0] == 8 && m.n[1] == 5 && m.n[2] == 10);
	for (int c = 0; c < 3; c++) /* (-10, -12, 8) moved: (-8 + 5, -12 + 6, -10 + 7) */
		assert_near(m.corner[c], ((const double[]){-3, -6, -3})[c], 1e-12);
	for (int i = 0; i < 10; i++)
		for (int j = 0; j < 8; j++)
			for (int k = 0; k < 5; k++)
				assert_int_equal(m.hu[(i * 5 + k) * 8 + j], (k * 8 + j) * 10 + i - 1000);
	assert_near(m.step[2][2], 2, 0);
	assert_near(m.step[1][0], 4, 0); /* slices ran along -z, which becomes x */
}

struct refused_row {
	REFUSED;
	const char *keys, *matrix;
};

static int open_row(const void *row, struct err *err)
{
	const struct refused_row *r = row;
	struct map_file m = {0};
	int rc;

	fill(0.096, 300, 0, 0.096);
	write_interfile(r->keys);
	if (r->matrix)
		test_put_file(test_path(folder, "m.txt"), r->matrix, strlen(r->matrix));
	rc = open_and_read(
		&(struct map_request){.path = test_path(folder, "m.hv"), .matrix = r->matrix ? test_path(folder, "m.txt") : NULL},
		&m, err);
	map_file_clear(&m);
	return rc;
}

static const struct refused_row bad[] = {
	{{"a scan", EBADMSG, "parallel beams"},
	 "!type of data := PARALLEL\nnumber of slices := 2\nnumber of angles := 4\n"
	 "number of radial bins := 5\nbin size (mm) := 1\nslice spacing (mm) := 1\n!PET data type :=",
	 NULL},
	{{"a side of 4097", EBADMSG, "4097 voxels along axis 3"}, "!matrix size [3] := 4097", NULL},
	{{"too many voxels", ENOTSUP, "voxels"},
	 "!matrix size [1] := 4096\n!matrix size [2] := 4096\n!matrix size [3] := 33",
	 NULL},
	{{"another size", EBADMSG, "m.v has 1600 bytes"}, "!matrix size [3] := 4096", NULL},
	{{"no spacing", EBADMSG, "scaling factor"}, "scaling factor (mm/pixel) [2] :=", NULL},
	{{"data elsewhere", ENOTSUP, "name of data file"}, "name of data file := ../m.v", NULL},
	{{"another byte order", EBADMSG, "nothing attenuates"}, "imagedata byte order := BIGENDIAN", NULL},
	{{"a key of a manufacturer", ENOTSUP, "image zoom"}, "%image zoom := 2", NULL},
	{{"a place on the table", ENOTSUP, "$origin offset (mm)"}, "$origin offset (mm) [1] := 0", NULL},
	{{"15 numbers", EBADMSG, "15 numbers"}, "", "1 0 0 0  0 1 0 0  0 0 1 0  0 0 0"},
	{{"17 numbers", EBADMSG, "16 numbers"}, "", "1 0 0 0  0 1 0 0  0 0 1 0  0 0 0 1 0"},
	{{"a word", EBADMSG, "\"x"}, "", "1 0 0 x  0 1 0 0  0 0 1 0  0 0 0 1"},
	{{"not a number", EBADMSG, "\"nan"}, "", "1 0 0 nan  0 1 0 0  0 0 1 0  0 0 0 1"},
	{{"a last row", EBADMSG, "the last row is 0 0 1 1"}, "", "1 0 0 0  0 1 0 0  0 0 1 0  0 0 1 1"},
	{{"stretched too far", EBADMSG, "changes volumes by 2.01"}, "", "2.01 0 0 0  0 1 0 0  0 0 1 0  0 0 0 1"},
	{{"pressed too far", EBADMSG, "changes volumes by 0.49"}, "", "0.49 0 0 0  0 1 0 0  0 0 1 0  0 0 0 1"},
	{{"mirrored", EBADMSG, "changes volumes by -1"}, "", "-1 0 0 0  0 1 0 0  0 0 1 0  0 0 0 1"},
};
REFUSES(maps_that_are_refused, bad, open_row)

TEST(limits_of_a_matrix)
{
	static const char *const good[] = {"2 0 0 0  0 1 0 0  0 0 1 0  0 0 0 1", "0.5 0 0 0  0 1 0 0  0 0 1 0  0 0 0 1",
					   "-1 0 0 3  0 -1 0 4  0 0 1 5  0 0 0 1\n"};
	struct err err = {0};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_done(open_row(&(struct refused_row){.keys = "", .matrix = good[i]}, &err), &err);
}

/* The voltage of a CT is taken; that of a map which has none is a mistake. */
TEST(voltages)
{
	struct map_request r = {.path = test_path(folder, "m.hv"), .kvp = 100};
	struct map_file m = {0};
	struct err err = {0};

	fill(40, 300, -1000, 1200);
	write_interfile("");
	assert_int_equal(open_and_read(&r, &m, &err), 0);
	assert_true(m.unit == MAP_HU && m.kvp == 100);
	map_file_clear(&m);
	fill(0.096, 300, 0, 0.15);
	write_interfile("");
	assert_error(open_and_read(&r, &m, &err), &err, EBADMSG, "100 kV");
}

TEST(words_of_units)
{
	enum map_unit unit = MAP_UNKNOWN;

	for (int u = MAP_PER_CM; u <= MAP_HU; u++) {
		assert_true(map_unit_named(map_unit_name((enum map_unit)u), &unit));
		assert_int_equal(unit, u);
	}
	for (const char *const *word =
		     (const char *const[]){"", "1/m", "unknown", "cm", "10000", "1/cm1", "1/cm-and-a-long-word", NULL};
	     *word; word++)
		assert_false(map_unit_named(*word, &unit));
}

static int setup(void **state)
{
	test_folder(folder, sizeof(folder));
	return 0;
}

TESTS_SETUP(setup, NULL);
