/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz the journal with arbitrary damage: impossible rows of events, and a database file of arbitrary bytes.
 *
 * First byte even: rows. Each is a byte for the event (above the last one: an unknown event), a byte for the job, a length (16
 * bits, little endian) and a detail. They are replayed twice and must give the same jobs; all queries of the node are run on
 * them. First byte odd: the rest is journal.db, which is opened, checked, walked through and written to as by the node. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/log.h"
#include "node/jobs/companion.h"
#include "node/jobs/delivery_queue.h"
#include "node/jobs/job_report.h"
#include "node/jobs/jobs.h"
#include "node/serve/retention.h"
#include "node/store/event.h"
#include "tests/fuzz/fuzz.h"

static char folder[64], path[96];

/* By its key, unless the event that has it is damaged. */
static bool is_indexed(const struct jobs *jobs, const struct job_view *v)
{
	const struct job_view *s = jobs_of_study(jobs, v->key), *t = jobs_of_series(jobs, v->key);

	while (s && s != v)
		s = jobs_before_in_study(s);
	while (t && t != v)
		t = jobs_before_in_series(t);
	return !v->key[0] || (s && t);
}

static bool is_open(const struct jobs *jobs, const struct job_view *v)
{
	return jobs_next_open(jobs, v->id - 1) == v;
}

/* Call the functions that the manager and the commands call for every job. */
static void ask(struct jobs *jobs)
{
	jobs_observe_clock(jobs, 1e9);
	delivery_queue_update(jobs);
	for (size_t i = 0; i < jobs->n; i++) {
		const struct job_view *v = jobs->list[i];
		struct assemble_decision answer;
		json_t *view;
		char *text;

		must(i == 0 || jobs->list[i - 1]->id < v->id, "jobs out of order");
		must(v->key && job_state_name(v->state)[0], "a job without its texts");
		must(v->state != JOB_IMPOSSIBLE || v->reason[0], "quarantined without a reason");
		must(jobs_find(jobs, v->id) == v && is_indexed(jobs, v), "a job that is not found");
		must(is_open(jobs, v) || v->state == JOB_DELIVERED || v->state == JOB_CLEANED, "a job that is forgotten");
		assemble_decide(&v->members, 1e9, 60, &answer);
		for (size_t k = 0; k < v->n_objects; k++)
			job_view_is_due(v, k);
		for (size_t k = 0; k < v->n_sends; k++)
			must(job_view_find_send(v, v->sends[k].destination), "a destination that is not found");
		must(!(retention_is_delivered(v) && retention_never_sends(v)), "to be kept and to be removed");
		must(!retention_may_clean(jobs, v, &(struct retention_rule){1, 1}, 1e12) || retention_is_delivered(v) ||
			     v->state == JOB_CANCELLED,
		     "removed while somebody waits for it");
		view = job_report_view(v, NULL, "/nonexistent");
		must(view != NULL, "a job that cannot be shown");
		text = json_dumps(view, JSON_COMPACT);
		free(text);
		json_decref(view);
	}
}

static void replay(const uint8_t *p, size_t n, struct jobs *jobs)
{
	int64_t seq = 0;

	while (n >= 4) {
		size_t length = (size_t)p[2] | (size_t)p[3] << 8;
		struct event_row row = {.seq = ++seq, .time = 1000.0 + (double)seq};
		char *detail;

		if (length > n - 4)
			length = n - 4;
		row.known = job_event_parse(job_event_name((enum job_event)p[0]), &row.event) == 0;
		row.job = p[1] % 8 + 1;
		detail = strndup((const char *)p + 4, length);
		row.detail = detail;
		must(jobs_apply(jobs, &row) == 0, "a row that ends the replay");
		free(detail);
		p += 4 + length;
		n -= 4 + length;
	}
}

static void rows(const uint8_t *p, size_t n)
{
	struct jobs jobs = {0}, again = {0};

	replay(p, n, &jobs);
	replay(p, n, &again);
	must(jobs.n == again.n && jobs.last_seq == again.last_seq, "another replay, other jobs");
	for (size_t i = 0; i < jobs.n; i++)
		must(jobs.list[i]->state == again.list[i]->state && !strcmp(jobs.list[i]->reason, again.list[i]->reason),
		     "another replay, another state");
	ask(&jobs);
	jobs_clear(&jobs);
	jobs_clear(&again);
}

/* ---- the file ---- */

static int count_row(void *ctx, const struct instance_row *row, const char *detail)
{
	must(memchr(row->file, '\0', sizeof(row->file)) && memchr(row->digest, '\0', sizeof(row->digest)),
	     "a text without its end");
	must(detail != NULL, "no detail");
	return ++*(int *)ctx > 1000;
}

static void write_on(struct journal *j)
{
	struct instance_row row = {.received = 1000, .sop_instance = "1.2.3", .file = "instances/new.dcm", .digest = "00"};
	int64_t job = 0;

	journal_add_instance(j, &row, NULL);
	journal_list_unindexed(j, 0, &row, 1, NULL);
	if (journal_open_job(j, "{\"key\":\"k\",\"kind\":\"dbt\"}", 1000, &job, NULL) == 0) {
		journal_classify(j, row.id, CLASSIFIED_MEMBER, job, "{\"received\":1000}", 1000, NULL);
		event_append(j, job, EVENT_CANCEL, json_object(), 1000, NULL);
	}
}

static void walk(struct journal *j)
{
	struct jobs jobs = {0};
	struct companions series = {0};
	struct instance_row row;
	int64_t instance, event;
	int n = 0;

	journal_check(j, NULL, NULL, NULL);
	if (jobs_refresh(&jobs, j, 0, NULL) == 0)
		ask(&jobs);
	for (size_t i = 0; i < jobs.n && i < 16; i++) {
		enum job_state state;

		journal_each_member(j, jobs.list[i]->id, count_row, &n, NULL);
		journal_job_state(j, jobs.list[i]->id, &state, NULL);
		json_decref(job_report_events(j, jobs.list[i]->id, NULL));
	}
	for (int kind = CLASSIFIED_IGNORED; kind <= CLASSIFIED_COMPANION; kind++)
		journal_each_classified(j, (enum classification)kind, 100, count_row, &n, NULL);
	if (companions_refresh(&series, j, NULL) == 0)
		companions_clamp_time(&series, 1000);
	companions_clear(&series);
	journal_each_unused_companion(j, 1000, 100, count_row, &n, NULL);
	journal_each_indexed(j, 0, 100, count_row, &n, NULL);
	journal_last_rows(j, &instance, &event, NULL);
	journal_has_instance(j, "1.2.3", "00", &row, NULL);
	journal_find_member(j, "1.2.3", INT64_MAX, &row, NULL);
	journal_has_file(j, "instances/1.dcm", NULL);
	jobs_clear(&jobs);
}

static void remove_files(void)
{
	static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
	char name[120];

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", path, ends[i]);
		unlink(name);
	}
}

static void file(const uint8_t *p, size_t n)
{
	struct journal *j = NULL;
	struct err err = {0};
	FILE *f;

	remove_files();
	f = fopen(path, "we");
	must(f && fwrite(p, 1, n, f) == n && fclose(f) == 0, "the memory disk is full");
	if (journal_open(path, &j, &err) < 0) {
		must(j == NULL && err.code && err.msg[0], "refused without a reason");
		return;
	}
	walk(j);
	write_on(j);
	walk(j);
	journal_close(j);
}

static void clean_up(void)
{
	remove_files();
	rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	log_start(LOG_TO_NOWHERE, 0, LOG_ERR, "fuzz");
	snprintf(folder, sizeof(folder), "/dev/shm/fuzz_journal.%d", (int)getpid());
	must(mkdir(folder, 0700) == 0, "no memory disk");
	snprintf(path, sizeof(path), "%s/journal.db", folder);
	atexit(clean_up);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	if (data[0] & 1)
		file(data + 1, size - 1);
	else
		rows(data + 1, size - 1);
	return 0;
}
