/* SPDX-License-Identifier: Apache-2.0 */
/* case_attenuation.c - the step "attenuation": factors from a CT series in the frame of reference of the PET data.
 *
 * The CT must be of the same patient and frame of reference: a registration of its own is not made. A voxel of the CT at P in the
 * patient is at axis_c (P - centre) along axis c of the scanner. Every case reads the CT, and its content (Hounsfield units,
 * place, voltage) is the key under which map and factors are in the cache of the device. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "kernels/clock.h"
#include "node/base/digest.h"
#include "node/base/plural.h"
#include "node/reconstruct/case_corrections.h"
#include "node/sinogram/pet_source.h"
#include "recon/pet/ct_field.h"

#define KVP_TOLERANCE 0.5 /* kV: from an entry of the table */
/* 1/cm: the largest value of a map is between these: of tissue or, with bone, plastic, 0.05 to 0.2 */
#define MAP_LEAST 0.05
#define MAP_MOST 0.4

/* ---- what is there ---- */

/* Name what the data bring for attenuation; NULL: nothing. */
static const char *ready_made(const struct sinogram *s)
{
	if (s->part[SINOGRAM_ATTENUATION].present)
		return "the role ATTENUATION of the data";
	if (s->part[SINOGRAM_MULTIPLICATIVE].present && !s->source->efficiencies)
		return "the role MULTIPLICATIVE of the data";
	if (strcasestr(s->part[SINOGRAM_EMISSION].header.corrections, "attenuation") || strstr(s->facts.corrected, "ATTN"))
		return "that of the data, which are already corrected";
	return NULL;
}

static const struct dicom_item *emission_of(const struct sinogram *s)
{
	return dicom_root(s->files[s->part[SINOGRAM_EMISSION].file[0]]);
}

static int check_frame(const struct case_corrections *c, struct err *err)
{
	const struct ct_series *ct = c->attenuation.ct;
	char frame[DICOM_UID_SIZE] = "";

	dicom_get_text(emission_of(c->s), TAG_FRAME_OF_REFERENCE_UID, frame, sizeof(frame), NULL);
	if (!frame[0] || !ct->frame_of_reference[0])
		return err_set(err, EBADMSG,
			       "CT: %s no frame of reference %s, so that nothing says where it is in the PET scanner",
			       frame[0] ? "it has" : "the PET data have", tag_text(TAG_FRAME_OF_REFERENCE_UID));
	if (strcmp(frame, ct->frame_of_reference) != 0)
		return err_set(err, EBADMSG,
			       "CT: its frame of reference is %s, that of the PET data %s: it is not of this exam, or the "
			       "PET data do not name it (for an Interfile: --attribute FrameOfReferenceUID=%s)",
			       ct->frame_of_reference, frame, ct->frame_of_reference);
	return 0;
}

/* The PET headers and those of the CT must name one patient. */
static int check_patient(const struct case_corrections *c, struct err *err)
{
	struct patient_conflict conflict;
	struct patient_identity identity;
	struct patient_set pet = {0};
	char text[PATIENT_TEXT_SIZE];

	for (size_t i = 0; i < c->s->n_files; i++) {
		if (c->s->patient && c->s->files[i] != c->s->patient)
			continue; /* a person chose another header */
		patient_read(dicom_root(c->s->files[i]), NULL, &identity);
		patient_set_add(&pet, &identity, (int64_t)i);
	}
	if (!patient_sets_conflict(&pet, &c->attenuation.ct->patients, &conflict))
		return 0;
	patient_conflict_text(&conflict, "between the PET data and the CT", text, sizeof(text));
	return err_set(err, EBADMSG, "CT: %s%s", text,
		       c->s->origin ? "; the PET data are files: if they name no patient, --like CT-IMAGE takes that of the CT"
				    : "");
}

static void say_voltage(struct case_corrections *c)
{
	const struct ct_series *ct = c->attenuation.ct;
	const struct mu_curve *curve = &c->attenuation.curve;

	if (isnan(ct->kvp))
		case_corrections_say(c, "The CT has no KVP: Hounsfield units were converted as those of %g kV.", curve->kvp);
	else if (fabs(ct->kvp - curve->kvp) > KVP_TOLERANCE)
		case_corrections_say(c, "The CT has %g kV, which is not in the table: converted as %g kV.", ct->kvp, curve->kvp);
}

static void say_headers(struct case_corrections *c)
{
	const struct ct_series *ct = c->attenuation.ct;

	if (ct->is_map)
		case_corrections_say(
			c,
			"The attenuation is the scanner's map from MR (%s): what it lacks, as arms beyond its field, the "
			"table and coils, is not corrected.",
			ct->description);
	else
		say_voltage(c);
	if (!c->s->has_centre)
		case_corrections_say(
			c,
			"The centre of the scanner, which places the %s, is taken as the origin of the frame of reference: the "
			"data do not contain it.",
			ct->is_map ? "map" : "CT");
	if (ct->contrast[0] && !ct->is_map) /* that of MR does not attenuate, and the map has none */
		case_corrections_say(c, "The CT has contrast agent, whose attenuation at 511 keV is overestimated.");
	if (ct->multi_energy)
		case_corrections_say(c,
				     "The CT was acquired at several energies: its Hounsfield units were converted as those of "
				     "%g kV.",
				     c->attenuation.curve.kvp);
	if (ct->others > 0)
		case_corrections_say(c, "%zu object%s of the CT not used, without Hounsfield units of a tube voltage: %s.",
				     ct->others, ct->others == 1 ? " was" : "s were", ct->values);
	if (ct->localizers + ct->secondaries > 0)
		case_corrections_say(c, "%zu object%s of the CT %s not used: localizers or secondary images.",
				     ct->localizers + ct->secondaries, plural(ct->localizers + ct->secondaries),
				     ct->localizers + ct->secondaries == 1 ? "was" : "were");
}

static int open_ct(struct case_corrections *c, struct err *err)
{
	struct case_attenuation *a = &c->attenuation;
	int rc = 0;

	if (!a->ct && !a->headers) /* nobody has compared the files with their digests for this result */
		return err_set(err, ESTALE, "the CT was not kept");
	if (!a->ct)
		rc = ct_series_open(a->headers, &a->ct, err);
	if (rc == 0)
		rc = check_patient(c, err);
	if (rc == 0)
		rc = check_frame(c, err);
	if (rc < 0)
		return rc;
	a->curve = a->ct->is_map ? mu_curve_of_map() : mu_curve_of(a->ct->kvp);
	say_headers(c);
	snprintf(c->from, sizeof(c->from), "ct=%.64s", a->ct->series);
	if (a->ct->is_map)
		snprintf(c->method, sizeof(c->method), "map from MR, factors in the system model");
	else
		snprintf(c->method, sizeof(c->method), "CT as %g kV, factors in the system model", a->curve.kvp);
	return 0;
}

/* Return the bytes of the factors of other beds, which stay in the cache. */
static size_t bytes_of_other_beds(const struct case_corrections *c)
{
	size_t one = sizeof(float) * (c->attenuation.plan.bins + grid_size(&c->attenuation.plan.grid));
	size_t n = c->work->cache && c->s->images.of == PET_BEDS ? (size_t)c->s->images.n - 1 : 0;

	return n > 0 && one > PET_CACHE_BYTES / n ? PET_CACHE_BYTES : n * one;
}

static int prepare_attenuation(struct case_corrections *c, struct err *err)
{
	struct case_attenuation *a = &c->attenuation;
	const char *ready = ready_made(c->s);
	int rc;

	if (ready && c->n_ct > 0)
		case_corrections_say(c, "The attenuation is %s; the CT was not used.", ready);
	if (!ready && c->n_ct == 0)
		case_corrections_say(c, "There is no CT for the attenuation.");
	if (ready || c->n_ct == 0)
		return 0;
	rc = open_ct(c, err);
	if (rc == 0)
		rc = attenuation_plan(c->m, c->work->dev, c->work->protocol->pet.memory_limit, &a->plan, err);
	if (rc < 0)
		return rc;
	c->made |= PET_CORRECT_ATTENUATION;
	c->factors = true;
	c->bytes_host += a->plan.bytes_host + bytes_of_other_beds(c);
	c->bytes_read += ct_series_bytes(a->ct) + case_attenuation_once_bytes(c);
	if (a->plan.bytes_device + a->plan.bytes_threads > c->bytes_device)
		c->bytes_device = a->plan.bytes_device + a->plan.bytes_threads;
	return 0;
}

/* ---- factors ---- */

static struct mu_source source_of(const struct case_corrections *c)
{
	const struct ct_series *ct = c->attenuation.ct;
	struct mu_source ret = {.hu = ct->hu, .n = {ct->n[0], ct->n[1], ct->n[2]}};

	for (int a = 0; a < 3; a++) {
		for (int p = 0; p < 3; p++) {
			for (int i = 0; i < 3; i++)
				ret.at[a][i] += c->s->axis[a][p] * ct->step[i][p];
			ret.at[a][3] += c->s->axis[a][p] * (ct->at[p] - c->s->centre[p]);
		}
	}
	return ret;
}

/* Compute the key of everything that the map is made from, and its text. */
static int identify_map(struct case_corrections *c, const struct mu_source *source, uint64_t *ret_key, struct err *err)
{
	struct digest *d = digest_create();
	unsigned char hash[DIGEST_BYTES];
	double numbers[] = {c->attenuation.curve.kvp, MU_MAP_FWHM};
	char hex[DIGEST_SIZE];

	if (!d)
		return err_set(err, ENOMEM, "no memory for a digest");
	digest_begin(d);
	digest_add(d, source->n, sizeof(source->n));
	digest_add(d, source->at, sizeof(source->at));
	digest_add(d, numbers, sizeof(numbers));
	digest_add(d, source->hu, ct_series_bytes(c->attenuation.ct));
	digest_end(d, hex);
	digest_end_bytes(d, hash);
	digest_free(d);
	memcpy(ret_key, hash, sizeof(*ret_key));
	snprintf(c->from, sizeof(c->from), "ct=%.64s %s", c->attenuation.ct->series, hex);
	memcpy(c->attenuation.identity, hash, sizeof(c->attenuation.identity));
	return 0;
}

static int compute_attenuation(struct case_corrections *c, const struct mu_source *source, uint64_t key, struct err *err)
{
	struct case_attenuation *a = &c->attenuation;
	double begun = clock_seconds(), made;
	int rc = attenuation_new(&a->plan, c->m, key, &a->made, err);

	if (rc == 0)
		rc = mu_map_resample(source, &a->curve, &a->plan.grid, c->work->monitor, attenuation_map(a->made), err);
	if (rc == 0)
		rc = mu_map_smooth(&a->plan.grid, MU_MAP_FWHM, attenuation_map(a->made), err);
	made = clock_seconds();
	a->seconds_map += made - begun;
	if (rc == 0)
		rc = attenuation_compute(a->made, c->m, c->work->dev, c->work->cache, c->work->monitor, err);
	a->seconds_factors += clock_seconds() - made;
	return rc;
}

/* Say what the CT lacks: for each bed, because each is another part of the body. */
static int say_pixels(struct case_corrections *c, const struct mu_source *source, bool first, struct err *err)
{
	struct case_attenuation *a = &c->attenuation;
	struct ct_field_source from = {
		.hu = source->hu, .n = {source->n[0], source->n[1], source->n[2]}, .padding = a->ct->padding};
	const double(*step)[3] = (const double(*)[3])a->ct->step;
	struct ct_field field;
	int n = mu_map_uncovered(source, &a->plan.grid, a->covered, err);
	double missing = (double)n / a->plan.grid.n[2], before = a->missing;

	if (n < 0)
		return n;
	a->missing = fmax(a->missing, missing);
	a->is_short = n > 0;
	c->s->made_in_part = c->s->made_in_part || n > 0;
	if (n > 0 && !(before > 0)) /* once, of the first bed that has any */
		case_corrections_say(
			c, "The CT is shorter than the axial field: %d of %d planes%s are not in it, and not corrected.", n,
			a->plan.grid.n[2], c->s->images.of == PET_BEDS ? " of a bed" : "");
	if (!first)
		return 0;
	for (int i = 0; i < 2; i++)
		from.h[i] = sqrt(step[i][0] * step[i][0] + step[i][1] * step[i][1] + step[i][2] * step[i][2]);
	n = ct_field_find(&from, &field, err);
	if (n < 0)
		return n;
	a->truncated = field.truncated;
	if (a->truncated > 0)
		case_corrections_say(c,
				     "The CT is truncated: the patient reaches the edge of its field of view in %.0f %% of its "
				     "slices, and attenuation is missing there.",
				     ceil(100 * a->truncated));
	return 0;
}

/* The values of a map must be attenuation in its unit. */
static int check_map(const struct ct_series *ct, const struct mu_curve *curve, struct err *err)
{
	int16_t most = INT16_MIN;
	double mu;

	for (size_t i = 0; i < ct_series_bytes(ct) / sizeof(*ct->hu); i++)
		most = ct->hu[i] > most ? ct->hu[i] : most;
	mu = 10 * mu_of_hu(curve, most);
	if (mu >= MAP_LEAST && mu <= MAP_MOST)
		return 0;
	return err_set(
		err, EBADMSG,
		"the map from MR has values up to %.4g, which as 10000 times the attenuation is %.4g/cm; of a body it is %g to "
		"%g/cm at most: another unit, or no map",
		1e4 * mu, mu, MAP_LEAST, MAP_MOST);
}

static int read_pixels(struct case_attenuation *a, struct err *err)
{
	double begun = clock_seconds();
	int rc = a->ct->hu ? 0 : ct_series_read(a->ct, err);

	if (rc == 0 && a->ct->is_map)
		rc = check_map(a->ct, &a->curve, err);
	a->seconds_read += clock_seconds() - begun;
	return rc;
}

static int make_here(struct case_corrections *c, struct err *err)
{
	struct case_attenuation *a = &c->attenuation;
	bool first = !a->made;
	struct mu_source source;
	uint64_t key = 0;
	int rc = read_pixels(a, err);

	if (rc < 0)
		return rc;
	a->made = attenuation_release(a->made, c->work->cache);
	source = source_of(c);
	rc = identify_map(c, &source, &key, err);
	if (rc == 0)
		rc = say_pixels(c, &source, first, err);
	if (rc == 0)
		a->made = attenuation_find(c->work->cache, &a->plan, c->m, key);
	a->n_cached += a->made != NULL;
	if (rc == 0 && !a->made) {
		rc = compute_attenuation(c, &source, key, err);
		a->n_computed++;
	}
	if (rc == 0 && (first || c->s->part[SINOGRAM_NORMALISATION].of_frame))
		rc = case_check_attenuation_once(c, err);
	memcpy(a->centre, c->s->centre, sizeof(a->centre));
	if (c->s->images.of != PET_BEDS && !c->work->keep) { /* else the next bed or result needs them */
		free(a->ct->hu);
		a->ct->hu = NULL;
	}
	return rc;
}

static void multiply_attenuation(const void *ctx, size_t plane, float *m)
{
	const struct case_corrections *c = ctx;
	size_t bins = michelogram_plane_bins(c->m);
	const float *factors = attenuation_factors(c->attenuation.made) + plane * bins;

	for (size_t i = 0; i < bins; i++)
		m[i] *= factors[i];
}

static int make_attenuation(struct case_corrections *c, struct err *err)
{
	const double *was = c->attenuation.centre, *is = c->s->centre;
	bool same = c->attenuation.made && was[0] == is[0] && was[1] == is[1] && was[2] == is[2];
	int rc = same ? 0 : make_here(c, err);

	if (rc == 0)
		case_corrections_add_factor(c, (struct case_factor){multiply_attenuation, c});
	return rc;
}

static json_t *attenuation_details(const struct case_corrections *c)
{
	const struct case_attenuation *a = &c->attenuation;
	const struct grid *g = &a->plan.grid;

	if (!a->made)
		return json_null();
	return json_pack("{s:s, s:o, s:f, s:i, s:i, s:f, s:f, s:f, s:[i,i,i], s:[f,f,f], s:f, s:f, s:f}", "ct_series",
			 a->ct->series, "kvp", isnan(a->ct->kvp) ? json_null() : json_real(a->ct->kvp), "kvp_table", a->curve.kvp,
			 "computed", a->n_computed, "cached", a->n_cached, "missing", a->missing, "truncated", a->truncated,
			 "fwhm_mm", MU_MAP_FWHM, "map", g->n[0], g->n[1], g->n[2], "voxel_mm", g->h[0], g->h[1], g->h[2],
			 "seconds_read", a->seconds_read, "seconds_map", a->seconds_map, "seconds_factors", a->seconds_factors);
}

static void clear_attenuation(struct case_corrections *c)
{
	struct case_attenuation *a = &c->attenuation;

	a->made = attenuation_release(a->made, c->work ? c->work->cache : NULL);
	a->ct = ct_series_close(a->ct);
}

const struct case_step case_step_attenuation = {
	.correction = PET_CORRECT_ATTENUATION,
	.prepare = prepare_attenuation,
	.make = make_attenuation,
	.details = attenuation_details,
	.clear = clear_attenuation,
};
