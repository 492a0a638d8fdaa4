/* SPDX-License-Identifier: Apache-2.0 */
/* DICOM data sets for C: open, look up, build, copy. Based on DCMTK; no C++ exception leaves these functions.
 *
 * - `struct dicom_file` owns a data set (read from disk or new). A `struct dicom_item` is the root of the data set or an item of
 * a sequence; it is borrowed from the file and valid until the file is closed.
 * - Getters return 1 (found, not empty), 0 (absent or empty) or a negative error (present, but not readable as requested).
 * - Text is returned as stored, byte for byte; (0008,0005) names its character set.
 * - Opening reads everything except pixel data and other large values. These are read on request through the open file
 *   descriptor: until dicom_close() the file may be renamed or removed, but not changed.
 * - Every length in a file is checked before it is used. Limits: sequences 16 deep, 16384 items per sequence, 500 000 elements,
 *   items and fragments per file, 256 MiB for an inflated deflated data set. Tags must ascend and be unique.
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

/* Open a DICOM Part 10 file. EBADMSG: the file is truncated, has a wrong length or is not DICOM; the message has the reason.
 * ENOTSUP: its transfer syntax cannot be parsed; EFBIG: its deflated data set inflates to more than 256 MiB. */
int dicom_open(const char *path, struct dicom_file **ret_file, struct err *err);
/* Create a data set with these two UIDs, in memory. EINVAL: one of them is not a UID. */
int dicom_new(const char *sop_class, const char *sop_instance, struct dicom_file **ret_file, struct err *err);
struct dicom_file *dicom_close(struct dicom_file *file); /* accepts NULL; returns NULL */

struct dicom_item *dicom_root(struct dicom_file *file);
const char *dicom_transfer_syntax(const struct dicom_file *file); /* its UID, borrowed */
/* Return the number of elements and items of an opened file, including those inside sequences. Each uses about 200 bytes of
 * memory while the file is open. */
size_t dicom_element_count(const struct dicom_file *file);

/* Return in *ret_tag the tag of a PS3.6 keyword ("PatientWeight"). False: the dictionary does not have the keyword. */
bool dicom_tag_named(const char *keyword, uint32_t *ret_tag);

/* Does the item contain the tag (possibly empty)? */
bool dicom_has(const struct dicom_item *item, uint32_t tag);

/* Get the whole value as text: with the backslashes between several values, without padding, always terminated. Binary numbers
 * and tags (VR AT) are converted to text; a value of VR UN is read with the dictionary's VR. EMSGSIZE: longer than size - 1
 * bytes; EBADMSG: a sequence or binary data has no text. */
int dicom_get_text(const struct dicom_item *item, uint32_t tag, char *ret_text, size_t size, struct err *err);
/* Get a text of the root as UTF-8, converted by the Specific Character Set (0008,0005). EBADMSG: the set is not known, or the
 * text is not valid in it. */
int dicom_get_utf8(const struct dicom_item *root, uint32_t tag, char *ret_text, size_t size, struct err *err);
/* Get one of several values of a text; index: from 0. */
int dicom_get_text_at(const struct dicom_item *item, uint32_t tag, unsigned index, char *ret_text, size_t size, struct err *err);
/* Get a number; index: from 0. The element has a numeric VR (DS, IS, US, SS, UL, SL, UV, SV, FL, FD), or a text that consists of
 * a number only. EBADMSG: not a finite number (get_int: not an integer); the message names tag and value; or its VR
 * cannot contain numbers. */
int dicom_get_double(const struct dicom_item *item, uint32_t tag, unsigned index, double *ret_value, struct err *err);
int dicom_get_int(const struct dicom_item *item, uint32_t tag, unsigned index, long *ret_value, struct err *err);

/* Get all 16-bit words of a binary value (US, SS, OW; OB and UN: two bytes each, the lower first). *ret_n: their number, at most
 * `max`. EMSGSIZE: there are more; EBADMSG: its VR has no words. */
int dicom_get_words(const struct dicom_item *item, uint32_t tag, uint16_t *ret_words, size_t max, size_t *ret_n, struct err *err);

size_t dicom_item_count(const struct dicom_item *item, uint32_t sequence); /* number of items; 0: no such sequence */
struct dicom_item *dicom_item_at(const struct dicom_item *item, uint32_t sequence, size_t index); /* NULL: no such item */

/* Put an element with the given value; an existing one is replaced. Its VR is that of the dictionary (where this is "US or SS",
 * PixelRepresentation decides, so put that first). Text may contain several values separated by backslashes. ERANGE, EMSGSIZE:
 * the value is out of range or too long for the VR; EINVAL: the VR does not allow such a value, or the tag is not in the
 * dictionary. */
int dicom_put_text(struct dicom_item *item, uint32_t tag, const char *text, struct err *err);
/* Return what is allowed as text of an element ("a date YYYYMMDD"), if this text is not, by the VR of the dictionary; NULL: it
 * is. */
const char *dicom_text_allowed(uint32_t tag, const char *text);
int dicom_put_double(struct dicom_item *item, uint32_t tag, double value, struct err *err); /* DS with <= 16 characters; FD, FL */
int dicom_put_doubles(struct dicom_item *item, uint32_t tag, const double *values, size_t n, struct err *err);
int dicom_put_int(struct dicom_item *item, uint32_t tag, long value, struct err *err);
int dicom_put_uint32s(struct dicom_item *item, uint32_t tag, const uint32_t *values, size_t n, struct err *err); /* US, UL, AT */
/* Put a private element (group,10EE) with this VR, EE being `element`, and (group,0010) with the name of the private creator.
 * EEXIST: (group,0010) has the name of another creator. */
int dicom_put_private(struct dicom_item *item, uint16_t group, const char *creator, uint8_t element, const char *vr,
		      const char *text, struct err *err);
/* Put an element or a sequence without a value (as type 2 attributes may be). */
int dicom_put_empty(struct dicom_item *item, uint32_t tag, struct err *err);
/* Append a new item to a sequence, which is created if it is absent. NULL: error. */
struct dicom_item *dicom_add_item(struct dicom_item *item, uint32_t sequence, struct err *err);

/* Append an item to a code sequence: value, scheme, meaning. */
int dicom_add_code(struct dicom_item *item, uint32_t sequence, const char *value, const char *scheme, const char *meaning,
		   struct err *err);

/* Copy an element or a whole sequence unchanged. Return 1: copied; 0: `from` does not have it, and `to` is unchanged. Pixel data
 * cannot be copied (EINVAL). */
int dicom_copy(const struct dicom_item *from, uint32_t tag, struct dicom_item *to, struct err *err);

/* Compute a "2.25.<decimal>" UID from a SHA-256 of the text (RFC 9562 version 8 UUID): the same text gives the same UID. */
void dicom_uid_from_text(const char *text, char ret_uid[DICOM_UID_SIZE]);
/* Generate a random 2.25 UID (version 4 UUID). */
void dicom_uid_random(char ret_uid[DICOM_UID_SIZE]);
/* Compute the SHA-256 of the bytes, as 64 hexadecimal digits. */
void dicom_sha256(const void *bytes, size_t n, char ret_hex[65]);
/* Compute the HMAC-SHA256 (RFC 2104) of the bytes. */
void dicom_hmac_sha256(const void *key, size_t n_key, const void *bytes, size_t n, uint8_t ret_mac[32]);

/* Return DCMTK's name of a UID, for example "OphthalmicTomographyImageStorage"; "unknown" if DCMTK has none. */
const char *dicom_uid_name(const char *uid);
/* Is it a storage SOP class: in DCMTK's list, under 1.2.840.10008.5.1.4.1.1, or private (a valid UID outside 1.2.840.10008)? */
bool dicom_is_storage_class(const char *uid);

#ifdef __cplusplus
}
#endif
#endif
