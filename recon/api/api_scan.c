/* SPDX-License-Identifier: Apache-2.0 */
/* api_scan.c - scans of the public library: what the caller describes, checked and copied. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/api/api_internal.h"
#include "recon/core/scan.h"

#define VIEWS_MOST 4096
#define BINS_MOST 65535
#define LEVEL 1e-9 /* mm: rounding errors of a detector's position */

/* Copy the caller's struct to `own` and create a scan of the kind, whose place is `ret`. */
static int begin_scan(enum api_kind kind, const void *from, void *own, size_t size, const char *name, struct tn_scan **ret,
		      struct tn_scan **ret_scan, struct err *err)
{
	int r = api_take(from, own, size, name, err);

	if (r < 0 || !ret)
		return r < 0 ? r : err_set(err, EINVAL, "scan: no place for the result");
	*ret_scan = calloc(1, sizeof(**ret_scan));
	if (!*ret_scan)
		return err_set(err, ENOMEM, "scan: out of memory");
	(*ret_scan)->kind = kind;
	atomic_init(&(*ret_scan)->users, 1);
	return 0;
}

void tn_scan_free(struct tn_scan *s)
{
	if (!s || atomic_fetch_sub(&s->users, 1) > 1)
		return;
	free(s->m.segments);
	free(s->points);
	free(s->lines);
	scan_free(s->views);
	free((double *)(uintptr_t)s->parallel.angle);
	free(s);
}

static int finish_scan(int r, struct tn_scan *s, struct tn_scan **ret)
{
	if (r < 0)
		tn_scan_free(s);
	else
		*ret = s;
	return r;
}

static void set_shape(struct tn_scan *s, int64_t a, int64_t b, int64_t c)
{
	const int64_t shape[3] = {a, b, c};

	if (s->m.tof.n > 0)
		s->shape[s->ndim++] = s->m.tof.n;
	memcpy(s->shape + s->ndim, shape, sizeof(shape));
	s->ndim += 3;
}

static int copy_segments(const struct tn_pet *p, struct michelogram *m, struct err *err)
{
	if (p->n_segments == 0)
		return michelogram_segments(p->rings, p->span, p->max_difference, &m->segments, &m->n_segments, err);
	if (p->n_segments < 0 || p->n_segments > MICHELOGRAM_SEGMENTS_MAX || !p->segments)
		return err_set(err, EINVAL, "segments: %d; allowed: 1 to %d, or 0 and a span", p->n_segments,
			       MICHELOGRAM_SEGMENTS_MAX);
	m->segments = calloc((size_t)p->n_segments, sizeof(*m->segments));
	if (!m->segments)
		return err_set(err, ENOMEM, "segments: out of memory");
	for (int i = 0; i < p->n_segments; i++) {
		int first = p->segments[2 * i], last = p->segments[2 * i + 1];

		m->segments[i] = (struct michelogram_segment){first, last, michelogram_segment_planes(p->rings, first, last)};
	}
	m->n_segments = p->n_segments;
	return 0;
}

/* Without a value of the caller, the radius of the field of view that pet_plan() uses. */
static int check_radius(struct tn_scan *s, double asked, struct err *err)
{
	const struct michelogram *m = &s->m;
	double largest = fmax(michelogram_radius(m, m->n_radial - 1), -michelogram_radius(m, 0));
	double most, usual = pet_fov_radius(m->scanner.radius + m->scanner.interaction_depth, largest, &most);

	s->fov_radius = asked != 0 ? asked : usual;
	if (!(s->fov_radius > 0 && s->fov_radius <= most))
		return err_set(err, EINVAL, "fov_radius: %g mm; allowed: 0, or up to %g, 0.98 of where rays end", asked, most);
	return 0;
}

int tn_scan_pet(const struct tn_pet *from, struct tn_scan **ret, struct tn_err *e)
{
	struct err *err = api_err(e);
	struct tn_pet p;
	struct tn_scan *s;
	int r = begin_scan(API_PET, from, &p, sizeof(p), "tn_pet", ret, &s, err);

	if (r < 0)
		return r;
	s->m = (struct michelogram){
		.scanner = {p.rings, p.detectors, p.ring_spacing, p.radius, p.depth, p.bin},
		.n_radial = p.radial,
		.n_angles = p.angles,
		.angle_offset = p.first_angle,
		.arc_corrected = p.arc_corrected != 0,
		.tof = {p.tof.n, p.tof.width, p.tof.sigma},
	};
	r = copy_segments(&p, &s->m, err);
	if (r == 0)
		r = michelogram_check(&s->m, err);
	if (r == 0)
		r = check_radius(s, p.fov_radius, err);
	if (r == 0)
		set_shape(s, (int64_t)michelogram_planes(&s->m), p.angles, p.radial);
	return finish_scan(r, s, ret);
}

static int check_lines(const struct tn_lines *p, struct err *err)
{
	if (!p->points || p->n_points < 2 || p->n_points > INT32_MAX)
		return err_set(err, EINVAL, "points: %zu; allowed: 2 to 2^31 - 1", p->points ? p->n_points : 0);
	if (!p->pairs || p->n < 1 || p->n > INT32_MAX)
		return err_set(err, EINVAL, "lines: %zu pairs of points; allowed: 1 to 2^31 - 1", p->pairs ? p->n : 0);
	if (!(p->fov_radius >= 0 && p->fov_radius < 1e5))
		return err_set(err, EINVAL, "fov_radius: %g mm; allowed: 0 (all of the volume), or above", p->fov_radius);
	if (!(p->background >= 0 && p->background <= (double)p->n))
		return err_set(err, EINVAL, "background: %g events; allowed: 0 (unknown) to %zu, all of them", p->background,
			       p->n);
	if (p->tof.n != 0 && (p->tof.n < 0 || p->tof.n > TOF_MOST || !(p->tof.width > 0 && p->tof.width < 1e5) ||
			      !(p->tof.sigma > 0 && p->tof.sigma < 1e5) || !p->tof_bin))
		return err_set(err, EINVAL, "time of flight: %d bins of %g mm, sigma %g mm%s", p->tof.n, p->tof.width,
			       p->tof.sigma, p->tof_bin ? "" : ", without tof_bin");
	for (size_t i = 0; i < 3 * p->n_points; i++)
		if (!(fabsf(p->points[i]) < 1e5f))
			return err_set(err, EINVAL, "points: coordinate %zu of point %zu is %g mm", i % 3, i / 3,
				       (double)p->points[i]);
	return 0;
}

static int copy_lines(const struct tn_lines *p, struct tn_scan *s, struct err *err)
{
	s->points = malloc(3 * p->n_points * sizeof(*s->points));
	s->lines = malloc(p->n * sizeof(*s->lines));
	if (!s->points || !s->lines)
		return err_set(err, ENOMEM, "lines: no memory for %zu lines between %zu points", p->n, p->n_points);
	memcpy(s->points, p->points, 3 * p->n_points * sizeof(*s->points));
	for (size_t i = 0; i < p->n; i++) {
		struct event e = {
			{p->pairs[2 * i], p->pairs[2 * i + 1]}, p->tof.n > 0 ? p->tof_bin[i] : 0, p->add ? p->add[i] : 0};

		for (int k = 0; k < 2; k++)
			if (e.detector[k] < 0 || (size_t)e.detector[k] >= p->n_points)
				return err_set(err, EINVAL, "lines: line %zu ends at point %d; there are %zu", i, e.detector[k],
					       p->n_points);
		if (p->tof.n > 0 && (e.tof < 0 || e.tof >= p->tof.n))
			return err_set(err, EINVAL, "lines: line %zu has TOF bin %d; there are %d", i, e.tof, p->tof.n);
		if (!(e.add >= 0 && e.add < INFINITY))
			return err_set(err, EINVAL, "lines: line %zu has add = %g", i, (double)e.add);
		s->lines[i] = e;
	}
	s->n_points = p->n_points;
	s->n_lines = p->n;
	s->with_add = p->add != NULL;
	s->background = p->background;
	s->tof = (struct scan_tof){p->tof.n, p->tof.width, p->tof.sigma};
	s->fov_radius = p->fov_radius;
	return 0;
}

int tn_scan_lines(const struct tn_lines *from, struct tn_scan **ret, struct tn_err *e)
{
	struct err *err = api_err(e);
	struct tn_lines p;
	struct tn_scan *s;
	int r = begin_scan(API_LINES, from, &p, sizeof(p), "tn_lines", ret, &s, err);

	if (r < 0)
		return r;
	r = check_lines(&p, err);
	if (r == 0)
		r = copy_lines(&p, s, err);
	s->ndim = 1;
	s->shape[0] = (int64_t)p.n;
	return finish_scan(r, s, ret);
}

/* Write a view; a detector whose columns and rows run along x and y in the plane z = 0 needs no pose. */
static int make_view(const struct tn_views *p, int i, struct scan *scan, struct scan_view *ret, struct err *err)
{
	const double *v = p->views + 12 * (size_t)i, *centre = v + 3, *u = v + 6, *w = v + 9;
	double n[3], distance = 0, area = 0, bin[2], low[2];
	struct scan_view view = {.src = {v[0], v[1], v[2]}, .posed = true};

	for (int c = 0; c < 12; c++)
		if (!(fabs(v[c]) < 1e6))
			return err_set(err, EINVAL, "views: number %d of view %d is %g", c, i, v[c]);
	for (int c = 0; c < 3; c++) {
		n[c] = u[(c + 1) % 3] * w[(c + 2) % 3] - u[(c + 2) % 3] * w[(c + 1) % 3];
		area += n[c] * n[c];
		distance += n[c] * (v[c] - centre[c]);
		view.pose.origin[c] = centre[c] - 0.5 * (p->n_u - 1) * u[c] - 0.5 * (p->n_v - 1) * w[c];
		view.pose.step_u[c] = u[c];
		view.pose.step_v[c] = w[c];
	}
	bin[0] = sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
	bin[1] = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
	if (!(area > 1e-6 * bin[0] * bin[0] * bin[1] * bin[1]) || !(fabs(distance) > 1e-6 * sqrt(area)))
		return err_set(err, EINVAL,
			       "views: view %d: the steps of its bins are 0 or parallel, or its source is in the detector", i);
	for (int c = 0; c < 2; c++) {
		low[c] = view.pose.origin[c] - 0.5 * u[c] - 0.5 * w[c];
		scan->lo[c] += low[c] / p->n;
		if (i == 0)
			scan->h[c] = bin[c];
		if (fabs(bin[c] - scan->h[c]) > 1e-3 * scan->h[c])
			return err_set(err, EINVAL, "views: view %d has bins of %g mm, view 0 of %g", i, bin[c], scan->h[c]);
	}
	*ret = view;
	return 0;
}

/* Replace poses of detectors that lie in the plane z = 0 by shifts, which projectors compute faster. */
static void make_level(struct scan *scan, struct scan_view *views)
{
	for (int i = 0; i < scan->n_views; i++) {
		const struct scan_pose *p = &views[i].pose;
		const double *u = p->step_u, *w = p->step_v;

		if (fabs(u[0] - scan->h[0]) > LEVEL || fabs(w[1] - scan->h[1]) > LEVEL ||
		    fabs(u[1]) + fabs(u[2]) + fabs(w[0]) > LEVEL || fabs(w[2]) + fabs(p->origin[2]) > LEVEL)
			return;
	}
	for (int i = 0; i < scan->n_views; i++) {
		views[i].posed = false;
		for (int c = 0; c < 2; c++) {
			double shift = views[i].pose.origin[c] - 0.5 * scan->h[c] - scan->lo[c];

			views[i].shift[c] = fabs(shift) < LEVEL ? 0 : shift;
		}
	}
}

int tn_scan_views(const struct tn_views *from, struct tn_scan **ret, struct tn_err *e)
{
	struct err *err = api_err(e);
	struct scan like = {.kind = SCAN_DBT};
	struct scan_view *views;
	struct tn_views p;
	struct tn_scan *s;
	int r = begin_scan(API_VIEWS, from, &p, sizeof(p), "tn_views", ret, &s, err);

	if (r < 0)
		return r;
	like.n_u = p.n_u;
	like.n_v = p.n_v;
	if (p.n < 1 || p.n > VIEWS_MOST || !p.views || p.n_u < 1 || p.n_u > BINS_MOST || p.n_v < 1 || p.n_v > BINS_MOST)
		r = err_set(err, EINVAL, "views: %d of %d x %d bins%s; allowed: 1 to %d of 1 to %d", p.n, p.n_u, p.n_v,
			    p.views ? "" : ", without their positions", VIEWS_MOST, BINS_MOST);
	if (r == 0 && !(s->views = scan_new_views(&like, p.n, &views, err)))
		r = -ENOMEM;
	for (int i = 0; r == 0 && i < p.n; i++)
		r = make_view(&p, i, s->views, &views[i], err);
	if (r == 0)
		make_level(s->views, views);
	set_shape(s, p.n, p.n_v, p.n_u);
	return finish_scan(r, s, ret);
}

int tn_scan_parallel(const struct tn_parallel *from, struct tn_scan **ret, struct tn_err *e)
{
	struct err *err = api_err(e);
	struct tn_parallel p;
	struct tn_scan *s;
	int r = begin_scan(API_PARALLEL, from, &p, sizeof(p), "tn_parallel", ret, &s, err);

	if (r < 0)
		return r;
	s->parallel = (struct parallel_scan){
		p.slices, p.angles, p.radial, p.bin, p.offset, p.slice, p.first_angle, p.arc != 0 ? p.arc : 180, p.angle};
	r = parallel_check(&s->parallel, err);
	s->parallel.angle = NULL;
	if (r == 0 && p.angle) {
		double *angle = malloc((size_t)p.angles * sizeof(*angle));

		if (angle)
			memcpy(angle, p.angle, (size_t)p.angles * sizeof(*angle));
		else
			r = err_set(err, ENOMEM, "angles: no memory for %d", p.angles);
		s->parallel.angle = angle;
	}
	set_shape(s, p.slices, p.angles, p.radial);
	return finish_scan(r, s, ret);
}

int tn_scan_info(const struct tn_scan *s, struct tn_scan_info *ret, struct tn_err *err)
{
	struct tn_scan_info info = {.rays = 1};

	if (!s)
		return err_set(api_err(err), EINVAL, "scan: none given");
	info.kind = s->kind;
	info.ndim = s->ndim;
	for (int i = 0; i < s->ndim; i++) {
		info.shape[i] = s->shape[i];
		info.rays *= i == 0 && s->m.tof.n > 0 ? 1 : s->shape[i];
	}
	return api_give(&info, ret, sizeof(info), "tn_scan_info", api_err(err));
}

double api_grid_radius(const struct grid *g)
{
	double most[2];

	for (int c = 0; c < 2; c++)
		most[c] = fmax(fabs(g->lo[c]), fabs(g->lo[c] + g->n[c] * g->h[c]));
	return hypot(most[0], most[1]) * (1 + 1e-6);
}

int api_scan_rays(const struct tn_scan *s, const struct grid *g, const int *order, struct scan **ret, int **ret_plane,
		  struct err *err)
{
	*ret_plane = NULL;
	if (s->kind == API_PET)
		return scan_create_michelogram(&s->m, s->fov_radius, order, ret, ret_plane, err);
	if (s->kind == API_PARALLEL)
		return scan_create_parallel(&s->parallel, s->parallel.n_slices, api_grid_radius(g), order, ret, err);
	return scan_create_binned(s->views, 1, order, ret, err);
}

/* Compute a ray of views, of PET or of parallel beams; plane: of the scan's plane u, the place of the caller's. */
static bool ray_ends(const struct tn_scan *s, const struct scan *scan, const int *place, size_t i, double ret[6])
{
	size_t n = (size_t)s->shape[s->ndim - 1], m = (size_t)s->shape[s->ndim - 2];
	int last = (int)(i % n), middle = (int)(i / n % m), first = (int)(i / n / m);

	if (s->kind == API_VIEWS)
		return scan_ray(scan, &scan->views[first], last, middle, ret, ret + 3);
	return scan_ray(scan, &scan->views[middle], place ? place[first] : first, last, ret + 3, ret);
}

static void line_ends(const struct tn_scan *s, size_t i, double ret[6])
{
	for (int k = 0; k < 6; k++)
		ret[k] = s->points[3 * (size_t)s->lines[i].detector[k / 3] + (size_t)(k % 3)];
}

int tn_scan_rays(const struct tn_scan *s, size_t first, size_t n, double *ret, struct tn_err *e)
{
	struct tn_scan_info info = {TN_SIZE(info)};
	struct err *err = api_err(e);
	struct scan *scan = NULL;
	int *plane = NULL, *place = NULL, r = tn_scan_info(s, &info, e);

	if (r < 0)
		return r;
	if (!ret || first > (size_t)info.rays || n > (size_t)info.rays - first)
		return err_set(err, EINVAL, "rays: %zu from %zu on; the scan has %lld%s", n, first, (long long)info.rays,
			       ret ? "" : ", and there is no place for the result");
	if (s->kind != API_LINES) {
		double reach = 0.5 * (s->parallel.n_radial + 1) * s->parallel.bin + fabs(s->parallel.offset);
		struct grid all = {.n = {1, 1, 1}, .h = {reach, reach, 1}};

		r = api_scan_rays(s, &all, NULL, &scan, &plane, err);
	}
	if (r == 0 && plane && !(place = malloc((size_t)scan->n_u * sizeof(*place))))
		r = err_set(err, ENOMEM, "rays: no memory for %d planes", scan->n_u);
	for (int u = 0; r == 0 && plane && u < scan->n_u; u++)
		place[plane[u]] = u;
	for (size_t i = 0; r == 0 && i < n; i++, ret += 6) {
		if (!scan)
			line_ends(s, first + i, ret);
		else if (!ray_ends(s, scan, place, first + i, ret))
			for (int k = 0; k < 6; k++)
				ret[k] = NAN;
	}
	free(place);
	free(plane);
	scan_free(scan);
	return r;
}
