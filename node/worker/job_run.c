/* SPDX-License-Identifier: Apache-2.0 */
#include "node/worker/job_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "node/base/backoff.h"
#include "node/base/folder.h"
#include "node/base/log.h"
#include "node/base/progress.h"
#include "node/format/correction_pictures.h"
#include "node/jobs/jobs.h"
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
	char stage[64];	  /* of the progress, since: */
	double stage_at;
	struct case_order order;
	struct case_outcome outcome;
	bool journal_failed; /* the journal could not be read or written before the outcome */
};

static bool is_stopped(void *ctx)
{
	struct job_run *run = ctx;

	return run->conf->stopped(run->conf->ctx);
}

/* Write the progress file for `list` and `show`, replacing it by a rename. Errors are ignored. */
static void write_progress(void *ctx, const char *stage, double fraction)
{
	struct job_run *run = ctx;
	double clock = clock_seconds(), left;
	FILE *f;

	if (strncmp(run->stage, stage, sizeof(run->stage) - 1) != 0) {
		snprintf(run->stage, sizeof(run->stage), "%s", stage);
		run->stage_at = clock;
	}
	if (clock - run->status_at < STATUS_EVERY)
		return;
	run->status_at = clock;
	run->conf->alive(run->conf->ctx);
	f = fopen(run->status_part, "we");
	if (!f)
		return;
	fprintf(f, "{\"stage\":\"%.60s\",\"fraction\":%.4f,\"time\":%.3f", stage, fraction, clock_wall());
	left = progress_left(clock - run->stage_at, fraction);
	if (left >= 0)
		fprintf(f, ",\"left\":%.1f", left);
	fputs("}\n", f);
	if (fclose(f) == 0)
		(void)rename(run->status_part, run->status);
}

/* Make the folders of the attempt. EROFS: no folder can be made, which is no fault of the case. */
static int make_folders(struct job_run *run, struct err *err)
{
	const char *spool = run->conf->process->config->node.spool;
	char work[320];
	int ret = folder_path(spool, "work", run->view->id, work, sizeof(work), err);

	if (ret == 0)
		ret = folder_make(work, err);
	snprintf(run->status, sizeof(run->status), "%s/status", work);
	snprintf(run->status_part, sizeof(run->status_part), "%s.part", run->status);
	if (ret == 0)
		ret = folder_path(spool, "outbox", run->view->id, run->out_dir, sizeof(run->out_dir), err);
	if (ret == 0)
		ret = folder_make(run->out_dir, err);
	if (ret == 0 && !run->conf->adopted)
		ret = folder_empty(run->out_dir, err); /* remove the files of an earlier attempt */
	return ret < 0 && ret != -ENOSPC ? err_remap(ret, -ret, EROFS, err) : ret;
}

static int prepare_run(struct job_run *run, struct err *err)
{
	int ret = make_folders(run, err);

	if (ret == 0)
		ret = case_order_read(run->conf->process->journal, run->view, &run->order, err);
	if (ret == 0) {
		ret = case_check_forget(run->conf->process->journal, &run->order, err);
		run->journal_failed = ret < 0;
	}
	return ret;
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
		if (run->outcome.damaged > 0)
			json_object_set_new(*ret_detail, "damaged", json_integer((json_int_t)run->outcome.damaged));
		return EVENT_HELD;
	case ECHILD: /* a step whose failure is that of the case */
	case ENOMEM:
		*ret_detail = json_pack("{s:o}", "reason", event_json_text(why->msg));
		return EVENT_FAILED;
	case ENOSPC:
	case EDQUOT:
	case EROFS: /* of the disk and its folders, not of the case: waited for, like space */
	case EACCES:
	case EPERM:
		*ret_detail = json_pack("{s:o, s:b, s:f}", "reason", event_json_text(why->msg), "space", 1, "next",
					now + backoff_seconds(run->view->attempts, SPACE_WAIT, SPACE_WAIT_CAP));
		return EVENT_INTERRUPTED;
	default:
		*ret_detail = json_pack("{s:o, s:f}", "reason", event_json_text(why->msg), "next", now + RETRY_WAIT);
		return EVENT_CRASHED;
	}
}

/* The outcome says that files differ from those received: verify those in the spool, and mark the damaged ones in the journal. */
static void mark_damaged(struct job_run *run, const struct monitor *monitor)
{
	struct work_process *process = run->conf->process;
	struct case_check_report report = {0};
	struct err why = {0};
	int ret = case_check(process->journal, process->config->node.spool, &run->order, clock_wall(), monitor, &report,
			     &run->journal_failed, &why);

	if (ret == 0)
		err_set(&why, EIO, "files differed from those received when they were read first, and no longer do");
	run->outcome.why = why;
	run->outcome.damaged = report.damaged;
}

static void compute_job(struct job_run *run)
{
	struct monitor monitor = {.ctx = run, .progress = write_progress, .cancelled = is_stopped};

	if (prepare_run(run, &run->outcome.why) < 0)
		return;
	run->conf->compute(run->conf->ctx, &run->order, run->out_dir, &monitor, &run->outcome);
	if (run->outcome.damaged > 0 && run->outcome.why.code == EBADMSG)
		mark_damaged(run, &monitor);
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

/* Write the picture for the status page. Errors are ignored. */
static void make_thumbnail(const struct job_run *run)
{
	const json_t *objects = json_object_get(run->outcome.detail, "objects");
	const char *kind = json_string_value(json_object_get(json_array_get(objects, 0), "kind"));
	/* After the slices of one object there may be objects computed from them. */
	size_t n = kind && !strcmp(kind, "slice") ? json_array_size(objects) : 1;
	const char **files = calloc(n, sizeof(files[0]));
	struct err why = {0};

	for (size_t i = 0; files && i < n; i++)
		files[i] = file_name(json_string_value(json_object_get(json_array_get(objects, i), "file")));
	if (!files || thumbnail_make(run->out_dir, files, n, &why) < 0)
		log_event(LOG_WARNING, "thumbnail-not-made", "job=%lld reason=%s", (long long)run->view->id,
			  log_quote(files ? why.msg : "no memory"));
	free(files);
}

/* Move the pictures of corrections from the detail, which becomes an event, to a file beside the objects, before the event says
 * that the result is there. Without it the result is complete: errors are logged. */
static void keep_pictures(struct job_run *run)
{
	json_t *detail = run->outcome.detail, *pictures = json_incref(json_object_get(detail, CASE_PICTURES));
	const char *series = json_string_value(json_object_get(detail, "series"));
	struct err why = {0};

	if (pictures && correction_pictures_write(pictures, run->out_dir, series ? series : "", &why) < 0)
		log_event(LOG_WARNING, "pictures-not-kept", "job=%lld reason=%s", (long long)run->view->id, log_quote(why.msg));
	json_object_del(detail, CASE_PICTURES);
	json_decref(pictures);
}

static enum job_run_end finish_job(struct job_run *run, struct err *err)
{
	const struct case_outcome *outcome = &run->outcome;
	const char *warnings = json_string_value(json_object_get(outcome->detail, "warnings"));
	enum job_event event = EVENT_RECONSTRUCTED;
	json_t *detail = NULL;

	if (outcome->why.code == CASE_LOST) {
		*err = outcome->why;
		return JOB_RUN_LOST;
	}
	if (is_stopped(run) || outcome->why.code == ECANCELED)
		return JOB_RUN_STOPPED;
	if (outcome->why.code == EHWPOISON || run->journal_failed) {
		*err = outcome->why;
		return run->journal_failed ? JOB_RUN_JOURNAL_FAILED : JOB_RUN_DEVICE_FAILED;
	}
	keep_pictures(run);
	if (outcome->why.code)
		event = event_of_error(run, &outcome->why, &detail);
	else if (warnings)
		log_event(LOG_WARNING, "result-warning", "job=%lld warnings=%s", (long long)run->view->id, log_quote(warnings));
	return append_outcome(run, event, detail ? detail : json_incref(outcome->detail), err);
}

static enum job_run_end work_job(struct job_run *run, struct err *err)
{
	const struct status_conf *page = &run->conf->process->config->status;
	enum job_run_end end;
	struct err why = {0};

	compute_job(run);
	end = finish_job(run, err);
	if (end == JOB_RUN_RECONSTRUCTED && page->enabled && page->thumbnails)
		make_thumbnail(run);
	/* Remove the output that will not be sent. After JOB_RUN_JOURNAL_FAILED it stays, and the next attempt removes it. */
	if (end != JOB_RUN_RECONSTRUCTED && end != JOB_RUN_LOST && end != JOB_RUN_JOURNAL_FAILED && run->out_dir[0] &&
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
		end = run.view && run.view->state == JOB_RUNNING ? work_job(&run, err) : JOB_RUN_NOT_RUNNING;
	}
	case_order_clear(&run.order);
	case_outcome_clear(&run.outcome);
	jobs_clear(&run.jobs);
	return end;
}
