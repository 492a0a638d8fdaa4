/* Frames in and out: every encoding that is read, descriptions that do not fit, the writer's promises. */
#include "fixture.h"

#include <signal.h>
#include <sys/resource.h>

#include "dicom/jpegls.h"

#define JPEGLS "1.2.840.10008.1.2.4.80"

#define PIXELS 0x7fe00010u
#define ROWS DICOM_TAG(0x0028, 0x0010)
#define COLUMNS DICOM_TAG(0x0028, 0x0011)
#define FRAMES DICOM_TAG(0x0028, 0x0008)
#define ALLOCATED DICOM_TAG(0x0028, 0x0100)
#define STORED DICOM_TAG(0x0028, 0x0101)
#define HIGH DICOM_TAG(0x0028, 0x0102)

enum { N_ROWS = 37, N_COLUMNS = 53, N_FRAMES = 5, N = N_ROWS * N_COLUMNS };

/* Smooth enough to be compressed, different in every frame, 12 bits. */
static uint16_t value_at(int frame, int k)
{
	return (uint16_t)((k % N_COLUMNS * 40 + k / N_COLUMNS * 25 + frame * 333 + (k * 2654435761u >> 29)) & 0xfff);
}

static struct dicom_file *header(long rows, long columns, long frames)
{
	struct dicom_file *file = NULL;
	struct dicom_item *root;
	struct err err = {0};

	ok(dicom_new(MG_PROCESSING, "1.2.3.4", &file, &err), &err);
	root = dicom_root(file);
	ok(dicom_put_int(root, DICOM_TAG(0x0028, 0x0002), 1, &err), &err);
	ok(dicom_put_text(root, DICOM_TAG(0x0028, 0x0004), "MONOCHROME2", &err), &err);
	ok(dicom_put_int(root, FRAMES, frames, &err), &err);
	ok(dicom_put_int(root, ROWS, rows, &err), &err);
	ok(dicom_put_int(root, COLUMNS, columns, &err), &err);
	ok(dicom_put_int(root, ALLOCATED, 16, &err), &err);
	ok(dicom_put_int(root, STORED, 12, &err), &err);
	ok(dicom_put_int(root, HIGH, 11, &err), &err);
	ok(dicom_put_int(root, DICOM_TAG(0x0028, 0x0103), 0, &err), &err);
	return file;
}

/* The sample as JPEG-LS, frames encoded here. */
static const char *sample_jpegls(void)
{
	struct dicom_file *file = header(N_ROWS, N_COLUMNS, N_FRAMES);
	struct dicom_writer *w = NULL;
	size_t size = jpegls_bound(N_COLUMNS, N_ROWS), n = 0;
	void *code = malloc(size);
	struct err err = {0};
	uint16_t values[N];

	ok(dicom_writer_open_jpegls(in_folder("jpegls.dcm"), file, &w, &err), &err);
	dicom_close(file);
	assert_int_equal(dicom_writer_frame(w, values, &err), -EINVAL);
	for (int f = 0; f < N_FRAMES; f++) {
		for (int k = 0; k < N; k++)
			values[k] = value_at(f, k);
		ok(jpegls_encode(values, N_COLUMNS, N_ROWS, 12, code, size, &n, &err), &err);
		assert_true(n < sizeof(values));
		ok(dicom_writer_fragment(w, code, n, &err), &err);
	}
	assert_int_equal(dicom_writer_fragment(w, code, n, &err), -EINVAL);
	free(code);
	ok(dicom_writer_close(w, &err), &err);
	return in_folder("jpegls.dcm");
}

static const char *sample(void)
{
	struct dicom_file *file = header(N_ROWS, N_COLUMNS, N_FRAMES);
	struct dicom_writer *w = NULL;
	struct err err = {0};
	uint16_t values[N];

	ok(dicom_writer_open(in_folder("sample.dcm"), file, &w, &err), &err);
	dicom_close(file);
	for (int f = 0; f < N_FRAMES; f++) {
		for (int k = 0; k < N; k++)
			values[k] = value_at(f, k);
		ok(dicom_writer_frame(w, values, &err), &err);
	}
	ok(dicom_writer_close(w, &err), &err);
	return in_folder("sample.dcm");
}

/* All frames of the sample, in another order than they are stored in. */
static void check_sample(const char *path, const char *syntax)
{
	static const int order[N_FRAMES] = {3, 0, 4, 1, 2};
	struct dicom_file *file = NULL;
	struct dicom_pixel_info info;
	struct err err = {0};
	uint16_t values[N];

	ok(dicom_open(path, &file, &err), &err);
	assert_string_equal(dicom_transfer_syntax(file), syntax);
	ok(dicom_pixels_info(file, &info, &err), &err);
	assert_int_equal(info.rows, N_ROWS);
	assert_int_equal(info.columns, N_COLUMNS);
	assert_int_equal(info.frames, N_FRAMES);
	assert_int_equal(info.bits_allocated, 16);
	assert_int_equal(info.bits_stored, 12);
	assert_int_equal(info.high_bit, 11);
	assert_false(info.is_signed);
	for (int i = 0; i < N_FRAMES; i++) {
		memset(values, 0xff, sizeof(values));
		ok(dicom_read_frame(file, order[i], values, &err), &err);
		for (int k = 0; k < N; k++)
			if (values[k] != value_at(order[i], k))
				fail_msg("%s: frame %d, value %d: %u instead of %u", syntax, order[i], k, values[k],
					 value_at(order[i], k));
	}
	assert_int_equal(dicom_read_frame(file, N_FRAMES, values, &err), -EINVAL);
	assert_int_equal(dicom_read_frame(file, -1, values, &err), -EINVAL);
	dicom_close(file);
}

static void test_round_trip(void **state)
{
	(void)state;
	check_sample(sample(), EXPLICIT);
	assert_int_equal(access(in_folder("sample.dcm.part"), F_OK), -1);
}

/* What we encode: read again here, and by DCMTK, whose decoder is another one. */
static void test_jpegls(void **state)
{
	char in[256];
	const char *out = in_folder("decoded.dcm");

	(void)state;
	snprintf(in, sizeof(in), "%s", sample_jpegls());
	check_sample(in, JPEGLS);
	if (tool("dcmdjpls", NULL, in, out) < 0)
		skip();
	check_sample(out, EXPLICIT);
}

/* Noise over the full range, extremes side by side, one row, one column: bit by bit the same, within the bound. */
static void test_jpegls_extremes(void **state)
{
	static const struct {
		long columns, rows;
		int kind;
	} frames[] = {{301, 203, 0}, {301, 203, 1}, {301, 203, 2}, {1, 203, 0}, {301, 1, 0}, {1, 1, 1}, {16, 16, 3}};
	struct err err = {0};

	(void)state;
	for (size_t k = 0; k < sizeof(frames) / sizeof(frames[0]); k++) {
		long n = frames[k].columns * frames[k].rows;
		size_t size = jpegls_bound(frames[k].columns, frames[k].rows), used = 0;
		struct dicom_file *file = header(frames[k].rows, frames[k].columns, 1);
		uint16_t *values = calloc((size_t)n, 2), *again = calloc((size_t)n, 2);
		struct dicom_writer *w = NULL;
		void *code = malloc(size);
		uint32_t x = 12345;

		ok(dicom_put_int(dicom_root(file), STORED, 16, &err), &err);
		ok(dicom_put_int(dicom_root(file), HIGH, 15, &err), &err);
		for (long i = 0; i < n; i++) {
			x = x * 1664525u + 1013904223u;
			values[i] = frames[k].kind == 0	  ? (uint16_t)(x >> 16)
				    : frames[k].kind == 1 ? (x >> 31 ? 65535 : 0)
				    : frames[k].kind == 2 ? (uint16_t)(i % 7 ? 65535 : i)
							  : 0;
		}
		ok(jpegls_encode(values, frames[k].columns, frames[k].rows, 16, code, size, &used, &err), &err);
		ok(dicom_writer_open_jpegls(in_folder("extreme.dcm"), file, &w, &err), &err);
		ok(dicom_writer_fragment(w, code, used, &err), &err);
		ok(dicom_writer_close(w, &err), &err);
		dicom_close(file);
		ok(dicom_open(in_folder("extreme.dcm"), &file, &err), &err);
		ok(dicom_read_frame(file, 0, again, &err), &err);
		assert_memory_equal(values, again, (size_t)n * 2);
		dicom_close(file);
		assert_int_equal(jpegls_encode(values, frames[k].columns, frames[k].rows, 16, code, 8, &used, &err), -ENOBUFS);
		free(code);
		free(values);
		free(again);
	}
	assert_int_equal(jpegls_encode(NULL, 0, 5, 16, NULL, 0, NULL, &err), -EINVAL);
}

static void test_encodings(void **state)
{
	static const struct {
		const char *tool, *option, *syntax;
	} made[] = {
		{"dcmconv", "+ti", IMPLICIT},
		{"dcmconv", "+tb", BIG_ENDIAN_EXPLICIT},
		{"dcmconv", "+td", "1.2.840.10008.1.2.1.99"},
		{"dcmcrle", NULL, RLE},
		{"dcmcjpls", "+el", "1.2.840.10008.1.2.4.80"},
		{"dcmcjpeg", "+e1", "1.2.840.10008.1.2.4.70"},
		{"dcmcjpeg", "+el", "1.2.840.10008.1.2.4.57"},
	};
	char in[256];

	(void)state;
	snprintf(in, sizeof(in), "%s", sample());
	for (size_t k = 0; k < sizeof(made) / sizeof(made[0]); k++) {
		const char *out = in_folder("encoded.dcm");

		if (tool(made[k].tool, made[k].option, in, out) < 0)
			skip();
		check_sample(out, made[k].syntax);
	}
}

static void test_lossy_is_refused(void **state)
{
	struct dicom_file *file = NULL;
	struct dicom_pixel_info info;
	struct err err = {0};
	uint16_t values[N];

	(void)state;
	if (tool("dcmcjpls", "+en", sample(), in_folder("lossy.dcm")) < 0)
		skip();
	ok(dicom_open(in_folder("lossy.dcm"), &file, &err), &err); /* its header is as good as any */
	assert_int_equal(dicom_pixels_info(file, &info, &err), -ENOTSUP);
	assert_non_null(strstr(err.msg, "1.2.840.10008.1.2.4.81"));
	assert_int_equal(dicom_read_frame(file, 0, values, &err), -ENOTSUP);
	dicom_close(file);
}

static void add_image(struct bytes *b, const char *syntax, unsigned rows, unsigned columns, unsigned frames, unsigned bits)
{
	char text[16];

	snprintf(text, sizeof(text), "%u%s", frames, frames < 10 || (frames >= 100 && frames < 1000) ? " " : "");
	add_meta(b, syntax);
	add_us(b, 0x00280002, 1);
	add_text(b, 0x00280004, "CS", "MONOCHROME1 ");
	add_text(b, 0x00280008, "IS", text);
	add_us(b, 0x00280010, rows);
	add_us(b, 0x00280011, columns);
	add_us(b, 0x00280100, bits);
	add_us(b, 0x00280101, bits);
	add_us(b, 0x00280102, bits - 1);
	add_us(b, 0x00280103, 0);
}

/* 8 bits, an odd number of bytes in each frame and in all. */
static void test_bytes(void **state)
{
	struct err err = {0};
	uint16_t values[9];
	struct bytes b;

	(void)state;
	for (int padded = 0; padded < 2; padded++) {
		add_image(&b, EXPLICIT, 3, 3, 3, 8);
		add_header(&b, PIXELS, "OB", 27 + (uint32_t)padded);
		for (int k = 0; k < 27 + padded; k++)
			add(&b, &(unsigned char){(unsigned char)(k * 9 + 1)}, 1);
		struct dicom_file *file = open_bytes(&b);
		for (long f = 2; f >= 0; f--) {
			ok(dicom_read_frame(file, f, values, &err), &err);
			for (int k = 0; k < 9; k++)
				assert_int_equal(values[k], (f * 9 + k) * 9 + 1);
		}
		dicom_close(file);
	}
	add_image(&b, EXPLICIT, 3, 3, 3, 8);
	add_header(&b, PIXELS, "OB", 29);
	b.n += 29;
	struct dicom_file *file = open_bytes(&b);
	struct dicom_pixel_info info;
	assert_int_equal(dicom_pixels_info(file, &info, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "29 bytes"));
	dicom_close(file);
}

/* Big endian: words swapped, also when they hold two bytes each. */
static void test_big_endian_bytes(void **state)
{
	struct err err = {0};
	uint16_t values[9];
	struct bytes b;

	(void)state;
	/* OB is not swapped, OW is */
	for (int words = 0; words < 2; words++) {
		static const uint32_t us[][2] = {{0x00280002, 1}, {0x00280010, 3}, {0x00280011, 3}, {0x00280100, 8},
						 {0x00280101, 8}, {0x00280102, 7}, {0x00280103, 0}};
		add_meta(&b, BIG_ENDIAN_EXPLICIT);
		for (size_t k = 0; k < sizeof(us) / sizeof(us[0]); k++) {
			unsigned char e[10] = {
				us[k][0] >> 24, us[k][0] >> 16 & 255, us[k][0] >> 8 & 255, us[k][0] & 255, 'U', 'S', 0, 2,
				us[k][1] >> 8,	us[k][1] & 255};
			if (us[k][0] == 0x00280010) {
				add(&b,
				    "\0\x28\0\x08IS\0\2"
				    "3 ",
				    10);
			}
			add(&b, e, 10);
		}
		add(&b, words ? "\x7f\xe0\0\x10OW\0\0\0\0\0\x1c" : "\x7f\xe0\0\x10OB\0\0\0\0\0\x1c", 12);
		for (int k = 0; k < 28; k++)
			add(&b, &(unsigned char){(unsigned char)((words ? k ^ 1 : k) * 9 + 1)}, 1);
		struct dicom_file *file = open_bytes(&b);
		for (long f = 0; f < 3; f++) {
			ok(dicom_read_frame(file, f, values, &err), &err);
			for (int k = 0; k < 9; k++)
				assert_int_equal(values[k], (f * 9 + k) * 9 + 1);
		}
		dicom_close(file);
	}
}

/* Opens the image and wants it refused. */
static void refused_image(const struct bytes *b, int code, const char *words)
{
	struct dicom_file *file = open_bytes(b);
	struct dicom_pixel_info info;
	struct err err = {0};
	int r = dicom_pixels_info(file, &info, &err);

	if (r != -code || !strstr(err.msg, words))
		fail_msg("%d (%s) instead of %d with \"%s\"", r, err.msg, -code, words);
	dicom_close(file);
}

static void test_descriptions_that_do_not_fit(void **state)
{
	struct bytes b;

	(void)state;
	for (int wrong = 0; wrong < 4; wrong++) {
		static const uint32_t lengths[] = {0, 30, 34, 64};

		add_image(&b, EXPLICIT, 4, 4, 1, 16);
		add_header(&b, PIXELS, "OW", lengths[wrong]);
		b.n += lengths[wrong];
		refused_image(&b, EBADMSG, "need 32");
	}
	add_image(&b, EXPLICIT, 65535, 65535, 4096, 16); /* 35 TB */
	add_header(&b, PIXELS, "OW", 4);
	add(&b, "xxxx", 4);
	refused_image(&b, EBADMSG, "need 35183298355200");
	add_image(&b, EXPLICIT, 1, 2, 4097, 16);
	add_header(&b, PIXELS, "OW", 4);
	add(&b, "xxxx", 4);
	refused_image(&b, EFBIG, "4097 frames");
	add_image(&b, EXPLICIT, 0, 2, 1, 16);
	add_header(&b, PIXELS, "OW", 0);
	refused_image(&b, EBADMSG, "0 rows");
	add_image(&b, EXPLICIT, 1, 1, 1, 32);
	add_header(&b, PIXELS, "OW", 4);
	add(&b, "xxxx", 4);
	refused_image(&b, ENOTSUP, "BitsAllocated is 32");
	add_meta(&b, EXPLICIT);
	add_us(&b, 0x00280002, 3);
	add_us(&b, 0x00280010, 1);
	add_us(&b, 0x00280011, 1);
	add_us(&b, 0x00280100, 8);
	add_header(&b, PIXELS, "OB", 4);
	add(&b, "xxxx", 4);
	refused_image(&b, ENOTSUP, "colour");
	add_meta(&b, EXPLICIT);
	add_us(&b, 0x00280010, 1);
	refused_image(&b, EBADMSG, "no (7FE0,0010) PixelData");
	add_header(&b, PIXELS, "OB", 4);
	add(&b, "xxxx", 4);
	refused_image(&b, EBADMSG, "no (0028,0011) Columns");
	/* uncompressed syntax with fragments, encapsulated one without */
	add_image(&b, EXPLICIT, 1, 2, 1, 16);
	add_header(&b, PIXELS, "OW", 0xffffffff);
	add_item(&b, 0xfffee0dd, 0);
	refused(&b, EBADMSG, "undefined length");
	add_image(&b, RLE, 1, 2, 1, 16);
	add_header(&b, PIXELS, "OW", 4);
	add(&b, "xxxx", 4);
	refused(&b, EBADMSG, "has fragments");
}

static void test_fragments_that_lie(void **state)
{
	struct dicom_file *file;
	struct err err = {0};
	uint16_t values[64];
	struct bytes b;

	(void)state;
	/* too few fragments, none at all */
	add_image(&b, RLE, 8, 8, 3, 8);
	add_header(&b, PIXELS, "OB", 0xffffffff);
	add_item(&b, 0xfffee000, 0);
	add_item(&b, 0xfffee000, 2);
	add(&b, "xx", 2);
	add_item(&b, 0xfffee0dd, 0);
	refused_image(&b, EBADMSG, "1 fragments for 3 frames");
	/* an offset table that points elsewhere */
	add_image(&b, RLE, 8, 8, 2, 8);
	add_header(&b, PIXELS, "OB", 0xffffffff);
	add_item(&b, 0xfffee000, 8);
	add32(&b, 4);
	add32(&b, 0xfffffff0);
	for (int k = 0; k < 3; k++) {
		add_item(&b, 0xfffee000, 2);
		add(&b, "xx", 2);
	}
	add_item(&b, 0xfffee0dd, 0);
	refused_image(&b, EBADMSG, "offset table");
	/* a fragment longer than the file, and no end */
	add_image(&b, RLE, 8, 8, 1, 8);
	add_header(&b, PIXELS, "OB", 0xffffffff);
	add_item(&b, 0xfffee000, 0);
	add_item(&b, 0xfffee000, 1000);
	refused(&b, EBADMSG, "declares 1000 bytes, 0 are there");
	b.n -= 8;
	refused(&b, EBADMSG, "without the end");
	/* codecs fed with nonsense: an error, in every syntax */
	static const char *const syntaxes[] = {RLE, "1.2.840.10008.1.2.4.57", "1.2.840.10008.1.2.4.70", "1.2.840.10008.1.2.4.80"};
	for (size_t s = 0; s < 4; s++) {
		add_image(&b, syntaxes[s], 8, 8, 1, 8);
		add_header(&b, PIXELS, "OB", 0xffffffff);
		add_item(&b, 0xfffee000, 0);
		add_item(&b, 0xfffee000, 100);
		for (int k = 0; k < 100; k++)
			add(&b, &(unsigned char){(unsigned char)(k * 37)}, 1);
		add_item(&b, 0xfffee0dd, 0);
		file = open_bytes(&b);
		assert_int_equal(dicom_read_frame(file, 0, values, &err), -EBADMSG);
		assert_non_null(strstr(err.msg, "cannot be decoded"));
		dicom_close(file);
	}
}

/* Runs that are cut off by the end of their segment, segments that are none:
 * what DCMTK's own decoder read beyond its input for. */
static void test_rle_that_lies(void **state)
{
	static const struct {
		uint32_t segments, first, second;
		const char *bytes;
		size_t n;
	} wrong[] = {
		{1, 64, 0,
		 "\x7f"
		 "abc",
		 4},				   /* 128 bytes to come, 3 are there */
		{1, 64, 0, "\x81", 1},		   /* a byte to repeat, and none is there */
		{1, 64, 0, "\x80\x80\x80\x80", 4}, /* nothing at all */
		{1, 63, 0,
		 "\xc1"
		 "a",
		 2}, /* begins in the header */
		{1, 1000, 0,
		 "\xc1"
		 "a",
		 2}, /* begins behind the end */
		{2, 64, 66,
		 "\xc1"
		 "a"
		 "\xc1"
		 "b",
		 4}, /* two planes for 8 bits */
		{0, 64, 0,
		 "\xc1"
		 "a",
		 2},
		{0xffffffff, 64, 0,
		 "\xc1"
		 "a",
		 2},
	};
	struct err err = {0};
	uint16_t values[64];
	struct bytes b;

	(void)state;
	for (size_t k = 0; k <= sizeof(wrong) / sizeof(wrong[0]); k++) {
		bool right = k == sizeof(wrong) / sizeof(wrong[0]);

		add_image(&b, RLE, 8, 8, 1, 8);
		add_header(&b, PIXELS, "OB", 0xffffffff);
		add_item(&b, 0xfffee000, 0);
		add_item(&b, 0xfffee000, 64 + (uint32_t)(right ? 2 : wrong[k].n));
		add32(&b, right ? 1 : wrong[k].segments);
		add32(&b, right ? 64 : wrong[k].first);
		add32(&b, right ? 0 : wrong[k].second);
		for (int i = 3; i < 16; i++)
			add32(&b, 0);
		add(&b,
		    right ? "\xc1"
			    "a"
			  : wrong[k].bytes,
		    right ? 2 : wrong[k].n); /* 0xc1: 64 times */
		add_item(&b, 0xfffee0dd, 0);
		struct dicom_file *file = open_bytes(&b);
		int r = dicom_read_frame(file, 0, values, &err);
		if (right) {
			ok(r, &err);
			assert_true(values[0] == 'a' && values[63] == 'a');
		} else {
			assert_int_equal(r, -EBADMSG);
			assert_non_null(strstr(err.msg, "cannot be decoded"));
		}
		dicom_close(file);
	}
}

/* A code stream of another size than the object says never reaches the codec. */
static void test_code_stream_of_another_size(void **state)
{
	static const struct {
		const char *tool, *option;
		unsigned char marker;
		int at;
		unsigned char value;
		int code;
	} changes[] = {
		{"dcmcjpls", "+el", 0xf7, 6, 200, EBADMSG},  {"dcmcjpls", "+el", 0xf7, 8, 200, EBADMSG},
		{"dcmcjpls", "+el", 0xf7, 4, 17, EBADMSG},   {"dcmcjpls", "+el", 0xf7, 9, 3, EBADMSG},
		{"dcmcjpls", "+el", 0xf7, 1, 0xc0, ENOTSUP}, {"dcmcjpeg", "+e1", 0xc3, 5, 1, EBADMSG},
		{"dcmcjpeg", "+e1", 0xc3, 1, 0xc1, ENOTSUP}, {"dcmcjpeg", "+e1", 0xc3, 2, 0xff, EBADMSG},
	};
	static unsigned char bytes[200000];
	uint16_t values[N];
	char in[256], out[256];

	(void)state;
	snprintf(in, sizeof(in), "%s", sample());
	snprintf(out, sizeof(out), "%s", in_folder("stream.dcm"));
	for (size_t k = 0; k < sizeof(changes) / sizeof(changes[0]); k++) {
		unsigned char mark[2] = {0xff, changes[k].marker}, *p;
		struct dicom_file *file = NULL;
		struct err err = {0};

		if (tool(changes[k].tool, changes[k].option, in, out) < 0)
			skip();
		FILE *f = fopen(out, "r+");
		size_t n = fread(bytes, 1, sizeof(bytes), f);
		p = memmem(bytes, n, mark, 2);
		assert_non_null(p);
		fseek(f, p - bytes + changes[k].at, SEEK_SET);
		fputc(changes[k].value, f);
		fclose(f);
		ok(dicom_open(out, &file, &err), &err);
		int r = dicom_read_frame(file, 0, values, &err);
		if (r != -changes[k].code || !strstr(err.msg, "cannot be decoded"))
			fail_msg("change %zu: %d (%s)", k, r, err.msg);
		dicom_close(file);
	}
}

/* Another reader sees the same object: pydicom. */
static void test_pydicom_agrees(void **state)
{
	static const char script[] = "import sys\n"
				     "try:\n"
				     "    import numpy, pydicom\n"
				     "except ImportError:\n"
				     "    sys.exit(77)\n"
				     "ds = pydicom.dcmread(sys.argv[1])\n"
				     "assert ds.file_meta.TransferSyntaxUID == '1.2.840.10008.1.2.1'\n"
				     "assert ds.file_meta.MediaStorageSOPInstanceUID == ds.SOPInstanceUID == '1.2.3.4'\n"
				     "assert ds['PixelData'].VR == 'OW' and list(ds.keys())[-1] == 0x7fe00010\n"
				     "a = ds.pixel_array\n"
				     "assert a.shape == (5, 37, 53) and a.dtype == numpy.uint16\n"
				     "k = numpy.arange(37 * 53, dtype=numpy.int64)\n"
				     "for f in range(5):\n"
				     "    h = ((k * 2654435761) & 0xffffffff) >> 29\n"
				     "    v = (k % 53 * 40 + k // 53 * 25 + f * 333 + h) & 0xfff\n"
				     "    assert (a[f].ravel() == v).all()\n";
	char *argv[] = {"/usr/bin/python3", "-c", (char *)script, (char *)sample(), NULL};
	int status;
	pid_t pid;

	(void)state;
	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0)
		skip();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

/* A frame of several fragments, found through the offset table. */
static void test_split_fragments(void **state)
{
	char *argv[] = {"dcmcjpls", "+fs", "1", (char *)sample(), (char *)in_folder("split.dcm"), NULL};
	int status;
	pid_t pid;

	(void)state;
	if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0)
		skip();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	check_sample(in_folder("split.dcm"), "1.2.840.10008.1.2.4.80");
}

static void test_writer_refusals(void **state)
{
	struct dicom_file *file = header(4, 4, 2);
	struct dicom_writer *w = NULL;
	struct err err = {0};
	uint16_t values[16] = {0};
	int before = folder_entries();

	(void)state;
	/* abort, too few frames, too many: nothing is left */
	ok(dicom_writer_open(in_folder("w.dcm"), file, &w, &err), &err);
	assert_int_equal(folder_entries(), before + 1);
	ok(dicom_writer_frame(w, values, &err), &err);
	dicom_writer_abort(w);
	dicom_writer_abort(NULL);
	assert_int_equal(folder_entries(), before);
	ok(dicom_writer_open(in_folder("w.dcm"), file, &w, &err), &err);
	ok(dicom_writer_frame(w, values, &err), &err);
	assert_int_equal(dicom_writer_close(w, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "1 of 2 frames"));
	assert_int_equal(folder_entries(), before);
	ok(dicom_writer_open(in_folder("w.dcm"), file, &w, &err), &err);
	ok(dicom_writer_frame(w, values, &err), &err);
	ok(dicom_writer_frame(w, values, &err), &err);
	assert_int_equal(dicom_writer_frame(w, values, &err), -EINVAL);
	dicom_writer_abort(w);
	/* a leftover of an earlier attempt is replaced */
	FILE *f = fopen(in_folder("w.dcm.part"), "w");
	fputs("left", f);
	fclose(f);
	ok(dicom_writer_open(in_folder("w.dcm"), file, &w, &err), &err);
	dicom_writer_abort(w);
	assert_int_equal(folder_entries(), before);
	w = NULL;
	/* headers that are not fit */
	ok(dicom_put_bytes(dicom_root(file), 0xfffcfffc, "\0\0", 2, &err), &err);
	assert_int_equal(dicom_writer_open(in_folder("w.dcm"), file, &w, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "(FFFC,FFFC)"));
	dicom_close(file);
	file = header(4, 4, 2);
	ok(dicom_put_int(dicom_root(file), ALLOCATED, 8, &err), &err);
	assert_int_equal(dicom_writer_open(in_folder("w.dcm"), file, &w, &err), -EINVAL);
	dicom_close(file);
	file = header(32768, 32768, 2); /* 4 GiB exactly: refused before anything is written */
	assert_int_equal(dicom_writer_open(in_folder("w.dcm"), file, &w, &err), -EFBIG);
	dicom_close(file);
	file = header(4, 4, 2);
	assert_int_equal(dicom_writer_open("/nowhere/w.dcm", file, &w, &err), -ENOENT);
	dicom_close(file);
	assert_null(w);
	assert_int_equal(folder_entries(), before);
}

/* A file system that is full: an error in time, nothing left, and no signal. RLIMIT_FSIZE stands in for the disk. */
/* Many files of one folder: synced one by one, named together or not at all. */
static void test_published_together(void **state)
{
	static const char *const names[] = {"a.dcm", "b.dcm", "c.dcm"};
	struct dicom_file *file = header(4, 4, 1), *read = NULL;
	struct dicom_writer *w[3];
	struct err err = {0};
	uint16_t values[16] = {7};
	int before = folder_entries();

	(void)state;
	for (int blocked = 1; blocked >= 0; blocked--) {
		if (blocked) /* the last one cannot get its name */
			assert_int_equal(mkdir(in_folder(names[2]), 0700), 0);
		else
			assert_int_equal(rmdir(in_folder(names[2])), 0);
		for (int i = 0; i < 3; i++) {
			ok(dicom_writer_open(in_folder(names[i]), file, &w[i], &err), &err);
			assert_int_equal(dicom_writer_sync(w[i], &err), -EINVAL); /* no frame yet */
			ok(dicom_writer_frame(w[i], values, &err), &err);
		}
		assert_int_equal(dicom_writers_publish(w, 3, &err), -EINVAL); /* not synced */
		for (int i = 0; i < 3; i++)
			ok(dicom_writer_sync(w[i], &err), &err);
		assert_int_equal(dicom_writer_sync(w[0], &err), -EINVAL);
		assert_int_equal(folder_entries(), before + 3 + blocked);
		if (blocked)
			assert_true(dicom_writers_publish(w, 3, &err) < 0);
		else
			ok(dicom_writers_publish(w, 3, &err), &err);
		for (int i = 0; i < 3; i++)
			dicom_writer_abort(w[i]);
		assert_int_equal(folder_entries(), blocked ? before + 1 : before + 3);
	}
	for (int i = 0; i < 3; i++) {
		uint16_t got[16] = {0};
		struct dicom_pixel_info info;

		ok(dicom_open(in_folder(names[i]), &read, &err), &err);
		ok(dicom_pixels_info(read, &info, &err), &err);
		ok(dicom_read_frame(read, 0, got, &err), &err);
		assert_memory_equal(got, values, sizeof(got));
		dicom_close(read);
		unlink(in_folder(names[i]));
	}
	dicom_close(file);
}

static void test_no_space(void **state)
{
	struct dicom_file *file = header(512, 512, 4);
	struct rlimit old, small = {1 << 20, RLIM_INFINITY};
	static uint16_t values[512 * 512];
	struct dicom_writer *w = NULL;
	struct err err = {0};
	int before = folder_entries(), r;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	r = dicom_writer_open(in_folder("full.dcm"), file, &w, &err);
	for (int f = 0; f < 4 && r == 0; f++)
		r = dicom_writer_frame(w, values, &err);
	assert_int_equal(r, -EFBIG);
	if (w) {
		assert_int_equal(dicom_writer_frame(w, values, &err), -EIO); /* a hole is never papered over */
		assert_true(dicom_writer_close(w, &err) < 0);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(folder_entries(), before);
	dicom_close(file);
}

/* One frame of a large object costs one frame of memory. */
static void test_memory(void **state)
{
	enum { SIDE = 1024, MANY = 128 }; /* 2 MiB a frame, 256 MiB in all */
	struct dicom_file *file = header(SIDE, SIDE, MANY);
	uint16_t *values = calloc(SIDE * SIDE, 2);
	struct dicom_writer *w = NULL;
	struct rusage before, after;
	struct err err = {0};

	(void)state;
	getrusage(RUSAGE_SELF, &before);
	ok(dicom_writer_open(in_folder("many.dcm"), file, &w, &err), &err);
	dicom_close(file);
	for (int f = 0; f < MANY; f++) {
		values[0] = (uint16_t)f;
		ok(dicom_writer_frame(w, values, &err), &err);
	}
	ok(dicom_writer_close(w, &err), &err);
	ok(dicom_open(in_folder("many.dcm"), &file, &err), &err);
	for (int f = 0; f < MANY; f++) {
		ok(dicom_read_frame(file, f, values, &err), &err);
		assert_int_equal(values[0], f);
	}
	dicom_close(file);
	getrusage(RUSAGE_SELF, &after);
	assert_true(after.ru_maxrss - before.ru_maxrss < 16 * 1024); /* KiB */
	free(values);
	unlink(in_folder("many.dcm"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jpegls),
		cmocka_unit_test(test_jpegls_extremes),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_encodings),
		cmocka_unit_test(test_lossy_is_refused),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_big_endian_bytes),
		cmocka_unit_test(test_descriptions_that_do_not_fit),
		cmocka_unit_test(test_fragments_that_lie),
		cmocka_unit_test(test_split_fragments),
		cmocka_unit_test(test_rle_that_lies),
		cmocka_unit_test(test_code_stream_of_another_size),
		cmocka_unit_test(test_pydicom_agrees),
		cmocka_unit_test(test_writer_refusals),
		cmocka_unit_test(test_published_together),
		cmocka_unit_test(test_no_space),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
