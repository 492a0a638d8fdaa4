/* Analytic phantoms for PET: activity and attenuation as sums of shapes, with exact line integrals along the rays of a
 * SCAN_PARALLEL, and the counts that follow.
 *
 * Lengths in mm, axes of recon/pet/michelogram.h, the origin in the scanner's middle. A shape's `mu` is what it adds inside:
 * Bq/ml in `activity`, 1/mm at 511 keV in `attenuation`.
 *
 * - cylinder: uniform, in water.
 * - nema-iq: the body phantom of NEMA NU 2. Its cross-section (half a cylinder of 147 mm over a box with rounded corners, 230
 *   mm high) is an elliptic cylinder of 294 x 230 mm here, 180 mm long, the spheres' plane (z = 0) 68 mm from its end. Six
 *   spheres on a circle of 57.2 mm: 10, 13, 17, 22 mm with four times the background, 28, 37 mm with nothing; the one of 17 mm
 *   on +x. In the middle the lung insert, a cylinder of 50 mm with no activity and 0.3 times the attenuation of water. Walls
 *   are left out.
 * - f-shape: an F of ellipsoids, upright for somebody who looks into the gantry (its arms to +x, the longer one above, at -y),
 *   in a faint cylinder. The long arm lies at +z, the short one at -z, and a hot ball beside the foot at -x, +z: no rotation
 *   and no mirror brings it back to itself.
 */
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

/* radius, length: of PET_PHANTOM_CYLINDER, mm; the others have their own. */
int pet_phantom_create(enum pet_phantom_kind kind, double radius, double length, struct pet_phantom **ret_phantom,
		       struct err *err);
struct pet_phantom *pet_phantom_free(struct pet_phantom *p);
const char *pet_phantom_name(enum pet_phantom_kind kind);

/* All lengths times a factor; concentrations and attenuation stay. */
void pet_phantom_scale(struct pet_phantom *p, double factor);
double pet_phantom_reach(const struct pet_phantom *p); /* no part is further from the axis, mm */

double pet_phantom_becquerel(const struct pet_phantom *p); /* all activity, Bq */
double pet_phantom_grams(const struct pet_phantom *p);	   /* of water that attenuates as much */

/* All bins of n planes of a SCAN_PARALLEL: ret_line[n][n_views][n_v], threaded; 0 where there is no ray. */
int pet_phantom_project(const struct phantom *p, const struct scan *scan, const int *planes, int n, float *ret_line,
			struct err *err);

/* In place, threaded: each mean becomes a Poisson number that depends on seed and first + index alone. A mean that is negative or
 * NaN is refused. */
int pet_phantom_noise(float *counts, size_t n, size_t first, uint64_t seed, struct err *err);

#endif
