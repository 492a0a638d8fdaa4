/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_joseph.cu - PROJECTION_JOSEPH: a block for each path. Planes of a group are two slices apart. So in each step the rays of
 * all of them have the same weights in an even and an odd slice; even and odd slices are stored separately. Let zs be the ray's
 * height in the step's middle, in slices, and b = round(zs): the weights of slice b and of the slice below it depend on zs - b.
 * With h = b >> 1, the even one of the two is number h of the even slices, the odd one is number h - 1 + (b & 1) of the odd
 * slices. The next plane of the group uses the next even and the next odd slice. Forward: a thread computes a few planes of a
 * group. The volume is first copied so that even and odd slices are separate, with zeros around them; then the columns along the
 * path are copied into shared memory, a chunk of steps at a time. Lanes of a warp have no bank conflicts as long as a row has at
 * most 32 even slices. Back: a thread computes a step, for as many even and odd slices of its column as fit into registers. The
 * bins are in shared memory, those of each group with zeros before and after them, so that no index needs a range check. A group
 * is skipped for BACK_SKIP slices if it contributes to none of them in any step of the warp. The columns are added to the volume
 * with atomics or, for bitwise repeatable results, in 64-bit fixed-point sums. */
#include "kernels/cuda/cuda_paths.cuh"

#define CHUNK 48	/* steps */
#define THREADS_MAX 512 /* if there are more planes, more blocks process them */

#define BACK_SKIP 4 /* even (or odd) slices that are skipped together */
#define BACK_THREADS 128

/* Compute the two slices of a ray in a step of `len` mm with its middle at t, and their weights. h, par: number of the slice pair
 * and parity of the upper slice. */
static __device__ __forceinline__ void joseph_split(const struct path_ray &r, float t, float len, int *h, int *par, float *even,
						    float *odd)
{
	const float magic = 12582912; /* 1.5 2^23: adding it rounds to an integer, which is then in the low bits */
	float zs = fmaf(r.slope, t, r.z), m = zs + magic, upper = len * (zs - (m - magic) + 0.5f), lower = len - upper;
	int b = __float_as_int(m) - 0x4b400000;

	*h = b >> 1;
	*par = b & 1;
	*even = *par ? lower : upper;
	*odd = *par ? upper : lower;
}

struct forward_job {
	const struct path *path;
	const struct path_step *step;
	const struct path_lane *lane;
	const float *inv_w, *separated;
	float *y;
	float slice; /* mm */
	int n_lanes, n_u, n_v, half, pitch;
	bool add;
};

static __global__ void __launch_bounds__(CUDA_THREADS)
	separate_kernel(const float *x, size_t n_columns, int nz, int column, int pitch, float *separated)
{
	size_t n = n_columns * 2 * (size_t)pitch;

	for (size_t i = cuda_index(); i < n; i += (size_t)gridDim.x * blockDim.x) {
		int at = (int)(i % (2 * (size_t)pitch)), parity = at >= pitch, z = 2 * (at - parity * pitch - 1) + parity;

		separated[i] = z >= 0 && z < nz ? x[i / (2 * (size_t)pitch) * (size_t)column + (size_t)z] : 0;
	}
}

/* Load the rows of a chunk, each interpolated between the two columns of its step. */
static __device__ __forceinline__ void load_rows(const struct forward_job &job, const struct path &path, int k0, float *rows)
{
	const int n = min(CHUNK, path.n - k0), quads = 2 * job.pitch / 4;
	const struct path_step *step = job.step + path.at + k0;

	for (int i = threadIdx.x; i < n * quads; i += blockDim.x) {
		int k = i / quads, q = i - k * quads;
		const float *from = job.separated + (size_t)step[k].column * 2 * job.pitch + 4 * q;

		float w = step[k].t, u = 1 - w;
		float4 a = *(const float4 *)from, b = *(const float4 *)(from + (ptrdiff_t)path.neighbour * 2 * job.pitch);

		*(float4 *)(rows + 4 * i) =
			make_float4(fmaf(w, b.x, u * a.x), fmaf(w, b.y, u * a.y), fmaf(w, b.z, u * a.z), fmaf(w, b.w, u * a.w));
	}
}

template <bool LEAVES>
static __global__ void __launch_bounds__(THREADS_MAX) forward_kernel(const __grid_constant__ struct forward_job job)
{
	extern __shared__ __align__(16) float shared[];
	const int rows_size = CHUNK * 2 * job.pitch + PATHS_PLANES;
	const int lane_at = blockIdx.y * blockDim.x + threadIdx.x;
	const struct path path = job.path[blockIdx.x];
	const float len = fabsf(path.dt);
	struct path_lane lane = {};
	struct path_ray ray = {};
	float sum[PATHS_PLANES] = {};

	if (lane_at < job.n_lanes) {
		lane = job.lane[lane_at];
		ray = path_ray_of(lane, job.inv_w[blockIdx.x % job.n_v], job.slice);
	}
	if (path.n)
		load_rows(job, path, 0, shared);
	for (int k0 = 0, side = 0; k0 < path.n; k0 += CHUNK, side ^= 1) {
		/* pointers for h = 0 relative to the lane's base; index 0 of a row is the zero before the first slice */
		const float *even = shared + side * rows_size + lane.base / 2 + 1, *odd = even + job.pitch - 1;
		const int n = min(CHUNK, path.n - k0);

		__syncthreads(); /* the rows of this chunk are complete, and all threads have read those of the previous chunk */
		if (k0 + CHUNK < path.n)
			load_rows(job, path, k0 + CHUNK, shared + (side ^ 1) * rows_size);
		for (int k = 0; lane.n && k < n; k++, even += 2 * job.pitch, odd += 2 * job.pitch) {
			float we, wo;
			int h, par;

			joseph_split(ray, fmaf((float)(k0 + k), path.dt, path.t), len, &h, &par, &we, &wo);
			if (LEAVES) {
				const int low = -1 - lane.base / 2, top = job.half + low + 1;

#pragma unroll
				for (int j = 0; j < PATHS_PLANES; j++) {
					int e = min(max(h + j, low), top), o = min(max(h + par + j - 1, low), top);

					sum[j] = fmaf(we, even[e], fmaf(wo, odd[o + 1], sum[j]));
				}
			} else {
				const float *e = even + h, *o = odd + h + par;

#pragma unroll
				for (int j = 0; j < PATHS_PLANES; j++)
					sum[j] = fmaf(we, e[j], fmaf(wo, o[j], sum[j]));
			}
		}
	}
#pragma unroll
	for (int j = 0; j < PATHS_PLANES; j++)
		if (j < lane.n) {
			float *y = job.y + (size_t)blockIdx.x * job.n_u + lane.plane + j * lane.stride;

			*y = (job.add ? *y : 0) + sum[j] * ray.stretch;
		}
}

template <bool LEAVES> static int launch_forward(struct projection *a, const struct forward_job &job, struct err *err)
{
	const int blocks = (job.n_lanes + THREADS_MAX - 1) / THREADS_MAX,
		  threads = ((job.n_lanes + blocks - 1) / blocks + 31) / 32 * 32;
	const size_t bytes = 2 * (size_t)(CHUNK * 2 * job.pitch + PATHS_PLANES) * sizeof(float);
	const unsigned n = (unsigned)((size_t)a->n_views * (size_t)a->scan.n_v);
	int r = cuda_check(cudaFuncSetAttribute(forward_kernel<LEAVES>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
			   a->dev, "Joseph forward", err);

	if (r < 0)
		return r;
	forward_kernel<LEAVES><<<dim3(n, (unsigned)blocks), (unsigned)threads, bytes, cuda_state(a->dev)->stream>>>(job);
	return cuda_check(cudaGetLastError(), a->dev, "Joseph forward", err);
}

int cuda_joseph_forward(struct projection *a, const float *x, bool add, float *y, struct err *err)
{
	const struct cuda_paths *p = a->paths;
	const struct grid *g = &a->grid;
	size_t columns = (size_t)g->n[0] * (size_t)g->n[1];
	float *separated = (float *)cuda_state(a->dev)->scratch;
	struct forward_job job = {};

	separate_kernel<<<cuda_blocks(columns * 2 * (size_t)p->pitch), CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(
		x, columns, g->n[2], (int)grid_column(g), p->pitch, separated);
	job.path = p->path;
	job.step = p->step;
	job.lane = p->lane;
	job.inv_w = p->inv_w;
	job.separated = separated;
	job.y = y;
	job.slice = (float)g->h[2];
	job.n_lanes = p->n_lanes;
	job.n_u = a->scan.n_u;
	job.n_v = a->scan.n_v;
	job.half = p->half;
	job.pitch = p->pitch;
	job.add = add;
	return p->leaves ? launch_forward<true>(a, job, err) : launch_forward<false>(a, job, err);
}

struct back_job {
	const struct path *path;
	const struct path_step *step;
	const struct path_lane *group;
	const int *group_at;
	const float *inv_w, *y;
	float *x;
	unsigned long long *fixed; /* used in place of x */
	const float *largest;
	double bound; /* fixed: no sum exceeds this times *largest */
	float slice;
	int n_groups, padded, n_u, n_v, nz, column, half;
};

/* The parameters of a group in this path, for all threads. */
struct back_group {
	struct path_ray ray;
	int at, n; /* index of its first bin in shared memory, minus the number of its first slice; number of its bins */
	int base;  /* pairs of slices */
};

static __device__ __forceinline__ void add_quad(float *to, float a, float b, float c, float d)
{
#if __CUDA_ARCH__ >= 900
	atomicAdd((float4 *)to, make_float4(a, b, c, d));
#else
	atomicAdd(to, a);
	atomicAdd(to + 1, b);
	atomicAdd(to + 2, c);
	atomicAdd(to + 3, d);
#endif
}

static __device__ __forceinline__ void bring_home(const struct back_job &job, int column, int z0, float w, const float *even,
						  const float *odd, double scale)
{
	size_t at = (size_t)column * job.column + z0;

	if (job.fixed) {
#pragma unroll
		for (int h = 0; h < PATHS_PAIRS; h++) {
			if (z0 + 2 * h < job.nz)
				atomicAdd(job.fixed + at + 2 * h,
					  (unsigned long long)__double2ll_rn((double)w * even[h] * scale));
			if (z0 + 2 * h + 1 < job.nz)
				atomicAdd(job.fixed + at + 2 * h + 1,
					  (unsigned long long)__double2ll_rn((double)w * odd[h] * scale));
		}
		return;
	}
#pragma unroll
	for (int h = 0; h < PATHS_PAIRS; h += 2) {
		int z = z0 + 2 * h;

		if (z < job.nz)
			add_quad(job.x + at + 2 * h, w * even[h], z + 1 < job.nz ? w * odd[h] : 0,
				 z + 2 < job.nz ? w * even[h + 1] : 0, z + 3 < job.nz ? w * odd[h + 1] : 0);
	}
}

static __global__ void __launch_bounds__(BACK_THREADS) back_kernel(const __grid_constant__ struct back_job job)
{
	extern __shared__ float bins[];
	struct back_group *groups = (struct back_group *)(bins + (job.padded + 3) / 4 * 4);
	const struct path path = job.path[blockIdx.x];
	const int v = (int)(blockIdx.x % job.n_v), h0 = blockIdx.y * PATHS_PAIRS;
	const float *y = job.y + (size_t)blockIdx.x * job.n_u;
	const float step_length = fabsf(path.dt);
	const double scale = job.fixed ? 0x1p62 / ((double)*job.largest * job.bound) : 0;

	if (path.n == 0)
		return;
	for (int i = threadIdx.x; i < job.padded; i += BACK_THREADS)
		bins[i] = 0;
	for (int i = threadIdx.x; i < job.n_groups; i += BACK_THREADS) {
		struct path_lane lane = job.group[i];

		groups[i].ray = path_ray_of(lane, job.inv_w[v], job.slice);
		groups[i].base = lane.base / 2;
		groups[i].at = job.group_at[i];
		groups[i].n = lane.n;
	}
	__syncthreads();
	for (int i = threadIdx.x / 32; i < job.n_groups; i += BACK_THREADS / 32) {
		struct path_lane lane = job.group[i];

		for (int j = threadIdx.x % 32; j < lane.n; j += 32)
			bins[groups[i].at + j] = y[lane.plane + j * lane.stride] * groups[i].ray.stretch;
	}
	__syncthreads();
	for (int k0 = 0; k0 < path.n; k0 += BACK_THREADS) {
		int k = k0 + threadIdx.x, last = min(k, path.n - 1);
		struct path_step step = job.step[path.at + last];
		float even[PATHS_PAIRS] = {}, odd[PATHS_PAIRS] = {};

		for (int i = 0; i < job.n_groups; i++) {
			struct back_group g = groups[i];
			float we, wo;
			int h, par, low, high;
			const float *e, *o;

			joseph_split(g.ray, fmaf((float)last, path.dt, path.t), step_length, &h, &par, &we, &wo);
			h += g.base - h0; /* now the even slice of the first plane is number h of those in registers */
			h = min(max(h, -g.n - 1), job.half + 1);
			low = __reduce_min_sync(0xffffffff, h) - 1;
			high = __reduce_max_sync(0xffffffff, h) + g.n;
			e = bins + g.at - h;
			o = e - par + 1;
#pragma unroll
			for (int c = 0; c < PATHS_PAIRS; c += BACK_SKIP)
				if (c + BACK_SKIP > low && c < high) {
#pragma unroll
					for (int d = 0; d < BACK_SKIP; d++) {
						even[c + d] = fmaf(we, e[c + d], even[c + d]);
						odd[c + d] = fmaf(wo, o[c + d], odd[c + d]);
					}
				}
		}
		if (k >= path.n)
			continue;
		bring_home(job, step.column, 2 * h0, 1 - step.t, even, odd, scale);
		bring_home(job, step.column + path.neighbour, 2 * h0, step.t, even, odd, scale);
	}
}

int cuda_joseph_back(struct projection *a, const float *y, const struct cuda_fixed *fixed, float *x, struct err *err)
{
	const struct cuda_paths *p = a->paths;
	const size_t bytes = ((size_t)(p->padded + 3) / 4 * 4) * sizeof(float) + (size_t)p->n_groups * sizeof(struct back_group);
	const unsigned n = (unsigned)((size_t)a->n_views * (size_t)a->scan.n_v);
	struct back_job job = {};
	int r;

	job.path = p->path;
	job.step = p->step;
	job.group = p->group;
	job.group_at = p->group_at;
	job.inv_w = p->inv_w;
	job.y = y;
	job.x = x;
	job.slice = (float)a->grid.h[2];
	job.n_groups = p->n_groups;
	job.padded = p->padded;
	job.n_u = a->scan.n_u;
	job.n_v = a->scan.n_v;
	job.nz = a->grid.n[2];
	job.column = (int)grid_column(&a->grid);
	job.half = p->half;
	if (fixed) {
		job.fixed = fixed->sums;
		job.largest = fixed->largest;
		job.bound = fixed->bound;
	}
	r = cuda_check(cudaFuncSetAttribute(back_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes), a->dev,
		       "Joseph back", err);
	if (r < 0)
		return r;
	back_kernel<<<dim3(n, (unsigned)((job.half + PATHS_PAIRS - 1) / PATHS_PAIRS)), BACK_THREADS, bytes,
		      cuda_state(a->dev)->stream>>>(job);
	return cuda_check(cudaGetLastError(), a->dev, "Joseph back", err);
}
