/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/case_routing.h"

#include <stdio.h>

#include "node/store/event.h"

json_t *case_routing_json(const struct route_facts *f)
{
	json_t *object = json_object();

	for (int i = 0; object && i < ROUTE_FACTS; i++)
		if (f->value[i][0])
			json_object_set_new(object, route_fact_names[i], event_json_text(f->value[i]));
	return object;
}

void case_routing_facts(const struct job_view *v, struct route_facts *ret_facts)
{
	json_t *object = v->routing ? json_loads(v->routing, 0, NULL) : NULL;

	*ret_facts = (struct route_facts){0};
	snprintf(ret_facts->kind, sizeof(ret_facts->kind), "%s", v->kind);
	snprintf(ret_facts->calling, sizeof(ret_facts->calling), "%s", v->calling);
	for (int i = 0; i < ROUTE_FACTS; i++) {
		const char *text = json_string_value(json_object_get(object, route_fact_names[i]));

		snprintf(ret_facts->value[i], sizeof(ret_facts->value[i]), "%s", text ? text : "");
	}
	json_decref(object);
}
