/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_report.c - `tomonode report`: write reports of reconstructed objects as HTML files. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/command/audit_files.h"
#include "node/command/commands.h"
#include "node/options/options.h"
#include "node/report/report_files.h"
#include "node/tomo/tomo_slices.h"

enum { OPTION_VOXEL = OPTION_LONG };

struct request {
	const char *folder, *config_path, *series; /* NULL: not given */
	struct report_conf conf;
};

static const struct option_spec option_specs[] = {
	{'o', "output", "DIR",
	 "folder for the reports; created with its parents if missing. Reports of the same name are replaced",
	 INTO_FOLDER(struct request, folder)},
	{0, "patient", NULL, "show the patient's name, ID, birth date, sex and age, and the accession number",
	 INTO_ON(struct request, conf.patient)},
	{0, "series", "NAME",
	 "of several series: those whose name (as `tomonode export` writes it) contains NAME, or with this UID",
	 INTO_TEXT(struct request, series)},
	{'c', "config", "FILE", "configuration file: profiles of Hologic SCO objects", INTO_TEXT(struct request, config_path)},
	{OPTION_VOXEL, "voxel", "COLUMN,ROW,SLICE",
	 "size of the voxels of a Hologic SCO object with slices, whose header does not have it: distances in mm, 0.01 to 20"},
	{0},
};

static const struct command_spec spec = {
	.name = "report",
	.usage = "-o DIR [--patient] [--series NAME] [-c FILE] [--voxel COLUMN,ROW,SLICE] [--json] OBJECT...",
	.summary = "Write a report of each tomosynthesis, PET or CT series: one HTML file with pictures, figures, parameters, "
		   "warnings.",
	.text = "OBJECT: files or folders (recursive); files of other kinds are ignored. The reports need nothing else: no "
		"script, no\n"
		"network. docs/report.md describes their content. They show images of the patient; without --patient they do "
		"not\n"
		"name the patient. If a report cannot be made, the reason is printed and the others are still written.",
	.options = option_specs,
	.json = true,
	.min_arguments = 1,
	.max_arguments = -1,
	.examples = "tomonode report -o report result\n",
	.files = true,
};

static int write_all(struct options *o, const struct series_files *g, const struct report_conf *conf, const char *folder)
{
	json_t *written = json_array(), *refused = json_array();
	int code = CODE_OK;

	for (size_t i = 0; i < g->n; i++) {
		char *path = NULL;
		struct err err = {0};

		if (report_volume_write(&g->list[i], conf, folder, &path, &err) < 0) {
			code = code ? code : (int)options_code(&err);
			fprintf(stderr, "tomonode report: %s\n", err.msg);
			json_array_append_new(refused, json_pack("{s:s, s:s}", "series", g->list[i].series, "reason", err.msg));
			continue;
		}
		if (!o->json)
			printf("%s\n", path);
		json_array_append_new(written, json_pack("{s:s, s:s, s:I}", "file", path, "series", g->list[i].series, "objects",
							 (json_int_t)g->list[i].n));
		free(path);
	}
	if (o->json)
		options_json(json_pack("{s:b, s:i, s:O, s:O, s:I}", "ok", !code, "code", code, "reports", written, "refused",
				       refused, "passed_over", (json_int_t)g->n_passed));
	json_decref(written);
	json_decref(refused);
	return code;
}

int cmd_report(int argc, char **argv)
{
	struct request r = {.folder = NULL};
	struct series_files groups = {0};
	struct config *config = NULL;
	struct err err = {0};
	struct options o;
	double voxel[3];
	int id, code;

	options_begin(&o, &spec, argc, argv);
	o.into = &r;
	while ((id = options_next(&o)) >= 0) {
		if (!tomo_slices_voxel(o.value, voxel))
			return options_refuse(&o, id);
		r.conf.voxel = voxel;
	}
	if (id == OPTION_STOP)
		return o.code;
	if (!r.folder)
		return options_fail(&o, CODE_USAGE, "-o DIR is missing");
	code = options_config(&o, r.config_path, &config);
	if (code != CODE_OK)
		return code;
	r.conf.config = config;
	audit_start(&config->node, AUDIT_DIRECT, "report");
	if (series_files_find(argv + o.first, false, &groups, &err) < 0)
		code = options_fail(&o, err.code == ENOENT ? CODE_NOT_FOUND : CODE_INPUT, "%s", err.msg);
	else if (series_files_check(&groups, argv + o.first, false, &err) < 0)
		code = options_fail_err(&o, &err);
	else if (r.series && series_files_choose(&groups, r.series, &err) < 0)
		code = options_fail(&o, CODE_NOT_FOUND, "%s", err.msg);
	else
		code = write_all(&o, &groups, &r.conf, r.folder);
	audit_files_exported(&groups, r.folder, code);
	series_files_clear(&groups);
	config_free(config);
	return code;
}
