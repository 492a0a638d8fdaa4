/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device compared with the CPU device on stacks of 2-D parallel beams: lines of each model, sweeps, convolution,
 * voxel-driven backprojection, whole reconstructions. Skipped (exit code 77) without a CUDA device. */
#include "tests/recon/parallel/parallel_fixture.h"
#include "tests/test.h"

/* Some hundred float32 terms in another order: the tolerance is 1e-5 of the largest value. */
#define DEVICE_TOL 1e-5

struct setup {
	const char *name;
	int pixels, slices, angles, radial;
	double pixel, bin, fov;
	bool z_fastest;
};

static const struct setup setups[] = {
	{"one slice", 41, 1, 8, 59, 1, 1, 40, false},	      {"a stack", 37, 5, 12, 51, 1.1, 0.9, 19, true},
	{"a deep stack", 20, 72, 4, 31, 1, 1, 20, true},      {"fine rays", 33, 4, 4, 151, 1, 0.31, 24, true},
	{"many rays", 160, 1, 4, 231, 1, 1, 120, false},      {"coarse rays", 61, 16, 7, 33, 1, 2.3, 44, true},
	{"many views", 96, 8, 180, 97, 1, 1, 300, true},      {"long rows", 24, 3, 2, 1400, 1, 0.02, 300, true},
	{"a whole circle", 64, 34, 130, 64, 1, 1, 300, true},
};
#define N_SETUPS (sizeof(setups) / sizeof(setups[0]))
static const enum projection_model models[] = {PROJECTION_PATHS, PROJECTION_JOSEPH, PROJECTION_SAMPLED};

/* SWEEP_PARTS: a sweep on a device with so little memory that no table of entries is kept: they are computed for one view at a
 * time or, for one slice, when they are used. */
enum op { FORWARD, ADJOINT, REPEATABLE, SWEEP, SWEEP_PARTS, INTERPOLATED, CONVOLVE, TRANSFORM, N_OPS };

/* Apply an operation to the same random numbers on both devices. */
static float *done(struct device *dev, const struct setup *s, enum projection_model model, enum op op, size_t *ret_n)
{
	const struct parallel_scan p = {
		.n_slices = s->slices, .n_angles = s->angles, .n_radial = s->radial, .bin = s->bin, .slice = 2, .arc = 180};
	struct grid g = {{s->pixels, s->pixels - 3, s->slices},
			 {s->pixel, s->pixel, 2},
			 {-0.5 * s->pixels * s->pixel, -0.5 * (s->pixels - 3) * s->pixel, -s->slices},
			 s->z_fastest};
	struct projection_spec spec = {.model = model,
				       .n_views = s->angles,
				       .grid = &g,
				       .deterministic = op == REPEATABLE,
				       .sampling = 0.17,
				       .sweeps = op == SWEEP || op == SWEEP_PARTS};
	struct scan *scan;
	struct projection *a;
	struct buf x, y, other;
	float *hx, *hy;
	size_t n_x = grid_size(&g), n_y = parallel_size(&p), memory = dev->memory;

	assert_int_equal(scan_create_parallel(&p, s->slices, s->fov, NULL, &scan, NULL), 0);
	test_later(give_back_scan_free, scan);
	spec.scan = scan;
	dev->memory = op == SWEEP_PARTS ? 1 << 12 : memory;
	a = fixture_projection(dev, &spec);
	dev->memory = memory;
	hx = fixture_floats(n_x, 1, 0.1f, 1);
	hy = fixture_floats(n_y, 2, 0.1f, 1);
	for (size_t i = 0; s->z_fastest && i < n_x; i++) /* the padding */
		hx[i] = i % grid_column(&g) < (size_t)g.n[2] ? hx[i] : 0;
	x = fixture_upload(dev, hx, n_x);
	y = fixture_upload(dev, hy, n_y);
	other = fixture_upload(dev, hy, n_y);
	switch (op) {
	case FORWARD:
		assert_int_equal(dev->ops->forward(a, &x, true, &y, NULL), 0);
		break;
	case ADJOINT:
	case REPEATABLE:
		assert_int_equal(dev->ops->adjoint(a, &y, op == REPEATABLE, &x, NULL), 0);
		break;
	case SWEEP:
	case SWEEP_PARTS:
		for (int i = 0; i < 2; i++)
			assert_int_equal(dev->ops->row_sweep(a, 0.7f, &y, &x, NULL), 0);
		break;
	case INTERPOLATED:
		assert_int_equal(dev->ops->back_interpolated(a, &y, true, &x, NULL), 0);
		break;
	default:
		assert_int_equal(dev->ops->convolve(&y, (size_t)s->angles, s->radial, (size_t)s->slices, hx,
						    op == TRANSFORM && dev->ops->transforms(dev, s->radial), &other, NULL),
				 0);
		break;
	}
	*ret_n = op == FORWARD || op >= CONVOLVE ? n_y : n_x;
	return fixture_download(op == FORWARD ? &y : op >= CONVOLVE ? &other : &x);
}

TEST(operations_agree)
{
	struct device *cuda = fixture_device(FIXTURE_CUDA, 0), *cpu = fixture_device(FIXTURE_CPU, 0);

	for (size_t i = 0; i < N_SETUPS; i++)
		for (int m = 0; m < 3; m++)
			for (enum op op = FORWARD; op < N_OPS; op++) {
				TEST_BLOCK;
				size_t n;
				float *a = done(cuda, &setups[i], models[m], op, &n),
				      *b = done(cpu, &setups[i], models[m], op, &n);
				double d = fixture_difference(a, b, n);

				if (!(d < DEVICE_TOL))
					fail_msg("%s, model %d, operation %d: %g", setups[i].name, (int)models[m], (int)op, d);
			}
}

TEST(large_slices_agree, .tier = 2)
{
	static const struct setup large = {"a large slice", 2000, 1, 720, 2001, 1, 1, 1000, false};
	struct device *cuda = fixture_device(FIXTURE_CUDA, 0), *cpu = fixture_device(FIXTURE_CPU, 0);

	for (enum op op = FORWARD; op <= SWEEP; op++) {
		size_t n;
		float *a = done(cuda, &large, PROJECTION_PATHS, op, &n), *b = done(cpu, &large, PROJECTION_PATHS, op, &n);
		double d = fixture_difference(a, b, n);

		if (!(d < DEVICE_TOL))
			fail_msg("operation %d: %g", (int)op, d);
	}
}

TEST(sweeps_and_sums_repeat)
{
	struct device *dev = fixture_device(FIXTURE_CUDA, 0);

	for (int i = 0; i < 2; i++)
		for (enum op op = REPEATABLE; op <= SWEEP; op++) {
			size_t n;
			float *a = done(dev, &setups[i], PROJECTION_PATHS, op, &n);
			float *b = done(dev, &setups[i], PROJECTION_PATHS, op, &n);

			assert_memory_equal(a, b, n * sizeof(float));
		}
}

/* A disc beside the middle, one slice and several, every algorithm and every route; with bins without datum, and without. */
TEST(images_agree)
{
	struct device *cuda = fixture_device(FIXTURE_CUDA, 0), *cpu = fixture_device(FIXTURE_CPU, 0);

	for (int slices = 1; slices <= 6; slices += 5)
		for (enum algorithm algorithm = 1; algorithm < ALGORITHM_COUNT; algorithm++)
			for (enum parallel_route route = PARALLEL_FOURIER;
			     parallel_supports(algorithm) && route <= PARALLEL_CONVOLUTION; route++) {
				struct parallel_gap gap[] = {{0, 20, -1}, {slices - 1, 33, 7}, {slices - 1, 0, 29}};
				const struct parallel_gaps gaps = {3, 3, gap};
				const struct parallel_scan s = {.n_slices = slices,
								.n_angles = 30,
								.n_radial = 61,
								.bin = 1,
								.slice = 2,
								.arc = 180,
								.gaps = route == PARALLEL_FOURIER ? NULL : &gaps};
				const struct parallel_protocol p = {.algorithm = algorithm,
								    .iterations = 5,
								    .subsets = 5,
								    .relaxation = 0.6,
								    .filter = PARALLEL_SHEPP_LOGAN,
								    .filter_cut = 1,
								    .route = route,
								    .projector = PROJECTION_PATHS};
				/* the transmission model does not see through 180 */
				const double mu = algorithm_info(algorithm)->rule == RULE_TRANSMISSION ? 0.01 : 1;
				float *lines = take_memory(parallel_size(&s) * sizeof(*lines)), *a, *b;
				struct parallel_report report;
				size_t i = 0;
				double d;

				for (int k = 0; k < slices; k++)
					for (int v = 0; v < s.n_angles; v++)
						for (int t = 0; t < s.n_radial; t++, i++) {
							double r = t - 30 - 6 * cos(v * 3.14159265358979 / 30);

							lines[i] =
								r * r < 225 ? (float)(mu * 2 * sqrt(225 - r * r) * (k + 1)) : 0;
						}
				a = parallel_image(&p, &s, cuda, lines, &report);
				b = parallel_image(&p, &s, cpu, lines, &report);
				d = fixture_difference(a, b, (size_t)slices * 61 * 61);
				if (!(d < DEVICE_TOL))
					fail_msg("%d slices, algorithm %d, route %d: %g", slices, (int)algorithm, (int)route, d);
			}
}

TESTS_NEED(device_cuda_count() > 0, "no CUDA device");
