/* dbt.c - carries a plan out: upload, iterate, download.
 *
 * Everything on the device is allocated before the first iteration, in the sizes the plan has summed up.
 */
#include "recon/dbt.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "recon/dbt_layout.h"
#include "recon/em.h"
#include "recon/projector.h"
#include "recon/support.h"

/* Of A x: a line integral this small is below any detector's noise. Of A'1, in mm: far below the crossing of a voxel's corner. */
#define FLOOR 1e-6f
/* Starting attenuation where the data are all zero, 1/mm: glandular tissue at 20 keV is about that. */
#define START_DEFAULT 0.05f

struct session {
	struct dbt_layout layout;
	struct buf x, y, mask;
	struct buf *masks;  /* per subset, parts of mask */
	struct linop **ops; /* per subset */
	struct em_subset *subsets;
	float start;
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One view to the device: bins that do not count become 0 in data and mask, whatever they held. */
static int upload_view(struct session *s, const struct dbt_plan *plan, int i, const float *line, const float *valid, float *stage,
		       double *sums, struct err *err)
{
	const struct device_ops *v = s->x.dev->ops;
	size_t n = (size_t)plan->n_u * (size_t)plan->n_v, from = (size_t)s->layout.order[i] * n;
	struct buf y = buf_part(&s->y, (size_t)i * n, n), mask = buf_part(&s->mask, (size_t)i * n, n);
	int r;

	for (size_t b = 0; b < n; b++) {
		float value = valid[from + b] > 0 ? line[from + b] : 0;

		if (!(value >= 0) || !isfinite(value))
			return err_set(err, EINVAL, "projection %d, bin (%zu, %zu): line integral %g", s->layout.order[i],
				       b % (size_t)plan->n_u, b / (size_t)plan->n_u, (double)value);
		stage[b] = value;
		sums[0] += value;
		sums[1] += (double)value * value;
	}
	r = v->upload(&y, stage, err);
	for (size_t b = 0; b < n; b++)
		stage[b] = valid[from + b] > 0 ? 1 : 0;
	return r < 0 ? r : v->upload(&mask, stage, err);
}

/* The starting volume is uniform. A single update forgets the constant (it divides by A x and multiplies by x), but a voxel that
 * the first views do not see keeps it while others already have their attenuation, and then weighs in their rays. So it is of the
 * size of the attenuation to come: the typical line integral (weighted by itself, which leaves air out) over the height of the
 * volume. */
static float starting_value(const struct dbt_plan *plan, const double *sums)
{
	double start = sums[0] > 0 ? sums[1] / sums[0] / (plan->grid.n[2] * plan->grid.h[2]) : 0;

	return start > 1e-6 ? (float)start : START_DEFAULT;
}

static int upload_all(struct session *s, const struct dbt_plan *plan, const float *line, const float *valid,
		      const struct monitor *monitor, struct err *err)
{
	size_t n = (size_t)plan->n_u * (size_t)plan->n_v;
	float *stage = malloc(n * sizeof(*stage));
	double sums[2] = {0, 0};
	int r = stage ? 0 : err_set(err, ENOMEM, "reconstruction: cannot allocate %zu floats", n);

	for (int i = 0; r == 0 && i < plan->n_views; i++) {
		if (monitor_cancelled(monitor))
			r = err_set(err, ECANCELED, "reconstruction cancelled during upload");
		else
			r = upload_view(s, plan, i, line, valid, stage, sums, err);
		monitor_progress(monitor, "upload", (double)(i + 1) / plan->n_views);
	}
	free(stage);
	if (r < 0)
		return r;
	s->start = starting_value(plan, sums);
	return s->x.dev->ops->fill(&s->x, s->start, err);
}

static int open_subsets(struct session *s, const struct dbt_protocol *p, const struct dbt_plan *plan, struct device *dev,
			struct err *err)
{
	size_t view = (size_t)plan->n_u * (size_t)plan->n_v, n = (size_t)s->layout.n_subsets;

	s->masks = calloc(n, sizeof(*s->masks));
	s->ops = calloc(n, sizeof(*s->ops));
	s->subsets = calloc(n, sizeof(*s->subsets));
	if (!s->masks || !s->ops || !s->subsets)
		return err_set(err, ENOMEM, "reconstruction: cannot allocate %zu subsets", n);
	for (int i = 0; i < s->layout.n_subsets; i++) {
		struct projection_spec spec = dbt_layout_spec(&s->layout, p, plan, i);
		size_t at = (size_t)spec.first * view, bins = (size_t)spec.n_views * view;
		int r;

		s->masks[i] = buf_part(&s->mask, at, bins);
		spec.mask = &s->masks[i];
		r = projector_create(dev, &spec, &s->ops[i], err);
		if (r < 0)
			return r;
		s->subsets[i] = (struct em_subset){s->ops[i], buf_part(&s->y, at, bins)};
	}
	return 0;
}

static void session_clear(struct session *s)
{
	for (int i = 0; s->ops && i < s->layout.n_subsets; i++)
		s->ops[i] = linop_free(s->ops[i]);
	free(s->ops);
	free(s->masks);
	free(s->subsets);
	buf_release(&s->x);
	buf_release(&s->y);
	buf_release(&s->mask);
	dbt_layout_clear(&s->layout);
}

/* sum(A x) = sum(y) over the bins with support holds after every MLEM iteration. y is lost: this is the last use of it. */
static int sum_up(struct session *s, struct dbt_report *report, struct err *err)
{
	const struct device_ops *v = s->x.dev->ops;
	struct buf p = {0};
	int r = v->alloc(s->x.dev, s->y.n, &p, err);

	if (r == 0)
		r = s->ops[0]->apply(s->ops[0], &s->x, &p, err);
	if (r == 0)
		r = v->sum(&p, &report->sum_model, err);
	if (r == 0)
		r = v->ratio(&s->y, &p, FLOOR, &s->y, err);
	if (r == 0)
		r = v->dot(&s->y, &p, &report->sum_data, err);
	buf_release(&p);
	return r;
}

static int check_plan(const struct dbt_plan *plan, const struct scan *detector, struct err *err)
{
	if (plan->bin < 1 || plan->n_u != detector->n_u / plan->bin || plan->n_v != detector->n_v / plan->bin ||
	    plan->n_views != detector->n_views)
		return err_set(
			err, EINVAL,
			"reconstruction: the plan is for %d projections of %d x %d bins, the scan gives %d of %d x %d (bin %d)",
			plan->n_views, plan->n_u, plan->n_v, detector->n_views, detector->n_u, detector->n_v, plan->bin);
	return 0;
}

int dbt_reconstruct(const struct dbt_protocol *p, const struct dbt_plan *plan, const struct scan *detector, struct device *dev,
		    const float *line, const float *valid, const struct monitor *monitor, float *ret_volume,
		    struct dbt_report *ret_report, struct err *err)
{
	const struct device_ops *v = dev->ops;
	const struct em_conf conf = {p->iterations, FLOOR};
	size_t bins = (size_t)plan->n_u * (size_t)plan->n_v * (size_t)plan->n_views;
	struct dbt_report report = {0};
	struct session s = {0};
	double begin = seconds(), now;
	int r = check_plan(plan, detector, err);

	if (r < 0)
		return r;
	r = dbt_layout_make(p, plan, detector, &s.layout, err);
	if (r < 0 || (r = v->alloc(dev, grid_size(&plan->grid), &s.x, err)) < 0 || (r = v->alloc(dev, bins, &s.y, err)) < 0 ||
	    (r = v->alloc(dev, bins, &s.mask, err)) < 0)
		goto out;
	if ((r = upload_all(&s, plan, line, valid, monitor, err)) < 0 || (r = open_subsets(&s, p, plan, dev, err)) < 0)
		goto out;
	now = seconds();
	report.seconds_setup = now - begin;
	begin = now;
	r = em_run(&conf, s.subsets, (size_t)s.layout.n_subsets, &s.x, monitor, err);
	if (r == 0 && p->algorithm == DBT_MLEM)
		r = sum_up(&s, &report, err);
	if (r < 0)
		goto out;
	now = seconds();
	report.seconds_iterate = now - begin;
	begin = now;
	r = v->download(&s.x, ret_volume, err);
	if (r == 0)
		r = support_clear(s.layout.scan, &plan->grid, valid, s.layout.order, s.start, ret_volume, err);
	if (r < 0)
		goto out;
	if (ret_report)
		*ret_report = report;
out:
	session_clear(&s);
	return r;
}
