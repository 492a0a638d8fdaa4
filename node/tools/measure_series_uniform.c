/* SPDX-License-Identifier: Apache-2.0 */
/* measure_series_uniform.c - uniformity and noise of a uniform cylinder along the normal of the slices.
 *
 * - Five circles of a tenth of the diameter, in the middle and at four sides, 10 mm from the edge (IEC 61223-3-5): difference of
 *   each side to the middle.
 * - Squares of 10 mm inside 0.9 of the diameter (NEMA NU 2-1994; later editions have no uniformity): their means give
 *   the integral uniformity (max - min) / (max + min) of NEMA NU 1 and the coefficient of variation. For CT, 1000 is added to the
 *   values first, so that they are proportional to attenuation.
 * - Noise power spectrum of squares beside each other in the same 0.9 of the diameter (recon/core/regions.h). */
#include <errno.h>
#include <math.h>

#include "node/tools/measure_series_internal.h"

#define CIRCLE_PART 0.1 /* of the diameter */
#define CIRCLE_EDGE 10.0
#define SQUARE 10.0 /* mm */
#define INNER_PART 0.9
#define HU_OF_NOTHING (-1000.0)
#define NPS_SIDE_MAX 64
#define NPS_SIDE_MIN 8
#define TIE 1e-4 /* pixels: of two corners that are equally near, the second, whatever the rounding */

/* Where the cylinder is in the series. */
struct placed_cylinder {
	double middle[2]; /* mm from the centre of the first pixel */
	int first, last;  /* slices */
};

static int place_cylinder(const struct measured *m, const struct series_request *q, struct placed_cylinder *p, struct err *err)
{
	double at[3], half = q->length / 2 / m->s->spacing[2];
	int slice, rc = series_slice_at(m->s, q->at, q->name, &slice, err);

	if (rc < 0)
		return rc;
	series_locate(m->s, q->at, at);
	p->first = p->last = slice;
	if (q->length > 0) {
		p->first = (int)ceil(at[2] - half - 1e-6);
		p->last = (int)floor(at[2] + half + 1e-6);
		if (p->first < 0 || p->last >= m->s->n[2] || p->last < p->first)
			return err_set(err, EBADMSG, "%s: slices %d to %d of %d", q->name, p->first + 1, p->last + 1, m->s->n[2]);
	}
	for (int a = 0; a < 2; a++)
		p->middle[a] = at[a] * m->s->spacing[a];
	return 0;
}

/* ---- uniformity ---- */

static int five_circles(const struct measured *m, const struct series_request *q, const struct placed_cylinder *p,
			struct region_sum ret[5], struct err *err)
{
	static const int toward[5][2] = {{0, 0}, {1, 0}, {0, 1}, {-1, 0}, {0, -1}};
	double diameter = CIRCLE_PART * q->diameter, away = (q->diameter - diameter) / 2 - CIRCLE_EDGE;

	if (!(away > diameter))
		return err_set(err, EBADMSG, "%s: circles of %g mm at 10 mm from the edge need a diameter above %g mm, not %g",
			       q->name, diameter, 2 * CIRCLE_EDGE / (1 - 3 * CIRCLE_PART), q->diameter);
	for (int i = 0; i < 5; i++)
		for (int k = p->first; k <= p->last; k++) {
			double at[3];
			int rc;

			series_point(m->s, (p->middle[0] + toward[i][0] * away) / m->s->spacing[0],
				     (p->middle[1] + toward[i][1] * away) / m->s->spacing[1], k, at);
			rc = series_circle(m, at, k, diameter, q->name, &ret[i], err);
			if (rc < 0)
				return rc;
		}
	return 0;
}

/* Means of all squares of a slice. */
static int average_squares(const struct measured *m, const struct series_request *q, const struct placed_cylinder *p, int slice,
			   struct region_sum *ret, struct err *err)
{
	double radius = INNER_PART * q->diameter / 2;
	int reach = (int)(radius / SQUARE), rc = 0;

	for (int j = -reach; rc == 0 && j < reach; j++)
		for (int i = -reach; rc == 0 && i < reach; i++) {
			double x = (i + 0.5) * SQUARE, y = (j + 0.5) * SQUARE;
			struct region_sum sum = {0};

			if (hypot(fabs(x) + SQUARE / 2, fabs(y) + SQUARE / 2) > radius)
				continue;
			rc = series_rectangle(m, slice, (double[]){p->middle[0] + x, p->middle[1] + y},
					      (double[]){SQUARE / 2, SQUARE / 2}, q->name, &sum, err);
			region_add(ret, 1, sum.mean);
		}
	return rc;
}

static int add_slices(const struct measured *m, const struct series_request *q, const struct placed_cylinder *p, json_t *root,
		      struct err *err)
{
	double base = m->s->ct ? HU_OF_NOTHING : 0, worst = 0, variation = 0;
	json_t *slices = json_array();
	size_t n = 0;
	int rc = 0;

	for (int k = p->first; rc == 0 && k <= p->last; k++) {
		struct region_sum sum = {0};
		double integral, cv;

		rc = average_squares(m, q, p, k, &sum, err);
		if (rc == 0 && sum.n < 4)
			rc = err_set(err, EBADMSG, "%s: %zu squares of 10 mm in 0.9 of a diameter of %g mm; needed: 4", q->name,
				     sum.n, q->diameter);
		if (rc == 0 && !(sum.min > base))
			rc = err_set(err, EBADMSG, "%s: the mean of a square in slice %d is %g; uniformity needs values above %g",
				     q->name, k + 1, sum.min, base);
		if (rc < 0)
			break;
		n = sum.n;
		integral = (sum.max - sum.min) / (sum.max + sum.min - 2 * base);
		cv = region_sd(&sum) / (sum.mean - base);
		worst = fmax(worst, integral);
		variation = fmax(variation, cv);
		json_array_append_new(slices, json_pack("{s:i, s:f, s:f, s:f}", "slice", k + 1, "mean", sum.mean,
							"integral_percent", 100 * integral, "cv_percent", 100 * cv));
	}
	json_object_set_new(root, "squares", json_integer((json_int_t)n));
	json_object_set_new(root, "integral_percent", json_real(100 * worst));
	json_object_set_new(root, "cv_percent", json_real(100 * variation));
	json_object_set_new(root, "slices", slices);
	return rc;
}

/* Add the factor by which the calibration of the series is wrong, from the mean of all squares. */
static void add_calibration(const struct series_activity *a, json_t *root)
{
	const json_t *slices = json_object_get(root, "slices"), *slice;
	double sum = 0, mean;
	size_t i;

	json_array_foreach((json_t *)slices, i, slice) sum += json_real_value(json_object_get(slice, "mean"));
	mean = sum / (double)json_array_size(slices);
	json_object_set_new(root, "calibration",
			    json_pack("{s:f, s:f, s:f, s:f, s:f}", "activity", a->at_start, "mean", mean, "ratio",
				      a->at_start / mean, "of_series", a->calibration, "factor",
				      a->calibration * a->at_start / mean));
}

int series_uniform(const struct measured *m, const struct series_request *q, json_t **ret, struct err *err)
{
	static const char *const names[] = {"middle", "+columns", "+rows", "-columns", "-rows"};
	struct region_sum sums[5] = {{0}};
	struct placed_cylinder p;
	double largest = 0;
	json_t *root, *sides;
	int rc = place_cylinder(m, q, &p, err);

	if (rc == 0)
		rc = five_circles(m, q, &p, sums, err);
	if (rc < 0)
		return rc;
	root = json_pack("{s:s, s:f, s:i, s:i, s:f, s:o}", "name", q->name, "diameter_mm", q->diameter, "first_slice",
			 p.first + 1, "last_slice", p.last + 1, "middle", sums[0].mean, "middle_sd",
			 series_number(region_sd(&sums[0])));
	sides = json_array();
	for (int i = 1; i < 5; i++) {
		double away = sums[i].mean - sums[0].mean;

		if (fabs(away) > fabs(largest))
			largest = away;
		json_array_append_new(sides,
				      json_pack("{s:s, s:f, s:f}", "name", names[i], "mean", sums[i].mean, "difference", away));
	}
	json_object_set_new(root, "sides", sides);
	json_object_set_new(root, "largest_difference", json_real(largest));
	json_object_set_new(root, "largest_difference_percent",
			    m->s->ct ? json_null() : series_number(100 * largest / sums[0].mean));
	rc = add_slices(m, q, &p, root, err);
	if (rc == 0 && m->activity)
		add_calibration(m->activity, root);
	if (rc < 0)
		json_decref(root);
	else
		*ret = root;
	return rc;
}

/* ---- noise power spectrum ---- */

/* Add the squares of side x side pixels beside each other, around the pixel corner nearest to the middle, whose corners are
 * inside the circle. */
static int add_squares(const struct measured *m, const struct placed_cylinder *p, double radius, struct noise_spectrum *spectrum,
		       struct err *err)
{
	const struct image_series *s = m->s;
	int side = spectrum->side, middle[2], reach[2];

	for (int a = 0; a < 2; a++) {
		middle[a] = (int)floor(p->middle[a] / s->spacing[a] + 1 + TIE);
		reach[a] = (int)(radius / s->spacing[a] / side) + 1;
	}
	for (int k = p->first; k <= p->last; k++) {
		const float *values = NULL;
		int rc = image_series_slice(s, m->image, k, &values, err);

		if (rc < 0)
			return rc;
		for (int j = -reach[1]; j < reach[1]; j++)
			for (int i = -reach[0]; i < reach[0]; i++) {
				int at[2] = {middle[0] + i * side, middle[1] + j * side};
				double far[2];

				for (int a = 0; a < 2; a++) { /* edge that is farther from the middle */
					double lo = (at[a] - 0.5) * s->spacing[a] - p->middle[a];

					far[a] = fmax(fabs(lo), fabs(lo + side * s->spacing[a]));
				}
				if (hypot(far[0], far[1]) <= radius && at[0] >= 0 && at[1] >= 0 && at[0] + side <= s->n[0] &&
				    at[1] + side <= s->n[1])
					noise_spectrum_add(spectrum, values + (size_t)at[1] * (size_t)s->n[0] + (size_t)at[0],
							   (size_t)s->n[0]);
			}
	}
	return 0;
}

static json_t *spectrum_json(const struct noise_spectrum *s, const struct series_request *q, const char *units)
{
	struct noise_bin bins[128];
	double sum = 0, moment = 0, top = 0, peak = 0;
	json_t *curve = json_array(), *root;
	char unit[64];

	noise_spectrum_rings(s, bins);
	for (int k = 0; k < s->side / 2; k++) {
		json_array_append_new(curve, json_pack("[f, f]", bins[k].frequency, bins[k].power));
		sum += bins[k].power;
		moment += bins[k].power * bins[k].frequency;
		if (bins[k].power > top) {
			top = bins[k].power;
			peak = bins[k].frequency;
		}
	}
	snprintf(unit, sizeof(unit), "(%s)^2 mm^2", units[0] ? units : "value");
	root = json_pack("{s:s, s:I, s:i, s:[f, f], s:s, s:f, s:f, s:f, s:f, s:o, s:o}", "name", q->name, "squares",
			 (json_int_t)s->n, "side_pixels", s->side, "pixel_mm", s->h[0], s->h[1], "unit", unit, "variance",
			 s->variance, "integral", noise_spectrum_integral(s), "sd", sqrt(s->variance), "peak_per_mm", peak,
			 "mean_per_mm", series_number(moment / sum), "curve", curve);
	return root;
}

int series_noise(const struct measured *m, const struct series_request *q, int side, json_t **ret, struct err *err)
{
	double radius = INNER_PART * q->diameter / 2, pixel = fmax(m->s->spacing[0], m->s->spacing[1]);
	struct noise_spectrum spectrum = {0};
	struct placed_cylinder p;
	int rc = place_cylinder(m, q, &p, err);

	if (side == 0) { /* the largest of which four fit around the middle, which is up to half a pixel from their corner */
		side = (int)((radius / M_SQRT2 - pixel) / pixel);
		side = side > NPS_SIDE_MAX ? NPS_SIDE_MAX : side - side % 2;
	}
	if (rc == 0 && side < NPS_SIDE_MIN)
		rc = err_set(err, EBADMSG,
			     "%s: squares of %d pixels of %g mm in 0.9 of a diameter of %g mm; a spectrum needs %d pixels",
			     q->name, side, pixel, q->diameter, NPS_SIDE_MIN);
	if (rc == 0)
		rc = noise_spectrum_create(side, m->s->spacing, &spectrum, err);
	if (rc == 0)
		rc = add_squares(m, &p, radius, &spectrum, err);
	if (rc == 0 && spectrum.n == 0)
		rc = err_set(err, EBADMSG, "%s: no square of %d pixels of %g mm fits into 0.9 of a diameter of %g mm", q->name,
			     side, pixel, q->diameter);
	if (rc == 0)
		*ret = spectrum_json(&spectrum, q, m->s->units);
	noise_spectrum_clear(&spectrum);
	return rc;
}
