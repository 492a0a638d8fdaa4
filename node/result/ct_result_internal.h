/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the files of node/result/ct_result.h. Private to them and their test. */
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
	bool hounsfield; /* values are in HU; else in `unit` */
	bool is_signed;
	double slope;  /* value = stored times slope */
	double lo, hi; /* smallest and largest value of the volume in the volume's unit; lo <= 0 <= hi */
	char unit[INTERFILE_UNIT_SIZE + 4];
	char series[DICOM_UID_SIZE];
	struct provenance_time now;
	char protocol[1024], warnings[512];
};

/* Write the attributes that all slices share, and those of one slice (index: from 0). */
void ct_result_fill_header(const struct ct_result *r, struct item_writer *root);
void ct_result_fill_slice(const struct ct_result *r, int index, struct item_writer *root);

#endif
