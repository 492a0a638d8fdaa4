/* SPDX-License-Identifier: Apache-2.0 */
/* The fit of scatter to the data, and the estimation from data that contain simulated scatter. */
#include "recon/core/scan.h"
#include "recon/phantom/poisson.h"
#include "recon/scatter/scatter_estimate.h"
#include "tests/recon/pet/michelogram_fixture.h"
#include "tests/test.h"

#define RADIAL 73
#define ANGLES 16
#define PLANE ((size_t)(RADIAL * ANGLES))

/* Few detectors, in tier 1 also few rings: the data are simulated with the same ones. */
static struct single_scatter_conf window(void)
{
	return (struct single_scatter_conf){.energy_low = 435,
					    .energy_high = 650,
					    .energy_resolution = 12,
					    .detectors = 32,
					    .ring_distance = test_tier() == 2 ? 0 : 40,
					    .seed = 1};
}

static struct michelogram scanner(struct scan_tof tof)
{
	struct michelogram m = {.scanner = {.rings = 12, .detectors = 160, .ring_spacing = 12, .radius = 330, .bin = 12.96},
				.n_radial = RADIAL,
				.n_angles = ANGLES,
				.tof = tof};

	fixture_segments(&m, 5, 7);
	return m;
}

/* ---- the fit ---- */

struct arrays {
	struct michelogram m;
	size_t planes, bins;
	float *prompts, *background, *norm, *attenuation, *scatter, *scale;
	struct scatter_data data;
};

/* An object in the radial bins 15 .. 25 of all planes, prompts = 20 in it, and outside norm * scatter * 2 + background. */
static struct arrays arrays(void)
{
	struct arrays a = {.m = scanner((struct scan_tof){0})};

	a.planes = michelogram_planes(&a.m);
	a.bins = a.planes * PLANE;
	a.prompts = take_memory(a.bins * sizeof(float));
	a.background = fixture_floats(a.bins, 1, 1, 2);
	a.norm = fixture_floats(a.bins, 2, 0.5f, 2);
	a.attenuation = take_memory(a.bins * sizeof(float));
	a.scatter = fixture_floats(a.bins, 3, 1, 3);
	a.scale = take_memory(a.planes * sizeof(float));
	for (size_t i = 0; i < a.bins; i++) {
		int t = (int)(i % RADIAL);
		bool inside = t >= 15 && t <= 25;

		a.attenuation[i] = inside ? 0.9f : 0.95f; /* ACF 1.11 and 1.05 */
		a.prompts[i] = a.background[i] + 2 * a.norm[i] * a.scatter[i] + (t >= 11 && t <= 29 ? 1000.0f : 0);
	}
	a.data = (struct scatter_data){
		.prompts = a.prompts, .background = a.background, .norm = a.norm, .attenuation = a.attenuation};
	return a;
}

/* Bins 11 .. 29 are the object and its margin of 4: what is in them does not count; the scale of 2 is found exactly. */
TEST(tails)
{
	struct arrays a = arrays();
	struct scatter_scale_report report;

	for (size_t i = 0; i < a.bins; i += 97) /* dead bins do not count */
		if (a.norm[i] > 0) {
			a.norm[i] = 0;
			a.prompts[i] = 1e6f;
		}
	assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 2, a.scale, &report, NULL), 0);
	for (size_t p = 0; p < a.planes; p++)
		assert_near((double)a.scale[p], 2, 1e-5);
	assert_near(report.mean, 2, 1e-5);
	assert_int_equal(report.planes, (int)a.planes);
	assert_int_equal(report.at_least + report.at_most, 0);
	assert_int_equal(report.without, 0);
	a.prompts[10 + 5 * PLANE] += 1000; /* the last bin outside: it does count */
	assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 2, a.scale, &report, NULL), 0);
	assert_true((double)a.scale[5] > 2.01);
}

/* The scales and the planes that are counted are those of one thread. */
TEST(threads)
{
	struct arrays a = arrays();
	struct scatter_scale_report one = {0}, many = {0};
	float *scale = take_memory(a.planes * sizeof(float));

	for (size_t i = PLANE; i < 3 * PLANE; i++)
		a.attenuation[i] = 0.1f; /* no bins outside */
	assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 1, scale, &one, NULL), 0);
	assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 5, a.scale, &many, NULL), 0);
	assert_memory_equal(a.scale, scale, a.planes * sizeof(*scale));
	assert_int_equal(one.without, 2);
	assert_int_equal(many.without, one.without);
}

/* A table and coils attenuate all rays: what is outside is beside the body alone. */
TEST(beside_the_body)
{
	struct arrays a = arrays();
	struct scatter_scale_report report;
	float *all = take_memory(a.bins * sizeof(float));

	for (size_t i = 0; i < a.bins; i++)
		all[i] = 0.8f * a.attenuation[i];
	a.data.body = a.attenuation;
	a.data.attenuation = all;
	assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 2, a.scale, &report, NULL), 0);
	for (size_t p = 0; p < a.planes; p++)
		assert_near((double)a.scale[p], 2, 1e-5);
	a.data.body = NULL;
	assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 2, a.scale, &report, NULL), 0);
	assert_int_equal(report.without, (int)a.planes);
}

/* Multiply the scatter of a plane's data; the object has these counts. */
static void set_plane(struct arrays *a, size_t plane, float factor, float object)
{
	for (size_t i = plane * PLANE; i < (plane + 1) * PLANE; i++) {
		int t = (int)(i % RADIAL);

		a->prompts[i] = a->background[i] + factor * a->norm[i] * a->scatter[i] + (t >= 11 && t <= 29 ? object : 0);
	}
}

/* Limits are counted; the sums are over 7 planes of the segment; planes without bins outside have the scale of their neighbours.
 */
TEST(limits)
{
	struct arrays a = arrays();
	struct scatter_scale_report report;
	size_t first = (size_t)a.m.segments[0].n_planes;

	assert_int_equal(first, 23);
	set_plane(&a, 3, 1e4f, 1000); /* far too much: in the sums of planes 0 to 6 */
	for (size_t p = 12; p < 23; p++)
		set_plane(&a, p, 0, 1000); /* nothing but background: the sums of planes 15 to 22 */
	assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 2, a.scale, &report, NULL), 0);
	assert_int_equal(report.at_most, 7);
	assert_int_equal(report.at_least, 8);
	assert_near((double)a.scale[0], 100, 1e-4);
	assert_near((double)a.scale[6], 100, 1e-4);
	assert_near((double)a.scale[8], 2, 1e-4);
	assert_true((double)a.scale[9] < 1.9); /* its sums end with plane 12 */
	assert_near((double)a.scale[15], 0.05, 1e-6);
	assert_near((double)a.scale[first], 2, 1e-4); /* another segment */
	a = arrays();
	for (size_t i = 0; i < a.bins; i++)
		a.attenuation[i] = i / PLANE == 7 ? 0.1f : a.attenuation[i];
	assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 2, a.scale, &report, NULL), 0);
	assert_int_equal(report.without, 1);
	assert_near((double)a.scale[7], 2, 1e-4);
	for (size_t i = 0; i < a.bins; i++)
		a.attenuation[i] = 0.1f;
	assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 2, a.scale, &report, NULL), 0);
	assert_int_equal(report.without, (int)a.planes);
	assert_near((double)a.scale[0], 1, 0);
}

/* Without attenuation beyond z = 31 mm, whole rows are outside and have the counts of the object. The planes whose lines end
 * beyond have the scale of the others; of a segment without any other, that of all planes. */
TEST(beyond)
{
	struct arrays a = arrays();
	struct scatter_scale_report report;
	const double covered[2] = {-66, 31};
	int n = 0, at = 0;

	for (int s = 0; s < a.m.n_segments; s++)
		for (int p = 0; p < a.m.segments[s].n_planes; p++, at++) {
			double z, rise;

			michelogram_place(&a.m, s, p, &z, &rise);
			n += z + fabs(rise) > covered[1] || z - fabs(rise) < covered[0];
			for (size_t i = 0; z + fabs(rise) > covered[1] && i < PLANE; i++)
				a.attenuation[(size_t)at * PLANE + i] = 1;
		}
	assert_true(n > 5 && n < at);
	assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 2, a.scale, &report, NULL), 0);
	assert_true((double)a.scale[22] > SCATTER_SCALE_DOUBTFUL);
	assert_true(report.doubtful >= n);
	a.data.covered = covered;
	assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 2, a.scale, &report, NULL), 0);
	for (size_t p = 0; p < a.planes; p++)
		assert_near((double)a.scale[p], 2, 1e-4);
	assert_int_equal(report.beyond, n);
	assert_int_equal(report.without, n);
	assert_int_equal(report.doubtful, 0);
}

/* The object has fewer counts than the tails let expect: the scatter of neighbouring planes is no more than all they have, that
 * of all planes no more than its limit, and none where there is less than the background. */
TEST(counts)
{
	struct arrays a = arrays();
	struct scatter_scale_report report;
	double scatter = 0, net = 0;

	for (size_t p = 0; p < 11; p++)
		set_plane(&a, p, 2, -10); /* the tails alone have more */
	assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 2, a.scale, &report, NULL), 0);
	assert_in_range(report.at_counts, 8, 14);
	assert_in_range((size_t)(1000 * (double)a.scale[4]), 1, 1990);
	assert_near((double)a.scale[16], 2, 1e-4);
	assert_near(report.fraction, 0.0215, 1e-4);
	for (size_t p = 0; p < a.planes; p++)
		set_plane(&a, p, 2, 3); /* 0.87 of the counts are scatter */
	assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 2, a.scale, &report, NULL), 0);
	assert_int_equal(report.at_counts, (int)a.planes);
	assert_near(report.fraction, SCATTER_FRACTION_MOST, 1e-6);
	for (size_t i = 0; i < a.bins; i++) {
		scatter += (double)(a.norm[i] * a.scale[i / PLANE] * a.scatter[i]);
		net += (double)(a.prompts[i] - a.background[i]);
	}
	assert_near(scatter / net, SCATTER_FRACTION_MOST, 1e-4);
	for (size_t i = 0; i < a.bins; i++)
		a.prompts[i] = 0.9f * a.background[i];
	assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 2, a.scale, &report, NULL), 0);
	assert_true(report.most == 0 && report.least == 0 && report.mean == 0 && report.fraction == 0);
	assert_int_equal(report.at_counts, (int)a.planes);
	assert_int_equal(report.at_least, 0); /* all scales are below */
	a = arrays();
	for (size_t p = 0; p < 11; p++) { /* less than the background, where there is hardly any scatter: not worth a word */
		for (size_t i = p * PLANE; i < (p + 1) * PLANE; i++)
			a.scatter[i] *= 1e-3f;
		set_plane(&a, p, 2, -10);
	}
	assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 2, a.scale, &report, NULL), 0);
	assert_near((double)a.scale[4], 0, 0);
	assert_int_equal(report.at_counts, 0);
}

/* Few counts: the tails of single planes are 8 and -4 times the simulation. The scales are near 2, not the mean of limited ones.
 */
TEST(few_counts)
{
	struct arrays a = arrays();
	struct scatter_scale_report report;
	double sum = 0;

	for (size_t p = 0; p < a.planes; p++)
		set_plane(&a, p, p % 2 ? 8 : -4, 1000);
	assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 2, a.scale, &report, NULL), 0);
	for (size_t p = 3; p < 19; p++)
		sum += (double)a.scale[p] / 16;
	assert_near(sum, 2, 0.1);
	assert_int_equal(report.at_least + report.at_most, 0);
}

#define EMPTY 5 /* planes at each end that the object does not reach */

/* Valid data of an object that is shorter than the axial field, in Poisson counts: the simulation has the true shape; the scatter
 * is `scale` times as much, from plane `first` to `last` times `high`. counts: prompts of a bin in the middle of the object. */
struct short_conf {
	double counts, scale, high;
	int first, last;
};

static struct arrays short_object(const struct short_conf *conf, uint32_t seed)
{
	const double counts = conf->counts;
	struct arrays a = arrays();

	a.m.scanner.rings = 24;
	fixture_segments(&a.m, 3, 1);
	a.planes = (size_t)a.m.segments[0].n_planes;
	assert_int_equal(a.planes, 47);
	assert_true(a.planes <= michelogram_planes(&a.m) && a.planes * PLANE <= a.bins);
	a.m.n_segments = 1;
	a.bins = a.planes * PLANE;
	for (size_t i = 0; i < a.bins; i++) {
		int p = (int)(i / PLANE), t = (int)(i % RADIAL), end = p < 23 ? p : 46 - p;
		bool empty = end < EMPTY, object = !empty && t >= 15 && t <= 25;
		double shape = exp(-0.5 * pow((t - 20) / 12.0, 2)) * (empty ? 0.1 + 0.1 * end : 1);
		double scale = conf->high > 0 && p >= conf->first && p <= conf->last ? conf->high : conf->scale;

		a.attenuation[i] = object ? 0.2f : 1;
		a.background[i] = (float)(0.3 * counts);
		a.scatter[i] = (float)(0.1 * counts * shape);
		a.prompts[i] = (float)poisson_draw((double)a.background[i] + scale * (double)(a.norm[i] * a.scatter[i]) +
							   (object ? counts : 0),
						   poisson_stream(seed, i));
	}
	return a;
}

/* Noise is no reason to say that a limit was reached, or that a scale is doubtful: not in one of 100 acquisitions, be it of many
 * or few counts. Of few counts, there are scales above the doubtful one. */
TEST(short_objects)
{
	const double counts[] = {100, 1, 0.01};

	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		const struct short_conf conf = {.counts = counts[c], .scale = 2};
		uint32_t seeds = test_tier() == 2 ? 100 : 30, high = 0;

		for (uint32_t seed = 0; seed < seeds; seed++) {
			struct arrays a = short_object(&conf, seed);
			struct scatter_scale_report r;

			assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 2, a.scale, &r, NULL), 0);
			assert_int_equal(r.planes, 47);
			assert_int_equal(r.at_least + r.at_most + r.at_counts, 0);
			assert_int_equal(r.doubtful, 0);
			assert_true(r.doubtful_most == 0 && !r.doubtful_fraction);
			high += r.most > SCATTER_SCALE_DOUBTFUL;
		}
		assert_true(counts[c] < 1 ? high > 0.9 * seeds : high < 0.3 * seeds);
	}
}

/* Scales that are really too high are doubtful: of all planes, also where the counts of single planes prove nothing, and of a
 * part of them, which are named alone. So is a large fraction. */
TEST(doubtful)
{
	static const struct {
		struct short_conf conf;
		int least, most; /* planes */
		bool fraction;
	} cases[] = {
		{{.counts = 100, .scale = 4}, 47, 47, false},
		{{.counts = 1, .scale = 4}, 40, 47, false},
		{{.counts = 0.2, .scale = 5}, 25, 47, false},
		{{.counts = 1, .scale = 2, .high = 6, .first = 20, .last = 30}, 9, 15, false},
		{{.counts = 100, .scale = 8}, 47, 47, true},
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
		for (uint32_t seed = 0; seed < (test_tier() == 2 ? 30 : 10); seed++) {
			struct arrays a = short_object(&cases[c].conf, seed);
			struct scatter_scale_report r;

			assert_int_equal(scatter_scale_fit(&a.m, &a.data, a.scatter, 2, a.scale, &r, NULL), 0);
			assert_in_range(r.doubtful, cases[c].least, cases[c].most);
			assert_true(r.doubtful_most > SCATTER_SCALE_DOUBTFUL && r.doubtful_most <= r.most);
			assert_true(r.doubtful_fraction == cases[c].fraction);
		}
}

/* ---- the estimation ---- */

/* 6 mm voxels: a cylinder of water with a hot rod, activity and mu. */
static const struct grid fine = {{60, 60, 24}, {6, 6, 6}, {-180, -180, -72}, true};

static void body(float *activity, float *mu)
{
	for (int k = 0; k < fine.n[2]; k++)
		for (int j = 0; j < fine.n[1]; j++)
			for (int i = 0; i < fine.n[0]; i++) {
				double x = fine.lo[0] + (i + 0.5) * fine.h[0], y = fine.lo[1] + (j + 0.5) * fine.h[1];
				size_t at = (size_t)i * grid_step(&fine, 0) + (size_t)j * grid_step(&fine, 1) + (size_t)k;
				bool inside = x * x + y * y < 110 * 110;

				activity[at] = inside ? (hypot(x - 50, y) < 25 ? 4 : 1) : 0;
				mu[at] = inside ? 0.0096f : 0;
			}
}

/* y = A x of a volume, in the order of the michelogram. */
static void project(const struct michelogram *m, const float *x, struct device *dev, float *ret)
{
	TEST_BLOCK;
	size_t n = grid_size(&fine), size, planes = michelogram_planes(m), tof = m->tof.n > 0 ? (size_t)m->tof.n : 1;
	int *plane;
	struct scan *scan = fixture_michelogram_scan(m, 250, &plane);
	struct buf bx, by;
	struct linop *op;
	float *y;

	size = scan_view_size(scan) * (size_t)scan->n_views;
	bx = fixture_upload(dev, x, n);
	by = fixture_upload(dev, NULL, size);
	op = fixture_projector(
		dev, &(struct projection_spec){.model = PROJECTION_PATHS, .scan = scan, .n_views = scan->n_views, .grid = &fine});
	assert_int_equal(op->apply(op, &bx, &by, NULL), 0);
	y = fixture_download(&by);
	/* [view][radial][TOF bin][plane] */
	for (size_t i = 0; i < size; i++) {
		size_t u = i % planes, k = i / planes % tof, t = i / planes / tof % RADIAL, v = i / planes / tof / RADIAL;

		ret[((k * planes + (size_t)plane[u]) * ANGLES + v) * RADIAL + t] = y[i];
	}
}

/* An estimate that was stored as bytes has the same scales and planes to the bit; bytes of another one are refused. */
static void kept_is_the_same(const struct michelogram *m, const struct scatter_estimate_conf *conf, struct device *dev,
			     const struct scatter_estimate *e, const struct scatter_estimate_report *report, const float *planes)
{
	size_t n, planes_n = michelogram_planes(m);
	struct scatter_estimate_report found;
	struct scatter_estimate_plan plan;
	struct scatter_estimate again;
	float *values = take_memory(michelogram_size(m) * sizeof(*values));
	struct err err = {0};
	void *bytes;

	assert_int_equal(scatter_estimate_pack(m, e, report, &bytes, &n, NULL), 0);
	test_later(free, bytes);
	assert_int_equal(n % sizeof(float), 0);
	assert_int_equal(scatter_estimate_plan(m, conf, dev, &plan, NULL), 0);
	assert_int_equal(n, plan.bytes_packed);
	assert_int_equal(scatter_estimate_unpack(m, conf, dev, bytes, n, &again, &found, NULL), 0);
	assert_memory_equal(again.scale, e->scale, planes_n * sizeof(float));
	assert_int_equal(single_scatter_planes(again.simulated, 0, (int)michelogram_data_planes(m), 1, values, NULL), 0);
	assert_memory_equal(values, planes, michelogram_size(m) * sizeof(float));
	assert_memory_equal(&found.scale, &report->scale, sizeof(found.scale));
	assert_true(found.outside == report->outside && found.seconds_image == 0 && found.simulation.points > 0);
	scatter_estimate_clear(&again);
	assert_int_equal(scatter_estimate_unpack(m, conf, dev, bytes, n - sizeof(float), &again, &found, &err), -EINVAL);
}

/* Data without noise, with norm and randoms, whose scatter is the simulation of the true image. */
struct acquired {
	struct michelogram plain; /* without TOF bins */
	size_t bins;
	float *activity, *mu, *prompts, *attenuation, *background, *norm, *truth;
	struct scatter_data data;
};

static struct acquired acquire(struct device *dev)
{
	struct acquired a = {.plain = scanner((struct scan_tof){0})};
	const struct single_scatter_conf conf = window();
	struct single_scatter_report report;
	struct single_scatter *s;

	a.bins = michelogram_size(&a.plain);
	a.activity = take_zeros(grid_size(&fine), sizeof(float));
	a.mu = take_zeros(grid_size(&fine), sizeof(float));
	a.prompts = take_memory(a.bins * sizeof(float));
	a.attenuation = take_memory(a.bins * sizeof(float));
	a.background = fixture_floats(a.bins, 5, 5, 6);
	a.norm = fixture_floats(a.bins, 6, 0.6f, 1.4f);
	a.truth = take_memory(a.bins * sizeof(float));
	body(a.activity, a.mu);
	project(&a.plain, a.mu, dev, a.attenuation);
	project(&a.plain, a.activity, dev, a.prompts);
	assert_int_equal(single_scatter_open(&a.plain, &conf, dev, &s, NULL), 0);
	assert_int_equal(single_scatter_run(s, &fine, a.activity, a.mu, NULL, &report, NULL), 0);
	assert_int_equal(single_scatter_planes(s, 0, (int)michelogram_planes(&a.plain), 1, a.truth, NULL), 0);
	single_scatter_close(s);
	for (size_t i = 0; i < a.bins; i++) {
		a.attenuation[i] = expf(-a.attenuation[i]);
		a.truth[i] *= 1.3f * a.norm[i];
		a.prompts[i] = a.norm[i] * a.attenuation[i] * a.prompts[i] + a.truth[i] + a.background[i];
	}
	a.data = (struct scatter_data){
		.prompts = a.prompts, .background = a.background, .norm = a.norm, .attenuation = a.attenuation};
	return a;
}

/* The estimate finds the scatter, within the errors of the coarse image; more closely with more iterations. */
TEST(closed_loop)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct acquired a = acquire(dev);

	for (int tof = 0; tof < 2; tof++) {
		struct michelogram m = scanner(tof ? (struct scan_tof){17, 45, 25} : (struct scan_tof){0});
		size_t bins = a.bins;
		float *found = take_memory(michelogram_size(&m) * sizeof(float));
		struct scatter_estimate_conf conf = {.simulation = window(), .fov_radius = 200, .threads = 2};
		double gap[2] = {0};

		for (int run = 0; run < 2; run++) {
			struct scatter_estimate_report estimated;
			struct scatter_estimate e GOES(scatter_estimate_clear) = {0};
			double sum = 0, all = 0;

			conf.iterations = run ? 3 : 1;
			assert_int_equal(scatter_estimate(&m, &conf, &a.data, &fine, a.mu, dev, NULL, &e, &estimated, NULL), 0);
			assert_int_equal(single_scatter_planes(e.simulated, 0, (int)michelogram_data_planes(&m), 2, found, NULL),
					 0);
			kept_is_the_same(&m, &conf, dev, &e, &estimated, found);
			for (size_t i = 0; i < bins; i++) {
				double value = 0;

				for (size_t k = 0; k < michelogram_size(&m); k += bins)
					value += (double)a.norm[i] * (double)e.scale[i / PLANE] * (double)found[k + i];
				sum += fabs(value - (double)a.truth[i]);
				all += (double)a.truth[i];
			}
			gap[run] = sum / all;
			print_message("%d iterations: %.4f of the scatter, scale %.3f to %.3f, fraction %.3f\n", conf.iterations,
				      gap[run], estimated.scale.least, estimated.scale.most, estimated.scale.fraction);
			assert_int_equal(estimated.scale.at_least + estimated.scale.at_most, 0);
		}
		assert_true(gap[1] < 0.025);
		assert_true(gap[1] < gap[0]);
	}
}

/* Damages of the data. */
static const struct hostile {
	const char *name;
	float randoms;	  /* that are left in a bin, which has 60 trues in the mean of all */
	double radius;	  /* mm: mu is known in it alone; the body has 110 */
	bool single_tail; /* only the first radial bin is outside */
} damages[] = {
	{"randoms", 400, 110, false},
	{"small map of mu", 0, 40, false},
	{"single bin as tail", 1, 110, true},
};

static void damage(const struct hostile *how, struct acquired *a, struct device *dev)
{
	for (size_t i = 0; i < grid_size(&fine); i++) {
		double x = fine.lo[0] + ((double)(i / grid_step(&fine, 0) % (size_t)fine.n[0]) + 0.5) * fine.h[0];
		double y = fine.lo[1] + ((double)(i / grid_step(&fine, 1) % (size_t)fine.n[1]) + 0.5) * fine.h[1];

		a->mu[i] *= hypot(x, y) < how->radius;
	}
	project(&a->plain, a->mu, dev, a->attenuation);
	for (size_t i = 0; i < a->bins; i++) {
		a->attenuation[i] = expf(-a->attenuation[i]);
		if (how->single_tail && i % RADIAL > SCATTER_TAIL_MARGIN)
			a->attenuation[i] = fminf(a->attenuation[i], 0.9f);
		a->prompts[i] += how->randoms;
	}
}

/* Data that no scatter explains: randoms left in the prompts, a map of mu without most of the body, a single radial bin as tail.
 * The estimate is finite, not negative and no more than its limit, and the report says that it was limited. */
TEST(hostile)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);

	for (size_t d = 0; d < sizeof(damages) / sizeof(damages[0]); d++) {
		struct acquired a = acquire(dev);
		float *found = take_memory(a.bins * sizeof(float));
		struct scatter_estimate_conf conf = {.simulation = window(), .fov_radius = 200, .threads = 2, .iterations = 3};
		struct scatter_estimate_report r;
		struct scatter_estimate e GOES(scatter_estimate_clear) = {0};
		double scatter = 0, net = 0;

		damage(&damages[d], &a, dev);
		assert_int_equal(scatter_estimate(&a.plain, &conf, &a.data, &fine, a.mu, dev, NULL, &e, &r, NULL), 0);
		assert_int_equal(single_scatter_planes(e.simulated, 0, (int)michelogram_planes(&a.plain), 2, found, NULL), 0);
		for (size_t i = 0; i < a.bins; i++) {
			double value = (double)(a.norm[i] * e.scale[i / PLANE] * found[i]);

			assert_true(value >= 0 && isfinite(value));
			scatter += value;
			net += (double)(a.prompts[i] - a.background[i]);
		}
		print_message("%s: scale %.2f to %.2f, fraction %.3f; limited %d %d %d, doubtful %d\n", damages[d].name,
			      r.scale.least, r.scale.most, r.scale.fraction, r.scale.at_least, r.scale.at_most, r.scale.at_counts,
			      r.scale.doubtful);
		assert_true(net > 0 && scatter <= SCATTER_FRACTION_MOST * net * (1 + 1e-5));
		assert_near(scatter / net, r.scale.fraction, 1e-4);
		assert_true(r.scale.at_counts > 0 || r.scale.at_most > 0);
	}
}

/* ---- memory, progress, cancelling ---- */

/* A device that counts vectors. */
static struct {
	const struct device_ops *ops;
	size_t floats, most;
} meter;

static int metered_alloc(struct device *dev, size_t n, struct buf *ret, struct err *err)
{
	meter.floats += n;
	meter.most = meter.floats > meter.most ? meter.floats : meter.most;
	return meter.ops->alloc(dev, n, ret, err);
}

static void metered_release(struct buf *b)
{
	meter.floats -= b->n;
	meter.ops->release(b);
}

struct watch {
	double last;
	int calls, cancel_at; /* cancel_at 0: never */
	bool other_stage, back;
};

static void watch_progress(void *ctx, const char *stage, double fraction)
{
	struct watch *w = ctx;

	w->other_stage = w->other_stage || strcmp(stage, "read") != 0;
	w->back = w->back || fraction < w->last || fraction > 1;
	w->last = fraction;
	w->calls++;
}

static bool watch_cancelled(void *ctx)
{
	const struct watch *w = ctx;

	return w->cancel_at > 0 && w->calls >= w->cancel_at;
}

/* One acquisition of the body: its estimate with a monitor. */
static int estimate_with(struct device *dev, struct scan_tof tof, struct watch *watch, struct scatter_estimate_plan *ret_plan,
			 size_t *ret_pairs)
{
	struct michelogram m = scanner(tof), plain = scanner((struct scan_tof){0});
	const struct monitor monitor = {watch, watch_progress, watch_cancelled, NULL, NULL};
	const struct scatter_estimate_conf conf = {.simulation = window(), .fov_radius = 200, .threads = 2, .iterations = 1};
	size_t voxels = grid_size(&fine), bins = michelogram_size(&plain);
	float *activity = take_zeros(voxels, sizeof(float)), *mu = take_zeros(voxels, sizeof(float)),
	      *prompts = take_memory(bins * sizeof(float)), *attenuation = take_memory(bins * sizeof(float)),
	      *background = fixture_floats(bins, 5, 5, 6);
	const struct scatter_data data = {prompts, background, NULL, attenuation};
	struct scatter_estimate_report report = {0};
	struct scatter_estimate e = {0};
	int r;

	body(activity, mu);
	project(&plain, mu, dev, attenuation);
	project(&plain, activity, dev, prompts);
	for (size_t i = 0; i < bins; i++) {
		attenuation[i] = expf(-attenuation[i]);
		prompts[i] = prompts[i] * attenuation[i] + background[i];
	}
	assert_int_equal(scatter_estimate_plan(&m, &conf, dev, ret_plan, NULL), 0);
	meter.most = meter.floats;
	r = scatter_estimate(&m, &conf, &data, &fine, mu, dev, &monitor, &e, &report, NULL);
	*ret_pairs = report.simulation.pairs;
	scatter_estimate_clear(&e);
	return r;
}

/* The plan counts the vectors of the coarse session and of the simulation, and with TOF bins its larger tables. */
TEST(memory_is_planned)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	const struct device_ops *ops = dev->ops;
	struct device_ops metered = *ops;
	struct scatter_estimate_plan plan[2];
	size_t pairs;
	struct watch watch = {0};

	meter.ops = ops;
	metered.alloc = metered_alloc;
	metered.release = metered_release;
	dev->ops = &metered;
	for (int tof = 0; tof < 2; tof++) {
		size_t before = meter.floats;

		watch = (struct watch){0};
		assert_int_equal(estimate_with(dev, tof ? (struct scan_tof){17, 45, 25} : (struct scan_tof){0}, &watch,
					       &plan[tof], &pairs),
				 0);
		print_message("device: %zu bytes of vectors, %zu planned; host %zu, kept %zu\n",
			      (meter.most - before) * sizeof(float), plan[tof].bytes_device, plan[tof].bytes_host,
			      plan[tof].bytes_kept);
		assert_true((meter.most - before) * sizeof(float) <= plan[tof].bytes_device);
		assert_int_equal(meter.floats, before);
		assert_true(!watch.other_stage && !watch.back && watch.last > 0.9 && watch.last <= 1);
		assert_true(watch.calls > 3);
	}
	assert_int_equal(plan[1].bytes_kept - plan[0].bytes_kept, 16 * pairs * sizeof(float)); /* 17 TOF bins instead of one */
	assert_true(plan[1].bytes_host > plan[0].bytes_host);
	assert_true(plan[1].bytes_device > plan[0].bytes_device);
	dev->ops = ops;
}

/* It ends at whatever moment it is cancelled. */
TEST(cancelled)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct scatter_estimate_plan plan;
	size_t pairs;
	struct watch all = {0};

	assert_int_equal(estimate_with(dev, (struct scan_tof){0}, &all, &plan, &pairs), 0);
	for (int at = 1; at < all.calls; at += all.calls / 2 - 1) {
		struct watch watch = {.cancel_at = at};

		assert_int_equal(estimate_with(dev, (struct scan_tof){0}, &watch, &plan, &pairs), -ECANCELED);
		assert_true(watch.calls <= at + 2);
	}
}
