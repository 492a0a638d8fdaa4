/* SPDX-License-Identifier: Apache-2.0 */
/* List mode: events between detectors at any places, here two panels around a point source. The sensitivity is the adjoint of the factors
 * of all lines that can be measured.
 *
 *   cc list.c $(pkg-config --cflags --libs tomonode) -lm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tomonode.h>

enum { SIDE = 20, PANEL = SIDE * SIDE, LINES = PANEL * PANEL, EVENTS = 40000 };

int main(void)
{
	static float points[2 * PANEL][3], factors[LINES];
	static int32_t pairs[LINES][2], hits[EVENTS][2];
	struct tn_lines all = {TN_SIZE(all), points[0], 2 * PANEL, pairs[0], LINES, NULL, NULL, 0, {0, 0, 0}}, events = all;
	struct tn_grid grid = {{20, 20, 20}, {5, 5, 5}, {-50, -50, -50}};
	const double source[3] = {12.5, 2.5, -7.5};
	struct tn_device *dev = NULL;
	struct tn_scan *lors = NULL, *scan = NULL;
	struct tn_projector *a = NULL;
	struct tn_recon *r = NULL;
	struct tn_err err = {0};
	float *sensitivity = malloc(8000 * sizeof(float)), *image = malloc(8000 * sizeof(float));
	int best = 0, n = 0;

	for (int i = 0; i < PANEL; i++) /* panels of 4 mm detectors at x = -80 and 80 mm; the grid is centred between them */
		for (int side = 0; side < 2; side++) {
			points[side * PANEL + i][0] = side ? 80 : -80;
			points[side * PANEL + i][1] = (float)((i % SIDE - 9.5) * 5);
			points[side * PANEL + i][2] = (float)((i / SIDE - 9.5) * 5);
		}
	for (int i = 0; i < LINES; i++) {
		pairs[i][0] = i / PANEL;
		pairs[i][1] = PANEL + i % PANEL;
		factors[i] = 1;
	}
	srand(1);
	while (n < EVENTS) { /* decays at the source: a detector of one panel, and the opposite one */
		const float *from = points[rand() % PANEL];
		double t = (80 - source[0]) / (source[0] + 80), at[2];

		for (int c = 0; c < 2; c++)
			at[c] = floor((source[c + 1] + (source[c + 1] - (double)from[c + 1]) * t) / 5 + 10);
		if (at[0] < 0 || at[0] >= SIDE || at[1] < 0 || at[1] >= SIDE)
			continue;
		hits[n][0] = (int32_t)((from - points[0]) / 3);
		hits[n++][1] = (int32_t)(PANEL + at[0] + SIDE * at[1]);
	}
	events.pairs = hits[0];
	events.n = EVENTS;
	if (tn_device_open("auto", &dev, &err) < 0 || tn_scan_lines(&all, &lors, &err) < 0 ||
	    tn_scan_lines(&events, &scan, &err) < 0 || tn_projector_new(dev, lors, &grid, NULL, &a, &err) < 0 ||
	    tn_adjoint(a, TN_FLOATS(factors, LINES), TN_FLOATS(sensitivity, 20, 20, 20), 0, &err) < 0 ||
	    tn_recon_new(dev, scan, "algorithm=osem iterations=4 subsets=4 projector=joseph fov_radius=78", 1 << TN_SENSITIVITY,
			 &grid, &r, &err) < 0 ||
	    tn_recon_put(r, TN_SENSITIVITY, TN_FLOATS(sensitivity, 20, 20, 20), &err) < 0 ||
	    tn_recon_run(r, NULL, NULL, NULL, &err) < 0 || tn_recon_read(r, TN_FLOATS(image, 20, 20, 20), &err) < 0)
		fprintf(stderr, "%s\n", err.text);
	for (int v = 0; err.code == 0 && v < 8000; v++)
		best = image[v] > image[best] ? v : best;
	printf("brightest voxel: x = %g, y = %g, z = %g mm; the source: %g, %g, %g\n", (best % 20 - 9.5) * 5,
	       (best / 20 % 20 - 9.5) * 5, (best / 400 - 9.5) * 5, source[0], source[1], source[2]);
	tn_recon_free(r), tn_projector_free(a), tn_scan_free(scan), tn_scan_free(lors), tn_device_close(dev);
	free(sensitivity), free(image);
	return err.code || fabs((best / 20 % 20 - 9.5) * 5 - source[1]) > 5 || fabs((best / 400 - 9.5) * 5 - source[2]) > 5;
}
