/* SPDX-License-Identifier: Apache-2.0 */
/* pet.c - a session from open to close.
 *
 * pet_open() allocates everything, on the device with the sizes in the plan. pet_put() stores the data in host memory; pet_run()
 * copies them to the device, all at once or group by group, and leaves the result in host memory. */
#include "recon/pet/pet.h"

#include <errno.h>
#include <stdlib.h>

#include "kernels/clock.h"
#include "recon/pet/pet_internal.h"

static void open_planes(struct pet_session *s, struct err *err)
{
	const struct scan *scan = s->layout.scan;
	struct session_memory *m = &s->memory;
	size_t n_views = (size_t)scan->n_views;

	s->n_planes = scan->n_u;
	session_array(m, (size_t)scan->n_u, sizeof(*s->u_of), (void **)&s->u_of, err);
	for (int u = 0; m->rc == 0 && u < scan->n_u; u++)
		s->u_of[s->layout.plane[u]] = u;
	for (s->v_end = scan->n_v; s->v_end > 0 && scan_reach(scan, s->v_end - 1) == 0; s->v_end--)
		;
	for (s->v_first = 0; s->v_first < s->v_end && scan_reach(scan, s->v_first) == 0; s->v_first++)
		;
	for (int role = PET_DATA; role < PET_ROLES; role++) {
		if (!s->has[role])
			continue;
		s->expected[role] = (int)pet_row(s, role);
		session_array(m, (size_t)s->expected[role], sizeof(*s->plane[role]), (void **)&s->plane[role], err);
		session_host(m, pet_view(s, role) * n_views * sizeof(float), (void **)&s->host[role], err);
	}
}

int pet_open(const struct pet_protocol *p, const struct pet_plan *plan, const struct michelogram *m, enum pet_factors factors,
	     bool with_background, struct device *dev, struct pet_cache *cache, struct pet_session **ret_session, struct err *err)
{
	size_t n = grid_size(&plan->grid);
	struct pet_session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, ENOMEM, "reconstruction: out of memory");
	*s = (struct pet_session){
		.p = p,
		.plan = plan,
		.m = m,
		.dev = dev,
		.memory = {dev},
		.cache = cache,
		.factors = factors,
		.has = {[PET_DATA] = true, [PET_FACTORS] = factors != PET_FACTORS_NONE, [PET_BACKGROUND] = with_background},
		.opened = clock_seconds(),
		.unit = 1,
	};
	pthread_mutex_init(&s->lock, NULL);
	r = pet_cache_check(cache, dev, err);
	if (r == 0)
		r = pet_layout_make(p, m, plan->fov_radius, &s->layout, err);
	if (r == 0 && s->layout.views.n_subsets != plan->subsets)
		r = err_set(err, EINVAL, "reconstruction: the plan is for %d subsets, the protocol has %d", plan->subsets,
			    s->layout.views.n_subsets);
	if (r == 0) {
		s->view_bins = scan_view_size(s->layout.scan);
		for (int role = PET_DATA; role < PET_ROLES; role++)
			s->loads[role] = s->has[role] && pet_layout_loads(&s->layout, role);
		open_planes(s, err);
		r = session_alloc(&s->memory, n, &s->x, err);
	}
	if (r == 0)
		r = algorithm_info(p->algorithm)->filtered ? pet_fbp_open(s, err) : pet_em_open(s, err);
	if (r == 0)
		r = session_host(&s->memory, n * sizeof(float), (void **)&s->out, err);
	if (r < 0) {
		pet_close(s);
		return r;
	}
	*ret_session = s;
	return 0;
}

struct pet_session *pet_close(struct pet_session *s)
{
	if (!s)
		return NULL;
	session_drain(s->dev);
	pet_em_release(s);
	session_release(&s->memory);
	pet_layout_release(&s->layout);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return NULL;
}

static int begin_run(struct pet_session *s, struct err *err)
{
	static const char *const names[PET_ROLES] = {"", "data", "factors", "background"};
	int r = 0;

	pthread_mutex_lock(&s->lock);
	if (s->done)
		r = err_set(err, EINVAL, "reconstruction: pet_run() was already called");
	for (int role = PET_DATA; r == 0 && role < PET_ROLES; role++)
		if (s->has[role] && s->n_received[role] != s->expected[role])
			r = err_set(err, EINVAL, "reconstruction: %s of only %d of %d planes have been received", names[role],
				    s->n_received[role], s->expected[role]);
	if (r == 0)
		s->done = true;
	pthread_mutex_unlock(&s->lock);
	return r;
}

int pet_run(struct pet_session *s, const struct monitor *monitor, struct pet_report *ret_report, struct err *err)
{
	bool fbp = algorithm_info(s->p->algorithm)->filtered;
	double begin = clock_seconds(), filtered;
	struct pet_report report = {.seconds_setup = begin - s->opened};
	int r = begin_run(s, err);

	if (r < 0)
		return r;
	r = pet_counts_take(s, err);
	if (r < 0)
		return r;
	if (!(s->counts.factors > 0))
		return err_set(err, EBADMSG, "sinogram: all factors are 0, so no bin can have counts");
	report.counts = s->counts.all;
	if (report.counts < 0)
		return err_set(err, EBADMSG, "sinogram: the sum of all bins is %g; allowed: above 0", report.counts);
	if (!(report.counts > 0))
		return err_set(err, EDOM, "sinogram: no counts: all bins%s of all %d planes are 0",
			       s->has[PET_FACTORS] ? " with factors above 0" : "", s->expected[PET_DATA]);
	if (fbp) {
		r = pet_fbp_run(s, monitor, err);
		report.seconds_iterate = clock_seconds() - begin;
	} else {
		r = pet_em_run(s, monitor, &report, err);
	}
	filtered = clock_seconds();
	if (r == 0)
		r = pet_filter_image(s->p, &s->plan->grid, &s->x, fbp ? &s->spare[0] : &s->work.num,
				     fbp ? &s->spare[1] : &s->den[0], s->out, err);
	if (r < 0)
		return r;
	report.seconds_filter = clock_seconds() - filtered;
	s->result = true;
	if (ret_report)
		*ret_report = report;
	return 0;
}
