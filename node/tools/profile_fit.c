/* SPDX-License-Identifier: Apache-2.0 */
/* profile_fit.c - the steps of node/tools/profile_fit.h. */
#include "node/tools/profile_fit.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "node/tools/profile_views.h"
#include "recon/calibration/bead_track.h"

#define ROUNDS_MAX 3	 /* of dropping positions */
#define FAR 5.0		 /* times the noise: such a position is not that of one bead */
#define DROPPED_PART 0.1 /* largest part of the positions that may be dropped */
#define WINDOW_MOST 1.0	 /* mm; the fit assumes that the images are centred in the detector */
#define DIGITS 1e4	 /* values of the new profile are rounded to 1 / DIGITS */

/* Largest distance of a fitted parameter from its start. */
static const double reach[SYSTEM_PARAMETERS] = {100, 150, 300, 100, 15, 100, 0.5, 0, 0};
/* Changes that an image does not show: a bead moves by less than 0.1 mm in the plane and 0.3 mm along z. */
static const double allowed_change[SYSTEM_PARAMETERS] = {1, 1, 0.5, 1, 0.1, 0.3, 0.01, 0, 0};

/* Write the parameters of a profile. */
static void parameters_of(const struct profile_conf *p, double ret[SYSTEM_PARAMETERS])
{
	const double value[SYSTEM_PARAMETERS] = {
		[SYSTEM_AXIS_HEIGHT] = p->axis_height,
		[SYSTEM_SOURCE_AXIS] = p->source_axis,
		[SYSTEM_SOURCE_X] = p->source_x,
		[SYSTEM_SOURCE_Y] = p->source_y,
		[SYSTEM_ANGLE_OFFSET] = p->angle_offset,
		[SYSTEM_SUPPORT] = p->support,
		[SYSTEM_RATIO] = p->detector_ratio,
		[SYSTEM_DETECTOR_AXIS_Y] = p->detector_axis_y,
		[SYSTEM_DETECTOR_AXIS_HEIGHT] = p->detector_axis_height,
	};

	memcpy(ret, value, sizeof(value));
}

/* Describe the views, the start, the ranges. The angles are those of the header. */
static int begin_fit(const struct exam *exam, const bool fixed[SYSTEM_PARAMETERS], struct profile_result *r, struct err *err)
{
	struct bead_fit_input *in = &r->input;

	if (exam->window[0] != 0 || fabs(exam->window[1]) > WINDOW_MOST)
		return err_set(
			err, ENOTSUP,
			"the images show a part of the detector (Field of View Origin (0018,7030)): acquire the phantom with "
			"the whole field of view");
	r->angle = calloc((size_t)exam->n_views, sizeof(*r->angle));
	r->views = calloc((size_t)exam->n_views, sizeof(*r->views));
	if (!r->angle || !r->views)
		return err_set(err, ENOMEM, "no memory for %d views", exam->n_views);
	for (int i = 0; i < exam->n_views; i++)
		r->angle[i] = exam->views[i].stated;
	in->views = (struct bead_views){
		.n_u = exam->scan->n_u,
		.n_v = exam->scan->n_v,
		.pitch = exam->scan->h[0],
		.n_views = exam->n_views,
		.angle = r->angle,
		.sign = 1,
		.definition =
			exam->views[0].by_profile && exam->profile->angle_at_detector ? ANGLE_AT_DETECTOR : ANGLE_ABOUT_AXIS,
	};
	parameters_of(exam->profile, in->start);
	if (!exam->views[0].by_profile)
		in->start[SYSTEM_ANGLE_OFFSET] = 0;
	for (int i = 0; i < SYSTEM_PARAMETERS; i++) {
		in->fitted[i] = !fixed[i] && reach[i] > 0;
		in->lo[i] = in->start[i] - reach[i];
		in->hi[i] = in->start[i] + reach[i];
	}
	in->fitted[SYSTEM_RATIO] = !fixed[SYSTEM_RATIO] && in->start[SYSTEM_RATIO] != 0;
	in->fitted[SYSTEM_ANGLE_OFFSET] = !fixed[SYSTEM_ANGLE_OFFSET] && exam->views[0].by_profile;
	return 0;
}

/* Assign the tracks to beads of the phantom. ret_number[track]: -1: none. */
static int match_beads(const struct bead_tracks *t, const struct profile_phantom *phantom, double support, int *ret_number,
		       struct err *err)
{
	bool mirrored; /* decided by the fits of all conventions */

	if (phantom->knowledge == BEADS_KNOWN)
		return bead_tracks_match(t, (const double(*)[3])phantom->at, phantom->n_beads, ret_number, &mirrored, err);
	for (int i = 0; i < t->n; i++)
		ret_number[i] = phantom->knowledge == BEADS_UNKNOWN ? i : 0;
	if (phantom->knowledge == BEADS_IN_LAYERS)
		bead_tracks_layers(t, support, phantom->layer, phantom->n_layers, ret_number);
	return 0;
}

/* Add a track that belongs to the phantom as a bead of the fit. */
static void add_bead(struct profile_result *r, const struct profile_phantom *phantom, const struct bead_track *track, int number)
{
	int n = r->input.phantom.n_beads++;
	double *at = r->at[n];

	r->number[n] = number;
	if (phantom->knowledge == BEADS_KNOWN)
		memcpy(at, phantom->at[number], sizeof(r->at[n]));
	else
		memcpy(at, track->at, sizeof(r->at[n]));
	if (phantom->knowledge == BEADS_IN_LAYERS)
		at[2] = phantom->layer[number];
}

/* Make the input of the fit from tracks. */
static int use_tracks(struct profile_result *r, const struct profile_phantom *phantom, const struct bead_tracks *t,
		      const int *number, struct err *err)
{
	int *bead = calloc((size_t)t->n, sizeof(*bead)), n = 0;

	r->at = calloc((size_t)t->n, sizeof(*r->at));
	r->number = calloc((size_t)t->n, sizeof(*r->number));
	r->points = calloc((size_t)t->n_points, sizeof(*r->points));
	if (!bead || !r->at || !r->number || !r->points) {
		free(bead);
		return err_set(err, ENOMEM, "no memory for %d positions of beads", t->n_points);
	}
	r->n_found = t->n;
	for (int i = 0; i < t->n; i++) {
		bead[i] = number[i] < 0 ? -1 : r->input.phantom.n_beads;
		if (number[i] < 0)
			r->n_unmatched++;
		else
			add_bead(r, phantom, &t->tracks[i], number[i]);
	}
	for (int i = 0; i < t->n_points; i++)
		if (bead[t->points[i].bead] >= 0) {
			r->points[n] = t->points[i];
			r->points[n++].bead = bead[t->points[i].bead];
		}
	r->input.phantom.knowledge = phantom->knowledge;
	r->input.phantom.at = (const double(*)[3])r->at;
	r->input.points = r->points;
	r->input.n_points = n;
	free(bead);
	return n > 0 ? 0 : err_set(err, EBADMSG, "none of the %d beads is at the height of a layer", t->n);
}

static int find_points(const struct exam *exam, const struct profile_phantom *phantom, const struct monitor *monitor,
		       struct profile_result *r, struct err *err)
{
	struct bead_tracks tracks = {0};
	struct bead_spots *spots = NULL;
	int *number = NULL, rc = profile_views_find(exam, phantom->diameter, monitor, &spots, err);

	if (rc == 0)
		rc = bead_tracks_make(&r->input.views, r->input.start, spots, &tracks, err);
	if (rc == 0) {
		number = calloc((size_t)tracks.n, sizeof(*number));
		rc = number ? match_beads(&tracks, phantom, r->input.start[SYSTEM_SUPPORT], number, err)
			    : err_set(err, ENOMEM, "no memory for %d beads", tracks.n);
	}
	if (rc == 0)
		rc = use_tracks(r, phantom, &tracks, number, err);
	if (rc == 0 && phantom->knowledge == BEADS_UNKNOWN)
		r->input.views.sign = tracks.sign;
	free(number);
	bead_tracks_clear(&tracks);
	profile_views_free(spots, exam->n_views);
	return err_remap(rc, ENODATA, EBADMSG, err);
}

/* Fit, and leave out positions far from the fit, as long as there are few. */
static int fit_points(struct profile_result *r, struct err *err)
{
	int begun = r->input.n_points;

	for (int round = 0;; round++) {
		int kept = 0, rc = bead_fit_run(&r->input, &r->fit, err);

		if (rc < 0 || round == ROUNDS_MAX)
			return rc;
		for (int i = 0; i < r->input.n_points; i++)
			kept += hypot(r->fit.residual[i][0], r->fit.residual[i][1]) <= FAR * r->fit.noise;
		if (kept == r->input.n_points || kept < (1 - DROPPED_PART) * begun)
			return 0;
		kept = 0;
		for (int i = 0; i < r->input.n_points; i++)
			if (hypot(r->fit.residual[i][0], r->fit.residual[i][1]) <= FAR * r->fit.noise)
				r->points[kept++] = r->points[i];
		r->n_dropped += r->input.n_points - kept;
		r->input.n_points = kept;
		bead_fit_clear(&r->fit);
	}
}

/* Fit only where the phantom is, with the geometry of the profile. */
static double rms_of_profile(const struct profile_result *r)
{
	struct bead_fit_input in = r->input;
	struct bead_fit f;
	double rms;

	memset(in.fitted, 0, sizeof(in.fitted));
	in.fitted[SYSTEM_SUPPORT] = r->input.fitted[SYSTEM_SUPPORT]; /* what the phantom lies on */
	if (bead_fit_run(&in, &f, NULL) < 0)
		return INFINITY;
	rms = f.rms;
	bead_fit_clear(&f);
	return rms;
}

/* Check that a profile can express the conventions: those of a Breast Projection object are fixed by PS3.3. */
static int check_expressible(const struct exam *exam, const struct bead_trial *best, struct err *err)
{
	if (exam->views[0].by_profile || (best->sign > 0 && best->definition == ANGLE_ABOUT_AXIS))
		return 0;
	return err_set(err, EDOM, "the angles (0018,9543) %s, against PS3.3 C.8.31.6; no profile can correct that",
		       best->sign < 0 ? "have the wrong sign" : "are not about the axis of rotation");
}

/* Choose between the definitions: the profile's own, unless the other one is clearly better. */
static void choose_definition(struct bead_conventions *c)
{
	const struct bead_trial *best = &c->trials[c->best];

	if (best->definition == c->trials[0].definition || c->definition_apart >= BEAD_DISTINCT)
		return;
	for (int i = 0; i < c->n; i++)
		if (c->trials[i].sign == best->sign && c->trials[i].mirrored == best->mirrored &&
		    c->trials[i].definition == c->trials[0].definition) {
			c->best = i;
			return;
		}
}

/* Note that the profile is measured: on the day of the exam, with these residuals. */
static void note_calibration(const struct exam *exam, double rms, struct profile_conf *p)
{
	struct header h = exam_header(exam, 0);
	char day[20] = "";

	p->geometry_source = GEOMETRY_CALIBRATED;
	p->calibration_rms = round(rms * 1e3) / 1e3;
	p->calibration_date[0] = '\0';
	if (header_text(&h, TAG_ACQUISITION_DATE, day, sizeof(day), NULL) != 1)
		header_text(&h, TAG_STUDY_DATE, day, sizeof(day), NULL);
	if (strlen(day) == 8 && strspn(day, "0123456789") == 8)
		snprintf(p->calibration_date, sizeof(p->calibration_date), "%.4s-%.2s-%.2s", day, day + 4, day + 6);
}

static void make_profile(const struct exam *exam, struct profile_result *r)
{
	struct profile_conf p = *exam->profile;
	double value[SYSTEM_PARAMETERS];

	for (int i = 0; i < SYSTEM_PARAMETERS; i++)
		value[i] = round(r->fit.value[i] * DIGITS) / DIGITS;
	p.axis_height = value[SYSTEM_AXIS_HEIGHT];
	p.source_axis = value[SYSTEM_SOURCE_AXIS];
	p.source_x = value[SYSTEM_SOURCE_X];
	p.source_y = value[SYSTEM_SOURCE_Y];
	p.support = value[SYSTEM_SUPPORT];
	p.detector_ratio = value[SYSTEM_RATIO];
	if (exam->views[0].by_profile) {
		p.angle_offset = value[SYSTEM_ANGLE_OFFSET];
		p.angle_sign *= r->input.views.sign;
		p.angle_at_detector = r->input.views.definition == ANGLE_AT_DETECTOR;
	}
	p.pose_in_header = false; /* matrices of the header would replace the fitted geometry */
	note_calibration(exam, r->fit.rms, &p);
	r->profile = p;
}

/* Judge the result; the reason of a refusal is part of it. */
static void judge_result(const struct exam *exam, struct profile_result *r)
{
	struct err err = {0};
	int rc = 0;

	if (r->conventions.n)
		rc = bead_judge_conventions(&r->conventions, &err);
	if (rc == 0 && r->conventions.n)
		rc = check_expressible(exam, &r->conventions.trials[r->conventions.best], &err);
	if (rc == 0)
		rc = bead_judge_fit(&r->input, &r->fit, &err);
	if (rc < 0)
		snprintf(r->refused, sizeof(r->refused), "%s", err.msg);
	else
		make_profile(exam, r);
}

int profile_fit_run(const struct exam *exam, const struct profile_phantom *phantom, const bool fixed[SYSTEM_PARAMETERS],
		    const struct monitor *monitor, struct profile_result *ret_result, struct err *err)
{
	struct profile_result r = {.rms_before = INFINITY};
	int rc = begin_fit(exam, fixed, &r, err);

	if (rc == 0)
		rc = find_points(exam, phantom, monitor, &r, err);
	if (rc == 0)
		r.rms_before = rms_of_profile(&r);
	if (rc == 0 && phantom->knowledge != BEADS_UNKNOWN)
		rc = bead_conventions_test(&r.input, &r.conventions, err);
	if (rc == 0 && r.conventions.n) {
		choose_definition(&r.conventions);
		bead_conventions_apply(&r.input, &r.conventions.trials[r.conventions.best], &r.input);
	}
	if (rc == 0)
		rc = fit_points(&r, err);
	rc = err_remap(rc, ENODATA, EBADMSG, err);
	if (rc < 0) {
		profile_result_clear(&r);
		return rc;
	}
	r.trend = bead_judge_views(&r.input, &r.fit, r.views);
	judge_result(exam, &r);
	*ret_result = r;
	return 0;
}

void profile_result_clear(struct profile_result *r)
{
	bead_fit_clear(&r->fit);
	free(r->angle);
	free(r->at);
	free(r->points);
	free(r->number);
	free(r->views);
	*r = (struct profile_result){0};
}

static void note_reason(struct profile_constancy *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Write a reason unless there is one. */
static void note_reason(struct profile_constancy *c, const char *fmt, ...)
{
	va_list args;

	if (c->reason[0])
		return;
	va_start(args, fmt);
	vsnprintf(c->reason, sizeof(c->reason), fmt, args);
	va_end(args);
}

void profile_check(const struct profile_result *r, const struct profile_conf *profile, double limit,
		   struct profile_constancy *ret)
{
	double was[SYSTEM_PARAMETERS];

	*ret = (struct profile_constancy){0};
	parameters_of(profile, was);
	if (r->refused[0])
		note_reason(ret, "%s", r->refused);
	if (r->conventions.best != 0)
		note_reason(ret, "the exam follows other conventions of the angle than the profile");
	for (int i = 0; i < SYSTEM_PARAMETERS; i++) {
		struct profile_change c = {.compared = r->input.fitted[i], .change = r->fit.value[i] - was[i]};

		c.allowed = allowed_change[i] + 3 * r->fit.sd[i];
		c.passed = !c.compared || fabs(c.change) <= c.allowed;
		if (!c.passed)
			note_reason(ret, "%s has changed by %.3g %s (allowed: %.2g)", system_parameter_names[i], c.change,
				    system_parameter_units[i], c.allowed);
		ret->change[i] = c;
	}
	if (!(r->rms_before <= limit))
		note_reason(ret, "the residuals with the profile's geometry are %.2f bins (allowed: %.2f)", r->rms_before, limit);
}
