/* SPDX-License-Identifier: Apache-2.0 */
/* Types and functions that the sources of dicom/ share, not visible in the C headers.
 *
 * The C++ dialect of dicom/:
 * - C++17. Containers, strings and smart pointers come from std::. DCMTK's own types (OFCondition, OFBool, OFString) appear only
 *   where its interface requires them.
 * - What several sources share is in the namespace tomonode. Functions of one source are static, types of one source are in an
 *   unnamed namespace (as in the LLVM coding standards). Types of the C interface are global; a source that implements the C
 *   interface has `using namespace tomonode`, and extern "C" is in the header only.
 * - Functions and variables are named as in C. C++ types begin with a capital letter, private members end with an underscore.
 *   Constants are constexpr, not macros.
 * - Include <cstring>, not <string.h>. Cast numbers as in C, pointers with static_cast or reinterpret_cast.
 * - No exception crosses the C interface: see guarded(). */
#ifndef TOMONODE_DICOM_INTERNAL_HH
#define TOMONODE_DICOM_INTERNAL_HH

#include <memory>
#include <string>
#include <vector>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dctk.h>

#include "dicom/core/dataset.h"
#include "dicom/core/guarded.hh"
#include "dicom/core/layout.hh"
#include "dicom/core/pixel_info.h"

/* A data set. If it was read from a file, `source` and `layout` are set, and `dataset` has an empty (7FE0,0010): DCMTK never
 * reads the pixel data. */
struct dicom_file {
	DcmDataset dataset;
	std::string transfer_syntax;
	std::shared_ptr<const tomonode::Source> source; /* NULL: a new data set, not read from a file */
	tomonode::Layout layout;
	struct dicom_pixel_info pixels = {}; /* frames 0: dicom_pixels_info() has not yet succeeded */
	/* Of encapsulated pixel data, set with `pixels`: the first fragment of each frame, and the last of all + 1. */
	std::vector<size_t> frame_first;
};

namespace tomonode
{

/* Convert between the pointers of the C interface and those of DCMTK. */
inline DcmItem *dcm(struct dicom_item *item)
{
	return reinterpret_cast<DcmItem *>(item);
}
/* DCMTK's look-up functions load values and are therefore not const, but they do not change the data set. */
inline DcmItem *dcm(const struct dicom_item *item)
{
	return reinterpret_cast<DcmItem *>(const_cast<struct dicom_item *>(item));
}
inline struct dicom_item *item_of(DcmItem *item)
{
	return reinterpret_cast<struct dicom_item *>(item);
}

inline DcmTagKey key_of(uint32_t tag)
{
	return DcmTagKey((Uint16)(tag >> 16), (Uint16)tag);
}

/* Find an element of the item itself, not inside a sequence. NULL: absent. */
DcmElement *find(const struct dicom_item *item, uint32_t tag);

/* Return the tag's VR in the dictionary; EVR_UNKNOWN: not in it. */
DcmEVR dictionary_vr(uint32_t tag);

/* Check the characters, components and length of a UID (PS3.5 9.1). */
bool uid_valid(const char *uid);

} // namespace tomonode
#endif
