/* SPDX-License-Identifier: Apache-2.0 */
/* The beds of a PET case (recon/pet/beds.h): one volume of one bed at a time, added to the joint volume as soon as it is
 * reconstructed. */
#ifndef TOMONODE_NODE_CASE_BEDS_H
#define TOMONODE_NODE_CASE_BEDS_H

#include <jansson.h>

#include "node/sinogram/sinogram.h"
#include "recon/pet/beds.h"
#include "recon/pet/pet.h"

struct case_beds {
	struct pet_join join; /* n = 0: no beds */
	float *volume;	      /* of one bed; owned */
};

/* Plan the join of volumes on the grid of a bed; does nothing without beds. May be called again. EBADMSG: as pet_join_plan(). */
int case_beds_plan(struct case_beds *c, const struct sinogram *s, const struct michelogram *m, const struct grid *bed,
		   struct err *err);
/* Return the bytes of the joint volume and of that of a bed; 0: no beds. */
size_t case_beds_bytes(const struct case_beds *c);
/* Allocate the joint volume, of zeros, which the caller frees, and that of a bed. */
int case_beds_allocate(struct case_beds *c, float **ret_joint, struct err *err);
/* Append sentences to a text of `size` bytes: which beds are interpolated, how few counts the slices between beds have. */
void case_beds_note(const struct case_beds *c, const struct sinogram *s, char *text, size_t size);
/* Describe the beds; null: none. counts: of each. */
json_t *case_beds_details(const struct case_beds *c, const struct sinogram *s, const double *counts);
void case_beds_clear(struct case_beds *c);

#endif
