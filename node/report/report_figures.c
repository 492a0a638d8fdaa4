/* SPDX-License-Identifier: Apache-2.0 */
/* report_figures.c - charts: histogram, profiles through the largest contrast, figures of each slice and of each image. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/report/chart.h"
#include "node/report/report_internal.h"

static void value_label(const struct report *r, const char *what, char *ret, size_t size)
{
	snprintf(ret, size, r->unit[0] ? "%s, %s" : "%s", what, r->unit);
}

static void put_histogram(const struct report *r, struct html *h)
{
	double x[2 * SURVEY_BINS], y[2 * SURVEY_BINS], width = (r->survey.hi - r->survey.lo) / SURVEY_BINS;
	struct chart c = {.title = "Histogram of all voxels (the lines are the limits of the window)",
			  .y_label = "voxels",
			  .lines = {{NULL, 2 * SURVEY_BINS, x, y}},
			  .n_lines = 1,
			  .marks = {r->window.lo, r->window.hi},
			  .logarithmic = true};
	char label[80];

	for (int b = 0; b < SURVEY_BINS; b++) {
		x[2 * b] = r->survey.lo + b * width;
		x[2 * b + 1] = x[2 * b] + width;
		y[2 * b] = y[2 * b + 1] = (double)r->survey.count[b];
	}
	value_label(r, "value", label, sizeof(label));
	c.x_label = label;
	chart_put(h, &c);
}

/* Fill positions, in mm from the point of the largest contrast, and values of the lines through it along the three axes. */
static int read_profiles(const struct report *r, double *const x[3], double *const y[3], struct err *err)
{
	const struct image_series *s = r->s;
	const int *at = r->survey.at;

	for (int a = 0; a < 3; a++)
		for (int i = 0; i < s->n[a]; i++) {
			x[a][i] = (i - at[a]) * s->spacing[a];
			y[a][i] = NAN;
		}
	for (int k = 0; k < s->n[2]; k++) {
		const float *values;
		int rc = image_series_slice(s, r->survey.image, k, &values, err);

		if (rc < 0)
			return rc;
		y[2][k] = values[(size_t)at[1] * (size_t)s->n[0] + (size_t)at[0]];
		for (int i = 0; k == at[2] && i < s->n[0]; i++)
			y[0][i] = values[(size_t)at[1] * (size_t)s->n[0] + (size_t)i];
		for (int j = 0; k == at[2] && j < s->n[1]; j++)
			y[1][j] = values[(size_t)j * (size_t)s->n[0] + (size_t)at[0]];
	}
	return 0;
}

static int put_profiles(const struct report *r, struct html *h, struct err *err)
{
	const int *n = r->s->n;
	size_t room = (size_t)n[0] + (size_t)n[1] + (size_t)n[2];
	double *memory = malloc(2 * room * sizeof(*memory)), *x[3], *y[3];
	struct chart c = {
		.title = "Profiles through the largest contrast", .x_label = "mm from it", .n_lines = 3, .marks = {NAN, NAN}};
	static const char *const names[] = {"columns", "rows", "slices"};
	char label[80];
	int rc;

	if (!memory)
		return err_set(err, ENOMEM, "no memory for profiles of %zu values", room);
	for (int a = 0, at = 0; a < 3; at += n[a++]) {
		x[a] = memory + at;
		y[a] = memory + room + at;
		c.lines[a] = (struct chart_line){names[a], n[a], x[a], y[a]};
	}
	rc = read_profiles(r, x, y, err);
	value_label(r, "value", label, sizeof(label));
	c.y_label = label;
	if (rc == 0)
		chart_put(h, &c);
	free(memory);
	return rc;
}

static void put_slices(const struct report *r, struct html *h)
{
	int n = r->s->n[2];
	double *x = malloc((size_t)n * sizeof(*x));
	struct chart c = {.title = "Each slice: mean, standard deviation and noise",
			  .x_label = "slice",
			  .lines = {{"mean", n, x, r->survey.slice_mean},
				    {"deviation", n, x, r->survey.slice_sd},
				    {"noise", n, x, r->survey.slice_noise}},
			  .n_lines = 3,
			  .marks = {NAN, NAN}};
	char label[80];

	if (!x) {
		h->failed = true;
		return;
	}
	for (int k = 0; k < n; k++)
		x[k] = k + 1;
	value_label(r, "value", label, sizeof(label));
	c.y_label = label;
	chart_put(h, &c);
	free(x);
}

static void put_images(const struct report *r, struct html *h)
{
	const struct image_series *s = r->s;
	double *x = malloc((size_t)s->n_images * sizeof(*x));
	bool timed = true;
	struct chart c = {.title = "Mean of each image",
			  .lines = {{NULL, s->n_images, x, r->survey.image_mean}},
			  .n_lines = 1,
			  .marks = {NAN, NAN}};
	char label[80];

	if (!x) {
		h->failed = true;
		return;
	}
	for (int i = 0; i < s->n_images; i++) {
		x[i] = s->time[i].start + s->time[i].duration / 2;
		timed = timed && isfinite(x[i]);
	}
	for (int i = 0; !timed && i < s->n_images; i++)
		x[i] = i + 1;
	c.x_label = timed ? "middle of the image, s" : "image";
	value_label(r, "mean", label, sizeof(label));
	c.y_label = label;
	chart_put(h, &c);
	free(x);
}

int report_put_figures(const struct report *r, struct html *h, struct err *err)
{
	int rc;

	html_put(h, "<section><h2>Figures</h2><div class=\"charts\">\n");
	put_histogram(r, h);
	rc = put_profiles(r, h, err);
	if (r->s->n[2] > 1)
		put_slices(r, h);
	if (r->s->n_images > 1)
		put_images(r, h);
	html_put(h, "</div><p class=\"quiet\">Noise: 1.4826 / &radic;2 times the median difference of neighbouring columns that "
		    "are above the mean of the slice; where neighbours are correlated, the noise is larger.</p></section>\n");
	return rc;
}
