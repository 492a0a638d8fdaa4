/* A volume onto the disk as a series of images of one slice each: where each slice lies in the patient, its values as stored
 * numbers, its file. What the values are and what else the headers say is of node/result/pet_result.h and
 * node/result/ct_result.h. */
#ifndef TOMONODE_NODE_RESULT_SLICES_H
#define TOMONODE_NODE_RESULT_SLICES_H

#include "dicom/object/item_writer.h"
#include "node/config/config.h"

/* Stored values reach to 32767 although 16 bits are stored: readers that take them for signed are right all the same, and images
 * with negative values differ by Pixel Representation alone. */
#define SLICE_STORED_MAX 32767

/* How the volume's x and y become columns and rows: rows run toward the patient's left, columns toward the back, as far as the
 * axes allow, so that every viewer shows the usual orientation. Slices are numbered from the head down. */
struct slice_view {
	int across, down;	     /* axis of the volume (0: x, 1: y) along a row, along a column */
	bool turn_across, turn_down; /* against its direction */
	bool turn_slices;	     /* instance 1 is the volume's last slice */
	double row[3], column[3];    /* direction cosines of a row and of a column: ImageOrientationPatient */
	double normal[3];	     /* row x column; SliceLocation counts along it */
};
void slice_view_make(const double axis[3][3], struct slice_view *ret_view);
/* Which slice of the volume instance `index` (0..) is; and where the middle of its first pixel lies in the patient, mm. centre,
 * axis: of the volume's own axes in the patient. */
int slice_view_slice(const struct slice_view *view, const struct grid *g, int index);
void slice_view_position(const struct slice_view *view, const double centre[3], const double axis[3][3], const struct grid *g,
			 int index, double ret_position[3]);

struct slice_range {
	float lo, hi; /* lo <= 0 <= hi */
};
/* Of each slice of the volume. EIO: a voxel is no number. */
int slice_ranges(const struct grid *g, const float *volume, struct slice_range *ret_range, struct err *err);

/* stored = round(value * gain + bias), cut off at lo and hi */
struct slice_scale {
	double gain, bias;
	long lo, hi;
};

struct result_slices {
	const struct grid *grid;
	const struct slice_view *view;
	enum compression compression;
	const char *prefix; /* of the files' names: "pt" */
	/* Puts what instance `index` has for itself, its SOP Instance UID among it, into the header that all share. */
	int (*fill)(void *ctx, int index, struct item_writer *root, struct slice_scale *ret_scale);
	void *ctx;
};

/* header: what all have in common, with the size of a slice as Rows and Columns. All files or none (.part, fsync, rename).
 * ret_file, ret_sop_instance: n[2] of each, in the order of instances. */
int result_slices_write(const struct result_slices *r, struct dicom_file *header, const float *volume, const char *folder,
			char (*ret_file)[64], char (*ret_sop_instance)[DICOM_UID_SIZE], uint64_t *ret_bytes, struct err *err);

/* Geometry as tags: Image Orientation, Pixel Spacing, Slice Thickness, Spacing Between Slices, Rows, Columns, 16 bits, one
 * sample; and of an instance its place. */
void result_slices_fill_plane(const struct slice_view *view, const struct grid *g, bool is_signed, struct item_writer *w);
void result_slices_fill_place(const struct slice_view *view, const double position[3], struct item_writer *w);

#endif
