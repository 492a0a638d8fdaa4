/* cuda_paths_forward.cu - line integrals of SCAN_PARALLEL: a block for each path, a thread for each few planes.
 *
 * The volume is first laid out anew with even and odd slices apart and zeros around them. A block then brings the columns along its
 * path into shared memory, a chunk of steps at a time and the next chunk while it works on this one; every thread walks the chunk with
 * PATHS_PLANES planes of one group, which share the split between slices. Neighbouring planes take neighbouring slices of one parity, so
 * the lanes of a warp never collide on a bank while a row has at most 32 slices of a parity.
 */
#include <cuda_pipeline.h>

#include "kernels/cuda_paths.cuh"

#define CHUNK 48	/* steps */
#define THREADS_MAX 512 /* planes beyond are left to further blocks */

struct forward_job {
	const struct path *path;
	const struct path_step *step;
	const struct path_lane *lane;
	const float *inv_w, *apart;
	float *y;
	float slice; /* mm */
	int n_lanes, n_u, n_v, half, pitch;
	bool add;
};

static __global__ void __launch_bounds__(CUDA_THREADS)
	apart_kernel(const float *x, size_t n_columns, int nz, int column, int pitch, float *apart)
{
	size_t n = n_columns * 2 * (size_t)pitch;

	for (size_t i = cuda_index(); i < n; i += (size_t)gridDim.x * blockDim.x) {
		int at = (int)(i % (2 * (size_t)pitch)), parity = at >= pitch, z = 2 * (at - parity * pitch - 1) + parity;

		apart[i] = z >= 0 && z < nz ? x[i / (2 * (size_t)pitch) * (size_t)column + (size_t)z] : 0;
	}
}

/* Rows of a chunk and the ends of its steps: t[0] is where the first begins. */
template <bool JOSEPH>
static __device__ __forceinline__ void bring(const struct forward_job &job, const struct path &path, int k0, float *rows, float *t)
{
	const int n = min(CHUNK, path.n - k0), quads = 2 * job.pitch / 4;
	const struct path_step *step = job.step + path.at + k0;

	for (int i = threadIdx.x; i < n * quads; i += blockDim.x) {
		int k = i / quads, q = i - k * quads;
		const float *from = job.apart + (size_t)step[k].column * 2 * job.pitch + 4 * q;

		if (JOSEPH) {
			float w = step[k].t, u = 1 - w;
			float4 a = *(const float4 *)from, b = *(const float4 *)(from + (ptrdiff_t)path.neighbour * 2 * job.pitch);

			*(float4 *)(rows + 4 * i) = make_float4(fmaf(w, b.x, u * a.x), fmaf(w, b.y, u * a.y), fmaf(w, b.z, u * a.z),
								fmaf(w, b.w, u * a.w));
		} else {
			__pipeline_memcpy_async(rows + 4 * i, from, 16);
		}
	}
	if (!JOSEPH)
		for (int k = threadIdx.x; k <= n; k += blockDim.x)
			t[k] = k ? step[k - 1].t : k0 ? step[-1].t : path.t;
	__pipeline_commit();
}

template <bool JOSEPH, bool LEAVES>
static __global__ void __launch_bounds__(THREADS_MAX) forward_kernel(const __grid_constant__ struct forward_job job)
{
	extern __shared__ float shared[];
	const int rows_size = CHUNK * 2 * job.pitch + PATHS_PLANES;
	const int lane_at = blockIdx.y * blockDim.x + threadIdx.x;
	const struct path path = job.path[blockIdx.x];
	const int v = (int)(blockIdx.x % job.n_v);
	const float step_length = fabsf(path.dt);
	struct path_lane lane = {};
	struct path_ray ray = {};
	float sum[PATHS_PLANES] = {};

	if (lane_at < job.n_lanes) {
		lane = job.lane[lane_at];
		ray = path_ray_of(lane, job.inv_w[v], JOSEPH, step_length, job.slice);
	}
	if (path.n)
		bring<JOSEPH>(job, path, 0, shared, shared + rows_size);
	for (int k0 = 0, side = 0; k0 < path.n; k0 += CHUNK, side ^= 1) {
		float *rows = shared + side * (rows_size + CHUNK + 4), *t = rows + rows_size;
		const int n = min(CHUNK, path.n - k0);
		/* number h of either parity; the zero before the first is at 0 */
		const float *even = rows + lane.base / 2 + 1, *odd = even + job.pitch - 1;
		float before;

		if (k0 + CHUNK < path.n) {
			float *next = shared + (side ^ 1) * (rows_size + CHUNK + 4);

			bring<JOSEPH>(job, path, k0 + CHUNK, next, next + rows_size);
			__pipeline_wait_prior(1);
		} else {
			__pipeline_wait_prior(0);
		}
		__syncthreads();
		before = t[0];
		if (lane.n)
			for (int k = 0; k < n; k++, even += 2 * job.pitch, odd += 2 * job.pitch) {
				float end = JOSEPH ? 0 : t[k + 1], len = JOSEPH ? step_length : end - before, we, wo;
				float at = JOSEPH ? fmaf((float)(k0 + k), path.dt, path.t) : ray.high ? end : before;
				int h, par;

				path_split(ray, at, len, &h, &par, &we, &wo);
				before = end;
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
		__syncthreads();
	}
#pragma unroll
	for (int j = 0; j < PATHS_PLANES; j++)
		if (j < lane.n) {
			float *y = job.y + (size_t)blockIdx.x * job.n_u + lane.plane + j * lane.stride;

			*y = (job.add ? *y : 0) + sum[j] * ray.stretch;
		}
}

template <bool JOSEPH, bool LEAVES> static int launch(struct projection *a, const struct forward_job &job, struct err *err)
{
	const int blocks = (job.n_lanes + THREADS_MAX - 1) / THREADS_MAX, threads = ((job.n_lanes + blocks - 1) / blocks + 31) / 32 * 32;
	const size_t bytes = 2 * (size_t)(CHUNK * 2 * job.pitch + PATHS_PLANES + CHUNK + 4) * sizeof(float);
	const unsigned n = (unsigned)((size_t)a->n_views * (size_t)a->scan.n_v);
	int r = cuda_check(cudaFuncSetAttribute(forward_kernel<JOSEPH, LEAVES>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
			   a->dev, "paths forward", err);

	if (r < 0)
		return r;
	forward_kernel<JOSEPH, LEAVES><<<dim3(n, (unsigned)blocks), (unsigned)threads, bytes, cuda_state(a->dev)->stream>>>(job);
	return cuda_check(cudaGetLastError(), a->dev, "paths forward", err);
}

int cuda_paths_forward(struct projection *a, const float *x, bool add, float *y, struct err *err)
{
	const struct cuda_paths *p = a->paths;
	const struct grid *g = &a->grid;
	size_t columns = (size_t)g->n[0] * (size_t)g->n[1];
	float *apart = (float *)cuda_state(a->dev)->scratch;
	struct forward_job job = {};
	bool joseph = a->model == PROJECTION_JOSEPH;

	apart_kernel<<<cuda_blocks(columns * 2 * (size_t)p->pitch), CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(
		x, columns, g->n[2], (int)grid_column(g), p->pitch, apart);
	job.path = p->path;
	job.step = p->step;
	job.lane = p->lane;
	job.inv_w = p->inv_w;
	job.apart = apart;
	job.y = y;
	job.slice = (float)g->h[2];
	job.n_lanes = p->n_lanes;
	job.n_u = a->scan.n_u;
	job.n_v = a->scan.n_v;
	job.half = p->half;
	job.pitch = p->pitch;
	job.add = add;
	if (joseph)
		return p->leaves ? launch<true, true>(a, job, err) : launch<true, false>(a, job, err);
	return p->leaves ? launch<false, true>(a, job, err) : launch<false, false>(a, job, err);
}
