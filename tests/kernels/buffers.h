/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers and values on devices, for the tests of operators. */
#ifndef TOMONODE_TESTS_BUFFERS_H
#define TOMONODE_TESTS_BUFFERS_H

#include "kernels/device.h"
#include "tests/test.h"

/* From 0 to 1. */
static inline float fixture_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (float)(*seed >> 8) / (1 << 24);
}

static inline float fixture_uniform(uint32_t *seed, float lo, float hi)
{
	return lo + (hi - lo) * fixture_random(seed);
}

/* host: NULL: what is in the buffer is not set. */
static inline struct buf fixture_upload(struct device *dev, const float *host, size_t n)
{
	struct buf b = {0};

	assert_int_equal(dev->ops->alloc(dev, n, &b, NULL), 0);
	if (host)
		assert_int_equal(dev->ops->upload(&b, host, NULL), 0);
	return b;
}

static inline float *fixture_download(const struct buf *b)
{
	float *host = malloc((b->n ? b->n : 1) * sizeof(*host));

	assert_non_null(host);
	assert_int_equal(b->dev->ops->download(b, host, NULL), 0);
	return host;
}

#endif
