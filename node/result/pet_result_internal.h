/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the files of node/result/pet_result.h. Private to them and their test. */
#ifndef TOMONODE_NODE_PET_RESULT_INTERNAL_H
#define TOMONODE_NODE_PET_RESULT_INTERNAL_H

#include "dicom/object/dicom_tags.h"
#include "node/result/pet_result.h"
#include "node/result/result_slices.h"
#include "node/sinogram/provenance.h"

/* pet_result_units.c: unit of the series, and the corrections that its values have. */
struct pet_quantity {
	bool calibrated;		  /* true: values are in Bq/ml; false: counts */
	double factor;			  /* value = factor times x */
	double calibration;		  /* (Bq/ml) per (count per second and mm); NaN: none */
	double duration;		  /* s */
	double decay_factor;		  /* part of `factor`; 1: none */
	double decay_before;		  /* DecayFactor of data that were already corrected for decay; 0: they were not */
	const char *decay;		  /* DecayCorrection: "NONE", "START", "ADMIN" */
	double reference_ms;		  /* FrameReferenceTime: from the start of the acquisition, ms */
	char date[9], time[17];		  /* start of the acquisition */
	char corrected[200];		  /* CorrectedImage, values separated by "\\" */
	bool has_attn, has_ran, has_scat; /* `corrected` contains ATTN, RAN, SCAT */
	char warnings[1024];		  /* sentences */
};
/* Determine the unit and the factor of the values. EBADMSG: see pet_result_check(). */
int pet_result_quantify(const struct sinogram *s, struct pet_quantity *ret_quantity, struct err *err);

struct pet_result {
	const struct sinogram *s;
	const struct pet_result_info *info;
	const struct dicom_item *source; /* root of the first EMISSION object */
	struct pet_quantity quantity;
	struct slice_view view;
	const struct slice_range *range; /* [slice of the volume] */
	double largest;			 /* largest value of the volume, in its unit */
	bool is_signed;			 /* the volume has negative values */
	char series[DICOM_UID_SIZE];
	struct provenance_time now;
	char protocol[1024], scanner[512];
};

/* Describe the scanner and its sinograms as text, for provenance and UIDs. */
void pet_result_describe_scanner(const struct sinogram *s, char *ret_text, size_t size);

/* pet_result_header.c: write the attributes that all slices share, and those of one slice (index: from 0). */
void pet_result_fill_header(const struct pet_result *r, struct item_writer *root);
void pet_result_fill_slice(const struct pet_result *r, int index, double slope, struct item_writer *root);
/* pet_result_sources.c: write references to every source, derivation, methods, equipment with the recipe. */
void pet_result_fill_sources(const struct pet_result *r, struct item_writer *root);

#endif
