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

/* Return an upper limit of the size of the code stream of a frame of 16-bit values, in bytes. (Even noise over the full range
 * needs only 1.03 times the uncompressed size.) */
size_t jpegls_bound(long columns, long rows);

/* Encode one frame. values: rows x columns stored values, the column index varies fastest; each is less than 2^bits (bits: 2..16,
 * as in BitsStored). ret_code: buffer of `size` bytes; *ret_n: number of bytes written to it. ENOBUFS: the buffer is too small;
 * jpegls_bound() bytes are always enough. Thread-safe. */
int jpegls_encode(const uint16_t *values, long columns, long rows, int bits, void *ret_code, size_t size, size_t *ret_n,
		  struct err *err);

#ifdef __cplusplus
}
#endif
#endif
