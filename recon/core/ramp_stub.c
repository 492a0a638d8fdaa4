/* SPDX-License-Identifier: Apache-2.0 */
/* ramp_stub.c - replaces ramp.c in a build without kissfft. */
#include "recon/core/ramp.h"

#include <errno.h>

int ramp_create(enum ramp_filter filter, double cut, double pitch, int n, struct ramp **ret_ramp, struct err *err)
{
	(void)filter, (void)cut, (void)pitch, (void)n, (void)ret_ramp;
	return err_set(err, ENOTSUP, "fbp: filtered backprojection is not available: this build has no FFT library (kissfft)");
}

/* Do nothing: r is always NULL, because this build cannot create a filter. */
struct ramp *ramp_free(struct ramp *r)
{
	(void)r;
	return NULL;
}

float ramp_tail(const struct ramp *r, int j)
{
	(void)r, (void)j;
	return 0;
}

const float *ramp_kernel(const struct ramp *r)
{
	(void)r;
	return NULL;
}

size_t ramp_work(const struct ramp *r)
{
	(void)r;
	return 0;
}

void ramp_rows(const struct ramp *r, float *a, float *b, void *work)
{
	(void)r, (void)a, (void)b, (void)work;
}
