/* SPDX-License-Identifier: Apache-2.0 */
/* pilot.c - the files of a case, and the loop that waits for the node, the worker and signals. */
#include "node/cluster/pilot_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/exit_code.h"
#include "node/base/folder.h"
#include "node/base/log.h"
#include "node/cluster/pilot_folder.h"

#define TICK 0.5 /* s, longest wait */

void pilot_end(struct pilot *p, int code, const char *why)
{
	if (p->code >= 0)
		return;
	p->code = code;
	snprintf(p->why, sizeof(p->why), "%.119s", why);
}

/* ---- the case ---- */

int pilot_file_path(void *ctx, size_t i, char *ret_path, size_t size, int64_t *ret_bytes, struct err *err)
{
	const struct pilot *p = ctx;
	uint64_t bytes;
	const char *file = pilot_case_file(&p->order, i, &bytes);

	*ret_bytes = (int64_t)bytes;
	if (snprintf(ret_path, size, "%s/%s", p->conf->root, file) >= (int)size)
		return err_set(err, ENAMETOOLONG, "the path of %s is too long", file);
	return 0;
}

int pilot_object_path(void *ctx, size_t i, char *ret_path, size_t size, int64_t *ret_bytes, struct err *err)
{
	const struct pilot *p = ctx;
	const char *digest, *file = pilot_case_object(p->outcome.body, i, ret_bytes, &digest);
	char folder[400];
	int ret = pilot_case_path(p->conf->root, p->order.order.job, p->order.order.attempt, "", folder, sizeof(folder), err);

	if (ret == 0 && snprintf(ret_path, size, "%s/%s", folder, file) >= (int)size)
		ret = err_set(err, ENAMETOOLONG, "the path of %s is too long", file);
	return ret;
}

static void remove_files(const struct pilot *p)
{
	static const char *const suffixes[] = {".order", ".outcome"};
	const struct case_order *order = &p->order.order;
	char path[500];
	int64_t bytes;

	for (size_t i = 0; i < 2; i++)
		if (pilot_case_path(p->conf->root, order->job, order->attempt, suffixes[i], path, sizeof(path), NULL) == 0)
			unlink(path);
	/* At the end of the pilot the node may be reading its result in a shared spool, and removes it. */
	if (!(p->conf->shared && p->phase == PILOT_FINISHED && p->code >= 0) &&
	    pilot_case_path(p->conf->root, order->job, order->attempt, "", path, sizeof(path), NULL) == 0)
		folder_remove(path, NULL);
	for (size_t i = 0; !p->conf->shared && i < pilot_case_files(&p->order); i++)
		if (pilot_file_path((void *)p, i, path, sizeof(path), &bytes, NULL) == 0)
			unlink(path);
}

void pilot_forget_case(struct pilot *p)
{
	if (p->phase == PILOT_IDLE)
		return;
	if (p->phase == PILOT_RUNNING && pilot_worker(p)) { /* it is started again; its result is not needed */
		process_stop(pilot_worker(p), clock_seconds(), PILOT_WORKER_GRACE);
		p->worker_ready = false;
		pilot_worker(p)->job = 0;
	}
	transfer_in_end(&p->in);
	transfer_out_end(&p->out);
	remove_files(p);
	pilot_case_clear(&p->order);
	wire_clear(&p->outcome);
	json_decref(p->body);
	p->body = NULL;
	free(p->offsets);
	p->offsets = NULL;
	p->phase = PILOT_IDLE;
}

/* ---- the loop ---- */

static void read_signals(struct pilot *p)
{
	struct signalfd_siginfo info;
	char why[40];

	while (read(p->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD) {
			snprintf(why, sizeof(why), "SIG%s", sigabbrev_np((int)info.ssi_signo));
			log_event(LOG_NOTICE, "ended-by-signal", "signal=%s", why);
			pilot_end(p, CODE_OK, why);
		}
}

static void wait_for_work(struct pilot *p)
{
	struct pollfd fds[3] = {{.fd = p->signal_fd, .events = POLLIN}, {.fd = -1}, {.fd = -1, .events = POLLIN}};
	double wait = TICK;

	if (p->link)
		fds[1] = (struct pollfd){.fd = link_fd(p->link),
					 .events = (short)(link_events(p->link) | (pilot_is_sending(p) ? POLLOUT : 0))};
	else if (p->worker_ready || p->phase != PILOT_IDLE)
		wait = fmin(fmax(p->dial_at - clock_seconds(), 0), TICK);
	if (pilot_worker(p) && pilot_worker(p)->ipc_fd >= 0)
		fds[2].fd = pilot_worker(p)->ipc_fd;
	poll(fds, 3, (int)ceil(1000 * wait));
	if (fds[2].revents & (POLLHUP | POLLERR) && !(fds[2].revents & POLLIN))
		usleep(10000); /* its end will be reported in a moment */
}

static void loop_pilot(struct pilot *p)
{
	pilot_start_worker(p);
	while (p->code < 0) {
		if (!p->link && p->device_name[0] && p->dial_at <= clock_seconds())
			pilot_dial(p);
		wait_for_work(p);
		read_signals(p);
		process_table_tick(&p->processes, clock_seconds());
		pilot_reap_worker(p);
		pilot_read_node(p);
		if (p->link)
			pilot_write_node(p);
	}
}

static const char *const folders[] = {"instances", "work", "flatfields"};
#define N_FOLDERS (sizeof(folders) / sizeof(folders[0]))

static int prepare_folder(const struct pilot_conf *conf, struct err *err)
{
	char path[400];
	int ret = conf->shared ? 0 : folder_create(conf->root, err);

	pilot_clean(conf, false);
	for (size_t i = 0; ret == 0 && !conf->shared && i < N_FOLDERS; i++) {
		snprintf(path, sizeof(path), "%s/%s", conf->root, folders[i]);
		ret = folder_make(path, err);
	}
	return ret;
}

void pilot_clean(const struct pilot_conf *conf, bool all)
{
	char path[400];

	for (size_t i = 0; !conf->shared && i < N_FOLDERS; i++) {
		snprintf(path, sizeof(path), "%s/%s", conf->root, folders[i]);
		pilot_folder_remove(path);
	}
	if (all)
		rmdir(conf->root);
}

static int begin_pilot(struct pilot *p, struct err *err)
{
	unsigned char bytes[16];
	sigset_t mask;

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_set(err, EIO, "no random bytes");
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(p->instance + 2 * i, 3, "%02x", bytes[i]);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	p->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	p->processes.lock_fd = -1;
	p->processes.notify_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (p->signal_fd < 0 || p->processes.notify_fd < 0)
		return err_set(err, errno, "cannot set up signals: %s", strerror(errno));
	return prepare_folder(p->conf, err);
}

int pilot_run(const struct pilot_conf *conf)
{
	struct pilot p = {.conf = conf,
			  .device = conf->device,
			  .signal_fd = -1,
			  .in.fd = -1,
			  .out.fd = -1,
			  .lost_since = clock_seconds(),
			  .code = -1};
	struct err err = {0};

	if (begin_pilot(&p, &err) < 0) {
		log_event(LOG_CRIT, "pilot-not-started", "reason=%s", log_quote(err.msg));
		pilot_end(&p, CODE_FAILED, "");
	} else {
		loop_pilot(&p);
		pilot_say_end(&p);
	}
	if (pilot_worker(&p)) {
		process_kill(pilot_worker(&p), clock_seconds());
		waitpid(pilot_worker(&p)->pid, NULL, 0);
	}
	pilot_forget_case(&p);
	link_close(p.link);
	if (p.signal_fd >= 0)
		close(p.signal_fd);
	return p.code;
}
