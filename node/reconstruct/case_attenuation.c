/* SPDX-License-Identifier: Apache-2.0 */
/* case_attenuation.c - the step "attenuation": factors from a CT series or from maps (case_maps.c). Every case reads them,
 * and their content (Hounsfield units, place, voltage) is the key under which the sum of the maps and its factors are in the
 * cache of the device. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "node/base/digest.h"
#include "node/reconstruct/case_corrections.h"
#include "node/sinogram/pet_source.h"
#include "recon/pet/ct_field.h"

#define GIVEN_TWICE 0.7 /* how much a map may repeat another: see mu_map_repeated() */

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

/* Whether the factors of the body alone are made, too: the scatter is fitted to the data outside of it. */
static bool needs_body(const struct case_corrections *c)
{
	return c->attenuation.maps.n > 1 && (c->work->protocol->pet.corrections & PET_CORRECT_SCATTER);
}

/* Return the bytes of the factors of other beds, which stay in the cache. */
static size_t bytes_of_other_beds(const struct case_corrections *c)
{
	size_t one = sizeof(float) * (c->attenuation.plan.bins + grid_size(&c->attenuation.plan.grid)) * (needs_body(c) ? 2 : 1);
	size_t n = c->work->cache && c->s->images.of == PET_BEDS ? (size_t)c->s->images.n - 1 : 0;

	return n > 0 && one > PET_CACHE_BYTES / n ? PET_CACHE_BYTES : n * one;
}

static int prepare_attenuation(struct case_corrections *c, struct err *err)
{
	struct case_attenuation *a = &c->attenuation;
	bool given = c->n_ct > 0 || c->work->decision->n_maps > 0;
	const char *ready = ready_made(c->s);
	int rc;

	if (ready && given)
		case_corrections_say(c, "The attenuation is %s; the %s was not used.", ready, case_maps_word(c));
	a->lacking = !ready && !given;
	if (a->lacking)
		case_corrections_say(c, "There is no CT and no map for the attenuation.");
	if (ready || !given)
		return 0;
	rc = case_maps_open(c, err);
	if (rc == 0)
		rc = attenuation_plan(c->m, c->work->dev, c->work->protocol->pet.memory_limit, &a->plan, err);
	if (rc < 0)
		return rc;
	c->made |= PET_CORRECT_ATTENUATION;
	c->factors = true;
	c->bytes_host += a->plan.bytes_host * (needs_body(c) ? 2 : 1) + bytes_of_other_beds(c);
	c->bytes_read += case_maps_bytes(c) + case_attenuation_once_bytes(c);
	if (a->plan.bytes_device + a->plan.bytes_threads > c->bytes_device)
		c->bytes_device = a->plan.bytes_device + a->plan.bytes_threads;
	return 0;
}

/* ---- factors ---- */

/* Compute the key of everything that the map is made from, and its text. */
static int identify_map(struct case_corrections *c, uint64_t *ret_key, struct err *err)
{
	const struct case_maps *m = &c->attenuation.maps;
	struct digest *d = digest_create();
	unsigned char hash[DIGEST_BYTES];
	size_t said = strcspn(c->from, " ");
	char hex[DIGEST_SIZE];

	if (!d)
		return err_set(err, ENOMEM, "no memory for a digest");
	digest_begin(d);
	for (int i = 0; i < m->n; i++) {
		const struct mu_source *source = &m->map[i].source;
		const double numbers[] = {m->map[i].curve.kvp, MU_MAP_FWHM};

		digest_add(d, source->n, sizeof(source->n));
		digest_add(d, source->at, sizeof(source->at));
		digest_add(d, numbers, sizeof(numbers));
		digest_add(d, source->hu,
			   (size_t)source->n[0] * (size_t)source->n[1] * (size_t)source->n[2] * sizeof(*source->hu));
	}
	digest_end(d, hex);
	digest_end_bytes(d, hash);
	digest_free(d);
	memcpy(ret_key, hash, sizeof(*ret_key));
	memcpy(c->attenuation.identity, hash, sizeof(c->attenuation.identity));
	snprintf(c->from + said, sizeof(c->from) - said, " %s", hex);
	return 0;
}

/* Refuse a map that is given twice, or that is in another one: maps are added. part: [map][voxel] */
static int check_repeated(const struct case_attenuation *a, int map, const float *part, struct err *err)
{
	size_t n = grid_size(&a->plan.grid);

	for (int before = 0; before < map; before++) {
		double repeated = mu_map_repeated(&a->plan.grid, part + (size_t)before * n, part + (size_t)map * n);

		if (repeated > GIVEN_TWICE)
			return err_set(err, EBADMSG,
				       "the %s and the %s have %.0f %% in common, and maps are added: give what is in both once",
				       a->maps.map[before].name, a->maps.map[map].name, 100 * repeated);
	}
	return 0;
}

/* Resample the first maps, and add them. */
static int make_map(struct case_corrections *c, size_t maps, float *mu, struct err *err)
{
	struct case_attenuation *a = &c->attenuation;
	size_t n = grid_size(&a->plan.grid);
	float *part = maps > 1 ? malloc(maps * n * sizeof(*part)) : mu;
	int rc = part ? 0 : err_set(err, ENOMEM, "no memory for %zu maps of %zu voxels", maps, n);

	for (size_t i = 0; rc == 0 && i < maps; i++) {
		const struct case_map *map = &a->maps.map[i];

		rc = mu_map_resample(&map->source, &map->curve, &a->plan.grid, c->work->monitor, part + i * n, err);
		if (rc < 0)
			err_prefix(err, "%s", map->name);
		else
			rc = check_repeated(a, (int)i, part, err);
	}
	for (size_t i = 0; rc == 0 && maps > 1 && i < n; i++) {
		mu[i] = 0;
		for (size_t k = 0; k < maps; k++)
			mu[i] += part[k * n + i];
	}
	if (part != mu)
		free(part);
	return rc == 0 ? mu_map_smooth(&a->plan.grid, MU_MAP_FWHM, mu, err) : rc;
}

/* Make the factors of the first maps, or take those with this key from the cache: then *ret_found. */
static int compute_attenuation(struct case_corrections *c, size_t maps, uint64_t key, struct attenuation **ret, bool *ret_found,
			       struct err *err)
{
	struct case_attenuation *a = &c->attenuation;
	double begun = clock_seconds(), made;
	int rc;

	*ret = attenuation_find(c->work->cache, &a->plan, c->m, key);
	*ret_found = *ret != NULL;
	if (*ret)
		return 0;
	rc = attenuation_new(&a->plan, c->m, key, ret, err);
	if (rc == 0)
		rc = make_map(c, maps, attenuation_map(*ret), err);
	made = clock_seconds();
	a->seconds_map += made - begun;
	if (rc == 0)
		rc = attenuation_compute(*ret, c->m, c->work->dev, c->work->cache, c->work->monitor, err);
	a->seconds_factors += clock_seconds() - made;
	return rc;
}

/* Say what the map of the body lacks: for each bed, because each is another part of the body. */
static int say_values(struct case_corrections *c, bool first, struct err *err)
{
	struct case_attenuation *a = &c->attenuation;
	const struct case_map *map = &a->maps.map[0];
	const struct mu_source *source = &map->source;
	struct ct_field_source from = {.hu = source->hu,
				       .n = {source->n[0], source->n[1], source->n[2]},
				       .h = {map->pixel[0], map->pixel[1]},
				       .padding = map->padding};
	struct ct_field field;
	int n = mu_map_uncovered(source, &a->plan.grid, a->covered, err);
	double missing = (double)n / a->plan.grid.n[2], before = a->missing;

	if (n < 0)
		return err_prefix(err, "%s", map->name);
	if (n == a->plan.grid.n[2] && c->s->images.of != PET_BEDS)
		return err_set(err, EBADMSG, "%s: it is beside the field of view of the scanner: no plane of it is in the map",
			       map->name);
	a->missing = fmax(a->missing, missing);
	a->is_short = n > 0;
	c->s->made_in_part = c->s->made_in_part || n > 0;
	if (n > 0 && !(before > 0)) /* once, of the first bed that has any */
		case_corrections_say(
			c, "The %s is shorter than the axial field: %d of %d planes%s are not in it, and not corrected.",
			map->name, n, a->plan.grid.n[2], c->s->images.of == PET_BEDS ? " of a bed" : "");
	if (!first)
		return 0;
	n = ct_field_find(&from, &field, err);
	if (n < 0)
		return err_prefix(err, "%s", map->name);
	a->truncated = field.truncated;
	if (a->truncated > 0)
		case_corrections_say(c,
				     "The %s is truncated: the patient reaches the edge of its field of view in %.0f %% of its "
				     "slices, and attenuation is missing there.",
				     map->name, ceil(100 * a->truncated));
	return 0;
}

static int read_values(struct case_corrections *c, struct err *err)
{
	double begun = clock_seconds();
	int rc = case_maps_read(c, err);

	c->attenuation.seconds_read += clock_seconds() - begun;
	return rc;
}

static int make_here(struct case_corrections *c, struct err *err)
{
	struct case_attenuation *a = &c->attenuation;
	bool first = !a->made, found = false;
	uint64_t key = 0;
	int rc = read_values(c, err);

	if (rc < 0)
		return rc;
	a->made = attenuation_release(a->made, c->work->cache);
	a->body = attenuation_release(a->body, c->work->cache);
	case_maps_place(c);
	rc = identify_map(c, &key, err);
	if (rc == 0)
		rc = say_values(c, first, err);
	if (rc == 0 && needs_body(c))
		rc = compute_attenuation(c, 1, ~key, &a->body, &found, err);
	if (rc == 0)
		rc = compute_attenuation(c, (size_t)a->maps.n, key, &a->made, &found, err);
	if (rc == 0)
		*(found ? &a->n_cached : &a->n_computed) += 1;
	if (rc == 0 && (first || c->s->part[SINOGRAM_NORMALISATION].of_frame))
		rc = case_check_attenuation_once(c, err);
	memcpy(a->centre, c->s->centre, sizeof(a->centre));
	if (c->s->images.of != PET_BEDS && !c->work->keep) /* else the next bed or result needs them */
		case_maps_free_values(a);
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
	json_t *details;

	if (!a->made)
		return json_null();
	details = json_pack("{s:o, s:o, s:f, s:i, s:i, s:f, s:f, s:f, s:[i,i,i], s:[f,f,f], s:f, s:f, s:f}", "ct_series",
			    a->ct ? json_string(a->ct->series) : json_null(), "kvp",
			    a->ct && !isnan(a->ct->kvp) ? json_real(a->ct->kvp) : json_null(), "kvp_table",
			    a->maps.map[0].curve.kvp, "computed", a->n_computed, "cached", a->n_cached, "missing", a->missing,
			    "truncated", a->truncated, "fwhm_mm", MU_MAP_FWHM, "map", g->n[0], g->n[1], g->n[2], "voxel_mm",
			    g->h[0], g->h[1], g->h[2], "seconds_read", a->seconds_read, "seconds_map", a->seconds_map,
			    "seconds_factors", a->seconds_factors);
	if (a->maps.n > 1 || c->work->decision->n_maps > 0)
		json_object_set_new(details, "maps", case_maps_details(c));
	return details;
}

static void clear_attenuation(struct case_corrections *c)
{
	struct case_attenuation *a = &c->attenuation;

	a->made = attenuation_release(a->made, c->work ? c->work->cache : NULL);
	a->body = attenuation_release(a->body, c->work ? c->work->cache : NULL);
	case_maps_free_values(a);
	a->ct = ct_series_close(a->ct);
}

const struct case_step case_step_attenuation = {
	.correction = PET_CORRECT_ATTENUATION,
	.prepare = prepare_attenuation,
	.make = make_attenuation,
	.details = attenuation_details,
	.clear = clear_attenuation,
};
