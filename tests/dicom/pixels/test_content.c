/* SPDX-License-Identifier: Apache-2.0 */
/* Which of two objects with one UID have the same content: values decide, not bytes, syntax or lengths of groups. */
#include "dicom/pixels/content.h"
#include "dicom/pixels/jpegls.h"
#include "tests/dicom/pixels/pixels_fixture.h"
#include "tests/test.h"

#define SECONDS 60.0

static char where[200];

static enum dicom_content compare(const char *older, const char *newer)
{
	enum dicom_content content = (enum dicom_content)99;
	struct err err = {0};

	ok(dicom_compare_content(older, newer, SECONDS, &content, where, sizeof(where), &err), &err);
	return content;
}

/* Write the sample; change: one value of the last frame differs; text: the patient's comment, NULL: none. */
static const char *write_sample(const char *name, int change, const char *text, bool jpegls)
{
	const struct dicom_writer_options options = {.jpegls = jpegls};
	struct dicom_file *file = header(N_ROWS, N_COLUMNS, N_FRAMES);
	struct dicom_writer *w = NULL;
	struct err err = {0};
	uint16_t values[N];
	const char *path = in_folder(name);
	static unsigned char code[9 * N + 4096];
	size_t n;

	if (text)
		ok(dicom_put_text(dicom_root(file), DICOM_TAG(0x0010, 0x4000), text, &err), &err);
	ok(dicom_writer_open(path, file, &options, &w, &err), &err);
	for (int f = 0; f < N_FRAMES; f++) {
		for (int k = 0; k < N; k++)
			values[k] = (uint16_t)(value_at(f, k) + (f == N_FRAMES - 1 && k == N - 1 ? change : 0));
		if (jpegls) {
			ok(jpegls_encode(values, N_COLUMNS, N_ROWS, 12, code, sizeof(code), &n, &err), &err);
			ok(dicom_writer_fragment(w, code, n, &err), &err);
		} else {
			ok(dicom_writer_frame(w, values, &err), &err);
		}
	}
	ok(dicom_writer_close(w, &err), &err);
	return path;
}

TEST(test_values_decide)
{
	char first[256];

	snprintf(first, sizeof(first), "%s", write_sample("first.dcm", 0, "a", false));
	assert_int_equal(compare(first, write_sample("second.dcm", 0, "a", false)), DICOM_CONTENT_SAME);
	assert_int_equal(compare(first, write_sample("second.dcm", 0, "a", true)), DICOM_CONTENT_SAME);
	assert_string_equal(where, "");
	assert_int_equal(compare(first, write_sample("second.dcm", 1, "a", false)), DICOM_CONTENT_DIFFERS);
	assert_int_equal(compare(first, write_sample("second.dcm", 1, "a", true)), DICOM_CONTENT_DIFFERS);
	assert_string_equal(where, "(7FE0,0010) PixelData");
	assert_int_equal(compare(first, write_sample("second.dcm", 0, "b", false)), DICOM_CONTENT_DIFFERS);
	assert_string_equal(where, "(0010,4000) PatientComments");
	compare(first, write_sample("second.dcm", 1, "b", false));
	assert_string_equal(where, "(7FE0,0010) PixelData, (0010,4000) PatientComments");
	assert_int_equal(compare(first, write_sample("second.dcm", 0, NULL, true)), DICOM_CONTENT_DIFFERS);
	assert_string_equal(where, "(0010,4000) PatientComments");
}

/* Other encodings of the same values by another program. */
TEST(test_other_encodings)
{
	static const struct {
		const char *tool, *option;
	} encodings[] = {
		{"dcmconv", "+ti"}, {"dcmconv", "+tb"},	 {"dcmconv", "+g"},
		{"dcmconv", "-e"},  {"dcmcjpls", "+el"}, {"dcmcrle", "-q"},
	};
	char first[256];

	snprintf(first, sizeof(first), "%s", write_sample("first.dcm", 0, "a", false));
	for (size_t k = 0; k < sizeof(encodings) / sizeof(encodings[0]); k++) {
		const char *second = in_folder("second.dcm");

		if (tool(encodings[k].tool, encodings[k].option, first, second) < 0)
			skip_because("%s is not installed", encodings[k].tool);
		if (compare(first, second) != DICOM_CONTENT_SAME || compare(second, first) != DICOM_CONTENT_SAME)
			fail_msg("%s %s is another content", encodings[k].tool, encodings[k].option);
	}
}

/* Replace the first code of the JPEG-LS frame `frame` by bytes that cannot be decoded. */
static void damage(const char *path, int frame)
{
	static unsigned char bytes[200000];
	FILE *f = fopen(path, "r+b");
	size_t n = fread(bytes, 1, sizeof(bytes), f);
	unsigned char *at = bytes;

	for (int i = 0; i <= frame; i++) {
		at = memmem(at, n - (size_t)(at - bytes), "\xff\xd8\xff\xf7", 4);
		assert_non_null(at);
		at += 4;
	}
	assert_int_equal(fseek(f, at - bytes - 1, SEEK_SET), 0);
	assert_int_equal(fputc(0xc0, f), 0xc0); /* a lossy kind */
	assert_int_equal(fclose(f), 0);
}

/* Which of the two can be read decides; one unreadable frame is enough. */
TEST(test_repairs)
{
	char whole[256], other[256];

	for (int frame = 0; frame < N_FRAMES; frame += N_FRAMES - 1) {
		snprintf(whole, sizeof(whole), "%s", write_sample("whole.dcm", 1, "b", false));
		snprintf(other, sizeof(other), "%s", write_sample("other.dcm", 0, "a", true));
		damage(other, frame);
		assert_int_equal(compare(other, whole), DICOM_CONTENT_REPAIRS);
		assert_int_equal(compare(whole, other), DICOM_CONTENT_DIFFERS);
		assert_int_equal(compare(other, other), DICOM_CONTENT_DIFFERS);
	}
	/* a newer one that is damaged behind the frame that it would repair */
	damage(other, N_FRAMES - 2);
	snprintf(whole, sizeof(whole), "%s", write_sample("whole.dcm", 0, "a", true));
	damage(whole, N_FRAMES - 1);
	assert_int_equal(compare(other, whole), DICOM_CONTENT_DIFFERS);
}

/* An unknown answer is no equality. */
TEST(test_limits)
{
	enum dicom_content content = DICOM_CONTENT_SAME;
	struct err err = {0};
	char first[256];

	snprintf(first, sizeof(first), "%s", write_sample("first.dcm", 0, "a", false));
	ok(dicom_compare_content(first, first, -1, &content, where, sizeof(where), &err), &err);
	assert_int_equal(content, DICOM_CONTENT_DIFFERS);
	assert_int_equal(dicom_compare_content(first, in_folder("none.dcm"), SECONDS, &content, where, sizeof(where), &err),
			 -ENOENT);
}

TESTS_SETUP(folder_make, folder_remove);
