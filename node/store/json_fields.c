/* SPDX-License-Identifier: Apache-2.0 */
#include "node/store/json_fields.h"

#include "node/base/json_get.h"
#include "node/store/event.h"

static json_t *write_field(const struct json_field *f, const void *from)
{
	const void *at = (const char *)from + f->at;

	switch (f->kind) {
	case JSON_FIELD_BOOL:
		return json_boolean(*(const bool *)at);
	case JSON_FIELD_INT:
		return json_integer(*(const int *)at);
	case JSON_FIELD_LONG:
		return json_integer(*(const long *)at);
	case JSON_FIELD_DOUBLE:
		return json_real(*(const double *)at);
	default:
		return event_json_text(at);
	}
}

json_t *json_fields_write(const struct json_field *fields, size_t n, const void *from)
{
	json_t *object = json_object();

	for (size_t i = 0; i < n; i++)
		json_object_set_new(object, fields[i].name, write_field(&fields[i], from));
	return object;
}

void json_fields_read(const struct json_field *fields, size_t n, const json_t *object, void *ret)
{
	for (size_t i = 0; i < n; i++) {
		const struct json_field *f = &fields[i];
		void *at = (char *)ret + f->at;

		if (f->kind == JSON_FIELD_BOOL)
			*(bool *)at = json_get_bool(object, f->name);
		else if (f->kind == JSON_FIELD_INT)
			*(int *)at = (int)json_get_integer(object, f->name);
		else if (f->kind == JSON_FIELD_LONG)
			*(long *)at = json_get_integer(object, f->name);
		else if (f->kind == JSON_FIELD_DOUBLE)
			*(double *)at = json_get_number(object, f->name);
		else
			json_get_copy(object, f->name, at, f->size);
	}
}

json_t *json_fields_write_list(const struct json_field *fields, size_t n, const void *list, size_t size, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(array, json_fields_write(fields, n, (const char *)list + i * size));
	return array;
}

size_t json_fields_read_list(const struct json_field *fields, size_t n, const json_t *array, void *ret_list, size_t size,
			     size_t most)
{
	size_t count = json_array_size(array) < most ? json_array_size(array) : most;

	for (size_t i = 0; i < count; i++)
		json_fields_read(fields, n, json_array_get(array, i), (char *)ret_list + i * size);
	return count;
}
