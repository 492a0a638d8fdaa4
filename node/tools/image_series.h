/* SPDX-License-Identifier: Apache-2.0 */
/* Read a PET or CT series (one slice per object), or a tomosynthesis (all slices in one object): values, their unit, and the
 * position of each voxel in the patient. A dynamic or gated PET series has several images, the time frames or gates, with the
 * same slices; they are found by Image Index. Only standard attributes are used. Objects may be in any order, from any
 * manufacturer, and in any encoding that dicom/pixels/pixels.h reads. Slices of a tomosynthesis are read when they are needed,
 * those of PET and CT at once, or also when they are needed (lazy): the memory is then that of one slice. */
#ifndef TOMONODE_NODE_IMAGE_SERIES_H
#define TOMONODE_NODE_IMAGE_SERIES_H

#include "dicom/object/tomo_object.h"

struct image_time {
	double start; /* s: of a time frame after the start of the series; of a gate after the time mark, nominal; NaN: unknown */
	double duration; /* s: of the frame; of the gate in a cycle, nominal; NaN: unknown */
	double live;	 /* s: of the gate in all cycles (Time Slot Time); NaN: unknown, or a time frame */
};

struct image_series {
	int n[3];		 /* columns, rows, slices of an image */
	int n_images;		 /* time frames or gates; 1: neither */
	char type[17];		 /* "STATIC", "DYNAMIC", "GATED", ...; "": CT, tomosynthesis */
	struct image_time *time; /* [n_images] */
	char series[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE]; /* "": not in the objects */
	char position[17];     /* of the patient, PET and CT: HFS, ...; "": not in the objects */
	bool position_assumed; /* the derivation says so */
	bool ct;	       /* CT images; false: PET, a tomosynthesis or a view */
	bool view;	       /* of image_series_of_view() */
	char units[17]; /* (0054,1001); for CT the Rescale Type (0028,1054); of a tomosynthesis see dicom/object/tomo_object.h */
	double spacing[3];	  /* between columns, rows, slices, mm */
	double across[3];	  /* direction of increasing column index in the patient (left, back, head) */
	double down[3];		  /* of increasing row index */
	double normal[3];	  /* of increasing slice index: across x down; of a tomosynthesis also against it */
	double corner[3];	  /* centre of the first pixel of slice 0, mm */
	double duration;	  /* of the acquisition, s; NaN: unknown */
	double window[2];	  /* values between which a tomosynthesis or CT is displayed grey; NaN: not in the objects */
	float *values;		  /* slices in the order of the files; of a tomosynthesis, or lazy, the last one that was read */
	char **paths;		  /* lazy: the files, owned, ended by NULL; otherwise NULL */
	size_t *order;		  /* [image][slice]: index of its values in the order of the files */
	char name[256];		  /* of the file of a tomosynthesis, for messages */
	struct tomo_object *tomo; /* the object of a tomosynthesis, owned; NULL: PET or CT */
};

/* Return the unit for people of a code in `units`, "Bq/ml"; the code itself if it is unknown; "" for "" and for the codes that
 * mean that there is none. */
const char *image_series_unit(const char *code);

/* Open a series. lazy: the files must stay until it is closed. Files that repeat an object are skipped. Errors: EBADMSG (objects of
 * several series or patients, missing or contradictory; the text names them). */
int image_series_open(char *const *paths, size_t n, bool lazy, struct image_series **ret_series, struct err *err);
/* Make a series of a tomosynthesis, which is in the file `path`; takes over *tomo, and sets it to NULL, if it succeeds. EBADMSG:
 * the slices do not have one distance, or it is unknown. */
int image_series_of_tomo(struct tomo_object **tomo, const char *path, struct image_series **ret_series, struct err *err);
/* Open a two-dimensional mammogram for presentation, such as a synthetic view, as a series of one slice without a place in the
 * patient; the distance of slices is 0. EBADMSG: several frames, no pixel spacing, or another photometric interpretation than
 * MONOCHROME2. */
int image_series_of_view(const char *path, struct image_series **ret_series, struct err *err);
struct image_series *image_series_close(struct image_series *s); /* takes NULL, returns NULL */

/* Multiply all values of PET or CT that are not lazy; their unit is then `units`. */
void image_series_scale(struct image_series *s, double factor, const char *units);

/* Read the values of slice k of an image, columns fastest; they are valid until the next call, those of PET and CT that are not
 * lazy until the series is closed. */
int image_series_slice(const struct image_series *s, int image, int k, const float **ret_values, struct err *err);

#endif
