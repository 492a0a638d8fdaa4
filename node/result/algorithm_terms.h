/* SPDX-License-Identifier: Apache-2.0 */
/* What DICOM calls an algorithm: the defined term of Algorithm Type (0018,9527), a code of CID 7203 (extensible). */
#ifndef TOMONODE_NODE_ALGORITHM_TERMS_H
#define TOMONODE_NODE_ALGORITHM_TERMS_H

#include "recon/core/algorithm.h"

struct algorithm_terms {
	const char *type, *code, *meaning; /* code of scheme DCM */
};
struct algorithm_terms algorithm_terms(enum algorithm a);

#endif
