/* SPDX-License-Identifier: Apache-2.0 */
/* Analytic phantoms for the Monte Carlo of PET (pet_mc.c). Shares no code with the program that it tests.
 *
 * Lengths in mm, axes of the scanner: x to the right, y down, z into the gantry, origin in its middle. A phantom is a list of
 * solids whose values are added: activity relative to that of the background, density relative to water. */
#ifndef TOMONODE_TESTS_PET_MC_PHANTOM_H
#define TOMONODE_TESTS_PET_MC_PHANTOM_H

#include "tests/pet_mc/rng.h"

/* SOLID_BODY: NEMA's body: for y <= c[1] a half disc of radius r; below it a box of half width r - corner and height corner,
 * with quarter discs of radius corner at both sides; half_z long on each side of c[2]. SOLID_CYLINDER: along z. SOLID_BOX: half
 * width r, half height corner. */
enum solid_kind { SOLID_BODY, SOLID_CYLINDER, SOLID_SPHERE, SOLID_BOX };

struct solid {
	const char *name;
	enum solid_kind kind;
	double c[3], r, half_z, corner;
	double activity, density; /* that it adds inside */
	double amount;		  /* of activity, mm^3 of background; 0 if it takes activity away */
};

#define SOLIDS_MAX 12
struct mc_phantom {
	const char *name;
	int n;
	struct solid solid[SOLIDS_MAX];
	double lo[3], hi[3]; /* box around all solids */
	double activity;     /* integral of the activity, mm^3 of background */
	double positive;     /* sum of the amounts */
};

/* "iq": NEMA NU 2 image quality phantom: body of 180 mm; spheres of 10, 13, 17, 22 mm with four times the activity of the
 * background, 28 and 37 mm without any, on a circle of 57.2 mm at z = -22; lung insert of 50 mm without activity, of density 0.3.
 * No walls. "iq-table": with a table below it and a coil around both (a shell of 3 mm), as long as the mMR, without activity.
 * "cylinder": 100 mm radius, 180 mm long. "sphere": 100 mm radius. -1: no such phantom. */
int mc_phantom_init(const char *name, struct mc_phantom *ret);

double mc_phantom_density(const struct mc_phantom *p, const double at[3]);
/* Sample a place of an annihilation. */
void mc_phantom_sample(const struct mc_phantom *p, struct rng *g, double ret_at[3]);
/* Integrate activity and density from a to b. */
void mc_phantom_line(const struct mc_phantom *p, const double a[3], const double b[3], double *ret_activity, double *ret_density);

#endif
