/* SPDX-License-Identifier: Apache-2.0 */
/* Expected random coincidences of the bins of a PET sinogram, from delayed coincidences or from singles.
 *
 * Randoms of a pair of detectors a, b are proportional to the product of their singles rates: R_ab = r_a r_b. A bin is expected
 * to have the sum over its pairs (recon/pet/michelogram_pairs.h). Delayed coincidences D are such randoms, with Poisson noise:
 *
 *   F_a = sum over b, in coincidence with a, of D_ab (fan sum);   r_a <- F_a / sum of r_b, detector by detector, in place
 *
 * which is the maximum of the likelihood of all r when every bin is one pair (STIR: buildblock/ML_norm.cxx). Of bins that are
 * sums of pairs (span, mashing) only the sum is measured: F_a is then its expected value, given the bins' counts and the present
 * r (expectation maximisation):
 *
 *   F_a = r_a sum over b of r_b D_bin / E_bin,   E_bin = sum over the pairs of the bin of r r
 *
 * The estimate of a bin has the noise of the counts of two detectors' fans instead of that of its own few counts. A detector
 * without counts (dead, a gap) has r = 0. The counts of bins that are not measured though their crystals are in coincidence (ring
 * differences or planes that the data do not have, single dead pairs) are, in this estimate, those that are expected: expectation
 * maximisation with missing data.
 *
 * Data are float [plane][angle][radial] of all planes without TOF bins: randoms are the same in all n TOF bins, 1/n each. */
#ifndef TOMONODE_RECON_PET_RANDOMS_H
#define TOMONODE_RECON_PET_RANDOMS_H

#include "recon/pet/michelogram.h"

struct randoms_report {
	double total;	      /* sum of the expected randoms */
	double fan_error;     /* largest |sum of r_a r_b - F_a| / F_a of a detector */
	int iterations;	      /* over the detectors */
	int detectors, dead;  /* number of detectors; of those without counts */
	double pairs_per_bin; /* mean */
};

/* Estimate the expected randoms of each bin from its delayed coincidences, counts >= 0. ret may be `delayeds`. factors: factor m
 * of each bin; crystals whose bins are 0 in all planes are not in coincidence, and their bins have no randoms; bins that are 0 in
 * some planes are not measured: the caller drops the randoms that they get; NULL: all are measured. ret_rates: r of detector ring
 * N + crystal, from which randoms_from_singles() with the factor 1 computes the same randoms to the bit, but for the bins of
 * crystals that are not in coincidence, or NULL. The result does not depend on the number of threads. EINVAL: bins are not pairs
 * of detectors (michelogram_index_init()), or a value is negative or not finite. EDOM: no counts. */
int randoms_from_delayeds(const struct michelogram *m, const float *delayeds, const float *factors, float *ret, double *ret_rates,
			  struct randoms_report *ret_report, struct err *err);

/* Return the memory that randoms_from_delayeds() needs in addition to the data, bytes. */
size_t randoms_bytes(const struct michelogram *m);

/* Estimate the same for bins that are not pairs of detectors (arc correction): the mean of the delayed coincidences of the bins
 * at most RANDOMS_REACH radial bins and angles away in the same plane, with the plane's total. ret may be `delayeds`; ret_total:
 * sum of all, or NULL. Differences between neighbouring detectors are lost. factors: factor m of each bin; those of 0 are dead:
 * they have no randoms, and do not count as neighbours; NULL: none is dead. EINVAL: a value is negative or not finite. EDOM: no
 * counts. */
#define RANDOMS_REACH 7
int randoms_from_neighbours(const struct michelogram *m, const float *delayeds, const float *factors, float *ret,
			    double *ret_total, struct err *err);

/* Compute the randoms of two detectors with S_i and S_j singles during a scan of T s, while the activity decays with the
 * constant l (1/s), as a factor k: R = k S_i S_j. window: both halves of the coincidence window, 2 tau, s. With s(t) = s(0)
 * e^(-l t), the integral of 2 tau s_i s_j is
 *
 *   k = 2 tau f^2 / (f2 T),   f = T / integral of e^(-l t) over the scan = l T / (1 - e^(-l T)),   f2 the same with 2 l
 *
 * This holds as far as all singles decay: those of the crystals' own activity (LSO) do not. */
double randoms_singles_factor(double window, double duration, double f, double f2);

/* Compute the expected randoms of each bin from singles: counts of detector ring N + crystal, N = m->scanner.detectors. factor:
 * see above. EINVAL: as randoms_from_delayeds(). */
int randoms_from_singles(const struct michelogram *m, const double *singles, double factor, float *ret, struct err *err);

#endif
