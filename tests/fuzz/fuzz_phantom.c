/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz the description of a bead phantom with arbitrary bytes: an error with a message, or a phantom whose numbers are in range.
 * Run: fuzz_phantom -max_len=8192 WORK_FOLDER tests/fuzz/corpus/phantom */
#include <stddef.h>
#include <stdlib.h>

#include "node/tools/profile_phantom.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct profile_phantom *p)
{
	must(p->diameter >= 0.2 && p->diameter <= 20, "a diameter out of range");
	must(p->n_beads >= 0 && p->n_beads <= PHANTOM_BEADS_MAX && p->n_layers >= 0 && p->n_layers <= PHANTOM_LAYERS_MAX,
	     "an impossible number of beads or layers");
	must(p->knowledge != BEADS_KNOWN || p->n_beads >= 3, "known beads that are too few");
	must((p->knowledge == BEADS_IN_LAYERS) == (p->n_layers >= 2), "layers without knowledge of them, or the reverse");
	for (int i = 0; i < p->n_beads; i++)
		for (int a = 0; a < 3; a++)
			must(p->at[i][a] >= -500 && p->at[i][a] <= 500, "a place out of range");
	for (int i = 1; i < p->n_layers; i++)
		must(p->layer[i] > p->layer[i - 1], "layers out of order");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile_phantom p;
	struct err err = {0};

	if (profile_phantom_parse((const char *)data, size, &p, &err) == 0)
		check(&p);
	else
		must(err.code != 0 && err.msg[0], "refused without a reason");
	return 0;
}
