/* SPDX-License-Identifier: Apache-2.0 */
/* Classify the responses and errors of a destination: stored, failed temporarily, or failed permanently. Pure. */
#ifndef TOMONODE_NODE_DELIVER_H
#define TOMONODE_NODE_DELIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum deliver_outcome {
	DELIVER_STORED,	   /* success, or a warning with the object stored */
	DELIVER_TRANSIENT, /* temporary: try again */
	DELIVER_PERMANENT, /* permanent: dead letter */
};

/* Why a temporary failure may last. */
struct destination_failure {
	bool down;     /* the peer takes no object now: other deliveries wait, too */
	bool rejected; /* it lasts until somebody changes the configuration of the peer or of this node */
	double wait;   /* time that the peer asks to wait, s; 0: it does not say */
};

/* What came of an object. */
struct store_result {
	enum deliver_outcome outcome;
	char status[8];			    /* DICOM status of the object, hexadecimal; "": the answer has none */
	char reason[520];		    /* a sentence */
	struct destination_failure failure; /* of DELIVER_TRANSIENT */
	int code;			    /* errno value of an error without an answer; 0: the peer has answered */
};

/* Classify the status of a C-STORE response (PS3.4 table B.2-1, PS3.7 annex C). *ret_meaning: a short text for messages. */
enum deliver_outcome deliver_classify(uint16_t status, const char **ret_meaning);
/* Write the meaning of a status and the Error Comment that the peer added ("": none). */
void deliver_reason(const char *meaning, const char *comment, char *ret, size_t size);
/* Classify an error (errno value) of scu_open() or scu_store(). DELIVER_PERMANENT: the peer accepted no presentation context. */
enum deliver_outcome deliver_classify_error(int code);

/* Return true for an error of scu_open() that lasts until somebody changes the configuration of the peer or of this node: the AE
 * title is rejected, a certificate is refused, only one side uses TLS. The node continues to try, and logs an alarm after
 * alarm_rejections attempts. */
bool deliver_needs_operator(int code);

#endif
