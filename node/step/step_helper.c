/* SPDX-License-Identifier: Apache-2.0 */
#include "node/step/step_helper.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/log.h"
#include "node/sandbox/sandbox.h"
#include "node/step/step_internal.h"

#define ASK_MS 100 /* between two questions whether the case was cancelled */

/* ---- in the helper ---- */

static void begin_helper(const struct config *config, const char *folder, int fd, pid_t caller)
{
	struct err err = {0};
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != caller) /* it died before the call above */
		_exit(1);
	prctl(PR_SET_NAME, "tomonode-steps");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGTERM, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGINT, SIG_IGN); /* of a terminal: the caller decides */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (fd != 3 && dup2(fd, 3) < 0)
		_exit(1);
	close_range(4, ~0u, 0);
	if (sandbox_enter(SANDBOX_STEPS, config, folder, &err) < 0) {
		log_event(LOG_CRIT, "sandbox-failed", "role=%s reason=%s", sandbox_role_name(SANDBOX_STEPS), log_quote(err.msg));
		_exit(1);
	}
	step_serve(config, folder, 3);
	_exit(0);
}

/* ---- in its caller ---- */

static void say_output(const struct step_helper *h, const char *step, const struct step_answer *a)
{
	char text[STEP_OUTPUT + 1], *rest = NULL;

	memcpy(text, a->output, sizeof(text));
	text[STEP_OUTPUT] = '\0';
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (h->command)
			fprintf(stderr, "tomonode %s: step %s: %s\n", h->command, step, line);
		else
			log_event(LOG_INFO, "step-output", "job=%lld step=%s text=%s", (long long)h->job, step, log_quote(line));
	if (!h->command)
		log_event(LOG_INFO, "step-ended", "job=%lld step=%s exit=%d signal=%d seconds=%.3f memory=%llu%s%s",
			  (long long)h->job, step, a->end.exit_code, a->end.signal, a->end.seconds,
			  (unsigned long long)a->end.memory, a->why[0] ? " reason=" : "", a->why[0] ? log_quote(a->why) : "");
}

static int lose_helper(struct step_helper *h, struct err *err)
{
	h->lost = true;
	return err_set(err, EIO, "the process that starts the programs of steps has ended");
}

/* Wait for the answer; if the case is cancelled, ask the helper to end the program. */
static int wait_answer(struct step_helper *h, const struct step_conf *s, const struct monitor *monitor, struct step_answer *ret,
		       struct err *err)
{
	const struct step_request stop = {""};
	struct pollfd p = {.fd = h->fd, .events = POLLIN};
	double begun = clock_seconds();
	bool stopped = false;
	ssize_t n;

	while (poll(&p, 1, ASK_MS) <= 0) {
		monitor_progress(monitor, "step", fmin((clock_seconds() - begun) / s->time, 1));
		if (!stopped && monitor_cancelled(monitor)) {
			stopped = true;
			if (send(h->fd, &stop, sizeof(stop), MSG_NOSIGNAL) < 0)
				return lose_helper(h, err);
		}
	}
	n = recv(h->fd, ret, sizeof(*ret), 0);
	return n == (ssize_t)sizeof(*ret) ? 0 : lose_helper(h, err);
}

static int run_step(void *ctx, const struct step_conf *step, const char *folder, uint64_t bytes, const struct monitor *monitor,
		    struct step_end *ret, struct err *err)
{
	struct step_helper *h = ctx;
	struct step_request m = {.bytes = bytes};
	struct step_answer *answer = malloc(sizeof(*answer));
	int rc = answer ? 0 : err_set(err, ENOMEM, "no memory for step '%s'", step->name);

	monitor_progress(monitor, "step", 0);
	if (rc == 0 && monitor_cancelled(monitor))
		rc = err_set(err, ECANCELED, "cancelled before step '%s'", step->name);
	m.gpu = h->dev && !strcmp(h->dev->ops->kind, "cuda") ? h->dev->index : -1;
	snprintf(m.name, sizeof(m.name), "%s", step->name);
	if (rc == 0 && snprintf(m.folder, sizeof(m.folder), "%s", folder) >= (int)sizeof(m.folder))
		rc = err_set(err, ENAMETOOLONG, "the path of the folder of step '%s' is too long", step->name);
	if (rc == 0 && (h->lost || send(h->fd, &m, sizeof(m), MSG_NOSIGNAL) != (ssize_t)sizeof(m)))
		rc = lose_helper(h, err);
	if (rc == 0)
		rc = wait_answer(h, step, monitor, answer, err);
	if (rc == 0) {
		answer->why[sizeof(answer->why) - 1] = '\0';
		*ret = answer->end;
		say_output(h, step->name, answer);
		if (answer->code)
			rc = err_set(err, answer->code, "%s", answer->why);
	}
	free(answer);
	return rc;
}

int step_helper_start(struct step_helper *h, const struct config *config, const char *folder, struct err *err)
{
	pid_t caller = getpid(), pid;
	int pair[2];

	h->fd = -1;
	h->runner.ctx = h;
	h->runner.run = run_step;
	if (config->n_steps == 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, errno, "cannot create the socket to the process for steps: %s", strerror(errno));
	fflush(NULL); /* otherwise the child would write the buffered output again */
	pid = fork();
	if (pid == 0)
		begin_helper(config, folder, pair[1], caller);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_set(err, errno, "cannot start the process for steps: %s", strerror(errno));
	}
	h->fd = pair[0];
	return 0;
}

void step_helper_stop(struct step_helper *h)
{
	if (h->fd >= 0)
		close(h->fd);
	h->fd = -1;
}
