/* SPDX-License-Identifier: Apache-2.0 */
#include "node/worker/case_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/reconstruct/reconstruct.h"
#include "node/store/event.h"
#include "node/worker/case_check.h"

struct case_run {
	const struct case_run_conf *conf;
	const struct case_order *order;
	struct protocol_conf protocol; /* with the settings of the order */
	char **paths;
	size_t n_paths;
	struct case_check_report check;
};

static int make_paths(struct case_run *run, struct err *err)
{
	size_t n = run->order->n_files;
	char path[500];

	run->paths = calloc(n ? n : 1, sizeof(run->paths[0]));
	if (!run->paths)
		return err_set(err, EAGAIN, "no memory for %zu files", n);
	for (; run->n_paths < n; run->n_paths++) {
		const char *file = run->order->files[run->n_paths].file;

		if (snprintf(path, sizeof(path), "%s/%s", run->conf->folder, file) >= (int)sizeof(path))
			return err_set(err, ENAMETOOLONG, "the path of %s in the spool is too long", file);
		run->paths[run->n_paths] = strdup(path);
		if (!run->paths[run->n_paths])
			return err_set(err, EAGAIN, "no memory for the path of %s", file);
	}
	return 0;
}

/* Record the digest of each object's file, so that a file that changes later is not sent. */
static void add_digests(const struct reconstruct_report *r, json_t *list)
{
	for (size_t i = 0; i < r->n_objects; i++)
		json_object_set_new(json_array_get(list, i), "digest", json_string(r->objects[i].digest));
}

static json_t *describe(const struct case_run *run, const struct reconstruct_report *r)
{
	char folder[40];
	json_t *detail, *seconds;

	snprintf(folder, sizeof(folder), "outbox/%lld", (long long)run->order->job);
	detail = reconstruct_objects(r, folder);
	add_digests(r, json_object_get(detail, "objects"));
	seconds = reconstruct_seconds(r);
	json_object_set_new(seconds, "wait", json_real(r->seconds_wait));
	json_object_set_new(seconds, "check", json_real(run->check.seconds));
	json_object_update_new(detail, json_pack("{s:o, s:s, s:i, s:[iii], s:[fff], s:I, s:o}", "device",
						 event_json_text(r->device), "profile", r->profile, "views", r->n_views, "voxels",
						 r->n[0], r->n[1], r->n[2], "voxel_mm", r->voxel[0], r->voxel[1], r->voxel[2],
						 "bytes_device", (json_int_t)r->bytes_device, "seconds", seconds));
	json_object_update(detail, r->details);
	if (r->warnings[0])
		json_object_set_new(detail, "warnings", event_json_text(r->warnings));
	return detail;
}

static int reconstruct(struct case_run *run, struct reconstruct_report *ret_report, struct err *err)
{
	const struct case_run_conf *conf = run->conf;
	const struct case_order *order = run->order;
	const struct protocol_conf *found = config_protocol(conf->config, order->protocol);
	const struct case_decision decision = {.as_is = order->as_is,
					       .place = order->place,
					       .patient = {order->same_patient, order->header[0] ? order->header : NULL}};
	int ret;

	if (!found)
		return err_set(err, ENOKEY, "protocol '%s' is no longer in the configuration", order->protocol);
	run->protocol = *found;
	ret = err_remap(redo_apply_settings(&run->protocol, order->settings, err), EINVAL, ENOKEY, err);
	if (ret == 0)
		ret = make_paths(run, err);
	if (ret == 0)
		ret = case_check_files(conf->folder, order, conf->monitor, &run->check, err);
	if (ret < 0)
		return ret;
	return reconstruct_case(conf->config, &run->protocol, conf->dev, conf->cache, (const char *const *)run->paths,
				run->n_paths, &decision, conf->out_dir, conf->monitor, ret_report, err);
}

void case_run(const struct case_run_conf *conf, const struct case_order *order, struct case_outcome *ret_outcome)
{
	struct case_run run = {.conf = conf, .order = order};
	struct reconstruct_report report = {0};
	struct case_outcome outcome = {0};
	int ret = reconstruct(&run, &report, &outcome.why);

	if (ret == 0)
		outcome.detail = describe(&run, &report);
	if (ret < 0 && outcome.why.code == 0)
		err_set(&outcome.why, EIO, "the reconstruction failed without a reason");
	outcome.damaged = run.check.damaged;
	reconstruct_report_clear(&report);
	for (size_t i = 0; i < run.n_paths; i++)
		free(run.paths[i]);
	free(run.paths);
	*ret_outcome = outcome;
}
