/* SPDX-License-Identifier: Apache-2.0 */
/* A volume in memory for the tests of node/report; include after cmocka.h. */
#ifndef TOMONODE_TESTS_VOLUME_FIXTURE_H
#define TOMONODE_TESTS_VOLUME_FIXTURE_H

#include "node/tools/image_series.h"
#include "tests/test.h"

TEST_GIVES_BACK(image_series_close);

/* Make a volume of zeros in the position of a supine patient: columns to the left, rows to the back, slices to the head. It goes
 * when the test ends. */
static inline struct image_series *volume_make(int columns, int rows, int slices, double x, double y, double z)
{
	struct image_series *s = calloc(1, sizeof(*s));

	*s = (struct image_series){.n = {columns, rows, slices},
				   .n_images = 1,
				   .spacing = {x, y, z},
				   .across = {1, 0, 0},
				   .down = {0, 1, 0},
				   .normal = {0, 0, 1},
				   .window = {NAN, NAN},
				   .duration = NAN};
	s->values = calloc((size_t)columns * (size_t)rows * (size_t)slices, sizeof(*s->values));
	s->order = calloc((size_t)slices, sizeof(*s->order));
	for (int k = 0; k < slices; k++)
		s->order[k] = (size_t)(slices - 1 - k); /* the files are in another order than the slices */
	test_later(give_back_image_series_close, s);
	return s;
}

static inline float *volume_at(const struct image_series *s, int i, int j, int k)
{
	return s->values + (s->order[k] * (size_t)s->n[1] + (size_t)j) * (size_t)s->n[0] + (size_t)i;
}

#endif
