/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOMONODE_NODE_BYTES_TEXT_H
#define TOMONODE_NODE_BYTES_TEXT_H

#include <stddef.h>

/* Write a number of bytes for people, with decimal units: "1.2 GB", "512 bytes". 12 characters are enough. */
void bytes_text(double bytes, char *ret, size_t size);

#endif
