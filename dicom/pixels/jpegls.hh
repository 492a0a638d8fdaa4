/* SPDX-License-Identifier: Apache-2.0 */
/* Check that DCMTK calls the right one of the two CharLS libraries in this program: see jpegls.cc. */
#ifndef TOMONODE_DICOM_JPEGLS_HH
#define TOMONODE_DICOM_JPEGLS_HH

#include "kernels/err.h"

namespace tomonode
{

/* ELIBBAD: DCMTK's JPEG-LS codec would call functions of the CharLS that is not part of DCMTK. */
int jpegls_link_check(struct err *err);

} // namespace tomonode
#endif
