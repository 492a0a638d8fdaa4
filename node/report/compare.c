/* SPDX-License-Identifier: Apache-2.0 */
#include "node/report/compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/report/report_internal.h"

#define SIZE_TOLERANCE 1e-4	 /* of a voxel: sizes are stored with few digits */
#define DIRECTION_TOLERANCE 1e-3 /* of a unit vector: 0.06 degrees */
#define PLACE_SAID 0.01		 /* of a voxel: positions are stored with few digits, too */
#define PLACE_REFUSED 0.5	 /* of a voxel, in one frame of reference */
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

struct sums {
	double a, b, aa, bb, ab;
};

static void add_slice(const float *a, const float *b, const int n[3], int image, int k, struct sums *s, struct comparison *c)
{
	for (size_t v = 0; v < (size_t)n[0] * (size_t)n[1]; v++) {
		double x = a[v], y = b[v];

		s->a += x, s->b += y, s->aa += x * x, s->bb += y * y, s->ab += x * y;
		c->equal += x == y;
		c->rms += (y - x) * (y - x);
		if (fabs(y - x) > fabs(c->largest)) {
			c->largest = y - x;
			c->at[0] = (int)(v % (size_t)n[0]), c->at[1] = (int)(v / (size_t)n[0]), c->at[2] = k;
			c->image = image;
		}
	}
	c->voxels += (uint64_t)n[0] * (uint64_t)n[1];
}

static int compare_values(const struct image_series *const of[2], struct comparison *c, struct err *err)
{
	const int *n = of[0]->n;
	struct sums s = {0};
	double count;

	for (int image = 0; image < of[0]->n_images; image++)
		for (int k = 0; k < n[2]; k++) {
			const float *a, *b;
			int rc = image_series_slice(of[0], image, k, &a, err);

			if (rc == 0)
				rc = image_series_slice(of[1], image, k, &b, err);
			if (rc < 0)
				return rc;
			add_slice(a, b, n, image, k, &s, c);
		}
	count = (double)c->voxels;
	c->bias = (s.b - s.a) / count;
	c->rms = sqrt(c->rms / count);
	c->correlation = (s.ab - s.a * s.b / count) / sqrt((s.aa - s.a * s.a / count) * (s.bb - s.b * s.b / count));
	return 0;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Find mean, spread and noise of one of them. */
static int describe_one(const struct image_series *s, int i, struct comparison *c, struct err *err)
{
	struct survey v;
	int known = 0, rc = survey_make(s, 8, &v, err);

	if (rc < 0)
		return rc;
	c->mean[i] = v.mean;
	c->sd[i] = v.sd;
	for (int k = 0; k < s->n[2]; k++)
		if (!isnan(v.slice_noise[k]))
			v.slice_noise[known++] = v.slice_noise[k];
	qsort(v.slice_noise, (size_t)known, sizeof(double), compare_doubles);
	c->noise[i] = known > 0 ? v.slice_noise[known / 2] : NAN;
	survey_clear(&v);
	return 0;
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
		rc = describe_one(of[i], i, ret, err);
	return rc < 0 ? rc : compare_values(of, ret, err);
}

/* ---- page ---- */

static void put_figures(const struct image_series *s, const struct comparison *c, const char *const names[2], struct html *h)
{
	char unit[48];

	report_unit(s, unit, sizeof(unit));
	html_printf(h, "<section><h2>Figures</h2><table class=\"facts\">\n<tr><th></th><th>A</th><th>B</th></tr>\n");
	html_printf(h, "<tr><th scope=\"row\">result</th><td>%s</td><td>%s</td></tr>\n", names[0], names[1]);
	html_printf(h, "<tr><th scope=\"row\">mean, %s</th><td>%.6g</td><td>%.6g</td></tr>\n", unit, c->mean[0], c->mean[1]);
	html_printf(h, "<tr><th scope=\"row\">standard deviation</th><td>%.4g</td><td>%.4g</td></tr>\n", c->sd[0], c->sd[1]);
	html_printf(h, "<tr><th scope=\"row\">noise</th><td>%.4g</td><td>%.4g</td></tr>\n</table>\n", c->noise[0], c->noise[1]);
	html_printf(h, "<p>B - A: mean %.4g, root mean square %.4g, largest %.4g at column %d, row %d, slice %d", c->bias, c->rms,
		    c->largest, c->at[0] + 1, c->at[1] + 1, c->at[2] + 1);
	if (s->n_images > 1)
		html_printf(h, " of image %d", c->image + 1);
	html_printf(h, "; correlation %.9f; %.3f %% of the voxels are equal.</p></section>\n", c->correlation,
		    100 * (double)c->equal / (double)c->voxels);
}

static void put_changes(const char *const *changes, struct html *h)
{
	html_put(h, "<section><h2>Made differently</h2>\n");
	if (!*changes)
		html_put(h, "<p>Nothing is known to differ.</p>");
	else
		html_put(h, "<ul>");
	for (const char *const *at = changes; *at; at++)
		html_printf(h, "<li>%s</li>\n", *at);
	html_put(h, *changes ? "</ul></section>\n" : "</section>\n");
}

/* Write one slice of a series. */
static int put_slice(const struct image_series *s, int image, int k, const struct picture_levels *window, const char *what,
		     struct html *h, struct err *err)
{
	struct plane_picture p = {0};
	int rc;

	plane_picture_plan(s, 2, k, REPORT_PLANE_SIDE, &p);
	rc = plane_pictures_fill(s, image, window, &p, 1, err);
	html_printf(h, "<figure class=\"plane\" style=\"--mm:%.4f;--share:1\">", p.mm[0]);
	if (rc == 0)
		rc = report_put_picture(h, p.width, p.height, p.grey, what, err);
	html_printf(h, "<figcaption>%s: %.4g to %.4g</figcaption></figure>\n", what, window->lo, window->hi);
	plane_pictures_clear(&p, 1);
	return rc;
}

/* Write a slice of A, of B, and of B - A, beside each other. */
static int put_three(const struct image_series *const of[2], const struct comparison *c, int image, int k, const char *title,
		     struct html *h, struct err *err)
{
	size_t n = (size_t)of[0]->n[0] * (size_t)of[0]->n[1], first = 0;
	struct picture_levels both = {c->mean[0] - 2 * c->sd[0], c->mean[0] + 4 * c->sd[0], false},
			      change = {-SPREAD * c->rms, SPREAD * c->rms, false};
	struct image_series difference = *of[0]; /* with this slice alone */
	const float *a, *b;
	int rc;

	difference.tomo = NULL;
	difference.n[2] = difference.n_images = 1;
	difference.order = &first;
	difference.values = malloc(n * sizeof(float));
	if (!difference.values)
		return err_set(err, ENOMEM, "no memory for a slice of %zu voxels", n);
	if (isfinite(of[0]->window[0]) && of[0]->window[1] > of[0]->window[0])
		both = (struct picture_levels){of[0]->window[0], of[0]->window[1], false};
	else if (!of[0]->ct)
		both = (struct picture_levels){0, c->mean[0] + 6 * c->sd[0], true}; /* PET */
	rc = image_series_slice(of[0], image, k, &a, err);
	if (rc == 0)
		memcpy(difference.values, a, n * sizeof(float));
	if (rc == 0)
		rc = image_series_slice(of[1], image, k, &b, err);
	for (size_t v = 0; rc == 0 && v < n; v++)
		difference.values[v] = b[v] - difference.values[v];
	html_printf(h, "<section><h2>%s: slice %d of %d</h2>\n<div class=\"planes\">\n", title, k + 1, of[0]->n[2]);
	if (rc == 0)
		rc = put_slice(of[0], image, k, &both, "A", h, err);
	if (rc == 0)
		rc = put_slice(of[1], image, k, &both, "B", h, err);
	if (rc == 0 && c->rms > 0)
		rc = put_slice(&difference, 0, 0, &change, "B - A", h, err);
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
