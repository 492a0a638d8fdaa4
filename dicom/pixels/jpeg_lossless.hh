/* SPDX-License-Identifier: Apache-2.0 */
/* Check that the coded data of lossless JPEG have all values of their frame. */
#ifndef TOMONODE_DICOM_JPEG_LOSSLESS_HH
#define TOMONODE_DICOM_JPEG_LOSSLESS_HH

#include <cstddef>

#include "kernels/err.h"

namespace tomonode
{

/* Count the values in the first scan of a code stream that codestream_check() accepted. EBADMSG: there are fewer than n_values,
 * or one has no Huffman code. */
int jpeg_lossless_check(const unsigned char *in, size_t size, size_t n_values, struct err *err);

} // namespace tomonode
#endif
