/* SPDX-License-Identifier: Apache-2.0 */
/* The Interfile headers among the arguments of `tomonode recon`: each is imported (node/sinogram/sinogram.h) into a folder of its
 * own below the folder of the results, where it is a case of DICOM objects like any other. The folders are removed at the end;
 * because they may name a patient, a process beside this one waits for its end and removes what SIGINT, SIGTERM, SIGKILL or a
 * crash leaves. */
#ifndef TOMONODE_NODE_INTERFILE_CASES_H
#define TOMONODE_NODE_INTERFILE_CASES_H

#include <sys/types.h>

#include "node/reconstruct/case_files.h"
#include "node/sinogram/sinogram.h"

struct interfile_case {
	const char *header; /* the argument */
	char folder[1100];
	struct sinogram_assumed assumed;
	char identity[65]; /* digest of its data, their number format and their geometry; "": not known */
};

struct interfile_cases {
	/* Set by the caller: paths of roles other than EMISSION, like, set, config, now. */
	struct sinogram_import conf;
	size_t n, most;
	struct interfile_case *cases; /* [most], n are used; shared with the process beside this one */
	char **paths;		      /* the arguments, with a folder in place of each header; ended by NULL */
	bool made_folder;	      /* that of the results did not exist */
	pid_t guard;		      /* the process beside this one; 0: none */
	int guard_fd;		      /* closed at the end of this process, which `guard` notices */
};

/* Return the number of Interfile headers among the paths. */
size_t interfile_cases_count(char *const *paths);
/* Return the number of files beneath the folders among the paths, and of the paths, that are Interfile headers. */
size_t interfile_cases_beneath(char *const *paths);
/* Return the first header among the paths that is named like factors or randoms, and write the option for such data; NULL: none.
 */
const char *interfile_cases_not_emission(char *const *paths, const char **ret_option);
/* Import the headers among the paths. refuse(ctx, header, err) is called for one that is not imported. EBADMSG: two have the same
 * data with the same geometry. */
int interfile_cases_import(struct interfile_cases *c, char *const *paths, const char *out_dir,
			   void (*refuse)(void *ctx, const char *header, const struct err *err), void *ctx, struct err *err);
/* Return the header that a case is of, with what was assumed; NULL: it is not of an Interfile. */
const struct interfile_case *interfile_cases_of(const struct interfile_cases *c, const struct case_files *files);
/* Remove the folders; that of the results, too, if it was made and is empty. */
void interfile_cases_clear(struct interfile_cases *c, const char *out_dir);

#endif
