/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a result among those of the same instances: several protocols, and results that a person had made again. */
#ifndef TOMONODE_DICOM_RESULT_PLACE_H
#define TOMONODE_DICOM_RESULT_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dicom/core/dataset.h"

/* The kind of algorithm by which a volume was computed. */
enum result_algorithm { RESULT_UNSTATED, RESULT_ITERATIVE, RESULT_FILTERED, RESULT_BACKPROJECTION };

/* A volume that another program has computed. */
struct result_outside {
	char software[65], version[33], note[201]; /* as its user states; note "": none */
	enum result_algorithm algorithm;	   /* as its user states; of a tomosynthesis it must be stated */
	bool corrected;	     /* its user states that all corrections of the protocol and the objects were used */
	char sha256[65];     /* of its values as float32, little endian */
	char said[512];	     /* what it tells of the volume; "": nothing */
	char warnings[1200]; /* sentences that it tells; "": none */
	const float *values; /* [z][y][x]; borrowed */
	size_t n;
};

/* A program of the site that changed the volume of a reconstruction. */
struct result_step {
	char name[65], version[33], sha256[65], parameters[201];
	char said[512];	  /* what it told */
	char change[100]; /* what it changed, measured by this program */
};

struct result_place {
	const struct result_outside *outside; /* the volume is not computed here; NULL: it is */
	const struct result_step *step;	      /* [n_steps]; borrowed */
	size_t n_steps;
	int number;	   /* 1, 2, ...; 0: 1 */
	int64_t redo;	   /* not 0: made again, as a series of its own; this number identifies it */
	int64_t newer;	   /* not 0: of newer objects under UIDs that were received before; identifies their case */
	char changed[840]; /* "KEY=VALUE, ...": the settings by which it differs from its protocol; "": none */
	char named[64];	   /* key of the setting that the Series Description names even if only one has room; "": the first */
	char related_series[DICOM_UID_SIZE]; /* Series Instance UID of the result that it was made again after; "": none */
};

/* Added to the Series Number: each further result of the same images has its own ten thousand. */
static inline int result_place_offset(const struct result_place *place)
{
	return place->number > 1 ? 10000 * (place->number - 1) : 0;
}

#endif
