/* SPDX-License-Identifier: Apache-2.0 */
/* Fit simulated scatter to the data: one scale for each plane, from the bins outside of the object, where all coincidences that
 * are not randoms are scatter. The scale stands for what a single scatter simulation lacks: multiple scatter, and activity and
 * matter outside of the field of view. Method: that of STIR (Thielemans et al. 2007).
 *
 * Outside are the bins of a row (plane and angle) before the first and after the last bin whose attenuation correction factor,
 * of the body alone where that is known (what lies beside a body, as its table and coils, has no activity), is SCATTER_TAIL_ACF or more, less SCATTER_TAIL_MARGIN bins; a row without such a bin is outside as a whole. Bins with the factor 0
 * do not count. The scale of a plane is the sum of (prompts - background) over that of norm * scatter, both of
 * SCATTER_SCALE_PLANES neighbouring planes of the segment, limited to SCATTER_SCALE_LEAST .. SCATTER_SCALE_MOST. The limit comes
 * after the sums: the mean of limited ratios of single planes would be too large where counts are few. Where these planes have no
 * bins outside, the sums are those of all planes; if no plane has any, all scales are 1.
 *
 * Scatter is a part of the counts: the fit would otherwise feed itself where the tails are not scatter (randoms that were left in
 * them, activity beyond a truncated CT), because an image with less activity needs a larger scale. The scale of a plane is
 * limited so that the scatter of its neighbouring planes is at most their (prompts - background), the margin and the object
 * included, and 0 if these are negative; then all scales by one factor, so that the scatter of all planes is at most
 * SCATTER_FRACTION_MOST of them. A single plane may have scatter alone, the whole of a patient not.
 *
 * In planes beyond the object all counts without background are scatter, and the fit is above or below them by chance. So the
 * report counts a plane as limited only if this is beyond the noise of its neighbouring planes: more than
 * SCATTER_SCALE_NOISE standard deviations of Poisson counts, between the limited scatter and the one before, or in the tails
 * between the data and the limit (for the smallest scale: and the simulation). Planes limited by their counts are reported if
 * together more than SCATTER_LIMITED_LEAST of the scatter was taken off them. The scales do not depend on this.
 *
 * In the same way a scale or a fraction is doubtful only beyond noise: if the tails of all planes together ask for more than
 * SCATTER_SCALE_DOUBTFUL, or those of a plane and its neighbours by sqrt(SCATTER_SCALE_NOISE^2 + 2 ln planes) standard
 * deviations, because one of many planes is more likely to be high by chance. The noise of the fraction is that of the tails,
 * from which it was extrapolated, and of all counts.
 *
 * Where the attenuation is not known, the factors are 1 and the object itself would count as outside: planes whose lines, from
 * end to end, leave the part of the axis where it is known have no bins outside, and so the scale of the others. */
#ifndef TOMONODE_RECON_SCATTER_SCALE_H
#define TOMONODE_RECON_SCATTER_SCALE_H

#include "recon/pet/michelogram.h"

#define SCATTER_TAIL_ACF 1.1
#define SCATTER_TAIL_MARGIN 4
#define SCATTER_SCALE_LEAST 0.05
#define SCATTER_SCALE_MOST 100.0
#define SCATTER_SCALE_PLANES 7
#define SCATTER_SCALE_NOISE 3.0
#define SCATTER_LIMITED_LEAST 0.01
/* Larger scales and scatter fractions are doubtful. Multiple scatter and scatter from outside of the field of view make the scale
 * 1 to 2: a single scatter simulation that has to be multiplied by more than 3 does not explain the tails. The largest scatter
 * fractions of 3D scanners and heavy patients are 0.5 to 0.6. */
#define SCATTER_SCALE_DOUBTFUL 3.0
#define SCATTER_FRACTION_DOUBTFUL 0.6
#define SCATTER_FRACTION_MOST 0.8 /* limit */

/* Sums over the TOF bins, [plane][angle][radial]; the background and the prompts in counts. */
struct scatter_data {
	const float *prompts;
	const float *background;  /* randoms, and what else is not of the image; NULL: none */
	const float *norm;	  /* factor m without attenuation; NULL: 1 */
	const float *attenuation; /* factor of attenuation, 0 to 1: 1 / ACF */
	const float *body;	  /* that of the body alone; NULL: nothing else attenuates */
	const double *covered; /* from and to which z the attenuation is known, mm from the scanner's middle; NULL: everywhere */
};

struct scatter_scale_report {
	double least, mean, most; /* of the scales */
	int planes;
	/* Beyond noise: */
	int at_least, at_most;	/* planes whose scale is SCATTER_SCALE_LEAST, SCATTER_SCALE_MOST by the limit */
	int at_counts;		/* planes whose scale was limited by their counts, or all planes by those of all */
	int without;		/* planes without bins outside, including those of `beyond` */
	int beyond;		/* planes that leave data->covered */
	int doubtful;		/* planes whose scale is more than SCATTER_SCALE_DOUBTFUL */
	bool doubtful_fraction; /* the fraction is more than SCATTER_FRACTION_DOUBTFUL */
	double doubtful_most;	/* the largest of these scales; 0: none */
	double fraction;	/* scatter over (prompts - background), all bins; 0 if these are not above 0 */
};

/* scatter: simulated for m = 1, sum over TOF bins. threads: 1 or more; the scales do not depend on them. ret_scale:
 * michelogram_planes() elements. ENOMEM. */
int scatter_scale_fit(const struct michelogram *m, const struct scatter_data *data, const float *scatter, int threads,
		      float *ret_scale, struct scatter_scale_report *ret_report, struct err *err);

#endif
