/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/other_result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/base/json_get.h"

/* Return the array of settings, a new reference; NULL: it cannot be read, or has something that is not a text. */
static json_t *read_settings(const char *settings)
{
	json_t *list = settings && settings[0] ? json_loads(settings, 0, NULL) : json_array(), *one;
	bool good = json_is_array(list);
	size_t i;

	json_array_foreach(list, i, one) good = good && json_is_string(one);
	if (good)
		return list;
	json_decref(list);
	return NULL;
}

int other_result_read(const json_t *opening, struct other_result *ret)
{
	const json_t *settings = json_object_get(opening, "settings");
	struct other_result r = {.of = json_get_integer(opening, "result_of"),
				 .number = (int)json_get_integer(opening, "result"),
				 .redo_of = json_get_integer(opening, "redo_of")};

	r.number = r.number > 0 ? r.number : 1;
	if (r.of > 0)
		json_get_copy(opening, "protocol", r.protocol, sizeof(r.protocol));
	if (r.of > 0 && !r.protocol[0])
		return -EBADMSG;
	json_get_copy(opening, "related_series", r.related, sizeof(r.related));
	r.settings = json_array_size(settings) > 0 ? json_dumps(settings, JSON_COMPACT) : NULL;
	if (json_array_size(settings) > 0 && !r.settings)
		return -ENOMEM;
	other_result_clear(ret);
	*ret = r;
	return 0;
}

void other_result_write(const struct other_result *r, json_t *opening)
{
	json_object_del(opening, "redo_of");
	json_object_del(opening, "settings");
	json_object_update_new(opening, json_pack("{s:I, s:i, s:s}", "result_of", (json_int_t)r->of, "result", r->number,
						  "protocol", r->protocol));
	if (r->redo_of > 0)
		json_object_update_new(opening, json_pack("{s:I, s:o, s:s}", "redo_of", (json_int_t)r->redo_of, "settings",
							  read_settings(r->settings), "related_series", r->related));
}

void other_result_clear(struct other_result *r)
{
	free(r->settings);
	*r = (struct other_result){.number = 1};
}

const char *other_result_text(const char *protocol, const char *settings, char ret_text[OTHER_RESULT_TEXT])
{
	json_t *list = read_settings(settings);
	size_t n = (size_t)snprintf(ret_text, OTHER_RESULT_TEXT, "%s", protocol);

	for (size_t i = 0; i < json_array_size(list) && n < OTHER_RESULT_TEXT; i++)
		n += (size_t)snprintf(ret_text + n, OTHER_RESULT_TEXT - n, ", %s", json_string_value(json_array_get(list, i)));
	json_decref(list);
	return ret_text;
}

int other_result_apply(struct protocol_conf *protocol, const char *settings, struct err *err)
{
	json_t *list = read_settings(settings);
	int ret = list ? 0 : err_set(err, EINVAL, "the settings of the job cannot be read");

	for (size_t i = 0; ret == 0 && i < json_array_size(list); i++)
		ret = config_set(protocol, json_string_value(json_array_get(list, i)), err);
	json_decref(list);
	return ret;
}
