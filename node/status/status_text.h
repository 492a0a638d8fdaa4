/* What the status page says about a case, in words for the people who work with it. Pure functions of a job's view. */
#ifndef TOMONODE_NODE_STATUS_TEXT_H
#define TOMONODE_NODE_STATUS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "node/jobs/jobs.h"

enum status_tone { TONE_QUIET, TONE_WORK, TONE_GOOD, TONE_WARN, TONE_BAD };

const char *status_text_tone(enum status_tone tone);				     /* class of the style sheet */
enum status_tone status_text_state(const struct job_view *v, const char **ret_word); /* "Held" */

/* "Tomosynthesis, left MLO", "PET", with the revision where there is more than one. */
void status_text_title(const struct job_view *v, char *ret, size_t size);
/* What happens or why nothing does: a sentence. `before`: ready cases that come first. */
void status_text_sentence(const struct job_view *v, size_t before, double now, char *ret, size_t size);
/* What somebody should do; "" nothing. */
const char *status_text_hint(const struct job_view *v);

/* Which buttons there are, and what they say; NULL: not this one. */
const char *status_text_retry(const struct job_view *v);
const char *status_text_as_is(const struct job_view *v);
const char *status_text_cancel(const struct job_view *v);

/* "reconstructing"; answers which of STATUS_TEXT_STEPS it is, 0: none that is known. */
#define STATUS_TEXT_STEPS 3
int status_text_stage(const char *stage, const char **ret_words);
const char *status_text_event(enum job_event event);
/* Local time: "14:02:10", on another day "2026-11-21 14:02". "never" for 0. */
void status_text_time(double when, double now, char *ret, size_t size);
/* "12 s", "4 min", "3.2 h", "5 days" */
void status_text_duration(double seconds, char *ret, size_t size);
void status_text_bytes(double bytes, char *ret, size_t size); /* "1.2 GB" */

#endif
