/* SPDX-License-Identifier: Apache-2.0 */
/* iterate_stream.c - copy slabs to the device, process them, and copy them back.
 *
 * Three slab buffers: the slab in one is processed while the next slab is uploaded into the second and the previous one is
 * downloaded from the third. For slab n the calls are, in this order (order() and the begin functions of kernels/device.h):
 *   UP before WORK; WORK before DOWN (of the slab before); DOWN before UP; begin upload n + 1; begin download n - 1; work n
 * Upload n + 1 waits for the download of slab n - 2, which used the same buffer, and for work n - 1 (WORK before DOWN before UP).
 * So upload n + 1, download n - 1 and work n run at the same time. */
#include "recon/core/iterate_stream.h"

#include <errno.h>

size_t iterate_stream_size(size_t slab, size_t bins, bool rows, bool grouped, bool fused, size_t halo)
{
	return slab * (3 + (grouped ? 6 : fused && halo == 0 ? 0 : 2)) + 3 * 2 * halo + bins * (rows ? 5 : 4);
}

/* What process_slabs() copies for each slab, and the function that it calls, slab by slab, while a slab is on the device. */
struct slab_transfer {
	bool upload, download;		 /* copy x to the device; copy it back */
	bool neighbours;		 /* also upload the slice after a slab */
	bool upload_sums, download_sums; /* the same for num and den */
	int (*work)(struct iterate_stream *s, int slab, struct buf *x, struct buf *num, struct buf *den, void *ctx,
		    struct err *err);
	void *ctx;
};

static struct buf slab_part(const struct buf *b, const struct iterate_stream *s, int slab)
{
	return b->mem ? buf_part(b, 0, s->slab_n[slab]) : *b;
}

/* Return the part of x that a slab occupies, with `before` voxels before it and `after` voxels after it. */
static struct buf slab_of_x(const struct iterate_stream *s, int slab, size_t before, size_t after)
{
	return buf_part(&s->slab[slab % 3], s->halo - before, before + s->slab_n[slab] + after);
}

static int begin_upload(struct iterate_stream *s, const struct slab_transfer *t, int i, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct buf x = slab_of_x(s, i, 0, t->neighbours && i + 1 < s->n_slabs ? s->halo : 0),
		   num = slab_part(&s->slab_num[i % 3], s, i), den = slab_part(&s->slab_den[i % 3], s, i);
	int r = t->upload ? v->upload_begin(&x, s->x + s->slab_at[i], err) : 0;

	if (r == 0 && t->upload_sums && (r = v->upload_begin(&num, s->num + s->slab_at[i], err)) == 0)
		r = v->upload_begin(&den, s->den + s->slab_at[i], err);
	return r;
}

static int begin_download(struct iterate_stream *s, const struct slab_transfer *t, int i, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct buf x = slab_of_x(s, i, 0, 0), num = slab_part(&s->slab_num[i % 3], s, i),
		   den = slab_part(&s->slab_den[i % 3], s, i);
	int r = t->download ? v->download_begin(&x, s->x + s->slab_at[i], err) : 0;

	if (r == 0 && t->download_sums && (r = v->download_begin(&num, s->num + s->slab_at[i], err)) == 0)
		r = v->download_begin(&den, s->den + s->slab_at[i], err);
	return r;
}

static int order_queues(struct device *dev, struct err *err)
{
	int r = dev->ops->order(dev, QUEUE_UP, QUEUE_WORK, err);

	if (r == 0)
		r = dev->ops->order(dev, QUEUE_WORK, QUEUE_DOWN, err);
	return r < 0 ? r : dev->ops->order(dev, QUEUE_DOWN, QUEUE_UP, err);
}

/* Process all slabs once. The first upload starts when all work queued before is complete; on return all downloads are
 * complete. */
static int process_slabs(struct iterate_stream *s, const struct slab_transfer *t, struct err *err)
{
	struct device *dev = s->dev;
	int r = dev->ops->order(dev, QUEUE_WORK, QUEUE_UP, err);

	if (r == 0)
		r = begin_upload(s, t, 0, err);
	for (int i = 0; r == 0 && i < s->n_slabs; i++) {
		struct buf x = slab_of_x(s, i, 0, 0), num = slab_part(&s->slab_num[i % 3], s, i),
			   den = slab_part(&s->slab_den[i % 3], s, i);

		r = order_queues(dev, err);
		if (r == 0 && i + 1 < s->n_slabs)
			r = begin_upload(s, t, i + 1, err);
		if (r == 0 && i > 0)
			r = begin_download(s, t, i - 1, err);
		if (r == 0)
			r = t->work(s, i, &x, &num, &den, t->ctx, err);
	}
	if (r == 0)
		r = dev->ops->order(dev, QUEUE_WORK, QUEUE_DOWN, err);
	if (r == 0)
		r = begin_download(s, t, s->n_slabs - 1, err);
	return r < 0 ? r : dev->ops->wait(dev, QUEUE_DOWN, err);
}

/* Copy n floats of a group from host memory to the device buffer `what`, when the queued work that uses the buffer is complete.
 * Work queued later waits for the copy. */
static int upload_group(struct iterate_stream *s, struct buf *what, const float *from, size_t n, struct err *err)
{
	struct buf part = buf_part(what, 0, n);
	int r = s->dev->ops->order(s->dev, QUEUE_WORK, QUEUE_UP, err);

	if (r == 0)
		r = s->dev->ops->upload_begin(&part, from, err);
	return r < 0 ? r : s->dev->ops->order(s->dev, QUEUE_UP, QUEUE_WORK, err);
}

static int mark_slab(struct iterate_stream *s, int slab, struct buf *x, struct buf *num, struct buf *den, void *ctx,
		     struct err *err)
{
	const float *start = ctx;
	int r = s->dev->ops->fill(x, 0, err);

	(void)num;
	(void)den;
	for (int g = 0; r == 0 && g < s->n_groups; g++) {
		const struct iterate_group *group = &s->group[g];
		struct buf mask = group->mask;

		r = upload_group(s, &mask, group->valid, group->bins, err);
		if (r == 0)
			r = group->op[slab]->mark(group->op[slab], x, err);
	}
	return r < 0 ? r : s->dev->ops->threshold(x, 0, *start, err);
}

static int forward_slab(struct iterate_stream *s, int slab, struct buf *x, struct buf *num, struct buf *den, void *ctx,
			struct err *err)
{
	const struct iterate_group *group = ctx;
	struct buf p = buf_part(&s->p, 0, group->bins);

	(void)num;
	(void)den;
	return group->op[slab]->apply_add(group->op[slab], x, &p, err);
}

/* Copy the mask of a group to the device and compute p = A x for it. */
static int project_group(struct iterate_stream *s, const struct iterate_group *group, struct err *err)
{
	struct slab_transfer t = {.upload = true, .work = forward_slab, .ctx = (void *)group};
	struct buf mask = group->mask, p = buf_part(&s->p, 0, group->bins);
	int r = upload_group(s, &mask, group->valid, group->bins, err);

	if (r == 0)
		r = s->dev->ops->fill(&p, 0, err);
	return r < 0 ? r : process_slabs(s, &t, err);
}

int iterate_stream_begin(struct iterate_stream *s, float start, bool lengths, bool ones, const struct monitor *monitor,
			 struct err *err)
{
	struct slab_transfer t = {.download = true, .work = mark_slab, .ctx = &start};
	int r = process_slabs(s, &t, err);

	for (int g = 0; r == 0 && g < s->n_groups && (lengths || ones); g++) {
		const struct iterate_group *group = &s->group[g];
		struct buf p = buf_part(&s->p, 0, group->bins);

		if (monitor_cancelled(monitor))
			return err_set(err, ECANCELED, "reconstruction cancelled before the first step");
		for (size_t i = 0; ones && i < group->bins; i++)
			group->row[i] = 1;
		if (ones)
			continue;
		r = project_group(s, group, err);
		if (r == 0)
			r = s->dev->ops->download(&p, group->row, err);
		for (size_t i = 0; r == 0 && i < group->bins; i++)
			group->row[i] /= start;
	}
	return r;
}

/* The work of one pass over the slabs: back pass and update for the current group, forward pass for the next. */
struct step {
	const struct iterate_conf *conf;
	const struct rule *rule;
	const struct iterate_group *current, *next; /* next: NULL in the last step */
};

/* Add the penalty to a slab's sums. Its last slice is first copied to where the next slab needs it. */
static int penalise_slab(struct iterate_stream *s, const struct step *step, int slab, struct buf *num, struct buf *den,
			 struct err *err)
{
	int before = slab > 0, after = slab + 1 < s->n_slabs, halo[2] = {before, after}, r = 0;
	struct buf x = slab_of_x(s, slab, before ? s->halo : 0, after ? s->halo : 0);
	struct grid grid = *step->conf->grid;

	grid.n[2] = (int)(s->slab_n[slab] / s->halo);
	if (after) {
		struct buf last = buf_part(&s->slab[slab % 3], s->slab_n[slab], s->halo),
			   next = buf_part(&s->slab[(slab + 1) % 3], 0, s->halo);

		r = s->dev->ops->copy(&last, &next, err);
	}
	return r < 0 ? r
		     : s->dev->ops->prior_sums(step->conf->prior, &x, &grid, halo, rule_is_ratio(step->rule->kind), num, den,
					       err);
}

static int step_slab(struct iterate_stream *s, int slab, struct buf *x, struct buf *num, struct buf *den, void *ctx,
		     struct err *err)
{
	const struct step *step = ctx;
	const struct iterate_group *g = step->current;
	const struct linop *op = g->op[slab];
	struct buf pair = buf_part(&s->pair, 0, 2 * g->bins);
	int r;

	if (g->first && g->last && linop_fused(op) && !step->conf->prior) {
		r = op->adjoint_update(op, step->rule, &pair, x, err);
	} else {
		r = op->adjoint_sums(op, &pair, !g->first, num, den, err);
		if (r == 0 && g->last && step->conf->prior)
			r = penalise_slab(s, step, slab, num, den, err);
		if (r == 0 && g->last)
			r = s->dev->ops->rule_voxels(step->rule, num, den, x, err);
	}
	if (r == 0 && step->next && rule_needs_line(step->rule->kind))
		r = forward_slab(s, slab, x, num, den, (void *)step->next, err);
	return r;
}

/* Compute the pair of the current group; then p is free: copy the mask of the next group and set p to 0 for its forward pass. */
static int make_group_pair(struct iterate_stream *s, const struct step *step, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	const struct iterate_group *g = step->current;
	struct buf y = buf_part(&s->y, 0, g->bins), p = buf_part(&s->p, 0, g->bins), pair = buf_part(&s->pair, 0, 2 * g->bins),
		   row = {0};
	int r = upload_group(s, &y, g->y, g->bins, err);

	if (r == 0 && g->row) {
		row = buf_part(&s->row, 0, g->bins);
		r = upload_group(s, &row, g->row, g->bins, err);
	}
	if (r == 0)
		r = g->op[0]->make_pair(g->op[0], step->rule, &y, &p, g->row ? &row : NULL, &pair, err);
	if (r == 0 && step->next && rule_needs_line(step->rule->kind)) {
		struct buf mask = step->next->mask, p_next = buf_part(&s->p, 0, step->next->bins);

		if (step->next != g)
			r = upload_group(s, &mask, step->next->valid, step->next->bins, err);
		if (r == 0)
			r = v->fill(&p_next, 0, err);
	}
	return r;
}

int iterate_stream_run(struct iterate_stream *s, const struct iterate_conf *conf, const struct monitor *monitor, struct err *err)
{
	size_t steps = (size_t)s->n_groups * (size_t)(conf->iterations > 0 ? conf->iterations : 0);
	bool line = rule_needs_line(conf->rule.kind);
	int r = iterate_check(conf, err);

	if (r == 0 && conf->prior && (!conf->grid || s->halo != (size_t)conf->grid->n[0] * (size_t)conf->grid->n[1]))
		r = err_set(err, EINVAL, "iteration: a prior, but slabs have a halo of %zu voxels", s->halo);
	if (r == 0 && line)
		r = project_group(s, &s->group[0], err);
	else if (r == 0)
		r = s->dev->ops->fill(&s->p, 0, err);
	for (size_t n = 0; r == 0 && n < steps; n++) {
		struct step step = {conf, &conf->rule, &s->group[n % (size_t)s->n_groups],
				    n + 1 < steps ? &s->group[(n + 1) % (size_t)s->n_groups] : NULL};
		bool single_group = step.current->first && step.current->last,
		     needs_x = step.current->last || (step.next && line);
		struct slab_transfer t = {.upload = needs_x,
					  .download = step.current->last,
					  .neighbours = step.current->last && conf->prior,
					  .upload_sums = !single_group && !step.current->first,
					  .download_sums = !single_group && !step.current->last,
					  .work = step_slab,
					  .ctx = &step};

		if (monitor_cancelled(monitor))
			return err_set(err, ECANCELED, "reconstruction cancelled after %zu of %zu steps", n, steps);
		if (!line) { /* the mask is not yet on the device, because the rule needs no forward pass */
			struct buf mask = step.current->mask;

			r = upload_group(s, &mask, step.current->valid, step.current->bins, err);
		}
		if (r == 0)
			r = make_group_pair(s, &step, err);
		if (r == 0)
			r = process_slabs(s, &t, err);
		if (r == 0)
			monitor_progress(monitor, "reconstruct", (double)(n + 1) / (double)steps);
	}
	return r;
}
