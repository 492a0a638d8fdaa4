/* SPDX-License-Identifier: Apache-2.0 */
/* case_units.c - whether delayed coincidences and singles are in the unit of the prompts.
 *
 * Delayed coincidences are measured counts. Prompts that were corrected beforehand are counts times factors, and randoms from raw
 * delayed coincidences would be wrong by these. The header alone does not tell: Corrected Image also lists effects that the data
 * do not have, as those of `simulate pet`. Counts are whole numbers, counts times factors are not: delayed coincidences that are
 * whole beside prompts that are not, and that are stated to be corrected, are refused. A correction whose role is among the data
 * is still to be applied, whatever the header says. The same holds for singles: those in counts are measured if they are whole
 * numbers, and rates are, because expectations without noise are only simulated, in counts. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/thread_pool.h"
#include "node/reconstruct/case_corrections.h"

static const struct {
	const char *term, *word, *name;	      /* in Corrected Image, in "applied corrections", in messages */
	enum sinogram_role role, with_others; /* 0: none */
} scaling[] = {
	{"NORM", "normali", "detector efficiencies", SINOGRAM_NORMALISATION, SINOGRAM_MULTIPLICATIVE},
	{"ATTN", "attenuation", "attenuation", SINOGRAM_ATTENUATION, SINOGRAM_MULTIPLICATIVE},
	{"DTIM", "dead", "dead time", 0, 0},
	{"DECY", "decay", "decay", 0, 0},
};
#define SCALING (sizeof(scaling) / sizeof(scaling[0]))

static bool is_present(const struct sinogram *s, enum sinogram_role role)
{
	return role > 0 && s->part[role].present;
}

/* Write what the prompts are stated to be corrected for by factors; "": nothing. */
static void write_stated(const struct sinogram *s, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < SCALING && n < size; i++)
		if ((strstr(s->facts.corrected, scaling[i].term) ||
		     strcasestr(s->part[SINOGRAM_EMISSION].header.corrections, scaling[i].word)) &&
		    !is_present(s, scaling[i].role) && !is_present(s, scaling[i].with_others))
			n += (size_t)snprintf(ret + n, size - n, "%s%s", n ? ", " : "", scaling[i].name);
}

/* Return the first of n values that is no whole number; n: there is none. */
static size_t first_fraction(const float *values, size_t n)
{
	size_t i = 0;

	while (i < n && values[i] == rintf(values[i]))
		i++;
	return i;
}

static bool may_have_fractions(const struct interfile *h)
{
	return h->number == INTERFILE_FLOAT || h->scale != 1;
}

size_t case_units_bytes(const struct case_corrections *c)
{
	char names[100];

	write_stated(c->s, names, sizeof(names));
	return names[0] && may_have_fractions(&c->s->part[SINOGRAM_EMISSION].header) ? michelogram_bins(c->m) * sizeof(float) : 0;
}

int case_check_units(const struct case_corrections *c, const char *role, const float *delayeds, struct err *err)
{
	size_t n = case_units_bytes(c) / sizeof(float), n_radial = (size_t)c->m->n_radial, n_angles = (size_t)c->m->n_angles, at;
	float *prompts;
	char names[100];
	int rc;

	if (n == 0 || (delayeds && first_fraction(delayeds, n) < n))
		return 0;
	prompts = malloc(n * sizeof(*prompts));
	if (!prompts)
		return err_set(err, ENOMEM, "no memory for prompts of %zu bins", n);
	rc = case_sum_planes(c->s, PET_DATA, threads_available(), c->work->monitor, c->kept, prompts, err);
	at = rc == 0 ? first_fraction(prompts, n) : n;
	write_stated(c->s, names, sizeof(names));
	if (at < n)
		rc = err_set(err, EBADMSG,
			     "%s are counts, but EMISSION (plane %zu, angle %zu, radial bin %zu: %g) was corrected beforehand "
			     "for %s: the randoms would be in another unit; give the prompts as measured, or reconstruct with a "
			     "protocol without \"randoms\" in `corrections`",
			     role, at / n_radial / n_angles, at / n_radial % n_angles, at % n_radial, (double)prompts[at], names);
	free(prompts);
	return rc;
}

int case_check_singles(const struct case_corrections *c, double prompts, struct err *err)
{
	const struct case_randoms *r = &c->randoms;

	if (!r->of_singles || r->singles_of_frame >= 2 * prompts)
		return 0;
	return err_set(
		err, EBADMSG, "SINGLES: %g singles, but EMISSION has %g prompts, each of two of them: check unit, which is %s",
		r->singles_of_frame, prompts, c->s->part[SINOGRAM_SINGLES].header.singles.rates ? "counts per second" : "counts");
}
