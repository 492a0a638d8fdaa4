/* SPDX-License-Identifier: Apache-2.0 */
/* Read a series of CT slices (CT Image Storage, one slice per object) as a volume of Hounsfield units with its place in the
 * patient. Only standard attributes are used; objects may be in any order and in any encoding that dicom/pixels/pixels.h reads.
 *
 * Only axial images of the examination are slices (PS3.3 C.8.2.1.1.1: Image Type ORIGINAL or DERIVED, PRIMARY, AXIAL). Localizers
 * and secondary images (reformatted, projected) are skipped and counted, as are images whose values are not Hounsfield units of a
 * tube voltage: Rescale Type is not HU (US: unspecified, is taken as HU), or a value of Image Type from the fourth on names
 * monoenergetic images or maps of a property or of materials (PS3.3 C.8.2.1.1.1, C.11.1.1.2). A value that is missing says
 * nothing against an image. The slices must be of one series, with the same size, orientation, pixels and tube voltage, and at
 * equal distances: a missing or repeated slice is refused with its place.
 *
 * The attenuation map that a Siemens mMR makes of MR images (MR Image Storage, a Series Description with UMAP) is such a series,
 * too: its values are 10000 times the attenuation at 511 keV in 1/cm (pet-rd-tools, MRAC.hpp). It has no tube voltage. If its
 * Series Description or Image Type names the table, coils or hardware, it is a further series beside that of the patient.
 *
 * The map of a GE SIGNA PET/MR (a Series Description with ACMAP: pet-rd-tools, issue 28) is known, but not read: no public
 * document states its unit. pet-rd-tools divides its values by 10000, in a copy of what it does for the mMR, not yet tested. */
#ifndef TOMONODE_DICOM_CT_SERIES_H
#define TOMONODE_DICOM_CT_SERIES_H

#include <limits.h>
#include <stdbool.h>

#include "dicom/object/patient.h"

#define CT_VALUES_SIZE 96
#define CT_SERIES_MOST 8 /* of the patient and of hardware, together */

enum ct_object {
	CT_NO_SLICE, /* no CT, and no map */
	CT_SLICE,
	CT_LOCALIZER, /* Image Type value 3 */
	CT_SECONDARY, /* Image Type value 2 is not PRIMARY, or value 3 not AXIAL */
	CT_OTHER      /* values that are not Hounsfield units of a tube voltage, or Enhanced CT, whose frames are not read */
};
/* What a map shows. The order is that in which maps are added. */
enum ct_part { CT_PATIENT, CT_TABLE, CT_COILS, CT_HARDWARE, CT_PARTS };
enum ct_part ct_part_of(const struct dicom_item *root); /* CT_PATIENT: also of what is no map */
const char *ct_part_word(enum ct_part part);		/* "patient", "table", ... */
bool ct_part_named(const char *word, enum ct_part *ret);

/* ret_values (CT_VALUES_SIZE bytes; NULL: not wanted): what an object of CT_OTHER is, as "Image Type VMI"; else "". */
enum ct_object ct_object_of(const struct dicom_item *root, char *ret_values);

struct ct_series {
	int n[3];    /* columns, rows, slices */
	bool is_map; /* a map from MR, or of hardware */
	enum ct_part part;
	struct ct_series *next; /* the next map of hardware, in the order of enum ct_part, then of UIDs; owned. NULL: none */
	/* [slice][row][column]; rounded to whole HU, limited to what 16 bits hold; of a map its value less 1000, so that air and
	 * water are near theirs. NULL: not read */
	int16_t *hu;
	int padding;	      /* HU of Pixel Padding Value of the first slice; INT_MIN: not in it. Set with hu */
	const char **path;    /* [slice]: its file; the names are borrowed */
	double at[3];	      /* centre of voxel (0, 0, 0) in the patient (LPS), mm */
	double step[3][3];    /* from column to column, row to row, slice to slice (LPS), mm; the slices run along row x column */
	double kvp;	      /* of the first slice that has one; NaN: none has */
	char description[65]; /* Series Description; "": none */
	char contrast[65];    /* Contrast/Bolus Agent; "": none */
	char study[DICOM_UID_SIZE], series[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE]; /* "": not in the objects */
	struct patient_set patients; /* of the series and those after it; headers are known by the index of their file */
	bool multi_energy;	     /* (0018,9361): acquired at several energies */
	size_t localizers, secondaries, others; /* objects that were skipped */
	char values[CT_VALUES_SIZE];		/* what the first of `others` is */
};

/* Collect the headers of a series, of files that the caller opens one after the other. */
struct ct_headers;
struct ct_headers *ct_headers_new(size_t n);		  /* of at most n files; NULL: no memory */
struct ct_headers *ct_headers_free(struct ct_headers *h); /* accepts NULL; returns NULL */
/* Add a file with an object of CLASS_CT; its name is borrowed until the series is closed, its data set is not kept. What
 * is wrong with it is an error of ct_series_open(). */
void ct_headers_add(struct ct_headers *h, const char *path, const struct dicom_item *root);
/* Make the series of all headers that were added, once: that of the patient, then those of hardware. EBADMSG: no slices, slices of
 * several series of the patient or of the table, or at unequal distances; the text names them. ENOTUNIQ: of different patients. */
int ct_series_open(struct ct_headers *h, struct ct_series **ret, struct err *err);
/* What the series is in a sentence: "CT", "map from MR", "map of the table". */
const char *ct_series_word(const struct ct_series *s);
/* The series of the headers so far, borrowed; only is_map, description, the numbers of skipped objects and, once there is a slice of
 * it, n[0] and n[1] are set. */
const struct ct_series *ct_headers_series(const struct ct_headers *h);
/* The following are of a series and of all after it. */
size_t ct_series_bytes(const struct ct_series *s); /* of all Hounsfield units */
/* Read the Hounsfield units that are not in memory. */
int ct_series_read(struct ct_series *s, struct err *err);
void ct_series_forget(struct ct_series *s);		/* free the Hounsfield units */
struct ct_series *ct_series_close(struct ct_series *s); /* accepts NULL; returns NULL */

#endif
