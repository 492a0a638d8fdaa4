/* SPDX-License-Identifier: Apache-2.0 */
/* Attenuation factors of PET: the fraction exp(-integral of mu) of the annihilations on a ray whose two photons leave the body,
 * for every ray of a michelogram, computed with the forward projector of a device from a map of mu (recon/pet/mu_map.h). Time of
 * flight changes nothing: all TOF bins of a ray have the same factor. 200 mm of water: 1 / 6.82.
 *
 * The grid of the map does not depend on the protocol, so that the factors serve every reconstruction of these data: it contains
 * all rays, not only those of the field of view. A ray outside of it (0.98 of the ring's radius) has the factor 1. */
#ifndef TOMONODE_RECON_ATTENUATION_H
#define TOMONODE_RECON_ATTENUATION_H

#include "recon/core/monitor.h"
#include "recon/pet/pet.h"

struct attenuation_plan {
	struct grid grid;		    /* of the map; z_fastest, centred on the scanner's axis and middle */
	double radius;			    /* mm: rays are followed inside of it */
	int views;			    /* that are projected together */
	size_t bins;			    /* planes * angles * radial bins */
	size_t bytes_device, bytes_threads; /* as in struct pet_plan */
	size_t bytes_host;		    /* factors, map and working memory */
};

/* Plan the factors of a michelogram. memory_limit: bytes on the device; 0: the device's memory. ENOMEM: one angle does not fit.
 */
int attenuation_plan(const struct michelogram *m, struct device *dev, size_t memory_limit, struct attenuation_plan *ret_plan,
		     struct err *err);

/* Factors and their map. Those that were made with a cache stay in it, for later cases of the same device. */
struct attenuation;
/* Allocate them; the caller then writes the map. key: identifies everything that the map is made from, for the cache. ENOMEM. */
int attenuation_new(const struct attenuation_plan *plan, const struct michelogram *m, uint64_t key, struct attenuation **ret,
		    struct err *err);
/* Return factors with this key, michelogram and grid from the cache; NULL: not there, or cache is NULL. */
struct attenuation *attenuation_find(struct pet_cache *cache, const struct attenuation_plan *plan, const struct michelogram *m,
				     uint64_t key);
float *attenuation_map(struct attenuation *a);		       /* mu, 1/mm; grid_size() floats in the order of plan->grid */
const float *attenuation_factors(const struct attenuation *a); /* [plane][angle][radial], 0 to 1 */
/* Compute the factors from the map, and store both in the cache (NULL: none). From the thread that owns the device. ECANCELED:
 * the monitor has cancelled. */
int attenuation_compute(struct attenuation *a, const struct michelogram *m, struct device *dev, struct pet_cache *cache,
			const struct monitor *monitor, struct err *err);
/* End the use; frees them if they are not in the cache. Accepts NULL; returns NULL. */
struct attenuation *attenuation_release(struct attenuation *a, struct pet_cache *cache);

#endif
