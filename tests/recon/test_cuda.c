/* The CUDA device against the CPU device: vectors, both DBT operators, fused passes, a whole reconstruction. Skipped (77) where
 * there is no CUDA device. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recon/dbt.h"
#include "tests/recon/dbt_fixture.h"

/* Sums of at most some hundred float32 terms in another order: 100 * 2^-24 = 6e-6 of the largest value; 1e-5 is what is asked
 * for. */
#define DEVICE_TOL 1e-5
/* A ray that grazes the volume has a small A x, and y / A x the relative error of that: a position rounded to 2^-24 of some tens
 * of voxels against a weight of a few hundredths. */
#define RATIO_TOL 1e-4
#define ADJOINT_TOL 1e-5

struct setup {
	const char *name;
	int n_u, n_v, n_views;
	double pitch;
	struct grid grid;
};

/* Odd sizes; bins finer than, as fine as, coarser than voxels; a detector larger than the volume. */
static const struct setup setups[] = {
	{"as fine", 97, 141, 5, 1.0, {{97, 141, 31}, {1, 1, 1.5}, {0, -70.5, 17}}},
	{"finer bins", 161, 167, 3, 0.4, {{63, 67, 19}, {1.1, 1.05, 2}, {0.3, -34, 20}}},
	{"coarser bins", 33, 47, 3, 3.0, {{101, 143, 17}, {0.9, 1, 3}, {0, -66, 17}}},
	{"large detector", 180, 190, 3, 1.0, {{20, 22, 6}, {1, 1, 2}, {60, -33, 40}}},
	{"one voxel", 5, 5, 2, 1.0, {{1, 1, 1}, {2, 2, 2}, {1, -1, 17}}},
};
#define N_SETUPS (sizeof(setups) / sizeof(setups[0]))

static struct device *cuda_device(void)
{
	struct device *dev = NULL;
	struct err err = {0};

	if (device_cuda_open(0, &dev, &err) < 0)
		print_error("%s\n", err.msg);
	assert_non_null(dev);
	return dev;
}

/* 70 % ones. */
static float *random_mask(size_t n)
{
	float *mask = fixture_floats(n, 77, 0, 1);

	for (size_t i = 0; i < n; i++)
		mask[i] = mask[i] < 0.7f;
	return mask;
}

struct side {
	struct device *dev;
	struct buf mask, x, y, out_x, out_y;
	struct projection *a;
};

static void side_open(struct side *s, struct device *dev, const struct setup *setup, const struct scan *scan,
		      enum projection_model model, bool deterministic)
{
	size_t n_bins = scan_view_size(scan) * (size_t)setup->n_views, n_voxels = grid_size(&setup->grid);
	float *mask = random_mask(n_bins), *x = fixture_floats(n_voxels, 1, 0.1f, 1), *y = fixture_floats(n_bins, 2, 0.1f, 1);
	struct projection_spec spec = {.model = model,
				       .scan = scan,
				       .n_views = setup->n_views,
				       .grid = &setup->grid,
				       .mask = &s->mask,
				       .deterministic = deterministic};

	s->dev = dev;
	s->mask = fixture_upload(dev, mask, n_bins);
	s->x = fixture_upload(dev, x, n_voxels);
	s->y = fixture_upload(dev, y, n_bins);
	s->out_x = fixture_upload(dev, NULL, n_voxels);
	s->out_y = fixture_upload(dev, NULL, n_bins);
	assert_int_equal(dev->ops->projection_create(dev, &spec, &s->a, NULL), 0);
	free(mask);
	free(x);
	free(y);
}

static void side_close(struct side *s)
{
	s->dev->ops->projection_free(s->a);
	buf_release(&s->mask);
	buf_release(&s->x);
	buf_release(&s->y);
	buf_release(&s->out_x);
	buf_release(&s->out_y);
	device_close(s->dev);
}

/* Fill the output with NaN first, so that an element that is not written shows. */
static void poison(struct buf *b)
{
	assert_int_equal(b->dev->ops->fill(b, NAN, NULL), 0);
}

static void same(const struct buf *found, const struct buf *expected, double tolerance, const char *what)
{
	float *a = fixture_download(found), *b = fixture_download(expected);
	double d = fixture_difference(a, b, found->n);

	if (!(d <= tolerance))
		print_error("%s: CPU and CUDA differ by %g\n", what, d);
	assert_true(d <= tolerance);
	free(a);
	free(b);
}

static void both_pass(struct side *cpu, struct side *cuda, const char *name)
{
	struct side *sides[2] = {cpu, cuda};

	for (int i = 0; i < 2; i++) {
		const struct device_ops *ops = sides[i]->dev->ops;

		poison(&sides[i]->out_y);
		poison(&sides[i]->out_x);
		assert_int_equal(ops->forward(sides[i]->a, &sides[i]->x, &sides[i]->out_y, NULL), 0);
		assert_int_equal(ops->adjoint(sides[i]->a, &sides[i]->y, &sides[i]->out_x, NULL), 0);
	}
	same(&cuda->out_y, &cpu->out_y, DEVICE_TOL, name);
	same(&cuda->out_x, &cpu->out_x, DEVICE_TOL, name);
	if (!cuda->dev->ops->fused(cuda->a)) {
		for (int i = 0; i < 2; i++) {
			const struct device_ops *ops = sides[i]->dev->ops;

			assert_int_equal(
				ops->forward_ratio(sides[i]->a, &sides[i]->x, &sides[i]->y, 1e-6f, &sides[i]->out_y, NULL),
				-ENOTSUP);
			assert_int_equal(ops->back_update(sides[i]->a, &sides[i]->y, 1e-6f, &sides[i]->x, NULL), -ENOTSUP);
		}
		return;
	}
	for (int i = 0; i < 2; i++) {
		const struct device_ops *ops = sides[i]->dev->ops;

		poison(&sides[i]->out_y);
		assert_int_equal(ops->forward_ratio(sides[i]->a, &sides[i]->x, &sides[i]->y, 1e-6f, &sides[i]->out_y, NULL), 0);
		assert_int_equal(ops->back_update(sides[i]->a, &sides[i]->out_y, 1e-6f, &sides[i]->x, NULL), 0);
	}
	same(&cuda->out_y, &cpu->out_y, RATIO_TOL, name);
	same(&cuda->x, &cpu->x, RATIO_TOL, name);
}

static void operators(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_SETUPS; i++) {
		const struct setup *s = &setups[i];
		struct scan *scan = fixture_scan(s->n_u, s->n_v, s->pitch, s->n_views);

		for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++)
			for (int deterministic = 0; deterministic < 2; deterministic++) {
				struct side cpu, cuda;

				side_open(&cpu, fixture_device(FIXTURE_CPU, 2), s, scan, model, deterministic);
				side_open(&cuda, cuda_device(), s, scan, model, deterministic);
				both_pass(&cpu, &cuda, s->name);
				side_close(&cpu);
				side_close(&cuda);
			}
		scan_free(scan);
	}
}

static void adjoint_gap(void **state)
{
	struct device *dev = cuda_device();

	(void)state;
	for (size_t i = 0; i < N_SETUPS; i++) {
		const struct setup *s = &setups[i];
		struct scan *scan = fixture_scan(s->n_u, s->n_v, s->pitch, s->n_views);

		for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++) {
			struct projection_spec spec = {.model = model, .scan = scan, .n_views = s->n_views, .grid = &s->grid};
			struct linop *op = fixture_projector(dev, &spec);
			double gap = linop_adjoint_gap(op, (unsigned)i, NULL);

			if (!(gap >= 0 && gap <= ADJOINT_TOL))
				print_error("%s, model %d: gap %g\n", s->name, model, gap);
			assert_true(gap >= 0 && gap <= ADJOINT_TOL);
			linop_free(op);
		}
		scan_free(scan);
	}
	device_close(dev);
}

static void repeatable(void **state)
{
	const struct setup *s = &setups[0];
	struct scan *scan = fixture_scan(s->n_u, s->n_v, s->pitch, s->n_views);

	(void)state;
	for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++) {
		float *first = NULL;
		struct side cuda;

		side_open(&cuda, cuda_device(), s, scan, model, true);
		for (int run = 0; run < 5; run++) {
			float *x;

			poison(&cuda.out_x);
			assert_int_equal(cuda.dev->ops->adjoint(cuda.a, &cuda.y, &cuda.out_x, NULL), 0);
			x = fixture_download(&cuda.out_x);
			if (first)
				assert_memory_equal(x, first, cuda.out_x.n * sizeof(*x));
			else
				first = x;
			if (x != first)
				free(x);
		}
		free(first);
		side_close(&cuda);
	}
	scan_free(scan);
}

/* What a bin holds that does not count never matters, not even as a scale. */
static void masked_bins_do_not_count(void **state)
{
	const struct setup *s = &setups[0];
	struct scan *scan = fixture_scan(s->n_u, s->n_v, s->pitch, s->n_views);

	(void)state;
	for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++)
		for (int deterministic = 0; deterministic < 2; deterministic++) {
			struct side cuda;
			float *mask, *y, *before, *after;

			side_open(&cuda, cuda_device(), s, scan, model, deterministic);
			assert_int_equal(cuda.dev->ops->adjoint(cuda.a, &cuda.y, &cuda.out_x, NULL), 0);
			before = fixture_download(&cuda.out_x);
			mask = fixture_download(&cuda.mask);
			y = fixture_download(&cuda.y);
			for (size_t i = 0; i < cuda.y.n; i++)
				y[i] = mask[i] > 0 ? y[i] : NAN;
			assert_int_equal(cuda.dev->ops->upload(&cuda.y, y, NULL), 0);
			assert_int_equal(cuda.dev->ops->adjoint(cuda.a, &cuda.y, &cuda.out_x, NULL), 0);
			after = fixture_download(&cuda.out_x);
			assert_true(fixture_difference(after, before, cuda.out_x.n) <= DEVICE_TOL);
			free(mask);
			free(y);
			free(before);
			free(after);
			side_close(&cuda);
		}
	scan_free(scan);
}

static float *reconstruct(struct device *dev, const struct scan *scan, enum projection_model model, size_t *ret_n)
{
	struct dbt_protocol p = {.algorithm = DBT_OSEM, .iterations = 2, .voxel = 0, .slice_spacing = 1.5, .projector = model};
	size_t n_bins = scan_view_size(scan) * (size_t)scan->n_views;
	float *line = fixture_floats(n_bins, 5, 0.5f, 2), *valid = random_mask(n_bins), *volume;
	struct dbt_plan plan;
	struct err err = {0};

	assert_int_equal(dbt_plan(&p, scan, 17, 40, dev, &plan, &err), 0);
	*ret_n = grid_size(&plan.grid);
	volume = fixture_floats(*ret_n, 9, 0, 1);
	if (dbt_reconstruct(&p, &plan, scan, dev, line, valid, NULL, volume, NULL, &err) < 0)
		print_error("%s\n", err.msg);
	assert_int_equal(err.code, 0);
	free(line);
	free(valid);
	return volume;
}

/* Two passes over 7 subsets: 14 multiplications, each with the relative error of an operator. */
static void whole_reconstruction(void **state)
{
	struct scan *scan = fixture_scan(111, 137, 1.0, 7);

	(void)state;
	for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++) {
		struct device *cpu = fixture_device(FIXTURE_CPU, 2), *cuda = cuda_device();
		size_t n = 0, m = 0;
		float *a = reconstruct(cpu, scan, model, &n), *b = reconstruct(cuda, scan, model, &m);
		double d;

		assert_int_equal(n, m);
		d = fixture_difference(b, a, n);
		if (!(d <= DEVICE_TOL))
			print_error("model %d: CPU and CUDA images differ by %g\n", model, d);
		assert_true(d <= DEVICE_TOL);
		free(a);
		free(b);
		device_close(cpu);
		device_close(cuda);
	}
	scan_free(scan);
}

static void vectors(void **state)
{
	struct device *devs[2] = {fixture_device(FIXTURE_CPU, 2), cuda_device()};
	size_t n = 100003;
	float *x = fixture_floats(n, 3, -1, 1), *y = fixture_floats(n, 4, 0.1f, 2);
	struct buf out[2];
	double sum[2], dot[2], likelihood[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		const struct device_ops *ops = devs[i]->ops;
		struct buf a = fixture_upload(devs[i], x, n), b = fixture_upload(devs[i], y, n),
			   c = fixture_upload(devs[i], NULL, n);

		assert_int_equal(ops->sum(&a, &sum[i], NULL), 0);
		assert_int_equal(ops->dot(&a, &b, &dot[i], NULL), 0);
		assert_int_equal(ops->log_likelihood(&b, &b, 0.5f, &likelihood[i], NULL), 0);
		assert_int_equal(ops->multiply(&a, &b, &c, NULL), 0);
		assert_int_equal(ops->axpy(0.5f, &a, &c, NULL), 0);
		assert_int_equal(ops->ratio(&c, &b, 0.4f, &a, NULL), 0);
		assert_int_equal(ops->copy(&a, &c, NULL), 0);
		assert_int_equal(ops->update(&c, &a, &b, 0.7f, NULL), 0);
		out[i] = c;
		buf_release(&a);
		buf_release(&b);
	}
	assert_near(sum[1], sum[0], 1e-9 * (double)n);
	assert_near(dot[1], dot[0], 1e-9 * (double)n);
	assert_near(likelihood[1], likelihood[0], 1e-6 * (double)n);
	same(&out[1], &out[0], DEVICE_TOL, "vectors");
	for (int i = 0; i < 2; i++) {
		buf_release(&out[i]);
		device_close(devs[i]);
	}
	free(x);
	free(y);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors),
		cmocka_unit_test(operators),
		cmocka_unit_test(adjoint_gap),
		cmocka_unit_test(repeatable),
		cmocka_unit_test(masked_bins_do_not_count),
		cmocka_unit_test(whole_reconstruction),
	};

	if (device_cuda_count() == 0) {
		printf("no CUDA device: skipped\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
