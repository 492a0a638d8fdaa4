/* SPDX-License-Identifier: Apache-2.0 */
/* List-mode PET: compared with the reconstruction of the histogram of the same events, by bins and by the sinogram session;
 * sensitivity over all LORs; subsets; streaming; number of threads; resolution model; errors. */
#include "recon/core/psf.h"
#include "recon/pet/michelogram_pairs.h"
#include "tests/recon/faulty_device.h"
#include "tests/recon/pet/pet_list_fixture.h"
#include "tests/recon/pet/pet_reconstruct.h"
#include "tests/test.h"

/* MLEM of the histogram, with the same matrix: x <- x / S A'(y / (A x + b / m)), over the bins with m > 0. */
static float *histogram_mlem(const struct data *d, const struct pet_plan *plan, int iterations)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	const struct device_ops *v = dev->ops;
	const struct grid *g = &plan->grid;
	size_t n = d->n_lors * (size_t)data_bins(d), n_x = grid_size(g), n_z = (size_t)g->n[2];
	struct event *all = take_memory(n * sizeof(*all));
	float *q = take_memory(n * sizeof(*q)), *x = take_memory(n_x * sizeof(*x)), *s, *num, *image;
	struct buf detectors = fixture_upload(dev, d->detectors, 6 * d->n_lors), be, bq, bx, bs, bn;
	struct events *a;
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		all[i] = event_of(d, i % d->n_lors, (int)(i / d->n_lors));
		q[i] = d->factors[i % d->n_lors];
	}
	be = fixture_upload(dev, (const float *)(const void *)all, n * EVENT_FLOATS);
	bq = fixture_upload(dev, q, n);
	bx = fixture_upload(dev, NULL, n_x);
	bs = fixture_upload(dev, NULL, n_x);
	bn = fixture_upload(dev, NULL, n_x);
	a = fixture_events(
		dev, &(struct events_spec){
			     .grid = g, .fov_radius = plan->fov_radius, .tof = d->m.tof, .detectors = &detectors, .batch = 1});
	v->fill(&bs, 0, NULL);
	assert_int_equal(v->events_back(a, &be, &bq, &bs, NULL), 0); /* the sum over all bins, TOF bins too */
	s = fixture_download(&bs);
	for (size_t i = 0; i < n_x; i++) {
		size_t column = i / grid_column(g);
		double px = g->lo[0] + ((double)(column % MATRIX) + 0.5) * g->h[0];
		double py = g->lo[1] + ((double)(column / MATRIX) + 0.5) * g->h[1];

		x[i] = px * px + py * py < FOV * FOV && i % grid_column(g) < n_z && s[i] > 0;
		sum += x[i] * s[i];
	}
	for (size_t i = 0; i < n_x; i++)
		x[i] *= (float)((double)d->n_events / sum);
	for (int it = 0; it < iterations; it++) {
		float *p;

		v->upload(&bx, x, NULL);
		v->events_forward(a, &be, &bx, &bq, NULL);
		p = fixture_download(&bq);
		for (size_t i = 0; i < n; i++)
			q[i] = d->counts[i] && p[i] + all[i].add > 1e-9f ? (float)d->counts[i] / (p[i] + all[i].add) : 0;
		v->upload(&bq, q, NULL);
		v->fill(&bn, 0, NULL);
		v->events_back(a, &be, &bq, &bn, NULL);
		num = fixture_download(&bn);
		for (size_t i = 0; i < n_x; i++)
			x[i] = x[i] > 0 ? x[i] * num[i] / s[i] : 0;
	}
	image = take_memory(voxels_of(plan) * sizeof(*image));
	for (size_t k = 0; k < n_z; k++)
		for (size_t i = 0; i < MATRIX * MATRIX; i++)
			image[k * MATRIX * MATRIX + i] = x[i * grid_column(g) + k];
	return image;
}

/* One subset: list mode is the reconstruction of the histogram. */
TEST(equals_histogram)
{
	for (int which = 0; which < 4; which++) {
		TEST_BLOCK;
		struct data d = make_data(which & 1, which & 2);
		struct source *s = make_source(&d, true);
		struct device *dev = fixture_device(which ? FIXTURE_CPU : FIXTURE_POISON, 2);
		struct pet_plan plan;
		float *image = image_of(&protocol, &s->list, dev, &plan), *expected;

		assert_true(plan.resident);
		expected = histogram_mlem(&d, &plan, protocol.iterations);
		print_message("%zu events, difference %g\n", d.n_events, difference(image, expected, voxels_of(&plan)));
		assert_true(difference(image, expected, voxels_of(&plan)) < IMAGE_TOL);
	}
}

/* The sinogram session with the histogram of the events gives the same image, its sensitivity by sinograms included. */
TEST(equals_sinogram)
{
	for (int tof = 0; tof < 2; tof++) {
		TEST_BLOCK;
		struct data d = make_data(tof, false);
		struct source *s = make_source(&d, false);
		struct device *dev = fixture_device(FIXTURE_CPU, 2);
		struct pet_plan plan;
		float *image = image_of(&protocol, &s->list, dev, &plan), *y, *expected;
		size_t n = d.n_lors * (size_t)data_bins(&d);
		struct pet_plan bins;
		struct err err = {0};

		y = take_memory(n * sizeof(*y));
		expected = take_memory(voxels_of(&plan) * sizeof(*expected));
		for (size_t i = 0; i < n; i++)
			y[i] = (float)d.counts[i];
		assert_int_equal(pet_plan(&protocol, &d.m, PET_FACTORS_SHARED, false, dev, &bins, &err), 0);
		assert_memory_equal(bins.grid.n, plan.grid.n, sizeof(plan.grid.n));
		assert_done(pet_reconstruct(&protocol, &bins, &d.m, dev, NULL, y, d.factors, NULL, NULL, expected, NULL, &err),
			    &err);
		print_message("difference %g\n", difference(image, expected, voxels_of(&plan)));
		assert_true(difference(image, expected, voxels_of(&plan)) < IMAGE_TOL);
	}
}

/* Every event four times, one after the other: each of four subsets has all events, and an update is that of one subset times 4.
 */
TEST(subsets)
{
	struct data d = make_data(true, false);
	struct source *s = make_source(&d, true);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct event *four = take_memory(4 * d.n_events * sizeof(*four));
	struct pet_protocol p = protocol;
	struct pet_plan plan;
	float *expected, *image;

	p.iterations = 8;
	expected = image_of(&p, &s->list, dev, &plan);
	for (size_t i = 0; i < 4 * d.n_events; i++)
		four[i] = d.events[i / 4];
	s->events = (struct reader){four, 4 * d.n_events, 0, 1001, 0, 0};
	s->list.n_events = 4 * d.n_events;
	p.algorithm = ALGORITHM_OSEM;
	p.iterations = 2;
	p.subsets = 4;
	for (int streamed = 0; streamed < 2; streamed++) {
		p.memory_limit = streamed ? plan.bytes.total - 2 * d.n_events * sizeof(struct event) : 0;
		image = image_of(&p, &s->list, dev, &plan);
		assert_int_equal(plan.resident, !streamed);
		for (size_t i = 0; i < voxels_of(&plan); i++)
			image[i] /= 4;
		assert_true(difference(image, expected, voxels_of(&plan)) < IMAGE_TOL);
	}
}

/* A session that reads the events again for every update gives the image of one that keeps them; it uses what it planned. */
TEST(streamed)
{
	struct data d = make_data(true, true);
	struct source *s = make_source(&d, true);
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	struct pet_protocol p = protocol;
	struct pet_plan resident, plan;
	float *kept, *image;

	p.algorithm = ALGORITHM_OSEM;
	p.iterations = 2;
	p.subsets = 3;
	kept = image_of(&p, &s->list, dev, &resident);
	p.memory_limit = resident.bytes.total - d.n_events * sizeof(struct event) / 2;
	image = image_of(&p, &s->list, dev, &plan);
	assert_true(resident.resident && !plan.resident && plan.bytes.total <= p.memory_limit);
	assert_true(difference(image, kept, voxels_of(&plan)) < 1e-5);
	p.memory_limit = 1000;
	assert_int_equal(pet_list_plan(&p, &s->list, dev, &plan, NULL), -ENOMEM);
}

TEST(threads)
{
	struct data d = make_data(true, true);
	struct source *s = make_source(&d, true);
	struct pet_protocol p = protocol;
	struct pet_plan plan;
	float *one = NULL;

	p.psf = 6;
	p.postfilter = 5;
	for (int n = 1; n <= 3; n++) {
		struct device *dev = fixture_device(FIXTURE_CPU, n);
		float *image = image_of(&p, &s->list, dev, &plan);

		one = one ? one : image;
		assert_memory_equal(one, image, voxels_of(&plan) * sizeof(*one));
	}
}

/* A sample of the pairs gives nearly the same sensitivity: the image is that of all pairs within a few percent. */
TEST(sampled_pairs)
{
	struct data d = make_data(false, false);
	struct source *s = make_source(&d, true);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct pet_list_pairs pairs = {.n = 0, .stride = 1, .seed = 5};
	struct pet_protocol p = protocol;
	struct pet_plan plan;
	float *few = take_memory(3 * 480 * sizeof(*few)), *all, *image;
	struct event events[500];
	double sum[2] = {0, 0};

	for (int i = 0; i < 480; i++) { /* 8 rings of 60 */
		double angle = 2 * M_PI * (i % 60) / 60;

		few[3 * i] = (float)(90 * cos(angle));
		few[3 * i + 1] = (float)(90 * sin(angle));
		few[3 * i + 2] = (float)(4 * (i / 60) - 14);
	}
	for (int i = 0; i < 500; i++)
		events[i] = (struct event){{i % 60 + 60 * (i % 8), (i % 60 + 28 + i % 5) % 60 + 60 * (i % 7)}, 0, 0};
	p.iterations = 1;
	pairs.n = 480;
	s->events = (struct reader){events, 500, 0, 300, 0, 0};
	s->list.n_events = 500;
	s->list.detectors = few;
	s->list.n_detectors = 480;
	s->list.lors = pet_list_pairs_reader(&pairs);
	s->list.n_lors = 0;
	all = image_of(&p, &s->list, dev, &plan);
	pairs.stride = 7;
	s->list.lors_scale = 7;
	image = image_of(&p, &s->list, dev, &plan);
	for (size_t i = 0; i < voxels_of(&plan); i++) {
		sum[0] += all[i];
		sum[1] += image[i];
	}
	assert_near(sum[1] / sum[0], 1, 0.03);
	assert_true(difference(image, all, voxels_of(&plan)) > 0);
}

static int copy_volume(const struct linop *op, const struct buf *x, struct buf *ret, struct err *err)
{
	return op->dev->ops->copy(x, ret, err);
}

/* It belongs to the test. */
static void free_op(struct linop *op)
{
}

/* After an update of MLEM without background, the model has as many counts as there are events: sum over LORs of m a D G x. */
TEST(resolution_model)
{
	struct data d = make_data(false, false);
	struct source *s = make_source(&d, true);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct session_memory memory = {.dev = dev};
	struct pet_protocol p = protocol;
	struct pet_plan plan;
	struct buf work[PSF_WORK_VOLUMES], x, seen, detectors, lors, y;
	struct linop *volume = take_zeros(1, sizeof(*volume)), *psf = NULL;
	struct events *a;
	float *image, *host, *lines;
	double counts = 0;
	size_t n;

	p.psf = 9;
	image = image_of(&p, &s->list, dev, &plan);
	n = grid_size(&plan.grid);
	host = take_zeros(n, sizeof(*host));
	for (size_t i = 0; i < voxels_of(&plan); i++)
		host[i % (MATRIX * MATRIX) * grid_column(&plan.grid) + i / (MATRIX * MATRIX)] = image[i];
	*volume = (struct linop){
		.n_in = n, .n_out = n, .dev = dev, .apply = copy_volume, .adjoint = copy_volume, .destroy = free_op};
	assert_int_equal(psf_work_alloc(&memory, &plan.grid, p.psf, work, NULL), 0);
	assert_int_equal(psf_create(volume, &plan.grid, p.psf, work, &psf, NULL), 0);
	x = fixture_upload(dev, host, n);
	seen = fixture_upload(dev, NULL, n);
	assert_int_equal(psf->apply(psf, &x, &seen, NULL), 0);
	detectors = fixture_upload(dev, d.detectors, 6 * d.n_lors);
	lors = fixture_upload(dev, (const float *)(const void *)s->all, d.n_lors * EVENT_FLOATS);
	y = fixture_upload(dev, NULL, d.n_lors);
	a = fixture_events(dev,
			   &(struct events_spec){.grid = &plan.grid, .fov_radius = FOV, .detectors = &detectors, .batch = 1});
	assert_int_equal(dev->ops->events_forward(a, &lors, &seen, &y, NULL), 0);
	lines = fixture_download(&y);
	for (size_t i = 0; i < d.n_lors; i++)
		counts += d.factors[i] * lines[i];
	assert_near(counts / (double)d.n_events, 1, 1e-4);
	linop_free(psf);
	session_release(&memory);
}

/* The detectors of regular rings: the rays of even radial bins end at them, the first end at the bin's first detector. */
TEST(detectors_of_rings)
{
	struct data d = make_data(false, false);
	struct michelogram_index index;
	float *at = take_memory(3 * RINGS * 48 * sizeof(*at));
	size_t lor = 0;

	d.m.arc_corrected = false;
	make_detectors(&d);
	assert_int_equal(michelogram_index_init(&d.m, &index, NULL), 0);
	assert_int_equal(pet_list_detectors(&d.m, at, NULL), 0);
	for (int i = 0; i < d.m.n_segments; i++)
		for (int plane = 0; plane < d.m.segments[i].n_planes; plane++)
			for (int a = 0; a < ANGLES; a++)
				for (int t = 0; t < RADIAL; t++, lor++) {
					int crystal[2], low = d.m.segments[i].first;
					int ring[2] = {plane + (low > 0 ? low : 0), plane + (low < 0 ? -low : 0)};

					if ((t - RADIAL / 2) % 2)
						continue;
					michelogram_crystals(&index, a, t, 0, crystal);
					for (int end = 0; end < 2; end++)
						for (int c = 0; c < 3; c++)
							assert_near(at[3 * (ring[end] * 48 + crystal[end]) + c],
								    d.detectors[6 * lor + 3 * (size_t)end + (size_t)c], 1e-3);
				}
	d.m.arc_corrected = true;
	assert_int_equal(pet_list_detectors(&d.m, at, NULL), -EINVAL);
}

static float factor_of(const struct michelogram *m, int plane, int angle, int radial)
{
	return 1 + 0.1f * (float)((7 * plane + 5 * angle + 3 * radial) % (m->n_radial + 2));
}

static void factor_row(void *ctx, int plane, int angle, int first, int step, float *ret, size_t stride)
{
	const struct michelogram *m = ctx;

	for (int i = first; i < m->n_radial; i += step, ret += stride)
		*ret = factor_of(m, plane, angle, i);
}

/* Compute the sensitivity of a list in the order of the grid. */
static float *sensitivity_of(const struct pet_list *list)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct pet_protocol p = protocol;
	struct pet_list_sensitivity_image s = {0};
	struct pet_list_session *session = NULL;
	struct pet_plan plan;
	struct err err = {0};

	p.iterations = 1;
	assert_int_equal(pet_list_plan(&p, list, dev, &plan, &err), 0);
	s.values = take_memory(grid_size(&plan.grid) * sizeof(*s.values));
	assert_int_equal(pet_list_open(&p, &plan, list, dev, &session, &err), 0);
	pet_list_share_sensitivity(session, &s);
	assert_int_equal(pet_list_run(session, NULL, NULL, &err), 0);
	assert_true(s.computed);
	pet_list_close(session);
	return s.values;
}

/* The sensitivity of regular rings is that of their pairs of detectors, pair by pair: an odd and an even number of radial bins,
 * factors of all bins at once and by rows. */
TEST(sensitivity_of_rings)
{
	for (int kind = 0; kind < 4; kind++) {
		struct michelogram m = {.scanner = {RINGS, 48, 8, 88, 2, 4.8},
					.n_radial = kind % 2 ? RADIAL : RADIAL - 1,
					.n_angles = ANGLES,
					.angle_offset = 1.7};
		struct michelogram_index x;
		float at[3 * RINGS * 48], *by_rings, *by_pairs, most = 0;
		struct event *lors;
		struct reader from, events;
		struct pet_list list = {.detectors = at, .n_detectors = RINGS * (size_t)48, .slice = 4};
		size_t n = 0, voxels = MATRIX * MATRIX * (size_t)(2 * RINGS - 1);
		float *factors;
		double off = 0;

		fixture_segments(&m, 1, RINGS - 1);
		assert_int_equal(michelogram_index_init(&m, &x, NULL), 0);
		assert_int_equal(pet_list_detectors(&m, at, NULL), 0);
		lors = take_memory(michelogram_size(&m) * sizeof(*lors));
		factors = take_memory(michelogram_size(&m) * sizeof(*factors));
		for (int plane = 0; plane < x.n_planes; plane++) {
			struct michelogram_rings r = michelogram_plane_rings(&x, plane);
			int first = (r.sum + r.difference) / 2;

			for (int i = 0; i < ANGLES * m.n_radial; i++, n++) {
				int c[2];

				michelogram_crystals(&x, i / m.n_radial, i % m.n_radial, 0, c);
				factors[n] = factor_of(&m, plane, i / m.n_radial, i % m.n_radial);
				lors[n] = (struct event){{first * 48 + c[0], (r.sum - first) * 48 + c[1]}, 0, factors[n]};
			}
		}
		from = (struct reader){lors, n, 0, 777, 0, 0};
		events = (struct reader){(struct event[]){{{0, 24}, 0, 0}}, 1, 0, 1, 0, 0};
		list.events = (struct pet_list_reader){&events, rewind_events, read_events};
		list.n_events = 1;
		list.lors = (struct pet_list_reader){&from, rewind_events, read_events};
		by_pairs = sensitivity_of(&list);
		list.lors = (struct pet_list_reader){0};
		list.michelogram = &m;
		list.factors = kind < 2 ? factors : NULL;
		list.factor_row = factor_row;
		list.factor_ctx = &m;
		by_rings = sensitivity_of(&list);
		for (size_t i = 0; i < voxels; i++)
			most = fmaxf(most, by_pairs[i]);
		for (size_t i = 0; i < voxels; i++)
			off = fmax(off, fabs((double)by_rings[i] - (double)by_pairs[i]));
		print_message("%d radial bins: largest difference %.2g of the largest value\n", m.n_radial, off / (double)most);
		assert_true(off <= IMAGE_TOL * (double)most);
	}
}

static struct {
	const struct device_ops *ops;
	size_t floats;
} counted;

static int counting_alloc(struct device *dev, size_t n, struct buf *ret, struct err *err)
{
	counted.floats += n;
	return counted.ops->alloc(dev, n, ret, err);
}

/* A session allocates what the plan says: its volumes and its events. */
TEST(planned_bytes)
{
	struct data d = make_data(true, false);
	struct source *s = make_source(&d, true);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct device_ops ops = *dev->ops;
	struct pet_protocol p = protocol;
	struct pet_plan plan;

	counted.ops = dev->ops;
	ops.alloc = counting_alloc;
	dev->ops = &ops;
	for (int psf = 0; psf < 2; psf++) {
		p.psf = psf * 6;
		p.iterations = 1;
		counted.floats = 0;
		image_of(&p, &s->list, dev, &plan);
		assert_int_equal(counted.floats * sizeof(float), plan.bytes.volumes + plan.bytes.data);
		assert_int_equal(plan.bytes.total, plan.bytes.volumes + plan.bytes.data + plan.bytes.tables);
	}
	dev->ops = counted.ops;
}

static void refuse(struct source *s, const struct pet_protocol *p, int code, const char *text)
{
	struct device *dev = fixture_device(FIXTURE_POISON, 1);
	struct pet_plan plan;
	struct err err = {0};
	float *image = NULL;

	assert_error(run(p, &s->list, dev, NULL, &image, &plan, &err), &err, code, text);
	assert_null(image);
}

/* Let each device call of a run fail once: the error is returned, memory is freed, and finally a run succeeds. */
TEST(faults)
{
	struct data d = make_data(true, true);

	d.n_events = 2000;
	for (int streams = 0; streams < 2; streams++) { /* resident, by sinograms; streamed, by LORs */
		struct source *s = make_source(&d, streams);
		struct pet_protocol p = protocol;
		int calls = 0, r;

		p.iterations = 1;
		p.matrix = 8;
		p.psf = 6;
		p.postfilter = 5;
		do {
			TEST_BLOCK;
			struct device *dev = fixture_device(FIXTURE_POISON, 1);
			struct device_ops faulty = faulty_ops(dev->ops);
			struct pet_plan plan;
			struct err err = {0};
			float *image = NULL;

			if (streams) {
				p.memory_limit = 0;
				assert_int_equal(pet_list_plan(&p, &s->list, dev, &plan, NULL), 0);
				p.memory_limit = plan.bytes.total - 1000;
			}
			fault.ops = dev->ops;
			fault.left = calls++;
			dev->ops = &faulty;
			r = run(&p, &s->list, dev, NULL, &image, &plan, &err);
			assert_int_equal(plan.resident, !streams);
			assert_true(r == 0 || (r == -EIO && err.msg[0]));
			dev->ops = fault.ops;
			assert_true(calls < 1000);
		} while (r < 0);
		print_message("%d calls\n", calls - 1);
		assert_true(calls > 35);
	}
}

static bool always(void *ctx)
{
	(void)ctx;
	return true;
}

TEST(errors)
{
	struct data d = make_data(true, false);
	struct source *s = make_source(&d, true);
	struct pet_protocol p = protocol;
	const struct event good = d.events[100];
	struct monitor cancel = {.cancelled = always};
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct pet_plan plan;
	float *image = NULL;

#define REFUSED_EVENT(field, value, text)                                                                                        \
	d.events[100].field = value;                                                                                             \
	refuse(s, &p, EINVAL, text);                                                                                             \
	d.events[100] = good
	REFUSED_EVENT(detector[1], (int32_t)(2 * d.n_lors), "event 100 of detectors");
	REFUSED_EVENT(detector[1], -1, "event 100 of detectors");
	REFUSED_EVENT(tof, 7, "event 100 in TOF bin 7");
	REFUSED_EVENT(add, 0.1f, "event 100 with a background");
	REFUSED_EVENT(add, NAN, "event 100 with a background");
	s->list.n_events++;
	refuse(s, &p, EINVAL, "only");
	s->list.n_events -= 2;
	refuse(s, &p, EINVAL, "more than the announced");
	s->list.n_events = 0;
	refuse(s, &p, EDOM, "no events");
	s->list.n_events = d.n_events;
	s->events.fail_at = 3;
	refuse(s, &p, EIO, "the reader fails");
	s->events.fail_at = 0;
	s->all[5].add = -1;
	refuse(s, &p, EINVAL, "LOR");
	for (size_t i = 0; i < d.n_lors; i++)
		s->all[i].add = 0;
	refuse(s, &p, EDOM, "no LOR with a factor above 0");
	p.algorithm = ALGORITHM_FBP;
	refuse(s, &p, EINVAL, "algorithm");
	p.algorithm = ALGORITHM_BSREM;
	refuse(s, &p, EINVAL, "algorithm");
	p = protocol;
	p.fov_radius = 500;
	refuse(s, &p, EINVAL, "fov_radius");
	assert_int_equal(run(&protocol, &s->list, dev, &cancel, &image, &plan, NULL), -ECANCELED);
}
