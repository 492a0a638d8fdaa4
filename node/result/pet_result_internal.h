/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the files of node/result/pet_result.h. Private to them and their tests. */
#ifndef TOMONODE_NODE_PET_RESULT_INTERNAL_H
#define TOMONODE_NODE_PET_RESULT_INTERNAL_H

#include "node/result/pet_result.h"
#include "node/result/result_series_internal.h"

struct pet_result;

/* pet_result_units.c: unit of the series, and the corrections that its values have. */
struct pet_quantity {
	bool calibrated;		  /* true: values are in Bq/ml; false: counts */
	double factor;			  /* value = factor times x */
	double calibration;		  /* (Bq/ml) per (count per second and mm); NaN: none */
	double duration;		  /* s */
	double decay_factor;		  /* part of `factor`; 1: none */
	double decay_before;		  /* DecayFactor of data that were already corrected for decay; 0: they were not */
	double dead_time;		  /* DeadTimeFactor that the values contain, of no frames; 0: none is known */
	const char *decay;		  /* DecayCorrection: "NONE", "START", "ADMIN" */
	double reference_ms;		  /* FrameReferenceTime: from the start of the acquisition, ms */
	char date[9], time[17];		  /* start of the acquisition */
	char corrected[200];		  /* CorrectedImage, values separated by "\\" */
	bool has_attn, has_ran, has_scat; /* `corrected` contains ATTN, RAN, SCAT */
	char origins[FACT_ORIGINS_SIZE];  /* of the facts */
	char warnings[4096];		  /* whole sentences */
};
/* Determine the unit and the factor of the values. EBADMSG: see pet_result_check(). */
int pet_result_quantify(const struct sinogram *s, struct pet_quantity *ret_quantity, struct err *err);
/* Return the Dead Time Factor of the data of a frame, gate or bed, from 0, if the values are corrected for dead time; else 0. */
double pet_result_dead_time(const struct sinogram *s, const struct pet_quantity *q, int frame);

/* pet_result_frames.c: what differs between the time frames, gates or beds of a series. */
struct pet_frame_quantity {
	double factor;		/* value = factor times x */
	double decay_factor;	/* DecayFactor; part of `factor` if the values are corrected for decay */
	double dead_time;	/* DeadTimeFactor that the values contain; 0: none is known */
	double reference_ms;	/* FrameReferenceTime: from the start of the acquisition */
	int64_t duration_ms;	/* of the frame or bed: ActualFrameDuration; of a gate: sum of its parts, TimeSlotTime */
	char date[9], time[17]; /* start of the frame or bed, or of the acquisition: AcquisitionDate, AcquisitionTime */
};
/* Compute that of a frame, gate or bed, from 0, of s. */
struct pet_frame_quantity pet_result_frame(const struct sinogram *s, const struct pet_quantity *q, int frame);
/* Write it into the header of an image of that frame, gate or bed. */
void pet_result_fill_frame(const struct pet_result *r, int frame, struct item_writer *w);

struct pet_result {
	struct result_series series;
	const struct pet_result_info *info;
	struct pet_quantity quantity;
	int n_frames;				/* frames or gates; 0: the whole acquisition */
	const struct pet_frame_quantity *frame; /* [n_frames], or of each bed */
	struct pet_cycles cycles;		/* of gates */
	char gating[80];			/* "|" and the SHA-256 of the time marks; "": no gates */
	const struct slice_range *range;	/* [slice of the volumes] */
	double largest;				/* largest value of the volume, in its unit */
	bool is_signed;				/* the volume has negative values */
};

/* pet_result_frames.c: write what the images of a gated series share. */
void pet_result_fill_gating(const struct pet_result *r, struct item_writer *w);

extern const struct series_kind pet_series;

/* pet_result_header.c: write the attributes that all slices share. */
void pet_result_fill_header(const struct pet_result *r, struct item_writer *root);
/* pet_result_sources.c: write derivation, methods and the recipe. */
void pet_result_fill_sources(const struct pet_result *r, struct item_writer *root);
/* Return whether the protocol reconstructs these data with time of flight. */
bool pet_result_uses_tof(const struct sinogram *s, const struct protocol_conf *p);
/* pet_result_doubts.c: write sentences about what the data state twice and not alike, in `size` bytes; "": nothing. duration: s.
 */
void pet_result_doubts(const struct sinogram *s, double duration, char *ret, size_t size);
/* Describe the scanner and its sinograms as text, for provenance and UIDs. */
void pet_result_describe_scanner(const struct sinogram *s, char *ret_text, size_t size);

#endif
