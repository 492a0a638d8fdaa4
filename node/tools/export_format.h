/* SPDX-License-Identifier: Apache-2.0 */
/* The file formats of `tomonode export`: a row for each. Only the file of a row knows which format it is; everything else asks its
 * members. To add one: a file with its row, and its name in EXPORT_FORMATS. */
#ifndef TOMONODE_NODE_EXPORT_FORMAT_H
#define TOMONODE_NODE_EXPORT_FORMAT_H

#include "node/sinogram/sinogram.h"
#include "node/tools/export_picture.h"
#include "node/tools/image_series.h"

/* What a file of the format is made of. */
enum export_input {
	EXPORT_IMAGES, /* a PET or CT series, or a tomosynthesis */
	EXPORT_BYTES,  /* the bytes and header texts of a PET acquisition as they are; its scanner may be unknown */
	EXPORT_EVENTS, /* a PET acquisition whose bins are known */
	EXPORT_INPUTS
};

struct export_file {
	char *path;
	char note[80]; /* what it contains, for the user; "": the report does not name it */
	bool hidden;   /* not in the list of --json */
};

/* One export. The caller fills the first part, which is borrowed; the row the second one. */
struct export_job {
	const char *out;	      /* the file that the user named */
	bool compress;		      /* --compress */
	struct picture_choice choice; /* of a format with planes */
	struct image_series *series;  /* of EXPORT_IMAGES, else NULL */
	struct sinogram *sinogram;    /* of the others, else NULL; its chosen time frame may change */

	struct export_file *files; /* [n], the one that is named by the user first; hidden ones may exist without it */
	size_t n;
	char text[400];		/* what was written, for the user; of images the unit follows; "": files and size say it */
	struct json_t *details; /* further members of --json; NULL: none */
};

struct export_format {
	const char *name;	/* of --format; NULL: not of many series at once */
	const char *ending;	/* of the files that --format writes */
	const char *endings[4]; /* all that select it, ended by NULL */
	const char *help;	/* what a file contains: whole lines of --help */
	enum export_input input;
	bool compressible; /* its values are compressed on request */
	bool flat;	   /* also of a two-dimensional view, which has no place in the patient */
	bool planes;	   /* of chosen planes: one file, or a numbered one of each */
	/* Name all files that write() makes, with export_job_add(). EBADMSG: the input has not what is chosen; the text names it. */
	int (*name_files)(struct export_job *j, struct err *err);
	/* Write all files or none; replace those that exist. ENOTSUP: the format cannot hold this input. */
	int (*write)(struct export_job *j, struct err *err);
};

/* The rows: export_image.c (nifti, metaimage, numpy), export_NAME.c. In this order they are listed for the user, images first. */
#define EXPORT_FORMATS(X) X(nifti) X(metaimage) X(numpy) X(interfile) X(picture) X(sinogram) X(petsird)
#define X(name) extern const struct export_format export_format_##name;
EXPORT_FORMATS(X)
#undef X
#define X(name) +1
enum { EXPORT_FORMAT_COUNT = 0 EXPORT_FORMATS(X) };
#undef X

extern const struct export_format *const export_formats[EXPORT_FORMAT_COUNT + 1]; /* ended by NULL */
const struct export_format *export_format_of_file(const char *path);		  /* by the end of its name; NULL: none */
const struct export_format *export_format_named(const char *name);		  /* of --format; NULL: none */

/* Add a file; `path` is taken over, also after an error, and may be NULL if there was no memory for it. */
int export_job_add(struct export_job *j, char *path, bool hidden, const char *note, struct err *err);
/* Write the files, whose folder is created. force: replace those that exist, which are an error (EEXIST) else. */
int export_job_write(struct export_job *j, const struct export_format *format, bool force, struct err *err);
void export_job_print(const struct export_job *j);	    /* the files with a note, a line each */
struct json_t *export_job_list(const struct export_job *j); /* the paths of --json */
void export_job_clear(struct export_job *j);		    /* free what the row made */

/* Return the name of the file beside `path` with another ending (.nii.gz is one ending), which the caller frees; NULL: no memory. */
char *export_beside(const char *path, const char *ending);
/* EEXIST: the file exists. */
int export_must_be_new(const char *path, struct err *err);

#endif
