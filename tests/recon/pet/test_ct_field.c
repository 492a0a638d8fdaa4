/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a body is found to be cut off by the field of view of its CT (recon/pet/ct_field.h). */
#include "recon/pet/ct_field.h"
#include "tests/test.h"

#define SIDE 160
#define MIDDLE 220
#define FINE 400 /* pixels of 1.25 mm */
#define SLICES 12
#define WIDTH 500.0 /* mm */

/* A body (an ellipse), an arm at its right, and a couch below, in noisy air; outside of the field padding. mm. */
struct scene {
	double body[2], at;    /* half axes; place of its middle along x */
	double arm;	       /* place of an arm along x; 0: none */
	double arm_radius;     /* 0: 45 */
	double couch[2];       /* y of a layer of 20 HU from side to side: from, to; 0, 0: none */
	double field, field_x; /* radius of the field, 0: all; its middle */
	int padding, air;      /* HU; air 0: with noise */
	int side;	       /* pixels, of a single slice; 0: SIDE, and SLICES slices */
};

static int value_of(const struct scene *s, double x, double y, uint32_t *seed)
{
	double arm_radius = s->arm_radius > 0 ? s->arm_radius : 45;

	*seed = *seed * 1664525 + 1013904223;
	if (s->field > 0 && hypot(x - s->field_x, y) > s->field)
		return s->padding;
	if (hypot((x - s->at) / s->body[0], y / s->body[1]) < 1 || (s->arm > 0 && hypot(x - s->arm, y) < arm_radius) ||
	    (y > s->couch[0] && y < s->couch[1]))
		return 20;
	if (s->air != 0)
		return s->air;
	/* as stored with 12 bits: nothing below -1024 */
	return (int)fmax(-1024, -1000 + 80 * ((*seed >> 8) / 16777216.0 - 0.5));
}

static struct ct_field find(const struct scene *s, int named)
{
	int side = s->side > 0 ? s->side : SIDE, slices = s->side > 0 ? 1 : SLICES;
	double pixel = WIDTH / side, first = -0.5 * (side - 1) * pixel;
	int16_t *hu = take_memory((size_t)side * (size_t)side * (size_t)slices * sizeof(*hu));
	struct ct_field_source ct = {.hu = hu, .n = {side, side, slices}, .h = {pixel, pixel}, .padding = named};
	struct ct_field found;
	uint32_t seed = 1;
	size_t i = 0;

	for (int z = 0; z < slices; z++)
		for (int y = 0; y < side; y++)
			for (int x = 0; x < side; x++)
				hu[i++] = (int16_t)value_of(s, first + x * pixel, first + y * pixel, &seed);
	assert_int_equal(ct_field_find(&ct, &found, NULL), 0);
	return found;
}

#define SCENE .body = {180, 120}

/* A circle of any padding is found where it is, and what it cuts off; a body that is whole within it is whole. */
TEST(circles)
{
	const int paddings[] = {-1024, -2000, -3024, -32768, -1000};

	for (size_t i = 0; i < sizeof(paddings) / sizeof(paddings[0]); i++) {
		int named = paddings[i] == -1000 ? -1000 : INT_MIN; /* like air: only its name tells */
		struct ct_field f = find(&(struct scene){SCENE, .field = 220, .padding = paddings[i]}, named);

		assert_near(f.radius, 220, 1.5);
		assert_near(hypot(f.centre[0], f.centre[1]), 0, 0.5);
		assert_true(f.truncated == 0);
		f = find(&(struct scene){SCENE, .field = 150, .padding = paddings[i]}, named);
		assert_near(f.radius, 150, 1.5);
		assert_true(f.truncated == 1);
		f = find(&(struct scene){SCENE, .field = 200, .field_x = 40, .padding = paddings[i]}, named);
		assert_near(f.centre[0], 40, 0.5);
		assert_true(f.truncated == 1); /* at x = -160 */
		f = find(&(struct scene){SCENE, .at = 30, .field = 200, .field_x = 40, .padding = paddings[i]}, named);
		assert_true(f.truncated == 0);						       /* at x = -150 */
		f = find(&(struct scene){SCENE, .field = 280, .padding = paddings[i]}, named); /* only in the corners */
		assert_near(f.radius, 280, 1.5);
		assert_true(f.truncated == 0);
	}
}

TEST(arms)
{
	assert_true(find(&(struct scene){SCENE, .arm = 200, .field = 240, .padding = -2000}, INT_MIN).truncated == 1);
	assert_true(find(&(struct scene){SCENE, .arm = 190, .field = 240, .padding = -2000}, INT_MIN).truncated == 0);
	assert_true(find(&(struct scene){SCENE, .arm = 230}, INT_MIN).truncated == 1); /* the edge of the image */
	assert_true(find(&(struct scene){SCENE, .arm = 200}, INT_MIN).truncated == 0);
	assert_true(find(&(struct scene){SCENE, .at = 80}, INT_MIN).truncated == 1);
}

/* An arm of which this much is inside of a circle, or of the side of an image, is cut off. */
static void expect_arm(double radius, double inside, double field, int side)
{
	const struct scene s = {SCENE,	     .arm = 250 + radius - inside, .arm_radius = radius, .field = field, .padding = -2000,
				.side = side};

	if (find(&s, INT_MIN).truncated == 1)
		return;
	print_error("An arm of %g mm radius, %g mm inside, is not found: field %g, %d pixels\n", radius, inside, field, side);
	fail();
}

TEST(arms_mostly_outside)
{
	const double radii[] = {30, 45, 60}, inside[] = {10, 13, 16, 19, 22, 25, 28, 35, 40, 52};

	for (size_t r = 0; r < sizeof(radii) / sizeof(radii[0]); r++)
		for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++)
			for (int round = 0; round < 2; round++) {
				expect_arm(radii[r], inside[i], round * 250, FINE);
				if (inside[i] > 10) /* pixels of 3.1 mm */
					expect_arm(radii[r], inside[i], round * 250, SIDE);
			}
	for (double at = 255; at <= 270; at += 5)
		expect_arm(30, 280 - at, 250, FINE);
	for (double at = 255; at <= 285; at += 5)
		expect_arm(45, 295 - at, 250, FINE);
	assert_true(find(&(struct scene){SCENE, .arm = 295, .field = 250, .padding = -2000}, INT_MIN).truncated ==
		    0); /* all out */
}

/* Layers of a couch that the field cuts, at several heights, are no body, with the body on them or without. */
TEST(couches)
{
	for (double y = 125; y < 205; y += 10) {
		struct scene s = {SCENE, .couch = {y, y + 10}, .field = 240, .padding = -1024};

		assert_true(find(&s, INT_MIN).truncated == 0);
		s.field = 0;
		assert_true(find(&s, INT_MIN).truncated == 0);
		s.field = 240;
		s.arm = 200;
		assert_true(find(&s, INT_MIN).truncated == 1);
	}
}

/* Layers of other thickness, at each mm (in tier 1 at each 7), down to what the field just reaches. */
TEST(layers)
{
	const double fields[] = {0, 150, 225, 250};

	for (int thick = 4; thick <= 12; thick += 4)
		for (double y = 105; y < 252; y += test_tier() == 2 ? 1 : 7)
			for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++) {
				struct scene s = {.body = {120, 100},
						  .couch = {y, y + thick},
						  .field = fields[f],
						  .padding = -1024,
						  .side = MIDDLE};

				assert_true(find(&s, INT_MIN).truncated == 0);
			}
}

/* The air of an image was replaced: its edge is that of the body, no circle. And the circle that the image contains. */
TEST(replaced_air)
{
	struct scene s = {SCENE, .air = -1024};

	assert_true(find(&s, INT_MIN).truncated == 0);
	s.air = -1000;
	assert_true(find(&s, INT_MIN).truncated == 0);
	s = (struct scene){.body = {230, 150}, .at = 40, .air = -1000, .field = 249, .padding = -1000};
	assert_true(find(&s, INT_MIN).truncated == 1);
	s.at = 0;
	assert_true(find(&s, INT_MIN).truncated == 0);
}
