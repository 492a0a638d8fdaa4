/* SPDX-License-Identifier: Apache-2.0 */
/* Read the frames of Hologic's SCO objects: Secondary Capture objects of modality MG with private data of the creator
 * `HOLOGIC, Inc.` in group 7E01. (7E01,xx01) is `GITTv1.0`, (7E01,xx02) `HLXS` (slices) or `HLXR` (projections); the sequences
 * (7E01,xx10) and (7E01,xx11) have the images in full and in lower resolution. The values (7E01,xx12) of their items, one after
 * the other, are a container (dicom/pixels/sco_container.h). The other attributes of the object that describe pixels are those
 * of a small preview, and are ignored. */
#ifndef TOMONODE_DICOM_SCO_H
#define TOMONODE_DICOM_SCO_H

#include "dicom/core/dataset.h"
#include "dicom/core/pixel_info.h"

#ifdef __cplusplus
extern "C" {
#endif

enum sco_content { SCO_NONE, SCO_SLICES, SCO_PROJECTIONS };
enum sco_resolution { SCO_FULL = 0x10, SCO_LOWER = 0x11 };

/* Return what an object is by its attributes, without reading its container; SCO_NONE: not such an object. */
enum sco_content sco_content_of(const struct dicom_item *root);
/* Return whether the object has images in this resolution. */
bool sco_has(const struct dicom_item *root, enum sco_resolution resolution);

/* Open the container of one resolution. `file` must stay open. Errors: those of sco_container_read(); EBADMSG: no such sequence,
 * or an item of it without exactly one (7E01,xx12). */
struct sco;
int sco_open(const struct dicom_file *file, enum sco_resolution resolution, struct sco **ret_sco, struct err *err);
struct sco *sco_close(struct sco *sco); /* accepts NULL; returns NULL */

/* Return size and format of the frames, borrowed. */
const struct dicom_pixel_info *sco_info(const struct sco *sco);
/* Read frame number `frame` (from 0) as dicom_read_frame() does. Several threads may read frames at once. */
int sco_read_frame(const struct sco *sco, long frame, uint16_t *ret_values, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
