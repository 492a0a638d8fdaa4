/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_slices_back_boxes.cu - the EM update from several views on the CUDA device, for a detector that stands still
 * (kernels/slice_map.h), from planes of bins (struct bin_planes).
 * - A block updates GROUP slices, view by view; a step is a view. The bins that its voxels need of a view are a box in shared
 *   memory; the copy engine brings that of the next view while the present one is used. Bins outside the detector are 0 in it.
 * - If all bins of a box are used, only q is copied; A'd is then known from the weights (cuda_slices_lengths.cuh). Else d is
 *   copied, too.
 * - The weights along x depend on the lane, those along y on the warp; a block computes them once. While its threads gather the
 * bins of one view, they compute the weights of the next, and one more warp starts to copy the next box and computes the
 * positions of the view after that; so one barrier a view is enough.
 * - A warp skips slices in which all of its voxels are 0.
 * - A'd depends only on the scan and its mask. With projection_spec.keep_den the first update stores it and the others load it.
 *   The others copy only q, so they need less shared memory, and more of their blocks are resident.
 * - Only one thread adds to each value, in a fixed order, so every run gives bitwise the same result. */
#include "kernels/cuda/cuda_slices_back_boxes.cuh"

#define BOX_COLUMNS 48 /* of a box */
#define GROUP 2	       /* slices of a block */
#define BOX_THREADS (CUDA_THREADS + 32)
/* Resident on a multiprocessor: up to 96 registers per thread, or 72. */
#define BOX_BLOCKS(sums) ((sums) == SUMS_LOAD ? 3 : 2)
#define BOX_BYTES (227 * 1024 / 2 - 1024) /* of shared memory for a block, at most */
#define BLOCK_ROWS (SLICES_WARPS * ROWS)

enum sums { SUMS_MAKE, SUMS_KEEP, SUMS_LOAD }; /* what an update does with A'd */

/* What the threads of a block share of one slice in a step. */
struct box_slice {
	struct box_columns columns;
	struct box_lines lines[SLICES_WARPS];
};

/* Dynamic shared memory: two boxes of q and, unless SUMS_LOAD, two of d, then this. */
struct back_boxes {
	struct box_slice slice[2][GROUP];
	struct box_axis axis[3][GROUP][2]; /* of three steps */
	struct box_corner corner[3];
	cuda_barrier full[2];
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/* Compute the positions of step e, and the corner of its box. All lanes of a warp call it. */
template <enum sums SUMS>
static __device__ __forceinline__ void place_step(const struct box_job &job, struct back_boxes &s, const int first[2], int k0,
						  int e, int lane)
{
	const int axis = lane % 2, g = lane / 2 % GROUP, k = min(k0 + g, job.back.grid.n[2] - 1);
	const struct slice_axis a =
		slice_axis_back(job.back.maps + (size_t)e * job.back.grid.n[2] + k, axis, axis ? first[1] : first[0]);

	s.axis[e % 3][g][axis] = {a, SUMS == SUMS_LOAD ? 0 : length_origin(job.back, job.back.views + e, a, axis)};
	struct box_corner c = box_corner_at(job, e, a.base, lane);
	if (SUMS != SUMS_LOAD)
		c.known = box_known<BOX_COLUMNS>(job, e, c.u, c.v, lane);
	if (lane == 0)
		s.corner[e % 3] = c;
}

/* Start to copy the box of step e. */
template <enum sums SUMS>
static __device__ __forceinline__ void copy_step(const struct box_job &job, struct back_boxes &s, const CUtensorMap *q,
						 const CUtensorMap *d, float *boxes, int box_floats, int e)
{
	const struct box_corner c = s.corner[e % 3];
	const unsigned bytes = (unsigned)(BOX_COLUMNS * job.box_rows) * sizeof(float);
	const int side = e % 2;

	cuda_box_expect(&s.full[side], SUMS == SUMS_LOAD || c.known ? bytes : 2 * bytes);
	cuda_box_copy(q, c.u, c.v, e, boxes + side * box_floats, &s.full[side]);
	if (SUMS != SUMS_LOAD && !c.known)
		cuda_box_copy(d, c.u, c.v, e, boxes + (2 + side) * box_floats, &s.full[side]);
}

/* Compute the weights of step e, each warp a part of them. */
template <enum sums SUMS>
static __device__ __forceinline__ void weigh_step(const struct box_job &job, struct back_boxes &s, int e, int warp, int lane)
{
	const int g = warp % GROUP, part = warp / GROUP; /* one part along x, others along y */
	struct box_slice *ret = &s.slice[e % 2][g];

	static_assert(BLOCK_ROWS / 32 < SLICES_WARPS / GROUP, "there are warps for all parts");
	if (part == 0)
		weigh_columns<BOX_COLUMNS, SUMS != SUMS_LOAD>(job, s.axis[e % 3][g][0], s.corner[e % 3], 0, lane, &ret->columns);
	else if (part <= BLOCK_ROWS / 32)
		weigh_line<BOX_COLUMNS, SUMS != SUMS_LOAD>(job, s.axis[e % 3][g][1], s.corner[e % 3], (part - 1) * 32 + lane,
							   ret->lines);
}

/* Load the voxels of a thread in a slice, of which `rows` exist. x: the first one. */
static __device__ __forceinline__ void load_voxels(const float *x, unsigned nx, int rows, float ret[ROWS])
{
#pragma unroll
	for (int r = 0; r < ROWS; r++)
		ret[r] = r < rows ? __ldcs(x + r * nx) : 0;
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

template <enum sums SUMS>
static __global__ void __launch_bounds__(BOX_THREADS, BOX_BLOCKS(SUMS))
	back_boxes_kernel(const __grid_constant__ struct box_job job, const __grid_constant__ CUtensorMap map_q,
			  const __grid_constant__ CUtensorMap map_d)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	extern __shared__ __align__(CUDA_BOX_ALIGN) float boxes[];
	const int box_floats = CUDA_BOX_FLOATS(BOX_COLUMNS, job.box_rows);
	struct back_boxes &s = *reinterpret_cast<struct back_boxes *>(boxes + (SUMS == SUMS_LOAD ? 2 : 4) * box_floats);
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
		place_step<SUMS>(job, s, place.first, k0, warp, lane);
	__syncthreads();
	if (warp < SLICES_WARPS)
		weigh_step<SUMS>(job, s, 0, warp, lane);
	else if (lane == 0)
		copy_step<SUMS>(job, s, &map_q, &map_d, boxes, box_floats, 0);
#pragma unroll
	for (int g = 0; g < GROUP; g++) {
		load_voxels(x + g * slice, nx, k0 + g < nz ? rows : 0, old);
		live[g] = some_live(old) || SUMS == SUMS_KEEP; /* all are kept: other voxels may be 0 later */
	}
	for (int e = 0; e < steps; e++) {
		const int side = e % 2;
		const float *const q = boxes + side * box_floats, *d;

		__syncthreads(); /* the weights of step e are complete; all have read the boxes and weights of step e - 1 */
		if (warp == SLICES_WARPS) {
			if (e + 1 < steps && lane == 0)
				copy_step<SUMS>(job, s, &map_q, &map_d, boxes, box_floats, e + 1);
			if (e + 2 < steps)
				place_step<SUMS>(job, s, place.first, k0, e + 2, lane);
			continue;
		}
		if (e + 1 < steps)
			weigh_step<SUMS>(job, s, e + 1, warp, lane);
		cuda_barrier_wait(&s.full[side], (unsigned)(e / 2 % 2));
		d = SUMS == SUMS_LOAD || s.corner[e % 3].known ? NULL : q + 2 * box_floats;
#pragma unroll
		for (int g = 0; g < GROUP; g++)
			if (live[g]) {
				const struct box_columns &columns = s.slice[side][g].columns;
				const struct box_lines &lines = s.slice[side][g].lines[warp];
				const float4 wx = columns.x[lane];
				const int offset = lines.row + __float_as_int(wx.w);

				gather_box<BOX_COLUMNS>(q + offset, wx, lines.y, num[g]);
				if (d)
					gather_box<BOX_COLUMNS>(d + offset, wx, lines.y, den[g]);
				else if (SUMS != SUMS_LOAD)
					add_lengths<ROWS>(columns.length[lane], lines.length, den[g]);
			}
	}
#pragma unroll
	for (int g = 0; g < GROUP; g++)
		if (live[g]) {
			const int there = k0 + g < nz ? rows : 0;
			float *const sums = job.sums + (x - job.back.num) + g * slice;

			load_voxels(x + g * slice, nx, there, old);
			if (SUMS == SUMS_LOAD)
				load_voxels(sums, nx, there, den[g]);
#pragma unroll
			for (int r = 0; SUMS == SUMS_KEEP && r < ROWS; r++)
				if (r < there)
					__stcs(sums + r * nx, den[g][r]);
			update_voxels(job.back, x + g * slice, nx, there, old, num[g], den[g]);
		}
#endif
}

double back_boxes_widest(const struct slice_map *maps, int n_views, const struct grid *g, int axis, int voxels, int group)
{
	double most = 0;

	for (int s = 0; s < n_views; s++)
		for (int k0 = 0; k0 < g->n[2]; k0 += group)
			for (int end = 0; end < 2; end++) {
				double low = INFINITY, high = -INFINITY;
				int i = end ? g->n[axis] - 1 : 0;

				for (int k = k0; k < g->n[2] && k < k0 + group; k++) {
					const struct slice_map *m = maps + (size_t)s * g->n[2] + k;

					low = fmin(low, (i - 1 - m->shift[axis]) * m->inverse[axis]);
					high = fmax(high, (i + voxels - 1 - m->shift[axis]) * m->inverse[axis]);
				}
				most = fmax(most, high - low);
			}
	return most;
}

static size_t shared_bytes(int box_rows, enum sums sums)
{
	return (sums == SUMS_LOAD ? 2 : 4) * (size_t)CUDA_BOX_FLOATS(BOX_COLUMNS, box_rows) * sizeof(float) +
	       sizeof(struct back_boxes);
}

int back_boxes_rows(const struct device *dev, const struct slice_map *maps, int n_views, const struct grid *g)
{
	/* 3: a box begins at a multiple of 4; 3: bins of a voxel; 2: fractions at both ends */
	double columns = back_boxes_widest(maps, n_views, g, 0, BOX_LANES - 1, GROUP) + 3 + 3 + 2;
	double rows = back_boxes_widest(maps, n_views, g, 1, BLOCK_ROWS - ROWS, GROUP) + BIN_ROWS + 2;
	const size_t most = cuda_state(dev)->shared_bytes < BOX_BYTES ? cuda_state(dev)->shared_bytes : BOX_BYTES;

	return columns <= BOX_COLUMNS && rows <= CUDA_BOX_MOST && shared_bytes((int)rows, SUMS_MAKE) <= most ? (int)rows : 0;
}

bool back_boxes_fit(const struct projection *a, const struct bin_planes *planes, CUtensorMap ret_map[2])
{
	const int n[3] = {a->scan.n_u, a->scan.n_v, a->n_views}, box[2] = {BOX_COLUMNS, a->box_rows};

	return a->box_rows > 0 && a->scale_min[1] > 6.0 / 7 + 1e-6 && cuda_box_map(a->dev, planes->q, n, box, ret_map) &&
	       cuda_box_map(a->dev, planes->d, n, box, ret_map + 1);
}

template <enum sums SUMS>
static int launch_boxes(struct projection *a, const struct back_job *back, const CUtensorMap map[2], struct err *err)
{
	const int one_tile[2] = {0, 0}; /* projection_one_tile() */
	const struct grid *g = &a->grid;
	const size_t bytes = shared_bytes(a->box_rows, SUMS);
	struct box_job job = {*back, a->box_rows, a->sums};
	int r = cuda_check(cudaFuncSetAttribute(back_boxes_kernel<SUMS>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
			   a->dev, "slices back", err);

	if (r < 0)
		return r;
	job.back.tiling = cuda_tiling_make(one_tile, g->n[0], g->n[1], BOX_LANES, BLOCK_ROWS);
	job.back.parts = (g->n[2] + GROUP - 1) / GROUP;
	back_boxes_kernel<SUMS><<<(unsigned)(cuda_tiling_blocks(&job.back.tiling) * job.back.parts), BOX_THREADS, bytes,
				  cuda_state(a->dev)->stream>>>(job, map[0], map[1]);
	return cuda_check(cudaGetLastError(), a->dev, "slices back", err);
}

int back_boxes_start(struct projection *a, const struct back_job *back, const CUtensorMap map[2], struct err *err)
{
	int r;

	if (a->sums_known)
		return launch_boxes<SUMS_LOAD>(a, back, map, err);
	if (!a->sums)
		return launch_boxes<SUMS_MAKE>(a, back, map, err);
	r = launch_boxes<SUMS_KEEP>(a, back, map, err);
	a->sums_known = r == 0;
	return r;
}
