/* SPDX-License-Identifier: Apache-2.0 */
/* A compressed breast like those of patients, made from a seed: voxels of tissue (recon/phantom/voxel_phantom.h), with masses,
 * and small details with closed formulas (calcifications, clips), whose line integrals are added to those of the voxels.
 *
 * Lengths in mm, attenuation in 1/mm at 20 keV, axes of kernels/geometry.h: x from the chest wall, z from the breast support
 * upwards. The same options give the same bits with any number of threads. A mirrored breast is the other one with -y for y.
 *
 * - Shape: two halves of superellipses; the plates flatten it, its rim is round (breast_surface.c).
 * - Tissue: adipose and glandular tissue mixed by a random field whose spectrum is a power law, as that of mammograms is (exponent
 *   of the projection 2.7 to 3.3; Burgess, Jacobson & Judy 2001), lobules of fat between ligaments, ducts and vessels
 *   (breast_texture.c, breast_phantom.c); in an MLO view the pectoral muscle.
 * - Lesions: spiculated masses, a smooth one with the attenuation of water, two clusters of calcifications, single ones. */
#ifndef TOMONODE_RECON_BREAST_PHANTOM_H
#define TOMONODE_RECON_BREAST_PHANTOM_H

#include <stdbool.h>

#include "recon/phantom/voxel_phantom.h"

#define BREAST_VOXEL 0.25	    /* mm */
#define BREAST_THICKNESS_LEAST 20.0 /* mm */
#define BREAST_THICKNESS_MOST 100.0
#define BREAST_GLANDULAR_LEAST 5.0 /* percent */
#define BREAST_GLANDULAR_MOST 60.0
#define BREAST_CLIPS_MOST 20
#define BREAST_CLIP_WIDTH 0.5  /* mm; they are 3 mm long */
#define BREAST_ROOM_LEAST 40.0 /* mm: side of the smallest detector that a breast fits on */

struct breast_options {
	double room[2];	  /* of the detector: the breast is made smaller if it would not fit */
	double thickness; /* compressed */
	double glandular; /* share of the tissue inside the skin, percent of its volume, without muscle and masses */
	bool muscle;	  /* MLO: the pectoral muscle, at the end of the chest wall with the largest y */
	bool mirrored;	  /* -y for y */
	int clips;	  /* of titanium, 3 x 0.5 mm along an axis, at random places in the tissue; 0 to BREAST_CLIPS_MOST */
	unsigned seed;
};

struct breast_truth {
	double glandular;	   /* percent, as counted in the voxels */
	double rim_width, rim_cut; /* w and a of the rim's thickness T sqrt(a t - (a - 1) t^2), t = distance from the skin / w */
	double line;		   /* mean line integral along z of the middle 60 % of the box around the breast, along x and y */
};

/* EINVAL: an option is out of its range; the text names it. details: shapes without the tissue that they replace. */
int breast_phantom_create(const struct breast_options *o, struct voxel_phantom **ret_voxels, struct phantom **ret_details,
			  struct breast_truth *ret_truth, struct err *err);
/* Name the tissue of a material of that volume: "adipose" and "glandular" are mixtures with at least three fourths of it, "mixed"
 * the others; "skin", "muscle", "nipple", "mass"; NULL: air. */
const char *breast_tissue(int material);

#endif
