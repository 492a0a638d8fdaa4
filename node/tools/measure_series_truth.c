/* SPDX-License-Identifier: Apache-2.0 */
/* measure_series_truth.c - read truth.json of `tomonode simulate pet` or `simulate parallel` (or one written by hand, see
 * docs/measure.md), and measure the regions of its shapes.
 *
 * A voxel belongs to the last shape of the list that contains its centre. It is left out within `margin` of an edge: where it is
 * not inside a shape whose half axes are smaller by the margin, nor outside one whose half axes are larger by it (polygons: by
 * the distance to the lines of their sides). Its true value is the sum over all shapes that contain it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/json_file.h"
#include "node/config/kind.h"
#include "node/sinogram/sinogram.h"
#include "node/tools/measure_series_internal.h"

#define SHAPES_MAX 256
#define MARGIN_PET 10.0	     /* mm: more than the resolution */
#define MARGIN_CT_PIXELS 2.0 /* pixels */
#define VOXELS_LEAST 10

/* ---- reading ---- */

static bool read_numbers(const json_t *from, const char *key, size_t n, double *ret)
{
	const json_t *a = json_object_get(from, key);

	for (size_t c = 0; c < n; c++) {
		const json_t *number = json_array_get(a, c);

		if (!json_is_number(number) || !isfinite(json_number_value(number)))
			return false;
		ret[c] = json_number_value(number);
	}
	return true;
}

static double number_or(const json_t *from, const char *key, double otherwise)
{
	const json_t *number = json_object_get(from, key);

	return json_is_number(number) ? json_number_value(number) : otherwise;
}

static int read_corners(const json_t *list, struct truth_shape *s)
{
	size_t n = json_array_size(list);

	if (n < 3 || n > TRUTH_CORNERS_MAX)
		return -1;
	for (size_t i = 0; i < n; i++)
		for (size_t c = 0; c < 2; c++)
			s->corner[i][c] = json_number_value(json_array_get(json_array_get(list, i), c));
	s->n_corners = (int)n;
	return 0;
}

/* Name a shape that has no name: spheres by their diameter, of a smaller phantom also by that at its full size; others by their
 * kind and number. */
static void name_shape(const struct series_truth *t, const char *kind, size_t number, struct truth_shape *s)
{
	if (s->lesion && s->kind == TRUTH_ELLIPSOID && fabs(s->r[0] - s->r[1]) < 1e-6 && fabs(s->r[0] - s->r[2]) < 1e-6)
		snprintf(s->name, sizeof(s->name), fabs(t->size - 1) < 1e-6 ? "sphere %.4g mm" : "sphere %.3g mm (NEMA %.4g)",
			 2 * s->r[0], 2 * s->r[0] / t->size);
	else if (s->kind == TRUTH_CYLINDER && !t->ct && s->value < 0)
		snprintf(s->name, sizeof(s->name), "lung insert");
	else if (s->kind == TRUTH_CYLINDER && !t->ct && number == 0)
		snprintf(s->name, sizeof(s->name), "background");
	else
		snprintf(s->name, sizeof(s->name), "%s %zu", kind, number + 1);
}

static int read_shape(const json_t *from, size_t number, struct series_truth *t, struct err *err)
{
	const char *kind = json_string_value(json_object_get(from, "kind")), *role, *name;
	struct truth_shape *s = &t->shapes[t->n];
	int axes = t->ct ? 2 : 3;
	bool ok = kind != NULL;

	role = json_string_value(json_object_get(from, "role"));
	name = json_string_value(json_object_get(from, "name"));
	s->r[2] = INFINITY;
	s->lesion = role && !strcmp(role, "lesion");
	s->turn = number_or(from, "turn_degrees", 0);
	s->value = number_or(from, t->ct ? "mu_per_mm" : "becquerel_per_ml", NAN);
	if (ok && !strcmp(kind, "polygon")) {
		s->kind = TRUTH_POLYGON;
		ok = read_corners(json_object_get(from, "corners_mm"), s) == 0;
	} else if (ok) {
		s->kind = !strcmp(kind, "ellipsoid") ? TRUTH_ELLIPSOID : TRUTH_CYLINDER;
		ok = (!strcmp(kind, t->ct ? "ellipse" : "cylinder") || (!t->ct && s->kind == TRUTH_ELLIPSOID)) &&
		     read_numbers(from, "center_mm", (size_t)axes, s->c) &&
		     read_numbers(from, "half_axes_mm", (size_t)axes, s->r) && s->r[0] > 0 && s->r[1] > 0 && s->r[2] > 0;
	}
	if (!ok || !isfinite(s->value))
		return err_set(err, EBADMSG, "shape %zu (\"%s\") needs kind (%s), center_mm, half_axes_mm above 0, and %s",
			       number, kind ? kind : "", t->ct ? "ellipse, polygon" : "ellipsoid, cylinder",
			       t->ct ? "mu_per_mm" : "becquerel_per_ml");
	if (name && name[0])
		snprintf(s->name, sizeof(s->name), "%s", name);
	else
		name_shape(t, kind, number, s);
	t->n++;
	return 0;
}

/* Check that the truth and the series are of the same kind and exam. */
static int check_kind(const json_t *root, const struct image_series *s, struct series_truth *t, struct err *err)
{
	const char *kind = json_string_value(json_object_get(root, "kind"));
	const char *frame = json_string_value(json_object_get(root, "frame_of_reference"));
	const char *position = json_string_value(json_object_get(root, "position"));
	const char *phantom = json_string_value(json_object_get(root, "phantom"));

	t->ct = kind && !strcmp(kind, kind_parallel.name);
	if (!kind || (!t->ct && strcmp(kind, kind_pet.name) != 0))
		return err_set(err, EBADMSG, "its kind is \"%.20s\"; needed: %s or %s", kind ? kind : "", kind_pet.name,
			       kind_parallel.name);
	if (t->ct != s->ct)
		return err_set(err, EBADMSG, "it is the truth of a %s series, but the series is %s", t->ct ? "CT" : "PET",
			       s->ct ? "CT" : "PET");
	if (frame && strcmp(frame, s->frame_of_reference) != 0)
		return err_set(
			err, EBADMSG,
			"it belongs to another exam: its frame of reference is %s, that of the series is \"%s\"; if the data "
			"are this exam's Interfile or PETSIRD file: recon --attribute FrameOfReferenceUID=%s",
			frame, s->frame_of_reference, frame);
	if (!position || !pet_facts_axes(position, t->axis))
		return err_set(err, EBADMSG, "position is \"%.20s\"; needed: HFS, HFP, HFDR, HFDL, FFS, FFP, FFDR or FFDL",
			       position ? position : "");
	snprintf(t->phantom, sizeof(t->phantom), "%.31s", phantom ? phantom : "");
	return 0;
}

static int read_scales(const json_t *root, struct series_truth *t, struct err *err)
{
	t->size = number_or(root, "size", 1);
	t->water = number_or(root, "mu_water", NAN);
	t->taper = number_or(root, "taper", 0);
	t->step = number_or(root, "slice_mm", 1);
	t->slices = (int)number_or(root, "slices", 1);
	if (json_object_get(root, "origin_mm") && !read_numbers(root, "origin_mm", 3, t->origin))
		return err_set(err, EBADMSG, "origin_mm is not three numbers");
	if (!(t->size > 0) || (t->ct && !(t->water > 0)) || !(t->step > 0) || t->slices < 1 || !(t->taper >= 0 && t->taper < 1))
		return err_set(err, EBADMSG, "size %g, mu_water %g, slice_mm %g, slices %d, taper %g: one of them is impossible",
			       t->size, t->water, t->step, t->slices, t->taper);
	return 0;
}

static int read_background(const json_t *root, struct series_truth *t, struct err *err)
{
	const json_t *list = json_object_get(root, "background_mm");

	t->n_background = json_array_size(list);
	if (!list)
		return 0;
	t->background = calloc(t->n_background + 1, sizeof(*t->background));
	for (size_t i = 0; t->background && i < t->n_background; i++)
		for (size_t c = 0; c < 2; c++) {
			const json_t *number = json_array_get(json_array_get(list, i), c);

			if (!json_is_number(number))
				return err_set(err, EBADMSG, "background_mm: circle %zu is not two numbers", i + 1);
			t->background[i][c] = json_number_value(number);
		}
	return t->background ? 0 : err_set(err, ENOMEM, "no memory for %zu circles", t->n_background);
}

int series_truth_read(const char *path, const struct image_series *s, struct series_truth *ret, struct err *err)
{
	struct series_truth t = {0};
	json_t *root = NULL;
	int rc = json_file_read(path, &root, err);
	json_t *shapes = json_object_get(root, "shapes");
	size_t n = json_array_size(shapes);

	if (rc == 0)
		rc = check_kind(root, s, &t, err);
	if (rc == 0)
		rc = read_scales(root, &t, err);
	if (rc == 0 && (n < 1 || n > SHAPES_MAX))
		rc = err_set(err, EBADMSG, "%zu shapes; allowed: 1 to %d", n, SHAPES_MAX);
	if (rc == 0) {
		t.shapes = calloc(n, sizeof(*t.shapes));
		rc = t.shapes ? 0 : err_set(err, ENOMEM, "no memory for %zu shapes", n);
	}
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = read_shape(json_array_get(shapes, i), i, &t, err);
	if (rc == 0)
		rc = read_background(root, &t, err);
	json_decref(root);
	if (rc < 0)
		series_truth_clear(&t);
	else
		*ret = t;
	return rc;
}

void series_truth_clear(struct series_truth *t)
{
	free(t->shapes);
	free(t->background);
	*t = (struct series_truth){0};
}

void series_truth_point(const struct series_truth *t, const double scan[3], double ret_patient[3])
{
	for (int c = 0; c < 3; c++)
		ret_patient[c] = t->origin[c] + scan[0] * t->axis[0][c] + scan[1] * t->axis[1][c] + scan[2] * t->axis[2][c];
}

/* ---- regions ---- */

/* Return 1: inside the shape by the margin, -1: outside by the margin, 0: near its edge. */
static int side_of(const struct truth_shape *s, const double at[3], double margin)
{
	double x = at[0] - s->c[0], y = at[1] - s->c[1], z = at[2] - s->c[2], turn = s->turn * M_PI / 180, out = 0;
	double u = x * cos(turn) + y * sin(turn), v = y * cos(turn) - x * sin(turn);
	bool inside = true, outside;

	if (s->kind == TRUTH_POLYGON) { /* corners go around from x towards y: normals point outwards */
		double far = -INFINITY;

		for (int i = 0; i < s->n_corners; i++) {
			const double *a = s->corner[i], *b = s->corner[(i + 1) % s->n_corners];

			far = fmax(far, ((b[1] - a[1]) * (at[0] - a[0]) - (b[0] - a[0]) * (at[1] - a[1])) /
						hypot(b[0] - a[0], b[1] - a[1]));
		}
		return far <= -margin ? 1 : far > margin ? -1 : 0;
	}
	for (int grown = 1; grown >= -1; grown -= 2) {
		double r[3] = {s->r[0] + grown * margin, s->r[1] + grown * margin, s->r[2] + grown * margin};
		bool in = r[0] > 0 && r[1] > 0 && r[2] > 0;

		out = in ? u * u / (r[0] * r[0]) + v * v / (r[1] * r[1]) : 2;
		if (s->kind == TRUTH_ELLIPSOID && in)
			out += z * z / (r[2] * r[2]);
		in = in && out <= 1 && (s->kind == TRUTH_ELLIPSOID || fabs(z) <= r[2]);
		if (grown > 0)
			outside = !in;
		else
			inside = in;
	}
	return inside ? 1 : outside ? -1 : 0;
}

/* Find the shape that a voxel belongs to, n: none of them, and its true value. -1: it is near an edge. */
static long owner_of(const struct series_truth *t, const double scan[3], double margin, double *ret_value)
{
	long owner = (long)t->n;

	*ret_value = 0;
	for (size_t i = 0; i < t->n; i++) {
		int side = side_of(&t->shapes[i], scan, margin);

		if (side == 0)
			return -1;
		if (side > 0) {
			owner = (long)i;
			*ret_value += t->shapes[i].value;
		}
	}
	if (t->ct)
		*ret_value = 1000 * (*ret_value / t->water - 1);
	return owner;
}

struct truth_sum {
	struct region_sum found, truth, error;
};

/* Scale of the phantom in the slice at z (axes of the scan). */
static double scale_at(const struct series_truth *t, double z)
{
	double slice = fmax(0, fmin(t->slices - 1, floor(z / t->step + t->slices / 2.0)));

	return 1 - t->taper * slice / t->slices;
}

static void add_voxel(const struct measured *m, const struct series_truth *t, double margin, const int at[3], double value,
		      struct truth_sum *sums)
{
	const struct image_series *s = m->s;
	double p[3], scan[3] = {0}, truth, scale, middle[2];
	long owner;

	series_point(s, at[0], at[1], at[2], p);
	for (int a = 0; a < 3; a++)
		for (int c = 0; c < 3; c++)
			scan[a] += (p[c] - t->origin[c]) * t->axis[a][c];
	scale = scale_at(t, scan[2]);
	for (int a = 0; a < 2; a++)
		scan[a] /= scale;
	owner = owner_of(t, scan, margin / scale, &truth);
	if (owner < 0)
		return;
	for (int a = 0; a < 2; a++) /* outside: only in the largest circle of the image */
		middle[a] = (at[a] - (s->n[a] - 1) / 2.0) / (s->n[a] / 2.0 - 1);
	if (owner == (long)t->n && !(hypot(middle[0], middle[1]) <= 1))
		return;
	region_add(&sums[owner].found, 1, value);
	region_add(&sums[owner].truth, 1, truth);
	region_add(&sums[owner].error, 1, value - truth);
}

static json_t *truth_json(const struct measured *m, const struct series_truth *t, size_t i, double margin,
			  const struct truth_sum *sum)
{
	const char *name = i < t->n ? t->shapes[i].name : "outside";
	bool comparable = !strcmp(m->s->units, t->ct ? "HU" : "BQML");
	json_t *root;

	if (sum->found.n < VOXELS_LEAST)
		return json_pack("{s:s, s:s, s:s}", "name", name, "shape", "truth", "left_out",
				 "fewer than 10 voxels are far enough from the edges");
	root = series_region_json(m, name, "truth", &sum->found);
	json_object_set_new(root, "margin_mm", json_real(margin));
	if (!comparable) {
		json_object_set_new(root, "true", json_null());
		return root;
	}
	json_object_set_new(root, "true", json_real(sum->truth.mean));
	json_object_set_new(root, "bias", json_real(sum->error.mean));
	json_object_set_new(root, "bias_percent",
			    t->ct || sum->truth.mean == 0 ? json_null() : series_number(100 * sum->error.mean / sum->truth.mean));
	json_object_set_new(root, "noise", series_number(region_sd(&sum->error)));
	return root;
}

int series_truth_regions(const struct measured *m, const struct series_truth *t, json_t *regions, struct err *err)
{
	const struct image_series *s = m->s;
	double margin = t->ct ? MARGIN_CT_PIXELS * fmax(s->spacing[0], s->spacing[1]) : MARGIN_PET;
	struct truth_sum *sums = calloc(t->n + 1, sizeof(*sums));
	int rc = sums ? 0 : err_set(err, ENOMEM, "no memory for %zu regions", t->n);

	for (int k = 0; rc == 0 && k < s->n[2]; k++) {
		const float *values = NULL;

		rc = image_series_slice(s, m->image, k, &values, err);
		for (int j = 0; rc == 0 && j < s->n[1]; j++)
			for (int i = 0; i < s->n[0]; i++)
				add_voxel(m, t, margin, (int[]){i, j, k}, (double)values[(size_t)j * (size_t)s->n[0] + (size_t)i],
					  sums);
	}
	for (size_t i = 0; rc == 0 && i <= t->n; i++)
		json_array_append_new(regions, truth_json(m, t, i, margin, &sums[i]));
	free(sums);
	return rc;
}

bool series_truth_uniform(const struct measured *m, const struct series_truth *t, struct series_request *ret)
{
	const struct truth_shape *s = &t->shapes[0];
	double extent = m->s->n[2] * m->s->spacing[2], along = 0, at[3], last;

	if (t->n != 1 || s->kind != TRUTH_CYLINDER || fabs(s->r[0] - s->r[1]) > 1e-6 || t->taper > 0)
		return false;
	for (int c = 0; c < 3; c++)
		along += t->axis[2][c] * m->s->normal[c];
	if (fabs(fabs(along) - 1) > 1e-3) /* the cylinder is not along the normal */
		return false;
	*ret = (struct series_request){.what = SERIES_UNIFORM, .diameter = 2 * s->r[0]};
	snprintf(ret->name, sizeof(ret->name), "%s", s->name);
	series_truth_point(t, s->c, ret->at);
	series_locate(m->s, ret->at, at);
	last = fmin(at[2], m->s->n[2] - 1 - at[2]); /* slices to the nearer end of the series */
	ret->length = fmin(extent, 2 * fmin(last * m->s->spacing[2], s->r[2] - MARGIN_PET));
	return last >= 0 && ret->length >= 0;
}
