/* A value in whole steps from an offset, as results are stored: the one place where they are rounded. C11, C++17, CUDA C++. */
#ifndef TOMONODE_KERNELS_STEPS_H
#define TOMONODE_KERNELS_STEPS_H

#include <math.h>

#include "kernels/geometry.h"

#define STEPS_TOP 65535.0f

/* Not limited to 0..STEPS_TOP; NaN stays NaN. */
static inline TOMONODE_HD float steps_of(float x, float offset, float step)
{
	return floorf((x - offset) / step + 0.5f);
}

/* Limited; NaN becomes 0. */
static inline TOMONODE_HD float steps_limited(float steps)
{
	return steps > 0 ? (steps < STEPS_TOP ? steps : STEPS_TOP) : 0;
}

#endif
