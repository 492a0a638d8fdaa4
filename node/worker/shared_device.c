/* SPDX-License-Identifier: Apache-2.0 */
#include "node/worker/shared_device.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/clock.h"

#define OPEN_SECONDS 20.0    /* most time to get an entry of the ledger */
#define MEMORY_EVERY 5000000 /* ns between two attempts to reserve memory */
#define TURN_EVERY 500000    /* ns between two attempts to get the turn, short beside the time of a case */

static void pause_ns(long ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static size_t memory_of_machine(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
}

int shared_device_open(struct shared_device *s, int ledger_fd, const char *name, size_t host_memory, struct err *err)
{
	double until = clock_seconds() + OPEN_SECONDS;
	int ret;

	*s = (struct shared_device){.cpu = !strncmp(name, "cpu", 3)};
	if (ledger_fd <= 0)
		return 0;
	while ((ret = ledger_open(ledger_fd, name, host_memory ? host_memory : memory_of_machine(), &s->ledger, err)) ==
		       -EAGAIN &&
	       clock_seconds() < until)
		pause_ns(MEMORY_EVERY);
	return ret;
}

void shared_device_close(struct shared_device *s)
{
	s->ledger = ledger_close(s->ledger);
}

void shared_device_limit(struct shared_device *s, struct device *dev)
{
	if (s->ledger && !s->cpu)
		dev->memory = ledger_capacity(s->ledger, dev->memory);
}

/* ---- one case ---- */

static void pass_progress(void *ctx, const char *stage, double fraction)
{
	const struct shared_device *s = ctx;

	monitor_progress(s->inner, stage, fraction);
}

static bool is_cancelled(void *ctx)
{
	const struct shared_device *s = ctx;

	return monitor_cancelled(s->inner);
}

static int reserve_memory(void *ctx, size_t device, size_t host)
{
	struct shared_device *s = ctx;
	uint64_t of_device = s->cpu ? 0 : device, of_host = host + (s->cpu ? device : 0);

	if (device == 0 && host == 0) {
		shared_device_end(s, 0);
		return 0;
	}
	if (ledger_holds(s->ledger) && !ledger_change(s->ledger, of_device, of_host))
		return -EAGAIN;
	s->host = of_host;
	if (ledger_holds(s->ledger))
		return 0;
	while (!ledger_reserve(s->ledger, of_device, of_host)) {
		monitor_progress(s->inner, "wait", 0);
		if (monitor_cancelled(s->inner))
			return -ECANCELED;
		pause_ns(MEMORY_EVERY);
	}
	return 0;
}

static int take_turn(void *ctx, bool begin)
{
	struct shared_device *s = ctx;

	if (!s->in_turn)
		return 0;
	if (!begin)
		ledger_end_turn(s->ledger);
	while (begin && !ledger_take_turn(s->ledger)) {
		monitor_progress(s->inner, "wait", 0);
		if (monitor_cancelled(s->inner))
			return -ECANCELED;
		pause_ns(TURN_EVERY);
	}
	return 0;
}

const struct monitor *shared_device_begin(struct shared_device *s, const struct monitor *inner, bool in_turn)
{
	if (!s->ledger)
		return inner;
	s->inner = inner;
	s->in_turn = in_turn && !s->cpu;
	s->monitor = (struct monitor){.ctx = s,
				      .progress = pass_progress,
				      .cancelled = is_cancelled,
				      .reserve = reserve_memory,
				      .take_turn = take_turn};
	return &s->monitor;
}

/* If the smaller reservation cannot be written, the larger one remains: never less than what is kept. A GPU's process keeps all
 * of its pinned memory, too. */
void shared_device_end(struct shared_device *s, size_t kept)
{
	if (s->ledger && kept > 0)
		ledger_change(s->ledger, 0, s->cpu ? kept : s->host);
	else if (s->ledger)
		ledger_release(s->ledger, !s->cpu);
}
