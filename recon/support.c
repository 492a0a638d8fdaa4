/* support.c - clears voxels that no ray has met.
 *
 * Multiplicative updates leave such voxels at the starting value, which would look like tissue. They lie at the far edges of the
 * upper slices (rays converge toward the source) and behind bins that do not count. A voxel that was met has, but for a rare
 * chance, another value than the start; so few are looked at closely, and a sensitivity volume, as large as the result, is not
 * needed.
 */
#include "recon/support.h"

#include <errno.h>
#include <stdlib.h>

#include "kernels/slice_map.h"

static int clamp(double x, int lo, int hi)
{
	return !(x > lo) ? lo : x < hi ? (int)x : hi;
}

/* Are voxel i's neighbours out of reach of all n bins of an axis? */
static bool out_of_reach(const struct slice_map *map, int axis, int n, int i)
{
	return map->shift[axis] - 1 >= i || map->scale[axis] * (n - 1) + map->shift[axis] + 1 <= i;
}

/* Does a valid bin of the view lie within a voxel of (i, j)? */
static bool met(const struct scan *scan, const struct slice_map *map, const float *valid, int i, int j)
{
	int u0, v0;

	if (out_of_reach(map, 0, scan->n_u, i) || out_of_reach(map, 1, scan->n_v, j))
		return false;
	u0 = clamp(slice_first_bin(map, 0, i), 0, scan->n_u);
	v0 = clamp(slice_first_bin(map, 1, j), 0, scan->n_v);
	for (int v = v0; v < scan->n_v && slice_weight(map->scale[1] * v + map->shift[1] - j) > 0; v++)
		for (int u = u0; u < scan->n_u && slice_weight(map->scale[0] * u + map->shift[0] - i) > 0; u++)
			if (valid[(size_t)v * (size_t)scan->n_u + (size_t)u] > 0)
				return true;
	return false;
}

int support_clear(const struct scan *scan, const struct grid *grid, const float *valid, const int *order, float start,
		  float *volume, struct err *err)
{
	size_t per_view = scan_view_size(scan), n_x = (size_t)grid->n[0], n_y = (size_t)grid->n[1],
	       n_views = (size_t)scan->n_views;
	struct slice_map *maps = malloc(n_views * (size_t)grid->n[2] * sizeof(*maps));

	if (!maps)
		return err_set(err, ENOMEM, "support: out of memory");
	for (int k = 0; k < grid->n[2]; k++)
		for (int view = 0; view < scan->n_views; view++)
			maps[(size_t)k * n_views + (size_t)view] = slice_map_make(scan, &scan->views[view], grid, k);
#pragma omp parallel for schedule(dynamic)
	for (int k = 0; k < grid->n[2]; k++) {
		const struct slice_map *map = maps + (size_t)k * n_views;

		for (int j = 0; j < grid->n[1]; j++) {
			float *row = volume + ((size_t)k * n_y + (size_t)j) * n_x;

			for (int i = 0; i < grid->n[0]; i++) {
				bool seen = row[i] != start;

				for (int view = 0; !seen && view < scan->n_views; view++)
					seen = met(scan, &map[view], valid + (size_t)order[view] * per_view, i, j);
				if (!seen)
					row[i] = 0;
			}
		}
	}
	free(maps);
	return 0;
}
