/* SPDX-License-Identifier: Apache-2.0 */
/* Write the Interfile files that sinogram objects were made from. Data and header text are unchanged, except for the name of the
 * data file. */
#ifndef TOMONODE_NODE_EXPORT_SINOGRAM_H
#define TOMONODE_NODE_EXPORT_SINOGRAM_H

#include "node/sinogram/sinogram.h"

struct export_file {
	char path[4096]; /* path of the header; the data file is in the same folder */
	enum sinogram_role role;
	uint64_t bytes; /* size of the data */
};

/* Write EMISSION to `path` (.hs) and a .s file in the same folder, other roles to NAME-multiplicative.hs and so on. Writes all
 * files or none. */
int export_sinogram(const struct sinogram *s, const char *path, struct export_file ret_file[SINOGRAM_ROLES], size_t *ret_n,
		    struct err *err);

/* EEXIST: one of the files that export_sinogram() would write exists. */
int export_sinogram_must_be_new(const struct sinogram *s, const char *path, struct err *err);

#endif
