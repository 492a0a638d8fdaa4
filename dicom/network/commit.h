/* SPDX-License-Identifier: Apache-2.0 */
/* Storage Commitment Push Model, the requesting side (SCU, PS3.4 annex J): an N-ACTION names the stored objects and a transaction
 * UID; later an N-EVENT-REPORT names the objects for which the peer takes responsibility. The report is received on the same
 * association or on one that the peer opens (node/receive/intake.c); both call a struct commit_handler. */
#ifndef TOMONODE_DICOM_COMMIT_H
#define TOMONODE_DICOM_COMMIT_H

#include "dicom/core/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

#define COMMIT_CLASS "1.2.840.10008.1.20.1"	 /* Storage Commitment Push Model SOP Class */
#define COMMIT_INSTANCE "1.2.840.10008.1.20.1.1" /* its one well-known instance */

#define COMMIT_ITEMS_MAX 16384	    /* most objects per transaction */
#define COMMIT_BYTES_MAX (4u << 20) /* largest data set of a report, bytes: 256 for each object */
#define COMMIT_NO_REASON 0x0110	    /* Failure Reason if the report has none: processing failure (PS3.3 C.14.1.1) */

/* DIMSE status values of an N-EVENT-REPORT response (PS3.7 annex C). */
enum commit_status {
	COMMIT_ACCEPTED = 0x0000,
	COMMIT_FAILED = 0x0110,	   /* processing failure: the peer may report again */
	COMMIT_NO_EVENT = 0x0113,  /* no such event type */
	COMMIT_INVALID = 0x0115,   /* invalid argument: malformed report, or unknown transaction */
	COMMIT_NO_CLASS = 0x0118,  /* no such SOP class */
	COMMIT_TOO_LARGE = 0x0213, /* resource limitation */
};

/* An object for which commitment is requested. */
struct commit_object {
	char sop_class[DICOM_UID_SIZE];
	char sop_instance[DICOM_UID_SIZE];
};

/* What a report states about one object. */
struct commit_item {
	char sop_instance[DICOM_UID_SIZE];
	uint16_t failure;		/* 0: committed; else its Failure Reason (0008,1197) */
	char sop_class[DICOM_UID_SIZE]; /* "": not stated, or not a UID */
};

struct commit_report {
	char transaction[DICOM_UID_SIZE]; /* Transaction UID of the request */
	struct commit_item *items;
	size_t n; /* number of items */
};

struct commit_handler {
	void *ctx;
	/* Process a report that was parsed without error. Return the status for the response (enum commit_status):
	 * COMMIT_ACCEPTED only after the report is stored durably. */
	uint16_t (*report)(void *ctx, const struct commit_report *report);
	/* Called for a report that is refused with this status because it cannot be processed. NULL: not needed. */
	void (*refused)(void *ctx, uint16_t status, const char *why);
};

struct scu;

/* Request commitment of n objects: send the N-ACTION over an association that was opened with a context for COMMIT_CLASS, and
 * wait for the response. Return 0 and its status in *ret_status. ENOTSUP: the peer accepted no context for the class; after other
 * errors the association is unusable. A report that is received before the response is passed to the handler. */
int scu_commit(struct scu *scu, const char *transaction, const struct commit_object *objects, size_t n,
	       const struct commit_handler *handler, uint16_t *ret_status, struct err *err);
/* Wait at most `seconds` for a report on this association. Return 1: a report was passed to the handler; 0: none was received;
 * negative: the association has ended. */
int scu_commit_wait(struct scu *scu, int seconds, const struct commit_handler *handler, struct err *err);

/* Parse the data set of a report, in Explicit or Implicit VR Little Endian. EBADMSG: it is malformed; the message has the reason.
 * The caller must call commit_report_clear() also after an error. */
int commit_report_parse(const void *bytes, size_t n, bool explicit_vr, struct commit_report *ret_report, struct err *err);
void commit_report_clear(struct commit_report *report); /* free the items */

#define COMMIT_OTHER_CLASS 0x0119 /* Failure Reason: the object has another SOP class */
/* Return the meaning of a Failure Reason (PS3.3 C.14.1.1), for messages after "PEER: ". */
const char *commit_failure_text(uint16_t failure);

#ifdef __cplusplus
}
#endif
#endif
