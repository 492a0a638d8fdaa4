/* SPDX-License-Identifier: Apache-2.0 */
/* Scans: geometry, binning, order, invalid arguments. Subsets: every view once, far apart. */
#include <time.h>

#include "recon/core/subsets.h"
#include "tests/recon/dbt_fixture.h"

static const double angles[] = {-25, -10.5, 0, 12, 25};
static const struct dbt_geometry siemens = {2816, 3584, 0.085, 47, 608.5, 3, 5, angles};

TEST(geometry)
{
	struct scan *scan = NULL;
	double a[3], b[3];

	assert_int_equal(scan_create_dbt(&siemens, &scan, NULL), 0);
	assert_int_equal(scan->kind, SCAN_DBT);
	assert_int_equal(scan->n_views, 5);
	/* Doubles of a few hundred mm: 1e-12. */
	assert_near(scan->views[2].src[2], 655.5, 1e-12);
	assert_near(scan->views[2].src[1], 0, 1e-12);
	assert_near(scan->views[4].src[1], 608.5 * sin(25 * acos(-1) / 180), 1e-10);
	assert_near(scan->views[0].src[1], -scan->views[4].src[1], 1e-10);
	assert_near(scan->views[4].src[2], 47 + 608.5 * cos(25 * acos(-1) / 180), 1e-10);
	for (int i = 0; i < 5; i++) {
		assert_near(scan->views[i].src[0], 3, 0);
		assert_near(scan->views[i].shift[0], 0, 0);
	}
	scan_ray(scan, &scan->views[0], 0, 0, a, b);
	assert_near(b[0], 0.0425, 1e-12);
	assert_near(b[1], -152.32 + 0.0425, 1e-12);
	scan_ray(scan, &scan->views[0], 2815, 3583, a, b);
	assert_near(b[0], 239.36 - 0.0425, 1e-10);
	assert_near(b[1], 152.32 - 0.0425, 1e-10);
	assert_null(scan_free(scan));
	assert_null(scan_free(NULL));
}

/* The two definitions of an angle: 12.5 degrees as seen from the detector are 0.80 more about an axis 40 mm above it. */
TEST(angle_definitions)
{
	assert_near(scan_angle_turned(12.5, 40, 620), 13.3, 0.001);
	assert_near(scan_angle_turned(12.5, 0, 700), 12.5, 1e-12);
	for (int a = -60; a <= 60; a += 7) {
		assert_near(scan_angle_seen(scan_angle_turned(a, 40, 620), 40, 620), a, 1e-10);
		assert_near(scan_angle_turned(scan_angle_seen(a, 47, 608.5), 47, 608.5), a, 1e-10);
	}
}

TEST(binned)
{
	static const int order[] = {3, 0, 4, 1, 2}, wrong[] = {0, 1, 2, 3, 5};
	struct scan *scan, *four, *bad = NULL;
	struct err err;
	double a[3], b[3], middle = 0;

	assert_int_equal(scan_create_dbt(&siemens, &scan, NULL), 0);
	assert_int_equal(scan_create_binned(scan, 4, order, &four, NULL), 0);
	assert_int_equal(four->n_u, 704);
	assert_int_equal(four->n_v, 896);
	assert_near(four->h[0], 0.34, 1e-15);
	for (int i = 0; i < 5; i++) { /* not the bytes between the members */
		assert_memory_equal(four->views[i].src, scan->views[order[i]].src, sizeof(scan->views[0].src));
		assert_memory_equal(four->views[i].shift, scan->views[order[i]].shift, sizeof(scan->views[0].shift));
		assert_false(four->views[i].posed);
	}
	/* A merged bin's centre is the mean of its bins' centres. */
	for (int u = 8; u < 12; u++) {
		scan_ray(scan, &scan->views[0], u, 0, a, b);
		middle += b[0] / 4;
	}
	scan_ray(four, &four->views[1], 2, 0, a, b);
	assert_near(b[0], middle, 1e-12);
	assert_int_equal(scan_create_binned(scan, 0, NULL, &bad, &err), -EINVAL);
	assert_int_equal(scan_create_binned(scan, 2817, NULL, &bad, &err), -EINVAL);
	assert_int_equal(scan_create_binned(scan, 1, wrong, &bad, &err), -EINVAL);
	assert_null(bad);
	four->kind = SCAN_PARALLEL;
	assert_int_equal(scan_create_binned(four, 1, NULL, &bad, &err), -EINVAL);
	assert_null(bad);
	scan_free(four);
	assert_int_equal(scan_create_binned(scan, 3, NULL, &four, NULL), 0);
	assert_int_equal(four->n_u, 938); /* two columns remain and are dropped */
	scan_free(four);
	scan_free(scan);
}

TEST(refusals)
{
	struct dbt_geometry g;
	double bad[5];

#define REFUSED_SCAN(field, value, word)                                                                                         \
	g = siemens, g.field = value;                                                                                            \
	fixture_refuse_scan(&g, word)
	REFUSED_SCAN(n_views, 1, "1 projection;");
	REFUSED_SCAN(n_views, 0, "0 projections");
	REFUSED_SCAN(n_views, -3, "projections");
	REFUSED_SCAN(pitch, NAN, "pitch");
	REFUSED_SCAN(pitch, 0, "pitch");
	REFUSED_SCAN(source_axis, -608.5, "source");
	REFUSED_SCAN(source_axis, NAN, "source");
	REFUSED_SCAN(source_x, INFINITY, "source");
	REFUSED_SCAN(axis_height, NAN, "axis");
	REFUSED_SCAN(axis_height, -608.5, "not above the whole detector"); /* the source of the middle view is in the detector */
	REFUSED_SCAN(n_u, 0, "0 x 3584");
	REFUSED_SCAN(n_u, 100000, "100000");
	memcpy(bad, angles, sizeof(bad));
	bad[3] = bad[1] + 0.009;
	REFUSED_SCAN(angle, bad, "projections 1 and 3 have the same angle");
	bad[3] = NAN;
	REFUSED_SCAN(angle, bad, "projection 3");
	bad[3] = 90;
	REFUSED_SCAN(angle, bad, "projection 3");
	bad[3] = INFINITY;
	REFUSED_SCAN(angle, bad, "projection 3");
}

/* Every number of subsets of every number of views: each view once, sizes differ by at most one, neighbours far apart. */
TEST(subsets)
{
	double position[40];
	int order[40], first[41], seen[40], place[40];

	for (int n = 1; n <= 40; n++) {
		for (int i = 0; i < n; i++)
			position[i] = (i * 17 % 41) * 1.5 - 20; /* in any order, all different */
		for (int s = 0; s <= n; s++) {
			int got = subsets_make(position, n, s, order, first, NULL), want = s ? s : n;

			assert_int_equal(got, want);
			assert_int_equal(first[0], 0);
			assert_int_equal(first[got], n);
			memset(seen, 0, sizeof(seen));
			for (int i = 0; i < n; i++)
				seen[order[i]]++;
			for (int i = 0; i < n; i++)
				assert_int_equal(seen[i], 1);
			for (int i = 0; i < got; i++)
				assert_true(first[i + 1] - first[i] == n / got || first[i + 1] - first[i] == n / got + 1);
			assert_int_equal(subsets_largest(first, got), (n + got - 1) / got);
			subsets_places(order, n, place);
			for (int i = 0; i < n; i++)
				assert_int_equal(order[place[i]], i);
		}
	}
}

/* The largest number of views takes little time, because a plan divides views many times. Positions are descending, so that order
 * and rank differ. */
TEST(subsets_of_many_views)
{
	enum { N = 4096 };
	double *position = take_memory(N * sizeof(*position));
	int *order = take_memory(N * sizeof(*order)), *first = take_memory((N + 1) * sizeof(*first));
	clock_t begin = clock();

	for (int i = 0; i < N; i++)
		position[i] = -i;
	assert_int_equal(subsets_make(position, N, 2, order, first, NULL), 2);
	for (int i = 0; i < N; i++)
		assert_int_equal(order[i], N - 1 - (i < N / 2 ? 2 * i : 2 * (i - N / 2) + 1));
	assert_true(clock() - begin < 2 * CLOCKS_PER_SEC); /* of processor time; a search for each view takes longer */
}

TEST(subsets_are_far_apart)
{
	double position[25];
	int order[25], first[26];

	for (int i = 0; i < 25; i++)
		position[i] = i;
	assert_int_equal(subsets_make(position, 25, 0, order, first, NULL), 25);
	for (int i = 1; i < 25; i++)
		assert_true(abs(order[i] - order[i - 1]) >= 8); /* of 25; at random the mean is 8.7, and neighbours occur */
}

TEST(subsets_refuse)
{
	double position[3] = {0, 1, 2};
	int order[3], first[4];
	struct err err;

	assert_error(subsets_make(position, 3, 4, order, first, &err), &err, EINVAL, "subsets=4");
	assert_int_equal(subsets_make(position, 3, -1, order, first, &err), -EINVAL);
	assert_int_equal(subsets_make(position, 0, 0, order, first, &err), -EINVAL);
	position[1] = NAN;
	assert_int_equal(subsets_make(position, 3, 0, order, first, &err), -EINVAL);
}
