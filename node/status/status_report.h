/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a case (node/report/report.h), made when a person asks for it. It reads the objects of the result, so a process
 * of its own makes it (cmd_report_page.c), with the lowest priority and one at a time: nothing waits for it. The last report is
 * kept in memory for a minute. */
#ifndef TOMONODE_NODE_STATUS_REPORT_H
#define TOMONODE_NODE_STATUS_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "node/base/html.h"

struct status;
struct job_view;

struct status_report {
	int64_t job; /* 0: none */
	pid_t pid;
	int fd;		  /* socket to the process; -1: none runs */
	double until;	  /* on clock_seconds(): when the process is killed, or the report is forgotten */
	struct html text; /* 'R' and the report, or 'E' and why there is none */
};

enum status_report_state { STATUS_REPORT_NONE, STATUS_REPORT_WAIT, STATUS_REPORT_READY, STATUS_REPORT_FAILED };

void status_report_begin(struct status_report *r);
void status_report_end(struct status_report *r);
/* Does the case have a result whose objects are still here, and may the page show pictures? */
bool status_has_report(const struct status *s, const struct job_view *v);
/* Ask for the report of a case that has one. WAIT: it is being made; ask again. READY and FAILED: *ret_text is the report, or a
 * sentence, valid until the next call. */
enum status_report_state status_report_get(struct status_report *r, const struct status *s, const struct job_view *v,
					   const char **ret_text);
void status_report_receive(struct status_report *r); /* call it when `fd` is readable, and about once a second */

#endif
