/* SPDX-License-Identifier: Apache-2.0 */
/* Parse node.device and --device: the names of the devices to use.
 *
 * "auto": every CUDA device; the CPU if there is none. Otherwise a list separated by commas: "cuda" (every CUDA device),
 * "cuda:N", "cpu", "cpu:THREADS". If a name is repeated, two workers use that device.
 */
#ifndef TOMONODE_NODE_DEVICE_NAMES_H
#define TOMONODE_NODE_DEVICE_NAMES_H

#include <stdbool.h>

#include "kernels/device.h"

#define DEVICE_NAMES_MAX 16
#define DEVICE_NAME_SIZE 16

/* Split the text into names, in their order. Return the number of names; negative: the text is not valid. */
int device_names_parse(const char *text, char ret_names[DEVICE_NAMES_MAX][DEVICE_NAME_SIZE]);
/* Return true for "auto" and "cuda", which stand for every matching device of the machine. */
bool device_name_is_wildcard(const char *name);

/* Return the memory that this process may use according to its control groups (node/base/cgroup.h); 0: no limit. */
size_t device_names_allowed(void);
/* Return that memory, bytes, or all of the machine where there is no limit. */
double device_names_memory(void);
/* Set what this process may use of the main memory (0: no limit), before its sandbox hides the groups; a CPU device has not more
 * than that. */
void device_names_limit(struct device *dev, size_t allowed);

/* Open the first device of the list that can be opened, limited as above. If none can, return the error of the last. */
int device_names_open(const char *text, struct device **ret_dev, struct err *err);

#endif
