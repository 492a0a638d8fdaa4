/* SPDX-License-Identifier: Apache-2.0 */
/* petsird_efficiency.c - efficiencies of detection bins, and of pairs of modules.
 *
 * Efficiency of bins a, b = e_a e_b g[group of the modules of a and b][bin of a in its module][bin of b in its module]. A part
 * that is not in the file is 1; a group below 0 means that the modules are not in coincidence. The value must not depend on the
 * order of a and b: that of the larger type, then of the larger module is taken, as from schema 0.10 on the table of two modules
 * of one type is a triangle. */
#include "node/format/petsird_internal.h"

#include <errno.h>
#include <stdlib.h>

#define GROUPS_MAX ((int64_t)1 << 24) /* a group is stored as a float */

static void rows_free(struct petsird_rows *r)
{
	free(r->start);
	free(r->values);
	*r = (struct petsird_rows){0};
}

/* Add n values behind row `row`. */
static int rows_extend(struct petsird *p, struct petsird_rows *r, size_t row, uint64_t n)
{
	size_t total = r->start[row] + (size_t)n;
	float *values = realloc(r->values, (total ? total : 1) * sizeof(*values));

	if (!values)
		return err_set(p->in.err, ENOMEM, "no memory for %zu numbers", total);
	r->values = values;
	r->start[row + 1] = total;
	return 0;
}

static int read_value(struct petsird *p, const struct yardl_type *t, bool whole, float *ret)
{
	double value = 0;
	int64_t number = 0;
	int rc = whole ? yardl_read_integer(&p->in, t, &number) : yardl_read_float(&p->in, t, &value);

	if (rc < 0)
		return rc;
	if (whole && (number >= GROUPS_MAX || number < -GROUPS_MAX))
		return yardl_fail(&p->in, EBADMSG, "symmetry group %lld", (long long)number);
	if (!whole && !(value >= 0 && value <= 1e30))
		return yardl_fail(&p->in, EBADMSG, "an efficiency of %g", value);
	*ret = whole ? (float)number : (float)value;
	return 0;
}

static int read_row(struct petsird *p, const struct yardl_type *item, bool whole, struct petsird_rows *r, size_t row, uint64_t n)
{
	int rc = rows_extend(p, r, row, n);

	for (size_t i = r->start[row]; rc == 0 && i < r->start[row + 1]; i++)
		rc = read_value(p, item, whole, &r->values[i]);
	return rc;
}

/* Read a list of lists, or an array of two dimensions. */
static int read_rows(struct petsird *p, const struct yardl_type *t, bool whole, struct petsird_rows *ret)
{
	uint64_t size[YARDL_RANK_MAX] = {0}, n = 0;
	struct petsird_rows r = {0};
	int rank = 0, rc = yardl_read_shape(&p->in, t, &rank, size);

	if (rc < 0)
		return rc;
	if (rank > 2)
		return yardl_fail(&p->in, ENOTSUP, "an array of %d dimensions where a table is needed", rank);
	if (size[0] > yardl_left(&p->in)) /* rows of no columns */
		return yardl_fail(&p->in, EBADMSG, "a table of %llu rows", (unsigned long long)size[0]);
	r.rows = (size_t)size[0];
	r.start = calloc(r.rows + 1, sizeof(*r.start));
	if (!r.start)
		return err_set(p->in.err, ENOMEM, "no memory for a table of %zu rows", r.rows);
	for (size_t row = 0; rc == 0 && row < r.rows; row++) {
		n = size[1];
		if (rank == 1)
			rc = yardl_read_list(&p->in, t->of[0], &n);
		if (rc == 0)
			rc = read_row(p, rank == 1 ? t->of[0]->of[0] : t->of[0], whole, &r, row, n);
	}
	if (rc < 0)
		rows_free(&r);
	else
		*ret = r;
	return rc;
}

static int read_group_pair(struct petsird *p, const struct yardl_type *t, size_t i, size_t j)
{
	struct petsird_rows *r = &p->pair[i][j].group;

	rows_free(r);
	return read_rows(p, t, true, r);
}

struct group { /* of ModulePairEfficiencies */
	struct petsird_rows rows;
	int64_t number;
};

static int store_rows(struct petsird *p, const struct yardl_type *t, void *to)
{
	rows_free(to);
	return read_rows(p, t, false, to);
}

static int store_number(struct petsird *p, const struct yardl_type *t, void *to)
{
	return yardl_read_integer(&p->in, t, to);
}

/* ModulePairEfficiencies: values and the group that they belong to, which must be their index. */
static int read_group_values(struct petsird *p, const struct yardl_type *t, size_t index, struct petsird_rows *ret)
{
	static const struct petsird_field fields[] = {
		{"values", .store = store_rows, .needed = true, .at = offsetof(struct group, rows)},
		{"sgid", .store = store_number, .needed = true, .at = offsetof(struct group, number)},
		{0}};
	struct group g = {.number = (int64_t)index};
	int rc = petsird_read_record(p, t, fields, &g);

	*ret = g.rows;
	if (rc == 0 && g.number != (int64_t)index)
		rc = yardl_fail(&p->in, EBADMSG, "efficiencies number %zu are of symmetry group %lld", index,
				(long long)g.number);
	return rc;
}

static int read_values_pair(struct petsird *p, const struct yardl_type *t, size_t i, size_t j)
{
	struct petsird_pair *pair = &p->pair[i][j];
	uint64_t n = 0;
	int rc = yardl_read_list(&p->in, t, &n);

	if (rc < 0 || n == 0)
		return rc;
	if (pair->groups)
		return yardl_fail(&p->in, EBADMSG, "efficiencies of pairs of modules are there twice");
	pair->groups = calloc((size_t)n, sizeof(*pair->groups));
	if (!pair->groups)
		return err_set(p->in.err, ENOMEM, "no memory for %llu symmetry groups", (unsigned long long)n);
	pair->n_groups = (size_t)n;
	for (size_t k = 0; rc == 0 && k < pair->n_groups; k++)
		rc = read_group_values(p, t->of[0], k, &pair->groups[k]);
	return rc;
}

static int read_groups(struct petsird *p, const struct yardl_type *t)
{
	return petsird_read_pairs(p, t, read_group_pair);
}

static int read_values(struct petsird *p, const struct yardl_type *t)
{
	return petsird_read_pairs(p, t, read_values_pair);
}

static int read_calibration(struct petsird *p, const struct yardl_type *t)
{
	int rc = yardl_read_float(&p->in, t, &p->header.calibration);

	if (rc == 0 && p->header.calibration == 0) /* what the package writes where there is none */
		p->header.calibration = 1;
	if (rc == 0 && !(p->header.calibration > 0 && p->header.calibration < 1e30))
		rc = yardl_fail(&p->in, EBADMSG, "a calibration factor of %g", p->header.calibration);
	return rc;
}

static int read_bins(struct petsird *p, const struct yardl_type *t)
{
	uint64_t n = 0;
	int rc = yardl_read_choice(&p->in, t, &t);

	if (rc < 0 || !t)
		return rc;
	rc = yardl_read_list(&p->in, t, &n);
	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		if (i >= PETSIRD_TYPES_MAX) {
			rc = yardl_skip(&p->in, t->of[0]);
			continue;
		}
		free(p->bins[i]);
		p->bins[i] = NULL;
		rc = petsird_read_floats(p, t->of[0], &p->bins[i], &p->n_bins[i]);
	}
	return rc;
}

const struct petsird_field petsird_efficiencies[] = {
	{"calibrationFactor", read_calibration},
	{"detectionBinEfficiencies", read_bins, true},
	{"modulePairSGIDLUT", read_groups, true},
	{"modulePairEfficienciesVectors", read_values, true},
	{0},
};

/* ---- checks ---- */

/* A table must have at least `columns` columns in `rows` rows; if triangular, row i at least i + 1. */
static bool rows_cover(const struct petsird_rows *r, size_t rows, size_t columns, bool triangular)
{
	if (r->rows < rows)
		return false;
	for (size_t i = 0; i < rows; i++)
		if (r->start[i + 1] - r->start[i] < (triangular ? i + 1 : columns))
			return false;
	return true;
}

static int check_pair(struct petsird *p, size_t i, size_t j, struct err *err)
{
	const struct petsird_modules *a = &p->header.type[i], *b = &p->header.type[j];
	const struct petsird_pair *pair = &p->pair[i][j];

	if (pair->group.rows > 0 && !rows_cover(&pair->group, a->modules, b->modules, i == j))
		return err_set(err, EBADMSG, "the symmetry groups of module types %zu and %zu do not cover %zu x %zu modules", i,
			       j, a->modules, b->modules);
	if (pair->n_groups > 0 && pair->group.rows == 0)
		return err_set(err, EBADMSG, "efficiencies of module types %zu and %zu, but no symmetry groups", i, j);
	for (size_t k = 0; pair->group.rows > 0 && k < pair->group.start[pair->group.rows]; k++)
		if (pair->n_groups > 0 && pair->group.values[k] >= (float)pair->n_groups)
			return err_set(err, EBADMSG,
				       "symmetry group %g of module types %zu and %zu; efficiencies are there for %zu",
				       (double)pair->group.values[k], i, j, pair->n_groups);
	for (size_t k = 0; k < pair->n_groups; k++)
		if (!rows_cover(&pair->groups[k], a->elements * a->energies, b->elements * b->energies, false))
			return err_set(err, EBADMSG,
				       "the efficiencies of symmetry group %zu do not cover %zu x %zu detection bins", k,
				       a->elements * a->energies, b->elements * b->energies);
	return 0;
}

int petsird_check_efficiencies(struct petsird *p, struct err *err)
{
	struct petsird_header *h = &p->header;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < h->n_types; i++) {
		size_t bins = h->type[i].modules * h->type[i].elements * h->type[i].energies;

		if (p->n_bins[i] > 0 && p->n_bins[i] != bins)
			return err_set(err, EBADMSG, "efficiencies of %zu detection bins; modules of type %zu have %zu",
				       p->n_bins[i], i, bins);
		for (size_t k = 0; k < p->n_bins[i]; k++)
			if (p->bins[i][k] < 0)
				return err_set(err, EBADMSG, "an efficiency of %g", (double)p->bins[i][k]);
		h->has_efficiencies = h->has_efficiencies || p->n_bins[i] > 0;
		for (size_t j = 0; rc == 0 && j <= i; j++) {
			rc = check_pair(p, i, j, err);
			h->has_efficiencies = h->has_efficiencies || p->pair[i][j].group.rows > 0;
		}
	}
	return rc;
}

void petsird_free_efficiencies(struct petsird *p)
{
	for (size_t i = 0; i < PETSIRD_TYPES_MAX; i++) {
		free(p->bins[i]);
		for (size_t j = 0; j < PETSIRD_TYPES_MAX; j++) {
			struct petsird_pair *pair = &p->pair[i][j];

			rows_free(&pair->group);
			for (size_t k = 0; k < pair->n_groups; k++)
				rows_free(&pair->groups[k]);
			free(pair->groups);
		}
	}
}

/* ---- one pair ---- */

struct bin {
	size_t type, module, in_module, bin;
};

static struct bin bin_of(const struct petsird_header *h, uint32_t detector, uint16_t energy)
{
	struct bin b = {.type = petsird_type_of(h, detector)};
	const struct petsird_modules *m = &h->type[b.type];
	size_t at = detector - m->first;

	b.module = at / m->elements;
	b.in_module = at % m->elements * m->energies + energy;
	b.bin = at * m->energies + energy;
	return b;
}

static float row_value(const struct petsird_rows *r, size_t row, size_t column)
{
	return r->values[r->start[row] + column];
}

double petsird_efficiency(const struct petsird *p, const uint32_t detector[2], const uint16_t energy[2])
{
	struct bin a = bin_of(&p->header, detector[0], energy[0]), b = bin_of(&p->header, detector[1], energy[1]), swap = a;
	const struct petsird_pair *pair;
	double e = 1;
	float group;

	if (a.type < b.type || (a.type == b.type && a.module < b.module)) {
		a = b;
		b = swap;
	}
	if (p->n_bins[a.type] > 0)
		e *= (double)p->bins[a.type][a.bin];
	if (p->n_bins[b.type] > 0)
		e *= (double)p->bins[b.type][b.bin];
	pair = &p->pair[a.type][b.type];
	if (pair->group.rows == 0)
		return e;
	group = row_value(&pair->group, a.module, b.module);
	if (group < 0)
		return 0;
	return pair->n_groups ? e * (double)row_value(&pair->groups[(size_t)group], a.in_module, b.in_module) : e;
}
