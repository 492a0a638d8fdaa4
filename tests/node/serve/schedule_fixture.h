/* SPDX-License-Identifier: Apache-2.0 */
/* A scheduler with a journal and without processes: it is told that it is stopping, so it starts none, and the ends of work
 * processes are made up. */
#ifndef TOMONODE_TESTS_SCHEDULE_FIXTURE_H
#define TOMONODE_TESTS_SCHEDULE_FIXTURE_H

#include <signal.h>
#include <sys/wait.h>

#include "node/base/log.h"
#include "node/process/worker_ipc.h"
#include "node/serve/schedule.h"
#include "node/store/spool.h"
#include "tests/test.h"

#define NOW 5000.0
#define EXIT_STATUS(code) ((code) << 8) /* as waitpid() gives them, wait(2) */
#define SIGNAL_STATUS(number) (number)
#define MADE "{\"file\":\"outbox/1/x.dcm\",\"sop_instance\":\"1.5\",\"sop_class\":\"1.2\"}"

struct stage {
	char dir[64], path[96];
	struct config *config;
	struct schedule s;
	char uid[65]; /* of the last member */
};

/* Give the scheduler another configuration: more keys of the node, and other sections. */
static inline void configure_as(struct stage *t, const char *keys, const char *sections)
{
	struct err err = {0};
	char text[2000];

	t->s.config = t->config = config_free(t->config);
	snprintf(text, sizeof(text), "node = { spool = \"%s\"; quiet_time = 60.0; retention_days = 0; %s };\n%s", t->dir, keys,
		 sections);
	assert_done(config_parse(text, "test", NULL, NULL, &t->config, &err), &err);
	t->s.config = t->config;
}

static inline int setup(void **state)
{
	struct stage *t = calloc(1, sizeof(*t));
	struct err err = {0};

	log_start(LOG_TO_NOWHERE, 0, LOG_ERR, "test");
	test_folder(t->dir, sizeof(t->dir));
	configure_as(t, "attempts = 2;", "");
	snprintf(t->path, sizeof(t->path), "%s/journal.db", t->dir);
	if (spool_prepare(t->dir, &err) < 0 || journal_open(t->path, &t->s.journal, &err) < 0)
		return -1;
	t->s.processes.lock_fd = t->s.processes.notify_fd = -1;
	t->s.stopping = true;
	*state = t;
	return 0;
}

static inline int teardown(void **state)
{
	struct stage *t = *state;

	journal_close(t->s.journal);
	jobs_clear(&t->s.jobs);
	config_free(t->config);
	free(t);
	return 0;
}

static inline int64_t add_instance(struct stage *t, const char *uid)
{
	static int serial;
	struct instance_row row = {.received = NOW};

	snprintf(row.sop_instance, sizeof(row.sop_instance), "%s", uid);
	snprintf(row.file, sizeof(row.file), "instances/%d.dcm", serial++);
	assert_int_equal(journal_add_instance(t->s.journal, &row, NULL), 0);
	return row.id;
}

/* A new instance of a job, which expects `expected`. */
static inline void add_member(struct stage *t, int64_t job, int expected)
{
	static int serial;
	char detail[200];
	int64_t id;

	snprintf(t->uid, sizeof(t->uid), "1.%lld.%d", (long long)job, serial++);
	id = add_instance(t, t->uid);
	snprintf(detail, sizeof(detail), "{\"instance\":%lld,\"received\":%f,\"expected\":%d,\"frames\":1}", (long long)id, NOW,
		 expected);
	assert_int_equal(journal_classify(t->s.journal, id, CLASSIFIED_MEMBER, job, detail, NOW, NULL), 0);
}

/* A job with `n` instances that expect `expected`. */
static inline int64_t add_job(struct stage *t, const char *kind, int n, int expected)
{
	char detail[200];
	int64_t job = 0;

	snprintf(detail, sizeof(detail), "{\"key\":\"%s\",\"kind\":\"%s\",\"calling\":\"MOD\"}", kind, kind);
	assert_int_equal(journal_open_job(t->s.journal, detail, NOW, &job, NULL), 0);
	for (int i = 0; i < n; i++)
		add_member(t, job, expected);
	return job;
}

static inline void append(struct stage *t, int64_t job, enum job_event event, const char *detail)
{
	struct err err = {0};

	assert_done(journal_append(t->s.journal, job, event, detail, NOW, &err), &err);
}

static inline const struct job_view *step(struct stage *t, int64_t job, double now)
{
	schedule_step(&t->s, now);
	return jobs_find(&t->s.jobs, job);
}

/* Reconstructed: the first job's result, with_file with a file where it says. */
static inline const struct job_view *made(struct stage *t, int64_t job, bool with_file)
{
	char path[128];
	int fd;

	step(t, job, NOW);
	append(t, job, EVENT_STARTED, "{}");
	append(t, job, EVENT_RECONSTRUCTED, MADE);
	if (with_file) {
		snprintf(path, sizeof(path), "%s/outbox/1", t->dir);
		mkdir(path, 0700);
		strcat(path, "/x.dcm");
		fd = open(path, O_WRONLY | O_CREAT, 0600);
		assert_true(fd >= 0);
		close(fd);
	}
	return step(t, job, NOW);
}

/* A made-up worker of a slot, which says that it is ready. Its end of the socket is ret_fd[1]. */
static inline void add_worker(struct stage *t, size_t slot, int ret_fd[2])
{
	struct process *p = &t->s.processes.list[t->s.processes.n++];
	char device[32];

	assert_int_equal(worker_ipc_pair(ret_fd), 0);
	*p = (struct process){.role = PROCESS_WORKER, .slot = t->s.slots.list[slot].id, .ipc_fd = ret_fd[0]};
	slots_update(&t->s.slots, p->slot, SLOT_SPAWNED, 0, NULL, t->s.clock);
	snprintf(device, sizeof(device), "device %zu", slot);
	assert_true(worker_ipc_send(ret_fd[1], WORKER_READY, 0, 0, device, true));
}

/* The job that a worker was given; 0: none. *ret_keep: it may keep what it reads. */
static inline int64_t given(int fd, bool *ret_keep)
{
	struct worker_message m;

	if (worker_ipc_receive(fd, &m, false) <= 0)
		return 0;
	assert_int_equal(m.kind, WORKER_JOB);
	if (ret_keep)
		*ret_keep = m.number == 1;
	return m.job;
}

#endif
