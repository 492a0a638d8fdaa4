/* Large values of a data set's root (other than pixel data), read and written in pieces: never whole in memory.
 *
 * A value here is what has VR OB, OW, OF, OD, OL, OV or UN, and in implicit VR any private one: bytes as they stand in the file.
 */
#ifndef TOMONODE_DICOM_BULK_H
#define TOMONODE_DICOM_BULK_H

#include "dicom/core/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DICOM_BULK_MAX ((uint64_t)0xfffffffe) /* bytes of one value */

/* Bytes of the value in an opened file, padding included. False: there is no such value at the root. */
bool dicom_bulk_size(const struct dicom_file *file, uint32_t tag, uint64_t *ret_size);
/* n of them from `offset` on. Several threads may read from one file. ENOENT: no such value; EINVAL: beyond its end. */
int dicom_bulk_read(const struct dicom_file *file, uint32_t tag, uint64_t offset, void *ret_bytes, size_t n, struct err *err);

/* A whole data set, written as dicom_write() does, with a value of VR OB and `size` bytes as element `tag` of its root, which
 * must not be there yet. `read` is asked for the bytes in ascending pieces; what it returns below 0 ends the writing. An odd
 * size is padded. */
int dicom_write_bulk(const char *path, struct dicom_file *file, uint32_t tag, uint64_t size,
		     int (*read)(void *ctx, void *ret_bytes, size_t n, struct err *err), void *ctx, struct err *err);

/* SHA-256 in pieces. */
struct dicom_digest;
struct dicom_digest *dicom_digest_new(void); /* NULL: no memory */
void dicom_digest_add(struct dicom_digest *d, const void *bytes, size_t n);
void dicom_digest_hex(struct dicom_digest *d, char ret_hex[65]); /* once, at the end */
struct dicom_digest *dicom_digest_free(struct dicom_digest *d);	 /* takes NULL, returns NULL */

#ifdef __cplusplus
}
#endif
#endif
