/* SPDX-License-Identifier: Apache-2.0 */
/* Reconstructions of the public library are those of the sessions, to the bit; keys, cancelling, threads, fork. */
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>

#include "recon/core/scan.h"
#include "recon/dbt/dbt.h"
#include "recon/parallel/parallel.h"
#include "recon/pet/pet.h"
#include "recon/pet/pet_list.h"
#include "tests/recon/api/api_fixture.h"
#include "tests/recon/pet/michelogram_fixture.h"

#define FLOATS(mem, ...) TN_FLOATS(mem, __VA_ARGS__)

static struct tn_device *dev;
static struct device *plain; /* the same device for the sessions */

static int open_devices(void **state)
{
	WORKS(tn_device_open("cpu:2", &dev, &last));
	plain = fixture_device(FIXTURE_CPU, 2);
	return 0;
}

static int close_devices(void **state)
{
	tn_device_close(dev);
	return 0;
}

TESTS_SETUP(open_devices, close_devices);

static float *random_floats(size_t n, double from, double to, unsigned seed)
{
	float *x = take_memory(n * sizeof(*x));

	for (size_t i = 0; i < n; i++)
		x[i] = (float)(from + (to - from) * next_random(&seed));
	return x;
}

/* The volume of a reconstruction, in an array whose z is fastest: nothing may depend on the order. */
static float *volume_of(struct tn_recon *r, struct tn_grid *ret_grid)
{
	struct tn_recon_info i = {TN_SIZE(i)};
	float *z_fastest, *x;
	int64_t n[3], strides[3];

	WORKS(tn_recon_info(r, &i, &last));
	n[0] = i.grid.n[2], n[1] = i.grid.n[1], n[2] = i.grid.n[0];
	strides[0] = 1, strides[1] = n[0] * n[2], strides[2] = n[0];
	z_fastest = take_memory((size_t)(n[0] * n[1] * n[2]) * sizeof(*x));
	x = take_memory((size_t)(n[0] * n[1] * n[2]) * sizeof(*x));
	WORKS(tn_recon_read(r, &(struct tn_array){z_fastest, {TN_HOST, 0}, 3, {2, 32, 1}, n, strides, 0}, &last));
	for (int64_t k = 0; k < n[0]; k++)
		for (int64_t j = 0; j < n[1]; j++)
			for (int64_t h = 0; h < n[2]; h++)
				x[(k * n[1] + j) * n[2] + h] = z_fastest[k + j * strides[1] + h * strides[2]];
	*ret_grid = i.grid;
	return x;
}

static void assert_volume(const float *found, const float *expected, const struct tn_grid *g)
{
	size_t n = (size_t)g->n[0] * (size_t)g->n[1] * (size_t)g->n[2];
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += fabs((double)expected[i]);
	assert_true(sum > 0);
	assert_memory_equal(found, expected, n * sizeof(*found));
}

#define PET_TEXT "algorithm=osem iterations=2 subsets=4 matrix=20 projector=joseph psf=6 deterministic=true"
static const struct pet_protocol pet_protocol = {.algorithm = ALGORITHM_OSEM,
						 .iterations = 2,
						 .subsets = 4,
						 .matrix = 20,
						 .projector = PROJECTION_JOSEPH,
						 .psf = 6,
						 .tof_mashing = 1,
						 .prior_weight = 0.005,
						 .prior_gamma = 2,
						 .relaxation = 0.05,
						 .filter_cut = 0.8,
						 .deterministic = true};

TEST(pet)
{
	struct tn_pet p = small_pet(2, 9);
	struct tn_scan *s = pet_scan(2, 9);
	struct michelogram m = {.scanner = {p.rings, p.detectors, p.ring_spacing, p.radius, p.depth, p.bin},
				.n_radial = p.radial,
				.n_angles = p.angles,
				.angle_offset = p.first_angle,
				.tof = {p.tof.n, p.tof.width, p.tof.sigma}};
	struct tn_scan_info i = {TN_SIZE(i)};
	struct tn_report report = {TN_SIZE(report)};
	struct tn_recon *r = NULL;
	struct pet_session *session;
	struct pet_plan plan;
	struct tn_grid g;
	float *y, *f, *b, *found, *expected;
	double sum = 0;
	int planes, n;

	WORKS(tn_scan_info(s, &i, &last));
	planes = (int)i.shape[1];
	y = random_floats((size_t)(i.rays * 9), 0, 9, 1);
	b = random_floats((size_t)(i.rays * 9), 0, 1, 2);
	f = random_floats((size_t)i.rays, 0.1, 1, 3);
	WORKS(tn_recon_new(dev, s, PET_TEXT, 1 << TN_DATA | 1 << TN_FACTORS | 1 << TN_BACKGROUND, NULL, &r, &last));
	WORKS(tn_recon_put(r, TN_DATA, FLOATS(y, 9, planes, 20, 29), &last));
	WORKS(tn_recon_put(r, TN_FACTORS, FLOATS(f, planes, 20, 29), &last));
	WORKS(tn_recon_put(r, TN_BACKGROUND, FLOATS(b, 9, planes, 20, 29), &last));
	WORKS(tn_recon_run(r, NULL, NULL, &report, &last));
	found = volume_of(r, &g);
	for (int64_t k = 0; k < i.rays * 9; k++)
		sum += (double)y[k];
	assert_near(report.counts, sum, 1e-6 * sum);

	fixture_segments(&m, 2, p.max_difference);
	assert_int_equal(pet_plan(&pet_protocol, &m, PET_FACTORS_SHARED, true, plain, &plan, NULL), 0);
	assert_int_equal(pet_open(&pet_protocol, &plan, &m, PET_FACTORS_SHARED, true, plain, NULL, &session, NULL), 0);
	n = 9 * planes;
	assert_int_equal(pet_put(session, PET_DATA, 0, n, y, NULL), 0);
	assert_int_equal(pet_put(session, PET_BACKGROUND, 0, n, b, NULL), 0);
	assert_int_equal(pet_put(session, PET_FACTORS, 0, planes, f, NULL), 0);
	assert_int_equal(pet_run(session, NULL, &(struct pet_report){0}, NULL), 0);
	expected = take_memory((size_t)(g.n[0] * g.n[1] * g.n[2]) * sizeof(*expected));
	assert_int_equal(pet_read_slices(session, 0, g.n[2], expected, NULL), 0);
	assert_volume(found, expected, &g);
	pet_close(session);
	tn_recon_free(r);
}

/* A list with the sensitivity of the caller: that of the session, which adds the same lines itself, but for the order of its sums.
 */
struct events_of { /* a reader */
	const struct event *list;
	size_t n, at;
};

static int rewind_events(void *ctx, struct err *err)
{
	((struct events_of *)ctx)->at = 0;
	return 0;
}

static int read_events(void *ctx, struct event *ret, size_t most, size_t *ret_n, struct err *err)
{
	struct events_of *e = ctx;
	size_t n = e->n - e->at < most ? e->n - e->at : most;

	memcpy(ret, e->list + e->at, n * sizeof(*ret));
	e->at += n;
	*ret_n = n;
	return 0;
}

TEST(lists)
{
	enum { N = 8000, POINTS = 60 };
	static const char keys[] =
		"algorithm=osem iterations=2 subsets=2 matrix=16 voxel=8 slice_spacing=9 projector=joseph psf=6 "
		"deterministic=true";
	float points[3 * POINTS], add[N], ones[N];
	int32_t pairs[2 * N];
	struct event list[N];
	struct events_of events = {list, N, 0}, lors = {list, N, 0};
	struct pet_protocol p = pet_protocol;
	struct pet_list l = {.detectors = points,
			     .n_detectors = POINTS,
			     .events = {&events, rewind_events, read_events},
			     .n_events = N,
			     .with_background = true,
			     .lors = {&lors, rewind_events, read_events},
			     .n_lors = N,
			     .slice = 9};
	struct tn_lines from = {TN_SIZE(from), points, POINTS, pairs, N, NULL, add, 0, {0, 0, 0}};
	struct tn_model model = {TN_SIZE(model), .psf = 6, .deterministic = 1};
	struct tn_recon_info i = {TN_SIZE(i)};
	struct tn_scan *s = NULL, *all = NULL;
	struct tn_projector *a = NULL;
	struct tn_recon *r = NULL;
	struct pet_list_session *session;
	struct pet_plan plan;
	float *found, *expected, *sensitivity;
	double largest = 0, difference = 0;
	struct tn_grid g;
	unsigned seed = 3;
	struct err err = {0};
	size_t n;

	for (int k = 0; k < POINTS; k++) {
		points[3 * k] = (float)(100 * cos(2 * M_PI * (k % 20) / 20));
		points[3 * k + 1] = (float)(100 * sin(2 * M_PI * (k % 20) / 20));
		points[3 * k + 2] = (float)(20 * (k / 20));
	}
	for (int k = 0; k < N; k++) {
		pairs[2 * k] = (int32_t)(POINTS * next_random(&seed));
		pairs[2 * k + 1] = (int32_t)((pairs[2 * k] + 1 + (int32_t)((POINTS - 1) * next_random(&seed))) % POINTS);
		add[k] = 0.3f;
		ones[k] = 1;
		list[k] = (struct event){{pairs[2 * k], pairs[2 * k + 1]}, 0, add[k]};
	}
	WORKS(tn_scan_lines(&from, &s, &last));
	from.fov_radius = 98; /* of the reconstruction */
	WORKS(tn_scan_lines(&from, &all, &last));
	WORKS(tn_recon_new(dev, s, keys, 1 << TN_SENSITIVITY, NULL, &r, &last));
	WORKS(tn_recon_info(r, &i, &last));
	assert_int_equal(i.subsets, 2);
	n = (size_t)i.grid.n[0] * (size_t)i.grid.n[1] * (size_t)i.grid.n[2];
	sensitivity = take_memory(n * sizeof(*sensitivity));
	WORKS(tn_projector_new(dev, all, &i.grid, &model, &a, &last));
	WORKS(tn_adjoint(a, FLOATS(ones, N), FLOATS(sensitivity, i.grid.n[2], i.grid.n[1], i.grid.n[0]), 0, &last));
	for (int k = 0; k < 3; k++) { /* a value that is none, of the last voxel */
		float right = sensitivity[n - 1];

		sensitivity[n - 1] = (float[]){NAN, INFINITY, -1}[k];
		assert_error(tn_recon_put(r, TN_SENSITIVITY, FLOATS(sensitivity, i.grid.n[2], i.grid.n[1], i.grid.n[0]), &last),
			     (struct err *)&last, EINVAL, "sensitivity: a voxel");
		sensitivity[n - 1] = right;
		tn_recon_free(r);
		WORKS(tn_recon_new(dev, s, keys, 1 << TN_SENSITIVITY, NULL, &r, &last));
	}
	WORKS(tn_recon_put(r, TN_SENSITIVITY, FLOATS(sensitivity, i.grid.n[2], i.grid.n[1], i.grid.n[0]), &last));
	WORKS(tn_recon_run(r, NULL, NULL, NULL, &last));
	found = volume_of(r, &g);

	for (int k = 0; k < N; k++)
		list[k].add = 0.3f;
	p.matrix = 16, p.voxel = 8, p.slice = 9, p.subsets = 2;
	assert_int_equal(pet_list_plan(&p, &l, plain, &plan, &err), 0);
	assert_near(plan.fov_radius, 98, 1e-4);
	assert_int_equal(pet_list_open(&p, &plan, &l, plain, &session, &err), 0);
	lors.list = take_memory(N * sizeof(struct event));
	for (int k = 0; k < N; k++) {
		((struct event *)(uintptr_t)lors.list)[k] = list[k];
		((struct event *)(uintptr_t)lors.list)[k].add = 1;
	}
	assert_int_equal(pet_list_run(session, NULL, &(struct pet_report){0}, &err), 0);
	expected = take_memory(n * sizeof(*expected));
	assert_int_equal(pet_list_read_slices(session, 0, g.n[2], expected, NULL), 0);
	for (size_t k = 0; k < n; k++) {
		largest = fmax(largest, (double)expected[k]);
		difference = fmax(difference, fabs((double)expected[k] - (double)found[k]));
	}
	print_message("difference %.1e of the maximum\n", difference / largest);
	assert_true(largest > 0 && difference <= 1e-5 * largest);
	pet_list_close(session);
	tn_projector_free(a);
	tn_recon_free(r);
	tn_scan_free(s), tn_scan_free(all);
}

TEST(views)
{
	enum { N = 7, N_U = 30, N_V = 44, BINS = N_U * N_V };
	static const char keys[] =
		"algorithm=osem iterations=2 voxel=2 slice_spacing=3 support=12 thickness=30 deterministic=true";
	struct dbt_protocol p = {.algorithm = ALGORITHM_OSEM,
				 .iterations = 2,
				 .voxel = 2,
				 .slice_spacing = 3,
				 .projector = PROJECTION_SLICES,
				 .breast_mask = true,
				 .edge_taper = 5,
				 .filter = DBT_FILTER_HANN,
				 .filter_cut = 1,
				 .prior = PRIOR_RELATIVE,
				 .prior_gamma = 2,
				 .relaxation = 0.5,
				 .deterministic = true};
	double angles[N];
	struct dbt_geometry geometry = {
		.n_u = N_U, .n_v = N_V, .pitch = 2, .axis_height = 40, .source_axis = 600, .n_views = N, .angle = angles};
	float *y = random_floats(N * BINS, 0.1, 1, 1), *valid = random_floats(N * BINS, 1, 1, 1), *found, *expected;
	struct tn_scan *s = view_scan(false);
	struct tn_recon *r = NULL;
	struct scan *scan = NULL;
	struct dbt_session *session;
	struct dbt_plan plan;
	struct tn_grid g;

	for (int i = 0; i < N; i++) {
		angles[i] = (i - 3) * 6.5;
		for (int k = 0; k < 100; k++)
			valid[i * BINS + k] = k < 50 ? -1 : 0;
	}
	WORKS(tn_recon_new(dev, s, keys, 1 << TN_DATA | 1 << TN_VALID, NULL, &r, &last));
	WORKS(tn_recon_put(r, TN_VALID, FLOATS(valid, N, N_V, N_U), &last));
	WORKS(tn_recon_put(r, TN_DATA, FLOATS(y, N, N_V, N_U), &last));
	WORKS(tn_recon_run(r, NULL, NULL, NULL, &last));
	found = volume_of(r, &g);

	scan = fixture_dbt_scan(&geometry);
	assert_int_equal(dbt_plan(&p, scan, 12, 30, plain, &plan, NULL), 0);
	assert_int_equal(dbt_open(&p, &plan, scan, plain, &session, NULL), 0);
	for (int i = 0; i < N; i++) {
		float *line, *is_valid;

		assert_int_equal(dbt_view_begin(session, i, &line, &is_valid, NULL), 0);
		memcpy(line, y + i * BINS, BINS * sizeof(*line));
		memcpy(is_valid, valid + i * BINS, BINS * sizeof(*line));
		assert_int_equal(dbt_view_end(session, i, NULL), 0);
	}
	assert_int_equal(dbt_run(session, NULL, &(struct dbt_report){0}, NULL), 0);
	expected = take_memory((size_t)(g.n[0] * g.n[1] * g.n[2]) * sizeof(*expected));
	assert_int_equal(dbt_read_slices(session, 0, g.n[2], expected, NULL), 0);
	assert_volume(found, expected, &g);
	dbt_close(session);
	tn_recon_free(r);
}

TEST(beams)
{
	static const struct {
		const char *keys;
		struct parallel_protocol p;
	} rows[] = {
		{"filter=hann filter_cut=0.7",
		 {.algorithm = ALGORITHM_FBP,
		  .filter = PARALLEL_HANN,
		  .filter_cut = 0.7,
		  .route = PARALLEL_FOURIER,
		  .iterations = 20,
		  .subsets = 1,
		  .relaxation = 0.5,
		  .projector = PROJECTION_PATHS}},
		{"algorithm=sart,iterations=3,subsets=4,projector=joseph,deterministic=true",
		 {.algorithm = ALGORITHM_SART,
		  .filter = PARALLEL_SHEPP_LOGAN,
		  .filter_cut = 1,
		  .route = PARALLEL_FOURIER,
		  .iterations = 3,
		  .subsets = 4,
		  .relaxation = 0.5,
		  .projector = PROJECTION_JOSEPH,
		  .deterministic = true}},
	};
	const struct parallel_scan scan = {5, 24, 41, 3, 0.7, 4, 0, 180, NULL};
	float *y = random_floats(5 * 24 * 41, 0, 1, 1);

	for (size_t k = 0; k < 2 && (TOMONODE_FFT || k == 1); k++) {
		struct tn_report report = {TN_SIZE(report)};
		struct parallel_report expected_report = {0};
		struct tn_scan *s = beam_scan(5);
		struct tn_recon *r = NULL;
		struct parallel_plan plan;
		struct tn_grid g;
		float *found, *expected;

		WORKS(tn_recon_new(dev, s, rows[k].keys, 1 << TN_DATA, NULL, &r, &last));
		WORKS(tn_recon_put(r, TN_DATA, FLOATS(y, 5, 24, 41), &last));
		WORKS(tn_recon_run(r, NULL, NULL, &report, &last));
		found = volume_of(r, &g);
		assert_int_equal(parallel_plan(&rows[k].p, &scan, plain, &plan, NULL), 0);
		expected = take_memory((size_t)(g.n[0] * g.n[1] * g.n[2]) * sizeof(*expected));
		assert_int_equal(parallel_reconstruct(&rows[k].p, &plan, &scan, plain, y, NULL, expected, &expected_report, NULL),
				 0);
		assert_volume(found, expected, &g);
		assert_near(report.residual, expected_report.residual, 0);
		tn_recon_free(r);
	}
}

/* ---- keys ---- */

static void count_key(void *ctx, const char *key, const char *fallback, const char *allowed, const char *meaning)
{
	assert_true(key[0] && fallback[0] && allowed[0] && meaning[0]);
	++*(int *)ctx;
}

TEST(keys)
{
	for (int kind = 0; kind < 6; kind++) {
		int n = 0, all = tn_keys(kind, count_key, &n);

		assert_int_equal(all, n);
		assert_true(kind == 0 || kind == 5 ? n == 0 : n > 10);
	}
}

/* The grid of the caller in place of keys, with the data of one role only. */
TEST(grid)
{
	struct tn_grid g = {{18, 18, 9}, {10, 10, 3}, {-90, -90, -13.5}}, found;
	struct tn_scan *s = pet_scan(3, 0);
	struct tn_recon *r = NULL;
	struct tn_recon_info i = {TN_SIZE(i)};

	WORKS(tn_recon_new(dev, s, NULL, 1 << TN_DATA, &g, &r, &last));
	WORKS(tn_recon_info(r, &i, &last));
	found = i.grid;
	assert_memory_equal(found.n, g.n, sizeof(g.n));
	assert_memory_equal(found.h, g.h, sizeof(g.h) + sizeof(g.lo));
	tn_recon_free(r);
	g.n[2] = 8;
	assert_error(tn_recon_new(dev, s, NULL, 1 << TN_DATA, &g, &r, &last), (struct err *)&last, EINVAL, "along z");
}

/* ---- cancel, threads, fork ---- */

static void cancel_it(void *ctx, const char *stage, double fraction)
{
	struct tn_recon *r = ctx;
	struct tn_recon_info i = {TN_SIZE(i)};

	assert_int_equal(tn_recon_read(r, NULL, NULL), -EDEADLK); /* the device is in use by this thread */
	assert_int_equal(tn_recon_info(r, &i, NULL), 0);
	tn_recon_cancel(r);
}

TEST(cancelling)
{
	struct tn_scan *s = pet_scan(3, 0);
	struct tn_scan_info i = {TN_SIZE(i)};
	struct tn_recon *r = NULL;
	float *y;

	WORKS(tn_scan_info(s, &i, &last));
	y = random_floats((size_t)i.rays, 0, 9, 1);
	WORKS(tn_recon_new(dev, s, PET_TEXT, 1 << TN_DATA, NULL, &r, &last));
	WORKS(tn_recon_put(r, TN_DATA, FLOATS(y, i.shape[0], 20, 29), &last));
	assert_int_equal(tn_recon_run(r, cancel_it, r, NULL, &last), -ECANCELED);
	assert_int_equal(tn_recon_run(r, NULL, NULL, NULL, &last), -EINVAL);
	tn_recon_free(r);
}

struct job {
	struct tn_device *device;
	struct tn_scan *scan;
	struct field *x, *y;
	int result;
	sem_t done;
	pthread_t thread;
};

static void *project(void *ctx)
{
	struct job *j = ctx;
	struct tn_projector *a = NULL;
	struct tn_err err = {0};

	j->result = tn_projector_new(j->device, j->scan, &small_grid, NULL, &a, &err);
	for (int i = 0; i < 20 && j->result == 0; i++)
		j->result = tn_forward(a, &j->x->a, &j->y->a, 0, &err);
	tn_projector_free(a);
	sem_post(&j->done);
	return NULL;
}

static void make_job(struct job *j, struct tn_device *d, struct tn_scan *s)
{
	struct tn_layout x = {3, {9, 21, 24}, {0}, 0}, y = {0};
	struct tn_scan_info i = {TN_SIZE(i)};

	WORKS(tn_scan_info(s, &i, &last));
	y.ndim = i.ndim;
	memcpy(y.shape, i.shape, sizeof(y.shape));
	*j = (struct job){d, s, field_new(&x, false), field_new(&y, false), .result = 0};
	assert_int_equal(sem_init(&j->done, 0, 0), 0);
	field_fill(j->x, 1);
}

static void end_job(struct job *j)
{
	sem_destroy(&j->done);
}

/* One device in four threads, another in a fifth. */
TEST(threads)
{
	enum { JOBS = 5 };
	struct tn_scan *s = pet_scan(3, 9);
	struct tn_device *other = NULL;
	struct job jobs[JOBS];

	WORKS(tn_device_open("cpu:1", &other, &last));
	for (int i = 0; i < JOBS; i++) {
		make_job(&jobs[i], i == JOBS - 1 ? other : dev, s);
		assert_int_equal(pthread_create(&jobs[i].thread, NULL, project, &jobs[i]), 0);
	}
	for (int i = 0; i < JOBS; i++) {
		pthread_join(jobs[i].thread, NULL);
		assert_int_equal(jobs[i].result, 0);
		assert_same(jobs[0].y, jobs[i].y);
	}
	for (int i = 0; i < JOBS; i++)
		end_job(&jobs[i]);
	tn_device_close(other);
}

/* A reconstruction in a thread. */
struct run {
	struct tn_device *device;
	struct tn_scan *scan;
	const char *keys;
	float *y;
	float *x;
	struct tn_recon *r;
	int result;
	sem_t works; /* it has said that it goes on, or it has ended */
	pthread_t thread;
};

static void note_work(void *ctx, const char *stage, double fraction)
{
	struct run *n = ctx;

	if (stage && fraction > 0)
		sem_post(&n->works);
}

static void *reconstruct(void *ctx)
{
	struct run *n = ctx;

	n->result = tn_recon_run(n->r, note_work, n, NULL, NULL);
	if (n->result == 0)
		n->result = tn_recon_read(n->r, FLOATS(n->x, 9, 20, 20), NULL);
	sem_post(&n->works);
	return NULL;
}

static void start_run(struct run *n)
{
	assert_int_equal(sem_init(&n->works, 0, 0), 0);
	WORKS(tn_recon_new(n->device, n->scan, n->keys, 1 << TN_DATA, NULL, &n->r, &last));
	WORKS(tn_recon_put(n->r, TN_DATA, FLOATS(n->y, 19, 20, 29), &last));
	assert_int_equal(pthread_create(&n->thread, NULL, reconstruct, n), 0);
}

/* Two devices reconstruct at the same time, with the same bits; another thread ends one of them, and not the other. */
TEST(runs_in_threads)
{
	static const char endless[] = "algorithm=mlem iterations=1000 matrix=20 projector=joseph";
	struct tn_scan *s = pet_scan(3, 0);
	struct tn_device *other = NULL;
	struct tn_scan_info i = {TN_SIZE(i)};
	float *y, x[2][9 * 20 * 20];

	WORKS(tn_scan_info(s, &i, &last));
	assert_int_equal(i.rays, 19 * 20 * 29);
	y = random_floats((size_t)i.rays, 0, 9, 1);
	WORKS(tn_device_open("cpu:1", &other, &last));
	for (int round = 0; round < 2; round++) {
		struct run runs[2] = {{dev, s, PET_TEXT, y, x[0]}, {other, s, round ? endless : PET_TEXT, y, x[1]}};

		start_run(&runs[1]);
		start_run(&runs[0]);
		if (round == 1) {
			sem_wait(&runs[1].works);
			tn_recon_cancel(runs[1].r);
		}
		for (int k = 0; k < 2; k++) {
			pthread_join(runs[k].thread, NULL);
			sem_destroy(&runs[k].works);
			tn_recon_free(runs[k].r);
		}
		assert_int_equal(runs[0].result, 0);
		assert_int_equal(runs[1].result, round == 1 ? -ECANCELED : 0);
		assert_true(x[0][4 * 400 + 10 * 20 + 10] > 0);
		if (round == 0)
			assert_memory_equal(x[0], x[1], sizeof(x[0]));
	}
	tn_device_close(other);
}

#if defined(__has_feature) /* clang */
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define FORKS false
#else
#define FORKS true
#endif

/* In a child, the parent's device is refused, its objects may be freed, and a device of its own computes in a thread of its own. */
TEST(forked)
{
	struct tn_scan *s = pet_scan(3, 0);
	struct tn_projector *a = NULL;
	struct job j, k;
	int status;
	pid_t pid;

	if (!FORKS)
		skip_because("the thread sanitizer has no threads in a child of a process with threads");
	make_job(&j, dev, s);
	project(&j);
	assert_int_equal(j.result, 0);
	WORKS(tn_projector_new(dev, s, &small_grid, NULL, &a, &last));
	make_job(&k, NULL, s);
	pid = fork();
	if (pid == 0) {
		struct tn_device *own = NULL;

		if (tn_forward(a, &j.x->a, &j.y->a, 0, &last) != -EPERM || !strstr(last.text, "fork"))
			_exit(1);
		tn_projector_free(a);
		tn_device_close(dev);
		if (tn_device_open("cpu:2", &own, NULL) < 0)
			_exit(2);
		k.device = own;
		pthread_create(&k.thread, NULL, project, &k);
		sem_wait(&k.done); /* LeakSanitizer's pthread_join() never returns in a child */
		_exit(k.result == 0 && !memcmp(j.y->mem, k.y->mem, (size_t)j.y->layout.floats * sizeof(float)) ? 0 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	tn_projector_free(a);
	end_job(&j), end_job(&k);
}
