/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_paths_events.cu - PROJECTION_PATHS: a warp processes a path, each of its lanes a pair of slices. A ray remains in a slice
 * for many steps. So the bin of a ray is not processed in each step, but only where the ray passes from one slice to the next.
 * This is an event; it is the same for all planes of a group, because these are two slices apart. Let c(t) be the voxel column of
 * the path at t:
 *
 * - forward: each lane computes F(t) = integral of c from the path's beginning to t, for its slices. A plane whose ray passes
 *   from slice s to s' at t adds F(t)[s] - F(t)[s'] to its bin; a plane whose ray is in s at the path's end adds F(end)[s].
 * - back: each lane computes S, the sum of the bins of all planes whose rays are in its slice at t. S times the step's length is
 *   added to the step's column. A plane whose ray passes from s to s' at t subtracts its bin from S[s] and adds it to S[s'], and
 *   corrects the values of the current step for its rest after t.
 * Each operation of one pass is the transpose of one of the other. Lane h processes slices 2 h and 2 h + 1; an event involves one
 * even and one odd slice. The events of up to 32 steps are found first, one lane per step. Only one thread adds to a bin, in a
 * fixed order; the back pass adds to the volume with atomics or, for bitwise repeatable results, in 64-bit fixed-point sums. */
#include "kernels/cuda/cuda_paths_events.cuh"

#define EVENT_WARPS 4

struct event_job {
	const struct path *path;
	const struct path_step *step;
	const struct path_lane *group;
	const float *inv_w;
	const float *x, *y; /* forward, back: the input */
	float *ret_x, *ret_y;
	unsigned long long *fixed; /* back: used in place of ret_x */
	const float *largest;
	double bound;					     /* fixed: no sum exceeds this times *largest */
	float slice;					     /* mm */
	int n_groups, n_bins, n_u, n_v, n_views, nz, column; /* n_bins: largest number of bins of EVENT_GROUPS groups */
	bool add;
};

static __device__ __forceinline__ void forward_window(const struct event_job &job, const struct walk &w)
{
	const int z = 2 * (w.window + w.lane);
	const bool has_even = w.lane < WINDOW && z < job.nz, has_odd = w.lane < WINDOW && z + 1 < job.nz;
	const unsigned me = 1u << w.lane;
	const float *x0 = job.x + z;
	float even = 0, odd = 0; /* F */

	for (int k0 = 0; k0 < w.n_steps;) {
		struct batch b = batch_of<false>(w, k0);
		const struct slice_event *event = w.event;
		const float *x = x0 + (size_t)__shfl_sync(ALL, b.column, 0) * job.column;
		float next_even = has_even ? __ldg(x) : 0, next_odd = has_odd ? __ldg(x + 1) : 0;

		for (int s = 0; s < b.n; s++) {
			const struct slice_event *end = event + __shfl_sync(ALL, b.events, s);
			float step = __shfl_sync(ALL, b.len, s), ce = next_even, co = next_odd;

			x = x0 + (size_t)__shfl_sync(ALL, b.column, min(s + 1, b.n - 1)) * job.column;
			next_even = has_even ? __ldg(x) : 0;
			next_odd = has_odd ? __ldg(x + 1) : 0;
			for (; event < end; event++) {
				struct slice_event e = *event;
				float fe = fmaf(e.t, ce, even), fo = fmaf(e.t, co, odd);

				if (e.bin & 1) { /* the odd slice of this bin is in the lane before; that of lane 0 is in another
						    window */
					fo = __shfl_up_sync(ALL, fo, 1);
					fo = w.lane ? fo : 0;
				}
				if (e.lanes & me) {
					float *bin = w.bins + (e.bin >> 1) + w.lane;

					*bin = fmaf(e.sign, fo - fe, *bin);
				}
				__syncwarp();
			}
			even = fmaf(step, ce, even);
			odd = fmaf(step, co, odd);
		}
		k0 += b.n;
	}
	for (int i = 0; i < w.n_groups; i++) {
		const struct event_group &g = w.group[i];
		int first;
		bool odd_ones = planes_at(g, w.end, w.window, &first);

		if (w.lane < WINDOW && (unsigned)(w.lane + first) < (unsigned)g.n)
			w.bins[g.at + w.lane + first] += odd_ones ? odd : even;
	}
	__syncwarp();
}

static __device__ __forceinline__ void add_pair(const struct event_job &job, size_t at, float even, float odd, bool has_odd,
						double scale)
{
	if (job.fixed) {
		atomicAdd(job.fixed + at, (unsigned long long)__double2ll_rn((double)even * scale));
		if (has_odd)
			atomicAdd(job.fixed + at + 1, (unsigned long long)__double2ll_rn((double)odd * scale));
		return;
	}
#if __CUDA_ARCH__ >= 900
	atomicAdd((float2 *)(job.ret_x + at), make_float2(even, has_odd ? odd : 0));
#else
	atomicAdd(job.ret_x + at, even);
	if (has_odd)
		atomicAdd(job.ret_x + at + 1, odd);
#endif
}

static __device__ __forceinline__ void back_window(const struct event_job &job, const struct walk &w, double scale)
{
	const int z = 2 * (w.window + w.lane);
	const bool has_even = w.lane < WINDOW && z < job.nz, has_odd = w.lane < WINDOW && z + 1 < job.nz;
	const unsigned me = 1u << w.lane;
	float even = 0, odd = 0; /* S */

	for (int i = 0; i < w.n_groups; i++) {
		const struct event_group &g = w.group[i];
		int first;
		bool odd_ones = planes_at(g, w.begin, w.window, &first);
		float bin = (unsigned)(w.lane + first) < (unsigned)g.n ? w.bins[g.at + w.lane + first] : 0;

		even += odd_ones ? 0 : bin;
		odd += odd_ones ? bin : 0;
	}
	for (int k0 = 0; k0 < w.n_steps;) {
		struct batch b = batch_of<true>(w, k0);
		const struct slice_event *event = w.event;

		for (int s = 0; s < b.n; s++) {
			const struct slice_event *end = event + __shfl_sync(ALL, b.events, s);
			size_t at = (size_t)__shfl_sync(ALL, b.column, s) * job.column + z;
			float step = __shfl_sync(ALL, b.len, s), ce = step * even, co = step * odd;

			for (; event < end; event++) {
				struct slice_event e = *event;
				const float *bin = w.bins + (e.bin >> 1) + w.lane;
				float in = e.lanes & me ? bin[0] : 0, out = in;

				if (e.bin & 1)
					out = e.lanes >> 1 & me ? bin[1] : 0;
				even = fmaf(e.sign, in, even);
				odd = fmaf(-e.sign, out, odd);
				ce = fmaf(e.t, in, ce);
				co = fmaf(-e.t, out, co);
			}
			if (has_even)
				add_pair(job, at, ce, co, has_odd, scale);
		}
		k0 += b.n;
	}
}

/* Compute the parameters of the groups from index g0 on; their bins are contiguous. Return the number of bins. */
static __device__ int make_groups(const struct event_job &job, int v, int g0, const struct walk &w)
{
	int at = 0;

	for (int i = w.lane; i - w.lane < w.n_groups; i += 32) {
		struct path_lane lane = {};
		int up_to;

		if (i < w.n_groups)
			lane = job.group[g0 + i];
		up_to = at + sum_to_lane(lane.n, w.lane);
		if (i < w.n_groups) {
			struct path_ray ray = path_ray_of(lane, job.inv_w[v], job.slice);

			w.group[i] = (struct event_group){ray.slope,   ray.z,	   ray.slope != 0 ? 1 / ray.slope : 0,
							  ray.stretch, lane.base,  up_to - lane.n,
							  lane.n,      lane.plane, lane.stride};
		}
		at = __shfl_sync(ALL, up_to, 31);
	}
	__syncwarp();
	return at;
}

template <bool BACK>
static __global__ void __launch_bounds__(32 * EVENT_WARPS, 8) event_kernel(const __grid_constant__ struct event_job job)
{
	extern __shared__ __align__(16) float shared[];
	const int warp = threadIdx.x / 32, n_groups_max = min(job.n_groups, EVENT_GROUPS);
	const size_t per_warp = job.n_bins + (n_groups_max * sizeof(struct event_group) + 15) / 16 * 4 +
				EVENTS * sizeof(struct slice_event) / sizeof(float);
	const size_t at = (size_t)blockIdx.x * (blockDim.x / 32) + warp;
	const int v = (int)(at % job.n_v);
	const double scale = BACK && job.fixed ? 0x1p62 / ((double)*job.largest * job.bound) : 0;
	struct path path;
	struct walk w;

	if (at >= (size_t)job.n_views * job.n_v)
		return;
	path = job.path[at];
	if (path.n == 0 && BACK)
		return;
	w.bins = shared + warp * per_warp;
	w.event = (struct slice_event *)(w.bins + job.n_bins);
	w.group = (struct event_group *)(w.event + EVENTS);
	w.lane = threadIdx.x % 32;
	w.step = job.step + path.at;
	w.n_steps = path.n;
	w.begin = path.t;
	w.end = path.n ? w.step[path.n - 1].t : 0;
	for (int g0 = 0; g0 < job.n_groups; g0 += EVENT_GROUPS) {
		int n_bins;

		w.n_groups = min(EVENT_GROUPS, job.n_groups - g0);
		__syncwarp();
		n_bins = make_groups(job, v, g0, w);
		for (int u = w.lane; !BACK && u < n_bins; u += 32)
			w.bins[u] = 0;
		for (int i = 0; BACK && i < w.n_groups; i++)
			for (int j = w.lane; j < w.group[i].n; j += 32)
				w.bins[w.group[i].at + j] =
					job.y[at * job.n_u + w.group[i].plane + j * w.group[i].stride] * w.group[i].stretch;
		__syncwarp();
		for (w.window = 0; path.n && 2 * w.window < job.nz; w.window += WINDOW)
			if (BACK)
				back_window(job, w, scale);
			else
				forward_window(job, w);
		for (int i = 0; !BACK && i < w.n_groups; i++)
			for (int j = w.lane; j < w.group[i].n; j += 32) {
				float *y = job.ret_y + at * job.n_u + w.group[i].plane + j * w.group[i].stride;

				*y = (job.add ? *y : 0) + w.bins[w.group[i].at + j] * w.group[i].stretch;
			}
	}
}

static void fill_job(const struct projection *a, struct event_job *job)
{
	const struct cuda_paths *p = a->paths;

	job->path = p->path;
	job->step = p->step;
	job->group = p->group;
	job->inv_w = p->inv_w;
	job->slice = (float)a->grid.h[2];
	job->n_groups = p->n_groups;
	job->n_bins = p->n_bins;
	job->n_u = a->scan.n_u;
	job->n_v = a->scan.n_v;
	job->n_views = a->n_views;
	job->nz = a->grid.n[2];
	job->column = (int)grid_column(&a->grid);
}

template <bool BACK> static int launch(struct projection *a, const struct event_job &job, struct err *err)
{
	const int groups = job.n_groups < EVENT_GROUPS ? job.n_groups : EVENT_GROUPS;
	const size_t per_warp = (size_t)job.n_bins * sizeof(float) +
				((size_t)groups * sizeof(struct event_group) + 15) / 16 * 16 +
				EVENTS * sizeof(struct slice_event);
	const size_t n = (size_t)a->n_views * (size_t)a->scan.n_v;
	size_t warps = EVENT_WARPS;
	int r;

	while (warps > 1 && warps * per_warp > 96 * 1024)
		warps /= 2;
	r = cuda_check(
		cudaFuncSetAttribute(event_kernel<BACK>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(warps * per_warp)),
		a->dev, "paths", err);
	if (r < 0)
		return r;
	event_kernel<BACK>
		<<<(unsigned)((n + warps - 1) / warps), (unsigned)(32 * warps), warps * per_warp, cuda_state(a->dev)->stream>>>(
			job);
	return cuda_check(cudaGetLastError(), a->dev, BACK ? "paths back" : "paths forward", err);
}

int cuda_paths_events_forward(struct projection *a, const float *x, bool add, float *y, struct err *err)
{
	struct event_job job = {};

	fill_job(a, &job);
	job.x = x;
	job.ret_y = y;
	job.add = add;
	return launch<false>(a, job, err);
}

int cuda_paths_events_back(struct projection *a, const float *y, const struct cuda_fixed *fixed, float *x, struct err *err)
{
	struct event_job job = {};

	fill_job(a, &job);
	job.y = y;
	job.ret_x = x;
	if (fixed) {
		job.fixed = fixed->sums;
		job.largest = fixed->largest;
		job.bound = fixed->bound;
	}
	return launch<true>(a, job, err);
}
