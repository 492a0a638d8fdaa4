/* SPDX-License-Identifier: Apache-2.0 */
/* PET: sinograms with time of flight, attenuation factors and background in memory, ordered subsets EM on a GPU or, without one, on the
 * processor. The data are those of a warm cylinder with a hot rod, computed with the projector itself.
 *
 *   cc pet.c $(pkg-config --cflags --libs tomonode) -lm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tomonode.h>

enum { NZ = 15, N = 64 };

int main(void)
{
	struct tn_pet pet = {TN_SIZE(pet), .rings = 8,	 .detectors = 192, .ring_spacing = 6,	.radius = 200,	   .depth = 8,
			     .radial = 95, .angles = 96, .span = 3,	   .max_difference = 7, .tof = {9, 50, 35}};
	struct tn_grid grid = {{N, N, NZ}, {5, 5, 3}, {-160, -160, -22.5}};
	struct tn_scan_info i = {TN_SIZE(i)};
	struct tn_device *dev = NULL;
	struct tn_scan *scan = NULL;
	struct tn_projector *a = NULL;
	struct tn_recon *r = NULL;
	struct tn_err err = {0};
	float *truth = malloc(NZ * N * N * sizeof(float)), *image = malloc(NZ * N * N * sizeof(float)), *y, *m, *b;
	double error = 0, norm = 0;
	size_t n;

	for (int v = 0; v < NZ * N * N; v++) {
		double x = (v % N - 31.5) * 5, z = (v / N % N - 31.5) * 5;

		truth[v] = hypot(x, z) > 120 ? 0 : hypot(x - 50, z) < 25 ? 4 : 1;
	}
	if (tn_device_open("auto", &dev, &err) < 0 || tn_scan_pet(&pet, &scan, &err) < 0 || tn_scan_info(scan, &i, &err) < 0 ||
	    tn_projector_new(dev, scan, &grid, NULL, &a, &err) < 0)
		goto out;
	n = (size_t)(i.shape[0] * i.rays);
	y = malloc(n * sizeof(float));
	b = malloc(n * sizeof(float));
	m = malloc((size_t)i.rays * sizeof(float));
	if (tn_forward(a, TN_FLOATS(truth, NZ, N, N), TN_FLOATS(y, i.shape[0], i.shape[1], i.shape[2], i.shape[3]), 0, &err) < 0)
		goto out;
	for (size_t k = 0; k < n; k++) { /* y ~ m A x + b, here without noise */
		m[k % (size_t)i.rays] = 0.25f;
		b[k] = 2;
		y[k] = 0.25f * y[k] + b[k];
	}
	if (tn_recon_new(dev, scan, "algorithm=osem iterations=5 subsets=16 projector=joseph",
			 1 << TN_DATA | 1 << TN_FACTORS | 1 << TN_BACKGROUND, &grid, &r, &err) < 0 ||
	    tn_recon_put(r, TN_DATA, TN_FLOATS(y, i.shape[0], i.shape[1], i.shape[2], i.shape[3]), &err) < 0 ||
	    tn_recon_put(r, TN_FACTORS, TN_FLOATS(m, i.shape[1], i.shape[2], i.shape[3]), &err) < 0 ||
	    tn_recon_put(r, TN_BACKGROUND, TN_FLOATS(b, i.shape[0], i.shape[1], i.shape[2], i.shape[3]), &err) < 0 ||
	    tn_recon_run(r, NULL, NULL, NULL, &err) < 0 || tn_recon_read(r, TN_FLOATS(image, NZ, N, N), &err) < 0)
		goto out;
	for (int v = 0; v < NZ * N * N; v++) {
		error += pow((double)image[v] - (double)truth[v], 2);
		norm += pow((double)truth[v], 2);
	}
	printf("error of the image: %.3f of its norm\n", sqrt(error / norm));
	free(y), free(b), free(m);
out:
	if (err.code)
		fprintf(stderr, "%s\n", err.text);
	tn_recon_free(r), tn_projector_free(a), tn_scan_free(scan), tn_device_close(dev);
	free(truth), free(image);
	return err.code || !(sqrt(error / norm) < 0.2);
}
