/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of a sinogram object by its path, for tests. */
#ifndef TOMONODE_TESTS_NODE_SINOGRAM_FACTS_H
#define TOMONODE_TESTS_NODE_SINOGRAM_FACTS_H

#include "node/sinogram/sinogram.h"

static inline int read_facts(const char *path, struct sinogram_facts *ret_facts, struct err *err)
{
	struct dicom_file *file = NULL;
	int rc = dicom_open(path, &file, err);

	if (rc == 0)
		rc = sinogram_facts_of(file, ret_facts, err);
	dicom_close(file);
	return rc;
}

#endif
