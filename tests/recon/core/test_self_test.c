/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test passes on the available devices, and detects each kind of faulty device. */
#include "tests/test.h"
#include "recon/core/self_test.h"
#include "tests/recon/dbt_fixture.h"

TEST(good_devices_pass)
{
	for (int which = 0; which < FIXTURE_DEVICES; which++) {
		struct device *dev = fixture_device(which, 2);
		struct self_test_report report = {.gap = -1};
		struct err err = {0};

		assert_done(self_test(dev, &report, &err), &err);
		assert_true(report.gap >= 0 && report.gap <= SELF_TEST_TOL);
		assert_true(report.difference >= 0 && report.difference <= SELF_TEST_TOL);
		assert_true(report.seconds > 0);
	}
}

/* A CPU device with a faulty download(): only the values that are read back are wrong. */
static struct device_ops lying;
static const struct device_ops *honest;

static int download_scaled(const struct buf *src, float *dst, struct err *err)
{
	int rc = honest->download(src, dst, err);

	for (size_t i = 0; i < src->n; i++)
		dst[i] *= 1.0001f;
	return rc;
}

static int download_nan(const struct buf *src, float *dst, struct err *err)
{
	int rc = honest->download(src, dst, err);

	dst[src->n / 2] = NAN;
	return rc;
}

/* A faulty adjoint(), which is not the transpose of forward(). */
static int adjoint_partly(struct projection *a, const struct buf *y, bool add, struct buf *ret_x, struct err *err)
{
	int rc = honest->adjoint(a, y, add, ret_x, err);
	struct buf part = buf_part(ret_x, 0, ret_x->n / 100);

	return rc < 0 ? rc : honest->fill(&part, 0, err);
}

static int adjoint_broken(struct projection *a, const struct buf *y, bool add, struct buf *ret_x, struct err *err)
{
	(void)a;
	(void)y;
	(void)add;
	(void)ret_x;
	return err_set(err, EHWPOISON, "an uncorrectable error");
}

static int dot_nan(const struct buf *x, const struct buf *y, double *ret, struct err *err)
{
	int rc = honest->dot(x, y, ret, err);

	*ret = NAN;
	return rc;
}

static int alloc_refused(struct device *dev, size_t n, struct buf *ret_buf, struct err *err)
{
	(void)ret_buf;
	return err_set(err, ENOMEM, "%s: %zu floats do not fit", dev->name, n);
}

static void fails(const struct device_ops *ops, int code, const char *part)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct self_test_report report;
	struct err err = {0};

	dev->ops = ops;
	assert_int_equal(self_test(dev, &report, &err), -code);
	assert_int_equal(err.code, code);
	if (!strstr(err.msg, part))
		fail_msg("'%s' does not hold '%s'", err.msg, part);
	dev->ops = honest;
}

TEST(wrong_devices_fail)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 1);

	honest = dev->ops;
	lying = *honest;
	lying.download = download_scaled;
	fails(&lying, EHWPOISON, "the difference of A x to the CPU of the operator 'exact' is 0.0001");
	lying = *honest;
	lying.download = download_nan;
	fails(&lying, EHWPOISON, "is inf");
	lying = *honest;
	lying.adjoint = adjoint_partly;
	fails(&lying, EHWPOISON, "adjoint gap");
	lying = *honest;
	lying.dot = dot_nan;
	fails(&lying, EHWPOISON, "adjoint gap");
	lying = *honest;
	lying.adjoint = adjoint_broken;
	fails(&lying, EHWPOISON, "an uncorrectable error");
	lying = *honest;
	lying.alloc = alloc_refused;
	fails(&lying, ENOMEM, "do not fit");
}
