/* SPDX-License-Identifier: Apache-2.0 */
/* An algorithm of one's own: gradient descent on |A x - y|^2 / 2 (Landweber). The arrays have the strides of the projector, so that
 * nothing is copied; whoever prefers C order uses TN_FLOATS().
 *
 *   cc own_algorithm.c $(pkg-config --cflags --libs tomonode) -lm */
#include <stdio.h>
#include <stdlib.h>
#include <tomonode.h>

static struct tn_array zero_array(struct tn_layout *l)
{
	struct tn_array a = {
		calloc((size_t)l->floats, sizeof(float)), {TN_HOST, 0}, l->ndim, {2, 32, 1}, l->shape, l->strides, 0};

	return a;
}

static double dot(const struct tn_array *a, int64_t n)
{
	const float *x = a->data;
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += (double)x[i] * (double)x[i];
	return sum;
}

int main(void)
{
	struct tn_parallel p = {TN_SIZE(p), .slices = 3, .angles = 90, .radial = 64, .bin = 1, .slice = 1};
	struct tn_grid grid = {{64, 64, 3}, {1, 1, 1}, {-32, -32, -1.5}};
	struct tn_projector_info i = {TN_SIZE(i)};
	struct tn_device *dev = NULL;
	struct tn_scan *scan = NULL;
	struct tn_projector *a = NULL;
	struct tn_err err = {0};
	double first = 0, last = 0;

	if (tn_device_open("cpu", &dev, &err) == 0 && tn_scan_parallel(&p, &scan, &err) == 0 &&
	    tn_projector_new(dev, scan, &grid, NULL, &a, &err) == 0 && tn_projector_info(a, &i, &err) == 0) {
		struct tn_array x = zero_array(&i.x), g = zero_array(&i.x), r = zero_array(&i.y), y = zero_array(&i.y);
		float *xs = x.data, *gs = g.data, *rs = r.data, *ys = y.data;

		for (int64_t k = 0; k < i.x.floats; k++)
			xs[k] = (k / 256) % 64 > 24 && (k / 256) % 64 < 40 ? 1
									   : 0; /* a band: columns of 3 voxels and 1 of padding */
		tn_forward(a, &x, &y, 0, &err);
		for (int64_t k = 0; k < i.x.floats; k++)
			xs[k] = 0;
		for (int n = 0; n < 50 && err.code == 0; n++) {
			tn_forward(a, &x, &r, 0, &err);
			for (int64_t k = 0; k < i.y.floats; k++)
				rs[k] -= ys[k];
			tn_adjoint(a, &r, &g, 0, &err);
			for (int64_t k = 0; k < i.x.floats; k++)
				xs[k] -= 2e-4f * gs[k]; /* below 2 / |A|^2, about 90 x 64 mm */
			last = dot(&r, i.y.floats);
			first = n == 0 ? last : first;
		}
		printf("|A x - y|^2: %.3g, after 50 steps %.3g\n", first, last);
		free(xs), free(gs), free(rs), free(ys);
	}
	if (err.code)
		fprintf(stderr, "%s\n", err.text);
	tn_projector_free(a), tn_scan_free(scan), tn_device_close(dev);
	return err.code || !(last < 0.01 * first);
}
