/* SPDX-License-Identifier: Apache-2.0 */
/* The open field: its factor against the definition, for detectors that stand still and turn; line integrals of a slab and of air
 * through it, by each method of summing. */
#include "recon/core/scan.h"
#include "recon/dbt/prep.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

#define N_U 24
#define N_V 30
#define N (N_U * N_V)
#define AXIS 47.0
#define SOURCE_AXIS 608.5
#define SOURCE_X 5.0

static const double angles[3] = {-25, 1, 20}, rest[3] = {SOURCE_X, 0, AXIS + SOURCE_AXIS};

static struct scan *make(double ratio)
{
	struct dbt_geometry g = {.n_u = N_U,
				 .n_v = N_V,
				 .pitch = 10,
				 .axis_height = AXIS,
				 .source_axis = SOURCE_AXIS,
				 .source_x = SOURCE_X,
				 .n_views = 3,
				 .angle = angles,
				 .detector_ratio = ratio,
				 .detector_axis_height = -3};

	return fixture_dbt_scan(&g);
}

/* cos / r^2 from the angle of the detector's normal. */
static double fluence(const double source[3], const double bin[3], double turn)
{
	double normal[3] = {0, sin(turn), cos(turn)}, along = 0, r2 = 0;

	for (int c = 0; c < 3; c++) {
		along += normal[c] * (source[c] - bin[c]);
		r2 += (source[c] - bin[c]) * (source[c] - bin[c]);
	}
	return along / sqrt(r2) / r2;
}

TEST(test_distance)
{
	for (int way = 0; way < 2; way++) {
		double ratio = way ? 0.285 : 0, row[N_U];
		struct scan *scan = make(ratio);

		for (int k = 0; k < 3; k++) {
			struct open_field f = open_field_of_distance(scan, &scan->views[k], rest);

			assert_false(open_field_is_uniform(&f));
			for (int v = 0; v < N_V; v++) {
				open_field_row(&f, 0, 1, v, N_U, row);
				for (int u = 0; u < N_U; u++) {
					double still[3] = {(u + 0.5) * 10, (v + 0.5 - N_V / 2.0) * 10, 0}, bin[3];
					double want;

					scan_bin_at(scan, &scan->views[k], u, v, bin);
					want = fluence(scan->views[k].src, bin, ratio * angles[k] * M_PI / 180) /
					       fluence(rest, still, 0);
					if (!(fabs(row[u] / want - 1) < 1e-12))
						fail_msg("view %d, bin %d, %d: %.15g, not %.15g", k, u, v, row[u], want);
				}
			}
		}
	}
}

/* The range that the facts of a Siemens system give: 0.73 to 1.24 across y at 25 degrees. */
TEST(test_range)
{
	struct scan *scan = make(0);
	struct open_field f = open_field_of_distance(scan, &scan->views[0], rest);
	double ends[2];

	open_field_row(&f, 0, 1, 0, 1, &ends[0]);
	open_field_row(&f, 0, 1, N_V - 1, 1, &ends[1]);
	assert_true(fabs(ends[0] - 1.24) < 0.03 && fabs(ends[1] - 0.73) < 0.03);
}

TEST(test_slope)
{
	struct open_field f = {0};
	struct scan *scan = make(0);
	double at[3];

	assert_true(open_field_is_uniform(&f));
	open_field_row(&f, 3, 2, 5, 3, at);
	assert_true(at[0] == 1 && at[2] == 1);
	open_field_set_slope(scan, (const double[]){1e-3, -2e-3}, &f);
	assert_false(open_field_is_uniform(&f));
	open_field_row(&f, 11.5, 2, 14.5, 3, at); /* the middle, and 20 and 40 mm further along x */
	assert_true(at[0] == 1 && fabs(log(at[1]) - 0.02) < 1e-12 && fabs(log(at[2]) - 0.04) < 1e-12);
	open_field_row(&f, 11.5, 2, 15.5, 1, at);
	assert_true(fabs(log(at[0]) + 0.02) < 1e-12);
}

/* A slab of one line integral and air, with counts that follow the open field: the line integrals are right, bin by bin and
 * merged, with a flat field, and where air is over range. Without the field they are wrong by up to ln(1 / 0.73). */
TEST(test_prep)
{
	struct scan *scan = make(0);
	struct prep p = {.n_u = N_U, .n_v = N_V, .bin = 1, .max_value = 65535, .i0 = 20000, .floor = 1e-4};
	float line[N], valid[N], flat[N];
	uint16_t raw[N];
	double row[N_U], worst = 0;
	struct err err = {0};

	p.open = open_field_of_distance(scan, &scan->views[0], rest);
	open_field_set_slope(scan, (const double[]){-4e-4, 2e-4}, &p.open);
	for (int v = 0; v < N_V; v++) {
		open_field_row(&p.open, 0, 1, v, N_U, row);
		for (int u = 0; u < N_U; u++) {
			raw[v * N_U + u] = (uint16_t)(p.i0 * row[u] * (u < 16 ? exp(-1.5) : 1) + 0.5);
			flat[v * N_U + u] = 1;
		}
	}
	for (int way = 0; way < 8; way++) {
		p.bin = way & 1 ? 2 : 1;
		p.flatfield = way & 2 ? flat : NULL;
		p.has_over_code = way & 4;
		p.over_code = 65535;
		for (int i = 0; i < N; i++)
			raw[i] = way == 4 && i % N_U >= 16 ? 65535 : raw[i];
		assert_int_equal(prep_view(&p, raw, line, valid, NULL, &err), 0);
		for (int i = 0; i < N / p.bin / p.bin; i++) {
			double want = i % (N_U / p.bin) < 16 / p.bin ? 1.5 : 0;

			if (!(fabs((double)line[i] - want) < 1e-3))
				fail_msg("way %d, bin %d: %g, not %g", way, i, (double)line[i], want);
		}
	}
	p.open = (struct open_field){0};
	assert_int_equal(prep_view(&p, raw, line, valid, NULL, &err), 0);
	for (int i = 0; i < N / 4; i++)
		worst = fmax(worst, i % (N_U / 2) < 8 ? fabs((double)line[i] - 1.5) : 0);
	assert_true(worst > 0.25);
	p.is_log = true;
	p.log_scale = 1;
	p.open.slope[0] = 1;
	assert_int_equal(prep_view(&p, raw, line, valid, NULL, &err), -EINVAL);
}
