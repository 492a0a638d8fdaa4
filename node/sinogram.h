/* The sinogram objects of one PET acquisition (docs/sinogram-object.md): Raw Data Storage objects with our private block, several
 * roles, several chunks each. The one place that knows the object; node/pet_facts.c reads the standard attributes.
 *
 * Whatever does not fit is refused with a sentence (EBADMSG: data contradict themselves or something is missing; ENOTSUP: an
 * encoding that is not read). Nothing is allocated in proportion to a number in a header before the file's own size has confirmed
 * it.
 */
#ifndef TOMONODE_NODE_SINOGRAM_H
#define TOMONODE_NODE_SINOGRAM_H

#include <time.h>

#include "dicom/dataset.h"
#include "node/config.h"
#include "node/interfile.h"

#define SINOGRAM_CLASS "1.2.840.10008.5.1.4.1.1.66" /* Raw Data Storage */
#define SINOGRAM_CREATOR "TOMONODE SINOGRAM 1"
#define SINOGRAM_CREATOR_VERSION "2.25.187423086190561735112968317458421907734" /* (0008,9123) */

enum sinogram_role {
	SINOGRAM_EMISSION = 1,
	SINOGRAM_MULTIPLICATIVE, /* m itself */
	SINOGRAM_ADDITIVE,	 /* b */
	SINOGRAM_ATTENUATION,	 /* attenuation correction factors, >= 1: m = 1 / (ATTENUATION NORMALISATION) */
	SINOGRAM_NORMALISATION,	 /* normalisation correction factors, > 0 */
};
#define SINOGRAM_ROLES 5
const char *sinogram_role_name(enum sinogram_role role); /* "EMISSION", ... */

/* What quantification needs, from standard attributes of the EMISSION object; NaN or "" where it does not say. */
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

struct sinogram_part { /* one role */
	bool present;
	struct interfile header;
	uint64_t bytes; /* true length of the data */
	char sha256[65];
	size_t n_chunks;
	size_t *file; /* n_chunks indices into files, in the order of chunks */
};

struct sinogram {
	struct sinogram_part part[SINOGRAM_ROLES + 1]; /* [role] */
	size_t n_files;
	char **paths;
	struct dicom_file **files;
	struct pet_facts facts;
	double axis[3][3];		    /* direction cosines of x, y, z in the patient (LPS) */
	double centre[3];		    /* of the scanner in the frame of reference, mm; 0 where no object says */
	const struct scanner_conf *scanner; /* borrowed; NULL: the header had all that is needed */
};

int sinogram_open(const char *const *paths, size_t n, const struct config *config, struct sinogram **ret, struct err *err);
struct sinogram *sinogram_close(struct sinogram *s); /* takes NULL, returns NULL */

/* All bytes of a role, hash checked; malloc'ed. Threads may read different roles at the same time. */
int sinogram_read(const struct sinogram *s, enum sinogram_role role, uint8_t **ret_bytes, struct err *err);

/* Writing: one object per chunk into `folder`. `like`: patient, study, times are taken from it (NULL: made up as anonymous); set:
 * n_set strings "tag=value" or "Keyword=value". paths: of role's header files. */
struct sinogram_import {
	const char *header[SINOGRAM_ROLES + 1]; /* [role]; NULL: none */
	const char *like;
	char *const *set;
	size_t n_set;
	const char *folder;
	uint64_t chunk; /* bytes; 0: 512 MiB */
	double now;	/* s since the epoch */
};
int sinogram_import(const struct sinogram_import *conf, size_t *ret_n_objects, struct err *err);

#endif
