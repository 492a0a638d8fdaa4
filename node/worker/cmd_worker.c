/* SPDX-License-Identifier: Apache-2.0 */
/* tomonode worker DEVICE: open a device, test it, and reconstruct on it, one after the other, the cases that the node assigns.
 *
 * - A failure of a case is recorded by the job run (node/worker/job_run.h). A failure of the device is reported to the manager
 *   (node/process/worker_ipc.h) and ends the process: only a new process can replace a broken CUDA context.
 * - While it waits, it has no journal open. It frees the memory of each case and keeps only the device; where the manager says
 *   that another result of the same images follows, also what that can use, until the next case or for KEPT_SECONDS.
 * - "auto" and "cuda" are not devices: for these it counts the devices, reports their number, and ends.
 * - `tomonode case ROOT DEVICE` is the same without a journal, for a pilot: the order of a case and its outcome are files
 *   (node/worker/detached_case.h).
 * - SIGTERM ends it, also during a case: the handler shuts the socket to the manager down, which makes it readable, so that no
 * signal is missed.
 */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/device_names.h"
#include "node/base/exit_code.h"
#include "node/base/log.h"
#include "node/base/thread_pool.h"
#include "node/process/work_process.h"
#include "node/process/worker_ipc.h"
#include "node/step/step_helper.h"
#include "node/worker/case_run.h"
#include "node/worker/cmd_worker.h"
#include "node/worker/detached_case.h"
#include "node/worker/job_run.h"
#include "node/worker/shared_device.h"
#include "recon/core/self_test.h"
#include "recon/pet/pet.h"

#define ALIVE_EVERY 0.5 /* s between two messages WORKER_ALIVE */
#define KEPT_SECONDS 10 /* most time without a case until what is kept of the last one is freed */

struct worker {
	struct work_process process;
	struct device *dev;
	bool keep; /* another result of the job's images follows */
	struct case_kept kept;
	struct pet_cache *cache; /* NULL: no memory for one; no sensitivity image is kept from case to case */
	struct shared_device shared;
	struct step_helper steps; /* the process that starts their programs */
	bool detached;		  /* `case`: it has no journal */
	size_t memory;		  /* allowed by the control groups, read before the sandbox; 0: no limit */
	int64_t job, attempt;
	double progress_at; /* on clock_seconds() */
};

static bool is_stopped(void *ctx)
{
	(void)ctx;
	return work_process_stopped();
}

/* stage NULL: not known. A failure is ignored: the message is not essential. */
static void report_stage(void *ctx, const char *stage, double fraction)
{
	struct worker *w = ctx;
	double clock = clock_seconds();

	if (clock - w->progress_at < ALIVE_EVERY)
		return;
	w->progress_at = clock;
	worker_ipc_send(w->process.ipc_fd, WORKER_ALIVE, w->job, (int)(1000 * fraction), stage, false);
}

static void report_progress(void *ctx)
{
	report_stage(ctx, NULL, 0);
}

static bool send_message(const struct worker *w, enum worker_message_kind kind, int number, const char *text)
{
	return worker_ipc_send(w->process.ipc_fd, kind, w->job, number, text, true);
}

static int count_devices(const struct worker *w)
{
	struct device *dev = NULL;
	struct err why = {0};
	int n = device_cuda_count();
	size_t least = 0;
	char bytes_text[32];

	for (int i = 0; i < n; i++) {
		size_t bytes = device_cuda_memory(i);

		least = i == 0 || bytes < least ? bytes : least;
	}
	snprintf(bytes_text, sizeof(bytes_text), "%zu", least);
	if (n <= 0 && device_cuda_open(0, &dev, &why) == 0)
		device_close(dev); /* a device appeared after the count; the next count includes it */
	return send_message(w, WORKER_COUNTED, n, n > 0 ? bytes_text : why.msg) ? CODE_OK : CODE_FAILED;
}

static int open_device(struct worker *w, const char *name)
{
	struct self_test_report report = {0};
	struct err err = {0};
	int ret = device_open(name, &w->dev, &err);

	if (ret == 0) {
		device_names_limit(w->dev, w->memory);
		shared_device_limit(&w->shared, w->dev);
		ret = self_test(w->dev, &report, &err);
	}
	if (ret < 0) {
		send_message(w, WORKER_REFUSED, 0, err.msg);
		return CODE_DEVICE;
	}
	w->cache = pet_cache_create(w->dev, PET_CACHE_BYTES);
	log_event(LOG_INFO, "device-tested", "device=%s gap=%.2g difference=%.2g ms=%.0f threads=%d", log_quote(w->dev->name),
		  report.gap, report.difference, 1e3 * report.seconds, threads_available());
	return CODE_OK;
}

/* Memory of the device; of the CPU as much as the control groups allow. */
static int memory_mib(const struct worker *w)
{
	size_t bytes = w->dev->memory;

	if (!strcmp(w->dev->ops->kind, "cpu") && w->memory > 0 && (bytes == 0 || w->memory < bytes))
		bytes = w->memory;
	return (int)(bytes >> 20);
}

/* Start the process for steps, which this one may not start once it is in the sandbox. */
static int begin_steps(struct worker *w)
{
	char folder[300];
	struct err err = {0};

	snprintf(folder, sizeof(folder), "%s/work", w->process.config->node.spool);
	if (w->detached || step_helper_start(&w->steps, w->process.config, folder, &err) == 0)
		return CODE_OK;
	log_event(LOG_ERR, "steps-not-started", "reason=%s", log_quote(err.msg));
	return CODE_FAILED;
}

/* Open the device and enter the sandbox: for a CPU before the device is opened, so that the sandbox includes its threads; for
 * CUDA afterwards, because the driver opens many files and starts threads while the device is opened and tested. In both cases no
 * data from outside have been read. */
static int begin_device(struct worker *w, const char *name)
{
	bool cpu = !strncmp(name, "cpu", 3);
	enum sandbox_role role = w->detached ? SANDBOX_CASE : SANDBOX_WORKER;
	struct err err = {0};
	int code;

	if (begin_steps(w) != CODE_OK)
		return CODE_FAILED;
	w->memory = device_names_allowed();
	if (shared_device_open(&w->shared, w->process.ledger_fd, name, w->memory, &err) < 0) {
		log_event(LOG_ERR, "ledger-not-opened", "device=%s reason=%s", log_quote(name), log_quote(err.msg));
		return CODE_FAILED;
	}
	if (cpu && work_process_enter_sandbox(&w->process, role, name) < 0)
		return CODE_FAILED;
	code = open_device(w, name);
	if (code == CODE_OK && !cpu && work_process_enter_sandbox(&w->process, role, name) < 0)
		return CODE_FAILED;
	return code == CODE_OK && !send_message(w, WORKER_READY, memory_mib(w), w->dev->name) ? CODE_FAILED : code;
}

static void compute_case(void *ctx, const struct case_order *order, const char *out_dir, const struct monitor *monitor,
			 struct case_outcome *ret_outcome)
{
	struct worker *w = ctx;
	struct case_order with = *order; /* borrowed */
	const struct case_run_conf conf = {
		.config = w->process.config,
		.dev = w->dev,
		.cache = w->cache,
		.kept = &w->kept,
		.steps = w->steps.fd >= 0 ? &w->steps.runner : NULL,
		.folder = w->process.config->node.spool,
		.out_dir = out_dir,
		.monitor = shared_device_begin(&w->shared, monitor, w->process.config->node.compute_in_turn)};

	with.keep = w->keep;
	w->steps.job = order->job;
	w->steps.dev = w->dev;
	snprintf(w->steps.runner.folder, sizeof(w->steps.runner.folder), "%s/work/%lld/steps", w->process.config->node.spool,
		 (long long)order->job);
	case_run(&conf, &with, ret_outcome);
	shared_device_end(&w->shared, w->kept.data.bytes);
}

static void free_kept(struct worker *w)
{
	if (!w->kept.data.work)
		return;
	case_kept_clear(&w->kept);
	shared_device_end(&w->shared, 0);
	malloc_trim(0);
}

/* Wait for a message. What is kept is freed if none comes in time; a signal does not end the wait, unless it stops the process.
 */
static void wait_with_kept(struct worker *w)
{
	double until = clock_seconds() + KEPT_SECONDS, left = KEPT_SECONDS;
	struct pollfd p = {.fd = w->process.ipc_fd, .events = POLLIN};
	int n;

	if (!w->kept.data.work)
		return;
	while ((n = poll(&p, 1, left > 0 ? (int)(1000 * left) : 0)) < 0 && errno == EINTR && !work_process_stopped())
		left = until - clock_seconds();
	if (n == 0)
		free_kept(w);
}

/* Run one job. CODE_OK: ready for the next one. */
static int do_job(struct worker *w)
{
	struct job_run_conf conf = {.process = &w->process,
				    .job = w->job,
				    .ctx = w,
				    .compute = compute_case,
				    .alive = report_progress,
				    .stopped = is_stopped};
	enum job_run_end end = JOB_RUN_JOURNAL_FAILED;
	struct err err = {0};

	if (work_process_open_journal(&w->process, &err) == 0)
		end = job_run(&conf, &err);
	w->process.journal = journal_close(w->process.journal);
	malloc_trim(0);
	switch (end) {
	case JOB_RUN_RECONSTRUCTED:
	case JOB_RUN_REFUSED:
	case JOB_RUN_NOT_RUNNING:
		return send_message(w, WORKER_DONE, end == JOB_RUN_RECONSTRUCTED, NULL) ? CODE_OK : CODE_FAILED;
	case JOB_RUN_DEVICE_FAILED:
		send_message(w, WORKER_BROKEN, 0, err.msg);
		return CODE_DEVICE;
	case JOB_RUN_STOPPED:
	case JOB_RUN_LOST: /* only a seat has a connection to lose */
		return CODE_CANCELLED;
	case JOB_RUN_JOURNAL_FAILED:
		log_event(LOG_CRIT, "journal-error", "job=%lld reason=%s", (long long)w->job, log_quote(err.msg));
		return CODE_FAILED;
	}
	return CODE_FAILED;
}

/* The same for a case of a pilot. */
static int do_case(struct worker *w)
{
	const struct monitor monitor = {.ctx = w, .progress = report_stage, .cancelled = is_stopped};
	struct err err = {0};
	int ret = detached_case_run(w->process.config->node.spool, w->job, w->attempt, w->dev, w->cache, &monitor, &err);

	bool told;

	if (ret == -ECANCELED)
		return CODE_CANCELLED;
	if (ret == -EHWPOISON) {
		send_message(w, WORKER_BROKEN, 0, err.msg);
		return CODE_DEVICE;
	}
	told = send_message(w, WORKER_DONE, -ret, ret < 0 ? err.msg : NULL);
	malloc_trim(0); /* afterwards: the result is waited for */
	return told ? CODE_OK : CODE_FAILED;
}

static int work_cases(struct worker *w)
{
	int code = CODE_OK;

	while (code == CODE_OK && !work_process_stopped()) {
		struct worker_message m;
		int got;

		wait_with_kept(w);
		got = worker_ipc_receive(w->process.ipc_fd, &m, true);
		if (got < 0)
			break;
		if (got == 0 || m.kind != WORKER_JOB)
			continue;
		w->job = m.job;
		w->attempt = m.attempt;
		w->keep = m.number == 1;
		w->progress_at = 0;
		code = w->detached ? do_case(w) : do_job(w);
		w->job = 0;
		if (w->steps.lost) /* the next worker has a new one */
			break;
	}
	return code;
}

static int run_worker(struct worker *w, const char *device)
{
	int code;

	if (w->process.ipc_fd < 0) {
		fprintf(stderr, "tomonode worker: --ipc FD is missing\n");
		work_process_end(&w->process);
		return CODE_USAGE;
	}
	work_process_catch_stop(&w->process);
	if (device_name_is_wildcard(device)) {
		code = count_devices(w);
	} else {
		code = begin_device(w, device);
		if (code == CODE_OK)
			code = work_cases(w);
	}
	free_kept(w);
	pet_cache_free(w->cache);
	shared_device_close(&w->shared);
	step_helper_stop(&w->steps);
	if (code != CODE_DEVICE) /* not for a broken device: the call may hang */
		w->dev = device_close(w->dev);
	work_process_end(&w->process);
	return code;
}

int cmd_worker(int argc, char **argv)
{
	struct worker w = {.steps = {.fd = -1}};
	int code = CODE_OK;

	if (!work_process_options(&w.process, "worker", "-c FILE --ipc FD DEVICE", 1, argc, argv, &code))
		return code;
	return run_worker(&w, w.process.argument[0]);
}

int cmd_case(int argc, char **argv)
{
	struct worker w = {.detached = true, .steps = {.fd = -1}};
	int code = CODE_OK;

	if (!work_process_options(&w.process, "case", "--ipc FD ROOT DEVICE", 2, argc, argv, &code))
		return code;
	snprintf(w.process.config->node.spool, sizeof(w.process.config->node.spool), "%s", w.process.argument[0]);
	return run_worker(&w, w.process.argument[1]);
}
