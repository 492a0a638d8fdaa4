/* SPDX-License-Identifier: Apache-2.0 */
/* Decode one frame in DICOM's run length encoding (PS3.5 annex G). */
#ifndef TOMONODE_DICOM_RLE_HH
#define TOMONODE_DICOM_RLE_HH

#include <cstddef>
#include <cstdint>

#include "kernels/err.h"

namespace tomonode
{

/* Decode a frame of n values of `bytes_per_value` (1 or 2) bytes from its fragment. EBADMSG: wrong number of segments, or a
 * segment with less than n values. */
int rle_decode(const unsigned char *in, size_t in_size, size_t n, unsigned bytes_per_value, uint16_t *ret_values,
	       struct err *err);

} // namespace tomonode
#endif
