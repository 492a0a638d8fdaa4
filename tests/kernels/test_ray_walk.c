/* SPDX-License-Identifier: Apache-2.0 */
/* The ray walk compared with a brute-force Siddon (all planes, sorted) and with analytic chords, and the special cases of its
 * definition. */
#include "kernels/ray_walk.h"
#include "tests/test.h"

/* both results are double, and positions are a few hundred mm, so the error of a plane's position is about 1e-13 mm */
#define LENGTH_TOL 1e-9
/* required relative accuracy of every ray's chord */
#define CHORD_TOL 1e-5

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Compute the lengths as in Siddon 1985: sort the crossings with all planes of all axes; a piece belongs to the voxel in which
 * its middle is. */
static void brute_force(const struct grid *g, const double a[3], const double b[3], double *ret_length)
{
	size_t n = 2, planes = (size_t)(g->n[0] + g->n[1] + g->n[2] + 3) + 2;
	double *t = take_memory(planes * sizeof(*t)), span = 0;

	memset(ret_length, 0, grid_size(g) * sizeof(*ret_length));
	t[0] = 0;
	t[1] = 1;
	for (int c = 0; c < 3; c++) {
		span += (b[c] - a[c]) * (b[c] - a[c]);
		for (int p = 0; p <= g->n[c] && b[c] != a[c]; p++) {
			double at = (g->lo[c] + p * g->h[c] - a[c]) / (b[c] - a[c]);

			if (at > 0 && at < 1)
				t[n++] = at;
		}
	}
	qsort(t, n, sizeof(*t), by_value);
	for (size_t i = 1; i < n; i++) {
		size_t voxel = 0, stride = 1;
		bool inside = true;

		for (int c = 0; c < 3; c++) {
			double at = floor((a[c] + 0.5 * (t[i - 1] + t[i]) * (b[c] - a[c]) - g->lo[c]) / g->h[c]);

			inside = inside && at >= 0 && at < g->n[c];
			voxel += inside ? (size_t)at * stride : 0;
			stride *= (size_t)g->n[c];
		}
		if (inside)
			ret_length[voxel] += (t[i] - t[i - 1]) * sqrt(span);
	}
}

/* Length of the segment in the grid's box: slabs. */
static double chord(const struct grid *g, const double a[3], const double b[3])
{
	double t0 = 0, t1 = 1, span = 0;

	for (int c = 0; c < 3; c++) {
		double d = b[c] - a[c], lo = (g->lo[c] - a[c]) / d, hi = (g->lo[c] + g->n[c] * g->h[c] - a[c]) / d;

		span += d * d;
		if (d == 0) {
			if (a[c] < g->lo[c] || a[c] >= g->lo[c] + g->n[c] * g->h[c])
				return 0;
			continue;
		}
		t0 = fmax(t0, fmin(lo, hi));
		t1 = fmin(t1, fmax(lo, hi));
	}
	return t1 > t0 ? (t1 - t0) * sqrt(span) : 0;
}

static double walk(const struct grid *g, const struct voxel_box *box, const double a[3], const double b[3], double *length)
{
	struct ray_walk w;
	size_t voxel;
	double l, sum = 0;

	memset(length, 0, grid_size(g) * sizeof(*length));
	if (ray_walk_start(&w, g, box, a, b)) {
		while (ray_walk_next(&w, &voxel, &l)) {
			assert_true(voxel < grid_size(g));
			assert_true(l > 0);
			length[voxel] += l;
			sum += l;
		}
	}
	return sum;
}

static void check_ray(const struct grid *g, const double a[3], const double b[3])
{
	struct voxel_box whole = voxel_box_whole(g);
	double *expect = take_memory(grid_size(g) * sizeof(double)), *found = take_memory(grid_size(g) * sizeof(double)), sum,
	       want = chord(g, a, b);

	brute_force(g, a, b, expect);
	sum = walk(g, &whole, a, b, found);
	for (size_t i = 0; i < grid_size(g); i++)
		assert_near(found[i], expect[i], LENGTH_TOL);
	assert_near(sum, want, CHORD_TOL * want + LENGTH_TOL);
}

/* Every ray of a small scan of several views, with a moving detector, some of them beside the volume. */
TEST(every_ray_of_a_scan)
{
	const struct grid g = {{9, 11, 7}, {3.1, 2.7, 4.3}, {1.2, -15.5, 17}};
	const struct scan_view views[] = {{{0, 0, 655.5}, {0, 0}},
					  {{0, 277, 588}, {0, 0}},
					  {{0, -277, 588}, {0, 1.5}},
					  {{14, 60, 100}, {-2, 0}},
					  {{3, 5, 30}, {0, 0}}};
	const struct scan s = {SCAN_DBT, 23, 29, 5, {1.7, 1.9}, {-3, -27.55}, views};
	double a[3], b[3];

	for (int i = 0; i < s.n_views; i++) {
		for (int v = 0; v < s.n_v; v++) {
			for (int u = 0; u < s.n_u; u++) {
				scan_ray(&s, &views[i], u, v, a, b);
				check_ray(&g, a, b);
			}
		}
	}
}

TEST(random_segments)
{
	const struct grid g = {{5, 4, 6}, {1, 0.5, 2}, {-2.5, -1, -6}};
	uint32_t seed = 7;
	double a[3], b[3];

	for (int i = 0; i < 4000; i++) {
		for (int c = 0; c < 6; c++) {
			seed = seed * 1664525u + 1013904223u;
			(c < 3 ? a : b)[c % 3] = -10 + 20.0 * (seed >> 8) / (1 << 24);
		}
		check_ray(&g, a, b);
	}
}

/* Rays between points of the lattice pass exactly through edges, corners and planes. */
TEST(rays_on_the_lattice)
{
	const struct grid g = {{3, 3, 3}, {1, 1, 1}, {0, 0, 0}};
	struct voxel_box whole = voxel_box_whole(&g);
	double length[27];

	for (int i = 0; i < 7 * 7 * 7 * 7; i++) {
		double a[3] = {i % 7 - 2, i / 7 % 7 - 2, 6}, b[3] = {i / 49 % 7 - 2, i / 343 - 2, -3}, want = chord(&g, a, b);

		/* For a ray inside a face, only the rule of half-open voxels decides which voxel it crosses; for other rays the
		 * sum of lengths is the chord. */
		if (!((a[0] == b[0] && a[0] == 3) || (a[1] == b[1] && a[1] == 3)))
			assert_near(walk(&g, &whole, a, b, length), want, LENGTH_TOL);
		else
			assert_near(walk(&g, &whole, a, b, length), 0, 0);
	}
}

TEST(parallel_to_an_axis)
{
	const struct grid g = {{4, 5, 6}, {0.5, 1, 2}, {-1, 0, 10}};
	struct voxel_box whole = voxel_box_whole(&g);
	double length[120];

	for (int axis = 0; axis < 3; axis++) {
		for (int back = 0; back < 2; back++) {
			double a[3] = {-0.7, 2.2, 13.1}, b[3] = {-0.7, 2.2, 13.1};

			a[axis] = back ? 100 : -100;
			b[axis] = back ? -100 : 100;
			assert_near(walk(&g, &whole, a, b, length), g.n[axis] * g.h[axis], LENGTH_TOL);
			for (size_t i = 0; i < 120; i++)
				assert_true(length[i] == 0 || fabs(length[i] - g.h[axis]) < LENGTH_TOL);
		}
	}
	{ /* along a plane: the voxel above it; along the lower face: the first voxel; along the upper face: none */
		double a[3] = {0, 2.5, 100}, b[3] = {0, 2.5, -100};

		assert_near(walk(&g, &whole, a, b, length), 12, LENGTH_TOL);
		assert_near(length[2 + 2 * 4], 2, LENGTH_TOL);
		a[0] = b[0] = -1;
		assert_near(walk(&g, &whole, a, b, length), 12, LENGTH_TOL);
		assert_near(length[2 * 4], 2, LENGTH_TOL);
		a[0] = b[0] = 1;
		assert_near(walk(&g, &whole, a, b, length), 0, 0);
	}
}

TEST(nearly_parallel)
{
	const struct grid g = {{8, 8, 8}, {1, 1, 1}, {0, 0, 0}};
	struct voxel_box whole = voxel_box_whole(&g);
	double length[512];

	for (double tilt = 1e-3; tilt > 1e-300; tilt *= 1e-3) {
		double a[3] = {4 - tilt, 3.5, 20}, b[3] = {4 + tilt, 3.5, -12};

		assert_near(walk(&g, &whole, a, b, length), 8, 1e-5);
	}
}

TEST(misses_and_nonsense)
{
	const struct grid g = {{4, 4, 4}, {1, 1, 1}, {0, 0, 0}};
	struct voxel_box whole = voxel_box_whole(&g);
	const double rays[][2][3] = {
		{{-1, -1, -1}, {-1, -1, 9}}, {{5, 5, 5}, {9, 9, 9}},   {{-9, 0, 0}, {-1, 0, 0}},      {{1, 1, 1}, {1, 1, 1}},
		{{-1, 6, 2}, {6, -1, 9}},    {{NAN, 1, 1}, {1, 1, 9}}, {{1, 1, 1}, {1, INFINITY, 9}}, {{4, 0, -1}, {4, 0, 9}},
	};
	double length[64];

	for (size_t i = 0; i < sizeof(rays) / sizeof(rays[0]); i++)
		assert_near(walk(&g, &whole, rays[i][0], rays[i][1], length), 0, 0);
}

/* A segment that begins or ends inside. */
TEST(partial_segments)
{
	const struct grid g = {{4, 4, 4}, {1, 1, 1}, {0, 0, 0}};
	const double inside[3] = {1.3, 2.2, 0.4}, outside[3] = {1.3, 2.2, 20}, deeper[3] = {1.3, 2.2, 3.1};

	check_ray(&g, inside, outside);
	check_ray(&g, outside, inside);
	check_ray(&g, inside, deeper);
}

/* Walks through the boxes of a divided grid give the same lengths as a walk through the whole grid. */
TEST(boxes_share_lengths)
{
	const struct grid g = {{10, 9, 8}, {1.1, 0.9, 1.3}, {-4, -5, 2}};
	struct voxel_box whole = voxel_box_whole(&g);
	double expect[720], part[720], sum[720];
	uint32_t seed = 3;

	for (int ray = 0; ray < 500; ray++) {
		double a[3], b[3];

		for (int c = 0; c < 6; c++) {
			seed = seed * 1664525u + 1013904223u;
			(c < 3 ? a : b)[c % 3] = -20 + 40.0 * (seed >> 8) / (1 << 24);
		}
		walk(&g, &whole, a, b, expect);
		memset(sum, 0, sizeof(sum));
		for (int t = 0; t < 12; t++) {
			struct voxel_box box = {{t % 4 * 3, t / 4 * 4, 0}, {t % 4 * 3 + 3, t / 4 * 4 + 4, 8}};

			box.end[0] = box.end[0] > 10 ? 10 : box.end[0];
			box.end[1] = box.end[1] > 9 ? 9 : box.end[1];
			walk(&g, &box, a, b, part);
			for (size_t i = 0; i < 720; i++)
				sum[i] += part[i];
		}
		for (size_t i = 0; i < 720; i++)
			assert_near(sum[i], expect[i], 1e-12);
	}
}
