/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_recon.c - `tomonode recon`: reconstruct DICOM files without a running node: its options, and the order of its steps. Every
 * valid case is reconstructed; for each other one the reason is printed, and the exit code reports that there were some. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/device_names.h"
#include "node/base/folder.h"
#include "node/base/plural.h"
#include "node/command/audit_files.h"
#include "node/command/commands.h"
#include "node/command/recon_inputs.h"
#include "node/command/recon_internal.h"
#include "node/options/options.h"

static const struct option_spec option_specs[] = {
	{'c', "config", "FILE", "configuration file, applied over the embedded defaults", INTO_TEXT(struct recon, conf_path)},
	{'o', "output", "DIR", "folder for the results; created with its parents if missing", INTO_FOLDER(struct recon, out_dir)},
	{0, "report", "DIR", "also write a report of each result, an HTML file without the patient's name (tomonode report)",
	 INTO_FOLDER(struct recon, report_dir)},
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

static void refuse_import(void *ctx, const char *path, const struct err *err)
{
	/* an attribute that is not allowed is an error of the command line */
	recon_notes_refusal(ctx, err->code == EINVAL ? CODE_USAGE : options_code(err), path, err->msg);
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
	if (n == n_paths && recon_protocols_check_imports(r) >= 0)
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
	code = recon_protocols_choose(r);
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
	code = recon_protocols_check(r);
	if (code < 0)
		code = recon_cases_check_header(r);
	if (code >= 0)
		return code;
	for (size_t i = 0; i < r->list->n_refused; i++)
		recon_notes_refusal(r, CODE_INPUT, r->list->refused[i].path, r->list->refused[i].reason);
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
	recon_cases_reconstruct(r, dev);
	r->steps.dev = NULL;
	device_close(dev);
	recon_notes_audit(r);
	return recon_notes_summary(r);
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
