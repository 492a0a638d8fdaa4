/* SPDX-License-Identifier: Apache-2.0 */
/* phantom.c - analytic phantoms and their exact line integrals, computed by chord() of recon/phantom/phantom_body.h. */
#include "recon/phantom/phantom.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "recon/phantom/phantom_body.h"
#include "recon/phantom/poisson.h"

#define BLOCK 256 /* bins processed together */

double phantom_value(const struct phantom *p, const double at[3])
{
	double mu = 0;

	for (size_t k = 0; k < p->n; k++) {
		struct body s;
		double q = 0;
		bool inside = true;

		body_set(&p->shapes[k], &s);
		for (int i = 0; i < 3; i++) {
			double o = s.w[i] * (at[i] - s.c[i]);

			q += o * o;
			inside = inside && at[i] >= s.lo[i] && at[i] <= s.hi[i];
		}
		if (inside && q <= 1)
			mu += s.mu;
	}
	return mu;
}

/* The bins whose rays may cross the shape, u0 <= u < u1, v0 <= v < v1: the shadow of the box around it on the detector. If the
 * box is below the source, it is the hull of the shadows of the box's corners; else it is every bin. Parts below z = 0 have no
 * shadow.
 */
struct shadow {
	int u0, u1, v0, v1;
};

static int to_bin(double at, double lo, double h, int n, int margin)
{
	double bin = floor((at - lo) / h) + margin;

	return bin < 0 ? 0 : bin > n ? n : (int)bin;
}

static struct shadow shadow_of(const struct shape *s, const struct scan *scan, const struct scan_view *view)
{
	struct shadow all = {0, scan->n_u, 0, scan->n_v};
	double lo[2] = {FAR, FAR}, hi[2] = {-FAR, -FAR};
	double corner[3];

	for (int i = 0; i < 8; i++) {
		for (int c = 0; c < 3; c++)
			corner[c] = s->c[c] + (i >> c & 1 ? s->r[c] : -s->r[c]);
		if (s->kind == SHAPE_BREAST)
			corner[0] = larger_of(corner[0], 0);
		corner[2] = larger_of(corner[2], 0);
		if (!(corner[2] < view->src[2]))
			return all;
		if (view->posed) {
			double foot[2];

			if (!scan_foot(scan, view, corner, foot))
				return all;
			for (int c = 0; c < 2; c++) {
				lo[c] = smaller_of(lo[c], foot[c]);
				hi[c] = larger_of(hi[c], foot[c]);
			}
			continue;
		}
		double scale = view->src[2] / (view->src[2] - corner[2]);
		for (int c = 0; c < 2; c++) {
			double at = view->src[c] + (corner[c] - view->src[c]) * scale;

			lo[c] = smaller_of(lo[c], at);
			hi[c] = larger_of(hi[c], at);
		}
	}
	if (view->posed)
		return (struct shadow){to_bin(lo[0], -0.5, 1, scan->n_u, -1), to_bin(hi[0], -0.5, 1, scan->n_u, 2),
				       to_bin(lo[1], -0.5, 1, scan->n_v, -1), to_bin(hi[1], -0.5, 1, scan->n_v, 2)};
	/* One bin more on each side, so that rounding cannot remove a ray. */
	return (struct shadow){
		to_bin(lo[0], scan->lo[0] + view->shift[0], scan->h[0], scan->n_u, -1),
		to_bin(hi[0], scan->lo[0] + view->shift[0], scan->h[0], scan->n_u, 2),
		to_bin(lo[1], scan->lo[1] + view->shift[1], scan->h[1], scan->n_v, -1),
		to_bin(hi[1], scan->lo[1] + view->shift[1], scan->h[1], scan->n_v, 2),
	};
}

/* Compute bins u0..u0+n-1 (n <= BLOCK) of row v, whose centres have the same y and z. */
static void project_block(const struct body *bodies, const struct shadow *shadows, size_t n_bodies, const struct scan *scan,
			  const struct scan_view *view, int v, int u0, int n, float *ret)
{
	double a[3] = {view->src[0], view->src[1], view->src[2]};
	double x[BLOCK], sum[BLOCK];
	double b[3] = {0, 0, 0};

	for (int i = 0; i < n; i++) {
		scan_ray(scan, view, u0 + i, v, a, b);
		x[i] = b[0] - a[0];
		sum[i] = 0;
	}
	double dy = b[1] - a[1], dz = b[2] - a[2];
	for (size_t k = 0; k < n_bodies; k++) {
		const struct shadow *sh = &shadows[k];
		const struct body s = bodies[k];
		int from = sh->u0 > u0 ? sh->u0 - u0 : 0;
		int to = sh->u1 < u0 + n ? sh->u1 - u0 : n;

		if (v < sh->v0 || v >= sh->v1)
			continue;
		for (int i = from; i < to; i++) {
			double d[3] = {x[i], dy, dz};

			sum[i] += s.mu * chord_length(&s, a, d);
		}
	}
	for (int i = 0; i < n; i++)
		ret[i] = (float)(sum[i] * sqrt(x[i] * x[i] + dy * dy + dz * dz));
}

int phantom_project(const struct phantom *p, const struct scan *scan, int view, float *ret_line, struct err *err)
{
	if (scan->kind != SCAN_DBT)
		return err_set(err, ENOTSUP, "phantom: scan kind %d has no rays to project along", (int)scan->kind);
	if (view < 0 || view >= scan->n_views)
		return err_set(err, EINVAL, "phantom: view %d of %d", view, scan->n_views);

	const struct scan_view *at = &scan->views[view];
	struct body *bodies = calloc(p->n + 1, sizeof *bodies);
	struct shadow *shadows = calloc(p->n + 1, sizeof *shadows);
	bool straight = !at->posed || (at->pose.step_u[1] == 0 && at->pose.step_u[2] == 0);
	int block = straight ? BLOCK : 1, r = 0;

	if (!bodies || !shadows) {
		r = err_set(err, ENOMEM, "phantom: no memory for %zu shapes", p->n);
		goto out;
	}
	for (size_t k = 0; k < p->n; k++) {
		body_set(&p->shapes[k], &bodies[k]);
		shadows[k] = shadow_of(&p->shapes[k], scan, at);
	}
#pragma omp parallel for schedule(dynamic, 16)
	for (int v = 0; v < scan->n_v; v++)
		for (int u = 0; u < scan->n_u; u += block) {
			int n = scan->n_u - u < block ? scan->n_u - u : block;

			project_block(bodies, shadows, p->n, scan, at, v, u, n,
				      ret_line + (size_t)v * (size_t)scan->n_u + (size_t)u);
		}
out:
	free(bodies);
	free(shadows);
	return r;
}

int phantom_counts(const float *line, size_t n, double i0, uint64_t seed, int noise, int max_value, uint16_t *ret_counts,
		   struct err *err)
{
	size_t bad = SIZE_MAX;

	if (!(i0 > 0) || !(i0 <= POISSON_MEAN_MAX))
		return err_set(err, EINVAL, "phantom: unattenuated counts %g, not in (0, %g]", i0, POISSON_MEAN_MAX);
	if (max_value < 1 || max_value > UINT16_MAX)
		return err_set(err, EINVAL, "phantom: largest count %d, not in 1..65535", max_value);
#pragma omp parallel for schedule(dynamic, 4096) reduction(min : bad)
	for (size_t i = 0; i < n; i++) {
		double mean = i0 * exp(-(double)line[i]);
		double count;

		if (!(mean >= 0)) {
			bad = i < bad ? i : bad;
			continue;
		}
		count = noise ? poisson_draw(mean, poisson_stream(seed, i)) : floor(mean + 0.5);
		ret_counts[i] = (uint16_t)(count < max_value ? count : max_value);
	}
	if (bad != SIZE_MAX)
		return err_set(err, EINVAL, "phantom: line integral %g in bin %zu", (double)line[bad], bad);
	return 0;
}

struct phantom *phantom_free(struct phantom *p)
{
	if (p)
		free(p->shapes);
	free(p);
	return NULL;
}

void phantom_grow_beads(struct phantom *p, double radius)
{
	for (size_t k = 0; k < p->n; k++) {
		struct shape *s = &p->shapes[k];

		if (s->role != ROLE_BEAD || s->r[0] >= radius)
			continue;
		s->mu *= s->r[0] / radius;
		s->r[0] = s->r[1] = s->r[2] = radius;
	}
}
