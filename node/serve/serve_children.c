/* SPDX-License-Identifier: Apache-2.0 */
/* serve_children.c - start and restart the receiver, close the journal around its fork, and handle the end of every child.
 *
 * - A SQLite connection must not be used after a fork: the receiver is forked while the journal is closed; all other processes
 *   are started with exec and open their own connection. If the journal cannot be opened again, the loop retries; until then the
 *   node decides nothing, but the receiver continues.
 * - A receiver that ends by itself is restarted: at once if it had run for a while, otherwise after a delay.
 * - Deadlines use clock_seconds(), so that a clock that is set back does not delay a SIGKILL.
 */
#include <stdio.h>
#include <unistd.h>

#include "node/base/log.h"
#include "node/receive/receiver.h"
#include "node/serve/serve_internal.h"

#define WORKER_GRACE 10.0 /* s from SIGTERM to SIGKILL */
#define ASKING_GRACE 1.0  /* the same for processes that wait for a name service or the webhook, or read, and store nothing */
#define RECEIVER_WAIT 1.0 /* s until a receiver that ended by itself is started again */
#define JOURNAL_WAIT 2.0  /* s until a journal that could not be opened again is tried again */

static int receiver_child(void *ctx)
{
	struct serve *v = ctx;
	struct err err = {0};

	serve_start_log(v->conf.config, "receiver");
	close(v->signal_fd);
	close(v->pipe_fd[0]);
	if (v->s.cluster_fd > 0)
		close(v->s.cluster_fd);
	status_watch_end(&v->status); /* else a reload could not close the port of the page */
	if (receiver_run(&v->conf.sockets, v->conf.config, v->pipe_fd[1], SERVE_GRACE, v->check.receiver, &err) == 0)
		return 0;
	log_event(LOG_CRIT, "receiver-failed", "reason=%s", log_quote(err.msg));
	return 1;
}

/* Log the first failure and the success after it, not each attempt. */
void serve_open_journal(struct serve *v, double clock)
{
	struct err err = {0};

	if (journal_open(v->journal_path, &v->s.journal, &err) < 0) {
		v->s.journal = NULL;
		snprintf(v->check.facts.journal_error, sizeof(v->check.facts.journal_error), "%.299s", err.msg);
		if (v->journal_at == 0)
			log_event(LOG_CRIT, "journal-error", "reason=%s", log_quote(err.msg));
		v->journal_at = clock + JOURNAL_WAIT;
		return;
	}
	if (v->journal_at > 0)
		log_event(LOG_NOTICE, "journal-reopened", "path=%s", log_quote(v->journal_path));
	v->journal_at = 0;
	v->check.facts.journal_error[0] = '\0';
	self_check_journal_opened(&v->check, v->journal_path);
	v->version = -1;
	v->s.journal_reserved = 0; /* its write-ahead log may be a new file */
	v->s.space_at = 0;
}

/* Close the journal, fork the receiver, open the journal again. */
void serve_start_receiver(struct serve *v, double clock)
{
	static const struct process p = {.role = PROCESS_RECEIVER};
	struct err why = {0};

	v->receiver_at = 0;
	receiver_state_begin(v->check.receiver, clock);
	v->s.journal = journal_close(v->s.journal);
	v->s.jobs.journal = NULL;
	if (process_table_fork(&v->s.processes, &p, receiver_child, v, clock, &why) < 0) {
		log_event(LOG_CRIT, "receiver-not-started", "reason=%s", log_quote(why.msg));
		v->receiver_at = clock + RECEIVER_WAIT;
	}
	serve_open_journal(v, clock);
}

void serve_stop(struct serve *v, double clock)
{
	struct process_table *all = &v->s.processes;
	bool again = v->s.stopping;

	v->s.stopping = true;
	v->receiver_at = 0;
	status_watch_end(&v->status);
	if (!again)
		v->stop_at = clock + SERVE_GRACE;
	if (!again)
		serve_notify(v, SERVICE_STOPPING);
	log_event(LOG_NOTICE, again ? "stopping-now" : "stopping", "processes=%zu", all->n);
	for (size_t i = 0; i < all->n; i++) {
		struct process *p = &all->list[i];

		if (again)
			process_stop(p, clock, 0);
		else if (p->role == PROCESS_RECEIVER)
			process_stop(p, clock, SERVE_GRACE + 5);
		else if (p->role == PROCESS_ALERT || p->role == PROCESS_RESOLVE || p->role == PROCESS_CHECK)
			process_stop(p, clock, ASKING_GRACE);
		else if (p->role != PROCESS_DELIVER)
			process_stop(p, clock, WORKER_GRACE);
	}
}

/* SERVE_GRACE is over: end the remaining deliveries and associations, too. */
void serve_stop_children(struct serve *v, double clock)
{
	for (size_t i = 0; i < v->s.processes.n; i++)
		process_stop(&v->s.processes.list[i], clock, 1);
	v->stop_at = clock + 3600;
}

void serve_reap(struct serve *v, double now)
{
	struct process p;
	char how[120];
	int status;

	while (process_table_reap(&v->s.processes, &p, &status)) {
		process_describe(status, how, sizeof(how));
		log_event(LOG_DEBUG, "process-ended", "role=%s pid=%ld job=%lld how=%s", process_role_name(p.role), (long)p.pid,
			  (long long)p.job, log_quote(how));
		if (p.role == PROCESS_STATUS) {
			status_watch_ended(&v->status, &p, how, v->s.clock);
		} else if (p.role == PROCESS_RESOLVE) {
			self_check_resolved(&v->check, v->conf.config);
		} else if (p.role == PROCESS_CHECK) {
			journal_check_ended(&v->journal_check, status, v->s.stopping, &v->check.facts);
		} else if (p.role == PROCESS_ALERT) {
			alert_watch_ended(&v->alert, status, &v->s);
		} else if (p.role == PROCESS_CLUSTER) {
			cluster_watch_ended(&v->fleet, &p, status, &v->s);
			close(p.ipc_fd);
		} else if (p.role != PROCESS_RECEIVER) {
			schedule_process_ended(&v->s, &p, status, now);
			if (p.ipc_fd >= 0)
				close(p.ipc_fd);
		} else if (!p.retired && !v->s.stopping) {
			log_event(LOG_CRIT, "receiver-ended", "how=%s", log_quote(how));
			v->receiver_at = v->s.clock + (v->s.clock - p.started > 10 * RECEIVER_WAIT ? 0 : RECEIVER_WAIT);
		}
	}
}
