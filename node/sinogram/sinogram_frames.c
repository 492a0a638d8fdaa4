/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_frames.c - time frames of an acquisition: those of its objects, or those into which list mode is divided.
 *
 * Objects with a time frame have data of this frame, objects without one data of all frames. The parts of the chosen frame are
 * copied to s->part, so that whoever reads a role need not know about frames. */
#include <errno.h>
#include <stdlib.h>

#include "node/base/folder.h"
#include "node/sinogram/sinogram_internal.h"

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

/* Check that frames follow each other. A frame without objects is found by sinogram_check_frames(). */
static int check_order(const struct pet_frames *f, struct err *err)
{
	for (int i = 1; i < f->n; i++)
		if (f->frame[i].stop > 0 && f->frame[i].start < f->frame[i - 1].stop)
			return err_set(err, EBADMSG, "time frame %d begins at %ld ms, before the end of time frame %d at %ld ms",
				       i + 1, (long)f->frame[i].start, i, (long)f->frame[i - 1].stop);
	return 0;
}

int sinogram_find_frames(struct sinogram *s, const struct sinogram_facts *facts, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n_files; i++)
		if (facts[i].frame > 0)
			rc = take_frame(s, &facts[i], file_name(s->paths[i]), err);
	if (rc == 0)
		rc = check_order(&s->frames, err);
	if (rc < 0 || s->frames.n == 0)
		return rc;
	s->frame_part = calloc((size_t)s->frames.n, sizeof(*s->frame_part));
	return s->frame_part ? 0 : err_set(err, ENOMEM, "no memory for %d time frames", s->frames.n);
}

/* Counts are of a frame, and so are expected counts; factors may be of all frames. */
static bool needs_frames(int role)
{
	return role == SINOGRAM_EMISSION || role == SINOGRAM_ADDITIVE;
}

static int check_role(const struct sinogram *s, int role, struct err *err)
{
	const char *name = sinogram_role_name((enum sinogram_role)role);
	int n = 0, missing = 0;

	for (int i = 0; i < s->frames.n; i++) {
		n += s->frame_part[i][role].present;
		missing = missing == 0 && !s->frame_part[i][role].present ? i + 1 : missing;
	}
	if (n > 0 && s->part[role].present)
		return err_set(err, EBADMSG, "%s is in objects with a time frame and in objects without one", name);
	if (n > 0 && missing > 0)
		return err_set(err, EBADMSG, "%s: time frame %d of %d is missing", name, missing, s->frames.n);
	if (s->part[role].present && needs_frames(role))
		return err_set(err, EBADMSG, "%s has no time frame, but other objects have; counts must be those of a frame",
			       name);
	return 0;
}

int sinogram_check_frames(struct sinogram *s, struct err *err)
{
	int rc = 0;

	if (s->frames.n == 0)
		return 0;
	for (int role = 1; rc == 0 && role <= SINOGRAM_ROLES; role++)
		rc = check_role(s, role, err);
	if (rc == 0)
		sinogram_choose_frame(s, 0);
	return rc;
}

int sinogram_set_frames(struct sinogram *s, const struct pet_frames *frames, struct err *err)
{
	double duration = s->facts.duration > 0 ? s->facts.duration : s->part[SINOGRAM_EMISSION].header.duration;
	int rc;

	if (frames->n == 0)
		return 0;
	if (!s->mmr)
		return err_set(err, ENOTSUP,
			       "the protocol divides list mode into time frames, but the case has sinograms, which cannot be "
			       "divided");
	rc = pet_frames_check(frames, duration, err);
	if (rc < 0)
		return rc;
	s->frames = *frames;
	sinogram_choose_frame(s, 0);
	return 0;
}

void sinogram_choose_frame(struct sinogram *s, int frame)
{
	if (s->mmr)
		sinogram_mmr_choose_frame(s, frame);
	for (int role = 1; s->frame_part && role <= SINOGRAM_ROLES; role++)
		if (s->frame_part[frame][role].present) {
			s->part[role] = s->frame_part[frame][role];
			s->part[role].of_frame = true;
		}
}
