/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of the volume in shared memory, for cuda_events_beams.cu: copied from it, added to it, and the samples of lines in
 * them.
 *
 * A window has, in one plane, a few neighbouring columns with all of z: 16 with time of flight, 24 without. A column has a quad
 * of floats below the volume and one above, so that a sample needs no case for the ends: there, values are 0 and sums are not
 * used. Across the axis a position is clamped to the outermost centres. event_whole() may return the whole number below such a
 * position, so a window may have one column beside the volume on either side; it is not copied, and the weight of its sample is
 * 0. */
#ifndef TOMONODE_KERNELS_CUDA_EVENTS_WINDOW_CUH
#define TOMONODE_KERNELS_CUDA_EVENTS_WINDOW_CUH

#include <cuda_pipeline.h>

#include "kernels/cuda/cuda_events.cuh"

#define BEAM_THREADS 256
#define BEAM_EVENTS 4 /* of a thread */
#define BEAM_BLOCKS 3 /* per multiprocessor */
#define BEAM_PLANES 2 /* largest number of planes in a window */
#define BEAM_LIST (BEAM_THREADS * BEAM_EVENTS)
#define BEAM_RUNS 16	  /* if a block's events are of more beams, they are not sorted */
#define BEAM_LEAST 48	  /* events of a beam, or of a group of it */
#define BEAM_ORDERS 5	  /* binary orders of values in a group */
#define BEAM_LONGEST 1024 /* voxels across the volume */
#define BEAM_TABLE (EVENTS_TOF_STEPS + 2)

/* What the threads of a block share. A run: the events of one beam that follow each other in a block. */
struct beam_block {
	int id[BEAM_LIST]; /* beam of each event; -1: none; -2: computed */
	int start[BEAM_RUNS], n_runs;
	int first, end;		    /* planes of a run */
	float sum, largest;	    /* |q| length of a group */
	short column[BEAM_LONGEST]; /* first column of each plane's window */
};

/* The line of an event in a beam; as struct event_line. */
struct beam_line {
	float at[2], step[2], length;
	float from, by; /* in steps of the table */
	int base[2], first, n;
	float sum; /* forward: the sum; then q, for sums in steps of 1/scale */
};

struct beam_window {
	int main, u, n_u, n_v; /* floats from one plane, or column, to the next in the volume; numbers of columns and voxels */
	int planes, stride;    /* of a window; floats of a column */
	unsigned per_quad;     /* 2^32 / quads of a column; 0 for one quad, which for_quads() cannot divide by */
	int first, end;	       /* planes of the warp's events */
	float tof_from, last;  /* of the table, in its steps; n_u - 1 */
};

static __host__ __device__ constexpr int columns_of(bool tof)
{
	return tof ? 16 : 24;
}

/* Call each(place in the window, place in the volume, voxel) for the quads of a window's columns that are in the volume. */
template <bool TOF, class F>
static __device__ __forceinline__ void for_quads(const struct beam_window &w, const struct beam_block &b, int first,
						 const F &each)
{
	const unsigned quads = w.stride / 4 - 2, all = (min(b.end, first + w.planes) - first) * columns_of(TOF) * quads;

	for (unsigned i = threadIdx.x; i < all; i += BEAM_THREADS) {
		const unsigned c = __umulhi(i, w.per_quad), quad = i - c * quads, plane = c / columns_of(TOF),
			       column = c % columns_of(TOF);
		const int at = b.column[first + plane] + column;

		if ((unsigned)at < (unsigned)w.n_u)
			each(c * w.stride + 4 * quad + 4, (first + (int)plane) * w.main + at * w.u + 4 * (int)quad,
			     4 * (int)quad);
	}
}

template <bool TOF>
static __device__ __forceinline__ void load_window(const struct beam_window &w, const struct beam_block &b, const float *x,
						   int first, float *window)
{
	for_quads<TOF>(w, b, first,
		       [&](int to, int from, int) { __pipeline_memcpy_async(window + to, x + from, sizeof(float4)); });
	__pipeline_commit();
}

static __device__ __forceinline__ void add_quad(float *x, float4 v)
{
#if __CUDA_ARCH__ >= 900
	atomicAdd((float4 *)x, v);
#else
	atomicAdd(x, v.x);
	atomicAdd(x + 1, v.y);
	atomicAdd(x + 2, v.z);
	atomicAdd(x + 3, v.w);
#endif
}

/* Add a window's sums to the volume and set them to 0. */
template <bool TOF>
static __device__ __forceinline__ void flush_window(const struct beam_window &w, const struct beam_block &b, float *x, int first,
						    float *window, float step)
{
	for_quads<TOF>(w, b, first, [&](int from, int to, int) {
		const int4 v = *(const int4 *)(window + from);

		if (v.x | v.y | v.z | v.w) {
			add_quad(x + to, make_float4(step * (float)v.x, step * (float)v.y, step * (float)v.z, step * (float)v.w));
			*(int4 *)(window + from) = make_int4(0, 0, 0, 0);
		}
	});
}

template <bool TOF> static __device__ __forceinline__ void zero_windows(const struct beam_window &w, float *windows)
{
	for (int i = threadIdx.x; i < w.planes * columns_of(TOF) * w.stride / 2; i += BEAM_THREADS)
		((float4 *)windows)[i] = make_float4(0, 0, 0, 0);
	__syncthreads();
}

struct beam_sample {
	float u0, u1, v0, v1;
	int at; /* place in the plane's window */
};

/* Return the nearest whole number; |v| <= 2^22. */
static __device__ __forceinline__ int nearest_whole(float v)
{
	return __float_as_int(v + 12582912) - 0x4b400000;
}

template <bool TOF>
static __device__ __forceinline__ struct beam_sample beam_sample(const float2 *table, const struct beam_window &w,
								 const struct beam_line &l, int j, int column)
{
	const float at = (float)j;
	float weight = l.length, t;
	struct beam_sample s;
	int i, u, v;

	if (TOF) {
		t = fminf(fmaxf(fabsf(fmaf(at, l.by, l.from)) - w.tof_from, 0.0f), (float)EVENTS_TOF_STEPS);
		t -= event_whole(t, &i);
		weight *= fmaf(t, table[i].y, table[i].x);
	}
	t = fmaf(at, l.step[0], l.at[0]);
	t = fminf(fmaxf(t, (float)-l.base[0]), w.last - (float)l.base[0]);
	t -= event_whole(t, &u);
	s.u1 = weight * t;
	s.u0 = weight - s.u1;
	t = fmaf(at, l.step[1], l.at[1]);
	t -= event_whole(t, &v);
	v += l.base[1];
	s.v0 = 1 - t;
	s.v1 = v < w.n_v - 1 ? t : 0;
	s.at = min((unsigned)(u + l.base[0] - column), (unsigned)(columns_of(TOF) - 2)) * w.stride + max(v, -1) + 4;
	return s;
}

/* Call each(event, sample) for the warp's samples in planes first .. first + planes - 1. */
template <bool TOF, class F>
static __device__ __forceinline__ void for_samples(const float2 *table, const struct beam_window &w, const struct beam_block &b,
						   struct beam_line *lines, int first, const F &each)
{
	const int from = max(first, w.first), end = min(first + w.planes, w.end);

	for (int plane = from; plane < end; plane++) {
		const int column = b.column[plane], place = (plane - first) * columns_of(TOF) * w.stride;

#pragma unroll
		for (int k = 0; k < BEAM_EVENTS; k++) {
			const int j = plane - lines[k].first;

			if ((unsigned)j < (unsigned)lines[k].n)
				each(lines[k], beam_sample<TOF>(table, w, lines[k], j, column), place);
		}
	}
}

#endif
