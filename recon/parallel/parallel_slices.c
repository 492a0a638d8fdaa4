/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_slices.c - convert between the caller's arrays, slice by slice, and the device's, with all slices of a part adjacent.
 *
 * Data: lines[slice][angle][radial] and bins[view][radial][slice]. Volume: x fastest, slice by slice, and z fastest with padding.
 * For a single slice both orders are the same, except for the order of the views. */
#include <math.h>

#include "recon/parallel/parallel_internal.h"

#define BLOCK 16 /* slices: a cache line */

bool parallel_continues(const struct parallel_session *s, double fraction)
{
	if (monitor_cancelled(s->monitor))
		return false;
	monitor_progress(s->monitor, "reconstruct", (s->done + fraction * s->n) / s->s->n_slices);
	return true;
}

const float *parallel_row(const struct parallel_session *s, const float *lines, int slice, int view)
{
	return lines + ((size_t)(s->first + slice) * (size_t)s->s->n_angles + (size_t)s->views.order[view]) *
			       (size_t)(s->s->n_radial - 2 * s->pad);
}

void parallel_bins_in(const struct parallel_session *s, const double *scale, const double *share, float *ret_bins)
{
	size_t n = (size_t)s->n, n_v = (size_t)s->s->n_radial, pad = (size_t)s->pad;

#pragma omp parallel for collapse(2) schedule(static)
	for (int view = 0; view < s->s->n_angles; view++) {
		for (int first = 0; first < s->n; first += BLOCK) {
			int end = first + BLOCK < s->n ? first + BLOCK : s->n;
			float *to = ret_bins + (size_t)view * n_v * n, f = (float)(scale ? scale[s->views.order[view]] : s->unit);

			for (int k = first; k < end; k++) {
				const float *from = parallel_row(s, s->lines, k, view);

				for (size_t v = 0; v < pad; v++)
					to[v * n + (size_t)k] = to[(n_v - 1 - v) * n + (size_t)k] = 0;
				for (size_t v = pad; v < n_v - pad; v++)
					to[v * n + (size_t)k] = f * from[v - pad];
				for (size_t v = pad; share && v < n_v - pad; v++)
					to[v * n + (size_t)k] *= (float)share[v - pad];
			}
		}
	}
}

bool parallel_gaps_in(const struct parallel_session *s, float value, float *bins)
{
	const struct parallel_gaps *g = s->s->gaps;
	size_t n = (size_t)s->n, n_v = (size_t)s->s->n_radial;

	for (size_t i = 0; g && i < g->n; i++) {
		int k = g->gap[i].slice - s->first;
		float *first = bins + ((size_t)g->gap[i].bin + (size_t)s->pad) * n + (size_t)k;

		for (int view = 0; k >= 0 && k < s->n && view < s->s->n_angles; view++)
			if (g->gap[i].view < 0 || s->views.order[view] == g->gap[i].view)
				first[(size_t)view * n_v * n] = value;
	}
	return g && g->n > 0;
}

void parallel_bins_out(const struct parallel_session *s, const float *bins, float *ret_lines)
{
	size_t n = (size_t)s->n, n_v = (size_t)s->s->n_radial, n_views = (size_t)s->s->n_angles;

#pragma omp parallel for collapse(2) schedule(static)
	for (int view = 0; view < s->s->n_angles; view++) {
		for (int first = 0; first < s->n; first += BLOCK) {
			int end = first + BLOCK < s->n ? first + BLOCK : s->n;
			const float *from = bins + (size_t)view * n_v * n;

			for (int k = first; k < end; k++) {
				float *to = ret_lines + ((size_t)(s->first + k) * n_views + (size_t)s->views.order[view]) * n_v;

				for (size_t v = 0; v < n_v; v++)
					to[v] = from[v * n + (size_t)k];
			}
		}
	}
}

static bool is_in_fov(const struct parallel_session *s, int i, int j)
{
	const struct grid *g = &s->grid;
	double x = g->lo[0] + (i + 0.5) * g->h[0], y = g->lo[1] + (j + 0.5) * g->h[1];

	return x * x + y * y < s->plan->fov_radius * s->plan->fov_radius;
}

void parallel_volume_in(const struct parallel_session *s, const float *volume, float *ret_out)
{
	const struct grid *g = &s->grid;
	size_t n_x = (size_t)g->n[0], n_y = (size_t)g->n[1], column = g->z_fastest ? grid_column(g) : 1, n = (size_t)s->n;
	const float *from = volume + (size_t)s->first * n_x * n_y;

#pragma omp parallel for schedule(static)
	for (size_t j = 0; j < n_y; j++)
		for (size_t i = 0; i < n_x; i++) {
			float *to = ret_out + (j * n_x + i) * column;

			for (size_t k = 0; k < column; k++)
				to[k] = k < n ? from[(k * n_y + j) * n_x + i] : 0;
		}
}

void parallel_volume_out(const struct parallel_session *s, const float *out, float least, float *ret_volume)
{
	const struct grid *g = &s->grid;
	size_t n_x = (size_t)g->n[0], n_y = (size_t)g->n[1], column = g->z_fastest ? grid_column(g) : 1, n = (size_t)s->n;
	float *to = ret_volume + (size_t)s->first * n_x * n_y, scale = (float)(1 / s->unit);

#pragma omp parallel for schedule(static)
	for (size_t j = 0; j < n_y; j++)
		for (size_t i = 0; i < n_x; i++) {
			const float *from = out + (j * n_x + i) * column;
			bool in = is_in_fov(s, (int)i, (int)j);

			for (size_t k = 0; k < n; k++)
				to[(k * n_y + j) * n_x + i] = in && fabsf(from[k]) > least ? from[k] * scale : 0;
		}
}

void parallel_volume_level(const struct parallel_session *s, const double *level, float *ret_out)
{
	const struct grid *g = &s->grid;
	size_t n_x = (size_t)g->n[0], n_y = (size_t)g->n[1], column = g->z_fastest ? grid_column(g) : 1, n = (size_t)s->n;

#pragma omp parallel for schedule(static)
	for (size_t j = 0; j < n_y; j++)
		for (size_t i = 0; i < n_x; i++) {
			bool in = is_in_fov(s, (int)i, (int)j);
			float *to = ret_out + (j * n_x + i) * column;

			for (size_t k = 0; k < column; k++)
				to[k] = in && k < n ? (float)level[k] : 0;
		}
}
