/* SPDX-License-Identifier: Apache-2.0 */
/* PET: from sinograms to a volume of activity.
 *
 *   y ~ Poisson(m (A x) + b)    y: counts; A: mm of each ray in each voxel (and the resolution model); m, b: see enum pet_role
 *
 * x is in counts per mm of ray and voxel; the calibration to Bq/ml is not known at this level. Voxels with the centre outside the
 * field of view become 0.
 *
 * pet_plan() determines all sizes, and its error messages give the numbers; a session executes the plan: open it, put planes in
 * any order, run, read slices. Volumes are returned x fastest, then y, then z, axes of recon/pet/michelogram.h, slices in
 * ascending z. */
#ifndef TOMONODE_RECON_PET_H
#define TOMONODE_RECON_PET_H

#include "kernels/device.h"
#include "recon/core/algorithm.h"
#include "recon/core/monitor.h"
#include "recon/core/plan.h"
#include "recon/pet/frames.h"
#include "recon/pet/gates.h"
#include "recon/pet/michelogram.h"

/* Corrections that the caller computes itself, because the data do not bring them; not used here. */
enum pet_correction {
	PET_CORRECT_ATTENUATION = 1,
	PET_CORRECT_RANDOMS = 2,
	PET_CORRECT_SCATTER = 4,
	PET_CORRECT_DEAD_TIME = 8,
};

/* A protocol, as configured (conf/ documents units, defaults and ranges of each key). */
struct pet_protocol {
	enum algorithm algorithm;	  /* pet_supports() must be true */
	int iterations;			  /* ignored by FBP */
	int subsets;			  /* OSEM, BSREM: number of subsets of angles, at most n_angles; else ignored */
	int matrix;			  /* pixels along x and y; 0: see its row of PET_KEYS */
	double voxel;			  /* mm, transaxial; 0: diameter of the field of view / matrix */
	double slice;			  /* mm; 0: half of the ring spacing, one slice per direct and cross plane */
	double fov_radius;		  /* mm; 0: the largest radial bin, at most 350 and 0.98 of the radius where rays end */
	double postfilter;		  /* FWHM of a Gaussian filter of the result, mm; 0: none */
	double psf;			  /* FWHM of the Gaussian of the resolution model, mm; 0: none */
	enum projection_model projector;  /* PATHS, JOSEPH, EXACT */
	double prior_weight, prior_gamma; /* BSREM: beta (relative to the sensitivity) and gamma of kernels/prior.h */
	double relaxation;		  /* BSREM: step of pass n: 1 / (1 + relaxation n) */
	double filter_cut;		  /* FBP: Hann window, fraction of the Nyquist frequency */
	int tof_mashing;     /* TOF bins that the caller adds into one before pet_plan(): michelogram_mash(); not used here */
	size_t memory_limit; /* bytes on the device; 0: the device's memory. If not everything fits, angles are streamed */
	size_t host_beside;  /* bytes that the caller has in host memory meanwhile: the plan leaves them of device->host_memory */
	bool deterministic;
	int corrections;		  /* enum pet_correction, combined by or; not used here */
	int scatter_iterations;		  /* of scatter_estimate(); not used here */
	bool list_mode;			  /* by single events (recon/pet/pet_list.h); not used here */
	char frames[PET_FRAMES_TEXT + 1]; /* pet_frames_parse(): one reconstruction for each frame; not used here */
	int gates;	     /* one reconstruction for each gate; 0: none. Not used here, and the following neither */
	char gate_signal[8]; /* pet_signal_named(), or "" */
	char gate_cycle[PET_CYCLE_TEXT + 1]; /* pet_gates_parse_cycle() */
};

/* Return whether PET data can be reconstructed with a: mlem, osem, bsrem (penalised, relative difference prior), any other
 * algorithm that uses their update rules, and fbp (single-slice rebinning, Daube-Witherspoon & Muehllehner 1987, then 2-D
 * filtered backprojection: fast, for a first look). */
bool pet_supports(enum algorithm a);

struct pet_plan {
	struct grid grid; /* z_fastest; centred on the scanner's axis and middle */
	double fov_radius;
	int subsets, iterations;
	int group_views;  /* angles processed together, copied from host memory; 0: all are on the device */
	bool keep_tables; /* the projector's tables of all groups stay on the device; else they are computed for each use */
	/* by single events (recon/pet/pet_list.h) */
	size_t batch;		 /* events that are sorted and computed together */
	bool resident;		 /* all events are in the device's memory; else they are read again for every update */
	struct plan_bytes bytes; /* events: data: of the events; tables: with the working memory of every thread */
};

/* Whether there are factors m, and which. With time of flight, data and background have michelogram_data_planes() planes. */
enum pet_factors {
	PET_FACTORS_NONE = 0, /* all m are 1 */
	PET_FACTORS_SHARED,   /* michelogram_planes() planes: all TOF bins of a ray have the same m */
	PET_FACTORS_TOF,      /* michelogram_data_planes() planes; only with time of flight */
};

/* Plan a reconstruction. factors, with_background: pet_put() will be called for m and for b. The volume is centred on the
 * scanner's axis and middle; its slices cover the direct and cross planes. ENOMEM: the message gives the bytes that do not fit.
 */
int pet_plan(const struct pet_protocol *p, const struct michelogram *m, enum pet_factors factors, bool with_background,
	     struct device *dev, struct pet_plan *ret_plan, struct err *err);
/* Only the grid and fov_radius of that plan, the rest 0: needs no memory and no device. */
int pet_plan_volume(const struct pet_protocol *p, const struct michelogram *m, struct pet_plan *ret_plan, struct err *err);

/* Return the radius that fov_radius = 0 means, where rays end at `ring` and reach out to `radius` (0: to the ring), all in mm;
 * *ret_most: the largest one allowed. */
double pet_fov_radius(double ring, double radius, double *ret_most);

enum pet_role {
	PET_DATA = 1,	/* y: counts, or precorrected data; finite; >= 0 unless pet_takes_negative() */
	PET_FACTORS,	/* m: detected fraction of the activity's events: attenuation times efficiency; finite, >= 0. A bin
			   with m = 0 does not count: its y and b have no effect */
	PET_BACKGROUND, /* b: expected additional counts: randoms and scatter; finite, >= 0 */
};

struct pet_report {
	double seconds_setup, seconds_sensitivity, seconds_iterate, seconds_filter;
	double seconds_read;	    /* events, up to the first update; else 0 */
	size_t lors;		    /* that the sensitivity by LORs used; else 0 */
	double sum_data, sum_model; /* sum of y and of m (A x) over bins that count, after the last iteration of an MLEM without
				       background (equal in theory); else 0 */
	double counts;		    /* sum of y over all bins, with factors over those with m > 0; number of events */
	bool sensitivity_cached;    /* the sensitivity images were found in the cache */
};

/* A cache of sensitivity images in host memory, for later sessions on one device with the same geometry, protocol and factors,
 * and of what corrections were computed from. If they exceed max_bytes, the least recently used are freed. Each has a checksum,
 * which is compared before it is used. The creator frees the cache after its sessions and before the device is closed. Use it
 * only in the thread that owns the device. */
#define PET_CACHE_BYTES ((size_t)1 << 30) /* the usual max_bytes */
struct pet_cache;
struct pet_cache *pet_cache_create(const struct device *dev, size_t max_bytes); /* NULL: out of memory */
struct pet_cache *pet_cache_free(struct pet_cache *c);				/* accepts NULL; returns NULL */
/* Return how many entries were dropped since the last call because their content had changed: the memory is damaged. */
int pet_cache_damaged(struct pet_cache *c);
/* Keep a copy of a value, in place of an older one of its key, which is the digest of everything that it depends on, except the
 * device. Without effect if c is NULL, without memory, for more than half of max_bytes, or if `bytes` is no multiple of
 * sizeof(float). */
#define PET_CACHE_KEY 16 /* bytes */
void pet_cache_keep(struct pet_cache *c, const unsigned char key[PET_CACHE_KEY], const void *value, size_t bytes);
/* Return the value, aligned for double, until the next call with c; NULL: not cached, damaged, or c is NULL. */
const void *pet_cache_value(struct pet_cache *c, const unsigned char key[PET_CACHE_KEY], size_t *ret_bytes);
uint64_t pet_hash_michelogram(uint64_t hash, const struct michelogram *m); /* all that determines its rays and bins */

struct pet_session;

/* Open a session; allocates all the memory that it uses. cache: of this device, or NULL: sensitivity images are freed with the
 * session. All pointers are borrowed until pet_close(). */
int pet_open(const struct pet_protocol *p, const struct pet_plan *plan, const struct michelogram *m, enum pet_factors factors,
	     bool with_background, struct device *dev, struct pet_cache *cache, struct pet_session **ret_session,
	     struct err *err);
struct pet_session *pet_close(struct pet_session *s); /* accepts NULL; returns NULL */

/* Whether data (y) may be negative: in filtered backprojection, which has no Poisson model. */
bool pet_takes_negative(const struct pet_session *s);

/* Copy planes [first, first + n) of a role into the session; data[n][angle][radial], owned by the caller. Plane p of TOF bin k is
 * number k michelogram_planes() + p. Pass each plane of each role announced to pet_open() exactly once, in any order, from any
 * thread. EINVAL: a bin, which the message names, is negative
 * or not a number. */
int pet_put(struct pet_session *s, enum pet_role role, int first, int n, const float *data, struct err *err);

/* Reconstruct. Call it once, after all planes, from the thread that owns the device. EDOM: all counts
 * are 0. EBADMSG: all factors are 0, or no ray with a factor above 0 meets the volume. ECANCELED: the monitor has cancelled. */
int pet_run(struct pet_session *s, const struct monitor *monitor, struct pet_report *ret_report, struct err *err);

/* Copy slices [first, first + n), n[1] * n[0] floats each; after pet_run(), from any thread. */
int pet_read_slices(struct pet_session *s, int first, int n, float *ret_slices, struct err *err);

#endif
