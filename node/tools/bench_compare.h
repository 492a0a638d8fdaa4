/* Earlier results of `tomonode bench`: JSON lines (or its --json document) in a file, looked up by work, device and sizes. */
#ifndef TOMONODE_NODE_BENCH_COMPARE_H
#define TOMONODE_NODE_BENCH_COMPARE_H

#include "kernels/err.h"

struct bench_earlier;

/* EBADMSG: a line is no JSON object, or no line is a result; ENOENT and the like: the file cannot be read. */
int bench_earlier_read(const char *path, struct bench_earlier **ret_earlier, struct err *err);
struct bench_earlier *bench_earlier_free(struct bench_earlier *e); /* takes NULL, returns NULL */

/* Median seconds of the last line about the same; 0: there is none. */
double bench_earlier_seconds(const struct bench_earlier *e, const char *work, const char *device, const char *sizes);

#endif
