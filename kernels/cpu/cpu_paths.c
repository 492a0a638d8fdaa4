/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_paths.c - the tables of the transaxial paths on the CPU: paths, lanes of planes, and their memory.
 *
 * Memory: the paths (8 bytes per step, for as many steps as path_bound() allows), a struct cpu_ray for each lane and radial bin,
 * and a scratch of a few 10 KiB per thread. No thread has its own volume. */
#include "kernels/cpu/cpu_tof.h"
#include "kernels/planes.h"

#include <errno.h>
#include <stdlib.h>

#define DISTANCE_TOL 1e-6 /* slices */
#define SLAB_BYTES 24576  /* most of a processor's level-1 cache */
#define LEAST_BLOCK 16	  /* steps */
#define MOST_TILE 64	  /* pixels */
#define LEAST_TILE 8
#define TILES_A_THREAD 2 /* with more, smaller tiles the overhead would exceed the time that threads are idle at the end */
#define SKEW 16		 /* floats added to a row, so that the distance of rows is not a power of two (cache conflicts) */

static bool is_joseph(const struct projection *a)
{
	return a->model == PROJECTION_JOSEPH;
}

static size_t count_steps(const struct projection *a, struct path *ret_path)
{
	double rise = is_joseph(a) ? 0 : planes_max_abs_rise(a->scan);
	size_t n = 0, i = 0;

	for (int view = a->first; view < a->first + a->n_views; view++)
		for (int v = 0; v < a->scan->n_v; v++, i++) {
			if (ret_path)
				ret_path[i].at = n;
			n += (size_t)path_bound(a->scan, a->scan->views + view, v, &a->grid, rise);
		}
	return n;
}

static int pairs_of(const struct grid *g)
{
	return (g->n[2] + 1) / 2;
}

static int round_up(int n, int to)
{
	return (n + to - 1) / to * to;
}

/* Return an upper bound of the length of a slab's row, floats, with zeros for a whole lane on either side. */
static size_t longest_row(const struct grid *g)
{
	return 2 * (((size_t)pairs_of(g) + 2 * CPU_LANE_MOST + 15) & ~(size_t)15) + SKEW;
}

static int block_of(size_t row)
{
	size_t fit = SLAB_BYTES / (row * sizeof(float));

	return fit < LEAST_BLOCK ? LEAST_BLOCK : fit > CPU_PATH_BLOCK ? CPU_PATH_BLOCK : (int)(fit & ~(size_t)15);
}

/* Return an upper bound of the length of the sums of all lanes, floats: a lane of two planes uses 8. */
static size_t most_sums(const struct scan *s)
{
	return ((size_t)s->n_u * 4 + CPU_LANE_MOST + 15) & ~(size_t)15;
}

size_t cpu_paths_scratch(const struct projection *a)
{
	size_t row = longest_row(&a->grid), slab = LEAST_BLOCK * row;

	if (slab < SLAB_BYTES / sizeof(float))
		slab = SLAB_BYTES / sizeof(float);
	/* slab; weights and places; ends and lengths of steps; sums; windows */
	return ((slab + 15) & ~(size_t)15) + CPU_LANE_MOST + 2 * (2 * CPU_PATH_BLOCK + 16) + 2 * (CPU_PATH_BLOCK + 16) +
	       most_sums(a->scan) * (size_t)scan_ray_bins(a->scan) + cpu_tof_scratch(&a->scan->tof);
}

size_t cpu_paths_table_bytes(const struct projection *a)
{
	size_t n_u = (size_t)a->scan->n_u, n_v = (size_t)a->scan->n_v;

	return sizeof(struct cpu_paths) + count_steps(a, NULL) * sizeof(struct path_step) +
	       (size_t)a->n_views * n_v * sizeof(struct path) + n_u * sizeof(struct cpu_lane) +
	       n_v * n_u * sizeof(struct cpu_ray) + cpu_tof_bytes(&a->scan->tof);
}

/* Compute the range of slice pairs that the rays of the lane's first plane touch, relative to its base: b of struct cpu_ray and
 * the slice below. */
static void lane_reach(const struct projection *a, double rise, struct cpu_lane *l)
{
	double low = l->z, high = l->z, h = a->grid.h[2];
	int most = pairs_of(&a->grid) - l->base / 2;

	for (int v = 0; v < a->scan->n_v; v++) {
		double reach = scan_reach(a->scan, v), way = reach > 0 ? fabs(scan_slope(a->scan, rise, v)) * reach / h : 0;

		low = fmin(low, l->z - way);
		high = fmax(high, l->z + way);
	}
	if (is_joseph(a))
		low -= 1;
	low = floor(low + 0.5) / 2;
	high = floor(high + 0.5) / 2;
	/* outside this range all planes of the lane are outside the grid */
	l->lowest = (int)floor(fmax(low, -l->base / 2 - l->width));
	l->highest = (int)floor(fmin(high, most));
	l->lowest = cpu_min(l->lowest, most);
	l->highest = cpu_max(l->highest, l->lowest);
}

static double height_of(const struct projection *a, int plane)
{
	return (a->scan->planes[plane].z - a->grid.lo[2]) / a->grid.h[2];
}

/* Return whether every plane of the group and the one `turns` planes after it are two slices apart. A plane of rise 0 in the face
 * between two slices belongs to the slice that the ray walk would choose. */
static bool two_slices_apart(const struct projection *a, const struct plane_group *group, int turns)
{
	if (turns < 1 || fabs(turns * group->pitch / a->grid.h[2] - 2) * group->n > DISTANCE_TOL)
		return false;
	for (int i = turns; i < group->n && group->rise == 0 && !is_joseph(a); i++)
		if (floor(height_of(a, group->first + i)) - floor(height_of(a, group->first + i - turns)) != 2)
			return false;
	return true;
}

/* Divide the planes of a group into lanes. If two slices are a whole number of plane distances, every such plane belongs to the
 * same lane; else each plane is a lane. Return the number of lanes; ret may be NULL. */
static int group_lanes(const struct projection *a, const struct plane_group *group, struct cpu_lane *ret)
{
	double stride = group->n > 1 ? 2 * a->grid.h[2] / group->pitch : 1;
	int turns = (int)lrint(fmin(stride, group->n)), most = CPU_LANE_MOST, n = 0;

	if (!two_slices_apart(a, group, turns)) {
		turns = 1;
		most = 1;
	}
	for (int turn = 0; turn < turns; turn++)
		for (int j = turn; j < group->n; j += turns * most, n++) {
			int planes = cpu_min((group->n - j + turns - 1) / turns, most);
			double z = height_of(a, group->first + j), at = is_joseph(a) ? z : z - 0.5;

			if (!ret)
				continue;
			if (group->rise == 0 && !is_joseph(a))
				at = floor(z); /* the slice that the ray walk chooses for a plane in a face */
			ret[n] = (struct cpu_lane){.plane = group->first + j,
						   .stride = turns,
						   .n = planes,
						   .width = planes == 1 ? 1 : round_up(planes, 8),
						   .base = 2 * (int)floor(fmax(fmin(at, 1e8), -1e8) / 2)};
			ret[n].z = (float)(at - ret[n].base);
			lane_reach(a, group->rise, &ret[n]);
		}
	return n;
}

static void make_lanes(const struct projection *a, const struct plane_group *group, int n_groups, struct cpu_paths *p)
{
	int front = 0, back = pairs_of(&a->grid);

	for (int i = 0; i < n_groups; i++)
		p->n_lanes += group_lanes(a, &group[i], p->lane + p->n_lanes);
	for (int i = 0; i < p->n_lanes; i++) {
		struct cpu_lane *l = &p->lane[i];

		l->sums = p->sums;
		p->sums += l->width;
		front = cpu_max(front, -(l->lowest + l->base / 2));
		back = cpu_max(back, l->highest + l->base / 2 + l->width);
	}
	p->slab.n_z = a->grid.n[2];
	p->slab.front = front;
	p->slab.half = round_up(front + back, 16);
	p->slab.row = 2 * p->slab.half + SKEW;
	p->block = block_of((size_t)p->slab.row);
}

static void make_rays(const struct projection *a, struct cpu_paths *p)
{
	double h = a->grid.h[2];

	for (int v = 0; v < a->scan->n_v; v++)
		for (int i = 0; i < p->n_lanes; i++) {
			double rise = a->scan->planes[p->lane[i].plane].rise;
			double slope = scan_reach(a->scan, v) > 0 ? scan_slope(a->scan, rise, v) : 0;
			double inv = slope != 0 ? h / fabs(slope) : 0;

			p->ray[(size_t)v * (size_t)p->n_lanes + (size_t)i] =
				(struct cpu_ray){(float)(slope / h), (float)inv, slope != 0 ? (float)(0.5 * inv) : 1e30f,
						 (float)sqrt(1 + slope * slope)};
		}
}

static void make_paths(const struct projection *a, struct cpu_paths *p)
{
	int n_v = a->scan->n_v, threads = cpu_state(a->dev)->threads;
	double rise = planes_max_abs_rise(a->scan);

	(void)threads;
#pragma omp parallel for num_threads(threads) schedule(dynamic)
	for (int view = 0; view < a->n_views; view++)
		for (int v = 0; v < n_v; v++) {
			const struct scan_view *at = &a->scan->views[a->first + view];
			struct path *path = &p->path[(size_t)view * (size_t)n_v + (size_t)v];
			struct path_step *step = p->step + path->at;

			path->n = is_joseph(a) ? path_joseph(a->scan, at, v, &a->grid, step, path)
					       : path_walk(a->scan, at, v, &a->grid, rise, step, &path->t);
		}
}

/* Return the largest tile size, pixels, with at least TILES_A_THREAD tiles for every thread. */
static int tile_of(const struct projection *a)
{
	int tile = MOST_TILE, threads = cpu_state(a->dev)->threads;

	while (tile > LEAST_TILE &&
	       ((a->grid.n[0] + tile - 1) / tile) * ((a->grid.n[1] + tile - 1) / tile) < TILES_A_THREAD * threads)
		tile /= 2;
	return tile;
}

int cpu_paths_create(struct projection *a, struct err *err)
{
	size_t n = (size_t)a->n_views * (size_t)a->scan->n_v, n_u = (size_t)a->scan->n_u, steps;
	int n_groups = planes_group(a->scan, NULL), r = -ENOMEM;
	struct plane_group *group = calloc((size_t)n_groups, sizeof(*group));
	struct cpu_paths *p = calloc(1, sizeof(*p));

	a->paths = p;
	if (!p || !group)
		goto out;
	p->path = calloc(n, sizeof(*p->path));
	p->lane = calloc(n_u, sizeof(*p->lane));
	if (!p->path || !p->lane)
		goto out;
	steps = count_steps(a, p->path);
	planes_group(a->scan, group);
	make_lanes(a, group, n_groups, p);
	p->step = steps < SIZE_MAX / sizeof(*p->step) ? cpu_memory(steps * sizeof(*p->step)) : NULL;
	p->ray = calloc((size_t)a->scan->n_v * (size_t)p->n_lanes, sizeof(*p->ray));
	if (!p->step || !p->ray || cpu_tof_create(&a->scan->tof, &p->tof) < 0)
		goto out;
	p->tile = tile_of(a);
	make_rays(a, p);
	make_paths(a, p);
	r = cpu_scratch(a->dev, a->thread_floats, err);
out:
	free(group);
	return r == -ENOMEM ? err_set(err, ENOMEM, "projection: out of memory for %zu paths", n) : r;
}

void cpu_paths_free(struct cpu_paths *p)
{
	if (!p)
		return;
	free(p->path);
	free(p->step);
	free(p->lane);
	free(p->ray);
	free(p->tof.weight);
	free(p);
}
