/* cuda_paths_back.cu - the exact adjoint of the transaxial paths: a block for each path, a thread for each step.
 *
 * The bins of a path lie in shared memory, each group of planes between zeros, so that no index is checked. A thread holds PATHS_PAIRS
 * even and as many odd slices of its step's column in registers, adds up what all groups leave there, and brings the column home with
 * atomics of four floats; or, bitwise repeatable, with 64-bit fixed-point sums. Groups that leave nothing in a few slices of any step of
 * the warp are passed over there.
 */
#include "kernels/cuda_paths.cuh"

#define BACK_SKIP 4	/* of them are passed over together */
#define BACK_THREADS 128

struct back_job {
	const struct path *path;
	const struct path_step *step;
	const struct path_lane *group;
	const int *group_at;
	const float *inv_w, *y;
	float *x;
	unsigned long long *fixed; /* instead of x */
	const float *largest;
	double bound; /* fixed: no sum is above this times *largest */
	float slice;
	int n_groups, padded, n_u, n_v, nz, column, half;
};

/* What a group is in this path, for all threads. */
struct back_group {
	struct path_ray ray;
	int at, n; /* its first bin in shared memory, less the number of its first slice; bins */
	int base; /* pairs of slices */
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
				atomicAdd(job.fixed + at + 2 * h, (unsigned long long)__double2ll_rn((double)w * even[h] * scale));
			if (z0 + 2 * h + 1 < job.nz)
				atomicAdd(job.fixed + at + 2 * h + 1, (unsigned long long)__double2ll_rn((double)w * odd[h] * scale));
		}
		return;
	}
#pragma unroll
	for (int h = 0; h < PATHS_PAIRS; h += 2) {
		int z = z0 + 2 * h;

		if (z < job.nz)
			add_quad(job.x + at + 2 * h, w * even[h], z + 1 < job.nz ? w * odd[h] : 0, z + 2 < job.nz ? w * even[h + 1] : 0,
				 z + 3 < job.nz ? w * odd[h + 1] : 0);
	}
}

template <bool JOSEPH>
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

		groups[i].ray = path_ray_of(lane, job.inv_w[v], JOSEPH, step_length, job.slice);
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
		float before = JOSEPH ? 0 : last ? job.step[path.at + last - 1].t : path.t, len = JOSEPH ? step_length : step.t - before;
		float even[PATHS_PAIRS] = {}, odd[PATHS_PAIRS] = {};

		for (int i = 0; i < job.n_groups; i++) {
			struct back_group g = groups[i];
			float at = JOSEPH ? fmaf((float)last, path.dt, path.t) : g.ray.high ? step.t : before, we, wo;
			int h, par, low, high;
			const float *e, *o;

			path_split(g.ray, at, len, &h, &par, &we, &wo);
			h += g.base - h0; /* the first plane's even slice has number h among those held here */
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
		if (JOSEPH) {
			bring_home(job, step.column, 2 * h0, 1 - step.t, even, odd, scale);
			bring_home(job, step.column + path.neighbour, 2 * h0, step.t, even, odd, scale);
		} else {
			bring_home(job, step.column, 2 * h0, 1, even, odd, scale);
		}
	}
}

/* The largest |y|, as the bits of a float that is not negative: those order like integers. */
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

template <bool JOSEPH> static int launch(struct projection *a, const struct back_job &job, struct err *err)
{
	const size_t bytes = ((size_t)(job.padded + 3) / 4 * 4) * sizeof(float) + (size_t)job.n_groups * sizeof(struct back_group);
	const unsigned n = (unsigned)((size_t)a->n_views * (size_t)a->scan.n_v);
	int r = cuda_check(cudaFuncSetAttribute(back_kernel<JOSEPH>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes), a->dev,
			   "paths back", err);

	if (r < 0)
		return r;
	back_kernel<JOSEPH><<<dim3(n, (unsigned)((job.half + PATHS_PAIRS - 1) / PATHS_PAIRS)), BACK_THREADS, bytes,
			      cuda_state(a->dev)->stream>>>(job);
	return cuda_check(cudaGetLastError(), a->dev, "paths back", err);
}

int cuda_paths_back(struct projection *a, const float *y, bool add, float *x, struct err *err)
{
	const struct cuda_paths *p = a->paths;
	const struct grid *g = &a->grid;
	cudaStream_t stream = cuda_state(a->dev)->stream;
	size_t n_x = grid_size(g), n_y = (size_t)a->n_views * scan_view_size(&a->scan);
	struct back_job job = {};
	int r;

	job.path = p->path;
	job.step = p->step;
	job.group = p->group;
	job.group_at = p->group_at;
	job.inv_w = p->inv_w;
	job.y = y;
	job.x = x;
	job.slice = (float)g->h[2];
	job.n_groups = p->n_groups;
	job.padded = p->padded;
	job.n_u = a->scan.n_u;
	job.n_v = a->scan.n_v;
	job.nz = g->n[2];
	job.column = (int)grid_column(g);
	job.half = p->half;
	if (a->deterministic) {
		job.fixed = (unsigned long long *)cuda_state(a->dev)->scratch;
		job.largest = (const float *)(job.fixed + n_x);
		/* every bin at once, each with the longest way through a voxel */
		job.bound = (double)n_y * sqrt(g->h[0] * g->h[0] + g->h[1] * g->h[1] + g->h[2] * g->h[2]);
		r = cuda_check(cudaMemsetAsync(job.fixed, 0, n_x * sizeof(long long) + sizeof(float), stream), a->dev, "paths back", err);
		if (r < 0)
			return r;
		largest_kernel<<<CUDA_PARTIALS, CUDA_THREADS, 0, stream>>>(y, n_y, (int *)job.largest);
	} else if (!add && (r = cuda_check(cudaMemsetAsync(x, 0, n_x * sizeof(float), stream), a->dev, "paths back", err)) < 0) {
		return r;
	}
	r = a->model == PROJECTION_JOSEPH ? launch<true>(a, job, err) : launch<false>(a, job, err);
	if (r == 0 && a->deterministic) {
		unfix_kernel<<<cuda_blocks(n_x), CUDA_THREADS, 0, stream>>>((const long long *)job.fixed, n_x, job.largest, job.bound, add,
									   x);
		r = cuda_check(cudaGetLastError(), a->dev, "paths back", err);
	}
	return r;
}
