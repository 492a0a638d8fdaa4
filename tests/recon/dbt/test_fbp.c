/* SPDX-License-Identifier: Apache-2.0 */
/* Filtered backprojection: the filter compared with a convolution in double, and details of known contrast after filter and
 * average. */
#include "recon/dbt/fbp_filter.h"
#include "recon/phantom/phantom.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

#define PI 3.14159265358979323846

static float *filtered(const struct scan *scan, int view, enum dbt_filter filter, double cut, const float *line,
		       const float *valid)
{
	float *q = take_memory(scan_view_size(scan) * sizeof(*q));
	struct err err = {0};
	int r;

	memcpy(q, line, scan_view_size(scan) * sizeof(*q));
	r = fbp_filter_view(scan, view, filter, cut, q, valid, &err);
	if (!TOMONODE_FFT && r == -ENOTSUP)
		skip_because("this build has no FFT (kissfft)");
	assert_done(r, &err);
	return q;
}

/* Compute the kernel by numerical integration of the frequency response (midpoint rule), times the pitch: n values. The cosines
 * are those of a vector that turns by the same angle from step to step. */
static void kernel_by_integral(enum dbt_filter filter, double cut, double pitch, int n, double *ret)
{
	enum { STEPS = 20000 };
	static double response[STEPS];
	double end = (filter == DBT_FILTER_HANN ? cut : 1) / (2 * pitch);

	for (int i = 0; i < STEPS; i++) {
		double f = end * (i + 0.5) / STEPS;

		response[i] = 2 * f * (filter == DBT_FILTER_HANN ? 0.5 * (1 + cos(PI * f / end)) : 1);
	}
	for (int j = 0; j < n; j++) {
		double step = 2 * PI * end / STEPS * j * pitch, c = cos(step / 2), s = sin(step / 2), sum = 0;
		const double by[2] = {cos(step), sin(step)};

		for (int i = 0; i < STEPS; i++) {
			double next = c * by[0] - s * by[1];

			sum += response[i] * c;
			s = s * by[0] + c * by[1];
			c = next;
		}
		ret[j] = sum * end / STEPS * pitch;
	}
}

/* Implement the formulas of the header a second time: weights, continuation by `far` bins beyond the detector, convolution. */
static void reference_filter(const struct scan *scan, int view, enum dbt_filter filter, double cut, const float *line, int far,
			     double *ret)
{
	int n_u = scan->n_u, n_v = scan->n_v, n = scan->n_views;
	const struct scan_view *s = scan->views;
	double *h = take_memory((size_t)(n_v + far) * sizeof(*h)), *g = take_memory((size_t)n_v * sizeof(*g));
	int lo = view > 0 ? view - 1 : view, hi = view < n - 1 ? view + 1 : view; /* the angles of fixture_scan() are ascending */
	double a_y = (s[hi].src[1] - s[lo].src[1]) / (hi - lo), a_z = (s[hi].src[2] - s[lo].src[2]) / (hi - lo);

	kernel_by_integral(filter, cut, scan->h[1], n_v + far, h);
	for (int u = 0; u < n_u; u++) {
		for (int v = 0; v < n_v; v++) {
			double a[3], b[3], d[3];

			scan_ray(scan, &s[view], u, v, a, b);
			for (int c = 0; c < 3; c++)
				d[c] = b[c] - a[c];
			g[v] = line[v * n_u + u] * (a_y + a_z * a[2] * d[1] / (a[2] * a[2] + d[0] * d[0])) /
			       sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
		}
		for (int v = 0; v < n_v; v++) {
			double sum = 0, mean = 0, own = 0;

			for (int w = -far; w < n_v + far; w++)
				sum += h[abs(v - w)] * g[w < 0 ? 0 : w >= n_v ? n_v - 1 : w];
			for (int i = 0; i < n; i++) {
				double a[3], b[3], k = 0;

				scan_ray(scan, &s[i], u, v, a, b);
				for (int c = 0; c < 3; c++)
					k += (b[c] - a[c]) * (b[c] - a[c]) / (a[2] * a[2]);
				mean += k / n;
				own = i == view ? k : own;
			}
			ret[v * n_u + u] = sum * n * sqrt(mean / own);
		}
	}
}

enum { FAR = 2000 };

static void compare(int n_u, int n_v, int view, enum dbt_filter filter, double cut, bool ends_in_air)
{
	struct scan *scan = fixture_scan(n_u, n_v, 0.34, 7);
	size_t n = scan_view_size(scan);
	float *line = fixture_floats(n, (uint32_t)n, 0, 3), *valid = fixture_floats(n, 1, 1, 1), *q;
	double *expected = take_memory(n * sizeof(*expected)), most = 0, scale = 0;

	if (ends_in_air)
		memset(line, 0, (size_t)n_u * sizeof(*line)), memset(line + n - (size_t)n_u, 0, (size_t)n_u * sizeof(*line));
	q = filtered(scan, view, filter, cut, line, valid);
	reference_filter(scan, view, filter, cut, line, ends_in_air ? 0 : FAR, expected);
	for (size_t i = 0; i < n; i++) {
		most = fmax(most, fabs(q[i] - expected[i]));
		scale = fmax(scale, fabs(expected[i]));
	}
	/* float32. If rows do not end in air, the reference convolution omits the continuation beyond FAR bins at either end: end
	 * value * 1 / (2 pi^2 FAR pitch), up to 2 * 3 * 7.5e-5 = 4.5e-4 of values up to 0.5. */
	if (!(most <= (ends_in_air ? 1e-5 : 1e-3) * scale))
		fail_msg("%d x %d, view %d, filter %d: off by %g of %g", n_u, n_v, view, filter, most, scale);
}

TEST(the_convolution)
{
	compare(3, 101, 0, DBT_FILTER_RAMP, 1, true);
	compare(17, 64, 3, DBT_FILTER_RAMP, 1, true);
	compare(18, 97, 6, DBT_FILTER_HANN, 1, true);
	compare(5, 130, 2, DBT_FILTER_HANN, 0.63, true);
	compare(1, 3585, 3, DBT_FILTER_RAMP, 1, true); /* as long as a detector */
	compare(2, 101, 4, DBT_FILTER_RAMP, 1, false);
	compare(3, 66, 1, DBT_FILTER_HANN, 0.8, false);
}

/* Data that are the inverse of the weight become a constant when weighted, and the filter turns constants into 0, also over gaps
 * and air. */
TEST(a_constant_becomes_zero)
{
	static const int sizes[][2] = {{1, 1}, {2, 2}, {3, 1}, {1, 7}, {33, 50}};

	for (int i = 0; i < 10; i++) {
		struct scan *scan = fixture_scan(sizes[i / 2][0], sizes[i / 2][1], 0.5, 5);
		size_t n = scan_view_size(scan);
		float *line = take_memory(n * sizeof(*line)), *valid = fixture_floats(n, 9, -1, 1), *q;
		double a[3], b[3], a_y = (scan->views[4].src[1] - scan->views[3].src[1]),
				   a_z = (scan->views[4].src[2] - scan->views[3].src[2]), most = 0;

		for (int v = 0; v < scan->n_v; v++)
			for (int u = 0; u < scan->n_u; u++) {
				size_t at = (size_t)(v * scan->n_u + u);

				scan_ray(scan, &scan->views[4], u, v, a, b);
				double d_x = b[0] - a[0], d_y = b[1] - a[1], flat = a[2] * a[2] + d_x * d_x;
				line[at] = (float)(100 / ((a_y + a_z * a[2] * d_y / flat) / sqrt(flat + d_y * d_y)) / 2000);
				if (n > 10 && (v + u) % 7 == 3)
					valid[at] = 0, line[at] = v % 2 ? NAN : 55;
			}
		q = filtered(scan, 4, i % 2 ? DBT_FILTER_RAMP : DBT_FILTER_HANN, 0.9, line, valid);
		for (size_t k = 0; k < n; k++)
			most = fmax(most, isfinite(q[k]) ? fabs(q[k]) : INFINITY);
		assert_true(most < 1e-5);
	}
}

/* A row with air at both ends: the mean of its filtered values is 0 if values beyond the detector are included. Those beyond m
 * bins on one side of a single bin are a fraction 1 / (2 pi^2 m) of half the kernel's sum of absolute values. */
TEST(the_mean_is_lost)
{
	struct scan *scan = fixture_scan(1, 4001, 0.1, 3);
	size_t n = scan_view_size(scan);
	float *line = take_zeros(n, sizeof(*line)), *valid = fixture_floats(n, 1, 1, 1), *q;
	double sum = 0, positive = 0;

	for (int v = 1950; v < 2050; v++)
		line[v] = 1;
	q = filtered(scan, 1, DBT_FILTER_RAMP, 1, line, valid);
	for (size_t i = 0; i < n; i++) {
		sum += q[i];
		positive += fmax(0, q[i]);
	}
	assert_true(positive > 0);
	/* outside: 2 * 100 bins * sum over j > 2000 of 1 / (pi^2 j^2) / 2 = 0.0051 / pitch; inside the edges: about
	 * (ln 100 + 2) / pi^2 = 0.67 / pitch. The weights differ by 2.5 % across 200 mm. */
	assert_near(sum / positive, 0.0076, 0.01);
}

TEST(it_is_linear)
{
	struct scan *scan = fixture_scan(19, 77, 0.34, 9);
	size_t n = scan_view_size(scan);
	float *a = fixture_floats(n, 5, 0, 2), *b = fixture_floats(n, 6, 0, 2), *sum = take_memory(n * sizeof(*sum));
	float *valid = fixture_floats(n, 1, 1, 1), *q_a, *q_b, *q_sum;

	for (size_t i = 0; i < n; i++) {
		valid[i] = i % 11 == 4 ? 0 : i % 3 ? 1 : -1;
		sum[i] = 3 * a[i] - 2 * b[i];
	}
	q_a = filtered(scan, 2, DBT_FILTER_HANN, 0.8, a, valid);
	q_b = filtered(scan, 2, DBT_FILTER_HANN, 0.8, b, valid);
	q_sum = filtered(scan, 2, DBT_FILTER_HANN, 0.8, sum, valid);
	for (size_t i = 0; i < n; i++)
		q_a[i] = 3 * q_a[i] - 2 * q_b[i];
	assert_true(fixture_difference(q_a, q_sum, n) < 1e-5);
}

/* Gaps are interpolated: removing bins from the middle of a linear weighted row does not change its filtered values. */
TEST(gaps_are_bridged)
{
	struct scan *scan = fixture_scan(4, 120, 0.5, 3);
	size_t n = scan_view_size(scan);
	float *line = take_zeros(n, sizeof(*line)), *valid = fixture_floats(n, 1, 1, 1), *whole, *holes, *empty;

	for (int v = 0; v < 120; v++)
		for (int u = 0; u < 4; u++)
			line[v * 4 + u] = 0.01f * (float)(v < 60 ? v : 119 - v);
	whole = filtered(scan, 1, DBT_FILTER_RAMP, 1, line, valid);
	for (int v = 0; v < 120; v++)
		for (int u = 0; u < 4; u++)
			if ((v > 20 && v < 25) || v == 90)
				valid[v * 4 + u] = 0, line[v * 4 + u] = u ? INFINITY : 1e6f;
	holes = filtered(scan, 1, DBT_FILTER_RAMP, 1, line, valid);
	/* Over the gap of 2 mm the weight differs from a straight line by 1e-3. */
	assert_true(fixture_difference(holes, whole, n) < 2e-3);
	memset(valid, 0, n * sizeof(*valid));
	empty = filtered(scan, 1, DBT_FILTER_RAMP, 1, line, valid);
	for (size_t i = 0; i < n; i++)
		assert_true(empty[i] == 0);
}

/* Compute the weighted average A'q / A'1 of all views in one slice with its middle at z, times the slice's scale. */
static float *average(const struct scan *scan, enum projection_model model, const float *q, double z)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct grid grid = {{scan->n_u, scan->n_v, 1}, {scan->h[0], scan->h[1], 1}, {scan->lo[0], scan->lo[1], z - 0.5}};
	struct projection_spec spec = {.model = model, .scan = scan, .n_views = scan->n_views, .grid = &grid};
	struct linop *op = fixture_projector(dev, &spec);
	struct buf y = fixture_upload(dev, q, op->n_out), x = fixture_upload(dev, NULL, op->n_in),
		   one = fixture_upload(dev, NULL, op->n_in);
	float *num, *den;

	assert_int_equal(op->adjoint(op, &y, &x, NULL), 0);
	assert_int_equal(linop_sensitivity(op, &one, NULL), 0);
	num = fixture_download(&x);
	den = fixture_download(&one);
	for (size_t i = 0; i < op->n_in; i++)
		num[i] = den[i] > 0 ? (float)(num[i] / den[i] * fbp_slice_scale(scan, z)) : 0;
	return num;
}

/* Check a cylinder along x, elliptic in y and z (an ellipsoid that is very long in x). Inside the shadow of an ellipse in
 * direction g, the filtered value is the constant mu a b / (pi (a^2 cos^2 g + b^2 sin^2 g)), so the value in its middle is mu /
 * pi * (arctan(b / a tan g)) between the first and the last direction: mu for b >> a, mu * arc / 180 for a circle. */
static void check_contrast(enum projection_model model, enum dbt_filter filter, double at_x, double y, double z, double a,
			   double b, double ratio)
{
	struct scan *scan = fixture_turning_scan(64, 500, 0.4, 51, ratio);
	struct scan_view views[51];
	size_t n = scan_view_size(scan);
	float *q = take_memory(n * 51 * sizeof(*q)), *valid = fixture_floats(n, 1, 1, 1), *slice;
	struct shape s = {.kind = SHAPE_ELLIPSOID, .role = ROLE_BEAD, .c = {at_x, y, z}, .r = {1e5, a, b}, .mu = 0.5};
	struct phantom p = {.name = "one", .n = 1, .shapes = &s};
	double sum = 0, g[2] = {0, 0};
	int count = 0;

	scan->lo[0] = at_x - 6 * 0.4;
	memcpy(views, scan->views, sizeof(views));
	for (int i = 0; i < 51; i++)
		views[i].pose.origin[0] += scan->lo[0];
	scan->views = views;
	for (int i = 0; i < 51; i++) {
		const struct scan_view *view = &scan->views[i];
		float *line = q + (size_t)i * n;
		int r;

		assert_int_equal(phantom_project(&p, scan, i, line, NULL), 0);
		r = fbp_filter_view(scan, i, filter, 1, line, valid, NULL);
		if (!TOMONODE_FFT && r == -ENOTSUP)
			skip_because("this build has no FFT (kissfft)");
		assert_int_equal(r, 0);
		if (i < 2)
			g[0] += (i ? -0.5 : 1.5) * atan2(view->src[1] - y, view->src[2] - z);
		if (i >= 49)
			g[1] += (i < 50 ? -0.5 : 1.5) * atan2(view->src[1] - y, view->src[2] - z);
	}
	slice = average(scan, model, q, z);
	for (int v = 0; v < 500; v++)
		if (fabs(scan->lo[1] + (v + 0.5) * 0.4 - y) < 0.3 * a) {
			sum += slice[v * 64 + 6];
			count++;
		}
	assert_true(count > 4);
	double expected = 0.5 / PI * (atan(b / a * tan(g[1])) - atan(b / a * tan(g[0])));
	/* Angular steps of 1 degree, a slice of 1 mm, the average's weights to second order: 1.5 %. */
	if (!(fabs(sum / count / expected - 1) < 0.015))
		fail_msg("model %d, filter %d, x %g, y %g, z %g, half axes %g, %g: %g instead of %g", model, filter, at_x, y, z,
			 a, b, sum / count, expected);
}

TEST(contrast_in_the_plane)
{
	check_contrast(PROJECTION_SLICES, DBT_FILTER_RAMP, 20, 0, 20, 8, 8, 0);
	check_contrast(PROJECTION_SLICES, DBT_FILTER_RAMP, 20, 0, 70, 8, 8, 0);
	check_contrast(PROJECTION_SLICES, DBT_FILTER_HANN, 20, 5, 45, 6, 18, 0);
	check_contrast(PROJECTION_SLICES, DBT_FILTER_RAMP, 200, 0, 45, 8, 8, 0);
	check_contrast(PROJECTION_SLICES, DBT_FILTER_RAMP, 20, 40, 50, 8, 8, 0);
	check_contrast(PROJECTION_SLICES, DBT_FILTER_HANN, 150, -40, 40, 8, 4, 0);
	check_contrast(PROJECTION_EXACT, DBT_FILTER_RAMP, 20, 5, 45, 8, 8, 0);
	check_contrast(PROJECTION_SLICES, DBT_FILTER_RAMP, 20, 40, 50, 8, 8, 0.085); /* the detector turns */
	check_contrast(PROJECTION_SLICES, DBT_FILTER_RAMP, 20, -60, 30, 8, 8, 0.285);
	check_contrast(PROJECTION_EXACT, DBT_FILTER_RAMP, 20, 5, 45, 8, 8, 0.285);
}

/* A detector above the plane z = 0, with bins on the rays of one in the plane, gives the same values but for 5e-4: the mean of the
 * weights along u is that of its own plane. */
TEST(raised_detector)
{
	enum { N_U = 9, N_V = 60, VIEWS = 5 };
	const double part = 0.8; /* of the distance from the source */
	struct scan *scan = fixture_scan(N_U, N_V, 4, VIEWS), raised = *scan;
	struct scan_view views[VIEWS];
	float *line = fixture_floats(N_U * N_V, 5, 1, 2), *valid = fixture_floats(N_U * N_V, 1, 1, 1);

	raised.views = views;
	for (int c = 0; c < 2; c++)
		raised.h[c] = part * scan->h[c];
	for (int i = 0; i < VIEWS; i++) {
		struct scan_view *view = &views[i];

		*view = scan->views[i];
		view->posed = true;
		view->pose = (struct scan_pose){.step_u = {raised.h[0]}, .step_v = {0, raised.h[1]}};
		for (int c = 0; c < 2; c++)
			view->pose.origin[c] =
				view->src[c] + part * (scan->lo[c] + view->shift[c] + 0.5 * scan->h[c] - view->src[c]);
		view->pose.origin[2] = (1 - part) * view->src[2];
	}
	for (int i = 0; i < VIEWS; i++)
		assert_true(fixture_difference(filtered(&raised, i, DBT_FILTER_RAMP, 1, line, valid),
					       filtered(scan, i, DBT_FILTER_RAMP, 1, line, valid), N_U * N_V) < 1e-3);
}

static void refuse(const struct scan *scan, int view, enum dbt_filter filter, double cut, const char *word)
{
	float line[64] = {1}, valid[64] = {1};
	struct err err = {0};
	int r = fbp_filter_view(scan, view, filter, cut, line, valid, &err);

	if (!TOMONODE_FFT && r == -ENOTSUP)
		skip_because("this build has no FFT (kissfft)");
	assert_int_equal(r, -EINVAL);
	assert_non_null(strstr(err.msg, word));
	assert_true(line[0] == 1);
}

TEST(refusals)
{
	struct scan *scan = fixture_scan(4, 4, 1, 3);
	struct scan_view *views = (struct scan_view *)(uintptr_t)scan->views;

	refuse(scan, 3, DBT_FILTER_RAMP, 1, "view 3 of 3");
	refuse(scan, -1, DBT_FILTER_RAMP, 1, "view -1");
	refuse(scan, 0, (enum dbt_filter)3, 1, "filter 3");
	refuse(scan, 0, DBT_FILTER_HANN, 0, "Nyquist");
	refuse(scan, 0, DBT_FILTER_HANN, NAN, "Nyquist");
	refuse(scan, 0, DBT_FILTER_HANN, 1.01, "1.01");
	views[2].src[1] = views[1].src[1];
	refuse(scan, 1, DBT_FILTER_RAMP, 1, "views 1 and 2");
	views[2].src[2] = 0;
	refuse(scan, 0, DBT_FILTER_RAMP, 1, "view 2 is 0 mm");
}
