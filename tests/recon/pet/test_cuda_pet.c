/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device compared with the CPU device on parallel rays: the three models, forward and back, the volume operations of
 * PET, and a whole reconstruction. Skipped (exit code 77) without a CUDA device. */
#include "kernels/tof.h"
#include "recon/core/linop.h"
#include "recon/core/projector.h"
#include "recon/core/scan.h"
#include "recon/pet/attenuation.h"
#include "recon/pet/michelogram.h"
#include "tests/recon/pet/pet_fixture.h"
#include "tests/test.h"

/* Some hundred float32 terms in another order, ends of steps rounded to 2^-24 of some hundred mm: the tolerance is 1e-5 of the
 * largest value. */
#define DEVICE_TOL 1e-5
#define ADJOINT_TOL 1e-5
#define IMAGE_TOL 1e-4 /* after 40 iterations, which amplify differences */

#define RINGS 9
#define RADIAL 37
#define ANGLES 12 /* including 0, 45 and 90 degrees */

struct setup {
	const char *name;
	int span, pixels, slices;
	double slice, fov, pixel;
	struct scan_tof tof;
	int rings; /* 0: RINGS */
};

static const struct setup setups[] = {
	{"pitch of one and two slices", 2, 41, 17, 3, 60, 3, {0}},
	{"odd span", 3, 40, 17, 3, 60, 3.1, {0}},
	{"every ring pair", 1, 37, 17, 3, 55, 3, {0}},
	{"slices of another height", 2, 33, 15, 3.4, 60, 3.7, {0}},
	{"thin slices", 2, 24, 51, 1, 60, 5, {0}},
	{"a volume shorter than the rays", 3, 40, 7, 3, 60, 3, {0}},
	{"more slices than lanes of a warp", 2, 20, 131, 0.39, 58, 6, {0}},
	{"a volume smaller than the field of view", 2, 11, 17, 3, 60, 3, {0}},
	{"TOF, pitch of one and two slices", 2, 41, 17, 3, 60, 3, {11, 14, 9}},
	{"TOF, more planes than lanes of a warp", 3, 40, 17, 3, 60, 3.1, {10, 14, 9}},
	{"TOF, every ring pair", 1, 37, 17, 3, 55, 3, {3, 60, 9}},
	{"TOF, slices of another height", 3, 33, 15, 3.4, 60, 3.7, {11, 14, 9}},
	{"TOF, thin slices, planes between two slices", 2, 24, 52, 1, 60, 5, {9, 16, 8}},
	{"TOF, a volume shorter than the rays, bins narrower than the resolution", 3, 40, 7, 3, 60, 3, {25, 6, 11}},
	{"TOF, many bins at a point, not all of the field of view", 2, 24, 17, 3, 60, 5, {31, 3, 10}},
	{"TOF, four planes a lane", 41, 20, 119, 3, 58, 6, {10, 14, 9}, 60},
	{"TOF, five planes a lane", 61, 20, 159, 3, 58, 6, {10, 14, 9}, 80},
};
#define N_SETUPS (sizeof(setups) / sizeof(setups[0]))
static const enum projection_model models[] = {PROJECTION_PATHS, PROJECTION_JOSEPH, PROJECTION_EXACT};

static struct michelogram small_scanner(int rings, int span, struct scan_tof tof)
{
	struct michelogram m = {
		.scanner = {.rings = rings, .detectors = 80, .ring_spacing = 6, .radius = 78, .interaction_depth = 2, .bin = 3.3},
		.n_radial = RADIAL,
		.n_angles = ANGLES,
		.arc_corrected = true,
		.tof = tof,
	};

	fixture_segments(&m, span, rings - 1);
	return m;
}

static struct grid grid_of(const struct setup *s)
{
	struct grid g = {.n = {s->pixels, s->pixels - 2, s->slices},
			 .h = {s->pixel, s->pixel, s->slice},
			 .lo = {-0.5 * s->pixels * s->pixel, -0.5 * (s->pixels - 2) * s->pixel, -0.5 * s->slices * s->slice},
			 .z_fastest = true};

	return g;
}

static struct scan *scan_of(const struct setup *s)
{
	struct michelogram m = small_scanner(s->rings ? s->rings : RINGS, s->span, s->tof);
	int *plane;

	return fixture_michelogram_scan(&m, s->fov, &plane);
}

/* Compute y += A x and x += A'y; the initial values are random. */
static void both_ways(struct device *dev, const struct scan *scan, const struct grid *g, enum projection_model model,
		      bool deterministic, float **ret_y, float **ret_x)
{
	size_t n_x = grid_size(g), n_y = scan_view_size(scan) * (size_t)scan->n_views;
	struct projection_spec spec = {
		.model = model, .scan = scan, .n_views = scan->n_views, .grid = g, .deterministic = deterministic};
	float *x = fixture_floats(n_x, 1, 0.1f, 1), *y = fixture_floats(n_y, 2, 0.1f, 1);
	struct buf bx = fixture_upload(dev, x, n_x), by = fixture_upload(dev, y, n_y), to_x = fixture_upload(dev, x, n_x),
		   to_y = fixture_upload(dev, y, n_y);
	struct projection *a = fixture_projection(dev, &spec);

	assert_int_equal(dev->ops->forward(a, &bx, true, &to_y, NULL), 0);
	assert_int_equal(dev->ops->adjoint(a, &by, true, &to_x, NULL), 0);
	*ret_y = fixture_download(&to_y);
	*ret_x = fixture_download(&to_x);
}

TEST(models_agree)
{
	struct device *cuda = fixture_device(FIXTURE_CUDA, 0), *cpu = fixture_device(FIXTURE_CPU, 0);

	for (size_t i = 0; i < N_SETUPS; i++) {
		struct scan *scan = scan_of(&setups[i]);
		struct grid g = grid_of(&setups[i]);
		size_t n_y = scan_view_size(scan) * (size_t)scan->n_views;

		for (size_t m = 0; m < 3; m++) {
			TEST_BLOCK;
			float *y[3], *x[3];

			both_ways(cpu, scan, &g, models[m], false, &y[0], &x[0]);
			both_ways(cuda, scan, &g, models[m], false, &y[1], &x[1]);
			both_ways(cuda, scan, &g, models[m], true, &y[2], &x[2]);
			for (int side = 1; side < 3; side++) {
				double forward = fixture_difference(y[side], y[0], n_y),
				       back = fixture_difference(x[side], x[0], grid_size(&g));

				if (!(forward < DEVICE_TOL) || !(back < DEVICE_TOL))
					fail_msg("%s, model %d, %s: forward %g, back %g", setups[i].name, (int)models[m],
						 side == 2 ? "repeatable" : "atomics", forward, back);
			}
		}
	}
}

TEST(adjoint_gap)
{
	struct device *dev = fixture_device(FIXTURE_CUDA, 0);

	for (size_t i = 0; i < N_SETUPS; i++) {
		struct scan *scan = scan_of(&setups[i]);
		struct grid g = grid_of(&setups[i]);

		for (size_t m = 0; m < 3; m++) {
			struct projection_spec spec = {.model = models[m], .scan = scan, .first = 3, .n_views = 8, .grid = &g};
			double gap = linop_adjoint_gap(fixture_projector(dev, &spec), (unsigned)i, NULL);

			if (!(gap >= 0 && gap < ADJOINT_TOL))
				fail_msg("%s, model %d: adjoint gap %g", setups[i].name, (int)models[m], gap);
		}
	}
}

/* Line integrals of a volume of ones, with a grid that contains all rays: 2 sqrt(fov^2 - r^2) times the slant of the ray; 0 for
 * bins without a ray. */
TEST(chords)
{
	const struct setup setup = {"", 2, 48, 17, 3, 58, 2.6, {0}};
	struct device *dev = fixture_device(FIXTURE_CUDA, 0);
	struct scan *scan = scan_of(&setup);
	struct grid g = grid_of(&setup);

	for (size_t m = 0; m < 3; m += 2) {
		struct projection_spec spec = {.model = models[m], .scan = scan, .n_views = scan->n_views, .grid = &g};
		size_t n_x = grid_size(&g), missing = 0;
		float *ones = fixture_floats(n_x, 1, 1, 1), *line;
		struct linop *op = fixture_projector(dev, &spec);
		struct buf x = fixture_upload(dev, ones, n_x), y = fixture_upload(dev, NULL, op->n_out);

		assert_int_equal(op->apply(op, &x, &y, NULL), 0);
		line = fixture_download(&y);
		for (size_t i = 0; i < op->n_out; i++) {
			int u = (int)(i % (size_t)scan->n_u), v = (int)(i / (size_t)scan->n_u % (size_t)scan->n_v);
			double t = scan_reach(scan, v), slope = t > 0 ? scan_slope(scan, scan->planes[u].rise, v) : 0;
			double want = 2 * t * sqrt(1 + slope * slope);

			missing += want == 0;
			if (want == 0 ? line[i] != 0 : !(fabs(line[i] / want - 1) < 1e-5))
				fail_msg("model %d, plane %d, radius %g: %g instead of %g", (int)models[m], u, scan->radius[v],
					 (double)line[i], want);
		}
		assert_true(missing > 0);
	}
}

TEST(repeatable)
{
	struct device *dev = fixture_device(FIXTURE_CUDA, 0);
	struct scan *scan = scan_of(&setups[1]);
	struct grid g = grid_of(&setups[1]);

	for (size_t m = 0; m < 3; m++) {
		float *y[2], *x[2];

		for (int i = 0; i < 2; i++)
			both_ways(dev, scan, &g, models[m], true, &y[i], &x[i]);
		assert_memory_equal(y[0], y[1], scan_view_size(scan) * (size_t)scan->n_views * sizeof(float));
		assert_memory_equal(x[0], x[1], grid_size(&g) * sizeof(float));
	}
}

/* The operations applied to the same random volume on both devices. */
enum volume_op { BLUR, PRIOR, QUADRATIC, BINS };

static float *volume_op(struct device *dev, enum volume_op op, const struct grid *g)
{
	const struct prior prior = {.beta = 0.7f,
				    .kind = op == QUADRATIC ? PRIOR_QUADRATIC : PRIOR_RELATIVE,
				    .gamma = 2,
				    .epsilon = 0.01f,
				    .level = 0.5f,
				    .across = 1};
	const struct rule rule = {.kind = RULE_EM, .bin_floor = 1e-3f, .voxel_floor = 1e-3f};
	const double sigma[3] = {2.1, 0, 4.4};
	size_t n = grid_size(g);
	float *host = fixture_floats(n, 3, 0.1f, 1);
	struct buf x, work, ret, out;

	for (size_t i = 0; i < n; i += 7)
		host[i] = 0;
	x = fixture_upload(dev, host, n);
	work = fixture_upload(dev, host, n);
	ret = fixture_upload(dev, host, n);
	out = fixture_upload(dev, host, n);
	switch (op) {
	case BLUR:
		assert_int_equal(dev->ops->blur(&x, g, sigma, &work, &out, NULL), 0);
		break;
	case PRIOR:
	case QUADRATIC:
		assert_int_equal(
			dev->ops->prior_sums(&prior, &x, g, NULL, op == QUADRATIC, &out, op == QUADRATIC ? &ret : NULL, NULL), 0);
		break;
	case BINS:
		assert_int_equal(dev->ops->rule_bins(&rule, &ret, &x, NULL, &work, &x, &out, NULL), 0);
		break;
	}
	return fixture_download(&out);
}

TEST(volumes_agree)
{
	const struct grid grids[] = {{{23, 21, 9}, {1.5, 1.6, 3}, {0, 0, 0}, true},
				     {{23, 21, 9}, {1.5, 1.6, 3}, {0, 0, 0}, false}};
	struct device *cuda = fixture_device(FIXTURE_CUDA, 0), *cpu = fixture_device(FIXTURE_CPU, 0);

	for (int i = 0; i < 2; i++)
		for (enum volume_op op = BLUR; op <= BINS; op++) {
			float *a = volume_op(cuda, op, &grids[i]), *b = volume_op(cpu, op, &grids[i]);
			double d = fixture_difference(a, b, grid_size(&grids[i]));

			if (!(d < DEVICE_TOL))
				fail_msg("operation %d, layout %d: %g", (int)op, i, d);
		}
}

static float *reconstructed(struct device *dev, const struct pet_protocol *p, struct scan_tof tof, const float *y,
			    const float *factors)
{
	struct michelogram m = small_scanner(RINGS, 2, tof);
	struct pet_report report;

	return pet_image(p, &m, dev, y, factors, NULL, &report);
}

/* Compute smooth data: a cylinder of 25 mm radius beside the centre, times the factors. */
static float *smooth_data(const struct michelogram *m, const float *factors)
{
	const int n_k = m->tof.n > 0 ? m->tof.n : 1;
	size_t rays = michelogram_planes(m) * (size_t)m->n_angles * (size_t)m->n_radial;
	float *y = take_zeros(rays * (size_t)n_k, sizeof(*y));

	for (size_t i = 0; i < rays; i++) {
		double phi = (double)(i / (size_t)m->n_radial % (size_t)m->n_angles) * 3.14159265358979 / m->n_angles;
		double s = michelogram_radius(m, (int)(i % (size_t)m->n_radial)) - 15 * cos(phi), t = -15 * sin(phi);
		double half = s * s < 625 ? sqrt(625 - s * s) : 0;

		for (int k = 0; k < n_k; k++)
			y[(size_t)k * rays + i] =
				(float)(factors[i] *
					(m->tof.n > 0 ? tof_weight_integral(&m->tof, k, t - half, t + half) : 2 * half));
	}
	return y;
}

/* Reconstruct smooth data with random factors on both devices: 40 iterations of MLEM, OSEM, FBP, with and without a resolution
 * model. */
static void check_images(struct scan_tof tof)
{
	const struct pet_protocol base = {.algorithm = ALGORITHM_MLEM,
					  .iterations = 40,
					  .subsets = 1,
					  .matrix = 40,
					  .fov_radius = 55,
					  .projector = PROJECTION_PATHS,
					  .filter_cut = 1};
	struct pet_protocol p[5] = {base, base, base, base, base};
	struct michelogram m = small_scanner(RINGS, 2, tof);
	struct device *cuda = fixture_device(FIXTURE_CUDA, 0), *cpu = fixture_device(FIXTURE_CPU, 0);
	size_t rays = michelogram_planes(&m) * (size_t)m.n_angles * (size_t)m.n_radial, n = 40 * 40 * (2 * RINGS - 1);
	float *factors = fixture_floats(rays, 9, 0.3f, 1), *y = smooth_data(&m, factors);

	p[1].psf = 5;
	p[1].postfilter = 4;
	p[2].algorithm = ALGORITHM_OSEM;
	p[2].iterations = 4;
	p[2].subsets = 4;
	p[3].projector = PROJECTION_JOSEPH;
	p[4].algorithm = ALGORITHM_FBP;
	for (size_t i = 0; i < 5; i++) {
		float *a = reconstructed(cuda, &p[i], tof, y, factors), *b = reconstructed(cpu, &p[i], tof, y, factors);
		double d = fixture_difference(a, b, n);

		if (!(d < IMAGE_TOL))
			fail_msg("protocol %zu, %d TOF bins: images differ by %g", i, tof.n, d);
	}
}

TEST(images_agree)
{
	check_images((struct scan_tof){0});
	check_images((struct scan_tof){11, 14, 9});
}

/* Horizontal planes at unequal distances, backprojected into slices that contain several, one or none of them. */
TEST(interpolated_agrees)
{
	struct scan_plane planes[] = {{-7, 0}, {-5.5, 0}, {-1, 0}, {0.5, 0}, {5.9, 0}, {40, 0}};
	struct scan_view views[5] = {0};
	double radius[31];
	struct scan scan = {.kind = SCAN_PARALLEL,
			    .n_u = 6,
			    .n_v = 31,
			    .n_views = 5,
			    .views = views,
			    .planes = planes,
			    .radius = radius,
			    .fov_radius = 27};
	const struct grid g = {{27, 25, 7}, {2, 2.1, 3}, {-27, -26.25, -10.5}, true};
	struct projection_spec spec = {.model = PROJECTION_EXACT, .scan = &scan, .n_views = 5, .grid = &g};
	struct device *dev[2] = {fixture_device(FIXTURE_CUDA, 0), fixture_device(FIXTURE_CPU, 0)};
	float *host = fixture_floats(6 * 31 * 5, 4, -1, 1), *out[2];

	for (int i = 0; i < 5; i++) {
		views[i].turn[0] = cos(0.7853981633974483 * i);
		views[i].turn[1] = sin(0.7853981633974483 * i);
	}
	for (int i = 0; i < 31; i++)
		radius[i] = 1.9 * (i - 15);
	for (int i = 0; i < 2; i++) {
		struct buf y = fixture_upload(dev[i], host, 6 * 31 * 5), x = fixture_upload(dev[i], NULL, grid_size(&g));
		struct projection *a = fixture_projection(dev[i], &spec);

		assert_int_equal(dev[i]->ops->back_interpolated(a, &y, false, &x, NULL), 0);
		assert_int_equal(dev[i]->ops->back_interpolated(a, &y, true, &x, NULL), 0);
		out[i] = fixture_download(&x);
	}
	assert_true(fixture_difference(out[0], out[1], grid_size(&g)) < DEVICE_TOL);
}

/* Factors of the same map, all together on the CPU and in parts of 5 angles on the GPU, with planes in GE's order. */
TEST(attenuation_agrees)
{
	struct michelogram m = small_scanner(RINGS, 2, (struct scan_tof){0});
	struct device *dev[2] = {fixture_device(FIXTURE_CUDA, 0), fixture_device(FIXTURE_CPU, 0)};
	struct attenuation *a[2];
	struct attenuation_plan plan;
	float *mu;

	for (int i = 0; i < 2; i++) {
		struct err err = {0};

		assert_int_equal(attenuation_plan(&m, dev[i], 0, &plan, NULL), 0);
		plan.views = i == 0 ? 5 : plan.views;
		mu = fixture_floats(grid_size(&plan.grid), 7, 0, 0.01F);
		assert_int_equal(attenuation_new(&plan, &m, 1, &a[i], NULL), 0);
		memcpy(attenuation_map(a[i]), mu, grid_size(&plan.grid) * sizeof(*mu));
		assert_done(attenuation_compute(a[i], &m, dev[i], NULL, NULL, &err), &err);
	}
	assert_true(fixture_difference(attenuation_factors(a[0]), attenuation_factors(a[1]), plan.bins) < DEVICE_TOL);
	for (int i = 0; i < 2; i++)
		attenuation_release(a[i], NULL);
}

TESTS_NEED(device_cuda_count() > 0, "no CUDA device");
