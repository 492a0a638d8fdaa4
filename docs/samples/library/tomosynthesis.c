/* SPDX-License-Identifier: Apache-2.0 */
/* Tomosynthesis: line integrals of 15 views over 40 degrees, a detector that stands still. A bead is
 * blurred along z, because the angles are few, and brightest in its slice or beside it.
 *
 *   cc tomosynthesis.c $(pkg-config --cflags --libs tomonode) -lm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tomonode.h>

enum { VIEWS = 15, NU = 80, NV = 120, SLICES = 30, BEAD = 17 };

static void print_stage(void *ctx, const char *stage, double fraction)
{
	(void)ctx;
	if (fraction == 1)
		printf("%s: done\n", stage);
}

int main(void)
{
	double view[VIEWS][12]; /* source, centre of the detector, steps of its columns and rows; docs/geometry.md */
	struct tn_views v = {TN_SIZE(v), VIEWS, NU, NV, view[0]};
	struct tn_grid grid = {{NU, NV, SLICES}, {1, 1, 1}, {0, -NV / 2.0, 20}};
	struct tn_device *dev = NULL;
	struct tn_scan *scan = NULL;
	struct tn_projector *a = NULL;
	struct tn_recon *r = NULL;
	struct tn_err err = {0};
	float *volume = calloc(SLICES * NV * NU, sizeof(float)), *lines = malloc(VIEWS * NV * NU * sizeof(float));
	int best = 0;

	for (int i = 0; i < VIEWS; i++) {
		double angle = (i - VIEWS / 2) * 40.0 / VIEWS * acos(-1) / 180;
		double numbers[12] = {0, 650 * sin(angle), 650 * cos(angle), NU / 2.0, 0, 0, 1, 0, 0, 0, 1, 0};

		for (int k = 0; k < 12; k++)
			view[i][k] = numbers[k];
	}
	for (int k = 0; k < SLICES * NV * NU; k++)
		volume[k] = 0.05f;
	volume[(BEAD * NV + 60) * NU + 40] = 1;
	if (tn_device_open("auto", &dev, &err) < 0 || tn_scan_views(&v, &scan, &err) < 0 ||
	    tn_projector_new(dev, scan, &grid, NULL, &a, &err) < 0 ||
	    tn_forward(a, TN_FLOATS(volume, SLICES, NV, NU), TN_FLOATS(lines, VIEWS, NV, NU), 0, &err) < 0 ||
	    tn_recon_new(dev, scan, "algorithm=osem iterations=3 voxel=1 slice_spacing=1 support=20 thickness=30", 1 << TN_DATA,
			 NULL, &r, &err) < 0 ||
	    tn_recon_put(r, TN_DATA, TN_FLOATS(lines, VIEWS, NV, NU), &err) < 0 ||
	    tn_recon_run(r, print_stage, NULL, NULL, &err) < 0 || tn_recon_read(r, TN_FLOATS(volume, SLICES, NV, NU), &err) < 0)
		fprintf(stderr, "%s\n", err.text);
	for (int k = 0; k < SLICES; k++)
		if (volume[(k * NV + 60) * NU + 40] > volume[(best * NV + 60) * NU + 40])
			best = k;
	printf("the bead of slice %d is brightest in slice %d\n", BEAD, best);
	tn_recon_free(r), tn_projector_free(a), tn_scan_free(scan), tn_device_close(dev);
	free(volume), free(lines);
	return err.code || abs(best - BEAD) > 1;
}
