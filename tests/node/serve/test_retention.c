/* SPDX-License-Identifier: Apache-2.0 */
/* Retention by space, and the journal's reserve on a disk without a byte left. */
#include <sys/mount.h>

#include "node/base/folder.h"
#include "node/base/log.h"
#include "node/jobs/jobs_settled.h"
#include "node/serve/retention.h"
#include "node/store/journal.h"
#include "node/store/spool.h"
#include "tests/test.h"

#define FILE_BYTES (64 << 10) /* a multiple of every usual block */
#define RESERVE (4u << 20)

struct place {
	char dir[64], path[96];
	struct journal *journal;
	struct jobs jobs;
	bool mounted;
};

static int prepare(struct place *p)
{
	struct err err = {0};

	snprintf(p->path, sizeof(p->path), "%s/journal.db", p->dir);
	return spool_prepare(p->dir, &err) < 0 || journal_open(p->path, &p->journal, &err) < 0 ? -1 : 0;
}

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	log_start(LOG_TO_NOWHERE, 0, LOG_ERR, "test");
	test_folder(p->dir, sizeof(p->dir));
	*state = p;
	return prepare(p);
}

/* The same on a tmpfs of 12 MiB, where we may. */
static int setup_small(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	log_start(LOG_TO_NOWHERE, 0, LOG_ERR, "test");
	test_folder(p->dir, sizeof(p->dir));
	*state = p;
	p->mounted = mount("tmpfs", p->dir, "tmpfs", 0, "size=12m") == 0;
	return p->mounted ? prepare(p) : 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	journal_close(p->journal);
	jobs_clear(&p->jobs);
	if (p->mounted)
		umount(p->dir);
	free(p);
	return 0;
}

static void put_file(const struct place *p, const char *file)
{
	static const char zeros[FILE_BYTES];

	test_put_file(test_path(p->dir, file), zeros, sizeof(zeros));
}

static bool there(const struct place *p, const char *file)
{
	return access(test_path(p->dir, file), F_OK) == 0;
}

static void append(struct place *p, int64_t job, enum job_event event, const char *detail, double time)
{
	assert_int_equal(journal_append(p->journal, job, event, detail, time, NULL), 0);
}

/* A job of case `key` with one image, instances/KEY.dcm, up to where `delivered` says when (0: not yet delivered). */
static int64_t add_case(struct place *p, const char *key, double delivered)
{
	static const char *const before[] = {"{\"protocol\":\"p\",\"destinations\":[\"pacs\"]}", "{}",
					     "{\"file\":\"outbox/1/x.dcm\",\"sop_instance\":\"1.5\",\"sop_class\":\"1.2\"}",
					     "{\"destination\":\"pacs\"}"};
	static const enum job_event events[] = {EVENT_COMPLETE, EVENT_STARTED, EVENT_RECONSTRUCTED, EVENT_SENT};
	struct instance_row row = {.received = 1000};
	char detail[200];
	int64_t job = 0;

	snprintf(row.sop_instance, sizeof(row.sop_instance), "1.%s", key);
	snprintf(row.file, sizeof(row.file), "instances/%s.dcm", key);
	put_file(p, row.file);
	snprintf(detail, sizeof(detail), "{\"key\":\"%s\",\"kind\":\"dbt\",\"calling\":\"MOD\"}", key);
	assert_int_equal(journal_open_job(p->journal, detail, 1000, &job, NULL), 0);
	assert_int_equal(journal_add_instance(p->journal, &row, NULL), 0);
	assert_int_equal(journal_classify(p->journal, row.id, CLASSIFIED_MEMBER, job, "{\"received\":1000}", 1000, NULL), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(journal_append(p->journal, job, events[i], before[i], 1000, NULL), 0);
	if (delivered > 0)
		append(p, job, EVENT_DELIVERED, "{}", delivered);
	return job;
}

static enum job_state state_of(struct place *p, int64_t job)
{
	enum job_state state = JOB_NONE;

	assert_int_equal(journal_job_state(p->journal, job, &state, NULL), 0);
	return state;
}

static bool never_busy(void *ctx, int64_t job)
{
	(void)ctx;
	(void)job;
	return false;
}

/* What is settled is recorded and forgotten, as long after it: retention reads it again. */
static void refresh(struct place *p)
{
	assert_int_equal(jobs_refresh(&p->jobs, p->journal, 0, NULL), 0);
	jobs_observe_clock(&p->jobs, 1e9);
	assert_int_equal(jobs_record_settled(&p->jobs, p->journal, 1e9, NULL), 0);
	jobs_forget_settled(&p->jobs, 0);
}

TEST(space_takes_the_oldest, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	int64_t second = add_case(p, "2", 3000), first = add_case(p, "1", 2000), open = add_case(p, "3", 0);
	int64_t third = add_case(p, "4", 4000);

	refresh(p);
	assert_int_equal(retention_used_bytes(p->dir), 4 * FILE_BYTES);
	assert_int_equal(retention_clean_space(p->journal, &p->jobs, p->dir, 4 * FILE_BYTES, 5000), 0);
	assert_true(there(p, "instances/1.dcm"));
	assert_int_equal(retention_clean_space(p->journal, &p->jobs, p->dir, 3 * FILE_BYTES, 5000), 0);
	assert_false(there(p, "instances/1.dcm"));
	assert_int_equal(state_of(p, first), JOB_CLEANED);
	assert_int_equal(state_of(p, second), JOB_DELIVERED);
	/* One that is not delivered stays, whatever the space. */
	refresh(p);
	assert_int_equal(retention_clean_space(p->journal, &p->jobs, p->dir, 1, 5000), FILE_BYTES - 1);
	assert_int_equal(state_of(p, second), JOB_CLEANED);
	assert_int_equal(state_of(p, third), JOB_CLEANED);
	assert_int_equal(state_of(p, open), JOB_RECONSTRUCTED);
	assert_true(there(p, "instances/3.dcm"));
}

/* Others are opened between every look and the removal, as on a busy day: that holds nothing up. */
/* A case that cannot be read keeps the files of its exam, and of no other. */
TEST(unreadable_keeps_its_exam, .setup = setup, .teardown = teardown)
{
	const struct retention_rule rule = {.days = 1};
	struct place *p = *state;
	int64_t same = add_case(p, "1", 2000), other = add_case(p, "2", 3000);
	struct jobs_lost lost = {.id = 9, .why = {.code = EIO, .msg = "x"}};

	refresh(p);
	lost.study = jobs_find(&p->jobs, same)->study_link.hash;
	for (int by_space = 0; by_space < 2; by_space++) {
		p->jobs.n_lost = 1;
		p->jobs.lost[0] = lost;
		if (by_space)
			assert_true(retention_clean_space(p->journal, &p->jobs, p->dir, 0, 1e6) > 0);
		else
			assert_true(retention_clean(p->journal, &p->jobs, p->dir, &rule, 1e6));
		assert_int_equal(state_of(p, same), JOB_DELIVERED);
		assert_true(there(p, "instances/1.dcm"));
		assert_int_equal(state_of(p, other), JOB_CLEANED);
		other = add_case(p, by_space ? "4" : "3", 4000);
		refresh(p);
	}
}

TEST(space_is_made_while_exams_arrive, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	int64_t done = add_case(p, "1", 2000), next = 0;

	refresh(p);
	next = add_case(p, "2", 0);
	assert_int_equal(retention_clean_space(p->journal, &p->jobs, p->dir, FILE_BYTES, 5000), 0);
	assert_int_equal(state_of(p, done), JOB_CLEANED);
	assert_false(there(p, "instances/1.dcm"));
	assert_true(there(p, "instances/2.dcm"));
	assert_int_equal(state_of(p, next), JOB_RECONSTRUCTED);
}

/* A revision shares the images of its case: neither goes before both are done. */
TEST(space_spares_open_cases, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	int64_t done = add_case(p, "1", 2000), open = 0;

	assert_int_equal(journal_open_job(p->journal, "{\"key\":\"1\",\"kind\":\"dbt\",\"calling\":\"MOD\"}", 2500, &open, NULL),
			 0);
	refresh(p);
	assert_int_equal(retention_clean_space(p->journal, &p->jobs, p->dir, 1, 5000), FILE_BYTES - 1);
	assert_int_equal(state_of(p, done), JOB_DELIVERED);
	assert_true(there(p, "instances/1.dcm"));
}

/* An image comes between the look and the removal, and opens a revision with all images of the case: they stay. */
TEST(a_revision_in_between_keeps_its_images, .setup = setup, .teardown = teardown)
{
	const struct retention_rule rule = {1, 0};
	struct instance_row late = {.received = 3000, .file = "instances/late.dcm", .sop_instance = "1.9"};
	struct place *p = *state;
	int64_t done = add_case(p, "1", 2000), other = add_case(p, "2", 2000), revision = 0;

	refresh(p);
	put_file(p, late.file);
	assert_int_equal(journal_add_instance(p->journal, &late, NULL), 0);
	assert_int_equal(journal_open_revision(p->journal, done, late.id, "{}",
					       "{\"key\":\"1\",\"kind\":\"dbt\",\"calling\":\"MOD\"}", 3000, &revision, NULL),
			 0);
	assert_false(retention_clean(p->journal, &p->jobs, p->dir, &rule, 1e9));
	assert_true(retention_clean_space(p->journal, &p->jobs, p->dir, 1, 1e9) > 0);
	assert_true(there(p, "instances/1.dcm"));
	assert_int_equal(journal_has_file(p->journal, "instances/1.dcm", NULL), 1);
	assert_int_equal(state_of(p, done), JOB_DELIVERED);
	/* That is nothing to a case which has none of these images. */
	assert_int_equal(state_of(p, other), JOB_CLEANED);
	assert_false(there(p, "instances/2.dcm"));
	/* The next look knows of it. */
	refresh(p);
	assert_true(retention_clean(p->journal, &p->jobs, p->dir, &rule, 1e9));
	assert_true(there(p, "instances/1.dcm"));
	/* And the other way round: of what is cleaned there is no revision. */
	assert_int_equal(journal_open_revision(p->journal, other, late.id, "{}", "{}", 3000, &revision, NULL), -ESTALE);
}

/* A cancelled revision keeps its case from nothing; a cancelled case goes after days of its own. */
TEST(cancelled_cases, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	int64_t done = add_case(p, "1", 2000), given_up = add_case(p, "2", 0), revision = 0;

	assert_int_equal(
		journal_open_job(p->journal, "{\"key\":\"1\",\"kind\":\"dbt\",\"calling\":\"MOD\"}", 2500, &revision, NULL), 0);
	append(p, revision, EVENT_CANCEL, "{}", 2500);
	append(p, given_up, EVENT_CANCEL, "{}", 2500);
	refresh(p);
	assert_true(retention_clean(p->journal, &p->jobs, p->dir, &(struct retention_rule){1, 0}, 1e9));
	assert_int_equal(state_of(p, done), JOB_CLEANED);
	assert_int_equal(state_of(p, given_up), JOB_CANCELLED);
	assert_false(there(p, "instances/1.dcm"));
	refresh(p);
	assert_int_equal(retention_clean_space(p->journal, &p->jobs, p->dir, 1, 1e9), FILE_BYTES - 1); /* never for space */
	assert_true(retention_clean(p->journal, &p->jobs, p->dir, &(struct retention_rule){0, 1}, 1e9));
	assert_int_equal(state_of(p, given_up), JOB_CLEANED);
	assert_int_equal(state_of(p, revision), JOB_CLEANED);
	assert_false(there(p, "instances/2.dcm"));
}

static int64_t add_unassigned(struct place *p, const char *name, enum classification kind, double time)
{
	struct instance_row row = {.received = time};

	snprintf(row.sop_instance, sizeof(row.sop_instance), "2.%s", name);
	snprintf(row.file, sizeof(row.file), "instances/%s.dcm", name);
	snprintf(row.digest, sizeof(row.digest), "d");
	put_file(p, row.file);
	assert_int_equal(journal_add_instance(p->journal, &row, NULL), 0);
	assert_int_equal(journal_classify(p->journal, row.id, kind, 0, "{\"reason\":\"\"}", time, NULL), 0);
	return row.id;
}

/* What belongs to no case goes after the days that a person has named, and nothing else does: neither younger ones, nor one that
 * nobody has looked at yet, nor images of a case, whatever its state. */
TEST(objects_of_no_case, .setup = setup, .teardown = teardown)
{
	const double day = 86400, now = 1000 * day;
	struct instance_row row = {.received = 1, .file = "instances/new.dcm", .sop_instance = "3.1"};
	struct place *p = *state;
	char name[16];
	int64_t open;

	add_case(p, "done", 2000);
	open = add_case(p, "open", 0);
	append(p, open, EVENT_CANCEL, "{}", 1000);
	add_unassigned(p, "ignored", CLASSIFIED_IGNORED, now - 3 * day);
	add_unassigned(p, "refused", CLASSIFIED_REFUSED, now - 2 * day - 1);
	add_unassigned(p, "young", CLASSIFIED_CONFLICT, now - 2 * day + 1);
	add_unassigned(p, "tomorrow", CLASSIFIED_IGNORED, now + 1); /* the clock was set back */
	put_file(p, row.file);
	assert_int_equal(journal_add_instance(p->journal, &row, NULL), 0);
	assert_int_equal(retention_clean_unassigned(p->journal, p->dir, 2, now), 2);
	assert_false(there(p, "instances/ignored.dcm"));
	assert_false(there(p, "instances/refused.dcm"));
	assert_int_equal(journal_has_instance(p->journal, "2.ignored", "d", NULL, NULL), 0); /* sent again, it is stored again */
	assert_int_equal(journal_has_file(p->journal, "instances/ignored.dcm", NULL), 0);    /* a file that is left is swept */
	assert_true(there(p, "instances/young.dcm") && there(p, "instances/tomorrow.dcm") && there(p, "instances/new.dcm"));
	assert_true(there(p, "instances/done.dcm") && there(p, "instances/open.dcm"));
	assert_int_equal(retention_clean_unassigned(p->journal, p->dir, 2, now), 0);
	for (int i = 0; i < RETENTION_UNASSIGNED_MAX + 3; i++) {
		snprintf(name, sizeof(name), "%d", i);
		add_unassigned(p, name, CLASSIFIED_IGNORED, 1);
	}
	assert_int_equal(retention_clean_unassigned(p->journal, p->dir, 1, 3 * day), RETENTION_UNASSIGNED_MAX);
	assert_int_equal(retention_clean_unassigned(p->journal, p->dir, 1, 3 * day), 3);
}

/* A damaged row of the journal that names a file outside instances/: the file is not removed. */
TEST(file_outside_instances, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	char folder[200];

	snprintf(folder, sizeof(folder), "%s/instances/sub", p->dir);
	assert_int_equal(mkdir(folder, 0700), 0);
	add_case(p, "../case", 2000);
	add_case(p, "sub/case", 2000);
	refresh(p);
	assert_int_equal(retention_clean_space(p->journal, &p->jobs, p->dir, 1, 5000),
			 FILE_BYTES - 1); /* that in instances/sub */
	for (size_t i = 0; i < p->jobs.n; i++)
		assert_int_equal(state_of(p, p->jobs.list[i]->id), JOB_CLEANED);
	assert_true(there(p, "case.dcm") && there(p, "instances/sub/case.dcm"));
	add_unassigned(p, "../object", CLASSIFIED_IGNORED, 1);
	add_unassigned(p, "sub/object", CLASSIFIED_IGNORED, 1);
	assert_int_equal(retention_clean_unassigned(p->journal, p->dir, 1, 1e9), 2);
	assert_true(there(p, "object.dcm") && there(p, "instances/sub/object.dcm"));
}

/* Fill what is left of the disk, to the last byte. */
static void fill(const struct place *p)
{
	char path[200], block[4096] = {0};
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/filler", p->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	assert_true(fd >= 0);
	do
		n = write(fd, block, sizeof(block));
	while (n > 0);
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

TEST(reserved_journal_commits_on_a_full_disk, .setup = setup_small, .teardown = teardown)
{
	struct place *p = *state;
	struct err err = {0};
	int64_t job;
	int rc;

	if (!p->mounted)
		skip_because("no tmpfs can be mounted");
	job = add_case(p, "1", 0);
	rc = journal_reserve(p->journal, RESERVE, &err);
	if (rc == -EOPNOTSUPP)
		skip_because("%s", err.msg);
	assert_int_equal(rc, 0);
	fill(p);
	assert_int_equal(spool_free_bytes(p->dir), 0);
	for (int i = 0; i < 400; i++)
		if (journal_append(p->journal, job, EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"next\":1.0}", 1000 + i,
				   &err) < 0)
			fail_msg("append %d on a full disk: %s", i, err.msg);
	refresh(p);
	assert_int_equal(jobs_find(&p->jobs, job)->sends[0].failures, 400);
	assert_int_equal(journal_check(p->journal, NULL, NULL, NULL), 0);
}

/* What the reserve is for: without it, the same ends soon. */
TEST(bare_journal_meets_the_end, .setup = setup_small, .teardown = teardown)
{
	struct place *p = *state;
	struct err err = {0};
	int64_t job;
	int n = 0;

	if (!p->mounted)
		skip_because("no tmpfs can be mounted");
	job = add_case(p, "1", 0);
	fill(p);
	while (n < 400 &&
	       journal_append(p->journal, job, EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"next\":1.0}", 1000 + n, &err) == 0)
		n++;
	assert_in_range(n, 0, 399);
	assert_int_equal(err.code, ENOSPC);
}

/* Delivered cases keep their results until retention cleans them: there may be many, and none is read for it. */
TEST(outbox_of_delivered_is_not_read, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	int64_t job = add_case(p, "1", 2000);

	assert_int_equal(job, 1);
	assert_int_equal(mkdir(test_path(p->dir, "outbox/1"), 0700), 0);
	put_file(p, "outbox/1/x.dcm");
	refresh(p);
	retention_clean_outbox(&p->jobs, p->dir, never_busy, NULL);
	assert_true(there(p, "outbox/1/x.dcm"));
	assert_int_equal(p->jobs.n, 0);
	append(p, job, EVENT_CLEANED, "{}", 3000); /* the node ended before it removed the files */
	refresh(p);
	retention_clean_outbox(&p->jobs, p->dir, never_busy, NULL);
	assert_false(there(p, "outbox/1/x.dcm"));
}

TEST(bytes_of_folders, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	char path[128];

	assert_int_equal(folder_bytes("/nonexistent"), 0);
	snprintf(path, sizeof(path), "%s/outbox/7", p->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	put_file(p, "outbox/7/a.dcm");
	put_file(p, "outbox/7/b.dcm");
	put_file(p, "work/c"); /* not counted */
	assert_int_equal(folder_bytes(path), 2 * FILE_BYTES);
	assert_int_equal(retention_used_bytes(p->dir), 2 * FILE_BYTES);
}

static void join(struct place *p, int64_t job, const int64_t *images, size_t n)
{
	append(p, job, EVENT_RESULT_LOST, "{}", 1000);
	append(p, job, EVENT_HELD, "{}", 1000);
	append(p, job, EVENT_RETRY, "{}", 1000);
	assert_int_equal(journal_append_complete(p->journal, job, INT64_MAX, "{\"protocol\":\"p\",\"destinations\":[\"pacs\"]}",
						 images, n, 1000, NULL),
			 0);
	append(p, job, EVENT_STARTED, "{}", 1000);
	append(p, job, EVENT_RECONSTRUCTED, "{\"file\":\"outbox/1/x.dcm\",\"sop_instance\":\"1.5\",\"sop_class\":\"1.2\"}", 1000);
	append(p, job, EVENT_DELIVERED, "{}", 1000);
}

/* A CT image is removed with the last case that uses it; one that none uses after the days of delivered cases. */
TEST(ct_images, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	const struct retention_rule rule = {.days = 1};
	const double day = 86400;
	int64_t a = add_case(p, "a", 0), b = add_case(p, "b", 0), ct[3];
	char name[8];

	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "ct%d", i);
		ct[i] = add_unassigned(p, name, CLASSIFIED_COMPANION, 1000 + i * day);
	}
	join(p, a, ct, 1);
	join(p, b, ct, 1);
	refresh(p);
	assert_int_equal(retention_clean_unassigned(p->journal, p->dir, 1, 1000 + 9 * day), 0);
	assert_int_equal(retention_clean_companions(p->journal, &p->jobs, p->dir, 1, 999 + 2 * day),
			 0); /* one is a day and less old */
	assert_int_equal(retention_clean_companions(p->journal, &p->jobs, p->dir, 1, 1000 + 2 * day), 1);
	assert_true(there(p, "instances/ct0.dcm") && !there(p, "instances/ct1.dcm") && there(p, "instances/ct2.dcm"));
	append(p, a, EVENT_CLEANED, "{}", 1000);
	jobs_clear(&p->jobs);
	refresh(p);
	assert_true(there(p, "instances/ct0.dcm"));
	assert_true(retention_clean(p->journal, &p->jobs, p->dir, &rule, 1000 + 2 * day));
	assert_int_equal(state_of(p, b), JOB_CLEANED);
	assert_false(there(p, "instances/ct0.dcm"));
}

/* The first of two cases that share it leaves it. */
TEST(ct_image_of_two_cases, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	const struct retention_rule rule = {.days = 1};
	const double day = 86400;
	int64_t a = add_case(p, "a", 0), b = add_case(p, "b", 0), ct = add_unassigned(p, "ct", CLASSIFIED_COMPANION, 1000);

	join(p, a, &ct, 1);
	refresh(p);
	assert_true(jobs_find(&p->jobs, a) && jobs_find(&p->jobs, b));
	append(p, b, EVENT_RESULT_LOST, "{}", 1000);
	append(p, b, EVENT_INSTANCE, "{\"received\":1000}", 1000);
	assert_int_equal(journal_append_complete(p->journal, b, INT64_MAX, "{\"protocol\":\"p\",\"destinations\":[\"pacs\"]}",
						 &ct, 1, 1000, NULL),
			 0);
	refresh(p);
	assert_true(retention_clean(p->journal, &p->jobs, p->dir, &rule, 1000 + 2 * day));
	assert_int_equal(state_of(p, a), JOB_CLEANED);
	assert_true(there(p, "instances/ct.dcm"));
	assert_int_equal(retention_clean_companions(p->journal, &p->jobs, p->dir, 1, 1000 + 9 * day), 0);
}

/* Of a study with a case that is not done, it stays: the case may still need it. */
TEST(ct_image_of_an_open_case, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	const double day = 86400;
	struct instance_row row = {.received = 1000, .sop_instance = "2.1", .file = "instances/ct.dcm"};
	struct instance_row member = {.received = 1000, .sop_instance = "1.1", .file = "instances/pet.dcm"};
	int64_t job = 0;

	put_file(p, row.file);
	put_file(p, member.file);
	assert_int_equal(journal_open_job(p->journal, "{\"key\":\"k\",\"kind\":\"pet\",\"study\":\"2.25.7\"}", 1000, &job, NULL),
			 0);
	assert_int_equal(journal_add_instance(p->journal, &member, NULL), 0);
	assert_int_equal(journal_classify(p->journal, member.id, CLASSIFIED_MEMBER, job, "{\"received\":1000}", 1000, NULL), 0);
	append(p, job, EVENT_HELD, "{}", 1000);
	assert_int_equal(journal_add_instance(p->journal, &row, NULL), 0);
	assert_int_equal(journal_classify(p->journal, row.id, CLASSIFIED_COMPANION, 0, "{\"study\":\"2.25.7\"}", 1000, NULL), 0);
	refresh(p);
	assert_int_equal(state_of(p, job), JOB_HELD);
	assert_int_equal(retention_clean_companions(p->journal, &p->jobs, p->dir, 1, 1000 + 9 * day), 0);
	assert_true(there(p, "instances/ct.dcm"));
	append(p, job, EVENT_CANCEL, "{}", 1000);
	refresh(p);
	assert_int_equal(state_of(p, job), JOB_CANCELLED);
	assert_int_equal(retention_clean_companions(p->journal, &p->jobs, p->dir, 1, 1000 + 9 * day), 1);
	assert_false(there(p, "instances/ct.dcm"));
}
