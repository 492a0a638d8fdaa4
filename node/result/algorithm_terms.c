/* SPDX-License-Identifier: Apache-2.0 */
#include "node/result/algorithm_terms.h"

static enum result_algorithm kind_of_algorithm(enum algorithm a)
{
	return algorithm_iterates(a) ? RESULT_ITERATIVE : algorithm_info(a)->filtered ? RESULT_FILTERED : RESULT_BACKPROJECTION;
}

struct algorithm_terms algorithm_terms(const struct result_place *place, enum algorithm a)
{
	static const struct algorithm_terms terms[] = {
		[RESULT_ITERATIVE] = {"ITERATIVE", "113963", "Iterative Reconstruction"},
		[RESULT_FILTERED] = {"FILTER_BACK_PROJ", "113962", "Filtered Back Projection"},
		/* shift and add: neither filtered nor iterated; it has no term of its own */
		[RESULT_BACKPROJECTION] = {"BACK_PROJ", "113042", "Pixel by pixel addition"},
	};

	return terms[place->outside ? place->outside->algorithm : kind_of_algorithm(a)];
}
