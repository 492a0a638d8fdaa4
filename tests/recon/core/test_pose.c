/* SPDX-License-Identifier: Apache-2.0 */
/* Detectors with a pose of their own: turned around an axis, or from projection matrices. Positions by hand, and matrices back to the
 * pose that they were made from. The operators of such detectors: test_projector.c. */
#include "kernels/slice_map.h"
#include "recon/phantom/phantom.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/recon/phantom/phantom_line.h"
#include "tests/test.h"

#define VIEWS 5
#define RADIANS (M_PI / 180)

static const double angles[VIEWS] = {-7.66, -3.1, 0.2, 4, 7.56};

/* A Hologic Dimensions as decoded from one unit's header (docs/geometry.md), with fewer bins. */
static struct dbt_geometry hologic(int n_u, int n_v, double pitch)
{
	return (struct dbt_geometry){.n_u = n_u,
				     .n_v = n_v,
				     .pitch = pitch,
				     .axis_height = -1.6,
				     .source_axis = 696.7,
				     .source_x = -13.7,
				     .n_views = VIEWS,
				     .angle = angles,
				     .detector_ratio = 0.285,
				     .detector_axis_y = 0.3};
}

/* The centre of bin (u, v) from the formulas of docs/geometry.md. */
TEST(turned)
{
	struct dbt_geometry g = hologic(21, 41, 1.4);
	struct scan *scan;

	for (int axis = 0; axis < 2; axis++) {
		g.detector_axis_height = axis ? -30 : 0;
		scan = fixture_dbt_scan(&g);
		for (int i = 0; i < VIEWS; i++) {
			const struct scan_view *view = &scan->views[i];
			double phi = 0.285 * angles[i] * RADIANS, normal[2] = {sin(phi), cos(phi)}, a[3], b[3],
			       z_c = g.detector_axis_height;

			assert_true(view->posed && scan_view_is_level(view));
			for (int v = 0; v < 41; v += 8) {
				double w = (v + 0.5 - 20.5) * 1.4 - 0.3;

				scan_ray(scan, view, 4, v, a, b);
				assert_near(b[0], 4.5 * 1.4, 1e-12);
				assert_near(b[1], 0.3 + w * normal[1] - z_c * normal[0], 1e-10);
				assert_near(b[2], z_c - w * normal[0] - z_c * normal[1], 1e-10);
				assert_near(a[1], 696.7 * sin(angles[i] * RADIANS), 1e-10);
			}
		}
	}
	/* at a positive angle the normal leans toward the source: the side of the detector at y > 0 is lower */
	g.detector_axis_height = 0;
	scan = fixture_dbt_scan(&g);
	assert_true(scan->views[VIEWS - 1].src[1] > 0 && scan->views[VIEWS - 1].pose.step_v[2] < 0);
}

/* A detector that does not turn has the rays that it had. */
TEST(still)
{
	struct dbt_geometry g = hologic(21, 41, 1.4), posed = g;
	struct scan *a, *b;
	double from[3], to[3], other[3];

	g.detector_ratio = 0;
	posed.detector_ratio = 1e-13;
	a = fixture_dbt_scan(&g);
	b = fixture_dbt_scan(&posed);
	assert_true(!a->views[0].posed && b->views[0].posed);
	for (int v = 0; v < 41; v++) {
		scan_ray(a, &a->views[0], 7, v, from, to);
		scan_ray(b, &b->views[0], 7, v, from, other);
		for (int c = 0; c < 3; c++)
			assert_near(other[c], to[c], 1e-9);
	}
}

TEST(binned)
{
	struct dbt_geometry g = hologic(24, 40, 0.7);
	struct scan *scan = fixture_dbt_scan(&g), *four = NULL;
	double a[3], b[3], middle[3] = {0};

	assert_int_equal(scan_create_binned(scan, 4, NULL, &four, NULL), 0);
	for (int v = 8; v < 12; v++)
		for (int u = 4; u < 8; u++) {
			scan_ray(scan, &scan->views[4], u, v, a, b);
			for (int c = 0; c < 3; c++)
				middle[c] += b[c] / 16;
		}
	scan_ray(four, &four->views[4], 1, 2, a, b);
	for (int c = 0; c < 3; c++)
		assert_near(b[c], middle[c], 1e-12);
	scan_free(four);
}

TEST(foot)
{
	struct dbt_geometry g = hologic(24, 40, 0.7);

	for (int posed = 0; posed < 2; posed++) {
		struct scan *scan;

		g.detector_ratio = posed ? 0.285 : 0;
		scan = fixture_dbt_scan(&g);
		for (int i = 0; i < VIEWS; i++) {
			const struct scan_view *view = &scan->views[i];
			double a[3], b[3], at[3], found[2] = {NAN, NAN};

			for (int v = 0; v < 40; v += 13) {
				scan_ray(scan, view, 9, v, a, b);
				for (int c = 0; c < 3; c++)
					at[c] = a[c] + 0.9 * (b[c] - a[c]);
				assert_true(scan_foot(scan, view, at, found));
				assert_near(found[0], 9, 1e-9);
				assert_near(found[1], v, 1e-9);
			}
			at[2] = a[2] + 100;
			assert_false(scan_foot(scan, view, at, found));
		}
	}
}

/* Write the matrix of a view, times `factor`. */
static void matrix_of(const struct scan_view *view, double factor, double ret[12])
{
	const struct scan_pose *p = &view->pose;
	double column[3][3], row[3][3], volume = 0; /* (step_u, step_v, origin - source)^-1 (x - source) is w (u, v, 1) */

	for (int c = 0; c < 3; c++) {
		column[0][c] = p->step_u[c];
		column[1][c] = p->step_v[c];
		column[2][c] = p->origin[c] - view->src[c];
	}
	for (int r = 0; r < 3; r++)
		for (int c = 0; c < 3; c++)
			row[r][c] = column[(r + 1) % 3][(c + 1) % 3] * column[(r + 2) % 3][(c + 2) % 3] -
				    column[(r + 1) % 3][(c + 2) % 3] * column[(r + 2) % 3][(c + 1) % 3];
	for (int c = 0; c < 3; c++)
		volume += row[0][c] * column[0][c];
	for (int r = 0; r < 3; r++) {
		ret[4 * r + 3] = 0;
		for (int c = 0; c < 3; c++) {
			ret[4 * r + c] = factor * row[r][c] / volume;
			ret[4 * r + 3] -= ret[4 * r + c] * view->src[c];
		}
	}
}

TEST(matrices)
{
	struct dbt_geometry g = hologic(1664, 2048, 0.14);
	struct scan *scan = fixture_dbt_scan(&g), *found;
	double matrix[VIEWS][12];

	for (int i = 0; i < VIEWS; i++)
		matrix_of(&scan->views[i], i % 2 ? -3.7 : 0.01, matrix[i]); /* its scale and sign do not matter */
	g.matrix = matrix;
	found = fixture_dbt_scan(&g);
	for (int i = 0; i < VIEWS; i++) {
		const struct scan_view *view = &found->views[i], *want = &scan->views[i];

		assert_true(view->posed && scan_view_is_level(view));
		for (int c = 0; c < 3; c++) {
			assert_near(view->src[c], want->src[c], 1e-6);
			assert_near(view->pose.origin[c], want->pose.origin[c], 1e-6);
			assert_near(view->pose.step_u[c], want->pose.step_u[c], 1e-9);
			assert_near(view->pose.step_v[c], want->pose.step_v[c], 1e-9);
		}
	}
}

/* A detector turned by a little around z is treated as parallel to x up to SCAN_LEVEL_BINS at its corners; beyond, it keeps its
 * pose. */
TEST(nearly_level)
{
	struct dbt_geometry g = hologic(1664, 2048, 0.14);
	struct scan *scan = fixture_dbt_scan(&g);
	const double corner = hypot(832, 1024); /* bins */

	for (int beyond = 0; beyond < 2; beyond++) {
		double turn = (beyond ? 1.1 : 0.9) * SCAN_LEVEL_BINS / corner, matrix[12];
		struct scan_view view = scan->views[3], found;
		struct scan_pose *p = &view.pose;

		for (int c = 0; c < 3; c++)
			p->origin[c] += 831.5 * p->step_u[c] + 1023.5 * p->step_v[c];
		p->step_u[0] = 0.14 * cos(turn);
		p->step_u[1] = scan->views[3].pose.step_v[1] * sin(turn);
		p->step_u[2] = scan->views[3].pose.step_v[2] * sin(turn);
		p->step_v[0] = -0.14 * sin(turn);
		p->step_v[1] *= cos(turn);
		p->step_v[2] *= cos(turn);
		for (int c = 0; c < 3; c++)
			p->origin[c] -= 831.5 * p->step_u[c] + 1023.5 * p->step_v[c];
		matrix_of(&view, 1, matrix);
		assert_int_equal(scan_view_from_matrix(matrix, 1664, 2048, 0.14, SCAN_LEVEL_BINS, &found, NULL), 0);
		assert_true(scan_view_is_level(&found) == !beyond);
		for (int c = 0; beyond && c < 3; c++)
			assert_near(found.pose.step_u[c], p->step_u[c], 1e-9);
	}
}

/* Write the matrix of a view in the bins and axes of a system: 1664 x 2048 bins, u toward the chest wall; axes tilted and moved,
 * mirrored with the direction of v. */
static void system_matrix(const struct scan_view *view, int n_v, const struct scan_matrix_bins *bins, double ret[12])
{
	const int v_sign = bins->v_sign;
	const double a = 0.0096, b = 0.3, at[3] = {-23.1, 5.5, -0.7};
	const double axis[3][3] = {{-cos(a) * cos(b), v_sign * sin(b), sin(a) * cos(b)},
				   {cos(a) * sin(b), v_sign * cos(b), -sin(a) * sin(b)},
				   {sin(a), 0, cos(a)}}; /* rows: the system's axes in those of the scan */
	struct scan_view moved = {0};
	const struct scan_pose *p = &view->pose;

	for (int r = 0; r < 3; r++) {
		double first = 0.5 * (n_v - 1) - v_sign * (1024 - 0.5) - bins->window_v;

		moved.src[r] = moved.pose.origin[r] = at[r];
		for (int c = 0; c < 3; c++) {
			moved.src[r] += axis[r][c] * view->src[c];
			moved.pose.origin[r] +=
				axis[r][c] * (p->origin[c] + (1663 - bins->window_u) * p->step_u[c] + first * p->step_v[c]);
			moved.pose.step_u[r] -= axis[r][c] * p->step_u[c];
			moved.pose.step_v[r] += v_sign * axis[r][c] * p->step_v[c];
		}
	}
	matrix_of(&moved, 3, ret);
}

/* Matrices in a system's own bins and axes give the same scan, for parts of its detector too. */
TEST(converted)
{
	static const double at_rest = 0, sizes[][2] = {{1664, 2048}, {1280, 2047}};

	for (int which = 0; which < 4; which++) {
		struct dbt_geometry g = hologic((int)sizes[which / 2][0], (int)sizes[which / 2][1], 0.14), still = g;
		struct scan_matrix_bins bins = {1664, 1024, which % 2 ? 1 : -1, which / 2 * 84.5, which / 2 * -3.5};
		struct scan *scan, *found, *rest;
		double matrix[VIEWS][12], own[12], zero[12];
		double pair[2] = {at_rest, 1};

		g.window_x = still.window_x = bins.window_u * 0.14;
		g.window_y = still.window_y = bins.window_v * 0.14;
		scan = fixture_dbt_scan(&g);
		still.angle = pair;
		still.n_views = 2;
		rest = fixture_dbt_scan(&still);
		system_matrix(&rest->views[0], g.n_v, &bins, zero);
		for (int i = 0; i < VIEWS; i++) {
			system_matrix(&scan->views[i], g.n_v, &bins, own);
			assert_int_equal(scan_matrix_convert(zero, own, &bins, g.n_v, 0.14, matrix[i], NULL), 0);
		}
		g.matrix = matrix;
		found = fixture_dbt_scan(&g);
		for (int i = 0; i < VIEWS; i++)
			for (int c = 0; c < 3; c++) {
				assert_true(scan_view_is_level(&found->views[i]));
				assert_near(found->views[i].src[c], scan->views[i].src[c], 1e-6);
				assert_near(found->views[i].pose.origin[c], scan->views[i].pose.origin[c], 1e-6);
				assert_near(found->views[i].pose.step_v[c], scan->views[i].pose.step_v[c], 1e-9);
			}
		memset(zero, 0, sizeof(zero));
		assert_int_equal(scan_matrix_convert(zero, own, &bins, g.n_v, 0.14, own, NULL), -EINVAL);
	}
}

TEST(refusals)
{
	struct dbt_geometry g = hologic(64, 48, 0.7);
	struct scan *scan = fixture_dbt_scan(&g);
	double matrix[VIEWS][12], good[VIEWS][12];

	g.detector_ratio = 2.1;
	fixture_refuse_scan(&g, "turns by 2.1");
	g.detector_ratio = NAN;
	fixture_refuse_scan(&g, "turns by");
	g = hologic(64, 48, 0.7);
	g.detector_axis_height = INFINITY;
	fixture_refuse_scan(&g, "turns around");
	for (int i = 0; i < VIEWS; i++)
		matrix_of(&scan->views[i], 1, good[i]);
	g = hologic(64, 48, 0.7);
	g.matrix = matrix;
	memcpy(matrix, good, sizeof(good));
	memset(matrix[2], 0, sizeof(matrix[2]));
	fixture_refuse_scan(&g, "no inverse");
	memcpy(matrix, good, sizeof(good));
	matrix[3][5] = NAN;
	fixture_refuse_scan(&g, "no inverse");
	memcpy(matrix, good, sizeof(good));
	for (int c = 0; c < 4; c++)
		matrix[1][c] *= 1.1; /* u is stretched */
	fixture_refuse_scan(&g, "squares");
	memcpy(matrix, good, sizeof(good));
	for (int c = 0; c < 4; c++)
		matrix[1][c] = 63 * matrix[1][8 + c] - matrix[1][c]; /* u is reversed */
	fixture_refuse_scan(&g, "must run along");
}

/* Every bin of an analytic phantom equals the integral along its ray. */
TEST(phantom_lines)
{
	struct dbt_geometry g = hologic(119, 101, 1.9);
	struct phantom *p = NULL;
	struct scan *scan = fixture_dbt_scan(&g), tilted = *scan;
	struct scan_view views[VIEWS];
	float *line = take_memory(scan_view_size(scan) * sizeof(*line));

	assert_int_equal(phantom_create(PHANTOM_ELLIPSOIDS, (double[]){226, 192}, 25, 50, 5, &p, NULL), 0);
	memcpy(views, scan->views, sizeof(views));
	tilted.views = views;
	views[1].pose.step_u[1] = 0.05; /* not level */
	views[1].pose.step_u[2] = -0.08;
	for (int view = 0; view < VIEWS; view++) {
		double sum = 0;

		assert_int_equal(phantom_project(p, &tilted, view, line, NULL), 0);
		for (int v = 0; v < scan->n_v; v++)
			for (int u = 0; u < scan->n_u; u++) {
				double a[3], b[3], want, have = line[(size_t)v * (size_t)scan->n_u + (size_t)u];

				scan_ray(&tilted, &views[view], u, v, a, b);
				want = phantom_line(p, a, b);
				assert_near(have, want, 1e-6 * want);
				sum += have;
			}
		assert_true(sum > 0);
	}
	phantom_free(p);
}

/* The strips of the slice-by-slice operator: bins are where their rays meet a slice, up to the stated error. */
static void strips_of(double ratio, int rows)
{
	const struct grid grid = {{1664, 2048, 50}, {0.14, 0.14, 1}, {0, -143.36, 25}};
	struct dbt_geometry g = hologic(1664, 2048, 0.14);
	double most[2] = {0, 0};
	struct scan *scan;

	g.detector_ratio = ratio;
	scan = fixture_dbt_scan(&g);
	assert_int_equal(slice_strip_rows(scan), rows);
	for (int i = 0; i < VIEWS * 2 * 2048; i++) {
		const struct scan_view *view = &scan->views[i / 4096];
		int v = i % 2048, k = i / 2048 % 2 * 49;
		struct slice_map map = slice_map_strip(scan, view, &grid, k, v / rows * rows, rows);
		double a[3], b[3], z = 25.5 + k;

		assert_true(slice_map_valid(scan, view, &grid));
		for (int u = 0; u < 1664; u += 1663) {
			int bin[2] = {u, v};

			scan_ray(scan, view, u, v, a, b);
			for (int c = 0; c < 2; c++) {
				double at = a[c] + (b[c] - a[c]) * (a[2] - z) / (a[2] - b[2]);
				double voxel = (at - grid.lo[c]) / 0.14 - 0.5 - (map.scale[c] * bin[c] + map.shift[c]);

				most[c] = fmax(most[c], fabs(voxel) / map.scale[c]);
			}
		}
		assert_near(slice_row_at(view, &grid, k, slice_row_position(view, &grid, z, v)), v, 1e-8);
	}
	print_message("ratio %g, strips of %d rows: errors of %.4f and %.6f bins\n", ratio, rows, most[0], most[1]);
	assert_true(most[0] <= SLICE_STRIP_ERROR && most[1] <= 1e-3);
}

TEST(strips)
{
	strips_of(0.285, 8);
	strips_of(-0.285, 8);
	strips_of(0.6, 4);
	strips_of(1, 2);
}
