/* SPDX-License-Identifier: Apache-2.0 */
#include "recon/core/algorithm.h"

#include <errno.h>
#include <stdio.h>

static const struct algorithm_info infos[ALGORITHM_COUNT] = {[ALGORITHM_NONE] = {"", "", 0, 0, false},
#define X(name, word, rule, update, filtered) [ALGORITHM_##name] = {#word, #name, rule, update, filtered},
							     ALGORITHMS(X)
#undef X
};

const struct algorithm_info *algorithm_info(enum algorithm a)
{
	return &infos[(unsigned)a < ALGORITHM_COUNT ? a : ALGORITHM_NONE];
}

bool algorithm_iterates(enum algorithm a)
{
	return algorithm_info(a)->rule != 0 && algorithm_info(a)->rule != RULE_BACKPROJECT;
}

int algorithm_refuse(enum algorithm found, bool (*accepts)(enum algorithm a), struct err *err)
{
	char words[200] = "";
	size_t n = 0;

	for (int a = ALGORITHM_NONE + 1; a < ALGORITHM_COUNT && n < sizeof(words); a++)
		if (accepts((enum algorithm)a))
			n += (size_t)snprintf(words + n, sizeof(words) - n, "%s%s", n ? ", " : "", infos[a].word);
	return err_set(err, EINVAL, "algorithm=%s; allowed: %s",
		       found > ALGORITHM_NONE && found < ALGORITHM_COUNT ? infos[found].word : "none", words);
}
