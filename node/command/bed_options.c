/* SPDX-License-Identifier: Apache-2.0 */
/* bed_options.c - see node/command/bed_options.h. */
#include "node/command/bed_options.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool read_number(const char *text, double lo, double hi, double *ret)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= lo && v <= hi))
		return false;
	*ret = v;
	return true;
}

/* Return the role that a word names in small letters, other than EMISSION; 0: none. */
static enum sinogram_role role_named(const char *word)
{
	for (int role = SINOGRAM_EMISSION + 1; role <= SINOGRAM_ROLES; role++)
		if (role != SINOGRAM_LINES && !strcasecmp(word, sinogram_role_name((enum sinogram_role)role)))
			return (enum sinogram_role)role;
	return 0;
}

/* Read KEY=VALUE. */
static bool read_item(char *item, struct sinogram_import_bed *bed)
{
	char *value = strchr(item, '=');
	enum sinogram_role role;

	if (!value || !value[1])
		return false;
	*value++ = '\0';
	role = role_named(item);
	if (role)
		bed->header[role] = value;
	return role || (!strcmp(item, "z") && read_number(value, -1e5, 1e5, &bed->z)) ||
	       (!strcmp(item, "start") && read_number(value, 0, 1e7, &bed->start)) ||
	       (!strcmp(item, "duration") && read_number(value, 1e-3, 1e7, &bed->duration));
}

int bed_options_add(const struct options *o, struct bed_options *b)
{
	struct sinogram_import_bed *bed = &b->bed[b->n];
	char *rest, *item;

	if (b->n == PET_BEDS_MAX)
		return options_fail(o, CODE_USAGE, "more than %d beds", PET_BEDS_MAX);
	*bed = (struct sinogram_import_bed){.z = NAN, .start = NAN, .duration = NAN};
	rest = b->text[b->n] = strdup(o->value);
	if (!rest)
		return options_fail(o, CODE_FAILED, "no memory for a bed");
	b->n++;
	bed->header[SINOGRAM_EMISSION] = strsep(&rest, ",");
	while ((item = strsep(&rest, ",")))
		if (!read_item(item, bed))
			return options_fail(o, CODE_USAGE,
					    "--bed %s: what begins with \"%s\" is none of z=MM, start=SECONDS, duration=SECONDS, "
					    "ROLE=FILE.hs (additive, attenuation, ...)",
					    o->value, item);
	if (isnan(bed->z) || !bed->header[SINOGRAM_EMISSION][0])
		return options_fail(o, CODE_USAGE,
				    "--bed %s: %s is missing; --bed FILE.hs,z=MM[,start=SECONDS][,ROLE=FILE.hs]...", o->value,
				    isnan(bed->z) ? "z=MM, the scanner's centre," : "the header of the counts");
	return CODE_OK;
}

void bed_options_clear(struct bed_options *b)
{
	for (int i = 0; i < b->n; i++)
		free(b->text[i]);
	b->n = 0;
}
