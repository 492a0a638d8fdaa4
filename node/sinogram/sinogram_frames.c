/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_frames.c - time frames, gates or beds of an acquisition: those of its objects, or those into which list mode is
 * divided.
 *
 * Objects with a time frame, a gate or a bed have data of it, objects without one data of all. The parts of the chosen one are
 * copied to s->part, so that whoever reads a role need not know about them. The time marks of gates are in each of their objects,
 * and must be the same. Beds: sinogram_beds.c. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/folder.h"
#include "node/sinogram/sinogram_internal.h"
#include "node/sinogram/sinogram_list_internal.h"

/* Store the times of the frame of an object; other objects of the same frame must have the same. */
static int take_frame(struct sinogram *s, const struct sinogram_facts *f, const char *name, struct err *err)
{
	struct pet_frame *frame = &s->frames.frame[f->frame - 1];
	struct pet_frame found = {f->frame_start, f->frame_start + f->frame_time};

	if (s->frames.n != 0 && f->n_frames != s->frames.n)
		return err_set(err, EBADMSG, "%s announces %ld time frames, other objects %d", name, f->n_frames, s->frames.n);
	if (frame->stop > 0 && (frame->start != found.start || frame->stop != found.stop))
		return err_set(err, EBADMSG, "%s: time frame %ld is %ld to %ld ms, in other objects %ld to %ld ms", name,
			       f->frame, (long)found.start, (long)found.stop, (long)frame->start, (long)frame->stop);
	s->frames.n = (int)f->n_frames;
	*frame = found;
	return 0;
}

static int read_marks(struct dicom_file *file, const struct sinogram_facts *f, struct pet_marks *ret, struct err *err)
{
	char *text = NULL;
	int rc = sinogram_marks_text(file, f, &text, err);

	if (rc == 0)
		rc = pet_marks_parse(text, strlen(text), ret, err);
	free(text);
	return rc;
}

static bool same_marks(const struct pet_marks *a, const struct pet_marks *b)
{
	return a->n == b->n && !memcmp(a->ms, b->ms, a->n * sizeof(*a->ms));
}

/* Store the gates of an object; all other objects must have the same. */
static int take_gate(struct sinogram *s, size_t file, const struct sinogram_facts *f, struct err *err)
{
	struct pet_gates g = {.n = (int)f->n_gates, .shortest = f->shortest, .longest = f->longest, .signal = f->signal};
	const struct pet_gates *first = &s->gates;
	const char *name = file_name(s->paths[file]);
	int rc = read_marks(s->files[file], f, &g.marks, err);

	if (rc < 0) {
		err_prefix(err, "%s", name);
		return rc;
	}
	if (first->n == 0) {
		s->gates = g;
		return 0;
	}
	if (g.n != first->n)
		rc = err_set(err, EBADMSG, "%s announces %d gates, other objects %d", name, g.n, first->n);
	else if (g.shortest != first->shortest || g.longest != first->longest || g.signal != first->signal)
		rc = err_set(err, EBADMSG, "%s: gates of cycles of %ld to %ld ms, signal %s; in other objects %ld to %ld ms, %s",
			     name, (long)g.shortest, (long)g.longest, pet_signal_name(g.signal), (long)first->shortest,
			     (long)first->longest, pet_signal_name(first->signal));
	else if (!same_marks(&g.marks, &first->marks))
		rc = err_set(err, EBADMSG, "%s has other time marks than other objects of the acquisition", name);
	pet_marks_clear(&g.marks);
	return rc;
}

/* Check that frames follow each other. A frame without objects is found by sinogram_check_frames(). */
static int check_order(const struct pet_frames *f, struct err *err)
{
	for (int i = 1; i < f->n; i++)
		if (f->frame[i].stop > 0 && f->frame[i].start < f->frame[i - 1].stop)
			return err_set(err, EBADMSG, "time frame %d begins at %ld ms, before the end of time frame %d at %ld ms",
				       i + 1, (long)f->frame[i].start, i, (long)f->frame[i - 1].stop);
	return 0;
}

/* Check that the objects have not more than one of frames, gates and beds. */
static int check_one(const struct sinogram *s, struct err *err)
{
	const char *first = s->frames.n > 0 ? "time frame" : "gate", *second = s->beds.n > 0 ? "bed" : "gate";

	if ((s->frames.n > 0) + (s->gates.n > 0) + (s->beds.n > 0) < 2)
		return 0;
	return err_set(err, EBADMSG, "objects with a %s and objects with a %s", first, second);
}

int sinogram_find_frames(struct sinogram *s, const struct sinogram_facts *facts, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n_files; i++)
		if (facts[i].frame > 0)
			rc = take_frame(s, &facts[i], file_name(s->paths[i]), err);
		else if (facts[i].gate > 0)
			rc = take_gate(s, i, &facts[i], err);
		else if (facts[i].bed > 0)
			rc = sinogram_take_bed(s, i, &facts[i], err);
	if (rc == 0)
		rc = check_one(s, err);
	if (rc == 0)
		rc = check_order(&s->frames, err);
	if (rc == 0)
		rc = sinogram_check_bed_times(&s->beds, err);
	if (rc < 0 || sinogram_images(s) == 0)
		return rc;
	s->frame_part = calloc((size_t)sinogram_images(s), sizeof(*s->frame_part));
	return s->frame_part ? 0 : err_set(err, ENOMEM, "no memory for %d %ss", sinogram_images(s), sinogram_image_name(s));
}

/* Counts are of a frame, gate or bed, and so are expected counts; factors may be of all. */
static bool needs_frames(int role)
{
	return role == SINOGRAM_EMISSION || role == SINOGRAM_ADDITIVE || role == SINOGRAM_DELAYEDS || role == SINOGRAM_SINGLES;
}

static int check_role(const struct sinogram *s, int role, struct err *err)
{
	const char *name = sinogram_role_name((enum sinogram_role)role), *what = sinogram_image_name(s);
	int n = 0, missing = 0;

	for (int i = 0; i < sinogram_images(s); i++) {
		n += s->frame_part[i][role].present;
		missing = missing == 0 && !s->frame_part[i][role].present ? i + 1 : missing;
	}
	if (n > 0 && s->part[role].present)
		return err_set(err, EBADMSG, "%s is in objects with a %s and in objects without one", name, what);
	if (n > 0 && missing > 0)
		return err_set(err, EBADMSG, "%s: %s %d of %d is missing", name, what, missing, sinogram_images(s));
	if (s->part[role].present && needs_frames(role))
		return err_set(err, EBADMSG, "%s has no %s, but other objects have; counts must be those of a %s", name, what,
			       what);
	return 0;
}

int sinogram_check_frames(struct sinogram *s, struct err *err)
{
	int rc = 0;

	if (sinogram_images(s) == 0)
		return 0;
	for (int role = 1; rc == 0 && role <= SINOGRAM_ROLES; role++)
		rc = check_role(s, role, err);
	if (rc == 0)
		sinogram_choose_frame(s, 0);
	return rc;
}

/* Return the duration of an acquisition, s; NaN: unknown. */
static double duration_of(const struct sinogram *s)
{
	return s->facts.duration > 0 ? s->facts.duration : s->part[SINOGRAM_EMISSION].header.duration;
}

int sinogram_set_frames(struct sinogram *s, const struct pet_frames *frames, struct err *err)
{
	int rc;

	if (frames->n == 0 || s->list)
		return 0;
	if (!s->mmr)
		return err_set(err, ENOTSUP,
			       "the protocol divides list mode into time frames, but the case has sinograms, which cannot be "
			       "divided");
	rc = pet_frames_check(frames, duration_of(s), err);
	if (rc < 0)
		return rc;
	s->frames = *frames;
	sinogram_choose_frame(s, 0);
	return 0;
}

int sinogram_check_gates(const struct sinogram *s, struct err *err)
{
	double duration = duration_of(s);

	if (s->gates.n == 0)
		return 0;
	return pet_gates_check(&s->gates, duration > 0 ? llround(1000 * duration) : PET_MARKS_END, err);
}

/* Leave out marks behind the end of the acquisition: the list may be longer than its header says. */
static void cut_marks(struct pet_marks *m, double duration)
{
	while (m->n > 0 && (double)m->ms[m->n - 1] > 1000 * duration + 0.5)
		m->n--;
}

int sinogram_set_gates(struct sinogram *s, const struct pet_gates *g, struct err *err)
{
	struct pet_gates gates = *g;
	int rc;

	if (g->n == 0)
		return 0;
	if (s->frames.n > 0)
		return err_set(err, ENOTSUP, "gates of time frames are not supported: choose frames or gates");
	if (s->list)
		return err_set(
			err, ENOTSUP,
			"gates of a PETSIRD file are not reconstructed event by event: use `tomonode import --petsird --gates`");
	if (!s->mmr)
		return err_set(err, ENOTSUP,
			       "the protocol divides list mode into gates, but the case has sinograms, which cannot be "
			       "divided");
	gates.marks = (struct pet_marks){0};
	if (g->signal == PET_SIGNAL_TABLE)
		rc = pet_marks_copy(&g->marks, &gates.marks, err);
	else
		rc = sinogram_mmr_marks(s, g->signal, &gates.marks, err);
	if (rc < 0)
		return rc;
	if (g->signal != PET_SIGNAL_TABLE)
		cut_marks(&gates.marks, duration_of(s));
	s->gates = gates;
	rc = sinogram_check_gates(s, err);
	if (rc == 0)
		sinogram_choose_frame(s, 0);
	return rc;
}

int sinogram_images(const struct sinogram *s)
{
	return s->frames.n > 0 ? s->frames.n : s->gates.n > 0 ? s->gates.n : s->beds.n;
}

const char *sinogram_image_name(const struct sinogram *s)
{
	return s->gates.n > 0 ? "gate" : s->beds.n > 0 ? "bed" : "time frame";
}

double sinogram_duration(const struct sinogram *s)
{
	const struct pet_frame *time = s->frames.n > 0 ? &s->frames.frame[s->chosen] : NULL;

	if (s->beds.n > 0)
		time = &s->beds.bed[s->chosen].time;
	if (s->gates.n > 0)
		return (double)pet_gates_sum(&s->gates, s->chosen, 0).duration / 1000;
	return time ? (double)(time->stop - time->start) / 1000 : duration_of(s);
}

double sinogram_decay_factor(const struct sinogram *s, double lambda)
{
	double x = lambda * sinogram_duration(s);

	if (s->gates.n > 0)
		return pet_gates_sum(&s->gates, s->chosen, lambda).decay_factor;
	return x > 0 ? x / -expm1(-x) : 1;
}

void sinogram_choose_frame(struct sinogram *s, int frame)
{
	s->chosen = frame;
	if (s->list)
		list_choose_frame(s->list, frame);
	else if (s->mmr)
		sinogram_mmr_choose_frame(s, frame);
	for (int role = 1; s->frame_part && role <= SINOGRAM_ROLES; role++)
		if (s->frame_part[frame][role].present) {
			s->part[role] = s->frame_part[frame][role];
			s->part[role].of_frame = true;
		}
	if (s->beds.n > 0)
		memcpy(s->centre, s->beds.bed[frame].centre, sizeof(s->centre));
}
