/* The sinogram objects of one acquisition (docs/sinogram-object.md), PET or parallel beams: Raw Data Storage objects with our
 * private block, several roles, several chunks each. The one place that knows the object; node/sinogram/pet_facts.c reads the
 * standard attributes.
 *
 * Whatever does not fit is refused with a sentence (EBADMSG: data contradict themselves or something is missing; ENOTSUP: an
 * encoding that is not read; ENOKEY: neither header nor configuration know the scanner). Nothing is allocated in proportion to a
 * number in a header before the file's own size has confirmed it.
 */
#ifndef TOMONODE_NODE_SINOGRAM_H
#define TOMONODE_NODE_SINOGRAM_H

#include <time.h>

#include "dicom/core/dataset.h"
#include "node/config/config.h"
#include "node/format/interfile.h"

#define SINOGRAM_CLASS "1.2.840.10008.5.1.4.1.1.66" /* Raw Data Storage */
#define SINOGRAM_CREATOR "TOMONODE SINOGRAM 1"
#define SINOGRAM_CREATOR_VERSION "2.25.187423086190561735112968317458421907734" /* (0008,9123) */
#define SINOGRAM_FORMAT "INTERFILE_3.3"
#define SINOGRAM_FORMAT_PARALLEL "PARALLEL_1"
#define SINOGRAM_CHUNK_MAX ((uint64_t)512 << 20) /* bytes */

enum sinogram_role {
	SINOGRAM_EMISSION = 1,
	SINOGRAM_MULTIPLICATIVE, /* m, as far as the next two do not make it */
	SINOGRAM_ADDITIVE,	 /* b */
	SINOGRAM_ATTENUATION,	 /* attenuation correction factors, >= 1: m = MULTIPLICATIVE / (ATTENUATION NORMALISATION) */
	SINOGRAM_NORMALISATION,	 /* normalisation correction factors, > 0 */
	SINOGRAM_LINES,		 /* line integrals of parallel beams: the one role of its format, and of no other */
};
#define SINOGRAM_ROLES 6
const char *sinogram_role_name(enum sinogram_role role); /* "EMISSION", ... */

/* ---- one object, from its header alone ---- */

/* Elements of the private block xx10 in group 0071. */
#define SINOGRAM_GROUP 0x0071
enum sinogram_element {
	SINOGRAM_FORMAT_ID = 0x01,    /* LO */
	SINOGRAM_HEADER = 0x02,	      /* UT */
	SINOGRAM_ROLE = 0x03,	      /* CS */
	SINOGRAM_CHUNK = 0x10,	      /* OB */
	SINOGRAM_CHUNK_INDEX = 0x11,  /* UL, from 0 */
	SINOGRAM_CHUNK_COUNT = 0x12,  /* UL, of this role */
	SINOGRAM_LENGTH = 0x13,	      /* UL: bytes of the role, all chunks; 0 where they are 4 GiB or more */
	SINOGRAM_SHA256 = 0x14,	      /* LO, hexadecimal, of the role's bytes, all chunks */
	SINOGRAM_INSTANCES = 0x15,    /* UL: of the acquisition, all roles */
	SINOGRAM_CENTRE = 0x16,	      /* FD, 3 values, mm */
	SINOGRAM_LENGTH_LARGE = 0x17, /* UV: where LENGTH cannot hold it */
};

struct sinogram_facts {
	enum sinogram_role role;
	long chunk, n_chunks; /* chunk from 0 */
	long instances;	      /* that make the acquisition complete */
	char format[65];      /* SINOGRAM_FORMAT; of role LINES SINOGRAM_FORMAT_PARALLEL */
	uint64_t bytes;	      /* of the role, all chunks */
	char sha256[65];
	uint64_t chunk_bytes; /* stored in this object, padding included */
	unsigned block;	      /* private elements are (0071,BLOCKee) */
	char sop_instance[DICOM_UID_SIZE], study[DICOM_UID_SIZE], series[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
};

/* 1: one of our objects; 0: something else, err says what (nothing is wrong); EBADMSG, ENOTSUP: ours, but broken. Costs a few
 * reads whatever the size of the chunk: the chunk itself is not touched. Instances of one series make up one acquisition. */
int sinogram_facts_of(const struct dicom_file *file, struct sinogram_facts *ret_facts, struct err *err);

/* Of what is none of our objects: raw data of others? ret_reason: why they are not read, a sentence without a full stop. */
bool sinogram_foreign(const struct dicom_item *root, char *ret_reason, size_t size);

/* ---- an acquisition ---- */

/* What quantification needs, from standard attributes of the first EMISSION or LINES object; NaN or "" where it does not say. */
struct pet_facts {
	double weight, size; /* kg, m */
	char radiopharmaceutical[65], radionuclide[65];
	double half_life, dose, volume; /* s, Bq, ml */
	char injected[27];		/* DICOM DT or TM as it stands */
	char series_date[9], series_time[17], acquisition_date[9], acquisition_time[17];
	double duration;	   /* s */
	double calibration;	   /* (Bq/ml) per (count per second and mm of ray), dose calibration factor; NaN: none */
	char corrected[200];	   /* values of CorrectedImage that are true of the data, "\\"-separated */
	char patient_position[17]; /* HFS, HFP, FFS, FFP, HFDR ...: from (0054,0410) and (0054,0414), or (0018,5100) */
};

/* node/sinogram/pet_facts.c. A value that is no number counts as not given. */
void pet_facts_read(const struct dicom_item *root, struct pet_facts *ret_facts);
/* Direction cosines of x, y, z (recon/pet/michelogram.h) in the patient (LPS) for HFS, HFP, FFS, FFP, HFDL, HFDR, FFDL, FFDR;
 * false: none of these. */
bool pet_facts_axes(const char *position, double ret_axis[3][3]);

struct sinogram_part { /* one role */
	bool present;
	struct interfile header; /* completed */
	char *text;		 /* the header as it stands in the object */
	uint64_t bytes;		 /* true length of the data */
	char sha256[65];
	size_t n_chunks;
	size_t *file;	 /* n_chunks indices into files, in the order of chunks */
	unsigned *block; /* [n_chunks]: where their private elements are */
};

struct sinogram {
	struct sinogram_part part[SINOGRAM_ROLES + 1]; /* [role] */
	size_t n_files;
	char **paths;
	struct dicom_file **files;
	struct pet_facts facts;
	double axis[3][3];		    /* direction cosines of x, y, z in the patient (LPS) */
	double centre[3];		    /* of the scanner in the frame of reference, mm; 0 where no object says */
	const struct scanner_conf *scanner; /* borrowed; NULL: not in the configuration, and the header had all that is needed */
};

/* The role that every acquisition has, and without which it is none: LINES where that is there, else EMISSION. */
enum sinogram_role sinogram_first_role(const struct sinogram *s);

/* Objects in any order, of one acquisition, all of it. The data stay on disk. All roles have the rays of EMISSION. Who wants the
 * one kind of data asks sinogram_first_role(). */
int sinogram_open(const char *const *paths, size_t n, const struct config *config, struct sinogram **ret, struct err *err);
/* For the bytes and the headers' texts alone: neither scanner nor patient need be known, headers are not parsed. */
int sinogram_open_raw(const char *const *paths, size_t n, struct sinogram **ret, struct err *err);
struct sinogram *sinogram_close(struct sinogram *s); /* takes NULL, returns NULL */

/* All bytes of a role, hash checked; malloc'ed; for interfile_plane(). Threads may read different roles at the same time. */
int sinogram_read(const struct sinogram *s, enum sinogram_role role, uint8_t **ret_bytes, struct err *err);

/* ---- writing ---- */

/* One object per chunk into `folder`, which exists; all objects or none. `like`: a DICOM file from which patient, study, frame of
 * reference, times and PET attributes are taken (NULL: made up as anonymous); set: n_set strings "gggg,eeee=value" or
 * "Keyword=value" (docs/sinogram-object.md). UIDs follow from data, headers, like and set. */
struct sinogram_import {
	/* [role]: path of an Interfile header; NULL: none. That of EMISSION may be one of parallel beams: LINES, alone */
	const char *header[SINOGRAM_ROLES + 1];
	const char *like;
	char *const *set;
	size_t n_set;
	const char *folder;
	uint64_t chunk; /* bytes; 0: 512 MiB */
	double now;	/* s since the epoch */
	char *warnings; /* NULL, or warnings_size bytes for sentences: what a reconstruction will miss */
	size_t warnings_size;
};
int sinogram_import(const struct sinogram_import *conf, size_t *ret_n_objects, struct err *err);

/* The same from arrays: values[role] is float data[plane][angle][radial] of m, NULL: no such role; header[] is not looked at.
 * LINES alone: data[slice][angle][radial] of beams, line integrals of what has `unit`; m is not looked at.
 * duration, s, NaN: not known; precorrected: what "applied corrections" is to say besides arc correction ("": nothing). */
struct sinogram_arrays {
	const struct michelogram *m;
	const float *values[SINOGRAM_ROLES + 1];
	double duration;
	const char *scanner, *corrections; /* may be NULL */
	const struct parallel_scan *beams;
	const char *unit; /* NULL: attenuation, 1/mm */
};
int sinogram_write(const struct sinogram_arrays *a, const struct sinogram_import *conf, size_t *ret_n_objects, struct err *err);

#endif
