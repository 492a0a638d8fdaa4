/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_notes.c - sentences of the result about data of parallel beams that are probably not what their header says. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "node/base/plural.h"
#include "node/base/sentence.h"
#include "node/reconstruct/reconstruct_internal.h"

#define ATTENUATION_MOST 30 /* of a line integral: 1e-13 of the photons arrive */
#define TRANSMISSION_MOST 1.1f
#define TRANSMISSION_AIR 0.9 /* mean at both edges of the views */

#define LANES 8 /* sums that do not wait for each other */

static void add_line(const float *line, size_t n, struct parallel_sums *lane)
{
	for (size_t i = 0; i < n; i += LANES) {
		const size_t m = n - i < LANES ? n - i : LANES;

		for (size_t j = 0; j < m; j++) {
			const float value = line[i + j];

			lane[j].least = value < lane[j].least ? value : lane[j].least;
			lane[j].most = value > lane[j].most ? value : lane[j].most;
			lane[j].sum += (double)value;
			lane[j].all += fabs((double)value);
		}
	}
}

void parallel_sum_lines(const struct parallel_scan *s, const float *lines, const struct monitor *monitor,
			struct parallel_sums *ret)
{
	const size_t n_radial = (size_t)s->n_radial, n = n_radial * (size_t)s->n_angles;
	const double views = (double)s->n_slices * s->n_angles;
	struct parallel_sums lane[LANES];

	*ret = (struct parallel_sums){.least = INFINITY, .most = -INFINITY};
	for (int j = 0; j < LANES; j++)
		lane[j] = *ret;
	for (int k = 0; k < s->n_slices; k++) {
		const float *own = lines + (size_t)k * n;

		for (size_t i = 0; i < n; i += n_radial) {
			add_line(own + i, n_radial, lane);
			ret->first += (double)own[i] / views;
			ret->last += (double)own[i + n_radial - 1] / views;
		}
		monitor_progress(monitor, "prepare", 0);
	}
	for (int j = 0; j < LANES; j++) {
		ret->least = fminf(ret->least, lane[j].least + 0.0f); /* no -0 */
		ret->most = fmaxf(ret->most, lane[j].most);
		ret->sum += lane[j].sum;
		ret->all += lane[j].all;
	}
}

/* Say that line integrals of attenuation are probably intensities. */
static void note_lines(const struct interfile *h, const struct parallel_sums *s, char *ret, size_t size)
{
	double least = (double)s->least, most = (double)s->most, edge = fmin(s->first, s->last);

	ret[0] = '\0';
	if (strcmp(h->unit, INTERFILE_ATTENUATION) != 0)
		return;
	if (most > ATTENUATION_MOST)
		snprintf(
			ret, size,
			"Line integrals are up to %.4g, which no photons pass: probably intensities, or of another unit; needed: "
			"-ln(I / I0).",
			most);
	else if (least >= 0 && s->most <= TRANSMISSION_MOST && edge >= TRANSMISSION_AIR && least < TRANSMISSION_AIR * edge)
		snprintf(ret, size,
			 "Line integrals are from %.4g to %.4g and %.3g at the edges of the views, as transmissions I / I0 are; "
			 "needed: -ln(I / I0).",
			 least, most, edge);
}

#define SAME_ANGLE 0.005 /* part of it */

static bool is_same(double a, double b)
{
	return fabs(a - b) <= SAME_ANGLE * b;
}

/* Say that angles in degrees are probably in radians: their range is that of half a turn, or a turn, with its last step or
 * without it. */
static bool note_radians(const struct parallel_scan *s, char *ret, size_t size)
{
	double least = INFINITY, most = -INFINITY, range;

	for (int a = 0; a < s->n_angles; a++) {
		least = fmin(least, parallel_angle(s, a));
		most = fmax(most, parallel_angle(s, a));
	}
	range = most - least;
	if (s->n_angles < 2)
		return false;
	for (int turns = 1; turns <= 2; turns++) {
		if (!is_same(range, turns * M_PI) && !is_same(range * s->n_angles / (s->n_angles - 1), turns * M_PI))
			continue;
		sentence_add(ret, size,
			     "The angles of the header are from %.6g to %.6g degrees, %s in radians: needed: degrees, 57.2958 "
			     "times as many.",
			     least, most, turns == 1 ? "half a turn" : "a turn");
		return true;
	}
	return false;
}

/* ---- the axis of rotation ---- */

#define AXIS_BINS 0.75 /* least error of the axis that is said: it doubles edges */
#define AXIS_SIGMAS 4
#define AXIS_SAME 0.1 /* bins: a nearer axis is that of the header */
#define LEAN_BINS 0.5 /* of the outermost slices */

const char *parallel_axis_word(const struct parallel_axis *a)
{
	static const char *const by[] = {"pairs", "seam", "mass"};
	static const char *const reason[] = {
		[PARALLEL_AXIS_FEW] = "few views or bins",
		[PARALLEL_AXIS_ARC] = "less than half a turn",
		[PARALLEL_AXIS_NOISE] = "no place fits better than others",
		[PARALLEL_AXIS_AMBIGUOUS] = "several places fit about as well",
		[PARALLEL_AXIS_UNCERTAIN] = "noise",
	};

	return a->reason == PARALLEL_AXIS_KNOWN ? by[a->by] : reason[a->reason];
}

int parallel_look_at(const struct interfile *h, const float *lines, const struct monitor *monitor, struct parallel_look *ret,
		     struct err *err)
{
	*ret = (struct parallel_look){
		.given = h->parallel.offset, .flat = ret->flat, .ring_width = ret->ring_width, .rings = ret->rings};
	parallel_sum_lines(&h->parallel, lines, monitor, &ret->sums);
	parallel_consistency_of(&h->parallel, lines, monitor, &ret->views, &ret->faults);
	return parallel_find_axis(&h->parallel, lines, &ret->views, &ret->axis, err);
}

/* Return how far the axis of the data is from that of the header, mm; 0: not known, or not more than `bins` and noise explain. */
static double axis_apart(const struct parallel_scan *s, const struct parallel_look *look, double bins)
{
	double apart = look->axis.offset - look->given;

	return look->axis.reason != PARALLEL_AXIS_KNOWN || fabs(apart) <= fmax(bins * s->bin, AXIS_SIGMAS * look->axis.sigma)
		       ? 0
		       : apart;
}

/* Write "FROM mm of the header, FOUND +- SIGMA mm of the data". */
static void describe_axis(const struct parallel_scan *s, const struct parallel_look *look, char *ret, size_t size)
{
	static const char *const by[] = {"views of opposite sides", "first and last view", "the centres of mass"};

	snprintf(ret, size, "%.6g mm in the header, %.6g +- %.2g mm in the data (by %s), which is %.1f bins away", look->given,
		 look->axis.offset, look->axis.sigma, by[look->axis.by], fabs(look->axis.offset - look->given) / s->bin);
}

int parallel_settle_axis(enum parallel_axis_rule rule, struct parallel_scan *s, struct parallel_look *look, struct err *err)
{
	char text[200];

	s->offset = look->given;
	look->is_found = (s->offset_unknown || rule == PARALLEL_AXIS_FOUND) && axis_apart(s, look, AXIS_SAME) != 0;
	if (look->is_found)
		s->offset = round(look->axis.offset / s->bin * 1000) / 1000 * s->bin;
	if (look->is_found || rule != PARALLEL_AXIS_AGREE || axis_apart(s, look, AXIS_BINS) == 0)
		return 0;
	describe_axis(s, look, text, sizeof(text));
	return err_set(err, EBADMSG, "axis offset: %s; axis = \"agree\" of the protocol asks that they agree", text);
}

/* Say that the axis of rotation is elsewhere than the header says, or that nothing says where it is. */
static void note_axis(const struct parallel_scan *s, const struct parallel_look *look, char *ret, size_t size)
{
	double lean = tan(look->axis.lean * M_PI / 180) * 0.5 * s->n_slices * s->slice / s->bin;
	char text[200];

	if (look->views.axes_differ)
		sentence_add(
			ret, size,
			"The slices have different axes of rotation, so that no axis offset agrees with all: edges are doubled.");
	else if (s->offset_unknown && look->axis.reason != PARALLEL_AXIS_KNOWN)
		sentence_add(
			ret, size,
			"The header has no axis offset, and the data do not show it (%s): the axis of rotation is taken in the "
			"middle of the bins, and edges are doubled if it is elsewhere.",
			parallel_axis_word(&look->axis));
	else if (!look->is_found && axis_apart(s, look, AXIS_BINS) != 0) {
		describe_axis(s, look, text, sizeof(text));
		sentence_add(
			ret, size,
			"The axis of rotation is elsewhere than the header says, which doubles edges: axis offset is %s; axis = "
			"\"found\" in the protocol would use it.",
			text);
	}
	if (look->axis.reason == PARALLEL_AXIS_KNOWN && fabs(lean) > LEAN_BINS)
		sentence_add(
			ret, size,
			"The axis of rotation leans by %.2g degrees: in the first and the last slice it is %.1f bins away from "
			"the place in the middle, which doubles edges there.",
			look->axis.lean, fabs(lean));
}

/* Say that the views do not agree with their angles. */
static void note_angles(const struct parallel_scan *beams, const struct parallel_consistency *c, char *ret, size_t size)
{
	char other[100];

	if (c->factor == 0)
		snprintf(other, sizeof(other), "angles are wrong or exchanged, or the object moved");
	else if (beams->angle || c->factor * beams->arc > 360)
		snprintf(other, sizeof(other), "angles %g times those of the header would agree with them", c->factor);
	else
		snprintf(other, sizeof(other), "arc (degrees) := %g would agree with them", c->factor * beams->arc);
	sentence_add(ret, size,
		     "The views contradict the angles in the header: their centres of mass deviate by %.3g mm from a turn of "
		     "one object, their widths by %.3g mm, and noise or a truncated object explain %.3g and %.3g mm: %s.",
		     c->centre_rest, c->width_rest, c->centre_limit, c->width_limit, other);
}

/* Say that all angles are a few percent too large or too small, which the views contradict less than noise might. */
static void note_stretch(const struct parallel_consistency *c, char *ret, size_t size)
{
	if (c->stretched)
		sentence_add(ret, size,
			     "The angles in the header are probably stretched, which doubles edges: the centres of mass and the "
			     "widths of the views agree with angles %.3g times as large, and less with those of the header.",
			     1 + c->stretch);
}

static void note_mass(const struct parallel_scan *beams, const struct parallel_consistency *c, char *ret, size_t size)
{
	char more[40] = "";

	if (c->n_odd > 1)
		snprintf(more, sizeof(more), ", and %d more view%s", c->n_odd - 1, plural(c->n_odd - 1));
	if (c->n_odd > 0)
		sentence_add(ret, size,
			     "View %d, at %.6g degrees, has %.3g times the sum of the views beside it%s: probably another "
			     "intensity, which makes streaks.",
			     c->odd + 1, parallel_angle(beams, c->odd), c->odd_mass, more);
}

#define ROUGH_LEAST 0.02

/* An intensity of their own in one view, or in many. */
static void note_rough(const struct parallel_consistency *c, char *ret, size_t size)
{
	if (c->air_spread > 0)
		sentence_add(
			ret, size,
			"Line integrals of air at both ends of the views differ from view to view by %.3g (standard deviation): "
			"probably another intensity of each view, which makes streaks.",
			c->air_spread);
	else if (c->rough > ROUGH_LEAST && c->alternate)
		sentence_add(
			ret, size,
			"The sums of the views alternate: every second view has about %.3g times the sum of the views beside "
			"it: probably two intensities, which make streaks.",
			(1 + c->rough) / (1 - c->rough));
	else if (c->rough > ROUGH_LEAST)
		sentence_add(ret, size,
			     "The sums of half of the views differ by %.0f %% or more from those of the views beside them, "
			     "although air is at their ends: probably another intensity of each view, which makes streaks.",
			     100 * c->rough);
}

static void note_air(const struct parallel_consistency *c, char *ret, size_t size)
{
	if (c->air != 0)
		sentence_add(ret, size,
			     "Line integrals are %.3g at both ends of all views, where air has 0: I0 is wrong, or the object "
			     "leaves the field on all sides.",
			     c->air);
}

#define VIEWS_FEW 3

static void note_few(const struct parallel_scan *s, char *ret, size_t size)
{
	if (s->n_angles <= VIEWS_FEW)
		sentence_add(ret, size, "%d view%s of %d bins, and a slice needs about %d: most of it is not measured.",
			     s->n_angles, plural(s->n_angles), s->n_radial, (int)(M_PI / 2 * s->n_radial));
}

/* Say how the first slice with a fault differs from the rest. more: how many others do. */
static void note_fault(const struct parallel_scan *s, enum parallel_fault fault, const char *more,
		       const struct parallel_faults *faults, char *ret, size_t size)
{
	const struct parallel_consistency *c = &faults->of[fault].c;
	const int slice = faults->of[fault].first + 1;
	const double value = faults->of[fault].value;

	if (fault == PARALLEL_ODD_VIEW)
		sentence_add(
			ret, size,
			"Slice %d of %d has other data than the rest%s: its view %d, at %.6g degrees, has %.3g times the sum of "
			"the views beside it.",
			slice, s->n_slices, more, c->odd + 1, parallel_angle(s, c->odd), c->odd_mass);
	else if (fault == PARALLEL_ANGLES)
		sentence_add(
			ret, size,
			"Slice %d of %d contradicts the angles in the header%s, unlike the rest: its centres of mass deviate by "
			"%.3g mm, its widths by %.3g mm, and noise explains %.3g and %.3g mm.",
			slice, s->n_slices, more, c->centre_rest, c->width_rest, c->centre_limit, c->width_limit);
	else if (fault == PARALLEL_AXIS)
		sentence_add(
			ret, size,
			"Slice %d of %d has another axis of rotation than the rest%s: its centres of mass turn about a point "
			"%.3g mm (%.1f bins) from theirs, so its bins are shifted, which doubles edges.",
			slice, s->n_slices, more, value, value / s->bin);
	else
		sentence_add(
			ret, size,
			"Slice %d of %d has other data than the rest%s: its data are those of the slice before it, bin for bin "
			"and with the same noise, so a slice is missing.",
			slice, s->n_slices, more);
}

/* Say which slices have faults, unlike the rest. */
static void note_slices(const struct parallel_scan *s, const struct parallel_faults *faults, char *ret, size_t size)
{
	for (enum parallel_fault fault = PARALLEL_GOOD + 1; fault < PARALLEL_FAULTS; fault++) {
		int n = faults->of[fault].n;
		char more[40] = "";

		if (n > 1)
			snprintf(more, sizeof(more), ", as do %d more slice%s", n - 1, plural(n - 1));
		if (n > 0)
			note_fault(s, fault, more, faults, ret, size);
	}
}

#define NEGATIVE_PART 0.5 /* of all: noise of air around 0 has less */

/* Say that the data are no lines through an object. */
static void note_sum(const struct parallel_sums *s, char *ret, size_t size)
{
	if (s->all == 0)
		sentence_add(ret, size, "All line integrals are 0.");
	else if (s->sum < -NEGATIVE_PART * s->all)
		sentence_add(ret, size, "The sum of the line integrals is negative: probably of the other sign.");
}

#define PLACES 3

/* Write the first places of bins that are no measurement, or of single values. */
static void describe_gaps(const struct parallel_gaps *gaps, bool single, char *ret, size_t size)
{
	int n = 0;

	ret[0] = '\0';
	for (size_t i = 0; gaps && i < gaps->n && n < PLACES; i++) {
		const struct parallel_gap *g = &gaps->gap[i];
		size_t used = strlen(ret);

		if ((g->view >= 0) != single)
			continue;
		snprintf(ret + used, size - used, "%sbin %d of slice %d", n++ ? ", " : "", g->bin + 1, g->slice + 1);
		used = strlen(ret);
		if (single)
			snprintf(ret + used, size - used, " in view %d", g->view + 1);
	}
}

/* Say which bins and values are no measurement. */
static void note_gaps(const struct parallel_flat_report *f, const struct parallel_gaps *gaps, char *ret, size_t size)
{
	const size_t bins = f->dead + f->hot + f->noisy;
	char places[200];

	describe_gaps(gaps, false, places, sizeof(places));
	if (bins > 0)
		sentence_add(
			ret, size,
			"%zu of %zu detector bins are no measurement (%zu dead: no flat field like their neighbours'; %zu hot "
			"or stuck; %zu flicker; the first: %s).",
			bins, f->bins, f->dead, f->hot, f->noisy, places);
	describe_gaps(gaps, true, places, sizeof(places));
	if (f->hits > 0)
		sentence_add(ret, size, "%zu of %zu values are hits, bright in one view alone (the first: %s).", f->hits,
			     f->values, places);
	if (bins + f->hits > 0)
		sentence_add(ret, size,
			     "Iterative algorithms leave them out; others, the axis and rings use values interpolated between "
			     "their neighbours.");
}

/* Say what the flat fields did not correct. */
static void note_flat(const struct parallel_flat_report *f, const struct parallel_gaps *gaps, char *ret, size_t size)
{
	if (f->n_flat > 0 && f->n_dark == 0)
		sentence_add(ret, size, "There is no dark field: the detector's offset is taken as 0.");
	note_gaps(f, gaps, ret, size);
	if (f->dark > 0)
		sentence_add(ret, size,
			     "%zu of %zu line integrals have no signal, less than 1e-4 of the flat field: set to 9.21.", f->dark,
			     f->values);
}

static void note_rings(const struct parallel_look *look, char *ret, size_t size)
{
	if (look->ring_width == 0)
		return;
	sentence_add(ret, size,
		     "Rings up to %d bin%s were removed: offsets of detector bins of %.3g (line integrals, root mean square), of "
		     "which %.3g are still found.",
		     look->ring_width, plural((size_t)look->ring_width), look->rings.before, look->rings.after);
	if (look->rings.n_round > 0)
		sentence_add(
			ret, size,
			"Edges of an object that is round about the axis were left in %d slice%s, and with them rings there.",
			look->rings.n_round, plural((size_t)look->rings.n_round));
	else
		sentence_add(
			ret, size,
			"A faint edge of the object that is round about the axis counts as a ring: compare with the image of "
			"ring_width=0.");
}

void parallel_note(const struct interfile *h, const struct parallel_look *look, char *ret, size_t size)
{
	const struct parallel_scan *beams = &h->parallel;
	const struct parallel_consistency *c = &look->views;
	bool doubtful;

	note_lines(h, &look->sums, ret, size);
	note_sum(&look->sums, ret, size);
	doubtful = ret[0] != '\0';
	note_flat(&look->flat, beams->gaps, ret, size);
	note_rings(look, ret, size);
	note_few(beams, ret, size);
	if (doubtful) /* views of no line integrals contradict everything */
		return;
	note_slices(beams, &look->faults, ret, size);
	note_mass(beams, c, ret, size);
	note_rough(c, ret, size);
	note_air(c, ret, size);
	if (note_radians(beams, ret, size))
		return;
	if (c->known && !c->agree)
		note_angles(beams, c, ret, size);
	else {
		note_stretch(c, ret, size);
		note_axis(beams, look, ret, size);
	}
}
