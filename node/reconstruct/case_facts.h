/* SPDX-License-Identifier: Apache-2.0 */
/* Determine the kind of case and the case of one instance from its header, or the reason why it belongs to no case. Pixels are
 * not read. */
#ifndef TOMONODE_NODE_CASE_FACTS_H
#define TOMONODE_NODE_CASE_FACTS_H

#include <stdbool.h>

#include "dicom/object/ct_series.h"
#include "dicom/object/exposure.h"
#include "dicom/object/patient.h"
#include "node/config/config.h"
#include "node/config/kind.h"
#include "node/config/route.h"

struct case_facts {
	const struct kind *kind; /* NULL: the object cannot be reconstructed, see reason */
	char reason[256];
	bool refused; /* a known encoding that is not supported (Hologic SCO, CTO, vendors' raw data): refused, not ignored */
	char sop_class[DICOM_UID_SIZE], sop_instance[DICOM_UID_SIZE];
	char accession[65];		  /* Accession Number, to find the case on the status page; "": none */
	char patient[65];		  /* Patient ID, for the audit trail only; "": none */
	struct patient_identity identity; /* digests without a key, for comparisons */
	char study[DICOM_UID_SIZE], series[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
	char laterality[4], view[8];
	long number;	  /* Instance Number, by which persons know an image; 0: not in the header */
	long expected;	  /* number of instances of the complete case; 0: not in the header */
	bool whole_study; /* the case is all such instances of the study: series and frame of reference are not in its key */
	char lacks[40];	  /* what the case lacks as long as it has only this instance; "": not known */
	/* For the CT series that an attenuation correction is made from (node/jobs/companion.h): */
	enum ct_object
		ct; /* not CT_NO_SLICE: an object of such a series; kind is NULL, and the reason that of an object without use */
	enum ct_part ct_part;
	char ct_values[CT_VALUES_SIZE]; /* of CT_OTHER */
	bool attenuation;		/* an object that has what the attenuation is corrected with, or that is corrected */
	double acquired; /* start of the acquisition, s of the scanner's clock (pet_facts_moment()); 0: not in the header */
	long frames;
	double angle;				      /* NaN: not in the header */
	char manufacturer[65], model[65], serial[65]; /* see struct exam_facts */
	struct exposure_facts exposure;		      /* the same */
	struct route_facts route;		      /* calling: "" */
};
/* Read the header of a file. */
int case_read_facts(const char *path, struct case_facts *ret_facts, struct err *err);

/* Return the number of instances that a complete case of this system has according to the configuration; 0: unknown. */
long case_usual_number(const struct case_facts *f, const struct config *config);

/* Return the kind of a file that is not DICOM but a case of its own (PETSIRD); NULL: none. reconstruct_pet.c */
const struct kind *case_kind_of_file(const char *path);

/* Write the key of the case: the attributes of the kind's key, separated by "|". */
void case_key(const struct case_facts *f, char *ret_key, size_t size);

#endif
