/* serve.c - the node's loop.
 *
 * - SQLite must not cross a fork: the receiver is forked while the journal is closed (at start before it is opened for good,
 * later around the fork); all other processes are exec'ed and open their own. A journal that cannot be opened again then is
 * tried again from the loop: until it is there nothing is decided, but the receiver goes on.
 * - The sweep runs before the receiver does: what lies in incoming/ then is nobody's.
 * - Deadlines in memory are on event_clock(): a clock that is set back delays no SIGKILL. Times in the journal are on the wall
 * clock.
 * - Work processes read a copy of the configuration that was accepted (SPOOL/node.conf), not the file that somebody may be
 * editing.
 */
#include "node/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/audit_trail.h"
#include "node/event.h"
#include "node/log.h"
#include "node/node_report.h"
#include "node/receiver.h"
#include "node/schedule.h"
#include "node/spool.h"
#include "node/status_watch.h"
#include "node/tls_files.h"

#define TICK 0.25		   /* s between two looks for what other processes wrote: the command line's retry and cancel */
#define GRACE 20		   /* s that associations and deliveries under way get at the end */
#define WORKER_GRACE 10.0	   /* s from SIGTERM to SIGKILL */
#define RECEIVER_WAIT 1.0	   /* s until a receiver that ended by itself is started again */
#define JOURNAL_WAIT 2.0	   /* s until a journal that could not be opened again is tried again */
#define CERTIFICATES_EVERY 86400.0 /* s */
#define CONFIG_TEXT_MAX (1 << 20)

struct serve {
	struct serve_conf conf;
	struct schedule s;
	struct status_watch status;
	struct node_report report;
	char journal_path[300], config_copy[300];
	int signal_fd, pipe_fd[2];
	int64_t version;	   /* the journal's, when it was last looked at */
	struct audit_trail *trail; /* NULL: not yet opened */
	/* on event_clock(): */
	double journal_at;	/* open the journal again then; 0: it is open */
	double receiver_at;	/* start a receiver then; 0: none is wanted */
	double certificates_at; /* look when they end then */
	double stop_at;		/* 0: running; else when what is under way is told to end */
};

/* ---- configuration ---- */

static int read_text(const char *path, char **ret_text, struct err *err)
{
	char *text = malloc(CONFIG_TEXT_MAX + 1);
	FILE *f = text ? fopen(path, "re") : NULL;
	size_t n;
	int ret = 0;

	if (!f) {
		ret = text ? err_set(err, errno, "configuration %s: %s", path, strerror(errno))
			   : err_set(err, ENOMEM, "no memory");
		goto out;
	}
	n = fread(text, 1, CONFIG_TEXT_MAX + 1, f);
	if (ferror(f))
		ret = err_set(err, EIO, "configuration %s cannot be read", path);
	else if (n > CONFIG_TEXT_MAX)
		ret = err_set(err, EFBIG, "configuration %s is larger than %d bytes", path, CONFIG_TEXT_MAX);
	else if (memchr(text, '\0', n))
		ret = err_set(err, EINVAL, "configuration %s holds a NUL byte: it is no text", path);
	else
		text[n] = '\0';
	fclose(f);
out:
	if (ret == 0)
		*ret_text = text;
	else
		free(text);
	return ret;
}

static void log_expiry(void *ctx, const char *text, bool is_over)
{
	(void)ctx;
	log_event(is_over ? LOG_ALERT : LOG_WARNING, is_over ? "certificate-expired" : "certificate-expires", "reason=%s",
		  log_quote(text));
}

/* Certificates end while the node runs. */
static void watch_certificates(struct serve *v, double clock)
{
	const struct tls_files_report report = {NULL, NULL, log_expiry};

	v->certificates_at = clock + CERTIFICATES_EVERY;
	tls_files_check(v->conf.config, event_now(), &report, NULL);
}

int serve_load(const char *path, void (*report)(void *ctx, const char *problem), void *ctx, char **ret_text,
	       struct config **ret_config, struct err *err)
{
	const struct tls_files_report files = {ctx, report, NULL};
	struct config *config = NULL;
	char *text = NULL;
	int ret;

	if (!path) {
		ret = config_load(NULL, report, ctx, ret_config, err);
		if (ret == 0)
			*ret_text = NULL;
		return ret;
	}
	ret = read_text(path, &text, err);
	if (ret < 0) {
		if (report)
			report(ctx, err ? err->msg : path);
		return ret;
	}
	ret = config_parse(text, path, report, ctx, &config, err);
	if (ret == 0)
		ret = tls_files_check(config, event_now(), &files, err);
	if (ret == 0) {
		*ret_text = text;
		*ret_config = config;
	} else {
		free(text);
		config_free(config);
	}
	return ret;
}

/* What work processes read. Replaced as a whole: one that is just starting reads the old or the new one. On
 * failure the old one stays in force: without a path, work processes would take the embedded defaults and another spool. */
static int write_copy(struct serve *v, const char *text, struct err *err)
{
	char part[320], *old = NULL;
	size_t n;
	int fd, ret = 0;

	if (!text) {
		v->s.config_path = NULL;
		return 0;
	}
	n = strlen(text);
	if (read_text(v->config_copy, &old, NULL) == 0 &&
	    !strcmp(old, text)) { /* a full disk does not keep a node from starting */
		v->s.config_path = v->config_copy;
		free(old);
		return 0;
	}
	free(old);
	snprintf(part, sizeof(part), "%s.part", v->config_copy);
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, errno, "cannot write %s: %s", part, strerror(errno));
	if (write(fd, text, n) != (ssize_t)n || fsync(fd) < 0)
		ret = err_set(err, errno ? errno : ENOSPC, "cannot write %s: %s", part, strerror(errno ? errno : ENOSPC));
	close(fd);
	if (ret == 0 && rename(part, v->config_copy) < 0)
		ret = err_set(err, errno, "cannot rename %s: %s", part, strerror(errno));
	if (ret == 0)
		v->s.config_path = v->config_copy;
	else
		unlink(part);
	return ret;
}

static void start_log(const struct config *c, const char *who)
{
	log_start(c->node.log_syslog ? LOG_TO_SYSLOG : LOG_TO_STDERR, c->node.log_facility, c->node.log_level, who);
	audit_start(&c->node, AUDIT_QUEUED, who);
}

static void report_problem(void *ctx, const char *problem)
{
	(void)ctx;
	log_event(LOG_ERR, "config-problem", "problem=%s", log_quote(problem));
}

/* ---- receiver ---- */

static int receiver_child(void *ctx)
{
	struct serve *v = ctx;
	struct err err = {0};

	start_log(v->conf.config, "receiver");
	close(v->signal_fd);
	close(v->pipe_fd[0]);
	if (receiver_run(&v->conf.sockets, v->conf.config, v->pipe_fd[1], GRACE, &err) == 0)
		return 0;
	log_event(LOG_CRIT, "receiver-failed", "reason=%s", log_quote(err.msg));
	return 1;
}

/* Logs when the journal goes and when it is back, not each attempt. */
static void journal_reopen(struct serve *v, double clock)
{
	struct err err = {0};

	if (journal_open(v->journal_path, &v->s.journal, &err) < 0) {
		v->s.journal = NULL;
		if (v->journal_at == 0)
			log_event(LOG_CRIT, "journal-trouble", "reason=%s", log_quote(err.msg));
		v->journal_at = clock + JOURNAL_WAIT;
		return;
	}
	if (v->journal_at > 0)
		log_event(LOG_NOTICE, "journal-back", "path=%s", log_quote(v->journal_path));
	v->journal_at = 0;
	v->version = -1;
	v->s.journal_reserved = 0; /* its log may be a new file */
	v->s.space_at = 0;
}

/* Forks with the journal closed. */
static void start_receiver(struct serve *v, double clock)
{
	static const struct process p = {.role = PROCESS_RECEIVER};
	struct err why = {0};

	v->receiver_at = 0;
	v->s.journal = journal_close(v->s.journal);
	if (process_fork(&v->s.processes, &p, receiver_child, v, clock, &why) < 0) {
		log_event(LOG_CRIT, "receiver-not-started", "reason=%s", log_quote(why.msg));
		v->receiver_at = clock + RECEIVER_WAIT;
	}
	journal_reopen(v, clock);
}

/* ---- start ---- */

struct sweep_ctx {
	struct journal *journal;
	bool keep_all;
};

static int keep_file(void *ctx, const char *file)
{
	struct sweep_ctx *c = ctx;

	return c->keep_all ? 1 : journal_names_file(c->journal, file, NULL);
}

static void report_damage(void *ctx, const char *problem)
{
	(void)ctx;
	log_event(LOG_ALERT, "journal-damaged", "problem=%s", log_quote(problem));
}

/* Check the journal and remove what a crash left. A journal that is damaged or knows nothing (lost?) removes no instance. */
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
	journal_close(c.journal);
	return 0;
}

static int begin(struct serve *v, struct err *err)
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
	ret = write_copy(v, v->conf.text, err);
	if (ret < 0)
		return ret;
	ret = clean_up(v, err);
	if (ret < 0 && err->code != ENOSPC && err->code != EDQUOT)
		return ret;
	if (ret < 0) /* the receiver refuses until there is space; what lies about is swept at another start */
		log_event(LOG_CRIT, "sweep-failed", "reason=%s", log_quote(err->msg));
	start_receiver(v, event_clock());
	status_watch_configure(&v->status, v->conf.config, &v->s.processes, event_clock());
	return 0;
}

/* ---- reload ---- */

static void reload(struct serve *v, double clock)
{
	struct config *config = NULL;
	struct err why = {0};
	struct process *p;
	char *text = NULL;
	int ret = serve_load(v->conf.path, report_problem, NULL, &text, &config, &why);

	if (ret == 0 && strcmp(config->node.spool, v->conf.config->node.spool))
		ret = err_set(&why, EINVAL, "the spool cannot change while the node runs (%s to %s): stop it first",
			      v->conf.config->node.spool, config->node.spool);
	if (ret == 0)
		ret = write_copy(v, text, &why);
	if (ret == 0)
		ret = listen_open(config, &v->conf.sockets, &v->conf.sockets, &why);
	if (ret < 0) {
		log_event(LOG_ERR, "config-kept", "reason=%s", log_quote(why.msg));
		audit_configured(false, why.msg);
		config_free(config);
		free(text);
		write_copy(v, v->conf.text, NULL);
		return;
	}
	config_free(v->conf.config);
	free(v->conf.text);
	v->conf.config = config;
	v->conf.text = text;
	v->s.config = config;
	v->certificates_at = clock;
	slots_configure(&v->s.slots, config->node.device, clock);
	start_log(config, "serve");
	log_event(LOG_NOTICE, "config-reloaded", "aet=%s port=%d protocols=%zu destinations=%zu", log_quote(config->node.aet),
		  config->node.port, config->n_protocols, config->n_destinations);
	audit_configured(true, "the configuration was read again");
	v->trail = audit_trail_close(v->trail); /* it may have been switched on or off */
	p = process_find(&v->s.processes, PROCESS_RECEIVER, 0, NULL);
	if (p) {
		p->retired = true;
		process_stop(p, clock, GRACE + 5);
	}
	start_receiver(v, clock);
	status_watch_configure(&v->status, config, &v->s.processes, clock);
}

/* ---- stop ---- */

static void stop(struct serve *v, double clock)
{
	struct processes *all = &v->s.processes;
	bool again = v->s.stopping;

	v->s.stopping = true;
	v->receiver_at = 0;
	status_watch_end(&v->status);
	if (!again)
		v->stop_at = clock + GRACE;
	log_event(LOG_NOTICE, again ? "stopping-now" : "stopping", "processes=%zu", all->n);
	for (size_t i = 0; i < all->n; i++) {
		struct process *p = &all->list[i];

		if (again)
			process_stop(p, clock, 0);
		else if (p->role == PROCESS_RECEIVER)
			process_stop(p, clock, GRACE + 5);
		else if (p->role != PROCESS_DELIVER)
			process_stop(p, clock, WORKER_GRACE);
	}
}

/* The deliveries' grace is over. */
static void stop_rest(struct serve *v, double clock)
{
	for (size_t i = 0; i < v->s.processes.n; i++)
		process_stop(&v->s.processes.list[i], clock, 1);
	v->stop_at = clock + 3600;
}

/* ---- the loop ---- */

static void reap_all(struct serve *v, double now)
{
	struct process p;
	char how[120];
	int status;

	while (process_reap(&v->s.processes, &p, &status)) {
		process_describe(status, how, sizeof(how));
		log_event(LOG_DEBUG, "process-ended", "role=%s pid=%ld job=%lld how=%s", process_role_name(p.role), (long)p.pid,
			  (long long)p.job, log_quote(how));
		if (p.role == PROCESS_STATUS) {
			status_watch_ended(&v->status, &p, how, v->s.clock);
		} else if (p.role != PROCESS_RECEIVER) {
			schedule_ended(&v->s, &p, status, now);
			if (p.channel >= 0)
				close(p.channel);
		} else if (!p.retired && !v->s.stopping) {
			log_event(LOG_CRIT, "receiver-ended", "how=%s", log_quote(how));
			v->receiver_at = v->s.clock + (v->s.clock - p.started > 10 * RECEIVER_WAIT ? 0 : RECEIVER_WAIT);
		}
	}
}

static void take_signals(struct serve *v, double clock)
{
	struct signalfd_siginfo info;

	while (read(v->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			stop(v, clock);
		else if (info.ssi_signo == SIGHUP && !v->s.stopping)
			reload(v, clock);
	}
}

/* Wait until something happens, the clock says so, or another process wrote to the journal. */
static void wait_for_work(struct serve *v, double until)
{
	struct pollfd fds[2 + PROCESS_MAX] = {{.fd = v->signal_fd, .events = POLLIN}, {.fd = v->pipe_fd[0], .events = POLLIN}};
	nfds_t n_fds = 2;
	char bytes[256];

	for (size_t i = 0; i < v->s.processes.n; i++)
		if (v->s.processes.list[i].channel >= 0)
			fds[n_fds++] = (struct pollfd){.fd = v->s.processes.list[i].channel, .events = POLLIN};
	for (;;) {
		double left = until - event_clock(), wait = left < TICK ? left : TICK;
		int64_t version = v->version;
		int n = wait > 0 ? poll(fds, n_fds, (int)(1000 * wait) + 1) : poll(fds, n_fds, 0);

		while (read(v->pipe_fd[0], bytes, sizeof(bytes)) > 0)
			;
		if (v->s.journal)
			version = journal_data_version(v->s.journal);
		if (n != 0 || left <= 0 || version != v->version || v->s.stopping || audit_waiting(event_clock())) {
			v->version = version;
			return;
		}
	}
}

/* Opened before the first instance can be indexed, so that none is left out. */
static void open_trail(struct serve *v)
{
	struct err err = {0};

	if (!v->trail && v->s.journal && audit_trail_open(v->conf.config->node.spool, v->s.journal, &v->trail, &err) < 0)
		log_event(LOG_CRIT, "audit-trail", "reason=%s", log_quote(err.msg));
}

/* What was transferred, and the way to syslog. Answers when to come again, on event_clock(). */
static double audit(struct serve *v, double now, double clock, bool last)
{
	double next = 0, flush;

	if (v->trail && v->s.journal) {
		next = audit_trail_step(v->trail, v->s.journal, &v->s.jobs, v->conf.config, now, last);
		next = next > 0 ? clock + (next - now) : 0;
	}
	flush = audit_flush(clock);
	return flush > 0 && (next == 0 || flush < next) ? flush : next;
}

static void sooner(double *until, double deadline)
{
	if (deadline > 0 && deadline < *until)
		*until = deadline;
}

static void loop(struct serve *v)
{
	for (;;) {
		double now = event_now(), clock = event_clock(), until;

		v->s.clock = clock;
		reap_all(v, now);
		if (v->s.stopping && v->s.processes.n == 0)
			break;
		if (v->receiver_at > 0 && v->receiver_at <= clock)
			start_receiver(v, clock);
		if (v->journal_at > 0 && v->journal_at <= clock)
			journal_reopen(v, clock);
		if (v->certificates_at <= clock)
			watch_certificates(v, clock);
		if (v->stop_at > 0 && v->stop_at <= clock)
			stop_rest(v, clock);
		open_trail(v);
		status_watch_step(&v->status, v->conf.config, v->s.config_path, &v->s.processes, clock);
		schedule_step(&v->s, now);
		node_report_write(&v->report, &v->s, now);
		until = clock + (v->s.next - now);
		sooner(&until, process_tick(&v->s.processes, clock));
		sooner(&until, v->receiver_at);
		sooner(&until, v->journal_at);
		sooner(&until, audit(v, now, clock, false));
		sooner(&until, v->status.at);
		sooner(&until, v->certificates_at);
		wait_for_work(v, until);
		take_signals(v, event_clock());
	}
	schedule_interrupt(&v->s, event_now());
	audit_application(false);
	audit(v, event_now(), event_clock(), true);
}

int serve_run(struct serve_conf *conf, struct err *err)
{
	struct serve v = {.conf = *conf, .signal_fd = -1, .pipe_fd = {-1, -1}, .version = -1};
	int ret;

	v.s.config = v.conf.config;
	v.report.started = event_now();
	status_watch_begin(&v.status);
	slots_configure(&v.s.slots, v.conf.config->node.device, event_clock());
	audit_start(&v.conf.config->node, AUDIT_QUEUED, "serve");
	ret = begin(&v, err);
	if (ret == 0) {
		audit_application(true);
		loop(&v);
	}
	audit_trail_close(v.trail);
	v.s.journal = journal_close(v.s.journal);
	jobs_clear(&v.s.jobs);
	status_watch_end(&v.status);
	node_report_clear(&v.report);
	if (v.signal_fd >= 0)
		close(v.signal_fd);
	if (v.pipe_fd[0] >= 0) {
		close(v.pipe_fd[0]);
		close(v.pipe_fd[1]);
	}
	listen_close(&v.conf.sockets);
	close(v.conf.lock_fd);
	config_free(v.conf.config);
	free(v.conf.text);
	return ret;
}
