/* SPDX-License-Identifier: Apache-2.0 */
/* pet_arrays.c - the arrays of a PET case for other programs: sinograms as their session gets them, or single events. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/sentence.h"
#include "node/reconstruct/pet_work.h"
#include "node/sinogram/pet_source.h"

#define EVENTS_AT_A_TIME ((size_t)1 << 16)

/* Write planes as the session gets them, in their order. */
static int take_planes(void *ctx, enum pet_role role, int first, int n, const float *values, struct err *err)
{
	static const char *const names[] = {[PET_DATA] = "data", [PET_FACTORS] = "factors", [PET_BACKGROUND] = "background"};
	struct pet_work *w = ctx;
	const struct michelogram *m = &w->m;
	bool tof = m->tof.n > 0 && (role != PET_FACTORS || w->factors == PET_FACTORS_TOF);
	size_t shape[CASE_ARRAYS_AXES] = {tof ? (size_t)m->tof.n : 0, michelogram_planes(m), (size_t)m->n_angles,
					  (size_t)m->n_radial};
	int rc = first == 0
			 ? case_arrays_open(w->base.arrays, names[role], role == PET_FACTORS ? "1" : "counts", false, shape, err)
			 : 0;

	return rc < 0 ? rc : case_arrays_add(w->base.arrays, values, (size_t)n * michelogram_plane_bins(m), err);
}

struct case_tap pet_work_tap(struct pet_work *w)
{
	return w->base.arrays ? (struct case_tap){take_planes, w} : (struct case_tap){0};
}

static void describe_sinograms(const struct pet_work *w)
{
	const struct michelogram *m = &w->m;
	const struct pet_scanner *s = &m->scanner;
	json_t *segments = json_array();

	for (int i = 0; i < m->n_segments; i++)
		json_array_append_new(segments, json_pack("[i,i]", m->segments[i].first, m->segments[i].last));
	json_object_set_new(w->base.arrays->json, "kind", json_string(kind_pet.name));
	json_object_set_new(w->base.arrays->json, "scan",
			    json_pack("{s:i, s:i, s:f, s:f, s:f, s:f, s:i, s:i, s:f, s:b, s:o, s:f, s:o}", "rings", s->rings,
				      "detectors", s->detectors, "ring_spacing", s->ring_spacing, "radius", s->radius, "depth",
				      s->interaction_depth, "bin", s->bin, "radial", m->n_radial, "angles", m->n_angles,
				      "first_angle", m->angle_offset, "arc_corrected", m->arc_corrected, "segments", segments,
				      "fov_radius", w->plan.fov_radius, "tof", case_arrays_tof(&m->tof)));
}

/* ---- single events ---- */

/* Write one column of all events: the pairs of detectors, their TOF bins, or their background over their factor. */
static int write_column(struct pet_work *w, const struct pet_list *l, const char *role, int column, struct event *room,
			struct err *err)
{
	int width = column == 0 ? 2 : 1;
	size_t shape[CASE_ARRAYS_AXES] = {l->n_events, column == 0 ? 2 : 0}, got = 1;
	int32_t *values = (int32_t *)(void *)room; /* each event is read before its place is written */
	int rc = case_arrays_open(w->base.arrays, role, "1", column < 2, shape, err);

	if (rc == 0)
		rc = l->events.rewind(l->events.ctx, err);
	while (rc == 0 && got > 0) {
		rc = l->events.read(l->events.ctx, room, EVENTS_AT_A_TIME, &got, err);
		for (size_t i = 0; rc == 0 && i < got; i++) {
			struct event e = room[i];

			if (column == 2)
				memcpy(&values[i], &e.add, sizeof(e.add));
			else
				memcpy(&values[(size_t)width * i], column == 0 ? &e.detector[0] : &e.tof,
				       (size_t)width * sizeof(*values));
		}
		if (rc == 0 && got > 0)
			rc = case_arrays_add(w->base.arrays, values, (size_t)width * got, err);
	}
	return rc;
}

static int write_events(struct pet_work *w, const struct pet_list *l, struct err *err)
{
	static const char *const roles[] = {"events", "tof_bin", "add"};
	const bool there[] = {true, l->tof.n > 0, l->with_background};
	struct event *room = malloc(EVENTS_AT_A_TIME * sizeof(*room));
	int rc = room ? 0 : err_set(err, ENOMEM, "no memory for %zu events", EVENTS_AT_A_TIME);

	for (int column = 0; rc == 0 && column < 3; column++)
		if (there[column])
			rc = write_column(w, l, roles[column], column, room, err);
	free(room);
	return rc;
}

/* Write the sensitivity in C order; that of the session has z fastest. */
static int write_sensitivity(struct pet_work *w, struct err *err)
{
	const struct grid *g = &w->plan.grid;
	size_t shape[CASE_ARRAYS_AXES] = {(size_t)g->n[2], (size_t)g->n[1], (size_t)g->n[0]}, n = shape[1] * shape[2];
	float *slice = malloc(n * sizeof(*slice));
	int rc = slice ? case_arrays_open(w->base.arrays, "sensitivity", "mm", false, shape, err)
		       : err_set(err, ENOMEM, "no memory for a slice");

	for (size_t k = 0; rc == 0 && k < shape[0]; k++) {
		for (size_t i = 0; i < n; i++)
			slice[i] = w->sensitivity.values[i % shape[2] * grid_step(g, 0) + i / shape[2] * grid_step(g, 1) +
							 k * grid_step(g, 2)];
		rc = case_arrays_add(w->base.arrays, slice, n, err);
	}
	free(slice);
	return rc;
}

/* Compute the sensitivity as a reconstruction does. */
static int make_sensitivity(struct pet_work *w, const struct pet_list *l, struct err *err)
{
	const struct pet_protocol *p = &w->base.protocol->pet;
	size_t lors;
	int rc = pet_list_plan(p, l, w->base.dev, &w->plan_events, err);

	w->sensitivity.values = malloc(grid_size(&w->plan.grid) * sizeof(float));
	if (rc == 0 && !w->sensitivity.values)
		rc = err_set(err, ENOMEM, "no memory for the sensitivity");
	if (rc == 0)
		rc = pet_list_open(p, &w->plan_events, l, w->base.dev, &w->events, err);
	if (rc < 0)
		return rc;
	pet_list_share_sensitivity(w->events, &w->sensitivity);
	rc = pet_list_sensitivity(w->events, w->base.monitor, &lors, err);
	w->events = pet_list_close(w->events);
	return rc;
}

static int write_list(struct pet_work *w, struct err *err)
{
	const struct pet_list *l = case_event_terms_list(&w->terms, w->s);
	struct pet_protocol *p = pet_work_own_protocol(w);
	size_t shape[CASE_ARRAYS_AXES] = {l->n_detectors, 3};
	int rc = case_arrays_open(w->base.arrays, "points", "mm", false, shape, err);

	if (rc == 0)
		rc = case_arrays_add(w->base.arrays, l->detectors, 3 * l->n_detectors, err);
	if (rc == 0)
		rc = write_events(w, l, err);
	if (rc == 0)
		rc = make_sensitivity(w, l, err);
	if (rc == 0)
		rc = write_sensitivity(w, err);
	p->slice = w->plan.grid.h[2]; /* the list alone does not say it */
	json_object_set_new(w->base.arrays->json, "kind", json_string("lines"));
	json_object_set_new(w->base.arrays->json, "scan",
			    json_pack("{s:f, s:f, s:o}", "fov_radius", w->plan.fov_radius, "background", l->background, "tof",
				      case_arrays_tof(&l->tof)));
	return rc;
}

/* ---- both ---- */

int pet_work_arrays(struct reconstruct_work *base, struct err *err)
{
	struct pet_work *w = (struct pet_work *)base;
	struct reconstruct_report *report = &base->report;
	char notes[2400] = "";
	struct case_scale scale = {.unit = "counts/mm"};
	bool bqml = false;
	int rc = w->s->list ? write_list(w, err) : 0;

	if (rc == 0 && !w->s->list)
		describe_sinograms(w);
	if (rc == 0)
		rc = pet_result_scale(w->s, &scale.scale, &bqml, err);
	if (rc < 0)
		return rc;
	w->run.counts = w->s->list ? (double)sinogram_list_data(w->s)->n_events : w->planes.counts;
	w->n_frames = 0; /* nothing is known about empty ones */
	pet_source_note(w->s, report->warnings, sizeof(report->warnings));
	if (w->s->assumed)
		sentence_add(report->warnings, sizeof(report->warnings), "%s", w->s->assumed);
	pet_work_note(w, notes, sizeof(notes));
	if (notes[0])
		sentence_add(report->warnings, sizeof(report->warnings), "%s", notes);
	if (bqml)
		scale.unit = "Bq/ml";
	case_arrays_describe(base->arrays, base->protocol, "", &w->plan.grid, &scale);
	json_object_set_new(base->arrays->json, "corrections", case_corrections_details(&w->corrections));
	json_object_set_new(base->arrays->json, "factors", pet_work_factors(w));
	return 0;
}
