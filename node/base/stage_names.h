/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a reconstruction in their order. Journal, `show` and `recon` use these names for times, in addition to "total".
 */
#ifndef TOMONODE_NODE_STAGE_NAMES_H
#define TOMONODE_NODE_STAGE_NAMES_H

#define STAGES 7
static const char *const stage_names[STAGES] = {"open", "read", "prepare", "upload", "reconstruct", "download", "write"};

#endif
