/* SPDX-License-Identifier: Apache-2.0 */
/* Every state against every event: the table is written out here a second time, as sentences, and whatever is not in it must be
 * impossible. */
#include "node/store/job.h"
#include "tests/test.h"

#define N_STATES (JOB_IMPOSSIBLE + 1)
#define N_EVENTS (EVENT_CLEANED + 1)

/* "state event -> state" */
static const char *const life[][3] = {
	{"none", "opened", "collecting"},

	{"collecting", "instance", "collecting"},
	{"collecting", "held", "held"},
	{"collecting", "complete", "ready"},
	{"collecting", "waits", "collecting"},
	{"collecting", "cancel", "cancelled"},

	{"held", "instance", "collecting"},
	{"held", "retry", "collecting"},
	{"held", "cancel", "cancelled"},

	{"ready", "instance", "collecting"},
	{"ready", "started", "running"},
	{"ready", "companion", "ready"},
	{"ready", "held", "held"},
	{"ready", "failed", "failed"},
	{"ready", "retry", "ready"},
	{"ready", "cancel", "cancelled"},

	{"running", "held", "held"},
	{"running", "interrupted", "ready"},
	{"running", "crashed", "ready"},
	{"running", "reconstructed", "reconstructed"},
	{"running", "failed", "failed"},
	{"running", "cancel", "cancelled"},

	{"reconstructed", "crashed", "ready"},
	{"reconstructed", "result-lost", "ready"},
	{"reconstructed", "send-failed", "reconstructed"},
	{"reconstructed", "sent", "reconstructed"},
	{"reconstructed", "send-refused", "reconstructed"},
	{"reconstructed", "delivered", "delivered"},
	{"reconstructed", "dead-letter", "dead-letter"},
	{"reconstructed", "retry", "reconstructed"},
	{"reconstructed", "cancel", "cancelled"},
	{"reconstructed", "fallback", "reconstructed"},
	{"reconstructed", "stored", "stored"},
	{"reconstructed", "commit-requested", "reconstructed"},
	{"reconstructed", "commit-accepted", "reconstructed"},
	{"reconstructed", "commit-request-failed", "reconstructed"},
	{"reconstructed", "committed", "reconstructed"},
	{"reconstructed", "commit-failed", "reconstructed"},
	{"reconstructed", "commit-refused", "reconstructed"},

	{"stored", "fallback", "reconstructed"},
	{"stored", "commit-requested", "stored"},
	{"stored", "commit-accepted", "stored"},
	{"stored", "commit-request-failed", "stored"},
	{"stored", "committed", "stored"},
	{"stored", "commit-failed", "reconstructed"},
	{"stored", "commit-refused", "stored"},
	{"stored", "delivered", "delivered"},
	{"stored", "dead-letter", "dead-letter"},
	{"stored", "retry", "reconstructed"},
	{"stored", "cancel", "cancelled"},

	{"delivered", "cleaned", "cleaned"},

	{"dead-letter", "retry", "reconstructed"},
	{"dead-letter", "cancel", "cancelled"},
	{"dead-letter", "committed", "reconstructed"},

	{"failed", "retry", "collecting"},
	{"failed", "cancel", "cancelled"},

	{"cancelled", "instance", "cancelled"},
	{"cancelled", "send-failed", "cancelled"},
	{"cancelled", "sent", "cancelled"},
	{"cancelled", "send-refused", "cancelled"},
	{"cancelled", "retry", "collecting"},
	{"cancelled", "cleaned", "cleaned"},
	{"cancelled", "commit-requested", "cancelled"},
	{"cancelled", "commit-accepted", "cancelled"},
	{"cancelled", "commit-request-failed", "cancelled"},
	{"cancelled", "committed", "cancelled"},
	{"cancelled", "commit-failed", "cancelled"},
	{"cancelled", "commit-refused", "cancelled"},

	{"collecting", "priority", "collecting"},
	{"held", "priority", "held"},
	{"ready", "priority", "ready"},
	{"running", "priority", "running"},
	{"reconstructed", "priority", "reconstructed"},
	{"stored", "priority", "stored"},
	{"dead-letter", "priority", "dead-letter"},
	{"failed", "priority", "failed"},
	{"cancelled", "priority", "cancelled"},
};

static const char *expected(const char *state, const char *event)
{
	for (size_t i = 0; i < sizeof(life) / sizeof(life[0]); i++)
		if (!strcmp(life[i][0], state) && !strcmp(life[i][1], event))
			return life[i][2];
	return "quarantined";
}

TEST(every_state_and_event)
{
	size_t possible = 0;

	for (int s = 0; s < N_STATES; s++)
		for (int e = 0; e < N_EVENTS; e++) {
			enum job_state next = job_next((enum job_state)s, (enum job_event)e);

			assert_string_equal(job_state_name(next),
					    expected(job_state_name((enum job_state)s), job_event_name((enum job_event)e)));
			possible += next != JOB_IMPOSSIBLE;
		}
	assert_int_equal(possible, sizeof(life) / sizeof(life[0]));
}

TEST(values_out_of_range)
{
	assert_int_equal(job_next((enum job_state)99, EVENT_OPENED), JOB_IMPOSSIBLE);
	assert_int_equal(job_next((enum job_state) - 1, EVENT_OPENED), JOB_IMPOSSIBLE);
	assert_int_equal(job_next(JOB_NONE, (enum job_event)99), JOB_IMPOSSIBLE);
	assert_int_equal(job_next(JOB_NONE, (enum job_event) - 1), JOB_IMPOSSIBLE);
	assert_string_equal(job_state_name((enum job_state)99), "unknown");
	assert_string_equal(job_event_name((enum job_event) - 1), "unknown");
}

/* Nothing that was acknowledged or sent may be forgotten: only a delivered job can be cleaned, and one that a person gave up. */
TEST(only_what_is_done_is_cleaned)
{
	for (int s = 0; s < N_STATES; s++)
		assert_int_equal(job_next((enum job_state)s, EVENT_CLEANED) == JOB_CLEANED,
				 s == JOB_DELIVERED || s == JOB_CANCELLED);
}

/* What a peer has only stored is not what it answers for: while commitments are awaited nothing may be cleaned, whatever
 * happens on the way, in any order. Every walk of five events from `stored`. */
TEST(stored_is_not_delivered)
{
	size_t walks = 1;

	for (int i = 0; i < 5; i++)
		walks *= N_EVENTS;
	for (size_t w = 0; w < walks; w++) {
		enum job_state at = JOB_STORED;
		bool delivered = false, given_up = false;
		size_t rest = w;

		for (int i = 0; i < 5 && at != JOB_IMPOSSIBLE; i++, rest /= N_EVENTS) {
			delivered = delivered || rest % N_EVENTS == EVENT_DELIVERED;
			given_up = given_up || rest % N_EVENTS == EVENT_CANCEL;
			at = job_next(at, (enum job_event)(rest % N_EVENTS));
			if ((at == JOB_DELIVERED || (at == JOB_CLEANED && !given_up)) && !delivered)
				fail_msg("walk %zu ends in %s without `delivered`", w, job_state_name(at));
		}
	}
}

/* Reports come when they come: whatever a peer or a timeout says about a commitment never spoils a job that waits for one. */
TEST(commitments_in_any_order)
{
	static const enum job_event said[] = {EVENT_COMMIT_REQUESTED, EVENT_COMMIT_ACCEPTED, EVENT_COMMIT_REQUEST_FAILED,
					      EVENT_COMMITTED,	      EVENT_COMMIT_FAILED,   EVENT_COMMIT_REFUSED};
	static const enum job_state from[] = {JOB_RECONSTRUCTED, JOB_STORED, JOB_CANCELLED};
	const size_t n = sizeof(said) / sizeof(said[0]);

	for (size_t f = 0; f < 3; f++)
		for (size_t w = 0; w < n * n * n * n; w++) {
			enum job_state at = from[f];

			for (size_t i = 0, rest = w; i < 4; i++, rest /= n)
				at = job_next(at, said[rest % n]);
			assert_true(from[f] == JOB_CANCELLED ? at == JOB_CANCELLED : at == JOB_RECONSTRUCTED || at == from[f]);
		}
}

/* A person can always get a job out of a state where nothing happens by itself. */
TEST(waiting_states_have_a_retry)
{
	static const enum job_state waiting[] = {JOB_HELD, JOB_FAILED, JOB_CANCELLED, JOB_DEAD_LETTER, JOB_STORED};

	for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++)
		assert_int_not_equal(job_next(waiting[i], EVENT_RETRY), JOB_IMPOSSIBLE);
}

TEST(names)
{
	enum job_event event;

	for (int e = 0; e < N_EVENTS; e++) {
		assert_int_equal(job_event_parse(job_event_name((enum job_event)e), &event), 0);
		assert_int_equal(event, e);
	}
	event = EVENT_CANCEL;
	assert_int_equal(job_event_parse("exploded", &event), -1);
	assert_int_equal(job_event_parse("", &event), -1);
	assert_int_equal(job_event_parse(NULL, &event), -1);
	assert_int_equal(event, EVENT_CANCEL);
}
