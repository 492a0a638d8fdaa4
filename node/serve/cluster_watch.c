/* SPDX-License-Identifier: Apache-2.0 */
#include "node/serve/cluster_watch.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "node/base/backoff.h"
#include "node/base/exit_code.h"
#include "node/base/log.h"
#include "node/fleet/fleet_conf.h"

#define AGAIN_FIRST 2.0 /* s until the process is started again after its end */
#define AGAIN_CAP 300.0
#define STOP_GRACE 3.0

/* Return true if pilots of an earlier configuration may still run. */
static bool has_pilots(const char *spool)
{
	char path[300];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/pilots", spool);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir)))
		found = fleet_conf_is_id(entry->d_name);
	if (dir)
		closedir(dir);
	return found;
}

/* The new process must not start before the old one has ended: both would submit. */
void cluster_watch_reload(struct cluster_watch *w, struct schedule *s, double clock)
{
	struct process *p = process_table_find(&s->processes, PROCESS_CLUSTER, 0, NULL);
	bool wanted = (s->config->node.executor & EXECUTOR_SLURM) || has_pilots(s->config->node.spool);

	if (p) {
		p->retired = true;
		process_stop(p, clock, STOP_GRACE);
	}
	w->at = wanted ? clock : 0;
	w->deaths = 0;
	w->facts = (struct node_cluster){0};
}

static bool is_running(struct schedule *s)
{
	for (size_t i = 0; i < s->processes.n; i++)
		if (s->processes.list[i].role == PROCESS_CLUSTER)
			return true;
	return false;
}

static void note_failure(struct cluster_watch *w, const char *how, double clock)
{
	log_event(LOG_ERR, "cluster-ended", "how=%s", log_quote(how));
	snprintf(w->facts.state, sizeof(w->facts.state), "down");
	snprintf(w->facts.text, sizeof(w->facts.text), "The process that runs the commands of Slurm %.200s", how);
	w->at = clock + backoff_seconds(++w->deaths, AGAIN_FIRST, AGAIN_CAP);
}

static void start_cluster(struct cluster_watch *w, struct schedule *s)
{
	struct process p = {.role = PROCESS_CLUSTER};
	const char *args[] = {"cluster", s->config_path ? "-c" : NULL, s->config_path, NULL};
	struct err err = {0};

	w->at = 0;
	w->demanded = false;
	if (process_table_spawn(&s->processes, &p, args, s->clock, &err) < 0)
		note_failure(w, err.msg, s->clock);
}

void cluster_watch_ended(struct cluster_watch *w, const struct process *p, int status, const struct schedule *s)
{
	char how[120];

	if (p->retired || s->stopping || (WIFEXITED(status) && WEXITSTATUS(status) == CODE_OK))
		return;
	process_describe(status, how, sizeof(how));
	note_failure(w, how, s->clock);
}

/* ---- messages ---- */

static void take_report(struct node_cluster *f, const struct fleet_report *r, bool local)
{
	*f = (struct node_cluster){.local = local,
				   .used = true,
				   .pending = r->counts.pending,
				   .running = r->counts.running,
				   .idle = r->counts.idle,
				   .busy = r->counts.busy,
				   .submitted = r->submitted,
				   .requeued = r->requeued,
				   .started = r->started,
				   .queued_seconds = r->queued_seconds};
	snprintf(f->state, sizeof(f->state), "%s", fleet_controller_name(r->state));
	snprintf(f->text, sizeof(f->text), "%s", r->text);
}

static void read_reports(struct cluster_watch *w, struct schedule *s, const struct process *p)
{
	struct fleet_report report;

	while (fleet_ipc_receive(p->ipc_fd, &report, sizeof(report)) > 0) {
		report.end[FLEET_ID_SIZE - 1] = report.text[FLEET_TEXT_SIZE - 1] = '\0';
		if (report.end[0])
			schedule_end_pilot(s, report.end);
		else
			take_report(&w->facts, &report, s->config->node.executor & EXECUTOR_LOCAL);
	}
}

/* The jobs of these pilots are cancelled. While Slurm's commands cannot be run, their missing connection ends them later. */
static void report_unanswered(struct schedule *s, const struct process *p)
{
	for (size_t i = 0; i < s->n_unanswered; i++) {
		struct fleet_demand event = {0};

		if (!fleet_conf_is_id(s->unanswered[i]))
			continue;
		snprintf(event.unanswered, sizeof(event.unanswered), "%.*s", FLEET_ID_SIZE - 1, s->unanswered[i]);
		if (p && p->ipc_fd >= 0)
			fleet_ipc_send(p->ipc_fd, &event, sizeof(event));
	}
	s->n_unanswered = 0;
}

static void make_demand(struct schedule *s, struct fleet_demand *d, double now)
{
	memset(d, 0, sizeof(*d)); /* it is compared and sent as bytes */
	d->waiting = schedule_count_waiting(s, now);
	for (size_t i = 0; i < s->slots.n && d->n < FLEET_MAX; i++) {
		const struct slot *slot = &s->slots.list[i];
		struct fleet_seat *seat = &d->seats[d->n];

		if (!slot->seat || (slot->state != SLOT_IDLE && slot->state != SLOT_BUSY) || !fleet_conf_is_id(slot->pilot))
			continue;
		snprintf(seat->id, sizeof(seat->id), "%.*s", FLEET_ID_SIZE - 1, slot->pilot);
		seat->busy = slot->state == SLOT_BUSY;
		d->n++;
	}
}

void cluster_watch_step(struct cluster_watch *w, struct schedule *s, double now)
{
	struct process *p = process_table_find(&s->processes, PROCESS_CLUSTER, 0, NULL);
	struct fleet_demand demand;

	if (!p && w->at > 0 && w->at <= s->clock && !s->stopping && !is_running(s))
		start_cluster(w, s);
	report_unanswered(s, p);
	if (!p || p->ipc_fd < 0)
		return;
	read_reports(w, s, p);
	make_demand(s, &demand, now);
	if (w->demanded && !memcmp(&demand, &w->sent, sizeof(demand)))
		return;
	w->demanded = fleet_ipc_send(p->ipc_fd, &demand, sizeof(demand));
	w->sent = demand;
}
