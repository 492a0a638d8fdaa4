/* SPDX-License-Identifier: Apache-2.0 */
/* Time marks and gates: tables and refused ones, with the line; each time is in one gate or is left out; durations and decay of
 * gates against sums over single milliseconds. */
#include "recon/pet/gates.h"
#include "tests/test.h"

static struct pet_marks parse(const char *text)
{
	struct pet_marks m = {0};
	struct err err = {0};

	assert_done(pet_marks_parse(text, strlen(text), &m, &err), &err);
	return m;
}

TEST(tables)
{
	struct pet_marks m = parse("# R waves\r\n0\r\n 812\t\n\n1630\n2147483647"), again = {0};
	char *text = NULL;

	assert_int_equal(m.n, 4);
	assert_int_equal(m.ms[0], 0);
	assert_int_equal(m.ms[1], 812);
	assert_int_equal(m.ms[3], PET_MARKS_END);
	assert_int_equal(pet_marks_format(&m, &text, NULL), 0);
	assert_string_equal(text, "0\n812\n1630\n2147483647\n");
	free(text);
	assert_int_equal(pet_marks_copy(&m, &again, NULL), 0);
	assert_int_equal(again.n, m.n);
	assert_memory_equal(again.ms, m.ms, m.n * sizeof(*m.ms));
	pet_marks_clear(&again);
	pet_marks_clear(&m);
	assert_int_equal(m.n, 0);
}

TEST(refused_tables)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{"", "time marks: 0 marks; a cycle needs two"},
		{"#1\n\n", "0 marks"},
		{"5", "1 mark; a cycle needs two"},
		{"5\n5", "time marks: line 2: mark 2 is at 5 ms, not after mark 1 at 5 ms"},
		{"7\n# x\n5", "line 3: mark 2 is at 5 ms, not after mark 1 at 7 ms"},
		{"-1\n5", "line 1: mark 1 is at -1 ms: before the start of the acquisition"},
		{"0\nnan", "line 2: \"nan\" is not a time; allowed: whole milliseconds"},
		{"0\ninf", "\"inf\""},
		{"0\n1.5", "\"1.5\" is not a time"},
		{"0\n1e3", "\"1e3\""},
		{"0 5\n", "\"0 5\""},
		{"-\n", "\"-\""},
		{"0\n2147483648", "line 2: mark 2 is at 2147483648 ms; allowed: at most 2147483647"},
		{"0\n9999999999999999", "\"9999999999999999\" is not a time"},
		{"0\naaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeee", "\"aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd\""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pet_marks m = {.n = 7};
		struct err err = {0};

		if (pet_marks_parse(cases[i].text, strlen(cases[i].text), &m, &err) != -EBADMSG ||
		    !strstr(err.msg, cases[i].part))
			fail_msg("\"%s\": %s", cases[i].text, err.msg);
		assert_int_equal(m.n, 7); /* written only on success */
	}
}

TEST(bytes_of_zero)
{
	struct pet_marks m = {0};
	struct err err = {0};

	assert_error(pet_marks_parse("0\n\0\n5", 5, &m, &err), &err, EBADMSG, "line 2");
}

TEST(names_and_limits)
{
	static const char *const refused[] = {"5", "5,", ",5", "5,4", "-1,5", "0,0", "1,2,3", "1.5,2", "0,2147483648", "a,b"};
	struct pet_gates g = {.n = 3};
	struct err err = {0};
	enum pet_signal s;

	for (int i = 0; i < PET_SIGNALS; i++) {
		assert_true(pet_signal_named(pet_signal_name((enum pet_signal)i), &s));
		assert_int_equal(s, i);
	}
	assert_false(pet_signal_named("ECG", &s) || pet_signal_named("", &s));
	assert_int_equal(pet_gates_parse_cycle("600,1200", &g, &err), 0);
	assert_true(g.shortest == 600 && g.longest == 1200 && g.n == 3);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_int_equal(pet_gates_parse_cycle(refused[i], &g, &err), -EINVAL);
		assert_true(g.shortest == 600 && g.longest == 1200);
	}
	assert_int_equal(pet_gates_parse_cycle("", &g, &err), 0);
	assert_true(g.shortest == 0 && g.longest == 0);
}

/* More marks, or more bytes, than allowed; as many as allowed. */
TEST(large_tables)
{
	size_t size = PET_MARKS_BYTES + 1, n = 0;
	char *text = take_memory(size + 16);
	struct pet_marks m = {0};
	struct err err = {0};

	for (size_t i = 0; i < PET_MARKS_MAX; i++)
		n += (size_t)sprintf(text + n, "%zu\n", i);
	assert_int_equal(pet_marks_parse(text, n, &m, &err), 0);
	assert_int_equal(m.n, PET_MARKS_MAX);
	pet_marks_clear(&m);
	n += (size_t)sprintf(text + n, "%zu\n", PET_MARKS_MAX);
	assert_error(pet_marks_parse(text, n, &m, &err), &err, EBADMSG, "line 1048577: more than 1048576 marks");
	memset(text, '\n', size);
	assert_error(pet_marks_parse(text, size, &m, &err), &err, EBADMSG, "16777217 bytes; allowed: at most 16777216");
}

TEST(refused_gates)
{
	static const struct {
		int n;
		int64_t shortest, longest, duration;
		int code;
		const char *part;
	} cases[] = {
		{0, 0, 0, 3000, -EINVAL, "0 gates; allowed: 1 to 64"},
		{65, 0, 0, 3000, -EINVAL, "65 gates"},
		{8, -1, 0, 3000, -EINVAL, "cycles of -1 to 0 ms"},
		{8, 900, 800, 3000, -EINVAL, "cycles of 900 to 800 ms"},
		{8, 0, 0, 2599, -EBADMSG, "mark 4 is at 2600 ms, after the end of the acquisition at 2599 ms"},
		{8, 1001, 2000, 2600, -ENOTSUP, "none of the 3 cycles has 1001 to 2000 ms"},
		{51, 0, 0, 2600, -EBADMSG, "cycle 3 from 2550 to 2600 ms is shorter than 51 gates of 1 ms"},
	};
	struct pet_gates g = {.marks = parse("1000\n2000\n2550\n2600")};
	struct err err = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		g.n = cases[i].n;
		g.shortest = cases[i].shortest;
		g.longest = cases[i].longest;
		if (pet_gates_check(&g, cases[i].duration, &err) != cases[i].code || !strstr(err.msg, cases[i].part))
			fail_msg("case %zu: %s", i, err.msg);
	}
	g = (struct pet_gates){.n = 51, .shortest = 51, .longest = 1000, .marks = g.marks};
	assert_int_equal(pet_gates_check(&g, 2600, &err), 0); /* the short cycle is left out */
	g.n = PET_GATES_MAX;
	g.shortest = 64;
	assert_int_equal(pet_gates_check(&g, 2600, &err), 0);
	g.n = 50;
	g.shortest = g.longest = 0;
	assert_int_equal(pet_gates_check(&g, 2600, &err), 0);
	pet_marks_clear(&g.marks);
}

/* Times in any order: the gate is that of the definition, with fractions. */
TEST(times_of_gates)
{
	struct pet_gates g = {.n = 7, .shortest = 90, .longest = 130, .marks = parse("13\n113\n227\n300\n429\n600\n700")};
	static const int used[] = {1, 1, 0, 1, 0, 1};
	size_t cycle = 0;

	for (int pass = 0; pass < 2; pass++)
		for (long i = 0; i < 800; i++) {
			long t = pass == 0 ? i : i * 449 % 800;
			int wanted = -1;

			for (int c = 0; c < 6; c++)
				if (t >= g.marks.ms[c] && t < g.marks.ms[c + 1] && used[c])
					wanted = (int)floor((double)(t - g.marks.ms[c]) * 7 /
							    (double)(g.marks.ms[c + 1] - g.marks.ms[c]));
			assert_int_equal(pet_gates_find(&g, t, &cycle), wanted);
		}
	pet_marks_clear(&g.marks);
}

TEST(counts_of_cycles)
{
	struct pet_gates g = {.n = 2, .marks = parse("13\n113\n227\n300\n429\n600")};
	struct pet_cycles c;

	pet_gates_count(&g, &c);
	assert_int_equal(c.used, 5);
	assert_int_equal(c.left_out, 0);
	assert_true(fabs(c.mean - 587.0 / 5) < 1e-9);
	g.shortest = 100;
	g.longest = 129;
	pet_gates_count(&g, &c);
	assert_int_equal(c.used, 3);
	assert_int_equal(c.left_out, 2);
	assert_true(fabs(c.mean - 343.0 / 3) < 1e-9);
	pet_marks_clear(&g.marks);
}

/* Durations, decay and mean times against sums over all milliseconds, each with the activity at its middle. */
TEST(sums_of_gates)
{
	static const double lambdas[] = {0, M_LN2 / 109.7 / 60, M_LN2 / 2};
	struct pet_gates g = {.n = 7, .shortest = 90, .longest = 1300, .marks = parse("13\n113\n227\n300\n429\n1600\n4000")};

	for (size_t l = 0; l < 3; l++)
		for (int k = 0; k < g.n; k++) {
			struct pet_gate_sum s = pet_gates_sum(&g, k, lambdas[l]);
			double activity = 0, moment = 0;
			size_t cycle = 0;
			long n = 0;

			for (long t = 0; t < 4000; t++)
				if (pet_gates_find(&g, t, &cycle) == k) {
					n++;
					activity += exp(-lambdas[l] * ((double)t + 0.5) / 1000);
					moment += (double)t + 0.5;
				}
			assert_int_equal(s.duration, n);
			assert_true(fabs(s.decay_factor * activity / (double)n - 1) < 1e-7);
			assert_true(fabs(s.reference -
					 (lambdas[l] > 0 ? 1000 * log(s.decay_factor) / lambdas[l] : moment / (double)n)) < 1e-6);
			assert_true(s.decay_factor >= 1 && (s.decay_factor > 1) == (lambdas[l] > 0));
		}
	pet_marks_clear(&g.marks);
}
