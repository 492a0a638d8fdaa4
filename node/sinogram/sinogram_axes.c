/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_axes.c - find data whose views and planes are stored in the other order than their header says.
 *
 * A row is the radial bins of a view of a plane. In the right order, the sums of rows of the direct segment are nearly a product:
 * a profile along the axis (activity, pairs of detectors) by one around it (attenuation, gaps of detectors); what remains is
 * noise and the little by which the views of one plane change otherwise than those of another. In the wrong order rows of all
 * planes are mixed in every view, and no product describes them. So the same rows are put into both orders, and the residuals of
 * the products are compared. That needs no model of the noise, which is the same in both, and no smooth data: detectors with
 * different efficiencies, gaps and sources of any form are products, or are none in either order.
 *
 * A product can describe the wrong order by chance, if the number of views is a multiple of that of planes: its neighbouring
 * views must agree better, too. They alone would not do: gaps make a line source's views differ more than its planes.
 *
 * The same is done for quarters of the rows, because the sums do not show a body beside the axis.
 */
#include <errno.h>
#include <string.h>

#include "node/sinogram/sinogram_internal.h"

#define QUARTERS 4
/* The residual of the header's order is so many times that of the other, and so is the difference of neighbouring views. Of 1468
 * simulated scans with 8 or more views and 4 or more planes none was refused with these numbers; with 2 and 1 one was (8 views,
 * 127 planes, 2000 counts).
 */
#define TIMES_WORSE 4
#define TIMES_ROUGHER 2
#define VIEWS_LEAST 8
#define PLANES_LEAST 4
#define VARIATION_LEAST 0.01 /* of the rows, root mean square: with less, the order makes no difference */
#define ROWS_LEAST 30	     /* rows that the residual is spread over, (sum d^2)^2 / sum d^4: not some hot ones alone */

struct table {
	size_t n_views, n_planes;
	const double *row; /* [n_planes * n_views] in the order of the file */
	bool by_view;
	double *view, *plane; /* sums */
};

static size_t view_of(const struct table *t, size_t row)
{
	return t->by_view ? row / t->n_planes : row % t->n_views;
}

static size_t plane_of(const struct table *t, size_t row)
{
	return t->by_view ? row % t->n_planes : row / t->n_views;
}

/* Compute the sum of squares of what a product does not describe, and over how many rows it is spread; the sum of the rows. */
static double product_residual(const struct table *t, double *ret_spread, double *ret_sum)
{
	size_t n = t->n_views * t->n_planes;
	double sum = 0, squares = 0, fourth = 0;

	memset(t->view, 0, t->n_views * sizeof(*t->view));
	memset(t->plane, 0, t->n_planes * sizeof(*t->plane));
	for (size_t i = 0; i < n; i++) {
		t->view[view_of(t, i)] += t->row[i];
		t->plane[plane_of(t, i)] += t->row[i];
		sum += t->row[i];
	}
	for (size_t i = 0; sum > 0 && i < n; i++) {
		double d = t->row[i] - t->view[view_of(t, i)] * t->plane[plane_of(t, i)] / sum, d2 = d * d;

		squares += d2;
		fourth += d2 * d2;
	}
	*ret_spread = fourth > 0 ? squares * squares / fourth : 0;
	*ret_sum = sum;
	return squares;
}

/* Compute the sum of squares of the differences of neighbouring views of all planes. */
static double view_roughness(const struct table *t)
{
	size_t view = t->by_view ? t->n_planes : 1, plane = t->by_view ? 1 : t->n_views;
	double sum = 0;

	for (size_t p = 0; p < t->n_planes; p++)
		for (size_t v = 0; v + 1 < t->n_views; v++) {
			const double *row = t->row + p * plane + v * view, d = row[view] - row[0];

			sum += d * d;
		}
	return sum;
}

/* Are the rows[n_parts][row] in the other order? A part that is not positive as a whole says nothing. */
static bool is_other_order(const double *rows, int n_parts, struct table *t)
{
	size_t n = t->n_views * t->n_planes;
	bool by_view = t->by_view;
	double stated = 0, other = 0, rough = 0, other_rough = 0, spread = 0, level = 0;

	for (int k = 0; k < n_parts; k++) {
		double own_spread, sum, ignored;

		t->row = rows + (size_t)k * n;
		t->by_view = by_view;
		stated += product_residual(t, &own_spread, &sum);
		rough += view_roughness(t);
		t->by_view = !by_view;
		other += product_residual(t, &ignored, &sum);
		other_rough += view_roughness(t);
		spread += own_spread;
		level += sum > 0 ? sum / (double)n * sum : 0;
	}
	t->by_view = by_view;
	return stated > TIMES_WORSE * other && rough > TIMES_ROUGHER * other_rough &&
	       stated > VARIATION_LEAST * VARIATION_LEAST * level && spread > ROWS_LEAST;
}

/* Sum the quarters of the rows, of all TOF bins: rows[QUARTERS + 1][row], the last the whole rows. */
static void sum_rows(const struct interfile *h, const uint8_t *bytes, size_t first, const struct table *t, float *plane,
		     double *rows)
{
	size_t n = t->n_views * t->n_planes, n_radial = (size_t)h->m.n_radial, all = michelogram_planes(&h->m);
	size_t bins = h->m.tof.n > 0 ? (size_t)h->m.tof.n : 1;

	for (size_t i = 0; i < bins * t->n_planes; i++) {
		size_t p = i % t->n_planes, at = t->n_planes - 1 - p; /* its place in the file */

		interfile_plane(h, bytes, i / t->n_planes * all + first + p, plane);
		for (size_t v = 0; v < t->n_views; v++) {
			double *row = rows + (t->by_view ? v * t->n_planes + at : at * t->n_views + v);

			for (size_t r = 0; r < n_radial; r++)
				row[r * QUARTERS / n_radial * n] += (double)plane[v * n_radial + r];
		}
	}
	for (size_t i = 0; i < QUARTERS * n; i++)
		rows[QUARTERS * n + i % n] += rows[i];
}

int sinogram_check_axes(const struct interfile *h, const uint8_t *bytes, struct err *err)
{
	struct table t = {.n_views = (size_t)h->m.n_angles, .by_view = h->order == INTERFILE_BY_VIEW};
	size_t first = 0, n;
	double *rows;
	float *plane;
	bool other;

	if (h->kind != INTERFILE_PROJECTIONS || h->siemens || h->m.n_segments == 0)
		return 0;
	t.n_planes = (size_t)michelogram_direct(&h->m, &first)->n_planes;
	if (t.n_planes < PLANES_LEAST || t.n_views < VIEWS_LEAST)
		return 0;
	n = t.n_planes * t.n_views;
	rows = calloc((QUARTERS + 1) * n + t.n_planes + t.n_views, sizeof(*rows));
	plane = malloc(t.n_views * (size_t)h->m.n_radial * sizeof(*plane));
	if (!rows || !plane) {
		free(rows);
		free(plane);
		return err_set(err, ENOMEM, "no memory for the sums of %zu rows", n);
	}
	t.view = rows + (QUARTERS + 1) * n;
	t.plane = t.view + t.n_views;
	sum_rows(h, bytes, first, &t, plane, rows);
	other = is_other_order(rows + QUARTERS * n, 1, &t) || is_other_order(rows, QUARTERS, &t);
	free(rows);
	free(plane);
	if (!other)
		return 0;
	return err_set(
		err, EBADMSG,
		"the data are in the other order of axes than the header says, matrix axis label [3] := %s, [2] := %s: with it "
		"the views of the %zu direct planes contradict each other, with the other they agree: exchange matrix axis label "
		"and matrix size of [2] and [3]",
		t.by_view ? "view" : "axial coordinate", t.by_view ? "axial coordinate" : "view", t.n_planes);
}
