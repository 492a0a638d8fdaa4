/* SPDX-License-Identifier: Apache-2.0 */
/* subsets.c - ordered subsets of views. The views are sorted along the arc; subset r of S consists of the views r, r + S, r + 2S,
 * ... (Hudson & Larkin 1994). The index of the next subset is that of the current one plus a step of about 0.382 S (the golden
 * section), modulo S. The step has no common factor with S, so every subset is used once. Consecutive subsets are at least one
 * step apart, since the index either rises by the step or falls by S minus the step. */
#include "recon/core/subsets.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static int common_factor(int a, int b)
{
	while (b) {
		int rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static int golden_step(int n)
{
	int wish = (int)lround(0.381966 * n);

	for (int away = 0; away < n; away++) {
		if (wish + away < n && common_factor(n, wish + away) == 1)
			return wish + away;
		if (wish - away > 0 && common_factor(n, wish - away) == 1)
			return wish - away;
	}
	return 1;
}

/* Sort the views along the arc: ret_sorted[rank] is the index of a view. Views at equal positions keep their order. */
static void sort_views(const double *position, int n, int *ret_sorted)
{
	for (int i = 0; i < n; i++) {
		int rank = 0;

		for (int j = 0; j < n; j++)
			rank += position[j] < position[i] || (position[j] == position[i] && j < i);
		ret_sorted[rank] = i;
	}
}

int subsets_make(const double *position, int n_views, int n_subsets, int *ret_order, int *ret_first, struct err *err)
{
	int step, at = 0, *sorted;

	if (n_views <= 0)
		return err_set(err, EINVAL, "subsets: no views");
	for (int i = 0; i < n_views; i++)
		if (!isfinite(position[i]))
			return err_set(err, EINVAL, "subsets: view %d has no position", i);
	if (n_subsets < 0 || n_subsets > n_views)
		return err_set(err, EINVAL, "subsets=%d; allowed: 0 (one per projection) to %d, the number of projections",
			       n_subsets, n_views);
	if (n_subsets == 0)
		n_subsets = n_views;
	sorted = malloc((size_t)n_views * sizeof(*sorted));
	if (!sorted)
		return err_set(err, ENOMEM, "subsets: cannot allocate %d views", n_views);
	sort_views(position, n_views, sorted);
	step = golden_step(n_subsets);
	for (int s = 0; s < n_subsets; s++) {
		ret_first[s] = at;
		for (int rank = (int)((long)s * step % n_subsets); rank < n_views; rank += n_subsets)
			ret_order[at++] = sorted[rank];
	}
	free(sorted);
	ret_first[n_subsets] = at;
	return n_subsets;
}

void subsets_places(const int *order, int n_views, int *ret_place)
{
	for (int i = 0; i < n_views; i++)
		ret_place[order[i]] = i;
}

int subsets_largest(const int *first, int n_subsets)
{
	int largest = 0;

	for (int s = 0; s < n_subsets; s++)
		largest = first[s + 1] - first[s] > largest ? first[s + 1] - first[s] : largest;
	return largest;
}

int subsets_create(double (*position)(const void *ctx, int view), const void *ctx, int n_views, int n_subsets,
		   struct subsets *ret_subsets, struct err *err)
{
	size_t n = (size_t)n_views;
	struct subsets s = {
		.order = malloc(n * sizeof(int)), .place = malloc(n * sizeof(int)), .first = malloc((n + 1) * sizeof(int))};
	double *positions = malloc(n * sizeof(*positions));
	int r;

	if (!positions || !s.order || !s.place || !s.first) {
		r = err_set(err, ENOMEM, "plan: cannot allocate %d views", n_views);
	} else {
		for (int i = 0; i < n_views; i++)
			positions[i] = position(ctx, i);
		r = subsets_make(positions, n_views, n_subsets, s.order, s.first, err);
	}
	free(positions);
	if (r < 0) {
		subsets_release(&s);
		return r;
	}
	s.n_subsets = r;
	s.largest_subset = subsets_largest(s.first, r);
	subsets_places(s.order, n_views, s.place);
	*ret_subsets = s;
	return 0;
}

void subsets_release(struct subsets *s)
{
	free(s->order);
	free(s->place);
	free(s->first);
	*s = (struct subsets){0};
}
