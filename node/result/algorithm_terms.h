/* SPDX-License-Identifier: Apache-2.0 */
/* The DICOM terms for a reconstruction algorithm: Algorithm Type (0018,9527) and a code of CID 7203 (extensible). */
#ifndef TOMONODE_NODE_ALGORITHM_TERMS_H
#define TOMONODE_NODE_ALGORITHM_TERMS_H

#include "recon/core/algorithm.h"

struct algorithm_terms {
	const char *type;	    /* value of Algorithm Type */
	const char *code, *meaning; /* Code Value (scheme DCM) and Code Meaning */
};
struct algorithm_terms algorithm_terms(enum algorithm a);

#endif
