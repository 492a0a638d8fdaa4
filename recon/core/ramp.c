/* SPDX-License-Identifier: Apache-2.0 */
/* ramp.c - the ramp filter with kissfft.
 *
 * - The transform is long enough for a linear convolution of a row: at least 2 n - 1.
 * - One complex transform filters two rows, as real and imaginary part: the kernel is even, its transform real. */
#include "recon/core/ramp.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include <kiss_fft.h>

struct ramp {
	int n, n_fft;
	kiss_fft_cfg forward, inverse;
	float *response; /* n_fft values: the kernel's transform / n_fft */
	float *tail;	 /* n + 1 values */
	float *kernel;	 /* n values */
};

static double sinc(double x)
{
	return fabs(x) < 1e-9 ? 1 : sin(M_PI * x) / (M_PI * x);
}

/* Return the transform of |f| for |f| < fc, at t. */
static double band_limited_ramp(double t, double fc)
{
	double s = sinc(fc * t);

	return fc * fc * (2 * sinc(2 * fc * t) - s * s);
}

/* Return the kernel at bin j times the pitch, 1/mm. */
static double kernel_at(enum ramp_filter filter, double cut, double pitch, int j)
{
	double fc = (filter == RAMP_HANN ? cut : 1) / (2 * pitch), t = j * pitch, apart = 1 / (2 * fc);

	if (filter == RAMP_PLAIN) /* eq. 61 of Kak & Slaney 1988 */
		return j == 0 ? 1 / (4 * pitch) : j % 2 ? -1 / (M_PI * M_PI * j * j * pitch) : 0;
	if (filter == RAMP_SHEPP_LOGAN)
		return 2 / (M_PI * M_PI * pitch * (1 - 4.0 * j * j));
	if (filter == RAMP_COSINE) /* cos(pi f / 2 fc) in frequency: the mean of two copies shifted to either side */
		return pitch * 0.5 * (band_limited_ramp(t - apart / 2, fc) + band_limited_ramp(t + apart / 2, fc));
	/* (1 + cos(pi f / fc)) / 2 in frequency: half of the kernel, and a quarter of it shifted to either side */
	return pitch *
	       (0.5 * band_limited_ramp(t, fc) + 0.25 * (band_limited_ramp(t - apart, fc) + band_limited_ramp(t + apart, fc)));
}

struct ramp *ramp_free(struct ramp *r)
{
	if (!r)
		return NULL;
	kiss_fft_free(r->forward);
	kiss_fft_free(r->inverse);
	free(r->response);
	free(r->tail);
	free(r->kernel);
	free(r);
	return NULL;
}

static int check_filter(enum ramp_filter filter, double cut, double pitch, int n, struct err *err)
{
	if (filter < RAMP_PLAIN || filter > RAMP_COSINE)
		return err_set(err, EINVAL, "fbp: filter %d, not in %d..%d", (int)filter, RAMP_PLAIN, RAMP_COSINE);
	if (filter == RAMP_HANN && !(cut > 0 && cut <= 1))
		return err_set(err, EINVAL,
			       "fbp: the Hann window ends at %g of the Nyquist frequency; allowed: above 0, at most 1", cut);
	if (n < 1 || n > 1 << 24 || !(pitch > 0) || !isfinite(pitch))
		return err_set(err, EINVAL, "fbp: a filter for rows of %d samples, %g mm apart, is not possible", n, pitch);
	return 0;
}

int ramp_create(enum ramp_filter filter, double cut, double pitch, int n, struct ramp **ret_ramp, struct err *err)
{
	kiss_fft_cpx *kernel = NULL;
	struct ramp *r = NULL;
	double rest;
	size_t n_fft;
	int error = check_filter(filter, cut, pitch, n, err);

	if (error < 0)
		return error;
	n_fft = (size_t)kiss_fft_next_fast_size(2 * n - 1);
	r = calloc(1, sizeof(*r));
	kernel = calloc(2 * n_fft, sizeof(*kernel));
	if (r) {
		r->n = n;
		r->n_fft = (int)n_fft;
		r->forward = kiss_fft_alloc(r->n_fft, 0, NULL, NULL);
		r->inverse = kiss_fft_alloc(r->n_fft, 1, NULL, NULL);
		r->response = malloc(n_fft * sizeof(*r->response));
		r->tail = malloc(((size_t)n + 1) * sizeof(*r->tail));
		r->kernel = malloc((size_t)n * sizeof(*r->kernel));
	}
	if (!kernel || !r || !r->forward || !r->inverse || !r->response || !r->tail || !r->kernel) {
		error = err_set(err, ENOMEM, "fbp: no memory for a filter of %d bins", n);
		goto out;
	}
	rest = kernel_at(filter, cut, pitch, 0) /
	       2; /* the kernel is even and its sum is 0, so the sum of samples 0, 1, 2, ... is half of sample 0 */
	for (int j = 0; j < n; j++) {
		double h = kernel_at(filter, cut, pitch, j);

		r->tail[j] = (float)rest;
		rest -= h;
		kernel[j].r = r->kernel[j] = (float)h;
		if (j > 0)
			kernel[r->n_fft - j].r = (float)h;
	}
	r->tail[n] = (float)rest;
	kiss_fft(r->forward, kernel, kernel + n_fft);
	for (size_t k = 0; k < n_fft; k++)
		r->response[k] = kernel[n_fft + k].r / (float)n_fft;
	*ret_ramp = r;
	r = NULL;
out:
	free(kernel);
	ramp_free(r);
	return error;
}

float ramp_tail(const struct ramp *r, int j)
{
	return r->tail[j];
}

const float *ramp_kernel(const struct ramp *r)
{
	return r->kernel;
}

size_t ramp_work(const struct ramp *r)
{
	return 2 * (size_t)r->n_fft * sizeof(kiss_fft_cpx);
}

void ramp_rows(const struct ramp *r, float *a, float *b, void *work)
{
	kiss_fft_cpx *in = work, *out = in + r->n_fft;

	for (int v = 0; v < r->n_fft; v++) {
		in[v].r = v < r->n ? a[v] : 0;
		in[v].i = v < r->n && b ? b[v] : 0;
	}
	kiss_fft(r->forward, in, out);
	for (int k = 0; k < r->n_fft; k++) {
		out[k].r *= r->response[k];
		out[k].i *= r->response[k];
	}
	kiss_fft(r->inverse, out, in);
	for (int v = 0; v < r->n; v++) {
		a[v] = in[v].r;
		if (b)
			b[v] = in[v].i;
	}
}
