/* EM: what theory says of every iteration, on both operators and both CPU devices. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recon/em.h"
#include "tests/recon/dbt_fixture.h"

#define FLOOR 1e-6f
/* sum(A x) = sum(y) holds exactly; float32 sums and divisions leave about 1e-6. */
#define SUM_TOL 1e-5
/* A log-likelihood of some 1e4 from float32 projections is known to about 1e-6 of itself. */
#define LIKELIHOOD_TOL 1e-6

static const struct grid grid = {{31, 37, 9}, {1, 1, 1.5}, {0, -18.5, 17}};

/* Data of a random volume, with noise of +-20 %, some bins zero, some of them (0.7 count) masked, view 1 masked altogether. */
static void make_data(struct device *dev, const struct scan *scan, struct buf *ret_y, struct buf *ret_mask)
{
	struct projection_spec spec = {.model = PROJECTION_EXACT, .scan = scan, .n_views = scan->n_views, .grid = &grid};
	struct linop *op = fixture_projector(dev, &spec);
	float *xs = fixture_floats(op->n_in, 3, 0.01f, 0.09f), *ys, *mask = malloc(op->n_out * sizeof(float));
	struct buf x = fixture_upload(dev, xs, op->n_in), y = fixture_upload(dev, NULL, op->n_out);
	size_t per_view = scan_view_size(scan);
	uint32_t seed = 77;

	assert_non_null(mask);
	assert_int_equal(op->apply(op, &x, &y, NULL), 0);
	ys = fixture_download(&y);
	for (size_t i = 0; i < op->n_out; i++) {
		mask[i] = i / per_view != 1 && fixture_random(&seed) < 0.7f;
		ys[i] *= (0.8f + 0.4f * fixture_random(&seed)) * mask[i];
		if (fixture_random(&seed) < 0.05f)
			ys[i] = 0;
	}
	assert_int_equal(dev->ops->upload(&y, ys, NULL), 0);
	*ret_y = y;
	*ret_mask = fixture_upload(dev, mask, op->n_out);
	free(xs);
	free(ys);
	free(mask);
	buf_release(&x);
	linop_free(op);
}

static double data_with_support(const struct linop *op, const struct buf *x, const struct buf *y, double *ret_model,
				double *ret_likelihood)
{
	const struct device_ops *v = op->dev->ops;
	struct buf p = fixture_upload(op->dev, NULL, op->n_out), q = fixture_upload(op->dev, NULL, op->n_out);
	double data;

	assert_int_equal(op->apply(op, x, &p, NULL), 0);
	assert_int_equal(v->sum(&p, ret_model, NULL), 0);
	assert_int_equal(v->log_likelihood(y, &p, FLOOR, ret_likelihood, NULL), 0);
	assert_int_equal(v->ratio(y, &p, FLOOR, &q, NULL), 0);
	assert_int_equal(v->dot(&q, &p, &data, NULL), 0); /* y where A x > floor */
	buf_release(&p);
	buf_release(&q);
	return data;
}

static void mlem_identities(void **state)
{
	const struct em_conf conf = {1, FLOOR};

	(void)state;
	for (int which = 0; which < FIXTURE_DEVICES; which++) {
		struct device *dev = fixture_device(which, 2);
		struct scan *scan = fixture_scan(33, 37, 0.9, 5);
		struct buf y, mask, x = fixture_upload(dev, NULL, grid_size(&grid));

		make_data(dev, scan, &y, &mask);
		for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++) {
			struct projection_spec spec = {.model = model, .scan = scan, .n_views = 5, .grid = &grid, .mask = &mask};
			struct linop *op = fixture_projector(dev, &spec);
			struct em_subset all = {op, y};
			double before = -INFINITY;

			assert_int_equal(dev->ops->fill(&x, 1, NULL), 0);
			for (int k = 0; k < 15; k++) {
				double data, sum, likelihood;
				float *xs;

				assert_int_equal(em_run(&conf, &all, 1, &x, NULL, NULL), 0);
				data = data_with_support(op, &x, &y, &sum, &likelihood);
				assert_near(sum, data, SUM_TOL * data);
				assert_true(likelihood >= before - LIKELIHOOD_TOL * fabs(likelihood));
				before = likelihood;
				xs = fixture_download(&x);
				for (size_t i = 0; i < x.n; i++)
					assert_true(xs[i] >= 0 && isfinite(xs[i]));
				free(xs);
			}
			linop_free(op);
		}
		buf_release(&x);
		buf_release(&y);
		buf_release(&mask);
		if (which == FIXTURE_POISON)
			assert_int_equal(device_poison_check(dev, NULL), 0);
		device_close(dev);
		scan_free(scan);
	}
}

/* One run of OSEM over single views; plain: the same operators without their fused passes. */
static float *osem(struct device *dev, const struct scan *scan, const struct buf *y, const struct buf *mask, int iterations,
		   bool plain, const struct monitor *monitor, int expect)
{
	const struct em_conf conf = {iterations, FLOOR};
	struct buf x = fixture_upload(dev, NULL, grid_size(&grid)), masks[5];
	struct linop *op[5], kept[5];
	struct em_subset subset[5];
	size_t n = scan_view_size(scan);
	struct err err = {0};
	float *result;

	for (int i = 0; i < 5; i++) {
		struct projection_spec spec = {.model = PROJECTION_SLICES, .scan = scan, .first = i, .n_views = 1, .grid = &grid};

		masks[i] = buf_part(mask, (size_t)i * n, n);
		spec.mask = &masks[i];
		op[i] = fixture_projector(dev, &spec);
		subset[i] = (struct em_subset){op[i], buf_part(y, (size_t)i * n, n)};
		if (plain) {
			kept[i] = *op[i];
			op[i]->apply_ratio = NULL;
			op[i]->adjoint_update = NULL;
		}
	}
	assert_int_equal(dev->ops->fill(&x, 0.05f, NULL), 0);
	assert_int_equal(em_run(&conf, subset, 5, &x, monitor, &err), expect);
	result = fixture_download(&x);
	for (int i = 0; i < 5; i++) {
		if (plain)
			*op[i] = kept[i];
		linop_free(op[i]);
	}
	buf_release(&x);
	return result;
}

static void fused_osem_is_plain_osem(void **state)
{
	(void)state;
	for (int which = 0; which < FIXTURE_DEVICES; which++) {
		struct device *dev = fixture_device(which, 2);
		struct scan *scan = fixture_scan(33, 37, 0.9, 5);
		struct buf y, mask;
		float *fused, *plain;

		make_data(dev, scan, &y, &mask);
		fused = osem(dev, scan, &y, &mask, 2, false, NULL, 0);
		plain = osem(dev, scan, &y, &mask, 2, true, NULL, 0);
		/* Ten updates, each with some 1e-6 of rounding. */
		assert_true(fixture_difference(fused, plain, grid_size(&grid)) <= 2e-5);
		free(fused);
		free(plain);
		buf_release(&y);
		buf_release(&mask);
		device_close(dev);
		scan_free(scan);
	}
}

struct watch {
	int calls, stop_after;
	double last;
};

static void watch_progress(void *ctx, const char *stage, double fraction)
{
	struct watch *w = ctx;

	assert_string_equal(stage, "reconstruct");
	assert_true(fraction > w->last && fraction <= 1);
	w->last = fraction;
	w->calls++;
}

static bool watch_cancelled(void *ctx)
{
	struct watch *w = ctx;

	return w->calls >= w->stop_after;
}

static void monitor(void **state)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct scan *scan = fixture_scan(33, 37, 0.9, 5);
	struct watch w = {0, 1000, 0};
	struct monitor m = {&w, watch_progress, watch_cancelled};
	struct buf y, mask;

	(void)state;
	make_data(dev, scan, &y, &mask);
	free(osem(dev, scan, &y, &mask, 3, false, &m, 0));
	assert_int_equal(w.calls, 15);
	assert_near(w.last, 1, 0);
	w = (struct watch){0, 4, 0};
	free(osem(dev, scan, &y, &mask, 3, false, &m, -ECANCELED));
	assert_int_equal(w.calls, 4);
	buf_release(&y);
	buf_release(&mask);
	device_close(dev);
	scan_free(scan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mlem_identities),
		cmocka_unit_test(fused_osem_is_plain_osem),
		cmocka_unit_test(monitor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
