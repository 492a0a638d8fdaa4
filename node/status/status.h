/* What the node does now, read from the journal and from what the manager leaves in the spool: the one source of the page, its
 * JSON and the metrics. It changes nothing; node/status/status_page.c, status_case.c, status_json.c and metrics_text.c write it
 * down.
 *
 * The jobs are kept between two looks and brought up to date by what is new in the journal. A journal that cannot be read is a
 * problem that is shown, and is tried again at each look.
 */
#ifndef TOMONODE_NODE_STATUS_H
#define TOMONODE_NODE_STATUS_H

#include <jansson.h>

#include "node/jobs/jobs.h"
#include "node/jobs/operator_warnings.h"
#include "node/status/html.h"
#include "node/status/metrics.h"
#include "node/status/status_names.h"
#include "node/status/status_request.h"

#define STATUS_STATES 24
#define STATUS_DESTINATIONS 32
#define STATUS_PROBLEMS 24
#define STATUS_ATTENTION_MAX 60 /* cases shown; of more, how many there are */
#define STATUS_WORK_MAX 60
#define STATUS_DONE_MAX 24
#define STATUS_UNASSIGNED_MAX 8	   /* groups shown */
#define STATUS_UNASSIGNED_READ 200 /* instances of each classification that make the groups */

struct status_destination {
	char name[CONFIG_NAME_SIZE];
	const struct destination_conf *conf; /* NULL: not in the configuration any more */
	size_t waiting, refused;	     /* cases */
	double last_sent, last_failed;	     /* s since the epoch; 0: never */
	double next;			     /* of its next attempt; 0: none waits for one */
	int failures;			     /* in a row, the most of a case */
	bool down;			     /* cases wait, and the last thing heard of it is a failure */
	char reason[240];		     /* of that failure */
};

struct status_problem {
	bool critical; /* the node does not do its work: /health says so */
	char text[OPERATOR_WARNING_SIZE];
};

struct status_list {
	const struct job_view **list; /* those to show, in order */
	size_t n, all;
};

struct status {
	const struct config *config; /* borrowed */
	struct journal *journal;     /* NULL: cannot be read now */
	struct jobs jobs;
	struct metrics metrics;
	struct journal_totals totals;
	struct status_names names;
	/* as of the last status_update(): */
	double now; /* s since the epoch */
	uint64_t unindexed;
	uint64_t orphans; /* images that the journal does not name */
	size_t by_state[STATUS_STATES];
	struct status_list attention, work, done;
	struct status_destination destinations[STATUS_DESTINATIONS];
	size_t n_destinations;
	json_t *node;	    /* node/serve/node_report.h; NULL: not there */
	json_t *unassigned; /* job_report_unassigned_groups() of the newest */
	uint64_t disk_free, disk_size;
	struct status_problem problems[STATUS_PROBLEMS];
	size_t n_problems;
};

void status_begin(struct status *s, const struct config *config);
void status_end(struct status *s);
/* Bring all of it up to date. */
void status_update(struct status *s, double now);
bool status_is_healthy(const struct status *s); /* no critical problem */
/* How far a running job is: its stage and 0..1; false: not known. */
bool status_progress(const struct status *s, int64_t job, char ret_stage[64], double *ret_fraction);
bool status_has_thumbnail(const struct status *s, const struct job_view *v);

/* The pages. `token` goes into the forms. */
void status_write_overview(struct html *h, const struct status *s, const char *token);
/* false: it could not be read; the page then says why. */
bool status_write_case(struct html *h, const struct status *s, const struct job_view *v, const char *token);
/* A page with a sentence and a way back. */
void status_write_sentence(struct html *h, const char *title, const char *sentence);
json_t *status_json(const struct status *s); /* NULL: no memory */
void status_write_metrics(struct html *h, const struct status *s);

#endif
