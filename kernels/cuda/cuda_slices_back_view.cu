/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_slices_back_view.cu - the EM update from one view on the CUDA device, for a detector that stands still
 * (kernels/slice_map.h), from planes of bins (struct bin_planes).
 * - A block updates some slices that follow each other; the bins of q that they need are one box in shared memory.
 * - The copy engine brings the voxels of the next slices into shared memory, and takes them back when they are updated. So
 *   threads seldom wait for memory, and voxels outside the grid are 0 and are not stored, without a check.
 * - One more warp computes the weights of the next slices and starts the copies. A stage holds what belongs to a slice. Once the
 *   box of q is there, the other warps wait only at the two barriers of each stage; every lane arrives for itself
 *   (cuda_barrier_arrive()).
 * - Where some bins of the box are not used, d is read from global memory; these are few blocks.
 * - A warp skips slices in which all of its voxels are 0. */
#include "kernels/cuda/cuda_slices_back_boxes.cuh"

#define VIEW_COLUMNS 112 /* of a box of bins */
#define VIEW_X 2	 /* warps along x: rows of voxels are whole sectors of memory then */
#define VIEW_Y 4
#define VIEW_WARPS (VIEW_X * VIEW_Y)
#define VIEW_THREADS ((VIEW_WARPS + 1) * 32)
#define VIEW_SLICES 12 /* of a block, at most */
#define VIEW_STAGES 4
#define VIEW_BLOCKS 3				     /* resident on a multiprocessor */
#define VIEW_BYTES (227 * 1024 / VIEW_BLOCKS - 1024) /* of shared memory for a block, at most */
#define WIDTH (VIEW_X * BOX_LANES)		     /* voxels of a block */
#define HEIGHT (VIEW_Y * ROWS)

/* Dynamic shared memory: this, then the box of q. */
struct back_view {
	struct __align__(CUDA_BOX_ALIGN) stage
	{
		float voxels[CUDA_BOX_FLOATS(WIDTH, HEIGHT)];
		struct box_columns columns[VIEW_X];
		struct box_lines lines[VIEW_Y];
		int live[VIEW_WARPS]; /* [warp]: some of its voxels are not 0 */
	}
	stage[VIEW_STAGES];
	struct box_axis axis[VIEW_SLICES][2];
	struct box_corner corner;
	cuda_barrier box;				   /* the box of q is there */
	cuda_barrier full[VIEW_STAGES], done[VIEW_STAGES]; /* a stage is filled; all lanes have finished with it */
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
/* Compute the positions of n slices from k0 on, and start to copy their bins. All lanes of a warp call it. */
static __device__ __forceinline__ void place_slices(const struct box_job &job, struct back_view &s, const CUtensorMap *q,
						    float *box, const int first[2], int k0, int n, int lane)
{
	const int axis = lane % 2, k = min(lane / 2, n - 1);
	const struct slice_axis a = slice_axis_back(job.back.maps + k0 + k, axis, axis ? first[1] : first[0]);

	static_assert(2 * VIEW_SLICES <= 32, "a lane for each axis of a slice");
	s.axis[k][axis] = {a, length_origin(job.back, job.back.views, a, axis)};
	struct box_corner c = box_corner_at(job, 0, a.base, lane);
	if (lane == 0) {
		cuda_box_expect(&s.box, (unsigned)(VIEW_COLUMNS * job.box_rows) * sizeof(float));
		cuda_box_copy(q, c.u, c.v, 0, box, &s.box);
	}
	c.known = box_known<VIEW_COLUMNS>(job, 0, c.u, c.v, lane);
	if (lane == 0)
		s.corner = c; /* read by other warps after full[] */
	__syncwarp();
}

/* Wait until slice k of the block is updated; start to copy its voxels back, unless all are 0. All lanes of the last warp call
 * it. */
static __device__ __forceinline__ void store_stage(struct back_view &s, const CUtensorMap *x, const int first[2], int k0, int k,
						   int lane)
{
	const int at = k % VIEW_STAGES;

	cuda_barrier_wait(&s.done[at], (unsigned)(k / VIEW_STAGES % 2));
	const bool live = __any_sync(0xffffffffu, lane < VIEW_WARPS && s.stage[at].live[lane]);
	if (lane == 0 && live)
		cuda_box_store(x, first[0], first[1], k0 + k, s.stage[at].voxels);
}

/* The work of the last warp. */
static __device__ __forceinline__ void serve_slices(const struct box_job &job, struct back_view &s, const CUtensorMap *q,
						    const CUtensorMap *x, float *box, const int first[2], int k0, int n, int lane)
{
	const int ahead = VIEW_STAGES - 1;

	if (lane == 0)
		for (int k = 0; k < min(n, VIEW_STAGES); k++) /* copies of voxels do not need the positions */
			cuda_box_copy(x, first[0], first[1], k0 + k, s.stage[k].voxels, &s.full[k]);
	place_slices(job, s, q, box, first, k0, n, lane);
	for (int k = 0; k < n + ahead; k++) {
		if (k < n) {
			struct back_view::stage &stage = s.stage[k % VIEW_STAGES];

			if (lane == 0 && k >= VIEW_STAGES) {
				cuda_box_stores_read(); /* those of slice k - VIEW_STAGES, which was in this stage */
				cuda_box_copy(x, first[0], first[1], k0 + k, stage.voxels, &s.full[k % VIEW_STAGES]);
			}
			__syncwarp();
			for (int w = 0; w < VIEW_X; w++)
				weigh_columns<VIEW_COLUMNS, true>(job, s.axis[k][0], s.corner, w * BOX_LANES, lane,
								  &stage.columns[w]);
			static_assert(HEIGHT == 32, "a lane for each line of voxels");
			weigh_line<VIEW_COLUMNS, true>(job, s.axis[k][1], s.corner, lane, stage.lines);
			if (lane == 0)
				cuda_box_expect(&s.full[k % VIEW_STAGES], WIDTH * HEIGHT * sizeof(float));
			else
				cuda_barrier_arrive(&s.full[k % VIEW_STAGES]);
		}
		if (k >= ahead)
			store_stage(s, x, first, k0, k - ahead, lane);
	}
	if (lane == 0)
		cuda_box_stores_read(); /* before the block ends */
}

/* Gather d from global memory, where the box of q is from. offset: in that box. */
static __device__ __forceinline__ void gather_d(const struct box_job &job, const struct box_corner &c, int offset,
						const float4 &wx, const float4 *y, float sum[ROWS])
{
	const int u = c.u + offset % VIEW_COLUMNS, v = c.v + offset / VIEW_COLUMNS, n_u = job.back.scan.n_u;
	const float *const wy = (const float *)y;

#pragma unroll
	for (int m = 0; m < BIN_ROWS; m++) {
		float b[3];

#pragma unroll
		for (int t = 0; t < 3; t++)
			b[t] = (unsigned)(u + t) < (unsigned)n_u && (unsigned)(v + m) < (unsigned)job.back.scan.n_v
				       ? __ldg(job.back.planes.d + (size_t)(v + m) * n_u + u + t)
				       : 0;
		const float s = fmaf(wx.z, b[2], fmaf(wx.y, b[1], wx.x * b[0]));
#pragma unroll
		for (int r = first_voxel(m); r < end_voxel(m); r++)
			sum[r] = fmaf(wy[weight_at(m, r)], s, sum[r]);
	}
}

/* Update the voxels of a thread in a slice. x: the first one, in a stage; lanes from BOX_LANES on have none. */
static __device__ __forceinline__ void update_slice(const struct box_job &job, const struct back_view &s,
						    struct back_view::stage &stage, const float *box, float *x, int warp,
						    int lane)
{
	const struct box_columns &columns = stage.columns[warp % VIEW_X];
	const struct box_lines &lines = stage.lines[warp / VIEW_X];
	float old[ROWS], num[ROWS] = {}, den[ROWS] = {};

#pragma unroll
	for (int r = 0; r < ROWS; r++)
		old[r] = lane < BOX_LANES ? x[r * WIDTH] : 0;
	const bool live = some_live(old);
	if (lane == 0)
		stage.live[warp] = live;
	if (!live)
		return;
	const float4 wx = columns.x[lane];
	const int offset = lines.row + __float_as_int(wx.w);

	gather_box<VIEW_COLUMNS>(box + offset, wx, lines.y, num);
	if (s.corner.known)
		add_lengths<ROWS>(columns.length[lane], lines.length, den);
	else
		gather_d(job, s.corner, offset, wx, lines.y, den);
	if (lane < BOX_LANES)
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			x[r * WIDTH] = em_voxel(job.back.rule.voxel_floor, old[r], num[r], den[r]);
}
#endif

static __global__ void __launch_bounds__(VIEW_THREADS, VIEW_BLOCKS)
	back_view_kernel(const __grid_constant__ struct box_job job, const __grid_constant__ CUtensorMap map_q,
			 const __grid_constant__ CUtensorMap map_x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	extern __shared__ __align__(CUDA_BOX_ALIGN) unsigned char shared[];
	struct back_view &s = *reinterpret_cast<struct back_view *>(shared);
	float *const box = reinterpret_cast<float *>(shared + (sizeof(s) + CUDA_BOX_ALIGN - 1) / CUDA_BOX_ALIGN * CUDA_BOX_ALIGN);
	const int lane = threadIdx.x % SLICES_LANES, warp = threadIdx.x / SLICES_LANES;
	/* From the end of the volume, where the projection before it ended: those voxels are still in the level-2 cache. */
	const unsigned block = gridDim.x - 1 - blockIdx.x;
	const int k0 = (int)(block % job.back.parts) * job.back.slices, n = min(job.back.slices, job.back.grid.n[2] - k0);
	const struct slice_place place =
		slice_place_of(&job.back.tiling, block / job.back.parts, WIDTH, HEIGHT, job.back.grid.n[0], job.back.grid.n[1]);

	if (threadIdx.x == 0) {
		cuda_barrier_init(&s.box, 1);
		for (int i = 0; i < VIEW_STAGES; i++) {
			cuda_barrier_init(&s.full[i], 32);
			cuda_barrier_init(&s.done[i], 32 * VIEW_WARPS);
		}
	}
	__syncthreads();
	if (warp == VIEW_WARPS) {
		serve_slices(job, s, &map_q, &map_x, box, place.first, k0, n, lane);
		return;
	}
	cuda_barrier_wait(&s.box, 0);
	for (int k = 0; k < n; k++) {
		const int at = k % VIEW_STAGES;

		cuda_barrier_wait(&s.full[at], (unsigned)(k / VIEW_STAGES % 2));
		update_slice(job, s, s.stage[at], box,
			     s.stage[at].voxels + warp / VIEW_X * ROWS * WIDTH + warp % VIEW_X * BOX_LANES + lane, warp, lane);
		cuda_box_written();
		cuda_barrier_arrive(&s.done[at]);
	}
#endif
}

static size_t shared_bytes(int box_rows)
{
	return (sizeof(struct back_view) + CUDA_BOX_ALIGN - 1) / CUDA_BOX_ALIGN * CUDA_BOX_ALIGN +
	       (size_t)CUDA_BOX_FLOATS(VIEW_COLUMNS, box_rows) * sizeof(float);
}

int back_view_rows(const struct device *dev, const struct slice_map *maps, const struct grid *g, int *ret_slices)
{
	const size_t most = cuda_state(dev)->shared_bytes < VIEW_BYTES ? cuda_state(dev)->shared_bytes : VIEW_BYTES;

	for (int parts = (g->n[2] + VIEW_SLICES - 1) / VIEW_SLICES; parts <= g->n[2]; parts++) {
		const int slices = (g->n[2] + parts - 1) / parts;
		/* as back_boxes_rows() */
		const double columns = back_boxes_widest(maps, 1, g, 0, WIDTH - 1, slices) + 3 + 3 + 2,
			     rows = back_boxes_widest(maps, 1, g, 1, HEIGHT - ROWS, slices) + BIN_ROWS + 2;

		if (columns <= VIEW_COLUMNS && rows <= CUDA_BOX_MOST && shared_bytes((int)rows) <= most) {
			*ret_slices = slices;
			return (int)rows;
		}
	}
	return 0;
}

bool back_view_possible(const struct projection *a)
{
	return cuda_state(a->dev)->box_encoder && a->n_views == 1 && a->box_rows > 0 && a->scale_min[1] > 6.0 / 7 + 1e-6 &&
	       a->scan.n_u % 4 == 0 && a->grid.n[0] % 4 == 0;
}

bool back_view_fit(const struct projection *a, const struct bin_planes *planes, const float *x, CUtensorMap ret_map[2])
{
	const int n[3] = {a->scan.n_u, a->scan.n_v, 1}, bins[2] = {VIEW_COLUMNS, a->box_rows}, voxels[2] = {WIDTH, HEIGHT};

	return back_view_possible(a) && cuda_box_map(a->dev, planes->q, n, bins, ret_map) &&
	       cuda_box_map(a->dev, x, a->grid.n, voxels, ret_map + 1);
}

int back_view_start(struct projection *a, const struct back_job *back, const CUtensorMap map[2], struct err *err)
{
	const int one_tile[2] = {0, 0}; /* projection_one_tile() */
	const size_t bytes = shared_bytes(a->box_rows);
	struct box_job job = {*back, a->box_rows};
	int r = cuda_check(cudaFuncSetAttribute(back_view_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
			   a->dev, "slices back", err);

	if (r < 0)
		return r;
	job.back.tiling = cuda_tiling_make(one_tile, a->grid.n[0], a->grid.n[1], WIDTH, HEIGHT);
	job.back.slices = a->box_slices;
	job.back.parts = (a->grid.n[2] + a->box_slices - 1) / a->box_slices;
	back_view_kernel<<<(unsigned)(cuda_tiling_blocks(&job.back.tiling) * job.back.parts), VIEW_THREADS, bytes,
			   cuda_state(a->dev)->stream>>>(job, map[0], map[1]);
	return cuda_check(cudaGetLastError(), a->dev, "slices back", err);
}
