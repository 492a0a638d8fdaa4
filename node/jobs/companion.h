/* SPDX-License-Identifier: Apache-2.0 */
/* The CT series that the attenuation correction of a PET case is made from: which of those that were received, and until when to
 * wait for one. The decision is pure: no clock, no files, no journal.
 *
 * - A series fits a case if it is of the same study, of the same frame of reference, and names the same patient (digests of
 *   headers, node/jobs/patients.h). A series of another patient is never used, whatever its UIDs are.
 * - Only slices are joined (dicom/object/ct_series.h). Localizers, images without Hounsfield units and the like of a series count
 *   towards its number of images.
 * - Headers seldom give the number of its images: it is complete when no image was added for the quiet time. If they give one, it
 *   is complete when that many have arrived as well.
 * - Of several that fit, the one acquired nearest in time to the case is used; among equals, that with more images, then that
 *   with the lower UID. While one that fits is arriving, nothing is chosen, so that the choice does not depend on the order of
 *   arrival; after the longest wait a complete one is not kept waiting for it.
 * - Maps of the table, of coils, of hardware (enum ct_part) that fit are joined beside that series: all of those that are
 *   complete, of the table the nearest. Alone they are nothing.
 * - Images are joined to a case by `companion` events (node/store/journal.h), together with its `complete` event. One series may
 *   be joined to several cases.
 */
#ifndef TOMONODE_NODE_COMPANION_H
#define TOMONODE_NODE_COMPANION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dicom/object/ct_series.h"
#include "node/store/journal.h"

struct companion_series {
	char study[65], series[65], frame[65];
	char calling[17]; /* sender of its last object */
	long images;	  /* slices */
	long others;	  /* objects that are no slices */
	enum ct_part part;
	char values[CT_VALUES_SIZE]; /* what has values that are not Hounsfield units, and therefore is no slice; "": none */
	long expected;		     /* number of all in a header; 0: none gives it */
	double last;		     /* arrival of the last object, s since the epoch */
	double acquired; /* earliest acquisition of an image: s of the scanner's clock (pet_facts_moment()); 0: unknown */
	bool mixed;	 /* its images are of several frames of reference, or of none */
	bool other_key;	 /* the patients of its images cannot be compared with each other */
	struct patient_set patients;
	uint32_t patients_key;
	int64_t *instances; /* their numbers, `images` of them */
	size_t capacity;
};

/* All series of the journal that were not removed. Start with {0}. */
struct companions {
	struct companion_series *list; /* sorted by study, then by series */
	size_t n, capacity;
	int64_t last; /* the last instance that was read */
};

/* Read the images that were classified since the last call. Images that retention removes meanwhile remain: joining them fails
 * with ESTALE; then clear, and read again. ENOMEM. */
int companions_refresh(struct companions *c, struct journal *j, struct err *err);
/* Add one object; detail: that of its classification, as node/worker/cmd_index.c writes it. ENOMEM; EBADMSG: the detail cannot be
 * read. */
int companions_add(struct companions *c, const struct instance_row *row, const char *detail);
/* Return true if this AE title has sent the last object of a series of the study. */
bool companions_have_sender(const struct companions *c, const char *study, const char *calling);
/* Set arrivals after `now` to now: they were recorded before the clock was set back. */
void companions_clamp_time(struct companions *c, double now);
void companions_clear(struct companions *c);

/* What a case needs a CT series for. */
struct companion_need {
	const char *study, *frame; /* frame "": its headers have no Frame of Reference UID */
	double acquired;	   /* as in struct companion_series; 0: unknown */
	const struct patient_set *patients;
	uint32_t patients_key;
	double until; /* s since the epoch, end of the longest wait */
	double wait;  /* the longest wait, s; for the text */
};

enum companion_verdict {
	COMPANION_JOIN, /* `series` */
	COMPANION_WAIT, /* decide again at `again`, or when an image arrives */
	COMPANION_LACKS /* none has come within the longest wait */
};

struct companion_decision {
	enum companion_verdict verdict;
	const struct companion_series *series;
	const struct companion_series *hardware[CT_SERIES_MOST - 1]; /* that are joined, too */
	int n_hardware;
	double again;	/* s since the epoch; with COMPANION_WAIT */
	char text[600]; /* JOIN: what was chosen and why; WAIT, LACKS: a sentence without a full stop, also about series that do
			   not fit */
};

void companion_decide(const struct companions *c, const struct companion_need *need, double now, double quiet_time,
		      struct companion_decision *ret_answer);
/* Return the instances of all series of a COMPANION_JOIN, to be freed. NULL: no memory. */
int64_t *companion_instances(const struct companion_decision *d, size_t *ret_n);

#endif
