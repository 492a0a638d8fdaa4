/* SPDX-License-Identifier: Apache-2.0 */
/* The model of the machine's processor, so that the times of `tomonode bench` on a CPU are compared only with those of an equal
 * one. */
#ifndef TOMONODE_NODE_BENCH_PROCESSOR_H
#define TOMONODE_NODE_BENCH_PROCESSOR_H

#include <stddef.h>

/* Write the model as the kernel names it ("AMD EPYC 9654 96-Core Processor") into ret; "unknown" if it names none. `path`:
 * "/proc/cpuinfo", or a file of that format. */
void bench_processor(const char *path, char *ret, size_t size);

#endif
