/* SPDX-License-Identifier: Apache-2.0 */
/* Find an attribute in the root of an object or in its functional groups; format a tag for messages. */
#ifndef TOMONODE_NODE_ATTRIBUTE_H
#define TOMONODE_NODE_ATTRIBUTE_H

#include "dicom/core/dataset.h"

/* Where to search for attributes: one frame of an object. A single-frame object (frame < 0) has all attributes in the root. In a
 * multi-frame object they are searched in this order: functional groups of the frame, shared functional groups, root. */
struct header {
	const struct dicom_item *root;
	long frame; /* from 0, or -1: single-frame */
};

const struct dicom_item *header_find(const struct header *h, uint32_t tag); /* return the item with a value of the tag, or NULL */
/* Get a value; index: from 0. Return 1: found, 0: absent or empty in all of these places, negative: present but not readable. */
int header_text(const struct header *h, uint32_t tag, char *ret_text, size_t size, struct err *err);
int header_double(const struct header *h, uint32_t tag, unsigned index, double *ret_value, struct err *err);
int header_long(const struct header *h, uint32_t tag, unsigned index, long *ret_value, struct err *err);

/* Get n values of the root. EBADMSG: they are not there, or not numbers; the text names the tag. */
int attribute_numbers(const struct dicom_item *root, uint32_t tag, double *ret, unsigned n, struct err *err);

/* Return the block of a private creator in a group of an item: the elements (group,BLOCKee) are its own. 0: there is none. */
unsigned private_block(const struct dicom_item *item, uint16_t group, const char *creator);

/* Format a tag as "(0018,1510)". The text is in a static buffer of the thread; the fourth call after this one overwrites it. */
const char *tag_text(uint32_t tag);

#endif
