/* SPDX-License-Identifier: Apache-2.0 */
/* Where the data of a PET acquisition come from: a row for each form. Only the files of a row know what it is; everything else asks
 * its members. */
#ifndef TOMONODE_NODE_SINOGRAM_PET_SOURCE_H
#define TOMONODE_NODE_SINOGRAM_PET_SOURCE_H

#include "node/sinogram/sinogram.h"
#include "recon/pet/michelogram_pairs.h"

/* How an acquisition is opened. All is borrowed, and may be NULL or 0. */
struct pet_opening {
	const struct patient_statement *patient;
	const struct config *config;
	struct dicom_file **files; /* [n]: open already; they are taken over, also after an error: then all are NULL */
	/* Only the data and their bins: patient, axis and centre may be unknown; the scanner must not. raw: nor are headers parsed,
	 * to read bytes and header texts, and the scanner may be unknown; raw data of a scanner need its configuration, and have
	 * header texts made by this program */
	bool anonymous, raw;
	/* Of a file of events: what it does not say (like, set, petsird); frames, tof_mashing, fov_radius of the protocol, without
	 * which such a file is not opened; about so many LORs may be read one by one for the sensitivity, of more a sample */
	const struct sinogram_import *file;
	const struct pet_protocol *protocol;
	size_t lors_most;
};

/* What an object says about its acquisition. */
struct pet_object {
	enum interfile_kind header; /* of its data */
	long expected;		    /* number of objects */
	bool whole_study;	    /* which may be in different series of their study */
	bool attenuation;	    /* it has what the attenuation is corrected with */
	char lacks[40];		    /* what the acquisition lacks with this object alone; "": not known */
};

/* A list as the scanner recorded it. */
struct pet_recording {
	bool (*is_gap)(int crystal); /* of each ring */
	/* Make the segments of the bins of its events. The caller frees *ret. */
	int (*segments)(struct michelogram_segment **ret, int *ret_n, struct err *err);
	/* Read all entries; an error of use() ends it. */
	int (*read)(const struct sinogram *s, int (*use)(void *ctx, const struct pet_entry *e, struct err *err), void *ctx,
		    struct err *err);
};

/* What an import made. */
struct import_report {
	size_t objects;
	char text[1000];	/* lines about what was read; "": none */
	struct json_t *details; /* the same as numbers; the caller releases them; NULL: none */
};

#define PET_SOURCE_PARTS 3

struct pet_source {
	const char *name;    /* of its report */
	const char *objects; /* what its DICOM objects are, as in "3 sinogram objects"; NULL: it is a file that is not DICOM */
	const char *sop_class;
	bool (*is_object)(const struct dicom_item *root); /* NULL: it is where no other row is */
	bool (*is_file)(const char *path);		  /* is a file or folder that is not DICOM its data? */
	/* Find the files beside one that is_file() takes from which it is read, too, up to PET_SOURCE_PARTS; the caller frees their
	 * paths. NULL: none. */
	int (*parts)(const char *path, char *ret[PET_SOURCE_PARTS]);
	/* Read what an object says. 1; 0: it is of no acquisition; EBADMSG, ENOTSUP: invalid. */
	int (*describe)(const struct dicom_file *file, struct pet_object *ret, struct err *err);
	/* Describe the acquisition in s, whose files are open. path: of the first. Errors as sinogram_open(). NULL: its files
	 * become sinogram objects first. */
	int (*open)(struct sinogram *s, const char *path, const struct pet_opening *o, struct err *err);
	/* Write the sinogram objects of a file or folder that is_file() takes, as sinogram_import(). NULL: it is DICOM. */
	int (*import)(const char *path, const struct sinogram_import *conf, struct import_report *ret, struct err *err);
	bool roles; /* headers of further roles, and beds, can be given with its file */
	/* Write what is assumed about a file that does not say it (PETSIRD: the axes of the gantry), a sentence for the user.
	 * NULL: nothing. */
	void (*taken)(const struct sinogram_import *file, char *ret, size_t size);

	bool list_mode;	   /* the counts are those of single events: statements of headers about counts are not about them */
	bool efficiencies; /* MULTIPLICATIVE is the efficiency of the detectors alone; its gaps are whole detectors */
	bool of_images;	   /* its headers state corrections and calibration of images that were made elsewhere */

	/* Read or compute the values of a role that is present; see sinogram_read(). */
	int (*read)(const struct sinogram *s, enum sinogram_role role, uint8_t **ret_bytes, struct err *err);
	const char *no_gates; /* why it cannot be divided into gates; NULL: it can */
	/* Find the time marks of gates, those of g->marks or of a signal; the caller clears them. ENOTSUP: it has no such signal. */
	int (*marks)(const struct sinogram *s, const struct pet_gates *g, struct pet_marks *ret, struct err *err);
	/* Make and load s->list, if the protocol wants it (sinogram_list_open()). NULL: it has no events, or open() loads them. */
	int (*open_events)(struct sinogram *s, struct err *err);
	/* Compute the fraction of the time of an image, from 0, that each detector was able to count: ret[ring][detector]. EDOM: the
	 * data do not say it; the text has the reason. NULL: only the headers say what was lost (sinogram_dead_time_factor()). */
	int (*alive)(const struct sinogram *s, int image, double *ret, struct err *err);
	/* Write what the data are not corrected for, and what is not used, in sentences, after they were read. NULL: nothing. */
	void (*note)(const struct sinogram *s, char *ret, size_t size);
	/* Write the files beside the objects that contain their data, each as NAME N bytes SHA-256 HEX. NULL: none. */
	void (*files)(const struct sinogram *s, char *ret, size_t size);
	const struct pet_recording *recording; /* NULL: none */
	void (*close)(struct sinogram *s);     /* free s->own */
};

/* The rows: sinogram_mmr.c, petsird_list.c (open) with petsird_import.c (import), sinogram_e7.c, sinogram_interfile.c, and
 * sinogram.c for sinogram objects. To add one: a file with its operations, and its name here. */
#define PET_SOURCES(X) X(mmr) X(petsird) X(e7) X(interfile) X(objects)
#define X(name) extern const struct pet_source pet_source_##name;
PET_SOURCES(X)
#undef X

const struct pet_source *pet_source_of_file(const char *path);	 /* that opens a file that is not DICOM; NULL: none */
const struct pet_source *pet_source_to_import(const char *path); /* that imports a file or folder; NULL: none */
const struct pet_source *pet_source_of_object(const struct dicom_item *root);
bool pet_source_has_class(const char *sop_class); /* whether objects of a row have it */

/* Open a case: DICOM objects, as sinogram_open(), or one file of events, which are loaded. */
int pet_source_open(const char *const *paths, size_t n, const struct pet_opening *o, struct sinogram **ret, struct err *err);

/* Write the sentences of note(), and those about single events. */
void pet_source_note(const struct sinogram *s, char *ret, size_t size);

#endif
