/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `tomonode import` and `tomonode recon` that say how files that are not DICOM are taken, in the order of the forms
 * that they are of (node/sinogram/pet_source.h). */
#ifndef TOMONODE_NODE_SOURCE_OPTIONS_H
#define TOMONODE_NODE_SOURCE_OPTIONS_H

#include "node/options/options.h"
#include "node/reconstruct/reconstruct.h"
#include "node/sinogram/sinogram.h"
#include "recon/pet/gates.h"

#define SOURCE_SET_MAX 200

struct source_options {
	struct sinogram_import conf; /* header of the roles, like, set, petsird; the rest is the command's */
	struct petsird_import petsird;
	char *set[SOURCE_SET_MAX];
	int n_maps;
	struct map_request map[CASE_MAPS_MOST]; /* point into map_text */
	char *map_text[CASE_MAPS_MOST];		/* owned */
};

enum { SOURCE_MAP = OPTION_LONG + 99, SOURCE_SET = OPTION_LONG + 100, SOURCE_ROLE /* + enum sinogram_role */ };

/* Rows of struct option_spec; m: the struct source_options in a struct s. */
#define SOURCE_OPTIONS(s, m)                                                                                                      \
	{0, "like", "FILE.dcm",                                                                                                   \
	 "of files that are not DICOM: copy patient, study, frame of reference and scanner from this file, and\nif it is of PET " \
	 "the times and the tracer that the data lack; default: anonymous, a new study",                                          \
	 INTO_TEXT(s, m.conf.like)},                                                                                              \
		{SOURCE_SET, "attribute", "KEYWORD=VALUE",                                                                        \
		 "of files that are not DICOM: set an attribute, by keyword or as gggg,eeee=VALUE; may be repeated"},             \
		{SOURCE_ROLE + SINOGRAM_MULTIPLICATIVE, "multiplicative", "F.hs",                                                 \
		 "of an Interfile: factors m of the model y = m (A x) + b, with counts y and activity x: a fraction"},            \
		{SOURCE_ROLE + SINOGRAM_ADDITIVE, "additive", "F.hs",                                                             \
		 "of an Interfile: background b of this model: expected randoms and scatter, in counts; b / m (additive\n"        \
		 "sinogram of STIR) if its header lists attenuation and normalisation as applied corrections"},                   \
		{SOURCE_ROLE + SINOGRAM_ATTENUATION, "attenuation", "F.hs",                                                       \
		 "of an Interfile: attenuation correction factors, 1 or more (measured ones with noise)"},                        \
		{SOURCE_ROLE + SINOGRAM_NORMALISATION, "normalisation", "F.hs",                                                   \
		 "of an Interfile: normalisation correction factors, above 0"},                                                   \
		{SOURCE_ROLE + SINOGRAM_DELAYEDS, "delayeds", "F.hs",                                                             \
		 "of an Interfile: delayed coincidences, in counts, without TOF bins: for randoms made by the protocol's\n"       \
		 "corrections"},                                                                                                  \
		{SOURCE_ROLE + SINOGRAM_SINGLES, "singles", "F.hs",                                                               \
		 "of an Interfile: single events of the detectors (docs/sinogram-object.md), for the same randoms where\n"        \
		 "there are no delayed coincidences"},                                                                            \
		{0, "axes", "X,Y,Z",                                                                                              \
		 "of a PETSIRD file: its axes that are x, y, z of the scanner (docs/petsird.md); default x,y,z",                  \
		 INTO_TEXT(s, m.petsird.axes)},                                                                                   \
	{                                                                                                                         \
		0, "no-tof", NULL, "of a PETSIRD file: without time of flight, all TOF bins added", INTO_ON(s, m.petsird.no_tof)  \
	}

/* The row of --map FILE[,unit=UNIT][,matrix=FILE][,kvp=KV], of commands that reconstruct. */
#define SOURCE_MAP_OPTION                                                                                                               \
	{                                                                                                                               \
		SOURCE_MAP, "map", "FILE[,unit=U]...",                                                                                  \
			"of PET: the attenuation is that of this image, NIfTI, MetaImage or Interfile; repeated: added to it (table,\n" \
			"coils). unit=1/cm, 1/mm, 10000/cm or HU, matrix=FILE, kvp=KV (docs/sinogram-object.md)"                        \
	}

/* Connect the parts, before the options are read. */
void source_options_begin(struct source_options *s);
void source_options_clear(struct source_options *s);
/* Store the value of an option with an id of this file. Returns CODE_OK, or an exit code after a message. */
int source_options_take(const struct options *o, int id, struct source_options *s);

/* ---- --bed of `tomonode import`: HEADER.hs,z=MM[,start=S][,duration=S][,ROLE=F.hs]... ---- */

struct bed_options {
	int n; /* 0: not given */
	struct sinogram_import_bed bed[PET_BEDS_MAX];
	char *text[PET_BEDS_MAX]; /* what the headers point into; owned */
};

/* Add the bed that the value of the option describes. Returns CODE_OK, or an exit code after a message. */
int bed_options_add(const struct options *o, struct bed_options *b);
void bed_options_clear(struct bed_options *b);

/* ---- --gates, --marks, --gate-cycle ---- */

struct gate_options {
	int gates;	   /* 0: not given */
	const char *marks; /* name of a signal, or of a file with a table; NULL: not given */
	const char *cycle; /* NULL: not given */
};

/* Check the options together, and read the table if there is one. without: option that cannot be given with gates, NULL: it is
 * not. Returns CODE_OK or an exit code after a message; then *ret has nothing to free. Else pet_marks_clear(&ret->marks). */
int gate_options_read(const struct options *o, const struct gate_options *given, const char *without, struct pet_gates *ret);

#endif
