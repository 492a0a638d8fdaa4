/* SPDX-License-Identifier: Apache-2.0 */
/* status_node.c - write what the overview shows beside the cases: destinations, devices, disk, senders, objects without a case.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/bytes_text.h"
#include "node/base/json_get.h"
#include "node/base/sentence.h"
#include "node/base/time_text.h"
#include "node/jobs/job_report.h"
#include "node/jobs/jobs_settled.h"
#include "node/status/status_internal.h"

#define STANDING_LOOKED 500 /* newest cases that are looked at */

/* A paragraph with words and a time behind them. */
static void put_time(struct html *h, const char *class, const char *words, double time)
{
	char when[TIME_TEXT_SIZE];

	html_printf(h, "<p class=\"%s\">%s <time>%s</time></p>", class, words, time_text(time, "never", when));
}

static void put_destination(struct html *h, const struct status *s, const struct destination_state *d)
{
	const struct {
		bool is;
		enum status_tone tone;
		const char *word;
	} words[] = {{d->down, TONE_BAD, "Not reached"},
		     {d->refused > d->unanswered, TONE_WARN, "Refuses"},
		     {d->unanswered > 0, TONE_WARN, "Not committed"},
		     {d->unconfirmed > 0, TONE_WARN, "Commitment late"},
		     {d->waiting > 0, TONE_WORK, "Sending"},
		     {d->last_sent > 0, TONE_GOOD, "Works"},
		     {true, TONE_QUIET, "Not used yet"}},
	  *now_is = words;

	while (!now_is->is)
		now_is++;
	html_printf(h, "<li><h3>%s " STATUS_BADGE "</h3><p class=\"facts\">", d->name, status_text_tone(now_is->tone),
		    say(s->language, now_is->word));
	if (d->conf && d->conf->kind == DESTINATION_FOLDER)
		html_printf(h, "%s <bdi>%s</bdi></p>", say(s->language, "folder"), d->conf->path);
	else if (d->conf && d->conf->kind == DESTINATION_STOW)
		html_printf(h, "<bdi>%s</bdi></p>", d->conf->url);
	else if (d->conf)
		html_printf(h, "%s · %s:%d</p>", d->conf->aet, d->conf->host, d->conf->port);
	else
		html_printf(h, "%s</p>", say(s->language, "no longer in the configuration"));
	if (d->down)
		html_printf(h, "<p class=\"sentence emphasized\">%s</p>",
			    d->reason[0] ? d->reason : say(s->language, "No answer"));
	if (d->waiting > 0 || d->refused > d->unanswered) {
		html_put(h, "<p>");
		html_printf(h, say(s->language, "%zu waiting, %zu refused"), d->waiting, d->refused - d->unanswered);
		html_put(h, "</p>");
	}
	if (d->down && d->next > s->now)
		put_time(h, "", say(s->language, "Next attempt at"), d->next);
	if (d->last_sent > 0)
		put_time(h, "quiet", say(s->language, "Last result sent"), d->last_sent);
	html_put(h, "</li>\n");
}

static void put_destinations(struct html *h, const struct status *s)
{
	status_page_section(h, "destinations", say(s->language, "Destinations"));
	html_put(h, "<ul>\n");
	for (size_t i = 0; i < s->facts.n_destinations; i++)
		put_destination(h, s, &s->facts.destinations[i]);
	if (s->facts.n_destinations == 0)
		html_printf(h, "<li class=\"none\">%s</li>", say(s->language, "No destination is configured."));
	html_put(h, "</ul></section>\n");
}

static void put_device(struct html *h, const struct status *s, const json_t *one)
{
	static const struct {
		const char *state, *word;
		enum status_tone tone;
	} words[] = {{"ready", "Ready", TONE_GOOD},
		     {"busy", "Working", TONE_WORK},
		     {"starting", "Starting", TONE_QUIET},
		     {"waiting", "Waits for a pilot", TONE_QUIET},
		     {"", "Stopped", TONE_QUIET}},
	  disabled = {"", "Disabled", TONE_BAD}, next = {"", "Starts by itself", TONE_QUIET}, *is = words;
	const char *name = json_get_text(one, "device"), *reason = json_get_text(one, "reason");
	double again = json_get_number(one, "again");

	while (is->state[0] && strcmp(is->state, json_get_text(one, "state")) != 0)
		is++;
	if (json_get_bool(one, "disabled"))
		is = &disabled;
	else if (!strcmp(json_get_text(one, "state"), "down") && !json_get_bool(s->node, "stopping"))
		is = &next; /* node/serve/slots.h: its worker has ended, another one is started */
	html_printf(h, "<li><h3>%s " STATUS_BADGE "</h3>", name[0] ? name : json_get_text(one, "name"),
		    status_text_tone(is->tone), say(s->language, is->word));
	if (reason[0])
		html_printf(h, "<p class=\"sentence emphasized\">%s</p>", reason);
	if (again > 0)
		put_time(h, "", say(s->language, "Next attempt at"), again);
	if (json_get_bool(one, "spare"))
		html_printf(h, "<p class=\"quiet\">%s</p>", say(s->language, "Used while other devices are disabled."));
	html_put(h, "</li>\n");
}

static void put_devices(struct html *h, const struct status *s)
{
	const json_t *list = json_object_get(s->node, "devices"), *one;
	const struct node_cluster *c = &s->facts.from_manager.cluster;
	size_t i;

	status_page_section(h, "devices", say(s->language, "Devices"));
	html_put(h, "<ul>\n");
	json_array_foreach(list, i, one) put_device(h, s, one);
	if (json_array_size(list) == 0 && !c->used)
		html_printf(h, "<li class=\"none\">%s</li>", say(s->language, "Not known yet."));
	html_put(h, "</ul>");
	if (c->used) {
		char text[300];

		node_cluster_text(c, text, sizeof(text));
		html_printf(h, "<p lang=\"en\">%s</p>", text);
	}
	html_put(h, "</section>\n");
}

static void keep_standing(struct status_standing *list, size_t *n, const struct status_standing *one)
{
	for (size_t i = 0; i < *n; i++)
		if (list[i].n == one->n && !strncmp(list[i].sentence, one->sentence, one->n) &&
		    !strcmp(list[i].calling, one->calling))
			return;
	if (*n < STATUS_STANDING_MAX)
		list[(*n)++] = *one;
}

static void find_standing(const struct status *s, const struct job_view *v, struct status_standing *ret, size_t *n)
{
	struct status_standing one = {.calling = v->calling, .sentence = v->warnings ? v->warnings : ""};

	if (v->state != JOB_DELIVERED || s->now - v->finished >= STATUS_LOOK_SECONDS)
		return;
	for (; (one.sentence = sentence_next(one.sentence, &one.n)); one.sentence += one.n)
		if (sentence_is_standing(one.sentence))
			keep_standing(ret, n, &one);
}

struct standing_search {
	const struct status *s;
	struct jobs_numbers jobs;
};

static int find_warned(void *ctx, const struct settled_row *row)
{
	struct standing_search *x = ctx;

	if (x->s->now - row->finished >= STATUS_LOOK_SECONDS || x->jobs.n == STANDING_LOOKED)
		return 1;
	return jobs_numbers_add(&x->jobs, row->job);
}

size_t status_standing_find(const struct status *s, struct status_standing ret[STATUS_STANDING_MAX])
{
	struct standing_search x = {.s = s};
	size_t n = 0;

	for (size_t i = s->jobs.n, looked = 0; i-- > 0 && looked < STANDING_LOOKED; looked += !s->jobs.list[i]->recorded)
		if (!s->jobs.list[i]->recorded)
			find_standing(s, s->jobs.list[i], ret, &n);
	if (s->journal)
		(void)journal_each_settled(s->journal, SETTLED_WITH_WARNINGS, find_warned, &x, NULL);
	for (size_t i = 0; i < x.jobs.n; i++) {
		const struct job_view *v = jobs_find(&s->jobs, x.jobs.list[i]);

		if (v)
			find_standing(s, v, ret, &n);
	}
	free(x.jobs.list);
	return n;
}

/* What is true of every result of a device is said once. */
static void put_standing(struct html *h, const struct status *s)
{
	struct status_standing list[STATUS_STANDING_MAX];
	size_t n = status_standing_find(s, list);
	char text[800];

	status_page_section(h, "standing", n > 0 ? say(s->language, "Standing warnings") : NULL);
	if (n == 0)
		return;
	html_printf(h, "<p class=\"quiet\">%s</p><ul>\n",
		    say(s->language, "True of each result of the device: no case needs a look because of them."));
	for (size_t i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%.*s", (int)list[i].n, list[i].sentence);
		html_printf(h, "<li><h3>%s</h3><p class=\"facts\" lang=\"en\">%s</p></li>\n",
			    list[i].calling[0] ? list[i].calling : say(s->language, "without a name"), text);
	}
	html_put(h, "</ul></section>\n");
}

static void put_disk(struct html *h, const struct status *s)
{
	double used = s->facts.disk_size ? 100 * (1 - (double)s->facts.disk_free / (double)s->facts.disk_size) : 0;
	char free_text[32], size[32], reserve[32];

	bytes_text((double)s->facts.disk_free, free_text, sizeof(free_text));
	bytes_text((double)s->facts.disk_size, size, sizeof(size));
	bytes_text((double)s->config->node.reserve, reserve, sizeof(reserve));
	status_page_section(h, "disk", say(s->language, "Disk"));
	html_printf(h, "\n<p><meter min=\"0\" max=\"100\" high=\"90\" value=\"%.0f\" aria-label=\"%s\">%.0f %%</meter></p><p>",
		    used, say(s->language, "Disk in use"), used);
	html_printf(h, say(s->language, "%s free of %s"), free_text, size);
	html_put(h, "</p><p class=\"quiet\">");
	html_printf(h, say(s->language, "Below %s new images are refused."), reserve);
	html_put(h, "</p></section>\n");
}

static void put_unassigned(struct html *h, const struct status *s)
{
	size_t n = json_array_size(s->unassigned);
	char when[TIME_TEXT_SIZE];

	status_page_section(h, "unassigned", n > 0 ? say(s->language, "Unassigned") : NULL);
	if (n == 0)
		return;
	html_printf(h, "<p class=\"quiet\">%s</p><ul>\n",
		    say(s->language, "Objects that were received and kept, but belong to no case. The newest:"));
	for (size_t i = 0; i < n && i < STATUS_UNASSIGNED_MAX; i++) {
		const json_t *one = json_array_get(s->unassigned, i);
		const char *class = json_get_text(one, "classification");
		long long count = json_get_integer(one, "count");

		html_put(h, "<li><p>");
		html_printf(h,
			    say(s->language,
				count == 1 ? "%lld object, <time>%s</time> from %s" : "%lld objects, <time>%s</time> from %s"),
			    count, time_text(json_get_number(one, "received"), "never", when), json_get_text(one, "calling"));
		html_printf(
			h,
			" <span class=\"number\">%s</span></p><p class=\"facts\" lang=\"en\">%s</p><p class=\"hint\">%s</p></li>\n",
			say(s->language, class), json_get_text(one, "reason"), say(s->language, job_report_unassigned_hint(one)));
	}
	html_put(h, "</ul></section>\n");
}

static void put_associations(struct html *h, const struct status *s)
{
	const struct manager_facts *m = &s->facts.from_manager;
	char when[TIME_TEXT_SIZE];

	status_page_section(h, "associations", m->n_associations > 0 ? say(s->language, "Senders that stored nothing") : NULL);
	if (m->n_associations == 0)
		return;
	html_printf(
		h, "<p class=\"quiet\">%s</p><ul>\n",
		say(s->language, "Senders of which nothing was stored, or that offered classes that are refused. The newest:"));
	for (size_t i = 0; i < m->n_associations; i++) {
		const struct node_association *a = &m->associations[i];

		html_put(h, "<li><p>");
		html_printf(h,
			    say(s->language,
				a->count == 1 ? "%ld time, <time>%s</time> from %s" : "%ld times, <time>%s</time> from %s"),
			    a->count, time_text(a->last, "never", when),
			    a->calling[0] ? a->calling : say(s->language, "an unknown AE title"));
		html_printf(h, " <span class=\"number\">%s</span></p><p class=\"facts\" lang=\"en\">%s</p></li>\n", a->host,
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

	for (size_t i = 0; i < s->config->n_peers; i++)
		silent += s->config->peers[i].aet[0] && !has_sent(s, s->config->peers[i].aet);
	status_page_section(h, "senders", s->n_senders + silent > 0 ? say(s->language, "Senders") : NULL);
	if (s->n_senders + silent == 0)
		return;
	html_put(h, "<ul>\n");
	for (size_t i = 0; i < s->n_senders; i++) {
		const struct status_sender *one = &s->senders[i];

		html_printf(h, "<li><h3>%s <span class=\"number\">%s</span></h3>",
			    one->calling[0] ? one->calling : say(s->language, "without a name"), one->host);
		put_time(h, "facts", say(s->language, "Last object"), one->last);
		html_put(h, "</li>\n");
	}
	for (size_t i = 0; i < s->config->n_peers; i++)
		if (s->config->peers[i].aet[0] && !has_sent(s, s->config->peers[i].aet))
			html_printf(h, "<li><h3>%s</h3><p class=\"facts\">%s</p></li>\n", s->config->peers[i].aet,
				    say(s->language, "No object yet"));
	html_put(h, "</ul></section>\n");
}

void status_page_node(struct html *h, const struct status *s)
{
	put_destinations(h, s);
	put_devices(h, s);
	put_standing(h, s);
	put_disk(h, s);
	put_senders(h, s);
	put_unassigned(h, s);
	put_associations(h, s);
}
