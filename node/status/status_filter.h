/* SPDX-License-Identifier: Apache-2.0 */
/* The search of the page with all cases: what a browser asks for in the query of its address (/cases?q=...&state=...&from=...).
 * Pure functions of untrusted text; the structure has a fixed size, and is checked again by the process that reads the journal.
 */
#ifndef TOMONODE_NODE_STATUS_FILTER_H
#define TOMONODE_NODE_STATUS_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "node/jobs/jobs.h"

#define STATUS_FILTER_TEXT 129 /* bytes of the text that is searched for, terminated */
#define STATUS_FILTER_PAGE_MAX 1000000

/* Choices of the state: 0 all cases, then these groups, then each state of a job. */
enum status_group { GROUP_ATTENTION = 1, GROUP_WORK, GROUP_DONE, GROUP_WARNED /* a part of GROUP_DONE */ };

enum status_field { FIELD_TEXT, FIELD_STATE, FIELD_FROM, FIELD_TO, FIELD_PAGE, STATUS_FIELDS };

struct status_filter {		       /* all zero: every case, first page */
	char text[STATUS_FILTER_TEXT]; /* without blanks at the ends; "": any */
	int state;		       /* number of the choice; 0: any */
	int from, to;		       /* days as 10000 year + 100 month + day; 0: any */
	int page;		       /* from 0 */
	unsigned wrong;		       /* bit 1 << field: its value was not understood and is not used */
};

/* Return the name of a field in the query: "q", "state", "from", "to", "page". */
const char *status_filter_field(enum status_field field);
/* Set a field from its decoded value in the query; "" and NULL leave it as it is. */
void status_filter_set(struct status_filter *f, enum status_field field, const char *value);
/* Return true if every member is in its range. */
bool status_filter_valid(const struct status_filter *f);
/* Value and label of a choice of the state, from 0 on; false: there is no such choice. */
bool status_filter_state(int choice, const char **ret_value, const char **ret_label);
/* Write a day as "2026-11-23"; 0 as "". */
void status_filter_day(int day, char *ret, size_t size);
/* Write the query of a page of the same search: "?q=...&page=2", without fields that have no value; "" if none has. */
void status_filter_query(const struct status_filter *f, int page, char *ret, size_t size);
#define STATUS_FILTER_QUERY (3 * STATUS_FILTER_TEXT + 100) /* bytes, terminated */

/* Return the section of the page that has a case: never GROUP_WARNED. */
enum status_group status_filter_group(const struct job_view *v);
/* Return true if state and day of arrival (local time) of the case fit. The text is not looked at. */
bool status_filter_matches(const struct status_filter *f, const struct job_view *v);

#endif
