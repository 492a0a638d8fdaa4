/* SPDX-License-Identifier: Apache-2.0 */
/* Open the slices of a tomosynthesis that was already reconstructed: a Breast Tomosynthesis Image, or a Hologic SCO object with
 * slices. An SCO object is read only if the profile of its system has sco = true. Its header does not have the size of the
 * voxels: a person must state it. */
#ifndef TOMONODE_NODE_TOMO_SLICES_H
#define TOMONODE_NODE_TOMO_SLICES_H

#include "dicom/object/tomo_object.h"
#include "node/config/config.h"

#define SLICES_VOXEL_MIN 0.01 /* mm */
#define SLICES_VOXEL_MAX 20.0
#define SLICES_NOTES_SIZE 1024

/* Open the slices. voxel: distances between columns, rows and slices that a person stated, mm; NULL: none. ret_notes: sentences
 * about what an SCO object does not prove, SLICES_NOTES_SIZE bytes; "": none.
 * The position of an SCO object's slices is not known: the origin is the middle of the edge of the lowest slice at the chest
 * wall. EBADMSG: an attribute is missing or contradictory, or `voxel` is missing for an SCO object or was stated for another one,
 * which has its own; ENOTSUP: not allowed by the profile, or lossy; ENOKEY: no profile. */
int tomo_slices_open(const char *path, const struct config *config, const double *voxel, struct tomo_object **ret_object,
		     char *ret_notes, struct err *err);

/* Parse "COLUMN,ROW,SLICE": three distances, mm. false: another form, or outside the range above. */
bool tomo_slices_voxel(const char *text, double ret_voxel[3]);

#endif
