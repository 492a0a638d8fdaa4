/* SPDX-License-Identifier: Apache-2.0 */
/* The DICOM terms for the kind of algorithm that computed a result: Algorithm Type (0018,9527) and a code of CID 7203
 * (extensible). */
#ifndef TOMONODE_NODE_ALGORITHM_TERMS_H
#define TOMONODE_NODE_ALGORITHM_TERMS_H

#include "dicom/object/result_place.h"
#include "recon/core/algorithm.h"

struct algorithm_terms {
	const char *type;	    /* value of Algorithm Type */
	const char *code, *meaning; /* Code Value (scheme DCM) and Code Meaning */
};
/* a: of the protocol. Of a volume from outside what is stated counts; NULL: nothing is. */
struct algorithm_terms algorithm_terms(const struct result_place *place, enum algorithm a);

#endif
