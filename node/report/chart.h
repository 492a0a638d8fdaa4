/* SPDX-License-Identifier: Apache-2.0 */
/* Draw a chart of lines as SVG within a page. Lines differ by dashes as well as by colour (classes l0 to l3 of the page's style
 * sheet), so that they can be distinguished on paper. */
#ifndef TOMONODE_NODE_CHART_H
#define TOMONODE_NODE_CHART_H

#include "node/base/html.h"

#define CHART_LINES 4
#define CHART_POINTS 600 /* of a line; of more, equally spaced ones are drawn */

struct chart_line {
	const char *name; /* constant text for the legend; NULL: none */
	int n;
	const double *x, *y; /* [n]; points with a NaN are left out */
};

struct chart {
	const char *title;	       /* constant text */
	const char *x_label, *y_label; /* escaped */
	struct chart_line lines[CHART_LINES];
	int n_lines;
	double marks[2];  /* positions of vertical lines; NaN: none */
	bool logarithmic; /* y is 0 or above; 0 is drawn at the lower edge */
};

void chart_put(struct html *h, const struct chart *c);

#endif
