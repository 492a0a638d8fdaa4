/* SPDX-License-Identifier: Apache-2.0 */
/* Phantoms of voxels: line integrals compared with the closed ones of the same boxes, several rays per bin, paddles, pieces of
 * lesion. */
#include "recon/core/scan.h"
#include "recon/phantom/voxel_phantom.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

enum { AIR, TISSUE, DENSE, PADDLE, LESION, CALCIFICATION, N_MATERIALS };

static const struct voxel_material materials[N_MATERIALS] = {
	[AIR] = {0, VOXEL_AIR},		  [TISSUE] = {0.05, VOXEL_TISSUE}, [DENSE] = {0.08, VOXEL_TISSUE},
	[PADDLE] = {0.068, VOXEL_PADDLE}, [LESION] = {0.09, VOXEL_LESION}, [CALCIFICATION] = {1.0, VOXEL_CALCIFICATION},
};

TEST_GIVES_BACK(voxel_phantom_free);

static struct voxel_phantom *make_of(const struct voxel_material *of, size_t n, int nx, int ny, int nz, double h)
{
	struct voxel_phantom *p = NULL;
	struct err err = {0};

	assert_done(voxel_phantom_create((int[]){nx, ny, nz}, (double[]){h, h, h}, of, n, &p, &err), &err);
	test_later(give_back_voxel_phantom_free, p);
	return p;
}

static struct voxel_phantom *make(int nx, int ny, int nz, double h)
{
	return make_of(materials, N_MATERIALS, nx, ny, nz, h);
}

/* Voxels first <= i < end become `material`. */
static void paint(struct voxel_phantom *p, const int first[3], const int end[3], uint8_t material)
{
	for (int k = first[2]; k < end[2]; k++)
		for (int j = first[1]; j < end[1]; j++)
			for (int i = first[0]; i < end[0]; i++)
				p->voxel[(size_t)i + (size_t)p->grid.n[0] * ((size_t)j + (size_t)p->grid.n[1] * (size_t)k)] =
					material;
}

static struct scan *make_scan(int n_u, int n_v, double pitch)
{
	static const double angle[3] = {-21.3, 0.7, 24.1};
	struct dbt_geometry g = {
		.n_u = n_u, .n_v = n_v, .pitch = pitch, .axis_height = 47, .source_axis = 608.5, .n_views = 3, .angle = angle};

	return fixture_dbt_scan(&g);
}

/* The same box in voxels and as a closed formula. */
static struct shape box_of(const struct voxel_phantom *p, const int first[3], const int end[3], double mu)
{
	struct shape s = {.kind = SHAPE_BOX, .role = ROLE_BODY, .mu = mu};

	for (int c = 0; c < 3; c++) {
		s.r[c] = (end[c] - first[c]) * p->grid.h[c] / 2;
		s.c[c] = p->grid.lo[c] + first[c] * p->grid.h[c] + s.r[c];
	}
	return s;
}

/* Both sum at most 500 lengths in double and round once to float: 2^-24 of the line, and the closed form's differences of lengths
 * of 650 mm: 650 * 2^-52 * 0.08. A corner that a ray grazes changes nothing: its length is continuous. */
#define LINE_TOL(line) (1.2e-7 * (line) + 1e-10)

TEST(test_against_boxes)
{
	static const int body[2][3] = {{0, 3, 0}, {97, 95, 60}}, gland[2][3] = {{10, 20, 11}, {55, 61, 40}};
	struct voxel_phantom *p = make(110, 101, 60, 0.3);
	struct shape shapes[2];
	struct phantom closed = {.name = "boxes", .n = 2, .shapes = shapes};
	struct scan *scan = make_scan(64, 71, 0.7);
	size_t n = scan_view_size(scan), hit = 0;
	float *got = take_memory(n * sizeof(float)), *want = take_memory(n * sizeof(float));
	struct err err = {0};

	p->grid.lo[2] = 17;
	paint(p, body[0], body[1], TISSUE);
	paint(p, gland[0], gland[1], DENSE);
	shapes[0] = box_of(p, body[0], body[1], 0.05);
	shapes[1] = box_of(p, gland[0], gland[1], 0.03); /* shapes add */
	for (int view = 0; view < 3; view++) {
		assert_int_equal(voxel_phantom_project(p, scan, view, 1, got, &err), 0);
		assert_int_equal(phantom_project(&closed, scan, view, want, &err), 0);
		for (size_t i = 0; i < n; i++) {
			assert_true(fabs(got[i] - want[i]) <= LINE_TOL(want[i]));
			hit += want[i] > 0.9;
		}
	}
	assert_true(hit > 500); /* through all of it */
}

/* A bin seen by 4 x 4 rays is minus the logarithm of the mean intensity of the 16 bins of a detector that is four times finer. */
TEST(test_rays)
{
	static const int body[2][3] = {{0, 5, 0}, {70, 80, 50}};
	struct voxel_phantom *p = make(80, 90, 50, 0.4);
	struct scan *coarse = make_scan(30, 40, 1.0), *fine = make_scan(120, 160, 0.25);
	float *got = take_memory(scan_view_size(coarse) * sizeof(float)),
	      *line = take_memory(scan_view_size(fine) * sizeof(float));
	struct err err = {0};
	size_t edges = 0;

	p->grid.lo[2] = 20;
	paint(p, body[0], body[1], TISSUE);
	for (int view = 0; view < 3; view++) {
		assert_int_equal(voxel_phantom_project(p, coarse, view, 4, got, &err), 0);
		assert_int_equal(voxel_phantom_project(p, fine, view, 1, line, &err), 0);
		for (int v = 0; v < 40; v++)
			for (int u = 0; u < 30; u++) {
				double mean = 0, plain = 0, at = got[v * 30 + u];

				for (int k = 0; k < 16; k++) {
					double l = line[(4 * v + k / 4) * 120 + 4 * u + k % 4];

					mean += exp(-l) / 16;
					plain += l / 16;
				}
				assert_true(fabs(at + log(mean)) < 1e-6); /* 16 lines rounded to float, at most 1.3 each */
				edges += plain - at > 1e-3;		  /* where the mean of the lines would be another */
			}
	}
	assert_true(edges > 10);
}

TEST(test_thick_metal)
{
	struct voxel_material metal[2] = {{0, VOXEL_AIR}, {1000, VOXEL_TISSUE}};
	struct voxel_phantom *p = make_of(metal, 2, 40, 40, 20, 1);
	struct scan *scan = make_scan(16, 16, 1.0);
	float line[256];
	struct err err = {0};

	paint(p, (int[]){0, 0, 0}, (int[]){40, 40, 20}, 1);
	assert_int_equal(voxel_phantom_project(p, scan, 1, 2, line, &err), 0);
	for (int i = 0; i < 256; i++)
		assert_true(line[i] > 19999 && line[i] < 21000); /* exp(-20000) is 0 in double */
}

TEST(test_trim)
{
	struct voxel_phantom *p = make(10, 12, 20, 0.5);
	struct err err = {0};

	paint(p, (int[]){0, 0, 0}, (int[]){10, 12, 3}, PADDLE);
	paint(p, (int[]){0, 0, 18}, (int[]){10, 12, 20}, PADDLE);
	paint(p, (int[]){2, 2, 2}, (int[]){8, 8, 18}, TISSUE); /* 36 of 120 in the topmost plane of the lower paddle */
	paint(p, (int[]){3, 3, 3}, (int[]){4, 4, 4}, DENSE);
	assert_int_equal(voxel_phantom_trim(p, &err), 0);
	assert_int_equal(p->grid.n[2], 15);
	assert_int_equal(p->trimmed[0], 3);
	assert_int_equal(p->trimmed[1], 2);
	assert_int_equal(p->voxel[3 + 10 * 3], DENSE);
	assert_int_equal(p->voxel[2 + 10 * (2 + 12 * 14)], TISSUE);
	assert_int_equal(voxel_phantom_trim(p, &err), 0); /* a second call removes nothing */
	assert_int_equal(p->grid.n[2], 15);
	paint(p, (int[]){0, 0, 0}, (int[]){10, 12, 15}, PADDLE);
	assert_error(voxel_phantom_trim(p, &err), &err, EBADMSG, "15 planes");
}

/* A ball with fragments around it, pieces that touch only at a corner, a piece of another material beside them, one in a corner
 * of the volume. */
TEST(test_shapes)
{
	struct voxel_phantom *p = make(60, 70, 50, 0.2);
	struct phantom *s = NULL;
	struct err err = {0};
	size_t ball = 0;

	p->grid.lo[2] = 17;
	paint(p, (int[]){0, 0, 0}, (int[]){50, 70, 50}, TISSUE);
	for (int k = -10; k <= 10; k++)
		for (int j = -10; j <= 10; j++)
			for (int i = -10; i <= 10; i++)
				if (i * i + j * j + k * k <= 100) {
					paint(p, (int[]){25 + i, 30 + j, 20 + k}, (int[]){26 + i, 31 + j, 21 + k}, LESION);
					ball++;
				}
	/* fragments in the corners of the box around the ball, symmetric, so that the centre does not change */
	paint(p, (int[]){15, 20, 10}, (int[]){16, 21, 11}, LESION);
	paint(p, (int[]){35, 40, 30}, (int[]){36, 41, 31}, LESION);
	/* two cubes that touch at a corner */
	paint(p, (int[]){5, 50, 30}, (int[]){7, 52, 32}, LESION);
	paint(p, (int[]){7, 52, 32}, (int[]){9, 54, 34}, LESION);
	/* a calcification that touches them, and one voxel in the corner of the volume */
	paint(p, (int[]){9, 54, 34}, (int[]){10, 55, 35}, CALCIFICATION);
	paint(p, (int[]){59, 69, 49}, (int[]){60, 70, 50}, CALCIFICATION);

	assert_int_equal(voxel_phantom_shapes(p, &s, &err), 0);
	assert_string_equal(s->name, "voxels");
	assert_int_equal(s->n, 5);
	assert_int_equal(s->shapes[0].role, ROLE_BODY);
	assert_true(fabs(s->shapes[0].c[0] - 6) < 1e-12 && fabs(s->shapes[0].r[0] - 6) < 1e-12); /* the corner counts */
	assert_true(s->shapes[0].mu > 0.05 && s->shapes[0].mu < 0.06);
	assert_true(fabs(s->shapes[0].c[2] - 22) < 1e-12);

	assert_int_equal(s->shapes[1].role, ROLE_LESION);
	for (int c = 0; c < 3; c++) {
		double want = p->grid.lo[c] + ((int[]){25, 30, 20}[c] + 0.5) * 0.2;

		assert_true(fabs(s->shapes[1].c[c] - want) < 1e-9);
		/* 10 voxels and half of one: the moments of the staircase are within 2 % of the ball's */
		assert_true(fabs(s->shapes[1].r[c] - 2.05) < 0.05);
	}
	assert_true(ball > 4000);
	assert_true(fabs(s->shapes[1].mu - 0.04) < 0.002); /* few voxels of the ellipsoid's rim are tissue */

	assert_int_equal(s->shapes[2].role, ROLE_LESION);
	assert_true(fabs(s->shapes[2].c[0] - 7 * 0.2) < 1e-9 && fabs(s->shapes[2].c[2] - (17 + 32 * 0.2)) < 1e-9);
	/* places 5 to 8, each as often: variance 1.25, with the voxel's 1/12 */
	assert_true(fabs(s->shapes[2].r[0] - 0.2 * sqrt(5 * (1.25 + 1.0 / 12))) < 1e-9);

	assert_int_equal(s->shapes[3].role, ROLE_BEAD);
	assert_int_equal(s->shapes[4].role, ROLE_BEAD);
	assert_true(fabs(s->shapes[3].c[2] - (17 + 34.5 * 0.2)) < 1e-9);
	assert_true(fabs(s->shapes[4].c[2] - (17 + 49.5 * 0.2)) < 1e-9);
	assert_true(s->shapes[4].mu > 0.9);
	phantom_free(s);
}

TEST(test_no_breast)
{
	struct voxel_phantom *p = make(5, 6, 7, 1);
	struct phantom *s = NULL;
	struct err err = {0};

	assert_error(voxel_phantom_shapes(p, &s, &err), &err, EBADMSG, "only air");
	assert_null(s);
}

static const struct sizes {
	REFUSED;
	int n[3];
	double h;
	size_t n_materials;
	double mu; /* of the last material */
} too_large[] = {
	{{"no voxels", EINVAL, "axis 0"}, {0, 1, 1}, 0.2, 1, 0},
	{{"a side that is too long", EINVAL, "axis 1"}, {1, VOXEL_SIDE_MAX + 1, 1}, 0.2, 1, 0},
	{{"more than 2 GiB", EINVAL, "voxels"}, {4096, 4096, 129}, 0.2, 1, 0},
	{{"voxels that are too small", EINVAL, "axis 0"}, {1, 1, 1}, 0.00099, 1, 0},
	{{"voxels that are too large", EINVAL, "axis 0"}, {1, 1, 1}, 10.01, 1, 0},
	{{"voxels that are no number", EINVAL, "axis 0"}, {1, 1, 1}, NAN, 1, 0},
	{{"no materials", EINVAL, "0 materials"}, {1, 1, 1}, 0.2, 0, 0},
	{{"too many materials", EINVAL, "257 materials"}, {1, 1, 1}, 0.2, VOXEL_MATERIALS_MAX + 1, 0},
	{{"mu below 0", EINVAL, "material 1"}, {1, 1, 1}, 0.2, 2, -1e-9},
	{{"mu that is too large", EINVAL, "material 255"}, {1, 1, 1}, 0.2, 256, 1000.1},
	{{"mu that is no number", EINVAL, "material 0"}, {1, 1, 1}, 0.2, 1, NAN},
};

static int try_sizes(const void *row, struct err *err)
{
	static struct voxel_material list[VOXEL_MATERIALS_MAX + 1];
	const struct sizes *s = row;
	struct voxel_phantom *p = NULL;
	int r;

	memset(list, 0, sizeof(list));
	if (s->n_materials > 0)
		list[s->n_materials - 1].mu = s->mu;
	r = voxel_phantom_create(s->n, (const double[]){s->h, s->h, s->h}, list, s->n_materials, &p, err);
	assert_true((r < 0) == !p);
	voxel_phantom_free(p);
	return r;
}

REFUSES(too_large_phantoms, too_large, try_sizes)

TEST(largest_phantoms)
{
	static const struct sizes good[] = {
		{.n = {VOXEL_SIDE_MAX, 1, 1}, .h = 10, .n_materials = VOXEL_MATERIALS_MAX, .mu = 1000},
		{.n = {1, 1, VOXEL_SIDE_MAX}, .h = 0.001, .n_materials = 1}};
	struct err err = {0};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_done(try_sizes(&good[i], &err), &err);
}

TEST(test_refusals)
{
	struct voxel_phantom *p = NULL;
	struct err err = {0};
	float line[1];
	struct scan *scan = make_scan(16, 16, 1);

	p = make(2, 2, 2, 1);
	assert_int_equal(voxel_phantom_project(p, scan, 3, 1, line, &err), -EINVAL);
	assert_int_equal(voxel_phantom_project(p, scan, 0, 9, line, &err), -EINVAL);
	assert_null(voxel_phantom_free(NULL));
}
