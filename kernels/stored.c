/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/stored.h"

static void convert_row(const struct stored_form *form, const float *restrict from, uint16_t *restrict to)
{
	float offset = form->offset, per_step = form->per_step, top = form->top;
	size_t n = form->columns;

	if (form->padded) {
		for (size_t j = 0; j < n; j++)
			to[j] = stored_voxel(form, from[form->turn_columns ? n - 1 - j : j]);
		return;
	}
	if (form->turn_columns)
		for (size_t j = 0; j < n; j++)
			to[j] = stored_value(from[n - 1 - j], offset, per_step, top);
	else
		for (size_t j = 0; j < n; j++)
			to[j] = stored_value(from[j], offset, per_step, top);
}

void stored_rows(const struct stored_form *form, const float *image, size_t first, size_t end, uint16_t *ret_values)
{
	for (size_t i = first; i < end; i++)
		convert_row(form, image + stored_row_at(form, i), ret_values + i * form->columns);
}
