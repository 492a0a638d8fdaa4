/* SPDX-License-Identifier: Apache-2.0 */
/* The report of the result of a case (node/report/report.h), made when a person asks for it. It reads the objects, so a process of
 * its own makes it (cmd_report_page.c), with the lowest priority and one at a time: nothing waits for it. The last ones are kept in
 * memory for a minute. */
#ifndef TOMONODE_NODE_STATUS_REPORT_H
#define TOMONODE_NODE_STATUS_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "node/base/html.h"

struct status;
struct job_view;

#define STATUS_MADE 4 /* number of those kept; each has at most HTML_MAX bytes */

struct status_made {
	int64_t job;	  /* 0: none */
	double until;	  /* on clock_seconds(): when it is forgotten */
	struct html text; /* 'R' and the bytes, or 'E' and why there are none */
};

struct status_report {
	struct status_made made[STATUS_MADE];
	struct status_made *now; /* the one that the process makes; NULL: none runs */
	pid_t pid;
	int fd;	      /* socket to the process; -1: none runs */
	double until; /* on clock_seconds(): when the process is killed */
};

enum status_report_state { STATUS_REPORT_NONE, STATUS_REPORT_WAIT, STATUS_REPORT_READY, STATUS_REPORT_FAILED };

void status_report_begin(struct status_report *r);
void status_report_end(struct status_report *r);
/* Does the case have a result whose objects are still here, and may the page show pictures? */
bool status_has_report(const struct status *s, const struct job_view *v);
/* Ask for the report of a case that has one. WAIT: it is being made; ask again. READY and FAILED: *ret_text are the n bytes, or a
 * terminated sentence, valid until the next call. */
enum status_report_state status_report_get(struct status_report *r, const struct status *s, const struct job_view *v,
					   const char **ret_text, size_t *ret_n);
void status_report_receive(struct status_report *r); /* call it when `fd` is readable, and about once a second */

#endif
