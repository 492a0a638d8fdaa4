/* SPDX-License-Identifier: Apache-2.0 */
/* Passes over a volume that use neighbours, on the CPU and with memory full of NaN: blur, the prior's gradient, and the
 * voxel-driven half of filtered backprojection, each compared with a simple implementation. */
#include "kernels/device.h"
#include "tests/kernels/buffers.h"
#include "tests/test.h"

#define SUM_TOL 2e-6 /* rounding error of the sum of float32 weights along three axes */

static const struct grid grids[] = {
	{{23, 19, 11}, {1.5, 2, 3.1}, {0, 0, 0}, true},
	{{23, 19, 11}, {1.5, 2, 3.1}, {0, 0, 0}, false},
	{{9, 40, 8}, {3, 1, 2}, {0, 0, 0}, true},
	{{5, 1, 1}, {3, 1, 2}, {0, 0, 0}, true},
};
#define N_GRIDS (sizeof(grids) / sizeof(grids[0]))

static bool is_padding(const struct grid *g, size_t i)
{
	return g->z_fastest && i % grid_column(g) >= (size_t)g->n[2];
}

static size_t index_of(const struct grid *g, int i, int j, int k)
{
	return (size_t)i * grid_step(g, 0) + (size_t)j * grid_step(g, 1) + (size_t)k * grid_step(g, 2);
}

/* Random; the padding is NaN. */
static float *random_volume(const struct grid *g, uint32_t seed, float lo, float hi)
{
	float *host = take_memory(grid_size(g) * sizeof(*host));

	for (size_t i = 0; i < grid_size(g); i++)
		host[i] = is_padding(g, i) ? NAN : fixture_uniform(&seed, lo, hi);
	return host;
}

/* Return the dot product without the padding; check that the padding of b is 0 (in a it may have any value). */
static double dot(const struct grid *g, const float *a, const float *b)
{
	double sum = 0;

	for (size_t i = 0; i < grid_size(g); i++) {
		if (is_padding(g, i))
			assert_true(b[i] == 0);
		else
			sum += (double)a[i] * b[i];
	}
	return sum;
}

static void everywhere(void (*test)(struct device *dev, const struct grid *g))
{
	for (size_t i = 0; i < N_GRIDS * FIXTURE_DEVICES; i++) {
		TEST_BLOCK;

		test(fixture_device(i % 2 ? FIXTURE_POISON : FIXTURE_CPU, 2), &grids[i / 2]);
	}
}

static float *blurred(struct device *dev, const struct grid *g, const double sigma[3], const float *from)
{
	struct buf x = fixture_upload(dev, from, grid_size(g)), work = fixture_upload(dev, NULL, grid_size(g)),
		   ret = fixture_upload(dev, NULL, grid_size(g));

	assert_int_equal(dev->ops->blur(&x, g, sigma, &work, &ret, NULL), 0);
	return fixture_download(&ret);
}

/* The blur of a point is the product of three normalised kernels. */
static double point_spread(const struct grid *g, const double sigma[3], const int d[3])
{
	double product = 1;

	for (int c = 0; c < 3; c++) {
		int reach = (int)floor(4 * sigma[c] / g->h[c]);
		double sum = 0;

		if (abs(d[c]) > reach)
			return 0;
		for (int i = -reach; i <= reach; i++)
			sum += sigma[c] > 0 ? exp(-0.5 * pow(i * g->h[c] / sigma[c], 2)) : 1;
		product *= (sigma[c] > 0 ? exp(-0.5 * pow(d[c] * g->h[c] / sigma[c], 2)) : 1) / sum;
	}
	return product;
}

static void check_blur(struct device *dev, const struct grid *g)
{
	const double sigmas[][3] = {{2.1, 2.9, 4.3}, {0, 1.3, 0}, {0, 0, 0}, {30, 0.1, 20}};

	for (size_t s = 0; s < sizeof(sigmas) / sizeof(sigmas[0]); s++) {
		float *x = random_volume(g, 3, -1, 1), *y = random_volume(g, 4, -1, 1), *at = random_volume(g, 5, 0, 0);
		float *bx = blurred(dev, g, sigmas[s], x), *by = blurred(dev, g, sigmas[s], y), *spread;
		int m[3] = {g->n[0] / 3, g->n[1] / 2, g->n[2] / 2};

		assert_near(dot(g, y, bx), dot(g, x, by), 1e-5 * sqrt(dot(g, bx, bx) * dot(g, by, by)) + 1e-6);
		at[index_of(g, m[0], m[1], m[2])] = 1;
		spread = blurred(dev, g, sigmas[s], at);
		for (int k = 0; k < g->n[2]; k++)
			for (int j = 0; j < g->n[1]; j++)
				for (int i = 0; i < g->n[0]; i++) {
					int d[3] = {i - m[0], j - m[1], k - m[2]};

					assert_near((double)spread[index_of(g, i, j, k)], point_spread(g, sigmas[s], d), 1e-6);
				}
	}
}

TEST(test_blur)
{
	everywhere(check_blur);
}

/* Far from the faces the sum does not change, and the width is that of the Gaussian, except for the cut at 4 sigma (0.1 %). */
TEST(test_blur_width)
{
	const struct grid g = {{61, 61, 61}, {1, 1, 1}, {0, 0, 0}, true};
	const double sigma[3] = {2.5, 3.5, 5};
	float *at = random_volume(&g, 1, 0, 0), *spread;
	double sum = 0, second[3] = {0};
	struct device *dev = fixture_device(FIXTURE_CPU, 0);

	at[index_of(&g, 30, 30, 30)] = 1;
	spread = blurred(dev, &g, sigma, at);
	for (int k = 0; k < 61; k++)
		for (int j = 0; j < 61; j++)
			for (int i = 0; i < 61; i++) {
				double value = (double)spread[index_of(&g, i, j, k)];

				sum += value;
				second[0] += value * (i - 30) * (i - 30);
				second[1] += value * (j - 30) * (j - 30);
				second[2] += value * (k - 30) * (k - 30);
			}
	assert_near(sum, 1, SUM_TOL);
	for (int c = 0; c < 3; c++)
		assert_near(sqrt(second[c]), sigma[c], 2e-3 * sigma[c]);
}

/* R and c of kernels/prior.h in double, from the definition: of the voxels from lo to hi. */
static double roughness(const struct prior *p, const struct grid *g, const double *x, const int lo[3], const int hi[3],
			double *ret_bound)
{
	double sum = 0;
	int at[3];

	for (at[2] = lo[2]; at[2] < hi[2]; at[2]++)
		for (at[1] = lo[1]; at[1] < hi[1]; at[1]++)
			for (at[0] = lo[0]; at[0] < hi[0]; at[0]++)
				for (int m = 0; m < 27; m++) {
					int to[3] = {at[0] + m % 3 - 1, at[1] + m / 3 % 3 - 1, at[2] + m / 9 - 1};
					double a = x[index_of(g, at[0], at[1], at[2])], b, distance = 0, weight;

					if (m == 13 || to[0] < 0 || to[0] >= g->n[0] || to[1] < 0 || to[1] >= g->n[1] ||
					    to[2] < 0 || to[2] >= g->n[2])
						continue;
					b = x[index_of(g, to[0], to[1], to[2])];
					if (a == 0 || b == 0)
						continue;
					for (int c = 0; c < 3; c++)
						distance += (to[c] - at[c]) * g->h[c] * (to[c] - at[c]) * g->h[c];
					weight = g->h[0] / sqrt(distance) * (to[2] == at[2] ? 1 : (double)p->across);
					if (p->kind == PRIOR_QUADRATIC)
						sum += 0.5 * weight * (a - b) * (a - b) / (2 * (double)p->level);
					else
						sum += 0.5 * weight * (a - b) * (a - b) /
						       (a + b + p->gamma * fabs(a - b) + p->epsilon);
					if (ret_bound)
						ret_bound[index_of(g, at[0], at[1], at[2])] +=
							p->beta * weight *
							(p->kind == PRIOR_QUADRATIC ? 2 * a / (double)p->level : 2);
				}
	return sum;
}

/* The difference of R when a voxel is larger and smaller by `step`: only its own terms and its neighbours' change. */
static double roughness_change(const struct prior *p, const struct grid *g, double *x, const int voxel[3], double step)
{
	size_t at = index_of(g, voxel[0], voxel[1], voxel[2]);
	double before = x[at], up;
	int lo[3], hi[3];

	for (int c = 0; c < 3; c++) {
		lo[c] = voxel[c] > 0 ? voxel[c] - 1 : 0;
		hi[c] = voxel[c] + 2 < g->n[c] ? voxel[c] + 2 : g->n[c];
	}
	x[at] = before + step;
	up = roughness(p, g, x, lo, hi, NULL);
	x[at] = before - step;
	up -= roughness(p, g, x, lo, hi, NULL);
	x[at] = before;
	return up;
}

static const struct prior priors[] = {
	{.beta = 0.7f, .gamma = 2, .epsilon = 0.01f, .across = 1},
	{.beta = 0.7f, .gamma = 0, .epsilon = 0.01f, .across = 0.25f},
	{.beta = 0.7f, .kind = PRIOR_QUADRATIC, .level = 0.5f, .across = 1},
	{.beta = 0.7f, .kind = PRIOR_QUADRATIC, .level = 0.5f, .across = 0},
};
#define N_PRIORS (sizeof(priors) / sizeof(priors[0]))
#define NUM 3.0f /* the sums before */
#define DEN 5.0f

/* num loses the gradient, which is compared with differences of R; den and, with `ratio`, num gain c. */
static void check_prior_kind(struct device *dev, const struct grid *g, const struct prior *prior, bool ratio)
{
	size_t n = grid_size(g);
	float *host = random_volume(g, 11, 0.1f, 1), *sums[3];
	double *x = take_memory(n * sizeof(*x)), *bound = take_zeros(n, sizeof(*bound)), most = 0;
	uint32_t seed = 2;
	struct buf at, num = fixture_upload(dev, NULL, n), den = fixture_upload(dev, NULL, n),
		       alone = fixture_upload(dev, NULL, n);

	for (size_t i = 0; i < n; i++) {
		if (!is_padding(g, i) && i && fixture_uniform(&seed, 0, 1) < 0.2f)
			host[i] = 0; /* outside the support */
		x[i] = (double)host[i];
	}
	at = fixture_upload(dev, host, n);
	assert_int_equal(dev->ops->fill(&num, NUM, NULL), 0);
	assert_int_equal(dev->ops->fill(&den, DEN, NULL), 0);
	assert_int_equal(dev->ops->fill(&alone, NUM, NULL), 0);
	assert_int_equal(dev->ops->prior_sums(prior, &at, g, NULL, ratio, &num, &den, NULL), 0);
	assert_int_equal(dev->ops->prior_sums(prior, &at, g, NULL, ratio, &alone, NULL, NULL), 0);
	sums[0] = fixture_download(&num);
	sums[1] = fixture_download(&den);
	sums[2] = fixture_download(&alone);
	roughness(prior, g, x, (const int[3]){0, 0, 0}, g->n, bound);
	for (size_t i = 0; i < n; i++) {
		if (is_padding(g, i) || host[i] == 0)
			assert_true(sums[0][i] == NUM && sums[1][i] == DEN && sums[2][i] == NUM);
		assert_near((double)sums[1][i], DEN + bound[i], 1e-5 * (DEN + bound[i]));
		assert_near((double)sums[0][i], (double)sums[2][i] + (ratio ? bound[i] : 0), 1e-5 * (NUM + bound[i]));
		most = fmax(most, fabs((double)(NUM - sums[2][i])));
	}
	assert_true(most > 0.01);
	for (int i = 0, n_x = g->n[0], n_y = g->n[1]; i < n_x * n_y * g->n[2]; i += 5) {
		const int voxel[3] = {i % n_x, i / n_x % n_y, i / n_x / n_y};
		size_t here = index_of(g, voxel[0], voxel[1], voxel[2]);
		const double step = 1e-5;
		double slope;

		if (host[here] == 0)
			continue;
		slope = prior->beta * roughness_change(prior, g, x, voxel, step) / (2 * step);
		assert_near((double)(NUM - sums[2][here]), slope, 1e-5 * most + 1e-6);
		assert_true(slope <= bound[here] / 2);
	}
}

static void check_prior(struct device *dev, const struct grid *g)
{
	for (size_t i = 0; i < N_PRIORS; i++)
		for (int ratio = 0; ratio < 2; ratio++)
			check_prior_kind(dev, g, &priors[i], ratio);
}

TEST(test_prior)
{
	everywhere(check_prior);
}

/* Slices first .. first + n - 1 computed by themselves, with their neighbours, have the same bits as in the whole volume. */
static void check_part(struct device *dev, const struct grid *g, const struct prior *prior, int first, int n, const float *host,
		       const float *whole)
{
	size_t slice = (size_t)g->n[0] * (size_t)g->n[1], at = (size_t)first * slice, size = (size_t)n * slice;
	int halo[2] = {first > 0, first + n < g->n[2]};
	struct buf x = fixture_upload(dev, host + at - (size_t)halo[0] * slice, size + (size_t)(halo[0] + halo[1]) * slice),
		   num = fixture_upload(dev, NULL, size), den = fixture_upload(dev, NULL, size);
	struct grid part = *g;
	float *found;

	part.n[2] = n;
	assert_int_equal(dev->ops->fill(&num, NUM, NULL), 0);
	assert_int_equal(dev->ops->fill(&den, DEN, NULL), 0);
	assert_int_equal(dev->ops->prior_sums(prior, &x, &part, halo, true, &num, &den, NULL), 0);
	found = fixture_download(&num);
	assert_memory_equal(found, whole + at, size * sizeof(float));
}

static void check_prior_parts(struct device *dev, const struct grid *g)
{
	size_t n = grid_size(g);
	float *host = random_volume(g, 11, 0.1f, 1), *whole;
	struct buf x = fixture_upload(dev, host, n), num = fixture_upload(dev, NULL, n), den = fixture_upload(dev, NULL, n);

	for (size_t i = 0; !g->z_fastest && i < N_PRIORS; i++) {
		assert_int_equal(dev->ops->fill(&num, NUM, NULL), 0);
		assert_int_equal(dev->ops->fill(&den, DEN, NULL), 0);
		assert_int_equal(dev->ops->prior_sums(&priors[i], &x, g, NULL, true, &num, &den, NULL), 0);
		whole = fixture_download(&num);
		for (int slices = 1; slices <= g->n[2]; slices++)
			for (int first = 0; first + slices <= g->n[2]; first++)
				check_part(dev, g, &priors[i], first, slices, host, whole);
	}
}

TEST(test_prior_parts)
{
	everywhere(check_prior_parts);
}

/* Parallel rays of level planes: two in one slice, one slice without, one plane outside of the volume. */
struct beams {
	struct scan_view views[5];
	struct scan_plane planes[6];
	double radius[21];
	struct scan scan;
	struct grid grid;
};

static void set_up(struct beams *b)
{
	const double z[6] = {-9, -4, -3.5, 0.5, 2, 4}, angles[5] = {0, 45, 90, 20, 163};

	for (int u = 0; u < 6; u++)
		b->planes[u] = (struct scan_plane){z[u], 0};
	for (int v = 0; v < 21; v++)
		b->radius[v] = (v - 10) * 2.1;
	for (int i = 0; i < 5; i++)
		b->views[i] = (struct scan_view){.turn = {cos(angles[i] * M_PI / 180), sin(angles[i] * M_PI / 180)}};
	b->scan = (struct scan){.kind = SCAN_PARALLEL,
				.n_u = 6,
				.n_v = 21,
				.n_views = 5,
				.views = b->views,
				.planes = b->planes,
				.radius = b->radius,
				.ring_radius = 40,
				.fov_radius = 19};
	b->grid = (struct grid){{17, 19, 7}, {2.9, 2.3, 1.5}, {-24.3, -22, -5.1}, true};
}

/* 4 of the 5 views. */
static double interpolated(const struct beams *b, const float *y, int i, int j, int k)
{
	const struct grid *g = &b->grid;
	double px = g->lo[0] + (i + 0.5) * g->h[0], py = g->lo[1] + (j + 0.5) * g->h[1], sum = 0;
	int n = 0;

	if (hypot(px, py) >= b->scan.fov_radius)
		return 0;
	for (int u = 0; u < 6; u++) {
		double z = (b->planes[u].z - g->lo[2]) / g->h[2];

		if (z < k || z >= k + 1)
			continue;
		n++;
		for (int view = 1; view < 5; view++) {
			double r = px * b->views[view].turn[0] + py * b->views[view].turn[1];

			for (int v = 0; v < 21; v++)
				sum += fmax(0, 1 - fabs(r - b->radius[v]) / 2.1) * y[((view - 1) * 21 + v) * 6 + u];
		}
	}
	return n ? sum / n : 0;
}

static void check_interpolated(struct device *dev)
{
	struct beams b;
	struct projection_spec spec = {.model = PROJECTION_EXACT, .scan = &b.scan, .first = 1, .n_views = 4, .grid = &b.grid};
	struct projection *a;
	float host[4 * 21 * 6], *x;
	uint32_t seed = 9;
	struct buf y, ret;

	set_up(&b);
	for (size_t i = 0; i < sizeof(host) / sizeof(host[0]); i++)
		host[i] = fixture_uniform(&seed, -1, 2);
	y = fixture_upload(dev, host, 4 * 21 * 6);
	ret = fixture_upload(dev, NULL, grid_size(&b.grid));
	a = fixture_projection(dev, &spec);
	for (int pass = 1; pass <= 2; pass++) {
		double most = 0;

		assert_int_equal(dev->ops->back_interpolated(a, &y, pass == 2, &ret, NULL), 0);
		x = fixture_download(&ret);
		dot(&b.grid, x, x); /* also checks the padding */
		for (int k = 0; k < b.grid.n[2]; k++)
			for (int j = 0; j < b.grid.n[1]; j++)
				for (int i = 0; i < b.grid.n[0]; i++) {
					double expect = pass * interpolated(&b, host, i, j, k);

					most = fmax(most, fabs(expect));
					assert_near((double)x[index_of(&b.grid, i, j, k)], expect, 3e-6);
				}
		assert_true(most > 1);
	}
	b.planes[5].rise = 1;
	a = fixture_projection(dev, &spec);
	assert_int_equal(dev->ops->back_interpolated(a, &y, false, &ret, NULL), -EINVAL);
}

TEST(test_interpolated)
{
	check_interpolated(fixture_device(FIXTURE_CPU, 3));
	check_interpolated(fixture_device(FIXTURE_POISON, 2));
}

/* Invalid arguments are rejected with a message that names them. */
TEST(test_refused)
{
	const struct grid *g = &grids[0];
	const double sigma[3] = {1, 1, 1}, bad[3] = {1, NAN, 1};
	const struct prior flat = {.beta = 1, .gamma = 2, .across = 1}, level = {.beta = 1, .kind = PRIOR_QUADRATIC};
	const int halo[2] = {1, 0};
	struct err err = {0};
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct buf x, y, z, little;

	x = fixture_upload(dev, NULL, grid_size(g));
	y = fixture_upload(dev, NULL, grid_size(g));
	z = fixture_upload(dev, NULL, grid_size(g));
	little = fixture_upload(dev, NULL, grid_size(g) - 1);
	assert_int_equal(dev->ops->blur(&x, g, sigma, &y, &x, &err), -EINVAL);
	assert_int_equal(dev->ops->blur(&x, g, sigma, &little, &y, &err), -EINVAL);
	assert_error(dev->ops->blur(&x, g, bad, &y, &z, &err), &err, EINVAL, "nan");
	assert_error(dev->ops->prior_sums(&flat, &x, g, NULL, true, &y, NULL, &err), &err, EINVAL, "epsilon=0");
	assert_error(dev->ops->prior_sums(&level, &x, g, NULL, true, &y, NULL, &err), &err, EINVAL, "level=0");
	assert_int_equal(dev->ops->prior_sums(&priors[0], &x, g, NULL, true, &x, NULL, &err), -EINVAL);
	assert_int_equal(dev->ops->prior_sums(&priors[0], &x, g, NULL, true, &y, &x, &err), -EINVAL);
	assert_int_equal(dev->ops->prior_sums(&priors[0], &x, g, NULL, true, &little, NULL, &err), -EINVAL);
	assert_int_equal(dev->ops->prior_sums(&priors[0], &x, g, NULL, true, &y, &little, &err), -EINVAL);
	assert_int_equal(dev->ops->prior_sums(&priors[0], &x, g, halo, true, &y, NULL, &err), -EINVAL);
}
