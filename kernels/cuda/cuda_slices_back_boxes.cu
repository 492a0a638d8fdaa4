/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_slices_back_boxes.cu - the EM update from several views on the CUDA device, for a detector that stands still
 * (kernels/slice_map.h), from planes of bins (struct bin_planes).
 * - A block updates GROUP slices, view by view; a step is a view. The bins that its voxels need of a view are a box in shared
 *   memory; the copy engine brings that of the next view while the present one is used. Bins outside the detector are 0 in it.
 * - If all bins of a box are used, only q is copied; A'd is then known from the weights (cuda_slices_lengths.cuh). Else d is
 *   copied, too.
 * - A warp has only BOX_LANES voxels along x. Their bins are within 32 neighbours, so no two lanes need different values of one
 *   bank of shared memory: each of the three reads of a row of bins takes one cycle.
 * - A thread computes ROWS voxels along y. The weights along x depend on the lane, those along y on the warp; a block computes
 *   them once. While its threads gather the bins of one view, they compute the weights of the next, and one more warp starts to
 *   copy the next box and computes the positions of the view after that; so one barrier a view is enough.
 * - A warp skips slices in which all of its voxels are 0.
 * - Only one thread adds to each value, in a fixed order, so every run gives bitwise the same result. */
#include "kernels/cuda/cuda_box.cuh"
#include "kernels/cuda/cuda_slices_lengths.cuh"

#define BOX_LANES 28
#define BOX_COLUMNS 48 /* of a box */
#define ROWS 8
#define GROUP 2 /* slices of a block */
#define BOX_THREADS (CUDA_THREADS + 32)
#define BOX_BLOCKS 2				   /* resident on a multiprocessor: up to 112 registers per thread */
#define BOX_BYTES (227 * 1024 / BOX_BLOCKS - 1024) /* of shared memory for a block, at most */
#define BLOCK_ROWS (SLICES_WARPS * ROWS)

/* Rows of bins are counted from the first one that touches the thread's voxels. Voxel r is touched by rows r to r + 2 if r < 5,
 * else by rows r to r + 3, for scales above 6 / 7 along y. So row m touches voxels first_voxel(m) to end_voxel(m) - 1; its
 * weights are at weight_at(m, voxel), and those of all rows follow each other. */
#define BIN_ROWS (ROWS + 3)
#define WEIGHTS 28 /* 27, and one more for alignment */

struct box_axis {
	struct slice_axis map;
	float origin; /* length_origin() */
};

struct box_corner {
	int u, v;   /* the first bin of the box */
	bool known; /* all bins are used, so the box of d is not copied */
	float height;
};

/* What the threads of a block share of one slice in a step. */
struct box_slice {
	float4 x[SLICES_LANES];		     /* weights of three bins; offset of the first one in a row of the box (int) */
	float4 y[SLICES_WARPS][WEIGHTS / 4]; /* weight_at() */
	float2 length_x[SLICES_LANES];	     /* length_x() */
	float2 length_y[SLICES_WARPS][ROWS]; /* length_y() */
	int row[SLICES_WARPS];		     /* offset of the first row of bins in the box */
};

/* Dynamic shared memory: two boxes of q and two of d, then this. */
struct back_boxes {
	struct box_slice slice[2][GROUP];
	struct box_axis axis[3][GROUP][2]; /* of three steps */
	struct box_corner corner[3];
	cuda_barrier full[2];
};

struct box_job {
	struct back_job back;
	int box_rows;
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
static __device__ constexpr int first_voxel(int m)
{
	return m < 3 ? 0 : m < 8 ? m - 2 : m - 3;
}

static __device__ constexpr int end_voxel(int m)
{
	return m < ROWS ? m + 1 : ROWS;
}

static __device__ constexpr int weight_at(int m, int voxel)
{
	return (m < 2 ? m : m < 10 ? 3 * (m - 1) : 26) + voxel - first_voxel(m);
}

static_assert(weight_at(1, 0) == 1 && weight_at(2, 0) == 3 && weight_at(8, 5) == weight_at(7, 7) + 1 &&
		      weight_at(9, 6) == weight_at(8, 7) + 1 && weight_at(10, 7) == weight_at(9, 7) + 1 &&
		      weight_at(10, 7) < WEIGHTS,
	      "weights follow each other");

/* Return the corner of the box of a view, and whether all of its bins are used. base: the first bin, along u in even lanes and
 * along v in odd ones, of a slice. All lanes of a warp call it. */
static __device__ __forceinline__ struct box_corner box_corner_of(const struct box_job &job, int view, int base, int lane)
{
	const struct bin_planes &p = job.back.planes;
	const int n_u = job.back.scan.n_u, n_v = job.back.scan.n_v;
	bool known = true;

	static_assert(BOX_COLUMNS <= 3 * BIN_CELL, "a box is in at most 4 cells along u");
	base = min(base, (lane % 2 ? n_v : n_u) - 3); /* as weigh_lane() */
#pragma unroll
	for (int d = 2; d < 32; d *= 2)
		base = min(base, __shfl_xor_sync(0xffffffffu, base, d));
	const int u = __shfl_sync(0xffffffffu, base, 0) & ~3, v = __shfl_sync(0xffffffffu, base, 1);
	const int cell_u = max(u, 0) / BIN_CELL + lane % 4, end_u = min(u + BOX_COLUMNS, n_u), end_v = min(v + job.box_rows, n_v);

	if (cell_u * BIN_CELL < end_u)
		for (int cell_v = (max(v, 0) >> p.log2_rows) + lane / 4; cell_v << p.log2_rows < end_v; cell_v += 8)
			known = known &&
				p.full[((unsigned)view * (unsigned)p.cells[1] + (unsigned)cell_v) * (size_t)p.cells[0] + cell_u];
	return {u, v, (bool)__all_sync(0xffffffffu, known), (float)job.back.views[view].src[2]};
}

/* Compute the weights along x of a slice. */
static __device__ __forceinline__ void weigh_columns(const struct box_job &job, const struct box_axis &axis,
						     const struct box_corner &corner, int lane, struct box_slice *ret)
{
	float4 x = weigh_lane(job.back, axis.map, min(lane, BOX_LANES - 1));

	ret->length_x[lane] = length_x(job.back, axis.map, x, axis.origin, corner.height);
	x.w = __int_as_float(min(max(__float_as_int(x.w) - corner.u, 0), BOX_COLUMNS - 3));
	ret->x[lane] = x;
}

/* Compute the weights along y of line n of the block's voxels. */
static __device__ __forceinline__ void weigh_line(const struct box_job &job, const struct box_axis &axis,
						  const struct box_corner &corner, int n, struct box_slice *ret)
{
	const struct slice_axis a = axis.map;
	const int warp = n / ROWS, r = n % ROWS, m = first_tap(a, n - r), v = a.base + m;
	float *y = (float *)ret->y[warp], sum = 0, moment = 0;

#pragma unroll
	for (int t = 0; t < 4; t++) {
		const float w = hat(a, m + r + t, n), on = (unsigned)(v + r + t) < (unsigned)job.back.scan.n_v ? w : 0;

		if (t < 3 || r >= 5)
			y[weight_at(r + t, r)] = w;
		sum += on;
		moment = fmaf(on, (float)t, moment);
	}
	ret->length_y[warp][r] = length_y(job.back, axis.origin, m + r, sum, moment);
	if (r == 0)
		ret->row[warp] = min(max(v - corner.v, 0), job.box_rows - BIN_ROWS) * BOX_COLUMNS;
}

/* Compute the positions of step e, and the corner of its box. All lanes of a warp call it. */
static __device__ __forceinline__ void place_step(const struct box_job &job, struct back_boxes &s, const int first[2], int k0,
						  int e, int lane)
{
	const int axis = lane % 2, g = lane / 2 % GROUP, k = min(k0 + g, job.back.grid.n[2] - 1);
	const struct slice_axis a =
		slice_axis_back(job.back.maps + (size_t)e * job.back.grid.n[2] + k, axis, axis ? first[1] : first[0]);

	s.axis[e % 3][g][axis] = {a, length_origin(job.back, job.back.views + e, a, axis)};
	const struct box_corner c = box_corner_of(job, e, a.base, lane);
	if (lane == 0)
		s.corner[e % 3] = c;
}

/* Start to copy the box of step e. */
static __device__ __forceinline__ void copy_step(const struct box_job &job, struct back_boxes &s, const CUtensorMap *q,
						 const CUtensorMap *d, float *boxes, int box_floats, int e)
{
	const struct box_corner c = s.corner[e % 3];
	const unsigned bytes = (unsigned)(BOX_COLUMNS * job.box_rows) * sizeof(float);
	const int side = e % 2;

	cuda_box_expect(&s.full[side], c.known ? bytes : 2 * bytes);
	cuda_box_copy(q, c.u, c.v, e, boxes + side * box_floats, &s.full[side]);
	if (!c.known)
		cuda_box_copy(d, c.u, c.v, e, boxes + (2 + side) * box_floats, &s.full[side]);
}

/* Compute the weights of step e, each warp a part of them. */
static __device__ __forceinline__ void weigh_step(const struct box_job &job, struct back_boxes &s, int e, int warp, int lane)
{
	const int g = warp % GROUP, part = warp / GROUP; /* one part along x, others along y */
	struct box_slice *ret = &s.slice[e % 2][g];

	static_assert(BLOCK_ROWS / 32 < SLICES_WARPS / GROUP, "there are warps for all parts");
	if (part == 0)
		weigh_columns(job, s.axis[e % 3][g][0], s.corner[e % 3], lane, ret);
	else if (part <= BLOCK_ROWS / 32)
		weigh_line(job, s.axis[e % 3][g][1], s.corner[e % 3], (part - 1) * 32 + lane, ret);
}
/* Gather for the voxels of a thread in one slice, from a box. */
static __device__ __forceinline__ void gather_box(const float *p, const float4 &wx, const float4 *y, float sum[ROWS])
{
	float wy[WEIGHTS];

#pragma unroll
	for (int n = 0; n < WEIGHTS / 4; n++)
		*reinterpret_cast<float4 *>(wy + 4 * n) = y[n];
#pragma unroll
	for (int m = 0; m < BIN_ROWS; m++) {
		const float *row = p + m * BOX_COLUMNS;
		const float s = fmaf(wx.z, row[2], fmaf(wx.y, row[1], wx.x * row[0]));

#pragma unroll
		for (int r = first_voxel(m); r < end_voxel(m); r++)
			sum[r] = fmaf(wy[weight_at(m, r)], s, sum[r]);
	}
}

/* Load the voxels of a thread in a slice, of which `rows` exist. x: the first one. */
static __device__ __forceinline__ void load_voxels(const float *x, unsigned nx, int rows, float ret[ROWS])
{
#pragma unroll
	for (int r = 0; r < ROWS; r++)
		ret[r] = r < rows ? __ldcs(x + r * nx) : 0;
}

/* Return whether some voxel of the warp is in the support. */
static __device__ __forceinline__ bool some_live(const float old[ROWS])
{
	bool some = false;

#pragma unroll
	for (int r = 0; r < ROWS; r++)
		some = some || old[r] != 0;
	return __any_sync(0xffffffffu, some);
}

static __device__ __forceinline__ void update_voxels(const struct back_job &job, float *x, unsigned nx, int rows,
						     const float old[ROWS], const float num[ROWS], const float den[ROWS])
{
#pragma unroll
	for (int r = 0; r < ROWS; r++)
		if (r < rows)
			__stcs(x + r * nx, em_voxel(job.rule.voxel_floor, old[r], num[r], den[r]));
}
#endif

static __global__ void __launch_bounds__(BOX_THREADS, BOX_BLOCKS)
	back_boxes_kernel(const __grid_constant__ struct box_job job, const __grid_constant__ CUtensorMap map_q,
			  const __grid_constant__ CUtensorMap map_d)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	extern __shared__ __align__(CUDA_BOX_ALIGN) float boxes[];
	const int box_floats = CUDA_BOX_FLOATS(BOX_COLUMNS, job.box_rows);
	struct back_boxes &s = *reinterpret_cast<struct back_boxes *>(boxes + 4 * box_floats);
	const unsigned nx = (unsigned)job.back.grid.n[0];
	const int ny = job.back.grid.n[1], nz = job.back.grid.n[2], steps = job.back.n_views;
	const int lane = threadIdx.x % SLICES_LANES, warp = threadIdx.x / SLICES_LANES;
	/* From the end of the volume, where the projection before it ended: those voxels are still in the level-2 cache. */
	const unsigned block = gridDim.x - 1 - blockIdx.x;
	const int k0 = (int)(block % job.back.parts) * GROUP;
	const struct slice_place place =
		slice_place_of(&job.back.tiling, block / job.back.parts, BOX_LANES, BLOCK_ROWS, (int)nx, ny);
	const int i = place.first[0] + lane, j = place.first[1] + warp * ROWS;
	const int rows = lane < BOX_LANES && i < (int)nx && warp < SLICES_WARPS ? min(ny - j, ROWS) : 0;
	const size_t slice = (size_t)ny * nx;
	float *const x = job.back.num + ((size_t)k0 * ny + j) * nx + i;
	float num[GROUP][ROWS] = {}, den[GROUP][ROWS] = {}, old[ROWS];
	bool live[GROUP];

	if (threadIdx.x == 0)
		for (int b = 0; b < 2; b++)
			cuda_barrier_init(&s.full[b], 1);
	if (warp < min(2, steps))
		place_step(job, s, place.first, k0, warp, lane);
	__syncthreads();
	if (warp < SLICES_WARPS)
		weigh_step(job, s, 0, warp, lane);
	else if (lane == 0)
		copy_step(job, s, &map_q, &map_d, boxes, box_floats, 0);
#pragma unroll
	for (int g = 0; g < GROUP; g++) {
		load_voxels(x + g * slice, nx, k0 + g < nz ? rows : 0, old);
		live[g] = some_live(old);
	}
	for (int e = 0; e < steps; e++) {
		const int side = e % 2;
		const float *const q = boxes + side * box_floats, *d;

		__syncthreads(); /* the weights of step e are complete; all have read the boxes and weights of step e - 1 */
		if (warp == SLICES_WARPS) {
			if (e + 1 < steps && lane == 0)
				copy_step(job, s, &map_q, &map_d, boxes, box_floats, e + 1);
			if (e + 2 < steps)
				place_step(job, s, place.first, k0, e + 2, lane);
			continue;
		}
		if (e + 1 < steps)
			weigh_step(job, s, e + 1, warp, lane);
		cuda_barrier_wait(&s.full[side], (unsigned)(e / 2 % 2));
		d = s.corner[e % 3].known ? NULL : q + 2 * box_floats;
#pragma unroll
		for (int g = 0; g < GROUP; g++)
			if (live[g]) {
				const struct box_slice &t = s.slice[side][g];
				const float4 wx = t.x[lane];
				const int offset = t.row[warp] + __float_as_int(wx.w);

				gather_box(q + offset, wx, t.y[warp], num[g]);
				if (d)
					gather_box(d + offset, wx, t.y[warp], den[g]);
				else
					add_lengths<ROWS>(t.length_x[lane], t.length_y[warp], den[g]);
			}
	}
#pragma unroll
	for (int g = 0; g < GROUP; g++)
		if (live[g]) {
			load_voxels(x + g * slice, nx, k0 + g < nz ? rows : 0, old);
			update_voxels(job.back, x + g * slice, nx, k0 + g < nz ? rows : 0, old, num[g], den[g]);
		}
#endif
}

/* Return the largest distance, along an axis, from the first bin of a block's first voxel to that of its voxel `voxels`, in GROUP
 * slices that follow each other. The distance is largest at an end of the volume. */
static double widest(const struct slice_map *maps, int n_views, const struct grid *g, int axis, int voxels)
{
	double most = 0;

	for (int s = 0; s < n_views; s++)
		for (int k0 = 0; k0 < g->n[2]; k0 += GROUP)
			for (int end = 0; end < 2; end++) {
				double low = INFINITY, high = -INFINITY;
				int i = end ? g->n[axis] - 1 : 0;

				for (int k = k0; k < g->n[2] && k < k0 + GROUP; k++) {
					const struct slice_map *m = maps + (size_t)s * g->n[2] + k;

					low = fmin(low, (i - 1 - m->shift[axis]) * m->inverse[axis]);
					high = fmax(high, (i + voxels - 1 - m->shift[axis]) * m->inverse[axis]);
				}
				most = fmax(most, high - low);
			}
	return most;
}

static size_t shared_bytes(int box_rows)
{
	return 4 * (size_t)CUDA_BOX_FLOATS(BOX_COLUMNS, box_rows) * sizeof(float) + sizeof(struct back_boxes);
}

int back_boxes_rows(const struct device *dev, const struct slice_map *maps, int n_views, const struct grid *g)
{
	/* 3: a box begins at a multiple of 4; 3: bins of a voxel; 2: fractions at both ends */
	double columns = widest(maps, n_views, g, 0, BOX_LANES - 1) + 3 + 3 + 2;
	double rows = widest(maps, n_views, g, 1, BLOCK_ROWS - ROWS) + BIN_ROWS + 2;
	const size_t most = cuda_state(dev)->shared_bytes < BOX_BYTES ? cuda_state(dev)->shared_bytes : BOX_BYTES;

	return columns <= BOX_COLUMNS && rows <= CUDA_BOX_MOST && shared_bytes((int)rows) <= most ? (int)rows : 0;
}

bool back_boxes_fit(const struct projection *a, const struct bin_planes *planes, CUtensorMap ret_map[2])
{
	const int n[3] = {a->scan.n_u, a->scan.n_v, a->n_views}, box[2] = {BOX_COLUMNS, a->box_rows};

	return a->box_rows > 0 && a->scale_min[1] > 6.0 / 7 + 1e-6 && cuda_box_map(a->dev, planes->q, n, box, ret_map) &&
	       cuda_box_map(a->dev, planes->d, n, box, ret_map + 1);
}

int back_boxes_start(struct projection *a, const struct back_job *back, const CUtensorMap map[2], struct err *err)
{
	const int one_tile[2] = {0, 0}; /* projection_one_tile() */
	const struct grid *g = &a->grid;
	const size_t bytes = shared_bytes(a->box_rows);
	struct box_job job = {*back, a->box_rows};
	int r = cuda_check(cudaFuncSetAttribute(back_boxes_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
			   a->dev, "slices back", err);

	if (r < 0)
		return r;
	job.back.tiling = cuda_tiling_make(one_tile, g->n[0], g->n[1], BOX_LANES, BLOCK_ROWS);
	job.back.parts = (g->n[2] + GROUP - 1) / GROUP;
	back_boxes_kernel<<<(unsigned)(cuda_tiling_blocks(&job.back.tiling) * job.back.parts), BOX_THREADS, bytes,
			    cuda_state(a->dev)->stream>>>(job, map[0], map[1]);
	return cuda_check(cudaGetLastError(), a->dev, "slices back", err);
}
