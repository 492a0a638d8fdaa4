/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the CPU device: the matrix of list mode (kernels/events.h) and its inner loops.
 *
 * Back: each thread owns a range of rows of the volume (y) and passes over all events in their order; a voxel adds its terms in
 * this order, so the result does not depend on the number of threads. */
#ifndef TOMONODE_KERNELS_CPU_EVENTS_H
#define TOMONODE_KERNELS_CPU_EVENTS_H

#include "kernels/cpu/cpu.h"
#include "kernels/events.h"

struct events {
	struct device *dev;
	struct events_model model;
	struct event_cells cells;
	struct buf detectors;
	size_t batch;
	int most; /* largest number of samples of a line */
	float *table;
	/* events_sort(): */
	struct event *sorted;
	uint32_t *cell, *count;
	/* events_back(), events_ratio(): of CPU_EVENTS events */
	float *q;
	int32_t *rows;	  /* first and last row of each event */
	size_t *row_load; /* for each row of the volume: events that have samples there */
	float *samples;	  /* struct cpu_event_samples of each thread */
};

#define CPU_EVENTS 65536 /* events of one back pass */

/* The samples of a line, arrays of `most` elements: voxels at, at + next_v, at + next_u, at + next_u + next_v, and factors of
 * their weights. */
struct cpu_event_samples {
	int32_t *at;
	float *u0, *u1; /* first and second voxel across, times length and weight of time of flight */
	float *v0, *v1;
};
#define CPU_EVENT_ARRAYS 5

struct cpu_event_strides {
	int32_t main, u, v;	/* floats from one voxel to the next along the principal axis and across it */
	int32_t next_u, next_v; /* the same; 0 if there is only one voxel */
	int n_u, n_v;
	bool ends; /* the value above and below the volume is 0: v is along z */
};

struct cpu_event_loops {
	/* Compute the samples of a line. */
	void (*samples)(const struct events_model *m, const float *table, const struct cpu_event_strides *s,
			const struct event_line *line, const struct cpu_event_samples *ret);
	float (*dot)(const struct cpu_event_samples *sample, int n, const struct cpu_event_strides *s,
		     const float *x); /* a_e x */
};
extern const struct cpu_event_loops baseline_events, avx2_events, avx512_events;

#endif
