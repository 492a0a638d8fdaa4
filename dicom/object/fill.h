/* Filling a DICOM item: puts with one sticky error, so that long lists of attributes read as lists.
 * After the first failure the others do nothing. Tags are put in any order. */
#ifndef TOMONODE_NODE_FILL_H
#define TOMONODE_NODE_FILL_H

#include "dicom/core/dataset.h"

struct fill {
	struct dicom_item *item;
	struct err *err;
	int rc;
};

void fill_text(struct fill *f, uint32_t tag, const char *text); /* empty text: an empty element */
void fill_double(struct fill *f, uint32_t tag, double value);
void fill_doubles(struct fill *f, uint32_t tag, const double *values, size_t n);
void fill_int(struct fill *f, uint32_t tag, long value);
void fill_pointer(struct fill *f, uint32_t tag, uint32_t pointed);	     /* AT */
void fill_empty(struct fill *f, uint32_t tag);				     /* type 2 */
void fill_copy(struct fill *f, uint32_t tag, const struct dicom_item *from); /* nothing where `from` has nothing */
void fill_copies(struct fill *f, const struct dicom_item *from, const uint32_t *tags, size_t n);
void fill_code(struct fill *f, uint32_t sequence, const char *value, const char *scheme, const char *meaning);
/* A new item of a sequence, with the error so far; give it back with fill_join(). */
struct fill fill_item(struct fill *f, uint32_t sequence);
void fill_join(struct fill *f, const struct fill *inner);

#endif
