/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the files that write the pages (status_page.c, status_node.c, status_cases.c, status_case.c); private to
 * them. Each writes one part of a page. */
#ifndef TOMONODE_NODE_STATUS_INTERNAL_H
#define TOMONODE_NODE_STATUS_INTERNAL_H

#include "node/status/status.h"
#include "node/status/status_text.h"

/* Write everything from the doctype to the start tag <main>. title is escaped. refresh: a browser without script loads the page
 * again by itself; a person may not be typing in it. */
void status_page_begin(struct html *h, const struct status *s, const char *title, bool refresh);
void status_page_end(struct html *h);
/* Write a table up to <tbody>; its rows follow, then status_page_table_end(). On a narrow screen a row of
 * three or more columns is a block; the roles
 * keep it a table for those who do not see it. columns: their n headers. */
void status_page_table(struct html *h, const char *id, const char *const *columns, size_t n);
void status_page_table_end(struct html *h);
/* Write the start tag of a cell; column: its header. */
void status_page_cell(struct html *h, const char *column);
void status_page_badge(struct html *h, enum status_tone tone, const char *word);
void status_page_picture(struct html *h, const struct status *s, const struct job_view *v, int side);
/* Write number of images, sender, time and protocol; the patient's name only if the configuration allows it. */
void status_page_facts(struct html *h, const struct status *s, const struct job_view *v);
/* Write the sentence about the case (status_text_sentence), its progress and a hint. before: number of ready cases that start
 * earlier. */
void status_page_state(struct html *h, const struct status *s, const struct job_view *v, size_t before);
void status_page_buttons(struct html *h, const struct status *s, const struct job_view *v, const char *token);

/* Write destinations, devices, disk, senders and objects without a case. */
void status_page_node(struct html *h, const struct status *s);

#endif
