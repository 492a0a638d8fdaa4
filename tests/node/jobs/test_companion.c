/* SPDX-License-Identifier: Apache-2.0 */
/* Which CT series is joined to a case? By what there is, in whatever order it came; never one of another patient. */
#include "node/jobs/companion.h"
#include "node/jobs/patients.h"
#include "tests/test.h"

#define QUIET 60.0
#define ARRIVED 1000.0
#define LATER 2000.0 /* all quiet times are over */

static const uint8_t key[PATIENT_KEY_BYTES] = {1}, other_key[PATIENT_KEY_BYTES] = {2};

struct image {
	const char *study, *series, *frame;
	uint64_t patient; /* digest of its ID */
	double acquired, received;
	long expected;
	bool no_slice;
	const char *values, *part;
};

static void identity_of(uint64_t patient, const uint8_t *of, char text[PATIENTS_IDENTITY_SIZE])
{
	struct patient_identity identity = {.digest = {[PATIENT_ID] = patient, [PATIENT_NAME] = patient}};

	patients_format(&identity, of, text);
}

static void add_with(struct companions *c, int64_t instance, const struct image *i, const uint8_t *of)
{
	char identity[PATIENTS_IDENTITY_SIZE], values[100], part[40] = "", detail[700];

	identity_of(i->patient, of, identity);
	snprintf(values, sizeof(values), ",\"values\":\"%s\"", i->values ? i->values : "");
	if (i->part)
		snprintf(part, sizeof(part), ",\"part\":\"%s\"", i->part);
	snprintf(
		detail, sizeof(detail),
		"{\"study\":\"%s\",\"series\":\"%s\",\"frame\":\"%s\",\"acquired\":%f,\"expected\":%ld,\"identity\":\"%s\"%s%s%s}",
		i->study, i->series, i->frame, i->acquired, i->expected, identity, i->no_slice ? ",\"slice\":false" : "",
		i->values ? values : "", part);
	assert_int_equal(
		companions_add(c, &(struct instance_row){.id = instance, .received = i->received, .calling = "CT"}, detail), 0);
}

static void add(struct companions *c, int64_t instance, const struct image *i)
{
	add_with(c, instance, i, key);
}

/* A case of patient 7, study 1, frame of reference 2, acquired at 500000 s, that waits until 1800. */
static struct companion_need need_of(struct patient_set *set)
{
	char text[PATIENTS_IDENTITY_SIZE];
	struct patient_identity identity;
	uint32_t of;

	*set = (struct patient_set){0};
	identity_of(7, key, text);
	assert_true(patients_parse(text, &identity, &of));
	patient_set_add(set, &identity, 1);
	return (struct companion_need){
		.study = "1", .frame = "2", .acquired = 500000, .patients = set, .patients_key = of, .until = 1800, .wait = 800};
}

static struct companion_decision decide(const struct companions *c, double now)
{
	struct companion_decision answer;
	struct patient_set set;
	struct companion_need need = need_of(&set);

	companion_decide(c, &need, now, QUIET, &answer);
	return answer;
}

static const struct image fit = {"1", "1.5", "2", 7, 499000, ARRIVED, 0};

TEST(waits_for_quiet)
{
	struct companions c GOES(companions_clear) = {0};
	struct companion_decision d = decide(&c, 1010);

	assert_int_equal(d.verdict, COMPANION_WAIT);
	assert_true(d.again == 1800);
	assert_string_equal(d.text, "waits for the CT series for the attenuation correction");
	add(&c, 3, &fit);
	d = decide(&c, 1010);
	assert_int_equal(d.verdict, COMPANION_WAIT);
	assert_true(d.again == ARRIVED + QUIET);
	assert_non_null(strstr(d.text, "which is arriving"));
	d = decide(&c, ARRIVED + QUIET);
	assert_int_equal(d.verdict, COMPANION_JOIN);
	assert_string_equal(d.series->series, "1.5");
	assert_int_equal(d.series->instances[0], 3);
	assert_string_equal(d.text, "CT series 1.5 of 1 image, acquired 1000 s before the PET data");
}

/* One that is arriving at the end of the wait is waited for; a complete one does not wait for another one longer than that. */
TEST(end_of_the_wait)
{
	struct companions c GOES(companions_clear) = {0};
	struct image late = fit;

	assert_int_equal(decide(&c, 1799).verdict, COMPANION_WAIT);
	assert_int_equal(decide(&c, 1800).verdict, COMPANION_LACKS);
	assert_non_null(strstr(decide(&c, 1800).text, "within 800 s: send it, or reconstruct without it (retry --as-is)"));
	late.received = 1790;
	add(&c, 1, &late);
	assert_int_equal(decide(&c, 1800).verdict, COMPANION_WAIT);
	assert_true(decide(&c, 1800).again == 1850);
	assert_int_equal(decide(&c, 1850).verdict, COMPANION_JOIN);
	late.series = "1.6";
	late.received = 1849;
	add(&c, 2, &late);
	assert_int_equal(decide(&c, 1850).verdict, COMPANION_JOIN); /* 1.5: the wait is over */
	late.received = 1700;
	companions_clear(&c);
	add(&c, 1, &fit);
	add(&c, 2, &late);
	assert_int_equal(decide(&c, 1750).verdict, COMPANION_WAIT); /* 1.6 may be nearer */
	assert_int_equal(decide(&c, 1760).verdict, COMPANION_JOIN);
}

TEST(nearest)
{
	struct companions c GOES(companions_clear) = {0};
	struct image i = fit;

	add(&c, 1, &fit);
	i.series = "1.9";
	i.acquired = 500400;
	add(&c, 2, &i);
	assert_string_equal(decide(&c, LATER).series->series, "1.9");
	assert_string_equal(decide(&c, LATER).text,
			    "CT series 1.9 of 1 image, acquired 400 s after the PET data: the nearest of 2 that fit");
	i.series = "1.8"; /* as near, on the other side, with more images */
	i.acquired = 499600;
	add(&c, 3, &i);
	assert_string_equal(decide(&c, LATER).series->series, "1.8");
	i.series = "1.9";
	i.acquired = 500400;
	add(&c, 4, &i);
	assert_string_equal(decide(&c, LATER).series->series, "1.9");
	i.series = "1.1"; /* unknown times are the farthest */
	i.acquired = 0;
	for (int k = 0; k < 5; k++)
		add(&c, 5 + k, &i);
	assert_string_equal(decide(&c, LATER).series->series, "1.9");
}

static void expect_unfit(const struct image *i, const char *why)
{
	struct companions c GOES(companions_clear) = {0};
	struct companion_decision d;

	add(&c, 1, i);
	d = decide(&c, 1100);
	assert_int_equal(d.verdict, COMPANION_WAIT);
	if (!strstr(d.text, why))
		fail_msg("'%s' is not in '%s'", why, d.text);
	d = decide(&c, LATER);
	assert_int_equal(d.verdict, COMPANION_LACKS);
	if (!strstr(d.text, why))
		fail_msg("'%s' is not in '%s'", why, d.text);
	add(&c, 2, &fit); /* it does not keep one that fits from being joined, unless it is of the same series */
	d = decide(&c, LATER);
	assert_int_equal(d.verdict == COMPANION_JOIN, strcmp(i->series, fit.series) != 0);
}

TEST(unfit)
{
	struct image i = fit;

	i.series = "1.4";
	i.frame = "3";
	expect_unfit(&i, "CT series 1.4: it is of another frame of reference");
	i.frame = "";
	expect_unfit(&i, "not of one frame of reference");
	i.series = "1.5"; /* two frames of reference in one series */
	i.frame = "3";
	expect_unfit(&i, "another frame of reference");
	i = fit;
	i.patient = 8;
	expect_unfit(&i, "CT series 1.5: the headers name different patients: Patient ID (0010,0020), ");
	i.series = "1.4";
	i.patient = 0;
	expect_unfit(&i, "neither Patient ID");
	i = fit;
	i.series = "1.4";
	i.expected = 2;
	expect_unfit(&i, "it has only 1 of 2 images");
}

/* A localizer of the series counts among the images that its headers announce, and is not joined; alone it is no series. */
TEST(localizers)
{
	struct companions c GOES(companions_clear) = {0};
	struct image i = fit;
	struct companion_decision d;

	i.expected = 3;
	i.no_slice = true;
	i.frame = "9";
	add(&c, 1, &i);
	d = decide(&c, LATER);
	assert_int_equal(d.verdict, COMPANION_LACKS);
	assert_non_null(strstr(d.text, "CT series 1.5: none of its images is axial"));
	i.values = "Image Type VMI";
	add(&c, 4, &i);
	assert_non_null(
		strstr(decide(&c, LATER).text, "none of its images has Hounsfield units of a tube voltage: Image Type VMI"));
	i.expected = 4;
	i.no_slice = false;
	i.frame = "2";
	add(&c, 2, &i);
	assert_non_null(strstr(decide(&c, LATER).text, "it has only 3 of 4 images"));
	add(&c, 3, &i);
	d = decide(&c, LATER);
	assert_int_equal(d.verdict, COMPANION_JOIN);
	assert_int_equal(d.series->images, 2);
	assert_int_equal(d.series->instances[0], 2);
	assert_true(companions_have_sender(&c, "1", "CT") && !companions_have_sender(&c, "1", "MR") &&
		    !companions_have_sender(&c, "2", "CT"));
}

/* Maps of hardware are joined beside the patient's; of two tables the nearer one. Alone they are no series. */
TEST(hardware)
{
	static const char *const joined[] = {"1.7", "1.8"};
	struct companions c GOES(companions_clear) = {0};
	struct companion_decision d;
	struct image i = fit;
	int64_t *all;
	size_t n = 0;

	i.part = "table";
	i.series = "1.6";
	add(&c, 1, &i);
	assert_int_equal(decide(&c, LATER).verdict, COMPANION_LACKS);
	assert_non_null(strstr(decide(&c, LATER).text, "; there is a map of table, but none of the patient"));
	i.acquired = 499900;
	i.series = "1.7";
	add(&c, 2, &i);
	i.part = "coils";
	i.series = "1.8";
	add(&c, 3, &i);
	i.frame = "3"; /* elsewhere */
	i.series = "1.9";
	add(&c, 4, &i);
	i = fit;
	i.part = "patient";
	add(&c, 5, &i);
	d = decide(&c, LATER);
	assert_int_equal(d.verdict, COMPANION_JOIN);
	assert_string_equal(d.series->series, "1.5");
	assert_int_equal(d.n_hardware, 2);
	for (int k = 0; k < 2; k++)
		assert_string_equal(d.hardware[k]->series, joined[k]);
	assert_non_null(strstr(d.text, "; map of table, series 1.7; map of coils, series 1.8"));
	all = companion_instances(&d, &n);
	assert_int_equal(n, 3);
	assert_int_equal(all[0] + all[1] + all[2], 5 + 2 + 3);
	free(all);
	i.part = "coils"; /* waited for, as a CT series is */
	i.series = "1.8";
	i.received = LATER - 1;
	add(&c, 6, &i);
	assert_int_equal(decide(&c, LATER).n_hardware, 1); /* the longest wait is over */
	assert_int_equal(decide(&c, 1790).verdict, COMPANION_WAIT);
}

/* More of them than a case takes: the text says so. */
TEST(hardware_left_out)
{
	struct companions c GOES(companions_clear) = {0};
	struct companion_decision d;
	struct image i = fit;
	char series[20];

	add(&c, 1, &i);
	i.part = "coils";
	i.series = series;
	for (int k = 0; k < CT_SERIES_MOST; k++) {
		d = decide(&c, LATER);
		assert_null(strstr(d.text, "not used"));
		snprintf(series, sizeof(series), "1.7.%d", k);
		add(&c, 2 + k, &i);
	}
	d = decide(&c, LATER);
	assert_int_equal(d.n_hardware, CT_SERIES_MOST - 1);
	assert_non_null(strstr(d.text, "; 1 more map of hardware not used (at most 7); map of coils, series 1.7.0"));
}

/* Of another study: as if it were not there. */
TEST(other_study)
{
	struct companions c GOES(companions_clear) = {0};
	struct image i = fit;

	i.study = "11";
	add(&c, 1, &i);
	i.study = "0.9";
	add(&c, 2, &i);
	assert_string_equal(decide(&c, 1100).text, "waits for the CT series for the attenuation correction");
}

/* Digests of another key say nothing. */
TEST(key_lost)
{
	struct companions c GOES(companions_clear) = {0};

	add_with(&c, 1, &fit, other_key);
	assert_non_null(strstr(decide(&c, LATER).text, "its patient cannot be compared"));
	add(&c, 2, &fit);
	assert_int_equal(decide(&c, LATER).verdict, COMPANION_LACKS);
}

TEST(without_frame)
{
	struct companions c GOES(companions_clear) = {0};
	struct patient_set set;
	struct companion_need need = need_of(&set);
	struct companion_decision d;

	add(&c, 1, &fit);
	need.frame = "";
	companion_decide(&c, &need, 1001, QUIET, &d);
	assert_int_equal(d.verdict, COMPANION_LACKS);
	assert_non_null(strstr(d.text, "no Frame of Reference UID"));
}

TEST(clock_set_back)
{
	struct companions c GOES(companions_clear) = {0};
	struct image i = fit;

	i.received = 90000;
	add(&c, 1, &i);
	assert_int_equal(decide(&c, 1000).verdict, COMPANION_WAIT);
	companions_clamp_time(&c, 1000);
	assert_int_equal(decide(&c, 1000 + QUIET).verdict, COMPANION_JOIN);
}

TEST(damaged_detail)
{
	static const char *const details[] = {"", "[]", "{}", "{\"study\":\"1\"}", "{\"study\":7,\"series\":\"1\"}"};
	struct companions c = {0};

	for (size_t i = 0; i < sizeof(details) / sizeof(details[0]); i++)
		assert_true(companions_add(&c, &(struct instance_row){.id = 1}, details[i]) < 0);
	assert_int_equal(c.n, 0);
}

/* Images of six series, fit and unfit, in 300 orders: always the same choice with the same words, at every time. */
TEST(any_order)
{
	static const struct image kinds[] = {{"1", "1.5", "2", 7, 499000, 1000, 0},  {"1", "1.6", "2", 7, 500900, 1010, 0},
					     {"1", "1.7", "3", 7, 500001, 1020, 0},  {"1", "1.8", "2", 8, 500001, 1030, 0},
					     {"1", "1.9", "2", 7, 500001, 1040, 99}, {"3", "1.5", "2", 7, 500000, 1050, 0}};
	enum { EACH = 4, N = 6 * EACH };
	struct image images[N];
	struct companion_decision first[3], d;

	for (int i = 0; i < N; i++) {
		images[i] = kinds[i % 6];
		images[i].acquired += i;
	}
	srand(1);
	for (int round = 0; round < 300; round++) {
		struct companions c GOES(companions_clear) = {0};

		for (int i = N - 1; i > 0; i--) {
			int k = rand() % (i + 1);
			struct image swap = images[i];

			images[i] = images[k];
			images[k] = swap;
		}
		for (int i = 0; i < N; i++)
			add(&c, i + 1, &images[i]);
		assert_int_equal(c.n, 6);
		for (int t = 0; t < 3; t++) {
			d = decide(&c, (double[]){1065, 1105, LATER}[t]);
			if (round == 0)
				first[t] = d;
			assert_int_equal(d.verdict, first[t].verdict);
			assert_string_equal(d.text, first[t].text);
			assert_int_equal(d.verdict, t == 0 ? COMPANION_WAIT : COMPANION_JOIN);
			if (t > 0)
				assert_string_equal(d.series->series, "1.6");
			if (t > 0)
				assert_int_equal(d.series->images, EACH);
		}
	}
}
