/* SPDX-License-Identifier: Apache-2.0 */
/* State of one PET case during its reconstruction: shared by reconstruct_pet.c, which reconstructs it, pet_plan_case.c, which
 * plans it, and pet_describe.c, which says what the result is. Private to them. */
#ifndef TOMONODE_NODE_RECONSTRUCT_PET_WORK_H
#define TOMONODE_NODE_RECONSTRUCT_PET_WORK_H

#include "node/reconstruct/case_beds.h"
#include "node/reconstruct/case_corrections.h"
#include "node/reconstruct/case_event_terms.h"
#include "node/reconstruct/case_planes.h"
#include "node/reconstruct/reconstruct_internal.h"
#include "node/result/pet_result.h"

/* A frame is a time frame, a gate or a bed. */
struct pet_work {
	struct reconstruct_work base;
	struct protocol_conf protocol;	  /* base.protocol, if it is changed: without gate_signal, with the matrix of the data */
	struct case_planes_report planes; /* of the first frame; attenuation: of all */
	char fitted[200];		  /* sentence about this matrix; "": it is that of the protocol */
	const char **paths;		  /* [base.n_paths - n_ct]: those of the PET data; names borrowed */
	struct dicom_file **files;	  /* the same, until the acquisition has them */
	size_t n_ct;			  /* paths of CT images */
	struct ct_headers *headers;	  /* of the CT images; NULL: of the result before */
	struct ct_series *ct;		  /* kept of the result before, with its pixels; NULL: none */
	struct sinogram *s;
	struct michelogram m; /* of the emission data, after tof_mashing; borrows the segments of s */
	struct pet_plan plan;
	struct pet_session *session;		       /* by sinograms */
	struct pet_plan plan_events;		       /* of the last frame; `plan` is that of the frame with the most events */
	struct pet_list_session *events;	       /* by single events, as the next two */
	struct case_event_terms terms;		       /* computed corrections of the chosen frame; empty: none */
	struct pet_list_sensitivity_image sensitivity; /* that of the first frame, for the others */
	uint8_t *bytes[SINOGRAM_ROLES + 1];	       /* [role]: kept of sinogram objects; NULL: not there */
	const struct pet_way *way;		       /* NULL: not decided */
	size_t bytes_data;			       /* of the host's memory: planes that are read */
	struct case_corrections corrections;
	enum pet_factors factors;
	bool background;
	int n_frames; /* 1 without frames, gates and beds */
	struct case_beds beds;
	float *volume;	       /* [frame][slice][row][column]; of beds: of all together */
	struct pet_report run; /* of the last frame; seconds and counts: of all */
	double *counts;	       /* [frame] */
	struct series_report made;
};

/* ---- pet_ways.c ---- */

/* How the data become an image: reconstruct_pet.c calls begin() and plan() once, open(), read(), run() and slices() for each
 * frame, whose corrections are made before open(). */
struct pet_way {
	/* Set w->m, by sinograms also w->factors, w->background and w->bytes_data. */
	int (*begin)(struct pet_work *w, struct err *err);
	/* Set w->plan, once the corrections are decided; by events also w->bytes_data. */
	int (*plan)(struct pet_work *w, struct err *err);
	/* By sinograms, open the session of the chosen frame; by events, whose session run() opens, make the terms of its
	 * events. */
	int (*open)(struct pet_work *w, struct err *err);
	int (*read)(struct pet_work *w, int frame, struct case_planes_report *ret, struct err *err);
	int (*run)(struct pet_work *w, int frame, struct pet_report *ret, struct err *err);
	int (*slices)(struct pet_work *w, int first, int n, float *ret, struct err *err);
	void (*describe)(const struct pet_work *w, char *ret, size_t size); /* "128 planes of 64 angles" */
	json_t *(*details)(const struct pet_work *w);			    /* NULL: none */
};
extern const struct pet_way pet_by_sinograms, pet_by_events;

/* Return where the data of the chosen frame are kept: for another result, or from the scatter's estimate to the session; NULL:
 * nowhere. */
uint8_t **pet_work_kept(struct pet_work *w);

/* ---- pet_plan_case.c ---- */

/* Return a copy of the protocol that can be changed, also as it is stored in the result. */
struct pet_protocol *pet_work_own_protocol(struct pet_work *w);
/* Let the protocol of the result say what the plan decided where it says nothing: w->plan is set. */
void pet_work_keep_matrix(struct pet_work *w);
/* Plan the reconstruction by sinograms, once the corrections are decided (w->factors, w->background): sets w->plan, w->beds and
 * w->fitted. Errors of pet_plan() and case_beds_plan(). */
int pet_work_plan(struct pet_work *w, struct err *err);
/* Check that the volumes of all frames may be written, and wait for the memory of the plan. Errors of reconstruct_check_size()
 * and reconstruct_reserve_memory(). */
int pet_work_reserve(struct pet_work *w, struct err *err);
/* Return the bytes on the device: of the session, or of the corrections, which are made while there is none. */
size_t pet_work_bytes_device(const struct pet_work *w);

/* ---- pet_arrays.c ---- */

/* Return what copies the planes to the arrays of the case; nothing if it has none. */
struct case_tap pet_work_tap(struct pet_work *w);
/* arrays() of struct reconstruct_kind. */
int pet_work_arrays(struct reconstruct_work *base, struct err *err);

/* ---- pet_describe.c ---- */

/* Write what the result says about this case, once all frames are reconstructed: frames without counts, beds, uneven slices, a
 * matrix that was fitted. "": nothing. */
void pet_work_note(const struct pet_work *w, char *ret, size_t size);
/* Say how the factors were taken: those of the first time frame, gate or bed. */
json_t *pet_work_factors(const struct pet_work *w);
/* fill() of struct reconstruct_kind. */
const struct grid *pet_work_fill_report(struct reconstruct_work *base);

#endif
