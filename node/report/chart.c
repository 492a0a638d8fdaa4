/* SPDX-License-Identifier: Apache-2.0 */
#include "node/report/chart.h"

#include <math.h>
#include <stdio.h>

#define WIDTH 640.0
#define HEIGHT 280.0
#define LEFT 78.0
#define RIGHT 14.0
#define TOP 30.0
#define BOTTOM 46.0

struct scale {
	double lo, hi;
};

static double place_x(const struct scale *s, double v)
{
	return LEFT + (WIDTH - LEFT - RIGHT) * (v - s->lo) / (s->hi - s->lo);
}

static double place_y(const struct scale *s, double v)
{
	return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (v - s->lo) / (s->hi - s->lo);
}

static double height_of(const struct chart *c, double y)
{
	return c->logarithmic ? log10(fmax(y, 0.8)) : y;
}

static void include_value(struct scale *s, double v)
{
	if (!isfinite(v))
		return;
	s->lo = isnan(s->lo) ? v : fmin(s->lo, v);
	s->hi = isnan(s->hi) ? v : fmax(s->hi, v);
}

static void widen_scale(struct scale *s)
{
	if (isnan(s->lo))
		*s = (struct scale){0, 1};
	if (!(s->hi - s->lo > 1e-9 * fmax(fabs(s->lo), fabs(s->hi))))
		*s = (struct scale){s->lo - fmax(fabs(s->lo), 1) / 2, s->hi + fmax(fabs(s->hi), 1) / 2};
}

static void find_scales(const struct chart *c, struct scale *x, struct scale *y)
{
	*x = *y = (struct scale){NAN, NAN};
	for (int k = 0; k < c->n_lines; k++)
		for (int i = 0; i < c->lines[k].n; i++)
			if (isfinite(c->lines[k].x[i]) && isfinite(c->lines[k].y[i])) {
				include_value(x, c->lines[k].x[i]);
				include_value(y, height_of(c, c->lines[k].y[i]));
			}
	widen_scale(x);
	widen_scale(y);
}

/* Return a distance of ticks for about five of them: 1, 2 or 5 times a power of ten. */
static double tick_step(const struct scale *s)
{
	double step = (s->hi - s->lo) / 5, power = pow(10, floor(log10(step)));

	return power * (step > 5 * power ? 10 : step > 2 * power ? 5 : step > power ? 2 : 1);
}

static void put_number(struct html *h, double v, double step)
{
	html_printf(h, "%.6g", fabs(v) < step * 1e-6 ? 0 : v);
}

static void put_axes(struct html *h, const struct chart *c, const struct scale *x, const struct scale *y)
{
	double step = tick_step(x), middle = LEFT + (WIDTH - LEFT - RIGHT) / 2;

	for (double v = ceil(x->lo / step) * step; v <= x->hi + step * 1e-6; v += step) {
		html_printf(h,
			    "<line class=\"grid\" x1=\"%.1f\" y1=\"%g\" x2=\"%.1f\" y2=\"%g\"/><text x=\"%.1f\" y=\"%g\" "
			    "text-anchor=\"middle\">",
			    place_x(x, v), TOP, place_x(x, v), HEIGHT - BOTTOM, place_x(x, v), HEIGHT - BOTTOM + 16);
		put_number(h, v, step);
		html_put(h, "</text>");
	}
	step = c->logarithmic ? fmax(1, ceil((y->hi - y->lo) / 6)) : tick_step(y);
	for (double v = ceil(y->lo / step - 1e-9) * step; v <= y->hi + step * 1e-6; v += step) {
		html_printf(h,
			    "<line class=\"grid\" x1=\"%g\" y1=\"%.1f\" x2=\"%g\" y2=\"%.1f\"/><text x=\"%g\" y=\"%.1f\" "
			    "text-anchor=\"end\">",
			    LEFT, place_y(y, v), WIDTH - RIGHT, place_y(y, v), LEFT - 6, place_y(y, v) + 4);
		put_number(h, c->logarithmic ? pow(10, v) : v, step);
		html_put(h, "</text>");
	}
	html_printf(h, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%s</text><text x=\"4\" y=\"16\">%s</text>\n", middle,
		    HEIGHT - 8, c->x_label, c->y_label);
}

static void put_line(struct html *h, const struct chart *c, int k, const struct scale *x, const struct scale *y)
{
	const struct chart_line *line = &c->lines[k];
	int step = line->n / CHART_POINTS + 1;
	char mark = 'M';

	html_printf(h, "<path class=\"l%d\" d=\"", k);
	for (int i = 0; i < line->n; i += step) {
		double v = height_of(c, line->y[i]);

		if (!isfinite(line->x[i]) || !isfinite(v))
			continue;
		html_printf(h, "%c%.1f %.1f", mark, place_x(x, line->x[i]), place_y(y, v));
		mark = 'L';
	}
	html_put(h, mark == 'L' ? "\"/>\n" : "M0 0\"/>\n");
}

static void put_legend(struct html *h, const struct chart *c)
{
	double x = WIDTH - RIGHT;

	for (int k = c->n_lines - 1; k >= 0; k--)
		if (c->lines[k].name) {
			html_printf(h, "<text x=\"%g\" y=\"16\" text-anchor=\"end\">%s</text>", x, c->lines[k].name);
			x -= 100;
			html_printf(h, "<path class=\"l%d\" d=\"M%g 12h24\"/>", k, x + 4);
			x -= 8;
		}
}

void chart_put(struct html *h, const struct chart *c)
{
	struct scale x, y;

	find_scales(c, &x, &y);
	html_printf(h,
		    "<figure class=\"chart\"><figcaption>%s</figcaption><svg viewBox=\"0 0 %g %g\" role=\"img\" "
		    "aria-label=\"%s\">\n",
		    c->title, WIDTH, HEIGHT, c->title);
	put_axes(h, c, &x, &y);
	for (int m = 0; m < 2; m++)
		if (c->marks[m] >= x.lo && c->marks[m] <= x.hi)
			html_printf(h, "<line class=\"mark\" x1=\"%.1f\" y1=\"%g\" x2=\"%.1f\" y2=\"%g\"/>",
				    place_x(&x, c->marks[m]), TOP, place_x(&x, c->marks[m]), HEIGHT - BOTTOM);
	for (int k = 0; k < c->n_lines; k++)
		put_line(h, c, k, &x, &y);
	put_legend(h, c);
	html_put(h, "</svg></figure>\n");
}
