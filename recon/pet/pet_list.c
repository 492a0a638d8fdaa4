/* SPDX-License-Identifier: Apache-2.0 */
/* pet_list.c - a list-mode session from open to close: sensitivity, start, updates, post-filter. */
#include "recon/pet/pet_list.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/clock.h"
#include "recon/pet/pet_list_internal.h"

#define FLOOR 1e-6	   /* fraction of the mean sensitivity; of the line integral of 1 mm at the start */
#define LEVEL_LEAST 0.01   /* as in pet_em.c */
#define FLOAT_LEAST 1e-30f /* far above the smallest normal number */

/* The volume itself as an operator, for the resolution model. */
static int copy_volume(const struct linop *op, const struct buf *x, struct buf *ret, struct err *err)
{
	return op->dev->ops->copy(x, ret, err);
}

static void free_op(struct linop *op)
{
	free(op);
}

static int open_psf(struct pet_list_session *s, struct err *err)
{
	const struct grid *g = &s->plan->grid;
	struct linop *volume = calloc(1, sizeof(*volume));
	int r;

	if (!volume)
		return err_set(err, ENOMEM, "list mode: out of memory");
	*volume = (struct linop){.n_in = grid_size(g),
				 .n_out = grid_size(g),
				 .dev = s->dev,
				 .apply = copy_volume,
				 .adjoint = copy_volume,
				 .destroy = free_op};
	r = psf_work_alloc(&s->memory, g, s->p->psf, s->psf_work, err);
	if (r == 0)
		r = psf_create(volume, g, s->p->psf, s->psf_work, &s->psf, err);
	if (r < 0)
		free(volume);
	return r;
}

static int open_volumes(struct pet_list_session *s, struct err *err)
{
	struct buf *volume[] = {&s->x, &s->num, &s->den, &s->seen};
	size_t n = grid_size(&s->plan->grid);

	for (int i = 0; i < (s->p->psf > 0 ? 4 : 3); i++)
		session_alloc(&s->memory, n, volume[i], err);
	session_host(&s->memory, n * sizeof(float), (void **)&s->out, err);
	return s->memory.rc == 0 && s->p->psf > 0 ? open_psf(s, err) : s->memory.rc;
}

static int open_events(struct pet_list_session *s, struct err *err)
{
	struct session_memory *m = &s->memory;
	size_t batch = s->plan->batch, room[2] = {batch > PET_LIST_CHUNK ? batch : PET_LIST_CHUNK, batch};

	session_alloc(m, 3 * s->list->n_detectors, &s->detectors, err);
	for (int i = 0; i < 2; i++) {
		session_alloc(m, batch * EVENT_FLOATS, &s->slot[i], err);
		session_host(m, room[i] * sizeof(struct event), (void **)&s->staging[i], err);
	}
	if (s->plan->resident)
		session_alloc(m, s->list->n_events * EVENT_FLOATS, &s->resident, err);
	if (s->list->lors.read) {
		session_alloc(m, batch, &s->weight, err);
		session_host(m, batch * sizeof(float), (void **)&s->staging_weight, err);
	}
	session_array(m, PET_LIST_CHUNK, sizeof(*s->chunk), (void **)&s->chunk, err);
	return m->rc < 0 ? m->rc : s->dev->ops->upload(&s->detectors, s->list->detectors, err);
}

int pet_list_open(const struct pet_protocol *p, const struct pet_plan *plan, const struct pet_list *list, struct device *dev,
		  struct pet_list_session **ret_session, struct err *err)
{
	struct pet_list_session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, ENOMEM, "list mode: out of memory");
	*s = (struct pet_list_session){.p = p, .plan = plan, .list = list, .dev = dev, .memory = {dev}, .unit = 1};
	r = open_volumes(s, err);
	if (r == 0)
		r = open_events(s, err);
	if (r < 0)
		pet_list_close(s);
	else
		*ret_session = s;
	return r;
}

struct pet_list_session *pet_list_close(struct pet_list_session *s)
{
	if (!s)
		return NULL;
	session_drain(s->dev);
	s->dev->ops->events_free(s->events);
	linop_free(s->psf);
	session_release(&s->memory);
	free(s);
	return NULL;
}

/* Compute the mean sensitivity of the voxels in the field of view, and its sum. */
static void sum_sensitivity(const struct pet_list_session *s, const float *sensitivity, double *ret_mean, double *ret_sum)
{
	const struct grid *g = &s->plan->grid;
	size_t column = grid_column(g), columns = (size_t)g->n[0] * (size_t)g->n[1], inside = 0;

	*ret_sum = 0;
	for (size_t i = 0; i < columns; i++)
		if (pet_column_inside(g, s->plan->fov_radius, i)) {
			for (size_t k = 0; k < (size_t)g->n[2]; k++)
				*ret_sum += sensitivity[i * column + k];
			inside += (size_t)g->n[2];
		}
	*ret_mean = inside ? *ret_sum / (double)inside : 0;
}

/* Set x to the start and den to the sensitivity of a subset. */
static int start_image(struct pet_list_session *s, struct rule *ret_rule, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	size_t n = s->den.n;
	double mean, sum, level, counts = (double)s->list->n_events;
	float *sensitivity = malloc(n * sizeof(*sensitivity));
	int r = sensitivity ? v->download(&s->den, sensitivity, err) : err_set(err, ENOMEM, "list mode: no memory for a volume");

	if (r < 0)
		goto out;
	sum_sensitivity(s, sensitivity, &mean, &sum);
	if (!(sum > 0)) {
		r = err_set(err, EDOM, "list mode: no LOR with a factor above 0 meets the volume (%d x %d x %d voxels)",
			    s->plan->grid.n[0], s->plan->grid.n[1], s->plan->grid.n[2]);
		goto out;
	}
	level = fmax(counts - s->list->background, LEVEL_LEAST * counts) / sum;
	s->unit = pet_unit_of(level);
	pet_draw_start(&s->plan->grid, s->plan->fov_radius, sensitivity, (float)(FLOOR * mean), (float)(level * s->unit), s->out);
	for (size_t i = 0; i < n; i++)
		sensitivity[i] *= (float)(1 / (s->unit * s->plan->subsets));
	r = v->upload(&s->x, s->out, err);
	if (r == 0)
		r = v->upload(&s->den, sensitivity, err);
	*ret_rule = (struct rule){
		.kind = RULE_EM,
		.bin_floor = fmaxf((float)(FLOOR * level * s->unit), FLOAT_LEAST),
		.voxel_floor = fmaxf((float)(FLOOR * mean / (s->unit * s->plan->subsets)), FLOAT_LEAST),
		.step = 1,
	};
out:
	free(sensitivity);
	return r;
}

static int update_image(struct pet_list_session *s, int subset, const struct rule *rule, const struct monitor *monitor,
			struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	int r = v->fill(&s->num, 0, err);

	if (r == 0 && s->psf)
		r = s->psf->apply(s->psf, &s->x, &s->seen, err);
	if (r == 0)
		r = pet_list_pass(s, subset, rule->bin_floor, monitor, err);
	if (r == 0 && s->psf)
		r = s->psf->adjoint(s->psf, &s->num, &s->num, err);
	return r < 0 ? r : v->rule_voxels(rule, &s->num, &s->den, &s->x, err);
}

static int iterate_subsets(struct pet_list_session *s, const struct rule *rule, const struct monitor *monitor, struct err *err)
{
	int steps = s->plan->iterations * s->plan->subsets, r = 0;

	for (int step = 0; r == 0 && step < steps; step++) {
		if (monitor_cancelled(monitor))
			return err_set(err, ECANCELED, "reconstruction cancelled after %d of %d steps", step, steps);
		r = update_image(s, step % s->plan->subsets, rule, monitor, err);
		if (r == 0 && monitor) /* do not run ahead of the device */
			r = s->dev->ops->wait(s->dev, QUEUE_WORK, err);
		monitor_progress(monitor, "reconstruct", (double)(step + 1) / steps);
	}
	return r < 0 ? r : s->dev->ops->wait(s->dev, QUEUE_WORK, err);
}

int pet_list_run(struct pet_list_session *s, const struct monitor *monitor, struct pet_report *ret_report, struct err *err)
{
	struct pet_report report = {.counts = (double)s->list->n_events};
	struct events_spec spec = pet_list_spec(s->p, s->list, s->plan, false, &s->detectors);
	double began = clock_seconds(), then = began;
	struct rule rule = {0};
	int r = s->done ? err_set(err, EINVAL, "list mode: pet_list_run() was already called") : 0;

	s->done = true;
	if (r == 0)
		r = pet_list_sensitivity(s, monitor, &report.lors, err);
	if (r == 0)
		r = start_image(s, &rule, err);
	report.seconds_sensitivity = clock_seconds() - then;
	then = clock_seconds();
	if (r == 0)
		r = s->dev->ops->events_create(s->dev, &spec, &s->events, err);
	if (r == 0)
		r = pet_list_load(s, monitor, err);
	report.seconds_read = clock_seconds() - then;
	then = clock_seconds();
	if (r == 0)
		r = iterate_subsets(s, &rule, monitor, err);
	report.seconds_iterate = clock_seconds() - then;
	then = clock_seconds();
	if (r == 0)
		r = pet_filter_image(s->p, &s->plan->grid, &s->x, &s->num, &s->den, s->out, err);
	report.seconds_filter = clock_seconds() - then;
	s->result = r == 0;
	if (r == 0 && ret_report)
		*ret_report = report;
	return r;
}

int pet_list_read_slices(struct pet_list_session *s, int first, int n, float *ret_slices, struct err *err)
{
	const struct pet_result result = {&s->plan->grid, s->plan->fov_radius, s->p->postfilter, s->unit,
					  s->out,	  s->result,	       "pet_list_run()"};

	return pet_result_read(&result, first, n, ret_slices, err);
}
