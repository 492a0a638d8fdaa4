/* SPDX-License-Identifier: Apache-2.0 */
/* The encoding of an object's stored values, from the attributes that describe (7FE0,0010). */
#ifndef TOMONODE_DICOM_PIXEL_INFO_H
#define TOMONODE_DICOM_PIXEL_INFO_H

#include <stdbool.h>

struct dicom_pixel_info {
	long rows, columns, frames;
	int bits_allocated, bits_stored, high_bit;
	bool is_signed;
};

#endif
