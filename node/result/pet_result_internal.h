/* What the files that make up node/result/pet_result.h share; nobody else but their test includes it. */
#ifndef TOMONODE_NODE_PET_RESULT_INTERNAL_H
#define TOMONODE_NODE_PET_RESULT_INTERNAL_H

#include "dicom/object/dicom_tags.h"
#include "node/result/pet_result.h"
#include "node/result/result_slices.h"
#include "node/sinogram/provenance.h"

/* pet_result_units.c: what the values of the series are, and what is true of them. */
struct pet_quantity {
	bool calibrated;		  /* Bq/ml; else counts */
	double factor;			  /* value = factor times x */
	double calibration;		  /* (Bq/ml) per (count per second and mm); NaN: none */
	double duration;		  /* s */
	double decay_factor;		  /* part of `factor`; 1: none */
	double decay_before;		  /* DecayFactor of data that came corrected for decay; 0: they did not */
	const char *decay;		  /* DecayCorrection: "NONE", "START", "ADMIN" */
	double reference_ms;		  /* FrameReferenceTime: from the start on, ms */
	char date[9], time[17];		  /* when the acquisition began */
	char corrected[200];		  /* CorrectedImage, values separated by "\\" */
	bool has_attn, has_ran, has_scat; /* among them */
	char warnings[1024];		  /* sentences */
};
/* EBADMSG: see pet_result_check(). */
int pet_result_quantify(const struct sinogram *s, struct pet_quantity *ret_quantity, struct err *err);

struct pet_result {
	const struct sinogram *s;
	const struct pet_result_info *info;
	const struct dicom_item *source; /* root of the first EMISSION object */
	struct pet_quantity quantity;
	struct slice_view view;
	const struct slice_range *range; /* of each slice of the volume */
	double largest;			 /* of the volume, in its units */
	bool is_signed;			 /* there are negative values */
	char series[DICOM_UID_SIZE];
	struct provenance_time now;
	char protocol[1024], scanner[512];
};

/* The scanner and its sinograms in words, for provenance and UIDs. */
void pet_result_describe_scanner(const struct sinogram *s, char *ret_text, size_t size);

/* pet_result_header.c: everything that the slices have in common, and what each has for itself (index: 0..). */
void pet_result_fill_header(const struct pet_result *r, struct item_writer *root);
void pet_result_fill_slice(const struct pet_result *r, int index, double slope, struct item_writer *root);
/* pet_result_sources.c: references to every source, derivation, methods, equipment with the recipe. */
void pet_result_fill_sources(const struct pet_result *r, struct item_writer *root);

#endif
