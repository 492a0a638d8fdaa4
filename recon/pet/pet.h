/* SPDX-License-Identifier: Apache-2.0 */
/* PET: from sinograms to a volume of activity.
 *
 *   y ~ Poisson(m (A x) + b)    y: counts; A: mm of each ray in each voxel (and the resolution model); m, b: see enum pet_role
 *
 * x is in counts per mm of ray and voxel; the calibration to Bq/ml is not known at this level. Voxels with the centre outside the
 * field of view become 0.
 *
 * pet_plan() determines all sizes, and its error messages give the numbers; a session executes the plan, as in recon/dbt/dbt.h.
 * Volumes are returned x fastest, then y, then z, axes of recon/pet/michelogram.h, slices in ascending z. */
#ifndef TOMONODE_RECON_PET_H
#define TOMONODE_RECON_PET_H

#include "kernels/device.h"
#include "recon/core/algorithm.h"
#include "recon/core/monitor.h"
#include "recon/pet/michelogram.h"

struct pet_protocol {
	enum algorithm algorithm;	  /* pet_supports() must be true */
	int iterations;			  /* ignored by FBP */
	int subsets;			  /* OSEM, BSREM: number of subsets of angles, at most n_angles; else ignored */
	int matrix;			  /* pixels along x and y; 0: 256 */
	double voxel;			  /* mm, transaxial; 0: diameter of the field of view / matrix */
	double slice;			  /* mm; 0: half of the ring spacing, one slice per direct and cross plane */
	double fov_radius;		  /* mm; 0: the largest radial bin, at most 350 and 0.98 of the radius where rays end */
	double postfilter;		  /* FWHM of a Gaussian filter of the result, mm; 0: none */
	double psf;			  /* FWHM of the Gaussian of the resolution model, mm; 0: none */
	enum projection_model projector;  /* PATHS, JOSEPH, EXACT */
	double prior_weight, prior_gamma; /* BSREM: beta (relative to the sensitivity) and gamma of kernels/prior.h */
	double relaxation;		  /* BSREM: step of pass n: 1 / (1 + relaxation n) */
	double filter_cut;		  /* FBP: Hann window, fraction of the Nyquist frequency */
	size_t memory_limit;		  /* bytes on the device; 0: all it has. If not everything fits, angles are streamed */
	bool deterministic;
};

/* mlem, osem, bsrem (penalised, relative difference prior), fbp (single-slice rebinning, Daube-Witherspoon & Muehllehner 1987,
 * then 2-D filtered backprojection: quick look), and what else is made of the rules of the first three. */
bool pet_supports(enum algorithm a);

struct pet_plan {
	struct grid grid; /* z_fastest; centred on the scanner's axis and middle */
	double fov_radius;
	int subsets, iterations;
	int group_views;  /* angles processed together, copied from host memory; 0: all are on the device */
	bool keep_tables; /* keep the tables of all groups on the device; else compute them again for each use */
	size_t bytes_volume, bytes_data, bytes_projection, bytes_total; /* on the device */
	size_t bytes_host;						/* that a session allocates on the host */
};

/* Plan a reconstruction. with_factors, with_background: m and b will be put. The volume is centred on the scanner's axis and
 * middle; its slices cover the direct and cross planes. ENOMEM: the message gives the bytes that do not fit. */
int pet_plan(const struct pet_protocol *p, const struct michelogram *m, bool with_factors, bool with_background,
	     struct device *dev, struct pet_plan *ret_plan, struct err *err);

enum pet_role {
	PET_DATA = 1,	/* y: counts, or precorrected data; finite, >= 0 */
	PET_FACTORS,	/* m: detected fraction of the activity's events: attenuation times efficiency; finite, >= 0 */
	PET_BACKGROUND, /* b: expected additional counts: randoms and scatter; finite, >= 0 */
};

struct pet_report {
	double seconds_setup, seconds_sensitivity, seconds_iterate, seconds_filter;
	double sum_data, sum_model; /* sum of y and of m (A x) over bins that count, after the last iteration of an MLEM without
				       background (equal in theory); else 0 */
	double counts;		    /* sum of y */
	bool sensitivity_cached;    /* the images came from the cache */
};

/* Sensitivity images, in host memory, for the later sessions of one device with the same geometry, protocol and factors. Those
 * used least recently go when all are more than max_bytes. A cache has one owner, who frees it before the device is closed, and
 * sessions use it in the thread that owns the device. */
#define PET_CACHE_BYTES ((size_t)1 << 30) /* a size for a program's cache */
struct pet_cache;
struct pet_cache *pet_cache_create(const struct device *dev, size_t max_bytes); /* NULL: out of memory */
struct pet_cache *pet_cache_free(struct pet_cache *c);				/* after all sessions; takes NULL, returns NULL */

struct pet_session;

/* cache: the device's, or NULL: nothing is kept after the session. Everything is borrowed until pet_close(). */
int pet_open(const struct pet_protocol *p, const struct pet_plan *plan, const struct michelogram *m, bool with_factors,
	     bool with_background, struct device *dev, struct pet_cache *cache, struct pet_session **ret_session,
	     struct err *err);
struct pet_session *pet_close(struct pet_session *s); /* accepts NULL; returns NULL */

/* Put planes [first, first + n) of a role, data[n][angle][radial], host memory of the caller. Put each plane of each announced
 * role exactly once, in any order, from any thread. EINVAL: a bin, which the message names, is negative or not a number. */
int pet_put(struct pet_session *s, enum pet_role role, int first, int n, const float *data, struct err *err);

/* Reconstruct. Call it once, after all planes, from the thread that owns the device. EDOM: there are no counts, or no bin can
 * have any. ECANCELED: the monitor has cancelled. */
int pet_run(struct pet_session *s, const struct monitor *monitor, struct pet_report *ret_report, struct err *err);

/* Copy slices [first, first + n), n[1] * n[0] floats each; after pet_run(), from any thread. */
int pet_read_slices(struct pet_session *s, int first, int n, float *ret_slices, struct err *err);

#endif
