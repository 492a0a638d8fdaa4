/* SPDX-License-Identifier: Apache-2.0 */
/* The open field: how the intensity of the unattenuated beam (I0) varies over the detector in one view, as a factor for I0.
 *
 *   factor(u, v) = [distance] (cos theta / r^2) / (cos theta0 / r0^2) * exp(slope . (position - middle))
 *
 * theta: angle between ray and detector normal; r: length of the ray from the source. theta0, r0: the same bin in the view at 0
 * degrees, where systems take the gain map that makes the open field of this view uniform. The slope describes what a fit of the
 * air finds beyond that (heel effect), to first order, along u and v. */
#ifndef TOMONODE_RECON_OPEN_FIELD_H
#define TOMONODE_RECON_OPEN_FIELD_H

#include <stdbool.h>

#include "kernels/geometry.h"

/* All members 0: uniform, the factor is 1. */
struct open_field {
	bool distance;
	double from[3], rest_from[3];		   /* bin (0, 0) relative to the source; rest: in the view at 0 degrees */
	double step_u[3], step_v[3], rest_step[2]; /* mm from a bin to the next */
	double scale;	  /* distance of the source from the detector's plane, relative to the view at 0 degrees */
	double slope[2];  /* of the logarithm, along u and v, per bin */
	double middle[2]; /* u and v where the slope's factor is 1 */
};

bool open_field_is_uniform(const struct open_field *f);

/* Return the field of a view of SCAN_DBT with the factor of distance and direction. rest: position of the source at 0 degrees,
 * mm; the detector is then in the plane z = 0. */
struct open_field open_field_of_distance(const struct scan *scan, const struct scan_view *view, const double rest[3]);

/* Set the slope, 1/mm along u and v; its factor is 1 in the middle of the detector. */
void open_field_set_slope(const struct scan *scan, const double slope[2], struct open_field *field);

/* Compute the factor at v and n positions u, u + step, ... */
void open_field_row(const struct open_field *f, double u, double step, double v, int n, double *ret_factor);

#endif
