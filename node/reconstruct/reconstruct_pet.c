/* SPDX-License-Identifier: Apache-2.0 */
/* reconstruct_pet.c - reconstruct one PET acquisition, by its sinograms or by its single events (pet_ways.c). Sensitivity
 * images of sinograms stay in the cache for later cases.
 *
 * Time frames, gates and beds are reconstructed one after the other with the same plan: each has a session of its own, which
 * finds the sensitivity images in the cache. The volumes of frames and gates stay in host memory until all are written, those of
 * beds are added to one. One without counts is an image of zeros. In this file a frame is a time frame, a gate or a bed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "kernels/clock.h"
#include "node/base/plural.h"
#include "node/base/sentence.h"
#include "node/reconstruct/pet_work.h"
#include "node/sinogram/pet_source.h"

#define SLICES_AT_A_TIME 16
#define LORS_CPU ((size_t)1 << 27) /* LORs that are read one by one for a sensitivity; of more, a sample */
#define LORS_GPU ((size_t)1 << 32)

static int recognise_pet(const struct dicom_file *file, struct case_facts *f, struct err *err)
{
	return case_recognise_sinogram(file, INTERFILE_PROJECTIONS, f, err);
}

const struct kind *case_kind_of_file(const char *path)
{
	return pet_source_of_file(path) ? &kind_pet : NULL;
}

/* Divide the acquisition into the gates of the protocol. */
static int set_gates(struct pet_work *w, struct err *err)
{
	const struct pet_protocol *p = &w->base.protocol->pet;
	const struct pet_marks *marks = w->base.decision->marks;
	struct pet_gates g = {.n = p->gates, .signal = PET_SIGNAL_TABLE};
	int rc = pet_gates_parse_cycle(p->gate_cycle, &g, err);

	if (rc < 0)
		return rc;
	if (g.n > 0 && marks) {
		g.marks = *marks;
		pet_work_own_protocol(w)->gate_signal[0] = '\0'; /* the table replaces the signal */
	} else if (g.n > 0 && !pet_signal_named(p->gate_signal, &g.signal)) {
		return err_set(err, ENOTSUP,
			       "gates need time marks: set gate_signal, or give a table with `tomonode recon --marks`");
	}
	return sinogram_set_gates(w->s, &g, err);
}

/* Divide the acquisition into the frames of the protocol. */
static int set_frames(struct pet_work *w, struct err *err)
{
	struct pet_images frames;
	int rc = pet_frames_parse(w->base.protocol->pet.frames, &frames, err);

	if (rc == 0)
		rc = sinogram_set_frames(w->s, &frames, err);
	if (rc == 0)
		rc = set_gates(w, err);
	if (rc == 0)
		w->n_frames = pet_images_count(&w->s->images);
	if (rc == 0 && (w->base.arrays || w->base.decision->place.outside) && (w->n_frames > 1 || w->s->images.of == PET_BEDS))
		rc = err_set(err, ENOTSUP, "the case has %d %s%s; arrays and volumes are those of one image", w->n_frames,
			     pet_division_name(w->s->images.of), plural(w->n_frames));
	reconstruct_name_protocol(&w->base, rc, err);
	return rc;
}

/* Open each file once: the headers of CT images are collected, the files of the PET data stay open. A file that cannot be opened
 * is one of the PET data, which refuse it. */
static int divide_files(struct pet_work *w, struct err *err)
{
	size_t n = w->base.n_paths, n_pet = 0;

	w->paths = calloc(n, sizeof(*w->paths));
	w->files = calloc(n, sizeof(*w->files));
	w->headers = ct_headers_new(n);
	if (!w->paths || !w->files || !w->headers)
		return err_set(err, ENOMEM, "no memory for %zu paths", n);
	for (size_t i = 0; i < n; i++) {
		struct dicom_file *file = NULL;

		if (!pet_source_of_file(w->base.paths[i]) && dicom_open(w->base.paths[i], &file, NULL) == 0 &&
		    ct_object_of(dicom_root(file), NULL) != CT_NO_SLICE) {
			ct_headers_add(w->headers, w->base.paths[i], dicom_root(file));
			w->n_ct++;
			dicom_close(file);
		} else {
			w->paths[n_pet] = w->base.paths[i];
			w->files[n_pet++] = file;
		}
	}
	return 0;
}

/* Open the files of the case: DICOM objects, or one file that is not DICOM and the CT for it. */
static int open_pet_files(struct pet_work *w, struct err *err)
{
	const struct reconstruct_work *base = &w->base;
	struct pet_opening o = {.patient = &base->decision->patient,
				.config = base->config,
				.file = base->decision->file,
				.protocol = &base->protocol->pet,
				.lors_most = strcmp(base->dev->ops->kind, "cpu") ? LORS_GPU : LORS_CPU};
	int rc;

	if (w->s)
		return 0;
	rc = divide_files(w, err);
	if (rc < 0)
		return rc;
	o.files = w->files;
	rc = pet_source_open(w->paths, base->n_paths - w->n_ct, &o, &w->s, err);
	if (rc == 0 && w->s->format->header != INTERFILE_PROJECTIONS)
		rc = err_set(err, EBADMSG, "the case is a scan with parallel beams, not a PET acquisition");
	if (rc == 0 && base->decision->assumed) {
		w->s->assumed = base->decision->assumed->text;
		w->s->no_duration = base->decision->assumed->duration;
		w->s->no_start = base->decision->assumed->start;
		w->s->no_position = base->decision->assumed->position;
	}
	return rc;
}

/* Decide what the node corrects itself. */
static int prepare_corrections(struct pet_work *w, struct err *err)
{
	struct case_corrections *c = &w->corrections;
	int rc;

	c->work = &w->base;
	c->s = w->s;
	c->m = &w->m;
	c->n_ct = w->n_ct;
	c->attenuation.headers = w->headers;
	c->attenuation.ct = w->ct;
	w->ct = NULL;
	rc = case_corrections_prepare(c, err);
	if (c->factors && w->factors == PET_FACTORS_NONE)
		w->factors = PET_FACTORS_SHARED;
	w->background = w->background || c->background;
	return rc;
}

/* Make the corrections of the first frame, in turn with others that use the device. */
static int correct_first(struct pet_work *w, struct err *err)
{
	double begun = clock_seconds();
	int rc = monitor_take_turn(w->base.monitor, true);

	w->base.report.seconds_wait += clock_seconds() - begun;
	if (rc < 0)
		return err_set(err, ECANCELED, "cancelled while it waited for the device");
	w->corrections.kept = pet_work_kept(w);
	rc = case_corrections_make(&w->corrections, err);
	monitor_take_turn(w->base.monitor, false);
	return rc;
}

static int plan_case(struct pet_work *w, struct err *err)
{
	int rc = w->way->begin(w, err);

	if (rc == 0)
		rc = prepare_corrections(w, err);
	if (rc == 0)
		rc = w->way->plan(w, err);
	reconstruct_name_protocol(&w->base, rc, err);
	if (rc == 0)
		rc = pet_work_reserve(w, err);
	if (rc == 0 && w->corrections.made)
		rc = correct_first(w, err);
	return rc < 0 ? rc : w->way->open(w, err);
}

static int open_pet_case(struct reconstruct_work *base, struct err *err)
{
	struct pet_work *w = (struct pet_work *)base;
	int rc = open_pet_files(w, err);

	if (rc == 0)
		rc = pet_result_check(w->s, err);
	if (rc == 0)
		rc = set_frames(w, err);
	if (rc == 0 && base->protocol->pet.list_mode && !w->s->list)
		rc = sinogram_list_open(w->s, err);
	if (rc == 0) {
		w->way = w->s->list ? &pet_by_events : &pet_by_sinograms;
		rc = plan_case(w, err);
	}
	return err_remap(rc, EINVAL, ENOTSUP, err);
}

static int read_pet_case(struct reconstruct_work *base, struct err *err)
{
	struct pet_work *w = (struct pet_work *)base;
	struct case_planes_report planes = {0};
	int rc;

	rc = w->way->read(w, 0, &planes, err);
	base->report.seconds_read = planes.seconds_read;
	base->report.seconds_prepare = planes.seconds_prepare;
	base->report.seconds_upload = planes.seconds_upload;
	w->planes = planes;
	return rc;
}

/* Copy the volume of the session to that of a frame, or add it to that of all beds. */
static int read_volume(struct pet_work *w, int frame, struct err *err)
{
	const struct grid *g = &w->plan.grid;
	size_t slice = (size_t)g->n[0] * (size_t)g->n[1];
	bool bed = w->s->images.of == PET_BEDS;
	float *volume = bed ? w->beds.volume : w->volume + (size_t)frame * slice * (size_t)g->n[2];
	double begun = clock_seconds();
	int rc = 0;

	for (int k = 0; rc == 0 && k < g->n[2]; k += SLICES_AT_A_TIME) {
		int n = g->n[2] - k < SLICES_AT_A_TIME ? g->n[2] - k : SLICES_AT_A_TIME;
		float *to = volume + (size_t)k * slice;

		rc = w->way->slices(w, k, n, to, err);
	}
	if (rc == 0 && bed)
		pet_join_add(&w->beds.join, frame, volume, w->volume);
	w->base.report.seconds_download += clock_seconds() - begun;
	return rc;
}

/* Allocate the volumes of all frames, all zero. */
static int make_volumes(struct pet_work *w, struct err *err)
{
	const struct grid *g = &w->plan.grid;

	w->counts = calloc((size_t)w->n_frames, sizeof(*w->counts));
	if (w->counts && w->s->images.of == PET_BEDS)
		return case_beds_allocate(&w->beds, &w->volume, err);
	w->volume = calloc((size_t)g->n[0] * (size_t)g->n[1] * (size_t)g->n[2] * (size_t)w->n_frames, sizeof(*w->volume));
	if (w->volume && w->counts)
		return 0;
	return err_set(err, ENOMEM, "no memory for %d frames of %d slices of %d x %d", w->n_frames, g->n[2], g->n[0], g->n[1]);
}

/* Add the seconds and the counts of the frames before. */
static void add_report(struct pet_report *r, const struct pet_report *before)
{
	r->seconds_setup += before->seconds_setup;
	r->seconds_sensitivity += before->seconds_sensitivity;
	r->seconds_read += before->seconds_read;
	r->seconds_iterate += before->seconds_iterate;
	r->seconds_filter += before->seconds_filter;
	r->counts += before->counts;
	r->lors = r->lors > before->lors ? r->lors : before->lors;
}

/* Reconstruct a frame. EDOM: it has no counts. */
static int run_frame(struct pet_work *w, int frame, struct err *err)
{
	struct pet_report run = {0};
	int rc = w->way->run(w, frame, &run, err);

	if (rc < 0)
		return rc;
	rc = case_check_singles(&w->corrections, run.counts, err);
	if (rc < 0)
		return rc;
	w->counts[frame] = run.counts;
	add_report(&run, &w->run);
	w->run = run;
	return w->s->images.n > 0 ? read_volume(w, frame, err) : 0;
}

static void close_session(struct pet_work *w)
{
	w->session = pet_close(w->session);
	w->events = pet_list_close(w->events);
}

/* Begin the next frame in a new session. */
static int next_frame(struct pet_work *w, int frame, struct err *err)
{
	struct case_planes_report planes;
	int rc;

	close_session(w);
	sinogram_choose_frame(w->s, frame);
	rc = w->corrections.made ? case_corrections_make(&w->corrections, err) : 0;
	if (rc == 0)
		rc = w->way->open(w, err);
	if (rc == 0)
		rc = w->way->read(w, frame, &planes, err);
	if (rc == 0 && w->s->part[SINOGRAM_ATTENUATION].of_frame)
		factor_survey_join(&w->planes.attenuation, &planes.attenuation);
	return rc;
}

/* Reconstruct all frames; the first is in the session. EDOM: none has counts. */
static int run_pet_case(struct reconstruct_work *base, struct err *err)
{
	struct pet_work *w = (struct pet_work *)base;
	int rc = make_volumes(w, err), n_empty = 0;

	for (int f = 0; rc == 0 && f < w->n_frames; f++) {
		rc = f > 0 ? next_frame(w, f, err) : 0;
		if (rc == 0)
			rc = run_frame(w, f, err);
		if (rc == -EDOM && (++n_empty < w->n_frames))
			rc = 0;
	}
	return err_remap(rc, EDOM, EBADMSG, err); /* the data have no counts */
}

static int take_pet_volume(struct reconstruct_work *base, struct err *err)
{
	struct pet_work *w = (struct pet_work *)base;
	int rc = make_volumes(w, err);

	if (rc == 0)
		rc = reconstruct_outside(base, &w->plan.grid, w->volume, err);
	if (rc < 0)
		return rc;
	w->run.counts = w->counts[0] = w->s->list ? (double)sinogram_list_data(w->s)->n_events : w->planes.counts;
	return 0;
}

/* Describe the frames or gates, one by one; NULL: there is one image. */
static json_t *describe_frames(const struct pet_work *w)
{
	const struct pet_images *m = &w->s->images;
	json_t *all = json_array();

	for (int f = 0; f < w->n_frames; f++) {
		json_t *one = json_pack("{s:s, s:i, s:i}", "of", pet_division_name(m->of), "number", f + 1, "count", w->n_frames);

		json_object_set_new(one, "duration_ms", json_integer(pet_images_duration(m, f)));
		if (m->of == PET_FRAMES)
			json_object_set_new(one, "start_ms", json_integer(m->image[f].time.start));
		json_array_append_new(all, one);
	}
	return all;
}

static int apply_steps(struct pet_work *w, const struct grid *g, struct err *err)
{
	bool several = w->s->images.n > 0 && w->s->images.of != PET_BEDS, bqml = false;
	const struct case_origin from = case_steps_origin(w->s);
	struct case_scale scale = {.scale = 1, .unit = "counts/mm"};
	struct case_volumes v = {.values = w->volume, .n = several ? w->n_frames : 1, .grid = g, .unit = "counts/mm"};
	json_t *images = several ? describe_frames(w) : NULL, *about;
	int rc = several ? 0 : pet_result_scale(w->s, &scale.scale, &bqml, err); /* each frame has a scale of its own */

	if (bqml)
		scale.unit = "Bq/ml";
	v.about = about = case_steps_about(&w->base, &from, g, &scale);
	v.images = images;
	if (rc == 0)
		rc = case_steps_apply(&w->base, &v, err);
	json_decref(about);
	json_decref(images);
	return rc;
}

/* Return why activity outside of the map is not looked for; NULL: it is. Randoms that are not corrected are activity everywhere: as
 * many as the trues 2 to 6 % outside of a cylinder. */
static const char *why_not_outside(const struct pet_work *w)
{
	if (w->s->images.n > 0)
		return "the case has several images";
	if (!algorithm_iterates(w->base.protocol->pet.algorithm))
		return "the algorithm does not iterate";
	if (!w->s->part[SINOGRAM_ADDITIVE].present && !case_randoms_are_known(&w->corrections))
		return "randoms are not corrected, and would be such activity";
	return NULL;
}

/* Compare the image with the map of its attenuation; the estimate of the scatter has done it with an image of its own. */
static void check_image(struct pet_work *w)
{
	struct case_corrections *c = &w->corrections;
	const char *why = why_not_outside(w);

	if (!c->attenuation.made || (c->made & PET_CORRECT_SCATTER) || w->base.decision->place.outside)
		return;
	if (why)
		case_corrections_say(c, "Activity beyond the body of the %s was not looked for: %s.", case_maps_word(c), why);
	else
		case_maps_check_image(c, &w->plan.grid, w->volume);
}

static int write_pet_case(struct reconstruct_work *base, struct err *err)
{
	struct pet_work *w = (struct pet_work *)base;
	bool beds = w->s->images.of == PET_BEDS;
	struct pet_plan joint = w->plan; /* with the grid of what is written */
	struct pet_result_info info = {.protocol = base->protocol,
				       .plan = &joint,
				       .join = beds ? &w->beds.join : NULL,
				       .now = clock_wall(),
				       .counts = w->run.counts,
				       .keep_free = base->keep_free};
	int rc = w->s->images.n > 0 || base->decision->place.outside ? 0 : read_volume(w, 0, err);
	double begun;

	if (rc < 0)
		return rc;
	if (beds)
		joint.grid = w->beds.join.grid;
	close_session(w);		/* free the session's memory on the device for the next case */
	sinogram_choose_frame(w->s, 0); /* attributes are copied from its objects */
	snprintf(info.device, sizeof(info.device), "%s", base->dev->name);
	check_image(w);
	rc = case_steps_wanted(base) ? apply_steps(w, &info.plan->grid, err) : 0;
	if (rc < 0)
		return rc;
	info.protocol = base->protocol; /* a step may have failed */
	pet_work_note(w, info.note, sizeof(info.note));
	if (base->notes[0])
		sentence_add(info.note, sizeof(info.note), "%s", base->notes);
	w->s->place = base->decision->place;
	w->s->place.step = base->step;
	w->s->place.n_steps = base->n_steps;
	begun = clock_seconds();
	rc = pet_result_write(w->s, &info, w->volume, base->out_dir, &w->made, err);
	if (rc < 0)
		return rc;
	base->report.seconds_write = clock_seconds() - begun;
	return reconstruct_report_series(&base->report, &w->made, err);
}

static void free_files(struct pet_work *w)
{
	for (size_t i = 0; w->files && i < w->base.n_paths; i++)
		dicom_close(w->files[i]);
	free(w->files);
	free(w->paths);
	ct_headers_free(w->headers);
}

static void release_pet_case(struct reconstruct_work *base)
{
	struct pet_work *w = (struct pet_work *)base;
	struct pet_work next = {.s = w->s, .n_ct = w->n_ct};
	struct ct_series **ct = &w->corrections.attenuation.ct;

	memcpy(next.bytes, w->bytes, sizeof(next.bytes));
	if (w->base.keep && *ct && (*ct)->hu) {
		next.ct = *ct;
		*ct = NULL;
	}
	free(w->volume);
	free(w->counts);
	case_beds_clear(&w->beds);
	case_corrections_clear(&w->corrections);
	free_files(w);
	series_report_clear(&w->made);
	close_session(w);
	case_event_terms_clear(&w->terms);
	free(w->sensitivity.values);
	*w = next;
}

static void close_pet_case(struct reconstruct_work *base)
{
	struct pet_work *w = (struct pet_work *)base;

	base->keep = false;
	release_pet_case(base);
	ct_series_close(w->ct);
	for (size_t role = 0; role <= SINOGRAM_ROLES; role++)
		free(w->bytes[role]);
	sinogram_close(w->s);
}

const struct reconstruct_kind reconstruct_pet = {
	.recognise = recognise_pet,
	.size = sizeof(struct pet_work),
	.open = open_pet_case,
	.read = read_pet_case,
	.run = run_pet_case,
	.take = take_pet_volume,
	.write = write_pet_case,
	.arrays = pet_work_arrays,
	.fill = pet_work_fill_report,
	.release = release_pet_case,
	.close = close_pet_case,
	.slices_class = CLASS_PET,
};
