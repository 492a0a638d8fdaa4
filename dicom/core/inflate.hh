/* SPDX-License-Identifier: Apache-2.0 */
/* Inflate a deflated data set (PS3.5 A.5) into a file without a name. */
#ifndef TOMONODE_DICOM_INFLATE_HH
#define TOMONODE_DICOM_INFLATE_HH

#include <memory>

#include "dicom/core/source.hh"

namespace tomonode
{

/* Inflate the bytes of `source` from `offset` to its end: one raw deflate stream (and at most one byte of padding). The inflated
 * copy is stored in the folder of `path`, or in memory if that file system has no unnamed files. EFBIG: more than max_size
 * bytes. */
int inflate_rest(const Source &source, uint64_t offset, const char *path, uint64_t max_size,
		 std::shared_ptr<const Source> *ret_copy, struct err *err);

} // namespace tomonode
#endif
