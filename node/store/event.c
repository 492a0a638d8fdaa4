/* SPDX-License-Identifier: Apache-2.0 */
#include "node/store/event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/log.h"

json_t *event_json_text(const char *text)
{
	json_t *value = json_string(text);
	char *copy;

	if (value)
		return value;
	copy = strdup(text);
	if (!copy)
		return NULL;
	for (char *c = copy; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e)
			*c = '?';
	value = json_string(copy);
	free(copy);
	return value;
}

char *event_json_dump(json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;

	json_decref(value);
	return text;
}

static int event_priority(enum job_event event)
{
	switch (event) {
	case EVENT_HELD:
	case EVENT_FAILED:
	case EVENT_DEAD_LETTER:
		return LOG_ALERT; /* needs a person */
	case EVENT_CRASHED:
	case EVENT_RESULT_LOST:
	case EVENT_SEND_REFUSED:
	case EVENT_COMMIT_REFUSED:
		return LOG_ERR;
	case EVENT_INTERRUPTED:
	case EVENT_SEND_FAILED:
	case EVENT_FALLBACK:
	case EVENT_COMMIT_REQUEST_FAILED:
	case EVENT_COMMIT_FAILED:
		return LOG_WARNING;
	case EVENT_INSTANCE:
		return LOG_DEBUG;
	default:
		return LOG_INFO;
	}
}

static void add_field(char *line, size_t size, const json_t *detail, const char *key)
{
	const char *text = json_string_value(json_object_get(detail, key));
	size_t n = strlen(line);

	if (text && n < size)
		snprintf(line + n, size - n, " %s=%s", key, log_quote(text));
}

void event_line(int64_t job, const json_t *detail, char *ret, size_t size)
{
	static const char *const keys[] = {"destination", "fallback",	  "transaction", "protocol",  "device",
					   "status",	  "sop_instance", "why",	 "companion", "reason"};

	snprintf(ret, size, "job=%lld", (long long)job);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		add_field(ret, size, detail, keys[i]);
}

static void log_job_event(int64_t job, enum job_event event, const json_t *detail)
{
	char name[32], line[1000];

	snprintf(name, sizeof(name), "job-%s", job_event_name(event));
	event_line(job, detail, line, sizeof(line));
	log_event(event_priority(event), name, "%s", line);
}

/* Append and log an event; `cleaned` with journal_append_cleaned(), one with companions with journal_append_complete(). */
static int append_event(struct journal *j, int64_t job, int64_t seen, enum job_event event, json_t *detail,
			const int64_t *companions, size_t n, double now, struct err *err)
{
	char *text = detail ? json_dumps(detail, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
	int ret;

	if (!text)
		ret = err_set(err, ENOMEM, "no memory for an event of job %lld", (long long)job);
	else if (event == EVENT_CLEANED)
		ret = journal_append_cleaned(j, job, seen, text, now, err);
	else if (n > 0)
		ret = journal_append_complete(j, job, seen, text, companions, n, now, err);
	else
		ret = journal_append_if_unchanged(j, job, seen, event, text, now, err);
	if (ret == 0)
		log_job_event(job, event, detail);
	free(text);
	json_decref(detail);
	return ret;
}

int event_append(struct journal *j, int64_t job, enum job_event event, json_t *detail, double now, struct err *err)
{
	return append_event(j, job, INT64_MAX, event, detail, NULL, 0, now, err);
}

int event_append_if_unchanged(struct journal *j, int64_t job, int64_t seen, enum job_event event, json_t *detail, double now,
			      struct err *err)
{
	return append_event(j, job, seen, event, detail, NULL, 0, now, err);
}

int event_append_complete(struct journal *j, int64_t job, int64_t seen, json_t *detail, const int64_t *companions, size_t n,
			  double now, struct err *err)
{
	return append_event(j, job, seen, EVENT_COMPLETE, detail, companions, n, now, err);
}

int event_append_cleaned(struct journal *j, int64_t job, int64_t seen, json_t *detail, double now, struct err *err)
{
	return append_event(j, job, seen, EVENT_CLEANED, detail, NULL, 0, now, err);
}
