/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_scale.c - see recon/scatter/scatter_scale.h. */
#include "recon/scatter/scatter_scale.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct sums {
	double prompts, net, model; /* net: prompts - background */
};

/* Sums of a plane, or of neighbouring ones. */
struct tail {
	struct sums outside, all; /* bins outside; all bins */
};

static void add_sums(struct sums *sum, struct sums more)
{
	sum->prompts += more.prompts;
	sum->net += more.net;
	sum->model += more.model;
}

/* Add the bins of a row. at: index of its first bin. outside: false: none of them is. */
static void add_row(const struct michelogram *m, const struct scatter_data *d, const float *scatter, size_t at, bool outside,
		    struct tail *tail)
{
	const float *body = d->body ? d->body : d->attenuation;
	int n = m->n_radial, first = n, last = -1;

	for (int t = 0; t < n; t++)
		if ((double)body[at + (size_t)t] * SCATTER_TAIL_ACF <= 1) {
			first = t < first ? t : first;
			last = t;
		}
	for (int t = 0; t < n; t++) {
		size_t i = at + (size_t)t;
		double norm = d->norm ? (double)d->norm[i] : 1, prompts = (double)d->prompts[i];
		struct sums bin = {prompts, prompts - (d->background ? (double)d->background[i] : 0), norm * (double)scatter[i]};

		if (!(norm > 0))
			continue;
		add_sums(&tail->all, bin);
		if (outside && (t < first - SCATTER_TAIL_MARGIN || t > last + SCATTER_TAIL_MARGIN))
			add_sums(&tail->outside, bin);
	}
}

static struct tail tail_of(const struct michelogram *m, const struct scatter_data *d, const float *scatter, size_t plane,
			   bool outside)
{
	struct tail t = {0};

	for (int a = 0; a < m->n_angles; a++)
		add_row(m, d, scatter, (plane * (size_t)m->n_angles + (size_t)a) * (size_t)m->n_radial, outside, &t);
	return t;
}

/* Sum the planes from `first` to `last`. */
static struct tail sum_of(const struct tail *tail, int first, int last)
{
	struct tail sum = {0};

	for (int p = first; p <= last; p++) {
		add_sums(&sum.outside, tail[p].outside);
		add_sums(&sum.all, tail[p].all);
	}
	return sum;
}

/* Return the scale; NaN: there are no bins. */
static double scale_of(struct sums sum)
{
	return sum.model > 0 ? sum.net / sum.model : NAN;
}

/* Whether the lines of a plane of a segment leave the part of the axis where the attenuation is known. */
static bool leaves_map(const struct michelogram *m, const struct scatter_data *d, int segment, int plane)
{
	double z, rise;

	michelogram_place(m, segment, plane, &z, &rise);
	return d->covered && (z - fabs(rise) < d->covered[0] || z + fabs(rise) > d->covered[1]);
}

/* Whether prompts that differ from expected ones by `counts` do so by more than `sd` standard deviations of their noise. The
 * variance is that of the larger of both: no prompts at all do not contradict the 9 that were expected. */
static bool is_beyond(double counts, struct sums sum, double sd)
{
	return counts > sd * sqrt(fmax(sum.prompts, 0) + fmax(counts, 0));
}

static bool is_beyond_noise(double counts, struct sums sum)
{
	return is_beyond(counts, sum, SCATTER_SCALE_NOISE);
}

/* Limit the scale of a plane. sum: of its neighbours. plane: its own counts. off: counts that were taken off beyond noise. */
static double limit_scale(const struct tail *sum, struct sums plane, struct scatter_scale_report *report, double *off)
{
	double found = sum->outside.model > 0 ? scale_of(sum->outside) : 1;
	double scale = fmin(fmax(found, SCATTER_SCALE_LEAST), SCATTER_SCALE_MOST);
	double most = sum->all.model > 0 ? scale_of(sum->all) : INFINITY;

	if (scale > most) {
		if (is_beyond_noise((scale - most) * sum->all.model, sum->all)) {
			report->at_counts++;
			*off += (scale - fmax(most, 0)) * plane.model;
		}
		return fmax(most, 0);
	}
	report->at_least += scale > found && is_beyond_noise((1 - found) * sum->outside.model, sum->outside);
	report->at_most += scale < found && is_beyond_noise((found - scale) * sum->outside.model, sum->outside);
	return scale;
}

/* Limit the scatter of all planes, and describe the scales. tail: of single planes. off: what limit_scale() took off. */
static void limit_all(const struct tail *tail, double off, float *scale, struct scatter_scale_report *report)
{
	double scatter = 0, factor = 1;
	struct sums all = {0};

	for (int p = 0; p < report->planes; p++) {
		scatter += (double)scale[p] * tail[p].all.model;
		add_sums(&all, tail[p].all);
	}
	if (off <= SCATTER_LIMITED_LEAST * scatter)
		report->at_counts = 0;
	if (scatter > SCATTER_FRACTION_MOST * fmax(all.net, 0)) {
		double most = SCATTER_FRACTION_MOST * fmax(all.net, 0);

		factor = most / scatter;
		if (is_beyond_noise(scatter - most, all))
			report->at_counts = report->planes;
	}
	report->fraction = all.net > 0 ? factor * scatter / all.net : 0;
	for (int p = 0; p < report->planes; p++) {
		double s = factor * (double)scale[p];

		scale[p] = (float)s;
		report->least = fmin(report->least, s);
		report->most = fmax(report->most, s);
		report->mean += s / report->planes;
	}
}

/* Counts that a scale is above the doubtful one by, in the tails that it was found in. */
static double doubtful_counts(double scale, struct sums tail)
{
	return (scale - SCATTER_SCALE_DOUBTFUL) * tail.model;
}

/* Find scales and a fraction that are doubtful beyond noise. near: the tails that the scale of each plane was found in; all: of
 * all planes. What holds for all tails together is said of all planes above the limit; a single one of many is above it by chance
 * at more standard deviations. */
static void find_doubtful(const struct sums *near, const struct tail *all, const float *scale,
			  struct scatter_scale_report *report)
{
	double mean = all->outside.model > 0 ? fmin(scale_of(all->outside), report->most) : 0, part, noise;
	bool whole = is_beyond_noise(doubtful_counts(mean, all->outside), all->outside);
	double sd = sqrt(SCATTER_SCALE_NOISE * SCATTER_SCALE_NOISE + 2 * log(report->planes));

	for (int p = 0; p < report->planes; p++) {
		double s = (double)scale[p];

		if (!(s > SCATTER_SCALE_DOUBTFUL) || !(whole || is_beyond(doubtful_counts(s, near[p]), near[p], sd)))
			continue;
		report->doubtful++;
		report->doubtful_most = fmax(report->doubtful_most, s);
	}
	part = all->outside.model > 0 ? all->all.model / all->outside.model : 0;
	noise = fmax(part * part * all->outside.prompts, 0) +
		SCATTER_FRACTION_DOUBTFUL * SCATTER_FRACTION_DOUBTFUL * fmax(all->all.prompts, 0);
	report->doubtful_fraction =
		(report->fraction - SCATTER_FRACTION_DOUBTFUL) * all->all.net > SCATTER_SCALE_NOISE * sqrt(noise);
}

int scatter_scale_fit(const struct michelogram *m, const struct scatter_data *data, const float *scatter, int threads,
		      float *ret_scale, struct scatter_scale_report *ret_report, struct err *err)
{
	int n = (int)michelogram_planes(m), at = 0, half = SCATTER_SCALE_PLANES / 2;
	struct scatter_scale_report report = {.planes = n, .least = INFINITY};
	struct tail *tail = calloc((size_t)n, sizeof(*tail)), all;
	struct sums *near = calloc((size_t)n, sizeof(*near));
	double off = 0;

	if (!tail || !near) {
		free(tail);
		free(near);
		return err_set(err, ENOMEM, "scatter: no memory for the scales of %d planes", n);
	}
	for (int s = 0, first = 0; s < m->n_segments; first += m->segments[s++].n_planes) {
		int beyond = 0, without = 0;

#pragma omp parallel for num_threads(threads) reduction(+ : beyond, without)
		for (int k = 0; k < m->segments[s].n_planes; k++) {
			bool away = leaves_map(m, data, s, k);

			tail[first + k] = tail_of(m, data, scatter, (size_t)(first + k), !away);
			beyond += away;
			without += !(tail[first + k].outside.model > 0);
		}
		report.beyond += beyond;
		report.without += without;
	}
	all = sum_of(tail, 0, n - 1);
	for (int s = 0; s < m->n_segments; at += m->segments[s++].n_planes)
		for (int p = at, end = at + m->segments[s].n_planes; p < end; p++) {
			struct tail sum = sum_of(tail, p - half > at ? p - half : at, p + half < end ? p + half : end - 1);

			if (!(sum.outside.model > 0))
				sum.outside = all.outside;
			near[p] = sum.outside;
			ret_scale[p] = (float)limit_scale(&sum, tail[p].all, &report, &off);
		}
	limit_all(tail, off, ret_scale, &report);
	find_doubtful(near, &all, ret_scale, &report);
	free(tail);
	free(near);
	*ret_report = report;
	return 0;
}
