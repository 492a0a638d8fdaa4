/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_paths_run.c - forward and back along transaxial paths on the CPU. Forward: a unit of work is a few radial bins of a view.
 * The steps of a path are processed in blocks: the voxels of a block are copied into the slab, then the entries of each lane are
 * added up, lane after lane. Back: a unit of work is a tile of voxel columns. For each path, in the order of the bins, the steps
 * inside the tile are added up in the slab, lane by lane; then the slab's rows are added to the columns. So the order in which a
 * voxel's terms are added depends neither on tiles nor on threads, each voxel is written by one thread, and no copy of the volume
 * is needed. */
#include "kernels/cpu/cpu_tof.h"

#include <math.h>
#include <string.h>

#define FORWARD_BINS 16 /* radial bins of a unit of work */

#define AHEAD 8		/* how many steps ahead the columns are prefetched */
#define CACHE_FLOATS 16 /* floats of a cache line */

static struct cpu_work work_of(const struct projection *a)
{
	const struct cpu_paths *p = a->paths;
	size_t slab = ((size_t)p->block * (size_t)p->slab.row + CPU_LANE_MOST + 15) & ~(size_t)15;
	struct cpu_work w = {.slab = cpu_state(a->dev)->scratch + (size_t)cpu_thread() * a->thread_floats};

	w.weight = w.slab + slab;
	w.place = (int *)(void *)(w.weight + 2 * CPU_PATH_BLOCK + 16);
	w.t = (float *)(void *)(w.place + 2 * CPU_PATH_BLOCK + 16);
	w.length = w.t + CPU_PATH_BLOCK + 16;
	w.sums = w.length + CPU_PATH_BLOCK + 16;
	w.middle = w.sums + (size_t)p->sums * (size_t)scan_ray_bins(a->scan);
	w.first = (int *)(void *)(w.middle + CPU_PATH_BLOCK + 16);
	w.bin = (float *)(void *)(w.first + CPU_PATH_BLOCK + 16);
	memset(w.slab, 0, slab * sizeof(float));
	return w;
}

/* Compute end (JOSEPH: middle) and length of steps [first, first + n) of a path. */
static void measure_steps(const struct projection *a, const struct path *path, int first, int n, const struct cpu_work *w)
{
	const struct path_step *step = a->paths->step + path->at + first;

	if (a->model == PROJECTION_JOSEPH) {
		for (int i = 0; i < n; i++) {
			w->t[i + 1] = path->t + (float)(first + i) * path->dt;
			w->length[i] = fabsf(path->dt);
		}
		if (a->paths->tof.n)
			memcpy(w->middle, w->t + 1, (size_t)n * sizeof(*w->middle));
		return;
	}
	w->t[0] = first ? step[-1].t : path->t;
	for (int i = 0; i < n; i++) {
		w->t[i + 1] = step[i].t;
		w->length[i] = step[i].t - w->t[i];
	}
	for (int i = 0; i < n && a->paths->tof.n; i++)
		w->middle[i] = 0.5f * (w->t[i] + w->t[i + 1]);
}

/* Return the sums of a lane: those of TOF bin k start at k lane->width. */
static float *lane_sums(const struct cpu_paths *p, const struct cpu_lane *lane, const struct cpu_work *w)
{
	return w->sums + (size_t)lane->sums * (size_t)cpu_max(p->tof.n, 1);
}

/* Compute the entries of a lane in the block that measure_steps() processed. */
static int make_entries(const struct projection *a, const struct cpu_lane *lane, const struct cpu_ray *ray, int n,
			const struct cpu_work *w)
{
	const struct cpu_path_loops *loops = cpu_state(a->dev)->rows->paths;
	struct cpu_ray joseph = *ray;

	if (a->model != PROJECTION_JOSEPH)
		return loops->split(&a->paths->slab, lane, ray, ray->slope < 0 ? w->t : w->t + 1, w->length, n, w->weight,
				    w->place);
	joseph.inv = w->length[0];
	joseph.rise = 0.5f * joseph.inv;
	return loops->split(&a->paths->slab, lane, &joseph, w->t + 1, w->length, n, w->weight, w->place);
}

/* Prefetch the column of a later step; columns are far apart in memory, so the processor does not prefetch them itself. */
static inline void fetch_ahead(const float *x, const struct path_step *step, int i, int n, size_t column)
{
	if (i + AHEAD < n)
		for (size_t at = 0; at < column; at += CACHE_FLOATS)
			__builtin_prefetch(x + (size_t)step[i + AHEAD].column * column + at);
}

/* Add the block to the sums of all lanes. */
static void forward_lanes(const struct projection *a, const struct cpu_ray *ray, int n, const struct cpu_work *w)
{
	const struct cpu_path_loops *loops = cpu_state(a->dev)->rows->paths;
	const struct cpu_paths *p = a->paths;

	for (int i = 0; i < p->n_lanes; i++) {
		const struct cpu_lane *lane = &p->lane[i];
		int m = make_entries(a, lane, &ray[i], n, w);
		float *sums = lane_sums(p, lane, w);

		if (!p->tof.n) {
			loops->forward(sums, w->slab, lane->width, w->weight, w->place, m);
			continue;
		}
		if (i == 0 || ray[i].stretch != ray[i - 1].stretch)
			loops->tof_windows(&p->tof, w->middle, ray[i].stretch, n, w->first, w->bin);
		cpu_tof_forward(&p->tof, loops, lane, n, w, sums);
	}
}

static void forward_path(const struct projection *a, const struct path *path, const struct cpu_ray *ray, const float *x,
			 const struct cpu_work *w)
{
	const struct cpu_path_loops *loops = cpu_state(a->dev)->rows->paths;
	const struct cpu_paths *p = a->paths;
	size_t column = grid_column(&a->grid);
	bool two = a->model == PROJECTION_JOSEPH;

	memset(w->sums, 0, (size_t)p->sums * (size_t)scan_ray_bins(a->scan) * sizeof(float));
	for (int first = 0; first < path->n; first += p->block) {
		const struct path_step *step = p->step + path->at + first;
		int n = cpu_min(p->block, path->n - first);

		measure_steps(a, path, first, n, w);
		for (int i = 0; i < n; i++) {
			const float *from = x + (size_t)step[i].column * column;

			fetch_ahead(x, step, i, n, column);
			loops->gather(&p->slab, w->slab + (size_t)i * (size_t)p->slab.row, from,
				      two ? from + (size_t)path->neighbour * column : NULL, step[i].t);
		}
		forward_lanes(a, ray, n, w);
	}
}

static void store_lanes(const struct projection *a, const struct cpu_ray *ray, bool add, const struct cpu_work *w, float *y)
{
	const struct cpu_path_loops *loops = cpu_state(a->dev)->rows->paths;
	const struct cpu_paths *p = a->paths;
	int bins = scan_ray_bins(a->scan);

	for (int i = 0; i < p->n_lanes; i++) {
		const struct cpu_lane *lane = &p->lane[i];
		const float *sums = lane_sums(p, lane, w);

		for (int k = 0; k < bins; k++)
			loops->store_bins(lane, ray[i].stretch, sums + (size_t)k * (size_t)lane->width, add,
					  y + (size_t)k * (size_t)a->scan->n_u + lane->plane);
	}
}

void cpu_paths_forward(struct projection *a, const struct cpu_forward *f)
{
	const struct cpu_paths *p = a->paths;
	int n_v = a->scan->n_v, units = (n_v + FORWARD_BINS - 1) / FORWARD_BINS, threads = cpu_state(a->dev)->threads;
	size_t bins = (size_t)a->scan->n_u * (size_t)scan_ray_bins(a->scan);

	(void)threads;
#pragma omp parallel num_threads(threads)
	{
		struct cpu_work w = work_of(a);

#pragma omp for collapse(2) schedule(dynamic)
		for (int view = 0; view < a->n_views; view++) {
			for (int unit = 0; unit < units; unit++) {
				for (int v = unit * FORWARD_BINS; v < cpu_min((unit + 1) * FORWARD_BINS, n_v); v++) {
					size_t at = (size_t)view * (size_t)n_v + (size_t)v;
					const struct cpu_ray *ray = p->ray + (size_t)v * (size_t)p->n_lanes;
					float *y = f->out + at * bins;

					if (p->path[at].n == 0) {
						if (!f->add)
							memset(y, 0, bins * sizeof(float));
						continue;
					}
					forward_path(a, &p->path[at], ray, f->x, &w);
					store_lanes(a, ray, f->add, &w, y);
				}
			}
		}
	}
}

struct tile {
	int lo[2], hi[2]; /* pixels lo <= i < hi along x and y */
};

/* Return the first of steps [first, end) whose pixel along the axis is >= `at` (falling: < `at`). Along a path, pixel numbers
 * rise or fall monotonically. */
static int find_step(const struct path_step *step, int first, int end, int n_x, int axis, int at, bool falling)
{
	while (first < end) {
		int middle = first + (end - first) / 2, column = step[middle].column;
		bool below = axis ? column < at * n_x : column % n_x < at;

		if (below == falling)
			end = middle;
		else
			first = middle + 1;
	}
	return first;
}

/* Return the steps of a path that touch a tile. */
static struct cpu_span steps_in_tile(const struct projection *a, const struct path *path, const struct tile *tile)
{
	const struct path_step *step = a->paths->step + path->at;
	int n_x = a->grid.n[0], first = step[0].column, last = path->n ? step[path->n - 1].column : first;
	struct cpu_span span = {0, path->n};

	for (int axis = 1; axis >= 0 && span.first < span.end; axis--) {
		bool falling = axis ? first / n_x > last / n_x : first % n_x > last % n_x;
		bool neighbour = a->model == PROJECTION_JOSEPH && (path->neighbour == 1) == (axis == 0);
		int lo = tile->lo[axis] - neighbour, hi = tile->hi[axis]; /* the neighbour may be in the tile */
		struct cpu_span cut;

		cut.first = find_step(step, span.first, span.end, n_x, axis, falling ? hi : lo, falling);
		cut.end = find_step(step, cut.first, span.end, n_x, axis, falling ? lo : hi, falling);
		span = cut;
	}
	return span;
}

/* Return the radial bins whose paths may touch a tile. */
static struct cpu_span radii_of_tile(const struct projection *a, const struct scan_view *view, const struct tile *tile)
{
	const struct grid *g = &a->grid;
	double low = HUGE_VAL, high = -HUGE_VAL,
	       edge = fmax(g->h[0], g->h[1]); /* JOSEPH touches pixels up to one pixel further away */
	struct cpu_span span = {0, a->scan->n_v};

	for (int corner = 0; corner < 4; corner++) {
		double x = g->lo[0] + (corner & 1 ? tile->hi[0] : tile->lo[0]) * g->h[0];
		double y = g->lo[1] + (corner & 2 ? tile->hi[1] : tile->lo[1]) * g->h[1];
		double r = x * view->turn[0] + y * view->turn[1];

		low = fmin(low, r - edge);
		high = fmax(high, r + edge);
	}
	while (span.first < span.end && a->scan->radius[span.first] < low)
		span.first++;
	while (span.end > span.first && a->scan->radius[span.end - 1] > high)
		span.end--;
	return span;
}

static bool is_inside(const struct tile *tile, int x, int y)
{
	return x >= tile->lo[0] && x < tile->hi[0] && y >= tile->lo[1] && y < tile->hi[1];
}

/* Add the slab's rows to the tile's columns. */
static void scatter_rows(const struct projection *a, const struct path *path, int first, int n, const struct tile *tile, float *x,
			 const struct cpu_work *w)
{
	const struct cpu_path_loops *loops = cpu_state(a->dev)->rows->paths;
	const struct path_step *step = a->paths->step + path->at + first;
	size_t column = grid_column(&a->grid);
	int n_x = a->grid.n[0];

	for (int i = 0; i < n; i++) {
		const float *row = w->slab + (size_t)i * (size_t)a->paths->slab.row;
		int at = step[i].column, neighbour = at + path->neighbour;

		if (a->model != PROJECTION_JOSEPH) {
			loops->scatter(&a->paths->slab, row, 1, x + (size_t)at * column);
			continue;
		}
		if (is_inside(tile, at % n_x, at / n_x))
			loops->scatter(&a->paths->slab, row, 1 - step[i].t, x + (size_t)at * column);
		if (is_inside(tile, neighbour % n_x, neighbour / n_x))
			loops->scatter(&a->paths->slab, row, step[i].t, x + (size_t)neighbour * column);
	}
}

/* Copy the bins of a path to the sums of the lanes, times the ratio of the ray's length to the path's. With time of flight only
 * those that the steps use. */
static void load_lanes(const struct projection *a, const struct path *path, struct cpu_span steps, const struct cpu_ray *ray,
		       const float *q, const struct cpu_work *w)
{
	const struct cpu_path_loops *loops = cpu_state(a->dev)->rows->paths;
	const struct cpu_paths *p = a->paths;
	struct cpu_span bins = {0, 1};

	for (int i = 0; i < p->n_lanes; i++) {
		const struct cpu_lane *lane = &p->lane[i];
		float *sums = lane_sums(p, lane, w);

		if (p->tof.n && (i == 0 || ray[i].stretch != ray[i - 1].stretch))
			bins = cpu_tof_reach(a, path, steps, ray[i].stretch);
		for (int k = bins.first; k < bins.end; k++)
			loops->load_bins(lane, ray[i].stretch, q + (size_t)k * (size_t)a->scan->n_u + lane->plane,
					 sums + (size_t)k * (size_t)lane->width);
	}
}

/* Add the sums of all lanes to the slab. */
static void back_lanes(const struct projection *a, const struct cpu_ray *ray, int n, const struct cpu_work *w)
{
	const struct cpu_path_loops *loops = cpu_state(a->dev)->rows->paths;
	const struct cpu_paths *p = a->paths;

	for (int i = 0; i < p->n_lanes; i++) {
		const struct cpu_lane *lane = &p->lane[i];
		int m = make_entries(a, lane, &ray[i], n, w);
		const float *sums = lane_sums(p, lane, w);

		if (!p->tof.n) {
			loops->back(w->slab, sums, lane->width, w->weight, w->place, m);
			continue;
		}
		if (i == 0 || ray[i].stretch != ray[i - 1].stretch)
			loops->tof_windows(&p->tof, w->middle, ray[i].stretch, n, w->first, w->bin);
		cpu_tof_back(&p->tof, loops, lane, n, w, sums);
	}
}

static void back_piece(const struct projection *a, const struct path *path, struct cpu_span steps, const struct tile *tile,
		       const struct cpu_ray *ray, float *x, const struct cpu_work *w)
{
	const struct cpu_paths *p = a->paths;

	for (int first = steps.first; first < steps.end; first += p->block) {
		int n = cpu_min(p->block, steps.end - first);

		measure_steps(a, path, first, n, w);
		memset(w->slab, 0, (size_t)n * (size_t)p->slab.row * sizeof(float));
		back_lanes(a, ray, n, w);
		scatter_rows(a, path, first, n, tile, x, w);
	}
}

static void clear_tile(const struct grid *g, const struct tile *tile, float *x)
{
	size_t column = grid_column(g), n = (size_t)(tile->hi[0] - tile->lo[0]) * column;

	for (int j = tile->lo[1]; j < tile->hi[1]; j++)
		memset(x + ((size_t)j * (size_t)g->n[0] + (size_t)tile->lo[0]) * column, 0, n * sizeof(float));
}

static void back_tile(const struct projection *a, const struct tile *tile, const struct cpu_back *b, const struct cpu_work *w)
{
	const struct cpu_paths *p = a->paths;
	size_t bins = (size_t)a->scan->n_u * (size_t)scan_ray_bins(a->scan), n_v = (size_t)a->scan->n_v;

	if (!b->add)
		clear_tile(&a->grid, tile, b->num);
	for (int view = 0; view < a->n_views; view++) {
		struct cpu_span vs = radii_of_tile(a, &a->scan->views[a->first + view], tile);

		for (int v = vs.first; v < vs.end; v++) {
			size_t at = (size_t)view * n_v + (size_t)v;
			const struct cpu_ray *ray = p->ray + (size_t)v * (size_t)p->n_lanes;
			struct cpu_span steps = {0, 0};

			if (p->path[at].n)
				steps = steps_in_tile(a, &p->path[at], tile);
			if (steps.first >= steps.end)
				continue;
			load_lanes(a, &p->path[at], steps, ray, b->q + at * bins, w);
			back_piece(a, &p->path[at], steps, tile, ray, b->num, w);
		}
	}
}

void cpu_paths_back(struct projection *a, const struct cpu_back *b)
{
	int size = a->paths->tile, n_x = a->grid.n[0], n_y = a->grid.n[1], threads = cpu_state(a->dev)->threads;
	int tiles_x = (n_x + size - 1) / size, tiles_y = (n_y + size - 1) / size;

	(void)threads;
#pragma omp parallel num_threads(threads)
	{
		struct cpu_work w = work_of(a);

#pragma omp for collapse(2) schedule(dynamic)
		for (int ty = 0; ty < tiles_y; ty++) {
			for (int tx = 0; tx < tiles_x; tx++) {
				struct tile tile = {{tx * size, ty * size},
						    {cpu_min((tx + 1) * size, n_x), cpu_min((ty + 1) * size, n_y)}};

				back_tile(a, &tile, b, &w);
			}
		}
	}
}
