/* tomonode serve: check, lock, listen, run. What can go wrong before the node runs has its own exit code. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "node/commands.h"
#include "node/log.h"
#include "node/options.h"
#include "node/serve.h"
#include "node/spool.h"
#include "node/version.h"

#define LOCK_TRIES 50 /* an old node's processes may still be dying (kill -9): they hold the lock */
#define LOCK_WAIT_US 100000

static const struct option_spec options[] = {
	{'c', "config", "FILE", "configuration laid over the embedded defaults; read again on SIGHUP"},
	{0},
};

static const struct command_spec spec = {
	.name = "serve",
	.usage = "[-c FILE]",
	.summary = "Run the node in the foreground: receive, reconstruct, deliver.",
	.text = "SIGTERM or Ctrl-C ends it: associations and deliveries under way may end, a reconstruction is interrupted and "
		"starts\n"
		"again at the next start. SIGHUP reads the configuration again; with a problem in it, the old one stays.\n",
	.options = options,
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

/* What serve_run() did not take over. */
static void put_down(struct serve_conf *conf)
{
	config_free(conf->config);
	free(conf->text);
	if (conf->lock_fd >= 0)
		close(conf->lock_fd);
}

static int run(const struct options *o, struct serve_conf *conf)
{
	const struct node_conf *node = &conf->config->node;
	struct err err = {0};
	bool listening = false;

	if (spool_prepare(node->spool, &err) == 0)
		conf->lock_fd = lock_spool(node->spool, &err);
	if (conf->lock_fd >= 0)
		listening = listen_open(conf->config, NULL, &conf->sockets, &err) == 0;
	if (!listening) {
		put_down(conf);
		if (conf->lock_fd >= 0) /* the address, not the spool */
			return options_fail(o, err.code == EADDRINUSE ? CODE_BUSY : CODE_CONFIG, "%s", err.msg);
		return options_fail_err(o, &err);
	}
	log_start(node->log_syslog ? LOG_TO_SYSLOG : LOG_TO_STDERR, node->log_facility, node->log_level, "serve");
	log_event(LOG_NOTICE, "serve-started", "version=%s revision=%s aet=%s bind=%s port=%d spool=%s", TOMONODE_VERSION,
		  TOMONODE_REVISION, log_quote(node->aet), log_quote(conf->sockets.list[0].conf.bind), conf->sockets.list[0].port,
		  log_quote(node->spool));
	for (size_t i = 0; i < conf->sockets.n; i++) {
		const struct listen_socket *s = &conf->sockets.list[i];

		log_event(LOG_NOTICE, "listening", "listener=%s bind=%s port=%d tls=%s", log_quote(s->conf.name),
			  log_quote(s->conf.bind), s->port, s->conf.tls ? "yes" : "no");
	}
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
	struct options o;
	int id;

	options_begin(&o, &spec, argc, argv);
	while ((id = options_next(&o)) >= 0)
		if (id == 'c')
			conf.path = o.value;
	if (id == OPTION_STOP)
		return o.code;
	if (serve_load(conf.path, print_problem, NULL, &conf.text, &conf.config, &err) < 0)
		return CODE_CONFIG;
	return run(&o, &conf);
}
