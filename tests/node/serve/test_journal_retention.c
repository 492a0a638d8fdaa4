/* SPDX-License-Identifier: Apache-2.0 */
/* What belonged to no case is forgotten after its files were removed, and nothing of a case with it. */
#include "node/base/log.h"
#include "node/jobs/journal_retention.h"
#include "node/serve/retention.h"
#include "node/store/journal.h"
#include "node/store/spool.h"
#include "tests/test.h"

#define DAY 86400.0
#define NOW (1000 * DAY)

struct place {
	char dir[64], path[96];
	struct journal *journal;
	int64_t job, n; /* n: instances */
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	log_start(LOG_TO_NOWHERE, 0, LOG_ERR, "test");
	test_folder(p->dir, sizeof(p->dir));
	*state = p;
	snprintf(p->path, sizeof(p->path), "%s/journal.db", p->dir);
	return spool_prepare(p->dir, NULL) < 0 || journal_open(p->path, &p->journal, NULL) < 0 ||
	       journal_open_job(p->journal, "{\"key\":\"k\"}", NOW, &p->job, NULL) < 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	journal_close(p->journal);
	free(p);
	return 0;
}

static bool there(const struct place *p, int64_t number)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/instances/%lld.dcm", p->dir, (long long)number);
	return access(path, F_OK) == 0;
}

/* Does the journal have a row of the instance, removed or not? */
static bool on_record(const struct place *p, int64_t number)
{
	char file[64];

	snprintf(file, sizeof(file), "instances/%lld.dcm", (long long)number);
	return journal_has_file(p->journal, file, NULL) == 1 || journal_has_removed_file(p->journal, file, NULL) == 1;
}

/* An instance that the indexer saw `days` before NOW; its file has the same number. */
static int64_t add(struct place *p, enum classification kind, int days)
{
	struct instance_row row = {.received = 1000, .bytes = 1};
	int64_t number = ++p->n;
	char path[200];
	int fd;

	snprintf(row.sop_instance, sizeof(row.sop_instance), "1.%lld", (long long)number);
	snprintf(row.file, sizeof(row.file), "instances/%lld.dcm", (long long)number);
	snprintf(path, sizeof(path), "%s/%s", p->dir, row.file);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(journal_add_instance(p->journal, &row, NULL), 0);
	assert_int_equal(journal_classify(p->journal, row.id, kind, kind == CLASSIFIED_MEMBER ? p->job : 0, "{\"received\":1}",
					  NOW - days * DAY, NULL),
			 0);
	return row.id;
}

static int count(void *ctx, const struct instance_row *row, const char *detail)
{
	(void)row;
	(void)detail;
	++*(int *)ctx;
	return 0;
}

static int listed(struct place *p)
{
	int n = 0;

	for (int kind = CLASSIFIED_IGNORED; kind <= CLASSIFIED_CONFLICT; kind++)
		assert_int_equal(journal_each_classified(p->journal, (enum classification)kind, 1000, count, &n, NULL), 0);
	return n;
}

TEST(goes_after_its_files, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	int64_t member = add(p, CLASSIFIED_MEMBER, 90), ids[3], young, last, event;
	struct instance_row row;

	for (int i = 0; i < 3; i++)
		ids[i] = add(p, (enum classification)(CLASSIFIED_IGNORED + i), 31 + i);
	young = add(p, CLASSIFIED_REFUSED, 29);
	assert_int_equal(listed(p), 4);
	assert_int_equal(retention_clean_unassigned(p->journal, p->dir, 40, NOW), 0);
	assert_int_equal(retention_clean_unassigned(p->journal, p->dir, 30, NOW), 3);
	for (int i = 0; i < 3; i++)
		assert_false(there(p, ids[i]));
	assert_true(there(p, member));
	assert_true(there(p, young));
	assert_int_equal(listed(p), 1);
	assert_int_equal(retention_clean_unassigned(p->journal, p->dir, 30, NOW), 0);
	/* The same again is stored again. */
	assert_int_equal(journal_has_instance(p->journal, "1.2", "", NULL, NULL), 0);
	/* Rows go later, those of the member and of what is still there never. */
	assert_int_equal(journal_retention_delete_unassigned(p->journal, 0, NOW + 20 * DAY), 0);
	assert_int_equal(journal_retention_delete_unassigned(p->journal, 10, NOW + 9 * DAY), 0);
	assert_int_equal(journal_retention_delete_unassigned(p->journal, 10, NOW + 11 * DAY), 3);
	for (int i = 0; i < 3; i++)
		assert_false(on_record(p, ids[i]));
	assert_true(on_record(p, member));
	assert_true(on_record(p, young));
	/* The newest one, too: nothing waits for the indexer then, and its number is not given again. */
	assert_int_equal(retention_clean_unassigned(p->journal, p->dir, 30, NOW + 2 * DAY), 1);
	assert_int_equal(journal_retention_delete_unassigned(p->journal, 10, NOW + 20 * DAY), 1);
	assert_int_equal(journal_list_unindexed(p->journal, 0, &row, 1, NULL), 0);
	assert_int_equal(journal_last_rows(p->journal, &last, &event, NULL), 0);
	assert_int_equal(last, member);
	assert_true(add(p, CLASSIFIED_MEMBER, 0) > young);
	assert_int_equal(journal_retention_delete_unassigned(p->journal, 1, NOW + 1000 * DAY), 0);
	assert_true(on_record(p, member));
}

/* A member whose file retention removed is the case's, and forgotten with it alone. */
TEST(not_of_a_case, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	int64_t member = add(p, CLASSIFIED_MEMBER, 90);

	assert_int_equal(journal_remove_instance(p->journal, member, NOW - 80 * DAY, NULL), 0);
	assert_int_equal(journal_retention_delete_unassigned(p->journal, 1, NOW), 0);
	assert_true(on_record(p, member));
}

/* What a page that starts now shows as received. */
static int64_t counted(struct place *p)
{
	struct journal_totals totals = {0};

	assert_done(journal_add_totals(p->journal, &totals, NULL), NULL);
	assert_int_equal(totals.classified[CLASSIFIED_IGNORED], totals.instances);
	return (int64_t)totals.instances;
}

TEST(many_take_turns, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;

	for (int i = 0; i < JOURNAL_UNASSIGNED_MAX + 7; i++)
		add(p, CLASSIFIED_IGNORED, 31);
	while (retention_clean_unassigned(p->journal, p->dir, 30, NOW) == RETENTION_UNASSIGNED_MAX)
		;
	assert_int_equal(counted(p), p->n);
	assert_int_equal(journal_retention_delete_unassigned(p->journal, 1, NOW + 2 * DAY), JOURNAL_UNASSIGNED_MAX);
	assert_int_equal(journal_retention_delete_unassigned(p->journal, 1, NOW + 2 * DAY), 7);
	assert_int_equal(counted(p), p->n);
	for (int64_t i = 1; i <= p->n; i++)
		assert_false(on_record(p, i));
}

/* The revision was cleaned later than its elder: the case waits for it. */
TEST(cases_are_as_old_as_their_last_revision)
{
	char key[] = "k", other[] = "l";
	struct job_view elder = {.key = key, .state = JOB_CLEANED, .changed = NOW - 10 * DAY};
	struct job_view revision = {.key = key, .state = JOB_CLEANED, .changed = NOW - 2 * DAY};
	struct job_view *list[] = {&elder, &revision};
	struct jobs jobs = {.list = list, .n = 2};

	for (size_t i = 0; i < 2; i++) {
		list[i]->study_link.hash = jobs_index_hash(key, 0);
		assert_true(jobs_index_add(&jobs.by_study, &list[i]->study_link));
	}
	assert_false(journal_retention_may_delete(&jobs, &elder, 3, NOW));
	assert_false(journal_retention_may_delete(&jobs, &revision, 3, NOW));
	assert_true(journal_retention_may_delete(&jobs, &elder, 3, NOW + DAY));
	revision.key = other;
	assert_true(journal_retention_may_delete(&jobs, &elder, 3, NOW));
	jobs_index_clear(&jobs.by_study);
}
