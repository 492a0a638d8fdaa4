/* SPDX-License-Identifier: Apache-2.0 */
/* randoms.c - expected randoms.
 *
 * - Detectors are stored [crystal][ring]. The ring pairs of one difference are then one product of neighbours, r[first + j] times
 *   r[second + j]: the bins of all planes of a pair of crystals are computed together, in `slots`, an order of planes in which
 *   these products, whose planes are one or two apart, are contiguous.
 * - Sums over all pairs run over groups of angles. Each group adds to an array of its own, and the arrays are added in order,
 *   so that the result does not depend on the number of threads.
 * - Crystals less than (N - n_radial) / 2 apart are never in coincidence. So many are updated at the same time, which is the same
 *   as one after the other. */
#include "recon/pet/randoms_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/pet/michelogram_pairs.h"

#define GROUPS 24	 /* of angles */
#define BLOCK 16	 /* neighbouring radial bins that are computed together: a cache line of each plane */
#define FAN_ERROR 1e-7	 /* iterations end */
#define SWEEPS 100	 /* most iterations over the detectors for given fan sums */
#define STEPS 8		 /* of expectation maximisation */
#define STEP_SWEEPS 1	 /* iterations over the detectors after each but the last */
#define MISSING_STEPS 60 /* most steps if some bins are not measured; end: r changes by less than MISSING_CHANGE */
#define MISSING_CHANGE 1e-5
#define STEP_POWER 1.8 /* of the change of r in a step: below 2, as expectation maximisation converges slowly from one side */

struct estimate {
	struct michelogram_index x;
	const float *data;    /* delayeds, or NULL */
	bool *dead;	      /* [angle][radial]: not in coincidence in any plane; NULL: all are */
	const float *factors; /* NULL unless bins are missing: not measured in some planes */
	bool filled;	      /* the counts of missing bins are what is expected; else 0 */
	double live;	      /* part of the bins of all planes that is measured */
	float *ret;	      /* expected values of bins, or NULL */
	int n_differences;
	struct difference {
		int difference, slot; /* the pair of lower ring j is in slot + j */
	} * differences;
	bool *measured;	     /* [ring difference + rings - 1] */
	int *plane;	     /* [slot]: plane */
	int n_groups;	     /* of angles */
	float *r;	     /* [crystal][ring] */
	double *exact, *fan; /* the same: r, and fan sums */
	double *sum;	     /* [group][crystal][ring] */
	float *scratch;	     /* [group]: see scratch_size() */
};

static size_t detectors_of(const struct michelogram_index *x)
{
	return (size_t)x->rings * (size_t)x->detectors;
}

/* A block of bins in slots, and the sums of two crystals. */
static size_t scratch_size(const struct michelogram_index *x)
{
	return BLOCK * (size_t)x->n_planes + (size_t)x->n_planes + 2 * (size_t)x->rings;
}

/* Make the order of slots: of a segment whose planes are half a ring apart first every second plane, then the others. */
static void make_slots(struct estimate *e)
{
	const struct michelogram_index *x = &e->x;
	int first = 0, *slot_of = e->plane + x->n_planes; /* [plane] */

	for (int s = 0; s < x->n_segments; s++) {
		int n = x->segments[s].n_planes;
		bool mixed = x->segments[s].first != x->segments[s].last;

		for (int a = 0; a < n; a++)
			slot_of[first + a] = first + (!mixed ? a : a % 2 ? (n + 1) / 2 + a / 2 : a / 2);
		first += n;
	}
	for (int p = 0; p < x->n_planes; p++)
		e->plane[slot_of[p]] = p;
	for (int d = 1 - x->rings; d < x->rings; d++) {
		int step = x->difference[d + x->rings - 1].step;

		e->measured[d + x->rings - 1] = step > 0;
		if (step > 0)
			e->differences[e->n_differences++] =
				(struct difference){d, slot_of[x->difference[d + x->rings - 1].base + abs(d) / step]};
	}
}

size_t randoms_bytes(const struct michelogram *m)
{
	size_t detectors = (size_t)m->scanner.rings * (size_t)m->scanner.detectors, planes = michelogram_planes(m);

	return (GROUPS + 3) * detectors * sizeof(double) +
	       GROUPS * ((BLOCK + 1) * planes + 2 * (size_t)m->scanner.rings) * sizeof(float);
}

static void clear_estimate(struct estimate *e)
{
	free(e->dead);
	free(e->differences);
	free(e->measured);
	free(e->plane);
	free(e->r);
	free(e->exact);
	free(e->fan);
	free(e->sum);
	free(e->scratch);
}

/* with_fans: memory for an estimate of r. */
static int begin_estimate(struct estimate *e, const struct michelogram *m, bool with_fans, struct err *err)
{
	int rc = michelogram_index_init(m, &e->x, err);
	size_t n, differences;

	if (rc < 0)
		return rc;
	n = detectors_of(&e->x);
	differences = 2 * (size_t)e->x.rings - 1;
	e->n_groups = e->x.n_angles < GROUPS ? e->x.n_angles : GROUPS;
	e->differences = calloc(differences, sizeof(*e->differences));
	e->measured = calloc(differences, sizeof(*e->measured));
	e->plane = calloc(2 * (size_t)e->x.n_planes, sizeof(*e->plane));
	e->r = calloc(n, sizeof(*e->r));
	e->scratch = calloc((size_t)e->n_groups * scratch_size(&e->x), sizeof(*e->scratch));
	if (with_fans) {
		e->exact = calloc(n, sizeof(*e->exact));
		e->fan = calloc(n, sizeof(*e->fan));
		e->sum = calloc((size_t)e->n_groups * n, sizeof(*e->sum));
	}
	if (!e->differences || !e->measured || !e->plane || !e->r || !e->scratch ||
	    (with_fans && (!e->exact || !e->fan || !e->sum))) {
		clear_estimate(e);
		return err_set(err, ENOMEM, "randoms: no memory for %zu detectors", n);
	}
	make_slots(e);
	return 0;
}

/* ---- sums over pairs ---- */

/* Add r r of all ring pairs of two crystals to the slots. */
static void add_products(const struct estimate *e, const float *restrict first, const float *restrict second,
			 float *restrict slots)
{
	for (int k = 0; k < e->n_differences; k++) {
		int d = e->differences[k].difference, n = e->x.rings - abs(d);
		const float *u = first + (d > 0 ? d : 0), *w = second + (d < 0 ? -d : 0);
		float *to = slots + e->differences[k].slot;

		for (int j = 0; j < n; j++)
			to[j] += u[j] * w[j];
	}
}

/* The transpose: add to each ring of one crystal the slots times r of the other. */
static void add_fans(const struct estimate *e, const float *restrict first, const float *restrict second,
		     const float *restrict slots, float *restrict ret_first, float *restrict ret_second)
{
	for (int k = 0; k < e->n_differences; k++) {
		int d = e->differences[k].difference, n = e->x.rings - abs(d), up = d > 0 ? d : 0, down = d < 0 ? -d : 0;
		const float *from = slots + e->differences[k].slot;

		for (int j = 0; j < n; j++) {
			ret_first[up + j] += from[j] * second[down + j];
			ret_second[down + j] += from[j] * first[up + j];
		}
	}
}

static bool is_dead(const struct estimate *e, int angle, int radial)
{
	return e->dead && e->dead[(size_t)angle * (size_t)e->x.n_radial + (size_t)radial];
}

/* Compute E of a bin of all planes. */
static void expect_bin(const struct estimate *e, int angle, int radial, float *slots)
{
	int crystal[2];

	memset(slots, 0, (size_t)e->x.n_planes * sizeof(*slots));
	if (is_dead(e, angle, radial))
		return;
	for (int view = 0; view < e->x.mash; view++) {
		michelogram_crystals(&e->x, angle, radial, view, crystal);
		add_products(e, e->r + (size_t)crystal[0] * (size_t)e->x.rings, e->r + (size_t)crystal[1] * (size_t)e->x.rings,
			     slots);
	}
}

/* Is a bin not measured whose pair of crystals is, in other planes? slot: its plane. */
static bool is_missing(const struct estimate *e, int slot, int angle, int radial)
{
	size_t plane = (size_t)e->plane[slot];

	return e->factors &&
	       !(e->factors[(plane * (size_t)e->x.n_angles + (size_t)angle) * (size_t)e->x.n_radial + (size_t)radial] > 0);
}

/* Add the shares that the detectors have in the counts D of a bin of all planes, over their r. */
static void share_counts(const struct estimate *e, int angle, int radial, const float *counts, float *scratch, double *sum)
{
	size_t rings = (size_t)e->x.rings;
	float *slots = scratch, *part[2] = {scratch + e->x.n_planes, scratch + e->x.n_planes + e->x.rings};
	int crystal[2];

	expect_bin(e, angle, radial, slots);
	for (int p = 0; p < e->x.n_planes; p++)
		slots[p] = slots[p] > 0 ? (is_missing(e, p, angle, radial) ? (float)e->filled : counts[p] / slots[p]) : 0;
	for (int view = 0; view < e->x.mash; view++) {
		michelogram_crystals(&e->x, angle, radial, view, crystal);
		memset(part[0], 0, 2 * rings * sizeof(float));
		add_fans(e, e->r + (size_t)crystal[0] * rings, e->r + (size_t)crystal[1] * rings, slots, part[0], part[1]);
		for (int end = 0; end < 2; end++)
			for (size_t j = 0; j < rings; j++)
				sum[(size_t)crystal[end] * rings + j] += (double)part[end][j];
	}
}

/* The bins [first, first + n) of an angle: read counts and share them, or write expected values. */
static void share_block(const struct estimate *e, int angle, int first, int n, float *scratch, double *sum)
{
	const struct michelogram_index *x = &e->x;
	size_t planes = (size_t)x->n_planes, plane_size = (size_t)x->n_angles * (size_t)x->n_radial;
	size_t at = (size_t)angle * (size_t)x->n_radial + (size_t)first;

	for (int i = 0; !sum && i < n; i++)
		expect_bin(e, angle, first + i, scratch + (size_t)i * planes);
	for (size_t slot = 0; slot < planes; slot++) {
		size_t row = (size_t)e->plane[slot] * plane_size + at;

		for (int i = 0; i < n; i++) {
			if (sum)
				scratch[(size_t)i * planes + slot] = e->data[row + (size_t)i];
			else
				e->ret[row + (size_t)i] = scratch[(size_t)i * planes + slot];
		}
	}
	for (int i = 0; sum && i < n; i++)
		share_counts(e, angle, first + i, scratch + (size_t)i * planes, scratch + BLOCK * planes, sum);
}

/* Go through all bins: to the fan sums over r (`sum`), or to expected values (`ret`). */
static void all_bins(struct estimate *e, bool fans)
{
	const struct michelogram_index *x = &e->x;
	size_t n = detectors_of(x);

	if (fans)
		memset(e->sum, 0, (size_t)e->n_groups * n * sizeof(*e->sum));
#pragma omp parallel for schedule(dynamic)
	for (int g = 0; g < e->n_groups; g++)
		for (int angle = g; angle < x->n_angles; angle += e->n_groups)
			for (int t = 0; t < x->n_radial; t += BLOCK)
				share_block(e, angle, t, x->n_radial - t < BLOCK ? x->n_radial - t : BLOCK,
					    e->scratch + (size_t)g * scratch_size(x), fans ? e->sum + (size_t)g * n : NULL);
}

/* Compute the fan sums F from the counts and the present r. */
static void find_fans(struct estimate *e)
{
	size_t n = detectors_of(&e->x);

	all_bins(e, true);
#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < n; i++) {
		double sum = 0;

		for (int g = 0; g < e->n_groups; g++)
			sum += e->sum[(size_t)g * n + i];
		e->fan[i] = sum * (double)e->r[i];
	}
}

/* ---- iterations over the detectors ---- */

/* Add r of all crystals that are in coincidence with one, by ring; [0]: those that are the first end, [1]: the second. */
static void add_partners(const struct estimate *e, int crystal, double *ret[2])
{
	const struct michelogram_index *x = &e->x;
	int n = x->detectors, rings = x->rings;

	memset(ret[0], 0, 2 * (size_t)rings * sizeof(double));
	for (int radial = 0; radial < x->n_radial; radial++) {
		int t = radial - x->n_radial / 2, odd = (t + 1) >> 1;
		int as_second = (crystal - (t >> 1) + n) % n,
		    as_first = (crystal + odd + n / 2) % n; /* the pair's view modulo N */

		if (as_second < n / 2 && !is_dead(e, as_second / x->mash, radial)) {
			const double *from = e->exact + (size_t)((as_second - odd + n / 2 + n) % n) * (size_t)rings;

			for (int j = 0; j < rings; j++)
				ret[0][j] += from[j];
		}
		if (as_first < n / 2 && !is_dead(e, as_first / x->mash, radial)) {
			const double *from = e->exact + (size_t)((as_first + (t >> 1) + n) % n) * (size_t)rings;

			for (int j = 0; j < rings; j++)
				ret[1][j] += from[j];
		}
	}
}

/* Update the detectors of a crystal in all rings. Returns the largest relative difference of a fan sum before the update. */
static double update_crystal(struct estimate *e, int crystal, double *partners)
{
	int rings = e->x.rings;
	double *by[2] = {partners, partners + rings}, worst = 0;
	size_t at = (size_t)crystal * (size_t)rings;
	const bool *measured = e->measured + rings - 1;

	add_partners(e, crystal, by);
	for (int i = 0; i < rings; i++) {
		double fan = e->fan[at + (size_t)i], sum = 0, r;

		for (int j = 0; fan > 0 && j < rings; j++)
			sum += (measured[j - i] ? by[0][j] : 0) + (measured[i - j] ? by[1][j] : 0);
		r = sum > 0 ? fan / sum : 0;
		if (fan > 0)
			worst = fmax(worst, fabs(e->exact[at + (size_t)i] * sum / fan - 1));
		e->exact[at + (size_t)i] = r;
	}
	return worst;
}

/* Update all detectors once. ret_error: largest relative difference of a fan sum, before the update. */
static int sweep_detectors(struct estimate *e, double *ret_error, struct err *err)
{
	const struct michelogram_index *x = &e->x;
	int group = (x->detectors - x->n_radial) / 2 > 1 ? (x->detectors - x->n_radial) / 2 : 1;
	bool memory = true;
	double worst = 0;

#pragma omp parallel reduction(max : worst) reduction(&& : memory)
	{
		double *partners = malloc(2 * (size_t)x->rings * sizeof(*partners));

		memory = partners != NULL;
		for (int first = 0; first < x->detectors; first += group) {
			int end = first + group < x->detectors ? first + group : x->detectors;

#pragma omp for schedule(static)
			for (int c = first; c < end; c++)
				if (partners)
					worst = fmax(worst, update_crystal(e, c, partners));
		}
		free(partners);
	}
	*ret_error = worst;
	return memory ? 0 : err_set(err, ENOMEM, "randoms: no memory for %d rings", x->rings);
}

static void round_r(struct estimate *e)
{
	for (size_t i = 0; i < detectors_of(&e->x); i++)
		e->r[i] = (float)e->exact[i];
}

/* Iterate at most n times. */
static int solve_fans(struct estimate *e, int n, struct randoms_report *report, struct err *err)
{
	int rc = 0;

	report->fan_error = INFINITY;
	for (int i = 0; rc == 0 && i < n && report->fan_error > FAN_ERROR; i++) {
		rc = sweep_detectors(e, &report->fan_error, err);
		report->iterations++;
	}
	return rc;
}

/* ---- the estimate ---- */

int randoms_check_counts(const struct michelogram *m, const float *data, double *ret_sum, struct err *err)
{
	size_t n = michelogram_planes(m), bins = michelogram_plane_bins(m);

	*ret_sum = 0;
	for (size_t p = 0; p < n; p++)
		for (size_t i = 0; i < bins; i++) {
			float value = data[p * bins + i];

			if (!(value >= 0 && value < INFINITY))
				return err_set(err, EINVAL,
					       "delayed coincidences: plane %zu, angle %d, radial bin %d: %g; allowed: finite "
					       "and at least 0",
					       p, (int)i / m->n_radial, (int)i % m->n_radial, (double)value);
			*ret_sum += (double)value;
		}
	return *ret_sum > 0 ? 0 : err_set(err, EDOM, "there are no delayed coincidences");
}

static double pairs_per_bin(const struct michelogram_index *x)
{
	double pairs = 0;

	for (int p = 0; p < x->n_planes; p++)
		pairs += michelogram_plane_rings(x, p).n;
	return pairs * x->mash / x->n_planes;
}

/* First estimate: the counts of a bin are shared equally among its pairs; then all r are equal where there are counts. */
static void start_rates(struct estimate *e, double sum, double pairs)
{
	size_t n = detectors_of(&e->x);
	double level = sqrt(sum / pairs);

	for (size_t i = 0; i < n; i++)
		e->r[i] = (float)level;
	find_fans(e);
	for (size_t i = 0; i < n; i++)
		e->exact[i] = e->fan[i] > 0 ? level : 0; /* 0: no counts in any bin that is measured */
	e->filled = true;
	if (e->factors) {
		round_r(e);
		find_fans(e);
	}
}

/* Estimate the fan sums of the pairs from the present r, and r from them. *ret_change: the largest relative change of an r. */
static int step_estimate(struct estimate *e, bool further, struct randoms_report *report, double *ret_change, struct err *err)
{
	size_t n = detectors_of(&e->x);
	int rc;

	*ret_change = 0;
	find_fans(e);
	rc = solve_fans(e, further ? STEP_SWEEPS : SWEEPS, report, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < n; i++)
		if (e->exact[i] > 0)
			*ret_change = fmax(*ret_change, fabs(e->exact[i] / (double)e->r[i] - 1));
	for (size_t i = 0; further && i < n; i++)
		if (e->exact[i] > 0)
			e->exact[i] = (double)e->r[i] * pow(e->exact[i] / (double)e->r[i], STEP_POWER);
	round_r(e);
	return 0;
}

static int estimate_rates(struct estimate *e, double sum, struct randoms_report *report, struct err *err)
{
	double bins = e->live * e->x.n_planes * e->x.n_angles * e->x.n_radial, change = INFINITY;
	int steps, rc;

	report->pairs_per_bin = pairs_per_bin(&e->x);
	start_rates(e, sum, report->pairs_per_bin * bins);
	rc = solve_fans(e, SWEEPS, report, err);
	round_r(e);
	steps = e->factors ? MISSING_STEPS : report->pairs_per_bin > 1 ? STEPS : 0;
	for (int i = 1; rc == 0 && i <= steps; i++) {
		bool further = i < steps && !(e->factors && i >= STEPS && change < MISSING_CHANGE);

		rc = step_estimate(e, further, report, &change, err);
		if (!further)
			break;
	}
	report->detectors = (int)detectors_of(&e->x);
	for (int i = 0; i < report->detectors; i++)
		report->dead += !(e->exact[i] > 0);
	return rc;
}

double randoms_total(const struct michelogram *m, const float *values)
{
	size_t n = michelogram_bins(m);
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)values[i];
	return sum;
}

/* Return where r of detector ring N + crystal is. */
static size_t at_detector(const struct michelogram_index *x, size_t detector)
{
	size_t n = (size_t)x->detectors;

	return detector % n * (size_t)x->rings + detector / n;
}

/* Find the bins whose factors are 0 in all planes, and whether there are bins with the factor 0 in some planes only. */
static int find_dead(struct estimate *e, const float *factors, struct err *err)
{
	size_t n = (size_t)e->x.n_angles * (size_t)e->x.n_radial, planes = (size_t)e->x.n_planes, dead = 0, all = 0;

	e->live = 1;
	if (!factors)
		return 0;
	e->dead = malloc(n * sizeof(*e->dead));
	if (!e->dead)
		return err_set(err, ENOMEM, "randoms: no memory for %zu bins", n);
	for (size_t i = 0; i < n; i++) {
		size_t zeros = 0;

		for (size_t p = 0; p < planes; p++)
			zeros += !(factors[p * n + i] > 0);
		e->dead[i] = zeros == planes;
		dead += e->dead[i];
		all += zeros;
	}
	e->factors = all > dead * planes ? factors : NULL;
	e->live = (double)(n * planes - all) / (double)(n * planes);
	return 0;
}

int randoms_from_delayeds(const struct michelogram *m, const float *delayeds, const float *factors, float *ret, double *ret_rates,
			  struct randoms_report *ret_report, struct err *err)
{
	struct randoms_report report = {0};
	struct estimate e = {.data = delayeds, .ret = ret};
	double sum = 0;
	int rc = begin_estimate(&e, m, true, err);

	if (rc < 0)
		return rc;
	rc = randoms_check_counts(m, delayeds, &sum, err);
	if (rc == 0)
		rc = find_dead(&e, factors, err);
	if (rc == 0)
		rc = estimate_rates(&e, sum, &report, err);
	if (rc == 0) {
		all_bins(&e, false);
		for (size_t i = 0; ret_rates && i < detectors_of(&e.x); i++)
			ret_rates[i] = (double)e.r[at_detector(&e.x, i)];
		report.total = randoms_total(m, ret);
		if (ret_report)
			*ret_report = report;
	}
	clear_estimate(&e);
	return rc;
}

double randoms_singles_factor(double window, double duration, double f, double f2)
{
	return window * f * f / (f2 * duration);
}

int randoms_from_singles(const struct michelogram *m, const double *singles, double factor, float *ret, struct err *err)
{
	struct estimate e = {.ret = ret};
	int rc = begin_estimate(&e, m, false, err);

	for (int c = 0; rc == 0 && c < e.x.detectors; c++)
		for (int ring = 0; rc == 0 && ring < e.x.rings; ring++) {
			double value = singles[(size_t)ring * (size_t)e.x.detectors + (size_t)c];

			if (!(value >= 0 && value < INFINITY))
				rc = err_set(err, EINVAL, "singles of ring %d, crystal %d: %g; allowed: finite and at least 0",
					     ring, c, value);
			else
				e.r[(size_t)c * (size_t)e.x.rings + (size_t)ring] = (float)(value * sqrt(factor));
		}
	if (rc == 0)
		all_bins(&e, false);
	clear_estimate(&e);
	return rc;
}
