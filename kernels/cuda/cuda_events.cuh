/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of list mode on the CUDA device (kernels/events.h), one thread for an event. */
#ifndef TOMONODE_KERNELS_CUDA_EVENTS_CUH
#define TOMONODE_KERNELS_CUDA_EVENTS_CUH

#include <limits.h>

#include "kernels/cuda/cuda.cuh"
#include "kernels/events.h"

struct list_job {
	struct events_model model;
	const float *detectors;
	const float2 *table;
	const int4 *events;
	size_t n;
	const float *x;
	float *to;	/* back, ratio: the volume */
	const float *q; /* back */
	float *y;	/* forward: a_e x */
	bool quotient;	/* forward: the ratio instead of a_e x */
	float floor;
	unsigned long long *sums; /* back: in place of `to` */
	const float *largest;
	double bound; /* of sums: no sum exceeds this times *largest */
};

enum list_pass { LIST_FORWARD, LIST_BACK, LIST_RATIO };

/* A line and the floats from one voxel to the next. */
struct list_line {
	struct event_line l;
	int main, u, v, next_u, next_v, n_u, n_v;
	bool ends;
};

static __device__ __forceinline__ struct event load_event(const int4 *from)
{
	int4 bits = __ldg(from);
	struct event e;

	e.detector[0] = bits.x;
	e.detector[1] = bits.y;
	e.tof = bits.z;
	e.add = __int_as_float(bits.w);
	return e;
}

static __device__ __forceinline__ void set_strides(const struct grid &g, struct list_line *line)
{
	const int axis = line->l.axis, column = (int)grid_column(&g), row = g.n[0] * column;

	line->main = axis == 0 ? column : axis == 1 ? row : 1;
	line->u = axis == 0 ? row : column;
	line->v = axis == 2 ? row : 1;
	line->n_u = axis == 0 ? g.n[1] : g.n[0];
	line->n_v = axis == 2 ? g.n[1] : g.n[2];
	line->next_u = line->n_u > 1 ? line->u : 0;
	line->next_v = line->n_v > 1 ? line->v : 0;
	line->ends = axis != 2;
}

/* A sample: index of its first voxel; weights as in struct cpu_event_samples. */
struct list_sample {
	int at;
	float u0, u1, v0, v1;
};

static __device__ __forceinline__ struct list_sample sample_of(const struct events_model &model, const float2 *table,
							       const struct list_line &line, int j, float at)
{
	struct list_sample s;
	float w = line.l.length, t;
	int u, v, i;

	if (model.tof.n > 0) {
		t = (fabsf(fmaf(at, line.l.by, line.l.from)) - model.tof_from) * model.tof_scale;
		t = fminf(fmaxf(t, 0.0f), (float)EVENTS_TOF_STEPS);
		t -= event_whole(t, &i);
		w *= fmaf(t, table[i].y, table[i].x);
	}
	event_pair(fmaf(at, line.l.step[0], line.l.at[0]), line.l.base[0], line.n_u, false, &u, &s.u0, &s.u1);
	event_pair(fmaf(at, line.l.step[1], line.l.at[1]), line.l.base[1], line.n_v, line.ends, &v, &s.v0, &s.v1);
	s.u0 *= w;
	s.u1 *= w;
	s.at = (line.l.first + j) * line.main + u * line.u + v * line.v;
	return s;
}

static __device__ __forceinline__ float value_of(const float *x, const struct list_line &line, const struct list_sample &s)
{
	const float *at = x + s.at, *right = at + line.next_u;

	return fmaf(s.u0, fmaf(s.v0, __ldg(at), s.v1 * __ldg(at + line.next_v)),
		    s.u1 * fmaf(s.v0, __ldg(right), s.v1 * __ldg(right + line.next_v)));
}

/* x[at] += a, x[at + next] += b; `column`: next is 1 or 0, and quads of a column begin at multiples of 4. */
static __device__ __forceinline__ void add_pair(float *x, int at, int next, float a, float b, bool column)
{
#if __CUDA_ARCH__ >= 900
	const int r = at & 3;

	if (column && r < 3) {
		atomicAdd((float4 *)(x + at - r), make_float4(r == 0 ? a : 0,
							      r == 0   ? b
							      : r == 1 ? a
								       : 0,
							      r == 1   ? b
							      : r == 2 ? a
								       : 0,
							      r == 2 ? b : 0));
		return;
	}
#endif
	atomicAdd(x + at, a);
	if (b != 0)
		atomicAdd(x + at + next, b);
}

static __device__ __forceinline__ void add_fixed(unsigned long long *sums, int at, double value)
{
	atomicAdd(sums + at, (unsigned long long)__double2ll_rn(value));
}

template <bool FIXED>
static __device__ __forceinline__ void add_sample(const struct list_job &job, const struct list_line &line,
						  const struct list_sample &s, float q, double scale)
{
	const float a = q * s.u0, b = q * s.u1;

	if (FIXED) {
		add_fixed(job.sums, s.at, (double)(a * s.v0) * scale);
		add_fixed(job.sums, s.at + line.next_v, (double)(a * s.v1) * scale);
		add_fixed(job.sums, s.at + line.next_u, (double)(b * s.v0) * scale);
		add_fixed(job.sums, s.at + line.next_u + line.next_v, (double)(b * s.v1) * scale);
		return;
	}
	if (a != 0)
		add_pair(job.to, s.at, line.next_v, a * s.v0, a * s.v1, line.ends);
	if (b != 0)
		add_pair(job.to, s.at + line.next_u, line.next_v, b * s.v0, b * s.v1, line.ends);
}

template <int PASS, bool FIXED>
static __device__ __forceinline__ void do_event(const struct list_job &job, const float2 *table, size_t i, double scale)
{
	struct event e = {};
	struct list_line line;
	float sum = 0, q, at; /* at: number of the sample */
	int first, end;

	line.l.n = 0;
	if (i < job.n) {
		e = load_event(job.events + i);
		if (!event_line_make(&job.model, &e, job.detectors, &line.l))
			line.l.n = 0;
	}
	if (line.l.n == 0)
		line.l.axis = line.l.first = 0;
	set_strides(job.model.grid, &line);
	first = __reduce_min_sync(0xffffffff, line.l.n ? line.l.first : INT_MAX);
	end = __reduce_max_sync(0xffffffff, line.l.n ? line.l.first + line.l.n : 0);
	if (PASS != LIST_BACK) {
		at = (float)(first - line.l.first);
		for (int j = first - line.l.first; j < end - line.l.first; j++, at += 1)
			if ((unsigned)j < (unsigned)line.l.n)
				sum += value_of(job.x, line, sample_of(job.model, table, line, j, at));
		q = event_ratio(sum + e.add, job.floor);
	}
	if (PASS == LIST_FORWARD) {
		if (i < job.n)
			job.y[i] = job.quotient ? q : sum;
		return;
	}
	if (PASS == LIST_BACK)
		q = i < job.n ? job.q[i] : 0;
	at = (float)(first - line.l.first);
	for (int j = first - line.l.first; j < end - line.l.first; j++, at += 1)
		if ((unsigned)j < (unsigned)line.l.n)
			add_sample<FIXED>(job, line, sample_of(job.model, table, line, j, at), q, scale);
}

/* cuda_events_beams.cu */
int cuda_beam_planes(const struct device *dev, const struct events_model *m);
int cuda_beams(const struct device *dev, const struct list_job *job, const struct event_cells *cells, int planes, int pass,
	       struct err *err);

#endif
