/* SPDX-License-Identifier: Apache-2.0 */
/* Check the header of a JPEG or JPEG-LS code stream against the object's description of its frames. */
#ifndef TOMONODE_DICOM_CODESTREAM_HH
#define TOMONODE_DICOM_CODESTREAM_HH

#include <cstddef>

#include "dicom/core/pixel_info.h"
#include "kernels/err.h"

namespace tomonode
{

/* Check that `in` is a lossless JPEG or JPEG-LS code stream of one frame as `info` describes it. EBADMSG: it is damaged, or its
 * size, number of components or precision differs; ENOTSUP: it is not lossless (another process, NEAR above 0, a point
 * transform), or its values are those of a mapping table. */
int codestream_check(const unsigned char *in, size_t in_size, bool jpeg_ls, const struct dicom_pixel_info *info, struct err *err);

} // namespace tomonode
#endif
