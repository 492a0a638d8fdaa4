/* SPDX-License-Identifier: Apache-2.0 */
/* exam_rows.c - what the rows and columns of the projections show; the source moves along the rows' axis.
 *
 * - Lines (rows or columns) that were lost have one value, from end to end or over one half, or repeat the line before them,
 *   between lines that have noise. A collimator's shadow has one value, too, but is at the ends of the image, or becomes wider from
 *   line to line; so has saturated air, also between two objects, but nothing is brighter.
 * - The shadow of an object moves against the source: its centre of mass, of the line integrals, falls from angle to angle. If it
 *   does so after the exchange of two views or of two pairs, or if each view has the pixels of another one, equally far away,
 *   pixels and angles do not belong together; if it rises everywhere, they are of opposite signs. An object that continues beyond
 *   both ends of the field hardly moves, and tells nothing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "node/base/plural.h"
#include "node/tomo/exam_internal.h"

#define LOST_LEAST 4	  /* lines: fewer are a defect of the detector */
#define NOISY_MOST 0.125  /* of a line, at its middle: pixels of one value beside lost lines */
#define HEIGHT_LEAST 10.0 /* mm: of an object whose shadow moves */
#define STEP_LEAST 0.5	  /* of the mean step: smaller ones may go back by noise */
#define VIEWS_LEAST 5
#define VIEWS_PAIRS 7 /* of fewer, the exchange of any two pairs may make an order by chance */
#define COLUMNS_ENOUGH 256

static bool is_padding(const struct prep *p, int value)
{
	return p->has_padding && value >= p->padding_lo && value <= p->padding_hi;
}

/* The rows or the columns of an image. */
struct lines {
	const uint16_t *raw;
	size_t across, along; /* from line to line, and from pixel to pixel of a line */
	int n, length;
};

static uint16_t line_pixel(const struct lines *l, int line, int k)
{
	return l->raw[(size_t)line * l->across + (size_t)k * l->along];
}

/* Return how many pixels around pixel k of a line have its value. */
static int count_around(const struct lines *l, int line, int k)
{
	int first = k, last = k;
	uint16_t value = line_pixel(l, line, k);

	while (first > 0 && line_pixel(l, line, first - 1) == value)
		first--;
	while (last < l->length - 1 && line_pixel(l, line, last + 1) == value)
		last++;
	return last - first + 1;
}

/* Return the longest stretch of one value at the middle of a line, which any half touches; *ret_value: the value. */
static int find_stretch(const struct lines *l, int line, uint16_t *ret_value)
{
	int middle = l->length / 2, longest = 0;

	for (int k = middle > 0 ? middle - 1 : 0; k <= middle + 1 && k < l->length; k++) {
		int n = count_around(l, line, k);

		if (n > longest) {
			longest = n;
			*ret_value = line_pixel(l, line, k);
		}
	}
	return longest;
}

static bool is_half(const struct lines *l, int n)
{
	return n >= l->length / 2;
}

static bool line_repeats(const struct lines *l, int line)
{
	for (int k = 0; k < l->length; k++)
		if (line == 0 || line_pixel(l, line, k) != line_pixel(l, line - 1, k))
			return false;
	return true;
}

static bool is_noisy(const struct lines *l, int line)
{
	uint16_t value;

	return find_stretch(l, line, &value) <= fmax(1, NOISY_MOST * l->length);
}

static enum exam_loss loss_of(const struct prep *p, const struct lines *l, int line, double bright, uint16_t *ret_value)
{
	int n = find_stretch(l, line, ret_value);

	if (!is_half(l, n))
		return line_repeats(l, line) ? EXAM_REPEATED : EXAM_NOT_LOST;
	if (is_padding(p, *ret_value) || exam_value_intensity(p, *ret_value) >= bright) /* saturated air */
		return EXAM_NOT_LOST;
	return n == l->length ? EXAM_ONE_VALUE : EXAM_HALF;
}

/* Find the longest run of lost lines; ones of one value touch neither end of the image. */
static struct exam_lost find_lost(const struct prep *p, const struct lines *l, double bright)
{
	struct exam_lost ret = {0};
	int from = 0, last = l->n, repeated = 0;
	uint16_t value, next;

	while (from < last && is_half(l, find_stretch(l, from, &value)))
		from++;
	while (last > from && is_half(l, find_stretch(l, last - 1, &value)))
		last--;
	for (int first = from, end; first < last; first = end) {
		enum exam_loss loss = loss_of(p, l, first, bright, &value);

		for (end = first + 1; end < last && loss_of(p, l, end, bright, &next) == loss;)
			end++;
		repeated += loss == EXAM_REPEATED ? end - first : 0;
		if (loss != EXAM_NOT_LOST && end - first > ret.n &&
		    (loss == EXAM_REPEATED || (first > 0 && end < l->n && is_noisy(l, first - 1) && is_noisy(l, end))))
			ret = (struct exam_lost){loss, first, end - first, value};
	}
	if (ret.n < LOST_LEAST || (ret.loss == EXAM_REPEATED && repeated > ret.n)) /* repeated here and there: no noise */
		return (struct exam_lost){0};
	return ret;
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
	const size_t n_u = (size_t)p->n_u;
	double sum = 0, centre = 0;

	for (int v = shadow->first; v < p->n_v - shadow->last; v += exam_row_step(p)) {
		double mass = row_mass(p, raw + (size_t)v * (size_t)p->n_u, p->n_u - shadow->far, ret->bright);

		sum += mass;
		centre += mass * v;
	}
	ret->centre = sum > 0 ? centre / sum : NAN;
	ret->lost[EXAM_ROWS] = find_lost(p, &(struct lines){raw, n_u, 1, p->n_v, p->n_u}, ret->bright);
	ret->lost[EXAM_COLUMNS] = find_lost(p, &(struct lines){raw, 1, n_u, p->n_u, p->n_v}, ret->bright);
}

static void warn_lost(struct exam *exam, const struct view_air *air, int axis)
{
	bool backward = axis == EXAM_ROWS ? exam->rows_toward_minus_y : exam->columns_toward_chest;
	int n = 0, of = 0, first, lines = axis == EXAM_ROWS ? exam->scan->n_v : exam->scan->n_u;
	const char *name = axis == EXAM_ROWS ? "row" : "column";
	const struct exam_lost *lost;
	char view[128], what[100];

	for (int i = exam->n_views - 1; i >= 0; i--)
		if (air[i].lost[axis].n > 0) {
			n++;
			of = i;
		}
	if (n == 0 || n == exam->n_views) /* in all views it is a part of the detector, or a marker */
		return;
	lost = &air[of].lost[axis];
	first = backward ? lines - lost->first - lost->n : lost->first;
	if (lost->loss == EXAM_REPEATED)
		snprintf(what, sizeof(what), "all have the values of the %s %s them", name, backward ? "after" : "before");
	else
		snprintf(what, sizeof(what), "have the value %d %s, between %ss that have many", lost->value,
			 lost->loss == EXAM_HALF ? "in one half or more" : "from end to end", name);
	exam_warn(exam, "%c%ss %d to %d of %s %s: %d of %d projections lost %ss.", name[0] - 'a' + 'A', name + 1, first + 1,
		  first + lost->n, exam_view_name(exam, &exam->views[of], view, sizeof(view)), what, n, exam->n_views, name);
}

/* Return true if the shadow moves against the source (sign 1), or with it (-1), from view to view as that of an object does whose
 * height is above HEIGHT_LEAST. from: the view whose pixels each view is to have; NULL: its own. */
static bool shadow_moves(const struct exam *exam, const struct view_air *air, const int *from, int sign)
{
	const struct exam_view *v = exam->views;
	int n = exam->n_views;
	double pitch = sign * exam->scan->h[1];
	double range = tan(v[n - 1].angle * M_PI / 180) - tan(v[0].angle * M_PI / 180);
	double height = pitch * (air[from ? from[0] : 0].centre - air[from ? from[n - 1] : n - 1].centre) / range;

	if (!(height >= HEIGHT_LEAST))
		return false;
	for (int i = 1; i < n; i++) {
		double angle = tan(v[i].angle * M_PI / 180) - tan(v[i - 1].angle * M_PI / 180);

		if (!(pitch * (air[from ? from[i - 1] : i - 1].centre - air[from ? from[i] : i].centre) >=
		      STEP_LEAST * height * angle))
			return false;
	}
	return true;
}

/* Write the order of the views in which the shadow moves against the source. */
static void sort_views(const struct exam *exam, const struct view_air *air, int *ret)
{
	for (int i = 0; i < exam->n_views; i++) {
		int k = i;

		for (; k > 0 && air[ret[k - 1]].centre < air[i].centre; k--)
			ret[k] = ret[k - 1];
		ret[k] = i;
	}
}

/* Has each view the pixels of the one `ret` views away, around the end? 0: no. */
static int find_shift(const int *from, int n)
{
	for (int i = 1; i < n; i++)
		if (from[i] != (from[0] + i) % n)
			return 0;
	return from[0] > n / 2 ? from[0] - n : from[0];
}

/* Count the exchanges of two views of which an order is made; -1: it is none. ret: the first view of each of at most two. */
static int find_exchanges(const int *from, int n, int ret[2])
{
	int m = 0;

	for (int i = 0; i < n; i++) {
		if (from[from[i]] != i)
			return -1;
		if (from[i] > i && m++ < 2)
			ret[m - 1] = i;
	}
	return m;
}

static void warn_order(struct exam *exam, const struct view_air *air)
{
	int from[EXAM_VIEWS_MAX], pair[2] = {0}, n = exam->n_views, shift, m;
	char here[128], there[128];

	sort_views(exam, air, from);
	if (!shadow_moves(exam, air, from, 1))
		return;
	shift = find_shift(from, n);
	m = find_exchanges(from, n, pair);
	if (shift != 0 && n >= VIEWS_LEAST) {
		exam_warn(exam,
			  "The shadow of the object moves against the source from projection to projection only if each "
			  "projection has the pixels of the projection %d place%s %s it (in the order of the angles; beyond the "
			  "last one is the first): are images and angles shifted?",
			  abs(shift), plural(abs(shift)), shift > 0 ? "after" : "before");
		return;
	}
	if (m == 1)
		exam_warn(
			exam,
			"The shadow of the object moves against the source from projection to projection only with the pixels of "
			"%s, at %g degrees, and %s, at %g degrees, exchanged: are they of the right angles?",
			exam_view_name(exam, &exam->views[pair[0]], here, sizeof(here)), exam->views[pair[0]].angle,
			exam_view_name(exam, &exam->views[from[pair[0]]], there, sizeof(there)),
			exam->views[from[pair[0]]].angle);
	else if (m == 2 && n >= VIEWS_PAIRS)
		exam_warn(
			exam,
			"The shadow of the object moves against the source from projection to projection only with the pixels at "
			"%g and %g degrees exchanged, and those at %g and %g degrees: are they of the right angles?",
			exam->views[pair[0]].angle, exam->views[from[pair[0]]].angle, exam->views[pair[1]].angle,
			exam->views[from[pair[1]]].angle);
}

void exam_warn_rows(struct exam *exam, const struct view_air *air)
{
	int n = exam->n_views;

	for (int axis = 0; axis < 2; axis++)
		warn_lost(exam, air, axis);
	if (n < VIEWS_LEAST || shadow_moves(exam, air, NULL, 1))
		return;
	if (shadow_moves(exam, air, NULL, -1))
		exam_warn(exam,
			  "The shadow of the object moves with the source, by %.1f mm from %g to %g degrees, and must move "
			  "against it: are the angles of the wrong sign (angle_sign of the profile '%s'), or the rows turned?",
			  (air[n - 1].centre - air[0].centre) * exam->scan->h[1], exam->views[0].angle, exam->views[n - 1].angle,
			  exam->profile->name);
	else
		warn_order(exam, air);
}
