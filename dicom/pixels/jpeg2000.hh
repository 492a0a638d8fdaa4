/* SPDX-License-Identifier: Apache-2.0 */
/* Decode one frame in lossless JPEG 2000 (ISO 15444-1, transfer syntaxes 1.2.840.10008.1.2.4.90 and .91), with OpenJPEG. */
#ifndef TOMONODE_DICOM_JPEG2000_HH
#define TOMONODE_DICOM_JPEG2000_HH

#include <cstdint>
#include <vector>

#include "dicom/core/pixel_info.h"
#include "kernels/err.h"

namespace tomonode
{

/* Decode a code stream to rows * columns values; negative ones in two's complement of 16 bits. EBADMSG: it is damaged or
 * incomplete, or its size, number of components, sign or precision differs from `info`; ENOTSUP: it is lossy, or, with
 * `proved`, it cannot be told that it is not (jpeg2000_loss.hh). Several threads may decode at once. */
int jpeg2000_decode(const std::vector<unsigned char> &code, const struct dicom_pixel_info *info, bool proved,
		    uint16_t *ret_values, struct err *err);

} // namespace tomonode
#endif
