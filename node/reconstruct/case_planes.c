/* SPDX-License-Identifier: Apache-2.0 */
/* case_planes.c - convert the objects' bytes to planes of the session.
 *
 * - Each role of the model is processed in turn: the roles of the objects that it is computed from are read and hashed in
 * parallel; then a pool of threads converts GROUP planes at a time, which are passed to the session. Only the bytes of these
 * roles are kept, until their last plane.
 * - TOF bins that are added into one (tof_mashing) are added here, in ascending order: the session never has the others.
 * - A correction factor of 0 or below is refused with its place, because it would give a factor that is not a number, and so are
 * factors that are upside down (factor_survey.h, normalisation_sense.h). The session, which checks every bin anyway, finds all
 * other invalid counts; of negative data all are counted for the message.
 */
#include "node/reconstruct/case_planes.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "node/base/thread_pool.h"
#include "node/reconstruct/additive_sense.h"
#include "node/reconstruct/normalisation_sense.h"
#include "node/sinogram/factor_range.h"
#include "node/sinogram/sinogram_list.h"

#define GROUP 64	 /* planes converted at a time */
#define COUNTED_PLANES 8 /* one of so many is looked at for fractions */

struct source {
	enum sinogram_role role;
	uint8_t *bytes;
	int rc;
	struct err err;
	struct factor_range *range; /* of factors; NULL: not wanted */
};

struct planes {
	const struct sinogram *s;
	const struct michelogram *mashed;
	const struct case_terms *terms;
	struct normalisation_sense *sense; /* NULL: not judged */
	struct additive_sense *additive;   /* NULL: not judged */
	enum pet_role role;
	uint8_t **kept; /* see case_read_planes() */
	struct source sources[4];
	int n_sources;
	bool times_factors; /* the values of the role are multiplied by the factors of the model */
	bool mean;	    /* of the TOF bins that are added */
	int n_planes;	    /* of the role, all TOF bins of the session */
	int first;	    /* first plane of the group */
	float *group;	    /* buffer of GROUP planes */
	float *sum;	    /* where all planes are stored instead of in a session; NULL: in a session */
	float *scratch;	    /* buffer of one plane for each plane of the group */
	float *addend;	    /* the same, if TOF bins are added */
	double *counts;	    /* [n_planes]: of each plane, before terms; NULL: not counted */
	struct bad {
		bool there;
		enum sinogram_role role;
		size_t plane, bin; /* plane: in the data of the role */
		float value;
	} bad[GROUP];
	struct {
		size_t filled, fractions;
	} counted[GROUP];					  /* of PET_DATA: bins that are not 0; those no whole number */
	struct factor_survey fraction[GROUP], attenuation[GROUP]; /* MULTIPLICATIVE and ATTENUATION of each plane of the group */
};

static const enum sinogram_role factor_roles[] = {SINOGRAM_MULTIPLICATIVE, SINOGRAM_ATTENUATION, SINOGRAM_NORMALISATION};
#define FACTOR_ROLES (sizeof(factor_roles) / sizeof(factor_roles[0]))

static enum pet_factors factors_of(const struct sinogram *s)
{
	enum pet_factors factors = PET_FACTORS_NONE;

	for (size_t i = 0; i < FACTOR_ROLES; i++) {
		const struct sinogram_part *part = &s->part[factor_roles[i]];

		if (part->present && factors != PET_FACTORS_TOF)
			factors = part->header.m.tof.n > 0 ? PET_FACTORS_TOF : PET_FACTORS_SHARED;
	}
	return factors;
}

/* Return the words of applied corrections that only ADDITIVE has: 1: attenuation, 2: normalisation. */
static int words_of_additive(const struct sinogram *s)
{
	static const char *const word[] = {"attenuation", "normali"};
	int found = 0;

	for (int i = 0; i < 2 && s->part[SINOGRAM_ADDITIVE].present; i++)
		if (strcasestr(s->part[SINOGRAM_ADDITIVE].header.corrections, word[i]) &&
		    !strcasestr(s->part[SINOGRAM_EMISSION].header.corrections, word[i]))
			found |= 1 << i;
	return found;
}

/* Is ADDITIVE b / m? */
static bool is_over_factors(const struct sinogram *s)
{
	return words_of_additive(s) == 3;
}

int case_planes_roles(const struct sinogram *s, enum pet_factors *ret_factors, bool *ret_background, struct err *err)
{
	static const struct {
		enum sinogram_role role;
		const char *word; /* name in "applied corrections" */
	} twice[] = {{SINOGRAM_ATTENUATION, "attenuation"},
		     {SINOGRAM_NORMALISATION, "normali"},
		     {SINOGRAM_ADDITIVE, "scatter"},
		     {SINOGRAM_ADDITIVE, "random"}};
	const struct interfile *h = &s->part[SINOGRAM_EMISSION].header;

	for (size_t i = 0; i < sizeof(twice) / sizeof(twice[0]); i++)
		if (s->part[twice[i].role].present && strcasestr(h->corrections, twice[i].word))
			return err_set(err, EBADMSG,
				       "the emission data are already corrected (applied corrections: %s), but there is also %s",
				       h->corrections, sinogram_role_name(twice[i].role));
	if (words_of_additive(s) && !is_over_factors(s))
		return err_set(
			err, EBADMSG,
			"ADDITIVE: applied corrections: %s; allowed: neither attenuation nor normalisation (b, in counts), or "
			"both (b / m, the additive sinogram of STIR and SIRF)",
			s->part[SINOGRAM_ADDITIVE].header.corrections);
	*ret_factors = factors_of(s);
	*ret_background = s->part[SINOGRAM_ADDITIVE].present;
	return 0;
}

/* Beside MULTIPLICATIVE, which may have efficiencies, too, and with values for each TOF bin, the sense of NORMALISATION is not
 * judged. */
static bool judges_normalisation(const struct sinogram *s)
{
	const struct sinogram_part *part = &s->part[SINOGRAM_NORMALISATION];

	return part->present && part->header.m.tof.n == 0 && !s->part[SINOGRAM_MULTIPLICATIVE].present;
}

size_t case_planes_bytes(const struct sinogram *s)
{
	const struct michelogram *m = &s->part[SINOGRAM_EMISSION].header.m;
	uint64_t factors = 0, most;

	for (size_t i = 0; i < FACTOR_ROLES; i++)
		factors += s->part[factor_roles[i]].present ? s->part[factor_roles[i]].bytes : 0;
	most = s->part[SINOGRAM_EMISSION].bytes > factors ? s->part[SINOGRAM_EMISSION].bytes : factors;
	factors = s->part[SINOGRAM_ADDITIVE].bytes + (is_over_factors(s) ? factors : 0);
	if (s->part[SINOGRAM_ADDITIVE].present && factors > most)
		most = factors;
	return (size_t)most + (judges_normalisation(s) ? normalisation_sense_bytes(m) : 0) +
	       (s->part[SINOGRAM_ADDITIVE].present ? additive_sense_bytes(m) : 0);
}

size_t case_planes_bytes_kept(const struct sinogram *s)
{
	uint64_t bytes = 0;

	for (int role = SINOGRAM_EMISSION; role <= SINOGRAM_ROLES; role++)
		bytes += s->part[role].present && role < SINOGRAM_DELAYEDS ? s->part[role].bytes : 0;
	return (size_t)bytes;
}

static void read_source(void *ctx, size_t part)
{
	struct planes *p = ctx;
	struct source *source = &p->sources[part];

	if (p->kept && p->kept[source->role])
		source->bytes = p->kept[source->role];
	else
		source->rc = sinogram_read(p->s, source->role, &source->bytes, &source->err);
	if (p->kept)
		p->kept[source->role] = source->bytes;
}

static size_t plane_bins(const struct planes *p)
{
	return michelogram_plane_bins(&p->s->part[SINOGRAM_EMISSION].header.m);
}

/* Convert plane `plane` of TOF bin k of a source; a source without TOF bins has the same values in all of them. Return its number
 * in the data of the source. */
static size_t source_plane(const struct planes *p, const struct source *source, size_t k, size_t plane, float *ret_values)
{
	const struct interfile *header = &p->s->part[source->role].header;
	size_t number = header->m.tof.n > 0 ? k * michelogram_planes(p->mashed) + plane : plane;

	interfile_plane(header, source->bytes, number, ret_values);
	if (source->range && (header->m.tof.n > 0 || k == 0))
		factor_range_add(source->range, number, ret_values, plane_bins(p));
	return number;
}

/* Is it a correction factor? An infinite normalisation marks a dead detector: m = 0. */
static bool is_factor(enum sinogram_role role, float value)
{
	return value > 0 && (isfinite(value) || role == SINOGRAM_NORMALISATION);
}

/* Fill a plane that no source has, before terms are applied. */
static void fill_plane(const struct planes *p, float value, float *to)
{
	size_t n = plane_bins(p);

	for (size_t i = 0; i < n; i++)
		to[i] = value;
}

/* Make one plane of a TOF bin of the objects: the first source unchanged, or a factor computed from all. other: one plane. */
static void convert_plane(struct planes *p, size_t part, size_t k, size_t plane, float *to, float *other)
{
	size_t n = plane_bins(p);
	struct bad *bad = &p->bad[part];
	int from = 0;

	if (p->role == PET_FACTORS && (p->n_sources == 0 || p->sources[0].role != SINOGRAM_MULTIPLICATIVE)) {
		fill_plane(p, 1, to);
	} else if (p->n_sources == 0) {
		fill_plane(p, 0, to);
	} else {
		source_plane(p, &p->sources[0], k, plane, to);
		if (p->role == PET_FACTORS)
			factor_survey_add(&p->fraction[part], plane, to, n);
		from = 1;
	}
	for (int s = from; s < p->n_sources && !bad->there; s++) {
		size_t number = source_plane(p, &p->sources[s], k, plane, other);
		bool multiplies = p->sources[s].role == SINOGRAM_MULTIPLICATIVE;

		for (size_t i = 0; i < n; i++) {
			if (!multiplies && !is_factor(p->sources[s].role, other[i])) {
				*bad = (struct bad){true, p->sources[s].role, number, i, other[i]};
				break;
			}
			to[i] = multiplies ? to[i] * other[i] : to[i] / other[i];
		}
		if (p->sources[s].role == SINOGRAM_ATTENUATION && !bad->there)
			factor_survey_add(&p->attenuation[part], plane, other, n);
		if (p->sources[s].role == SINOGRAM_NORMALISATION && !bad->there && k == 0 && p->role == PET_FACTORS) {
			normalisation_sense_values(p->sense, plane, other);
			additive_sense_normalisation(p->additive, plane, other);
		}
	}
}

/* Return the number of TOF bins of the objects that are added into one. */
static int mashing_factor(const struct planes *p)
{
	int measured = p->s->part[SINOGRAM_EMISSION].header.m.tof.n;

	return p->mashed->tof.n > 0 ? measured / p->mashed->tof.n : 1;
}

/* Multiply a plane by the factors of the terms. */
static void apply_factors(const struct planes *p, size_t plane, float *to)
{
	const struct case_terms *t = p->terms;

	for (int i = 0; (p->role == PET_FACTORS || p->times_factors) && i < t->n_factors; i++)
		t->factor[i].multiply(t->factor[i].ctx, plane, to);
}

/* Add the backgrounds of the terms to a plane of TOF bin k of the session. */
static void add_backgrounds(const struct planes *p, size_t k, size_t plane, float *to)
{
	const struct case_terms *t = p->terms;

	for (int i = 0; p->role == PET_BACKGROUND && i < t->n_backgrounds; i++)
		t->background[i].add(t->background[i].ctx, k, plane, to);
}

/* Make one plane of the group. */
static void make_plane(void *ctx, size_t part)
{
	struct planes *p = ctx;
	size_t n = plane_bins(p), n_planes = michelogram_planes(p->mashed), number = (size_t)p->first + part;
	size_t add = (size_t)mashing_factor(p), first = number / n_planes * add;
	float *to = p->group + part * n, *other = p->scratch + part * n, share = 1 / (float)add;

	p->bad[part].there = false;
	factor_survey_begin(&p->fraction[part]);
	factor_survey_begin(&p->attenuation[part]);
	convert_plane(p, part, first, number % n_planes, to, other);
	for (size_t k = first + 1; k < first + add; k++) {
		float *addend = p->addend + part * n;

		convert_plane(p, part, k, number % n_planes, addend, other);
		for (size_t i = 0; i < n; i++)
			to[i] += addend[i];
	}
	for (size_t i = 0; i < n && p->mean && add > 1; i++)
		to[i] *= share;
	apply_factors(p, number % n_planes, to);
	p->counted[part].filled = p->counted[part].fractions = 0;
	for (size_t i = 0; p->role == PET_DATA && number % COUNTED_PLANES == 0 && i < n; i++) {
		p->counted[part].filled += to[i] != 0;
		p->counted[part].fractions += to[i] != rintf(to[i]);
	}
	for (size_t i = 0; p->counts && i < n; i++)
		p->counts[number] = (i ? p->counts[number] : 0) + (double)to[i];
	factor_survey_end_plane(&p->fraction[part], p->mashed, number % n_planes);
	factor_survey_end_plane(&p->attenuation[part], p->mashed, number % n_planes);
	add_backgrounds(p, number / n_planes, number % n_planes, to);
}

static int check_group(const struct planes *p, int n, struct err *err)
{
	int n_radial = p->s->part[SINOGRAM_EMISSION].header.m.n_radial;
	size_t n_planes = michelogram_planes(p->mashed);

	for (int i = 0; i < n; i++) {
		const struct bad *bad = &p->bad[i];
		char bin[32] = "";

		if (!bad->there)
			continue;
		if (p->s->part[bad->role].header.m.tof.n > 0)
			snprintf(bin, sizeof(bin), "TOF bin %zu, ", bad->plane / n_planes);
		return err_set(err, EBADMSG, "%s: %splane %zu, angle %d, radial bin %d: %g; allowed: finite and above 0%s",
			       sinogram_role_name(bad->role), bin, bad->plane % n_planes, (int)bad->bin / n_radial,
			       (int)bad->bin % n_radial, bad->value,
			       bad->role == SINOGRAM_NORMALISATION ? ", or infinite for a bin that does not count (a gap, a dead "
								     "detector), as is 0 in MULTIPLICATIVE"
								   : "");
	}
	return 0;
}

/* The session has refused data: replace its error, which names the first bin, if bins are negative. Makes all planes again. */
static void count_negative(struct planes *p, struct thread_pool *pool, struct err *err)
{
	size_t negative = 0, bins = plane_bins(p);
	float least = 0;

	for (p->first = 0; p->first < p->n_planes; p->first += GROUP) {
		size_t n = (size_t)(p->n_planes - p->first < GROUP ? p->n_planes - p->first : GROUP);

		thread_pool_run(pool, n, make_plane, p);
		for (size_t i = 0; i < n * bins; i++) {
			negative += p->group[i] < 0;
			least = p->group[i] < least ? p->group[i] : least;
		}
	}
	if (negative > 0)
		err_set(err, EBADMSG,
			"%zu of %zu bins of the data are negative, the least %g: randoms or scatter were already subtracted, and "
			"the protocol's Poisson model needs counts: give the prompts and --additive, or use a protocol with "
			"algorithm fbp",
			negative, (size_t)p->n_planes * bins, (double)least);
}

/* Add the n planes of the group that have profiles to these. */
static void add_profiles(const struct planes *p, int n)
{
	const struct case_profiles *of = p->role == PET_DATA ? p->terms->profiles : NULL;
	size_t n_planes = michelogram_planes(p->mashed), n_radial = (size_t)p->mashed->n_radial, bins = plane_bins(p);

	for (int i = 0; of && i < n; i++)
		for (int k = 0; k < of->n; k++) {
			if (of->plane[k] != ((size_t)p->first + (size_t)i) % n_planes)
				continue;
			for (size_t b = 0; b < bins; b++)
				of->counts[(size_t)k * n_radial + b % n_radial] += p->group[(size_t)i * bins + b];
		}
}

static void judge_additive(const struct planes *p, size_t plane, const float *values)
{
	if (p->role == PET_FACTORS)
		additive_sense_factors(p->additive, plane, values);
	else if (p->role == PET_BACKGROUND)
		additive_sense_background(p->additive, plane, values);
}

/* Pass all planes of a role of the model to the session. done, all: numbers of planes, for the monitor. */
static int hand_over(struct planes *p, enum pet_role role, struct pet_session *session, struct thread_pool *pool,
		     const struct monitor *monitor, size_t done, size_t all, struct case_planes_report *report, struct err *err)
{
	double begun = clock_seconds(), made;
	struct factor_survey fraction, attenuation;
	int rc = 0;

	factor_survey_begin(&fraction);
	factor_survey_begin(&attenuation);
	thread_pool_run(pool, (size_t)p->n_sources, read_source, p);
	report->seconds_read += clock_seconds() - begun;
	for (int i = 0; i < p->n_sources; i++)
		if (p->sources[i].rc < 0) {
			if (err)
				*err = p->sources[i].err;
			return p->sources[i].rc;
		}
	for (p->first = 0; rc == 0 && p->first < p->n_planes; p->first += GROUP) {
		int n = p->n_planes - p->first < GROUP ? p->n_planes - p->first : GROUP;

		monitor_progress(monitor, "read", (double)(done + (size_t)p->first) / (double)all);
		if (monitor_cancelled(monitor))
			return err_set(err, ECANCELED, "cancelled while reading");
		begun = clock_seconds();
		thread_pool_run(pool, (size_t)n, make_plane, p);
		rc = check_group(p, n, err);
		for (int i = 0; i < n; i++) {
			factor_survey_join(&fraction, &p->fraction[i]);
			factor_survey_join(&attenuation, &p->attenuation[i]);
			report->filled += p->counted[i].filled;
			report->fractions += p->counted[i].fractions;
		}
		add_profiles(p, n);
		for (int i = 0; i < n; i++)
			judge_additive(p, (size_t)(p->first + i) % michelogram_planes(p->mashed),
				       p->group + (size_t)i * plane_bins(p));
		for (int i = 0; i < n && role == PET_DATA; i++)
			normalisation_sense_counts(p->sense, (size_t)(p->first + i) % michelogram_planes(p->mashed),
						   p->group + (size_t)i * plane_bins(p));
		made = clock_seconds();
		report->seconds_prepare += made - begun;
		if (rc == 0 && p->sum)
			memcpy(p->sum + (size_t)p->first * plane_bins(p), p->group, (size_t)n * plane_bins(p) * sizeof(float));
		else if (rc == 0)
			rc = pet_put(session, role, p->first, n, p->group, err);
		if (rc == 0 && session && p->terms->tap.take)
			rc = p->terms->tap.take(p->terms->tap.ctx, role, p->first, n, p->group, err);
		report->seconds_upload += clock_seconds() - made;
	}
	if (rc == 0)
		rc = factor_survey_fraction(&fraction, err);
	if (rc == 0) {
		rc = factor_survey_attenuation(&attenuation, p->mashed, err);
		if (rc < 0 && err && p->s->part[SINOGRAM_NORMALISATION].present) {
			size_t at = strlen(err->msg);

			snprintf(err->msg + at, sizeof(err->msg) - at, "; or ATTENUATION and NORMALISATION are exchanged");
		}
	}
	if (rc == 0 && role == PET_FACTORS)
		rc = normalisation_sense_check(p->sense, err);
	if (rc == 0 && role == PET_FACTORS)
		report->attenuation = attenuation;
	if (rc == 0 && role == PET_BACKGROUND && p->additive)
		rc = additive_sense_check(p->additive, p->times_factors, report->doubt, err);
	if (rc == -EINVAL && role == PET_DATA && session && !pet_takes_negative(session))
		count_negative(p, pool, err);
	if (rc == -EINVAL) { /* the error is about the data: the case is to be held */
		if (err)
			err->code = EBADMSG;
		rc = -EBADMSG;
	}
	return rc;
}

/* Find out whether the counts of planes follow the number of ring pairs added in them: with axial compression, planes with more
 * pairs then have more counts than their neighbours, by three standard deviations more than half of what the pairs make. */
static void judge_pairs(const struct planes *p, struct case_planes_report *report)
{
	const struct michelogram *m = p->mashed;
	size_t n_planes = michelogram_planes(m), at = 0;
	double own = 0, beside = 0, expected = 0;
	int least = INT_MAX, most = 0;

	for (size_t i = n_planes; i < (size_t)p->n_planes; i++) /* TOF bins */
		p->counts[i % n_planes] += p->counts[i];
	for (int s = 0; s < m->n_segments; at += (size_t)m->segments[s++].n_planes)
		for (int a = 0; a < m->segments[s].n_planes; a++) {
			int pairs = michelogram_pairs(m, s, a), next = a > 0 ? michelogram_pairs(m, s, a - 1) : 0;
			const double *c = p->counts + at + (size_t)a;
			double mean;

			least = pairs < least ? pairs : least;
			most = pairs > most ? pairs : most;
			if (a == 0 || a + 1 == m->segments[s].n_planes || next >= pairs || michelogram_pairs(m, s, a + 1) != next)
				continue;
			mean = 0.5 * (c[-1] + c[1]);
			own += c[0];
			beside += mean;
			expected += mean * pairs / next;
		}
	if (own > 0.5 * (beside + expected) + 3 * sqrt(own)) {
		report->pairs_least = least;
		report->pairs_most = most;
	}
}

static void write_counts(double counts, char ret[24])
{
	snprintf(ret, 24, counts >= 1000 && counts < 1e15 ? "%.0f" : "%.4g", counts);
}

/* Sum the counts of the data, or those that the role ADDITIVE expects, and say both. */
static void take_counts(const struct planes *p, struct case_planes_report *report)
{
	char expected[24], counted[24];
	double sum = 0;

	for (int i = 0; i < p->n_planes; i++)
		sum += p->counts[i];
	if (p->role == PET_DATA) {
		report->counts = sum;
		judge_pairs(p, report);
		return;
	}
	report->additive = sum;
	write_counts(sum, expected);
	write_counts(report->counts, counted);
	snprintf(report->factors[report->n_factors++], FACTOR_RANGE_TEXT,
		 "ADDITIVE: its values%s are added to the expected counts: %s counts in all, EMISSION has %s.",
		 p->times_factors ? ", b / m by its header, times m" : "", expected, counted);
}

static void add_source(struct planes *p, enum sinogram_role role)
{
	if (p->s->part[role].present)
		p->sources[p->n_sources++] = (struct source){.role = role};
}

/* Return the number of planes that the session expects of a role of the model. */
static size_t planes_of(const struct sinogram *s, const struct michelogram *mashed, enum pet_role role)
{
	bool shared = role == PET_FACTORS && factors_of(s) != PET_FACTORS_TOF;

	return shared ? michelogram_planes(mashed) : michelogram_data_planes(mashed);
}

static void add_sources(struct planes *p, enum pet_role role)
{
	if (role == PET_DATA)
		add_source(p, SINOGRAM_EMISSION);
	else if (role == PET_BACKGROUND)
		add_source(p, SINOGRAM_ADDITIVE);
	p->times_factors = role == PET_BACKGROUND && is_over_factors(p->s);
	for (size_t i = 0; (role == PET_FACTORS || p->times_factors) && i < FACTOR_ROLES; i++)
		add_source(p, factor_roles[i]);
}

static bool has_terms(const struct case_terms *t, enum pet_role role)
{
	return role == PET_FACTORS ? t->n_factors > 0 : role == PET_BACKGROUND && t->n_backgrounds > 0;
}

/* Say how the factors were taken, and free their ranges. done: all planes were converted. */
static void end_ranges(struct planes *p, bool done, struct case_planes_report *report)
{
	for (int i = 0; i < p->n_sources; i++) {
		if (done && p->sources[i].range)
			factor_range_text(p->sources[i].range, report->factors[report->n_factors++]);
		factor_range_free(p->sources[i].range);
	}
}

static int begin_ranges(struct planes *p, struct err *err)
{
	int rc = 0;

	for (int i = 0; rc == 0 && p->role == PET_FACTORS && i < p->n_sources; i++)
		rc = factor_range_create(p->sources[i].role, michelogram_data_planes(&p->s->part[p->sources[i].role].header.m),
					 &p->sources[i].range, err);
	return rc;
}

static int read_role(const struct planes *like, enum pet_role role, struct pet_session *session, struct thread_pool *pool,
		     const struct monitor *monitor, size_t all, struct case_planes_report *report, struct err *err)
{
	struct planes p = *like;
	size_t n = GROUP * plane_bins(&p);
	int rc;

	p.role = role;
	add_sources(&p, role);
	if (p.n_sources == 0 && !has_terms(p.terms, role))
		return 0;
	p.n_planes = (int)planes_of(p.s, p.mashed, role);
	p.mean = role == PET_FACTORS;
	p.group = malloc(n * sizeof(float));
	p.scratch = malloc(n * sizeof(float));
	p.addend = mashing_factor(&p) > 1 ? malloc(n * sizeof(float)) : NULL;
	p.counts = (role == PET_DATA || (role == PET_BACKGROUND && p.n_sources > 0)) && session
			   ? malloc((size_t)p.n_planes * sizeof(double))
			   : NULL;
	rc = session ? begin_ranges(&p, err) : 0;
	if (rc == 0 && !(p.group && p.scratch && (p.addend || mashing_factor(&p) == 1)))
		rc = err_set(err, ENOMEM, "no memory for %d planes of sinograms", GROUP);
	if (rc == 0)
		rc = hand_over(&p, role, session, pool, monitor, report->planes, all, report, err);
	if (rc == 0 && p.counts)
		take_counts(&p, report);
	end_ranges(&p, rc == 0, report);
	for (int i = 0; !p.kept && i < p.n_sources; i++)
		free(p.sources[i].bytes);
	free(p.counts);
	free(p.group);
	free(p.scratch);
	free(p.addend);
	report->planes += (size_t)p.n_planes;
	return rc;
}

int case_read_planes(const struct sinogram *s, const struct michelogram *mashed, const struct case_terms *terms,
		     struct pet_session *session, int threads, const struct monitor *monitor, uint8_t **kept,
		     struct case_planes_report *ret_report, struct err *err)
{
	static const enum pet_role roles[] = {PET_DATA, PET_FACTORS, PET_BACKGROUND};
	static const struct case_terms none = {0};
	struct planes like = {.s = s, .mashed = mashed, .terms = terms ? terms : &none, .kept = kept};
	struct case_planes_report report = {0};
	struct thread_pool *pool = NULL;
	enum pet_factors factors;
	bool background;
	size_t all;
	int rc = case_planes_roles(s, &factors, &background, err);

	if (rc < 0)
		return rc;
	background = background || has_terms(like.terms, PET_BACKGROUND);
	all = planes_of(s, mashed, PET_DATA) * (1 + (size_t)background);
	if (factors != PET_FACTORS_NONE || has_terms(like.terms, PET_FACTORS))
		all += planes_of(s, mashed, PET_FACTORS);
	rc = judges_normalisation(s) ? normalisation_sense_create(mashed, &like.sense, err) : 0;
	if (rc == 0 && s->part[SINOGRAM_ADDITIVE].present)
		rc = additive_sense_create(mashed, &like.additive, err);
	if (rc == 0)
		rc = thread_pool_create(threads, &pool, err);
	for (size_t i = 0; rc == 0 && i < sizeof(roles) / sizeof(roles[0]); i++)
		rc = read_role(&like, roles[i], session, pool, monitor, all, &report, err);
	thread_pool_free(pool);
	normalisation_sense_free(like.sense);
	additive_sense_free(like.additive);
	if (rc < 0)
		return rc;
	monitor_progress(monitor, "read", 1);
	*ret_report = report;
	return 0;
}

struct list_factors {
	const struct sinogram *s;
	float *values;
};

static void list_plane(void *ctx, size_t plane)
{
	const struct list_factors *f = ctx;
	const struct michelogram *m = sinogram_list_bins(f->s);

	sinogram_list_factors(f->s, plane, f->values + plane * michelogram_plane_bins(m));
}

static int sum_list_factors(const struct sinogram *s, int threads, float *ret, struct err *err)
{
	struct list_factors f = {s, ret};
	struct thread_pool *pool;
	int rc = thread_pool_create(threads, &pool, err);

	if (rc < 0)
		return rc;
	thread_pool_run(pool, michelogram_planes(sinogram_list_bins(s)), list_plane, &f);
	thread_pool_free(pool);
	return 0;
}

int case_sum_planes(const struct sinogram *s, enum pet_role role, int threads, const struct monitor *monitor, uint8_t **kept,
		    float *ret, struct err *err)
{
	static const struct case_terms none = {0};
	const struct michelogram *m = &s->part[SINOGRAM_EMISSION].header.m;
	struct planes like = {.s = s, .terms = &none, .kept = kept, .sum = ret};
	struct case_planes_report report = {0};
	struct thread_pool *pool = NULL;
	size_t bins = michelogram_bins(m);
	struct michelogram one;
	int rc;

	if (s->list)
		return role == PET_DATA ? sinogram_list_count(s, ret, err) : sum_list_factors(s, threads, ret, err);
	rc = michelogram_mash(m, m->tof.n > 0 ? m->tof.n : 1, &one, err);
	for (size_t i = 0; i < bins; i++)
		ret[i] = role == PET_FACTORS;
	if (rc == 0)
		rc = thread_pool_create(threads, &pool, err);
	like.mashed = &one;
	if (rc == 0)
		rc = read_role(&like, role, NULL, pool, monitor, michelogram_planes(m), &report, err);
	thread_pool_free(pool);
	return rc;
}
