/* SPDX-License-Identifier: Apache-2.0 */
/* The option --bed of `tomonode import`: HEADER.hs,z=MM[,start=S][,duration=S][,ROLE=F.hs]... */
#ifndef TOMONODE_NODE_BED_OPTIONS_H
#define TOMONODE_NODE_BED_OPTIONS_H

#include "node/options/options.h"
#include "node/sinogram/sinogram.h"

struct bed_options {
	int n; /* 0: not given */
	struct sinogram_import_bed bed[PET_BEDS_MAX];
	char *text[PET_BEDS_MAX]; /* what the headers point into; owned */
};

/* Add the bed that the value of the option describes. Returns CODE_OK, or an exit code after a message. */
int bed_options_add(const struct options *o, struct bed_options *b);
void bed_options_clear(struct bed_options *b);

#endif
