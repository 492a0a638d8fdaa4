/* SPDX-License-Identifier: Apache-2.0 */
/* status_buttons.c - write the buttons of a case, and the question that one of them asks. Each is a form of its own. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "node/base/time_text.h"
#include "node/jobs/case_selection.h"
#include "node/jobs/job_hint.h"
#include "node/jobs/patients.h"
#include "node/status/status_internal.h"

/* field: a further one of the form, with its value; NULL: there is none. */
static void put_button(struct html *h, const struct status *s, const struct job_view *v, const char *what, const char *field,
		       const char *value, const char *word, const char *class, const char *token)
{
	html_printf(h, "<form method=\"post\" action=\"/jobs/%lld/%s\"><input type=\"hidden\" name=\"token\" value=\"%s\">",
		    (long long)v->id, what, token);
	if (field)
		html_printf(h, "<input type=\"hidden\" name=\"%s\" value=\"%s\">", field, value);
	html_printf(h, "<button class=\"%s\" id=\"b-%lld-%s%s\">%s", class, (long long)v->id, what,
		    field && !strcmp(field, "sweep") ? value : "", word);
	status_page_hidden_case(h, s, v);
	html_put(h, "</button></form>");
}

static void sweep_buttons(struct html *h, const struct status *s, const struct job_view *v, const struct exposures *sweeps,
			  const char *token)
{
	const struct job_view *chosen = case_sweep_chosen(&s->jobs, v);
	char text[260], translated[300], word[340], number[16];

	for (int i = 1; i <= sweeps->n; i++) {
		if (chosen && chosen->sweep == i)
			continue;
		case_sweep_text(sweeps, i, text, sizeof(text));
		snprintf(word, sizeof(word), say(s->language, "Reconstruct %s"),
			 say_sentence(s->language, text, translated, sizeof(translated)));
		snprintf(number, sizeof(number), "%d", i);
		put_button(h, s, v, "sweep", "sweep", number, word, "plain", token);
	}
}

/* All patients that the headers name: name and ID, and what else differs. The first is that of the result. */
static void put_patients(struct html *h, const struct status *s, const struct job_view *v, const struct status_name *const *of,
			 size_t n)
{
	static const struct {
		const char *word;
		size_t at;
		bool always;
	} attributes[] = {{"Name", offsetof(struct status_name, name), true},
			  {"Patient ID", offsetof(struct status_name, id), true},
			  {"Issuer of the ID", offsetof(struct status_name, issuer), false},
			  {"Birth date", offsetof(struct status_name, birth), false}};
	const char *columns[5];
	size_t at[4], n_columns = 0;
	enum language in = s->language;
	char id[32];

	for (size_t a = 0; a < 4; a++) {
		bool shown = attributes[a].always;

		for (size_t i = 1; i < n; i++)
			shown = shown ||
				strcmp((const char *)of[i] + attributes[a].at, (const char *)of[0] + attributes[a].at) != 0;
		if (!shown)
			continue;
		columns[n_columns] = attributes[a].word;
		at[n_columns++] = attributes[a].at;
	}
	columns[n_columns] = "Result";
	snprintf(id, sizeof(id), "t-same-%lld", (long long)v->id);
	status_page_table(h, s, id, columns, n_columns + 1);
	for (size_t i = 0; i < n; i++) {
		html_put(h, "<tr role=\"row\">");
		for (size_t k = 0; k < n_columns; k++)
			html_printf(h, STATUS_CELL("<bdi>%s</bdi>"), say(in, columns[k]), (const char *)of[i] + at[k]);
		html_printf(h, STATUS_CELL("%s") "</tr>\n", say(in, columns[n_columns]),
			    i == 0 ? say(in, "gets this patient") : "");
	}
	status_page_table_end(h);
}

/* Return true if everything is shown that a person must know to say that it is one patient; ret_seen: its digest. */
static bool put_headers(struct html *h, const struct status *s, const struct job_view *v, char ret_seen[STATUS_SEEN_SIZE])
{
	const struct status_name *of[PATIENTS_NAMED_MAX];
	struct patients_named named;
	enum language in = s->language;
	char when[TIME_TEXT_SIZE];
	bool shown = s->config->status.show_patient;

	if (!s->journal || !patients_named(s->journal, &s->jobs, v, &named) ||
	    (shown && !status_names_headers(&s->names, v, &named, of))) {
		html_printf(h, "<p>%s</p>", say(in, "The headers are being read."));
		return false;
	}
	if (named.n > 1) { /* otherwise their digests are not known */
		html_put(h, "<p>");
		html_printf(h,
			    named.more ? say(in, "The headers name more than %zu different patients.")
				       : say(in, "The headers name %zu different patients."),
			    named.n);
		html_put(h, "</p>");
	}
	if (shown)
		put_patients(h, s, v, of, named.n);
	else
		html_printf(h, "<p>%s</p>",
			    say(in, "Names are not shown on this page: compare them at the modality or in the order."));
	html_printf(h, "<p>%s ", say(in, "The result gets the patient of the image that came last. This cannot be taken back."));
	html_printf(h, say(in, "That image came at <time>%s</time>."), time_text(named.list[0].received, "never", when));
	html_put(h, "</p>");
	if (shown) {
		html_put(h, "<p class=\"emphasized\">");
		html_printf(h, say(in, "The result will say: <bdi>%s</bdi>, ID <bdi>%s</bdi>."),
			    of[0]->name[0] ? of[0]->name : say(in, "no name"), of[0]->id[0] ? of[0]->id : "-");
		html_put(h, "</p>");
	}
	status_names_seen(&named, shown ? of : NULL, ret_seen);
	return true;
}

/* Asks twice: it decides whose result it is. */
static void same_patient_button(struct html *h, const struct status *s, const struct job_view *v, const char *token)
{
	char seen[STATUS_SEEN_SIZE];

	html_printf(h, "<details class=\"asked\" id=\"ds-%lld\"><summary id=\"ss-%lld\">%s", (long long)v->id, (long long)v->id,
		    say(s->language, "It is the same patient…"));
	status_page_hidden_case(h, s, v);
	html_put(h, "</summary>");
	if (put_headers(h, s, v, seen))
		put_button(h, s, v, "same-patient", "seen", seen, say(s->language, job_hint_same_patient(v)), "danger", token);
	html_put(h, "</details>");
}

static void cancel_button(struct html *h, const struct status *s, const struct job_view *v, const char *token)
{
	html_printf(h, "<details id=\"d-%lld\"><summary id=\"c-%lld\">%s", (long long)v->id, (long long)v->id,
		    say(s->language, "Cancel…"));
	status_page_hidden_case(h, s, v);
	html_printf(h, "</summary><p>%s</p>", say(s->language, "The case is cancelled, its images are kept."));
	put_button(h, s, v, "cancel", NULL, "", say(s->language, "Cancel the case"), "danger", token);
	html_put(h, "</details>");
}

void status_page_buttons(struct html *h, const struct status *s, const struct job_view *v, const struct exposures *sweeps,
			 const char *token)
{
	bool divided = sweeps->n > 0 && v->state != JOB_FAILED; /* whatever else is pressed, it is held for them */
	bool newer = status_may(s, STATUS_NEWER) && s->journal && !case_newer_obstacle(&s->jobs, v) &&
		     case_newer_count(s->journal, v, false, NULL) > 0;
	const struct {
		enum status_page page;
		const char *what, *word; /* word: NULL: the case does not have this button */
	} buttons[] = {
		{STATUS_AS_IS, "as-is", divided ? NULL : job_hint_as_is(v)},
		{STATUS_SAME, "same-patient", job_hint_same_patient(v)},
		{STATUS_SWEEP, "sweep", sweeps->n > 0 ? "" : NULL},
		{STATUS_NEWER, "newer", newer ? "Use the newer images" : NULL},
		{STATUS_RETRY, "retry", divided || case_replaced_by(&s->jobs, v) ? NULL : job_hint_retry(v)},
		{STATUS_CANCEL, "cancel", job_hint_cancel(v)},
	};
	bool any = false;

	for (size_t i = 0; i < sizeof(buttons) / sizeof(buttons[0]); i++) {
		bool first = buttons[i].page == STATUS_RETRY && v->state != JOB_CANCELLED;

		if (!buttons[i].word || !status_may(s, buttons[i].page))
			continue;
		html_put(h, any ? "" : "<div class=\"buttons\">");
		any = true;
		if (buttons[i].page == STATUS_SWEEP)
			sweep_buttons(h, s, v, sweeps, token);
		else if (buttons[i].page == STATUS_CANCEL)
			cancel_button(h, s, v, token);
		else if (buttons[i].page == STATUS_SAME)
			same_patient_button(h, s, v, token);
		else
			put_button(h, s, v, buttons[i].what, NULL, "", say(s->language, buttons[i].word),
				   first ? "first" : "plain", token);
	}
	html_put(h, any ? "</div>" : "");
}
