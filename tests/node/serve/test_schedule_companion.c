/* SPDX-License-Identifier: Apache-2.0 */
/* A PET case whose route has a protocol that computes the attenuation correction from a CT series: joined, waited for, held,
 * released, in this process, without one of them. Which series fits: tests/node/jobs/test_companion.c. */
#include "tests/node/serve/schedule_fixture.h"
#include "tests/test.h"

#include "node/jobs/case_results.h"
#include "node/jobs/patients.h"

#define STUDY "1.2"
#define FRAME "1.3"
#define QUIET 60.0
#define WAIT 600.0

static const uint8_t key[PATIENT_KEY_BYTES] = {1};

static int setup_pet(void **state)
{
	static const char text[] =
		"protocols = ( { name = \"plain\"; kind = \"pet\"; }, { name = \"corrected\"; kind = \"pet\"; corrections = "
		"[ \"attenuation\" ]; } );\n"
		"destinations = ( { name = \"pacs\"; aet = \"A\"; host = \"h\"; port = 104; } );\n"
		"routes = ( { name = \"both\"; kind = \"pet\"; calling = \"BOTH\"; protocols = [ \"plain\", \"corrected\" ]; "
		"destinations = [ \"pacs\" ]; }, { name = \"plain\"; kind = \"pet\"; protocols = [ \"plain\" ]; destinations = [ \"pacs\" ]; } "
		");\n";

	if (setup(state) < 0)
		return -1;
	configure_as(*state, "ct_wait = 600.0;", text);
	return 0;
}

static int teardown_pet(void **state)
{
	struct stage *t = *state;

	companions_clear(&t->s.companions);
	return teardown(state);
}

static void identity_of(uint64_t patient, char text[PATIENTS_IDENTITY_SIZE])
{
	struct patient_identity identity = {.digest = {[PATIENT_ID] = patient, [PATIENT_NAME] = patient}};

	patients_format(&identity, key, text);
}

/* A complete case of one instance, of patient 7. */
static int64_t add_pet(struct stage *t, const char *calling, bool attenuated)
{
	char detail[500], identity[PATIENTS_IDENTITY_SIZE], uid[40];
	int64_t job = 0, id;

	snprintf(detail, sizeof(detail),
		 "{\"key\":\"" STUDY "|1.9|" FRAME "\",\"kind\":\"pet\",\"calling\":\"%s\",\"study\":\"" STUDY "\"}", calling);
	assert_int_equal(journal_open_job(t->s.journal, detail, NOW, &job, NULL), 0);
	snprintf(uid, sizeof(uid), "3.%lld", (long long)job);
	id = add_instance(t, uid);
	identity_of(7, identity);
	snprintf(detail, sizeof(detail),
		 "{\"instance\":%lld,\"received\":%f,\"expected\":1,\"frames\":1,\"identity\":\"%s\",\"frame\":\"" FRAME
		 "\",\"acquired\":9000,\"attenuation\":%s}",
		 (long long)id, NOW, identity, attenuated ? "true" : "false");
	assert_int_equal(journal_classify(t->s.journal, id, CLASSIFIED_MEMBER, job, detail, NOW, NULL), 0);
	return job;
}

/* An instance of a sender, without a classification. */
static int64_t add_unindexed(struct stage *t, const char *calling, double received)
{
	static int serial;
	struct instance_row row = {.received = received};

	snprintf(row.calling, sizeof(row.calling), "%s", calling);
	snprintf(row.sop_instance, sizeof(row.sop_instance), "5.%d", ++serial);
	snprintf(row.file, sizeof(row.file), "instances/u%d.dcm", serial);
	assert_int_equal(journal_add_instance(t->s.journal, &row, NULL), 0);
	return row.id;
}

static void ignore(struct stage *t, int64_t instance)
{
	assert_int_equal(journal_classify(t->s.journal, instance, CLASSIFIED_IGNORED, 0, "{}", NOW, NULL), 0);
}

/* n images of a CT series of the sender CT, received at NOW. */
static void add_ct(struct stage *t, const char *series, const char *frame, int n)
{
	char detail[500], identity[PATIENTS_IDENTITY_SIZE];

	identity_of(7, identity);
	for (int i = 0; i < n; i++) {
		int64_t id = add_unindexed(t, "CT", NOW);

		snprintf(detail, sizeof(detail),
			 "{\"study\":\"" STUDY
			 "\",\"series\":\"%s\",\"frame\":\"%s\",\"acquired\":8000,\"expected\":0,\"identity\":\"%s\"}",
			 series, frame, identity);
		assert_int_equal(journal_classify(t->s.journal, id, CLASSIFIED_COMPANION, 0, detail, NOW, NULL), 0);
	}
}

static int count_events(void *ctx, const struct event_row *row)
{
	(void)row;
	++*(int *)ctx;
	return 0;
}

static int events_of(struct stage *t, int64_t job)
{
	int n = 0;

	assert_int_equal(journal_replay(t->s.journal, job, 0, count_events, &n, NULL), 0);
	return n;
}

/* As after a restart: everything is read from the journal again. */
static const struct job_view *again(struct stage *t, int64_t job, double now)
{
	jobs_clear(&t->s.jobs);
	companions_clear(&t->s.companions);
	return step(t, job, now);
}

TEST(waits_and_joins, .setup = setup_pet, .teardown = teardown_pet)
{
	struct stage *t = *state;
	int64_t job = add_pet(t, "BOTH", false);
	const struct job_view *v = step(t, job, NOW);
	int n = events_of(t, job);

	assert_int_equal(v->state, JOB_COLLECTING);
	assert_true(v->waits_until == NOW + WAIT);
	assert_string_equal(v->reason, "waits for the CT series for the attenuation correction");
	v = again(t, job, NOW + 100); /* a restart does not prolong it, and says nothing again */
	assert_true(v->waits_until == NOW + WAIT);
	assert_int_equal(events_of(t, job), n);
	assert_true(t->s.next <= NOW + WAIT);
	add_ct(t, "1.5", FRAME, 3);
	v = step(t, job, NOW + 50);
	assert_non_null(strstr(v->reason, "which is arriving"));
	assert_true(t->s.next <= NOW + QUIET);
	v = again(t, job, NOW + QUIET);
	assert_int_equal(v->state, JOB_READY);
	assert_int_equal(v->companions, 3);
	assert_string_equal(v->companion_text, "CT series 1.5 of 3 images, acquired 1000 s before the PET data");
	v = again(t, job, NOW + QUIET + 1);
	assert_int_equal(v->companions, 3);
}

TEST(held_then_goes_on, .setup = setup_pet, .teardown = teardown_pet)
{
	struct stage *t = *state;
	int64_t job = add_pet(t, "BOTH", false);
	const struct job_view *v;
	int n;

	step(t, job, NOW);
	v = step(t, job, NOW + WAIT);
	assert_int_equal(v->state, JOB_HELD);
	assert_true(v->lacks_companion);
	assert_non_null(strstr(v->reason, "within 600 s: send it"));
	n = events_of(t, job);
	again(t, job, NOW + WAIT + 1);
	assert_int_equal(events_of(t, job), n);
	add_ct(t, "1.4", "1.99", 1);
	v = step(t, job, NOW + WAIT + 2); /* another reason: said at once, without another wait */
	assert_int_equal(v->state, JOB_HELD);
	assert_non_null(strstr(v->reason, "CT series 1.4: it is of another frame of reference"));
	add_ct(t, "1.5", FRAME, 2);
	v = again(t, job, NOW + WAIT + 3);
	assert_int_equal(v->state, JOB_READY);
	assert_int_equal(v->companions, 2);
}

TEST(released, .setup = setup_pet, .teardown = teardown_pet)
{
	struct stage *t = *state;
	int64_t job = add_pet(t, "BOTH", false);
	const struct job_view *v;

	step(t, job, NOW);
	step(t, job, NOW + WAIT);
	append(t, job, EVENT_RETRY, "{\"as_is\":false}");
	v = step(t, job, NOW + WAIT + 1); /* a plain retry waits again */
	assert_int_equal(v->state, JOB_COLLECTING);
	assert_true(v->waits_until == NOW + 2 * WAIT + 1);
	v = step(t, job, NOW + 2 * WAIT + 1);
	assert_int_equal(v->state, JOB_HELD);
	append(t, job, EVENT_RETRY, "{\"as_is\":true}");
	v = step(t, job, NOW + 2 * WAIT + 2);
	assert_int_equal(v->state, JOB_READY);
	assert_int_equal(v->companions, 0);
	assert_string_equal(v->companion_text, "without a CT series, at a person's request");
}

/* A series that fits, but cannot be used: it is chosen again when it has more images, and left out at a person's
 * request. */
TEST(unusable, .setup = setup_pet, .teardown = teardown_pet)
{
	struct stage *t = *state;
	int64_t job = add_pet(t, "BOTH", false);
	const struct job_view *v;

	add_ct(t, "1.5", FRAME, 2);
	v = step(t, job, NOW + QUIET);
	assert_int_equal(v->companions, 2);
	append(t, job, EVENT_STARTED, "{}");
	append(t, job, EVENT_HELD, "{\"reason\":\"CT: a slice is missing\"}");
	assert_int_equal(again(t, job, NOW + QUIET)->state, JOB_HELD);
	add_ct(t, "1.5", FRAME, 1);
	v = again(t, job, NOW + QUIET); /* it goes on by itself */
	assert_int_equal(v->state, JOB_READY);
	assert_int_equal(v->companions, 3);
	append(t, job, EVENT_STARTED, "{}");
	append(t, job, EVENT_HELD, "{\"reason\":\"CT: a slice is missing\"}");
	assert_int_equal(again(t, job, NOW + QUIET)->state, JOB_HELD);
	append(t, job, EVENT_RETRY, "{\"as_is\":true}");
	v = again(t, job, NOW + QUIET);
	assert_int_equal(v->state, JOB_READY);
	assert_int_equal(v->companions, 0);
}

TEST(not_needed, .setup = setup_pet, .teardown = teardown_pet)
{
	struct stage *t = *state;
	int64_t plain = add_pet(t, "PLAIN", false), own = add_pet(t, "BOTH", true);

	add_ct(t, "1.5", FRAME, 1);
	assert_int_equal(step(t, plain, NOW)->state, JOB_READY);
	assert_int_equal(jobs_find(&t->s.jobs, own)->state, JOB_READY);
	assert_int_equal(jobs_find(&t->s.jobs, own)->companions, 0);
}

/* The other protocols get the images of the first, also when a nearer series has come; a result that a person requests is made
 * with the series that is the best then. */
TEST(further_results, .setup = setup_pet, .teardown = teardown_pet)
{
	struct stage *t = *state;
	int64_t job = add_pet(t, "BOTH", false), redo = 0;
	static const char *const none[1];
	const struct redo_request request = {"corrected", none, 0, "here", "me"};
	const struct job_view *v;

	add_ct(t, "1.5", FRAME, 2);
	v = step(t, job, NOW + QUIET);
	assert_int_equal(v->companions, 2);
	append(t, job, EVENT_STARTED, "{}");
	add_ct(t, "1.6", FRAME, 4);
	step(t, job, NOW + QUIET);
	v = step(t, job, NOW + QUIET + 1);
	assert_int_equal(t->s.jobs.n, 2);
	v = t->s.jobs.list[1];
	assert_int_equal(v->state, JOB_READY);
	assert_int_equal(v->companions, 2);
	assert_int_equal(redo_open(t->s.journal, &t->s.jobs, t->config, jobs_find(&t->s.jobs, job), &request, NOW, &redo, NULL),
			 0);
	v = step(t, redo, NOW + QUIET + 2);
	assert_int_equal(v->state, JOB_READY);
	assert_int_equal(v->companions, 4);
	assert_non_null(strstr(v->companion_text, "CT series 1.6 of 4 images"));
	assert_non_null(strstr(v->companion_text, "; the earlier result was made with other images"));
}

/* The same images are no other ones because the sentence about them is another one. */
TEST(same_images, .setup = setup_pet, .teardown = teardown_pet)
{
	struct stage *t = *state;
	int64_t job = add_pet(t, "BOTH", false), redo = 0;
	static const char *const none[1];
	const struct redo_request request = {"corrected", none, 0, "here", "me"};
	const struct job_view *v;

	add_ct(t, "1.5", FRAME, 2);
	step(t, job, NOW + QUIET);
	append(t, job, EVENT_STARTED, "{}");
	add_ct(t, "1.6", FRAME, 1); /* as near, with fewer images */
	step(t, job, NOW + QUIET);
	assert_int_equal(redo_open(t->s.journal, &t->s.jobs, t->config, jobs_find(&t->s.jobs, job), &request, NOW, &redo, NULL),
			 0);
	v = step(t, redo, NOW + QUIET + 2);
	assert_int_equal(v->state, JOB_READY);
	assert_non_null(strstr(v->companion_text, "CT series 1.5 of 2 images"));
	assert_non_null(strstr(v->companion_text, "of 2 that fit"));
	assert_null(strstr(v->companion_text, "other images"));
}

/* Objects that wait for the indexer: those of the senders of the study delay the choice if they came before it; those of others,
 * and later ones, do not. */
TEST(waits_for_indexer, .setup = setup_pet, .teardown = teardown_pet)
{
	struct stage *t = *state;
	int64_t job = add_pet(t, "BOTH", false), one;

	add_ct(t, "1.5", FRAME, 2);
	add_unindexed(t, "OTHER", NOW);
	one = add_unindexed(t, "CT", NOW + QUIET);
	add_unindexed(t, "CT", NOW + QUIET + 1);
	assert_int_equal(step(t, job, NOW + QUIET + 2)->state, JOB_COLLECTING);
	assert_true(t->s.next <= NOW + QUIET + 3);
	ignore(t, one);
	assert_int_equal(step(t, job, NOW + QUIET + 3)->state, JOB_READY);
}

/* An indexer that does not get on delays the choice for the longest wait. */
TEST(indexer_stands_still, .setup = setup_pet, .teardown = teardown_pet)
{
	struct stage *t = *state;
	int64_t job = add_pet(t, "BOTH", false);

	add_ct(t, "1.5", FRAME, 2);
	add_unindexed(t, "BOTH", NOW);
	assert_int_equal(step(t, job, NOW + QUIET)->state, JOB_COLLECTING);
	assert_int_equal(step(t, job, NOW + QUIET + WAIT - 1)->state, JOB_COLLECTING);
	assert_int_equal(step(t, job, NOW + QUIET + WAIT)->state, JOB_READY);
}

/* The same at the end of the wait without a series. */
TEST(lacks_beside_traffic, .setup = setup_pet, .teardown = teardown_pet)
{
	struct stage *t = *state;
	int64_t job = add_pet(t, "BOTH", false), one;

	step(t, job, NOW);
	for (int i = 0; i < 100; i++)
		add_unindexed(t, "OTHER", NOW + 1 + i);
	one = add_unindexed(t, "BOTH", NOW + WAIT);
	add_unindexed(t, "BOTH", NOW + WAIT + 1);
	assert_int_equal(step(t, job, NOW + WAIT + 2)->state, JOB_COLLECTING);
	ignore(t, one);
	assert_int_equal(step(t, job, NOW + WAIT + 3)->state, JOB_HELD);
	append(t, job, EVENT_RETRY, "{\"as_is\":true}"); /* at NOW */
	assert_int_equal(step(t, job, NOW + WAIT + 4)->state, JOB_READY);
}

/* Images that retention has removed since they were read are not joined: they are looked for again. */
TEST(removed_meanwhile, .setup = setup_pet, .teardown = teardown_pet)
{
	struct stage *t = *state;
	int64_t job = add_pet(t, "BOTH", false);
	const struct job_view *v;

	add_ct(t, "1.5", FRAME, 1);
	step(t, job, NOW + 1);
	for (int64_t id = 1; id <= 2; id++)
		assert_int_equal(journal_remove_instance(t->s.journal, id, NOW, NULL), 0);
	v = step(t, job, NOW + QUIET);
	v = step(t, job, NOW + QUIET + 1);
	assert_int_equal(v->state, JOB_COLLECTING);
	assert_string_equal(v->reason, "waits for the CT series for the attenuation correction");
}
