/* SPDX-License-Identifier: Apache-2.0 */
/* Read and write Interfile 3.3 headers of PET projection data, single events and images, in the form that STIR writes, and
 * convert their data. Line integrals (docs/sinogram-object.md) have headers of the same syntax; each type of header has keys of
 * its own.
 *
 * A header is untrusted text: it is parsed with limits, and every error names the key, the value and the line. Upper and lower
 * case, spaces and '!' are ignored in keys, and so are keys that have no effect on the numbers. Data are read and written in
 * pieces. This module does not use DICOM. In memory, projection data have the order of recon/pet/michelogram.h, with the header's
 * own order of segments and rings along +z; files number rings as STIR does, from the depth of the gantry to the bed. Images are
 * stored x fastest; line integrals are stored as data[slice][angle][radial], intensities as data[slice][frame][radial].
 *
 * Time of flight: a TOF bin of a file has STIR's timing index k (docs/sinogram-object.md, "Time of flight"); k > 0 is nearer to
 * the second end of the ray. In memory TOF bins ascend towards the first end, so their order is reversed: bin k of n is number n
 * - 1 - (k + n / 2) in memory (integer division).
 */
#ifndef TOMONODE_NODE_INTERFILE_H
#define TOMONODE_NODE_INTERFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "node/config/kinds.h"
#include "recon/parallel/parallel_flat.h"
#include "recon/pet/michelogram.h"

#define INTERFILE_TEXT_MAX (512 << 10) /* maximum size of a header, bytes: 16384 angles of 17 digits */
#define INTERFILE_UNIT_SIZE 33
#define INTERFILE_ATTENUATION "1/mm" /* unit of line integrals if the header has none */
#define INTERFILE_NOTES 800
#define INTERFILE_MMR "Biograph mMR" /* `scanner` of a sub-header of Siemens whose originating system is 2008 */
/* Said of every result of raw data of Siemens: docs/sinogram-object.md, "Axes, angles, planes", has the evidence. */
#define INTERFILE_SIEMENS_RINGS                                                                                                  \
	"The first ring of Siemens is assumed to be the one furthest from the bed: compare head and feet with the scanner's "    \
	"own image."

/* X(CONSTANT, name): defines INTERFILE_CONSTANT and requires the table interfile_name. */
#define INTERFILE_KINDS(X)                                                                                                       \
	X(PROJECTIONS, projections)                                                                                              \
	X(IMAGE, image)                                                                                                          \
	X(SINGLES, singles)                                                                                                      \
	LINE_KINDS(X)

enum interfile_kind {
	INTERFILE_NONE,
#define X(constant, name) INTERFILE_##constant,
	INTERFILE_KINDS(X)
#undef X
		INTERFILE_KIND_COUNT
};
enum interfile_number { INTERFILE_SIGNED = 1, INTERFILE_UNSIGNED, INTERFILE_FLOAT };
/* Lengths that messages quote in the unit of the header. */
enum interfile_length { INTERFILE_CENTRAL_BIN = 1, INTERFILE_DEFAULT_BIN = 2, INTERFILE_DIAMETER = 4, INTERFILE_DEPTH = 8 };
/* Order of the axes of projection data, slowest first. */
enum interfile_order {
	INTERFILE_BY_VIEW = 1, /* segment, view, axial, tangential */
	INTERFILE_BY_PLANE     /* segment, axial, view, tangential */
};

/* Of SINGLES: values[ring][detector], each of a block of neighbouring detectors of the scanner; detectors are numbered as in
 * recon/pet/michelogram_pairs.h, rings of the file from the depth of the gantry; blocks begin at its ring 0 and at detector 0. */
struct interfile_singles {
	int blocks[2]; /* number of values along a ring, along the axis */
	int block[2];  /* detectors of a block along a ring, rings of a block */
	bool rates;    /* values are mean rates, 1/s; else counts */
	double window; /* both halves of the coincidence window, s */
};

/* What was injected. NaN, NULL or "": not in the header. */
struct interfile_tracer {
	const struct nuclide *nuclide; /* NULL also if it is not one of node/base/nuclides.h */
	double half_life;	       /* s; that of the nuclide, if the header has only its name */
	double branching;	       /* fraction of the decays that emit a positron */
	double dose, volume;	       /* Bq at the time of injection, ml */
	char injected[27];	       /* time of injection, DT of DICOM: with the offset from UTC where the header has it */
	char drug[65];
};

struct interfile {
	enum interfile_kind kind;
	char data_file[256]; /* name as written in the header */
	enum interfile_number number;
	int bytes; /* bytes of one value: 1, 2, 4 or 8; of floats 4 or 8 */
	bool big_endian;
	bool order_stated; /* the header has "imagedata byte order"; else it is big-endian (Interfile 3.3) */
	uint64_t offset;   /* start of the data in the file, bytes */
	double scale;	   /* value = stored * scale */
	/* of PROJECTIONS */
	enum interfile_order order;
	struct michelogram m;		    /* unknown numbers of the scanner and of TOF bins are 0, an unknown angle is NaN: see
					       interfile_complete() */
	bool siemens;			    /* a sub-header of Siemens, see interfile_siemens.c */
	bool more_data;			    /* other types of data follow the values in the data file */
	uint64_t randoms;		    /* where those of the type "randoms" begin in it; 0: there are none */
	bool tof_listed;		    /* tof_bin is valid; else TOF bins are stored with k ascending */
	short tof_bin[MICHELOGRAM_TOF_MAX]; /* [stored TOF bin]: its number in memory */
	bool no_differences;		    /* the header has no ring differences: those of m's segments are not valid yet */
	bool precorrected;		    /* "applied corrections" names more than arc correction */
	char corrections[256];		    /* these corrections, separated by "," */
	char scanner[64];		    /* "scanner type"; "": none */
	double central_bin, default_bin;    /* mm: "effective central bin size", "default bin size"; 0: not in the header */
	unsigned in_mm;			    /* enum interfile_length: the header has these in mm, not in cm */
	/* keV; percent of 511 keV, full width at half maximum; 0: not in the header, or several windows */
	double energy_low, energy_high, energy_resolution;
	/* of IMAGE: number of voxels, spacing in mm, position of the centre of the first voxel in mm (if missing: x and y centred
	 * as in STIR, z 0; there z counts from where the middle of the slices is in the middle of the scanner) */
	int n[3];
	double spacing[3], first[3];
	/* of IMAGE: "$origin offset (mm)" is there: a map of the table or coils of an mMR, whose place in the scanner depends on the
	 * position of the table (NiftyPET, mmrimg.py: get_hmupos()), which is not in the header */
	bool of_table;
	struct interfile_singles singles; /* of SINGLES */
					  /* of line integrals: the scan, and the unit of the quantity that was integrated */
#define X(constant, name) struct name##_scan name; /* only the member of its kind is used; f owns the arrays in it */
	LINE_KINDS(X)
#undef X
	char unit[INTERFILE_UNIT_SIZE]; /* of IMAGE: "quantification units" as a word, 1/cm; "": none */
	struct parallel_frames frames;	/* of PARALLEL: with runs the values are intensities [slice][frame][radial] */
	char data_type[24];		/* "PET data type" in normalised form, such as "emission"; "": none */
	char notes[INTERFILE_NOTES];	/* sentences about what is assumed or doubtful in the header; "": none */
	/* of all kinds; NaN or "": not in the header */
	double duration, start;	 /* s; start counts from the start of the study */
	int duration_line;	 /* line of the duration in the header */
	char date[9], time[7];	 /* of the study, YYYYMMDD and HHMMSS */
	char zone[6];		 /* offset of both from UTC, +HHMM */
	char position[5];	 /* HFS, ...: "patient orientation" and "patient rotation"; "": not both are known */
	char enters[3], lies[3]; /* the parts of the position that are known: "HF", "FF"; "S", "P", "DR", "DL" */
	bool other_position;	 /* one of both is "other": none of these positions */
	struct interfile_tracer tracer;
};

/* A kind of header: its names, and how its own keys and data are read and written. Each has a table in interfile_NAME.c. */
struct interfile_parser; /* node/format/interfile_internal.h */
struct interfile_writer;
struct interfile_type {
	const char *id;		  /* identifier of the format in sinogram objects; NULL: not stored in objects */
	const char *title;	  /* name of the data within a sentence: "PET", "parallel beams" */
	const char *modality;	  /* value of "imaging modality" and of (0008,0060) */
	const char *data_type;	  /* value of "type of data"; a header without this key has the data type of the first kind */
	const char *pet_data;	  /* value of "PET data type", in normalised form; NULL: any value that no other kind has */
	const char *general_keys; /* lines to write before "type of data" */
	const char *study_keys;	  /* lines to write after "imagedata byte order"; may be "" */
	int (*read)(struct interfile_parser *p);
	void (*write)(struct interfile_writer *w, const struct interfile *f);
	void (*clear)(struct interfile *f); /* free the arrays; NULL: there are none */
	void (*shape)(const struct interfile *f, size_t *ret_planes, size_t *ret_values); /* see interfile_shape() */
	void (*extent)(const struct interfile *f, char *ret_text, size_t size);
	/* Convert one plane; bytes: the first byte of all values. NULL: not needed for this kind. */
	void (*plane)(const struct interfile *f, const uint8_t *bytes, size_t plane, float *ret_values);
};

#define X(constant, name) extern const struct interfile_type interfile_##name;
INTERFILE_KINDS(X)
#undef X
const struct interfile_type *interfile_type(enum interfile_kind kind); /* NULL: INTERFILE_NONE */

/* Parse a header. Errors: EBADMSG (invalid), ENOTSUP (a form that is not supported); the text names the problem and the line. */
int interfile_parse(const char *text, size_t size, struct interfile *ret, struct err *err);
/* Read only what the header of any data says about their exam: duration, start, position, tracer. Errors as above. */
int interfile_parse_exam(const char *text, size_t size, struct interfile *ret, struct err *err);
void interfile_clear(struct interfile *f); /* free the memory that f owns */

/* PROJECTIONS: fill in what the header does not contain from the scanner's configuration (NULL: none) and check everything.
 * Errors: ENOKEY (a value is unknown; the text names it), EBADMSG (planes, bins or a size of bins that this scanner cannot have).
 * On error f is unchanged. */
struct scanner_conf;
int interfile_complete(struct interfile *f, const struct scanner_conf *known, struct err *err);

/* EBADMSG: the header states another distance of rings than the scanner that its "scanner type" names (NULL: none is known). */
int interfile_check_scanner(const struct interfile *f, const struct scanner_conf *named, struct err *err);

/* Check that two completed headers describe the same rays in the same order; TOF bins are not compared. EBADMSG: they differ; the
 * text names the first difference. */
int interfile_same_rays(const struct interfile *a, const struct interfile *b, struct err *err);
/* Check that two completed headers have the same TOF bins, which may be stored in different orders. EBADMSG as above. */
int interfile_same_tof(const struct interfile *a, const struct interfile *b, struct err *err);

/* Return the number of planes, those of all TOF bins together (of line integrals and images: slices; of singles: rows), and the
 * number of values of one plane. */
void interfile_shape(const struct interfile *f, size_t *ret_planes, size_t *ret_values);
/* Return the size of all values in bytes, without the offset. */
uint64_t interfile_bytes(const struct interfile *f);

/* Find the data file of the header at this path: a name that stays in the header's folder or below it. *ret_path is
 * allocated, also after an error; ret_bytes: offset and values. EBADMSG: it is not there, or has another size; ENOTSUP: a
 * name elsewhere. */
int interfile_find_data(const struct interfile *f, const char *header, char **ret_path, uint64_t *ret_bytes, struct err *err);
/* Does a name stay below the folder that it is relative to? No part of it is hidden or goes up. A header may come from elsewhere:
 * it must not make this program read, and send on, a file that nobody named. */
bool interfile_stays_in_folder(const char *name);

/* Return the header text with another name of the data file; the caller frees *ret_text. EBADMSG: the header names no data file.
 */
int interfile_rename_data(const char *text, const char *data_file, char **ret_text, struct err *err);

/* Write the extent of the data as text: "47 planes, 280 angles, 329 radial bins of 4 bytes". */
void interfile_extent(const struct interfile *f, char *ret_text, size_t size);

/* Convert one plane to floats [angle][radial]. plane: its index in the order in memory: plane p of TOF bin k is number k
 * michelogram_planes() + p, k in the order in memory; of line integrals, the slice; of singles, the row of blocks along +z.
 * bytes: the whole data file from its first byte; the offset is added. Threads may share f and bytes. */
void interfile_plane(const struct interfile *f, const uint8_t *bytes, size_t plane, float *ret_values);

/* What sampled values that are not 0 are in both byte orders: [0] that of the header, [1] the other one. */
struct interfile_sample {
	size_t there;
	size_t strange[2];  /* values that do not occur */
	size_t usual[2];    /* floats of counts and factors */
	size_t mantissa[2]; /* with more than the first byte: whole numbers below 256 in the other order have only this */
	size_t small[2];    /* integers that would be denormal floats */
	size_t plain;	    /* floats about 1, in the order of the header */
	double example;	    /* a strange value in the order of the header */
};

/* Check that the values are not impossible in the byte order of f while they are usual in the other one. Looks at a sample of at
 * most a million values. EBADMSG: the text names the key, its value and the other order. */
int interfile_check_order(const struct interfile *f, const uint8_t *bytes, struct err *err);
/* The same in groups: add n values from number `first` on, whose bytes are given; then check. */
void interfile_sample_add(const struct interfile *f, const uint8_t *bytes, size_t first, size_t n, struct interfile_sample *o);
int interfile_sample_check(const struct interfile *f, const struct interfile_sample *o, struct err *err);

/* Check the header of data that belong to projections of Siemens (normalisation, randoms, scatter): what it contains must agree
 * with float values data[TOF bin][plane][angle][radial bin]. It may have none of these keys. side: the sizes of the axes, the
 * fastest first; 0: any. */
int interfile_companion(const char *text, size_t size, const int side[4], bool *ret_big_endian, struct err *err);

/* PROJECTIONS: state that the TOF bins are stored in STIR's order, with k ascending. */
void interfile_tof_ascending(struct interfile *f);
/* Return the place in a file of a plane of PROJECTIONS, given by its number in the order in memory (as interfile_plane()), and
 * the reverse: files that this program writes are INTERFILE_BY_PLANE, with rings and TOF bins in STIR's order. */
size_t interfile_place(const struct michelogram *m, size_t plane);
/* Write the order of the stored TOF bins as text, in the numbers of "TOF bin order" in headers: "-16, -15 ... 16"; "" without
 * time of flight. The end to which k = -16 belongs is that of STIR. */
void interfile_tof_text(const struct interfile *f, char *ret, size_t size);

/* SINGLES: check that the values are those of the detectors of this scanner; EBADMSG. */
int interfile_singles_check(const struct interfile *f, const struct pet_scanner *scanner, struct err *err);
/* SINGLES: give each detector its share of the value of its block: ret[ring][detector], in the unit of the header. bytes: the
 * whole data file. ret_sum: of all. EBADMSG: a value that is negative or not finite; the text has its place. */
int interfile_singles_expand(const struct interfile *f, const uint8_t *bytes, double *ret, double *ret_sum, struct err *err);

/* Create the header text that describes f: type, byte order, offset, scale, geometry. The caller frees *ret_text. For
 * little-endian float32 set number INTERFILE_FLOAT, bytes 4, offset 0, scale 1. A duration or start of 0 or NaN is omitted. */
int interfile_write(const struct interfile *f, char **ret_text, struct err *err);

#endif
