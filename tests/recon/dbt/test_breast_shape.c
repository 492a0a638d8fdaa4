/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of the breast from analytic projections of bodies whose thickness and height are known, what refuses it, and what a
 * start image with a shape changes; the softened edge of the skin. */
#include "recon/core/threads.h"
#include "recon/dbt/skin_edge.h"
#include "recon/phantom/phantom.h"
#include "tests/kernels/devices_test.h"
#include "tests/recon/dbt/dbt_reconstruct.h"
#include "tests/recon/dbt_fixture.h"

#define SUPPORT 17
#define THICKNESS 50
#define PITCH 2 /* mm, of bins and voxels */
#define N_U 75
#define N_V 120
#define VIEWS 13
#define MU 0.05

struct exam {
	struct scan *scan;
	struct view_cells cells;
	struct grid grid;
	float *line, *mean;
};

/* Project shapes. offset: added to all line integrals, as if I0 were wrong. */
static struct exam project(struct shape *shapes, size_t n, double offset)
{
	struct phantom phantom = {"body", n, shapes};
	struct exam e = {.scan = fixture_scan(N_U, N_V, PITCH, VIEWS),
			 .grid = {{N_U, N_V, THICKNESS}, {PITCH, PITCH, 1}, {0, -N_V * PITCH / 2.0, SUPPORT}, false}};
	size_t view = scan_view_size(e.scan), cells;
	float *valid = fixture_floats(view, 1, 1, 1);
	uint32_t seed = 3;

	e.cells = view_cells_of(e.scan);
	cells = (size_t)e.cells.n_u * (size_t)e.cells.n_v;
	e.line = take_memory(view * VIEWS * sizeof(float));
	e.mean = take_memory(cells * VIEWS * sizeof(float));
	for (size_t i = 0; i < VIEWS; i++) {
		assert_int_equal(phantom_project(&phantom, e.scan, (int)i, e.line + i * view, NULL), 0);
		for (size_t k = 0; k < view; k++)
			e.line[i * view + k] += (float)offset + 0.01f * fixture_random(&seed);
		view_cells_average(e.scan, &e.cells, true, e.line + i * view, valid, e.mean + i * cells);
	}
	return e;
}

static struct breast_shape find(const struct exam *e)
{
	struct breast_shape s = {.square = NULL};
	struct err err = {0};

	assert_done(breast_shape_find(e->scan, &e->cells, e->mean, &e->grid, &s, &err), &err);
	assert_true(s.report.asked && s.report.used == (s.square != NULL) && s.report.used == (s.report.reason[0] == '\0'));
	return s;
}

/* Flat faces, rounded rim: T = THICKNESS where (x/rx)^2 + (y/ry)^2 < 0.64. height: of the rim's middle. */
static struct shape body(double height, double mu)
{
	return (struct shape){
		SHAPE_BREAST, ROLE_BODY, {0, 3, SUPPORT + THICKNESS / 2.0 + height}, {100, 85, THICKNESS / 2.0}, mu};
}

/* Thickness of the body along x at its middle in y, relative to the full one. */
static double true_part(double x)
{
	double left = 1 - x * x / 1e4;

	return left > 0 ? fmin(1, sqrt(left / 0.36)) : 0;
}

TEST(thickness_of_a_body)
{
	static const double at[] = {97, 95, 90, 80, 60, 30};
	static const double offsets[] = {0, 0.2};

	for (size_t k = 0; k < 2; k++) {
		struct exam e = project((struct shape[]){body(0, MU)}, 1, offsets[k]);
		struct breast_shape s = find(&e);

		assert_true(s.report.used && s.report.height_seen && s.report.sectors > BREAST_SHAPE_SECTORS / 3);
		assert_near(s.report.height[0], 0, 1);
		assert_near(s.report.height[1], 0, 1);
		assert_near(s.report.line, MU * THICKNESS, 0.05);
		assert_true(s.report.error < 0.02 && s.report.width > 15 && s.report.width < 35);
		for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
			int x = (int)((at[i] - s.lo[0]) / s.step + 0.5), y = (int)((3 - s.lo[1]) / s.step + 0.5);
			double found = sqrt(fmax(0, (double)s.square[y * s.n[0] + x]));

			assert_near(found, true_part(s.lo[0] + x * s.step), 0.08); /* 4 mm of 50 */
		}
		assert_true(s.square[(int)(3 - s.lo[1]) * s.n[0] + 105] < 0); /* outside */
		breast_shape_release(&s);
	}
}

/* Tissue that is dense behind the nipple does not make the rim before it thinner. */
TEST(dense_tissue_behind_the_nipple)
{
	const struct shape dense = {SHAPE_ELLIPSOID, ROLE_LESION, {45, 3, SUPPORT + THICKNESS / 2.0}, {45, 45, 22}, 0.6 * MU};
	struct exam e = project((struct shape[]){body(0, MU), dense}, 2, 0);
	struct breast_shape s = find(&e);

	assert_true(s.report.used);
	for (int x = 75; x <= 96; x += 7) {
		double found = sqrt(fmax(0, (double)s.square[(int)((3 - s.lo[1]) / s.step + 0.5) * s.n[0] + x]));

		print_message("x = %d mm: %.3f, true %.3f\n", x, found, true_part(s.lo[0] + x * s.step));
		assert_near(found, true_part(s.lo[0] + x * s.step), 0.08); /* as without dense tissue */
	}
	breast_shape_release(&s);
}

TEST(height_of_the_rim)
{
	static const double heights[] = {-3, 3, 0, 3}, mus[] = {MU, MU, 0.4 * MU, 0.4 * MU}; /* the last two: a thin breast */

	for (size_t k = 0; k < 4; k++) {
		struct exam e = project((struct shape[]){body(heights[k], mus[k])}, 1, 0);
		struct breast_shape s = find(&e);

		assert_true(s.report.used);
		print_message("height %.1f mm: %.1f, %.1f\n", heights[k], s.report.height[0], s.report.height[1]);
		assert_near(s.report.height[0], heights[k], 2);
		assert_near(s.report.height[1], heights[k], 2);
		breast_shape_release(&s);
	}
}

/* A breast whose rim is low at one end and high at the other: rays to either half of the plane see the body of that half. */
TEST(heights_at_both_ends)
{
	const double heights[2] = {-2.5, 2.5}, middle = SUPPORT + THICKNESS / 2.0;
	struct exam e[2] = {project((struct shape[]){body(heights[0], MU)}, 1, 0),
			    project((struct shape[]){body(heights[1], MU)}, 1, 0)};
	struct breast_shape s;
	size_t cells = (size_t)e[0].cells.n_u * (size_t)e[0].cells.n_v;
	float *lower, *upper;
	bool is_upper;
	size_t last = N_U * (N_V - 1);

	for (int v = 0; v < VIEWS; v++)
		for (int j = 0; j < e[0].cells.n_v; j++) {
			const double *src = e[0].scan->views[v].src;
			double at[3], y;

			scan_bin_at(e[0].scan, &e[0].scan->views[v], 0, (j + 0.5) * e[0].cells.bins_v - 0.5, at);
			y = src[1] + (at[1] - src[1]) * (src[2] - middle) / (src[2] - at[2]);
			if (y > 3)
				memcpy(e[0].mean + (size_t)v * cells + (size_t)(j * e[0].cells.n_u),
				       e[1].mean + (size_t)v * cells + (size_t)(j * e[0].cells.n_u),
				       (size_t)e[0].cells.n_u * sizeof(float));
		}
	s = find(&e[0]);
	assert_true(s.report.used);
	print_message("heights %.1f and %.1f mm\n", s.report.height[0], s.report.height[1]);
	for (int side = 0; side < 2; side++)
		assert_near(s.report.height[side], heights[side], 2); /* as with one height */
	assert_true(s.report.height[1] - s.report.height[0] > 2.5);
	assert_near(s.side[0], 3 - 85, 3); /* the ends of the body */
	assert_near(s.side[1], 3 + 85, 3);
	lower = fixture_floats(N_U * N_V, 1, 0, 0);
	upper = fixture_floats(N_U * N_V, 1, 0, 0);
	breast_shape_columns(&s, &e[0].grid, false, lower);
	breast_shape_columns(&s, &e[0].grid, true, upper);
	/* outside the skin T is 0, so that the columns are the height alone */
	assert_near((double)(upper[N_U - 1] - lower[N_U - 1]) * BREAST_SHAPE_SOFT, 2 * s.report.height[0], 1e-4);
	assert_near((double)(upper[last + N_U - 1] - lower[last + N_U - 1]) * BREAST_SHAPE_SOFT, 2 * s.report.height[1], 1e-4);
	assert_near((double)breast_shape_away(&s, &e[0].grid, 0, &is_upper) * BREAST_SHAPE_SOFT, THICKNESS / 2.0 - 0.5, 1e-5);
	assert_false(is_upper);
	breast_shape_away(&s, &e[0].grid, THICKNESS - 1, &is_upper);
	assert_true(is_upper);
	breast_shape_release(&s);
}

/* The same bits whatever the number of threads: the sums of each part are added in order. */
TEST(same_shape_with_any_threads)
{
	struct exam e = project((struct shape[]){body(0, MU)}, 1, 0);
	struct breast_shape a = find(&e), b;
	size_t n = (size_t)a.n[0] * (size_t)a.n[1];

	threads_limit(1);
	b = find(&e);
	threads_limit(2);
	assert_memory_equal(a.report.height, b.report.height, sizeof(a.report.height));
	assert_memory_equal(a.square, b.square, n * sizeof(*a.square));
	breast_shape_release(&a);
	breast_shape_release(&b);
}

/* What is no whole compressed breast. */
TEST(no_shape)
{
	static const double middle = SUPPORT + THICKNESS / 2.0;
	const struct shape inner = {SHAPE_BREAST, ROLE_LESION, {0, 3, middle}, {85, 70, 25}, -0.22};
	const struct {
		const char *reason;
		size_t n;
		struct shape shapes[2];
	} rows[] = {
		{"of air", 1, {{SHAPE_BOX, ROLE_BODY, {0, 0, middle}, {1000, 1000, 25}, MU}}},
		{"tissue covers", 1, {{SHAPE_BOX, ROLE_BODY, {5, 0, middle}, {5, 5, 5}, MU}}},
		{"chest wall", 1, {{SHAPE_ELLIPSOID, ROLE_BODY, {70, 0, middle}, {30, 30, 24}, MU}}},
		{"found in 8 of", 1, {{SHAPE_ELLIPSOID, ROLE_BODY, {0, 0, middle}, {24, 30, 25}, MU}}},
		{"deviate", 2, {body(0, 0.25), inner}}, /* a shell */
	};

	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct shape shapes[2] = {rows[k].shapes[0], rows[k].shapes[1]};
		struct exam e = project(shapes, rows[k].n, 0);
		struct breast_shape s = find(&e);
		char text[300];

		breast_shape_text(&s.report, text, sizeof(text));
		print_message("%s\n", text);
		assert_false(s.report.used);
		assert_non_null(strstr(text, rows[k].reason));
	}
}

/* Return whether a bin and all within two bins show air. */
static bool is_air(const float *line, int u, int v)
{
	for (int j = v > 2 ? v - 2 : 0; j <= v + 2 && j < N_V; j++)
		for (int i = u > 2 ? u - 2 : 0; i <= u + 2 && i < N_U; i++)
			if (line[j * N_U + i] > 0.02f)
				return false;
	return true;
}

static float *reconstruct(const struct exam *e, struct dbt_protocol p, double thickness, struct device *dev,
			  struct dbt_report *report)
{
	size_t view = scan_view_size(e->scan);
	float *valid = take_memory(view * VIEWS * sizeof(*valid)), *volume;
	struct dbt_plan plan;
	struct err err = {0};

	for (size_t i = 0; i < view * VIEWS; i++)
		valid[i] = is_air(e->line + i / view * view, (int)(i % N_U), (int)(i % view / N_U)) ? -1 : 1;
	assert_int_equal(dbt_plan(&p, e->scan, SUPPORT, thickness, dev, &plan, NULL), 0);
	volume = take_memory(grid_size(&plan.grid) * sizeof(*volume));
	assert_done(dbt_reconstruct(&p, &plan, e->scan, dev, e->line, valid, NULL, volume, report, &err), &err);
	return volume;
}

#define SLICES 10
static const struct dbt_protocol osem = {.algorithm = ALGORITHM_OSEM,
					 .iterations = 1,
					 .relaxation = 0.5,
					 .voxel = PITCH,
					 .slice_spacing = THICKNESS / SLICES,
					 .projector = PROJECTION_SLICES,
					 .deterministic = true};

/* Mean at mid-height, 2 to 8 mm from the skin at the nipple, relative to MU. */
static double nipple(const float *x)
{
	double sum = 0;
	int n = 0;

	for (int k = SLICES / 2 - 1; k <= SLICES / 2; k++)
		for (int j = N_V / 2 - 1; j < N_V / 2 + 4; j++)
			for (int i = 46; i < 49; i++, n++)
				sum += (double)x[(k * N_V + j) * N_U + i];
	return sum / n / MU;
}

/* The shape raises the nipple, no voxel of the support is lost, and the middle stays, with every algorithm that begins with an
 * image. */
TEST(images_with_and_without, .tier = 2)
{
	static const enum algorithm algorithms[] = {ALGORITHM_OSEM, ALGORITHM_OSTR, ALGORITHM_SART, ALGORITHM_MLEM};
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	struct exam e = project((struct shape[]){body(0, MU)}, 1, 0);

	for (size_t k = 0; k < sizeof(algorithms) / sizeof(algorithms[0]); k++) {
		struct dbt_protocol p = osem;
		struct dbt_report report[2];
		float *without, *with;
		size_t middle = (SLICES / 2 * N_V + N_V / 2) * N_U + 10;

		p.algorithm = algorithms[k];
		p.iterations = p.algorithm == ALGORITHM_MLEM ? 5 : 1;
		without = reconstruct(&e, p, THICKNESS, dev, &report[0]);
		p.breast_shape = true;
		with = reconstruct(&e, p, THICKNESS, dev, &report[1]);
		assert_true(!report[0].shape.asked && report[1].shape.asked && report[1].shape.used);
		print_message("%s: nipple %.3f, %.3f\n", algorithm_info(p.algorithm)->name, nipple(without), nipple(with));
		assert_true(nipple(without) < 0.75 && nipple(with) > 0.78 && nipple(with) < 1.05);
		assert_near((double)with[middle], (double)without[middle], 0.02 * MU);
		for (size_t i = 0; i < (size_t)N_U * N_V * SLICES; i++)
			assert_true((without[i] > 0) == (with[i] > 0));
	}
}

ON_DEVICES(images_of_devices, dev, .tier = 2)
{
	struct device *cpu = fixture_device(FIXTURE_CPU, 2);
	struct exam e = project((struct shape[]){body(0, MU)}, 1, 0);
	struct dbt_protocol p = osem;
	float *expected, *found;
	double worst = 0;

	p.breast_shape = p.skin_edge = true;
	expected = reconstruct(&e, p, THICKNESS, cpu, NULL);
	found = reconstruct(&e, p, THICKNESS, dev, NULL);
	for (size_t i = 0; i < (size_t)N_U * N_V * SLICES; i++)
		worst = fmax(worst, fabs((double)found[i] - (double)expected[i]));
	assert_true(worst <= 2e-4 * MU); /* the start images are equal; the rest is that of test_cuda.c */
}

TEST(slabs_have_the_same_shape, .tier = 2)
{
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	struct exam e = project((struct shape[]){body(0, MU)}, 1, 0);
	struct dbt_protocol p = osem;
	struct dbt_plan plan;
	float *whole, *slabs;
	double worst = 0;

	p.breast_shape = p.skin_edge = true;
	whole = reconstruct(&e, p, THICKNESS, dev, NULL);
	assert_int_equal(dbt_plan(&p, e.scan, SUPPORT, THICKNESS, dev, &plan, NULL), 0);
	p.memory_limit = plan.bytes.total * 6 / 10;
	assert_int_equal(dbt_plan(&p, e.scan, SUPPORT, THICKNESS, dev, &plan, NULL), 0);
	assert_true(plan.slab_slices < plan.grid.n[2]);
	slabs = reconstruct(&e, p, THICKNESS, dev, NULL);
	for (size_t i = 0; i < grid_size(&plan.grid); i++)
		worst = fmax(worst, fabs((double)whole[i] - (double)slabs[i]));
	assert_true(worst <= 1e-5 * MU); /* as without a shape: tests/recon/dbt/test_stream.c */
}

/* Line integral along z over x = u PITCH .. (u + 1) PITCH. */
static double column(const float *x, int u, int n)
{
	double sum = 0;

	for (int k = 0; k < n; k++)
		for (int j = N_V / 2 - 1; j < N_V / 2 + 4; j++)
			sum += (double)x[(k * N_V + j) * N_U + u];
	return sum * THICKNESS / SLICES / 5;
}

/* Where the shape is wrong, the projections still decide: with plates that are said to be 20 mm farther apart than they are, the
 * columns contain about what they contain without a shape. */
TEST(wrong_shape_is_bounded, .tier = 2)
{
	static const int at[] = {10, 30, 40, 45, 48};
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct exam e = project((struct shape[]){body(0, MU)}, 1, 0);
	struct dbt_protocol p = osem;
	struct dbt_report report;
	float *without = reconstruct(&e, p, THICKNESS + 20, dev, NULL), *with;

	p.breast_shape = true;
	with = reconstruct(&e, p, THICKNESS + 20, dev, &report);
	assert_true(report.shape.used);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		double a = column(without, at[i], SLICES + 4), b = column(with, at[i], SLICES + 4);

		print_message("x = %d mm: line integral %.3f, %.3f\n", PITCH * at[i], a, b);
		assert_near(b / a, 1, 0.2);
	}
}

TEST(forgone)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct exam e = project((struct shape[]){body(0, MU)}, 1, 0);
	struct dbt_protocol p = osem;
	struct dbt_session *s;
	struct dbt_report report;
	struct dbt_plan plan;
	size_t bins = scan_view_size(e.scan);
	char text[300];

	p.breast_shape = true;
	assert_int_equal(dbt_plan(&p, e.scan, SUPPORT, THICKNESS, dev, &plan, NULL), 0);
	assert_int_equal(dbt_open(&p, &plan, e.scan, dev, &s, NULL), 0);
	for (int i = 0; i < VIEWS; i++) {
		float *line, *valid;

		assert_int_equal(dbt_view_begin(s, i, &line, &valid, NULL), 0);
		for (size_t k = 0; k < bins; k++) {
			line[k] = 1;
			valid[k] = 1;
		}
		assert_int_equal(dbt_view_end(s, i, NULL), 0);
	}
	dbt_forgo_shape(s, "the header names an implant");
	assert_int_equal(dbt_run(s, NULL, &report, NULL), 0);
	breast_shape_text(&report.shape, text, sizeof(text));
	assert_string_equal(text, "Uniform start image: the header names an implant.");
	dbt_close(s);
}

/* The weight of a voxel has the same bits on all devices. */
ON_DEVICES(weights, dev)
{
	enum { N = 5000 };
	float *columns = fixture_floats(N, 1, -1, 9), *x = fixture_floats(N, 2, 0, 1), *found;
	struct buf c = fixture_upload(dev, columns, N), v = fixture_upload(dev, x, N);

	assert_int_equal(dev->ops->shape(&c, 3.7f, 0.1f, &v, NULL), 0);
	found = fixture_download(&v);
	for (size_t i = 0; i < N; i++) {
		float w = fminf(fmaxf(columns[i] - 3.7f, 0.1f), 1);

		assert_true(found[i] == x[i] * w);
	}
}

/* The skin's edge: a step of the intensity becomes three bins wide, thick tissue and bins without a datum stay, whatever blocks of
 * rows the view is divided into. */
TEST(softened_edge)
{
	enum { U = 23, V = 150 };
	float *line = fixture_floats(U * V, 1, 0, 1.3f), *valid = fixture_floats(U * V, 2, 1, 1),
	      *before = take_memory(sizeof(float) * U * V);
	size_t changed = 0;

	for (int i = 0; i < U * V; i += 17)
		valid[i] = i % 2 ? 0 : -1;
	for (int i = 0; i < U * V; i++)
		line[i] = valid[i] > 0 ? line[i] : 0;
	memcpy(before, line, sizeof(float) * U * V);
	assert_int_equal(skin_edge_soften(U, V, line, valid, NULL), 0);
	for (int j = 0; j < V; j++)
		for (int i = 0; i < U; i++) {
			double own = (double)before[j * U + i], sum = 0, part = fmin(1, (1 - own) / 0.5), expected = own;

			for (int v = -1; v <= 1; v++)
				for (int u = -1; u <= 1; u++) {
					int x = i + u < 0 || i + u >= U ? i : i + u, y = j + v < 0 || j + v >= V ? j : j + v;
					double value = valid[y * U + x] == 0 ? own : (double)before[y * U + x];

					sum += exp(-value) * (2 - abs(u)) * (2 - abs(v)) / 16;
				}
			if (valid[j * U + i] > 0 && own < 1)
				expected = own + part * (fmax(0, -log(sum)) - own);
			assert_near((double)line[j * U + i], expected, 1e-6);
			changed += line[j * U + i] != before[j * U + i];
		}
	assert_true(changed > U * V / 2);
}
