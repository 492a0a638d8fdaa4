/* SPDX-License-Identifier: Apache-2.0 */
/* The ray walk of parallel rays (PROJECTION_EXACT), in addition to test_paths.c: masked rows, both sums at once, tiles, and a
 * volume stored x fastest. */
#include "tests/kernels/cpu/parallel.h"
#include "tests/test.h"

/* tolerance for sums that are added in another order */
#define ORDER_TOL 1e-6

/* Masked rows are rows of zeros; the others are the same as without a mask. Not with time of flight, which allows no mask. */
static void compare_mask(struct fixture *f)
{
	struct buf x = volume(f, 3, 0.1f, 1), mask;
	struct projection_spec spec = {
		.model = PROJECTION_EXACT, .scan = &f->scan, .n_views = VIEWS, .grid = &f->grid, .mask = &mask};
	struct projection *whole = create(f, PROJECTION_EXACT, 0), *masked;
	float *on = take_memory(f->n_out * sizeof(*on)), *ax = forward(f, whole, &x), *some;

	for (size_t i = 0; i < f->n_out; i++)
		on[i] = i % 3 ? 1 : i % 2 ? 0 : -1;
	mask = fixture_upload(f->dev, on, f->n_out);
	masked = fixture_projection(f->dev, &spec);
	some = forward(f, masked, &x);
	for (size_t i = 0; i < f->n_out; i++)
		assert_true(some[i] == (i % 3 ? ax[i] : 0));
}

static void check_mask(struct fixture *f, const struct setup *s)
{
	if (!s->tof.n)
		compare_mask(f);
}

TEST(test_mask)
{
	once(check_mask);
}

/* num = A'y and den = A'(2 y) are computed together. */
static void compare_sums(struct fixture *f, struct projection *a, const struct buf *pair, float *aty, struct buf *num,
			 struct buf *den)
{
	float *sum;

	assert_int_equal(f->v->back_sums(a, pair, false, num, den, NULL), 0);
	sum = fixture_download(num);
	assert_true(fixture_difference(sum, aty, f->n_in) < ORDER_TOL);
	sum = fixture_download(den);
	for (size_t i = 0; i < f->n_in; i++)
		aty[i] *= 2;
	assert_true(fixture_difference(sum, aty, f->n_in) < ORDER_TOL);
}

/* Tiles do not change the result, and sums of pairs are adjoints, for transaxial paths and time of flight, too. */
static void check_sums(struct fixture *f, const struct setup *s)
{
	struct projection *whole = create(f, PROJECTION_EXACT, 0), *tiled = create(f, PROJECTION_EXACT, 5);
	struct projection *paths = create(f, s->tof.n ? PROJECTION_EXACT : PROJECTION_PATHS, 0);
	struct buf y = sinogram(f, 4, 0.1f, 1), pair = fixture_upload(f->dev, NULL, 2 * f->n_out),
		   num = fixture_upload(f->dev, NULL, f->n_in), den = fixture_upload(f->dev, NULL, f->n_in);
	struct buf half[2] = {buf_part(&pair, 0, f->n_out), buf_part(&pair, f->n_out, f->n_out)};
	float *aty = back(f, whole, &y), *by_tiles = back(f, tiled, &y), *by_paths = back(f, paths, &y);

	assert_int_equal(f->v->copy(&y, &half[0], NULL), 0);
	assert_int_equal(f->v->copy(&y, &half[1], NULL), 0);
	assert_int_equal(f->v->axpy(1, &y, &half[1], NULL), 0);
	if (fixture_difference(by_tiles, aty, f->n_in) > ORDER_TOL)
		fail_msg("%s: tiles change A'y by %g", s->name, fixture_difference(by_tiles, aty, f->n_in));
	compare_sums(f, tiled, &pair, aty, &num, &den);
	compare_sums(f, paths, &pair, by_paths, &num, &den);
}

TEST(test_sums)
{
	once(check_sums);
}

/* Return a copy of the volume x in the storage order of grid `to`, which has the same voxels as `from`. */
static float *turned(const struct grid *from, const struct grid *to, const float *x)
{
	float *host = take_zeros(grid_size(to), sizeof(*host));

	for (int k = 0; k < from->n[2]; k++)
		for (int j = 0; j < from->n[1]; j++)
			for (int i = 0; i < from->n[0]; i++)
				host[(size_t)i * grid_step(to, 0) + (size_t)j * grid_step(to, 1) + (size_t)k * grid_step(to, 2)] =
					x[(size_t)i * grid_step(from, 0) + (size_t)j * grid_step(from, 1) +
					  (size_t)k * grid_step(from, 2)];
	return host;
}

static void check_x_fastest(struct fixture *f, const struct setup *s)
{
	struct projection *a = create(f, PROJECTION_EXACT, 7), *b;
	struct buf x = volume(f, 3, 0.1f, 1), y = sinogram(f, 4, 0.1f, 1);
	struct grid upright = f->grid, flat = f->grid;
	float *in = fixture_download(&x), *ax = forward(f, a, &x), *aty = back(f, a, &y), *bx, *bty, *expect;

	(void)s;
	flat.z_fastest = false;
	f->grid = flat;
	f->n_in = grid_size(&flat);
	expect = turned(&upright, &flat, in);
	x = fixture_upload(f->dev, expect, f->n_in);
	b = create(f, PROJECTION_EXACT, 7);
	bx = forward(f, b, &x);
	bty = back(f, b, &y);
	expect = turned(&upright, &flat, aty);
	assert_memory_equal(bx, ax, f->n_out * sizeof(*ax));
	assert_memory_equal(bty, expect, f->n_in * sizeof(*bty));
}

TEST(test_x_fastest)
{
	once(check_x_fastest);
}
