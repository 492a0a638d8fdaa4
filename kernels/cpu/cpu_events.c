/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_events.c - the matrix of list mode on the CPU device.
 *
 * The voxels and weights of a line are computed into arrays, all samples at once, then used. Forward: each event is computed by
 * one thread. Back: CPU_EVENTS events at a time; first the rows of the volume (y) that each event touches, then each thread adds
 * the events to the rows that it owns. Threads own about the same number of samples. */
#include "kernels/cpu/cpu_events.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The rows of the volume that one thread writes: first <= y < end. */
struct rows {
	int first, end;
};

static int largest_axis(const struct grid *g)
{
	return cpu_max(g->n[0], cpu_max(g->n[1], g->n[2]));
}

/* Return the length of an array of samples, elements. */
static size_t samples_of(const struct grid *g)
{
	return ((size_t)largest_axis(g) + CPU_BLOCK - 1) / CPU_BLOCK * CPU_BLOCK;
}

static size_t sort_bytes(const struct events_spec *spec)
{
	struct event_cells cells;

	event_cells_make(spec->grid, &cells);
	return spec->batch * (sizeof(struct event) + sizeof(uint32_t)) + ((size_t)cells.first[3] + 1) * sizeof(uint32_t);
}

size_t cpu_events_bytes(struct device *dev, const struct events_spec *spec)
{
	return sizeof(struct events) + EVENTS_TOF_TABLE * sizeof(float) + sort_bytes(spec) +
	       CPU_EVENTS * (sizeof(float) + 2 * sizeof(int32_t)) + ((size_t)spec->grid->n[1] + 1) * sizeof(size_t) +
	       (size_t)cpu_state(dev)->threads * CPU_EVENT_ARRAYS * samples_of(spec->grid) * sizeof(float);
}

static int check_spec(const struct device *dev, const struct events_spec *spec, struct err *err)
{
	if (!spec->grid->z_fastest || grid_size(spec->grid) > INT32_MAX)
		return err_set(err, EINVAL, "%s: list mode needs a volume with z fastest, of less than 2^31 floats", dev->name);
	if (!(spec->fov_radius > 0))
		return err_set(err, EINVAL, "%s: list mode with a field of view of %g mm", dev->name, spec->fov_radius);
	if (spec->detectors->n % 3 != 0 || spec->detectors->n / 3 > INT32_MAX)
		return err_set(err, EINVAL, "%s: list mode with %zu coordinates of detectors", dev->name, spec->detectors->n);
	if (spec->batch == 0 || spec->batch > INT32_MAX)
		return err_set(err, EINVAL, "%s: list mode with batches of %zu events; allowed: 1 to 2^31 - 1", dev->name,
			       spec->batch);
	return 0;
}

int cpu_events_create(struct device *dev, const struct events_spec *spec, struct events **ret, struct err *err)
{
	struct events *a;
	int r = check_spec(dev, spec, err);

	if (r < 0)
		return r;
	a = calloc(1, sizeof(*a));
	if (!a)
		return err_set(err, ENOMEM, "%s: list mode: out of memory", dev->name);
	a->dev = dev;
	a->detectors = *spec->detectors;
	a->batch = spec->batch;
	a->most = (int)samples_of(spec->grid);
	event_cells_make(spec->grid, &a->cells);
	a->table = malloc(EVENTS_TOF_TABLE * sizeof(*a->table));
	a->sorted = cpu_memory(spec->batch * sizeof(*a->sorted));
	a->cell = cpu_memory(spec->batch * sizeof(*a->cell));
	a->count = cpu_memory(((size_t)a->cells.first[3] + 1) * sizeof(*a->count));
	a->q = malloc(CPU_EVENTS * sizeof(*a->q));
	a->rows = malloc(CPU_EVENTS * 2 * sizeof(*a->rows));
	a->row_load = malloc(((size_t)spec->grid->n[1] + 1) * sizeof(*a->row_load));
	a->samples = cpu_memory((size_t)dev->threads * CPU_EVENT_ARRAYS * (size_t)a->most * sizeof(*a->samples));
	if (!a->table || !a->sorted || !a->cell || !a->count || !a->q || !a->rows || !a->row_load || !a->samples) {
		cpu_events_free(a);
		return err_set(err, ENOMEM, "%s: list mode: no memory for batches of %zu events", dev->name, spec->batch);
	}
	events_model_make(spec->grid, spec->fov_radius, &spec->tof, (int)(spec->detectors->n / 3), &a->model, a->table);
	*ret = a;
	return 0;
}

void cpu_events_free(struct events *a)
{
	if (!a)
		return;
	free(a->table);
	free(a->sorted);
	free(a->cell);
	free(a->count);
	free(a->q);
	free(a->rows);
	free(a->row_load);
	free(a->samples);
	free(a);
}

const struct buf *cpu_events_detectors(const struct events *a)
{
	return &a->detectors;
}

static struct cpu_event_samples samples_of_thread(const struct events *a)
{
	size_t n = (size_t)a->most;
	float *at = a->samples + (size_t)cpu_thread() * CPU_EVENT_ARRAYS * n;

	return (struct cpu_event_samples){(int32_t *)(void *)at, at + n, at + 2 * n, at + 3 * n, at + 4 * n};
}

static struct cpu_event_strides strides_of(const struct grid *g, int axis)
{
	int u = axis == 0 ? 1 : 0, v = axis == 2 ? 1 : 2;
	struct cpu_event_strides s = {
		.main = (int32_t)grid_step(g, axis),
		.u = (int32_t)grid_step(g, u),
		.v = (int32_t)grid_step(g, v),
		.n_u = g->n[u],
		.n_v = g->n[v],
		.ends = v == 2,
	};

	s.next_u = s.n_u > 1 ? s.u : 0;
	s.next_v = s.n_v > 1 ? s.v : 0;
	return s;
}

/* Compute the samples of an event. Return their number; *ret_line and *ret_strides are set if it is not 0. */
static int compute_samples(const struct events *a, const struct event *e, const struct cpu_event_samples *to,
			   struct event_line *ret_line, struct cpu_event_strides *ret_strides)
{
	if (!event_line_make(&a->model, e, a->detectors.mem, ret_line))
		return 0;
	*ret_strides = strides_of(&a->model.grid, ret_line->axis);
	cpu_state(a->dev)->rows->events->samples(&a->model, a->table, ret_strides, ret_line, to);
	return ret_line->n;
}

static float forward_event(const struct events *a, const struct event *e, const struct cpu_event_samples *sample, const float *x)
{
	struct cpu_event_strides strides;
	struct event_line line;
	int n = compute_samples(a, e, sample, &line, &strides);

	return n ? cpu_state(a->dev)->rows->events->dot(sample, n, &strides, x) : 0;
}

static void project_events(const struct events *a, const struct event *events, size_t n, const float *x, float *ret_y)
{
	int threads = cpu_state(a->dev)->threads;

#pragma omp parallel num_threads(threads) if (threads > 1)
	{
		struct cpu_event_samples sample = samples_of_thread(a);

#pragma omp for schedule(dynamic, 256)
		for (size_t i = 0; i < n; i++)
			ret_y[i] = forward_event(a, &events[i], &sample, x);
	}
}

/* Compute the first and the last row that a line may touch. */
static void rows_of(const struct events *a, const struct event *e, int32_t ret_rows[2])
{
	const int n = a->model.grid.n[1];
	struct event_line line;
	double at, end;
	int i;

	ret_rows[0] = n;
	ret_rows[1] = -1;
	if (!event_line_make(&a->model, e, a->detectors.mem, &line))
		return;
	i = line.axis == 2;
	at = line.axis == 1 ? line.first : line.base[i] + (double)line.at[i];
	end = at + (line.axis == 1 ? 1.0 : (double)line.step[i]) * (line.n - 1);
	ret_rows[0] = cpu_max(0, (int)floor(fmin(at, end)) - 1);
	ret_rows[1] = cpu_min(n - 1, (int)floor(fmax(at, end)) + 2);
}

/* x += q times the samples from .. end - 1. */
static void add_all(const struct cpu_event_samples *s, int from, int end, const struct cpu_event_strides *to, float q, float *x)
{
	float *right = x + to->next_u, *up = x + to->next_v, *both = right + to->next_v;

	for (int j = from; j < end; j++) {
		float a = q * s->u0[j], b = q * s->u1[j];
		int32_t at = s->at[j];

		x[at] += a * s->v0[j];
		up[at] += a * s->v1[j];
		right[at] += b * s->v0[j];
		both[at] += b * s->v1[j];
	}
}

/* As add_all(), but only to voxels x[low] .. x[high - 1]. */
static void add_some(const struct cpu_event_samples *s, int n, const struct cpu_event_strides *to, float q, int32_t low,
		     int32_t high, float *x)
{
	for (int j = 0; j < n; j++) {
		float a = q * s->u0[j], b = q * s->u1[j];
		int32_t at[4] = {s->at[j], s->at[j] + to->next_v, s->at[j] + to->next_u, s->at[j] + to->next_u + to->next_v};
		float value[4] = {a * s->v0[j], a * s->v1[j], b * s->v0[j], b * s->v1[j]};

		for (int i = 0; i < 4; i++)
			if (at[i] >= low && at[i] < high)
				x[at[i]] += value[i];
	}
}

static void back_event(const struct events *a, const struct event *e, const int32_t rows[2], struct rows own, float q,
		       const struct cpu_event_samples *sample, float *x)
{
	const int32_t row = (int32_t)grid_step(&a->model.grid, 1);
	struct cpu_event_strides strides;
	struct event_line line;
	int n;

	if (q == 0 || rows[1] < own.first || rows[0] >= own.end)
		return;
	n = compute_samples(a, e, sample, &line, &strides);
	if (rows[0] >= own.first && rows[1] < own.end)
		add_all(sample, 0, n, &strides, q, x);
	else if (line.axis == 1)
		add_all(sample, cpu_max(0, own.first - line.first), cpu_min(n, own.end - line.first), &strides, q, x);
	else
		add_some(sample, n, &strides, q, own.first * row, own.end * row, x);
}

/* Divide the rows among n threads: thread i gets those from ret_first[i] to ret_first[i + 1] - 1, of about the same load. */
static struct rows rows_of_thread(const struct events *a, int i, int n)
{
	const int n_rows = a->model.grid.n[1];
	size_t all = a->row_load[n_rows];
	struct rows own = {n_rows, n_rows};

	for (int y = n_rows - 1; y >= 0; y--) {
		if (a->row_load[y] * (size_t)n >= all * (size_t)i)
			own.first = y;
		if (a->row_load[y] * (size_t)n >= all * (size_t)(i + 1))
			own.end = y;
	}
	if (i == 0)
		own.first = 0;
	if (i == n - 1)
		own.end = n_rows;
	return own;
}

/* Set row_load[y] to the number of rows below y that events touch, each counted for each event. */
static void weigh_rows(struct events *a, size_t n)
{
	const int n_rows = a->model.grid.n[1];
	size_t here = 0, sum = 0;

	memset(a->row_load, 0, ((size_t)n_rows + 1) * sizeof(*a->row_load));
	for (size_t i = 0; i < n; i++)
		if (a->rows[2 * i] <= a->rows[2 * i + 1]) {
			a->row_load[a->rows[2 * i]]++;
			a->row_load[a->rows[2 * i + 1] + 1]--; /* modulo 2^64 */
		}
	for (int y = 0; y <= n_rows; y++) {
		here += a->row_load[y];
		a->row_load[y] = sum;
		sum += here;
	}
}

/* x += A'q of at most CPU_EVENTS events. */
static void back_part(struct events *a, const struct event *events, const float *q, size_t n, float *x)
{
	int threads = cpu_state(a->dev)->threads;

#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
	for (size_t i = 0; i < n; i++)
		rows_of(a, &events[i], a->rows + 2 * i);
	weigh_rows(a, n);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
	for (int t = 0; t < threads; t++) {
		struct cpu_event_samples sample = samples_of_thread(a);
		struct rows own = rows_of_thread(a, t, threads);

		for (size_t i = 0; i < n; i++)
			back_event(a, &events[i], a->rows + 2 * i, own, q[i], &sample, x);
	}
}

static int check_sizes(const struct events *a, const struct buf *events, const struct buf *y, const struct buf *x,
		       struct err *err)
{
	if (events->n % EVENT_FLOATS != 0 || (y && y->n != events->n / EVENT_FLOATS))
		return err_set(err, EINVAL, "list mode: %zu values for events of %zu floats", y ? y->n : 0, events->n);
	if (x->n != grid_size(&a->model.grid))
		return err_set(err, EINVAL, "list mode: the volume has %zu floats, but the grid has %zu voxels", x->n,
			       grid_size(&a->model.grid));
	return 0;
}

static const struct event *list_of(const struct buf *events)
{
	return (const struct event *)(const void *)events->mem;
}

int cpu_events_forward(struct events *a, const struct buf *events, const struct buf *x, struct buf *ret_y, struct err *err)
{
	int r = check_sizes(a, events, ret_y, x, err);

	if (r == 0)
		project_events(a, list_of(events), ret_y->n, x->mem, ret_y->mem);
	return r;
}

int cpu_events_back(struct events *a, const struct buf *events, const struct buf *q, struct buf *x, struct err *err)
{
	int r = check_sizes(a, events, q, x, err);

	for (size_t i = 0; r == 0 && i < q->n; i += CPU_EVENTS)
		back_part(a, list_of(events) + i, q->mem + i, q->n - i < CPU_EVENTS ? q->n - i : CPU_EVENTS, x->mem);
	return r;
}

int cpu_events_ratio(struct events *a, const struct buf *events, float floor, const struct buf *x, struct buf *sum,
		     struct err *err)
{
	size_t all = events->n / EVENT_FLOATS;
	int r = check_sizes(a, events, NULL, x, err);

	if (r == 0)
		r = check_sizes(a, events, NULL, sum, err);
	for (size_t i = 0; r == 0 && i < all; i += CPU_EVENTS) {
		const struct event *part = list_of(events) + i;
		size_t n = all - i < CPU_EVENTS ? all - i : CPU_EVENTS;

		project_events(a, part, n, x->mem, a->q);
		for (size_t k = 0; k < n; k++)
			a->q[k] = event_ratio(a->q[k] + part[k].add, floor);
		back_part(a, part, a->q, n, sum->mem);
	}
	return r;
}
