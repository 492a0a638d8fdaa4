/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz raw data of a Siemens mMR: arbitrary bytes give a header, counts and efficiencies, or an error. Bytes after a line "===="
 * are the data, used as words of the list mode, and repeated as a normalisation. Run: fuzz_mmr -max_len=8192
 * -dict=tests/fuzz/interfile.dict WORK_FOLDER tests/fuzz/corpus/mmr */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node/format/mmr.h"
#include "recon/pet/michelogram_pairs.h"
#include "tests/fuzz/fuzz.h"

#define LINE "====\n"

static struct michelogram m = {
	.scanner = {MMR_RINGS, MMR_DETECTORS, 4, 328, 6, 2}, .n_radial = MMR_RADIAL, .n_angles = MMR_ANGLES};
static struct michelogram_index bins;
static uint32_t *counts; /* of the ring difference 0 */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	must(michelogram_segments(MMR_RINGS, 1, 0, &m.segments, &m.n_segments, NULL) == 0, "no segments");
	must(michelogram_index_init(&m, &bins, NULL) == 0, "no index");
	counts = calloc(michelogram_size(&m), sizeof(*counts));
	must(counts, "no memory");
	return 0;
}

static bool is_factor(double v)
{
	return isnan(v) || (v >= 0 && isfinite(v));
}

static void try_header(const char *text, size_t size)
{
	struct mmr_header h;
	struct err err = {0};

	if (mmr_header_read_list(text, size, &h, &err) == 0)
		must(h.words > 0 && (isnan(h.duration) || h.duration > 0) && memchr(h.position, '\0', sizeof(h.position)),
		     "an impossible header");
	else
		must(err.code > 0 && err.msg[0], "no error");
	if (mmr_header_read_norm(text, size, &h, &err) == 0)
		must(is_factor(h.quantification) && is_factor(h.cross_calibration), "an impossible factor");
	if (mmr_header_read_name(text, size, &h, &err) == 0)
		must(memchr(h.data_file, '\0', sizeof(h.data_file)), "a name without an end");
}

static void try_list(const uint8_t *data, size_t n)
{
	struct err err = {0};
	struct mmr_list l;
	struct mmr_list_report *r = &l.report;

	must(mmr_list_begin(&m, &l, NULL) == 0, "no list");
	l.frame = (struct pet_frame){0, 1000};
	must(mmr_list_in_frame(&l, data, n) <= n, "more words than there are");
	if (mmr_list_add(&l, data, n, counts, &err) < 0)
		must(err.code > 0 && err.msg[0] && r->words <= n, "no error");
	else
		must(r->words == n && r->prompts + r->delayeds + r->singles + r->marks + r->skipped == n &&
			     r->outside + r->between <= r->prompts,
		     "words are not accounted for");
}

/* The gates and what is left out are the whole: a word of the list is a prompt of one gate at most. */
static void try_gates(const uint8_t *data, size_t n)
{
	struct mmr_marks marks = {.signal = n % 2 ? PET_SIGNAL_ECG : PET_SIGNAL_RESP, .first = -1, .last = -1};
	struct pet_gates g = {.n = 3};
	struct err err = {0};
	struct mmr_list l;

	if (mmr_marks_add(&marks, data, n, &err) < 0)
		must(err.code > 0 && err.msg[0], "no error");
	g.marks = marks.marks;
	for (int k = 0; k < g.n && pet_gates_check(&g, PET_MARKS_END, &err) == 0; k++) {
		must(mmr_list_begin(&m, &l, NULL) == 0, "no list");
		mmr_list_choose_gate(&l, &g, k);
		mmr_list_add(&l, data, n, counts, &err);
		must(l.report.outside + l.report.between <= l.report.prompts, "prompts are not accounted for");
	}
	pet_marks_clear(&marks.marks);
}

static void try_norm(const uint8_t *data, size_t n)
{
	static uint8_t bytes[MMR_NORM_BYTES];
	static float values[MMR_ANGLES * MMR_RADIAL];
	struct mmr_norm *norm = NULL;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = n ? data[i % n] : 0;
	if (mmr_norm_read(bytes, sizeof(bytes), &norm, NULL) < 0)
		return;
	mmr_norm_plane(norm, &bins, (int)(n % MMR_RINGS), values);
	for (size_t i = 0; i < MMR_PLANE_BINS; i++)
		must(values[i] >= 0 && isfinite(values[i]), "an impossible efficiency");
	mmr_norm_free(norm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *line = memmem(data, size, LINE, strlen(LINE)), *rest = line ? line + strlen(LINE) : data + size;
	size_t left = size - (size_t)(rest - data);

	try_header((const char *)data, line ? (size_t)(line - data) : size);
	try_list(rest, left / 4);
	try_gates(rest, left / 4);
	if (size % 8 == 0) /* takes a hundred times as long */
		try_norm(rest, left / 4 * 4);
	return 0;
}
