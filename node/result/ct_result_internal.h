/* What the files that make up node/result/ct_result.h share; nobody else but their test includes it. */
#ifndef TOMONODE_NODE_CT_RESULT_INTERNAL_H
#define TOMONODE_NODE_CT_RESULT_INTERNAL_H

#include "dicom/object/dicom_tags.h"
#include "node/result/ct_result.h"
#include "node/result/result_slices.h"
#include "node/sinogram/provenance.h"

struct ct_result {
	const struct sinogram *s;
	const struct ct_result_info *info;
	const struct dicom_item *source; /* root of the first object */
	struct slice_view view;
	bool hounsfield; /* else `unit` */
	bool is_signed;
	double slope;  /* value = stored times slope */
	double lo, hi; /* of the volume, its own unit; lo <= 0 <= hi */
	char unit[INTERFILE_UNIT_SIZE + 4];
	char series[DICOM_UID_SIZE];
	struct provenance_time now;
	char protocol[1024], beams[256], warnings[512];
};

/* The scan in words, for provenance. */
void ct_result_describe_beams(const struct sinogram *s, char *ret_text, size_t size);
/* Everything that the slices have in common, and what each has for itself (index: 0..). */
void ct_result_fill_header(const struct ct_result *r, struct item_writer *root);
void ct_result_fill_slice(const struct ct_result *r, int index, struct item_writer *root);

#endif
