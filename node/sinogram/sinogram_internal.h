/* What the files that make up node/sinogram/sinogram.h share; nobody else but their tests includes it. */
#ifndef TOMONODE_NODE_SINOGRAM_INTERNAL_H
#define TOMONODE_NODE_SINOGRAM_INTERNAL_H

#include <stdlib.h>

#include "dicom/object/item_writer.h"
#include "node/sinogram/sinogram.h"

#define SINOGRAM_FILES_MAX 10000 /* objects of an acquisition */

uint32_t sinogram_tag(unsigned block, enum sinogram_element element);
int sinogram_header_text(struct dicom_file *file, const struct sinogram_facts *f, char **ret_text,
			 struct err *err); /* malloc'ed */
/* 1, 0: the object does not say; EBADMSG. */
int sinogram_centre(struct dicom_file *file, const struct sinogram_facts *f, double ret_centre[3], struct err *err);

/* ---- writing: sinogram_import.c makes this, sinogram_write.c objects of it ---- */

struct sinogram_stream { /* one role */
	bool present;
	char *text; /* the header; owned */
	struct interfile header;
	const uint8_t *values; /* in memory, borrowed; NULL: a file */
	char *path;	       /* the data file; owned */
	uint64_t bytes;	       /* of the stream: the offset of the header and its values */
	char sha256[65];
};

struct sinogram_source {
	const struct sinogram_import *conf;
	struct sinogram_stream stream[SINOGRAM_ROLES + 1];
	struct dicom_file *like; /* NULL: none */
	double centre[3];	 /* NaN: not given */
	char seed[65];		 /* hash of all that the objects follow from */
};

/* Sets sha256 from all bytes of the stream. */
int sinogram_stream_hash(struct sinogram_stream *s, struct err *err);
/* All objects into the folder, or none. */
int sinogram_write_objects(struct sinogram_source *s, size_t *ret_n_objects, struct err *err);

/* sinogram_attributes.c: patient to acquisition, everything but the private block. */
int sinogram_fill_attributes(struct sinogram_source *s, enum sinogram_role role, struct item_writer *root);
/* What a reconstruction will miss, as sentences. */
void sinogram_warnings(const struct dicom_item *root, const struct sinogram_source *s, char *ret, size_t size);

#endif
