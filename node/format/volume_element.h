/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the files of volumes: MetaImage and NIfTI-1. */
#ifndef TOMONODE_NODE_VOLUME_ELEMENT_H
#define TOMONODE_NODE_VOLUME_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"

enum volume_element { ELEMENT_U8, ELEMENT_S8, ELEMENT_U16, ELEMENT_S16, ELEMENT_U32, ELEMENT_S32, ELEMENT_F32, ELEMENT_F64 };

size_t volume_element_size(enum volume_element type); /* bytes */
double volume_element_at(enum volume_element type, bool most_significant_first, const unsigned char *bytes);

/* What a reader of volumes calls for each block of values, those of index `at` to at + n - 1. If it returns a negative value,
 * reading stops and the reader returns that value. */
typedef int volume_take(void *ctx, size_t at, const double *values, size_t n, struct err *err);

#endif
