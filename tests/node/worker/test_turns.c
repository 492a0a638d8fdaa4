/* SPDX-License-Identifier: Apache-2.0 */
/* Fair shares of the indexer's time among senders. */
#include "node/worker/turns.h"
#include "tests/test.h"

static int setup(void **state)
{
	struct turns *t = NULL;

	if (turns_create(&t, NULL) < 0)
		return -1;
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	turns_free(*state);
	return 0;
}

static void add(struct turns *t, const char *calling, const char *host, int64_t instance)
{
	assert_int_equal(turns_add(t, calling, host, instance, NULL), 0);
}

static void read_next(struct turns *t, int64_t expected, double seconds)
{
	assert_int_equal(turns_next(t), expected);
	turns_done(t, seconds);
}

TEST(one_sender_in_order_of_arrival, .setup = setup, .teardown = teardown)
{
	struct turns *t = *state;

	assert_int_equal(turns_next(t), 0);
	for (int64_t i = 1; i <= 300; i++)
		add(t, "A", "h", i);
	for (int64_t i = 1; i <= 300; i++)
		read_next(t, i, 0.01);
	assert_int_equal(turns_next(t), 0);
	add(t, "A", "h", 301);
	read_next(t, 301, 0);
}

/* A hundred headers of a second wait; an exam of 25 images of another sender waits for one of them at most. */
TEST(an_exam_waits_for_one_header, .setup = setup, .teardown = teardown)
{
	struct turns *t = *state;

	for (int64_t i = 1; i <= 100; i++)
		add(t, "SLOW", "h", i);
	read_next(t, 1, 1);
	assert_int_equal(turns_next(t), 2); /* is being read when the exam arrives */
	for (int64_t i = 101; i <= 125; i++)
		add(t, "GOOD", "h", i);
	turns_done(t, 1);
	for (int64_t i = 101; i <= 125; i++)
		read_next(t, i, 0.01);
	read_next(t, 3, 1);
}

/* Images that arrive one by one, each while a slow header is being read, wait for that header alone. */
TEST(images_that_arrive_one_by_one, .setup = setup, .teardown = teardown)
{
	struct turns *t = *state;

	for (int64_t i = 1; i <= 100; i++)
		add(t, "SLOW", "h", i);
	for (int64_t i = 1; i <= 25; i++) {
		assert_int_equal(turns_next(t), i);
		add(t, "GOOD", "h", 100 + i);
		turns_done(t, 1);
		read_next(t, 100 + i, 0.01);
	}
}

/* A sender that was idle for long, at the same address or alone at its own, does not get all the time that it has not used. */
TEST(idle_time_is_not_saved, .setup = setup, .teardown = teardown)
{
	static const char *const hosts[] = {"h", "idle"};
	struct turns *t = *state;

	for (int64_t way = 0, i = 1; way < 2; way++) {
		add(t, "IDLE", hosts[way], i);
		read_next(t, i++, 0.1);
		for (int n = 0; n < 100; n++, i++) {
			add(t, "BUSY", "h", i);
			read_next(t, i, 1);
		}
		i += i & 1;
		for (int n = 0; n < 50; n++, i += 2) {
			add(t, "BUSY", "h", i);
			add(t, "IDLE", hosts[way], i + 1);
		}
		for (int busy = 0, n = 0; n < 20; n++) {
			busy += turns_next(t) % 2 == 0;
			turns_done(t, 1);
			assert_true(abs(2 * busy - n) <= 4);
		}
		while (turns_next(t))
			turns_done(t, 1);
	}
}

/* The same AE title at another address, and another AE title at the same address, are other senders. */
TEST(a_sender_is_title_and_address, .setup = setup, .teardown = teardown)
{
	struct turns *t = *state;

	add(t, "A", "h", 1);
	add(t, "A", "h", 2);
	add(t, "A", "i", 3);
	add(t, "B", "h", 4);
	read_next(t, 1, 1);
	read_next(t, 3, 1);
	read_next(t, 4, 1);
	read_next(t, 2, 1);
}

/* One address with twenty AE titles has one share: an exam from elsewhere waits for one of its headers. */
TEST(many_titles_at_one_address, .setup = setup, .teardown = teardown)
{
	struct turns *t = *state;
	char title[17];

	for (int64_t i = 1; i <= 60; i++) {
		snprintf(title, sizeof(title), "T%d", (int)(i % 20));
		add(t, title, "h", i);
	}
	read_next(t, 1, 1);
	assert_int_equal(turns_next(t), 2); /* is being read when the exam arrives */
	for (int64_t i = 101; i <= 125; i++)
		add(t, "GOOD", "g", i);
	turns_done(t, 1);
	for (int64_t i = 101; i <= 125; i++)
		read_next(t, i, 0.01);
	for (int64_t i = 3; i <= 20; i++) /* in turns among the titles of the address */
		read_next(t, i, 1);
	add(t, "LATE", "h", 200);
	read_next(t, 200, 1);
	read_next(t, 21, 1);
}

/* The sender at whose instance the indexer died comes last. */
TEST(after_a_death_the_others_come_first, .setup = setup, .teardown = teardown)
{
	struct turns *t = *state;

	assert_int_equal(turns_charge(t, "BAD", "h", 3, NULL), 0);
	add(t, "BAD", "h", 1);
	add(t, "GOOD", "h", 2);
	read_next(t, 2, 0.01);
	read_next(t, 1, 0.01);
}
