/* SPDX-License-Identifier: Apache-2.0 */
/* Every argument of the public library wrong once: a code, and a sentence that names the thing. */
#include "tests/recon/api/api_fixture.h"

static struct tn_device *dev;
static struct tn_scan *scans[5]; /* by kind */
static struct tn_projector *projector;

static int set_up(void **state)
{
	WORKS(tn_device_open("cpu:1", &dev, &last));
	scans[1] = pet_scan(3, 0);
	scans[2] = line_scan(10, 0, 1);
	scans[3] = view_scan(false);
	scans[4] = beam_scan(2);
	WORKS(tn_projector_new(dev, scans[2], &small_grid, NULL, &projector, &last));
	return 0;
}

static int tear_down(void **state)
{
	tn_projector_free(projector);
	tn_device_close(dev);
	return 0;
}

TESTS_SETUP(set_up, tear_down);

static int try_device(const void *row, struct err *err)
{
	const struct {
		REFUSED;
		const char *name;
	} *r = row;
	struct tn_device *d = NULL;

	return tn_device_open(r->name, &d, (struct tn_err *)err);
}
static const struct {
	REFUSED;
	const char *name;
} bad_devices[] = {
	{{"no name", EINVAL, "device"}, NULL},
	{{"unknown", EINVAL, "tpu"}, "tpu"},
	{{"threads", EINVAL, "cpu:0"}, "cpu:0"},
	{{"no such GPU", ENODEV, "cuda:200"}, "cuda:200"},
};
REFUSES(devices, bad_devices, try_device)

struct bad_pet {
	REFUSED;
	size_t offset; /* of an int32_t or a double */
	double value;
	bool real;
};
#define INTEGER(m, v) offsetof(struct tn_pet, m), v, false
#define REAL(m, v) offsetof(struct tn_pet, m), v, true
static int try_pet(const void *row, struct err *err)
{
	const struct bad_pet *r = row;
	struct tn_pet p = small_pet(3, 9);
	struct tn_scan *s = NULL;

	if (r->real)
		memcpy((char *)&p + r->offset, &r->value, sizeof(double));
	else
		memcpy((char *)&p + r->offset, &(int32_t){(int32_t)r->value}, sizeof(int32_t));
	return tn_scan_pet(&p, &s, (struct tn_err *)err);
}
static const struct bad_pet bad_pets[] = {
	{{"size", EINVAL, "tn_pet"}, INTEGER(size, 0)},
	{{"rings", EINVAL, "rings"}, INTEGER(rings, 0)},
	{{"detectors", EINVAL, "detectors"}, INTEGER(detectors, -1)},
	{{"spacing", EINVAL, "rings"}, REAL(ring_spacing, NAN)},
	{{"radius", EINVAL, "radius"}, REAL(radius, -1)},
	{{"depth", EINVAL, "depth"}, REAL(depth, INFINITY)},
	{{"radial", EINVAL, "radial"}, INTEGER(radial, 200)},
	{{"angles", EINVAL, "angles"}, INTEGER(angles, 0)},
	{{"first angle", EINVAL, "angle"}, REAL(first_angle, NAN)},
	{{"span", EINVAL, "span"}, INTEGER(span, 4)},
	{{"difference", EINVAL, "difference"}, INTEGER(max_difference, 5)},
	{{"segments", EINVAL, "segments"}, INTEGER(n_segments, 2)},
	{{"fov", EINVAL, "fov_radius"}, REAL(fov_radius, 128)},
	{{"bins", EINVAL, "TOF"}, INTEGER(tof.n, -1)},
	{{"width", EINVAL, "TOF"}, REAL(tof.width, 0)},
	{{"sigma", EINVAL, "TOF"}, REAL(tof.sigma, NAN)},
};
REFUSES(pets, bad_pets, try_pet)

TEST(lines)
{
	float points[6] = {0, 0, 0, 1, 1, 1}, add[2] = {0, 0};
	int32_t pairs[4] = {0, 1, 1, 0}, bins[2] = {0, 1};
	struct tn_lines good = {TN_SIZE(good), points, 2, pairs, 2, bins, add, 0, {2, 10, 10}}, l;
	struct tn_scan *s = NULL;

#define REFUSED_LINES(change, names)                                                                                             \
	l = good;                                                                                                                \
	change;                                                                                                                  \
	assert_error(tn_scan_lines(&l, &s, &last), (struct err *)&last, EINVAL, names)

	REFUSED_LINES(l.points = NULL, "points");
	REFUSED_LINES(l.pairs = NULL, "pairs");
	REFUSED_LINES(l.n = 0, "pairs");
	REFUSED_LINES(l.tof_bin = NULL, "tof_bin");
	REFUSED_LINES(l.tof.sigma = 0, "sigma");
	REFUSED_LINES(l.fov_radius = NAN, "fov_radius");
	points[4] = NAN;
	REFUSED_LINES((void)0, "coordinate 1 of point 1");
	points[4] = 1, pairs[3] = 2;
	REFUSED_LINES((void)0, "line 1 ends at point 2");
	pairs[3] = 0, bins[1] = 2;
	REFUSED_LINES((void)0, "TOF bin 2");
	bins[1] = 0, add[0] = -1;
	REFUSED_LINES((void)0, "add");
	add[0] = 0;
	WORKS(tn_scan_lines(&good, &s, &last));
	tn_scan_free(s);
	assert_int_equal(tn_scan_lines(&good, NULL, NULL), -EINVAL);
	assert_int_equal(tn_scan_lines(NULL, &s, NULL), -EINVAL);
}

TEST(views_and_beams)
{
	double view[12] = {0, 0, 600, 30, 0, 0, 2, 0, 0, 0, 2, 0}, angle[2] = {0, NAN};
	struct tn_views v = {TN_SIZE(v), 1, 30, 44, view};
	struct tn_parallel p = {TN_SIZE(p), .slices = 1, .angles = 2, .radial = 9, .bin = 1, .slice = 1, .angle = angle};
	struct tn_scan *s = NULL;

	view[2] = 0;
	assert_error(tn_scan_views(&v, &s, &last), (struct err *)&last, EINVAL, "source is in the detector");
	view[2] = 600, view[10] = 0;
	assert_error(tn_scan_views(&v, &s, &last), (struct err *)&last, EINVAL, "view 0");
	view[10] = NAN;
	assert_error(tn_scan_views(&v, &s, &last), (struct err *)&last, EINVAL, "number 10 of view 0");
	view[10] = 2, v.n_u = 1;
	assert_int_equal(tn_scan_views(&v, &s, &last), 0);
	tn_scan_free(s);
	v.n_u = 0;
	assert_error(tn_scan_views(&v, &s, &last), (struct err *)&last, EINVAL, "0 x 44");
	v.n_u = 30, v.n_v = 0;
	assert_error(tn_scan_views(&v, &s, &last), (struct err *)&last, EINVAL, "30 x 0");
	assert_error(tn_scan_parallel(&p, &s, &last), (struct err *)&last, EINVAL, "angle 1");
	p.angle = NULL, p.bin = -1;
	assert_error(tn_scan_parallel(&p, &s, &last), (struct err *)&last, EINVAL, "-1 mm");
}

TEST(newer_struct)
{
	struct {
		struct tn_model m;
		int more;
	} newer = {{.size = sizeof(newer)}, 0};
	struct tn_projector *a = NULL;

	WORKS(tn_projector_new(dev, scans[1], &small_grid, &newer.m, &a, &last));
	tn_projector_free(a);
	newer.more = 1;
	assert_error(tn_projector_new(dev, scans[1], &small_grid, &newer.m, &a, &last), (struct err *)&last, EINVAL,
		     "newer version");
}

static int try_projector(const void *row, struct err *err)
{
	const struct {
		REFUSED;
		int kind;
		struct tn_model m;
		struct tn_grid g;
	} *r = row;
	struct tn_model m = r->m;
	struct tn_projector *a = NULL;

	TN_INIT(m);
	return tn_projector_new(dev, r->kind ? scans[r->kind] : NULL, r->g.n[0] ? &r->g : &small_grid, &m, &a,
				(struct tn_err *)err);
}
static const struct {
	REFUSED;
	int kind;
	struct tn_model m;
	struct tn_grid g;
} bad_projectors[] = {
	{{"no scan", EINVAL, "scan"}, 0, {0}, {{0}, {0}, {0}}},
	{{"model", EINVAL, "'slices'"}, 1, {.kind = TN_SLICES}, {{0}, {0}, {0}}},
	{{"model", EINVAL, "kind -1"}, 1, {.kind = -1}, {{0}, {0}, {0}}},
	{{"lines, exact", EINVAL, "'exact' is not possible for lines"}, 2, {.kind = TN_EXACT}, {{0}, {0}, {0}}},
	{{"first", EINVAL, "views from 20"}, 1, {.first = 20, .step = 1}, {{0}, {0}, {0}}},
	{{"step", EINVAL, "steps of -1"}, 1, {.step = -1}, {{0}, {0}, {0}}},
	{{"psf", EINVAL, "psf"}, 1, {.psf = NAN}, {{0}, {0}, {0}}},
	{{"sampling", EINVAL, "sampling"}, 4, {.kind = TN_SAMPLED, .sampling = -1}, {{0}, {0}, {0}}},
	{{"grid", EINVAL, "along y"}, 1, {0}, {{9, 0, 9}, {1, 1, 1}, {0}}},
	{{"grid", EINVAL, "along z"}, 1, {0}, {{9, 9, 9}, {1, 1, NAN}, {0}}},
	{{"volume in the detector", EINVAL, "between"}, 3, {0}, {{9, 9, 9}, {1, 1, 1}, {0, 0, -50}}},
};
REFUSES(projectors, bad_projectors, try_projector)

TEST(arrays)
{
	float x[9 * 21 * 24], y[10];
	int64_t shape[3] = {9, 21, 24}, strides[3] = {504, 0, 1};
	struct tn_array good = {x, {TN_HOST, 0}, 3, {2, 32, 1}, shape, NULL, 0}, a;

	memset(x, 0, sizeof(x));
#define REFUSED_ARRAY(change, names)                                                                                             \
	a = good;                                                                                                                \
	change;                                                                                                                  \
	assert_error(tn_forward(projector, &a, TN_FLOATS(y, 10), 0, &last), (struct err *)&last, EINVAL, names)

	REFUSED_ARRAY(a.data = NULL, "x: no array");
	REFUSED_ARRAY(a.shape = NULL, "x: no array");
	REFUSED_ARRAY(a.ndim = 9, "x: no array");
	REFUSED_ARRAY(a.ndim = 2, "needed: (9, 21, 24)");
	REFUSED_ARRAY(a.type.bits = 64, "float32");
	REFUSED_ARRAY(a.type.code = 0, "float32");
	REFUSED_ARRAY(a.device.type = TN_CUDA, "GPU 0");
	REFUSED_ARRAY(a.device.type = 7, "memory of type 7");
	REFUSED_ARRAY(a.byte_offset = 2, "address");
	assert_error(tn_forward(projector, NULL, TN_FLOATS(y, 10), 0, &last), (struct err *)&last, EINVAL, "x: no array");
	assert_error(tn_forward(projector, &good, TN_FLOATS(y, 11), 0, &last), (struct err *)&last, EINVAL,
		     "y: an array of shape (11)");
	a = good;
	a.strides = strides;
	WORKS(tn_forward(projector, &a, TN_FLOATS(y, 1, 10), 0, &last)); /* read: elements may share memory */
	assert_error(tn_adjoint(projector, TN_FLOATS(y, 10), &a, 0, &last), (struct err *)&last, EINVAL, "axis 1 has stride 0");
	assert_int_equal(tn_forward(NULL, &good, &good, 0, NULL), -EINVAL);
}

static int try_recon(const void *row, struct err *err)
{
	const struct {
		REFUSED;
		int kind;
		unsigned roles;
		const char *keys;
	} *r = row;
	struct tn_recon *recon = NULL;

	return tn_recon_new(dev, scans[r->kind], r->keys, r->roles, NULL, &recon, (struct tn_err *)err);
}
#define DATA (1u << TN_DATA)
static const struct {
	REFUSED;
	int kind;
	unsigned roles;
	const char *keys;
} bad_recons[] = {
	{{"no data", EINVAL, "roles"}, 1, 0, ""},
	{{"role of another kind", EINVAL, "roles"}, 1, DATA | 1u << TN_VALID, ""},
	{{"list without sensitivity", EINVAL, "roles"}, 2, DATA, ""},
	{{"list without a thickness of slices", EINVAL, "slice_spacing"}, 2, 1u << TN_SENSITIVITY, ""},
	{{"list, algorithm", EINVAL, "algorithm=fbp"}, 2, 1u << TN_SENSITIVITY, "algorithm=fbp slice_spacing=3"},
	{{"views without a thickness", EINVAL, "thickness"}, 3, DATA, ""},
	{{"unknown key", EINVAL, "'iteration'"}, 1, DATA, "iteration=3"},
	{{"key of the node", EINVAL, "'list_mode'"}, 1, DATA, "list_mode=true"},
	{{"no value", EINVAL, "key 'psf'"}, 1, DATA, "psf"},
	{{"value", EINVAL, "key 'iterations'"}, 1, DATA, "iterations=0"},
	{{"value", EINVAL, "key 'voxel'"}, 1, DATA, "voxel=nan"},
	{{"word", EINVAL, "osem"}, 1, DATA, "algorithm=OSEM"},
	{{"no effect", EINVAL, "no effect"}, 1, DATA, "algorithm=fbp psf=3"},
	{{"subsets", EINVAL, "subsets"}, 1, DATA, "algorithm=osem subsets=21"},
	{{"memory", ENOMEM, "memory_limit"}, 4, DATA, "algorithm=mlem memory_limit=1kB"},
	{{"endless", EINVAL, "KEY=VALUE"},
	 1,
	 DATA,
	 "psf=11111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111"},
};
REFUSES(recons, bad_recons, try_recon)

TEST(order_of_calls)
{
	float y[2 * 24 * 41], image[2 * 41 * 41];
	struct tn_recon *r = NULL;

	memset(y, 0, sizeof(y));
	WORKS(tn_recon_new(dev, scans[4], "algorithm=sart iterations=1", DATA, NULL, &r, &last));
	assert_error(tn_recon_run(r, NULL, NULL, NULL, &last), (struct err *)&last, EINVAL, "roles 0x2");
	assert_error(tn_recon_read(r, TN_FLOATS(image, 2, 41, 41), &last), (struct err *)&last, EINVAL, "not called yet");
	assert_error(tn_recon_put(r, TN_VALID, TN_FLOATS(y, 2, 24, 41), &last), (struct err *)&last, EINVAL, "role 4");
	assert_error(tn_recon_put(r, TN_DATA, TN_FLOATS(y, 24, 41), &last), (struct err *)&last, EINVAL,
		     "data: an array of shape");
	WORKS(tn_recon_put(r, TN_DATA, TN_FLOATS(y, 2, 24, 41), &last));
	assert_error(tn_recon_put(r, TN_DATA, TN_FLOATS(y, 2, 24, 41), &last), (struct err *)&last, EINVAL, "already");
	WORKS(tn_recon_run(r, NULL, NULL, NULL, &last));
	assert_error(tn_recon_run(r, NULL, NULL, NULL, &last), (struct err *)&last, EINVAL, "called already");
	assert_error(tn_recon_read(r, TN_FLOATS(image, 2, 41, 40), &last), (struct err *)&last, EINVAL, "volume");
	WORKS(tn_recon_read(r, TN_FLOATS(image, 2, 41, 41), &last));
	tn_recon_free(r);
	y[5] = NAN;
	WORKS(tn_recon_new(dev, scans[4], "algorithm=sart iterations=1", DATA, NULL, &r, &last));
	WORKS(tn_recon_put(r, TN_DATA, TN_FLOATS(y, 2, 24, 41), &last));
	assert_error(tn_recon_run(r, NULL, NULL, NULL, &last), (struct err *)&last, EINVAL, "radial bin 5");
	assert_error(tn_recon_read(r, TN_FLOATS(image, 2, 41, 41), &last), (struct err *)&last, EINVAL, "failed");
	tn_recon_free(r);
}

/* Nothing at all. */
TEST(none)
{
	struct tn_device_info d = {TN_SIZE(d)};
	struct tn_scan_info s = {TN_SIZE(s)}, no_size = {0};
	double ends[6];

	tn_device_close(NULL);
	tn_scan_free(NULL);
	tn_projector_free(NULL);
	tn_recon_free(NULL);
	tn_recon_cancel(NULL);
	assert_int_equal(tn_devices(NULL, NULL), 0);
	assert_int_equal(tn_device_info(NULL, &d, NULL), -EINVAL);
	assert_int_equal(tn_device_info(dev, NULL, NULL), -EINVAL);
	assert_int_equal(tn_device_open("cpu", NULL, NULL), -EINVAL);
	assert_int_equal(tn_scan_info(NULL, &s, NULL), -EINVAL);
	assert_int_equal(tn_scan_info(scans[1], &no_size, NULL), -EINVAL);
	assert_int_equal(tn_scan_rays(scans[2], 10, 1, ends, NULL), -EINVAL);
	assert_int_equal(tn_scan_rays(scans[2], 0, 1, NULL, NULL), -EINVAL);
	assert_int_equal(tn_scan_rays(scans[2], SIZE_MAX, 2, ends, NULL), -EINVAL);
	assert_int_equal(tn_projector_info(NULL, NULL, NULL), -EINVAL);
	assert_int_equal(tn_projector_new(NULL, scans[1], &small_grid, NULL, &projector, NULL), -EINVAL);
	assert_int_equal(tn_projector_new(dev, scans[1], NULL, NULL, &projector, NULL), -EINVAL);
	assert_int_equal(tn_recon_info(NULL, NULL, NULL), -EINVAL);
	assert_int_equal(tn_recon_put(NULL, TN_DATA, NULL, NULL), -EINVAL);
	assert_int_equal(tn_recon_run(NULL, NULL, NULL, NULL, NULL), -EINVAL);
	assert_int_equal(tn_recon_read(NULL, NULL, NULL), -EINVAL);
	assert_int_equal(tn_recon_new(NULL, scans[1], "", DATA, NULL, &(struct tn_recon *){NULL}, NULL), -EINVAL);
	assert_int_equal(tn_recon_new(dev, NULL, "", DATA, NULL, &(struct tn_recon *){NULL}, NULL), -EINVAL);
	assert_int_equal(tn_keys(1, NULL, NULL), 0);
}
