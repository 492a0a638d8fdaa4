/* SPDX-License-Identifier: Apache-2.0 */
#include "node/status/status_text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "node/base/time_text.h"
#include "node/config/kind.h"
#include "node/jobs/job_hint.h"
#include "node/status/say.h"

const char *status_text_tone(enum status_tone tone)
{
	static const char *const names[] = {"quiet", "work", "good", "warn", "bad"};

	return names[tone];
}

bool status_text_has_result(const struct job_view *v)
{
	return v->state == JOB_RECONSTRUCTED || v->state == JOB_STORED || v->state == JOB_DELIVERED ||
	       v->state == JOB_DEAD_LETTER;
}

enum status_tone status_text_state(const struct job_view *v, const char **ret_word)
{
	static const struct {
		const char *word;
		enum status_tone tone;
	} words[] = {
		[JOB_COLLECTING] = {"Arriving", TONE_WORK},   [JOB_HELD] = {"Held", TONE_WARN},
		[JOB_READY] = {"Waiting", TONE_WORK},	      [JOB_RUNNING] = {"Reconstructing", TONE_WORK},
		[JOB_RECONSTRUCTED] = {"Sending", TONE_WORK}, [JOB_STORED] = {"Awaiting commitment", TONE_WORK},
		[JOB_DELIVERED] = {"Delivered", TONE_GOOD},   [JOB_DEAD_LETTER] = {"Refused", TONE_BAD},
		[JOB_FAILED] = {"Failed", TONE_BAD},	      [JOB_CANCELLED] = {"Cancelled", TONE_QUIET},
		[JOB_CLEANED] = {"Removed", TONE_QUIET},      [JOB_IMPOSSIBLE] = {"Record damaged", TONE_BAD},
	};
	bool alarm;

	if ((unsigned)v->state >= sizeof(words) / sizeof(words[0]) || !words[v->state].word) {
		*ret_word = job_state_name(v->state);
		return TONE_QUIET;
	}
	*ret_word = words[v->state].word;
	if (job_is_unanswered(v))
		*ret_word = "Not committed";
	if (v->state == JOB_READY && v->crashes > 0)
		return TONE_WARN;
	if (job_waits_for_destination(v, &alarm)) {
		*ret_word = v->state == JOB_RECONSTRUCTED ? "Not sent yet" : "Commitment late";
		return alarm ? TONE_BAD : TONE_WARN;
	}
	if (job_view_is_warned(v)) {
		*ret_word = "Delivered, with warnings";
		return TONE_WARN;
	}
	return words[v->state].tone;
}

static void add_text(char *text, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void add_text(char *text, size_t size, const char *fmt, ...)
{
	size_t n = strlen(text);
	va_list ap;

	if (n + 1 >= size)
		return;
	va_start(ap, fmt);
	vsnprintf(text + n, size - n, fmt, ap);
	va_end(ap);
}

void status_text_title(const struct job_view *v, enum language in, char *ret, size_t size)
{
	const struct kind *kind = kind_named(v->kind);
	char side[16], view[16];

	kind_key_attribute(kind, v->key, CASE_LATERALITY, side, sizeof(side));
	kind_key_attribute(kind, v->key, CASE_VIEW, view, sizeof(view));
	snprintf(ret, size, "%s", say(in, kind ? kind->title : "case"));
	ret[0] = (char)toupper((unsigned char)ret[0]);
	if (side[0] || view[0])
		add_text(ret, size, ", %s%s%s",
			 !strcmp(side, "L")   ? say(in, "left")
			 : !strcmp(side, "R") ? say(in, "right")
					      : side,
			 side[0] && view[0] ? " " : "", view);
	if (v->sweep > 0)
		add_text(ret, size, say(in, ", sweep %d"), v->sweep);
	else if (v->revision > 1)
		add_text(ret, size, say(in, " (revision %d)"), v->revision);
	if (v->other.number > 1)
		add_text(ret, size, say(in, ", result %d"), v->other.number);
}

/* ---- sentences ---- */

/* A reason of the journal, in the language of the page if a table has it. */
static void add_reason(enum language in, char *text, size_t size, const char *reason)
{
	char translated[1200];
	const char *said = say_sentence(in, reason, translated, sizeof(translated));
	size_t n = strlen(said);

	add_text(text, size, "%s%s", said, n > 0 && strchr(".!?", said[n - 1]) ? "" : ".");
}

static void add_next(enum language in, char *text, size_t size, double next, double now)
{
	char when[TIME_TEXT_SIZE];

	if (next <= now)
		return;
	time_text(next, "never", when);
	add_text(text, size, say(in, " The next attempt is at %s."), when);
}

/* Write what is missing after a number of images: the end of the sentence. */
static void add_lacks(enum language in, const struct job_view *v, char *text, size_t size)
{
	if (v->members.lacks[0])
		add_text(text, size, say(in, "; %s is missing"), v->members.lacks);
	add_text(text, size, ".");
}

static void describe_collecting(enum language in, const struct job_view *v, char *ret, size_t size)
{
	char until[TIME_TEXT_SIZE];

	if (v->waits_until > 0) {
		time_text(v->waits_until, "never", until);
		add_text(ret, size, say(in, "All images were received. Until %s it "), until);
		add_reason(in, ret, size, v->reason);
		return;
	}
	if (v->members.expected >= v->members.instances && v->members.expected > 0) { /* else: of several sweeps */
		add_text(ret, size, say(in, "%ld of %ld images were received"), (long)v->members.instances,
			 (long)v->members.expected);
		add_lacks(in, v, ret, size);
	} else {
		add_text(ret, size, say(in, v->members.instances == 1 ? "%ld image was received." : "%ld images were received."),
			 (long)v->members.instances);
	}
	add_text(ret, size, " %s", say(in, "The reconstruction starts when the case is complete."));
}

static void describe_ready(enum language in, const struct job_view *v, size_t before, double now, char *ret, size_t size)
{
	if (v->crashes > 0 || (v->reason[0] && v->not_before > now)) {
		add_text(ret, size, "%s ",
			 say(in, v->crashes > 0 ? "The last attempt failed:" : "The last attempt could not continue:"));
		add_reason(in, ret, size, v->reason);
		add_next(in, ret, size, v->not_before, now);
		return;
	}
	add_text(ret, size, "%s", say(in, "Complete. It waits for a free device"));
	if (before > 0)
		add_text(ret, size, say(in, before == 1 ? "; %zu case is before it" : "; %zu cases are before it"), before);
	add_text(ret, size, ".");
}

/* Write why a send waits for that of another case, which failed to reach the destination. */
static void add_blocked_by(enum language in, const struct job_send *s, double now, char *ret, size_t size)
{
	char when[TIME_TEXT_SIZE];

	time_text(s->blocked_by->since, "never", when);
	add_text(ret, size, say(in, "%s has not been reached since %s: "), s->destination, when);
	add_reason(in, ret, size, s->blocked_by->reason[0] ? s->blocked_by->reason : say(in, "no response"));
	add_next(in, ret, size, s->blocked_by->next, now);
}

/* What a destination that has the objects has said of them, which depends on how they were sent; conf NULL: it is no longer in the
 * configuration. */
static void describe_done(enum language in, const struct destination_conf *conf, const struct job_send *s,
			  struct status_send *ret)
{
	bool stored = conf && conf->kind != DESTINATION_DICOM;
	char when[TIME_TEXT_SIZE];

	ret->tone = TONE_GOOD;
	ret->word = s->committed ? "Committed" : stored ? "Stored" : "Sent";
	time_text(s->time, "never", when);
	add_text(ret->sentence, sizeof(ret->sentence),
		 say(in, s->committed ? "%s confirmed at %s that it keeps the objects (storage commitment)."
			 : !stored    ? "%s answered each object with success at %s; whether it keeps them was not asked."
			 : conf->kind == DESTINATION_FOLDER ? "%s has had the files on its disk since %s."
							    : "%s answered at %s that it has stored each object."),
		 s->destination, when);
}

void status_text_send(const struct config *config, const struct job_send *s, double now, enum language in,
		      struct status_send *ret)
{
	char *text = ret->sentence;
	const size_t size = sizeof(ret->sentence);

	*ret = (struct status_send){.word = "Not needed", .tone = TONE_QUIET};
	if (s->standby)
		return;
	if (s->replaced) {
		ret->word = "Replaced";
		add_text(text, size, say(in, "The result is sent to %s instead of %s."), s->fallback, s->destination);
	} else if (s->state == SEND_STORED || job_send_is_unanswered(s)) {
		bool late = s->since > 0 || s->commit_tries > 0;

		ret->word = s->state != SEND_STORED ? "Not committed" : late ? "Commitment late" : "Awaiting commitment";
		ret->tone = s->state != SEND_STORED ? TONE_BAD : late ? TONE_WARN : TONE_WORK;
		add_text(text, size,
			 say(in, "%s answered each object with success, but has not confirmed yet that it keeps them%s"),
			 s->destination, s->reason[0] ? ": " : ".");
		if (s->reason[0])
			add_reason(in, text, size, s->reason);
		add_text(text, size, "%s", s->blocked_by ? " " : "");
		if (s->blocked_by)
			add_blocked_by(in, s, now, text, size);
	} else if (s->state == SEND_DONE) {
		describe_done(in, config_destination(config, s->destination), s, ret);
	} else if (s->state == SEND_REFUSED) {
		ret->word = "Refused";
		ret->tone = TONE_BAD;
		add_text(text, size, say(in, "%s refused it"), s->destination);
		if (s->status[0]) {
			add_text(text, size, ", ");
			add_text(text, size, say(in, "status %s"), s->status);
		}
		add_text(text, size, ": ");
		add_reason(in, text, size, s->reason[0] ? s->reason : say(in, "no reason given"));
	} else {
		ret->word = s->blocked_by ? "Waits" : "Due";
		ret->tone = s->failures || s->blocked_by ? TONE_WARN : TONE_WORK;
		if (s->failures > 0) {
			if (s->failures == 1)
				add_text(text, size, say(in, "Sending to %s failed: "), s->destination);
			else
				add_text(text, size, say(in, "Sending to %s failed in %d attempts: "), s->destination,
					 s->failures);
			add_reason(in, text, size, s->reason[0] ? s->reason : say(in, "no response"));
			add_next(in, text, size, s->next, now);
		} else if (s->blocked_by) {
			add_blocked_by(in, s, now, text, size);
		} else {
			add_text(text, size, say(in, "It is being sent to %s."), s->destination);
		}
	}
}

static void describe_sends(const struct config *config, const struct job_view *v, double now, enum language in, char *ret,
			   size_t size)
{
	struct status_send send;

	for (size_t i = 0; i < v->n_sends; i++) {
		status_text_send(config, &v->sends[i], now, in, &send);
		add_text(ret, size, "%s%s", ret[0] && send.sentence[0] ? " " : "", send.sentence);
	}
}

void status_text_sentence(const struct config *config, const struct job_view *v, size_t before, double now, enum language in,
			  char *ret, size_t size)
{
	ret[0] = '\0';
	switch (v->state) {
	case JOB_COLLECTING:
		describe_collecting(in, v, ret, size);
		break;
	case JOB_READY:
		describe_ready(in, v, before, now, ret, size);
		break;
	case JOB_RUNNING:
		add_text(ret, size, say(in, v->attempts > 1 ? "Running on %s, not the first attempt." : "Running on %s."),
			 v->device[0] ? v->device : say(in, "a device"));
		break;
	case JOB_RECONSTRUCTED:
	case JOB_STORED:
	case JOB_DELIVERED:
	case JOB_DEAD_LETTER:
		describe_sends(config, v, now, in, ret, size);
		if (v->warnings)
			add_text(ret, size, " %s", say(in, "Its result has warnings."));
		break;
	case JOB_CLEANED:
		add_text(ret, size, "%s",
			 say(in, v->never_delivered ? "It was cancelled; its images were removed."
						    : "It was delivered; the node's own files were removed."));
		break;
	default:
		if (job_is_incomplete(v) && !v->members.as_is) {
			add_text(ret, size, say(in, "Only %ld of %ld images were received"), (long)v->members.instances,
				 (long)v->members.expected);
			add_lacks(in, v, ret, size);
		} else if (v->reason[0]) {
			add_reason(in, ret, size, v->reason);
		}
		if (ret[0] >= 'a' && ret[0] <= 'z')
			ret[0] = (char)(ret[0] - 'a' + 'A');
	}
}

/* ---- single words ---- */

int status_text_stage(const char *stage, const char **ret_words)
{
	static const struct {
		const char *stage, *words;
		int step;
	} stages[] = {
		{"open", "opening the images", 1},    {"read", "reading the images", 1}, {"upload", "reading the images", 1},
		{"reconstruct", "reconstructing", 2}, {"project", "projecting", 2},	 {"step", "changing the volume", 3},
		{"write", "writing the result", 3},
	};

	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++)
		if (!strcmp(stages[i].stage, stage)) {
			*ret_words = stages[i].words;
			return stages[i].step;
		}
	*ret_words = stage;
	return 0;
}

const char *status_text_event(enum job_event event)
{
	static const char *const words[] = {
		[EVENT_OPENED] = "First image received",
		[EVENT_INSTANCE] = "Images received",
		[EVENT_HELD] = "Held",
		[EVENT_COMPLETE] = "Complete",
		[EVENT_WAITS] = "Waits for a CT series",
		[EVENT_COMPANION] = "CT images joined",
		[EVENT_STARTED] = "Given to a device",
		[EVENT_INTERRUPTED] = "Interrupted",
		[EVENT_CRASHED] = "The attempt failed",
		[EVENT_RESULT_LOST] = "The result is computed again",
		[EVENT_RECONSTRUCTED] = "Reconstructed",
		[EVENT_FAILED] = "Failed",
		[EVENT_SEND_FAILED] = "Not sent",
		[EVENT_SENT] = "Sent",
		[EVENT_SEND_REFUSED] = "Refused",
		[EVENT_FALLBACK] = "Sent to the fallback instead",
		[EVENT_STORED] = "Stored everywhere",
		[EVENT_COMMIT_REQUESTED] = "Commitment requested",
		[EVENT_COMMIT_ACCEPTED] = "Commitment request accepted",
		[EVENT_COMMIT_REQUEST_FAILED] = "Commitment request failed",
		[EVENT_COMMITTED] = "Committed",
		[EVENT_COMMIT_FAILED] = "Not committed",
		[EVENT_COMMIT_REFUSED] = "Not committed, no further attempt",
		[EVENT_PRIORITY] = "Priority changed",
		[EVENT_DELIVERED] = "Delivered everywhere",
		[EVENT_DEAD_LETTER] = "Refused permanently",
		[EVENT_RETRY] = "Retry requested",
		[EVENT_CANCEL] = "Cancelled",
		[EVENT_CLEANED] = "Files removed",
	};

	if ((unsigned)event < sizeof(words) / sizeof(words[0]) && words[event])
		return words[event];
	return job_event_name(event);
}
