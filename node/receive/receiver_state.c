/* SPDX-License-Identifier: Apache-2.0 */
/* receiver_state.c - a text is written before its flag is set and is not changed while the flag is set, so that the manager reads
 * a complete one. */
#include "node/receive/receiver_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct receiver_state {
	_Atomic(double) alive;
	atomic_int has[RECEIVER_FAULTS];
	char reason[RECEIVER_FAULTS][300];
};

struct receiver_state *receiver_state_create(struct err *err)
{
	void *page = mmap(NULL, sizeof(struct receiver_state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED) {
		err_set(err, errno, "no memory for the state of the receiver: %s", strerror(errno));
		return NULL;
	}
	return page;
}

void receiver_state_begin(struct receiver_state *s, double clock)
{
	if (!s)
		return;
	for (int i = 0; i < RECEIVER_FAULTS; i++)
		atomic_store(&s->has[i], 0);
	atomic_store(&s->alive, clock);
}

void receiver_state_beat(struct receiver_state *s, double clock)
{
	if (s)
		atomic_store(&s->alive, clock);
}

void receiver_state_fault(struct receiver_state *s, enum receiver_fault fault, const char *reason)
{
	if (!s)
		return;
	if (!reason[0]) {
		atomic_store(&s->has[fault], 0);
	} else if (!atomic_load(&s->has[fault])) {
		snprintf(s->reason[fault], sizeof(s->reason[fault]), "%s", reason);
		atomic_store(&s->has[fault], 1);
	}
}

double receiver_state_alive(const struct receiver_state *s)
{
	return s ? atomic_load(&s->alive) : 0;
}

void receiver_state_read_fault(const struct receiver_state *s, enum receiver_fault fault, char *ret_reason, size_t size)
{
	snprintf(ret_reason, size, "%s", s && atomic_load(&s->has[fault]) ? s->reason[fault] : "");
}
