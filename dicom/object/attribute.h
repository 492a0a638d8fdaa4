/* SPDX-License-Identifier: Apache-2.0 */
/* Find an attribute wherever an object stores it, and format a tag. */
#ifndef TOMONODE_NODE_ATTRIBUTE_H
#define TOMONODE_NODE_ATTRIBUTE_H

#include "dicom/core/dataset.h"

/* A single-frame object (frame < 0) has all attributes at the root. In a multi-frame object, search in this order: a functional
 * group of the frame, a shared functional group, the root. */
struct header {
	const struct dicom_item *root;
	long frame; /* from 0, or -1: single-frame */
};

const struct dicom_item *header_find(const struct header *h, uint32_t tag); /* return the item that has a value of it, or NULL */
/* Return 1: found, 0: absent (or empty everywhere), negative: present but unreadable. */
int header_text(const struct header *h, uint32_t tag, char *ret_text, size_t size, struct err *err);
int header_double(const struct header *h, uint32_t tag, unsigned index, double *ret_value, struct err *err);
int header_long(const struct header *h, uint32_t tag, unsigned index, long *ret_value, struct err *err);

/* Format as "(0018,1510)", in a ring of four static buffers per thread, for messages. */
const char *tag_text(uint32_t tag);

#endif
