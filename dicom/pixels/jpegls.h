/* Lossless JPEG-LS of one frame (ISO 14495-1, transfer syntax 1.2.840.10008.1.2.4.80), for frames that several threads encode. */
#ifndef TOMONODE_DICOM_JPEGLS_H
#define TOMONODE_DICOM_JPEGLS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that the code stream of a frame of 16-bit values can need at most: far more than the 1.03 of the plain size that
 * full-range noise comes to. */
size_t jpegls_bound(long columns, long rows);

/* values: rows x columns stored values, columns fastest, of which `bits` (2..16, those of BitsStored) count; none may lie above.
 * ret_code: room for `size` bytes; ENOBUFS: the code stream needs more, jpegls_bound() is always enough. Thread-safe. */
int jpegls_encode(const uint16_t *values, long columns, long rows, int bits, void *ret_code, size_t size, size_t *ret_n,
		  struct err *err);

#ifdef __cplusplus
}
#endif
#endif
