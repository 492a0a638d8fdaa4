/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes that tell exposures apart, and their values as numbers. Private to dicom/object/exposure.h. */
#ifndef TOMONODE_DICOM_EXPOSURE_INTERNAL_H
#define TOMONODE_DICOM_EXPOSURE_INTERNAL_H

#include "dicom/object/exposure.h"

enum exposure_compared { TEXT, DIFFERENCE, RATIO, TIME, DATE_TIME };

struct exposure_attribute {
	uint32_t tag;
	int value; /* index of the value; -1: all of them */
	const char *name;
	enum { MAY_LACK = 1, NAMES_ONLY = 2 } flags; /* an image without it may be of any exposure; it proves nothing */
	enum exposure_compared how;
	double limit; /* largest step within an exposure */
	double doubt; /* of numbers: largest step that no sweep is known to make; 0: as limit */
};
extern const struct exposure_attribute exposure_attributes[EXPOSURE_ATTRIBUTES];

/* Is it a moment? */
bool exposure_is_time(const struct exposure_attribute *a);
#define EXPOSURE_DATE 8 /* YYYYMMDD */
/* Return true if a text that exposure_read() wrote begins with a date. */
bool exposure_has_date(const char *text);
/* Return true if a moment has seconds; else it has a resolution of a minute. */
bool exposure_has_seconds(const char *text);
/* Return the value of a text as a number; of moments the seconds, from any origin if `dated`, else of the day. NAN: it is none.
 */
double exposure_number(const struct exposure_attribute *a, const char *text, bool dated);

#endif
