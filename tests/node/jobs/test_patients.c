/* SPDX-License-Identifier: Apache-2.0 */
/* The patients of jobs: digests in details, the key of the spool, conflicts within a job and between jobs, what a statement
 * covers. */
#include "node/jobs/patients.h"
#include "tests/test.h"

static const uint8_t key[PATIENT_KEY_BYTES] = {7}, other_key[PATIENT_KEY_BYTES] = {8};
static int64_t seq;

static struct job_view *apply(struct jobs *jobs, int64_t job, enum job_event event, const char *detail)
{
	struct event_row row = {.seq = ++seq, .time = 1000, .job = job, .event = event, .known = true, .detail = (char *)detail};

	assert_int_equal(jobs_apply(jobs, &row), 0);
	return jobs_find(jobs, job);
}

static struct job_view *open_job(struct jobs *jobs, int64_t job, const char *case_key)
{
	char detail[200];

	snprintf(detail, sizeof(detail), "{\"key\":\"%s\",\"kind\":\"dbt\",\"calling\":\"M\"}", case_key);
	return apply(jobs, job, EVENT_OPENED, detail);
}

/* An instance whose Patient ID has the digest `id`; 0: no digests at all. */
static void add_keyed(struct jobs *jobs, int64_t job, int64_t instance, uint64_t id, const uint8_t *with)
{
	struct patient_identity identity = {.digest = {id}};
	char text[PATIENTS_IDENTITY_SIZE] = "", detail[300];

	if (id)
		patients_format(&identity, with, text);
	snprintf(detail, sizeof(detail), "{\"instance\":%lld,\"received\":900,\"expected\":2,\"frames\":1,\"identity\":\"%s\"}",
		 (long long)instance, text);
	apply(jobs, job, EVENT_INSTANCE, detail);
}

static void add(struct jobs *jobs, int64_t job, int64_t instance, uint64_t id)
{
	add_keyed(jobs, job, instance, id, key);
}

/* -1: no conflict; 0: within the job; else the other job. */
static int64_t conflict_of(const struct jobs *jobs, int64_t job)
{
	struct patient_conflict conflict;
	const struct job_view *other;

	if (!patients_conflict(jobs, jobs_find(jobs, job), &conflict, &other))
		return -1;
	assert_int_equal(conflict.attributes, 1u << PATIENT_ID);
	return other ? other->id : 0;
}

static void state_it(struct jobs *jobs, int64_t job)
{
	apply(jobs, job, EVENT_HELD, "{\"reason\":\"r\",\"patients\":true}");
	assert_null(patients_no_statement(jobs_find(jobs, job)));
	apply(jobs, job, EVENT_RETRY, "{\"as_is\":false,\"same_patient\":true,\"header\":\"instances/b.dcm\"}");
	assert_non_null(patients_no_statement(jobs_find(jobs, job)));
}

TEST(texts)
{
	struct patient_identity of = {.digest = {1, 0, 3, 4}}, a, b;
	char text[PATIENTS_IDENTITY_SIZE], other[PATIENTS_IDENTITY_SIZE];
	uint32_t key_a, key_b;

	patients_format(&of, key, text);
	patients_format(&of, other_key, other);
	assert_int_equal(strlen(text), 8 + 4 * 17);
	assert_true(patients_parse(text, &a, &key_a) && patients_parse(other, &b, &key_b));
	assert_true(key_a != key_b && a.digest[1] == 0 && b.digest[1] == 0);
	for (int i = 0; i < PATIENT_ATTRIBUTES; i++)
		assert_true(a.digest[i] != of.digest[i] || !of.digest[i]);
	assert_true(a.digest[0] && a.digest[0] != b.digest[0]);
	assert_false(patients_parse("", &a, &key_a));
	assert_false(patients_parse("12345678 1 2 3", &a, &key_a));
	text[strlen(text) - 1] = 'x';
	assert_false(patients_parse(text, &a, &key_a));
}

TEST(within_a_job)
{
	struct jobs jobs GOES(jobs_clear) = {0};
	struct patient_conflict conflict;
	const struct job_view *other;
	char reason[300];

	open_job(&jobs, 1, "s|1");
	add(&jobs, 1, 11, 5);
	add(&jobs, 1, 12, 5);
	assert_int_equal(conflict_of(&jobs, 1), -1);
	add(&jobs, 1, 13, 6);
	assert_int_equal(conflict_of(&jobs, 1), 0);
	assert_true(patients_conflict(&jobs, jobs_find(&jobs, 1), &conflict, &other));
	assert_true(conflict.header[0] == 11 && conflict.header[1] == 13);
	state_it(&jobs, 1);
	assert_int_equal(conflict_of(&jobs, 1), -1);
	assert_string_equal(jobs_find(&jobs, 1)->header, "instances/b.dcm");
	/* another retry keeps it, another instance does not */
	apply(&jobs, 1, EVENT_HELD, "{\"reason\":\"no route\"}");
	apply(&jobs, 1, EVENT_RETRY, "{\"as_is\":true}");
	assert_true(jobs_find(&jobs, 1)->same_patient > 0 && conflict_of(&jobs, 1) == -1);
	add(&jobs, 1, 14, 6);
	assert_int_equal(conflict_of(&jobs, 1), 0);
	assert_null(jobs_find(&jobs, 1)->header);
	patients_reason(NULL, jobs_find(&jobs, 1), &conflict, jobs_find(&jobs, 1), reason, sizeof(reason));
	assert_non_null(strstr(reason, "Patient ID (0010,0020) differs between this case and case 1 of the same study"));
}

/* Jobs of one study or one series, whatever their states; not of others. */
TEST(between_jobs)
{
	struct jobs jobs GOES(jobs_clear) = {0};

	open_job(&jobs, 1, "s|1|L|CC|");
	add(&jobs, 1, 11, 5);
	open_job(&jobs, 2, "s|2|R|CC|");
	add(&jobs, 2, 12, 6);
	open_job(&jobs, 3, "t|1|L|CC|"); /* the series of job 1 */
	add(&jobs, 3, 13, 7);
	open_job(&jobs, 4, "ss|11|L|CC|");
	add(&jobs, 4, 14, 8);
	open_job(&jobs, 5, "||L|CC|");
	add(&jobs, 5, 15, 8);
	assert_int_equal(conflict_of(&jobs, 2), 1);
	assert_int_equal(conflict_of(&jobs, 1), 2);
	assert_int_equal(conflict_of(&jobs, 3), 1);
	assert_int_equal(conflict_of(&jobs, 4), -1);
	assert_int_equal(conflict_of(&jobs, 5), -1);
	apply(&jobs, 1, EVENT_CANCEL, "{}");
	assert_int_equal(conflict_of(&jobs, 2), 1);
	/* said of job 2: the pair is settled for both; job 3 is not */
	state_it(&jobs, 2);
	assert_int_equal(conflict_of(&jobs, 2), -1);
	assert_int_equal(conflict_of(&jobs, 1), 3);
	/* an instance of job 1 that came later was not there when it was said */
	add(&jobs, 1, 16, 5);
	assert_int_equal(conflict_of(&jobs, 2), 1);
}

TEST(without_digests)
{
	struct jobs jobs GOES(jobs_clear) = {0};

	open_job(&jobs, 1, "s|1");
	add(&jobs, 1, 11, 0);
	add(&jobs, 1, 12, 5);
	add_keyed(&jobs, 1, 13, 5, other_key);
	assert_int_equal(conflict_of(&jobs, 1), -1);
	open_job(&jobs, 2, "s|2");
	add_keyed(&jobs, 2, 14, 6, other_key);
	assert_int_equal(conflict_of(&jobs, 2), -1);
	open_job(&jobs, 3, "s|3");
	add(&jobs, 3, 15, 0);
	assert_int_equal(conflict_of(&jobs, 3), -1);
}

TEST(key_of_the_spool)
{
	char folder[64], path[100];
	uint8_t first[PATIENT_KEY_BYTES], again[PATIENT_KEY_BYTES];
	struct err err = {0};
	struct stat st;
	bool created;

	test_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/patient.key", folder);
	assert_int_equal(patient_key_read(folder, first, &err), -ENOENT);
	assert_int_equal(patient_key_create(folder, &created, &err), 0);
	assert_true(created);
	assert_true(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600 && st.st_size == PATIENT_KEY_BYTES);
	assert_int_equal(patient_key_read(folder, first, &err), 0);
	assert_int_equal(patient_key_create(folder, &created, &err), 0);
	assert_false(created);
	assert_int_equal(patient_key_read(folder, again, &err), 0);
	assert_memory_equal(first, again, sizeof(first));
	assert_int_equal(truncate(path, 31), 0);
	assert_int_equal(patient_key_read(folder, again, &err), -EBADMSG);
	assert_int_equal(patient_key_create(folder, &created, &err), 0);
	assert_true(created);
	assert_int_equal(patient_key_read(folder, again, &err), 0);
	assert_memory_not_equal(first, again, sizeof(first));
	unlink(path);
	assert_int_equal(rmdir(folder), 0);
	assert_true(patient_key_create(folder, &created, &err) < 0 && !created);
}
