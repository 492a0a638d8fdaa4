/* dbt_session.c - a session of the DBT pipeline that keeps its views and its result in host memory. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/dbt.h"

struct dbt_session {
	const struct dbt_protocol *p;
	const struct dbt_plan *plan;
	const struct scan *detector;
	struct device *dev;
	float *line, *valid, *volume;
};

int dbt_open(const struct dbt_protocol *p, const struct dbt_plan *plan, const struct scan *detector, struct device *dev,
	     struct dbt_session **ret_session, struct err *err)
{
	size_t bins = (size_t)plan->n_u * (size_t)plan->n_v * (size_t)plan->n_views;
	struct dbt_session *s = calloc(1, sizeof(*s));

	if (s) {
		*s = (struct dbt_session){p, plan, detector, dev, malloc(bins * sizeof(float)), malloc(bins * sizeof(float)),
					  malloc(grid_size(&plan->grid) * sizeof(float))};
	}
	if (!s || !s->line || !s->valid || !s->volume) {
		dbt_close(s);
		return err_set(err, ENOMEM, "reconstruction: cannot allocate %zu bins and %zu voxels", bins,
			       grid_size(&plan->grid));
	}
	*ret_session = s;
	return 0;
}

struct dbt_session *dbt_close(struct dbt_session *s)
{
	if (s) {
		free(s->line);
		free(s->valid);
		free(s->volume);
		free(s);
	}
	return NULL;
}

int dbt_view_begin(struct dbt_session *s, int view, float **ret_line, float **ret_valid, struct err *err)
{
	size_t bins = (size_t)s->plan->n_u * (size_t)s->plan->n_v;

	if (view < 0 || view >= s->plan->n_views)
		return err_set(err, EINVAL, "projection %d of %d", view, s->plan->n_views);
	*ret_line = s->line + (size_t)view * bins;
	*ret_valid = s->valid + (size_t)view * bins;
	return 0;
}

int dbt_view_end(struct dbt_session *s, int view, struct err *err)
{
	(void)s;
	(void)view;
	(void)err;
	return 0;
}

int dbt_run(struct dbt_session *s, const struct monitor *monitor, struct dbt_report *ret_report, struct err *err)
{
	return dbt_reconstruct(s->p, s->plan, s->detector, s->dev, s->line, s->valid, monitor, s->volume, ret_report, err);
}

int dbt_read_slices(struct dbt_session *s, int first, int n, float *ret_slices, struct err *err)
{
	size_t slice = (size_t)s->plan->grid.n[0] * (size_t)s->plan->grid.n[1];

	if (first < 0 || n < 1 || n > s->plan->grid.n[2] - first)
		return err_set(err, EINVAL, "slices %d to %d of %d", first, first + n - 1, s->plan->grid.n[2]);
	memcpy(ret_slices, s->volume + (size_t)first * slice, (size_t)n * slice * sizeof(float));
	return 0;
}

int dbt_tally(struct dbt_session *s, double offset, double step, uint64_t bins[65536], size_t *ret_counted,
	      struct tally *ret_tally, struct err *err)
{
	size_t n = grid_size(&s->plan->grid), stride = 1 + n / 4000000;
	struct tally t = {0};

	(void)err;
	for (size_t i = 0; i < n; i++) {
		double steps = floor((s->volume[i] - offset) / step + 0.5);

		if (!isfinite(steps)) {
			t.bad++;
			continue;
		}
		t.below += steps < 0;
		t.above += steps > 65535;
		if (i % stride == 0)
			bins[(size_t)fmin(fmax(steps, 0), 65535)]++;
	}
	*ret_counted = (n + stride - 1) / stride;
	*ret_tally = t;
	return 0;
}
