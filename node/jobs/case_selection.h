/* SPDX-License-Identifier: Apache-2.0 */
/* Open a case of other images in place of one: newer objects under the UIDs of its images, or one sweep of several. The earlier
 * one is cancelled. Both are kept: nothing that was acknowledged is removed.
 *
 * - A newer object is stored as a conflict; the case uses the first one until a person says "use the newer ones", or, where the
 *   pixels of the first one cannot be read, by itself when the case is held.
 * - The new case has all images of the earlier one then, with the newest object under each UID. A case that was reconstructed
 *   keeps its images.
 * - Images of two sweeps (a retake in the same series) are never reconstructed together: the case is held until a person chooses
 *   one. Which arrived first decides nothing.
 */
#ifndef TOMONODE_NODE_CASE_SELECTION_H
#define TOMONODE_NODE_CASE_SELECTION_H

#include "dicom/object/exposure.h"
#include "node/jobs/jobs.h"

/* Why the images of a job cannot be replaced: a clause; NULL: they can. */
const char *case_newer_obstacle(const struct jobs *jobs, const struct job_view *v);
/* Return the number of images of a job of which a newer object is stored. repairs: count those alone whose pixels can be read,
 * while those of the earlier one cannot. Negative: the journal failed. */
long case_newer_count(struct journal *j, const struct job_view *v, bool repairs, struct err *err);
/* Open the new case. by: the person; NULL: by itself, only those that repair. where: "on the command line". ESTALE: see
 * case_newer_obstacle(), or the job has changed; ENOENT: there is no newer object. */
int case_newer_open(struct journal *j, const struct jobs *jobs, const struct job_view *v, const char *where, const char *by,
		    double now, int64_t *ret_job, struct err *err);
/* Tell apart the sweeps that the images of a job are of, as the headers name them. proved: only by what proves more than one;
 * else also by weaker signs, of too many images, among which a person can choose. Returns their number; 0: nothing tells them
 * apart, or the job cannot be divided now. Negative: the journal failed. */
int case_sweeps_find(struct journal *j, const struct job_view *v, bool proved, struct exposures *ret_sweeps, struct err *err);
/* The same of those that a person is offered: weaker signs count, and the case waits or has ended with a reason. j NULL, or the journal
 * failed: 0. */
int case_sweeps_offered(struct journal *j, const struct job_view *v, struct exposures *ret_sweeps);
/* Write "sweep 1 of 2026-11-21 10:18:00: 25 images with Acquisition Number (0020,0012) 1", without a time that is not known. number:
 * from 1. */
void case_sweep_text(const struct exposures *sweeps, int number, char *ret_text, size_t size);
/* Return the case of the sweep that was chosen last for a job, for one that it is a revision of, or beside it if it is such a case itself;
 * NULL: none was chosen since. It is the one whose result counts. */
const struct job_view *case_sweep_chosen(const struct jobs *jobs, const struct job_view *v);
/* Open a case of one sweep. EINVAL: there is none of this number; ESTALE: the job has changed. */
int case_sweep_open(struct journal *j, const struct jobs *jobs, const struct job_view *v, long number, const char *where,
		    const char *by, double now, int64_t *ret_job, struct err *err);

/* Do the objects of one of two jobs count instead of those of the other? A person said so and it was opened in place of that; or
 * that was cancelled, never had a result, and each of its images was sent again for this one. */
bool case_newer_corrects(const struct jobs *jobs, const struct job_view *a, const struct job_view *b);
/* Return the job, not cancelled, whose objects count instead of those of a cancelled one, which is then not retried; NULL: none. */
const struct job_view *case_replaced_by(const struct jobs *jobs, const struct job_view *v);

#endif
