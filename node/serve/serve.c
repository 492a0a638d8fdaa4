/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - the main loop of the node: wait, then process ended children, due actions and new rows of the journal.
 *
 * - One thread; every step checks everything again, so that an unnecessary wake-up does no harm and a missed one delays by at
 * most one TICK.
 * - Deadlines in memory use clock_seconds(); times in the journal use the wall clock.
 * - The loop ends when it is stopping and no child is left; then running jobs are recorded as interrupted.
 */
#include "node/serve/serve.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/log.h"
#include "node/serve/serve_internal.h"
#include "node/store/spool.h"

#define TICK 0.25 /* s between two checks of the journal for events of other processes, such as `tomonode retry` */

static void read_signals(struct serve *v, double clock)
{
	struct signalfd_siginfo info;

	while (read(v->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			serve_stop(v, clock);
		else if (info.ssi_signo == SIGHUP && !v->s.stopping)
			serve_reload(v, clock);
	}
}

/* Wait until a descriptor is readable, until `until`, or until another process has written to the journal. */
static void wait_for_work(struct serve *v, double until)
{
	struct pollfd fds[2 + PROCESS_MAX] = {{.fd = v->signal_fd, .events = POLLIN}, {.fd = v->pipe_fd[0], .events = POLLIN}};
	nfds_t n_fds = 2;
	char bytes[256];

	for (size_t i = 0; i < v->s.processes.n; i++)
		if (v->s.processes.list[i].ipc_fd >= 0)
			fds[n_fds++] = (struct pollfd){.fd = v->s.processes.list[i].ipc_fd, .events = POLLIN};
	for (;;) {
		double left = until - clock_seconds(), wait = left < TICK ? left : TICK;
		int64_t version = v->version;
		int n = wait > 0 ? poll(fds, n_fds, (int)(1000 * wait) + 1) : poll(fds, n_fds, 0);

		while (read(v->pipe_fd[0], bytes, sizeof(bytes)) > 0)
			;
		if (v->s.journal)
			version = journal_data_version(v->s.journal);
		if (n != 0 || left <= 0 || version != v->version || v->s.stopping || audit_has_due_messages(clock_seconds())) {
			v->version = version;
			return;
		}
	}
}

/* Report that the node is ready, once a receiver accepts connections. */
static void notify_ready(struct serve *v)
{
	if (v->ready || v->s.stopping || !process_table_find(&v->s.processes, PROCESS_RECEIVER, 0, NULL))
		return;
	v->ready = true;
	serve_notify(v, SERVICE_READY);
}

/* Open the audit trail before the first instance can be indexed, so that every transfer is reported. */
static void open_trail(struct serve *v)
{
	struct err err = {0};

	if (!v->trail && v->s.journal && audit_trail_open(v->conf.config->node.spool, v->s.journal, &v->trail, &err) < 0)
		log_event(LOG_CRIT, "audit-trail", "reason=%s", log_quote(err.msg));
}

/* Write the audit messages about transfers and send the queue to syslog. Return the time of the next call, on clock_seconds(). */
static double audit_transfers(struct serve *v, double now, double clock, bool last)
{
	double next = 0, flush;

	if (v->trail && v->s.journal) {
		next = audit_trail_step(v->trail, v->s.journal, &v->s.jobs, v->conf.config, now, last);
		next = next > 0 ? clock + (next - now) : 0;
	}
	flush = audit_flush(clock);
	return flush > 0 && (next == 0 || flush < next) ? flush : next;
}

static void take_sooner(double *until, double deadline)
{
	if (deadline > 0 && deadline < *until)
		*until = deadline;
}

static void loop_manager(struct serve *v)
{
	for (;;) {
		double now = clock_wall(), clock = clock_seconds(), until;
		bool checked;

		v->s.clock = clock;
		serve_reap(v, now);
		if (v->s.stopping && v->s.processes.n == 0)
			break;
		if (v->receiver_at > 0 && v->receiver_at <= clock)
			serve_start_receiver(v, clock);
		if (v->journal_at > 0 && v->journal_at <= clock)
			serve_open_journal(v, clock);
		if (v->certificates_at <= clock)
			serve_watch_certificates(v, clock);
		if (v->stop_at > 0 && v->stop_at <= clock)
			serve_stop_children(v, clock);
		if (v->cluster_at > 0 && v->cluster_at <= clock && !v->s.stopping)
			serve_open_cluster(v, clock);
		notify_ready(v);
		open_trail(v);
		schedule_step(&v->s, now);
		/* after it: the first one records the cases of an earlier version as settled, so that the page need not read all */
		status_watch_step(&v->status, v->conf.config, v->s.config_path, &v->s.processes, clock);
		cluster_watch_step(&v->fleet, &v->s, now);
		v->check.facts.cluster = v->fleet.facts;
		snprintf(v->check.facts.pilot_refused, sizeof(v->check.facts.pilot_refused), "%s", schedule_refused_pilot(&v->s));
		snprintf(v->check.facts.case_unread, sizeof(v->check.facts.case_unread), "%s", schedule_unread_case(&v->s));
		checked = self_check_step(&v->check, &v->s, v->journal_path);
		snprintf(v->check.facts.page, sizeof(v->check.facts.page), "%s", v->status.reason);
		snprintf(v->check.facts.audit, sizeof(v->check.facts.audit), "%s", audit_delay());
		snprintf(v->check.facts.alerts_fault, sizeof(v->check.facts.alerts_fault), "%s", v->alert.fault);
		node_report_write(&v->report, &v->s, &v->check.facts, now);
		if (checked)
			spool_lock_beat(v->s.processes.lock_fd, clock, v->report.current);
		if (checked)
			alert_watch_step(&v->alert, &v->s, self_check_log(&v->check, &v->s, v->report.now, now), now);
		until = clock + (v->s.next - now);
		take_sooner(&until, process_table_tick(&v->s.processes, clock));
		take_sooner(&until, v->receiver_at);
		take_sooner(&until, v->cluster_at);
		take_sooner(&until, v->journal_at);
		take_sooner(&until, audit_transfers(v, now, clock, false));
		take_sooner(&until, v->status.at);
		take_sooner(&until, v->fleet.at);
		take_sooner(&until, v->certificates_at);
		take_sooner(&until, v->check.at);
		wait_for_work(v, until);
		read_signals(v, clock_seconds());
	}
	schedule_interrupt(&v->s, clock_wall());
	audit_application_activity(false);
	audit_transfers(v, clock_wall(), clock_seconds(), true);
}

int serve_run(struct serve_conf *conf, struct err *err)
{
	struct serve v = {.conf = *conf, .signal_fd = -1, .pipe_fd = {-1, -1}, .version = -1};
	struct err why = {0};
	int ret;

	v.s.config = v.conf.config;
	v.report.started = clock_wall();
	status_watch_begin(&v.status);
	self_check_begin(&v.check);
	v.s.slots.per_device = v.conf.config->node.workers_per_device;
	slots_configure(&v.s.slots, serve_devices(v.conf.config), clock_seconds());
	audit_start(&v.conf.config->node, AUDIT_QUEUED, "serve");
	if (service_notify_read_address(&v.notify, &why) < 0)
		log_event(LOG_ERR, "service-not-notified", "reason=%s", log_quote(why.msg));
	ret = serve_begin(&v, err);
	if (ret == 0) {
		audit_application_activity(true);
		loop_manager(&v);
	}
	audit_trail_close(v.trail);
	v.s.journal = journal_close(v.s.journal);
	jobs_clear(&v.s.jobs);
	companions_clear(&v.s.companions);
	status_watch_end(&v.status);
	node_report_clear(&v.report);
	self_check_clear(&v.check);
	alert_watch_clear(&v.alert);
	if (v.signal_fd >= 0)
		close(v.signal_fd);
	if (v.pipe_fd[0] >= 0) {
		close(v.pipe_fd[0]);
		close(v.pipe_fd[1]);
	}
	listen_close(&v.conf.sockets);
	if (v.s.cluster_fd > 0)
		close(v.s.cluster_fd);
	close(v.conf.lock_fd);
	config_free(v.conf.config);
	free(v.conf.text);
	return ret;
}
