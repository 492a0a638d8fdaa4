/* SPDX-License-Identifier: Apache-2.0 */
/* exam_i0.c - decide the intensity of the unattenuated beam (I0) of each view, and whether it is known at all.
 *
 * With i0_mode `percentile` the first of these that applies:
 * - the view shows air (recon/dbt/air.h), its noise is like that of the air of the other views, and its level agrees with that
 *   of the neighbouring views, itself or divided by the exposure. Where air covers more of the view than the percentile leaves,
 *   I0 is the percentile, otherwise the plateau's level;
 * - the percentile agrees with the air that other views show;
 * - other views show air: the median of the nearest three, scaled by the exposure if the headers contain it;
 * - the profile's flat field, or its `air_value`;
 * - a percentile that is a value of the object. The attenuation is then relative, and exam->relative has the reason.
 *
 * The other modes are the profile's own decision. Only `header_max` is not believed if its value is a code over range.
 *
 * The levels of air are divided by the profile's open field (recon/dbt/open_field.h), and I0 is multiplied by it again. With
 * `open_field_fit` the slope that the air shows is part of it; a view that does not determine it has the median slope of those
 * that do. Where the profile's open field is not uniform, the levels of all views must agree, not only those of neighbours. If
 * the air varies within the views more than the open field, or the fit is not determined, a flat field with a frame for each
 * angle is used, or the attenuation is relative. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order.h"
#include "node/base/plural.h"
#include "node/tomo/exam_internal.h"

#define AGREE 0.1	   /* largest difference of ln I0 from the median of neighbouring views */
#define CONFIRM 0.02	   /* largest difference of ln I0 at which the air of other views confirms a view's percentile */
#define SHADOW_AIR 0.5	   /* of the air: brighter is no tissue */
#define NOISE_ALIKE 4.0	   /* largest ratio of variance / intensity of the air to its median over the views */
#define NOISE_LEAST 20.0   /* least variance, stored values^2, that is compared: above that of rounding */
#define NEIGHBOURS 3	   /* views in that median */
#define AGREE_MODEL 0.02   /* largest difference of ln I0 from the median of all views, divided by an open field */
#define FOLLOW_LEAST 0.012 /* rms of ln I0 over the views, by distance, that can be told from other reasons */
#define FOLLOW_SLOPE 0.3   /* largest difference from 1 of the measured variation relative to that by distance */
#define FOLLOW_REST 0.1	   /* largest share of the variance that distance does not explain */
#define VARIES_LEAST 0.25  /* share of the views that must show that the open field is wrong */
#define SIGMAS 3	   /* distance of the percentile from the plateau that noise explains */
#define OVER_PERCENT 99.9  /* percentile that replaces I0 where air is over range: the highest level in range */

/* ---- one view ---- */

static bool is_uniform(const struct exam *exam)
{
	return !exam->profile->open_field_distance && !exam->profile->open_field_fit;
}

static struct open_field distance_of(const struct exam *exam, int view)
{
	return open_field_of_distance(exam->scan, &exam->scan->views[view], exam->rest);
}

/* Return the open field of a view with this slope. */
static struct open_field field_of(const struct exam *exam, int view, const double slope[2])
{
	struct open_field field = {0};

	if (exam->profile->open_field_distance)
		field = distance_of(exam, view);
	open_field_set_slope(exam->scan, slope, &field);
	return field;
}

static int measure_values(const struct exam *exam, int view, const uint16_t *raw, uint32_t hist[PREP_VALUES],
			  struct view_air *ret, struct err *err)
{
	bool needed = exam->profile->i0_mode == I0_PERCENTILE || exam->profile->i0_mode == I0_HEADER_MAX;
	double percent = exam->profile->i0_mode == I0_PERCENTILE ? exam->profile->i0 : OVER_PERCENT;
	struct prep prep = exam->prep;
	struct view_air air = {0};
	int rc = prep_outline(&prep, raw, prep.inverted ? 100 - percent : percent, hist, err);

	prep.open = field_of(exam, view, (const double[]){0, 0});
	if (rc == 0)
		rc = air_find(&prep, exam->scan->h, exam->thickness, exam->profile->open_field_fit, raw, hist, &air.air, err);
	if (rc == 0 && needed && air.air.verdict == AIR_OVER_RANGE) { /* the outline knows no values without that code */
		percent = OVER_PERCENT;
		rc = prep_histogram(&prep, raw, hist, err);
	}
	if (rc < 0)
		return rc;
	air.wall_is_air = exam_wall_is_air(&prep, raw);
	prep.has_over_code = air.air.over_code >= 0;
	prep.over_code = air.air.over_code;
	if (needed)
		rc = prep_percentile(&prep, hist, prep.inverted ? 100 - percent : percent, &air.percentile, err);
	if (rc == -ENODATA)
		rc = err_set(err, EBADMSG, "no stored value in range");
	exam_measure_levels(&prep, raw, hist, &air);
	exam_measure_rows(&prep, raw, &air);
	if (rc == 0)
		*ret = air;
	return rc;
}

static int measure_air(const struct exam *exam, int view, const uint16_t *raw, struct view_air *ret, struct err *err)
{
	uint32_t *hist = malloc(PREP_VALUES * sizeof(*hist));
	int rc = hist ? measure_values(exam, view, raw, hist, ret, err) : err_set(err, ENOMEM, "no memory for a histogram");

	free(hist);
	return rc < 0 ? err_prefix(err, "%s", file_name(exam->paths[exam->views[view].file])) : 0;
}

/* Return the I0 that the view itself shows; 0: none. */
static double own_i0(const struct exam *exam, const struct view_air *v)
{
	double part = exam_value_intensity(&exam->prep, v->percentile);
	double left = 1 - exam->profile->i0 / 100;

	if (v->air.verdict != AIR_FOUND)
		return 0;
	if (is_uniform(exam) && exam->profile->i0_mode == I0_PERCENTILE && v->air.share >= left && part > 0 &&
	    fabs(log(part / v->air.level)) <= fmax(0.02, SIGMAS * v->air.noise))
		return part;
	return v->air.level;
}

/* ---- all views ---- */

struct decision {
	const struct exam *exam;
	const struct view_air *air;
	int first;   /* index in the scan of the first view */
	double *own; /* I0 that each view shows; 0: none, or it disagrees with the others */
	int n_own, n_disagree;
	bool flat_only;	 /* use the flat field for all views */
	int n_along[2];	 /* views whose air determines the slope along x, y */
	double slope[2]; /* its median over them, 1/mm */
};

/* ---- the slope of the air ---- */

static void share_slopes(struct decision *d)
{
	double values[EXAM_VIEWS_MAX];

	for (int k = 0; d->exam->profile->open_field_fit && k < 2; k++) {
		int n = 0;

		for (int i = 0; i < d->exam->n_views; i++)
			if (d->air[i].air.verdict == AIR_FOUND && d->air[i].air.field.along[k])
				values[n++] = d->air[i].air.field.slope[k];
		qsort(values, (size_t)n, sizeof(values[0]), order_doubles);
		d->n_along[k] = n;
		d->slope[k] = n > 0 ? values[n / 2] : 0;
	}
}

/* Compute the slope of a view: its own, or that of other views. */
static void slope_of(const struct decision *d, int view, double ret[2])
{
	const struct air *air = &d->air[view].air;

	for (int k = 0; k < 2; k++)
		ret[k] = air->verdict == AIR_FOUND && air->field.along[k] && d->exam->profile->open_field_fit
				 ? air->field.slope[k]
				 : d->slope[k];
}

/* Return the level in the middle of the detector: that of the plateau, which is divided by the view's own slope already, divided
 * by the slope of other views. */
static double middle_i0(const struct decision *d, int view)
{
	const struct air *air = &d->air[view].air;
	double by = 0;

	for (int k = 0; k < 2; k++)
		by += air->field.along[k] ? 0 : d->slope[k] * air->at[k];
	return own_i0(d->exam, &d->air[view]) * exp(-by);
}

/* ---- the level of the air ---- */

/* Return the median of own I0 over the nearest views that have one, `view` included, or over all if an open field makes them
 * alike; 0: none. charge: divided by the exposure. */
static double nearby_i0(const struct decision *d, const double *own, int view, bool charge)
{
	double values[EXAM_VIEWS_MAX];
	int n = 0, most = is_uniform(d->exam) ? NEIGHBOURS : d->exam->n_views;

	for (int away = 0; away < d->exam->n_views && n < most; away++)
		for (int side = away ? -1 : 1; side <= 1 && n < most; side += 2) {
			int k = view + side * away;

			if (k >= 0 && k < d->exam->n_views && own[k] > 0)
				values[n++] = own[k] / (charge ? d->exam->views[k].charge : 1);
		}
	qsort(values, (size_t)n, sizeof(values[0]), order_doubles);
	return n > 0 ? values[n / 2] : 0;
}

static bool agrees_nearby(const struct decision *d, const double *own, int view, bool charge)
{
	double value = own[view] / (charge ? d->exam->views[view].charge : 1);

	return fabs(log(value / nearby_i0(d, own, view, charge))) <= (is_uniform(d->exam) ? AGREE : AGREE_MODEL);
}

/* Return the median variance / intensity of the air over the views that show I0; 0: none, or too small to be compared. */
static double common_gain(const struct decision *d)
{
	double values[EXAM_VIEWS_MAX], level = 0;
	int n = 0;

	for (int i = 0; i < d->exam->n_views; i++)
		if (d->own[i] > 0 && d->air[i].air.gain > 0) {
			values[n++] = d->air[i].air.gain;
			level = fmax(level, d->air[i].air.level);
		}
	qsort(values, (size_t)n, sizeof(values[0]), order_doubles);
	return n > 0 && values[n / 2] * level >= NOISE_LEAST ? values[n / 2] : 0;
}

/* Discard the I0 of views whose air has another noise than that of the other views: a part of it is clipped, or it is no air. */
static void compare_noise(struct decision *d)
{
	double common = common_gain(d);

	for (int i = 0; common > 0 && i < d->exam->n_views; i++) {
		double gain = d->air[i].air.gain;

		if (d->own[i] > 0 && gain >= 0 && (gain * NOISE_ALIKE < common || gain > NOISE_ALIKE * common)) {
			d->own[i] = 0;
			d->n_disagree++;
		}
	}
}

/* Discard the I0 of views that agree with their neighbours neither as it is nor divided by the exposure; of all views if most of
 * them disagree. */
static int compare_views(struct decision *d, struct err *err)
{
	int n = d->exam->n_views;
	bool charges = d->exam->views[0].charge > 0;
	double *all = malloc((size_t)n * sizeof(*all));

	if (!all)
		return err_set(err, ENOMEM, "no memory for the levels of %d views", n);
	memcpy(all, d->own, (size_t)n * sizeof(*all));
	for (int i = 0; i < n; i++) {
		if (!(all[i] > 0))
			continue;
		if (agrees_nearby(d, all, i, false) || (charges && agrees_nearby(d, all, i, true))) {
			d->n_own++;
		} else {
			d->own[i] = 0;
			d->n_disagree++;
		}
	}
	if (d->n_disagree > d->n_own)
		memset(d->own, 0, (size_t)n * sizeof(*d->own));
	free(all);
	return 0;
}

static double fixed_air(const struct exam *exam, int view)
{
	const struct profile_conf *p = exam->profile;
	double charge = exam->views[view].charge;

	if (!(p->air_value > 0) || (p->air_exposure > 0 && !(charge > 0)))
		return 0;
	return exam_value_intensity(&exam->prep, p->air_value) * (p->air_exposure > 0 ? charge / p->air_exposure : 1);
}

/* Return the percentile of a view that does not prove its air, for example because its object is hardly darker, if it agrees with
 * the air of other views; else 0. */
static double confirmed_percentile(const struct decision *d, int view, double others)
{
	double part = exam_value_intensity(&d->exam->prep, d->air[view].percentile);

	if (!is_uniform(d->exam) || d->air[view].air.verdict == AIR_FOUND || d->air[view].air.verdict == AIR_OVER_RANGE ||
	    !(part > 0) || !(others > 0))
		return 0;
	return fabs(log(part / others)) <= CONFIRM ? part : 0;
}

/* Return the shadow of a collimator in a view. i0: intensity of the air, known otherwise; 0: not known. What is beside a shadow
 * is object, too: if all of it is as bright as air, the object is what looks like a shadow, as one that an oblique view cuts. */
static struct prep_shadow shadow_of(const struct decision *d, int view, double i0)
{
	const struct view_air *a = &d->air[view];

	if (a->air.verdict == AIR_NO_CONTRAST && i0 > 0 && exam_value_intensity(&d->exam->prep, a->percentile) > SHADOW_AIR * i0)
		return (struct prep_shadow){0};
	return a->air.shadow;
}

/* Decide a view of i0_mode `percentile`. */
static struct exam_i0 choose_percentile(const struct decision *d, int view)
{
	const struct exam *exam = d->exam;
	bool charge = exam->views[view].charge > 0;
	double others = nearby_i0(d, d->own, view, charge) * (charge ? exam->views[view].charge : 1);
	double own = d->own[view] > 0 ? d->own[view] : confirmed_percentile(d, view, others);
	struct exam_i0 i0 = {.over_code = d->air[view].air.over_code, .shadow = shadow_of(d, view, others)};

	if (own > 0) {
		i0.i0 = own;
		i0.source = I0_OF_VIEW;
	} else if (others > 0) {
		i0.i0 = others;
		i0.source = I0_OF_OTHERS;
	} else if (exam->flatfields) {
		i0.i0 = exam->flatfield_level * exam->views[view].exposure;
		i0.source = I0_OF_PROFILE;
		i0.use_flatfield = true;
	} else if (fixed_air(exam, view) > 0) {
		i0.i0 = fixed_air(exam, view);
		i0.source = I0_OF_PROFILE;
	} else {
		i0.i0 = exam_value_intensity(&exam->prep, d->air[view].percentile);
		i0.source = I0_UNKNOWN;
	}
	return i0;
}

/* Use the value of the profile, unless it is a code over range. */
static struct exam_i0 of_profile(const struct decision *d, int view)
{
	double value;
	const struct air *air = &d->air[view].air;
	struct exam_i0 i0 = {.i0 = exam_profile_i0(d->exam, view, &value), .source = I0_OF_PROFILE, .over_code = air->over_code};

	if (d->exam->profile->i0_mode == I0_HEADER_MAX && i0.over_code >= 0 && value == i0.over_code)
		return choose_percentile(d, view);
	i0.use_flatfield = d->exam->profile->i0_mode == I0_FLATFIELD;
	i0.shadow = shadow_of(d, view, i0.i0);
	return i0;
}

static struct exam_i0 decide_view(const struct decision *d, int view)
{
	struct exam_i0 i0 = d->exam->profile->i0_mode == I0_PERCENTILE ? choose_percentile(d, view) : of_profile(d, view);
	double slope[2] = {0, 0};

	if (!i0.use_flatfield) /* the flat field includes the slope */
		slope_of(d, view, slope);
	i0.open = field_of(d->exam, d->first + view, slope);
	return i0;
}

static int decide_views(struct decision *d, struct exam_i0 *ret, struct err *err)
{
	const struct exam *exam = d->exam;
	int rc;

	share_slopes(d);
	for (int i = 0; i < exam->n_views; i++)
		d->own[i] = d->flat_only ? 0 : middle_i0(d, i);
	compare_noise(d);
	rc = compare_views(d, err);
	for (int i = 0; rc == 0 && i < exam->n_views; i++) {
		ret[i] = decide_view(d, i);
		if (!(ret[i].i0 > 0) || !isfinite(ret[i].i0))
			rc = err_set(err, EBADMSG, "%s: the unattenuated intensity is %g (offset %g)",
				     file_name(exam->paths[exam->views[i].file]), ret[i].i0, exam->prep.offset);
	}
	return rc;
}

/* ---- figures and reasons ---- */

/* Return the largest difference of ln I0 per exposure between views that show it. */
static double spread_of(const struct decision *d)
{
	double lo = INFINITY, hi = 0;

	for (int i = 0; i < d->exam->n_views; i++) {
		double charge = d->exam->views[i].charge > 0 ? d->exam->views[i].charge : 1;

		if (d->own[i] > 0) {
			lo = fmin(lo, d->own[i] / charge);
			hi = fmax(hi, d->own[i] / charge);
		}
	}
	return hi > 0 ? log(hi / lo) : 0;
}

/* Return whether the cells with which the variation of a view was measured are its air. */
static bool shows_field(const struct air *air, const struct exam_i0 *i0)
{
	return i0->source != I0_UNKNOWN &&
	       (air->verdict == AIR_FOUND || (air->field.level > 0 && fabs(log(air->field.level / i0->i0)) <= AGREE));
}

/* Fit the levels of the views, per exposure, to what distance and direction of the source would make of them where each shows its
 * air; return true if they follow. Then the open field is not uniform. */
static bool follows_distance(const struct decision *d)
{
	double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;

	for (int i = 0; i < d->exam->n_views; i++) {
		const struct exam_view *view = &d->exam->views[i];
		double middle[2], factor, f, level;

		if (!(d->own[i] > 0))
			continue;
		for (int k = 0; k < 2; k++)
			middle[k] = d->air[i].air.at[k] / d->exam->scan->h[k];
		struct open_field field = distance_of(d->exam, i);

		open_field_row(&field, (d->exam->scan->n_u - 1) / 2.0 + middle[0], 1, (d->exam->scan->n_v - 1) / 2.0 + middle[1],
			       1, &factor);
		f = log(factor);
		level = log(d->own[i] / (view->charge > 0 ? view->charge : 1));
		n++;
		x += f;
		y += level;
		xx += f * f;
		xy += f * level;
		yy += level * level;
	}
	if (n < 2)
		return false;
	xx -= x * x / n;
	xy -= x * y / n;
	yy -= y * y / n;
	return xx / n > FOLLOW_LEAST * FOLLOW_LEAST && fabs(xy / xx - 1) < FOLLOW_SLOPE && yy - xy * xy / xx < FOLLOW_REST * yy;
}

static struct exam_open_field measure_field(const struct decision *d, const struct exam_i0 *i0)
{
	struct exam_open_field f = {.spread = spread_of(d)};

	for (int i = 0; i < d->exam->n_views; i++) {
		const struct air *air = &d->air[i].air;

		if (!shows_field(air, &i0[i]))
			continue;
		f.n_shown++;
		f.n_along[0] += air->field.along[0];
		f.n_along[1] += air->field.along[1];
		f.n_varies += air->field.variation > AIR_LOG_ERROR * d->exam->thickness;
		f.variation = fmax(f.variation, air->field.variation);
	}
	f.follows_distance = !d->exam->profile->open_field_distance && follows_distance(d);
	return f;
}

static bool is_of_air(const struct decision *d, const struct exam_i0 *i0)
{
	for (int i = 0; i < d->exam->n_views; i++)
		if (i0[i].source == I0_OF_VIEW || i0[i].source == I0_OF_OTHERS)
			return true;
	return false;
}

/* Write why the open field is not known, if I0 is that of the air. */
static void explain_field(const struct decision *d, const struct exam_open_field *f, char *ret, size_t size)
{
	if (d->exam->profile->open_field_fit && !(d->n_along[0] && d->n_along[1]))
		snprintf(ret, size, "the air of no projection determines the open field along %s, which open_field_fit requires",
			 d->n_along[1] ? "x" : "x and y");
	else if (!d->exam->profile->open_field_fit && f->n_varies > VARIES_LEAST * f->n_shown)
		snprintf(ret, size,
			 "the air of %d projection%s varies by up to %.0f %%, which the open field of the profile does not "
			 "explain; see open_field",
			 f->n_varies, plural(f->n_varies), 100 * expm1(f->variation));
	else if (f->follows_distance)
		snprintf(ret, size,
			 "the air of the projections differs by %.0f %% as the distance of the source does, which the open field "
			 "of the profile does not explain; see open_field",
			 100 * expm1(f->spread));
}

/* Write why I0 is unknown: the reason of the first view without air. */
static void explain_unknown(const struct decision *d, const struct exam_i0 *i0, char *ret, size_t size)
{
	int first = 0, n = 0;

	for (int i = d->exam->n_views - 1; i >= 0; i--)
		if (i0[i].source == I0_UNKNOWN) {
			first = i;
			n++;
		}
	ret[0] = '\0';
	if (n > 0 && d->n_disagree > 0)
		snprintf(ret, size, "the levels of air in %d projection%s disagree", d->n_disagree, plural(d->n_disagree));
	else if (n > 0)
		snprintf(ret, size, "%s, and the profile has neither air_value nor flat field",
			 air_verdict_text(d->air[first].air.verdict));
	else if (is_of_air(d, i0))
		explain_field(d, &d->exam->open_field, ret, size);
}

/* Use the flat field for all views if their air contradicts the open field of the profile, and the flat field has a frame for
 * each angle, which includes the open field. */
static int distrust_air(struct decision *d, struct exam *exam, struct exam_i0 *i0, struct err *err)
{
	if (!exam->relative[0] || !is_of_air(d, i0) || exam->profile->i0_mode != I0_PERCENTILE || !exam_flatfield_of_angles(exam))
		return 0;
	exam_warn(exam, "The flat field of the profile is used instead of the air: %s.", exam->relative);
	exam->relative[0] = '\0';
	d->flat_only = true;
	return decide_views(d, i0, err);
}

/* Warn if a shadow is left out. */
static void warn_shadow(struct exam *exam, const struct exam_i0 *i0)
{
	const double *h = exam->scan->h;
	double far = 0, ends = 0;
	int n = 0;

	for (int i = 0; i < exam->n_views; i++) {
		const struct prep_shadow *s = &i0[i].shadow;

		n += s->far + s->first + s->last > 0;
		far = fmax(far, s->far * h[0]);
		ends = fmax(ends, fmax(s->first, s->last) * h[1]);
	}
	if (n > 0)
		exam_warn(exam,
			  "The shadow of a collimator is left out of %d projection%s: up to %.0f mm at the far side, %.0f mm at "
			  "the ends along the chest wall.",
			  n, plural(n), far, ends);
}

int exam_decide_i0(struct exam *exam, const struct view_air *air, struct err *err)
{
	size_t n = (size_t)exam->n_views;
	struct decision d = {.exam = exam, .air = air, .own = calloc(n, sizeof(*d.own))};
	struct exam_i0 *i0 = calloc(n, sizeof(*i0));
	int rc = d.own && i0 ? decide_views(&d, i0, err) : err_set(err, ENOMEM, "no memory for the intensities of %zu views", n);

	if (rc == 0) {
		if (exam->profile->i0_mode == I0_PERCENTILE && i0[0].use_flatfield && d.n_disagree > 0)
			exam_warn(exam,
				  "The levels of air in %d projection%s disagree: the flat field of the profile is used instead.",
				  d.n_disagree, plural(d.n_disagree));
		warn_shadow(exam, i0);
		exam_warn_edges(exam, air);
		exam_warn_rows(exam, air);
		exam->open_field = measure_field(&d, i0);
		explain_unknown(&d, i0, exam->relative, sizeof(exam->relative));
		rc = distrust_air(&d, exam, i0, err);
	}
	if (rc == 0)
		exam_check_counts(exam, air, i0);
	if (rc == 0) {
		free(exam->i0);
		exam->i0 = i0;
		i0 = NULL;
	}
	free(d.own);
	free(i0);
	return rc;
}

int exam_measure_view(const struct exam *exam, int view, const uint16_t *raw, struct view_air *ret_air, struct exam_i0 *ret_alone,
		      struct err *err)
{
	struct exam alone = *exam;
	double own;
	struct decision d = {.exam = &alone, .air = ret_air, .first = view, .own = &own};
	int rc = measure_air(exam, view, raw, ret_air, err);

	if (rc < 0)
		return rc;
	alone.views = exam->views + view;
	alone.n_views = 1;
	share_slopes(&d);
	own = own_i0(exam, ret_air);
	*ret_alone = decide_view(&d, 0);
	return 0;
}
