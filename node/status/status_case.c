/* SPDX-License-Identifier: Apache-2.0 */
/* status_case.c - write the page of one case: its state, its results, its events, the time of each stage. */
#include <stdio.h>
#include <string.h>

#include "node/base/json_get.h"
#include "node/base/time_text.h"
#include "node/config/kind.h"
#include "node/jobs/case_results.h"
#include "node/jobs/job_report.h"
#include "node/result/thumbnail.h"
#include "node/status/status_internal.h"
#include "node/status/status_report.h"
#include "node/store/event.h"

#define LOG_LINES 300 /* maximum number of events shown as log lines: the newest */

/* Write the most important members of an event's detail. */
static void event_remark(struct html *h, const json_t *detail)
{
	static const char *const keys[] = {"reason", "why", "protocol", "destination", "status", "device", "warnings", "omitted"};
	bool first = true;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *text = json_get_text(detail, keys[i]);

		if (!text[0])
			continue;
		html_put(h, first ? "" : ", ");
		if (!strcmp(keys[i], "status"))
			html_put(h, "status ");
		html_text(h, text);
		first = false;
	}
}

static void begin_table(struct html *h, const char *id, const char *title, const char *const *columns, size_t n)
{
	char of_table[32];

	snprintf(of_table, sizeof(of_table), "t-%s", id);
	status_page_section(h, id, title);
	status_page_table(h, of_table, columns, n);
}

static void end_table(struct html *h)
{
	status_page_table_end(h);
	html_put(h, "</section>\n");
}

/* again: the case was opened by a request, not by an image */
static void put_events(struct html *h, const json_t *list, bool again)
{
	static const char *const columns[] = {"When", "What", "More"};
	size_t n = json_array_size(list), run;
	char when[TIME_TEXT_SIZE];

	begin_table(h, "events", "What happened", columns, 3);
	for (size_t i = 0; i < n; i++) {
		const json_t *e = json_array_get(list, i);
		const char *name = json_get_text(e, "event"), *word = name;
		enum job_event event;

		run = job_report_run(list, i);
		if (run == 0)
			continue;
		if (again && !strcmp(name, "opened"))
			word = "Requested";
		else if (job_event_parse(name, &event) == 0)
			word = status_text_event(event);
		html_printf(h, "<tr role=\"row\">" STATUS_CELL("<time>%s</time>") STATUS_CELL("%s"), columns[0],
			    time_text(json_get_number(e, "time"), "never", when), columns[1], word);
		html_printf(h, "<td role=\"cell\" data-label=\"%s\">", columns[2]);
		if (job_report_repeats(e))
			html_printf(h, "%zu", run);
		else
			event_remark(h, json_object_get(e, "detail"));
		html_put(h, "</td></tr>\n");
	}
	end_table(h);
}

static void put_stage(struct html *h, const char *name, double seconds)
{
	char span[TIME_TEXT_SIZE];

	html_printf(h, STATUS_ROW(STATUS_CELL("%s") STATUS_CELL("<span class=\"figure\">%s</span>")), "Stage", name, "Time",
		    time_text_span(seconds, span));
}

static void put_stages(struct html *h, const json_t *list)
{
	static const char *const columns[] = {"Stage", "Time"};
	const json_t *one;
	size_t i;

	if (json_array_size(list) < 2)
		return;
	begin_table(h, "stages", "Time of each stage", columns, 2);
	json_array_foreach(list, i, one) put_stage(h, json_get_text(one, "stage"), json_get_number(one, "seconds"));
	put_stage(h, "total since the last image", job_report_total(list));
	end_table(h);
}

/* Where each fact of the newest result is from. */
static void put_facts(struct html *h, const json_t *origins)
{
	static const char *const columns[] = {"Fact", "Origin"};
	const char *name;
	json_t *origin;

	if (json_object_size(origins) == 0)
		return;
	begin_table(h, "facts", "Origin of facts", columns, 2);
	json_object_foreach((json_t *)origins, name, origin) html_printf(
		h, STATUS_ROW(STATUS_CELL("%s") STATUS_CELL("%s")), columns[0], name, columns[1], json_get_text(origins, name));
	end_table(h);
}

static void send_more(struct html *h, const struct status *s, const struct job_send *d)
{
	const struct job_send *why = d->blocked_by ? d->blocked_by : d;
	char when[TIME_TEXT_SIZE];

	if (d->blocked_by)
		html_printf(h, "not reached since <time>%s</time>: ", time_text(why->since, "never", when));
	if (why->status[0])
		html_printf(h, "status %s%s", why->status, why->reason[0] ? ": " : "");
	html_text(h, why->reason);
	if ((d->blocked_by || d->state == SEND_DUE) && why->next > s->now)
		html_printf(h, "%sagain at <time>%s</time>", why->status[0] || why->reason[0] ? "; " : "",
			    time_text(why->next, "never", when));
}

static void put_sends(struct html *h, const struct status *s, const struct job_view *v)
{
	static const char *const columns[] = {"Name", "State", "Objects", "More"};

	if (v->n_sends == 0)
		return;
	begin_table(h, "sends", "Destinations", columns, 4);
	for (size_t i = 0; i < v->n_sends; i++) {
		const struct job_send *d = &v->sends[i];
		struct status_send send;

		status_text_send(s->config, d, s->now, &send);
		html_printf(h,
			    "<tr role=\"row\">" STATUS_CELL("%s") STATUS_CELL(STATUS_BADGE)
				    STATUS_CELL("%zu of %zu") "<td role=\"cell\" data-label=\"%s\">",
			    columns[0], d->destination, columns[1], status_text_tone(send.tone), send.word, columns[2],
			    job_view_count_stored(v, d), v->n_objects, columns[3]);
		send_more(h, s, d);
		html_put(h, "</td></tr>\n");
	}
	end_table(h);
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
	html_printf(
		h,
		"<section id=\"slices\" data-of=\"%ld\" aria-labelledby=\"h-slices\"><h2 id=\"h-slices\">Slices</h2><div "
		"class=\"strip\" id=\"strip\" tabindex=\"0\" role=\"region\" aria-label=\"Slices, side by side\"><img "
		"src=\"/jobs/%lld/slices.png\" width=\"%d\" height=\"%d\" alt=\"%d slices of case %lld, from the first to the "
		"last\"></div>",
		of.total, id, of.n * THUMBNAIL_SLICE_SIDE, THUMBNAIL_SLICE_SIDE, of.n, id);
	html_printf(h,
		    "<p class=\"slider\"><label for=\"slice\">Slice</label><input type=\"range\" id=\"slice\" min=\"1\" "
		    "max=\"%d\" value=\"%d\" data-total=\"%ld\" data-step=\"%.4g\" autocomplete=\"off\"> <output "
		    "id=\"slice-of\" for=\"slice\"></output></p>",
		    of.n, of.n / 2 + 1, of.total, of.step);
	html_printf(h,
		    "<p class=\"quiet\">%d of %ld slices, evenly spaced and reduced in size, for an overview. Not for diagnostic "
		    "use.</p></section>\n",
		    of.n, of.total);
}

/* The images again, as a further result, with a protocol of their kind. */
static void redo_form(struct html *h, const struct status *s, const struct job_view *v, const char *token)
{
	const char *obstacle = redo_obstacle(v);
	long long id = (long long)v->id;

	if (!status_may(s, STATUS_REDO))
		return;
	if (obstacle) {
		if (v->state == JOB_CLEANED) /* other states have other buttons */
			html_printf(h, "<p class=\"hint\">The case cannot be reconstructed again: %s.</p>", obstacle);
		return;
	}
	html_printf(h,
		    "<form class=\"redo\" method=\"post\" action=\"/jobs/%lld/redo\"><input type=\"hidden\" name=\"token\" "
		    "value=\"%s\"><p><label for=\"protocol\">Reconstruct again, as a further result, with the "
		    "protocol</label><select id=\"protocol\" name=\"protocol\" autocomplete=\"off\">",
		    id, token);
	for (size_t i = 0; i < s->config->n_protocols; i++) {
		const struct protocol_conf *p = &s->config->protocols[i];

		if (strcmp(kind_of(p->kind)->name, v->kind) != 0)
			continue;
		html_printf(h, "<option value=\"%s", p->name);
		html_put(h, !strcmp(p->name, v->protocol) ? "\" selected>" : "\">");
		html_printf(h, "%s</option>", p->name);
	}
	html_printf(h, "</select></p><button class=\"plain\" id=\"b-%lld-redo\">Reconstruct again</button></form>", id);
}

/* The lines that the node has logged about the events of the case. */
static void log_lines(struct html *h, int64_t job, const json_t *list)
{
	size_t n = json_array_size(list), first = n > LOG_LINES ? n - LOG_LINES : 0;
	char when[TIME_TEXT_SIZE], line[1000];

	html_put(h, "<section id=\"log\" aria-labelledby=\"h-log\"><h2 id=\"h-log\">Log</h2><details id=\"d-log\"><summary "
		    "id=\"s-log\">Log lines of the case</summary><pre tabindex=\"0\">");
	for (size_t i = first; i < n; i++) {
		const json_t *e = json_array_get(list, i);

		if (!strcmp(json_get_text(e, "event"), "instance"))
			continue;
		event_line(job, json_object_get(e, "detail"), line, sizeof(line));
		html_printf(h, "%s job-%s %s\n", time_text(json_get_number(e, "time"), "never", when), json_get_text(e, "event"),
			    line);
	}
	html_printf(h,
		    "</pre><p class=\"quiet\">From the journal, without the images. Other lines about the case: <code>journalctl "
		    "-u "
		    "tomonode --grep 'job=%lld '</code></p></details></section>\n",
		    (long long)job);
}

/* Link to the other results of the images. */
static void put_further(struct html *h, const struct status *s, const struct job_view *v)
{
	json_t *list = job_report_further(&s->jobs, v), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		html_put(h, i ? ", " : "<p class=\"quiet\">Further results: ");
		html_printf(h, "<a href=\"/jobs/%lld\">case %lld</a> (%s)", json_get_integer(one, "id"),
			    json_get_integer(one, "id"), json_get_text(one, "protocol_text"));
	}
	html_put(h, i ? ".</p>" : "");
	json_decref(list);
}

bool status_write_case(struct html *h, const struct status *s, const struct job_view *v, const char *token)
{
	struct err err = {0};
	json_t *view = job_report_view(v, s->config->node.spool), *list = job_report_events(s->journal, v->id, &err);
	json_t *times = view && list ? job_report_stages(view, list) : NULL;
	const char *word;
	enum status_tone tone = status_text_state(v, &word);
	char title[120], head[200];

	if (!times) {
		status_write_sentence(h, "The case cannot be shown", err.code ? err.msg : "Out of memory.");
		json_decref(view);
		json_decref(list);
		return false;
	}
	status_text_title(v, title, sizeof(title));
	snprintf(head, sizeof(head), "Case %lld: %s", (long long)v->id, title);
	status_page_begin(h, s, head, true);
	html_printf(h, "<section class=\"case single %s\" id=\"case\">", status_text_tone(tone));
	status_page_picture(h, s, v, 256);
	html_printf(h, "<div class=\"what\"><h1>%s <span class=\"number\">case %lld</span> " STATUS_BADGE "</h1>", title,
		    (long long)v->id, status_text_tone(tone), word);
	status_page_facts(h, s, v, true);
	if (v->study[0]) /* to distinguish cases with the same title */
		html_printf(h,
			    "<p class=\"facts\" id=\"study\">Study Instance UID <bdi class=\"uid\" id=\"uid\">%s</bdi> <button "
			    "type=\"button\" class=\"copy\" id=\"b-copy\" data-copy=\"uid\">Copy<span class=\"hidden\"> the "
			    "UID</span></button></p>",
			    v->study);
	if (v->route[0])
		html_printf(h, "<p class=\"facts\" id=\"route\">Route <bdi>%s</bdi></p>", v->route);
	if (v->accession[0])
		html_printf(h, "<p class=\"facts\" id=\"accession\">Accession number <bdi>%s</bdi></p>", v->accession);
	status_page_state(h, s, v, 0);
	status_page_warnings(h, v, false);
	if (v->companion_text[0])
		html_printf(h, "<p class=\"facts\" id=\"companion\">Attenuation correction: <bdi>%s</bdi>.</p>",
			    v->companion_text);
	if (v->in_place)
		html_printf(h,
			    "<p class=\"quiet\">This case takes the place of <a href=\"/jobs/%lld\">case %lld</a>, which was "
			    "cancelled.</p>",
			    (long long)v->revision_of, (long long)v->revision_of);
	else if (v->revision_of)
		html_printf(
			h,
			"<p class=\"quiet\">An image was received after <a href=\"/jobs/%lld\">case %lld</a> had started: this "
			"case is the same exam with that image.</p>",
			(long long)v->revision_of, (long long)v->revision_of);
	put_further(h, s, v);
	if (v->other.of)
		html_printf(h, "<p class=\"quiet\">Another result of the images of <a href=\"/jobs/%lld\">case %lld</a>%s.</p>",
			    (long long)v->other.of, (long long)v->other.of,
			    v->other.redo_of ? ", requested again by a person" : "");
	if (status_has_report(s, v))
		html_printf(h, "<p><a id=\"report\" href=\"/jobs/%lld/report\">Report of the result</a></p>", (long long)v->id);
	status_page_viewer(h, s, v);
	status_page_buttons(h, s, v, token);
	redo_form(h, s, v, token);
	html_put(h, "</div></section>\n");
	put_slices(h, s, v, list);
	put_sends(h, s, v);
	put_events(h, list, v->other.redo_of > 0);
	put_facts(h, job_report_facts(list));
	put_stages(h, times);
	log_lines(h, v->id, list);
	status_page_end(h);
	json_decref(view);
	json_decref(list);
	json_decref(times);
	return true;
}
