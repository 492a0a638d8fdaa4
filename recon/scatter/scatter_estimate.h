/* SPDX-License-Identifier: Apache-2.0 */
/* Estimate the scatter of PET data: reconstruct a coarse image, simulate its single scatter (recon/scatter/single_scatter.h), fit
 * the result to the data (recon/scatter/scatter_scale.h), and again with an image that is corrected with this estimate.
 *
 * Images and fits use the sums over the TOF bins: scatter depends on activity and mu alone, and this needs as many times less
 * memory and time. Only the last simulation has TOF bins. The first image contains the scatter; the second simulation uses the
 * mean of the first and the second image, because the second one lacks too much (STIR). */
#ifndef TOMONODE_RECON_SCATTER_ESTIMATE_H
#define TOMONODE_RECON_SCATTER_ESTIMATE_H

#include "recon/core/monitor.h"
#include "recon/pet/pet.h"
#include "recon/scatter/scatter_scale.h"
#include "recon/scatter/single_scatter.h"

struct scatter_estimate_conf {
	struct single_scatter_conf simulation;
	int iterations;	     /* >= 1 */
	double fov_radius;   /* mm; 0: as in struct pet_protocol */
	size_t memory_limit; /* bytes on the device; 0: the device's memory */
	int threads;	     /* of the host */
};

struct scatter_estimate_report {
	struct single_scatter_report simulation; /* the last one */
	struct scatter_scale_report scale;	 /* the last one */
	double outside;				 /* of the activity of the last image: see activity_outside() */
	struct grid grid;			 /* of the coarse images */
	double seconds_image, seconds_simulate, seconds_scale;
};

struct scatter_estimate {
	struct single_scatter *simulated; /* with the TOF bins of the michelogram, for the factor m = 1 */
	float *scale;			  /* [plane]: the expected scatter of a bin is its norm times this times the simulated */
};

struct scatter_estimate_plan {
	size_t bytes_device;	      /* for a while: coarse session, simulation; with a CPU in host memory */
	size_t bytes_host;	      /* for a while */
	size_t bytes_kept;	      /* on the host, of struct scatter_estimate */
	size_t bytes_packed;	      /* of scatter_estimate_pack() */
	struct pet_protocol protocol; /* of the coarse images */
	struct pet_plan images;
	struct single_scatter_conf simulation; /* of conf, with the distance of points */
};

/* Plan an estimate for m, without or with TOF bins. ENOMEM: the coarse images do not fit. EINVAL: m, or TOF bins that are too
 * narrow. */
int scatter_estimate_plan(const struct michelogram *m, const struct scatter_estimate_conf *conf, struct device *dev,
			  struct scatter_estimate_plan *ret, struct err *err);

/* Estimate. m is borrowed until scatter_estimate_clear(). mu: 1/mm, on mu_grid, which contains the object; averaged on the grid
 * of the coarse images. From the thread that owns the device. EDOM: the data have no counts, or no voxel scatters. The progress
 * is that of the stage "read". ECANCELED. */
int scatter_estimate(const struct michelogram *m, const struct scatter_estimate_conf *conf, const struct scatter_data *data,
		     const struct grid *mu_grid, const float *mu, struct device *dev, const struct monitor *monitor,
		     struct scatter_estimate *ret, struct scatter_estimate_report *ret_report, struct err *err);
size_t scatter_estimate_packed(size_t planes, size_t values); /* values: bytes of the simulation */
/* scatter_estimate_kept.c: copy an estimate with its report to memory that the caller frees, a multiple of sizeof(float) bytes; 0
 * or ENOMEM. Make it from them again: for equal m, conf and device; without times. EINVAL: they are of another estimate. */
int scatter_estimate_pack(const struct michelogram *m, const struct scatter_estimate *e,
			  const struct scatter_estimate_report *report, void **ret, size_t *ret_bytes, struct err *err);
int scatter_estimate_unpack(const struct michelogram *m, const struct scatter_estimate_conf *conf, struct device *dev,
			    const void *bytes, size_t n, struct scatter_estimate *ret, struct scatter_estimate_report *ret_report,
			    struct err *err);
void scatter_estimate_clear(struct scatter_estimate *e); /* accepts an empty one */

#endif
