/* SPDX-License-Identifier: Apache-2.0 */
/* The list of all algorithms, for every kind of data. An algorithm is an update rule (kernels/rules.h) and the set of bins that
 * one update uses. The sessions (the code that runs a reconstruction) depend only on these properties, not on the algorithm's
 * name, so that a new algorithm with an existing rule needs no change in a session. */
#ifndef TOMONODE_RECON_ALGORITHM_H
#define TOMONODE_RECON_ALGORITHM_H

#include <stdbool.h>

#include "kernels/err.h"
#include "kernels/rules.h"

/* The bins that one update of the image uses. */
enum algorithm_update {
	UPDATE_ALL = 1, /* all views */
	UPDATE_SUBSETS, /* a subset of the views, one subset after the other */
	UPDATE_RAYS,	/* one ray after the other */
};

/* X(name of the constant and for display, word in protocols, rule, bins of an update, whether views are filtered before) */
/* clang-format off */
#define ALGORITHMS(X) \
	X(BP,    bp,    RULE_BACKPROJECT,  UPDATE_ALL,     false) /* shift and add */ \
	X(FBP,   fbp,   RULE_BACKPROJECT,  UPDATE_ALL,     true)  /* filtered backprojection */ \
	X(ART,   art,   RULE_SART,         UPDATE_RAYS,    false) /* Kaczmarz: Gordon, Bender & Herman 1970 */ \
	X(SART,  sart,  RULE_SART,         UPDATE_SUBSETS, false) /* Andersen & Kak 1984; one subset: SIRT */ \
	X(MLEM,  mlem,  RULE_EM,           UPDATE_ALL,     false) /* Shepp & Vardi 1982 */ \
	X(OSEM,  osem,  RULE_EM,           UPDATE_SUBSETS, false) /* Hudson & Larkin 1994 */ \
	X(BSREM, bsrem, RULE_EM_RELAXED,   UPDATE_SUBSETS, false) /* De Pierro & Yamagishi 2001, Ahn & Fessler 2003 */ \
	X(OSTR,  ostr,  RULE_TRANSMISSION, UPDATE_SUBSETS, false) /* OSC: Kamphuis & Beekman 1998 */ \
	X(MLTR,  mltr,  RULE_TRANSMISSION, UPDATE_ALL,     false) /* the "convex algorithm" of Lange & Fessler 1995 */
/* clang-format on */

enum algorithm {
	ALGORITHM_NONE,
#define X(name, word, rule, update, filtered) ALGORITHM_##name,
	ALGORITHMS(X)
#undef X
		ALGORITHM_COUNT
};

struct algorithm_info {
	const char *word, *name; /* "osem", "OSEM" */
	enum rule_kind rule;
	enum algorithm_update update;
	bool filtered;
};

/* Return the properties of an algorithm. An unknown one has the empty name "" and rule 0. */
const struct algorithm_info *algorithm_info(enum algorithm a);
/* Return whether the algorithm makes more than one pass over the views. */
bool algorithm_iterates(enum algorithm a);
/* Return EINVAL with the message "algorithm=FOUND; allowed: " and the words of all algorithms for which accepts() is true. */
int algorithm_refuse(enum algorithm found, bool (*accepts)(enum algorithm a), struct err *err);

#endif
