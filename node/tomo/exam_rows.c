/* SPDX-License-Identifier: Apache-2.0 */
/* exam_rows.c - what the rows of the projections show, along which the source moves.
 *
 * - Rows that were lost have one value from end to end, between rows that have many. A collimator's shadow and saturated air have
 *   that, too, but are at the ends of the image, or are as bright as air.
 * - The shadow of an object moves against the source: its centre of mass, of the line integrals, falls from angle to angle. If it
 *   does so after the exchange of two views, their pixels are exchanged; if it rises everywhere, angles and pixels are of
 * opposite signs. An object that continues beyond both ends of the field hardly moves, and tells nothing.
 */
#include <stdio.h>

#include "node/tomo/exam_internal.h"

#define LOST_LEAST 4	  /* rows: fewer are a defect of the detector */
#define HEIGHT_LEAST 10.0 /* mm: of an object whose shadow moves */
#define STEP_LEAST 0.5	  /* of the mean step: smaller ones may go back by noise */
#define VIEWS_LEAST 5
#define VIEWS_MOST 128 /* the exchange of any two of more takes long */
#define COLUMNS_ENOUGH 256

static bool is_padding(const struct prep *p, int value)
{
	return p->has_padding && value >= p->padding_lo && value <= p->padding_hi;
}

static bool has_one_value(const struct prep *p, const uint16_t *row)
{
	for (int u = 1; u < p->n_u; u++)
		if (row[u] != row[0])
			return false;
	return true;
}

/* Find the longest run of such rows that touches neither end of the image. */
static void find_lost(const struct prep *p, const uint16_t *raw, double bright, struct view_air *ret)
{
	int first = 0, from = 0, last = p->n_v;

	ret->lost_first = ret->lost_rows = 0;
	while (from < last && has_one_value(p, raw + (size_t)from * (size_t)p->n_u))
		from++;
	while (last > from && has_one_value(p, raw + (size_t)(last - 1) * (size_t)p->n_u))
		last--;
	for (int v = from; v < last; v++) {
		const uint16_t *row = raw + (size_t)v * (size_t)p->n_u;

		if (!has_one_value(p, row) || is_padding(p, row[0]) || exam_value_intensity(p, row[0]) >= bright) {
			first = v + 1;
		} else if (v + 1 - first > ret->lost_rows) {
			ret->lost_rows = v + 1 - first;
			ret->lost_first = first;
			ret->lost_value = row[0];
		}
	}
	if (ret->lost_rows < LOST_LEAST)
		ret->lost_rows = 0;
}

/* Return the sum of the line integrals along a row. */
static double row_mass(const struct prep *p, const uint16_t *row, int columns, double bright)
{
	int step = columns > COLUMNS_ENOUGH ? columns / COLUMNS_ENOUGH : 1;
	double mass = 0;

	for (int u = 0; u < columns; u += step) {
		double intensity = exam_value_intensity(p, row[u]);

		if (intensity < bright && !is_padding(p, row[u]))
			mass += log(bright / fmax(intensity, 1));
	}
	return mass;
}

void exam_measure_rows(const struct prep *p, const uint16_t *raw, struct view_air *ret)
{
	const struct prep_shadow *shadow = &ret->air.shadow;
	double sum = 0, centre = 0;

	for (int v = shadow->first; v < p->n_v - shadow->last; v += exam_row_step(p)) {
		double mass = row_mass(p, raw + (size_t)v * (size_t)p->n_u, p->n_u - shadow->far, ret->bright);

		sum += mass;
		centre += mass * v;
	}
	ret->centre = sum > 0 ? centre / sum : NAN;
	find_lost(p, raw, ret->bright, ret);
}

static void warn_lost(struct exam *exam, const struct view_air *air)
{
	int n = 0, of = 0, first;
	char name[128];

	for (int i = exam->n_views - 1; i >= 0; i--)
		if (air[i].lost_rows > 0) {
			n++;
			of = i;
		}
	if (n == 0 || n == exam->n_views) /* in all views it is a part of the detector, or a marker */
		return;
	first = exam->rows_toward_minus_y ? exam->scan->n_v - air[of].lost_first - air[of].lost_rows : air[of].lost_first;
	exam_warn(exam,
		  "Rows %d to %d of %s have the value %d from end to end, between rows that have many: %d of %d projections lost "
		  "rows.",
		  first + 1, first + air[of].lost_rows, exam_view_name(exam, &exam->views[of], name, sizeof(name)),
		  air[of].lost_value, n, exam->n_views);
}

/* Is `i` the view a or b of an exchange? Return the other one. */
static int other(int i, int a, int b)
{
	return i == a ? b : i == b ? a : i;
}

/* Return true if the shadow moves against the source (sign 1), or with it (-1), from view to view as that of an object does whose
 * height is above HEIGHT_LEAST; with the pixels of the views a and b exchanged. */
static bool moves(const struct exam *exam, const struct view_air *air, int a, int b, int sign)
{
	const struct exam_view *v = exam->views;
	int n = exam->n_views;
	double pitch = sign * exam->scan->h[1];
	double range = tan(v[n - 1].angle * M_PI / 180) - tan(v[0].angle * M_PI / 180);
	double height = pitch * (air[other(0, a, b)].centre - air[other(n - 1, a, b)].centre) / range;

	if (!(height >= HEIGHT_LEAST))
		return false;
	for (int i = 1; i < n; i++) {
		double angle = tan(v[i].angle * M_PI / 180) - tan(v[i - 1].angle * M_PI / 180);

		if (!(pitch * (air[other(i - 1, a, b)].centre - air[other(i, a, b)].centre) >= STEP_LEAST * height * angle))
			return false;
	}
	return true;
}

static void warn_exchanged(struct exam *exam, const struct view_air *air)
{
	int n = exam->n_views;
	char here[128], there[128];

	for (int a = 0; a < n; a++)
		for (int b = a + 1; b < n; b++)
			if (moves(exam, air, a, b, 1)) {
				exam_warn(exam,
					  "The shadow of the object moves against the source from projection to projection only "
					  "with the pixels of %s, at %g degrees, and %s, at %g degrees, exchanged: are they of "
					  "the right angles?",
					  exam_view_name(exam, &exam->views[a], here, sizeof(here)), exam->views[a].angle,
					  exam_view_name(exam, &exam->views[b], there, sizeof(there)), exam->views[b].angle);
				return;
			}
}

void exam_warn_rows(struct exam *exam, const struct view_air *air)
{
	int n = exam->n_views;

	warn_lost(exam, air);
	if (n < VIEWS_LEAST || n > VIEWS_MOST || moves(exam, air, 0, 0, 1))
		return;
	if (moves(exam, air, 0, 0, -1))
		exam_warn(exam,
			  "The shadow of the object moves with the source, by %.1f mm from %g to %g degrees, and must move "
			  "against it: are the angles of the wrong sign (angle_sign of the profile '%s'), or the rows turned?",
			  (air[n - 1].centre - air[0].centre) * exam->scan->h[1], exam->views[0].angle, exam->views[n - 1].angle,
			  exam->profile->name);
	else
		warn_exchanged(exam, air);
}
