/* SPDX-License-Identifier: Apache-2.0 */
/* Michelograms: published counts of planes and bins, positions and rises computed by hand, ring pairs one by one, invalid
 * arguments. */
#include "recon/core/scan.h"
#include "recon/pet/michelogram.h"
#include "tests/recon/pet/michelogram_fixture.h"
#include "tests/test.h"

static const struct pet_scanner ste = {24, 560, 6.54, 443.1, 8.4, 2.397};
static const struct pet_scanner mmr = {64, 504, 4.0625, 328, 6.7, 2.0445};

static struct michelogram make(const struct pet_scanner *scanner, int n_radial, int n_angles, int span, int largest)
{
	struct michelogram m = {.scanner = *scanner, .n_radial = n_radial, .n_angles = n_angles, .arc_corrected = true};

	fixture_segments(&m, span, largest);
	assert_int_equal(michelogram_check(&m, NULL), 0);
	return m;
}

TEST(counts)
{
	static const int span_11[] = {127, 115, 93, 71, 49, 27};
	struct michelogram m = make(&ste, 329, 280, 2, 23);

	assert_int_equal(m.n_segments, 23);
	assert_int_equal(m.segments[0].n_planes, 47);
	for (int i = 1; i < 23; i++) {
		int k = (i + 1) / 2, first = i % 2 ? 2 * k : -2 * k - 1; /* (2, 3), (-3, -2), (4, 5) ... */

		assert_int_equal(m.segments[i].first, first);
		assert_int_equal(m.segments[i].last, first + 1);
		assert_int_equal(m.segments[i].n_planes, 47 - 4 * k); /* 43, 43, 39, 39 ... 3, 3 */
	}
	assert_int_equal(michelogram_planes(&m), 553);
	assert_int_equal(michelogram_size(&m), (size_t)553 * 280 * 329); /* 50.94 M */

	m = make(&mmr, 344, 252, 11, 60); /* Delso et al. 2011 and NiftyPET: 837 planes */
	assert_int_equal(m.n_segments, 11);
	for (int i = 0; i < 11; i++)
		assert_int_equal(m.segments[i].n_planes, span_11[(i + 1) / 2]);
	assert_int_equal(michelogram_planes(&m), 837);
	m = make(&mmr, 344, 252, 1, 60);
	assert_int_equal(m.n_segments, 121);
	assert_int_equal(michelogram_planes(&m), 4084);
	m = make(&mmr, 344, 252, 1, 63);
	assert_int_equal(michelogram_planes(&m), 4096); /* every ring pair */
	/* Ring differences that do not fill a segment are omitted: 23 in this case. */
	m = make(&ste, 329, 280, 3, 23);
	assert_int_equal(m.segments[m.n_segments - 1].first, -22);
}

/* Return the plane of the scan that is plane `wanted` of the michelogram. */
static struct scan_plane plane_of(const struct scan *scan, const int *number, int wanted)
{
	for (int u = 0; u < scan->n_u; u++)
		if (number[u] == wanted)
			return scan->planes[u];
	fail_msg("the scan has no plane %d of the michelogram", wanted);
	return scan->planes[0];
}

static void check_plane(const struct scan *scan, const int *number, int wanted, double z, double rise)
{
	struct scan_plane p = plane_of(scan, number, wanted);

	assert_near(p.z, z, 1e-12); /* doubles of some 100 mm */
	assert_near(p.rise, rise, 1e-12);
}

TEST(planes)
{
	struct michelogram m = make(&ste, 329, 280, 2, 23);
	int *number;
	struct scan *scan = fixture_michelogram_scan(&m, 350, &number);

	assert_int_equal(scan->n_u, 553);
	assert_near(scan->ring_radius, 451.5, 1e-12);
	check_plane(scan, number, 0, -75.21, 0); /* ring 0 with itself: -11.5 * 6.54 */
	check_plane(scan, number, 1, -71.94, 0); /* rings 0 and 1 */
	check_plane(scan, number, 23, 0, 0);
	check_plane(scan, number, 46, 75.21, 0);
	/* Segment (2, 3) from 47 on: ring 2 with 0 at sum 2, ring 3 with 0 at sum 3; then the negative segment with the rings
	 * exchanged. */
	check_plane(scan, number, 47, -68.67, 6.54);
	check_plane(scan, number, 48, -65.4, 9.81);
	check_plane(scan, number, 49, -62.13, 6.54);
	check_plane(scan, number, 89, 68.67, 6.54);
	check_plane(scan, number, 90, -68.67, -6.54);
	check_plane(scan, number, 91, -65.4, -9.81);
	/* The last planes: rings 0 and 22, 0 and 23, 1 and 23. */
	check_plane(scan, number, 550, -3.27, -71.94);
	check_plane(scan, number, 551, 0, -75.21);
	check_plane(scan, number, 552, 3.27, -71.94);

	m = make(&mmr, 344, 252, 11, 60);
	scan = fixture_michelogram_scan(&m, 290, &number);
	check_plane(scan, number, 0, -127.96875, 0); /* -31.5 * 4.0625 */
	/* Segment 6 .. 16: sums 6 .. 120, mean difference 11 for either parity. */
	check_plane(scan, number, 127, -31.5 * 4.0625 + 6 * 2.03125, 11 * 2.03125);
	check_plane(scan, number, 128, -31.5 * 4.0625 + 7 * 2.03125, 11 * 2.03125);
	check_plane(scan, number, 127 + 115, -31.5 * 4.0625 + 6 * 2.03125, -11 * 2.03125);
}

/* Every plane once; planes of equal rise are consecutive, z ascending. */
static void order_of_planes(const struct michelogram *m)
{
	size_t n = michelogram_planes(m);
	char *seen = take_zeros(n, 1);
	int *number;
	struct scan *scan = fixture_michelogram_scan(m, 100, &number);

	assert_int_equal(scan->n_u, n);
	for (int u = 0; u < scan->n_u; u++) {
		const struct scan_plane *p = &scan->planes[u];

		assert_in_range(number[u], 0, n - 1);
		assert_int_equal(seen[number[u]]++, 0);
		if (u && p->rise == p[-1].rise)
			assert_true(p->z > p[-1].z);
		else
			for (int i = 0; i < u; i++)
				assert_true(scan->planes[i].rise != p->rise);
	}
}

TEST(every_plane)
{
	static const struct {
		int rings, span, largest;
	} cases[] = {{24, 2, 23}, {64, 11, 60}, {64, 1, 60}, {24, 3, 22}, {24, 7, 17}, {2, 2, 1}, {1, 1, 0}, {5, 1, 4}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pet_scanner scanner = ste;
		struct michelogram m;

		scanner.rings = cases[i].rings;
		m = make(&scanner, 5, 3, cases[i].span, cases[i].largest);
		order_of_planes(&m);
	}
}

/* Span 1: each plane is one ring pair, whose rays go from the middle of one ring to the middle of the other. */
TEST(ring_pairs)
{
	struct michelogram m = make(&ste, 9, 4, 1, 23);
	struct scan *scan;
	double a[3], b[3], c[3];
	int *number, at = 0;

	m.scanner.detectors = 8; /* no views are added */
	scan = fixture_michelogram_scan(&m, 451.4, &number);
	for (int i = 0; i < m.n_segments; i++)
		for (int k = 0; k < m.segments[i].n_planes; k++, at++) {
			int d = m.segments[i].first, low = k, high = k + abs(d);
			double z_low = (low - 11.5) * 6.54, z_high = (high - 11.5) * 6.54;
			struct scan_plane p = plane_of(scan, number, at);

			/* The first end, at positive t, is ring `high` where d > 0. */
			assert_near(p.z + p.rise, d > 0 ? z_high : z_low, 1e-10);
			assert_near(p.z - p.rise, d > 0 ? z_low : z_high, 1e-10);
		}
	assert_int_equal(at, 576);
	/* Check the ray: bin 4 is the middle, phi = 0, along y; the field of view ends 0.1 mm inside the ring. */
	for (int u = 0; u < scan->n_u; u++) {
		assert_true(scan_ray(scan, &scan->views[0], u, 4, a, b));
		assert_near(a[1], -451.4, 1e-9);
		assert_near(b[1], 451.4, 1e-9);
		for (int i = 0; i < 3; i++)
			c[i] = a[i] + (b[i] - a[i]) * (451.4 + 451.5) / (2 * 451.4);
		assert_near(c[2], scan->planes[u].z + scan->planes[u].rise, 1e-9);
	}
}

TEST(angles_and_radii)
{
	static const int order[] = {3, 0, 2, 1}, twice[] = {0, 1, 2, 1}, beyond[] = {0, 1, 2, 4};
	struct michelogram m = make(&ste, 329, 4, 2, 23);
	struct scan *scan, *none = NULL;
	int *number, *no_number = NULL;
	struct err err = {0};

	/* 70 of 280 views in each angle: it begins 34.5 of them later */
	assert_near(michelogram_angle(&m, 0), 34.5 * 180 / 280, 1e-12);
	assert_near(michelogram_angle(&m, 3), 34.5 * 180 / 280 + 135, 1e-12);
	m.scanner.detectors = 564; /* 70.5 of 282: not added ones */
	assert_near(michelogram_angle(&m, 0), 0, 0);
	m.scanner.detectors = 0; /* not known */
	assert_near(michelogram_angle(&m, 1), 45, 0);
	assert_int_equal(scan_create_michelogram(&m, 350, order, &scan, &number, NULL), 0);
	test_later(give_back_scan_free, scan);
	test_later(free, number);
	/* 135, 0, 90, 45 degrees; exact along the axes. */
	assert_near(scan->views[0].turn[0], -sqrt(0.5), 1e-15);
	assert_near(scan->views[0].turn[1], sqrt(0.5), 1e-15);
	assert_true(scan->views[1].turn[0] == 1 && scan->views[1].turn[1] == 0);
	assert_true(scan->views[2].turn[0] == 0 && scan->views[2].turn[1] == 1);
	assert_near(scan->views[3].turn[0], sqrt(0.5), 1e-15);
	assert_near(scan->views[3].turn[1], sqrt(0.5), 1e-15);
	assert_near(scan->radius[0], -164 * 2.397, 1e-10);
	assert_near(scan->radius[164], 0, 0);
	assert_near(scan->radius[328], 164 * 2.397, 1e-10);
	assert_error(scan_create_michelogram(&m, 350, twice, &none, &no_number, &err), &err, EINVAL, "angle 1 twice");
	assert_error(scan_create_michelogram(&m, 350, beyond, &none, &no_number, &err), &err, EINVAL, "angle 4 of 4");
	assert_null(none);
	assert_null(no_number);
	/* An angle offset; angles beyond 180 degrees. */
	m.angle_offset = -90;
	scan = fixture_michelogram_scan(&m, 350, &number);
	assert_true(scan->views[0].turn[0] == 0 && scan->views[0].turn[1] == -1);
	assert_true(scan->views[2].turn[0] == 1 && scan->views[2].turn[1] == 0);
	/* Without arc correction: one bin per detector pair, at R sin(); the middle of an even number of bins is bin n / 2. */
	m.arc_corrected = false;
	m.scanner.detectors = 560;
	m.n_radial = 560;
	assert_near(michelogram_radius(&m, 280), 0, 0);
	assert_near(michelogram_radius(&m, 0), -451.5, 1e-10);
	assert_near(michelogram_radius(&m, 281), 451.5 * sin(acos(-1) / 560), 1e-10);
	scan = fixture_michelogram_scan(&m, 350, &number);
	for (int t = 1; t < 560; t++)
		assert_true(scan->radius[t] > scan->radius[t - 1]);
}

static void refuse(const struct michelogram *m, double fov, const char *words)
{
	struct scan *scan = NULL;
	int *number = NULL;
	struct err err = {0};

	assert_error(scan_create_michelogram(m, fov, NULL, &scan, &number, &err), &err, EINVAL, words);
	assert_null(scan);
	assert_null(number);
}

/* One number of a good michelogram is changed: beyond each limit and at it. */
static const struct limit {
	REFUSED;
	size_t at;
	bool is_double;
	double bad, good;
} limits[] = {
#define WHOLE(member, bad, good) offsetof(struct michelogram, member), false, bad, good
#define NUMBER(member, bad, good) offsetof(struct michelogram, member), true, bad, good
	{{"no rings", EINVAL, "0 rings"}, WHOLE(scanner.rings, 0, 24)},
	{{"too many rings", EINVAL, "1025 rings"}, WHOLE(scanner.rings, 1025, 24)},
	{{"fewer rings than segments need", EINVAL, "ring differences -1 to 1; 1 rings"}, WHOLE(scanner.rings, 1, 24)},
	{{"planes of other rings", EINVAL, "segment 0 has 47 planes"}, WHOLE(scanner.rings, 25, 24)},
	{{"rings nowhere", EINVAL, "rings nan mm apart"}, NUMBER(scanner.ring_spacing, NAN, 1e-3)},
	{{"rings upon each other", EINVAL, "rings 0 mm apart"}, NUMBER(scanner.ring_spacing, 0, 1e-3)},
	{{"rings far apart", EINVAL, "apart"}, NUMBER(scanner.ring_spacing, 10000.1, 10000)},
	{{"a radius below 0", EINVAL, "-1 mm radius"}, NUMBER(scanner.radius, -1, 1)},
	{{"no radius", EINVAL, "0 mm radius"}, NUMBER(scanner.radius, 0, 1)},
	{{"a radius without end", EINVAL, "inf mm radius"}, NUMBER(scanner.radius, INFINITY, 10000)},
	{{"a radius that is too large", EINVAL, "radius"}, NUMBER(scanner.radius, 10000.1, 10000)},
	{{"a depth below 0", EINVAL, "depth of interaction -1 mm"}, NUMBER(scanner.interaction_depth, -1, 0)},
	{{"a depth that is too large", EINVAL, "depth"}, NUMBER(scanner.interaction_depth, 10000.1, 10000)},
	{{"bins of no width", EINVAL, "radial bins of 0 mm"}, NUMBER(scanner.bin, 0, 1e-3)},
	{{"bins that are no number", EINVAL, "radial bins of nan mm"}, NUMBER(scanner.bin, NAN, 1e-3)},
	{{"bins that are too wide", EINVAL, "radial bins of 10000.1 mm"}, NUMBER(scanner.bin, 10000.1, 10000)},
	{{"no radial bins", EINVAL, "0 radial bins"}, WHOLE(n_radial, 0, 1)},
	{{"too many radial bins", EINVAL, "65536 radial bins"}, WHOLE(n_radial, 65536, 65535)},
	{{"no angles", EINVAL, "0 angles"}, WHOLE(n_angles, 0, 1)},
	{{"too many angles", EINVAL, "4097 angles"}, WHOLE(n_angles, 4097, 4096)},
	{{"an angle that is no number", EINVAL, "nan degrees"}, NUMBER(angle_offset, NAN, 0)},
	{{"an angle beyond a turn", EINVAL, "360.1 degrees"}, NUMBER(angle_offset, 360.1, 360)},
	{{"an angle before a turn", EINVAL, "-360.1 degrees"}, NUMBER(angle_offset, -360.1, -360)},
	{{"no segments", EINVAL, "0 segments"}, WHOLE(n_segments, 0, 1)},
	{{"too many segments", EINVAL, "1025 segments"}, WHOLE(n_segments, 1025, 23)},
	{{"TOF bins below 0", EINVAL, "-1 TOF bins"}, WHOLE(tof.n, -1, 0)},
#undef WHOLE
#undef NUMBER
};

static int check_changed(const struct limit *l, double value, struct err *err)
{
	struct michelogram m = make(&ste, 329, 280, 2, 23);
	int whole = l->is_double ? 0 : (int)value;

	if (l->is_double)
		memcpy((char *)&m + l->at, &value, sizeof(value));
	else
		memcpy((char *)&m + l->at, &whole, sizeof(whole));
	return michelogram_check(&m, err);
}

static int check_bad(const void *row, struct err *err)
{
	const struct limit *l = row;

	return check_changed(l, l->bad, err);
}

REFUSES(beyond_limits, limits, check_bad)

TEST(at_limits)
{
	struct michelogram_segment *list = NULL;
	struct err err = {0};
	int n;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (check_changed(&limits[i], limits[i].good, &err) < 0)
			fail_msg("%s: %s", limits[i].refused.what, err.msg);
	assert_int_equal(michelogram_segments(MICHELOGRAM_RINGS_MAX, 3, 100, &list, &n, NULL), 0);
	free(list);
	assert_int_equal(michelogram_segments(1024, 1, 511, &list, &n, NULL), 0);
	free(list);
	assert_int_equal(n, 1023); /* always odd: 1025 is the next */
	assert_error(michelogram_segments(1024, 1, 512, &list, &n, &err), &err, EINVAL, "1025 segments");
	assert_error(michelogram_segments(MICHELOGRAM_RINGS_MAX + 1, 3, 100, &list, &n, &err), &err, EINVAL, "1025 rings");
	assert_int_equal(michelogram_segments(24, 1, 23, &list, &n, NULL), 0);
	free(list);
	assert_int_equal(michelogram_segments(24, 9, 4, &list, &n, NULL), 0);
	free(list);
}

TEST(refusals)
{
	struct michelogram good = make(&ste, 329, 280, 2, 23), m = good;
	struct michelogram_segment *list = NULL, some[3];
	struct err err = {0};
	int n = -1;

	m = good;
	m.arc_corrected = false;
	m.scanner.detectors = 0;
	refuse(&m, 350, "0 detectors");
	m.scanner.detectors = 328;
	refuse(&m, 350, "329 radial bins of 328 detectors");
	m = good;
	refuse(&m, 0, "field of view of 0 mm");
	refuse(&m, NAN, "field of view of nan mm");
	refuse(&m, 451.5, "field of view of 451.5 mm radius; the rays end at a radius of 451.5 mm");
	memcpy(some, good.segments, sizeof(some));
	m.segments = some;
	m.n_segments = 3;
	some[2] = some[1];
	refuse(&m, 350, "segments 1 (2 to 3) and 2 (2 to 3) share");
	some[2] = (struct michelogram_segment){3, 2, 1};
	refuse(&m, 350, "segment 2 of ring differences 3 to 2");
	some[2] = (struct michelogram_segment){-2147483647 - 1, 2147483647, 1};
	refuse(&m, 350, "segment 2 of");

	assert_error(michelogram_segments(24, 4, 23, &list, &n, &err), &err, EINVAL, "span 4");
	assert_int_equal(michelogram_segments(24, -1, 23, &list, &n, &err), -EINVAL);
	assert_error(michelogram_segments(24, 3, 24, &list, &n, &err), &err, EINVAL,
		     "largest ring difference 24; allowed with 24 rings: 0 to 23");
	assert_int_equal(michelogram_segments(24, 11, 4, &list, &n, &err), -EINVAL);
	assert_int_equal(michelogram_segments(0, 1, 0, &list, &n, &err), -EINVAL);
	assert_error(michelogram_segments(1000, 1, 999, &list, &n, &err), &err, EINVAL, "1999 segments");
	assert_null(list);
	assert_int_equal(n, -1);
}

static void wrong_tof(struct michelogram m, struct scan_tof tof, const char *words)
{
	m.tof = tof;
	refuse(&m, 350, words);
}

/* Sizes with a TOF axis, the scan's TOF bins, bins added into one, and TOF bins that no scanner has. */
TEST(time_of_flight)
{
	struct michelogram m = make(&ste, 329, 280, 2, 23), mashed;
	struct err err = {0};
	struct scan *scan;
	int *number;

	assert_int_equal(michelogram_mash(&m, 5, &mashed, NULL), 0); /* without time of flight: no effect */
	assert_int_equal(mashed.tof.n, 0);
	m.tof = (struct scan_tof){33, 21.5, 13.6};
	assert_int_equal(michelogram_planes(&m), 553);
	assert_int_equal(michelogram_data_planes(&m), 33 * 553);
	assert_int_equal(michelogram_size(&m), (size_t)33 * 553 * 280 * 329);
	scan = fixture_michelogram_scan(&m, 350, &number);
	assert_memory_equal(&scan->tof, &m.tof, sizeof(m.tof));
	assert_int_equal(scan_view_size(scan), (size_t)33 * 553 * 329);
	assert_int_equal(michelogram_mash(&m, 3, &mashed, NULL), 0);
	assert_int_equal(mashed.tof.n, 11);
	assert_near(mashed.tof.width, 64.5, 1e-12);
	assert_near(mashed.tof.sigma, 13.6, 1e-12);
	assert_error(michelogram_mash(&m, 2, &mashed, &err), &err, EINVAL,
		     "tof_mashing=2; allowed: numbers that divide the 33 TOF bins");
	assert_int_equal(michelogram_mash(&m, 0, &mashed, &err), -EINVAL);
	wrong_tof(m, (struct scan_tof){-1, 21.5, 13.6}, "-1 TOF bins; allowed: 1 to 1024");
	wrong_tof(m, (struct scan_tof){4097, 21.5, 13.6}, "4097 TOF bins");
	wrong_tof(m, (struct scan_tof){33, NAN, 13.6}, "TOF bins of nan mm");
	wrong_tof(m, (struct scan_tof){33, 0, 13.6}, "TOF bins of 0 mm");
	wrong_tof(m, (struct scan_tof){33, 21.5, 0}, "TOF resolution of 0 mm");
	wrong_tof(m, (struct scan_tof){33, 21.5, INFINITY}, "TOF resolution of inf mm");
	wrong_tof(m, (struct scan_tof){11, 21.5, 13.6},
		  "11 TOF bins of 21.5 mm end 118.25 mm from the middle of the rays, but the radial bins extend to 393.108 mm");
}

/* All pairs of rings of a segment are in its planes, once. */
TEST(pairs_of_planes)
{
	static const int spans[] = {1, 2, 3, 5, 11};

	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
		struct michelogram m = {.scanner = {.rings = 13}};

		fixture_segments(&m, spans[i], spans[i] == 11 ? 5 : 7);
		for (int s = 0; s < m.n_segments; s++) {
			int expected = 0, found = 0;

			for (int d = m.segments[s].first; d <= m.segments[s].last; d++)
				expected += 13 - (d < 0 ? -d : d);
			for (int a = 0; a < m.segments[s].n_planes; a++)
				found += michelogram_pairs(&m, s, a);
			assert_int_equal(found, expected);
			assert_true(michelogram_pairs(&m, s, 0) == 1 &&
				    michelogram_pairs(&m, s, m.segments[s].n_planes - 1) == 1);
		}
	}
}

/* The direct segment, wherever it is in the order; without one the next to it. */
TEST(direct_segment)
{
	struct michelogram_segment segments[] = {{-4, -2, 5}, {2, 4, 5}, {-1, 1, 9}, {0, 0, 3}};
	struct michelogram m = {.n_segments = 4, .segments = segments};
	size_t first = 99;

	assert_ptr_equal(michelogram_direct(&m, &first), &segments[2]);
	assert_int_equal(first, 10);
	m.n_segments = 2;
	assert_ptr_equal(michelogram_direct(&m, &first), &segments[0]);
	assert_int_equal(first, 0);
}
