/* SPDX-License-Identifier: Apache-2.0 */
/* Tell DICOM files from others, before they are opened as such. */
#ifndef TOMONODE_NODE_DICOM_MARK_H
#define TOMONODE_NODE_DICOM_MARK_H

#include "kernels/err.h"

enum dicom_mark { DICOM_MARK_NONE, DICOM_MARK_OBJECT, DICOM_MARK_DIRECTORY };
/* Has the file the mark of DICOM, "DICM" at byte 128? DICOM_MARK_DIRECTORY: it is the directory of a CD (DICOMDIR, PS3.10 8.6),
 * whatever its name, which has no image and no SOP Class UID. An error is that the file cannot be opened or read: then nobody
 * knows whether it belongs to what is being looked for, and it must not be passed over. */
int dicom_mark_find(const char *path, enum dicom_mark *ret_mark, struct err *err);

#endif
