/* SPDX-License-Identifier: Apache-2.0 */
/* Test MetaImage volumes: plain and compressed data, both byte orders; invalid files are refused with the cause. */
#include <zlib.h>

#include "node/format/mhd.h"
#include "tests/test.h"

#define GOOD                                                                                                                     \
	"ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\nCompressedData = False\n"             \
	"TransformMatrix = 1 0 0 0 1 0 0 0 1\nOffset = -20.8 -46 -56\nElementSpacing = 0.2 0.25 0.3\nDimSize = 3 4 5\n"          \
	"AnatomicalOrientation = ???\nElementType = MET_UCHAR\nElementDataFile = volume.raw\n"

static int parse(const char *text, struct mhd *ret, struct err *err)
{
	memset(err, 0, sizeof(*err));
	return mhd_parse(text, strlen(text), "test.mhd", MHD_PHANTOM, ret, err);
}

/* GOOD with `from` replaced by `to`. */
static const char *with(const char *from, const char *to)
{
	static char text[4096];
	const char *at = strstr(GOOD, from);

	assert_non_null(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - GOOD), GOOD, to, at + strlen(from));
	return text;
}

TEST(test_header)
{
	struct mhd h = {0};
	struct err err;

	assert_int_equal(parse(GOOD, &h, &err), 0);
	assert_int_equal(h.n[0], 3);
	assert_int_equal(h.n[1], 4);
	assert_int_equal(h.n[2], 5);
	assert_true(h.h[0] == 0.2 && h.h[1] == 0.25 && h.h[2] == 0.3);
	assert_int_equal(h.element, ELEMENT_U8);
	assert_false(h.most_significant_first);
	assert_false(h.compressed);
	assert_string_equal(h.data, "volume.raw");

	assert_int_equal(parse(with("ElementType = MET_UCHAR", "ElementType=MET_USHORT"), &h, &err), 0);
	assert_int_equal(h.element, ELEMENT_U16);
	assert_int_equal(parse(with("MSB = False", "MSB = true"), &h, &err), 0);
	assert_true(h.most_significant_first);
	assert_int_equal(parse(with("BinaryDataByteOrderMSB = False\n", ""), &h, &err), 0);
	assert_false(h.most_significant_first); /* MetaIO's own default */
	assert_int_equal(parse(with("CompressedData = False", "CompressedData = 1"), &h, &err), 0);
	assert_true(h.compressed);
	assert_int_equal(parse(with("ElementSpacing", "ElementSize"), &h, &err), 0);
	assert_true(h.h[1] == 0.25);
	assert_int_equal(parse(with("volume.raw\n", "volume.raw"), &h, &err), 0); /* the last line has no newline */
	assert_int_equal(parse(with("NDims = 3\n", "NDims = 3\r\n\r\n"), &h, &err), 0);
}

#define LETTERS_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LETTERS_256 LETTERS_64 LETTERS_64 LETTERS_64 LETTERS_64

/* The last values on the other side of the limits in the next test. */
TEST(test_just_allowed)
{
	static const char *const cases[][2] = {
		{"3 4 5", "4096 1 1"},
		{"3 4 5", "4096 4096 128"},
		{"0.2 0.25 0.3", "0.001 10 0.3"},
		{"Offset =", "ElementNumberOfChannels = 1\nOffset ="},
		{"Offset =", "HeaderSize = 0\nOffset ="},
		{"1 0 0 0 1 0 0 0 1", "1.0 0 0 0 1 0 0 0 1e0"},
		{"volume.raw", &LETTERS_256[1]},
	};
	struct mhd h;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (parse(with(cases[i][0], cases[i][1]), &h, &err) < 0)
			fail_msg("\"%s\": %s", cases[i][1], err.msg);
	assert_string_equal(h.data, &LETTERS_256[1]);
}

TEST(test_refusals)
{
	static const struct {
		const char *from, *to;
		int code;
		const char *says;
	} cases[] = {
		{"NDims = 3\n", "", EBADMSG, "NDims is missing"},
		{"NDims = 3", "NDims = 2", ENOTSUP, "NDims = 2"},
		{"NDims = 3", "NDims = 3\nNDims = 3", EBADMSG, "test.mhd:3: NDims occurs twice"},
		{"NDims = 3", "NDims =", EBADMSG, "NDims has no value"},
		{"NDims = 3", "NDims", EBADMSG, "test.mhd:2: no '='"},
		{"DimSize = 3 4 5\n", "", EBADMSG, "DimSize is missing"},
		{"3 4 5", "3 4", EBADMSG, "DimSize = 3 4"},
		{"3 4 5", "3 4 5 6", EBADMSG, "DimSize = 3 4 5 6"},
		{"3 4 5", "3 4 0", EBADMSG, "DimSize = 3 4 0"},
		{"3 4 5", "3 4 nan", EBADMSG, "DimSize = 3 4 nan"},
		{"3 4 5", "3 4 5.5", EBADMSG, "not an integer"},
		{"3 4 5", "3 4 5000", EBADMSG, "from 1 to 4096"},
		{"3 4 5", "4096 4096 4096", ENOTSUP, "68719476736 elements"},
		{"0.2 0.25 0.3", "0.2 0.25 -0.3", EBADMSG, "ElementSpacing"},
		{"ElementSpacing = 0.2 0.25 0.3\n", "", EBADMSG, "ElementSpacing is missing"},
		{"MET_UCHAR", "MET_FLOAT", ENOTSUP, "MET_FLOAT"},
		{"ElementType = MET_UCHAR\n", "", EBADMSG, "ElementType is missing"},
		{"BinaryData = True", "BinaryData = False", ENOTSUP, "as text"},
		{"BinaryData = True", "BinaryData = perhaps", EBADMSG, "perhaps"},
		{"1 0 0 0 1 0 0 0 1", "1 0 0 0 0 1 0 1 0", ENOTSUP, "without rotated axes"},
		{"Offset =", "ElementNumberOfChannels = 3\nOffset =", ENOTSUP, "ElementNumberOfChannels = 3"},
		{"Offset =", "HeaderSize = -1\nOffset =", ENOTSUP, "HeaderSize = -1"},
		{"ElementDataFile = volume.raw\n", "", EBADMSG, "ElementDataFile is missing"},
		{"volume.raw", "LOCAL", ENOTSUP, "LOCAL"},
		{"volume.raw", "../volume.raw", ENOTSUP, "header's folder"},
		{"volume.raw", "/etc/passwd", ENOTSUP, "header's folder"},
		{"volume.raw", "slice%03d.raw", ENOTSUP, "one file"},
		{"volume.raw\n", "volume.raw\nNDims = 3\n", EBADMSG, "text after ElementDataFile"},
		{"NDims = 3", "NDims = 0", EBADMSG, "NDims = 0"},
		{"NDims = 3", "NDims = 11", EBADMSG, "NDims = 11"},
		{"3 4 5", "4097 4 5", EBADMSG, "DimSize = 4097"},
		{"3 4 5", "4096 4096 129", ENOTSUP, "2164260864 elements"},
		{"0.2 0.25 0.3", "0.2 0.25 0.00099", EBADMSG, "ElementSpacing"},
		{"0.2 0.25 0.3", "10.1 0.25 0.3", EBADMSG, "ElementSpacing"},
		{"0.2 0.25 0.3", "0.2 inf 0.3", EBADMSG, "ElementSpacing"},
		{"MSB = False", "MSB = perhaps", EBADMSG, "perhaps"},
		{"CompressedData = False", "CompressedData = perhaps", EBADMSG, "CompressedData"},
		{"1 0 0 0 1 0 0 0 1", "1 0 0 0 1 0 0 0", EBADMSG, "TransformMatrix"},
		{"1 0 0 0 1 0 0 0 1", "1 0 0 0 1 0 0 0 1.001", ENOTSUP, "TransformMatrix"},
		{"Offset =", "ElementNumberOfChannels = 0\nOffset =", EBADMSG, "ElementNumberOfChannels = 0"},
		{"Offset =", "HeaderSize = 1\nOffset =", ENOTSUP, "HeaderSize = 1"},
		{"volume.raw", "LIST 2D", ENOTSUP, "LIST"},
		{"volume.raw", "two words", ENOTSUP, "two words"},
		{"volume.raw", "a\\b", ENOTSUP, "header's folder"},
		{"volume.raw", ".volume", ENOTSUP, "header's folder"},
		{"volume.raw", LETTERS_256, ENOTSUP, "header's folder"},
	};
	struct mhd h = {.n = {7, 7, 7}};
	struct err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc = parse(with(cases[i].from, cases[i].to), &h, &err);

		if (rc != -cases[i].code || !strstr(err.msg, cases[i].says))
			fail_msg("\"%s\": %d \"%s\", expected %d with \"%s\"", cases[i].to, rc, err.msg, -cases[i].code,
				 cases[i].says);
		assert_int_equal(h.n[0], 7); /* written only on success */
	}
	assert_int_equal(mhd_parse("NDims\0= 3\n", 10, "test.mhd", MHD_PHANTOM, &h, &err), -EBADMSG);
	assert_int_equal(parse("", &h, &err), -EBADMSG);
}

TEST(test_long_line)
{
	char text[1100 + sizeof(GOOD)];
	struct mhd h;
	struct err err = {0};

	memset(text, 'a', sizeof(text));
	memcpy(text, "Comment =", 9);
	snprintf(text + 1023, sizeof(text) - 1023, "\n%s", GOOD);
	assert_int_equal(parse(text, &h, &err), 0);
	snprintf(text + 1024, sizeof(text) - 1024, "\n%s", GOOD);
	text[1023] = 'a';
	assert_error(parse(text, &h, &err), &err, EBADMSG, "1024 bytes");
}

/* ---- data ---- */

struct folder {
	char path[64], header[96], data[96];
};

static int make_folder(void **state)
{
	struct folder *f = calloc(1, sizeof(*f));

	test_folder(f->path, sizeof(f->path));
	snprintf(f->header, sizeof(f->header), "%s/test.mhd", f->path);
	snprintf(f->data, sizeof(f->data), "%s/volume.raw", f->path);
	*state = f;
	return 0;
}

static int remove_folder(void **state)
{
	free(*state);
	return 0;
}

/* Bytes as zlib (window 15) or gzip (31) data. */
static size_t deflated(const uint8_t *bytes, size_t n, int window, uint8_t *ret, size_t size)
{
	z_stream z = {.next_in = (uint8_t *)bytes, .avail_in = (uInt)n, .next_out = ret, .avail_out = (uInt)size};

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return size - z.avail_out;
}

struct taken {
	double *element;
	size_t n;
	int answer;
};

static int take(void *ctx, size_t at, const double *elements, size_t n, struct err *err)
{
	struct taken *t = ctx;

	if (t->answer)
		return err_set(err, -t->answer, "enough");
	assert_int_equal(at, t->n);
	memcpy(t->element + at, elements, n * sizeof(*elements));
	t->n += n;
	return 0;
}

#define N ((size_t)70 * 60 * 50) /* more than a block, but not a multiple of it */

static int read_back(struct folder *f, const char *header, const void *data, size_t size, struct taken *ret, struct err *err)
{
	struct mhd h;

	memset(err, 0, sizeof(*err));
	ret->n = 0;
	test_put_file(f->header, header, strlen(header));
	test_put_file(f->data, data, size);
	assert_int_equal(mhd_open(f->header, MHD_PHANTOM, &h, err), 0);
	return mhd_read(f->header, &h, take, ret, err);
}

#define HEAD(type, msb, compressed)                                                                                              \
	"NDims = 3\nBinaryDataByteOrderMSB = " msb "\nCompressedData = " compressed                                              \
	"\nElementSpacing = 1 1 1\nDimSize = 70 60 50\nElementType = " type "\nElementDataFile = volume.raw\n"

TEST(test_data, .setup = make_folder, .teardown = remove_folder)
{
	struct folder *f = *state;
	uint8_t *one = malloc(N), *two = malloc(2 * N), *packed = malloc(4 * N);
	struct taken t = {.element = malloc(N * sizeof(double))};
	struct err err;
	size_t n, m;

	for (size_t i = 0; i < N; i++) {
		one[i] = (uint8_t)(i * i % 251);
		two[2 * i] = (uint8_t)i;
		two[2 * i + 1] = (uint8_t)(i * i % 241);
	}
	assert_int_equal(read_back(f, HEAD("MET_UCHAR", "False", "False"), one, N, &t, &err), 0);
	assert_int_equal(t.n, N);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(t.element[i], one[i]);
	assert_int_equal(read_back(f, HEAD("MET_USHORT", "False", "False"), two, 2 * N, &t, &err), 0);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(t.element[i], two[2 * i] + 256 * two[2 * i + 1]);
	assert_int_equal(read_back(f, HEAD("MET_USHORT", "True", "False"), two, 2 * N, &t, &err), 0);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(t.element[i], 256 * two[2 * i] + two[2 * i + 1]);
	for (int window = 15; window <= 31; window += 16) { /* zlib, gzip */
		n = deflated(one, N, window, packed, 4 * N);
		assert_int_equal(read_back(f, HEAD("MET_UCHAR", "False", "True"), packed, n, &t, &err), 0);
		for (size_t i = 0; i < N; i++)
			assert_int_equal(t.element[i], one[i]);
		/* truncated, damaged, followed by other bytes */
		assert_error(read_back(f, HEAD("MET_UCHAR", "False", "True"), packed, n - 1, &t, &err), &err, EBADMSG,
			     "truncated");
		packed[n / 2] ^= 0x55;
		assert_int_equal(read_back(f, HEAD("MET_UCHAR", "False", "True"), packed, n, &t, &err), -EBADMSG);
	}
	/* two members in one file */
	n = deflated(one, 100000, 31, packed, 4 * N);
	m = deflated(one + 100000, N - 100000, 31, packed + n, 4 * N - n);
	assert_int_equal(read_back(f, HEAD("MET_UCHAR", "False", "True"), packed, n + m, &t, &err), 0);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(t.element[i], one[i]);
	free(one);
	free(two);
	free(packed);
	free(t.element);
}

TEST(test_wrong_size, .setup = make_folder, .teardown = remove_folder)
{
	struct folder *f = *state;
	uint8_t *bytes = calloc(N + 1, 1), packed[4096];
	struct taken t = {.element = malloc(N * sizeof(double))};
	struct mhd h;
	struct err err;
	size_t n;

	assert_error(read_back(f, HEAD("MET_UCHAR", "False", "False"), bytes, N - 1, &t, &err), &err, EBADMSG, "209999 bytes");
	assert_error(read_back(f, HEAD("MET_UCHAR", "False", "False"), bytes, N + 1, &t, &err), &err, EBADMSG,
		     "more than the 210000 elements");
	n = deflated(bytes, N - 1, 31, packed, sizeof(packed));
	assert_int_equal(read_back(f, HEAD("MET_UCHAR", "False", "True"), packed, n, &t, &err), -EBADMSG);
	n = deflated(bytes, N + 1, 31, packed, sizeof(packed)); /* the most that a decompression bomb can write */
	assert_int_equal(read_back(f, HEAD("MET_UCHAR", "False", "True"), packed, n, &t, &err), -EBADMSG);
	assert_error(read_back(f, HEAD("MET_UCHAR", "False", "True"), bytes, N, &t, &err), &err, EBADMSG, "damaged");
	t.answer = -ECANCELED;
	assert_int_equal(read_back(f, HEAD("MET_UCHAR", "False", "False"), bytes, N, &t, &err), -ECANCELED);
	assert_int_equal(mhd_open(f->header, MHD_PHANTOM, &h, &err), 0);
	unlink(f->data);
	assert_int_equal(mhd_read(f->header, &h, take, &t, &err), -ENOENT);
	assert_int_equal(mhd_open(f->path, MHD_PHANTOM, &h, &err), -EBADMSG); /* a folder */
	assert_int_equal(mhd_open(f->data, MHD_PHANTOM, &h, &err), -ENOENT);
	free(bytes);
	free(t.element);
}
