/* The algorithms of all kinds of data in one list. An algorithm is an update rule (kernels/rules.h) and the bins that each update
 * takes; a session asks what an algorithm is made of, not which one it is, so that an algorithm on a rule that it has needs
 * nothing new in it.
 */
#ifndef TOMONODE_RECON_ALGORITHM_H
#define TOMONODE_RECON_ALGORITHM_H

#include <stdbool.h>

#include "kernels/err.h"
#include "kernels/rules.h"

/* Which bins an update of the image takes. */
enum algorithm_update {
	UPDATE_ALL = 1, /* of all views */
	UPDATE_SUBSETS, /* of a subset of the views, one subset after the other */
	UPDATE_RAYS,	/* one ray after the other */
};

/* X(constant and name, word in protocols, rule, bins of an update, views are filtered before) */
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
	X(MLTR,  mltr,  RULE_TRANSMISSION, UPDATE_ALL,     false) /* the convex algorithm: Lange & Fessler 1995 */
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

/* One that is not there has neither name nor rule: "", 0. */
const struct algorithm_info *algorithm_info(enum algorithm a);
/* More than one pass over the views? */
bool algorithm_iterates(enum algorithm a);
/* EINVAL, "algorithm=FOUND; allowed: ": the words of those that the session takes. */
int algorithm_refuse(enum algorithm found, bool (*takes)(enum algorithm a), struct err *err);

#endif
