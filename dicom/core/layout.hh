/* The shape of a Part 10 file, checked byte by byte before DCMTK sees any of it. */
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

/* Limits of what is opened at all; far above what the objects of this trade hold. */
constexpr unsigned limit_depth = 16;		/* sequences within sequences */
constexpr size_t limit_elements = 500000;	/* elements, items and fragments of a file */
constexpr size_t limit_items = 16384;		/* items of one sequence */
constexpr uint64_t limit_inflated = 1ull << 30; /* bytes of a deflated data set once inflated */

/* A value of the root that is bytes to us: see dicom/core/bulk.h. */
struct BulkValue {
	uint32_t tag;
	Span span;
};

struct Layout {
	std::string transfer_syntax;
	bool explicit_vr = true, big_endian = false;
	uint64_t dataset = 0, end = 0; /* offsets of the data set's first byte and of the byte after its last */

	bool has_pixels = false;    /* (7FE0,0010) in the data set itself */
	char pixel_vr[3] = "";	    /* "OB", "OW"; "OW" in implicit VR */
	uint64_t pixel_element = 0; /* offset of its tag */
	uint64_t pixel_end = 0;	    /* offset of what follows it */
	Span pixels = {0, 0};	    /* its value when it is not encapsulated */
	bool encapsulated = false;
	std::vector<Span> fragments; /* [0]: the basic offset table */
	std::vector<BulkValue> bulk; /* tags ascend; pixel data are not among them */
	size_t n_elements = 0;	     /* elements, items and fragments, at every depth */
};

/* Walk the whole file: every declared length against what is there, order and uniqueness of tags, depth, counts.
 * EBADMSG: what is wrong, with tag, length and place; ENOTSUP: a transfer syntax whose bytes cannot be read.
 * `path` names the folder for the inflated copy of a deflated file; *source is replaced by that copy then. */
int layout_read(std::shared_ptr<const Source> *source, const char *path, Layout *ret_layout, struct err *err);

/* "(0018,1110) DistanceSourceToDetector" */
std::string tag_name(uint32_t tag);

} // namespace tomonode
#endif
