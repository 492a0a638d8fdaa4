/* The check that the two CharLS of this program are not mistaken for each other: see jpegls.cc. */
#ifndef TOMONODE_DICOM_JPEGLS_HH
#define TOMONODE_DICOM_JPEGLS_HH

#include "kernels/err.h"

namespace tomonode
{

/* ELIBBAD: DCMTK's JPEG-LS codec would call a function of another library. */
int jpegls_link_check(struct err *err);

} // namespace tomonode
#endif
