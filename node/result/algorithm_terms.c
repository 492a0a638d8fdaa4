/* SPDX-License-Identifier: Apache-2.0 */
#include "node/result/algorithm_terms.h"

struct algorithm_terms algorithm_terms(enum algorithm a)
{
	if (algorithm_iterates(a))
		return (struct algorithm_terms){"ITERATIVE", "113963", "Iterative Reconstruction"};
	if (algorithm_info(a)->filtered)
		return (struct algorithm_terms){"FILTER_BACK_PROJ", "113962", "Filtered Back Projection"};
	/* shift and add: neither filtered nor iterated; it has no term of its own */
	return (struct algorithm_terms){"BACK_PROJ", "113042", "Pixel by pixel addition"};
}
