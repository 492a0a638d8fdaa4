/* SPDX-License-Identifier: Apache-2.0 */
/* case_randoms.c - the step "randoms": expected randoms of each bin from the delayed coincidences of the data, or, where there
 * are none, from their singles (recon/pet/randoms.h), added to the background b. They are never subtracted. With TOF bins each of
 * the n of the session has 1/n of them; of singles, which give those of the whole coincidence window, only the part of the window
 * that the TOF bins cover.
 *
 * Bins that are no pairs of detectors (arc correction, or angles that are not a whole number of views) have the mean of their
 * neighbours' delayed coincidences instead, and the result says so.
 *
 * What the randoms are the products of, a number for each detector, is in the cache for further results of the exam
 * (node/reconstruct/case_cache.h); means of neighbours, which are as many as the bins, are not. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/clock.h"
#include "kernels/tof.h"
#include "node/base/thread_pool.h"
#include "node/reconstruct/case_cache.h"
#include "node/sinogram/pet_source.h"
#include "node/sinogram/sinogram_list.h"
#include "recon/pet/michelogram_pairs.h"

#define SINGLES_TIME 0.01	/* difference between the duration of the singles and that of the counts, over the latter */
#define WHOLE 1e-12		/* rounding of a whole number that was divided, over it */
#define VERSION "randoms 2"	/* of the computation, for the cache: another number makes no use of what is there */
#define WINDOW_DIFFERENCE 0.001 /* between TOF bins and coincidence window, over the latter */

/* What the cache has of the randoms of a frame. */
struct rates {
	struct randoms_report report;
	double factor, singles; /* of randoms_from_singles(); all singles of the frame */
	double of[];		/* [ring][crystal] */
};

/* Name what the data bring for randoms; NULL: nothing. */
static const char *ready_made(const struct sinogram *s)
{
	if (s->part[SINOGRAM_ADDITIVE].present)
		return "the role ADDITIVE contains the randoms, which would be counted twice";
	if (strcasestr(s->part[SINOGRAM_EMISSION].header.corrections, "random") || strstr(s->facts.corrected, "RAN"))
		return "the data are already corrected for randoms";
	return NULL;
}

static size_t detectors_of(const struct case_corrections *c)
{
	return (size_t)c->m->scanner.rings * (size_t)c->m->scanner.detectors;
}

static size_t rates_bytes(const struct case_corrections *c)
{
	return sizeof(struct rates) + detectors_of(c) * sizeof(double);
}

/* Find the time in which the singles were counted, s, which must be that of the chosen frame; 0: unknown. */
static int singles_time(const struct case_corrections *c, double *ret, struct err *err)
{
	double own = c->s->part[SINOGRAM_SINGLES].header.duration, all = c->s->no_duration ? NAN : sinogram_duration(c->s);

	*ret = own > 0 ? own : all > 0 ? all : 0;
	if (own > 0 && all > 0 && fabs(own / all - 1) > SINGLES_TIME)
		return err_set(err, EBADMSG, "SINGLES: image duration := %g s, but the counts are of %g s", own, all);
	return 0;
}

/* Decide whether the randoms are made from singles. */
static int prepare_singles(struct case_corrections *c, struct err *err)
{
	const struct sinogram_part *part = &c->s->part[SINOGRAM_SINGLES];
	const struct interfile_singles *singles = &part->header.singles;
	double width = (double)c->m->tof.n * c->m->tof.width / TOF_MM_PER_PS * 1e-12, time;
	struct michelogram_index x;
	struct err why = {0};
	int rc = singles_time(c, &time, err);

	if (rc < 0)
		return rc;
	if (michelogram_index_init(c->m, &x, &why) < 0) {
		case_corrections_say(c, "Not corrected for randoms: singles need bins that are pairs of detectors: %s.", why.msg);
		return 0;
	}
	if (!(time > 0)) {
		case_corrections_say(c, "Not corrected for randoms: the time in which the singles were counted is not known.");
		return 0;
	}
	c->randoms.of_singles = true;
	c->randoms.covered = width > 0 && width < singles->window ? width / singles->window : 1;
	case_corrections_say(c, "The randoms were computed from singles and a coincidence window of %g ns.",
			     1e9 * singles->window);
	if (width > (1 + WINDOW_DIFFERENCE) * singles->window)
		case_corrections_say(c,
				     "The TOF bins cover %g ns, more than the window; the randoms were spread over all of them.",
				     1e9 * width);
	c->made |= PET_CORRECT_RANDOMS;
	c->background = true;
	c->bytes_host += michelogram_bins(c->m) * sizeof(float) + case_cache_bytes(c, rates_bytes(c));
	c->bytes_read += (size_t)part->bytes + rates_bytes(c) + randoms_bytes(c->m) + case_units_bytes(c);
	return 0;
}

static bool has_factors(const struct sinogram *s)
{
	return s->part[SINOGRAM_NORMALISATION].present || s->part[SINOGRAM_MULTIPLICATIVE].present;
}

/* Whether factors of 0 may say which bins are not in coincidence: they have no delayed coincidences, and no randoms. Gaps of
 * whole detectors have none at all, which the estimate finds by itself. */
static bool needs_factors(const struct case_corrections *c)
{
	if (c->randoms.of_singles || c->s->source->efficiencies)
		return false;
	return c->s->list || c->s->part[SINOGRAM_MULTIPLICATIVE].present || (c->randoms.of_neighbours && has_factors(c->s));
}

static int prepare_randoms(struct case_corrections *c, struct err *err)
{
	const struct sinogram_part *part = &c->s->part[SINOGRAM_DELAYEDS];
	bool singles = c->s->part[SINOGRAM_SINGLES].present;
	const char *ready = ready_made(c->s);
	struct michelogram_index x;
	struct err why = {0};

	if (ready && part->present)
		case_corrections_say(c, "The delayed coincidences were not used: %s.", ready);
	if (singles && (ready || part->present))
		case_corrections_say(c, "The singles were not used: %s.", ready ? ready : "the data have delayed coincidences");
	if (!ready && !part->present && !singles)
		case_corrections_say(c, "Not corrected for randoms: the data have neither delayed coincidences nor singles nor a "
					"background.");
	if (ready || (!part->present && !singles))
		return 0;
	if (!part->present)
		return prepare_singles(c, err);
	c->randoms.of_neighbours = michelogram_index_init(c->m, &x, &why) < 0;
	if (needs_factors(c))
		c->bytes_read += michelogram_bins(c->m) * sizeof(float) + (c->s->list ? 0 : case_planes_bytes(c->s));
	if (c->randoms.of_neighbours)
		case_corrections_say(
			c,
			"The randoms of a bin are the mean of the delayed coincidences of the bins around it, without the "
			"differences between detectors: %s.",
			why.msg);
	c->made |= PET_CORRECT_RANDOMS;
	c->background = true;
	c->bytes_host +=
		michelogram_bins(c->m) * sizeof(float) + (c->randoms.of_neighbours ? 0 : case_cache_bytes(c, rates_bytes(c)));
	c->bytes_read += (size_t)part->bytes + rates_bytes(c) + randoms_bytes(c->m) + case_units_bytes(c);
	return 0;
}

static int allocate_expected(struct case_corrections *c, struct err *err)
{
	if (!c->randoms.expected)
		c->randoms.expected = malloc(michelogram_bins(c->m) * sizeof(float));
	return c->randoms.expected ? 0 : err_set(err, ENOMEM, "no memory for randoms of %zu bins", michelogram_bins(c->m));
}

/* Read the delayed coincidences. */
static int read_delayeds(struct case_corrections *c, struct err *err)
{
	const struct interfile *h = &c->s->part[SINOGRAM_DELAYEDS].header;
	size_t planes = michelogram_planes(c->m), bins = michelogram_plane_bins(c->m);
	uint8_t *bytes = NULL;
	int rc;

	if (sinogram_list_has_delayeds(c->s))
		return sinogram_list_delayeds(c->s, c->randoms.expected, err);
	rc = sinogram_read(c->s, SINOGRAM_DELAYEDS, &bytes, err);
	if (rc < 0)
		return rc;
	for (size_t p = 0; p < planes; p++)
		interfile_plane(h, bytes, p, c->randoms.expected + p * bins);
	free(bytes);
	return 0;
}

/* Read the factors of all bins; *ret is NULL if they are not needed. The caller frees it. */
static int read_factors(struct case_corrections *c, float **ret, struct err *err)
{
	*ret = needs_factors(c) ? malloc(michelogram_bins(c->m) * sizeof(**ret)) : NULL;
	if (!*ret)
		return needs_factors(c) ? err_set(err, ENOMEM, "no memory for factors of %zu bins", michelogram_bins(c->m)) : 0;
	return case_sum_planes(c->s, PET_FACTORS, threads_available(), c->work->monitor, c->kept, *ret, err);
}

/* Remove the randoms of bins that are not in coincidence. Return the sum of the others. */
static double drop_dead(struct case_corrections *c, const float *factors)
{
	double total = 0;

	for (size_t i = 0; i < michelogram_bins(c->m); i++) {
		if (factors && !(factors[i] > 0))
			c->randoms.expected[i] = 0;
		total += (double)c->randoms.expected[i];
	}
	return total;
}

/* Replace the delayed coincidences by expected randoms. A frame or gate may have none; then there are no randoms. */
static int estimate_from_delayeds(struct case_corrections *c, const float *factors, struct rates *rates, struct err *err)
{
	const struct michelogram *m = c->m; /* all roles have its rays */
	struct case_randoms *r = &c->randoms;
	struct randoms_report report = {0};
	struct err why = {0};
	int rc = r->of_neighbours ? randoms_from_neighbours(m, r->expected, factors, r->expected, &report.total, &why)
				  : randoms_from_delayeds(m, r->expected, factors, r->expected, rates->of, &report, &why);

	if (rc == -EDOM && c->s->images.n > 0)
		rc = 0;
	if (rc == -EDOM)
		return err_set(err, EBADMSG, "DELAYEDS: %s: reconstruct with a protocol without \"randoms\" in `corrections`",
			       why.msg);
	if (rc == -EINVAL) /* the error is about the data: the case is to be held */
		return err_set(err, EBADMSG, "DELAYEDS: %s", why.msg);
	if (rc < 0 && err)
		*err = why;
	if (rc == 0 && report.total > 0 && factors)
		report.total = drop_dead(c, factors);
	rates->report = report;
	rates->factor = 1;
	return rc;
}

/* Read the singles of each detector, counts in the time of the frame; a frame or gate may have none. */
static int read_singles(struct case_corrections *c, double time, double *ret, struct err *err)
{
	const struct interfile *h = &c->s->part[SINOGRAM_SINGLES].header;
	uint8_t *bytes = NULL;
	double sum = 0;
	int rc = sinogram_read(c->s, SINOGRAM_SINGLES, &bytes, err);

	if (rc < 0)
		return rc;
	rc = interfile_singles_expand(h, bytes, ret, &sum, err);
	free(bytes);
	if (rc == 0 && !(sum > 0) && c->s->images.n == 0)
		rc = err_set(err, EBADMSG, "there are none: reconstruct with a protocol without \"randoms\" in `corrections`");
	if (rc < 0) {
		err_prefix(err, "SINGLES");
		return rc;
	}
	for (size_t i = 0; h->singles.rates && i < detectors_of(c); i++)
		ret[i] *= time;
	c->randoms.singles_of_frame = h->singles.rates ? sum * time : sum;
	return 0;
}

/* Return whether singles were measured: rates, or whole counts, also of blocks. */
static bool are_measured(const struct case_corrections *c, const double *singles)
{
	const struct interfile_singles *s = &c->s->part[SINOGRAM_SINGLES].header.singles;
	size_t i = 0;
	double value = 0;

	for (; !s->rates && i < detectors_of(c); i++) {
		value = singles[i] * s->block[0] * s->block[1];
		if (fabs(value - rint(value)) > WHOLE * value)
			return false;
	}
	return true;
}

/* Compute the expected randoms from the singles. Each single is in one coincidence at most. */
static int compute_from_singles(struct case_corrections *c, struct rates *rates, struct err *err)
{
	const struct sinogram *s = c->s;
	double window = s->part[SINOGRAM_SINGLES].header.singles.window;
	double decay = s->facts.half_life > 0 ? M_LN2 / s->facts.half_life : 0, f = sinogram_decay_factor(s, decay),
	       f2 = sinogram_decay_factor(s, 2 * decay), time, total = 0;
	double *singles = rates->of;
	int rc = singles_time(c, &time, err);

	if (rc == 0)
		rc = read_singles(c, time, singles, err);
	if (rc == 0 && are_measured(c, singles))
		rc = case_check_units(c, "SINGLES", NULL, err);
	if (rc == 0) {
		rates->factor = randoms_singles_factor(c->randoms.covered * window, time, f, f2);
		rc = randoms_from_singles(c->m, singles, rates->factor, c->randoms.expected, err);
	}
	for (size_t i = 0; rc == 0 && i < michelogram_bins(c->m); i++)
		total += (double)c->randoms.expected[i];
	if (rc == 0 && total > c->randoms.singles_of_frame / 2)
		rc = err_set(
			err, EBADMSG,
			"SINGLES: %g randoms of %g singles in %g s with a coincidence window of %g ns, more than half: check "
			"unit, duration and window",
			total, c->randoms.singles_of_frame, time, 1e9 * window);
	rates->singles = c->randoms.singles_of_frame;
	rates->report.total = total;
	return rc;
}

/* Make the randoms of the chosen frame from the data, and keep what they were made from. */
static int make_here(struct case_corrections *c, const struct case_cache_key *key, const float *factors, struct rates **ret,
		     struct err *err)
{
	size_t bytes = rates_bytes(c);
	struct rates *rates = calloc(1, bytes);
	int rc = rates ? 0 : err_set(err, ENOMEM, "no memory for rates of %zu detectors", detectors_of(c));

	if (rc == 0)
		rc = c->randoms.of_singles ? compute_from_singles(c, rates, err) : read_delayeds(c, err);
	if (rc == 0 && !c->randoms.of_singles)
		rc = case_check_units(c, "DELAYEDS", c->randoms.expected, err);
	if (rc == 0 && !c->randoms.of_singles)
		rc = estimate_from_delayeds(c, factors, rates, err);
	if (rc == 0 && !c->randoms.of_neighbours && rates->report.total > 0)
		case_cache_keep(c, key, rates, bytes);
	c->randoms.n_computed++;
	*ret = rates;
	return rc;
}

/* Make them from what was kept. */
static int make_again(struct case_corrections *c, const struct rates *kept, const float *factors, struct rates **ret,
		      struct err *err)
{
	int rc;

	c->randoms.n_cached++;
	c->randoms.singles_of_frame = kept->singles;
	*ret = malloc(sizeof(**ret));
	if (!*ret)
		return err_set(err, ENOMEM, "no memory for rates");
	memcpy(*ret, kept, sizeof(**ret));
	rc = randoms_from_singles(c->m, kept->of, kept->factor, c->randoms.expected, err);
	if (rc == 0 && factors)
		drop_dead(c, factors);
	return rc;
}

static struct case_cache_key key_of(const struct case_corrections *c)
{
	const double settings[] = {c->randoms.of_singles, c->randoms.covered,
				   c->randoms.of_singles ? c->s->part[SINOGRAM_SINGLES].header.singles.window : 0};

	return case_cache_key(c, VERSION, settings, sizeof(settings));
}

static float share_of(const struct case_corrections *c)
{
	return c->m->tof.n > 0 ? 1.0f / (float)c->m->tof.n : 1;
}

static void add_randoms(const void *ctx, size_t k, size_t plane, float *b)
{
	const struct case_corrections *c = ctx;
	size_t bins = michelogram_plane_bins(c->m);
	const float *expected = c->randoms.expected + plane * bins;
	float share = share_of(c);

	(void)k;
	for (size_t i = 0; i < bins; i++)
		b[i] += share * expected[i];
}

static float randoms_at(const void *ctx, size_t k, size_t plane, size_t bin)
{
	const struct case_corrections *c = ctx;
	size_t bins = michelogram_plane_bins(c->m);

	(void)k;
	return share_of(c) * c->randoms.expected[plane * bins + bin];
}

static int make_randoms(struct case_corrections *c, struct err *err)
{
	struct case_cache_key key = key_of(c);
	double begun = clock_seconds();
	struct rates *rates = NULL;
	float *factors = NULL;
	const void *kept;
	size_t bytes;
	int rc = allocate_expected(c, err);

	if (rc == 0)
		rc = read_factors(c, &factors, err);
	if (rc < 0) {
		free(factors);
		return rc;
	}
	kept = c->randoms.of_neighbours ? NULL : case_cache_find(c, &key, &bytes);
	rc = kept ? make_again(c, kept, factors, &rates, err) : make_here(c, &key, factors, &rates, err);
	free(factors);
	if (rc == 0) {
		c->randoms.of_frame = rates->report.total;
		c->randoms.total += rates->report.total;
		c->randoms.singles += rates->singles;
	}
	if (rc == 0 && rates->report.total > 0) /* else that of the frame before */
		c->randoms.report = rates->report;
	free(rates);
	c->randoms.seconds += clock_seconds() - begun;
	if (rc == 0)
		case_corrections_add_background(c, (struct case_background){add_randoms, randoms_at, c});
	return rc;
}

static json_t *randoms_details(const struct case_corrections *c)
{
	const struct case_randoms *r = &c->randoms;
	const struct randoms_report *report = &r->report;

	if (!r->expected)
		return json_null();
	if (r->of_singles)
		return json_pack("{s:s, s:i, s:i, s:f, s:o, s:f, s:f, s:f}", "method", "singles and coincidence window",
				 "computed", r->n_computed, "cached", r->n_cached, "total", r->total, "share",
				 c->prompts > 0 ? json_real(r->total / c->prompts) : json_null(), "singles", r->singles,
				 "window_ns", 1e9 * c->s->part[SINOGRAM_SINGLES].header.singles.window, "seconds", r->seconds);
	return json_pack("{s:s, s:i, s:i, s:f, s:o, s:i, s:i, s:f, s:i, s:f, s:f}", "method",
			 r->of_neighbours ? "mean of neighbouring bins" : "maximum likelihood of singles", "computed",
			 r->n_computed, "cached", r->n_cached, "total", r->total, "share",
			 c->prompts > 0 ? json_real(r->total / c->prompts) : json_null(), "detectors", report->detectors,
			 "detectors_without_counts", report->dead, "pairs_per_bin", report->pairs_per_bin, "iterations",
			 report->iterations, "fan_error", report->fan_error, "seconds", r->seconds);
}

static void clear_randoms(struct case_corrections *c)
{
	free(c->randoms.expected);
	c->randoms.expected = NULL;
}

bool case_randoms_are_known(const struct case_corrections *c)
{
	return (c->made & PET_CORRECT_RANDOMS) || strcasestr(c->s->part[SINOGRAM_EMISSION].header.corrections, "random") ||
	       strstr(c->s->facts.corrected, "RAN");
}

const struct case_step case_step_randoms = {
	.correction = PET_CORRECT_RANDOMS,
	.prepare = prepare_randoms,
	.make = make_randoms,
	.details = randoms_details,
	.clear = clear_randoms,
};
