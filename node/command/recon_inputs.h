/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with the files named to `tomonode recon`: which of them is no scan, and which other file or option is meant. All
 * functions print the error and return its exit code. */
#ifndef TOMONODE_NODE_RECON_INPUTS_H
#define TOMONODE_NODE_RECON_INPUTS_H

#include "node/options/options.h"
#include "node/reconstruct/case_files.h"
#include "node/sinogram/sinogram.h"

/* Check the Interfile headers among the paths, which NULL ends: those in conf->header belong to exactly one, and of several none
 * is named like factors or randoms. -1: they are fine. */
int recon_inputs_check(const struct options *o, const struct sinogram_import *conf, char *const *paths);

/* None of the files beneath the paths can be reconstructed: say so, and which file may be meant. */
int recon_inputs_none(const struct options *o, const struct case_list *list, char *const *paths);

#endif
