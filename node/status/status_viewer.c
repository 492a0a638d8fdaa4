/* SPDX-License-Identifier: Apache-2.0 */
/* status_viewer.c - write the page on which a person looks at the slices of one result, or of two side by side.
 *
 * - node/status/web/look.js asks for the slices and draws them; all its words are on the page.
 * - The section has data-of, so that the updates of node/status/web/status.js leave it as it is. */
#include <stdio.h>
#include <string.h>

#include "node/base/time_text.h"
#include "node/config/kind.h"
#include "node/jobs/case_results.h"
#include "node/jobs/job_report.h"
#include "node/jobs/jobs_settled.h"
#include "node/jobs/patients.h"
#include "node/status/status_internal.h"
#include "node/status/status_look.h"
#include "node/status/status_report.h"

#define BESIDE_MAX 24 /* results that are offered for the other side */

static void put_tools(struct html *h, enum language in, bool two)
{
	html_printf(h, "<div class=\"tools\" role=\"group\" aria-label=\"%s\">", say(in, "View"));
	html_printf(h, "<button type=\"button\" id=\"look-in\">%s</button>", say(in, "Zoom in"));
	html_printf(h, "<button type=\"button\" id=\"look-out\">%s</button>", say(in, "Zoom out"));
	html_printf(h, "<button type=\"button\" id=\"look-pan\" aria-pressed=\"false\">%s</button>",
		    say(in, "Drag moves the picture"));
	html_printf(h, "<button type=\"button\" id=\"look-invert\" aria-pressed=\"false\">%s</button>", say(in, "Invert"));
	html_printf(h, "<button type=\"button\" id=\"look-reset\">%s</button>", say(in, "Reset"));
	if (two)
		html_printf(h,
			    "<label><input type=\"checkbox\" id=\"look-link-slice\" checked autocomplete=\"off\"> %s</label>"
			    "<label><input type=\"checkbox\" id=\"look-link-window\" checked autocomplete=\"off\"> %s</label>",
			    say(in, "Same slice"), say(in, "Same window"));
	html_put(h, "</div>\n");
}

static void put_title(struct html *h, const struct status *s, const struct job_view *v)
{
	char title[120];

	status_text_title(v, s->language, title, sizeof(title));
	html_printf(h, "%s <span class=\"number\">", title);
	html_printf(h, say(s->language, "case %lld"), (long long)v->id);
	html_put(h, "</span>");
}

/* Return what persons must know of the patients of two results that stand side by side; NULL: their headers name one patient. */
static const char *compare_patients(const struct job_view *a, const struct job_view *b)
{
	const unsigned nothing = 1u << 0; /* kind of a header without Patient ID and name */
	struct patient_conflict conflict;
	bool compared = a->patients_key == b->patients_key && a->patients.seen && b->patients.seen;

	if (compared && patient_sets_conflict(&a->patients, &b->patients, &conflict))
		return "The two cases name different patients.";
	if (!compared || !((a->patients.seen | b->patients.seen) & ~nothing))
		return "The node cannot tell whether the two cases are of one patient.";
	return NULL;
}

static void put_differences(struct html *h, const struct status *s, const struct job_view *a, const struct job_view *b)
{
	const char *patients = compare_patients(a, b);

	if (patients) {
		html_printf(h, "<p class=\"wrong\" id=\"patients\" role=\"alert\">%s ", say(s->language, patients));
		html_printf(h, "%s</p>",
			    say(s->language,
				s->config->status.show_patient
					? "Compare the names above."
					: "Names are not shown on this page: compare them at the modality or in the order."));
	}
	if (strcmp(a->study, b->study) != 0)
		html_printf(h, "<p class=\"sentence emphasized\" id=\"studies\">%s</p>",
			    say(s->language, "The two cases are of different exams (Study Instance UID)."));
}

/* What is known of the cases. Names of patients may come later. */
static void put_cases(struct html *h, const struct status *s, const struct job_view *const v[2])
{
	enum language in = s->language;

	html_printf(h, "<section id=\"looked\" aria-labelledby=\"h-looked\"><h1 id=\"h-looked\">%s</h1><div class=\"panes\">",
		    v[1] ? say(in, "Slices, side by side") : say(in, "Slices"));
	for (int side = 0; side < 2 && v[side]; side++) {
		html_printf(h, "<div><p><a href=\"/jobs/%lld\">", (long long)v[side]->id);
		put_title(h, s, v[side]);
		html_put(h, "</a></p>");
		status_page_facts(h, s, v[side], true);
		html_put(h, "</div>");
	}
	html_put(h, "</div>");
	if (v[1])
		put_differences(h, s, v[0], v[1]);
	html_printf(h, "<p class=\"quiet\">%s</p><noscript><p class=\"wrong\">%s</p></noscript></section>\n",
		    say(in, "For orientation only: reduced to the resolution of this page. Not for diagnostic use."),
		    say(in, "This page needs JavaScript. The page of the case has an overview."));
}

/* One result. side: 0 or 1. */
static void put_pane(struct html *h, const struct status *s, const struct job_view *v, int side)
{
	struct err err = {0};
	json_t *events = job_report_events(s->journal, v->id, &err);
	struct status_slices of = {.total = 1};

	status_slices_find(s, v, events, &of);
	json_decref(events);
	html_printf(h,
		    "<figure class=\"pane\" data-slices=\"/jobs/%lld/slices/\" data-total=\"%ld\" "
		    "data-step=\"%.6g\"><figcaption>",
		    (long long)v->id, of.total, of.step);
	put_title(h, s, v);
	html_printf(
		h,
		"</figcaption><div class=\"stage\"><canvas id=\"look-%d\" tabindex=\"0\" role=\"img\" aria-label=\"%s\" "
		"aria-describedby=\"look-keys\"></canvas><span data-side=\"left\"></span><span data-side=\"right\"></span><span "
		"data-side=\"top\"></span><span data-side=\"bottom\"></span></div>",
		side, say(s->language, "Slice"));
	html_printf(
		h,
		"<p class=\"slider\"><label for=\"look-slice-%d\">%s</label><input type=\"range\" id=\"look-slice-%d\" min=\"1\" "
		"max=\"%ld\" value=\"%ld\" autocomplete=\"off\"> <output for=\"look-slice-%d\"></output></p>",
		side, say(s->language, "Slice"), side, of.total, of.total / 2 + 1, side);
	html_printf(
		h,
		"<p class=\"levels\"><label>%s <input type=\"number\" step=\"any\" class=\"black\" autocomplete=\"off\"></label> "
		"<label>%s <input type=\"number\" step=\"any\" class=\"white\" autocomplete=\"off\"></label> <span "
		"class=\"unit\"></span></p><p class=\"wrong\" role=\"alert\"></p></figure>\n",
		say(s->language, "Black"), say(s->language, "White"));
}

/* Do the headers of both cases name one patient ID, and contradict each other in nothing? */
static bool same_patient(const struct job_view *a, const struct job_view *b)
{
	struct patient_conflict conflict;

	return a->patients_key == b->patients_key && a->patients.first[PATIENT_ID] &&
	       a->patients.first[PATIENT_ID] == b->patients.first[PATIENT_ID] &&
	       !patient_sets_conflict(&a->patients, &b->patients, &conflict);
}

/* Write a link to a case as the other side. */
static void put_beside(struct html *h, const struct status *s, const struct job_view *v, const struct job_view *other)
{
	char protocol[OTHER_RESULT_TEXT], when[TIME_TEXT_SIZE];

	html_printf(h, "<li><a href=\"/jobs/%lld/look/%lld\">", (long long)v->id, (long long)other->id);
	put_title(h, s, other);
	time_text(other->opened, "never", when);
	when[strlen("2026-11-21")] = '\0'; /* the day */
	html_printf(h, "</a> <time>%s</time>", when);
	if (other->protocol[0])
		html_printf(h, " · %s", case_results_protocol(other, protocol));
	html_put(h, "</li>");
}

/* Do two cases show the same: both of one kind, side and view? */
static bool same_view(const struct job_view *a, const struct job_view *b)
{
	const struct kind *kind = kind_named(a->kind);
	char of_a[16], of_b[16];
	bool same = !strcmp(a->kind, b->kind);

	for (int k = 0; k < 2 && same; k++) {
		enum case_attribute what = k == 0 ? CASE_LATERALITY : CASE_VIEW;

		kind_key_attribute(kind, a->key, what, of_a, sizeof(of_a));
		kind_key_attribute(kind, b->key, what, of_b, sizeof(of_b));
		same = !strcmp(of_a, of_b);
	}
	return same;
}

/* Where a case stands among those that may stand beside v: 0 and 1 are of its exam, 2 and 3 of others, the even ones of the same view. */
static int rank_beside(const struct job_view *v, const struct job_view *other)
{
	bool exam = v->study[0] && !strcmp(v->study, other->study);

	if (!exam && !same_patient(v, other))
		return -1;
	return (exam ? 0 : 2) + !same_view(v, other);
}

/* What may stand beside it, the newest first in each group. */
static void put_choice(struct html *h, const struct status *s, const struct job_view *v, bool two)
{
	static const char *const titles[] = {"This exam", "Other exams of the patient"};
	size_t n = 0, of_title = 0;

	html_printf(h, "<section id=\"beside\" aria-labelledby=\"h-beside\"><h2 id=\"h-beside\">%s</h2>",
		    say(s->language, "Beside it"));
	(void)jobs_of_study(&s->jobs, v->key); /* which reads them, as the next line does */
	jobs_read_patient(&s->jobs, v);
	for (int rank = 0; rank < 4; rank++) {
		of_title = rank % 2 == 0 ? 0 : of_title;
		for (size_t i = s->jobs.n; i > 0 && n < BESIDE_MAX; i--) {
			const struct job_view *other = s->jobs.list[i - 1];

			if (other == v || rank_beside(v, other) != rank || !status_has_report(s, other))
				continue;
			if (of_title++ == 0)
				html_printf(h, "<h3>%s</h3><ul>", say(s->language, titles[rank / 2]));
			put_beside(h, s, v, other);
			n++;
		}
		html_put(h, rank % 2 == 1 && of_title > 0 ? "</ul>" : "");
	}
	if (two)
		html_printf(h, "<p><a href=\"/jobs/%lld/look\">%s</a></p>", (long long)v->id,
			    say(s->language, "Only the first result"));
	else if (n == 0)
		html_printf(h, "<p class=\"none\">%s</p>",
			    say(s->language, "This node has no other result of the same exam or patient."));
	html_put(h, "</section>\n");
}

void status_write_look(struct html *h, const struct status *s, const struct job_view *const v[2])
{
	bool two = v[1] != NULL;
	char title[120], head[200];

	status_text_title(v[0], s->language, title, sizeof(title));
	snprintf(head, sizeof(head), "%s: %s", say(s->language, "Slices"), title);
	status_page_begin(h, s, head, false);
	put_cases(h, s, v);
	html_printf(h, "<section id=\"look\" data-of=\"look\" data-makers=\"%d\" aria-label=\"%s\">", status_look_makers(),
		    say(s->language, "Pictures"));
	put_tools(h, s->language, two);
	html_put(h, "<div class=\"panes\">\n");
	for (int side = 0; side < 2 && v[side]; side++)
		put_pane(h, s, v[side], side);
	html_printf(h, "</div>\n<p class=\"quiet\" id=\"look-keys\">%s</p><script src=\"/look.js\" defer></script></section>\n",
		    say(s->language,
			"Wheel or arrow keys: slices; Page Up and Page Down: ten; Home and End: first and last. Drag: "
			"window; with Shift: move; Shift and arrow keys: move. Plus and minus: zoom; I: invert; 0: "
			"reset. Finger: slices; two: zoom and move."));
	put_choice(h, s, v[0], two);
	status_page_end(h, s, "");
}
