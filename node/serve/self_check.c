/* SPDX-License-Identifier: Apache-2.0 */
/* self_check.c - every EVERY seconds:
 *
 * - A process that is stopped (SIGSTOP) is seen by its state in /proc; a receiver that hangs by its missing sign of life in the
 *   page of memory that it shares with the manager.
 * - The way in is probed by a file that is created, written, synced and removed in incoming/ (spool_probe()).
 * - journal.db must be the file that was opened at the start: SQLite does not notice that its file was replaced.
 * - Names are resolved in a process of their own, because a name service may need a minute, and because its replies come from
 *   the network: the process drops its rights first. Addresses are not resolved.
 */
#include "node/serve/self_check.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "node/base/log.h"
#include "node/base/network.h"
#include "node/base/process_state.h"
#include "node/sandbox/sandbox.h"
#include "node/store/spool.h"

#define EVERY 2.0
#define PROBE_EVERY 10.0
#define NAMES_EVERY 300.0
#define NAMES_SECONDS 60.0 /* longest time to resolve all names */

struct resolve_page {
	struct node_unresolved list[DESTINATION_STATES_MAX];
};

/* ---- the journal, the way in, the processes ---- */

void self_check_begin(struct self_check *c)
{
	struct err err = {0};

	*c = (struct self_check){.at = 0};
	c->receiver = receiver_state_create(&err);
	c->names = mmap(NULL, sizeof(*c->names), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c->names == MAP_FAILED)
		c->names = NULL;
	if (!c->receiver || !c->names)
		log_event(LOG_ERR, "self-check-incomplete", "reason=%s", log_quote(err.msg[0] ? err.msg : "no memory"));
}

void self_check_journal_opened(struct self_check *c, const char *path)
{
	if (c->journal.st_ino == 0 && stat(path, &c->journal) < 0)
		c->journal.st_ino = 0;
}

static void check_journal(struct self_check *c, const char *path)
{
	struct stat st;

	if (c->journal.st_ino == 0)
		return;
	c->facts.journal_replaced =
		stat(path, &st) < 0 ? errno == ENOENT : st.st_ino != c->journal.st_ino || st.st_dev != c->journal.st_dev;
}

static void probe_spool(struct self_check *c, const char *spool, double clock)
{
	struct err err = {0};

	if (c->probe_at > clock)
		return;
	c->probe_at = clock + PROBE_EVERY;
	snprintf(c->facts.incoming, sizeof(c->facts.incoming), "%.299s", spool_probe(spool, &err) < 0 ? err.msg : "");
	snprintf(c->facts.results, sizeof(c->facts.results), "%.299s", spool_probe_results(spool, &err) < 0 ? err.msg : "");
}

static void add_process(struct self_check *c, const char *role, long pid, bool stopped, double silent)
{
	struct node_process *p = &c->facts.processes[c->facts.n_processes];

	if (c->facts.n_processes == NODE_PROCESSES_MAX || (!stopped && silent <= NODE_SILENT_SECONDS))
		return;
	c->facts.n_processes++;
	*p = (struct node_process){.pid = pid, .stopped = stopped, .silent = silent};
	snprintf(p->role, sizeof(p->role), "%s", role);
}

/* Add the children of the status process: the one that serves HTTP has no other parent to notice that it is stopped. */
static void check_children_of(struct self_check *c, long pid)
{
	char path[64], text[200] = "";
	char *at = text, *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", pid, pid);
	f = fopen(path, "re");
	if (!f)
		return; /* a kernel without this file: only the process itself is checked */
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	for (long child = strtol(at, &end, 10); end != at; child = strtol(at, &end, 10)) {
		add_process(c, "http", child, process_is_stopped(child), 0);
		at = end;
	}
}

static void check_processes(struct self_check *c, const struct process_table *all, double clock)
{
	double alive = receiver_state_alive(c->receiver);

	c->facts.n_processes = 0;
	c->facts.receiver = false;
	for (size_t i = 0; i < all->n; i++) {
		const struct process *p = &all->list[i];
		bool receiver = p->role == PROCESS_RECEIVER && !p->retired;

		if (p->pid <= 0 || p->retired)
			continue;
		c->facts.receiver = c->facts.receiver || receiver;
		add_process(c, process_role_name(p->role), p->pid, process_is_stopped(p->pid),
			    receiver && alive > 0 ? clock - alive : 0);
		if (p->role == PROCESS_STATUS)
			check_children_of(c, p->pid);
	}
	receiver_state_read_fault(c->receiver, RECEIVER_FAULT_WAIT, c->facts.receiver_fault, sizeof(c->facts.receiver_fault));
	if (!c->facts.receiver_fault[0])
		receiver_state_read_fault(c->receiver, RECEIVER_FAULT_TLS, c->facts.receiver_fault,
					  sizeof(c->facts.receiver_fault));
	receiver_state_read_fault(c->receiver, RECEIVER_FAULT_DESCRIPTORS, c->facts.receiver_limit,
				  sizeof(c->facts.receiver_limit));
	receiver_state_read_fault(c->receiver, RECEIVER_FAULT_FULL, c->facts.receiver_full, sizeof(c->facts.receiver_full));
	receiver_state_read_associations(c->receiver, c->facts.associations, &c->facts.n_associations);
}

static int64_t file_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > INT64_MAX
		       ? 0
		       : (int64_t)limit.rlim_cur;
}

/* ---- names ---- */

void self_check_reload(struct self_check *c)
{
	c->at = c->probe_at = c->names_at = 0;
	c->facts.n_unresolved = 0;
}

static bool is_name(const char *host)
{
	struct network ignored;

	return host[0] && !network_parse(host, &ignored);
}

/* Write the names to resolve into the shared page. Returns their number. */
static size_t list_names(const struct config *config, struct resolve_page *page)
{
	size_t n = 0;

	for (size_t i = 0; i < config->n_destinations && n < DESTINATION_STATES_MAX; i++) {
		const struct destination_conf *d = &config->destinations[i];

		if (!is_name(d->host))
			continue;
		page->list[n] = (struct node_unresolved){.reason = "the name service does not reply"};
		snprintf(page->list[n].destination, sizeof(page->list[n].destination), "%s", d->name);
		snprintf(page->list[n].host, sizeof(page->list[n].host), "%s", d->host);
		n++;
	}
	return n;
}

struct resolve_ctx {
	struct self_check *check;
	const struct config *config;
};

/* In the new process: replace each reason by the result ("": resolved). */
static int resolve_names(void *ctx)
{
	struct resolve_ctx *r = ctx;
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct err err = {0};

	process_close_inherited();
	if (sandbox_enter(SANDBOX_DELIVER, r->config, NULL, &err) < 0)
		return 1;
	for (size_t i = 0; i < r->check->names_asked; i++) {
		struct node_unresolved *u = &r->check->names->list[i];
		struct addrinfo *found = NULL;
		int code = getaddrinfo(u->host, NULL, &hints, &found);

		snprintf(u->reason, sizeof(u->reason), "%s", code == 0 ? "" : gai_strerror(code));
		if (code == 0)
			freeaddrinfo(found);
	}
	return 0;
}

static void start_names(struct self_check *c, struct schedule *s)
{
	static const struct process p = {.role = PROCESS_RESOLVE};
	struct resolve_ctx ctx = {c, s->config};
	struct process *running = process_table_find(&s->processes, PROCESS_RESOLVE, 0, NULL);
	struct err err = {0};

	if (!c->names || s->stopping || running || c->names_at > s->clock)
		return;
	c->names_at = s->clock + NAMES_EVERY;
	c->names_asked = list_names(s->config, c->names);
	if (c->names_asked == 0)
		return;
	if (process_table_fork(&s->processes, &p, resolve_names, &ctx, s->clock, &err) < 0)
		log_event(LOG_ERR, "names-not-resolved", "reason=%s", log_quote(err.msg));
	running = process_table_find(&s->processes, PROCESS_RESOLVE, 0, NULL);
	if (running)
		running->kill_at = s->clock + NAMES_SECONDS;
}

void self_check_resolved(struct self_check *c, const struct config *config)
{
	/* of a process that was killed, the names that it did not reach have the first reason */
	c->facts.n_unresolved = 0;
	for (size_t i = 0; i < c->names_asked; i++) {
		const struct node_unresolved *u = &c->names->list[i];
		const struct destination_conf *d = config_destination(config, u->destination);

		if (u->reason[0] && d && !strcmp(d->host, u->host))
			c->facts.unresolved[c->facts.n_unresolved++] = *u;
	}
	c->at = 0;
}

/* ---- the steps ---- */

bool self_check_step(struct self_check *c, struct schedule *s, const char *journal_path)
{
	if (c->at > s->clock)
		return false;
	c->at = s->clock + EVERY;
	check_journal(c, journal_path);
	probe_spool(c, s->config->node.spool, s->clock);
	check_processes(c, &s->processes, s->clock);
	c->facts.file_limit = file_limit();
	start_names(c, s);
	return true;
}

/* Problems whose cause writes an event of its own to the log. */
static bool has_own_event(const char *id)
{
	static const char *const ids[] = {"cases",
					  "destination-down",
					  "device-disabled",
					  "no-device",
					  "orphans",
					  "journal-damaged",
					  "receiver",
					  "alerts",
					  "audit",
					  "cluster",
					  "pilot-refused",
					  "pilots-unheard",
					  "certificate-expires",
					  "crl-ends",
					  "certificate-expired",
					  "certificate-early",
					  "crl-ended",
					  "certificate-unusable"};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (!strcmp(ids[i], id))
			return true;
	return false;
}

static bool lists_problem(const struct node_problems *all, const char *id)
{
	for (size_t i = 0; i < all->n; i++)
		if (!strcmp(all->list[i].id, id))
			return true;
	return false;
}

const struct node_problems *self_check_log(struct self_check *c, const struct schedule *s, const json_t *report, double now)
{
	struct node_problems *other;
	char line[1200];

	if (!c->all) {
		c->all = calloc(1, sizeof(*c->all));
		c->now = calloc(1, sizeof(*c->now));
		c->before = calloc(1, sizeof(*c->before));
	}
	if (!c->all || !c->now || !c->before || s->stopping)
		return NULL;
	node_facts_of_spool(s->config, now, c->all);
	manager_facts_read(report, &c->all->from_manager);
	c->all->reported = true;
	if (s->journal)
		node_facts_of_journal(s->journal, c->all, NULL);
	node_facts_of_jobs(s->config, &s->jobs, c->all);
	node_problems_find(c->all, c->now);
	for (size_t i = 0; i < c->now->n; i++) {
		const struct node_problem *p = &c->now->list[i];

		if (has_own_event(p->id) || lists_problem(c->before, p->id))
			continue;
		node_problem_line(p, line, sizeof(line));
		log_event(p->critical ? LOG_CRIT : LOG_WARNING, "problem", "id=%s reason=%s", p->id, log_quote(line));
	}
	for (size_t i = 0; i < c->before->n; i++)
		if (!has_own_event(c->before->list[i].id) && !lists_problem(c->now, c->before->list[i].id))
			log_event(LOG_NOTICE, "problem-ended", "id=%s", c->before->list[i].id);
	other = c->before;
	c->before = c->now;
	c->now = other;
	return c->before;
}

void self_check_forget_certificates(struct self_check *c)
{
	c->facts.n_certificates = 0;
}

void self_check_add_certificate(struct self_check *c, const struct node_certificate *certificate)
{
	if (c->facts.n_certificates < NODE_CERTIFICATES_MAX)
		c->facts.certificates[c->facts.n_certificates++] = *certificate;
}

void self_check_clear(struct self_check *c)
{
	free(c->all);
	free(c->now);
	free(c->before);
	c->all = NULL;
	c->now = c->before = NULL;
}
