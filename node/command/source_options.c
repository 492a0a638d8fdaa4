/* SPDX-License-Identifier: Apache-2.0 */
/* source_options.c - see node/command/source_options.h. */
#include "node/command/source_options.h"

#include <ctype.h>
#include <stdio.h>

void source_options_begin(struct source_options *s)
{
	s->petsird = (struct petsird_import)PETSIRD_IMPORT;
	s->conf.petsird = &s->petsird;
	s->conf.set = s->set;
}

/* A role has one file: two headers are of two scans, or one of them is mistaken. */
static int take_role(const struct options *o, enum sinogram_role role, struct sinogram_import *conf)
{
	const char **to = &conf->header[role];
	char name[24];

	snprintf(name, sizeof(name), "%s", sinogram_role_name(role));
	for (char *c = name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	if (*to)
		return options_fail(o, CODE_USAGE, "--%s is given twice, %s and %s: name one file", name, *to, o->value);
	*to = o->value;
	return CODE_OK;
}

int source_options_take(const struct options *o, int id, struct source_options *s)
{
	if (id > SOURCE_ROLE)
		return take_role(o, (enum sinogram_role)(id - SOURCE_ROLE), &s->conf);
	if (s->conf.n_set == SOURCE_SET_MAX)
		return options_fail(o, CODE_USAGE, "more than %d values set", SOURCE_SET_MAX);
	s->set[s->conf.n_set++] = (char *)o->value; /* a string of argv */
	return CODE_OK;
}
