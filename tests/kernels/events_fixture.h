/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of list mode: detectors, random events, and rows of the matrix computed from their definition in double.
 * Include after cmocka.h. */
#ifndef TOMONODE_TESTS_EVENTS_FIXTURE_H
#define TOMONODE_TESTS_EVENTS_FIXTURE_H

#include "kernels/device.h"
#include "tests/kernels/buffers.h"
#include "tests/test.h"

#define EVENTS_RING 96 /* detectors in a ring */
#define EVENTS_RINGS 15
#define EVENTS_DETECTORS (EVENTS_RING * EVENTS_RINGS)
#define EVENTS_RADIUS 125.0 /* mm */
#define EVENTS_SPACING 9.0  /* of the rings, mm */
#define EVENTS_FOV 83.0	    /* mm */

/* Positions are relative to the first sample, of at most 45: 45 * 2^-24 voxels; the table of TOF weights: 2e-6. */
#define EVENTS_TOL 1e-5

struct events_setup {
	const char *name;
	struct grid grid; /* `lo` is the middle of the volume, relative to the scanner's */
	struct scan_tof tof;
	bool beams; /* sorted events of a few beams (kernels/events.h) */
};

static const struct events_setup events_setups[] = {
	{"without time of flight", {{41, 39, 45}, {4.1, 4.3, 3}, {0, 0, 0}, true}, {0, 0, 0}, false},
	{"13 TOF bins", {{41, 39, 45}, {4.1, 4.3, 3}, {0, 0, 0}, true}, {13, 17.3, 11}, false},
	{"an even number of TOF bins", {{23, 24, 18}, {5, 4.7, 4}, {3, -7, 5}, true}, {8, 30, 5}, false},
	{"one wide TOF bin", {{32, 33, 21}, {5, 5, 6}, {0, 0, 0}, true}, {1, 150, 9}, false},
	{"one slice", {{32, 33, 1}, {5, 5, 6}, {0, 0, 0}, true}, {13, 17.3, 11}, false},
	{"a volume beside the axis", {{9, 13, 14}, {4.7, 4.6, 2}, {14.4, -11, 5}, true}, {0, 0, 0}, false},
	{"one column", {{1, 1, 40}, {30, 30, 3.3}, {0, 0, 0}, true}, {13, 17.3, 11}, false},
	{"beams", {{41, 13, 45}, {4.1, 4.3, 3}, {0, 0, 0}, true}, {0, 0, 0}, true},
	{"beams with 13 TOF bins", {{81, 82, 30}, {2.1, 2.1, 3}, {0, 0, 0}, true}, {13, 17.3, 11}, true},
	{"beams in four slices", {{41, 13, 4}, {4.1, 4.3, 30}, {0, 0, 0}, true}, {0, 0, 0}, true},
	{"beams with one wide TOF bin", {{48, 8, 22}, {3.5, 21, 6}, {3, -7, 5}, true}, {1, 150, 9}, true},
};
#define N_EVENTS_SETUPS (sizeof(events_setups) / sizeof(events_setups[0]))

static inline uint32_t events_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static inline double events_uniform(uint32_t *seed)
{
	return events_random(seed) / (double)(1 << 24);
}

static inline struct grid events_grid(const struct events_setup *s)
{
	struct grid g = s->grid;

	for (int c = 0; c < 3; c++)
		g.lo[c] -= 0.5 * g.n[c] * g.h[c];
	return g;
}

/* Fill the positions of the detectors: rings, half a detector turned so that no line is exactly at 45 degrees. */
static inline float *events_detectors(void)
{
	float *p = take_memory(3 * EVENTS_DETECTORS * sizeof(*p));

	for (int i = 0; i < EVENTS_DETECTORS; i++) {
		double angle = 2 * M_PI * (i % EVENTS_RING + 0.27) / EVENTS_RING;

		p[3 * i] = (float)(EVENTS_RADIUS * cos(angle));
		p[3 * i + 1] = (float)(EVENTS_RADIUS * sin(angle));
		p[3 * i + 2] = (float)(EVENTS_SPACING * (i / EVENTS_RING - 0.5 * (EVENTS_RINGS - 1)));
	}
	return p;
}

/* Random events: any pairs, of which one in 64 is of two detectors above each other, and TOF bins. */
static inline struct event *events_list(size_t n, int tof_bins, uint32_t seed)
{
	struct event *e = take_memory(n * sizeof(*e));

	for (size_t i = 0; i < n; i++) {
		int a = (int)(events_random(&seed) % EVENTS_DETECTORS), b = (int)(events_random(&seed) % EVENTS_DETECTORS);

		if (i % 64 == 63)
			b = (a + EVENTS_RING * 3) % EVENTS_DETECTORS;
		e[i] = (struct event){
			{a, b}, tof_bins ? (int)(events_random(&seed) % (uint32_t)tof_bins) : 0, (float)events_uniform(&seed)};
	}
	return e;
}

/* Random events between two parts of the rings on either side of the x or y axis. */
static inline struct event *events_list_of_beams(size_t n, int tof_bins, uint32_t seed)
{
	struct event *e = events_list(n, tof_bins, seed);

	for (size_t i = 0; i < n; i++) {
		int turn = i % 3 ? 0 : EVENTS_RING / 4;

		for (int c = 0; c < 2; c++)
			e[i].detector[c] = e[i].detector[c] / EVENTS_RING * EVENTS_RING +
					   (turn + c * EVENTS_RING / 2 + (int)(events_random(&seed) % 5)) % EVENTS_RING;
	}
	return e;
}

/* Call each() for every voxel of an event's row, with its weight. */
static inline void events_row(const struct grid *g, const struct scan_tof *tof, const float *detectors, const struct event *e,
			      void (*each)(void *ctx, size_t voxel, double weight), void *ctx)
{
	double a[3], b[3], d[3], length = 0;
	int axis = 0, u, v;

	for (int c = 0; c < 3; c++) {
		a[c] = detectors[3 * e->detector[0] + c];
		b[c] = detectors[3 * e->detector[1] + c];
		d[c] = a[c] - b[c];
		length += d[c] * d[c];
		axis = fabs(d[c]) > fabs(d[axis]) ? c : axis;
	}
	length = sqrt(length);
	if (length == 0)
		return;
	u = axis == 0 ? 1 : 0;
	v = axis == 2 ? 1 : 2;
	for (int k = 0; k < g->n[axis]; k++) {
		double f = (g->lo[axis] + (k + 0.5) * g->h[axis] - b[axis]) / d[axis], p[3], at[3];
		double w = g->h[axis] * length / fabs(d[axis]);

		for (int c = 0; c < 3; c++) {
			p[c] = b[c] + f * d[c];
			at[c] = (p[c] - g->lo[c]) / g->h[c] - 0.5;
		}
		if (f < 0 || f > 1 || p[0] * p[0] + p[1] * p[1] > EVENTS_FOV * EVENTS_FOV)
			continue;
		if (at[0] < -0.5 || at[0] >= g->n[0] - 0.5 || at[1] < -0.5 || at[1] >= g->n[1] - 0.5)
			continue;
		if (tof->n)
			w *= tof_weight(tof, e->tof, (f - 0.5) * length);
		for (int corner = 0; corner < 4 && w > 0; corner++) {
			int i[3];
			double part = w;

			for (int c = 0; c < 3; c++) {
				int up = c == u ? corner & 1 : c == v ? corner >> 1 : 0;
				double whole = floor(at[c]);

				i[c] = c == axis ? k : (int)whole + up;
				part *= c == axis ? 1 : up ? at[c] - whole : 1 - (at[c] - whole);
				if (c != 2)
					i[c] = i[c] < 0 ? 0 : i[c] >= g->n[c] ? g->n[c] - 1 : i[c];
			}
			if (i[2] >= 0 && i[2] < g->n[2])
				each(ctx,
				     (size_t)i[0] * grid_step(g, 0) + (size_t)i[1] * grid_step(g, 1) +
					     (size_t)i[2] * grid_step(g, 2),
				     part);
		}
	}
}

struct events_sum {
	const float *x;
	double sum;
};

static inline void events_dot_each(void *ctx, size_t voxel, double weight)
{
	struct events_sum *s = ctx;

	s->sum += weight * s->x[voxel];
}

struct events_adding {
	double *x, value;
};

static inline void events_add_each(void *ctx, size_t voxel, double weight)
{
	struct events_adding *s = ctx;

	s->x[voxel] += weight * s->value;
}

/* A matrix on a device, with its detectors, and volumes and events on it. */
struct events_case {
	struct device *dev;
	struct grid grid;
	struct scan_tof tof;
	struct buf detectors, events, x, y;
	float *host_detectors;
	struct event *list;
	size_t n;
	struct events *a;
};

/* Random values from -1 to 1, with 0 in the padding of columns. */
static inline float *events_volume(const struct grid *g, uint32_t seed)
{
	float *x = take_zeros(grid_size(g), sizeof(*x));

	for (size_t i = 0; i < grid_size(g); i++)
		if (i % grid_column(g) < (size_t)g->n[2])
			x[i] = (float)(2 * events_uniform(&seed) - 1);
	return x;
}

static inline float *events_values(size_t n, uint32_t seed)
{
	float *y = take_memory(n * sizeof(*y));

	for (size_t i = 0; i < n; i++)
		y[i] = (float)(2 * events_uniform(&seed) - 1);
	return y;
}

static inline void events_open(struct device *dev, const struct events_setup *s, size_t n, bool deterministic,
			       struct events_case *ret)
{
	struct events_case c = {.dev = dev, .grid = events_grid(s), .tof = s->tof, .n = n};
	float *x = events_volume(&c.grid, 5), *y = events_values(n, 7);

	for (size_t i = 0; s->beams && i < n; i += 1009) /* beside others that are small */
		y[i] *= 100;
	c.host_detectors = events_detectors();
	c.list = s->beams ? events_list_of_beams(n, s->tof.n, 11) : events_list(n, s->tof.n, 11);
	c.detectors = fixture_upload(dev, c.host_detectors, 3 * EVENTS_DETECTORS);
	c.events = fixture_upload(dev, (const float *)(const void *)c.list, n * EVENT_FLOATS);
	c.x = fixture_upload(dev, x, grid_size(&c.grid));
	c.y = fixture_upload(dev, y, n);
	*ret = c;
	ret->a = fixture_events(dev, &(struct events_spec){.grid = &ret->grid,
							   .fov_radius = EVENTS_FOV,
							   .tof = s->tof,
							   .detectors = &ret->detectors,
							   .batch = n,
							   .deterministic = deterministic});
	if (s->beams) {
		assert_int_equal(dev->ops->events_sort(ret->a, &ret->events, NULL), 0);
		ret->list = (struct event *)(void *)fixture_download(&ret->events);
	}
}

/* Return a_e x of each event by the definition. */
static inline double *events_forward_reference(const struct events_case *c, const float *x)
{
	double *y = take_zeros(c->n, sizeof(*y));

	for (size_t i = 0; i < c->n; i++) {
		struct events_sum s = {x, 0};

		events_row(&c->grid, &c->tof, c->host_detectors, &c->list[i], events_dot_each, &s);
		y[i] = s.sum;
	}
	return y;
}

/* Return the sum of q_e a_e by the definition. */
static inline double *events_back_reference(const struct events_case *c, const float *q)
{
	double *x = take_zeros(grid_size(&c->grid), sizeof(*x));

	for (size_t i = 0; i < c->n; i++) {
		struct events_adding s = {x, q[i]};

		events_row(&c->grid, &c->tof, c->host_detectors, &c->list[i], events_add_each, &s);
	}
	return x;
}

/* Return the largest difference relative to the largest value of b. */
static inline double events_difference(const float *a, const double *b, size_t n)
{
	double largest = 0, worst = 0;

	for (size_t i = 0; i < n; i++) {
		assert_true(isfinite(a[i]));
		largest = fmax(largest, fabs(b[i]));
		worst = fmax(worst, fabs(a[i] - b[i]));
	}
	assert_true(largest > 0);
	return worst / largest;
}

static inline void events_check_definition(struct events_case *c)
{
	float *x = fixture_download(&c->x), *q = fixture_download(&c->y), *found;
	double *y = events_forward_reference(c, x), *sum = events_back_reference(c, q), most = 0, difference;

	assert_int_equal(c->dev->ops->events_back(c->a, &c->events, &c->y, &c->x, NULL), 0);
	found = fixture_download(&c->x);
	for (size_t i = 0; i < c->x.n; i++)
		found[i] -= x[i];
	for (size_t i = 0; i < c->x.n; i++)
		most = fmax(most, fabs(sum[i]));
	/* the device adds to x, of values up to 1, so that a sum is rounded to 2^-24 of up to 1 + sum */
	difference = events_difference(found, sum, c->x.n);
	if (!(difference < EVENTS_TOL + 0x1p-24 * (1 + most) / most))
		fail_msg("back: %g of the largest sum, %g", difference, most);
	assert_int_equal(c->dev->ops->upload(&c->x, x, NULL), 0);
	assert_int_equal(c->dev->ops->events_forward(c->a, &c->events, &c->x, &c->y, NULL), 0);
	found = fixture_download(&c->y);
	assert_true(events_difference(found, y, c->n) < EVENTS_TOL);
}

/* <A x, q> = <x, A'q> with values of both signs, relative to the norms of A x and q. */
static inline void events_check_adjoint(struct events_case *c)
{
	const struct device_ops *v = c->dev->ops;
	struct buf p = fixture_upload(c->dev, NULL, c->n), back = fixture_upload(c->dev, NULL, c->x.n);
	double forward, backward, p2, q2;

	assert_int_equal(v->fill(&back, 0, NULL), 0);
	assert_int_equal(v->events_forward(c->a, &c->events, &c->x, &p, NULL), 0);
	assert_int_equal(v->events_back(c->a, &c->events, &c->y, &back, NULL), 0);
	v->dot(&p, &c->y, &forward, NULL);
	v->dot(&c->x, &back, &backward, NULL);
	v->dot(&p, &p, &p2, NULL);
	v->dot(&c->y, &c->y, &q2, NULL);
	assert_near(forward, backward, 1e-5 * sqrt(p2 * q2));
}

/* The fused pass is forward, 1 / (p + add) above the floor, and back. */
static inline void events_check_ratio(struct events_case *c)
{
	const struct device_ops *v = c->dev->ops;
	const float floor = 0.4f;
	struct buf sum[2];
	float *p, *found;
	double *expected;

	for (int i = 0; i < 2; i++) {
		sum[i] = fixture_upload(c->dev, NULL, c->x.n);
		assert_int_equal(v->fill(&sum[i], 1, NULL), 0);
	}
	assert_int_equal(v->events_forward(c->a, &c->events, &c->x, &c->y, NULL), 0);
	p = fixture_download(&c->y);
	for (size_t i = 0; i < c->n; i++)
		p[i] = p[i] + c->list[i].add > floor ? 1 / (p[i] + c->list[i].add) : 0;
	assert_int_equal(v->upload(&c->y, p, NULL), 0);
	assert_int_equal(v->events_back(c->a, &c->events, &c->y, &sum[0], NULL), 0);
	assert_int_equal(v->events_ratio(c->a, &c->events, floor, &c->x, &sum[1], NULL), 0);
	p = fixture_download(&sum[0]);
	found = fixture_download(&sum[1]);
	expected = take_memory(c->x.n * sizeof(*expected));
	for (size_t i = 0; i < c->x.n; i++)
		expected[i] = p[i];
	assert_true(events_difference(found, expected, c->x.n) < EVENTS_TOL);
}

static inline int events_compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct event));
}

/* Sorting changes only the order. */
static inline void events_check_sorted(struct events_case *c)
{
	struct event *sorted;

	assert_int_equal(c->dev->ops->events_sort(c->a, &c->events, NULL), 0);
	sorted = (struct event *)(void *)fixture_download(&c->events);
	qsort(c->list, c->n, sizeof(*c->list), events_compare);
	qsort(sorted, c->n, sizeof(*sorted), events_compare);
	assert_memory_equal(sorted, c->list, c->n * sizeof(*sorted));
}

#endif
