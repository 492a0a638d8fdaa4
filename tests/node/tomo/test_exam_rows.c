/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of projections show: lost ones, and whether the shadow of the object moves as the angles say. */
#include "node/tomo/exam_internal.h"
#include "tests/node/tomo/exam_fixture.h"

enum { U = 40, V = 100, AIR = 3000, TISSUE = 200 };

TEST(test_measured)
{
	static const struct {
		const char *what;
		int first, last, value; /* rows of one value; then every fifth row of the image, as noise */
		int lost;
	} cases[] = {
		{"none", 0, 0, 0, 0},
		{"within the object", 40, 60, 0, 20},
		{"four", 40, 44, 7, 4},
		{"three: a defect", 40, 43, 7, 0},
		{"a shadow at the end", 0, 30, 5, 0},
		{"another one", 70, V, 5, 0},
		{"saturated air", 40, 60, 4000, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct prep p = {.n_u = U, .n_v = V, .max_value = 4095};
		struct view_air air = {.bright = AIR};
		static uint16_t raw[V][U];

		for (int v = 0; v < V; v++)
			for (int u = 0; u < U; u++) {
				bool object = u < 20 && v >= 30 && v < 80;

				raw[v][u] = (uint16_t)((object ? TISSUE : AIR) + (u + v) % 2);
				if (v >= cases[i].first && v < cases[i].last)
					raw[v][u] = (uint16_t)cases[i].value;
			}
		exam_measure_rows(&p, raw[0], &air);
		if (air.lost_rows != cases[i].lost ||
		    (air.lost_rows > 0 && (air.lost_first != 40 || air.lost_value != cases[i].value)))
			fail_msg("%s: %d rows from %d", cases[i].what, air.lost_rows, air.lost_first);
		if (i == 0)
			assert_near(air.centre, 54.5, 1e-3); /* rows 30 to 79 */
	}
}

/* Angles of -10 to 10 degrees, the shadow of an object 40 mm above the detector. */
TEST(test_movement)
{
	static const struct {
		const char *what;
		double height;
		int a, b;	  /* exchanged */
		double moved;	  /* mm, views 3 and 4: the patient */
		const char *text; /* NULL: nothing is said */
	} cases[] = {
		{"as it must be", 40, 0, 0, 0, NULL},
		{"two views exchanged", 40, 1, 3, 0,
		 "only with the pixels of 1.dcm, at -5 degrees, and 3.dcm, at 5 degrees, exchanged"},
		{"neighbours", 40, 3, 4, 0, "only with the pixels of 3.dcm, at 5 degrees, and 4.dcm, at 10 degrees, exchanged"},
		{"the ends", 40, 0, 4, 0, "only with the pixels of 0.dcm"},
		{"against the angles", -40, 0, 0, 0, "moves with the source, by 14.1 mm from -10 to 10 degrees"},
		{"no movement", 0, 0, 0, 0, NULL},
		{"a plate that covers the field", 5, 1, 3, 0, NULL},
		{"the patient moved", 40, 0, 0, 4, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct view_air air[N_VIEWS] = {0};
		struct exam *exam = NULL;
		struct err err = {0};

		fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
		assert_int_equal(fixture_open(N_VIEWS, &exam, &err), 0);
		for (int k = 0; k < N_VIEWS; k++) {
			int from = k == cases[i].a ? cases[i].b : k == cases[i].b ? cases[i].a : k;

			air[k].centre =
				16 - cases[i].height * tan((-10 + 5 * from) * M_PI / 180) + (from > 2 ? cases[i].moved : 0);
		}
		exam_warn_rows(exam, air);
		if ((strstr(exam->warnings, "The shadow of the object moves") != NULL) != (cases[i].text != NULL) ||
		    (cases[i].text && !strstr(exam->warnings, cases[i].text)))
			fail_msg("%s: '%s'", cases[i].what, exam->warnings);
		exam_close(exam);
	}
}

/* The first of them is named, with the rows as they are stored: those of the fixture run against y. */
TEST(test_lost)
{
	struct view_air air[N_VIEWS] = {0};
	struct exam *exam = NULL;
	struct err err = {0};

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	assert_int_equal(fixture_open(N_VIEWS, &exam, &err), 0);
	air[2] = air[3] = (struct view_air){.lost_first = 4, .lost_rows = 6, .lost_value = 7};
	exam_warn_rows(exam, air);
	assert_non_null(strstr(exam->warnings, exam->rows_toward_minus_y
						       ? "Rows 23 to 28 of 2.dcm have the value 7 from end to end, "
							 "between rows that have many: 2 of 5"
						       : "Rows 5 to 10 of 2.dcm"));
	exam_close(exam);
}

TESTS_SETUP(fixture_start, fixture_stop);
