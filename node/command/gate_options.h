/* SPDX-License-Identifier: Apache-2.0 */
/* The options of gates that `tomonode recon` and `tomonode import` share: --gates, --marks, --gate-cycle. */
#ifndef TOMONODE_NODE_GATE_OPTIONS_H
#define TOMONODE_NODE_GATE_OPTIONS_H

#include "node/options/options.h"
#include "recon/pet/gates.h"

struct gate_options {
	int gates;	   /* 0: not given */
	const char *marks; /* name of a signal, or of a file with a table; NULL: not given */
	const char *cycle; /* NULL: not given */
};

/* Check the options together, and read the table if there is one. without: option that cannot be given with gates, NULL: it is
 * not. Returns CODE_OK or an exit code after a message; then *ret has nothing to free. Else pet_marks_clear(&ret->marks). */
int gate_options_read(const struct options *o, const struct gate_options *given, const char *without, struct pet_gates *ret);

#endif
