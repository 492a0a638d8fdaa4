/* SPDX-License-Identifier: Apache-2.0 */
/* Fit simulated scatter to the data: one scale for each plane, from the bins outside of the object, where all coincidences that
 * are not randoms are scatter. The scale stands for what a single scatter simulation lacks: multiple scatter, and activity and
 * matter outside of the field of view. Method: that of STIR (Thielemans et al. 2007).
 *
 * Outside are the bins of a row (plane and angle) before the first and after the last bin whose attenuation correction factor is
 * SCATTER_TAIL_ACF or more, less SCATTER_TAIL_MARGIN bins; a row without such a bin is outside as a whole. Bins with the factor 0
 * do not count. The scale of a plane is the sum of (prompts - background) over that of norm * scatter, both of
 * SCATTER_SCALE_PLANES neighbouring planes of the segment, limited to SCATTER_SCALE_LEAST .. SCATTER_SCALE_MOST. The limit comes
 * after the sums: the mean of limited ratios of single planes would be too large where counts are few. Where these planes have no
 * bins outside, the sums are those of all planes; if no plane has any, all scales are 1. */
#ifndef TOMONODE_RECON_SCATTER_SCALE_H
#define TOMONODE_RECON_SCATTER_SCALE_H

#include "recon/pet/michelogram.h"

#define SCATTER_TAIL_ACF 1.1
#define SCATTER_TAIL_MARGIN 4
#define SCATTER_SCALE_LEAST 0.05
#define SCATTER_SCALE_MOST 100.0
#define SCATTER_SCALE_PLANES 7

/* Sums over the TOF bins, [plane][angle][radial]; the background and the prompts in counts. */
struct scatter_data {
	const float *prompts;
	const float *background;  /* randoms, and what else is not of the image; NULL: none */
	const float *norm;	  /* factor m without attenuation; NULL: 1 */
	const float *attenuation; /* factor of attenuation, 0 to 1: 1 / ACF */
};

struct scatter_scale_report {
	double least, mean, most; /* of the scales */
	int planes;
	int at_least, at_most; /* planes whose scale was limited to SCATTER_SCALE_LEAST, SCATTER_SCALE_MOST */
	int without;	       /* planes without bins outside */
};

/* scatter: simulated for m = 1, sum over TOF bins. ret_scale: michelogram_planes() elements. ENOMEM. */
int scatter_scale_fit(const struct michelogram *m, const struct scatter_data *data, const float *scatter, float *ret_scale,
		      struct scatter_scale_report *ret_report, struct err *err);

#endif
