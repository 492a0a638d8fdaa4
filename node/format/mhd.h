/* SPDX-License-Identifier: Apache-2.0 */
/* Read MetaImage volumes: a text header (.mhd, .mha) and the elements, behind it or in a file beside it. Supported: three axes, one
 * number per element, uncompressed or compressed (zlib or gzip), either byte order. A volume with any other property is refused
 * with an error that names the property.
 *
 * The files are untrusted: sizes are checked before memory is allocated, and the data file must be in the folder of the header
 * and contain exactly the number of elements that the header requires.
 */
#ifndef TOMONODE_NODE_MHD_H
#define TOMONODE_NODE_MHD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "node/format/volume_element.h"

#define MHD_HEADER_MAX 65536		/* bytes */
#define MHD_SIDE_MAX 4096		/* maximum number of elements along an axis */
#define MHD_COUNT_MAX ((size_t)1 << 31) /* maximum number of elements */

/* What a volume is used for. PHANTOM: unsigned integers of 8 or 16 bits in a file of their own, spacing of 0.001 to 10 mm, axes not
 * rotated. PLACED: any element, with a place in the patient. */
enum mhd_use { MHD_PHANTOM, MHD_PLACED };

struct mhd {
	int n[3];	  /* number of elements along x, y, z; x varies fastest in the file */
	double h[3];	  /* spacing along x, y, z, mm */
	double corner[3]; /* of PLACED: centre of the first element, LPS, mm */
	double axes[9];	  /* direction of one axis after the other, LPS */
	enum volume_element element;
	bool most_significant_first;
	bool compressed;
	char data[256]; /* name of the data file, in the folder of the header; "": behind the header */
	size_t data_at; /* offset of the elements in their file */
};

/* Parse a header in memory, or the beginning of a file whose elements follow it. name: file name for error messages. Errors:
 * EBADMSG (not a MetaImage header, or contradictory), ENOTSUP (a kind that is not supported). */
int mhd_parse(const char *text, size_t size, const char *name, enum mhd_use use, struct mhd *ret_header, struct err *err);

/* Read and parse the header file. */
int mhd_open(const char *path, enum mhd_use use, struct mhd *ret_header, struct err *err);

/* Read all elements in blocks, in the order of the file. path: of the header. */
int mhd_read(const char *path, const struct mhd *header, volume_take *take, void *ctx, struct err *err);

#endif
