/* SPDX-License-Identifier: Apache-2.0 */
/* tomonode serve: check the configuration, lock the spool, listen, run. Each failure before the node runs has its exit code. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/audit/audit_queue.h"
#include "node/base/log.h"
#include "node/base/version.h"
#include "node/config/config_path.h"
#include "node/options/options.h"
#include "node/sandbox/sandbox.h"
#include "node/sandbox/user.h"
#include "node/serve/cmd_serve.h"
#include "node/serve/serve.h"
#include "node/store/spool.h"

#define LOCK_TRIES                                                                                                               \
	50 /* number of attempts: after kill -9 of an earlier node its processes hold the lock until they have ended             \
	    */
#define LOCK_WAIT_US 100000

static const struct option_spec options[] = {
	{'c', "config", "FILE", "configuration file, applied over the embedded defaults; reloaded on SIGHUP"},
	{0},
};

static const struct command_spec spec = {
	.name = "serve",
	.usage = "[-c FILE]",
	.summary = "Run the node in the foreground: receive, reconstruct, deliver.",
	.text = "SIGTERM or Ctrl-C stops it: running associations and deliveries may finish; a running reconstruction is\n"
		"interrupted and repeated at the next start. SIGHUP reloads the configuration; if the new one has a problem,\n"
		"the old one stays in effect.\n",
	.options = options,
	.examples = "tomonode serve -c /etc/tomonode/tomonode.conf\n",
};

static void print_problem(void *ctx, const char *problem)
{
	(void)ctx;
	fprintf(stderr, "%s\n", problem);
}

static int lock_spool(const char *spool, struct err *err)
{
	int fd = spool_lock(spool, err);

	for (int i = 0; fd == -EBUSY && i < LOCK_TRIES; i++) {
		usleep(LOCK_WAIT_US);
		fd = spool_lock(spool, err);
	}
	return fd;
}

/* Free and close the members of `conf` that serve_run() has not. */
static void release_conf(struct serve_conf *conf)
{
	config_free(conf->config);
	free(conf->text);
	if (conf->lock_fd >= 0)
		close(conf->lock_fd);
}

static int acquire_spool(struct serve_conf *conf, struct err *err)
{
	const char *spool = conf->config->node.spool;

	if (spool_prepare(spool, err) == 0)
		conf->lock_fd = lock_spool(spool, err);
	/* A full disk does not prevent the start. A queue that belongs to another user does, because every message would be lost.
	 */
	if (conf->lock_fd >= 0 && conf->config->node.audit != AUDIT_NONE && audit_queue_ready(spool, err) < 0 &&
	    (err->code == EACCES || err->code == ENOTSUP || err->code == ELOOP))
		return -err->code;
	return conf->lock_fd;
}

/* Do what requires root: listen and create the spool. The default path of the spool depends on the user, so the path is passed to
 * work processes. */
static int acquire_as_root(struct serve_conf *conf, const struct user *user, struct err *err)
{
	const char *spool = conf->config->node.spool;
	int ret = listen_open(conf->config, NULL, &conf->sockets, err);

	if (ret >= 0)
		ret = user_prepare_folder(user, spool, err);
	if (ret >= 0)
		ret = user_become(user, err);
	if (ret >= 0 && setenv("TOMONODE_SPOOL", spool, 1) < 0)
		ret = err_set(err, errno, "no memory for the environment");
	return ret < 0 ? ret : acquire_spool(conf, err);
}

static int acquire_conf(struct serve_conf *conf, const struct user *user, struct err *err)
{
	int ret;

	if (user->change)
		return acquire_as_root(conf, user, err);
	ret = acquire_spool(conf, err);
	return ret < 0 ? ret : listen_open(conf->config, NULL, &conf->sockets, err);
}

/* Done after the change of user, because a reload must be able to read the same files. */
static void log_sandbox(const struct serve_conf *conf, const char *missing)
{
	static const char *const modes[] = {[SANDBOX_AUTO] = "auto", [SANDBOX_ON] = "on", [SANDBOX_OFF] = "off"};
	struct sandbox_support s;

	sandbox_probe(&s);
	log_event(missing[0] || geteuid() == 0 ? LOG_WARNING : LOG_INFO, "sandbox", "mode=%s calls=%s files=%d uid=%ld%s%s",
		  modes[conf->config->node.sandbox], s.calls ? "yes" : "no", s.files, (long)geteuid(),
		  missing[0] ? " missing=" : "", missing[0] ? log_quote(missing) : "");
	if (conf->path && access(conf->path, R_OK) < 0)
		log_event(LOG_WARNING, "config-unreadable", "path=%s reason=%s", log_quote(conf->path),
			  log_quote("the node's user cannot read this file: a reload will fail and leave the configuration "
				    "unchanged"));
}

static int run_manager(const struct options *o, struct serve_conf *conf)
{
	const struct node_conf *node = &conf->config->node;
	struct user user = {0};
	struct err err = {0};
	char missing[200];

	umask(0027); /* files of the spool are closed to other users, also where its folder is not */
	if (user_look_up(node->user, geteuid(), &user, &err) < 0 ||
	    sandbox_check(conf->config, missing, sizeof(missing), &err) < 0) {
		release_conf(conf);
		return options_fail(o, CODE_CONFIG, "%s", err.msg);
	}
	if (acquire_conf(conf, &user, &err) < 0) {
		bool address =
			conf->sockets.n == 0 && (user.change || conf->lock_fd >= 0); /* the address failed, not the spool */

		listen_close(&conf->sockets);
		release_conf(conf);
		if (address)
			return options_fail(o, err.code == EADDRINUSE || err.code == EADDRNOTAVAIL ? CODE_BUSY : CODE_CONFIG,
					    "%s", err.msg);
		return options_fail_err(o, &err);
	}
	log_start(node->log_syslog ? LOG_TO_SYSLOG : LOG_TO_STDERR, node->log_facility, node->log_level, "serve");
	log_event(LOG_NOTICE, "serve-started", "version=%s revision=%s aet=%s bind=%s port=%d spool=%s config=%s",
		  TOMONODE_VERSION, TOMONODE_REVISION, log_quote(node->aet), log_quote(conf->sockets.list[0].conf.bind),
		  conf->sockets.list[0].port, log_quote(node->spool), log_quote(conf->path ? conf->path : "defaults"));
	for (size_t i = 0; i < conf->sockets.n; i++) {
		const struct listen_socket *s = &conf->sockets.list[i];

		log_event(LOG_NOTICE, "listening", "listener=%s bind=%s port=%d tls=%s", log_quote(s->conf.name),
			  log_quote(s->conf.bind), s->port, s->conf.tls ? "yes" : "no");
	}
	log_sandbox(conf, missing);
	if (serve_run(conf, &err) < 0) {
		log_event(LOG_CRIT, "serve-failed", "reason=%s", log_quote(err.msg));
		return options_fail_err(o, &err);
	}
	log_event(LOG_NOTICE, "serve-stopped", "code=0");
	return CODE_OK;
}

int cmd_serve(int argc, char **argv)
{
	struct serve_conf conf = {.lock_fd = -1};
	struct err err = {0};
	char buffer[CONFIG_PATH_BUFFER];
	struct options o;
	int id;

	options_begin(&o, &spec, argc, argv);
	while ((id = options_next(&o)) >= 0)
		if (id == 'c')
			conf.path = o.value;
	if (id == OPTION_STOP)
		return o.code;
	if (!conf.path)
		conf.path = config_path_default(buffer);
	if (serve_load(conf.path, print_problem, NULL, &conf.text, &conf.config, &err) < 0)
		return CODE_CONFIG;
	return run_manager(&o, &conf);
}
