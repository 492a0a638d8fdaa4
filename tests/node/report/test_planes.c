/* SPDX-License-Identifier: Apache-2.0 */
/* Test the pictures of planes: their pixels, directions, letters, scale bar and mark. */
#include "node/report/planes.h"
#include "tests/node/report/volume_fixture.h"
#include "tests/test.h"

static const struct picture_levels window = {0, 255, false};

/* Each voxel is i + 10 j + 50 k. */
static struct image_series *counted(void)
{
	struct image_series *s = volume_make(5, 4, 3, 2, 3, 7);

	for (int k = 0; k < 3; k++)
		for (int j = 0; j < 4; j++)
			for (int i = 0; i < 5; i++)
				*volume_at(s, i, j, k) = (float)(i + 10 * j + 50 * k);
	return s;
}

static void clear_picture(void *picture)
{
	plane_pictures_clear(picture, 1);
}

static struct plane_picture picture(const struct image_series *s, int axis, int index, int side, const struct picture_levels *w)
{
	struct plane_picture p;
	struct err err = {0};

	plane_picture_plan(s, axis, index, side, &p);
	assert_done(plane_pictures_fill(s, 0, w, &p, 1, &err), &err);
	test_later(clear_picture, take_copy(&p, sizeof(p)));
	return p;
}

TEST(test_pixels)
{
	struct image_series *s = counted();
	struct plane_picture p = picture(s, 2, 1, 512, &window);

	assert_int_equal(p.width, 5);
	assert_int_equal(p.height, 4);
	assert_near(p.mm[0], 10, 1e-9);
	assert_near(p.mm[1], 12, 1e-9);
	for (int j = 0; j < 4; j++)
		for (int i = 0; i < 5; i++)
			assert_int_equal(p.grey[5 * j + i], i + 10 * j + 50);

	p = picture(s, 1, 3, 512, &window); /* slices go upward: the head is at the top */
	assert_int_equal(p.width, 5);
	assert_int_equal(p.height, 3);
	assert_near(p.mm[1], 21, 1e-9);
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < 5; i++)
			assert_int_equal(p.grey[5 * (2 - k) + i], i + 30 + 50 * k);

	p = picture(s, 0, 4, 512, &window);
	assert_int_equal(p.width, 4);
	for (int k = 0; k < 3; k++)
		for (int j = 0; j < 4; j++)
			assert_int_equal(p.grey[4 * (2 - k) + j], 4 + 10 * j + 50 * k);
}

TEST(test_reduced)
{
	struct image_series *s = counted();
	struct plane_picture p = picture(s, 2, 0, 3, &window);

	assert_int_equal(p.step[0], 2);
	assert_int_equal(p.step[1], 2);
	assert_int_equal(p.width, 3);
	assert_int_equal(p.height, 2);
	assert_int_equal(p.grey[0], 6);	 /* 0, 1, 10, 11: 5.5 */
	assert_int_equal(p.grey[2], 9);	 /* the last column alone: 4, 14 */
	assert_int_equal(p.grey[5], 29); /* 24, 34 */
}

TEST(test_window)
{
	const struct picture_levels narrow = {10, 12, false}, inverse = {10, 12, true};
	struct image_series *s = counted();
	struct plane_picture p = picture(s, 2, 0, 512, &narrow);

	assert_int_equal(p.grey[4], 0);
	assert_int_equal(p.grey[5], 0);
	assert_int_equal(p.grey[6], 128);
	assert_int_equal(p.grey[7], 255);
	assert_int_equal(p.grey[8], 255);
	p = picture(s, 2, 0, 512, &inverse);
	assert_int_equal(p.grey[5], 255);
	assert_int_equal(p.grey[6], 128);
	assert_int_equal(p.grey[8], 0);
}

TEST(test_directions)
{
	struct image_series *s = counted();
	struct plane_picture p;

	plane_picture_plan(s, 2, 1, 512, &p);
	assert_string_equal(p.left, "R");
	assert_string_equal(p.right, "L");
	assert_string_equal(p.top, "A");
	assert_string_equal(p.bottom, "P");
	plane_picture_plan(s, 0, 1, 512, &p);
	assert_string_equal(p.left, "A");
	assert_string_equal(p.right, "P");
	assert_string_equal(p.top, "H");
	assert_string_equal(p.bottom, "F");

	s->normal[2] = -1; /* slices toward the feet: downward */
	plane_picture_plan(s, 1, 1, 512, &p);
	assert_false(p.reversed[1]);
	assert_string_equal(p.top, "H");
	assert_string_equal(p.bottom, "F");
}

/* A breast: columns to the front, rows to the right, slices to the head. Its slices stay, its sections are seen as in `export`. */
TEST(test_convention)
{
	struct image_series *s = counted();
	struct plane_picture p;

	for (int a = 0; a < 3; a++) {
		s->across[a] = a == 1 ? -1 : 0;
		s->down[a] = a == 0 ? -1 : 0;
	}
	p = picture(s, 2, 1, 512, &window);
	assert_string_equal(p.left, "P");
	assert_string_equal(p.top, "L");
	p = picture(s, 1, 3, 512, &window); /* sagittal, from the patient's left */
	assert_string_equal(p.left, "A");
	assert_string_equal(p.right, "P");
	assert_string_equal(p.top, "H");
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < 5; i++)
			assert_int_equal(p.grey[5 * (2 - k) + 4 - i], i + 30 + 50 * k);
	plane_picture_mark(s, (const int[3]){4, 3, 0}, &p);
	assert_near(p.at[0], 0.1, 1e-9);
	p = picture(s, 0, 4, 512, &window); /* coronal, from the front */
	assert_string_equal(p.left, "R");
	assert_string_equal(p.right, "L");
	for (int k = 0; k < 3; k++)
		for (int j = 0; j < 4; j++)
			assert_int_equal(p.grey[4 * (2 - k) + 3 - j], 4 + 10 * j + 50 * k);
	for (int a = 0; a < 3; a++) { /* stored coronal: the section at a column is turned */
		s->across[a] = a == 0;
		s->down[a] = a == 2 ? -1 : 0;
		s->normal[a] = a == 1;
	}
	p = picture(s, 0, 4, 512, &window);
	assert_int_equal(p.width, 3);
	assert_string_equal(p.left, "A");
	assert_string_equal(p.top, "H");
	for (int k = 0; k < 3; k++)
		for (int j = 0; j < 4; j++)
			assert_int_equal(p.grey[3 * j + k], 4 + 10 * j + 50 * k);
}

TEST(test_mark)
{
	struct image_series *s = counted();
	struct plane_picture p;

	plane_picture_plan(s, 1, 1, 512, &p);
	plane_picture_mark(s, (const int[3]){4, 1, 0}, &p);
	assert_near(p.at[0], 0.9, 1e-9);
	assert_near(p.at[1], 5.0 / 6, 1e-9); /* the lowest slice is at the bottom */
	plane_picture_plan(s, 2, 0, 512, &p);
	plane_picture_mark(s, (const int[3]){4, 1, 0}, &p);
	assert_near(p.at[1], 1.5 / 4, 1e-9);
}

TEST(test_words)
{
	char letters[PLANE_LETTERS];

	plane_letters((const double[3]){0, -0.8, 0.6}, letters);
	assert_string_equal(letters, "AH");
	plane_letters((const double[3]){0.95, 0.3, 0}, letters);
	assert_string_equal(letters, "L");
	plane_letters((const double[3]){0, 0, 0}, letters);
	assert_string_equal(letters, "");
	assert_string_equal(plane_name((const double[3]){0, 0.1, -0.99}), "axial");
	assert_string_equal(plane_name((const double[3]){0.7, 0.7, 0}), "oblique");
	assert_string_equal(plane_name((const double[3]){-1, 0, 0}), "sagittal");
	assert_near(plane_bar(700), 200, 1e-9);
	assert_near(plane_bar(239.4), 50, 1e-9);
	assert_near(plane_bar(304), 100, 1e-9);
	assert_near(plane_bar(5.9), 1, 1e-9);
	assert_near(plane_bar(0), 0, 0);
}
