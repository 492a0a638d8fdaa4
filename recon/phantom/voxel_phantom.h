/* SPDX-License-Identifier: Apache-2.0 */
/* Phantoms of labelled voxels, such as a segmented or simulated breast: a volume of materials, projected by the exact ray walk.
 *
 * A voxel is one byte, the index of its material, so that a volume with voxels of 0.2 mm needs only 46 MB; a table of 256
 * materials gives its attenuation. Lengths in mm, attenuation in 1/mm, x fastest, axes of kernels/geometry.h. Immutable once
 * filled: threads may share it. */
#ifndef TOMONODE_RECON_VOXEL_PHANTOM_H
#define TOMONODE_RECON_VOXEL_PHANTOM_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "kernels/geometry.h"
#include "recon/phantom/phantom.h"

#define VOXEL_MATERIALS_MAX 256
#define VOXEL_SIDE_MAX 4096		  /* voxels along an axis, at most */
#define VOXEL_COUNT_MAX ((size_t)1 << 31) /* voxels in total, at most: 2 GiB */
#define VOXEL_RAYS_MAX 8		  /* rays per bin and axis, at most */

enum voxel_role {
	VOXEL_AIR = 1,
	VOXEL_TISSUE,
	VOXEL_PADDLE, /* compresses the breast from below and above */
	VOXEL_LESION, /* connected voxels form a lesion; tests search for its position in the image */
	VOXEL_CALCIFICATION,
};

struct voxel_material {
	double mu; /* 1/mm */
	enum voxel_role role;
};

struct voxel_phantom {
	struct grid grid;
	uint8_t *voxel; /* grid_size() indices into `material` */
	size_t n_materials;
	struct voxel_material material[VOXEL_MATERIALS_MAX]; /* from n_materials on: empty, mu 0 */
	int trimmed[2];					     /* planes removed at the bottom and at the top */
};

/* Create a volume of n voxels of h mm, all of material 0; the caller then fills it. The volume starts at x = 0 and z = 0; y = 0
 * is its middle. */
int voxel_phantom_create(const int n[3], const double h[3], const struct voxel_material *materials, size_t n_materials,
			 struct voxel_phantom **ret_phantom, struct err *err);
struct voxel_phantom *voxel_phantom_free(struct voxel_phantom *p); /* accepts NULL; returns NULL */

/* Remove the planes at the bottom and at the top in which more than half of the voxels are paddle. What remains is the compressed
 * breast, grid.n[2] * grid.h[2] thick. EBADMSG: no plane remains. */
int voxel_phantom_trim(struct voxel_phantom *p, struct err *err);

/* Compute the line integrals of all bins of one view: ret_line[n_v * n_u], threaded. rays > 1: the intensity of a bin is the mean
 * over rays x rays rays that fill it evenly, as with a detector that is coarser than the voxels; the line integral is minus its
 * logarithm. */
int voxel_phantom_project(const struct voxel_phantom *p, const struct scan *scan, int view, int rays, float *ret_line,
			  struct err *err);

/* Describe the volume by the shapes of analytic phantoms, for the truth file: the box around all tissue (ROLE_BODY, its mean
 * attenuation), then every connected piece of lesion (ROLE_LESION) and calcification (ROLE_BEAD), largest first, each as the
 * ellipsoid along the axes with the same centre of mass and second moments. mu of a piece: mean attenuation in that ellipsoid
 * minus that in the shell around it, to twice its half axes. Voxels that touch at a face, an edge or a corner are one piece;
 * fragments of at most a twentieth of another piece's size inside the box around it belong to that piece. */
int voxel_phantom_shapes(const struct voxel_phantom *p, struct phantom **ret_shapes, struct err *err);

#endif
