/* SPDX-License-Identifier: Apache-2.0 */
#include "node/format/volume_element.h"

#include <stdint.h>
#include <string.h>

size_t volume_element_size(enum volume_element type)
{
	static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 8};

	return sizes[type];
}

double volume_element_at(enum volume_element type, bool most_significant_first, const unsigned char *bytes)
{
	size_t n = volume_element_size(type);
	uint64_t u = 0;
	double f64;
	float f32;

	for (size_t i = 0; i < n; i++)
		u |= (uint64_t)bytes[most_significant_first ? n - 1 - i : i] << (8 * i);
	switch (type) {
	case ELEMENT_S8:
		return (int8_t)u;
	case ELEMENT_S16:
		return (int16_t)u;
	case ELEMENT_S32:
		return (int32_t)u;
	case ELEMENT_F32:
		memcpy(&f32, &(uint32_t){(uint32_t)u}, sizeof(f32));
		return (double)f32;
	case ELEMENT_F64:
		memcpy(&f64, &u, sizeof(f64));
		return f64;
	default:
		return (double)u;
	}
}
