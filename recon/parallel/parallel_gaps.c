/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_gaps.c - hot and flickering bins and single hits, by frames of one kind of one row of the detector.
 *
 * A frame has s = sqrt(light) of each bin, whose noise is the same for any light (Poisson); a dark field its values. From frame to
 * frame d(a) = s(a) - (s(a - 1) + s(a + 1)) / 2 has noise, and little of what changes slowly. Its root mean square is compared with
 * the median of the bins around, so that an object that moves, or light that changes, is in both.
 *
 * - A bin flickers if its noise is more than `limit` times that of its neighbours: 3, and more for few frames, so that the false
 *   alarms of Gaussian noise are less than 1e-6 a bin (chi squared of the overlapping d, Wilson & Hilferty 1931).
 * - A hit is brighter than all values around it, in the frames before and after and on both sides, by 8 standard deviations
 *   (1e-14 a value) and by more than these differ among each other: edges of an object are as steep on one side only. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/parallel/parallel_gaps.h"
#include "recon/parallel/parallel_internal.h"

#define BLOCK 64
#define WORTH_BINS 512 /* more are worth threads */
#define WORTH_VALUES 100000
#define NEIGHBOURS 8	 /* on either side */
#define LEAST_NOISY 5	 /* frames that tell noise */
#define LEAST_HITS 3	 /* frames that tell hits */
#define RATIO 3		 /* least limit of noise, in that of the neighbours */
#define NORMAL 8	 /* standard deviations of the limit of few frames */
#define SIGMAS 8	 /* of a hit */
#define RANGE 1.5f	 /* of the values around a hit */
#define HIT_WIDTH 3	 /* bins */
#define NOISY_WIDTH 3	 /* bins beside each other; more are an object */
#define MANY_HITS 0.05	 /* of the frames, and more than one: the bin flickers */
#define NOISE_LEAST 1e-3 /* of the light: less does not matter */

void parallel_usual(const double *x, const unsigned char *skip, size_t n, double *ret)
{
#pragma omp parallel for schedule(static) if (n > WORTH_BINS)
	for (size_t t = 0; t < n; t++) {
		double around[2 * NEIGHBOURS + 1];
		size_t first = t > NEIGHBOURS ? t - NEIGHBOURS : 0, end = t + NEIGHBOURS + 1 < n ? t + NEIGHBOURS + 1 : n;
		int used = 0;

		for (size_t i = first; i < end; i++)
			if (!skip || !skip[i])
				around[used++] = x[i];
		ret[t] = used ? parallel_median(around, used) : 0;
	}
}

int parallel_gap_add(struct parallel_gaps *g, int slice, int bin, int view, struct err *err)
{
	if (g->n == g->room) {
		size_t room = g->room ? 2 * g->room : 64;
		struct parallel_gap *more = realloc(g->gap, room * sizeof(*more));

		if (!more)
			return err_set(err, ENOMEM, "no memory for %zu bins without datum", room);
		g->gap = more;
		g->room = room;
	}
	g->gap[g->n++] = (struct parallel_gap){slice, bin, view};
	return 0;
}

void parallel_gaps_release(struct parallel_gaps *g)
{
	free(g->gap);
	*g = (struct parallel_gaps){0};
}

/* ---- a series of frames ---- */

static inline float root_of(float light)
{
	return sqrtf(light > 0 ? light : 0);
}

static float value_of(const struct parallel_series *s, int a, size_t t)
{
	float value = s->values[(size_t)s->frame[a] * s->n_radial + t];

	return s->dark ? root_of(value - (float)s->dark[t]) : value;
}

static void load_values(const struct parallel_series *s, int a, size_t first, size_t n, float *ret)
{
	const float *from = s->values + (size_t)s->frame[a] * s->n_radial + first;

	for (size_t i = 0; i < n; i++)
		ret[i] = s->dark ? root_of(from[i] - (float)s->dark[first + i]) : from[i];
}

/* Are the values of `width` bins from `first` on, in frame a, above all around them? */
static bool is_above(const struct parallel_series *s, const unsigned char *skip, int a, long first, int width, float sigma)
{
	float least = INFINITY, low = INFINITY, high = -INFINITY;

	for (long t = first; t < first + width; t++) {
		if (t < 0 || t >= (long)s->n_radial || skip[t])
			return false;
		least = fminf(least, value_of(s, a, (size_t)t));
	}
	for (int b = a - 1; b <= a + 1; b++)
		for (long t = first - 1; t <= first + width; t++) {
			bool own = b == a && t >= first && t < first + width;
			float x = own || t < 0 || t >= (long)s->n_radial || skip[t] ? NAN : value_of(s, b, (size_t)t);

			low = fminf(low, x);
			high = fmaxf(high, x);
		}
	return least - high > fmaxf(SIGMAS * sigma, RANGE * (high - low));
}

static bool is_hit(const struct parallel_series *s, const unsigned char *skip, int a, size_t t, float sigma)
{
	for (int width = 1; width <= HIT_WIDTH; width++)
		for (long first = (long)t - width + 1; first <= (long)t; first++)
			if (is_above(s, skip, a, first, width, sigma))
				return true;
	return false;
}

/* Go through the frames of a block of bins. usual: NULL: sum d^2 in ret; else find hits, and return 0 or -ENOMEM. */
static int walk_block(const struct parallel_series *s, size_t first, size_t n, const double *usual, const unsigned char *skip,
		      double *ret, struct parallel_gaps *hits)
{
	float memory[3][BLOCK], *before = memory[0], *own = memory[1], *after = memory[2];
	int r = 0;

	load_values(s, 0, first, n, before);
	load_values(s, 1, first, n, own);
	for (int a = 1; a + 1 < s->n && r == 0; a++) {
		float *kept = before;

		load_values(s, a + 1, first, n, after);
		for (size_t i = 0; !usual && i < n; i++) {
			double d = (double)(own[i] - 0.5f * (before[i] + after[i]));

			ret[first + i] += d * d;
		}
		for (size_t i = 0; usual && i < n; i++) {
			float sigma = (float)usual[first + i];

			if (!(own[i] - before[i] > SIGMAS * sigma && own[i] - after[i] > SIGMAS * sigma) || skip[first + i] ||
			    !is_hit(s, skip, a, first + i, sigma))
				continue;
#pragma omp critical
			if (r == 0)
				r = parallel_gap_add(hits, 0, (int)(first + i), a, NULL);
		}
		before = own;
		own = after;
		after = kept;
	}
	return r;
}

static int walk_frames(const struct parallel_series *s, const double *usual, const unsigned char *skip, double *ret,
		       struct parallel_gaps *hits, struct err *err)
{
	int failed = 0;

#pragma omp parallel for schedule(static) reduction(+ : failed) if (s->n_radial * (size_t)s->n > WORTH_VALUES)
	for (size_t first = 0; first < s->n_radial; first += BLOCK)
		failed += walk_block(s, first, s->n_radial - first < BLOCK ? s->n_radial - first : BLOCK, usual, skip, ret,
				     hits) < 0;
	return failed ? err_set(err, ENOMEM, "no memory for the hits of %d frames", s->n) : 0;
}

static int order_hits(const void *a, const void *b)
{
	const struct parallel_gap *x = a, *y = b;

	return x->view != y->view ? x->view - y->view : x->bin - y->bin;
}

static int order_by_bin(const void *a, const void *b)
{
	const struct parallel_gap *x = a, *y = b;

	return x->bin != y->bin ? x->bin - y->bin : x->view - y->view;
}

/* Is d of frame a without a hit? hits: of the bin. */
static bool is_clean(const struct parallel_gaps *hits, int a)
{
	for (size_t i = 0; i < hits->n; i++)
		if (abs(hits->gap[i].view - a) <= 1)
			return false;
	return true;
}

static double change_at(const struct parallel_series *s, int a, size_t t)
{
	return (double)(value_of(s, a, t) - 0.5f * (value_of(s, a - 1, t) + value_of(s, a + 1, t)));
}

/* Return the noise of a bin without its hits and the frame that changes most: a bin that once has no signal does not flicker. */
static double clean_noise(const struct parallel_series *s, const struct parallel_gaps *hits, size_t t)
{
	double sum = 0, most = 0;
	int n = 0, worst = -2;

	for (int a = 1; a + 1 < s->n; a++)
		if (is_clean(hits, a) && fabs(change_at(s, a, t)) > most) {
			most = fabs(change_at(s, a, t));
			worst = a;
		}
	for (int a = 1; a + 1 < s->n; a++) {
		if (!is_clean(hits, a) || abs(a - worst) <= 1)
			continue;
		sum += pow(change_at(s, a, t), 2);
		n++;
	}
	return n ? sqrt(sum / (1.5 * n)) : 0;
}

/* The largest noise of n frames by chance, in that of the neighbours. */
static double noise_limit(int n)
{
	double freedom = (n - 2) / 1.944; /* 1 + 2 (2/3)^2 + 2 (1/6)^2: correlations of d */
	double cube = 1 + NORMAL * sqrt(2 / (9 * freedom)) - 2 / (9 * freedom);

	return fmax(RATIO, sqrt(cube * cube * cube));
}

static bool is_noisy(const struct parallel_series *s, const struct parallel_gaps *hits, size_t t, double noise, double most)
{
	if (!(noise > most))
		return false;
	return (double)hits->n > fmax(1, MANY_HITS * s->n) || clean_noise(s, hits, t) > most;
}

/* Mark the bins that flicker, unless many beside each other do. hits: bin by bin; least: noise that matters. */
static void mark_noisy(const struct parallel_series *s, const struct parallel_gaps *hits, const double *noise,
		       const double *usual, const double *least, unsigned char *mark)
{
	const double limit = noise_limit(s->n);
	size_t run = 0, end = 0;

	for (size_t t = 0; t <= s->n_radial; t++) {
		const size_t first = end;
		struct parallel_gaps own = {0}; /* hits of the bin */

		while (end < hits->n && hits->gap[end].bin == (int)t)
			end++;
		if (end > first)
			own = (struct parallel_gaps){.n = end - first, .gap = hits->gap + first};
		if (t < s->n_radial && !mark[t] && is_noisy(s, &own, t, noise[t], fmax(limit * usual[t], least[t]))) {
			run++;
			continue;
		}
		for (size_t i = t - run; i < t && run <= NOISY_WIDTH; i++)
			mark[i] = PARALLEL_GAP_FLICKERS;
		run = 0;
	}
}

int parallel_find_gaps(const struct parallel_series *s, const double *light, unsigned char *mark, double *ret_noise,
		       struct parallel_gaps *hits, struct err *err)
{
	size_t n = s->n_radial;
	double *usual = calloc(2 * n, sizeof(*usual)), *least = usual + n;
	int r;

	memset(ret_noise, 0, n * sizeof(*ret_noise));
	hits->n = 0;
	if (!usual)
		return err_set(err, ENOMEM, "no memory for the noise of %zu bins", n);
	if (s->n < LEAST_HITS) {
		free(usual);
		return 0;
	}
	walk_frames(s, NULL, mark, ret_noise, hits, NULL);
	for (size_t t = 0; t < n; t++) {
		ret_noise[t] = sqrt(ret_noise[t] / (1.5 * (s->n - 2)));
		least[t] = NOISE_LEAST * (s->dark ? 0.5 * sqrt(fmax(light[t], 0)) : light[t]);
	}
	parallel_usual(ret_noise, mark, n, usual);
	r = walk_frames(s, usual, mark, NULL, hits, err);
	if (hits->n > 0)
		qsort(hits->gap, hits->n, sizeof(*hits->gap), order_by_bin);
	if (r == 0 && s->n >= LEAST_NOISY)
		mark_noisy(s, hits, ret_noise, usual, least, mark);
	if (hits->n > 0)
		qsort(hits->gap, hits->n, sizeof(*hits->gap), order_hits);
	free(usual);
	return r;
}
