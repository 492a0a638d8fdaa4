/* SPDX-License-Identifier: Apache-2.0 */
/* Read PETSIRD files: list mode data of PET with the geometry of the scanner (ETSInitiative/PETSIRD, docs/petsird.md).
 *
 * A file is read by the schema that it contains, and fields are found by their names: schemas 0.9 to 0.12, and later ones that
 * keep these names. A schema without a needed field is refused with the field's name. Other fields are skipped.
 *
 * - Types of modules are numbered 0 .. n_types-1. A detection bin of a type is energy + energies (element + elements module).
 * Here a detector is an element of a module, of any type: number type.first + element + elements module, in 0 .. n_detectors-1.
 * - Positions are the centres of the detectors' boxes, mm, in the coordinates of the scanner's gantry: module transform times
 *   element transform times the mean of the eight corners.
 * - TOF bin k of a pair of types reaches from edges[k] to edges[k+1], mm, of (t1 - t2) c / 2: ascending towards detector 2.
 * - An event has its two detectors in the order in which the file stores them. From schema 0.10 on, the type of the first is not
 *   below that of the second; TOF bins are the same in both orders.
 *
 * The file is untrusted: every size is compared with the size of the file, every number with the range of what it is an index
 * of, and positions and edges are finite. Events are read in pieces through a buffer of fixed size. Errors: EBADMSG (invalid; the
 * text names the byte), ENOTSUP (a schema or a scanner that is not supported), ENOMEM.
 *
 * A struct petsird is used by one thread at a time; several may be open on one file. */
#ifndef TOMONODE_NODE_PETSIRD_H
#define TOMONODE_NODE_PETSIRD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "recon/pet/gates.h"

#define PETSIRD_TYPES_MAX 16
#define PETSIRD_DETECTORS_MAX ((size_t)1 << 24)
#define PETSIRD_ENERGIES_MAX 65536
#define PETSIRD_TOF_MAX 65536
#define PETSIRD_SIGNALS_MAX 64

struct petsird_modules { /* all modules of one type */
	size_t modules, elements, energies;
	size_t first; /* number of the first detector */
};

struct petsird_tof {	   /* of a pair of types */
	size_t n;	   /* TOF bins; 1: no time of flight, 0: the file has none for this pair */
	float *edges;	   /* n + 1, ascending, mm */
	double resolution; /* FWHM, mm; NaN: not in the file */
};

struct petsird_signal { /* an external signal, such as an ECG */
	uint32_t id;	/* in its time blocks */
	char type[24];	/* name of ExternalSignalTypeEnum, such as "ecgTrigger" */
};

/* What the file says about the examination; 0, NaN or "": nothing. */
struct petsird_exam {
	double start;	     /* of the acquisition, s since 1970, UTC */
	double weight, size; /* of the patient, kg and m */
	/* codes of the patient's orientation: how it lies (CID 20), which end enters first (CID 21) */
	char lies[32], enters[32];
	char study[65], frame_of_reference[65]; /* UIDs */
	/* of the first radiopharmaceutical: dose in Bq, time of its administration in s since 1970, and the code of the nuclide
	 */
	double dose, injected;
	char nuclide[32];
	size_t n_radiopharmaceuticals;
	struct petsird_signal signal[PETSIRD_SIGNALS_MAX];
	size_t n_signals;
	uint64_t all_signals; /* of the file; those beyond PETSIRD_SIGNALS_MAX are not read */
};

struct petsird_header {
	char model[64];
	size_t n_types;
	struct petsird_modules type[PETSIRD_TYPES_MAX];
	size_t n_detectors;
	float (*position)[3];					      /* [n_detectors], mm */
	struct petsird_tof tof[PETSIRD_TYPES_MAX][PETSIRD_TYPES_MAX]; /* [i][j], j <= i */
	bool aligned;			/* the file has a transform to the reference of the scanner (CT, MR): */
	double alignment[3][4];		/* not applied to positions */
	double energy_low, energy_high; /* keV: window of all types of modules; 0: they differ */
	double energy_resolution;	/* FWHM at 511 keV over 511 keV, of all types; 0: they differ, or not in the file */
	double calibration;		/* factor of all efficiencies; 1 if the file has none */
	bool has_efficiencies;		/* of detection bins or pairs of modules */
	struct petsird_exam exam;
};

struct petsird_event {
	uint32_t detector[2];
	uint16_t energy[2];
	uint16_t tof; /* TOF bin of the pair of types */
	bool delayed;
	uint32_t time, stop; /* of its time block, ms since the start of the acquisition */
};

struct petsird_counts { /* of what petsird_next() has read */
	uint64_t prompts, delayeds;
	uint64_t surplus;			  /* events of pairs of types that do not exist: skipped */
	uint64_t event_blocks, other_blocks;	  /* time blocks */
	uint64_t bed_movements, gantry_movements; /* blocks behind the first event */
	uint64_t singles;			  /* blocks of histograms of singles */
	uint64_t alive_fractions;		  /* blocks of dead time */
	uint32_t start, stop;			  /* ms: first start and last stop of the event blocks */
	uint32_t longest;			  /* ms: length of the longest event block */
	uint64_t covered;			  /* ms: total length of their intervals, overlaps counted once */
	size_t n_gaps;
	uint32_t (*gap)[2]; /* ms since the start of the acquisition: intervals between them, ascending; borrowed from the file */
};

struct petsird;

/* Open a file and read its header; the next events are the first ones. */
int petsird_open(const char *path, struct petsird **ret, struct err *err);
struct petsird *petsird_close(struct petsird *p); /* takes NULL, returns NULL */
const struct petsird_header *petsird_header(const struct petsird *p);
const struct petsird_counts *petsird_counts(const struct petsird *p);

struct thread_pool;

/* Decode events by these threads, too: petsird_next() runs them. Borrowed until petsird_close(). */
void petsird_use_threads(struct petsird *p, struct thread_pool *pool);
/* Read up to `max` events; *ret_n is 0 at the end of the data. */
int petsird_next(struct petsird *p, struct petsird_event *ret_events, size_t max, size_t *ret_n, struct err *err);
/* Read the time marks of a trigger (ecgTrigger, respTrigger, otherMotionTrigger, externalSync) from the whole file: the starts of
 * its time blocks, ms since the start of the first event block. *ret_outside: marks before it or behind the stop of the last one,
 * which are left out. Then the next events are the first ones. ENOTSUP: the file has no such signal, or several; EBADMSG: marks
 * that do not ascend. */
int petsird_marks(struct petsird *p, enum pet_signal signal, struct pet_marks *ret, uint64_t *ret_outside, struct err *err);
/* Return to the first event; the counts start again. */
void petsird_rewind(struct petsird *p);

/* Return the type of a detector. */
size_t petsird_type_of(const struct petsird_header *h, size_t detector);
/* Return the TOF bins of a pair of types, in any order. */
const struct petsird_tof *petsird_tof_of(const struct petsird_header *h, size_t i, size_t j);
/* Return the efficiency of a pair of detection bins without the calibration factor, 0 if its modules are not in coincidence. */
double petsird_efficiency(const struct petsird *p, const uint32_t detector[2], const uint16_t energy[2]);
/* Is it above 0? From any thread. */
bool petsird_is_alive(const struct petsird *p, const uint32_t detector[2], const uint16_t energy[2]);

#endif
