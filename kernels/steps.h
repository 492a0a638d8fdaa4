/* SPDX-License-Identifier: Apache-2.0 */
/* Convert a value into whole steps above an offset, the form in which results are stored. Values are rounded only here. C11,
 * C++17, CUDA C++. */
#ifndef TOMONODE_KERNELS_STEPS_H
#define TOMONODE_KERNELS_STEPS_H

#include <math.h>

#include "kernels/geometry.h"

#define STEPS_TOP 65535.0f

/* Return the rounded number of steps, not limited to 0..STEPS_TOP; NaN stays NaN. */
static inline TOMONODE_HD float steps_of(float x, float offset, float step)
{
	return floorf((x - offset) / step + 0.5f);
}

/* Limit steps to 0..STEPS_TOP; NaN becomes 0. */
static inline TOMONODE_HD float steps_limited(float steps)
{
	return steps > 0 ? (steps < STEPS_TOP ? steps : STEPS_TOP) : 0;
}

#endif
