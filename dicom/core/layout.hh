/* SPDX-License-Identifier: Apache-2.0 */
/* Check the structure of a Part 10 file byte by byte before DCMTK parses any of it. */
#ifndef TOMONODE_DICOM_LAYOUT_HH
#define TOMONODE_DICOM_LAYOUT_HH

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dicom/core/dataset.h"
#include "dicom/core/source.hh"

namespace tomonode
{

/* Limits for opening a file; far above real objects. */
constexpr unsigned limit_depth = 16;		   /* depth of nested sequences */
constexpr size_t limit_elements = 500000;	   /* elements, items and fragments per file */
constexpr size_t limit_items = 16384;		   /* items per sequence */
constexpr size_t limit_creators = 4096;		   /* private creators of a data set or item, in all its groups */
constexpr size_t limit_private_lookups = 20000000; /* sum over all private elements of the creators that precede them */
constexpr uint64_t limit_inflated = 1ull << 28;	   /* bytes of a deflated data set after inflation */

/* A large value of the root that can be read in pieces: see dicom/core/bulk.h. */
struct BulkValue {
	uint32_t tag;
	Span span;
};

/* A private element of the root that may be a sequence. */
struct PrivateSequence {
	uint32_t tag, length; /* length: of its value, or 0xffffffff */
	uint64_t value;	      /* offset of its value */
	bool implicit;	      /* its items are in implicit VR little endian (VR UN, or the whole file) */
};

/* A value of bytes in an item of a sequence of the root. */
struct ItemValue {
	size_t item; /* number of the item, from 0 */
	uint32_t tag;
	Span span;
};

/* The structure of a file: where its data set, pixel data and large values are. All offsets are in bytes from the beginning of
 * the file (of the inflated copy, if the data set is deflated). */
struct Layout {
	std::string transfer_syntax; /* UID */
	bool explicit_vr = true, big_endian = false;
	uint64_t dataset = 0, end = 0; /* offsets of the data set's first byte and of the byte after its last */

	bool has_pixels = false;     /* the root has (7FE0,0010) */
	char pixel_vr[3] = "";	     /* VR of the pixel data: "OB" or "OW"; "OW" in implicit VR */
	uint64_t pixel_element = 0;  /* offset of the pixel data's tag */
	uint64_t pixel_end = 0;	     /* offset of the byte after the pixel data */
	Span pixels = {0, 0};	     /* value of the pixel data if they are not encapsulated */
	bool encapsulated = false;   /* the pixel data consist of fragments (PS3.5 A.4) */
	std::vector<Span> fragments; /* of encapsulated pixel data; [0]: the basic offset table */
	std::vector<BulkValue> bulk; /* ascending tags, without pixel data */
	std::vector<PrivateSequence> sequences;
	size_t n_elements = 0;	      /* elements, items and fragments at all depths */
	size_t n_private_lookups = 0; /* see limit_private_lookups */
};

/* Read the headers of all elements of the file and check: every declared length against the file's size, ascending unique tags,
 * depth of sequences, counts. EBADMSG: a violation; the message has tag, length and offset. ENOTSUP: a transfer syntax that
 * cannot be read. A deflated data set is inflated into the folder of `path`, and *source is replaced by the copy. */
int layout_read(std::shared_ptr<const Source> *source, const char *path, Layout *ret_layout, struct err *err);

/* List the values of bytes in the items of a private sequence of the root, in the order of the file, and return the number of
 * items. A value of VR UN is read as a sequence in implicit VR little endian (PS3.5 6.2.2 note 4), whatever its length. EBADMSG:
 * there is no such sequence, or its value is not one; checked as by layout_read(). */
int layout_item_values(const Source &source, const Layout &layout, uint32_t sequence, std::vector<ItemValue> *ret_values,
		       size_t *ret_items, struct err *err);

/* Return tag and keyword for messages, for example "(0018,1110) DistanceSourceToDetector". */
std::string tag_name(uint32_t tag);

} // namespace tomonode
#endif
