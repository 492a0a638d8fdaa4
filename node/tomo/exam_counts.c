/* SPDX-License-Identifier: Apache-2.0 */
/* exam_counts.c - compare the counts of the views with each other. From one view to the next the object hardly changes: the line
 * integral of its darkest part, times the cosine of the angle, because the paths through a slab are longer in oblique views, is
 * that of the neighbours to some percent. If one view differs, its I0 is wrong: the exposure failed or was another than the
 * header says. Then its own air has fewer counts as well; but air that is covered, by a hand or a clip, has fewer counts alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order.h"
#include "node/base/plural.h"
#include "node/tomo/exam_internal.h"

#define NEIGHBOURS 5	 /* views in the median, itself included */
#define DIFFERS 0.1	 /* difference from it, of ln I0, above which the view's own air may explain it better */
#define DIFFERS_MOST 0.3 /* difference that the object may make; exposure control keeps the dose to some tens of percent */
#define ONE_FACTOR 0.3	 /* largest difference between darkest and brightest part, of the former's */
#define SPREAD 4.0	 /* nor is a view called different that differs less than so many times the median of all */

/* Return the intensity below which `percent` of the counted values are, in stored values above the offset. */
static double level_at(const struct prep *p, const uint32_t *hist, uint64_t n, int percent)
{
	uint64_t below = 0;

	for (long k = 0; n > 0 && k < PREP_VALUES; k++) {
		long x = p->inverted ? PREP_VALUES - 1 - k : k;

		below += hist[x];
		if (below * 100 >= n * (uint64_t)percent)
			return fmax(0, exam_value_intensity(p, (double)x));
	}
	return 0;
}

void exam_measure_levels(const struct prep *p, const uint16_t *raw, uint32_t hist[PREP_VALUES], struct view_air *ret)
{
	const struct prep_shadow *shadow = &ret->air.shadow;
	int step = exam_row_step(p);
	uint64_t n = 0;

	memset(hist, 0, PREP_VALUES * sizeof(hist[0]));
	for (int v = shadow->first; v < p->n_v - shadow->last; v += step)
		for (int u = 0; u < p->n_u - shadow->far; u++) {
			uint16_t x = raw[(size_t)v * (size_t)p->n_u + (size_t)u];
			bool data = !p->has_padding || x < p->padding_lo || x > p->padding_hi;

			hist[x] += data;
			n += data;
		}
	ret->dark = level_at(p, hist, n, DARK_PERCENT);
	ret->bright = level_at(p, hist, n, BRIGHT_PERCENT);
}

/* Return the line integral of the darkest, or the brightest, part of a view. */
static double integral_of(const struct view_air *air, double i0, bool bright)
{
	return log(i0 / (bright ? air->bright : air->dark));
}

/* Return what the median of a view and its neighbours lets expect. */
static double expected_median(const struct exam *exam, const struct view_air *air, const struct exam_i0 *i0, int view,
			      bool bright)
{
	int first = view - NEIGHBOURS / 2, last = exam->n_views - NEIGHBOURS;
	double values[NEIGHBOURS];

	first = first < 0 ? 0 : first > last ? last : first;
	for (int k = 0; k < NEIGHBOURS; k++)
		values[k] =
			integral_of(&air[first + k], i0[first + k].i0, bright) * cos(exam->views[first + k].angle * M_PI / 180);
	qsort(values, NEIGHBOURS, sizeof(values[0]), order_doubles);
	return values[NEIGHBOURS / 2] / cos(exam->views[view].angle * M_PI / 180);
}

/* Use the view's own air if it explains the difference from its neighbours. */
static bool use_own(const struct exam *exam, const struct view_air *air, double want, struct exam_i0 *i0)
{
	double off = fabs(integral_of(air, i0->i0, false) - want);

	if (exam->profile->i0_mode != I0_PERCENTILE || i0->source != I0_OF_OTHERS || air->air.verdict != AIR_FOUND ||
	    !(off > DIFFERS) || !(fabs(integral_of(air, air->air.level, false) - want) < off / 2))
		return false;
	i0->i0 = air->air.level;
	i0->source = I0_OF_VIEW;
	return true;
}

/* Let views use their own air where it explains their counts. */
static void use_own_air(struct exam *exam, const struct view_air *air, struct exam_i0 *i0)
{
	double part = 1;
	char name[128];
	int n = 0;

	for (int i = 0; i < exam->n_views; i++) {
		double was = i0[i].i0;

		if (use_own(exam, &air[i], expected_median(exam, air, i0, i, false), &i0[i]) && n++ == 0) {
			part = i0[i].i0 / was;
			exam_view_name(exam, &exam->views[i], name, sizeof(name));
		}
	}
	if (n > 0)
		exam_warn(exam,
			  "%d projection%s with other counts than the rest (%s: %.0f %%), in the air and in the object, which "
			  "no exposure in the headers explains: each has its I0 from its own air.",
			  n, plural(n), name, 100 * part);
}

/* Other counts make the whole image darker or brighter by one factor; an object that moves, or leaves the field, does not. */
static bool is_one_factor(double dark, double bright)
{
	return fabs(bright - dark) < ONE_FACTOR * fabs(dark);
}

/* off: by how much the darkest part of each view differs from what is expected; one: the whole view does. */
static void explain_counts(struct exam *exam, const double *off, const bool *one)
{
	double size[EXAM_VIEWS_MAX], most;
	char name[128];
	int n = 0, worst = -1;

	for (int i = 0; i < exam->n_views; i++)
		size[i] = fabs(off[i]);
	qsort(size, (size_t)exam->n_views, sizeof(size[0]), order_doubles);
	most = fmax(DIFFERS_MOST, SPREAD * size[exam->n_views / 2]);
	for (int i = 0; i < exam->n_views; i++)
		if (one[i] && fabs(off[i]) > most) {
			worst = worst < 0 || fabs(off[i]) > fabs(off[worst]) ? i : worst;
			n++;
		}
	if (n == 0)
		return;
	exam_view_name(exam, &exam->views[worst], name, sizeof(name));
	snprintf(
		exam->relative, sizeof(exam->relative),
		"%d projection%s, %s most, with %.0f %% of the counts that the others let expect, which neither air nor exposure "
		"explains",
		n, plural(n), name, 100 * exp(-off[worst]));
}

void exam_check_counts(struct exam *exam, const struct view_air *air, struct exam_i0 *i0)
{
	double off[EXAM_VIEWS_MAX];
	bool one[EXAM_VIEWS_MAX];

	for (int i = 0; i < exam->n_views; i++)
		if (!(air[i].dark > 0 && air[i].bright > 0))
			return;
	if (exam->relative[0] || exam->n_views < NEIGHBOURS)
		return;
	use_own_air(exam, air, i0);
	for (int i = 0; i < exam->n_views; i++) {
		off[i] = integral_of(&air[i], i0[i].i0, false) - expected_median(exam, air, i0, i, false);
		one[i] = is_one_factor(off[i], integral_of(&air[i], i0[i].i0, true) - expected_median(exam, air, i0, i, true));
	}
	explain_counts(exam, off, one);
}
