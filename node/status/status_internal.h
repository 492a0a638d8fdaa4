/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the files that write the pages (status_page.c, status_overview.c, status_buttons.c, status_node.c, status_cases.c, status_case.c);
 * private to them. Each writes one part of a page. */
#ifndef TOMONODE_NODE_STATUS_INTERNAL_H
#define TOMONODE_NODE_STATUS_INTERNAL_H

#include "dicom/object/exposure.h"
#include "node/status/say.h"
#include "node/status/status.h"
#include "node/status/status_text.h"

/* Write everything from the doctype to the start tag <main>. title is escaped. refresh: a browser without script loads the page
 * again by itself; a person may not be typing in it. */
void status_page_begin(struct html *h, const struct status *s, const char *title, bool refresh);
/* query: of the address of the page, which the links to its other languages keep: "", or "?q=...". */
void status_page_end(struct html *h, const struct status *s, const char *query);
/* Write the start of a section up to its heading, in the language of the page; without a title a hidden one, whose content may come later. */
void status_page_section(struct html *h, const char *id, const char *title);
/* Write a table up to <tbody>; its rows follow, then status_page_table_end(). On a narrow screen a row of
 * three or more columns is a block; the roles
 * keep it a table for those who do not see it. columns: their n headers, in English. */
void status_page_table(struct html *h, const struct status *s, const char *id, const char *const *columns, size_t n);
void status_page_table_end(struct html *h);
/* A row and a cell of such a table as part of a format; the first text of a cell is the header of its column. */
#define STATUS_ROW(cells) "<tr role=\"row\">" cells "</tr>\n"
#define STATUS_CELL(content) "<td role=\"cell\" data-label=\"%s\">" content "</td>"
/* A badge as part of a format; its texts are status_text_tone() and a word. */
#define STATUS_BADGE "<span class=\"badge %s\">%s</span>"
/* Replace the names of files of a case's images in a text by what persons know the images by: their numbers. */
void status_page_name_images(const struct status *s, const struct job_view *v, char *text, size_t size);
void status_page_picture(struct html *h, const struct status *s, const struct job_view *v, int side);
/* Return the patient of a case (status_names_of()) if the configuration allows to show it, and its name or ID is known; else NULL. */
const struct status_name *status_page_patient(const struct status *s, const struct job_view *v);
/* Write n patients; 0: that they are different ones. */
void status_page_patients(struct html *h, const struct status *s, const struct status_name *const *names, size_t n);
/* Write number of images, sender, time and protocol; patient: the patient's name, too, if the configuration
 * allows it. */
void status_page_facts(struct html *h, const struct status *s, const struct job_view *v, bool patient);
/* Write the sentence about the case (status_text_sentence), its progress and a hint. before: number of ready cases that start
 * earlier. sweeps: those that a person is offered (case_sweeps_offered()). */
void status_page_state(struct html *h, const struct status *s, const struct job_view *v, size_t before,
		       const struct exposures *sweeps);
/* Write a link to the result in the site's viewer; nothing if no destination has it, or none is configured. */
void status_page_viewer(struct html *h, const struct status *s, const struct job_view *v);
/* Write the warnings of the result as a list; folded: that a person can open. Nothing without warnings. */
void status_page_warnings(struct html *h, const struct status *s, const struct job_view *v, bool folded);
/* Write which case a control is of, for those who do not see where it is; the control's visible text is before it. */
void status_page_hidden_case(struct html *h, const struct status *s, const struct job_view *v);
void status_page_case_link(struct html *h, const struct status *s, int64_t job); /* "case 7" */
/* Write its buttons that the person may use (status_buttons.c). */
void status_page_buttons(struct html *h, const struct status *s, const struct job_view *v, const struct exposures *sweeps,
			 const char *token);

#define STATUS_STANDING_MAX 8

struct status_standing { /* a standing warning (node/base/sentence.h) of the results of a sender */
	const char *calling, *sentence;
	size_t n; /* bytes of the sentence */
};
/* Find the different ones of the newest results, of STATUS_LOOK_SECONDS; returns their number. */
size_t status_standing_find(const struct status *s, struct status_standing ret[STATUS_STANDING_MAX]);

/* Write destinations, devices, standing warnings, disk, senders and objects without a case. */
void status_page_node(struct html *h, const struct status *s);

#endif
