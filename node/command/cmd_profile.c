/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_profile.c - `tomonode profile fit` and `profile check`: the geometry of a tomosynthesis system from an exam of a bead
 * phantom.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "node/base/folder.h"
#include "node/base/plural.h"
#include "node/base/progress.h"
#include "node/command/commands.h"
#include "node/config/kind.h"
#include "node/options/options.h"
#include "node/reconstruct/case_files.h"
#include "node/tools/profile_report.h"

#define LIMIT 0.5 /* bins */
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

struct profile {
	struct options o;
	const char *conf_path, *folder, *phantom_path, *name;
	double limit;
	bool fixed[SYSTEM_PARAMETERS], check;
	struct config *config;
	struct case_list *list;
	struct exam *exam;
	struct profile_phantom phantom;
	struct profile_result result;
	struct profile_constancy constancy;
};

enum { OPTION_FIX = OPTION_LONG };

static const struct option_spec option_specs[] = {
	{'c', "config", "FILE", "configuration with the profile of the system, from which the fit starts",
	 INTO_TEXT(struct profile, conf_path)},
	{'o', "output", "DIR",
	 "folder for report.html, report.json, view.png and (fit) profile.conf; created with its parents if missing",
	 INTO_FOLDER(struct profile, folder)},
	{0, "phantom", "FILE", "description of the bead phantom (JSON: diameter_mm and beads_mm or layers_mm)",
	 INTO_TEXT(struct profile, phantom_path)},
	{0, "name", "NAME",
	 "fit: name of the new profile; default: that of the profile in use, with the serial number of the machine",
	 INTO_TEXT(struct profile, name)},
	{OPTION_FIX, "fix", "PARAMETER", "keep the profile's value of a parameter, such as source_axis; may be repeated"},
	{0, "limit", "BINS", "check: largest residuals with the profile's geometry; default 0.5",
	 INTO_REAL(struct profile, limit, 0.01, 100)},
	{0},
};

static const char *action_name(size_t i)
{
	return i == 0 ? "fit" : i == 1 ? "check" : NULL;
}

static const struct command_spec spec = {
	.name = "profile",
	.usage = "fit|check --phantom FILE [-c FILE] [-o DIR] [--fix PARAMETER]... [--json] PATH...",
	.summary =
		"Fit a geometry profile to an exam of a bead phantom, or check whether the profile still describes the system.",
	.text = "PATH: files or folders with one exam. fit: writes the profile with its uncertainties into DIR, and refuses what "
		"the "
		"exam\ndoes not determine. check: exit code 1 if the geometry has changed. docs/dbt-calibration.md describes "
		"phantom,\n"
		"method and report.",
	.options = option_specs,
	.json = true,
	.min_arguments = 2,
	.max_arguments = -1,
	.examples = "tomonode profile fit --phantom beads.json -c tomonode.conf -o report exam\n"
		    "tomonode profile check --phantom beads.json -c tomonode.conf exam\n",
	.files = true,
	.word = action_name,
};

/* Read the value of --fix. */
static bool fix_parameter(struct profile *p)
{
	for (int i = 0; i < SYSTEM_PARAMETERS; i++)
		if (!strcmp(p->o.value, system_parameter_names[i])) {
			p->fixed[i] = true;
			return true;
		}
	return false;
}

/* Parse the command line. Returns -1, or the exit code to return. */
static int read_options(struct profile *p, int argc, char **argv)
{
	const char *word;
	int id;

	options_begin(&p->o, &spec, argc, argv);
	p->o.into = p;
	while ((id = options_next(&p->o)) >= 0)
		if (!fix_parameter(p))
			return options_fail(
				&p->o, CODE_USAGE,
				"--fix %s: allowed: axis_height, source_axis, source_x, source_y, angle_offset, support, "
				"detector_ratio, detector_axis_y, detector_axis_height",
				p->o.value);
	if (id == OPTION_STOP)
		return p->o.code;
	word = argv[p->o.first];
	p->check = !strcmp(word, "check");
	if (!p->check && strcmp(word, "fit") != 0)
		return options_fail(&p->o, CODE_USAGE, "'%s' is not an action; allowed: fit, check", word);
	if (!p->phantom_path)
		return options_fail(&p->o, CODE_USAGE, "--phantom FILE is missing");
	if (!p->check && !p->folder)
		return options_fail(&p->o, CODE_USAGE, "-o DIR is missing");
	if (p->name && (!p->name[0] || strlen(p->name) >= CONFIG_NAME_SIZE || strspn(p->name, NAME_LETTERS) != strlen(p->name)))
		return options_fail(&p->o, CODE_USAGE, "--name %s: allowed are letters, digits, . _ -", p->name);
	return -1;
}

/* Find the exam in the files and open it. */
static int open_exam(struct profile *p, char **paths)
{
	const struct case_files *found = NULL;
	struct err err = {0};

	if (case_list_create(paths, &p->list, &err) < 0)
		return options_fail(&p->o, err.code == ENOENT ? CODE_NOT_FOUND : CODE_INPUT, "%s", err.msg);
	if (p->list->n_refused > 0)
		return options_fail(&p->o, CODE_INPUT, "%s: %s", file_name(p->list->refused[0].path), p->list->refused[0].reason);
	for (size_t i = 0; i < p->list->n; i++)
		if (p->list->cases[i].kind == &kind_dbt)
			found = &p->list->cases[i];
	if (!found || p->list->n != 1)
		return options_fail(&p->o, CODE_INPUT, "%zu case%s in %zu file%s; allowed: one tomosynthesis exam", p->list->n,
				    plural(p->list->n), p->list->n_files, plural(p->list->n_files));
	if (exam_open((const char *const *)found->paths, found->n, false, NULL, p->config, &p->exam, &err) < 0)
		return options_fail_err(&p->o, &err);
	return CODE_OK;
}

/* Restrict the new profile to the machine of the exam, with a name of its own: the profile of the model stays for other machines.
 */
static void restrict_to_machine(struct profile_conf *profile, const char *serial)
{
	size_t n = strlen(profile->name);

	snprintf(profile->serial, sizeof(profile->serial), "%s", serial);
	snprintf(profile->name + n, sizeof(profile->name) - n, "-%s", serial);
	for (char *c = profile->name + n; *c; c++)
		if (!strchr(NAME_LETTERS, *c))
			*c = '-';
}

static void name_profile(struct profile *p)
{
	struct profile_conf *profile = &p->result.profile;
	struct header h = exam_header(p->exam, 0);
	char serial[64];

	if (!profile->serial[0] && header_text(&h, TAG_DEVICE_SERIAL_NUMBER, serial, sizeof(serial), NULL) > 0)
		restrict_to_machine(profile, serial);
	if (p->name)
		snprintf(profile->name, sizeof(profile->name), "%s", p->name);
}

/* The comparison with the profile in use; NULL: a fit. */
static const struct profile_constancy *constancy_of(const struct profile *p)
{
	return p->check ? &p->constancy : NULL;
}

static int fit_profile(struct profile *p)
{
	struct progress progress;
	struct err err = {0};
	int rc;

	progress_start(&progress, !p->o.json);
	rc = profile_fit_run(p->exam, &p->phantom, p->fixed, &progress.monitor, &p->result, &err);
	progress_stop(&progress);
	if (rc < 0)
		return options_fail_err(&p->o, &err);
	if (!p->result.refused[0])
		name_profile(p);
	if (p->check)
		profile_check(&p->result, p->exam->profile, p->limit, &p->constancy);
	if (!p->folder)
		return CODE_OK;
	options_note_folder(&p->o, p->folder);
	if (folder_create(p->folder, &err) < 0 || profile_report_write(p->exam, &p->result, constancy_of(p), p->folder, &err) < 0)
		return options_fail_err(&p->o, &err);
	return CODE_OK;
}

static void print_parameters(const struct profile *p)
{
	const struct profile_result *r = &p->result;

	printf("%d views, %d beads, %d positions, residuals %.3f bins\n", r->input.views.n_views, r->input.phantom.n_beads,
	       r->input.n_points, r->fit.rms);
	for (int i = 0; i < SYSTEM_PARAMETERS; i++)
		if (r->fit.sd[i] != 0)
			printf("%-21s %10.4f +- %.4f %s (start %.4g)%s\n", system_parameter_names[i], r->fit.value[i],
			       r->fit.sd[i], system_parameter_units[i], r->input.start[i],
			       p->check && !p->constancy.change[i].passed ? "  changed" : "");
	if (r->conventions.n && r->conventions.best != 0)
		printf("the angles follow another convention than the profile says: sign %s, angle about the %s\n",
		       r->conventions.trials[r->conventions.best].sign > 0 ? "kept" : "reversed",
		       r->input.views.definition == ANGLE_ABOUT_AXIS ? "axis" : "detector");
}

/* Print the result. Returns the exit code. */
static int print_result(struct profile *p)
{
	const char *reason = p->check ? p->constancy.reason : p->result.refused;
	int code = !reason[0] ? CODE_OK : p->check ? CODE_FAILED : CODE_INPUT;
	json_t *root;

	if (!p->o.json) {
		print_parameters(p);
		if (code != CODE_OK)
			return options_fail(&p->o, (enum exit_code)code, "%s", reason);
		printf(p->check ? "passed: the profile '%s' describes the system\n" : "%s/profile.conf\n",
		       p->check ? p->exam->profile->name : p->folder);
		return CODE_OK;
	}
	root = profile_report_json(p->exam, &p->result, constancy_of(p));
	json_object_set_new(root, "ok", json_boolean(code == CODE_OK));
	json_object_set_new(root, "code", json_integer(code));
	if (code != CODE_OK)
		json_object_set_new(root, "error", json_string(reason));
	options_json(root);
	return code;
}

static int run_profile(struct profile *p, char **paths)
{
	struct err err = {0};
	int code = options_config(&p->o, p->conf_path, &p->config);

	if (code)
		return code;
	if (profile_phantom_read(p->phantom_path, &p->phantom, &err) < 0)
		return options_fail(&p->o, err.code == ENOENT ? CODE_NOT_FOUND : CODE_INPUT, "%s: %s", p->phantom_path, err.msg);
	code = open_exam(p, paths);
	if (code == CODE_OK)
		code = fit_profile(p);
	return code == CODE_OK ? print_result(p) : code;
}

int cmd_profile(int argc, char **argv)
{
	struct profile p = {.limit = LIMIT};
	int code = read_options(&p, argc, argv);

	if (code < 0)
		code = run_profile(&p, argv + p.o.first + 1);
	profile_result_clear(&p.result);
	exam_close(p.exam);
	case_list_free(p.list);
	config_free(p.config);
	return code;
}
