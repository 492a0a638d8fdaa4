/* What the files that make up node/result/result.h share; nobody else includes it. */
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
#include "recon/dbt/slabs.h"
#include "recon/dbt/synthetic.h"

#define RESULT_STORED_MAX 65535 /* 16 bits */
/* The synthetic view is an integral over z. One step of it is one step of the slices over 20 mm: 2e-4 by default, so that 16 bits
 * reach to 13, more than 15 cm of dense tissue. Fixed, whatever the breast's thickness, so that exams compare. */
#define RESULT_VIEW_LENGTH 20.0 /* mm */

/* Where a frame of an object lies along z: its middle, and from where to where it reaches, mm. */
struct plane {
	double z, thickness;
};

/* What dbt_tally() says about the slices, for the headers. */
struct volume_summary {
	size_t below, above;	     /* voxels stored as 0 and as RESULT_STORED_MAX because they lie outside */
	double window_lo, window_hi; /* stored values between which the tissue lies, for display */
	double window_top;	     /* the same for maxima over slices */
};

/* One object in the making. */
struct result {
	const struct exam *exam;
	const struct result_info *info;
	enum result_kind kind;
	struct plane *planes; /* of each frame; NULL: a view, which has no place along z */
	int n_planes;
	const struct dicom_item *source; /* root of the first view's object */
	struct volume_summary summary;
	double window_lo, window_hi; /* of this object */
	double step, offset;	     /* of its stored values: that much a step, and stored as 0 */
	char sop_instance[DICOM_UID_SIZE], series[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
	char slices[DICOM_UID_SIZE], slices_series[DICOM_UID_SIZE]; /* those of the slices, whatever the kind */
	struct provenance_time now;
	char protocol[1024], profile[1024], derivation[1024];
};

/* result_window.c. EIO where a voxel is no number. */
int result_summarise(struct dbt_session *session, const struct grid *grid, double offset, double step,
		     struct volume_summary *ret_summary, struct err *err);
/* Stored values between which the tissue of one frame lies; zero: the stored value of no attenuation. */
int result_window(const uint16_t *values, size_t n, double zero, double *ret_lo, double *ret_hi, struct err *err);

/* result_pipeline.c: one pass over the slices. */
struct result_pipeline {
	const struct exam *exam;
	const struct result_info *info;
	struct dbt_session *session;
	struct thread_pool *pool;
	struct frames *frames;
	struct dicom_writer *slice_writer, *slab_writer;
	struct slabs *slabs;	     /* NULL: none */
	struct synthetic *synthetic; /* NULL: none */
	double seconds_waited;	     /* for slices */
};
int result_pipeline_run(struct result_pipeline *f, struct err *err);
/* A plane into stored values, rows and columns in the order of the source's images. */
void result_store(struct result_pipeline *f, const float *plane, double offset, double step, uint16_t *ret_values);

/* result_header.c: everything at the root but functional groups and what tells where the data come from. */
void result_fill_header(const struct result *r, struct item_writer *root);
/* How an object differs by its kind: the values of Image Type, Volumetric Properties and Volume Based Calculation Technique. */
const char *result_image_type(const struct result *r);
const char *result_volumetric_properties(const struct result *r);
const char *result_calculation_technique(const struct result *r);
/* result_groups.c: shared and per-frame functional groups, dimensions. */
void result_fill_groups(const struct result *r, struct item_writer *root);
/* result_sources.c: references to every source, acquisition modules, equipment, provenance. */
void result_fill_sources(const struct result *r, struct item_writer *root);
/* How the pixels were computed, one code item after the other: the reconstruction, or what was made of its slices. */
void result_fill_reconstruction_code(const struct result *r, struct item_writer *w);
void result_fill_further_code(const struct result *r, struct item_writer *w);
/* Items of a sequence of source references: the projections (a multi-frame source is one object), or the object of the slices. */
void result_fill_source_images(const struct result *r, struct item_writer *w, uint32_t sequence, bool purpose);
void result_fill_source_slices(const struct result *r, struct item_writer *w, uint32_t sequence, bool purpose);
/* Is it made of another number of projections than the exam had? Then it says so wherever people look. */
static inline bool result_is_partial(const struct exam *e)
{
	return e->announced > 0 && e->announced != e->n_views;
}
/* result_acquisition.c: Contributing Sources and X-Ray 3D Acquisition, where the sources hold every value they need; else
 * nothing. */
void result_fill_acquisition(const struct result *r, struct item_writer *root);
/* result_view.c: what a Digital Mammography X-Ray Image has instead of functional groups. */
void result_fill_view(const struct result *r, struct item_writer *root);

#endif
