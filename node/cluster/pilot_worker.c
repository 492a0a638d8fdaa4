/* SPDX-License-Identifier: Apache-2.0 */
/* pilot_worker.c - the process that reconstructs (`tomonode case`): its start, its messages, its end.
 *
 * - The worker gets a case as the file .order and returns .outcome; both are removed with the case.
 * - A worker that dies is replaced. If it dies WORKER_DEATHS_MAX times before its device is open, the pilot ends.
 */
#include "node/cluster/pilot_internal.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/exit_code.h"
#include "node/base/folder.h"
#include "node/base/log.h"
#include "node/base/text_file.h"
#include "node/process/worker_ipc.h"

#define WORKER_DEATHS_MAX 3 /* deaths in a row before the worker's device is open */

struct process *pilot_worker(struct pilot *p)
{
	return p->processes.n > 0 ? &p->processes.list[0] : NULL;
}

void pilot_start_worker(struct pilot *p)
{
	static const struct process role = {.role = PROCESS_WORKER};
	const char *args[] = {"case", p->conf->root, p->device, NULL};
	struct err err = {0};

	p->worker_ready = false;
	if (process_table_spawn(&p->processes, &role, args, clock_seconds(), &err) < 0) {
		log_event(LOG_ERR, "worker-not-started", "reason=%s", log_quote(err.msg));
		pilot_end(p, CODE_FAILED, "its worker cannot be started");
	}
}

static int write_order(const struct pilot *p, struct err *err)
{
	const struct case_order *order = &p->order.order;
	char path[400], *text = json_dumps(p->body, JSON_COMPACT);
	int ret = text ? 0 : err_set(err, ENOMEM, "no memory for an order");

	if (ret == 0)
		ret = pilot_case_path(p->conf->root, order->job, order->attempt, "", path, sizeof(path), err);
	if (ret == 0)
		ret = folder_make(path, err);
	if (ret == 0)
		ret = folder_empty(path, err);
	if (ret == 0)
		ret = pilot_case_path(p->conf->root, order->job, order->attempt, ".order", path, sizeof(path), err);
	if (ret == 0)
		ret = text_file_write(path, text, strlen(text), err);
	free(text);
	return ret;
}

/* Give the case to the worker if both are ready. */
void pilot_start_case(struct pilot *p)
{
	struct worker_message m = {.kind = WORKER_JOB, .job = p->order.order.job, .attempt = p->order.order.attempt};
	struct err err = {0};

	if (p->phase != PILOT_WAITING || !p->worker_ready || !pilot_worker(p))
		return;
	if (write_order(p, &err) < 0) {
		pilot_finish(p, err.code, err.msg);
		return;
	}
	if (!worker_ipc_send_message(pilot_worker(p)->ipc_fd, &m, false))
		return; /* it has ended: the next one gets the case */
	pilot_worker(p)->job = m.job;
	p->phase = PILOT_RUNNING;
}

static int read_outcome(struct pilot *p, struct err *err)
{
	const struct case_order *order = &p->order.order;
	struct wire_message m;
	char path[400], *text = NULL;
	uint64_t bytes;
	size_t n;
	int ret = pilot_case_path(p->conf->root, order->job, order->attempt, ".outcome", path, sizeof(path), err);

	if (ret == 0)
		ret = text_file_read(path, WIRE_CASE_MAX, "outcome", &text, &n, err);
	if (ret == 0)
		ret = wire_decode(WIRE_OUTCOME, text, n, &m, err);
	free(text);
	if (ret < 0)
		return ret;
	wire_clear(&p->outcome);
	p->outcome = m;
	return m.code == 0 && pilot_case_objects(m.body, order->job, &bytes, err) < 0 ? -err->code : 0;
}

static void on_done(struct pilot *p, const struct worker_message *m)
{
	struct err err = {0};

	if (p->phase != PILOT_RUNNING || m->job != p->order.order.job)
		return;
	pilot_worker(p)->job = 0;
	if (m->number != 0) /* as on a disk that has no room for the outcome either */
		err_set(&err, m->number, "%s", m->text);
	if (err.code || read_outcome(p, &err) < 0) {
		pilot_finish(p, err.code == ENOSPC || err.code == EDQUOT ? err.code : EIO, err.msg);
		return;
	}
	p->phase = PILOT_FINISHED;
	pilot_send_outcome(p);
}

static void on_worker_ready(struct pilot *p, const char *name, int mib)
{
	p->memory = (int64_t)mib << 20;
	p->worker_ready = true;
	p->worker_deaths = 0;
	if (!p->device_name[0])
		log_event(LOG_NOTICE, "device-ready", "device=%s", log_quote(name));
	snprintf(p->device_name, sizeof(p->device_name), "%.95s", name);
	pilot_start_case(p);
}

static void on_worker_message(struct pilot *p, const struct worker_message *m)
{
	struct wire_message progress = {.kind = WIRE_PROGRESS,
					.job = m->job,
					.attempt = p->order.order.attempt,
					.fraction = fmin(fmax(m->number / 1000.0, 0), 1)};

	switch (m->kind) {
	case WORKER_COUNTED:
		p->device = m->number > 0 || strcmp(p->device, "auto") != 0 ? "cuda:0" : "cpu";
		break;
	case WORKER_READY:
		on_worker_ready(p, m->text, m->number);
		break;
	case WORKER_REFUSED:
		log_event(LOG_CRIT, "device-refused", "device=%s reason=%s", log_quote(p->device), log_quote(m->text));
		pilot_end(p, CODE_DEVICE, "its device was refused");
		break;
	case WORKER_ALIVE:
		snprintf(progress.text, sizeof(progress.text), "%.60s", m->text);
		if (p->phase == PILOT_RUNNING && p->welcome && m->job == p->order.order.job)
			pilot_send(p, &progress);
		break;
	case WORKER_DONE:
		on_done(p, m);
		break;
	case WORKER_BROKEN:
		log_event(LOG_CRIT, "device-failed", "device=%s reason=%s", log_quote(p->device), log_quote(m->text));
		if (p->phase == PILOT_RUNNING)
			pilot_finish(p, EHWPOISON, m->text);
		break;
	default:
		break;
	}
}

static void read_worker(struct pilot *p)
{
	struct worker_message m;

	while (pilot_worker(p) && pilot_worker(p)->ipc_fd >= 0 && worker_ipc_receive(pilot_worker(p)->ipc_fd, &m, false) > 0)
		on_worker_message(p, &m);
}

static bool was_ended(int status)
{
	return (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) ||
	       (WIFEXITED(status) && WEXITSTATUS(status) == CODE_CANCELLED);
}

void pilot_reap_worker(struct pilot *p)
{
	struct process ended;
	char how[120], reason[240];
	int status;

	read_worker(p);
	if (!process_table_reap(&p->processes, &ended, &status))
		return;
	close(ended.ipc_fd);
	process_describe(status, how, sizeof(how));
	log_event(LOG_DEBUG, "process-ended", "role=case pid=%ld how=%s", (long)ended.pid, log_quote(how));
	if (ended.kill_at == 0 && was_ended(status)) /* as by Slurm, which ends all processes of a job */
		pilot_end(p, CODE_OK, "its worker was ended by SIGTERM");
	if (p->code < 0 && p->phase == PILOT_RUNNING && ended.job != 0) {
		snprintf(reason, sizeof(reason), "the worker of pilot %.60s %s", p->conf->name, how);
		pilot_finish(p, EIO, reason);
	}
	if (p->phase == PILOT_FINISHED && p->outcome.code == EHWPOISON)
		return; /* the pilot ends when the node knows */
	if (!p->worker_ready && ended.kill_at == 0 && WIFSIGNALED(status) && ++p->worker_deaths >= WORKER_DEATHS_MAX) {
		log_event(LOG_CRIT, "device-failed", "device=%s reason=%s", log_quote(p->device), log_quote(how));
		pilot_end(p, CODE_DEVICE, "its device failed");
	}
	if (p->code < 0)
		pilot_start_worker(p);
}
