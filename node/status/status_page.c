/* SPDX-License-Identifier: Apache-2.0 */
/* status_page.c - write the overview: problems, cases, destinations, devices, disk.
 *
 * - The page works without script: forms, links, <details>, a refresh. node/status/web/status.js only replaces sections that
 *   changed.
 * - A section or case keeps its id between updates: script, focus and opened details depend on it.
 * - The page contains no style and no script itself: the Content-Security-Policy forbids them.
 */
#include <stdio.h>
#include <string.h>

#include "node/base/plural.h"
#include "node/base/version.h"
#include "node/jobs/job_report.h"
#include "node/status/status_internal.h"

void status_page_begin(struct html *h, const struct status *s, const char *title)
{
	char when[40];

	status_text_time(s->now, s->now, when, sizeof(when));
	html_put(h, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
	html_text(h, title);
	html_put(h, "</title>\n<link rel=\"icon\" href=\"/icon.svg\" type=\"image/svg+xml\">\n"
		    "<link rel=\"stylesheet\" href=\"/status.css\">\n"
		    "<noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript>\n"
		    "<script src=\"/status.js\" defer></script>\n</head>\n<body>\n"
		    "<a class=\"skip\" href=\"#main\">Skip to the cases</a>\n<header class=\"top\">\n"
		    "<p class=\"name\"><a href=\"/\"><img src=\"/icon.svg\" alt=\"\" width=\"28\" height=\"28\"> tomonode</a> "
		    "<span class=\"aet\">");
	html_text(h, s->config->node.aet);
	html_printf(h, "</span></p>\n<p class=\"clock\"><span id=\"clock\">As of <time>%s</time></span> ", when);
	html_put(h, "<button id=\"pause\" type=\"button\" hidden>Pause updates</button></p>\n</header>\n<main id=\"main\">\n");
}

void status_page_end(struct html *h)
{
	html_put(h, "</main>\n<footer><p>tomonode " TOMONODE_VERSION
		    " · Not for diagnostic use · <a href=\"/status.json\">JSON</a> · "
		    "<a href=\"/metrics\">Metrics</a> · <a href=\"/health\">Health</a></p></footer>\n</body>\n</html>\n");
}

void status_page_badge(struct html *h, enum status_tone tone, const char *word)
{
	html_printf(h, "<span class=\"badge %s\">", status_text_tone(tone));
	html_text(h, word);
	html_put(h, "</span>");
}

void status_page_picture(struct html *h, const struct status *s, const struct job_view *v, int side)
{
	if (status_has_thumbnail(s, v))
		html_printf(
			h,
			"<img class=\"picture\" src=\"/jobs/%lld/thumbnail.png\" alt=\"Middle slice of case %lld\" width=\"%d\" "
			"height=\"%d\">",
			(long long)v->id, (long long)v->id, side, side);
	else
		html_put(h, "<div class=\"picture none\" aria-hidden=\"true\">no image</div>");
}

static void patient(struct html *h, const struct status *s, const struct job_view *v)
{
	const struct status_name *name = s->config->status.show_patient ? status_names_find(&s->names, v->id) : NULL;

	if (!name || (!name->name[0] && !name->id[0]))
		return;
	html_put(h, "<p class=\"patient\"><bdi>");
	html_text(h, name->name[0] ? name->name : "no name");
	html_put(h, "</bdi>");
	if (name->id[0]) {
		html_put(h, " <span class=\"quiet\">ID <bdi>");
		html_text(h, name->id);
		html_put(h, "</bdi></span>");
	}
	html_put(h, "</p>");
}

void status_page_facts(struct html *h, const struct status *s, const struct job_view *v)
{
	char when[40];

	patient(h, s, v);
	html_printf(h, "<p class=\"facts\">%ld %s from ", (long)v->members.instances,
		    v->members.instances == 1 ? "image" : "images");
	html_text(h, v->calling[0] ? v->calling : "an unnamed sender");
	if (v->members.last > 0) {
		status_text_time(v->members.last, s->now, when, sizeof(when));
		html_printf(h, ", last at <time>%s</time>", when);
	}
	if (v->protocol[0]) {
		html_put(h, " · ");
		html_text(h, v->protocol);
	}
	html_put(h, "</p>");
}

static void progress(struct html *h, const struct status *s, const struct job_view *v)
{
	char stage[64], span[32];
	const char *words;
	double fraction;
	int step;

	status_text_duration(s->now - v->started, span, sizeof(span));
	if (!status_progress(s, v->id, stage, &fraction)) {
		html_printf(h,
			    "<div class=\"progress\"><progress aria-label=\"Progress of case %lld\"></progress> <span>starting, "
			    "for %s so far"
			    "</span></div>",
			    (long long)v->id, span);
		return;
	}
	step = status_text_stage(stage, &words);
	html_printf(
		h,
		"<div class=\"progress\"><progress max=\"100\" value=\"%.0f\" aria-label=\"Progress of case %lld\"></progress> "
		"<span>",
		100 * fraction, (long long)v->id);
	if (step > 0)
		html_printf(h, "Step %d of %d, ", step, STATUS_TEXT_STEPS);
	html_text(h, words);
	html_printf(h, ": %.0f %%, for %s so far</span></div>", 100 * fraction, span);
}

void status_page_state(struct html *h, const struct status *s, const struct job_view *v, size_t before)
{
	const char *hint = status_text_hint(v), *word;
	char sentence[1200];
	enum status_tone tone = status_text_state(v, &word);

	status_text_sentence(v, before, s->now, sentence, sizeof(sentence));
	if (v->state == JOB_RUNNING)
		progress(h, s, v);
	if (v->state == JOB_COLLECTING && v->members.expected > 0)
		html_printf(h,
			    "<div class=\"progress\"><progress max=\"%ld\" value=\"%ld\" aria-label=\"Images of case %lld\">"
			    "</progress></div>",
			    (long)v->members.expected, (long)v->members.instances, (long long)v->id);
	if (sentence[0]) {
		html_printf(h, "<p class=\"sentence%s\">", tone == TONE_BAD || tone == TONE_WARN ? " emphasized" : "");
		html_text(h, sentence);
		html_put(h, "</p>");
	}
	if (hint[0]) {
		html_put(h, "<p class=\"hint\">");
		html_put(h, hint);
		html_put(h, "</p>");
	}
}

static void button(struct html *h, const struct job_view *v, const char *what, const char *word, const char *class,
		   const char *token)
{
	html_printf(h,
		    "<form method=\"post\" action=\"/jobs/%lld/%s\"><input type=\"hidden\" name=\"token\" value=\"%s\">"
		    "<button class=\"%s\" id=\"b-%lld-%s\">%s<span class=\"hidden\"> case %lld</span></button></form>",
		    (long long)v->id, what, token, class, (long long)v->id, what, word, (long long)v->id);
}

void status_page_buttons(struct html *h, const struct status *s, const struct job_view *v, const char *token)
{
	const char *retry = status_text_retry(v), *as_is = status_text_as_is(v), *same = status_text_same_patient(v),
		   *cancel = status_text_cancel(v);

	if (!config_status_may_act(s->config) || (!retry && !as_is && !same && !cancel))
		return;
	html_put(h, "<div class=\"buttons\">");
	if (as_is)
		button(h, v, "as-is", as_is, "plain", token);
	if (same)
		button(h, v, "same-patient", same, "plain", token);
	if (retry)
		button(h, v, "retry", retry, v->state == JOB_CANCELLED ? "plain" : "first", token);
	if (cancel) {
		html_printf(
			h,
			"<details id=\"d-%lld\"><summary id=\"c-%lld\">Cancel…<span class=\"hidden\"> case %lld</span></summary>"
			"<p>The case is cancelled, its images are kept.</p>",
			(long long)v->id, (long long)v->id, (long long)v->id);
		button(h, v, "cancel", "Cancel the case", "danger", token);
		html_put(h, "</details>");
	}
	html_put(h, "</div>");
}

static void one_case(struct html *h, const struct status *s, const struct job_view *v, size_t before, const char *token)
{
	const char *word;
	enum status_tone tone = status_text_state(v, &word);
	char title[120];

	status_text_title(v, title, sizeof(title));
	html_printf(h, "<article class=\"case %s\" id=\"case-%lld\">", status_text_tone(tone), (long long)v->id);
	status_page_picture(h, s, v, 88);
	html_printf(h, "<div class=\"what\"><h3><a id=\"a-%lld\" href=\"/jobs/%lld\">", (long long)v->id, (long long)v->id);
	html_text(h, title);
	html_printf(h, "</a> <span class=\"number\">case %lld</span> ", (long long)v->id);
	status_page_badge(h, tone, word);
	html_put(h, "</h3>");
	status_page_facts(h, s, v);
	status_page_state(h, s, v, before);
	html_put(h, "</div>");
	status_page_buttons(h, s, v, token);
	html_put(h, "</article>\n");
}

static void cases(struct html *h, const struct status *s, const struct status_list *l, const char *id, const char *title,
		  const char *none, const char *token)
{
	size_t ready = 0;

	if (l->all == 0 && !none) {
		html_printf(h, "<section id=\"%s\" hidden></section>\n", id);
		return;
	}
	html_printf(h, "<section id=\"%s\" aria-labelledby=\"h-%s\"><h2 id=\"h-%s\">%s <span class=\"count\">%zu</span></h2>\n",
		    id, id, id, title, l->all);
	for (size_t i = 0; i < l->n; i++)
		one_case(h, s, l->list[i], l->list[i]->state == JOB_READY ? ready++ : 0, token);
	if (l->all == 0)
		html_printf(h, "<p class=\"none\">%s</p>\n", none);
	if (l->n < l->all)
		html_printf(h, "<p class=\"none\">%zu more; <code>tomonode list</code> lists all of them.</p>\n", l->all - l->n);
	html_put(h, "</section>\n");
}

/* ---- destinations, devices, disk ---- */

static void destinations(struct html *h, const struct status *s)
{
	char when[40];

	html_put(h, "<section id=\"destinations\" aria-labelledby=\"h-destinations\"><h2 "
		    "id=\"h-destinations\">Destinations</h2><ul>\n");
	for (size_t i = 0; i < s->facts.n_destinations; i++) {
		const struct destination_state *d = &s->facts.destinations[i];

		html_put(h, "<li><h3>");
		html_text(h, d->name);
		html_put(h, " ");
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
			html_text(h, d->conf->aet);
			html_put(h, " at ");
			html_text(h, d->conf->host);
			html_printf(h, ":%d", d->conf->port);
		} else {
			html_put(h, "no longer in the configuration");
		}
		html_put(h, "</p>");
		if (d->down) {
			html_put(h, "<p class=\"sentence emphasized\">");
			html_text(h, d->reason[0] ? d->reason : "No answer");
			html_put(h, "</p>");
		}
		if (d->waiting > 0 || d->refused > 0)
			html_printf(h, "<p>%zu waiting, %zu refused</p>", d->waiting, d->refused);
		if (d->down && d->next > s->now) {
			status_text_time(d->next, s->now, when, sizeof(when));
			html_printf(h, "<p>Next attempt at <time>%s</time></p>", when);
		}
		if (d->last_sent > 0) {
			status_text_time(d->last_sent, s->now, when, sizeof(when));
			html_printf(h, "<p class=\"quiet\">Last result sent <time>%s</time></p>", when);
		}
		html_put(h, "</li>\n");
	}
	if (s->facts.n_destinations == 0)
		html_put(h, "<li class=\"none\">No destination is configured.</li>");
	html_put(h, "</ul></section>\n");
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void device(struct html *h, const struct status *s, const json_t *one)
{
	static const struct {
		const char *state, *word;
		enum status_tone tone;
	} words[] = {{"ready", "Ready", TONE_GOOD},
		     {"busy", "Working", TONE_WORK},
		     {"starting", "Starting", TONE_QUIET},
		     {"waiting", "Waits for a pilot", TONE_QUIET}};
	const char *state = text_of(one, "state"), *name = text_of(one, "device");
	double again = json_number_value(json_object_get(one, "again"));
	const size_t n = sizeof(words) / sizeof(words[0]);
	size_t i = 0;
	char when[40];

	html_put(h, "<li><h3>");
	html_text(h, name[0] ? name : text_of(one, "name"));
	html_put(h, " ");
	while (i < n && strcmp(words[i].state, state) != 0)
		i++;
	if (json_is_true(json_object_get(one, "disabled")))
		status_page_badge(h, TONE_BAD, "Disabled");
	else
		status_page_badge(h, i < n ? words[i].tone : TONE_QUIET, i < n ? words[i].word : "Stopped");
	html_put(h, "</h3>");
	if (text_of(one, "reason")[0]) {
		html_put(h, "<p class=\"sentence emphasized\">");
		html_text(h, text_of(one, "reason"));
		html_put(h, "</p>");
	}
	if (again > 0) {
		status_text_time(again, s->now, when, sizeof(when));
		html_printf(h, "<p>Next attempt at <time>%s</time></p>", when);
	}
	if (json_is_true(json_object_get(one, "spare")))
		html_put(h, "<p class=\"quiet\">Used while other devices are disabled.</p>");
	html_put(h, "</li>\n");
}

static void devices(struct html *h, const struct status *s)
{
	const json_t *list = json_object_get(s->node, "devices"), *one;
	const struct node_cluster *c = &s->facts.from_manager.cluster;
	size_t i;

	html_put(h, "<section id=\"devices\" aria-labelledby=\"h-devices\"><h2 id=\"h-devices\">Devices</h2><ul>\n");
	json_array_foreach(list, i, one) device(h, s, one);
	if (json_array_size(list) == 0 && !c->used)
		html_put(h, "<li class=\"none\">Not known yet.</li>");
	html_put(h, "</ul>");
	if (c->used) {
		char text[300];

		node_cluster_text(c, text, sizeof(text));
		html_put(h, "<p>");
		html_text(h, text);
		html_put(h, "</p>");
	}
	html_put(h, "</section>\n");
}

static void disk(struct html *h, const struct status *s)
{
	double used = s->facts.disk_size ? 100 * (1 - (double)s->facts.disk_free / (double)s->facts.disk_size) : 0;
	char free_text[32], size[32], reserve[32];

	status_text_bytes((double)s->facts.disk_free, free_text, sizeof(free_text));
	status_text_bytes((double)s->facts.disk_size, size, sizeof(size));
	status_text_bytes((double)s->config->node.reserve, reserve, sizeof(reserve));
	html_put(h, "<section id=\"disk\" aria-labelledby=\"h-disk\"><h2 id=\"h-disk\">Disk</h2>\n");
	html_printf(h,
		    "<p><meter min=\"0\" max=\"100\" high=\"90\" value=\"%.0f\" aria-label=\"Disk in use\">%.0f %%</meter></p>",
		    used, used);
	html_printf(h, "<p>%s free of %s</p><p class=\"quiet\">Below %s new images are refused.</p></section>\n", free_text, size,
		    reserve);
}

static void unassigned(struct html *h, const struct status *s)
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
		long long count = json_integer_value(json_object_get(one, "count"));

		if (i == STATUS_UNASSIGNED_MAX)
			break;
		status_text_time(json_number_value(json_object_get(one, "received")), s->now, when, sizeof(when));
		html_printf(h, "<li><p>%lld object%s, <time>%s</time> from ", count, plural(count), when);
		html_text(h, text_of(one, "calling"));
		html_put(h, " <span class=\"number\">");
		html_text(h, text_of(one, "classification"));
		html_put(h, "</span></p><p class=\"facts\">");
		html_text(h, text_of(one, "reason"));
		html_put(h, "</p><p class=\"hint\">");
		html_put(h, job_report_unassigned_hint(one));
		html_put(h, "</p></li>\n");
	}
	html_put(h, "</ul></section>\n");
}

static void associations(struct html *h, const struct status *s)
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

		status_text_time(a->last, s->now, when, sizeof(when));
		html_printf(h, "<li><p>%ld time%s, <time>%s</time> from ", a->count, plural(a->count), when);
		html_text(h, a->calling[0] ? a->calling : "an unknown AE title");
		html_put(h, " <span class=\"number\">");
		html_text(h, a->host);
		html_put(h, "</span></p><p class=\"facts\">");
		html_text(h, a->reason);
		html_put(h, "</p></li>\n");
	}
	html_put(h, "</ul></section>\n");
}

static void overall(struct html *h, const struct status *s)
{
	bool good = s->problems.n == 0;

	html_printf(h, "<section id=\"overall\" class=\"overall %s\" role=\"status\">",
		    good		   ? "good"
		    : status_is_healthy(s) ? "warn"
					   : "bad");
	if (good) {
		html_put(h, "<h1>Everything is in order</h1><p>");
		if (s->work.all == 0)
			html_put(h, "No case is in work.");
		else
			html_printf(h, s->work.all == 1 ? "%zu case is in work." : "%zu cases are in work.", s->work.all);
		html_put(h, "</p></section>\n");
		return;
	}
	html_put(h,
		 status_is_healthy(s) ? "<h1>Something needs attention</h1><ul>" : "<h1>The node has a serious problem</h1><ul>");
	for (size_t i = 0; i < s->problems.n; i++) {
		const struct node_problem *p = &s->problems.list[i];

		html_put(h, "<li>");
		html_text(h, p->text);
		if (p->remedy[0]) {
			html_put(h, " <span class=\"remedy\">");
			html_text(h, p->remedy);
			html_put(h, "</span>");
		}
		html_put(h, "</li>");
	}
	html_put(h, "</ul></section>\n");
}

void status_write_overview(struct html *h, const struct status *s, const char *token)
{
	char title[80];

	if (s->problems.n > 0)
		snprintf(title, sizeof(title), "(%zu) tomonode %s", s->problems.n, s->config->node.aet);
	else
		snprintf(title, sizeof(title), "tomonode %s", s->config->node.aet);
	status_page_begin(h, s, title);
	overall(h, s);
	html_put(h, "<div class=\"columns\"><div class=\"cases\">\n");
	cases(h, s, &s->attention, "attention", "Needs attention", NULL, token);
	cases(h, s, &s->work, "work", "In work", "No case is in work. Exams that are sent to the node appear here automatically.",
	      token);
	cases(h, s, &s->done, "done", "Done", "Nothing yet.", token);
	html_put(h, "</div>\n<div class=\"aside\">\n");
	destinations(h, s);
	devices(h, s);
	disk(h, s);
	unassigned(h, s);
	associations(h, s);
	html_put(h, "</div></div>\n");
	status_page_end(h);
}

void status_write_sentence(struct html *h, const char *title, const char *sentence)
{
	html_put(h, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
		    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>");
	html_text(h, title);
	html_put(h, "</title><link rel=\"stylesheet\" href=\"/status.css\"></head><body><main id=\"main\"><section "
		    "class=\"overall warn\"><h1>");
	html_text(h, title);
	html_put(h, "</h1><p>");
	html_text(h, sentence);
	html_put(h, "</p><p><a href=\"/\">Back to the cases</a></p></section></main></body></html>\n");
}
