/* SPDX-License-Identifier: Apache-2.0 */
/* send_process.c - see node/deliver/send_process.h. */
#include "node/deliver/send_process.h"

#include <errno.h>

#include "node/base/log.h"
#include "node/deliver/destination.h"
#include "node/options/options.h"
#include "node/store/event.h"

/* Find the job and its destination. Return CODE_OK, or the exit code to return. */
static int find_send(struct send_process *p)
{
	const char *destination = p->process.argument[1];
	struct err err = {0};
	long long job;

	if (options_integer(p->process.argument[0], 1, INT64_MAX, &job) < 0)
		return CODE_USAGE;
	if (jobs_refresh(&p->jobs, p->process.journal, job, &err) < 0) {
		log_event(LOG_CRIT, "journal-error", "reason=%s", log_quote(err.msg));
		return CODE_FAILED;
	}
	p->job = job;
	p->view = jobs_find(&p->jobs, job);
	p->send = p->view ? job_view_find_send(p->view, destination) : NULL;
	if (!p->send)
		return CODE_NOT_FOUND;
	p->destination = config_destination(p->process.config, p->send->destination);
	return p->destination ? CODE_OK : CODE_CANCELLED; /* the node will notice: node/serve/schedule_deliver.c */
}

int send_process_run(struct send_process *p, const char *name, int (*run)(struct send_process *p), int argc, char **argv)
{
	const struct destination_conf *d;
	int code = CODE_OK;

	if (!work_process_begin(&p->process, name, "-c FILE JOB DESTINATION", 2, argc, argv, &code))
		return code;
	d = config_destination(p->process.config, p->process.argument[1]);
	code = work_process_enter_sandbox(&p->process, d ? destination_actions(d)->role : SANDBOX_DELIVER, NULL) < 0
		       ? CODE_FAILED
		       : find_send(p);
	if (code == CODE_OK)
		code = run(p);
	jobs_clear(&p->jobs);
	work_process_end(&p->process);
	return code;
}

int send_process_append(struct send_process *p, enum job_event event, json_t *detail, double now)
{
	struct err err = {0};
	int rc = event_append(p->process.journal, p->job, event, detail, now, &err);

	if (rc == -ESTALE)
		return CODE_CANCELLED;
	if (rc < 0) {
		log_event(LOG_CRIT, "journal-error", "job=%lld reason=%s", (long long)p->job, log_quote(err.msg));
		return CODE_FAILED;
	}
	work_process_notify(&p->process);
	return CODE_OK;
}
