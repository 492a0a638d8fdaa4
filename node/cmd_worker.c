/* tomonode worker JOB: reconstructs one case into outbox/JOB and writes down how it went.
 *
 * - The node has written `started`; this process writes the one event that ends the attempt. Where it dies before, the node does.
 * - Nothing it does twice harms: the result's name and UID follow from the sources and the protocol.
 * - Refusals by kind: data that contradict themselves, an encoding we do not read, no profile: held, for a person. A plan that
 * does not fit: failed, it will not fit tomorrow. No space: again, not counted. Anything else: an attempt that failed.
 * - work/JOB/status says how far it is; not the journal, which is for what lasts.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/commands.h"
#include "node/deliver.h"
#include "node/event.h"
#include "node/folder.h"
#include "node/jobs.h"
#include "node/log.h"
#include "node/options.h"
#include "node/reconstruct.h"
#include "node/task.h"

#define STATUS_EVERY 0.25    /* s */
#define RETRY_WAIT 10.0	     /* s until the next attempt after a failure that may pass */
#define SPACE_WAIT 10.0	     /* s until the next attempt when there was no space, doubled each time ... */
#define SPACE_WAIT_CAP 600.0 /* ... up to this: it costs a reconstruction to find out */

struct worker {
	struct task task;
	struct jobs jobs;
	const struct job_view *view;
	char out_dir[320], status[340], status_part[360];
	double status_at;
	char **paths;
	size_t n_paths, capacity;
};

static volatile sig_atomic_t stop_asked;

static void on_stop(int signal_number)
{
	(void)signal_number;
	stop_asked = 1;
}

static bool cancelled(void *ctx)
{
	(void)ctx;
	return stop_asked;
}

/* Progress for `list` and `show`. Replaced as a whole; losing one is no harm. */
static void progress(void *ctx, const char *stage, double fraction)
{
	struct worker *w = ctx;
	double now = event_now();
	FILE *f;

	if (now - w->status_at < STATUS_EVERY)
		return;
	w->status_at = now;
	f = fopen(w->status_part, "we");
	if (!f)
		return;
	fprintf(f, "{\"stage\":\"%.60s\",\"fraction\":%.4f,\"time\":%.3f}\n", stage, fraction, now);
	if (fclose(f) == 0)
		(void)rename(w->status_part, w->status);
}

static int add_path(void *ctx, const struct instance_row *row, const char *detail)
{
	struct worker *w = ctx;
	char path[400];

	(void)detail;
	if (w->n_paths == w->capacity) {
		size_t capacity = w->capacity ? 2 * w->capacity : 64;
		char **paths = realloc(w->paths, capacity * sizeof(paths[0]));

		if (!paths)
			return -ENOMEM;
		w->paths = paths;
		w->capacity = capacity;
	}
	if (snprintf(path, sizeof(path), "%s/%s", w->task.config->node.spool, row->file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	w->paths[w->n_paths] = strdup(path);
	return w->paths[w->n_paths] ? (w->n_paths++, 0) : -ENOMEM;
}

static int prepare(struct worker *w, struct err *err)
{
	const char *spool = w->task.config->node.spool;
	char work[320];
	int ret = folder_path(spool, "work", w->view->id, work, sizeof(work), err);

	if (ret == 0)
		ret = folder_make(work, err);
	snprintf(w->status, sizeof(w->status), "%s/status", work);
	snprintf(w->status_part, sizeof(w->status_part), "%s.part", w->status);
	if (ret == 0)
		ret = folder_path(spool, "outbox", w->view->id, w->out_dir, sizeof(w->out_dir), err);
	if (ret == 0)
		ret = folder_make(w->out_dir, err);
	if (ret == 0)
		ret = folder_empty(w->out_dir, err); /* an earlier attempt's */
	if (ret == 0)
		ret = journal_members(w->task.journal, w->view->id, add_path, w, err);
	for (size_t i = 0; ret == 0 && i < w->n_paths; i++)
		if (access(w->paths[i], R_OK) < 0)
			ret = err_set(err, EBADMSG, "a file of this case is not in the spool any more: %s: %s",
				      strrchr(w->paths[i], '/') + 1, strerror(errno));
	return ret;
}

static json_t *describe(const struct worker *w, const struct reconstruct_report *r)
{
	char folder[40];
	json_t *detail;

	snprintf(folder, sizeof(folder), "outbox/%lld", (long long)w->view->id);
	detail = reconstruct_objects(r, folder);
	json_object_update_new(detail, json_pack("{s:o, s:s, s:i, s:[iii], s:[fff], s:I, s:o, s:o}", "device",
						 event_text(r->device), "profile", r->profile, "views", r->n_views, "voxels",
						 r->n[0], r->n[1], r->n[2], "voxel_mm", r->voxel[0], r->voxel[1], r->voxel[2],
						 "bytes_device", (json_int_t)r->bytes_device, "seconds", reconstruct_seconds(r),
						 "bins", reconstruct_bins(r)));
	return detail;
}

/* The event that a refusal means, with its detail. */
static enum job_event refusal(const struct worker *w, const struct err *why, json_t **ret_detail)
{
	double now = event_now();

	switch (why->code) {
	case EBADMSG:
	case ENOTSUP:
	case ENOKEY:
		*ret_detail = json_pack("{s:o}", "reason", event_text(why->msg));
		return EVENT_HELD;
	case ENOMEM:
		*ret_detail = json_pack("{s:o}", "reason", event_text(why->msg));
		return EVENT_FAILED;
	case ENOSPC:
	case EDQUOT:
		*ret_detail = json_pack("{s:o, s:f}", "reason", event_text(why->msg), "next",
					now + deliver_backoff(w->view->attempts, SPACE_WAIT, SPACE_WAIT_CAP));
		return EVENT_INTERRUPTED;
	default:
		*ret_detail = json_pack("{s:o, s:f}", "reason", event_text(why->msg), "next", now + RETRY_WAIT);
		return EVENT_CRASHED;
	}
}

static int reconstruct(struct worker *w, struct reconstruct_report *ret_report, struct err *err)
{
	const struct config *c = w->task.config;
	const struct protocol_conf *protocol = config_protocol(c, w->view->protocol);
	struct monitor monitor = {.ctx = w, .progress = progress, .cancelled = cancelled};
	struct device *dev = NULL;
	int ret;

	if (!protocol)
		return err_set(err, ENOKEY, "protocol '%s' is not in the configuration any more", w->view->protocol);
	ret = prepare(w, err);
	if (ret == 0)
		ret = device_open(c->node.device, &dev, err);
	if (ret == 0)
		ret = reconstruct_case(c, protocol, dev, (const char *const *)w->paths, w->n_paths, w->out_dir, &monitor,
				       ret_report, err);
	device_close(dev);
	return ret;
}

static int work(struct worker *w)
{
	struct reconstruct_report report = {0};
	struct err err = {0};
	enum job_event event = EVENT_RECONSTRUCTED;
	json_t *detail;
	int ret = reconstruct(w, &report, &err);

	if (stop_asked || ret == -ECANCELED)
		return CODE_CANCELLED;
	if (ret == 0)
		detail = describe(w, &report);
	else
		event = refusal(w, &err, &detail);
	ret = event_append(w->task.journal, w->view->id, event, detail, event_now(), &err);
	if (ret == -ESTALE)
		return CODE_CANCELLED; /* the job was cancelled while we finished */
	if (ret < 0) {
		log_event(LOG_CRIT, "journal-trouble", "job=%lld reason=%s", (long long)w->view->id, log_quote(err.msg));
		return CODE_FAILED;
	}
	task_notify(&w->task);
	return CODE_OK;
}

int cmd_worker(int argc, char **argv)
{
	struct worker w = {0};
	struct sigaction sa = {.sa_handler = on_stop};
	struct err err = {0};
	long long job;
	int code = task_begin(&w.task, "worker", "-c FILE JOB", 1, argc, argv);

	if (code)
		return code;
	sigaction(SIGTERM, &sa, NULL);
	if (options_integer(w.task.argument[0], 1, INT64_MAX, &job) < 0) {
		code = CODE_USAGE;
	} else if (jobs_refresh(&w.jobs, w.task.journal, job, &err) < 0) {
		log_event(LOG_CRIT, "journal-trouble", "reason=%s", log_quote(err.msg));
		code = CODE_FAILED;
	} else {
		w.view = jobs_find(&w.jobs, job);
		code = !w.view ? CODE_NOT_FOUND : w.view->state != JOB_RUNNING ? CODE_CANCELLED : work(&w);
	}
	for (size_t i = 0; i < w.n_paths; i++)
		free(w.paths[i]);
	free(w.paths);
	jobs_clear(&w.jobs);
	task_end(&w.task);
	return code;
}
