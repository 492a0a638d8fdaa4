/* SPDX-License-Identifier: Apache-2.0 */
/* journal_walk.c - iterate over rows of the journal, and count them. */
#include <stddef.h>
#include <string.h>

#include "node/store/journal_internal.h"

/* Of senders that wait in turn, later instances may have a classification already. */
#define FIRST_WAITING "(SELECT COALESCE(MIN(instance), 9223372036854775807) FROM waiting)"

int journal_walk(struct journal *j, const char *what, const char *doing, const struct journal_value *values, size_t n,
		 int (*each)(void *ctx, sqlite3_stmt *s), void *ctx, struct err *err)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(j->db, what, -1, &s, NULL), ret = 0;

	if (rc != SQLITE_OK)
		return journal_fail(j, rc, doing, err);
	journal_bind_values(s, values, n);
	while (ret == 0 && (rc = sqlite3_step(s)) == SQLITE_ROW)
		ret = each(ctx, s);
	if (ret == 0 && rc != SQLITE_DONE)
		ret = journal_fail(j, rc, doing, err);
	sqlite3_finalize(s);
	return ret < 0 ? ret : 0;
}

/* The same with one or two parameters. */
static int walk_rows(struct journal *j, const char *what, const char *doing, int64_t first, int64_t second,
		     int (*each)(void *ctx, sqlite3_stmt *s), void *ctx, struct err *err)
{
	return journal_walk(j, what, doing, VALUES(NUMBER(first), NUMBER(second)), each, ctx, err);
}

struct event_reader {
	int (*each)(void *ctx, const struct event_row *row);
	void *ctx;
};

static int read_event(void *ctx, sqlite3_stmt *s)
{
	const struct event_reader *r = ctx;
	char *detail = (char *)sqlite3_column_text(s, 5);
	struct event_row row = {.seq = sqlite3_column_int64(s, 0),
				.time = sqlite3_column_double(s, 1),
				.job = sqlite3_column_int64(s, 2),
				.instance = sqlite3_column_int64(s, 4),
				.detail = detail ? detail : (char *)""};

	row.known = sqlite3_column_type(s, 2) == SQLITE_INTEGER &&
		    job_event_parse((const char *)sqlite3_column_text(s, 3), &row.event) == 0;
	return r->each(r->ctx, &row);
}

int journal_replay(struct journal *j, int64_t job, int64_t after, int (*each)(void *ctx, const struct event_row *row), void *ctx,
		   struct err *err)
{
	struct event_reader reader = {each, ctx};

	return walk_rows(j,
			 job ? "SELECT seq, time, job, name, instance, detail FROM event WHERE job=?2 AND seq>?1 ORDER BY seq"
			     : "SELECT seq, time, job, name, instance, detail FROM event WHERE seq>?1 ORDER BY seq",
			 "replay", after, job, read_event, &reader, err);
}

struct instance_reader {
	int (*each)(void *ctx, const struct instance_row *row, const char *detail);
	void *ctx;
};

static int read_instance(void *ctx, sqlite3_stmt *s)
{
	const struct instance_reader *r = ctx;
	const char *detail = (const char *)sqlite3_column_text(s, 11);
	struct instance_row row;

	journal_read_instance(&row, s);
	row.companion = sqlite3_column_count(s) > 12 && sqlite3_column_int(s, 12);
	return r->each(r->ctx, &row, detail ? detail : "");
}

static int walk_instances(struct journal *j, const char *what, int64_t key, int max,
			  int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx, struct err *err)
{
	struct instance_reader reader = {each, ctx};

	return walk_rows(j, what, "walk the instances", key, max, read_instance, &reader, err);
}

int journal_each_member(struct journal *j, int64_t job,
			int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx, struct err *err)
{
	return walk_instances(j,
			      "SELECT " JOURNAL_COLUMNS ", e.detail, e.name='companion' FROM event e JOIN instance i ON"
			      " i.id=e.instance WHERE e.job=?1 AND (e.name='instance' OR e.name='companion' AND e.seq>"
			      "(SELECT MAX(seq) FROM event WHERE job=?1 AND name='complete')) AND ?2"
			      " ORDER BY e.name='companion', e.seq",
			      job, 1, each, ctx, err);
}

int journal_each_classified(struct journal *j, enum classification kind, int max,
			    int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx,
			    struct err *err)
{
	return walk_instances(j,
			      "SELECT " JOURNAL_COLUMNS ", f.detail FROM classification f JOIN instance i ON i.id=f.instance"
			      " WHERE f.kind=?1 AND f.kind<>1 AND" JOURNAL_NOT_REMOVED " ORDER BY f.instance DESC LIMIT ?2",
			      kind, max, each, ctx, err);
}

struct newer_reader {
	int (*each)(void *ctx, const struct instance_row *row, const char *detail, int64_t member);
	void *ctx;
};

static int read_newer(void *ctx, sqlite3_stmt *s)
{
	const struct newer_reader *r = ctx;
	const char *detail = (const char *)sqlite3_column_text(s, 11);
	struct instance_row row;

	journal_read_instance(&row, s);
	return r->each(r->ctx, &row, detail ? detail : "", sqlite3_column_int64(s, 12));
}

int journal_each_newer(struct journal *j, int64_t job,
		       int (*each)(void *ctx, const struct instance_row *row, const char *detail, int64_t member), void *ctx,
		       struct err *err)
{
	struct newer_reader reader = {each, ctx};

	/* 4: a conflict, journal.h */
	return walk_rows(
		j,
		"SELECT " JOURNAL_COLUMNS ", f.detail, m.id FROM event e JOIN instance m ON m.id=e.instance"
		" JOIN instance i ON i.sop_instance=m.sop_instance AND i.id>m.id JOIN classification f ON f.instance=i.id"
		" WHERE e.job=?1 AND e.name='instance' AND f.kind=4 AND" JOURNAL_NOT_REMOVED " AND ?2 ORDER BY i.id",
		"look for newer instances", job, 1, read_newer, &reader, err);
}

int journal_each_unassigned(struct journal *j, double until, int max,
			    int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx,
			    struct err *err)
{
	/* 1: a member of a case, journal.h */
	return walk_instances(j,
			      "SELECT " JOURNAL_COLUMNS ", f.detail FROM classification f JOIN instance i ON i.id=f.instance"
			      " WHERE f.kind<>1 AND f.kind<>5 AND f.time<=?1 AND" JOURNAL_NOT_REMOVED " ORDER BY i.id LIMIT ?2",
			      (int64_t)until, max, each, ctx, err);
}

/* 5: a companion. The other conditions are those of the indexes. */
int journal_each_companion(struct journal *j, int64_t after,
			   int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx, struct err *err)
{
	return walk_instances(j,
			      "SELECT " JOURNAL_COLUMNS ", f.detail FROM classification f JOIN instance i ON i.id=f.instance"
			      " WHERE f.kind=5 AND f.kind<>1 AND f.instance>?1 AND f.instance<" FIRST_WAITING
			      " AND" JOURNAL_NOT_REMOVED " AND ?2 ORDER BY f.instance",
			      after, 1, each, ctx, err);
}

int journal_each_unused_companion(struct journal *j, double until, int max,
				  int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx,
				  struct err *err)
{
	return walk_instances(j,
			      "SELECT " JOURNAL_COLUMNS ", f.detail FROM classification f JOIN instance i ON i.id=f.instance"
			      " WHERE f.kind=5 AND f.kind<>1 AND f.time<=?1 AND" JOURNAL_NOT_REMOVED
			      " AND NOT EXISTS (SELECT 1 FROM event m WHERE m.name='companion' AND m.instance=f.instance AND NOT"
			      " EXISTS (SELECT 1 FROM event c WHERE c.job=m.job AND c.name='cleaned'))"
			      " ORDER BY i.id LIMIT ?2",
			      (int64_t)until, max, each, ctx, err);
}

int journal_each_indexed(struct journal *j, int64_t after, int max,
			 int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx, struct err *err)
{
	return walk_instances(j,
			      "SELECT " JOURNAL_COLUMNS ", f.detail FROM classification f JOIN instance i ON i.id=f.instance"
			      " WHERE f.instance>?1 AND f.instance<" FIRST_WAITING " ORDER BY f.instance LIMIT ?2",
			      after, max, each, ctx, err);
}

static void read_last(void *ctx, sqlite3_stmt *s)
{
	int64_t *last = ctx;

	last[0] = sqlite3_column_int64(s, 0);
	last[1] = sqlite3_column_int64(s, 1);
}

int journal_last_rows(struct journal *j, int64_t *ret_instance, int64_t *ret_event, struct err *err)
{
	int64_t last[2] = {0};
	int ret = journal_read(j, JOURNAL_LAST, "look for the end", read_last, last, err, NO_VALUES);

	if (ret < 0)
		return ret;
	*ret_instance = last[0];
	*ret_event = last[1];
	return 0;
}

/* ---- totals, for metrics: rows are numbered in order, so a total is updated by adding the rows after the last one counted ----
 */

static int add_instances(void *ctx, sqlite3_stmt *s)
{
	struct journal_totals *t = ctx;

	t->instances += (uint64_t)sqlite3_column_int64(s, 0);
	t->bytes += (uint64_t)sqlite3_column_int64(s, 1);
	if (sqlite3_column_int64(s, 2) > t->last_instance)
		t->last_instance = sqlite3_column_int64(s, 2);
	return 0;
}

static int add_classified(void *ctx, sqlite3_stmt *s)
{
	struct journal_totals *t = ctx;

	for (int kind = CLASSIFIED_MEMBER; kind <= CLASSIFIED_COMPANION; kind++)
		t->classified[kind] += (uint64_t)sqlite3_column_int64(s, kind);
	if (sqlite3_column_int64(s, 0) > t->last_classified)
		t->last_classified = sqlite3_column_int64(s, 0);
	return 0;
}

/* The totals that journal_settle_end() has recorded. */
struct total {
	const char *name; /* of the counter */
	size_t at;	  /* in struct journal_totals, 8 bytes */
};
#define TOTAL(name_, member_)                                                                                                    \
	{                                                                                                                        \
		name_, offsetof(struct journal_totals, member_)                                                                  \
	}
static const struct total totals_names[] = {
	TOTAL("instances", instances),
	TOTAL("instance-bytes", bytes),
	TOTAL("instance-last", last_instance),
	TOTAL("classified-last", last_classified),
	TOTAL("classified/member", classified[CLASSIFIED_MEMBER]),
	TOTAL("classified/ignored", classified[CLASSIFIED_IGNORED]),
	TOTAL("classified/refused", classified[CLASSIFIED_REFUSED]),
	TOTAL("classified/conflict", classified[CLASSIFIED_CONFLICT]),
	TOTAL("classified/companion", classified[CLASSIFIED_COMPANION]),
};

static int read_total(void *ctx, const char *name, double n)
{
	uint64_t value = n > 0 ? (uint64_t)n : 0;

	for (size_t i = 0; i < sizeof(totals_names) / sizeof(totals_names[0]); i++)
		if (!strcmp(totals_names[i].name, name))
			memcpy((char *)ctx + totals_names[i].at, &value, sizeof(value));
	return 0;
}

int journal_add_totals(struct journal *j, struct journal_totals *totals, struct err *err)
{
	struct journal_totals sum = *totals;
	int ret = sum.last_instance == 0 ? journal_each_counter(j, read_total, &sum, err) : 0;

	if (ret == 0)
		ret = walk_rows(j, "SELECT COUNT(*), TOTAL(bytes), MAX(id) FROM instance WHERE id>?1", "add up",
				sum.last_instance, 0, add_instances, &sum, err);
	if (ret == 0)
		ret = walk_rows(
			j,
			"SELECT MAX(instance), TOTAL(kind=1), TOTAL(kind=2), TOTAL(kind=3), TOTAL(kind=4), TOTAL(kind=5) FROM"
			" classification WHERE instance>?1 AND instance<" FIRST_WAITING, /* no GROUP BY, which would sort them in memory */
			"add up", sum.last_classified, 0, add_classified, &sum, err);
	if (ret == 0)
		*totals = sum;
	return ret;
}

int journal_record_totals(struct journal *j, struct err *err)
{
	struct journal_totals totals = {0};
	int ret = journal_add_totals(j, &totals, err);

	for (size_t i = 0; ret == 0 && i < sizeof(totals_names) / sizeof(totals_names[0]); i++) {
		uint64_t value;

		memcpy(&value, (const char *)&totals + totals_names[i].at, sizeof(value));
		ret = value > 0 ? journal_set_counter(j, totals_names[i].name, (double)value, err) : 0;
	}
	return ret < 0 ? ret : journal_execute(j, JOURNAL_COUNT_SENDERS, "count the senders", err, NO_VALUES);
}

struct sender_reader {
	int (*each)(void *ctx, const struct journal_sender *row);
	void *ctx;
	int64_t last;
};

static int read_sender(void *ctx, sqlite3_stmt *s)
{
	struct sender_reader *r = ctx;
	const char *calling = (const char *)sqlite3_column_text(s, 0), *host = (const char *)sqlite3_column_text(s, 1);
	struct journal_sender row = {.calling = calling ? calling : "",
				     .host = host ? host : "",
				     .last = sqlite3_column_double(s, 2),
				     .instances = (uint64_t)sqlite3_column_int64(s, 3)};

	r->last = sqlite3_column_int64(s, 4);
	return r->each(r->ctx, &row);
}

int journal_each_sender(struct journal *j, int64_t *after, int (*each)(void *ctx, const struct journal_sender *row), void *ctx,
			struct err *err)
{
	struct sender_reader reader = {each, ctx, *after};
	int ret = *after == 0 && j->settles ? walk_rows(j, "SELECT calling, host, last, instances, id FROM sender ORDER BY id",
							"list the senders", 0, 0, read_sender, &reader, err)
					    : 0;

	/* SQLite: the columns beside the only MAX() are those of its row */
	if (ret == 0)
		ret = walk_rows(j,
				"SELECT calling, host, received, COUNT(*), MAX(id) FROM instance WHERE id>?1 GROUP BY calling"
				" ORDER BY MAX(id)",
				"list the senders", reader.last, 0, read_sender, &reader, err);

	if (ret == 0)
		*after = reader.last;
	return ret;
}
