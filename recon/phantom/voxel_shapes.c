/* SPDX-License-Identifier: Apache-2.0 */
/* voxel_shapes.c - find the pieces of lesion in a volume of voxels (recon/phantom/voxel_phantom.h): sets of connected voxels, and
 * their positions and sizes.
 *
 * Only voxels of lesions and calcifications are listed, in the order of the array; bisection finds their neighbours in the list.
 * So the memory needed depends on the lesions, not on the volume.
 *
 * - Pieces are sets of a union-find over the list (the root is the least member), of one material each.
 * - Second moments: a solid ellipsoid with half axis r has the variance r^2 / 5 along it; a voxel itself has h^2 / 12. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "recon/phantom/voxel_phantom.h"

#define LISTED_MAX ((size_t)1 << 26) /* largest number of listed voxels */
#define FOUND_MAX 1000000	     /* largest number of pieces, fragments included */
#define PIECES_MAX 10000
#define FRAGMENT_RATIO 20 /* a fragment has at most 1 / FRAGMENT_RATIO of the voxels of the piece that it belongs to */

struct piece {
	size_t n; /* number of voxels */
	uint8_t material;
	double sum[3], sum2[3]; /* sums of voxel indices and of their squares */
	int first[3], end[3];	/* the box around it */
};

struct pieces {
	const struct voxel_phantom *p;
	size_t *at, *parent, n; /* indices of the listed voxels, ascending; for each, a member of its set that is nearer to the
				   root; their number */
	struct piece *piece;
	size_t n_pieces;
};

static bool is_listed(const struct voxel_phantom *p, size_t i)
{
	enum voxel_role role = p->material[p->voxel[i]].role;

	return role == VOXEL_LESION || role == VOXEL_CALCIFICATION;
}

static void place_of(const struct grid *g, size_t i, int ret[3])
{
	ret[0] = (int)(i % (size_t)g->n[0]);
	ret[1] = (int)(i / (size_t)g->n[0] % (size_t)g->n[1]);
	ret[2] = (int)(i / (size_t)g->n[0] / (size_t)g->n[1]);
}

static int list_voxels(struct pieces *s, struct err *err)
{
	size_t all = grid_size(&s->p->grid), n = 0;

	for (size_t i = 0; i < all; i++)
		n += is_listed(s->p, i);
	if (n > LISTED_MAX)
		return err_set(err, EBADMSG, "voxel phantom: %zu voxels are lesions; at most %zu are allowed", n, LISTED_MAX);
	s->at = malloc((n + 1) * sizeof(*s->at));
	s->parent = malloc((n + 1) * sizeof(*s->parent));
	if (!s->at || !s->parent)
		return err_set(err, ENOMEM, "no memory for a list of %zu voxels", n);
	for (size_t i = 0; i < all; i++)
		if (is_listed(s->p, i)) {
			s->parent[s->n] = s->n;
			s->at[s->n++] = i;
		}
	return 0;
}

static size_t root_of(struct pieces *s, size_t i)
{
	while (s->parent[i] != i)
		i = s->parent[i] = s->parent[s->parent[i]];
	return i;
}

/* Return the position in the list of voxel `at`, which is in the list before `end`. */
static size_t find_voxel(const struct pieces *s, size_t at, size_t end)
{
	size_t lo = 0;

	while (end - lo > 1) {
		size_t middle = lo + (end - lo) / 2;

		if (s->at[middle] <= at)
			lo = middle;
		else
			end = middle;
	}
	return lo;
}

/* Unite voxel i of the list with those of its 26 neighbours that precede it. */
static void unite_neighbours(struct pieces *s, size_t i)
{
	const struct grid *g = &s->p->grid;
	const uint8_t *voxel = s->p->voxel;
	int x[3];

	place_of(g, s->at[i], x);
	for (int d = 0; d < 13; d++) { /* d / 9, d / 3 % 3, d % 3 minus 1: the half of the cube before its middle */
		int to[3] = {x[0] + d % 3 - 1, x[1] + d / 3 % 3 - 1, x[2] + d / 9 - 1};
		size_t at;

		if (to[0] < 0 || to[1] < 0 || to[2] < 0 || to[0] >= g->n[0] || to[1] >= g->n[1])
			continue;
		at = (size_t)to[0] + (size_t)g->n[0] * ((size_t)to[1] + (size_t)g->n[1] * (size_t)to[2]);
		if (voxel[at] != voxel[s->at[i]])
			continue;
		size_t a = root_of(s, find_voxel(s, at, i)), b = root_of(s, i);

		s->parent[a > b ? a : b] = a < b ? a : b;
	}
}

static void piece_add(struct piece *q, const int x[3])
{
	for (int c = 0; c < 3; c++) {
		q->sum[c] += x[c];
		q->sum2[c] += (double)x[c] * x[c];
		q->first[c] = q->n == 0 || x[c] < q->first[c] ? x[c] : q->first[c];
		q->end[c] = q->n == 0 || x[c] + 1 > q->end[c] ? x[c] + 1 : q->end[c];
	}
	q->n++;
}

/* Convert sets into pieces. The root of a set is its first member in the list, so it is processed before all others. Afterwards
 * `parent` contains piece numbers. */
static int collect_pieces(struct pieces *s, struct err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += root_of(s, i) == i;
	if (n > FOUND_MAX)
		return err_set(err, EBADMSG, "voxel phantom: lesions in %zu pieces; at most %d are allowed", n, FOUND_MAX);
	s->piece = calloc(n + 1, sizeof(*s->piece));
	if (!s->piece)
		return err_set(err, ENOMEM, "no memory for %zu pieces", n);
	for (size_t i = 0; i < s->n; i++)
		s->parent[i] = root_of(s, i);
	for (size_t i = 0; i < s->n; i++) {
		size_t number = s->parent[i] == i ? s->n_pieces++ : s->parent[s->parent[i]];
		int x[3];

		place_of(&s->p->grid, s->at[i], x);
		s->parent[i] = number;
		s->piece[number].material = s->p->voxel[s->at[i]];
		piece_add(&s->piece[number], x);
	}
	return 0;
}

static int larger_first(const void *a, const void *b)
{
	const struct piece *p = a, *q = b;

	if (p->n != q->n)
		return p->n < q->n ? 1 : -1;
	for (int c = 2; c >= 0; c--)
		if (p->first[c] != q->first[c])
			return p->first[c] < q->first[c] ? -1 : 1;
	return 0;
}

static bool is_fragment_of(const struct piece *q, const struct piece *of)
{
	bool inside = q->n * FRAGMENT_RATIO <= of->n && q->material == of->material;

	for (int c = 0; c < 3; c++)
		inside = inside && q->first[c] >= of->first[c] && q->end[c] <= of->end[c];
	return inside;
}

static void absorb_crumbs(struct pieces *s)
{
	size_t kept = 0;

	qsort(s->piece, s->n_pieces, sizeof(*s->piece), larger_first);
	for (size_t i = 0; i < s->n_pieces; i++) {
		struct piece *q = &s->piece[i];
		size_t k = 0;

		while (k < kept && s->piece[k].n >= FRAGMENT_RATIO * q->n && !is_fragment_of(q, &s->piece[k]))
			k++;
		if (k == kept || s->piece[k].n < FRAGMENT_RATIO * q->n) {
			s->piece[kept++] = *q;
			continue;
		}
		s->piece[k].n += q->n;
		for (int c = 0; c < 3; c++) {
			s->piece[k].sum[c] += q->sum[c];
			s->piece[k].sum2[c] += q->sum2[c];
		}
	}
	s->n_pieces = kept;
}

/* Return the mean attenuation in the ellipsoid minus that in the shell between it and the ellipsoid with twice its half axes. */
static double ellipsoid_contrast(const struct voxel_phantom *p, const struct shape *shape)
{
	const struct grid *g = &p->grid;
	double sum[2] = {0, 0}, n[2] = {0, 0};
	int first[3], end[3];

	for (int c = 0; c < 3; c++) {
		first[c] = (int)fmax(floor((shape->c[c] - 2 * shape->r[c] - g->lo[c]) / g->h[c]), 0);
		end[c] = (int)fmin(ceil((shape->c[c] + 2 * shape->r[c] - g->lo[c]) / g->h[c]), g->n[c]);
	}
	for (int k = first[2]; k < end[2]; k++)
		for (int j = first[1]; j < end[1]; j++)
			for (int i = first[0]; i < end[0]; i++) {
				int at[3] = {i, j, k};
				double q = 0;

				for (int c = 0; c < 3; c++)
					q += pow((g->lo[c] + (at[c] + 0.5) * g->h[c] - shape->c[c]) / shape->r[c], 2);
				if (q > 4)
					continue;
				sum[q > 1] += p->material[p->voxel[(size_t)i +
								   (size_t)g->n[0] * ((size_t)j + (size_t)g->n[1] * (size_t)k)]]
						      .mu;
				n[q > 1]++;
			}
	return (n[0] > 0 ? sum[0] / n[0] : 0) - (n[1] > 0 ? sum[1] / n[1] : 0);
}

static void piece_shape(const struct voxel_phantom *p, const struct piece *q, struct shape *ret)
{
	*ret = (struct shape){.kind = SHAPE_ELLIPSOID,
			      .role = p->material[q->material].role == VOXEL_LESION ? ROLE_LESION : ROLE_BEAD};
	for (int c = 0; c < 3; c++) {
		double mean = q->sum[c] / (double)q->n, variance = q->sum2[c] / (double)q->n - mean * mean;

		ret->c[c] = p->grid.lo[c] + (mean + 0.5) * p->grid.h[c];
		ret->r[c] = p->grid.h[c] * sqrt(5 * (fmax(variance, 0) + 1.0 / 12));
	}
	ret->mu = ellipsoid_contrast(p, ret);
}

/* Compute the box around everything except air and paddle. */
static int body_shape(const struct voxel_phantom *p, struct shape *ret, struct err *err)
{
	struct piece all = {0};
	double mu = 0;
	size_t i = 0;

	for (int k = 0; k < p->grid.n[2]; k++)
		for (int j = 0; j < p->grid.n[1]; j++)
			for (int x[3] = {0, j, k}; x[0] < p->grid.n[0]; x[0]++, i++) {
				const struct voxel_material *m = &p->material[p->voxel[i]];

				if (m->role == VOXEL_AIR || m->role == VOXEL_PADDLE)
					continue;
				piece_add(&all, x);
				mu += m->mu;
			}
	if (all.n == 0)
		return err_set(err, EBADMSG, "voxel phantom: only air and paddle in %zu voxels", i);
	*ret = (struct shape){.kind = SHAPE_BOX, .role = ROLE_BODY, .mu = mu / (double)all.n};
	for (int c = 0; c < 3; c++) {
		ret->r[c] = (all.end[c] - all.first[c]) * p->grid.h[c] / 2;
		ret->c[c] = p->grid.lo[c] + all.first[c] * p->grid.h[c] + ret->r[c];
	}
	return 0;
}

int voxel_phantom_shapes(const struct voxel_phantom *p, struct phantom **ret_shapes, struct err *err)
{
	struct pieces s = {.p = p};
	struct phantom *shapes = NULL;
	int rc = list_voxels(&s, err);

	if (rc < 0)
		goto out;
	for (size_t i = 0; i < s.n; i++)
		unite_neighbours(&s, i);
	rc = collect_pieces(&s, err);
	if (rc < 0)
		goto out;
	absorb_crumbs(&s);
	if (s.n_pieces > PIECES_MAX) {
		rc = err_set(err, EBADMSG, "voxel phantom: %zu pieces of lesion; at most %d are allowed", s.n_pieces, PIECES_MAX);
		goto out;
	}
	shapes = calloc(1, sizeof(*shapes));
	if (shapes)
		shapes->shapes = calloc(s.n_pieces + 1, sizeof(*shapes->shapes));
	if (!shapes || !shapes->shapes) {
		rc = err_set(err, ENOMEM, "no memory for %zu shapes", s.n_pieces + 1);
		goto out;
	}
	snprintf(shapes->name, sizeof(shapes->name), "voxels");
	rc = body_shape(p, &shapes->shapes[0], err);
	if (rc < 0)
		goto out;
	for (size_t i = 0; i < s.n_pieces; i++)
		piece_shape(p, &s.piece[i], &shapes->shapes[i + 1]);
	shapes->n = s.n_pieces + 1;
	*ret_shapes = shapes;
	shapes = NULL;
	rc = 0;
out:
	phantom_free(shapes);
	free(s.at);
	free(s.parent);
	free(s.piece);
	return rc;
}
