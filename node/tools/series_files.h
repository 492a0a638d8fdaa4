/* SPDX-License-Identifier: Apache-2.0 */
/* Find the images in files and folders: PET and CT images, and tomosyntheses. */
#ifndef TOMONODE_NODE_SERIES_FILES_H
#define TOMONODE_NODE_SERIES_FILES_H

#include <stddef.h>

#include "kernels/err.h"

struct series_files {
	char **paths; /* of the images, in the order of their names within a folder */
	size_t n;
	size_t n_tomo;	/* how many of them are a tomosynthesis each */
	size_t n_other; /* files that are nothing of this */
};

/* Look at all files of `paths` (ended by NULL): files, or folders with their sub-folders. ENOENT: a path does not exist. */
int series_files_find(char *const *paths, struct series_files *ret, struct err *err);
void series_files_clear(struct series_files *f);

#endif
