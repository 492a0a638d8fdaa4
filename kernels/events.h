/* SPDX-License-Identifier: Apache-2.0 */
/* List mode: the line of one event. C11, C++17 and CUDA C++.
 *
 * An event is a pair of detectors, given by their positions, and a TOF bin. Its row a_e of the system matrix is Joseph's (1982)
 * in three dimensions:
 *
 * - The principal axis is the axis along which the detectors are furthest apart (of equal ones the first of x, y, z). There is
 * one sample for each plane of voxel centres across this axis. Its value is bilinear between the four voxels around the point
 *   where the line crosses the plane, times the length of line between two planes, times the weight w_k of time of flight
 *   (kernels/tof.h) at the point's distance from the middle of the line, positive towards the first detector.
 * - A sample counts if it is between the detectors, inside the cylinder of fov_radius around the z axis, over the pixels of the
 *   volume, and w_k > 0. So with time of flight a line has only the samples of 8 sigma + width mm.
 * - Across x and y, a point beyond the outermost centres has the full value of the outermost voxel; above and below the volume
 *   the value is 0. So along a principal axis of x or y the entries are those of PROJECTION_JOSEPH.
 *
 * Positions are computed in double and stored relative to the first sample, so that an error of float is that of one line, not
 * that of the whole volume. w_k is interpolated in a table with steps of sigma / 256 or less: within 2e-6 of its largest value.
 */
#ifndef TOMONODE_KERNELS_EVENTS_H
#define TOMONODE_KERNELS_EVENTS_H

#include <stdint.h>

#include "kernels/tof.h"

/* One event. A device stores it as EVENT_FLOATS floats with the same bits. An event with a detector or a TOF bin that does not
 * exist has a row of zeros. */
struct event {
	int32_t detector[2]; /* the first and the second detector: indices of positions */
	int32_t tof;	     /* TOF bin, ascending towards the first detector; not used without time of flight */
	float add;	     /* b / m: expected additional counts of this bin (LOR and TOF bin) over its factor, >= 0 */
};
#define EVENT_FLOATS 4

#define EVENTS_TOF_STEPS 2048 /* of the table of weights */
#define EVENTS_TOF_TABLE (EVENTS_TOF_STEPS + 2)

/* What all lines of a list have in common. Made by events_model_make(). */
struct events_model {
	struct grid grid; /* z_fastest */
	double fov_radius;
	struct scan_tof tof;
	int n_detectors;
	/* Weight at a distance d >= 0 mm from the centre of the TOF bin: the table at (d - tof_from) tof_scale; before it, 1. */
	float tof_from, tof_scale;
};

/* The samples of a line: planes first .. first + n - 1 across `axis`. Sample j is at at[i] + j step[i] voxels above voxel base[i]
 * across the principal axis; i = 0: x, or y if the principal axis is x; i = 1: z, or y if the principal axis is z. */
struct event_line {
	int axis, first, n;
	int base[2];
	float at[2], step[2];
	float from, by; /* distance of sample 0 from the centre of the TOF bin, and from one sample to the next, mm */
	float length;	/* of a sample, mm */
};

/* Compute a model and the table of weights; ret_table: EVENTS_TOF_TABLE elements. */
static inline void events_model_make(const struct grid *grid, double fov_radius, const struct scan_tof *tof, int n_detectors,
				     struct events_model *ret_model, float *ret_table)
{
	double half = 0.5 * tof->width, reach = TOF_CUT * tof->sigma, from = half > reach ? half - reach : 0;
	double step = (half + reach - from) / EVENTS_TOF_STEPS;

	ret_model->grid = *grid;
	ret_model->fov_radius = fov_radius;
	ret_model->tof = *tof;
	ret_model->n_detectors = n_detectors;
	ret_model->tof_from = (float)from;
	ret_model->tof_scale = tof->n > 0 ? (float)(1 / step) : 0;
	for (int i = 0; i < EVENTS_TOF_TABLE; i++) {
		double t = from + i * step;

		ret_table[i] =
			tof->n == 0 ? 1
			: i >= EVENTS_TOF_STEPS
				? 0
				: (float)(tof_cumulative((half - t) / tof->sigma) - tof_cumulative((-half - t) / tof->sigma));
	}
}

static inline TOMONODE_HD void event_narrow(double from, double to, double *low, double *high)
{
	*low = from > *low ? from : *low;
	*high = to < *high ? to : *high;
}

/* Limit low..high to the part of a line at + t along that is inside a slab. */
static inline TOMONODE_HD void event_slab(double at, double along, double from, double to, double *low, double *high)
{
	double a, b;

	if (along == 0) {
		if (!(at >= from && at < to))
			*high = *low - 1;
		return;
	}
	a = (from - at) / along;
	b = (to - at) / along;
	event_narrow(a < b ? a : b, a < b ? b : a, low, high);
}

/* Limit low..high to the part that is inside the cylinder of the field of view. */
static inline TOMONODE_HD void event_cylinder(const double at[3], const double along[3], double radius, double *low, double *high)
{
	double a = along[0] * along[0] + along[1] * along[1], b = at[0] * along[0] + at[1] * along[1];
	double c = at[0] * at[0] + at[1] * at[1] - radius * radius, root = b * b - a * c;

	if (a == 0 ? c > 0 : root < 0) {
		*high = *low - 1;
	} else if (a > 0) {
		root = sqrt(root);
		event_narrow((-b - root) / a, (-b + root) / a, low, high);
	}
}

/* Compute middle, direction (towards the first detector) and length of a line. Return its principal axis; -1: there is no line.
 */
static inline TOMONODE_HD int event_direction(const struct events_model *m, const struct event *e, const float *detectors,
					      double ret_at[3], double ret_along[3], double *ret_length)
{
	double length = 0;
	int axis = 0;

	if ((uint32_t)e->detector[0] >= (uint32_t)m->n_detectors || (uint32_t)e->detector[1] >= (uint32_t)m->n_detectors ||
	    (m->tof.n > 0 && (uint32_t)e->tof >= (uint32_t)m->tof.n))
		return -1;
	for (int c = 0; c < 3; c++) {
		double a = detectors[3 * (size_t)e->detector[0] + (size_t)c],
		       b = detectors[3 * (size_t)e->detector[1] + (size_t)c];

		ret_at[c] = 0.5 * (a + b);
		ret_along[c] = a - b;
		length += (a - b) * (a - b);
		axis = fabs(a - b) > fabs(ret_along[axis]) ? c : axis;
	}
	length = sqrt(length);
	for (int c = 0; c < 3 && length > 0; c++)
		ret_along[c] /= length;
	*ret_length = length;
	return length > 0 ? axis : -1;
}

/* Compute the samples of an event. detectors: x, y, z of each. Return false if there are none. */
static inline TOMONODE_HD bool event_line_make(const struct events_model *m, const struct event *e, const float *detectors,
					       struct event_line *ret)
{
	const struct grid *g = &m->grid;
	double at[3], along[3], length, centre = 0, low, high, t, first, last;
	int axis = event_direction(m, e, detectors, at, along, &length);
	int across[2] = {axis == 0 ? 1 : 0, axis == 2 ? 1 : 2};

	if (axis < 0)
		return false;
	low = -0.5 * length;
	high = 0.5 * length;
	event_cylinder(at, along, m->fov_radius, &low, &high);
	for (int i = 0; i < 2; i++) {
		int c = across[i];
		double more = c == 2 ? 0.5 * g->h[2] : 0; /* above and below, a part of a slice is in the volume */

		event_slab(at[c], along[c], g->lo[c] - more, g->lo[c] + g->n[c] * g->h[c] + more, &low, &high);
	}
	if (m->tof.n > 0) {
		double reach = 0.5 * m->tof.width + TOF_CUT * m->tof.sigma;

		centre = (e->tof - 0.5 * (m->tof.n - 1)) * m->tof.width;
		event_narrow(centre - reach, centre + reach, &low, &high);
	}
	if (!(low <= high))
		return false;
	first = (at[axis] + (along[axis] > 0 ? low : high) * along[axis] - g->lo[axis]) / g->h[axis] - 0.5;
	last = (at[axis] + (along[axis] > 0 ? high : low) * along[axis] - g->lo[axis]) / g->h[axis] - 0.5;
	first = first > 0 ? ceil(first) : 0;
	last = last < g->n[axis] - 1 ? floor(last) : g->n[axis] - 1;
	if (!(first <= last))
		return false;
	ret->axis = axis;
	ret->first = (int)first;
	ret->n = (int)last - (int)first + 1;
	ret->length = (float)(g->h[axis] / fabs(along[axis]));
	t = (g->lo[axis] + (first + 0.5) * g->h[axis] - at[axis]) / along[axis];
	ret->from = (float)(t - centre);
	ret->by = (float)(g->h[axis] / along[axis]);
	for (int i = 0; i < 2; i++) {
		int c = across[i];
		double p = (at[c] + t * along[c] - g->lo[c]) / g->h[c] - 0.5, whole = floor(p);

		ret->base[i] = (int)whole;
		ret->at[i] = (float)(p - whole);
		ret->step[i] = (float)(g->h[axis] / along[axis] * along[c] / g->h[c]);
	}
	return true;
}

/* Return the largest whole number not above p, or, if p is a whole number, perhaps the one below; |p| < 2^21. On the GPU without
 * the slow conversions: adding 1.5 2^23 rounds to a whole number, which is then in the low bits. */
static inline TOMONODE_HD float event_whole(float p, int *ret)
{
#ifdef __CUDA_ARCH__
	const float rounding = 12582912;
	float at = p - 0.5f + rounding;

	*ret = __float_as_int(at) - 0x4b400000;
	return at - rounding;
#else
	float at = floorf(p);

	*ret = (int)at;
	return at;
#endif
}

/* Compute the two voxels around a point, *ret_at and the next one, and their weights. p: voxels above voxel `base`; ends: the
 * value beyond the outermost centres is 0, else that of the outermost voxel. If n is 1 the second weight is for the same voxel.
 */
static inline TOMONODE_HD void event_pair(float p, int base, int n, bool ends, int *ret_at, float *ret_first, float *ret_second)
{
	int i, most = n > 1 ? n - 2 : 0, at;
	float part = p - event_whole(p, &i);

	i += base;
#ifdef __CUDA_ARCH__
	if ((unsigned)i < (unsigned)(n - 1)) { /* nearly always */
		*ret_at = i;
		*ret_first = 1 - part;
		*ret_second = part;
		return;
	}
#endif
	at = i < 0 ? 0 : i > most ? most : i;
	part += (float)(i - at);
	*ret_at = at;
	if (ends) { /* -1 < part < 2 */
		float first = 1 - fabsf(part), second = 1 - fabsf(part - 1);

		*ret_first = first > 0 ? first : 0;
		*ret_second = second > 0 && n > 1 ? second : 0;
	} else {
		part = part < 0 ? 0 : part > 1 ? 1 : part;
		*ret_first = 1 - part;
		*ret_second = part;
	}
}

/* Return the weight of time of flight of sample j; without time of flight, 1. */
static inline TOMONODE_HD float event_tof(const struct events_model *m, const float *table, const struct event_line *line,
					  float j)
{
	float s = (fabsf(line->from + j * line->by) - m->tof_from) * m->tof_scale;
	int i;

	s = s > 0 ? (s < EVENTS_TOF_STEPS ? s : EVENTS_TOF_STEPS) : 0;
	i = (int)s;
	return table[i] + (s - (float)i) * (table[i + 1] - table[i]);
}

/* Return the factor of an event's row in the EM update: 1 / p, or 0 if p = a_e x + b_e / m_e is not above the floor. */
static inline TOMONODE_HD float event_ratio(float p, float floor)
{
#ifdef __CUDA_ARCH__
	return p > floor ? __fdividef(1, p) : 0;
#else
	return p > floor ? 1 / p : 0;
#endif
}

/* The cells of events_sort(): lines of one cell pass through nearly the same voxels. A cell is a principal axis, a part of it
 * that holds the middle of the samples, the direction across it, the position across it in the middle of that part, and a smaller
 * part for the middle of the samples. Cells that differ only in the last one are a beam; they have consecutive numbers. */
struct event_cells {
	int size[3];  /* voxels of a cell: along the principal axis, across it, and of a smaller part along the axis */
	int n[3][3];  /* number of them for each principal axis */
	int slopes;   /* number of directions */
	int first[4]; /* first cell of each principal axis; [3]: number of cells, the last one for events without samples */
};
#define EVENT_CELLS_MAX (1 << 22)

static inline void event_cells_make(const struct grid *g, struct event_cells *ret)
{
	static const int across[3] = {1, 0, 0};
	double total;

	ret->size[0] = 32;
	ret->size[1] = 8;
	ret->size[2] = 4;
	ret->slopes = 32;
	do {
		total = 1;
		for (int axis = 0; axis < 3; axis++) {
			ret->first[axis] = total < EVENT_CELLS_MAX ? (int)total - 1 : 0;
			ret->n[axis][0] = (g->n[axis] + ret->size[0] - 1) / ret->size[0];
			ret->n[axis][1] = (g->n[across[axis]] + ret->size[1] - 1) / ret->size[1];
			ret->n[axis][2] = ret->size[0] / ret->size[2];
			total += (double)ret->slopes * ret->n[axis][0] * ret->n[axis][1] * ret->n[axis][2];
		}
		ret->first[3] = total < EVENT_CELLS_MAX ? (int)total : 0;
		for (int i = 0; i < 3 && total >= EVENT_CELLS_MAX; i++)
			ret->size[i] *= 2;
	} while (total >= EVENT_CELLS_MAX);
}

static inline TOMONODE_HD int event_cell_at(float at, int size, int n)
{
	int i = (int)floorf(at) / size;

	return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* Return the cell of a line, 0 .. first[3] - 2. */
static inline TOMONODE_HD int event_cell(const struct event_cells *cells, const struct event_line *line)
{
	const int *n = cells->n[line->axis];
	float middle = (float)line->first + 0.5f * (float)(line->n - 1);
	int main = event_cell_at(middle, cells->size[0], n[0]), plane = main * cells->size[0] + cells->size[0] / 2;
	float u = (float)line->base[0] + line->at[0] + (float)(plane - line->first) * line->step[0];
	int part = event_cell_at(middle - (float)(main * cells->size[0]), cells->size[2], n[2]);
	int slope = event_cell_at((line->step[0] + 1) * 0.5f * (float)cells->slopes, 1, cells->slopes);

	return cells->first[line->axis] +
	       ((main * cells->slopes + slope) * n[1] + event_cell_at(u, cells->size[1], n[1])) * n[2] + part;
}

/* A beam of lines with principal axis x or y. Its lines are at from .. from + size voxels across the axis in plane `plane`, and
 * advance by low .. high voxels from one plane to the next; those beyond the volume in that plane are in the outermost beams. */
struct event_beam {
	int axis, plane, from, size;
	float low, high;
};

/* Return the number of the beam of a cell, or -1: principal axis z, or no samples. */
static inline TOMONODE_HD int event_beam_of(const struct event_cells *cells, int cell)
{
	int axis = cell >= cells->first[1];

	return cell >= cells->first[2] ? -1 : cells->first[axis] + (cell - cells->first[axis]) / cells->n[axis][2];
}

static inline TOMONODE_HD struct event_beam event_beam_make(const struct event_cells *cells, int beam)
{
	struct event_beam b;
	int i, slope;

	b.axis = beam >= cells->first[1];
	i = beam - cells->first[b.axis];
	b.from = i % cells->n[b.axis][1] * cells->size[1];
	b.size = cells->size[1];
	slope = i / cells->n[b.axis][1] % cells->slopes;
	b.plane = i / cells->n[b.axis][1] / cells->slopes * cells->size[0] + cells->size[0] / 2;
	b.low = 2 * (float)slope / (float)cells->slopes - 1;
	b.high = 2 * (float)(slope + 1) / (float)cells->slopes - 1;
	return b;
}

/* Return a voxel across the axis at or just below the first one that lines of a beam reach in a plane. */
static inline TOMONODE_HD int event_beam_at(const struct event_beam *b, int plane)
{
	const float rounding = 1e-3f; /* of positions of lines */
	float d = (float)(plane - b->plane);

	return b->from + (int)floorf(d * (d > 0 ? b->low : b->high) - rounding);
}

#endif
