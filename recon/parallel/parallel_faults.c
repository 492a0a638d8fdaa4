/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_faults.c - which slices have a fault that the rest has not?
 *
 * - Views that contradict each other or the angles, by each slice alone (parallel_consistency.c).
 * - An axis of rotation (the constant of the centres of mass) that is not that of the rest: farther from the median of the slices
 *   than a bin, than noise and fit of the slice and the spread of the others explain. The axis of a stage that leans is no exception.
 * - The same data as the slice before it, noise included. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/parallel/parallel_internal.h"

#define AXIS_BINS 1.0	 /* smallest error of an axis: it doubles edges */
#define AXIS_SIGMAS 5.0	 /* of the slice */
#define AXIS_SPREADS 8.0 /* median deviations of all slices */
#define AXIS_LEAST 3	 /* slices */

/* Are the data of a slice those of the one before it? */
static bool is_same(const struct parallel_scan *s, const float *lines, int k)
{
	const size_t n = (size_t)s->n_angles * (size_t)s->n_radial;

	return !memcmp(lines + (size_t)k * n, lines + (size_t)(k - 1) * n, n * sizeof(*lines));
}

static void mark_fault(unsigned char *fault, int k, enum parallel_fault what)
{
	if (fault[k] == PARALLEL_GOOD)
		fault[k] = (unsigned char)what;
}

/* Mark slices by what they say alone, if most say something else. */
static void mark_alone(int n, const struct parallel_consistency *each, unsigned char *fault)
{
	int known = 0, bad = 0;

	for (int k = 0; k < n; k++) {
		known += each[k].known || each[k].n_odd > 0;
		bad += each[k].n_odd > 0 || !each[k].agree;
	}
	for (int k = 0; k < n && n > 2 && 2 * bad <= known; k++) {
		if (each[k].n_odd > 0)
			mark_fault(fault, k, PARALLEL_ODD_VIEW);
		else if (!each[k].agree)
			mark_fault(fault, k, PARALLEL_ANGLES);
	}
}

/* Mark slices that are copies, unless most are: of an object that is the same in all slices, without noise. work: [n]. */
static void mark_copies(const struct parallel_scan *s, const float *lines, const struct parallel_consistency *each,
			const struct monitor *monitor, double *work, unsigned char *fault)
{
	const int n = s->n_slices;
	int copies = 0;

	for (int k = 1; k < n; k++) {
		work[k] = each[k].noisy_air && is_same(s, lines, k);
		copies += work[k] != 0;
		monitor_progress(monitor, "prepare", 1);
	}
	for (int k = 1; k < n && 2 * copies <= n - 1; k++)
		if (work[k] != 0)
			mark_fault(fault, k, PARALLEL_COPY);
}

/* Return how far the axis of a slice may be from another one: a bin, and what noise and fit of the slice explain. */
static double axis_limit(const struct parallel_scan *s, const struct parallel_consistency *c)
{
	return fmax(AXIS_BINS * s->bin, fmax(c->centre_limit, AXIS_SIGMAS * c->axis_sigma));
}

bool parallel_axes_differ(const struct parallel_scan *s, const struct parallel_consistency *each, const unsigned char *fault,
			  double axis)
{
	int known = 0, same = 0;

	for (int k = 0; k < s->n_slices; k++) {
		if (fault[k] || !each[k].known || !each[k].agree)
			continue;
		known++;
		same += fabs(each[k].axis_error - axis) <= axis_limit(s, &each[k]);
	}
	return same < known && (same < AXIS_LEAST || 2 * same < known);
}

static void mark_axis(const struct parallel_scan *s, const struct parallel_consistency *each, double *work, unsigned char *fault,
		      double *ret_value)
{
	double middle, spread;
	int n = 0, m = 0;

	for (int k = 0; k < s->n_slices; k++)
		if (!fault[k] && each[k].known && each[k].agree)
			work[n++] = each[k].axis_error;
	if (n < AXIS_LEAST)
		return;
	middle = parallel_median(work, n);
	for (int i = 0; i < n; i++)
		work[i] = fabs(work[i] - middle);
	spread = parallel_median(work, n);
	for (int k = 0; k < s->n_slices; k++) {
		double apart = each[k].axis_error - middle;

		if (fault[k] || !each[k].known || !each[k].agree ||
		    fabs(apart) <= fmax(axis_limit(s, &each[k]), AXIS_SPREADS * spread))
			continue;
		mark_fault(fault, k, PARALLEL_AXIS);
		ret_value[k] = apart;
		m++;
	}
	for (int k = 0; k < s->n_slices && 2 * m > n; k++)
		if (fault[k] == PARALLEL_AXIS)
			fault[k] = PARALLEL_GOOD;
}

void parallel_find_faults(const struct parallel_scan *s, const float *lines, const struct parallel_consistency *each,
			  const struct monitor *monitor, unsigned char *fault, struct parallel_faults *ret)
{
	const size_t n = (size_t)s->n_slices;
	double *work = calloc(n, sizeof(*work)), *value = calloc(n, sizeof(*value));

	if (work && value) {
		mark_alone(s->n_slices, each, fault);
		mark_copies(s, lines, each, monitor, work, fault);
		mark_axis(s, each, work, fault, value);
	}
	for (size_t k = 0; k < n && value; k++)
		if (fault[k] && ret->of[fault[k]].n++ == 0) {
			ret->of[fault[k]].first = (int)k;
			ret->of[fault[k]].value = value[k];
			ret->of[fault[k]].c = each[k];
		}
	free(value);
	free(work);
}
