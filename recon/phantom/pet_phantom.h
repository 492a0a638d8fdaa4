/* SPDX-License-Identifier: Apache-2.0 */
/* Analytic phantoms for PET: activity and attenuation as sums of shapes, with exact line integrals along the rays of a
 * SCAN_PARALLEL, and the resulting counts.
 *
 * Lengths in mm, axes of recon/pet/michelogram.h, origin in the scanner's middle. A shape's `mu` is the value that it adds
 * inside: Bq/ml in `activity`, 1/mm at 511 keV in `attenuation`.
 *
 * - cylinder: uniform, in water.
 * - nema-iq: the body phantom of NEMA NU 2. Its cross-section (half a cylinder of 147 mm over a box with rounded corners, 230 mm
 *   high) is replaced by an elliptic cylinder of 294 x 230 mm, 180 mm long; the plane of the spheres (z = 0) is 68 mm from its
 *   end. Six spheres on a circle of 57.2 mm: 10, 13, 17, 22 mm with four times the background, 28, 37 mm without activity; the
 *   one of 17 mm on +x. In the middle the lung insert, a cylinder of 50 mm without activity and with 0.3 times the attenuation of
 *   water. Walls are left out.
 * - f-shape: a letter F of ellipsoids in a cylinder of low activity, upright for an observer who looks into the gantry (its arms
 *   point to +x, the longer one is above, at -y). The long arm is at +z, the short one at -z, and a hot ball is beside the foot
 *   at -x, +z, so that no rotated or mirrored image is equal to the original. */
#ifndef TOMONODE_RECON_PET_PHANTOM_H
#define TOMONODE_RECON_PET_PHANTOM_H

#include "recon/phantom/phantom.h"

enum pet_phantom_kind { PET_PHANTOM_CYLINDER = 1, PET_PHANTOM_NEMA_IQ, PET_PHANTOM_F };

#define PET_WATER 0.0096 /* attenuation at 511 keV, 1/mm */
#define PET_CYLINDER_RADIUS 100.0
#define PET_CYLINDER_LENGTH 200.0

struct pet_phantom {
	struct phantom *activity, *attenuation;
};

/* radius, length: of PET_PHANTOM_CYLINDER, mm; the other phantoms have fixed sizes. */
int pet_phantom_create(enum pet_phantom_kind kind, double radius, double length, struct pet_phantom **ret_phantom,
		       struct err *err);
struct pet_phantom *pet_phantom_free(struct pet_phantom *p);
extern const char *const pet_phantom_names[]; /* [kind - 1]; NULL ends the list */
const char *pet_phantom_name(enum pet_phantom_kind kind);

/* Multiply all lengths by a factor; concentrations and attenuation values do not change. */
void pet_phantom_scale(struct pet_phantom *p, double factor);
double pet_phantom_reach(const struct pet_phantom *p); /* largest distance of any part from the axis, mm */

double pet_phantom_becquerel(const struct pet_phantom *p); /* total activity, Bq */
double pet_phantom_grams(const struct pet_phantom *p);	   /* mass of water with the same attenuation, g */

/* Compute the line integrals of all bins of n planes of a SCAN_PARALLEL, threaded: ret_line[n][n_views][n_v]; 0 in a bin without
 * a ray. planes: their indices. tof_bin: the line integrals of the phantom times the weight of this TOF bin (kernels/tof.h);
 * PET_PHANTOM_ALL_BINS: without time of flight. */
#define PET_PHANTOM_ALL_BINS (-1)
int pet_phantom_project(const struct phantom *p, const struct scan *scan, const int *planes, int n, int tof_bin, float *ret_line,
			struct err *err);

/* Replace each mean in place by a Poisson number that depends only on seed and first + index; threaded. EINVAL: a mean is
 * negative or NaN. */
int pet_phantom_noise(float *counts, size_t n, size_t first, uint64_t seed, struct err *err);

#endif
