/* SPDX-License-Identifier: Apache-2.0 */
/* case_planes.c - convert the objects' bytes to planes of the session.
 *
 * - Each role of the model is processed in turn: the roles of the objects that it is computed from are read and hashed in
 * parallel; then a pool of threads converts GROUP planes at a time, which are passed to the session. Only the bytes of these
 * roles are kept, until their last plane.
 * - A correction factor of 0 or below is refused with its place, because it would give a factor that is not a number. The
 * session, which checks every bin anyway, finds all other invalid counts.
 */
#include "node/reconstruct/case_planes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/clock.h"
#include "node/base/thread_pool.h"

#define GROUP 64 /* planes converted at a time */

struct source {
	enum sinogram_role role;
	uint8_t *bytes;
	int rc;
	struct err err;
};

struct planes {
	const struct sinogram *s;
	struct source sources[3];
	int n_sources;
	int first;	/* first plane of the group */
	float *group;	/* buffer of GROUP planes */
	float *scratch; /* buffer of one plane for each plane of the group */
	struct bad {
		bool there;
		enum sinogram_role role;
		size_t bin;
		float value;
	} bad[GROUP];
};

static const enum sinogram_role factor_roles[] = {SINOGRAM_MULTIPLICATIVE, SINOGRAM_ATTENUATION, SINOGRAM_NORMALISATION};
#define FACTOR_ROLES (sizeof(factor_roles) / sizeof(factor_roles[0]))

int case_planes_roles(const struct sinogram *s, bool *ret_factors, bool *ret_background, struct err *err)
{
	static const struct {
		enum sinogram_role role;
		const char *word; /* name in "applied corrections" */
	} twice[] = {{SINOGRAM_ATTENUATION, "attenuation"},
		     {SINOGRAM_NORMALISATION, "normali"},
		     {SINOGRAM_ADDITIVE, "scatter"},
		     {SINOGRAM_ADDITIVE, "random"}};
	const struct interfile *h = &s->part[SINOGRAM_EMISSION].header;

	for (size_t i = 0; i < sizeof(twice) / sizeof(twice[0]); i++)
		if (s->part[twice[i].role].present && strcasestr(h->corrections, twice[i].word))
			return err_set(err, EBADMSG,
				       "the emission data are already corrected (applied corrections: %s), but there is also %s",
				       h->corrections, sinogram_role_name(twice[i].role));
	*ret_factors = false;
	for (size_t i = 0; i < FACTOR_ROLES; i++)
		*ret_factors = *ret_factors || s->part[factor_roles[i]].present;
	*ret_background = s->part[SINOGRAM_ADDITIVE].present;
	return 0;
}

static void read_source(void *ctx, size_t part)
{
	struct planes *p = ctx;
	struct source *source = &p->sources[part];

	source->rc = sinogram_read(p->s, source->role, &source->bytes, &source->err);
}

static size_t plane_bins(const struct planes *p)
{
	const struct michelogram *m = &p->s->part[SINOGRAM_EMISSION].header.m;

	return (size_t)m->n_angles * (size_t)m->n_radial;
}

/* Make one plane of the group: the first source unchanged, or a factor computed from all. */
static void make_plane(void *ctx, size_t part)
{
	struct planes *p = ctx;
	size_t n = plane_bins(p), plane = (size_t)p->first + part;
	float *to = p->group + part * n, *other = p->scratch + part * n;
	struct bad *bad = &p->bad[part];
	int from = 0;

	bad->there = false;
	if (p->sources[0].role == SINOGRAM_ATTENUATION || p->sources[0].role == SINOGRAM_NORMALISATION) {
		for (size_t i = 0; i < n; i++)
			to[i] = 1;
	} else {
		interfile_plane(&p->s->part[p->sources[0].role].header, p->sources[0].bytes, plane, to);
		from = 1;
	}
	for (int k = from; k < p->n_sources && !bad->there; k++) {
		interfile_plane(&p->s->part[p->sources[k].role].header, p->sources[k].bytes, plane, other);
		for (size_t i = 0; i < n; i++) {
			if (!(other[i] > 0) || isinf(other[i])) {
				*bad = (struct bad){.there = true, .role = p->sources[k].role, .bin = i, .value = other[i]};
				break;
			}
			to[i] /= other[i];
		}
	}
}

static int check_group(const struct planes *p, int n, struct err *err)
{
	int n_radial = p->s->part[SINOGRAM_EMISSION].header.m.n_radial;

	for (int i = 0; i < n; i++)
		if (p->bad[i].there)
			return err_set(err, EBADMSG, "%s: plane %d, angle %d, radial bin %d: %g; allowed: finite and above 0",
				       sinogram_role_name(p->bad[i].role), p->first + i, (int)p->bad[i].bin / n_radial,
				       (int)p->bad[i].bin % n_radial, p->bad[i].value);
	return 0;
}

/* Pass all planes of a role of the model to the session. done, all: numbers of planes, for the monitor. */
static int hand_over(struct planes *p, enum pet_role role, struct pet_session *session, struct thread_pool *pool,
		     const struct monitor *monitor, size_t done, size_t all, struct case_planes_report *report, struct err *err)
{
	int n_planes = (int)michelogram_planes(&p->s->part[SINOGRAM_EMISSION].header.m), rc = 0;
	double begun = clock_seconds(), made;

	thread_pool_run(pool, (size_t)p->n_sources, read_source, p);
	report->seconds_read += clock_seconds() - begun;
	for (int i = 0; i < p->n_sources; i++)
		if (p->sources[i].rc < 0) {
			if (err)
				*err = p->sources[i].err;
			return p->sources[i].rc;
		}
	for (p->first = 0; rc == 0 && p->first < n_planes; p->first += GROUP) {
		int n = n_planes - p->first < GROUP ? n_planes - p->first : GROUP;

		monitor_progress(monitor, "read", (double)(done + (size_t)p->first) / (double)all);
		if (monitor_cancelled(monitor))
			return err_set(err, ECANCELED, "cancelled while reading");
		begun = clock_seconds();
		thread_pool_run(pool, (size_t)n, make_plane, p);
		rc = check_group(p, n, err);
		made = clock_seconds();
		report->seconds_prepare += made - begun;
		if (rc == 0)
			rc = pet_put(session, role, p->first, n, p->group, err);
		report->seconds_upload += clock_seconds() - made;
	}
	if (rc == -EINVAL) { /* the error is about the data: the case is to be held */
		if (err)
			err->code = EBADMSG;
		rc = -EBADMSG;
	}
	return rc;
}

static void add_source(struct planes *p, enum sinogram_role role)
{
	if (p->s->part[role].present)
		p->sources[p->n_sources++] = (struct source){.role = role};
}

static int read_role(const struct sinogram *s, enum pet_role role, struct pet_session *session, struct thread_pool *pool,
		     const struct monitor *monitor, size_t all, struct case_planes_report *report, struct err *err)
{
	struct planes p = {.s = s};
	size_t n = plane_bins(&p), planes = michelogram_planes(&s->part[SINOGRAM_EMISSION].header.m);
	int rc;

	if (role == PET_DATA)
		add_source(&p, SINOGRAM_EMISSION);
	else if (role == PET_BACKGROUND)
		add_source(&p, SINOGRAM_ADDITIVE);
	for (size_t i = 0; role == PET_FACTORS && i < FACTOR_ROLES; i++)
		add_source(&p, factor_roles[i]);
	if (p.n_sources == 0)
		return 0;
	p.group = malloc(GROUP * n * sizeof(float));
	p.scratch = malloc(GROUP * n * sizeof(float));
	if (p.group && p.scratch)
		rc = hand_over(&p, role, session, pool, monitor, report->planes, all, report, err);
	else
		rc = err_set(err, ENOMEM, "no memory for %d planes of sinograms", GROUP);
	for (int i = 0; i < p.n_sources; i++)
		free(p.sources[i].bytes);
	free(p.group);
	free(p.scratch);
	report->planes += planes;
	return rc;
}

int case_read_planes(const struct sinogram *s, struct pet_session *session, int threads, const struct monitor *monitor,
		     struct case_planes_report *ret_report, struct err *err)
{
	static const enum pet_role roles[] = {PET_DATA, PET_FACTORS, PET_BACKGROUND};
	struct case_planes_report report = {0};
	struct thread_pool *pool = NULL;
	bool factors, background;
	size_t all;
	int rc = case_planes_roles(s, &factors, &background, err);

	if (rc < 0)
		return rc;
	all = michelogram_planes(&s->part[SINOGRAM_EMISSION].header.m) * (1 + (size_t)factors + (size_t)background);
	rc = thread_pool_create(threads, &pool, err);
	for (size_t i = 0; rc == 0 && i < sizeof(roles) / sizeof(roles[0]); i++)
		rc = read_role(s, roles[i], session, pool, monitor, all, &report, err);
	thread_pool_free(pool);
	if (rc < 0)
		return rc;
	monitor_progress(monitor, "read", 1);
	*ret_report = report;
	return 0;
}
