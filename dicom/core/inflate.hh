/* A deflated data set (PS3.5 A.5) inflated into a file without a name. */
#ifndef TOMONODE_DICOM_INFLATE_HH
#define TOMONODE_DICOM_INFLATE_HH

#include <memory>

#include "dicom/core/source.hh"

namespace tomonode
{

/* The bytes of `source` from `offset` to its end are one raw deflate stream (at most one byte of padding follows). The copy lies
 * in the folder of `path`, or in memory where that folder takes no such file; EFBIG above `most` bytes. */
int inflate_rest(const Source &source, uint64_t offset, const char *path, uint64_t most, std::shared_ptr<const Source> *ret_copy,
		 struct err *err);

} // namespace tomonode
#endif
