/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_mc.c - photons that are scattered in a grid of attenuation; see scatter_mc.h for the physics and its sources.
 *
 * - A photon starts toward a random point of the beam's field with the weight of the unattenuated intensity there, cos / r^2.
 * - The optical depth along its path is summed in steps of STEP. A collision is sampled inside the object, and the weight
 *   multiplied by the probability 1 - exp(-depth) of any, and by the share of scatter in the attenuation.
 * - After each collision, the weight times exp(-depth) is added where the new direction meets the detector.
 * - The angles of both kinds of scatter are drawn from a table of their inverse distributions at 20 keV; the energy falls at each
 *   incoherent collision, and absorption rises with 1 / energy^3.
 * - Photons are counted in BATCHES with their own sums, which gives the standard deviation and does not depend on threads. */
#include "recon/phantom/scatter_mc.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/phantom/poisson.h"

#define SIDE 3.0  /* size of a voxel, mm, about */
#define SAMPLES 4 /* points per voxel and axis */
#define STEP 2.5  /* mm */
#define STEPS_MAX 256
#define ABSORBED 0.55	   /* share of absorption in the attenuation at 20 keV */
#define WAVELENGTH 0.61992 /* Angstrom, 20 keV */
#define ELECTRON_KEV 511.0
#define ANGLES 2048
#define COLLISIONS 12
#define BATCHES 32
#define WEIGHT_LEAST 1e-5

/* Scatter coefficients of two tissues, 1/mm. */
static const double adipose[] = {0.0456, 0.0169, 0.0063}, glandular[] = {0.0802, 0.0184, 0.0088};

struct detector {
	double corner[3], u[3], v[3], normal[3]; /* normal toward the source */
	double beam[4];
	int n_u, n_v, cell, columns, rows;
	int collisions;
};

struct photon {
	double at[3], d[3];
	double weight, kev;
	double mu; /* at its last collision, 20 keV */
	uint64_t stream;
};

/* Optical depth along a path: sum[i] at t0 + i step, n steps. */
struct path {
	int n;
	double t0, step, sum[STEPS_MAX + 1];
};

struct angles {
	float incoherent[ANGLES], coherent[ANGLES]; /* cosine at equal steps of probability */
};

/* ---- the object ---- */

static int create_grid(const double lo[3], const double hi[3], struct scatter_mc **ret, struct err *err)
{
	struct scatter_mc *m = calloc(1, sizeof(*m));

	for (int c = 0; m && c < 3; c++) {
		m->grid.n[c] = (int)fmax(1, ceil((hi[c] - lo[c]) / SIDE));
		m->grid.h[c] = (hi[c] - lo[c]) / m->grid.n[c];
		m->grid.lo[c] = lo[c];
	}
	if (m)
		m->mu = calloc(grid_size(&m->grid), sizeof(*m->mu));
	if (!m || !m->mu) {
		scatter_mc_free(m);
		return err_set(err, ENOMEM, "scatter: no memory for an object of %g x %g x %g mm", hi[0] - lo[0], hi[1] - lo[1],
			       hi[2] - lo[2]);
	}
	*ret = m;
	return 0;
}

struct scatter_mc *scatter_mc_free(struct scatter_mc *m)
{
	if (m)
		free(m->mu);
	free(m);
	return NULL;
}

int scatter_mc_of_phantom(const struct phantom *p, struct scatter_mc **ret_object, struct err *err)
{
	struct phantom bodies = {.shapes = calloc(p->n + 1, sizeof(struct shape))};
	double lo[3] = {0, 1e9, 1e9}, hi[3] = {0, -1e9, -1e9};
	struct scatter_mc *m = NULL;
	int rc = 0;

	if (!bodies.shapes)
		return err_set(err, ENOMEM, "scatter: no memory for %zu shapes", p->n);
	for (size_t k = 0; k < p->n; k++) {
		const struct shape *s = &p->shapes[k];

		if (s->role != ROLE_BODY)
			continue;
		bodies.shapes[bodies.n++] = *s;
		for (int c = 0; c < 3; c++) {
			lo[c] = c ? fmin(lo[c], s->c[c] - s->r[c]) : 0;
			hi[c] = fmax(hi[c], s->c[c] + s->r[c]);
		}
	}
	rc = bodies.n ? create_grid(lo, hi, &m, err) : err_set(err, EINVAL, "scatter: the phantom has no body");
#pragma omp parallel for schedule(dynamic, 1)
	for (int k = 0; k < (m ? m->grid.n[2] : 0); k++)
		for (int j = 0; j < m->grid.n[1]; j++)
			for (int i = 0; i < m->grid.n[0]; i++) {
				double sum = 0;

				for (int s = 0; s < SAMPLES * SAMPLES * SAMPLES; s++) {
					double at[3] = {i + (s % SAMPLES + 0.5) / SAMPLES,
							j + (s / SAMPLES % SAMPLES + 0.5) / SAMPLES,
							k + (s / SAMPLES / SAMPLES + 0.5) / SAMPLES};

					for (int c = 0; c < 3; c++)
						at[c] = m->grid.lo[c] + at[c] * m->grid.h[c];
					sum += phantom_value(&bodies, at);
				}
				m->mu[((size_t)k * (size_t)m->grid.n[1] + (size_t)j) * (size_t)m->grid.n[0] + (size_t)i] =
					(float)(sum / (SAMPLES * SAMPLES * SAMPLES));
			}
	free(bodies.shapes);
	if (rc == 0)
		*ret_object = m;
	return rc;
}

static int coarse_index(int i, double h, double h_coarse, int n_coarse)
{
	int c = (int)((i + 0.5) * h / h_coarse);

	return c < n_coarse ? c : n_coarse - 1;
}

int scatter_mc_of_voxels(const struct voxel_phantom *p, struct scatter_mc **ret_object, struct err *err)
{
	const struct grid *g = &p->grid;
	double hi[3];
	struct scatter_mc *m = NULL;
	int rc;

	for (int c = 0; c < 3; c++)
		hi[c] = g->lo[c] + g->n[c] * g->h[c];
	rc = create_grid(g->lo, hi, &m, err);
	if (rc < 0)
		return rc;
	double share = g->h[0] * g->h[1] * g->h[2] / (m->grid.h[0] * m->grid.h[1] * m->grid.h[2]);
	const uint8_t *voxel = p->voxel;

	for (int k = 0; k < g->n[2]; k++)
		for (int j = 0; j < g->n[1]; j++)
			for (int i = 0; i < g->n[0]; i++, voxel++) {
				size_t z = (size_t)coarse_index(k, g->h[2], m->grid.h[2], m->grid.n[2]);
				size_t y = (size_t)coarse_index(j, g->h[1], m->grid.h[1], m->grid.n[1]);
				size_t x = (size_t)coarse_index(i, g->h[0], m->grid.h[0], m->grid.n[0]);

				m->mu[(z * (size_t)m->grid.n[1] + y) * (size_t)m->grid.n[0] + x] +=
					(float)(p->material[*voxel].mu * share);
			}
	*ret_object = m;
	return 0;
}

/* ---- angles ---- */

/* Return the probability density of a cosine, not normalised. */
static double incoherent_density(double cosine)
{
	double x = sqrt((1 - cosine) / 2) / WAVELENGTH, k = 1 / (1 + SCATTER_MC_KEV / ELECTRON_KEV * (1 - cosine));

	return k * k * (k + 1 / k - 1 + cosine * cosine) * (1 - exp(-3.4 * pow(x, 1.08)));
}

static double coherent_density(double cosine)
{
	double x = sqrt((1 - cosine) / 2) / WAVELENGTH, f = 1 / (1 + x * x / 0.09);

	return (1 + cosine * cosine) * f * f * (1 - exp(-x * x / 0.01));
}

static void tabulate_angles(double (*density)(double), float ret[ANGLES])
{
	enum { STEPS = 20000 };
	double total = 0, sum = 0;
	int next = 0;

	for (int i = 0; i < STEPS; i++)
		total += density(1 - (i + 0.5) * 2 / STEPS);
	for (int i = 0; i < STEPS; i++) {
		double cosine = 1 - (i + 0.5) * 2 / STEPS;

		sum += density(cosine);
		while (next < ANGLES && sum >= (next + 0.5) / ANGLES * total)
			ret[next++] = (float)cosine;
	}
	while (next < ANGLES)
		ret[next++] = -1;
}

/* Turn a unit vector by an angle around a random axis. */
static void deflect_photon(double d[3], double cosine, double phi)
{
	double sine = sqrt(fmax(0, 1 - cosine * cosine)), a = sine * cos(phi), b = sine * sin(phi);
	double w = sqrt(fmax(0, 1 - d[2] * d[2])), x = d[0], y = d[1], z = d[2];

	if (w < 1e-6) {
		d[0] = a;
		d[1] = b;
		d[2] = z > 0 ? cosine : -cosine;
		return;
	}
	d[0] = x * cosine + (x * z * a - y * b) / w;
	d[1] = y * cosine + (y * z * a + x * b) / w;
	d[2] = z * cosine - w * a;
}

/* ---- paths ---- */

static double absorption_ratio(double kev)
{
	double r = SCATTER_MC_KEV / kev;

	return 1 + ABSORBED * (r * r * r - 1);
}

/* Return the attenuation at a point, given in voxels from the grid's corner; a point beside the grid is moved into it. */
static double mu_at(const struct scatter_mc *m, double x, double y, double z)
{
	const int *n = m->grid.n;
	int i = (int)x, j = (int)y, k = (int)z;

	i = i < 0 ? 0 : i < n[0] ? i : n[0] - 1;
	j = j < 0 ? 0 : j < n[1] ? j : n[1] - 1;
	k = k < 0 ? 0 : k < n[2] ? k : n[2] - 1;
	return (double)m->mu[((size_t)k * (size_t)n[1] + (size_t)j) * (size_t)n[0] + (size_t)i];
}

/* Return the part of a ray inside the grid's box. */
static void box_part(const struct scatter_mc *m, const double at[3], const double d[3], double *ret_t0, double *ret_t1)
{
	double t0 = 0, t1 = 1e9;

	for (int c = 0; c < 3; c++) {
		double inv = 1 / (fabs(d[c]) < 1e-12 ? 1e-12 : d[c]);
		double p = (m->grid.lo[c] - at[c]) * inv, q = (m->grid.lo[c] + m->grid.n[c] * m->grid.h[c] - at[c]) * inv;

		t0 = fmax(t0, fmin(p, q));
		t1 = fmin(t1, fmax(p, q));
	}
	*ret_t0 = t0;
	*ret_t1 = t1;
}

/* Sum the optical depth at 20 keV along a ray, in STEPS_MAX steps at most. */
static void sum_path(const struct scatter_mc *m, const double at[3], const double d[3], struct path *ret)
{
	double t1, x[3], dx[3], sum = 0;
	int n;

	ret->n = 0;
	ret->sum[0] = 0;
	box_part(m, at, d, &ret->t0, &t1);
	if (!(t1 > ret->t0))
		return;
	n = (int)fmin(ceil((t1 - ret->t0) / STEP), STEPS_MAX);
	ret->step = (t1 - ret->t0) / n;
	for (int c = 0; c < 3; c++) {
		x[c] = (at[c] + (ret->t0 + 0.5 * ret->step) * d[c] - m->grid.lo[c]) / m->grid.h[c];
		dx[c] = ret->step * d[c] / m->grid.h[c];
	}
	for (int i = 0; i < n; i++) {
		sum += mu_at(m, x[0] + i * dx[0], x[1] + i * dx[1], x[2] + i * dx[2]) * ret->step;
		ret->sum[i + 1] = sum;
	}
	ret->n = n;
}

/* Move the photon to a collision; false: there is nothing on its path. */
static bool collide_photon(const struct scatter_mc *m, struct photon *p)
{
	struct path path;
	double more = absorption_ratio(p->kev), whole, any, depth, t;
	int i = 0;

	sum_path(m, p->at, p->d, &path);
	whole = path.sum[path.n] * more;
	if (!(whole > 1e-9))
		return false;
	any = 1 - exp(-whole);
	depth = fmin(-log(1 - poisson_uniform(&p->stream) * any) / more, path.sum[path.n] * (1 - 1e-12));
	while (i < path.n - 1 && path.sum[i + 1] < depth)
		i++;
	p->mu = (path.sum[i + 1] - path.sum[i]) / path.step;
	t = path.t0 + path.step * (i + (depth - path.sum[i]) / (p->mu * path.step));
	for (int c = 0; c < 3; c++)
		p->at[c] += t * p->d[c];
	p->weight *= any;
	return true;
}

/* Scatter the photon at its position. */
static void scatter_photon(const struct angles *angles, struct photon *p)
{
	double mu = p->mu, part = (mu - adipose[0]) / (glandular[0] - adipose[0]), c, r, cosine;
	int angle = (int)(poisson_uniform(&p->stream) * ANGLES);

	part = fmin(fmax(part, 0), 1);
	c = fmin(1, mu / adipose[0]) * (adipose[1] + part * (glandular[1] - adipose[1]));
	r = fmin(1, mu / adipose[0]) * (adipose[2] + part * (glandular[2] - adipose[2]));
	p->weight *= (c + r) / (mu * absorption_ratio(p->kev));
	if (poisson_uniform(&p->stream) * (c + r) < c) {
		cosine = (double)angles->incoherent[angle];
		p->kev /= 1 + p->kev / ELECTRON_KEV * (1 - cosine);
	} else {
		cosine = (double)angles->coherent[angle];
	}
	deflect_photon(p->d, cosine, 2 * M_PI * poisson_uniform(&p->stream));
}

/* ---- the detector ---- */

static void detector_make(const struct scan *scan, const struct scan_view *view, const struct scatter_mc_run *run,
			  struct detector *ret)
{
	struct detector d = {.n_u = scan->n_u,
			     .n_v = scan->n_v,
			     .cell = run->cell,
			     .collisions = run->collisions ? run->collisions : COLLISIONS};
	double size = 0;

	scan_bin_at(scan, view, -0.5, -0.5, d.corner);
	scan_bin_at(scan, view, 0.5, -0.5, d.u);
	scan_bin_at(scan, view, -0.5, 0.5, d.v);
	for (int c = 0; c < 3; c++) {
		d.u[c] -= d.corner[c];
		d.v[c] -= d.corner[c];
	}
	for (int c = 0; c < 3; c++) {
		d.normal[c] = d.u[(c + 1) % 3] * d.v[(c + 2) % 3] - d.u[(c + 2) % 3] * d.v[(c + 1) % 3];
		size += d.normal[c] * d.normal[c];
	}
	for (int c = 0; c < 3; c++)
		d.normal[c] /= sqrt(size);
	d.columns = (scan->n_u + run->cell - 1) / run->cell;
	d.rows = (scan->n_v + run->cell - 1) / run->cell;
	memcpy(d.beam, run->beam, sizeof(d.beam));
	if (!(d.beam[1] > d.beam[0])) {
		d.beam[0] = d.beam[2] = 0;
		d.beam[1] = scan->n_u;
		d.beam[3] = scan->n_v;
	}
	*ret = d;
}

static void point_at(const struct detector *d, double u, double v, double ret[3])
{
	for (int c = 0; c < 3; c++)
		ret[c] = d->corner[c] + u * d->u[c] + v * d->v[c];
}

static double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Return the unattenuated intensity at a point, per area of the detector. */
static double open_at(const struct detector *d, const double source[3], const double at[3])
{
	double to[3] = {source[0] - at[0], source[1] - at[1], source[2] - at[2]}, rr = dot(to, to);

	return dot(to, d->normal) / (rr * sqrt(rr));
}

/* Add the photon's expected contribution where its direction meets the detector. */
static void score_photon(const struct scatter_mc *m, const struct detector *d, const struct photon *p, double *sums)
{
	double to[3] = {d->corner[0] - p->at[0], d->corner[1] - p->at[1], d->corner[2] - p->at[2]};
	double toward = dot(p->d, d->normal), t = dot(to, d->normal) / toward, hit[3], u, v;
	struct path path;

	if (!(toward < 0) || !(t > 0))
		return;
	for (int c = 0; c < 3; c++)
		hit[c] = t * p->d[c] - to[c];
	u = dot(hit, d->u) / dot(d->u, d->u);
	v = dot(hit, d->v) / dot(d->v, d->v);
	if (!(u >= 0 && u < d->n_u && v >= 0 && v < d->n_v))
		return;
	sum_path(m, p->at, p->d, &path);
	sums[(int)v / d->cell * d->columns + (int)u / d->cell] +=
		p->weight * p->kev / SCATTER_MC_KEV * exp(-path.sum[path.n] * absorption_ratio(p->kev));
}

static void run_batch(const struct scatter_mc *m, const struct detector *d, const struct angles *angles, const double source[3],
		      uint64_t stream, size_t photons, double *sums)
{
	for (size_t i = 0; i < photons; i++) {
		struct photon p = {.kev = SCATTER_MC_KEV, .stream = poisson_stream(stream, i)};
		double to[3], length;

		point_at(d, d->beam[0] + (d->beam[1] - d->beam[0]) * poisson_uniform(&p.stream),
			 d->beam[2] + (d->beam[3] - d->beam[2]) * poisson_uniform(&p.stream), to);
		p.weight = open_at(d, source, to);
		for (int c = 0; c < 3; c++) {
			p.at[c] = source[c];
			p.d[c] = to[c] - source[c];
		}
		length = sqrt(dot(p.d, p.d));
		for (int c = 0; c < 3; c++)
			p.d[c] /= length;
		for (int k = 0; k < d->collisions && p.weight > WEIGHT_LEAST * open_at(d, source, to) && collide_photon(m, &p);
		     k++) {
			scatter_photon(angles, &p);
			score_photon(m, d, &p, sums);
		}
	}
}

/* Convert the sums of the batches to means and standard deviations, relative to the unattenuated intensity. */
static void average_batches(const struct detector *d, const double source[3], const double *sums, size_t photons,
			    float *ret_scatter, float *ret_sigma)
{
	size_t n = (size_t)d->columns * (size_t)d->rows;
	double field = (d->beam[1] - d->beam[0]) * (d->beam[3] - d->beam[2]); /* bins */

	for (size_t i = 0; i < n; i++) {
		int u = (int)(i % (size_t)d->columns) * d->cell, v = (int)(i / (size_t)d->columns) * d->cell;
		int w = d->n_u - u < d->cell ? d->n_u - u : d->cell, h = d->n_v - v < d->cell ? d->n_v - v : d->cell;
		double at[3], sum = 0, squares = 0, scale;

		point_at(d, u + 0.5 * w, v + 0.5 * h, at);
		scale = field * BATCHES / ((double)photons * w * h * open_at(d, source, at));
		for (size_t b = 0; b < BATCHES; b++) {
			sum += sums[b * n + i];
			squares += sums[b * n + i] * sums[b * n + i];
		}
		sum /= BATCHES;
		ret_scatter[i] = (float)(sum * scale);
		if (ret_sigma)
			ret_sigma[i] = (float)(sqrt(fmax(0, squares / BATCHES - sum * sum) / (BATCHES - 1)) * scale);
	}
}

int scatter_mc_view(const struct scatter_mc *m, const struct scan *scan, int view, const struct scatter_mc_run *run,
		    float *ret_scatter, float *ret_sigma, struct err *err)
{
	struct detector d;
	struct angles *angles;
	double *sums;
	size_t n, each = run->photons / BATCHES;
	const double *source;

	if (scan->kind != SCAN_DBT || view < 0 || view >= scan->n_views || run->cell < 1 || each < 1 || run->collisions < 0)
		return err_set(err, EINVAL, "scatter: view %d of %d, cells of %d bins, %zu photons", view, scan->n_views,
			       run->cell, run->photons);
	detector_make(scan, &scan->views[view], run, &d);
	source = scan->views[view].src;
	n = (size_t)d.columns * (size_t)d.rows;
	sums = calloc(n * BATCHES, sizeof(*sums));
	angles = malloc(sizeof(*angles));
	if (!sums || !angles) {
		free(sums);
		free(angles);
		return err_set(err, ENOMEM, "scatter: no memory for %d x %d cells", d.columns, d.rows);
	}
	tabulate_angles(incoherent_density, angles->incoherent);
	tabulate_angles(coherent_density, angles->coherent);
#pragma omp parallel for schedule(dynamic, 1)
	for (int b = 0; b < BATCHES; b++)
		run_batch(m, &d, angles, source, poisson_stream(run->seed, (uint64_t)view * BATCHES + (uint64_t)b), each,
			  sums + (size_t)b * n);
	average_batches(&d, source, sums, each * BATCHES, ret_scatter, ret_sigma);
	free(sums);
	free(angles);
	return 0;
}
