/* SPDX-License-Identifier: Apache-2.0 */
/* Read and write large values in pieces, so that a value is never complete in memory.
 *
 * Only elements of the root of a data set, other than pixel data. Such an element has VR OB, OW, OF, OD, OL, OV or UN, or it is
 * any private element in implicit VR. Its bytes are returned as stored in the file. */
#ifndef TOMONODE_DICOM_BULK_H
#define TOMONODE_DICOM_BULK_H

#include "dicom/core/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DICOM_BULK_MAX ((uint64_t)0xfffffffe) /* largest value, bytes */

/* Return in *ret_size the size of the value in an opened file, in bytes with padding. False: the root has no such value. */
bool dicom_bulk_size(const struct dicom_file *file, uint32_t tag, uint64_t *ret_size);
/* Read n bytes of the value, beginning at `offset`. Several threads may read from one file. ENOENT: no such value; EINVAL: the
 * bytes are beyond its end. */
int dicom_bulk_read(const struct dicom_file *file, uint32_t tag, uint64_t offset, void *ret_bytes, size_t n, struct err *err);

/* Write a whole data set as dicom_write() does, with one additional element `tag` in its root: VR OB, `size` bytes. The data set
 * must not have that element yet. `read` is called repeatedly and supplies the next n bytes; a negative error that it returns
 * ends the writing and is returned. An odd size is padded. */
int dicom_write_bulk(const char *path, struct dicom_file *file, uint32_t tag, uint64_t size,
		     int (*read)(void *ctx, void *ret_bytes, size_t n, struct err *err), void *ctx, struct err *err);

/* Compute the SHA-256 of bytes that are added in pieces. */
struct dicom_digest;
struct dicom_digest *dicom_digest_new(void); /* NULL: out of memory */
void dicom_digest_add(struct dicom_digest *d, const void *bytes, size_t n);
void dicom_digest_hex(struct dicom_digest *d, char ret_hex[65]); /* return the digest; call it once, after the last bytes */
struct dicom_digest *dicom_digest_free(struct dicom_digest *d);	 /* accepts NULL; returns NULL */

#ifdef __cplusplus
}
#endif
#endif
