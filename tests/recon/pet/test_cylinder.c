/* SPDX-License-Identifier: Apache-2.0 */
/* Scanners found from the positions of their detectors: regular ones in any order, with gaps, jitter and flat blocks; the ends of
 * the bins of a michelogram; irregular ones are refused with what deviates. */
#include "recon/pet/cylinder.h"
#include "recon/pet/michelogram_pairs.h"
#include "tests/recon/pet/michelogram_fixture.h"
#include "tests/test.h"

#define MOST 100000
static float position[MOST][3];

/* A regular scanner, ring by ring; start: angle of the first detector, degrees from x towards y. */
static size_t make(int rings, int crystals, double radius, double spacing, double start)
{
	size_t n = 0;

	for (int ring = 0; ring < rings; ring++)
		for (int i = 0; i < crystals; i++, n++) {
			double angle = start * M_PI / 180 + 2 * M_PI * i / crystals;

			position[n][0] = (float)(radius * cos(angle));
			position[n][1] = (float)(radius * sin(angle));
			position[n][2] = (float)((ring - (rings - 1) / 2.0) * spacing);
		}
	return n;
}

static void find(size_t n, double tolerance, struct pet_cylinder *ret)
{
	struct err err = {0};

	assert_done(pet_cylinder_find((const float(*)[3])position, n, tolerance, ret, &err), &err);
}

static void check_places(const struct pet_cylinder *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double angle = (c->angle_offset - 90 + c->place[i][1] * 360.0 / c->scanner.detectors) * M_PI / 180;
		double z = c->centre + (c->place[i][0] - (c->scanner.rings - 1) / 2.0) * c->scanner.ring_spacing;

		assert_near((double)position[i][0], c->scanner.radius * cos(angle), c->deviation * 1.5 + 1e-3);
		assert_near((double)position[i][1], c->scanner.radius * sin(angle), c->deviation * 1.5 + 1e-3);
		assert_near((double)position[i][2], z, c->deviation + 1e-3);
		assert_int_equal(c->detector[c->place[i][0] * c->scanner.detectors + c->place[i][1]], i);
	}
}

TEST(regular)
{
	static const struct {
		int rings, crystals;
		double radius, spacing, start;
	} cases[] = {{64, 504, 334.7, 4.0625, -90}, {24, 560, 451.5, 6.54, 17}, {1, 16, 50, 0, 0.3},	{3, 4, 20, 2, 45},
		     {80, 760, 410, 3.29114, 200},  {2, 10, 30, 9, -89.99},	{5, 16, 100, 4, -90.01}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = make(cases[i].rings, cases[i].crystals, cases[i].radius, cases[i].spacing, cases[i].start);
		struct pet_cylinder c GOES(pet_cylinder_clear) = {0};

		find(n, 1, &c);
		assert_int_equal(c.scanner.rings, cases[i].rings);
		assert_int_equal(c.scanner.detectors, cases[i].crystals);
		assert_near(c.scanner.radius, cases[i].radius, 1e-3);
		if (cases[i].rings > 1)
			assert_near(c.scanner.ring_spacing, cases[i].spacing, 1e-4);
		assert_true(c.angle_offset >= -0.36 / cases[i].crystals && c.angle_offset < 360.0 / cases[i].crystals);
		assert_true(c.deviation < 1e-3);
		check_places(&c, n);
	}
}

/* Detectors at the negative y axis, up to the rounding of floats: crystal 0 is always this one. */
TEST(phase)
{
	for (int i = -3; i <= 3; i++) {
		struct pet_cylinder c GOES(pet_cylinder_clear) = {0};

		find(make(2, 96, 105, 6.5, -90 + i * 1e-6), 1, &c);
		assert_near(c.angle_offset, 0, 1e-4);
		assert_int_equal(c.place[0][1], 0);
	}
}

/* Blocks of 12 crystals with a gap of one, and of 8 rings with a gap of one; each position is up to 0.4 mm off. */
TEST(gaps)
{
	struct pet_cylinder c GOES(pet_cylinder_clear) = {0};
	size_t all = make(26, 13 * 20, 200, 4, 5), n = 0, empty = 0;
	unsigned random = 1;

	for (size_t i = 0; i < all; i++) {
		if (i % 260 % 13 == 12 || i / 260 % 9 == 8)
			continue;
		for (int k = 0; k < 3; k++) {
			random = random * 1664525u + 1013904223u;
			position[n][k] = position[i][k] + 0.4f * ((float)(random >> 8) / 16777216.0f - 0.5f);
		}
		n++;
	}
	find(n, 1, &c);
	assert_int_equal(c.scanner.rings, 26);
	assert_int_equal(c.scanner.detectors, 260);
	check_places(&c, n);
	for (size_t i = 0; i < all; i++)
		empty += c.detector[i] < 0;
	assert_int_equal(empty, all - n);
}

/* Flat blocks: 8 crystals of 4 mm, 56 of them around a circle of 300 mm, in 64 rings. */
TEST(flat_blocks)
{
	struct pet_cylinder c GOES(pet_cylinder_clear) = {0};
	size_t n = 0;

	for (int ring = 0; ring < 64; ring++)
		for (int block = 0; block < 56; block++)
			for (int k = 0; k < 8; k++, n++) {
				double turn = 2 * M_PI * block / 56, along = (k - 3.5) * 4;

				position[n][0] = (float)(300 * cos(turn) - along * sin(turn));
				position[n][1] = (float)(300 * sin(turn) + along * cos(turn));
				position[n][2] = (float)(ring * 4);
			}
	find(n, 1, &c);
	assert_int_equal(c.scanner.detectors, 448);
	assert_near(c.centre, 126, 1e-3);
	check_places(&c, n);
}

/* The detectors that michelogram_crystals() names for a bin are at the ends of its ray. */
TEST(numbering)
{
	struct pet_cylinder c GOES(pet_cylinder_clear) = {0};
	struct michelogram m = {.n_radial = 20, .n_angles = 16};
	struct michelogram_index x;
	int crystal[2];

	find(make(1, 32, 100, 0, 3), 1, &c);
	m.scanner = c.scanner;
	m.angle_offset = c.angle_offset;
	fixture_segments(&m, 1, 0);
	assert_int_equal(michelogram_index_init(&m, &x, NULL), 0);
	for (int angle = 0; angle < 16; angle++)
		for (int radial = 0; radial < 20; radial += 2) { /* bins of even distance from the middle */
			double phi = (m.angle_offset + angle * 180.0 / 16) * M_PI / 180, r = michelogram_radius(&m, radial);
			double t = sqrt(100 * 100 - r * r);

			michelogram_crystals(&x, angle, radial, 0, crystal);
			for (int end = 0; end < 2; end++) {
				const float *p = position[c.detector[crystal[end]]];
				double sign = end ? -1 : 1;

				assert_near((double)p[0], r * cos(phi) - sign * t * sin(phi), 1e-4);
				assert_near((double)p[1], r * sin(phi) + sign * t * cos(phi), 1e-4);
			}
		}
}

static void refuse(size_t n, double tolerance, const char *says)
{
	struct pet_cylinder c;
	struct err err = {0};

	assert_error(pet_cylinder_find((const float(*)[3])position, n, tolerance, &c, &err), &err, ENOTSUP, says);
}

TEST(irregular)
{
	size_t n;

	n = make(4, 32, 100, 5, 0);
	position[40][0] += 3;
	position[40][1] += 3;
	refuse(n, 1, "number 40 is at a radius of");
	n = make(4, 32, 100, 5, 0);
	position[77][2] += 2;
	refuse(n, 0.3, "the rings of detectors are not at equal distances: neighbours are 2.00 to 5.00 mm apart along z");
	n = make(4, 32, 100, 5, 0);
	memcpy(position[5], position[6], sizeof(position[5]));
	refuse(n, 1, "detectors 5 and 6 are at the same place of ring 0");
	n = make(4, 32, 100, 5, 0);
	memcpy(position[1], position[0], sizeof(position[1]));
	refuse(n, 1, "detectors 0 and 1 are at the same place of ring 0");
	n = make(1, 33, 100, 5, 0); /* an odd number: 66 positions, of which every other one is empty */
	{
		struct pet_cylinder c GOES(pet_cylinder_clear) = {0};

		find(n, 1, &c);
		assert_int_equal(c.scanner.detectors, 66);
	}
	for (int i = 0; i < 40; i++) { /* angles that have nothing in common */
		double angle = i * i * 0.003 + i * 0.05;

		position[i][0] = (float)(900 * cos(angle));
		position[i][1] = (float)(900 * sin(angle));
		position[i][2] = 0;
	}
	refuse(40, 1e-3, "not at equal angles");
	refuse(3, 1, "3 detectors");
	memset(position, 0, sizeof(position));
	refuse(10, 1, "on the z axis");
}
