/* SPDX-License-Identifier: Apache-2.0 */
/* PET phantoms: positions of shapes, line integrals of planes compared with single rays and areas, totals, no symmetry in the F,
 * noise. */
#include "kernels/tof.h"
#include "recon/core/scan.h"
#include "recon/pet/michelogram.h"
#include "recon/phantom/pet_phantom.h"
#include "tests/recon/pet/michelogram_fixture.h"
#include "tests/recon/phantom/phantom_line.h"
#include "tests/test.h"

#define PI 3.14159265358979323846

TEST_GIVES_BACK(pet_phantom_free);

static struct pet_phantom *make(enum pet_phantom_kind kind)
{
	struct pet_phantom *p = NULL;

	assert_int_equal(pet_phantom_create(kind, PET_CYLINDER_RADIUS, PET_CYLINDER_LENGTH, &p, NULL), 0);
	test_later(give_back_pet_phantom_free, p);
	assert_string_equal(p->activity->name, pet_phantom_name(kind));
	return p;
}

static struct scan *make_scan(bool arc_corrected, int **ret_number)
{
	struct michelogram m = {.scanner = {8, 400, 6, 300, 8, 4},
				.n_radial = 160,
				.n_angles = 12,
				.angle_offset = 3,
				.arc_corrected = arc_corrected};

	fixture_segments(&m, 2, 7);
	return fixture_michelogram_scan(&m, 290, ret_number);
}

static double at(const struct phantom *p, double x, double y, double z)
{
	return phantom_value(p, (double[]){x, y, z});
}

TEST(image_quality)
{
	static const double hot[] = {10, 13, 17, 22}, cold[] = {28, 37};
	struct pet_phantom *p = make(PET_PHANTOM_NEMA_IQ);

	for (int i = 0; i < 6; i++) {
		double r = (i < 4 ? hot[i] : cold[i - 4]) / 2, inside = i < 4 ? 21200 : 0, angle = (i - 2) * 60 * PI / 180;
		double x = 57.2 * cos(angle), y = 57.2 * sin(angle);

		assert_near(at(p->activity, x, y, 0), inside, 1e-9);
		assert_near(at(p->activity, x, y, 0.99 * r), inside, 1e-9);
		assert_near(at(p->activity, x, y, -1.01 * r), 5300, 1e-9);
		assert_near(at(p->activity, x + 0.99 * r, y, 0), inside, 1e-9);
		assert_near(at(p->activity, x, y - 1.01 * r, 0), 5300, 1e-9);
	}
	assert_near(at(p->activity, 0, 100, -67), 5300, 1e-9);
	assert_near(at(p->activity, 0, 100, -69), 0, 1e-9);
	assert_near(at(p->activity, 0, 100, 111), 5300, 1e-9);
	assert_near(at(p->activity, 0, 100, 113), 0, 1e-9);
	assert_near(at(p->activity, 24, 0, 50), 0, 1e-9);
	assert_near(at(p->activity, 146, 0, 0), 5300, 1e-9);
	assert_near(at(p->activity, 148, 0, 0), 0, 1e-9);
	assert_near(at(p->activity, 0, 116, 0), 0, 1e-9);
	assert_near(at(p->attenuation, 24, 0, 50), 0.3 * 0.0096, 1e-15);
	assert_near(at(p->attenuation, 57.2, 0, 0), 0.0096, 1e-15);
	assert_near(at(p->attenuation, 0, 116, 0), 0, 0);
	/* Volume: (ellipse minus insert) times length, in ml. Mass: the ellipse of water, minus 0.7 of the insert's. */
	assert_near(pet_phantom_grams(p), PI * (147 * 115 - 0.7 * 625) * 0.18, 1e-9);
	assert_near(pet_phantom_becquerel(p),
		    5300 * (PI * (147 * 115 - 625) * 0.18 + PI / 6000 * (3 * (1000 + 2197 + 4913 + 10648) - 21952 - 50653)),
		    1e-5);
}

/* Every rotation and mirror image that maps the axes onto each other moves some part of the F to a place with less than half of
 * its activity. */
TEST(no_symmetry)
{
	struct pet_phantom *p = make(PET_PHANTOM_F);

	for (int code = 1; code < 48; code++) {
		static const int permutation[6][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {1, 0, 2}, {0, 2, 1}, {2, 1, 0}};
		int moved = 0;

		for (size_t k = 1; k < p->activity->n; k++) {
			const double *c = p->activity->shapes[k].c;
			double q[3];

			for (int i = 0; i < 3; i++)
				q[i] = c[permutation[code / 8][i]] * (code >> i & 1 ? -1 : 1);
			moved += phantom_value(p->activity, q) < 0.5 * phantom_value(p->activity, c);
		}
		if (!moved)
			print_error("code %d\n", code);
		assert_true(moved > 0);
	}
	/* The parts do not overlap: the value at a part's middle is that of the part plus that of the body. */
	for (size_t k = 1; k < p->activity->n; k++)
		assert_near(phantom_value(p->activity, p->activity->shapes[k].c), p->activity->shapes[k].mu + 500, 1e-9);
}

/* All bins of all planes are phantom_line() between the ends from scan_ray(), rounded to float; bins without a ray are 0. */
TEST(planes)
{
	for (int arc = 0; arc < 2; arc++) {
		int *number, without = 0, hit = 0;
		struct scan *scan = make_scan(arc, &number);
		float *line = take_memory(12 * 160 * sizeof(*line));

		for (int kind = PET_PHANTOM_CYLINDER; kind <= PET_PHANTOM_F; kind++) {
			struct pet_phantom *p = make((enum pet_phantom_kind)kind);
			const struct phantom *parts[] = {p->activity, p->attenuation};

			for (int u = 0; u < scan->n_u * 2; u++) {
				memset(line, 0xff, 12 * 160 * sizeof(*line)); /* NaN */
				assert_int_equal(pet_phantom_project(parts[u & 1], scan, &(int){u / 2}, 1, PET_PHANTOM_ALL_BINS,
								     line, NULL),
						 0);
				for (int i = 0; i < 12 * 160; i++) {
					double a[3], b[3], expected = 0;

					if (scan_ray(scan, &scan->views[i / 160], u / 2, i % 160, a, b))
						expected = phantom_line(parts[u & 1], a, b);
					else
						without++;
					hit += expected > 0;
					/* rounding to float; 1e-9: where shapes cancel */
					assert_near(line[i], expected, 6e-8 * expected + 1e-9);
				}
			}
		}
		assert_true(hit > 100000);
		assert_true(arc ? without > 0 : 1);
	}
}

/* The sum over the radius is the integral over the plane, at every angle; the middle ray is a diameter. */
TEST(areas)
{
	struct pet_phantom *p = make(PET_PHANTOM_CYLINDER);
	int *number;
	struct scan *scan = make_scan(true, &number);
	float line[2 * 12 * 160];

	assert_near(pet_phantom_grams(p), PI * 2000, 1e-9);
	assert_near(pet_phantom_becquerel(p), PI * 2e7, 1e-6);
	assert_int_equal(pet_phantom_project(p->activity, scan, (int[]){7, 3}, 2, PET_PHANTOM_ALL_BINS, line, NULL),
			 0); /* plane 7 of 15: z = 0 */
	assert_near(scan->planes[7].z, 0, 0);
	for (int view = 0; view < 12; view++) {
		double sum = 0;

		for (int v = 0; v < 160; v++)
			sum += line[view * 160 + v];
		/* A half circle summed at steps of h = 0.04 of its radius lacks 2 * 0.2079 * sqrt(2) h^1.5 (Euler and Maclaurin,
		 * root at the ends). */
		assert_near(sum * 4 / (PI * 1e4 * 1e4), 1 - 0.5880 * pow(0.04, 1.5) / (PI / 2), 1e-4);
		assert_near(line[view * 160 + 80], 2e6, 0.1);
	}
	/* The other plane cuts the same disc. */
	assert_memory_equal(line, line + 12 * 160, 12 * 160 * sizeof(*line));
}

TEST(noise)
{
	enum { N = 20000 };
	static float whole[N], pieces[N];
	double sum = 0, squares = 0;
	struct err err = {0};

	for (int i = 0; i < N; i++)
		whole[i] = pieces[i] = i % 2 ? 3.5f : 40;
	assert_int_equal(pet_phantom_noise(whole, N, 100, 7, NULL), 0);
	for (int i = 0; i < N; i += 2500)
		assert_int_equal(pet_phantom_noise(pieces + i, 2500, 100 + (size_t)i, 7, NULL), 0);
	assert_memory_equal(whole, pieces, sizeof(whole));
	for (int i = 0; i < N; i++) {
		double mean = i % 2 ? 3.5 : 40;

		assert_true(whole[i] >= 0 && whole[i] == floorf(whole[i]));
		sum += whole[i];
		squares += (whole[i] - mean) * (whole[i] - mean) / mean;
	}
	assert_near(sum / N, 21.75, 5 * sqrt(21.75 / N)); /* five standard deviations */
	assert_near(squares / N, 1, 5 * sqrt(2.2 / N));
	for (int i = 0; i < N; i++)
		pieces[i] = i % 2 ? 3.5f : 40;
	assert_int_equal(pet_phantom_noise(pieces, N, 100, 8, NULL), 0);
	assert_memory_not_equal(whole, pieces, sizeof(whole));
	pieces[17] = NAN;
	assert_error(pet_phantom_noise(pieces, N, 100, 8, &err), &err, EINVAL, "bin 117");
}

TEST(scaled)
{
	struct pet_phantom *p = make(PET_PHANTOM_NEMA_IQ);
	double becquerel = pet_phantom_becquerel(p), grams = pet_phantom_grams(p);

	assert_near(pet_phantom_reach(p), 147, 1e-12);
	pet_phantom_scale(p, 0.5);
	assert_near(pet_phantom_reach(p), 73.5, 1e-12);
	assert_near(pet_phantom_becquerel(p), becquerel / 8, 1e-6);
	assert_near(pet_phantom_grams(p), grams / 8, 1e-9);
	assert_near(at(p->activity, 28.6, 0, 0), 21200, 1e-9);
	assert_near(at(p->activity, 28.6, 0, 4.3), 5300, 1e-9);
	assert_near(at(p->attenuation, 0, 20, 0), 0.0096, 1e-15);
	p = make(PET_PHANTOM_F);
	assert_near(pet_phantom_reach(p), 110, 1e-12);
}

/* Integrate the phantom times the weight of a TOF bin along a ray, in small steps. */
static double weighted_line(const struct phantom *p, const struct scan_tof *tof, int k, const double a[3], const double b[3])
{
	double length = sqrt(pow(b[0] - a[0], 2) + pow(b[1] - a[1], 2) + pow(b[2] - a[2], 2)), sum = 0;
	int n = 5000;

	for (int i = 0; i < n; i++) {
		double f = (i + 0.5) / n, q[3];

		for (int c = 0; c < 3; c++)
			q[c] = a[c] + f * (b[c] - a[c]);
		sum += phantom_value(p, q) * tof_weight(tof, k, (f - 0.5) * length) * length / n;
	}
	return sum;
}

/* Each TOF bin of some rays is the integral in small steps; the sum over the bins is the line integral. */
TEST(time_of_flight)
{
	int *number, tested = 0;
	struct scan *scan = make_scan(true, &number);
	struct pet_phantom *p = make(PET_PHANTOM_F);
	size_t n = 12 * 160;
	float *bin = take_memory(n * sizeof(*bin)), *sum = take_zeros(n, sizeof(*sum)), *line = take_memory(n * sizeof(*line));

	scan->tof = (struct scan_tof){17, 40, 25};
	for (int u = 2; u < scan->n_u; u += 21) {
		memset(sum, 0, n * sizeof(*sum));
		for (int k = 0; k < 17; k++) {
			assert_int_equal(pet_phantom_project(p->activity, scan, &u, 1, k, bin, NULL), 0);
			for (size_t i = 0; i < n; i++) {
				double a[3], b[3];

				sum[i] += bin[i];
				if (i % 31 || !scan_ray(scan, &scan->views[i / 160], u, (int)(i % 160), a, b))
					continue;
				/* the edges of shapes fall between steps of 0.12 mm */
				assert_near(bin[i], weighted_line(p->activity, &scan->tof, k, a, b), 1500);
				tested += bin[i] > 10000;
			}
		}
		assert_int_equal(pet_phantom_project(p->activity, scan, &u, 1, PET_PHANTOM_ALL_BINS, line, NULL), 0);
		for (size_t i = 0; i < n; i++)
			assert_near(sum[i], line[i], 2e-6 * line[i] + 1e-3);
	}
	assert_true(tested > 100);
}

TEST(refusals)
{
	struct pet_phantom *p = NULL, *good = make(PET_PHANTOM_CYLINDER);
	struct err err = {0};
	int *number;
	struct scan *scan = make_scan(true, &number), dbt = *scan;
	float line[12 * 160];

	assert_error(pet_phantom_create((enum pet_phantom_kind)4, 1, 1, &p, &err), &err, EINVAL, "kind 4");
	assert_error(pet_phantom_create(PET_PHANTOM_CYLINDER, NAN, 1, &p, &err), &err, EINVAL, "nan mm radius");
	assert_error(pet_phantom_create(PET_PHANTOM_CYLINDER, 1, 0, &p, &err), &err, EINVAL, "0 mm length");
	assert_null(p);
	assert_null(pet_phantom_name((enum pet_phantom_kind)0));
	assert_null(pet_phantom_free(NULL));
	assert_int_equal(pet_phantom_project(good->activity, scan, &scan->n_u, 1, PET_PHANTOM_ALL_BINS, line, &err), -EINVAL);
	assert_int_equal(pet_phantom_project(good->activity, scan, (int[]){0, -1}, 2, PET_PHANTOM_ALL_BINS, line, &err), -EINVAL);
	dbt.kind = SCAN_DBT;
	assert_error(pet_phantom_project(good->activity, &dbt, &(int){0}, 1, PET_PHANTOM_ALL_BINS, line, &err), &err, EINVAL,
		     "not parallel");
	assert_error(pet_phantom_project(good->activity, scan, &(int){0}, 1, 0, line, &err), &err, EINVAL,
		     "TOF bin 0 does not exist; the scan has 0");
	good->activity->shapes[0].kind = SHAPE_BOX;
	assert_error(pet_phantom_project(good->activity, scan, &(int){0}, 1, PET_PHANTOM_ALL_BINS, line, &err), &err, EINVAL,
		     "shape 0");
}
