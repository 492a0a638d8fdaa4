/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the event kernels of the CUDA device (kernels/cuda/cuda_paths_events.cu): a warp finds the events of a path's steps.
 * An event is the point where the rays of a group of planes pass from one slice to the next. */
#ifndef TOMONODE_KERNELS_CUDA_PATHS_EVENTS_CUH
#define TOMONODE_KERNELS_CUDA_PATHS_EVENTS_CUH

#include "kernels/cuda/cuda_paths.cuh"

#define WINDOW 31 /* pairs of slices processed together by lanes 0 to 30; lane 31 receives the values that pass out of them */
#define EVENT_GROUPS PATHS_GROUPS /* one bit of a mask for each */
#define EVENTS 192 /* largest number of events per batch; at least EVENT_GROUPS, so that the events of one step fit */
#define ALL 0xffffffffu

/* A group in the current path: the height zs = z + slope t of its first plane, in slices above base minus one half; the slice is
 * round(zs). The group's bins are contiguous and start at `at`. */
struct __align__(8) event_group
{
	float slope, z, inv, stretch; /* inv = 1 / slope; 0 if the slope is 0 */
	int base, at, n, plane, stride;
};

#define MAGIC 12582912.0f /* 1.5 2^23: adding it rounds to an integer, which is then in the low bits */

static __device__ __forceinline__ int whole(float zs)
{
	return __float_as_int(zs + MAGIC) - 0x4b400000;
}

/* The rays of a group pass a face between slices in a step from t0 to t1. In lane h the bin of the even slice is the group's bin
 * h + first; that of the odd slice is the same bin, or the next one if `odd_next` is 1. */
struct __align__(16) slice_event
{
	float sign; /* +1: planes enter even slices (and leave odd ones); -1: they leave even slices */
	float t;    /* forward: distance from t0 to the event, mm; back: sign times the rest of the step after the event, mm */
	int bin;    /* (index of bin `first` in shared memory) * 2 + odd_next */
	unsigned lanes; /* lanes whose bin h + first exists */
};

template <bool BACK>
static __device__ __forceinline__ struct slice_event event_of(const struct event_group &g, float t0, float t1, int window)
{
	const int down = g.slope < 0;
	float zs = fmaf(g.slope, t0, g.z), b = zs + MAGIC - MAGIC, t = ((b - g.z) + (down ? -0.5f : 0.5f)) * g.inv;
	int s = whole(zs) + g.base - 2 * window, q = down - s, first = q >> 1;
	int low = min(max(-first, 0), 32), high = min(max(g.n - first, 0), 32);
	struct slice_event e;

	t = fminf(fmaxf(t, t0), t1);
	e.sign = s & 1 ? 1.0f : -1.0f;
	e.t = BACK ? e.sign * (t1 - t) : t - t0;
	e.bin = (g.at + first) * 2 + (q & 1);
	e.lanes = (unsigned)((1ull << high) - (1ull << low)); /* high >= low: n > 0 */
	return e;
}

/* Return a mask of the groups that pass a face in this lane's step. */
static __device__ __forceinline__ unsigned long long events_in(const struct event_group *group, int n, float t0, float t1)
{
	unsigned mask[2] = {};

#pragma unroll
	for (int half = 0; half < 2; half++)
#pragma unroll 8
		for (int i = 32 * half; i < min(n, 32 * half + 32); i++) {
			float2 line = *(const float2 *)(group + i); /* slope, z */

			if (fmaf(line.x, t0, line.y) + MAGIC != fmaf(line.x, t1, line.y) + MAGIC)
				mask[half] |= 1u << (i - 32 * half);
		}
	return (unsigned long long)mask[1] << 32 | mask[0];
}

/* Return the sum of n over the lanes up to this one. */
static __device__ __forceinline__ int sum_to_lane(int n, int lane)
{
#pragma unroll
	for (int d = 1; d < 32; d *= 2) {
		int other = __shfl_up_sync(ALL, n, d);

		n += lane >= d ? other : 0;
	}
	return n;
}

struct walk {
	const struct path_step *step;
	struct event_group *group; /* EVENT_GROUPS elements */
	struct slice_event *event; /* EVENTS elements */
	float *bins;
	int lane, n_steps, n_groups, window;
	float begin, end; /* t of the path's beginning and end */
};

/* The next steps, one per lane, and all their events, in order; as many steps as have at most EVENTS events. */
struct batch {
	int n; /* steps */
	int column, events;
	float len;
};

template <bool BACK> static __device__ __forceinline__ struct batch batch_of(const struct walk &w, int k0)
{
	struct batch b;
	int k = min(k0 + w.lane, w.n_steps - 1), up_to, all;
	struct path_step step = w.step[k];
	float t1 = step.t, t0 = k ? w.step[k - 1].t : w.begin;
	unsigned long long mask = k0 + w.lane < w.n_steps ? events_in(w.group, w.n_groups, t0, t1) : 0;

	b.column = step.column;
	b.len = t1 - t0;
	b.events = __popcll(mask);
	up_to = sum_to_lane(b.events, w.lane);
	b.n = min(w.n_steps - k0, __popc(__ballot_sync(ALL, up_to <= EVENTS)));
	all = __shfl_sync(ALL, up_to, b.n - 1);
	__syncwarp(); /* all lanes have read the events of the last batch */
	if (w.lane < b.n)
		for (int i = up_to - b.events; mask;
		     mask &= mask - 1, i++) /* first store which group and lane they belong to ... */
			w.event[i].bin = w.lane << 8 | (__ffsll((long long)mask) - 1);
	__syncwarp();
	for (int i = w.lane; i - w.lane < all; i += 32) { /* ... then compute all their members, one event per lane */
		int which = i < all ? w.event[i].bin : 0;
		float from = __shfl_sync(ALL, t0, which >> 8), to = __shfl_sync(ALL, t1, which >> 8);

		if (i < all)
			w.event[i] = event_of<BACK>(w.group[which & 255], from, to, w.window);
	}
	__syncwarp();
	return b;
}

/* Find the slices of a group's planes at t: return whether they are odd; the plane of lane h has bin h + *ret_first. */
static __device__ __forceinline__ bool planes_at(const struct event_group &g, float t, int window, int *ret_first)
{
	int s = whole(fmaf(g.slope, t, g.z)) + g.base - 2 * window;

	*ret_first = -(s >> 1);
	return s & 1;
}

#endif
