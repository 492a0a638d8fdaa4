/* SPDX-License-Identifier: Apache-2.0 */
/* Read and write large values of a data set's root (other than pixel data) in pieces, never whole in memory.
 *
 * Such a value has VR OB, OW, OF, OD, OL, OV or UN, or is any private element in implicit VR. Its bytes are returned as stored in
 * the file. */
#ifndef TOMONODE_DICOM_BULK_H
#define TOMONODE_DICOM_BULK_H

#include "dicom/core/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DICOM_BULK_MAX ((uint64_t)0xfffffffe) /* largest value, bytes */

/* Return in *ret_size the bytes of the value in an opened file, padding included. False: the root has no such value. */
bool dicom_bulk_size(const struct dicom_file *file, uint32_t tag, uint64_t *ret_size);
/* Read n bytes from `offset` on. Several threads may read from one file. ENOENT: no such value; EINVAL: beyond its end. */
int dicom_bulk_read(const struct dicom_file *file, uint32_t tag, uint64_t offset, void *ret_bytes, size_t n, struct err *err);

/* Write a whole data set as dicom_write() does, with a value of VR OB and `size` bytes as element `tag` of its root, which must
 * not exist yet. `read` is called for the bytes in ascending pieces; if it returns a negative error, the writing ends with it. An
 * odd size is padded. */
int dicom_write_bulk(const char *path, struct dicom_file *file, uint32_t tag, uint64_t size,
		     int (*read)(void *ctx, void *ret_bytes, size_t n, struct err *err), void *ctx, struct err *err);

/* Compute a SHA-256 from pieces. */
struct dicom_digest;
struct dicom_digest *dicom_digest_new(void); /* NULL: out of memory */
void dicom_digest_add(struct dicom_digest *d, const void *bytes, size_t n);
void dicom_digest_hex(struct dicom_digest *d, char ret_hex[65]); /* call it once, at the end */
struct dicom_digest *dicom_digest_free(struct dicom_digest *d);	 /* accepts NULL; returns NULL */

#ifdef __cplusplus
}
#endif
#endif
