/* SPDX-License-Identifier: Apache-2.0 */
/* Where the data of a PET acquisition come from: a row for each form. Only the files of a row know what it is; everything else asks
 * its members. */
#ifndef TOMONODE_NODE_SINOGRAM_PET_SOURCE_H
#define TOMONODE_NODE_SINOGRAM_PET_SOURCE_H

#include "node/sinogram/sinogram.h"

struct pet_source {
	const char *objects; /* what its DICOM objects are, as in "3 sinogram objects"; NULL: it has none */
	bool list_mode;	     /* the counts are those of single events: statements of headers about counts are not about them */
	bool efficiencies;   /* MULTIPLICATIVE is the efficiency of the detectors alone; its gaps are whole detectors */
	bool of_images;	     /* its headers state corrections and calibration of images that were made elsewhere */

	/* Read or compute the values of a role that is present; see sinogram_read(). */
	int (*read)(const struct sinogram *s, enum sinogram_role role, uint8_t **ret_bytes, struct err *err);
	/* Find the time marks of gates, those of g->marks or of a signal; the caller clears them. ENOTSUP: it cannot be divided, or
	 * has no such signal. */
	int (*marks)(const struct sinogram *s, const struct pet_gates *g, struct pet_marks *ret, struct err *err);
	/* Make and load s->list. NULL: it has no events, or they are loaded. */
	int (*open_events)(struct sinogram *s, struct err *err);
	/* Compute the fraction of the time of an image, from 0, that each detector was able to count: ret[ring][detector]. EDOM: the
	 * data do not say it; the text has the reason. NULL: only the headers say what was lost (sinogram_dead_time_factor()). */
	int (*alive)(const struct sinogram *s, int image, double *ret, struct err *err);
	/* Write what the data are not corrected for, and what is not used, in sentences, after they were read. NULL: nothing. */
	void (*note)(const struct sinogram *s, char *ret, size_t size);
	/* Write the files beside the objects that contain their data, each as NAME N bytes SHA-256 HEX. NULL: none. */
	void (*files)(const struct sinogram *s, char *ret, size_t size);
	void (*close)(struct sinogram *s); /* free s->own */
};

extern const struct pet_source pet_source_objects, pet_source_mmr, pet_source_petsird;

/* Write the sentences of note(), and those about single events. */
void pet_source_note(const struct sinogram *s, char *ret, size_t size);

#endif
