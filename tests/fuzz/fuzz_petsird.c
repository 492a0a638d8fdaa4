/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz PETSIRD files: arbitrary bytes give events or an error with a reason. Events of an accepted file are within the tables of
 * its header, and a second reading gives as many. Run: fuzz_petsird -max_len=32768 WORK_FOLDER tests/fuzz/corpus/petsird */
#include <math.h>
#include <unistd.h>

#include "node/format/petsird.h"
#include "tests/fuzz/fuzz.h"

#define PIECE 1000

static void check_header(const struct petsird_header *h)
{
	must(h->n_types >= 1 && h->n_types <= PETSIRD_TYPES_MAX && h->n_detectors <= PETSIRD_DETECTORS_MAX, "sizes");
	for (size_t i = 0; i < h->n_detectors; i++)
		for (int k = 0; k < 3; k++)
			must(isfinite(h->position[i][k]), "a position that is not finite");
	for (size_t i = 0; i < h->n_types; i++)
		for (size_t j = 0; j < h->n_types; j++)
			for (size_t k = 0; k < petsird_tof_of(h, i, j)->n; k++)
				must(petsird_tof_of(h, i, j)->edges[k] < petsird_tof_of(h, i, j)->edges[k + 1], "TOF edges");
}

static void check_event(const struct petsird *p, const struct petsird_event *e)
{
	const struct petsird_header *h = petsird_header(p);
	size_t type[2];

	for (int k = 0; k < 2; k++) {
		must(e->detector[k] < h->n_detectors, "a detector that does not exist");
		type[k] = petsird_type_of(h, e->detector[k]);
		must(e->energy[k] < h->type[type[k]].energies, "an energy that does not exist");
	}
	must(e->tof < petsird_tof_of(h, type[0], type[1])->n, "a TOF bin that does not exist");
	must(petsird_efficiency(p, e->detector, e->energy) >= 0, "an efficiency below 0");
	must(petsird_is_alive(p, e->detector, e->energy) == (petsird_efficiency(p, e->detector, e->energy) > 0), "alive or not");
}

/* Read all events; returns whether this succeeded. */
static bool read_events(struct petsird *p, uint64_t *ret_n)
{
	static struct petsird_event events[PIECE];
	struct err err = {0};
	size_t got = 1;
	int rc = 0;

	*ret_n = 0;
	while (rc == 0 && got > 0) {
		got = 0;
		rc = petsird_next(p, events, PIECE, &got, &err);
		for (size_t i = 0; i < got; i++)
			check_event(p, &events[i]);
		*ret_n += got;
	}
	must(rc == 0 || (err.msg[0] && err.code == -rc), "refused without a reason");
	must(rc < 0 || *ret_n == petsird_counts(p)->prompts + petsird_counts(p)->delayeds, "counts");
	return rc == 0;
}

/* Marks of a signal ascend, and are within the event blocks. */
static void try_marks(struct petsird *p, enum pet_signal signal)
{
	struct pet_marks m = {0};
	struct err err = {0};
	uint64_t outside = 0, n;
	int rc = petsird_marks(p, signal, &m, &outside, &err);

	must(rc == 0 || (err.msg[0] && err.code == -rc && m.n == 0), "marks refused without a reason");
	if (rc < 0)
		return;
	must(read_events(p, &n), "events that were read with the marks are not read again");
	for (size_t i = 0; i < m.n; i++)
		must(m.ms[i] >= (i ? m.ms[i - 1] + 1 : 0) && m.ms[i] <= petsird_counts(p)->stop - petsird_counts(p)->start,
		     "marks out of order or range");
	petsird_rewind(p);
	pet_marks_clear(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz_file input;
	struct petsird *p = NULL;
	struct err err = {0};
	uint64_t n, again;
	int rc;

	fuzz_file_fill(&input, data, size);
	rc = petsird_open(input.path, &p, &err);
	must(rc == 0 || (err.msg[0] && err.code == -rc), "refused without a reason");
	if (rc < 0)
		return 0;
	check_header(petsird_header(p));
	if (read_events(p, &n)) {
		petsird_rewind(p);
		must(read_events(p, &again) && again == n, "the second reading differs");
	}
	for (int s = PET_SIGNAL_ECG; s < PET_SIGNALS; s++)
		try_marks(p, (enum pet_signal)s);
	petsird_close(p);
	return 0;
}
