/* SPDX-License-Identifier: Apache-2.0 */
/* A small image, and images built byte by byte. */
#ifndef TOMONODE_TESTS_DICOM_PIXELS_FIXTURE_H
#define TOMONODE_TESTS_DICOM_PIXELS_FIXTURE_H

#include "tests/dicom/core/fixture.h"

#define PIXELS 0x7fe00010u
#define ROWS DICOM_TAG(0x0028, 0x0010)
#define COLUMNS DICOM_TAG(0x0028, 0x0011)
#define FRAMES DICOM_TAG(0x0028, 0x0008)
#define ALLOCATED DICOM_TAG(0x0028, 0x0100)
#define STORED DICOM_TAG(0x0028, 0x0101)
#define HIGH DICOM_TAG(0x0028, 0x0102)

enum { N_ROWS = 37, N_COLUMNS = 53, N_FRAMES = 5, N = N_ROWS * N_COLUMNS };

/* Compute a test image: smooth, so that it can be compressed; different in every frame; 12 bits. */
static inline uint16_t value_at(int frame, int k)
{
	return (uint16_t)((k % N_COLUMNS * 40 + k / N_COLUMNS * 25 + frame * 333 + (k * 2654435761u >> 29)) & 0xfff);
}

static inline struct dicom_file *header(long rows, long columns, long frames)
{
	struct dicom_file *file = NULL;
	struct dicom_item *root;
	struct err err = {0};

	file = new_object(MG_PROCESSING, "1.2.3.4");
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

static inline const char *sample(void)
{
	struct dicom_file *file = header(N_ROWS, N_COLUMNS, N_FRAMES);
	struct dicom_writer *w = NULL;
	struct err err = {0};
	uint16_t values[N];

	ok(dicom_writer_open(in_folder("sample.dcm"), file, NULL, &w, &err), &err);
	for (int f = 0; f < N_FRAMES; f++) {
		for (int k = 0; k < N; k++)
			values[k] = value_at(f, k);
		ok(dicom_writer_frame(w, values, &err), &err);
	}
	ok(dicom_writer_close(w, &err), &err);
	return in_folder("sample.dcm");
}

/* Append the attributes that describe the pixels. `stored` of the `bits` of a value are used, up to bit `high`. */
static inline void add_description(struct bytes *b, unsigned rows, unsigned columns, unsigned frames, unsigned bits,
				   unsigned stored, unsigned high)
{
	char text[16];

	snprintf(text, sizeof(text), "%u%s", frames, frames < 10 || (frames >= 100 && frames < 1000) ? " " : "");
	add_us(b, 0x00280002, 1);
	add_text(b, 0x00280004, "CS", "MONOCHROME1 ");
	add_text(b, 0x00280008, "IS", text);
	add_us(b, 0x00280010, rows);
	add_us(b, 0x00280011, columns);
	add_us(b, 0x00280100, bits);
	add_us(b, 0x00280101, stored);
	add_us(b, 0x00280102, high);
	add_us(b, 0x00280103, 0);
}

static inline void add_image(struct bytes *b, const char *syntax, unsigned rows, unsigned columns, unsigned frames, unsigned bits)
{
	add_meta(b, syntax);
	add_description(b, rows, columns, frames, bits, bits, bits - 1);
}

/* Append a code stream as fragments of `piece` bytes, an even number; the last one gets a byte of padding if it needs one. */
static inline void add_fragments(struct bytes *b, const void *code, size_t n, size_t piece)
{
	for (size_t at = 0; at < n; at += piece) {
		size_t part = piece < n - at ? piece : n - at;

		add_item(b, 0xfffee000, (uint32_t)(part + (part & 1)));
		add(b, (const char *)code + at, part);
		if (part & 1)
			add(b, "", 1);
	}
}

#endif
