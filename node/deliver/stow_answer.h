/* SPDX-License-Identifier: Apache-2.0 */
/* Classify the answer of a DICOMweb server to a STOW-RS request with one instance (PS3.18 section 10.5). Pure. */
#ifndef TOMONODE_NODE_STOW_ANSWER_H
#define TOMONODE_NODE_STOW_ANSWER_H

#include "node/deliver/deliver.h"

struct stow_answer {
	int http;		  /* status of HTTP */
	const char *content_type; /* "": none */
	const char *body;	  /* JSON (PS3.18 annex F); `size` bytes followed by a NUL */
	size_t size;
};

/* Classify the answer for the instance with this UID. Its outcome is DELIVER_STORED only if the HTTP status is 200 or 202 and the
 * answer names the instance in Referenced SOP Sequence (0008,1199), and nowhere as failed; or if it names the instance as failed
 * because it has it already (Failure Reason 0111). Every other answer is a failure, of the instance or of the server. */
void stow_classify(const struct stow_answer *answer, const char *sop_instance, struct store_result *ret);

#endif
