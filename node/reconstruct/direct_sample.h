/* SPDX-License-Identifier: Apache-2.0 */
/* Evenly spaced planes of the direct segment, in which the values of a PET acquisition are compared with each other. */
#ifndef TOMONODE_NODE_DIRECT_SAMPLE_H
#define TOMONODE_NODE_DIRECT_SAMPLE_H

#include "recon/pet/michelogram.h"

struct direct_sample {
	size_t first, n_direct; /* first plane and number of those of the direct segment */
	size_t n;		/* number of those used */
};

/* Choose at most `most` planes of m, which has a segment. */
static inline struct direct_sample direct_sample_of(const struct michelogram *m, size_t most)
{
	struct direct_sample s = {0};

	s.n_direct = (size_t)michelogram_direct(m, &s.first)->n_planes;
	s.n = s.n_direct < most ? s.n_direct : most;
	return s;
}

/* Return which of the used planes a plane is; n: none. */
static inline size_t direct_sample_find(const struct direct_sample *s, size_t plane)
{
	size_t k;

	if (plane < s->first || plane >= s->first + s->n_direct)
		return s->n;
	plane -= s->first;
	k = (plane * s->n + s->n_direct - 1) / s->n_direct; /* the first whose place is not before it */
	return k < s->n && k * s->n_direct / s->n == plane ? k : s->n;
}

#endif
