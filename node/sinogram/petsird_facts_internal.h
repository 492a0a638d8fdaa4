/* SPDX-License-Identifier: Apache-2.0 */
/* What a PETSIRD file says about scanner and examination, for its histogram (petsird_import.c) and for its events
 * (petsird_list.c). Private to this folder. */
#ifndef TOMONODE_NODE_PETSIRD_FACTS_INTERNAL_H
#define TOMONODE_NODE_PETSIRD_FACTS_INTERNAL_H

#include "kernels/geometry.h"
#include "node/format/petsird.h"
#include "node/sinogram/sinogram.h"
#include "recon/pet/cylinder.h"
#include "recon/pet/frames.h"
#include "recon/pet/michelogram_pairs.h"

#define PETSIRD_SET_SIZE 64
#define PETSIRD_SET_MAX 3

/* Return what was said about the file, or PETSIRD_IMPORT. */
const struct petsird_import *petsird_options(const struct sinogram_import *conf);
/* Say how the axes of a file are taken. */
void petsird_axes_text(const struct sinogram_import *conf, char *ret, size_t size);

/* Copy the positions of the detectors in the axes of the scanner. axes: see struct petsird_import. The caller frees *ret. EINVAL:
 * the axes are not a rotation. */
int petsird_positions(const struct petsird_header *h, const char *axes, float (**ret)[3], struct err *err);

/* Find the TOF bins that all pairs of module types share; ret->n = 0: there are none, or `none` is true. They ascend towards the
 * second detector of an event, unlike those of struct scan_tof. ENOTSUP: they differ, or are not equidistant about 0. */
int petsird_find_tof(const struct petsird_header *h, bool none, struct scan_tof *ret, struct err *err);

/* Return the sum of the efficiencies of two detectors over their energies, without the calibration factor; 0 for a detector
 * below 0. */
double petsird_pair_efficiency(const struct petsird *p, int32_t first, int32_t second);

/* Return the sum over the ring pairs of a plane (michelogram_plane_rings()) for a bin of a michelogram of all views. */
double petsird_bin_efficiency(const struct petsird *p, const struct pet_cylinder *c, const struct michelogram_index *x,
			      const struct michelogram_rings *r, int angle, int radial);

/* Check that the time blocks of prompts are in a frame as a whole, outside, or short: events have no time but that of their
 * block. *block: start of the last block that was checked; -1: none. ENOTSUP. */
int petsird_check_frames(const struct petsird *p, const struct pet_images *frames, const struct petsird_event *events, size_t n,
			 int64_t *block, struct err *err);

/* petsird_import.c: struct pet_source.import. Errors: EBADMSG, ENOTSUP (no regular cylinder, TOF bins that are not equidistant, a
 * bed or gantry that moves, gates shorter than the time blocks), EINVAL (an option), ENOMEM. */
struct import_report;
int petsird_import(const char *path, const struct sinogram_import *conf, struct import_report *ret, struct err *err);

/* Return the span of the segments: every ring pair of a few rings has its own plane. */
int petsird_span(int rings);

/* Check that neither the bed nor the gantry moved, after the events were read. ENOTSUP. */
int petsird_check_still(const struct petsird *p, struct err *err);

struct petsird_said { /* what conf borrows */
	struct sinogram_said said;
	char text[PETSIRD_SET_MAX][PETSIRD_SET_SIZE];
	char **set; /* the caller frees it, also after an error */
};
/* Tell conf what the file says about scanner and examination, after the events were read: attributes, duration, weight and size,
 * come before those of conf, which replace them. duration: another one, as --set has it; NULL: none. */
int petsird_say(const struct petsird *p, const char *duration, struct petsird_said *ret, struct sinogram_import *conf,
		struct err *err);

/* Append sentences about what is not used, after the events were read. delayeds: they are used. */
void petsird_warn(const struct petsird *p, bool delayeds, char *warnings, size_t size);
/* Append a sentence if more than a hundredth of a time frame or a gate is without event blocks. */
void petsird_warn_gaps(const struct petsird *p, const struct pet_images *images, char *warnings, size_t size);

#endif
