/* SPDX-License-Identifier: Apache-2.0 */
/* pet_slices.c - the start and the end of a session, by sinograms or events. Read slices: transpose from z fastest on the device to x fastest.
 *
 * Outside the field of view the result is 0, even where a filter has spread values. A post-filter assumes 0 above and below the
 * volume, where the activity is unknown, not 0 (recon/core/psf.h): each slice is divided by the fraction of the filter's weight
 * that is inside the volume, so that a volume that is uniform along z stays uniform. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/blur.h"
#include "recon/pet/pet_internal.h"

/* Compute 1 / (fraction of the filter's weight around each slice that is inside the volume); scratch: a float for each slice. */
static void scale_slices(const struct pet_result *s, int first, int n, float *scratch, float *ret_scale)
{
	const struct grid *g = s->grid;
	double sigma = s->postfilter / PSF_FWHM_PER_SIGMA;
	int reach = blur_weights(sigma, g->h[2], g->n[2], scratch);

	for (int k = first; k < first + n; k++)
		ret_scale[k - first] = (float)(1 / s->unit / psf_inside(scratch, reach, g->n[2], k));
}

int pet_result_read(const struct pet_result *s, int first, int n, float *ret_slices, struct err *err)
{
	const struct grid *g = s->grid;
	size_t pixels = (size_t)g->n[0] * (size_t)g->n[1], column = grid_column(g);
	float *scale;

	if (!s->ready || first < 0 || n < 1 || n > g->n[2] - first)
		return err_set(err, EINVAL, "reconstruction: slices %d to %d of %d%s%s", first, first + n - 1, g->n[2],
			       s->ready ? "" : ", before ", s->ready ? "" : s->run);
	scale = malloc(((size_t)n + (size_t)g->n[2]) * sizeof(*scale));
	if (!scale)
		return err_set(err, ENOMEM, "reconstruction: cannot allocate %d slices", n);
	scale_slices(s, first, n, scale + n, scale);
#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < pixels; i++) {
		const float *from = s->out + i * column + first;
		bool in = pet_column_inside(g, s->fov_radius, i);

		for (size_t k = 0; k < (size_t)n; k++)
			ret_slices[k * pixels + i] = in ? from[k] * scale[k] : 0;
	}
	free(scale);
	return 0;
}

int pet_filter_image(const struct pet_protocol *p, const struct grid *g, struct buf *x, struct buf *work, struct buf *to,
		     float *out, struct err *err)
{
	double sigma = p->postfilter / PSF_FWHM_PER_SIGMA, sigmas[3] = {sigma, sigma, sigma};
	const struct device_ops *v = x->dev->ops;
	int r = 0;

	if (p->postfilter > 0) {
		r = v->blur(x, g, sigmas, work, to, err);
		if (r == 0)
			r = v->copy(to, x, err);
	}
	return r < 0 ? r : v->download(x, out, err);
}

bool pet_column_inside(const struct grid *g, double radius, size_t i)
{
	double x = g->lo[0] + ((double)(i % (size_t)g->n[0]) + 0.5) * g->h[0];
	double y = g->lo[1] + ((double)(i / (size_t)g->n[0]) + 0.5) * g->h[1];

	return x * x + y * y < radius * radius;
}

void pet_draw_start(const struct grid *g, double radius, const float *sensitivity, float least, float level, float *ret_x)
{
	size_t column = grid_column(g), columns = (size_t)g->n[0] * (size_t)g->n[1], n_z = (size_t)g->n[2];

#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < columns; i++) {
		bool in = pet_column_inside(g, radius, i);

		for (size_t k = i * column; k < (i + 1) * column; k++)
			ret_x[k] = in && k < i * column + n_z && (!sensitivity || sensitivity[k] > least) ? level : 0;
	}
}

double pet_unit_of(double level)
{
	return level > 1e-3 && level < 1e6 ? 1 : exp2(-round(log2(level)));
}

int pet_read_slices(struct pet_session *s, int first, int n, float *ret_slices, struct err *err)
{
	const struct pet_result result = {&s->plan->grid, s->plan->fov_radius, s->p->postfilter, s->unit,
					  s->out,	  s->result,	       "pet_run()"};

	return pet_result_read(&result, first, n, ret_slices, err);
}
