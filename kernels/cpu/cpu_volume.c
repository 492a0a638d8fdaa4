/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_volume.c - passes over a volume that use neighbours. A line is a row of voxels along the fastest axis. Each value is
 * computed by one thread, whose order of additions does not depend on the number of threads. The padding of columns is not read;
 * it is 0 in the result. */
#include "kernels/blur.h"
#include "kernels/cpu/cpu.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORTH_THREADS 32768 /* smallest number of floats for which several threads are faster than one */

static int threads_for(const struct buf *x)
{
	return x->n < WORTH_THREADS ? 1 : cpu_state(x->dev)->threads;
}

static int check_size(const char *what, const struct buf *x, const struct grid *g, struct err *err)
{
	if (x->n != grid_size(g))
		return err_set(err, EINVAL, "%s: the volume has %zu floats, but the grid has %zu voxels", what, x->n,
			       grid_size(g));
	return 0;
}

/* The axes in their order in memory. */
struct lines {
	int n[3]; /* voxels along each */
	size_t step[3];
};

static struct lines lines_of(const struct grid *g)
{
	const int order[2][3] = {{0, 1, 2}, {2, 0, 1}};
	struct lines l;

	for (int i = 0; i < 3; i++) {
		l.n[i] = g->n[order[g->z_fastest][i]];
		l.step[i] = grid_step(g, order[g->z_fastest][i]);
	}
	return l;
}

static void clear_padding(const struct lines *l, float *line)
{
	memset(line + l->n[0], 0, (l->step[1] - (size_t)l->n[0]) * sizeof(float));
}

/* Blur `from` along memory axis `axis` into `to`. */
static void blur_axis(const struct lines *l, int axis, int reach, const float *weight, const float *from, float *to, int threads)
{
	(void)threads;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static) if (threads > 1)
	for (int k = 0; k < l->n[2]; k++) {
		for (int j = 0; j < l->n[1]; j++) {
			size_t at = (size_t)k * l->step[2] + (size_t)j * l->step[1];
			const float *restrict in = from + at;
			float *restrict out = to + at;
			int here = axis == 0 ? 0 : axis == 1 ? j : k, n = l->n[0];

			for (int i = 0; i < n; i++)
				out[i] = weight[0] * in[i];
			for (int d = 1; d <= reach; d++) {
				float w = weight[d];

				if (axis == 0) {
					for (int i = d; i < n; i++)
						out[i] += w * in[i - d];
					for (int i = 0; i < n - d; i++)
						out[i] += w * in[i + d];
					continue;
				}
				if (here - d >= 0) {
					const float *restrict before = in - (size_t)d * l->step[axis];

					for (int i = 0; i < n; i++)
						out[i] += w * before[i];
				}
				if (here + d < l->n[axis]) {
					const float *restrict behind = in + (size_t)d * l->step[axis];

					for (int i = 0; i < n; i++)
						out[i] += w * behind[i];
				}
			}
			clear_padding(l, out);
		}
	}
}

int cpu_blur(const struct buf *x, const struct grid *grid, const double sigma[3], struct buf *work, struct buf *ret,
	     struct err *err)
{
	struct lines l = lines_of(grid);
	const int axis_of[2][3] = {{0, 1, 2}, {2, 0, 1}};
	int most = cpu_max(grid->n[0], cpu_max(grid->n[1], grid->n[2])), threads = threads_for(x);
	const float *from = x->mem;
	float *weight, *to[3] = {ret->mem, work->mem, ret->mem};
	int r = check_size("blur", x, grid, err);

	r = r < 0 ? r : check_size("blur", work, grid, err);
	r = r < 0 ? r : check_size("blur", ret, grid, err);
	if (r == 0 && (x->mem == ret->mem || x->mem == work->mem || work->mem == ret->mem))
		r = err_set(err, EINVAL, "blur: x, work and ret must be three different volumes");
	for (int c = 0; r == 0 && c < 3; c++)
		if (!(sigma[c] >= 0) || !isfinite(sigma[c]))
			r = err_set(err, EINVAL, "blur: sigma of %g mm along axis %d; allowed: 0 or more", sigma[c], c);
	if (r < 0)
		return r;
	weight = malloc((size_t)most * sizeof(*weight));
	if (!weight)
		return err_set(err, ENOMEM, "blur: out of memory");
	for (int i = 0; i < 3; i++) {
		int c = axis_of[grid->z_fastest][i], reach = blur_weights(sigma[c], grid->h[c], grid->n[c], weight);

		blur_axis(&l, i, reach, weight, from, to[i], threads);
		from = to[i];
	}
	free(weight);
	return 0;
}
