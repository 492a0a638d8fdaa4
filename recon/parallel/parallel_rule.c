/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_rule.c - SART, MLEM, OSEM, MLTR and OSTR with the common iteration (recon/core/iterate.h). A_s'd is stored for each
 * subset, except that of the transmission model, which changes with the image.
 *
 * The start of EM and of the transmission model is, for each slice, sum(y) / sum(A 1), which explains the sum of its data; the
 * start of SART is nearly 0. Pixels outside the field of view, and those that no ray meets, are 0 and stay 0. Floors are fractions
 * of means, so that units have no effect. If the level of the data is far from 1, they are multiplied by a power of two, which
 * causes no rounding; not for the transmission model, whose line integrals have no unit. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/clock.h"
#include "recon/parallel/parallel_internal.h"

#define FLOOR 1e-6			/* fraction of the mean */
#define SHORT 1e-3			/* fraction of a pixel: SART ignores shorter rays */
#define SUMMED 16			/* slices that are summed at a time */
#define AWAY 1000.0f			/* line integral of which no photon is left, in float */
#define FLOAT_LEAST 1e-30f		/* far above the smallest normal number */
#define VOXEL_FLOOR_TRANSMISSION 1e-12f /* d of the rule is p e^-p, which is small in air and behind metal */

struct parallel_rule {
	struct linop **op;
	struct iterate_part *part;
	struct iterate_subset *subset;
	struct iterate_work work;
	struct buf row;	 /* SART: lengths of the rays */
	struct buf gaps; /* of bins without datum: 0, of others 1; of the transmission model: AWAY and 0. mem NULL: none */
	double *level;	 /* one per slice */
	double total;	 /* sum of A 1 over the rays of a slice */
	double mean;	 /* mean of a subset's den over the pixels in the field of view */
};

static bool is_sart(const struct parallel_session *s)
{
	return algorithm_info(s->p->algorithm)->rule == RULE_SART;
}

static bool keeps_den(const struct parallel_session *s)
{
	return rule_keeps_den(algorithm_info(s->p->algorithm)->rule);
}

/* A_s'd of a subset: its own, or working memory of all. */
static struct buf *den_of(const struct parallel_session *s, int i)
{
	return keeps_den(s) ? &s->rule->subset[i].den : &s->rule->work.den;
}

/* Return the sum of a slice's data, or of their absolute values, over the rays that cross the field of view. */
static double slice_sum(const struct parallel_session *s, int slice, bool absolute)
{
	const struct parallel_scan *scan = s->s;
	size_t n_v = (size_t)scan->n_radial, n_views = (size_t)scan->n_angles;
	const float *from = s->lines + (size_t)slice * n_views * n_v;
	size_t first = 0, end = n_v;
	double sum = 0;

	while (first < end && !(fabs(parallel_radius(scan, (int)first)) < s->plan->fov_radius))
		first++;
	while (end > first && !(fabs(parallel_radius(scan, (int)end - 1)) < s->plan->fov_radius))
		end--;
	for (size_t a = 0; a < n_views; a++)
		for (size_t i = first; i < end; i++)
			sum += absolute ? fabs((double)from[a * n_v + i]) : (double)from[a * n_v + i];
	return sum;
}

void parallel_rule_scale(struct parallel_session *s)
{
	double sum = 0, level;

	for (int first = 0; first < s->s->n_slices; first += SUMMED) {
		int n = s->s->n_slices - first < SUMMED ? s->s->n_slices - first : SUMMED;
		double of[SUMMED];

#pragma omp parallel for
		for (int k = 0; k < n; k++)
			of[k] = slice_sum(s, first + k, true);
		for (int k = 0; k < n; k++)
			sum += of[k];
		monitor_progress(s->monitor, "reconstruct", 0);
	}
	sum /= (double)parallel_size(s->s);
	level = sum / s->plan->fov_radius;
	s->unit = !keeps_den(s) || !(level > 0) || (level > 1e-3 && level < 1e6) ? 1 : exp2(-round(log2(level)));
	s->data_mean = s->unit * sum;
}

static void make_subset(struct parallel_session *s, int i, struct err *err)
{
	struct parallel_rule *u = s->rule;
	int first = s->views.first[i], n = s->views.first[i + 1] - first;
	struct projection_spec spec = parallel_spec(s->p, s->work, s->scan, &s->grid, first, n);
	size_t bins = scan_view_size(s->scan);

	session_projector(&s->memory, &spec, &u->op[i], err);
	u->part[i].op = u->op[i];
	u->part[i].y = buf_part(&s->y, (size_t)first * bins, (size_t)n * bins);
	if (is_sart(s))
		u->part[i].row = buf_part(&u->row, (size_t)first * bins, (size_t)n * bins);
	if (u->gaps.mem)
		*(keeps_den(s) ? &u->part[i].mult : &u->subset[i].away) =
			buf_part(&u->gaps, (size_t)first * bins, (size_t)n * bins);
	if (keeps_den(s)) {
		session_alloc(&s->memory, s->x.n, &u->subset[i].den, err);
		u->subset[i].part = &u->part[i];
		u->subset[i].n_parts = 1;
	} else {
		u->subset[i].op = u->op[i];
		u->subset[i].y = u->part[i].y;
	}
}

/* Write d of the bins of subset i to p: 1; for SART 0 where a ray is too short to be used. Sets the ray lengths too. */
static int make_ones(struct parallel_session *s, int i, struct buf *p, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct iterate_part *part = &s->rule->part[i];
	int r;

	if (!is_sart(s))
		return v->fill(p, 1, err);
	r = part->op->apply(part->op, &s->x, &part->row, err);
	if (r == 0)
		r = v->copy(&part->row, p, err);
	return r < 0 ? r : v->threshold(p, (float)(SHORT * s->grid.h[0]), 1, err);
}

/* Compute A_s'd of subset i for d = 1 (SART: and the ray lengths; x is then 1). */
static int make_den(struct parallel_session *s, int i, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct parallel_rule *u = s->rule;
	struct buf p = buf_part(&u->work.p, 0, u->part[i].y.n);
	int r = make_ones(s, i, &p, err);

	if (r == 0 && u->part[i].mult.mem)
		r = v->multiply(&p, &u->part[i].mult, &p, err);
	return r < 0 ? r : u->op[i]->adjoint(u->op[i], &p, den_of(s, i), err);
}

/* Compute A_s'd of every subset, and the sums, which depend only on the geometry. */
static int make_sums(struct parallel_session *s, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct parallel_rule *u = s->rule;
	double pixels;
	int r;

	for (int k = 0; k < s->n; k++)
		u->level[k] = 1;
	parallel_volume_level(s, u->level, s->host);
	r = v->upload(&s->x, s->host, err);
	for (int i = 0; r == 0 && i < s->views.n_subsets; i++) {
		r = make_den(s, i, err);
		if (r == 0) {
			double sum = 0;

			r = v->dot(&s->x, den_of(s, i), &sum, err);
			u->total += sum / s->n;
		}
	}
	if (r < 0 || (r = v->sum(&s->x, &pixels, err)) < 0)
		return r;
	if (!(u->total > 0))
		return err_set(err, EDOM, "sinogram: no ray meets the image of %d x %d pixels of %g mm", s->grid.n[0],
			       s->grid.n[1], s->grid.h[0]);
	u->mean = u->total / (pixels / s->n) / s->views.n_subsets;
	return 0;
}

int parallel_rule_open(struct parallel_session *s, struct err *err)
{
	size_t n = (size_t)s->views.n_subsets, largest = (size_t)s->views.largest_subset * scan_view_size(s->scan);
	struct session_memory *m = &s->memory;
	struct parallel_rule *u;

	if (session_array(m, 1, sizeof(*u), (void **)&s->rule, err) < 0)
		return m->rc;
	u = s->rule;
	session_array(m, n, sizeof(struct linop *), (void **)&u->op, err);
	session_array(m, n, sizeof(*u->part), (void **)&u->part, err);
	session_array(m, n, sizeof(*u->subset), (void **)&u->subset, err);
	session_array(m, (size_t)s->n, sizeof(*u->level), (void **)&u->level, err);
	if (is_sart(s))
		session_alloc(m, s->y.n, &u->row, err);
	if (s->s->gaps && s->s->gaps->n > 0)
		session_alloc(m, s->y.n, &u->gaps, err);
	for (int i = 0; m->rc == 0 && i < s->views.n_subsets; i++)
		make_subset(s, i, err);
	return keeps_den(s) ? iterate_work_alloc_kept(m, s->x.n, largest, &u->work, err)
			    : iterate_work_alloc(m, s->x.n, largest, false, false, &u->work, err);
}

/* Set x to the start. */
static int set_start(struct parallel_session *s, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct parallel_rule *u = s->rule;
	struct buf *seen = &u->work.num;
	int r = u->total > 0 ? 0 : make_sums(s, err);

	if (r == 0)
		r = v->fill(seen, 0, err);
	for (int i = 0; r == 0 && i < s->views.n_subsets; i++) {
		if (!keeps_den(s))
			r = make_den(s, i, err);
		if (r == 0)
			r = v->axpy(1, den_of(s, i), seen, err);
	}
	if (r == 0)
		r = v->threshold(seen, (float)(FLOOR * u->mean), 1, err);
	if (r < 0)
		return r;
#pragma omp parallel for
	for (int k = 0; k < s->n; k++)
		u->level[k] = is_sart(s) ? (double)RULE_TINY
					 : fmax(s->unit * slice_sum(s, s->first + k, false) / u->total,
						keeps_den(s) ? 0 : (double)RULE_TINY);
	parallel_volume_level(s, u->level, s->host);
	r = v->upload(&s->x, s->host, err);
	return r < 0 ? r : v->multiply(&s->x, seen, &s->x, err);
}

/* Load the data of the part, and which bins have none; the sums of its geometry are then its own. */
static int load_data(struct parallel_session *s, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct parallel_rule *u = s->rule;
	const float datum = keeps_den(s) ? 1 : 0, none = keeps_den(s) ? 0 : AWAY;
	int r = 0;

	if (u->gaps.mem) {
		for (size_t i = 0; i < s->y.n; i++)
			s->host[i] = datum;
		parallel_gaps_in(s, none, s->host);
		r = v->upload(&u->gaps, s->host, err);
		u->total = 0;
	}
	parallel_bins_in(s, NULL, NULL, s->host);
	if (!keeps_den(s))
		parallel_gaps_in(s, AWAY, s->host);
	return r < 0 ? r : v->upload(&s->y, s->host, err);
}

static int sum_gap(struct parallel_session *s, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	int r = 0;

	for (int i = 0; r == 0 && i < s->views.n_subsets; i++) {
		struct iterate_part *part = &s->rule->part[i];
		struct buf p = buf_part(&s->rule->work.p, 0, part->y.n);
		double left = 0, all = 0;

		r = part->op->apply(part->op, &s->x, &p, err);
		if (r == 0)
			r = v->axpy(-1, &part->y, &p, err);
		if (r == 0)
			r = v->dot(&p, &p, &left, err);
		if (r == 0)
			r = v->dot(&part->y, &part->y, &all, err);
		s->sum_gap += left;
		s->sum_data += all;
	}
	return r;
}

static void part_progress(void *session, const char *stage, double fraction)
{
	const struct parallel_session *s = session;

	monitor_progress(s->monitor, stage, (s->done + fraction * s->n) / s->s->n_slices);
}

static bool part_cancelled(void *session)
{
	return monitor_cancelled(((const struct parallel_session *)session)->monitor);
}

int parallel_rule_run(struct parallel_session *s, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct monitor monitor = {s, part_progress, part_cancelled};
	struct iterate_conf conf = {.iterations = s->plan->iterations};
	double begin = clock_seconds();
	int r = load_data(s, err);

	if (r == 0)
		r = set_start(s, err);
	if (r < 0)
		return r;
	conf.rule = (struct rule){
		.kind = algorithm_info(s->p->algorithm)->rule,
		.bin_floor = is_sart(s) ? (float)(SHORT * s->grid.h[0]) : fmaxf((float)(FLOOR * s->data_mean), FLOAT_LEAST),
		.voxel_floor = keeps_den(s) ? fmaxf((float)(FLOOR * s->rule->mean), FLOAT_LEAST) : VOXEL_FLOOR_TRANSMISSION,
		.step = is_sart(s) ? (float)s->p->relaxation : 1,
		.negative = is_sart(s) && !s->p->non_negative,
	};
	r = iterate_run(&conf, s->rule->subset, (size_t)s->views.n_subsets, &s->rule->work, &s->x, &monitor, err);
	if (r == 0 && is_sart(s))
		r = sum_gap(s, err);
	if (r == 0)
		r = v->wait(s->dev, QUEUE_WORK, err);
	s->seconds_iterate += clock_seconds() - begin;
	return r;
}
