/* An attribute wherever an object keeps it, and how a tag is printed. */
#ifndef TOMONODE_NODE_ATTRIBUTE_H
#define TOMONODE_NODE_ATTRIBUTE_H

#include "dicom/core/dataset.h"

/* A single-frame object (frame < 0) has everything at the root. A multi-frame object may have it in a functional group of the
 * frame, or in a shared one, or at the root; that is the order. */
struct header {
	const struct dicom_item *root;
	long frame; /* 0.., or -1: single-frame */
};

const struct dicom_item *header_find(const struct header *h, uint32_t tag); /* the item that holds a value of it, or NULL */
/* 1: found, 0: nowhere (or empty everywhere), negative: there and unreadable. */
int header_text(const struct header *h, uint32_t tag, char *ret_text, size_t size, struct err *err);
int header_double(const struct header *h, uint32_t tag, unsigned index, double *ret_value, struct err *err);
int header_long(const struct header *h, uint32_t tag, unsigned index, long *ret_value, struct err *err);

/* "(0018,1510)" into a ring of four static buffers of the thread, for sentences. */
const char *tag_text(uint32_t tag);

#endif
