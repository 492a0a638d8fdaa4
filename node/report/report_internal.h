/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the files of node/report/report.h. Private to them. Each writes one part of the page. */
#ifndef TOMONODE_NODE_REPORT_INTERNAL_H
#define TOMONODE_NODE_REPORT_INTERNAL_H

#include "node/report/planes.h"
#include "node/report/report.h"
#include "node/report/survey.h"

struct report {
	const struct image_series *s;
	const struct dicom_item *root;
	size_t n_objects;
	const struct report_request *request;
	struct survey survey;
	struct picture_levels window;
	const char *window_source; /* constant text: where the window comes from */
	char unit[48];		   /* for people: "Bq/ml"; "": none */
	double suv;		   /* SUV (body weight, g/ml) of a value of 1; NaN: unknown, or the values are SUV */
	const char *no_suv;	   /* why it is unknown; "": it is known, or nobody expects one */
};

/* report.c: write the page up to its first section, and from its last one on. The title is escaped. */
void report_put_begin(struct html *h, const char *title);
void report_put_end(struct html *h);
/* Write an 8-bit grey picture within the page. */
int report_put_picture(struct html *h, int width, int height, const unsigned char *grey, const char *alt, struct err *err);

/* Write a plane with letters, scale bar and caption. name: beginning of the caption, "": none; mark: also the point of
 * plane_picture_mark(); share: of the width that there is. */
int report_put_plane(const struct image_series *s, const struct plane_picture *p, const char *name, bool mark, double share,
		     struct html *h, struct err *err);

/* report_corrections.c: write the section about computed corrections, if the request has them. */
int report_put_corrections(const struct report *r, struct html *h, struct err *err);

/* report_header.c: what the header says. Write the kind of result ("PET"), and the title of the report. */
const char *report_kind(const struct report *r);
void report_title(const struct report *r, char *ret_title, size_t size);
void report_put_facts(const struct report *r, struct html *h);
void report_put_warnings(const struct report *r, struct html *h);
/* Write the unit for people. */
void report_unit(const struct image_series *s, char *ret_unit, size_t size);

/* report_recipe.c: how the result was made. */
/* Read the Derivation Description; "": none. */
void report_derivation(const struct dicom_item *root, char *ret_text, size_t size);
/* Return the part of a derivation description of this program behind its first sentence: the warnings; "": none. Cuts off the
 * last sentence, that it is for research. */
const char *report_derivation_warnings(char *text);
/* Return true if the warnings have this sentence about an assumption, or its beginning. */
bool report_is_assumed(const struct report *r, const char *sentence);
/* Write the row of how the patient lies, from the codes of PET or the attribute of other objects; none for a tomosynthesis. */
void report_put_position(const struct report *r, struct html *h);
void report_put_parameters(const struct report *r, struct html *h);
void report_put_provenance(const struct report *r, struct html *h);
/* Write a row of a table; name is constant text, the value is escaped. Nothing for "". */
void report_put_row(struct html *h, const char *name, const char *value);
/* Return true if the recipe of a result of this program says that it computed corrections for it. */
bool report_has_corrections(const struct dicom_item *root);
/* Read a text of the header as UTF-8, or byte for byte if it is not valid; "": none, or longer than `size`. */
void report_text(const struct dicom_item *root, uint32_t tag, char *ret_text, size_t size);
bool report_is_ours(const struct dicom_item *root); /* made by this program */

/* report_codes.c: write the values of an attribute, separated by blanks, with what their codes mean: "NORM (efficiencies of the
 * detectors), DTIM (dead time)". */
void report_explain(uint32_t tag, const char *values, char *ret_text, size_t size);

/* report_figures.c */
int report_put_figures(const struct report *r, struct html *h, struct err *err);
#endif
