/* SPDX-License-Identifier: Apache-2.0 */
/* Find the DICOM files in folders and group them into cases, for `tomonode recon`. */
#ifndef TOMONODE_NODE_CASE_FILES_H
#define TOMONODE_NODE_CASE_FILES_H

#include <stddef.h>

#include "kernels/err.h"
#include "node/reconstruct/case_facts.h"

struct case_files {
	char key[400]; /* from case_key() */
	const struct kind *kind;
	char laterality[4], view[8];
	char study[DICOM_UID_SIZE], series[DICOM_UID_SIZE];
	char frame_of_reference[DICOM_UID_SIZE]; /* of its first file; "": none */
	size_t n;
	char **paths;
	char (*instances)[DICOM_UID_SIZE];
};

/* A CT image: no case of its own, but the attenuation of a PET case. */
struct case_ct {
	char study[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
	char *path;
};

struct case_refusal {
	char *path;
	char reason[500];
};

struct case_list {
	size_t n;
	struct case_files *cases; /* sorted by the name of their first file */
	size_t n_ct;
	struct case_ct *ct; /* in the order of their names */
	size_t n_refused;
	struct case_refusal *refused; /* DICOM files that cannot be read or have an unsupported encoding */
	size_t n_files;		      /* number of regular files */
	size_t n_other;		      /* files that are not DICOM, of no case and not of n_own */
	char **other;		      /* [n_other]: their paths */
	size_t n_own;		      /* that this program writes beside objects: own_file() */
	size_t n_ignored;	      /* DICOM files that are neither projections nor sinograms nor CT */
	size_t n_duplicates;	      /* files with an instance that another file has already */
};

/* Read all files of `paths` (files, or folders with their sub-folders; links that lead out of them are not followed) in the order
 * of their names. */
int case_list_create(char *const *paths, struct case_list **ret_list, struct err *err);
struct case_list *case_list_free(struct case_list *list); /* takes NULL, returns NULL */

/* Return the paths of the case's files and, behind them, of the CT for it: of its frame of reference, or, if there is none, of
 * its study, or, if there is only this case, all: one that does not fit is refused, not forgotten. The caller frees the array,
 * whose names are those of the list. NULL: no memory. */
const char **case_paths_with_ct(const struct case_list *list, const struct case_files *c, size_t *ret_n);

#endif
