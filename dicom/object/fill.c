/* fill.c - puts with one sticky error. */
#include "dicom/object/fill.h"
#include "dicom/object/attribute.h"

void fill_text(struct fill *f, uint32_t tag, const char *text)
{
	if (f->rc >= 0)
		f->rc = text[0] ? dicom_put_text(f->item, tag, text, f->err) : dicom_put_empty(f->item, tag, f->err);
}

void fill_double(struct fill *f, uint32_t tag, double value)
{
	if (f->rc >= 0)
		f->rc = dicom_put_double(f->item, tag, value, f->err);
}

void fill_doubles(struct fill *f, uint32_t tag, const double *values, size_t n)
{
	if (f->rc >= 0)
		f->rc = dicom_put_doubles(f->item, tag, values, n, f->err);
}

void fill_int(struct fill *f, uint32_t tag, long value)
{
	if (f->rc >= 0)
		f->rc = dicom_put_int(f->item, tag, value, f->err);
}

void fill_pointer(struct fill *f, uint32_t tag, uint32_t pointed)
{
	if (f->rc >= 0)
		f->rc = dicom_put_uint32s(f->item, tag, &pointed, 1, f->err);
}

void fill_empty(struct fill *f, uint32_t tag)
{
	if (f->rc >= 0)
		f->rc = dicom_put_empty(f->item, tag, f->err);
}

void fill_copy(struct fill *f, uint32_t tag, const struct dicom_item *from)
{
	if (f->rc >= 0 && from)
		f->rc = dicom_copy(from, tag, f->item, f->err);
}

void fill_copies(struct fill *f, const struct dicom_item *from, const uint32_t *tags, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fill_copy(f, tags[i], from);
}

void fill_code(struct fill *f, uint32_t sequence, const char *value, const char *scheme, const char *meaning)
{
	if (f->rc >= 0)
		f->rc = dicom_add_code(f->item, sequence, value, scheme, meaning, f->err);
}

struct fill fill_item(struct fill *f, uint32_t sequence)
{
	struct fill inner = {.err = f->err, .rc = f->rc};

	if (f->rc >= 0) {
		inner.item = dicom_add_item(f->item, sequence, f->err);
		if (!inner.item)
			inner.rc = err_within(f->err, "sequence %s", tag_text(sequence));
	}
	return inner;
}

void fill_join(struct fill *f, const struct fill *inner)
{
	if (inner->rc < 0)
		f->rc = inner->rc;
}
