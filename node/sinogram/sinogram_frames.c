/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_frames.c - time frames, gates or beds of an acquisition: those of its objects, or those into which list mode is
 * divided.
 *
 * Objects with a time frame, a gate or a bed have data of it, objects without one data of all. The parts of the chosen one are
 * copied to s->part, so that whoever reads a role need not know about them. The time marks of gates are in each of their objects,
 * and must be the same. Each bed has its time and position, which all its objects repeat. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/base/folder.h"
#include "node/sinogram/pet_source.h"
#include "node/sinogram/sinogram_internal.h"
#include "node/sinogram/sinogram_list_internal.h"

#define SAME_PLACE 1e-3 /* mm */
#define DEAD_TIME_MOST 100.0

static int read_bed(const struct sinogram *s, size_t file, const struct sinogram_facts *f, double ret_centre[3], struct err *err)
{
	const char *name = file_name(s->paths[file]);
	int rc = sinogram_centre(s->files[file], f, ret_centre, err);

	if (rc == 0)
		return err_set(err, EBADMSG, "%s: the position of bed %ld is missing, the scanner's centre (%04X,%02X%02X)", name,
			       f->image, SINOGRAM_GROUP, f->block, SINOGRAM_CENTRE);
	if (rc < 0)
		err_prefix(err, "%s", name);
	return rc < 0 ? rc : 0;
}

/* Store the frame or bed of an object; other objects of the same one must have the same. */
static int take_image(struct sinogram *s, size_t file, const struct sinogram_facts *f, struct err *err)
{
	struct pet_image *image = &s->images.image[f->image - 1];
	struct pet_image found = {.time = {f->start, f->start + f->time}};
	const char *name = file_name(s->paths[file]), *what = pet_division_name(f->of);
	const double *here = found.centre, *other = image->centre;
	int rc = f->of == PET_BEDS ? read_bed(s, file, f, found.centre, err) : 0;

	if (rc < 0)
		return rc;
	if (s->images.n != 0 && f->n_images != s->images.n)
		return err_set(err, EBADMSG, "%s announces %ld %ss, other objects %d", name, f->n_images, what, s->images.n);
	if (image->time.stop > 0 && (image->time.start != found.time.start || image->time.stop != found.time.stop))
		return err_set(err, EBADMSG, "%s: %s %ld is %ld to %ld ms, in other objects %ld to %ld ms", name, what, f->image,
			       (long)found.time.start, (long)found.time.stop, (long)image->time.start, (long)image->time.stop);
	for (int c = 0; c < 3; c++)
		if (image->time.stop > 0 && fabs(here[c] - other[c]) > SAME_PLACE)
			return err_set(err, EBADMSG, "%s: %s %ld is at %g, %g, %g mm, in other objects at %g, %g, %g mm", name,
				       what, f->image, here[0], here[1], here[2], other[0], other[1], other[2]);
	s->images.of = f->of;
	s->images.n = (int)f->n_images;
	*image = found;
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
	struct pet_gates g = {.n = (int)f->n_images, .shortest = f->shortest, .longest = f->longest, .signal = f->signal};
	const struct pet_gates *first = &s->images.gates;
	const char *name = file_name(s->paths[file]);
	int rc = read_marks(s->files[file], f, &g.marks, err);

	if (rc < 0) {
		err_prefix(err, "%s", name);
		return rc;
	}
	if (first->n == 0) {
		pet_images_set_gates(&s->images, &g);
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

/* Check that the objects have not more than one of frames, gates and beds. */
static int check_one(const struct sinogram *s, enum pet_division of, struct err *err)
{
	enum pet_division known = s->images.of;

	if (known == PET_WHOLE || known == of)
		return 0;
	return err_set(err, EBADMSG, "objects with a %s and objects with a %s", pet_division_name(known < of ? known : of),
		       pet_division_name(known < of ? of : known));
}

int sinogram_find_frames(struct sinogram *s, const struct sinogram_facts *facts, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n_files; i++) {
		if (facts[i].of == PET_WHOLE)
			continue;
		rc = check_one(s, facts[i].of, err);
		if (rc == 0)
			rc = facts[i].of == PET_GATES ? take_gate(s, i, &facts[i], err) : take_image(s, i, &facts[i], err);
	}
	if (rc == 0)
		rc = pet_images_check_order(&s->images, err); /* one without objects is found by sinogram_check_frames() */
	if (rc < 0 || s->images.n == 0)
		return rc;
	s->frame_part = calloc((size_t)s->images.n, sizeof(*s->frame_part));
	return s->frame_part ? 0 : err_set(err, ENOMEM, "no memory for %d %ss", s->images.n, pet_division_name(s->images.of));
}

/* Counts are of a frame, gate or bed, and so are expected counts; factors may be of all. */
static bool needs_frames(int role)
{
	return role == SINOGRAM_EMISSION || role == SINOGRAM_ADDITIVE || role == SINOGRAM_DELAYEDS || role == SINOGRAM_SINGLES;
}

static int check_role(const struct sinogram *s, int role, struct err *err)
{
	const char *name = sinogram_role_name((enum sinogram_role)role), *what = pet_division_name(s->images.of);
	int n = 0, missing = 0;

	for (int i = 0; i < s->images.n; i++) {
		n += s->frame_part[i][role].present;
		missing = missing == 0 && !s->frame_part[i][role].present ? i + 1 : missing;
	}
	if (n > 0 && s->part[role].present)
		return err_set(err, EBADMSG, "%s is in objects with a %s and in objects without one", name, what);
	if (n > 0 && missing > 0)
		return err_set(err, EBADMSG, "%s: %s %d of %d is missing", name, what, missing, s->images.n);
	if (s->part[role].present && needs_frames(role))
		return err_set(err, EBADMSG, "%s has no %s, but other objects have; counts must be those of a %s", name, what,
			       what);
	return 0;
}

int sinogram_check_frames(struct sinogram *s, struct err *err)
{
	int rc = 0;

	if (s->images.n == 0)
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

int sinogram_set_frames(struct sinogram *s, const struct pet_images *frames, struct err *err)
{
	int rc;

	if (frames->n == 0 || s->list)
		return 0;
	if (!s->source->list_mode)
		return err_set(err, ENOTSUP,
			       "the protocol divides list mode into time frames, but the case has sinograms, which cannot be "
			       "divided");
	rc = pet_frames_check(frames, duration_of(s), err);
	if (rc < 0)
		return rc;
	s->images = *frames;
	sinogram_choose_frame(s, 0);
	return 0;
}

int sinogram_check_gates(const struct sinogram *s, struct err *err)
{
	double duration = duration_of(s);

	if (s->images.of != PET_GATES)
		return 0;
	return pet_gates_check(&s->images.gates, duration > 0 ? llround(1000 * duration) : PET_MARKS_END, err);
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
	if (s->images.of == PET_FRAMES)
		return err_set(err, ENOTSUP, "gates of time frames are not supported: choose frames or gates");
	if (s->source->no_gates)
		return err_set(err, ENOTSUP, "%s", s->source->no_gates);
	gates.marks = (struct pet_marks){0};
	rc = s->source->marks(s, g, &gates.marks, err);
	if (rc < 0)
		return rc;
	if (g->signal != PET_SIGNAL_TABLE)
		cut_marks(&gates.marks, duration_of(s));
	pet_images_set_gates(&s->images, &gates);
	rc = sinogram_check_gates(s, err);
	if (rc == 0)
		sinogram_choose_frame(s, 0);
	return rc;
}

double sinogram_duration(const struct sinogram *s)
{
	return s->images.n > 0 ? (double)pet_images_duration(&s->images, s->chosen) / 1000 : duration_of(s);
}

double sinogram_decay_factor(const struct sinogram *s, double lambda)
{
	double x = lambda * sinogram_duration(s);

	if (s->images.of == PET_GATES)
		return pet_gates_sum(&s->images.gates, s->chosen, lambda).decay_factor;
	return x > 0 ? x / -expm1(-x) : 1;
}

void sinogram_choose_frame(struct sinogram *s, int frame)
{
	s->chosen = frame;
	if (s->list)
		list_choose_frame(s->list, frame);
	for (int role = 1; s->frame_part && role <= SINOGRAM_ROLES; role++)
		if (s->frame_part[frame][role].present) {
			s->part[role] = s->frame_part[frame][role];
			s->part[role].of_frame = true;
		}
	if (s->images.of == PET_BEDS)
		memcpy(s->centre, s->images.image[frame].centre, sizeof(s->centre));
}

int sinogram_dead_time_factor(const struct sinogram *s, int image, double *ret, struct err *err)
{
	const struct sinogram_part *part = &s->part[SINOGRAM_EMISSION];
	int rc;

	if (s->source->list_mode)
		return 0;
	if (s->frame_part)
		part = &s->frame_part[image][SINOGRAM_EMISSION];
	rc = dicom_get_double(dicom_root(s->files[part->file[0]]), TAG_DEAD_TIME_FACTOR, 0, ret, err);
	if (rc < 0 || (rc > 0 && !(*ret >= 1 && *ret <= DEAD_TIME_MOST)))
		return err_set(err, EBADMSG, "Dead Time Factor (0054,1324) is not a number from 1 to %g", DEAD_TIME_MOST);
	return rc;
}
