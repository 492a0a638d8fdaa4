/* SPDX-License-Identifier: Apache-2.0 */
/* The files and folders among the arguments of `tomonode recon` that become sinogram objects first (node/sinogram/pet_source.h):
 * each is imported into a folder of its own below the folder of the results, where it is a case of DICOM objects like any other.
 * The folders are removed at the end; because they may name a patient, a process beside this one waits for its end and removes
 * what SIGINT, SIGTERM, SIGKILL or a crash leaves. */
#ifndef TOMONODE_NODE_IMPORTED_CASES_H
#define TOMONODE_NODE_IMPORTED_CASES_H

#include <sys/types.h>

#include "node/reconstruct/case_files.h"
#include "node/sinogram/sinogram.h"

struct imported_case {
	const char *from; /* the argument */
	char folder[1100];
	struct sinogram_assumed assumed;
};

struct imported_cases {
	size_t n, most;
	struct imported_case *cases; /* [most], n are used; shared with the process beside this one */
	char **paths;		     /* the arguments, with a folder in place of each that is imported; ended by NULL */
	bool made_folder;	     /* that of the results did not exist */
	pid_t guard;		     /* the process beside this one; 0: none */
	int guard_fd;		     /* closed at the end of this process, which `guard` notices */
};

/* Return how many of the paths are imported; roles: of those, how many can have headers of further roles. */
size_t imported_cases_count(char *const *paths, size_t *ret_roles);
/* Return the number of files beneath the folders among the paths, and of the paths, that could be imported. */
size_t imported_cases_beneath(char *const *paths);
/* Return the first header among the paths that is named like factors or randoms, and write the option for such data; NULL: none.
 */
const char *imported_cases_not_emission(char *const *paths, const char **ret_option);
/* Import what is to be imported. conf: all but the header of EMISSION, folder, assumed. refuse(ctx, path, err) is called for what is
 * not imported. EBADMSG: two have the same data with the same geometry. */
int imported_cases_create(struct imported_cases *c, const struct sinogram_import *conf, char *const *paths, const char *out_dir,
			  void (*refuse)(void *ctx, const char *path, const struct err *err), void *ctx, struct err *err);
/* Return what a case was imported from, with what was assumed; NULL: it was not imported. */
const struct imported_case *imported_cases_of(const struct imported_cases *c, const struct case_files *files);
/* Remove the folders; that of the results, too, if it was made and is empty. */
void imported_cases_clear(struct imported_cases *c, const char *out_dir);

#endif
