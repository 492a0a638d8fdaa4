/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_recon.c - `tomonode recon`: reconstruct DICOM files without a running node. Every valid case is reconstructed; for each
 * other one the reason is printed, and the exit code reports that there were some. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/device_names.h"
#include "node/base/folder.h"
#include "node/base/nearest.h"
#include "node/base/plural.h"
#include "node/base/progress.h"
#include "node/command/audit_files.h"
#include "node/command/commands.h"
#include "node/command/recon_command.h"
#include "node/command/recon_inputs.h"
#include "node/command/recon_print.h"
#include "node/command/recon_report.h"
#include "node/config/route.h"
#include "node/format/correction_pictures.h"
#include "node/options/options.h"
#include "node/reconstruct/case_files.h"
#include "node/reconstruct/reconstruct.h"
#include "node/sinogram/pet_source.h"

#define OTHER_KIND ": only protocols of kind " /* config_set() */

static const struct option_spec option_specs[] = {
	{'c', "config", "FILE", "configuration file, applied over the embedded defaults", INTO_TEXT(struct recon, conf_path)},
	{'o', "output", "DIR", "folder for the results; created with its parents if missing", INTO_TEXT(struct recon, out_dir)},
	{0, "report", "DIR", "also write a report of each result, an HTML file without the patient's name (tomonode report)",
	 INTO_TEXT(struct recon, report_dir)},
	{0, "protocol", "NAME",
	 "protocol of the configuration, for cases of its kind; default: for each kind the first one of its first route",
	 INTO_TEXT(struct recon, protocol_name)},
	{0, "device", "SPEC", "auto, cpu, cpu:THREADS, cuda or cuda:N; default: the first of node.device that can be opened",
	 INTO_TEXT(struct recon, device)},
	{OPTION_RECON_SET, "set", "KEY=VALUE",
	 "set one key of the protocol, with the syntax of the configuration; may be repeated; the last that is given is always named in the Series Description"},
	{0, "recipe", "RESULT",
	 "the protocol, with all values, of this result, a file or the folder of its series; what differs in the new one is printed. Not with --protocol; --set is applied after it",
	 INTO_TEXT(struct recon, recipe_path)},
	{0, "frames", "TABLE", "time frames of PET list mode, such as 6x10,4x30: the same as --set frames=TABLE",
	 INTO_TEXT(struct recon, table)},
	{0, "gates", "N", "gates of PET list mode, of equal length in each cycle between two time marks",
	 INTO_INT(struct recon, gates.gates, 1, PET_GATES_MAX)},
	{0, "marks", "SIGNAL|FILE",
	 "with --gates: ecg or resp, a signal in the list mode; or a table, a time mark in ms in each line",
	 INTO_TEXT(struct recon, gates.marks)},
	{0, "gate-cycle", "MIN,MAX", "with --gates: lengths of the cycles that are used, ms; default: all",
	 INTO_TEXT(struct recon, gates.cycle)},
	SOURCE_OPTIONS(struct recon, source),
	SOURCE_MAP_OPTION,
	{0, "same-patient", NULL,
	 "state that the files of each case are of one patient, although their headers name different ones",
	 INTO_ON(struct recon, same_patient)},
	{0, "header", "FILE",
	 "with --same-patient: the file whose patient and study the result of its case has; default: the last by name",
	 INTO_TEXT(struct recon, header)},
	{0},
};

static const struct command_spec spec = {
	.name = "recon",
	.usage =
		"[-c FILE] [--protocol NAME] [--device SPEC] [--set KEY=VALUE]... [--recipe RESULT]\n"
		"                      [--frames TABLE] [--gates N --marks SIGNAL|FILE [--gate-cycle MIN,MAX]] [--same-patient [--header FILE]]\n"
		"                      [--like FILE.dcm] [--attribute KEYWORD=VALUE]... [--axes X,Y,Z] [--no-tof] [--map FILE]...\n"
		"                      [--report DIR] -o DIR PATH...\n"
		"       tomonode recon FILE.hs [--attenuation F.hs] [--normalisation F.hs] [--multiplicative F.hs] [--additive "
		"F.hs]\n"
		"                      [--delayeds F.hs] [--singles F.hs] [OPTION]... -o DIR",
	.summary = "Reconstruct tomosynthesis exams, PET acquisitions and parallel beam data from DICOM files or folders "
		   "(recursive),\nInterfile headers (STIR), folders of the e7tools or PETSIRD files.",
	.text = "Tomosynthesis projections with the same study, series, laterality, view and frame of reference are one case; "
		"the\n"
		"result is one object. Sinograms with the same study, series and frame of reference are one case; the result is "
		"a\n"
		"series with one object per slice (docs/sinogram-object.md describes sinograms). A PETSIRD file is a case of "
		"its\n"
		"own, reconstructed event by event (docs/petsird.md), and so is an Interfile header or a folder of the e7tools\n"
		"that is named on the command line (docs/import.md), whose position, nuclide and dose are used. Other\n"
		"files that are not DICOM are ignored. If a case is refused, the reason is printed and the others are still\n"
		"reconstructed.",
	.options = option_specs,
	.json = true,
	.min_arguments = 1,
	.max_arguments = -1,
	.examples = "tomonode recon --protocol dbt-osem -o result exam\n"
		    "tomonode recon --protocol pet-osem --set iterations=4 -o series sinograms/*.dcm\n"
		    "tomonode recon --protocol pet-osem --attenuation acf.hs --attribute Radionuclide=F18 -o series scan.hs\n"
		    "tomonode recon --protocol pet-osem --set corrections=attenuation -o series pet/*.dcm ct/*.dcm\n"
		    "tomonode recon --map body.nii.gz --map table.hv,unit=1/cm -o series list.l.hdr\n"
		    "tomonode recon --attribute PatientPosition=HFS --frames 6x10,4x30 -o series scan.petsird\n"
		    "tomonode recon --recipe last-year/result -o again exam\n",
	.files = true,
};

/* Turn the options of gates into keys of the protocol; a table of marks belongs to the cases. */
static int read_gates(struct recon *r)
{
	int code = gate_options_read(&r->o, &r->gates, r->table ? "--frames" : NULL, &r->gating);

	if (code != CODE_OK || r->gating.n == 0)
		return code == CODE_OK ? -1 : code;
	snprintf(r->gate_keys[0], sizeof(r->gate_keys[0]), "gates=%d", r->gating.n);
	if (r->gates.marks && r->gating.signal != PET_SIGNAL_TABLE)
		snprintf(r->gate_keys[1], sizeof(r->gate_keys[1]), "gate_signal=%s", pet_signal_name(r->gating.signal));
	if (r->gates.cycle)
		snprintf(r->gate_keys[2], sizeof(r->gate_keys[2]), "gate_cycle=%s", r->gates.cycle);
	return -1;
}

int recon_read_options(struct recon *r, const struct command_spec *of, int argc, char **argv)
{
	struct pet_images frames;
	struct err err = {0};
	int id;

	options_begin(&r->o, of, argc, argv);
	r->o.into = r;
	source_options_begin(&r->source);
	while ((id = options_next(&r->o)) >= 0)
		if (id != OPTION_RECON_SET && source_options_take(&r->o, id, &r->source) != CODE_OK)
			return CODE_USAGE;
		else if (id == OPTION_RECON_SET && r->n_assignments == RECON_SET_MAX)
			return options_fail(&r->o, CODE_USAGE, "more than %d times --set", RECON_SET_MAX);
		else if (id == OPTION_RECON_SET)
			r->assignments[r->n_assignments++] = r->o.value;
	if (id == OPTION_STOP)
		return r->o.code;
	if (!r->out_dir)
		return options_fail(&r->o, CODE_USAGE, "-o DIR is missing");
	if (r->table && strlen(r->table) > PET_FRAMES_TEXT)
		return options_fail(&r->o, CODE_USAGE, "--frames: %zu characters; allowed: %d", strlen(r->table),
				    PET_FRAMES_TEXT);
	if (r->table && pet_frames_parse(r->table, &frames, &err) < 0)
		return options_fail(&r->o, CODE_USAGE, "--frames: %s", err.msg);
	if (r->table)
		snprintf(r->frames, sizeof(r->frames), "frames=%s", r->table);
	if (r->header && !r->same_patient)
		return options_fail(&r->o, CODE_USAGE, "--header FILE needs --same-patient");
	return read_gates(r);
}

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

/* Choose the protocol that --protocol or --recipe names for all cases, or without them one for each kind of case. */
static int choose_protocols(struct recon *r)
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

/* Check that a kind of case has a protocol. Otherwise report why the kind of the first case has none; without cases, the kind
 * that has the key of --set. */
static int check_protocols(const struct recon *r)
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

/* The same for imports alone, before they are read: PET or parallel beams. */
static int check_import_protocols(const struct recon *r)
{
	int pet = kind_id(&kind_pet), parallel = kind_id(&kind_parallel);
	const struct err *why = &r->why[pet];

	if (r->chosen[pet] || r->chosen[parallel] || why->code == ENOENT)
		return -1;
	if (strstr(why->msg, OTHER_KIND) && r->why[parallel].code != ENOENT) /* a key of parallel beams, with a wrong value */
		why = &r->why[parallel];
	return options_fail(&r->o, CODE_USAGE, "%s", why->msg);
}

static void note_refusal(struct recon *r, int code, const char *who, const char *reason)
{
	const char *name = file_name(who);
	size_t n;
	char what[PATH_MAX]; /* JSON must be UTF-8, a file name may be any bytes */

	for (const char *once = who;; once = name) { /* the path or the name once */
		n = strlen(once);
		if (n > 0 && !strncmp(reason, once, n) && (!strncmp(reason + n, ": ", 2) || !strncmp(reason + n, ", ", 2)))
			reason += n + 2;
		if (once == name)
			break;
	}
	snprintf(what, sizeof(what), "%s", who);
	err_clean(what);
	fprintf(stderr, "tomonode %s: %s: %s\n", r->o.spec->name, what, reason);
	json_array_append_new(r->refused, json_pack("{s:s, s:s, s:i}", "what", what, "reason", reason, "code", code));
	if (!r->code)
		r->code = code;
}

/* With --report, write the reports of a result, and add their paths to its JSON. */
static void write_report(struct recon *r, const struct reconstruct_report *p, json_t *o)
{
	json_t *files, *file;
	struct err err = {0};
	size_t i;

	if (!r->report_dir)
		return;
	if (recon_report(r->config, p, r->out_dir, r->report_dir, &files, &err) < 0) {
		fprintf(stderr, "tomonode recon: no report of %s: %s\n", p->objects[0].file, err.msg);
		r->code = r->code ? r->code : (int)options_code(&err);
	}
	json_array_foreach(files, i, file)
	{
		if (!r->o.json)
			printf("  report: %s\n", json_string_value(file));
	}
	json_object_set_new(o, "reports", files);
}

/* Write the pictures of the corrections beside the objects. Without them the result is complete. */
static void write_pictures(const struct recon *r, const struct reconstruct_report *p)
{
	struct err err = {0};

	if (p->pictures && correction_pictures_write(p->pictures, r->out_dir, p->objects[0].series, &err) < 0)
		fprintf(stderr, "tomonode recon: no pictures of the corrections: %s\n", err.msg);
}

/* Note the arrays of a case, and print their shapes. */
static void note_arrays(struct recon *r, const struct case_files *c, const struct reconstruct_report *p)
{
	json_t *arrays = json_object_get(p->details, "arrays"), *array, *n;
	const char *role;
	size_t i;

	json_array_append_new(r->cases,
			      json_pack("{s:s, s:s, s:O}", "kind", c->kind->name, "folder", r->out_dir, "case", p->details));
	if (r->o.json)
		return;
	printf("%s/case.json: %s\n", r->out_dir, c->kind->name);
	json_object_foreach(arrays, role, array)
	{
		printf("  %s:", json_string_value(json_object_get(array, "file")));
		json_array_foreach(json_object_get(array, "shape"), i, n)
			printf("%s%lld", i ? " x " : " ", (long long)json_integer_value(n));
		printf("\n");
	}
	if (p->warnings[0])
		printf("  warning: %s\n", p->warnings);
}

/* Write to the audit trail that the measured data of these cases were given to other programs. */
static void audit_arrays(const struct recon *r)
{
	struct audit_files files = {0};

	if (!r->arrays || !audit_is_on())
		return;
	for (size_t k = 0; k < r->list->n; k++)
		for (size_t i = 0; i < r->list->cases[k].n; i++)
			audit_files_add(&files, r->list->cases[k].paths[i]);
	audit_exported(r->out_dir, files.list, files.n, r->code);
	audit_files_clear(&files);
}

/* With --recipe, add and print what differs in the result. */
static void note_recipe(const struct recon *r, const struct reconstruct_report *p, json_t *o)
{
	json_t *changes, *one;
	char path[PATH_MAX];
	size_t i;

	if (!r->recipe_path)
		return;
	snprintf(path, sizeof(path), "%s/%s", r->out_dir, p->objects[0].file);
	changes = recon_recipe_differences(r->recipe_file, path);
	json_object_set_new(o, "recipe_differs", changes ? changes : json_null());
	if (!r->o.json && json_array_size(changes) == 0)
		printf(changes ? "  made as %s\n" : "  not compared with %s: one of the results cannot be read\n",
		       r->recipe_path);
	json_array_foreach(changes, i, one)
	{
		if (!r->o.json)
			printf("  not as %s: %s\n", r->recipe_path, json_string_value(one));
	}
}

/* Write what the case is made of: the folder of its first file, or what was imported. JSON must be UTF-8, a path may be any bytes. */
static void name_source(const struct recon *r, const struct case_files *c, char *ret, size_t size)
{
	const struct imported_case *of = imported_cases_of(&r->imported, c);
	const char *path = c->paths[0], *slash = strrchr(path, '/');

	if (of)
		snprintf(ret, size, "%s", of->from);
	else
		snprintf(ret, size, "%.*s", slash > path ? (int)(slash - path) : 1, slash ? path : ".");
	err_clean(ret);
}

static void note_result(struct recon *r, const struct case_files *c, const struct reconstruct_report *p)
{
	json_t *o =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:[i,i,i], s:[f,f,f], s:I}", "kind", c->kind->name, "study",
			  c->study, "source_series", c->series, "laterality", c->laterality, "view", c->view, "device", p->device,
			  "profile", p->profile, c->kind->views, p->n_views, "size", p->n[0], p->n[1], p->n[2], "voxel_mm",
			  p->voxel[0], p->voxel[1], p->voxel[2], "device_bytes", (json_int_t)p->bytes_device);
	char source[PATH_MAX];

	json_object_update_new(o, reconstruct_objects(p, ""));
	json_object_set_new(o, "protocol", json_string(r->protocols[kind_id(c->kind)].name));
	json_object_set_new(o, "seconds", reconstruct_seconds(p));
	json_object_update(o, p->details);
	name_source(r, c, source, sizeof(source));
	json_object_set_new(o, "source", json_string(source));
	json_array_append_new(r->cases, o);
	if (!r->o.json && r->list->n > 1)
		printf("%s: ", source);
	if (!r->o.json)
		recon_print(c, p, imported_cases_of(&r->imported, c), r->out_dir);
	note_recipe(r, p, o);
	write_pictures(r, p);
	write_report(r, p, o);
}

/* Is --header a file of this case? */
static bool has_header(const struct recon *r, const struct case_files *c)
{
	struct stat wanted, file;
	bool found = false;

	if (!r->header || stat(r->header, &wanted) < 0)
		return false;
	for (size_t i = 0; i < c->n && !found; i++)
		found = stat(c->paths[i], &file) == 0 && file.st_dev == wanted.st_dev && file.st_ino == wanted.st_ino;
	return found;
}

/* CODE_NOT_FOUND: no case has the file of --header. */
static int check_header(const struct recon *r)
{
	bool found = !r->header;

	for (size_t i = 0; i < r->list->n; i++)
		found = found || has_header(r, &r->list->cases[i]);
	return found ? -1 : options_fail(&r->o, CODE_NOT_FOUND, "--header %s: no case has this file", r->header);
}

/* Write what differs from the protocol of the configuration. A table of time marks replaces the signal. */
static void describe_changes(const struct recon *r, const struct protocol_conf *p, char *ret_text, size_t size)
{
	struct protocol_conf of = *config_protocol(r->config, p->name), used = *p;
	struct err no_such_key = {0}; /* of a protocol without gates */

	if (r->gating.marks.n > 0) {
		config_set(&of, "gate_signal=", &no_such_key);
		config_set(&used, "gate_signal=", &no_such_key);
	}
	config_describe_changes(&of, &used, ret_text, size);
}

static int reconstruct_one(struct recon *r, const struct case_files *c, struct device *dev, struct pet_cache *cache,
			   struct reconstruct_report *ret_report, struct err *err)
{
	struct case_decision decision = {.patient = {r->same_patient, has_header(r, c) ? r->header : NULL},
					 .marks = r->gating.marks.n > 0 ? &r->gating.marks : NULL,
					 .file = &r->source.conf,
					 .n_maps = r->source.n_maps,
					 .maps = r->source.map,
					 .arrays = r->arrays};
	const struct imported_case *of = imported_cases_of(&r->imported, c);
	const struct pet_source *source = of ? NULL : pet_source_of_file(c->paths[0]);
	const struct protocol_conf *p = &r->protocols[kind_id(c->kind)];
	const char **joined = NULL, *last = r->n_assignments > 0 ? r->assignments[r->n_assignments - 1] : "";
	struct progress progress;
	char axes[400];
	size_t n = c->n;
	int rc;

	if (!r->chosen[kind_id(c->kind)]) {
		*err = r->why[kind_id(c->kind)];
		return -err->code;
	}
	decision.place.outside = r->outside;
	decision.steps = r->steps.fd >= 0 ? &r->steps.runner : NULL;
	describe_changes(r, p, decision.place.changed, sizeof(decision.place.changed));
	if (r->n_assignments > 0)
		snprintf(decision.place.named, sizeof(decision.place.named), "%.*s", (int)strcspn(last, " ="), last);
	if (of) {
		decision.assumed = of->assumed.text[0] ? &of->assumed : NULL;
		if (of->assumed.text[0])
			fprintf(stderr, "tomonode %s: %s: %s\n", r->o.spec->name, of->from, of->assumed.text);
	}
	if (source && source->taken) {
		source->taken(&r->source.conf, axes, sizeof(axes));
		fprintf(stderr, "tomonode %s: %s: %s\n", r->o.spec->name, c->paths[0], axes);
	}
	if (kind_needs_ct(p) && !(joined = case_paths_with_ct(r->list, c, &n)))
		return err_set(err, ENOMEM, "no memory for the paths of the CT");
	if (joined && n == c->n && r->list->n_ct > 0)
		fprintf(stderr,
			"tomonode %s: %s: none of the %zu objects of CT or maps has its frame of reference or its study; with "
			"several scans each needs one that does, or a command of its own\n",
			r->o.spec->name, c->paths[0], r->list->n_ct);
	if (joined && r->list->n == 1 && n > c->n && n - c->n < r->list->n_ct)
		fprintf(stderr,
			"tomonode %s: %s: %zu of the %zu objects of CT or maps are not of its frame of reference, and not used\n",
			r->o.spec->name, c->paths[0], r->list->n_ct - (n - c->n), r->list->n_ct);
	progress_start(&progress, !r->o.json);
	rc = reconstruct_case(r->config, p, dev, cache, NULL, joined ? joined : (const char *const *)c->paths, n, &decision,
			      r->out_dir, &progress.monitor, ret_report, err);
	progress_stop(&progress);
	free(joined);
	return rc;
}

/* Return the exit code for a refused case. If a --set is not valid for its kind, the command line is wrong, not the case. */
static int refusal_code(const struct recon *r, const struct case_files *c, const struct err *err)
{
	if (r->chosen[kind_id(c->kind)])
		return options_code(err);
	return err->code == ENOENT ? CODE_NOT_FOUND : CODE_USAGE;
}

/* Why a case was refused whose series has other cases, of other frames of reference. */
struct split_case {
	char *reason; /* NULL: it was not refused */
	int code;
};

static bool are_of_one_series(const struct recon *r, size_t i, size_t j)
{
	const struct case_files *a = &r->list->cases[i], *b = &r->list->cases[j];

	return a->kind == b->kind && kind_keys_differ_in_frame(a->kind, a->key, b->key);
}

static bool is_split(const struct recon *r, size_t i)
{
	size_t j = 0;

	while (j < r->list->n && !are_of_one_series(r, i, j))
		j++;
	return j < r->list->n;
}

static void name_case(const struct recon *r, size_t i, char *ret, size_t size)
{
	char name[64];

	recon_print_name(&r->list->cases[i], name, sizeof(name));
	snprintf(ret, size, "case %zu (%s)", i + 1, name);
}

/* Note the refusals of cases of one series that have the same reason as one. */
static void note_split_cases(struct recon *r, struct split_case *split)
{
	char who[96], text[700];

	for (size_t i = 0; i < r->list->n; i++) {
		size_t files = r->list->cases[i].n, frames = 1;

		if (!split[i].reason)
			continue;
		for (size_t j = i + 1; j < r->list->n; j++)
			if (split[j].reason && !strcmp(split[j].reason, split[i].reason) && are_of_one_series(r, i, j)) {
				files += r->list->cases[j].n;
				frames++;
				free(split[j].reason);
				split[j].reason = NULL;
			}
		text[0] = '\0';
		if (frames > 1)
			kind_frames_text((long)files, (long)frames, text, sizeof(text));
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s", split[i].reason);
		name_case(r, i, who, sizeof(who));
		note_refusal(r, split[i].code, who, text);
		free(split[i].reason);
	}
	free(split);
}

static void reconstruct_all(struct recon *r, struct device *dev)
{
	struct pet_cache *cache = pet_cache_create(dev, PET_CACHE_BYTES);
	struct split_case *split = calloc(r->list->n + 1, sizeof(*split));

	for (size_t i = 0; i < r->list->n && r->code != CODE_CANCELLED; i++) {
		const struct case_files *c = &r->list->cases[i];
		struct reconstruct_report report = {0};
		struct err err = {0};
		const struct imported_case *of = imported_cases_of(&r->imported, c);
		char who[96];
		int rc = reconstruct_one(r, c, dev, cache, &report, &err), code = rc < 0 ? refusal_code(r, c, &err) : 0;

		name_case(r, i, who, sizeof(who));
		if (rc < 0 && code != CODE_CANCELLED && split && !of && is_split(r, i) && (split[i].reason = strdup(err.msg)))
			split[i].code = code;
		else if (rc < 0)
			note_refusal(r, code, of ? of->from : who, err.msg);
		else if (r->arrays)
			note_arrays(r, c, &report);
		else
			note_result(r, c, &report);
		reconstruct_report_clear(&report);
	}
	if (split)
		note_split_cases(r, split);
	pet_cache_free(cache);
}

/* Return the number of files that no case uses; CT images are used where the attenuation is made from them. */
static size_t count_ignored(const struct recon *r)
{
	bool with_ct = false;

	for (int kind = 0; kind < KIND_COUNT; kind++)
		with_ct = with_ct || (r->chosen[kind] && kind_needs_ct(&r->protocols[kind]));
	return r->list->n_ignored + (with_ct ? 0 : r->list->n_ct);
}

static int print_summary(struct recon *r)
{
	const struct case_list *l = r->list;

	if (r->o.json)
		options_json(json_pack("{s:b, s:i, s:O, s:O, s:I, s:I, s:I, s:I}", "ok", !r->code, "code", r->code, "cases",
				       r->cases, "refused", r->refused, "files", (json_int_t)l->n_files, "not_dicom",
				       (json_int_t)l->n_other, "not_projections", (json_int_t)count_ignored(r), "duplicates",
				       (json_int_t)l->n_duplicates));
	else if (l->n_other || count_ignored(r) || l->n_duplicates)
		printf("ignored files: %zu not DICOM, %zu neither projections nor sinograms, %zu duplicates\n", l->n_other,
		       count_ignored(r), l->n_duplicates);
	return r->code;
}

static void refuse_import(void *ctx, const char *path, const struct err *err)
{
	/* an attribute that is not allowed is an error of the command line */
	note_refusal(ctx, err->code == EINVAL ? CODE_USAGE : options_code(err), path, err->msg);
}

/* Start the process for the steps of the protocols, while this one has one thread. */
static int start_steps(struct recon *r, struct err *err)
{
	char folder[PATH_MAX];
	bool needed = false;
	int rc;

	for (int kind = 0; kind < KIND_COUNT; kind++)
		needed = needed || (r->chosen[kind] && r->protocols[kind].steps.n > 0);
	if (!needed || r->arrays || r->outside)
		return 0;
	options_note_folder(&r->o, r->out_dir);
	r->made_folder = access(r->out_dir, F_OK) < 0;
	rc = folder_create(r->out_dir, err);
	if (rc < 0)
		return rc;
	if (snprintf(folder, sizeof(folder), "%s/.steps-XXXXXX", r->out_dir) >= (int)sizeof(folder) || !mkdtemp(folder) ||
	    !realpath(folder, r->steps_folder))
		return err_set(err, EPERM, "cannot make a folder for steps in %s: %s", r->out_dir, strerror(errno));
	if (snprintf(r->steps.runner.folder, sizeof(r->steps.runner.folder), "%s/case", r->steps_folder) >=
	    (int)sizeof(r->steps.runner.folder))
		return err_set(err, ENAMETOOLONG, "the path of the folder for steps in %s is too long", r->out_dir);
	r->steps.command = r->o.spec->name;
	return step_helper_start(&r->steps, r->config, r->steps_folder, err);
}

/* Say what is in the folder already; with steps that was said before. */
static void note_folder(const struct recon *r)
{
	if (!r->steps_folder[0])
		options_note_folder(&r->o, r->out_dir);
}

/* Import the paths that become sinogram objects first, and replace them. Return -1, or an exit code. */
static int import_paths(struct recon *r, char ***paths)
{
	struct sinogram_import *conf = &r->source.conf;
	size_t n_paths = 0, with_roles, n = imported_cases_count(*paths, &with_roles);
	struct err err = {0};
	int code = recon_inputs_check(&r->o, conf, *paths);

	if (code >= 0 || n == 0)
		return code;
	while ((*paths)[n_paths])
		n_paths++;
	if (n == n_paths && check_import_protocols(r) >= 0)
		return CODE_USAGE;
	conf->now = clock_wall();
	conf->config = r->config;
	note_folder(r);
	if (imported_cases_create(&r->imported, conf, *paths, r->out_dir, refuse_import, r, &err) < 0)
		return options_fail_err(&r->o, &err);
	*paths = r->imported.paths;
	return -1;
}

int recon_run(struct recon *r, char **paths)
{
	struct device *dev = NULL;
	struct err err = {0};
	int code = options_config(&r->o, r->conf_path, &r->config);

	if (code)
		return code;
	if (r->recipe_path && r->protocol_name)
		return options_fail(
			&r->o, CODE_USAGE,
			"--protocol %s and --recipe exclude each other: a recipe has the protocol with all values; change some with --set",
			r->protocol_name);
	if (r->recipe_path && recon_recipe_file(r->recipe_path, r->recipe_file, sizeof(r->recipe_file), &err) < 0)
		return options_fail_err(&r->o, &err);
	if (r->recipe_path && recon_recipe_load(r->recipe_file, &r->recipe, &err) < 0)
		return options_fail_err(&r->o, &err);
	code = choose_protocols(r);
	if (code >= 0)
		return code;
	if (r->arrays)
		audit_start(&r->config->node, AUDIT_DIRECT, r->o.spec->name);
	r->cases = json_array();
	r->refused = json_array();
	if (start_steps(r, &err) < 0)
		return options_fail_err(&r->o, &err);
	code = import_paths(r, &paths);
	if (code >= 0)
		return code;
	if (case_list_create(paths, &r->list, &err) < 0)
		return options_fail(&r->o, err.code == ENOENT ? CODE_NOT_FOUND : CODE_INPUT, "%s", err.msg);
	code = check_protocols(r);
	if (code < 0)
		code = check_header(r);
	if (code >= 0)
		return code;
	for (size_t i = 0; i < r->list->n_refused; i++)
		note_refusal(r, CODE_INPUT, r->list->refused[i].path, r->list->refused[i].reason);
	if (r->list->n == 0 && json_array_size(r->refused) == 0)
		return recon_inputs_none(&r->o, r->list, paths);
	if ((r->arrays || r->outside) && r->list->n > 1)
		return options_fail(&r->o, CODE_INPUT, "the files are %zu cases, and arrays are those of one: name its files",
				    r->list->n);
	if (r->source.n_maps > 0 && (r->list->n > 1 || r->list->cases[0].kind != &kind_pet))
		return options_fail(&r->o, CODE_INPUT, "--map is of one PET case, and the files are %zu case%s%s", r->list->n,
				    plural(r->list->n), r->list->n > 1 ? ": name the files of one" : " of another kind");
	if (r->imported.n == 0)
		note_folder(r);
	if (r->report_dir && folder_create(r->report_dir, &err) < 0)
		return options_fail_err(&r->o, &err);
	if (device_names_open(r->device ? r->device : r->config->node.device, &dev, &err) < 0)
		return options_fail(&r->o, CODE_DEVICE, "%s", err.msg);
	r->steps.dev = dev;
	reconstruct_all(r, dev);
	r->steps.dev = NULL;
	device_close(dev);
	audit_arrays(r);
	return print_summary(r);
}

void recon_clear(struct recon *r)
{
	struct err ignored = {0};

	step_helper_stop(&r->steps);
	if (r->steps_folder[0])
		folder_remove(r->steps_folder, &ignored);
	if (r->steps_folder[0] && r->made_folder)
		rmdir(r->out_dir); /* if it has no result */
	imported_cases_clear(&r->imported, r->out_dir);
	source_options_clear(&r->source);
	pet_marks_clear(&r->gating.marks);
	json_decref(r->cases);
	json_decref(r->refused);
	case_list_free(r->list);
	config_free(r->config);
}

int cmd_recon(int argc, char **argv)
{
	struct recon r = {.steps = {.fd = -1}};
	int code = recon_read_options(&r, &spec, argc, argv);

	if (code < 0)
		code = recon_run(&r, argv + r.o.first);
	recon_clear(&r);
	return code;
}
