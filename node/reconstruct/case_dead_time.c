/* SPDX-License-Identifier: Apache-2.0 */
/* case_dead_time.c - the step "dead_time": the counts that were lost to dead time, as far as the data describe it. The factor m
 * of each bin is multiplied by the fraction of the counts that was not lost, so that background and noise stay those of the
 * counts: 1 / Dead Time Factor, or, of a Siemens mMR, the mean over the bin's pairs of detectors of the product of both live
 * fractions (sinogram_mmr_alive()). No parameter is assumed. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/clock.h"
#include "node/reconstruct/case_corrections.h"
#include "recon/pet/michelogram_pairs.h"

static size_t plane_bins(const struct case_corrections *c)
{
	return (size_t)c->m->n_angles * (size_t)c->m->n_radial;
}

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
	int n = sinogram_images(c->s) > 0 ? sinogram_images(c->s) : 1, found = 0;

	for (int i = 0; i < n; i++) {
		double factor = 1;
		int rc = sinogram_dead_time_factor(c->s, i, &factor, err);

		if (rc < 0)
			return rc;
		if (i > 0 && rc != found)
			return err_set(err, EBADMSG, "%s %d has %s Dead Time Factor (0054,1324), those before have %s",
				       sinogram_image_name(c->s), i + 1, rc ? "a" : "no", found ? "one" : "none");
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

static int prepare(struct case_corrections *c, struct err *err)
{
	int rc;

	if (is_done(c->s))
		return 0;
	rc = find_factors(c, err);
	if (rc < 0)
		return rc;
	if (rc == 0 && !c->s->mmr) {
		case_corrections_say(c, "Not corrected for dead time: the data do not describe it.");
		return 0;
	}
	if (rc > 0)
		say_factors(c);
	c->made |= PET_CORRECT_DEAD_TIME;
	c->factors = true;
	c->bytes_host += c->s->mmr ? michelogram_planes(c->m) * plane_bins(c) * sizeof(float) : 0;
	c->bytes_read += c->s->mmr ? randoms_bytes(c->m) : 0;
	return 0;
}

/* Compute the mean live fraction of the pairs of each bin. */
static int average(struct case_corrections *c, const double *alive, struct err *err)
{
	float *to = c->dead_time.alive;
	struct michelogram_index x;
	int rc = michelogram_index_init(c->m, &x, err);

	if (rc == 0)
		rc = randoms_from_singles(c->m, alive, 1, to, err); /* the sums of the products */
	for (int plane = 0; rc == 0 && plane < x.n_planes; plane++) {
		float pairs = (float)(michelogram_plane_rings(&x, plane).n * x.mash);

		for (size_t i = 0; i < plane_bins(c); i++)
			to[(size_t)plane * plane_bins(c) + i] /= pairs;
	}
	return rc;
}

/* Note that the chosen frame is not corrected; after the last frame, say which are not. Then DTIM is not in the result. */
static void leave_out(struct case_corrections *c, const char *why)
{
	struct case_dead_time *d = &c->dead_time;

	if (d->without++ == 0) {
		d->first_without = c->s->chosen;
		snprintf(d->why, sizeof(d->why), "%s", why);
	}
	c->s->made &= ~PET_CORRECT_DEAD_TIME;
	d->unknown = true;
}

static void say_without(struct case_corrections *c)
{
	const struct case_dead_time *d = &c->dead_time;
	int n = sinogram_images(c->s);

	if (d->without == 0 || c->s->chosen + 1 < n)
		return;
	if (d->n_computed == 0)
		case_corrections_say(c, "Not corrected for dead time: %s.", d->why);
	else
		case_corrections_say(c, "Not corrected for dead time in %d of %d %ss, the first is %d: %s.", d->without, n,
				     sinogram_image_name(c->s), d->first_without + 1, d->why);
}

/* The parameters of an mMR: what they give for a frame decides whether they are used for it. */
static int make_alive(struct case_corrections *c, struct err *err)
{
	struct case_dead_time *d = &c->dead_time;
	size_t n = (size_t)c->m->scanner.rings * (size_t)c->m->scanner.detectors;
	bool first = d->n_computed == 0;
	double *alive = malloc(n * sizeof(*alive));
	struct err why = {0};
	int rc;

	d->unknown = false;
	if (!d->alive)
		d->alive = malloc(michelogram_planes(c->m) * plane_bins(c) * sizeof(float));
	rc = alive && d->alive ? sinogram_mmr_alive(c->s, alive, &why) : err_set(&why, ENOMEM, "no memory for dead time");
	if (rc == -EDOM) {
		leave_out(c, why.msg);
		rc = 0;
	} else if (rc == 0) {
		for (size_t i = 0; i < n; i++) {
			d->most = fmax(d->most, 1 / alive[i]);
			d->least = i == 0 && first ? 1 / alive[i] : fmin(d->least, 1 / alive[i]);
		}
		rc = average(c, alive, &why);
		if (first)
			case_corrections_say(c, "Corrected for dead time by the parameters of the normalisation and the singles "
						"with the formula of NiftyPET, which was not compared with a scanner.");
	}
	free(alive);
	if (rc < 0 && err)
		*err = why;
	return rc;
}

void case_dead_time_multiply(const struct case_corrections *c, size_t plane, float *m)
{
	const struct case_dead_time *d = &c->dead_time;
	size_t n = plane_bins(c);

	for (size_t i = 0; i < n && d->alive && !d->unknown; i++)
		m[i] *= d->alive[plane * n + i];
	for (size_t i = 0; i < n && d->factor > 1; i++)
		m[i] /= (float)d->factor;
}

static void multiply(const void *ctx, size_t plane, float *m)
{
	case_dead_time_multiply(ctx, plane, m);
}

static int make(struct case_corrections *c, struct err *err)
{
	struct case_dead_time *d = &c->dead_time;
	double begun = clock_seconds();
	int rc = c->s->mmr ? make_alive(c, err) : sinogram_dead_time_factor(c->s, c->s->chosen, &d->factor, err);

	d->seconds += clock_seconds() - begun;
	d->n_computed += !d->unknown;
	say_without(c);
	if (rc >= 0 && !d->unknown)
		case_corrections_add_factor(c, (struct case_factor){multiply, c});
	return rc < 0 ? rc : 0;
}

static json_t *details(const struct case_corrections *c)
{
	const struct case_dead_time *d = &c->dead_time;

	if (!(c->made & PET_CORRECT_DEAD_TIME) || d->n_computed == 0)
		return json_null();
	return json_pack("{s:s, s:i, s:i, s:i, s:f, s:f, s:f}", "of", d->alive ? "detectors" : "acquisition", "computed",
			 d->n_computed, "cached", 0, "without", d->without, "least", d->least, "most", d->most, "seconds",
			 d->seconds);
}

static void clear(struct case_corrections *c)
{
	free(c->dead_time.alive);
}

const struct case_step case_step_dead_time = {PET_CORRECT_DEAD_TIME, prepare, make, details, clear};
