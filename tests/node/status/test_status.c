/* SPDX-License-Identifier: Apache-2.0 */
/* The status page's parts that need no process: what a browser may ask for, what is escaped, words. */
#include "node/jobs/job_hint.h"
#include "node/jobs/job_report.h"
#include "node/status/status_request.h"
#include "node/status/status_text.h"
#include "tests/test.h"

TEST(test_paths)
{
	static const struct {
		const char *path;
		enum status_page page;
		int64_t job, number;
	} cases[] = {
		{"/", STATUS_OVERVIEW, 0},
		{"/status.json", STATUS_JSON, 0},
		{"/jobs/1", STATUS_CASE, 1},
		{"/jobs/907/thumbnail.png", STATUS_THUMBNAIL, 907},
		{"/jobs/907/report", STATUS_REPORT, 907},
		{"/jobs/12/retry", STATUS_RETRY, 12},
		{"/jobs/12/as-is", STATUS_AS_IS, 12},
		{"/jobs/12/same-patient", STATUS_SAME, 12},
		{"/jobs/12/newer", STATUS_NEWER, 12},
		{"/jobs/12/sweep", STATUS_SWEEP, 12},
		{"/jobs/12/redo", STATUS_REDO, 12},
		{"/jobs/12/slices.png", STATUS_STRIP, 12},
		{"/jobs/12/slices/1", STATUS_SLICE, 12, 1},
		{"/jobs/12/slices/999999999999999999", STATUS_SLICE, 12, 999999999999999999},
		{"/jobs/12/slices/9999999999999999999", STATUS_NONE, 0},
		{"/jobs/12/slices/0", STATUS_NONE, 0},
		{"/jobs/12/slices/-1", STATUS_NONE, 0},
		{"/jobs/12/slices/", STATUS_NONE, 0},
		{"/jobs/12/slices/1/", STATUS_NONE, 0},
		{"/jobs/12/slices/1x", STATUS_NONE, 0},
		{"/jobs/012/slices/1", STATUS_NONE, 0},
		{"/jobs/12/look", STATUS_LOOK, 12},
		{"/jobs/12/look/", STATUS_NONE, 0},
		{"/jobs/12/look/7", STATUS_COMPARE, 12, 7},
		{"/jobs/12/look/../7", STATUS_NONE, 0},
		{"/jobs/999999999999999999/cancel", STATUS_CANCEL, 999999999999999999},
		{"/jobs/9999999999999999999", STATUS_NONE, 0},
		{"/jobs/012", STATUS_NONE, 0},
		{"/jobs/0", STATUS_NONE, 0},
		{"/jobs/", STATUS_NONE, 0},
		{"/jobs/-1", STATUS_NONE, 0},
		{"/jobs/1/", STATUS_NONE, 0},
		{"/jobs/1/retry/", STATUS_NONE, 0},
		{"", STATUS_NONE, 0},
		{"//", STATUS_NONE, 0},
		{"/status.json?x", STATUS_NONE, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t numbers[2] = {-1, -1};

		assert_int_equal(status_request_page(cases[i].path, numbers), cases[i].page);
		assert_int_equal(numbers[0], cases[i].job);
		assert_int_equal(numbers[1], cases[i].number);
	}
	assert_true(status_page_changes_job(STATUS_CANCEL) && status_page_changes_job(STATUS_RETRY) &&
		    status_page_changes_job(STATUS_REDO) && status_page_changes_job(STATUS_AS_IS) &&
		    status_page_changes_job(STATUS_SAME));
	assert_false(status_page_changes_job(STATUS_CASE) || status_page_changes_job(STATUS_NONE));
}

TEST(test_hosts)
{
	static const char *const good[] = {"localhost", "LocalHost:1",	"127.0.0.1", "10.0.0.9:65535",
					   "[::1]",	"[fe80::1]:80", "pc7",	     "PC7:443"};
	static const char *const bad[] = {"",
					  "evil.example",
					  "localhost.evil.example",
					  "127.0.0.1.nip.io",
					  "1.2.3",
					  "[::1",
					  "[]",
					  "[127.0.0.1]",
					  "::1",
					  "localhost:",
					  "localhost:x",
					  "localhost:123456",
					  "pc7@evil.example",
					  "pc7 ",
					  ":80",
					  "pc70",
					  "[::1]x"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(status_request_host_allowed(good[i], "pc7"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(status_request_host_allowed(bad[i], "pc7"));
	assert_false(status_request_host_allowed(NULL, "pc7"));
	assert_false(status_request_host_allowed("pc7", "")); /* none is configured */
	assert_false(status_request_host_allowed("", ""));
}

TEST(test_origins_and_tokens)
{
	static const char token[STATUS_TOKEN_SIZE] = "0123456789abcdef0123456789abcdef";
	char form[64];

	assert_true(status_request_origin_allowed(NULL, "h:1"));
	assert_true(status_request_origin_allowed("http://h:1", "h:1"));
	assert_true(status_request_origin_allowed("https://H:1", "h:1"));
	assert_false(status_request_origin_allowed("null", "h:1"));
	assert_false(status_request_origin_allowed("http://h", "h:1"));
	assert_false(status_request_origin_allowed("http://h:12", "h:1"));
	assert_false(status_request_origin_allowed("file://h:1", "h:1"));
	assert_false(status_request_origin_allowed("http://h:1", NULL));

	snprintf(form, sizeof(form), "token=%s", token);
	assert_true(status_request_token_valid(form, strlen(form), token));
	assert_false(status_request_token_valid(form, strlen(form) - 1, token));
	assert_false(status_request_token_valid(form, strlen(form) + 1, token));
	form[37] ^= 1;
	assert_false(status_request_token_valid(form, strlen(form), token));
	form[37] ^= 1;
	form[0] = 'T';
	assert_false(status_request_token_valid(form, strlen(form), token));
	assert_false(status_request_token_valid("", 0, token));
}

/* The form of a redo: token, then a protocol, percent-encoded, and nothing else. */
TEST(test_redo_forms)
{
	static const char token[STATUS_TOKEN_SIZE] = "0123456789abcdef0123456789abcdef";
	static const struct {
		const char *rest, *protocol; /* NULL: refused */
	} cases[] = {
		{"&protocol=dbt-fbp", "dbt-fbp"},
		{"&protocol=a+b%2Bc%C3%B6", "a b+c\xc3\xb6"},
		{"&protocol=", NULL},
		{"", NULL},
		{"&protocol", NULL},
		{"&Protocol=a", NULL},
		{"&protocol=a&protocol=b", NULL},
		{"&protocol=a=b", NULL},
		{"&protocol=%", NULL},
		{"&protocol=%4", NULL},
		{"&protocol=%zz", NULL},
		{"&protocol=a%00", NULL},
		{"&protocol=a%0a", NULL},
		{"&protocol=a\n", NULL},
		{"&x=1&protocol=a", NULL},
		{"&protocol=aaaaaaaaaaaaaaaaaaaa", NULL},
	};
	char form[200], protocol[16];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = (size_t)snprintf(form, sizeof(form), "token=%s%s", token, cases[i].rest);

		assert_true(status_request_choice_valid(form, n, token, "protocol", protocol, sizeof(protocol)) ==
			    (cases[i].protocol != NULL));
		if (!cases[i].protocol)
			continue;
		assert_string_equal(protocol, cases[i].protocol);
		assert_false(status_request_token_valid(form, n, token)); /* no other action takes it */
		form[10] ^= 1;
		assert_false(status_request_choice_valid(form, n, token, "protocol", protocol, sizeof(protocol)));
	}
}

/* What a badge says is what was answered: success, stored, committed. */
TEST(test_what_a_destination_has)
{
	struct destination_conf confs[] = {{.name = "web", .kind = DESTINATION_STOW},
					   {.name = "share", .kind = DESTINATION_FOLDER}};
	const struct config config = {.destinations = confs, .n_destinations = 2};
	static const struct {
		const char *destination, *word, *sentence;
		bool committed;
		enum send_state state;
		int commit_tries;
		enum status_tone tone;
	} cases[] = {
		{"pacs", "Sent", "whether it keeps them was not asked", false, SEND_DONE, 0, TONE_GOOD},
		{"pacs", "Awaiting commitment", "has not confirmed yet that it keeps them.", false, SEND_STORED, 0, TONE_WORK},
		{"pacs", "Commitment late", "has not confirmed yet that it keeps them.", false, SEND_STORED, 1, TONE_WARN},
		{"pacs", "Not committed", "has not confirmed yet that it keeps them.", false, SEND_REFUSED, 2, TONE_BAD},
		{"pacs", "Committed", "that it keeps the objects (storage commitment).", true, SEND_DONE, 0, TONE_GOOD},
		{"web", "Stored", "that it has stored each object.", false, SEND_DONE, 0, TONE_GOOD},
		{"share", "Stored", "files on its disk", false, SEND_DONE, 0, TONE_GOOD},
	};
	struct status_send send;
	const char *word;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct send_refusal unanswered = {.unanswered = true};
		struct job_send one = {.state = cases[i].state,
				       .committed = cases[i].committed,
				       .commit_tries = cases[i].commit_tries,
				       .refusal = cases[i].state == SEND_REFUSED ? &unanswered : NULL};
		struct job_view v = {.state = JOB_STORED, .sends = &one, .n_sends = 1, .kind = "dbt", .key = ""};
		char text[600];

		snprintf(one.destination, sizeof(one.destination), "%s", cases[i].destination);
		status_text_send(&config, &one, 1e9, LANGUAGE_EN, &send);
		assert_string_equal(send.word, cases[i].word);
		assert_int_equal(send.tone, cases[i].tone);
		assert_non_null(strstr(send.sentence, cases[i].sentence));
		status_text_sentence(&config, &v, 0, 1e9, LANGUAGE_EN, text, sizeof(text));
		assert_string_equal(text, send.sentence);
		if (one.state == SEND_STORED) { /* the case says the same */
			assert_int_equal(status_text_state(&v, &word), cases[i].tone);
			assert_string_equal(word, cases[i].word);
		}
	}
}

TEST(test_words)
{
	const struct config config = {.n_destinations = 0};
	struct job_send send = {.destination = "pacs", .state = SEND_DUE, .failures = 3, .next = 2e9, .reason = "no answer"};
	struct job_view v = {.id = 7, .kind = "dbt", .key = "1.2|1.3|R|MLO|1.4", .revision = 1, .sends = &send, .n_sends = 1};
	const char *word;
	char text[600];

	status_text_title(&v, LANGUAGE_EN, text, sizeof(text));
	assert_string_equal(text, "Tomosynthesis, right MLO");
	v.key = "";
	v.revision = 2;
	status_text_title(&v, LANGUAGE_EN, text, sizeof(text));
	assert_string_equal(text, "Tomosynthesis (revision 2)");

	v.state = JOB_HELD;
	v.members = (struct assemble){.instances = 12, .expected = 25, .frames = 12};
	snprintf(v.reason, sizeof(v.reason), "12 of 25 instances after 60 s of quiet");
	status_text_sentence(&config, &v, 0, 1e9, LANGUAGE_EN, text, sizeof(text));
	assert_string_equal(text, "Only 12 of 25 images were received.");
	assert_string_equal(job_hint_as_is(&v), "Reconstruct the received images");
	assert_null(job_hint_retry(&v));
	/* Of what a part says nothing, or of too few projections: no button, and a sentence that says so. */
	v.kind[0] = 'x';
	assert_null(job_hint_as_is(&v));
	assert_non_null(strstr(job_view_as_is_obstacle(&v), "cannot reconstruct"));
	assert_non_null(strstr(job_hint(&v, 0), "It needs all of them"));
	v.kind[0] = 'd';
	v.members.frames = 1;
	assert_null(job_hint_as_is(&v));
	assert_non_null(strstr(job_view_as_is_obstacle(&v), "at least 2 projections"));
	v.members.frames = 12;
	assert_null(job_view_as_is_obstacle(&v));
	v.members.as_is = true;
	assert_null(job_hint_as_is(&v));
	v.members.expected = 12;
	status_text_sentence(&config, &v, 0, 1e9, LANGUAGE_EN, text, sizeof(text));
	assert_string_equal(text, "12 of 25 instances after 60 s of quiet.");
	assert_string_equal(job_hint_retry(&v), "Try again");

	assert_non_null(strstr(job_hint(&v, 0), "Tell your administrator")); /* who reads the page mends no configuration */
	v.state = JOB_RECONSTRUCTED;
	send.since = 9e8;
	assert_int_equal(status_text_state(&v, &word), TONE_WARN);
	assert_string_equal(word, "Not sent yet");
	assert_non_null(strstr(job_hint(&v, 0), "Nothing is lost"));
	status_text_sentence(&config, &v, 0, 1e9, LANGUAGE_EN, text, sizeof(text));
	assert_non_null(strstr(text, "Sending to pacs failed in 3 attempts: no answer. The next attempt is at "));
	assert_string_equal(job_hint_retry(&v), "Try now");
	send.failures = 0;
	send.since = 0;
	assert_int_equal(status_text_state(&v, &word), TONE_WORK);
	assert_string_equal(word, "Sending");
	assert_string_equal(job_hint(&v, 0), "");
	status_text_sentence(&config, &v, 0, 1e9, LANGUAGE_EN, text, sizeof(text));
	assert_string_equal(text, "It is being sent to pacs.");
	assert_null(job_hint_retry(&v));
	v.state = JOB_READY;
	v.reason[0] = '\0';
	status_text_sentence(&config, &v, 2, 1e9, LANGUAGE_EN, text, sizeof(text));
	assert_string_equal(text, "Complete. It waits for a free device; 2 cases are before it.");
	/* Every state has a word, and no button that its table does not allow. */
	for (int s = JOB_COLLECTING; s <= JOB_IMPOSSIBLE; s++) {
		v.state = (enum job_state)s;
		status_text_state(&v, &word);
		assert_true(word[0]);
		assert_true(!job_hint_cancel(&v) == (job_next(v.state, EVENT_CANCEL) == JOB_IMPOSSIBLE));
		if (job_hint_retry(&v))
			assert_int_not_equal(job_next(v.state, EVENT_RETRY), JOB_IMPOSSIBLE);
	}
}

/* Whatever a worker leaves where its progress belongs is read at once, or not at all. */
TEST(test_progress_files)
{
	char dir[64], work[80], folder[100], path[120];
	json_t *progress;
	FILE *f;

	test_folder(dir, sizeof(dir));
	snprintf(work, sizeof(work), "%s/work", dir);
	snprintf(folder, sizeof(folder), "%s/7", work);
	snprintf(path, sizeof(path), "%s/status", folder);
	assert_true(mkdir(work, 0700) == 0 && mkdir(folder, 0700) == 0);
	assert_null(job_report_progress(dir, 7));
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(job_report_progress(dir, 7));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_null(job_report_progress(dir, 7));
	assert_int_equal(unlink(path), 0);
	f = fopen(path, "we");
	assert_non_null(f);
	fprintf(f, "{\"stage\":\"read\",\"fraction\":0.25,\"left\":90}\n");
	assert_int_equal(fclose(f), 0);
	progress = job_report_progress(dir, 7);
	assert_string_equal(json_string_value(json_object_get(progress, "stage")), "read");
	json_decref(progress);
	assert_int_equal(truncate(path, 1 << 20), 0);
	assert_null(job_report_progress(dir, 7));
}

static void unassigned(json_t *list, int instance, const char *classification, const char *association, double received,
		       const char *reason)
{
	json_array_append_new(list, json_pack("{s:i, s:s, s:s, s:s, s:f, s:s}", "instance", instance, "classification",
					      classification, "calling", "MODALITY", "association", association, "received",
					      received, "reason", reason));
}

static long long group(const json_t *groups, size_t i, const char *key)
{
	return (long long)json_number_value(json_object_get(json_array_get(groups, i), key));
}

/* An exam that is sent again is one line, whether it comes over one association or over one for each image. */
TEST(test_set_apart_groups)
{
	json_t *list = json_array(), *groups;
	char reason[100];

	for (int i = 0; i < 25; i++)
		unassigned(list, 100 - i, "ignored", "a", 5000 - 100 * i, "the same object, sent again");
	for (int i = 0; i < 3; i++)
		unassigned(list, 70 - i, "ignored", i ? "c" : "b", 1000 - 30 * i, "the same object, sent again");
	for (int i = 0; i < 4; i++) {
		snprintf(reason, sizeof(reason), "another content under the UID of instance %d (in/%d.dcm), which counts", 9 + i,
			 i);
		unassigned(list, 60 - i, "conflict", "d", 900, reason);
	}
	unassigned(list, 50, "conflict", "d", 900, "another content under no UID of instance 9 (in/9.dcm), which counts");
	groups = job_report_unassigned_groups(list);
	assert_int_equal(json_array_size(groups), 4);
	assert_int_equal(group(groups, 0, "count"), 25);
	assert_int_equal(group(groups, 0, "instance"), 100);
	assert_int_equal(group(groups, 0, "received"), 5000);
	assert_int_equal(group(groups, 0, "first_received"), 2600);
	assert_int_equal(group(groups, 1, "count"), 3);
	assert_int_equal(group(groups, 2, "count"), 4);
	assert_int_equal(group(groups, 3, "count"), 1);
	assert_non_null(strstr(job_report_unassigned_hint(json_array_get(groups, 0)), "Nothing has to be done"));
	assert_non_null(strstr(job_report_unassigned_hint(json_array_get(groups, 2)), "the node uses the first"));
	json_decref(groups);
	json_decref(list);
}
