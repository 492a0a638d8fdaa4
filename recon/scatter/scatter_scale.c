/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_scale.c - see recon/scatter/scatter_scale.h. */
#include "recon/scatter/scatter_scale.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Sums over the bins outside. */
struct tail {
	double data, model;
};

/* Add the bins of a row that are outside. at: index of its first bin. */
static void add_row(const struct michelogram *m, const struct scatter_data *d, const float *scatter, size_t at, double *data,
		    double *model)
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

		if (norm > 0 && (t < first - SCATTER_TAIL_MARGIN || t > last + SCATTER_TAIL_MARGIN)) {
			*data += (double)d->prompts[i] - (d->background ? (double)d->background[i] : 0);
			*model += norm * (double)scatter[i];
		}
	}
}

static struct tail tail_of(const struct michelogram *m, const struct scatter_data *d, const float *scatter, size_t plane)
{
	struct tail t = {0};

	for (int a = 0; a < m->n_angles; a++)
		add_row(m, d, scatter, (plane * (size_t)m->n_angles + (size_t)a) * (size_t)m->n_radial, &t.data, &t.model);
	return t;
}

/* Return the scale of the planes from `first` to `last`, not limited; NaN: they have no bins outside. */
static double scale_of(const struct tail *tail, int first, int last)
{
	struct tail sum = {0};

	for (int p = first; p <= last; p++) {
		sum.data += tail[p].data;
		sum.model += tail[p].model;
	}
	return sum.model > 0 ? sum.data / sum.model : NAN;
}

/* Whether the lines of a plane of a segment leave the part of the axis where the attenuation is known. */
static bool is_beyond(const struct michelogram *m, const struct scatter_data *d, int segment, int plane)
{
	double z, rise;

	michelogram_place(m, segment, plane, &z, &rise);
	return d->covered && (z - fabs(rise) < d->covered[0] || z + fabs(rise) > d->covered[1]);
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
			if (is_beyond(m, data, s, k))
				report.beyond++;
			else
				tail[p] = tail_of(m, data, scatter, (size_t)p);
			report.without += !(tail[p].model > 0);
		}
	all = report.without < n ? scale_of(tail, 0, n - 1) : 1;
	for (int s = 0; s < m->n_segments; at += m->segments[s++].n_planes)
		for (int p = at, end = at + m->segments[s].n_planes; p < end; p++) {
			double found = scale_of(tail, p - half > at ? p - half : at, p + half < end ? p + half : end - 1), scale;

			found = isnan(found) ? all : found;
			scale = fmin(fmax(found, SCATTER_SCALE_LEAST), SCATTER_SCALE_MOST);
			report.at_least += scale > found;
			report.at_most += scale < found;
			report.doubtful += scale > SCATTER_SCALE_DOUBTFUL;
			ret_scale[p] = (float)scale;
			report.least = fmin(report.least, scale);
			report.most = fmax(report.most, scale);
			report.mean += scale / n;
		}
	free(tail);
	*ret_report = report;
	return 0;
}
