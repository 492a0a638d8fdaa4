/* SPDX-License-Identifier: Apache-2.0 */
/* Append an event of a job to the journal and then log it. Used by manager, worker, delivery and command line. */
#ifndef TOMONODE_NODE_EVENT_H
#define TOMONODE_NODE_EVENT_H

#include <stdint.h>

#include <jansson.h>

#include "node/store/journal.h"

/* Append an event (journal_append) and log it as "job-NAME job=.. destination=.. status=.. reason=..": events that need a person
 * (held, failed, dead letter) as alarms, crashes and failed sends as errors. The function releases the reference to `detail`;
 * NULL means that the caller had no memory for it: ENOMEM. ESTALE: another process changed the job, so that the event no longer
 * fits; nothing is written or logged. */
int event_append(struct journal *j, int64_t job, enum job_event event, json_t *detail, double now, struct err *err);

/* The same with journal_append_if_unchanged(), which defines `seen` and ESTALE. */
int event_append_if_unchanged(struct journal *j, int64_t job, int64_t seen, enum job_event event, json_t *detail, double now,
			      struct err *err);

/* Append and log `complete` with journal_append_complete(), which defines `seen` and ESTALE. */
int event_append_complete(struct journal *j, int64_t job, int64_t seen, json_t *detail, const int64_t *companions, size_t n,
			  double now, struct err *err);

/* Append and log `cleaned` with journal_append_cleaned(), which defines `seen` and ESTALE. */
int event_append_cleaned(struct journal *j, int64_t job, int64_t seen, json_t *detail, double now, struct err *err);

/* Write the part of the log line of an event after its name: "job=.. destination=.. status=.. reason=..". */
void event_line(int64_t job, const json_t *detail, char *ret, size_t size);

/* Return `value` as one line of JSON, which the caller frees; NULL: no memory. The function releases the reference to `value`. */
char *event_json_dump(json_t *value);

/* Return text as a JSON string, a new reference. Bytes that are not valid UTF-8 become '?'. */
json_t *event_json_text(const char *text);

#endif
