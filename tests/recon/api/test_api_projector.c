/* SPDX-License-Identifier: Apache-2.0 */
/* Projectors of the public library: exact transposes for every kind of scan, the same bits in every order of an array, subsets,
 * rays. */
#include "recon/core/threads.h"
#include "recon/pet/pet.h"
#include "tests/recon/api/api_fixture.h"
#include "tests/recon/pet/michelogram_fixture.h"

static struct tn_device *dev;

static int open_device(void **state)
{
	WORKS(tn_device_open("cpu:2", &dev, &last));
	return 0;
}

static int close_device(void **state)
{
	tn_device_close(dev);
	return 0;
}

TESTS_SETUP(open_device, close_device);

static struct tn_projector *projector(struct tn_scan *s, const struct tn_model *m)
{
	struct tn_grid g = small_grid;
	struct tn_scan_info i = {TN_SIZE(i)};

	WORKS(tn_scan_info(s, &i, &last));
	if (i.kind == 3) { /* above the detector, inside its x */
		g.lo[0] = 1;
		g.lo[2] = 30;
		g.h[0] = g.h[1] = 2;
		g.lo[1] = -21;
	}
	if (i.kind == 4) { /* a stack: one slice of voxels for each */
		g.n[2] = (int32_t)i.shape[0];
		g.h[2] = 4;
		g.lo[2] = -0.5 * g.n[2] * g.h[2];
	}
	return projector_new(dev, s, &g, m);
}

/* The gap of <A x, y> and <x, A'y>; A x and A'y are the same bits with native strides and in C order, and so are their sums. */
static double gap_of(struct tn_projector *a)
{
	struct tn_projector_info i = {TN_SIZE(i)};
	struct field *x[2], *y[2], *ax[2], *aty[2];
	double forward, back;

	WORKS(tn_projector_info(a, &i, &last));
	for (int native = 0; native < 2; native++) {
		x[native] = field_new(&i.x, native);
		y[native] = field_new(&i.y, native);
		ax[native] = field_new(&i.y, native);
		aty[native] = field_new(&i.x, native);
		field_fill(x[native], 1);
		field_fill(y[native], 2);
		field_fill(ax[native], 3);
		field_fill(aty[native], 3);
		WORKS(tn_forward(a, &x[native]->a, &ax[native]->a, 0, &last));
		WORKS(tn_adjoint(a, &y[native]->a, &aty[native]->a, 0, &last));
	}
	assert_same(ax[0], ax[1]);
	assert_same(aty[0], aty[1]);
	forward = field_dot(ax[0], y[0]);
	back = field_dot(x[0], aty[0]);
	assert_true(forward > 0);
	for (int native = 0; native < 2; native++) {
		WORKS(tn_forward(a, &x[native]->a, &ax[native]->a, 1, &last));
		WORKS(tn_adjoint(a, &y[native]->a, &aty[native]->a, 1, &last));
	}
	assert_same(ax[0], ax[1]);
	assert_same(aty[0], aty[1]);
	assert_near(field_dot(ax[0], y[0]), 2 * forward, 1e-6 * forward);
	assert_near(field_dot(x[0], aty[0]), 2 * back, 1e-6 * back);
	return fabs(forward - back) / forward;
}

/* float32 sums of at most some 1e3 positive terms each, rounded at random: 1e-6 is far above their mean error. */
static void check_gap(const char *what, struct tn_scan *s, struct tn_model m)
{
	struct tn_projector *a;
	double gap;

	TN_INIT(m);
	a = projector(s, &m);
	gap = gap_of(a);
	print_message("%s: %.1e\n", what, gap);
	assert_true(gap <= 1e-6);
}

TEST(transposes)
{
	static const struct {
		const char *what;
		int kind; /* of scan */
		int span, tof;
		struct tn_model model;
	} rows[] = {
		{"PET, Joseph", 1, 3, 0, {0}},
		{"PET, Siddon", 1, 3, 0, {.kind = TN_SIDDON}},
		{"PET, exact", 1, 3, 0, {.kind = TN_EXACT}},
		{"PET, span 2", 1, 2, 0, {0}},
		{"PET, TOF", 1, 3, 9, {0}},
		{"PET, span 2, TOF, PSF, subset", 1, 2, 9, {.kind = TN_SIDDON, .psf = 7, .first = 3, .step = 4}},
		{"PET, deterministic", 1, 1, 0, {.deterministic = 1}},
		{"lines", 2, 0, 0, {0}},
		{"lines, TOF, PSF, subset", 2, 0, 9, {.psf = 7, .first = 1, .step = 3}},
		{"views, slices", 3, 0, 0, {0}},
		{"views, exact, turning", 3, 0, 1, {.kind = TN_EXACT}},
		{"views, slices, turning, subset", 3, 0, 1, {.first = 2, .step = 2}},
		{"parallel, Joseph", 4, 5, 0, {0}},
		{"parallel, one slice, Siddon", 4, 1, 0, {.kind = TN_SIDDON}},
		{"parallel, sampled, PSF", 4, 5, 0, {.kind = TN_SAMPLED, .psf = 5}},
		{"parallel, exact, subset", 4, 5, 0, {.kind = TN_EXACT, .first = 5, .step = 6}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tn_scan *s = rows[i].kind == 1	? pet_scan(rows[i].span, rows[i].tof)
				    : rows[i].kind == 2 ? line_scan(20000, rows[i].tof, 7)
				    : rows[i].kind == 3 ? view_scan(rows[i].tof)
							: beam_scan(rows[i].span);

		check_gap(rows[i].what, s, rows[i].model);
	}
}

/* Millions of lines on a few voxels: a sum in float32 loses 1e-5 of it and more. */
TEST(many_lines)
{
	struct tn_grid few = {{6, 5, 4}, {20, 20, 20}, {-60, -50, -40}};
	struct tn_scan *s = line_scan(2000000, 0, 5);
	double gap = gap_of(projector_new(dev, s, &few, NULL));

	print_message("gap %.1e\n", gap);
	assert_true(gap <= 1e-6);
}

/* A volume of one column along z: its strides are those of the device, but there is no padding behind the caller's array. */
TEST(one_column)
{
	struct tn_grid column = {{1, 1, 3}, {200, 200, 60}, {-100, -100, -90}};
	struct tn_scan *s = line_scan(50, 0, 7);
	struct tn_projector *a = NULL;
	struct tn_projector_info i = {TN_SIZE(i)};
	float mem[4] = {1, 1, 1, 7};
	struct field *y;

	a = projector_new(dev, s, &column, NULL);
	WORKS(tn_projector_info(a, &i, &last));
	y = field_new(&i.y, false);
	for (int add = 0; add < 2; add++) {
		WORKS(tn_forward(a, TN_FLOATS(mem, 3, 1, 1), &y->a, add, &last));
		WORKS(tn_adjoint(a, &y->a, TN_FLOATS(mem, 3, 1, 1), add, &last));
		assert_true(mem[0] > 1 && mem[1] > 1 && mem[2] > 1);
		assert_float_equal(mem[3], 7, 0);
	}
}

/* A subset is a strided array of the data of all angles: read and written there. */
TEST(subsets_in_place)
{
	struct tn_scan *s = pet_scan(2, 9);
	struct tn_model m = {TN_SIZE(m)};
	struct tn_projector *all = projector(s, &m), *part;
	struct tn_projector_info i = {TN_SIZE(i)};
	struct field *x, *y, *z;

	WORKS(tn_projector_info(all, &i, &last));
	x = field_new(&i.x, false);
	y = field_new(&i.y, false);
	z = field_new(&i.y, false);
	field_fill(x, 1);
	WORKS(tn_forward(all, &x->a, &y->a, 0, &last));
	for (int k = 0; k < 3; k++) {
		struct tn_array view = z->a;
		int64_t shape[4], strides[4];

		m.first = k;
		m.step = 3;
		part = projector(s, &m);
		memcpy(shape, z->layout.shape, sizeof(shape));
		memcpy(strides, z->layout.strides, sizeof(strides));
		shape[2] = (shape[2] - k + 2) / 3;
		view.byte_offset = (uint64_t)(k * strides[2]) * sizeof(float);
		strides[2] *= 3;
		view.shape = shape;
		view.strides = strides;
		WORKS(tn_forward(part, &x->a, &view, 0, &last));
	}
	assert_same(y, z);
}

/* Far from the ends of a ray, a uniform volume of 1 gives its length: of the ray that tn_scan_rays() returns. */
TEST(rays)
{
	static const struct tn_grid wide = {{60, 60, 30}, {6, 6, 6}, {-180, -180, -90}};
	struct tn_scan *scans[] = {pet_scan(2, 0), view_scan(true), beam_scan(5)};

	for (int k = 0; k < 3; k++) {
		struct tn_scan_info i = {TN_SIZE(i)};
		struct tn_projector_info p = {TN_SIZE(p)};
		struct tn_model m = {TN_SIZE(m), .kind = TN_EXACT};
		struct tn_projector *a = NULL;
		struct tn_grid g = wide;
		struct field *x, *y;
		double(*ends)[6];
		int seen = 0;

		if (k == 1) /* all between the detector and 40 mm above it */
			g = (struct tn_grid){{80, 80, 4}, {6, 6, 10}, {-240, -240, 30}};
		WORKS(tn_scan_info(scans[k], &i, &last));
		a = projector_new(dev, scans[k], &g, &m);
		WORKS(tn_projector_info(a, &p, &last));
		x = field_new(&p.x, true);
		y = field_new(&p.y, false);
		for (int64_t j = 0; j < x->layout.floats; j++)
			x->mem[j] = 1;
		WORKS(tn_forward(a, &x->a, &y->a, 0, &last));
		ends = take_memory((size_t)i.rays * sizeof(*ends));
		WORKS(tn_scan_rays(scans[k], 0, (size_t)i.rays, ends[0], &last));
		for (int64_t j = 0; j < i.rays; j++) {
			const double *e = ends[j];
			double length = sqrt(pow(e[3] - e[0], 2) + pow(e[4] - e[1], 2) + pow(e[5] - e[2], 2));

			if (k == 1) /* the part between z = 30 and 70 mm */
				length *= 40 / (e[2] - e[5]);
			if (!(length > 0) || (k == 2 && fabs(e[0]) + fabs(e[1]) > 170))
				continue;
			if (k == 2) { /* the projector's field of view holds the grid: the line to its sides */
				double d[2] = {(e[3] - e[0]) / length, (e[4] - e[1]) / length}, low = -1e9, high = 1e9;

				for (int c = 0; c < 2; c++) {
					double t[2] = {(-180 - e[c]) / d[c], (180 - e[c]) / d[c]};

					low = fmax(low, fmin(t[0], t[1]));
					high = fmin(high, fmax(t[0], t[1]));
				}
				length = high - low;
			}
			assert_near(*field_at(y, (size_t)j), length, 2e-3 * length);
			seen++;
		}
		assert_true(seen > i.rays / 3);
	}
}

/* The field of view of a scan without one is that of a reconstruction; the caller's OpenMP setting remains; free in any order. */
TEST(defaults)
{
	struct tn_pet p = small_pet(3, 0);
	struct pet_scanner scanner = {p.rings, p.detectors, p.ring_spacing, p.radius, p.depth, p.bin};
	struct michelogram m = {.scanner = scanner, .n_radial = p.radial, .n_angles = p.angles};
	struct pet_protocol protocol = {
		.algorithm = ALGORITHM_MLEM, .iterations = 1, .projector = PROJECTION_JOSEPH, .matrix = 16};
	struct tn_scan *s = NULL;
	struct tn_device *other = NULL;
	struct tn_projector *a = NULL;
	struct pet_plan plan;
	double ends[6];
	int limit;

	fixture_segments(&m, 3, 4);
	assert_int_equal(pet_plan(&protocol, &m, PET_FACTORS_NONE, false, fixture_device(FIXTURE_CPU, 1), &plan, NULL), 0);
	WORKS(tn_scan_pet(&p, &s, &last));
	WORKS(tn_scan_rays(s, 14, 1, ends, &last)); /* the middle */
	assert_near(hypot(ends[0], ends[1]), plan.fov_radius, 1e-9);
	threads_limit(7);
	limit = threads_now();
	WORKS(tn_device_open("cpu:1", &other, &last));
	WORKS(tn_projector_new(other, s, &small_grid, NULL, &a, &last));
	tn_device_close(other);
	tn_scan_free(s);
	assert_true(gap_of(a) < 1e-6);
	tn_projector_free(a);
	assert_int_equal(threads_now(), limit);
}
