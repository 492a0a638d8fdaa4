/* SPDX-License-Identifier: Apache-2.0 */
/* Single scatter simulation: the CUDA device compared with the CPU device. Skipped (exit code 77) without a CUDA device. */
#include "tests/recon/pet/michelogram_fixture.h"
#include "tests/recon/scatter/scatter_fixture.h"
#include "tests/test.h"

/* Of the pair's largest TOF bin. Pairs below 1e-3 of the largest pair count like that: all their photons are at the edge of the
 * energy window, where the table of angles is steep. */
#define DEVICE_TOL 1e-5
#define PAIR_LEAST 1e-3

static const struct scan_tof tofs[] = {{0}, {33, 21.5, 13.6}, {3, 150, 20}, {9, 60, 20}, {300, 3, 25}};

TEST(pairs_agree)
{
	struct device *cpu = fixture_device(FIXTURE_CPU, 0), *cuda = fixture_device(FIXTURE_CUDA, 0);

	for (size_t t = 0; t < sizeof(tofs) / sizeof(tofs[0]); t++) {
		struct scatter_case *c = scatter_case(300, tofs[t]);
		int bins = tofs[t].n > 0 ? tofs[t].n : 1;
		float *a = scatter_pairs_of(cpu, &c->spec, c->activity, c->mu);
		float *b = scatter_pairs_of(cuda, &c->spec, c->activity, c->mu);
		float *again = scatter_pairs_of(cuda, &c->spec, c->activity, c->mu);
		double worst = 0, most = 0;

		for (size_t i = 0; i < SCATTER_PAIRS * (size_t)bins; i++)
			most = fmax(most, (double)a[i]);
		for (size_t i = 0; i < SCATTER_PAIRS; i++) {
			double largest = PAIR_LEAST * most, gap = 0;

			for (size_t k = 0; k < (size_t)bins; k++) {
				largest = fmax(largest, (double)a[k * SCATTER_PAIRS + i]);
				gap = fmax(gap, fabs((double)a[k * SCATTER_PAIRS + i] - (double)b[k * SCATTER_PAIRS + i]));
			}
			worst = fmax(worst, gap / largest);
		}
		print_message("%d TOF bins: %.2g\n", tofs[t].n, worst);
		assert_true(worst < DEVICE_TOL);
		assert_memory_equal(b, again, SCATTER_PAIRS * (size_t)bins * sizeof(*b));
	}
}

/* A whole simulation, with thousands of points and oblique planes. */
TEST(planes_agree)
{
	struct michelogram m = {.scanner = {.rings = 12, .detectors = 120, .ring_spacing = 8, .radius = 300, .bin = 5},
				.n_radial = 61,
				.n_angles = 30,
				.tof = {11, 50, 25}};
	const struct grid g = {{30, 28, 12}, {10, 10, 8}, {-150, -140, -48}, true};
	float *activity = fixture_floats(grid_size(&g), 1, 0, 2), *mu = fixture_floats(grid_size(&g), 2, 0, 0.01f), *out[2];
	struct device *dev[2] = {fixture_device(FIXTURE_CUDA, 0), fixture_device(FIXTURE_CPU, 0)};
	int n;

	fixture_segments(&m, 3, 11);
	n = (int)michelogram_data_planes(&m);
	for (int i = 0; i < 2; i++) {
		struct single_scatter_report report;
		struct single_scatter *s;

		assert_int_equal(single_scatter_open(&m, &usual_window, dev[i], &s, NULL), 0);
		assert_int_equal(single_scatter_run(s, &g, activity, mu, NULL, &report, NULL), 0);
		out[i] = take_memory(michelogram_size(&m) * sizeof(float));
		assert_int_equal(single_scatter_planes(s, 0, n, 2, out[i], NULL), 0);
		single_scatter_close(s);
	}
	assert_true(fixture_difference(out[0], out[1], michelogram_size(&m)) < DEVICE_TOL);
}

TESTS_NEED(device_cuda_count() > 0, "no CUDA device");
