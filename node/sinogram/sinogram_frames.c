/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_frames.c - time frames of an acquisition. Only list mode can be divided after it was measured. */
#include <errno.h>

#include "node/sinogram/sinogram_internal.h"

int sinogram_set_frames(struct sinogram *s, const struct pet_frames *frames, struct err *err)
{
	double duration = s->facts.duration > 0 ? s->facts.duration : s->part[SINOGRAM_EMISSION].header.duration;
	int rc;

	if (frames->n == 0)
		return 0;
	if (!s->mmr)
		return err_set(err, ENOTSUP,
			       "the protocol divides list mode into time frames, but the case has sinograms, which "
			       "cannot be divided");
	rc = pet_frames_check(frames, duration, err);
	if (rc < 0)
		return rc;
	s->frames = *frames;
	sinogram_choose_frame(s, 0);
	return 0;
}

void sinogram_choose_frame(struct sinogram *s, int frame)
{
	sinogram_mmr_choose_frame(s, frame);
}
