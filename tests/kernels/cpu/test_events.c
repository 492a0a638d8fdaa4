/* SPDX-License-Identifier: Apache-2.0 */
/* List mode on every device: compared with its definition in double and with the sinogram projector, adjoint, TOF bins, number of
 * threads, sorting, repeatable sums. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_events.h"
#include "tests/kernels/devices_test.h"
#include "tests/kernels/draw.h"
#include "tests/kernels/events_fixture.h"
#include "tests/test.h"

#define N 4000
#define N_CUDA 20000

static void on_setup(struct device *dev, const struct events_setup *s, size_t n, bool deterministic,
		     void (*each)(struct events_case *c))
{
	struct events_case c;

	print_message("%s, %s%s\n", dev->ops->kind, s->name, deterministic ? ", repeatable" : "");
	events_open(dev, s, n, deterministic, &c);
	each(&c);
}

/* Run `each` on every setup: poison device, CPU with every instruction set, CUDA with and without repeatable sums. */
static void on_each(void (*each)(struct events_case *c))
{
	for (size_t i = 0; i < N_EVENTS_SETUPS; i++) {
		TEST_BLOCK;
		struct device *dev = fixture_device(FIXTURE_POISON, 3);

		on_setup(dev, &events_setups[i], N, false, each);
		for (int set = 0; cpu_rows_at(set); set++) {
			dev = fixture_device(FIXTURE_CPU, 2);
			cpu_state(dev)->rows = cpu_rows_at(set);
			on_setup(dev, &events_setups[i], N, false, each);
		}
		if (device_cuda_count() == 0)
			continue;
		dev = fixture_device(FIXTURE_CUDA, 0);
		on_setup(dev, &events_setups[i], N_CUDA, false, each);
		on_setup(dev, &events_setups[i], N_CUDA, true, each);
	}
}

TEST(events_definition)
{
	on_each(events_check_definition);
}

TEST(events_adjoint)
{
	on_each(events_check_adjoint);
}

TEST(events_ratio)
{
	on_each(events_check_ratio);
}

TEST(events_sorted)
{
	on_each(events_check_sorted);
}

/* The sum of sorted events; on CUDA the order inside a cell differs from run to run. */
static float *repeatable_sum(struct device *dev)
{
	struct events_case c;
	struct buf sum;

	events_open(dev, &events_setups[1], N_CUDA, true, &c);
	sum = fixture_upload(dev, NULL, c.x.n);
	assert_int_equal(dev->ops->fill(&sum, 0, NULL), 0);
	assert_int_equal(dev->ops->events_sort(c.a, &c.events, NULL), 0);
	assert_int_equal(dev->ops->events_ratio(c.a, &c.events, 1e-3f, &c.x, &sum, NULL), 0);
	return fixture_download(&sum);
}

ON_DEVICES(repeatable, dev)
{
	struct grid g = events_grid(&events_setups[1]);
	float *first = repeatable_sum(dev);

	for (int i = 0; i < (strcmp(dev->ops->kind, "cuda") ? 1 : 5); i++) {
		float *again = repeatable_sum(dev);

		assert_memory_equal(first, again, grid_size(&g) * sizeof(*first));
	}
}

/* Whether lines of some events meet the volume with a weight: errors are relative to the largest value. */
static bool is_met(const struct events_setup *s, size_t n)
{
	TEST_BLOCK;
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct events_case c;
	float *ones;
	double *y;
	int met = 0;

	events_open(dev, s, n, false, &c);
	ones = events_values(c.x.n, 1);
	for (size_t i = 0; i < c.x.n; i++)
		ones[i] = 1;
	y = events_forward_reference(&c, ones);
	for (size_t i = 0; i < n; i++)
		met += y[i] > 1; /* mm */
	return met >= 5;
}

/* Random volumes and time of flight. */
TEST(random_volumes)
{
	uint64_t seed = test_seed();
	int met = 0;

	for (int i = 0; i < draw_cases(40); i++) {
		struct events_setup s = {"random",
					 {{draw_size(&seed, 1, 40), draw_size(&seed, 1, 40), draw_size(&seed, 1, 40)},
					  {draw(&seed, 2, 8), draw(&seed, 2, 8), draw(&seed, 2, 6)},
					  {draw(&seed, -10, 10), draw(&seed, -10, 10), draw(&seed, -10, 10)},
					  true},
					 {0, 0, 0},
					 draw_int(&seed, 0, 1)};
		size_t n = (size_t)draw_size(&seed, 150, 300);

		if (draw_int(&seed, 0, 1))
			s.tof = (struct scan_tof){draw_size(&seed, 1, 20), draw(&seed, 8, 60), draw(&seed, 5, 20)};
		if (!is_met(&s, n))
			continue;
		met++;
		for (int set = 0; cpu_rows_at(set); set++) {
			TEST_BLOCK;
			struct device *dev = fixture_device(FIXTURE_CPU, draw_int(&seed, 1, 4));
			struct events_case c;

			cpu_state(dev)->rows = cpu_rows_at(set);
			events_open(dev, &s, n, false, &c);
			events_check_definition(&c);
			events_check_adjoint(&c);
			events_check_ratio(&c);
		}
	}
	assert_true(met > draw_cases(20)); /* at least half of them */
}

/* Neighbours in the sorted list are near to each other: the mean distance of the middles of their lines, across z, becomes much
 * smaller. */
static double mean_distance(const struct events_case *c, const struct event *list)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 1; i < c->n; i++) {
		double d = 0;

		for (int k = 0; k < 2; k++) {
			double here =
				c->host_detectors[3 * list[i].detector[0] + k] + c->host_detectors[3 * list[i].detector[1] + k];

			here -= c->host_detectors[3 * list[i - 1].detector[0] + k] +
				c->host_detectors[3 * list[i - 1].detector[1] + k];
			d += here * here / 4;
		}
		sum += sqrt(d);
		n++;
	}
	return sum / (double)n;
}

TEST(neighbours)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct events_case c;
	float *list;

	events_open(dev, &events_setups[0], 100000, false, &c);
	for (int i = 0; i < 100000; i++) { /* lines through the field of view: nearly opposite detectors */
		int ring = c.list[i].detector[1] / EVENTS_RING, here = c.list[i].detector[0] % EVENTS_RING;

		c.list[i].detector[1] = ring * EVENTS_RING + (here + EVENTS_RING / 2 + i % 21 - 10) % EVENTS_RING;
	}
	dev->ops->upload(&c.events, (const float *)(const void *)c.list, NULL);
	assert_int_equal(dev->ops->events_sort(c.a, &c.events, NULL), 0);
	list = fixture_download(&c.events);
	assert_true(mean_distance(&c, (struct event *)(void *)list) < 0.5 * mean_distance(&c, c.list));
	qsort(c.list, c.n, sizeof(*c.list), events_compare);
	qsort(list, c.n, sizeof(*c.list), events_compare);
	assert_memory_equal(list, c.list, c.n * sizeof(*c.list));
}

static float *back_with(int threads, size_t n, bool sort)
{
	struct device *dev = fixture_device(FIXTURE_CPU, threads);
	struct events_case c;
	struct buf sum;

	events_open(dev, &events_setups[1], n, false, &c);
	if (sort)
		assert_int_equal(dev->ops->events_sort(c.a, &c.events, NULL), 0);
	assert_int_equal(dev->ops->events_back(c.a, &c.events, &c.y, &c.x, NULL), 0);
	sum = fixture_upload(dev, NULL, c.x.n);
	assert_int_equal(dev->ops->copy(&c.x, &sum, NULL), 0);
	assert_int_equal(dev->ops->events_ratio(c.a, &c.events, 1e-3f, &c.x, &sum, NULL), 0);
	return fixture_download(&sum);
}

TEST(threads)
{
	struct grid g = events_grid(&events_setups[1]);

	for (int sort = 0; sort < 2; sort++) {
		float *one = back_with(1, 70000, sort); /* more than CPU_EVENTS */

		for (int n = 2; n <= 7; n += 5) {
			float *many = back_with(n, 70000, sort);

			assert_memory_equal(one, many, grid_size(&g) * sizeof(*one));
		}
	}
}

/* Sums over a list are those over its parts one after the other, to the bit: of lists that are as long as what one pass takes, one
 * event shorter, longer, and of two passes and one event. */
TEST(lists_of_several_passes)
{
	static const size_t ends[] = {CPU_EVENTS - 1, CPU_EVENTS, CPU_EVENTS + 1, 2 * CPU_EVENTS + 1};
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct events_case c;
	struct buf parts[2], whole[2]; /* of events_back(), events_ratio() */
	float *volume;
	size_t begin = 0;

	events_open(dev, &events_setups[0], ends[3], false, &c);
	for (int i = 0; i < 4; i++) { /* the last event of each list meets the volume */
		int middle = EVENTS_RINGS / 2 * EVENTS_RING + 9 * i;

		c.list[ends[i] - 1] = (struct event){{middle, middle + EVENTS_RING / 2}, 0, 0.5F};
	}
	assert_int_equal(dev->ops->upload(&c.events, (const float *)(const void *)c.list, NULL), 0);
	volume = fixture_download(&c.x);
	for (int k = 0; k < 2; k++) {
		parts[k] = fixture_upload(dev, volume, c.x.n);
		whole[k] = fixture_upload(dev, volume, c.x.n);
	}
	for (int i = 0; i < 4; i++) {
		for (int k = 0; k < 2; k++) {
			size_t first = k ? 0 : begin;
			struct buf *sum = k ? whole : parts, events = c.events, q = c.y;

			events.mem += first * EVENT_FLOATS;
			events.n = (ends[i] - first) * EVENT_FLOATS;
			q.mem += first;
			q.n = ends[i] - first;
			for (int j = 0; k && j < 2; j++)
				assert_int_equal(dev->ops->upload(&sum[j], volume, NULL), 0);
			assert_int_equal(dev->ops->events_back(c.a, &events, &q, &sum[0], NULL), 0);
			assert_int_equal(dev->ops->events_ratio(c.a, &events, 1e-3f, &c.x, &sum[1], NULL), 0);
		}
		for (int j = 0; j < 2; j++)
			assert_memory_equal(whole[j].mem, parts[j].mem, c.x.n * sizeof(*volume));
		begin = ends[i];
	}
	assert_memory_not_equal(whole[0].mem, volume, c.x.n * sizeof(*volume));
}

/* A point on a line is seen by the bin around its distance from the middle, positive towards the first detector. */
TEST(point)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	const struct events_setup s = {"", {{81, 81, 61}, {2, 2, 2}, {0, 0, 0}, true}, {15, 10, 6}};
	const int pairs[][2] = {{5 + 7 * EVENTS_RING, 53 + 7 * EVENTS_RING},
				{30 + 6 * EVENTS_RING, 75 + 6 * EVENTS_RING},
				{20 + 4 * EVENTS_RING, 70 + 9 * EVENTS_RING},
				{66 + 8 * EVENTS_RING, 17 + 5 * EVENTS_RING}};

	for (size_t pair = 0; pair < 4; pair++)
		for (int side = -1; side <= 1; side += 2) {
			struct events_case c;
			double at[3], expected = side * 42.0, length = 0, d[3];
			size_t voxel = 0;
			float *x, *y;
			int best = 0;

			events_open(dev, &s, 15, false, &c);
			x = take_zeros(c.x.n, sizeof(*x));
			for (int k = 0; k < 3; k++) {
				d[k] = c.host_detectors[3 * pairs[pair][0] + k] - c.host_detectors[3 * pairs[pair][1] + k];
				at[k] = 0.5 *
					(c.host_detectors[3 * pairs[pair][0] + k] + c.host_detectors[3 * pairs[pair][1] + k]);
				length += d[k] * d[k];
			}
			for (int k = 0; k < 3; k++) {
				at[k] += expected * d[k] / sqrt(length);
				voxel += (size_t)floor((at[k] - c.grid.lo[k]) / c.grid.h[k]) * grid_step(&c.grid, k);
			}
			x[voxel] = 1;
			for (int k = 0; k < 15; k++)
				c.list[k] = (struct event){{pairs[pair][0], pairs[pair][1]}, k, 0};
			dev->ops->upload(&c.events, (const float *)(const void *)c.list, NULL);
			dev->ops->upload(&c.x, x, NULL);
			assert_int_equal(dev->ops->events_forward(c.a, &c.events, &c.x, &c.y, NULL), 0);
			y = fixture_download(&c.y);
			for (int k = 0; k < 15; k++)
				best = y[k] > y[best] ? k : best;
			assert_true(y[best] > 0);
			assert_int_equal(best,
					 7 + side * 4); /* bins are 10 mm wide, number 7 is in the middle: 42 is in bin 11 */
		}
}

/* The sum over all TOF bins is the row of one wide bin. */
TEST(all_bins)
{
	const struct events_setup narrow = {"", {{41, 39, 45}, {4.1, 4.3, 3}, {0, 0, 0}, true}, {13, 17.3, 11}};
	const struct events_setup wide = {"", {{41, 39, 45}, {4.1, 4.3, 3}, {0, 0, 0}, true}, {1, 13 * 17.3, 11}};
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct events_case c[2];
	float *found, *y;
	double *sum;

	events_open(dev, &narrow, 13 * 300, false, &c[0]);
	events_open(dev, &wide, 300, false, &c[1]);
	for (int i = 0; i < 13 * 300; i++) {
		c[0].list[i] = c[1].list[i / 13];
		c[0].list[i].tof = i % 13;
	}
	dev->ops->upload(&c[0].events, (const float *)(const void *)c[0].list, NULL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(dev->ops->events_forward(c[i].a, &c[i].events, &c[i].x, &c[i].y, NULL), 0);
	y = fixture_download(&c[0].y);
	found = fixture_download(&c[1].y);
	sum = take_zeros(300, sizeof(*sum));
	for (int i = 0; i < 13 * 300; i++)
		sum[i / 13] += y[i];
	assert_true(events_difference(found, sum, 300) < EVENTS_TOL);
}

/* Lines that are not steeper than 45 degrees have the entries of PROJECTION_JOSEPH. */
TEST(as_sinogram)
{
	enum { RADIAL = 31, VIEWS = 5, PLANES = 9 };
	static const double angles[VIEWS] = {3, 44, 90, 101, 152};
	struct scan_view views[VIEWS];
	struct scan_plane planes[PLANES];
	double radius[RADIAL];
	struct scan scan = {.kind = SCAN_PARALLEL,
			    .n_u = PLANES,
			    .n_v = RADIAL,
			    .n_views = VIEWS,
			    .views = views,
			    .planes = planes,
			    .radius = radius,
			    .ring_radius = 120,
			    .fov_radius = EVENTS_FOV};
	struct grid g = {{41, 39, 25}, {4.1, 4.3, 3}, {-84, -83.8, -37.5}, true};
	struct projection_spec spec = {.model = PROJECTION_JOSEPH, .scan = &scan, .n_views = VIEWS, .grid = &g};
	size_t n = VIEWS * RADIAL * PLANES, i = 0;
	float *ends = take_memory(6 * n * sizeof(*ends)), *host = events_volume(&g, 3), *found, *expected;
	struct event *list = take_zeros(n, sizeof(*list));
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct buf x = fixture_upload(dev, host, grid_size(&g)), y, detectors, events;
	double *reference = take_memory(n * sizeof(*reference));
	struct projection *projection;
	struct events *a;

	for (int u = 0; u < PLANES; u++)
		planes[u] = (struct scan_plane){u < 5 ? 6.0 * (u - 2) : 3.0 * (u - 7), u < 5 ? 0 : 17};
	for (int v = 0; v < RADIAL; v++)
		radius[v] = 5.0 * (v - 15) + 0.3;
	for (int view = 0; view < VIEWS; view++) {
		views[view] = (struct scan_view){.turn = {cos(angles[view] * M_PI / 180), sin(angles[view] * M_PI / 180)}};
		for (int v = 0; v < RADIAL; v++)
			for (int u = 0; u < PLANES; u++, i++) {
				double r = radius[v], w = sqrt(120.0 * 120 - r * r), c = views[view].turn[0],
				       s = views[view].turn[1];

				for (int end = 0; end < 2; end++) { /* the first detector is at positive t */
					double t = end ? -w : w;

					ends[6 * i + 3 * (size_t)end] = (float)(r * c - t * s);
					ends[6 * i + 3 * (size_t)end + 1] = (float)(r * s + t * c);
					ends[6 * i + 3 * (size_t)end + 2] = (float)(planes[u].z + planes[u].rise * t / w);
				}
				list[i] = (struct event){{(int32_t)(2 * i), (int32_t)(2 * i + 1)}, 0, 0};
			}
	}
	projection = fixture_projection(dev, &spec);
	y = fixture_upload(dev, NULL, n);
	assert_int_equal(dev->ops->forward(projection, &x, false, &y, NULL), 0);
	expected = fixture_download(&y);
	detectors = fixture_upload(dev, ends, 6 * n);
	events = fixture_upload(dev, (const float *)(const void *)list, n * EVENT_FLOATS);
	a = fixture_events(dev, &(struct events_spec){.grid = &g, .fov_radius = EVENTS_FOV, .detectors = &detectors, .batch = n});
	assert_int_equal(dev->ops->events_forward(a, &events, &x, &y, NULL), 0);
	found = fixture_download(&y);
	for (i = 0; i < n; i++)
		reference[i] = expected[i];
	assert_true(events_difference(found, reference, n) < EVENTS_TOL);
}

/* Events that do not exist have no effect. */
TEST(impossible)
{
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	struct events_case c;
	const struct event bad[] = {
		{{-1, 3}, 0, 0}, {{3, EVENTS_DETECTORS}, 0, 0}, {{3, 50}, -1, 0}, {{3, 50}, 13, 0}, {{7, 7}, 0, 0}};
	float *before, *after, *y;
	struct buf sum;

	events_open(dev, &events_setups[1], 5, false, &c);
	dev->ops->upload(&c.events, (const float *)(const void *)bad, NULL);
	before = fixture_download(&c.x);
	assert_int_equal(dev->ops->events_sort(c.a, &c.events, NULL), 0);
	assert_int_equal(dev->ops->events_back(c.a, &c.events, &c.y, &c.x, NULL), 0);
	sum = fixture_upload(dev, NULL, c.x.n);
	assert_int_equal(dev->ops->copy(&c.x, &sum, NULL), 0);
	assert_int_equal(dev->ops->events_ratio(c.a, &c.events, 0.1f, &c.x, &sum, NULL), 0);
	assert_int_equal(dev->ops->events_forward(c.a, &c.events, &c.x, &c.y, NULL), 0);
	after = fixture_download(&sum);
	y = fixture_download(&c.y);
	assert_memory_equal(before, after, c.x.n * sizeof(*before));
	for (int i = 0; i < 5; i++)
		assert_near(y[i], 0, 0);
}

TEST(refused)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct grid flat = {{4, 4, 4}, {1, 1, 1}, {0, 0, 0}, false};
	struct events *a = NULL;
	struct err err = {0};
	struct events_case c;
	struct buf few, part;

	events_open(dev, &events_setups[0], 10, false, &c);
	part = buf_part(&c.detectors, 0, c.detectors.n - 1);
	for (int i = 0; i < 5; i++) {
		const struct events_spec spec = {.grid = i == 0 ? &flat : &c.grid,
						 .fov_radius = i == 1 ? 0 : 1,
						 .detectors = i == 2 ? &part : &c.detectors,
						 .batch = i == 3   ? 0
							  : i == 4 ? (size_t)INT32_MAX + 1
								   : 1};

		assert_int_equal(dev->ops->events_create(dev, &spec, &a, &err), -EINVAL);
	}
	assert_null(a);
	few = buf_part(&c.x, 0, c.x.n - 1);
	assert_int_equal(dev->ops->events_forward(c.a, &c.events, &few, &c.y, &err), -EINVAL);
	few = buf_part(&c.y, 0, 9);
	assert_int_equal(dev->ops->events_back(c.a, &c.events, &few, &c.x, &err), -EINVAL);
	assert_int_equal(dev->ops->events_forward(c.a, &c.events, &c.x, &few, &err), -EINVAL);
}
