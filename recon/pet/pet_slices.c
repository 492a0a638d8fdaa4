/* pet_slices.c - slices on their way out of a session: the device has z fastest, the caller wants x fastest.
 *
 * Outside the field of view it is 0, whatever a filter has brought there. A post-filter sees 0 above and below the volume, where
 * there is not nothing but nothing known (recon/core/psf.h); a slice is divided by that part of the filter's weight that lies in
 * the volume, so that what is uniform along z stays so.
 */
#include <errno.h>
#include <stdlib.h>

#include "kernels/blur.h"
#include "recon/pet/pet_internal.h"

/* 1 / (part of the filter's weight about each slice that lies in the volume); room: a float for each slice. */
static void scale_slices(const struct pet_session *s, int first, int n, float *scratch, float *ret_scale)
{
	const struct grid *g = &s->plan->grid;
	double sigma = s->p->postfilter / PSF_FWHM_PER_SIGMA;
	int reach = blur_weights(sigma, g->h[2], g->n[2], scratch);

	for (int k = first; k < first + n; k++)
		ret_scale[k - first] = (float)(1 / s->unit / psf_inside(scratch, reach, g->n[2], k));
}

int pet_read_slices(struct pet_session *s, int first, int n, float *ret_slices, struct err *err)
{
	const struct grid *g = &s->plan->grid;
	size_t n_x = (size_t)g->n[0], n_y = (size_t)g->n[1], column = grid_column(g);
	double fov2 = s->plan->fov_radius * s->plan->fov_radius;
	float *scale;

	if (!s->result || first < 0 || n < 1 || n > g->n[2] - first)
		return err_set(err, EINVAL, "reconstruction: slices %d to %d of %d%s", first, first + n - 1, g->n[2],
			       s->result ? "" : ", before it was run");
	scale = malloc(((size_t)n + (size_t)g->n[2]) * sizeof(*scale));
	if (!scale)
		return err_set(err, ENOMEM, "reconstruction: cannot allocate %d slices", n);
	scale_slices(s, first, n, scale + n, scale);
#pragma omp parallel for schedule(static)
	for (size_t j = 0; j < n_y; j++) {
		double y = g->lo[1] + ((double)j + 0.5) * g->h[1];

		for (size_t i = 0; i < n_x; i++) {
			double x = g->lo[0] + ((double)i + 0.5) * g->h[0];
			const float *from = s->out + (j * n_x + i) * column + first;
			bool in = x * x + y * y < fov2;

			for (size_t k = 0; k < (size_t)n; k++)
				ret_slices[(k * n_y + j) * n_x + i] = in ? from[k] * scale[k] : 0;
		}
	}
	free(scale);
	return 0;
}
