/* SPDX-License-Identifier: Apache-2.0 */
/* Decode frames of encapsulated pixel data one at a time, with DCMTK's codecs and OpenJPEG. */
#ifndef TOMONODE_DICOM_DECODE_HH
#define TOMONODE_DICOM_DECODE_HH

#include <vector>

#include "dicom/core/dataset.h"
#include "dicom/core/pixel_info.h"

namespace tomonode
{

/* Check that the transfer syntax can be decoded (ENOTSUP), and that each fragment can be assigned to a frame (EBADMSG).
 * ret_first: for dicom_file.frame_first. */
int decode_check(const struct dicom_file *file, const struct dicom_pixel_info *info, std::vector<size_t> *ret_first,
		 struct err *err);

/* Decode frame number `frame` (from 0) into ret_values: rows * columns values. Needs file->frame_first. */
int decode_frame(const struct dicom_file *file, const struct dicom_pixel_info *info, long frame, uint16_t *ret_values,
		 struct err *err);

/* Decode a code stream in JPEG-LS lossless (ISO 14495-1) to rows * columns values. EBADMSG: also if its header differs from info.
 */
int decode_jpegls(const std::vector<unsigned char> &code, const struct dicom_pixel_info *info, uint16_t *ret_values,
		  struct err *err);

} // namespace tomonode
#endif
