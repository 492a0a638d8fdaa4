/* What the files of the status page share; for node/status/status_page.c and node/status/status_case.c alone. */
#ifndef TOMONODE_NODE_STATUS_INTERNAL_H
#define TOMONODE_NODE_STATUS_INTERNAL_H

#include "node/status/status.h"
#include "node/status/status_text.h"

/* From the doctype to the opened <main>; title is escaped. */
void status_page_begin(struct html *h, const struct status *s, const char *title);
void status_page_end(struct html *h);
void status_page_badge(struct html *h, enum status_tone tone, const char *word);
void status_page_picture(struct html *h, const struct status *s, const struct job_view *v, int side);
/* Images, sender, time, protocol; the patient where that is shown. */
void status_page_facts(struct html *h, const struct status *s, const struct job_view *v);
/* What happens, progress, hint. */
void status_page_state(struct html *h, const struct status *s, const struct job_view *v, size_t before);
void status_page_buttons(struct html *h, const struct status *s, const struct job_view *v, const char *token);

#endif
