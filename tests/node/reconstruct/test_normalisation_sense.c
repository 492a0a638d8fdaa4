/* SPDX-License-Identifier: Apache-2.0 */
/* A normalisation that is upside down is refused; a right one is not, nor one that the counts do not follow or cannot prove. */
#include "node/reconstruct/normalisation_sense.h"
#include "tests/test.h"

#define RINGS 40
#define PLANES (2 * RINGS - 1) /* more than are used */
#define DETECTORS 192
#define VIEWS (DETECTORS / 2)
#define N_RADIAL 41
#define BINS (VIEWS * N_RADIAL)

static uint64_t state_of_noise = 88172645463325252U;

static double uniform(void)
{
	state_of_noise ^= state_of_noise << 13;
	state_of_noise ^= state_of_noise >> 7;
	state_of_noise ^= state_of_noise << 17;
	return (double)(state_of_noise >> 11) * 0x1p-53;
}

static double normal(void)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += uniform();
	return sum;
}

struct acquisition {
	double counts;	 /* of a bin in the middle of the object */
	double crystals; /* standard deviation of ln efficiency */
	double power;	 /* value = efficiency^power */
	double followed; /* counts have efficiency^followed */
	int tof;	 /* TOF bins */
	bool gaps;	 /* one of 12 detectors is dead: no counts, infinite values; upside down, small ones */
};

/* Return the code of the check. */
static int judge(const struct acquisition *scan, struct err *err)
{
	static double efficiency[PLANES][DETECTORS];
	struct michelogram_segment segments[] = {{1, 1, RINGS - 1}, {0, 0, PLANES}};
	struct michelogram m = {.scanner = {RINGS, DETECTORS, 4, 300, 5, 4},
				.n_radial = N_RADIAL,
				.n_angles = VIEWS,
				.n_segments = 2,
				.segments = segments};
	struct normalisation_sense *s;
	static float counts[BINS], values[PLANES][BINS];
	int rc;

	assert_int_equal(normalisation_sense_create(&m, &s, err), 0);
	assert_non_null(s);
	for (int p = 0; p < PLANES; p++)
		for (int i = 0; i < DETECTORS; i++)
			efficiency[p][i] = exp(scan->crystals * normal());
	for (int k = 0; k < scan->tof; k++) {
		for (size_t p = 0; p < PLANES; p++) {
			for (int i = 0; i < BINS; i++) {
				int view = i / N_RADIAL, t = i % N_RADIAL - N_RADIAL / 2;
				int one = (view + (t + 40) / 2) % DETECTORS, two = (view + VIEWS - (t + 41) / 2 + 20) % DETECTORS;
				double at = (t - 8 * sin(M_PI * view / VIEWS)) / 9, e = efficiency[p][one] * efficiency[p][two];
				double expected = scan->counts / scan->tof * exp(-at * at) * pow(e, scan->followed);
				bool gap = scan->gaps && (one % 12 == 0 || two % 12 == 0);

				counts[i] = gap ? 0 : (float)fmax(0, floor(expected + sqrt(expected) * normal() + 0.5));
				values[p][i] = (float)pow(e, scan->power);
				if (gap)
					values[p][i] = scan->power < 0 ? INFINITY : 1e-6F;
			}
			normalisation_sense_counts(s, RINGS - 1 + p, counts);
		}
	}
	for (size_t p = 0; p < PLANES; p++)
		normalisation_sense_values(s, RINGS - 1 + p, values[p]);
	rc = normalisation_sense_check(s, err);
	normalisation_sense_free(s);
	return rc;
}

TEST(upside_down_is_refused)
{
	static const struct acquisition scans[] = {{40, 0.1, 1, 1, 1, false}, {40, 0.1, 1, 1, 5, true}, {4, 0.1, 1, 1, 1, false}};
	struct err err;

	for (size_t i = 0; i < sizeof(scans) / sizeof(scans[0]); i++) {
		assert_error(judge(&scans[i], &err), &err, EBADMSG,
			     "NORMALISATION: where its values are higher than those of neighbouring views, the counts "
			     "are, too, in 32 direct planes (exponent ");
		assert_non_null(strstr(err.msg, ": give 1 / value"));
	}
}

TEST(others_are_not)
{
	static const struct acquisition scans[] = {
		{40, 0.1, -1, 1, 1, false},   {40, 0.1, -1, 1, 5, true}, {0.5, 0.1, -1, 1, 1, false}, /* right */
		{40, 0.1, 1, 0, 1, false},    /* the counts do not follow */
		{40, 0.005, 1, 1, 1, false},  /* too smooth */
		{0.002, 0.1, 1, 1, 1, false}, /* too few counts */
		{0, 0.1, 1, 1, 1, false},
	};
	struct michelogram_segment segment = {0, 0, 1};
	struct michelogram few = {.n_radial = 8, .n_angles = 20, .n_segments = 1, .segments = &segment};
	struct normalisation_sense *none;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(scans) / sizeof(scans[0]); i++)
		assert_int_equal(judge(&scans[i], &err), 0);
	assert_int_equal(normalisation_sense_create(&few, &none, &err), 0);
	assert_null(none);
	assert_int_equal(normalisation_sense_check(none, &err), 0);
}
