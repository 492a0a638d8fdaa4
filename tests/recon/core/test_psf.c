/* SPDX-License-Identifier: Apache-2.0 */
/* The resolution model: a projector applied to a blurred volume, and its adjoint; on both CPU devices. */
#include "recon/core/psf.h"
#include "tests/recon/pet/pet_fixture.h"
#include "tests/test.h"

struct bench {
	struct device *dev;
	struct michelogram m;
	struct scan *scan;
	int *plane;
	struct grid grid;
	struct session_memory memory;
	struct buf room[PSF_WORK_VOLUMES]; /* in it */
};

static struct bench bench_open(int device, double fwhm)
{
	struct bench b = {.dev = fixture_device(device, 2), .m = pet_scanner_small(true)};

	b.grid = (struct grid){{23, 29, 11}, {6, 5, 3}, {-69, -72.5, -16.5}, true};
	b.scan = fixture_michelogram_scan(&b.m, PET_FOV, &b.plane);
	b.memory.dev = b.dev;
	assert_int_equal(psf_work_alloc(&b.memory, &b.grid, fwhm, b.room, NULL), 0);
	return b;
}

static void bench_close(struct bench *b)
{
	session_release(&b->memory);
}

/* The operator of some views with the resolution model. */
static struct linop *psf_of(struct bench *b, double fwhm, int first, int n_views)
{
	struct projection_spec spec = {
		.model = PROJECTION_EXACT, .scan = b->scan, .first = first, .n_views = n_views, .grid = &b->grid};
	struct linop *projector = NULL, *op = NULL;

	assert_int_equal(projector_create(b->dev, &spec, &projector, NULL), 0);
	assert_int_equal(psf_create(projector, &b->grid, fwhm, b->room, &op, NULL), 0); /* it owns the projector */
	test_later(give_back_linop_free, op);
	return op;
}

/* <A G x, y> = <x, G A' y>; and the functions that add give the same values as those that write. */
TEST(exact_adjoint)
{
	for (int device = 0; device < FIXTURE_DEVICES; device++)
		for (int fwhm = 3; fwhm <= 12; fwhm += 9) {
			struct bench b = bench_open(device, fwhm);
			struct linop *op = psf_of(&b, fwhm, 3, 7);
			size_t n = grid_size(&b.grid);
			struct buf x, y, ax, sum_x, sum_y;
			float *xs, *ys, *found, *expected;
			double gap = linop_adjoint_gap(op, 3, NULL);

			assert_true(gap >= 0 && gap <= 1e-5);
			xs = fixture_floats(n, 1, 0, 1);
			ys = fixture_floats(op->n_out, 2, 0, 1);
			x = fixture_upload(b.dev, xs, n);
			y = fixture_upload(b.dev, ys, op->n_out);
			ax = fixture_upload(b.dev, NULL, op->n_out);
			sum_x = fixture_upload(b.dev, NULL, n);
			sum_y = fixture_upload(b.dev, ys, op->n_out);
			assert_int_equal(op->apply(op, &x, &ax, NULL), 0);
			assert_int_equal(op->apply_add(op, &x, &sum_y, NULL), 0); /* y + A x */
			assert_int_equal(b.dev->ops->axpy(1, &y, &ax, NULL), 0);
			found = fixture_download(&sum_y);
			expected = fixture_download(&ax);
			assert_true(fixture_difference(found, expected, op->n_out) < 1e-6);
			assert_int_equal(op->adjoint(op, &y, &sum_x, NULL), 0);
			assert_int_equal(op->adjoint_add(op, &y, &sum_x, NULL), 0); /* 2 A'y */
			assert_int_equal(op->adjoint(op, &y, &x, NULL), 0);
			assert_int_equal(b.dev->ops->axpy(1, &x, &x, NULL), 0);
			found = fixture_download(&sum_x);
			expected = fixture_download(&x);
			assert_true(fixture_difference(found, expected, n) < 1e-6);
			bench_close(&b);
		}
}

TEST(refusals)
{
	struct bench b = bench_open(FIXTURE_CPU, 5);
	struct linop *a = psf_of(&b, 5, 0, 1), *op = NULL;
	struct grid other = b.grid;
	struct err err = {0};

	other.n[0]++;
	assert_int_equal(psf_create(a, &b.grid, 0, b.room, &op, &err), -EINVAL);
	assert_string_equal(err.msg, "resolution model: FWHM of 0 mm; allowed: above 0");
	assert_int_equal(psf_create(a, &b.grid, NAN, b.room, &op, &err), -EINVAL);
	assert_int_equal(psf_create(a, &other, 5, b.room, &op, &err), -EINVAL);
	b.room[1].n--;
	assert_int_equal(psf_create(a, &b.grid, 5, b.room, &op, &err), -EINVAL);
	b.room[1].n++;
	assert_null(op);
	bench_close(&b);
}

/* Half the height of the profile through the brightest pixel, mm, with linear interpolation. */
static double width(const struct pet_plan *plan, const float *x)
{
	const struct grid *g = &plan->grid;
	size_t n = pet_voxels(plan), at = 0;
	double side[2];

	for (size_t i = 0; i < n; i++)
		at = x[i] > x[at] ? i : at;
	for (int d = 0; d < 2; d++) {
		int step = d ? 1 : -1, k = 0;

		while (x[at + (size_t)((k + 1) * step)] > x[at] / 2)
			k++;
		side[d] = k + (x[at + (size_t)(k * step)] - x[at] / 2) /
				      (x[at + (size_t)(k * step)] - x[at + (size_t)((k + 1) * step)]);
	}
	return (side[0] + side[1]) * g->h[0];
}

/* Data of a scanner that blurs by 10 mm: with the resolution model the image of a bead is nearly as narrow as the voxels allow; a
 * post-filter makes it wider. */
TEST(beads_get_sharper)
{
	struct michelogram m = pet_scanner_small(true);
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	struct pet_protocol p = pet_protocol_small;
	struct shape ball[] = {{SHAPE_CYLINDER_Z, ROLE_BODY, {0, 0, 0}, {60, 60, 100}, 1}, {0}};
	float *y = take_zeros(michelogram_size(&m), sizeof(*y)), *plain, *sharp, *smooth;
	struct pet_plan plan;
	double sum[2], w[2];

	/* a Gaussian of 10 mm, approximated by balls at its quantiles, on a low background */
	for (int i = -6; i <= 6; i++)
		for (int j = -6; j <= 6; j++) {
			double weight = exp(-0.5 * (i * i + j * j) * 4 / (4.2466 * 4.2466));
			float *line;

			ball[1] = (struct shape){
				SHAPE_CYLINDER_Z, ROLE_BEAD, {2.5 + 2 * i, 2.5 + 2 * j, 0}, {2, 2, 100}, 20 * weight};
			line = pet_lines(&m, i == 0 && j == 0 ? ball : ball + 1, i == 0 && j == 0 ? 2 : 1);
			for (size_t b = 0; b < michelogram_size(&m); b++)
				y[b] += line[b];
		}
	p.iterations = 40;
	p.projector = test_tier() == 2 ? PROJECTION_EXACT : PROJECTION_PATHS;
	plan = pet_plan_of(&p, &m, false, false, dev);
	plain = pet_image(&p, &m, dev, y, NULL, NULL, NULL);
	p.psf = 10;
	sharp = pet_image(&p, &m, dev, y, NULL, NULL, NULL);
	p.psf = 0;
	p.postfilter = 10;
	smooth = pet_image(&p, &m, dev, y, NULL, NULL, NULL);
	w[0] = width(&plan, plain);
	assert_near(w[0], 10, 1.5);
	assert_true(width(&plan, sharp) < 0.75 * w[0]);
	w[1] = width(&plan, smooth);
	assert_near(w[1], sqrt(200), 1.5);
	/* a filter does not change the total activity */
	sum[0] = pet_mean(&plan, plain, 40, 0, PET_SLICES);
	sum[1] = pet_mean(&plan, smooth, 40, 0, PET_SLICES);
	assert_near(sum[1], sum[0], 0.01 * sum[0]);
	for (int k = 0; k < PET_SLICES; k++)
		assert_near(pet_mean(&plan, smooth, 40, k, k + 1), sum[0], 0.03 * sum[0]);
}

/* The last slices are not too bright: the activity beyond them is assumed to be like theirs. */
TEST(uniform_to_the_end)
{
	static const struct shape cylinder[] = {{SHAPE_CYLINDER_Z, ROLE_BODY, {0, 0, 0}, {60, 60, 200}, 2}};
	struct michelogram m = pet_scanner_small(true);
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	struct pet_protocol p = pet_protocol_small;
	float *y = pet_lines(&m, cylinder, 1), *x;
	struct pet_plan plan;

	p.psf = 7;
	p.iterations = 15;
	plan = pet_plan_of(&p, &m, false, false, dev);
	x = pet_image(&p, &m, dev, y, NULL, NULL, NULL);
	for (int k = 0; k < PET_SLICES; k++)
		assert_near(pet_mean(&plan, x, 40, k, k + 1), 2, 0.04);
}
