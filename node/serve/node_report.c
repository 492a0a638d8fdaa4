/* SPDX-License-Identifier: Apache-2.0 */
#include "node/serve/node_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node/store/event.h"
#include "node/store/node_file.h"

static const char *state_name(enum slot_state state)
{
	static const char *const names[] = {
		[SLOT_DOWN] = "down", [SLOT_STARTING] = "starting", [SLOT_IDLE] = "ready",
		[SLOT_BUSY] = "busy", [SLOT_ENDING] = "ending",
	};

	return names[state];
}

/* Return true if a receiver runs; process_table_find() does not accept a const table. */
static bool receiver_runs(const struct schedule *s)
{
	for (size_t i = 0; i < s->processes.n; i++)
		if (s->processes.list[i].role == PROCESS_RECEIVER && !s->processes.list[i].retired)
			return true;
	return false;
}

/* The members of manager_facts_json(), and {"started", "stopping": bool, "devices": [{"name", "device", "state", "disabled",
 * "spare", "reason", "again", "seat", "pilot"}]}; again: time at which a disabled device is tried again, s since the epoch; seat:
 * the device is that of a pilot, whose ID is `pilot`. Returns a new reference. */
static json_t *make_report(const struct node_report *r, const struct schedule *s, const struct manager_facts *facts, double now)
{
	struct manager_facts current = *facts;
	json_t *report;
	json_t *devices = json_array();

	for (size_t i = 0; i < s->slots.n; i++) {
		const struct slot *slot = &s->slots.list[i];
		/* In whole seconds, because each change causes another write. */
		double again = slot->disabled && slot->state == SLOT_DOWN ? round(now + slot->at - s->clock) : 0;

		json_array_append_new(devices,
				      json_pack("{s:o, s:o, s:s, s:b, s:b, s:o, s:f, s:b, s:o}", "name",
						event_json_text(slot->name), "device", event_json_text(slot->device), "state",
						slot->seat && slot->state == SLOT_STARTING ? "waiting" : state_name(slot->state),
						"disabled", slot->disabled, "spare", slot->spare, "reason",
						event_json_text(slot->disabled ? slot->reason : ""), "again", again, "seat",
						slot->seat, "pilot", event_json_text(slot->pilot)));
	}
	current.receiver = receiver_runs(s);
	report = manager_facts_json(&current);
	json_object_update_new(report,
			       json_pack("{s:f, s:b, s:o}", "started", r->started, "stopping", s->stopping, "devices", devices));
	return report;
}

void node_report_write(struct node_report *r, const struct schedule *s, const struct manager_facts *facts, double now)
{
	char *text;

	json_decref(r->now);
	r->now = make_report(r, s, facts, now);
	text = event_json_dump(json_incref(r->now));
	if (text && r->text && !strcmp(text, r->text)) {
		r->current = s->clock;
		free(text);
	} else if (text && node_file_write(s->config->node.spool, text)) {
		r->current = s->clock;
		free(r->text);
		r->text = text;
	} else {
		free(text);
	}
}

void node_report_clear(struct node_report *r)
{
	json_decref(r->now);
	free(r->text);
	r->now = NULL;
	r->text = NULL;
}
