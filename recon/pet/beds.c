/* SPDX-License-Identifier: Apache-2.0 */
/* beds.c - see recon/pet/beds.h. */
#include "recon/pet/beds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define WHOLE 0.01 /* slices */
#define SLICES_MAX 4096

double pet_bed_factor(const struct pet_image *b, double lambda)
{
	double start = (double)b->time.start / 1000, duration = (double)(b->time.stop - b->time.start) / 1000;

	return lambda > 0 ? exp(lambda * start) * lambda / -expm1(-lambda * duration) : 1 / duration;
}

/* ---- sensitivity ---- */

/* Add the part of [from, to] that lies in each slice, as a fraction of its thickness. */
static void add_range(const struct grid *g, double from, double to, double value, double *sum)
{
	for (int k = 0; k < g->n[2]; k++) {
		double lo = g->lo[2] + k * g->h[2], common = fmin(to, lo + g->h[2]) - fmax(from, lo);

		sum[k] += common > 0 ? value * common / g->h[2] : 0;
	}
}

/* Return the number of ring pairs of a segment whose ring numbers have this sum. */
static int ring_pairs(const struct michelogram_segment *s, int rings, int sum)
{
	int most = sum < rings ? sum : 2 * (rings - 1) - sum, n = 0;

	for (int d = s->first; d <= s->last; d++)
		n += abs(d) <= most && ((d ^ sum) & 1) == 0;
	return n;
}

void pet_bed_sensitivity(const struct michelogram *m, const struct grid *bed, double *ret_sensitivity)
{
	int rings = m->scanner.rings;
	double half = m->scanner.ring_spacing / 2;

	for (int k = 0; k < bed->n[2]; k++)
		ret_sensitivity[k] = 0;
	for (int i = 0; i < m->n_segments; i++) {
		const struct michelogram_segment *s = &m->segments[i];
		double reach = s->first == s->last ? half : half / 2; /* half of the distance of its planes */

		for (int sum = 0; sum <= 2 * (rings - 1); sum++) {
			double z = (sum - (rings - 1)) * half;

			add_range(bed, z - reach, z + reach, ring_pairs(s, rings, sum) * half / (2 * reach), ret_sensitivity);
		}
	}
}

/* ---- plan ---- */

/* Compute where a bed is relative to bed 1. */
static int place_bed(const struct pet_images *beds, int b, const double axis[3][3], double h, struct pet_join *j, struct err *err)
{
	double at[3] = {0}, whole;

	for (int a = 0; a < 3; a++)
		for (int c = 0; c < 3; c++)
			at[a] += (beds->image[b].centre[c] - beds->image[0].centre[c]) * axis[a][c];
	if (!(hypot(at[0], at[1]) <= PET_BEDS_ASIDE))
		return err_set(
			err, EBADMSG,
			"bed %d is %.4g mm to the right of bed 1 and %.4g mm below it; beds may differ only along the axis of "
			"the scanner",
			b + 1, at[0] + 0.0, at[1] + 0.0);
	whole = round(at[2] / h);
	j->part[b].along = at[2];
	j->part[b].interpolated = fabs(at[2] / h - whole) > WHOLE;
	j->part[b].shift = j->part[b].interpolated ? at[2] / h : whole;
	return 0;
}

/* Return the bed that follows b along z: the one with the smallest shift above its own, or of the same shift and with a higher
 * number; -1: none. */
static int next_along(const struct pet_join *j, int b)
{
	int next = -1;

	for (int i = 0; i < j->n; i++) {
		bool after = j->part[i].shift > j->part[b].shift || (j->part[i].shift == j->part[b].shift && i > b);

		if (after && (next < 0 || j->part[i].shift < j->part[next].shift))
			next = i;
	}
	return next;
}

/* All beds have the same length: there is no gap if each one touches the next. */
static int check_gaps(const struct pet_join *j, struct err *err)
{
	double h = j->bed.h[2], length = j->bed.n[2] * h;

	for (int b = 0; b < j->n; b++) {
		int next = next_along(j, b);
		double apart = next < 0 ? 0 : fabs(j->part[next].along - j->part[b].along);

		if (next >= 0 && j->part[next].shift > j->part[b].shift + j->bed.n[2] + WHOLE)
			return err_set(
				err, EBADMSG,
				"beds %d and %d leave a gap of %.5g mm: their centres are %.5g mm apart, and the volume of a bed "
				"has a length of %.5g mm",
				(b < next ? b : next) + 1, (b < next ? next : b) + 1, apart - length, apart, length);
	}
	return 0;
}

/* Compute the joint grid, and where each bed lies in it. A bed has the slices of the joint grid whose middle is in it. */
static int lay_out(struct pet_join *j, struct err *err)
{
	int lo = 0, hi = 0, n;

	for (int b = 0; b < j->n; b++) {
		int first = (int)ceil(j->part[b].shift - 0.5);

		lo = first < lo ? first : lo;
		hi = first > hi ? first : hi;
	}
	n = hi - lo + j->bed.n[2];
	if (n > SLICES_MAX)
		return err_set(err, EBADMSG, "the beds make a volume of %d slices of %.5g mm; allowed: %d slices", n, j->bed.h[2],
			       SLICES_MAX);
	j->grid = j->bed;
	j->grid.n[2] = n;
	j->grid.lo[2] += lo * j->bed.h[2];
	for (int b = 0; b < j->n; b++) {
		j->part[b].first = (int)ceil(j->part[b].shift - 0.5) - lo;
		j->part[b].end = j->part[b].first + j->bed.n[2];
		j->part[b].shift -= lo;
	}
	return 0;
}

/* Return the first of the two slices of a bed between which a slice of the joint volume lies, and the share of the second. */
static int slices_between(const struct pet_join *j, int bed, int slice, double *ret_share)
{
	double at = fmin(fmax(slice - j->part[bed].shift, 0), j->bed.n[2] - 1);
	int first = (int)at;

	*ret_share = at - first;
	return first;
}

static void weigh_slices(struct pet_join *j, const double *sensitivity)
{
	int n = j->grid.n[2];
	double most = 0;

	for (int k = 0; k < j->bed.n[2]; k++)
		most = fmax(most, sensitivity[k]);
	for (int k = 0; k < n; k++) {
		double sum = 0;

		for (int b = 0; b < j->n; b++) {
			double share, s;
			int i;

			if (k < j->part[b].first || k >= j->part[b].end)
				continue;
			i = slices_between(j, b, k, &share);
			s = share > 0 ? (1 - share) * sensitivity[i] + share * sensitivity[i + 1] : sensitivity[i];
			s = fmax(s, 1e-6 * most) / j->part[b].gain; /* a slice that no ray meets has its bed's value */
			j->weight[b * n + k] = (float)s;
			sum += s;
		}
		for (int b = 0; b < j->n; b++)
			j->weight[b * n + k] = (float)(j->weight[b * n + k] / sum);
		j->counted[k] = sum / most;
	}
}

int pet_join_plan(const struct pet_images *beds, const double axis[3][3], const struct grid *bed, const struct michelogram *m,
		  double lambda, struct pet_join *ret, struct err *err)
{
	struct pet_join j = {.bed = *bed, .n = beds->n};
	double *sensitivity;
	int rc = 0;

	for (int b = 0; rc == 0 && b < j.n; b++) {
		rc = place_bed(beds, b, axis, bed->h[2], &j, err);
		j.part[b].gain = pet_bed_factor(&beds->image[b], lambda) / pet_bed_factor(&beds->image[0], lambda);
	}
	if (rc == 0)
		rc = check_gaps(&j, err);
	if (rc == 0)
		rc = lay_out(&j, err);
	if (rc < 0)
		return rc;
	sensitivity = malloc((size_t)bed->n[2] * sizeof(*sensitivity));
	j.weight = calloc((size_t)j.n * (size_t)j.grid.n[2], sizeof(*j.weight));
	j.counted = calloc((size_t)j.grid.n[2], sizeof(*j.counted));
	if (sensitivity && j.weight && j.counted) {
		pet_bed_sensitivity(m, bed, sensitivity);
		weigh_slices(&j, sensitivity);
		*ret = j;
	} else {
		rc = err_set(err, ENOMEM, "no memory for the weights of %d beds", j.n);
		pet_join_clear(&j);
	}
	free(sensitivity);
	return rc;
}

void pet_join_clear(struct pet_join *j)
{
	free(j->weight);
	free(j->counted);
	*j = (struct pet_join){0};
}

void pet_join_add(const struct pet_join *j, int bed, const float *volume, float *joint)
{
	size_t n = (size_t)j->bed.n[0] * (size_t)j->bed.n[1];

#pragma omp parallel for schedule(static)
	for (int k = j->part[bed].first; k < j->part[bed].end; k++) {
		double share, gain = j->part[bed].gain * (double)j->weight[bed * j->grid.n[2] + k];
		int i = slices_between(j, bed, k, &share);
		const float *from = volume + (size_t)i * n, *next = share > 0 ? from + n : from;
		float here = (float)(gain * (1 - share)), there = (float)(gain * share), *to = joint + (size_t)k * n;

		for (size_t p = 0; p < n; p++)
			to[p] += here * from[p] + there * next[p];
	}
}

int pet_join_bed_of(const struct pet_join *j, int slice)
{
	int best = 0;

	for (int b = 1; b < j->n; b++)
		if (j->weight[b * j->grid.n[2] + slice] > j->weight[best * j->grid.n[2] + slice])
			best = b;
	return best;
}
