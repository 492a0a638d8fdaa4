/* SPDX-License-Identifier: Apache-2.0 */
/* export_picture.c - see node/tools/export_picture.h. */
#include "node/tools/export_picture.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/format/picture.h"
#include "node/format/png_write.h"
#include "node/tools/export_format.h"
#include "node/tools/series_window.h"

#define DARKEST 0.02	/* fraction of the values that become black, as in node/result/thumbnail.c */
#define BRIGHTEST 0.995 /* fraction of the values that do not become white */
#define BINS 65536

/* Find for each axis of the patient (left, back, head) the nearest one of the voxels; no two have the same. */
static struct picture_view patient_axes(const struct image_series *s)
{
	static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	const double *axis[3] = {s->across, s->down, s->normal};
	struct picture_view nearest = {0};
	double most = -1;

	for (int o = 0; o < 6; o++) {
		double sum = 0;

		for (int c = 0; c < 3; c++)
			sum += fabs(axis[orders[o][c]][c]);
		if (sum <= most + 1e-9)
			continue;
		most = sum;
		for (int c = 0; c < 3; c++) {
			nearest.axis[c] = orders[o][c];
			nearest.reversed[c] = axis[orders[o][c]][c] < 0;
		}
	}
	return nearest;
}

struct picture_view export_picture_view(const struct image_series *s, enum picture_plane plane)
{
	/* axes of the patient of columns, rows, slices; rows of coronal and sagittal planes go down, from head to feet */
	static const int axes[][3] = {{0, 1, 2}, {0, 1, 2}, {0, 2, 1}, {1, 2, 0}};
	struct picture_view patient = patient_axes(s), v = {{0, 1, 2}, {false}};

	if (plane == PLANE_STORED)
		return v;
	for (int a = 0; a < 3; a++) {
		int c = axes[plane][a];

		v.axis[a] = patient.axis[c];
		v.reversed[a] = patient.reversed[c] != (a == 1 && c == 2);
	}
	return v;
}

static int count_slices(const struct image_series *s, const struct picture_choice *c)
{
	struct picture_view v = export_picture_view(s, (enum picture_plane)c->plane);

	return s->n[v.axis[2]];
}

/* Check that the series has what is chosen. EBADMSG: it does not; the text names option, value and range. */
static int check_choice(const struct image_series *s, const struct picture_choice *c, struct err *err)
{
	int n = count_slices(s, c);

	if (s->view && c->plane != PLANE_STORED)
		return err_set(err, EBADMSG, "--plane: a two-dimensional view has only the stored plane");
	if (c->image > s->n_images)
		return err_set(err, EBADMSG, "--image %d: the series has %d image%s", c->image, s->n_images,
			       s->n_images > 1 ? "s" : "");
	if (!c->mip && c->slice > n)
		return err_set(err, EBADMSG, "--slice %d: there are %d slices in this direction", c->slice, n);
	return 0;
}

static bool is_numbered(const struct picture_choice *c)
{
	return !c->mip && c->slice == SLICE_ALL;
}

/* Return the name of the picture of a slice, which the caller frees: `path`, or of all slices NAME-NUMBER.png with four digits or
 * more. NULL: no memory. */
static char *name_picture(const struct picture_choice *c, const char *path, int slice)
{
	size_t base = strlen(path) - strlen(strrchr(path, '.'));
	char *name;

	if (!is_numbered(c))
		return strdup(path);
	return asprintf(&name, "%.*s-%04d.png", (int)base, path, slice) >= 0 ? name : NULL;
}

/* ---- values ---- */

struct cut {
	const struct image_series *s;
	int image; /* from 0 */
	struct picture_view view;
	float *volume; /* all values of the image; NULL: slices are read when they are needed */
	float *plane;  /* columns * rows of the view */
	int columns, rows, slices;
};

/* Return the values of a slice of the series. */
static int read_slice(const struct cut *c, int k, const float **ret, struct err *err)
{
	if (!c->volume)
		return image_series_slice(c->s, c->image, k, ret, err);
	*ret = c->volume + (size_t)k * (size_t)c->s->n[0] * (size_t)c->s->n[1];
	return 0;
}

static int load_volume(struct cut *c, struct err *err)
{
	size_t n = (size_t)c->s->n[0] * (size_t)c->s->n[1];
	float *volume = malloc(n * (size_t)c->s->n[2] * sizeof(*volume));
	const float *values;
	int rc = 0;

	if (!volume)
		return err_set(err, ENOMEM, "no memory for %d x %d x %d values", c->s->n[0], c->s->n[1], c->s->n[2]);
	for (int k = 0; k < c->s->n[2] && rc == 0; k++) {
		rc = image_series_slice(c->s, c->image, k, &values, err);
		if (rc == 0)
			memcpy(volume + (size_t)k * n, values, n * sizeof(*volume));
	}
	c->volume = volume;
	return rc;
}

/* Put the values of slice k of the series that are in plane `at` of the view (from 0) into the plane; at < 0: the larger of each
 * value and what the plane has, for the projection. */
static void take_slice(struct cut *c, int k, int at, const float *values)
{
	const int *axis = c->view.axis, *n = c->s->n;
	int lo[3] = {0, 0, 0}, hi[3] = {c->columns, c->rows, c->slices};

	if (at >= 0) {
		lo[2] = at;
		hi[2] = at + 1;
	}
	for (int a = 0; a < 3; a++) /* the direction of the view that is the slice of the series has one index */
		if (axis[a] == 2) {
			lo[a] = c->view.reversed[a] ? n[2] - 1 - k : k;
			hi[a] = lo[a] + 1;
		}
	if (at >= 0 && (at < lo[2] || at >= hi[2]))
		return;
	for (int z = lo[2]; z < hi[2]; z++)
		for (int y = lo[1]; y < hi[1]; y++)
			for (int x = lo[0]; x < hi[0]; x++) {
				float *v = c->plane + (size_t)y * (size_t)c->columns + (size_t)x, found;
				int index[3], of[3] = {x, y, z};

				for (int a = 0; a < 3; a++)
					index[axis[a]] = c->view.reversed[a] ? n[axis[a]] - 1 - of[a] : of[a];
				found = values[(size_t)index[1] * (size_t)n[0] + (size_t)index[0]];
				*v = at >= 0 ? found : fmaxf(*v, found);
			}
}

/* Cut plane `at` (from 0), or compute the projection (at < 0). */
static int cut_plane(struct cut *c, int at, struct err *err)
{
	bool one = at >= 0 && c->view.axis[2] == 2;
	int rc = 0;

	for (size_t i = 0; at < 0 && i < (size_t)c->columns * (size_t)c->rows; i++)
		c->plane[i] = -INFINITY;
	for (int k = 0; k < c->s->n[2] && rc == 0; k++) {
		const float *values;

		if (one && k != (c->view.reversed[2] ? c->s->n[2] - 1 - at : at))
			continue;
		rc = read_slice(c, k, &values, err);
		if (rc == 0)
			take_slice(c, k, at, values);
	}
	return rc;
}

/* ---- the window ---- */

/* A histogram of the values is made in two passes: the range, then the numbers. */
struct survey {
	float lo, hi;
	size_t n, *count; /* [BINS] */
};

static void survey_range(struct survey *v, const float *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i])) {
			v->lo = fminf(v->lo, values[i]);
			v->hi = fmaxf(v->hi, values[i]);
		}
}

static void survey_count(struct survey *v, const float *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i])) {
			v->count[(size_t)(((double)values[i] - v->lo) / ((double)v->hi - v->lo) * (BINS - 1))]++;
			v->n++;
		}
}

/* Apply a pass to the projection, which is in the plane, or to all values of the image. */
static int survey_all(struct survey *v, const struct cut *c, bool plane, void (*pass)(struct survey *, const float *, size_t),
		      struct err *err)
{
	const float *values;
	int rc = 0;

	if (plane) {
		pass(v, c->plane, (size_t)c->columns * (size_t)c->rows);
		return 0;
	}
	for (int k = 0; k < c->s->n[2] && rc == 0; k++) {
		rc = read_slice(c, k, &values, err);
		if (rc == 0)
			pass(v, values, (size_t)c->s->n[0] * (size_t)c->s->n[1]);
	}
	return rc;
}

/* The value below which a fraction of all values is. */
static double find_percentile(const struct survey *v, double fraction)
{
	size_t below = 0;

	for (size_t b = 0; b < BINS; b++) {
		below += v->count[b];
		if ((double)below >= fraction * (double)v->n)
			return v->lo + ((double)v->hi - v->lo) * (double)b / (BINS - 1);
	}
	return v->hi;
}

static int find_window(const struct cut *c, const struct picture_choice *choice, double range[2], struct err *err)
{
	struct survey v = {INFINITY, -INFINITY, 0, NULL};
	int rc;

	if (choice->window == WINDOW_AUTO && !c->s->ct && !c->s->tomo && !c->s->view) {
		range[0] = 0;
		rc = series_window_top(c->s, c->image, &range[1], err);
		if (rc == 0 && !(range[1] > 0))
			range[1] = 1;
		return rc;
	}
	if (choice->window == WINDOW_GIVEN || (choice->window == WINDOW_AUTO && c->s->window[1] > c->s->window[0])) {
		memcpy(range, choice->window == WINDOW_GIVEN ? choice->range : c->s->window, 2 * sizeof(*range));
		return 0;
	}
	rc = survey_all(&v, c, choice->mip, survey_range, err);
	if (rc < 0)
		return rc;
	range[0] = v.lo;
	range[1] = v.hi;
	if (!(v.hi > v.lo)) { /* one value everywhere, or none: black */
		range[0] = isfinite(v.lo) ? v.lo : 0;
		range[1] = range[0] + 1;
		return 0;
	}
	if (choice->window == WINDOW_FULL)
		return 0;
	v.count = calloc(BINS, sizeof(*v.count));
	if (!v.count)
		return err_set(err, ENOMEM, "no memory for a histogram");
	rc = survey_all(&v, c, choice->mip, survey_count, err);
	range[0] = find_percentile(&v, DARKEST);
	range[1] = find_percentile(&v, BRIGHTEST);
	if (!(range[1] > range[0])) /* most voxels have one value */
		range[1] = v.hi;
	free(v.count);
	return rc;
}

/* ---- the picture ---- */

/* Where the centre of a pixel is between the voxels of a line: index of the one before it, and the weight of the one after. */
static int locate_pixel(int pixel, double step, int n, double *ret_weight)
{
	double at = fmin(fmax((pixel + 0.5) * step - 0.5, 0), n - 1);
	int before = (int)at < n - 1 ? (int)at : n - 1;

	*ret_weight = at - before;
	return before;
}

static double mix_values(const float *row, int x, int n, double weight)
{
	return weight > 0 && x + 1 < n ? (1 - weight) * (double)row[x] + weight * (double)row[x + 1] : (double)row[x];
}

static int write_plane(const struct cut *c, const struct picture_choice *choice, const struct picture_report *r, const char *path,
		       struct err *err)
{
	double step_x = r->mm / c->s->spacing[c->view.axis[0]], step_y = r->mm / c->s->spacing[c->view.axis[1]], wx, wy;
	const struct picture_levels window = {r->range[0], r->range[1], choice->invert};
	uint16_t *grey = malloc((size_t)r->width * (size_t)r->height * sizeof(*grey));
	int rc;

	if (!grey)
		return err_set(err, ENOMEM, "no memory for a picture of %d x %d", r->width, r->height);
	for (int j = 0; j < r->height; j++) {
		int y = locate_pixel(j, step_y, c->rows, &wy);
		const float *row = c->plane + (size_t)y * (size_t)c->columns;

		for (int i = 0; i < r->width; i++) {
			int x = locate_pixel(i, step_x, c->columns, &wx);
			double v = mix_values(row, x, c->columns, wx);

			if (wy > 0 && y + 1 < c->rows)
				v = (1 - wy) * v + wy * mix_values(row + c->columns, x, c->columns, wx);
			grey[(size_t)j * (size_t)r->width + (size_t)i] =
				(uint16_t)picture_grey(&window, v, choice->bits == 16 ? 65535 : 255);
		}
	}
	rc = png_write(path, r->width, r->height, choice->bits, r->mm, grey, err);
	free(grey);
	return rc;
}

static int size_picture(const struct cut *c, int zoom, struct picture_report *r, struct err *err)
{
	double h[2] = {c->s->spacing[c->view.axis[0]], c->s->spacing[c->view.axis[1]]};
	double size[2];

	r->mm = fmin(h[0], h[1]) / zoom;
	size[0] = fmax(1, round(c->columns * h[0] / r->mm));
	size[1] = fmax(1, round(c->rows * h[1] / r->mm));
	if (size[0] > PNG_SIDE_MAX || size[1] > PNG_SIDE_MAX)
		return err_set(err, EFBIG, "a picture of %.0f x %.0f pixels of %g mm; allowed: sides up to %d", size[0], size[1],
			       r->mm, PNG_SIDE_MAX);
	r->width = (int)size[0];
	r->height = (int)size[1];
	return 0;
}

static int write_slices(struct cut *c, const struct picture_choice *choice, const char *path, struct picture_report *r,
			struct err *err)
{
	bool all = is_numbered(choice);
	int rc = 0;

	r->first = choice->mip ? 0 : all ? 1 : choice->slice ? choice->slice : c->slices / 2 + 1;
	r->n = all ? c->slices : 1;
	if (all && c->view.axis[2] != 2) /* else every slice would be read for every plane */
		rc = load_volume(c, err);
	if (rc == 0 && choice->mip)
		rc = cut_plane(c, -1, err);
	if (rc == 0)
		rc = find_window(c, choice, r->range, err);
	for (int i = 0; i < r->n && rc == 0; i++) {
		char *name = NULL;

		if (!choice->mip)
			rc = cut_plane(c, r->first - 1 + i, err);
		name = rc == 0 ? name_picture(choice, path, r->first + i) : NULL;
		if (rc == 0 && !name)
			rc = err_set(err, ENOMEM, "no memory for the name of a file");
		if (rc == 0)
			rc = write_plane(c, choice, r, name, err);
		free(name);
	}
	return rc;
}

int export_pictures(const struct image_series *s, const struct picture_choice *choice, const char *path,
		    struct picture_report *ret_report, struct err *err)
{
	struct picture_view v = export_picture_view(s, (enum picture_plane)choice->plane);
	struct cut c = {.s = s,
			.image = choice->image - 1,
			.view = v,
			.columns = s->n[v.axis[0]],
			.rows = s->n[v.axis[1]],
			.slices = s->n[v.axis[2]]};
	int rc = check_choice(s, choice, err);

	*ret_report = (struct picture_report){0};
	if (s->tomo && isfinite(s->window[0])) /* air is black */
		s->tomo->padded = (float)s->window[0];
	if (rc == 0)
		rc = size_picture(&c, choice->zoom, ret_report, err);
	if (rc == 0) {
		c.plane = malloc((size_t)c.columns * (size_t)c.rows * sizeof(*c.plane));
		rc = c.plane ? write_slices(&c, choice, path, ret_report, err)
			     : err_set(err, ENOMEM, "no memory for a plane of %d x %d", c.columns, c.rows);
	}
	free(c.plane);
	free(c.volume);
	return rc;
}

static int name_pictures(struct export_job *j, struct err *err)
{
	int n = is_numbered(&j->choice) ? count_slices(j->series, &j->choice) : 1, rc = check_choice(j->series, &j->choice, err);

	for (int i = 1; i <= n && rc == 0; i++)
		rc = export_job_add(j, name_picture(&j->choice, j->out, i), false, "", err);
	return rc;
}

static void describe_pictures(struct export_job *j, const struct picture_report *p)
{
	static const char *const planes[] = {"stored", "axial", "coronal", "sagittal"};
	const struct picture_choice *c = &j->choice;
	char what[80], image[48] = "";

	if (c->mip)
		snprintf(what, sizeof(what), "%s projection of the largest values", planes[c->plane]);
	else if (c->slice == SLICE_ALL)
		snprintf(what, sizeof(what), "%s slices 1 to %d, one file of each", planes[c->plane], p->n);
	else
		snprintf(what, sizeof(what), "%s slice %d of %d", planes[c->plane], p->first, count_slices(j->series, c));
	if (j->series->n_images > 1)
		snprintf(image, sizeof(image), ", image %d of %d", c->image, j->series->n_images);
	snprintf(j->text, sizeof(j->text), "%s%s, %d x %d pixels of %.4g mm, grey from %.6g to %.6g", what, image, p->width,
		 p->height, p->mm, p->range[0], p->range[1]);
	j->details = json_pack("{s:{s:[i,i], s:f, s:[f,f]}}", "picture", "pixels", p->width, p->height, "pixel_mm", p->mm, "grey",
			       p->range[0], p->range[1]);
}

static int write_pictures(struct export_job *j, struct err *err)
{
	struct picture_report report;
	int rc = export_pictures(j->series, &j->choice, j->out, &report, err);

	if (rc == 0)
		describe_pictures(j, &report);
	return rc;
}

const struct export_format export_format_picture = {
	.name = "png",
	.ending = ".png",
	.endings = {".png"},
	.help = ".png  a picture as it is viewed, with square pixels: axial from the feet, coronal from the front, sagittal from the\n"
		"      patient's left. Planes follow the axes of the voxels; slices count to the head, the back and the left.\n",
	.input = EXPORT_IMAGES,
	.planes = true,
	.flat = true,
	.name_files = name_pictures,
	.write = write_pictures,
};
