/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_pilots.c - jobs whose pilot is not connected.
 *
 * - A pilot continues its case without the node, and connects again: after its connection was lost, and after the node was
 *   restarted. For cluster.lease its job keeps running without a process; the pilot that reports job and attempt gets it back.
 * - After that the job is given to another device. What the pilot brings later is dropped: its attempt is another one.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/base/folder.h"
#include "node/serve/schedule_internal.h"

#define REFUSED_SHOWN 600.0 /* s for which a refused pilot is shown, unless it connects */
#define LOSSES_MAX 8 /* lost connections of an attempt after which it is given up: a result that crashes the seat comes back */

static struct schedule_lost *entry_of(struct schedule *s, const struct job_view *v)
{
	struct schedule_lost *free_entry = NULL;

	for (size_t i = 0; i < SLOTS_SEATS_MAX; i++) {
		if (s->lost[i].attempt == v->started_seq)
			return &s->lost[i];
		if (s->lost[i].attempt == 0)
			free_entry = &s->lost[i];
	}
	return free_entry;
}

bool schedule_pilot_may_return(struct schedule *s, const struct job_view *v, double now)
{
	struct schedule_lost *lost = s->config->cluster.port > 0 ? entry_of(s, v) : NULL;

	if (!lost)
		return false;
	if (lost->attempt == 0)
		*lost = (struct schedule_lost){.attempt = v->started_seq};
	if (lost->until == 0) {
		lost->until = s->clock + s->config->cluster.lease;
		lost->times++;
	}
	if (lost->times > LOSSES_MAX || lost->until <= s->clock)
		return false;
	schedule_wake_on_clock(s, lost->until, now);
	return true;
}

void schedule_pilot_returned(struct schedule *s, const struct job_view *v)
{
	struct schedule_lost *lost = entry_of(s, v);

	if (lost && lost->attempt != 0)
		lost->until = 0;
}

void schedule_remove_attempt(const struct schedule *s, const struct job_view *v)
{
	static const char *const suffixes[] = {".order", ".outcome", ".order.part", ".outcome.part"};
	char folder[400], path[440];

	if (!v || !s->config->cluster.shared_spool)
		return;
	/* as pilot_case_path() of node/cluster/pilot_case.h names them */
	snprintf(folder, sizeof(folder), "%s/work/%lld-%lld", s->config->node.spool, (long long)v->id, (long long)v->started_seq);
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", folder, suffixes[i]);
		unlink(path);
	}
	folder_remove(folder, NULL);
}

void schedule_pilot_gone(struct schedule *s, const struct job_view *v, const char *reason, double now)
{
	struct schedule_lost *lost = entry_of(s, v);
	bool often = lost && lost->times > LOSSES_MAX;

	if (lost)
		*lost = (struct schedule_lost){0};
	schedule_remove_attempt(s, v);
	if (often || v->attempts >= s->config->node.attempts)
		schedule_crashed(s, v->id, reason, now);
	else
		schedule_append_event(s, v, EVENT_INTERRUPTED, schedule_reason(reason), now);
}

void schedule_pilot_refused(struct schedule *s, const char *pilot, const char *text)
{
	struct schedule_refused *r = &s->refused;

	if (text) {
		snprintf(r->pilot, sizeof(r->pilot), "%s", pilot);
		snprintf(r->text, sizeof(r->text), "%s", text);
		r->until = s->clock + REFUSED_SHOWN;
	} else if (!strcmp(r->pilot, pilot)) {
		r->text[0] = '\0';
	}
}

const char *schedule_refused_pilot(const struct schedule *s)
{
	return s->clock < s->refused.until ? s->refused.text : "";
}
