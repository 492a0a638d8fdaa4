/* SPDX-License-Identifier: Apache-2.0 */
/* Find out whether a body is cut off by the field of view of its CT.
 *
 * The field is what some slice has an image of: pixels that are more than CT_FIELD_PADDING, or not padding as the objects name
 * it, in any slice. What is outside of it in all slices is padding, whether it is -1024, -2000 or -3024 HU; noise of air below
 * -1024 is not, because it is not there in all slices. The field is cut off by the edge of the image (a square), or by a circle
 * of any place and radius, which is fitted to the edge of what has an image; an edge that is no circle is that of a body whose
 * air was replaced. Then it is the circle that the image contains if there is only air outside of it, else the edge of the image.
 *
 * A body is cut off in a slice if along CT_FIELD_CONTACT mm of the edge, in one run, there is
 * - tissue that goes CT_FIELD_DEPTH mm inwards: across the edge of the image or towards the middle of the circle; or
 * - the end of a round part whose middle is outside: less depth d, CT_FIELD_SHALLOW at least, but narrower inwards, and round. Of
 *   a part of radius r a contact c remains, c^2 = 8 d / (1/r + 1/R), within a circle of radius R (a straight edge: 1/R = 0), and
 *   at 0.6 d the run is 0.63 c. r is at most CT_FIELD_ROUND: arms and legs, not trunks, which are deep.
 *
 * The contact c: a body of radius r that ends there lacks c^2 / (8 r) mm: of an arm (45 mm) 1.1 mm, 1 % of the counts of its
 * lines; of a trunk (150 mm) 0.3 mm. Couches are neither: shells have a few mm, their foam is air (-900 HU); a solid layer of
 * 10 mm, through which a circle goes at 0.6 of its radius, is 17 mm deep, and across the edge of an image a run of 10 mm. Where a
 * layer is nearly parallel to the circle, it is thin and does not become narrower inwards; the piece of it that the circle just
 * reaches is flat (r is infinite). Arms have 70 mm and more, the wall of a chest 25 mm. An arm of which less than
 * CT_FIELD_SHALLOW and 1.5 pixels are in the field is not found. */
#ifndef TOMONODE_RECON_CT_FIELD_H
#define TOMONODE_RECON_CT_FIELD_H

#include <limits.h>
#include <stdint.h>

#include "kernels/err.h"

#define CT_FIELD_PADDING (-1024) /* HU: not more is padding, or noise of air */
#define CT_FIELD_TISSUE (-300)	 /* HU: more is patient or table */
#define CT_FIELD_CONTACT 20.0	 /* mm along the edge, in one run */
#define CT_FIELD_DEPTH 25.0	 /* mm; of small fields a quarter of the radius */
#define CT_FIELD_SHALLOW 6.0	 /* mm */
#define CT_FIELD_ROUND 100.0	 /* mm, radius */

struct ct_field_source {
	const int16_t *hu; /* [n[2]][n[1]][n[0]]; borrowed */
	int n[3];	   /* columns, rows, slices */
	double h[2];	   /* mm from column to column, from row to row */
	int padding;	   /* HU of pixels without an image, besides CT_FIELD_PADDING; INT_MIN: not known */
};

struct ct_field {
	double centre[2], radius; /* mm from the middle of the image along rows and columns; radius 0: the image is the field */
	double truncated;	  /* fraction of the slices in which the body is cut off */
};

/* ENOMEM. */
int ct_field_find(const struct ct_field_source *ct, struct ct_field *ret, struct err *err);

#endif
