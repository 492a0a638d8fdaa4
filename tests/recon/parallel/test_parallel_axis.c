/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel beams: the axis of rotation from the data, and the shares of bins of a half acquisition. Scans of random ellipses,
 * integrated over bins. */
#include "recon/parallel/parallel.h"
#include "tests/recon/parallel/parallel_fixture.h"

enum { N = 128, ELLIPSES = 14 };

struct ellipse {
	double x, y, a, b, turn, value;
};

static double random_uniform(uint64_t *random)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (double)(*random >> 11) / 9007199254740992.0;
}

/* A large body and smaller parts; size: of the body, in half fields. */
static void make_body(double size, uint64_t *random, struct ellipse *e)
{
	double reach = size * N / 2;

	e[0] = (struct ellipse){0, 0, 0.8 * reach, 0.6 * reach, 0.4, 2.0 / N};
	for (int i = 1; i < ELLIPSES; i++) {
		double r = 0.5 * reach * sqrt(random_uniform(random)), at = 2 * M_PI * random_uniform(random);

		e[i] = (struct ellipse){r * cos(at),
					r * sin(at),
					reach * (0.03 + 0.2 * random_uniform(random)),
					reach * (0.03 + 0.2 * random_uniform(random)),
					M_PI * random_uniform(random),
					2 * random_uniform(random) / N};
	}
}

static double integrate(const struct ellipse *e, double angle, double r)
{
	double sum = 0;

	for (int i = 0; i < ELLIPSES; i++, e++) {
		double c = e->a * cos(angle - e->turn), s = e->b * sin(angle - e->turn), w = c * c + s * s;
		double d = r - e->x * cos(angle) - e->y * sin(angle);

		sum += w > d * d ? 2 * e->value * e->a * e->b * sqrt(w - d * d) / w : 0;
	}
	return sum;
}

/* Compute the scan, whose offset is the true one; noise: standard deviation of a line integral. */
static float *make_scan(const struct parallel_scan *s, const struct ellipse *e, double noise, uint64_t *random)
{
	float *lines = take_memory(parallel_size(s) * sizeof(*lines));

	for (size_t i = 0; i < parallel_size(s); i++) {
		int t = (int)(i % (size_t)s->n_radial), a = (int)(i / (size_t)s->n_radial) % s->n_angles;
		double angle = parallel_angle(s, a) * M_PI / 180, sum = 0;

		for (int k = -1; k <= 1; k++)
			sum += integrate(e, angle, parallel_radius(s, t) + k * s->bin / 3) / 3;
		for (int k = 0; k < 12; k++)
			sum += noise * (random_uniform(random) - 0.5);
		lines[i] = (float)sum;
	}
	return lines;
}

static struct parallel_axis find(struct parallel_scan s, const float *lines)
{
	struct parallel_consistency c;
	struct parallel_axis axis;

	s.offset = 0; /* the search may not know it */
	parallel_consistency_of(&s, lines, NULL, &c, NULL);
	assert_int_equal(parallel_find_axis(&s, lines, &c, &axis, NULL), 0);
	return axis;
}

/* The axis is found to a quarter of a bin, or said to be unknown: inside the field and not, with noise, over half a turn and a
 * whole one, near the edge (half acquisition), in any order of angles. */
TEST(axis_is_found_or_unknown)
{
	static const struct {
		double size, arc, offset, noise;
		int angles;
		bool exchanged, known;
		enum parallel_axis_by by;
	} cases[] = {
		{0.9, 180, -3.3, 0, 120, false, true, PARALLEL_AXIS_MASS},
		{1.6, 180, 7.2, 0.002, 120, false, true, PARALLEL_AXIS_SEAM},
		{1.6, 180, -14.7, 0.002, 120, true, true, PARALLEL_AXIS_SEAM},
		{1.6, 360, 51.3, 0.02, 180, false, true, PARALLEL_AXIS_PAIRS},
		{1.6, 360, -20.6, 0.02, 181, false, true, PARALLEL_AXIS_PAIRS},
		{0.9, 150, 2.4, 0.02, 100, false, true, PARALLEL_AXIS_MASS},
		{1.6, 150, 2.4, 0, 100, false, false, 0},
		{1.6, 180, 5.1, 2, 120, false, false, 0},
		{1.6, 180, 5.1, 0, 20, false, false, 0},
	};
	uint64_t random = test_seed();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct parallel_scan s = {1, cases[i].angles, N, 0.5, 0.5 * cases[i].offset, 1, 10, cases[i].arc, NULL};
		struct ellipse body[ELLIPSES];
		struct parallel_axis axis;
		double angle[200];
		float *lines;

		make_body(0.5 * cases[i].size, &random, body);
		for (int a = 0; a < s.n_angles; a++)
			angle[a] = (a * 37 + 5) % s.n_angles * s.arc / s.n_angles;
		s.angle = cases[i].exchanged ? angle : NULL;
		lines = make_scan(&s, body, cases[i].noise, &random);
		axis = find(s, lines);
		if (cases[i].known != (axis.reason == PARALLEL_AXIS_KNOWN) || (cases[i].known && axis.by != cases[i].by))
			fail_msg("case %zu: reason %d, by %d, offset %g +- %g mm", i, axis.reason, axis.by, axis.offset,
				 axis.sigma);
		if (cases[i].known && !(fabs(axis.offset - s.offset) <= 0.25 * s.bin))
			fail_msg("case %zu: %g for %g mm", i, axis.offset, s.offset);
	}
}

/* Of objects that leave the field over half a turn, most axes are known to a quarter of a bin, and none is wrong by more than its
 * uncertainty; also where the angles have uneven steps, and where bins of the detector are dead. */
TEST(most_axes_are_known)
{
	enum { SCANS = 60, DEAD = 3 };
	const int scans = (int)test_count(SCANS, 18);
	uint64_t random = test_seed();
	int near = 0;

	for (int i = 0; i < scans; i++) {
		struct parallel_scan s = {1, 130, N, 0.5, 4 * (random_uniform(&random) - 0.5), 1, 10, 180, NULL};
		struct ellipse body[ELLIPSES];
		struct parallel_axis axis;
		double angle[130];
		float *lines;

		for (int a = 0; a < s.n_angles; a++)
			angle[a] = (a + 0.6 * random_uniform(&random)) * s.arc / s.n_angles;
		s.angle = i % 3 == 1 ? angle : NULL;
		make_body(0.6 + 0.3 * random_uniform(&random), &random, body);
		lines = make_scan(&s, body, 0.005, &random);
		for (int k = 0; k < DEAD && i % 3 == 2; k++) {
			int dead = (int)(N * random_uniform(&random));

			for (int a = 0; a < s.n_angles; a++)
				lines[a * N + dead] = k == 0 ? 0.1F : 9.21F;
		}
		axis = find(s, lines);
		if (axis.reason != PARALLEL_AXIS_KNOWN)
			continue;
		near += fabs(axis.offset - s.offset) <= 0.25 * s.bin;
		if (fabs(axis.offset - s.offset) > 4 * axis.sigma)
			fail_msg("scan %d: %g +- %g for %g mm", i, axis.offset, axis.sigma, s.offset);
	}
	assert_in_range(near, 5 * scans / 6, scans);
}

/* A bright shell that leaves the field has steep edges at the ends of windows, which look alike on both sides wherever the window
 * is: nearly all axes are found, or said to be unknown. */
TEST(shell_that_leaves_the_field)
{
	static const double parts[] = {-0.15, -0.1, 0.11, 0.14};
	uint64_t random = test_seed();
	struct ellipse head[ELLIPSES];
	int near = 0, wrong = 0;

	for (int i = 0; i < 16; i++) {
		struct parallel_scan s = {1, i % 2 ? 150 : 61, N, 0.5, parts[i / 4] * N * 0.5, 1, 0, i % 4 < 2 ? 180 : 360, NULL};
		const double half = 0.25 * N;
		struct parallel_axis axis;
		float *lines;

		make_body(0.3, &random, head);
		for (int e = 2; e < ELLIPSES; e++)
			head[e].value *= 0.02;
		head[0] = (struct ellipse){0, 0, 0.69 * half, 0.92 * half, 0, 2.0 / N};
		head[1] = (struct ellipse){0, 0.0184 * half, 0.6624 * half, 0.874 * half, 0, -1.0 / N};
		lines = make_scan(&s, head, 0, &random);
		axis = find(s, lines);
		if (axis.reason != PARALLEL_AXIS_KNOWN)
			continue;
		if (fabs(axis.offset - s.offset) <= 0.5 * s.bin)
			near++;
		else
			wrong++;
	}
	assert_in_range(wrong, 0, 1);
	assert_in_range(near, 4, 16);
}

/* Slices without an object do not hide the axis of the others. */
TEST(empty_slices)
{
	enum { SLICES = 12, EMPTY = 9 };
	struct parallel_scan one = {1, 120, N, 0.5, 2.3, 1, 0, 180, NULL}, all = one;
	uint64_t random = test_seed();
	struct ellipse body[ELLIPSES], air[ELLIPSES];
	struct parallel_axis axis;
	float *lines;

	all.n_slices = SLICES;
	lines = take_memory(parallel_size(&all) * sizeof(*lines));
	make_body(0.6, &random, body);
	make_body(0.6, &random, air);
	for (int i = 0; i < ELLIPSES; i++)
		air[i].value = 0;
	for (int k = 0; k < SLICES; k++) {
		float *slice = make_scan(&one, k < EMPTY ? air : body, 0.005, &random);

		memcpy(lines + (size_t)k * parallel_size(&one), slice, parallel_size(&one) * sizeof(*slice));
	}
	axis = find(all, lines);
	assert_int_equal(axis.reason, PARALLEL_AXIS_KNOWN);
	assert_near(axis.offset, one.offset, 0.25 * one.bin);
}

/* Errors of detector bins move all centres of mass alike: an axis that is found by them has an uncertainty that covers it. */
TEST(rings_move_the_centres)
{
	static const double strength[] = {0.02, 0.05, 0.2};
	uint64_t random = test_seed();
	int known = 0, off = 0;

	for (int i = 0; i < 24; i++) {
		struct parallel_scan s = {1, 100, N, 0.5, 1.2, 1, 10, 150, NULL};
		struct ellipse body[ELLIPSES];
		struct parallel_axis axis;
		float *lines, error[N];

		make_body(0.45, &random, body);
		lines = make_scan(&s, body, 0.005, &random);
		for (int t = 0; t < N; t++)
			error[t] = (float)(strength[i % 3] * (random_uniform(&random) - 0.5) * (random_uniform(&random) < 0.4));
		for (size_t k = 0; k < parallel_size(&s); k++)
			lines[k] += error[k % N];
		axis = find(s, lines);
		if (axis.reason != PARALLEL_AXIS_KNOWN)
			continue;
		known++;
		off += fabs(axis.offset - s.offset) > 0.05 * s.bin;
		if (fabs(axis.offset - s.offset) > 3 * axis.sigma)
			fail_msg("scan %d: %g +- %g for %g mm", i, axis.offset, axis.sigma, s.offset);
	}
	assert_true(known >= 8 && off >= 2);
}

/* So do angles that are all stretched: the stretch is found, and the axis by the centres is not known, or has an uncertainty that
 * covers it. */
TEST(stretched_angles_move_the_axis)
{
	static const double stretch[] = {0.92, 0.97, 1, 1.03, 1.08};
	uint64_t random = test_seed();
	int known[5] = {0}, off = 0, said = 0;

	for (int i = 0; i < 40; i++) {
		struct parallel_scan s = {1, 100, N, 0.5, 1.2, 1, 10, 150 * stretch[i % 5], NULL};
		struct ellipse body[ELLIPSES];
		struct parallel_consistency c;
		struct parallel_axis axis;
		float *lines;

		make_body(0.35, &random, body);
		for (int e = 0; e < ELLIPSES; e++)
			body[e].x += 8;
		lines = make_scan(&s, body, 0.002, &random);
		s.arc = 150;
		parallel_consistency_of(&s, lines, NULL, &c, NULL);
		axis = find(s, lines);
		off += c.known && fabs(c.axis_error) > 0.25 * s.bin;
		said += c.stretched;
		if (c.stretched && fabs(c.stretch - (stretch[i % 5] - 1)) > 0.01)
			fail_msg("scan %d: angles %g times as large, not %g", i, 1 + c.stretch, stretch[i % 5]);
		known[i % 5] += axis.reason == PARALLEL_AXIS_KNOWN;
		if (axis.reason == PARALLEL_AXIS_KNOWN && fabs(axis.offset - s.offset) > 3 * axis.sigma)
			fail_msg("scan %d: %g +- %g for %g mm", i, axis.offset, axis.sigma, s.offset);
	}
	assert_int_equal(known[2], 8);
	assert_true(off >= 4);
	assert_in_range(said, 8, 32);
}

/* An axis that leans by 2 degrees is a line through the slices. */
TEST(leaning_axis)
{
	enum { SLICES = 20 };
	struct parallel_scan one = {1, 120, N, 0.5, 0, 1, 0, 180, NULL}, all = one;
	uint64_t random = test_seed();
	struct ellipse body[ELLIPSES];
	struct parallel_axis axis;
	float *lines;

	all.n_slices = SLICES;
	lines = take_memory(parallel_size(&all) * sizeof(*lines));
	make_body(0.7, &random, body);
	for (int k = 0; k < SLICES; k++) {
		float *slice;

		one.offset = 1.1 - tan(2 * M_PI / 180) * (k - 0.5 * (SLICES - 1)) * all.slice;
		slice = make_scan(&one, body, 0.002, &random);
		memcpy(lines + (size_t)k * parallel_size(&one), slice, parallel_size(&one) * sizeof(*slice));
	}
	axis = find(all, lines);
	assert_int_equal(axis.reason, PARALLEL_AXIS_KNOWN);
	assert_near(axis.offset, 1.1, 0.25 * all.bin);
	assert_near(axis.lean, 2, 0.4);
}

/* Half acquisition: filtered backprojection of a whole turn with the axis near one edge is the body, where one side alone measured
 * it, too, by both ways of filtering, and of a list of angles; opposite bins have shares that add up to 2. */
TEST(half_acquisition)
{
	enum { BINS = 96, ANGLES = 360, PIXELS = 128 };
	static float lines[ANGLES * BINS];
	struct parallel_scan s = {1, ANGLES, BINS, 1, 30, 1, 0, 360, NULL};
	struct parallel_protocol p = parallel_protocol_of(ALGORITHM_FBP, PIXELS);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	const double radius = 50, mu = 0.02;
	double share[BINS], listed[ANGLES];

	for (int i = 0; i < ANGLES * BINS; i++)
		lines[i] = (float)(2 * mu * sqrt(fmax(0, radius * radius - pow(parallel_radius(&s, i % BINS), 2))));
	for (int i = 0; i < ANGLES; i++)
		listed[i] = 7 * i % ANGLES - 90;
	for (int run = 0; run < 3; run++) {
		float *image;

		p.route = run == 1 ? PARALLEL_CONVOLUTION : PARALLEL_FOURIER;
		s.angle = run == 2 ? listed : NULL;
		image = parallel_image(&p, &s, dev, lines, NULL);
		for (int j = -45; j <= 45; j++) /* both sides measured up to 17.5 mm from the axis */
			assert_near(image[PIXELS / 2 * PIXELS + PIXELS / 2 + j], mu, 0.02 * mu);
	}
	assert_true(parallel_shares(&s, share));
	for (int t = 0; t < BINS; t++) {
		double opposite = -parallel_radius(&s, t) - s.offset + 0.5 * (BINS - 1);

		if (opposite > -0.5 && opposite < BINS - 0.5)
			assert_near(share[t] + share[lrint(opposite)], 2, 1e-9);
		else
			assert_near(share[t], 2, 0);
	}
	for (int i = 0; i < ANGLES; i++)
		listed[i] = i * 355.0 / ANGLES;
	assert_false(parallel_shares(&s, share));
	s.angle = NULL;
	s.arc = 180;
	assert_false(parallel_shares(&s, share));
	s.arc = 360;
	s.offset = 0;
	assert_false(parallel_shares(&s, share));
}
