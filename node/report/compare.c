/* SPDX-License-Identifier: Apache-2.0 */
#include "node/report/compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order.h"
#include "node/report/report_internal.h"

#define SIZE_TOLERANCE 1e-4	 /* of a voxel: sizes are stored with few digits */
#define DIRECTION_TOLERANCE 1e-3 /* of a unit vector: 0.06 degrees */
#define PLACE_SAID 0.01		 /* of a voxel: positions are stored with few digits, too */
#define PLACE_REFUSED 0.5	 /* of a voxel, in one frame of reference */
#define PICTURE_SIDE 1024	 /* pixels */
#define SPREAD 4.0		 /* a picture of a difference shows this many root mean squares on both sides of 0 */

/* ---- figures ---- */

static int check_pair(const struct image_series *const of[2], struct err *err)
{
	const struct image_series *a = of[0], *b = of[1];
	bool same = a->n_images == b->n_images && !strcmp(a->units, b->units);

	for (int i = 0; i < 3; i++)
		same = same && a->n[i] == b->n[i] && fabs(a->spacing[i] - b->spacing[i]) <= SIZE_TOLERANCE * a->spacing[i];
	if (same)
		return 0;
	return err_set(
		err, EBADMSG,
		"they do not have the same voxels: %d x %d x %d of %.4g x %.4g x %.4g mm, %d image%s, unit '%s'; and %d x %d x "
		"%d of %.4g x %.4g x %.4g mm, %d image%s, unit '%s'",
		a->n[0], a->n[1], a->n[2], a->spacing[0], a->spacing[1], a->spacing[2], a->n_images, a->n_images == 1 ? "" : "s",
		a->units, b->n[0], b->n[1], b->n[2], b->spacing[0], b->spacing[1], b->spacing[2], b->n_images,
		b->n_images == 1 ? "" : "s", b->units);
}

static int check_directions(const struct image_series *a, const struct image_series *b, struct err *err)
{
	double apart = 0;

	for (int i = 0; i < 3; i++)
		apart = fmax(apart, fmax(fabs(a->across[i] - b->across[i]),
					 fmax(fabs(a->down[i] - b->down[i]), fabs(a->normal[i] - b->normal[i]))));
	if (!(apart > DIRECTION_TOLERANCE))
		return 0;
	return err_set(
		err, EBADMSG,
		"their voxels do not have the same directions (left, back, head): rows (%.4g, %.4g, %.4g), columns (%.4g, %.4g, %.4g), "
		"slices (%.4g, %.4g, %.4g); and rows (%.4g, %.4g, %.4g), columns (%.4g, %.4g, %.4g), slices (%.4g, %.4g, %.4g)",
		a->across[0], a->across[1], a->across[2], a->down[0], a->down[1], a->down[2], a->normal[0], a->normal[1],
		a->normal[2], b->across[0], b->across[1], b->across[2], b->down[0], b->down[1], b->down[2], b->normal[0],
		b->normal[1], b->normal[2]);
}

/* Compare the places of the first voxels, along each axis in voxels. */
static int check_place(const struct image_series *a, const struct image_series *b, char *ret_sentence, size_t size,
		       struct err *err)
{
	const double *const axes[] = {a->across, a->down, a->normal};
	bool known = a->frame_of_reference[0] && b->frame_of_reference[0],
	     one_frame = known && !strcmp(a->frame_of_reference, b->frame_of_reference);
	double apart = 0;

	for (int i = 0; i < 3; i++) {
		double along = 0;

		for (int c = 0; c < 3; c++)
			along += (b->corner[c] - a->corner[c]) * axes[i][c];
		apart = fmax(apart, fabs(along) / a->spacing[i]);
	}
	if (!(apart > PLACE_SAID))
		return 0;
	snprintf(
		ret_sentence, size,
		"their first voxels are not at the same place: (%.2f, %.2f, %.2f) mm and (%.2f, %.2f, %.2f) mm (left, back, head), "
		"%.3g voxels apart, %s",
		a->corner[0], a->corner[1], a->corner[2], b->corner[0], b->corner[1], b->corner[2], apart,
		one_frame ? "in one frame of reference"
		: known	  ? "in two frames of reference"
			  : "and their frame of reference is not known");
	return one_frame && apart > PLACE_REFUSED ? err_set(err, EBADMSG, "%s", ret_sentence) : 0;
}

/* Sums over the voxels of the object; memory for the noise of its slices. */
struct sums {
	double a, b, aa, bb, ab, air;
	double *noise[2]; /* [known] */
	size_t known[2];
	float *sample; /* [SURVEY_SAMPLE] */
};

static void add_slice(const float *const of[2], const int n[3], int image, int k, struct sums *s, struct comparison *c)
{
	for (size_t v = 0; v < (size_t)n[0] * (size_t)n[1]; v++) {
		double x = isnan(of[0][v]) ? 0 : of[0][v], y = isnan(of[1][v]) ? 0 : of[1][v];

		c->equal += x == y;
		if (isnan(of[0][v]) || isnan(of[1][v]) || !((x + y) / 2 > c->level)) {
			s->air += y - x;
			c->air_rms += (y - x) * (y - x);
			continue;
		}
		s->a += x, s->b += y, s->aa += x * x, s->bb += y * y, s->ab += x * y;
		c->rms += (y - x) * (y - x);
		c->object++;
		if (fabs(y - x) > fabs(c->largest)) {
			c->largest = y - x;
			c->at[0] = (int)(v % (size_t)n[0]), c->at[1] = (int)(v / (size_t)n[0]), c->at[2] = k;
			c->image = image;
		}
	}
	c->voxels += (uint64_t)n[0] * (uint64_t)n[1];
	for (int i = 0; i < 2; i++) {
		double noise = survey_noise(of[i], n, c->level, s->sample);

		if (!isnan(noise))
			s->noise[i][s->known[i]++] = noise;
	}
}

static void finish_figures(struct sums *s, struct comparison *c)
{
	const double sum[] = {s->a, s->b}, squares[] = {s->aa, s->bb};
	double count = fmax((double)c->object, 1), others = fmax((double)(c->voxels - c->object), 1);

	for (int i = 0; i < 2; i++) {
		c->mean[i] = sum[i] / count;
		c->sd[i] = sqrt(fmax(squares[i] / count - c->mean[i] * c->mean[i], 0));
		qsort(s->noise[i], s->known[i], sizeof(double), order_doubles);
		c->noise[i] = s->known[i] > 0 ? s->noise[i][s->known[i] / 2] : NAN;
	}
	c->bias = c->mean[1] - c->mean[0];
	c->rms = sqrt(c->rms / count);
	c->air_bias = s->air / others;
	c->air_rms = sqrt(c->air_rms / others);
	c->correlation = (s->ab / count - c->mean[0] * c->mean[1]) / (c->sd[0] * c->sd[1]);
}

static void set_padded(const struct image_series *const of[2], float value)
{
	for (int i = 0; i < 2; i++)
		if (of[i]->tomo)
			of[i]->tomo->padded = value;
}

static int read_slices(const struct image_series *const of[2], struct sums *s, struct comparison *c, struct err *err)
{
	const int *n = of[0]->n;

	for (int image = 0; image < of[0]->n_images; image++)
		for (int k = 0; k < n[2]; k++) {
			const float *values[2];
			int rc = image_series_slice(of[0], image, k, &values[0], err);

			if (rc == 0)
				rc = image_series_slice(of[1], image, k, &values[1], err);
			if (rc < 0)
				return rc;
			add_slice(values, n, image, k, s, c);
		}
	return 0;
}

static int compare_values(const struct image_series *const of[2], struct comparison *c, struct err *err)
{
	size_t slices = (size_t)of[0]->n_images * (size_t)of[0]->n[2];
	struct sums s = {.noise = {malloc(slices * sizeof(double)), malloc(slices * sizeof(double))},
			 .sample = malloc(SURVEY_SAMPLE * sizeof(float))};
	int rc = s.noise[0] && s.noise[1] && s.sample ? 0 : err_set(err, ENOMEM, "no memory for the noise of %zu slices", slices);

	set_padded(of, NAN);
	if (rc == 0)
		rc = read_slices(of, &s, c, err);
	set_padded(of, 0);
	if (rc == 0)
		finish_figures(&s, c);
	free(s.noise[0]);
	free(s.noise[1]);
	free(s.sample);
	return rc;
}

/* Find what is air in one of them, and the window of A. */
static int survey_one(const struct image_series *s, bool first, struct comparison *c, struct err *err)
{
	const char *source;
	struct survey v;
	int rc = survey_make(s, 0, &v, err);

	if (rc < 0)
		return rc;
	c->level += survey_object_level(s, &v) / 2;
	if (first)
		rc = survey_window(s, &v, &c->window, &source, err);
	survey_clear(&v);
	return rc;
}

int comparison_make(const struct image_series *const of[2], struct comparison *ret, struct err *err)
{
	int rc = check_pair(of, err);

	*ret = (struct comparison){0};
	if (rc == 0)
		rc = check_directions(of[0], of[1], err);
	if (rc == 0)
		rc = check_place(of[0], of[1], ret->place, sizeof(ret->place), err);
	for (int i = 0; rc == 0 && i < 2; i++)
		rc = survey_one(of[i], i == 0, ret, err);
	return rc < 0 ? rc : compare_values(of, ret, err);
}

/* ---- page ---- */

void comparison_object_text(const struct image_series *s, const struct comparison *c, char *ret, size_t size)
{
	char unit[48];

	report_unit(s, unit, sizeof(unit));
	if (isfinite(c->level))
		snprintf(ret, size, "where the mean of A and B is above %.4g%s%s", c->level, unit[0] ? " " : "", unit);
	else
		snprintf(ret, size, "%s", c->object < c->voxels ? "that are not padding" : "of the images: nothing is air");
}

/* Write a row of figures: name and unit, and a value of A and of B. */
static void put_pair(struct html *h, const char *name, const char *unit, const double values[2])
{
	html_printf(h, "<tr><th scope=\"row\">%s%s%s</th><td>%.5g</td><td>%.5g</td></tr>\n", name, unit[0] ? ", " : "", unit,
		    values[0], values[1]);
}

static void put_figures(const struct image_series *s, const struct comparison *c, const char *const names[2], struct html *h)
{
	char unit[48], object[120], image[32] = "";

	report_unit(s, unit, sizeof(unit));
	comparison_object_text(s, c, object, sizeof(object));
	html_printf(h,
		    "<section><h2>Figures</h2><p>A: %s</p><p>B: %s</p>\n<p>Of the object: %.3g %% of the voxels, those %s.</p>\n",
		    names[0], names[1], 100 * (double)c->object / (double)c->voxels, object);
	html_put(h, "<table class=\"figures\"><tr><th></th><th>A</th><th>B</th></tr>\n");
	put_pair(h, "mean", unit, c->mean);
	put_pair(h, "standard deviation", unit, c->sd);
	put_pair(h, "noise", unit, c->noise);
	if (s->n_images > 1)
		snprintf(image, sizeof(image), ", image %d", c->image + 1);
	html_printf(
		h,
		"</table>\n<table class=\"figures\"><tr><th></th><th>B - A</th></tr>\n<tr><th scope=\"row\">mean</th><td>%.4g %s</td></tr>\n",
		c->bias, unit);
	html_printf(h, "<tr><th scope=\"row\">root mean square</th><td>%.4g %s</td></tr>\n", c->rms, unit);
	html_printf(h, "<tr><th scope=\"row\">largest</th><td>%.4g %s, at column %d, row %d, slice %d%s</td></tr>\n", c->largest,
		    unit, c->at[0] + 1, c->at[1] + 1, c->at[2] + 1, image);
	html_printf(h, "<tr><th scope=\"row\">in air: mean</th><td>%.4g %s</td></tr>\n", c->air_bias, unit);
	html_printf(h, "<tr><th scope=\"row\">in air: root mean square</th><td>%.4g %s</td></tr>\n</table>\n", c->air_rms, unit);
	html_printf(h, "<p>Correlation %.9f; %.3f %% of all voxels are equal.</p></section>\n", c->correlation,
		    100 * (double)c->equal / (double)c->voxels);
}

static void put_changes(const char *const *changes, struct html *h)
{
	html_put(h, "<section><h2>Made differently</h2>\n");
	if (!*changes)
		html_put(h, "<p>Nothing is known to differ.</p>");
	else
		html_put(h, "<ul class=\"changes\">");
	for (const char *const *at = changes; *at; at++)
		html_printf(h, "<li>%s</li>\n", *at);
	html_put(h, *changes ? "</ul></section>\n" : "</section>\n");
}

/* Write slice k of an image; what: A, B or their difference, which is `of` with this slice alone. */
static int put_slice(const struct image_series *s, const struct image_series *of, int image, int k,
		     const struct picture_levels *window, const char *what, struct html *h, struct err *err)
{
	char unit[48], name[120];
	struct plane_picture p = {0};
	int rc;

	report_unit(s, unit, sizeof(unit));
	snprintf(name, sizeof(name), "%s: %.4g (%s) to %.4g%s%s", what, window->lo, window->inverse ? "white" : "black",
		 window->hi, unit[0] ? " " : "", unit);
	plane_picture_plan(s, 2, k, PICTURE_SIDE, &p);
	p.index = of->n[2] > 1 ? k : 0;
	rc = plane_pictures_fill(of, image, window, &p, 1, err);
	p.index = k;
	if (rc == 0)
		rc = report_put_plane(s, &p, name, false, 1, h, err);
	plane_pictures_clear(&p, 1);
	return rc;
}

/* Write a slice of A, of B, and of B - A, beside each other. */
static int put_three(const struct image_series *const of[2], const struct comparison *c, int image, int k, const char *title,
		     struct html *h, struct err *err)
{
	size_t n = (size_t)of[0]->n[0] * (size_t)of[0]->n[1], first = 0;
	struct picture_levels change = {-SPREAD * c->rms, SPREAD * c->rms, false};
	struct image_series difference = *of[0]; /* with this slice alone */
	const float *a, *b;
	int rc;

	difference.tomo = NULL;
	difference.n[2] = difference.n_images = 1;
	difference.order = &first;
	difference.values = malloc(n * sizeof(float));
	if (!difference.values)
		return err_set(err, ENOMEM, "no memory for a slice of %zu voxels", n);
	rc = image_series_slice(of[0], image, k, &a, err);
	if (rc == 0)
		memcpy(difference.values, a, n * sizeof(float));
	if (rc == 0)
		rc = image_series_slice(of[1], image, k, &b, err);
	for (size_t v = 0; rc == 0 && v < n; v++)
		difference.values[v] = b[v] - difference.values[v];
	html_printf(h, "<section><h2>%s: slice %d of %d</h2>\n<div class=\"planes whole\">\n", title, k + 1, of[0]->n[2]);
	set_padded(of, (float)c->window.lo); /* air is black */
	if (rc == 0)
		rc = put_slice(of[0], of[0], image, k, &c->window, "A", h, err);
	if (rc == 0)
		rc = put_slice(of[0], of[1], image, k, &c->window, "B", h, err);
	if (rc == 0 && c->rms > 0)
		rc = put_slice(of[0], &difference, 0, k, &change, "B - A", h, err);
	set_padded(of, 0);
	html_put(h, "</div></section>\n");
	free(difference.values);
	return rc;
}

int comparison_page(const struct image_series *const of[2], const struct comparison *c, const char *const names[2],
		    const char *const *changes, struct html *h, struct err *err)
{
	int rc;

	report_put_begin(h, "Comparison of two results");
	put_figures(of[0], c, names, h);
	put_changes(changes, h);
	rc = put_three(of, c, 0, of[0]->n[2] / 2, "Middle", h, err);
	if (rc == 0 && c->largest != 0)
		rc = put_three(of, c, c->image, c->at[2], "Largest difference", h, err);
	report_put_end(h);
	if (rc == 0 && h->failed)
		rc = err_set(err, ENOMEM, "the page is larger than %u bytes, or memory is exhausted", HTML_MAX);
	return rc;
}
