/* SPDX-License-Identifier: Apache-2.0 */
/* status_node.c - write what the overview shows beside the cases: destinations, devices, disk, senders, objects without a case.
 */
#include <string.h>

#include "node/base/bytes_text.h"
#include "node/base/json_get.h"
#include "node/base/plural.h"
#include "node/jobs/job_report.h"
#include "node/status/status_internal.h"

static void put_destinations(struct html *h, const struct status *s)
{
	char when[40];

	html_put(h, "<section id=\"destinations\" aria-labelledby=\"h-destinations\"><h2 "
		    "id=\"h-destinations\">Destinations</h2><ul>\n");
	for (size_t i = 0; i < s->facts.n_destinations; i++) {
		const struct destination_state *d = &s->facts.destinations[i];

		html_printf(h, "<li><h3>%s ", d->name);
		if (d->down)
			status_page_badge(h, TONE_BAD, "Not reached");
		else if (d->refused > 0)
			status_page_badge(h, TONE_WARN, "Refuses");
		else if (d->waiting > 0)
			status_page_badge(h, TONE_WORK, "Sending");
		else if (d->last_sent > 0)
			status_page_badge(h, TONE_GOOD, "Works");
		else
			status_page_badge(h, TONE_QUIET, "Not used yet");
		html_put(h, "</h3><p class=\"facts\">");
		if (d->conf) {
			html_printf(h, "%s at %s:%d", d->conf->aet, d->conf->host, d->conf->port);
		} else {
			html_put(h, "no longer in the configuration");
		}
		html_put(h, "</p>");
		if (d->down) {
			html_printf(h, "<p class=\"sentence emphasized\">%s</p>", d->reason[0] ? d->reason : "No answer");
		}
		if (d->waiting > 0 || d->refused > 0)
			html_printf(h, "<p>%zu waiting, %zu refused</p>", d->waiting, d->refused);
		if (d->down && d->next > s->now) {
			status_text_time(d->next, when, sizeof(when));
			html_printf(h, "<p>Next attempt at <time>%s</time></p>", when);
		}
		if (d->last_sent > 0) {
			status_text_time(d->last_sent, when, sizeof(when));
			html_printf(h, "<p class=\"quiet\">Last result sent <time>%s</time></p>", when);
		}
		html_put(h, "</li>\n");
	}
	if (s->facts.n_destinations == 0)
		html_put(h, "<li class=\"none\">No destination is configured.</li>");
	html_put(h, "</ul></section>\n");
}

static void put_device(struct html *h, const json_t *one)
{
	static const struct {
		const char *state, *word;
		enum status_tone tone;
	} words[] = {{"ready", "Ready", TONE_GOOD},
		     {"busy", "Working", TONE_WORK},
		     {"starting", "Starting", TONE_QUIET},
		     {"waiting", "Waits for a pilot", TONE_QUIET}};
	const char *state = json_get_text(one, "state"), *name = json_get_text(one, "device");
	double again = json_get_number(one, "again");
	const size_t n = sizeof(words) / sizeof(words[0]);
	size_t i = 0;
	char when[40];

	html_printf(h, "<li><h3>%s ", name[0] ? name : json_get_text(one, "name"));
	while (i < n && strcmp(words[i].state, state) != 0)
		i++;
	if (json_get_bool(one, "disabled"))
		status_page_badge(h, TONE_BAD, "Disabled");
	else
		status_page_badge(h, i < n ? words[i].tone : TONE_QUIET, i < n ? words[i].word : "Stopped");
	html_put(h, "</h3>");
	if (json_get_text(one, "reason")[0]) {
		html_printf(h, "<p class=\"sentence emphasized\">%s</p>", json_get_text(one, "reason"));
	}
	if (again > 0) {
		status_text_time(again, when, sizeof(when));
		html_printf(h, "<p>Next attempt at <time>%s</time></p>", when);
	}
	if (json_get_bool(one, "spare"))
		html_put(h, "<p class=\"quiet\">Used while other devices are disabled.</p>");
	html_put(h, "</li>\n");
}

static void put_devices(struct html *h, const struct status *s)
{
	const json_t *list = json_object_get(s->node, "devices"), *one;
	const struct node_cluster *c = &s->facts.from_manager.cluster;
	size_t i;

	html_put(h, "<section id=\"devices\" aria-labelledby=\"h-devices\"><h2 id=\"h-devices\">Devices</h2><ul>\n");
	json_array_foreach(list, i, one) put_device(h, one);
	if (json_array_size(list) == 0 && !c->used)
		html_put(h, "<li class=\"none\">Not known yet.</li>");
	html_put(h, "</ul>");
	if (c->used) {
		char text[300];

		node_cluster_text(c, text, sizeof(text));
		html_printf(h, "<p>%s</p>", text);
	}
	html_put(h, "</section>\n");
}

static void put_disk(struct html *h, const struct status *s)
{
	double used = s->facts.disk_size ? 100 * (1 - (double)s->facts.disk_free / (double)s->facts.disk_size) : 0;
	char free_text[32], size[32], reserve[32];

	bytes_text((double)s->facts.disk_free, free_text, sizeof(free_text));
	bytes_text((double)s->facts.disk_size, size, sizeof(size));
	bytes_text((double)s->config->node.reserve, reserve, sizeof(reserve));
	html_put(h, "<section id=\"disk\" aria-labelledby=\"h-disk\"><h2 id=\"h-disk\">Disk</h2>\n");
	html_printf(h,
		    "<p><meter min=\"0\" max=\"100\" high=\"90\" value=\"%.0f\" aria-label=\"Disk in use\">%.0f %%</meter></p>",
		    used, used);
	html_printf(h, "<p>%s free of %s</p><p class=\"quiet\">Below %s new images are refused.</p></section>\n", free_text, size,
		    reserve);
}

static void put_unassigned(struct html *h, const struct status *s)
{
	const json_t *one;
	char when[40];
	size_t i;

	if (json_array_size(s->unassigned) == 0) {
		html_put(h, "<section id=\"unassigned\" hidden></section>\n");
		return;
	}
	html_put(h, "<section id=\"unassigned\" aria-labelledby=\"h-unassigned\"><h2 id=\"h-unassigned\">Unassigned</h2>"
		    "<p class=\"quiet\">Objects that were received and kept, but belong to no case. The newest:</p><ul>\n");
	json_array_foreach(s->unassigned, i, one)
	{
		long long count = json_get_integer(one, "count");

		if (i == STATUS_UNASSIGNED_MAX)
			break;
		status_text_time(json_get_number(one, "received"), when, sizeof(when));
		html_printf(h,
			    "<li><p>%lld object%s, <time>%s</time> from %s <span class=\"number\">%s</span></p><p "
			    "class=\"facts\">%s</p><p class=\"hint\">",
			    count, plural(count), when, json_get_text(one, "calling"), json_get_text(one, "classification"),
			    json_get_text(one, "reason"));
		html_put(h, job_report_unassigned_hint(one));
		html_put(h, "</p></li>\n");
	}
	html_put(h, "</ul></section>\n");
}

static void put_associations(struct html *h, const struct status *s)
{
	char when[40];

	if (s->facts.from_manager.n_associations == 0) {
		html_put(h, "<section id=\"associations\" hidden></section>\n");
		return;
	}
	html_put(h,
		 "<section id=\"associations\" aria-labelledby=\"h-associations\"><h2 id=\"h-associations\">Associations "
		 "without an object</h2><p class=\"quiet\">Senders of which nothing was stored, or that offered classes that are "
		 "refused. The newest:</p><ul>\n");
	for (size_t i = 0; i < s->facts.from_manager.n_associations; i++) {
		const struct node_association *a = &s->facts.from_manager.associations[i];

		status_text_time(a->last, when, sizeof(when));
		html_printf(h,
			    "<li><p>%ld time%s, <time>%s</time> from %s <span class=\"number\">%s</span></p><p class=\"facts\">"
			    "%s</p></li>\n",
			    a->count, plural(a->count), when, a->calling[0] ? a->calling : "an unknown AE title", a->host,
			    a->reason);
	}
	html_put(h, "</ul></section>\n");
}

static bool has_sent(const struct status *s, const char *aet)
{
	for (size_t i = 0; i < s->n_senders; i++)
		if (!strcmp(s->senders[i].calling, aet))
			return true;
	return false;
}

static void put_senders(struct html *h, const struct status *s)
{
	size_t silent = 0;
	char when[40];

	for (size_t i = 0; i < s->config->n_peers; i++)
		silent += s->config->peers[i].aet[0] && !has_sent(s, s->config->peers[i].aet);
	if (s->n_senders + silent == 0) {
		html_put(h, "<section id=\"senders\" hidden></section>\n");
		return;
	}
	html_put(h, "<section id=\"senders\" aria-labelledby=\"h-senders\"><h2 id=\"h-senders\">Senders</h2><ul>\n");
	for (size_t i = 0; i < s->n_senders; i++) {
		const struct status_sender *one = &s->senders[i];

		status_text_time(one->last, when, sizeof(when));
		html_printf(h,
			    "<li><h3>%s <span class=\"number\">%s</span></h3><p class=\"facts\">Last object <time>%s</time></p>"
			    "</li>\n",
			    one->calling[0] ? one->calling : "without a name", one->host, when);
	}
	for (size_t i = 0; i < s->config->n_peers; i++)
		if (s->config->peers[i].aet[0] && !has_sent(s, s->config->peers[i].aet)) {
			html_printf(h, "<li><h3>%s</h3><p class=\"facts\">No object yet</p></li>\n", s->config->peers[i].aet);
		}
	html_put(h, "</ul></section>\n");
}

void status_page_node(struct html *h, const struct status *s)
{
	put_destinations(h, s);
	put_devices(h, s);
	put_disk(h, s);
	put_senders(h, s);
	put_unassigned(h, s);
	put_associations(h, s);
}
