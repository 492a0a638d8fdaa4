/* SPDX-License-Identifier: Apache-2.0 */
#include "node/cluster/pilot_case.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order.h"
#include "node/base/folder.h"
#include "node/base/json_get.h"
#include "node/cluster/wire.h"

#define TEXT_MAX 8000000 /* bytes of a configuration */

static json_t *encode_files(const struct case_order *order)
{
	json_t *list = json_array();

	for (size_t i = 0; i < order->n_files; i++) {
		const struct instance_row *row = &order->files[i];

		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:s, s:s, s:I}", "file", row->file, "class", row->sop_class,
						"instance", row->sop_instance, "syntax", row->transfer_syntax, "digest",
						row->digest, "bytes", (json_int_t)row->bytes));
	}
	return list;
}

json_t *pilot_case_encode(const struct pilot_case *c)
{
	json_t *flatfields = json_array();

	for (size_t i = 0; i < c->n_flatfields; i++)
		json_array_append_new(flatfields, json_pack("{s:s, s:s, s:I}", "profile", c->flatfields[i].profile, "file",
							    c->flatfields[i].file, "bytes", (json_int_t)c->flatfields[i].bytes));
	return json_pack("{s:s, s:b, s:b, s:s, s:s, s:i, s:I, s:I, s:s, s:o, s:s?, s:o}", "protocol", c->order.protocol, "as_is",
			 c->order.as_is, "same_patient", c->order.same_patient, "header", c->order.header, "settings",
			 c->order.settings, "result", c->order.place.number, "redo", (json_int_t)c->order.place.redo, "newer",
			 (json_int_t)c->order.place.newer, "related_series", c->order.place.related_series, "files",
			 encode_files(&c->order), "config", c->config, "flatfields", flatfields);
}

static bool copy_text(const json_t *from, const char *key, char *to, size_t size)
{
	const char *text = json_string_value(json_object_get(from, key));

	if (!text || strlen(text) >= size)
		return false;
	strcpy(to, text);
	return true;
}

static bool copy_bytes(const json_t *from, uint64_t *to)
{
	json_int_t n = json_get_integer(from, "bytes");

	*to = (uint64_t)n;
	return json_is_integer(json_object_get(from, "bytes")) && n >= 0 && n < 1ll << 53;
}

static bool name_is_plain(const char *name)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";

	return name[0] && name[0] != '.' && strspn(name, allowed) == strlen(name);
}

static bool file_is_plain(const char *file)
{
	return !strncmp(file, "instances/", 10) && name_is_plain(file + 10);
}

static bool flatfield_is_plain(const char *file)
{
	size_t n = strncmp(file, "flatfields/", 11) != 0 ? 0 : strspn(file + 11, "0123456789");

	return n > 0 && n < 8 && file[11 + n] == '/' && name_is_plain(file + 12 + n);
}

static bool decode_files(const json_t *list, struct case_order *order)
{
	size_t n = json_array_size(list);

	if (!json_is_array(list) || n > WIRE_FILES_MAX)
		return false;
	order->files = calloc(n ? n : 1, sizeof(order->files[0]));
	if (!order->files)
		return false;
	for (order->n_files = 0; order->n_files < n; order->n_files++) {
		const json_t *from = json_array_get(list, order->n_files);
		struct instance_row *row = &order->files[order->n_files];

		if (!copy_text(from, "file", row->file, sizeof(row->file)) || !file_is_plain(row->file) ||
		    !copy_text(from, "class", row->sop_class, sizeof(row->sop_class)) ||
		    !copy_text(from, "instance", row->sop_instance, sizeof(row->sop_instance)) ||
		    !copy_text(from, "syntax", row->transfer_syntax, sizeof(row->transfer_syntax)) ||
		    !copy_text(from, "digest", row->digest, sizeof(row->digest)) || !copy_bytes(from, &row->bytes))
			return false;
	}
	return true;
}

static bool decode_flatfields(const json_t *list, struct pilot_case *c)
{
	size_t n = json_array_size(list);

	if (!json_is_array(list) || n > WIRE_FILES_MAX)
		return false;
	c->flatfields = calloc(n ? n : 1, sizeof(c->flatfields[0]));
	if (!c->flatfields)
		return false;
	for (c->n_flatfields = 0; c->n_flatfields < n; c->n_flatfields++) {
		const json_t *from = json_array_get(list, c->n_flatfields);
		struct pilot_flatfield *f = &c->flatfields[c->n_flatfields];

		if (!copy_text(from, "profile", f->profile, sizeof(f->profile)) ||
		    !copy_text(from, "file", f->file, sizeof(f->file)) || !flatfield_is_plain(f->file) ||
		    !copy_bytes(from, &f->bytes))
			return false;
	}
	return true;
}

static bool decode_place(const json_t *body, struct result_place *ret_place)
{
	const json_t *number = json_object_get(body, "result"), *redo = json_object_get(body, "redo"),
		     *newer = json_object_get(body, "newer");

	if (!json_is_integer(number) || json_integer_value(number) < 1 || json_integer_value(number) > RESULTS_MAX ||
	    !json_is_integer(redo) || json_integer_value(redo) < 0 || !json_is_integer(newer) || json_integer_value(newer) < 0)
		return false;
	ret_place->number = (int)json_integer_value(number);
	ret_place->redo = json_integer_value(redo);
	ret_place->newer = json_integer_value(newer);
	return copy_text(body, "related_series", ret_place->related_series, sizeof(ret_place->related_series));
}

static bool decode_case(const json_t *body, struct pilot_case *c)
{
	const json_t *config = json_object_get(body, "config");
	const char *text = json_string_value(config);

	if (!copy_text(body, "protocol", c->order.protocol, sizeof(c->order.protocol)) ||
	    !copy_text(body, "header", c->order.header, sizeof(c->order.header)) ||
	    !copy_text(body, "settings", c->order.settings, sizeof(c->order.settings)) || !decode_place(body, &c->order.place) ||
	    !json_is_boolean(json_object_get(body, "as_is")) || !json_is_boolean(json_object_get(body, "same_patient")) ||
	    !decode_files(json_object_get(body, "files"), &c->order) ||
	    !decode_flatfields(json_object_get(body, "flatfields"), c) ||
	    !(text ? strlen(text) < TEXT_MAX : json_is_null(config)))
		return false;
	c->order.as_is = json_get_bool(body, "as_is");
	c->order.same_patient = json_get_bool(body, "same_patient");
	c->config = text ? strdup(text) : NULL;
	return !text == !c->config;
}

int pilot_case_decode(const json_t *body, int64_t job, int64_t attempt, struct pilot_case *ret_case, struct err *err)
{
	struct pilot_case c = {.order = {.job = job, .attempt = attempt}};

	if (job <= 0 || attempt <= 0 || !decode_case(body, &c)) {
		pilot_case_clear(&c);
		return err_set(err, EBADMSG, "an order that has another form");
	}
	*ret_case = c;
	return 0;
}

void pilot_case_clear(struct pilot_case *c)
{
	case_order_clear(&c->order);
	free(c->config);
	free(c->flatfields);
	*c = (struct pilot_case){0};
}

size_t pilot_case_files(const struct pilot_case *c)
{
	return c->order.n_files + c->n_flatfields;
}

const char *pilot_case_file(const struct pilot_case *c, size_t i, uint64_t *ret_bytes)
{
	const struct pilot_flatfield *f = i < c->order.n_files ? NULL : &c->flatfields[i - c->order.n_files];

	*ret_bytes = f ? f->bytes : c->order.files[i].bytes;
	return f ? f->file : c->order.files[i].file;
}

int pilot_case_path(const char *root, int64_t job, int64_t attempt, const char *suffix, char *ret_path, size_t size,
		    struct err *err)
{
	if (snprintf(ret_path, size, "%s/work/%lld-%lld%s", root, (long long)job, (long long)attempt, suffix) >= (int)size)
		return err_set(err, ENAMETOOLONG, "the path %s is too long", root);
	return 0;
}

/* The name of a file that is being received, NAME.part, is that of no object. */
static bool object_is_plain(const char *file, const char *folder)
{
	size_t n = strlen(folder), length = file ? strlen(file) : 0;

	return length > n && length <= 100 && !strncmp(file, folder, n) && name_is_plain(file + n) &&
	       (length < n + 5 || strcmp(file + length - 5, ".part") != 0);
}

static int check_names(const char **names, size_t n, struct err *err)
{
	qsort(names, n, sizeof(names[0]), order_texts);
	for (size_t i = 1; i < n; i++)
		if (!strcmp(names[i - 1], names[i]))
			return err_set(err, EBADMSG, "two objects of a result have the file name %s", file_name(names[i]));
	return 0;
}

int64_t pilot_case_objects(const json_t *detail, int64_t job, uint64_t *ret_bytes, struct err *err)
{
	const json_t *list = json_object_get(detail, "objects");
	size_t n = json_array_size(list);
	const char **names;
	char folder[40];
	int ret = 0;

	*ret_bytes = 0;
	snprintf(folder, sizeof(folder), "outbox/%lld/", (long long)job);
	if (n == 0 || n > JOB_OBJECTS_MAX)
		return err_set(err, EBADMSG, "a result of %zu objects; allowed: 1 to %d", n, JOB_OBJECTS_MAX);
	names = calloc(n, sizeof(names[0]));
	if (!names)
		return err_set(err, EAGAIN, "no memory for the names of %zu objects", n);
	for (size_t i = 0; ret == 0 && i < n; i++) {
		const json_t *object = json_array_get(list, i);
		uint64_t bytes = 0;

		names[i] = json_string_value(json_object_get(object, "file"));
		if (!object_is_plain(names[i], folder) || !copy_bytes(object, &bytes) || bytes == 0 ||
		    !json_is_string(json_object_get(object, "digest")))
			ret = err_set(err, EBADMSG, "object %zu of a result has no plain file name, size or digest", i);
		*ret_bytes = bytes > UINT64_MAX - *ret_bytes ? UINT64_MAX : *ret_bytes + bytes;
	}
	if (ret == 0)
		ret = check_names(names, n, err);
	free(names);
	return ret < 0 ? ret : (int64_t)n;
}

const char *pilot_case_object(const json_t *detail, size_t i, int64_t *ret_bytes, const char **ret_digest)
{
	const json_t *object = json_array_get(json_object_get(detail, "objects"), i);

	*ret_bytes = json_get_integer(object, "bytes");
	*ret_digest = json_string_value(json_object_get(object, "digest"));
	return file_name(json_string_value(json_object_get(object, "file")));
}
