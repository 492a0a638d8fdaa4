/* SPDX-License-Identifier: Apache-2.0 */
/* source_options.c - see node/command/source_options.h. The name of a signal of gates is taken as such, also if a file has this name. */
#include "node/command/source_options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/text_file.h"

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

static bool read_number(const char *text, double lo, double hi, double *ret)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= lo && v <= hi))
		return false;
	*ret = v;
	return true;
}

/* ---- maps ---- */

/* Read KEY=VALUE. */
static bool read_map_item(char *item, struct map_request *r)
{
	char *value = strchr(item, '=');

	if (!value || !value[1])
		return false;
	*value++ = '\0';
	if (!strcmp(item, "matrix"))
		r->matrix = value;
	return !strcmp(item, "matrix") || (!strcmp(item, "unit") && map_unit_named(value, &r->unit)) ||
	       (!strcmp(item, "kvp") && read_number(value, 40, 200, &r->kvp));
}

static int take_map(const struct options *o, struct source_options *s)
{
	struct map_request *r = &s->map[s->n_maps];
	char *rest, *item;

	if (s->n_maps == CASE_MAPS_MOST)
		return options_fail(o, CODE_USAGE, "more than %d maps", CASE_MAPS_MOST);
	rest = s->map_text[s->n_maps] = strdup(o->value);
	if (!rest)
		return options_fail(o, CODE_FAILED, "no memory for a map");
	s->n_maps++;
	r->path = strsep(&rest, ",");
	while ((item = strsep(&rest, ",")))
		if (!read_map_item(item, r))
			return options_fail(o, CODE_USAGE,
					    "--map %s: what begins with \"%s\" is none of unit=" MAP_FILE_UNITS
					    ", matrix=FILE, kvp=40 to 200",
					    o->value, item);
	return CODE_OK;
}

void source_options_clear(struct source_options *s)
{
	while (s->n_maps > 0)
		free(s->map_text[--s->n_maps]);
}

int source_options_take(const struct options *o, int id, struct source_options *s)
{
	if (id == SOURCE_MAP)
		return take_map(o, s);
	if (id > SOURCE_ROLE)
		return take_role(o, (enum sinogram_role)(id - SOURCE_ROLE), &s->conf);
	if (s->conf.n_set == SOURCE_SET_MAX)
		return options_fail(o, CODE_USAGE, "more than %d values set", SOURCE_SET_MAX);
	s->set[s->conf.n_set++] = (char *)o->value; /* a string of argv */
	return CODE_OK;
}

/* ---- beds ---- */

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

/* ---- gates ---- */

static int check_gates(const struct options *o, const struct gate_options *g, const char *without)
{
	if (!g->gates && g->marks)
		return options_fail(o, CODE_USAGE, "--marks without --gates");
	if (!g->gates && g->cycle)
		return options_fail(o, CODE_USAGE, "--gate-cycle without --gates");
	if (g->gates && without)
		return options_fail(o, CODE_USAGE, "--gates and %s: gates of time frames are not supported", without);
	return CODE_OK;
}

static int read_table(const struct options *o, const char *path, struct pet_marks *ret)
{
	struct err err = {0};
	char *text = NULL;
	size_t size = 0;
	int rc = text_file_read(path, PET_MARKS_BYTES, "table of time marks", &text, &size, &err);

	if (rc == 0)
		rc = pet_marks_parse(text, size, ret, &err);
	free(text);
	if (rc == 0)
		return CODE_OK;
	if (err.code == ENOENT)
		return options_fail(o, CODE_NOT_FOUND, "--marks %s: no signal (ecg, resp, motion, sync), and no such file", path);
	return options_fail(o, options_code(&err), "--marks %s: %s", path, err.msg);
}

int gate_options_read(const struct options *o, const struct gate_options *given, const char *without, struct pet_gates *ret)
{
	struct pet_gates g = {.n = given->gates, .signal = PET_SIGNAL_TABLE};
	struct err err = {0};
	int code = check_gates(o, given, without);

	if (code == CODE_OK && given->cycle && pet_gates_parse_cycle(given->cycle, &g, &err) < 0)
		code = options_fail(o, CODE_USAGE, "--gate-cycle %s", err.msg);
	if (code == CODE_OK && given->marks && (!pet_signal_named(given->marks, &g.signal) || g.signal == PET_SIGNAL_TABLE)) {
		g.signal = PET_SIGNAL_TABLE;
		code = read_table(o, given->marks, &g.marks);
	}
	if (code == CODE_OK)
		*ret = g;
	return code;
}
