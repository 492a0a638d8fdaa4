/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of bead phantoms: what is read, and what is refused with which words. */
#include "node/tools/profile_phantom.h"
#include "tests/test.h"

static int read_text(const char *text, struct profile_phantom *ret, struct err *err)
{
	char path[] = "/tmp/test_phantom_XXXXXX";
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (long)strlen(text));
	close(fd);
	rc = profile_phantom_read(path, ret, err);
	unlink(path);
	return rc;
}

TEST(accepted)
{
	struct profile_phantom p;
	struct err err;

	assert_int_equal(read_text("{\"diameter_mm\": 1.5, \"beads_mm\": [[1, -2, 5], [3.5, 4, 0], [0, 0, 55]]}", &p, &err), 0);
	assert_int_equal(p.knowledge, BEADS_KNOWN);
	assert_int_equal(p.n_beads, 3);
	assert_true(p.diameter == 1.5 && p.at[0][1] == -2 && p.at[1][0] == 3.5 && p.at[2][2] == 55);
	assert_int_equal(read_text("{\"diameter_mm\": 1, \"layers_mm\": [5, 30, 55], \"note\": \"any\"}", &p, &err), 0);
	assert_int_equal(p.knowledge, BEADS_IN_LAYERS);
	assert_true(p.n_layers == 3 && p.layer[1] == 30);
	assert_int_equal(read_text("{\"diameter_mm\": 1}", &p, &err), 0);
	assert_int_equal(p.knowledge, BEADS_UNKNOWN);
	assert_int_equal(read_text("{\"diameter_mm\": 1, \"beads_mm\": [[1, 2, 3], [3, 4], [5, 6, 7]]}", &p, &err), 0);
	assert_int_equal(p.knowledge, BEADS_UNKNOWN);
}

/* The limits from inside; from outside in the next test. */
TEST(just_allowed)
{
	static const char *const texts[] = {
		"{\"diameter_mm\": 0.2}",
		"{\"diameter_mm\": 20}",
		"{\"diameter_mm\": 1, \"beads_mm\": [[-500, 500, 0], [500, -500, 200], [0, 0, 0]]}",
		"{\"diameter_mm\": 1, \"layers_mm\": [0, 5]}",
		"{\"diameter_mm\": 1, \"layers_mm\": [0, 5, 10, 15, 20, 25, 30, 200]}",
	};
	struct profile_phantom p;
	struct err err;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (profile_phantom_parse(texts[i], strlen(texts[i]), &p, &err) < 0)
			fail_msg("%s: %s", texts[i], err.msg);
	assert_int_equal(p.n_layers, PHANTOM_LAYERS_MAX);
}

TEST(number_of_beads)
{
	struct profile_phantom p;
	struct err err = {0};

	for (int more = 0; more < 2; more++) {
		char text[16 * (PHANTOM_BEADS_MAX + 4)];
		size_t n = (size_t)sprintf(text, "{\"diameter_mm\": 1, \"beads_mm\": [");

		for (int i = 0; i < PHANTOM_BEADS_MAX + more; i++)
			n += (size_t)sprintf(text + n, "%s[%d, 1, 2]", i ? "," : "", i);
		sprintf(text + n, "]}");
		if (more) {
			assert_error(profile_phantom_parse(text, strlen(text), &p, &err), &err, EBADMSG, "201 beads");
		} else {
			assert_int_equal(profile_phantom_parse(text, strlen(text), &p, &err), 0);
			assert_int_equal(p.n_beads, PHANTOM_BEADS_MAX);
			assert_true(p.at[PHANTOM_BEADS_MAX - 1][0] == PHANTOM_BEADS_MAX - 1);
		}
	}
}

TEST(refused)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{"", "line 1"},
		{"{\"diameter_mm\": 1", "line 1"},
		{"[]", "diameter_mm"},
		{"{\"diameter_mm\": \"1\"}", "is not a number"},
		{"{\"diameter_mm\": 0.199}", "0.2 to 20"},
		{"{\"diameter_mm\": 20.1}", "20.1 mm"},
		{"{\"diameter_mm\": 1, \"beads_mm\": [[-500.1, 2, 3], [1, 2, 5], [1, 2, 4]]}", "x of bead 1 is -500.1"},
		{"{\"diameter_mm\": 1, \"beads_mm\": [[1, 2, 3], [1, 500.1, 5], [1, 2, 4]]}", "y of bead 2 is 500.1"},
		{"{\"diameter_mm\": 1, \"beads_mm\": [[1, 2, 200.1], [1, 2, 5], [1, 2, 4]]}", "z of bead 1 is 200.1"},
		{"{\"diameter_mm\": 1, \"beads_mm\": [[1, 2, 3, 4], [1, 2, 5], [1, 2, 4]]}", "bead 1 is not a list"},
		{"{\"diameter_mm\": 1, \"layers_mm\": [5, 9.99]}", "5 mm apart"},
		{"{\"diameter_mm\": 1, \"layers_mm\": [5, 200.1]}", "200.1 mm"},
		{"{\"diameter_mm\": 1, \"layers_mm\": [-0.1, 20]}", "-0.1 mm"},
		{"{\"diameter_mm\": 1, \"layers_mm\": [5, \"10\"]}", "is not a number"},
		{"{\"diameter_mm\": 1, \"layers_mm\": [0, 5, 10, 15, 20, 25, 30, 35, 40]}", "9 layers"},
		{"{\"diameter_mm\": 1, \"diameter_mm\": 2}", "duplicate"},
		{"{\"diameter_mm\": 1, \"beads_mm\": [[1, 2, 3], [1, 2, 4]]}", "2 beads; allowed: 3 to 200"},
		{"{\"diameter_mm\": 1, \"beads_mm\": {}}", "0 beads"},
		{"{\"diameter_mm\": 1, \"beads_mm\": [[1, 2, 3], [1], [1, 2, 4]]}", "bead 2 is not a list"},
		{"{\"diameter_mm\": 1, \"beads_mm\": [[1, 2, 3], [1, 2, -1], [1, 2, 4]]}",
		 "z of bead 2 is -1 mm; allowed: 0 to 200"},
		{"{\"diameter_mm\": 1, \"beads_mm\": [[1, 2, 3], [1, 2, 5], [1, 1e9, 4]]}", "y of bead 3 is 1e+09"},
		{"{\"diameter_mm\": 1, \"beads_mm\": [[1, 2, 3], [1, 2, null], [1, 2, 4]]}", "z of bead 2 is not a number"},
		{"{\"diameter_mm\": 1, \"layers_mm\": [5]}", "1 layers; allowed: 2 to 8"},
		{"{\"diameter_mm\": 1, \"layers_mm\": [55, 5]}", "ascending"},
		{"{\"diameter_mm\": 1, \"layers_mm\": [5, 8]}", "5 mm apart"},
		{"{\"diameter_mm\": 1, \"layers_mm\": [5, 55], \"beads_mm\": []}", "allowed: one of them"},
	};
	struct profile_phantom p;
	struct err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (read_text(cases[i].text, &p, &err) != -EBADMSG || !strstr(err.msg, cases[i].part))
			fail_msg("%s: %s", cases[i].text, err.msg);
	}
	assert_int_equal(profile_phantom_read("/nonexistent/phantom.json", &p, &err), -ENOENT);
}
