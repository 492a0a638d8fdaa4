/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of the status page about a case, for its users. Pure functions of a job's view. Titles and sentences are written in a
 * language; single words, hints and labels are returned in English, for say() (node/status/say.h). */
#ifndef TOMONODE_NODE_STATUS_TEXT_H
#define TOMONODE_NODE_STATUS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "node/base/language.h"
#include "node/jobs/jobs.h"

enum status_tone { TONE_QUIET, TONE_WORK, TONE_GOOD, TONE_WARN, TONE_BAD };

const char *status_text_tone(enum status_tone tone);				     /* class in the style sheet */
enum status_tone status_text_state(const struct job_view *v, const char **ret_word); /* *ret_word: such as "Held" */

/* Write the title: "Tomosynthesis, left MLO", "PET"; with sweep, revision and result if they are not the first. */
void status_text_title(const struct job_view *v, enum language in, char *ret, size_t size);
/* Write a sentence about what the node does with the case, or why it does nothing. before: number of ready cases that start
 * earlier. */
void status_text_sentence(const struct config *config, const struct job_view *v, size_t before, double now, enum language in,
			  char *ret, size_t size);
bool status_text_has_result(const struct job_view *v); /* true: that sentence is those of its sends, and whether it is warned */

struct status_send {	  /* a delivery to one destination */
	const char *word; /* "Sent": a DICOM peer answered with success, and was not asked whether it keeps it. "Awaiting
			     commitment", "Commitment late", "Not committed": it was asked, and has not confirmed. "Committed": it
			     has. "Stored": a web service said that it has stored it, or the file is in a folder. "Refused", ... */
	enum status_tone tone;
	char sentence[1000]; /* what was answered, and when; "": nothing to say */
};
void status_text_send(const struct config *config, const struct job_send *s, double now, enum language in,
		      struct status_send *ret);

/* Set *ret_words to the text of a worker's stage, such as "reconstructing". Returns its step, 1 to STATUS_TEXT_STEPS; 0: unknown
 * stage. */
#define STATUS_TEXT_STEPS 3
int status_text_stage(const char *stage, const char **ret_words);
const char *status_text_event(enum job_event event);

#endif
