/* SPDX-License-Identifier: Apache-2.0 */
/* Factors of detectors that contain the attenuation of a body are found, and no others (recon/pet/attenuation_in_factors.h). */
#include "recon/pet/attenuation_in_factors.h"
#include "recon/phantom/poisson.h"
#include "tests/recon/pet/michelogram_fixture.h"
#include "tests/test.h"

#define DETECTORS 320
#define RADIAL 65
#define ANGLES 160
#define BIN 6.0 /* mm */
#define WATER 0.0096

/* An ellipse of water, mm; what the detectors do to the factors. */
struct scene {
	double axes[2], at;  /* half axes; its place along x */
	double efficiencies; /* standard deviation of ln of that of a detector */
	double drift;	     /* along the ring, twice around: ln, to both sides */
	double geometry;     /* ln of the factor of the outermost rays, with the square of the radius */
	double counts;	     /* of a bin, from which the factors were measured; 0: without noise */
	double contained;    /* part of the attenuation that is in the factors: 0 or 1 */
	double other;	     /* mu of the CT over that of the factors */
	bool gaps;	     /* detectors 0, 20, 40 ... are dead */
};

static double uniform(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) / 16777216.0;
}

/* Sum of 12: mean 0, standard deviation 1. */
static double normal(uint32_t *state)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += uniform(state);
	return sum;
}

static double chord(const struct scene *s, double phi, double r)
{
	double a = s->axes[0] * cos(phi), b = s->axes[1] * sin(phi), w = a * a + b * b, d = r - s->at * cos(phi);

	return d * d < w ? 2 * s->axes[0] * s->axes[1] * sqrt(w - d * d) / w : 0;
}

static struct attenuation_in_factors find(const struct scene *s, uint32_t seed)
{
	struct michelogram m = {.scanner = {.rings = 6, .detectors = DETECTORS, .ring_spacing = 4, .radius = 400, .bin = BIN},
				.n_radial = RADIAL,
				.n_angles = ANGLES};
	struct attenuation_in_factors ret;
	double of[6][DETECTORS];
	float *factors, *attenuation;
	size_t i = 0, n;
	int plane = 0;

	fixture_segments(&m, 3, 4);
	n = michelogram_size(&m);
	factors = take_memory(n * sizeof(*factors));
	attenuation = take_memory(n * sizeof(*attenuation));
	for (int ring = 0; ring < 6; ring++)
		for (int c = 0; c < DETECTORS; c++)
			of[ring][c] = s->efficiencies * normal(&seed) + s->drift * cos(4 * M_PI * c / DETECTORS);
	for (int k = 0; k < m.n_segments; k++)
		for (int p = 0; p < m.segments[k].n_planes; p++, plane++)
			for (int a = 0; a < ANGLES; a++)
				for (int t = 0; t < RADIAL; t++, i++) {
					double phi = a * M_PI / ANGLES, r = (t - RADIAL / 2) * BIN,
					       line = WATER * chord(s, phi, r);
					int half = (int)floor((t - RADIAL / 2) / 2.0), ring = p % 6;
					int c = (a + half + DETECTORS) % DETECTORS;
					int d = (a - (t - RADIAL / 2 - half) + DETECTORS + DETECTORS / 2) % DETECTORS;
					double y = of[ring][c] + of[5 - ring][d] + s->geometry * pow(r / (BIN * RADIAL / 2), 2) +
						   log(1 + p % 3) + s->contained * line,
					       f = exp(-y);

					if (s->counts > 0)
						f *= poisson_draw(s->counts * exp(-s->contained * line),
								  poisson_stream(seed, i)) /
						     (s->counts * exp(-s->contained * line));
					if (s->gaps && (c % 20 == 0 || d % 20 == 0))
						f = c % 40 == 0 ? 0 : 1e-8;
					factors[i] = (float)f;
					attenuation[i] = (float)exp(-line * (s->other > 0 ? s->other : 1));
				}
	ret = attenuation_in_factors(&m, factors, attenuation);
	return ret;
}

static const struct {
	const char *name;
	struct scene s;
	bool known; /* the slope decides */
} scenes[] = {
	{"body", {{180, 110}, 20, 0.2, 0.1, 0.4, 0, 0, 0, true}, true},
	{"on the side", {{110, 180}, -15, 0.2, 0.1, 0.4, 0, 0, 1.05, true}, true},
	{"arms and noise", {{190, 100}, 0, 0.3, 0.15, 0.6, 50, 0, 0.95, false}, true},
	{"head", {{95, 75}, 5, 0.2, 0.05, 0.4, 0, 0, 0, true}, true},
	{"cylinder", {{100, 100}, 0, 0.1, 0.05, 0.4, 0, 0, 0, true}, true},
	{"mouse", {{14, 14}, 0, 0.2, 0.1, 0.4, 0, 0, 0, true}, false},
};

TEST(contained)
{
	for (size_t c = 0; c < sizeof(scenes) / sizeof(scenes[0]); c++)
		for (int is = 0; is < 2; is++)
			for (uint32_t seed = 1; seed <= (test_tier() == 2 ? 8 : 2); seed++) {
				struct scene s = scenes[c].s;
				struct attenuation_in_factors found;

				s.contained = is;
				found = find(&s, seed);
				if (seed < 3)
					print_message("%s, %d: %d, slope %.3f, deviation %.3f\n", scenes[c].name, is, found.found,
						      found.slope, found.deviation);
				assert_true(found.found == (is && scenes[c].known));
			}
}

/* Nothing is found where there is nothing to compare: no body, no bins. */
TEST(nothing)
{
	struct scene s = scenes[0].s;
	struct attenuation_in_factors found;

	s.axes[0] = s.axes[1] = 0.001;
	s.at = 1000;
	found = find(&s, 1);
	assert_true(!found.found && isnan(found.slope));
	s = scenes[0].s;
	s.efficiencies = 1000; /* factors of 0 and infinity */
	s.gaps = true;
	found = find(&s, 1);
	assert_false(found.found);
}
