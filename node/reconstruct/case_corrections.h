/* SPDX-License-Identifier: Apache-2.0 */
/* The corrections that the node computes for a PET case, because its data do not bring them (`corrections` of the protocol).
 *
 * Each correction is a step in a file of its own (struct case_step). prepare() decides, from headers only, whether it is needed
 * and possible, and counts the memory; make() computes it for the chosen time frame, gate or bed, and adds terms to the model
 * (struct case_terms), which case_read_planes() applies plane by plane: no copy of the planes is held. A correction that the data
 * bring is not made again. What is missing, and what was done, are sentences for the result. */
#ifndef TOMONODE_NODE_CASE_CORRECTIONS_H
#define TOMONODE_NODE_CASE_CORRECTIONS_H

#include <jansson.h>

#include "dicom/object/ct_series.h"
#include "node/format/correction_pictures.h"
#include "node/format/map_file.h"
#include "node/reconstruct/case_planes.h"
#include "node/reconstruct/reconstruct_internal.h"
#include "recon/pet/attenuation.h"
#include "recon/pet/mu_map.h"
#include "recon/pet/randoms.h"
#include "recon/scatter/scatter_estimate.h"

/* case_maps.c: what the attenuation is made from. The first map is that of the body; those after it, of a table or of coils,
 * are added, as Siemens adds the map of its hardware. Two maps that repeat each other are refused. */
struct case_map {
	char name[80];		 /* in sentences: "CT", "map from MR", "map table.nii" */
	struct mu_source source; /* in the axes of the grid, for the chosen bed; hu: NULL: not read */
	struct mu_curve curve;
	double pixel[2];	      /* mm from column to column, from row to row */
	int padding;		      /* see struct ct_field_source */
	const double *at, (*step)[3]; /* place of its first voxel, and its steps: in the patient, or in the scanner */
	bool of_scanner;
};

struct case_maps {
	int n;
	/* the CT or the map from MR, and those of hardware, then the files */
	struct case_map map[CT_SERIES_MOST + CASE_MAPS_MOST];
	struct map_file file[CASE_MAPS_MOST];
};

/* case_attenuation.c: attenuation from CT, or from maps. */
struct case_attenuation {
	struct ct_series *ct;	    /* NULL: none, or not needed. Set before prepare(): that of another result of these images */
	struct ct_headers *headers; /* of the CT objects, borrowed; NULL: they were not read for this result */
	struct case_maps maps;	    /* empty: none, or not needed */
	struct attenuation_plan plan;
	bool said_outside;
	bool lacking;		  /* the protocol asks for it, and nothing is there to make it from */
	struct attenuation *made; /* for the chosen frame; NULL: not made */
	struct attenuation *body; /* of the first map alone, for the scatter; NULL: there are no others, or no scatter */
	double centre[3];	  /* of the scanner, for which they were made */
	int n_computed, n_cached; /* of all frames, as in the structures below */
	unsigned char identity[DIGEST_BYTES]; /* digest of what the map was made from */
	bool is_short;			      /* the map of the body does not contain all slices of the chosen bed */
	double covered[2];		      /* from and to which z it contains them, mm from the scanner's middle */
	double missing;			      /* fraction of the planes that it does not reach */
	double truncated;		      /* fraction of its slices where the patient touches the edge of its field of view */
	char from[160]; /* what it was made from, for the derivation: "CT series 2.25.1 and map table.nii" */
	double seconds_read, seconds_map, seconds_factors;
};

/* case_randoms.c: randoms from delayed coincidences, or from singles. */
struct case_randoms {
	float *expected;    /* [plane][angle][radial] of the chosen frame, all TOF bins together; NULL: not made */
	bool of_neighbours; /* from delayed coincidences; the bins are no pairs of detectors */
	bool of_singles;
	double covered;		      /* part of the coincidence window that the TOF bins cover; 1 without them */
	double singles;		      /* counts of all detectors, of all frames */
	double singles_of_frame;      /* of the last one */
	struct randoms_report report; /* of the last frame */
	double total, of_frame;	      /* of all frames; of the last one */
	int n_computed, n_cached;
	double seconds;
};

/* case_dead_time.c: counts lost to dead time. */
struct case_dead_time {
	double factor;	    /* of the chosen frame, by which its counts are to be multiplied; 0: none */
	float *alive;	    /* [plane][angle][radial] of the chosen frame: mean live fraction of the pairs; NULL: none */
	double least, most; /* factors of all frames, or of all detectors */
	int n_computed;
	double seconds;
};

/* case_scatter.c: single scatter simulation. */
struct case_scatter {
	struct single_scatter_conf simulation;
	struct scatter_estimate made; /* empty: the chosen frame has no scatter, or not made */
	struct scatter_estimate_report report;
	float *norm;	      /* factor m without attenuation, [plane][angle][radial] */
	int at_limit, planes; /* planes whose scale was limited, of all, sums over frames */
	int without;	      /* frames for which nothing was simulated */
	int n_computed, n_cached;
	bool said_beyond, said_doubtful;
	double fraction[2], scale[2]; /* least and most, of all frames */
	char found[96];		      /* see made_scatter of struct sinogram */
	/* s: sums over the frames that were computed */
	double seconds_read, seconds_image, seconds_simulate, seconds_scale;
};

struct case_corrections {
	const struct reconstruct_work *work; /* borrowed, as the following */
	struct sinogram *s;
	const struct michelogram *m; /* of the session */
	size_t n_ct;		     /* CT objects */
	/* [role]: data that are kept, see case_read_planes(); NULL: none */
	uint8_t **kept;
	uint8_t *once[SINOGRAM_ROLES + 1]; /* of the chosen frame alone: read by the scatter's estimate, used by the session */

	/* set by prepare() of the steps */
	int made;				     /* enum pet_correction: those that the steps make */
	bool factors, background;		     /* they make m, b */
	size_t bytes_device, bytes_host, bytes_read; /* bytes_device: beside no session; bytes_host: while the session is open;
							bytes_read: in addition, before it is opened */
	char note[4096];			     /* sentences for the result */
	char from[200];				     /* see made_from of struct sinogram */
	char method[65];			     /* see made_method of struct sinogram */

	struct case_terms terms; /* set by make() */
	struct case_attenuation attenuation;
	struct case_dead_time dead_time;
	struct case_randoms randoms;
	double prompts; /* counts of all frames, set by the caller before the details; 0: unknown */
	struct case_scatter scatter;

	struct case_profiles profiles;	     /* of the chosen frame */
	struct correction_pictures pictures; /* case_pictures.c */
	double pictures_counts;		     /* in their profiles */
};

struct case_step {
	enum pet_correction correction;
	/* Decide what is made, and count its bytes; append to note and from. EBADMSG, ENOTUNIQ, ENOTSUP: the case is to be held.
	 */
	int (*prepare)(struct case_corrections *c, struct err *err);
	/* Compute for the chosen frame, and add terms; only if its bit in `made` is set. The device is free for it. */
	int (*make)(struct case_corrections *c, struct err *err);
	json_t *(*details)(const struct case_corrections *c); /* for the report; NULL: null */
	void (*clear)(struct case_corrections *c);
};
extern const struct case_step case_step_dead_time, case_step_attenuation, case_step_randoms, case_step_scatter; /* case_NAME.c */

/* Prepare all corrections of the protocol; c->work, s, m, n_ct and attenuation.headers are set, the rest is zero. Sets made,
 * made_note, made_from and made_method of s. ENOTSUP: one is not possible for data that are reconstructed event by event. */
int case_corrections_prepare(struct case_corrections *c, struct err *err);
/* Compute them for the chosen frame, with c->terms as result. Before its session is opened, from the thread that owns the device.
 */
int case_corrections_make(struct case_corrections *c, struct err *err);
/* Return the counts of the chosen frame that are expected to be randoms or scatter, of its prompts. */
double case_corrections_background(const struct case_corrections *c, double prompts);
/* case_pictures.c. Let case_read_planes() sum the counts of three direct planes; called by case_corrections_make(). */
void case_pictures_watch(struct case_corrections *c);
/* Make the pictures of the chosen frame, whose planes were read, if it has more counts than those before. image: its number, from
 * 0. Without memory some are missing: a case does not fail for them. */
void case_pictures_make(struct case_corrections *c, int image);
/* Return them as JSON, for the result of this series. NULL: none. */
json_t *case_pictures_describe(const struct case_corrections *c, const char *series);
/* Describe them: an object with a member for each that the protocol has; null: none. */
json_t *case_corrections_details(const struct case_corrections *c);
void case_corrections_forget_data(struct case_corrections *c); /* free `once` */
void case_corrections_clear(struct case_corrections *c);

/* Open the CT and the files of the maps, compare them with the data, and say what their headers say. EBADMSG, ENOTUNIQ,
 * ENOTSUP: they cannot be used. */
int case_maps_open(struct case_corrections *c, struct err *err);
/* Read the values that are not in memory, and say what they are. */
int case_maps_read(struct case_corrections *c, struct err *err);
void case_maps_place(struct case_corrections *c);	     /* set the sources, for the chosen bed */
size_t case_maps_bytes(const struct case_corrections *c);    /* of the host, while they are read */
json_t *case_maps_details(const struct case_corrections *c); /* what was added to the CT, and all files */
void case_maps_free_values(struct case_attenuation *a);
/* Say that this part of the activity is where the maps have no body, if it is doubtful: once, of the first frame that has any. */
void case_maps_say_outside(struct case_corrections *c, double outside);
/* Look for it in an image, which was reconstructed with them. Without memory it is not looked for. */
void case_maps_check_image(struct case_corrections *c, const struct grid *grid, const float *image);
/* What is said of the map of the body: "CT", "map from MR", "map body.nii". */
const char *case_maps_word(const struct case_corrections *c);

/* Whether the randoms of the prompts are computed, or were taken off the data before. */
bool case_randoms_are_known(const struct case_corrections *c);
/* Whether the data bring a dead time factor that is not yet applied. */
bool case_dead_time_is_known(const struct sinogram *s);
/* For the steps: multiply m of a plane by the fraction of the counts that is not lost to dead time; m is unchanged if this was
 * not made. */
void case_dead_time_multiply(const struct case_corrections *c, size_t plane, float *m);
/* case_attenuation_once.c: EBADMSG: NORMALISATION contains the attenuation that was made for the chosen frame. */
int case_check_attenuation_once(const struct case_corrections *c, struct err *err);
size_t case_attenuation_once_bytes(const struct case_corrections *c); /* that it needs for a while */
/* case_units.c: EBADMSG: the data of a role, from which the randoms are made, are counts, but the prompts of the chosen frame
 * were corrected by factors beforehand. delayeds: [plane][angle][radial], which are counts if they are whole; NULL: they are. */
int case_check_units(const struct case_corrections *c, const char *role, const float *delayeds, struct err *err);
size_t case_units_bytes(const struct case_corrections *c); /* that it needs for a while */
/* EBADMSG: the randoms of the chosen frame were made from fewer singles than its prompts are made of. */
int case_check_singles(const struct case_corrections *c, double prompts, struct err *err);

/* For the steps: append a sentence to c->note. */
void case_corrections_say(struct case_corrections *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Add terms; the functions and what they use must stay valid until c is cleared. */
void case_corrections_add_factor(struct case_corrections *c, struct case_factor factor);
void case_corrections_add_background(struct case_corrections *c, struct case_background background);

#endif
