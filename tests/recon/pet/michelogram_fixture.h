/* SPDX-License-Identifier: Apache-2.0 */
/* Michelograms and their scans, which belong to the test. */
#ifndef TOMONODE_TESTS_MICHELOGRAM_FIXTURE_H
#define TOMONODE_TESTS_MICHELOGRAM_FIXTURE_H

#include "recon/core/scan.h"
#include "recon/pet/michelogram.h"
#include "tests/recon/dbt_fixture.h"

/* The segments of a scanner with its rings. */
static inline void fixture_segments(struct michelogram *m, int span, int max_difference)
{
	assert_int_equal(michelogram_segments(m->scanner.rings, span, max_difference, &m->segments, &m->n_segments, NULL), 0);
	test_later(free, m->segments);
}

/* The scan of a michelogram, and the plane of each of its u. */
static inline struct scan *fixture_michelogram_scan(const struct michelogram *m, double fov, int **ret_plane)
{
	struct scan *scan = NULL;

	assert_int_equal(scan_create_michelogram(m, fov, NULL, &scan, ret_plane, NULL), 0);
	test_later(give_back_scan_free, scan);
	test_later(free, *ret_plane);
	return scan;
}

#endif
