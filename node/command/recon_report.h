/* SPDX-License-Identifier: Apache-2.0 */
/* `tomonode recon --report DIR`: write the report of each result, as `tomonode report` does without --patient. */
#ifndef TOMONODE_NODE_RECON_REPORT_H
#define TOMONODE_NODE_RECON_REPORT_H

#include "node/reconstruct/reconstruct.h"

/* Write the reports of the objects of a result, which are in `objects`, to `folder`. ret_files: a new array with their paths,
 * also after an error. */
int recon_report(const struct config *config, const struct reconstruct_report *result, const char *objects, const char *folder,
		 json_t **ret_files, struct err *err);

#endif
