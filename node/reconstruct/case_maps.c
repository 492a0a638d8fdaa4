/* SPDX-License-Identifier: Apache-2.0 */
/* case_maps.c - the maps that the step "attenuation" is made from: the CT series, or the map from MR, and maps of hardware in
 * the frame of reference of the PET data, and images that a person gave with it.
 *
 * A CT must be of the same patient and frame of reference: a registration of its own is not made. A voxel at P in the patient
 * is at axis_c (P - centre) along axis c of the scanner. Images name neither: their coordinates are taken as those of the
 * patient, or of the scanner. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "node/base/folder.h"
#include "node/base/plural.h"
#include "node/base/thread_pool.h"
#include "node/reconstruct/case_corrections.h"
#include "node/sinogram/fact_origins.h"
#include "recon/pet/activity_outside.h"

#define COARSE 8.0	  /* mm, at most: voxels of an image in which activity outside of a body is more than noise */
#define KVP_TOLERANCE 0.5 /* kV: from an entry of the table */
/* 1/cm: the largest value of a map from MR is between these: of tissue or, with bone, plastic, 0.05 to 0.2 */
#define MAP_LEAST 0.05
#define MAP_MOST 0.4
#define HARDWARE_LEAST 0.005 /* of foam and thin shells, averaged over voxels */

const char *case_maps_word(const struct case_corrections *c)
{
	const struct case_attenuation *a = &c->attenuation;

	if (a->maps.n > 0)
		return a->maps.map[0].name;
	if (c->n_ct == 0 && c->work->decision->n_maps > 0)
		return "map";
	return a->ct ? ct_series_word(a->ct) : a->headers ? ct_series_word(ct_headers_series(a->headers)) : "CT";
}

/* ---- CT series ---- */

static const struct dicom_item *emission_of(const struct sinogram *s)
{
	return dicom_root(s->files[s->part[SINOGRAM_EMISSION].file[0]]);
}

static int check_frame(const struct case_corrections *c, const struct ct_series *ct, struct err *err)
{
	char frame[DICOM_UID_SIZE] = "";

	dicom_get_text(emission_of(c->s), TAG_FRAME_OF_REFERENCE_UID, frame, sizeof(frame), NULL);
	if (!frame[0] || !ct->frame_of_reference[0])
		return err_set(
			err, EBADMSG, "%s: %s no frame of reference %s, so that nothing says where it is in the PET scanner%s",
			ct_series_word(ct), frame[0] ? "it has" : "the PET data have", tag_text(TAG_FRAME_OF_REFERENCE_UID),
			!frame[0] && c->s->origin ? "; --like with one of its images takes that of the exam" : "");
	if (strcmp(frame, ct->frame_of_reference) != 0)
		return err_set(err, EBADMSG,
			       "%s: its frame of reference is %s, that of the PET data %s: it is not of this exam, or the "
			       "PET data do not name it (for files: --like with one of its images, or --attribute "
			       "FrameOfReferenceUID=%s)",
			       ct_series_word(ct), ct->frame_of_reference, frame, ct->frame_of_reference);
	return 0;
}

static bool names_no_patient(const struct sinogram *s)
{
	char facts[FACT_ORIGINS_SIZE];

	fact_origins_read(s, false, facts);
	return strstr(facts, "patient: none\n") != NULL;
}

/* The PET headers and those of the CT must name one patient. */
static int check_patient(const struct case_corrections *c, struct err *err)
{
	const struct ct_series *ct = c->attenuation.ct;
	struct patient_conflict conflict;
	struct patient_identity identity;
	struct patient_set pet = {0};
	char text[PATIENT_TEXT_SIZE], between[60];

	for (size_t i = 0; i < c->s->n_files; i++) {
		if (c->s->patient && c->s->files[i] != c->s->patient)
			continue; /* a person chose another header */
		patient_read(dicom_root(c->s->files[i]), NULL, &identity);
		patient_set_add(&pet, &identity, (int64_t)i);
	}
	if (!patient_sets_conflict(&pet, &ct->patients, &conflict))
		return 0;
	snprintf(between, sizeof(between), "between the PET data and the %s", ct_series_word(ct));
	patient_conflict_text(&conflict, between, text, sizeof(text));
	return err_set(err, EBADMSG, "%s: %s%s", ct_series_word(ct), text,
		       names_no_patient(c->s)
			       ? "; the PET data name no patient: --like with one of its images takes that of the exam"
			       : "");
}

static void say_voltage(struct case_corrections *c, const char *name, double kvp, double used)
{
	if (isnan(kvp))
		case_corrections_say(c, "The %s has no KVP: Hounsfield units were converted as those of %g kV.", name, used);
	else if (fabs(kvp - used) > KVP_TOLERANCE)
		case_corrections_say(c, "The %s has %g kV, which is not in the table: converted as %g kV.", name, kvp, used);
}

static void say_centre(struct case_corrections *c, const char *word)
{
	if (!c->s->has_centre)
		case_corrections_say(
			c,
			"The centre of the scanner, which places the %s, is taken as the origin of the frame of reference: "
			"the data do not contain it.",
			word);
}

/* Return what no map is there of; files may be of anything. */
static const char *missing_hardware(const struct case_corrections *c)
{
	bool has[CT_PARTS] = {false};

	for (const struct ct_series *s = c->attenuation.ct; s; s = s->next)
		has[s->part] = true;
	if (c->work->decision->n_maps > 0 || has[CT_HARDWARE] || (has[CT_TABLE] && has[CT_COILS]))
		return "";
	return has[CT_TABLE] ? ", and coils" : has[CT_COILS] ? ", and the table" : ", the table and coils";
}

static void say_series(struct case_corrections *c, const struct case_map *map)
{
	const struct ct_series *ct = c->attenuation.ct;
	const char *word = ct_series_word(ct);

	if (ct->is_map)
		case_corrections_say(
			c,
			"The attenuation is the scanner's map from MR (%s): what it lacks, as arms beyond its field%s, is not corrected.",
			ct->description, missing_hardware(c));
	else
		say_voltage(c, "CT", ct->kvp, map->curve.kvp);
	say_centre(c, ct->is_map ? "map" : "CT");
	if (ct->contrast[0] && !ct->is_map) /* that of MR does not attenuate, and the map has none */
		case_corrections_say(c, "The CT has contrast agent, whose attenuation at 511 keV is overestimated.");
	if (ct->multi_energy)
		case_corrections_say(c,
				     "The CT was acquired at several energies: its Hounsfield units were converted as those of "
				     "%g kV.",
				     map->curve.kvp);
	if (ct->others > 0)
		case_corrections_say(c, "%zu object%s of the %s not used, without Hounsfield units of a tube voltage: %s.",
				     ct->others, ct->others == 1 ? " was" : "s were", word, ct->values);
	if (ct->localizers + ct->secondaries > 0)
		case_corrections_say(c, "%zu object%s of the %s %s not used: localizers or secondary images.",
				     ct->localizers + ct->secondaries, plural(ct->localizers + ct->secondaries), word,
				     ct->localizers + ct->secondaries == 1 ? "was" : "were");
}

/* Append a series, whose place is that of its headers. */
static int open_one(struct case_corrections *c, const struct ct_series *s, struct err *err)
{
	struct case_attenuation *a = &c->attenuation;
	struct case_map *map = &a->maps.map[a->maps.n];
	size_t said = strlen(a->from);
	int rc = check_frame(c, s, err);

	if (rc < 0)
		return rc;
	snprintf(map->name, sizeof(map->name), "%s", ct_series_word(s));
	map->curve = s->is_map ? mu_curve_of_map() : mu_curve_of(s->kvp);
	map->at = s->at;
	map->step = s->step;
	memcpy(map->source.n, s->n, sizeof(map->source.n));
	a->maps.n++;
	if (s->part == CT_PATIENT) {
		say_series(c, map);
		snprintf(a->from, sizeof(a->from), "%s series %.64s", s->is_map ? "MR map" : "CT", s->series);
	} else {
		case_corrections_say(c, "The %s (%s) is added.", map->name, s->description);
		snprintf(a->from + said, sizeof(a->from) - said, " and %s", map->name);
	}
	return 0;
}

static int open_series(struct case_corrections *c, struct err *err)
{
	struct case_attenuation *a = &c->attenuation;
	int rc = 0;

	if (!a->ct && !a->headers) /* nobody has compared the files with their digests for this result */
		return err_set(err, ESTALE, "the CT was not kept");
	if (!a->ct)
		rc = ct_series_open(a->headers, &a->ct, err);
	if (rc == 0)
		rc = check_patient(c, err);
	for (const struct ct_series *s = a->ct; rc == 0 && s; s = s->next)
		rc = open_one(c, s, err);
	if (rc < 0)
		return rc;
	snprintf(c->from, sizeof(c->from), "ct=%.64s", a->ct->series);
	if (a->ct->is_map)
		snprintf(c->method, sizeof(c->method), "map from MR, factors in the system model");
	else
		snprintf(c->method, sizeof(c->method), "CT as %g kV, factors in the system model", a->maps.map[0].curve.kvp);
	return 0;
}

/* The values of a map of the scanner must be attenuation in its unit. */
static int check_map(const struct ct_series *s, const struct mu_curve *curve, struct err *err)
{
	size_t n = (size_t)s->n[0] * (size_t)s->n[1] * (size_t)s->n[2];
	double mu, least = s->part == CT_PATIENT ? MAP_LEAST : HARDWARE_LEAST;
	int16_t most = INT16_MIN;

	for (size_t i = 0; i < n; i++)
		most = s->hu[i] > most ? s->hu[i] : most;
	mu = 10 * mu_of_hu(curve, most);
	if (mu >= least && mu <= MAP_MOST)
		return 0;
	return err_set(
		err, EBADMSG,
		"the %s has values up to %.4g, which as 10000 times the attenuation is %.4g/cm; of %s it is %g to %g/cm at most: "
		"another unit, or no map",
		ct_series_word(s), 1e4 * mu, mu, s->part == CT_PATIENT ? "a body" : "hardware", least, MAP_MOST);
}

/* ---- files ---- */

static int open_file(struct case_corrections *c, const struct map_request *r, struct map_file *f, struct err *err)
{
	struct case_attenuation *a = &c->attenuation;
	struct case_map *map = &a->maps.map[a->maps.n];
	size_t said = strlen(a->from);
	char name[70];
	int rc = map_file_open(r, f, err);

	file_name_plain(r->path, name, sizeof(name));
	snprintf(map->name, sizeof(map->name), "map %s", name);
	if (rc == 0 && f->of_scanner && c->s->images.of == PET_BEDS)
		rc = err_set(
			err, ENOTSUP,
			"%s: an image in Interfile has its place in the scanner, which is another one in each bed: give it as "
			"NIfTI or MetaImage",
			map->name);
	if (rc < 0)
		return rc;
	map->at = f->corner;
	map->step = f->step;
	map->of_scanner = f->of_scanner;
	map->padding = INT_MIN;
	memcpy(map->source.n, f->n, sizeof(map->source.n));
	snprintf(a->from + said, sizeof(a->from) - said, "%s%s", said ? " and " : "", map->name);
	a->maps.n++;
	return 0;
}

static int open_files(struct case_corrections *c, struct err *err)
{
	const struct case_decision *d = c->work->decision;
	struct case_maps *m = &c->attenuation.maps;
	bool in_patient = false;
	int rc = 0;

	for (int i = 0; rc == 0 && i < d->n_maps; i++) {
		rc = open_file(c, &d->maps[i], &m->file[i], err);
		in_patient = in_patient || !m->file[i].of_scanner;
	}
	if (rc < 0 || d->n_maps == 0)
		return rc;
	if (c->n_ct == 0) {
		snprintf(c->method, sizeof(c->method), "map, factors in the system model");
		if (in_patient)
			say_centre(c, "map");
	}
	snprintf(c->from + strlen(c->from), sizeof(c->from) - strlen(c->from), "%smaps=%d", c->from[0] ? "," : "", d->n_maps);
	return 0;
}

/* Leave out objects of which none can be used, if a person has given maps in their place. */
static void skip_series(struct case_corrections *c)
{
	const struct ct_headers *h = c->attenuation.headers;
	const struct ct_series *s = h && !c->attenuation.ct ? ct_headers_series(h) : NULL;

	if (!s || s->n[0] > 0 || s->others == 0 || c->work->decision->n_maps == 0)
		return;
	case_corrections_say(c, "%zu object%s not used: %s.", s->others, s->others == 1 ? " was" : "s were", s->values);
	c->n_ct = 0;
}

int case_maps_open(struct case_corrections *c, struct err *err)
{
	int rc;

	skip_series(c);
	rc = c->n_ct > 0 ? open_series(c, err) : 0;

	return rc == 0 ? open_files(c, err) : rc;
}

/* Say what a file is taken as: nothing in it can be compared with the exam. */
static void say_file(struct case_corrections *c, const struct case_map *map, const struct map_file *f)
{
	char voltage[60] = "";

	if (f->unit == MAP_HU && f->kvp > 0)
		say_voltage(c, map->name, f->kvp, map->curve.kvp);
	if (f->unit == MAP_HU)
		snprintf(voltage, sizeof(voltage), " of %g kV%s", map->curve.kvp, f->kvp > 0 ? "" : ", which nothing states");
	case_corrections_say(c, "The %s (%s%s%s) %s by its own coordinates in the %s%s, and nothing in it names the exam.",
			     map->name, map_unit_name(f->unit), voltage, f->found ? ", as its values have water" : "",
			     map == c->attenuation.maps.map ? "is placed" : "is added, placed",
			     f->of_scanner ? "scanner" : "patient", f->moved ? " and the matrix that was given with it" : "");
}

static int read_file(struct case_corrections *c, struct case_map *map, struct map_file *f, struct err *err)
{
	int rc = f->hu ? 0 : map_file_read(f, err);

	if (rc < 0 || map->source.hu)
		return rc;
	map->curve = f->unit == MAP_HU ? mu_curve_of(f->kvp) : mu_curve_of_map();
	map->source.hu = f->hu;
	if (c->attenuation.n_computed + c->attenuation.n_cached == 0)
		say_file(c, map, f);
	return 0;
}

/* ---- both ---- */

size_t case_maps_bytes(const struct case_corrections *c)
{
	const struct case_attenuation *a = &c->attenuation;
	size_t bytes = a->ct ? ct_series_bytes(a->ct) : 0;

	for (int i = 0; i < c->work->decision->n_maps; i++)
		bytes += map_file_bytes(&a->maps.file[i]);
	if (a->maps.n > 1) /* each of them, resampled */
		bytes += (size_t)a->maps.n * grid_size(&a->plan.grid) * sizeof(float);
	return bytes;
}

int case_maps_read(struct case_corrections *c, struct err *err)
{
	struct case_attenuation *a = &c->attenuation;
	struct case_maps *m = &a->maps;
	struct case_map *map = m->map;
	int first = m->n - c->work->decision->n_maps, rc = a->ct ? ct_series_read(a->ct, err) : 0;

	for (const struct ct_series *s = a->ct; rc == 0 && s; s = s->next, map++) {
		if (s->is_map)
			rc = check_map(s, &map->curve, err);
		map->source.hu = s->hu;
		map->padding = s->padding;
	}
	for (int i = first; rc == 0 && i < m->n; i++)
		rc = read_file(c, &m->map[i], &m->file[i - first], err);
	return rc;
}

void case_maps_free_values(struct case_attenuation *a)
{
	ct_series_forget(a->ct);
	for (int i = 0; i < CASE_MAPS_MOST; i++)
		map_file_clear(&a->maps.file[i]);
	for (int i = 0; i < a->maps.n; i++)
		a->maps.map[i].source.hu = NULL;
}

/* Place a map of the patient in the axes of the scanner; one of the scanner is there. */
static void place_map(const struct sinogram *s, struct case_map *map)
{
	for (int a = 0; a < 3; a++) {
		double *at = map->source.at[a];

		at[0] = at[1] = at[2] = at[3] = 0;
		for (int p = 0; p < 3; p++) {
			double axis = map->of_scanner ? a == p : s->axis[a][p];

			for (int i = 0; i < 3; i++)
				at[i] += axis * map->step[i][p];
			at[3] += axis * (map->at[p] - (map->of_scanner ? 0 : s->centre[p]));
		}
	}
	for (int i = 0; i < 2; i++)
		map->pixel[i] = sqrt(map->step[i][0] * map->step[i][0] + map->step[i][1] * map->step[i][1] +
				     map->step[i][2] * map->step[i][2]);
}

void case_maps_place(struct case_corrections *c)
{
	for (int i = 0; i < c->attenuation.maps.n; i++)
		place_map(c->s, &c->attenuation.maps.map[i]);
}

/* ---- the image ---- */

void case_maps_say_outside(struct case_corrections *c, double outside)
{
	if (c->attenuation.said_outside || outside <= ACTIVITY_OUTSIDE_DOUBTFUL)
		return;
	case_corrections_say(c, "%.1f %% of the activity is outside of the body of the %s.", 100 * outside, case_maps_word(c));
	c->attenuation.said_outside = true;
}

void case_maps_check_image(struct case_corrections *c, const struct grid *grid, const float *image)
{
	const struct case_attenuation *a = &c->attenuation;
	struct grid coarse = {.n = {0}}, from = *grid;
	float *values;

	from.z_fastest = false;
	for (int i = 0; i < 3; i++) {
		coarse.n[i] = (int)ceil(grid->n[i] * grid->h[i] / COARSE);
		coarse.h[i] = grid->n[i] * grid->h[i] / coarse.n[i];
		coarse.lo[i] = grid->lo[i];
	}
	values = malloc(2 * grid_size(&coarse) * sizeof(*values));
	if (!values)
		return;
	activity_outside_average(&from, image, &coarse, threads_available(), values);
	activity_outside_average(&a->plan.grid, attenuation_map(a->made), &coarse, threads_available(),
				 values + grid_size(&coarse));
	case_maps_say_outside(c, activity_outside(&coarse, values, values + grid_size(&coarse), a->is_short ? a->covered : NULL));
	free(values);
}

json_t *case_maps_details(const struct case_corrections *c)
{
	const struct case_maps *m = &c->attenuation.maps;
	int n = c->work->decision->n_maps, first = m->n - n;
	json_t *all = json_array();

	for (const struct ct_series *s = c->attenuation.ct ? c->attenuation.ct->next : NULL; s; s = s->next)
		json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:b}", "name", ct_part_word(s->part), "series", s->series,
						     "unit", map_unit_name(MAP_TEN_THOUSANDTHS), "unit_found", false));
	for (int i = 0; i < n; i++)
		json_array_append_new(all, json_pack("{s:s, s:s, s:b}", "name", m->map[first + i].name + strlen("map "), "unit",
						     map_unit_name(m->file[i].unit), "unit_found", m->file[i].found));
	return all;
}
