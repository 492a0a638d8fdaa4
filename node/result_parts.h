/* What the files that make up node/result.h share; nobody else includes it. */
#ifndef TOMONODE_NODE_RESULT_PARTS_H
#define TOMONODE_NODE_RESULT_PARTS_H

#include "node/dicom_tags.h"
#include "node/exam_parts.h"
#include "node/fill.h"
#include "node/result.h"

/* Attenuation of one stored step, 1/mm: the top of 16 bits is 0.655/mm, more than hard calcifications have at mammographic
 * energies. Fixed per software version, so that exams compare. */
#define RESULT_SCALE 1e-5
#define RESULT_TOP 65535

/* What the volume holds, gathered in one pass before the header is written. */
struct volume_summary {
	size_t clipped;		     /* voxels above RESULT_TOP steps, stored as RESULT_TOP */
	double window_lo, window_hi; /* stored values between which the tissue lies, for display */
};

struct result {
	const struct exam *exam;
	const struct result_info *info;
	const struct dicom_item *source; /* root of the first view's object */
	struct volume_summary summary;
	char sop_instance[DICOM_UID_SIZE], series[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
	char date[9], time[14], date_time[27]; /* of info->now, in the source's time zone */
	char protocol[1024], profile[1024], derivation[1024];
};

/* result_pixels.c. EIO where a voxel is no number. */
int volume_summarise(const float *volume, const struct grid *grid, struct volume_summary *ret_summary, struct err *err);
/* One slice into stored values, rows and columns in the order of the source's images. */
void slice_store(const struct exam *exam, const struct grid *grid, const float *slice, uint16_t *ret_values);
/* All slices in order, the next one converted while the last one is written. */
int volume_store(const struct exam *exam, const struct grid *grid, const float *volume, struct dicom_writer *writer,
		 struct err *err);

/* result_header.c: everything at the root but functional groups and what tells where the data come from. */
void result_fill_header(const struct result *r, struct fill *root);
/* result_groups.c: shared and per-frame functional groups, dimensions. */
void result_fill_groups(const struct result *r, struct fill *root);
/* result_sources.c: references to every source, acquisition modules, equipment, provenance. */
void result_fill_sources(const struct result *r, struct fill *root);
/* One item of a sequence of source references; a multi-frame source is one object. */
void result_fill_source_images(const struct result *r, struct fill *f, uint32_t sequence, bool purpose);
/* result_acquisition.c: Contributing Sources and X-Ray 3D Acquisition, where the sources hold every value they need; else
 * nothing. */
void result_fill_acquisition(const struct result *r, struct fill *root);

#endif
