/* SPDX-License-Identifier: Apache-2.0 */
/* The breast made from a seed: its texture has the spectrum of mammograms, the glandular share is the one that was asked for, a
 * right breast mirrors a left one, threads do not matter, and its lesions are in it. */
#include <time.h>

#include "recon/phantom/breast_phantom.h"
#include "tests/test.h"

void omp_set_num_threads(int) __attribute__((weak)); /* not there without OpenMP */

#define SQUARE 128 /* voxels along the sides of the squares whose spectra are computed: 32 mm */
#define ADIPOSE 0.0456
#define GLANDULAR 0.0802

static const struct breast_options small = {.room = {60, 90}, .thickness = 20, .glandular = 20, .seed = 1};

struct made {
	struct voxel_phantom *voxels;
	struct phantom *details;
	struct breast_truth truth;
};

static struct made make(const struct breast_options *o)
{
	struct made m = {0};
	struct err err = {0};

	assert_done(breast_phantom_create(o, &m.voxels, &m.details, &m.truth, &err), &err);
	return m;
}

static void drop(struct made *m)
{
	voxel_phantom_free(m->voxels);
	phantom_free(m->details);
}

static double voxel_mu(const struct voxel_phantom *p, const double at[3])
{
	size_t i[3];

	for (int c = 0; c < 3; c++) {
		double k = floor((at[c] - p->grid.lo[c]) / p->grid.h[c]);

		if (k < 0 || k >= p->grid.n[c])
			return 0;
		i[c] = (size_t)k;
	}
	return p->material[p->voxel[i[0] + (size_t)p->grid.n[0] * (i[1] + (size_t)p->grid.n[1] * i[2])]].mu;
}

/* ---- spectrum ---- */

/* Compute the line integral along z of each column; NAN where the breast is not as thick as the plates allow, or in muscle. */
static double *columns_of(const struct voxel_phantom *p)
{
	size_t n = (size_t)p->grid.n[0] * (size_t)p->grid.n[1];
	double *line = take_zeros(n, sizeof(*line));

	for (size_t i = 0; i < n; i++) {
		int thick = 0;

		for (int k = 0; k < p->grid.n[2]; k++) {
			double mu = p->material[p->voxel[i + n * (size_t)k]].mu;

			thick += mu > 0;
			line[i] += mu > 0.0861 ? NAN : mu * p->grid.h[2];
		}
		if (thick < 0.97 * p->grid.n[2])
			line[i] = NAN;
	}
	return line;
}

/* Add the power of a square at the frequencies of a ring of `count` directions, with a Hann window; false: a part of the square is
 * not inside. */
static bool add_power(const double *line, size_t width, const double *frequency, int n, double *power)
{
	enum { DIRECTIONS = 12 };
	double mean = 0, window[SQUARE];

	for (size_t j = 0; j < SQUARE; j++)
		for (size_t i = 0; i < SQUARE; i++)
			mean += line[j * width + i] / (SQUARE * SQUARE);
	if (isnan(mean))
		return false;
	for (int i = 0; i < SQUARE; i++)
		window[i] = 0.5 - 0.5 * cos(2 * M_PI * (i + 0.5) / SQUARE);
	for (int f = 0; f < n; f++)
		for (int d = 0; d < DIRECTIONS; d++) {
			double fx = 2 * M_PI * frequency[f] * cos(M_PI * d / DIRECTIONS) * BREAST_VOXEL;
			double fy = 2 * M_PI * frequency[f] * sin(M_PI * d / DIRECTIONS) * BREAST_VOXEL, re = 0, im = 0;

			for (size_t j = 0; j < SQUARE; j++)
				for (size_t i = 0; i < SQUARE; i++) {
					double value = (line[j * width + i] - mean) * window[i] * window[j];

					re += value * cos(fx * (double)i + fy * (double)j);
					im += value * sin(fx * (double)i + fy * (double)j);
				}
			power[f] += re * re + im * im;
		}
	return true;
}

/* Fit the exponent of the spectrum from 0.15 to 0.7 periods in a mm, the range in which mammograms have a power law (Burgess et al.
 * 2001). */
static double exponent_of(const struct breast_options *o)
{
	enum { FREQUENCIES = 8 };
	struct made m = make(o);
	double *line = columns_of(m.voxels), frequency[FREQUENCIES], power[FREQUENCIES] = {0}, sx = 0, sy = 0, sxx = 0, sxy = 0;
	size_t width = (size_t)m.voxels->grid.n[0], height = (size_t)m.voxels->grid.n[1];
	int squares = 0;

	for (int f = 0; f < FREQUENCIES; f++)
		frequency[f] = 0.15 * pow(0.7 / 0.15, f / (FREQUENCIES - 1.0));
	for (size_t j = 0; j + SQUARE <= height; j += SQUARE / 2)
		for (size_t i = 4; i + SQUARE <= width; i += SQUARE / 2)
			squares += add_power(line + j * width + i, width, frequency, FREQUENCIES, power);
	assert_true(squares >= 3);
	for (int f = 0; f < FREQUENCIES; f++) {
		double x = log(frequency[f]), y = log(power[f]);

		sx += x;
		sy += y;
		sxx += x * x;
		sxy += x * y;
	}
	drop(&m);
	return -(FREQUENCIES * sxy - sx * sy) / (FREQUENCIES * sxx - sx * sx);
}

TEST(spectrum_of_mammograms)
{
	static const struct breast_options cases[] = {
		{.room = {120, 160}, .thickness = 40, .glandular = 20, .seed = 1},
		{.room = {239, 305}, .thickness = 50, .glandular = 20, .seed = 2},
		{.room = {239, 305}, .thickness = 50, .glandular = 30, .muscle = true, .seed = 3},
		{.room = {239, 305}, .thickness = 60, .glandular = 12, .seed = 4},
	};

	for (size_t k = 0; k < (test_tier() == 2 ? 4 : 1); k++) {
		double exponent = exponent_of(&cases[k]);

		print_message("case %zu: exponent %.2f\n", k, exponent);
		if (!(exponent >= 2.7 && exponent <= 3.3))
			fail_msg("case %zu: exponent %.2f", k, exponent);
	}
}

/* ---- share, sides, threads ---- */

/* Count the share in the voxels of mixtures, whose attenuation is on the line from adipose to glandular. */
static double counted_share(const struct voxel_phantom *p)
{
	double sum = 0, n = 0;

	for (size_t i = 0; i < grid_size(&p->grid); i++) {
		const struct voxel_material *m = &p->material[p->voxel[i]];
		double level = (m->mu - ADIPOSE) / (GLANDULAR - ADIPOSE);

		if (m->role != VOXEL_TISSUE || level < 0 || level > 1 || fabs(level * 63 - round(level * 63)) > 1e-6)
			continue;
		sum += level;
		n++;
	}
	return 100 * sum / n;
}

TEST(glandular_share)
{
	static const double shares[] = {BREAST_GLANDULAR_LEAST, 10, 20, 35, BREAST_GLANDULAR_MOST};

	for (size_t k = 0; k < test_count(5, 3); k++) {
		size_t i = test_nth(k, 5, 3);
		struct breast_options o = small;

		o.glandular = shares[i];
		o.muscle = k % 2;
		o.seed = 11 + (unsigned)i;
		struct made m = make(&o);

		if (fabs(m.truth.glandular - shares[i]) > 2)
			fail_msg("%g percent: made %g", shares[i], m.truth.glandular);
		assert_true(fabs(m.truth.glandular - counted_share(m.voxels)) < 1e-6);
		drop(&m);
	}
}

TEST(sides_mirror_each_other)
{
	struct breast_options o = small;

	o.muscle = true;
	o.clips = 3;
	struct made left = make(&o);
	o.mirrored = true;
	struct made right = make(&o);
	size_t nx = (size_t)left.voxels->grid.n[0], ny = (size_t)left.voxels->grid.n[1], nz = (size_t)left.voxels->grid.n[2];

	for (size_t k = 0; k < nz; k++)
		for (size_t j = 0; j < ny; j++)
			assert_memory_equal(left.voxels->voxel + nx * (j + ny * k),
					    right.voxels->voxel + nx * (ny - 1 - j + ny * k), nx);
	assert_int_equal(left.details->n, right.details->n);
	for (size_t i = 0; i < left.details->n; i++) {
		const struct shape *a = &left.details->shapes[i], *b = &right.details->shapes[i];

		assert_true(a->c[0] == b->c[0] && a->c[1] == -b->c[1] && a->c[2] == b->c[2] && a->mu == b->mu);
	}
	/* The muscle is at the upper end: at large y of a left breast. */
	assert_true(voxel_mu(left.voxels, (double[]){1, 25, 10}) > 0.0801 &&
		    voxel_mu(right.voxels, (double[]){1, -25, 10}) > 0.0801);
	assert_true(voxel_mu(left.voxels, (double[]){1, -25, 10}) < 0.0803);
	drop(&left);
	drop(&right);
}

TEST(same_bits_with_any_number_of_threads)
{
	struct made m[3];
	struct breast_options o = small;

	for (int i = 0; i < 3; i++) {
		if (omp_set_num_threads)
			omp_set_num_threads(i == 1 ? 2 : 1);
		o.seed = i == 2 ? 2 : 1;
		m[i] = make(&o);
	}
	size_t n = grid_size(&m[0].voxels->grid);

	assert_int_equal(n, grid_size(&m[1].voxels->grid));
	assert_memory_equal(m[0].voxels->voxel, m[1].voxels->voxel, n);
	assert_memory_equal(m[0].details->shapes, m[1].details->shapes, m[0].details->n * sizeof(struct shape));
	assert_memory_equal(&m[0].truth, &m[1].truth, sizeof(m[0].truth));
	assert_memory_not_equal(m[0].details->shapes, m[2].details->shapes, m[0].details->n * sizeof(struct shape));
	for (int i = 0; i < 3; i++)
		drop(&m[i]);
}

/* ---- lesions ---- */

static bool is_inside(const struct voxel_phantom *p, const struct shape *s)
{
	return voxel_mu(p, s->c) >= ADIPOSE;
}

TEST(lesions_are_in_the_breast)
{
	for (unsigned seed = 1; seed <= (test_tier() == 2 ? 20 : 2); seed++) {
		struct breast_options o = {.room = {80, 140}, .thickness = 22 + 6 * (seed % 8), .glandular = 20, .seed = seed};
		struct phantom *shapes = NULL;
		int masses = 0, beads = 0, specks = 0, clips = 0;

		o.muscle = seed % 2;
		o.clips = seed % 3;
		struct made m = make(&o);

		assert_int_equal(voxel_phantom_shapes(m.voxels, &shapes, NULL), 0);
		for (size_t i = 0; i < shapes->n; i++) {
			const struct shape *s = &shapes->shapes[i];
			double mu = voxel_mu(m.voxels, s->c);

			if (s->role != ROLE_LESION)
				continue;
			masses++;
			assert_true(mu == 0.0844 || mu == 0.081);
			for (int c = 0; c < 3; c++)
				if (!(s->r[c] > 1 && s->r[c] < 7))
					fail_msg("seed %u: mass at %g %g %g: half axis %d %g", seed, s->c[0], s->c[1], s->c[2], c,
						 s->r[c]);
		}
		for (size_t i = 0; i < m.details->n; i++) {
			const struct shape *s = &m.details->shapes[i];

			if (!is_inside(m.voxels, s))
				fail_msg("seed %u: detail %zu at %g %g %g is in air", seed, i, s->c[0], s->c[1], s->c[2]);
			beads += s->role == ROLE_BEAD;
			specks += s->role == ROLE_LESION && s->r[0] >= 0.075 && s->r[0] <= 0.25;
			clips += s->role == ROLE_METAL;
		}
		assert_int_equal(masses, 4);
		assert_int_equal(beads, 6);
		assert_int_equal(specks, 18);
		assert_int_equal(clips, o.clips);
		phantom_free(shapes);
		drop(&m);
	}
}

/* ---- limits ---- */

static const struct {
	REFUSED;
	struct breast_options o;
} refused[] = {
	{{"thin", EINVAL, "19.99 mm"}, {.room = {60, 90}, .thickness = 19.99, .glandular = 20}},
	{{"thick", EINVAL, "100.01 mm"}, {.room = {60, 90}, .thickness = 100.01, .glandular = 20}},
	{{"no thickness", EINVAL, "nan mm"}, {.room = {60, 90}, .thickness = NAN, .glandular = 20}},
	{{"fat", EINVAL, "4.99 percent"}, {.room = {60, 90}, .thickness = 50, .glandular = 4.99}},
	{{"dense", EINVAL, "60.01 percent"}, {.room = {60, 90}, .thickness = 50, .glandular = 60.01}},
	{{"narrow", EINVAL, "39.99 x 90 mm"}, {.room = {39.99, 90}, .thickness = 50, .glandular = 20}},
	{{"short", EINVAL, "60 x 39.99 mm"}, {.room = {60, 39.99}, .thickness = 50, .glandular = 20}},
	{{"metal", EINVAL, "21 clips; allowed: 0 to 20"}, {.room = {60, 90}, .thickness = 50, .glandular = 20, .clips = 21}},
	{{"no metal", EINVAL, "-1 clips"}, {.room = {60, 90}, .thickness = 50, .glandular = 20, .clips = -1}},
	{{"long", EINVAL, "60 x 1000.01 mm"}, {.room = {60, 1000.01}, .thickness = 50, .glandular = 20}},
};

static int try_breast(const void *row, struct err *err)
{
	struct made m = {0};

	return breast_phantom_create((const struct breast_options *)((const char *)row + offsetof(__typeof__(refused[0]), o)),
				     &m.voxels, &m.details, &m.truth, err);
}

REFUSES(breasts, refused, try_breast)

TEST(at_the_limits)
{
	static const struct breast_options allowed[] = {
		{.room = {BREAST_ROOM_LEAST, BREAST_ROOM_LEAST},
		 .thickness = BREAST_THICKNESS_LEAST,
		 .glandular = 20,
		 .clips = BREAST_CLIPS_MOST},
		{.room = {BREAST_ROOM_LEAST, 1000}, .thickness = BREAST_THICKNESS_MOST, .glandular = BREAST_GLANDULAR_MOST},
	};

	for (size_t i = 0; i < 2; i++) {
		struct made m = make(&allowed[i]);

		assert_true(fabs(m.voxels->grid.n[2] * m.voxels->grid.h[2] - allowed[i].thickness) < 1e-9);
		assert_true(m.voxels->grid.n[0] * m.voxels->grid.h[0] < allowed[i].room[0] + 8);
		assert_true(m.voxels->grid.n[1] * m.voxels->grid.h[1] < allowed[i].room[1]);
		drop(&m);
	}
}

/* 6 s of one processor when this was written. */
TEST(made_in_seconds, .tier = 2)
{
	const struct breast_options o = {.room = {239, 305}, .thickness = 50, .glandular = 20, .seed = 1};
	clock_t begun = clock();
	struct made m = make(&o);

	assert_true((double)(clock() - begun) / CLOCKS_PER_SEC < 30);
	drop(&m);
}
