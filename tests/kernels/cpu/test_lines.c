/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of 2-D parallel beams: every ray of each model compared with a row of the system matrix computed pixel by pixel, and
 * sweeps compared with Kaczmarz' method on these rows. */
#include "tests/kernels/cpu/lines_fixture.h"
#include "tests/kernels/draw.h"
#include "tests/test.h"

/* Return bins of random values; NaN in bins without a ray. */
static float *sinogram(const struct fixture *f, uint32_t seed)
{
	float *y = take_memory(f->n_out * sizeof(float));

	for (size_t i = 0; i < f->n_out; i++)
		y[i] = scan_reach(&f->scan, (int)(i / (size_t)f->scan.n_u % (size_t)f->scan.n_v)) > 0
			       ? (fixture_random(&seed) - 0.3f)
			       : NAN;
	return y;
}

/* Restrict the range of t to that in which o + t d is in [low, high) of one axis. */
static void clip(double o, double d, double low, double high, double *t0, double *t1)
{
	if (d == 0) {
		if (!(low <= o && o < high))
			*t1 = *t0;
		return;
	}
	*t0 = fmax(*t0, fmin((low - o) / d, (high - o) / d));
	*t1 = fmin(*t1, fmax((low - o) / d, (high - o) / d));
}

static void row_lengths(const struct fixture *f, double r, double reach, const double turn[2], double *row)
{
	const struct grid *g = &f->grid;
	double across = 0.51 * (fabs(turn[0]) * g->h[0] + fabs(turn[1]) * g->h[1]);

	for (int j = 0; j < g->n[1]; j++)
		for (int i = 0; i < g->n[0]; i++) {
			double t0 = -reach, t1 = reach, x = g->lo[0] + i * g->h[0], y = g->lo[1] + j * g->h[1];

			if (fabs((x + g->h[0] / 2) * turn[0] + (y + g->h[1] / 2) * turn[1] - r) > across)
				continue; /* far from the ray */
			clip(r * turn[0], -turn[1], x, x + g->h[0], &t0, &t1);
			clip(r * turn[1], turn[0], y, y + g->h[1], &t0, &t1);
			row[j * g->n[0] + i] = fmax(t1 - t0, 0);
		}
}

static void row_joseph(const struct fixture *f, double r, double reach, const double turn[2], double *row)
{
	const struct grid *g = &f->grid;
	bool along_x = fabs(turn[1]) > fabs(turn[0]);
	int lead = along_x ? 0 : 1, other = 1 - lead, last = g->n[other] - 1;
	double d[2] = {-turn[1], turn[0]};

	for (int k = 0; k < g->n[lead]; k++) {
		double t = (g->lo[lead] + (k + 0.5) * g->h[lead] - r * turn[lead]) / d[lead];
		double at = (r * turn[other] + t * d[other] - g->lo[other]) / g->h[other] - 0.5,
		       step = g->h[lead] / fabs(d[lead]);

		if (fabs(t) > reach || at < -0.5 || at >= last + 0.5)
			continue;
		at = fmin(fmax(at, 0), last);
		for (int i = 0; i <= last; i++)
			row[along_x ? i * g->n[0] + k : k * g->n[0] + i] = step * fmax(0, 1 - fabs(i - at));
	}
}

static void row_sampled(const struct fixture *f, double r, double reach, const double turn[2], double *row)
{
	const struct grid *g = &f->grid;

	for (long k = -(long)(reach / f->sampling) - 2; k < (long)(reach / f->sampling) + 2; k++) {
		double t = (k + 0.5) * f->sampling;
		double x = (r * turn[0] - t * turn[1] - g->lo[0]) / g->h[0] - 0.5;
		double y = (r * turn[1] + t * turn[0] - g->lo[1]) / g->h[1] - 0.5;

		for (int j = (int)floor(y); fabs(t) <= reach && j <= (int)floor(y) + 1; j++)
			for (int i = (int)floor(x); i <= (int)floor(x) + 1; i++)
				if (i >= 0 && j >= 0 && i < g->n[0] && j < g->n[1])
					row[j * g->n[0] + i] += f->sampling * (1 - fabs(i - x)) * (1 - fabs(j - y));
	}
}

static void make_row(const struct fixture *f, enum projection_model model, int view, int v, double *row)
{
	double reach = scan_reach(&f->scan, v), r = f->radius[v];

	memset(row, 0, f->pixels * sizeof(*row));
	if (reach == 0)
		return;
	if (model == PROJECTION_PATHS)
		row_lengths(f, r, reach, f->views[view].turn, row);
	else if (model == PROJECTION_JOSEPH)
		row_joseph(f, r, reach, f->views[view].turn, row);
	else
		row_sampled(f, r, reach, f->views[view].turn, row);
}

/* The rows of a system matrix without their zeros: those of ray i are entries at[i] to at[i + 1]. Made once for all devices. */
struct entry {
	size_t pixel;
	double weight;
};

struct matrix {
	const struct setup *setup;
	enum projection_model model;
	double sampling;
	size_t at[VIEWS * MOST_BINS + 1];
	struct entry *entry;
};

static void fill_matrix(const struct fixture *f, enum projection_model model, struct matrix *m)
{
	double *row = take_zeros(f->pixels, sizeof(double));
	size_t room = 0, n = 0, ray = 0;

	free(m->entry);
	*m = (struct matrix){.setup = f->setup, .model = model, .sampling = f->sampling};
	for (int view = 0; view < VIEWS; view++)
		for (int v = 0; v < f->scan.n_v; v++) {
			make_row(f, model, view, v, row);
			if (n + f->pixels > room) {
				room = 2 * room + f->pixels;
				m->entry = realloc(m->entry, room * sizeof(*m->entry));
				assert_non_null(m->entry);
			}
			for (size_t i = 0; i < f->pixels; i++)
				if (row[i] > 0)
					m->entry[n++] = (struct entry){i, row[i]};
			m->at[++ray] = n;
		}
}

static struct matrix kept[N_MODELS];

static const struct matrix *matrix_of(const struct fixture *f, enum projection_model model)
{
	static size_t next;

	for (size_t i = 0; i < N_MODELS; i++)
		if (kept[i].setup == f->setup && kept[i].model == model && kept[i].sampling == f->sampling)
			return &kept[i];
	next = (next + 1) % N_MODELS;
	fill_matrix(f, model, &kept[next]);
	return &kept[next];
}

static void forget_matrices(void)
{
	for (size_t i = 0; i < N_MODELS; i++)
		kept[i].setup = NULL;
}

/* Check forward and back, each twice: the second time with `add`. */
static void check_operator(struct fixture *f, enum projection_model model)
{
	struct projection *a = create(f, model);
	float *x = volume(f, 1, NAN), *y = sinogram(f, 2);
	double *want_y = take_zeros(f->n_out, sizeof(double)), *want_x = take_zeros(f->n_in, sizeof(double));
	const struct matrix *matrix = matrix_of(f, model);
	struct buf bx = fixture_upload(f->dev, x, f->n_in), by = fixture_upload(f->dev, y, f->n_out),
		   ret_y = fixture_upload(f->dev, NULL, f->n_out), ret_x = fixture_upload(f->dev, NULL, f->n_in);
	size_t n_u = (size_t)f->scan.n_u;

	for (size_t ray = 0; ray < f->n_out / n_u; ray++)
		for (size_t i = matrix->at[ray]; i < matrix->at[ray + 1]; i++) {
			const struct entry *e = &matrix->entry[i];

			for (size_t u = 0; u < n_u; u++) {
				want_y[ray * n_u + u] += e->weight * x[voxel(f, e->pixel, (int)u)];
				want_x[voxel(f, e->pixel, (int)u)] += e->weight * y[ray * n_u + u];
			}
		}
	for (int pass = 1; pass <= 2; pass++) {
		assert_int_equal(f->v->forward(a, &bx, pass == 2, &ret_y, NULL), 0);
		assert_int_equal(f->v->adjoint(a, &by, pass == 2, &ret_x, NULL), 0);
		near(fixture_download(&ret_y), want_y, f->n_out, TOL);
		near(fixture_download(&ret_x), want_x, f->n_in, TOL); /* 0 in the padding */
		for (size_t i = 0; i < f->n_out; i++)
			want_y[i] *= 2;
		for (size_t i = 0; i < f->n_in; i++)
			want_x[i] *= 2;
	}
}

/* Compute a sweep ray by ray, in the order of kernels/device.h. First check that the rays of a pass have no pixel in common, so
 * that a device may compute them in parallel. */
static void sweep(const struct fixture *f, enum projection_model model, double relaxation, const float *y, double *x)
{
	int stride = lines_stride(model, &f->scan, &f->grid), n_v = f->scan.n_v, *taken = take_zeros(f->pixels, sizeof(*taken));
	const struct matrix *matrix = matrix_of(f, model);
	size_t n_u = (size_t)f->scan.n_u;
	int pass = 0;

	for (int view = 0; view < VIEWS; view++)
		for (int first = 0; first < stride; first++) {
			pass++;
			for (int v = first; v < n_v; v += stride) {
				size_t ray = (size_t)view * (size_t)n_v + (size_t)v, n = matrix->at[ray + 1] - matrix->at[ray];
				const struct entry *row = matrix->entry + matrix->at[ray];
				const float *data = y + ray * n_u;
				double norm = 0;

				for (size_t i = 0; i < n; i++) {
					norm += row[i].weight * row[i].weight;
					assert_true(taken[row[i].pixel] != pass);
					taken[row[i].pixel] = pass;
				}
				for (size_t u = 0; norm > 0 && u < n_u; u++) {
					double sum = 0;

					for (size_t i = 0; i < n; i++)
						sum += row[i].weight * x[voxel(f, row[i].pixel, (int)u)];
					for (size_t i = 0; i < n; i++)
						x[voxel(f, row[i].pixel, (int)u)] +=
							relaxation * (data[u] - sum) / norm * row[i].weight;
				}
			}
		}
}

/* Check a sweep over a table that is kept and, of one slice, without a table, as where it would be too large. The data are
 * projections of an image, because noise would be amplified: the norm of a ray that only touches a corner is nearly 0. */
static void check_sweep(struct fixture *f, enum projection_model model)
{
	for (int table = f->scan.n_u > 1; table < 2; table++) {
		TEST_BLOCK;
		struct projection *a = create_for(f, model, table);
		float *x = volume(f, 3, 0), *start = volume(f, 4, 0), *y;
		double *want = take_zeros(f->n_in, sizeof(double));
		struct buf bx = fixture_upload(f->dev, x, f->n_in), by = fixture_upload(f->dev, NULL, f->n_out);

		assert_int_equal(f->v->forward(a, &bx, false, &by, NULL), 0);
		y = fixture_download(&by);
		for (size_t i = 0; i < f->n_in; i++)
			want[i] = start[i];
		assert_int_equal(f->v->upload(&bx, start, NULL), 0);
		sweep(f, model, 0.4f, y, want);
		assert_int_equal(f->v->row_sweep(a, 0.4f, &by, &bx, NULL), 0);
		near(fixture_download(&bx), want, f->n_in, 3 * TOL);
	}
}

static void check_models(struct fixture *f)
{
	for (size_t m = 0; m < N_MODELS; m++) {
		check_operator(f, models[m]);
		check_sweep(f, models[m]);
	}
}

/* Check <A x, y> = <x, A'y>, computed in double. */
static void check_gap(struct fixture *f)
{
	for (size_t m = 0; m < N_MODELS; m++) {
		struct projection *a = create(f, models[m]);
		float *x = volume(f, 6, 0), *y = sinogram(f, 7), *ax, *aty;
		struct buf bx, by, ret_x = fixture_upload(f->dev, NULL, f->n_in), ret_y = fixture_upload(f->dev, NULL, f->n_out);
		double left = 0, right = 0, left2 = 0, y2 = 0;

		for (size_t i = 0; i < f->n_in; i++)
			x[i] = fabsf(x[i]);
		for (size_t i = 0; i < f->n_out; i++)
			y[i] = isnan(y[i]) ? 0 : fabsf(y[i]);
		bx = fixture_upload(f->dev, x, f->n_in);
		by = fixture_upload(f->dev, y, f->n_out);
		assert_int_equal(f->v->forward(a, &bx, false, &ret_y, NULL), 0);
		assert_int_equal(f->v->adjoint(a, &by, false, &ret_x, NULL), 0);
		ax = fixture_download(&ret_y);
		aty = fixture_download(&ret_x);
		for (size_t i = 0; i < f->n_out; i++) {
			left += (double)ax[i] * y[i];
			left2 += (double)ax[i] * ax[i];
			y2 += (double)y[i] * y[i];
		}
		for (size_t i = 0; i < f->n_in; i++)
			right += (double)aty[i] * x[i];
		assert_true(left > 0);
		assert_true(fabs(left - right) <= 1e-6 * sqrt(left2 * y2));
	}
}

TEST(test_models)
{
	everywhere(check_models);
}

/* What a plan counts: of each further view more, and without a table less than with one. */
TEST(test_memory)
{
	for (size_t i = 0; i < N_SETUPS * 2; i++) {
		struct fixture *f = take_zeros(1, sizeof(*f));
		enum projection_model model = models[i % 2];
		struct projection_spec all, one;

		set_up(f, &setups[i / 2], fixture_device(FIXTURE_CPU, 3));
		all = one = spec_for(f, model, false);
		one.n_views = 1;
		if (f->v->projection_bytes(f->dev, &one) >= f->v->projection_bytes(f->dev, &all))
			fail_msg("%s: one view needs as much as all", f->setup->name);
		one = spec_for(f, model, true);
		if (f->scan.n_u == 1 && f->v->projection_bytes(f->dev, &one) <= f->v->projection_bytes(f->dev, &all))
			fail_msg("%s: a table needs nothing", f->setup->name);
	}
}

/* Steps much smaller than a pixel, and larger: points between the same centres, and pixels between two points. */
static void check_samplings(struct fixture *f)
{
	static const double samplings[] = {0.03, 1.3, 4.7};

	for (size_t i = 0; i < sizeof(samplings) / sizeof(samplings[0]); i++) {
		f->sampling = samplings[i];
		check_operator(f, PROJECTION_SAMPLED);
		check_sweep(f, PROJECTION_SAMPLED);
	}
}

TEST(test_samplings)
{
	everywhere(check_samplings);
}

/* A table has room for all entries of a line, and for few more. */
static void check_bound(struct fixture *f)
{
	static const double samplings[] = {0.01, 0.17, 1.3, 4.7};
	struct line_entry entry[4096];
	long n = 0, room = 0;

	for (size_t i = 0; i < sizeof(samplings) / sizeof(samplings[0]); i++)
		for (int view = 0; view < VIEWS; view++)
			for (int v = 0; v < f->scan.n_v; v++) {
				int bound = line_bound(PROJECTION_SAMPLED, &f->scan, f->views + view, v, &f->grid);
				int most = line_sampled(&f->scan, f->views + view, v, &f->grid, samplings[i], 4096, entry);

				assert_true(most <= bound);
				n += i == 0 ? most : 0;
				room += i == 0 ? bound : 0;
			}
	assert_true(room <= 2 * n + 10L * VIEWS * f->scan.n_v);
}

TEST(test_bound)
{
	everywhere(check_bound);
}

TEST(test_gap)
{
	everywhere(check_gap);
}

/* Random grids, detectors and samplings, on each instruction set. */
TEST(test_random)
{
	uint64_t seed = test_seed();

	for (int i = 0; i < draw_cases(24); i++) {
		struct setup s = {
			"random",
			{draw_size(&seed, 2, 34), draw_size(&seed, 2, 34), draw_int(&seed, 0, 1) ? 1 : draw_size(&seed, 1, 34)},
			{draw(&seed, 0.5, 3), draw(&seed, 0.5, 3)},
			{draw(&seed, -4, 4), draw(&seed, -4, 4)},
			draw_size(&seed, 2, 40),
			draw_ratio(&seed, 0.2, 6),
			draw(&seed, -0.5, 0.5),
			draw(&seed, 4, 40),
			draw_int(&seed, 0, 1)};
		struct fixture *f = take_zeros(1, sizeof(*f));
		enum projection_model model = models[i % (int)N_MODELS];
		double sampling = draw_ratio(&seed, 0.05, 3);

		s.z_fastest = s.z_fastest || s.n[2] > 1;
		for (int set = 0; cpu_rows_at(set); set++) {
			TEST_BLOCK;
			struct device *dev = fixture_device(FIXTURE_CPU, draw_int(&seed, 1, 4));

			cpu_state(dev)->rows = cpu_rows_at(set);
			set_up(f, &s, dev);
			f->sampling = sampling;
			check_operator(f, model);
			check_sweep(f, model);
		}
		forget_matrices();
	}
}
