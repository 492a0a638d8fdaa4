/* SPDX-License-Identifier: Apache-2.0 */
/* A background in counts and one that was divided by the factors are told apart, whatever the detectors and the object are like;
 * what cannot be told is said or left alone. */
#include "node/reconstruct/additive_sense.h"
#include "tests/test.h"

#define RINGS 12
#define PLANES (2 * RINGS - 1) /* more than are used */
#define VIEWS 48
#define N_RADIAL 61
#define BINS (VIEWS * N_RADIAL)

struct background {
	double object;	  /* mm, radius of a cylinder of water; 0: none */
	double detectors; /* standard deviation of ln normalisation; 0: none */
	double followed;  /* b has normalisation^-followed */
	double over;	  /* the values are b m^-over */
	bool multiplied;  /* by its header it is b / m */
	int rc;
	const char *sentence; /* NULL: none */
};

static uint64_t state_of_noise = 88172645463325252U;

static double normal(void)
{
	double sum = -6;

	for (int i = 0; i < 12; i++) {
		state_of_noise ^= state_of_noise << 13;
		state_of_noise ^= state_of_noise >> 7;
		state_of_noise ^= state_of_noise << 17;
		sum += (double)(state_of_noise >> 11) * 0x1p-53;
	}
	return sum;
}

static int judge(const struct background *of, char *sentence, struct err *err)
{
	struct michelogram_segment segments[] = {{1, 1, RINGS - 1}, {0, 0, PLANES}};
	struct michelogram m = {.scanner = {RINGS, 2 * VIEWS, 4, 300, 5, 4},
				.n_radial = N_RADIAL,
				.n_angles = VIEWS,
				.n_segments = 2,
				.segments = segments};
	static float factors[BINS], normalisation[BINS], b[BINS];
	struct additive_sense *s;
	int rc;

	assert_int_equal(additive_sense_create(&m, &s, err), 0);
	for (size_t p = 0; p < PLANES; p++) {
		for (int i = 0; i < BINS; i++) {
			double r = (i % N_RADIAL - 30) * 4 - 20 * sin(M_PI * (i / N_RADIAL) / VIEWS);
			double acf = exp(2 * 0.0096 * sqrt(fmax(of->object * of->object - r * r, 0)));
			double norm = exp(of->detectors * normal()), counts = 3 + 10 * exp(-r * r / 5000);

			normalisation[i] = (float)norm;
			factors[i] = (float)(1 / (norm * acf));
			b[i] = (float)(counts * pow(norm, -of->followed) * pow(norm * acf, of->over));
			if (of->multiplied) /* as the reader does */
				b[i] *= factors[i];
		}
		if (of->detectors > 0)
			additive_sense_normalisation(s, RINGS - 1 + p, normalisation);
		additive_sense_factors(s, RINGS - 1 + p, factors);
		additive_sense_background(s, RINGS - 1 + p, b);
	}
	rc = additive_sense_check(s, of->multiplied, sentence, err);
	additive_sense_free(s);
	return rc;
}

TEST(each_kind)
{
	static const struct background rows[] = {
		/* counts */
		{.object = 100},
		{.object = 100, .detectors = 0.1},
		{.object = 100, .detectors = 0.1, .followed = 1},
		{.detectors = 0.1, .followed = 1},
		/* b / m, given as such */
		{.object = 100, .over = 1, .multiplied = true},
		{.object = 100, .detectors = 0.1, .over = 1, .multiplied = true},
		{.object = 100, .detectors = 0.1, .followed = 1, .over = 1, .multiplied = true},
		{.detectors = 0.1, .followed = 1, .over = 1, .multiplied = true},
		/* the other way round */
		{.object = 100, .over = 1, .rc = -EBADMSG},
		{.object = 30, .over = 1, .rc = -EBADMSG},
		{.object = 100, .detectors = 0.1, .over = 1, .rc = -EBADMSG},
		{.object = 100, .detectors = 0.1, .followed = 1, .over = 1, .rc = -EBADMSG},
		{.detectors = 0.1, .over = 1, .rc = -EBADMSG},
		{.object = 100, .multiplied = true, .rc = -EBADMSG},
		{.object = 100, .detectors = 0.1, .followed = 1, .multiplied = true, .rc = -EBADMSG},
		{.detectors = 0.1, .followed = 1, .multiplied = true, .rc = -EBADMSG},
		/* doubtful */
		{.object = 100, .over = 0.5, .sentence = "the exponent 0.5"},
		{.object = 100, .over = -1, .sentence = "the exponent -1.0"},
		{.detectors = 0.1, .sentence = "of counts of real detectors it is -1"},
		{.detectors = 0.1, .followed = 1, .over = 1, .sentence = "of counts of real detectors it is -1"},
		/* nothing is there to tell them apart */
		{.over = 1},
		{.detectors = 1e-4, .over = 1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char sentence[ADDITIVE_SENSE_TEXT] = "";
		struct err err = {0};
		int rc = judge(&rows[i], sentence, &err);

		if (rc != rows[i].rc || (rc == 0 && !rows[i].sentence != !sentence[0]) ||
		    (rows[i].sentence && !strstr(sentence, rows[i].sentence)))
			fail_msg("row %zu: %d: %s %s", i, rc, sentence, err.msg);
	}
}
