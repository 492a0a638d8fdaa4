/* Simulated tomosynthesis exams: `tomonode simulate dbt`.
 *
 * A phantom (recon/phantom/phantom.h) seen by a system of the configuration, written the way a modality writes it:
 * docs/geometry.md has the orientations, the signs of the angles and the tags. Line integrals are analytic; no projector of the
 * reconstruction is involved. A phantom of labelled voxels (recon/phantom/voxel_phantom.h) is the exception: it goes through the
 * exact walk, on its own, finer grid.
 *
 * simulate_plan()          options -> what is simulated: angles, scan, phantom, intensities
 * simulate_run()           -> objects, one view at a time, and truth.json
 * simulate_new_*()         headers (node/simulate/simulate_mg.c, node/simulate/simulate_bp.c on node/simulate/simulate_header.c)
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
#include "recon/phantom/phantom.h"
#include "recon/phantom/voxel_phantom.h"

#define SIMULATE_VIEWS_MAX 200
#define SIMULATE_MAS 4.2  /* of one projection: about 105 mAs an exam */
#define SIMULATE_DOSE 1.5 /* mGy glandular, all projections */

/* What a system's headers say and how its detector is built; node/simulate/simulate_system.c has one for each geometry profile
 * shipped. */
struct simulate_system {
	char profile[CONFIG_NAME_SIZE]; /* name of the geometry profile */
	char manufacturer[64], model[64], serial[64];
	char anode[16], filter[16];
	int columns, rows; /* bins along x and y */
	int views;
	double arc; /* degrees */
};

struct simulate_options {
	struct simulate_system system;
	const struct profile_conf *profile; /* borrowed */
	enum phantom_kind phantom;	    /* where there is no volume */
	const char *volume,
		*materials; /* files of a phantom of voxels (node/simulate/simulate_voxels.h); NULL: an analytic one */
	double i0;	    /* mean counts of an unattenuated bin at binning 1, > 0 */
	int binning;	    /* the detector's pitch times this */
	bool multi;	    /* Breast Projection, else a Digital Mammography series */
	char side;	    /* 'L', 'R' */
	char view[4];	    /* "CC", "MLO" */
	double gantry;	    /* degrees, of an MLO */
	unsigned seed;
	double thickness; /* mm; that of the volume where there is one */
	bool noise, inverted;
	int collimate; /* mm at each end along y that hold padding; 0: none */
	int views;
	double arc;
	int columns, rows; /* at binning 1 */
	const char *study; /* UID; NULL: out of the options */
};

struct simulation {
	struct simulate_options o;
	double pitch; /* mm, of the detector simulated */
	int n_u, n_v;
	double angle[SIMULATE_VIEWS_MAX];    /* degrees, in the order of acquisition */
	double exposure[SIMULATE_VIEWS_MAX]; /* relative to the mean */
	double i0;			     /* counts of a bin of this pitch */
	int max_value;
	struct scan *scan;
	struct phantom *phantom;      /* with `voxels`: what truth.json says of them */
	struct voxel_phantom *voxels; /* NULL: an analytic phantom */
	int rays;		      /* per bin and axis, through voxels */
	char study[DICOM_UID_SIZE], series[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
	char seed_text[800]; /* everything that UIDs are made of */
	bool columns_toward_chest, rows_toward_minus_y;
};

/* The system of a profile that is shipped; for a profile of the operator's own, one whose headers its patterns fit, with the
 * detector and the arc of the first. */
void simulate_system_find(const struct profile_conf *profile, struct simulate_system *ret_system);

/* A text that a profile's pattern fits: without its stars; `other` where nothing is left. */
void simulate_matching_text(const char *pattern, const char *other, char *ret_text, size_t size);

int simulate_plan(const struct simulate_options *o, struct simulation **ret_simulation, struct err *err);
struct simulation *simulate_free(struct simulation *s);

struct simulate_report {
	int files;
	uint64_t bytes;
	double seconds;
};

/* Writes into `folder` (made with its parents when missing). Files are named by a number that tells nothing of the angle. */
int simulate_run(const struct simulation *s, const char *folder, const struct monitor *monitor,
		 struct simulate_report *ret_report, struct err *err);

/* The folder and the folders it lies in, where they are missing. */
int simulate_folder(const char *folder, struct err *err);

/* UID of a part of the exam, such as "view 3". */
void simulate_uid(const struct simulation *s, const char *part, char ret_uid[DICOM_UID_SIZE]);
/* Direction cosines of the scan's x, y, z in the patient (LPS), from the definitions in docs/geometry.md. */
void simulate_axes(const struct simulation *s, double ret_axes[3][3]);

/* What both formats have: patient, study, series, equipment, pixels. */
void simulate_fill_header(const struct simulation *s, struct item_writer *root);
const char *simulate_orientation(const struct simulation *s); /* (0020,0020) */
int simulate_new_mg(const struct simulation *s, int view, struct dicom_file **ret_file, struct err *err);
int simulate_new_bp(const struct simulation *s, struct dicom_file **ret_file, struct err *err);
/* truth.json, see docs/geometry.md. */
int simulate_truth(const struct simulation *s, const char *folder, struct err *err);

#endif
