/* SPDX-License-Identifier: Apache-2.0 */
/* petsird_geometry.c - the positions of all detectors from the transforms of modules and elements. */
#include "node/format/petsird_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define CORNERS 8
#define LENGTH_MAX 1e5 /* mm: a coordinate */

struct transforms {
	size_t n;
	double (*matrix)[3][4];
};

/* What has been read of the modules of one type. */
struct modules {
	struct transforms elements, modules;
	double centre[3]; /* of an element, in its own coordinates */
	bool has_centre;
};

/* The reading of a field of a type's modules: the records below have fields of the same names, so each is read by hand. */
static int read_field(struct petsird *p, const struct yardl_type *t, const char *first, const char *second,
		      int (*read_first)(struct petsird *, const struct yardl_type *, struct modules *),
		      int (*read_second)(struct petsird *, const struct yardl_type *, struct modules *), struct modules *ret)
{
	const struct petsird_field fields[] = {{first, NULL, true}, {second, NULL, true}};
	int rc = petsird_check_fields(p, t, fields, second ? 2 : 1), at[2];

	if (rc < 0)
		return rc;
	at[0] = yardl_find(t, first);
	at[1] = second ? yardl_find(t, second) : -1;
	for (size_t i = 0; rc == 0 && i < t->n; i++)
		rc = (int)i == at[0]   ? read_first(p, t->of[i], ret)
		     : (int)i == at[1] ? read_second(p, t->of[i], ret)
				       : yardl_skip(&p->in, t->of[i]);
	return rc;
}

static int read_numbers(struct petsird *p, const struct yardl_type *t, double *ret, uint64_t rows, uint64_t columns)
{
	uint64_t size[YARDL_RANK_MAX] = {0}, n = 1;
	int rank = 0, rc = yardl_read_shape(&p->in, t, &rank, size);

	if (rc < 0)
		return rc;
	if (rank != (rows > 1 ? 2 : 1) || size[0] != (rows > 1 ? rows : columns) || (rows > 1 && size[1] != columns))
		return yardl_fail(&p->in, EBADMSG, "a matrix that does not have %llu x %llu numbers", (unsigned long long)rows,
				  (unsigned long long)columns);
	n = rows * columns;
	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		rc = yardl_read_float(&p->in, t->of[0], &ret[i]);
		if (rc == 0 && !(fabs(ret[i]) <= LENGTH_MAX)) /* refuses NaN, too */
			rc = yardl_fail(&p->in, EBADMSG, "a coordinate of %g", ret[i]);
	}
	return rc;
}

/* Read the only needed field of a record: a matrix of numbers. */
static int read_matrix_of(struct petsird *p, const struct yardl_type *t, const char *field, double *ret, uint64_t rows,
			  uint64_t columns)
{
	const struct petsird_field fields[] = {{field, NULL, true}};
	int rc = petsird_check_fields(p, t, fields, 1), at = rc == 0 ? yardl_find(t, field) : 0;

	for (size_t i = 0; rc == 0 && i < t->n; i++)
		rc = (int)i == at ? read_numbers(p, t->of[i], ret, rows, columns) : yardl_skip(&p->in, t->of[i]);
	return rc;
}

static int read_transforms(struct petsird *p, const struct yardl_type *t, struct transforms *ret)
{
	uint64_t n = 0;
	int rc = yardl_read_list(&p->in, t, &n);

	if (rc < 0)
		return rc;
	if (n < 1 || n > PETSIRD_DETECTORS_MAX)
		return yardl_fail(&p->in, EBADMSG, "%llu transforms; allowed: 1 to %zu", (unsigned long long)n,
				  PETSIRD_DETECTORS_MAX);
	free(ret->matrix);
	ret->n = (size_t)n;
	ret->matrix = malloc(ret->n * sizeof(*ret->matrix));
	if (!ret->matrix)
		return err_set(p->in.err, ENOMEM, "no memory for %zu transforms", ret->n);
	for (size_t i = 0; rc == 0 && i < ret->n; i++)
		rc = read_matrix_of(p, t->of[0], "matrix", ret->matrix[i][0], 3, 4);
	return rc;
}

static int read_element_transforms(struct petsird *p, const struct yardl_type *t, struct modules *ret)
{
	return read_transforms(p, t, &ret->elements);
}

static int read_module_transforms(struct petsird *p, const struct yardl_type *t, struct modules *ret)
{
	return read_transforms(p, t, &ret->modules);
}

/* ---- ReplicatedDetectorModule { object { detectingElements { object { shape { corners } } transforms } } transforms } ---- */

static int read_corners(struct petsird *p, const struct yardl_type *t, struct modules *ret)
{
	uint64_t n = 0;
	int rc = yardl_read_list(&p->in, t, &n);

	if (rc == 0 && n != CORNERS)
		rc = yardl_fail(&p->in, EBADMSG, "a box of %llu corners", (unsigned long long)n);
	for (int i = 0; i < 3; i++)
		ret->centre[i] = 0;
	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		double c[3];

		rc = read_matrix_of(p, t->of[0], "c", c, 1, 3);
		for (int k = 0; rc == 0 && k < 3; k++)
			ret->centre[k] += c[k] / CORNERS;
	}
	ret->has_centre = rc == 0;
	return rc;
}

static int read_shape(struct petsird *p, const struct yardl_type *t, struct modules *ret)
{
	return read_field(p, t, "corners", NULL, read_corners, NULL, ret);
}

static int read_element(struct petsird *p, const struct yardl_type *t, struct modules *ret)
{
	return read_field(p, t, "shape", NULL, read_shape, NULL, ret);
}

static int read_elements(struct petsird *p, const struct yardl_type *t, struct modules *ret)
{
	return read_field(p, t, "object", "transforms", read_element, read_element_transforms, ret);
}

static int read_module(struct petsird *p, const struct yardl_type *t, struct modules *ret)
{
	return read_field(p, t, "detectingElements", NULL, read_elements, NULL, ret);
}

/* ---- positions ---- */

static void transform(const double m[3][4], const double c[3], double ret[3])
{
	for (int i = 0; i < 3; i++)
		ret[i] = m[i][0] * c[0] + m[i][1] * c[1] + m[i][2] * c[2] + m[i][3];
}

/* Append the detectors of one type. */
static int add_modules(struct petsird *p, const struct modules *m)
{
	struct petsird_header *h = &p->header;
	size_t elements = m->elements.n, modules = m->modules.n;
	float(*position)[3];

	if (h->n_types == PETSIRD_TYPES_MAX)
		return yardl_fail(&p->in, ENOTSUP, "more than %d types of modules", PETSIRD_TYPES_MAX);
	if (modules > PETSIRD_DETECTORS_MAX / elements || modules * elements > PETSIRD_DETECTORS_MAX - h->n_detectors)
		return yardl_fail(&p->in, ENOTSUP, "%zu modules of %zu detectors; supported: %zu detectors", modules, elements,
				  PETSIRD_DETECTORS_MAX);
	position = realloc(h->position, (h->n_detectors + modules * elements) * sizeof(*position));
	if (!position)
		return err_set(p->in.err, ENOMEM, "no memory for %zu detectors", modules * elements);
	h->position = position;
	for (size_t i = 0; i < modules * elements; i++) {
		double at[3], moved[3];

		transform(m->elements.matrix[i % elements], m->centre, at);
		transform(m->modules.matrix[i / elements], at, moved);
		for (int k = 0; k < 3; k++)
			position[h->n_detectors + i][k] = (float)moved[k];
	}
	h->type[h->n_types++] = (struct petsird_modules){modules, elements, 1, h->n_detectors};
	h->n_detectors += modules * elements;
	return 0;
}

static int read_modules(struct petsird *p, const struct yardl_type *t)
{
	uint64_t n = 0;
	int rc = yardl_read_list(&p->in, t, &n);

	if (rc == 0 && (n < 1 || p->header.n_types > 0))
		rc = yardl_fail(&p->in, EBADMSG, "a geometry without modules, or with two lists of them");
	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		struct modules m = {0};

		rc = read_field(p, t->of[0], "object", "transforms", read_module, read_module_transforms, &m);
		if (rc == 0)
			rc = add_modules(p, &m);
		free(m.elements.matrix);
		free(m.modules.matrix);
	}
	return rc;
}

int petsird_read_geometry(struct petsird *p, const struct yardl_type *t)
{
	static const struct petsird_field fields[] = {{"replicatedModules", read_modules, true}};

	return petsird_read_record(p, t, fields, COUNT(fields));
}
