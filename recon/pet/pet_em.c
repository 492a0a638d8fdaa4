/* SPDX-License-Identifier: Apache-2.0 */
/* pet_em.c - MLEM, OSEM and BSREM: compute sensitivity images and a start, then iterate (recon/core/iterate.h).
 *
 * The start is uniform over the voxels whose centre is in the field of view and that a ray with m > 0 crosses. Its value is sum(y
 * - b) / sum(m A 1), which explains the number of counts. Floors are fractions of the means of data and sensitivity, so that
 * their units have no effect.
 *
 * BSREM divides its steps by the mean sensitivity of a subset, the same for all of them, plus twice an upper
 * bound of the penalty's second derivative times x: this prevents oscillation for any weight of the penalty. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/clock.h"
#include "recon/pet/pet_internal.h"

#define FLOOR 1e-6	   /* fraction of the mean */
#define LEVEL_LEAST 0.01   /* least start, as a fraction of the level that ignores the background; EM needs a start > 0 */
#define EPSILON 1e-3	   /* fraction of the level: below it the relative difference prior becomes quadratic */
#define FLOAT_LEAST 1e-30f /* far above the smallest normal number */

static int alloc_volumes(struct pet_session *s, struct err *err)
{
	struct pet_volumes v = pet_volumes_of(s->p, s->layout.views.n_subsets, pet_is_streamed(s));
	struct session_memory *m = &s->memory;
	size_t n = grid_size(&s->plan->grid);

	if (session_array(m, (size_t)s->layout.views.n_subsets, sizeof(*s->den), (void **)&s->den, err) < 0)
		return m->rc;
	for (int k = 0; k < v.den; k++)
		session_alloc(m, n, &s->den[k], err);
	for (int k = v.den; k < s->layout.views.n_subsets; k++)
		s->den[k] = s->den[0];
	if (v.scale)
		session_alloc(m, n, &s->scale, err);
	return m->rc == 0 && v.psf ? psf_work_alloc(m, &s->plan->grid, s->p->psf, s->psf_work, err) : m->rc;
}

int pet_em_open(struct pet_session *s, struct err *err)
{
	int r = alloc_volumes(s, err);

	return r < 0 ? r : pet_parts_open(s, err);
}

void pet_em_release(struct pet_session *s)
{
	pet_parts_release(s);
	s->sensitivity = pet_sensitivity_release(s->sensitivity, s->cache);
}

static int check_counts(const struct pet_session *s, struct err *err)
{
	if (!(s->counts.data > 0))
		return err_set(err, EDOM, "sinogram: no counts: all %.0f bins%s in the field of view of %g mm radius are 0",
			       s->counts.bins, s->has[PET_FACTORS] ? " with factors above 0" : "", s->plan->fov_radius);
	return 0;
}

/* Multiply data and background by the unit. */
static void choose_unit(struct pet_session *s)
{
	double level = s->counts.data * scan_ray_bins(s->layout.scan) / s->counts.factors / s->plan->fov_radius;
	size_t n = s->view_bins * (size_t)s->m->n_angles;

	s->unit = pet_unit_of(level);
	for (int role = PET_DATA; role < PET_ROLES; role++) {
		float *bins = s->host[role];

		if (!s->has[role] || role == PET_FACTORS || s->unit == 1)
			continue;
#pragma omp parallel for schedule(static)
		for (size_t i = 0; i < n; i++)
			bins[i] = (float)(bins[i] * s->unit);
	}
}

static int upload_role(struct pet_session *s, enum pet_role role, struct err *err)
{
	return pet_is_streamed(s) || !s->loads[role] ? 0 : s->dev->ops->upload_begin(&s->data[0][role], s->host[role], err);
}

/* Upload the factors, then compute the sensitivity while data and background are transferred. */
static int prepare_factors(struct pet_session *s, struct pet_report *report, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	double begin = clock_seconds();
	int r;

	choose_unit(s);
	r = upload_role(s, PET_FACTORS, err);
	if (r == 0)
		r = v->order(s->dev, QUEUE_UP, QUEUE_WORK, err);
	if (r == 0 && (r = upload_role(s, PET_DATA, err)) == 0)
		r = upload_role(s, PET_BACKGROUND, err);
	if (r == 0)
		r = pet_parts_sensitivity(s, &report->sensitivity_cached, err);
	if (r == 0)
		r = v->order(s->dev, QUEUE_UP, QUEUE_WORK, err);
	report->seconds_sensitivity = clock_seconds() - begin;
	return r;
}

/* Set x to the start; work.num holds the sum of all den. */
static int start_image(struct pet_session *s, double *ret_mean, double *ret_level, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct buf *num = &s->work.num;
	double voxels, total, counts = s->unit * s->counts.data, background = s->unit * s->counts.background, level;
	int r;

	pet_draw_start(&s->plan->grid, s->plan->fov_radius, NULL, 0, 1, s->out);
	r = v->upload(&s->x, s->out, err);
	if (r < 0 || (r = v->sum(&s->x, &voxels, err)) < 0 || (r = v->dot(&s->x, num, &total, err)) < 0)
		return r;
	if (!(total > 0))
		return err_set(err, EBADMSG, "sinogram: no ray that counts meets the volume (%d x %d x %d voxels)",
			       s->plan->grid.n[0], s->plan->grid.n[1], s->plan->grid.n[2]);
	level = fmax(counts - background, LEVEL_LEAST * counts) / total;
	*ret_level = level;
	*ret_mean = total / voxels;
	if (s->scale.mem && (r = v->copy(num, &s->scale, err)) == 0)
		r = v->axpy((float)(1.0 / s->layout.views.n_subsets - 1), num, &s->scale, err);
	if (r == 0)
		r = v->threshold(num, (float)(FLOOR * *ret_mean), 1, err);
	if (r == 0)
		r = v->multiply(&s->x, num, &s->x, err);
	return r < 0 ? r : v->threshold(&s->x, 0.5f, (float)level, err);
}

/* Compute sums for a check of the data: sum(m A x) = sum(y) over the bins that count holds after every iteration of MLEM without
 * background. */
static int sum_up(struct pet_session *s, float floor, struct pet_report *report, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	int r = 0;

	for (int i = 0; r == 0 && i < s->n_parts; i++) {
		struct iterate_part *part = &s->parts[i];
		double model = 0, data = 0;
		struct buf p;

		r = pet_parts_load(s, part, err);
		if (r < 0)
			break;
		p = buf_part(&s->work.p, 0, part->y.n);
		r = part->op->apply(part->op, &s->x, &p, err);
		if (r == 0 && part->mult.mem)
			r = v->multiply(&p, &part->mult, &p, err);
		if (r < 0 || (r = v->sum(&p, &model, err)) < 0 || (r = v->threshold(&p, floor, 1, err)) < 0 ||
		    (r = v->dot(&part->y, &p, &data, err)) < 0)
			break;
		report->sum_model += model / s->unit;
		report->sum_data += data / s->unit;
	}
	if (r == 0 && s->has[PET_FACTORS] && !s->loads[PET_FACTORS]) {
		double model = 0;

		r = v->dot(&s->x, &s->den[0], &model, err); /* sum(m (A x)) = <x, A'm> */
		report->sum_model = model / s->unit;
	}
	return r;
}

/* c of kernels/prior.h for a voxel with 26 neighbours and beta = 1. */
static double steepest_prior(const struct grid *g)
{
	double sum = 0;

	for (int n = 0; n < PRIOR_NEIGHBOURS; n++)
		sum += prior_weight(1, 1, g, n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1);
	return 2 * sum;
}

int pet_em_run(struct pet_session *s, const struct monitor *monitor, struct pet_report *report, struct err *err)
{
	const struct algorithm_info *a = algorithm_info(s->p->algorithm);
	struct iterate_conf conf = {.iterations = s->plan->iterations, .load = pet_parts_load, .ctx = s, .grid = &s->plan->grid};
	struct prior prior = {0};
	double mean = 0, level = 0, began, floor;
	int r = check_counts(s, err);

	if (r < 0 || (r = prepare_factors(s, report, err)) < 0)
		return r;
	began = clock_seconds();
	r = start_image(s, &mean, &level, err);
	if (r < 0)
		return r;
	floor = FLOOR * s->unit * s->counts.data / s->counts.bins;
	if (pet_is_tof(s)) /* divisors are p + b / m */
		floor *= s->counts.bins / s->counts.factors;
	conf.rule = (struct rule){
		.kind = a->rule,
		.bin_floor = fmaxf((float)floor, FLOAT_LEAST),
		.voxel_floor = fmaxf((float)(FLOOR * mean / s->layout.views.n_subsets), FLOAT_LEAST),
		.step = 1,
	};
	if (a->rule == RULE_EM_RELAXED) {
		conf.relaxation = s->p->relaxation;
		conf.scale = &s->scale;
		prior = (struct prior){
			.beta = (float)(s->p->prior_weight * mean / s->layout.views.n_subsets),
			.gamma = (float)s->p->prior_gamma,
			.epsilon = (float)(EPSILON * level),
			.across = 1,
		};
		conf.prior = s->p->prior_weight > 0 ? &prior : NULL;
		r = s->dev->ops->axpy((float)(prior.beta * steepest_prior(&s->plan->grid) / level), &s->x, &s->scale, err);
	}
	if (r == 0)
		r = iterate_run(&conf, s->subsets, (size_t)s->layout.views.n_subsets, &s->work, &s->x, monitor, err);
	if (r == 0 && a->rule == RULE_EM && a->update == UPDATE_ALL && !s->has[PET_BACKGROUND])
		r = sum_up(s, conf.rule.bin_floor, report, err);
	if (r == 0)
		r = s->dev->ops->wait(s->dev, QUEUE_WORK, err);
	report->seconds_iterate = clock_seconds() - began;
	return r;
}
