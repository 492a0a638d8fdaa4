/* SPDX-License-Identifier: Apache-2.0 */
/* serve_config.c - the configuration in effect: reading it at the start and replacing it at a reload.
 *
 * - The text is read once, with its included files, and checked as a whole. Work processes read this checked copy
 *   (SPOOL/node.conf), not the file, which a person may be editing.
 * - A reload is applied completely or not at all: until the new text is checked, its copy written and its ports are open, the old
 *   configuration and its copy stay.
 * - The spool cannot change while the node runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/audit/audit.h"
#include "node/base/log.h"
#include "node/receive/tls_files.h"
#include "node/serve/serve_internal.h"

#define CERTIFICATES_EVERY 86400.0 /* s */
#define CLUSTER_WAIT 10.0	   /* s until the next attempt to listen for pilots */
#define COPY_ROOM (64 << 10)	   /* bytes reserved for the copy of the configuration, for a replacement on a full disk */

int serve_load(const char *path, void (*report)(void *ctx, const char *problem), void *ctx, char **ret_text,
	       struct config **ret_config, struct err *err)
{
	const struct tls_files_report files = {ctx, report, NULL, NULL};
	struct config *config = NULL;
	char *text = NULL;
	int ret = path ? config_load_text(path, report, ctx, &config, &text, err) : config_load(NULL, report, ctx, &config, err);

	if (ret == 0 && path)
		ret = tls_files_check(config, &files, err);
	if (ret == 0) {
		*ret_text = text;
		*ret_config = config;
	} else {
		free(text);
		config_free(config);
	}
	return ret;
}

/* ---- the copy ---- */

static int write_file(const char *path, int flags, const char *text, struct err *err)
{
	size_t n = strlen(text), at = 0;
	ssize_t got = 0;
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0600), ret = 0;

	if (fd < 0)
		return err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
	for (; at < n && got >= 0; at += got > 0 ? (size_t)got : 0)
		got = write(fd, text + at, n - at);
	if (got < 0 || ftruncate(fd, (off_t)n) < 0 || fsync(fd) < 0)
		ret = err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
	else /* reserve space for a longer text on a full disk; ignored if the file system cannot preallocate */
		(void)!fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, COPY_ROOM);
	close(fd);
	return ret;
}

static bool holds_text(const char *path, const char *text)
{
	size_t n = strlen(text);
	char *there = malloc(n + 1);
	FILE *f = there ? fopen(path, "re") : NULL;
	bool same = f && fread(there, 1, n + 1, f) == n && !memcmp(there, text, n);

	if (f)
		fclose(f);
	free(there);
	return same;
}

/* The copy is replaced by a rename, so that a work process that is starting reads the complete old or new text. On failure the
 * old copy is unchanged; without a copy, work processes would use the embedded defaults and another spool. If the disk has no
 * space for a second file and no work process runs, the old file is overwritten, because a person may have changed the
 * configuration in order to get space. If the node is killed meanwhile, an incomplete copy remains, which the next start
 * replaces. */
int serve_write_copy(struct serve *v, const char *text, struct err *err)
{
	struct err why = {0};
	char part[320];
	int ret;

	if (!text) {
		v->s.config_path = NULL;
		return 0;
	}
	if (!holds_text(v->config_copy, text)) {
		snprintf(part, sizeof(part), "%s.part", v->config_copy);
		ret = write_file(part, O_CREAT | O_TRUNC, text, &why);
		if (ret == 0 && rename(part, v->config_copy) < 0)
			ret = err_set(&why, errno, "cannot rename %s: %s", part, strerror(errno));
		if (ret < 0)
			unlink(part);
		if ((ret == -ENOSPC || ret == -EDQUOT) && v->s.processes.n == 0)
			ret = write_file(v->config_copy, 0, text, NULL);
		if (ret < 0)
			return err_set(err, why.code, "%s", why.msg);
	}
	v->s.config_path = v->config_copy;
	return 0;
}

void serve_start_log(const struct config *c, const char *who)
{
	log_start(c->node.log_syslog ? LOG_TO_SYSLOG : LOG_TO_STDERR, c->node.log_facility, c->node.log_level, who);
	audit_start(&c->node, AUDIT_QUEUED, who);
}

/* Keep a certificate for the page, and log it if it has a problem. */
static void watch_certificate(void *ctx, const struct node_certificate *certificate)
{
	struct self_check *check = ctx;
	struct node_problem p;
	char line[1200];

	self_check_add_certificate(check, certificate);
	if (!node_problem_of_certificate(certificate, clock_wall(), &p))
		return;
	node_problem_line(&p, line, sizeof(line));
	log_event(node_problem_is_over(&p) ? LOG_ALERT : LOG_WARNING,
		  node_problem_is_over(&p) ? "certificate-expired" : "certificate-expires", "reason=%s", log_quote(line));
}

static void log_open_key(void *ctx, const char *text)
{
	(void)ctx;
	log_event(LOG_WARNING, "key-unprotected", "reason=%s", log_quote(text));
}

/* Check the expiry of certificates once a day, because they may expire while the node runs. */
void serve_watch_certificates(struct serve *v, double clock)
{
	const struct tls_files_report report = {&v->check, NULL, watch_certificate, log_open_key};

	v->certificates_at = clock + CERTIFICATES_EVERY;
	self_check_forget_certificates(&v->check);
	tls_files_check(v->conf.config, &report, NULL);
	v->check.at = 0;
}

const char *serve_devices(const struct config *c)
{
	return c->node.executor & EXECUTOR_LOCAL ? c->node.device : "";
}

static void report_problem(void *ctx, const char *problem)
{
	(void)ctx;
	log_event(LOG_ERR, "config-problem", "problem=%s", log_quote(problem));
}

void serve_open_cluster(struct serve *v, double clock)
{
	const struct cluster_conf *conf = &v->conf.config->cluster;
	struct err err = {0};
	int fd;

	v->cluster_at = 0;
	v->check.facts.pilots_unheard[0] = '\0';
	if (v->s.cluster_fd > 0 && (conf->port != v->cluster.port || strcmp(conf->bind, v->cluster.bind) != 0)) {
		close(v->s.cluster_fd);
		v->s.cluster_fd = 0;
	}
	if (conf->port == 0 || v->s.cluster_fd > 0)
		return;
	fd = listen_on(conf->bind, conf->port, NULL, &err);
	if (fd < 0) {
		log_event(LOG_CRIT, "cluster-not-listening", "reason=%s", log_quote(err.msg));
		snprintf(v->check.facts.pilots_unheard, sizeof(v->check.facts.pilots_unheard), "%.299s", err.msg);
		v->cluster_at = clock + CLUSTER_WAIT;
		return;
	}
	v->s.cluster_fd = fd;
	v->cluster = *conf;
	log_event(LOG_NOTICE, "cluster-listening", "bind=%s port=%d", conf->bind, conf->port);
}

void serve_reload(struct serve *v, double clock)
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
		ret = serve_write_copy(v, text, &why);
	if (ret == 0)
		ret = listen_open(config, &v->conf.sockets, &v->conf.sockets, &why);
	if (ret < 0) {
		log_event(LOG_ERR, "config-not-reloaded", "reason=%s", log_quote(why.msg));
		audit_configured(false, why.msg);
		snprintf(v->check.facts.reload, sizeof(v->check.facts.reload), "%.299s", why.msg);
		v->check.at = 0;
		config_free(config);
		free(text);
		serve_write_copy(v, v->conf.text, NULL);
		return;
	}
	config_free(v->conf.config);
	free(v->conf.text);
	v->conf.config = config;
	v->conf.text = text;
	v->s.config = config;
	v->check.facts.reload[0] = '\0';
	v->certificates_at = clock;
	self_check_reload(&v->check);
	v->s.slots.per_device = config->node.workers_per_device;
	slots_configure(&v->s.slots, serve_devices(config), clock);
	serve_start_log(config, "serve");
	log_event(LOG_NOTICE, "config-reloaded", "aet=%s port=%d protocols=%zu destinations=%zu", log_quote(config->node.aet),
		  v->conf.sockets.list[0].port, config->n_protocols, config->n_destinations);
	audit_configured(true, "the configuration was read again");
	v->trail = audit_trail_close(v->trail); /* the new configuration may switch it on or off */
	p = process_table_find(&v->s.processes, PROCESS_RECEIVER, 0, NULL);
	if (p) {
		p->retired = true;
		process_stop(p, clock, SERVE_GRACE + 5);
	}
	serve_start_receiver(v, clock);
	serve_open_cluster(v, clock);
	status_watch_reload(&v->status, config, &v->s.processes, clock);
	cluster_watch_reload(&v->fleet, &v->s, clock);
}
