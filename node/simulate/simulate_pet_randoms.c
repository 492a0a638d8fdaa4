/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_pet_randoms.c - randoms that follow the singles of the detectors, which differ. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/tof.h"
#include "node/simulate/simulate_pet.h"
#include "recon/pet/randoms.h"
#include "recon/phantom/poisson.h"

#define SINGLES_SEED 0x73696e67u /* the detectors are the same in all simulations */

double simulate_pet_window(const struct simulate_pet *s)
{
	return s->m.tof.n > 0 ? s->m.tof.n * s->m.tof.width / TOF_MM_PER_PS * 1e-12 : SIMULATE_PET_WINDOW;
}

/* Make the counts of the singles of a bed; scale: of the randoms over the products of `singles`. */
static int make_counts(const struct simulate_pet *s, int bed, const double *singles, size_t n, double scale, float **ret,
		       struct err *err)
{
	double x = M_LN2 * SIMULATE_PET_DURATION / SIMULATE_PET_HALF_LIFE;
	double k = randoms_singles_factor(simulate_pet_window(s), SIMULATE_PET_DURATION, x / -expm1(-x), 2 * x / -expm1(-2 * x));

	if (!*ret)
		*ret = malloc(n * sizeof(**ret));
	if (!*ret)
		return err_set(err, ENOMEM, "no memory for singles of %zu detectors", n);
	for (size_t i = 0; i < n; i++)
		(*ret)[i] = (float)(singles[i] * sqrt(scale / k));
	return s->o.noise ? pet_phantom_noise(*ret, n, (size_t)bed * n, s->o.seed ^ SINGLES_SEED, err) : 0;
}

int simulate_pet_randoms(const struct simulate_pet *s, int bed, const float *ray, float **ret_randoms, float **ret_singles,
			 struct err *err)
{
	const struct michelogram *m = &s->m;
	size_t n = (size_t)m->scanner.rings * (size_t)m->scanner.detectors;
	size_t bins = michelogram_planes(m) * (size_t)m->n_angles * (size_t)m->n_radial;
	double *singles = malloc(n * sizeof(*singles)), sum = 0, scale = 0;
	uint64_t stream = poisson_stream(SINGLES_SEED, 0);
	float *randoms = *ret_randoms ? *ret_randoms : malloc(bins * sizeof(*randoms));
	int rc = 0;

	*ret_randoms = randoms;
	if (!singles || !randoms)
		rc = err_set(err, ENOMEM, "no memory for randoms of %zu bins", bins);
	for (size_t i = 0; rc == 0 && i < n; i++)
		singles[i] = (1.5 + 0.5 * cos(2 * M_PI * (double)(i % (size_t)m->scanner.detectors) / m->scanner.detectors)) *
			     (0.7 + 0.6 * poisson_uniform(&stream));
	if (rc == 0)
		rc = randoms_from_singles(m, singles, 1, randoms, err);
	for (size_t i = 0; rc == 0 && i < bins; i++)
		sum += (double)(randoms[i] *= ray[i % (size_t)m->n_radial]);
	if (rc == 0)
		scale = s->o.randoms * s->o.counts / simulate_pet_scans(s) / sum;
	for (size_t i = 0; rc == 0 && i < bins; i++)
		randoms[i] = (float)((double)randoms[i] * scale);
	if (rc == 0 && s->o.singles)
		rc = make_counts(s, bed, singles, n, scale, ret_singles, err);
	free(singles);
	return rc;
}
