/* SPDX-License-Identifier: Apache-2.0 */
#include "node/serve/journal_check.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "node/base/log.h"
#include "node/sandbox/sandbox.h"

#define SHORT_BYTES (64 << 20) /* checked within half a second, also from a disk */
#define PROBLEMS_MAX 20	       /* as many as journal_check() reports */

struct journal_check_page {
	size_t n;
	char problem[PROBLEMS_MAX][200];
};

bool journal_check_is_short(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 || st.st_size <= SHORT_BYTES;
}

static void report_damage(void *ctx, const char *problem)
{
	struct manager_facts *m = ctx;

	if (!m->journal_damage[0])
		snprintf(m->journal_damage, sizeof(m->journal_damage), "%.199s", problem);
	log_event(LOG_ALERT, "journal-damaged", "problem=%s", log_quote(problem));
}

bool journal_check_now(struct journal *j, struct manager_facts *facts)
{
	struct err err = {0};
	int found = journal_check(j, report_damage, facts, &err);

	if (found < 0)
		report_damage(facts, err.msg);
	return found != 0;
}

/* ---- the process ---- */

struct check_ctx {
	const struct config *config;
	const char *path;
	struct journal_check_page *page;
};

static void keep_problem(void *ctx, const char *problem)
{
	struct journal_check_page *page = ctx;

	if (page->n < PROBLEMS_MAX)
		snprintf(page->problem[page->n++], sizeof(page->problem[0]), "%.199s", problem);
}

static int run_check(void *ctx)
{
	struct check_ctx *c = ctx;
	struct journal *j = NULL;
	struct err err = {0};
	int found;

	process_close_inherited();
	if (sandbox_enter(SANDBOX_INDEX, c->config, NULL, &err) < 0)
		return 1;
	found = journal_open_reader(c->path, &j, &err);
	if (found == 0)
		found = journal_check(j, keep_problem, c->page, &err);
	if (found < 0)
		keep_problem(c->page, err.msg);
	journal_close(j);
	return 0;
}

/* Nobody knows whether there is damage. */
static void report_unchecked(struct manager_facts *m, const char *reason)
{
	snprintf(m->journal_unchecked, sizeof(m->journal_unchecked), "%.199s", reason);
	log_event(LOG_ERR, "self-check-incomplete", "reason=%s", log_quote(reason));
}

static void end_page(struct journal_check *c)
{
	if (c->page)
		munmap(c->page, sizeof(*c->page));
	c->page = NULL;
}

void journal_check_start(struct journal_check *c, struct process_table *processes, const struct config *config, const char *path,
			 double clock, struct manager_facts *facts)
{
	static const struct process p = {.role = PROCESS_CHECK};
	struct check_ctx ctx = {config, path, NULL};
	struct err err = {0};
	void *page = mmap(NULL, sizeof(*c->page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	snprintf(err.msg, sizeof(err.msg), "no memory");
	c->page = page == MAP_FAILED ? NULL : page;
	ctx.page = c->page;
	if (c->page && process_table_fork(processes, &p, run_check, &ctx, clock, &err) == 0)
		return;
	report_unchecked(facts, err.msg);
	end_page(c);
}

void journal_check_ended(struct journal_check *c, int status, bool stopping, struct manager_facts *facts)
{
	char how[120], reason[200];

	for (size_t i = 0; c->page && i < c->page->n; i++)
		report_damage(facts, c->page->problem[i]);
	end_page(c);
	if (stopping || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return;
	process_describe(status, how, sizeof(how));
	snprintf(reason, sizeof(reason), "the process that checks the journal %s", how);
	report_unchecked(facts, reason);
}
