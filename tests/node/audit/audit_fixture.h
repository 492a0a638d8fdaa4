/* SPDX-License-Identifier: Apache-2.0 */
/* A spool with a journal whose audit trail goes to a file, for the tests of the queue and of the trail. */
#ifndef TOMONODE_TESTS_NODE_AUDIT_FIXTURE_H
#define TOMONODE_TESTS_NODE_AUDIT_FIXTURE_H

#include <sys/wait.h>

#include "node/audit/audit.h"
#include "node/audit/audit_queue.h"
#include "node/base/log.h"
#include "node/jobs/jobs.h"
#include "node/store/journal.h"
#include "node/store/spool.h"
#include "tests/test.h"

struct place {
	char dir[64], file[96], queue[96], journal_path[96];
	struct config *config;
	struct journal *journal;
	struct jobs jobs;
};

static inline int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	struct err err = {0};
	char text[400];

	log_start(LOG_TO_NOWHERE, 0, LOG_ERR, "test");
	test_folder(p->dir, sizeof(p->dir));
	snprintf(p->file, sizeof(p->file), "%s/audit.log", p->dir);
	snprintf(p->queue, sizeof(p->queue), "%s/audit/queue", p->dir);
	snprintf(p->journal_path, sizeof(p->journal_path), "%s/journal.db", p->dir);
	snprintf(text, sizeof(text), "node = { spool = \"%s\"; audit = \"file\"; audit_file = \"%s\"; };\n", p->dir, p->file);
	if (config_parse(text, "test", NULL, NULL, &p->config, &err) < 0 || spool_prepare(p->dir, &err) < 0 ||
	    journal_open(p->journal_path, &p->journal, &err) < 0)
		return -1;
	*state = p;
	return 0;
}

static inline int teardown(void **state)
{
	struct place *p = *state;
	struct node_conf none = {.audit = AUDIT_NONE};

	audit_start(&none, AUDIT_QUEUED, "test");
	journal_close(p->journal);
	jobs_clear(&p->jobs);
	config_free(p->config);
	free(p);
	return 0;
}

#endif
