/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_interpolated.c - voxel-driven backprojection (back_interpolated()) for any planes with rise 0. */
#include "kernels/cpu/cpu.h"
#include "kernels/lines.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The planes whose z is in slice k: planes[from[k]] .. planes[from[k + 1] - 1]. */
struct slice_planes {
	int *from, *plane;
};

static int slice_of(const struct grid *g, double z)
{
	double at = floor((z - g->lo[2]) / g->h[2]);

	return at >= 0 && at < g->n[2] ? (int)at : -1;
}

static void sort_planes(const struct projection *a, struct slice_planes *s)
{
	int n = 0;

	for (int k = 0; k < a->grid.n[2]; k++) {
		s->from[k] = n;
		for (int u = 0; u < a->scan->n_u; u++)
			if (slice_of(&a->grid, a->scan->planes[u].z) == k)
				s->plane[n++] = u;
	}
	s->from[a->grid.n[2]] = n;
}

/* Add the values of one view to the sums `out` of a voxel column, which are double. bin: the data of radial bin v of the view;
 * part: weight of radial bin v + 1. */
static void add_view(const struct projection *a, const struct slice_planes *s, const float *bin, int v, double part, double *out)
{
	const float *low = bin + (size_t)v * (size_t)a->scan->n_u, *high = low + a->scan->n_u;

	for (int k = 0; k < a->grid.n[2]; k++)
		for (int i = s->from[k]; i < s->from[k + 1]; i++) {
			int u = s->plane[i];

			out[k] += (1 - part) * low[u] + (part > 0 ? part * high[u] : 0);
		}
}

static void back_column(const struct projection *a, const struct slice_planes *s, const float *y, int i, int j, double *sum)
{
	const struct grid *g = &a->grid;
	const struct scan *scan = a->scan;
	double px = g->lo[0] + (i + 0.5) * g->h[0], py = g->lo[1] + (j + 0.5) * g->h[1];
	double pitch = scan->n_v > 1 ? (scan->radius[scan->n_v - 1] - scan->radius[0]) / (scan->n_v - 1) : 1;

	for (int k = 0; k < g->n[2]; k++)
		sum[k] = 0;
	if (px * px + py * py >= scan->fov_radius * scan->fov_radius)
		return;
	for (int view = 0; view < a->n_views; view++) {
		const double *turn = scan->views[a->first + view].turn;
		double at = (px * turn[0] + py * turn[1] - scan->radius[0]) / pitch;

		if (at >= -LINE_EDGE && at <= scan->n_v - 1 + LINE_EDGE) {
			int v = cpu_max(0, cpu_min((int)at, scan->n_v - 2));

			at = fmin(fmax(at, 0), scan->n_v - 1);
			add_view(a, s, y + (size_t)view * scan_view_size(scan), v, at - v, sum);
		}
	}
}

int cpu_back_interpolated(struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err)
{
	const struct grid *g = &a->grid;
	int threads = cpu_state(a->dev)->threads, r = 0;
	size_t bins = (size_t)a->n_views * scan_view_size(a->scan), n_z = (size_t)g->n[2];
	struct slice_planes s = {0};
	double *sums = NULL;

	if (x->n != grid_size(g))
		r = err_set(err, EINVAL, "back_interpolated: the volume has %zu floats, but the grid has %zu voxels", x->n,
			    grid_size(g));
	if (r == 0 && y->n != bins)
		r = err_set(err, EINVAL, "back_interpolated: the projections have %zu floats, but the scan has %zu bins", y->n,
			    bins);
	if (r == 0 && a->scan->kind != SCAN_PARALLEL)
		r = err_set(err, EINVAL, "back_interpolated: supports only parallel rays");
	if (r == 0 && a->scan->tof.n)
		r = err_set(err, ENOTSUP, "back_interpolated: does not support time of flight");
	for (int u = 0; r == 0 && u < a->scan->n_u; u++)
		if (a->scan->planes[u].rise != 0)
			r = err_set(err, EINVAL, "back_interpolated: plane %d has a rise of %g mm, only 0 is supported", u,
				    a->scan->planes[u].rise);
	if (r < 0)
		return r;
	if (a->scan->n_v > 1 && lines_fit(a->scan, g))
		return cpu_lines_interpolated(a, y->mem, add, x->mem, err);
	s.from = malloc((n_z + 1) * sizeof(*s.from));
	s.plane = malloc((size_t)a->scan->n_u * sizeof(*s.plane));
	sums = malloc((size_t)threads * n_z * sizeof(*sums));
	if (!s.from || !s.plane || !sums) {
		r = err_set(err, ENOMEM, "back_interpolated: out of memory");
		goto out;
	}
	sort_planes(a, &s);
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static) if (threads > 1)
	for (int j = 0; j < g->n[1]; j++) {
		for (int i = 0; i < g->n[0]; i++) {
			double *sum = sums + (size_t)cpu_thread() * n_z;
			size_t to = (size_t)i * grid_step(g, 0) + (size_t)j * grid_step(g, 1);

			back_column(a, &s, y->mem, i, j, sum);
			for (int k = 0; k < g->n[2]; k++) {
				int n = s.from[k + 1] - s.from[k];
				float value = n ? (float)(sum[k] / n) : 0, *at = x->mem + to + (size_t)k * grid_step(g, 2);

				*at = add ? *at + value : value;
			}
			if (g->z_fastest && !add)
				memset(x->mem + to + n_z, 0, (grid_column(g) - n_z) * sizeof(float));
		}
	}
out:
	free(s.from);
	free(s.plane);
	free(sums);
	return r;
}
