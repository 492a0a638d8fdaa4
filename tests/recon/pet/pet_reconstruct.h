/* SPDX-License-Identifier: Apache-2.0 */
/* A PET session from its plan to its volume in one call, for arrays in host memory. */
#ifndef TOMONODE_TESTS_RECON_PET_RECONSTRUCT_H
#define TOMONODE_TESTS_RECON_PET_RECONSTRUCT_H

#include "recon/pet/pet.h"

/* y, background: michelogram_size() floats; factors: the planes that `which` says; background may be NULL. ret_volume: nx * ny *
 * nz floats. */
static inline int pet_reconstruct_with(const struct pet_protocol *p, const struct pet_plan *plan, const struct michelogram *m,
				       struct device *dev, struct pet_cache *cache, const float *y, enum pet_factors which,
				       const float *factors, const float *background, const struct monitor *monitor,
				       float *ret_volume, struct pet_report *ret_report, struct err *err)
{
	const float *data[] = {[PET_DATA] = y, [PET_FACTORS] = factors, [PET_BACKGROUND] = background};
	struct pet_session *s = NULL;
	int r = pet_open(p, plan, m, which, background, dev, cache, &s, err);

	for (int role = PET_DATA; r == 0 && role <= PET_BACKGROUND; role++) {
		bool shared = role == PET_FACTORS && which == PET_FACTORS_SHARED;
		int n_planes = (int)(shared ? michelogram_planes(m) : michelogram_data_planes(m));

		if (data[role])
			r = pet_put(s, role, 0, n_planes, data[role], err);
	}
	if (r == 0)
		r = pet_run(s, monitor, ret_report, err);
	if (r == 0)
		r = pet_read_slices(s, 0, plan->grid.n[2], ret_volume, err);
	pet_close(s);
	return r;
}

/* As pet_reconstruct_with(); factors may be NULL, and all TOF bins have the same. */
static inline int pet_reconstruct(const struct pet_protocol *p, const struct pet_plan *plan, const struct michelogram *m,
				  struct device *dev, struct pet_cache *cache, const float *y, const float *factors,
				  const float *background, const struct monitor *monitor, float *ret_volume,
				  struct pet_report *ret_report, struct err *err)
{
	return pet_reconstruct_with(p, plan, m, dev, cache, y, factors ? PET_FACTORS_SHARED : PET_FACTORS_NONE, factors,
				    background, monitor, ret_volume, ret_report, err);
}

#endif
