/* SPDX-License-Identifier: Apache-2.0 */
/* Large values: write in pieces, read in pieces, at the right position between the other elements. */
#include "tests/dicom/core/fixture.h"
#include "tests/test.h"

#include "dicom/core/bulk.h"
#include "dicom/core/dataset.h"

#define RAW_DATA "1.2.840.10008.5.1.4.1.1.66"
#define TAG_BULK DICOM_TAG(0x0071, 0x1010)

struct source {
	size_t at, stop; /* bytes supplied so far; number of bytes after which the callback fails */
	size_t largest;
};

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 7 + (i >> 8));
}

static int read_source(void *ctx, void *ret_bytes, size_t n, struct err *err)
{
	struct source *s = ctx;
	uint8_t *to = ret_bytes;

	if (s->at + n > s->stop)
		return err_set(err, EIO, "the source ends");
	for (size_t i = 0; i < n; i++)
		to[i] = byte_at(s->at + i);
	s->at += n;
	s->largest = n > s->largest ? n : s->largest;
	return 0;
}

static struct dicom_file *make_header(void)
{
	struct dicom_file *file = NULL;
	struct dicom_item *item;
	struct err err = {0};

	file = new_object(RAW_DATA, "1.2.3");
	assert_int_equal(dicom_put_text(dicom_root(file), 0x00100010, "A^B", &err), 0);
	item = dicom_add_item(dicom_root(file), 0x00540016, &err);
	assert_non_null(item);
	assert_int_equal(dicom_put_text(item, 0x00181074, "5", &err), 0);
	/* the text of an element before it contains the same bytes as the header of the large element */
	assert_int_equal(dicom_put_private(dicom_root(file), 0x0071, "MAKER", 0x02, "UT", "q\x10\x10OB and more", &err), 0);
	assert_int_equal(dicom_put_private(dicom_root(file), 0x0071, "MAKER", 0x11, "UL", "17", &err), 0);
	return file;
}

TEST(test_roundtrip)
{
	static const size_t sizes[] = {0, 1, 2, 1001, 4096, 5000001, (4 << 20) + 2};

	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		size_t n = sizes[k], padded = n + (n & 1);
		struct source source = {.stop = n};
		struct dicom_file *file = make_header();
		uint8_t *bytes = malloc(padded + 1);
		struct err err = {0};
		uint64_t size = 77;
		long number = 0;

		assert_done(dicom_write_bulk(in_folder("a.dcm"), file, TAG_BULK, n, read_source, &source, &err), &err);
		assert_int_equal(source.at, n);
		assert_true(source.largest <= 4 << 20);
		if (dicom_open(in_folder("a.dcm"), &file, &err) < 0)
			fail_msg("%zu bytes: %s", n, err.msg);
		test_later(give_back_dicom_close, file);
		assert_true(dicom_bulk_size(file, TAG_BULK, &size));
		assert_int_equal(size, padded);
		assert_int_equal(dicom_bulk_read(file, TAG_BULK, 0, bytes, padded, &err), 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(bytes[i], byte_at(i));
		if (n & 1)
			assert_int_equal(bytes[n], 0);
		if (n > 100) {
			assert_int_equal(dicom_bulk_read(file, TAG_BULK, 33, bytes, 5, &err), 0);
			assert_int_equal(bytes[4], byte_at(37));
		}
		assert_int_equal(dicom_bulk_read(file, TAG_BULK, padded, bytes, 1, &err), -EINVAL);
		assert_int_equal(dicom_bulk_read(file, TAG_BULK, padded + 1, bytes, 0, &err), -EINVAL);
		assert_int_equal(dicom_bulk_read(file, TAG_BULK, UINT64_MAX, bytes, 2, &err), -EINVAL);
		assert_int_equal(dicom_get_int(dicom_root(file), 0x00711011, 0, &number, &err),
				 1); /* the element after the large value is intact */
		assert_int_equal(number, 17);
		assert_false(dicom_bulk_size(file, 0x00711011, &size)); /* this element is a number, not a large value */
		assert_int_equal(dicom_bulk_read(file, 0x00711012, 0, bytes, 1, &err), -ENOENT);
		free(bytes);
	}
}

TEST(test_failures)
{
	struct source source = {.stop = 5000000};
	struct dicom_file *file = make_header();
	struct err err = {0};

	unlink(in_folder("a.dcm"));
	assert_int_equal(dicom_write_bulk(in_folder("a.dcm"), file, TAG_BULK, 9000000, read_source, &source, &err), -EIO);
	assert_string_equal(err.msg, "the source ends");
	assert_int_equal(folder_entries(), 0); /* no file remains */
	assert_int_equal(dicom_write_bulk(in_folder("a.dcm"), file, TAG_BULK, DICOM_BULK_MAX + 1, read_source, &source, &err),
			 -EFBIG);
	assert_int_equal(dicom_write_bulk(in_folder("a.dcm"), file, 0x00711011, 2, read_source, &source, &err), -EINVAL);
	assert_true(dicom_write_bulk(in_folder("no/a.dcm"), file, TAG_BULK, 2, read_source, &source, &err) < 0);
}

/* A file that becomes shorter after it was opened: an error, never the bytes that the buffer had before. */
TEST(test_shortened)
{
	struct source source = {.stop = 5000};
	struct dicom_file *file = make_header();
	struct err err = {0};
	uint8_t bytes[5000];
	struct stat st;

	ok(dicom_write_bulk(in_folder("a.dcm"), file, TAG_BULK, sizeof(bytes), read_source, &source, &err), &err);
	file = open_file(in_folder("a.dcm"));
	assert_int_equal(stat(in_folder("a.dcm"), &st), 0);
	assert_int_equal(truncate(in_folder("a.dcm"), st.st_size - 1000), 0);
	assert_int_equal(dicom_bulk_read(file, TAG_BULK, 0, bytes, 4000, &err), 0);
	assert_error(dicom_bulk_read(file, TAG_BULK, 0, bytes, sizeof(bytes), &err), &err, EIO, "shorter");
	unlink(in_folder("a.dcm"));
}

TEST(test_digest)
{
	struct dicom_digest *d = dicom_digest_new();
	char whole[65], parts[65];

	dicom_sha256("abcdef", 6, whole);
	dicom_digest_add(d, "abc", 3);
	dicom_digest_add(d, "", 0);
	dicom_digest_add(d, "def", 3);
	dicom_digest_hex(d, parts);
	assert_string_equal(parts, whole);
	assert_null(dicom_digest_free(d));
	assert_null(dicom_digest_free(NULL));
	d = dicom_digest_new(); /* FIPS 180-4, "abc" */
	dicom_digest_add(d, "abc", 3);
	dicom_digest_hex(d, parts);
	assert_string_equal(parts, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	dicom_digest_free(d);
}

TEST(test_names)
{
	uint32_t tag = 0;

	assert_true(dicom_tag_named("PatientWeight", &tag));
	assert_int_equal(tag, 0x00101030);
	assert_true(dicom_tag_named("RadionuclideTotalDose", &tag));
	assert_int_equal(tag, 0x00181074);
	assert_false(dicom_tag_named("PatientWeigth", &tag));
	assert_false(dicom_tag_named("", &tag));
	assert_false(dicom_tag_named("0010,1030", &tag));
}

TESTS_SETUP(folder_make, folder_remove);
