/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_scale.c - see recon/scatter/scatter_scale.h. */
#include "recon/scatter/scatter_scale.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct sums {
	double data, model;
};

/* Sums of a plane, or of neighbouring ones. */
struct tail {
	struct sums outside, all; /* bins outside; all bins */
};

static void add(struct sums *sum, double data, double model)
{
	sum->data += data;
	sum->model += model;
}

/* Add the bins of a row. at: index of its first bin. outside: false: none of them is. */
static void add_row(const struct michelogram *m, const struct scatter_data *d, const float *scatter, size_t at, bool outside,
		    struct tail *tail)
{
	int n = m->n_radial, first = n, last = -1;

	for (int t = 0; t < n; t++)
		if ((double)d->attenuation[at + (size_t)t] * SCATTER_TAIL_ACF <= 1) {
			first = t < first ? t : first;
			last = t;
		}
	for (int t = 0; t < n; t++) {
		size_t i = at + (size_t)t;
		double norm = d->norm ? (double)d->norm[i] : 1;

		double net = (double)d->prompts[i] - (d->background ? (double)d->background[i] : 0);

		add(&tail->all, norm > 0 ? net : 0, norm * (double)scatter[i]);
		if (outside && norm > 0 && (t < first - SCATTER_TAIL_MARGIN || t > last + SCATTER_TAIL_MARGIN))
			add(&tail->outside, net, norm * (double)scatter[i]);
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
		add(&sum.outside, tail[p].outside.data, tail[p].outside.model);
		add(&sum.all, tail[p].all.data, tail[p].all.model);
	}
	return sum;
}

/* Return the scale; NaN: there are no bins. */
static double scale_of(struct sums sum)
{
	return sum.model > 0 ? sum.data / sum.model : NAN;
}

/* Whether the lines of a plane of a segment leave the part of the axis where the attenuation is known. */
static bool is_beyond(const struct michelogram *m, const struct scatter_data *d, int segment, int plane)
{
	double z, rise;

	michelogram_place(m, segment, plane, &z, &rise);
	return d->covered && (z - fabs(rise) < d->covered[0] || z + fabs(rise) > d->covered[1]);
}

/* Limit the scale of a plane whose neighbours have these sums. */
static double limited(double found, struct sums all, struct scatter_scale_report *report)
{
	double scale = fmin(fmax(found, SCATTER_SCALE_LEAST), SCATTER_SCALE_MOST),
	       most = all.model > 0 ? scale_of(all) : INFINITY;

	report->at_least += scale > found;
	report->at_most += scale < found;
	report->at_counts += scale > most;
	return fmax(fmin(scale, most), 0);
}

/* Limit the scatter of all planes, and describe the scales. tail: of single planes. */
static void limit_all(const struct tail *tail, float *scale, struct scatter_scale_report *report)
{
	double scatter = 0, net = 0, factor = 1;

	for (int p = 0; p < report->planes; p++) {
		scatter += (double)scale[p] * tail[p].all.model;
		net += tail[p].all.data;
	}
	if (scatter > SCATTER_FRACTION_MOST * fmax(net, 0)) {
		factor = SCATTER_FRACTION_MOST * fmax(net, 0) / scatter;
		report->at_counts = report->planes;
	}
	report->fraction = net > 0 ? factor * scatter / net : 0;
	for (int p = 0; p < report->planes; p++) {
		double s = factor * (double)scale[p];

		scale[p] = (float)s;
		report->doubtful += s > SCATTER_SCALE_DOUBTFUL;
		report->least = fmin(report->least, s);
		report->most = fmax(report->most, s);
		report->mean += s / report->planes;
	}
}

int scatter_scale_fit(const struct michelogram *m, const struct scatter_data *data, const float *scatter, float *ret_scale,
		      struct scatter_scale_report *ret_report, struct err *err)
{
	int n = (int)michelogram_planes(m), at = 0, half = SCATTER_SCALE_PLANES / 2;
	struct scatter_scale_report report = {.planes = n, .least = INFINITY};
	struct tail *tail = calloc((size_t)n, sizeof(*tail));
	double all;

	if (!tail)
		return err_set(err, ENOMEM, "scatter: no memory for the scales of %d planes", n);
	for (int s = 0, p = 0; s < m->n_segments; s++)
		for (int k = 0; k < m->segments[s].n_planes; k++, p++) {
			bool away = is_beyond(m, data, s, k);

			tail[p] = tail_of(m, data, scatter, (size_t)p, !away);
			report.beyond += away;
			report.without += !(tail[p].outside.model > 0);
		}
	all = report.without < n ? scale_of(sum_of(tail, 0, n - 1).outside) : 1;
	for (int s = 0; s < m->n_segments; at += m->segments[s++].n_planes)
		for (int p = at, end = at + m->segments[s].n_planes; p < end; p++) {
			struct tail sum = sum_of(tail, p - half > at ? p - half : at, p + half < end ? p + half : end - 1);
			double found = scale_of(sum.outside);

			ret_scale[p] = (float)limited(isnan(found) ? all : found, sum.all, &report);
		}
	limit_all(tail, ret_scale, &report);
	free(tail);
	*ret_report = report;
	return 0;
}
