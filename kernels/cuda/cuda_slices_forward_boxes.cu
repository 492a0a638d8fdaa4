/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_slices_forward_boxes.cu - the slice-by-slice operator on the CUDA device, forward, for a detector that stands still
 * (kernels/slice_map.h): the voxels that a block of bins needs of a slice are a box, and the copy engine brings the boxes of the
 * next slices into shared memory while the threads use the present one. So no thread waits for memory, and voxels outside the
 * grid are 0 without a check.
 * - One more warp computes the positions and the weights along y of the next slices, and starts their copies. A stage holds what
 *   belongs to a slice; a pair of barriers for each stage is all that the warps of a block wait for.
 * - A thread computes ROWS bins that are adjacent along y, at WIDE places along x that are SLICES_LANES apart. The rows of voxels
 *   between them are interpolated along x once and used for three bins; weights along y are the same for all lanes.
 * - The order of the additions is that of the slices, so every run gives bitwise the same result. */
#include "kernels/cuda/cuda_box.cuh"
#include "kernels/cuda/cuda_slices_forward.cuh"

#define ROWS 8			 /* bins of a thread along y */
#define WARPS 4			 /* that compute bins */
#define LINES (WARPS * ROWS + 2) /* rows of a box */
#define BOXES_THREADS ((WARPS + 1) * 32)
#define STAGES(wide) ((wide) == 1 ? 3 : 4)
#define BLOCKS(wide) ((wide) == 1 ? 6 : 5) /* resident on a multiprocessor */
#define BELOW 0x1p-22f			   /* the float below 4 is 4 - BELOW */
/* Below so many bins WIDE is 1: there are more blocks then. */
#define WIDE_BINS ((size_t)2 * ROWS * 2048 * 132)

/* What the threads of a block share. */
template <int WIDE> struct forward_boxes {
	static constexpr int columns = WIDE * SLICES_LANES + 4; /* of a box: one more than bins, from a multiple of 4 on */
	struct __align__(CUDA_BOX_ALIGN) stage
	{
		float box[CUDA_BOX_FLOATS(columns, LINES)];
		float4 weight[WARPS][3 * ROWS / 4]; /* of each bin: of its row of voxels, of the next, of the one before */
		int row[WARPS];			    /* index in the box of the first row of voxels of the warp's bins */
		float2 x;			    /* position of the first bin in the box, columns; slice_axis.bend */
	}
	stage[STAGES(WIDE)];
	cuda_barrier full[STAGES(WIDE)], empty[STAGES(WIDE)];
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/* Store the weights along y of row `lane` of the block's bins: bin r of its warp is at position r + e among the rows of voxels,
 * -1 < e < 1, where e begins at 0 or above and does not increase with r. */
template <int WIDE>
static __device__ __forceinline__ void weigh_row(typename forward_boxes<WIDE>::stage &s, float first, float bend, int lane)
{
	const int warp = lane / ROWS, r = lane % ROWS;
	const float at = fmaf(bend, (float)(lane - r), first), whole = floorf(at), e = fmaf(bend, (float)r, at - whole);
	float *w = (float *)s.weight[warp] + 3 * r;

	static_assert(WARPS * ROWS == 32, "a lane for each row of bins");
	w[0] = 1 - fabsf(e);
	w[1] = fmaxf(e, 0);
	w[2] = fmaxf(-e, 0);
	if (r == 0)
		s.row[warp] = (lane + (int)whole) * forward_boxes<WIDE>::columns;
}

/* The work of the last warp: fill the stages, slice by slice. */
template <int WIDE>
static __device__ void fill_stages(struct forward_boxes<WIDE> &s, const CUtensorMap *map, const struct slice_map *maps, int nz,
				   const int first_bin[2], int lane)
{
	unsigned parity = 1; /* the first time, all stages are empty */
	int at = 0;

	for (int k0 = 0; k0 < nz; k0 += 32) {
		struct slice_axis x = {}, y = {}; /* of slice k0 + lane */

		if (k0 + lane < nz) {
			x = slice_axis_forward(maps + k0 + lane, 0, first_bin[0]);
			y = slice_axis_forward(maps + k0 + lane, 1, first_bin[1]);
		}
		for (int k = k0; k < min(nz, k0 + 32); k++) {
			const int column = __shfl_sync(0xffffffffu, x.base, k - k0),
				  line = __shfl_sync(0xffffffffu, y.base, k - k0);
			const float first = __shfl_sync(0xffffffffu, x.first, k - k0),
				    bend = __shfl_sync(0xffffffffu, x.bend, k - k0),
				    first_y = __shfl_sync(0xffffffffu, y.first, k - k0),
				    bend_y = __shfl_sync(0xffffffffu, y.bend, k - k0);

			cuda_barrier_wait(&s.empty[at], parity);
			weigh_row<WIDE>(s.stage[at], first_y, bend_y, lane);
			if (lane == 0) {
				s.stage[at].x =
					make_float2(fminf(first + (float)(column & 3), (float)((column & 3) + 1) - BELOW), bend);
				cuda_box_copy(map, column & ~3, line, k, s.stage[at].box, &s.full[at]);
			}
			__syncwarp();
			if (lane == 0)
				cuda_box_expect(&s.full[at], forward_boxes<WIDE>::columns * LINES * sizeof(float));
			if (++at == STAGES(WIDE)) {
				at = 0;
				parity ^= 1;
			}
		}
	}
}

/* Add a slice to the bins of a thread. du: the lane's places along x. */
template <int WIDE>
static __device__ __forceinline__ void add_slice(const typename forward_boxes<WIDE>::stage &s, int warp, const int du[WIDE],
						 float sum[WIDE][ROWS])
{
	constexpr int columns = forward_boxes<WIDE>::columns;
	const float *box = s.box + s.row[warp];
	const float2 x = s.x;
	float w[3 * ROWS];

#pragma unroll
	for (int q = 0; q < 3 * ROWS / 4; q++)
		*reinterpret_cast<float4 *>(w + 4 * q) = s.weight[warp][q];
#pragma unroll
	for (int b = 0; b < WIDE; b++) {
		const float at = fmaf(x.y, (float)du[b], x.x), whole = floorf(at), a = at - whole;
		const float *p = box + du[b] + (int)whole;
		float row[ROWS + 1];

#pragma unroll
		for (int r = 0; r <= ROWS; r++)
			row[r] = fmaf(a, p[r * columns + 1] - p[r * columns], p[r * columns]);
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			sum[b][r] = fmaf(w[3 * r], row[r], sum[b][r]);
			sum[b][r] = fmaf(w[3 * r + 1], row[r + 1], sum[b][r]);
			if (r > 0)
				sum[b][r] = fmaf(w[3 * r + 2], row[r - 1], sum[b][r]);
		}
	}
}
#endif

template <int WIDE>
static __global__ void __launch_bounds__(BOXES_THREADS, BLOCKS(WIDE))
	forward_boxes_kernel(const __grid_constant__ struct forward_job job, const __grid_constant__ CUtensorMap map)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	extern __shared__ __align__(CUDA_BOX_ALIGN) unsigned char shared[];
	struct forward_boxes<WIDE> &s = *reinterpret_cast<struct forward_boxes<WIDE> *>(shared);
	const int lane = threadIdx.x % SLICES_LANES, warp = threadIdx.x / SLICES_LANES, nz = job.grid.n[2];
	const int view = (int)(blockIdx.x % (unsigned)job.n_views);
	const struct slice_place place = slice_place_of(&job.tiling, blockIdx.x / (unsigned)job.n_views, WIDE * SLICES_LANES,
							WARPS * ROWS, job.scan.n_u, job.scan.n_v);
	const int v = place.first[1] + warp * ROWS;
	float sum[WIDE][ROWS] = {};
	unsigned counts[WIDE] = {}; /* a bit for each bin that is used */
	int u[WIDE], du[WIDE], readers;
	bool any = false;

#pragma unroll
	for (int b = 0; b < WIDE; b++) {
		u[b] = place.first[0] + lane + b * SLICES_LANES;
		du[b] = min(u[b], place.end[0] - 1) - place.first[0];
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			if (warp < WARPS && u[b] < place.end[0] && v + r < place.end[1] &&
			    bin_counts(job.mask,
				       (size_t)view * scan_view_size(&job.scan) + (size_t)(v + r) * job.scan.n_u + u[b]))
				counts[b] |= 1u << r;
		any = any || counts[b];
	}
	any = __any_sync(0xffffffffu, any) && (!job.pairs || rule_needs_line(job.rule.kind));
	readers = __syncthreads_count(any && lane == 0); /* warps that read boxes */
	if (threadIdx.x == 0 && readers)
		for (int i = 0; i < STAGES(WIDE); i++) {
			cuda_barrier_init(&s.full[i], 1);
			cuda_barrier_init(&s.empty[i], (unsigned)readers);
		}
	__syncthreads();
	if (warp == WARPS) {
		if (readers)
			fill_stages<WIDE>(s, &map, job.maps + (size_t)view * nz, nz, place.first, lane);
		return;
	}
	unsigned parity = 0;
	int at = 0;
	for (int k = 0; any && k < nz; k++) {
		cuda_barrier_wait(&s.full[at], parity);
		add_slice<WIDE>(s.stage[at], warp, du, sum);
		__syncwarp();
		if (lane == 0)
			cuda_barrier_arrive(&s.empty[at]);
		if (++at == STAGES(WIDE)) {
			at = 0;
			parity ^= 1;
		}
	}
#pragma unroll
	for (int b = 0; b < WIDE; b++) {
		bool unused = false; /* some bin of the cell */

#pragma unroll
		for (int r = 0; r < ROWS; r++)
			if (u[b] < place.end[0] && v + r < place.end[1]) {
				unused = unused || !(counts[b] >> r & 1);
				finish(job, view, u[b], v + r, counts[b] >> r & 1, sum[b][r]);
			}
		if (!job.planes.q)
			continue;
		unused = __any_sync(0xffffffffu, unused);
		if (lane == 0 && u[b] < place.end[0] && v < place.end[1])
			job.planes.full[((size_t)view * job.planes.cells[1] + v / ROWS) * job.planes.cells[0] + u[b] / BIN_CELL] =
				!unused;
	}
#endif
}

static int wide_of(const struct projection *a)
{
	return (size_t)a->n_views * scan_view_size(&a->scan) < WIDE_BINS ? 1 : 2;
}

bool forward_boxes_fit(const struct projection *a, const float *x, CUtensorMap *ret_map)
{
	const int box[2] = {wide_of(a) == 1 ? forward_boxes<1>::columns : forward_boxes<2>::columns, LINES};

	/* A single view with many bins needs as long as the memory does, with boxes or without. */
	return (a->n_views > 1 || wide_of(a) == 1) && projection_one_tile(a) && a->strips == 1 &&
	       slices_fast(a, SLICES_SCALE_MAX) && a->scale_min[1] > 6.0 / 7 + 1e-6 &&
	       cuda_box_map(a->dev, x, a->grid.n, box, ret_map);
}

template <int WIDE> static int launch(struct projection *a, struct forward_job *job, const CUtensorMap *map, struct err *err)
{
	const size_t bytes = sizeof(struct forward_boxes<WIDE>);
	const int one_tile[2] = {0, 0}; /* projection_one_tile() */
	int r = cuda_check(
		cudaFuncSetAttribute(forward_boxes_kernel<WIDE>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes), a->dev,
		"slices forward", err);

	if (r < 0)
		return r;
	job->tiling = cuda_tiling_make(one_tile, a->scan.n_u, a->scan.n_v, WIDE * SLICES_LANES, WARPS * ROWS);
	forward_boxes_kernel<WIDE>
		<<<(unsigned)(cuda_tiling_blocks(&job->tiling) * a->n_views), BOXES_THREADS, bytes, cuda_state(a->dev)->stream>>>(
			*job, *map);
	return cuda_check(cudaGetLastError(), a->dev, "slices forward", err);
}

int forward_boxes_start(struct projection *a, struct forward_job *job, const CUtensorMap *map, struct bin_planes *planes,
			struct err *err)
{
	static_assert(SLICES_LANES == BIN_CELL && ROWS >= BIN_CELL_ROWS_MIN, "a cell is the bins of a warp");
	job->n_views = a->n_views;
	if (planes)
		job->planes = *planes = bin_planes_cells(*planes, a, ROWS);
	return wide_of(a) == 1 ? launch<1>(a, job, map, err) : launch<2>(a, job, map, err);
}
