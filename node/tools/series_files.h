/* SPDX-License-Identifier: Apache-2.0 */
/* Find images, or raw data, among files and folders, and sort them into volumes: each PET or CT series, and each tomosynthesis
 * object, is one. */
#ifndef TOMONODE_NODE_SERIES_FILES_H
#define TOMONODE_NODE_SERIES_FILES_H

#include "dicom/core/dataset.h"

struct series_volume {
	char uid[DICOM_UID_SIZE];    /* of the series, of a tomosynthesis of the object; "": raw data */
	char series[DICOM_UID_SIZE]; /* of the series; "": raw data */
	char name[160]; /* for a file, without ending: modality, series number, series description; with the UID where two
			   volumes have the same. Only letters, digits and ._+- */
	size_t plain;	/* length of the name without the UID */
	bool tomo;
	bool view;    /* a two-dimensional mammogram, one object */
	char **paths; /* [n] */
	size_t n;
};

struct series_files { /* starts as {0} */
	struct series_volume *list;
	size_t n;	 /* volumes; raw data are one */
	size_t n_files;	 /* in all volumes */
	size_t n_passed; /* files that were passed over, without own_file() */
	bool views;	 /* set by the caller: mammograms for presentation whose file is named itself are volumes, too */
};

/* Find images, or sinogram objects (raw), in files and folders (recursive; ended by NULL). Other files are passed over. An error:
 * a path or a DICOM file that cannot be read, because it might be selected; E2BIG: too many files. */
int series_files_find(char *const *paths, bool raw, struct series_files *ret_files, struct err *err);
void series_files_clear(struct series_files *f);

/* Refuse if no volume was found in the paths. EBADMSG: the text names the first path and counts the files. */
int series_files_check(const struct series_files *f, char *const *paths, bool raw, struct err *err);

#define SERIES_LIST_SIZE 400
/* List the names of the volumes, separated by commas; ", ..." at the end if not all fit. */
void series_files_list(const struct series_files *f, char *ret, size_t size);
/* Keep the volume with this name or UID, else those whose name contains the text; upper and lower case are the same. ENOENT:
 * there is none; the text lists the names. */
int series_files_choose(struct series_files *f, const char *text, struct err *err);

#endif
