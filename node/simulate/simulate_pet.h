/* SPDX-License-Identifier: Apache-2.0 */
/* Simulate PET acquisitions: `tomonode simulate pet`.
 *
 * Measures a phantom (recon/phantom/pet_phantom.h) with a scanner of the configuration, and writes sinogram objects
 * (docs/sinogram-object.md) or Interfile. Line integrals are analytic and use no projector of the reconstruction. With A_i the
 * integral of the activity at the start of the scan along ray i, and U_i that of the attenuation:
 *
 *   expected counts y_i = scale A_i exp(-U_i) + b,   scale such that their sum without b is the requested number of counts
 *
 * With time of flight A_i is the integral of the activity times the weight of the TOF bin (kernels/tof.h), and the randoms are
 * the same in all TOF bins.
 *
 * Roles: EMISSION y; with attenuation ATTENUATION exp(U_i); with randoms ADDITIVE b, the same in all bins that have a ray. With
 * delayeds b is the sum over the bin's pairs of detectors of the product of their singles, which differ between detectors (by a
 * factor of up to 2 along the ring, and from 0.7 to 1.3 at random), and there is DELAYEDS, a Poisson sample of b of its own,
 * instead of ADDITIVE. With singles the same b, and SINGLES: the single events of the detectors in the scan, whose products give
 * b with a coincidence window of SIMULATE_PET_WINDOW, or that of all TOF bins. With list mode the sinograms have a plane for each
 * ring pair, an angle for half of the detectors, and no arc correction, so that a bin is a pair of detectors: each count of
 * EMISSION becomes a prompt, and delayed coincidences are drawn with the expected randoms. Times are uniform over the scan.
 * Scatter and dead time are not simulated, and all detectors are alike.
 *
 * Several beds are a scan each, with its own data: bed b, from 0, begins b SIMULATE_PET_BED seconds after the first, its counts
 * are lower by the decay until then, and the scanner's centre is at (b - (n - 1) / 2) bed_step along its axis.
 *
 * The activity decays during the scan, and the calibration factor includes this: it gives the mean concentration over the scan,
 * concentration at the start times (1 - exp(-l T)) / (l T). The injected dose is the activity at the start of the scan, corrected
 * for the decay since the injection one hour earlier. The weight of the patient is that of the phantom's water, so that a uniform
 * cylinder has SUV 1.
 */
#ifndef TOMONODE_NODE_SIMULATE_PET_H
#define TOMONODE_NODE_SIMULATE_PET_H

#include <stdbool.h>
#include <stdint.h>

#include "dicom/core/dataset.h"
#include "node/config/config.h"
#include "recon/core/monitor.h"
#include "recon/pet/michelogram.h"
#include "recon/phantom/pet_phantom.h"

#define SIMULATE_PET_COUNTS 5e7
#define SIMULATE_PET_HALF_LIFE 6586.2 /* half-life of fluorine 18, s */
#define SIMULATE_PET_DURATION 600.0   /* duration of the scan, s */
#define SIMULATE_PET_BED 630.0	      /* from the start of a bed to that of the next, s */
#define SIMULATE_PET_UPTAKE 3600.0    /* time from injection to the start of the scan, s */
#define SIMULATE_PET_WINDOW 4.7e-9    /* coincidence window, both halves, s */
#define SIMULATE_PET_LIST "scan.petsird"
#define SIMULATE_PET_TOF (-1)
#define SIMULATE_PET_TOF_MOST 40 /* more TOF bins of a scanner are added, as few as possible, into one */
#define SIMULATE_PET_DATE "20260601"
#define SIMULATE_PET_INJECTED "091500"
#define SIMULATE_PET_START "101500"
#define SIMULATE_PET_CONTENT "102600"
#define SIMULATE_PET_BEGIN 1780308900.0 /* SIMULATE_PET_START, s since the epoch */
#define SIMULATE_PET_NOW 1780309560.0	/* SIMULATE_PET_CONTENT, s since the epoch */

struct simulate_pet_options {
	const struct scanner_conf *scanner; /* borrowed */
	enum pet_phantom_kind phantom;
	double radius, length;	 /* of a cylinder, mm */
	double size;		 /* factor on all lengths; 0: 1, or less if that does not fit the scanner */
	double counts;		 /* expected number, without randoms; of all beds */
	double randoms;		 /* as a fraction of counts */
	int beds;		 /* number of bed positions; 0: one, without elements for beds */
	double bed_step;	 /* mm from one to the next */
	int tof_bins;		 /* 0: no time of flight; SIMULATE_PET_TOF: those of the scanner */
	double tof_width;	 /* ps: width of these bins, as a difference of times */
	double tof_resolution;	 /* ps: full width at half maximum of a measured difference of times */
	bool noise, attenuation; /* add Poisson noise; simulate attenuation */
	bool interfile;		 /* write .hs and .s files instead of objects */
	bool delayeds;		 /* randoms that follow the detectors' singles, with delayed coincidences instead of ADDITIVE */
	bool singles;		 /* the same randoms, with SINGLES; instead of ADDITIVE, beside DELAYEDS if both are asked for */
	bool petsird;		 /* also write list mode, SIMULATE_PET_LIST; needs noise */
	unsigned seed;
	char position[5];  /* HFS, HFP, FFS, FFP, HFDR, HFDL, FFDR, FFDL */
	const char *study; /* study UID; NULL: computed from the options */
};

struct simulate_pet {
	struct simulate_pet_options o;
	struct michelogram m;
	struct scan *scan;
	int *plane; /* [plane of the michelogram]: index of the plane in the scan */
	struct pet_phantom *phantom;
	double size;
	double axis[3][3];   /* direction cosines of x, y, z in the patient (LPS) */
	double becquerel;    /* total activity at the start of the scan, Bq */
	double dose, weight; /* Bq, kg */
	double mean_decay;   /* mean activity over the scan / activity at its start */
	char manufacturer[64], model[64];
	char interfile_scanner[64]; /* name of the scanner in STIR */
	char study[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
	char seed_text[1000]; /* text from which UIDs are computed */
};

int cmd_simulate_pet(int argc, char **argv); /* argv[0] is ignored */

/* Return the number of scans, at least 1; where the scanner's centre is in one of them, mm along its axis; its activity at its
 * start relative to the start of the first. */
int simulate_pet_scans(const struct simulate_pet *s);
double simulate_pet_bed_at(const struct simulate_pet *s, int bed);
double simulate_pet_bed_decay(int bed);

/* The coincidence window, both halves, s. */
double simulate_pet_window(const struct simulate_pet *s);
/* Compute the expected randoms of a bed, [plane][angle][radial] of all TOF bins together, whose sum over all beds is that of the
 * options, and, if these ask for them, the singles of its detectors, [ring][detector], with noise if the options have it. ray: of
 * each radial bin, 1 or 0: without randoms. Both arrays are allocated where they are NULL; the caller frees them. */
int simulate_pet_randoms(const struct simulate_pet *s, int bed, const float *ray, float **ret_randoms, float **ret_singles,
			 struct err *err);

struct simulate_pet_report {
	int files;	    /* number of objects, or of Interfile headers */
	size_t rays;	    /* number of bins that have a ray, all TOF bins */
	double scale;	    /* counts per (Bq/ml and mm) */
	double calibration; /* (Bq/ml) per (count per second and mm) */
	double background;  /* counts per bin that has a ray */
	double counts;	    /* sum of the emission data */
	double seconds;
};

/* Check the options and prepare the simulation. EINVAL: the text names the problem, such as a phantom that is too large for the
 * scanner or an unknown position. */
int simulate_pet_plan(const struct simulate_pet_options *o, struct simulate_pet **ret_simulation, struct err *err);
struct simulate_pet *simulate_pet_free(struct simulate_pet *s); /* takes NULL, returns NULL */

/* Write the objects or files, and truth.json, into `folder`, which is created with its parents if missing. */
int simulate_pet_run(const struct simulate_pet *s, const char *folder, const struct monitor *monitor,
		     struct simulate_pet_report *ret_report, struct err *err);

void simulate_pet_uid(const struct simulate_pet *s, const char *part, char ret_uid[DICOM_UID_SIZE]);

/* Write an object with the patient, study, equipment and PET attributes that are copied into the sinogram objects. */
int simulate_pet_header(const struct simulate_pet *s, const struct simulate_pet_report *known, const char *path, struct err *err);
/* Write the events of the emission data, [TOF bin][plane][angle][radial], to a PETSIRD file; background: expected randoms of a
 * bin that has a ray. */
int simulate_pet_list(const struct simulate_pet *s, const float *data, double background, const char *path, struct err *err);
/* Write truth.json, see docs/pet-geometry.md. */
int simulate_pet_truth(const struct simulate_pet *s, const struct simulate_pet_report *known, const char *folder,
		       struct err *err);

#endif
