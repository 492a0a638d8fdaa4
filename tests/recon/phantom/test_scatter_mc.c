/* SPDX-License-Identifier: Apache-2.0 */
/* The Monte Carlo of scattered photons: against an integral over angles for a thin plate, against the published order of
 * magnitude and against its own table, tests/recon/phantom/scatter_table.h, which `recon_test_scatter_mc table` prints.
 * `recon_test_scatter_mc pencil THICKNESS GAP ANGLE MU COLLISIONS FILE` writes the scatter of a pencil beam for
 * tests/scatter_fit.py. */
#include "recon/phantom/scatter_mc.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

#define SUPPORT 17.0
#define TABLE_PHOTONS 4000000
#define DISTANCES 5
#define MU 0.055 /* 1/mm */

struct scatter_row {
	double thickness, angle; /* mm, degrees */
	double ratio[DISTANCES]; /* S / P */
	double sigma[DISTANCES]; /* of ratio */
};
/* Distances of the cells from the shadow of the skin at the nipple, toward the chest wall, mm. */
static const double distances[DISTANCES] = {10, 20, 35, 60, 85};
static const struct scatter_row table[] = {
#include "tests/recon/phantom/scatter_table.h"
};
#define ROWS (sizeof table / sizeof *table)

static struct scatter_mc *object_of(const struct shape *body)
{
	struct shape shape = *body;
	struct phantom p = {.n = 1, .shapes = &shape};
	struct scatter_mc *m;

	assert_int_equal(scatter_mc_of_phantom(&p, &m, NULL), 0);
	return m;
}

/* Compute a row of the table: a compressed breast that extends 100 mm from the chest wall and 80 mm to either side. */
static void compute_row(size_t photons, struct scatter_row *row)
{
	enum { C = 4, NU = 144, NV = 240, CU = NU / C, CV = NV / C }; /* cells of 4 mm */
	struct shape body = {.kind = SHAPE_BREAST,
			     .role = ROLE_BODY,
			     .c = {0, 0, SUPPORT + row->thickness / 2},
			     .r = {100, 80, row->thickness / 2},
			     .mu = MU};
	struct phantom p = {.n = 1, .shapes = &body};
	struct scan *scan = fixture_scan_at(NU, NV, 1, row->angle);
	struct scatter_mc *m = object_of(&body);
	struct scatter_mc_run run = {.cell = C, .photons = photons, .seed = 7};
	float *scatter = take_memory(CU * CV * sizeof(float)), *sigma = take_memory(CU * CV * sizeof(float));
	float *line = take_memory(NU * NV * sizeof(float));
	const double *src = scan->views[0].src;
	int middle, edge = 0;

	assert_int_equal(phantom_project(&p, scan, 0, line, NULL), 0);
	assert_int_equal(scatter_mc_view(m, scan, 0, &run, scatter, sigma, NULL), 0);
	/* The row of cells through the shadow of the breast's middle. */
	middle = (int)((NV / 2 - src[1] * body.c[2] / (src[2] - body.c[2])) / C);
	while (edge < NU - 1 && line[middle * C * NU + edge] > 0)
		edge++;
	for (int d = 0; d < DISTANCES; d++) {
		double s = 0, e = 0, primary = 0;
		int n = 0;

		for (int j = middle - 2; j <= middle + 2; j++) {
			int i = (int)((edge - distances[d]) / C);

			s += (double)scatter[j * CU + i];
			e += (double)(sigma[j * CU + i] * sigma[j * CU + i]);
			for (int k = 0; k < C * C; k++, n++)
				primary += exp(-(double)line[(j * C + k / C) * NU + i * C + k % C]);
		}
		row->ratio[d] = s / 5 / (primary / n);
		row->sigma[d] = sqrt(e) / 5 / (primary / n);
	}
	scatter_mc_free(m);
}

/* Repeat three rows with fewer photons, in tier 1 one: the ratios agree within their standard deviations. */
TEST(test_table)
{
	for (size_t k = 0; k < ROWS; k += test_tier() == 2 ? 5 : ROWS) {
		struct scatter_row row = {.thickness = table[k].thickness, .angle = table[k].angle};

		compute_row(TABLE_PHOTONS / 16, &row);
		for (int d = 0; d < DISTANCES; d++) {
			print_message("%.0f mm, %.1f degrees, %.0f mm from the skin: S/P %.3f +- %.3f, table %.3f\n",
				      row.thickness, row.angle, distances[d], row.ratio[d], row.sigma[d], table[k].ratio[d]);
			assert_true(row.sigma[d] < 0.15 * row.ratio[d]);
			assert_true(fabs(row.ratio[d] - table[k].ratio[d]) < 4 * hypot(row.sigma[d], table[k].sigma[d]));
		}
	}
}

/* Published ratios of broad beams at clinical spectra without grid are about 0.2, 0.4, 0.65, 0.9 at 20, 40, 60, 80 mm. */
TEST(test_published)
{
	static const double published[][2] = {{20, 0.2}, {40, 0.4}, {60, 0.65}, {80, 0.9}};
	int found = 0;

	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < ROWS; k++)
			if (table[k].thickness == published[i][0] && table[k].angle == 0) {
				assert_true(fabs(table[k].ratio[3] / published[i][1] - 1) < 0.35);
				found++;
			}
	assert_int_equal(found, 4);
}

/* Return the part of single scatter below `degrees`, by both kinds, from the formulas of scatter_mc.h in their usual form. */
static double forward_part(double degrees, double incoherent, double coherent)
{
	double below[2] = {0, 0}, all[2] = {0, 0};

	for (int i = 0; i < 18000; i++) {
		double theta = (i + 0.5) * M_PI / 18000, c = cos(theta), x = sin(theta / 2) / 0.61992;
		double ratio = 1 / (1 + 20.0 / 511 * (1 - c)), f = 1 / (1 + pow(x / 0.3, 2));
		double value[2] = {ratio * ratio * (ratio + 1 / ratio - sin(theta) * sin(theta)) * (1 - exp(-3.4 * pow(x, 1.08))),
				   (1 + c * c) * f * f * (1 - exp(-pow(x / 0.1, 2)))};

		for (int k = 0; k < 2; k++) {
			all[k] += value[k] * sin(theta);
			below[k] += theta * 180 / M_PI < degrees ? value[k] * sin(theta) * (k ? 1 : ratio) : 0;
		}
	}
	return incoherent * below[0] / all[0] + coherent * below[1] / all[1];
}

/* A plate so thin that photons are scattered at most once: all of the scatter below 80 degrees meets the detector. */
TEST(test_thin_plate)
{
	enum { NU = 300, NV = 300 };
	const double h = 0.5, gap = 20;
	struct shape plate = {.kind = SHAPE_BOX, .role = ROLE_BODY, .c = {150, 0, gap}, .r = {150, 150, h / 2}, .mu = 0.0456};
	struct scan *scan = fixture_scan_at(NU, NV, 1, 0);
	struct scatter_mc *m = object_of(&plate);
	struct scatter_mc_run run = {.cell = 10, .photons = 400000, .seed = 1, .beam = {145, 155, 145, 155}};
	float scatter[900];
	double sum = 0, slope = 150 / scan->views[0].src[2], path = h * sqrt(1 + slope * slope), want;

	assert_int_equal(scatter_mc_view(m, scan, 0, &run, scatter, NULL, NULL), 0);
	for (int i = 0; i < 900; i++) {
		double x = i % 30 * 10 + 5, y = i / 30 * 10 - 145,
		       to[3] = {x - scan->views[0].src[0], y - scan->views[0].src[1], -scan->views[0].src[2]};

		if (hypot(x - 150, y) < gap * tan(80 * M_PI / 180)) /* relative to the same intensity per area as the beam */
			sum += (double)scatter[i] *
			       pow((150 * 150 + 655.5 * 655.5) / (to[0] * to[0] + to[1] * to[1] + to[2] * to[2]), 1.5);
	}
	want = path * forward_part(80, 0.0169, 0.0063);
	print_message("scatter of a thin plate %.5f, from integrals %.5f\n", sum, want);
	assert_true(fabs(sum / want - 1) < 0.03);
	scatter_mc_free(m);
}

/* The plate of test_thin_plate scatters photons once; in a thick one a part of the scatter is from later collisions. */
TEST(test_collisions)
{
	enum { NU = 60, NV = 60, CELLS = 36 };
	struct shape plate = {.kind = SHAPE_BOX, .role = ROLE_BODY, .c = {30, 0, 47}, .r = {30, 30, 30}, .mu = 0.055};
	struct scan *scan = fixture_scan_at(NU, NV, 1, 0);
	struct scatter_mc *m = object_of(&plate);
	struct scatter_mc_run run = {.cell = 10, .photons = 64000, .seed = 5};
	float cells[CELLS];
	double sum[4] = {0};

	for (int n = 0; n < 4; n++) {
		run.collisions = n;
		assert_int_equal(scatter_mc_view(m, scan, 0, &run, cells, NULL, NULL), 0);
		for (int i = 0; i < CELLS; i++)
			sum[n] += (double)cells[i];
	}
	assert_true(sum[1] < 0.9 * sum[0] && sum[1] > 0.5 * sum[0]);
	assert_true(sum[1] < sum[2] && sum[2] < sum[3] && sum[3] < sum[0]);
	run.collisions = -1;
	assert_int_equal(scatter_mc_view(m, scan, 0, &run, cells, NULL, NULL), -EINVAL);
	scatter_mc_free(m);
}

/* Voxels and shapes of the same object scatter alike, and the threads do not matter. */
TEST(test_voxels)
{
	enum { NU = 60, NV = 80, CELLS = 12 * 16 };
	struct shape plate = {.kind = SHAPE_BOX, .role = ROLE_BODY, .c = {30, 0, 30}, .r = {30, 30, 15}, .mu = 0.05};
	struct voxel_material materials[] = {{0.05, VOXEL_TISSUE}};
	struct scan *scan = fixture_scan_at(NU, NV, 1, 10);
	struct scatter_mc *m = object_of(&plate), *of_voxels;
	struct scatter_mc_run run = {.cell = 5, .photons = 64000, .seed = 5};
	float a[CELLS], b[CELLS];
	struct voxel_phantom *v;

	assert_int_equal(voxel_phantom_create((int[]){60, 60, 30}, (double[]){1, 1, 1}, materials, 1, &v, NULL), 0);
	v->grid.lo[2] = 15;
	assert_int_equal(scatter_mc_of_voxels(v, &of_voxels, NULL), 0);
	for (size_t i = 0; i < grid_size(&m->grid); i++)
		assert_true(fabsf(m->mu[i] / of_voxels->mu[i] - 1) < 1e-4f);
	assert_int_equal(scatter_mc_view(m, scan, 0, &run, a, NULL, NULL), 0);
	assert_int_equal(scatter_mc_view(m, scan, 0, &run, b, NULL, NULL), 0);
	assert_memory_equal(a, b, sizeof(a));
	scatter_mc_free(m);
	scatter_mc_free(of_voxels);
	voxel_phantom_free(v);
}

TEST(test_refused)
{
	struct shape bead = {.kind = SHAPE_ELLIPSOID, .role = ROLE_BEAD, .r = {1, 1, 1}, .mu = 1};
	struct shape plate = {.kind = SHAPE_BOX, .role = ROLE_BODY, .c = {30, 0, 30}, .r = {30, 30, 15}, .mu = 0.05};
	struct phantom p = {.n = 1, .shapes = &bead};
	struct scatter_mc_run run = {.cell = 0, .photons = 64000};
	struct scan *scan = fixture_scan_at(10, 10, 1, 0);
	struct scatter_mc *m;
	float scatter[100];

	assert_int_equal(scatter_mc_of_phantom(&p, &m, NULL), -EINVAL);
	m = object_of(&plate);
	assert_int_equal(scatter_mc_view(m, scan, 0, &run, scatter, NULL, NULL), -EINVAL);
	run.cell = 1;
	assert_int_equal(scatter_mc_view(m, scan, 2, &run, scatter, NULL, NULL), -EINVAL);
	run.photons = 3;
	assert_int_equal(scatter_mc_view(m, scan, 0, &run, scatter, NULL, NULL), -EINVAL);
	scatter_mc_free(m);
}

static int print_table(char **words __attribute__((unused)))
{
	static const double thickness[] = {20, 40, 60, 80}, angle[] = {0, 7.5, 15, 25};

	printf("/* SPDX-License-Identifier: Apache-2.0 */\n"
	       "/* S / P of a breast without grid, printed by `recon_test_scatter_mc table` (%d photons a row): thickness, "
	       "angle, ratios at\n"
	       " * the distances of test_scatter_mc.c from the skin, standard deviations. Breast of 100 x 160 mm, %.3f/mm, 20 "
	       "keV, support %.0f\n"
	       " * mm above the detector, source 655.5 mm. */\n",
	       TABLE_PHOTONS, MU, SUPPORT);
	for (int k = 0; k < 16; k++) {
		struct scatter_row row = {.thickness = thickness[k / 4], .angle = angle[k % 4]};

		compute_row(TABLE_PHOTONS, &row);
		printf("{%g, %g,", row.thickness, row.angle);
		for (int d = 0; d < 2 * DISTANCES; d++)
			printf("%s%.4f%s", d % DISTANCES ? ", " : " {", (d < DISTANCES ? row.ratio : row.sigma)[d % DISTANCES],
			       d % DISTANCES == DISTANCES - 1 ? d < DISTANCES ? "}," : "}" : "");
		printf("},\n");
		fflush(stdout);
	}
	return 0;
}

/* Write the scatter of a pencil beam of 4 x 4 mm in a wide slab: 100 x 100 floats, cells of 4 mm, relative to the primary. */
static int write_pencil(char **arg)
{
	double thickness = atof(arg[0]), gap = atof(arg[1]), slope;
	struct shape slab = {.kind = SHAPE_BOX,
			     .role = ROLE_BODY,
			     .c = {300, 0, gap + thickness / 2},
			     .r = {300, 300, thickness / 2},
			     .mu = atof(arg[3])};
	struct scan *scan = fixture_scan_at(400, 400, 1, atof(arg[2]));
	struct scatter_mc *m = object_of(&slab);
	struct scatter_mc_run run = {
		.cell = 4, .photons = 2000000, .seed = 1, .collisions = atoi(arg[4]), .beam = {198, 202, 198, 202}};
	float *scatter = take_memory(10000 * sizeof(*scatter));
	const double *src = scan->views[0].src;
	FILE *file = fopen(arg[5], "wb");
	int rc;

	if (!scatter || !file || scatter_mc_view(m, scan, 0, &run, scatter, NULL, NULL) < 0)
		return 1;
	slope = hypot(200 - src[0], src[1]) / src[2];
	for (int i = 0; i < 10000; i++)
		scatter[i] *= (float)exp(slab.mu * thickness * sqrt(1 + slope * slope));
	rc = fwrite(scatter, sizeof(*scatter), 10000, file) == 10000 ? 0 : 1;
	scatter_mc_free(m);
	return fclose(file) ? 1 : rc;
}

TESTS_COMMAND("table", 0, print_table);
TESTS_COMMAND("pencil", 6, write_pencil);
