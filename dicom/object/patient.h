/* SPDX-License-Identifier: Apache-2.0 */
/* Decide whether headers name one patient, without storing or printing the values of their attributes.
 *
 * - Four attributes are compared: Patient ID, its issuer, birth date, name. Each is converted to UTF-8 by the Specific Character
 *   Set, its padding is removed, runs of spaces become one, case is folded. A name is the components of its alphabetic group,
 *   else of the ideographic one, else of the phonetic one, without empty components at the end.
 * - Of the value only a keyed digest is kept (HMAC-SHA256, its first 64 bits), so that it can be stored where no patient data may
 *   be.
 * - An empty value contradicts nothing. Two headers must have a Patient ID or a name in common, directly or through other
 *   headers of the set, if any of them has one: otherwise nothing shows that they are of one patient.
 * - The result does not depend on the order of the headers.
 */
#ifndef TOMONODE_DICOM_PATIENT_H
#define TOMONODE_DICOM_PATIENT_H

#include "dicom/core/dataset.h"

enum patient_attribute {
	PATIENT_ID,
	PATIENT_ISSUER,
	PATIENT_BIRTH_DATE,
	PATIENT_NAME,
	PATIENT_ATTRIBUTES, /* their number */
};

#define PATIENT_KEY_SIZE 32   /* bytes of the key of the digests */
#define PATIENT_TEXT_SIZE 512 /* bytes for names of attributes, in messages */

struct patient_identity {
	uint64_t digest[PATIENT_ATTRIBUTES]; /* 0: the attribute is empty */
};

/* Bring a text in UTF-8 into the form that is compared; "": empty. At most size - 1 bytes. */
void patient_normalise(enum patient_attribute attribute, const char *text, char *ret_text, size_t size);
/* Read the attributes of a header. key NULL: digests for comparisons within this process. A value that cannot be converted is
 * compared byte for byte, together with its character set; one that cannot be read counts as empty. */
void patient_read(const struct dicom_item *root, const uint8_t key[PATIENT_KEY_SIZE], struct patient_identity *ret_identity);

/* Identities of a set of headers. Start with {0}. */
struct patient_set {
	unsigned differ; /* bit 1 << attribute: two headers have different values */
	unsigned seen;	 /* bit k: a header of kind k is in the set; k: 1 has a Patient ID, 2 has a name, 3 both */
	uint64_t first[PATIENT_ATTRIBUTES];				    /* first value that is not empty; 0: none */
	int64_t first_of[PATIENT_ATTRIBUTES], other_of[PATIENT_ATTRIBUTES]; /* the header that has it, and one that differs */
	int64_t seen_of[4];						    /* a header of each kind */
};
/* header: the number by which the caller knows it. */
void patient_set_add(struct patient_set *set, const struct patient_identity *identity, int64_t header);

struct patient_conflict {
	unsigned attributes; /* that differ: bits 1 << attribute; 0: the headers have neither Patient ID nor name in common */
	int64_t header[2];   /* two of them; not set by patient_sets_conflict() */
};
/* Return true if the headers do not name one patient. */
bool patient_set_conflict(const struct patient_set *set, struct patient_conflict *ret_conflict);
/* The same for the headers of two sets together. */
bool patient_sets_conflict(const struct patient_set *a, const struct patient_set *b, struct patient_conflict *ret_conflict);
/* Describe it: a clause without a full stop. between: "between A and B", "in ...". It contains names of attributes, no values. */
void patient_conflict_text(const struct patient_conflict *conflict, const char *between, char *ret_text, size_t size);

/* What a person said about files of one case that name different patients. */
struct patient_statement {
	bool same;	    /* they are of one patient */
	const char *header; /* name of the file whose header counts; NULL: the last one */
};
/* Check that all files name one patient. *ret_patient: the file whose header counts; NULL: no statement was made. ENOTUNIQ: they
 * do not; the text has the names of the attributes and of two files. EBADMSG: no file has the name in the statement. */
int patient_check(struct dicom_file *const *files, char *const *paths, size_t n, const struct patient_statement *statement,
		  struct dicom_file **ret_patient, struct err *err);

#endif
