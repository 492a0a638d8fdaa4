/* SPDX-License-Identifier: Apache-2.0 */
/* The container of Hologic's SCO objects: a head, JPEG-LS scans, a table. Without DICOM, which is in dicom/pixels/sco.h.
 *
 * Hologic does not document it. Source: PantelisGeorgiadis/DicomScoToBto (MIT licence), which reads slices; that projections are
 * in the same container is an assumption. Numbers are little-endian: number of frames u16 at 20, columns u16 at 24, rows u16 at
 * 28, bits of a value u8 at 32, NEAR u8 at 36; in the last 1024 bytes frames + 1 numbers u32: frame i is in the bytes from number
 * i to number i + 1. These are the entropy-coded data of a JPEG-LS scan (ISO 14495-1) of one component, without markers. */
#ifndef TOMONODE_DICOM_SCO_CONTAINER_H
#define TOMONODE_DICOM_SCO_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

#include "dicom/core/pixel_info.h"
#include "kernels/err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SCO_FRAMES_MAX 255
#define SCO_HEAD_SIZE 37
#define SCO_TABLE_SIZE 1024
#define SCO_FRAME_MAX (1u << 29) /* bytes of a frame, decoded or compressed */
#define SCO_BEFORE_SIZE 25	 /* bytes of the markers before a scan */
#define SCO_AFTER_SIZE 2

struct sco_container {
	struct dicom_pixel_info info;
	uint32_t offset[SCO_FRAMES_MAX + 1]; /* info.frames + 1 values, ascending */
};

/* Check the head and the table, the last bytes of a container of `size` bytes. EBADMSG: the container contradicts itself; EFBIG:
 * a frame is too large; ENOTSUP: its compression is lossy (NEAR above 0). The message names the value. */
int sco_container_read(const uint8_t head[SCO_HEAD_SIZE], const uint8_t table[SCO_TABLE_SIZE], uint64_t size,
		       struct sco_container *ret, struct err *err);

/* Write the markers that make a JPEG-LS code stream of a scan: those before it, and those after it. */
void sco_container_markers(const struct sco_container *c, uint8_t ret_before[SCO_BEFORE_SIZE], uint8_t ret_after[SCO_AFTER_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
