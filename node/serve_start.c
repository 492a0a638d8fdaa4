/* serve_start.c - from a checked configuration to a node whose receiver runs.
 *
 * - The sweep runs before the receiver does: what lies in incoming/ then is nobody's.
 * - A journal that is damaged or knows nothing removes no instance.
 * - A full disk keeps no node from starting: the receiver refuses until there is space.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/log.h"
#include "node/serve_parts.h"
#include "node/spool.h"

struct sweep_ctx {
	struct journal *journal;
	bool keep_all;
	int kept; /* images that no row names */
};

static int keep_file(void *ctx, const char *file)
{
	struct sweep_ctx *c = ctx;
	int named = journal_names_file(c->journal, file, NULL);

	if (c->keep_all)
		c->kept += named == 0;
	return c->keep_all ? 1 : named;
}

static void report_damage(void *ctx, const char *problem)
{
	(void)ctx;
	log_event(LOG_ALERT, "journal-damaged", "problem=%s", log_quote(problem));
}

/* Check the journal and remove what a crash left. A journal that is damaged or knows nothing (lost?) removes no instance. One
 * that knows nothing today knows something at the next start, and removes them then: so it is an alarm now. */
static int clean_up(struct serve *v, struct err *err)
{
	struct sweep_ctx c = {0};
	struct err why = {0};
	int ret = journal_open(v->journal_path, &c.journal, err);
	int removed;

	if (ret < 0)
		return ret;
	c.keep_all = journal_check(c.journal, report_damage, NULL, &why) != 0 || journal_has_any(c.journal, NULL) != 1;
	removed = spool_sweep(v->conf.config->node.spool, keep_file, &c, &why);
	if (removed < 0)
		log_event(LOG_ERR, "sweep-failed", "reason=%s", log_quote(why.msg));
	else if (removed > 0)
		log_event(LOG_NOTICE, "spool-swept", "removed=%d", removed);
	if (c.kept > 0)
		log_event(LOG_ALERT, "images-unknown", "images=%d reason=%s", c.kept,
			  log_quote("the journal names none of them, and a later start removes them: stop the node, move its "
				    "spool away, start it, send them again"));
	journal_close(c.journal);
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
	ret = serve_write_copy(v, v->conf.text, err);
	if (ret < 0)
		return ret;
	ret = clean_up(v, err);
	if (ret < 0 && err->code != ENOSPC && err->code != EDQUOT)
		return ret;
	if (ret < 0) /* the receiver refuses until there is space; what lies about is swept at another start */
		log_event(LOG_CRIT, "sweep-failed", "reason=%s", log_quote(err->msg));
	serve_start_receiver(v, clock_seconds());
	status_watch_configure(&v->status, v->conf.config, &v->s.processes, clock_seconds());
	return 0;
}
