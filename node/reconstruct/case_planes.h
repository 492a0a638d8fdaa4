/* SPDX-License-Identifier: Apache-2.0 */
/* Read all sinograms of a PET acquisition, check their hashes, convert them to the factors of the model and pass them to a
 * reconstruction session. */
#ifndef TOMONODE_NODE_CASE_PLANES_H
#define TOMONODE_NODE_CASE_PLANES_H

#include "node/reconstruct/additive_sense.h"
#include "node/reconstruct/factor_survey.h"
#include "node/sinogram/factor_range.h"
#include "node/sinogram/sinogram.h"
#include "recon/core/monitor.h"
#include "recon/pet/pet.h"

struct case_planes_report {
	double seconds_read, seconds_prepare, seconds_upload; /* the steps do not overlap: the sum is the total time */
	size_t planes;					      /* number of planes of all roles of the model */
	/* Numbers of ring pairs that were added in the planes, if the counts of the data follow them; 0: they do not, or all
	 * planes have the same number. */
	int pairs_least, pairs_most;
	size_t filled, fractions; /* in some planes, bins of the data that are not 0, and those that are no whole number */
	struct factor_survey attenuation; /* of ATTENUATION; n = 0: there is none */
	double counts, additive;	  /* sums of EMISSION and of ADDITIVE */
	int n_factors;			  /* sentences: how the values of each role of factors, and of ADDITIVE, were taken */
	char factors[4][FACTOR_RANGE_TEXT];
	char doubt[ADDITIVE_SENSE_TEXT]; /* about ADDITIVE; "": none */
};

/* What was computed for an acquisition in addition to the roles of its objects (node/reconstruct/case_corrections.h). The
 * functions are called from several threads, for different planes, of n_angles * n_radial floats. */
struct case_factor {
	/* Multiply m of a plane by a factor that all its TOF bins have. */
	void (*multiply)(const void *ctx, size_t plane, float *m);
	const void *ctx;
};
struct case_background {
	/* Add expected counts to b of a plane in TOF bin k of the session (0 without time of flight). */
	void (*add)(const void *ctx, size_t k, size_t plane, float *b);
	/* Return the expected counts of one bin of the plane, angle n_radial + radial: what add() adds to it. */
	float (*at)(const void *ctx, size_t k, size_t plane, size_t bin);
	const void *ctx;
};
/* Counts of a few planes of the data, summed over angles and TOF bins while the planes are passed on. */
#define CASE_PROFILES_MAX 3
struct case_profiles {
	int n;
	size_t plane[CASE_PROFILES_MAX]; /* ascending */
	double *counts;			 /* [n][n_radial], 0 before */
};
/* A copy of all planes of a role of the model, in their order, as the session gets them. */
struct case_tap {
	int (*take)(void *ctx, enum pet_role role, int first, int n, const float *values, struct err *err);
	void *ctx;
};
#define CASE_TERMS_MAX 4
struct case_terms {
	struct case_tap tap;		/* take NULL: none */
	struct case_profiles *profiles; /* NULL: none; borrowed */
	int n_factors, n_backgrounds;
	struct case_factor factor[CASE_TERMS_MAX];
	struct case_background background[CASE_TERMS_MAX];
};

/* Determine which multiplicative factors the acquisition has, and whether a background. EBADMSG: the data are already corrected
 * for something that a role of the acquisition also corrects. */
int case_planes_roles(const struct sinogram *s, enum pet_factors *ret_factors, bool *ret_background, struct err *err);

/* Return the memory that case_read_planes() needs for the data of the objects, bytes, if it keeps none. */
size_t case_planes_bytes(const struct sinogram *s);

/* Return the bytes of all roles, for case_read_planes() to keep. */
size_t case_planes_bytes_kept(const struct sinogram *s);

/* Pass every plane of every role to the session. m = MULTIPLICATIVE / (ATTENUATION NORMALISATION), using those that exist, times
 * the factors of `terms`; b = ADDITIVE, if it exists (m ADDITIVE, if its header lists attenuation and normalisation as applied
 * corrections, unlike EMISSION), plus the backgrounds of `terms` (NULL: none).
 * `mashed`: michelogram of the session: TOF bins of the objects are added until their number is that of the session; factors with
 * TOF bins are replaced by their mean.
 * kept: [role], NULL: nothing is kept; else the bytes of roles, which are used if they are there, and are added otherwise; the
 * caller frees them.
 * EBADMSG: invalid data; the text names role, plane, angle and bin of the first. Needs memory for the roles from which one role
 * of the model is computed. */
int case_read_planes(const struct sinogram *s, const struct michelogram *mashed, const struct case_terms *terms,
		     struct pet_session *session, int threads, const struct monitor *monitor, uint8_t **kept,
		     struct case_planes_report *ret_report, struct err *err);

/* Compute the sum over all TOF bins of a role of the model, of PET_FACTORS the mean, from the objects alone, without terms:
 * ret[plane][angle][radial]. Without an object that has the role, all are 0, of PET_FACTORS 1. kept: as above. Of an acquisition
 * with a list, PET_DATA and PET_FACTORS are those of its events, in the bins of sinogram_list_bins(). */
int case_sum_planes(const struct sinogram *s, enum pet_role role, int threads, const struct monitor *monitor, uint8_t **kept,
		    float *ret, struct err *err);

#endif
