/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by node/status/status_page.c and node/status/status_case.c; private to them. Each writes one part of a page.
 */
#ifndef TOMONODE_NODE_STATUS_INTERNAL_H
#define TOMONODE_NODE_STATUS_INTERNAL_H

#include "node/status/status.h"
#include "node/status/status_text.h"

/* Write everything from the doctype to the start tag <main>. title is escaped. */
void status_page_begin(struct html *h, const struct status *s, const char *title);
void status_page_end(struct html *h);
void status_page_badge(struct html *h, enum status_tone tone, const char *word);
void status_page_picture(struct html *h, const struct status *s, const struct job_view *v, int side);
/* Write number of images, sender, time and protocol; the patient's name only if the configuration allows it. */
void status_page_facts(struct html *h, const struct status *s, const struct job_view *v);
/* Write the sentence about the case (status_text_sentence), its progress and a hint. before: number of ready cases that start
 * earlier. */
void status_page_state(struct html *h, const struct status *s, const struct job_view *v, size_t before);
void status_page_buttons(struct html *h, const struct status *s, const struct job_view *v, const char *token);

#endif
