/* SPDX-License-Identifier: Apache-2.0 */
/* Process-wide initialisation of dicom/. */
#ifndef TOMONODE_DICOM_START_H
#define TOMONODE_DICOM_START_H

#include "kernels/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Call it once per process before any other function of dicom/: load the dictionary and the codecs, disable DCMTK's own logger.
 * ENOENT: no data dictionary; ELIBBAD: the program is linked with the wrong JPEG-LS library. */
int dicom_start(struct err *err);
void dicom_stop(void); /* free the codecs; dicom_start() may be called again */

#ifdef __cplusplus
}
#endif
#endif
