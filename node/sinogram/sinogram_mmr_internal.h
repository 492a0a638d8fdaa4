/* SPDX-License-Identifier: Apache-2.0 */
/* Raw data of a Siemens mMR (sinogram_mmr.c): one object with the list mode and one with the normalisation, of one study, or the
 * files of Siemens' own extraction, NAME.l.hdr and NAME.n.hdr, text headers, each beside its data. Private to its files. */
#ifndef TOMONODE_NODE_SINOGRAM_MMR_INTERNAL_H
#define TOMONODE_NODE_SINOGRAM_MMR_INTERNAL_H

#include "node/format/mmr.h"
#include "node/sinogram/pet_source.h"
#include "node/sinogram/sinogram_internal.h"

enum sinogram_mmr_type { SINOGRAM_MMR_NONE, SINOGRAM_MMR_LIST, SINOGRAM_MMR_NORM };

/* Events of one kind that are counted. */
struct counting {
	struct mmr_list list; /* of what was read: its report */
	uint64_t at;	      /* bytes of the list that were read */
	int next;	      /* frame that continues at `at` */
};

struct sinogram_mmr {
	size_t file[SINOGRAM_MMR_NORM + 1];  /* [type]: index into the files; of extracted files 0 */
	char *header[SINOGRAM_MMR_NORM + 1]; /* path of the text header; NULL: it is in the object */
	char *data[SINOGRAM_MMR_NORM + 1];   /* path of the data; NULL: they are in the object */
	int fd[SINOGRAM_MMR_NORM + 1];	     /* of this file */
	char *source[SINOGRAM_MMR_NORM + 1]; /* this file, for the provenance; NULL: the object */
	struct mmr_header list, norm;
	struct counting prompts, delayeds;
	struct mmr_singles *singles; /* [time frame]: their rates, without frames of all of the list; NULL: not read */
};

static inline struct sinogram_mmr *mmr_of(const struct sinogram *s)
{
	return s->own;
}

/* sinogram_mmr_open.c: members of the row. */
bool sinogram_mmr_is_object(const struct dicom_item *root);
int sinogram_mmr_describe(const struct dicom_file *file, struct pet_object *ret, struct err *err);
int sinogram_mmr_open(struct sinogram *s, const char *path, const struct pet_opening *o, struct err *err);

/* sinogram_mmr_data.c: where text headers and data are. */
/* Read the text header of a type. The caller frees *ret_text, also after an error. */
int sinogram_mmr_text(const struct sinogram *s, enum sinogram_mmr_type type, char **ret_text, size_t *ret_size, struct err *err);
/* Find the data, which have `needed` bytes; named: as the header names them. Opens them, if they are a file. EBADMSG: another size,
 * or not there; ENOTUNIQ. */
int sinogram_mmr_find(const struct sinogram *s, enum sinogram_mmr_type type, const char *named, uint64_t needed, struct err *err);
/* Read n bytes of the data from `offset` on. From any thread. */
int sinogram_mmr_read(const struct sinogram *s, enum sinogram_mmr_type type, uint64_t offset, uint8_t *ret, size_t n,
		      struct err *err);
/* The name of an object or of a header, for messages. */
const char *sinogram_mmr_name(const struct sinogram *s, enum sinogram_mmr_type type);

/* sinogram_mmr_files.c: the extracted files. */
bool sinogram_mmr_is_list_header(const char *path);
/* Find the header of the normalisation: `given`, or, if this is NULL, that with the name of the list's header, NAME.n.hdr of
 * NAME.l.hdr, else the only one beside it. The caller frees *ret. ENOENT: there is none; ENOTUNIQ: there are several; EBADMSG. */
int sinogram_mmr_find_norm(const char *list, const char *given, char **ret, struct err *err);
/* Find the data of a header: the file that it names, in its folder or below it, or that of its own name without ".hdr" beside it.
 * header: ends in ".hdr"; named: as written in it; if this is not there, only what follows the last / or \ counts. The caller frees *ret. EBADMSG: there is none of both;
 * ENOTUNIQ: both are there and are two files; ENOMEM. */
int sinogram_mmr_find_data(const char *header, const char *named, char **ret, struct err *err);
int sinogram_mmr_parts(const char *list, char *ret[PET_SOURCE_PARTS]); /* member of the row */

/* Compute the efficiencies of all bins in the order in memory. The caller frees *ret_values, also after an error. */
int sinogram_mmr_efficiencies(const struct sinogram *s, float **ret_values, struct err *err);
int sinogram_mmr_open_events(struct sinogram *s, struct err *err); /* sinogram_mmr_list.c */

#endif
