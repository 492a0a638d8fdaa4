/* SPDX-License-Identifier: Apache-2.0 */
/* The part of `tomonode export` that converts images: one file, or one of each series in a folder. */
#ifndef TOMONODE_NODE_COMMAND_EXPORT_IMAGES_H
#define TOMONODE_NODE_COMMAND_EXPORT_IMAGES_H

#include "node/options/options.h"
#include "node/tools/export_format.h"
#include "node/tools/series_files.h"

struct export_request {
	const struct export_format *format;
	const char *out;	 /* the file, or the folder */
	const char *series;	 /* the series to export (series_files_choose()); NULL: all */
	bool folder;		 /* one file of each series */
	bool force;		 /* replace files that exist */
	bool compress;		 /* the values */
	bool suv;		 /* PET as SUV */
	int bits;		 /* of pictures: index of { "8", "16" } */
	const char *config_path; /* NULL: not given */
	const struct config *config;
	const double *voxel; /* of a Hologic SCO object, mm; NULL: not stated */
	struct picture_choice picture;
};

/* Write the files and report them; return an exit code. In a folder, a series that fails does not stop the others. */
int export_images(struct options *o, const struct export_request *r, const struct series_files *files);

#endif
