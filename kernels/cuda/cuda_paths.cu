/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_paths.cu - the tables of the transaxial paths on the CUDA device, computed there by the same functions as on the CPU. */
#include "kernels/cuda/cuda_paths.cuh"

#include <errno.h>
#include <stdlib.h>

#define DISTANCE_TOL 1e-6 /* slices */

static bool is_joseph(const struct projection_spec *spec)
{
	return spec->model == PROJECTION_JOSEPH;
}

static size_t count_steps(const struct projection_spec *spec, size_t *ret_at)
{
	const struct scan *s = spec->scan;
	double rise = is_joseph(spec) ? 0 : planes_max_abs_rise(s);
	size_t n = 0, i = 0;

	for (int view = spec->first; view < spec->first + spec->n_views; view++)
		for (int v = 0; v < s->n_v; v++, i++) {
			if (ret_at)
				ret_at[i] = n;
			n += (size_t)path_bound(s, s->views + view, v, spec->grid, rise);
		}
	return n;
}

size_t cuda_paths_bytes(const struct projection_spec *spec)
{
	const struct scan *s = spec->scan;
	size_t n_u = (size_t)s->n_u;

	return count_steps(spec, NULL) * sizeof(struct path_step) + (size_t)spec->n_views * (size_t)s->n_v * sizeof(struct path) +
	       (size_t)s->n_v * (sizeof(float) + sizeof(double)) + (size_t)spec->n_views * sizeof(struct scan_view) +
	       n_u * (sizeof(struct path_lane) + sizeof(struct scan_plane)) + (s->tof.n > 0 ? cuda_tof_bytes(spec) : 0);
}

/* Return the bytes of scratch memory: 64-bit sums and one float. */
size_t cuda_paths_scratch(const struct projection_spec *spec)
{
	return spec->deterministic ? grid_size(spec->grid) * sizeof(long long) + sizeof(float) : 0;
}

static __global__ void __launch_bounds__(CUDA_THREADS)
	make_kernel(struct scan scan, const struct scan_view *views, struct grid grid, int n_views, bool joseph,
		    double largest_rise, struct path *path, struct path_step *step)
{
	size_t i = cuda_index();
	int view = (int)(i / scan.n_v), v = (int)(i % scan.n_v);

	if (view >= n_views)
		return;
	path[i].n = joseph ? path_joseph(&scan, views + view, v, &grid, step + path[i].at, path + i)
			   : path_walk(&scan, views + view, v, &grid, largest_rise, step + path[i].at, &path[i].t);
}

static int upload_table(struct projection *a, const void *from, size_t bytes, void **ret, struct err *err)
{
	int r = cuda_check(cudaMalloc(ret, bytes ? bytes : 1), a->dev, "paths", err);

	return r < 0 ? r
		     : cuda_check(cudaMemcpyAsync(*ret, from, bytes, cudaMemcpyHostToDevice, cuda_state(a->dev)->stream), a->dev,
				  "paths", err);
}

static int make_tables(struct projection *a, const struct projection_spec *spec, struct err *err)
{
	size_t n = (size_t)spec->n_views * (size_t)spec->scan->n_v, steps, *at = (size_t *)malloc(n * sizeof(*at));
	struct path *path = (struct path *)calloc(n, sizeof(*path));
	double rise = planes_max_abs_rise(spec->scan);
	struct cuda_paths *p = a->paths;
	int r;

	if (!at || !path) {
		r = err_set(err, ENOMEM, "%s: out of memory for %zu paths", a->dev->name, n);
		goto out;
	}
	steps = count_steps(spec, at);
	for (size_t i = 0; i < n; i++)
		path[i].at = at[i];
	if ((r = upload_table(a, path, n * sizeof(*path), (void **)&p->path, err)) < 0 ||
	    (r = cuda_check(cudaMalloc((void **)&p->step, (steps ? steps : 1) * sizeof(*p->step)), a->dev, "steps of paths",
			    err)) < 0)
		goto out;
	make_kernel<<<cuda_blocks(n), CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(
		a->scan, a->views, a->grid, a->n_views, a->model == PROJECTION_JOSEPH, rise, p->path, p->step);
	r = cuda_check(cudaGetLastError(), a->dev, "making paths", err);
	if (r == 0) /* the host memory is freed */
		r = cuda_check(cudaStreamSynchronize(cuda_state(a->dev)->stream), a->dev, "making paths", err);
out:
	free(at);
	free(path);
	return r;
}

/* Divide groups into lanes of at most PATHS_PLANES planes that are two slices apart. If planes of a group are not one or two
 * slices apart, each is a lane. Return the number of lanes. */
static int lanes_of(const struct projection_spec *spec, const struct plane_group *group, int n_groups, struct path_lane *ret)
{
	const struct scan *s = spec->scan;
	const struct grid *g = spec->grid;
	int n = 0;

	for (int i = 0; i < n_groups; i++) {
		double pitch = group[i].pitch / g->h[2];
		int whole = (int)lrint(pitch), stride = whole == 1 ? 2 : 1, cap = PATHS_PLANES;

		if (group[i].n > 1 && (fabs(pitch - whole) * group[i].n > DISTANCE_TOL || whole < 1 || whole > 2))
			stride = cap = 1;
		for (int part = 0; part < stride; part++)
			for (int j = part; j < group[i].n; j += stride * cap) {
				int left = (group[i].n - j + stride - 1) / stride, plane = group[i].first + j;
				double z = (s->planes[plane].z - g->lo[2]) / g->h[2] - (is_joseph(spec) ? 0 : 0.5);
				int base = 2 * (int)floor(z / 2);

				ret[n++] = (struct path_lane){
					plane, stride, left < cap ? left : cap, base, (float)(z - base), group[i].rise / g->h[2]};
			}
	}
	return n;
}

static bool leaves_grid(const struct scan *s, const struct grid *g, bool joseph)
{
	double reach = joseph ? 0.5 * g->h[2] : 0, lo = g->lo[2] + reach, hi = g->lo[2] + g->n[2] * g->h[2] - reach;

	for (int v = 0; v < s->n_v; v++) {
		double t = scan_reach(s, v);

		for (int u = 0; u < s->n_u && t > 0; u++) {
			double rise = fabs(scan_slope(s, s->planes[u].rise, v)) * t;

			if (s->planes[u].z - rise < lo - DISTANCE_TOL || s->planes[u].z + rise > hi + DISTANCE_TOL)
				return true;
		}
	}
	return false;
}

static int make_planes(struct projection *a, const struct projection_spec *spec, struct err *err)
{
	const struct scan *s = spec->scan;
	int n_groups = planes_group(s, NULL), r;
	struct cuda_paths *p = a->paths;
	struct plane_group *group = (struct plane_group *)malloc((size_t)n_groups * sizeof(*group));
	struct path_lane *lane = (struct path_lane *)malloc((size_t)s->n_u * sizeof(*lane));
	float *inv_w = (float *)calloc((size_t)s->n_v, sizeof(*inv_w));

	if (!group || !lane || !inv_w) {
		r = err_set(err, ENOMEM, "%s: out of memory for %d planes", a->dev->name, s->n_u);
		goto out;
	}
	p->leaves = leaves_grid(s, spec->grid, a->model == PROJECTION_JOSEPH);
	for (int v = 0; v < s->n_v; v++)
		if (scan_reach(s, v) > 0 && s->ring_radius > fabs(s->radius[v])) {
			inv_w[v] = (float)scan_slope(s, 1, v);
			p->steepest = fmax(p->steepest, scan_slope(s, planes_max_abs_rise(s), v) / spec->grid->h[2]);
		}
	planes_group(s, group);
	p->n_lanes = lanes_of(spec, group, n_groups, lane);
	if ((r = upload_table(a, lane, (size_t)p->n_lanes * sizeof(*lane), (void **)&p->lane, err)) < 0 ||
	    (r = upload_table(a, inv_w, (size_t)s->n_v * sizeof(*inv_w), (void **)&p->inv_w, err)) < 0)
		goto out;
	r = cuda_check(cudaStreamSynchronize(cuda_state(a->dev)->stream), a->dev, "paths", err);
out:
	free(group);
	free(lane);
	free(inv_w);
	return r;
}

int cuda_paths_create(struct projection *a, const struct projection_spec *spec, struct err *err)
{
	int r;

	a->paths = (struct cuda_paths *)calloc(1, sizeof(*a->paths));
	if (!a->paths)
		return err_set(err, ENOMEM, "%s: out of memory", a->dev->name);
	r = make_planes(a, spec, err);
	if (r == 0 && spec->scan->tof.n > 0)
		r = cuda_tof_create(a, spec, &a->paths->tof, err);
	return r < 0 ? r : make_tables(a, spec, err);
}

void cuda_paths_free(struct cuda_paths *p)
{
	if (!p)
		return;
	cuda_tof_free(p->tof);
	cudaFree(p->path);
	cudaFree(p->step);
	cudaFree(p->lane);
	cudaFree(p->inv_w);
	free(p);
}

int cuda_paths_forward(struct projection *a, const float *x, bool add, float *y, struct err *err)
{
	if (a->lines)
		return cuda_lines_forward(a, x, add, y, err);
	if (a->paths->tof)
		return cuda_tof_forward(a, x, add, y, err);
	return cuda_paths_rays_forward(a, x, add, y, err);
}

/* Find the largest |y|. The bits of non-negative floats have the same order as the integers with these bits, so atomicMax() of
 * integers is used. */
static __global__ void __launch_bounds__(CUDA_THREADS) largest_kernel(const float *y, size_t n, int *largest)
{
	int bits = 0;

	for (size_t i = cuda_index(); i < n; i += (size_t)gridDim.x * blockDim.x)
		bits = max(bits, __float_as_int(fabsf(y[i])));
	atomicMax(largest, bits);
}

static __global__ void __launch_bounds__(CUDA_THREADS)
	unfix_kernel(const long long *fixed, size_t n, const float *largest, double bound, bool add, float *x)
{
	size_t i = cuda_index();

	if (i < n) {
		float sum = (float)((double)fixed[i] * ((double)*largest * bound * 0x1p-62));

		x[i] = add ? x[i] + sum : sum;
	}
}

static int project_back(struct projection *a, const float *y, const struct cuda_fixed *fixed, float *x, struct err *err)
{
	if (a->lines)
		return cuda_lines_back(a, y, fixed, x, err);
	if (a->paths->tof)
		return cuda_tof_back(a, y, fixed, x, err);
	return cuda_paths_rays_back(a, y, fixed, x, err);
}

int cuda_paths_back(struct projection *a, const float *y, bool add, float *x, struct err *err)
{
	const double *h = a->grid.h;
	cudaStream_t stream = cuda_state(a->dev)->stream;
	size_t n_x = grid_size(&a->grid), n_y = (size_t)a->n_views * scan_view_size(&a->scan);
	struct cuda_fixed fixed;
	int r;

	if (a->lines && cuda_lines_rows(a->lines))
		return cuda_line_rows_back(a, cuda_lines_rows(a->lines), y, add, x, err);
	if (!a->deterministic) {
		r = add ? 0 : cuda_check(cudaMemsetAsync(x, 0, n_x * sizeof(float), stream), a->dev, "paths back", err);
		return r < 0 ? r : project_back(a, y, NULL, x, err);
	}
	fixed.sums = (unsigned long long *)cuda_state(a->dev)->scratch;
	fixed.largest = (const float *)(fixed.sums + n_x);
	fixed.bound = (double)n_y * sqrt(h[0] * h[0] + h[1] * h[1] +
					 h[2] * h[2]); /* the number of bins, times the longest path through a voxel */
	r = cuda_check(cudaMemsetAsync(fixed.sums, 0, n_x * sizeof(long long) + sizeof(float), stream), a->dev, "paths back",
		       err);
	if (r < 0)
		return r;
	largest_kernel<<<CUDA_PARTIALS, CUDA_THREADS, 0, stream>>>(y, n_y, (int *)fixed.largest);
	r = project_back(a, y, &fixed, x, err);
	if (r < 0)
		return r;
	unfix_kernel<<<cuda_blocks(n_x), CUDA_THREADS, 0, stream>>>((const long long *)fixed.sums, n_x, fixed.largest,
								    fixed.bound, add, x);
	return cuda_check(cudaGetLastError(), a->dev, "paths back", err);
}
