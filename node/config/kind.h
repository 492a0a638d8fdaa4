/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of a kind of case for configuration, jobs and reports. node/config/kind_NAME.c defines those of each kind in
 * node/config/kinds.h. Other files do not contain the name of a kind. */
#ifndef TOMONODE_NODE_KIND_H
#define TOMONODE_NODE_KIND_H

#include "kernels/err.h"
#include "node/config/config_table.h"
#include "node/config/kinds.h"

/* DICOM attributes that the key of a case may contain. */
enum case_attribute { CASE_STUDY = 1, CASE_SERIES, CASE_LATERALITY, CASE_VIEW, CASE_FRAME_OF_REFERENCE };
#define CASE_ATTRIBUTES 5

struct config;
struct protocol_conf;

/* What its volumes are like, for phantoms (`tomonode check --steps`). */
struct kind_image {
	const char *unit;
	double voxel[3];      /* mm */
	float object, around; /* typical values of an object, and beside it */
};

struct kind {
	const char *name;    /* name in configuration, journal and --json: shorter than KIND_NAME_SIZE */
	const char *content; /* what its cases contain, for the configuration reference: "sinograms of a PET scanner" */
	const char *title;   /* name of its cases within a sentence: "tomosynthesis", "PET" */
	const char *views;   /* name of its views, a member of --json: "projections", "angles" */
	const char *const *view_patterns; /* patterns of its views in routes, such as "L*"; ends with NULL */
	/* Instances with equal values of all these attributes belong to one case; ends with 0. */
	enum case_attribute key[CASE_ATTRIBUTES + 1];
	/* Smallest number of frames with which an incomplete case may be reconstructed if a person requests it ("as is"); 0:
	 * never. */
	long as_is_frames;
	struct kind_image image;
	const char *as_is_refusal; /* message if an incomplete case may not be reconstructed */
	/* Return true if a protocol of this kind computes the attenuation correction from a CT series; NULL: none does. */
	bool (*needs_ct)(const struct protocol_conf *protocol);
	const struct config_section
		*protocols; /* configuration keys of its protocols; the choices of the key "algorithm" are its algorithms */
};

/* as_is_refusal of every kind whose cases are sinogram objects. */
#define KIND_SINOGRAMS_AS_IS                                                                                                     \
	"without all its objects the acquisition lacks planes or corrections and cannot be reconstructed; send the missing "     \
	"objects"

/* view_patterns of every kind whose views are a Patient Position (0018,5100): its defined terms. kind.c */
extern const char *const kind_positions[];

#define X(constant, name) extern const struct kind kind_##name;
KINDS(X)
#undef X

const struct kind *kind_of(enum case_kind kind);
const struct kind *kind_named(const char *name); /* NULL: unknown, such as a kind in the journal of a newer version */
const struct kind *kind_with(const struct config_section *protocols); /* the kind whose `protocols` this is; NULL: none */
enum case_kind kind_id(const struct kind *kind);

/* Extract one attribute from the key of a case, which consists of the attributes in kind->key, separated by "|". *ret is "" if
 * keys of this kind do not contain it, or kind is NULL. */
void kind_key_attribute(const struct kind *kind, const char *key, enum case_attribute which, char *ret, size_t size);

/* Return true if two keys of this kind differ in the frame of reference, and in nothing else. */
bool kind_keys_differ_in_frame(const struct kind *kind, const char *a, const char *b);
/* Write what such keys mean for the images of one series, with a colon for the reason that follows: "25 files of one series have
 * 25 frames of reference ...: ". */
void kind_frames_text(long files, long frames, char *ret_text, size_t size);

/* Return true if a protocol needs a CT series beside the images of the case; if any protocol of the configuration does. */
bool kind_needs_ct(const struct protocol_conf *protocol);
bool kind_any_needs_ct(const struct config *c);

/* Check that a table is complete. EINVAL: a member is empty or invalid; the text names it. */
int kind_check(const struct kind *kind, struct err *err);

#endif
