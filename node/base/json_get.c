/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/json_get.h"

#include <stdio.h>

const char *json_get_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

double json_get_number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

long long json_get_integer(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

bool json_get_bool(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

void json_get_copy(const json_t *object, const char *key, char *ret_text, size_t size)
{
	snprintf(ret_text, size, "%s", json_get_text(object, key));
}
