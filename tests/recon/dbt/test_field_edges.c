/* SPDX-License-Identifier: Apache-2.0 */
/* Bins at the sides of a view's field: tissue that continues beyond the field leaves no steps in the image, with every algorithm
 * and in every plan; objects that end inside it are reconstructed as without the weights. */
#include "recon/core/iterate.h"
#include "recon/dbt/field_edges.h"
#include "tests/recon/dbt/case_fixture.h"
#include "tests/recon/dbt/slab_fixture.h"
#include "tests/test.h"

#define WIDTH 20.0

struct steps {
	double step, error; /* largest step between neighbouring rows, largest difference from MU; relative to MU */
};

/* Measure the upper half of the volume, where the edges of the fields are about 5 mm apart, without the last 8 mm. A step is the
 * difference of two rows minus the mean of the differences beside it. */
static struct steps measure(const struct slab *s)
{
	const struct grid *g = &s->plan.grid;
	struct steps found = {0};

	for (int k = g->n[2] / 2; k < g->n[2]; k++) {
		double row[120];

		for (int j = 0; j < g->n[1]; j++) {
			const float *x = s->volume + ((size_t)k * (size_t)g->n[1] + (size_t)j) * (size_t)g->n[0];

			row[j] = 0;
			for (int i = 4; i < 16; i++)
				row[j] += x[i] / (12 * MU);
		}
		for (int j = 4; j + 5 < g->n[1]; j++) {
			double beside = (row[j] - row[j - 1] + row[j + 2] - row[j + 1]) / 2;

			found.step = fmax(found.step, fabs(row[j + 1] - row[j] - beside));
			found.error = fmax(found.error, fabs(row[j] - 1));
		}
	}
	return found;
}

static struct steps slab_steps(struct dbt_protocol p, double ratio, double taper)
{
	struct slab s = slab_open(&p, FIXTURE_CPU);
	struct steps found;

	p.edge_taper = taper;
	s.scan = fixture_turning_scan(40, 120, 2, 25, ratio);
	slab_lines(s.scan, HEIGHT, s.line, s.valid);
	slab_run(&s, &p);
	found = measure(&s);
	return found;
}

/* A uniform slab that continues beyond the detector. */
TEST(no_steps)
{
	static const struct {
		const char *name;
		enum algorithm algorithm;
		int iterations, subsets;
	} runs[] = {{"osem", ALGORITHM_OSEM, 1, 0}, {"osem, 5 subsets", ALGORITHM_OSEM, 1, 5}, {"mlem", ALGORITHM_MLEM, 6, 0},
		    {"ostr", ALGORITHM_OSTR, 1, 0}, {"ostr, 5 subsets", ALGORITHM_OSTR, 1, 5}, {"mltr", ALGORITHM_MLTR, 8, 0},
		    {"sart", ALGORITHM_SART, 1, 0}};

	enum { ALL = sizeof(runs) / sizeof(runs[0]), FEW = 3 };

	for (size_t k = 0; k < test_count(ALL, FEW); k++)
		for (int turns = 0; turns < 2; turns++) {
			size_t i = test_nth(k, ALL, FEW);
			struct dbt_protocol p = {.algorithm = runs[i].algorithm,
						 .iterations = runs[i].iterations,
						 .subsets = runs[i].subsets,
						 .relaxation = 0.5,
						 .voxel = 2,
						 .slice_spacing = 2,
						 .projector = PROJECTION_SLICES};
			struct steps before = slab_steps(p, 0.285 * turns, 0), after = slab_steps(p, 0.285 * turns, WIDTH);

			print_message("%s, %s: step %.2f %%, error %.2f %%; without weights %.2f %%, %.2f %%\n", runs[i].name,
				      turns ? "turning" : "still", 100 * after.step, 100 * after.error, 100 * before.step,
				      100 * before.error);
			assert_true(before.step > 2 * after.step && before.error > 0.02);
			assert_true(after.step < 0.005);
			assert_true(after.error < 0.04);
		}
}

/* Return the largest difference from MU in the middle rows, of the first 6 columns at the chest wall and of all slices. */
static double chest_wall_error(struct dbt_protocol p, double ratio, double taper)
{
	struct slab s = slab_open(&p, FIXTURE_CPU);
	const struct grid *g = &s.plan.grid;
	double found = 0, angle[25];
	struct dbt_geometry geometry = {.n_u = 40,
					.n_v = 120,
					.pitch = 2,
					.axis_height = 47,
					.source_axis = 608.5,
					.source_x = -60, /* rays pass the chest-wall side of the volume up to 6 mm away from it */
					.n_views = 25,
					.angle = angle,
					.detector_ratio = ratio};

	p.edge_taper = taper;
	for (int i = 0; i < 25; i++)
		angle[i] = -25 + 50.0 * i / 24;
	s.scan = fixture_dbt_scan(&geometry);
	slab_lines(s.scan, HEIGHT, s.line, s.valid);
	slab_run(&s, &p);
	for (int k = 0; k < g->n[2]; k++)
		for (int j = 50; j < 70; j++)
			for (int i = 0; i < 6; i++) {
				size_t at = ((size_t)k * (size_t)g->n[1] + (size_t)j) * (size_t)g->n[0] + (size_t)i;

				found = fmax(found, fabs(s.volume[at] / MU - 1));
			}
	return found;
}

/* A uniform slab that continues beyond the chest-wall side, behind which the source is. */
TEST(chest_wall)
{
	static const struct {
		const char *name;
		enum algorithm algorithm;
		int iterations;
	} runs[] = {{"osem", ALGORITHM_OSEM, 1},
		    {"mlem", ALGORITHM_MLEM, 6},
		    {"ostr", ALGORITHM_OSTR, 1},
		    {"sart", ALGORITHM_SART, 1}};

	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		for (int turns = 0; turns < 2; turns++) {
			struct dbt_protocol p = {.algorithm = runs[i].algorithm,
						 .iterations = runs[i].iterations,
						 .relaxation = 0.5,
						 .voxel = 2,
						 .slice_spacing = 2,
						 .projector = PROJECTION_SLICES};
			double before = chest_wall_error(p, 0.285 * turns, 0), after = chest_wall_error(p, 0.285 * turns, WIDTH);

			print_message("%s, %s: error at the chest wall %.1f %%; without weights %.1f %%\n", runs[i].name,
				      turns ? "turning" : "still", 100 * after, 100 * before);
			assert_true(before > 1 && after < 0.1);
		}
}

/* Reconstruct a bar of MU, 30 mm long and as high as the volume, with a detector of 40 mm and 25 views over 60 degrees: only
 * oblique views cut it. Compute the least and the largest mean of a slice in its middle, relative to MU. */
static void bar_ends_inside(struct dbt_protocol p, double taper, double ret_mean[2])
{
	struct shape box = {SHAPE_BOX, ROLE_BODY, {0, 0, 17 + 0.5 * HEIGHT}, {60, 15, 0.5 * HEIGHT}, MU};
	struct phantom phantom = {"bar", 1, &box};
	struct slab s = slab_open(&p, FIXTURE_CPU);
	const struct grid *g = &s.plan.grid;
	double angle[25];
	struct dbt_geometry geometry = {
		.n_u = 40, .n_v = 20, .pitch = 2, .axis_height = 47, .source_axis = 608.5, .n_views = 25, .angle = angle};

	p.edge_taper = taper;
	for (int i = 0; i < 25; i++)
		angle[i] = -30 + 60.0 * i / 24;
	s.scan = fixture_dbt_scan(&geometry);
	assert_int_equal(dbt_plan(&p, s.scan, 17, HEIGHT, s.dev, &s.plan, NULL), 0);
	for (int view = 0; view < 25; view++)
		assert_int_equal(phantom_project(&phantom, s.scan, view, s.line + (size_t)view * scan_view_size(s.scan), NULL),
				 0);
	for (size_t i = 0; i < 25 * scan_view_size(s.scan); i++)
		s.valid[i] = s.line[i] > 0 ? 1 : -1;
	slab_run(&s, &p);
	ret_mean[0] = INFINITY;
	ret_mean[1] = 0;
	for (int k = 0; k < g->n[2]; k++) {
		double sum = 0;
		int n = 0;

		for (int j = 0; j < g->n[1]; j++)
			for (int i = 8; i < 22; i++)
				if (fabs(g->lo[1] + (j + 0.5) * g->h[1]) < 8) {
					sum += s.volume[((size_t)k * (size_t)g->n[1] + (size_t)j) * (size_t)g->n[0] + (size_t)i];
					n++;
				}
		ret_mean[0] = fmin(ret_mean[0], sum / n / MU);
		ret_mean[1] = fmax(ret_mean[1], sum / n / MU);
	}
}

TEST(object_that_ends_inside)
{
	static const struct {
		const char *name;
		enum algorithm algorithm;
		int iterations;
	} runs[] = {{"osem", ALGORITHM_OSEM, 4},
		    {"mlem", ALGORITHM_MLEM, 40},
		    {"ostr", ALGORITHM_OSTR, 4},
		    {"sart", ALGORITHM_SART, 4}};

	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct dbt_protocol p = {.algorithm = runs[i].algorithm,
					 .iterations = runs[i].iterations,
					 .relaxation = 0.5,
					 .voxel = 2,
					 .slice_spacing = 2,
					 .projector = PROJECTION_SLICES};
		double without[2], with[2];

		bar_ends_inside(p, 0, without);
		bar_ends_inside(p, 5, with);
		print_message("%s: slices %.2f to %.2f of the attenuation, without weights %.2f to %.2f\n", runs[i].name, with[0],
			      with[1], without[0], without[1]);
		assert_true(with[0] > without[0] && with[1] < without[1] + 0.03);
	}
}

/* Replace the object by a bar of this half length along y. */
static void make_bar(struct test_case *c, double half)
{
	struct shape shapes[] = {
		{SHAPE_BOX, ROLE_BODY, {0, 0, CASE_SUPPORT + 10}, {30, half, 9}, 0.05},
		{SHAPE_ELLIPSOID, ROLE_LESION, {12, -8, CASE_SUPPORT + 14}, {4, 4, 4}, 0.03},
	};
	struct phantom phantom = {"bar", 2, shapes};

	for (int i = 0; i < CASE_VIEWS; i++)
		assert_int_equal(phantom_project(&phantom, c->scan, i, c->line + (size_t)i * c->view_bins, NULL), 0);
	for (size_t i = 0; i < c->view_bins * CASE_VIEWS; i++)
		c->valid[i] = c->valid[i] == 0 ? 0 : c->line[i] > 0 ? 1 : -1;
}

/* An object that ends inside the fields of all views, except at the chest wall. */
TEST(nothing_changes)
{
	struct test_case c = case_open();

	make_bar(&c, 12);
	for (size_t k = 0; k < CASE_ALGORITHMS; k++) {
		struct device *dev = fixture_device(FIXTURE_CPU, 1);
		struct dbt_protocol p = case_with(&case_algorithms[k], PROJECTION_SLICES);
		struct dbt_plan plan = case_plan(&c, &p, dev);
		float *without = case_run(&c, &p, &plan, dev), *with;

		p.edge_taper = WIDTH;
		with = case_run(&c, &p, &plan, dev);
		if (with)
			assert_memory_equal(with, without, grid_size(&plan.grid) * sizeof(float));
	}
}

/* Slabs, groups of views and tiles give the image that a volume on the device gives. */
TEST(every_plan)
{
	struct test_case c = case_open();

	make_bar(&c, 60);
	for (size_t k = 0; k < CASE_ALGORITHMS; k++)
		for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++) {
			struct dbt_protocol p = case_with(&case_algorithms[k], model);
			struct device *dev = fixture_device(FIXTURE_POISON, 1);
			struct dbt_plan plan = case_plan(&c, &p, dev);
			float *without = case_run(&c, &p, &plan, dev), *whole, *found;

			p.edge_taper = WIDTH;
			whole = case_run(&c, &p, &plan, dev);
			for (int tiled = 0; whole && tiled < 2; tiled++) {
				struct dbt_plan other;

				p.tile[0] = tiled ? 8 : 0;
				p.tile[1] = tiled ? 16 : 0;
				p.memory_limit = tiled ? 0 : plan.bytes.total - 1;
				other = case_plan(&c, &p, dev);
				assert_true(tiled || other.slab_slices < CASE_SLICES || other.group_views > 0);
				found = case_run(&c, &p, &other, dev);
				assert_true(fixture_difference(found, whole, grid_size(&plan.grid)) <= 1e-6);
			}
			if (whole)
				assert_true(fixture_difference(whole, without, grid_size(&plan.grid)) > 0.01);
		}
}

/* A volume that explains the data stays as it is, whatever the weights are. */
TEST(solution_stays)
{
	static const struct rule rules[] = {{RULE_EM, 1e-6f, 1e-6f, 1, false, true},
					    {RULE_TRANSMISSION, 1e-6f, 1e-12f, 1, false, true},
					    {RULE_SART, 1e-6f, 1e-6f, 0.5f, false, true}};
	static const struct grid grid = {{44, 62, 10}, {1, 1, 2}, {0, -31, CASE_SUPPORT}};
	struct scan *scan = fixture_scan(44, 62, 1, CASE_VIEWS);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	size_t voxels = grid_size(&grid), bins = scan_view_size(scan) * CASE_VIEWS;
	float *truth = fixture_floats(voxels, 3, 0.04f, 0.06f), *weights = fixture_floats(bins, 4, 0.001f, 1.2f);
	struct buf x = fixture_upload(dev, truth, voxels), y = fixture_upload(dev, NULL, bins),
		   row = fixture_upload(dev, NULL, bins), mask = fixture_upload(dev, weights, bins);
	struct projection_spec spec = {
		.model = PROJECTION_SLICES, .scan = scan, .n_views = CASE_VIEWS, .grid = &grid, .mask = &mask};
	struct linop *op = fixture_projector(dev, &spec);
	struct iterate_subset all = {.op = op, .y = y, .row = row};
	struct session_memory memory = {.dev = dev};
	struct iterate_work work;

	assert_int_equal(iterate_work_alloc(&memory, voxels, bins, true, false, &work, NULL), 0);
	assert_int_equal(dev->ops->fill(&x, 1, NULL) | op->apply(op, &x, &row, NULL), 0);
	assert_int_equal(dev->ops->upload(&x, truth, NULL) | op->apply(op, &x, &y, NULL), 0);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const struct iterate_conf conf = {rules[i], 3};
		float *found;

		assert_int_equal(iterate_run(&conf, &all, 1, &work, &x, NULL, NULL), 0);
		found = fixture_download(&x);
		assert_true(fixture_difference(found, truth, voxels) < 1e-5);
	}
	session_release(&memory);
}

#define N_U 40
#define N_V 120

struct edge_view {
	struct scan *scan;
	float line[N_V * N_U], valid[N_V * N_U];
};

/* Tissue in columns [0, u) and rows [v0, v1), air in the others; view 12 of 25 is at 0 degrees. */
static struct edge_view *edge_view(int u, int v0, int v1)
{
	struct edge_view *e = take_zeros(1, sizeof(*e));

	e->scan = fixture_scan(N_U, N_V, 2, 25);
	for (int v = 0; v < N_V; v++)
		for (int c = 0; c < N_U; c++) {
			bool tissue = c < u && v >= v0 && v < v1;

			e->line[v * N_U + c] = tissue ? 2.5f : 0;
			e->valid[v * N_U + c] = tissue ? 1 : -1;
		}
	return e;
}

static bool weigh(struct edge_view *e, int view)
{
	static const struct grid grid = {{40, 120, 50}, {2, 2, 1}, {0, -120, 17}};

	static const bool continues[] = {true, true};
	float part[N_V];
	struct field_ends ends;
	bool weighed = field_edges_weigh(e->scan, view, &grid, WIDTH, 2.5, true, e->line, e->valid, &ends);

	if (field_edges_parts(e->scan, view, &grid, &ends, continues, part))
		for (int i = 0; i < N_V * N_U; i++)
			e->line[i] *= part[i / N_U];
	return weighed;
}

TEST(sides)
{
	struct edge_view *e = edge_view(20, 2, 118);

	assert_false(weigh(e, 12)); /* air on all sides except the chest wall */
	assert_true(e->valid[60 * N_U] == 1 && e->line[60 * N_U] == 2.5f);
	e->valid[3] = 1;
	e->line[3] = 9; /* a dead bin is no tissue */
	assert_false(weigh(e, 12));

	e = edge_view(20, 0, 100);
	assert_true(weigh(e, 12));
	assert_near(e->valid[5 * N_U + 2], 0.5 * (1 - cos(M_PI * 11 / WIDTH)), 1e-6);
	assert_true(e->valid[0] > 0 && e->valid[0] < 0.01 && e->valid[10 * N_U] == 1 && e->valid[90 * N_U] == 1);
	assert_true(e->valid[30] == -1);	   /* air stays air */
	assert_true(e->line[5 * N_U + 2] == 2.5f); /* at 0 degrees all rays are inside */

	e = edge_view(20, 0, 120); /* at 25 degrees, rays at the upper side leave the volume, those at the lower side do not */
	assert_true(weigh(e, 24));
	assert_true(e->line[(N_V - 3) * N_U] < 2.4f && e->line[(N_V - 1) * N_U] < 0.3f && e->line[0] == 2.5f);

	e = edge_view(40, 40,
		      80); /* tissue at the side opposite the chest wall, where the fields of all views end at one place */
	assert_false(weigh(e, 12) || weigh(e, 0) || weigh(e, 24));
	assert_true(e->valid[60 * N_U + N_U - 1] == 1 && e->valid[60 * N_U] == 1);

	e = edge_view(20, 0, 120); /* collimated rows have no data: the field ends before them */
	for (int i = 0; i < 6 * N_U; i++)
		e->valid[i] = 0;
	assert_true(weigh(e, 12));
	assert_true(e->valid[0] == 0 && e->valid[6 * N_U] > 0 && e->valid[6 * N_U] < 0.01 && e->valid[16 * N_U] == 1);
}

/* The object continues beyond an end if the view whose last rays are nearest to it has tissue there. */
TEST(views_at_the_ends)
{
	static const struct field_ends views[] = {{{true, true}, {30, 40}},
						  {{true, false}, {INFINITY, 3}},
						  {{false, true}, {4, 30}},
						  {{true, true}, {5, INFINITY}}};
	bool continues[2];

	field_edges_continue(views, 4, continues);
	assert_true(!continues[0] && !continues[1]);
	field_edges_continue(views, 2, continues);
	assert_true(continues[0] && !continues[1]);
	field_edges_continue(views, 1, continues);
	assert_true(continues[0] && continues[1]);
	field_edges_continue(NULL, 0, continues);
	assert_true(!continues[0] && !continues[1]);
}
