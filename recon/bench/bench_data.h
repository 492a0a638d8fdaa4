/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the benchmark's works: the geometries of DBT and PET, and random numbers. Lengths in mm. */
#ifndef TOMONODE_RECON_BENCH_DATA_H
#define TOMONODE_RECON_BENCH_DATA_H

#include "recon/bench/bench.h"
#include "recon/core/scan.h"
#include "recon/pet/michelogram.h"

#define BENCH_DBT_SUPPORT 17.0 /* height of the lowest slice above the detector, mm */

/* Create the geometry of a Siemens MAMMOMAT Inspiration (655.5 mm, 50 degrees) with bins of the voxels' pitch over 239.36 mm of
 * depth, and slices of 1 mm from BENCH_DBT_SUPPORT. EINVAL: fewer than 2 views. Free the scan with scan_free(). */
int bench_dbt_geometry(const struct bench_setup *setup, struct scan **ret_scan, struct grid *ret_grid, struct err *err);

/* Create the rings and rays of a cylindrical scanner and its volume, 2 rings - 1 slices half a ring spacing high, z fastest.
 * Normal: a GE Discovery STE, arc-corrected: 553 planes, 280 angles, 329 radial bins; 256 x 256 x 47 voxels, radius 350 mm. With
 * time of flight: a Siemens Biograph Vision: 33 TOF bins, 765 of its 815 planes (all segments of whole width), 50 angles, 520
 * radial bins; 440 x 440 x 159 voxels, radius 363 mm. */
int bench_pet_geometry(const struct bench_setup *setup, bool tof, struct scan **ret_scan, struct grid *ret_grid, struct err *err);

/* The same as a michelogram; the caller frees its segments. */
int bench_pet_michelogram(const struct bench_setup *setup, bool tof, struct michelogram *ret, double *ret_fov_radius,
			  struct err *err);

/* Fill n numbers, uniform in lo..hi, that depend only on the seed. */
void bench_random(float *ret, size_t n, float lo, float hi, unsigned seed);
int bench_random_alloc(struct device *dev, size_t n, float lo, float hi, unsigned seed, struct buf *ret_buf, struct err *err);

#endif
