/* What configuration, jobs and reports know of a kind of case: node/config/kind_NAME.c has a table for each kind of
 * node/config/kinds.h. Nobody else names a kind. */
#ifndef TOMONODE_NODE_KIND_H
#define TOMONODE_NODE_KIND_H

#include "kernels/err.h"
#include "node/config/config_table.h"
#include "node/config/kinds.h"

/* What the key of a case may be made of. */
enum case_attribute { CASE_STUDY = 1, CASE_SERIES, CASE_LATERALITY, CASE_VIEW, CASE_FRAME_OF_REFERENCE };
#define CASE_ATTRIBUTES 5

struct kind {
	const char *name;    /* in configuration, journal and --json: shorter than KIND_NAME_SIZE */
	const char *content; /* of its cases, for the reference of the configuration: "sinograms of a PET scanner" */
	const char *title;   /* of its cases, for people, within a sentence: "tomosynthesis", "PET" */
	const char *views;   /* what its views are called, a member of --json: "projections", "angles" */
	/* Instances that agree in all of these are one case; ends with 0. */
	enum case_attribute key[CASE_ATTRIBUTES + 1];
	/* A case in which instances are missing is reconstructed as it is, if a person says so, from as_is_frames frames on; 0:
	 * never. What is said where it cannot be. */
	long as_is_frames;
	const char *as_is_refusal;
	const struct config_section *protocols; /* the keys of its protocols; "algorithm" has its algorithms */
};

/* The refusal of every kind whose cases are sinogram objects. */
#define KIND_SINOGRAMS_AS_IS                                                                                                     \
	"sinograms lack whole planes or corrections where an object is missing: it cannot be reconstructed without; send what "  \
	"is missing"

#define X(constant, name) extern const struct kind kind_##name;
KINDS(X)
#undef X

const struct kind *kind_of(enum case_kind kind);
const struct kind *kind_named(const char *name);		      /* NULL: there is none, as in a newer version's journal */
const struct kind *kind_with(const struct config_section *protocols); /* whose protocols these are; NULL: none's */
enum case_kind kind_id(const struct kind *kind);

/* An attribute out of a key that was made of kind->key, "|" between them; "": the kind's keys have none of it. kind may be
 * NULL. */
void kind_key_attribute(const struct kind *kind, const char *key, enum case_attribute which, char *ret, size_t size);

/* EINVAL names the slot that is empty or cannot be. */
int kind_check(const struct kind *kind, struct err *err);

#endif
