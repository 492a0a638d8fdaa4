/* cmd_recon.c - `tomonode recon`: from DICOM files to results, without a node. Every case that can be reconstructed is; the
 * others get a sentence each, and the exit code says that there were some. */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "node/case_files.h"
#include "node/device_names.h"
#include "node/options.h"
#include "node/progress.h"
#include "node/reconstruct.h"

#define ASSIGNMENTS_MAX 64

enum { OPTION_PROTOCOL = OPTION_LONG, OPTION_DEVICE, OPTION_SET };

static const struct option_spec option_specs[] = {
	{'c', "config", "FILE", "configuration laid over the embedded defaults"},
	{'o', "output", "DIR", "folder for the results; made when it is missing"},
	{OPTION_PROTOCOL, "protocol", "NAME",
	 "protocol of the configuration; default: that of the first route for tomosynthesis"},
	{OPTION_DEVICE, "device", "SPEC",
	 "auto, cpu, cpu:THREADS, cuda or cuda:N; default: the first of node.device that can be opened"},
	{OPTION_SET, "set", "KEY=VALUE", "change one key of the protocol, as in the configuration; may be repeated"},
	{0},
};

static const struct command_spec spec = {
	.name = "recon",
	.usage = "[-c FILE] [--protocol NAME] [--device SPEC] [--set KEY=VALUE]... -o DIR PATH...",
	.summary = "Reconstruct tomosynthesis exams out of DICOM files or folders (recursive), one object for each view.",
	.text = "Files are grouped into cases by study, series, laterality, view and frame of reference. Files that are no\n"
		"DICOM are ignored. A case that is refused gets a sentence; the others are reconstructed all the same.",
	.options = option_specs,
	.json = true,
	.min_arguments = 1,
	.max_arguments = -1,
};

struct recon {
	struct options o;
	const char *conf_path, *out_dir, *protocol_name, *device;
	const char *assignments[ASSIGNMENTS_MAX];
	int n_assignments;
	struct config *config;
	struct protocol_conf protocol;
	struct case_list *list;
	json_t *cases, *refused;
	int code; /* of the first refusal */
};

static int read_options(struct recon *r, int argc, char **argv)
{
	int id;

	options_begin(&r->o, &spec, argc, argv);
	while ((id = options_next(&r->o)) >= 0) {
		if (id == 'c')
			r->conf_path = r->o.value;
		else if (id == 'o')
			r->out_dir = r->o.value;
		else if (id == OPTION_PROTOCOL)
			r->protocol_name = r->o.value;
		else if (id == OPTION_DEVICE)
			r->device = r->o.value;
		else if (id == OPTION_SET && r->n_assignments < ASSIGNMENTS_MAX)
			r->assignments[r->n_assignments++] = r->o.value;
	}
	if (id == OPTION_STOP)
		return r->o.code;
	if (!r->out_dir)
		return options_fail(&r->o, CODE_USAGE, "-o DIR is missing");
	return -1;
}

/* The protocol: by name, else that of the first route, else the first one; then what --set says. */
static int choose_protocol(struct recon *r)
{
	const struct route_conf *route = config_route(r->config, "dbt", "");
	const char *name = r->protocol_name ? r->protocol_name : route ? route->protocol : NULL;
	const struct protocol_conf *p = name			 ? config_protocol(r->config, name)
					: r->config->n_protocols ? &r->config->protocols[0]
								 : NULL;
	struct err err = {0};

	if (!p)
		return options_fail(&r->o, CODE_NOT_FOUND, "no protocol '%s'", name ? name : "");
	r->protocol = *p;
	for (int i = 0; i < r->n_assignments; i++)
		if (config_set(&r->protocol, r->assignments[i], &err) < 0)
			return options_fail(&r->o, CODE_USAGE, "--set %s: %s", r->assignments[i], err.msg);
	return -1;
}

static void note_refusal(struct recon *r, int code, const char *who, const char *reason)
{
	char what[PATH_MAX]; /* a file's name need not be UTF-8, JSON must be */

	snprintf(what, sizeof(what), "%s", who);
	err_clean(what);
	fprintf(stderr, "tomonode recon: %s: %s\n", what, reason);
	json_array_append_new(r->refused, json_pack("{s:s, s:s, s:i}", "what", what, "reason", reason, "code", code));
	if (!r->code)
		r->code = code;
}

static void note_result(struct recon *r, const struct case_files *c, const struct reconstruct_report *p)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:[i,i,i], s:[f,f,f], s:I}", "study", c->study,
			      "source_series", c->series, "laterality", c->laterality, "view", c->view, "device", p->device,
			      "profile", p->profile, "projections", p->n_views, "size", p->n[0], p->n[1], p->n[2], "voxel_mm",
			      p->voxel[0], p->voxel[1], p->voxel[2], "device_bytes", (json_int_t)p->bytes_device);

	json_object_update_new(o, reconstruct_objects(p, ""));
	json_object_set_new(o, "protocol", json_string(r->protocol.name));
	json_object_set_new(o, "seconds", reconstruct_seconds(p));
	json_object_set_new(o, "bins", reconstruct_bins(p));
	json_array_append_new(r->cases, o);
	if (r->o.json)
		return;
	printf("%s %s: %d projections, %d x %d x %d voxels of %.3g x %.3g x %.3g mm, %.2f s "
	       "(read %.2f, reconstruct %.2f, write %.2f): %s/%s",
	       c->laterality, c->view, p->n_views, p->n[0], p->n[1], p->n[2], p->voxel[0], p->voxel[1], p->voxel[2],
	       p->seconds_total, p->seconds_read + p->seconds_prepare + p->seconds_upload, p->seconds_reconstruct,
	       p->seconds_download + p->seconds_write, r->out_dir, p->result.objects[0].file);
	for (size_t i = 1; i < p->result.n_objects; i++)
		printf(", %s", p->result.objects[i].file);
	printf("\n");
}

static void reconstruct_all(struct recon *r, struct device *dev)
{
	struct progress progress;

	for (size_t i = 0; i < r->list->n && r->code != CODE_CANCELLED; i++) {
		const struct case_files *c = &r->list->cases[i];
		struct reconstruct_report report = {0};
		struct err err = {0};
		char who[96];
		int rc;

		progress_start(&progress, !r->o.json);
		rc = reconstruct_case(r->config, &r->protocol, dev, (const char *const *)c->paths, c->n, r->out_dir,
				      &progress.monitor, &report, &err);
		progress_stop(&progress);
		snprintf(who, sizeof(who), "case %zu (%s %s)", i + 1, c->laterality[0] ? c->laterality : "?",
			 c->view[0] ? c->view : "?");
		if (rc < 0)
			note_refusal(r, options_code(&err), who, err.msg);
		else
			note_result(r, c, &report);
	}
}

static int summary(struct recon *r)
{
	const struct case_list *l = r->list;

	if (r->o.json)
		options_json(json_pack("{s:b, s:i, s:O, s:O, s:I, s:I, s:I, s:I}", "ok", !r->code, "code", r->code, "cases",
				       r->cases, "refused", r->refused, "files", (json_int_t)l->n_files, "not_dicom",
				       (json_int_t)l->n_other, "not_projections", (json_int_t)l->n_ignored, "duplicates",
				       (json_int_t)l->n_duplicates));
	else if (l->n_other || l->n_ignored || l->n_duplicates)
		printf("ignored: %zu files that are no DICOM, %zu DICOM objects that are no projections, %zu duplicates\n",
		       l->n_other, l->n_ignored, l->n_duplicates);
	return r->code;
}

static int run(struct recon *r, char **paths)
{
	struct device *dev = NULL;
	struct err err = {0};
	int code = options_config(&r->o, r->conf_path, &r->config);

	if (code)
		return code;
	code = choose_protocol(r);
	if (code >= 0)
		return code;
	if (case_list_create(paths, &r->list, &err) < 0)
		return options_fail(&r->o, CODE_INPUT, "%s", err.msg);
	r->cases = json_array();
	r->refused = json_array();
	for (size_t i = 0; i < r->list->n_refused; i++)
		note_refusal(r, CODE_INPUT, r->list->refused[i].path, r->list->refused[i].reason);
	if (r->list->n == 0 && r->list->n_refused == 0)
		return options_fail(&r->o, CODE_INPUT, "no projections in %zu files (%zu are no DICOM)", r->list->n_files,
				    r->list->n_other);
	if (device_names_open(r->device ? r->device : r->config->node.device, &dev, &err) < 0)
		return options_fail(&r->o, CODE_DEVICE, "%s", err.msg);
	reconstruct_all(r, dev);
	device_close(dev);
	return summary(r);
}

int cmd_recon(int argc, char **argv)
{
	struct recon r = {0};
	int code = read_options(&r, argc, argv);

	if (code < 0)
		code = run(&r, argv + r.o.first);
	json_decref(r.cases);
	json_decref(r.refused);
	case_list_free(r.list);
	config_free(r.config);
	return code;
}
