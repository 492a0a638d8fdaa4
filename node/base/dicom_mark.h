/* SPDX-License-Identifier: Apache-2.0 */
/* Tell DICOM files from others, before they are opened as such. */
#ifndef TOMONODE_NODE_DICOM_MARK_H
#define TOMONODE_NODE_DICOM_MARK_H

#include <stdbool.h>

#include "kernels/err.h"

/* Has the file the mark of DICOM, "DICM" at byte 128? An error is that the file cannot be opened or read: then nobody knows
 * whether it belongs to what is being looked for, and it must not be passed over. */
int dicom_mark_find(const char *path, bool *ret_found, struct err *err);

#endif
