/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_slices_forward_boxes.cu - the slice-by-slice operator on the CUDA device, forward, for a detector that stands still
 * (kernels/slice_map.h): the voxels that a block of bins needs of a slice are a box, and the copy engine brings the boxes of the
 * next slices into shared memory while the threads use the present one. So no thread waits for memory, and voxels outside the
 * grid are 0 without a check.
 * - One more warp computes the positions and the weights along y of the next slices, and starts their copies. A stage holds what
 *   belongs to a slice. The warps of a block wait only at the two barriers of each stage; every lane arrives for itself
 *   (cuda_barrier_arrive()).
 * - A thread computes ROWS bins that are adjacent along y, at WIDE places along x that are SLICES_LANES apart, or of VIEWS views
 *   that follow each other, whose voxels are in one box. The rows of voxels between them are interpolated along x once and used
 *   for three bins; weights along y are the same for all lanes.
 * - The order of the additions is that of the slices, so every run gives bitwise the same result. */
#include "kernels/cuda/cuda_box.cuh"
#include "kernels/cuda/cuda_slices_forward.cuh"

#define ROWS 8	/* bins of a thread along y */
#define WARPS 4 /* that compute bins */
#define BOXES_THREADS ((WARPS + 1) * 32)
#define STAGES(wide, views) ((wide) == 2 && (views) == 1 ? 4 : 3)
#define BLOCKS(wide, views) ((wide) * (views) == 1 ? 6 : (wide) * (views) == 2 ? 5 : 4) /* resident on a multiprocessor */
#define APART 12       /* distance, in voxels, of the same bin of two views whose voxels are in one box; along x 4 */
#define BELOW 0x1p-21f /* the float below 8 is 8 - BELOW */
/* Below so many bins WIDE and VIEWS are 1: there are more blocks then. */
#define WIDE_BINS ((size_t)2 * ROWS * 2048 * 132)

/* What the threads of a block share. */
template <int WIDE, int VIEWS> struct forward_boxes {
	/* Of a box: one more than bins, from a multiple of 4 on. */
	static constexpr int columns = WIDE * SLICES_LANES + (VIEWS == 1 ? 4 : 8);
	static constexpr int lines = WARPS * ROWS + 2 + (VIEWS == 1 ? 0 : APART);
	struct __align__(CUDA_BOX_ALIGN) stage
	{
		float box[CUDA_BOX_FLOATS(columns, lines)];
		/* Of each bin: of its row of voxels, of the next, of the one before. */
		float4 weight[VIEWS][WARPS][3 * ROWS / 4];
		int row[VIEWS][WARPS]; /* index in the box of the first row of voxels of the warp's bins */
		float2 x[VIEWS];       /* position of the first bin in the box, columns; slice_axis.bend */
	}
	stage[STAGES(WIDE, VIEWS)];
	cuda_barrier full[STAGES(WIDE, VIEWS)], empty[STAGES(WIDE, VIEWS)];
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/* Store the weights along y of row `lane` of the block's bins: bin r of its warp is at position r + e among the rows of voxels,
 * -1 < e < 1, where e begins at 0 or above and does not increase with r. line: of the box, that of the first bin. */
template <int WIDE, int VIEWS>
static __device__ __forceinline__ void weigh_row(typename forward_boxes<WIDE, VIEWS>::stage &s, int q, float first, float bend,
						 int line, int lane)
{
	const int warp = lane / ROWS, r = lane % ROWS;
	const float at = fmaf(bend, (float)(lane - r), first), whole = floorf(at), e = fmaf(bend, (float)r, at - whole);
	float *w = (float *)s.weight[q][warp] + 3 * r;

	static_assert(WARPS * ROWS == 32, "a lane for each row of bins");
	w[0] = 1 - fabsf(e);
	w[1] = fmaxf(e, 0);
	w[2] = fmaxf(-e, 0);
	if (r == 0)
		s.row[q][warp] = (line + lane + (int)whole) * forward_boxes<WIDE, VIEWS>::columns;
}

/* The work of the last warp: fill the stages, slice by slice. maps: of `views` views. */
template <int WIDE, int VIEWS>
static __device__ void fill_stages(struct forward_boxes<WIDE, VIEWS> &s, const CUtensorMap *map, const struct slice_map *maps,
				   int nz, int views, const int first_bin[2], int lane)
{
	constexpr int many = 32 / VIEWS; /* slices whose positions are computed together */
	const int q_of = lane / many;
	unsigned parity = 1; /* the first time, all stages are empty */
	int at = 0;

	for (int k0 = 0; k0 < nz; k0 += many) {
		const int k_of = min(k0 + lane % many, nz - 1);
		const struct slice_map *m = maps + (size_t)min(q_of, views - 1) * nz + k_of;
		const struct slice_axis x = slice_axis_forward(m, 0, first_bin[0]), y = slice_axis_forward(m, 1, first_bin[1]);

		for (int k = k0; k < min(nz, k0 + many); k++) {
			int base[VIEWS][2], column, line;

#pragma unroll
			for (int q = 0; q < VIEWS; q++) {
				base[q][0] = __shfl_sync(0xffffffffu, x.base, q * many + k - k0);
				base[q][1] = __shfl_sync(0xffffffffu, y.base, q * many + k - k0);
				column = q ? min(column, base[q][0]) : base[q][0];
				line = q ? min(line, base[q][1]) : base[q][1];
			}
			cuda_barrier_wait(&s.empty[at], parity);
			if (lane == 0)
				cuda_box_copy(map, column & ~3, line, k, s.stage[at].box, &s.full[at]);
#pragma unroll
			for (int q = 0; q < VIEWS; q++) {
				const float first = __shfl_sync(0xffffffffu, x.first, q * many + k - k0),
					    bend = __shfl_sync(0xffffffffu, x.bend, q * many + k - k0),
					    first_y = __shfl_sync(0xffffffffu, y.first, q * many + k - k0),
					    bend_y = __shfl_sync(0xffffffffu, y.bend, q * many + k - k0);
				const float begin = (float)(base[q][0] - (column & ~3));

				weigh_row<WIDE, VIEWS>(s.stage[at], q, first_y, bend_y, base[q][1] - line, lane);
				if (lane == 0)
					s.stage[at].x[q] = make_float2(fminf(first + begin, begin + 1 - BELOW), bend);
			}
			if (lane == 0)
				cuda_box_expect(&s.full[at], forward_boxes<WIDE, VIEWS>::columns *
								     forward_boxes<WIDE, VIEWS>::lines * sizeof(float));
			else
				cuda_barrier_arrive(&s.full[at]);
			if (++at == STAGES(WIDE, VIEWS)) {
				at = 0;
				parity ^= 1;
			}
		}
	}
}

/* Add a slice to the bins of a thread. du: the lane's places along x. sum: by view, place and row. */
template <int WIDE, int VIEWS>
static __device__ __forceinline__ void add_slice(const typename forward_boxes<WIDE, VIEWS>::stage &s, int warp,
						 const int du[WIDE], float sum[VIEWS * WIDE][ROWS])
{
	constexpr int columns = forward_boxes<WIDE, VIEWS>::columns;

#pragma unroll
	for (int q = 0; q < VIEWS; q++) {
		const float *box = s.box + s.row[q][warp];
		const float2 x = s.x[q];
		float w[3 * ROWS];

#pragma unroll
		for (int n = 0; n < 3 * ROWS / 4; n++)
			*reinterpret_cast<float4 *>(w + 4 * n) = s.weight[q][warp][n];
#pragma unroll
		for (int b = 0; b < WIDE; b++) {
			const float at = fmaf(x.y, (float)du[b], x.x), whole = floorf(at), a = at - whole;
			const float *p = box + du[b] + (int)whole;
			float row[ROWS + 1], *to = sum[q * WIDE + b];

#pragma unroll
			for (int r = 0; r <= ROWS; r++)
				row[r] = fmaf(a, p[r * columns + 1] - p[r * columns], p[r * columns]);
#pragma unroll
			for (int r = 0; r < ROWS; r++) {
				to[r] = fmaf(w[3 * r], row[r], to[r]);
				to[r] = fmaf(w[3 * r + 1], row[r + 1], to[r]);
				if (r > 0)
					to[r] = fmaf(w[3 * r + 2], row[r - 1], to[r]);
			}
		}
	}
}
#endif

template <int WIDE, int VIEWS>
static __global__ void __launch_bounds__(BOXES_THREADS, BLOCKS(WIDE, VIEWS))
	forward_boxes_kernel(const __grid_constant__ struct forward_job job, const __grid_constant__ CUtensorMap map)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	extern __shared__ __align__(CUDA_BOX_ALIGN) unsigned char shared[];
	struct forward_boxes<WIDE, VIEWS> &s = *reinterpret_cast<struct forward_boxes<WIDE, VIEWS> *>(shared);
	const unsigned groups = (unsigned)(job.n_views + VIEWS - 1) / VIEWS;
	const int lane = threadIdx.x % SLICES_LANES, warp = threadIdx.x / SLICES_LANES, nz = job.grid.n[2];
	const int view = (int)(blockIdx.x % groups) * VIEWS, views = min(job.n_views - view, VIEWS);
	const struct slice_place place =
		slice_place_of(&job.tiling, blockIdx.x / groups, WIDE * SLICES_LANES, WARPS * ROWS, job.scan.n_u, job.scan.n_v);
	const int v = place.first[1] + warp * ROWS;
	float sum[VIEWS * WIDE][ROWS] = {};
	unsigned counts[VIEWS * WIDE] = {}; /* a bit for each bin that is used */
	int u[WIDE], du[WIDE], readers;
	bool any = false;

#pragma unroll
	for (int b = 0; b < WIDE; b++) {
		u[b] = place.first[0] + lane + b * SLICES_LANES;
		du[b] = min(u[b], place.end[0] - 1) - place.first[0];
#pragma unroll
		for (int q = 0; q < VIEWS; q++) {
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				if (warp < WARPS && q < views && u[b] < place.end[0] && v + r < place.end[1] &&
				    bin_counts(job.mask, (size_t)(view + q) * scan_view_size(&job.scan) +
								 (size_t)(v + r) * job.scan.n_u + u[b]))
					counts[q * WIDE + b] |= 1u << r;
			any = any || counts[q * WIDE + b];
		}
	}
	any = __any_sync(0xffffffffu, any) && (!job.pairs || rule_needs_line(job.rule.kind));
	readers = __syncthreads_count(any && lane == 0); /* warps that read boxes */
	if (threadIdx.x == 0 && readers)
		for (int i = 0; i < STAGES(WIDE, VIEWS); i++) {
			cuda_barrier_init(&s.full[i], 32);
			cuda_barrier_init(&s.empty[i], 32 * (unsigned)readers);
		}
	__syncthreads();
	if (warp == WARPS) {
		if (readers)
			fill_stages<WIDE, VIEWS>(s, &map, job.maps + (size_t)view * nz, nz, views, place.first, lane);
		return;
	}
	unsigned parity = 0;
	int at = 0;
	for (int k = 0; any && k < nz; k++) {
		cuda_barrier_wait(&s.full[at], parity);
		add_slice<WIDE, VIEWS>(s.stage[at], warp, du, sum);
		cuda_barrier_arrive(&s.empty[at]);
		if (++at == STAGES(WIDE, VIEWS)) {
			at = 0;
			parity ^= 1;
		}
	}
#pragma unroll
	for (int b = 0; b < VIEWS * WIDE; b++) {
		const int q = view + b / WIDE, u_b = u[b % WIDE];
		bool unused = false; /* some bin of the cell */

		if (b / WIDE >= views)
			break;
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			if (u_b < place.end[0] && v + r < place.end[1]) {
				unused = unused || !(counts[b] >> r & 1);
				finish_bin(job, q, u_b, v + r, counts[b] >> r & 1, sum[b][r]);
			}
		if (!job.planes.q)
			continue;
		unused = __any_sync(0xffffffffu, unused);
		if (lane == 0 && u_b < place.end[0] && v < place.end[1])
			job.planes.full[((size_t)q * job.planes.cells[1] + v / ROWS) * job.planes.cells[0] + u_b / BIN_CELL] =
				!unused;
	}
#endif
}

static bool few_bins(const struct projection *a)
{
	return (size_t)a->n_views * scan_view_size(&a->scan) < WIDE_BINS;
}

bool forward_boxes_pairs(const struct slice_map *maps, int n_views, int nz, const struct scan *scan)
{
	const int n[2] = {scan->n_u, scan->n_v}, most[2] = {4, APART};

	/* The distance is largest at an end of the detector. */
	for (int s = 0; s + 1 < n_views; s += 2)
		for (int k = 0; k < nz; k++)
			for (int c = 0; c < 2; c++)
				for (int end = 0; end < 2; end++) {
					const struct slice_map *m = maps + (size_t)s * nz + k, *other = m + nz;
					const int bin = end ? n[c] - 1 : 0;

					if (!(fabs(fma(m->scale[c], bin, m->shift[c]) -
						   fma(other->scale[c], bin, other->shift[c])) < most[c] - 1))
						return false;
				}
	return n_views > 1;
}

template <int WIDE, int VIEWS> static bool map_of(const struct projection *a, const float *x, CUtensorMap *ret_map)
{
	const int box[2] = {forward_boxes<WIDE, VIEWS>::columns, forward_boxes<WIDE, VIEWS>::lines};

	return cuda_box_map(a->dev, x, a->grid.n, box, ret_map);
}

bool forward_boxes_fit(const struct projection *a, const float *x, CUtensorMap *ret_map)
{
	/* A single view with many bins needs as long as the memory does, with boxes or without. */
	if (!(a->n_views > 1 || few_bins(a)) || !projection_one_tile(a) || a->strips > 1 || !slices_fast(a, SLICES_SCALE_MAX) ||
	    !(a->scale_min[1] > 6.0 / 7 + 1e-6))
		return false;
	return few_bins(a)    ? map_of<1, 1>(a, x, ret_map)
	       : a->box_pairs ? map_of<2, 2>(a, x, ret_map)
			      : map_of<2, 1>(a, x, ret_map);
}

template <int WIDE, int VIEWS>
static int launch_boxes(struct projection *a, struct forward_job *job, const CUtensorMap *map, struct err *err)
{
	const size_t bytes = sizeof(struct forward_boxes<WIDE, VIEWS>);
	const int one_tile[2] = {0, 0}; /* projection_one_tile() */
	int r = cuda_check(
		cudaFuncSetAttribute(forward_boxes_kernel<WIDE, VIEWS>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
		a->dev, "slices forward", err);

	if (r < 0)
		return r;
	job->tiling = cuda_tiling_make(one_tile, a->scan.n_u, a->scan.n_v, WIDE * SLICES_LANES, WARPS * ROWS);
	forward_boxes_kernel<WIDE, VIEWS><<<(unsigned)(cuda_tiling_blocks(&job->tiling) * ((a->n_views + VIEWS - 1) / VIEWS)),
					    BOXES_THREADS, bytes, cuda_state(a->dev)->stream>>>(*job, *map);
	return cuda_check(cudaGetLastError(), a->dev, "slices forward", err);
}

int forward_boxes_start(struct projection *a, struct forward_job *job, const CUtensorMap *map, struct bin_planes *planes,
			struct err *err)
{
	static_assert(SLICES_LANES == BIN_CELL && ROWS >= BIN_CELL_ROWS_MIN, "a cell is the bins of a warp");
	job->n_views = a->n_views;
	if (planes)
		job->planes = *planes = bin_planes_cells(*planes, a, ROWS);
	return few_bins(a)    ? launch_boxes<1, 1>(a, job, map, err)
	       : a->box_pairs ? launch_boxes<2, 2>(a, job, map, err)
			      : launch_boxes<2, 1>(a, job, map, err);
}
