/* SPDX-License-Identifier: Apache-2.0 */
/* status_case.c - write the page of one case: its state, its results, its events, the time of each stage. */
#include <stdio.h>
#include <string.h>

#include "node/base/json_get.h"
#include "node/base/time_text.h"
#include "node/config/kind.h"
#include "node/jobs/case_results.h"
#include "node/jobs/case_selection.h"
#include "node/jobs/job_report.h"
#include "node/report/look.h"
#include "node/status/status_internal.h"
#include "node/status/status_look.h"
#include "node/status/status_report.h"
#include "node/store/event.h"

#define LOG_LINES 300 /* maximum number of events shown as log lines: the newest */

/* Write the most important members of an event's detail. */
static void event_remark(struct html *h, const struct status *s, const struct job_view *v, const json_t *detail)
{
	static const char *const keys[] = {"reason", "why", "protocol", "destination", "status", "device", "warnings", "omitted"};
	char named[4096];
	bool first = true;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *text = json_get_text(detail, keys[i]);

		if (!text[0])
			continue;
		html_put(h, first ? "" : ", ");
		if (!strcmp(keys[i], "status"))
			html_put(h, "status ");
		snprintf(named, sizeof(named), "%s", text);
		status_page_name_images(s, v, named, sizeof(named));
		html_text(h, named);
		first = false;
	}
}

/* A section that a person can open: few need it. */
static void begin_folded(struct html *h, const char *id, const char *title)
{
	html_printf(h,
		    "<section id=\"%s\" aria-labelledby=\"h-%s\"><details class=\"folded\" id=\"d-%s\"><summary id=\"s-%s\"><h2 "
		    "id=\"h-%s\">%s</h2></summary>",
		    id, id, id, id, id, title);
}

static void begin_table(struct html *h, const struct status *s, const char *id, const char *title, const char *const *columns,
			size_t n)
{
	char of_table[32];

	snprintf(of_table, sizeof(of_table), "t-%s", id);
	begin_folded(h, id, say(s->language, title));
	status_page_table(h, s, of_table, columns, n);
}

static void end_table(struct html *h)
{
	status_page_table_end(h);
	html_put(h, "</details></section>\n");
}

static void put_events(struct html *h, const struct status *s, const struct job_view *v, const json_t *list)
{
	static const char *const columns[] = {"When", "What", "More"};
	size_t n = json_array_size(list), run;
	char when[TIME_TEXT_SIZE];

	begin_table(h, s, "events", "What happened", columns, 3);
	for (size_t i = 0; i < n; i++) {
		const json_t *e = json_array_get(list, i);
		const char *name = json_get_text(e, "event"), *word = name;
		enum job_event event;

		run = job_report_run(list, i);
		if (run == 0)
			continue;
		if (v->other.redo_of > 0 && !strcmp(name, "opened")) /* by a request, not by an image */
			word = "Requested";
		else if (job_event_parse(name, &event) == 0)
			word = status_text_event(event);
		html_printf(h, "<tr role=\"row\">" STATUS_CELL("<time>%s</time>") STATUS_CELL("%s"), say(s->language, columns[0]),
			    time_text(json_get_number(e, "time"), "never", when), say(s->language, columns[1]),
			    say(s->language, word));
		html_printf(h, "<td role=\"cell\" data-label=\"%s\" lang=\"en\">", say(s->language, columns[2]));
		if (job_report_repeats(e))
			html_printf(h, "%zu", run);
		else
			event_remark(h, s, v, json_object_get(e, "detail"));
		html_put(h, "</td></tr>\n");
	}
	end_table(h);
}

static void put_stage(struct html *h, const struct status *s, const char *name, double seconds)
{
	char span[TIME_TEXT_SIZE];

	html_printf(h, STATUS_ROW(STATUS_CELL("%s") STATUS_CELL("<span class=\"figure\">%s</span>")), say(s->language, "Stage"),
		    say(s->language, name), say(s->language, "Time"), time_text_span(seconds, span));
}

static void put_stages(struct html *h, const struct status *s, const json_t *list)
{
	static const char *const columns[] = {"Stage", "Time"};
	const json_t *one;
	size_t i;

	if (json_array_size(list) < 2)
		return;
	begin_table(h, s, "stages", "Time of each stage", columns, 2);
	json_array_foreach(list, i, one) put_stage(h, s, json_get_text(one, "stage"), json_get_number(one, "seconds"));
	put_stage(h, s, "total since the last image", job_report_total(list));
	end_table(h);
}

/* Where each fact of the newest result is from. */
static void put_facts(struct html *h, const struct status *s, const json_t *origins)
{
	static const char *const columns[] = {"Fact", "Origin"};
	const char *name;
	json_t *origin;

	if (json_object_size(origins) == 0)
		return;
	begin_table(h, s, "facts", "Origin of facts", columns, 2);
	json_object_foreach((json_t *)origins, name, origin)
		html_printf(h, STATUS_ROW(STATUS_CELL("<span lang=\"en\">%s</span>") STATUS_CELL("<span lang=\"en\">%s</span>")),
			    say(s->language, columns[0]), name, say(s->language, columns[1]), json_get_text(origins, name));
	end_table(h);
}

static void send_more(struct html *h, const struct status *s, const struct job_send *d)
{
	const struct job_send *why = d->blocked_by ? d->blocked_by : d;
	char when[TIME_TEXT_SIZE];

	if (d->blocked_by)
		html_printf(h, say(s->language, "not reached since <time>%s</time>: "), time_text(why->since, "never", when));
	if (why->status[0])
		html_printf(h, say(s->language, "status %s"), why->status);
	html_put(h, why->status[0] && why->reason[0] ? ": " : "");
	html_text(h, why->reason);
	if ((d->blocked_by || d->state == SEND_DUE) && why->next > s->now) {
		html_put(h, why->status[0] || why->reason[0] ? "; " : "");
		html_printf(h, say(s->language, "again at <time>%s</time>"), time_text(why->next, "never", when));
	}
}

static void put_sends(struct html *h, const struct status *s, const struct job_view *v)
{
	static const char *const columns[] = {"Name", "State", "Objects", "More"};

	if (v->n_sends == 0)
		return;
	status_page_section(h, "sends", say(s->language, "Destinations"));
	status_page_table(h, s, "t-sends", columns, 4);
	for (size_t i = 0; i < v->n_sends; i++) {
		const struct job_send *d = &v->sends[i];
		struct status_send send;

		status_text_send(s->config, d, s->now, s->language, &send);
		html_printf(h, "<tr role=\"row\">" STATUS_CELL("%s") STATUS_CELL(STATUS_BADGE), say(s->language, columns[0]),
			    d->destination, say(s->language, columns[1]), status_text_tone(send.tone),
			    say(s->language, send.word));
		html_printf(h, "<td role=\"cell\" data-label=\"%s\">", say(s->language, columns[2]));
		html_printf(h, say(s->language, "%zu of %zu"), job_view_count_stored(v, d), v->n_objects);
		html_printf(h, "</td><td role=\"cell\" data-label=\"%s\">", say(s->language, columns[3]));
		send_more(h, s, d);
		html_put(h, "</td></tr>\n");
	}
	status_page_table_end(h);
	html_put(h, "</section>\n");
}

/* Slices side by side in a row that can be scrolled. With script, a slider moves it. The section does not change while it has the
 * same data-of; until the picture is made, its address gives the thumbnail. */
static void put_slices(struct html *h, const struct status *s, const struct job_view *v, const json_t *list)
{
	long long id = (long long)v->id;
	struct status_slices of;
	char path[400];

	if (!status_slices_find(s, v, list, &of) || !status_picture_path(s, v, path)) {
		status_page_section(h, "slices", NULL);
		return;
	}
	html_printf(h,
		    "<section id=\"slices\" data-of=\"%ld\" aria-labelledby=\"h-slices\"><h2 id=\"h-slices\">%s</h2><div "
		    "class=\"strip\" id=\"strip\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><img "
		    "src=\"/jobs/%lld/slices.png\" width=\"%d\" height=\"%d\" alt=\"",
		    of.total, say(s->language, "Slices"), say(s->language, "Slices, side by side"), id, of.n * LOOK_STRIP_SIDE,
		    LOOK_STRIP_SIDE);
	html_printf(h, say(s->language, "%d slices of case %lld, from the first to the last"), of.n, id);
	html_printf(h,
		    "\"></div><p class=\"slider\"><label for=\"slice\">%s</label><input type=\"range\" id=\"slice\" min=\"1\" "
		    "max=\"%d\" value=\"%d\" data-total=\"%ld\" data-step=\"%.4g\" autocomplete=\"off\"> <output "
		    "id=\"slice-of\" for=\"slice\"></output></p><p class=\"quiet\">",
		    say(s->language, "Slice"), of.n, of.n / 2 + 1, of.total, of.step);
	html_printf(
		h,
		say(s->language, "%d of %ld slices, evenly spaced and reduced in size, for an overview. Not for diagnostic use."),
		of.n, of.total);
	html_printf(h, "</p><p><a id=\"look-all\" href=\"/jobs/%lld/look\">", id);
	html_printf(h, say(s->language, "All %ld slices, also beside another result"), of.total);
	html_put(h, "</a></p></section>\n");
}

#define RECENT 20 /* cases from which the time of a protocol is taken */

/* The mean time of the newest reconstructions with a protocol, s; 0: there are none. */
static double protocol_time(const struct status *s, const char *name)
{
	double sum = 0;
	int n = 0;

	for (size_t i = s->jobs.n; i > 0 && n < RECENT; i--) {
		const struct job_view *v = s->jobs.list[i - 1];

		if (strcmp(v->protocol, name) != 0 || !(v->started > 0 && v->reconstructed > v->started))
			continue;
		sum += v->reconstructed - v->started;
		n++;
	}
	return n > 0 ? sum / n : 0;
}

/* A protocol in a list: its name, what it is for, and how long it takes on this node. */
static void put_protocol(struct html *h, const struct status *s, const struct protocol_conf *p)
{
	double seconds = protocol_time(s, p->name);
	char span[TIME_TEXT_SIZE];

	html_printf(h, p->purpose[0] ? "%s: %s" : "%s", p->name, say_purpose(s->language, p->purpose));
	if (seconds > 0) {
		html_put(h, " · ");
		html_printf(h, say(s->language, "about %s here"), time_text_span(seconds, span));
	}
}

/* The images again, as a further result, with a protocol of their kind. */
static void redo_form(struct html *h, const struct status *s, const struct job_view *v, const char *token)
{
	const char *obstacle = redo_obstacle(v);
	long long id = (long long)v->id;

	if (!status_may(s, STATUS_REDO))
		return;
	if (obstacle) {
		if (v->state == JOB_CLEANED) { /* other states have other buttons */
			html_put(h, "<p class=\"hint\">");
			html_printf(h, say(s->language, "The case cannot be reconstructed again: %s."),
				    say(s->language, obstacle));
			html_put(h, "</p>");
		}
		return;
	}
	html_printf(h,
		    "<form class=\"redo\" method=\"post\" action=\"/jobs/%lld/redo\"><input type=\"hidden\" name=\"token\" "
		    "value=\"%s\"><p><label for=\"protocol\">%s</label><select id=\"protocol\" name=\"protocol\" "
		    "autocomplete=\"off\">",
		    id, token, say(s->language, "Reconstruct again, as a further result, with the protocol"));
	for (size_t i = 0; i < s->config->n_protocols; i++) {
		const struct protocol_conf *p = &s->config->protocols[i];

		if (strcmp(kind_of(p->kind)->name, v->kind) != 0)
			continue;
		html_printf(h, "<option value=\"%s", p->name);
		html_put(h, !strcmp(p->name, v->protocol) ? "\" selected>" : "\">");
		put_protocol(h, s, p);
		html_put(h, "</option>");
	}
	html_printf(h, "</select></p><button class=\"plain\" id=\"b-%lld-redo\">%s</button></form>", id,
		    say(s->language, "Reconstruct again"));
}

/* The lines that the node has logged about the events of the case. */
static void log_lines(struct html *h, const struct status *s, int64_t job, const json_t *list)
{
	size_t n = json_array_size(list), first = n > LOG_LINES ? n - LOG_LINES : 0;
	char when[TIME_TEXT_SIZE], line[1000];

	begin_folded(h, "log", say(s->language, "Log lines of the case"));
	html_put(h, "<pre tabindex=\"0\" lang=\"en\">");
	for (size_t i = first; i < n; i++) {
		const json_t *e = json_array_get(list, i);

		if (!strcmp(json_get_text(e, "event"), "instance"))
			continue;
		event_line(job, json_object_get(e, "detail"), line, sizeof(line));
		html_printf(h, "%s job-%s %s\n", time_text(json_get_number(e, "time"), "never", when), json_get_text(e, "event"),
			    line);
	}
	html_put(h, "</pre>");
	if (s->person.role >= STATUS_ROLE_ADMINISTER)
		html_printf(h, "<p class=\"quiet\">%s <code>journalctl -u tomonode --grep 'job=%lld '</code></p>",
			    say(s->language, "From the journal, without the images. Other lines about the case:"),
			    (long long)job);
	html_put(h, "</details></section>\n");
}

/* A sentence about another case, with the link to it behind it. */
static void put_other_case(struct html *h, const struct status *s, const char *sentence, int64_t job)
{
	html_printf(h, "<p class=\"quiet\">%s ", say(s->language, sentence));
	status_page_case_link(h, s, job);
	html_put(h, ".</p>");
}

/* Link to the other results of the images. */
static void put_further(struct html *h, const struct status *s, const struct job_view *v)
{
	json_t *list = job_report_further(&s->jobs, v), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (i > 0)
			html_put(h, ", ");
		else
			html_printf(h, "<p class=\"quiet\">%s ", say(s->language, "Further results:"));
		status_page_case_link(h, s, json_get_integer(one, "id"));
		html_printf(h, " (%s)", json_get_text(one, "protocol_text"));
	}
	html_put(h, i ? ".</p>" : "");
	json_decref(list);
}

bool status_write_case(struct html *h, const struct status *s, const struct job_view *v, const char *token)
{
	struct err err = {0};
	json_t *view = job_report_view(v, s->journal, s->config->node.spool), *list = job_report_events(s->journal, v->id, &err);
	json_t *times = view && list ? job_report_stages(view, list) : NULL;
	const char *word;
	enum status_tone tone = status_text_state(v, &word);
	struct exposures sweeps;
	char title[120], head[200];

	if (!times) {
		status_write_sentence(h, s->language, "The case cannot be shown", err.code ? err.msg : "Out of memory.");
		json_decref(view);
		json_decref(list);
		return false;
	}
	case_sweeps_offered(s->journal, v, &sweeps);
	status_text_title(v, s->language, title, sizeof(title));
	snprintf(head, sizeof(head), say(s->language, "Case %lld: %s"), (long long)v->id, title);
	status_page_begin(h, s, head, true);
	html_printf(h, "<section class=\"case single %s\" id=\"case\">", status_text_tone(tone));
	status_page_picture(h, s, v, 256);
	html_printf(h, "<div class=\"what\"><h1>%s <span class=\"number\">", title);
	html_printf(h, say(s->language, "case %lld"), (long long)v->id);
	html_printf(h, "</span> " STATUS_BADGE "</h1>", status_text_tone(tone), say(s->language, word));
	status_page_facts(h, s, v, true);
	if (v->study[0]) /* to distinguish cases with the same title */
		html_printf(h,
			    "<p class=\"facts\" id=\"study\">Study Instance UID <bdi class=\"uid\" id=\"uid\">%s</bdi> <button "
			    "type=\"button\" class=\"copy\" id=\"b-copy\" data-copy=\"uid\">%s<span class=\"hidden\"> "
			    "UID</span></button></p>",
			    v->study, say(s->language, "Copy"));
	if (v->route[0])
		html_printf(h, "<p class=\"facts\" id=\"route\">%s <bdi>%s</bdi></p>", say(s->language, "Route"), v->route);
	if (v->accession[0])
		html_printf(h, "<p class=\"facts\" id=\"accession\">%s <bdi>%s</bdi></p>", say(s->language, "Accession number"),
			    v->accession);
	status_page_state(h, s, v, 0, &sweeps);
	status_page_warnings(h, s, v, false);
	if (v->companion_text)
		html_printf(h, "<p class=\"facts\" id=\"companion\">%s <bdi lang=\"en\">%s</bdi>.</p>",
			    say(s->language, "Attenuation correction:"), v->companion_text);
	if (v->in_place)
		put_other_case(h, s, "This case takes the place of a cancelled one:", v->revision_of);
	else if (v->revision_of)
		put_other_case(h, s,
			       "An image was received after the reconstruction had started: this case is the same exam with that "
			       "image. The earlier one:",
			       v->revision_of);
	put_further(h, s, v);
	if (v->other.of)
		put_other_case(h, s,
			       v->other.redo_of ? "Another result, requested by a person, of the images of"
						: "Another result of the images of",
			       v->other.of);
	if (status_has_report(s, v))
		html_printf(h, "<p><a id=\"report\" href=\"/jobs/%lld/report\">%s</a></p>", (long long)v->id,
			    say(s->language, "Report of the result"));
	status_page_viewer(h, s, v);
	status_page_buttons(h, s, v, &sweeps, token);
	redo_form(h, s, v, token);
	html_put(h, "</div></section>\n");
	put_slices(h, s, v, list);
	put_sends(h, s, v);
	put_events(h, s, v, list);
	put_facts(h, s, job_report_facts(list));
	put_stages(h, s, times);
	log_lines(h, s, v->id, list);
	status_page_end(h, s, "");
	json_decref(view);
	json_decref(list);
	json_decref(times);
	return true;
}
