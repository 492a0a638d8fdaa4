/* SPDX-License-Identifier: Apache-2.0 */
/* Weight of a voxel in a start image with a soft surface. C11, C++17 and CUDA C++; one body, whose result has the same bits on all
 * devices: it only subtracts and compares. */
#ifndef TOMONODE_KERNELS_SHAPE_H
#define TOMONODE_KERNELS_SHAPE_H

#include "kernels/geometry.h"

/* column: of the voxel's column, distance of its surface from a plane over the width of the surface, plus 1/2; away: distance of the
 * voxel's slice from that plane over the width of the surface. Returns least .. 1. */
static inline TOMONODE_HD float shape_weight(float column, float away, float least)
{
	float w = column - away;

	return w < least ? least : w > 1 ? 1 : w;
}

#endif
