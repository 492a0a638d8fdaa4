/* SPDX-License-Identifier: Apache-2.0 */
/* open_field.c - the factor of the open field, see open_field.h. With d the vector from the source to the bin and n the
 * detector's normal, cos theta / r^2 = (n . d) / |d|^3, and n . d is the same for all bins of a view. */
#include "recon/dbt/open_field.h"

#include <math.h>

bool open_field_is_uniform(const struct open_field *f)
{
	return !f->distance && f->slope[0] == 0 && f->slope[1] == 0;
}

static double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Return the distance of the source from the detector's plane. */
static double source_height(const struct open_field *f)
{
	const double *a = f->step_u, *b = f->step_v;
	double n[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};

	return fabs(dot(n, f->from)) / sqrt(dot(n, n));
}

struct open_field open_field_of_distance(const struct scan *scan, const struct scan_view *view, const double rest[3])
{
	struct open_field f = {.distance = true, .rest_step = {scan->h[0], scan->h[1]}};
	double bin[3], next_u[3], next_v[3];

	scan_bin_at(scan, view, 0, 0, bin);
	scan_bin_at(scan, view, 1, 0, next_u);
	scan_bin_at(scan, view, 0, 1, next_v);
	for (int c = 0; c < 3; c++) {
		f.from[c] = bin[c] - view->src[c];
		f.step_u[c] = next_u[c] - bin[c];
		f.step_v[c] = next_v[c] - bin[c];
		f.rest_from[c] = (c < 2 ? scan->lo[c] + 0.5 * scan->h[c] : 0) - rest[c];
	}
	f.scale = source_height(&f) / rest[2];
	return f;
}

void open_field_set_slope(const struct scan *scan, const double slope[2], struct open_field *field)
{
	for (int c = 0; c < 2; c++)
		field->slope[c] = slope[c] * scan->h[c];
	field->middle[0] = (scan->n_u - 1) / 2.0;
	field->middle[1] = (scan->n_v - 1) / 2.0;
}

/* Multiply by scale * (r0^2 / r^2)^(3/2); both squares are polynomials of second degree in u. */
static void multiply_distance(const struct open_field *f, double u, double step, double v, int n, double *factor)
{
	double d[3], a, b, c = dot(f->step_u, f->step_u);
	double x = f->rest_from[0], y = f->rest_from[1] + v * f->rest_step[1], z = f->rest_from[2], h = f->rest_step[0];

	for (int i = 0; i < 3; i++)
		d[i] = f->from[i] + v * f->step_v[i];
	a = dot(d, d);
	b = 2 * dot(d, f->step_u);
	for (int i = 0; i < n; i++) {
		double at = u + i * step, away = x + at * h;
		double ratio = (away * away + y * y + z * z) / (a + at * (b + at * c));

		factor[i] *= f->scale * ratio * sqrt(ratio);
	}
}

void open_field_row(const struct open_field *f, double u, double step, double v, int n, double *ret_factor)
{
	for (int i = 0; i < n; i++)
		ret_factor[i] = 1;
	if (f->distance)
		multiply_distance(f, u, step, v, n, ret_factor);
	if (f->slope[0] == 0 && f->slope[1] == 0)
		return;
	for (int i = 0; i < n; i++)
		ret_factor[i] *= exp(f->slope[0] * (u + i * step - f->middle[0]) + f->slope[1] * (v - f->middle[1]));
}
