/* SPDX-License-Identifier: Apache-2.0 */
/* Measure a PET or CT series as one volume: regions of the caller, of a mask or of a truth.json, the image quality phantom of
 * NEMA NU 2, uniformity and the noise power spectrum. docs/measure.md has the formulas and the members of the result. */
#ifndef TOMONODE_NODE_MEASURE_SERIES_H
#define TOMONODE_NODE_MEASURE_SERIES_H

#include <jansson.h>
#include <stdbool.h>

#include "node/tools/image_series.h"
#include "node/tools/series_activity.h"
#include "node/tools/series_suv.h"

#define SERIES_REQUESTS_MAX 256
#define SERIES_NAME_SIZE 64

struct series_request {
	enum { SERIES_CIRCLE = 1, SERIES_SPHERE, SERIES_UNIFORM } what;
	char name[SERIES_NAME_SIZE];
	double at[3];	 /* centre in the patient (LPS), mm */
	double diameter; /* mm; SERIES_UNIFORM: of the uniform object, a cylinder along the normal of the slices */
	double length;	 /* SERIES_UNIFORM: of that cylinder, mm; 0: the nearest slice */
};

struct series_requests {
	const struct series_request *request;
	size_t n;
	const char *truth, *mask;		/* paths; NULL: none */
	int nps_side;				/* pixels of the regions of the noise power spectrum; 0: chosen */
	int image;				/* time frame or gate, from 0 */
	const struct series_activity *activity; /* of uniform cylinders; NULL: not known */
};

/* Errors: EBADMSG (a region beyond the image, a value that is not finite, a truth of another series; the text names it). */
int measure_series_run(const struct image_series *s, const struct series_requests *requests, const struct series_suv *suv,
		       json_t **ret_result, struct err *err);

#endif
