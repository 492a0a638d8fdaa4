/* SPDX-License-Identifier: Apache-2.0 */
/* Read earlier results of `tomonode bench` from a file of JSON lines (or its --json document), and find a result by work, device,
 * sizes and processor. */
#ifndef TOMONODE_NODE_BENCH_COMPARE_H
#define TOMONODE_NODE_BENCH_COMPARE_H

#include "kernels/err.h"

struct bench_earlier;

/* Read the file. Errors: EBADMSG (a line is not a JSON object, or no line is a result), ENOENT and others (the file cannot be
 * read). */
int bench_earlier_read(const char *path, struct bench_earlier **ret_earlier, struct err *err);
struct bench_earlier *bench_earlier_free(struct bench_earlier *e); /* takes NULL, returns NULL */

/* Return the median time of the last matching result, s; 0: none matches. processor: of a CPU, NULL: of another device; a result
 * without one matches any. */
double bench_earlier_seconds(const struct bench_earlier *e, const char *work, const char *device, const char *sizes,
			     const char *processor);

#endif
