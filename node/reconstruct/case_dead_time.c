/* SPDX-License-Identifier: Apache-2.0 */
/* case_dead_time.c - the step "dead_time": the counts that were lost to dead time, as far as the data describe it. The factor m
 * of each bin is multiplied by the fraction of the counts that was not lost, so that background and noise stay those of the
 * counts: 1 / Dead Time Factor, or the mean over the bin's pairs of detectors of the product of both live fractions
 * (struct pet_source). No parameter is assumed. All frames are corrected, or none: a series has one scale. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/clock.h"
#include "node/reconstruct/case_corrections.h"
#include "node/sinogram/pet_source.h"
#include "recon/pet/michelogram_pairs.h"

static bool is_done(const struct sinogram *s)
{
	return strcasestr(s->part[SINOGRAM_EMISSION].header.corrections, "dead") || strstr(s->facts.corrected, "DTIM");
}

bool case_dead_time_is_known(const struct sinogram *s)
{
	double factor;

	return s->part[SINOGRAM_EMISSION].present && !is_done(s) && sinogram_dead_time_factor(s, 0, &factor, NULL) > 0;
}

/* Read the factors of all frames: of all, or of none. Returns 1, 0 or an error. */
static int find_factors(struct case_corrections *c, struct err *err)
{
	struct case_dead_time *d = &c->dead_time;
	int n = pet_images_count(&c->s->images), found = 0;

	for (int i = 0; i < n; i++) {
		double factor = 1;
		int rc = sinogram_dead_time_factor(c->s, i, &factor, err);

		if (rc < 0)
			return rc;
		if (i > 0 && rc != found)
			return err_set(err, EBADMSG, "%s %d has %s Dead Time Factor (0054,1324), those before have %s",
				       pet_division_name(c->s->images.of), i + 1, rc ? "a" : "no", found ? "one" : "none");
		found = rc;
		d->least = i == 0 ? factor : fmin(d->least, factor);
		d->most = fmax(d->most, factor);
	}
	return found;
}

static void say_factors(struct case_corrections *c)
{
	if (c->dead_time.least < c->dead_time.most)
		case_corrections_say(c, "Corrected for dead time by the factors of the data, %g to %g.", c->dead_time.least,
				     c->dead_time.most);
	else
		case_corrections_say(c, "Corrected for dead time by the factor of the data, %g.", c->dead_time.most);
}

static size_t count_detectors(const struct case_corrections *c)
{
	return (size_t)c->m->scanner.rings * (size_t)c->m->scanner.detectors;
}

/* Say why the parameters are not used. */
static void say_unknown(struct case_corrections *c, int n, int without, int first, const char *why)
{
	if (without == n)
		case_corrections_say(c, "Not corrected for dead time: %s.", why);
	else
		case_corrections_say(
			c,
			"Not corrected for dead time, so that all time frames have one scale: in %d of %d, the first is %d, "
			"%s.",
			without, n, first + 1, why);
}

/* Find out whether the parameters and the singles give the live fractions of all frames: 1, 0 or an error. */
static int find_alive(struct case_corrections *c, struct err *err)
{
	struct case_dead_time *d = &c->dead_time;
	double begun = clock_seconds(), *alive = malloc(count_detectors(c) * sizeof(*alive));
	int n = c->s->images.of == PET_FRAMES ? c->s->images.n : 1, without = 0, first = 0;
	int rc = alive ? 0 : err_set(err, ENOMEM, "no memory for dead time");
	struct err reason = {0};

	for (int i = 0; rc == 0 && i < n; i++) {
		struct err why = {0};

		rc = c->s->source->alive(c->s, i, alive, &why);
		if (rc < 0 && rc != -EDOM && err)
			*err = why;
		if (rc != -EDOM)
			continue;
		rc = 0;
		if (without++ == 0) {
			first = i;
			reason = why;
		}
	}
	free(alive);
	d->seconds += clock_seconds() - begun;
	if (rc < 0)
		return rc;
	if (without > 0)
		say_unknown(c, n, without, first, reason.msg);
	else
		case_corrections_say(c, "Corrected for dead time by the parameters of the normalisation and the singles "
					"with the formula of NiftyPET, which was not compared with a scanner.");
	return without == 0;
}

static int prepare_dead_time(struct case_corrections *c, struct err *err)
{
	int rc;

	if (is_done(c->s))
		return 0;
	rc = c->s->source->alive ? find_alive(c, err) : find_factors(c, err);
	if (rc < 0)
		return rc;
	if (rc == 0) {
		if (!c->s->source->alive)
			case_corrections_say(c, "Not corrected for dead time: the data do not describe it.");
		return 0;
	}
	if (!c->s->source->alive)
		say_factors(c);
	c->made |= PET_CORRECT_DEAD_TIME;
	c->factors = true;
	c->bytes_host += c->s->source->alive ? michelogram_bins(c->m) * sizeof(float) : 0;
	c->bytes_read += c->s->source->alive ? randoms_bytes(c->m) : 0;
	return 0;
}

/* Compute the mean live fraction of the pairs of each bin. */
static int average_live_fractions(struct case_corrections *c, const double *alive, struct err *err)
{
	float *to = c->dead_time.alive;
	struct michelogram_index x;
	int rc = michelogram_index_init(c->m, &x, err);

	if (rc == 0)
		rc = randoms_from_singles(c->m, alive, 1, to, err); /* the sums of the products */
	for (int plane = 0; rc == 0 && plane < x.n_planes; plane++) {
		float pairs = (float)(michelogram_plane_rings(&x, plane).n * x.mash);

		for (size_t i = 0; i < michelogram_plane_bins(c->m); i++)
			to[(size_t)plane * michelogram_plane_bins(c->m) + i] /= pairs;
	}
	return rc;
}

static int make_alive(struct case_corrections *c, struct err *err)
{
	struct case_dead_time *d = &c->dead_time;
	size_t n = count_detectors(c);
	double *alive = malloc(n * sizeof(*alive));
	int rc;

	if (!d->alive)
		d->alive = malloc(michelogram_bins(c->m) * sizeof(float));
	rc = alive && d->alive ? c->s->source->alive(c->s, c->s->chosen, alive, err)
			       : err_set(err, ENOMEM, "no memory for dead time");
	for (size_t i = 0; rc == 0 && i < n; i++) {
		d->most = fmax(d->most, 1 / alive[i]);
		d->least = i == 0 && d->n_computed == 0 ? 1 / alive[i] : fmin(d->least, 1 / alive[i]);
	}
	if (rc == 0)
		rc = average_live_fractions(c, alive, err);
	free(alive);
	return rc;
}

void case_dead_time_multiply(const struct case_corrections *c, size_t plane, float *m)
{
	const struct case_dead_time *d = &c->dead_time;
	size_t n = michelogram_plane_bins(c->m);

	for (size_t i = 0; i < n && d->alive; i++)
		m[i] *= d->alive[plane * n + i];
	for (size_t i = 0; i < n && d->factor > 1; i++)
		m[i] /= (float)d->factor;
}

static void multiply_dead_time(const void *ctx, size_t plane, float *m)
{
	case_dead_time_multiply(ctx, plane, m);
}

static int make_dead_time(struct case_corrections *c, struct err *err)
{
	struct case_dead_time *d = &c->dead_time;
	double begun = clock_seconds();
	int rc = c->s->source->alive ? make_alive(c, err) : sinogram_dead_time_factor(c->s, c->s->chosen, &d->factor, err);

	d->seconds += clock_seconds() - begun;
	d->n_computed++;
	if (rc >= 0)
		case_corrections_add_factor(c, (struct case_factor){multiply_dead_time, c});
	return rc < 0 ? rc : 0;
}

static json_t *dead_time_details(const struct case_corrections *c)
{
	const struct case_dead_time *d = &c->dead_time;

	if (!(c->made & PET_CORRECT_DEAD_TIME) || d->n_computed == 0)
		return json_null();
	return json_pack("{s:s, s:i, s:i, s:f, s:f, s:f}", "of", d->alive ? "detectors" : "acquisition", "computed",
			 d->n_computed, "cached", 0, "least", d->least, "most", d->most, "seconds", d->seconds);
}

static void clear_dead_time(struct case_corrections *c)
{
	free(c->dead_time.alive);
}

const struct case_step case_step_dead_time = {
	.correction = PET_CORRECT_DEAD_TIME,
	.prepare = prepare_dead_time,
	.make = make_dead_time,
	.details = dead_time_details,
	.clear = clear_dead_time,
};
