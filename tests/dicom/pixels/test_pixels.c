/* SPDX-License-Identifier: Apache-2.0 */
/* Read frames: every supported encoding, written by tomonode and by other programs. */
#include <sys/resource.h>

#include "dicom/pixels/jpegls.h"
#include "tests/dicom/pixels/pixels_fixture.h"
#include "tests/test.h"

#define JPEGLS "1.2.840.10008.1.2.4.80"

/* Write the sample image as JPEG-LS, with jpegls_encode(). */
static const char *sample_jpegls(void)
{
	struct dicom_file *file = header(N_ROWS, N_COLUMNS, N_FRAMES);
	struct dicom_writer *w = NULL;
	size_t size = jpegls_bound(N_COLUMNS, N_ROWS), n = 0;
	void *code = malloc(size);
	struct err err = {0};
	uint16_t values[N];

	ok(dicom_writer_open(in_folder("jpegls.dcm"), file, &(struct dicom_writer_options){.jpegls = true}, &w, &err), &err);
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

/* Read each number of rows at each place of a frame, and compare them with the whole frame. */
static void check_rows(struct dicom_file *file, long frame, long n_rows, long n_columns, const uint16_t *want)
{
	uint16_t values[N + 1];
	struct err err = {0};

	assert_true(dicom_has_rows(file));
	for (long row = 0; row < n_rows; row++)
		for (long rows = 1; rows <= n_rows - row; rows++) {
			size_t n = (size_t)(rows * n_columns);

			values[n] = 0xabcd;
			ok(dicom_read_rows(file, frame, row, rows, values, &err), &err);
			assert_memory_equal(values, want + row * n_columns, n * sizeof(*values));
			assert_int_equal(values[n], 0xabcd);
		}
	assert_int_equal(dicom_read_rows(file, frame, n_rows, 1, values, &err), -EINVAL);
	assert_int_equal(dicom_read_rows(file, frame, 1, n_rows, values, &err), -EINVAL);
	assert_int_equal(dicom_read_rows(file, frame, -1, 1, values, &err), -EINVAL);
	assert_int_equal(dicom_read_rows(file, -1, 0, 1, values, &err), -EINVAL);
}

/* Read and check all frames of the sample image, in another order than they are stored in. */
static void check_sample(const char *path, const char *syntax)
{
	static const int order[N_FRAMES] = {3, 0, 4, 1, 2};
	struct dicom_file *file = NULL;
	struct dicom_pixel_info info;
	struct err err = {0};
	uint16_t values[N];

	file = open_file(path);
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
		if (dicom_has_rows(file))
			check_rows(file, order[i], N_ROWS, N_COLUMNS, values);
		else
			assert_int_equal(dicom_read_rows(file, order[i], 0, 1, values, &err), -EINVAL);
	}
	assert_int_equal(dicom_read_frame(file, N_FRAMES, values, &err), -EINVAL);
	assert_int_equal(dicom_read_frame(file, -1, values, &err), -EINVAL);
}

TEST(test_round_trip)
{
	check_sample(sample(), EXPLICIT);
	assert_int_equal(access(in_folder("sample.dcm.part"), F_OK), -1);
}

/* Frames from jpegls_encode() are read correctly by this library and by a DCMTK program, which uses another decoder. */
TEST(test_jpegls)
{
	char in[256];
	const char *out = in_folder("decoded.dcm");

	snprintf(in, sizeof(in), "%s", sample_jpegls());
	check_sample(in, JPEGLS);
	if (tool("dcmdjpls", NULL, in, out) < 0)
		skip_because("dcmdjpls is not installed");
	check_sample(out, EXPLICIT);
}

/* Noise over the full range, extreme neighbouring values, one row, one column: decoding gives identical values, and the size is
 * at most jpegls_bound(). */
TEST(test_jpegls_extremes)
{
	static const struct {
		long columns, rows;
		int kind;
	} frames[] = {{301, 203, 0}, {301, 203, 1}, {301, 203, 2}, {1, 203, 0}, {301, 1, 0}, {1, 1, 1}, {16, 16, 3}};
	struct err err = {0};

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
		ok(dicom_writer_open(in_folder("extreme.dcm"), file, &(struct dicom_writer_options){.jpegls = true}, &w, &err),
		   &err);
		ok(dicom_writer_fragment(w, code, used, &err), &err);
		ok(dicom_writer_close(w, &err), &err);
		file = open_file(in_folder("extreme.dcm"));
		ok(dicom_read_frame(file, 0, again, &err), &err);
		assert_memory_equal(values, again, (size_t)n * 2);
		assert_int_equal(jpegls_encode(values, frames[k].columns, frames[k].rows, 16, code, 8, &used, &err), -ENOBUFS);
		free(code);
		free(values);
		free(again);
	}
	assert_int_equal(jpegls_encode(NULL, 0, 5, 16, NULL, 0, NULL, &err), -EINVAL);
}

TEST(test_encodings)
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

	snprintf(in, sizeof(in), "%s", sample());
	for (size_t k = 0; k < sizeof(made) / sizeof(made[0]); k++) {
		const char *out = in_folder("encoded.dcm");

		if (tool(made[k].tool, made[k].option, in, out) < 0)
			skip_because("%s is not installed", made[k].tool);
		check_sample(out, made[k].syntax);
	}
}

/* 8-bit values, with an odd number of bytes in each frame and in total. */
TEST(test_bytes)
{
	struct err err = {0};
	uint16_t values[9];
	struct bytes b;

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
			check_rows(file, f, 3, 3, values);
		}
	}
	add_image(&b, EXPLICIT, 3, 3, 3, 8);
	add_header(&b, PIXELS, "OB", 30);
	b.n += 30;
	struct dicom_file *file = open_bytes(&b);
	struct dicom_pixel_info info;
	assert_error(dicom_pixels_info(file, &info, &err), &err, EBADMSG, "30 bytes");
}

/* More bytes than the frames need are padding (PS3.5 8.1.1 note), as long as they are less than a row and less than a column. */
TEST(test_excess)
{
	static const struct {
		unsigned rows, columns, frames, bits, have;
		bool allowed;
	} data[] = {
		{5, 7, 1, 16, 70, true},   {5, 7, 1, 16, 72, true},   {5, 7, 1, 16, 78, true},	{5, 7, 1, 16, 80, false},
		{7, 5, 1, 16, 78, true},   {7, 5, 1, 16, 80, false},  {5, 7, 3, 16, 218, true}, {5, 7, 3, 16, 220, false},
		{5, 7, 3, 16, 208, false}, {5, 7, 3, 16, 280, false}, {9, 9, 3, 8, 250, true},	{9, 9, 3, 8, 252, false},
		{9, 9, 3, 8, 242, false},
	};
	uint16_t values[81];
	struct bytes b;

	for (size_t k = 0; k < sizeof(data) / sizeof(data[0]); k++) {
		size_t n = data[k].rows * data[k].columns, bytes = data[k].bits / 8;
		struct dicom_pixel_info info;
		struct err err = {0};

		add_image(&b, EXPLICIT, data[k].rows, data[k].columns, data[k].frames, data[k].bits);
		add_header(&b, PIXELS, data[k].bits == 8 ? "OB" : "OW", data[k].have);
		for (unsigned i = 0; i < data[k].have; i++)
			add(&b, &(unsigned char){(unsigned char)(i * 7 + 1)}, 1);
		struct dicom_file *file = open_bytes(&b);
		if (!data[k].allowed) {
			assert_error(dicom_pixels_info(file, &info, &err), &err, EBADMSG,
				     data[k].have < n * data[k].frames * bytes ? "need" : "may not be padding");
		} else {
			for (size_t f = 0; f < data[k].frames; f++) {
				ok(dicom_read_frame(file, (long)f, values, &err), &err);
				for (size_t i = 0; i < n; i++) {
					size_t at = (f * n + i) * bytes;
					unsigned low = (at * 7 + 1) & 255, high = bytes == 2 ? ((at + 1) * 7 + 1) & 255 : 0;

					assert_int_equal(values[i], high << 8 | low);
				}
			}
		}
	}
}

/* An unsigned value that needs more than BitsStored is refused, not cut; signed ones: test_pixels_refused.c. */
TEST(test_unused_bits)
{
	static const uint16_t stored[] = {0xf123, 0x0fff, 0x8000, 0x1234};
	struct err err = {0};
	uint16_t values[4];
	struct bytes b;

	for (unsigned bits = 9; bits <= 16; bits++) {
		add_meta(&b, EXPLICIT);
		add_description(&b, 2, 2, 1, 16, bits, bits - 1);
		add_header(&b, PIXELS, "OW", 8);
		for (int k = 0; k < 4; k++)
			add16(&b, stored[k]);
		struct dicom_file *file = open_bytes(&b);
		assert_int_equal(dicom_read_frame(file, 0, values, &err), bits < 16 ? -EBADMSG : 0);
		if (bits == 15) {
			assert_error(dicom_read_rows(file, 0, 1, 1, values, &err), &err, EBADMSG, "row 2, column 1");
		}
		for (int k = 0; bits == 16 && k < 4; k++)
			assert_int_equal(values[k], stored[k]);
	}
}

/* 8-bit frames, whose codecs return bytes. */
TEST(test_encoded_bytes)
{
	static const char *const made[][2] = {{"dcmcjpls", "+el"}, {"dcmcjpeg", "+e1"}, {"dcmcrle", NULL}};
	char in[256], out[256];
	struct err err = {0};
	uint16_t values[9];
	struct bytes b;

	add_meta(&b, EXPLICIT);
	add_text(&b, 0x00080016, "UI", "1.2.840.10008.5.1.4.1.1.77.1.4"); /* VL Photographic Image: a length that is even */
	add_text(&b, 0x00080018, "UI", "1.2.3.45");
	add_description(&b, 3, 3, 3, 8, 8, 7);
	add_header(&b, PIXELS, "OB", 28);
	for (int k = 0; k < 28; k++)
		add(&b, &(unsigned char){(unsigned char)(k * 9 + 1)}, 1);
	snprintf(in, sizeof(in), "%s", save(&b, b.n));
	snprintf(out, sizeof(out), "%s", in_folder("encoded.dcm"));
	for (size_t m = 0; m < sizeof(made) / sizeof(made[0]); m++) {
		struct dicom_file *file = NULL;

		if (tool(made[m][0], made[m][1], in, out) < 0)
			skip_because("%s is not installed", made[m][0]);
		file = open_file(out);
		for (long f = 0; f < 3; f++) {
			ok(dicom_read_frame(file, f, values, &err), &err);
			for (int k = 0; k < 9; k++)
				assert_int_equal(values[k], (f * 9 + k) * 9 + 1);
		}
	}
}

/* Big endian: the bytes of each word are swapped, also if a word contains two 8-bit values. */
TEST(test_big_endian_bytes)
{
	struct err err = {0};
	uint16_t values[9];
	struct bytes b;

	/* OB is not swapped, OW is; values of 16 bits (the last two) must be OW */
	for (int form = 0; form < 4; form++) {
		unsigned words = form & 1, bits = form < 2 ? 8 : 16;
		const uint32_t us[][2] = {{0x00280002, 1},    {0x00280010, 3},	      {0x00280011, 3}, {0x00280100, bits},
					  {0x00280101, bits}, {0x00280102, bits - 1}, {0x00280103, 0}};
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
		add(&b, words ? "\x7f\xe0\0\x10OW\0\0\0\0\0" : "\x7f\xe0\0\x10OB\0\0\0\0\0", 11);
		add(&b, bits == 8 ? "\x1c" : "\x36", 1);
		for (unsigned k = 0; k < (bits == 8 ? 28 : 54); k++)
			add(&b, &(unsigned char){(unsigned char)((words ? k ^ 1 : k) * 9 + 1)}, 1);
		struct dicom_file *file = open_bytes(&b);
		if (bits == 16 && !words)
			assert_error(dicom_read_frame(file, 0, values, &err), &err, EBADMSG,
				     "PixelData of 16 bits has VR OB in a big endian file");
		for (long f = 0; f < (bits == 8 || words ? 3 : 0); f++) {
			ok(dicom_read_frame(file, f, values, &err), &err);
			for (unsigned k = 0, at = (unsigned)f * 9; k < 9; k++, at++) {
				unsigned low = (2 * at * 9 + 1) & 255, high = ((2 * at + 1) * 9 + 1) & 255;

				assert_int_equal(values[k], bits == 8 ? at * 9 + 1 : high << 8 | low);
			}
			check_rows(file, f, 3, 3, values);
		}
	}
}

/* pydicom reads the same values from an object. */
TEST(test_pydicom_agrees)
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

	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0)
		skip_because("%s is not installed", argv[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip_because("pydicom or numpy is not installed");
	assert_int_equal(status, 0);
}

/* Frames of several fragments, which are assigned by the offset table or, if it is empty, by the ends of the code streams. */
TEST(test_split_fragments)
{
	static const struct {
		const char *tool, *coding, *table, *syntax;
	} made[] = {
		{"dcmcjpls", "+el", "+ot", JPEGLS},
		{"dcmcjpls", "+el", "-ot", JPEGLS},
		{"dcmcjpeg", "+e1", "-ot", "1.2.840.10008.1.2.4.70"},
		{"dcmcjpeg", "+el", "-ot", "1.2.840.10008.1.2.4.57"},
	};
	const char *in = sample(), *out = in_folder("split.dcm");

	for (size_t k = 0; k < sizeof(made) / sizeof(made[0]); k++) {
		char *argv[] = {(char *)made[k].tool,
				(char *)made[k].coding,
				"+fs",
				"1",
				(char *)made[k].table,
				(char *)in,
				(char *)out,
				NULL};
		int status;
		pid_t pid;

		if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0)
			skip_because("%s is not installed", argv[0]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		check_sample(out, made[k].syntax);
	}
}

/* Fragments of any size without an offset table: of 2 bytes, so that the end of a code stream is divided between two of them. */
TEST(test_fragments_by_ends)
{
	enum { N_CODES = 4 };
	static const struct {
		size_t piece;
		int left_out;	  /* frame that lacks its end; N_CODES: none */
		const char *says; /* NULL: it is read */
	} cases[] = {
		{2, N_CODES, NULL},
		{10, N_CODES, NULL},
		{65534, N_CODES, NULL},
		{10, 1, "3 of them end a code stream (FFD9); 4 frames need as many ends"},
		{10, 3, "3 of them end a code stream (FFD9), but not the last one; 4 frames need as many ends"},
	};
	static struct bytes b;
	uint16_t values[15], found[15];
	struct err err = {0};
	bool odd = false;

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct dicom_pixel_info info;
		struct dicom_file *file;

		add_image(&b, JPEGLS, 3, 5, N_CODES, 16);
		add_header(&b, PIXELS, "OB", 0xffffffff);
		add_item(&b, 0xfffee000, 0);
		for (int f = 0; f < N_CODES; f++) {
			unsigned char code[8192];
			size_t n = 0;

			for (int k = 0; k < 15; k++)
				values[k] = (uint16_t)((k + f) * (f == 2 ? 40503u : 4051u));
			ok(jpegls_encode(values, 5, 3, 16, code, sizeof(code), &n, &err), &err);
			odd |= n & 1;
			add_fragments(&b, code, f == cases[c].left_out ? n - 2 : n, cases[c].piece);
		}
		add_item(&b, 0xfffee0dd, 0);
		file = open_bytes(&b);
		if (cases[c].says) {
			assert_error(dicom_pixels_info(file, &info, &err), &err, EBADMSG, cases[c].says);
		} else {
			ok(dicom_pixels_info(file, &info, &err), &err);
			for (int f = N_CODES - 1; f >= 0; f--) {
				ok(dicom_read_frame(file, f, found, &err), &err);
				for (int k = 0; k < 15; k++)
					assert_int_equal(found[k], (uint16_t)((k + f) * (f == 2 ? 40503u : 4051u)));
			}
		}
	}
	assert_true(odd); /* FF and D9 were in two fragments */
}

/* Reading one frame of a large object needs memory for one frame only. */
TEST(test_memory)
{
	enum { SIDE = 1024, MANY = 128 }; /* 2 MiB per frame, 256 MiB in total */
	struct dicom_file *file = header(SIDE, SIDE, MANY);
	uint16_t *values = calloc(SIDE * SIDE, 2);
	struct dicom_writer *w = NULL;
	struct rusage before, after;
	struct err err = {0};

	getrusage(RUSAGE_SELF, &before);
	ok(dicom_writer_open(in_folder("many.dcm"), file, NULL, &w, &err), &err);
	for (int f = 0; f < MANY; f++) {
		values[0] = (uint16_t)f;
		ok(dicom_writer_frame(w, values, &err), &err);
	}
	ok(dicom_writer_close(w, &err), &err);
	file = open_file(in_folder("many.dcm"));
	for (int f = 0; f < MANY; f++) {
		ok(dicom_read_frame(file, f, values, &err), &err);
		assert_int_equal(values[0], f);
	}
	getrusage(RUSAGE_SELF, &after);
	assert_true(after.ru_maxrss - before.ru_maxrss < 16 * 1024); /* KiB */
	free(values);
	unlink(in_folder("many.dcm"));
}

TESTS_SETUP(folder_make, folder_remove);
