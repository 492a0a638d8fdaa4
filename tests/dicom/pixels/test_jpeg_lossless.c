/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of lossless JPEG, made bit by bit: read with the values that were coded, and refused as soon as one of them is missing.
 */
#include "tests/dicom/pixels/pixels_fixture.h"
#include "tests/test.h"

#define SV1 "1.2.840.10008.1.2.4.70"

enum { H = 6, W = 8, CODES = 17, LENGTH = 5 };

struct coded {
	unsigned char code[1000];
	size_t n, data; /* where the coded data begin */
	unsigned bits;	/* not yet written */
	int n_bits;
};

static void put_byte(struct coded *c, unsigned byte)
{
	c->code[c->n++] = (unsigned char)byte;
}

static void put_bytes(struct coded *c, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_byte(c, (unsigned char)bytes[i]);
}
#define PUT(c, literal) put_bytes(c, literal, sizeof(literal) - 1)

static void put_data(struct coded *c, unsigned byte)
{
	put_byte(c, byte);
	if (byte == 0xff)
		put_byte(c, 0);
}

static void put_bits(struct coded *c, unsigned value, int n)
{
	while (n-- > 0) {
		c->bits = c->bits << 1 | (value >> n & 1);
		if (++c->n_bits == 8) {
			put_data(c, c->bits & 0xff);
			c->n_bits = 0;
		}
	}
}

static void end_data(struct coded *c)
{
	while (c->n_bits)
		put_bits(c, 1, 1);
}

/* The codes of the categories 0 to 16 are these numbers, of 5 bits: those from 17 on are no codes. */
static void put_difference(struct coded *c, int difference)
{
	int d = (int16_t)difference, category = 0;

	if (d == -32768) {
		put_bits(c, 16, LENGTH);
		return;
	}
	while (abs(d) >> category)
		category++;
	put_bits(c, (unsigned)category, LENGTH);
	put_bits(c, (unsigned)(d < 0 ? d - 1 : d), category);
}

/* Code the values with the predictor 1. interval: lines between restart markers; 0: none. */
static void encode(const uint16_t values[H * W], int interval, struct coded *c)
{
	*c = (struct coded){0};
	PUT(c, "\xff\xd8\xff\xc4\0\x24\0\0\0\0\0\x11\0\0\0\0\0\0\0\0\0\0\0");
	for (int i = 0; i < CODES; i++)
		put_byte(c, (unsigned)i);
	PUT(c, "\xff\xc3\0\x0b\x10\0\6\0\x8\1\1\x11\0");
	if (interval) {
		PUT(c, "\xff\xdd\0\4\0");
		put_byte(c, (unsigned)(interval * W));
	}
	PUT(c, "\xff\xda\0\x8\1\1\0\1\0\0");
	c->data = c->n;
	for (int i = 0; i < H * W; i++) {
		bool first = i == 0 || (interval && i % (interval * W) == 0);
		int predicted = first ? 32768 : i % W ? values[i - 1] : values[i - W];

		if (interval && i && first) {
			end_data(c);
			put_byte(c, 0xff);
			put_byte(c, 0xd0u + (unsigned)(i / (interval * W) - 1) % 8);
		}
		put_difference(c, values[i] - predicted);
	}
	end_data(c);
	PUT(c, "\xff\xd9");
}

static int read_code(const unsigned char *code, size_t n, uint16_t values[H * W], struct err *err)
{
	struct dicom_file *file;
	struct bytes b;
	int rc;

	add_image(&b, SV1, H, W, 1, 16);
	add_header(&b, PIXELS, "OB", 0xffffffff);
	add_item(&b, 0xfffee000, 0);
	add_fragments(&b, code, n, 10000);
	add_item(&b, 0xfffee0dd, 0);
	file = open_bytes(&b);
	rc = dicom_read_frame(file, 0, values, err);
	return rc;
}

/* Values that need every category, with bytes FF among them. */
static void make_values(uint16_t values[H * W])
{
	for (int i = 0; i < H * W; i++)
		values[i] = (uint16_t)(i % 3 ? (unsigned)i * 40503u : 1u << i % 16);
	values[3] = 0;
	values[4] = 32768;
}

TEST(test_values)
{
	uint16_t values[H * W], read[H * W];
	struct coded c;

	make_values(values);
	for (int interval = 0; interval < 4; interval++) {
		struct err err = {0};

		encode(values, interval, &c);
		ok(read_code(c.code, c.n, read, &err), &err);
		assert_memory_equal(read, values, sizeof(values));
	}
}

/* Cut anywhere, with the marker of the end behind it or without. */
TEST(test_cut)
{
	uint16_t values[H * W], read[H * W];
	struct coded c;

	make_values(values);
	for (int interval = 0; interval < 3; interval++) {
		encode(values, interval, &c);
		for (size_t n = c.data; n < c.n - 2; n++)
			for (int end = 0; end < 2; end++) {
				unsigned char code[1000];
				struct err err = {0};

				memcpy(code, c.code, n);
				code[n] = 0xff;
				code[n + 1] = 0xd9;
				assert_error(read_code(code, n + 2 * (size_t)end, read, &err), &err, EBADMSG,
					     "frame 1: the code stream");
				assert_non_null(strstr(err.msg, "cut off"));
			}
	}
	encode(values, 0, &c);
	struct err err = {0};
	assert_error(read_code(c.code, c.n - 2, read, &err), &err, EBADMSG, "has no end (FFD9): it was cut off");
}

TEST(test_damaged)
{
	uint16_t values[H * W], read[H * W];
	struct err err = {0};
	struct coded c;

	make_values(values);
	encode(values, 0, &c);
	c.code[c.data] |= 0xf0; /* 30 or 31, which is no code */
	assert_error(read_code(c.code, c.n, read, &err), &err, EBADMSG, "value 1 of 48 has no valid code");
	encode(values, 2, &c);
	c.code[(unsigned char *)memmem(c.code, c.n, "\xff\xd0", 2) - c.code + 1] = 0xd1; /* intervals are exchanged */
	assert_error(read_code(c.code, c.n, read, &err), &err, EBADMSG, "no restart marker after 16 of 48 values");
	encode(values, 2, &c);
	c.code[(unsigned char *)memmem(c.code, c.n, "\xff\xd0", 2) - c.code + 1] = 0;
	assert_error(read_code(c.code, c.n, read, &err), &err, EBADMSG, "no restart marker after 16 of 48 values");
	encode(values, 0, &c);
	c.code[c.data - 4] = 0x10; /* the scan's table is 1 */
	assert_error(read_code(c.code, c.n, read, &err), &err, EBADMSG, "uses Huffman table 1, which is not there");
	encode(values, 0, &c);
	c.code[6 + 16 + 3] = 17;
	assert_error(read_code(c.code, c.n, read, &err), &err, EBADMSG, "its Huffman tables are damaged");
}

/* The segments before the coded data: one byte of the headers of frame or scan is another, or bytes are added or removed. */
TEST(test_headers)
{
	static const struct {
		bool scan; /* of the scan, else of the frame */
		int at;	   /* byte behind its marker; -1: none is changed */
		int value;
		int insert; /* bytes of it that are put before it again, or of fill; < 0: this many are removed */
		int fill;
		const char *says; /* NULL: it is read */
	} rows[] = {
		{false, -1, 0, 0, 1, NULL},
		{false, 1, 7, 0, 0, "a JPEG frame header of 7 bytes"},
		{false, 1, 8, 0, 0, "of the JPEG code stream is not a marker"},
		{false, -1, 0, 13, 0, "two JPEG frames in the code stream of one frame"},
		{false, -1, 0, -13, 0, "a JPEG code stream without a frame before its scan"},
		{true, -1, 0, 0, 1, NULL},
		{true, 1, 7, 0, 0, "a JPEG scan header of 7 bytes with 1 components"},
		{true, 1, 9, 0, 0, "a JPEG scan header of 9 bytes with 1 components"},
		{true, 2, 2, 0, 0, "a JPEG scan header of 8 bytes with 2 components"},
	};
	uint16_t values[H * W], read[H * W];

	make_values(values);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned char code[1100];
		struct err err = {0};
		struct coded c;

		encode(values, 0, &c);
		unsigned char *p = memmem(c.code, c.n, rows[i].scan ? "\xff\xda" : "\xff\xc3", 2);
		assert_non_null(p);
		size_t before = (size_t)(p - c.code), again = rows[i].insert > 0 ? (size_t)rows[i].insert : 0;
		size_t from = rows[i].insert < 0 ? before - (size_t)rows[i].insert : before, n = before;

		if (rows[i].at >= 0)
			p[2 + rows[i].at] = (unsigned char)rows[i].value;
		memcpy(code, c.code, before);
		memcpy(code + n, p, again);
		n += again;
		if (rows[i].fill)
			code[n++] = 0xff;
		memcpy(code + n, c.code + from, c.n - from);
		n += c.n - from;
		if (rows[i].says) {
			assert_error(read_code(code, n, read, &err), &err, EBADMSG, rows[i].says);
			continue;
		}
		ok(read_code(code, n, read, &err), &err);
		assert_memory_equal(read, values, sizeof(values));
	}
	struct err err = {0};
	struct coded c;

	encode(values, 0, &c);
	assert_error(read_code(c.code, c.data - 10, read, &err), &err, EBADMSG, "a JPEG code stream without a scan");
}

TESTS_SETUP(folder_make, folder_remove);
