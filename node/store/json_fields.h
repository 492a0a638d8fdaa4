/* SPDX-License-Identifier: Apache-2.0 */
/* Structures as JSON objects, by a table of their members: one table for both directions. */
#ifndef TOMONODE_NODE_JSON_FIELDS_H
#define TOMONODE_NODE_JSON_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum json_field_kind { JSON_FIELD_TEXT, JSON_FIELD_BOOL, JSON_FIELD_INT, JSON_FIELD_LONG, JSON_FIELD_DOUBLE };

struct json_field {
	const char *name;
	size_t at, size; /* in the structure */
	enum json_field_kind kind;
};

/* A member of a structure: bool, int, a signed or unsigned integer of 64 bits, double, or an array of char. */
#define JSON_FIELD_OF(type, key, member)                                                                                           \
	{                                                                                                                          \
		key, offsetof(type, member), sizeof(((type *)0)->member),                                                        \
			_Generic(&((type *)0)->member, bool *                                                                    \
				 : JSON_FIELD_BOOL, int *                                                                        \
				 : JSON_FIELD_INT, long *                                                                        \
				 : JSON_FIELD_LONG, unsigned long *                                                              \
				 : JSON_FIELD_LONG, double *                                                                     \
				 : JSON_FIELD_DOUBLE, default                                                                    \
				 : JSON_FIELD_TEXT) \
	}
#define JSON_FIELDS(table) (table), sizeof(table) / sizeof((table)[0])

/* Return an object with these members, a new reference; NULL: no memory. */
json_t *json_fields_write(const struct json_field *fields, size_t n, const void *from);
/* Set these members; what is missing or of another type becomes "", 0 or false. */
void json_fields_read(const struct json_field *fields, size_t n, const json_t *object, void *ret);
/* The same for an array of `count` structures of `size` bytes. Reading returns their number, at most `most`. */
json_t *json_fields_write_list(const struct json_field *fields, size_t n, const void *list, size_t size, size_t count);
size_t json_fields_read_list(const struct json_field *fields, size_t n, const json_t *array, void *ret_list, size_t size,
			     size_t most);

#endif
