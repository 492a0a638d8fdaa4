/* A PET or CT series as one file that other programs read, float32. Values are not touched: stored value times slope.
 *
 * Voxels lie columns fastest, then rows, then slices along row x column direction: for the images made here x runs to the
 * patient's left, y to the back, z to the head. */
#ifndef TOMONODE_NODE_EXPORT_IMAGE_H
#define TOMONODE_NODE_EXPORT_IMAGE_H

#include "node/tools/image_series.h"

/* Interfile 3.3: `path` (.hv) is the header, the values lie beside it (.v). */
int export_interfile_image(const struct image_series *s, const char *path, struct err *err);

/* NIfTI-1, one file (.nii); sform: millimetres in RAS, from the DICOM attributes (which are LPS). */
int export_nifti(const struct image_series *s, const char *path, struct err *err);

#endif
