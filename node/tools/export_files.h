/* SPDX-License-Identifier: Apache-2.0 */
/* Select the objects to export among files and folders, and sort them into volumes: each PET or CT series, and each tomosynthesis
 * object, is one. */
#ifndef TOMONODE_NODE_EXPORT_FILES_H
#define TOMONODE_NODE_EXPORT_FILES_H

#include "dicom/core/dataset.h"

struct export_volume {
	char uid[DICOM_UID_SIZE]; /* of the series, of a tomosynthesis of the object; "": raw data */
	char name[160]; /* for a file, without ending: modality, series number, series description; with the UID where two
			   volumes have the same. Only letters, digits and ._+- */
	bool tomo;
	char **paths; /* [n] */
	size_t n;
};

struct export_files { /* starts as {0} */
	struct export_volume *list;
	size_t n;	 /* volumes; raw data are one */
	size_t n_files;	 /* in all volumes */
	size_t n_passed; /* files that were passed over */
};

/* Find images, or sinogram objects (raw), in files and folders (recursive; ended by NULL). Other files are passed over. An error:
 * a path or a DICOM file that cannot be read, because it might be selected; E2BIG: too many files. */
int export_files_find(char *const *paths, bool raw, struct export_files *ret_files, struct err *err);
void export_files_clear(struct export_files *f);

/* EEXIST: the file exists. */
int export_must_be_new(const char *path, struct err *err);

#endif
