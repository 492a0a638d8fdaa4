/* SPDX-License-Identifier: Apache-2.0 */
/* Write the reports of the results among files and folders: one for each tomosynthesis and each PET or CT series. */
#ifndef TOMONODE_NODE_REPORT_FILES_H
#define TOMONODE_NODE_REPORT_FILES_H

#include "node/config/config.h"
#include "node/report/report.h"

struct report_conf {
	const struct config *config; /* profiles of Hologic SCO objects */
	const double *voxel;	     /* of such objects, mm (node/tomo/tomo_slices.h); NULL: not stated */
	bool patient;		     /* struct report_request */
	size_t most_bytes;	     /* of the values of a PET or CT series, which are read at once; 0: no limit */
};

/* The objects of one report. */
struct report_group {
	char series[DICOM_UID_SIZE]; /* of the first object */
	char **paths;
	size_t n;
	bool tomo; /* the only object is a tomosynthesis */
};

struct report_groups { /* starts as {0} */
	struct report_group *list;
	size_t n, n_ignored; /* n_ignored: files that are neither, without own_file() */
};

/* Find the results in files and folders (recursive). Files that are not DICOM, and objects of other kinds, are ignored. An object
 * that cannot be read is an error. */
int report_groups_find(char *const *paths, struct report_groups *ret_groups, struct err *err);
void report_groups_clear(struct report_groups *g);

/* Make the report of one group. */
int report_group_make(const struct report_group *g, const struct report_conf *conf, struct html *h, struct err *err);
/* Write it to FOLDER/report-KIND-HEX.html, where HEX are digits computed from the UID of the object or of the series, so that the
 * report of the same result has the same name; an existing one is replaced. The caller frees *ret_path. */
int report_group_write(const struct report_group *g, const struct report_conf *conf, const char *folder, char **ret_path,
		       struct err *err);

#endif
