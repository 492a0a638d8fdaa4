/* Interfile 3.3 headers of PET projection data and images, as STIR writes them, and the numbers behind them.
 *
 * A header is text from outside: it is parsed with limits, every problem names the key, the value and the line. Data are read and
 * written in pieces; nothing here knows DICOM. In memory projection data are in the order of recon/michelogram.h, images x
 * fastest.
 */
#ifndef TOMONODE_NODE_INTERFILE_H
#define TOMONODE_NODE_INTERFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "recon/michelogram.h"

#define INTERFILE_TEXT_MAX 65536 /* bytes of a header */

enum interfile_kind { INTERFILE_PROJECTIONS = 1, INTERFILE_IMAGE };
enum interfile_number { INTERFILE_SIGNED = 1, INTERFILE_UNSIGNED, INTERFILE_FLOAT };
enum interfile_order {
	INTERFILE_BY_VIEW = 1,
	INTERFILE_BY_PLANE
}; /* segment, view, axial, tangential; segment, axial, view, t. */

struct interfile {
	enum interfile_kind kind;
	char data_file[256]; /* as the header names it */
	enum interfile_number number;
	int bytes; /* of a value: 1, 2, 4, 8 */
	bool big_endian;
	uint64_t offset; /* of the data in the file, bytes */
	double scale;	 /* value = stored * scale */
	/* PROJECTIONS */
	enum interfile_order order;
	struct michelogram m;
	bool precorrected; /* "applied corrections" names more than arc correction */
	char corrections[256];
	/* IMAGE: n, spacing mm, position of the first voxel's middle mm */
	int n[3];
	double spacing[3], first[3];
	/* Both; NaN: not given */
	double duration, start; /* s; start relative to the scan's */
};

int interfile_parse(const char *text, size_t size, struct interfile *ret, struct err *err);
void interfile_clear(struct interfile *f); /* frees what it owns */

/* Bytes of all values. */
uint64_t interfile_bytes(const struct interfile *f);

/* Plane `plane` (of the order in memory) as floats [angle][radial], out of the raw bytes of all values in memory. */
void interfile_plane(const struct interfile *f, const uint8_t *bytes, size_t plane, float *ret_values);

/* The header's text for float32 little-endian data, or (like != NULL) for data of like's type, order and scale. malloc'ed. */
int interfile_write(const struct interfile *f, char **ret_text, struct err *err);

#endif
