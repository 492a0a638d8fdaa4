/* SPDX-License-Identifier: Apache-2.0 */
/* bench_data.c - the geometries of DBT and PET in every size, random data. */
#include "recon/bench/bench_data.h"

#include <errno.h>
#include <stdlib.h>

#include "kernels/tof.h"
#include "recon/bench/bench_internal.h"
#include "recon/pet/michelogram.h"

#define DEPTH 239.36 /* depth of the detector (along x), mm */

static const struct dbt {
	int voxels[3], views;
} dbt[BENCH_SIZES] = {
	[BENCH_TINY] = {{40, 48, 6}, 5},
	[BENCH_QUICK] = {{352, 448, 30}, 9},
	[BENCH_NORMAL] = {{704, 896, 60}, 25},
	[BENCH_FULL] = {{2816, 3584, 60}, 25},
};

static const struct pet {
	struct pet_scanner scanner;
	int n_radial, n_angles, span, largest_difference;
	bool arc_corrected;
	int matrix;
	double fov_radius; /* mm */
	struct scan_tof tof;
} discovery_ste =
	{
		.scanner = {.rings = 24,
			    .detectors = 560,
			    .ring_spacing = 6.54,
			    .radius = 443.1,
			    .interaction_depth = 8.4,
			    .bin = 2.397},
		.n_radial = 329,
		.n_angles = 280,
		.span = 2,
		.largest_difference = 23,
		.arc_corrected = true,
		.matrix = 256,
		.fov_radius = 350,
},
  small =
	  {
		  .scanner = {.rings = 4, .detectors = 64, .ring_spacing = 6.5, .radius = 100, .interaction_depth = 5, .bin = 4},
		  .n_radial = 41,
		  .n_angles = 32,
		  .span = 3,
		  .largest_difference = 1,
		  .arc_corrected = true,
		  .matrix = 32,
		  .fov_radius = 78,
},
  vision = {
	  /* a Siemens Biograph Vision: 33 TOF bins of 143.231 ps, resolution 214 ps */
	  .scanner = {.rings = 80, .detectors = 798, .ring_spacing = 3.29114, .radius = 410, .interaction_depth = 7, .bin = 1.6},
	  .n_radial = 520,
	  .n_angles = 50,
	  .span = 19,
	  .largest_difference = 79,
	  .matrix = 440,
	  .fov_radius = 363,
	  .tof = {33, 143.231 * TOF_MM_PER_PS, 214 * TOF_MM_PER_PS / TOF_FWHM_PER_SIGMA},
};

int bench_dbt_geometry(const struct bench_setup *setup, struct scan **ret_scan, struct grid *ret_grid, struct err *err)
{
	const struct dbt *d = &dbt[setup->size];
	int views = bench_or(setup->views, d->views), n[3], r;
	double pitch, *angle = malloc((size_t)views * sizeof(*angle));
	struct dbt_geometry g = {
		.axis_height = 47, .source_axis = 608.5, .n_views = views, .angle = angle, .detector_ratio = setup->turn};

	if (!angle)
		return err_set(err, ENOMEM, "no memory for %d angles", views);
	for (int c = 0; c < 3; c++)
		n[c] = bench_or(setup->voxels[c], d->voxels[c]);
	pitch = DEPTH / n[0];
	g.n_u = n[0];
	g.n_v = n[1];
	g.pitch = pitch;
	for (int i = 0; i < views; i++)
		angle[i] = views > 1 ? -25 + 50.0 * i / (views - 1) : 0;
	r = scan_create_dbt(&g, ret_scan, err);
	if (r == 0)
		*ret_grid =
			(struct grid){{n[0], n[1], n[2]}, {pitch, pitch, 1}, {0, -0.5 * n[1] * pitch, BENCH_DBT_SUPPORT}, false};
	free(angle);
	return r;
}

static struct pet pet_of(const struct bench_setup *setup, bool tof)
{
	struct pet p = setup->size == BENCH_TINY ? small : tof ? vision : discovery_ste;

	if (setup->size == BENCH_TINY && tof)
		p.tof = (struct scan_tof){9, 20, 8};
	if (setup->size == BENCH_QUICK) { /* every seventh angle */
		p.n_angles = 40;
		p.matrix = 128;
	}
	if (setup->size == BENCH_QUICK && tof) {
		p.n_angles = 2;
		p.matrix = 220;
	}
	p.n_angles = bench_or(setup->views, p.n_angles);
	p.matrix = bench_or(setup->voxels[0], p.matrix);
	p.fov_radius = setup->fov_radius > 0 ? setup->fov_radius : p.fov_radius;
	return p;
}

int bench_pet_michelogram(const struct bench_setup *setup, bool tof, struct michelogram *ret, double *ret_fov_radius,
			  struct err *err)
{
	struct pet p = pet_of(setup, tof);

	*ret = (struct michelogram){.scanner = p.scanner,
				    .n_radial = p.n_radial,
				    .n_angles = p.n_angles,
				    .arc_corrected = p.arc_corrected,
				    .tof = p.tof};
	*ret_fov_radius = p.fov_radius;
	return michelogram_segments(p.scanner.rings, p.span, p.largest_difference, &ret->segments, &ret->n_segments, err);
}

int bench_pet_geometry(const struct bench_setup *setup, bool tof, struct scan **ret_scan, struct grid *ret_grid, struct err *err)
{
	struct michelogram m = {0};
	double fov_radius, pixel, slice;
	int *plane = NULL, matrix, slices, r = bench_pet_michelogram(setup, tof, &m, &fov_radius, err);

	if (r == 0)
		r = scan_create_michelogram(&m, fov_radius, NULL, ret_scan, &plane, err);
	if (r == 0) {
		matrix = pet_of(setup, tof).matrix;
		pixel = 2 * fov_radius / matrix;
		slices = 2 * m.scanner.rings - 1;
		slice = m.scanner.ring_spacing / 2;
		*ret_grid = (struct grid){.n = {matrix, matrix, slices},
					  .h = {pixel, pixel, slice},
					  .lo = {-fov_radius, -fov_radius, -0.5 * slices * slice},
					  .z_fastest = true};
	}
	free(plane);
	free(m.segments);
	return r;
}

void bench_random(float *ret, size_t n, float lo, float hi, unsigned seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u; /* Knuth & Lewis: Numerical Recipes, section 7.1 */
		ret[i] = lo + (hi - lo) * (float)(seed >> 8) / (1 << 24);
	}
}

int bench_random_alloc(struct device *dev, size_t n, float lo, float hi, unsigned seed, struct buf *ret_buf, struct err *err)
{
	float *host = malloc(n * sizeof(*host));
	int r;

	if (!host)
		return err_set(err, ENOMEM, "no memory for %zu random numbers", n);
	bench_random(host, n, lo, hi, seed);
	r = dev->ops->alloc(dev, n, ret_buf, err);
	if (r == 0)
		r = dev->ops->upload(ret_buf, host, err);
	free(host);
	return r;
}
