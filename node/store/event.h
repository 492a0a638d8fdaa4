/* SPDX-License-Identifier: Apache-2.0 */
/* Append an event of a job to the journal and then log it. Used by manager, worker, delivery and command line. */
#ifndef TOMONODE_NODE_EVENT_H
#define TOMONODE_NODE_EVENT_H

#include <stdint.h>

#include <jansson.h>

#include "node/store/journal.h"

/* Append an event (journal_append) and log it as "job-NAME job=.. destination=.. status=.. reason=..": held, failed and dead
 * letters as alarms, crashes and failed sends as errors. detail is taken over; NULL is ENOMEM. ESTALE: the job changed meanwhile;
 * nothing is written or logged. */
int event_append(struct journal *j, int64_t job, enum job_event event, json_t *detail, double now, struct err *err);

/* The same with journal_clean(). */
int event_clean(struct journal *j, int64_t job, int64_t seen, json_t *detail, double now, struct err *err);

/* Return value as one line of JSON, which the caller frees; NULL: out of memory. The reference to value is taken over. */
char *event_json_dump(json_t *value);

/* Return text as a JSON string, a new reference. Bytes that are not valid UTF-8 become '?'. */
json_t *event_json_text(const char *text);

#endif
