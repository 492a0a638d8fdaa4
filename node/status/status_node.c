/* SPDX-License-Identifier: Apache-2.0 */
/* status_node.c - write what the overview shows beside the cases: destinations, devices, disk, senders, objects without a case.
 */
#include <string.h>

#include "node/base/bytes_text.h"
#include "node/base/json_get.h"
#include "node/base/plural.h"
#include "node/base/time_text.h"
#include "node/jobs/job_report.h"
#include "node/status/status_internal.h"

static void put_destination(struct html *h, const struct destination_state *d, double now)
{
	const struct {
		bool is;
		enum status_tone tone;
		const char *word;
	} words[] = {{d->down, TONE_BAD, "Not reached"},
		     {d->refused > 0, TONE_WARN, "Refuses"},
		     {d->waiting > 0, TONE_WORK, "Sending"},
		     {d->last_sent > 0, TONE_GOOD, "Works"},
		     {true, TONE_QUIET, "Not used yet"}},
	  *now_is = words;
	char when[TIME_TEXT_SIZE];

	while (!now_is->is)
		now_is++;
	html_printf(h, "<li><h3>%s " STATUS_BADGE "</h3><p class=\"facts\">", d->name, status_text_tone(now_is->tone),
		    now_is->word);
	if (d->conf && d->conf->kind == DESTINATION_FOLDER)
		html_printf(h, "folder <bdi>%s</bdi></p>", d->conf->path);
	else if (d->conf && d->conf->kind == DESTINATION_STOW)
		html_printf(h, "<bdi>%s</bdi></p>", d->conf->url);
	else if (d->conf)
		html_printf(h, "%s at %s:%d</p>", d->conf->aet, d->conf->host, d->conf->port);
	else
		html_put(h, "no longer in the configuration</p>");
	if (d->down)
		html_printf(h, "<p class=\"sentence emphasized\">%s</p>", d->reason[0] ? d->reason : "No answer");
	if (d->waiting > 0 || d->refused > 0)
		html_printf(h, "<p>%zu waiting, %zu refused</p>", d->waiting, d->refused);
	if (d->down && d->next > now)
		html_printf(h, "<p>Next attempt at <time>%s</time></p>", time_text(d->next, "never", when));
	if (d->last_sent > 0)
		html_printf(h, "<p class=\"quiet\">Last result sent <time>%s</time></p>", time_text(d->last_sent, "never", when));
	html_put(h, "</li>\n");
}

static void put_destinations(struct html *h, const struct status *s)
{
	status_page_section(h, "destinations", "Destinations");
	html_put(h, "<ul>\n");
	for (size_t i = 0; i < s->facts.n_destinations; i++)
		put_destination(h, &s->facts.destinations[i], s->now);
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
		     {"waiting", "Waits for a pilot", TONE_QUIET},
		     {"", "Stopped", TONE_QUIET}},
	  disabled = {"", "Disabled", TONE_BAD}, *is = words;
	const char *name = json_get_text(one, "device"), *reason = json_get_text(one, "reason");
	double again = json_get_number(one, "again");
	char when[TIME_TEXT_SIZE];

	while (is->state[0] && strcmp(is->state, json_get_text(one, "state")) != 0)
		is++;
	if (json_get_bool(one, "disabled"))
		is = &disabled;
	html_printf(h, "<li><h3>%s " STATUS_BADGE "</h3>", name[0] ? name : json_get_text(one, "name"),
		    status_text_tone(is->tone), is->word);
	if (reason[0])
		html_printf(h, "<p class=\"sentence emphasized\">%s</p>", reason);
	if (again > 0)
		html_printf(h, "<p>Next attempt at <time>%s</time></p>", time_text(again, "never", when));
	if (json_get_bool(one, "spare"))
		html_put(h, "<p class=\"quiet\">Used while other devices are disabled.</p>");
	html_put(h, "</li>\n");
}

static void put_devices(struct html *h, const struct status *s)
{
	const json_t *list = json_object_get(s->node, "devices"), *one;
	const struct node_cluster *c = &s->facts.from_manager.cluster;
	size_t i;

	status_page_section(h, "devices", "Devices");
	html_put(h, "<ul>\n");
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
	status_page_section(h, "disk", "Disk");
	html_printf(h,
		    "\n<p><meter min=\"0\" max=\"100\" high=\"90\" value=\"%.0f\" aria-label=\"Disk in use\">%.0f %%</meter></p>",
		    used, used);
	html_printf(h, "<p>%s free of %s</p><p class=\"quiet\">Below %s new images are refused.</p></section>\n", free_text, size,
		    reserve);
}

static void put_unassigned(struct html *h, const struct status *s)
{
	size_t n = json_array_size(s->unassigned);
	char when[TIME_TEXT_SIZE];

	status_page_section(h, "unassigned", n > 0 ? "Unassigned" : NULL);
	if (n == 0)
		return;
	html_put(h, "<p class=\"quiet\">Objects that were received and kept, but belong to no case. The newest:</p><ul>\n");
	for (size_t i = 0; i < n && i < STATUS_UNASSIGNED_MAX; i++) {
		const json_t *one = json_array_get(s->unassigned, i);
		long long count = json_get_integer(one, "count");

		html_printf(h,
			    "<li><p>%lld object%s, <time>%s</time> from %s <span class=\"number\">%s</span></p><p "
			    "class=\"facts\">%s</p><p class=\"hint\">%s</p></li>\n",
			    count, plural(count), time_text(json_get_number(one, "received"), "never", when),
			    json_get_text(one, "calling"), json_get_text(one, "classification"), json_get_text(one, "reason"),
			    job_report_unassigned_hint(one));
	}
	html_put(h, "</ul></section>\n");
}

static void put_associations(struct html *h, const struct status *s)
{
	const struct manager_facts *m = &s->facts.from_manager;
	char when[TIME_TEXT_SIZE];

	status_page_section(h, "associations", m->n_associations > 0 ? "Senders that stored nothing" : NULL);
	if (m->n_associations == 0)
		return;
	html_put(h, "<p class=\"quiet\">Senders of which nothing was stored, or that offered classes that are refused. The "
		    "newest:</p><ul>\n");
	for (size_t i = 0; i < m->n_associations; i++) {
		const struct node_association *a = &m->associations[i];

		html_printf(h,
			    "<li><p>%ld time%s, <time>%s</time> from %s <span class=\"number\">%s</span></p><p class=\"facts\">"
			    "%s</p></li>\n",
			    a->count, plural(a->count), time_text(a->last, "never", when),
			    a->calling[0] ? a->calling : "an unknown AE title", a->host, a->reason);
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
	char when[TIME_TEXT_SIZE];

	for (size_t i = 0; i < s->config->n_peers; i++)
		silent += s->config->peers[i].aet[0] && !has_sent(s, s->config->peers[i].aet);
	status_page_section(h, "senders", s->n_senders + silent > 0 ? "Senders" : NULL);
	if (s->n_senders + silent == 0)
		return;
	html_put(h, "<ul>\n");
	for (size_t i = 0; i < s->n_senders; i++) {
		const struct status_sender *one = &s->senders[i];

		html_printf(h,
			    "<li><h3>%s <span class=\"number\">%s</span></h3><p class=\"facts\">Last object <time>%s</time></p>"
			    "</li>\n",
			    one->calling[0] ? one->calling : "without a name", one->host, time_text(one->last, "never", when));
	}
	for (size_t i = 0; i < s->config->n_peers; i++)
		if (s->config->peers[i].aet[0] && !has_sent(s, s->config->peers[i].aet))
			html_printf(h, "<li><h3>%s</h3><p class=\"facts\">No object yet</p></li>\n", s->config->peers[i].aet);
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
