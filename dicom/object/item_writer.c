/* SPDX-License-Identifier: Apache-2.0 */
/* item_writer.c - put functions with one sticky error. */
#include "dicom/object/item_writer.h"
#include "dicom/object/attribute.h"

void item_put_text(struct item_writer *w, uint32_t tag, const char *text)
{
	if (w->rc >= 0)
		w->rc = text[0] ? dicom_put_text(w->item, tag, text, w->err) : dicom_put_empty(w->item, tag, w->err);
}

void item_put_double(struct item_writer *w, uint32_t tag, double value)
{
	if (w->rc >= 0)
		w->rc = dicom_put_double(w->item, tag, value, w->err);
}

void item_put_doubles(struct item_writer *w, uint32_t tag, const double *values, size_t n)
{
	if (w->rc >= 0)
		w->rc = dicom_put_doubles(w->item, tag, values, n, w->err);
}

void item_put_int(struct item_writer *w, uint32_t tag, long value)
{
	if (w->rc >= 0)
		w->rc = dicom_put_int(w->item, tag, value, w->err);
}

void item_put_tag(struct item_writer *w, uint32_t tag, uint32_t value)
{
	if (w->rc >= 0)
		w->rc = dicom_put_uint32s(w->item, tag, &value, 1, w->err);
}

void item_put_empty(struct item_writer *w, uint32_t tag)
{
	if (w->rc >= 0)
		w->rc = dicom_put_empty(w->item, tag, w->err);
}

void item_copy(struct item_writer *w, uint32_t tag, const struct dicom_item *from)
{
	if (w->rc >= 0 && from)
		w->rc = dicom_copy(from, tag, w->item, w->err);
}

void item_copy_all(struct item_writer *w, const struct dicom_item *from, const uint32_t *tags, size_t n)
{
	for (size_t i = 0; i < n; i++)
		item_copy(w, tags[i], from);
}

void item_copy_or_empty(struct item_writer *w, uint32_t tag, const struct dicom_item *from)
{
	item_put_empty(w, tag);
	item_copy(w, tag, from);
}

void item_copy_all_or_empty(struct item_writer *w, const struct dicom_item *from, const uint32_t *tags, size_t n)
{
	for (size_t i = 0; i < n; i++)
		item_copy_or_empty(w, tags[i], from);
}

void item_put_code(struct item_writer *w, uint32_t sequence, const char *value, const char *scheme, const char *meaning)
{
	if (w->rc >= 0)
		w->rc = dicom_add_code(w->item, sequence, value, scheme, meaning, w->err);
}

struct item_writer item_begin(struct item_writer *w, uint32_t sequence)
{
	struct item_writer inner = {.err = w->err, .rc = w->rc};

	if (w->rc >= 0) {
		inner.item = dicom_add_item(w->item, sequence, w->err);
		if (!inner.item)
			inner.rc = err_prefix(w->err, "sequence %s", tag_text(sequence));
	}
	return inner;
}

void item_end(struct item_writer *w, const struct item_writer *inner)
{
	if (inner->rc < 0)
		w->rc = inner->rc;
}
