/* SPDX-License-Identifier: Apache-2.0 */
/* case_attenuation_once.c - refuse factors of the data that contain the attenuation which the node makes from a CT or a map, too.
 *
 * NORMALISATION is for the detectors; programs also write attenuation and normalisation as one file of factors. Given in this
 * role, beside a map, the attenuation would be corrected twice without a word. */
#include <errno.h>
#include <stdlib.h>

#include "node/base/thread_pool.h"
#include "node/reconstruct/case_corrections.h"
#include "recon/pet/attenuation_in_factors.h"

size_t case_attenuation_once_bytes(const struct case_corrections *c)
{
	return c->s->part[SINOGRAM_NORMALISATION].present ? michelogram_bins(c->m) * sizeof(float) + case_planes_bytes(c->s) : 0;
}

int case_check_attenuation_once(const struct case_corrections *c, struct err *err)
{
	struct attenuation_in_factors in;
	float *factors;
	int rc;

	if (!c->s->part[SINOGRAM_NORMALISATION].present)
		return 0;
	factors = malloc(michelogram_bins(c->m) * sizeof(*factors));
	if (!factors)
		return err_set(err, ENOMEM, "no memory for factors of %zu bins", michelogram_bins(c->m));
	rc = case_sum_planes(c->s, PET_FACTORS, threads_available(), c->work->monitor, c->kept, factors, err);
	if (rc == 0) {
		in = attenuation_in_factors(c->m, factors, attenuation_factors(c->attenuation.made));
		if (in.found)
			rc = err_set(err, EBADMSG,
				     "NORMALISATION: its values rise with the line integrals of the %s (ln of the value: %.2f of "
				     "the integral of mu), so that attenuation is in them, and would be corrected twice: give "
				     "factors of the detectors alone, or reconstruct with a protocol without \"attenuation\" in "
				     "`corrections`",
				     case_maps_word(c), in.slope);
	}
	free(factors);
	return rc;
}
