/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for the kinds of Interfile headers (struct interfile_type). Private to node/format/interfile*.c. */
#ifndef TOMONODE_NODE_INTERFILE_INTERNAL_H
#define TOMONODE_NODE_INTERFILE_INTERNAL_H

#include "node/config/config.h"
#include "node/format/interfile.h"
#include "node/format/interfile_lines.h"

#define INTERFILE_SIDE_MAX 65535
#define INTERFILE_TINY 1e-9
#define INTERFILE_LENGTH_MAX 20000.0 /* mm */

/* ---- reading: interfile_parse.c ---- */

struct interfile_writer;
struct interfile_parser {
	struct interfile_lines lines;
	struct interfile *f; /* number format, byte order and study are already set when interfile_type.read() is called */
	struct err *err;
};

/* Read a value in normalised form. 1: found; 0: missing, *ret is ""; EBADMSG as interfile_line_find(). */
int interfile_word(const struct interfile_parser *p, const char *key, int index, char *ret, size_t size,
		   const struct interfile_line **ret_line);
/* Read "matrix size [k]", which must be present. EBADMSG: it is missing, or not an integer from 1 to `most`. */
int interfile_side(struct interfile_parser *p, int k, int most, int *ret);
/* Read the number of dimensions, which must be present. ENOTSUP: it is not from lo to hi; have: "an image has 3". */
int interfile_dimensions(const struct interfile_parser *p, int lo, int hi, const char *have, int *ret);
/* Append the label of axis k to the message of an error in its matrix size, because the labels may be exchanged. Return rc. */
int interfile_add_label(const struct interfile_parser *p, int k, int rc);
/* Read the unit of line integrals: a word that is valid in DICOM (LO) and in a header. */
int interfile_unit(struct interfile_parser *p);
/* Return the error `code` for a value that is not one of `allowed`; the text names the line, the key and the value. */
int interfile_unsupported(const struct interfile_parser *p, const struct interfile_line *line, int code, const char *allowed);
/* Append a sentence to f->notes, unless they have it. */
void interfile_note(struct interfile *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Find the time of day whose key has its offset from UTC, "study time (hh:mm:ss GMT+01:00)": ret_zone "+0100". 1: found; 0: it is
 * missing; EBADMSG: another offset. */
int interfile_zoned_time(const struct interfile_parser *p, const char *key, const struct interfile_line **ret_line,
			 char ret_zone[6]);
/* Join "2026:06:01" and "10:20:30" to YYYYMMDDHHMMSS. False: not a day, or not a time of day. */
bool interfile_moment(const char *date, const char *time, char ret[15]);
/* Return EBADMSG for a missing key. */
int interfile_missing(const struct interfile_parser *p, const char *key);

/* Read "applied corrections": of f, m.arc_corrected, corrections and precorrected. */
int interfile_corrections(struct interfile_parser *p);
/* Count rings from the other end: those of a file and those in memory. */
void interfile_reverse_rings(struct michelogram *m);

/* ---- patient and tracer: interfile_patient.c ---- */

/* Read position, enters, lies and other_position. EBADMSG: a word that is not known, or two that contradict each other. */
int interfile_read_position(struct interfile_parser *p);
/* Read the tracer; notes for what is in the header and not used. EBADMSG: the half-life is not that of the nuclide. */
int interfile_read_tracer(struct interfile_parser *p);

/* ---- keys of manufacturers: interfile_siemens.c ---- */

/* Return true for a sub-header of Siemens, which has the key "%SMS-MI version number". */
bool interfile_is_siemens(const struct interfile_lines *l);
/* ENOTSUP: the data are compressed; or, in other headers than those of Siemens, a key that begins with '%' is not known to be
 * without effect on the data. The text names line, key and value. */
int interfile_vendor_check(const struct interfile_lines *l, struct err *err);

/* ---- contradictions of projections, energy window: interfile_check.c ---- */

/* Check the size of the bins that the header states against the detectors of m, which is complete; a small difference becomes a
 * note. EBADMSG: the image would have another size; the text names keys and values. */
int interfile_check_bins(struct interfile *f, const struct michelogram *m, struct err *err);
/* EBADMSG: the distance of the rings of a complete michelogram is in another unit; the text has value and range. */
int interfile_check_rings(const struct interfile *f, const struct michelogram *m, struct err *err);
/* EBADMSG: two segments overlap with opposite signs, and are not opposite. */
int interfile_check_mirrors(const struct michelogram *m, struct err *err);
/* Read "Scanner geometry": ENOTSUP where the detectors are not on a cylinder or on blocks around it. */
int interfile_read_shape(struct interfile_parser *p);
/* Read the energy window and the energy resolution. */
int interfile_read_energy(struct interfile_parser *p);

/* ---- projections of Siemens: interfile_siemens.c ---- */

/* Read the keys of projection data of a Siemens sub-header. */
int interfile_siemens_read(struct interfile_parser *p);

/* ---- time of flight: interfile_tof.c ---- */

/* Read the keys of the TOF bins, n in number. */
int interfile_tof_read(struct interfile_parser *p, int n);
void interfile_tof_write(struct interfile_writer *w, const struct interfile *f);
/* Fill in what the header does not have from the scanner (NULL: none). */
int interfile_tof_complete(struct michelogram *m, const struct scanner_conf *known, struct err *err);
/* Check that the TOF bins of a complete michelogram reach as far as its rays; EBADMSG names the keys. */
int interfile_tof_check(const struct michelogram *m, struct err *err);
/* Store the numbers in memory of TOF bins that are stored with the timing indices k (each once). EBADMSG: they are not. */
int interfile_tof_order(struct interfile *f, const int *k, int n, struct err *err);
/* Return the stored TOF bin that is number `bin` in memory. */
size_t interfile_tof_stored(const struct interfile *f, size_t bin);

/* ---- converting: interfile.c ---- */

/* Convert n stored values to floats. */
void interfile_convert(const struct interfile *f, const uint8_t *p, size_t n, float *ret);

/* ---- writing: interfile_write.c ---- */

struct interfile_writer {
	char *text;
	size_t n, size;
	bool full; /* the text did not fit into `size` */
};

void interfile_put(struct interfile_writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Write a number with as many digits as are needed to read the same double again. */
void interfile_put_digits(struct interfile_writer *w, double v);
void interfile_put_number(struct interfile_writer *w, const char *key, double v); /* "key := v" and a line end */

#endif
