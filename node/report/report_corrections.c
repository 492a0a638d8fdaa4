/* SPDX-License-Identifier: Apache-2.0 */
/* report_corrections.c - the corrections that this program computed for a PET result: mu, attenuation factors, profiles of counts
 * (node/format/correction_pictures.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/report/chart.h"
#include "node/report/report_internal.h"

#define WATER_PER_CM 0.096 /* mu of water at 511 keV */

/* Write a strip of grey from black to white with the values of its ends. */
static void put_scale(struct html *h, const struct correction_map *m, const char *unit)
{
	html_printf(h, "<p class=\"greys\"><span>%.3g</span><span class=\"strip\"></span><span>%.3g%s%s</span></p>", m->lowest,
		    m->highest, unit[0] ? " " : "", unit);
}

/* ---- mu ---- */

static void opposite_letters(const double v[3], char ret_letters[PLANE_LETTERS])
{
	const double back[3] = {-v[0], -v[1], -v[2]};

	plane_letters(back, ret_letters);
}

static int put_mu(const struct correction_map *m, struct html *h, struct err *err)
{
	const double *a = m->across, *d = m->down;
	const double normal[3] = {a[1] * d[2] - a[2] * d[1], a[2] * d[0] - a[0] * d[2], a[0] * d[1] - a[1] * d[0]};
	char left[PLANE_LETTERS], right[PLANE_LETTERS], top[PLANE_LETTERS], bottom[PLANE_LETTERS], what[64];
	double bar = plane_bar(m->size[0]);
	int rc;

	if (!m->value)
		return 0;
	plane_letters(a, right);
	opposite_letters(a, left);
	plane_letters(d, bottom);
	opposite_letters(d, top);
	snprintf(what, sizeof(what), "mu, %s plane through the middle", plane_name(normal));
	html_printf(h,
		    "<figure class=\"plane\" style=\"--mm:%.4f;--share:1\"><div class=\"around\"><span class=\"top\">%s</span>"
		    "<span class=\"left\">%s</span><div class=\"view\" style=\"aspect-ratio:%.4f/%.4f\">",
		    m->size[0], top, left, m->size[0], m->size[1]);
	rc = report_put_picture(h, m->width, m->height, m->value, what, err);
	html_printf(
		h,
		"</div><span class=\"right\">%s</span><span class=\"bottom\">%s</span><div class=\"scale\"><span class=\"bar\" "
		"style=\"width:%.3f%%\">%g mm</span></div></div><figcaption>%s",
		right, bottom, 100 * bar / m->size[0], bar, what);
	put_scale(h, m, "1/cm");
	html_put(h, "</figcaption></figure>\n");
	return rc;
}

static int put_maps(const struct correction_pictures *p, struct html *h, struct err *err)
{
	int rc = 0;

	html_printf(h,
		    "<h3>Attenuation from the CT</h3><p>mu of photons of 511 keV, smoothed to the resolution of PET; water has "
		    "%g 1/cm.</p><div class=\"planes\">\n",
		    WATER_PER_CM);
	for (int i = 0; rc == 0 && i < CORRECTION_PLANES; i++)
		rc = put_mu(&p->mu[i], h, err);
	html_put(h, "</div>\n");
	return rc;
}

static int put_factors(const struct correction_pictures *p, struct html *h, struct err *err)
{
	char what[96];
	int rc;

	snprintf(what, sizeof(what), "attenuation correction factors of direct plane %d of %d", p->acf_plane + 1, p->n_planes);
	html_printf(h, "<h3>Attenuation correction factors</h3><figure class=\"sinogram\"><div class=\"view\" "
		       "style=\"aspect-ratio:4/3\">");
	rc = report_put_picture(h, p->acf.width, p->acf.height, p->acf.value, what, err);
	html_printf(h,
		    "</div><figcaption>Direct plane %d of %d: from left to right the distance of the ray from the axis, %.4g to "
		    "%.4g mm, from top to bottom its angle, over %g degrees.",
		    p->acf_plane + 1, p->n_planes, -p->acf.size[0] / 2, p->acf.size[0] / 2, p->acf.size[1]);
	put_scale(h, &p->acf, "");
	html_put(h, "</figcaption></figure>\n");
	return rc;
}

/* ---- profiles ---- */

static double sum_of(const double *v, int n)
{
	double sum = 0;

	for (int i = 0; v && i < n; i++)
		sum += v[i];
	return v ? sum : NAN;
}

static void put_profile(const struct correction_pictures *p, const struct correction_profile *of, struct html *h)
{
	struct chart c = {.x_label = "distance from the axis, mm", .y_label = "counts", .marks = {NAN, NAN}};
	const struct chart_line lines[] = {{"prompts", p->n_radial, p->radius, of->prompts},
					   {"randoms", p->n_radial, p->radius, of->randoms},
					   {"scatter", p->n_radial, p->radius, of->scatter}};
	double *trues = of->prompts && of->randoms && of->scatter ? malloc((size_t)p->n_radial * sizeof(*trues)) : NULL;
	char title[128];

	for (int i = 0; trues && i < p->n_radial; i++)
		trues[i] = of->prompts[i] - of->randoms[i] - of->scatter[i];
	snprintf(title, sizeof(title), "Direct plane %d of %d, %.1f mm from the middle: %.0f prompts", of->plane + 1, p->n_planes,
		 of->position, sum_of(of->prompts, p->n_radial));
	c.title = title;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (lines[i].y)
			c.lines[c.n_lines++] = lines[i];
	if (trues)
		c.lines[c.n_lines++] = (struct chart_line){"trues", p->n_radial, p->radius, trues};
	chart_put(h, &c);
	free(trues);
}

static void put_profiles(const struct correction_pictures *p, struct html *h)
{
	const struct correction_profile *first = &p->profile[0];

	html_put(h, "<h3>Counts of three planes</h3><p>Summed over all angles and TOF bins. ");
	if (first->randoms || first->scatter)
		html_printf(h, "%s what the corrections expect%s.",
			    !first->scatter   ? "Randoms:"
			    : !first->randoms ? "Scatter:"
					      : "Randoms, scatter:",
			    first->randoms && first->scatter
				    ? "; trues: prompts less both, which should be 0 outside of the patient"
				    : "");
	html_put(h, "</p><div class=\"charts\">\n");
	for (int i = 0; i < p->n_profiles; i++)
		put_profile(p, &p->profile[i], h);
	html_put(h, "</div>\n");
}

/* ---- the section ---- */

int report_put_corrections(const struct report *r, struct html *h, struct err *err)
{
	const struct correction_pictures *p = r->request->corrections;
	const char *missing = r->request->no_corrections;
	int rc = 0;

	if (!p && !missing[0])
		return 0;
	html_put(h, "<section><h2>Corrections computed for this result</h2>\n");
	if (!p) {
		html_printf(h, "<p>%s</p></section>\n", missing);
		return 0;
	}
	if (p->n_images > 0)
		html_printf(h, "<p>Those of %s %d of %d, which has the most counts.</p>\n", p->image, p->number, p->n_images);
	if (p->mu[0].value)
		rc = put_maps(p, h, err);
	if (rc == 0 && p->acf.value)
		rc = put_factors(p, h, err);
	if (p->n_profiles > 0 && p->radius)
		put_profiles(p, h);
	html_put(h, "</section>\n");
	return rc;
}
