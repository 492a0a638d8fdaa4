/* SPDX-License-Identifier: Apache-2.0 */
/* The computed corrections of a case (node/reconstruct/case_corrections.h) for its single events: a list in which each event has
 * the background of its bin, and each LOR its factor.
 *
 *   m   factors of the list (efficiencies), times those of the terms (attenuation, dead time)
 *   b   counts that the terms expect in the bin and TOF bin of the event: randoms, scatter
 *
 * m is the sensitivity's, and an event has b / m (recon/pet/pet_list.h). A bin may be of several LORs (span): its m and b are
 * sums over them, and their ratio is that of each LOR as far as their backgrounds differ like their factors. Nothing is
 * interpolated between bins; the line of an event, but for even radial bins, is up to half a detector beside that of its bin. */
#ifndef TOMONODE_NODE_CASE_EVENT_TERMS_H
#define TOMONODE_NODE_CASE_EVENT_TERMS_H

#include "node/base/thread_pool.h"
#include "node/reconstruct/case_planes.h"
#include "node/sinogram/sinogram_list.h"

struct case_event_terms {
	const struct sinogram *s;	/* borrowed, as the next one */
	const struct case_terms *terms; /* NULL: there are none, and the list is that of the acquisition */
	struct pet_list list;		/* of the chosen frame; set by case_event_terms_list() */
	float *factors;			/* m[plane][angle][radial]; owned, as the next one */
	struct thread_pool *pool;
	struct event *piece; /* while it is read, n of them */
	size_t n;
};

/* Return the memory of the factors, bytes. */
size_t case_event_terms_bytes(const struct sinogram *s);
/* Make the list of the chosen frame with these terms, which were made for it. background: expected counts of all bins, for the
 * start. ENOMEM. */
int case_event_terms_make(struct case_event_terms *t, const struct sinogram *s, const struct case_terms *terms, double background,
			  struct err *err);
/* Return the list of the chosen frame, borrowed: with terms, or that of the acquisition. */
const struct pet_list *case_event_terms_list(const struct case_event_terms *t, const struct sinogram *s);
/* Add the events of the chosen frame to the profiles of the terms, if there are any. Not while a session reads them. */
int case_event_terms_profiles(const struct case_event_terms *t, struct err *err);
void case_event_terms_clear(struct case_event_terms *t);

#endif
