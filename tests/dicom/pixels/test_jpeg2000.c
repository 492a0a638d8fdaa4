/* SPDX-License-Identifier: Apache-2.0 */
/* Lossless JPEG 2000: frames of every kind come back identical, from OpenJPEG's encoder and from GDCM's objects; a code stream
 * that is lossy, cut off, or not as the object describes it is refused. */
#include <openjpeg.h>
#include <pthread.h>

#include "tests/dicom/pixels/pixels_fixture.h"
#include "tests/test.h"

#define JPEG_2000 "1.2.840.10008.1.2.4.90"
#define JPEG_2000_ANY "1.2.840.10008.1.2.4.91" /* read only if it is proved to be lossless */
#define CODE_MAX 60000

struct kind {
	int columns, rows, bits;
	bool is_signed, noise, lossy;
	int tile;   /* 0: one */
	float rate; /* compression that is kept, by leaving out bit planes; 0: all are there */
	int layers, order, precinct, block;
	int style, coding; /* SOP and EPH; of code-blocks */
};

struct memory {
	unsigned char bytes[CODE_MAX];
	size_t at, end;
};

static OPJ_SIZE_T put(void *from, OPJ_SIZE_T n, void *data)
{
	struct memory *m = data;

	assert_true(m->at + n <= sizeof(m->bytes));
	memcpy(m->bytes + m->at, from, n);
	m->at += n;
	m->end = m->at > m->end ? m->at : m->end;
	return n;
}

static OPJ_OFF_T pass(OPJ_OFF_T n, void *data)
{
	struct memory *m = data;

	m->at += (size_t)n;
	return n;
}

static OPJ_BOOL go_to(OPJ_OFF_T at, void *data)
{
	((struct memory *)data)->at = (size_t)at;
	return OPJ_TRUE;
}

static int32_t sample_of(const struct kind *k, int i)
{
	int32_t x = k->noise ? (int32_t)((uint32_t)i * 2654435761u >> 3 & 0xffff) : i % k->columns * 40 + i / k->columns * 25;

	x &= (1 << k->bits) - 1;
	return k->is_signed ? x - (1 << (k->bits - 1)) : x;
}

static void encode(const struct kind *k, struct memory *to)
{
	opj_image_cmptparm_t part = {.dx = 1,
				     .dy = 1,
				     .w = (OPJ_UINT32)k->columns,
				     .h = (OPJ_UINT32)k->rows,
				     .prec = (OPJ_UINT32)k->bits,
				     .sgnd = k->is_signed};
	opj_image_t *image = opj_image_create(1, &part, OPJ_CLRSPC_GRAY);
	opj_codec_t *codec = opj_create_compress(OPJ_CODEC_J2K);
	opj_stream_t *stream = opj_stream_default_create(OPJ_FALSE);
	int shortest = k->columns < k->rows ? k->columns : k->rows;
	opj_cparameters_t p;

	assert_true(image && codec && stream);
	to->at = to->end = 0;
	image->x1 = (OPJ_UINT32)k->columns;
	image->y1 = (OPJ_UINT32)k->rows;
	for (int i = 0; i < k->columns * k->rows; i++)
		image->comps[0].data[i] = sample_of(k, i);
	opj_set_default_encoder_parameters(&p);
	p.irreversible = k->lossy;
	p.tcp_numlayers = k->layers ? k->layers : 1;
	for (int l = 0; l < p.tcp_numlayers; l++)
		p.tcp_rates[l] = l == p.tcp_numlayers - 1 ? k->rate : 40.0f / (float)(1 << l);
	p.cp_disto_alloc = 1;
	p.prog_order = (OPJ_PROG_ORDER)k->order;
	p.mode = k->coding;
	p.csty = k->style | (k->precinct ? 1 : 0);
	p.res_spec = k->precinct ? 2 : 0;
	p.prcw_init[0] = p.prch_init[0] = 2 * k->precinct;
	p.prcw_init[1] = p.prch_init[1] = k->precinct;
	if (k->block)
		p.cblockw_init = p.cblockh_init = k->block;
	shortest = k->tile ? k->tile : shortest;
	p.tile_size_on = k->tile > 0;
	p.cp_tdx = p.cp_tdy = k->tile;
	for (p.numresolution = 1; p.numresolution < 6 && shortest >> p.numresolution;)
		p.numresolution++;
	opj_stream_set_user_data(stream, to, NULL);
	opj_stream_set_write_function(stream, put);
	opj_stream_set_skip_function(stream, pass);
	opj_stream_set_seek_function(stream, go_to);
	assert_true(opj_setup_encoder(codec, &p, image) && opj_start_compress(codec, image, stream) &&
		    opj_encode(codec, stream) && opj_end_compress(codec, stream));
	opj_stream_destroy(stream);
	opj_destroy_codec(codec);
	opj_image_destroy(image);
}

static const char *syntax = JPEG_2000;

/* An object of one frame that `k` describes, with n bytes of the code stream. */
static struct dicom_file *open_object(const struct kind *k, const struct memory *m, size_t n)
{
	static struct bytes b;

	add_meta(&b, syntax);
	add_us(&b, 0x00280002, 1);
	add_text(&b, 0x00280004, "CS", "MONOCHROME2 ");
	add_us(&b, 0x00280010, (unsigned)k->rows);
	add_us(&b, 0x00280011, (unsigned)k->columns);
	add_us(&b, 0x00280100, k->bits > 8 ? 16 : 8);
	add_us(&b, 0x00280101, (unsigned)k->bits);
	add_us(&b, 0x00280102, (unsigned)k->bits - 1);
	add_us(&b, 0x00280103, k->is_signed);
	add_header(&b, PIXELS, "OB", 0xffffffff);
	add_item(&b, 0xfffee000, 0);
	add_item(&b, 0xfffee000, (uint32_t)(n + (n & 1)));
	add(&b, m->bytes, n);
	if (n & 1)
		add(&b, "", 1);
	add_item(&b, 0xfffee0dd, 0);
	return open_bytes(&b);
}

static const struct kind kinds[] = {
	{53, 37, 12, false, false, false, 0},
	{53, 37, 12, false, true, false, 16},
	{131, 90, 16, false, true, false, 0},
	{131, 90, 16, true, true, false, 0},
	{131, 90, 14, true, false, false, 64},
	{7, 201, 8, false, true, false, 0},
	{1, 203, 16, false, true, false, 0},
	{301, 1, 10, true, true, false, 0},
	{1, 1, 16, false, true, false, 0},
	{131, 90, 12, false, true, false, 0, .layers = 3},
	{131, 90, 12, false, false, false, .tile = 40, .layers = 2, .order = 1, .precinct = 32, .block = 16, .style = 6},
	{131, 90, 14, true, false, false, 0, .order = 2, .precinct = 64, .block = 32, .style = 2},
	{131, 90, 14, false, false, false, .tile = 50, .order = 3, .precinct = 16, .block = 8, .style = 4, .coding = 0x3f},
	{131, 90, 12, false, false, false, 0, .layers = 2, .order = 4, .precinct = 32, .block = 64, .coding = 1},
};

/* Each of them is proved to be lossless, which the second transfer syntax requires. */
TEST(test_every_kind)
{
	static struct memory code;
	static uint16_t values[131 * 90];

	for (size_t c = 0; c < 2 * sizeof(kinds) / sizeof(kinds[0]); c++) {
		const struct kind *k = &kinds[c / 2];
		struct dicom_file *file;
		struct err err = {0};

		syntax = c % 2 ? JPEG_2000_ANY : JPEG_2000;
		encode(k, &code);
		file = open_object(k, &code, code.end);
		ok(dicom_read_frame(file, 0, values, &err), &err);
		for (int i = 0; i < k->columns * k->rows; i++)
			if (values[i] != (sample_of(k, i) & ((1 << k->bits) - 1)))
				fail_msg("%d x %d, %d bits: value %d is %u instead of %d", k->columns, k->rows, k->bits, i,
					 values[i], sample_of(k, i));
	}
	syntax = JPEG_2000;
}

static void refused_frame(const struct kind *described, const struct memory *code, size_t n, int error, const char *words)
{
	struct dicom_file *file = open_object(described, code, n);
	static uint16_t values[131 * 90];
	struct err err = {0};
	int r = dicom_read_frame(file, 0, values, &err);

	if (r != -error || !strstr(err.msg, words))
		fail_msg("%zu of %zu bytes: %d (%s) instead of %d with \"%s\"", n, code->end, r, err.msg, -error, words);
}

TEST(test_what_the_object_does_not_describe)
{
	static const struct kind truth = {53, 37, 12, true, false, false, 0};
	static struct memory code;
	struct kind k = truth;

	encode(&truth, &code);
	k.columns = 54;
	refused_frame(&k, &code, code.end, EBADMSG, "(53 - 0) x (37 - 0) with 1 components in an image of 54 x 37");
	k = truth;
	k.is_signed = false;
	refused_frame(&k, &code, code.end, EBADMSG, "12 bits, signed, in an image of 16 bits, unsigned (0028,0103)");
	k = truth;
	k.bits = 8;
	refused_frame(&k, &code, code.end, EBADMSG, "12 bits, signed, in an image of 8 bits");
	k = truth;
	k.lossy = true;
	encode(&k, &code);
	refused_frame(&truth, &code, code.end, ENOTSUP, "irreversible wavelet");
	memcpy(code.bytes, "\0\0\0\x0cjP  ", 8); /* a JP2 file */
	refused_frame(&truth, &code, code.end, EBADMSG, "not a JPEG 2000 code stream");
}

/* The reversible wavelet, but not all bit planes, under each name; and not all packets of them. */
TEST(test_what_was_left_out)
{
	static const struct kind lossy[] = {
		{131, 90, 12, false, true, false, 0, .rate = 3},
		{131, 90, 16, true, true, false, .tile = 50, .rate = 2, .layers = 3, .order = 3, .precinct = 32},
		{131, 90, 14, false, true, false, 0, .rate = 4, .order = 2, .coding = 5},
	};
	static const struct kind whole = {53, 37, 12, false, true, false, 0};
	static struct memory code;

	for (size_t k = 0; k < 2 * sizeof(lossy) / sizeof(lossy[0]); k++) {
		syntax = k % 2 ? JPEG_2000_ANY : JPEG_2000;
		encode(&lossy[k / 2], &code);
		refused_frame(&lossy[k / 2], &code, code.end, ENOTSUP, "coding passes of a code-block, which is lossy");
	}
	syntax = JPEG_2000;
	/* the tile without its last packet, the finest details: found by the size of the tile with one resolution less */
	encode(&whole, &code);
	unsigned char *start = memmem(code.bytes, code.end, "\xff\x90", 2);
	size_t found = 0;

	assert_non_null(start);
	for (size_t n = code.end - 3; n > (size_t)(start - code.bytes) + 14 && !found; n--) {
		struct memory cut = code;
		size_t tile = n - (size_t)(start - code.bytes);
		struct dicom_file *file;
		static uint16_t values[53 * 37];
		struct err err = {0};

		for (int b = 0; b < 4; b++)
			cut.bytes[start - code.bytes + 6 + b] = (unsigned char)(tile >> 8 * (3 - b));
		memcpy(cut.bytes + n, "\xff\xd9", 2);
		file = open_object(&whole, &cut, n + 2);
		if (dicom_read_frame(file, 0, values, &err) == -ENOTSUP)
			found = strstr(err.msg, "packets, which is lossy") ? n : 0;
	}
	assert_true(found > 0);
}

/* OpenJPEG 2.0 leaves out planes that change nothing in a few code-blocks: then the transfer syntax decides. */
TEST(test_planes_of_a_few_blocks)
{
	struct kind k = {131, 90, 12, false, true, false, 0, .block = 8};
	static uint16_t values[131 * 90];
	static struct memory code;
	struct err err = {0};
	size_t whole;

	encode(&k, &code);
	whole = code.end;
	k.rate = 131 * 90 * 12 / 8 * 1.002f / (float)whole;
	encode(&k, &code);
	assert_in_range(code.end, whole * 98 / 100, whole - 1);
	struct dicom_file *file = open_object(&k, &code, code.end);

	ok(dicom_read_frame(file, 0, values, &err), &err);
	syntax = JPEG_2000_ANY;
	refused_frame(&k, &code, code.end, ENOTSUP, "of which it cannot be told whether it is lossy");
	syntax = JPEG_2000;
	k.rate *= 1.05f; /* of more blocks: a loss */
	encode(&k, &code);
	refused_frame(&k, &code, code.end, ENOTSUP, "coding passes of a code-block, which is lossy");
}

/* The header of a tile may have another wavelet than that of the code stream. */
TEST(test_wavelet_of_a_tile)
{
	static const struct kind k = {53, 37, 12, false, true, false, 0};
	static struct memory code, changed;
	static uint16_t values[53 * 37];

	encode(&k, &code);
	const unsigned char *coding = memmem(code.bytes, code.end, "\xff\x52", 2),
			    *start = memmem(code.bytes, code.end, "\xff\x90", 2);

	assert_true(coding && start);
	for (int reversible = 0; reversible < 2; reversible++) {
		size_t at = (size_t)(start - code.bytes) + 12, n = 2 + (size_t)coding[3];
		uint32_t tile = ((uint32_t)start[8] << 8 | start[9]) + (uint32_t)n;
		struct err err = {0};

		changed = code;
		memcpy(changed.bytes + at, coding, n);
		changed.bytes[at + 13] = (unsigned char)reversible;
		memcpy(changed.bytes + at + n, code.bytes + at, code.end - at);
		changed.bytes[at - 4] = (unsigned char)(tile >> 8);
		changed.bytes[at - 3] = (unsigned char)tile;
		if (!reversible) {
			refused_frame(&k, &changed, code.end + n, ENOTSUP, "irreversible wavelet");
			continue;
		}
		struct dicom_file *file = open_object(&k, &changed, code.end + n);
		ok(dicom_read_frame(file, 0, values, &err), &err);
		for (int i = 0; i < k.columns * k.rows; i++)
			assert_int_equal(values[i], sample_of(&k, i));
	}
}

static void insert(struct memory *m, size_t at, const void *bytes, size_t n)
{
	memmove(m->bytes + at + n, m->bytes + at, m->end - at);
	memcpy(m->bytes + at, bytes, n);
	m->end += n;
}

/* Segments of the one component (COC, QCC) count more than those of the image (COD, QCD); before them they must agree, as OpenJPEG
 * uses the last one. What changes the order or the place of packets (RGN, POC, PPM, PPT) is not followed: nothing is proved. */
TEST(test_segments_of_the_header)
{
	static const struct kind k = {53, 37, 12, false, true, false, 0};
	static const struct {
		int marker, length; /* its last byte; length of the segment, 0: that of COC or QCC */
		bool image, own;    /* the segment of the image is of a loss, that of the component is */
		bool before;	    /* the segment of the component is before that of the image */
		int code;
		const char *says;
	} rows[] = {
		{0x53, 0, true, false, false, 0, ""},
		{0x53, 0, false, true, false, ENOTSUP, "irreversible wavelet"},
		{0x53, 0, false, true, true, ENOTSUP, "COC or QCC before a COD or QCD"},
		{0x53, 0, true, false, true, ENOTSUP, "a segment COC or QCC before a COD or QCD that differs"},
		{0x53, 0, false, false, true, 0, ""},
		{0x53, 8, false, false, false, EBADMSG, "segment FF53 at byte"},
		{0x53, 2, false, false, false, EBADMSG, "segment FF53 at byte"},
		{0x5d, 0, true, false, false, 0, ""},
		{0x5d, 0, false, true, false, ENOTSUP, "coding passes of a code-block, which is lossy"},
		{0x5d, 0, false, true, true, ENOTSUP, "COC or QCC before a COD or QCD"},
		{0x5d, 0, true, false, true, ENOTSUP, "a segment COC or QCC before a COD or QCD that differs"},
		{0x5d, 0, false, false, true, 0, ""},
		{0x5d, 4, false, false, false, EBADMSG, "segment FF5D at byte"},
		{0x5d, 2, false, false, false, EBADMSG, "segment FF5D at byte"},
		{0x5e, 5, false, false, false, ENOTSUP, "it cannot be told whether it is lossy"},
		{0x5f, 9, false, false, false, ENOTSUP, "it cannot be told whether it is lossy"},
		{0x60, 3, false, false, false, ENOTSUP, "it cannot be told whether it is lossy"},
		{0x61, 3, false, false, false, ENOTSUP, "it cannot be told whether it is lossy"},
		{0x64, 5, false, false, false, 0, ""}, /* a comment */
	};
	static struct memory code;
	static uint16_t values[53 * 37];

	syntax = JPEG_2000_ANY;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool coding = rows[i].marker == 0x53;
		unsigned char own[100] = {0xff, (unsigned char)rows[i].marker, 0, 9};

		encode(&k, &code);
		unsigned char *image = memmem(code.bytes, code.end, coding ? "\xff\x52" : "\xff\x5c", 2);
		assert_non_null(image);
		size_t at = (size_t)(image - code.bytes), behind = at + 2 + image[3];

		if (coding)
			memcpy(own + 6, image + 9, 5);
		else if (rows[i].marker == 0x5d)
			memcpy(own + 5, image + 4, own[3] = image[3] + 1);
		if (rows[i].own)
			own[coding ? 10 : 5] ^= coding ? 1 : 0x20; /* wavelet; guard bits */
		if (rows[i].image)
			image[coding ? 13 : 4] ^= coding ? 1 : 0x20;
		own[3] = rows[i].length ? (unsigned char)rows[i].length : own[3];
		insert(&code, rows[i].before ? at : behind, own, 2 + (size_t)own[3]);
		if (rows[i].code) {
			refused_frame(&k, &code, code.end, rows[i].code, rows[i].says);
			continue;
		}
		struct dicom_file *file = open_object(&k, &code, code.end);
		struct err err = {0};
		ok(dicom_read_frame(file, 0, values, &err), &err);
		for (int v = 0; v < k.columns * k.rows; v++)
			assert_int_equal(values[v], sample_of(&k, v));
	}
	syntax = JPEG_2000;
}

/* A code stream has 65535 tiles at most. */
TEST(test_most_tiles)
{
	static const char *const says[] = {"tile 1 is not in the code stream", "a JPEG 2000 frame of 256 x 256 tiles"};
	static struct memory code;

	encode(&(struct kind){1, 1, 12, false, true, false, 0}, &code);
	for (int i = 0; i < 2; i++) { /* of one value */
		struct kind k = {257 - i, 255 + i, 12, false, true, false, 0};

		code.bytes[10] = 1;
		code.bytes[11] = (unsigned char)k.columns;
		code.bytes[14] = (unsigned char)(k.rows >> 8);
		code.bytes[15] = (unsigned char)k.rows;
		refused_frame(&k, &code, code.end, EBADMSG, says[i]);
	}
}

/* Code-blocks of HTJ2K, which this transfer syntax does not allow: their passes are not counted. */
TEST(test_high_throughput)
{
	static const struct kind k = {53, 37, 12, false, true, false, 0};
	static struct memory code;
	unsigned char *coding;

	encode(&k, &code);
	coding = memmem(code.bytes, code.end, "\xff\x52", 2);
	assert_non_null(coding);
	coding[12] |= 0x40;
	refused_frame(&k, &code, code.end, ENOTSUP, "code-blocks of HTJ2K");
}

/* Whatever is missing at the end: no picture without its fine details. */
TEST(test_cut_off)
{
	static const struct kind k = {53, 37, 12, false, true, false, 0};
	static struct memory code;

	encode(&k, &code);
	for (size_t n = 2; n < code.end - 2; n += 1 + n / 16) /* the last two are the end marker */
		refused_frame(&k, &code, n, EBADMSG, "cannot be decoded");
	refused_frame(&k, &code, code.end - 3, EBADMSG, "cannot be decoded");
}

/* A wrong byte in the head or in a packet gives an error or a picture, and no fault. */
TEST(test_damaged)
{
	static const struct kind k = {53, 37, 12, false, true, false, 16};
	static struct memory code, wrong;
	static uint16_t values[53 * 37];
	int failed = 0;

	encode(&k, &code);
	for (size_t at = 0; at < code.end; at += at < 200 ? 1 : 37) {
		struct dicom_file *file;
		struct err err = {0};

		wrong = code;
		wrong.bytes[at] ^= (unsigned char)(1u << at % 8);
		file = open_object(&k, &wrong, wrong.end);
		failed += dicom_read_frame(file, 0, values, &err) < 0;
	}
	assert_true(failed > 40);
}

struct reader {
	struct dicom_file *file;
	int r;
	bool same;
};

static void *read_many(void *data)
{
	struct reader *reader = data;
	uint16_t values[N];
	struct err err = {0};

	reader->same = true;
	for (int i = 0; i < 40; i++) {
		int f = i % N_FRAMES;

		reader->r = dicom_read_frame(reader->file, f, values, &err);
		for (int k = 0; k < N; k++)
			reader->same &= values[k] == value_at(f, k);
	}
	return NULL;
}

/* An object of several frames by another program, read by several threads at once. */
TEST(test_gdcm)
{
	const char *out = in_folder("gdcm.dcm");
	struct reader reader[4];
	struct dicom_pixel_info info;
	struct dicom_file *file = NULL;
	struct err err = {0};
	pthread_t thread[4];

	if (tool("gdcmconv", "--j2k", sample(), out) < 0)
		skip_because("gdcmconv is not installed");
	file = open_file(out);
	assert_string_equal(dicom_transfer_syntax(file), JPEG_2000);
	ok(dicom_pixels_info(file, &info, &err), &err);
	assert_int_equal(info.frames, N_FRAMES);
	for (int t = 0; t < 4; t++) {
		reader[t] = (struct reader){.file = file};
		assert_int_equal(pthread_create(&thread[t], NULL, read_many, &reader[t]), 0);
	}
	for (int t = 0; t < 4; t++) {
		pthread_join(thread[t], NULL);
		assert_int_equal(reader[t].r, 0);
		assert_true(reader[t].same);
	}
}

TESTS_SETUP(folder_make, folder_remove);
