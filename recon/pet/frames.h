/* SPDX-License-Identifier: Apache-2.0 */
/* Time frames of a dynamic PET acquisition. Times are whole milliseconds since the start of the acquisition; a frame contains the
 * times t with start <= t < stop, so that no time is in two frames. Frames are in the order of time and do not overlap; there may
 * be gaps between them. */
#ifndef TOMONODE_RECON_PET_FRAMES_H
#define TOMONODE_RECON_PET_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/err.h"

#define PET_FRAMES_MAX 512
#define PET_FRAMES_END INT32_MAX /* largest end of a frame, ms: 24 days; Actual Frame Duration holds no more */
#define PET_FRAMES_TEXT 200	 /* longest text of a table, characters */

struct pet_frame {
	int64_t start, stop; /* ms */
};

struct pet_frames {
	int n; /* 0: no frames */
	struct pet_frame frame[PET_FRAMES_MAX];
};

/* Read a table: entries separated by commas, one after the other in time. "10": a frame of 10 s; "6x10": six frames of 10 s each;
 * in parentheses, "(30)" or "(2x5)": a gap, whose events are not used. Seconds may have three decimals. "": no frames. EINVAL:
 * the message has the number and the text of the entry. */
int pet_frames_parse(const char *text, struct pet_frames *ret, struct err *err);

/* Check that the last frame ends within an acquisition of this duration, s. ENOTSUP. */
int pet_frames_check(const struct pet_frames *f, double duration, struct err *err);

/* Whether a frame contains the time t, ms. */
static inline bool pet_frame_has(const struct pet_frame *f, int64_t t)
{
	return t >= f->start && t < f->stop;
}

#endif
