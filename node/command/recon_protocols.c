/* SPDX-License-Identifier: Apache-2.0 */
/* recon_protocols.c - which protocol each kind of case gets, with --recipe, --set and the options that set keys. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "node/base/nearest.h"
#include "node/command/recon_internal.h"
#include "node/config/route.h"

#define OTHER_KIND ": only protocols of kind " /* config_set() */

/* Return the protocol that a kind of case has without --protocol: the first one of config_route_default(), otherwise the first
 * protocol of this kind. */
static const struct protocol_conf *standard_protocol(const struct config *c, enum case_kind kind)
{
	const struct route_conf *route = config_route_default(c, kind_of(kind)->name);

	if (route)
		return config_protocol(c, route->protocols.name[0]);
	for (size_t i = 0; i < c->n_protocols; i++)
		if (c->protocols[i].kind == kind)
			return &c->protocols[i];
	return NULL;
}

static bool sets_key(const char *assignment, const char *key)
{
	size_t n = strlen(key);

	return !strncmp(assignment, key, n) && strchr(" =", assignment[n]);
}

static int assign_settings(struct recon *r, struct protocol_conf *p, struct err *err)
{
	const struct protocol_conf before = *p;
	char why[sizeof(err->msg)];

	for (int i = 0; i < r->recipe.n; i++)
		if (config_set(p, r->recipe.assignments[i], err) < 0) {
			snprintf(why, sizeof(why), "%s", err->msg);
			return err_set(err, EINVAL, "--recipe: %.800s", why);
		}
	if (r->frames[0] && config_set(p, r->frames, err) < 0)
		return -EINVAL;
	for (int i = 0; i < 3; i++)
		if (r->gate_keys[i][0] && config_set(p, r->gate_keys[i], err) < 0)
			return -EINVAL;
	for (int i = 0; i < r->n_assignments; i++)
		if (config_set(p, r->assignments[i], err) < 0) {
			snprintf(why, sizeof(why), "%s", err->msg);
			return err_set(err, EINVAL, "--set: %.800s", why);
		}
	for (int i = 0; r->source.n_maps > 0 && i < r->n_assignments; i++)
		if (sets_key(r->assignments[i], "corrections") && !(p->pet.corrections & PET_CORRECT_ATTENUATION))
			return err_set(err, EINVAL, "--set %.200s, but --map asks for attenuation", r->assignments[i]);
	if (r->source.n_maps > 0 && p->kind == kind_id(&kind_pet)) /* a map that is named is used */
		p->pet.corrections |= PET_CORRECT_ATTENUATION;
	return config_key_without_effect(&before, p, "", why) ? err_set(err, EINVAL, "--set: %.800s", why) : 0;
}

static int no_protocol(const struct recon *r)
{
	const struct config *c = r->config;
	char names[600] = "", hint[NEAREST_HINT];
	size_t n = 0;

	for (size_t i = 0; i < c->n_protocols && n < sizeof(names); i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "", c->protocols[i].name);
	nearest_hint(nearest_in_array(r->protocol_name, c->n_protocols ? c->protocols[0].name : NULL, c->n_protocols,
				      sizeof(c->protocols[0])),
		     hint);
	return options_fail(&r->o, CODE_NOT_FOUND, "no protocol '%s'%s; available: %s", r->protocol_name, hint, names);
}

int recon_protocols_choose(struct recon *r)
{
	const char *name = r->protocol_name ? r->protocol_name : r->recipe_path ? r->recipe.protocol : NULL;
	const struct protocol_conf *named = name ? config_protocol(r->config, name) : NULL;

	if (r->protocol_name && !named)
		return no_protocol(r);
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		const struct protocol_conf *p = named ? named : standard_protocol(r->config, (enum case_kind)kind);
		struct err *why = &r->why[kind];

		if (!p) {
			err_set(why, ENOENT, "no protocol for cases of kind %s", kind_of((enum case_kind)kind)->name);
			continue;
		}
		if (r->recipe_path && kind != (int)kind_id(r->recipe.kind)) {
			err_set(why, EINVAL, "--recipe: it is of kind %s", r->recipe.kind->name);
			continue;
		}
		r->protocols[kind] = *p;
		r->chosen[kind] = assign_settings(r, &r->protocols[kind], why) == 0;
	}
	return -1;
}

int recon_protocols_check(const struct recon *r)
{
	const struct err *why = NULL;

	for (int kind = 0; kind < KIND_COUNT; kind++) {
		if (r->chosen[kind])
			return -1;
		if (r->why[kind].code != ENOENT && (!why || strstr(why->msg, OTHER_KIND)))
			why = &r->why[kind];
	}
	if (!why)
		return options_fail(&r->o, CODE_NOT_FOUND, "the configuration has no protocol");
	if (r->list->n > 0)
		why = &r->why[kind_id(r->list->cases[0].kind)];
	return options_fail(&r->o, why->code == ENOENT ? CODE_NOT_FOUND : CODE_USAGE, "%s", why->msg);
}

int recon_protocols_check_imports(const struct recon *r)
{
	int pet = kind_id(&kind_pet), parallel = kind_id(&kind_parallel);
	const struct err *why = &r->why[pet];

	if (r->chosen[pet] || r->chosen[parallel] || why->code == ENOENT)
		return -1;
	if (strstr(why->msg, OTHER_KIND) && r->why[parallel].code != ENOENT) /* a key of parallel beams, with a wrong value */
		why = &r->why[parallel];
	return options_fail(&r->o, CODE_USAGE, "%s", why->msg);
}

void recon_protocols_changes(const struct recon *r, const struct protocol_conf *p, char *ret_text, size_t size)
{
	struct protocol_conf of = *config_protocol(r->config, p->name), used = *p;
	struct err no_such_key = {0}; /* of a protocol without gates */

	if (r->gating.marks.n > 0) {
		config_set(&of, "gate_signal=", &no_such_key);
		config_set(&used, "gate_signal=", &no_such_key);
	}
	config_describe_changes(&of, &used, ret_text, size);
}
