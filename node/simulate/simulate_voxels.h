/* SPDX-License-Identifier: Apache-2.0 */
/* Read materials and volumes of labelled voxels, and make a phantom of them: `tomonode simulate dbt --phantom voxels`. */
#ifndef TOMONODE_NODE_SIMULATE_VOXELS_H
#define TOMONODE_NODE_SIMULATE_VOXELS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "recon/phantom/voxel_phantom.h"

#define MATERIALS_FILE_MAX 65536 /* maximum size of a materials file, bytes */
#define MATERIALS_NONE 0xFFFF	 /* value in `of`: no material has this label */

struct materials {
	size_t n;
	struct voxel_material material[VOXEL_MATERIALS_MAX];
	uint16_t of[65536]; /* label -> index of its material */
};

/* Parse the text of a materials file (format: see conf/materials-20keV.conf). name: file name for messages. */
int materials_parse(const char *text, size_t size, const char *name, struct materials *ret_materials, struct err *err);

/* Load the volume of a MetaImage file with the materials of a materials file, without its paddles. ret_digest: hash, as text, of
 * everything that affects its projections. */
int simulate_voxels_load(const char *volume, const char *materials, struct voxel_phantom **ret_phantom, char ret_digest[65],
			 struct err *err);

#endif
