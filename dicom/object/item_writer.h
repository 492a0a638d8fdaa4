/* SPDX-License-Identifier: Apache-2.0 */
/* Write many attributes into a DICOM item without checking each call: the first error is stored in the writer, and all later
 * calls do nothing. Check `rc` at the end. Tags may be put in any order. */
#ifndef TOMONODE_NODE_ITEM_WRITER_H
#define TOMONODE_NODE_ITEM_WRITER_H

#include "dicom/core/dataset.h"

struct item_writer {
	struct dicom_item *item; /* destination */
	struct err *err;	 /* receives the message of the first error */
	int rc;			 /* negative: the first error */
};

void item_put_text(struct item_writer *w, uint32_t tag, const char *text); /* an empty text puts an empty element */
void item_put_double(struct item_writer *w, uint32_t tag, double value);
void item_put_doubles(struct item_writer *w, uint32_t tag, const double *values, size_t n);
void item_put_int(struct item_writer *w, uint32_t tag, long value);
void item_put_tag(struct item_writer *w, uint32_t tag, uint32_t value);		    /* VR AT: the value is a tag */
void item_put_empty(struct item_writer *w, uint32_t tag);			    /* an element without a value (type 2) */
void item_copy(struct item_writer *w, uint32_t tag, const struct dicom_item *from); /* does nothing if `from` does not have it */
void item_copy_all(struct item_writer *w, const struct dicom_item *from, const uint32_t *tags, size_t n);
/* Write a type 2 attribute: copied, or empty if `from` does not have it. */
void item_copy_or_empty(struct item_writer *w, uint32_t tag, const struct dicom_item *from);
void item_copy_all_or_empty(struct item_writer *w, const struct dicom_item *from, const uint32_t *tags, size_t n);
void item_put_code(struct item_writer *w, uint32_t sequence, const char *value, const char *scheme, const char *meaning);
/* Append a new item to a sequence and return a writer for it, with the error of `w`. Call item_end() after the last attribute: it
 * copies an error of the inner writer to `w`. */
struct item_writer item_begin(struct item_writer *w, uint32_t sequence);
void item_end(struct item_writer *w, const struct item_writer *inner);

#endif
