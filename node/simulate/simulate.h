/* SPDX-License-Identifier: Apache-2.0 */
/* Simulate tomosynthesis exams: `tomonode simulate dbt`.
 *
 * Projects a phantom (recon/phantom/phantom.h) with a system of the configuration, and writes objects in the form that a modality
 * writes; docs/geometry.md defines the orientations, the signs of the angles and the tags. Line integrals are analytic and use no
 * projector of the reconstruction. The only exceptions are a phantom of labelled voxels (recon/phantom/voxel_phantom.h) and the
 * breast (recon/phantom/breast_phantom.h): they are projected by the exact walk through their own, finer grid.
 *
 * simulate_plan()          compute from the options what is simulated: angles, scan, phantom, intensities
 * simulate_run()           write the objects, one view at a time, and truth.json
 * simulate_new_*()         create headers (node/simulate/simulate_mg.c and simulate_bp.c use simulate_header.c)
 */
#ifndef TOMONODE_NODE_SIMULATE_H
#define TOMONODE_NODE_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include "dicom/core/dataset.h"
#include "dicom/object/item_writer.h"
#include "node/config/config.h"
#include "recon/core/monitor.h"
#include "recon/core/scan.h"
#include "recon/phantom/breast_phantom.h"
#include "recon/phantom/phantom.h"
#include "recon/phantom/voxel_phantom.h"

#define SIMULATE_VIEWS_MAX 200
#define SIMULATE_MAS 4.2  /* exposure of one projection: about 105 mAs an exam */
#define SIMULATE_DOSE 1.5 /* mean glandular dose of all projections together, mGy */

/* Header values and detector of a system; node/simulate/simulate_plan.c has one for each geometry profile that is installed
 * with the program. */
struct simulate_system {
	char profile[CONFIG_NAME_SIZE]; /* name of the geometry profile */
	char manufacturer[64], model[64], serial[64];
	char anode[16], filter[16];
	int columns, rows; /* number of bins along x and y */
	int views;
	double arc; /* range of the angles, degrees */
};

struct simulate_options {
	struct simulate_system system;
	const struct profile_conf *profile; /* borrowed */
	enum phantom_kind phantom;	    /* if `volume` is NULL and `breast` is false */
	bool breast;			    /* that of recon/phantom/breast_phantom.h */
	int clips;			    /* in it */
	double glandular;		    /* its glandular share, percent */
	const char *volume,
		*materials; /* files of a voxel phantom (node/simulate/simulate_voxels.h); NULL: use an analytic phantom */
	double i0;	    /* mean counts of an unattenuated bin at binning 1, > 0 */
	int binning;	    /* number of detector bins that are merged, along each axis */
	bool multi;	    /* true: one multi-frame Breast Projection object; false: a Digital Mammography series */
	char side;	    /* 'L', 'R' */
	char view[4];	    /* "CC", "MLO" */
	double gantry;	    /* gantry angle of an MLO view, degrees */
	unsigned seed;
	double thickness;     /* of the breast, mm; ignored for a volume, which determines it */
	bool noise, inverted; /* add photon noise; store high values for low intensity */
	bool open_distance; /* the open field varies with distance and direction of the source, relative to the view at 0 degrees
			     */
	double heel;	    /* loss of intensity by the heel effect at the far end of the detector, percent */
	double exposure_swing; /* largest deviation of an exposure from the mean, percent; below 0: the default of the profile */
	double over_range;     /* stored values above this share of I0 are the largest code, percent; 0: none */
	double air;	/* share of the bins that show air, percent: the phantom is made wider or narrower; below 0: as it is */
	int collimate;	/* length of the padding at each end of the detector along y, mm; 0: none */
	double scatter; /* scattered radiation relative to a system without anti-scatter grid; 0: none */
	int views;
	double arc;
	int columns, rows; /* number of bins at binning 1 */
	double window[2];  /* position of these bins in the detector: x of their edge at the chest wall, y of their middle, mm */
	const char *study; /* study UID; NULL: computed from the options */
};

struct simulation {
	struct simulate_options o;
	double pitch; /* of the simulated detector, mm */
	int n_u, n_v;
	double angle[SIMULATE_VIEWS_MAX];    /* degrees, in order of acquisition */
	double exposure[SIMULATE_VIEWS_MAX]; /* relative to the mean */
	double i0;			     /* mean counts of an unattenuated bin of this pitch */
	int max_value;
	struct scan *scan;
	struct scan *rest;	      /* with its first view at 0 degrees */
	struct phantom *phantom;      /* with `voxels`: the description of the voxel phantom for truth.json */
	struct phantom *details;      /* NULL, or shapes that are added to the voxels */
	struct scan *fine;	      /* for `details`: the scan with `rays` bins in one, along each axis */
	struct breast_truth truth;    /* of the breast */
	struct voxel_phantom *voxels; /* NULL: the phantom is analytic */
	int rays;		      /* rays per bin and axis, for a voxel phantom */
	char study[DICOM_UID_SIZE], series[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
	char seed_text[800]; /* text from which UIDs are computed */
	bool columns_toward_chest, rows_toward_minus_y;
};

/* Return the system of an installed profile. For a profile of the user: a system whose headers match its patterns, with the
 * detector and the arc of the first installed profile. */
void simulate_system_find(const struct profile_conf *profile, struct simulate_system *ret_system);

/* Write a text that matches a profile's pattern: the pattern without its stars, or `other` if that is empty. */
void simulate_matching_text(const char *pattern, const char *other, char *ret_text, size_t size);

/* Check the options and compute the simulation from them; see above. EINVAL: an option is invalid; the text names it. */
int simulate_plan(const struct simulate_options *o, struct simulation **ret_simulation, struct err *err);
struct simulation *simulate_free(struct simulation *s); /* takes NULL, returns NULL */

struct simulate_report {
	int files;
	uint64_t bytes;
	double seconds;
};

/* Write the objects and truth.json into `folder`, which is created with its parents if missing. File names contain a number that
 * does not reveal the angle. */
int simulate_run(const struct simulation *s, const char *folder, const struct monitor *monitor,
		 struct simulate_report *ret_report, struct err *err);

/* Create the folder and its parents if missing. */
int simulate_folder(const char *folder, struct err *err);

/* Compute the UID of a part of the exam, such as "view 3". */
void simulate_uid(const struct simulation *s, const char *part, char ret_uid[DICOM_UID_SIZE]);
/* Compute the direction cosines of the scan's x, y, z in the patient (LPS), as defined in docs/geometry.md. */
void simulate_axes(const struct simulation *s, double ret_axes[3][3]);

/* Return the largest intensity of the open beam at a bin relative to that of the view's exposure, times the exposure. */
double simulate_open_largest(const struct simulation *s);
/* Subtract the logarithm of the relative intensity of the open beam from the line integrals of a view. */
void simulate_open_field(const struct simulation *s, int view, float *line);
/* Stretch the phantom so that the requested share of bins shows air. */
int simulate_stretch(struct simulation *s, struct err *err);

/* Write the attributes that both formats have: patient, study, series, equipment, pixels. */
void simulate_fill_header(const struct simulation *s, struct item_writer *root);
const char *simulate_orientation(const struct simulation *s); /* value of (0020,0020) */
/* Write where the images are in the detector: (0018,7030), (0018,7032), (0018,7034). */
void simulate_fill_window(const struct simulation *s, struct item_writer *w);
int simulate_new_mg(const struct simulation *s, int view, struct dicom_file **ret_file, struct err *err);
int simulate_new_bp(const struct simulation *s, struct dicom_file **ret_file, struct err *err);
/* Write truth.json, see docs/geometry.md. */
int simulate_truth(const struct simulation *s, const char *folder, struct err *err);

#endif
