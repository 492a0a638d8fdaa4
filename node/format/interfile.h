/* Interfile 3.3 headers of PET projection data and images, as STIR writes them, and the numbers behind them. Parallel beams
 * (PARALLEL_1, docs/sinogram-object.md) have headers of the same syntax with keys of their own.
 *
 * A header is text from outside: it is parsed with limits, every problem names the key, the value and the line. Case, spaces and
 * '!' mean nothing in keys; keys that say nothing about the numbers are passed over. Data are read and written in pieces; nothing
 * here knows DICOM. In memory projection data are in the order of recon/pet/michelogram.h, the header's own order of segments;
 * images x fastest; parallel beams data[slice][angle][radial].
 */
#ifndef TOMONODE_NODE_INTERFILE_H
#define TOMONODE_NODE_INTERFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "recon/parallel/parallel.h"
#include "recon/pet/michelogram.h"

#define INTERFILE_TEXT_MAX 65536 /* bytes of a header */
#define INTERFILE_UNIT_SIZE 33
#define INTERFILE_ATTENUATION "1/mm" /* the unit that is taken where a header of parallel beams gives none */

enum interfile_kind { INTERFILE_PROJECTIONS = 1, INTERFILE_IMAGE, INTERFILE_PARALLEL };
enum interfile_number { INTERFILE_SIGNED = 1, INTERFILE_UNSIGNED, INTERFILE_FLOAT };
enum interfile_order {
	INTERFILE_BY_VIEW = 1,
	INTERFILE_BY_PLANE
}; /* segment, view, axial, tangential; segment, axial, view, t. */

struct interfile {
	enum interfile_kind kind;
	char data_file[256]; /* as the header names it */
	enum interfile_number number;
	int bytes; /* of a value: 1, 2, 4, 8; of floats 4, 8 */
	bool big_endian;
	uint64_t offset; /* of the data in the file, bytes */
	double scale;	 /* value = stored * scale */
	/* PROJECTIONS */
	enum interfile_order order;
	struct michelogram m;  /* what the header does not say of the scanner is 0, the angle NaN: interfile_complete() */
	bool no_differences;   /* the header gives no ring differences: those of m's segments mean nothing yet */
	bool precorrected;     /* "applied corrections" names more than arc correction */
	char corrections[256]; /* these, "," between them */
	char scanner[64];      /* "scanner type"; "": not given */
	/* IMAGE: n, spacing mm, position of the first voxel's middle mm (not given: x and y centred as in STIR, z 0) */
	int n[3];
	double spacing[3], first[3];
	/* PARALLEL: line integrals of a quantity, which has the unit `unit`; beams.angle is owned */
	struct parallel_scan beams;
	char unit[INTERFILE_UNIT_SIZE];
	/* All; NaN or "": not given */
	double duration, start; /* s; start relative to the scan's */
	char date[9], time[7];	/* of the study, YYYYMMDD and HHMMSS */
	char position[5];	/* HFS, ...: "patient orientation" and "patient rotation" */
};

/* EBADMSG, ENOTSUP: what is wrong, and in which line. */
int interfile_parse(const char *text, size_t size, struct interfile *ret, struct err *err);
void interfile_clear(struct interfile *f); /* frees what it owns */

/* PROJECTIONS: what the header leaves open, from the scanner's configuration (NULL: none), and all of it checked. ENOKEY names
 * what is not known; EBADMSG: planes or bins that this scanner cannot have. On error f stays as it was. */
struct scanner_conf;
int interfile_complete(struct interfile *f, const struct scanner_conf *known, struct err *err);

/* Do two completed headers say the same rays, in the same order? EBADMSG names the first difference. */
int interfile_same_rays(const struct interfile *a, const struct interfile *b, struct err *err);

/* Bytes of all values, without the offset. */
uint64_t interfile_bytes(const struct interfile *f);

/* "47 planes, 280 angles, 329 radial bins of 4 bytes". */
void interfile_extent(const struct interfile *f, char *ret_text, size_t size);

/* Plane `plane` (of the order in memory; of parallel beams a slice) as floats [angle][radial], out of the bytes of the data file,
 * from its first one on: the offset is skipped here. Threads may share f and bytes. */
void interfile_plane(const struct interfile *f, const uint8_t *bytes, size_t plane, float *ret_values);

/* The header's text for f as it is: type, order, offset, scale, geometry. malloc'ed. For little-endian float32: number
 * INTERFILE_FLOAT, bytes 4, offset 0, scale 1. duration, start: 0 and NaN are left out. */
int interfile_write(const struct interfile *f, char **ret_text, struct err *err);

#endif
