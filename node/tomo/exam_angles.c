/* SPDX-License-Identifier: Apache-2.0 */
/* exam_angles.c - check the angles of a sweep: two projections at one angle are refused. What no known system has, but what the
 * headers cannot prove to be wrong, is a sentence of the result: a range that is too small or on one side of the vertical, angles
 * that are almost the same, and an order that is not that of the acquisition. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/order.h"
#include "node/tomo/exam_internal.h"

#define ANGLE_SAME 0.01	  /* projections with a smaller difference, in degrees, count as the same, as in scan_create_dbt() */
#define VIEWS_USUAL 5	  /* fewer projections may be any part of a sweep */
#define ARC_LEAST 8.0	  /* degrees: the smallest range of a known system is 11 */
#define ARC_MOST 90.0	  /* nor has any a larger one */
#define ARC_TOLERANCE 0.2 /* of the profile's range: Siemens' 50 degrees are 45 in headers */
#define ALMOST_SAME 0.1	  /* of the median step */
#define AGAINST_NUMBERS 4 /* numbers may be of any order: a quarter of the steps tells that they are no sweep's */

static int check_same(const struct exam *exam, struct err *err)
{
	const struct exam_view *v = exam->views;
	char a[128], b[128];
	int n = exam->n_views;

	if (v[n - 1].angle - v[0].angle < ANGLE_SAME) {
		if (exam->frames_in_file)
			return err_set(err, EBADMSG, "all %d projections have the same angle, %g degrees", n, v[0].angle);
		return err_set(err, EBADMSG,
			       "the angle %s is the same in all %d projections (%g degrees): angle_tag of the profile '%s' is "
			       "the wrong attribute",
			       tag_text(exam->profile->angle_tag), n, v[0].angle, exam->profile->name);
	}
	for (int i = 1; i < n; i++)
		if (v[i].angle - v[i - 1].angle < ANGLE_SAME)
			return err_set(err, EBADMSG, "two projections at the same angle, %g degrees: %s and %s", v[i].angle,
				       exam_view_name(exam, &v[i - 1], a, sizeof(a)), exam_view_name(exam, &v[i], b, sizeof(b)));
	return 0;
}

static bool is_between(double x, double least, double most)
{
	return x >= least && x <= most;
}

/* Return what makes a range one of least to most degrees. */
static const char *guess_mistake(double span, double least, double most)
{
	return is_between(span * 180 / M_PI, least, most) ? "are they in radians?"
	       : is_between(span * 10, least, most)	  ? "are they ten times too small?"
	       : is_between(span / 10, least, most)	  ? "are they ten times too large?"
	       : is_between(span, least, most)		  ? "are they those of the gantry?"
							  : "is it another mode?";
}

/* Compare the range with that of the profile, or else with those of all systems. */
static void warn_range(struct exam *exam)
{
	const struct exam_view *v = exam->views;
	const struct profile_conf *p = exam->profile;
	double first = v[0].angle, last = v[exam->n_views - 1].angle, span = last - first, middle = (first + last) / 2;

	if (exam->n_views < VIEWS_USUAL || exam->announced > exam->n_views) /* a part of a sweep may be anywhere */
		return;
	if (p->arc > 0 && (fabs(span / p->arc - 1) > ARC_TOLERANCE || fabs(middle) > ARC_TOLERANCE * p->arc))
		exam_warn(exam,
			  "The angles of the source are from %.3g to %.3g degrees; complete exams of this system have a range of "
			  "%g (arc of the profile '%s'): %s",
			  first, last, p->arc, p->name,
			  guess_mistake(span, p->arc * (1 - ARC_TOLERANCE), p->arc * (1 + ARC_TOLERANCE)));
	else if (!(p->arc > 0) && span < ARC_LEAST)
		exam_warn(exam, "The angles of the source span %.2g degrees, less than any tomosynthesis has: %s", span,
			  guess_mistake(span, ARC_LEAST, ARC_MOST));
	else if (!(p->arc > 0) && fabs(middle) > span / 2)
		exam_warn(exam,
			  "The angles of the source are from %.3g to %.3g degrees, all on one side of the vertical: are they "
			  "those of the gantry?",
			  first, last);
}

/* steps: room for the steps between all projections. */
static void warn_almost_same(struct exam *exam, double *steps)
{
	const struct exam_view *v = exam->views;
	char a[128], b[128];
	int n = exam->n_views - 1, least = 0;
	double median;

	for (int i = 0; i < n; i++) {
		steps[i] = v[i + 1].angle - v[i].angle;
		least = steps[i] < v[least + 1].angle - v[least].angle ? i : least;
	}
	qsort(steps, (size_t)n, sizeof(*steps), order_doubles);
	median = steps[n / 2];
	if (exam->n_views >= VIEWS_USUAL && steps[0] < ALMOST_SAME * median)
		exam_warn(exam, "%s and %s are %.2g degrees apart, the others mostly %.2g: was one angle used twice?",
			  exam_view_name(exam, &v[least], a, sizeof(a)), exam_view_name(exam, &v[least + 1], b, sizeof(b)),
			  steps[0], median);
}

/* Return in how many of the steps from angle to angle a value goes against the direction of most. */
static int count_against(const double *values, int n, int *ret_steps)
{
	int up = 0, down = 0;

	for (int i = 1; i < n; i++) {
		up += values[i] > values[i - 1];
		down += values[i] < values[i - 1];
	}
	*ret_steps = up + down;
	return up < down ? up : down;
}

/* Write the number of each projection: of its frame, or of its instance. False: one has none. */
static bool read_numbers(const struct exam *exam, double *ret_numbers)
{
	for (int i = 0; i < exam->n_views; i++) {
		struct header h = exam_header(exam, i);
		long number = exam->views[i].frame;

		if (!exam->frames_in_file && header_long(&h, TAG_INSTANCE_NUMBER, 0, &number, NULL) != 1)
			return false;
		ret_numbers[i] = (double)number;
	}
	return true;
}

/* A sweep goes in one direction. */
static int warn_order(struct exam *exam, double *values, struct err *err)
{
	struct exposure_facts *facts = calloc((size_t)exam->n_views, sizeof(*facts));
	const char *name;
	uint32_t tag;
	char by[80];
	int against = 0, steps = 0, least = 1;

	if (!facts)
		return err_set(err, ENOMEM, "no memory for the moments of %d projections", exam->n_views);
	for (int i = 0; i < exam->n_views; i++) {
		struct header h = exam_header(exam, i);

		exposure_read(&h, &facts[i]);
	}
	if (exposures_moments(facts, (size_t)exam->n_views, values, &name, &tag)) {
		against = count_against(values, exam->n_views, &steps);
		snprintf(by, sizeof(by), "%s %s", name, tag_text(tag));
	} else if (read_numbers(exam, values)) {
		against = count_against(values, exam->n_views, &steps);
		least = (steps + AGAINST_NUMBERS - 1) / AGAINST_NUMBERS;
		snprintf(by, sizeof(by), "%s%s", exam->frames_in_file ? "the order of the frames" : "Instance Number ",
			 exam->frames_in_file ? "" : tag_text(TAG_INSTANCE_NUMBER));
	}
	free(facts);
	if (exam->n_views >= VIEWS_USUAL && against >= least)
		exam_warn(exam,
			  "The angles do not follow the order of acquisition: by %s, %d of %d steps from one to the next go "
			  "against the others; are they of the right projections?",
			  by, against, steps);
	return 0;
}

int exam_check_angles(struct exam *exam, struct err *err)
{
	double *values;
	int rc = check_same(exam, err);

	if (rc < 0)
		return rc;
	values = calloc((size_t)exam->n_views, sizeof(*values));
	if (!values)
		return err_set(err, ENOMEM, "no memory for %d angles", exam->n_views);
	warn_range(exam);
	warn_almost_same(exam, values);
	rc = warn_order(exam, values, err);
	free(values);
	return rc;
}
