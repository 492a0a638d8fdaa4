/* SPDX-License-Identifier: Apache-2.0 */
/* profile_page.c - the page that node/tools/profile_page.h describes. */
#include "node/tools/profile_page.h"

#include <math.h>
#include <stdlib.h>

#include "node/base/html.h"

#define CHART_WIDTH 640.0
#define CHART_HEIGHT 220.0
#define MARGIN 40.0
#define ARROW 40.0 /* length of the arrow of the largest residual, pixels */

static const char style[] =
	"body{font:15px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
	"table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #bbb;padding:.2em .6em;text-align:right}"
	"td:first-child,th:first-child{text-align:left}.bad{color:#a00}.good{color:#060}"
	"svg{background:#fafafa;border:1px solid #ccc}svg text{font-size:12px}";

/* Write the result of the fit or of the check in one sentence. */
static void put_verdict(struct html *h, const struct exam *exam, const struct profile_result *r,
			const struct profile_constancy *check)
{
	const char *reason = check ? check->reason : r->refused;

	if (reason[0]) {
		html_put(h, check && !r->refused[0] ? "<p class=\"bad\"><b>The check failed:</b> "
						    : "<p class=\"bad\"><b>Refused:</b> ");
		html_text(h, reason);
	} else if (check) {
		html_printf(h, "<p class=\"good\"><b>Passed:</b> the profile <code>%s</code> describes the system.",
			    exam->profile->name);
	} else {
		html_put(h, "<p class=\"good\"><b>The fit may be used:</b> <code>profile.conf</code>.");
	}
	html_put(h, "</p>\n");
}

static void put_head(struct html *h, const struct exam *exam, const struct profile_result *r,
		     const struct profile_constancy *check)
{
	html_put(h, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Geometry profile</title><style>");
	html_put(h, style);
	html_printf(h,
		    "</style></head><body>\n<h1>Geometry of a tomosynthesis system</h1>\n<p>Start: profile <code>%s</code>. %d "
		    "views, %d beads of the phantom (%d found), %d positions (%d left out).</p>\n",
		    exam->profile->name, r->input.views.n_views, r->input.phantom.n_beads, r->n_found, r->input.n_points,
		    r->n_dropped);
	put_verdict(h, exam, r, check);
	html_printf(h,
		    "<p>Residuals: %.3f bins rms, %.3f with the geometry of the start. Largest mean residual of a view: %.1f "
		    "standard deviations%s.</p>\n",
		    r->fit.rms, r->rms_before, r->trend, r->trend > 5 ? ": the residuals depend on the view" : "");
}

static void put_change(struct html *h, const struct profile_change *c)
{
	if (c->compared)
		html_printf(h, "<td class=\"%s\">%.4f</td><td>%.2g</td>", c->passed ? "" : "bad", c->change, c->allowed);
	else
		html_put(h, "<td></td><td></td>");
}

static void put_parameters(struct html *h, const struct profile_result *r, const struct profile_constancy *check)
{
	html_put(h, "<h2>Parameters</h2>\n<table><tr><th>parameter</th><th>start</th><th>fitted</th><th>standard "
		    "deviation</th><th>its limit</th>");
	html_put(h, check ? "<th>change</th><th>limit of the change</th><th>unit</th></tr>\n" : "<th>unit</th></tr>\n");
	for (int i = 0; i < SYSTEM_PARAMETERS; i++) {
		double limit = bead_sd_limit(i, r->input.views.definition);

		html_printf(h, "<tr><td>%s</td><td>%.4g</td>", system_parameter_names[i], r->input.start[i]);
		if (r->fit.sd[i] != 0)
			html_printf(h, "<td>%.4f%s</td><td class=\"%s\">%.2g</td><td>%g</td>", r->fit.value[i],
				    r->fit.at_limit[i] ? " (at its limit)" : "", r->fit.sd[i] <= limit ? "" : "bad", r->fit.sd[i],
				    limit);
		else
			html_put(h, "<td>not fitted</td><td></td><td></td>");
		if (check)
			put_change(h, &check->change[i]);
		html_printf(h, "<td>%s</td></tr>\n", system_parameter_units[i]);
	}
	html_put(h, "</table>\n");
}

static void put_conventions(struct html *h, const struct bead_conventions *c)
{
	if (c->n == 0)
		return;
	html_put(h,
		 "<h2>Conventions</h2>\n<table><tr><th>sign of the angles</th><th>angle about</th><th>images</th><th>residuals, "
		 "bins</th><th></th></tr>\n");
	for (int i = 0; i < c->n; i++) {
		const struct bead_trial *t = &c->trials[i];

		html_printf(h, "<tr><td>%s</td><td>%s</td><td>%s</td><td>%.4g</td><td>%s</td></tr>\n",
			    t->sign > 0 ? "as in the profile" : "reversed",
			    t->definition == ANGLE_ABOUT_AXIS ? "axis" : "detector", t->mirrored ? "mirrored" : "as stored",
			    t->rms, i == c->best ? "chosen" : "");
	}
	html_put(h, "</table>\n");
}

/* Draw the residuals of each view: a bar for the root mean square, points for the means along u and v. */
static void put_views(struct html *h, const struct profile_result *r)
{
	int n = r->input.views.n_views;
	double most = 1e-6, step = (CHART_WIDTH - 2 * MARGIN) / n, middle = CHART_HEIGHT / 2, scale;

	for (int i = 0; i < n; i++)
		most = fmax(most, fmax(r->views[i].rms, fmax(fabs(r->views[i].mean[0]), fabs(r->views[i].mean[1]))));
	scale = (middle - 20) / most;
	html_put(h,
		 "<h2>Residuals by view</h2>\n<p>Bars: root mean square; blue points: mean along u, red points: along v. A trend "
		 "shows an "
		 "error of the model.</p>\n");
	html_printf(h,
		    "<svg width=\"%g\" height=\"%g\"><line x1=\"%g\" y1=\"%g\" x2=\"%g\" y2=\"%g\" stroke=\"#888\"/>"
		    "<text x=\"2\" y=\"24\">%.2f</text><text x=\"2\" y=\"%g\">0 bins</text>\n",
		    CHART_WIDTH, CHART_HEIGHT, MARGIN, middle, CHART_WIDTH - MARGIN, middle, most, middle - 2);
	for (int i = 0; i < n; i++) {
		double x = MARGIN + (i + 0.5) * step;

		html_printf(h, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#ccc\"/>", x - 0.35 * step,
			    middle - scale * r->views[i].rms, 0.7 * step, scale * r->views[i].rms);
		html_printf(h,
			    "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#06c\"/><circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" "
			    "fill=\"#c00\"/>",
			    x - 2, middle - scale * r->views[i].mean[0], x + 2, middle - scale * r->views[i].mean[1]);
		if (n <= 15 || i % (n / 10) == 0)
			html_printf(h, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%.1f&deg;</text>\n", x, CHART_HEIGHT - 4,
				    r->angle[i]);
	}
	html_put(h, "</svg>\n");
}

static const char *const bead_numbers[] = {
	[BEADS_KNOWN] = "their numbers in the phantom",
	[BEADS_IN_LAYERS] = "the numbers of their layers",
	[BEADS_UNKNOWN] = "numbers in the order in which they were found",
};

/* Draw one view with its beads, and every residual as an arrow at its place. */
static void put_detector(struct html *h, const struct profile_result *r, int central, const int size[2])
{
	double scale = (double)size[0] / r->input.views.n_u, most = 1e-6;

	for (int i = 0; i < r->input.n_points; i++)
		most = fmax(most, hypot(r->fit.residual[i][0], r->fit.residual[i][1]));
	html_put(h, "<h2>Beads and residuals</h2>\n");
	html_printf(h,
		    "<p>The view at %.2f&deg;, u to the right (away from the chest wall), v downward. Circles: beads of this "
		    "view, with %s; lines: residuals of all views, the longest is %.2f bins.</p>\n",
		    r->angle[central], bead_numbers[r->input.phantom.knowledge], most);
	html_printf(h, "<svg width=\"%d\" height=\"%d\"><image href=\"view.png\" width=\"%d\" height=\"%d\"/>\n", size[0],
		    size[1], size[0], size[1]);
	for (int i = 0; i < r->input.n_points; i++) {
		const struct bead_point *p = &r->input.points[i];
		double x = (p->at[0] + 0.5) * scale, y = (p->at[1] + 0.5) * scale, *d = r->fit.residual[i];

		html_printf(h, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#f80\"/>", x, y,
			    x + ARROW * d[0] / most, y + ARROW * d[1] / most);
		if (p->view == central)
			html_printf(h,
				    "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"7\" fill=\"none\" stroke=\"#0c0\"/><text x=\"%.1f\" "
				    "y=\"%.1f\" fill=\"#0f0\">%d</text>\n",
				    x, y, x + 9, y - 5, r->number[p->bead] + 1);
	}
	html_put(h, "</svg>\n");
}

char *profile_page(const struct exam *exam, const struct profile_result *r, const struct profile_constancy *check, int central,
		   const int size[2])
{
	struct html h = {0};

	put_head(&h, exam, r, check);
	put_parameters(&h, r, check);
	put_conventions(&h, &r->conventions);
	put_views(&h, r);
	put_detector(&h, r, central, size);
	html_put(&h, "</body></html>\n");
	if (!h.failed)
		return h.text;
	html_clear(&h);
	return NULL;
}
