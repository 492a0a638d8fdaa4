/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever strangers do, what is told of them is bounded, and nothing goes uncounted. */
#include "node/base/refusal_log.h"
#include "tests/test.h"

struct told {
	int messages, nameless;
	unsigned long count[REFUSAL_KINDS];
	double seconds;
};

static void take(void *ctx, const struct in6_addr *sender, const unsigned long count[REFUSAL_KINDS], double seconds)
{
	struct told *t = ctx;

	t->messages++;
	t->nameless += sender == NULL;
	t->seconds = seconds;
	for (int i = 0; i < REFUSAL_KINDS; i++)
		t->count[i] += count[i];
}

static struct in6_addr sender_of(int i)
{
	struct in6_addr a = {0};

	a.s6_addr[6] = (unsigned char)(i >> 8);
	a.s6_addr[7] = (unsigned char)i;
	return a;
}

TEST(one_sender)
{
	struct in6_addr s = sender_of(1), other = sender_of(2);
	struct refusal_log *a = NULL;
	struct told t = {0};
	struct err err = {0};
	int told = 0;

	assert_int_equal(refusal_log_create(&a, &err), 0);
	for (int i = 0; i < 1000; i++)
		told += refusal_log_may_write(a, &s, i % 4 ? REFUSAL_REJECTED : REFUSAL_SILENT, 100 + 0.01 * i);
	assert_int_equal(told, REFUSAL_LOG_PER_SENDER);
	assert_true(refusal_log_may_write(a, &other, REFUSAL_REJECTED, 110)); /* who did not overdo it is told as ever */
	refusal_log_tick(a, 159, false, take, &t);
	assert_int_equal(t.messages, 0);
	refusal_log_tick(a, 160, false, take, &t);
	assert_int_equal(t.messages, 1);
	assert_int_equal(t.count[REFUSAL_REJECTED] + t.count[REFUSAL_SILENT], 1000 - REFUSAL_LOG_PER_SENDER);
	assert_true(t.seconds == 60);
	assert_true(refusal_log_may_write(a, &s, REFUSAL_REJECTED, 161)); /* a new minute */
	refusal_log_tick(a, 1000, false, take, &t);			  /* nothing was left to be told of it */
	assert_int_equal(t.messages, 1);
	refusal_log_count(a, &s, REFUSAL_REJECTED, 2000);
	refusal_log_tick(a, 2001, true, take, &t);
	assert_int_equal(t.messages, 2);
	refusal_log_free(a);
}

/* Every minute some thousands, each a few times. */
TEST(many_senders)
{
	struct refusal_log *a = NULL;
	struct told t = {0};
	struct err err = {0};
	unsigned long noted = 0, told = 0;

	assert_int_equal(refusal_log_create(&a, &err), 0);
	for (int minute = 0; minute < 5; minute++) {
		for (int i = 0; i < 12000; i++) {
			struct in6_addr s = sender_of((i + 777 * minute) % 4000);
			double now = 1000 + 60 * minute + 0.005 * i;

			told += refusal_log_may_write(a, &s, REFUSAL_REJECTED, now);
			noted++;
			if (i % 200 == 0)
				refusal_log_tick(a, now, false, take, &t);
		}
	}
	refusal_log_tick(a, 1300, true, take, &t);
	assert_in_range(told, 1, 5 * REFUSAL_LOG_PER_MINUTE);
	assert_in_range(t.messages, 1, 6 * (REFUSAL_LOG_SENDERS + 1));
	assert_in_range(t.nameless, 1, 6);
	assert_int_equal(told + t.count[REFUSAL_REJECTED], noted);
	refusal_log_free(a);
}
