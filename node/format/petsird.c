/* SPDX-License-Identifier: Apache-2.0 */
/* petsird.c - open a PETSIRD file and read its header. */
#include "node/format/petsird_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int petsird_check_fields(struct petsird *p, const struct yardl_type *t, const struct petsird_field *fields)
{
	if (t->kind != YARDL_RECORD)
		return err_set(p->in.err, ENOTSUP, "PETSIRD schema: \"%.60s\" is not a record, which \"%s\" is a field of",
			       t->name, fields[0].name);
	for (; fields->name; fields++)
		if (fields->needed && yardl_find(t, fields->name) < 0)
			return err_set(p->in.err, ENOTSUP, "PETSIRD schema: %.60s has no field \"%s\"", t->name, fields->name);
	return 0;
}

static int read_field(struct petsird *p, const struct yardl_type *t, const struct petsird_field *f, void *to)
{
	int rc = 0;

	if (f->read)
		return f->read(p, t);
	if (!f->store && !f->of)
		return yardl_skip(&p->in, t);
	if (!f->needed)
		rc = yardl_read_choice(&p->in, t, &t);
	if (rc < 0 || !t)
		return rc;
	to = to ? (char *)to + f->at : NULL;
	return f->store ? f->store(p, t, to) : petsird_read_record(p, t, f->of, to);
}

int petsird_read_record(struct petsird *p, const struct yardl_type *t, const struct petsird_field *fields, void *to)
{
	int rc = petsird_check_fields(p, t, fields);

	for (size_t i = 0; rc == 0 && i < t->n; i++) {
		const struct petsird_field *f = fields;

		while (f->name && strcmp(f->name, t->names[i]) != 0)
			f++;
		rc = f->name ? read_field(p, t->of[i], f, to) : yardl_skip(&p->in, t->of[i]);
	}
	return rc;
}

int petsird_store_float(struct petsird *p, const struct yardl_type *t, void *to)
{
	return yardl_read_float(&p->in, t, to);
}

int petsird_read_pairs(struct petsird *p, const struct yardl_type *t,
		       int (*read)(struct petsird *p, const struct yardl_type *t, size_t i, size_t j))
{
	uint64_t rows = 0, columns = 0;
	int rc = yardl_read_choice(&p->in, t, &t);

	if (rc < 0 || !t)
		return rc;
	rc = yardl_read_list(&p->in, t, &rows);
	for (uint64_t i = 0; rc == 0 && i < rows; i++) {
		rc = yardl_read_list(&p->in, t->of[0], &columns);
		for (uint64_t j = 0; rc == 0 && j < columns; j++)
			rc = i < PETSIRD_TYPES_MAX && j <= i ? read(p, t->of[0]->of[0], (size_t)i, (size_t)j)
							     : yardl_skip(&p->in, t->of[0]->of[0]);
	}
	return rc;
}

int petsird_read_floats(struct petsird *p, const struct yardl_type *t, float **ret, size_t *ret_n)
{
	uint64_t n = 0;
	float *values;
	int rc = yardl_read_list(&p->in, t, &n);

	if (rc < 0)
		return rc;
	values = malloc((size_t)n * sizeof(*values) + 1); /* n is limited by the size of the file */
	if (!values)
		return err_set(p->in.err, ENOMEM, "no memory for %llu numbers", (unsigned long long)n);
	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		double value = 0;

		rc = yardl_read_float(&p->in, t->of[0], &value);
		values[i] = (float)value;
		if (rc == 0 && !isfinite(values[i]))
			rc = yardl_fail(&p->in, EBADMSG, "number %llu of a list is not finite", (unsigned long long)i + 1);
	}
	if (rc < 0) {
		free(values);
		return rc;
	}
	*ret = values;
	*ret_n = (size_t)n;
	return 0;
}

/* ---- bin edges ---- */

struct edges {
	float *values;
	size_t n;
};

static int check_ascending(struct petsird *p, const struct edges *e, const char *what, size_t most)
{
	if (e->n < 2 || e->n - 1 > most)
		return yardl_fail(&p->in, EBADMSG, "%s: %zu edges; allowed: 2 to %zu", what, e->n, most + 1);
	for (size_t i = 1; i < e->n; i++)
		if (!(e->values[i] > e->values[i - 1]))
			return yardl_fail(&p->in, EBADMSG, "%s: edge %zu (%g) is not above edge %zu (%g)", what, i + 1,
					  (double)e->values[i], i, (double)e->values[i - 1]);
	return 0;
}

static int store_edges(struct petsird *p, const struct yardl_type *t, void *to)
{
	struct edges *e = to;

	free(e->values);
	e->values = NULL;
	return petsird_read_floats(p, t, &e->values, &e->n);
}

/* BinEdges: a record with the list `edges`. */
static int read_edges(struct petsird *p, const struct yardl_type *t, struct edges *ret)
{
	static const struct petsird_field fields[] = {{"edges", .store = store_edges, .needed = true}, {0}};
	struct edges e = {0};
	int rc = petsird_read_record(p, t, fields, &e);

	if (rc < 0)
		free(e.values);
	else
		*ret = e;
	return rc;
}

static int read_tof_pair(struct petsird *p, const struct yardl_type *t, size_t i, size_t j)
{
	struct petsird_tof *tof = &p->header.tof[i][j];
	struct edges e = {0};
	int rc = read_edges(p, t, &e);

	if (rc == 0 && e.n > 0) /* a pair of types that is not in coincidence may have none */
		rc = check_ascending(p, &e, "TOF bins", PETSIRD_TOF_MAX);
	if (rc < 0 || tof->edges) {
		free(e.values);
		return rc < 0 ? rc : yardl_fail(&p->in, EBADMSG, "TOF bins are there twice");
	}
	tof->edges = e.values;
	tof->n = e.n > 0 ? e.n - 1 : 0;
	return 0;
}

static int read_tof(struct petsird *p, const struct yardl_type *t)
{
	return petsird_read_pairs(p, t, read_tof_pair);
}

static int read_resolution_pair(struct petsird *p, const struct yardl_type *t, size_t i, size_t j)
{
	return yardl_read_float(&p->in, t, &p->header.tof[i][j].resolution);
}

static int read_resolution(struct petsird *p, const struct yardl_type *t)
{
	return petsird_read_pairs(p, t, read_resolution_pair);
}

/* Note the energy window of a type of modules; of another one than the others there is none. */
static void take_window(struct petsird_header *h, bool first, double low, double high)
{
	bool same = first || (low == h->energy_low && high == h->energy_high);

	h->energy_low = same ? low : 0;
	h->energy_high = same ? high : 0;
}

static int read_energies(struct petsird *p, const struct yardl_type *t)
{
	uint64_t n = 0;
	int rc = yardl_read_list(&p->in, t, &n);

	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		struct edges e = {0};

		rc = read_edges(p, t->of[0], &e);
		if (rc == 0)
			rc = check_ascending(p, &e, "energy bins", PETSIRD_ENERGIES_MAX);
		if (rc == 0 && p->n_energies < PETSIRD_TYPES_MAX)
			p->energies[p->n_energies++] = e.n - 1;
		if (rc == 0)
			take_window(&p->header, i == 0, (double)e.values[0], (double)e.values[e.n - 1]);
		free(e.values);
	}
	return rc;
}

/* A resolution is only for who needs it: another type, or a value that is no number, does not make the file invalid. */
static int read_energy_resolution(struct petsird *p, const struct yardl_type *t)
{
	double *all = &p->header.energy_resolution, value = 0;
	uint64_t n = 0;
	int rc;

	if (t->kind != YARDL_VECTOR || t->of[0]->kind != YARDL_FIXED)
		return yardl_skip(&p->in, t);
	rc = yardl_read_list(&p->in, t, &n);
	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		rc = yardl_read_float(&p->in, t->of[0], &value);
		*all = rc == 0 && isfinite(value) && (i == 0 || value == *all) ? value : 0;
	}
	return rc;
}

/* ---- the scanner ---- */

static int store_model(struct petsird *p, const struct yardl_type *t, void *to)
{
	return yardl_read_text(&p->in, t, to, sizeof(p->header.model));
}

static int read_alignment(struct petsird *p, const struct yardl_type *t)
{
	static const struct petsird_field fields[] = {{"matrix", NULL, true}, {0}};
	uint64_t size[YARDL_RANK_MAX] = {0};
	int rank = 0, rc = yardl_read_choice(&p->in, t, &t);

	if (rc < 0 || !t)
		return rc;
	rc = petsird_check_fields(p, t, fields);
	if (rc == 0 && t->n != 1)
		return yardl_skip(&p->in, t);
	if (rc == 0)
		rc = yardl_read_shape(&p->in, t->of[0], &rank, size);
	if (rc == 0 && (rank != 2 || size[0] != 3 || size[1] != 4))
		rc = yardl_fail(&p->in, EBADMSG, "a transform that is not a matrix of 3 x 4 numbers");
	for (int i = 0; rc == 0 && i < 12; i++)
		rc = yardl_read_float(&p->in, t->of[0]->of[0], &p->header.alignment[i / 4][i % 4]);
	p->header.aligned = rc == 0;
	return rc;
}

/* The field must be there, but may be null. */
static int read_efficiencies(struct petsird *p, const struct yardl_type *t)
{
	int rc = yardl_read_choice(&p->in, t, &t);

	return rc == 0 && t ? petsird_read_record(p, t, petsird_efficiencies, NULL) : rc;
}

static const struct petsird_field scanner[] = {
	{"modelName", .store = store_model, .at = offsetof(struct petsird_header, model)},
	{"scannerGeometry", .of = petsird_geometry, .needed = true},
	{"gantryAlignment", read_alignment},
	{"tofBinEdges", read_tof, true},
	{"tofResolution", read_resolution, true},
	{"eventEnergyBinEdges", read_energies, true},
	{"energyResolutionAt511", read_energy_resolution},
	{"detectionEfficiencies", read_efficiencies, true},
	{0},
};
static const struct petsird_field header[] = {
	{"scanner", .of = scanner, .needed = true},
	{"exam", .of = petsird_exam, .at = offsetof(struct petsird_header, exam)},
	{0},
};

/* Check that the parts of the header agree about the number of types, and number the detectors. */
static int check_header(struct petsird *p, struct err *err)
{
	struct petsird_header *h = &p->header;

	if (p->n_energies != h->n_types)
		return err_set(err, EBADMSG, "energy bins of %zu types of modules; the geometry has %zu types", p->n_energies,
			       h->n_types);
	for (size_t i = 0; i < h->n_types; i++) {
		struct petsird_modules *m = &h->type[i];

		m->energies = p->energies[i];
		if (m->modules * m->elements * m->energies > UINT32_MAX)
			return err_set(err, ENOTSUP, "%zu modules of %zu detectors and %zu energy bins", m->modules, m->elements,
				       m->energies);
		for (size_t j = 0; j <= i; j++)
			if (!h->tof[i][j].edges)
				return err_set(err, EBADMSG, "no TOF bins of module types %zu and %zu", i, j);
	}
	return petsird_check_efficiencies(p, err);
}

static int open_types(struct petsird *p, const struct yardl_type **ret_header, struct err *err)
{
	char *text = NULL;
	size_t size = 0;
	int rc = yardl_read_start(&p->in, &text, &size);

	if (rc < 0)
		return rc;
	rc = yardl_schema_parse(text, size, &p->schema, err);
	free(text);
	if (rc == 0)
		rc = yardl_step(&p->schema, "PETSIRD", 0, "header", false, ret_header, err);
	if (rc == 0)
		rc = yardl_step(&p->schema, "PETSIRD", 1, "timeBlocks", true, &p->block, err);
	return rc == 0 ? petsird_check_blocks(p) : rc;
}

int petsird_open(const char *path, struct petsird **ret, struct err *err)
{
	struct petsird *p = calloc(1, sizeof(*p));
	const struct yardl_type *type = NULL;
	int rc;

	if (!p)
		return err_set(err, ENOMEM, "no memory to read %s", path);
	p->header.exam.start = p->header.exam.injected = NAN;
	p->header.calibration = 1;
	for (size_t i = 0; i < PETSIRD_TYPES_MAX * PETSIRD_TYPES_MAX; i++)
		p->header.tof[i / PETSIRD_TYPES_MAX][i % PETSIRD_TYPES_MAX].resolution = NAN;
	rc = yardl_open(path, &p->in, err);
	p->in.err = err;
	if (rc == 0)
		rc = petsird_plain_create(p, err);
	if (rc == 0)
		rc = open_types(p, &type, err);
	if (rc == 0)
		rc = petsird_read_record(p, type, header, &p->header);
	if (rc == 0)
		rc = check_header(p, err);
	if (rc == 0)
		rc = petsird_make_alive(p, err);
	if (rc < 0) {
		petsird_close(p);
		return rc;
	}
	p->first_block = yardl_position(&p->in);
	*ret = p;
	return 0;
}

struct petsird *petsird_close(struct petsird *p)
{
	if (!p)
		return NULL;
	for (size_t i = 0; i < PETSIRD_TYPES_MAX * PETSIRD_TYPES_MAX; i++)
		free(p->header.tof[i / PETSIRD_TYPES_MAX][i % PETSIRD_TYPES_MAX].edges);
	free(p->header.position);
	free(p->counts.gap);
	petsird_free_alive(p);
	petsird_free_efficiencies(p);
	petsird_plain_free(p);
	yardl_schema_clear(&p->schema);
	yardl_close(&p->in);
	free(p);
	return NULL;
}

const struct petsird_header *petsird_header(const struct petsird *p)
{
	return &p->header;
}

size_t petsird_type_of(const struct petsird_header *h, size_t detector)
{
	size_t type = 0;

	while (type + 1 < h->n_types && detector >= h->type[type + 1].first)
		type++;
	return type;
}

const struct petsird_tof *petsird_tof_of(const struct petsird_header *h, size_t i, size_t j)
{
	return i >= j ? &h->tof[i][j] : &h->tof[j][i];
}
