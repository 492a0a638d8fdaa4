/* SPDX-License-Identifier: Apache-2.0 */
/* Test what tells the exposures of one series apart. */
#include "dicom/object/exposure.h"
#include "tests/test.h"

enum {
	NUMBER = 0,
	TYPE = 2,
	ANODE = 4,
	TIME = 6,
	MOMENT = 7,
	KVP = 10,
	PADDLE = 11,
	FORCE = 12,
	THICKNESS = 13,
	DOSE = 16,
	CONTENT = 17,
	DETECTOR = 18,
	GRID = 19
}; /* of the attributes */

/* Images with the given values of one attribute; "": it is missing. */
static size_t make(struct exposure_facts *images, int attribute, const char *const *values)
{
	size_t n = 0;

	memset(images, 0, 8 * sizeof(images[0]));
	for (; values[n]; n++)
		snprintf(images[n].value[attribute], DICOM_UID_SIZE, "%s", values[n]);
	return n;
}
#define VALUES(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(test_proof)
{
	static const struct {
		int attribute;
		const char *values[8];
		const char *text; /* NULL: nothing is proved */
	} cases[] = {
		{NUMBER, {"1", "1", "1"}, NULL},
		{NUMBER, {"2", "1", "2", "1", "1"}, "Acquisition Number (0020,0012): 3 have 1, 2 have 2"},
		{NUMBER, {"2", "1", "1", "2"}, "Acquisition Number (0020,0012): 2 have 1, 2 have 2"},
		{NUMBER, {"1", "2", "3", "4"}, NULL}, /* a number for each image */
		{NUMBER, {"1", "", "1"}, NULL},	      /* one may be of any exposure */
		{NUMBER,
		 {"1", "1", "2", "2", "3", "3", "4"},
		 "Acquisition Number (0020,0012): 2 have 1, 2 have 2, 2 have 3, 1 has 4"},
		{NUMBER, {"1", "1", "2", "3", "4", "5"}, NULL}, /* too many to be exposures */
		{TYPE, {"TOMO_PROJ", "", "TOMO_PROJ"}, "Image Type, value 3 (0008,0008): 2 have TOMO_PROJ, 1 has none"},
		{ANODE, {"TUNGSTEN", "tungsten", "Tungsten"}, NULL},
		{ANODE,
		 {"TUNGSTEN", "tungsten", "RHODIUM", "TUNGSTEN"},
		 "Anode Target Material (0018,1191): 3 have TUNGSTEN, 1 has RHODIUM"},
		/* moments: each projection has its own, also over midnight, or all have one; a pause of a minute is none of a
		   sweep */
		{TIME, {"120000", "120001", "120001", "120002"}, NULL},
		{TIME, {"120000.5", "120012.5", "120024.5", "120049.5"}, NULL},
		{TIME, {"235959", "235958", "000001", "000000.5"}, NULL},
		{TIME, {"120000", "120000", "120000"}, NULL},
		/* behind their dates, if all have one */
		{TIME, {"20260601120000", "20260601120001", "20260601120001"}, NULL},
		{TIME, {"20260601235959", "20260602000001", "20260602000002.5"}, NULL},
		{TIME, {"20260601235959", "20260601000001", "20260601000002.5"}, NULL}, /* the day that the exam began */
		{TIME,
		 {"20260601090000", "20260601090001", "20260601090002", "20260601213000", "20260601213001"},
		 "Acquisition Time (0008,0032): 3 have 20260601090000 to 20260601090002, 2 have 20260601213000 to "
		 "20260601213001"},
		{TIME, {"20260601120000", "120001", "20260601120001"}, NULL},
		{TIME,
		 {"20260601120000", "20260602120000", "20260601120001", "20260602120001"},
		 "Acquisition Time (0008,0032): 2 have 20260601120000 to 20260601120001, 2 have 20260602120000 to "
		 "20260602120001"},
		{TIME, /* dates of some images tell nothing */
		 {"20260601120000", "120001", "20260602121000", "121001"},
		 "Acquisition Time (0008,0032): 2 have 20260601120000 to 120001, 2 have 20260602121000 to 121001"},
		{TIME, {"1200", "1210", "1220", "1230", "1240"}, NULL}, /* a bench */
		{TIME, {"120000", "120100", "120100", "120000"}, NULL},
		{TIME, {"120101", "120000", "120101", "120000"}, "Acquisition Time (0008,0032): 2 have 120000, 2 have 120101"},
		{TIME,
		 {"120002", "120201", "120001", "120000", "120200"},
		 "Acquisition Time (0008,0032): 3 have 120000 to 120002, 2 have 120200 to 120201"},
		{TIME,
		 {"235959", "000700", "000001", "000000"},
		 "Acquisition Time (0008,0032): 3 have 235959 to 000001, 1 has 000700"},
		{MOMENT,
		 {"20260629115959+0200", "20260629120000+0200", "20260629120105.5+0200", "20260630"},
		 "Acquisition DateTime (0008,002A): 2 have 20260629115959+0200 to 20260629120000+0200, 1 has "
		 "20260629120105.5+0200"},
		{MOMENT, {"20260228235959", "20260301000000", "20260301000001"}, NULL},
		{MOMENT, {"20260228235959", "20260228000000", "20260228000001"}, NULL}, /* the day of the beginning */
		{TIME, {"1018", "1018", "1020", "1020"}, NULL},				/* without seconds */
		{TIME, {"1018", "1018", "1021", "1021"}, "Acquisition Time (0008,0032): 2 have 1018, 2 have 1021"},
		{CONTENT, {"1000", "1000", "1200", "1200"}, NULL}, /* when they were written */
		{KVP, {"28", "28.9", "28"}, NULL},
		{KVP, {"28", "29.1", "28.05"}, "KVP (0018,0060): 2 have 28 to 28.05, 1 has 29.1"},
		{KVP, {"28", "32"}, "KVP (0018,0060): 1 has 28, 1 has 32"},
		{KVP, {"20", "22", "24", "26", "28", "30"}, "KVP (0018,0060): 3 have 26 to 30, 1 has 20, 1 has 22, 1 has 24"},
		{PADDLE, {"18 x 24", "18 X 24", "24 x 29"}, "Paddle Description (0018,11A4): 2 have 18 X 24, 1 has 24 x 29"},
		{FORCE, {"100", "104", "97", ""}, NULL},
		{FORCE, {"100", "100", "80"}, NULL},
		{FORCE, {"100", "100", "79"}, "Compression Force (0018,11A2): 2 have 100, 1 has 79"},
		{THICKNESS, {"50", "51", "52"}, NULL},
		{THICKNESS, {"50", "51.1", "50"}, "Body Part Thickness (0018,11A0): 2 have 50, 1 has 51.1"},
		{DOSE, {"10", "40", "3", "10"}, NULL},
		{DETECTOR, {"7", "7", "8", ""}, "Detector ID (0018,700A): 2 have 7, 1 has 8"},
		{DETECTOR, {"7", "8", "9", ""}, NULL},
		{GRID, {"NONE", "RECIPROCATING", "NONE"}, NULL}, /* it may be retracted */
		{DOSE, {"4", "4", "100"}, "Exposure (0018,1152): 2 have 4, 1 has 100"},
		{DOSE, {"4", "4", "4000"}, NULL}, /* mixed units */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exposure_facts images[8];
		struct exposures found;
		size_t n = make(images, cases[i].attribute, cases[i].values);
		char text[400] = "";

		if (exposures_prove(images, n, &found, NULL))
			exposures_text(&found, text, sizeof(text));
		assert_string_equal(text, cases[i].text ? cases[i].text : "");
		for (int group = 0; text[0] && group < found.n; group++) {
			int of = 0;

			for (size_t k = 0; k < n; k++)
				of += exposure_has(&found, group, &images[k]);
			assert_int_equal(of, found.list[group].images);
		}
	}
}

/* Of too many images, time and a missing value tell, too; which group is the first does not depend on the order. */
TEST(test_choice)
{
	struct exposure_facts images[8];
	struct exposures one, other;
	size_t n = make(images, TIME, VALUES("120010", "120011", "120011", "120010"));

	assert_int_equal(0, exposures_prove(images, n, &one, NULL));
	assert_int_equal(1, exposures_find(images, n, &one, NULL));
	assert_true(exposure_has(&one, 0, &images[0]) && exposure_has(&one, 0, &images[3]) && exposure_has(&one, 1, &images[1]));
	n = make(images, TIME, VALUES("120011", "120010", "120010", "120011"));
	assert_int_equal(1, exposures_find(images, n, &other, NULL));
	assert_memory_equal(one.list[0].value, other.list[0].value, sizeof(one.list[0].value));
	n = make(images, NUMBER, VALUES("", "7"));
	assert_int_equal(1, exposures_find(images, n, &one, NULL));
	assert_true(exposure_has(&one, 0, &images[1]) && exposure_has(&one, 1, &images[0]));
}

/* The moment of a group is that of its first image, by the first attribute that has one, with a date where there is one. */
TEST(test_moments_of_groups)
{
	static const struct {
		int attribute;
		const char *values[5], *first, *second;
	} cases[] = {
		{TIME,
		 {"20261121101805.25", "20261121101800", "", "20261121102300"},
		 "2026-11-21 10:18:00",
		 "2026-11-21 10:23:00"},
		{TIME, {"235959", "000001", "0010", "00:11:02.5"}, "23:59:59", "00:10"},
		{MOMENT, {"20261121101805+0100", "", "", ""}, "2026-11-21 10:18:05", ""},
		{CONTENT, {"101805", "101804", "", "9:23:00"}, "10:18:04", "09:23:00"},
		{TIME, {"", "", "", ""}, "", ""},
		{TIME, {"noon", "1", "", ""}, "", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exposure_facts images[8];
		struct exposures e;
		size_t n = make(images, cases[i].attribute, cases[i].values);

		for (size_t k = 0; k < n; k++)
			snprintf(images[k].value[NUMBER], DICOM_UID_SIZE, k < 2 ? "1" : "2");
		assert_int_equal(1, exposures_prove(images, n, &e, NULL));
		assert_string_equal(e.list[0].moment, "");
		assert_int_equal(0, exposures_date(&e, images, n, NULL));
		assert_string_equal(e.list[0].moment, cases[i].first);
		assert_string_equal(e.list[1].moment, cases[i].second);
	}
}

/* Which of two spellings is the name of a group, and which of two groups is the first, does not depend on the order. */
TEST(test_spellings)
{
	struct exposure_facts images[8];
	struct exposures one, other;
	size_t n = make(images, ANODE, VALUES("tungsten", "Tungsten", "RHODIUM", "Rhodium"));

	assert_int_equal(1, exposures_prove(images, n, &one, NULL));
	n = make(images, ANODE, VALUES("Rhodium", "Tungsten", "RHODIUM", "tungsten"));
	assert_int_equal(1, exposures_prove(images, n, &other, NULL));
	assert_string_equal(one.list[0].value, "RHODIUM");
	for (int k = 0; k < 2; k++)
		assert_string_equal(one.list[k].value, other.list[k].value);
}

/* A force that has two values, with nothing between; one that drifts, and one that was measured at another moment, are of one
 * sweep. */
TEST(test_doubt)
{
	static const struct {
		const char *values[12], *text;
	} cases[] = {
		{{"100", "80", "100", "80"}, "Compression Force (0018,11A2): 2 have 100, 2 have 80"},
		{{"100", "81", "99", "80", ""}, "Compression Force (0018,11A2): 2 have 80 to 81, 2 have 99 to 100"},
		{{"100", "100", "90", "90"}, ""},
		{{"100", "95", "90", "85", "80", "75"}, ""},
		{{"100", "80", "80", "80"}, ""},
		{{"100", "80"}, ""},
		{{"105", "105", "105", "105", "105", "105", "105", "94", "94"}, ""}, /* released at the end */
		{{"120", "120", "107", "107", "94", "94"}, ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exposure_facts images[12];
		struct exposures found;
		size_t n = make(images, FORCE, cases[i].values);
		char text[400] = "";

		assert_int_equal(0, exposures_prove(images, n, &found, NULL));
		if (exposures_doubt(images, n, &found, NULL))
			exposures_text(&found, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

/* A pause that no system makes, but that proves nothing. */
TEST(test_pause)
{
	static const struct {
		int attribute;
		const char *values[8];
		double seconds; /* 0: none */
		long before;
		const char *from, *to;
	} cases[] = {
		{TIME, {"120000", "120010", "120000"}, 0, 0, "", ""},
		{TIME, {"120011", "120000", "120011", "120000", "120000"}, 11, 3, "120000", "120011"},
		{CONTENT, {"1000", "1000", "1200", "1200"}, 7200, 2, "1000", "1200"},
		{TIME, {"120000", "120030", "120100", "120130"}, 0, 0, "", ""}, /* a bench */
		{TIME, {"120000", "125000"}, 0, 0, "", ""},
		{TIME, {"noon", "", "120000"}, 0, 0, "", ""},
		{TIME, {"235959", "000005", "235959", "000030"}, 25, 3, "000005", "000030"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exposure_facts images[8];
		struct exposure_pause p = {0};
		size_t n = make(images, cases[i].attribute, cases[i].values);

		assert_int_equal(exposures_pause(images, n, &p, NULL), cases[i].seconds > 0);
		assert_near(p.seconds, cases[i].seconds, 1e-9);
		assert_int_equal(p.before, cases[i].before);
		assert_string_equal(p.from, cases[i].from);
		assert_string_equal(p.to, cases[i].to);
	}
}

/* Images that were written in two bursts, of projections whose times of acquisition are those of a sweep. */
TEST(test_pause_of_the_writer)
{
	struct exposure_facts images[8];
	struct exposure_pause p = {0};
	size_t n = make(images, CONTENT, VALUES("1000", "1000", "1200", "1200"));

	for (size_t i = 0; i < n; i++)
		snprintf(images[i].value[TIME], DICOM_UID_SIZE, "09000%zu", i);
	assert_int_equal(exposures_pause(images, n, &p, NULL), 0);
}
