/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_projection.cu - a system matrix on the CUDA device: its data in device memory, and the selection of the kernels. A
 * projection stores its views and, for a SCAN_DBT, a map per view and slice, cells of bins and, if it is kept, A'd. Larger
 * working memory, such as the 64-bit sums of bitwise repeatable results, is the device's scratch, which all projections share.
 * Tiles do not change what a kernel computes: each bin and each voxel is computed by one thread. */
#include "kernels/cuda/cuda_paths.cuh"
#include "kernels/lines.h"

#include <errno.h>
#include <stdlib.h>

static size_t count_bins(const struct projection_spec *spec)
{
	return (size_t)spec->n_views * scan_view_size(spec->scan);
}

static bool is_paths(enum projection_model model)
{
	return model >= PROJECTION_PATHS;
}

/* Return the number of strips of the detector (kernels/slice_map.h). */
static int count_strips(const struct scan *scan)
{
	int rows = slice_strip_rows(scan);

	return (scan->n_v + rows - 1) / rows;
}

/* Return the largest number of cells of a view: struct bin_planes. */
static size_t cells_of_view(const struct projection_spec *spec)
{
	return spec->model == PROJECTION_SLICES ? (((size_t)spec->scan->n_u + BIN_CELL - 1) / BIN_CELL) *
							  (((size_t)spec->scan->n_v + BIN_CELL_ROWS_MIN - 1) / BIN_CELL_ROWS_MIN)
						: 0;
}

/* Return whether A'd may be kept: not all conditions of cuda_slices_back_boxes.cu, which need the maps. */
static bool may_keep_den(const struct device *dev, const struct projection_spec *spec)
{
	return spec->keep_den && spec->model == PROJECTION_SLICES && spec->n_views > 1 && cuda_state(dev)->box_encoder &&
	       count_strips(spec->scan) == 1 && spec->scan->n_u % 4 == 0 && spec->tile[0] <= 0 && spec->tile[1] <= 0;
}

size_t cuda_projection_bytes(struct device *dev, const struct projection_spec *spec)
{
	if (lines_needed(spec))
		return cuda_lines_bytes(dev, spec);
	if (is_paths(spec->model))
		return cuda_paths_bytes(spec);
	return (size_t)spec->n_views * (sizeof(struct scan_view) + cells_of_view(spec) +
					(size_t)count_strips(spec->scan) * (size_t)spec->grid->n[2] * sizeof(struct slice_map)) +
	       (may_keep_den(dev, spec) ? grid_size(spec->grid) * sizeof(float) : 0);
}

size_t cuda_scratch_bytes(struct device *dev, const struct projection_spec *spec)
{
	(void)dev;
	if (lines_needed(spec))
		return cuda_lines_scratch(dev, spec);
	if (is_paths(spec->model))
		return cuda_paths_scratch(spec);
	return spec->model == PROJECTION_EXACT && spec->deterministic ? grid_size(spec->grid) * sizeof(long long) + sizeof(float)
								      : 0;
}

static int scratch_reserve(struct device *dev, size_t bytes, struct err *err)
{
	struct cuda_state *state = cuda_state(dev);
	void *mem = NULL;
	int r;

	if (bytes <= state->scratch_bytes)
		return 0;
	if ((r = cuda_check(cudaStreamSynchronize(state->stream), dev, "working memory", err)) < 0 ||
	    (r = cuda_check(cudaFree(state->scratch), dev, "working memory", err)) < 0)
		return r;
	state->scratch = NULL;
	state->scratch_bytes = 0;
	if ((r = cuda_check(cudaMalloc(&mem, bytes), dev, "working memory", err)) < 0)
		return r;
	state->scratch = mem;
	state->scratch_bytes = bytes;
	return 0;
}

static int upload_views(struct projection *a, const struct projection_spec *spec, struct err *err)
{
	size_t bytes = (size_t)spec->n_views * sizeof(struct scan_view);
	int r = cuda_check(cudaMalloc((void **)&a->views, bytes), a->dev, "views", err);

	return r < 0 ? r
		     : cuda_check(cudaMemcpyAsync(a->views, spec->scan->views + spec->first, bytes, cudaMemcpyHostToDevice,
						  cuda_state(a->dev)->stream),
				  a->dev, "views", err);
}

static int upload_rays(struct projection *a, const struct projection_spec *spec, struct err *err)
{
	const struct scan *s = spec->scan;
	size_t planes = (size_t)s->n_u * sizeof(*s->planes), radii = (size_t)s->n_v * sizeof(*s->radius);
	cudaStream_t stream = cuda_state(a->dev)->stream;
	int r = cuda_check(cudaMalloc((void **)&a->scan.planes, planes), a->dev, "planes", err);

	a->largest_rise = planes_max_abs_rise(s);
	a->level = a->largest_rise == 0;
	a->stack = lines_fit(s, spec->grid);
	a->radial_first = s->radius[0];
	a->radial_pitch = s->n_v > 1 ? (s->radius[s->n_v - 1] - s->radius[0]) / (s->n_v - 1) : 1;
	if (r == 0)
		r = cuda_check(cudaMalloc((void **)&a->scan.radius, radii), a->dev, "radial bins", err);
	if (r == 0)
		r = cuda_check(cudaMemcpyAsync((void *)a->scan.planes, s->planes, planes, cudaMemcpyHostToDevice, stream), a->dev,
			       "planes", err);
	return r < 0 ? r
		     : cuda_check(cudaMemcpyAsync((void *)a->scan.radius, s->radius, radii, cudaMemcpyHostToDevice, stream),
				  a->dev, "radial bins", err);
}

static int upload_maps(struct projection *a, const struct projection_spec *spec, struct err *err)
{
	int nz = spec->grid->n[2];
	size_t n = (size_t)spec->n_views * (size_t)a->strips * (size_t)nz;
	struct slice_map *maps = (struct slice_map *)malloc(n * sizeof(*maps));
	int r;

	if (!maps)
		return err_set(err, ENOMEM, "%s: out of memory for %zu slice maps", a->dev->name, n);
	for (int s = 0; s < spec->n_views; s++)
		for (int strip = 0; strip < a->strips; strip++)
			for (int k = 0; k < nz; k++)
				maps[((size_t)s * a->strips + strip) * nz + k] =
					slice_map_strip(spec->scan, spec->scan->views + spec->first + s, spec->grid, k,
							strip * a->strip_rows, a->strip_rows);
	for (int c = 0; c < 2; c++) {
		a->scale_min[c] = INFINITY;
		a->scale_max[c] = 0;
		for (size_t i = 0; i < n; i++) {
			a->scale_min[c] = fmin(a->scale_min[c], maps[i].scale[c]);
			a->scale_max[c] = fmax(a->scale_max[c], maps[i].scale[c]);
		}
	}
	if (spec->model == PROJECTION_SLICES && a->strips == 1) {
		a->box_rows = spec->n_views > 1 ? back_boxes_rows(a->dev, maps, spec->n_views, spec->grid)
						: back_view_rows(a->dev, maps, spec->grid, &a->box_slices);
		a->box_pairs = forward_boxes_pairs(maps, spec->n_views, nz, spec->scan);
	}
	r = cuda_check(cudaMalloc((void **)&a->maps, n * sizeof(*maps)), a->dev, "slice maps", err);
	if (r == 0 && spec->model == PROJECTION_SLICES)
		r = cuda_check(cudaMalloc((void **)&a->full, (size_t)spec->n_views * cells_of_view(spec)), a->dev, "cells", err);
	if (r == 0 && may_keep_den(a->dev, spec) && a->box_rows > 0)
		r = cuda_check(cudaMalloc((void **)&a->sums, grid_size(spec->grid) * sizeof(float)), a->dev, "sums of lengths",
			       err);
	if (r == 0)
		r = cuda_check(
			cudaMemcpyAsync(a->maps, maps, n * sizeof(*maps), cudaMemcpyHostToDevice, cuda_state(a->dev)->stream),
			a->dev, "slice maps", err);
	free(maps);
	return r;
}

int cuda_projection_create(struct device *dev, const struct projection_spec *spec, struct projection **ret, struct err *err)
{
	struct projection *a = NULL;
	int r;

	if (spec->first < 0 || spec->n_views < 1 || spec->first + spec->n_views > spec->scan->n_views)
		return err_set(err, EINVAL, "%s: views %d to %d are requested, but the scan has %d views", dev->name, spec->first,
			       spec->first + spec->n_views - 1, spec->scan->n_views);
	if (spec->mask && spec->mask->n != count_bins(spec))
		return err_set(err, EINVAL, "%s: the mask has %zu bins, the views have %zu", dev->name, spec->mask->n,
			       count_bins(spec));
	if (spec->model == PROJECTION_SLICES)
		for (int s = 0; s < spec->n_views; s++)
			if (spec->scan->kind != SCAN_DBT ||
			    !slice_map_valid(spec->scan, spec->scan->views + spec->first + s, spec->grid))
				return err_set(err, EINVAL, "%s: view %d: some slices are not between detector and source",
					       dev->name, spec->first + s);
	if (is_paths(spec->model) && spec->scan->kind != SCAN_PARALLEL)
		return err_set(err, EINVAL, "%s: model %d supports only parallel rays", dev->name, (int)spec->model);
	if ((r = spec->scan->kind == SCAN_PARALLEL ? planes_check(spec, err) : planes_check_tof(spec, err)) < 0)
		return r;
	a = (struct projection *)calloc(1, sizeof(*a));
	if (!a)
		return err_set(err, ENOMEM, "%s: out of memory", dev->name);
	a->dev = dev;
	a->model = spec->model;
	a->scan = *spec->scan;
	a->scan.views = NULL;
	a->scan.planes = NULL;
	a->scan.radius = NULL;
	a->grid = *spec->grid;
	a->n_views = spec->n_views;
	a->mask = spec->mask ? spec->mask->mem : NULL;
	a->deterministic = spec->deterministic;
	a->tile[0] = spec->tile[0];
	a->tile[1] = spec->tile[1];
	a->strip_rows = spec->scan->kind == SCAN_DBT ? slice_strip_rows(spec->scan) : spec->scan->n_v;
	a->strips = spec->scan->kind == SCAN_DBT ? count_strips(spec->scan) : 1;
	for (int s = 0; spec->scan->kind == SCAN_DBT && s < spec->n_views; s++)
		a->bin_angle =
			fmax(a->bin_angle, fmax(spec->scan->h[0], spec->scan->h[1]) / spec->scan->views[spec->first + s].src[2]);
	a->marks = spec->scan->kind == SCAN_DBT;
	for (int s = 0; s < spec->n_views; s++)
		a->marks = a->marks && slice_map_valid(spec->scan, spec->scan->views + spec->first + s, spec->grid);
	if ((r = cuda_check(cudaSetDevice(dev->index), dev, "cudaSetDevice", err)) < 0 || (r = upload_views(a, spec, err)) < 0)
		goto out;
	if (spec->scan->kind == SCAN_DBT && (r = upload_maps(a, spec, err)) < 0)
		goto out;
	if (spec->scan->kind == SCAN_PARALLEL && (r = upload_rays(a, spec, err)) < 0)
		goto out;
	if (lines_needed(spec))
		r = cuda_lines_create(a, spec, err);
	else if (is_paths(spec->model))
		r = cuda_paths_create(a, spec, err);
	if (r < 0)
		goto out;
	if ((r = scratch_reserve(dev, cuda_scratch_bytes(dev, spec), err)) < 0)
		goto out;
	*ret = a;
	return 0;
out:
	cuda_projection_free(a);
	return r;
}

void cuda_projection_free(struct projection *a)
{
	if (!a)
		return;
	cudaSetDevice(a->dev->index);
	cudaStreamSynchronize(cuda_state(a->dev)->stream);
	cuda_paths_free(a->paths);
	cuda_lines_free(a->lines);
	cudaFree((void *)a->scan.planes);
	cudaFree((void *)a->scan.radius);
	cudaFree(a->views);
	cudaFree(a->maps);
	cudaFree(a->full);
	cudaFree(a->sums);
	free(a);
}

static int check_sizes(const struct projection *a, const char *what, size_t n_x, size_t n_y, struct err *err)
{
	size_t n_bins = (size_t)a->n_views * scan_view_size(&a->scan);

	if (n_x != grid_size(&a->grid) || n_y != n_bins)
		return err_set(err, EINVAL,
			       "%s: %s: the projection has %zu voxels and %zu bins, but the vectors have %zu and %zu floats",
			       a->dev->name, what, grid_size(&a->grid), n_bins, n_x, n_y);
	return cuda_check(cudaSetDevice(a->dev->index), a->dev, "cudaSetDevice", err);
}

/* Check that data, pairs and lengths of rows fit the projection's bins. */
static int check_rule(const struct projection *a, const char *what, const struct rule *rule, const struct buf *y,
		      const struct buf *row, const struct buf *pair, struct err *err)
{
	size_t n_bins = (size_t)a->n_views * scan_view_size(&a->scan);

	if (y->n != n_bins || pair->n != 2 * n_bins || (row && row->n != n_bins))
		return err_set(err, EINVAL, "%s: %s: %zu data, %zu row lengths and %zu pair values do not fit %zu bins",
			       a->dev->name, what, y->n, row ? row->n : 0, pair->n, n_bins);
	if (rule_needs_length(rule->kind) && !row)
		return err_set(err, EINVAL, "%s: %s: rule %d needs the row lengths (row is NULL)", a->dev->name, what,
			       (int)rule->kind);
	return 0;
}

int cuda_forward(struct projection *a, const struct buf *x, bool add, struct buf *y, struct err *err)
{
	int r = check_sizes(a, "forward", x->n, y->n, err);

	if (r < 0)
		return r;
	if (a->paths || a->lines)
		return cuda_paths_forward(a, x->mem, add, y->mem, err);
	return a->model == PROJECTION_EXACT ? cuda_exact_forward(a, x->mem, add, y->mem, err)
					    : cuda_slices_forward(a, NULL, x->mem, add, NULL, NULL, y->mem, NULL, err);
}

int cuda_adjoint(struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err)
{
	int r = check_sizes(a, "adjoint", x->n, y->n, err);

	if (r < 0)
		return r;
	if (a->paths || a->lines)
		return cuda_paths_back(a, y->mem, add, x->mem, err);
	return a->model == PROJECTION_EXACT
		       ? cuda_exact_adjoint(a, y->mem, add, x->mem, a->deterministic ? cuda_state(a->dev)->scratch : NULL, err)
		       : cuda_slices_adjoint(a, y->mem, add, x->mem, err);
}

/* The order of a pair buffer: (q, d) of each bin, or all q before all d if q and d are backprojected one after the other. */
static bool pairs_are_apart(const struct projection *a)
{
	return a->paths || a->lines || a->scan.tof.n;
}

struct pair_job {
	struct scan scan;
	struct grid grid;
	const struct scan_view *views;
	const float *mask, *y, *p, *row;
	float2 *pair;
	struct rule rule;
	bool weigh, apart;
};

static __global__ void __launch_bounds__(CUDA_THREADS) pair_kernel(const __grid_constant__ struct pair_job job, size_t n)
{
	for (size_t i = cuda_index(); i < n; i += (size_t)gridDim.x * blockDim.x) {
		struct rule_pair pair = {0, 0};
		float length = 1;

		if (!job.mask || job.mask[i] > 0) {
			size_t per_view = scan_view_size(&job.scan), in_view = i % per_view;
			const struct scan_view *view = job.views + i / per_view;

			pair = rule_bin(&job.rule, job.y[i], job.p[i], job.row ? job.row[i] : 0);
			if (job.weigh)
				length = cuda_slice_length(&job.scan, view, &job.grid, (int)(in_view % job.scan.n_u),
							   (int)(in_view / job.scan.n_u));
			if (job.apart && job.rule.weighted && job.mask && job.mask[i] < 1)
				pair = rule_weigh(job.rule.kind, pair, job.mask[i]);
		}
		if (job.apart) {
			((float *)job.pair)[i] = pair.q;
			((float *)job.pair)[n + i] = pair.d;
		} else {
			job.pair[i] = make_float2(pair.q * length, pair.d * length);
		}
	}
}

/* Apply the weights in the mask to the pairs of all bins: rule_weigh(). */
static __global__ void __launch_bounds__(CUDA_THREADS)
	weigh_kernel(enum rule_kind kind, const float *mask, float2 *pair, size_t n)
{
	for (size_t i = cuda_index(); i < n; i += (size_t)gridDim.x * blockDim.x) {
		struct rule_pair weighed;

		if (!(mask[i] > 0 && mask[i] < 1))
			continue;
		weighed = rule_weigh(kind, {pair[i].x, pair[i].y}, mask[i]);
		pair[i] = make_float2(weighed.q, weighed.d);
	}
}

static int weigh_pair(struct projection *a, const struct rule *rule, struct buf *pair, struct err *err)
{
	size_t n = pair->n / 2;

	if (!rule->weighted || !a->mask)
		return 0;
	weigh_kernel<<<cuda_blocks(n), CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(rule->kind, a->mask, (float2 *)pair->mem,
										      n);
	return cuda_check(cudaGetLastError(), a->dev, "weigh", err);
}

int cuda_make_pair(struct projection *a, const struct rule *rule, const struct buf *y, const struct buf *p, const struct buf *row,
		   struct buf *ret_pair, struct err *err)
{
	struct pair_job job = {};
	int r = check_sizes(a, "make_pair", grid_size(&a->grid), p->n, err);

	if (r < 0 || (r = check_rule(a, "make_pair", rule, y, row, ret_pair, err)) < 0)
		return r;
	job.scan = a->scan;
	job.grid = a->grid;
	job.views = a->views;
	job.mask = a->mask;
	job.y = y->mem;
	job.p = p->mem;
	job.row = row ? row->mem : NULL;
	job.pair = (float2 *)ret_pair->mem;
	job.rule = *rule;
	job.weigh = a->model == PROJECTION_SLICES;
	job.apart = pairs_are_apart(a);
	pair_kernel<<<cuda_blocks(y->n), CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(job, y->n);
	r = cuda_check(cudaGetLastError(), a->dev, "make_pair", err);
	return r < 0 || job.apart ? r : weigh_pair(a, rule, ret_pair, err);
}

int cuda_back_sums(struct projection *a, const struct buf *pair, bool add, struct buf *num, struct buf *den, struct err *err)
{
	const float2 *q = (const float2 *)pair->mem;
	int r = check_sizes(a, "back_sums", num->n, pair->n / 2, err);

	if (r == 0)
		r = check_sizes(a, "back_sums", den->n, pair->n / 2, err);
	if (r < 0)
		return r;
	if (pairs_are_apart(a)) {
		struct buf part[] = {buf_part(pair, 0, pair->n / 2), buf_part(pair, pair->n / 2, pair->n / 2)};

		r = cuda_adjoint(a, &part[0], add, num, err);
		return r < 0 ? r : cuda_adjoint(a, &part[1], add, den, err);
	}
	return a->model == PROJECTION_EXACT ? cuda_exact_sums(a, q, add, num->mem, den->mem,
							      a->deterministic ? cuda_state(a->dev)->scratch : NULL, err)
					    : cuda_slices_sums(a, q, add, num->mem, den->mem, err);
}

bool cuda_fused(const struct projection *a)
{
	return a->model == PROJECTION_SLICES;
}

static int check_fused(const struct projection *a, const char *what, struct err *err)
{
	return cuda_fused(a) ? 0 : err_set(err, ENOTSUP, "%s: %s: the exact operator has no fused passes", a->dev->name, what);
}

int cuda_forward_pair(struct projection *a, const struct rule *rule, const struct buf *x, const struct buf *y,
		      const struct buf *row, struct buf *ret_pair, struct err *err)
{
	int r = check_fused(a, "forward_pair", err);

	if (r < 0 || (r = check_sizes(a, "forward_pair", x->n, y->n, err)) < 0 ||
	    (r = check_rule(a, "forward_pair", rule, y, row, ret_pair, err)) < 0)
		return r;
	r = cuda_slices_forward(a, rule, x->mem, false, y->mem, row ? row->mem : NULL, ret_pair->mem, NULL, err);
	return r < 0 ? r : weigh_pair(a, rule, ret_pair, err);
}

int cuda_back_update(struct projection *a, const struct rule *rule, const struct buf *pair, struct buf *x, struct err *err)
{
	int r = check_fused(a, "back_update", err);

	if (r < 0 || (r = check_sizes(a, "back_update", x->n, pair->n / 2, err)) < 0)
		return r;
	return cuda_slices_update(a, rule, (const float2 *)pair->mem, x->mem, err);
}

int cuda_sub_iterate(struct projection *a, const struct rule *rule, const struct buf *y, const struct buf *row, struct buf *work,
		     struct buf *x, struct err *err)
{
	struct bin_planes planes;
	int r;

	if (!cuda_fused(a) || !cuda_slices_planes(a, rule)) {
		r = cuda_forward_pair(a, rule, x, y, row, work, err);
		return r < 0 ? r : cuda_back_update(a, rule, work, x, err);
	}
	if ((r = check_sizes(a, "sub_iterate", x->n, y->n, err)) < 0 ||
	    (r = check_rule(a, "sub_iterate", rule, y, row, work, err)) < 0)
		return r;
	r = cuda_slices_forward(a, rule, x->mem, false, y->mem, NULL, work->mem, &planes, err);
	return r < 0 ? r : cuda_slices_update_planes(a, rule, &planes, x->mem, err);
}
