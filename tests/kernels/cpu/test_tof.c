/* SPDX-License-Identifier: Apache-2.0 */
/* Time of flight on the CPU, in addition to test_paths.c (ray walk and paths, adjoints, adding, threads): every bin compared with
 * a simple implementation in double; the sum over the bins, wide bins and pairs of bins; points in four quadrants; what is
 * refused. */
#include "tests/kernels/cpu/parallel.h"
#include "tests/test.h"

#include "kernels/tof.h"

#define AGREE_TOL 1e-5 /* of the largest value */
#define EXACT_TOL 2e-6
#define MOST_TOF 64
#define MOST_CROSSINGS 512

/* ---- a simple implementation, from the definition ---- */

/* Return the normal distribution function, cut off at 4 sigma. */
static double distribution(double x)
{
	return 0.5 + 0.5 * erf(fmin(fmax(x, -4), 4) / sqrt(2)) / erf(4 / sqrt(2));
}

/* Add `value` at t mm along a ray to its TOF bins, bin by bin. */
static void add_value(const struct scan_tof *tof, double t, double value, double *sum)
{
	for (int k = 0; k < tof->n; k++) {
		double middle = (k - (tof->n - 1) / 2.0) * tof->width;

		sum[k] += value * (distribution((middle + tof->width / 2 - t) / tof->sigma) -
				   distribution((middle - tof->width / 2 - t) / tof->sigma));
	}
}

struct ray {
	double r, c, s, reach, z, slope, stretch; /* mm along the path; stretch: length of the ray per length of path */
	double steepest;			  /* largest |slope| of any plane */
};

static struct ray ray_of(const struct fixture *f, int view, int v, int u)
{
	double r = f->radius[v], ring = sqrt(f->scan.ring_radius * f->scan.ring_radius - r * r), most = 0;
	double slope = f->planes[u].rise / ring;

	for (int i = 0; i < f->scan.n_u; i++)
		most = fmax(most, fabs(f->planes[i].rise));
	return (struct ray){r,
			    f->views[view].turn[0],
			    f->views[view].turn[1],
			    sqrt(f->scan.fov_radius * f->scan.fov_radius - r * r),
			    f->planes[u].z,
			    slope,
			    sqrt(1 + slope * slope),
			    most / ring};
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Add the crossings of lo + i h, i = 0 to n, with from + t along, inside t0..t1. */
static int add_crossings(double lo, double h, int n, double from, double along, double t0, double t1, double *t, int count)
{
	for (int i = 0; i <= n && along != 0; i++) {
		double at = (lo + i * h - from) / along;

		if (at > t0 && at < t1) {
			assert_true(count < MOST_CROSSINGS);
			t[count++] = at;
		}
	}
	return count;
}

/* Add the voxels of one step of the path to the sums. */
static void add_step(const struct fixture *f, const float *column, const struct ray *ray, double t0, double t1, double *sum)
{
	const struct grid *g = &f->grid;
	double t[MOST_CROSSINGS] = {t0, t1}, middle = (t0 + t1) / 2 * ray->stretch;
	int n = add_crossings(g->lo[2], g->h[2], g->n[2], ray->z, ray->slope, t0, t1, t, 2);

	qsort(t, (size_t)n, sizeof(*t), compare);
	for (int i = 0; i + 1 < n; i++) {
		int k = (int)floor((ray->z + ray->slope * (t[i] + t[i + 1]) / 2 - g->lo[2]) / g->h[2]);

		if (k >= 0 && k < g->n[2])
			add_value(&f->scan.tof, middle, (t[i + 1] - t[i]) * ray->stretch * column[k], sum);
	}
}

/* Compute the TOF bins of one ray: EXACT and PATHS. */
static void reference_walk(const struct fixture *f, const float *x, const struct ray *ray, double *sum)
{
	const struct grid *g = &f->grid;
	double t[MOST_CROSSINGS] = {-ray->reach, ray->reach}, longest = g->h[2] / ray->steepest;
	int n = add_crossings(g->lo[0], g->h[0], g->n[0], ray->r * ray->c, -ray->s, -ray->reach, ray->reach, t, 2);

	n = add_crossings(g->lo[1], g->h[1], g->n[1], ray->r * ray->s, ray->c, -ray->reach, ray->reach, t, n);
	qsort(t, (size_t)n, sizeof(*t), compare);
	for (int i = 0; i + 1 < n; i++) {
		double middle = (t[i] + t[i + 1]) / 2, length = t[i + 1] - t[i];
		int column = (int)floor((ray->r * ray->c - middle * ray->s - g->lo[0]) / g->h[0]);
		int row = (int)floor((ray->r * ray->s + middle * ray->c - g->lo[1]) / g->h[1]);
		int steps = length > longest ? (int)ceil(length / longest) : 1;

		if (length < 1e-9 || column < 0 || column >= g->n[0] || row < 0 || row >= g->n[1])
			continue;
		for (int k = 0; k < steps; k++)
			add_step(f, x + (size_t)column * grid_step(g, 0) + (size_t)row * grid_step(g, 1), ray,
				 t[i] + length * k / steps, t[i] + length * (k + 1) / steps, sum);
	}
}

/* Compute the TOF bins of one ray: JOSEPH. */
static void reference_joseph(const struct fixture *f, const float *x, const struct ray *ray, double *sum)
{
	const struct grid *g = &f->grid;
	bool by_x = fabs(ray->s) > fabs(ray->c);
	int lead = by_x ? 0 : 1, other = 1 - lead;
	double length = g->h[lead] / fmax(fabs(ray->c), fabs(ray->s)) * ray->stretch;

	for (int i = 0; i < g->n[lead]; i++) {
		double at = g->lo[lead] + (i + 0.5) * g->h[lead];
		double t = by_x ? (ray->r * ray->c - at) / ray->s : (at - ray->r * ray->s) / ray->c;
		double q =
			((by_x ? ray->r * ray->s + t * ray->c : ray->r * ray->c - t * ray->s) - g->lo[other]) / g->h[other] - 0.5;
		double w = (ray->z + ray->slope * t - g->lo[2]) / g->h[2] - 0.5, far = fmin(fmax(q, 0), g->n[other] - 1);

		if (fabs(t) > ray->reach || q < -0.5 || q >= g->n[other] - 0.5)
			continue;
		for (int j = cpu_max((int)far - 1, 0); j < cpu_min((int)far + 3, g->n[other]); j++)
			for (int k = cpu_max((int)floor(w), 0); k < cpu_min((int)floor(w) + 2, g->n[2]); k++)
				add_value(&f->scan.tof, t * ray->stretch,
					  length * fmax(0, 1 - fabs(far - j)) * fmax(0, 1 - fabs(w - k)) *
						  x[(size_t)i * grid_step(g, lead) + (size_t)j * grid_step(g, other) + (size_t)k],
					  sum);
	}
}

/* ---- every bin ---- */

static void compare_ray(const struct fixture *f, const struct setup *s, enum projection_model model, const float *x,
			const float *y, int view, int v, int u)
{
	struct ray ray = ray_of(f, view, v, u);
	int n = f->scan.tof.n;
	double sum[MOST_TOF] = {0};

	if (model == PROJECTION_JOSEPH)
		reference_joseph(f, x, &ray, sum);
	else
		reference_walk(f, x, &ray, sum);
	for (int k = 0; k < n; k++) {
		size_t bin = (((size_t)view * (size_t)f->scan.n_v + (size_t)v) * (size_t)n + (size_t)k) * (size_t)f->scan.n_u +
			     (size_t)u;
		double tol = (model == PROJECTION_EXACT ? EXACT_TOL : AGREE_TOL) * f->scan.fov_radius;

		if (!(fabs(y[bin] - sum[k]) <= tol))
			fail_msg("%s, %s, model %d, view %d, bin %d, plane %d, TOF bin %d: %.9g, not %.9g", s->name, f->dev->name,
				 (int)model, view, v, u, k, (double)y[bin], sum[k]);
	}
}

static void check_bins(struct fixture *f, const struct setup *s)
{
	struct buf x = volume(f, 9, 0.1f, 1);
	float *host = fixture_download(&x);

	for (int m = f->first; m < 3 && s->tof.n; m++) {
		struct projection *a = create(f, models[m], 0);
		float *y = forward(f, a, &x);
		int ray = 0;

		for (int view = 0; view < VIEWS; view++)
			for (int v = 0; v < f->scan.n_v; v++)
				for (int u = 0; u < f->scan.n_u && scan_reach(&f->scan, v) > 0; u++, ray++)
					if (ray % (f->first ? 61 : 13) == 0)
						compare_ray(f, s, models[m], host, y, view, v, u);
		assert_true(ray > 500);
	}
}

TEST(test_bins)
{
	everywhere(check_bins);
}

/* ---- sums of bins ---- */

/* Change the time of flight of the fixture. */
static void set_tof(struct fixture *f, int n, double width, double sigma)
{
	f->scan.tof = (struct scan_tof){n, width, sigma};
	f->n_out = scan_view_size(&f->scan) * VIEWS;
}

static float *projected(struct fixture *f, enum projection_model model, const struct buf *x)
{
	return forward(f, create(f, model, 0), x);
}

/* Add the TOF bins of every ray in groups of `group`. */
static float *grouped(const struct fixture *f, const float *y, int group)
{
	size_t n = (size_t)f->scan.tof.n, n_u = (size_t)f->scan.n_u, groups = n / (size_t)group;
	float *sum = take_zeros(f->n_out / (size_t)group, sizeof(*sum));

	assert_true(f->n_out % (n * n_u) == 0 && n % (size_t)group == 0);
	for (size_t i = 0; i < f->n_out; i++) {
		size_t ray = i / (n * n_u), k = i / n_u % n / (size_t)group;

		sum[(ray * groups + k) * n_u + i % n_u] += y[i];
	}
	return sum;
}

static void expect_same(const struct fixture *f, const struct setup *s, const char *what, const float *y, const float *expect)
{
	double most = fixture_difference(y, expect, f->n_out);

	if (!(most <= AGREE_TOL))
		fail_msg("%s, %s: %s: a difference of %g of the largest value", s->name, f->dev->name, what, most);
}

/* If the bins cover the field of view, their sum is the value without time of flight. */
static void check_whole(struct fixture *f, const struct setup *s)
{
	struct buf x = volume(f, 11, 0.1f, 1);

	for (int m = f->first; m < 3 && s->tof.n; m++) {
		float *sum;

		set_tof(f, 15, (2.2 * f->scan.fov_radius + 8 * s->tof.sigma) / 15, s->tof.sigma);
		sum = grouped(f, projected(f, models[m], &x), 15);
		set_tof(f, 0, 0, 0);
		expect_same(f, s, "sum of all bins", sum, projected(f, models[m], &x));
	}
}

TEST(test_whole)
{
	everywhere(check_whole);
}

/* Bins of width 2 D are the sums of two bins of width D, and one bin of width n D is the sum of all: also where the bins do not
 * cover the field of view. */
static void check_mashed(struct fixture *f, const struct setup *s)
{
	const int groups[] = {2, 12};
	struct buf x = volume(f, 12, 0.1f, 1);

	for (int m = f->first; m < 3 && s->tof.n; m++)
		for (int i = 0; i < 2; i++) {
			float *sum;

			set_tof(f, 12, s->tof.width * (m + 1) / 3, s->tof.sigma);
			sum = grouped(f, projected(f, models[m], &x), groups[i]);
			set_tof(f, 12 / groups[i], f->scan.tof.width * groups[i], s->tof.sigma);
			expect_same(f, s, i ? "one wide bin" : "pairs of bins", sum, projected(f, models[m], &x));
		}
}

TEST(test_mashed)
{
	everywhere(check_mashed);
}

/* The back projection of bins that do not depend on k is that of one wide bin. */
static void check_sensitivity(struct fixture *f, const struct setup *s)
{
	for (int m = f->first; m < 3 && s->tof.n; m++) {
		size_t n = (size_t)s->tof.n, n_u = (size_t)f->scan.n_u, rays;
		struct buf y;
		float *host, *many, *expect, *x;

		set_tof(f, 1, s->tof.n * s->tof.width, s->tof.sigma);
		y = sinogram(f, 5, 0.1f, 1);
		host = fixture_download(&y);
		expect = back(f, create(f, models[m], 0), &y);
		rays = f->n_out / n_u;
		set_tof(f, s->tof.n, s->tof.width, s->tof.sigma);
		many = take_memory(f->n_out * sizeof(*many));
		for (size_t i = 0; i < rays * n; i++)
			memcpy(many + i * n_u, host + i / n * n_u, n_u * sizeof(*many));
		y = fixture_upload(f->dev, many, f->n_out);
		x = back(f, create(f, models[m], 0), &y);
		if (!(fixture_difference(x, expect, f->n_in) <= AGREE_TOL))
			fail_msg("%s, model %d: %g", s->name, (int)models[m], fixture_difference(x, expect, f->n_in));
	}
}

TEST(test_sensitivity)
{
	everywhere(check_sensitivity);
}

/* ---- points ---- */

/* Check the bins of one voxel at (x, y): in each view and plane the largest is that nearest to the voxel, or the one beside it if
 * both are almost equally near. Bins of higher k are those towards positive t, the ray's first end. */
static int check_peaks(const struct fixture *f, const float *y, double px, double py)
{
	const struct scan_tof *tof = &f->scan.tof;
	size_t n_u = (size_t)f->scan.n_u, n = (size_t)tof->n;
	int seen = 0;

	for (size_t i = 0; i < f->n_out / n; i++) {
		size_t u = i % n_u, v = i / n_u % (size_t)f->scan.n_v, view = i / n_u / (size_t)f->scan.n_v;
		double t = -px * f->views[view].turn[1] + py * f->views[view].turn[0];
		double slope = scan_slope(&f->scan, f->planes[u].rise, (int)v), at;
		const float *ray = y + i / n_u * n * n_u + u;
		size_t best = 0;

		for (size_t k = 1; k < n; k++)
			best = ray[k * n_u] > ray[best * n_u] ? k : best;
		if (!(ray[best * n_u] > 0.2))
			continue;
		at = t * sqrt(1 + slope * slope) / tof->width + ((double)n - 1) / 2;
		if (fabs((double)best - at) > 0.5 + 0.5 * 6 / tof->width)
			fail_msg("point (%g, %g), view %zu, plane %zu: bin %zu is the largest, the point is at %.2f", px, py,
				 view, u, best, at);
		seen++;
	}
	return seen;
}

TEST(test_points)
{
	/* pixels of 4.5 x 4.7 mm; the middle of the grid is pixel (20, 19) */
	const int pixels[4][2] = {{34, 27}, {10, 30}, {6, 8}, {29, 5}};
	struct fixture *f = take_memory(sizeof(*f));

	set_up(f, &setups[9], fixture_device(FIXTURE_POISON, 2));
	assert_int_equal(f->scan.tof.n, 13);
	for (int p = 0; p < 4; p++)
		for (int m = 0; m < 3; m++) {
			const struct grid *g = &f->grid;
			float *host = take_zeros(f->n_in, sizeof(*host));
			double px = g->lo[0] + (pixels[p][0] + 0.5) * g->h[0], py = g->lo[1] + (pixels[p][1] + 0.5) * g->h[1];
			struct buf x;

			for (int k = 0; k < g->n[2]; k++)
				host[(size_t)pixels[p][0] * grid_step(g, 0) + (size_t)pixels[p][1] * grid_step(g, 1) +
				     (size_t)k] = 1;
			x = fixture_upload(f->dev, host, f->n_in);
			assert_true(check_peaks(f, projected(f, models[m], &x), px, py) > 50);
		}
}

/* ---- the table, and what is refused ---- */

/* The weights in single precision are within 2e-7 of the definition, up to the rounding of the position. */
static void check_table(const struct cpu_path_loops *loops, const struct projection *a)
{
	const struct cpu_tof *tof = &a->paths->tof;
	const struct scan_tof *scan = &a->scan->tof;
	float t[CPU_PATH_BLOCK], *weight = take_memory((size_t)CPU_PATH_BLOCK * (size_t)tof->row * sizeof(*weight));
	int first[CPU_PATH_BLOCK];
	double reach = 0.5 * scan->n * scan->width + 5 * scan->sigma;

	for (int i = 0; i < CPU_PATH_BLOCK; i++)
		t[i] = (float)(reach * (2 * (i + 0.37) / CPU_PATH_BLOCK - 1));
	loops->tof_windows(tof, t, 1, CPU_PATH_BLOCK, first, weight);
	for (int i = 0; i < CPU_PATH_BLOCK; i++)
		for (int k = 0; k < scan->n; k++) {
			bool in = k >= first[i] && k < first[i] + tof->window;
			double w = in ? weight[(size_t)i * (size_t)tof->row + (size_t)(k - first[i])] : 0;

			if (fabs(w - tof_weight(scan, k, t[i])) > 2e-7)
				fail_msg("%d bins of %g mm, sigma %g: bin %d at %g mm: weight %.9g, not %.9g", scan->n,
					 scan->width, scan->sigma, k, (double)t[i], w, tof_weight(scan, k, t[i]));
		}
}

TEST(test_table)
{
	const struct scan_tof kinds[] = {{13, 46.8, 33.5}, {33, 21.4, 13.6}, {1, 608, 33.5}, {1, 1e6, 3}, {4, 80, 10},
					 {6, 81, 10},	   {4096, 0.2, 40},  {8, 5, 20},     {3, 1, 500}};
	struct fixture *f = take_memory(sizeof(*f));
	struct device *dev = fixture_device(FIXTURE_POISON, 1);

	set_up(f, &setups[8], dev);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct projection *a;

		set_tof(f, kinds[i].n, kinds[i].width, kinds[i].sigma);
		a = create(f, PROJECTION_PATHS, 0);
		for (int set = 0; cpu_rows_at(set); set++)
			check_table(cpu_rows_at(set)->paths, a);
	}
}

static void expect_refused(struct fixture *f, const struct projection_spec *spec, const char *text)
{
	struct projection *a = NULL;
	struct err err = {0};

	assert_error(f->v->projection_create(f->dev, spec, &a, &err), &err, EINVAL, text);
	assert_int_equal(f->v->projection_bytes(f->dev, spec), 0);
	assert_null(a);
}

TEST(test_refused)
{
	const struct scan_tof bad[] = {{-1, 10, 10},	  {4097, 10, 10}, {3, 0, 10},	{3, -1, 10},	   {3, NAN, 10},
				       {3, INFINITY, 10}, {3, 10, 0},	  {3, 10, NAN}, {3, 10, INFINITY}, {3, 0.01, 10}};
	const char *text[] = {"-1 TOF bins", "4097 TOF bins", "0 mm",	   "-1 mm",	"nan mm",
			      "inf mm",	     "sigma 0",	      "sigma nan", "sigma inf", "1/512"};
	struct fixture *f = take_memory(sizeof(*f));
	struct projection_spec spec = {.model = PROJECTION_PATHS, .scan = &f->scan, .n_views = VIEWS, .grid = &f->grid};
	struct projection *a;
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct buf x, y;

	set_up(f, &setups[0], dev);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		for (int m = 0; m < 3; m++) {
			f->scan.tof = bad[i];
			spec.model = models[m];
			expect_refused(f, &spec, text[i]);
		}
	set_tof(f, 3, 20, 10);
	spec.sampling = 1;
	spec.model = PROJECTION_SAMPLED;
	expect_refused(f, &spec, "time of flight");
	spec.model = PROJECTION_PATHS;
	spec.sweeps = true;
	expect_refused(f, &spec, "time of flight");
	spec.sweeps = false;
	y = sinogram(f, 1, 1, 1);
	spec.mask = &y;
	spec.model = PROJECTION_EXACT;
	expect_refused(f, &spec, "mask");
	spec.mask = NULL;
	f->scan.kind = SCAN_DBT;
	f->scan.h[0] = f->scan.h[1] = 1;
	expect_refused(f, &spec, "only parallel rays");
	f->scan.kind = SCAN_PARALLEL;
	/* planes in the middle of slices are no stack */
	f->scan.n_u = 1;
	f->grid.n[2] = 1;
	f->grid.lo[2] = f->planes[0].z - 0.5 * f->grid.h[2];
	set_tof(f, 3, 20, 10);
	f->n_in = grid_size(&f->grid);
	a = create(f, PROJECTION_PATHS, 0);
	assert_false(a->stack);
	x = fixture_upload(f->dev, NULL, f->n_in);
	assert_int_equal(f->v->back_interpolated(a, &(struct buf){.dev = dev, .mem = y.mem, .n = f->n_out}, false, &x, NULL),
			 -ENOTSUP);
	assert_int_equal(f->v->row_sweep(a, 1, &(struct buf){.dev = dev, .mem = y.mem, .n = f->n_out}, &x, NULL), -ENOTSUP);
}
