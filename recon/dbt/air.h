/* SPDX-License-Identifier: Apache-2.0 */
/* Find air beside the breast in the stored values of one projection, and the intensity of the unattenuated beam (I0) there.
 *
 * Air is a plateau of the intensity: cells of about 1 mm that differ from their neighbours by no more than noise. It is the
 * highest such level, it is connected with the side opposite the chest wall, it has at least AIR_SHARE_LEAST of the cells with
 * data, and the edge of the object limits it: below it there is a range of intensities that few cells have. The darkest cells
 * must be darker than the plateau by at least AIR_MU_LEAST times the thickness of the object; otherwise the plateau is the object
 * itself.
 *
 * The noise of the plateau must be that of counting, as in the object: a plateau of one value beside noise is clipped, and its
 * value is over range. If there are two levels of air, or a step of AIR_PADDLE_MOST at most along the far side, the edge of a
 * compression paddle is in the image, and which level the breast has is not known. The shadow of a collimator along a side of the
 * detector is left out.
 *
 * Some systems store one code, the end of the range of values, for every intensity above their range (GE: 16383 beside values up
 * to 3648). If no stored value is close to the last code, this code is over range. It shows air, but its value is not an
 * intensity, so it is never used as a level. */
#ifndef TOMONODE_RECON_AIR_H
#define TOMONODE_RECON_AIR_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "recon/dbt/prep.h"

#define AIR_SHARE_LEAST 0.005 /* share of the cells with data */
#define AIR_MU_LEAST 0.02     /* 1/mm; breast tissue has 0.04 to 0.09 in mammography, scatter reduces it by up to a fifth */
#define AIR_LOG_ERROR                                                                                                            \
	1e-3 /* 1/mm; error of the attenuation that an error of ln I0 divided by the thickness may cause: 2 % of 0.05 */
#define AIR_FIELD_ERROR 3e-3 /* of ln I0 */
#define AIR_PADDLE_MOST 0.23 /* largest step of ln I at the edge of a compression paddle: 3 mm of acrylic glass, obliquely */
#define AIR_GAP 32	     /* a code is over range if the next occupied code is further away than this part of the range */

enum air_verdict {
	AIR_FOUND = 1,	 /* `level` is the intensity of the unattenuated beam */
	AIR_NO_PLATEAU,	 /* no plateau is connected with the side opposite the chest wall */
	AIR_NO_EDGE,	 /* the highest plateau passes continuously into darker regions: it is part of the object */
	AIR_NO_CONTRAST, /* the object is not dark enough compared with the highest plateau for its thickness */
	AIR_OVER_RANGE,	 /* there is air, but its stored value is over range */
	AIR_TWO_LEVELS,	 /* a part of the air is behind a compression paddle */
};

/* How the air varies over the detector, beside the open field of the conversion: a plane fitted to the logarithms of the cells
 * that are connected with the side opposite the chest wall without a step. A direction is determined if its slope is known so
 * well that ln I0 is right to AIR_LOG_ERROR * thickness everywhere on the detector. The errors of the cells are taken to be
 * AIR_FIELD_ERROR and alike in neighbours, so that more cells do not make the slope better, but cells farther apart do. */
struct air_field {
	bool along[2];	  /* the slope along x, y is determined; x only together with y */
	double slope[2];  /* of ln I0, 1/mm; 0 where it is not determined */
	double variation; /* largest difference of ln I0 between the air and a corner of the data by the plane, also if the air
			     does not follow it closely; 0: not known */
	double level;	  /* mean intensity of these cells; 0: none */
};

struct air {
	enum air_verdict verdict;
	double level;	 /* intensity of the air divided by the open field, stored values above the offset; 0 unless AIR_FOUND */
	double noise;	 /* relative standard deviation of one bin at this level */
	double share;	 /* of the plateau among the cells with data */
	double at[2];	 /* mean position of the plateau relative to the middle of the detector, mm */
	double contrast; /* line integral of the darkest cells, relative to the plateau */
	double gain;	 /* variance of a bin / intensity in the plateau; below 0: not known */
	int over_code;	 /* stored value that is over range; -1: none */
	struct prep_shadow shadow; /* of a collimator */
	struct air_field field;
};

/* Return the stored value that is over range; -1: none. hist: from prep_histogram() or prep_outline(). Uses padding, inverted and
 * max_value of p, which is in 1..65535. */
int air_over_code(const struct prep *p, const uint32_t hist[PREP_VALUES]);

/* Find the air of one projection of linear values. raw: as for prep_view(). pitch: size of a bin along u and v, mm. thickness: of
 * the object, mm. fit: divide by the slope of the air, as far as it is determined, before anything is decided; the level is then
 * that in the middle of the detector. p: also its offset and open field are used. hist: from prep_histogram() or prep_outline().
 */
int air_find(const struct prep *p, const double pitch[2], double thickness, bool fit, const uint16_t *raw,
	     const uint32_t hist[PREP_VALUES], struct air *ret_air, struct err *err);

/* Return the verdict as a clause, such as "no plateau of air at the side opposite the chest wall". */
const char *air_verdict_text(enum air_verdict verdict);

#endif
