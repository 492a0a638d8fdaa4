/* SPDX-License-Identifier: Apache-2.0 */
/* Single scatter simulation of a sinogram: from an image of the activity and one of mu to the expected scatter of every bin.
 *
 * The formula is that of kernels/scatter.h (Watson 2000; with time of flight Watson 2007). It is evaluated for some detectors of
 * some rings, every pair of them that the sinogram needs, oblique ones included: with a GPU this costs little, and the
 * approximation that an oblique plane has the scatter of the direct plane with the same middle (inverse single-slice rebinning)
 * is not needed. In between, values are linear: in the angles of both ends on their rings, and in the z of both ends.
 *
 * - Scatter points: the grid is divided into cells of about point_distance. Each cell has one point, in a voxel that is chosen at
 *   random with a probability proportional to its mu, at a random place in it; it stands for the integral of mu over the cell. So
 *   the expected sum over the points is the integral, also for cells that are not full. Voxels below mu_least do not scatter.
 *   The random numbers depend on the seed and the cell alone.
 * - Cross section: Klein & Nishina 1929; mu is taken as Compton scatter alone, and follows its total cross section. The
 * efficiency of the energy window is that of a Gaussian whose FWHM is energy_resolution at 511 keV and proportional to the square
 * root of the energy.
 * - Results are those of a bin with the factor m = 1 except for attenuation, in the unit of line integrals of the activity: what
 * is added to the data is normalisation times this. With time of flight they are for each TOF bin. */
#ifndef TOMONODE_RECON_SINGLE_SCATTER_H
#define TOMONODE_RECON_SINGLE_SCATTER_H

#include <stdint.h>

#include "kernels/device.h"
#include "recon/core/monitor.h"
#include "recon/pet/michelogram.h"

struct single_scatter_conf {
	double energy_low, energy_high; /* window, keV */
	double energy_resolution;	/* FWHM at 511 keV, percent of it, > 0 */
	int detectors;			/* sampled on a ring; 0: 64; 8 .. 512 */
	double ring_distance;		/* of sampled rings, mm; 0: 20 mm, or more so that there are SINGLE_SCATTER_RINGS */
	double point_distance;		/* size of the cells, mm; 0: 20 */
	double mu_least;		/* 1/mm; 0: 0.001 */
	uint64_t seed;
};
#define SINGLE_SCATTER_RINGS 24	     /* most sampled rings unless ring_distance is given */
#define SINGLE_SCATTER_RINGS_MOST 64 /* most in any case */

struct single_scatter_report {
	size_t points, pairs;
	double seconds;
};

/* Compute the table of angles for kernels/scatter.h: SCATTER_ANGLES + 1 rows of share (1/sr) and q. EINVAL: the window or the
 * resolution is wrong, or the window does not contain 511 keV. */
int single_scatter_angles(const struct single_scatter_conf *conf, float (*ret_angles)[2], struct err *err);

struct single_scatter;

/* Prepare the simulation of a michelogram; m (with its segments) and the device are borrowed until single_scatter_close(). */
int single_scatter_open(const struct michelogram *m, const struct single_scatter_conf *conf, struct device *dev,
			struct single_scatter **ret, struct err *err);
struct single_scatter *single_scatter_close(struct single_scatter *s); /* accepts NULL; returns NULL */

struct single_scatter_bytes {
	size_t host;   /* of an open simulation */
	size_t device; /* while it runs; with a CPU in host memory */
	size_t values; /* those of single_scatter_values(), part of host */
};
/* Count the memory of a simulation on a grid, without one. EINVAL as single_scatter_open() and single_scatter_run(). */
int single_scatter_count(const struct michelogram *m, const struct single_scatter_conf *conf, const struct grid *grid,
			 struct single_scatter_bytes *ret, struct err *err);

/* Simulate. activity: any unit, >= 0; mu: 1/mm at 511 keV; both grid_size() floats on the same grid, axes of
 * recon/pet/michelogram.h. Call it from the thread that owns the device, as often as wanted; it replaces the results. EDOM: no
 * voxel scatters. EINVAL: a voxel is negative or not a number. The progress is that of the stage "read". ECANCELED: the monitor
 * (NULL: none) has cancelled. */
int single_scatter_run(struct single_scatter *s, const struct grid *grid, const float *activity, const float *mu,
		       const struct monitor *monitor, struct single_scatter_report *ret_report, struct err *err);

/* Return the number of values of a simulation, and in *ret (may be NULL) the values, after single_scatter_run(). */
size_t single_scatter_values(const struct single_scatter *s, const float **ret);
/* Take the values of another simulation with equal michelogram, conf and device, instead of single_scatter_run(). EINVAL: it has
 * another number of them. */
int single_scatter_restore(struct single_scatter *s, const float *values, size_t n, struct err *err);

/* Borrow another michelogram of equal content from now on: the first one may be freed. */
void single_scatter_use(struct single_scatter *s, const struct michelogram *m);

/* Compute planes [first, first + n) of michelogram_data_planes(): ret[n][angle][radial]. After single_scatter_run(), from any
 * thread; uses `threads` threads. ENOMEM. */
int single_scatter_planes(const struct single_scatter *s, int first, int n, int threads, float *ret, struct err *err);

/* Return the value of one bin of a plane, bin = angle n_radial + radial, in TOF bin k (0 without): that of
 * single_scatter_planes(), summed in another order. After single_scatter_run(), from any thread. For single events: 16 values
 * are combined for each call. */
float single_scatter_value(const struct single_scatter *s, int k, int plane, size_t bin);

#endif
