/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_route.c - choose the routes of a complete case. The `complete` event contains the first result as "route", "protocol"
 * and "destinations", and the others as the list "further" of objects with these members. */
#include <stdio.h>
#include <string.h>

#include "node/config/kind.h"
#include "node/jobs/case_routing.h"
#include "node/serve/schedule_internal.h"

static json_t *names_json(const struct config_names *list)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < list->n; i++)
		json_array_append_new(array, json_string(list->name[i]));
	return array;
}

/* Say why no route is for a case. The values from its images are not part of the text, because it is logged. */
static void no_route(const struct config *c, const struct route_facts *f, const char *why, char *ret_text, size_t size)
{
	size_t n = (size_t)snprintf(ret_text, size, "no route for a case of kind '%s' from '%s' (%s)", f->kind, f->calling, why);
	const char *before = ": ";

	for (size_t i = 0; i < c->n_routes && n < size; i++) {
		const char *key = config_route_mismatch(&c->routes[i], f);

		if (!key || !strcmp(key, "kind"))
			continue;
		n += (size_t)snprintf(ret_text + n, size - n, "%sroute '%s' is for another %s", before, c->routes[i].name, key);
		before = ", ";
	}
}

bool schedule_complete(struct schedule *s, const struct job_view *v, const char *why, double now)
{
	struct route_result list[ROUTE_RESULTS_MAX];
	struct route_facts facts;
	json_t *detail, *further;
	char reason[320];
	bool ct = false;
	size_t n;

	case_routing_facts(v, &facts);
	n = config_route_results(s->config, &facts, list);
	if (n == 0) {
		no_route(s->config, &facts, why, reason, sizeof(reason));
		return schedule_decide(s, v, EVENT_HELD, schedule_reason(reason), now);
	}
	detail = json_pack("{s:s, s:I, s:s, s:s, s:o}", "why", why, "instances", (json_int_t)v->members.instances, "route",
			   list[0].route, "protocol", list[0].protocol, "destinations", names_json(&list[0].destinations));
	further = n > 1 ? json_array() : NULL;
	for (size_t i = 1; i < n; i++)
		json_array_append_new(further, json_pack("{s:s, s:s, s:o}", "route", list[i].route, "protocol", list[i].protocol,
							 "destinations", names_json(&list[i].destinations)));
	if (further)
		json_object_set_new(detail, "further", further);
	for (size_t i = 0; i < n; i++)
		ct = ct || kind_needs_ct(config_protocol(s->config, list[i].protocol));
	return schedule_complete_with_ct(s, v, ct, detail, now);
}
