/* SPDX-License-Identifier: Apache-2.0 */
/* memory_ledger.c - see node/process/memory_ledger.h.
 *
 * Locks are POSIX record locks (fcntl F_SETLK), which belong to the process: byte 0 guards the table while it is read or changed,
 * byte 1 + i is held by the worker of entry i, and byte TURNS + d by the worker that computes on device d.
 */
#include "node/process/memory_ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/clock.h"

#define DEVICES_MAX 64
#define TURNS 4096 /* larger than 1 + LEDGER_ENTRIES */

struct table {
	uint64_t last_ticket;
	struct {
		char name[DEVICE_NAME_SIZE];
		uint64_t bytes; /* free for cases when no worker holds any; 0: unknown */
	} devices[DEVICES_MAX];
	struct ledger_entry entries[LEDGER_ENTRIES];
};

struct ledger {
	int fd;
	struct table *table;
	size_t me, device; /* indices */
	uint64_t host_capacity;
};

/* ---- decision ---- */

static bool is_before(const struct ledger_entry *a, const struct ledger_entry *b)
{
	return a->state == LEDGER_WAITING && a->ticket < b->ticket;
}

bool ledger_fits(const struct ledger_entry *list, size_t n, size_t me, uint64_t device_capacity, uint64_t host_capacity)
{
	const struct ledger_entry *mine = &list[me];
	uint64_t device = 0, host = 0;
	bool device_used = false, host_used = false;

	for (size_t i = 0; i < n; i++) {
		const struct ledger_entry *e = &list[i];
		bool same = !strcmp(e->device, mine->device);

		if (i == me || e->state == LEDGER_FREE)
			continue;
		if (same && is_before(e, mine))
			return false;
		if (e->state == LEDGER_WAITING)
			continue;
		host += e->host_bytes;
		if (e->state != LEDGER_HOLDING)
			continue;
		device += same ? e->device_bytes : 0;
		device_used = device_used || (same && e->device_bytes > 0);
		host_used = host_used || e->host_bytes > 0;
	}
	return (!device_used || device_capacity == 0 || device + mine->device_bytes <= device_capacity) &&
	       (!host_used || host_capacity == 0 || host + mine->host_bytes <= host_capacity);
}

/* ---- locks ---- */

static bool lock_byte(int fd, off_t at, short type)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

	return fcntl(fd, F_SETLK, &l) == 0;
}

/* Return true if another process holds this byte. */
static bool is_locked(int fd, off_t at)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

	return fcntl(fd, F_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

static bool begin_change(struct ledger *l)
{
	return lock_byte(l->fd, 0, F_WRLCK);
}

static void end_change(struct ledger *l)
{
	lock_byte(l->fd, 0, F_UNLCK);
}

/* Free the entries of dead workers, those that held memory LEDGER_GRACE after they were found dead. */
static void sweep_dead(struct ledger *l)
{
	double now = clock_seconds();

	for (size_t i = 0; i < LEDGER_ENTRIES; i++) {
		struct ledger_entry *e = &l->table->entries[i];

		if (i == l->me || e->state == LEDGER_FREE || is_locked(l->fd, 1 + (off_t)i))
			continue;
		if (e->died <= 0)
			e->died = now;
		if (e->state != LEDGER_HOLDING || now - e->died >= LEDGER_GRACE)
			*e = (struct ledger_entry){0};
	}
}

/* ---- open ---- */

int ledger_create(void)
{
	int fd = memfd_create("tomonode-ledger", MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, sizeof(struct table)) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Take a free entry. false: there is none. */
static bool claim_entry(struct ledger *l, const char *device)
{
	l->me = LEDGER_ENTRIES;
	sweep_dead(l);
	for (size_t i = 0; i < LEDGER_ENTRIES; i++) {
		struct ledger_entry *e = &l->table->entries[i];

		if (e->state != LEDGER_FREE || !lock_byte(l->fd, 1 + (off_t)i, F_WRLCK))
			continue;
		*e = (struct ledger_entry){.state = LEDGER_IDLE};
		strncpy(e->device, device, sizeof(e->device) - 1);
		l->me = i;
		return true;
	}
	return false;
}

static bool find_device(struct ledger *l, const char *device)
{
	for (l->device = 0; l->device < DEVICES_MAX; l->device++) {
		char *name = l->table->devices[l->device].name;

		if (!name[0])
			strncpy(name, device, DEVICE_NAME_SIZE - 1);
		if (!strcmp(name, device))
			return true;
	}
	return false;
}

int ledger_open(int fd, const char *device, uint64_t host_capacity, struct ledger **ret_ledger, struct err *err)
{
	struct ledger *l = calloc(1, sizeof(*l));
	bool found = false;

	if (!l)
		return err_set(err, ENOMEM, "no memory for the ledger");
	*l = (struct ledger){.fd = fd, .host_capacity = host_capacity, .me = LEDGER_ENTRIES};
	l->table = mmap(NULL, sizeof(struct table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (l->table == MAP_FAILED) {
		free(l);
		return err_set(err, errno, "the ledger of memory cannot be mapped: %s", strerror(errno));
	}
	if (begin_change(l)) {
		found = find_device(l, device) && claim_entry(l, device);
		end_change(l);
	}
	if (!found) {
		ledger_close(l);
		return err_set(err, EAGAIN, "the ledger of memory has no free entry now");
	}
	*ret_ledger = l;
	return 0;
}

struct ledger *ledger_close(struct ledger *l)
{
	if (!l)
		return NULL;
	if (l->me < LEDGER_ENTRIES) {
		l->table->entries[l->me] = (struct ledger_entry){0};
		lock_byte(l->fd, 1 + (off_t)l->me, F_UNLCK);
	}
	munmap(l->table, sizeof(struct table));
	free(l);
	return NULL;
}

/* ---- use ---- */

static bool begin_in_time(struct ledger *l)
{
	double until = clock_seconds() + LEDGER_LOCK_SECONDS;

	while (!begin_change(l)) {
		if (clock_seconds() > until)
			return false;
		usleep(1000);
	}
	return true;
}

uint64_t ledger_capacity(struct ledger *l, uint64_t free_now)
{
	uint64_t *bytes = &l->table->devices[l->device].bytes;
	bool used = false;

	if (!begin_in_time(l)) { /* what is free now is less than what cases may use, or equal */
		*bytes = *bytes ? *bytes : free_now;
		return *bytes;
	}
	sweep_dead(l);
	for (size_t i = 0; i < LEDGER_ENTRIES; i++) {
		const struct ledger_entry *e = &l->table->entries[i];

		used = used || (i != l->me && e->state == LEDGER_HOLDING && e->device_bytes > 0 &&
				!strcmp(e->device, l->table->entries[l->me].device));
	}
	if (!used || *bytes == 0)
		*bytes = free_now;
	free_now = *bytes;
	end_change(l);
	return free_now;
}

bool ledger_reserve(struct ledger *l, uint64_t device_bytes, uint64_t host_bytes)
{
	struct ledger_entry *mine = &l->table->entries[l->me];
	bool fits;

	if (!begin_change(l))
		return false;
	sweep_dead(l);
	if (mine->state != LEDGER_WAITING)
		mine->ticket = ++l->table->last_ticket;
	mine->state = LEDGER_WAITING;
	mine->device_bytes = device_bytes;
	mine->host_bytes = host_bytes;
	fits = ledger_fits(l->table->entries, LEDGER_ENTRIES, l->me, l->table->devices[l->device].bytes, l->host_capacity);
	if (fits)
		mine->state = LEDGER_HOLDING;
	end_change(l);
	return fits;
}

/* Return whether the host has these bytes beside all that others reserve and keep; unlike ledger_fits() also where nobody holds
 * any. */
static bool host_has(const struct ledger *l, uint64_t bytes)
{
	for (size_t i = 0; i < LEDGER_ENTRIES; i++) {
		const struct ledger_entry *e = &l->table->entries[i];

		if (i != l->me && (e->state == LEDGER_IDLE || e->state == LEDGER_HOLDING))
			bytes += e->host_bytes;
	}
	return l->host_capacity == 0 || bytes <= l->host_capacity;
}

bool ledger_change(struct ledger *l, uint64_t device_bytes, uint64_t host_bytes)
{
	struct ledger_entry *mine = &l->table->entries[l->me], before = *mine;
	bool fits;

	if (!begin_in_time(l))
		return false;
	sweep_dead(l);
	mine->device_bytes = device_bytes;
	mine->host_bytes = host_bytes;
	fits = (device_bytes <= before.device_bytes && host_bytes <= before.host_bytes) ||
	       (host_has(l, host_bytes) &&
		ledger_fits(l->table->entries, LEDGER_ENTRIES, l->me, l->table->devices[l->device].bytes, l->host_capacity));
	if (!fits)
		*mine = before;
	end_change(l);
	return fits;
}

bool ledger_holds(const struct ledger *l)
{
	return l->table->entries[l->me].state == LEDGER_HOLDING;
}

/* Without the lock: each of these writes is complete for itself, and others see at worst the reservation a little longer. */
void ledger_release(struct ledger *l, bool keep_host)
{
	struct ledger_entry *mine = &l->table->entries[l->me];

	if (mine->state != LEDGER_HOLDING || !keep_host)
		mine->host_bytes = 0;
	mine->device_bytes = 0;
	mine->state = LEDGER_IDLE;
}

bool ledger_take_turn(struct ledger *l)
{
	return lock_byte(l->fd, TURNS + (off_t)l->device, F_WRLCK);
}

void ledger_end_turn(struct ledger *l)
{
	lock_byte(l->fd, TURNS + (off_t)l->device, F_UNLCK);
}
