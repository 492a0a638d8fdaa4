/* The text of node.device and --device: the devices to work on, by name.
 *
 * "auto": every CUDA device, the CPU where there is none. Else a list with commas: "cuda" (every CUDA device), "cuda:N", "cpu",
 * "cpu:THREADS". A name that stands there twice means two workers on that device.
 */
#ifndef TOMONODE_NODE_DEVICE_NAMES_H
#define TOMONODE_NODE_DEVICE_NAMES_H

#include <stdbool.h>

#include "kernels/device.h"

#define DEVICE_NAMES_MAX 16
#define DEVICE_NAME_SIZE 16

/* How many names there are, in the order given; negative: the text is none of the above. */
int device_names_parse(const char *text, char ret_names[DEVICE_NAMES_MAX][DEVICE_NAME_SIZE]);
/* "auto" and "cuda" stand for as many devices as there are. */
bool device_name_is_wildcard(const char *name);

/* The first of them that opens; the error is that of the last. */
int device_names_open(const char *text, struct device **ret_dev, struct err *err);

#endif
