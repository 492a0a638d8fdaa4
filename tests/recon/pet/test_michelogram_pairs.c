/* SPDX-License-Identifier: Apache-2.0 */
/* Detector pairs of bins: every pair of detectors there and back, the ends of the rays that scan_ray() computes, ring pairs
 * counted one by one, values computed by hand, refusals. */
#include "recon/core/scan.h"
#include "recon/pet/michelogram_pairs.h"
#include "tests/recon/pet/michelogram_fixture.h"
#include "tests/test.h"

static struct michelogram make(int rings, int detectors, int n_radial, int n_angles, int span, int largest)
{
	struct michelogram m = {.scanner = {rings, detectors, 4, 90, 5, 2}, .n_radial = n_radial, .n_angles = n_angles};

	fixture_segments(&m, span, largest);
	return m;
}

/* Is the pair one of those that the inverse functions list for the bin? */
static bool is_listed(const struct michelogram_index *x, const struct michelogram_bin *b, const struct michelogram_ends *e)
{
	int first = b->exchanged, second = !first, crystal[2];
	struct michelogram_rings r = michelogram_plane_rings(x, b->plane);
	int difference = e->ring[first] - e->ring[second];
	bool rings, crystals = false;

	rings = e->ring[0] + e->ring[1] == r.sum && difference >= r.difference && difference < r.difference + 2 * r.n &&
		(difference - r.difference) % 2 == 0;
	for (int view = 0; view < x->mash; view++) {
		michelogram_crystals(x, b->angle, b->radial, view, crystal);
		crystals = crystals || (crystal[0] == e->crystal[first] && crystal[1] == e->crystal[second]);
	}
	return rings && crystals;
}

/* Go through every pair of detectors, in both orders: their bin contains them, and so many pairs are found as the bins have. */
static void check_pairs(const struct michelogram *m)
{
	struct michelogram_index x;
	size_t found = 0, expected = 0, detectors;

	assert_int_equal(michelogram_index_init(m, &x, NULL), 0);
	assert_int_equal(x.n_planes, michelogram_planes(m));
	detectors = (size_t)x.rings * (size_t)x.detectors;
	for (size_t i = 0; i < detectors * detectors; i++) {
		struct michelogram_ends e = {
			{(int)(i % detectors) / x.detectors, (int)(i / detectors) / x.detectors},
			{(int)(i % detectors) % x.detectors, (int)(i / detectors) % x.detectors},
		};
		struct michelogram_ends back = {{e.ring[1], e.ring[0]}, {e.crystal[1], e.crystal[0]}};
		struct michelogram_bin b = {0}, other = {0};

		if (!michelogram_bin_of(&x, &e, &b)) {
			assert_false(michelogram_bin_of(&x, &back, &other));
			continue;
		}
		found++;
		assert_in_range(b.plane, 0, x.n_planes - 1);
		assert_in_range(b.angle, 0, x.n_angles - 1);
		assert_in_range(b.radial, 0, x.n_radial - 1);
		assert_true(is_listed(&x, &b, &e));
		assert_true(michelogram_bin_of(&x, &back, &other));
		assert_true(b.plane == other.plane && b.angle == other.angle && b.radial == other.radial);
		assert_true(b.exchanged != other.exchanged);
	}
	for (int plane = 0; plane < x.n_planes; plane++)
		expected += (size_t)michelogram_plane_rings(&x, plane).n;
	expected *= (size_t)x.n_angles * (size_t)x.mash * (size_t)x.n_radial * 2; /* two orders */
	assert_int_equal(found, expected);
}

TEST(there_and_back)
{
	static const int cases[][6] = {{3, 16, 15, 8, 1, 2}, {5, 16, 14, 8, 3, 4}, {5, 16, 9, 4, 3, 4}, {4, 18, 16, 9, 2, 3},
				       {4, 20, 12, 5, 1, 3}, {1, 8, 7, 4, 1, 0},   {9, 8, 6, 2, 7, 3},	{6, 12, 11, 1, 1, 3}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const int *c = cases[i];
		struct michelogram m = make(c[0], c[1], c[2], c[3], c[4], c[5]);

		check_pairs(&m);
	}
}

/* The ray of scan_ray(), continued to the ring, ends at the detectors: bins of even t exactly, of odd t half a detector further;
 * of views that were added in the middle of their detectors. crystal: that of the first view. */
static void check_end(const struct michelogram *m, const double p[3], int crystal, double z, int odd, int mash)
{
	double ring = m->scanner.radius + m->scanner.interaction_depth, pitch = 2 * M_PI / m->scanner.detectors;
	double angle = m->angle_offset * M_PI / 180 + (crystal + 0.5 * (odd + mash - 1) - m->scanner.detectors / 4.0) * pitch;

	assert_near(p[0], ring * cos(angle), 1e-9); /* doubles of 100 mm */
	assert_near(p[1], ring * sin(angle), 1e-9);
	assert_near(p[2], z, 1e-9);
}

static void continue_to_ring(const struct scan *scan, const double a[3], const double b[3], double ret_first[3],
			     double ret_second[3])
{
	double half = hypot(b[0] - a[0], b[1] - a[1]) / 2, r2 = (pow(a[0] + b[0], 2) + pow(a[1] + b[1], 2)) / 4;
	double more = sqrt(scan->ring_radius * scan->ring_radius - r2) / half;

	for (int i = 0; i < 3; i++) {
		double mid = (a[i] + b[i]) / 2, way = (b[i] - a[i]) / 2;

		ret_first[i] = mid + more * way;
		ret_second[i] = mid - more * way;
	}
}

static void check_ends(int n_angles)
{
	struct michelogram m = make(5, 16, 14, n_angles, 1, 4);
	struct michelogram_index x;
	struct scan *scan;
	int *number, crystal[2];
	double a[3], b[3], first[3], second[3];

	m.angle_offset = 17;
	assert_int_equal(michelogram_index_init(&m, &x, NULL), 0);
	scan = fixture_michelogram_scan(&m, 94.999, &number);
	for (int u = 0; u < scan->n_u; u++) {
		struct michelogram_rings r = michelogram_plane_rings(&x, number[u]);

		assert_int_equal(r.n, 1);
		for (int i = 0; i < m.n_angles * m.n_radial; i++) {
			int angle = i / m.n_radial, radial = i % m.n_radial, odd = (radial - 7) & 1;

			assert_true(scan_ray(scan, &scan->views[angle], u, radial, a, b));
			continue_to_ring(scan, a, b, first, second);
			michelogram_crystals(&x, angle, radial, 0, crystal);
			check_end(&m, first, crystal[0], ((r.sum + r.difference) / 2 - 2) * 4.0, odd, x.mash);
			check_end(&m, second, crystal[1], ((r.sum - r.difference) / 2 - 2) * 4.0, odd, x.mash);
		}
	}
}

TEST(ends_of_rays)
{
	for (int n_angles = 8; n_angles >= 1; n_angles /= 2) /* 1, 2, 4, 8 views in one */
		check_ends(n_angles);
}

/* Siemens mMR: 504 detectors, 64 rings, span 11, ring differences up to 60. */
TEST(by_hand)
{
	struct michelogram m = make(64, 504, 344, 252, 11, 60);
	struct michelogram_ends e = {{20, 10}, {252, 0}}, turned = {{10, 20}, {0, 252}};
	struct michelogram_index x;
	struct michelogram_rings r;
	struct michelogram_bin b = {0};
	int crystal[2];

	assert_int_equal(michelogram_index_init(&m, &x, NULL), 0);
	assert_true(michelogram_bin_of(&x, &e, &b));
	/* Difference 10: segment 6 .. 16, from plane 127, smallest sum 6. */
	assert_int_equal(b.plane, 127 + 30 - 6);
	assert_int_equal(b.angle, 0);
	assert_int_equal(b.radial, 172);
	assert_false(b.exchanged);
	assert_true(michelogram_bin_of(&x, &turned, &b));
	assert_int_equal(b.plane, 127 + 30 - 6);
	assert_true(b.exchanged);
	e = (struct michelogram_ends){{10, 20}, {252, 0}};
	assert_true(michelogram_bin_of(&x, &e, &b));
	assert_int_equal(b.plane, 127 + 115 + 30 - 6); /* the segment -16 .. -6 */
	/* View 100, t = -5: the second end is 100 + floor(-2.5) = 97, the first 100 - floor(-2) + 252 = 354. */
	michelogram_crystals(&x, 100, 167, 0, crystal);
	assert_int_equal(crystal[0], 354);
	assert_int_equal(crystal[1], 97);
	/* Plane 63 of segment 0 is ring 31 with 32, 30 with 33, ... differences -5 .. 5. */
	r = michelogram_plane_rings(&x, 63);
	assert_int_equal(r.sum, 63);
	assert_int_equal(r.difference, -5);
	assert_int_equal(r.n, 6);
	r = michelogram_plane_rings(&x, 1); /* rings 0 and 1, in both orders */
	assert_int_equal(r.difference, -1);
	assert_int_equal(r.n, 2);
	r = michelogram_plane_rings(&x, 836); /* the last: rings 63 and 13 with 50 .. 60 */
	assert_int_equal(r.sum, 76);
	assert_int_equal(r.difference, -50);
	assert_int_equal(r.n, 1);
	e = (struct michelogram_ends){{61, 0}, {252, 0}}; /* difference 61 is not stored */
	assert_false(michelogram_bin_of(&x, &e, &b));
	e = (struct michelogram_ends){{1, 0}, {40, 41}}; /* neighbours: t = +-251 */
	assert_false(michelogram_bin_of(&x, &e, &b));
}

static void refuse(struct michelogram m, const char *words)
{
	struct michelogram_index x = {.rings = -7};
	struct err err = {0};

	assert_int_equal(michelogram_index_init(&m, &x, &err), -EINVAL);
	assert_int_equal(x.rings, -7);
	assert_non_null(strstr(err.msg, words));
}

TEST(refusals)
{
	static const struct michelogram_ends bad[] = {
		{{0, 0}, {3, 3}}, {{5, 0}, {8, 0}}, {{-1, 0}, {8, 0}}, {{0, 0}, {16, 8}}, {{0, 0}, {8, -1}}, {{0, 5}, {8, 0}},
	};
	struct michelogram good = make(5, 16, 14, 8, 1, 4), m = good;
	struct michelogram_index x;
	struct michelogram_bin b = {.plane = -7};

	assert_int_equal(michelogram_index_init(&m, &x, NULL), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(michelogram_bin_of(&x, &bad[i], &b));
	assert_int_equal(b.plane, -7);
	m.arc_corrected = true;
	refuse(m, "arc-corrected");
	m = good;
	m.scanner.detectors = 17;
	refuse(m, "17 detectors");
	m = good;
	m.n_angles = 3;
	refuse(m, "3 angles of 16 detectors");
	m.n_angles = 16;
	refuse(m, "16 angles of 16 detectors");
	m = good;
	m.scanner.rings = 0;
	refuse(m, "0 rings");
}
