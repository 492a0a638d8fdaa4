/* SPDX-License-Identifier: Apache-2.0 */
#include "node/config/route.h"

#include <stdio.h>
#include <string.h>

#include "node/config/kind.h"

const char *const route_fact_names[ROUTE_FACTS] = {
	[ROUTE_STUDY_DESCRIPTION] = "study_description",
	[ROUTE_PROTOCOL_NAME] = "protocol_name",
	[ROUTE_BODY_PART] = "body_part",
	[ROUTE_VIEW] = "view",
	[ROUTE_STATION] = "station",
	[ROUTE_INSTITUTION] = "institution",
};

/* An empty pattern stands for any text. */
static const char *pattern_or_any(const char *pattern)
{
	return pattern[0] ? pattern : "*";
}

const char *config_route_mismatch(const struct route_conf *route, const struct route_facts *f)
{
	if (strcmp(route->kind, f->kind) != 0)
		return "kind";
	if (route->calling[0] && strcmp(route->calling, f->calling) != 0)
		return "calling";
	for (int i = 0; i < ROUTE_FACTS; i++)
		if (!pattern_matches(pattern_or_any(route->pattern[i]), f->value[i]))
			return route_fact_names[i];
	return NULL;
}

bool config_names_have(const struct config_names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strcmp(names->name[i], name))
			return true;
	return false;
}

static const char *add_protocol(const struct route_conf *route, const char *protocol, struct route_result list[ROUTE_RESULTS_MAX],
				size_t *n)
{
	struct route_result *r = list;

	while (r < list + *n && strcmp(r->protocol, protocol) != 0)
		r++;
	if (r == list + ROUTE_RESULTS_MAX)
		return "16 results";
	if (r == list + *n) {
		*r = (struct route_result){0};
		snprintf(r->route, sizeof(r->route), "%s", route->name);
		snprintf(r->protocol, sizeof(r->protocol), "%s", protocol);
		++*n;
	}
	for (size_t i = 0; i < route->destinations.n; i++) {
		if (config_names_have(&r->destinations, route->destinations.name[i]))
			continue;
		if (r->destinations.n == CONFIG_NAMES_MAX)
			return "8 destinations of a result";
		memcpy(r->destinations.name[r->destinations.n++], route->destinations.name[i], CONFIG_NAME_SIZE);
	}
	return NULL;
}

const char *config_route_add(const struct route_conf *route, struct route_result list[ROUTE_RESULTS_MAX], size_t *n)
{
	const char *many = NULL;

	_Static_assert(ROUTE_RESULTS_MAX == 16 && CONFIG_NAMES_MAX == 8, "the texts of add() contain these numbers");
	for (size_t i = 0; !many && i < route->protocols.n; i++)
		many = add_protocol(route, route->protocols.name[i], list, n);
	return many;
}

size_t config_route_results(const struct config *c, const struct route_facts *f, struct route_result ret_list[ROUTE_RESULTS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_routes; i++) {
		if (config_route_mismatch(&c->routes[i], f))
			continue;
		config_route_add(&c->routes[i], ret_list, &n); /* config_finish_routes() has checked the numbers */
		if (!c->routes[i].continues)
			break;
	}
	return n;
}

const struct route_conf *config_route_default(const struct config *c, const char *kind)
{
	const struct route_conf *first = NULL;
	struct route_facts f = {0};

	snprintf(f.kind, sizeof(f.kind), "%s", kind);
	for (size_t i = 0; i < c->n_routes; i++) {
		if (!config_route_mismatch(&c->routes[i], &f))
			return &c->routes[i];
		if (!first && !strcmp(c->routes[i].kind, kind))
			first = &c->routes[i];
	}
	return first;
}

void config_route_patterns(const struct route_conf *route, char *ret_text, size_t size)
{
	size_t n = 0;

	if (size)
		ret_text[0] = '\0';
	for (int i = 0; i < ROUTE_FACTS && n < size; i++)
		if (route->pattern[i][0])
			n += (size_t)snprintf(ret_text + n, size - n, "%s%s \"%s\"", n ? ", " : "", route_fact_names[i],
					      route->pattern[i]);
}

/* ---- relations between routes ---- */

/* Return true if `before` is for every case that `route` is for. */
static bool covers_route(const struct route_conf *before, const struct route_conf *route)
{
	if (strcmp(before->kind, route->kind) != 0 || (before->calling[0] && strcmp(before->calling, route->calling) != 0))
		return false;
	for (int i = 0; i < ROUTE_FACTS; i++)
		if (!pattern_covers(pattern_or_any(before->pattern[i]), pattern_or_any(route->pattern[i])))
			return false;
	return true;
}

/* Return true if both may be for one case. */
static bool meets_route(const struct route_conf *a, const struct route_conf *b)
{
	if (strcmp(a->kind, b->kind) != 0 || (a->calling[0] && b->calling[0] && strcmp(a->calling, b->calling) != 0))
		return false;
	for (int i = 0; i < ROUTE_FACTS; i++)
		if (!pattern_meets(pattern_or_any(a->pattern[i]), pattern_or_any(b->pattern[i])))
			return false;
	return true;
}

bool config_route_leads_to(const struct config *c, size_t i, size_t k)
{
	const struct route_conf *from = &c->routes[i], *to = &c->routes[k];

	if (!from->continues || !meets_route(from, to))
		return false;
	for (size_t m = i + 1; m < k; m++)
		if (!c->routes[m].continues && (covers_route(&c->routes[m], from) || covers_route(&c->routes[m], to)))
			return false;
	return true;
}

static bool may_send(const struct config *c, const char *aet)
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (!c->peers[i].aet[0] || !strcmp(c->peers[i].aet, aet))
			return true;
	return !c->node.require_known_peer;
}

/* Return true if cases of this kind have a view that matches; otherwise list the views of the kind. */
static bool has_view(const struct kind *kind, const char *pattern, char *ret_views, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; kind->view_patterns[i]; i++)
		if (pattern_meets(pattern_or_any(pattern), kind->view_patterns[i]))
			return true;
	ret_views[0] = '\0';
	for (size_t i = 0; kind->view_patterns[i] && n < size; i++)
		n += (size_t)snprintf(ret_views + n, size - n, "%s%s", n ? ", " : "", kind->view_patterns[i]);
	return false;
}

bool config_route_is_unreachable(const struct config *c, size_t i, char *ret_why, size_t size)
{
	const struct route_conf *route = &c->routes[i];
	const struct kind *kind = kind_named(route->kind);
	char text[160];

	for (size_t k = 0; k < i; k++) {
		const struct route_conf *before = &c->routes[k];

		if (before->continues || !covers_route(before, route))
			continue;
		config_route_patterns(before, text, sizeof(text));
		snprintf(ret_why, size, "route %s before it takes every %s case from %s%s%s", before->name, route->kind,
			 before->calling[0] ? before->calling : "any sender", text[0] ? " with " : "", text);
		return true;
	}
	if (route->calling[0] && !may_send(c, route->calling)) {
		snprintf(ret_why, size, "no peer has its AE title %s, and only peers may send", route->calling);
		return true;
	}
	if (kind && !has_view(kind, route->pattern[ROUTE_VIEW], text, sizeof(text))) {
		snprintf(ret_why, size, "no %s case has a view like %s, its views are: %s", route->kind,
			 route->pattern[ROUTE_VIEW], text);
		return true;
	}
	return false;
}
