/* SPDX-License-Identifier: Apache-2.0 */
/* Write the prompts of a PET acquisition as list mode in a PETSIRD file (docs/petsird.md).
 *
 * - Sinogram objects: each count is an event of the two detectors of its bin. A bin of several pairs of detectors (a span above
 * 1, added views, arc correction) is refused: which pair was hit is not known. The counts must be whole numbers. The events of a
 *   time frame, or of the whole acquisition, are one time block.
 * - List mode of a Siemens mMR: the events as they are, prompts and delayed, a time block for each time mark (several for very
 * many events). Gaps between blocks of detectors have the efficiency 0.
 *
 * Factors and background (attenuation, normalisation, ...) are not written. */
#ifndef TOMONODE_NODE_EXPORT_PETSIRD_H
#define TOMONODE_NODE_EXPORT_PETSIRD_H

#include "node/sinogram/sinogram.h"

struct export_petsird {
	uint64_t prompts, delayeds;
	size_t blocks;
};

/* Write the file, or nothing. The chosen time frame of s changes. Errors: ENOTSUP (no list mode can be made of these data),
 * EBADMSG (counts that are not whole numbers, an unknown duration), ENOMEM. */
int export_petsird(struct sinogram *s, const char *path, struct export_petsird *ret, struct err *err);

#endif
