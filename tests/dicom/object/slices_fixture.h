/* SPDX-License-Identifier: Apache-2.0 */
/* slices_fixture.h - single slices as DICOM objects, from a table of usual values in which a test changes some. */
#ifndef TOMONODE_TESTS_SLICES_FIXTURE_H
#define TOMONODE_TESTS_SLICES_FIXTURE_H

#include "dicom/object/dicom_tags.h"
#include "dicom/pixels/pixels.h"
#include "tests/test.h"

#define N_SLICES 4
#define PHOTOMETRIC DICOM_TAG(0x0028, 0x0004)

/* A value of one slice (from 1 on, in the order in which they are added) or of all (0) in place of the usual one; "-": none. */
struct edit {
	int slice;
	uint32_t tag;
	const char *text;
};

static inline void slice_ok(int rc, const struct err *err)
{
	if (rc < 0)
		fail_msg("%d: %s", rc, err->msg);
}

static inline const char *value_of(int slice, uint32_t tag, const char *text, const struct edit *edits, size_t n)
{
	for (size_t i = 0; i < n && edits[i].tag; i++)
		if ((edits[i].slice == 0 || edits[i].slice == slice) && edits[i].tag == tag)
			text = edits[i].text;
	return text;
}

/* Make the header of a slice of `class`; its usual values may be changed by edits. */
static inline struct dicom_file *make_slice(int slice, const char *class, const struct edit *usual, size_t n_usual,
					    const struct edit *edits, size_t n)
{
	struct dicom_file *file = NULL;
	struct err err = {0};
	char uid[24];

	snprintf(uid, sizeof(uid), "1.2.3.%d", slice);
	slice_ok(dicom_new(value_of(slice, TAG_SOP_CLASS_UID, class, edits, n),
			   value_of(slice, TAG_SOP_INSTANCE_UID, uid, edits, n), &file, &err),
		 &err);
	for (size_t i = 0; i < n_usual; i++) {
		const char *text = value_of(slice, usual[i].tag, usual[i].text, edits, n);
		char *end;
		long number = strtol(text, &end, 10);

		if ((usual[i].slice && usual[i].slice != slice) || !strcmp(text, "-"))
			continue;
		if (end > text && !*end && dicom_put_int(dicom_root(file), usual[i].tag, number, NULL) == 0)
			continue;
		slice_ok(dicom_put_text(dicom_root(file), usual[i].tag, text, &err), &err);
	}
	return file;
}

/* Write a slice, whose header is closed. */
static inline void write_slice(const char *path, struct dicom_file *header, const uint16_t *values)
{
	struct dicom_writer *w = NULL;
	struct err err = {0};

	remove(path);
	slice_ok(dicom_writer_open(path, header, NULL, &w, &err), &err);
	slice_ok(dicom_writer_frame(w, values, &err), &err);
	slice_ok(dicom_writer_close(w, &err), &err);
	dicom_close(header);
}

#endif
