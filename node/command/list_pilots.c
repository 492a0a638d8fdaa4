/* SPDX-License-Identifier: Apache-2.0 */
#include "node/command/list_pilots.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "node/base/json_get.h"
#include "node/store/node_file.h"
#include "node/store/pilot_secret.h"

static bool is_state(const json_t *slot, const char *state)
{
	const char *text = json_string_value(json_object_get(slot, "state"));

	return text && !strcmp(text, state);
}

void list_pilots_count(const char *spool, struct list_pilots *ret)
{
	json_t *report = node_file_read(spool), *slot;
	size_t i;

	*ret = (struct list_pilots){.blocked = pilot_blocked_count(spool)};
	json_array_foreach(json_object_get(report, "devices"), i, slot)
	{
		if (!json_get_bool(slot, "seat"))
			continue;
		ret->connected += is_state(slot, "ready") || is_state(slot, "busy");
		ret->working += is_state(slot, "busy");
	}
	json_decref(report);
}

void list_pilots_text(const struct list_pilots *p, char *ret, size_t size)
{
	snprintf(ret, size, "Pilots: %d connected, %d of them working, %d blocked; `tomonode devices -c FILE` names them",
		 p->connected, p->working, p->blocked);
}

json_t *list_pilots_json(const struct list_pilots *p)
{
	return json_pack("{s:i, s:i, s:i}", "connected", p->connected, "working", p->working, "blocked", p->blocked);
}
