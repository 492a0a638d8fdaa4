/* SPDX-License-Identifier: Apache-2.0 */
/* State of the node, read from the journal and from the manager's report in the spool; the only source of the status page, its
 * JSON and the metrics. Read only. node/status/status_overview.c, status_case.c, status_json.c and metrics_text.c write it.
 *
 * The open cases are kept in memory between updates; an update replays only new events. Settled cases (node/jobs/jobs_settled.h) are
 * counted and searched by the journal's rows about them, and read when they are shown: neither start nor memory grows with the number
 * of cases ever. A journal that cannot be read is shown as a problem; each update tries again.
 */
#ifndef TOMONODE_NODE_STATUS_H
#define TOMONODE_NODE_STATUS_H

#include <jansson.h>

#include "node/base/html.h"
#include "node/base/language.h"
#include "node/jobs/jobs.h"
#include "node/jobs/metrics.h"
#include "node/jobs/node_facts.h"
#include "node/status/status_exams.h"
#include "node/status/status_filter.h"
#include "node/status/status_names.h"
#include "node/status/status_person.h"
#include "node/status/status_request.h"

#define STATUS_STATES 24
#define STATUS_ATTENTION_MAX 60 /* maximum number of exams shown; of further ones the page gives only the number */
#define STATUS_WORK_MAX 60
#define STATUS_DONE_MAX 24
#define STATUS_EXAM_MAX 12	   /* maximum number of cases of an exam shown */
#define STATUS_UNASSIGNED_MAX 8	   /* maximum number of groups shown */
#define STATUS_UNASSIGNED_READ 200 /* maximum number of instances of each classification that are grouped */

#define STATUS_LOOK_SECONDS (3 * 86400.0) /* results with warnings are in the bar at the top for so long: over a weekend */

#define STATUS_SENDERS_MAX 32 /* the newest */

struct status_sender {		    /* AE title of a peer that has sent objects */
	char calling[17], host[64]; /* host: of the newest object */
	double last;		    /* arrival of the newest object, s since the epoch */
	uint64_t objects;	    /* that it ever sent, since the node counts them */
};

struct status_list {
	struct status_exam *list; /* in order */
	size_t n, all;		  /* number of exams to show, and of all in the list */
};

struct status {
	const struct config *config; /* borrowed */
	struct journal *journal;     /* NULL: it cannot be read now */
	struct jobs jobs;
	struct metrics metrics;
	struct journal_totals totals;
	struct status_sender senders[STATUS_SENDERS_MAX]; /* the newest first */
	size_t n_senders;
	int64_t senders_until; /* id of the last instance that was counted */
	struct status_names names;
	struct status_person person; /* for whom a page is written */
	enum language language;	     /* in which a page is written; not JSON and metrics, which are English */
	/* set by status_update(): */
	double now; /* s since the epoch */
	struct node_facts facts;
	struct node_problems problems;
	size_t by_state[STATUS_STATES];
	size_t by_group[GROUP_WARNED + 1];
	size_t unanswered;	       /* cases of JOB_DEAD_LETTER that no destination refused: job_is_unanswered() */
	size_t warned_new;	       /* cases of GROUP_WARNED that finished within STATUS_LOOK_SECONDS */
	size_t n_cases;		       /* of all states, settled ones included */
	struct settled_sums settled;   /* what the journal has about cases that are not in memory, or `recorded` there */
	const struct job_view **cases; /* those of the exams below */
	struct status_exam *exams;     /* exams with a case that is not settled, and the newest others, in no order */
	size_t n_exams;
	struct status_list attention, work, done;
	json_t *node;	    /* report of node/serve/node_report.h; NULL: missing */
	json_t *unassigned; /* job_report_unassigned_groups() of the newest instances */
};

void status_begin(struct status *s, const struct config *config);
void status_end(struct status *s);
/* Update all members. now: s since the epoch. */
void status_update(struct status *s, double now);
bool status_is_healthy(const struct status *s);				      /* true: no critical problem */
size_t status_count_before(const struct status *s, const struct job_view *v); /* ready cases that start before a ready case */
/* Read the progress of a running job: its stage, the finished fraction, 0 to 1, and the seconds that the stage still needs,
 * negative: not known. false: all is unknown. */
bool status_progress(const struct status *s, int64_t job, char ret_stage[64], double *ret_fraction, double *ret_left);
/* Write the path of the thumbnail of the result. false: there is none, or none is wanted. */
bool status_picture_path(const struct status *s, const struct job_view *v, char ret_path[400]);

/* Return true if the person may use the button of this page (a POST), and the configuration allows actions. */
bool status_may(const struct status *s, enum status_page page);

/* Write the pages. `token` is put into their forms. */
void status_write_overview(struct html *h, const struct status *s, const char *token);
void status_write_cases(struct html *h, const struct status *s, const struct status_filter *f);
/* false: the case could not be read; the page gives the reason. */
bool status_write_case(struct html *h, const struct status *s, const struct job_view *v, const char *token);
/* Write the page on which a person looks at the slices of a result, and of another one beside it (NULL: none). Both have a
 * result (status_has_report()), and there is a journal. */
void status_write_look(struct html *h, const struct status *s, const struct job_view *const v[2]);
/* Write a page with one sentence and a link back to the overview; both texts are English, and said in the language. */
void status_write_sentence(struct html *h, enum language in, const char *title, const char *sentence);
/* Write the same, which the browser loads again after a second. */
void status_write_waiting(struct html *h, enum language in, const char *title, const char *sentence);
json_t *status_json(const struct status *s); /* NULL: no memory */
void status_write_metrics(struct html *h, const struct status *s);

#endif
