/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the files of node/result/ct_result.h. Private to them. */
#ifndef TOMONODE_NODE_CT_RESULT_INTERNAL_H
#define TOMONODE_NODE_CT_RESULT_INTERNAL_H

#include "node/result/ct_result.h"
#include "node/result/result_series_internal.h"

struct ct_result {
	struct result_series series;
	const struct ct_result_info *info;
	bool hounsfield;		/* values are in HU; else in `unit` */
	bool is_signed;			/* stored values can be negative */
	double slope;			/* value = stored value times slope */
	double lo, hi;			/* smallest and largest value of the volume, before the conversion to HU; lo <= 0 <= hi */
	char unit[CT_RESULT_UNIT_SIZE]; /* unit of the values: "HU", "1/mm" */
	char warnings[2048];		/* see struct series_report */
};

extern const struct series_kind ct_series;

/* Write the attributes that all slices share, with their provenance. */
void ct_result_fill_header(const struct ct_result *r, struct item_writer *root);

#endif
