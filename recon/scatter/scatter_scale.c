/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_scale.c - see recon/scatter/scatter_scale.h. */
#include "recon/scatter/scatter_scale.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct fit {
	double scale;
	bool there;
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

static struct fit fit_plane(const struct michelogram *m, const struct scatter_data *d, const float *scatter, size_t plane,
			    int *at_limit)
{
	double data = 0, model = 0, scale;

	for (int a = 0; a < m->n_angles; a++)
		add_row(m, d, scatter, (plane * (size_t)m->n_angles + (size_t)a) * (size_t)m->n_radial, &data, &model);
	if (!(model > 0))
		return (struct fit){0, false};
	scale = fmin(fmax(data / model, SCATTER_SCALE_LEAST), SCATTER_SCALE_MOST);
	*at_limit += scale != data / model;
	return (struct fit){scale, true};
}

/* Return the mean of the fits from `first` to `last`; 0: there are none. */
static double mean_of(const struct fit *fit, int first, int last)
{
	double sum = 0;
	int n = 0;

	for (int p = first; p <= last; p++)
		if (fit[p].there) {
			sum += fit[p].scale;
			n++;
		}
	return n > 0 ? sum / n : 0;
}

int scatter_scale_fit(const struct michelogram *m, const struct scatter_data *data, const float *scatter, float *ret_scale,
		      struct scatter_scale_report *ret_report, struct err *err)
{
	int n = (int)michelogram_planes(m), at = 0, half = SCATTER_SCALE_PLANES / 2;
	struct scatter_scale_report report = {.planes = n, .least = INFINITY};
	struct fit *fit = malloc((size_t)n * sizeof(*fit));
	double all;

	if (!fit)
		return err_set(err, ENOMEM, "scatter: no memory for the scales of %d planes", n);
	for (int p = 0; p < n; p++) {
		fit[p] = fit_plane(m, data, scatter, (size_t)p, &report.at_limit);
		report.without += !fit[p].there;
	}
	all = report.without < n ? mean_of(fit, 0, n - 1) : 1;
	for (int s = 0; s < m->n_segments; at += m->segments[s++].n_planes)
		for (int p = at, end = at + m->segments[s].n_planes; p < end; p++) {
			double mean = mean_of(fit, p - half > at ? p - half : at, p + half < end ? p + half : end - 1);

			mean = mean > 0 ? mean : all;
			ret_scale[p] = (float)mean;
			report.least = fmin(report.least, mean);
			report.most = fmax(report.most, mean);
			report.mean += mean / n;
		}
	free(fit);
	*ret_report = report;
	return 0;
}
