/* SPDX-License-Identifier: Apache-2.0 */
/* The sinogram objects of one acquisition (docs/sinogram-object.md), PET or parallel beams: Raw Data Storage objects with a
 * private block of this program. The data of each role (emission, attenuation, ...) are divided into chunks, one object per
 * chunk. Only node/sinogram reads and writes these objects;
 * node/sinogram/pet_facts.c reads the standard attributes.
 *
 * Invalid objects are refused with one of these errors: EBADMSG (contradictory or missing data), ENOTSUP (an encoding that is not
 * supported), ENOKEY (the scanner is described neither in the header nor in the configuration). A size in a header is compared
 * with the size of the file before memory is allocated for it.
 */
#ifndef TOMONODE_NODE_SINOGRAM_H
#define TOMONODE_NODE_SINOGRAM_H

#include <time.h>

#include "dicom/core/dataset.h"
#include "dicom/object/item_writer.h"
#include "dicom/object/patient.h"
#include "dicom/object/result_place.h"
#include "node/config/config.h"
#include "node/format/interfile.h"
#include "recon/pet/images.h"

#define SINOGRAM_CREATOR "TOMONODE SINOGRAM 1"
#define SINOGRAM_CREATOR_VERSION "2.25.187423086190561735112968317458421907734" /* (0008,9123) */
#define SINOGRAM_CHUNK_MAX ((uint64_t)512 << 20)				/* largest chunk, bytes */

/* Role of the data in the model y ~ Poisson(m (A x) + b), see docs/sinogram-object.md. */
enum sinogram_role {
	SINOGRAM_EMISSION = 1,	 /* y, the measured counts */
	SINOGRAM_MULTIPLICATIVE, /* factors of m other than attenuation and normalisation */
	SINOGRAM_ADDITIVE,	 /* b, expected randoms and scatter */
	SINOGRAM_ATTENUATION,	 /* attenuation correction factors, >= 1: m = MULTIPLICATIVE / (ATTENUATION NORMALISATION) */
	SINOGRAM_NORMALISATION,	 /* normalisation correction factors, > 0 */
	SINOGRAM_DELAYEDS,	 /* counts of the delayed window, without TOF bins: random coincidences */
	SINOGRAM_SINGLES,	 /* single events of the detectors, for expected randoms; its header is INTERFILE_SINGLES */
	SINOGRAM_LINES,		 /* line integrals: the only role of their formats */
};
#define SINOGRAM_ROLES 8
const char *sinogram_role_name(enum sinogram_role role); /* "EMISSION", ... */

/* A format of sinogram objects; node/sinogram/sinogram_format.c lists all. */
struct sinogram_format {
	enum interfile_kind header;	   /* kind of its header texts, see sinogram_header_kind() */
	const struct interfile_type *type; /* table of this kind; type->id is the SINOGRAM_FORMAT_ID of the objects */
	enum sinogram_role first, last;	   /* range of its roles; every acquisition has the first */
};
const struct sinogram_format *sinogram_format_named(const char *id);	      /* NULL: none */
const struct sinogram_format *sinogram_format_of(enum interfile_kind header); /* NULL: none */
enum interfile_kind sinogram_header_kind(const struct sinogram_format *format, enum sinogram_role role);
void sinogram_format_list(char *ret, size_t size); /* the identifiers of all formats, for messages */

/* ---- one object, read from its header only ---- */

/* Elements of the private block xx10 in group 0071. */
#define SINOGRAM_GROUP 0x0071
enum sinogram_element {
	SINOGRAM_FORMAT_ID = 0x01,     /* LO */
	SINOGRAM_HEADER = 0x02,	       /* UT */
	SINOGRAM_ROLE = 0x03,	       /* CS */
	SINOGRAM_CHUNK = 0x10,	       /* OB */
	SINOGRAM_CHUNK_INDEX = 0x11,   /* UL, from 0 */
	SINOGRAM_CHUNK_COUNT = 0x12,   /* UL: number of chunks of this role */
	SINOGRAM_LENGTH = 0x13,	       /* UL: bytes of the role, all chunks; 0 if they are 4 GiB or more */
	SINOGRAM_SHA256 = 0x14,	       /* LO: hash of the role's bytes, all chunks, hexadecimal */
	SINOGRAM_INSTANCES = 0x15,     /* UL: number of objects of the acquisition, all roles */
	SINOGRAM_CENTRE = 0x16,	       /* FD, 3 values, mm */
	SINOGRAM_LENGTH_LARGE = 0x17,  /* UV: bytes of the role if LENGTH cannot hold them */
	SINOGRAM_SOURCES = 0x18,       /* UT: files that the role was made from, a line each: name, bytes, SHA-256 */
	SINOGRAM_FRAME = 0x19,	       /* UL: time frame of the data, from 1; missing: the data are of all frames */
	SINOGRAM_FRAME_COUNT = 0x1A,   /* UL: number of time frames of the acquisition */
	SINOGRAM_FRAME_START = 0x1B,   /* UL: ms after the start of the acquisition */
	SINOGRAM_FRAME_TIME = 0x1C,    /* UL: duration of the frame, ms */
	SINOGRAM_GATE = 0x1D,	       /* UL: gate of the data, from 1; missing: the data are of all gates */
	SINOGRAM_GATE_COUNT = 0x1E,    /* UL: number of gates of the acquisition */
	SINOGRAM_GATE_MARKS = 0x1F,    /* UT: time marks, a line each: ms after the start of the acquisition */
	SINOGRAM_GATE_SHORTEST = 0x20, /* UL: length of the shortest cycle that is used, ms; missing: all are used */
	SINOGRAM_GATE_LONGEST = 0x21,  /* UL: of the longest one; with the shortest */
	SINOGRAM_GATE_SIGNAL = 0x22,   /* CS: pet_signal_name() in capital letters */
	SINOGRAM_BED = 0x23,	       /* UL: bed of the data, from 1; missing: the data are of all beds */
	SINOGRAM_BED_COUNT = 0x24,     /* UL: number of beds of the acquisition */
	SINOGRAM_BED_START = 0x25,     /* UL: ms after the start of the acquisition */
	SINOGRAM_BED_TIME = 0x26,      /* UL: duration of the bed, ms */
	SINOGRAM_ORIGINS = 0x27,       /* UT: node/sinogram/fact_origins.h */
};

struct sinogram_facts {
	enum sinogram_role role;
	long chunk, n_chunks; /* index of the chunk, from 0; number of chunks of the role */
	long instances;	      /* number of objects of the complete acquisition */
	const struct sinogram_format *format;
	uint64_t bytes; /* size of the role's data, all chunks */
	char sha256[65];
	uint64_t chunk_bytes; /* bytes stored in this object, padding included */
	enum pet_division of;
	long image, n_images;	/* time frame, gate or bed, from 1, and number of all; 0: none in the object */
	long start, time;	/* of a frame or bed, ms: start in the acquisition, duration */
	long shortest, longest; /* of gates, ms: cycles that are used; longest 0: all */
	enum pet_signal signal;
	unsigned block; /* private elements are (0071,BLOCKee) */
	char sop_instance[DICOM_UID_SIZE], study[DICOM_UID_SIZE], series[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
};

/* Read the header of an object. Returns 1: a sinogram object; 0: another object (not an error; err names its type).
 * Errors: EBADMSG, ENOTSUP (an invalid sinogram object). The chunk is not read, so that the time does not depend on its size. All
 * objects of one series belong to one acquisition. */
int sinogram_facts_of(const struct dicom_file *file, struct sinogram_facts *ret_facts, struct err *err);

/* Return true for raw data of another program or manufacturer, and write why they are not supported to ret_reason, a sentence
 * without a full stop. */
bool sinogram_unsupported(const struct dicom_item *root, char *ret_reason, size_t size);

struct sinogram;
struct pet_source; /* node/sinogram/pet_source.h */
/* ---- an acquisition ---- */

/* Values for quantification, from standard attributes of the first EMISSION or LINES object; NaN or "" if an attribute is
 * missing. */
struct pet_facts {
	double weight, size; /* kg, m */
	char radiopharmaceutical[65], radionuclide[65];
	double half_life, dose, volume; /* s, Bq, ml */
	char injected[27];		/* time of injection, DICOM DT or TM as in the object */
	char injected_time[17];		/* the TM beside a DT */
	char zone[6];			/* offset of all times from UTC, +HHMM; "": not known */
	char series_date[9], series_time[17], acquisition_date[9], acquisition_time[17]; /* valid, or "" */
	double duration;								 /* s */
	double calibration;	   /* (Bq/ml) per (count per second and mm of ray), dose calibration factor; NaN: none */
	char corrected[200];	   /* values of CorrectedImage that apply to the data, separated by "\\" */
	char patient_position[17]; /* HFS, HFP, FFS, FFP, HFDR ...: from (0054,0410) and (0054,0414), or (0018,5100) */
};

#define PET_HALF_LIVES_MOST                                                                                                      \
	10 /* a tracer that was injected so long ago, a thousandth of it, was not measured: its day is wrong */

/* node/sinogram/pet_facts.c: read the values. A value that is not a number is treated as missing. */
void pet_facts_read(const struct dicom_item *root, struct pet_facts *ret_facts);
/* Refuse attributes of one object that contradict each other: half-life, or the name of the drug, and nuclide, both positions of
 * the patient, both forms of the start, a decay correction that Corrected Image does not list, its factor and half-life and
 * times. EBADMSG. */
int pet_facts_check(const struct dicom_item *root, struct err *err);
/* The nuclide of an item of Radiopharmaceutical Information Sequence, by its code; NULL: not known. */
const struct nuclide *pet_facts_nuclide(const struct dicom_item *item);
/* node/sinogram/pet_times.c: convert a DICOM date and time to seconds since 1970, in the time zone of the object; false: not a
 * date, or not a time. The reverse, in ms where there is a fraction of a second. */
bool pet_facts_moment(const char *date, const char *time, double *ret_seconds);
void pet_facts_format(double seconds, char ret_date[9], char ret_time[17]);
/* Convert an offset from UTC, +HHMM, to s; false: it is none. */
bool pet_facts_offset(const char *zone, double *ret_seconds);
/* What is known about the time of injection. */
enum pet_injection {
	PET_INJECTION_NONE,
	PET_INJECTION_KNOWN,
	PET_INJECTION_NO_DAY,  /* a time alone that is after the acquisition */
	PET_INJECTION_NO_ZONE, /* it has an offset from UTC, and the object has none */
	PET_INJECTION_INVALID,
};
/* Find it in s on the clock of the object, as pet_facts_moment(). A time alone is of the day of the start, or of the next day if
 * the acquisition, from start to end, contains that time after midnight. */
enum pet_injection pet_facts_injection(const struct pet_facts *f, double start, double end, double *ret_seconds);
/* Is a text of an attribute of the injection a date and time, or a time of day? */
bool pet_facts_says_injection(const char *text);
/* Is its day that of the acquisition only because nothing says another one: a time alone, and a nuclide of which more than a
 * thousandth would remain a day later? */
bool pet_facts_day_assumed(const struct pet_facts *f);
/* Is (0018,1072) another time of day than `injected`, found from (0018,1078), by more than a minute? */
bool pet_facts_injection_differs(const struct pet_facts *f, double injected);
/* Compute from which to which value the factor of a decay correction can be: to the injection (admin), or to the start of the
 * series, of the acquisition or between them. False: half-life, duration or times are not known; then the usual range. */
bool pet_facts_decay_range(const struct pet_facts *f, bool admin, double ret_range[2]);
/* Give the tracer of a PET object both (0018,1072) and (0018,1078), on the clock of the object, as far as one of them and the
 * start of the acquisition tell the other. */
void pet_facts_complete_injection(struct item_writer *root);
/* Compute when the data of a header begin: its study date and time, and the relative start of the data; s since 1970. False: it
 * has no date or no time. */
bool sinogram_begin(const struct interfile *h, double *ret_seconds);
/* Are weight and dose there, and possible for a SUV? A weight in g and a dose in MBq are not. Otherwise write which is not, with
 * its value. */
bool pet_facts_suv(const struct pet_facts *f, char *ret_reason, size_t size);
/* Return the part of a position that a code of CID 20 or CID 21 of PS3.16 means: "S", "P", "DR", "DL"; "HF", "FF"; "": none. */
const char *pet_facts_lies(const char *code);
const char *pet_facts_enters(const char *code);
/* Compute the direction cosines of x, y, z (recon/pet/michelogram.h) in the patient (LPS) for HFS, HFP, FFS, FFP, HFDL, HFDR,
 * FFDL, FFDR; return false for any other position. */
bool pet_facts_axes(const char *position, double ret_axis[3][3]);

struct sinogram_part { /* the data of one role */
	bool present;
	bool of_frame;		 /* borrowed from the part of the chosen time frame or gate */
	struct interfile header; /* parsed, with missing values from the scanner's configuration */
	char *text;		 /* the header text stored in the object */
	uint64_t bytes;		 /* length of the data without padding */
	char sha256[65];
	size_t n_chunks;
	size_t *file;	 /* [n_chunks]: index into files, in the order of chunks */
	unsigned *block; /* [n_chunks]: the private elements of each are (0071,BLOCKee) */
};

struct sinogram {
	const struct sinogram_format *format;
	struct sinogram_part part[SINOGRAM_ROLES + 1]; /* [role] */
	size_t n_files;
	char **paths;
	struct dicom_file **files; /* [n_files]: objects; of data that are not DICOM one header, made in memory */
	char *origin;		   /* of these data, for the provenance: "FILE (N bytes, SHA-256 HEX)"; NULL: objects */
	struct dicom_file *
		patient; /* one of files: the result has its patient and study because a person said so; NULL: nothing was said */
	struct result_place place; /* of the result, set by its writer's caller */
	struct pet_facts facts;
	/* Corrections that the node computes for this reconstruction (enum pet_correction, combined by or). The texts are
	   borrowed; NULL: none. */
	int made;
	bool made_in_part;	  /* attenuation and scatter were made only for a part of the planes: values can only be counts */
	const char *made_note;	  /* sentences for the result about them, and about those that are missing */
	const char *made_from;	  /* identifies what they were made from besides the objects, for UIDs */
	const char *made_method;  /* of attenuation, for Attenuation Correction Method */
	const char *made_randoms; /* Randoms Correction Method, if the node made them */
	const char *made_scatter; /* how much scatter was found, for the derivation; "": none */
	const char *made_maps;	  /* CT and maps that the attenuation was made from, for the derivation */
	const char *assumed;	  /* sentences for the result about values that are assumed; borrowed; NULL: none */
	/* Of raw data whose header the configuration asks for its calibration: the origin of facts.calibration with its parts, and a
	 * sentence about it, or why there is none; "": other data */
	char calibration_origin[120], calibration_text[300];
	bool no_duration;	    /* the duration of facts is assumed: values can only be counts */
	bool no_start, no_position; /* these facts are assumed */
	double axis[3][3];	    /* direction cosines of x, y, z in the patient (LPS) */
	bool has_centre;	    /* an object contains `centre` */
	double centre[3];	    /* centre of the scanner in the frame of reference, mm, of beds that of the chosen one; 0
				       if no object contains it */
	const struct scanner_conf *scanner; /* borrowed; NULL: not configured, and the header is complete without it */
	struct pet_images images;	    /* time frames, gates or beds */
	int chosen;			    /* the one whose data are read, from 0 */
	struct sinogram_part (*frame_part)[SINOGRAM_ROLES + 1]; /* [frame, gate or bed][role]: roles of objects that each has of
								   its own; NULL: none */
	struct sinogram_list *list; /* single events (node/sinogram/sinogram_list.h); NULL: sinograms */
	const struct pet_source *source;
	void *own; /* of the source, whose close() frees it */
};

/* Open all objects of one acquisition, given in any order: sinogram objects, or raw data of a Siemens mMR. The data are not read.
 * All roles must have the rays of EMISSION. A caller that accepts only one format must check s->format. patient: what a person
 * said about headers that name different patients; NULL: nothing, and they are refused with ENOTUNIQ. */
int sinogram_open(const char *const *paths, size_t n, const struct patient_statement *patient, const struct config *config,
		  struct sinogram **ret, struct err *err);
struct sinogram *sinogram_close(struct sinogram *s); /* takes NULL, returns NULL */

/* Write what is assumed or doubtful in the headers of all roles, in sentences; "": nothing. */
void sinogram_header_notes(const struct sinogram *s, char *ret, size_t size);
/* Append those of one header; first: of the role that every acquisition has. */
void sinogram_add_notes(const struct interfile *h, enum sinogram_role role, const struct interfile *first, char *notes,
			size_t size);

/* Read all bytes of a role and check their hash and, as far as it shows, their byte order; of raw data, compute them. The caller
 * frees *ret_bytes; decode them with interfile_plane(). Threads may read different roles at the same time. */
int sinogram_read(const struct sinogram *s, enum sinogram_role role, uint8_t **ret_bytes, struct err *err);

/* Who uses the planes of a role while they are read. */
struct sinogram_planes {
	size_t group; /* planes at a time: twice as many are in memory, while the next ones are read */
	/* Use n planes from `first` on: planes 0 to n - 1 of `bytes`, with a header whose offset is 0. Nothing of it is believed
	 * before sinogram_read_planes() has returned 0. */
	int (*use)(void *ctx, const uint8_t *bytes, size_t first, size_t n, struct err *err);
	void *ctx;
};
/* The same as sinogram_read(), of sinogram objects, for data that are not to be in memory as a whole. An error of use() is
 * returned only if the data are those of the objects; the name of the role is not in its text. */
int sinogram_read_planes(const struct sinogram *s, enum sinogram_role role, const struct sinogram_planes *use, struct err *err);

/* sinogram_frames.c: read the factor by which all counts of a time frame, gate or bed (from 0; without any of them 0) are to
 * be multiplied to restore those that were lost to dead time: Dead Time Factor (0054,1324) of its first EMISSION object. 1:
 * found; 0: there is none; EBADMSG: it is not from 1 to 100. */
int sinogram_dead_time_factor(const struct sinogram *s, int image, double *ret, struct err *err);

/* Divide an acquisition into time frames, or leave it as it is if there are none. ENOTSUP: it is not list
 * mode, or the last frame ends after it. */
int sinogram_set_frames(struct sinogram *s, const struct pet_images *frames, struct err *err);
/* The same for gates; g->marks: a table, copied, or, if g->signal is not PET_SIGNAL_TABLE, none: the marks are those of this
 * signal in the list mode. Errors also as pet_gates_check(). */
int sinogram_set_gates(struct sinogram *s, const struct pet_gates *g, struct err *err);
/* Compute the duration of the chosen frame, gate or bed, or of the acquisition without any of them, s; NaN: unknown. Its decay
 * factor T / I, I = integral of exp(-lambda t) over its times, for a moment of its own; lambda: 1/s, 0: 1. */
double sinogram_duration(const struct sinogram *s);
double sinogram_decay_factor(const struct sinogram *s, double lambda);
/* Choose the frame, gate or bed, from 0, whose data sinogram_read() reads; the first one is chosen at the beginning. Reads of
 * EMISSION in the order of frames read the list only once; each gate reads the whole list. Of a bed, s->centre is its position.
 */
void sinogram_choose_frame(struct sinogram *s, int frame);

/* ---- writing ---- */

#define SINOGRAM_NO_POSITION "The patient's position is not in the data" /* begins the sentence about it */

/* What was assumed because nobody gave it, although a reconstruction requires it. */
struct sinogram_assumed {
	bool position, start, duration;
	char text[600];	   /* sentences; "": nothing was assumed */
	char identity[65]; /* digest of the data, their number format and their geometry; "": not known */
};

/* A bed to import: the headers of its data, and where and when it was measured. */
struct sinogram_import_bed {
	const char *header[SINOGRAM_ROLES + 1]; /* EMISSION, and roles that this bed has of its own */
	double z;				/* of the scanner's centre in the frame of reference, mm */
	double start, duration; /* s after the start of the acquisition; NaN: from the header, relative to that of bed 1 */
};

/* Facts of an acquisition whose origins are known (node/sinogram/fact_origins.h). */
enum fact {
	FACT_PATIENT,
	FACT_STUDY,
	FACT_FRAME_OF_REFERENCE,
	FACT_POSITION,
	FACT_WEIGHT,
	FACT_START,
	FACT_DURATION,
	FACT_NUCLIDE, /* from here to INJECTION in the item of (0054,0016) */
	FACT_HALF_LIFE,
	FACT_FRACTION,
	FACT_DOSE,
	FACT_INJECTION,
	FACT_CALIBRATION,
	FACT_DECAY,
	FACTS
};

/* What data that have no Interfile header say about scanner, times, patient's position, tracer and exam; "" or NaN: nothing. */
struct sinogram_said {
	const char *name;	  /* of the kind of data: "PETSIRD file" */
	const char *field[FACTS]; /* what names each fact in it; NULL: it cannot say it */
	struct interfile header;  /* owns nothing */
	char study[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
};

/* Options of a PETSIRD file. */
struct petsird_import {
	const char *axes; /* of the file that are x, y, z of the scanner: "-y,x,z" ..., a rotation; NULL: "x,y,z" */
	bool no_tof;	  /* add all TOF bins */
	/* Of its sinograms alone. */
	int span;	    /* of the segments; 0: 1 up to 24 rings, else 11 */
	int max_difference; /* largest ring difference; -1: as many as the span fills */
	int n_radial;	    /* radial bins; 0: two thirds of the detectors of a ring */
	double tolerance;   /* of the detectors' positions, mm */
	/* Time frames or gates; an event has the time of the start of its time block, minus that of the first. Marks of a signal
	 * other than PET_SIGNAL_TABLE are read from the file. */
	struct pet_images images;
};
#define PETSIRD_IMPORT                                                                                                           \
	{                                                                                                                        \
		.max_difference = -1, .tolerance = 1                                                                             \
	} /* nothing was said */

/* How files that are not DICOM are taken: what they do not say themselves, and what is made of them. */
struct sinogram_import {
	/* [role]: path of an Interfile header; NULL: none. The header of EMISSION may describe parallel beams; then its role is
	 * LINES, and all other paths must be NULL */
	const char *header[SINOGRAM_ROLES + 1];
	const struct sinogram_import_bed *beds; /* in the order of time; then `header` has only factors of all beds */
	int n_beds;				/* 0: no beds */
	const struct petsird_import *petsird;	/* NULL: PETSIRD_IMPORT */
	/* path of a DICOM file from which patient, study, frame of reference and scanner are copied, and what the data lack of
	 * times and tracer (sinogram_like.c); NULL: use anonymous values */
	const char *like;
	bool as_measured; /* the data are counts of list mode: corrections of the data of `like` do not apply to them */
	const struct sinogram_said *said; /* of list mode; NULL: all is in the header text */
	char *const *set;		  /* [n_set]: "gggg,eeee=value" or "Keyword=value", see docs/sinogram-object.md */
	size_t n_set, n_own;		  /* n_own: the first of them are not of a person, but of the data (`said`) */
	bool simulated;			  /* all facts are those of a simulation */
	const char *folder;		  /* existing folder that the objects are written to */
	uint64_t chunk;			  /* largest chunk, bytes; 0: 512 MiB */
	double now;			  /* s since the epoch */
	struct sinogram_assumed *assumed; /* assume what is missing, and write it here; NULL: warnings name what is missing */
	const struct config *config; /* its scanners complete the headers when they are checked, as in the node; NULL: none */
	char *warnings; /* buffer of warnings_size bytes for sentences about missing values that a reconstruction needs; NULL:
			   none */
	size_t warnings_size;
	char *factors; /* the same for how the values of each role of factors are taken (factor_range.h), each with a line end;
			  only of sinogram_import() */
	size_t factors_size;
};
/* Write one object per chunk: all objects or none. UIDs are computed from data, headers, like and set. */
int sinogram_import(const struct sinogram_import *conf, size_t *ret_n_objects, struct err *err);
/* ENOTSUP if the file is raw data in a form that is not read, or not with Interfile headers; the text says what it is and what to
 * do. */
int sinogram_vendor_check(const char *path, struct err *err);

/* Data in memory, to be written as sinogram objects: of PET, or line integrals of parallel beams (only the role LINES). */
struct sinogram_arrays {
	const struct michelogram *m; /* geometry of PET data; ignored for LINES */
	/* [role]: data[TOF bin][plane][angle][radial bin]; for LINES data[slice][angle][radial bin]; NULL: no such role */
	const float *values[SINOGRAM_ROLES + 1];
	const struct pet_images *images;   /* frames or gates: EMISSION and DELAYEDS have [image] in front; NULL: none */
	bool tof_factors;		   /* the factors, too, have TOF bins; else data[plane][angle][radial bin] */
	double duration;		   /* s; NaN: unknown */
	const char *scanner;		   /* name of the scanner; may be NULL */
	const char *corrections;	   /* "applied corrections" of the header, without arc correction; "" or NULL: none */
	const struct parallel_scan *beams; /* geometry of LINES */
	const char *unit;		   /* unit of the integrated quantity of LINES; NULL: 1/mm (attenuation) */
};
/* Write objects from arrays, like sinogram_import(). conf->header is ignored. */
int sinogram_write(const struct sinogram_arrays *a, const struct sinogram_import *conf, size_t *ret_n_objects, struct err *err);

#endif
