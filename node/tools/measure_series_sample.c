/* SPDX-License-Identifier: Apache-2.0 */
/* measure_series_sample.c - take the values of circles, spheres and squares from a series, with partial pixels. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "node/tools/measure_series_internal.h"

void series_locate(const struct image_series *s, const double patient[3], double ret_at[3])
{
	const double *axis[3] = {s->across, s->down, s->normal};

	for (int a = 0; a < 3; a++) {
		ret_at[a] = 0;
		for (int c = 0; c < 3; c++)
			ret_at[a] += (patient[c] - s->corner[c]) * axis[a][c];
		ret_at[a] /= s->spacing[a];
	}
}

void series_point(const struct image_series *s, double column, double row, double slice, double ret_patient[3])
{
	for (int c = 0; c < 3; c++)
		ret_patient[c] = s->corner[c] + column * s->spacing[0] * s->across[c] + row * s->spacing[1] * s->down[c] +
				 slice * s->spacing[2] * s->normal[c];
}

int series_slice_at(const struct image_series *s, const double patient[3], const char *name, int *ret_slice, struct err *err)
{
	double at[3];

	series_locate(s, patient, at);
	if (!(at[2] >= -0.5 && at[2] <= s->n[2] - 0.5))
		return err_set(err, EBADMSG, "%s is at slice %.1f, outside the series of %d slices: its centre is %g, %g, %g mm",
			       name, at[2] + 1, s->n[2], patient[0], patient[1], patient[2]);
	*ret_slice = (int)fmin(s->n[2] - 1, fmax(0, floor(at[2] + 0.5)));
	return 0;
}

/* Add a slice of a region: the area of each pixel between lo and hi that part() returns is its weight. The box is in mm from
 * the centre of the first pixel. */
struct cut {
	double middle[2], half[2]; /* centre; half sides of its bounding box */
	double radius;		   /* circle or sphere; 0: the box itself */
	double z[2];		   /* sphere: lower and upper face of the slice from its centre; equal: a circle */
};

static double part_of(const struct cut *c, const double lo[2], const double hi[2])
{
	double sides[2];

	if (c->z[1] > c->z[0])
		return sphere_volume(c->radius, (double[]){lo[0], lo[1], c->z[0]}, (double[]){hi[0], hi[1], c->z[1]}) /
		       (c->z[1] - c->z[0]);
	if (c->radius > 0)
		return circle_area(c->radius, lo, hi);
	for (int a = 0; a < 2; a++)
		sides[a] = fmax(0, fmin(hi[a], c->half[a]) - fmax(lo[a], -c->half[a]));
	return sides[0] * sides[1];
}

static int add_cut(const struct measured *m, int slice, const struct cut *c, const char *name, struct region_sum *sum,
		   struct err *err)
{
	const struct image_series *s = m->s;
	const float *values = NULL;
	int first[2], last[2], rc;

	for (int a = 0; a < 2; a++) {
		double low = (c->middle[a] - c->half[a]) / s->spacing[a], high = (c->middle[a] + c->half[a]) / s->spacing[a];

		if (!(low >= -0.5 - 1e-6 && high <= s->n[a] - 0.5 + 1e-6))
			return err_set(err, EBADMSG, "%s extends beyond the image: %s %.1f to %.1f of %d", name,
				       a ? "rows" : "columns", low + 1, high + 1, s->n[a]);
		first[a] = (int)fmax(0, floor(low + 0.5));
		last[a] = (int)fmin(s->n[a] - 1, floor(high + 0.5));
	}
	rc = image_series_slice(s, m->image, slice, &values, err);
	for (int j = first[1]; rc == 0 && j <= last[1]; j++)
		for (int i = first[0]; i <= last[0]; i++) {
			double lo[2] = {(i - 0.5) * s->spacing[0] - c->middle[0], (j - 0.5) * s->spacing[1] - c->middle[1]};
			double hi[2] = {lo[0] + s->spacing[0], lo[1] + s->spacing[1]};
			double part = part_of(c, lo, hi) / (s->spacing[0] * s->spacing[1]);

			region_add(sum, part > 1e-9 ? part : 0, (double)values[(size_t)j * (size_t)s->n[0] + (size_t)i]);
		}
	return rc;
}

int series_circle(const struct measured *m, const double at[3], int slice, double diameter, const char *name,
		  struct region_sum *sum, struct err *err)
{
	struct cut c = {.radius = diameter / 2, .half = {diameter / 2, diameter / 2}};
	double place[3];

	series_locate(m->s, at, place);
	for (int a = 0; a < 2; a++)
		c.middle[a] = place[a] * m->s->spacing[a];
	return add_cut(m, slice, &c, name, sum, err);
}

int series_sphere(const struct measured *m, const double at[3], double diameter, const char *name, struct region_sum *sum,
		  struct err *err)
{
	const struct image_series *s = m->s;
	double place[3], radius = diameter / 2;
	int first, last, rc = 0;

	series_locate(s, at, place);
	first = (int)floor(place[2] - radius / s->spacing[2] + 0.5);
	last = (int)ceil(place[2] + radius / s->spacing[2] - 0.5);
	if (first < 0 || last > s->n[2] - 1)
		return err_set(err, EBADMSG, "%s extends beyond the image: slices %d to %d of %d", name, first + 1, last + 1,
			       s->n[2]);
	for (int k = first; rc == 0 && k <= last; k++) {
		struct cut c = {.radius = radius,
				.half = {radius, radius},
				.middle = {place[0] * s->spacing[0], place[1] * s->spacing[1]}};

		c.z[0] = (k - 0.5 - place[2]) * s->spacing[2];
		c.z[1] = (k + 0.5 - place[2]) * s->spacing[2];
		rc = add_cut(m, k, &c, name, sum, err);
	}
	return rc;
}

int series_rectangle(const struct measured *m, int slice, const double centre[2], const double half[2], const char *name,
		     struct region_sum *sum, struct err *err)
{
	struct cut c = {.middle = {centre[0], centre[1]}, .half = {half[0], half[1]}};

	return add_cut(m, slice, &c, name, sum, err);
}

int series_check_values(const struct measured *m, struct err *err)
{
	const struct image_series *s = m->s;
	size_t n = (size_t)s->n[0] * (size_t)s->n[1];

	for (int k = 0; k < s->n[2]; k++) {
		const float *values = NULL;
		int rc = image_series_slice(s, m->image, k, &values, err);

		if (rc < 0)
			return rc;
		for (size_t i = 0; i < n; i++)
			if (!isfinite(values[i]))
				return err_set(err, EBADMSG, "slice %d, column %zu, row %zu has the value %g", k + 1,
					       i % (size_t)s->n[0] + 1, i / (size_t)s->n[0] + 1, (double)values[i]);
	}
	return 0;
}

json_t *series_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

json_t *series_region_json(const struct measured *m, const char *name, const char *shape, const struct region_sum *sum)
{
	const struct image_series *s = m->s;
	double voxel = s->spacing[0] * s->spacing[1] * s->spacing[2] / 1000;
	json_t *root = json_pack("{s:s, s:s, s:f, s:o, s:f, s:o, s:f, s:f}", "name", name, "shape", shape, "voxels", sum->weight,
				 "volume_ml", !strcmp(shape, "circle") ? json_null() : series_number(sum->weight * voxel), "mean",
				 sum->mean, "sd", series_number(region_sd(sum)), "min", sum->min, "max", sum->max);

	if (m->suv && isfinite(m->suv->factor)) {
		json_object_set_new(root, "suv_mean", series_number(sum->mean * m->suv->factor));
		json_object_set_new(root, "suv_sd", series_number(region_sd(sum) * m->suv->factor));
		json_object_set_new(root, "suv_max", series_number(sum->max * m->suv->factor));
	}
	return root;
}
