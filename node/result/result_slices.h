/* SPDX-License-Identifier: Apache-2.0 */
/* Write a volume as a series of images of one slice each: position in the patient, stored values, files. The unit of the values
 * and the other attributes are written by node/result/result_series.c, pet_result*.c and ct_result*.c. */
#ifndef TOMONODE_NODE_RESULT_SLICES_H
#define TOMONODE_NODE_RESULT_SLICES_H

#include "dicom/object/item_writer.h"
#include "node/base/digest.h"
#include "node/config/config.h"
#include "recon/core/monitor.h"

/* Largest stored value: 15 of 16 bits are used, so that readers that treat values as signed still read them correctly, and images
 * with negative values differ only in Pixel Representation. */
#define SLICE_STORED_MAX 32767

/* Mapping of the volume's x and y to columns and rows: rows point toward the patient's left and columns toward the back, as far
 * as the axes allow, so that every viewer shows the usual orientation. Slices are numbered from head to feet. */
struct slice_view {
	int across, down;	     /* volume axis (0: x, 1: y) along a row and along a column */
	bool turn_across, turn_down; /* true: against the direction of that axis */
	bool turn_slices;	     /* true: instance 1 is the volume's last slice */
	double row[3], column[3];    /* direction cosines of a row and of a column: ImageOrientationPatient */
	double normal[3];	     /* row x column; SliceLocation increases along it */
};
void slice_view_make(const double axis[3][3], struct slice_view *ret_view);
/* Return the slice of the volume in instance `index` (from 0); of several volumes after each other, instance g->n[2] is the first
 * of the second one. slice_view_position() computes the position of the centre of its first pixel in the patient, mm. centre,
 * axis: origin and directions of the volume's axes in the patient. */
int slice_view_slice(const struct slice_view *view, const struct grid *g, int index);
void slice_view_position(const struct slice_view *view, const double centre[3], const double axis[3][3], const struct grid *g,
			 int index, double ret_position[3]);

/* Smallest and largest value of a slice. */
struct slice_range {
	float lo, hi; /* lo <= 0 <= hi */
};
/* Compute the range of each slice. EIO: a voxel is not a number. The monitor, which may be NULL, hears of every slice. */
int slice_ranges(const struct grid *g, const float *volume, const struct monitor *monitor, struct slice_range *ret_range,
		 struct err *err);

/* stored = round(value * gain + bias), clipped to lo..hi */
struct slice_scale {
	double gain, bias;
	long lo, hi;
};

struct result_slices {
	const struct grid *grid;
	int frames; /* number of volumes of this grid, after each other; 0: 1 */
	const struct slice_view *view;
	enum compression compression;
	uint64_t keep_free;	       /* bytes, see struct dicom_writer_options */
	const struct monitor *monitor; /* hears of files that are complete but for their names; NULL: none */
	const char *prefix;	       /* beginning of the file names: "pt" */
	/* Write the attributes of instance `index`, including its SOP Instance UID, into the shared header. */
	int (*fill)(void *ctx, int index, struct item_writer *root, struct slice_scale *ret_scale);
	void *ctx;
};

/* Write all files or none (.part, fsync, rename). ECANCELED: by the monitor. header: the attributes that all instances share, with the size of a slice as
 * Rows and Columns. ret_file, ret_sop_instance: frames n[2] of each, in the order of instances. ret_digest: of the
 * files (digest_files()). */
int result_slices_write(const struct result_slices *r, struct dicom_file *header, const float *volume, const char *folder,
			char (*ret_file)[64], char (*ret_sop_instance)[DICOM_UID_SIZE], char (*ret_digest)[DIGEST_SIZE],
			struct err *err);

/* Write the geometry: Image Orientation, Pixel Spacing, Slice Thickness, Spacing Between Slices, Rows, Columns, 16 bits, one
 * sample; fill_place writes the position of one instance. */
void result_slices_fill_plane(const struct slice_view *view, const struct grid *g, bool is_signed, struct item_writer *w);
void result_slices_fill_place(const struct slice_view *view, const double position[3], struct item_writer *w);

#endif
