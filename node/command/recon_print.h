/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that `tomonode recon` prints of a result. */
#ifndef TOMONODE_NODE_RECON_PRINT_H
#define TOMONODE_NODE_RECON_PRINT_H

#include "node/command/imported_cases.h"
#include "node/reconstruct/reconstruct.h"

/* Write a short name of the case: "L CC", "PET". */
void recon_print_name(const struct case_files *c, char *ret, size_t size);

/* Print to stdout: what was made of what, where it is, how factors were taken, and the sentences that the result carries. of:
 * NULL, or the Interfile whose assumptions were printed before. */
void recon_print(const struct case_files *c, const struct reconstruct_report *p, const struct imported_case *of,
		 const char *out_dir);

#endif
