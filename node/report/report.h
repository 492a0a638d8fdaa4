/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a result: one HTML file that shows and describes a tomosynthesis, or a PET or CT series, to a person without a
 * viewer. docs/report.md says what it contains.
 *
 * - It is made from the objects alone, of any manufacturer.
 * - Pictures are within the file as PNG of 8 bits; nothing outside of it is loaded, which its Content-Security-Policy enforces.
 * It is complete without scripts and on paper.
 * - All text of the objects is escaped and has a limit. The patient's attributes are written only if the caller asks for them;
 *   names of files, which may contain a patient's name, never are. */
#ifndef TOMONODE_NODE_REPORT_H
#define TOMONODE_NODE_REPORT_H

#include "node/base/html.h"
#include "node/format/correction_pictures.h"
#include "node/tools/image_series.h"
#include "node/tools/series_suv.h"

#define REPORT_PLANE_SIDE 512 /* pixels along the longer side of a plane at most, and of a slice of the slider */
#define REPORT_SLICE_SIDE 256
#define REPORT_SLICES 60 /* of the slider at most, equally spaced */

struct report_request {
	bool patient;		      /* write the patient's name, ID, birth date, sex and age, and the accession number */
	const char *notes;	      /* sentences about the values that the objects do not contain; "": none */
	const struct series_suv *suv; /* of the series; NULL: not a PET */
	const struct correction_pictures *corrections; /* NULL: none */
	const char
		*no_corrections; /* a sentence: why there are none, although corrections were computed; "": nobody expects them */
};

/* Write the report of a series into `h`. root: the header of one of its objects; n_objects: their number. The text is at most
 * HTML_MAX. */
int report_make(const struct image_series *s, const struct dicom_item *root, size_t n_objects,
		const struct report_request *request, struct html *h, struct err *err);

#endif
