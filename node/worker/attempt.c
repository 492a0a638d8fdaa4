#include "node/worker/attempt.h"

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

#define STATUS_EVERY 0.25    /* s */
#define RETRY_WAIT 10.0	     /* s until the next attempt after a failure that may pass */
#define SPACE_WAIT 10.0	     /* s until the next attempt when there was no space, doubled each time ... */
#define SPACE_WAIT_CAP 600.0 /* ... up to this: it costs a reconstruction to find out */

struct attempt {
	const struct attempt_conf *conf;
	struct jobs jobs;
	const struct job_view *view;
	char out_dir[320], status[340], status_part[360];
	double status_at; /* on clock_seconds() */
	char **paths;
	size_t n_paths, capacity;
	struct err *err; /* of the walk over the members */
	struct case_check_report check;
	bool unwritten; /* the journal did not take what the check found */
};

static bool stopped(void *ctx)
{
	struct attempt *a = ctx;

	return a->conf->stopped(a->conf->ctx);
}

/* Progress for `list` and `show`. Replaced as a whole; losing one is no harm. */
static void progress(void *ctx, const char *stage, double fraction)
{
	struct attempt *a = ctx;
	double clock = clock_seconds();
	FILE *f;

	if (clock - a->status_at < STATUS_EVERY)
		return;
	a->status_at = clock;
	a->conf->alive(a->conf->ctx);
	f = fopen(a->status_part, "we");
	if (!f)
		return;
	fprintf(f, "{\"stage\":\"%.60s\",\"fraction\":%.4f,\"time\":%.3f}\n", stage, fraction, clock_wall());
	if (fclose(f) == 0)
		(void)rename(a->status_part, a->status);
}

static int add_path(void *ctx, const struct instance_row *row, const char *detail)
{
	struct attempt *a = ctx;
	char path[400];

	(void)detail;
	if (a->n_paths == a->capacity) {
		size_t capacity = a->capacity ? 2 * a->capacity : 64;
		char **paths = realloc(a->paths, capacity * sizeof(paths[0]));

		if (!paths)
			return err_set(a->err, EAGAIN, "no memory for %zu files", capacity);
		a->paths = paths;
		a->capacity = capacity;
	}
	if (snprintf(path, sizeof(path), "%s/%s", a->conf->task->config->node.spool, row->file) >= (int)sizeof(path))
		return err_set(a->err, ENAMETOOLONG, "the path of %s in the spool is too long", row->file);
	a->paths[a->n_paths] = strdup(path);
	if (!a->paths[a->n_paths])
		return err_set(a->err, EAGAIN, "no memory for the name of %s", row->file);
	a->n_paths++;
	return 0;
}

static int prepare(struct attempt *a, struct err *err)
{
	const char *spool = a->conf->task->config->node.spool;
	char work[320];
	int ret = folder_path(spool, "work", a->view->id, work, sizeof(work), err);

	a->err = err;
	if (ret == 0)
		ret = folder_make(work, err);
	snprintf(a->status, sizeof(a->status), "%s/status", work);
	snprintf(a->status_part, sizeof(a->status_part), "%s.part", a->status);
	if (ret == 0)
		ret = folder_path(spool, "outbox", a->view->id, a->out_dir, sizeof(a->out_dir), err);
	if (ret == 0)
		ret = folder_make(a->out_dir, err);
	if (ret == 0)
		ret = folder_empty(a->out_dir, err); /* an earlier attempt's */
	if (ret == 0)
		ret = journal_members(a->conf->task->journal, a->view->id, add_path, a, err);
	return ret;
}

/* What each object's file is now, so that no other bytes are ever sent as it. */
static int add_digests(const struct attempt *a, const struct reconstruct_report *r, json_t *list, struct err *err)
{
	size_t n = reconstruct_n_objects(r);
	char(*names)[400] = calloc(n, sizeof(names[0]));
	char(*hex)[DIGEST_SIZE] = calloc(n, sizeof(hex[0]));
	const char **paths = calloc(n, sizeof(paths[0]));
	int *codes = calloc(n, sizeof(codes[0]));
	int ret = names && hex && paths && codes ? 0 : err_set(err, EAGAIN, "no memory for %zu digests", n);

	for (size_t i = 0; ret == 0 && i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "%s/%s", a->out_dir, reconstruct_file(r, i));
		paths[i] = names[i];
	}
	if (ret == 0)
		ret = digest_files(paths, n, 0, hex, codes, err);
	for (size_t i = 0; ret == 0 && i < n; i++)
		if (codes[i])
			ret = err_set(err, codes[i], "the result %s cannot be read: %s", reconstruct_file(r, i),
				      strerror(codes[i]));
		else
			json_object_set_new(json_array_get(list, i), "digest", json_string(hex[i]));
	free(names);
	free(hex);
	free(paths);
	free(codes);
	if (ret == -ENOMEM) /* of our lists, not of the plan: it may pass */
		err->code = EAGAIN;
	return ret;
}

static int describe(const struct attempt *a, struct reconstruct_report *r, json_t **ret_detail, struct err *err)
{
	char folder[40];
	json_t *detail, *seconds;
	double begun = clock_seconds();
	int ret;

	snprintf(folder, sizeof(folder), "outbox/%lld", (long long)a->view->id);
	detail = reconstruct_objects(r, folder);
	ret = add_digests(a, r, json_object_get(detail, "objects"), err);
	if (ret < 0) {
		json_decref(detail);
		return ret;
	}
	r->seconds_write += clock_seconds() - begun;
	r->seconds_total += clock_seconds() - begun;
	seconds = reconstruct_seconds(r);
	json_object_set_new(seconds, "check", json_real(a->check.seconds));
	json_object_update_new(detail, json_pack("{s:o, s:s, s:i, s:[iii], s:[fff], s:I, s:o}", "device", event_text(r->device),
						 "profile", r->profile, "views", r->n_views, "voxels", r->n[0], r->n[1], r->n[2],
						 "voxel_mm", r->voxel[0], r->voxel[1], r->voxel[2], "bytes_device",
						 (json_int_t)r->bytes_device, "seconds", seconds));
	json_object_update_new(detail, reconstruct_findings(r));
	*ret_detail = detail;
	return 0;
}

/* The event that a refusal means, with its detail. */
static enum job_event refusal(const struct attempt *a, const struct err *why, json_t **ret_detail)
{
	double now = clock_wall();

	switch (why->code) {
	case EBADMSG:
	case ENOTSUP:
	case ENOKEY:
		*ret_detail = json_pack("{s:o}", "reason", event_text(why->msg));
		if (a->check.damaged > 0)
			json_object_set_new(*ret_detail, "damaged", json_integer((json_int_t)a->check.damaged));
		return EVENT_HELD;
	case ENOMEM:
		*ret_detail = json_pack("{s:o}", "reason", event_text(why->msg));
		return EVENT_FAILED;
	case ENOSPC:
	case EDQUOT:
		*ret_detail = json_pack("{s:o, s:f}", "reason", event_text(why->msg), "next",
					now + backoff_seconds(a->view->attempts, SPACE_WAIT, SPACE_WAIT_CAP));
		return EVENT_INTERRUPTED;
	default:
		*ret_detail = json_pack("{s:o, s:f}", "reason", event_text(why->msg), "next", now + RETRY_WAIT);
		return EVENT_CRASHED;
	}
}

static int reconstruct(struct attempt *a, struct reconstruct_report *ret_report, struct err *err)
{
	const struct config *c = a->conf->task->config;
	const struct protocol_conf *protocol = config_protocol(c, a->view->protocol);
	struct monitor monitor = {.ctx = a, .progress = progress, .cancelled = stopped};
	int ret;

	if (!protocol)
		return err_set(err, ENOKEY, "protocol '%s' is not in the configuration any more", a->view->protocol);
	ret = prepare(a, err);
	if (ret == 0)
		ret = case_check(a->conf->task->journal, c->node.spool, a->view->id, clock_wall(), &monitor, &a->check,
				 &a->unwritten, err);
	if (ret < 0)
		return ret;
	return reconstruct_case(c, protocol, a->conf->dev, (const char *const *)a->paths, a->n_paths, a->view->members.as_is,
				a->out_dir, &monitor, ret_report, err);
}

static enum attempt_end write_down(struct attempt *a, enum job_event event, json_t *detail, struct err *err)
{
	int ret = event_append(a->conf->task->journal, a->view->id, event, detail, clock_wall(), err);

	if (ret == -ESTALE)
		return ATTEMPT_NOT_OURS; /* the job was cancelled while we finished */
	if (ret < 0)
		return ATTEMPT_UNWRITTEN;
	task_notify(a->conf->task);
	return event == EVENT_RECONSTRUCTED ? ATTEMPT_MADE : ATTEMPT_REFUSED;
}

/* For the status page; nobody waits for it, and without it nothing is missing but a picture. */
static void make_thumbnail(const struct attempt *a, const struct reconstruct_report *r)
{
	size_t n = r->kind == KIND_DBT ? 1 : reconstruct_n_objects(r); /* slabs and view are further objects */
	const char **files = calloc(n ? n : 1, sizeof(files[0]));
	struct err why = {0};

	for (size_t i = 0; files && i < n; i++)
		files[i] = reconstruct_file(r, i);
	if (!files || thumbnail_make(a->out_dir, files, n, &why) < 0)
		log_event(LOG_WARNING, "thumbnail-not-made", "job=%lld reason=%s", (long long)a->view->id,
			  log_quote(files ? why.msg : "no memory"));
	free(files);
}

static enum attempt_end work(struct attempt *a, struct err *err)
{
	struct reconstruct_report report = {0};
	enum job_event event = EVENT_RECONSTRUCTED;
	enum attempt_end end;
	struct err why = {0};
	json_t *detail = NULL;
	int ret = reconstruct(a, &report, &why);

	if (stopped(a) || ret == -ECANCELED) {
		end = ATTEMPT_STOPPED;
	} else if (ret < 0 && why.code == EHWPOISON) {
		*err = why;
		end = ATTEMPT_BROKEN;
	} else if (a->unwritten) {
		*err = why;
		end = ATTEMPT_UNWRITTEN;
	} else {
		if (ret == 0)
			ret = describe(a, &report, &detail, &why);
		if (ret < 0)
			event = refusal(a, &why, &detail);
		end = write_down(a, event, detail, err);
	}
	if (end == ATTEMPT_MADE && a->conf->task->config->status.enabled && a->conf->task->config->status.thumbnails)
		make_thumbnail(a, &report);
	reconstruct_report_clear(&report);
	/* What nobody will ask for. Where the journal could not be written the next attempt empties it. */
	if (end != ATTEMPT_MADE && end != ATTEMPT_UNWRITTEN && a->out_dir[0] && folder_remove(a->out_dir, &why) < 0)
		log_event(LOG_WARNING, "outbox-left", "reason=%s", log_quote(why.msg));
	return end;
}

enum attempt_end attempt_run(const struct attempt_conf *conf, struct err *err)
{
	struct attempt a = {.conf = conf};
	enum attempt_end end;

	if (jobs_refresh(&a.jobs, conf->task->journal, conf->job, err) < 0) {
		end = ATTEMPT_UNWRITTEN;
	} else {
		a.view = jobs_find(&a.jobs, conf->job);
		end = a.view && a.view->state == JOB_RUNNING ? work(&a, err) : ATTEMPT_NOT_OURS;
	}
	for (size_t i = 0; i < a.n_paths; i++)
		free(a.paths[i]);
	free(a.paths);
	jobs_clear(&a.jobs);
	return end;
}
