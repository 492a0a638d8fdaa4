/* SPDX-License-Identifier: Apache-2.0 */
/* status_cases.c - write the page with all cases: the search, the cases that fit, page by page, the newest exam first.
 *
 * - Everything that is asked for is in the address of the page, so that it can be kept, sent and reloaded. No script is needed.
 * - The cases are those in memory (node/jobs/jobs.h). Only the UID of a received image is searched for in the journal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/patient.h"
#include "node/base/time_text.h"
#include "node/jobs/case_results.h"
#include "node/status/status_internal.h"

#define ROWS 50		/* cases on a page */
#define FOLDED_SIZE 512 /* bytes of a text in the form that is compared */

struct search {
	const struct status *s;
	const struct status_filter *f;
	char text[FOLDED_SIZE];	      /* that is searched for: case folded, runs of spaces are one; "": any */
	bool is_uid;		      /* it has only digits and dots */
	const struct job_view *with;  /* a case that has an image of this UID; NULL: none */
	const struct job_view **list; /* the n cases found, those of an exam together */
	size_t n;
	struct status_exam *exams; /* the exams of these cases, that with the newest of them first; other members are not set */
	size_t n_exams;
	size_t unread; /* cases whose patient is not known yet */
};

static void fold_text(const char *text, char ret[FOLDED_SIZE])
{
	patient_normalise(PATIENT_ID, text, ret, FOLDED_SIZE);
}

static bool contains_text(const struct search *x, const char *text)
{
	char folded[FOLDED_SIZE];

	if (!text[0])
		return false;
	fold_text(text, folded);
	return strstr(folded, x->text) != NULL;
}

/* The UIDs of a case: those in its key, of its study, of its result, of its images. Parts of UIDs are found, too, except of
 * images. */
static bool uid_fits(const struct search *x, const struct job_view *v)
{
	if (strstr(v->study, x->text) || strstr(v->key, x->text) || (x->with && !strcmp(x->with->key, v->key)))
		return true;
	for (size_t i = 0; i < v->n_objects; i++)
		if (!strcmp(v->objects[i].sop_instance, x->text) || !strcmp(v->objects[i].series, x->text))
			return true;
	return false;
}

static bool text_fits(const struct search *x, const struct job_view *v)
{
	char number[24];

	if (!x->text[0])
		return true;
	snprintf(number, sizeof(number), "%lld", (long long)v->id);
	if (!strcmp(number, x->text) || contains_text(x, v->accession) || contains_text(x, v->calling) ||
	    (x->is_uid && uid_fits(x, v)))
		return true;
	for (size_t k = 0; k <= PATIENTS_NAMED_MAX && x->s->config->status.show_patient; k++) {
		const struct status_name *name = status_names_each(&x->s->names, v, k);

		if (name && (contains_text(x, name->name) || contains_text(x, name->id)))
			return true;
	}
	return false;
}

static void find_image(struct search *x)
{
	int64_t job = 0;

	if (x->is_uid && x->s->journal && journal_find_job_of(x->s->journal, x->text, &job, NULL) == 1)
		x->with = jobs_find(&x->s->jobs, job);
}

static int newest_first(const void *a, const void *b)
{
	const struct job_view *x = *(const struct job_view *const *)a, *y = *(const struct job_view *const *)b;

	return (x->id < y->id) - (x->id > y->id);
}

/* Find the cases of an exam. */
static void search_exam(struct search *x, const struct status_exam *exam)
{
	struct status_exam found = {.cases = &x->list[x->n]};

	for (size_t i = 0; i < exam->n; i++) {
		const struct job_view *v = exam->cases[i];

		if (!status_filter_matches(x->f, v) || !text_fits(x, v))
			continue;
		x->list[x->n++] = v;
		found.n++;
		found.newest = v->id > found.newest ? v->id : found.newest;
	}
	if (found.n > 0)
		x->exams[x->n_exams++] = found;
}

/* Find the cases. Returns false if there is no memory for the list. */
static bool find_cases(struct search *x, const struct status *s, const struct status_filter *f)
{
	*x = (struct search){.s = s,
			     .f = f,
			     .list = malloc((s->jobs.n + 1) * sizeof(x->list[0])),
			     .exams = malloc((s->n_exams + 1) * sizeof(x->exams[0]))};
	if (!x->list || !x->exams)
		return false;
	fold_text(f->text, x->text);
	x->is_uid = strchr(x->text, '.') && !x->text[strspn(x->text, "0123456789.")];
	find_image(x);
	for (size_t i = 0; i < s->n_exams; i++)
		search_exam(x, &s->exams[i]);
	status_exams_order_newest(x->exams, x->n_exams);
	x->unread = f->text[0] && s->config->status.show_patient ? status_names_unread(&s->names, s) : 0;
	return true;
}

/* Write the cases `from` and following of those found into ret_rows; in an exam the newest first. Returns their number. Only the
 * exams of these rows are put in order. */
static size_t take_rows(const struct search *x, size_t from, const struct job_view *ret_rows[ROWS])
{
	size_t at = 0, n = 0;

	for (size_t i = 0; i < x->n_exams && n < ROWS; at += x->exams[i++].n) {
		const struct status_exam *e = &x->exams[i];

		if (at + e->n <= from)
			continue;
		qsort(e->cases, e->n, sizeof(e->cases[0]), newest_first);
		for (size_t k = from > at ? from - at : 0; k < e->n && n < ROWS; k++)
			ret_rows[n++] = e->cases[k];
	}
	return n;
}

/* ---- the form ---- */

static void day_field(struct html *h, enum status_field field, const char *label, int day)
{
	const char *name = status_filter_field(field);
	char text[32];

	status_filter_day(day, text, sizeof(text));
	html_printf(h, "<p><label for=\"%s\">%s</label><input type=\"date\" id=\"%s\" name=\"%s\" value=\"%s\"></p>", name, label,
		    name, name, text);
}

static void put_form(struct html *h, const struct status *s, const struct status_filter *f)
{
	const char *value, *label;

	html_printf(
		h,
		"<section id=\"search\" aria-labelledby=\"h-search\"><h1 id=\"h-search\">%s</h1>"
		"<form class=\"search\" role=\"search\" method=\"get\" action=\"/cases\"><p class=\"wide\"><label "
		"for=\"q\">%s</label><input type=\"search\" id=\"q\" name=\"q\" maxlength=\"%d\" autocomplete=\"off\" value=\"",
		say(s->language, "Cases"),
		say(s->language, s->config->status.show_patient ? "Accession number, patient, UID, case number or sender"
								: "Accession number, UID, case number or sender"),
		STATUS_FILTER_TEXT - 1);
	html_printf(h, "%s\"></p><p><label for=\"state\">%s</label><select id=\"state\" name=\"state\">", f->text,
		    say(s->language, "State"));
	for (int i = 0; status_filter_state(i, &value, &label); i++)
		html_printf(h, "<option value=\"%s\"%s>%s</option>", value, i == f->state ? " selected" : "",
			    say(s->language, label));
	html_put(h, "</select></p>");
	day_field(h, FIELD_FROM, say(s->language, "Received from"), f->from);
	day_field(h, FIELD_TO, say(s->language, "until"), f->to);
	html_printf(
		h,
		"<p class=\"go\"><button class=\"first\" id=\"b-search\">%s</button> <a href=\"/cases\" id=\"clear\">%s</a></p>"
		"</form>",
		say(s->language, "Search"), say(s->language, "Clear the search"));
	if (f->wrong)
		html_put(h, "<p class=\"wrong\" role=\"alert\">");
	if (f->wrong & 1u << FIELD_TEXT)
		html_printf(h, say(s->language, "The text is longer than %d bytes. "), STATUS_FILTER_TEXT - 1);
	if (f->wrong & 1u << FIELD_STATE)
		html_printf(h, "%s ", say(s->language, "There is no such state."));
	if (f->wrong & (1u << FIELD_FROM | 1u << FIELD_TO))
		html_printf(h, "%s ", say(s->language, "A day is not of the form 2026-11-23."));
	if (f->wrong & 1u << FIELD_PAGE)
		html_printf(h, "%s ", say(s->language, "There is no such page."));
	if (f->wrong)
		html_printf(h, "%s</p>", say(s->language, "It is not used for the search."));
	if (f->from > 0 && f->to > 0 && f->from > f->to)
		html_printf(h, "<p class=\"wrong\" role=\"alert\">%s</p>",
			    say(s->language, "The first day is after the last: no case can fit. Exchange the days."));
	html_put(h, "</section>\n");
}

/* ---- the cases ---- */

enum column { COLUMN_CASE, COLUMN_STATE, COLUMN_RECEIVED, COLUMN_WHAT, COLUMN_PATIENT = COLUMN_WHAT + 4 };

static const char *const columns[] = {"Case", "State", "Received", "What", "Accession", "From", "Protocol", "Patient"};

/* same: the row above is of the same exam. */
static void put_row(struct html *h, const struct status *s, const struct job_view *v, bool same)
{
	const struct status_name *name = status_names_of(&s->names, v);
	char title[120], when[TIME_TEXT_SIZE], protocol[OTHER_RESULT_TEXT];
	const char *word, *texts[] = {title, v->accession, v->calling, protocol};
	enum status_tone tone = status_text_state(v, &word);

	status_text_title(v, s->language, title, sizeof(title));
	case_results_protocol(v, protocol);
	html_put(h, same ? "<tr role=\"row\" class=\"same\">" : "<tr role=\"row\">");
	html_printf(h,
		    STATUS_CELL("<a id=\"a-%lld\" href=\"/jobs/%lld\">%lld</a>") STATUS_CELL(STATUS_BADGE)
			    STATUS_CELL("<time>%s</time>"),
		    say(s->language, columns[COLUMN_CASE]), (long long)v->id, (long long)v->id, (long long)v->id,
		    say(s->language, columns[COLUMN_STATE]), status_text_tone(tone), say(s->language, word),
		    say(s->language, columns[COLUMN_RECEIVED]),
		    time_text(v->members.first > 0 ? v->members.first : v->opened, "never", when));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) /* an empty cell is not shown on a narrow screen */
		html_printf(h, texts[i][0] ? STATUS_CELL("<bdi>%s</bdi>") : STATUS_CELL("%s"),
			    say(s->language, columns[COLUMN_WHAT + i]), texts[i]);
	if (s->config->status.show_patient && name && (name->name[0] || name->id[0]))
		html_printf(h, STATUS_CELL("<bdi>%s</bdi> <bdi class=\"quiet\">%s</bdi>"),
			    say(s->language, columns[COLUMN_PATIENT]), name->name, name->id);
	else if (s->config->status.show_patient)
		html_printf(h, STATUS_CELL("%s"), say(s->language, columns[COLUMN_PATIENT]),
			    patients_are_mixed(v) ? say(s->language, "Different patients") : "");
	html_put(h, "</tr>\n");
}

static void page_link(struct html *h, const struct status_filter *f, int page, const char *id, const char *word, bool there)
{
	char query[STATUS_FILTER_QUERY];

	if (!there) {
		html_printf(h, "<span class=\"off\">%s</span> ", word);
		return;
	}
	status_filter_query(f, page, query, sizeof(query));
	html_printf(h, "<a id=\"%s\" href=\"/cases%s\">%s</a> ", id, query, word);
}

static void put_pager(struct html *h, const struct status *s, const struct status_filter *f, int page, int pages)
{
	if (pages < 2)
		return;
	html_printf(h, "<nav class=\"pager\" aria-label=\"%s\">", say(s->language, "Pages"));
	page_link(h, f, 0, "p-first", say(s->language, "First"), page > 0);
	page_link(h, f, page - 1, "p-previous", say(s->language, "Previous"), page > 0);
	html_put(h, "<span>");
	html_printf(h, say(s->language, "Page %d of %d"), page + 1, pages);
	html_put(h, "</span> ");
	page_link(h, f, page + 1, "p-next", say(s->language, "Next"), page + 1 < pages);
	page_link(h, f, pages - 1, "p-last", say(s->language, "Last"), page + 1 < pages);
	html_put(h, "</nav>\n");
}

static void put_found(struct html *h, const struct search *x)
{
	const struct status *s = x->s;
	int pages = (int)((x->n + ROWS - 1) / ROWS), page = x->f->page < pages ? x->f->page : pages > 0 ? pages - 1 : 0;

	html_put(h, "<section id=\"found\" aria-labelledby=\"h-found\"><h2 id=\"h-found\">");
	html_printf(h, say(s->language, s->jobs.n == 1 ? "%zu of %zu case" : "%zu of %zu cases"), x->n, s->jobs.n);
	html_put(h, "</h2>\n");
	if (s->facts.journal_error[0])
		html_printf(h, "<p class=\"none\">%s</p>\n", say(s->language, "The journal cannot be read."));
	else if (x->n == 0)
		html_printf(h, "<p class=\"none\">%s</p>\n", say(s->language, s->jobs.n ? "No case fits." : "Nothing yet."));
	if (x->unread > 0) {
		html_put(h, "<p class=\"none\">");
		html_printf(h, say(s->language, "Patients are still being read (%zu): further cases may be found in a moment."),
			    x->unread);
		html_put(h, "</p>\n");
	}
	if (x->n > 0) {
		const struct job_view *rows[ROWS];
		size_t n = take_rows(x, (size_t)page * ROWS, rows);

		status_page_table(h, s, "cases", columns, COLUMN_PATIENT + s->config->status.show_patient);
		for (size_t i = 0; i < n; i++)
			put_row(h, s, rows[i], i > 0 && rows[i]->study[0] && !strcmp(rows[i]->study, rows[i - 1]->study));
		status_page_table_end(h);
		put_pager(h, s, x->f, page, pages);
	}
	html_put(h, "</section>\n");
}

void status_write_cases(struct html *h, const struct status *s, const struct status_filter *f)
{
	char query[STATUS_FILTER_QUERY];
	struct search x;

	if (!find_cases(&x, s, f)) {
		free(x.list);
		free(x.exams);
		h->failed = true;
		return;
	}
	status_page_begin(h, s, say(s->language, "Cases"), false);
	put_form(h, s, f);
	put_found(h, &x);
	status_filter_query(f, f->page, query, sizeof(query));
	status_page_end(h, s, query);
	free(x.list);
	free(x.exams);
}
