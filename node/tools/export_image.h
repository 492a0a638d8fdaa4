/* SPDX-License-Identifier: Apache-2.0 */
/* Write a PET or CT series, or a tomosynthesis, as float32 that other programs read. Values are only rescaled: stored value
 * times slope. Files that exist are replaced.
 *
 * Voxels are stored columns fastest, then rows, then slices along row x column direction. For images of this program x points to
 * the patient's left, y to the back, z to the head. */
#ifndef TOMONODE_NODE_EXPORT_IMAGE_H
#define TOMONODE_NODE_EXPORT_IMAGE_H

#include "node/tools/image_series.h"

/* Write Interfile 3.3: the header at `path` (.hv), the values in the same folder (.v), in the axes of STIR: fixed to the gantry,
 * z out of it; the first pixel offset is the place in the frame of reference, along these axes. ENOTSUP: several images, a
 * tomosynthesis, or axes that are not those of the gantry. */
int export_interfile_image(const struct image_series *s, const char *path, struct err *err);

/* Write NIfTI-1 in one file, compressed if its name ends in .gz. The sform gives millimetres in RAS, converted from the DICOM
 * attributes (LPS); cal_min and cal_max are the window of a tomosynthesis or of CT.
 * A series with time frames or gates has four dimensions, with pixdim[4] and toffset in s if all have the same duration and
 * follow each other, else 0; the times are in a file with the same name and the ending .json: FrameTimesStart and FrameDuration
 * (BIDS), or TriggerTime, FrameTime and GateDuration, in s. If the times cannot be written, the NIfTI file stays as it was. */
int export_nifti(const struct image_series *s, const char *path, struct err *err);

/* Write MetaImage: .mha has the values behind its header, .mhd in a file beside it (.raw, compressed .zraw), in LPS. Of time
 * frames or gates the fourth dimension is as in NIfTI, with the spacing 1 where NIfTI has 0, and the times in a .json file. */
int export_metaimage(const struct image_series *s, const char *path, bool compress, struct err *err);

#endif
