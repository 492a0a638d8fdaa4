/* SPDX-License-Identifier: Apache-2.0 */
/* slabs.c - thick slabs of slices that are added one by one.
 *
 * - Slab i is the i-th to begin and the i-th to end (step >= distance of slices), so at most `n_buffers` consecutive slabs are
 *   unfinished, and slab i uses buffer i % n_buffers.
 * - Heights are integers, in units of 1 / QUANTA of a slice. So slabs that begin one slice apart end one slice apart, whatever
 *   their thickness, and one slice never completes two.
 * - Pixels are processed in blocks: a block of the slice is read once from memory for all unfinished slabs. */
#include "recon/dbt/slabs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 4096    /* floats */
#define ROUNDING 1e-6 /* fraction of a slice: rounding tolerance for a centre on a slab's face */
#define QUANTA 1000000000000LL
#define SLICES_MAX 1000000 /* twice as many slices of QUANTA are less than LLONG_MAX */

struct slabs {
	enum slabs_mode mode;
	long long thickness, step; /* in 1 / QUANTA of a slice */
	struct grid grid;
	int count, n_buffers;
	int slice; /* index of the next slice */
	int done;  /* number of complete slabs */
	float *buffers;
};

/* Convert a length, limited to at least a slice and at most the volume, into QUANTA. */
static long long length_quanta(double length, const struct grid *g)
{
	return llround(fmin(fmax(length / g->h[2], 1), g->n[2]) * (double)QUANTA);
}

/* Return the first slice whose centre is not below z, measured from the volume's lower face. */
static int slice_from(const struct slabs *s, long long z)
{
	long long centre = z - QUANTA / 2 - (long long)(ROUNDING * (double)QUANTA);
	long long k = centre > 0 ? (centre - 1) / QUANTA + 1 : 0;

	return k > s->grid.n[2] ? s->grid.n[2] : (int)k;
}

struct slabs_range slabs_range(const struct slabs *s, int slab)
{
	int first = slice_from(s, slab * s->step), end = slice_from(s, slab * s->step + s->thickness);

	return (struct slabs_range){
		.first = first,
		.n = end - first,
		.z = {s->grid.lo[2] + first * s->grid.h[2], s->grid.lo[2] + end * s->grid.h[2]},
	};
}

int slabs_count(const struct slabs *s)
{
	return s->count;
}

static size_t count_pixels(const struct slabs *s)
{
	return (size_t)s->grid.n[0] * (size_t)s->grid.n[1];
}

/* Count the slabs, and the largest number of unfinished ones. */
static void count_slabs(struct slabs *s)
{
	int oldest = 0;

	for (int end = 0; end < s->grid.n[2]; s->count++) {
		struct slabs_range r = slabs_range(s, s->count);

		if (r.n == 0) /* step > thickness, and the uppermost slices are between two slabs */
			break;
		end = r.first + r.n;
		for (;; oldest++) { /* slabs that end before this one begins no longer need a buffer */
			struct slabs_range old = slabs_range(s, oldest);

			if (old.first + old.n > r.first)
				break;
		}
		if (s->count - oldest + 1 > s->n_buffers)
			s->n_buffers = s->count - oldest + 1;
	}
}

int slabs_open(enum slabs_mode mode, double thickness, double step, const struct grid *grid, struct slabs **ret_slabs,
	       struct err *err)
{
	struct slabs *s;

	if (mode != SLABS_MEAN && mode != SLABS_MAXIMUM)
		return err_set(err, EINVAL, "slabs: mode %d, not in %d..%d", (int)mode, SLABS_MEAN, SLABS_MAXIMUM);
	for (int c = 0; c < 3; c++)
		if (grid->n[c] <= 0 || !(grid->h[c] > 0))
			return err_set(err, EINVAL, "slabs: grid axis %d: n=%d, spacing=%g mm", c, grid->n[c], grid->h[c]);
	if (grid->n[2] > SLICES_MAX)
		return err_set(err, EINVAL, "slabs: %d slices; allowed: up to %d", grid->n[2], SLICES_MAX);
	if (!(thickness >= grid->h[2] * (1 - ROUNDING) && thickness < INFINITY))
		return err_set(err, EINVAL, "slabs: thickness %g mm is less than the distance of the slices, %g mm", thickness,
			       grid->h[2]);
	if (!(step >= grid->h[2] * (1 - ROUNDING) && step < INFINITY))
		return err_set(err, EINVAL, "slabs: the step between slabs is %g mm, less than the distance of the slices, %g mm",
			       step, grid->h[2]);
	s = malloc(sizeof(*s));
	if (!s)
		return err_set(err, ENOMEM, "slabs: out of memory");
	*s = (struct slabs){.mode = mode, .grid = *grid};
	s->thickness = length_quanta(thickness, grid);
	s->step = length_quanta(step, grid);
	count_slabs(s);
	s->buffers = malloc((size_t)s->n_buffers * count_pixels(s) * sizeof(float));
	if (!s->buffers) {
		err_set(err, ENOMEM, "slabs: no memory for %d of %d x %d pixels", s->n_buffers, grid->n[0], grid->n[1]);
		slabs_close(s);
		return -ENOMEM;
	}
	*ret_slabs = s;
	return 0;
}

struct slabs *slabs_close(struct slabs *s)
{
	if (s)
		free(s->buffers);
	free(s);
	return NULL;
}

static void add_block(enum slabs_mode mode, bool first, bool last, float share, const float *slice, size_t n, float *slab)
{
	if (first)
		memcpy(slab, slice, n * sizeof(*slab));
	else if (mode == SLABS_MEAN)
		for (size_t i = 0; i < n; i++)
			slab[i] += slice[i];
	else
		for (size_t i = 0; i < n; i++)
			slab[i] = slice[i] > slab[i] ? slice[i] : slab[i];
	if (last && mode == SLABS_MEAN)
		for (size_t i = 0; i < n; i++)
			slab[i] *= share;
}

int slabs_add(struct slabs *s, const float *slice, const float **ret_slab, struct err *err)
{
	size_t n = count_pixels(s), n_blocks = (n + BLOCK - 1) / BLOCK;
	struct slabs_range oldest;

	if (s->slice >= s->grid.n[2])
		return err_set(err, EINVAL, "slabs: all %d slices have already been added", s->grid.n[2]);
#pragma omp parallel for schedule(static)
	for (size_t b = 0; b < n_blocks; b++) {
		size_t at = b * BLOCK, m = n - at < BLOCK ? n - at : BLOCK;

		for (int i = s->done; i < s->count; i++) {
			struct slabs_range r = slabs_range(s, i);

			if (r.first > s->slice)
				break;
			add_block(s->mode, r.first == s->slice, r.first + r.n - 1 == s->slice, 1 / (float)r.n, slice + at, m,
				  s->buffers + (size_t)(i % s->n_buffers) * n + at);
		}
	}
	*ret_slab = NULL;
	if (s->done < s->count) {
		oldest = slabs_range(s, s->done);
		if (oldest.first + oldest.n - 1 == s->slice)
			*ret_slab = s->buffers + (size_t)(s->done++ % s->n_buffers) * n;
	}
	s->slice++;
	return 0;
}
