/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the files of node/result/result.h. Private to them. */
#ifndef TOMONODE_NODE_RESULT_INTERNAL_H
#define TOMONODE_NODE_RESULT_INTERNAL_H

#include "dicom/object/attribute.h"
#include "dicom/object/dicom_tags.h"
#include "dicom/object/item_writer.h"
#include "node/base/thread_pool.h"
#include "node/result/result.h"
#include "node/result/result_frames.h"
#include "node/sinogram/provenance.h"
#include "node/tomo/exam.h"
#include "recon/dbt/rim_fill.h"
#include "recon/dbt/slabs.h"
#include "recon/dbt/synthetic.h"

#define RESULT_RECIPE_SIZE 4096 /* of protocol or profile as text */
#define RESULT_STORED_MAX 65535 /* of 16 bits: the range of a protocol, in steps of stored_step */
/* The synthetic view is an integral over z. One step of its stored values is one step of the slices times 20 mm: 2e-4 by default,
 * so that 16 bits represent integrals up to 13, more than that of 15 cm of dense tissue. The step does not depend on the
 * thickness of the breast, so that exams can be compared. */
#define RESULT_VIEW_LENGTH 20.0 /* mm */

/* Position of a frame along z: its centre, and its thickness, mm. */
struct plane {
	double z, thickness;
};

/* How values become stored values: round((value - offset) / step), limited to 0..top. */
struct stored_scale {
	double offset, step;
	int bits, top; /* top = 2^bits - 1 */
	bool padded;   /* 0 is that of air, which was not reconstructed, and of nothing else (kernels/stored.h) */
};

/* Summary of the slices by dbt_tally(), for the headers. */
struct volume_summary {
	struct stored_scale scale;   /* of slices and slabs */
	size_t below, above;	     /* voxels stored as 0 and as top because their values are out of range */
	double window_lo, window_hi; /* range of stored values of the tissue, for display */
	double window_top;	     /* upper end of the range for maxima over slices */
	char doubt[240];	     /* a sentence: these are not the values of a breast; "": they may be */
};

/* What the values show: shares of all voxels and of the tissue, its mean in 1/mm. */
struct value_shares {
	double at_limit, mean, high;
};

/* How slabs are computed: each frame combines several slices. */
struct result_slabs {
	enum slabs_mode mode;	/* 0: none */
	double thickness, step; /* mm */
};

/* Properties of a type of object. */
struct result_type {
	const char *name;				 /* its name in the journal and in --json */
	const char *title;				 /* words added to the description of its series */
	const char *seed;				 /* its part of the text from which UIDs are computed */
	const char *file;				 /* its part of the file name */
	const char *sop_class, *image_type, *volumetric; /* (0008,0016), (0008,0008), (0008,9206) */
	bool is_view;	   /* the object is one image of the whole volume, computed after the last slice */
	bool is_mammogram; /* it is a Digital Mammography X-Ray Image: without functional groups and position along z */
	/* For a type whose frames are slabs: set *ret; return false if the protocol does not request them. NULL: the frames are
	 * slices, or one view. */
	bool (*slabs)(const struct result_info *info, struct result_slabs *ret);
};
extern const struct result_type result_types[RESULT_OBJECTS_MAX];
/* Return the type of this kind; for a synthetic view the one of the class that the protocol requests. */
const struct result_type *result_type_of(enum result_kind kind, const struct protocol_conf *protocol);

/* One object that is being written. */
struct result {
	const struct exam *exam;
	const struct result_info *info;
	enum result_kind kind;
	const struct result_type *type;
	struct result_slabs slabs;
	struct plane *planes; /* [n_planes]; NULL: a mammogram, which has no position along z */
	int n_planes;
	const struct dicom_item *source; /* root of the first view's object, or of the one whose patient a person chose */
	struct volume_summary summary;
	double window_lo, window_hi; /* display window of this object */
	struct stored_scale scale;
	struct rim_fill_report rim; /* of a synthetic view */
	size_t clipped; /* pixels of a synthetic view that are stored as top because their values are above the range */
	char sop_instance[DICOM_UID_SIZE], series[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
	char slices[DICOM_UID_SIZE], slices_series[DICOM_UID_SIZE]; /* UIDs of the object of slices, for every kind */
	struct provenance_time now;
	char protocol[RESULT_RECIPE_SIZE], profile[RESULT_RECIPE_SIZE], derivation[1024];
};

/* result_values.c: compute scale and summary of the slices. quantitative: their values are in 1/mm. EIO: a voxel is not a number.
 */
int result_summarise(struct dbt_session *session, const struct grid *grid, const struct protocol_conf *protocol,
		     bool quantitative, struct volume_summary *ret_summary, struct err *err);
/* result_plausible.c: from a histogram of n stored values, whose tissue begins at a bin. */
void result_value_shares(const uint64_t *bins, size_t n, size_t tissue, double offset, double step,
			 struct value_shares *ret_shares);
/* Write why they cannot be of a breast; "": they may be. quantitative: the values are in 1/mm. */
void result_add_value_warnings(const struct value_shares *shares, bool quantitative, char *ret_text, size_t size);
/* Compute the scale of one image, and the number of its values above the range. */
void result_image_scale(const float *image, size_t n, double offset, double step, int bits, struct stored_scale *ret_scale,
			size_t *ret_above);
/* Compute the range of stored values of the tissue in one frame. filled: its rim is filled. */
int result_window(const uint16_t *values, size_t n, const struct stored_scale *scale, bool filled, double *ret_lo, double *ret_hi,
		  struct err *err);
/* The same for an image with negative tissue: the range of its inside. */
int result_window_inside(const struct grid *grid, const float *image, const struct stored_scale *scale, double *ret_lo,
			 double *ret_hi, struct err *err);
/* Return whether tissue has negative values, too, because its mean is lost, and a mask tells it from air. */
bool result_has_negative(const struct protocol_conf *protocol);

/* Write Real World Value Mapping: attenuation of slices and slabs, its integral of a view. */
void result_put_mapping(const struct result *r, struct item_writer *w);
/* Write the display window: one for all frames, LINEAR, whole numbers within the range of the stored values, because some viewers
 * read nothing else. */
void result_put_window(const struct result *r, struct item_writer *w);

/* result_pipeline.c: write all objects in one pass over the slices. */
struct result_pipeline {
	const struct exam *exam;
	const struct result_info *info;
	struct dbt_session *session;
	struct thread_pool *pool;
	struct frames *frames;
	struct dicom_writer *writer[RESULT_OBJECTS_MAX]; /* of the slices and of slabs */
	struct slabs *slabs[RESULT_OBJECTS_MAX];	 /* NULL: this type is not slabs, or is not requested */
	struct synthetic *synthetic;			 /* NULL: no synthetic view is requested */
	struct stored_scale scale;			 /* of slices and slabs */
	double seconds_waited;				 /* time spent waiting for slices, s */
};
int result_pipeline_run(struct result_pipeline *f, struct err *err);
/* result_values.c: the stored form of a plane, with rows and columns in the order of the source's images; convert a plane to
 * it. */
struct stored_form result_form(const struct result_pipeline *f, const struct stored_scale *scale);
void result_store(struct result_pipeline *f, const float *plane, const struct stored_scale *scale, uint16_t *ret_values);

/* result_header.c: write all root attributes except functional groups and provenance. */
void result_fill_header(const struct result *r, struct item_writer *root);
/* Return the Volume Based Calculation Technique. */
const char *result_calculation_technique(const struct result *r);
/* result_groups.c: write shared and per-frame functional groups, and dimensions. */
void result_fill_groups(const struct result *r, struct item_writer *root);
/* result_sources.c: write references to every source, acquisition modules, equipment, provenance. */
void result_fill_sources(const struct result *r, struct item_writer *root);
/* Write code items for how the pixels were computed: by the reconstruction, or from its slices. */
void result_fill_reconstruction_code(const struct result *r, struct item_writer *w);
void result_fill_further_code(const struct result *r, struct item_writer *w);
/* Write a sequence of source references: to the projections (a multi-frame source is one object), or to the object of slices. */
void result_fill_source_images(const struct result *r, struct item_writer *w, uint32_t sequence, bool purpose);
void result_fill_source_slices(const struct result *r, struct item_writer *w, uint32_t sequence, bool purpose);
/* Return true if the number of projections used differs from the number announced by the exam; the headers must then state this.
 */
static inline bool result_is_partial(const struct exam *e)
{
	return e->announced > 0 && e->announced != e->n_views;
}
/* result_acquisition.c: write Contributing Sources and X-Ray 3D Acquisition, each if the sources and the profile have every value
 * that it requires. ret_omitted: a sentence for each one that is left out, with the missing values; "": none. */
void result_fill_acquisition(const struct result *r, struct item_writer *root, char *ret_omitted, size_t size);
/* result_view.c: write the attributes that a Digital Mammography X-Ray Image has instead of functional groups. */
void result_fill_view(const struct result *r, struct item_writer *root);

#endif
