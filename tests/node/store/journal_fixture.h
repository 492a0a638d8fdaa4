/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with a journal, and what tests add to it. */
#ifndef TOMONODE_TESTS_NODE_JOURNAL_FIXTURE_H
#define TOMONODE_TESTS_NODE_JOURNAL_FIXTURE_H

#include "node/store/journal.h"
#include "tests/test.h"

struct place {
	char dir[64], path[96];
};

static inline int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	test_folder(p->dir, sizeof(p->dir));
	snprintf(p->path, sizeof(p->path), "%s/journal.db", p->dir);
	*state = p;
	return 0;
}

static inline int teardown(void **state)
{
	free(*state);
	return 0;
}

static inline struct journal *open_journal(struct place *p)
{
	struct err err = {0};
	struct journal *j = NULL;

	assert_done(journal_open(p->path, &j, &err), &err);
	return j;
}

static inline struct instance_row instance(const char *uid, const char *digest)
{
	static int serial;
	struct instance_row row = {.received = 1000.25, .bytes = UINT64_C(5000000000)};

	strcpy(row.sop_class, "1.2.840.10008.5.1.4.1.1.1.2.1");
	snprintf(row.sop_instance, sizeof(row.sop_instance), "%s", uid);
	strcpy(row.transfer_syntax, "1.2.840.10008.1.2.1");
	strcpy(row.calling, "MODALITY");
	strcpy(row.host, "127.0.0.1");
	strcpy(row.association, "a-1");
	snprintf(row.file, sizeof(row.file), "instances/%d-%d.dcm", (int)getpid(), serial++);
	snprintf(row.digest, sizeof(row.digest), "%s", digest);
	return row;
}

static inline int64_t add(struct journal *j, const char *uid, const char *digest)
{
	struct instance_row row = instance(uid, digest);
	struct err err = {0};

	assert_done(journal_add_instance(j, &row, &err), &err);
	assert_true(row.id > 0);
	return row.id;
}

static inline int64_t open_job(struct journal *j)
{
	int64_t job = 0;

	assert_int_equal(journal_open_job(j, "{\"key\":\"k\"}", 1, &job, NULL), 0);
	assert_true(job > 0);
	return job;
}

struct trace {
	size_t n;
	struct event_row row[64];
	char detail[64][64];
};

static inline int collect(void *ctx, const struct event_row *row)
{
	struct trace *t = ctx;

	if (t->n < 64) {
		t->row[t->n] = *row;
		snprintf(t->detail[t->n], 64, "%s", row->detail);
	}
	t->n++;
	return 0;
}

static inline int collect_member(void *ctx, const struct instance_row *row, const char *detail)
{
	struct trace *t = ctx;

	t->row[t->n].instance = row->id;
	snprintf(t->detail[t->n++], 64, "%s", detail);
	return 0;
}

#endif
