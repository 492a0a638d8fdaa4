/* SPDX-License-Identifier: Apache-2.0 */
/* Read an image of another program (node/format/volume_file.h) as map of the attenuation of 511 keV photons.
 *
 * Its unit is that which a person states, else that of its header (Interfile: "quantification units"), else that in which a
 * part of the body, MAP_FILE_WATER of its voxels, has the values of water and soft tissue (MU_WATER). A stated unit that
 * contradicts these values, and values that fit no unit, are refused.
 *
 * A matrix moves the map within its own frame: (x', y', z', 1) = M (x, y, z, 1), millimetres of the patient (LPS; also of
 * NIfTI) or, of an Interfile image, of the scanner. It may turn, move and stretch, but not mirror. */
#ifndef TOMONODE_NODE_MAP_FILE_H
#define TOMONODE_NODE_MAP_FILE_H

#include "node/format/volume_file.h"

#define MAP_FILE_WATER 0.25  /* of the voxels that attenuate */
#define MAP_FILE_MOST 0.04   /* 1/mm: the largest value of a map; bone has up to 0.02, dense plastic and light metal more */
#define MAP_FILE_STRETCH 2   /* by which a matrix may change a volume, or 1 / this */
#define MAP_FILE_MATRIX 4096 /* bytes of its text */
#define MAP_FILE_UNITS "1/cm, 1/mm, 10000/cm, HU"

enum map_unit { MAP_UNKNOWN, MAP_PER_CM, MAP_PER_MM, MAP_TEN_THOUSANDTHS, MAP_HU }; /* 10000/cm: values are 10000 times 1/cm */
/* Return false: no unit. Case and spaces are ignored. */
bool map_unit_named(const char *word, enum map_unit *ret);
const char *map_unit_name(enum map_unit unit);

/* What a person says of a map; path and matrix are borrowed. */
struct map_request {
	const char *path;
	const char *matrix; /* file with 16 numbers, row by row; NULL: none */
	enum map_unit unit; /* MAP_UNKNOWN: not stated */
	double kvp;	    /* tube voltage of HU, of which alone it may be stated; 0: not stated */
};

struct map_file {
	struct volume_file file;
	bool moved;	   /* by a matrix */
	bool of_scanner;   /* the place is one in the scanner, not in the patient */
	int n[3];	   /* columns, rows, slices: the axes of the file in an order in which the slices are most transverse */
	double corner[3];  /* centre of voxel (0, 0, 0), mm */
	double step[3][3]; /* from column to column, row to row, slice to slice, mm */
	size_t stride[3];  /* of the axes of the file in hu */
	enum map_unit unit;
	bool found; /* the unit is that which the values have */
	double kvp;
	/* [slice][row][column]: whole HU, or 10000 times the attenuation in 1/cm less 1000, as in a map from MR
	 * (dicom/object/ct_series.h): as fine as a Hounsfield unit. Owned; NULL: not read */
	int16_t *hu;
};

/* Read the header and the matrix. EBADMSG, ENOTSUP: they cannot be used; the text names the reason. */
int map_file_open(const struct map_request *r, struct map_file *ret, struct err *err);
size_t map_file_bytes(const struct map_file *m); /* that it needs while it is read */
/* Read the values. EBADMSG: values that are not finite, or in no unit, or another one than stated. */
int map_file_read(struct map_file *m, struct err *err);
void map_file_clear(struct map_file *m);

#endif
