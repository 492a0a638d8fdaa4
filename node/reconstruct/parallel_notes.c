/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_notes.c - sentences of the result about data of parallel beams that are probably not what their header says. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "node/base/plural.h"
#include "node/base/sentence.h"
#include "node/reconstruct/reconstruct_internal.h"

#define ATTENUATION_MOST 30 /* of a line integral: 1e-13 of the photons arrive */
#define TRANSMISSION_MOST 1.1f
#define TRANSMISSION_AIR 0.9 /* mean at both edges of the views */

/* Say that line integrals of attenuation are probably intensities. */
static void note_lines(const struct interfile *h, const float *lines, char *ret, size_t size)
{
	size_t n = parallel_size(&h->parallel), n_radial = (size_t)h->parallel.n_radial, views = n / n_radial;
	float least = INFINITY, most = -INFINITY;
	double first = 0, last = 0;

	ret[0] = '\0';
	if (strcmp(h->unit, INTERFILE_ATTENUATION) != 0)
		return;
	for (size_t i = 0; i < n; i++) {
		least = fminf(least, lines[i] + 0.0f); /* no -0 */
		most = fmaxf(most, lines[i]);
	}
	for (size_t v = 0; v < views; v++) {
		first += (double)lines[v * n_radial] / (double)views;
		last += (double)lines[v * n_radial + n_radial - 1] / (double)views;
	}
	if (most > ATTENUATION_MOST)
		snprintf(
			ret, size,
			"Line integrals are up to %.4g, which no photons pass: probably intensities, or of another unit; needed: "
			"-ln(I / I0).",
			(double)most);
	else if (least >= 0 && most <= TRANSMISSION_MOST && fmin(first, last) >= TRANSMISSION_AIR &&
		 (double)least < TRANSMISSION_AIR * fmin(first, last))
		snprintf(ret, size,
			 "Line integrals are from %.4g to %.4g and %.3g at the edges of the views, as transmissions I / I0 are; "
			 "needed: -ln(I / I0).",
			 (double)least, (double)most, fmin(first, last));
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

#define AXIS_BINS 1.0 /* smallest error of the axis that is said: it doubles edges */
#define AXIS_SIGMAS 5

/* Say that the axis of rotation is elsewhere than the header says. */
static void note_axis(const struct parallel_scan *beams, const struct parallel_consistency *c, char *ret, size_t size)
{
	char advice[100];

	if (fabs(c->axis_error) <= fmax(AXIS_BINS * beams->bin, AXIS_SIGMAS * c->axis_sigma))
		return;
	if (c->axes_differ)
		snprintf(advice, sizeof(advice), "the slices differ, so that no axis offset would agree with all");
	else
		snprintf(advice, sizeof(advice), "axis offset (mm) := %.6g would agree with them", beams->offset - c->axis_error);
	sentence_add(ret, size,
		     "The centres of mass of the views turn about a point %.3g mm (%.1f bins) from the axis of rotation in the "
		     "header, so that edges are doubled; %s.",
		     c->axis_error, c->axis_error / beams->bin, advice);
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
static bool note_sum(const struct interfile *h, const float *lines, char *ret, size_t size)
{
	size_t n = parallel_size(&h->parallel);
	double sum = 0, all = 0;

	for (size_t i = 0; i < n; i++) {
		sum += (double)lines[i];
		all += fabs((double)lines[i]);
	}
	if (all == 0)
		sentence_add(ret, size, "All line integrals are 0.");
	else if (sum < -NEGATIVE_PART * all)
		sentence_add(ret, size, "The sum of the line integrals is negative: probably of the other sign.");
	return ret[0] != '\0';
}

void parallel_note(const struct interfile *h, const float *lines, char *ret, size_t size)
{
	const struct parallel_scan *beams = &h->parallel;
	struct parallel_consistency c;
	struct parallel_faults faults;

	note_lines(h, lines, ret, size);
	if (ret[0] || note_sum(h, lines, ret, size))
		return;
	parallel_consistency_of(beams, lines, &c, &faults);
	note_few(beams, ret, size);
	note_slices(beams, &faults, ret, size);
	note_mass(beams, &c, ret, size);
	note_rough(&c, ret, size);
	note_air(&c, ret, size);
	if (note_radians(beams, ret, size) || !c.known)
		return;
	if (c.agree)
		note_axis(beams, &c, ret, size);
	else
		note_angles(beams, &c, ret, size);
}
