/* SPDX-License-Identifier: Apache-2.0 */
/* Both DBT operators on the CPU and on the poison device: adjoint, tiles, threads, masks, fast compared with exact,
 * invalid arguments. */
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

/* float32 entries and sums of some hundred terms have an error of about 1e-6 of the inner product; 1e-5 is required */
#define ADJOINT_TOL 1e-5
/* Blocks and order of additions do not depend on the tiles. */
#define TILE_TOL 1e-6

struct setup {
	const char *name;
	int n_u, n_v, n_views;
	double pitch;
	struct grid grid;
	double ratio; /* turn of the detector per angle of the source */
};

/* Odd sizes; bins finer than, as fine as, coarser than voxels; detectors smaller and larger than the volume. */
static const struct setup setups[] = {
	{"as fine", 37, 41, 5, 1.0, {{37, 41, 11}, {1, 1, 1.5}, {0, -20.5, 17}}},
	{"finer bins", 61, 67, 3, 0.4, {{23, 27, 9}, {1.1, 1.05, 2}, {0.3, -14, 20}}},
	{"much finer bins", 97, 89, 3, 0.2, {{7, 6, 5}, {2.9, 3.3, 4}, {-1, -9, 17}}},
	{"coarser bins", 13, 17, 3, 3.0, {{41, 53, 7}, {0.9, 1, 3}, {0, -26, 17}}},
	{"much coarser bins", 9, 7, 4, 7.3, {{63, 55, 3}, {0.5, 0.7, 8}, {2, -19, 17}}},
	{"small detector", 11, 13, 3, 1.0, {{50, 60, 6}, {0.8, 0.8, 2}, {-10, -24, 17}}},
	{"large detector", 80, 90, 3, 1.0, {{20, 22, 6}, {1, 1, 2}, {30, -33, 40}}},
	{"one voxel", 5, 5, 3, 1.0, {{1, 1, 1}, {2, 2, 2}, {1, -1, 17}}},
	{"as fine, turning", 37, 41, 5, 1.0, {{37, 41, 11}, {1, 1, 1.5}, {0, -20.5, 27}}, 0.28},
	{"finer bins, turning", 61, 67, 3, 0.4, {{23, 27, 9}, {1.1, 1.05, 2}, {0.3, -14, 20}}, 0.28},
	{"much finer bins, turning", 97, 89, 3, 0.2, {{7, 6, 5}, {2.9, 3.3, 4}, {-1, -9, 17}}, 0.28},
	{"much coarser bins, turning", 9, 7, 4, 7.3, {{63, 55, 3}, {0.5, 0.7, 8}, {2, -19, 27}}, 0.28},
	{"small detector, turning", 11, 13, 3, 1.0, {{50, 60, 6}, {0.8, 0.8, 2}, {-10, -24, 17}}, 0.28},
	{"turning with the source", 80, 90, 3, 1.0, {{20, 22, 6}, {1, 1, 2}, {30, -33, 40}}, 1},
	{"one voxel, turning", 5, 5, 3, 1.0, {{1, 1, 1}, {2, 2, 2}, {1, -1, 17}}, 0.28},
};
#define N_SETUPS (sizeof(setups) / sizeof(setups[0]))

static struct scan *setup_scan(const struct setup *s)
{
	return fixture_turning_scan(s->n_u, s->n_v, s->pitch, s->n_views, s->ratio);
}

static struct projection_spec spec_of(const struct setup *s, const struct scan *scan, enum projection_model model,
				      const struct buf *mask)
{
	return (struct projection_spec){.model = model, .scan = scan, .n_views = s->n_views, .grid = &s->grid, .mask = mask};
}

static struct buf random_mask(struct device *dev, size_t n, uint32_t seed)
{
	float *host = take_memory(n * sizeof(*host));

	for (size_t i = 0; i < n; i++)
		host[i] = fixture_random(&seed) < 0.7f;
	return fixture_upload(dev, host, n);
}

TEST(adjoint_gap)
{
	for (int which = 0; which < FIXTURE_DEVICES; which++) {
		struct device *dev = fixture_device(which, 2);

		for (size_t i = 0; i < N_SETUPS; i++) {
			const struct setup *s = &setups[i];
			struct scan *scan = setup_scan(s);
			struct buf mask = random_mask(dev, scan_view_size(scan) * (size_t)s->n_views, (uint32_t)i);

			for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++) {
				for (int masked = 0; masked < 2; masked++) {
					struct projection_spec spec = spec_of(s, scan, model, masked ? &mask : NULL);
					double gap = linop_adjoint_gap(fixture_projector(dev, &spec), (unsigned)i, NULL);

					if (!(gap >= 0 && gap <= ADJOINT_TOL))
						fail_msg("%s, %s, model %d, masked %d", dev->name, s->name, model, masked);
				}
			}
		}
	}
}

/* A detector that moves with the source, as Hologic's does. */
TEST(adjoint_gap_with_shift)
{
	const struct setup *s = &setups[0];
	struct scan *scan = setup_scan(s);
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	struct scan_view views[5];
	struct scan moving = *scan;

	for (int i = 0; i < 5; i++) {
		views[i] = scan->views[i];
		views[i].shift[0] = 0.37 * i;
		views[i].shift[1] = 3.3 * (i - 2);
	}
	moving.views = views;
	for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++) {
		struct projection_spec spec = spec_of(s, &moving, model, NULL);
		struct linop *op = fixture_projector(dev, &spec);

		spec.first = 1;
		spec.n_views = 3;
		assert_true(linop_adjoint_gap(op, 5, NULL) <= ADJOINT_TOL);
		op = fixture_projector(dev, &spec);
		assert_true(linop_adjoint_gap(op, 6, NULL) <= ADJOINT_TOL);
	}
}

/* The results of all functions of an operator, for a volume x and data y: forward, adjoint, and the fused passes if it has
 * them. */
struct results {
	float *forward, *adjoint, *ratio, *update;
	size_t n_in, n_out;
};

static const struct rule em = {RULE_EM, 1e-6f, 1e-6f, 1};

static struct results run_all(struct device *dev, const struct projection_spec *spec)
{
	struct linop *op = fixture_projector(dev, spec);
	float *xs = fixture_floats(op->n_in, 1, 0.02f, 0.06f), *ys = fixture_floats(op->n_out, 2, 0.5f, 3);
	struct buf x = fixture_upload(dev, xs, op->n_in), y = fixture_upload(dev, ys, op->n_out);
	struct buf p = fixture_upload(dev, NULL, op->n_out), c = fixture_upload(dev, NULL, op->n_in),
		   pair = fixture_upload(dev, NULL, 2 * op->n_out);
	struct results r = {.n_in = op->n_in, .n_out = op->n_out};

	assert_int_equal(op->apply(op, &x, &p, NULL), 0);
	r.forward = fixture_download(&p);
	assert_int_equal(op->adjoint(op, &y, &c, NULL), 0);
	r.adjoint = fixture_download(&c);
	if (linop_fused(op)) {
		assert_int_equal(op->apply_pair(op, &em, &x, &y, NULL, &pair, NULL), 0);
		r.ratio = fixture_download(&pair);
		assert_int_equal(op->adjoint_update(op, &em, &pair, &x, NULL), 0);
		r.update = fixture_download(&x);
	}
	return r;
}

static double results_difference(const struct results *a, const struct results *b)
{
	double most =
		fmax(fixture_difference(a->forward, b->forward, a->n_out), fixture_difference(a->adjoint, b->adjoint, a->n_in));

	if (a->ratio)
		most = fmax(most, fmax(fixture_difference(a->ratio, b->ratio, a->n_out),
				       fixture_difference(a->update, b->update, a->n_in)));
	return most;
}

TEST(tiles_change_nothing)
{
	static const int tiles[][2] = {{88, 56}, {7, 5}, {16, 16}, {17, 3}, {33, 1000}, {1000, 1000}};
	const struct setup large = {"large", 201, 133, 3, 0.5, {{199, 131, 9}, {0.5, 0.5, 2}, {0, -33, 17}}};

	for (size_t i = 0; i <= N_SETUPS; i++) {
		const struct setup *s = i < N_SETUPS ? &setups[i] : &large;
		struct scan *scan = setup_scan(s);
		struct device *dev = fixture_device(FIXTURE_CPU, 2);
		struct buf mask = random_mask(dev, scan_view_size(scan) * (size_t)s->n_views, 4);

		for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++) {
			struct projection_spec spec = spec_of(s, scan, model, &mask);
			struct results whole = run_all(dev, &spec);

			for (size_t t = 0; t < sizeof(tiles) / sizeof(tiles[0]); t++) {
				struct results tiled;

				spec.tile[0] = tiles[t][0];
				spec.tile[1] = tiles[t][1];
				tiled = run_all(dev, &spec);
				if (!(results_difference(&tiled, &whole) <= TILE_TOL))
					fail_msg("%s, model %d, tile %d x %d", s->name, model, tiles[t][0], tiles[t][1]);
			}
		}
	}
}

/* Below the source a voxel's shadow stays on one bin through all slices, and rounding decides in each whether a bin at the very
 * edge (with weight 0) belongs to it. The slices between must not read bins that are in the footprint of neither the lowest nor
 * the highest slice: on the poison device they would be NaN. With tiles of one voxel, every voxel is at an edge. */
TEST(shadows_below_the_source)
{
	for (int n = 3; n <= 43; n += 2) {
		struct setup s = {"below", n, n, 3, 0.34, {{n, n, 23}, {0.34, 0.34, 1.1}, {0, -0.17 * n, 17}}};
		struct dbt_geometry g = {n, n, 0.34, 47, 608.5, 0.34 * (n / 2 + 0.5), 3, (double[]){-25, 0, 25}};
		TEST_BLOCK;
		struct scan *scan = NULL;
		struct device *dev = fixture_device(FIXTURE_POISON, 1);
		struct projection_spec spec;
		struct results whole, tiled;

		scan = fixture_dbt_scan(&g);
		spec = spec_of(&s, scan, PROJECTION_SLICES, NULL);
		whole = run_all(dev, &spec);
		spec.tile[0] = spec.tile[1] = 1;
		tiled = run_all(dev, &spec);
		assert_true(results_difference(&tiled, &whole) <= TILE_TOL);
	}
}

/* Bitwise the same whatever the number of threads, with `deterministic` and without. */
TEST(threads_change_nothing)
{
	const struct setup *s = &setups[1];
	struct scan *scan = setup_scan(s);

	for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++) {
		struct projection_spec spec = spec_of(s, scan, model, NULL);
		struct results first = {0};

		spec.tile[0] = 9;
		spec.tile[1] = 7;
		for (int threads = 1; threads < 6; threads++) {
			struct device *dev = fixture_device(FIXTURE_CPU, threads);
			struct results r;

			spec.deterministic = threads % 2;
			r = run_all(dev, &spec);
			first = threads == 1 ? r : first;
			assert_memory_equal(r.forward, first.forward, r.n_out * sizeof(float));
			assert_memory_equal(r.adjoint, first.adjoint, r.n_in * sizeof(float));
			if (r.update)
				assert_memory_equal(r.update, first.update, r.n_in * sizeof(float));
		}
	}
}

/* Masked bins have rows of zeros and may hold any value. */
TEST(masked_bins_do_not_count)
{
	const struct setup *s = &setups[0];
	struct scan *scan = setup_scan(s);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	size_t n = scan_view_size(scan) * (size_t)s->n_views;
	struct buf mask = random_mask(dev, n, 11);
	float *on = fixture_download(&mask);

	for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++) {
		struct projection_spec spec = spec_of(s, scan, model, &mask);
		struct linop *op = fixture_projector(dev, &spec);
		float *ones = fixture_floats(op->n_in, 1, 1, 1), *ys = fixture_floats(n, 2, 1, 2), *got, *clean;
		struct buf x = fixture_upload(dev, ones, op->n_in), y, p = fixture_upload(dev, NULL, n),
			   c = fixture_upload(dev, NULL, op->n_in);

		assert_int_equal(op->apply(op, &x, &p, NULL), 0);
		got = fixture_download(&p);
		for (size_t i = 0; i < n; i++)
			assert_true(on[i] > 0 ? got[i] >= 0 : got[i] == 0);
		for (size_t i = 0; i < n; i++)
			ys[i] = on[i] > 0 ? ys[i] : 0;
		y = fixture_upload(dev, ys, n);
		assert_int_equal(op->adjoint(op, &y, &c, NULL), 0);
		clean = fixture_download(&c);
		for (size_t i = 0; i < n; i++)
			ys[i] = on[i] > 0 ? ys[i] : NAN;
		assert_int_equal(dev->ops->upload(&y, ys, NULL), 0);
		assert_int_equal(op->adjoint(op, &y, &c, NULL), 0);
		got = fixture_download(&c);
		assert_memory_equal(got, clean, op->n_in * sizeof(float));
	}
}

/* A uniform volume as wide as the rays need: both models give the analytic chord, height / cos,
 * of every ray that stays inside. */
static void chords_of(double ratio, int n_v)
{
	const struct grid grid = {{60, 200, 30}, {1, 1, 1.5}, {-5, -100, 17}};
	struct scan *scan = fixture_turning_scan(45, n_v, 1.1, 5, ratio);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);

	for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++)
		fixture_check_chords(dev, &(struct projection_spec){.model = model, .scan = scan, .n_views = 5, .grid = &grid});
}

TEST(chords)
{
	chords_of(0, 60);
	chords_of(0.28, 60);
	chords_of(0.28, 7);
	chords_of(0.28, 2);
}

/* On a smooth volume the two models agree up to how they sample it. The exact walk takes voxels as constant: at a distance of up
 * to h / 2 from a voxel's centre it errs by h / 2 |f'|, and neighbouring slices do not average that out where rays are steep. For
 * a Gaussian of width s, |f'| <= f_max exp(-1/2) / s. The slices' own error is of second order, (h_x^2 + h_y^2 + h_z^2 / 3) / 8 *
 * f_max / s^2. With s = 8 mm and slices of 1.5 mm that is 4.3 % of the largest value for voxels of 1 mm, and 2.2 % for 0.5 mm;
 * sums over all rays, where the signs of the first-order error cancel, agree to the second-order one, 0.6 %. */
static double model_tolerance(double h)
{
	return h / 2 * exp(-0.5) / 8 + (2 * h * h + 1.5 * 1.5 / 3) / 8 / 64;
}
#define MODEL_SUM_TOL 0.006

static double models_differ(double h, double ratio, double *ret_sums)
{
	const struct grid grid = {{(int)(60 / h), (int)(100 / h), 30}, {h, h, 1.5}, {0, -50, 17}};
	struct scan *scan = fixture_turning_scan(120, 200, 0.5, 5, ratio);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	float *xs = take_memory(grid_size(&grid) * sizeof(float)), *got[2];
	size_t n = 0;

	for (int k = 0; k < grid.n[2]; k++) {
		for (int j = 0; j < grid.n[1]; j++) {
			for (int i = 0; i < grid.n[0]; i++, n++) {
				double x = (i + 0.5) * h - 30, y = (j + 0.5) * h - 50 - 3, z = (k + 0.5) * 1.5 - 22;

				xs[n] = (float)(0.05 * exp(-(x * x + y * y + z * z) / (2 * 8 * 8)));
			}
		}
	}
	for (int m = 0; m < 2; m++) {
		struct projection_spec spec = {
			.model = m ? PROJECTION_SLICES : PROJECTION_EXACT, .scan = scan, .n_views = 5, .grid = &grid};
		struct linop *op = fixture_projector(dev, &spec);
		struct buf x = fixture_upload(dev, xs, op->n_in), p = fixture_upload(dev, NULL, op->n_out);

		assert_int_equal(op->apply(op, &x, &p, NULL), 0);
		assert_int_equal(dev->ops->sum(&p, &ret_sums[m], NULL), 0);
		got[m] = fixture_download(&p);
		n = op->n_out;
	}
	return fixture_difference(got[1], got[0], n);
}

TEST(fast_is_near_exact)
{
	double sums[2];

	for (int turning = 0; turning < 2; turning++) {
		for (double h = 1; h >= 0.5; h /= 2) {
			double difference = models_differ(h, turning ? 0.28 : 0, sums);

			print_message("voxels of %g mm%s: largest difference %.4f, of the sums %.5f\n", h,
				      turning ? ", turning detector" : "", difference, fabs(sums[1] / sums[0] - 1));
			assert_true(difference <= model_tolerance(h));
			assert_near(sums[1], sums[0], MODEL_SUM_TOL * sums[0]);
		}
	}
}

static void refuse(struct device *dev, const struct projection_spec *spec, const char *word)
{
	struct linop *op = NULL;
	struct err err = {0};

	assert_error(projector_create(dev, spec, &op, &err), &err, EINVAL, word);
	assert_null(op);
}

TEST(refusals)
{
	const struct setup *s = &setups[0];
	struct scan *scan = setup_scan(s);
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct projection_spec good = spec_of(s, scan, PROJECTION_SLICES, NULL), bad = good;
	struct grid grid = s->grid;
	struct buf mask = fixture_upload(dev, NULL, 7), x, y;
	struct linop *op;
	struct err err;

	bad.grid = &grid;
	grid.h[1] = NAN;
	refuse(dev, &bad, "axis 1");
	grid = s->grid;
	grid.n[2] = 0;
	refuse(dev, &bad, "axis 2");
	grid = s->grid;
	grid.n[2] = 1000; /* beyond the source */
	refuse(dev, &bad, "source");
	grid = s->grid;
	grid.lo[2] = -5; /* below the detector */
	refuse(dev, &bad, "detector");
	bad = good;
	bad.first = 3;
	refuse(dev, &bad, "views 3 to 7");
	bad = good;
	bad.mask = &mask;
	refuse(dev, &bad, "mask has 7");
	bad = good;
	bad.tile[0] = -1;
	refuse(dev, &bad, "tile");
	bad = good;
	bad.model = 9;
	refuse(dev, &bad, "model 9");
	op = fixture_projector(dev, &good);
	x = fixture_upload(dev, NULL, op->n_in);
	y = fixture_upload(dev, NULL, op->n_out - 1);
	assert_int_equal(op->apply(op, &x, &y, &err), -EINVAL);
	assert_int_equal(op->adjoint(op, &y, &x, &err), -EINVAL);
	assert_int_equal(op->adjoint_update(op, &em, &y, &x, &err), -EINVAL);
}
