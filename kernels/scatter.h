/* SPDX-License-Identifier: Apache-2.0 */
/* Single scatter simulation: the expected coincidences in which exactly one of the two photons was scattered once. C11, C++17 and
 * CUDA C++.
 *
 * For the detectors A and B, with scatter points s, R_sA the distance from s to A, angles of incidence alpha on the detectors'
 * normals, I_A the integral of the activity and M_A that of mu from s to A (Watson 2000; the constant is such that a pair without
 * scatter has the value integral of activity times exp(-integral of mu)):
 *
 *   S = R_AB^2 / (cos alpha_A cos alpha_B)
 *       sum over s of V mu_s share(theta) cos alpha_sA cos alpha_sB / (R_sA^2 R_sB^2)
 *                     [I_A exp(-M_A - q M_B) + I_B exp(-M_B - q M_A)]
 *
 * theta is the angle of scatter; share, 1/sr, is the differential cross section over the total one at 511 keV, times the
 * efficiency of the energy window at the scattered energy over that at 511 keV; q is the total cross section at the scattered
 * energy over that at 511 keV. The caller tabulates both.
 *
 * A leg is the line from a scatter point to a detector. Legs are computed for SCATTER_BATCH points at a time and kept in a table,
 * field by field: field f of the leg of detector d and point p is element (f n_detectors + d) SCATTER_BATCH + p.
 *
 * Time of flight: an annihilation at p mm from s on the leg to A is measured like one at p + (R_sB - R_sA) / 2 from the middle of
 * the line, towards A. So each leg has a profile: F(x) = the integral over p of activity(p) W(x - p), where W(x) is the
 * probability that the measured position is within half a TOF bin of a position x away (kernels/tof.h). TOF bin k, centred at
 * t_k, gets F_A(t_k - (R_sB - R_sA) / 2). Profiles are sampled every `step` mm, a whole fraction of the TOF bin, and linear
 * between the samples: the sum over TOF bins that cover everything is I_A. A profile is stored as `phases` rows of n_slots
 * samples that are a TOF bin apart, so the samples of successive TOF bins are adjacent; the first and the last slot of a row are
 * 0. */
#ifndef TOMONODE_KERNELS_SCATTER_H
#define TOMONODE_KERNELS_SCATTER_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/err.h"
#include "kernels/ray_walk.h"
#include "kernels/tof.h"

#define SCATTER_ANGLES 4096 /* steps of the table of angles, equal in cos theta, from -1 to 1 */
#define SCATTER_BATCH 128   /* scatter points whose legs are in memory at a time */
#define SCATTER_BINS_MOST 8192
#define SCATTER_REACH_MOST 2048

/* All pointers are host memory, copied or read before the call returns. */
struct scatter_spec {
	const struct grid *grid; /* of activity and mu */
	size_t n_points, n_pairs;
	int n_detectors;
	const float (
		*points)[4]; /* x, y, z, mm, inside the grid; integral of mu over the volume that the point stands for, mm^2 */
	const float (*detectors)[6]; /* x, y, z, mm; unit normal, towards the object */
	const int32_t (*pairs)[2];   /* indices of detectors: first and second end of the ray */
	const float (*angles)[2];    /* share and q, SCATTER_ANGLES + 1 rows */
	struct scan_tof tof;	     /* n = 0: no time of flight */
	/* Called before each SCATTER_BATCH points, with the fraction that is done; true: end with ECANCELED. NULL: none. On a GPU
	 * the points may still be computed. */
	bool (*stop)(void *ctx, double fraction);
	void *ctx;
};

enum scatter_field {
	LEG_X, /* unit vector from the point to the detector */
	LEG_Y,
	LEG_Z,
	LEG_GAIN, /* cos alpha / R^2, 1/mm^2; 0: the detector is seen from behind */
	LEG_ACTIVITY,
	LEG_MU,
	LEG_LENGTH, /* R, mm */
	LEG_FIELDS,
};

struct scatter_model {
	struct grid grid;
	struct scan_tof tof;
	int n_detectors;
	float cosine_least; /* share is 0 at and below it */
	/* time of flight only */
	double step;		/* distance of samples, mm */
	int phases;		/* samples per TOF bin */
	int reach;		/* sample 0 is at -reach step */
	int n_bins;		/* bins of `step` mm that hold a leg's activity before it is blurred */
	int n_samples, n_slots; /* samples of a profile; slots of a row */
};

/* Return the number of weights that blur a leg's activity. */
static inline TOMONODE_HD int scatter_taps(const struct scatter_model *m)
{
	return 2 * m->reach + 2;
}

/* Return the floats of a profile. */
static inline TOMONODE_HD size_t scatter_profile_size(const struct scatter_model *m)
{
	return (size_t)m->phases * (size_t)m->n_slots;
}

/* Return the float2 of a profile on a GPU: each sample with the next one, and a slot more before the first. */
static inline TOMONODE_HD size_t scatter_profile_pairs(const struct scatter_model *m)
{
	return (size_t)m->phases * ((size_t)m->n_slots + 1);
}

/* Return the position of a sample in its profile, floats. */
static inline TOMONODE_HD int scatter_slot(const struct scatter_model *m, int sample)
{
	return sample % m->phases * m->n_slots + sample / m->phases + 1;
}

/* Compute the leg of a point and a detector; ret_leg: field f at ret_leg[f field]. With time of flight add its activity, bin by
 * bin, to ret_bins, n_bins floats that are 0. */
static inline TOMONODE_HD void scatter_leg(const struct scatter_model *m, const float *activity, const float *mu,
					   const float point[4], const float detector[6], float *ret_leg, size_t field,
					   float *ret_bins)
{
	double a[3] = {point[0], point[1], point[2]}, b[3] = {detector[0], detector[1], detector[2]};
	double d[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]}, length = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
	double cosine = -(d[0] * detector[3] + d[1] * detector[4] + d[2] * detector[5]) / length;
	double sum_activity = 0, sum_mu = 0, part, from, to, inverse = m->step > 0 ? 1 / m->step : 0;
	struct voxel_box box = voxel_box_whole(&m->grid);
	struct ray_walk w;
	size_t voxel;
	int bin;

	ret_leg[LEG_X * field] = (float)(d[0] / length);
	ret_leg[LEG_Y * field] = (float)(d[1] / length);
	ret_leg[LEG_Z * field] = (float)(d[2] / length);
	ret_leg[LEG_GAIN * field] = cosine > 0 ? (float)(cosine / (length * length)) : 0;
	ret_leg[LEG_LENGTH * field] = (float)length;
	if (ray_walk_start(&w, &m->grid, &box, a, b)) {
		to = w.t * w.span;
		while (ray_walk_next(&w, &voxel, &part)) {
			double value = activity[voxel];

			sum_activity += part * value;
			sum_mu += part * mu[voxel];
			if (m->tof.n == 0)
				continue;
			from = to;
			to += part;
			if (value == 0)
				continue;
			for (bin = (int)(from * inverse); bin < m->n_bins && bin * m->step < to; bin++) {
				double low = bin * m->step, high = low + m->step;

				ret_bins[bin] += (float)(((high < to ? high : to) - (low > from ? low : from)) * value);
			}
		}
	}
	ret_leg[LEG_ACTIVITY * field] = (float)sum_activity;
	ret_leg[LEG_MU * field] = (float)sum_mu;
}

/* Compute a sample of a profile. */
static inline TOMONODE_HD float scatter_sample(const struct scatter_model *m, const float *weight, const float *bins, int sample)
{
	int first = sample - 2 * m->reach - 1, end = sample + 1;
	float sum = 0;

	if (first < 0)
		first = 0;
	if (end > m->n_bins)
		end = m->n_bins;
	for (int i = first; i < end; i++)
		sum += weight[sample - i] * bins[i];
	return sum;
}

/* Return the cosine of the angle of scatter. a, b: legs of the same point, with `field` floats from one field to the next. */
static inline TOMONODE_HD float scatter_cosine(const float *a, const float *b, size_t field)
{
	return -(a[LEG_X * field] * b[LEG_X * field] + a[LEG_Y * field] * b[LEG_Y * field] + a[LEG_Z * field] * b[LEG_Z * field]);
}

/* Compute the weights of the activity on both legs, without R_AB^2 / (cos alpha_A cos alpha_B): ret[0] on the leg to A. */
static inline TOMONODE_HD void scatter_weights(const float *a, const float *b, size_t field, float integral, float cosine,
					       const float (*angles)[2], float ret[2])
{
	float at = (cosine + 1) * (float)(SCATTER_ANGLES / 2), f, both, q;
	int i = (int)at;

	i = i < 0 ? 0 : i < SCATTER_ANGLES ? i : SCATTER_ANGLES - 1;
	f = at - (float)i;
	both = angles[i][0] + f * (angles[i + 1][0] - angles[i][0]);
	q = angles[i][1] + f * (angles[i + 1][1] - angles[i][1]);
	both = both * integral * (a[LEG_GAIN * field] * b[LEG_GAIN * field]);
	if (!(both > 0)) {
		ret[0] = ret[1] = 0;
		return;
	}
	ret[0] = both * expf(-a[LEG_MU * field] - q * b[LEG_MU * field]);
	ret[1] = both * expf(-b[LEG_MU * field] - q * a[LEG_MU * field]);
}

/* Where TOF bin 0 meets a profile: between the samples `slot` of row `phase` and the next one, with the weights 1 - f and f. TOF
 * bin k: k slots further. */
struct scatter_shift {
	int phase, slot;
	float f;
};

/* Compute this for the leg with the length `own`, if the other leg has the length `other`. TOF bins ascend towards the detector
 * of this leg: for the second end of a pair, in the opposite order. */
static inline TOMONODE_HD struct scatter_shift scatter_shift(const struct scatter_model *m, float own, float other)
{
	double at = m->reach - 0.5 * (m->tof.n - 1) * m->phases - 0.5 * ((double)other - own) / m->step, down = floor(at);
	int sample = (int)down, tof_bins = sample >= 0 ? sample / m->phases : -((m->phases - 1 - sample) / m->phases);
	struct scatter_shift s = {sample - tof_bins * m->phases, tof_bins + 1, (float)(at - down)};

	return s;
}

/* Return the factor R_AB^2 / (cos alpha_A cos alpha_B) of a pair; 0: one detector does not see the other. */
static inline TOMONODE_HD double scatter_pair_factor(const float a[6], const float b[6])
{
	double d[3] = {(double)b[0] - a[0], (double)b[1] - a[1], (double)b[2] - a[2]};
	double square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
	double on_a = d[0] * a[3] + d[1] * a[4] + d[2] * a[5], on_b = -(d[0] * b[3] + d[1] * b[4] + d[2] * b[5]);

	return on_a > 0 && on_b > 0 ? square * square / (on_a * on_b) : 0;
}

#ifdef __cplusplus
extern "C" {
#endif

/* Compute the model. EINVAL: the message says what is wrong with the arguments. */
int scatter_model_make(const struct scatter_spec *spec, struct scatter_model *ret_model, struct err *err);
/* Compute the sizes of the model alone: all but cosine_least. EINVAL: TOF bins are too narrow. */
int scatter_model_size(const struct grid *grid, const struct scan_tof *tof, int n_detectors, struct scatter_model *ret_model,
		       struct err *err);
/* Return the bytes of tables that scatter_pairs() allocates, at most: those of a GPU; a CPU has fewer. */
size_t scatter_tables_bytes(const struct scatter_model *m, size_t n_points, size_t n_pairs);
/* Compute the scatter_taps() weights of scatter_sample(). */
void scatter_blur(const struct scatter_model *m, float *ret_weight);

#ifdef __cplusplus
}
#endif

#endif
