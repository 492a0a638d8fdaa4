/* SPDX-License-Identifier: Apache-2.0 */
/* What routes are chosen by, as the `opened` event of a job stores it: the member "routing", with the values of the first image
 * of the case that are not empty. */
#ifndef TOMONODE_NODE_CASE_ROUTING_H
#define TOMONODE_NODE_CASE_ROUTING_H

#include <jansson.h>

#include "node/config/route.h"
#include "node/jobs/jobs.h"

json_t *case_routing_json(const struct route_facts *f); /* the member; NULL: no memory */
/* Return what routes are chosen by for a job; of a job that stored none only kind and sender. */
void case_routing_facts(const struct job_view *v, struct route_facts *ret_facts);

#endif
