/* SPDX-License-Identifier: Apache-2.0 */
/* What the sources of the breast phantom share: its shape and its random fields. */
#ifndef TOMONODE_RECON_BREAST_INTERNAL_H
#define TOMONODE_RECON_BREAST_INTERNAL_H

#include "recon/phantom/breast_phantom.h"

#define BREAST_SKIN 1.5	   /* thickness of the skin, mm (mean 1.45: Huang et al. 2008) */
#define BREAST_RIM_CUT 1.8 /* how late the plates cut the rim: 1 a parabola, 2 an ellipse */

struct breast_surface {
	double length,
		side[2]; /* from the chest wall to the skin at the nipple; along y to the skin at either end, from middle_y */
	double middle_y, height;
	double power[2][2]; /* of x and of y in the outline, at -y and at +y */
	double rim;	    /* width of the rim */
	double nipple[3];
	int n[3];     /* voxels */
	double hz;    /* of a voxel */
	float *edge;  /* [n[1]][n[0]]: distance of a column from the outline, > 0 inside */
	int n_depth;  /* columns of `depth` */
	float *depth; /* [n[2]][n_depth]: distance from the surface, by height and distance from the outline */
};

int breast_surface_create(const struct breast_options *o, struct breast_surface *ret, struct err *err);
void breast_surface_clear(struct breast_surface *s);
/* Return the depth of a voxel's centre below the skin's surface; < 0: outside. */
double breast_surface_depth(const struct breast_surface *s, int i, int j, int k);

/* A random field on cells of 2 x 2 x 2 voxels, x fastest. */
struct breast_field {
	int n[3];
	float *value;
};

/* Make a field with a spectrum of about f^-3 from structures of 2^finest to 64 cells; below 2^finest it is smooth. */
int breast_field_create(const int n[3], uint64_t seed, int finest, struct breast_field *ret, struct err *err);
/* Return the field at (x, y, z) in cells, 0.5 in the middle of the first one; beyond the ends the value of the end. */
double breast_field_at(const struct breast_field *f, double x, double y, double z);
/* Return the field, interpolated by splines, at a voxel. */
float breast_field_voxel(const struct breast_field *f, int i, int j, int k);

/* Random seeds of cells, one in each cube of `side`. */
struct breast_cells {
	double side;
	int n[3], first[3]; /* cubes */
	float (*seed)[3];   /* mm */
};

/* Make the seeds of all points between lo and hi (mm). */
int breast_cells_create(const double lo[3], const double hi[3], double side, uint64_t seed, struct breast_cells *ret,
			struct err *err);
/* Return the difference between the distances from a point to the second nearest and to the nearest seed: 0 on the wall between
 * two cells. */
double breast_cells_wall(const struct breast_cells *c, const double at[3]);

#endif
