/* SPDX-License-Identifier: Apache-2.0 */
/* Write the reports of volumes (node/tools/series_files.h): one for each tomosynthesis and each PET or CT series. */
#ifndef TOMONODE_NODE_REPORT_FILES_H
#define TOMONODE_NODE_REPORT_FILES_H

#include "node/config/config.h"
#include "node/report/report.h"
#include "node/tomo/tomo_slices.h"
#include "node/tools/series_files.h"

struct report_conf {
	const struct config *config; /* profiles of Hologic SCO objects */
	const double *voxel;	     /* of such objects, mm (node/tomo/tomo_slices.h); NULL: not stated */
	bool patient;		     /* struct report_request */
	bool lazy;		     /* read the slices of a PET or CT series when they are needed, not at once */
};

/* Return the volume that has a file of this name; NULL: none. */
const struct series_volume *report_volume_with(const struct series_files *files, const char *name);
/* Open a volume. ret_notes: sentences about its values that the objects do not contain. */
int report_volume_open(const struct series_volume *g, const struct report_conf *conf, struct image_series **ret_series,
		       char ret_notes[SLICES_NOTES_SIZE], struct err *err);
/* Make the report of one volume. */
int report_volume_make(const struct series_volume *g, const struct report_conf *conf, struct html *h, struct err *err);
/* Write it to FOLDER/report-NAME-HEX.html, where NAME is that of `export` and HEX are digits computed from the UID of the object
 * or of the series, so that the report of the same result has the same name; an existing one is replaced. The caller frees
 * *ret_path. */
int report_volume_write(const struct series_volume *g, const struct report_conf *conf, const char *folder, char **ret_path,
			struct err *err);

#endif
