/* SPDX-License-Identifier: Apache-2.0 */
/* Malicious and damaged files: opening returns an error that names the cause. Unusual but valid files are read. */
#include <zlib.h>

#include "tests/dicom/core/fixture.h"
#include "tests/test.h"

#define SHARED 0x52009229u
#define SID 0x00181110u
#define PIXELS 0x7fe00010u
#define ITEM 0xfffee000u
#define ITEM_END 0xfffee00du
#define SEQUENCE_END 0xfffee0ddu

static void add_image(struct bytes *b, unsigned rows, unsigned columns)
{
	add_us(b, 0x00280002, 1);
	add_text(b, 0x00280004, "CS", "MONOCHROME2 ");
	add_us(b, 0x00280010, rows);
	add_us(b, 0x00280011, columns);
	add_us(b, 0x00280100, 16);
	add_us(b, 0x00280101, 12);
	add_us(b, 0x00280102, 11);
	add_us(b, 0x00280103, 0);
}

/* Build a valid file with nested sequences, defined and undefined lengths, and pixel data. */
static void add_sample(struct bytes *b)
{
	add_meta(b, EXPLICIT);
	add_text(b, 0x00080016, "UI", "1.2.840.10008.5.1.4.1.1.1.2.1\0");
	add_text(b, SID, "DS", "655.50");
	add_header(b, 0x00189506, "SQ", 0xffffffff);
	add_item(b, ITEM, 0xffffffff);
	add_header(b, 0x00189507, "SQ", 8 + 14);
	add_item(b, ITEM, 14);
	add_text(b, 0x00181110, "DS", "7.2500");
	add_item(b, ITEM_END, 0);
	add_item(b, SEQUENCE_END, 0);
	add_image(b, 4, 4);
	add_header(b, PIXELS, "OW", 32);
	for (unsigned k = 0; k < 16; k++)
		add16(b, k * 100);
}

TEST(test_sample_is_read)
{
	struct dicom_pixel_info info;
	struct err err = {0};
	struct bytes b;
	double d;

	add_sample(&b);
	struct dicom_file *file = open_bytes(&b);
	struct dicom_item *item = dicom_item_at(dicom_root(file), 0x00189506, 0);
	assert_int_equal(dicom_get_double(dicom_item_at(item, 0x00189507, 0), 0x00181110, 0, &d, &err), 1);
	assert_true(d == 7.25);
	ok(dicom_pixels_info(file, &info, &err), &err);
	assert_true(dicom_has(dicom_root(file), PIXELS));
}

/* The file truncated at every byte: it is refused if an element is incomplete, and never read beyond its end. */
TEST(test_truncation)
{
	size_t accepted = 0;
	struct bytes b;

	add_sample(&b);
	for (size_t n = 0; n < b.n; n++) {
		struct dicom_file *file = NULL;
		struct err err = {0};
		int r = dicom_open(save(&b, n), &file, &err);

		if (r == 0) {
			/* truncated between two elements: a valid, shorter data set without pixel data */
			struct dicom_pixel_info info;

			assert_int_equal(dicom_pixels_info(file, &info, &err), -EBADMSG);
			accepted++;
		} else {
			assert_int_equal(r, -EBADMSG);
			assert_true(strlen(err.msg) > 10);
		}
		dicom_close(file);
	}
	assert_int_equal(accepted, 11); /* one for the end of each root element except the last */
	/* the message has the tag, the declared length and the number of bytes that remain */
	b.n -= 5;
	refused(&b, EBADMSG, "(7FE0,0010) PixelData");
	refused(&b, EBADMSG, "declares 32 bytes, but only 27 remain");
}

TEST(test_other_files)
{
	struct dicom_file *file = NULL;
	struct err err = {0};
	struct bytes b;

	assert_int_equal(dicom_open(in_folder("none.dcm"), &file, &err), -ENOENT);
	assert_error(dicom_open(folder, &file, &err), &err, EBADMSG, "folder");
	assert_int_equal(dicom_open("/dev/zero", &file, &err), -EBADMSG);
	assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
	assert_int_equal(dicom_open(in_folder("fifo"), &file, &err),
			 -EBADMSG); /* refused without waiting for a writer of the FIFO */
	unlink(in_folder("fifo"));
	b.n = 0;
	refused(&b, EBADMSG, "empty");
	add(&b, "P5 1 1 255 x", 12);
	refused(&b, EBADMSG, "not a DICOM file");
	memset(b.p, 'x', 4096);
	b.n = 4096;
	refused(&b, EBADMSG, "\"DICM\"");
	add_meta(&b, EXPLICIT);
	refused(&b, EBADMSG, "no data set");
	add_meta(&b, "1.2.840.113619.5.2"); /* GE's private implicit big endian */
	add_text(&b, SID, "DS", "1 ");
	refused(&b, ENOTSUP, "1.2.840.113619.5.2");
	add_meta(&b, EXPLICIT);
	b.p[132 + 2] = 0x12; /* (0002,0012) in place of the transfer syntax */
	add_text(&b, SID, "DS", "1 ");
	refused(&b, EBADMSG, "TransferSyntaxUID");
}

TEST(test_meta_length)
{
	static const uint32_t declared[] = {28, 1028, 2028, 20, 1};
	struct bytes b;

	for (size_t k = 0; k < sizeof(declared) / sizeof(declared[0]); k++) {
		b.n = 0;
		memset(b.p, 0, 128);
		b.n = 128;
		add(&b, "DICM", 4);
		add_header(&b, 0x00020000, "UL", 4);
		add32(&b, declared[k]);
		add_text(&b, 0x00020010, "UI", "1.2.840.10008.1.2.1 ");
		add_text(&b, SID, "DS", "1 ");
		if (k == 0)
			open_bytes(&b);
		else
			refused(&b, EBADMSG, "(0002,0000)");
	}
}

struct element {
	uint32_t tag;
	const char *vr; /* NULL: an item or an element of implicit VR */
	uint32_t length;
	const char *value; /* NULL: none */
};

static const struct {
	const char *syntax, *names;
	struct element elements[3]; /* behind the meta header; tag 0: no more */
} damaged[] = {
	{EXPLICIT, "declares 4294967294 bytes, but only 4 remain", {{0x00420011, "OB", 0xfffffffe, "xxxx"}}},
	{EXPLICIT, "declares 4294967294 bytes, but only 4 remain", {{0x00420011, "OW", 0xfffffffe, "xxxx"}}},
	{EXPLICIT, "declares 4294967294 bytes, but only 4 remain", {{0x00420011, "UN", 0xfffffffe, "xxxx"}}},
	{EXPLICIT, "declares 4294967294 bytes, but only 4 remain", {{0x00420011, "UT", 0xfffffffe, "xxxx"}}},
	{EXPLICIT, "declares 4294967294 bytes, but only 4 remain", {{0x00420011, "SQ", 0xfffffffe, "xxxx"}}},
	{EXPLICIT,
	 "(0018,1110) DistanceSourceToDetector at offset 160 declares 65534 bytes, but only 2 remain",
	 {{SID, "DS", 65534, "1 "}}},
	/* an element longer than its item, an item longer than its sequence */
	{EXPLICIT,
	 "declares 10 bytes, but only 2 remain in the enclosing element",
	 {{SHARED, "SQ", 18, NULL}, {ITEM, NULL, 10, NULL}, {SID, "DS", 10, "1 23456789"}}},
	{EXPLICIT, "item 1", {{SHARED, "SQ", 18, NULL}, {ITEM, NULL, 12, NULL}, {SID, "DS", 4, "1 23"}}},
	/* undefined lengths of elements that are not sequences */
	{EXPLICIT, "undefined length", {{0x00420011, "OB", 0xffffffff, NULL}, {SEQUENCE_END, NULL, 0, NULL}}},
	{IMPLICIT, "undefined length", {{0x00100010, NULL, 0xffffffff, NULL}, {SEQUENCE_END, NULL, 0, NULL}}},
	{EXPLICIT, "only 0 bytes remain", {{SHARED, "SQ", 0xffffffff, NULL}, {ITEM, NULL, 0xffffffff, NULL}}},
	{EXPLICIT, "no end", {{SHARED, "SQ", 0xffffffff, NULL}}},
	/* another element in place of an item; an end has no value */
	{EXPLICIT, "where an item is expected", {{SHARED, "SQ", 8, NULL}, {ITEM_END, NULL, 0, NULL}}},
	{EXPLICIT, "where an item is expected", {{SHARED, "SQ", 0xffffffff, NULL}, {SEQUENCE_END, NULL, 2, NULL}}},
	/* order */
	{EXPLICIT, "twice", {{0x00280010, "US", 2, "ab"}, {0x00280010, "US", 2, "ab"}}},
	{EXPLICIT, "must not follow (0028,0010)", {{0x00280010, "US", 2, "ab"}, {SID, "DS", 2, "1 "}}},
	{EXPLICIT, "(0002,0010)", {{0x00280010, "US", 2, "ab"}, {0x00020010, "US", 2, "ab"}}},
	{EXPLICIT, "\"Ds\" is not a value representation", {{SID, "Ds", 2, "1 "}}},
	{EXPLICIT, "(FFFE,E00D)", {{ITEM_END, NULL, 0, NULL}}},
	{EXPLICIT,
	 "(0002,0003) MediaStorageSOPInstanceUID at offset 160 must not follow (0002,0010)",
	 {{0x00020003, "UI", 4, "1.2."}}},
	{EXPLICIT, "must not follow (0002,0010)", {{0x00020010, "UI", 4, "1.2."}}},
};

TEST(lengths_and_order)
{
	struct bytes b;

	for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
		add_meta(&b, damaged[i].syntax);
		for (const struct element *e = damaged[i].elements; e < damaged[i].elements + 3 && e->tag; e++) {
			if (e->vr)
				add_header(&b, e->tag, e->vr, e->length);
			else
				add_item(&b, e->tag, e->length);
			if (e->value)
				add(&b, e->value, strlen(e->value));
		}
		refused(&b, EBADMSG, damaged[i].names);
	}
}

/* The UID of the meta header has at most 65 characters with its padding. */
TEST(longest_uid)
{
	struct bytes b;

	for (size_t n = 66; n <= 68; n += 2) {
		add_meta(&b, EXPLICIT);
		b.n = 132;
		add_header(&b, 0x00020010, "UI", (uint32_t)n);
		for (size_t k = 0; k < n; k++)
			add(&b, "1", 1);
		refused(&b, n == 66 ? ENOTSUP : EBADMSG, n == 66 ? "is not supported" : "its 68 bytes are not a UID");
	}
}

/* Fragments of an icon in a sequence, and what is none of them. */
TEST(test_fragments)
{
	static const struct {
		uint32_t tag, length; /* behind a fragment of 4 bytes; tag 0: half a header */
		const char *names;    /* NULL: it is read */
	} rows[] = {
		{SEQUENCE_END, 0, NULL},
		{ITEM_END, 0, "no fragment but (FFFE,E00D) of length 0"},
		{SEQUENCE_END, 2, "no fragment but (FFFE,E0DD) of length 2"},
		{ITEM, 0xffffffff, "no fragment but (FFFE,E000) of length 4294967295"},
		{ITEM, 5, "(7FE0,0010) PixelData, fragment 1: (FFFE,E000) Item at offset"},
		{0, 0, "(7FE0,0010) PixelData, fragment 1: "},
	};
	struct bytes b;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int icon = 0; icon < 2; icon++) {
			add_meta(&b, RLE);
			if (icon) {
				add_header(&b, 0x00880200, "SQ", 0xffffffff);
				add_item(&b, ITEM, 0xffffffff);
			}
			add_header(&b, PIXELS, "OB", 0xffffffff);
			add_item(&b, ITEM, 4);
			add(&b, "abcd", 4);
			add_item(&b, rows[i].tag, rows[i].length);
			if (rows[i].tag == 0)
				b.n -= 4;
			else if (icon && !rows[i].names) {
				add_item(&b, ITEM_END, 0);
				add_item(&b, SEQUENCE_END, 0);
			}
			if (rows[i].names)
				refused(&b, EBADMSG, rows[i].names);
			else
				open_bytes(&b);
		}
	add_meta(&b, EXPLICIT);
	add_header(&b, PIXELS, "UN", 2);
	add(&b, "ab", 2);
	refused(&b, EBADMSG, "VR UN, not OB or OW");
}

/* Build n nested sequences. */
static void add_nest(struct bytes *b, const char *syntax, unsigned n, uint32_t tag)
{
	bool implicit = strcmp(syntax, IMPLICIT) == 0;

	add_meta(b, syntax);
	for (unsigned k = 0; k < n; k++) {
		if (implicit)
			add_item(b, tag, 0xffffffff);
		else
			add_header(b, tag, k % 2 ? "SQ" : "UN", 0xffffffff);
		implicit = implicit || k % 2 == 0; /* everything inside a UN element is in implicit VR */
		add_item(b, ITEM, 0xffffffff);
	}
	for (unsigned k = 0; k < n; k++) {
		add_item(b, ITEM_END, 0);
		add_item(b, SEQUENCE_END, 0);
	}
}

TEST(test_depth)
{
	static struct bytes b;
	uint32_t inner = 0;

	add_nest(&b, EXPLICIT, 16, SHARED);
	open_bytes(&b);
	add_nest(&b, EXPLICIT, 17, SHARED);
	refused(&b, EBADMSG, "more than 16 deep");
	add_nest(&b, EXPLICIT, 1500, SHARED);
	refused(&b, EBADMSG, "more than 16 deep");
	add_nest(&b, IMPLICIT, 1500, 0x00091001); /* unknown private tag */
	refused(&b, EBADMSG, "more than 16 deep");
	/* private, defined lengths, implicit VR: only its first bytes show that it is a sequence */
	for (unsigned n = 16; n <= 1000; n += 984) {
		add_meta(&b, IMPLICIT);
		for (unsigned k = n; k > 0; k--) {
			inner = (k - 1) * 16;
			add_item(&b, 0x00091001, inner + 8);
			add_item(&b, ITEM, inner);
		}
		if (n == 16)
			open_bytes(&b);
		else
			refused(&b, EBADMSG, "more than 16 deep");
	}
}

/* Open a file with sequences of so many empty items. */
static int open_items(unsigned sequences, unsigned each, struct err *err)
{
	FILE *f = fopen(in_folder("items.dcm"), "w");
	struct dicom_file *file = NULL;
	struct bytes b, item = {0};
	int rc;

	assert_non_null(f);
	add_item(&item, ITEM, 0);
	add_meta(&b, EXPLICIT);
	for (unsigned s = 0; s < sequences; s++, b.n = 0) {
		add_header(&b, 0x00291000 + s, "SQ", each * 8);
		assert_int_equal(fwrite(b.p, 1, b.n, f), b.n);
		for (unsigned k = 0; k < each; k++)
			assert_int_equal(fwrite(item.p, 1, item.n, f), item.n);
	}
	assert_int_equal(fclose(f), 0);
	rc = dicom_open(in_folder("items.dcm"), &file, err);
	dicom_close(file);
	return rc;
}

TEST(test_counts)
{
	struct err err = {0};

	ok(open_items(1, 16384, &err), &err);
	assert_error(open_items(1, 16385, &err), &err, EBADMSG, "more than 16384 items");
	assert_error(open_items(1, 600000, &err), &err, EBADMSG, "more than 16384 items");
	assert_error(open_items(50, 10000, &err), &err, EBADMSG, "more than 500000 elements"); /* 500 050 */
}

TEST(test_most_elements, .tier = 2)
{
	struct err err = {0};

	ok(open_items(50, 9999, &err), &err); /* 500 000: 50 sequences and their items */
}

/* Save a file with `groups` odd groups in one data set, each with `each` private creators and an empty element for each of them.
 */
static const char *save_private(unsigned groups, unsigned each)
{
	const char *path = in_folder("private.dcm");
	FILE *f = fopen(path, "w");
	struct bytes b;

	assert_non_null(f);
	add_meta(&b, EXPLICIT);
	for (uint32_t g = 0; g < groups; g++, b.n = 0) {
		uint32_t group = (0x0029 + 2 * g) << 16;

		for (unsigned k = 0; k < each; k++)
			add_text(&b, group | (0x10 + k), "LO", "AB");
		for (unsigned k = 0; k < each; k++)
			add_text(&b, group | (0x10 + k) << 8, "LO", "");
		assert_int_equal(fwrite(b.p, 1, b.n, f), b.n);
	}
	assert_int_equal(fclose(f), 0);
	return path;
}

/* DCMTK compares each private element with all private creators before it: 300 groups would take 30 s, 1000 more than a minute.
 */
TEST(test_private_creators)
{
	struct dicom_file *file = NULL;
	struct err err = {0};

	file = open_file(save_private(17, 240)); /* 4080 creators, 9 million comparisons */
	assert_true(dicom_has(dicom_root(file), 0x00491000));
	file = NULL;
	assert_error(dicom_open(save_private(18, 240), &file, &err), &err, EBADMSG, "(004B,0020) at offset");
	assert_non_null(strstr(err.msg, "more than 4096 private creators in one data set or item"));
	assert_int_equal(dicom_open(save_private(1000, 240), &file, &err), -EBADMSG);
}

/* The comparisons of all items are counted together. */
TEST(test_private_elements)
{
	static unsigned char items[32 * 65536];
	struct dicom_file *file = NULL;
	struct err err = {0};
	struct bytes b, item;
	size_t n = 0;

	item.n = 0;
	for (uint32_t k = 0; k < 240; k++)
		add_text(&item, 0x00290010 + k, "LO", "AB");
	for (uint32_t k = 0; k < 4000; k++)
		add_text(&item, 0x00291000 + k, "LO", "");
	for (int many = 20; many <= 21; many++) { /* x 240 x 4000: 19.2 and 20.16 million */
		FILE *f = fopen(in_folder("items.dcm"), "w");

		n = 0;
		for (int k = 0; k < many; k++) {
			b.n = 0;
			add_item(&b, ITEM, (uint32_t)item.n);
			memcpy(items + n, b.p, b.n);
			memcpy(items + n + b.n, item.p, item.n);
			n += b.n + item.n;
		}
		add_meta(&b, EXPLICIT);
		add_header(&b, 0x00400555, "SQ", (uint32_t)n);
		assert_int_equal(fwrite(b.p, 1, b.n, f), b.n);
		assert_int_equal(fwrite(items, 1, n, f), n);
		assert_int_equal(fclose(f), 0);
		if (many == 20)
			open_file(in_folder("items.dcm"));
	}
	assert_error(dicom_open(in_folder("items.dcm"), &file, &err), &err, EBADMSG,
		     "too many private elements for 240 private creators: more than 20000000 comparisons");
}

/* Unusual but valid: group lengths, padding at the end, odd lengths, a UN sequence, a private sequence in implicit VR. */
TEST(test_odd_but_right)
{
	struct err err = {0};
	struct bytes b;
	char text[32];

	add_meta(&b, EXPLICIT);
	add_header(&b, 0x00080000, "UL", 4);
	add32(&b, 4711);
	add_text(&b, 0x00080070, "LO", "odd");
	add_header(&b, 0x00089999, "UN", 0xffffffff);
	add_item(&b, ITEM, 8 + 4 + 8 + 12);
	add_item(&b, 0x00080070, 4);
	add(&b, "deep", 4);
	add_item(&b, 0x00080080, 12); /* text that begins as an item does */
	add(&b, "\xfe\xff\0\xe0\xff\xff\xff\x7ftext", 12);
	add_item(&b, SEQUENCE_END, 0);
	add_image(&b, 2, 2);
	add_header(&b, PIXELS, "OW", 8);
	add(&b, "12345678", 8);
	add_header(&b, 0xfffcfffc, "OB", 4);
	add(&b, "\0\0\0\0", 4);
	struct dicom_file *file = open_bytes(&b);
	assert_int_equal(dicom_get_text(dicom_root(file), 0x00080070, text, sizeof(text), &err), 1);
	assert_string_equal(text, "odd");
	assert_int_equal(dicom_item_count(dicom_root(file), 0x00089999), 1);
	struct dicom_item *item = dicom_item_at(dicom_root(file), 0x00089999, 0);
	assert_int_equal(dicom_get_text(item, 0x00080070, text, sizeof(text), &err), 1);
	assert_string_equal(text, "deep");
	assert_true(dicom_has(dicom_root(file), 0xfffcfffc));

	/* a value of odd length is written to another file with an even length */
	struct dicom_file *copy = NULL;
	copy = new_object(MG_PROCESSING, "1.2.3");
	assert_int_equal(dicom_copy(dicom_root(file), 0x00080070, dicom_root(copy), &err), 1);
	assert_int_equal(dicom_copy(dicom_root(file), 0x00089999, dicom_root(copy), &err), 1);
	assert_int_equal(dicom_copy(dicom_root(file), PIXELS, dicom_root(copy), &err), -EINVAL);
	assert_int_equal(dicom_write(in_folder("odd.dcm"), file, &err), -EINVAL); /* has pixel data */
	ok(dicom_write(in_folder("odd.dcm"), copy, &err), &err);
	/* a UID of odd length is padded with NUL, text with a space (PS3.5 9.1, 6.2) */
	FILE *f = fopen(in_folder("odd.dcm"), "r");
	b.n = fread(b.p, 1, sizeof(b.p), f);
	fclose(f);
	assert_non_null(memmem(b.p, b.n,
			       "\2\0\3\0UI\6\0"
			       "1.2.3\0",
			       14));
	assert_non_null(memmem(b.p, b.n,
			       "\x08\0\x70\0LO\4\0"
			       "odd ",
			       12));
	file = open_file(in_folder("odd.dcm"));
	assert_int_equal(dicom_get_text(dicom_root(file), 0x00080070, text, sizeof(text), &err), 1);
	assert_string_equal(text, "odd");
	assert_int_equal(dicom_item_count(dicom_root(file), 0x00089999), 1);
}

/* Append a raw deflate stream: the bytes of *plain, then n zeros. Return the CRC-32 of both. */
static unsigned long write_deflated(FILE *to, const struct bytes *plain, size_t n)
{
	static unsigned char zeros[1 << 20], out[1 << 16];
	z_stream z = {.next_in = (unsigned char *)plain->p, .avail_in = (unsigned)plain->n};
	unsigned long crc = crc32(0, plain->p, (unsigned)plain->n);
	int state = Z_OK;

	assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
	while (state != Z_STREAM_END) {
		if (z.avail_in == 0 && n > 0) {
			z.next_in = zeros;
			z.avail_in = (unsigned)(n < sizeof(zeros) ? n : sizeof(zeros));
			n -= z.avail_in;
			crc = crc32(crc, zeros, z.avail_in);
		}
		z.next_out = out;
		z.avail_out = sizeof(out);
		state = deflate(&z, n > 0 ? Z_NO_FLUSH : Z_FINISH);
		assert_int_equal(fwrite(out, 1, sizeof(out) - z.avail_out, to), sizeof(out) - z.avail_out);
	}
	deflateEnd(&z);
	return crc;
}

/* Open a file whose deflated data set has a value of n zeros, with a trailer of gzip if `gzip` (its size is wrong by gzip - 1)
 * and `behind` bytes after the stream. Return the error. */
static int open_deflated_with(size_t n, unsigned gzip, size_t behind, struct err *err)
{
	struct dicom_file *file = NULL;
	struct bytes meta, plain = {0};
	FILE *f = fopen(in_folder("deflated.dcm"), "w");
	int r;

	add_meta(&meta, "1.2.840.10008.1.2.1.99");
	add_header(&plain, 0x00420011, "OB", (uint32_t)n);
	assert_int_equal(fwrite(meta.p, 1, meta.n, f), meta.n);
	unsigned long crc = write_deflated(f, &plain, n);
	for (int i = 0; gzip && i < 8; i++)
		fputc((int)(i < 4 ? crc >> (8 * i) : (plain.n + n + gzip - 1) >> (8 * (i - 4))) & 255, f);
	for (size_t i = 0; i < behind; i++)
		fputc(0, f);
	fclose(f);
	r = dicom_open(in_folder("deflated.dcm"), &file, err);
	dicom_close(file);
	unlink(in_folder("deflated.dcm"));
	return r;
}

static int open_deflated(size_t n, size_t behind, struct err *err)
{
	return open_deflated_with(n, 0, behind, err);
}

/* A deflated data set: its stream must be the rest of the file, except one byte of padding or the trailer of gzip, and inflate to
 * at most 256 MiB. */
TEST(test_deflated)
{
	struct err err = {0};

	ok(open_deflated(1000, 0, &err), &err);
	ok(open_deflated(1000, 1, &err), &err);
	assert_error(open_deflated(1000, 2, &err), &err, EBADMSG, "2 bytes follow");
	ok(open_deflated_with(1000, 1, 0, &err), &err);
	ok(open_deflated_with(1000, 1, 1, &err), &err);
	assert_error(open_deflated_with(1000, 1, 2, &err), &err, EBADMSG, "10 bytes follow");
	assert_error(open_deflated_with(1000, 2, 0, &err), &err, EBADMSG, "8 bytes follow");
	assert_error(open_deflated(256 << 20, 0, &err), &err, EFBIG, "268435456");
}

/* The end of the stream may be in zlib while its input is used up and its output filled the buffer: at any size around a multiple
 * of it (256 KiB). */
TEST(test_deflated_at_the_buffer)
{
	enum { BUFFER = 256 * 1024 };
	struct err err = {0};

	for (size_t k = 1; k <= 3; k++)
		for (size_t i = 0; i < test_count(1200, 120); i++)
			ok(open_deflated(2 * (k * BUFFER / 2 - 100 + test_nth(i, 1200, 120)), 0, &err), &err);
	for (size_t i = 0; i < test_count(64, 8); i++)
		ok(open_deflated(2 * (test_nth(i, 64, 8) + 1) * 49999, i & 1, &err), &err);
}

TESTS_SETUP(folder_make, folder_remove);
