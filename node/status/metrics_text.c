/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_text.c - write the metrics in the Prometheus text format 0.0.4. Names, units and suffixes follow its conventions: base
 * units (seconds, bytes), `_total` for counters. */
#include <string.h>

#include "node/base/json_get.h"
#include "node/base/version.h"
#include "node/status/status.h"

static void put_head(struct html *h, const char *name, const char *type, const char *help)
{
	html_printf(h, "# HELP tomonode_%s %s\n# TYPE tomonode_%s %s\n", name, help, name, type);
}

static void put_number(struct html *h, const char *name, const char *type, const char *help, double value)
{
	put_head(h, name, type, help);
	html_printf(h, "tomonode_%s %.17g\n", name, value);
}

/* Write name{key="value"} number. */
static void put_labelled(struct html *h, const char *name, const char *key, const char *value, double number)
{
	html_printf(h, "tomonode_%s{%s=\"%s\"} %.17g\n", name, key, value, number);
}

static void put_times(struct html *h, const char *name, const char *help, const struct metrics_times *t)
{
	double below = 0;

	put_head(h, name, "histogram", help);
	for (size_t i = 0; i < METRICS_BUCKETS; i++) {
		below += t->bucket[i];
		html_printf(h, "tomonode_%s_bucket{le=\"%g\"} %.17g\n", name, metrics_bounds[i], below);
	}
	html_printf(h, "tomonode_%s_bucket{le=\"+Inf\"} %.17g\ntomonode_%s_sum %.17g\ntomonode_%s_count %.17g\n", name, t->count,
		    name, t->sum / 1e6, name, t->count);
}

static void put_received(struct html *h, const struct status *s)
{
	static const char *const names[] = {[CLASSIFIED_MEMBER] = "member",
					    [CLASSIFIED_IGNORED] = "ignored",
					    [CLASSIFIED_REFUSED] = "refused",
					    [CLASSIFIED_CONFLICT] = "conflict",
					    [CLASSIFIED_COMPANION] = "companion"};

	put_number(h, "instances_received_total", "counter", "Objects that were stored and acknowledged.",
		   (double)s->totals.instances);
	put_number(h, "received_bytes_total", "counter", "Bytes of those objects as files.", (double)s->totals.bytes);
	put_number(h, "instances_waiting", "gauge", "Stored objects that are not classified yet.", (double)s->facts.unindexed);
	put_head(h, "instances_classified_total", "counter",
		 "Classification of stored objects: member of a case, ignored (nothing to reconstruct), refused, conflict (other "
		 "content under a known UID), companion (a CT image that PET cases may need).");
	for (int f = CLASSIFIED_MEMBER; f <= CLASSIFIED_COMPANION; f++)
		put_labelled(h, "instances_classified_total", "classification", names[f], (double)s->totals.classified[f]);
}

static void put_jobs(struct html *h, const struct status *s)
{
	put_head(h, "jobs", "gauge", "Cases by state.");
	for (int state = JOB_COLLECTING; state <= JOB_IMPOSSIBLE; state++)
		put_labelled(h, "jobs", "state", job_state_name((enum job_state)state), (double)s->by_state[state]);
	put_number(h, "jobs_warned", "gauge", "Delivered cases whose result has warnings, not only standing ones.",
		   (double)s->by_group[GROUP_WARNED]);
	put_head(h, "job_events_total", "counter", "Events of cases by name.");
	for (int e = 0; e < METRICS_EVENTS; e++)
		if (s->metrics.events[e] > 0)
			put_labelled(h, "job_events_total", "event", job_event_name((enum job_event)e), s->metrics.events[e]);
	put_times(h, "wait_seconds", "From a complete case to the start of its reconstruction.", &s->metrics.wait);
	put_times(h, "reconstruction_seconds", "From the start of a reconstruction to its result.", &s->metrics.reconstruction);
	put_times(h, "delivery_seconds", "From a result to its last destination.", &s->metrics.delivery);
	put_times(h, "case_seconds", "From the last image of a case to its last destination.", &s->metrics.all);
}

static void put_delivered(struct html *h, const char *destination, const char *result, double n)
{
	html_printf(h, "tomonode_deliveries_total{destination=\"%s\",result=\"%s\"} %.17g\n", destination, result, n);
}

static void put_deliveries(struct html *h, const struct status *s)
{
	put_head(h, "deliveries_total", "counter",
		 "Objects sent and refused, and attempts that failed temporarily, by destination.");
	for (size_t i = 0; i < s->metrics.n_destinations; i++) {
		const struct metrics_deliveries *d = &s->metrics.destinations[i];

		put_delivered(h, d->name, "sent", d->sent);
		put_delivered(h, d->name, "refused", d->refused);
		put_delivered(h, d->name, "failed", d->failed);
	}
	put_head(h, "deliveries_waiting", "gauge", "Cases whose result waits for this destination.");
	for (size_t i = 0; i < s->facts.n_destinations; i++)
		put_labelled(h, "deliveries_waiting", "destination", s->facts.destinations[i].name,
			     (double)s->facts.destinations[i].waiting);
	put_head(h, "deliveries_refused", "gauge", "Cases that this destination refused permanently, without a retry since.");
	for (size_t i = 0; i < s->facts.n_destinations; i++)
		put_labelled(h, "deliveries_refused", "destination", s->facts.destinations[i].name,
			     (double)s->facts.destinations[i].refused);
	put_head(h, "destination_down", "gauge", "1 while cases wait for this destination and its last attempt failed.");
	for (size_t i = 0; i < s->facts.n_destinations; i++)
		put_labelled(h, "destination_down", "destination", s->facts.destinations[i].name, s->facts.destinations[i].down);
}

/* The number of problems of each id: the list of /health. */
static void put_problems(struct html *h, const struct status *s)
{
	put_head(h, "problems", "gauge", "Problems of the node, by id and severity, as /health lists them.");
	for (size_t i = 0; i < s->problems.n; i++) {
		const struct node_problem *p = &s->problems.list[i];
		size_t same = 0;
		bool first = true;

		for (size_t k = 0; k < s->problems.n; k++) {
			first = first && (k >= i || strcmp(s->problems.list[k].id, p->id) != 0);
			same += !strcmp(s->problems.list[k].id, p->id);
		}
		if (first)
			html_printf(h, "tomonode_problems{id=\"%s\",severity=\"%s\"} %zu\n", p->id,
				    p->critical ? "critical" : "warning", same);
	}
}

static void put_certificates(struct html *h, const struct status *s)
{
	const struct manager_facts *m = &s->facts.from_manager;

	put_head(h, "certificate_expiry_timestamp_seconds", "gauge",
		 "When a certificate or revocation list ends, since the epoch.");
	for (size_t i = 0; i < m->n_certificates; i++) {
		const struct node_certificate *c = &m->certificates[i];

		if (c->unusable[0])
			continue;
		html_printf(h, "tomonode_certificate_expiry_timestamp_seconds{of=\"%s\",file=\"%s\"} %.0f\n", c->whose, c->file,
			    c->until);
	}
}

/* Nothing without pilots on Slurm. */
static void put_cluster(struct html *h, const struct node_cluster *c)
{
	if (!c->used)
		return;
	put_number(h, "cluster_up", "gauge", "1 while Slurm replies and runs the pilots' jobs.", !strcmp(c->state, "up"));
	put_head(h, "cluster_pilots", "gauge", "Slurm jobs of pilots: pending in the queue, starting, idle, busy.");
	put_labelled(h, "cluster_pilots", "state", "pending", c->pending);
	put_labelled(h, "cluster_pilots", "state", "starting", c->running - c->idle - c->busy);
	put_labelled(h, "cluster_pilots", "state", "idle", c->idle);
	put_labelled(h, "cluster_pilots", "state", "busy", c->busy);
	put_number(h, "cluster_submitted_total", "counter", "Jobs submitted to Slurm.", (double)c->submitted);
	put_number(h, "cluster_requeued_total", "counter", "Jobs that Slurm started again.", (double)c->requeued);
	put_head(h, "cluster_queue_seconds", "summary", "Time of the jobs in the queue of Slurm.");
	html_printf(h, "tomonode_cluster_queue_seconds_sum %.17g\ntomonode_cluster_queue_seconds_count %llu\n", c->queued_seconds,
		    (unsigned long long)c->started);
}

static void put_node(struct html *h, const struct status *s)
{
	const json_t *device;
	size_t i;

	put_head(h, "build_info", "gauge", "Always 1; version and revision are in the labels.");
	html_printf(h, "tomonode_build_info{version=\"%s\",revision=\"%s\"} 1\n", TOMONODE_VERSION, TOMONODE_REVISION);
	put_number(h, "healthy", "gauge", "1 while /health reports that the node is healthy.", status_is_healthy(s));
	put_number(h, "journal_readable", "gauge",
		   "1 while the journal can be read; otherwise metrics that come from it are omitted.", s->journal != NULL);
	if (s->node) {
		put_number(h, "start_time_seconds", "gauge", "When the node was started, since the epoch.",
			   json_get_number(s->node, "started"));
		put_number(h, "journal_damaged", "gauge", "1 if the journal was found damaged.",
			   json_string_length(json_object_get(s->node, "journal")) > 0);
		put_number(h, "receiver_running", "gauge", "1 while the receiver runs.", json_get_bool(s->node, "receiver"));
		put_head(h, "device_disabled", "gauge", "1 while a device is disabled.");
		json_array_foreach(json_object_get(s->node, "devices"), i, device)
		{
			const char *name = json_string_value(json_object_get(device, "name"));

			html_printf(h, "tomonode_device_disabled{slot=\"%zu\",device=\"%s\"} %d\n", i, name ? name : "",
				    json_get_bool(device, "disabled"));
		}
	}
	put_cluster(h, &s->facts.from_manager.cluster);
	put_problems(h, s);
	put_certificates(h, s);
	put_number(h, "spool_free_bytes", "gauge", "Free space on the spool's disk.", (double)s->facts.disk_free);
	put_number(h, "spool_size_bytes", "gauge", "Size of the spool's disk.", (double)s->facts.disk_size);
	put_number(h, "spool_orphans", "gauge", "Images in orphans/ of the spool, which are not in the journal.",
		   (double)s->facts.orphans);
	put_number(h, "spool_reserve_bytes", "gauge", "Minimum free space: below it, objects are refused.",
		   (double)s->config->node.reserve);
}

void status_write_metrics(struct html *h, const struct status *s)
{
	h->metrics = true;
	put_node(h, s);
	if (!s->journal)
		return; /* write no counters: a value of 0 would look like a reset */
	put_received(h, s);
	put_jobs(h, s);
	put_deliveries(h, s);
}
