/* SPDX-License-Identifier: Apache-2.0 */
/* Encode one frame in lossless JPEG-LS (ISO 14495-1, transfer syntax 1.2.840.10008.1.2.4.80); several threads can encode
 * frames. */
#ifndef TOMONODE_DICOM_JPEGLS_H
#define TOMONODE_DICOM_JPEGLS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return the largest size, in bytes, of the code stream of a frame of 16-bit values: far above the 1.03 times the plain size that
 * full-range noise needs. */
size_t jpegls_bound(long columns, long rows);

/* values: rows x columns stored values, columns fastest, of which the low `bits` (2..16, as in BitsStored) are used; none may be
 * larger. ret_code: room for `size` bytes. ENOBUFS: the code stream needs more; jpegls_bound() is always enough. Thread-safe. */
int jpegls_encode(const uint16_t *values, long columns, long rows, int bits, void *ret_code, size_t size, size_t *ret_n,
		  struct err *err);

#ifdef __cplusplus
}
#endif
#endif
