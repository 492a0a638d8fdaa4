/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of projections show: lost ones, and whether the shadow of the object moves as the angles say. */
#include "node/tomo/exam_internal.h"
#include "tests/node/tomo/exam_fixture.h"

enum { V = 100, AIR = 3000, TISSUE = 200 };

TEST(test_measured)
{
	static const struct {
		const char *what;
		int first, last, value; /* lines of one value; -1: of the line before */
		int length;		/* of them, from the end that is farther from the object; negative: from the other one */
		enum exam_loss loss;
	} cases[] = {
		{"none", 0, 0, 0, V, EXAM_NOT_LOST},
		{"within the object", 40, 60, 0, V, EXAM_ONE_VALUE},
		{"four", 40, 44, 7, V, EXAM_ONE_VALUE},
		{"three: a defect", 40, 43, 7, V, EXAM_NOT_LOST},
		{"a shadow at the end", 0, 30, 5, V, EXAM_NOT_LOST},
		{"another one", 70, V, 5, V, EXAM_NOT_LOST},
		{"saturated air between two objects", 40, 60, 4095, V, EXAM_NOT_LOST},
		{"three fifths", 40, 60, 0, 60, EXAM_HALF},
		{"one half", 40, 60, 0, V / 2, EXAM_HALF},
		{"the other half", 40, 60, 0, -V / 2, EXAM_HALF},
		{"a marker", 40, 60, 0, 40, EXAM_NOT_LOST},
		{"half in saturated air", 40, 60, 4095, 60, EXAM_NOT_LOST},
		{"repeated", 40, 60, -1, V, EXAM_REPEATED},
		{"repeated to the end", 80, V, -1, V, EXAM_REPEATED},
	};
	uint64_t noise = test_seed();

	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		struct prep p = {.n_u = V, .n_v = V, .max_value = 4095};
		struct view_air air = {.bright = AIR};
		static uint16_t raw[V][V], line[V][V]; /* line: [line][pixel] */
		const size_t k = i / 2;
		const bool columns = i % 2;
		const struct exam_lost *lost = &air.lost[columns];

		for (int v = 0; v < V; v++)
			for (int u = 0; u < V; u++) {
				bool object = u < 50 && v >= 30 && v < 80;

				noise = noise * 6364136223846793005u + 1442695040888963407u;
				line[v][u] = (uint16_t)((object ? TISSUE : AIR) + (noise >> 40) % 16);
				if (v >= cases[k].first && v < cases[k].last &&
				    (cases[k].length < 0 ? u < -cases[k].length : u >= V - cases[k].length))
					line[v][u] = cases[k].value < 0 ? line[v - 1][u] : (uint16_t)cases[k].value;
			}
		for (int v = 0; v < V; v++)
			for (int u = 0; u < V; u++)
				raw[v][u] = columns ? line[u][v] : line[v][u];
		exam_measure_rows(&p, raw[0], &air);
		if (lost->loss != cases[k].loss || air.lost[!columns].loss != EXAM_NOT_LOST ||
		    (lost->loss != EXAM_NOT_LOST && (lost->first != cases[k].first || lost->n != cases[k].last - cases[k].first ||
						     (cases[k].value >= 0 && lost->value != cases[k].value))))
			fail_msg("%s of %s: %d, %d lines from %d", cases[k].what, columns ? "columns" : "rows", lost->loss,
				 lost->n, lost->first);
		if (i == 0)
			assert_near(air.centre, 54.5, 0.1); /* rows 30 to 79 */
	}
}

/* Saturated air beside and between objects whose shadows end slowly. */
TEST(test_saturated_air)
{
	for (int columns = 0; columns < 2; columns++) {
		struct prep p = {.n_u = V, .n_v = V, .max_value = 4095};
		struct view_air air = {.bright = AIR};
		static uint16_t raw[V][V];

		for (int v = 0; v < V; v++)
			for (int u = 0; u < V; u++) {
				int along = columns ? u : v, far = columns ? v : u, middle = along < 50 ? 20 : 80;

				raw[v][u] =
					pow(along - middle, 2) * 16 + far * far < 80 * 80 ? TISSUE + (u * 7 + v * 3) % 5 : 4095;
			}
		exam_measure_rows(&p, raw[0], &air);
		assert_int_equal(air.lost[0].n, 0);
		assert_int_equal(air.lost[1].n, 0);
	}
}

/* Angles of -10 to 10 degrees, the shadow of an object 40 mm above the detector. */
TEST(test_movement)
{
	static const struct {
		const char *what;
		double height;
		int a, b;	  /* exchanged; a < 0: each has the pixels of the one b after it */
		double moved;	  /* mm, views 3 and 4: the patient */
		const char *text; /* NULL: nothing is said */
	} cases[] = {
		{"as it must be", 40, 0, 0, 0, NULL},
		{"two views exchanged", 40, 1, 3, 0,
		 "only with the pixels of 1.dcm, at -5 degrees, and 3.dcm, at 5 degrees, exchanged"},
		{"neighbours", 40, 3, 4, 0, "only with the pixels of 3.dcm, at 5 degrees, and 4.dcm, at 10 degrees, exchanged"},
		{"the ends", 40, 0, 4, 0, "only with the pixels of 0.dcm"},
		{"against the angles", -40, 0, 0, 0, "moves with the source, by 14.1 mm from -10 to 10 degrees"},
		{"shifted by one", 40, -1, 1, 0, "has the pixels of the projection 1 place before it"},
		{"shifted back", 40, -1, 4, 0, "has the pixels of the projection 1 place after it"},
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
			int from = cases[i].a < 0    ? (k + cases[i].b) % N_VIEWS
				   : k == cases[i].a ? cases[i].b
				   : k == cases[i].b ? cases[i].a
						     : k;

			air[k].centre =
				16 - cases[i].height * tan((-10 + 5 * from) * M_PI / 180) + (from > 2 ? cases[i].moved : 0);
		}
		exam_warn_rows(exam, air);
		if ((strstr(exam->warnings, "The shadow of the object moves") != NULL) != (cases[i].text != NULL) ||
		    (cases[i].text && !strstr(exam->warnings, cases[i].text)))
			fail_msg("%s: '%s'", cases[i].what, exam->warnings);
	}
}

/* Two pairs are exchanged, or three views: this may have other reasons. */
TEST(test_two_exchanges)
{
	enum { N = 8 };
	static const int orders[][N] = {{1, 0, 2, 3, 6, 5, 4, 7}, {1, 2, 0, 3, 4, 5, 6, 7}};

	for (int i = 0; i < 2; i++) {
		struct view_air air[N] = {0};
		struct exam *exam = NULL;
		struct err err = {0};

		fixture_write_mg(&(struct fixture_mg){.n = N});
		assert_int_equal(fixture_open(N, &exam, &err), 0);
		for (int k = 0; k < N; k++)
			air[k].centre = 16 - 40 * tan(exam->views[orders[i][k]].angle * M_PI / 180);
		exam_warn_rows(exam, air);
		if ((strstr(exam->warnings, "at -10 and -5 degrees exchanged, and those at 10 and 20 degrees") != NULL) !=
			    (i == 0) ||
		    (strstr(exam->warnings, "The shadow") != NULL) != (i == 0))
			fail_msg("%s", exam->warnings);
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
	air[2].lost[EXAM_ROWS] = air[3].lost[EXAM_ROWS] = (struct exam_lost){EXAM_ONE_VALUE, 4, 6, 7};
	air[1].lost[EXAM_COLUMNS] = (struct exam_lost){EXAM_REPEATED, 2, 5, 7};
	exam_warn_rows(exam, air);
	assert_non_null(strstr(exam->warnings, exam->rows_toward_minus_y
						       ? "Rows 23 to 28 of 2.dcm have the value 7 from end to end, "
							 "between rows that have many: 2 of 5"
						       : "Rows 5 to 10 of 2.dcm"));
	assert_non_null(strstr(exam->warnings, exam->columns_toward_chest
						       ? "Columns 18 to 22 of 1.dcm all have the values of the column after them"
						       : "Columns 3 to 7 of 1.dcm all have the values of the column before"));
}

TESTS_SETUP(fixture_start, fixture_stop);
