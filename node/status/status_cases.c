/* SPDX-License-Identifier: Apache-2.0 */
/* status_cases.c - write the page with all cases: the search, the cases that fit, page by page, the newest exam first.
 *
 * - Everything that is asked for is in the address of the page, so that it can be kept, sent and reloaded. No script is needed.
 * - Open cases are searched in memory (node/jobs/jobs.h), settled ones by the journal's rows about them; only those on the page are
 *   read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/patient.h"
#include "node/base/list_grow.h"
#include "node/base/time_text.h"
#include "node/jobs/case_results.h"
#include "node/jobs/jobs_settled.h"
#include "node/status/status_internal.h"

#define ROWS 50		/* cases on a page */
#define FOLDED_SIZE 512 /* bytes of a text in the form that is compared */

struct found {
	uint64_t study; /* hash; the cases with the same one are an exam */
	int64_t job;
	int64_t newest; /* the highest number of the exam's cases that were found */
};

struct search {
	const struct status *s;
	const struct status_filter *f;
	char text[FOLDED_SIZE];	     /* that is searched for: case folded, runs of spaces are one; "": any */
	bool is_uid;		     /* it has only digits and dots */
	const struct job_view *with; /* a case that has an image of this UID; NULL: none */
	struct jobs_numbers results; /* cases whose result has an object of this UID */
	struct job_view settled;     /* what is known about the settled case that is looked at */
	struct found *list;	     /* the n cases found, in the order in which they are shown */
	size_t n, room;
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

/* What was read of a settled case is known by its number. A case of which more was read than its own patient is read: they are few. */
static bool patient_fits(const struct search *x, const struct job_view *v)
{
	for (size_t k = 0; k <= PATIENTS_NAMED_MAX && x->s->config->status.show_patient; k++) {
		const struct status_name *name = status_names_read(&x->s->names, v->id, k);
		const struct job_view *whole;

		if (!name || !(contains_text(x, name->name) || contains_text(x, name->id)))
			continue;
		whole = k == 0 ? v : jobs_find(&x->s->jobs, v->id);
		if (whole && status_names_each(&x->s->names, whole, k) == name)
			return true;
	}
	return false;
}

static bool text_fits(const struct search *x, const struct job_view *v)
{
	char number[24];

	if (!x->text[0])
		return true;
	snprintf(number, sizeof(number), "%lld", (long long)v->id);
	return !strcmp(number, x->text) || contains_text(x, v->accession) || contains_text(x, v->calling) ||
	       (x->is_uid && uid_fits(x, v)) || patient_fits(x, v);
}

/* Is one of the lines the text? */
static bool has_line(const char *lines, const char *text)
{
	size_t n = strlen(text);

	for (const char *at = strstr(lines, text); at; at = strstr(at + 1, text))
		if ((at == lines || at[-1] == '\n') && (at[n] == '\n' || !at[n]))
			return true;
	return false;
}

static bool result_fits(const struct search *x, int64_t job, const char *series)
{
	if (!x->is_uid)
		return false;
	for (size_t i = 0; i < x->results.n; i++)
		if (x->results.list[i] == job)
			return true;
	return has_line(series, x->text);
}

static void find_objects(struct search *x)
{
	int64_t job = 0;

	if (!x->is_uid || !x->s->journal)
		return;
	if (journal_find_job_of(x->s->journal, x->text, &job, NULL) == 1)
		x->with = jobs_find(&x->s->jobs, job);
	(void)journal_each_result_job(x->s->journal, x->text, jobs_numbers_add, &x->results, NULL);
}

static int add_found(struct search *x, int64_t job, uint64_t study)
{
	if (!list_grow(&x->list, x->n, &x->room, sizeof(x->list[0])))
		return -ENOMEM;
	if (study == JOBS_NO_STUDY) /* an exam of its own */
		study = (uint64_t)job;
	x->list[x->n++] = (struct found){.study = study, .job = job};
	return 0;
}

static int search_settled(void *ctx, const struct settled_row *row)
{
	struct search *x = ctx;
	const struct job_view *v = jobs_in_memory(&x->s->jobs, row->job);
	const char *series;
	char words[JOBS_WORDS_SIZE];

	if (v && !v->recorded)
		return 0; /* it has settled since the state was read */
	if (row->words) {
		jobs_settled_view(row, words, &x->settled, &series);
		if (!status_filter_matches(x->f, &x->settled) || !(text_fits(x, &x->settled) || result_fits(x, row->job, series)))
			return 0;
	}
	return add_found(x, row->job, row->study);
}

static int by_study(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->study != y->study ? (x->study < y->study ? -1 : 1) : (x->job < y->job) - (x->job > y->job);
}

static int by_newest(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->newest != y->newest ? (x->newest < y->newest ? 1 : -1) : (x->job < y->job) - (x->job > y->job);
}

/* Put the exam with the newest case first; in an exam the newest case. */
static void order_found(struct search *x)
{
	if (x->n > 1)
		qsort(x->list, x->n, sizeof(x->list[0]), by_study);
	for (size_t i = 0; i < x->n; i++)
		x->list[i].newest = i > 0 && x->list[i].study == x->list[i - 1].study ? x->list[i - 1].newest : x->list[i].job;
	if (x->n > 1)
		qsort(x->list, x->n, sizeof(x->list[0]), by_newest);
}

/* Search the settled cases, which are delivered or cleaned. */
static int search_all_settled(struct search *x)
{
	const struct status_filter *f = x->f;
	enum settled_order order = f->state == GROUP_WARNED ? SETTLED_WITH_WARNINGS : SETTLED_BY_JOB;

	if (!f->text[0] && f->state == 0 && f->from == 0 && f->to == 0)
		order = SETTLED_BY_STUDY;
	if (!x->s->journal || f->state == GROUP_ATTENTION || f->state == GROUP_WORK)
		return 0;
	return journal_each_settled(x->s->journal, order, search_settled, x, NULL);
}

/* Find the cases. Returns false if there is no memory for the list, or the journal cannot be read. */
static bool find_cases(struct search *x, const struct status *s, const struct status_filter *f)
{
	int ret = 0;

	*x = (struct search){.s = s, .f = f};
	fold_text(f->text, x->text);
	x->is_uid = strchr(x->text, '.') && !x->text[strspn(x->text, "0123456789.")];
	find_objects(x);
	for (size_t i = 0; ret == 0 && i < s->jobs.n; i++) {
		const struct job_view *v = s->jobs.list[i];

		if (!v->recorded && status_filter_matches(f, v) && text_fits(x, v))
			ret = add_found(x, v->id, v->study[0] ? v->study_link.hash : JOBS_NO_STUDY);
	}
	ret = ret == 0 ? search_all_settled(x) : ret;
	order_found(x);
	x->unread = f->text[0] && s->config->status.show_patient ? status_names_unread(&s->names, s) : 0;
	return ret == 0;
}

static void end_search(struct search *x)
{
	free(x->list);
	free(x->results.list);
}

/* Read the cases `from` and following of those found into ret_rows. Returns their number. */
static size_t take_rows(const struct search *x, size_t from, const struct job_view *ret_rows[ROWS])
{
	size_t n = 0;

	for (size_t i = from; i < x->n && i < from + ROWS; i++) {
		ret_rows[n] = jobs_find(&x->s->jobs, x->list[i].job);
		n += ret_rows[n] != NULL;
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
	html_printf(h, say(s->language, s->n_cases == 1 ? "%zu of %zu case" : "%zu of %zu cases"), x->n, s->n_cases);
	html_put(h, "</h2>\n");
	if (s->facts.journal_error[0])
		html_printf(h, "<p class=\"none\">%s</p>\n", say(s->language, "The journal cannot be read."));
	else if (x->n == 0)
		html_printf(h, "<p class=\"none\">%s</p>\n", say(s->language, s->n_cases ? "No case fits." : "Nothing yet."));
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
		end_search(&x);
		h->failed = true;
		return;
	}
	status_page_begin(h, s, say(s->language, "Cases"), false);
	put_form(h, s, f);
	put_found(h, &x);
	status_filter_query(f, f->page, query, sizeof(query));
	status_page_end(h, s, query);
	end_search(&x);
}
