/* SPDX-License-Identifier: Apache-2.0 */
/* Members of JSON objects that may be missing, of another type, or of no object at all (NULL): they read as "", 0 or false. The
 * texts are borrowed. */
#ifndef TOMONODE_NODE_JSON_GET_H
#define TOMONODE_NODE_JSON_GET_H

#include <jansson.h>
#include <stdbool.h>

const char *json_get_text(const json_t *object, const char *key);
double json_get_number(const json_t *object, const char *key);
long long json_get_integer(const json_t *object, const char *key);
bool json_get_bool(const json_t *object, const char *key);
/* Copy a text into an array, cut off at its size. */
void json_get_copy(const json_t *object, const char *key, char *ret_text, size_t size);

#endif
