/* serve_config.c - the configuration that is in force: how it comes in, and how another one takes its place.
 *
 * - A text is read once, checked whole, and kept: what was checked is what work processes get (SPOOL/node.conf), not the file
 *   that somebody may be editing.
 * - A reload takes everything or nothing: until the new text is checked, its copy written and its ports are open, the old
 *   configuration stays, copy included.
 * - The spool cannot change while the node runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/audit.h"
#include "node/log.h"
#include "node/serve_parts.h"
#include "node/tls_files.h"

#define CERTIFICATES_EVERY 86400.0 /* s */
#define CONFIG_TEXT_MAX (1 << 20)

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

int serve_load(const char *path, void (*report)(void *ctx, const char *problem), void *ctx, char **ret_text,
	       struct config **ret_config, struct err *err)
{
	const struct tls_files_report files = {ctx, report, NULL, NULL};
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
		ret = tls_files_check(config, clock_wall(), &files, err);
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
int serve_write_copy(struct serve *v, const char *text, struct err *err)
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

void serve_start_log(const struct config *c, const char *who)
{
	log_start(c->node.log_syslog ? LOG_TO_SYSLOG : LOG_TO_STDERR, c->node.log_facility, c->node.log_level, who);
	audit_start(&c->node, AUDIT_QUEUED, who);
}

static void log_expiry(void *ctx, const char *text, bool is_over)
{
	(void)ctx;
	log_event(is_over ? LOG_ALERT : LOG_WARNING, is_over ? "certificate-expired" : "certificate-expires", "reason=%s",
		  log_quote(text));
}

static void log_open_key(void *ctx, const char *text)
{
	(void)ctx;
	log_event(LOG_WARNING, "key-open", "reason=%s", log_quote(text));
}

/* Certificates end while the node runs. */
void serve_watch_certificates(struct serve *v, double clock)
{
	const struct tls_files_report report = {NULL, NULL, log_expiry, log_open_key};

	v->certificates_at = clock + CERTIFICATES_EVERY;
	tls_files_check(v->conf.config, clock_wall(), &report, NULL);
}

static void report_problem(void *ctx, const char *problem)
{
	(void)ctx;
	log_event(LOG_ERR, "config-problem", "problem=%s", log_quote(problem));
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
		log_event(LOG_ERR, "config-kept", "reason=%s", log_quote(why.msg));
		audit_configured(false, why.msg);
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
	v->certificates_at = clock;
	slots_configure(&v->s.slots, config->node.device, clock);
	serve_start_log(config, "serve");
	log_event(LOG_NOTICE, "config-reloaded", "aet=%s port=%d protocols=%zu destinations=%zu", log_quote(config->node.aet),
		  config->node.port, config->n_protocols, config->n_destinations);
	audit_configured(true, "the configuration was read again");
	v->trail = audit_trail_close(v->trail); /* it may have been switched on or off */
	p = process_find(&v->s.processes, PROCESS_RECEIVER, 0, NULL);
	if (p) {
		p->retired = true;
		process_stop(p, clock, SERVE_GRACE + 5);
	}
	serve_start_receiver(v, clock);
	status_watch_configure(&v->status, config, &v->s.processes, clock);
}
