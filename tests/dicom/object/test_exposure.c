/* SPDX-License-Identifier: Apache-2.0 */
/* Test what tells the exposures of one series apart. */
#include "dicom/object/exposure.h"
#include "tests/test.h"

enum { NUMBER = 0, TYPE = 2, ANODE = 4, TIME = 6 }; /* of the attributes */

/* Images with the given values of one attribute; "": it is missing. */
static size_t make(struct exposure_facts images[8], int attribute, const char *const *values)
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
		{TIME, {"10", "11", "11"}, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct exposure_facts images[8];
		struct exposures found;
		size_t n = make(images, cases[i].attribute, cases[i].values);
		char text[300] = "";

		if (exposures_prove(images, n, &found))
			exposures_text(&found, text, sizeof(text));
		assert_string_equal(text, cases[i].text ? cases[i].text : "");
	}
}

/* Of too many images, time and a missing value tell, too; which group is the first does not depend on the order. */
TEST(test_choice)
{
	struct exposure_facts images[8];
	struct exposures one, other;
	size_t n = make(images, TIME, VALUES("10", "11", "11", "10"));

	assert_false(exposures_prove(images, n, &one));
	assert_true(exposures_find(images, n, &one));
	assert_true(exposure_has(&one, 0, &images[0]) && exposure_has(&one, 0, &images[3]) && exposure_has(&one, 1, &images[1]));
	n = make(images, TIME, VALUES("11", "10", "10", "11"));
	assert_true(exposures_find(images, n, &other));
	assert_memory_equal(one.list[0].value, other.list[0].value, sizeof(one.list[0].value));
	n = make(images, NUMBER, VALUES("", "7"));
	assert_true(exposures_find(images, n, &one));
	assert_true(exposure_has(&one, 0, &images[1]) && exposure_has(&one, 1, &images[0]));
}
