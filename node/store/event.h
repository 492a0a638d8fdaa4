/* An event of a job, written to the journal and then to the log; what manager, worker, delivery and command line share. */
#ifndef TOMONODE_NODE_EVENT_H
#define TOMONODE_NODE_EVENT_H

#include <stdint.h>

#include <jansson.h>

#include "node/store/journal.h"

/* Appends (journal_append) with `detail` (taken over; NULL is ENOMEM) and logs "job-NAME job=.. destination=.. status=..
 * reason=..": held, failed and dead letters as alarms, crashes and failed sends as errors. ESTALE: somebody else acted first;
 * nothing is logged. */
int event_append(struct journal *j, int64_t job, enum job_event event, json_t *detail, double now, struct err *err);

/* The same for journal_clean(). */
int event_clean(struct journal *j, int64_t job, int64_t seen, json_t *detail, double now, struct err *err);

/* One line of JSON; the caller frees it. Takes `value` over. NULL: no memory. */
char *event_json_dump(json_t *value);

/* Text as JSON wants it: bytes that are no UTF-8 become '?'. A new reference. */
json_t *event_json_text(const char *text);

#endif
