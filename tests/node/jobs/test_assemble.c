/* SPDX-License-Identifier: Apache-2.0 */
/* When is a case complete? By what there is, in whatever order it came; never by silence alone. */
#include "node/jobs/assemble.h"
#include "tests/test.h"

#define QUIET 60.0

static struct assemble_decision decide(const struct assemble *a, double now)
{
	struct assemble_decision answer;

	assemble_decide(a, now, QUIET, &answer);
	return answer;
}

static struct assemble with(long n, long expected)
{
	struct assemble a = {0};

	for (long i = 0; i < n; i++)
		assemble_add(&a, expected, 1, 100.0 + (double)i);
	return a;
}

TEST(complete_by_content)
{
	struct assemble a = {.last = 100};

	for (long i = 0; i < 25; i++) {
		assert_int_equal(decide(&a, 100).verdict, ASSEMBLE_WAIT);
		assemble_add(&a, 25, 1, 100);
	}
	assert_int_equal(decide(&a, 100).verdict, ASSEMBLE_COMPLETE); /* at once, without quiet time */
	assert_non_null(strstr(decide(&a, 100).reason, "25 of 25"));
	a = with(1, 1); /* one multi-frame instance */
	assert_int_equal(decide(&a, 100).verdict, ASSEMBLE_COMPLETE);
}

/* A header that says what the case lacks: named as long as it is the only instance. */
TEST(lacking)
{
	struct assemble a = with(1, 2);

	assemble_lacks(&a, "the normalisation");
	assert_string_equal(decide(&a, 200).reason, "1 of 2 instances after 60 s of quiet: the normalisation is missing");
	assemble_lacks(&a, "");
	assert_string_equal(decide(&a, 200).reason, "1 of 2 instances after 60 s of quiet");
	a = with(2, 3);
	assemble_lacks(&a, "the normalisation");
	assert_string_equal(decide(&a, 200).reason, "2 of 3 instances after 60 s of quiet");
}

/* Parallel associations: the order of arrival, also of times that run backwards, changes nothing. */
TEST(any_order)
{
	static const double times[] = {105, 101, 109, 100, 107};
	struct assemble a = {0};

	for (size_t i = 0; i < 5; i++)
		assemble_add(&a, 5, 1, times[i]);
	assert_true(a.first == 100 && a.last == 109);
	assert_int_equal(a.instances, 5);
	assert_int_equal(a.frames, 5);
	assert_int_equal(decide(&a, 101).verdict, ASSEMBLE_COMPLETE);
}

TEST(incomplete_is_held_after_quiet)
{
	struct assemble a = with(12, 25); /* the last at 111 */
	struct assemble_decision w;

	w = decide(&a, 111);
	assert_int_equal(w.verdict, ASSEMBLE_WAIT);
	assert_true(w.again == 111 + QUIET);
	assert_int_equal(decide(&a, 111 + QUIET - 0.001).verdict, ASSEMBLE_WAIT);
	w = decide(&a, 111 + QUIET);
	assert_int_equal(w.verdict, ASSEMBLE_HOLD);
	assert_non_null(strstr(w.reason, "12 of 25 instances"));
	assert_non_null(strstr(w.reason, "60 s"));
	/* The missing ones come: complete. */
	for (int i = 0; i < 13; i++)
		assemble_add(&a, 25, 1, 500);
	assert_int_equal(decide(&a, 500).verdict, ASSEMBLE_COMPLETE);
}

TEST(another_instance_starts_the_quiet_anew)
{
	struct assemble a = with(12, 25);

	assemble_add(&a, 25, 1, 150);
	assert_int_equal(decide(&a, 111 + QUIET).verdict, ASSEMBLE_WAIT);
	assert_int_equal(decide(&a, 150 + QUIET).verdict, ASSEMBLE_HOLD);
}

TEST(too_many_are_held)
{
	struct assemble a = with(26, 25);

	assert_int_equal(decide(&a, a.last).verdict, ASSEMBLE_WAIT);
	assert_int_equal(decide(&a, a.last + QUIET).verdict, ASSEMBLE_HOLD);
	assert_non_null(
		strstr(decide(&a, a.last + QUIET).reason, "26 instances, but the headers expect 25: more than one acquisition"));
}

TEST(silence_is_not_completeness)
{
	struct assemble a = with(25, 0);

	assert_int_equal(decide(&a, a.last + QUIET).verdict, ASSEMBLE_HOLD);
	assert_non_null(strstr(decide(&a, a.last + QUIET).reason, "no header gives"));
	/* One header that says it is enough. */
	a = with(24, 0);
	assemble_add(&a, 25, 1, 200);
	assert_int_equal(decide(&a, 200).verdict, ASSEMBLE_COMPLETE);
}

/* Headers that lie: the number of the system decides, after the quiet time. */
TEST(number_of_the_system)
{
	struct assemble a = with(25, 26);
	struct assemble_decision w;

	a.usual = 25;
	assert_int_equal(decide(&a, a.last).verdict, ASSEMBLE_WAIT); /* the 26th may come */
	w = decide(&a, a.last + QUIET);
	assert_int_equal(w.verdict, ASSEMBLE_COMPLETE);
	assert_true(w.after_quiet);
	assert_string_equal(w.reason, "25 instances after 60 s of quiet, as exams of this system have; the headers announce 26");
	assemble_add(&a, 26, 1, a.last);
	assert_int_equal(decide(&a, a.last).verdict, ASSEMBLE_COMPLETE);
	assert_false(decide(&a, a.last).after_quiet);
	a = with(25, 15);
	a.usual = 25;
	assert_int_equal(decide(&a, a.last).verdict, ASSEMBLE_WAIT);
	assert_int_equal(decide(&a, a.last + QUIET).verdict, ASSEMBLE_COMPLETE);
	a = with(25, 0);
	a.usual = 25;
	assert_int_equal(decide(&a, a.last).verdict, ASSEMBLE_WAIT);
	assert_int_equal(decide(&a, a.last + QUIET).verdict, ASSEMBLE_COMPLETE);
	/* neither number */
	for (long n = 1; n < 25; n++) {
		a = with(n, 26);
		a.usual = 25;
		assert_int_equal(decide(&a, a.last + QUIET).verdict, ASSEMBLE_HOLD);
	}
}

TEST(contradictions_are_held)
{
	struct assemble a = with(9, 9);

	a.instances--; /* as if the ninth had said 25 */
	assemble_add(&a, 25, 1, 200);
	assert_int_equal(decide(&a, 200).verdict, ASSEMBLE_WAIT);
	assert_int_equal(decide(&a, 200 + QUIET).verdict, ASSEMBLE_HOLD);
	assert_non_null(strstr(decide(&a, 200 + QUIET).reason, "9 and 25"));
}

TEST(a_person_may_take_it_as_it_is)
{
	struct assemble a = with(12, 25);

	a.as_is = true;
	assert_int_equal(decide(&a, 111).verdict, ASSEMBLE_COMPLETE);
	assert_non_null(strstr(decide(&a, 111).reason, "at a person's request"));
	assemble_add(&a, 25, 1, 200); /* what the person saw is not what there is now */
	assert_int_equal(decide(&a, 200).verdict, ASSEMBLE_WAIT);
	memset(&a, 0, sizeof(a));
	a.as_is = true;
	assert_int_equal(decide(&a, QUIET).verdict, ASSEMBLE_HOLD); /* nothing is not a case */
}

TEST(an_opened_case_without_instances)
{
	struct assemble a = {.last = 100};

	assert_int_equal(decide(&a, 100).verdict, ASSEMBLE_WAIT);
	assert_int_equal(decide(&a, 100 + QUIET).verdict, ASSEMBLE_HOLD);
}

/* A clock that was set back by an hour must not make a case wait an hour. */
TEST(clock_set_back)
{
	struct assemble a = with(12, 25);

	assert_int_equal(decide(&a, a.last - 3600).verdict, ASSEMBLE_WAIT);
	assert_true(decide(&a, a.last - 3600).again <= a.last - 3600 + QUIET);
	a.last += 3600;
	assemble_clamp_time(&a, 111); /* counts as now: quiet time begins, and ends */
	assert_int_equal(decide(&a, 111 + QUIET - 1).verdict, ASSEMBLE_WAIT);
	assert_int_equal(decide(&a, 111 + QUIET).verdict, ASSEMBLE_HOLD);
	assemble_clamp_time(&a, 500); /* what is past stays */
	assert_true(a.first == 100 && a.last == 111);
}

TEST(frames_are_counted)
{
	struct assemble a = {0};

	assemble_add(&a, 2, 25, 100);
	assemble_add(&a, 2, 0, 100); /* a header without a number of frames holds one */
	assert_int_equal(a.frames, 26);
}
