/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_phantom.c - phantoms of parallel beams: shapes, chords, true image, noise.
 *
 * Ellipse (Kak & Slaney 1988, section 3.1): at distance s from its middle along direction theta - turn it has the chord 2 a b
 * sqrt(A^2 - s^2) / A^2, A^2 = a^2 cos^2 + b^2 sin^2. Polygon: the ray is clipped by the half planes of its edges. */
#include "recon/phantom/parallel_phantom.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/core/scan.h"
#include "recon/phantom/poisson.h"

#define SIDE_MAX 10000.0 /* mm */
#define SAMPLES_MAX 64
#define ALONG 1e-12 /* a ray and an edge are parallel if the sine of the angle between them is below this */

/* The ellipses as in the publication, in units of half a side, y up: centre, half axes, angle in degrees from x towards y. */
static const struct {
	double x, y, a, b, turn, modified, original;
} shepp_logan[] = {
	{0, 0, 0.69, 0.92, 0, 1, 2},
	{0, -0.0184, 0.6624, 0.874, 0, -0.8, -0.98},
	{0.22, 0, 0.11, 0.31, -18, -0.2, -0.02},
	{-0.22, 0, 0.16, 0.41, 18, -0.2, -0.02},
	{0, 0.35, 0.21, 0.25, 0, 0.1, 0.01},
	{0, 0.1, 0.046, 0.046, 0, 0.1, 0.01},
	{0, -0.1, 0.046, 0.046, 0, 0.1, 0.01},
	{-0.08, -0.605, 0.046, 0.023, 0, 0.1, 0.01},
	{0, -0.605, 0.023, 0.023, 0, 0.1, 0.01},
	{0.06, -0.605, 0.023, 0.046, 0, 0.1, 0.01},
};
#define SHAPES_MAX (sizeof(shepp_logan) / sizeof(shepp_logan[0]))

const char *const parallel_phantom_names[] = {"circle", "square", "triangle", "shepp-logan", "head", NULL};

const char *parallel_phantom_name(enum parallel_phantom_kind kind)
{
	return kind >= PARALLEL_PHANTOM_CIRCLE && kind <= PARALLEL_PHANTOM_HEAD ? parallel_phantom_names[kind - 1] : NULL;
}

static void add_polygon(struct parallel_phantom *p, double half, const double (*corner)[2], int n)
{
	struct parallel_shape *s = &p->shapes[p->n++];

	*s = (struct parallel_shape){.n_corners = n, .mu = PARALLEL_WATER};
	for (int i = 0; i < n; i++)
		for (int c = 0; c < 2; c++)
			s->corner[i][c] = half * corner[i][c];
}

static void add_head(struct parallel_phantom *p, double half, bool original)
{
	for (size_t i = 0; i < SHAPES_MAX; i++)
		p->shapes[p->n++] = (struct parallel_shape){
			.c = {half * shepp_logan[i].x, -half * shepp_logan[i].y},
			.r = {half * shepp_logan[i].a, half * shepp_logan[i].b},
			.turn = -shepp_logan[i].turn,
			.mu = PARALLEL_WATER * (original ? shepp_logan[i].original : shepp_logan[i].modified),
		};
}

int parallel_phantom_create(enum parallel_phantom_kind kind, double side, struct parallel_phantom **ret_phantom, struct err *err)
{
	static const double square[4][2] = {{-0.5, -0.5}, {0.5, -0.5}, {0.5, 0.5}, {-0.5, 0.5}};
	static const double triangle[3][2] = {{-0.55, 0.5}, {0, -0.6}, {0.55, 0.5}};
	double half = side / 2;
	struct parallel_phantom *p;

	if (!parallel_phantom_name(kind))
		return err_set(err, EINVAL, "parallel phantom: kind %d", (int)kind);
	if (!(side > 0 && side <= SIDE_MAX))
		return err_set(err, EINVAL, "parallel phantom: a side of %g mm, not in (0, %g]", side, SIDE_MAX);
	p = calloc(1, sizeof(*p));
	if (p)
		p->shapes = calloc(SHAPES_MAX, sizeof(*p->shapes));
	if (!p || !p->shapes) {
		parallel_phantom_free(p);
		return err_set(err, ENOMEM, "parallel phantom: no memory for %zu shapes", SHAPES_MAX);
	}
	switch (kind) {
	case PARALLEL_PHANTOM_CIRCLE:
		p->shapes[p->n++] = (struct parallel_shape){.r = {0.6 * half, 0.6 * half}, .mu = PARALLEL_WATER};
		break;
	case PARALLEL_PHANTOM_SQUARE:
		add_polygon(p, half, square, 4);
		break;
	case PARALLEL_PHANTOM_TRIANGLE:
		add_polygon(p, half, triangle, 3);
		break;
	default:
		add_head(p, half, kind == PARALLEL_PHANTOM_HEAD);
		break;
	}
	*ret_phantom = p;
	return 0;
}

struct parallel_phantom *parallel_phantom_free(struct parallel_phantom *p)
{
	if (p)
		free(p->shapes);
	free(p);
	return NULL;
}

/* Compute edge i of a polygon: its unit normal, which points outward because corners go around from x towards y; inside is normal
 * * (x, y) <= at. */
static void edge_of(const struct parallel_shape *s, int i, double ret_normal[2], double *ret_at)
{
	const double *a = s->corner[i], *b = s->corner[(i + 1) % s->n_corners];
	double length = hypot(b[0] - a[0], b[1] - a[1]);

	ret_normal[0] = (b[1] - a[1]) / length;
	ret_normal[1] = (a[0] - b[0]) / length;
	*ret_at = ret_normal[0] * a[0] + ret_normal[1] * a[1];
}

static bool contains_point(const struct parallel_shape *s, double x, double y)
{
	double turn[2], u, v;

	for (int i = 0; i < s->n_corners; i++) {
		double normal[2], at;

		edge_of(s, i, normal, &at);
		if (normal[0] * x + normal[1] * y > at)
			return false;
	}
	if (s->n_corners)
		return true;
	scan_turn(s->turn, turn);
	u = ((x - s->c[0]) * turn[0] + (y - s->c[1]) * turn[1]) / s->r[0];
	v = ((y - s->c[1]) * turn[0] - (x - s->c[0]) * turn[1]) / s->r[1];
	return u * u + v * v <= 1;
}

double parallel_phantom_value(const struct parallel_phantom *p, double x, double y)
{
	double mu = 0;

	for (size_t i = 0; i < p->n; i++)
		if (contains_point(&p->shapes[i], x, y))
			mu += p->shapes[i].mu;
	return mu;
}

static double ellipse_chord(const struct parallel_shape *s, const double turn[2], double at)
{
	double own[2], c, d, reach2, left;

	scan_turn(s->turn, own);
	c = s->r[0] * (turn[0] * own[0] + turn[1] * own[1]);
	d = s->r[1] * (turn[1] * own[0] - turn[0] * own[1]);
	reach2 = c * c + d * d;
	at -= s->c[0] * turn[0] + s->c[1] * turn[1];
	left = reach2 - at * at;
	return left > 0 ? 2 * s->r[0] * s->r[1] * sqrt(left) / reach2 : 0;
}

/* Return the chord; the ray is at * (cos, sin) + t (-sin, cos). */
static double polygon_chord(const struct parallel_shape *s, const double turn[2], double at)
{
	double from = -HUGE_VAL, to = HUGE_VAL, share = 1;

	for (int i = 0; i < s->n_corners; i++) {
		double normal[2], limit, along, left;

		edge_of(s, i, normal, &limit);
		along = normal[1] * turn[0] - normal[0] * turn[1];
		left = limit - at * (normal[0] * turn[0] + normal[1] * turn[1]);
		if (fabs(along) < ALONG) {
			double same = ALONG * (fabs(limit) + fabs(at));

			share = fabs(left) <= same ? 0.5 : left < 0 ? 0 : share;
		} else if (along > 0) {
			to = fmin(to, left / along);
		} else {
			from = fmax(from, left / along);
		}
	}
	return share > 0 && to > from ? share * (to - from) : 0;
}

double parallel_phantom_line(const struct parallel_phantom *p, const double turn[2], double s)
{
	double sum = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct parallel_shape *shape = &p->shapes[i];

		sum += shape->mu * (shape->n_corners ? polygon_chord(shape, turn, s) : ellipse_chord(shape, turn, s));
	}
	return sum;
}

static int check_taper(double taper, struct err *err)
{
	return taper >= 0 && taper < 1 ? 0 : err_set(err, EINVAL, "parallel phantom: taper %g, not in [0, 1)", taper);
}

int parallel_phantom_project(const struct parallel_phantom *p, const struct parallel_scan *s, double taper, float *ret_lines,
			     struct err *err)
{
	size_t n_v = (size_t)s->n_radial, n_views = (size_t)s->n_angles;
	int r = parallel_check(s, err);

	if (r < 0 || (r = check_taper(taper, err)) < 0)
		return r;
#pragma omp parallel for collapse(2) schedule(dynamic, 8)
	for (int k = 0; k < s->n_slices; k++) {
		for (int a = 0; a < s->n_angles; a++) {
			float *to = ret_lines + ((size_t)k * n_views + (size_t)a) * n_v;
			double scale = 1 - taper * k / s->n_slices, turn[2];

			if (k > 0 && taper == 0)
				continue;
			scan_turn(parallel_angle(s, a), turn);
			for (int t = 0; t < s->n_radial; t++)
				to[t] = (float)(scale * parallel_phantom_line(p, turn, parallel_radius(s, t) / scale));
		}
	}
	for (size_t k = 1; taper == 0 && k < (size_t)s->n_slices; k++)
		memcpy(ret_lines + k * n_views * n_v, ret_lines, n_views * n_v * sizeof(*ret_lines));
	return 0;
}

int parallel_phantom_draw(const struct parallel_phantom *p, const struct grid *grid, double taper, int samples, float *ret_volume,
			  struct err *err)
{
	size_t n_x = (size_t)grid->n[0], n_y = (size_t)grid->n[1];
	int r = check_taper(taper, err);

	if (r < 0)
		return r;
	if (samples < 1 || samples > SAMPLES_MAX)
		return err_set(err, EINVAL, "parallel phantom: %d samples of a pixel; allowed: 1 to %d", samples, SAMPLES_MAX);
#pragma omp parallel for collapse(2) schedule(dynamic, 8)
	for (int k = 0; k < grid->n[2]; k++) {
		for (int j = 0; j < grid->n[1]; j++) {
			double scale = 1 - taper * k / grid->n[2], step = 1.0 / samples;

			for (int i = 0; i < grid->n[0]; i++) {
				double sum = 0;

				for (int b = 0; b < samples; b++)
					for (int a = 0; a < samples; a++)
						sum += parallel_phantom_value(
							p, (grid->lo[0] + (i + (a + 0.5) * step) * grid->h[0]) / scale,
							(grid->lo[1] + (j + (b + 0.5) * step) * grid->h[1]) / scale);
				ret_volume[((size_t)k * n_y + (size_t)j) * n_x + (size_t)i] = (float)(sum * step * step);
			}
		}
	}
	return 0;
}

int parallel_phantom_noise(float *lines, size_t n, size_t first, double i0, uint64_t seed, struct err *err)
{
	size_t bad = SIZE_MAX;

	if (!(i0 > 0 && i0 <= POISSON_MEAN_MAX))
		return err_set(err, EINVAL, "parallel phantom: %g photons per bin, not in (0, %g]", i0, POISSON_MEAN_MAX);
#pragma omp parallel for schedule(dynamic, 4096) reduction(min : bad)
	for (size_t i = 0; i < n; i++) {
		double mean = i0 * exp(-(double)lines[i]), count;

		if (!(mean >= 0 && mean <= POISSON_MEAN_MAX)) {
			bad = i < bad ? i : bad;
			continue;
		}
		count = poisson_draw(mean, poisson_stream(seed, first + i));
		lines[i] = (float)-log(fmax(count, 0.5) / i0);
	}
	if (bad != SIZE_MAX)
		return err_set(err, EINVAL, "parallel phantom: line integral %g in bin %zu", (double)lines[bad], first + bad);
	return 0;
}
