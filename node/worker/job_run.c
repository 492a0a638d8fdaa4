/* SPDX-License-Identifier: Apache-2.0 */
#include "node/worker/job_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "node/base/backoff.h"
#include "node/base/digest.h"
#include "node/base/folder.h"
#include "node/base/log.h"
#include "node/jobs/jobs.h"
#include "node/reconstruct/reconstruct.h"
#include "node/result/thumbnail.h"
#include "node/store/event.h"
#include "node/worker/case_check.h"

#define STATUS_EVERY 0.25    /* s between two writes of the progress file */
#define RETRY_WAIT 10.0	     /* s until the next attempt after a temporary failure */
#define SPACE_WAIT 10.0	     /* s until the next attempt after a lack of disk space; doubled each time up to SPACE_WAIT_CAP */
#define SPACE_WAIT_CAP 600.0 /* so long because each attempt costs a reconstruction */

struct job_run {
	const struct job_run_conf *conf;
	struct jobs jobs;
	const struct job_view *view;
	char out_dir[320], status[340], status_part[360];
	double status_at; /* on clock_seconds() */
	char **paths;
	size_t n_paths, capacity;
	struct err *err; /* of the iteration over the members */
	struct case_check_report check;
	bool journal_failed; /* case_check() could not write the journal */
};

static bool stopped(void *ctx)
{
	struct job_run *run = ctx;

	return run->conf->stopped(run->conf->ctx);
}

/* Write the progress file for `list` and `show`, replacing it by a rename. Errors are ignored. */
static void progress(void *ctx, const char *stage, double fraction)
{
	struct job_run *run = ctx;
	double clock = clock_seconds();
	FILE *f;

	if (clock - run->status_at < STATUS_EVERY)
		return;
	run->status_at = clock;
	run->conf->alive(run->conf->ctx);
	f = fopen(run->status_part, "we");
	if (!f)
		return;
	fprintf(f, "{\"stage\":\"%.60s\",\"fraction\":%.4f,\"time\":%.3f}\n", stage, fraction, clock_wall());
	if (fclose(f) == 0)
		(void)rename(run->status_part, run->status);
}

static int add_path(void *ctx, const struct instance_row *row, const char *detail)
{
	struct job_run *run = ctx;
	char path[400];

	(void)detail;
	if (run->n_paths == run->capacity) {
		size_t capacity = run->capacity ? 2 * run->capacity : 64;
		char **paths = realloc(run->paths, capacity * sizeof(paths[0]));

		if (!paths)
			return err_set(run->err, EAGAIN, "no memory for %zu files", capacity);
		run->paths = paths;
		run->capacity = capacity;
	}
	if (snprintf(path, sizeof(path), "%s/%s", run->conf->process->config->node.spool, row->file) >= (int)sizeof(path))
		return err_set(run->err, ENAMETOOLONG, "the path of %s in the spool is too long", row->file);
	run->paths[run->n_paths] = strdup(path);
	if (!run->paths[run->n_paths])
		return err_set(run->err, EAGAIN, "no memory for the path of %s", row->file);
	run->n_paths++;
	return 0;
}

static int prepare(struct job_run *run, struct err *err)
{
	const char *spool = run->conf->process->config->node.spool;
	char work[320];
	int ret = folder_path(spool, "work", run->view->id, work, sizeof(work), err);

	run->err = err;
	if (ret == 0)
		ret = folder_make(work, err);
	snprintf(run->status, sizeof(run->status), "%s/status", work);
	snprintf(run->status_part, sizeof(run->status_part), "%s.part", run->status);
	if (ret == 0)
		ret = folder_path(spool, "outbox", run->view->id, run->out_dir, sizeof(run->out_dir), err);
	if (ret == 0)
		ret = folder_make(run->out_dir, err);
	if (ret == 0)
		ret = folder_empty(run->out_dir, err); /* remove the files of an earlier attempt */
	if (ret == 0)
		ret = journal_each_member(run->conf->process->journal, run->view->id, add_path, run, err);
	return ret;
}

/* Record the digest of each object's file, so that a file that changes later is not sent. */
static int add_digests(const struct job_run *run, const struct reconstruct_report *r, json_t *list, struct err *err)
{
	size_t n = r->n_objects;
	char(*names)[400] = calloc(n, sizeof(names[0]));
	char(*hex)[DIGEST_SIZE] = calloc(n, sizeof(hex[0]));
	const char **paths = calloc(n, sizeof(paths[0]));
	int *codes = calloc(n, sizeof(codes[0]));
	int ret = names && hex && paths && codes ? 0 : err_set(err, EAGAIN, "no memory for %zu digests", n);

	for (size_t i = 0; ret == 0 && i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "%s/%s", run->out_dir, r->objects[i].file);
		paths[i] = names[i];
	}
	if (ret == 0)
		ret = digest_files(paths, n, 0, hex, codes, err);
	for (size_t i = 0; ret == 0 && i < n; i++)
		if (codes[i])
			ret = err_set(err, codes[i], "the result %s cannot be read: %s", r->objects[i].file, strerror(codes[i]));
		else
			json_object_set_new(json_array_get(list, i), "digest", json_string(hex[i]));
	free(names);
	free(hex);
	free(paths);
	free(codes);
	if (ret == -ENOMEM) /* no memory for these lists: temporary, unlike a plan that does not fit */
		err->code = EAGAIN;
	return ret;
}

static int describe(const struct job_run *run, struct reconstruct_report *r, json_t **ret_detail, struct err *err)
{
	char folder[40];
	json_t *detail, *seconds;
	double begun = clock_seconds();
	int ret;

	snprintf(folder, sizeof(folder), "outbox/%lld", (long long)run->view->id);
	detail = reconstruct_objects(r, folder);
	ret = add_digests(run, r, json_object_get(detail, "objects"), err);
	if (ret < 0) {
		json_decref(detail);
		return ret;
	}
	r->seconds_write += clock_seconds() - begun;
	r->seconds_total += clock_seconds() - begun;
	seconds = reconstruct_seconds(r);
	json_object_set_new(seconds, "check", json_real(run->check.seconds));
	json_object_update_new(detail, json_pack("{s:o, s:s, s:i, s:[iii], s:[fff], s:I, s:o}", "device",
						 event_json_text(r->device), "profile", r->profile, "views", r->n_views, "voxels",
						 r->n[0], r->n[1], r->n[2], "voxel_mm", r->voxel[0], r->voxel[1], r->voxel[2],
						 "bytes_device", (json_int_t)r->bytes_device, "seconds", seconds));
	json_object_update(detail, r->details);
	if (r->warnings[0])
		json_object_set_new(detail, "warnings", event_json_text(r->warnings));
	*ret_detail = detail;
	return 0;
}

/* Return the event for an error, with its detail. */
static enum job_event event_of_error(const struct job_run *run, const struct err *why, json_t **ret_detail)
{
	double now = clock_wall();

	switch (why->code) {
	case EBADMSG:
	case ENOTSUP:
	case ENOKEY:
	case EFBIG: /* more than the readers support */
	case ENOTUNIQ:
		*ret_detail = json_pack("{s:o, s:b}", "reason", event_json_text(why->msg), "patients", why->code == ENOTUNIQ);
		if (run->check.damaged > 0)
			json_object_set_new(*ret_detail, "damaged", json_integer((json_int_t)run->check.damaged));
		return EVENT_HELD;
	case ENOMEM:
		*ret_detail = json_pack("{s:o}", "reason", event_json_text(why->msg));
		return EVENT_FAILED;
	case ENOSPC:
	case EDQUOT:
		*ret_detail = json_pack("{s:o, s:b, s:f}", "reason", event_json_text(why->msg), "space", 1, "next",
					now + backoff_seconds(run->view->attempts, SPACE_WAIT, SPACE_WAIT_CAP));
		return EVENT_INTERRUPTED;
	default:
		*ret_detail = json_pack("{s:o, s:f}", "reason", event_json_text(why->msg), "next", now + RETRY_WAIT);
		return EVENT_CRASHED;
	}
}

static int reconstruct(struct job_run *run, struct reconstruct_report *ret_report, struct err *err)
{
	const struct config *c = run->conf->process->config;
	const struct protocol_conf *protocol = config_protocol(c, run->view->protocol);
	struct monitor monitor = {.ctx = run, .progress = progress, .cancelled = stopped};
	struct case_decision decision = {.as_is = run->view->members.as_is,
					 .patient = {run->view->same_patient > 0, run->view->header}};
	int ret;

	if (!protocol)
		return err_set(err, ENOKEY, "protocol '%s' is no longer in the configuration", run->view->protocol);
	ret = prepare(run, err);
	if (ret == 0)
		ret = case_check(run->conf->process->journal, c->node.spool, run->view->id, clock_wall(), &monitor, &run->check,
				 &run->journal_failed, err);
	if (ret < 0)
		return ret;
	return reconstruct_case(c, protocol, run->conf->dev, run->conf->cache, (const char *const *)run->paths, run->n_paths,
				&decision, run->out_dir, &monitor, ret_report, err);
}

static enum job_run_end append_outcome(struct job_run *run, enum job_event event, json_t *detail, struct err *err)
{
	int ret = event_append(run->conf->process->journal, run->view->id, event, detail, clock_wall(), err);

	if (ret == -ESTALE)
		return JOB_RUN_NOT_RUNNING; /* the job was cancelled during the last step */
	if (ret < 0)
		return JOB_RUN_JOURNAL_FAILED;
	work_process_notify(run->conf->process);
	return event == EVENT_RECONSTRUCTED ? JOB_RUN_RECONSTRUCTED : JOB_RUN_REFUSED;
}

/* Write the thumbnail for the status page. Errors are ignored. */
static void make_thumbnail(const struct job_run *run, const struct reconstruct_report *r)
{
	size_t n = r->is_series ? r->n_objects : 1; /* the further objects were computed from the slices */
	const char **files = calloc(n ? n : 1, sizeof(files[0]));
	struct err why = {0};

	for (size_t i = 0; files && i < n; i++)
		files[i] = r->objects[i].file;
	if (!files || thumbnail_make(run->out_dir, files, n, &why) < 0)
		log_event(LOG_WARNING, "thumbnail-not-made", "job=%lld reason=%s", (long long)run->view->id,
			  log_quote(files ? why.msg : "no memory"));
	free(files);
}

static enum job_run_end work(struct job_run *run, struct err *err)
{
	struct reconstruct_report report = {0};
	enum job_event event = EVENT_RECONSTRUCTED;
	enum job_run_end end;
	struct err why = {0};
	json_t *detail = NULL;
	int ret = reconstruct(run, &report, &why);

	if (stopped(run) || ret == -ECANCELED) {
		end = JOB_RUN_STOPPED;
	} else if (ret < 0 && why.code == EHWPOISON) {
		*err = why;
		end = JOB_RUN_DEVICE_FAILED;
	} else if (run->journal_failed) {
		*err = why;
		end = JOB_RUN_JOURNAL_FAILED;
	} else {
		if (ret == 0)
			ret = describe(run, &report, &detail, &why);
		if (ret < 0)
			event = event_of_error(run, &why, &detail);
		else if (report.warnings[0])
			log_event(LOG_WARNING, "result-warning", "job=%lld warnings=%s", (long long)run->view->id,
				  log_quote(report.warnings));
		end = append_outcome(run, event, detail, err);
	}
	if (end == JOB_RUN_RECONSTRUCTED && run->conf->process->config->status.enabled &&
	    run->conf->process->config->status.thumbnails)
		make_thumbnail(run, &report);
	reconstruct_report_clear(&report);
	/* Remove the output that will not be sent. After JOB_RUN_JOURNAL_FAILED it stays, and the next attempt removes it. */
	if (end != JOB_RUN_RECONSTRUCTED && end != JOB_RUN_JOURNAL_FAILED && run->out_dir[0] &&
	    folder_remove(run->out_dir, &why) < 0)
		log_event(LOG_WARNING, "outbox-not-removed", "reason=%s", log_quote(why.msg));
	return end;
}

enum job_run_end job_run(const struct job_run_conf *conf, struct err *err)
{
	struct job_run run = {.conf = conf};
	enum job_run_end end;

	if (jobs_refresh(&run.jobs, conf->process->journal, conf->job, err) < 0) {
		end = JOB_RUN_JOURNAL_FAILED;
	} else {
		run.view = jobs_find(&run.jobs, conf->job);
		end = run.view && run.view->state == JOB_RUNNING ? work(&run, err) : JOB_RUN_NOT_RUNNING;
	}
	for (size_t i = 0; i < run.n_paths; i++)
		free(run.paths[i]);
	free(run.paths);
	jobs_clear(&run.jobs);
	return end;
}
