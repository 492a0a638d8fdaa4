/* SPDX-License-Identifier: Apache-2.0 */
/* dbt_shape.c - the start image with the shape of the breast. It is computed on the host from cells of about 1 mm, so it is the same
 * on all devices; only the columns, two values for each column of voxels, go to the device. */
#include <stdio.h>

#include "kernels/shape.h"
#include "recon/dbt/dbt_internal.h"

static size_t slice_voxels(const struct dbt_session *s)
{
	return (size_t)s->plan->grid.n[0] * (size_t)s->plan->grid.n[1];
}

size_t dbt_shape_host_bytes(const struct dbt_protocol *p, const struct dbt_plan *plan)
{
	return dbt_has_shape(p) ? 2 * (size_t)plan->grid.n[0] * (size_t)plan->grid.n[1] * sizeof(float) : 0;
}

int dbt_shape_open(struct dbt_session *s, struct err *err)
{
	if (!dbt_has_shape(s->p))
		return 0;
	return session_host(&s->memory, 2 * slice_voxels(s) * sizeof(float), (void **)&s->host_columns, err);
}

int dbt_shape_find(struct dbt_session *s, struct dbt_report *report, struct err *err)
{
	int r;

	if (!dbt_has_shape(s->p))
		return 0;
	if (s->no_shape[0]) {
		report->shape.asked = true;
		snprintf(report->shape.reason, sizeof(report->shape.reason), "%s", s->no_shape);
		return 0;
	}
	r = breast_shape_find(s->layout.scan, &s->cells, s->cell_means, &s->plan->grid, &s->shape, err);
	if (r == 0 && s->shape.square)
		for (int upper = 0; upper < 2; upper++)
			breast_shape_columns(&s->shape, &s->plan->grid, upper, s->host_columns + (upper ? slice_voxels(s) : 0));
	report->shape = s->shape.report;
	return r;
}

/* Return the columns of the surface that is nearer to a slice. */
static const float *columns_of(const struct dbt_session *s, bool upper)
{
	return s->host_columns + (upper ? slice_voxels(s) : 0);
}

/* Multiply a volume in host memory. */
static void apply_streamed(struct dbt_session *s)
{
	size_t n = slice_voxels(s);

#pragma omp parallel for schedule(static)
	for (int k = 0; k < s->plan->grid.n[2]; k++) {
		bool upper;
		float away = breast_shape_away(&s->shape, &s->plan->grid, k, &upper), *x = s->stream.x + (size_t)k * n;
		const float *columns = columns_of(s, upper);

		for (size_t i = 0; i < n; i++)
			x[i] *= shape_weight(columns[i], away, BREAST_SHAPE_FLOOR);
	}
}

int dbt_shape_apply(struct dbt_session *s, struct err *err)
{
	size_t n = slice_voxels(s);
	bool upper, uploaded = false;
	int r = 0;

	if (!s->shape.square)
		return 0;
	if (s->streamed) {
		apply_streamed(s);
		return 0;
	}
	for (int k = 0; r == 0 && k < s->plan->grid.n[2]; k++) { /* from the lowest slice on: the surface changes once */
		float away = breast_shape_away(&s->shape, &s->plan->grid, k, &upper);
		struct buf slice = buf_part(&s->x, (size_t)k * n, n);

		if (k == 0 || upper != uploaded)
			r = s->dev->ops->upload(&s->columns, columns_of(s, upper), err);
		uploaded = upper;
		if (r == 0)
			r = s->dev->ops->shape(&s->columns, away, BREAST_SHAPE_FLOOR, &slice, err);
	}
	return r;
}

void dbt_forgo_shape(struct dbt_session *s, const char *reason)
{
	snprintf(s->no_shape, sizeof(s->no_shape), "%s", reason);
}
