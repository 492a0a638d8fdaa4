/* SPDX-License-Identifier: Apache-2.0 */
/* parallel.c - process a stack part by part: copy data to the device, run an algorithm, copy the volume back; and the Radon
 * transform.
 *
 * Parts have at most two sizes, which differ by one slice; larger parts are first. So the data structures are created at most
 * twice. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdint.h>

#include "kernels/clock.h"
#include "recon/core/scan.h"
#include "recon/parallel/parallel_internal.h"

#define TINY_OUT (1.5f * RULE_TINY) /* values up to this are output as 0: the rules write RULE_TINY in place of 0 */
#define LEAST_TRANSMISSION -20	    /* smallest line integral of the transmission model, whose e^20 is not photons but an error */

static int check_slice(const struct parallel_protocol *p, const struct parallel_scan *s, const float *lines, int slice,
		       struct err *err)
{
	enum rule_kind rule = algorithm_info(p->algorithm)->rule;
	float least = rule == RULE_EM ? 0 : rule == RULE_TRANSMISSION ? LEAST_TRANSMISSION : -FLT_MAX;
	size_t n_v = (size_t)s->n_radial, n_views = (size_t)s->n_angles, bad = SIZE_MAX;
	const float *own = lines + (size_t)slice * n_views * n_v;

#pragma omp parallel for schedule(static) reduction(min : bad)
	for (size_t row = 0; row < n_views; row++) {
		const float *y = own + row * n_v;
		float worst = 0;
		int n = 0;

		for (size_t i = 0; i < n_v; i++) { /* inf - inf and NaN - NaN are NaN */
			float gap = y[i] - y[i];

			n += !(gap == 0);
			worst = y[i] < worst ? y[i] : worst;
		}
		if (n || worst < least)
			bad = row < bad ? row : bad;
	}
	if (bad == SIZE_MAX)
		return 0;
	for (size_t i = 0; i < n_v; i++) {
		float y = own[bad * n_v + i];

		if (!isfinite(y) || y < least)
			return err_set(
				err, EINVAL, "sinogram: %g at slice %d, angle %zu, radial bin %zu%s", (double)y, slice, bad, i,
				!isfinite(y)	  ? ""
				: rule == RULE_EM ? "; mlem and osem take no negative values, which noise makes of air: fbp, "
						    "art, sart, ostr and mltr do"
						  : "; so many more photons than in the open beam are no attenuation");
	}
	return err_set(err, EINVAL, "sinogram: slice %d, angle %zu has a value that is not finite or negative", slice, bad);
}

static int check_lines(const struct parallel_session *s, const struct parallel_scan *caller, struct err *err)
{
	int r = 0;

	for (int k = 0; r == 0 && k < caller->n_slices; k++) {
		r = check_slice(s->p, caller, s->lines, k, err);
		monitor_progress(s->monitor, "reconstruct", 0);
	}
	return r;
}

static int (*const open_work[])(struct parallel_session *, struct err *) = {
	[PARALLEL_WORK_BACK] = parallel_back_open,
	[PARALLEL_WORK_ROWS] = parallel_rows_open,
	[PARALLEL_WORK_RULE] = parallel_rule_open,
};

static int (*const run_work[])(struct parallel_session *, struct err *) = {
	[PARALLEL_WORK_BACK] = parallel_back_run,
	[PARALLEL_WORK_ROWS] = parallel_rows_run,
	[PARALLEL_WORK_RULE] = parallel_rule_run,
};

/* Free everything whose size depends on the number of slices. */
void parallel_part_release(struct parallel_session *s)
{
	parallel_back_release(s);
	s->dev->ops->projection_free(s->a);
	s->a = NULL;
	session_release(&s->memory);
	s->rows = NULL;
	s->rule = NULL;
	s->scan = scan_free(s->scan);
	s->n = 0;
}

static int open_radon(struct parallel_session *s, struct err *err)
{
	struct projection_spec spec = parallel_spec(s->p, s->work, s->scan, &s->grid, 0, s->s->n_angles);

	return s->dev->ops->projection_create(s->dev, &spec, &s->a, err);
}

int parallel_part_open(struct parallel_session *s, int n, struct err *err)
{
	struct session_memory *m = &s->memory;
	size_t bins, voxels;
	int r;

	if (s->n == n)
		return 0;
	m->dev = s->dev;
	parallel_part_release(s);
	r = scan_create_parallel(s->s, n, s->plan->fov_radius, s->views.order, &s->scan, err);
	if (r < 0)
		return r;
	s->n = n;
	s->grid = parallel_grid(&s->plan->grid, n);
	bins = (size_t)s->s->n_angles * scan_view_size(s->scan);
	voxels = grid_size(&s->grid);
	session_host(m, (bins > voxels ? bins : voxels) * sizeof(float), (void **)&s->host, err);
	session_alloc(m, voxels, &s->x, err);
	r = session_alloc(m, bins, &s->y, err);
	if (r == 0)
		r = s->work == PARALLEL_WORK_RADON ? open_radon(s, err) : open_work[s->work](s, err);
	return r;
}

/* Call `each` for every part, with s->first and s->n set. */
static int for_parts(struct parallel_session *s, int part_slices, int (*each)(struct parallel_session *, void *, struct err *),
		     void *ctx, double *ret_setup, struct err *err)
{
	int total = s->s->n_slices, parts = (total + part_slices - 1) / part_slices;
	int r = parallel_views_make(s->p, s->s, s->work, &s->views, err);

	for (int i = 0; r == 0 && i < parts; i++) {
		double begin = clock_seconds();

		r = parallel_part_open(s, total / parts + (i < total % parts), err);
		*ret_setup += clock_seconds() - begin;
		if (r < 0)
			break;
		s->first = s->done;
		if (monitor_cancelled(s->monitor))
			r = err_set(err, ECANCELED, "cancelled after %d of %d slices", s->done, total);
		else
			r = each(s, ctx, err);
		if (r < 0)
			break;
		s->done += s->n;
		monitor_progress(s->monitor, s->work == PARALLEL_WORK_RADON ? "project" : "reconstruct", (double)s->done / total);
	}
	parallel_part_release(s);
	subsets_release(&s->views);
	return r;
}

static int reconstruct_part(struct parallel_session *s, void *volume, struct err *err)
{
	int r = run_work[s->work](s, err);

	if (r == 0)
		r = s->dev->ops->download(&s->x, s->host, err);
	if (r == 0)
		parallel_volume_out(s, s->host, s->work == PARALLEL_WORK_RULE ? TINY_OUT : -1, volume);
	return r;
}

int parallel_reconstruct(const struct parallel_protocol *p, const struct parallel_plan *plan, const struct parallel_scan *s,
			 struct device *dev, const float *lines, const struct monitor *monitor, float *ret_volume,
			 struct parallel_report *ret_report, struct err *err)
{
	struct parallel_scan reach = parallel_padded_scan(p, s, plan);
	struct parallel_session session = {.p = p,
					   .plan = plan,
					   .s = &reach,
					   .pad = (reach.n_radial - s->n_radial) / 2,
					   .dev = dev,
					   .monitor = monitor,
					   .work = parallel_work_of(p),
					   .unit = 1,
					   .lines = lines};
	double setup = 0;
	int r = parallel_check(s, err);

	if (r == 0)
		r = parallel_check_protocol(p, s, session.work, err);
	if (r == 0)
		r = check_lines(&session, s, err);
	if (r < 0)
		return r;
	if (session.work == PARALLEL_WORK_RULE)
		parallel_rule_scale(&session);
	r = for_parts(&session, plan->part_slices, reconstruct_part, ret_volume, &setup, err);
	if (r == 0 && ret_report)
		*ret_report = (struct parallel_report){
			.seconds_setup = setup,
			.seconds_filter = session.seconds_filter,
			.seconds_iterate = session.seconds_iterate,
			.residual = session.sum_data > 0 ? sqrt(session.sum_gap / session.sum_data) : 0,
		};
	return r;
}

struct radon {
	const float *volume;
	float *lines;
};

static int radon_part(struct parallel_session *s, void *ctx, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct radon *radon = ctx;
	int r;

	parallel_volume_in(s, radon->volume, s->host);
	r = v->upload(&s->x, s->host, err);
	if (r == 0)
		r = v->forward(s->a, &s->x, false, &s->y, err);
	if (r == 0)
		r = v->download(&s->y, s->host, err);
	if (r == 0)
		parallel_bins_out(s, s->host, radon->lines);
	return r;
}

int parallel_radon(const struct parallel_protocol *p, const struct parallel_plan *plan, const struct parallel_scan *s,
		   struct device *dev, const float *volume, float *ret_lines, struct err *err)
{
	struct parallel_plan own = *plan; /* the memory that the Radon transform needs differs from the algorithm's */
	struct parallel_session session = {.p = p, .plan = &own, .s = s, .dev = dev, .work = PARALLEL_WORK_RADON, .unit = 1};
	struct radon radon = {volume, ret_lines};
	double setup = 0;
	int r = parallel_check(s, err);

	if (r == 0)
		r = parallel_check_protocol(p, s, PARALLEL_WORK_RADON, err);
	if (r == 0)
		r = parallel_fit(p, s, PARALLEL_WORK_RADON, dev, &own, err);
	return r < 0 ? r : for_parts(&session, own.part_slices, radon_part, &radon, &setup, err);
}
