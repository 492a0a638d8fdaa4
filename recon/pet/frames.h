/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the time frames of a dynamic PET acquisition (recon/pet/images.h). No time is in two frames; there may be gaps between
 * them. */
#ifndef TOMONODE_RECON_PET_FRAMES_H
#define TOMONODE_RECON_PET_FRAMES_H

#include "recon/pet/images.h"

#define PET_FRAMES_END INT32_MAX /* largest end of a frame, ms: 24 days; Actual Frame Duration holds no more */
#define PET_FRAMES_TEXT 200	 /* longest text of a table, characters */

/* Read a table: entries separated by commas, one after the other in time. "10": a frame of 10 s; "6x10": six frames of 10 s each;
 * in parentheses, "(30)" or "(2x5)": a gap, whose events are not used. Seconds may have three decimals. "": no frames. EINVAL:
 * the message has the number and the text of the entry. */
int pet_frames_parse(const char *text, struct pet_images *ret, struct err *err);

/* Check that the last frame ends within an acquisition of this duration, s. ENOTSUP. */
int pet_frames_check(const struct pet_images *f, double duration, struct err *err);

#endif
