/* SPDX-License-Identifier: Apache-2.0 */
/* Events of jobs, applied as replay does. */
#ifndef TOMONODE_TESTS_JOBS_FIXTURE_H
#define TOMONODE_TESTS_JOBS_FIXTURE_H

#include "node/jobs/jobs.h"
#include "tests/test.h"

static int64_t fixture_seq;

static inline struct job_view *apply_at(struct jobs *jobs, int64_t job, enum job_event event, const char *detail, double time)
{
	struct event_row row = {
		.seq = ++fixture_seq, .time = time, .job = job, .event = event, .known = true, .detail = (char *)detail};

	assert_int_equal(jobs_apply(jobs, &row), 0);
	assert_int_equal(jobs->last_seq, fixture_seq);
	return jobs_find(jobs, job);
}

static inline struct job_view *apply(struct jobs *jobs, int64_t job, enum job_event event, const char *detail)
{
	return apply_at(jobs, job, event, detail, 1000);
}

#define OPENED "{\"key\":\"a|b\",\"kind\":\"dbt\",\"calling\":\"MOD\",\"revision\":1,\"revision_of\":0}"
#define INSTANCE "{\"instance\":1,\"received\":900.5,\"expected\":1,\"frames\":25}"
#define COMPLETE "{\"why\":\"1 of 1\",\"protocol\":\"dbt-osem\",\"destinations\":[\"pacs\",\"ws\"]}"
#define DAY 86400.0
#define MADE(uid) "{\"file\":\"outbox/1/x.dcm\",\"sop_instance\":\"" uid "\",\"sop_class\":\"1.2\"}"

static inline struct job_view *reconstructed(struct jobs *jobs, int64_t job)
{
	apply(jobs, job, EVENT_OPENED, OPENED);
	apply(jobs, job, EVENT_INSTANCE, INSTANCE);
	apply(jobs, job, EVENT_COMPLETE, COMPLETE);
	apply(jobs, job, EVENT_STARTED, "{}");
	return apply(jobs, job, EVENT_RECONSTRUCTED, MADE("1.5"));
}

#endif
