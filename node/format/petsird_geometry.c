/* SPDX-License-Identifier: Apache-2.0 */
/* petsird_geometry.c - the positions of all detectors from the transforms of modules and elements. */
#include "node/format/petsird_internal.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

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

static int store_transform(struct petsird *p, const struct yardl_type *t, void *to)
{
	return read_numbers(p, t, to, 3, 4);
}

static int store_place(struct petsird *p, const struct yardl_type *t, void *to)
{
	return read_numbers(p, t, to, 1, 3);
}

static int store_transforms(struct petsird *p, const struct yardl_type *t, void *to)
{
	static const struct petsird_field matrix[] = {{"matrix", .store = store_transform, .needed = true}, {0}};
	struct transforms *ret = to;
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
		rc = petsird_read_record(p, t->of[0], matrix, ret->matrix[i]);
	return rc;
}

/* ---- ReplicatedDetectorModule { object { detectingElements { object { shape { corners } } transforms } } transforms } ---- */

static int store_corners(struct petsird *p, const struct yardl_type *t, void *to)
{
	static const struct petsird_field place[] = {{"c", .store = store_place, .needed = true}, {0}};
	struct modules *ret = to;
	uint64_t n = 0;
	int rc = yardl_read_list(&p->in, t, &n);

	if (rc == 0 && n != CORNERS)
		rc = yardl_fail(&p->in, EBADMSG, "a box of %llu corners", (unsigned long long)n);
	for (int i = 0; i < 3; i++)
		ret->centre[i] = 0;
	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		double c[3];

		rc = petsird_read_record(p, t->of[0], place, c);
		for (int k = 0; rc == 0 && k < 3; k++)
			ret->centre[k] += c[k] / CORNERS;
	}
	ret->has_centre = rc == 0;
	return rc;
}

static const struct petsird_field shape[] = {{"corners", .store = store_corners, .needed = true}, {0}};
static const struct petsird_field element[] = {{"shape", .of = shape, .needed = true}, {0}};
static const struct petsird_field all_elements[] = {
	{"object", .of = element, .needed = true},
	{"transforms", .store = store_transforms, .needed = true, .at = offsetof(struct modules, elements)},
	{0}};
static const struct petsird_field module[] = {{"detectingElements", .of = all_elements, .needed = true}, {0}};
static const struct petsird_field replicated[] = {
	{"object", .of = module, .needed = true},
	{"transforms", .store = store_transforms, .needed = true, .at = offsetof(struct modules, modules)},
	{0}};

/* ---- positions ---- */

static void transform_point(const double m[3][4], const double c[3], double ret[3])
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

		transform_point(m->elements.matrix[i % elements], m->centre, at);
		transform_point(m->modules.matrix[i / elements], at, moved);
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

		rc = petsird_read_record(p, t->of[0], replicated, &m);
		if (rc == 0)
			rc = add_modules(p, &m);
		free(m.elements.matrix);
		free(m.modules.matrix);
	}
	return rc;
}

const struct petsird_field petsird_geometry[] = {{"replicatedModules", read_modules, true}, {0}};
