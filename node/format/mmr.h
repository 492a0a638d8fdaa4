/* SPDX-License-Identifier: Apache-2.0 */
/* Raw data of the Siemens Biograph mMR: the text header, the words of the list mode, and the normalisation by components. Without
 * DICOM, which is in node/sinogram/sinogram_mmr.c.
 *
 * Sources: STIR (CListRecordECAT8_32bit.h, BinNormalisationFromECAT8.cxx, InterfileHeaderSiemens.cxx), NiftyPET (lmproc.cu,
 * norm.cu), pet-rd-tools (MMR.hpp), and published headers. No data of a real scanner were available: whatever these documents
 * say about a file is checked, and a file that contradicts them is refused.
 *
 * - The scanner has 64 rings of 504 detectors, numbered as in recon/pet/michelogram_pairs.h, but its rings are counted from the
 * depth of the gantry to the bed (mmr_ring(); docs/mmr.md has the evidence). Detectors c with c % 9 = 0 are gaps between blocks.
 * - A word of the list mode has 32 bits, little-endian. Bit 31 = 0: an event; bit 30 = 1: prompt, 0: delayed; bits 0 to 29: its
 *   bin, (plane 252 + view) 344 + radial bin, of a michelogram of span 1 with ring differences 0, -1, +1 ... -60, +60. Top bits
 *   100: a time mark, ms in bits 0 to 28. 101: singles of a bucket. 11100: gating, with the format in bits 24 to 26; of format 1,
 * bits 12 to 14 are the type and bits 0 to 9 the value: type 2, value 0: an R wave of the primary ECG; type 1, value 0: a
 * respiratory gate begins (odlpet, format32.py, which cites the PETLINK document; no other source was found). Other words are
 * skipped.
 * - The normalisation has 323404 bytes, float32, little-endian: geometric [127][344], interference [344][9], efficiencies
 *   [64][504], axial [837], dead time paralysing [64], not paralysing [64], of crystals [9], further axial [837]. The crystals'
 * dead time and the last are read, but not used; the dead time of rings only by mmr_norm_alive(). The 837 planes are those of
 * span 11, ring differences up to 60, segments 0, -1, +1 ... */
#ifndef TOMONODE_NODE_MMR_H
#define TOMONODE_NODE_MMR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "recon/pet/frames.h"
#include "recon/pet/gates.h"
#include "recon/pet/michelogram_pairs.h"

#define MMR_RINGS 64
#define MMR_DETECTORS 504
#define MMR_RADIAL 344
#define MMR_ANGLES 252
#define MMR_LARGEST 60	/* largest ring difference */
#define MMR_PLANES 4084 /* of span 1 */
#define MMR_BLOCK 9	/* detectors of a block, with its gap */
#define MMR_PLANE_BINS ((size_t)MMR_ANGLES * MMR_RADIAL)
#define MMR_NORM_BYTES 323404
#define MMR_SINGLES 8.0	   /* scale of the rates of singles */
#define MMR_TEXT_MAX 65536 /* largest header, bytes */

/* ---- the header ---- */

struct mmr_header {
	uint64_t words;	  /* of the list mode; 0: a header of a normalisation */
	double duration;  /* s; NaN: not in the header */
	double singles;	  /* scale of the rates of singles; MMR_SINGLES: not in the header */
	double energy[2]; /* lower and upper level of the energy window, keV; NaN: not in the header */
	/* Bq s / ECAT count, and its correction; NaN: not in the header; 0: not a number above 0 */
	double quantification, cross_calibration;
	char position[5];    /* HFS, ...; "": not in the header */
	char data_file[256]; /* name as written in the header; "": not in it */
};

/* Read the text of a header. It may end in bytes 0; its lines may end in CR CR LF. EBADMSG: it is not the header of these data,
 * or contradicts them; ENOTSUP: another scanner or a form that is not supported. The text names line, key and value. */
int mmr_header_read_list(const char *text, size_t size, struct mmr_header *ret, struct err *err);
int mmr_header_read_norm(const char *text, size_t size, struct mmr_header *ret, struct err *err);
/* Read only the name of the data, of either header. */
int mmr_header_read_name(const char *text, size_t size, struct mmr_header *ret, struct err *err);

/* Return the number of a ring along +z, given that of the scanner's files, and the reverse. Everything below, but the text and
 * the words, has rings along +z. */
static inline int mmr_ring(int ring)
{
	return MMR_RINGS - 1 - ring;
}

/* Is crystal c of each ring a gap between blocks? */
bool mmr_is_gap(int c);

/* Check that a michelogram has the detectors and bins of this scanner. ENOTSUP: the message says what differs. */
int mmr_check_michelogram(const struct michelogram *m, struct err *err);

/* ---- list mode ---- */

struct mmr_list_report {
	uint64_t words, prompts, delayeds, singles, marks, skipped;
	uint64_t outside; /* counted events of ring differences that the michelogram does not have */
	uint64_t between; /* other counted events that are not in the frame, or not in any gate */
	long first, last; /* ms, of the first and the last time mark; -1: none */
};

struct mmr_list {
	int32_t plane[MMR_PLANES];   /* plane of the michelogram; -1: none */
	uint8_t ring[MMR_PLANES][2]; /* of the first and of the second end */
	bool delayed;		     /* delayed coincidences are counted instead of prompts; after mmr_list_begin(): not */
	struct pet_frame frame;	     /* only prompts in this frame are counted; after mmr_list_begin(): all */
	/* only prompts in this gate are counted; NULL: all, after mmr_list_begin(). Borrowed */
	const struct pet_gates *gates;
	int gate;
	int now;      /* gate of the last time mark; -1: none */
	size_t cycle; /* of the last time mark */
	struct mmr_list_report report;
};

/* Prepare to count events into the bins of m, of any span (mmr_check_michelogram()). */
int mmr_list_begin(const struct michelogram *m, struct mmr_list *ret, struct err *err);
/* Count the events of the next n words: counts[plane][angle][radial]. EBADMSG: a bin that does not exist, or a time mark that is
 * earlier than the one before; the text has the number of the word. */
int mmr_list_add(struct mmr_list *l, const uint8_t *words, size_t n, uint32_t *counts, struct err *err);

/* A prompt. Detectors are numbered 504 ring + crystal; the first one is that of the first end. */
struct mmr_event {
	int32_t detector[2];
	uint32_t bin; /* of the michelogram: [plane][angle][radial] */
	uint32_t ms;  /* time, as below */
};
/* Convert the next n words to events; ret: room for n. Prompts of ring differences that the michelogram does not have are only
 * counted. The frame of l is not used. Errors as mmr_list_add(). */
int mmr_list_events(struct mmr_list *l, const uint8_t *words, size_t n, struct mmr_event *ret, size_t *ret_n, struct err *err);

/* Time of an event: that of the last time mark before it minus that of the first time mark, ms; before the first one 0. Return
 * how many of the next n words come before the end of the frame: those before the first time mark at or after its end. */
size_t mmr_list_in_frame(const struct mmr_list *l, const uint8_t *words, size_t n);

/* Choose a gate; before the first mmr_list_add(). */
void mmr_list_choose_gate(struct mmr_list *l, const struct pet_gates *gates, int gate);

/* The gating words of a list, read in pieces. */
struct mmr_marks {
	enum pet_signal signal; /* PET_SIGNAL_ECG, PET_SIGNAL_RESP */
	long first, last;	/* ms: of the time marks of the list; -1: none. Set both to -1 at the beginning */
	uint64_t words;		/* so far */
	struct pet_marks marks; /* ms since the first time mark; words of the same time are one mark */
};
/* Add those of the next n words. EBADMSG: a time mark that is earlier than the one before, or too many gating words; the text has
 * the number of the word. */
int mmr_marks_add(struct mmr_marks *m, const uint8_t *words, size_t n, struct err *err);

/* ---- dead time ---- */

#define MMR_BUCKETS 224 /* blocks of 18 detectors and 8 rings: bucket detector / 18 + 28 (ring / 8) */

/* The rates of the singles of each bucket: bits 19 to 28 of a word are the bucket, bits 0 to 18 times the scale of the header its
 * rate, 1/s (NiftyPET, hst.cu). Words of buckets that do not exist are skipped. */
struct mmr_singles {
	double scale;
	struct pet_frame frame; /* only words in this time, see mmr_list_in_frame(), are used */
	long first, last;	/* ms, of the time marks so far; -1: none */
	double sum[MMR_BUCKETS];
	uint64_t n[MMR_BUCKETS];
};
void mmr_singles_begin(struct mmr_singles *s, const struct pet_frame *frame, double scale); /* NULL: all words */
void mmr_singles_add(struct mmr_singles *s, const uint8_t *words, size_t n);

/* ---- single words ---- */

/* Make the segments of the bins of events, of one ring difference each: 0, +1, -1 ... The caller frees *ret. */
int mmr_event_segments(struct michelogram_segment **ret, int *ret_n, struct err *err);
/* Read word i; the bin of an event is one of the michelogram of mmr_event_segments(). EBADMSG: it does not exist. */
int mmr_word_read(const uint8_t *words, size_t i, struct pet_entry *ret, struct err *err);

/* ---- normalisation ---- */

struct mmr_norm; /* immutable; threads may share it */

/* EBADMSG: a wrong size, or a factor that is not a number or out of range; the text names it. */
int mmr_norm_read(const uint8_t *bytes, size_t size, struct mmr_norm **ret, struct err *err);
struct mmr_norm *mmr_norm_free(struct mmr_norm *n); /* accepts NULL; returns NULL */

/* Compute the detection efficiency of the bins of a plane of m, [angle][radial]: the sum over its ring pairs of the efficiencies
 * of both detectors, times geometric, divided by axial factors, times interference. 0: a gap. */
struct michelogram_index;
void mmr_norm_plane(const struct mmr_norm *n, const struct michelogram_index *x, int plane, float *ret);

/* Compute the fraction of the time that each detector is able to count, ret[ring][detector]: with b the mean rate of the singles
 * of its bucket, and p and n the parameters of its ring (paralysing and not paralysing dead time, s)
 *
 *   exp(b p / 2 / (1 + b n / 2)) / (1 + b n / 2)
 *
 * (NiftyPET, norm.cu; p is negative in a public normalisation, -1.116e-6 s, with n = 4.9e-13 s.) 1 without singles. It was not compared with data of a scanner.
 * EDOM: a bucket has no word, or a fraction is not above 0 and at most 1, so that this cannot be the meaning of the parameters.
 */
int mmr_norm_alive(const struct mmr_norm *n, const struct mmr_singles *s, double *ret, struct err *err);

#endif
