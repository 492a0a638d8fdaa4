/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_pet_truth.c - write truth.json: a description of the simulation, to check reconstructions. center_mm is in the axes of
 * recon/pet/michelogram.h; patient_mm is in LPS with the scanner's centre as origin.
 */
#include <jansson.h>

#include "node/base/json_file.h"
#include "node/config/kind.h"
#include "node/simulate/simulate_pet.h"

static json_t *shape_json(const struct simulate_pet *s, const struct shape *shape, const char *unit)
{
	double at[3];

	for (int c = 0; c < 3; c++)
		at[c] = shape->c[0] * s->axis[0][c] + shape->c[1] * s->axis[1][c] + shape->c[2] * s->axis[2][c];
	return json_pack("{s:s, s:s, s:[f,f,f], s:[f,f,f], s:f, s:[f,f,f]}", "role", shape->role == ROLE_BODY ? "body" : "lesion",
			 "kind", shape->kind == SHAPE_ELLIPSOID ? "ellipsoid" : "cylinder", "center_mm", shape->c[0], shape->c[1],
			 shape->c[2], "half_axes_mm", shape->r[0], shape->r[1], shape->r[2], unit, shape->mu, "patient_mm", at[0],
			 at[1], at[2]);
}

static json_t *phantom_json(const struct simulate_pet *s, const struct phantom *p, const char *unit)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->n; i++)
		json_array_append_new(list, shape_json(s, &p->shapes[i], unit));
	return list;
}

/* Return the TOF bins; null: no time of flight. */
static json_t *tof_json(const struct simulate_pet *s)
{
	const struct scan_tof *tof = &s->m.tof;

	if (tof->n == 0)
		return json_null();
	return json_pack("{s:i, s:f, s:f, s:f, s:f}", "bins", tof->n, "width_ps", s->o.tof_width, "resolution_ps",
			 s->o.tof_resolution, "width_mm", tof->width, "sigma_mm", tof->sigma);
}

/* Return the beds; null: one scan. */
static json_t *beds_json(const struct simulate_pet *s)
{
	json_t *all = s->o.beds > 0 ? json_array() : json_null();

	for (int b = 0; b < s->o.beds; b++)
		json_array_append_new(all, json_pack("{s:f, s:f, s:f, s:f}", "along_mm", simulate_pet_bed_at(s, b),
						     "patient_z_mm", simulate_pet_bed_at(s, b) * s->axis[2][2], "start_s",
						     SIMULATE_PET_BED * b, "duration_s", SIMULATE_PET_DURATION));
	return all;
}

static json_t *truth_json(const struct simulate_pet *s, const struct simulate_pet_report *known)
{
	const struct simulate_pet_options *o = &s->o;
	json_t *root =
		json_pack("{s:s, s:s, s:s, s:f, s:s, s:I, s:b, s:b, s:i, s:i, s:i, s:I, s:f, s:f, s:f, s:f, s:f}", "kind",
			  kind_pet.name, "scanner", o->scanner->name, "phantom", pet_phantom_name(o->phantom), "size", s->size,
			  "position", o->position, "seed", (json_int_t)o->seed, "noise", o->noise, "attenuation", o->attenuation,
			  "planes", s->scan->n_u, "angles", s->m.n_angles, "radial", s->m.n_radial, "rays",
			  (json_int_t)known->rays, "expected_counts", o->counts, "expected_randoms", o->randoms * o->counts,
			  "counts", known->counts, "background", known->background, "scale", known->scale);
	json_t *rest = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:s, s:s, s:s, s:s, s:s}", "calibration", known->calibration,
				 "duration_s", SIMULATE_PET_DURATION, "half_life_s", SIMULATE_PET_HALF_LIFE, "becquerel",
				 s->becquerel, "dose_becquerel", s->dose, "weight_kg", s->weight, "date", SIMULATE_PET_DATE,
				 "injected", SIMULATE_PET_INJECTED, "start", SIMULATE_PET_START, "study", s->study,
				 "frame_of_reference", s->frame_of_reference);

	if (!root || !rest || json_object_update(root, rest) < 0) {
		json_decref(root);
		json_decref(rest);
		return NULL;
	}
	json_decref(rest);
	json_object_set_new(root, "tof", tof_json(s));
	json_object_set_new(root, "beds", beds_json(s));
	json_object_set_new(root, "shapes", phantom_json(s, s->phantom->activity, "becquerel_per_ml"));
	json_object_set_new(root, "attenuation_shapes", phantom_json(s, s->phantom->attenuation, "mu_per_mm"));
	return root;
}

int simulate_pet_truth(const struct simulate_pet *s, const struct simulate_pet_report *known, const char *folder, struct err *err)
{
	return json_file_write(truth_json(s, known), folder, "truth.json", err);
}
