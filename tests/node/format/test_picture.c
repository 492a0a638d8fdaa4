/* SPDX-License-Identifier: Apache-2.0 */
/* A written picture is read again; pictures that are refused, and those at the limits. */
#include "node/format/picture.h"
#include "node/format/png_write.h"
#include "tests/test.h"

TEST(write_and_read)
{
	static const unsigned char grey[6] = {0, 1, 64, 128, 254, 255};
	char folder[64], path[100], part[110];
	struct picture p;
	struct err err = {0};

	test_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/a.png", folder);
	assert_int_equal(picture_write(path, 3, 2, grey, &err), 0);
	assert_int_equal(picture_read(path, &p, &err), 0);
	assert_int_equal(p.width, 3);
	assert_int_equal(p.height, 2);
	assert_true(p.value[0] == 0 && p.value[5] == 1);
	for (int i = 1; i < 6; i++)
		assert_true(p.value[i] > p.value[i - 1]);
	picture_clear(&p);
	snprintf(part, sizeof(part), "%s.part", path);
	assert_int_equal(access(part, F_OK), -1);
	unlink(path);
	rmdir(folder);
	assert_true(picture_write(path, 3, 2, grey, &err) < 0);
	assert_non_null(strstr(err.msg, "a.png.part"));
}

static const char *write_bytes(const char *name, const char *bytes, size_t n)
{
	static char folder[64];
	const char *path;

	if (!folder[0])
		test_folder(folder, sizeof(folder));
	path = test_path(folder, name);
	test_put_file(path, bytes, n);
	return path;
}

struct row {
	REFUSED;
	const char *bytes;
	size_t n;
};

#define BYTES(text) text, sizeof(text) - 1

static const struct row refused[] = {
	{{"nothing", EBADMSG, "empty"}, BYTES("")},
	{{"another kind", EBADMSG, "neither PNG nor PGM"}, BYTES("P6 1 1 255 abc")},
	{{"a PNG without its content", EBADMSG, "p.pgm"}, BYTES("\x89PNG\r\n\x1a\n")},
	{{"no size", EBADMSG, "header of a PGM"}, BYTES("P5")},
	{{"no height", EBADMSG, "header of a PGM"}, BYTES("P5 1")},
	{{"no largest value", EBADMSG, "header of a PGM"}, BYTES("P5 1 1")},
	{{"a largest value of 0", EBADMSG, "header of a PGM"}, BYTES("P5 1 1 0 a")},
	{{"a largest value of 65536", EBADMSG, "header of a PGM"}, BYTES("P5 1 1 65536 ab")},
	{{"a letter", EBADMSG, "header of a PGM"}, BYTES("P5 1 x 255 a")},
	{{"a letter behind a number", EBADMSG, "header of a PGM"}, BYTES("P5 1 1x 255 a")},
	{{"a number of ten digits", EBADMSG, "header of a PGM"}, BYTES("P5 1 1000000000 255 a")},
	{{"no columns", EBADMSG, "0 x 1 pixels"}, BYTES("P5 0 1 255 a")},
	{{"no rows", EBADMSG, "1 x 0 pixels"}, BYTES("P5 1 0 255 a")},
	{{"many columns", EBADMSG, "8193 x 1 pixels"}, BYTES("P5 8193 1 255 a")},
	{{"many rows", EBADMSG, "1 x 8193 pixels"}, BYTES("P5 1 8193 255 a")},
	{{"a value too few", EBADMSG, "value 2 of 2"}, BYTES("P5 2 1 255 a")},
	{{"half a value", EBADMSG, "value 1 of 1"}, BYTES("P5 1 1 256 a")},
	{{"a value above the largest", EBADMSG, "value 2 of 2"}, BYTES("P2 2 1 7 7 8")},
	{{"a value that is none", EBADMSG, "value 1 of 1"}, BYTES("P2 1 1 7 x")},
	{{"a binary value above the largest", EBADMSG, "value 1 of 1"}, BYTES("P5 1 1 96 a")},
};

static int try_row(const void *row, struct err *err)
{
	const struct row *r = row;
	struct picture p = {0};
	int rc = picture_read(write_bytes("p.pgm", r->bytes, r->n), &p, err);

	assert_null(p.value);
	return rc;
}

REFUSES(no_pictures, refused, try_row)

TEST(pgm)
{
	static const struct {
		const char *bytes;
		size_t n;
		int width, height;
		double last;
	} rows[] = {
		{BYTES("P5 2 1 255\n\xff\x33"), 2, 1, 0.2},
		{BYTES("P5 1 1 65535\n\x80\x00"), 1, 1, 32768 / 65535.0},
		{BYTES("P5 1 1 97 a"), 1, 1, 1},
		{BYTES("P2 # comment\n1 # another\n2 10\n3 5"), 1, 2, 0.5},
		{BYTES("P2 1 1 1 1"), 1, 1, 1},
	};
	char *wide = calloc(1, PICTURE_SIDE_MAX + 20);
	struct picture p;
	struct err err = {0};
	int n;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_done(picture_read(write_bytes("p.pgm", rows[i].bytes, rows[i].n), &p, &err), &err);
		assert_int_equal(p.width, rows[i].width);
		assert_int_equal(p.height, rows[i].height);
		assert_near(p.value[p.width * p.height - 1], rows[i].last, 1e-7);
		picture_clear(&p);
	}
	n = sprintf(wide, "P5 %d 1 255 ", PICTURE_SIDE_MAX);
	assert_int_equal(picture_read(write_bytes("p.pgm", wide, (size_t)n + PICTURE_SIDE_MAX), &p, &err), 0);
	picture_clear(&p);
	n = sprintf(wide, "P5 1 %d 255 ", PICTURE_SIDE_MAX);
	assert_int_equal(picture_read(write_bytes("p.pgm", wide, (size_t)n + PICTURE_SIDE_MAX), &p, &err), 0);
	assert_int_equal(p.height, PICTURE_SIDE_MAX);
	picture_clear(&p);
	free(wide);
	assert_true(picture_has_extension("a.PNG") && picture_has_extension("a.pgm"));
	assert_false(picture_has_extension(".png") || picture_has_extension("a.jpg") || picture_has_extension("png"));
}

/* 8 and 16 bits, and the largest side. */
TEST(png_of_two_depths)
{
	char folder[64], path[100];
	uint16_t *values = calloc(PNG_SIDE_MAX + 1, sizeof(*values));
	struct picture p;
	struct err err = {0};

	test_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/a.png", folder);
	for (int bits = 8; bits <= 16; bits += 8) {
		values[0] = (uint16_t)((1 << bits) - 1);
		assert_int_equal(png_write(path, 2, 1, bits, 0.5, values, &err), 0);
		assert_int_equal(picture_read(path, &p, &err), 0);
		assert_true(p.width == 2 && p.height == 1 && p.value[0] == 1 && p.value[1] == 0);
		picture_clear(&p);
	}
	assert_int_equal(png_write(path, PNG_SIDE_MAX, 1, 8, 1, values, &err), 0);
	assert_int_equal(png_write(path, 1, PNG_SIDE_MAX, 8, 1, values, &err), 0);
	assert_error(png_write(path, PNG_SIDE_MAX + 1, 1, 8, 1, values, &err), &err, EFBIG, "16385 x 1");
	assert_error(png_write(path, 1, PNG_SIDE_MAX + 1, 8, 1, values, &err), &err, EFBIG, "1 x 16385");
	free(values);
}
