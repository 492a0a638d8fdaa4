/* SPDX-License-Identifier: Apache-2.0 */
/* route_check.c - check routes after all entries are read: names that must exist, and what the results of one case must not have
 * in common. */
#include <stdio.h>
#include <string.h>

#include "node/config/config_read.h"
#include "node/config/kind.h"
#include "node/config/route.h"

static void check_protocols(struct config_reader *r, const struct route_conf *route, struct config_place place)
{
	for (size_t i = 0; i < route->protocols.n; i++) {
		const char *name = route->protocols.name[i];
		const struct protocol_conf *protocol = config_protocol(r->config, name);

		if (!protocol)
			config_unknown_name(r, place, "route", route->name, "protocols", name, SECTION_PROTOCOLS);
		else if (strcmp(kind_of(protocol->kind)->name, route->kind) != 0)
			config_problem(r, place.file, place.line,
				       "key 'protocols' of route '%s': \"%s\" is of kind %s; allowed: a protocol of the route's "
				       "kind, %s",
				       route->name, name, kind_of(protocol->kind)->name, route->kind);
	}
}

static void problem_fallback(struct config_reader *r, struct config_place place, const struct route_conf *route,
			     const struct destination_conf *d)
{
	config_problem(r, place.file, place.line,
		       "key 'destinations' of route '%s': \"%s\" and its fallback \"%s\"; allowed: one of them, the fallback is "
		       "used automatically",
		       route->name, d->name, d->fallback);
}

static void check_destinations(struct config_reader *r, const struct route_conf *route, struct config_place place, bool *lost)
{
	/* Embedded routes and the user's destinations: report a lost name once, at the user's list. */
	bool ours = !r->listed[SECTION_ROUTES].file && r->listed[SECTION_DESTINATIONS].file;

	for (size_t i = 0; i < route->destinations.n; i++) {
		const char *name = route->destinations.name[i];
		const struct destination_conf *d = config_destination(r->config, name);

		if (d && config_names_have(&route->destinations, d->fallback))
			problem_fallback(r, place, route, d);
		if (d || (ours && (*lost || r->names_only)))
			continue;
		if (ours)
			config_problem(
				r, r->listed[SECTION_DESTINATIONS].file, r->listed[SECTION_DESTINATIONS].line,
				"section 'destinations': it has no '%s', to which the built-in route '%s' delivers; allowed: "
				"a destination of that name, or a list 'routes' of your own",
				name, route->name);
		else
			config_unknown_name(r, place, "route", route->name, "destinations", name, SECTION_DESTINATIONS);
		*lost = ours;
	}
}

/* Two results of one case need different protocols, because the UIDs of their objects follow from what the protocols contain. */
static void check_protocols_differ(struct config_reader *r, const struct route_result *a, const struct route_result *b,
				   struct config_place place)
{
	char one[CONFIG_PROTOCOL_TEXT], other[CONFIG_PROTOCOL_TEXT];

	config_describe_protocol(config_protocol(r->config, a->protocol), one, sizeof(one));
	config_describe_protocol(config_protocol(r->config, b->protocol), other, sizeof(other));
	if (!strcmp(one, other))
		config_problem(r, place.file, place.line,
			       "key 'protocols' of route '%s': \"%s\" and \"%s\"%s%s%s reconstruct in the same way, so that the "
			       "objects of both would have the same UIDs; allowed: one of them",
			       a->route, a->protocol, b->protocol, strcmp(a->route, b->route) != 0 ? " of route '" : "",
			       strcmp(a->route, b->route) != 0 ? b->route : "", strcmp(a->route, b->route) != 0 ? "'" : "");
}

/* Check the results that a case may have that takes route `i` first. Those without a part in it are checked for later routes. */
static void check_results(struct config_reader *r, size_t i)
{
	const struct config *c = r->config;
	const struct route_conf *route = &c->routes[i];
	struct config_place place = r->places[SECTION_ROUTES][i];
	struct route_result list[ROUTE_RESULTS_MAX];
	size_t n = 0;
	const char *many = config_route_add(route, list, &n);

	for (size_t k = i + 1; !many && k < c->n_routes; k++)
		if (config_route_leads_to(c, i, k))
			many = config_route_add(&c->routes[k], list, &n);
	if (many)
		config_problem(
			r, place.file, place.line,
			"key 'continue' of route '%s': true, and a case that takes the following routes, too, has more than "
			"%s; allowed: at most %s",
			route->name, many, many);
	for (size_t a = 0; a < n && !strcmp(list[a].route, route->name); a++) {
		for (size_t b = a + 1; b < n; b++)
			check_protocols_differ(r, &list[a], &list[b], place);
		for (size_t k = 0; k < list[a].destinations.n; k++) {
			const struct destination_conf *d = config_destination(c, list[a].destinations.name[k]);

			if (config_names_have(&list[a].destinations, d->fallback) &&
			    !(config_names_have(&route->destinations, d->name) &&
			      config_names_have(&route->destinations, d->fallback)))
				problem_fallback(r, place, route, d);
		}
	}
}

void config_finish_routes(struct config_reader *r)
{
	const struct config *c = r->config;
	size_t before = r->n_problems;
	bool lost = false;

	for (size_t i = 0; i < c->n_routes; i++) {
		check_protocols(r, &c->routes[i], r->places[SECTION_ROUTES][i]);
		check_destinations(r, &c->routes[i], r->places[SECTION_ROUTES][i], &lost);
	}
	for (size_t i = 0; r->n_problems == before && !r->names_only && i < c->n_routes; i++)
		check_results(r, i);
}
