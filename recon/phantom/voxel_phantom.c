/* SPDX-License-Identifier: Apache-2.0 */
/* voxel_phantom.c - line integrals through labelled voxels, computed by the ray walk that is the reference for all projectors.
 * The phantom's voxels are smaller than those of the reconstruction and on another grid. So the data differ from those that the
 * reconstruction's model would compute, although the ray walk is the same.
 *
 * - Sums are in double, so that adding the 500 voxels of a ray causes no relevant rounding error.
 * - For the mean over the rays of a bin, the intensities are computed relative to the largest one, so that they do not underflow
 *   behind thick metal. */
#include "recon/phantom/voxel_phantom.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ray_walk.h"

int voxel_phantom_create(const int n[3], const double h[3], const struct voxel_material *materials, size_t n_materials,
			 struct voxel_phantom **ret_phantom, struct err *err)
{
	struct voxel_phantom *p;
	size_t size = 1;

	for (int c = 0; c < 3; c++) {
		if (n[c] < 1 || n[c] > VOXEL_SIDE_MAX || !(h[c] >= 0.001 && h[c] <= 10))
			return err_set(err, EINVAL,
				       "voxel phantom axis %d: %d voxels of %g mm; allowed: 1 to %d of 0.001 to 10 mm", c, n[c],
				       h[c], VOXEL_SIDE_MAX);
		size *= (size_t)n[c]; /* at most 2^36 */
	}
	if (size > VOXEL_COUNT_MAX)
		return err_set(err, EINVAL, "voxel phantom: %zu voxels; at most %zu are allowed", size, VOXEL_COUNT_MAX);
	if (n_materials < 1 || n_materials > VOXEL_MATERIALS_MAX)
		return err_set(err, EINVAL, "voxel phantom: %zu materials; allowed: 1 to %d", n_materials, VOXEL_MATERIALS_MAX);
	for (size_t i = 0; i < n_materials; i++)
		if (!(materials[i].mu >= 0 && materials[i].mu <= 1000))
			return err_set(err, EINVAL, "voxel phantom: material %zu attenuates %g /mm; allowed: 0 to 1000", i,
				       materials[i].mu);
	p = calloc(1, sizeof(*p));
	if (p)
		p->voxel = calloc(size, 1);
	if (!p || !p->voxel) {
		voxel_phantom_free(p);
		return err_set(err, ENOMEM, "no memory for a phantom of %zu voxels", size);
	}
	for (int c = 0; c < 3; c++) {
		p->grid.n[c] = n[c];
		p->grid.h[c] = h[c];
	}
	p->grid.lo[1] = -n[1] * h[1] / 2;
	p->n_materials = n_materials;
	memcpy(p->material, materials, n_materials * sizeof(*materials));
	*ret_phantom = p;
	return 0;
}

struct voxel_phantom *voxel_phantom_free(struct voxel_phantom *p)
{
	if (p)
		free(p->voxel);
	free(p);
	return NULL;
}

static bool is_paddle(const struct voxel_phantom *p, int plane)
{
	size_t n = (size_t)p->grid.n[0] * (size_t)p->grid.n[1], count = 0;
	const uint8_t *at = p->voxel + (size_t)plane * n;

	for (size_t i = 0; i < n; i++)
		count += p->material[at[i]].role == VOXEL_PADDLE;
	return 2 * count > n;
}

int voxel_phantom_trim(struct voxel_phantom *p, struct err *err)
{
	size_t plane = (size_t)p->grid.n[0] * (size_t)p->grid.n[1];
	int first = 0, end = p->grid.n[2];

	while (first < end && is_paddle(p, first))
		first++;
	while (end > first && is_paddle(p, end - 1))
		end--;
	if (first == end)
		return err_set(err, EBADMSG, "voxel phantom: all of its %d planes are paddle", p->grid.n[2]);
	memmove(p->voxel, p->voxel + (size_t)first * plane, (size_t)(end - first) * plane);
	p->trimmed[0] += first;
	p->trimmed[1] += p->grid.n[2] - end;
	p->grid.n[2] = end - first;
	return 0;
}

/* Return the line integral from a to b. */
static double line_integral(const struct voxel_phantom *p, const double mu[VOXEL_MATERIALS_MAX], const struct voxel_box *box,
			    const double a[3], const double b[3])
{
	struct ray_walk w;
	size_t voxel;
	double length, sum = 0;

	if (!ray_walk_start(&w, &p->grid, box, a, b))
		return 0;
	while (ray_walk_next(&w, &voxel, &length))
		sum += length * mu[p->voxel[voxel]];
	return sum;
}

/* Compute bin (u, v): minus the logarithm of the mean of exp(-line) over rays x rays points in the bin. */
static double bin_line(const struct voxel_phantom *p, const double mu[VOXEL_MATERIALS_MAX], const struct voxel_box *box,
		       const struct scan *scan, const struct scan_view *view, int u, int v, int rays)
{
	double a[3], b[3], at[3], sub[VOXEL_RAYS_MAX * VOXEL_RAYS_MAX], least = INFINITY, mean = 0;
	int n = rays * rays;

	scan_ray(scan, view, u, v, a, b);
	if (rays == 1)
		return line_integral(p, mu, box, a, b);
	at[2] = b[2];
	for (int i = 0; i < n; i++) {
		at[0] = b[0] + ((i % rays + 0.5) / rays - 0.5) * scan->h[0];
		at[1] = b[1] + ((i / rays + 0.5) / rays - 0.5) * scan->h[1];
		if (view->posed)
			scan_bin_at(scan, view, u + (i % rays + 0.5) / rays - 0.5, v + (i / rays + 0.5) / rays - 0.5, at);
		sub[i] = line_integral(p, mu, box, a, at);
		least = fmin(least, sub[i]);
	}
	for (int i = 0; i < n; i++)
		mean += exp(least - sub[i]) / n;
	return least - log(mean);
}

int voxel_phantom_project(const struct voxel_phantom *p, const struct scan *scan, int view, int rays, float *ret_line,
			  struct err *err)
{
	const struct scan_view *at;
	struct voxel_box box = voxel_box_whole(&p->grid);
	double mu[VOXEL_MATERIALS_MAX];

	if (scan->kind != SCAN_DBT)
		return err_set(err, ENOTSUP, "voxel phantom: scan kind %d has no rays to project along", (int)scan->kind);
	if (view < 0 || view >= scan->n_views)
		return err_set(err, EINVAL, "voxel phantom: view %d of %d", view, scan->n_views);
	if (rays < 1 || rays > VOXEL_RAYS_MAX)
		return err_set(err, EINVAL, "voxel phantom: %d rays per bin and axis; allowed: 1 to %d", rays, VOXEL_RAYS_MAX);
	at = &scan->views[view];
	for (int i = 0; i < VOXEL_MATERIALS_MAX; i++)
		mu[i] = p->material[i].mu;
#pragma omp parallel for schedule(dynamic, 4)
	for (int v = 0; v < scan->n_v; v++)
		for (int u = 0; u < scan->n_u; u++)
			ret_line[(size_t)v * (size_t)scan->n_u + (size_t)u] = (float)bin_line(p, mu, &box, scan, at, u, v, rays);
	return 0;
}
