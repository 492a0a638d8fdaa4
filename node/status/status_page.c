/* SPDX-License-Identifier: Apache-2.0 */
/* status_page.c - write what the pages have in common: their frame, and the parts of a case.
 *
 * - The page works without script: forms, links, <details>, a refresh. node/status/web/status.js only replaces sections that
 *   changed.
 * - A section or case keeps its id between updates: script, focus and opened details depend on it.
 * - The page contains no style and no script itself: the Content-Security-Policy forbids them.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/folder.h"
#include "node/base/json_get.h"
#include "node/base/list_grow.h"
#include "node/base/sentence.h"
#include "node/base/time_text.h"
#include "node/base/version.h"
#include "node/jobs/case_results.h"
#include "node/jobs/case_selection.h"
#include "node/jobs/job_hint.h"
#include "node/status/status_internal.h"

/* The script, with the texts that it writes itself: {name} is replaced there. */
static void put_script(struct html *h, const struct status *s)
{
	const char *const texts[][2] = {
		{"pause", say(s->language, "Pause updates")},
		{"resume", say(s->language, "Resume updates")},
		{"lost", say(s->language, "The node does not answer. What is shown is old.")},
		{"slice", say(s->language, "slice {n} of {total}")},
		{"height", say(s->language, "slice {n} of {total}, {mm} mm from the first")},
		{"making", say(s->language, "being made")},
		{"absent", say(s->language, "not available")},
	};

	html_put(h, "<script src=\"/status.js\" defer></script>\n</head>\n<body");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		html_printf(h, " data-%s=\"%s\"", texts[i][0], texts[i][1]);
	html_put(h, ">\n");
}

void status_page_begin(struct html *h, const struct status *s, const char *title, bool refresh)
{
	char when[TIME_TEXT_SIZE];

	html_printf(h,
		    "<!DOCTYPE html>\n<html lang=\"%s\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
		    "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
		    "<title>%s</title>\n<link rel=\"icon\" href=\"/icon.svg\" type=\"image/svg+xml\">\n<link rel=\"stylesheet\" "
		    "href=\"/status.css\">\n",
		    language_code(s->language), title);
	html_put(h, refresh ? "<noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript>\n" : "");
	put_script(h, s);
	html_printf(h,
		    "<a class=\"skip\" href=\"#main\">%s</a>\n<header class=\"top\">\n<p class=\"name\"><a href=\"/\"><img "
		    "src=\"/icon.svg\" alt=\"\" width=\"28\" height=\"28\"> tomonode</a> <span class=\"aet\">%s</span></p>\n",
		    say(s->language, "Skip to the cases"), s->config->node.aet);
	html_printf(h,
		    "<nav aria-label=\"%s\"><a href=\"/\" id=\"n-now\">%s</a> <a href=\"/cases\" id=\"n-cases\">%s</a></nav>\n",
		    say(s->language, "Pages of the node"), say(s->language, "Overview"), say(s->language, "All cases, search"));
	html_put(h, "<p class=\"clock\">");
	if (s->person.name[0])
		html_printf(h, "<span id=\"person\"><bdi>%s</bdi> %s</span> · ", s->person.name,
			    say(s->language, status_role_text(s->person.role)));
	html_put(h, "<span id=\"clock\">");
	html_printf(h, say(s->language, "As of <time>%s</time>"), time_text(s->now, "never", when));
	html_printf(h, "</span> <button id=\"pause\" type=\"button\" hidden>%s</button></p>\n</header>\n<main id=\"main\">\n",
		    say(s->language, "Pause updates"));
}

/* A link for each language. Its choice is kept in a cookie (node/status/status_http.c). */
static void put_languages(struct html *h, const struct status *s, const char *query)
{
	html_printf(h, "<nav class=\"languages\" aria-label=\"%s\">", say(s->language, "Language"));
	for (int l = 0; l < LANGUAGES; l++) {
		const char *code = language_code((enum language)l), *name = language_name((enum language)l);

		html_put(h, l > 0 ? " · " : "");
		html_printf(h, "<a id=\"l-%s\" href=\"?language=%s%s%s\" lang=\"%s\" hreflang=\"%s\" aria-current=\"%s\">%s</a>",
			    code, code, query[0] ? "&" : "", query[0] ? query + 1 : "", code, code,
			    l == (int)s->language ? "true" : "false", name);
	}
	html_put(h, "</nav>");
}

void status_page_end(struct html *h, const struct status *s, const char *query)
{
	html_put(h, "</main>\n<footer>");
	put_languages(h, s, query);
	html_printf(h,
		    "<p>tomonode " TOMONODE_VERSION
		    " · %s<span class=\"links\"> · <a href=\"/status.json\">JSON</a> · <a href=\"/metrics\">%s</a> · <a "
		    "href=\"/health\">%s</a></span></p></footer>\n</body>\n</html>\n",
		    say(s->language, "Not for diagnostic use"), say(s->language, "Metrics"), say(s->language, "Health"));
}

void status_page_section(struct html *h, const char *id, const char *title)
{
	if (title)
		html_printf(h, "<section id=\"%s\" aria-labelledby=\"h-%s\"><h2 id=\"h-%s\">%s</h2>", id, id, id, title);
	else
		html_printf(h, "<section id=\"%s\" hidden></section>\n", id);
}

void status_page_table(struct html *h, const struct status *s, const char *id, const char *const *columns, size_t n)
{
	html_printf(h, "<table class=\"%s\" id=\"%s\" role=\"table\"><thead role=\"rowgroup\"><tr role=\"row\">",
		    n > 2 ? "stack" : "pairs", id);
	for (size_t i = 0; i < n; i++)
		html_printf(h, "<th scope=\"col\" role=\"columnheader\">%s</th>", say(s->language, columns[i]));
	html_put(h, "</tr></thead><tbody role=\"rowgroup\">\n");
}

void status_page_table_end(struct html *h)
{
	html_put(h, "</tbody></table>");
}

void status_page_picture(struct html *h, const struct status *s, const struct job_view *v, int side)
{
	char path[400];

	if (status_picture_path(s, v, path)) {
		html_printf(h, "<img class=\"picture\" src=\"/jobs/%lld/thumbnail.png\" width=\"%d\" height=\"%d\" alt=\"",
			    (long long)v->id, side, side);
		html_printf(h, say(s->language, "Middle slice of case %lld"), (long long)v->id);
		html_put(h, "\">");
	} else {
		html_printf(h, "<div class=\"picture none\" aria-hidden=\"true\">%s</div>", say(s->language, "no image"));
	}
}

const struct status_name *status_page_patient(const struct status *s, const struct job_view *v)
{
	const struct status_name *name = s->config->status.show_patient ? status_names_of(&s->names, v) : NULL;

	return name && (name->name[0] || name->id[0]) ? name : NULL;
}

void status_page_patients(struct html *h, const struct status *s, const struct status_name *const *names, size_t n)
{
	html_put(h, "<p class=\"patient\">");
	for (size_t i = 0; i < n; i++) {
		html_printf(h, i > 0 ? " · <bdi>%s</bdi>" : "<bdi>%s</bdi>",
			    names[i]->name[0] ? names[i]->name : say(s->language, "no name"));
		if (names[i]->id[0])
			html_printf(h, " <span class=\"quiet\">ID <bdi>%s</bdi></span>", names[i]->id);
	}
	html_printf(h, "%s</p>", n > 0 ? "" : say(s->language, "Different patients"));
}

/* Of a case whose images name several, all of them: it has the name of none. */
static void put_patients(struct html *h, const struct status *s, const struct job_view *v)
{
	const struct status_name *of[PATIENTS_NAMED_MAX] = {status_page_patient(s, v)};
	struct patients_named named = {.n = of[0] != NULL};
	bool mixed = s->config->status.show_patient && patients_are_mixed(v);

	if (mixed &&
	    !(s->journal && patients_named(s->journal, &s->jobs, v, &named) && status_names_headers(&s->names, v, &named, of)))
		named.n = 0;
	if (mixed || named.n > 0)
		status_page_patients(h, s, of, named.n);
}

void status_page_facts(struct html *h, const struct status *s, const struct job_view *v, bool patient)
{
	char when[TIME_TEXT_SIZE], protocol[OTHER_RESULT_TEXT];

	if (patient)
		put_patients(h, s, v);
	html_put(h, "<p class=\"facts\">");
	html_printf(h, say(s->language, v->members.instances == 1 ? "%ld image from %s" : "%ld images from %s"),
		    (long)v->members.instances, v->calling[0] ? v->calling : say(s->language, "an unnamed sender"));
	if (v->members.last > 0)
		html_printf(h, say(s->language, ", last at <time>%s</time>"), time_text(v->members.last, "never", when));
	if (v->protocol[0])
		html_printf(h, " · %s", case_results_protocol(v, protocol));
	html_put(h, "</p>");
}

static void put_progress(struct html *h, const struct status *s, const struct job_view *v)
{
	char stage[64], span[TIME_TEXT_SIZE], rest[TIME_TEXT_SIZE];
	const char *words;
	double fraction, left;
	int step;
	bool known = status_progress(s, v->id, stage, &fraction, &left);

	html_put(h, "<div class=\"progress\"><progress aria-label=\"");
	html_printf(h, say(s->language, "Progress of case %lld"), (long long)v->id);
	if (known)
		html_printf(h, "\" max=\"100\" value=\"%.0f", 100 * fraction);
	html_put(h, "\"></progress> <span>");
	if (known) {
		step = status_text_stage(stage, &words);
		if (step > 0)
			html_printf(h, say(s->language, "Step %d of %d, "), step, STATUS_TEXT_STEPS);
		html_printf(h, "%s: %.0f %%, ", say(s->language, words), 100 * fraction);
		if (left >= 0)
			html_printf(h, say(s->language, "about %s left of this step, "), time_text_span(left, rest));
	} else {
		html_printf(h, "%s, ", say(s->language, "starting"));
	}
	html_printf(h, say(s->language, "for %s so far"), time_text_span(s->now - v->started, span));
	html_put(h, "</span></div>");
}

/* What each destination has said of the result: also of one whose files were removed. */
static void put_sends(struct html *h, const struct status *s, const struct job_view *v)
{
	struct status_send send;
	bool any = false;

	for (size_t i = 0; i < v->n_sends && (status_text_has_result(v) || v->state == JOB_CLEANED); i++) {
		status_text_send(s->config, &v->sends[i], s->now, s->language, &send);
		if (!send.sentence[0])
			continue;
		html_put(h, any ? "" : "<ul class=\"sends\">");
		any = true;
		html_printf(h, "<li class=\"%s\">" STATUS_BADGE " %s</li>", status_text_tone(send.tone),
			    status_text_tone(send.tone), say(s->language, send.word), send.sentence);
	}
	html_put(h, any ? "</ul>" : "");
}

struct naming {
	enum language in;
	char *text;
	size_t size;
	long *numbers; /* Instance Numbers of all images, in their order; 0: none */
	size_t n, room, at;
	long arrived; /* images so far */
};

static int keep_number(void *ctx, const struct instance_row *row, const char *text)
{
	struct naming *c = ctx;
	json_t *detail;

	(void)row;
	if (!list_grow(&c->numbers, c->n, &c->room, sizeof(c->numbers[0])))
		return -ENOMEM;
	detail = json_loads(text ? text : "", 0, NULL);
	c->numbers[c->n++] = (long)json_get_integer(detail, "number");
	json_decref(detail);
	return 0;
}

/* Return whether no other image has the number: two exams under the same UIDs count from 1 both. */
static bool is_single(const struct naming *c, long number)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += c->numbers[i] == number;
	return n == 1;
}

static int name_image(void *ctx, const struct instance_row *row, const char *text)
{
	static const char folder[] = "instances/";
	const size_t n_folder = sizeof(folder) - 1;
	struct naming *c = ctx;
	const char *name = file_name(row->file);
	long number = c->at < c->n ? c->numbers[c->at++] : 0;
	char words[80], *at;
	size_t n, n_words;

	(void)text;
	c->arrived += !row->companion;
	if (!strstr(c->text, name))
		return 0;
	if (number > 0 && is_single(c, number))
		snprintf(words, sizeof(words), say(c->in, "image %ld"), number);
	else if (!row->companion)
		snprintf(words, sizeof(words), say(c->in, "the image that came as number %ld"), c->arrived);
	else
		return 0;
	n_words = strlen(words);
	while ((at = strstr(c->text, name))) {
		n = strlen(name);
		if (at - c->text >= (ptrdiff_t)n_folder && !strncmp(at - n_folder, folder, n_folder)) {
			at -= n_folder;
			n += n_folder;
		}
		if (strlen(c->text) - n + n_words >= c->size)
			break;
		memmove(at + n_words, at + n, strlen(at + n) + 1);
		memcpy(at, words, n_words);
	}
	return 0;
}

void status_page_name_images(const struct status *s, const struct job_view *v, char *text, size_t size)
{
	struct naming c = {.in = s->language, .text = text, .size = size};

	if (s->journal && strstr(text, ".dcm") && journal_each_member(s->journal, v->id, keep_number, &c, NULL) == 0)
		journal_each_member(s->journal, v->id, name_image, &c, NULL);
	free(c.numbers);
}

void status_page_case_link(struct html *h, const struct status *s, int64_t job)
{
	html_printf(h, "<a href=\"/jobs/%lld\">", (long long)job);
	html_printf(h, say(s->language, "case %lld"), (long long)job);
	html_put(h, "</a>");
}

/* Which sweep was chosen, and the result of which case counts, or is not there. */
static void put_sweep_chosen(struct html *h, const struct status *s, const struct job_view *v, const struct job_view *chosen)
{
	bool made = status_text_has_result(chosen) || (chosen->state == JOB_CLEANED && !chosen->never_delivered);

	html_put(h, "<p class=\"sentence\">");
	if (chosen == v) {
		html_printf(h,
			    made ? say(s->language, "Sweep %d was chosen: the result of this case counts.")
				 : say(s->language, "Sweep %d was chosen: this case has no result so far."),
			    chosen->sweep);
	} else {
		html_printf(h,
			    made ? say(s->language, "Sweep %d was chosen: the result that counts is that of")
				 : say(s->language, "Sweep %d was chosen. No result counts so far:"),
			    chosen->sweep);
		html_put(h, " ");
		status_page_case_link(h, s, chosen->id);
		html_put(h, ".");
	}
	html_put(h, "</p>");
}

void status_page_state(struct html *h, const struct status *s, const struct job_view *v, size_t before,
		       const struct exposures *sweeps)
{
	bool chooses = sweeps->n > 0 && v->state != JOB_CANCELLED;
	const struct job_view *chosen = case_sweep_chosen(&s->jobs, v);
	const struct job_view *newer = chosen ? NULL : case_replaced_by(&s->jobs, v);
	const char *hint = job_hint(v, sweeps->n);
	const char *word;
	char sentence[1200] = "";
	enum status_tone tone = status_text_state(v, &word);

	if (chosen)
		put_sweep_chosen(h, s, v, chosen);
	if (newer) {
		html_printf(h, "<p class=\"sentence\">%s ", say(s->language, "Its images were sent again. What counts is"));
		status_page_case_link(h, s, newer->id);
		html_put(h, ".</p>");
	}
	if (chooses)
		snprintf(sentence, sizeof(sentence),
			 say(s->language, "The images are of %d sweeps: the exam was repeated, or other images are among them."),
			 sweeps->n);
	else if (!status_text_has_result(v) && !(chosen && v->state == JOB_CANCELLED))
		status_text_sentence(s->config, v, before, s->now, s->language, sentence, sizeof(sentence));
	if (v->state == JOB_RUNNING)
		put_progress(h, s, v);
	if (v->state == JOB_COLLECTING && v->members.expected > 0) {
		html_printf(h, "<div class=\"progress\"><progress max=\"%ld\" value=\"%ld\" aria-label=\"",
			    (long)v->members.expected, (long)v->members.instances);
		html_printf(h, say(s->language, "Images of case %lld"), (long long)v->id);
		html_put(h, "\"></progress></div>");
	}
	status_page_name_images(s, v, sentence, sizeof(sentence));
	if (sentence[0]) {
		html_printf(h, "<p class=\"sentence%s\">%s</p>", tone == TONE_BAD || tone == TONE_WARN ? " emphasized" : "",
			    sentence);
	}
	put_sends(h, s, v);
	if (hint[0])
		html_printf(h, "<p class=\"hint\">%s</p>", say(s->language, hint));
}

void status_page_hidden_case(struct html *h, const struct status *s, const struct job_view *v)
{
	html_put(h, "<span class=\"hidden\"> ");
	html_printf(h, say(s->language, "case %lld"), (long long)v->id);
	html_put(h, "</span>");
}

void status_page_viewer(struct html *h, const struct status *s, const struct job_view *v)
{
	bool there = false;
	char url[VIEWER_URL_SIZE];

	for (size_t i = 0; i < v->n_sends; i++)
		there = there || v->sends[i].state == SEND_DONE || v->sends[i].state == SEND_STORED;
	if (!s->config->status.viewer_url[0] || !there || v->n_objects == 0 ||
	    !viewer_url_fill(s->config->status.viewer_url, v->study, v->objects[0].series, v->accession, url, sizeof(url)))
		return;
	html_printf(h, "<p><a id=\"v-%lld\" href=\"%s\" target=\"_blank\" rel=\"noopener noreferrer\">%s", (long long)v->id, url,
		    say(s->language, "Open in the viewer"));
	status_page_hidden_case(h, s, v);
	html_put(h, "</a></p>");
}

void status_page_warnings(struct html *h, const struct status *s, const struct job_view *v, bool folded)
{
	const char *at = v->warnings;
	char text[4096]; /* as many bytes as a report has (node/reconstruct/reconstruct.h) */
	size_t n, count = 0;

	for (; at && (at = sentence_next(at, &n)); at += n)
		count++;
	if (count == 0)
		return;
	html_printf(h,
		    folded ? "<details class=\"warnings\" id=\"w-%lld\"><summary id=\"ws-%lld\">"
			   : "<div class=\"warnings\" id=\"w-%lld\"><h2 id=\"ws-%lld\">",
		    (long long)v->id, (long long)v->id);
	if (v->warned)
		html_printf(h, say(s->language, count == 1 ? "%zu warning" : "%zu warnings"), count);
	else
		html_printf(h, say(s->language, count == 1 ? "%zu standing warning" : "%zu standing warnings"), count);
	html_put(h, folded ? "</summary><ul lang=\"en\">" : "</h2><ul lang=\"en\">");
	snprintf(text, sizeof(text), "%s", v->warnings);
	status_page_name_images(s, v, text, sizeof(text));
	html_sentences(h, text);
	html_put(h, folded ? "</ul></details>" : "</ul></div>");
}

static void write_sentence(struct html *h, enum language in, const char *title, const char *sentence, bool waiting)
{
	html_printf(h,
		    "<!DOCTYPE html>\n<html lang=\"%s\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
		    "content=\"width=device-width, initial-scale=1\"><title>%s</title>",
		    language_code(in), say(in, title));
	html_put(h, waiting ? "<meta http-equiv=\"refresh\" content=\"1\">" : "");
	html_printf(h,
		    "<link rel=\"icon\" href=\"/icon.svg\" type=\"image/svg+xml\"><link rel=\"stylesheet\" href=\"/status.css\">"
		    "</head><body><main id=\"main\"><section class=\"overall %s\"><h1>%s</h1><p>%s</p><p><a href=\"/\">%s</a></p>"
		    "</section></main></body></html>\n",
		    waiting ? "good" : "warn", say(in, title), say(in, sentence), say(in, "Back to the cases"));
}

void status_write_sentence(struct html *h, enum language in, const char *title, const char *sentence)
{
	write_sentence(h, in, title, sentence, false);
}

void status_write_waiting(struct html *h, enum language in, const char *title, const char *sentence)
{
	write_sentence(h, in, title, sentence, true);
}
