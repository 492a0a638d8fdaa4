/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_tof.c - time of flight along the transaxial paths on the CPU: the table of weights, and the runs of a block. */
#include "kernels/cpu/cpu_tof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Shape of the table. Row i has the weights of a point whose distribution ends i / per_bin bins above the lower edge of the
 * window's last bin. If bins are wider than the distribution, the weights do not change after the position where all of it is in
 * the last bin. */
struct shape {
	int window, row;
	double per_bin;
	int last; /* the last row that differs from the one before */
};

static struct shape shape_of(const struct scan_tof *tof)
{
	double bin = tof->width / tof->sigma, most = 2 * TOF_CUT / bin;
	int window = (int)ceil(most) + 1;
	double per_bin = ceil(bin * TOF_TABLE_STEPS);

	return (struct shape){window, (window + 7) / 8 * 8, per_bin, (int)ceil(fmin(most, 1) * per_bin)};
}

/* One row more than the last one, because the row after a position is read too. */
static size_t table_floats(const struct shape *s)
{
	return ((size_t)s->last + 2) * (size_t)s->row;
}

size_t cpu_tof_bytes(const struct scan_tof *tof)
{
	struct shape s;

	if (tof->n == 0)
		return 0;
	s = shape_of(tof);
	return table_floats(&s) * sizeof(float);
}

size_t cpu_tof_scratch(const struct scan_tof *tof)
{
	return tof->n == 0 ? 0 : 2 * (CPU_PATH_BLOCK + 16) + CPU_PATH_BLOCK * (size_t)shape_of(tof).row + CPU_TOF_BINS;
}

int cpu_tof_create(const struct scan_tof *tof, struct cpu_tof *ret)
{
	struct shape s;

	if (tof->n == 0)
		return 0;
	s = shape_of(tof);
	*ret = (struct cpu_tof){.n = tof->n,
				.window = s.window,
				.row = s.row,
				.per_mm = 1 / tof->width,
				.offset = TOF_CUT * tof->sigma / tof->width + 0.5 * tof->n + s.window,
				.per_bin = (float)s.per_bin,
				.last = (float)s.last};
	ret->weight = cpu_memory(table_floats(&s) * sizeof(float));
	if (!ret->weight)
		return -ENOMEM;
	memset(ret->weight, 0, table_floats(&s) * sizeof(float));
	for (int i = 0; i < s.last + 2; i++)
		for (int k = 0; k < s.window; k++) {
			double lower = TOF_CUT + (k + 1 - s.window - i / s.per_bin) * tof->width / tof->sigma;
			double upper = TOF_CUT + (k + 2 - s.window - i / s.per_bin) * tof->width / tof->sigma;

			ret->weight[(size_t)i * (size_t)s.row + (size_t)k] =
				(float)(tof_cumulative(upper) - tof_cumulative(lower));
		}
	return 0;
}

/* Return the bins [first, end) of a window that exist. */
static struct cpu_span existing_bins(const struct cpu_tof *tof, int first)
{
	return (struct cpu_span){cpu_max(first, 0), cpu_min(first + tof->window, tof->n)};
}

/* Return the end of the run of steps that starts at step i. */
static int run_end(const int *first, int i, int n)
{
	int end = i + 1;

	while (end < n && first[end] == first[i])
		end++;
	return end;
}

static const int *skip_second(const struct cpu_run *run)
{
	const int *place = run->second_place;

	for (int i = 0; i < run->n; i++)
		place += run->length[i] > run->weight[i];
	return place;
}

/* Return the steps [i, end) of a block as a run. */
static struct cpu_run run_of(const struct cpu_tof *tof, const struct cpu_lane *lane, int i, int end, const struct cpu_work *w)
{
	return (struct cpu_run){.n = end - i,
				.width = lane->width,
				.length = w->length + i,
				.weight = w->weight + i,
				.place = w->place + i,
				.row = tof->row};
}

/* Set the TOF bins of a run: as many of [from, end) as are processed together. The numbers are as equal as possible. */
static void set_bins(struct cpu_run *run, const struct cpu_work *w, int i, int from, int end)
{
	int parts = (end - from + CPU_TOF_BINS - 1) / CPU_TOF_BINS;

	run->bins = (end - from + parts - 1) / parts;
	run->bin = w->bin + (size_t)i * (size_t)run->row + (from - w->first[i]);
}

/* Forward into `sums`, or back out of `from`, if that is not NULL. */
static void run_lane(const struct cpu_tof *tof, const struct cpu_path_loops *loops, const struct cpu_lane *lane, int n,
		     const struct cpu_work *w, float *sums, const float *from)
{
	const int *second = w->place + n, *next;

	for (int i = 0, end; i < n; i = end, second = next) {
		struct cpu_span bins = existing_bins(tof, w->first[i]);
		struct cpu_run run;

		end = run_end(w->first, i, n);
		run = run_of(tof, lane, i, end, w);
		run.second_place = second;
		if (bins.first >= bins.end)
			next = skip_second(&run);
		for (int k = bins.first; k < bins.end; k += run.bins) {
			size_t at = (size_t)k * (size_t)lane->width;

			set_bins(&run, w, i, k, bins.end);
			next = from ? loops->tof_back(&run, from + at, w->slab) : loops->tof_forward(&run, w->slab, sums + at);
		}
	}
}

void cpu_tof_forward(const struct cpu_tof *tof, const struct cpu_path_loops *loops, const struct cpu_lane *lane, int n,
		     const struct cpu_work *w, float *sums)
{
	run_lane(tof, loops, lane, n, w, sums, NULL);
}

void cpu_tof_back(const struct cpu_tof *tof, const struct cpu_path_loops *loops, const struct cpu_lane *lane, int n,
		  const struct cpu_work *w, const float *sums)
{
	run_lane(tof, loops, lane, n, w, NULL, sums);
}

/* Return a point of the path as in tof_windows(), before it is limited. */
static double end_of(const struct cpu_tof *tof, float t, float stretch)
{
	return (double)t * stretch * tof->per_mm + tof->offset - tof->window;
}

struct cpu_span cpu_tof_reach(const struct projection *a, const struct path *path, struct cpu_span steps, float stretch)
{
	const struct cpu_tof *tof = &a->paths->tof;
	const struct path_step *step = a->paths->step + path->at;
	bool joseph = a->model == PROJECTION_JOSEPH;
	float t0 = joseph ? path->t + (float)steps.first * path->dt : steps.first ? step[steps.first - 1].t : path->t;
	float t1 = joseph ? path->t + (float)(steps.end - 1) * path->dt : step[steps.end - 1].t;
	double one = end_of(tof, t0, stretch), other = end_of(tof, t1, stretch);
	double first = floor(fmin(one, other)) - tof->window, end = floor(fmax(one, other)) + 2; /* one bin more on each side */
	struct cpu_span span = {(int)fmin(fmax(first, 0), tof->n), (int)fmin(fmax(end, 0), tof->n)};

	return span;
}
