/* SPDX-License-Identifier: Apache-2.0 */
/* When retention may remove a case: how long after which event, and not before the other revisions of the case. */
#include "node/serve/retention.h"
#include "tests/node/jobs/jobs_fixture.h"
#include "tests/test.h"

static bool may_clean(const struct jobs *jobs, const struct job_view *v, int days, int unassigned_days, double now)
{
	return retention_may_clean(jobs, v, &(struct retention_rule){days, unassigned_days}, now);
}

TEST(retention_rule)
{
	struct jobs jobs GOES(jobs_clear) = {0};
	struct job_view *v = reconstructed(&jobs, 1), *w;

	assert_false(may_clean(&jobs, v, 1, 0, 1000 + 99 * DAY)); /* not delivered: never */
	apply(&jobs, 1, EVENT_SENT, "{\"destination\":\"pacs\"}");
	apply(&jobs, 1, EVENT_SENT, "{\"destination\":\"ws\"}");
	apply_at(&jobs, 1, EVENT_DELIVERED, "{}", 2000);
	assert_false(may_clean(&jobs, v, 3, 0, 2000 + 3 * DAY - 1));
	assert_true(may_clean(&jobs, v, 3, 0, 2000 + 3 * DAY));
	assert_false(may_clean(&jobs, v, 0, 0, 2000 + 99 * DAY)); /* 0: never */
	/* A revision shares the instances: not before it is delivered as well. */
	w = reconstructed(&jobs, 2);
	assert_false(may_clean(&jobs, v, 3, 0, 2000 + 99 * DAY));
	apply_at(&jobs, 2, EVENT_DELIVERED, "{}", 3000);
	assert_false(may_clean(&jobs, v, 3, 0, 3000 + 3 * DAY - 1));
	assert_false(may_clean(&jobs, w, 3, 0, 3000 + 3 * DAY - 1));
	assert_true(may_clean(&jobs, v, 3, 0, 3000 + 3 * DAY));
	assert_true(may_clean(&jobs, w, 3, 0, 3000 + 3 * DAY));
	/* Another case does not matter; a job whose case cannot be known does. */
	apply(&jobs, 3, EVENT_OPENED, "{\"key\":\"other\"}");
	assert_true(may_clean(&jobs, v, 3, 0, 3000 + 3 * DAY));
	apply(&jobs, 4, EVENT_OPENED, "damaged");
	assert_false(may_clean(&jobs, v, 3, 0, 3000 + 3 * DAY));
	jobs_clear(&jobs);
	/* The first one is delivered after its revision: its time counts for both. */
	v = reconstructed(&jobs, 1);
	w = reconstructed(&jobs, 2);
	apply_at(&jobs, 2, EVENT_DELIVERED, "{}", 3000);
	apply_at(&jobs, 1, EVENT_DELIVERED, "{}", 4000);
	assert_false(may_clean(&jobs, v, 3, 0, 4000 + 3 * DAY - 1));
	assert_false(may_clean(&jobs, w, 3, 0, 4000 + 3 * DAY - 1));
	assert_true(may_clean(&jobs, w, 3, 0, 4000 + 3 * DAY));
	jobs_clear(&jobs);
	/* Delivered to nobody is not delivered. */
	apply(&jobs, 5, EVENT_OPENED, OPENED);
	apply(&jobs, 5, EVENT_COMPLETE, "{\"protocol\":\"p\",\"destinations\":[]}");
	apply(&jobs, 5, EVENT_STARTED, "{}");
	apply(&jobs, 5, EVENT_RECONSTRUCTED, MADE("1.5"));
	v = apply_at(&jobs, 5, EVENT_DELIVERED, "{}", 10);
	assert_false(may_clean(&jobs, v, 1, 0, 99 * DAY));
	jobs_clear(&jobs);
	/* Nor is what was refused: it waits for a person. */
	v = reconstructed(&jobs, 1);
	apply(&jobs, 1, EVENT_SEND_REFUSED, "{\"destination\":\"pacs\",\"status\":\"0122\"}");
	apply(&jobs, 1, EVENT_DEAD_LETTER, "{}");
	assert_int_equal(v->state, JOB_DEAD_LETTER);
	assert_false(may_clean(&jobs, v, 1, 1, 1000 + 99 * DAY));
}

/* The CT images of a case stay while another case of its study may still need them. */
TEST(retention_of_ct_images)
{
	struct jobs jobs GOES(jobs_clear) = {0};
	struct job_view *v;

	apply(&jobs, 1, EVENT_OPENED, "{\"key\":\"a\",\"study\":\"1.2\"}");
	apply(&jobs, 1, EVENT_COMPLETE, "{\"protocol\":\"p\",\"destinations\":[\"pacs\"]}");
	apply(&jobs, 1, EVENT_COMPANION, "{}");
	apply(&jobs, 1, EVENT_STARTED, "{}");
	apply(&jobs, 1, EVENT_RECONSTRUCTED, MADE("1.5"));
	apply(&jobs, 1, EVENT_SENT, "{\"destination\":\"pacs\"}");
	v = apply_at(&jobs, 1, EVENT_DELIVERED, "{}", 2000);
	assert_true(may_clean(&jobs, v, 1, 0, 99 * DAY));
	apply(&jobs, 2, EVENT_OPENED, "{\"key\":\"b\",\"study\":\"1.3\"}");
	assert_true(may_clean(&jobs, v, 1, 0, 99 * DAY));
	apply(&jobs, 3, EVENT_OPENED, "{\"key\":\"c\",\"study\":\"1.2\"}");
	assert_false(may_clean(&jobs, v, 1, 0, 99 * DAY));
	apply(&jobs, 3, EVENT_HELD, "{\"reason\":\"r\",\"lacks_companion\":true}");
	assert_false(may_clean(&jobs, v, 1, 0, 99 * DAY));
	apply(&jobs, 3, EVENT_CANCEL, "{}");
	assert_true(may_clean(&jobs, v, 1, 0, 99 * DAY));
}

/* What a person cancelled is done, too: as a revision it keeps nothing of its case back, and by itself it goes after days of its
 * own, where they are named, and behind those whose images it shares. */
TEST(retention_of_cancelled)
{
	struct jobs jobs GOES(jobs_clear) = {0};
	struct job_view *v = reconstructed(&jobs, 1), *w;

	apply(&jobs, 1, EVENT_SENT, "{\"destination\":\"pacs\"}");
	apply(&jobs, 1, EVENT_SENT, "{\"destination\":\"ws\"}");
	apply_at(&jobs, 1, EVENT_DELIVERED, "{}", 2000);
	apply(&jobs, 2, EVENT_OPENED, OPENED);
	w = jobs_find(&jobs, 2);
	assert_false(may_clean(&jobs, v, 3, 1, 2000 + 99 * DAY));
	apply_at(&jobs, 2, EVENT_CANCEL, "{\"reason\":\"no\"}", 3000);
	assert_false(may_clean(&jobs, v, 3, 0, 3000 + 3 * DAY - 1));
	assert_true(may_clean(&jobs, v, 3, 0, 3000 + 3 * DAY));
	assert_false(may_clean(&jobs, w, 3, 1, 3000 + 99 * DAY)); /* it has images of the delivered one */
	apply_at(&jobs, 1, EVENT_CLEANED, "{\"why\":\"age\"}", 4000);
	assert_false(may_clean(&jobs, w, 3, 0, 3000 + 99 * DAY));
	assert_false(may_clean(&jobs, w, 3, 5, 3000 + 5 * DAY - 1));
	assert_true(may_clean(&jobs, w, 0, 5, 3000 + 5 * DAY));
	apply(&jobs, 2, EVENT_RETRY, "{}");
	assert_false(may_clean(&jobs, w, 3, 5, 3000 + 99 * DAY));
	apply_at(&jobs, 2, EVENT_CANCEL, "{}", 5000);
	apply_at(&jobs, 2, EVENT_CLEANED, "{\"why\":\"cancelled\"}", 6000);
	assert_int_equal(w->state, JOB_CLEANED);
	assert_true(w->never_delivered && !v->never_delivered);
}

/* Delivered when the clock was years ahead: it goes when it was seen for so long, not years later. */
TEST(retention_after_a_clock_ahead)
{
	struct jobs jobs GOES(jobs_clear) = {0};
	struct job_view *v = reconstructed(&jobs, 1);

	apply(&jobs, 1, EVENT_SENT, "{\"destination\":\"pacs\"}");
	apply(&jobs, 1, EVENT_SENT, "{\"destination\":\"ws\"}");
	apply_at(&jobs, 1, EVENT_DELIVERED, "{}", 2000 + 1000 * DAY);
	jobs_observe_clock(&jobs, 2000 + 1000 * DAY);
	jobs_observe_clock(&jobs, 3000); /* the clock is right again */
	jobs_observe_clock(&jobs, 4000);
	assert_false(may_clean(&jobs, v, 3, 0, 3000 + 3 * DAY - 1));
	assert_true(may_clean(&jobs, v, 3, 0, 3000 + 3 * DAY));
	/* What is past counts from when it was, whenever it is seen. */
	jobs_clear(&jobs);
	v = reconstructed(&jobs, 1);
	apply(&jobs, 1, EVENT_SENT, "{\"destination\":\"pacs\"}");
	apply(&jobs, 1, EVENT_SENT, "{\"destination\":\"ws\"}");
	apply_at(&jobs, 1, EVENT_DELIVERED, "{}", 2000);
	jobs_observe_clock(&jobs, 2000 + DAY);
	assert_true(may_clean(&jobs, v, 3, 0, 2000 + 3 * DAY));
}
