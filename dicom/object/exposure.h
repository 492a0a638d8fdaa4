/* SPDX-License-Identifier: Apache-2.0 */
/* Tell apart the exposures (sweeps, mammograms, scouts) that the images of one series are of, by what their headers say. Pure,
 * but for exposure_read(). The order of the images decides nothing. */
#ifndef TOMONODE_DICOM_EXPOSURE_H
#define TOMONODE_DICOM_EXPOSURE_H

#include <stdbool.h>
#include <stddef.h>

#include "dicom/core/dataset.h"

#define EXPOSURE_ATTRIBUTES 7
#define EXPOSURES_MAX 4 /* more groups are no exposures: some systems count projections */

/* The values of an image's attributes; "": it has none. */
struct exposure_facts {
	char value[EXPOSURE_ATTRIBUTES][DICOM_UID_SIZE];
};
void exposure_read(const struct dicom_item *root, struct exposure_facts *ret_facts);

/* Groups of images by one attribute: the largest first, then by value. */
struct exposures {
	int attribute;
	int n;
	struct exposure {
		char value[DICOM_UID_SIZE]; /* "none": the attribute is missing */
		int images;
	} list[EXPOSURES_MAX];
};

/* Find the first attribute that proves more than one exposure. A value for each image tells nothing, and an image without a
 * number may be of any exposure. False: none does. */
bool exposures_prove(const struct exposure_facts *images, size_t n, struct exposures *ret_exposures);
/* The same for images that are known to be too many: also by what an image lacks, and by time. */
bool exposures_find(const struct exposure_facts *images, size_t n, struct exposures *ret_exposures);
/* Is an image of this group? */
bool exposure_has(const struct exposures *of, int group, const struct exposure_facts *image);
/* Return the name of the attribute that divides them; *ret_tag: its tag. */
const char *exposures_attribute(const struct exposures *of, uint32_t *ret_tag);
/* Write "Acquisition Number (0020,0012): 25 have 1, 25 have 2". */
void exposures_text(const struct exposures *of, char *ret_text, size_t size);
/* Write why images of exposures_prove() are not reconstructed, as a sentence. */
void exposures_refusal(const struct exposures *of, char *ret_text, size_t size);

#endif
