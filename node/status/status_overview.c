/* SPDX-License-Identifier: Apache-2.0 */
/* status_overview.c - write the overview: the bar with the problems, and the exams that need attention, are in work or done. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "node/base/time_text.h"
#include "node/jobs/case_selection.h"
#include "node/status/status_internal.h"

/* Return the patient that all cases of the exam name whose images were read; NULL: they differ, or none is known. */
static const struct status_name *exam_patient(const struct status *s, const struct status_exam *e)
{
	const struct status_name *found = NULL, *name;

	for (size_t i = 0; i < e->n; i++) {
		name = status_page_patient(s, e->cases[i]);
		if (patients_are_mixed(e->cases[i]))
			return NULL;
		if (name && found && (strcmp(name->name, found->name) != 0 || strcmp(name->id, found->id) != 0))
			return NULL;
		found = name ? name : found;
	}
	return found;
}

/* accession: of the exam; patient: the name is shown here, because the exam has none. */
static void one_case(struct html *h, const struct status *s, const struct job_view *v, const char *accession, bool patient,
		     const char *token)
{
	const char *word;
	enum status_tone tone = status_text_state(v, &word);
	struct exposures sweeps;
	char title[120];

	case_sweeps_offered(s->journal, v, &sweeps);
	status_text_title(v, s->language, title, sizeof(title));
	html_printf(h, "<div class=\"case %s\" id=\"case-%lld\">", status_text_tone(tone), (long long)v->id);
	status_page_picture(h, s, v, 88);
	html_printf(h, "<div class=\"what\"><h4><a id=\"a-%lld\" href=\"/jobs/%lld\">%s</a> <span class=\"number\">",
		    (long long)v->id, (long long)v->id, title);
	html_printf(h, say(s->language, "case %lld"), (long long)v->id);
	html_printf(h, "</span> " STATUS_BADGE "</h4>", status_text_tone(tone), say(s->language, word));
	status_page_facts(h, s, v, patient);
	if (strcmp(v->accession, accession) != 0)
		html_printf(h, "<p class=\"facts\">%s <bdi>%s</bdi></p>", say(s->language, "Accession number"),
			    v->accession[0] ? v->accession : say(s->language, "none"));
	status_page_state(h, s, v, status_count_before(s, v), &sweeps);
	status_page_viewer(h, s, v);
	status_page_warnings(h, s, v, true);
	html_put(h, "</div>");
	status_page_buttons(h, s, v, &sweeps, token);
	html_put(h, "</div>\n");
}

/* An exam has id and accession number of its oldest case. */
static void one_exam(struct html *h, const struct status *s, const struct status_exam *e, const char *token)
{
	const struct job_view *oldest = e->cases[0];
	const struct status_name *patient = exam_patient(s, e);
	char when[TIME_TEXT_SIZE];

	for (size_t i = 1; i < e->n; i++)
		oldest = e->cases[i]->id < oldest->id ? e->cases[i] : oldest;
	html_printf(h, "<article class=\"exam\" id=\"exam-%lld\"><header><h3>%s <bdi>%s</bdi></h3><p class=\"facts\">",
		    (long long)oldest->id, say(s->language, oldest->accession[0] ? "Accession" : "No accession number"),
		    oldest->accession);
	time_text(oldest->opened, "never", when);
	when[strlen("2026-11-21")] = '\0'; /* the day */
	html_printf(h, say(s->language, "received <time>%s</time>"), when);
	if (e->n > 1) {
		html_put(h, " · ");
		html_printf(h, say(s->language, "%zu cases"), e->n);
	}
	html_put(h, "</p>");
	if (patient)
		status_page_patients(h, s, &patient, 1);
	html_put(h, "</header>\n<div class=\"views\">");
	for (size_t i = 0; i < e->n && i < STATUS_EXAM_MAX; i++)
		one_case(h, s, e->cases[i], oldest->accession, !patient, token);
	html_put(h, "</div>");
	if (e->n > STATUS_EXAM_MAX) {
		html_printf(h, "<p class=\"none\"><a id=\"e-%lld\" href=\"/cases?q=%s\">", (long long)oldest->id, oldest->study);
		html_printf(h, say(s->language, "All %zu cases of the exam"), e->n);
		html_put(h, "</a></p>");
	}
	html_put(h, "</article>\n");
}

/* Return the days before now, local time, to which a time belongs. */
static const char *days_of(double now, double when)
{
	static const struct {
		int days;
		const char *word;
	} spans[] = {{0, "Today"}, {1, "Yesterday"}, {6, "In the last seven days"}};
	time_t t = (time_t)now;
	struct tm at;

	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]) && localtime_r(&t, &at); i++) {
		at.tm_mday -= spans[i].days;
		at.tm_hour = at.tm_min = at.tm_sec = 0;
		at.tm_isdst = -1;
		if (when >= (double)mktime(&at))
			return spans[i].word;
	}
	return "Earlier";
}

static void put_cases(struct html *h, const struct status *s, const struct status_list *l, const char *id, const char *title,
		      const char *none, const char *token)
{
	const char *before = "";

	if (l->all == 0 && !none) {
		status_page_section(h, id, NULL);
		return;
	}
	html_printf(h, "<section id=\"%s\" aria-labelledby=\"h-%s\"><h2 id=\"h-%s\">%s <span class=\"count\">%zu</span></h2>\n",
		    id, id, id, say(s->language, title), l->all);
	for (size_t i = 0; i < l->n; i++) {
		const char *days = l == &s->done ? days_of(s->now, l->list[i].when) : "";

		if (strcmp(days, before) != 0)
			html_printf(h, "<p class=\"days\">%s</p>\n", say(s->language, days));
		before = days;
		one_exam(h, s, &l->list[i], token);
	}
	if (l->all == 0)
		html_printf(h, "<p class=\"none\">%s</p>\n", say(s->language, none));
	if (l->n < l->all) {
		html_printf(h, "<p class=\"none\"><a id=\"m-%s\" href=\"/cases?state=%s\">", id, id);
		html_printf(h, say(s->language, "All %zu exams"), l->all);
		html_put(h, "</a></p>\n");
	}
	html_put(h, "</section>\n");
}

/* A sentence of the node, which is English unless a table has it. */
static void put_text(struct html *h, const struct status *s, const char *text)
{
	char translated[1600];
	const char *said = say_sentence(s->language, text, translated, sizeof(translated));

	html_printf(h, said == text && s->language != LANGUAGE_EN ? "<span lang=\"en\">%s</span>" : "%s", said);
}

static void put_problem(struct html *h, const struct status *s, const struct node_problem *p)
{
	size_t n = s->facts.attention;

	html_put(h, "<li>");
	if (!strcmp(p->id, "cases")) /* the most frequent one, and for everyone */
		html_printf(h, say(s->language, n == 1 ? "%zu case needs attention." : "%zu cases need attention."), n);
	else
		put_text(h, s, p->text);
	/* remedies are commands and settings; what to do with cases is said with each of them */
	if (p->remedy[0] && strcmp(p->id, "cases") != 0 && s->person.role >= STATUS_ROLE_ADMINISTER) {
		html_put(h, " <span class=\"remedy\">");
		put_text(h, s, p->remedy);
		html_put(h, "</span>");
	}
	html_put(h, "</li>");
}

static void put_overall(struct html *h, const struct status *s)
{
	size_t failed = s->by_state[JOB_FAILED] + s->by_state[JOB_IMPOSSIBLE], refused = s->by_state[JOB_DEAD_LETTER];
	struct status_standing list[STATUS_STANDING_MAX];
	size_t standing = status_standing_find(s, list);
	bool good = s->problems.n == 0 && failed + refused + s->warned_new == 0, healthy = status_is_healthy(s);

	html_printf(h, "<section id=\"overall\" class=\"overall %s\" role=\"status\">",
		    good			       ? "good"
		    : healthy && failed + refused == 0 ? "warn"
						       : "bad");
	html_put(h, "<h1>");
	if (good) {
		html_printf(h, "%s</h1><p>", say(s->language, "Everything is in order"));
		if (s->by_group[GROUP_WORK] == 0)
			html_put(h, say(s->language, "No case is in work."));
		else
			html_printf(h,
				    say(s->language,
					s->by_group[GROUP_WORK] == 1 ? "%zu case is in work." : "%zu cases are in work."),
				    s->by_group[GROUP_WORK]);
		html_put(h, "</p>");
		if (standing > 0) {
			html_put(h, "<p><a id=\"to-standing\" href=\"#standing\">");
			html_printf(h, say(s->language, standing == 1 ? "%zu standing warning" : "%zu standing warnings"),
				    standing);
			html_put(h, "</a></p>");
		}
		html_put(h, "</section>\n");
		return;
	}
	if (!healthy)
		html_put(h, say(s->language, "The node has a serious problem"));
	else if (failed > 0)
		html_printf(h, say(s->language, failed == 1 ? "%zu case has failed" : "%zu cases have failed"), failed);
	else if (refused > s->unanswered)
		html_printf(
			h, say(s->language, refused - s->unanswered == 1 ? "%zu result was refused" : "%zu results were refused"),
			refused - s->unanswered);
	else if (refused > 0)
		html_printf(h, say(s->language, refused == 1 ? "%zu result was not committed" : "%zu results were not committed"),
			    refused);
	else if (s->problems.n > 0)
		html_put(h, say(s->language, "Something needs attention"));
	else
		html_printf(h,
			    say(s->language,
				s->warned_new == 1 ? "Look at %zu result with warnings" : "Look at %zu results with warnings"),
			    s->warned_new);
	html_put(h, "</h1><ul>");
	for (size_t i = 0; i < s->problems.n; i++)
		put_problem(h, s, &s->problems.list[i]);
	if (s->warned_new > 0) {
		html_printf(h, "<li>%s <a id=\"warned\" href=\"/cases?state=warned\">",
			    say(s->language, "Delivered with warnings in the last three days:"));
		html_printf(h, say(s->language, s->warned_new == 1 ? "%zu case" : "%zu cases"), s->warned_new);
		html_put(h, "</a>.</li>");
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
	status_page_begin(h, s, title, true);
	put_overall(h, s);
	html_put(h, "<div class=\"columns\"><div class=\"cases\">\n");
	put_cases(h, s, &s->attention, "attention", "Needs attention", NULL, token);
	put_cases(h, s, &s->work, "work", "In work",
		  "No case is in work. Exams that are sent to the node appear here automatically.", token);
	put_cases(h, s, &s->done, "done", "Done", "Nothing yet.", token);
	html_put(h, "</div>\n<div class=\"aside\">\n");
	status_page_node(h, s);
	html_put(h, "</div></div>\n");
	status_page_end(h, s, "");
}
