/* SPDX-License-Identifier: Apache-2.0 */
/* bench_list.c - an update of list-mode EM: sum of a_e / (a_e x) over events that are on the device, sorted.
 *
 * The scanner is of the size of a Siemens Biograph Vision: 80 rings of 760 detectors, 33 TOF bins of 21.47 mm, sigma 13.62 mm.
 * The activity is a cylinder of 300 mm diameter. The smallest memory traffic: the events are read, the volume is read, and the
 * sum is read and written. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/events.h"
#include "recon/bench/bench_data.h"
#include "recon/bench/bench_internal.h"

#define FLOOR 1e-6f
#define TOLERANCE 1e-5 /* as in bench_dbt.c */

#define RINGS 80
#define DETECTORS 760
#define SPACING 3.29114 /* mm */
#define RADIUS 417.0	/* mm */
#define ACTIVE 150.0	/* mm: radius of the cylinder */
#define BATCH ((size_t)1 << 24)
#define COUNTED 4096 /* events whose samples are counted */

static const struct scan_tof tof = {33, 21.47, 13.62};

enum { SORT, FORWARD, BACK, N_STAGES };
static const char *const stages[N_STAGES] = {"sort", "forward", "back"};

struct state {
	struct grid grid;
	size_t n;
	struct buf detectors, list, x, y, sum;
	struct events *events;
};

static double uniform_number(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 40) / (1 << 24);
}

/* Return the detector nearest to a point at the radius of the rings, or -1 if it is beyond the outermost rings. */
static int nearest_detector(const double at[3])
{
	int ring = (int)floor(at[2] / SPACING + 0.5 * RINGS);
	int i = (int)floor(atan2(at[1], at[0]) * DETECTORS / (2 * M_PI) + 0.5);

	return ring < 0 || ring >= RINGS ? -1 : ring * DETECTORS + (i + DETECTORS) % DETECTORS;
}

/* Draw annihilations until one is measured. */
static struct event draw_event(uint64_t seed)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;

	for (;;) {
		double r = ACTIVE * sqrt(uniform_number(&state)), turn = 2 * M_PI * uniform_number(&state),
		       phi = 2 * M_PI * uniform_number(&state);
		double at[3] = {r * cos(turn), r * sin(turn), (uniform_number(&state) - 0.5) * RINGS * SPACING};
		double up = 2 * uniform_number(&state) - 1, flat = sqrt(1 - up * up), d[2] = {cos(phi), sin(phi)}, end[2][3],
		       t[2];
		double along = at[0] * d[0] + at[1] * d[1], root = sqrt(along * along + RADIUS * RADIUS - r * r), noise;
		int detector[2], bin;

		for (int i = 0; i < 2; i++) {
			t[i] = (-along + (i ? -root : root)) / (flat > 1e-6 ? flat : 1e-6);
			for (int c = 0; c < 2; c++)
				end[i][c] = at[c] + t[i] * flat * d[c];
			end[i][2] = at[2] + t[i] * up;
			detector[i] = nearest_detector(end[i]);
		}
		noise = tof.sigma * sqrt(-2 * log(uniform_number(&state) + 1e-9)) * cos(2 * M_PI * uniform_number(&state));
		bin = (int)floor((noise - 0.5 * (t[0] + t[1])) / tof.width + 0.5 * tof.n);
		if (detector[0] >= 0 && detector[1] >= 0 && bin >= 0 && bin < tof.n)
			return (struct event){{detector[0], detector[1]}, bin, 0};
	}
}

static int run_list(struct bench_job *job, struct err *err)
{
	struct state *s = job->state;
	int r = job->dev->ops->fill(&s->sum, 0, err);

	return r < 0 ? r : job->dev->ops->events_ratio(s->events, &s->list, FLOOR, &s->x, &s->sum, err);
}

/* Sort the events in batches. */
static int sort_all(struct bench_job *job, struct err *err)
{
	struct state *s = job->state;
	int r = 0;

	for (size_t at = 0; r == 0 && at < s->n; at += BATCH) {
		struct buf part = buf_part(&s->list, at * EVENT_FLOATS, (s->n - at < BATCH ? s->n - at : BATCH) * EVENT_FLOATS);

		r = job->dev->ops->events_sort(s->events, &part, err);
	}
	return r;
}

static int run_list_stage(struct bench_job *job, int i, struct err *err)
{
	struct state *s = job->state;

	switch (i) {
	case SORT:
		return sort_all(job, err);
	case FORWARD:
		return job->dev->ops->events_forward(s->events, &s->list, &s->x, &s->y, err);
	default:
		return job->dev->ops->events_back(s->events, &s->list, &s->y, &s->sum, err);
	}
}

/* <x, sum of a_e / (a_e x)> is the number of events. */
static int check_list(struct bench_job *job, double *ret_found, double *ret_expected, double *ret_tolerance, struct err *err)
{
	struct state *s = job->state;
	int r = run_list(job, err);

	*ret_expected = (double)s->n;
	*ret_tolerance = TOLERANCE;
	return r < 0 ? r : job->dev->ops->dot(&s->x, &s->sum, ret_found, err);
}

static void close_job(struct bench_job *job)
{
	struct state *s = job->state;

	job->dev->ops->events_free(s->events);
	buf_release(&s->detectors);
	buf_release(&s->list);
	buf_release(&s->x);
	buf_release(&s->y);
	buf_release(&s->sum);
	free(s);
}

static int check_setup(const struct bench_setup *s, struct err *err)
{
	if ((!s->model || s->model == PROJECTION_JOSEPH) && !s->rule && s->turn == 0 && !s->tile[0] && !s->views &&
	    !s->fov_radius)
		return 0;
	return err_set(err, EINVAL, "pet-list: model: joseph; no views, no field of view, no rules, no tiles");
}

static struct grid grid_of(const struct bench_setup *setup)
{
	bool tiny = setup->size == BENCH_TINY;
	int n = setup->voxels[0] ? setup->voxels[0] : tiny ? 64 : 440, n_y = setup->voxels[1] ? setup->voxels[1] : n;
	int n_z = setup->voxels[2] ? setup->voxels[2] : tiny ? 24 : 2 * RINGS - 1;
	double h = 1.65 * 440 / n, slice = SPACING * (2 * RINGS - 1) / 2 / n_z;

	return (struct grid){{n, n_y, n_z}, {h, h, slice}, {-0.5 * n * h, -0.5 * n_y * h, -0.5 * n_z * slice}, true};
}

static int upload_detectors(struct state *s, struct device *dev, struct err *err)
{
	float *at = malloc(3 * RINGS * DETECTORS * sizeof(*at));
	int r = at ? dev->ops->alloc(dev, 3 * RINGS * DETECTORS, &s->detectors, err)
		   : err_set(err, ENOMEM, "pet-list: no memory for the detectors");

	for (int i = 0; r == 0 && i < RINGS * DETECTORS; i++) {
		double turn = 2 * M_PI * (i % DETECTORS) / DETECTORS;

		at[3 * i] = (float)(RADIUS * cos(turn));
		at[3 * i + 1] = (float)(RADIUS * sin(turn));
		at[3 * i + 2] = (float)(SPACING * (i / DETECTORS - 0.5 * (RINGS - 1)));
	}
	if (r == 0)
		r = dev->ops->upload(&s->detectors, at, err);
	free(at);
	return r;
}

static int upload_events(struct state *s, struct device *dev, struct err *err)
{
	struct event *list = malloc(s->n * sizeof(*list));
	int r = list ? dev->ops->alloc(dev, s->n * EVENT_FLOATS, &s->list, err)
		     : err_set(err, ENOMEM, "pet-list: no memory for %zu events", s->n);

	if (r == 0) {
#pragma omp parallel for schedule(static)
		for (size_t i = 0; i < s->n; i++)
			list[i] = draw_event(i);
		r = dev->ops->upload(&s->list, (const float *)(const void *)list, err);
	}
	free(list);
	return r;
}

/* Return the mean number of samples of a line. */
static double mean_samples(const struct state *s)
{
	float table[EVENTS_TOF_TABLE], *at = malloc(s->detectors.n * sizeof(*at));
	struct events_model m;
	struct event_line line;
	double sum = 0;

	if (!at || s->detectors.dev->ops->download(&s->detectors, at, NULL) < 0) {
		free(at);
		return 0;
	}
	events_model_make(&s->grid, RADIUS, &tof, RINGS * DETECTORS, &m, table);
	for (size_t i = 0; i < COUNTED; i++) {
		struct event e = draw_event(i);

		sum += event_line_make(&m, &e, at, &line) ? line.n : 0;
	}
	free(at);
	return sum / COUNTED;
}

static int open_state(struct state *s, const struct bench_setup *setup, struct device *dev, struct err *err)
{
	struct events_spec spec = {.grid = &s->grid,
				   .fov_radius = 0.98 * RADIUS,
				   .tof = tof,
				   .detectors = &s->detectors,
				   .batch = s->n < BATCH ? s->n : BATCH,
				   .deterministic = setup->deterministic};
	size_t voxels = grid_size(&s->grid);
	int r = upload_detectors(s, dev, err);

	if (r == 0)
		r = bench_fits(dev, dev->ops->events_bytes(dev, &spec) + s->n * 20 + 2 * voxels * sizeof(float), err);
	if (r == 0)
		r = upload_events(s, dev, err);
	if (r == 0)
		r = bench_random_alloc(dev, voxels, 0.1f, 1.1f, 1, &s->x, err);
	if (r == 0)
		r = dev->ops->alloc(dev, s->n, &s->y, err);
	if (r == 0)
		r = dev->ops->alloc(dev, voxels, &s->sum, err);
	return r < 0 ? r : dev->ops->events_create(dev, &spec, &s->events, err);
}

int bench_list_open(struct bench_job *job, int kind, const struct bench_setup *setup, struct err *err)
{
	static const size_t events[BENCH_SIZES] = {20000, 1000000, 10000000, 100000000};
	struct state *s = calloc(1, sizeof(*s));
	int r;

	(void)kind;
	if (!s)
		return err_set(err, ENOMEM, "pet-list: out of memory");
	*job = (struct bench_job){.dev = job->dev,
				  .state = s,
				  .once = run_list,
				  .n_stages = N_STAGES,
				  .stages = stages,
				  .stage = run_list_stage,
				  .check = check_list,
				  .close = close_job};
	s->n = events[setup->size];
	s->grid = grid_of(setup);
	r = check_setup(setup, err);
	if (r == 0)
		r = open_state(s, setup, job->dev, err);
	if (r == 0)
		r = sort_all(job, err);
	if (r < 0)
		return r;
	job->steps = 2 * (double)s->n * mean_samples(s);
	job->bytes = (double)s->n * sizeof(struct event) + 3 * sizeof(float) * (double)s->x.n;
	snprintf(job->sizes, sizeof(job->sizes), "%zu events, %d x %d x %d voxels, %d TOF bins", s->n, s->grid.n[0], s->grid.n[1],
		 s->grid.n[2], tof.n);
	return 0;
}
