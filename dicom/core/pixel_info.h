/* SPDX-License-Identifier: Apache-2.0 */
/* Size of an object's frames and format of its stored values, from the attributes that describe (7FE0,0010) Pixel Data. */
#ifndef TOMONODE_DICOM_PIXEL_INFO_H
#define TOMONODE_DICOM_PIXEL_INFO_H

#include <stdbool.h>

struct dicom_pixel_info {
	long rows, columns, frames;
	int bits_allocated; /* bits of memory for each value: 8 or 16 */
	int bits_stored;    /* bits that are used, from bit 0 up to high_bit */
	int high_bit;	    /* bits_stored - 1 */
	bool is_signed;	    /* two's complement */
};

#endif
