/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel beams: filtered backprojection of the sinogram of a disc with a hole, whose line integrals are computed here.
 *
 *   cc beams.c $(pkg-config --cflags --libs tomonode) -lm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tomonode.h>

enum { ANGLES = 180, RADIAL = 128 };

/* The chord of a disc at distance s from its middle. */
static double disc_chord(double radius, double s)
{
	return fabs(s) < radius ? 2 * sqrt(radius * radius - s * s) : 0;
}

int main(void)
{
	struct tn_parallel p = {TN_SIZE(p), .slices = 1, .angles = ANGLES, .radial = RADIAL, .bin = 1, .slice = 1};
	struct tn_device *dev = NULL;
	struct tn_scan *scan = NULL;
	struct tn_recon *r = NULL;
	struct tn_err err = {0};
	static float sinogram[ANGLES][RADIAL], image[RADIAL][RADIAL];

	for (int a = 0; a < ANGLES; a++)
		for (int t = 0; t < RADIAL; t++) {
			double s = t - (RADIAL - 1) / 2.0, hole = 20 * cos(a * acos(-1) / ANGLES); /* its middle: x = 20, y = 0 */

			sinogram[a][t] = (float)(0.02 * (disc_chord(50, s) - disc_chord(8, s - hole)));
		}
	if (tn_device_open("auto", &dev, &err) < 0 || tn_scan_parallel(&p, &scan, &err) < 0 ||
	    tn_recon_new(dev, scan, "algorithm=fbp filter=hann filter_cut=0.8", 1 << TN_DATA, NULL, &r, &err) < 0 ||
	    tn_recon_put(r, TN_DATA, TN_FLOATS(sinogram, 1, ANGLES, RADIAL), &err) < 0 ||
	    tn_recon_run(r, NULL, NULL, NULL, &err) < 0 || tn_recon_read(r, TN_FLOATS(image, 1, RADIAL, RADIAL), &err) < 0)
		fprintf(stderr, "%s\n", err.text);
	printf("0.02 in the disc: %.4f; 0 in the hole: %.4f\n", (double)image[64][34], (double)image[64][84]);
	tn_recon_free(r), tn_scan_free(scan), tn_device_close(dev);
	return err.code || fabs((double)image[64][34] - 0.02) > 5e-4 || fabs((double)image[64][84]) > 5e-4;
}
