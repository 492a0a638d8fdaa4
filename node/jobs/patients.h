/* SPDX-License-Identifier: Apache-2.0 */
/* Compare the patients of jobs, by the keyed digests that the indexer writes into the details of instances.
 *
 * - Compared are all instances of a job with each other, and those of different jobs that have the Study or the Series Instance
 *   UID in common, whatever their state, unless the objects of one count instead of those of the other (case_newer_corrects(),
 *   case_is_replaced()).
 * - A person's statement that it is one patient is valid for the instances that the job had at that time, and for its comparison
 *   with each other job that has received no instance since.
 * - Instances without digests (indexed by a version without them), or with those of another key, are not compared. The worker
 *   always compares the files of its case.
 */
#ifndef TOMONODE_NODE_PATIENTS_H
#define TOMONODE_NODE_PATIENTS_H

#include <jansson.h>

#include "dicom/object/patient.h"
#include "node/jobs/jobs.h"
#include "node/store/patient_key.h"

#define PATIENTS_IDENTITY_SIZE 80 /* of the text in a detail: digests of the key and of each attribute, hexadecimal */

/* Write the digests of a header with the key of the spool. of: as read without a key. */
void patients_format(const struct patient_identity *of, const uint8_t key[PATIENT_KEY_BYTES],
		     char ret_text[PATIENTS_IDENTITY_SIZE]);
/* Read this text; *ret_key is the digest of the key that it was made with. Return false if it is not such a text. */
bool patients_parse(const char *text, struct patient_identity *ret_identity, uint32_t *ret_key);

/* Do the headers of its own images name different patients, and nobody has said that it is one? */
bool patients_are_mixed(const struct job_view *v);
/* Return true if a job must be held: its headers, or those of it and of another job (*ret_other; else NULL), do not name one
 * patient, and no person stated that they do. With *ret_other NULL the numbers in *ret_conflict are those of instances. */
bool patients_conflict(const struct jobs *jobs, const struct job_view *v, struct patient_conflict *ret_conflict,
		       const struct job_view **ret_other);
/* Describe it with the names of files, or the number of the other case. */
void patients_reason(struct journal *j, const struct job_view *v, const struct patient_conflict *conflict,
		     const struct job_view *other, char *ret_text, size_t size);
#define PATIENTS_NAMED_MAX 8

struct patients_named { /* by the headers of a job, and of the other case that it has a conflict with */
	struct {
		char file[128];	    /* the first header that names the patient */
		double received;    /* s since the epoch */
	} list[PATIENTS_NAMED_MAX]; /* the first one is the header whose patient the result gets if no other one is chosen */
	size_t n;
	bool more; /* there are others, which have no place here */
};
/* Find all different patients of a job that is held because of them. false: it is not, or its images cannot be found. */
bool patients_named(struct journal *j, const struct jobs *jobs, const struct job_view *v, struct patients_named *ret);

/* Return why a person cannot state this now: a clause; NULL: it can be stated. */
const char *patients_no_statement(const struct job_view *v);
/* Make the detail of the `retry` event that states it. header: file name or SOP Instance UID of the instance whose header counts,
 * NULL: the one received last. where: "on the command line"; by: who said it. ENOENT: the job has no such instance. */
int patients_statement(struct journal *j, const struct job_view *v, const char *header, bool as_is, const char *where,
		       const char *by, json_t **ret_detail, struct err *err);

#endif
