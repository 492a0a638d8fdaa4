/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_cluster.c - `tomonode cluster`, the process that starts and ends pilots as Slurm jobs, as node/fleet/fleet.h decides. It is
 * the only one that runs Slurm's commands: they may take half a minute, and the manager never waits for them.
 *
 * - The secret of a pilot is stored before its job is submitted, and removed after the job has ended. So the secrets are the list
 *   of the pilots of this node: jobs of another node of the same user are not touched, and after kill -9 of this process the next
 *   one continues with the jobs that exist.
 * - With `executor` without slurm it ends all pilots, then itself.
 */
#include "node/fleet/cmd_cluster.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/audit/audit.h"
#include "node/base/exit_code.h"
#include "node/base/log.h"
#include "node/fleet/fleet_conf.h"
#include "node/fleet/fleet_ipc.h"
#include "node/fleet/slurm.h"
#include "node/process/work_process.h"
#include "node/store/pilot_secret.h"

#define LIST_SOON 3.0	/* s between two lists of jobs while a job is expected to start or to end */
#define LIST_LATER 30.0 /* s otherwise */

struct cluster {
	const struct config *config;
	struct fleet fleet;
	struct fleet_report sent;
	int ipc_fd;
	bool reported; /* `sent` is set */
	double listed; /* time of the last list of jobs; 0: none yet */
};

/* Return true if the pilot `id` has used a token: it was connected. */
static bool has_used(const char *folder, const char *id)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/%.*s.used", folder, FLEET_ID_SIZE - 1, id);
	return access(path, F_OK) == 0;
}

static void adopt_pilots(struct cluster *c)
{
	char path[300];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/pilots", c->config->node.spool);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (fleet_conf_is_id(entry->d_name))
			fleet_adopt(&c->fleet, entry->d_name, has_used(path, entry->d_name), clock_seconds());
	if (dir)
		closedir(dir);
}

/* ---- actions ---- */

static void remove_secret(const struct cluster *c, const char *id)
{
	struct err err = {0};

	if (pilot_secret_remove(c->config->node.spool, id, &err) < 0 && err.code != ENOENT)
		log_event(LOG_ERR, "secret-not-removed", "pilot=%s reason=%s", id, log_quote(err.msg));
}

static void submission_failed(struct cluster *c, enum fleet_controller state, const char *text)
{
	log_event(LOG_ERR, "pilot-not-submitted", "reason=%s", log_quote(text));
	fleet_failed(&c->fleet, state, text, clock_seconds());
}

static void submit_script(struct cluster *c, const char *id, const char *script)
{
	struct slurm_options options = fleet_conf_options(&c->config->slurm);
	struct slurm_reply reply;
	uint64_t job = 0;

	reply = slurm_submit(&options, id, script, &job);
	if (reply.state == FLEET_UP || reply.unknown)
		fleet_submitted(&c->fleet, id, job, clock_seconds());
	else
		remove_secret(c, id);
	audit_slurm_job(id, true, job, reply.state == FLEET_UP ? NULL : reply.text);
	if (reply.state != FLEET_UP)
		submission_failed(c, reply.state, reply.text);
	else
		log_event(LOG_NOTICE, "pilot-submitted", "pilot=%s job=%llu", id, (unsigned long long)job);
}

static void submit_pilot(struct cluster *c)
{
	char id[FLEET_ID_SIZE], address[160], script[SLURM_SCRIPT_SIZE], secret[PILOT_SECRET_SIZE];
	struct slurm_pilot pilot = {c->config->slurm.program,
				    address,
				    id,
				    secret,
				    fleet_conf_shared_spool(c->config),
				    c->config->slurm.certificate,
				    c->config->slurm.key,
				    c->config->slurm.authorities};
	struct err err = {0};
	int ret = fleet_conf_new_id(id, &err);

	if (ret == 0)
		ret = fleet_conf_address(c->config, address, sizeof(address), &err);
	if (ret == 0)
		ret = pilot_secret_create(c->config->node.spool, id, secret, &err);
	if (ret == 0 && (ret = slurm_script(&pilot, script, &err)) < 0)
		remove_secret(c, id);
	if (ret < 0)
		submission_failed(c, FLEET_REFUSES, err.msg);
	else
		submit_script(c, id, script);
	explicit_bzero(secret, sizeof(secret));
	explicit_bzero(script, sizeof(script));
}

static void test_slurm(struct cluster *c)
{
	struct slurm_options options = fleet_conf_options(&c->config->slurm);
	struct slurm_reply reply = slurm_test(&options);

	if (reply.state == FLEET_UP)
		fleet_submission_ok(&c->fleet);
	else
		fleet_failed(&c->fleet, reply.state, reply.text, clock_seconds());
}

static void cancel_pilot(const struct fleet_action *a)
{
	struct slurm_reply reply = slurm_cancel(a->job);

	log_event(reply.state == FLEET_UP ? LOG_NOTICE : LOG_ERR, "pilot-cancelled", "pilot=%s job=%llu reason=%s", a->id,
		  (unsigned long long)a->job, log_quote(reply.text));
	audit_slurm_job(a->id, false, a->job, reply.state == FLEET_UP ? NULL : reply.text);
}

static void end_pilot(struct cluster *c, const struct fleet_action *a)
{
	struct fleet_report request = {0};

	snprintf(request.end, sizeof(request.end), "%s", a->id);
	fleet_ipc_send(c->ipc_fd, &request, sizeof(request)); /* if it is lost, scancel follows */
	log_event(LOG_NOTICE, "pilot-ends", "pilot=%s job=%llu", a->id, (unsigned long long)a->job);
}

static void forget_pilot(struct cluster *c, const struct fleet_action *a)
{
	remove_secret(c, a->id);
	log_event(LOG_INFO, "pilot-ended", "pilot=%s job=%llu", a->id, (unsigned long long)a->job);
}

/* Carry out what is due. Returns the time of the next call. */
static double act_on_fleet(struct cluster *c)
{
	const struct slurm_conf *slurm = &c->config->slurm;
	bool on = c->config->node.executor & EXECUTOR_SLURM;
	struct fleet_limits limits = {on ? slurm->min : 0, on ? slurm->max : 0, slurm->idle};
	struct fleet_action a;
	double next;

	while ((a = fleet_next(&c->fleet, &limits, clock_seconds(), &next)).kind != FLEET_NOTHING) {
		if (a.kind == FLEET_SUBMIT)
			submit_pilot(c);
		else if (a.kind == FLEET_TEST)
			test_slurm(c);
		else if (a.kind == FLEET_CANCEL)
			cancel_pilot(&a);
		else if (a.kind == FLEET_END)
			end_pilot(c, &a);
		else
			forget_pilot(c, &a);
	}
	return next;
}

/* ---- events ---- */

/* Return when the jobs are to be listed: soon while a job is about to start, to connect or to end, or Slurm does not reply. */
static double list_at(const struct cluster *c)
{
	const struct fleet *f = &c->fleet;
	bool soon = f->replied == FLEET_DOWN;

	for (size_t i = 0; i < f->n; i++)
		soon = soon || !f->list[i].connected || f->list[i].state != FLEET_RUNNING;
	return c->listed > 0 ? c->listed + (soon ? LIST_SOON : LIST_LATER) : 0;
}

static void list_pilots(struct cluster *c)
{
	struct fleet_row rows[2 * FLEET_MAX];
	size_t n = 0;
	struct slurm_reply reply;

	if (clock_seconds() < list_at(c))
		return;
	reply = slurm_list(rows, 2 * FLEET_MAX, &n);
	fleet_replied(&c->fleet, reply.state, reply.text);
	if (reply.state == FLEET_UP)
		fleet_listed(&c->fleet, rows, n, clock_seconds());
	c->listed = clock_seconds();
}

/* false: the manager has ended. */
static bool read_demand(struct cluster *c)
{
	struct fleet_demand demand;
	int got;

	while ((got = fleet_ipc_receive(c->ipc_fd, &demand, sizeof(demand))) > 0) {
		demand.unanswered[FLEET_ID_SIZE - 1] = '\0';
		if (demand.unanswered[0])
			fleet_unanswered(&c->fleet, demand.unanswered);
		else
			fleet_connected(&c->fleet, demand.seats, demand.n < FLEET_MAX ? demand.n : FLEET_MAX, demand.waiting,
					clock_seconds());
	}
	return got == 0;
}

static bool is_same(const struct fleet_report *a, const struct fleet_report *b)
{
	return a->state == b->state && !strcmp(a->text, b->text) && !memcmp(&a->counts, &b->counts, sizeof(a->counts)) &&
	       a->submitted == b->submitted && a->requeued == b->requeued && a->started == b->started;
}

static void report_fleet(struct cluster *c)
{
	struct fleet_report r = {0};

	r.state = fleet_describe(&c->fleet, clock_seconds(), r.text);
	r.counts = fleet_count(&c->fleet);
	r.submitted = c->fleet.submitted;
	r.requeued = c->fleet.requeued;
	r.started = c->fleet.started;
	r.queued_seconds = c->fleet.queued_seconds;
	if (c->reported && is_same(&r, &c->sent))
		return;
	if (r.state != c->sent.state)
		log_event(r.state == FLEET_UP ? LOG_NOTICE : LOG_WARNING, "cluster", "state=%s reason=%s",
			  fleet_controller_name(r.state), log_quote(r.text));
	c->reported = fleet_ipc_send(c->ipc_fd, &r, sizeof(r));
	c->sent = r;
}

static void loop_cluster(struct cluster *c)
{
	bool on = c->config->node.executor & EXECUTOR_SLURM;

	for (;;) {
		struct pollfd fd = {c->ipc_fd, POLLIN, 0};
		double next, left;

		if (!read_demand(c))
			return;
		list_pilots(c);
		next = act_on_fleet(c);
		next = fmin(next, list_at(c));
		report_fleet(c);
		if (!on && c->fleet.n == 0)
			return;
		left = fmin(next - clock_seconds(), LIST_LATER);
		if (left > 0)
			poll(&fd, 1, (int)(1000 * left) + 1);
	}
}

int cmd_cluster(int argc, char **argv)
{
	struct work_process p;
	struct cluster c = {0};
	int code;

	if (!work_process_options(&p, "cluster", "[-c FILE] --ipc FD", 0, argc, argv, &code))
		return code;
	c.config = p.config;
	c.ipc_fd = p.ipc_fd;
	adopt_pilots(&c);
	loop_cluster(&c);
	work_process_end(&p);
	return CODE_OK;
}
