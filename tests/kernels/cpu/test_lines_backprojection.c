/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of 2-D parallel beams: the voxel-driven backprojection compared with its definition, independence of the number of
 * threads, invalid arguments. */
#include "tests/kernels/cpu/lines_fixture.h"
#include "tests/test.h"

/* Compare each voxel with its sum as kernels/device.h defines it. Positions less than 1e-4 bins outside the first or last bin
 * count as that bin, because rounding decides there. */
static void check_interpolated(struct fixture *f)
{
	struct projection *a = create(f, PROJECTION_EXACT);
	const struct grid *g = &f->grid;
	int n_u = f->scan.n_u, n_v = f->scan.n_v;
	uint32_t seed = 8;
	float *y = take_memory(f->n_out * sizeof(float));
	double *want = take_zeros(f->n_in, sizeof(double));
	struct buf by, ret = fixture_upload(f->dev, NULL, f->n_in);

	for (size_t i = 0; i < f->n_out; i++)
		y[i] = fixture_random(&seed) - 0.3f;
	by = fixture_upload(f->dev, y, f->n_out);
	for (size_t i = 0; i < f->pixels; i++) {
		double px = g->lo[0] + ((int)i % g->n[0] + 0.5) * g->h[0], py = g->lo[1] + ((int)i / g->n[0] + 0.5) * g->h[1];

		for (int view = 0; view < VIEWS && hypot(px, py) < f->scan.fov_radius; view++) {
			const double *turn = f->views[view].turn;
			double at = (px * turn[0] + py * turn[1] - f->radius[0]) / (f->radius[1] - f->radius[0]);

			if (at < -LINE_EDGE || at > n_v - 1 + LINE_EDGE)
				continue;
			at = fmin(fmax(at, 0), n_v - 1);
			for (int u = 0; u < n_u; u++) {
				int bin = (int)fmin(floor(at), n_v - 2);
				const float *low = y + ((size_t)view * (size_t)n_v + (size_t)bin) * (size_t)n_u + u;

				want[voxel(f, i, u)] += (1 - (at - bin)) * low[0] + (at - bin) * low[n_u];
			}
		}
	}
	for (int pass = 1; pass <= 2; pass++) {
		assert_int_equal(f->v->back_interpolated(a, &by, pass == 2, &ret, NULL), 0);
		near(fixture_download(&ret), want, f->n_in, TOL);
		for (size_t i = 0; i < f->n_in; i++)
			want[i] *= 2;
	}
}

TEST(test_interpolated)
{
	everywhere(check_interpolated);
}

/* Return the results of all operators of a setup with `threads` threads, one after the other in one array. */
static float *results(const struct setup *s, int threads, size_t *ret_n)
{
	struct fixture *f = take_zeros(1, sizeof(*f));
	struct device *dev = fixture_device(FIXTURE_CPU, threads);
	struct projection *a;
	struct buf x, y, ret_x, ret_y;
	float *from, *all, *at;
	uint32_t seed = 9;

	set_up(f, s, dev);
	*ret_n = N_MODELS * (2 * f->n_in + f->n_out) + f->n_in;
	at = all = take_memory(*ret_n * sizeof(float));
	from = volume(f, 10, 0);
	x = fixture_upload(f->dev, from, f->n_in);
	from = take_memory(f->n_out * sizeof(float));
	for (size_t i = 0; i < f->n_out; i++)
		from[i] = fixture_random(&seed) - 0.3f;
	y = fixture_upload(f->dev, from, f->n_out);
	ret_x = fixture_upload(f->dev, NULL, f->n_in);
	ret_y = fixture_upload(f->dev, NULL, f->n_out);
	for (size_t m = 0; m < N_MODELS; m++) {
		a = create(f, models[m]);
		assert_int_equal(f->v->forward(a, &x, false, &ret_y, NULL), 0);
		assert_int_equal(f->v->download(&ret_y, at, NULL), 0);
		at += f->n_out;
		assert_int_equal(f->v->adjoint(a, &y, false, &ret_x, NULL), 0);
		assert_int_equal(f->v->download(&ret_x, at, NULL), 0);
		at += f->n_in;
		assert_int_equal(f->v->row_sweep(a, 0.3f, &y, &ret_x, NULL), 0);
		assert_int_equal(f->v->download(&ret_x, at, NULL), 0);
		at += f->n_in;
		if (m == 0)
			assert_int_equal(f->v->back_interpolated(a, &y, false, &ret_x, NULL), 0);
		if (m == 0)
			assert_int_equal(f->v->download(&ret_x, all + *ret_n - f->n_in, NULL), 0);
	}
	return all;
}

TEST(test_threads)
{
	for (size_t i = 0; i < N_SETUPS; i++) {
		size_t n, same;
		float *one = results(&setups[i], 1, &n), *three = results(&setups[i], 3, &same);

		assert_int_equal(n, same);
		assert_memory_equal(one, three, n * sizeof(*one));
	}
}

TEST(test_refused)
{
	struct fixture *f = take_zeros(1, sizeof(*f));
	struct projection *a;
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct err err = {0};
	struct buf x, y;

	set_up(f, &setups[2], dev);
	x = fixture_upload(f->dev, NULL, f->n_in);
	y = fixture_upload(f->dev, NULL, f->n_out);
	a = create(f, PROJECTION_EXACT);
	assert_int_equal(f->v->row_sweep(a, 0.5f, &y, &x, &err), -ENOTSUP);
	a = create(f, PROJECTION_JOSEPH);
	assert_int_equal(f->v->row_sweep(a, 2, &y, &x, &err), -EINVAL);
	assert_int_equal(f->v->row_sweep(a, 0, &y, &x, &err), -EINVAL);
	assert_int_equal(f->v->row_sweep(a, 0.5f, &x, &y, &err), -EINVAL);
	assert_int_equal(f->v->back_sums(a, &y, false, &x, &x, &err), -EINVAL);
}
