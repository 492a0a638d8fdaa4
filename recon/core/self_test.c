/* SPDX-License-Identifier: Apache-2.0 */
/* self_test.c - measure the adjoint gap of a device's operators, and compare their products with those of the CPU device.
 *
 * The geometry has odd sizes and bins smaller than voxels, so that tiles and vectors have remainders and rays cross several
 * voxels. */
#include "recon/core/self_test.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "kernels/clock.h"
#include "recon/core/projector.h"
#include "recon/core/scan.h"

#define N_VIEWS 5

static const struct grid volume = {{45, 53, 11}, {0.9, 0.85, 1.5}, {0, -22, 20}}; /* mm */

struct side {
	struct linop *op;
	struct buf x, y;
	float *forward, *adjoint; /* A x, A'y on the host */
};

static int make_scan(struct scan **ret_scan, struct err *err)
{
	static const double angle[N_VIEWS] = {-25, -11, 0, 13, 25};
	struct dbt_geometry g = {
		.n_u = 97,
		.n_v = 103,
		.pitch = 0.45,
		.axis_height = 47,
		.source_axis = 608.5,
		.n_views = N_VIEWS,
		.angle = angle,
	};

	return scan_create_dbt(&g, ret_scan, err);
}

/* Return n random numbers, uniform in 0..1, that depend only on `state`. */
static float *random_floats(size_t n, uint64_t state, struct err *err)
{
	float *x = malloc(n * sizeof(*x));

	if (!x)
		err_set(err, ENOMEM, "self-test: no memory for %zu numbers", n);
	for (size_t i = 0; x && i < n; i++) { /* xorshift64*: Marsaglia 2003, Vigna 2016 */
		state ^= state >> 12;
		state ^= state << 25;
		state ^= state >> 27;
		x[i] = (float)((state * 2685821657736338717u) >> 40) / (1 << 24);
	}
	return x;
}

static int upload_random(struct device *dev, size_t n, uint64_t seed, struct buf *ret_buf, struct err *err)
{
	float *host = random_floats(n, seed, err);
	int rc = host ? dev->ops->alloc(dev, n, ret_buf, err) : -ENOMEM;

	if (rc == 0)
		rc = dev->ops->upload(ret_buf, host, err);
	free(host);
	return rc;
}

static int download_buf(const struct buf *b, float **ret_host, struct err *err)
{
	float *host = malloc(b->n * sizeof(*host));
	int rc;

	if (!host)
		return err_set(err, ENOMEM, "self-test: no memory for %zu numbers", b->n);
	rc = b->dev->ops->download(b, host, err);
	if (rc == 0)
		*ret_host = host;
	else
		free(host);
	return rc;
}

static void side_clear(struct side *s)
{
	linop_free(s->op);
	buf_release(&s->x);
	buf_release(&s->y);
	free(s->forward);
	free(s->adjoint);
	*s = (struct side){0};
}

/* Compute A x and A'y on one device. */
static int side_run(struct side *s, struct device *dev, const struct projection_spec *spec, struct err *err)
{
	int rc = projector_create(dev, spec, &s->op, err);

	if (rc == 0)
		rc = upload_random(dev, s->op->n_in, 88172645463325252u, &s->x, err);
	if (rc == 0)
		rc = dev->ops->alloc(dev, s->op->n_out, &s->y, err);
	if (rc == 0)
		rc = s->op->apply(s->op, &s->x, &s->y, err);
	if (rc == 0)
		rc = download_buf(&s->y, &s->forward, err);
	buf_release(&s->y);
	if (rc == 0)
		rc = upload_random(dev, s->op->n_out, 2463534242u, &s->y, err);
	if (rc == 0)
		rc = s->op->adjoint(s->op, &s->y, &s->x, err);
	if (rc == 0)
		rc = download_buf(&s->x, &s->adjoint, err);
	return rc;
}

/* Return the largest difference divided by the largest expected value; infinity if a value is NaN. */
static double largest_difference(const float *found, const float *expected, size_t n)
{
	double most = 0, scale = 0;

	for (size_t i = 0; i < n; i++) {
		double d = fabs((double)found[i] - (double)expected[i]);

		most = d >= most ? d : d < most ? most : INFINITY;
		scale = fmax(scale, fabs((double)expected[i]));
	}
	return scale > 0 ? most / scale : INFINITY;
}

static int check_limit(double found, const char *what, const char *model, const struct device *dev, struct err *err)
{
	if (found <= SELF_TEST_TOL)
		return 0;
	return err_set(err, EHWPOISON, "%s fails its self-test: %s of the operator '%s' is %.3g, allowed: at most %.0e",
		       dev->name, what, model, found, SELF_TEST_TOL);
}

static int test_model(struct device *dev, struct device *cpu, const struct projection_spec *spec, struct self_test_report *report,
		      struct err *err)
{
	const char *model = spec->model == PROJECTION_EXACT ? "exact" : "slices";
	struct side found = {0}, expected = {0};
	double gap, forward, adjoint;
	int rc = side_run(&expected, cpu, spec, err);

	if (rc == 0)
		rc = side_run(&found, dev, spec, err);
	if (rc < 0)
		goto out;
	gap = linop_adjoint_gap(found.op, 3, err);
	if (gap < 0) {
		rc = err && err->code && err->code != EDOM ? -err->code
							   : check_limit(INFINITY, "the adjoint gap", model, dev, err);
		goto out;
	}
	forward = largest_difference(found.forward, expected.forward, found.op->n_out);
	adjoint = largest_difference(found.adjoint, expected.adjoint, found.op->n_in);
	report->gap = fmax(report->gap, gap);
	report->difference = fmax(report->difference, fmax(forward, adjoint));
	rc = check_limit(gap, "the adjoint gap", model, dev, err);
	if (rc == 0)
		rc = check_limit(forward, "the difference of A x to the CPU", model, dev, err);
	if (rc == 0)
		rc = check_limit(adjoint, "the difference of A'y to the CPU", model, dev, err);
out:
	side_clear(&found);
	side_clear(&expected);
	return rc;
}

int self_test(struct device *dev, struct self_test_report *ret_report, struct err *err)
{
	struct projection_spec spec = {.n_views = N_VIEWS, .grid = &volume};
	struct self_test_report report = {0};
	double begun = clock_seconds();
	struct device *cpu = NULL;
	struct scan *scan = NULL;
	int rc = make_scan(&scan, err);

	if (rc == 0)
		rc = device_cpu_open(1, &cpu, err);
	spec.scan = scan;
	for (int model = PROJECTION_EXACT; rc == 0 && model <= PROJECTION_SLICES; model++) {
		spec.model = model;
		rc = test_model(dev, cpu, &spec, &report, err);
	}
	report.seconds = clock_seconds() - begun;
	*ret_report = report;
	device_close(cpu);
	scan_free(scan);
	return rc;
}
