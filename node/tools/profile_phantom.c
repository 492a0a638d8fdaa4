/* SPDX-License-Identifier: Apache-2.0 */
/* profile_phantom.c - read the description of a bead phantom. */
#include "node/tools/profile_phantom.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "node/base/text_file.h"

#define BYTES_MAX (1u << 20)
#define PLACE_MAX 500.0 /* mm */
#define HEIGHT_MAX 200.0
#define APART_LEAST 5.0 /* mm between layers: they are told apart by a start geometry with errors */

static int read_number(const json_t *value, double lo, double hi, const char *what, double *ret, struct err *err)
{
	if (!json_is_number(value))
		return err_set(err, EBADMSG, "%s is not a number", what);
	*ret = json_number_value(value);
	if (!(*ret >= lo && *ret <= hi))
		return err_set(err, EBADMSG, "%s is %g mm; allowed: %g to %g", what, *ret, lo, hi);
	return 0;
}

static int read_bead(const json_t *from, size_t i, struct profile_phantom *p, struct err *err)
{
	static const char axis[] = "xyz";
	size_t n = json_array_size(from);
	int rc = 0;

	if (n != 2 && n != 3)
		return err_set(err, EBADMSG, "beads_mm: bead %zu is not a list of x, y, z", i + 1);
	if (n == 2)
		p->knowledge = BEADS_UNKNOWN;
	for (size_t a = 0; rc == 0 && a < n; a++) {
		char what[60];

		snprintf(what, sizeof(what), "beads_mm: %c of bead %zu", axis[a], i + 1);
		rc = read_number(json_array_get(from, a), a == 2 ? 0 : -PLACE_MAX, a == 2 ? HEIGHT_MAX : PLACE_MAX, what,
				 &p->at[i][a], err);
	}
	return rc;
}

static int read_beads(const json_t *list, struct profile_phantom *p, struct err *err)
{
	size_t n = json_array_size(list);
	int rc = 0;

	if (n < 3 || n > PHANTOM_BEADS_MAX)
		return err_set(err, EBADMSG, "beads_mm has %zu beads; allowed: 3 to %d", n, PHANTOM_BEADS_MAX);
	p->knowledge = BEADS_KNOWN;
	p->n_beads = (int)n;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = read_bead(json_array_get(list, i), i, p, err);
	return rc;
}

static int read_layers(const json_t *list, struct profile_phantom *p, struct err *err)
{
	size_t n = json_array_size(list);
	int rc = 0;

	if (n < 2 || n > PHANTOM_LAYERS_MAX)
		return err_set(err, EBADMSG, "layers_mm has %zu layers; allowed: 2 to %d", n, PHANTOM_LAYERS_MAX);
	p->knowledge = BEADS_IN_LAYERS;
	p->n_layers = (int)n;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		rc = read_number(json_array_get(list, i), 0, HEIGHT_MAX, "layers_mm: the height of a layer", &p->layer[i], err);
		if (rc == 0 && i > 0 && !(p->layer[i] >= p->layer[i - 1] + APART_LEAST))
			rc = err_set(err, EBADMSG, "layers_mm: %g after %g; allowed: ascending heights, %g mm apart or more",
				     p->layer[i], p->layer[i - 1], APART_LEAST);
	}
	return rc;
}

static int read_root(const json_t *root, struct profile_phantom *p, struct err *err)
{
	const json_t *beads = json_object_get(root, "beads_mm"), *layers = json_object_get(root, "layers_mm");
	int rc = read_number(json_object_get(root, "diameter_mm"), 0.2, 20, "diameter_mm, the diameter of the beads,",
			     &p->diameter, err);

	if (rc < 0)
		return rc;
	if (beads && layers)
		return err_set(err, EBADMSG, "both beads_mm and layers_mm are given; allowed: one of them");
	p->knowledge = BEADS_UNKNOWN;
	return beads ? read_beads(beads, p, err) : layers ? read_layers(layers, p, err) : 0;
}

int profile_phantom_parse(const char *bytes, size_t size, struct profile_phantom *ret_phantom, struct err *err)
{
	struct profile_phantom p = {0};
	json_error_t why;
	json_t *root = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &why);
	int rc = root ? read_root(root, &p, err) : err_set(err, EBADMSG, "line %d: %s", why.line, why.text);

	if (rc == 0)
		*ret_phantom = p;
	json_decref(root);
	return rc;
}

int profile_phantom_read(const char *path, struct profile_phantom *ret_phantom, struct err *err)
{
	char *text = NULL;
	size_t size;
	int rc = text_file_read(path, BYTES_MAX, "description of a phantom", &text, &size, err);

	if (rc == 0)
		rc = profile_phantom_parse(text, size, ret_phantom, err);
	free(text);
	return rc;
}
