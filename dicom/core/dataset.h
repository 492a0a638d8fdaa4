/* SPDX-License-Identifier: Apache-2.0 */
/* DICOM data sets for C: open, look up, build, copy. Based on DCMTK; no C++ exception leaves these functions.
 *
 * - `struct dicom_file` owns a data set (read from disk or new); every `struct dicom_item` is borrowed from its file.
 * - Getters return 1 (found, not empty), 0 (absent or empty) or a negative error (present, but not readable as requested).
 * - Text is returned as stored, byte for byte; (0008,0005) names its character set.
 * - Opening reads everything except pixel data and other large values. These are read on request through the descriptor of the
 *   open file: meanwhile it may be renamed or removed, but not changed.
 * - Every length in a file is checked before it is used. Limits: sequences 16 deep, 16384 items per sequence, 500 000 elements,
 *   items and fragments per file, 1 GiB for an inflated deflated data set. Tags must ascend and be unique.
 * - Not thread-safe per file; different threads may use different files. */
#ifndef TOMONODE_DICOM_DATASET_H
#define TOMONODE_DICOM_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DICOM_TAG(group, element) (((uint32_t)(group) << 16) | (uint32_t)(element))
#define DICOM_UID_SIZE 65 /* 64 characters and the terminator */

/* Implementation that wrote a file: (0002,0012) and (0002,0013) of every object written by tomonode. */
#define DICOM_IMPLEMENTATION_CLASS "2.25.49244811257506316241709766226311810009"
#define DICOM_IMPLEMENTATION_NAME "TOMONODE"

struct dicom_file;
struct dicom_item;

/* Open a DICOM Part 10 file. EBADMSG: a truncated file, a wrong length or another kind of file, with the reason; ENOTSUP: a
 * transfer syntax whose elements cannot be parsed; EFBIG: a deflated data set above its limit. */
int dicom_open(const char *path, struct dicom_file **ret_file, struct err *err);
int dicom_new(const char *sop_class, const char *sop_instance, struct dicom_file **ret_file, struct err *err);
struct dicom_file *dicom_close(struct dicom_file *file); /* accepts NULL; returns NULL */

struct dicom_item *dicom_root(struct dicom_file *file);
const char *dicom_transfer_syntax(const struct dicom_file *file); /* UID */
/* Return the number of elements and items of an opened file at all depths; each uses about 200 bytes of memory while it is
 * open. */
size_t dicom_element_count(const struct dicom_file *file);

/* Find the tag of a keyword of PS3.6 ("PatientWeight"). False: the dictionary does not have it. */
bool dicom_tag_named(const char *keyword, uint32_t *ret_tag);

/* Does the item contain the tag (possibly empty)? */
bool dicom_has(const struct dicom_item *item, uint32_t tag);

/* Get the whole value with its backslashes, padding stripped. ret_text is always terminated. Binary numbers and AT are converted
 * to text; a value of VR UN is read with the dictionary's VR. EMSGSIZE: it does not fit; EINVAL: sequences and bulk data. */
int dicom_get_text(const struct dicom_item *item, uint32_t tag, char *ret_text, size_t size, struct err *err);
/* Get component `index` (0..) of a multi-valued text. */
int dicom_get_text_at(const struct dicom_item *item, uint32_t tag, unsigned index, char *ret_text, size_t size, struct err *err);
/* Get a value of any numeric VR (DS, IS, US, SS, UL, SL, UV, SV, FL, FD), or a text that is completely a number. EBADMSG: not a
 * finite number (get_int: not an integer); the message names tag and value. EINVAL: a VR without numbers. */
int dicom_get_double(const struct dicom_item *item, uint32_t tag, unsigned index, double *ret_value, struct err *err);
int dicom_get_int(const struct dicom_item *item, uint32_t tag, unsigned index, long *ret_value, struct err *err);

size_t dicom_item_count(const struct dicom_item *item, uint32_t sequence);
struct dicom_item *dicom_item_at(const struct dicom_item *item, uint32_t sequence, size_t index); /* NULL: no such item */

/* Put one value; the dictionary gives the VR (for "US or SS" PixelRepresentation decides, so put that first). Text may contain
 * several values separated by backslashes. An existing value is replaced. ERANGE, EMSGSIZE: the VR cannot hold the value; EINVAL:
 * the VR does not allow such a value. */
int dicom_put_text(struct dicom_item *item, uint32_t tag, const char *text, struct err *err);
int dicom_put_double(struct dicom_item *item, uint32_t tag, double value, struct err *err); /* DS with <= 16 characters; FD, FL */
int dicom_put_doubles(struct dicom_item *item, uint32_t tag, const double *values, size_t n, struct err *err);
int dicom_put_int(struct dicom_item *item, uint32_t tag, long value, struct err *err);
int dicom_put_uint32s(struct dicom_item *item, uint32_t tag, const uint32_t *values, size_t n, struct err *err); /* US, UL, AT */
/* Put a text or number of the given VR as element xx10EE; reserves the block at xx10 for the creator. EEXIST: another creator has
 * reserved it. */
int dicom_put_private(struct dicom_item *item, uint16_t group, const char *creator, uint8_t element, const char *vr,
		      const char *text, struct err *err);
/* Put an element or a sequence without value (type 2). */
int dicom_put_empty(struct dicom_item *item, uint32_t tag, struct err *err);
/* Append an item. NULL: error. */
struct dicom_item *dicom_add_item(struct dicom_item *item, uint32_t sequence, struct err *err);

/* Append an item to a code sequence: value, scheme, meaning. */
int dicom_add_code(struct dicom_item *item, uint32_t sequence, const char *value, const char *scheme, const char *meaning,
		   struct err *err);

/* Copy an element or a whole sequence unchanged. Return 1: copied; 0: not in the source (nothing is changed). Not for pixel
 * data. */
int dicom_copy(const struct dicom_item *from, uint32_t tag, struct dicom_item *to, struct err *err);

/* Compute a "2.25.<decimal>" UID from a SHA-256 of the text (RFC 9562 version 8 UUID): the same text gives the same UID. */
void dicom_uid_from_text(const char *text, char ret_uid[DICOM_UID_SIZE]);
/* Generate a random 2.25 UID (version 4 UUID). */
void dicom_uid_random(char ret_uid[DICOM_UID_SIZE]);
/* Compute the SHA-256 of the bytes, as 64 hexadecimal digits. */
void dicom_sha256(const void *bytes, size_t n, char ret_hex[65]);

/* Return "OphthalmicTomographyImageStorage" or a similar name; "unknown" if DCMTK does not know the UID. */
const char *dicom_uid_name(const char *uid);
/* Is it a storage SOP class: in DCMTK's list, under 1.2.840.10008.5.1.4.1.1, or private (a valid UID outside 1.2.840.10008)? */
bool dicom_is_storage_class(const char *uid);

#ifdef __cplusplus
}
#endif
#endif
