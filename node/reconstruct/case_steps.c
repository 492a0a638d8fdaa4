/* SPDX-License-Identifier: Apache-2.0 */
/* case_steps.c - the steps of a case: one after the other, what a failure means, what the result says. See
 * node/reconstruct/case_steps.h. */
#include "node/reconstruct/case_steps.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "node/base/sentence.h"
#include "node/reconstruct/case_told.h"
#include "node/reconstruct/reconstruct_internal.h"
#include "node/sinogram/provenance.h"

#define CHANGE_MOST 10	/* change of a voxel, in the largest value, beyond which it is said */
#define MEAN_LEAST 1e-3 /* mean afterwards, in the mean before, below which it is said */

static json_t *describe_step(const struct step_conf *s, const struct case_step_report *r, const char *why)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:f, s:I, s:i, s:i}", "name", s->name, "version", s->version, "sha256",
			      s->sha256, "parameters", s->parameters, "seconds", r->end.seconds, "memory",
			      (json_int_t)r->end.memory, "exit", r->end.exit_code, "signal", r->end.signal);

	if (why)
		json_object_set_new(o, "failed", json_string(why));
	else
		json_object_update_new(o, json_pack("{s:f, s:f, s:f, s:O*}", "mean_before", r->before, "mean_after", r->after,
						    "largest_change", r->largest, "told", r->told));
	return o;
}

/* Say in the result what the program told, and what it changed. */
static void say_step(struct reconstruct_work *w, const struct step_conf *s, const struct case_step_report *r)
{
	struct result_step *said = &w->step[w->n_steps++];
	char who[sizeof(said->name) + 8];

	snprintf(said->name, sizeof(said->name), "%s", s->name);
	snprintf(said->version, sizeof(said->version), "%s", s->version);
	snprintf(said->sha256, sizeof(said->sha256), "%s", s->sha256);
	snprintf(said->parameters, sizeof(said->parameters), "%s", s->parameters);
	case_told_text(r->told, said->said, sizeof(said->said));
	snprintf(said->change, sizeof(said->change), "mean %+.3g %%, largest change %.3g %% of the largest value",
		 r->before != 0 ? 100 * (r->after - r->before) / fabs(r->before) : 0.0, 100 * r->largest);
	if (r->largest > CHANGE_MOST || fabs(r->after) < MEAN_LEAST * fabs(r->before))
		sentence_add(w->notes, sizeof(w->notes),
			     "Step %s made another volume (%s): probably in another unit or byte order.", s->name, said->change);
	snprintf(who, sizeof(who), "Step %s", s->name);
	case_told_warnings(r->told, who, w->notes, sizeof(w->notes));
}

/* Continue without a step that failed: the result is that of the protocol without it. */
static void drop_step(struct reconstruct_work *w, size_t at, const char *why)
{
	struct protocol_conf *p = &w->without_step;
	char others[sizeof(w->notes)];

	if (w->protocol != p)
		*p = *w->protocol;
	memcpy(others, w->notes, sizeof(others));
	snprintf(w->notes, sizeof(w->notes), "Without %.400s: it failed.", why); /* first, as others may be cut */
	if (others[0])
		sentence_add(w->notes, sizeof(w->notes), "%s", others);
	p->steps.n--;
	for (size_t i = at; i < p->steps.n; i++) {
		memcpy(p->steps.name[i], p->steps.name[i + 1], sizeof(p->steps.name[i]));
		p->step[i] = p->step[i + 1];
	}
	w->protocol = p;
}

/* Run the step at *io_at, and go to the next one. */
static int apply_step(struct reconstruct_work *w, const struct case_volumes *v, size_t *io_at, struct err *err)
{
	const struct step_conf *s = w->protocol->step[*io_at];
	struct case_step_report report = {0};
	bool failed;
	int rc = case_step_run(w->decision->steps, s, v, w->monitor, &report, &failed, err);

	if (rc == 0 || failed)
		json_array_append_new(w->steps, describe_step(s, &report, failed ? err->msg : NULL));
	if (rc == 0) {
		say_step(w, s, &report);
		++*io_at;
	} else if (failed && s->on_failure == STEP_FALLBACK) {
		drop_step(w, *io_at, err->msg);
		*err = (struct err){0};
		rc = 0;
	} else if (failed) {
		rc = err_remap(rc, EBADMSG, s->on_failure == STEP_FAIL ? ECHILD : ENOTSUP, err);
	}
	json_decref(report.told);
	return rc;
}

bool case_steps_wanted(const struct reconstruct_work *w)
{
	return w->protocol->steps.n > 0 && !w->decision->place.outside;
}

size_t case_steps_bytes(const struct reconstruct_work *w, const struct grid *g)
{
	return case_steps_wanted(w) ? case_step_bytes(g) : 0;
}

int case_steps_apply(struct reconstruct_work *w, const struct case_volumes *v, struct err *err)
{
	double begun = clock_seconds();
	size_t at = 0;
	int rc = 0;

	if (!w->decision->steps)
		return err_set(err, ENOTSUP, "protocol '%s' has steps, which cannot be run here", w->protocol->name);
	w->steps = json_array();
	while (rc == 0 && at < w->protocol->steps.n)
		rc = apply_step(w, v, &at, err);
	w->report.seconds_reconstruct += clock_seconds() - begun;
	return rc;
}

struct case_origin case_steps_origin(const struct sinogram *s)
{
	return (struct case_origin){s->centre, s->axis, s->scanner ? s->scanner->name : "", s->files, s->n_files};
}

json_t *case_steps_about(const struct reconstruct_work *w, const struct case_origin *from, const struct grid *g,
			 const struct case_scale *scale)
{
	char uid[DICOM_UID_SIZE], hex[65];
	json_t *matrix = json_array();

	for (int row = 0; row < 3; row++) {
		double first = from->centre ? from->centre[row] : 0;

		for (int a = 0; a < 3; a++) {
			first += from->axis[a][row] * (g->lo[a] + 0.5 * g->h[a]);
			json_array_append_new(matrix, json_real(from->axis[a][row] * g->h[a]));
		}
		json_array_append_new(matrix, json_real(first));
	}
	provenance_uid("tomonode step", from->files, from->n_files, uid); /* of the sources; only its digest is told */
	dicom_sha256(uid, strlen(uid), hex);
	hex[7] = '\0';
	return json_pack("{s:s, s:s, s:s, s:i, s:o, s:{s:f, s:f, s:s}}", "kind", kind_of(w->protocol->kind)->name, "protocol",
			 w->protocol->name, "scanner", from->system, "seed", (int)strtol(hex, NULL, 16), "matrix", matrix,
			 "result", "scale", scale->scale, "offset", scale->offset, "unit", scale->unit);
}
