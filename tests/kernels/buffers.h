/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, random numbers, and values on devices, for the tests of operators. Devices and buffers belong to the test
 * (tests/test.h). */
#ifndef TOMONODE_TESTS_BUFFERS_H
#define TOMONODE_TESTS_BUFFERS_H

#include "kernels/device.h"
#include "tests/test.h"

/* The devices on which every operator test runs, and a GPU, which not every machine has. */
enum { FIXTURE_CPU, FIXTURE_POISON, FIXTURE_DEVICES, FIXTURE_CUDA };

TEST_GIVES_BACK(device_close);

/* Nothing was written outside of the vectors. */
static inline void fixture_close_poison(void *dev)
{
	struct err err = {0};

	assert_done(device_poison_check(dev, &err), &err); /* before device_close(), which would abort the program */
	device_close(dev);
}

static inline struct device *fixture_device(int which, int threads)
{
	struct device *dev = NULL;
	struct err err = {0};

	assert_done(which == FIXTURE_CUDA     ? device_cuda_open(0, &dev, &err)
		    : which == FIXTURE_POISON ? device_poison_open(threads, &dev, &err)
					      : device_cpu_open(threads, &dev, &err),
		    &err);
	test_later(which == FIXTURE_POISON ? fixture_close_poison : give_back_device_close, dev);
	return dev;
}

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

static inline float *fixture_floats(size_t n, uint32_t seed, float lo, float hi)
{
	float *x = take_memory(n * sizeof(*x));

	for (size_t i = 0; i < n; i++)
		x[i] = fixture_uniform(&seed, lo, hi);
	return x;
}

TEST_GIVES_BACK(buf_release);

/* host: NULL: what is in the buffer is not set. */
static inline struct buf fixture_upload(struct device *dev, const float *host, size_t n)
{
	struct buf *b = take_memory(sizeof(*b));

	assert_int_equal(dev->ops->alloc(dev, n, b, NULL), 0);
	test_later(give_back_buf_release, b);
	if (host)
		assert_int_equal(dev->ops->upload(b, host, NULL), 0);
	return *b;
}

static inline float *fixture_download(const struct buf *b)
{
	float *host = take_memory(b->n * sizeof(*host));

	assert_int_equal(b->dev->ops->download(b, host, NULL), 0);
	return host;
}

/* Return the largest difference, relative to the largest value of b, which is not 0 everywhere; infinity if a value is NaN. */
static inline double fixture_difference(const float *a, const float *b, size_t n)
{
	double most = 0, scale = 0;

	for (size_t i = 0; i < n; i++) {
		double d = fabs((double)a[i] - b[i]);

		most = d >= most ? d : d < most ? most : INFINITY;
		scale = fmax(scale, fabs(b[i]));
	}
	assert_true(scale > 0); /* else two devices that compute nothing would agree */
	return most / scale;
}

/* A matrix of a device. */
struct fixture_matrix {
	struct device *dev;
	struct projection *projection;
	struct events *events;
};

static inline void fixture_free_matrix(void *thing)
{
	struct fixture_matrix *m = thing;

	if (m->projection)
		m->dev->ops->projection_free(m->projection);
	if (m->events)
		m->dev->ops->events_free(m->events);
}

static inline struct fixture_matrix *fixture_matrix(struct device *dev)
{
	struct fixture_matrix *m = take_memory(sizeof(*m));

	*m = (struct fixture_matrix){.dev = dev};
	test_later(fixture_free_matrix, m);
	return m;
}

static inline struct projection *fixture_projection(struct device *dev, const struct projection_spec *spec)
{
	struct fixture_matrix *m = fixture_matrix(dev);
	struct err err = {0};

	assert_done(dev->ops->projection_create(dev, spec, &m->projection, &err), &err);
	return m->projection;
}

static inline struct events *fixture_events(struct device *dev, const struct events_spec *spec)
{
	struct fixture_matrix *m = fixture_matrix(dev);
	struct err err = {0};

	assert_done(dev->ops->events_create(dev, spec, &m->events, &err), &err);
	return m->events;
}

#endif
