/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that must not be read: lossy ones, inconsistent descriptions, fragments and runs with wrong sizes. */
#include "tests/dicom/pixels/pixels_fixture.h"
#include "tests/test.h"

TEST(test_lossy_is_refused)
{
	struct dicom_file *file = NULL;
	struct dicom_pixel_info info;
	struct err err = {0};
	uint16_t values[N];

	if (tool("dcmcjpls", "+en", sample(), in_folder("lossy.dcm")) < 0)
		skip_because("dcmcjpls is not installed");
	file = open_file(in_folder("lossy.dcm")); /* its header is valid */
	assert_error(dicom_pixels_info(file, &info, &err), &err, ENOTSUP, "1.2.840.10008.1.2.4.81");
	assert_int_equal(dicom_read_frame(file, 0, values, &err), -ENOTSUP);
}

/* Open the image. The test fails unless its pixels are refused. */
static void refused_image(const struct bytes *b, int code, const char *words)
{
	struct dicom_file *file = open_bytes(b);
	struct dicom_pixel_info info;
	struct err err = {0};
	int r = dicom_pixels_info(file, &info, &err);

	if (r != -code || !strstr(err.msg, words))
		fail_msg("%d (%s) instead of %d with \"%s\"", r, err.msg, -code, words);
}

/* A code stream that lost something, in a syntax whose name says that it is lossless. */
TEST(test_lossy_behind_a_lossless_name)
{
	static const struct {
		const char *tool, *coding;
		int at; /* byte of the scan header that is changed, from its marker on; 0: none */
		unsigned char value;
		const char *says; /* NULL: it is read */
	} cases[] = {
		{"dcmcjpls", "+en", 0, 0, "a JPEG-LS frame with NEAR = 2, which is lossy"},
		{"dcmcjpls", "+el", 0, 0, NULL},
		{"dcmcjpls", "+el", 7, 1, "a JPEG-LS frame with NEAR = 1"},
		{"dcmcjpls", "+el", 7, 255, "a JPEG-LS frame with NEAR = 255"},
		{"dcmcjpls", "+el", 9, 1, "a JPEG-LS frame with the point transform 1, which is lossy"},
		{"dcmcjpls", "+el", 6, 2, "a JPEG-LS frame with the mapping table 2"},
		{"dcmcjpeg", "+e1", 0, 0, NULL},
		{"dcmcjpeg", "+e1", 9, 3, "a JPEG frame with the point transform 3, which is lossy"},
		{"dcmcjpeg", "+el", 9, 1, "a JPEG frame with the point transform 1, which is lossy"},
	};
	static const unsigned char scan[] = {0xff, 0xda, 0, 8, 1};
	static unsigned char bytes[200000];
	char in[256], out[256];
	uint16_t values[N];

	snprintf(in, sizeof(in), "%s", sample());
	snprintf(out, sizeof(out), "%s", in_folder("lost.dcm"));
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct dicom_file *file = NULL;
		struct err err = {0};
		unsigned char *p;

		if (tool(cases[k].tool, cases[k].coding, in, out) < 0)
			skip_because("%s is not installed", cases[k].tool);
		FILE *f = fopen(out, "r+");
		size_t n = fread(bytes, 1, sizeof(bytes), f);
		p = memmem(bytes, n, "1.2.840.10008.1.2.4.81", 22);
		if (p) {
			fseek(f, p - bytes + 21, SEEK_SET);
			fputc('0', f);
		}
		p = memmem(bytes, n, scan, sizeof(scan));
		assert_non_null(p);
		if (cases[k].at) {
			fseek(f, p - bytes + cases[k].at, SEEK_SET);
			fputc(cases[k].value, f);
		}
		fclose(f);
		file = open_file(out);
		if (cases[k].says)
			assert_error(dicom_read_frame(file, 0, values, &err), &err, ENOTSUP, cases[k].says);
		else
			ok(dicom_read_frame(file, 0, values, &err), &err);
	}
}

TEST(test_descriptions_that_do_not_fit)
{
	struct bytes b;

	for (int wrong = 0; wrong < 4; wrong++) {
		static const uint32_t lengths[] = {0, 30, 40, 64};

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
	/* more bits than there are, or none; a sign that is neither 0 nor 1 */
	for (unsigned stored = 0; stored <= 17; stored += 17) {
		add_meta(&b, EXPLICIT);
		add_description(&b, 1, 2, 1, 16, stored, 15);
		add_header(&b, PIXELS, "OW", 4);
		add(&b, "xxxx", 4);
		refused_image(&b, EBADMSG, stored ? "BitsStored is 17 with 16 bits" : "BitsStored is 0 with 16 bits");
	}
	add_image(&b, EXPLICIT, 1, 2, 1, 16);
	b.p[b.n - 2] = 2;
	add_header(&b, PIXELS, "OW", 4);
	add(&b, "xxxx", 4);
	refused_image(&b, EBADMSG, "(0028,0103) PixelRepresentation is 2");
	/* values whose bits do not begin at bit 0 */
	for (unsigned high = 12; high < 16; high += 3) {
		add_meta(&b, EXPLICIT);
		add_description(&b, 1, 2, 1, 16, 12, high);
		add_header(&b, PIXELS, "OW", 4);
		add(&b, "xxxx", 4);
		refused_image(&b, ENOTSUP, "with 12 bits stored");
	}
	/* fragments in an uncompressed transfer syntax, and no fragments in an encapsulated one */
	add_image(&b, EXPLICIT, 1, 2, 1, 16);
	add_header(&b, PIXELS, "OW", 0xffffffff);
	add_item(&b, 0xfffee0dd, 0);
	refused(&b, EBADMSG, "undefined length");
	add_image(&b, RLE, 1, 2, 1, 16);
	add_header(&b, PIXELS, "OW", 4);
	add(&b, "xxxx", 4);
	refused(&b, EBADMSG, "has fragments");
}

/* An encapsulated frame may have 512 MiB when decoded, whatever its fragments have. */
TEST(test_largest_frame)
{
	static const struct {
		unsigned rows, columns, bits;
		bool allowed;
	} frames[] = {{16384, 16384, 16, true}, {16385, 16384, 16, false}, {65535, 65535, 16, false}, {65535, 65535, 8, false}};
	struct dicom_pixel_info info;
	struct err err = {0};
	struct bytes b;

	for (size_t k = 0; k < sizeof(frames) / sizeof(frames[0]); k++) {
		add_image(&b, RLE, frames[k].rows, frames[k].columns, 1, frames[k].bits);
		add_header(&b, PIXELS, "OB", 0xffffffff);
		add_item(&b, 0xfffee000, 0);
		add_item(&b, 0xfffee000, 2);
		add(&b, "xx", 2);
		add_item(&b, 0xfffee0dd, 0);
		if (frames[k].allowed) {
			struct dicom_file *file = open_bytes(&b);

			ok(dicom_pixels_info(file, &info, &err), &err);
		} else {
			refused_image(&b, EFBIG, "more than 536870912 bytes");
		}
	}
}

/* A value that does not fit into Bits Stored was cut to another value before. The bits above a signed value repeat its sign. */
TEST(test_value_above_bits_stored)
{
	static const uint16_t stored[] = {0x0001, 0x0fff, 0x1234, 0xffff};
	struct dicom_file *file;
	uint16_t values[4];
	struct bytes b;

	for (unsigned is_signed = 0; is_signed < 2; is_signed++) {
		struct err err = {0};
		int rc;

		add_meta(&b, EXPLICIT);
		add_us(&b, 0x00280002, 1);
		add_text(&b, 0x00280004, "CS", "MONOCHROME2 ");
		add_us(&b, 0x00280010, 2);
		add_us(&b, 0x00280011, 2);
		add_us(&b, 0x00280100, 16);
		add_us(&b, 0x00280101, 12);
		add_us(&b, 0x00280102, 11);
		add_us(&b, 0x00280103, is_signed);
		add_header(&b, PIXELS, "OW", sizeof(stored));
		add(&b, stored, sizeof(stored));
		file = open_bytes(&b);
		rc = dicom_read_frame(file, 0, values, &err);
		if (is_signed) {
			assert_int_equal(rc, 0);
			assert_int_equal(values[3], 0x0fff);
		} else {
			assert_int_equal(rc, -EBADMSG);
			assert_non_null(strstr(err.msg, "value 4660 in row 2, column 1"));
			assert_non_null(strstr(err.msg, "(0028,0101) BitsStored, which is 12"));
		}
	}
}

TEST(test_fragments_that_lie)
{
	struct dicom_file *file;
	struct err err = {0};
	uint16_t values[64];
	struct bytes b;

	/* too few fragments, no fragments */
	add_image(&b, RLE, 8, 8, 3, 8);
	add_header(&b, PIXELS, "OB", 0xffffffff);
	add_item(&b, 0xfffee000, 0);
	add_item(&b, 0xfffee000, 2);
	add(&b, "xx", 2);
	add_item(&b, 0xfffee0dd, 0);
	refused_image(&b, EBADMSG, "1 fragments for 3 frames");
	/* an offset table with wrong offsets */
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
	/* a frame of RLE has one fragment, so that its end is not searched */
	add_image(&b, RLE, 8, 8, 2, 8);
	add_header(&b, PIXELS, "OB", 0xffffffff);
	add_item(&b, 0xfffee000, 0);
	for (int k = 0; k < 4; k++)
		add_fragments(&b, k & 1 ? "\xff\xd9" : "xx", 2, 2);
	add_item(&b, 0xfffee0dd, 0);
	refused_image(&b, EBADMSG, "4 fragments for 2 frames and an offset table of 0 bytes");
	/* a fragment longer than the file, and no end of the sequence */
	add_image(&b, RLE, 8, 8, 1, 8);
	add_header(&b, PIXELS, "OB", 0xffffffff);
	add_item(&b, 0xfffee000, 0);
	add_item(&b, 0xfffee000, 1000);
	refused(&b, EBADMSG, "declares 1000 bytes, but only 0 remain");
	b.n -= 8;
	refused(&b, EBADMSG, "without the end");
	/* a frame of nothing */
	add_image(&b, RLE, 8, 8, 1, 8);
	add_header(&b, PIXELS, "OB", 0xffffffff);
	add_item(&b, 0xfffee000, 0);
	add_item(&b, 0xfffee000, 0);
	add_item(&b, 0xfffee0dd, 0);
	file = open_bytes(&b);
	assert_error(dicom_read_frame(file, 0, values, &err), &err, EBADMSG, "the fragments of a frame have 0 bytes");
	/* arbitrary bytes instead of a code stream: an error in every transfer syntax */
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
		assert_error(dicom_read_frame(file, 0, values, &err), &err, EBADMSG, "cannot be decoded");
	}
}

/* RLE runs that are truncated at the end of their segment, and wrong segments. DCMTK's decoder reads beyond its input in some of
 * these cases. */
TEST(test_rle_that_lies)
{
	static const struct {
		uint32_t segments, first, second;
		const char *bytes;
		size_t n;
	} wrong[] = {
		{1, 64, 0,
		 "\x7f"
		 "abc",
		 4},				   /* a run of 128 bytes, of which 3 are present */
		{1, 64, 0, "\x81", 1},		   /* the byte to repeat is missing */
		{1, 64, 0, "\x80\x80\x80\x80", 4}, /* no values */
		{1, 63, 0,
		 "\xc1"
		 "a",
		 2}, /* the segment begins inside the header */
		{1, 1000, 0,
		 "\xc1"
		 "a",
		 2}, /* the segment begins after the end */
		{2, 64, 66,
		 "\xc1"
		 "a"
		 "\xc1"
		 "b",
		 4}, /* two byte planes for 8-bit values */
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
		    right ? 2 : wrong[k].n); /* 0xc1: repeat 64 times */
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
	}
}

/* A code stream whose size differs from that in the object is refused before the codec runs. */
TEST(test_code_stream_of_another_size)
{
	static const struct {
		const char *tool, *option;
		unsigned char marker;
		int at;
		unsigned char value;
		int code;
	} changes[] = {
		{"dcmcjpls", "+el", 0xf7, 6, 200, EBADMSG},  {"dcmcjpls", "+el", 0xf7, 8, 200, EBADMSG},
		{"dcmcjpls", "+el", 0xf7, 6, 36, EBADMSG},   {"dcmcjpls", "+el", 0xf7, 8, 52, EBADMSG},
		{"dcmcjpeg", "+e1", 0xc3, 6, 36, EBADMSG},   {"dcmcjpls", "+el", 0xf7, 4, 17, EBADMSG},
		{"dcmcjpls", "+el", 0xf7, 9, 3, EBADMSG},    {"dcmcjpls", "+el", 0xf7, 1, 0xc0, ENOTSUP},
		{"dcmcjpeg", "+e1", 0xc3, 5, 1, EBADMSG},    {"dcmcjpeg", "+e1", 0xc3, 1, 0xc1, ENOTSUP},
		{"dcmcjpeg", "+e1", 0xc3, 2, 0xff, EBADMSG},
	};
	static unsigned char bytes[200000];
	uint16_t values[N];
	char in[256], out[256];

	snprintf(in, sizeof(in), "%s", sample());
	snprintf(out, sizeof(out), "%s", in_folder("stream.dcm"));
	for (size_t k = 0; k < sizeof(changes) / sizeof(changes[0]); k++) {
		unsigned char mark[2] = {0xff, changes[k].marker}, *p;
		struct dicom_file *file = NULL;
		struct err err = {0};

		if (tool(changes[k].tool, changes[k].option, in, out) < 0)
			skip_because("%s is not installed", changes[k].tool);
		FILE *f = fopen(out, "r+");
		size_t n = fread(bytes, 1, sizeof(bytes), f);
		p = memmem(bytes, n, mark, 2);
		assert_non_null(p);
		fseek(f, p - bytes + changes[k].at, SEEK_SET);
		fputc(changes[k].value, f);
		fclose(f);
		file = open_file(out);
		int r = dicom_read_frame(file, 0, values, &err);
		if (r != -changes[k].code || !strstr(err.msg, "cannot be decoded"))
			fail_msg("change %zu: %d (%s)", k, r, err.msg);
	}
}

TESTS_SETUP(folder_make, folder_remove);
