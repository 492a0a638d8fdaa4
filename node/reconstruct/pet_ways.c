/* SPDX-License-Identifier: Apache-2.0 */
/* pet_ways.c - how the data of a PET case become an image: by sinograms, whose planes a session gets (recon/pet/pet.h), or by
 * single events, which are loaded when the case is opened (node/sinogram/sinogram_list.h, recon/pet/pet_list.h). */
#include <errno.h>
#include <stdlib.h>

#include "node/base/plural.h"
#include "node/base/thread_pool.h"
#include "node/reconstruct/pet_work.h"

/* ---- by sinograms ---- */

uint8_t **pet_work_kept(struct pet_work *w)
{
	if (w->base.keep || w->base.again)
		return w->bytes;
	return w->corrections.made & PET_CORRECT_SCATTER ? w->corrections.once : NULL;
}

static int begin_sinograms(struct pet_work *w, struct err *err)
{
	int rc = case_planes_roles(w->s, &w->factors, &w->background, err);

	w->bytes_data = rc == 0 ? case_planes_bytes(w->s) : 0;
	return rc < 0 ? rc
		      : michelogram_mash(&w->s->part[SINOGRAM_EMISSION].header.m, w->base.protocol->pet.tof_mashing, &w->m, err);
}

static int open_session(struct pet_work *w, struct err *err)
{
	return pet_open(&w->base.protocol->pet, &w->plan, &w->m, w->factors, w->background, w->base.dev, w->base.cache,
			&w->session, err);
}

/* Read the planes of a frame into its session. */
static int read_planes(struct pet_work *w, int frame, struct case_planes_report *ret, struct err *err)
{
	int rc;

	w->corrections.terms.tap = pet_work_tap(w);
	rc = case_read_planes(w->s, &w->m, &w->corrections.terms, w->session, threads_available(), w->base.monitor,
			      pet_work_kept(w), ret, err);

	case_corrections_forget_data(&w->corrections);
	if (rc == 0)
		case_pictures_make(&w->corrections, frame);
	return rc;
}

static int run_planes(struct pet_work *w, int frame, struct pet_report *ret, struct err *err)
{
	(void)frame;
	return pet_run(w->session, w->base.monitor, ret, err);
}

static int read_image(struct pet_work *w, int first, int n, float *ret, struct err *err)
{
	return pet_read_slices(w->session, first, n, ret, err);
}

static void describe_planes(const struct pet_work *w, char *ret, size_t size)
{
	size_t planes = michelogram_planes(&w->m);

	snprintf(ret, size, "%zu plane%s of %d angle%s", planes, plural(planes), w->m.n_angles, plural(w->m.n_angles));
}

const struct pet_way pet_by_sinograms = {
	.begin = begin_sinograms,
	.plan = pet_work_plan,
	.open = open_session,
	.read = read_planes,
	.run = run_planes,
	.slices = read_image,
	.describe = describe_planes,
};

/* ---- by events ---- */

static int begin_events(struct pet_work *w, struct err *err)
{
	const struct michelogram *bins = sinogram_list_bins(w->s);

	(void)err;
	if (bins)
		w->m = *bins;
	return 0;
}

static int plan_list(struct pet_work *w, struct pet_plan *ret, struct err *err)
{
	return pet_list_plan(&w->base.protocol->pet, case_event_terms_list(&w->terms, w->s), w->base.dev, ret, err);
}

/* Plan the frame with the most events. */
static int plan_events(struct pet_work *w, struct err *err)
{
	size_t most = 0;
	int largest = 0, rc;

	for (int f = 0; f < w->n_frames; f++) {
		sinogram_choose_frame(w->s, f);
		if (sinogram_list_data(w->s)->n_events > most) {
			most = sinogram_list_data(w->s)->n_events;
			largest = f;
		}
	}
	sinogram_choose_frame(w->s, largest);
	rc = plan_list(w, &w->plan, err);
	sinogram_choose_frame(w->s, 0);
	if (rc < 0)
		return rc;
	pet_work_keep_matrix(w);
	w->bytes_data = sinogram_list_report(w->s)->bytes + (w->n_frames > 1 ? grid_size(&w->plan.grid) * sizeof(float) : 0);
	w->m.tof = sinogram_list_data(w->s)->tof;
	w->corrections.bytes_host += w->corrections.made ? case_event_terms_bytes(w->s) : 0;
	return 0;
}

/* Let each event of the frame have its own corrections. */
static int make_event_terms(struct pet_work *w, struct err *err)
{
	double prompts = (double)sinogram_list_data(w->s)->n_events;

	return w->corrections.made ? case_event_terms_make(&w->terms, w->s, &w->corrections.terms,
							   case_corrections_background(&w->corrections, prompts), err)
				   : 0;
}

static int read_no_planes(struct pet_work *w, int frame, struct case_planes_report *ret, struct err *err)
{
	(void)frame;
	(void)err;
	*ret = (struct case_planes_report){.seconds_read = sinogram_list_report(w->s)->seconds_read};
	return 0;
}

/* Have memory for the sensitivity if further frames have the same. */
static int keep_sensitivity(struct pet_work *w, struct err *err)
{
	if (w->n_frames == 1 || w->corrections.made & PET_CORRECT_DEAD_TIME || w->sensitivity.values)
		return 0;
	w->sensitivity.values = malloc(grid_size(&w->plan.grid) * sizeof(float));
	return w->sensitivity.values ? 0 : err_set(err, ENOMEM, "no memory for the sensitivity");
}

static int run_events(struct pet_work *w, int frame, struct pet_report *ret, struct err *err)
{
	int rc = plan_list(w, &w->plan_events, err);

	if (rc == 0)
		rc = keep_sensitivity(w, err);
	if (rc == 0)
		rc = pet_list_open(&w->base.protocol->pet, &w->plan_events, case_event_terms_list(&w->terms, w->s), w->base.dev,
				   &w->events, err);
	if (rc == 0 && w->sensitivity.values)
		pet_list_share_sensitivity(w->events, &w->sensitivity);
	if (rc == 0)
		rc = pet_list_run(w->events, w->base.monitor, ret, err);
	if (rc == 0)
		rc = case_event_terms_profiles(&w->terms, err);
	if (rc == 0)
		case_pictures_make(&w->corrections, frame);
	return rc;
}

static int read_list_image(struct pet_work *w, int first, int n, float *ret, struct err *err)
{
	return pet_list_read_slices(w->events, first, n, ret, err);
}

static void describe_events(const struct pet_work *w, char *ret, size_t size)
{
	size_t n = (size_t)w->run.counts;

	snprintf(ret, size, "%zu event%s", n, plural(n));
}

static json_t *event_details(const struct pet_work *w)
{
	const struct pet_report *run = &w->run;
	const struct sinogram_list_report *r = sinogram_list_report(w->s);

	return json_pack("{s:I, s:I, s:I, s:I, s:b, s:b, s:f, s:f, s:f, s:f, s:f}", "events", (json_int_t)r->used, "dead",
			 (json_int_t)r->dead, "in_no_frame", (json_int_t)r->between, "lors", (json_int_t)run->lors, "in_memory",
			 r->kept, "on_device", w->plan_events.resident, "seconds_read", r->seconds_read, "seconds_sensitivity",
			 run->seconds_sensitivity, "seconds_load", run->seconds_read, "seconds_iterate", run->seconds_iterate,
			 "seconds_filter", run->seconds_filter);
}

const struct pet_way pet_by_events = {
	.begin = begin_events,
	.plan = plan_events,
	.open = make_event_terms,
	.read = read_no_planes,
	.run = run_events,
	.slices = read_list_image,
	.describe = describe_events,
	.details = event_details,
};
