/* Find an attribute in any part of an object that may hold it, and print tags. */
#ifndef TOMONODE_NODE_ATTRIBUTE_H
#define TOMONODE_NODE_ATTRIBUTE_H

#include "dicom/core/dataset.h"

/* A single-frame object (frame < 0) has all attributes at the root. In a multi-frame object they are searched first in a
 * functional group of the frame, then in a shared one, then at the root. */
struct header {
	const struct dicom_item *root;
	long frame; /* from 0, or -1: single-frame */
};

const struct dicom_item *header_find(const struct header *h,
				     uint32_t tag); /* returns the item that holds a value of the tag, or NULL */
/* Read a value. 1: found; 0: missing or empty everywhere; negative: present and unreadable. */
int header_text(const struct header *h, uint32_t tag, char *ret_text, size_t size, struct err *err);
int header_double(const struct header *h, uint32_t tag, unsigned index, double *ret_value, struct err *err);
int header_long(const struct header *h, uint32_t tag, unsigned index, long *ret_value, struct err *err);

/* Return "(0018,1510)" for messages, in one of four static buffers per thread that are reused in turn. */
const char *tag_text(uint32_t tag);

#endif
