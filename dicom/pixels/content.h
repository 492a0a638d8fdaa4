/* SPDX-License-Identifier: Apache-2.0 */
/* Compare two objects that were received under one SOP Instance UID by what they say, not by their bytes: another transfer
 * syntax without loss keeps the UID (PS3.3 C.7.6.1.1.5), and is the same content. */
#ifndef TOMONODE_DICOM_CONTENT_H
#define TOMONODE_DICOM_CONTENT_H

#include "dicom/core/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

enum dicom_content {
	DICOM_CONTENT_SAME,    /* all attributes have the same values, and all pixels are equal */
	DICOM_CONTENT_DIFFERS, /* or it is not known: the comparison would take longer than `seconds` */
	DICOM_CONTENT_REPAIRS, /* the pixels of the newer object can be read, those of the older one cannot */
};

#define DICOM_CONTENT_NAMES 4

/* Compare two files. ret_where: names of what differs, the first DICOM_CONTENT_NAMES attributes, without values; "": nothing.
 * seconds: of processor time, checked after each frame. Memory: a few frames. An error is that of dicom_open(), or no memory. Not
 * for files that another thread uses. */
int dicom_compare_content(const char *older, const char *newer, double seconds, enum dicom_content *ret_content, char *ret_where,
			  size_t size, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
