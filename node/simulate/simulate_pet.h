/* Simulated PET acquisitions: `tomonode simulate pet`.
 *
 * A phantom (recon/phantom/pet_phantom.h) in a scanner of the configuration, as sinogram objects (docs/sinogram-object.md) or as
 * Interfile. Line integrals are analytic; no projector of the reconstruction is involved. With A_i the integral of the activity
 * at the start of the scan along ray i, and U_i that of the attenuation:
 *
 *   expected counts y_i = scale A_i exp(-U_i) + b,   scale such that their sum without b is the number of counts asked for
 *
 * Roles: EMISSION y; with attenuation ATTENUATION exp(U_i); with randoms ADDITIVE b, the same in all bins that have a ray. There
 * is no scatter, no dead time, and all detectors are alike.
 *
 * The activity decays while it is measured, and the calibration factor says so: it gives the mean concentration over the scan,
 * concentration at the start times (1 - exp(-l T)) / (l T). The injected dose is what there is at the start of the scan, an hour
 * earlier, and the patient weighs what the phantom's water does: a uniform cylinder has SUV 1.
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
#define SIMULATE_PET_HALF_LIFE 6586.2 /* s, fluorine 18 */
#define SIMULATE_PET_DURATION 600.0   /* s */
#define SIMULATE_PET_UPTAKE 3600.0    /* s from injection to the start of the scan */
#define SIMULATE_PET_DATE "20260601"
#define SIMULATE_PET_INJECTED "091500"
#define SIMULATE_PET_START "101500"
#define SIMULATE_PET_CONTENT "102600"
#define SIMULATE_PET_NOW 1780309560.0 /* the same, s since the epoch */

struct simulate_pet_options {
	const struct scanner_conf *scanner; /* borrowed */
	enum pet_phantom_kind phantom;
	double radius, length; /* of a cylinder, mm */
	double size;	       /* factor on all lengths; 0: 1, less where that does not fit the scanner */
	double counts;	       /* expected, without randoms */
	double randoms;	       /* in parts of counts */
	bool noise, attenuation;
	bool interfile; /* .hs and .s instead of objects */
	unsigned seed;
	char position[5];  /* HFS, HFP, FFS, FFP, HFDR, HFDL, FFDR, FFDL */
	const char *study; /* UID; NULL: out of the options */
};

struct simulate_pet {
	struct simulate_pet_options o;
	struct michelogram m;
	struct scan *scan;
	int *plane; /* [plane of the michelogram]: plane of the scan */
	struct pet_phantom *phantom;
	double size;
	double axis[3][3];   /* of x, y, z in the patient (LPS) */
	double becquerel;    /* of everything at the start of the scan */
	double dose, weight; /* Bq, kg */
	double mean_decay;   /* mean activity over the scan / that at its start */
	char manufacturer[64], model[64];
	char interfile_scanner[64]; /* as STIR names it */
	char study[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
	char seed_text[1000]; /* everything that UIDs are made of */
};

int cmd_simulate_pet(int argc, char **argv); /* argv[0] is not looked at */

struct simulate_pet_report {
	int files;	    /* objects, or Interfile headers */
	size_t rays;	    /* bins that have one */
	double scale;	    /* counts per (Bq/ml and mm) */
	double calibration; /* (Bq/ml) per (count per second and mm) */
	double background;  /* counts in a bin with a ray */
	double counts;	    /* sum of the emission data */
	double seconds;
};

/* EINVAL names what does not go: a phantom that is too large for the scanner, a position that is none ... */
int simulate_pet_plan(const struct simulate_pet_options *o, struct simulate_pet **ret_simulation, struct err *err);
struct simulate_pet *simulate_pet_free(struct simulate_pet *s); /* takes NULL, returns NULL */

/* Writes into `folder` (made with its parents when missing) the objects or files, and truth.json. */
int simulate_pet_run(const struct simulate_pet *s, const char *folder, const struct monitor *monitor,
		     struct simulate_pet_report *ret_report, struct err *err);

void simulate_pet_uid(const struct simulate_pet *s, const char *part, char ret_uid[DICOM_UID_SIZE]);

/* An object with the patient, study, equipment and PET attributes that the sinogram objects take over. */
int simulate_pet_header(const struct simulate_pet *s, const struct simulate_pet_report *known, const char *path, struct err *err);
/* truth.json, see docs/pet-geometry.md. */
int simulate_pet_truth(const struct simulate_pet *s, const struct simulate_pet_report *known, const char *folder,
		       struct err *err);

#endif
