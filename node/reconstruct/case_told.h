/* SPDX-License-Identifier: Apache-2.0 */
/* What a program tells of a volume that it made: step.json of a step (docs/steps.md), `--told` of `tomonode arrays write`. It is data
 * from outside: {"summary": text, "figures": {name: number, ...}, "warnings": [text, ...]}, of which only the summary is needed. */
#ifndef TOMONODE_NODE_CASE_TOLD_H
#define TOMONODE_NODE_CASE_TOLD_H

#include <jansson.h>

#include "kernels/err.h"

/* Read and check it. fd: a regular file, at its beginning; what: its name in sentences, "its step.json". EBADMSG: it is not as above;
 * ENOMEM. *ret: owned by the caller. */
int case_told_read(int fd, const char *what, json_t **ret, struct err *err);
/* Write the summary, and whole figures as far as there is room: "median of 3 voxels; sigma 0.02". */
void case_told_text(const json_t *told, char *ret, size_t size);
/* Add a sentence for each warning. who: the program, "Step median". */
void case_told_warnings(const json_t *told, const char *who, char *text, size_t size);

#endif
