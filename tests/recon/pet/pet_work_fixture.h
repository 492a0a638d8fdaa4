/* SPDX-License-Identifier: Apache-2.0 */
/* A PET session with data, factors and background, and its device. */
#ifndef TOMONODE_TESTS_RECON_PET_WORK_FIXTURE_H
#define TOMONODE_TESTS_RECON_PET_WORK_FIXTURE_H

#include "tests/recon/pet/pet_fixture.h"
#include "tests/test.h"

#define PLANES 25

/* The objects that every test uses: session, device, data, factors and background. */
struct work {
	struct michelogram m;
	struct pet_protocol p;
	struct device *dev;
	struct pet_cache *cache; /* NULL at first */
	struct pet_plan plan;
	struct pet_session *s;
	size_t bins, plane_bins;
	float *data[PET_BACKGROUND + 1]; /* factors: for each TOF bin, all the same; the first planes serve as shared ones */
};

static inline void work_make_tof(struct work *w, int device, struct scan_tof tof)
{
	static const struct shape shapes[] = {
		{SHAPE_CYLINDER_Z, ROLE_BODY, {0, 0, 0}, {65, 65, 200}, 1},
		{SHAPE_ELLIPSOID, ROLE_LESION, {30, -15, 6}, {14, 14, 10}, 20},
	};

	*w = (struct work){.m = pet_scanner_small(true), .p = pet_protocol_small, .dev = fixture_device(device, 2)};
	w->m.tof = tof;
	w->p.iterations = 2;
	w->bins = michelogram_size(&w->m);
	w->plane_bins = w->bins / michelogram_data_planes(&w->m);
	assert_int_equal(michelogram_planes(&w->m), PLANES);
	w->data[PET_DATA] = pet_lines(&w->m, shapes, 2);
	w->data[PET_FACTORS] = fixture_floats(w->bins, 1, 0.2f, 1);
	w->data[PET_BACKGROUND] = fixture_floats(w->bins, 2, 1, 3);
	for (size_t i = 0; i < w->bins; i++) {
		w->data[PET_FACTORS][i] = w->data[PET_FACTORS][i % (PLANES * w->plane_bins)];
		w->data[PET_DATA][i] = w->data[PET_DATA][i] * w->data[PET_FACTORS][i] + w->data[PET_BACKGROUND][i];
	}
}

static inline void work_make(struct work *w, int device)
{
	work_make_tof(w, device, (struct scan_tof){0});
}

TEST_GIVES_BACK(pet_close);

/* Open a session with w->plan. */
static inline void work_open(struct work *w, enum pet_factors factors)
{
	assert_int_equal(pet_open(&w->p, &w->plan, &w->m, factors, true, w->dev, w->cache, &w->s, NULL), 0);
	test_later(give_back_pet_close, w->s);
}

TEST_GIVES_BACK(pet_cache_free);

static inline struct pet_cache *cache_of(struct device *dev, size_t max_bytes)
{
	struct pet_cache *c = pet_cache_create(dev, max_bytes);

	assert_non_null(c);
	test_later(give_back_pet_cache_free, c);
	return c;
}

static inline float *image(struct work *w, struct pet_report *ret_report)
{
	return pet_image_cached(&w->p, &w->m, w->dev, w->cache, w->data[PET_DATA], w->data[PET_FACTORS], w->data[PET_BACKGROUND],
				ret_report);
}

#endif
