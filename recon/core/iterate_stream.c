/* SPDX-License-Identifier: Apache-2.0 */
/* iterate_stream.c - copy slabs through the device and process them.
 *
 * Three slab buffers: one is processed while the next is uploaded and the previous one is downloaded. The order is
 *   UP before WORK; WORK before DOWN (of the slab before); DOWN before UP; begin upload n + 1; begin download n - 1; work n
 * Upload n + 1 waits for the download of slab n - 2, which used the same buffer, and for work n - 1 (WORK before DOWN before UP).
 * So upload n + 1, download n - 1 and work n run at the same time. */
#include "recon/core/iterate_stream.h"

#include <errno.h>

size_t iterate_stream_size(size_t slab, size_t bins, bool rows, bool grouped, bool fused)
{
	return slab * (3 + (grouped ? 6 : fused ? 0 : 2)) + bins * (rows ? 5 : 4);
}

/* The work on each slab while it is on the device. Called in the order of slabs. */
struct trip {
	bool up, down;		 /* copy x to the device, and back */
	bool up_sums, down_sums; /* the same for num and den */
	int (*work)(struct iterate_stream *s, int slab, struct buf *x, struct buf *num, struct buf *den, void *ctx,
		    struct err *err);
	void *ctx;
};

static struct buf slab_part(const struct buf *b, const struct iterate_stream *s, int slab)
{
	return b->mem ? buf_part(b, 0, s->slab_n[slab]) : *b;
}

static int go_up(struct iterate_stream *s, const struct trip *t, int i, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct buf x = slab_part(&s->slab[i % 3], s, i), num = slab_part(&s->slab_num[i % 3], s, i),
		   den = slab_part(&s->slab_den[i % 3], s, i);
	int r = t->up ? v->upload_begin(&x, s->x + s->slab_at[i], err) : 0;

	if (r == 0 && t->up_sums && (r = v->upload_begin(&num, s->num + s->slab_at[i], err)) == 0)
		r = v->upload_begin(&den, s->den + s->slab_at[i], err);
	return r;
}

static int go_down(struct iterate_stream *s, const struct trip *t, int i, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct buf x = slab_part(&s->slab[i % 3], s, i), num = slab_part(&s->slab_num[i % 3], s, i),
		   den = slab_part(&s->slab_den[i % 3], s, i);
	int r = t->down ? v->download_begin(&x, s->x + s->slab_at[i], err) : 0;

	if (r == 0 && t->down_sums && (r = v->download_begin(&num, s->num + s->slab_at[i], err)) == 0)
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

/* Process all slabs once. Work queued before is complete before the first upload, and all downloads are complete at the end. */
static int travel(struct iterate_stream *s, const struct trip *t, struct err *err)
{
	struct device *dev = s->dev;
	int r = dev->ops->order(dev, QUEUE_WORK, QUEUE_UP, err);

	if (r == 0)
		r = go_up(s, t, 0, err);
	for (int i = 0; r == 0 && i < s->n_slabs; i++) {
		struct buf x = slab_part(&s->slab[i % 3], s, i), num = slab_part(&s->slab_num[i % 3], s, i),
			   den = slab_part(&s->slab_den[i % 3], s, i);

		r = order_queues(dev, err);
		if (r == 0 && i + 1 < s->n_slabs)
			r = go_up(s, t, i + 1, err);
		if (r == 0 && i > 0)
			r = go_down(s, t, i - 1, err);
		if (r == 0)
			r = t->work(s, i, &x, &num, &den, t->ctx, err);
	}
	if (r == 0)
		r = dev->ops->order(dev, QUEUE_WORK, QUEUE_DOWN, err);
	if (r == 0)
		r = go_down(s, t, s->n_slabs - 1, err);
	return r < 0 ? r : dev->ops->wait(dev, QUEUE_DOWN, err);
}

/* Copy a group's data to the device, after queued work that uses `what`. */
static int bring(struct iterate_stream *s, struct buf *what, const float *from, size_t n, struct err *err)
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

		r = bring(s, &mask, group->valid, group->bins, err);
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

/* Compute p = A x of one group; copies its mask to the device. */
static int project(struct iterate_stream *s, const struct iterate_group *group, struct err *err)
{
	struct trip t = {.up = true, .work = forward_slab, .ctx = (void *)group};
	struct buf mask = group->mask, p = buf_part(&s->p, 0, group->bins);
	int r = bring(s, &mask, group->valid, group->bins, err);

	if (r == 0)
		r = s->dev->ops->fill(&p, 0, err);
	return r < 0 ? r : travel(s, &t, err);
}

int iterate_stream_begin(struct iterate_stream *s, float start, bool lengths, bool ones, const struct monitor *monitor,
			 struct err *err)
{
	struct trip t = {.down = true, .work = mark_slab, .ctx = &start};
	int r = travel(s, &t, err);

	for (int g = 0; r == 0 && g < s->n_groups && (lengths || ones); g++) {
		const struct iterate_group *group = &s->group[g];
		struct buf p = buf_part(&s->p, 0, group->bins);

		if (monitor_cancelled(monitor))
			return err_set(err, ECANCELED, "reconstruction cancelled before the first step");
		for (size_t i = 0; ones && i < group->bins; i++)
			group->row[i] = 1;
		if (ones)
			continue;
		r = project(s, group, err);
		if (r == 0)
			r = s->dev->ops->download(&p, group->row, err);
		for (size_t i = 0; r == 0 && i < group->bins; i++)
			group->row[i] /= start;
	}
	return r;
}

/* The work of one pass over the slabs: the second half of a step for the current group, the first half for the next. */
struct step {
	const struct rule *rule;
	const struct iterate_group *here, *next; /* here: the current group; next: NULL after the last step */
};

static int step_slab(struct iterate_stream *s, int slab, struct buf *x, struct buf *num, struct buf *den, void *ctx,
		     struct err *err)
{
	const struct step *step = ctx;
	const struct iterate_group *g = step->here;
	const struct linop *op = g->op[slab];
	struct buf pair = buf_part(&s->pair, 0, 2 * g->bins);
	int r;

	if (g->first && g->last && linop_fused(op)) {
		r = op->adjoint_update(op, step->rule, &pair, x, err);
	} else {
		r = op->adjoint_sums(op, &pair, !g->first, num, den, err);
		if (r == 0 && g->last)
			r = s->dev->ops->rule_voxels(step->rule, num, den, x, err);
	}
	if (r == 0 && step->next && rule_needs_line(step->rule->kind))
		r = forward_slab(s, slab, x, num, den, (void *)step->next, err);
	return r;
}

/* Compute the pair of `here`, which frees its p; begin p of `next`. */
static int turn(struct iterate_stream *s, const struct step *step, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	const struct iterate_group *g = step->here;
	struct buf y = buf_part(&s->y, 0, g->bins), p = buf_part(&s->p, 0, g->bins), pair = buf_part(&s->pair, 0, 2 * g->bins),
		   row = {0};
	int r = bring(s, &y, g->y, g->bins, err);

	if (r == 0 && g->row) {
		row = buf_part(&s->row, 0, g->bins);
		r = bring(s, &row, g->row, g->bins, err);
	}
	if (r == 0)
		r = g->op[0]->make_pair(g->op[0], step->rule, &y, &p, g->row ? &row : NULL, &pair, err);
	if (r == 0 && step->next && rule_needs_line(step->rule->kind)) {
		struct buf mask = step->next->mask, p_next = buf_part(&s->p, 0, step->next->bins);

		if (step->next != g)
			r = bring(s, &mask, step->next->valid, step->next->bins, err);
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

	if (r == 0 && line)
		r = project(s, &s->group[0], err);
	else if (r == 0)
		r = s->dev->ops->fill(&s->p, 0, err);
	for (size_t n = 0; r == 0 && n < steps; n++) {
		struct step step = {&conf->rule, &s->group[n % (size_t)s->n_groups],
				    n + 1 < steps ? &s->group[(n + 1) % (size_t)s->n_groups] : NULL};
		bool alone = step.here->first && step.here->last, needs_x = step.here->last || (step.next && line);
		struct trip t = {.up = needs_x,
				 .down = step.here->last,
				 .up_sums = !alone && !step.here->first,
				 .down_sums = !alone && !step.here->last,
				 .work = step_slab,
				 .ctx = &step};

		if (monitor_cancelled(monitor))
			return err_set(err, ECANCELED, "reconstruction cancelled after %zu of %zu steps", n, steps);
		if (!line) { /* no earlier forward projection has computed it */
			struct buf mask = step.here->mask;

			r = bring(s, &mask, step.here->valid, step.here->bins, err);
		}
		if (r == 0)
			r = turn(s, &step, err);
		if (r == 0)
			r = travel(s, &t, err);
		if (r == 0)
			monitor_progress(monitor, "reconstruct", (double)(n + 1) / (double)steps);
	}
	return r;
}
