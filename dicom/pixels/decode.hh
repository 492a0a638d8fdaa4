/* Frames of encapsulated pixel data, one at a time through DCMTK's codecs. */
#ifndef TOMONODE_DICOM_DECODE_HH
#define TOMONODE_DICOM_DECODE_HH

#include "dicom/core/dataset.h"
#include "dicom/core/pixel_info.h"

namespace tomonode
{

/* Is the syntax one that is decoded, and can its fragments be told apart into frames? ENOTSUP, EBADMSG. */
int decode_check(const struct dicom_file *file, const struct dicom_pixel_info *info, struct err *err);

/* rows * columns values. */
int decode_frame(const struct dicom_file *file, const struct dicom_pixel_info *info, long frame, uint16_t *ret_values,
		 struct err *err);

} // namespace tomonode
#endif
