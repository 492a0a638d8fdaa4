/* SPDX-License-Identifier: Apache-2.0 */
/* serve_start.c - start the node from a checked configuration, up to the running receiver.
 *
 * - The spool is swept before the receiver starts: files in incoming/ then belong to no process.
 * - A large journal is checked while the node runs (node/serve/journal_check.h), unless an image has no row.
 * - An image without a row in the journal is not removed, because the journal may have been lost or replaced by an older one
 * (node/store/orphans.h).
 * - A full disk does not prevent the start: the receiver refuses objects until there is space.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/log.h"
#include "node/process/memory_ledger.h"
#include "node/serve/serve_internal.h"
#include "node/store/orphans.h"
#include "node/store/spool.h"

#define RECEIVERS_MAX 1000 /* maximum of node.max_associations */

struct sweep_ctx {
	struct journal *journal;
	struct manager_facts *facts;
	bool checked; /* the journal was checked: is_damaged() */
	bool damaged; /* it is damaged and may lack rows: move no image because of it */
	int orphans;  /* number of images without a row */
	bool more;    /* true: there are more than a crash can leave, which is one for each receiving process */
	int n_receivers, max_receivers;
	long receivers[RECEIVERS_MAX];
};

/* Check the journal, if that was not done yet. */
static bool is_damaged(struct sweep_ctx *c)
{
	if (!c->checked)
		c->damaged = journal_check_now(c->journal, c->facts);
	c->checked = true;
	return c->damaged;
}

/* Count an orphan. Its file name contains the number of the process that received it (spool_begin()). */
static void count_orphan(struct sweep_ctx *c, const char *file)
{
	long pid;

	c->orphans++;
	if (c->more || sscanf(file, "instances/%*x-%*x-%ld-", &pid) != 1)
		return;
	c->more = c->n_receivers >= c->max_receivers;
	for (int i = 0; i < c->n_receivers; i++)
		c->more = c->more || c->receivers[i] == pid;
	if (!c->more)
		c->receivers[c->n_receivers++] = pid;
}

/* A pilot continues its attempt while the node is stopped. */
static int row_of_attempt(struct sweep_ctx *c, int64_t job, int64_t attempt)
{
	struct jobs jobs = {0};
	const struct job_view *v;
	int ret = jobs_refresh(&jobs, c->journal, job, NULL);

	v = ret < 0 ? NULL : jobs_find(&jobs, job);
	if (ret >= 0)
		ret = v && v->state == JOB_RUNNING && v->started_seq == attempt ? SPOOL_NAMED
		      : is_damaged(c)						? -EIO
										: SPOOL_NO_ROW;
	jobs_clear(&jobs);
	return ret;
}

static int row_of_file(void *ctx, const char *file)
{
	struct sweep_ctx *c = ctx;
	long long job, attempt;
	int ret;

	if (sscanf(file, "work/%lld-%lld", &job, &attempt) == 2)
		return row_of_attempt(c, job, attempt);
	ret = journal_has_file(c->journal, file, NULL);
	if (ret != 0)
		return ret < 0 ? -EIO : SPOOL_NAMED;
	ret = journal_has_removed_file(c->journal, file, NULL);
	if (ret == 0)
		count_orphan(c, file);
	return ret < 0 || is_damaged(c) ? -EIO : ret == 1 ? SPOOL_REMOVED : SPOOL_NO_ROW;
}

static int names_file(void *ctx, const char *file)
{
	struct sweep_ctx *c = ctx;
	int ret = journal_has_file(c->journal, file, NULL);

	return ret == 1 && is_damaged(c) ? -EIO : ret;
}

/* Log the orphans. A crash leaves few, which were never acknowledged; if there are more, the journal was lost or replaced by an
 * older one. */
static void report_orphans(const struct sweep_ctx *c)
{
	if (c->orphans == 0)
		return;
	if (c->damaged)
		log_event(LOG_ALERT, "orphans-found", "images=%d reason=%s", c->orphans,
			  log_quote("the damaged journal has no rows for them; they stay in instances/. Stop the node, move its "
				    "spool elsewhere, start the node and send them again"));
	else
		log_event(c->more ? LOG_ALERT : LOG_NOTICE, "orphans-found", "images=%d reason=%s", c->orphans,
			  log_quote(c->more ? "the journal has no rows for them, and a crash does not leave so many: the journal "
					      "was lost or replaced by an older one. They are in orphans/ of the spool: send "
					      "them to this node again"
					    : "the journal has no rows for them, as after a crash. They are in orphans/ of the "
					      "spool: their senders will send them again"));
}

/* Remove files that a crash left, and move images without a row to orphans/. Check the journal before. If it is damaged, no image is
 * moved or removed. */
static int clean_up(struct serve *v, struct err *err)
{
	const struct node_conf *node = &v->conf.config->node;
	struct sweep_ctx c = {.max_receivers = node->max_associations, .facts = &v->check.facts};
	struct err why = {0};
	int ret = journal_open(v->journal_path, &c.journal, err);
	int removed, back = 0;

	if (ret < 0)
		return ret;
	self_check_journal_opened(&v->check, v->journal_path);
	if (!journal_check_is_short(v->journal_path) || !is_damaged(&c))
		back = orphans_restore(node->spool, names_file, &c, &why);
	if (back > 0)
		log_event(LOG_NOTICE, "orphans-restored", "images=%d", back);
	removed = back < 0 ? back : spool_sweep(node->spool, row_of_file, &c, &why);
	if (removed < 0)
		log_event(LOG_ERR, "sweep-failed", "reason=%s", log_quote(why.msg));
	else if (removed > 0)
		log_event(LOG_NOTICE, "spool-swept", "removed=%d", removed);
	report_orphans(&c);
	journal_close(c.journal);
	if (!c.checked)
		journal_check_start(&v->journal_check, &v->s.processes, v->conf.config, v->journal_path, clock_seconds(),
				    &v->check.facts);
	return 0;
}

void serve_notify(const struct serve *v, const char *state)
{
	struct err err = {0};

	if (service_notify_send(&v->notify, state, &err) < 0)
		log_event(LOG_ERR, "service-not-notified", "reason=%s", log_quote(err.msg));
}

int serve_begin(struct serve *v, struct err *err)
{
	sigset_t mask;
	int ret;

	snprintf(v->journal_path, sizeof(v->journal_path), "%s/journal.db", v->conf.config->node.spool);
	snprintf(v->config_copy, sizeof(v->config_copy), "%s/node.conf", v->conf.config->node.spool);
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	v->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (v->signal_fd < 0 || pipe2(v->pipe_fd, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_set(err, errno, "cannot set up signals: %s", strerror(errno));
	v->s.processes.lock_fd = v->conf.lock_fd;
	v->s.processes.notify_fd = v->pipe_fd[1];
	v->s.processes.ledger_fd = ledger_create();
	if (v->s.processes.ledger_fd < 0)
		return err_set(err, errno, "cannot create the ledger of memory: %s", strerror(errno));
	ret = serve_write_copy(v, v->conf.text, err);
	if (ret < 0)
		return ret;
	ret = clean_up(v, err);
	if (ret < 0 && err->code != ENOSPC && err->code != EDQUOT)
		return ret;
	if (ret < 0) /* the receiver refuses objects until there is space; the next start sweeps the remaining files */
		log_event(LOG_CRIT, "sweep-failed", "reason=%s", log_quote(err->msg));
	serve_start_receiver(v, clock_seconds());
	serve_open_cluster(v, clock_seconds());
	status_watch_reload(&v->status, v->conf.config, &v->s.processes, clock_seconds());
	cluster_watch_reload(&v->fleet, &v->s, clock_seconds());
	return 0;
}
