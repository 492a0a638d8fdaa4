/* SPDX-License-Identifier: Apache-2.0 */
/* Interfile headers with TOF bins: STIR's keys and their synonyms, the order of the bins, what the scanner completes, refusals.
 * The position of a TOF bin is checked against STIR's definition: photons of bin k arrive at the first end k widths later than at
 * the second (odd numbers of bins), half a width more for even numbers; in memory bins ascend towards the first end. */
#include "tests/node/format/interfile_fixture.h"
#include "tests/test.h"

#define MM_PER_PS (299.792458 / 2000)
#define KEYS                                                                                                                     \
	"TOF mashing factor := 2\nMaximum number of (unmashed) TOF time bins := 10\n"                                            \
	"Size of unmashed TOF time bins (ps) := 150\nTOF timing resolution (ps) := 200\n"
#define AXIS "number of dimensions := 5\nmatrix axis label [5] := timing positions\n!matrix size [5] := 5\n" KEYS

/* GOOD with five TOF bins of 300 ps, with one text of these lines replaced. */
static const char *tof_header(const char *from, const char *to)
{
	static char lines[1000];
	const char *at = strstr(AXIS, from);

	if (!at)
		fail_msg("no \"%s\" in the lines", from);
	snprintf(lines, sizeof(lines), "%.*s%s%s", (int)(at - AXIS), AXIS, to, at + strlen(from));
	return WITH({"number of dimensions := 4\n", lines});
}

TEST(test_keys)
{
	static const char *const same[][2] = {
		{"", ""},
		{"TOF mashing factor", "%TOF mashing factor"},
		{"Maximum number of (unmashed) TOF time bins", "Number of TOF time bins"},
		{"Size of unmashed TOF time bins (ps)", "Size of timing bin (ps)"},
		{"TOF timing resolution (ps)", "timing resolution (ps)"},
		{"Maximum number of (unmashed) TOF time bins := 10\n", ""},
		{"TOF mashing factor := 2\nMaximum number of (unmashed) TOF time bins := 10\nSize of unmashed TOF time bins (ps) "
		 ":= 150",
		 "Number of TOF time bins := 5\nSize of timing bin (ps) := 300\nSize of unmashed TOF time bins (ps) := 300"},
		{KEYS, KEYS "TOF bin order := {-2, -1, 0, 1, 2}\n"},
	};
	struct err err = {0};
	struct interfile f;
	size_t planes, values;

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		must_parse(tof_header(same[i][0], same[i][1]), &f);
		if (interfile_complete(&f, NULL, &err) < 0)
			fail_msg("keys %zu: %s", i, err.msg);
		assert_int_equal(f.m.tof.n, 5);
		assert_true(fabs(f.m.tof.width - 300 * MM_PER_PS) < 1e-6);
		assert_true(fabs(f.m.tof.sigma - 200 * MM_PER_PS / (2 * sqrt(2 * log(2)))) < 1e-6);
		interfile_shape(&f, &planes, &values);
		assert_true(planes == 5 * 6 && values == 12);
		assert_int_equal(interfile_bytes(&f), 5 * 6 * 12 * 4);
	}
}

/* One timing position, or none, is no time of flight, whatever the scanner could measure. */
TEST(test_none)
{
	struct interfile f;

	must_parse(WITH({"number of dimensions := 4\n", "number of dimensions := 4\n" KEYS}), &f);
	assert_int_equal(f.m.tof.n, 0);
}

/* Check where an event is stored whose photon arrives `later` ps later at the second end than at the first: stored bin i. */
static void check_bin(const struct interfile *f, const float *values, size_t stored, double later)
{
	const struct scan_tof *tof = &f->m.tof;
	double t = -later * MM_PER_PS; /* nearer to the second end: negative */
	size_t bin = (size_t)floor(t / tof->width + 0.5 * tof->n), planes = michelogram_planes(&f->m);
	float plane[12];

	for (size_t p = 0; p < planes; p++) {
		interfile_plane(f, (const uint8_t *)values, bin * planes + p, plane);
		for (size_t i = 0; i < 12; i++) {
			float want = (float)(1000 * (stored + 1) + 12 * (p < 5 ? 4 - p : p) + i); /* rings from the other end */

			if (plane[i] != want)
				fail_msg("%d bins, %g ps: plane %zu, bin %zu is %g, not %g", tof->n, later, p, i,
					 (double)plane[i], (double)want);
		}
	}
}

static void fill(float *values, size_t n_tof, size_t planes)
{
	for (size_t k = 0; k < n_tof; k++)
		for (size_t i = 0; i < planes * 12; i++)
			values[k * planes * 12 + i] = (float)(1000 * (k + 1) + i);
}

TEST(test_positions)
{
	static const int listed[] = {0, 1, -1, 2, -2};
	float values[5 * 6 * 12];
	struct interfile f;

	must_parse(tof_header("", ""), &f);
	f.order = INTERFILE_BY_PLANE;
	fill(values, 5, 6);
	for (int k = -2; k <= 2; k++)
		check_bin(&f, values, (size_t)(k + 2), 300 * k);
	must_parse(tof_header(KEYS, KEYS "TOF bin order := {0, 1, -1, 2, -2}\n"), &f);
	f.order = INTERFILE_BY_PLANE;
	for (size_t i = 0; i < 5; i++)
		check_bin(&f, values, i, 300 * listed[i]);
	must_parse(tof_header("[5] := 5\nTOF mashing factor := 2\nMaximum number of (unmashed) TOF time bins := 10",
			      "[5] := 4\nTOF mashing factor := 2\nMaximum number of (unmashed) TOF time bins := 8"),
		   &f);
	f.order = INTERFILE_BY_PLANE;
	for (int k = -2; k <= 1; k++)
		check_bin(&f, values, (size_t)(k + 2), 300 * (k + 0.5));
}

/* By view within a segment, behind an offset. */
TEST(test_views)
{
	float values[5 * 6 * 12 + 1], plane[12];
	struct interfile f;

	must_parse(tof_header("", ""), &f);
	f.offset = 4;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		values[i] = (float)i - 1;
	/* TOF bin 1 in memory is stored as bin 3; its plane 3, in the segment of 5 planes; angle 3, radial bin 1 */
	interfile_plane(&f, (const uint8_t *)values, 1 * 6 + 3, plane);
	assert_true(plane[3 * 3 + 1] == 3 * 72 + (3 * 5 + 1) * 3 + 1);
	/* plane 5, the only one of its segment */
	interfile_plane(&f, (const uint8_t *)values, 1 * 6 + 5, plane);
	assert_true(plane[2 * 3 + 2] == 3 * 72 + 60 + 2 * 3 + 2);
}

TEST(test_write)
{
	static const char *const orders[] = {"", "TOF bin order := {2, -2, 1, 0, -1}\n"};
	struct interfile f, again;
	struct err err = {0};
	char *text = NULL;

	for (size_t i = 0; i < 2; i++) {
		char keys[600];

		snprintf(keys, sizeof(keys), "%s%s", KEYS, orders[i]);
		must_parse(tof_header(KEYS, keys), &f);
		if (interfile_complete(&f, NULL, &err) < 0 || interfile_write(&f, &text, &err) < 0)
			fail_msg("%s", err.msg);
		must_parse(text, &again);
		assert_int_equal(interfile_complete(&again, NULL, &err), 0);
		if (interfile_same_rays(&f, &again, &err) < 0 || interfile_same_tof(&f, &again, &err) < 0)
			fail_msg("%s", err.msg);
		assert_true(fabs(again.m.tof.width - f.m.tof.width) < 1e-12 && fabs(again.m.tof.sigma - f.m.tof.sigma) < 1e-12);
		assert_int_equal(again.tof_listed, i == 1);
		for (int k = 0; i == 1 && k < 5; k++)
			assert_int_equal(again.tof_bin[k], f.tof_bin[k]);
		free(text);
	}
}

/* A header without numbers that only the scanner has is written without them. */
TEST(test_write_incomplete)
{
	struct interfile f, again;
	struct err err = {0};
	char *text = NULL;

	must_parse(WITH({"number of dimensions := 4\n",
			 "number of dimensions := 5\nmatrix axis label [5] := timing positions\n!matrix size [5] := 5\n"},
			{"Number of rings := 3\nNumber of detectors per ring := 16\nInner ring diameter (cm) := 20\n"
			 "Average depth of interaction (cm) := 0.7\nDistance between rings (cm) := 0.654\n",
			 ""},
			{"View offset (degrees) := 2.5\n", ""}),
		   &f);
	assert_done(interfile_write(&f, &text, &err), &err);
	must_parse(text, &again);
	assert_true(again.m.scanner.rings == 0 && again.m.scanner.radius == 0 && isnan(again.m.angle_offset));
	assert_true(again.m.tof.n == 5 && again.m.tof.width == 0 && again.m.tof.sigma == 0);
	assert_int_equal(again.m.segments[1].first, 2);
	free(text);
}

TEST(test_complete)
{
	struct scanner_conf known = {
		.name = "bench", .scanner = {3, 16, 6.54, 100, 7, 3}, .tof_bins = 20, .tof_width = 75, .tof_resolution = 200};
	struct interfile f;
	struct err err = {0};

	must_parse(tof_header(KEYS, ""), &f);
	assert_error(interfile_complete(&f, NULL, &err), &err, ENOKEY,
		     "the header lacks: size of unmashed TOF time bins, TOF timing resolution");
	assert_int_equal(interfile_complete(&f, &known, &err), 0);
	assert_true(fabs(f.m.tof.width - 300 * MM_PER_PS) < 1e-6); /* 20 bins mashed to 5 */
	assert_true(fabs(f.m.tof.sigma - 200 * MM_PER_PS / (2 * sqrt(2 * log(2)))) < 1e-6);
	must_parse(tof_header(KEYS, "Size of timing bin (ps) := 250\n"), &f);
	assert_error(interfile_complete(&f, NULL, &err), &err, ENOKEY, "the header lacks: TOF timing resolution");
	assert_int_equal(interfile_complete(&f, &known, &err), 0);
	assert_true(fabs(f.m.tof.width - 250 * MM_PER_PS) < 1e-6); /* the header has precedence */
	must_parse(tof_header(KEYS, ""), &f);
	known.tof_bins = 19;
	assert_error(interfile_complete(&f, &known, &err), &err, EBADMSG, "5 TOF bins; scanner 'bench' has 19");
}

TEST(test_refused)
{
	static const struct {
		const char *from, *to, *says;
	} cases[] = {
		{"[5] := 5", "[5] := 4", "4 timing positions, but 10 unmashed TOF time bins with TOF mashing factor 2 are 5"},
		{"factor := 2", "factor := 3", "10 unmashed TOF time bins with TOF mashing factor 3 are no whole number"},
		{"factor := 2", "factor := 0", "TOF mashing factor := 0; allowed"},
		{"bins (ps) := 150", "bins (ps) := -150", "allowed: a number from"},
		{"bins (ps) := 150", "bins (ps) := nan", "allowed: a number from"},
		{"bins (ps) := 150", "bins (ps) := 150\nSize of timing bin (ps) := 151", "two values for the same quantity"},
		{"(ps) := 200", "(ps) := 0", "TOF timing resolution (ps) := 0; allowed"},
		{"[5] := 5", "[5] := 1025", "matrix size [5] := 1025; allowed"},
		{"dimensions := 5", "dimensions := 4",
		 "matrix axis label [5] := timing positions, but number of dimensions := 4"},
		{"dimensions := 5\nmatrix axis label [5] := timing positions\n", "dimensions := 4\n",
		 "matrix size [5] := 5, but number of dimensions := 4"},
		{"matrix axis label [5] := timing positions\n", "",
		 "\"matrix axis label [5]\" is missing; with 5 dimensions it is \"timing positions\""},
		{"TOF mashing factor := 2\n", "",
		 "10 unmashed TOF time bins with TOF mashing factor 1 (the header has no such key) are 10 TOF bins"},
		{KEYS, KEYS "TOF bins order := {2, 1, 0, -1, -2}\n", "did you mean \"TOF bin order\"?"},
		{"bins (ps) := 150", "bins (ps) := 15000", "but the detectors are at 107 mm"},
		{"resolution (ps) := 200", "resolution (ps) := 20000", "resolution (ps) := 20000 is a distance of 2998 mm"},
		{"resolution (ps) := 200", "resolution (ps) := 0.2", "another unit is meant (ns and ps?)"},
		{KEYS, "TOF bin order := {0, 1}\n", "TOF bin order: 2 numbers for 5 TOF bins"},
		{KEYS, "TOF bin order := {0, 1, 2, 3, 4}\n", "TOF bin order: 3; 5 TOF bins have -2 to 2"},
		{KEYS, "TOF bin order := {0, 1, 1, -1, -2}\n", "TOF bin order: 1 occurs twice"},
		{KEYS, "TOF bin order := {0, 0.5, 1, -1, -2}\n", "TOF bin order: 0.5 is not an integer"},
	};
	struct interfile f;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc = parse(tof_header(cases[i].from, cases[i].to), &f, &err);

		if (rc == 0) {
			rc = interfile_complete(&f, NULL, &err);
			interfile_clear(&f);
		}
		if (rc != -EBADMSG || !strstr(err.msg, cases[i].says))
			fail_msg("\"%s\" expected, not: %s", cases[i].says, err.msg);
	}
	/* STIR's example header of a Signa, 6.846 instead of 13.02 ps: bins that do not reach the radial bins */
	must_parse(WITH({"number of dimensions := 4\n",
			 "number of dimensions := 5\nmatrix axis label [5] := timing positions\n!matrix size [5] := 27\n"
			 "TOF mashing factor := 13\nNumber of TOF time bins := 351\nSize of timing bin (ps) := 6.846\n"
			 "timing resolution (ps) := 390\n"},
			{"diameter (cm) := 20", "diameter (cm) := 62.36"}, {"bin size (cm) := 0.3", "bin size (cm) := 31"},
			{"bin size (cm) := 0.4", "bin size (cm) := 31"}),
		   &f);
	assert_error(interfile_complete(&f, NULL, &err), &err, EBADMSG,
		     "27 TOF bins of 88.998 ps (\"Size of unmashed TOF time bins (ps)\"");
}

TEST(test_other_bins)
{
	static const struct {
		const char *from, *to, *says;
	} cases[] = {
		{"(ps) := 150", "(ps) := 151", "width, mm"},
		{"(ps) := 200", "(ps) := 210", "standard deviation, mm"},
		{"[5] := 5\nTOF mashing factor := 2\nMaximum number of (unmashed) TOF time bins := 10",
		 "[5] := 6\nTOF mashing factor := 2", "number: 5 and 6"},
	};
	struct interfile a, b;
	struct err err = {0};

	must_parse(tof_header("", ""), &a);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		must_parse(tof_header(cases[i].from, cases[i].to), &b);
		assert_int_equal(interfile_same_tof(&a, &b, &err), -EBADMSG);
		if (!strstr(err.msg, cases[i].says))
			fail_msg("\"%s\" expected, not: %s", cases[i].says, err.msg);
	}
}
