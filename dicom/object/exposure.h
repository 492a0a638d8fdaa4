/* SPDX-License-Identifier: Apache-2.0 */
/* Tell apart the exposures (sweeps, mammograms, scouts) that the images of one series, or the frames of one object, are of, by
 * what their headers say. Pure, but for exposure_read(). The order of the images decides nothing. */
#ifndef TOMONODE_DICOM_EXPOSURE_H
#define TOMONODE_DICOM_EXPOSURE_H

#include <stdbool.h>
#include <stddef.h>

#include "dicom/core/dataset.h"
#include "dicom/object/attribute.h"

#define EXPOSURE_ATTRIBUTES 20
#define EXPOSURE_MOMENT_SIZE 20
#define EXPOSURES_MAX 4 /* more groups are no exposures: some systems count projections */
/* Largest ratio between the doses of two images of one exam: a larger one means mixed units. */
#define EXPOSURE_RATIO_MAX 50.0

/* The values of an image's attributes; "": it has none. */
struct exposure_facts {
	char value[EXPOSURE_ATTRIBUTES][DICOM_UID_SIZE];
};
void exposure_read(const struct header *h, struct exposure_facts *ret_facts);

/* Groups of images by one attribute: the largest first, then by value. */
struct exposures {
	int attribute;
	bool dated; /* all moments have their dates, which count */
	int n;
	struct exposure {
		char value[DICOM_UID_SIZE]; /* "none": the attribute is missing; of numbers and moments: the first one */
		char last[DICOM_UID_SIZE];  /* of numbers and moments; else "" */
		char moment
			[EXPOSURE_MOMENT_SIZE]; /* of its first image: "2026-11-21 10:18:00"; "": not known, or exposures_date() was not called */
		int images;
	} list[EXPOSURES_MAX];
};

/* Find the first attribute that proves more than one sweep. A text or a moment for each image tells nothing, and an image
 * without a number may be of any exposure. Return 1: found; 0: none does; negative: no memory. */
int exposures_prove(const struct exposure_facts *images, size_t n, struct exposures *ret_exposures, struct err *err);
/* The same for images that are known to be too many: also by what an image lacks, and by any difference of time. */
int exposures_find(const struct exposure_facts *images, size_t n, struct exposures *ret_exposures, struct err *err);
/* The same of images that nothing proves to be of two exposures: two groups are found, each of two images and a quarter of all or more. */
int exposures_doubt(const struct exposure_facts *images, size_t n, struct exposures *ret_exposures, struct err *err);
/* Write when the images of each group were acquired: by the first attribute with a time that one of them has. */
int exposures_date(struct exposures *e, const struct exposure_facts *images, size_t n, struct err *err);
/* Is an image of this group? */
bool exposure_has(const struct exposures *of, int group, const struct exposure_facts *image);
/* Return the name of the attribute that divides them; *ret_tag: its tag. */
const char *exposures_attribute(const struct exposures *of, uint32_t *ret_tag);
/* Write the values of a group: "7", "28 to 28.5". */
void exposure_text(const struct exposure *e, char *ret_text, size_t size);
/* Write "Acquisition Number (0020,0012): 25 have 1, 25 have 2". */
void exposures_text(const struct exposures *of, char *ret_text, size_t size);
/* Write why images of exposures_prove() are not reconstructed, as a sentence. frames: of one object. */
void exposures_refusal(const struct exposures *of, bool frames, char *ret_text, size_t size);
/* A pause between the images' moments that proves nothing, but that no known system makes. */
struct exposure_pause {
	const char *name; /* of the attribute */
	uint32_t tag;
	double seconds;
	long before, of; /* images before it, and all that have the attribute */
	char from[DICOM_UID_SIZE], to[DICOM_UID_SIZE];
};
/* Return 1: there is one; 0; negative: no memory. */
int exposures_pause(const struct exposure_facts *images, size_t n, struct exposure_pause *ret_pause, struct err *err);
/* Write when each image was acquired, in seconds of any origin, from the first attribute that all of them have and that differs;
 * its name and tag. False: there is none. */
bool exposures_moments(const struct exposure_facts *images, size_t n, double *ret_seconds, const char **ret_name,
		       uint32_t *ret_tag);

#endif
