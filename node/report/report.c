/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - see node/report/report.h: the page itself, its window and its pictures. */
#include "node/report/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/version.h"
#include "node/format/picture.h"
#include "node/report/report_internal.h"
#include "node/report/web.h"

#define REACH 8.0      /* mm: larger circles find the skull */
#define REACH_PET 24.0 /* mm: the largest sphere of NEMA NU 2 has a diameter of 37 mm */
#define PLANES 6       /* three through the middle, three through the largest contrast */

/* ---- bytes as text ---- */

static void put_base64(struct html *h, const unsigned char *bytes, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char text[4096];
	size_t at = 0;

	for (size_t i = 0; i < n; i += 3) {
		size_t left = n - i;
		unsigned v =
			(unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0);

		text[at++] = digits[v >> 18];
		text[at++] = digits[v >> 12 & 63];
		text[at++] = left > 1 ? digits[v >> 6 & 63] : '=';
		text[at++] = left > 2 ? digits[v & 63] : '=';
		if (at == sizeof(text) || left <= 3) {
			html_bytes(h, text, at);
			at = 0;
		}
	}
}

/* Write the hash of a text as a Content-Security-Policy has it. */
static void put_hash(struct html *h, const char *text, size_t n)
{
	unsigned char bytes[32];
	char hex[65];

	dicom_sha256(text, n, hex);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};

		bytes[i] = (unsigned char)strtoul(digits, NULL, 16);
	}
	html_put(h, "'sha256-");
	put_base64(h, bytes, sizeof(bytes));
	html_put(h, "'");
}

/* ---- window ---- */

/* Write the unit behind a number. */
static void put_unit(const struct report *r, struct html *h)
{
	if (r->unit[0])
		html_put(h, " ");
	html_text(h, r->unit);
}

static void put_window(const struct report *r, struct html *h)
{
	html_printf(h, "<p>Window %.4g to %.4g", r->window.lo, r->window.hi);
	put_unit(r, h);
	if (isfinite(r->suv))
		html_printf(h, " (SUV %.3g to %.3g)", r->suv * r->window.lo, r->suv * r->window.hi);
	html_printf(h, ": %s.</p>\n", r->window_source);
}

/* ---- pictures ---- */

int report_put_picture(struct html *h, int width, int height, const unsigned char *grey, const char *alt, struct err *err)
{
	unsigned char *bytes = NULL;
	size_t n = 0;
	int rc = picture_encode(width, height, grey, &bytes, &n, err);

	if (rc < 0)
		return rc;
	html_printf(h, "<img alt=\"%s\" width=\"%d\" height=\"%d\" src=\"data:image/png;base64,", alt, width, height);
	put_base64(h, bytes, n);
	html_put(h, "\">");
	free(bytes);
	return 0;
}

static int put_image(struct html *h, const struct plane_picture *p, const char *alt, struct err *err)
{
	return report_put_picture(h, p->width, p->height, p->grey, alt, err);
}

static void describe_plane(const struct image_series *s, const struct plane_picture *p, const char *name, char *ret, size_t size)
{
	static const char *const axes[] = {"column", "row", "slice"};
	const double *normals[] = {s->across, s->down, s->normal};

	snprintf(ret, size, "%s%s%s, %s %d of %d", name, name[0] ? ", " : "", plane_name(normals[p->axis]), axes[p->axis],
		 p->index + 1, s->n[p->axis]);
}

int report_put_plane(const struct image_series *s, const struct plane_picture *p, const char *name, bool mark, double share,
		     struct html *h, struct err *err)
{
	double bar = plane_bar(p->mm[0]);
	char what[240];
	int rc;

	describe_plane(s, p, name, what, sizeof(what));
	html_printf(
		h,
		"<figure class=\"plane\" style=\"--mm:%.4f;--px:%d;--share:%.4f\"><div class=\"around\"><span class=\"top\">%s</span>"
		"<span class=\"left\">%s</span><div class=\"view\" style=\"aspect-ratio:%.4f/%.4f\">",
		p->mm[0], p->width, share, p->top, p->left, p->mm[0], p->mm[1]);
	rc = put_image(h, p, what, err);
	if (mark)
		html_printf(h, "<span class=\"mark\" style=\"left:%.3f%%;top:%.3f%%\"></span>", 100 * p->at[0], 100 * p->at[1]);
	html_printf(
		h,
		"</div><span class=\"right\">%s</span><span class=\"bottom\">%s</span><div class=\"scale\"><span class=\"bar\" "
		"style=\"width:%.3f%%\">%g mm</span></div></div>",
		p->right, p->bottom, 100 * bar / p->mm[0], bar);
	html_printf(h, "<figcaption>%s", what);
	if (p->step[0] > 1 || p->step[1] > 1)
		html_printf(h, "; a pixel is the mean of %d x %d voxels", p->step[0], p->step[1]);
	html_put(h, "</figcaption></figure>\n");
	return rc;
}

static void put_contrast(const struct report *r, struct html *h)
{
	const struct survey *v = &r->survey;
	const struct image_series *s = r->s;
	double p[3];

	if (isnan(v->contrast)) {
		html_put(h, "<p>No detail differs from its surroundings: the planes are those through the middle.</p>\n");
		return;
	}
	for (int c = 0; c < 3; c++)
		p[c] = s->corner[c] + v->at[0] * s->spacing[0] * s->across[c] + v->at[1] * s->spacing[1] * s->down[c] +
		       v->at[2] * s->spacing[2] * s->normal[c];
	html_printf(h, "<p>Column %d, row %d, slice %d (patient: %.1f, %.1f, %.1f mm): at least %.4g", v->at[0] + 1, v->at[1] + 1,
		    v->at[2] + 1, p[0], p[1], p[2], fabs(v->contrast));
	put_unit(r, h);
	html_printf(h, " %s than all around it.</p>\n", v->contrast > 0 ? "more" : "less");
}

/* Write three planes at about the same scale: beside each other, or the sections, if they are low, one below the other. */
static int put_three(const struct report *r, const struct plane_picture planes[3], bool mark, struct html *h, struct err *err)
{
	double width = fmax(planes[1].mm[0], planes[2].mm[0]);
	bool low = planes[1].mm[1] + planes[2].mm[1] < planes[0].mm[1];
	int rc;

	html_put(h, "<div class=\"planes\">\n");
	rc = report_put_plane(r->s, &planes[0], "", mark, 1, h, err);
	if (low)
		html_printf(h, "<div class=\"sections\" style=\"--mm:%.4f\">\n", width);
	for (int i = 1; rc == 0 && i < 3; i++)
		rc = report_put_plane(r->s, &planes[i], "", mark, planes[i].mm[0] / width, h, err);
	html_put(h, low ? "</div></div>\n" : "</div>\n");
	return rc;
}

static int put_planes(const struct report *r, const struct plane_picture planes[PLANES], struct html *h, struct err *err)
{
	int rc;

	html_put(h, "<section><h2>Planes through the middle</h2>\n");
	put_window(r, h);
	rc = put_three(r, planes, false, h, err);
	html_put(h, "</section>\n<section><h2>Planes through the largest contrast</h2>\n");
	put_contrast(r, h);
	if (rc == 0)
		rc = put_three(r, planes + 3, !isnan(r->survey.contrast), h, err);
	html_put(h, "<p class=\"quiet\">R, L: right, left; A, P: front, back; H, F: head, feet of the patient. Positions in the "
		    "patient: x to the left, y to the back, z to the head, mm.</p></section>\n");
	return rc;
}

/* Write the number of a slice and where it is: in the patient as above, of a tomosynthesis its height above the first slice. */
static void describe_slice(const struct image_series *s, int k, char *ret, size_t size)
{
	int axis = 0;
	double at;

	for (int a = 1; a < 3; a++)
		axis = fabs(s->normal[a]) > fabs(s->normal[axis]) ? a : axis;
	at = s->corner[axis] + k * s->spacing[2] * s->normal[axis];
	for (int a = 0; a < 2; a++) /* the middle of the slice */
		at += (s->n[a] - 1) / 2.0 * s->spacing[a] * (a == 0 ? s->across : s->down)[axis];
	if (s->tomo)
		snprintf(ret, size, "slice %d of %d, %.4g mm from the first", k + 1, s->n[2], k * s->spacing[2]);
	else
		snprintf(ret, size, "slice %d of %d, patient %c %.1f mm", k + 1, s->n[2], "xyz"[axis], at);
}

static int put_slices(const struct report *r, const struct plane_picture *slices, size_t n, struct html *h, struct err *err)
{
	int rc = 0;

	html_printf(h,
		    "<section><h2>Slices</h2><p>%zu of %d slices.</p>\n<div id=\"slices\" class=\"slices\" data-first=\"%zu\">\n",
		    n, r->s->n[2], n / 2);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		char what[64];

		describe_slice(r->s, slices[i].index, what, sizeof(what));
		html_printf(h, "<figure style=\"--ratio:%.4f\">", slices[i].mm[0] / slices[i].mm[1]);
		rc = put_image(h, &slices[i], what, err);
		html_printf(h, "<figcaption>%s</figcaption></figure>\n", what);
	}
	html_put(h, "</div></section>\n");
	return rc;
}

/* ---- the page ---- */

void report_put_begin(struct html *h, const char *title)
{
	html_put(h, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
		    "http-equiv=\"Content-Security-Policy\" "
		    "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src ");
	put_hash(h, report_script, sizeof(report_script) - 1);
	html_printf(h,
		    "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" "
		    "href=\"data:,\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" "
		    "content=\"no-referrer\">\n<title>%s</title>\n<style>\n",
		    title);
	html_put(h, report_style);
	html_printf(h,
		    "</style>\n</head>\n<body>\n<header><h1>%s</h1><p><strong>Not for diagnostic use.</strong></p></header>\n"
		    "<main>\n",
		    title);
}

void report_put_end(struct html *h)
{
	html_put(h, "</main>\n<footer><p>Report of tomonode " TOMONODE_VERSION " (" TOMONODE_REVISION
		    "). Pictures have 8 bits: measure in the objects.</p></footer>\n<script>");
	html_put(h, report_script);
	html_put(h, "</script>\n</body>\n</html>\n");
}

static int write_page(const struct report *r, const struct plane_picture *pictures, size_t n, struct html *h, struct err *err)
{
	char title[256];
	int rc;

	report_title(r, title, sizeof(title));
	report_put_begin(h, title);
	html_put(h, "<section>\n");
	report_put_facts(r, h);
	html_put(h, "</section>\n");
	report_put_warnings(r, h);
	rc = put_planes(r, pictures, h, err);
	if (rc == 0 && r->s->n[2] > 1)
		rc = put_slices(r, pictures + PLANES, n - PLANES, h, err);
	if (rc == 0)
		rc = report_put_figures(r, h, err);
	if (rc == 0)
		rc = report_put_corrections(r, h, err);
	report_put_parameters(r, h);
	report_put_provenance(r, h);
	report_put_end(h);
	if (rc == 0 && h->failed)
		rc = err_set(err, ENOMEM, "the report is larger than %u bytes, or memory is exhausted", HTML_MAX);
	return rc;
}

int report_make(const struct image_series *s, const struct dicom_item *root, size_t n_objects,
		const struct report_request *request, struct html *h, struct err *err)
{
	struct report r = {.s = s, .root = root, .n_objects = n_objects, .request = request, .suv = NAN, .no_suv = ""};
	struct plane_picture pictures[PLANES + REPORT_SLICES] = {0};
	size_t n = s->n[2] < REPORT_SLICES ? (size_t)s->n[2] : REPORT_SLICES;
	int rc = survey_make(s, !strcmp(report_kind(&r), "PET") ? REACH_PET : REACH, &r.survey, err);

	if (rc < 0)
		return rc;
	if (request->suv && !strcmp(s->units, "BQML"))
		r.suv = request->suv->factor;
	if (request->suv && strcmp(s->units, "CNTS") != 0)
		r.no_suv = request->suv->reason;
	report_unit(s, r.unit, sizeof(r.unit));
	rc = survey_window(s, &r.survey, &r.window, &r.window_source, err);
	for (int a = 0; a < 3; a++) { /* slice, then the sections at a row and at a column */
		plane_picture_plan(s, 2 - a, s->n[2 - a] / 2, REPORT_PLANE_SIDE, &pictures[a]);
		plane_picture_plan(s, 2 - a, r.survey.at[2 - a], REPORT_PLANE_SIDE, &pictures[3 + a]);
		plane_picture_mark(s, r.survey.at, &pictures[3 + a]);
	}
	for (size_t i = 0; i < n; i++)
		plane_picture_plan(s, 2, (int)((2 * i + 1) * (size_t)s->n[2] / (2 * n)), REPORT_SLICE_SIDE,
				   &pictures[PLANES + i]);
	if (s->tomo) /* air is black */
		s->tomo->padded = (float)r.window.lo;
	if (rc == 0)
		rc = plane_pictures_fill(s, r.survey.image, &r.window, pictures, PLANES + n, err);
	if (rc == 0)
		rc = write_page(&r, pictures, PLANES + n, h, err);
	plane_pictures_clear(pictures, PLANES + n);
	survey_clear(&r.survey);
	return rc;
}
