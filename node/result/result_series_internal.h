/* SPDX-License-Identifier: Apache-2.0 */
/* Write a series of images of one slice each: what PET images and CT images share. Private to this folder. */
#ifndef TOMONODE_NODE_RESULT_SERIES_INTERNAL_H
#define TOMONODE_NODE_RESULT_SERIES_INTERNAL_H

#include "dicom/object/dicom_tags.h"
#include "node/result/result_series.h"
#include "node/result/result_slices.h"
#include "node/sinogram/provenance.h"
#include "node/sinogram/sinogram.h"

/* What differs between the series of PET and of CT images. */
struct series_kind {
	const char *sop_class, *image_type, *modality;
	const char *name;			  /* in the default Series Description: "PET" */
	const char *seed;			  /* beginning of the texts that UIDs are computed from: "tomonode ct" */
	const char *prefix;			  /* beginning of the file names: "pt" */
	const char *geometry;			  /* name of the geometry in the recipe: "scanner" */
	enum sinogram_role role;		  /* data whose first object is the source of copied attributes */
	const uint32_t *copied, *copied_or_empty; /* attributes of the source; the second ones are of type 2 */
	size_t n_copied, n_copied_or_empty;
};

/* A series that is being written. */
struct result_series {
	const struct series_kind *kind;
	const struct sinogram *s;
	const struct protocol_conf *protocol;
	const char *method;	 /* in the default Series Description: "TOF"; NULL: nothing */
	bool counts;		 /* PET that is not in Bq/ml: the default Series Description says so */
	const struct grid *grid; /* of the volume */
	int frames;		 /* number of volumes of this grid, after each other; 0: 1 */
	const char *device;
	const char *origins;		  /* of facts, for the provenance; NULL: none */
	uint64_t keep_free;		  /* bytes, see struct dicom_writer_options */
	const struct monitor *monitor;	  /* of the writing; NULL: none */
	const struct dicom_item *source;  /* root of the first object of kind->role */
	const struct dicom_item *patient; /* the same, or that of the object whose patient a person chose */
	struct slice_view view;
	struct provenance_time now;
	char recipe[CONFIG_PROTOCOL_TEXT]; /* the protocol as text */
	char geometry[512];		   /* the scanner or the beams as text */
	char identity[1000]; /* what UIDs depend on in addition to sources, protocol and version, as text; "": nothing */
	char uid[DICOM_UID_SIZE];
};

/* Derive source, view, now, recipe and uid; the other members must be set. now: s since the epoch. */
void result_series_begin(struct result_series *r, double now);

/* Write all attributes that PET and CT images share, the references to the sources among them, but no recipe. */
void result_series_fill_header(const struct result_series *r, bool is_signed, struct item_writer *root);
/* Write the UID, number and position of one instance (index: from 0). */
void result_series_fill_slice(const struct result_series *r, int index, struct item_writer *root);
/* Write Contributing Equipment with the recipe. values, further: see struct provenance_recipe. */
void result_series_fill_recipe(const struct result_series *r, const char *values, const char *further, struct item_writer *root);
/* Write one display window for the whole series. It may be narrower than 1, the smallest width of LINEAR; the function is
 * LINEAR_EXACT. No window if lo == hi. */
void result_series_fill_window(double lo, double hi, struct item_writer *w);

/* Functions of one kind. Negative: error. */
struct series_filler {
	int (*header)(void *ctx, struct item_writer *root); /* write the attributes that all instances share */
	/* Write the attributes of instance `index`, and return the scale of its stored values. */
	int (*slice)(void *ctx, int index, struct item_writer *root, struct slice_scale *ret_scale);
	void *ctx;
};
/* Write all objects or none (.part, fsync, rename). Sets n, file, sop_instance, series and sop_class of the report. */
int result_series_write(const struct result_series *r, const struct series_filler *filler, const float *volume,
			const char *folder, struct series_report *ret_report, struct err *err);

#endif
