/* SPDX-License-Identifier: Apache-2.0 */
/* dbt_views.c - receive views into a session, from several threads.
 *
 * Resident: the caller fills a view in one of DBT_STAGING_BUFFERS buffers in pinned host memory, which is then copied to the
 * device. Streamed: the caller fills its final place in host memory. The caller's thread checks and filters it; transfers run one
 * at a time. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/avx2.h"
#include "recon/dbt/dbt_internal.h"
#include "recon/dbt/fbp_filter.h"
#include "recon/dbt/skin_edge.h"

#define LANES 8	 /* sums of a row */
#define STEP 256 /* bins that are written if one of them changes; a multiple of LANES */

size_t dbt_cells_host_bytes(const struct dbt_protocol *p, const struct dbt_plan *plan, const struct scan *merged)
{
	struct view_cells c = view_cells_of(merged);

	return dbt_needs_cells(p) ? (size_t)c.n_u * (size_t)c.n_v * (size_t)plan->n_views * sizeof(float) : 0;
}

int dbt_cells_open(struct dbt_session *s, struct err *err)
{
	s->cells = view_cells_of(s->layout.scan);
	return session_array(&s->memory, dbt_cells_host_bytes(s->p, s->plan, s->layout.scan) / sizeof(float), sizeof(float),
			     (void **)&s->cell_means, err);
}

static int check_view(const struct dbt_session *s, int view, struct err *err)
{
	if (view < 0 || view >= s->plan->n_views || s->done)
		return err_set(err, EINVAL, "reconstruction: projection %d of %d%s", view, s->plan->n_views,
			       s->done ? " after dbt_run()" : "");
	return 0;
}

/* Find the staging buffer of a view; -1: a free one. */
static struct dbt_staging *staging_of(struct dbt_session *s, int view)
{
	for (int i = 0; i < DBT_STAGING_BUFFERS && i < s->plan->n_views; i++)
		if (s->staging[i].view == view)
			return &s->staging[i];
	return NULL;
}

/* Return the buffers of a view: its staging buffer or, streamed, its final place in host memory. */
static void place_of(struct dbt_session *s, int view, const struct dbt_staging *staging, float **ret_line, float **ret_valid)
{
	size_t at = (size_t)s->layout.views.place[view] * s->view_bins;

	*ret_line = staging ? staging->line : s->host_y + at;
	*ret_valid = staging ? staging->valid : s->host_valid + at;
}

int dbt_view_begin(struct dbt_session *s, int view, float **ret_line, float **ret_valid, struct err *err)
{
	struct dbt_staging *staging = NULL;
	int r;

	pthread_mutex_lock(&s->lock);
	r = check_view(s, view, err);
	if (r == 0 && s->view[view] != DBT_VIEW_PENDING)
		r = err_set(err, EINVAL, "reconstruction: projection %d was already received", view);
	if (r == 0) {
		s->view[view] = DBT_VIEW_BEGUN;
		while (!s->streamed && !(staging = staging_of(s, -1)))
			pthread_cond_wait(&s->changed, &s->lock);
		if (staging)
			staging->view = view;
	}
	pthread_mutex_unlock(&s->lock);
	if (r == 0)
		place_of(s, view, staging, ret_line, ret_valid);
	return r;
}

struct sums {
	double y[LANES], y2[LANES]; /* in a fixed order, whatever vectors the processor has */
	int bad;		    /* valid bins that are not finite, or negative */
};

/* Set invalid bins to 0 (with `filtered`, finite values of air are kept for the filter) and `valid` to 1, 0 or -1. Sum the valid
 * bins. n: a multiple of LANES. Most bins stay as they are: they are not written, so that the memory is only read. */
static inline __attribute__((always_inline)) void finish_bins_loop(bool filtered, size_t n, float *restrict line,
								   float *restrict valid, struct sums *s)
{
	int changed = 0, bad = 0;

	for (size_t i = 0; i < n; i += LANES)
#pragma omp simd reduction(| : changed, bad)
		for (size_t k = 0; k < LANES; k++) {
			float y = line[i + k], v = valid[i + k];
			int counts = v > 0, kept = counts | (filtered & (fabsf(y) <= FLT_MAX));
			float used = counts ? y : 0;

			bad |= counts & !((y >= 0) & (y <= FLT_MAX));
			changed |= !((kept | (y == 0)) & (v == (float)(counts - (v < 0))));
			s->y[k] += used;
			s->y2[k] += (double)used * used;
		}
	s->bad |= bad;
	if (!changed)
		return;
	for (size_t i = 0; i < n; i++) {
		float y = line[i], v = valid[i];
		int counts = v > 0, kept = counts | (filtered & (fabsf(y) <= FLT_MAX));

		line[i] = kept ? y : 0;
		valid[i] = (float)(counts - (v < 0));
	}
}

FOR_AVX2(void, finish_bins, (bool filtered, size_t n, float *line, float *valid, struct sums *s), (filtered, n, line, valid, s))

/* Normalise a row and sum its valid bins. Return whether all of them are finite and not negative. */
static bool finish_row(bool filtered, size_t n, float *line, float *valid, struct dbt_view_sums *ret_sums)
{
	float rest[2][LANES] = {{0}};
	size_t whole = n / LANES * LANES;
	struct sums s = {{0}};

	for (size_t i = 0; i < whole; i += STEP)
		finish_bins(filtered, whole - i < STEP ? whole - i : STEP, line + i, valid + i, &s);
	memcpy(rest[0], line + whole, (n - whole) * sizeof(*line));
	memcpy(rest[1], valid + whole, (n - whole) * sizeof(*valid));
	finish_bins(filtered, LANES, rest[0], rest[1], &s);
	memcpy(line + whole, rest[0], (n - whole) * sizeof(*line));
	memcpy(valid + whole, rest[1], (n - whole) * sizeof(*valid));
	*ret_sums = (struct dbt_view_sums){0};
	for (size_t k = 0; k < LANES; k++) {
		ret_sums->y += s.y[k];
		ret_sums->y2 += s.y2[k];
	}
	return !s.bad;
}

static int refuse_row(const struct dbt_session *s, int view, int row, const float *line, const float *valid, struct err *err)
{
	int u = 0;

	while (u < s->plan->n_u - 1 && !(valid[u] > 0 && !(line[u] >= 0 && line[u] <= FLT_MAX)))
		u++;
	return err_set(err, EINVAL, "projection %d, bin (%d, %d): line integral %g; allowed: finite, not negative", view, u, row,
		       (double)line[u]);
}

/* Normalise a view. Add up each row, then the rows: the result does not depend on the number of threads. */
static int finish_lines(const struct dbt_session *s, int view, float *line, float *valid, struct dbt_view_sums *sums,
			struct err *err)
{
	size_t n_u = (size_t)s->plan->n_u;
	bool filtered = algorithm_info(s->p->algorithm)->filtered;
	int n_v = s->plan->n_v, bad = n_v, r = 0;
	struct dbt_view_sums *rows = malloc((size_t)n_v * sizeof(*rows));

	if (!rows)
		return err_set(err, ENOMEM, "reconstruction: out of memory");
	if (s->cell_means) /* before the line integrals of air are set to 0: their level counts */
		view_cells_average(s->layout.scan, &s->cells, true, line, valid, dbt_cells_of(s, view));
#pragma omp parallel for schedule(static) reduction(min : bad)
	for (int v = 0; v < n_v; v++)
		if (!finish_row(filtered, n_u, line + (size_t)v * n_u, valid + (size_t)v * n_u, &rows[v]) && v < bad)
			bad = v;
	for (int v = 0; v < n_v; v++) {
		sums->y += rows[v].y;
		sums->y2 += rows[v].y2;
	}
	free(rows);
	if (bad < n_v)
		return refuse_row(s, view, bad, line + (size_t)bad * n_u, valid + (size_t)bad * n_u, err);
	if (s->metal)
		r = dbt_metal_find(s, view, line, valid, err);
	if (r == 0 && dbt_has_skin_edge(s->p))
		r = skin_edge_soften(s->plan->n_u, n_v, line, valid, err);
	if (r < 0)
		return r;
	if (s->p->edge_taper > 0 && sums->y > 0)
		sums->cut = field_edges_weigh(s->layout.scan, s->layout.views.place[view], &s->plan->grid, s->p->edge_taper,
					      sums->y2 / sums->y, !filtered, line, valid, &s->ends[view]);
	else
		s->ends[view] = (struct field_ends){.beside = {INFINITY, INFINITY}};
	return filtered ? fbp_filter_view(s->layout.scan, s->layout.views.place[view], s->p->filter, s->p->filter_cut, line,
					  valid, err)
			: 0;
}

static int upload_view(struct dbt_session *s, int view, const float *line, const float *valid, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	size_t at = (size_t)s->layout.views.place[view] * s->view_bins;
	struct buf y = buf_part(&s->y, at, s->view_bins), mask = buf_part(&s->mask, at, s->view_bins);
	int r = v->upload_begin(&y, line, err), waited;

	if (r == 0)
		r = v->upload_begin(&mask, valid, err);
	if (r == 0)
		r = v->order(s->dev, QUEUE_UP, QUEUE_WORK, err);
	waited = v->wait(s->dev, QUEUE_UP, r < 0 ? NULL : err);
	return r < 0 ? r : waited;
}

int dbt_view_end(struct dbt_session *s, int view, struct err *err)
{
	struct dbt_view_sums sums = {0};
	struct dbt_staging *staging = NULL;
	float *line, *valid;
	int r;

	pthread_mutex_lock(&s->lock);
	r = check_view(s, view, err);
	if (r == 0 && s->view[view] != DBT_VIEW_BEGUN)
		r = err_set(err, EINVAL, "reconstruction: projection %d was not begun", view);
	if (r == 0) {
		s->view[view] = DBT_VIEW_ENDING;
		staging = s->streamed ? NULL : staging_of(s, view);
	}
	pthread_mutex_unlock(&s->lock);
	if (r < 0)
		return r;
	place_of(s, view, staging, &line, &valid);
	r = finish_lines(s, view, line, valid, &sums, err);
	pthread_mutex_lock(&s->lock);
	if (r == 0 && staging)
		r = upload_view(s, view, line, valid, err);
	if (staging)
		staging->view = -1;
	s->view[view] = r == 0 ? DBT_VIEW_PRESENT : DBT_VIEW_PENDING;
	if (r == 0) {
		s->view_sums[view] = sums;
		s->n_received++;
	}
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return r;
}

int dbt_view_withdraw(struct dbt_session *s, int view, struct err *err)
{
	int r;

	pthread_mutex_lock(&s->lock);
	r = check_view(s, view, err);
	if (r == 0 && s->view[view] != DBT_VIEW_PRESENT)
		r = err_set(err, EINVAL, "reconstruction: projection %d was not received", view);
	if (r == 0) {
		s->view[view] = DBT_VIEW_PENDING;
		s->n_received--;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* Multiply the rows of a view by these parts. */
static int scale_view(struct dbt_session *s, int view, const float *part, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	size_t n_u = (size_t)s->plan->n_u, at = (size_t)s->layout.views.place[view] * s->view_bins;
	struct buf y, parts;
	int r;

	for (size_t i = 0; s->streamed && i < s->view_bins; i++)
		s->host_y[at + i] *= part[i / n_u];
	if (s->streamed)
		return 0;
	y = buf_part(&s->y, at, s->view_bins);
	parts = buf_part(&s->work.pair, 0, s->view_bins);
	for (size_t i = 0; i < s->view_bins; i++)
		s->staging[0].line[i] = part[i / n_u];
	r = v->upload(&parts, s->staging[0].line, err);
	return r < 0 ? r : v->multiply(&y, &parts, &y, err);
}

int dbt_scale_ends(struct dbt_session *s, struct err *err)
{
	float *part = malloc((size_t)s->plan->n_v * sizeof(*part));
	bool continues[2];
	int r = 0;

	if (!part)
		return err_set(err, ENOMEM, "reconstruction: out of memory");
	field_edges_continue(s->ends, s->plan->n_views, continues);
	for (int i = 0; r == 0 && i < s->plan->n_views; i++)
		if (field_edges_parts(s->layout.scan, s->layout.views.place[i], &s->plan->grid, &s->ends[i], continues, part))
			r = scale_view(s, i, part, err);
	free(part);
	return r;
}
