/* SPDX-License-Identifier: Apache-2.0 */
/* Which results are made of a case: the routes that it takes, their protocols and destinations. Pure functions of the
 * configuration and of what is known about the case. */
#ifndef TOMONODE_NODE_ROUTE_H
#define TOMONODE_NODE_ROUTE_H

#include "node/config/config.h"

/* What the choice of routes depends on. */
struct route_facts {
	char kind[KIND_NAME_SIZE];
	char calling[CONFIG_AET_SIZE];
	char value[ROUTE_FACTS][PATTERN_SIZE]; /* "": not in the images */
};

/* One result of a case: it is reconstructed with a protocol, and sent to the destinations of all routes that name the protocol.
 */
struct route_result {
	char route[CONFIG_NAME_SIZE]; /* the first of these routes */
	char protocol[CONFIG_NAME_SIZE];
	struct config_names destinations;
};

#define ROUTE_RESULTS_MAX 16 /* largest number of results of a case; a configuration that allows more is refused */

/* Keys of a route that are patterns, and the names of the values they are compared with. */
extern const char *const route_fact_names[ROUTE_FACTS];

/* Return NULL if the route is for this case; otherwise the name of the first key that is not: "kind", "calling", "view", ... */
const char *config_route_mismatch(const struct route_conf *route, const struct route_facts *f);
/* List the results of a case in the order of the routes and of their protocols. Returns their number; 0: no route is for this
 * case. */
size_t config_route_results(const struct config *c, const struct route_facts *f, struct route_result ret_list[ROUTE_RESULTS_MAX]);
/* Return the route of a case of which only the kind is known: the first one that is for every such case, otherwise the first one
 * of the kind; NULL: none. */
const struct route_conf *config_route_default(const struct config *c, const char *kind);

/* Write the patterns of a route: `view "L*", station "MG1"`; "": it has none. */
void config_route_patterns(const struct route_conf *route, char *ret_text, size_t size);
/* Return true if no case takes route `i`: an earlier route takes all of its cases, no peer has its AE title, or its view does not
 * exist. ret_why: the reason. */
bool config_route_is_unreachable(const struct config *c, size_t i, char *ret_why, size_t size);

/* Return true if there may be a case that takes route `i` and, later in the list, route `k`. */
bool config_route_leads_to(const struct config *c, size_t i, size_t k);
/* Add the results of a route to a list of *n. Returns NULL, or what a case would have too many of: "16 results" or "8
 * destinations of a result"; that one is not added. */
const char *config_route_add(const struct route_conf *route, struct route_result list[ROUTE_RESULTS_MAX], size_t *n);

#endif
