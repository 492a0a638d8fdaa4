/* SPDX-License-Identifier: Apache-2.0 */
/* The form in which the values of an image are stored: unsigned integers of 16 bits. Every device computes the same bits: the
 * three operations are rounded one by one. C11, C++17, CUDA C++. */
#ifndef TOMONODE_KERNELS_STORED_H
#define TOMONODE_KERNELS_STORED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/geometry.h"

struct stored_form {
	float offset, per_step;	      /* stored = (value - offset) * per_step, rounded; per_step > 0 */
	float top;		      /* the largest stored value, at most 65535: larger ones are limited to it */
	size_t columns, rows;	      /* of the image */
	bool turn_columns, turn_rows; /* store columns, rows in the opposite order */
	bool padded;		      /* the stored value 0 is that of the value 0, of no voxel else: others are at least 1 */
};

/* Return the stored value. A negative one and NaN give 0. */
static inline TOMONODE_HD uint16_t stored_value(float value, float offset, float per_step, float top)
{
#ifdef __CUDA_ARCH__
	float steps = __fadd_rn(__fmul_rn(__fsub_rn(value, offset), per_step), 0.5f);
#else
	float steps = (value - offset) * per_step + 0.5f; /* compiled without contraction to a fused multiply-add */
#endif

	steps = steps > 0 ? steps : 0; /* false for NaN */
	return (uint16_t)(int)(steps < top ? steps : top);
}

/* The same with the form's padding. */
static inline TOMONODE_HD uint16_t stored_voxel(const struct stored_form *form, float value)
{
	uint16_t stored = stored_value(value, form->offset, form->per_step, form->top);

	return !form->padded ? stored : value == 0 ? 0 : stored > 0 ? stored : 1;
}

/* Return where the stored row i is in the image. */
static inline TOMONODE_HD size_t stored_row_at(const struct stored_form *form, size_t i)
{
	return (form->turn_rows ? form->rows - 1 - i : i) * form->columns;
}

#ifndef __CUDACC__
/* Convert rows [first, end) of the image of columns * rows floats; ret_values: the whole stored image. */
void stored_rows(const struct stored_form *form, const float *image, size_t first, size_t end, uint16_t *ret_values);
#endif

#endif
