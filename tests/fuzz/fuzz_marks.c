/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz tables of time marks: arbitrary bytes give marks or an error with the line. Marks that are accepted come back from a
 * written table; each time is in one gate or is left out, and the durations of the gates are those of the cycles. The first byte
 * gives the number of gates. Run: fuzz_marks -max_len=4096 WORK_FOLDER tests/fuzz/corpus/marks */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/pet/gates.h"
#include "tests/fuzz/fuzz.h"

#define TIMES 64

static void check_table(const struct pet_marks *m)
{
	struct pet_marks again = {0};
	char *text = NULL;

	must(m->n >= 2 && m->n <= PET_MARKS_MAX && m->ms[0] >= 0 && m->ms[m->n - 1] <= PET_MARKS_END, "marks out of range");
	for (size_t i = 1; i < m->n; i++)
		must(m->ms[i] > m->ms[i - 1], "marks that do not ascend");
	must(pet_marks_format(m, &text, NULL) == 0 && pet_marks_parse(text, strlen(text), &again, NULL) == 0, "not read again");
	must(again.n == m->n && !memcmp(again.ms, m->ms, m->n * sizeof(*m->ms)), "other marks");
	pet_marks_clear(&again);
	free(text);
}

static void check_gates(const struct pet_gates *g)
{
	int64_t first = g->marks.ms[0], all = g->marks.ms[g->marks.n - 1] - first;
	struct pet_cycles cycles;
	double durations = 0;
	size_t cycle = 0;

	pet_gates_count(g, &cycles);
	must(cycles.used >= 1 && (size_t)(cycles.used + cycles.left_out) == g->marks.n - 1, "cycles are not counted");
	for (int k = 0; k < g->n; k++) {
		struct pet_gate_sum sum = pet_gates_sum(g, k, 1e-4);

		must(sum.duration > 0 && isfinite(sum.decay_factor) && sum.decay_factor >= 1, "an impossible gate");
		durations += (double)sum.duration;
	}
	must(fabs(durations - cycles.mean * (double)cycles.used) < 1e-6 * durations, "durations of gates and cycles differ");
	for (int64_t i = -1; i <= TIMES; i++) {
		int gate = pet_gates_find(g, first + (i < 0 ? -1 : i * all / TIMES), &cycle);

		must(gate >= -1 && gate < g->n && (gate < 0 || (i >= 0 && i < TIMES)), "a time in a gate that does not exist");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pet_gates g = {.n = size ? data[0] % PET_GATES_MAX + 1 : 1};
	struct err err = {0};

	if (size == 0)
		return 0;
	if (pet_marks_parse((const char *)data + 1, size - 1, &g.marks, &err) < 0) {
		must(err.code == EBADMSG && err.msg[0] && g.marks.n == 0, "refused without a reason");
		return 0;
	}
	check_table(&g.marks);
	if (data[0] & 0x80) {
		g.shortest = g.marks.ms[1] - g.marks.ms[0];
		g.longest = g.shortest + data[0];
	}
	if (pet_gates_check(&g, PET_MARKS_END, &err) == 0)
		check_gates(&g);
	pet_marks_clear(&g.marks);
	return 0;
}
