/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the path kernels of the CUDA device (cuda_paths_forward.cu, cuda_paths_back.cu): how the sums of rays are computed
 * from tables of their path.
 *
 * The rays of a group's planes, two slices apart, differ only in the slices that they are in. A ray remains in a slice (JOSEPH:
 * between the middles of two) for many steps. So a bin is not processed in each step, but only where the ray passes from one
 * slice to the next: at an event, which is at the same point of the path for all planes of a group. A path is divided into chunks
 * of steps. Let x[k][z] be the voxels of step k of a chunk, and t the distance from the chunk's beginning.
 *
 * - PATHS: F(t)[z] is the integral of x[z] from 0 to t, and T = F[m] - F[m + 1]. A ray that passes from slice m up to m + 1 at t
 * has T(t)[m] more than one that is in m + 1 from the beginning on; one that passes down from m + 1 to m has T(t)[m] less. So a
 * bin is the sum of T of its events, with these signs, and of F[s] at the chunk's end, where s is the ray's slice there.
 * - JOSEPH: x[k] is interpolated between two columns, t is k. At the height zs = z + rate k, slice s has the weight zs - s + 1/2
 * and slice s - 1 the rest. Let s be that of the chunk's last step, and use these weights, which are linear in k, in the whole
 * chunk. For an event at t, where slice m alone has weight, the steps before t then have |rate| (t - k) (2 x[k][m] - x[k][m - 1]
 * - x[k][m + 1]) too much. So T(t) is the sum of (t - k) (...) over k < t, its factor is -|rate|, and a bin is the sum of T of
 * its events, and of the weighted sums of x[k] and k x[k] at the chunk's end.
 *
 * In both models T is linear in t between the beginnings of steps, where it is stored in the chunk's table. Chunks are short, so
 * that sums of floats remain accurate. Forward reads the tables, back adds to them, with the events and the weights of
 * pass_faces(): one is the transpose of the other. */
#ifndef TOMONODE_KERNELS_CUDA_PATHS_RAYS_CUH
#define TOMONODE_KERNELS_CUDA_PATHS_RAYS_CUH

#include "kernels/cuda/cuda_paths.cuh"

#define CHUNK 24		  /* steps; a multiple of 4, at most 32 */
#define CHUNKS 5		  /* whose tables are in shared memory together, if they have room */
#define ROOM 73728		  /* bytes */
#define MOST_PASSED 8		  /* slices that a ray passes in a chunk (JOSEPH); if more, sums of T would cancel */
#define WINDOW 256		  /* pairs of slices processed together */
#define SECTION 28		  /* pairs of slices that a warp processes; its outer lanes have those below and above */
#define FIRST 2			  /* pairs before and after the window in a row; the outermost ones are 0 or not used */
#define BEYOND (2 * PATHS_PLANES) /* elements after the last row, which planes that a lane does not have may address */
#define RAYS_THREADS 256	  /* largest block; if there are more lanes, more blocks process them */
#define RAYS_BLOCKS 4		  /* that fit into a multiprocessor's registers; with a scanner's usual 160 threads, 6 */
#define ALL 0xffffffffu

struct rays_job {
	const struct path *path;
	const struct path_step *step;
	const struct path_lane *lane;
	const float *inv_w;
	const float *x, *y; /* forward, back: the input */
	float *ret_x, *ret_y;
	unsigned long long *fixed; /* back: used in place of ret_x */
	const float *largest;
	double bound; /* fixed: no sum exceeds this times *largest */
	float slice;  /* mm */
	int n_lanes, n_u, n_v, nz, column;
	int window, sections; /* pairs of slices; of SECTION pairs */
	int row;	      /* elements of a row: one for each slice of the window and of FIRST pairs on both sides */
	int steps;	      /* of a chunk, at most CHUNK */
	int chunks, chunk_bytes;
	bool add;
};

struct __align__(16) chunk_step
{
	size_t at;  /* of the column's first voxel, bytes */
	float part; /* PATHS: length, mm; JOSEPH: weight of the second column */
	float rest; /* JOSEPH: weight of the first column */
};

/* The steps of a chunk. After the last one, they are repetitions of it, but `part` and `rest` are 0. */
struct __align__(16) chunk_steps
{
	struct chunk_step step[CHUNK];
	float edge[CHUNK]; /* PATHS: t of the beginning of a step, mm from the path's middle; infinite after the last step */
	float inv[CHUNK];  /* PATHS: 1 / length of the step, 1/mm */
	float end;	   /* PATHS: t of the end of the last step */
};

/* A chunk in shared memory. Forward has floats in the rows; back integers, see there. */
struct chunk {
	struct chunk_steps *steps;
	float *sum, *rise; /* a row each. PATHS: F at the end; JOSEPH: sums of x[k] and of k x[k] */
	float *table;	   /* CHUNK + 1 rows: T at the beginning of each step, and at the end */
};

static __device__ __forceinline__ struct chunk chunk_at(const struct rays_job &job, char *shared, int i)
{
	struct chunk c;

	c.steps = (struct chunk_steps *)(shared + i * job.chunk_bytes);
	c.sum = (float *)(c.steps + 1);
	c.rise = c.sum + job.row;
	c.table = c.rise + job.row;
	return c;
}

/* A chunk for one lane: the height of the first plane's ray is z + slope t, in slices above lane.base. PATHS: minus one half, and
 * t is in mm from the path's middle. JOSEPH: t is the number of the step in the chunk. */
struct lane_chunk {
	float slope, z, inv; /* inv = 1 / slope; 0 if the slope is 0 */
	float begin, end;
	float factor; /* of T */
};

#define MAGIC 12582912.0f /* 1.5 2^23: adding it rounds to an integer, which is then in the low bits */

static __device__ __forceinline__ int nearest_whole(float zs)
{
	return __float_as_int(zs + MAGIC) - 0x4b400000;
}

/* Load the steps of the chunk that begins with step `first`; one warp. Return their number. */
template <bool JOSEPH>
static __device__ __forceinline__ int load_steps(const struct rays_job &job, const struct path &path, int first,
						 struct chunk_steps *ret)
{
	const int lane = threadIdx.x % 32, n = min(job.steps, path.n - first), k = first + min(lane, n - 1);
	const struct path_step step = job.step[path.at + k];
	const float begin = JOSEPH ? 0 : k ? job.step[path.at + k - 1].t : path.t, length = step.t - begin;

	__syncwarp();
	if (lane < CHUNK) {
		const float part = JOSEPH ? step.t : length;

		ret->step[lane] = {(size_t)step.column * job.column * sizeof(float), lane < n ? part : 0,
				   lane < n ? 1 - part : 0};
		if (!JOSEPH) {
			ret->edge[lane] = lane < n ? begin : INFINITY;
			ret->inv[lane] = length > 0 ? 1 / length : 0;
		}
	}
	if (!JOSEPH && lane == n - 1)
		ret->end = step.t;
	__syncwarp();
	return n;
}

/* Return the chunk that begins with step `first`. inv: inverse_of() */
template <bool JOSEPH>
static __device__ __forceinline__ struct lane_chunk lane_chunk_of(const struct rays_job &job, const struct path_ray &r, float inv,
								  const struct path &path, int first,
								  const struct chunk_steps *steps)
{
	const float rate = r.slope * path.dt;

	if (JOSEPH)
		return {rate,
			fmaf(r.slope, fmaf((float)first, path.dt, path.t), r.z),
			inv,
			0,
			(float)(min(job.steps, path.n - first) - 1),
			-fabsf(rate)};
	return {r.slope, r.z, inv, steps->edge[0], steps->end, r.slope < 0 ? -1.0f : 1.0f};
}

template <bool JOSEPH> static __device__ __forceinline__ float inverse_of(const struct path_ray &r, const struct path &path)
{
	const float rate = JOSEPH ? r.slope * path.dt : r.slope;

	return rate != 0 ? 1 / rate : 0;
}

/* Call visit(k, m, part) for each event of the chunk: c.factor times T of slice m, relative to lane.base, belongs to the bin,
 * where T is that of row k of the table, plus `part` times the difference to row k + 1. Return the slice at the end. */
template <bool JOSEPH, class VISIT>
static __device__ __forceinline__ int pass_faces(const struct lane_chunk &c, const struct chunk_steps *steps, const VISIT &visit)
{
	const bool down = c.slope < 0;
	const int last = nearest_whole(fmaf(c.slope, c.end, c.z));
	int s = nearest_whole(fmaf(c.slope, c.begin, c.z)), left = abs(last - s), m = s - down;
	float face = (float)m + 0.5f - c.z, quarter[CHUNK / 4];

	if constexpr (!JOSEPH) {
#pragma unroll
		for (int i = 1; i < CHUNK / 4; i++)
			quarter[i] = steps->edge[4 * i];
	}
	for (; left > 0; left--, m += down ? -1 : 1, face += down ? -1.0f : 1.0f) {
		const float t = face * c.inv;
		int k = 0;

		if constexpr (JOSEPH) {
			k = min(max(nearest_whole(t - 0.5f), 0), (int)c.end);
			visit(k, m, __saturatef(t - (float)k));
		} else {
#pragma unroll
			for (int i = 1; i < CHUNK / 4; i++)
				k += quarter[i] < t ? 4 : 0;
			const float4 e = *(const float4 *)(steps->edge + k);
			const bool after[3] = {e.y < t, e.z < t, e.w < t};

			k += after[0] + after[1] + after[2];
			visit(k, m, __saturatef((t - (after[2] ? e.w : after[1] ? e.z : after[0] ? e.y : e.x)) * steps->inv[k]));
		}
	}
	return last;
}

/* Return where in a row the slice of plane j is, relative to that of plane 0, whose index is `at`. */
template <bool LEAVES> static __device__ __forceinline__ int place_of(const struct rays_job &job, int at, int j)
{
	return LEAVES ? min(max(at + 2 * j, 0), 2 * (job.window + 2 * FIRST) - 1) - at : 2 * j;
}

/* Return the index in a row of the slice that lane.base is, for the window that begins with pair `window`. */
static __device__ __forceinline__ int base_of(const struct path_lane &lane, int window)
{
	return lane.base - 2 * (window - FIRST);
}

static inline bool rays_leave(const struct projection *a)
{
	return a->paths->leaves || a->grid.n[2] > 2 * WINDOW;
}

/* Return the number of steps of a chunk. */
static inline int rays_steps(const struct projection *a)
{
	const double *h = a->grid.h, most = sqrt(2) * fmax(h[0], h[1]) * a->paths->steepest; /* slices per step */

	if (a->model != PROJECTION_JOSEPH || most * CHUNK <= MOST_PASSED)
		return CHUNK;
	return most < MOST_PASSED ? (int)(MOST_PASSED / most) : 1;
}

static inline struct rays_job rays_job_of(const struct projection *a)
{
	const struct cuda_paths *p = a->paths;
	const int pairs = (a->grid.n[2] + 1) / 2;
	struct rays_job job = {};

	job.path = p->path;
	job.step = p->step;
	job.lane = p->lane;
	job.inv_w = p->inv_w;
	job.slice = (float)a->grid.h[2];
	job.n_lanes = p->n_lanes;
	job.n_u = a->scan.n_u;
	job.n_v = a->scan.n_v;
	job.nz = a->grid.n[2];
	job.column = (int)grid_column(&a->grid);
	job.window = pairs < WINDOW ? pairs : WINDOW;
	job.sections = (job.window + SECTION - 1) / SECTION;
	job.row = (2 * (job.window + 2 * FIRST) + 3) / 8 * 8 + 4; /* 4 more than a multiple of 8: few bank conflicts */
	job.steps = rays_steps(a);
	job.chunk_bytes = (int)(sizeof(struct chunk_steps) + ((CHUNK + 3) * (size_t)job.row + BEYOND) * sizeof(float));
	job.chunks = ROOM / job.chunk_bytes < 1 ? 1 : ROOM / job.chunk_bytes < CHUNKS ? ROOM / job.chunk_bytes : CHUNKS;
	return job;
}

/* Launch a block for each path, or several if there are many lanes. */
static inline int rays_launch(const struct projection *a, void (*kernel)(struct rays_job), const struct rays_job &job,
			      const char *what, struct err *err)
{
	const int blocks = (job.n_lanes + RAYS_THREADS - 1) / RAYS_THREADS,
		  threads = ((job.n_lanes + blocks - 1) / blocks + 31) / 32 * 32;
	const dim3 n((unsigned)((size_t)a->n_views * (size_t)a->scan.n_v), (unsigned)blocks);
	const int bytes = job.chunks * job.chunk_bytes;
	int r = cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), a->dev, what, err);

	if (r < 0)
		return r;
	kernel<<<n, (unsigned)threads, (size_t)bytes, cuda_state(a->dev)->stream>>>(job);
	return cuda_check(cudaGetLastError(), a->dev, what, err);
}

#endif
