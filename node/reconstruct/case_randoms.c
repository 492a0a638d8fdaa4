/* SPDX-License-Identifier: Apache-2.0 */
/* case_randoms.c - the step "randoms": expected randoms of each bin from the delayed coincidences of the data
 * (recon/pet/randoms.h), added to the background b. They are never subtracted. With TOF bins each of the n of the session has 1/n
 * of them.
 *
 * Bins that are no pairs of detectors (arc correction, or angles that are not a whole number of views) have the mean of their
 * neighbours' delayed coincidences instead, and the result says so. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/clock.h"
#include "node/reconstruct/case_corrections.h"
#include "recon/pet/michelogram_pairs.h"

/* Name what the data bring for randoms; NULL: nothing. */
static const char *ready_made(const struct sinogram *s)
{
	if (s->part[SINOGRAM_ADDITIVE].present)
		return "the role ADDITIVE contains the randoms, which would be counted twice";
	if (strcasestr(s->part[SINOGRAM_EMISSION].header.corrections, "random") || strstr(s->facts.corrected, "RAN"))
		return "the data are already corrected for randoms";
	return NULL;
}

static size_t bins_of(const struct case_corrections *c)
{
	return michelogram_planes(c->m) * (size_t)c->m->n_angles * (size_t)c->m->n_radial;
}

static int prepare(struct case_corrections *c, struct err *err)
{
	const struct sinogram_part *part = &c->s->part[SINOGRAM_DELAYEDS];
	const char *ready = ready_made(c->s);
	struct michelogram_index x;
	struct err why = {0};

	(void)err;
	if (ready && part->present)
		case_corrections_say(c, "The delayed coincidences were not used: %s.", ready);
	if (!ready && !part->present)
		case_corrections_say(c,
				     "Not corrected for randoms: the data have neither delayed coincidences nor a background.");
	if (ready || !part->present)
		return 0;
	c->randoms.of_neighbours = michelogram_index_init(&part->header.m, &x, &why) < 0;
	if (c->randoms.of_neighbours)
		case_corrections_say(
			c,
			"The randoms of a bin are the mean of the delayed coincidences of the bins around it, without the "
			"differences between detectors: %s.",
			why.msg);
	c->made |= PET_CORRECT_RANDOMS;
	c->background = true;
	c->bytes_host += bins_of(c) * sizeof(float);
	c->bytes_read += (size_t)part->bytes + randoms_bytes(&part->header.m);
	return 0;
}

/* Read the delayed coincidences. */
static int read_delayeds(struct case_corrections *c, struct err *err)
{
	const struct interfile *h = &c->s->part[SINOGRAM_DELAYEDS].header;
	size_t planes = michelogram_planes(c->m), bins = bins_of(c) / planes;
	uint8_t *bytes = NULL;
	int rc = sinogram_read(c->s, SINOGRAM_DELAYEDS, &bytes, err);

	if (rc < 0)
		return rc;
	if (!c->randoms.expected)
		c->randoms.expected = malloc(planes * bins * sizeof(float));
	if (!c->randoms.expected)
		rc = err_set(err, ENOMEM, "no memory for randoms of %zu bins", planes * bins);
	for (size_t p = 0; rc == 0 && p < planes; p++)
		interfile_plane(h, bytes, p, c->randoms.expected + p * bins);
	free(bytes);
	return rc;
}

/* Replace the delayed coincidences by expected randoms. A frame or gate may have none; then there are no randoms. */
static int estimate(struct case_corrections *c, struct err *err)
{
	const struct michelogram *m = &c->s->part[SINOGRAM_DELAYEDS].header.m;
	struct case_randoms *r = &c->randoms;
	struct randoms_report report = {0};
	struct err why = {0};
	int rc = r->of_neighbours ? randoms_from_neighbours(m, r->expected, r->expected, &report.total, &why)
				  : randoms_from_delayeds(m, r->expected, r->expected, &report, &why);

	if (rc == -EDOM && sinogram_images(c->s) > 0)
		rc = 0;
	if (rc == -EDOM)
		return err_set(err, EBADMSG, "DELAYEDS: %s: reconstruct with a protocol without \"randoms\" in `corrections`",
			       why.msg);
	if (rc == -EINVAL) /* the error is about the data: the case is to be held */
		return err_set(err, EBADMSG, "DELAYEDS: %s", why.msg);
	if (rc < 0 && err)
		*err = why;
	r->total += report.total;
	r->report = report;
	return rc;
}

static void add(const void *ctx, size_t k, size_t plane, float *b)
{
	const struct case_corrections *c = ctx;
	size_t bins = (size_t)c->m->n_angles * (size_t)c->m->n_radial;
	const float *expected = c->randoms.expected + plane * bins;
	float share = c->m->tof.n > 0 ? 1.0f / (float)c->m->tof.n : 1;

	(void)k;
	for (size_t i = 0; i < bins; i++)
		b[i] += share * expected[i];
}

static int make(struct case_corrections *c, struct err *err)
{
	double begun = clock_seconds();
	int rc = read_delayeds(c, err);

	if (rc == 0)
		rc = estimate(c, err);
	c->randoms.seconds += clock_seconds() - begun;
	if (rc == 0)
		case_corrections_add_background(c, (struct case_background){add, c});
	return rc;
}

static json_t *details(const struct case_corrections *c)
{
	const struct case_randoms *r = &c->randoms;
	const struct randoms_report *report = &r->report;

	if (!r->expected)
		return json_null();
	return json_pack("{s:s, s:f, s:o, s:i, s:i, s:f, s:i, s:f, s:f}", "method",
			 r->of_neighbours ? "mean of neighbouring bins" : "maximum likelihood of singles", "total", r->total,
			 "share", c->prompts > 0 ? json_real(r->total / c->prompts) : json_null(), "detectors", report->detectors,
			 "detectors_without_counts", report->dead, "pairs_per_bin", report->pairs_per_bin, "iterations",
			 report->iterations, "fan_error", report->fan_error, "seconds", r->seconds);
}

static void clear(struct case_corrections *c)
{
	free(c->randoms.expected);
	c->randoms.expected = NULL;
}

const struct case_step case_step_randoms = {PET_CORRECT_RANDOMS, prepare, make, details, clear};
