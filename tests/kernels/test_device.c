/* SPDX-License-Identifier: Apache-2.0 */
/* Open devices, vectors on each CPU device, errors that the poison device detects, and the row loops of every instruction set. */
#include "kernels/cpu/cpu.h"
#include "tests/kernels/devices_test.h"
#include "tests/test.h"

static void refused(const char *spec, int code)
{
	struct device *dev = NULL;
	struct err err = {0};

	assert_error(device_open(spec, &dev, &err), &err, code, spec);
	assert_null(dev);
}

TEST(names)
{
	struct device *dev = NULL;
	struct err err = {0};

	refused("", EINVAL);
	refused("gpu", EINVAL);
	refused("cpu:0", EINVAL);
	refused("cpu:-1", EINVAL);
	refused("cpu:2x", EINVAL);
	refused("cpu:99999", EINVAL);
	refused("cuda:x", EINVAL);
	if (device_cuda_count() == 0)
		refused("cuda:0", ENODEV);
	assert_int_equal(device_open("cpu:1", &dev, &err), 0);
	assert_non_null(strstr(dev->name, "1 thread"));
	assert_true(dev->memory > 0);
	assert_null(device_close(dev));
	assert_null(device_close(NULL));
	assert_int_equal(device_open("auto", &dev, &err), 0);
	device_close(dev);
}

static void count_device(void *ctx, const char *spec, const char *name, size_t memory)
{
	(void)memory;
	assert_true(strlen(spec) > 0 && strlen(name) > 0);
	++*(int *)ctx;
}

/* The step rate is between 1e6, which every machine exceeds even when it is busy, and 1e13, more than 100 cores with vectors can
 * reach. */
TEST(step_rate)
{
	static const int devices[][2] = {{FIXTURE_CPU, 1}, {FIXTURE_CPU, 2}, {FIXTURE_POISON, 1}};

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		struct device *dev = fixture_device(devices[i][0], devices[i][1]);
		double rate = 0;

		assert_int_equal(dev->ops->step_rate(dev, &rate, NULL), 0);
		assert_true(rate > 1e6 && rate < 1e13);
	}
}

TEST(listing)
{
	int n = 0, found;

	found = device_list(count_device, &n);
	assert_int_equal(found, n);
	assert_true(n >= 1);
}

TEST(empty_slot)
{
	struct device_ops ops = device_cpu_ops;
	struct err err = {0};

	assert_int_equal(device_check(&ops, &err), 0);
	ops.dot = NULL;
	assert_error(device_check(&ops, &err), &err, EINVAL, "dot");
	ops = device_cpu_ops;
	ops.mark = NULL;
	assert_error(device_check(&ops, &err), &err, EINVAL, "mark");
}

/* Axes of 3, 4, 1 and 40000 elements in any order before and after, some reversed, with and without an index. */
ON_DEVICES(permutations, dev)
{
	enum { N = 3 * 4 * 40000 };
	const int64_t shape[4] = {3, 4, 1, 40000};
	const int32_t places[4] = {2, 0, 3, 1};
	float *host = take_memory(2 * N * sizeof(*host)), *got = host + N;
	struct buf x, y, index = fixture_upload(dev, NULL, 4);
	unsigned state = test_seed();

	for (int i = 0; i < N; i++)
		host[i] = (float)i;
	x = fixture_upload(dev, host, N);
	y = fixture_upload(dev, host, N);
	memcpy(got, places, sizeof(places));
	assert_int_equal(dev->ops->upload(&index, got, NULL), 0);
	for (int k = 0; k < 40; k++) {
		struct strides s = {
			.n = 4, .axis = 1, .scatter = k & 1, .index = k & 2 ? (const int32_t *)(const void *)index.mem : NULL};
		int64_t *const to[2] = {s.from, s.to};
		int64_t first[2] = {0, 0}, wrong = 0;

		memcpy(s.shape, shape, sizeof(shape));
		for (int side = 0; side < 2; side++) {
			int axis[4] = {0, 1, 2, 3};
			int64_t step = 1;

			for (int i = 3; i >= 0; i--) {
				int j = (int)(rand_r(&state) % (unsigned)(i + 1)), a = axis[j];
				bool reversed = rand_r(&state) % 3 == 0;

				axis[j] = axis[i];
				to[side][a] = reversed ? -step : step;
				first[side] += reversed ? (shape[a] - 1) * step : 0;
				step *= shape[a];
			}
		}
		assert_int_equal(dev->ops->permute(dev, &s, x.mem + first[0], y.mem + first[1], NULL), 0);
		assert_int_equal(dev->ops->download(&y, got, NULL), 0);
		for (int64_t a = 0; a < 3; a++)
			for (int64_t b = 0; b < 4; b++)
				for (int64_t d = 0; d < 40000; d++) {
					int64_t other = s.index ? places[b] : b, f = s.scatter ? b : other,
						t = s.scatter ? other : b;

					wrong += got[first[1] + a * s.to[0] + t * s.to[1] + d * s.to[3]] !=
						 host[first[0] + a * s.from[0] + f * s.from[1] + d * s.from[3]];
				}
		assert_int_equal(wrong, 0);
	}
}

ON_DEVICES(vectors, dev)
{
	const struct device_ops *v = dev->ops;
	const float xs[5] = {1, 2, 3, 4, 5}, ys[5] = {2, 0, -1, 0.5f, 10};
	struct buf x = fixture_upload(dev, xs, 5), y = fixture_upload(dev, ys, 5), z = fixture_upload(dev, NULL, 5),
		   short_one = buf_part(&z, 1, 3);
	float got[5];
	double sum;

	assert_int_equal(v->multiply(&x, &y, &z, NULL), 0);
	assert_int_equal(v->download(&z, got, NULL), 0);
	assert_true(got[0] == 2 && got[1] == 0 && got[2] == -3 && got[3] == 2 && got[4] == 50);
	assert_int_equal(v->axpy(2, &x, &z, NULL), 0);
	assert_int_equal(v->download(&z, got, NULL), 0);
	assert_true(got[0] == 4 && got[1] == 4 && got[2] == 3 && got[3] == 10 && got[4] == 60);
	assert_int_equal(v->threshold(&z, 4, 0.5f, NULL), 0);
	assert_int_equal(v->download(&z, got, NULL), 0);
	assert_true(got[0] == 0 && got[1] == 0 && got[2] == 0 && got[3] == 0.5f && got[4] == 0.5f);
	assert_int_equal(v->sum(&x, &sum, NULL), 0);
	assert_near(sum, 15, 0);
	assert_int_equal(v->dot(&x, &y, &sum, NULL), 0);
	assert_near(sum, 51, 0);
	assert_int_equal(v->log_likelihood(&x, &y, 1e-6f, &sum, NULL), 0);
	/* the logarithm is that of the C library, in double */
	assert_near(sum, log(2) - 2 + 4 * log(0.5) - 0.5 + 5 * log(10) - 10, 1e-12);
	/* a bin without counts contributes its expected ones */
	assert_int_equal(v->log_likelihood(&y, &x, 1e-6f, &sum, NULL), 0);
	assert_near(sum, 2 * log(1) + 0.5 * log(4) + 10 * log(5) - 15, 1e-12);
	assert_int_equal(v->fill(&short_one, 7, NULL), 0);
	assert_int_equal(v->download(&z, got, NULL), 0);
	assert_true(got[0] == 0 && got[1] == 7 && got[3] == 7 && got[4] == 0.5f);
	assert_int_equal(v->dot(&x, &short_one, &sum, NULL), -EINVAL);
}

/* Vectors that are divided among threads or blocks: their results are those of sums in double, to the bit for any number of
 * threads. */
ON_DEVICES(long_vectors, dev)
{
	enum { N = 1000003 };
	const struct device_ops *v = dev->ops;
	float *x = fixture_floats(N, 3, -1, 1), *y = fixture_floats(N, 4, 0.1f, 2), *got;
	struct buf bx = fixture_upload(dev, x, N), by = fixture_upload(dev, y, N), z = fixture_upload(dev, NULL, N);
	double sum = 0, dot = 0, likelihood = 0, found[4];

	for (size_t i = 0; i < N; i++) {
		sum += x[i];
		dot += (double)x[i] * y[i];
		likelihood += y[i] > 0.5f ? y[i] * log(y[i]) - y[i] : 0;
	}
	assert_int_equal(v->sum(&bx, &found[0], NULL) | v->dot(&bx, &by, &found[1], NULL), 0);
	assert_int_equal(v->log_likelihood(&by, &by, 0.5f, &found[2], NULL), 0);
	assert_near(found[0], sum, 1e-9 * N);
	assert_near(found[1], dot, 1e-9 * N);
	assert_near(found[2], likelihood, 1e-6 * N);
	assert_int_equal(v->multiply(&bx, &by, &z, NULL) | v->axpy(0.5f, &bx, &z, NULL), 0);
	assert_int_equal(v->copy(&z, &bx, NULL) | v->threshold(&bx, 0.25f, 3, NULL) | v->axpy(1, &bx, &z, NULL), 0);
	got = fixture_download(&z);
	for (size_t i = 0; i < N; i++) {
		float once = 0.5f * x[i] + x[i] * y[i];

		if (fabsf(once - 0.25f) > 1e-6f) /* rounding decides there */
			assert_near(got[i], once + (once > 0.25f ? 3 : 0), 1e-6);
	}
	for (int threads = 1; !strcmp(v->kind, "cpu") && threads < 6; threads++) {
		struct device *other = fixture_device(FIXTURE_CPU, threads);
		struct buf b = fixture_upload(other, x, N);

		assert_int_equal(other->ops->sum(&b, &found[3], NULL), 0);
		assert_true(found[3] == found[0]);
	}
}

/* Values on both sides of every border between steps; the histogram covers every stride-th value, the counts cover all; the
 * number of threads has no effect. */
static void tally_on(struct device *dev, size_t n, size_t stride)
{
	const float offset = -0.01f, step = 0.0005f;
	uint64_t *bins = take_zeros(65536, sizeof(*bins)), *expect = take_zeros(65536, sizeof(*expect));
	float *host = take_memory(n * sizeof(*host));
	struct tally t = {9, 9, 9}, want = {0};
	uint32_t seed = 7;
	struct buf x;

	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		host[i] = offset + step * ((float)(seed >> 8) / (1 << 24) * 70000 - 2000);
		host[i] = i % 1001 == 3 ? NAN : i % 1501 == 4 ? INFINITY : i % 997 == 5 ? -INFINITY : host[i];
	}
	for (size_t i = 0; i < n; i++) {
		double steps = floor((double)((host[i] - offset) / step) + 0.5); /* the quotient is the device's, in float */

		if (!isfinite(host[i])) {
			want.bad++;
			continue;
		}
		want.below += steps < 0;
		want.above += steps > 65535;
		if (i % stride == 0)
			expect[steps < 0 ? 0 : steps > 65535 ? 65535 : (size_t)steps]++;
	}
	assert_true(n < 5000 || (want.below > 0 && want.above > 0 && want.bad > 0));
	x = fixture_upload(dev, host, n);
	expect[11] += 5;
	bins[11] = 5; /* counted up */
	assert_int_equal(dev->ops->tally(&x, offset, step, stride, bins, &t, NULL), 0);
	assert_true(t.below == want.below && t.above == want.above && t.bad == want.bad);
	for (size_t i = 0, off = 0; i < 65536; i++) {
		/* float holds steps near 65536 to 1/256: the sum with a half may be rounded over a border */
		off += (size_t)llabs((long long)bins[i] - (long long)expect[i]);
		assert_true(off <= n / stride / 128);
	}
	assert_int_equal(dev->ops->tally(&x, offset, 0, stride, bins, &t, NULL), -EINVAL);
	assert_int_equal(dev->ops->tally(&x, offset, step, 0, bins, &t, NULL), -EINVAL);
}

ON_DEVICES(tallies, dev)
{
	tally_on(dev, 200003, 1);
	tally_on(dev, 70001, 3);
	tally_on(dev, 200003, 7);
	tally_on(dev, 5, 9);
}

/* Stored values equal a loop in C with each operation rounded by itself, in both orders of rows and columns; an odd number of
 * values; NaN and values outside the range; with padding, 0 is the value 0 alone. */
static void store_on(struct device *dev, size_t columns, size_t rows, bool turn_columns, bool turn_rows, bool padded)
{
	struct stored_form form = {-0.01f, 1 / 0.0005f, 4095, columns, rows, turn_columns, turn_rows, padded};
	size_t n = columns * rows;
	float *image = take_memory(n * sizeof(*image)), *packed = take_zeros((n + 1) / 2, sizeof(*packed));
	uint16_t *values = take_memory((n + 1) / 2 * sizeof(float));
	struct buf x, y, tight;
	uint32_t seed = 5;

	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		image[i] = form.offset + 0.0005f * ((float)(seed >> 8) / (1 << 24) * 6000 - 1000);
		image[i] = i % 101 == 3 ? NAN : i % 151 == 4 ? INFINITY : i % 97 == 5 ? -INFINITY : image[i];
		image[i] = i % 7 == 6 ? 0 : image[i];
	}
	x = fixture_upload(dev, image, n);
	y = fixture_upload(dev, packed, (n + 1) / 2);
	assert_int_equal(dev->ops->store(&x, &form, &y, NULL), 0);
	assert_int_equal(dev->ops->download(&y, packed, NULL), 0);
	memcpy(values, packed, (n + 1) / 2 * sizeof(float));
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++) {
			volatile float v = image[(turn_rows ? rows - 1 - i : i) * columns + (turn_columns ? columns - 1 - j : j)];
			volatile float steps = v - form.offset;

			steps = steps * form.per_step;
			steps = steps + 0.5f;
			assert_int_equal(values[i * columns + j], padded && v == 0			  ? 0
								  : !(steps > 0) || (padded && steps < 1) ? padded
								  : steps < 4095			  ? (int)steps
													  : 4095);
		}
	tight = buf_part(&y, 0, (n + 1) / 2 - 1);
	assert_int_equal(dev->ops->store(&x, &form, &tight, NULL), -EINVAL);
	assert_int_equal(dev->ops->store(&x, &form, &x, NULL), -EINVAL);
	form.per_step = 0;
	assert_int_equal(dev->ops->store(&x, &form, &y, NULL), -EINVAL);
	form.per_step = 1;
	form.top = 65536;
	assert_int_equal(dev->ops->store(&x, &form, &y, NULL), -EINVAL);
}

ON_DEVICES(stored_values, dev)
{
	store_on(dev, 301, 203, false, false, false);
	store_on(dev, 301, 203, true, false, true);
	store_on(dev, 300, 203, false, true, true);
	store_on(dev, 301, 203, true, true, false);
	store_on(dev, 17, 1, true, true, true);
}

/* A transfer that was begun, ordered and waited for is complete; freed host memory is returned again by the next host_alloc(). */
ON_DEVICES(queues, dev)
{
	const struct device_ops *v = dev->ops;
	size_t n = 1000;
	float *up, *down, *third;
	struct buf x = fixture_upload(dev, NULL, n), y = fixture_upload(dev, NULL, n);

	assert_int_equal(v->host_alloc(dev, n * sizeof(float), (void **)&up, NULL), 0);
	assert_int_equal(v->host_alloc(dev, n * sizeof(float), (void **)&down, NULL), 0);
	assert_true(up != down);
	for (size_t i = 0; i < n; i++) {
		up[i] = (float)i;
		down[i] = -1;
	}
	assert_int_equal(v->upload_begin(&x, up, NULL), 0);
	assert_int_equal(v->order(dev, QUEUE_UP, QUEUE_WORK, NULL), 0);
	assert_int_equal(v->fill(&y, 1, NULL) | v->axpy(2, &x, &y, NULL), 0); /* y = 1 + 2 x */
	assert_int_equal(v->order(dev, QUEUE_WORK, QUEUE_DOWN, NULL), 0);
	assert_int_equal(v->download_begin(&y, down, NULL), 0);
	assert_int_equal(v->wait(dev, QUEUE_DOWN, NULL), 0);
	for (size_t i = 0; i < n; i++)
		assert_true(down[i] == 1 + 2 * (float)i);
	assert_int_equal(v->wait(dev, QUEUE_UP, NULL) | v->wait(dev, QUEUE_WORK, NULL), 0);
	assert_int_equal(v->wait(dev, (enum device_queue)3, NULL), -EINVAL);
	assert_int_equal(v->order(dev, QUEUE_UP, (enum device_queue) - 1, NULL), -EINVAL);
	v->host_free(dev, NULL);
	v->host_free(dev, up);
	assert_int_equal(v->host_alloc(dev, 16, (void **)&third, NULL), 0);
	v->host_free(dev, third);
	v->host_free(dev, down);
}

/* Freed host memory is kept for the next request of its size. */
TEST(host_memory)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	void *first, *again, *large;

	assert_int_equal(dev->ops->host_alloc(dev, (size_t)1 << 20, &first, NULL), 0);
	memset(first, 1, (size_t)1 << 20);
	dev->ops->host_free(dev, first);
	assert_int_equal(dev->ops->host_alloc(dev, ((size_t)1 << 20) + 1, &large, NULL), 0);
	assert_true(large != first);
	assert_int_equal(dev->ops->host_alloc(dev, (size_t)1 << 20, &again, NULL), 0);
	assert_ptr_equal(again, first);
	assert_int_equal(dev->ops->host_alloc(dev, SIZE_MAX - 7, &again, NULL), -ENOMEM);
}

/* Copy slabs through three buffers (upload, change, download) with all queues in use: the result equals that of single steps. */
ON_DEVICES(queues_in_turns, dev)
{
	enum { SLABS = 17, SLAB = 250007 };
	const struct device_ops *v = dev->ops;
	struct buf slab[3];
	float *host = NULL, *expected = take_memory((size_t)SLABS * SLAB * sizeof(float));

	for (size_t i = 0; i < (size_t)SLABS * SLAB; i++)
		expected[i] = (float)(i % 977) / 977 - 0.5f;

	assert_int_equal(v->host_alloc(dev, (size_t)SLABS * SLAB * sizeof(float), (void **)&host, NULL), 0);
	memcpy(host, expected, (size_t)SLABS * SLAB * sizeof(float));
	for (int i = 0; i < 3; i++)
		slab[i] = fixture_upload(dev, NULL, SLAB);
	assert_int_equal(v->upload_begin(&slab[0], host, NULL), 0);
	for (int i = 0; i < SLABS; i++) {
		struct buf *here = &slab[i % 3];

		assert_int_equal(v->order(dev, QUEUE_UP, QUEUE_WORK, NULL), 0);
		assert_int_equal(v->order(dev, QUEUE_WORK, QUEUE_DOWN, NULL), 0);
		assert_int_equal(v->order(dev, QUEUE_DOWN, QUEUE_UP, NULL), 0);
		if (i + 1 < SLABS)
			assert_int_equal(v->upload_begin(&slab[(i + 1) % 3], host + (size_t)(i + 1) * SLAB, NULL), 0);
		if (i > 0)
			assert_int_equal(v->download_begin(&slab[(i - 1) % 3], host + (size_t)(i - 1) * SLAB, NULL), 0);
		for (int k = 0; k < 4; k++)
			assert_int_equal(v->axpy(0.5f, here, here, NULL), 0);
	}
	assert_int_equal(v->order(dev, QUEUE_WORK, QUEUE_DOWN, NULL), 0);
	assert_int_equal(v->download_begin(&slab[(SLABS - 1) % 3], host + (size_t)(SLABS - 1) * SLAB, NULL), 0);
	assert_int_equal(v->wait(dev, QUEUE_DOWN, NULL), 0);
	for (size_t i = 0; i < (size_t)SLABS * SLAB; i++)
		assert_near(host[i], expected[i] * 5.0625, 1e-5);
	v->host_free(dev, host);
}

/* On the poison device, a caller that does not wait for a transfer reads the old content. */
TEST(poison_delays)
{
	struct device *dev = fixture_device(FIXTURE_POISON, 1);
	const struct device_ops *v;
	struct err err = {0};
	struct buf x;
	float *host, got[8], outside[8] = {0};
	double sum;

	v = dev->ops;
	x = fixture_upload(dev, NULL, 8);
	assert_int_equal(v->host_alloc(dev, sizeof(got), (void **)&host, NULL), 0);
	assert_true(isnan(host[0]) && isnan(host[7]));
	for (int i = 0; i < 8; i++)
		host[i] = (float)i;
	assert_int_equal(v->upload_begin(&x, outside, &err), -EFAULT);	/* not from host_alloc() */
	assert_int_equal(v->upload_begin(&x, host + 1, &err), -EFAULT); /* beyond its end */
	assert_int_equal(v->upload_begin(&x, host, NULL), 0);
	assert_int_equal(v->sum(&x, &sum, NULL), 0);
	assert_true(isnan(sum));
	assert_int_equal(v->order(dev, QUEUE_UP, QUEUE_WORK, NULL), 0);
	assert_int_equal(v->sum(&x, &sum, NULL), 0);
	assert_true(sum == 28);
	assert_int_equal(v->fill(&x, 3, NULL) | v->download_begin(&x, host, NULL), 0);
	assert_true(host[5] == 5);
	assert_int_equal(v->wait(dev, QUEUE_UP, NULL), 0); /* the wrong one */
	assert_true(host[5] == 5);
	assert_int_equal(v->wait(dev, QUEUE_DOWN, NULL), 0);
	assert_true(host[5] == 3);
	assert_int_equal(v->download_begin(&x, host, NULL), 0);
	v->host_free(dev, host);
	assert_int_equal(v->download_begin(&x, host, &err), -EFAULT);
	host[2] = 0; /* after it was given back */
	assert_int_equal(device_poison_check(dev, &err), -EFAULT);
	memcpy(&host[2], &host[3], sizeof(float));
	assert_int_equal(device_poison_check(dev, &err), 0);
}

TEST(poison_catches)
{
	struct device *dev = fixture_device(FIXTURE_POISON, 1);
	struct err err = {0};
	struct buf x, after;
	float fresh[8];
	double sum;

	assert_int_equal(dev->ops->alloc(dev, 8, &x, NULL), 0);
	assert_int_equal(dev->ops->download(&x, fresh, NULL), 0);
	for (int i = 0; i < 8; i++)
		assert_true(isnan(fresh[i]));
	after = x;
	after.n = 9;
	assert_int_equal(dev->ops->fill(&after, 1, &err), -EFAULT); /* too long */
	x.mem[8] = 1;						    /* write past the end, as a faulty kernel could */
	assert_error(dev->ops->fill(&x, 1, &err), &err, EFAULT, "past the end");
	assert_int_equal(device_poison_check(dev, &err), -EFAULT);
	memcpy(&x.mem[8], &x.mem[9], sizeof(float)); /* heal the guard */
	assert_int_equal(device_poison_check(dev, &err), 0);
	after = x;
	buf_release(&x);
	buf_release(&x); /* an empty one */
	buf_release(NULL);
	assert_error(dev->ops->sum(&after, &sum, &err), &err, EFAULT, "after its release");
	after.mem[3] = 0;
	assert_int_equal(device_poison_check(dev, &err), -EFAULT);
	memcpy(&after.mem[3], &after.mem[4], sizeof(float));
	assert_int_equal(device_poison_check(dev, &err), 0);
}

#define N 203
#define PAD 96

/* The loops of each instruction set give the results of the plain ones, within a few roundings of sums of up to 6 terms: only
 * some use fused multiply-add. */
#define ROWS_TOL 4e-6

static void same(const float *a, const float *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_near(a[i], b[i], ROWS_TOL * (1 + fabs(a[i])));
}

static void run_rows(const struct cpu_rows *rows, float scale, const float *in, const float *in2, float *out)
{
	struct cpu_block block[2] = {{5, 0.25f, 0}, {5 + (int)(16 * scale), 0.75f, 0}};
	_Alignas(64) float acc[32] = {0}, den[32] = {0};
	float w[5] = {0.25f, 0.5f, 0.125f, 0.0625f, 0.7f};

	rows->resample(acc, in + PAD, block, 2, scale);
	memcpy(out, acc, sizeof(acc));
	for (int taps = 1; taps <= 5; taps++)
		rows->combine(out + 32 + 40 * taps, in, 31, w, taps, 37);
	memset(acc, 0x7f, sizeof(acc));
	block[1].base = 5 + (int)(16 / scale);
	for (int b = 0; b < 2; b++) /* position f is one voxel before the first voxel of the block (cpu_slice_make()) */
		block[b].s = -1 - scale * block[b].f;
	memset(den, 0x7f, sizeof(den)); /* must be overwritten where new sums begin */
	rows->gather(acc, den, in + PAD, in2 + PAD, block, 2, true, scale, slice_taps(scale));
	rows->gather(acc, den, in2 + PAD, in + PAD, block, 2, false, scale, slice_taps(scale));
	memcpy(out + 300, acc, sizeof(acc));
	memcpy(out + 332, den, sizeof(den));
	rows->lengths(out + 400, out + 440, in, in + 5, in2, in, 2.0f, 37);
	rows->finish(out + 480, in, false, NULL, in, 2.0f, 37);
	memcpy(out + 520, in, 37 * sizeof(float));
	rows->finish(out + 520, in + 3, true, in2, in, 2.0f, 37);
	rows->lengths(out + 560, NULL, in, NULL, NULL, in, 2.0f, 37);
}

TEST(instruction_sets_agree)
{
	static float in[2 * PAD + N], in2[2 * PAD + N], expect[600], got[600];
	const float scales[] = {0.3f, 0.6f, 0.76f, 0.88f, 0.91f, 0.97f, 1.0f, 1.3f, 2.2f, 4.7f};
	const struct cpu_rows *rows;
	uint32_t seed = 9;

	for (size_t i = 0; i < 2 * PAD + N; i++) {
		seed = seed * 1664525u + 1013904223u;
		in[i] = (float)(seed >> 8) / (1 << 24);
		in2[i] = i % 7 == 0 ? 0 : 1 - in[i];
	}
	assert_string_equal(cpu_rows_at(0)->name, "baseline");
	for (size_t s = 0; s < sizeof(scales) / sizeof(scales[0]); s++) {
		memset(expect, 0, sizeof(expect));
		run_rows(cpu_rows_at(0), scales[s], in, in2, expect);
		for (int i = 1; (rows = cpu_rows_at(i)); i++) {
			memset(got, 0, sizeof(got));
			run_rows(rows, scales[s], in, in2, got);
			same(expect, got, 600);
		}
	}
}
