/* SPDX-License-Identifier: Apache-2.0 */
/* Read the text of Hologic's projection matrices: the form of a unit's header, and each way to damage it. */
#include "node/tomo/pose_text.h"
#include "tests/test.h"

#define VIEWS 4

static const double thetas[VIEWS] = {-3.25, -1, 0.5, 2.75};
/* As of a unit: elements 8 to 10 are a row of length 1. */
static const double rows[12][4] = {{-4949.927, 0.1827049, 0.3900174, -0.0003845394},
				   {3.244032, -9.013431, -0.0008572116, 0.001398981},
				   {1809.463, 0.1622772, -0.02772733, 0.0004500896},
				   {-1265965, 13, 53, 0.01},
				   {-4, 0.4, 0.01, 0},
				   {-4961, 0.3, 0.4, 0},
				   {1026, -62, -0.1, 0.001},
				   {-711000, 43000, 90, -1},
				   {0.0096, 1e-5, 0, 0},
				   {0, -0.005, 0, 0},
				   {0.99995, 0, -1.25e-5, 0},
				   {-693.4072, 0.01297307, 0.05337934, 7.405877e-06}};
static char text[16384];

static double value_of(int j, double theta)
{
	return rows[j][0] + rows[j][1] * theta + rows[j][2] * theta * theta + rows[j][3] * theta * theta * theta;
}

/* Write the text; only values of the third element miss their fit, by 0.25 and -0.25 in two views. */
static void write_text(const char *end)
{
	size_t n = (size_t)snprintf(
		text, sizeof(text),
		"Input Paddle Type: 0%sInput CArm angle: 0.000000%sData (is im theta Matrix)%sFit (c1 c2 c3 c4 chisq)%s", end,
		end, end, end);

	for (int j = 0; j < 12; j++) {
		for (int i = 0; i < VIEWS; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%d %d %f %.9e%s", i, j, thetas[i],
					      value_of(j, thetas[i]) + (j == 2 && i < 2 ? 0.25 - 0.5 * i : 0), end);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%d %.9e %.9e %.9e %.9e %.6e%s", j, rows[j][0], rows[j][1],
				      rows[j][2], rows[j][3], j == 2 ? 0.125 : 0, end);
	}
	assert_true(n < sizeof(text));
}

TEST(test_read)
{
	static const char *const ends[] = {"\r\n", "\n"};

	for (int e = 0; e < 2; e++) {
		struct pose_text p;
		struct err err = {0};
		double m[12];

		write_text(ends[e]);
		/* (0019,xx60) is padded */
		assert_done(pose_text_read(text, strlen(text) + 1, &p, &err), &err);
		assert_int_equal(p.n_views, VIEWS);
		assert_memory_equal(p.theta, thetas, sizeof(thetas));
		pose_text_matrix(&p, 2.75, m);
		for (int j = 0; j < 12; j++)
			assert_true(fabs(m[j] - value_of(j, 2.75)) <= 1e-8 * fabs(value_of(j, 2.75)) + 1e-12);
	}
}

/* Replace the first `from` after `after` by `to`, of any length. */
static void edit(const char *after, const char *from, const char *to)
{
	char *at = strstr(text, after), rest[sizeof(text)];

	assert_non_null(at);
	at = strstr(at, from);
	assert_non_null(at);
	snprintf(rest, sizeof(rest), "%s", at + strlen(from));
	snprintf(at, sizeof(text) - (size_t)(at - text), "%s%s", to, rest);
}

TEST(test_refused)
{
	static const struct {
		const char *after, *from, *to, *says;
	} cases[] = {
		{"Fit", "Fit (c1", "Fat (c1", "no line that begins with \"Fit\""},
		{"Fit", "0 0 -3.250000", "0 0 nan",
		 "line 5 of the projection matrices: another number of words than expected, or a word"},
		{"Fit", "0 0 -3.250000", "1 0 -3.250000", "line 5 of the projection matrices: views and elements"},
		{"Fit", "0 0 -3.250000", "0 0 0x3", "line 5"},
		{"Fit", "0 0 -3.250000", "0 0 -99", "angles of -99 to 2.75"},
		{"Fit", "0 0 -3.250000", "0 0 1e999", "line 5"},
		{"\n1 0 ", "-1.000000", "0.500000", "same angle"},
		{"\n1 5 ", "-1.000000", "-1.010000", "another one than in the first element"},
		{"\n2 7 ", "\n2 7 ", "\n2 8 ", "views and elements do not follow"},
		{"\n5 ", "\n5 ", "\n6 ", "elements do not follow each other"},
		{"\n3 2 ", "\n3 2 2.750000 1", "\n3 2 2.750000 2", "sum of squared errors"},
		{"\n2 1.8", "1.250000e-01", "1.350000e-01", "sum of squared errors of 0.125, but the line says 0.135"},
		{"\n8 ", "\n8 9.6", "\n8 1.9", "sum of squared errors"},
		{"\n9 ", "0.000000e+00\n", "0.000000e+00 1\n", "another number of words"},
		{"\n9 ", " 0.000000e+00\n", "\n", "fewer numbers"},
		{"\n11 ", "\n11 ", "\n\n11 ", "fewer numbers"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pose_text p;
		struct err err = {0};

		write_text("\n");
		edit(cases[i].after, cases[i].from, cases[i].to);
		assert_int_equal(pose_text_read(text, strlen(text), &p, &err), -EBADMSG);
		if (!strstr(err.msg, cases[i].says))
			fail_msg("case %zu: '%s' does not hold '%s'", i, err.msg, cases[i].says);
	}
}

/* Matrices of n views from first to last degrees, with `titles` lines before "Fit", the last of `width` bytes. All views have the
 * same matrix. */
static char *many_views(int n, double first, double last, int titles, int width)
{
	size_t room = (size_t)(n + 2) * 12 * 40 + (size_t)titles * 4 + (size_t)width + 100, at = 0;
	char *made = malloc(room);

	assert_non_null(made);
	for (int i = 0; i < titles; i++)
		at += (size_t)snprintf(made + at, room - at, "%0*d\n", i == titles - 1 ? width : 2, 0);
	at += (size_t)snprintf(made + at, room - at, "Fit\n");
	for (int j = 0; j < 12; j++) {
		for (int i = 0; i < n; i++)
			at += (size_t)snprintf(made + at, room - at, "%d %d %f %d\n", i, j, first + (last - first) * i / (n - 1),
					       j == 10);
		at += (size_t)snprintf(made + at, room - at, "%d %d 0 0 0 0\n", j, j == 10);
	}
	return made;
}

TEST(test_limits)
{
	static const struct {
		int views, titles, width;
		double first, last;
		const char *says; /* NULL: allowed */
	} limits[] = {
		{2, 1, 2, -1, 1, NULL},
		{POSE_VIEWS_MAX, 1, 2, -1, 1, NULL},
		{POSE_VIEWS_MAX + 1, 1, 2, -1, 1, "more than 255 views"},
		{2, 15, 2, -1, 1, NULL},
		{2, 16, 2, -1, 1, "no line that begins with"},
		{2, 1, 159, -1, 1, NULL},
		{2, 1, 160, -1, 1, "line 1 of the projection matrices: it is too long"},
		{2, 1, 2, -75, 75, NULL},
		{2, 1, 2, -75.1, 75, "angles of -75.1 to 75"},
		{2, 1, 2, -75, 75.1, "angles of -75 to 75.1"},
		{2, 1, 2, 0, 1, NULL},
		{2, 1, 2, 0.1, 1, "angles of 0.1 to 1"},
		{2, 1, 2, -1, 0, NULL},
		{2, 1, 2, -1, -0.1, "angles of -1 to -0.1"},
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		char *made = many_views(limits[i].views, limits[i].first, limits[i].last, limits[i].titles, limits[i].width);
		struct pose_text p;
		struct err err = {0};
		int rc = pose_text_read(made, strlen(made), &p, &err);

		if (limits[i].says)
			assert_error(rc, &err, EBADMSG, limits[i].says);
		else if (rc < 0)
			fail_msg("row %zu: %s", i, err.msg);
		else
			assert_int_equal(p.n_views, limits[i].views);
		free(made);
	}
}

/* Values and fit agree with each other, but not with an X-ray system. */
TEST(test_no_system)
{
	struct pose_text p;
	struct err err = {0};

	write_text("\n");
	for (int i = 0; i < VIEWS; i++) {
		char from[32], to[32];

		snprintf(from, sizeof(from), "\n%d 10 %f 9.", i, thetas[i]);
		snprintf(to, sizeof(to), "\n%d 10 %f 8.", i, thetas[i]);
		edit(from, from, to);
	}
	edit("\n10 ", "\n10 9.", "\n10 8.");
	assert_error(pose_text_read(text, strlen(text), &p, &err), &err, EBADMSG, "normal, has the length 0.9");
}

/* Every beginning of the text is refused, and nothing is read behind it. */
TEST(test_cut)
{
	write_text("\r\n");
	for (size_t n = 0; n + 2 < strlen(text); n++) {
		struct pose_text p;
		struct err err = {0};
		char *part = malloc(n + 1);

		assert_non_null(part);
		memcpy(part, text, n);
		/* without the last digits of chisq, 0, the text is still whole */
		if (n + 14 < strlen(text) && pose_text_read(part, n, &p, &err) != -EBADMSG)
			fail_msg("%zu bytes are accepted", n);
		free(part);
	}
	memset(text, '1', sizeof(text));
	assert_int_equal(pose_text_read(text, sizeof(text), &(struct pose_text){0}, &(struct err){0}), -EBADMSG);
	assert_int_equal(pose_text_read(text, 0, &(struct pose_text){0}, &(struct err){0}), -EBADMSG);
}
