/* SPDX-License-Identifier: Apache-2.0 */
/* Check that calls to the two CharLS libraries in this program are not mixed up: see jpegls.cc. */
#ifndef TOMONODE_DICOM_JPEGLS_HH
#define TOMONODE_DICOM_JPEGLS_HH

#include "kernels/err.h"

namespace tomonode
{

/* ELIBBAD: DCMTK's JPEG-LS codec would call a function of the other library. */
int jpegls_link_check(struct err *err);

} // namespace tomonode
#endif
