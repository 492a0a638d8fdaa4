/* What the files that make up node/pet_result.h share; nobody else but their test includes it. */
#ifndef TOMONODE_NODE_PET_RESULT_PARTS_H
#define TOMONODE_NODE_PET_RESULT_PARTS_H

#include "node/dicom_tags.h"
#include "node/pet_result.h"
#include "node/provenance.h"

/* Stored values reach to 32767 although 16 bits are stored: readers that take them for signed are right all the same, and images
 * with negative values (FBP) differ by Pixel Representation alone. */
#define PET_RESULT_TOP 32767

/* pet_result_units.c: what the values of the series are, and what is true of them. */
struct pet_quantity {
	bool calibrated;		  /* Bq/ml; else counts */
	double factor;			  /* value = factor times x */
	double calibration;		  /* (Bq/ml) per (count per second and mm); NaN: none */
	double duration;		  /* s */
	double decay_factor;		  /* part of `factor`; 1: none */
	double decay_before;		  /* DecayFactor of data that came corrected for decay; 0: they did not */
	const char *decay;		  /* DecayCorrection: "NONE", "START", "ADMIN" */
	double reference_ms;		  /* FrameReferenceTime: from the start on, ms */
	char date[9], time[17];		  /* when the acquisition began */
	char corrected[200];		  /* CorrectedImage, values separated by "\\" */
	bool has_attn, has_ran, has_scat; /* among them */
	char warnings[1024];		  /* sentences */
};
/* EBADMSG: see pet_result_check(). */
int pet_result_quantify(const struct sinogram *s, struct pet_quantity *ret_quantity, struct err *err);

/* How the volume's x and y become columns and rows: rows run toward the patient's left, columns toward the back, as far as the
 * axes allow, so that every viewer shows the usual orientation. Slices are numbered from the head down. */
struct pet_view {
	int across, down;	     /* axis of the volume (0: x, 1: y) along a row, along a column */
	bool turn_across, turn_down; /* against its direction */
	bool turn_slices;	     /* instance 1 is the volume's last slice */
	double row[3], column[3];    /* direction cosines of a row and of a column: ImageOrientationPatient */
	double normal[3];	     /* row x column; SliceLocation counts along it */
};
void pet_result_view(const double axis[3][3], struct pet_view *ret_view);
/* Where the middle of the first pixel of instance `index` (0..) lies in the patient, mm; and which slice of the volume it is. */
void pet_result_position(const struct pet_view *view, const struct sinogram *s, const struct grid *g, int index,
			 double ret_position[3]);
int pet_result_slice(const struct pet_view *view, const struct grid *g, int index);

struct pet_result {
	const struct sinogram *s;
	const struct pet_result_info *info;
	const struct dicom_item *source; /* root of the first EMISSION object */
	struct pet_quantity quantity;
	struct pet_view view;
	double largest; /* of the volume, in its units */
	bool is_signed; /* there are negative values */
	long rows, columns;
	char series[DICOM_UID_SIZE];
	struct provenance_time now;
	char protocol[1024], scanner[512];
};

/* The scanner and its sinograms in words, for provenance and UIDs. */
void pet_result_describe_scanner(const struct sinogram *s, char *ret_text, size_t size);

/* pet_result_header.c: everything that the slices have in common, and what each has for itself (index: 0..). */
void pet_result_fill_header(const struct pet_result *r, struct fill *root);
void pet_result_fill_slice(const struct pet_result *r, int index, double slope, struct fill *root);
/* pet_result_sources.c: references to every source, derivation, methods, equipment with the recipe. */
void pet_result_fill_sources(const struct pet_result *r, struct fill *root);

#endif
