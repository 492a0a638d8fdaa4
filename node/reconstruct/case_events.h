/* SPDX-License-Identifier: Apache-2.0 */
/* Reconstruct a PET acquisition by its single events (node/sinogram/sinogram_list.h), frame after frame, with the sessions of
 * recon/pet/pet_list.h. */
#ifndef TOMONODE_NODE_CASE_EVENTS_H
#define TOMONODE_NODE_CASE_EVENTS_H

#include "node/reconstruct/case_event_terms.h"
#include "recon/core/monitor.h"

struct case_events {
	const struct sinogram *s; /* borrowed, as the next two */
	const struct pet_protocol *protocol;
	struct device *dev;
	struct pet_list_plan plan; /* of the frame with the most events; then of the last one */
	struct pet_list_session *session;
	struct case_event_terms terms; /* computed corrections of the chosen frame; empty: none */
	bool own_sensitivity;	       /* its factors differ between frames; set by the caller, after case_events_plan() */
	struct pet_list_sensitivity_image sensitivity; /* that of the first frame, for the others */
	struct pet_list_report report;		       /* sums over the frames */
};

/* Plan the frame with the most events. ret_plan: what the writer of the result needs. Errors as pet_list_plan(). */
int case_events_plan(struct case_events *e, struct sinogram *s, const struct pet_protocol *p, struct device *dev,
		     struct pet_plan *ret_plan, struct err *err);

/* Reconstruct the chosen frame; its volume can then be read. EDOM: it has no events. */
int case_events_run(struct case_events *e, const struct monitor *monitor, struct err *err);
void case_events_close_session(struct case_events *e);
void case_events_clear(struct case_events *e);

#endif
