/* SPDX-License-Identifier: Apache-2.0 */
#include "node/worker/case_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/json_get.h"
#include "node/base/log.h"
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

static json_t *describe_run(const struct case_run *run, const struct reconstruct_report *r)
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
	if (r->pictures)
		json_object_set(detail, CASE_PICTURES, r->pictures);
	if (r->warnings[0])
		json_object_set_new(detail, "warnings", event_json_text(r->warnings));
	return detail;
}

/* Say how often a correction was computed, and how often found in the cache: for each time frame, gate or bed. */
static void log_correction(int64_t job, const char *correction, json_t *step)
{
	const json_t *cached = json_object_get(step, "cached");
	double seconds = 0;
	const char *name;
	json_t *value;

	if (!cached) /* not made */
		return;
	json_object_foreach(step, name, value) if (!strncmp(name, "seconds", 7)) seconds += json_number_value(value);
	log_event(LOG_INFO, "correction-made", "job=%lld correction=%s computed=%lld cached=%lld seconds=%.3f", (long long)job,
		  correction, (long long)json_get_integer(step, "computed"), (long long)json_integer_value(cached), seconds);
}

static void log_corrections(int64_t job, json_t *details)
{
	const char *name;
	json_t *kind, *step;

	json_object_foreach(details, name, kind) json_object_foreach(json_object_get(kind, "corrections"), name, step)
		log_correction(job, name, step);
}

static void log_damage(struct pet_cache *cache)
{
	int n = pet_cache_damaged(cache);

	if (n > 0)
		log_event(LOG_WARNING, "cache-damaged",
			  "entries=%d reason=\"their content in memory has changed; computed again: "
			  "check the memory of this machine\"",
			  n);
}

/* ---- what is kept ---- */

void case_kept_clear(struct case_kept *kept)
{
	reconstruct_kept_clear(&kept->data);
	case_order_clear(&kept->order);
	*kept = (struct case_kept){0};
}

static bool same_file(const struct instance_row *a, const struct instance_row *b)
{
	return !strcmp(a->digest, b->digest) && !strcmp(a->file, b->file) && !strcmp(a->sop_instance, b->sop_instance) &&
	       !strcmp(a->sop_class, b->sop_class) && !strcmp(a->transfer_syntax, b->transfer_syntax);
}

/* Are the files of the order those that are kept, each with the digest with which it was verified, in the same order, and was the
 * same decided about them? */
static bool is_kept(const struct case_kept *kept, const struct config *config, const struct case_order *order)
{
	const struct case_order *of = &kept->order;

	if (!kept->data.work || kept->config != config || of->n_files != order->n_files || of->as_is != order->as_is ||
	    of->same_patient != order->same_patient || strcmp(of->header, order->header) != 0)
		return false;
	for (size_t i = 0; i < order->n_files; i++)
		if (!same_file(&of->files[i], &order->files[i]))
			return false;
	return true;
}

/* After a success: remember of which case the data are. */
static void remember_case(const struct case_run_conf *conf, const struct case_order *order)
{
	size_t bytes = order->n_files * sizeof(order->files[0]);
	struct case_kept *kept = conf->kept;

	if (!kept->data.work) {
		log_event(LOG_DEBUG, "images-not-kept", "job=%lld reason=\"no memory for them beside the plan\"",
			  (long long)order->job);
		return;
	}
	case_order_clear(&kept->order);
	kept->order = *order;
	kept->order.files = malloc(bytes);
	kept->config = conf->config;
	if (kept->order.files)
		memcpy(kept->order.files, order->files, bytes);
	else
		case_kept_clear(kept);
}

/* ---- the case ---- */

/* Compute the digest of the digests of all files. "": one has none, or no memory. */
static void digest_of(const struct case_order *order, char ret_hex[DIGEST_SIZE])
{
	struct digest *d = digest_create();
	bool known = d;

	for (size_t i = 0; known && i < order->n_files; i++) {
		const char *of = order->files[i].digest;

		known = of[0] != '\0';
		digest_add(d, of, strlen(of) + 1);
	}
	ret_hex[0] = '\0';
	if (known)
		digest_end(d, ret_hex);
	digest_free(d);
}

static int check_and_reconstruct(struct case_run *run, struct reconstruct_report *ret_report, struct err *err)
{
	const struct case_run_conf *conf = run->conf;
	const struct case_order *order = run->order;
	struct case_decision decision = {.as_is = order->as_is,
					 .steps = conf->steps,
					 .place = order->place,
					 .patient = {order->same_patient, order->header[0] ? order->header : NULL}};
	struct reconstruct_kept *kept = conf->kept ? &conf->kept->data : NULL;
	int ret = kept && kept->work ? 0 : case_check_files(conf->folder, order, conf->monitor, &run->check, err);

	if (ret < 0)
		return ret;
	digest_of(order, decision.content);
	config_describe_changes(config_protocol(conf->config, order->protocol), &run->protocol, decision.place.changed,
				sizeof(decision.place.changed));
	if (kept)
		kept->keep = order->keep;
	return reconstruct_case(conf->config, &run->protocol, conf->dev, conf->cache, kept, (const char *const *)run->paths,
				run->n_paths, &decision, conf->out_dir, conf->monitor, ret_report, err);
}

static int reconstruct_order(struct case_run *run, struct reconstruct_report *ret_report, struct err *err)
{
	const struct case_run_conf *conf = run->conf;
	const struct case_order *order = run->order;
	const struct protocol_conf *protocol = config_protocol(conf->config, order->protocol);
	bool again = conf->kept && is_kept(conf->kept, conf->config, order);
	int ret;

	if (conf->kept && !again) {
		case_kept_clear(conf->kept);
		monitor_reserve(conf->monitor, 0, 0); /* frees the reservation */
	}
	if (!protocol)
		return err_set(err, ENOKEY, "protocol '%s' is no longer in the configuration", order->protocol);
	run->protocol = *protocol;
	ret = err_remap(other_result_apply(&run->protocol, order->settings, err), EINVAL, ENOKEY, err);
	if (ret == 0)
		ret = make_paths(run, err);
	if (ret == 0)
		ret = check_and_reconstruct(run, ret_report, err);
	if (again && ret == -ESTALE) { /* no memory beside what was kept: as if nothing had been */
		case_kept_clear(conf->kept);
		monitor_reserve(conf->monitor, 0, 0);
		*err = (struct err){0};
		ret = check_and_reconstruct(run, ret_report, err);
	}
	return ret;
}

void case_run(const struct case_run_conf *conf, const struct case_order *order, struct case_outcome *ret_outcome)
{
	struct case_run run = {.conf = conf, .order = order};
	struct reconstruct_report report = {0};
	struct case_outcome outcome = {0};
	int ret = reconstruct_order(&run, &report, &outcome.why);

	if (ret == 0) {
		outcome.detail = describe_run(&run, &report);
		log_corrections(order->job, report.details);
	}
	log_damage(conf->cache);
	if (conf->kept && ret == 0 && order->keep)
		remember_case(conf, order);
	else if (conf->kept)
		case_kept_clear(conf->kept);
	if (ret < 0 && outcome.why.code == 0)
		err_set(&outcome.why, EIO, "the reconstruction failed without a reason");
	outcome.damaged = run.check.damaged;
	reconstruct_report_clear(&report);
	for (size_t i = 0; i < run.n_paths; i++)
		free(run.paths[i]);
	free(run.paths);
	*ret_outcome = outcome;
}
