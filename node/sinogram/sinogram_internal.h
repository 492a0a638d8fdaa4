/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the files of node/sinogram/sinogram.h. Private to them and their tests. */
#ifndef TOMONODE_NODE_SINOGRAM_INTERNAL_H
#define TOMONODE_NODE_SINOGRAM_INTERNAL_H

#include <stdlib.h>

#include "dicom/object/item_writer.h"
#include "node/sinogram/sinogram.h"

#define SINOGRAM_FILES_MAX 10000 /* maximum number of objects of one acquisition */

/* Return the tag of an element in the private block `block`. */
uint32_t sinogram_tag(unsigned block, enum sinogram_element element);
int sinogram_header_text(struct dicom_file *file, const struct sinogram_facts *f, char **ret_text,
			 struct err *err); /* the caller frees *ret_text */
/* Read the centre of the scanner. 1: found; 0: the object does not have it; EBADMSG: invalid. */
int sinogram_centre(struct dicom_file *file, const struct sinogram_facts *f, double ret_centre[3], struct err *err);

/* Check that a role's completed header has the rays of the emission's, and its TOF bins; factors may be without TOF bins. The
 * text begins with the names of both roles. */
int sinogram_same_bins(const struct interfile *emission, const struct interfile *other, enum sinogram_role role, struct err *err);

/* sinogram.c: steps of opening that all sources share; the files are open. */
/* Find out whose patient the result has; ENOTUNIQ, ENOTSUP: see sinogram_open(). */
int sinogram_find_patient(struct sinogram *s, const struct patient_statement *patient, struct err *err);
const struct scanner_conf *sinogram_find_scanner(struct dicom_file *file, const struct config *config); /* NULL: none */
int sinogram_find_axes(struct sinogram *s, struct err *err); /* from facts.patient_position */

/* The elements of an object that name its time frame, gate or bed: [enum pet_division]. */
extern const struct sinogram_image_elements {
	enum sinogram_element number, count, start, time; /* of gates no start and time, but marks */
	int most;
} sinogram_image_elements[];

/* sinogram_read.c: read() of sinogram objects. */
int sinogram_read_objects(const struct sinogram *s, enum sinogram_role role, uint8_t **ret_bytes, struct err *err);

/* Read the table of time marks of an object; the caller frees *ret_text. */
int sinogram_marks_text(struct dicom_file *file, const struct sinogram_facts *f, char **ret_text, struct err *err);

/* sinogram_frames.c: read the time frames, gates or beds of the objects, whose facts are given, and make room for their parts.
 * EBADMSG: they contradict each other. Then the parts are collected, and checked: a role is in all of them, or in none. */
int sinogram_find_frames(struct sinogram *s, const struct sinogram_facts *facts, struct err *err);
int sinogram_check_frames(struct sinogram *s, struct err *err);
/* Check the gates of the acquisition, after its facts were read; errors as pet_gates_check(). */
int sinogram_check_gates(const struct sinogram *s, struct err *err);

/* sinogram_objects.c: check that all objects, whose facts are given, describe one acquisition, after its facts were read.
 * EBADMSG: two contradict each other; the text has both objects and both values. */
int sinogram_check_objects(const struct sinogram *s, const struct sinogram_facts *facts, struct err *err);

/* sinogram_source_file.c: compute the size and the SHA-256 of a file, 64 hexadecimal digits; from any thread. */
int sinogram_hash_file(const char *path, uint64_t *ret_bytes, char ret_hash[65], struct err *err);
/* Describe a file for the provenance: "NAME N bytes SHA-256 HEX". The caller frees *ret_text. */
int sinogram_describe_file(const char *path, char **ret_text, struct err *err);
/* Describe data that are not objects, for headers: "NAME (N bytes, SHA-256 HEX)". The caller frees *ret_text. */
int sinogram_origin(const char *path, uint64_t bytes, const char *hash, char **ret_text, struct err *err);

/* ---- raw data of Siemens: sinogram_mmr_open.c ---- */

#define SINOGRAM_SIEMENS_CLASS "1.3.12.2.1107.5.9.1" /* raw data of any Siemens system */

/* Write the third value of Image Type, without blanks; "": there is none. */
void sinogram_mmr_type(const struct dicom_item *root, char *ret_type, size_t size);

/* ---- writing: sinogram_import.c fills these structures, sinogram_write.c writes the objects ---- */

struct sinogram_stream { /* the data of one role */
	bool present;
	char *text; /* header text; owned */
	struct interfile header;
	const uint8_t *values; /* float values in the order in memory, borrowed; NULL: make or read them */
	/* Make the values of one stored plane, little-endian floats; NULL: read them from `path`. Planes are asked for in order,
	 * several times. */
	int (*make)(void *ctx, size_t plane, float *ret_values, struct err *err);
	void *make_ctx;
	char *path;	/* path of the data file; owned */
	char *sources;	/* names, sizes and SHA-256 of the files that the values were made from; owned; NULL: none */
	uint64_t bytes; /* size of the data file: the data offset in the header plus the values */
	char sha256[65];
};

struct sinogram_source {
	const struct sinogram_import *conf;
	const struct sinogram_format *format;
	struct sinogram_stream stream[SINOGRAM_ROLES + 1];
	struct pet_images images; /* beds without x and y of the centres; the marks of gates are borrowed */
	char *marks;		  /* text of these marks; owned */
	/* [image][role]: roles that each frame, gate or bed has of its own; NULL: not divided. `stream` borrows those of bed 1;
	 * those of frames and gates, EMISSION and DELAYEDS, borrow header and text of `stream` */
	struct sinogram_stream (*own)[SINOGRAM_ROLES + 1];
	struct dicom_file *like; /* NULL: none */
	double centre[3];	 /* mm; NaN: unknown */
	char seed[65];		 /* hash of everything that UIDs are computed from */
	char notes[1800];	 /* sentences that are written before the other warnings; "": none */
};

/* sinogram_import_beds.c: open the streams of conf->beds. EBADMSG: the names in the text are those of the command line. */
int sinogram_open_beds(struct sinogram_source *s, struct err *err);
void sinogram_clear_images(struct sinogram_source *s);

/* sinogram_roles.c: EINVAL: a header is given for two roles: one of them is mistaken, and factors would be applied twice. */
int sinogram_check_roles(const char *const header[SINOGRAM_ROLES + 1], struct err *err);
/* EBADMSG: the values of two roles are the same bytes, and not one value alone: one of the headers names the wrong file. */
int sinogram_check_data(const struct sinogram_source *s, struct err *err);
/* EBADMSG: the header for EMISSION describes other data, or its name and its values are those of correction factors. */
int sinogram_check_emission(const char *header, const struct sinogram_stream *s, struct err *err);

/* sinogram_axes.c: EBADMSG: views and planes of the data are in the other order than the header says. bytes: as of
 * interfile_plane(). Looks at the direct segment; h is complete. */
int sinogram_check_axes(const struct interfile *h, const uint8_t *bytes, struct err *err);

/* sinogram_interfile.c: read a header and find its data. */
int sinogram_stream_open(const char *header, struct sinogram_stream *s, struct err *err);

/* sinogram_mmr_import.c: add what belongs to extracted sinograms of a Siemens mMR, which the role EMISSION of s may be: factors of
 * their normalisation, delayed coincidences. The caller frees *ret, NULL if it is not set, after s. */
struct sinogram_mmr_import;
bool sinogram_mmr_is_norm_header(const char *path);
int sinogram_mmr_complete(struct sinogram_source *s, struct sinogram_mmr_import **ret, struct err *err);
void sinogram_mmr_import_free(struct sinogram_mmr_import *x); /* accepts NULL */

/* sinogram_import.c: write what the streams of s contain. */
void sinogram_stream_clear(struct sinogram_stream *s);
/* Make the DICOM header of an acquisition that is not in sinogram objects, in memory. header: duration and scanner of its data;
 * sha256: of its data. ret_centre: unchanged if conf does not set it. */
int sinogram_new_header(const struct sinogram_import *conf, const struct interfile *header, const char *sha256,
			struct dicom_file **ret, double ret_centre[3], struct err *err);
int sinogram_import_source(struct sinogram_source *s, size_t *ret_n_objects, struct err *err);
void sinogram_source_clear(struct sinogram_source *s);

/* sinogram_assume.c: add what is missing to the attributes of `set`: s->conf is then a->conf. The caller frees a->set, also after
 * an error. EBADMSG: the start is missing, and would be needed for a SUV. */
struct sinogram_assumption {
	struct sinogram_import conf;
	char **set;
	char position[24], date[32], time[32];
};
int sinogram_assume(struct sinogram_source *s, struct sinogram_assumption *a, struct err *err);

/* Make the header text of a stream whose values are in memory or made, and hash them. Sets f->data_file. */
int sinogram_stream_describe(struct interfile *f, enum sinogram_role role, struct sinogram_stream *s, struct err *err);
/* Compute the hash of all bytes of the stream and set s->sha256. */
int sinogram_stream_hash(struct sinogram_stream *s, struct err *err);
/* Write all objects into the folder, or none. */
int sinogram_write_objects(struct sinogram_source *s, size_t *ret_n_objects, struct err *err);

/* sinogram_attributes.c: write Timezone Offset From UTC: that of `set`, of `like` or of the data, where one is known. All times
 * of the object have it. */
void sinogram_put_zone(const struct sinogram_source *s, struct item_writer *root);
/* Return what the data say. */
static inline const struct interfile *sinogram_said(const struct sinogram_source *s)
{
	return s->conf->said ? &s->conf->said->header : &s->stream[s->format->first].header;
}
/* Write all modules from patient to acquisition, without the private block. */
int sinogram_fill_attributes(struct sinogram_source *s, enum sinogram_role role, struct item_writer *root);
/* Make an object with them that is not written, to read them back; the caller closes it. */
int sinogram_try_attributes(struct sinogram_source *s, struct dicom_file **ret_file, struct err *err);

/* sinogram_tracer.c: return the item of (0054,0016), which item_end() closes; a new one if there is none. */
struct item_writer sinogram_tracer_item(struct item_writer *root);
/* Remove what a tracer says about a nuclide of another half-life, s: code, positron fraction, name and code of the drug;
 * injected: dose and injection, too. What `set` has stays. */
void sinogram_drop_nuclide(const struct sinogram_source *s, double half_life, bool injected, struct item_writer *f);
void sinogram_put_nuclide(struct item_writer *f, const struct nuclide *nuclide, double half_life); /* s; code and half-life */
/* Does `set` have this keyword, or its gggg,eeee? */
long sinogram_set_index(const struct sinogram_source *s, const char *keyword);	     /* of the last one; -1: no */
const char *sinogram_set_text(const struct sinogram_source *s, const char *keyword); /* its last value, borrowed; NULL: no */
bool sinogram_is_set(const struct sinogram_source *s, const char *keyword);
/* EBADMSG: `like`, which is there, has another half-life or dose than the header, and `set` has none. */
int sinogram_check_tracer(const struct sinogram_source *s, const struct interfile_tracer *t, struct err *err);
/* Write what the header says about the tracer. */
void sinogram_fill_tracer(const struct interfile_tracer *t, struct item_writer *root);

/* sinogram_like.c: copy from `like`, which is there, the times, the duration and the tracer that the header h lacks, if it is of
 * the same kind of measurement: of PET for PET. */
void sinogram_copy_measurement(const struct sinogram_source *s, const struct interfile *h, struct item_writer *root);
/* EBADMSG: `like` is of PET, and its start, duration, half-life or dose show that it is not of the same acquisition as the
 * header, and `set` does not decide; the text has both values. */
int sinogram_check_like(const struct sinogram_source *s, const struct interfile *h, struct err *err);
/* Is the start of the acquisition that of `like`, an image? */
bool sinogram_start_is_likes(const struct sinogram_source *s);

/* sinogram_agree.c: compare position and tracer of all headers of s, and complete those of bed 1 by the other beds. EBADMSG: two
 * contradict each other, and `set` does not decide; the text has both headers, both values and the key. */
int sinogram_agree(struct sinogram_source *s, struct err *err);

/* EBADMSG: `like` has another position of the patient than the header, and `set` has none. */
int sinogram_check_position(const struct sinogram_source *s, const struct interfile *h, struct err *err);

/* Write a sentence for each missing value that a reconstruction needs. */
/* Write conf->factors from the data files of the roles of factors. */
int sinogram_say_factors(const struct sinogram_source *s, struct err *err);
void sinogram_warnings(const struct dicom_item *root, const struct sinogram_source *s, char *ret, size_t size);
/* Write a sentence about the names in "applied corrections" that do not become Corrected Image; "": none. */
void sinogram_note_corrections(const struct interfile *h, char *ret, size_t size);

#endif
