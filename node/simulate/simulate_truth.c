/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_truth.c - write truth.json: a description of the simulation, to check reconstructions. center_mm is in the axes of the
 * scan; column and row are the position projected along z onto the stored image, in detector bins, 0 at the centre of the first;
 * patient_mm is in LPS with the origin of the scan as origin (docs/geometry.md).
 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "dicom/core/dataset.h"
#include "node/base/json_file.h"
#include "node/config/kind.h"
#include "node/simulate/simulate.h"

#define PHANTOM_TURN 30.0 /* degrees, of the axes of phantom.json against those of the scan */
#define PHANTOM_X 80.0	  /* mm, of their origin */

static const char *role_name(enum shape_role role)
{
	static const char *const names[] = {
		[ROLE_BODY] = "body", [ROLE_BEAD] = "bead", [ROLE_LESION] = "lesion", [ROLE_METAL] = "metal"};

	return names[role];
}

static const char *kind_name(enum shape_kind kind)
{
	switch (kind) {
	case SHAPE_ELLIPSOID:
		return "ellipsoid";
	case SHAPE_BOX:
		return "box";
	case SHAPE_CYLINDER_Z:
		return "cylinder";
	case SHAPE_BREAST:
		return "breast";
	}
	return "unknown";
}

static json_t *shape_json(const struct simulation *s, const struct shape *shape)
{
	double axes[3][3], at[3], u = (shape->c[0] - s->o.window[0]) / s->pitch - 0.5;
	double v = (shape->c[1] - s->o.window[1]) / s->pitch + s->n_v / 2.0 - 0.5;

	simulate_axes(s, axes);
	for (int c = 0; c < 3; c++)
		at[c] = shape->c[0] * axes[0][c] + shape->c[1] * axes[1][c] + shape->c[2] * axes[2][c];
	return json_pack("{s:s, s:s, s:[f,f,f], s:[f,f,f], s:f, s:f, s:f, s:[f,f,f]}", "role", role_name(shape->role), "kind",
			 kind_name(shape->kind), "center_mm", shape->c[0], shape->c[1], shape->c[2], "half_axes_mm", shape->r[0],
			 shape->r[1], shape->r[2], "mu_per_mm", shape->mu, "column", s->columns_toward_chest ? s->n_u - 1 - u : u,
			 "row", s->rows_toward_minus_y ? s->n_v - 1 - v : v, "patient_mm", at[0], at[1], at[2]);
}

/* What a breast of tissue is made from, so that it can be made again, and the digest of its voxels. */
static json_t *breast_json(const struct simulation *s)
{
	const struct grid *g = &s->voxels->grid;
	char digest[65];

	dicom_sha256(s->voxels->voxel, grid_size(g), digest);
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:i, s:[f, f], s:[f, f, f], s:s}", "glandular_percent", s->truth.glandular,
			 "rim_mm", s->truth.rim_width, "rim_cut", s->truth.rim_cut, "mean_line", s->truth.line, "asked_percent",
			 s->o.glandular, "clips", s->o.clips, "room_mm", s->n_u * s->pitch, s->n_v * s->pitch, "origin_mm",
			 s->o.window[0], s->o.window[1], s->o.profile->support, "digest", digest);
}

static json_t *truth_json(const struct simulation *s)
{
	const struct simulate_options *o = &s->o;
	char side[2] = {o->side, '\0'};
	json_t *shapes = json_array(), *angles = json_array(), *exposures = json_array();
	json_t *root =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:I, s:b, s:s, s:i, s:i, s:s, s:s, s:s}", "kind",
			  kind_dbt.name, "system", o->profile->name, "phantom", s->phantom->name, "side", side, "view", o->view,
			  "gantry_degrees", strcmp(o->view, "MLO") == 0 ? o->gantry : 0.0, "thickness_mm", o->thickness,
			  "support_mm", o->profile->support, "pixel_mm", s->pitch, "i0", s->i0, "seed", (json_int_t)o->seed,
			  "noise", o->noise, "format", o->multi ? "bp" : "mg", "columns", s->n_u, "rows", s->n_v, "study",
			  s->study, "series", s->series, "frame_of_reference", s->frame_of_reference);

	for (int i = 0; i < o->views; i++) {
		json_array_append_new(angles, json_real(s->angle[i]));
		json_array_append_new(exposures, json_real(s->exposure[i]));
	}
	if (o->open_distance || o->heel > 0)
		json_object_set_new(root, "open_field",
				    json_pack("{s:b, s:f}", "distance", o->open_distance, "heel_percent", o->heel));
	for (size_t i = 0; i < s->phantom->n; i++)
		json_array_append_new(shapes, shape_json(s, &s->phantom->shapes[i]));
	if (o->breast)
		json_object_set_new(root, "breast", breast_json(s));
	if (o->scatter > 0)
		json_object_set_new(root, "scatter", json_real(o->scatter));
	json_object_set_new(root, "angles_degrees", angles);
	json_object_set_new(root, "relative_exposure", exposures);
	json_object_set_new(root, "shapes", shapes);
	return root;
}

/* Describe the beads as the maker of a phantom would: in axes of the phantom, which are turned and shifted against those of the
 * scan, with heights above its bottom. */
static json_t *phantom_json(const struct simulation *s)
{
	double c = cos(PHANTOM_TURN * M_PI / 180), n = sin(PHANTOM_TURN * M_PI / 180), diameter = 0;
	json_t *beads = json_array();

	for (size_t i = 0; i < s->phantom->n; i++) {
		const struct shape *shape = &s->phantom->shapes[i];
		double x = shape->c[0] - PHANTOM_X, y = shape->c[1];

		if (shape->role != ROLE_BEAD)
			continue;
		diameter = 2 * shape->r[0];
		json_array_append_new(beads,
				      json_pack("[f, f, f]", c * x + n * y, c * y - n * x, shape->c[2] - s->o.profile->support));
	}
	return json_pack("{s:f, s:o}", "diameter_mm", diameter, "beads_mm", beads);
}

int simulate_truth(const struct simulation *s, const char *folder, struct err *err)
{
	int rc = json_file_write(truth_json(s), folder, "truth.json", err);

	if (rc == 0 && s->o.phantom == PHANTOM_CALIBRATION && !s->voxels)
		rc = json_file_write(phantom_json(s), folder, "phantom.json", err);
	return rc;
}
