/* SPDX-License-Identifier: Apache-2.0 */
/* look.c - see node/report/look.h. A slice is reduced by averaging squares of voxels, before its window is applied.
 *
 * A browser applies the window, so that dragging it needs no request. For this 8 bits are too few, and a PNG of 16 bits is reduced
 * to 8 by browsers: so the values are sent as they are, with their range. */
#include "node/report/look.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/folder.h"
#include "node/report/planes.h"
#include "node/report/report_files.h"
#include "node/report/survey.h"

#define LEVELS 65535

static int choose_window(struct look *l, struct err *err)
{
	const struct image_series *s = l->s;
	bool decided = s->n_images == 1 && (!s->ct || isfinite(s->window[0])) && (!s->tomo || isfinite(s->window[0]));
	struct survey v = {0};
	const char *source;
	int rc = decided ? 0 : survey_make(s, 0, &v, err); /* reads all slices */

	if (rc == 0)
		rc = survey_window(s, &v, &l->window, &source, err);
	survey_clear(&v);
	return rc;
}

int look_open(const struct config *config, const char *folder, const char *file, struct look *ret_look, struct err *err)
{
	struct report_conf conf = {.config = config, .lazy = true};
	char notes[SLICES_NOTES_SIZE];
	struct series_files groups = {0};
	const struct series_volume *group = NULL;
	struct look l = {0};
	int rc = series_files_find((char *const[]){(char *)folder, NULL}, false, &groups, err);

	if (rc == 0)
		group = report_volume_with(&groups, file);
	if (rc == 0)
		rc = group ? report_volume_open(group, &conf, &l.s, notes, err)
			   : err_set(err, ENOENT, "the objects are no longer there");
	series_files_clear(&groups);
	if (rc == 0)
		rc = choose_window(&l, err);
	if (rc < 0) {
		look_close(&l);
		return rc;
	}
	if (l.s->tomo) /* air is black */
		l.s->tomo->padded = (float)l.window.lo;
	*ret_look = l;
	return 0;
}

void look_close(struct look *l)
{
	image_series_close(l->s);
	*l = (struct look){0};
}

long look_slices(const struct look *l)
{
	return (long)l->s->n[2] * l->s->n_images;
}

long look_slice_at(int k, int pictures, long total)
{
	return (2L * k + 1) * total / (2L * pictures);
}

/* The mean of the voxels of a square, of which fewer are at the right and lower edge. */
static float mean_of(const struct image_series *s, const float *values, int x, int y, int step)
{
	int right = x + step < s->n[0] ? x + step : s->n[0], below = y + step < s->n[1] ? y + step : s->n[1];
	float sum = 0;

	for (int j = y; j < below; j++)
		for (int i = x; i < right; i++)
			sum += values[(size_t)j * (size_t)s->n[0] + (size_t)i];
	return sum / (float)((right - x) * (below - y));
}

/* Read slice `index`, from 0 over all images, reduced; the caller frees *ret_values. */
static int read_reduced(const struct look *l, long index, int side, struct plane_picture *ret_plan, float **ret_values,
			struct err *err)
{
	const struct image_series *s = l->s;
	int k = (int)(index % s->n[2]), step;
	struct plane_picture p;
	const float *values;
	float *reduced;
	int rc = image_series_slice(s, (int)(index / s->n[2]), k, &values, err);

	if (rc < 0)
		return rc;
	plane_picture_plan(s, 2, k, side, &p);
	step = p.step[0] > p.step[1] ? p.step[0] : p.step[1]; /* one for both sides: the picture has the shape of the slice */
	p.width = (s->n[0] + step - 1) / step;
	p.height = (s->n[1] + step - 1) / step;
	reduced = malloc((size_t)p.width * (size_t)p.height * sizeof(*reduced));
	if (!reduced)
		return err_set(err, ENOMEM, "no memory for a picture of %d x %d", p.width, p.height);
	for (int y = 0; y < p.height; y++)
		for (int x = 0; x < p.width; x++)
			reduced[(size_t)y * (size_t)p.width + (size_t)x] = mean_of(s, values, x * step, y * step, step);
	*ret_plan = p;
	*ret_values = reduced;
	return 0;
}

/* ---- one slice ---- */

static int put_values(struct html *h, const float *values, size_t n, double lo, double step, struct err *err)
{
	unsigned char *bytes = malloc(2 * n);

	if (!bytes)
		return err_set(err, ENOMEM, "no memory for %zu values", n);
	for (size_t i = 0; i < n; i++) {
		double level = step > 0 && isfinite(values[i]) ? ((double)values[i] - lo) / step : 0;
		unsigned number = (unsigned)lround(fmin(level, LEVELS));

		bytes[2 * i] = (unsigned char)number;
		bytes[2 * i + 1] = (unsigned char)(number >> 8);
	}
	html_bytes(h, bytes, 2 * n);
	free(bytes);
	return 0;
}

/* Write where a slice is: along the axis of the patient that its normal is closest to. */
static void put_place(struct html *h, const struct image_series *s, int k)
{
	int axis = 0;

	for (int a = 1; a < 3; a++)
		axis = fabs(s->normal[a]) > fabs(s->normal[axis]) ? a : axis;
	if (s->tomo)
		html_printf(h, ", \"axis\": \"\", \"at\": %.6g", k * s->spacing[2]);
	else
		html_printf(h, ", \"axis\": \"%c\", \"at\": %.6g", "xyz"[axis],
			    s -> corner[axis] + k * s -> spacing[2] * s -> normal[axis]);
}

int look_slice(const struct look *l, long slice, struct html *h, struct err *err)
{
	const struct image_series *s = l->s;
	const struct picture_levels *w = &l->window;
	struct html head = {.metrics = true}; /* escapes texts as JSON does */
	float *values = NULL, lo = INFINITY, hi = -INFINITY;
	struct plane_picture p;
	size_t n;
	double step;
	int rc;

	if (slice < 1 || slice > look_slices(l))
		return err_set(err, ERANGE, "the result has %ld slices, none of them has the number %ld", look_slices(l), slice);
	rc = read_reduced(l, slice - 1, LOOK_SIDE, &p, &values, err);
	if (rc < 0)
		return rc;
	n = (size_t)p.width * (size_t)p.height;
	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i])) {
			lo = fminf(lo, values[i]);
			hi = fmaxf(hi, values[i]);
		}
	lo = isfinite(lo) ? lo : 0;
	step = hi > lo ? ((double)hi - lo) / LEVELS : 0;
	html_printf(&head, "{\"width\": %d, \"height\": %d, \"lo\": %.9g, \"step\": %.9g, \"mm\": [%.6g, %.6g]", p.width,
		    p.height, (double)lo, step, p.mm[0], p.mm[1]);
	html_printf(&head, ", \"slices\": %ld, \"slice\": %ld", look_slices(l), slice);
	put_place(&head, s, (int)((slice - 1) % s->n[2]));
	html_printf(&head, ", \"black\": %.9g, \"white\": %.9g, \"unit\": \"%s\"", w->inverse ? w->hi : w->lo,
		    w->inverse ? w->lo : w->hi, image_series_unit(s->units));
	html_printf(&head, ", \"left\": \"%s\", \"right\": \"%s\", \"top\": \"%s\", \"bottom\": \"%s\"}", p.left, p.right, p.top,
		    p.bottom);
	html_put(&head, head.n % 2 ? "\n" : " \n");
	html_bytes(h, head.text, head.n);
	rc = head.failed ? err_set(err, ENOMEM, "no memory for a slice") : put_values(h, values, n, lo, step, err);
	html_clear(&head);
	free(values);
	return rc;
}

/* ---- slices side by side ---- */

/* Place a slice in the middle of square k. */
static void place_slice(const struct look *l, const struct plane_picture *p, const float *values, int side, int k, int pictures,
			unsigned char *grey)
{
	int top = (side - p->height) / 2, left = k * side + (side - p->width) / 2;

	for (int y = 0; y < p->height; y++)
		for (int x = 0; x < p->width; x++)
			grey[(size_t)(top + y) * (size_t)(pictures * side) + (size_t)(left + x)] =
				(unsigned char)picture_grey(&l->window, values[(size_t)y * (size_t)p->width + (size_t)x], 255);
}

int look_strip(const struct look *l, struct html *h, struct err *err)
{
	int pictures = look_slices(l) < LOOK_STRIP ? (int)look_slices(l) : LOOK_STRIP, side = 0, rc = 0;
	unsigned char *grey = NULL, *png = NULL;
	struct plane_picture p;
	size_t n = 0;

	for (int k = 0; rc == 0 && k < pictures; k++) {
		float *values = NULL;

		rc = read_reduced(l, look_slice_at(k, pictures, look_slices(l)), LOOK_STRIP_SIDE, &p, &values, err);
		if (rc == 0 && !grey) {
			side = p.width > p.height ? p.width : p.height;
			n = (size_t)pictures * (size_t)side * (size_t)side;
			grey = malloc(n);
			rc = grey ? 0 : err_set(err, ENOMEM, "no memory for %d pictures", pictures);
			if (grey)
				memset(grey, l->window.inverse ? 255 : 0, n);
		}
		if (rc == 0)
			place_slice(l, &p, values, side, k, pictures, grey);
		free(values);
	}
	if (rc == 0)
		rc = picture_encode(pictures * side, side, grey, &png, &n, err);
	if (rc == 0)
		html_bytes(h, png, n);
	free(png);
	free(grey);
	return rc;
}
