/* SPDX-License-Identifier: Apache-2.0 */
/* petsird_alive.c - whether two detection bins have an efficiency above 0, without computing it for most of them.
 *
 * A module is whole if all of its bins have an efficiency above 0, and a pair of modules if it is in coincidence and all values of
 * its group are above 0. Only bins of other modules and pairs are looked at one by one. */
#include "node/format/petsird_internal.h"

#include <errno.h>
#include <stdlib.h>

#define BITS 64

struct petsird_alive {
	bool *whole[PETSIRD_TYPES_MAX]; /* [module]; NULL: all are */
	uint64_t
		*pairs[PETSIRD_TYPES_MAX][PETSIRD_TYPES_MAX]; /* [i][j], j <= i: bits [module of i][module of j]; NULL: all are */
};

static bool are_above_0(const float *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(values[i] > 0))
			return false;
	return true;
}

static int find_modules(const struct petsird *p, size_t type, bool **ret, struct err *err)
{
	const struct petsird_modules *m = &p->header.type[type];
	size_t bins = m->elements * m->energies;
	bool *whole;

	if (p->n_bins[type] == 0)
		return 0;
	whole = malloc(m->modules * sizeof(*whole));
	if (!whole)
		return err_set(err, ENOMEM, "no memory for %zu modules", m->modules);
	for (size_t i = 0; i < m->modules; i++)
		whole[i] = are_above_0(p->bins[type] + i * bins, bins);
	*ret = whole;
	return 0;
}

/* Are all values of a group above 0? */
static bool is_group_whole(const struct petsird_pair *pair, size_t group)
{
	const struct petsird_rows *r = &pair->groups[group];

	return are_above_0(r->values, r->start[r->rows]);
}

static void set_bit(uint64_t *bits, size_t i)
{
	bits[i / BITS] |= (uint64_t)1 << i % BITS;
}

static bool has_bit(const uint64_t *bits, size_t i)
{
	return bits[i / BITS] >> i % BITS & 1;
}

/* Fill the bits of two types; of one type for both orders of the modules. */
static int find_pairs(const struct petsird *p, size_t i, size_t j, uint64_t **ret, struct err *err)
{
	const struct petsird_pair *pair = &p->pair[i][j];
	size_t rows = p->header.type[i].modules, columns = p->header.type[j].modules,
	       groups = pair->n_groups ? pair->n_groups : 1;
	bool *whole = calloc(groups, sizeof(*whole));
	uint64_t *bits = calloc(rows * columns / BITS + 1, sizeof(*bits));

	if (!whole || !bits) {
		free(whole);
		free(bits);
		return err_set(err, ENOMEM, "no memory for %zu x %zu modules", rows, columns);
	}
	for (size_t g = 0; g < groups; g++)
		whole[g] = pair->n_groups == 0 || is_group_whole(pair, g);
	for (size_t a = 0; a < rows; a++)
		for (size_t b = 0; b < (i == j ? a + 1 : columns); b++) {
			float group = pair->group.values[pair->group.start[a] + b];

			if (group < 0 || !whole[pair->n_groups ? (size_t)group : 0])
				continue;
			set_bit(bits, a * columns + b);
			if (i == j)
				set_bit(bits, b * columns + a);
		}
	free(whole);
	*ret = bits;
	return 0;
}

int petsird_make_alive(struct petsird *p, struct err *err)
{
	struct petsird_alive *alive = calloc(1, sizeof(*alive));
	int rc = alive ? 0 : err_set(err, ENOMEM, "no memory for the efficiencies of modules");

	p->alive = alive;
	for (size_t i = 0; rc == 0 && i < p->header.n_types; i++) {
		rc = find_modules(p, i, &alive->whole[i], err);
		for (size_t j = 0; rc == 0 && j <= i; j++)
			if (p->pair[i][j].group.rows > 0)
				rc = find_pairs(p, i, j, &alive->pairs[i][j], err);
	}
	return rc;
}

void petsird_free_alive(struct petsird *p)
{
	for (size_t i = 0; p->alive && i < PETSIRD_TYPES_MAX; i++) {
		free(p->alive->whole[i]);
		for (size_t j = 0; j <= i; j++)
			free(p->alive->pairs[i][j]);
	}
	free(p->alive);
}

struct module {
	size_t type, number;
};

static struct module module_of(const struct petsird_header *h, uint32_t detector)
{
	size_t type = petsird_type_of(h, detector);

	return (struct module){type, (detector - (uint32_t)h->type[type].first) / (uint32_t)h->type[type].elements};
}

static bool is_whole(const struct petsird_alive *alive, const struct module *m)
{
	return !alive->whole[m->type] || alive->whole[m->type][m->number];
}

bool petsird_is_alive(const struct petsird *p, const uint32_t detector[2], const uint16_t energy[2])
{
	struct module a = module_of(&p->header, detector[0]), b = module_of(&p->header, detector[1]), swap = a;
	const uint64_t *pairs;

	if (a.type < b.type) {
		a = b;
		b = swap;
	}
	pairs = p->alive->pairs[a.type][b.type];
	if (is_whole(p->alive, &a) && is_whole(p->alive, &b) &&
	    (!pairs || has_bit(pairs, a.number * p->header.type[b.type].modules + b.number)))
		return true;
	return petsird_efficiency(p, detector, energy) > 0;
}
