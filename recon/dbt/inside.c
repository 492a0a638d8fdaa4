/* SPDX-License-Identifier: Apache-2.0 */
/* inside.c - see recon/dbt/inside.h. */
#include "recon/dbt/inside.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/steps.h"
#include "recon/dbt/skin_distance.h"

#define CELL 1.0 /* mm */

struct squares {
	int n[2], bins[2]; /* number, and voxels along x and y of one; the last ones may have fewer */
	double h[2];	   /* mm */
};

static struct squares squares_of(const struct grid *grid)
{
	struct squares s;

	for (int c = 0; c < 2; c++) {
		s.bins[c] = (int)fmax(1, lround(CELL / grid->h[c]));
		s.n[c] = (grid->n[c] + s.bins[c] - 1) / s.bins[c];
		s.h[c] = s.bins[c] * grid->h[c];
	}
	return s;
}

static void mark_outside(const struct squares *s, const struct grid *grid, const float *slice, unsigned char *outside)
{
#pragma omp parallel for schedule(static)
	for (int y = 0; y < s->n[1]; y++)
		for (int x = 0; x < s->n[0]; x++) {
			int all = 0, zero = 0;

			for (int j = y * s->bins[1]; j < (y + 1) * s->bins[1] && j < grid->n[1]; j++)
				for (int i = x * s->bins[0]; i < (x + 1) * s->bins[0] && i < grid->n[0]; i++) {
					all++;
					zero += slice[(size_t)j * (size_t)grid->n[0] + (size_t)i] == 0;
				}
			outside[(size_t)y * (size_t)s->n[0] + (size_t)x] = 2 * zero > all;
		}
}

int inside_tally(const struct grid *grid, const float *slice, double offset, double step, double depth, size_t stride,
		 uint64_t bins[65536], size_t *counted, struct err *err)
{
	struct squares s;
	unsigned char *outside = NULL;
	float *distance = NULL, least;
	size_t cells, voxels;
	int rc;

	if (!(step > 0) || !(depth >= 0) || stride == 0 || grid->n[0] <= 0 || grid->n[1] <= 0 || !(grid->h[0] > 0) ||
	    !(grid->h[1] > 0))
		return err_set(
			err, EINVAL,
			"inside of a slice: step=%g, depth=%g mm, stride=%zu, %d x %d voxels of %g x %g mm is not possible", step,
			depth, stride, grid->n[0], grid->n[1], grid->h[0], grid->h[1]);
	s = squares_of(grid);
	cells = (size_t)s.n[0] * (size_t)s.n[1];
	voxels = (size_t)grid->n[0] * (size_t)grid->n[1];
	outside = malloc(cells);
	distance = malloc(cells * sizeof(*distance));
	rc = outside && distance ? 0 : err_set(err, ENOMEM, "inside of a slice: no memory for %zu squares", cells);
	if (rc == 0) {
		mark_outside(&s, grid, slice, outside);
		rc = skin_distance(s.n, s.h, outside, distance, NULL, err);
	}
	least = (float)(depth + fmax(s.h[0], s.h[1])); /* from centre to centre of squares; a voxel may be at their edge */
	for (size_t i = 0; rc == 0 && i < voxels; i += stride) {
		size_t x = i % (size_t)grid->n[0] / (size_t)s.bins[0], y = i / (size_t)grid->n[0] / (size_t)s.bins[1];

		if (distance[y * (size_t)s.n[0] + x] > least) {
			bins[(size_t)steps_limited(steps_of(slice[i], (float)offset, (float)step))]++;
			++*counted;
		}
	}
	free(outside);
	free(distance);
	return rc;
}
