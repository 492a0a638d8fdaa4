/* SPDX-License-Identifier: Apache-2.0 */
/* Stateless Poisson random numbers: a draw is a pure function of (seed, index, mean), so it does not depend on threads.
 *
 * Exact for every mean up to POISSON_MEAN_MAX: inversion below 10 (Devroye 1986), transformed rejection from 10 (PTRS, Hormann
 * 1993). "Exact": up to the 53 bits of the uniform numbers. The uniforms are SplitMix64 outputs (Steele et al. 2014) of a hashed
 * counter. */
#ifndef TOMONODE_RECON_POISSON_H
#define TOMONODE_RECON_POISSON_H

#include <stdint.h>

#define POISSON_MEAN_MAX 1e9

/* SplitMix64's finalizer: a bijection of 64 bits in which every input bit reaches every output bit. */
static inline uint64_t poisson_hash(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* Return the start of the stream of one index. */
static inline uint64_t poisson_stream(uint64_t seed, uint64_t index)
{
	return poisson_hash(poisson_hash(seed + 0x9e3779b97f4a7c15u) ^ (index + 0x6a09e667f3bcc909u));
}

/* Return the next number of the stream, in (0, 1). */
static inline double poisson_uniform(uint64_t *stream)
{
	*stream += 0x9e3779b97f4a7c15u;
	return ((double)(poisson_hash(*stream) >> 11) + 0.5) * 0x1p-53;
}

/* Return a count with this mean. A mean that is not above 0 (or NaN) gives 0; one above POISSON_MEAN_MAX counts as
 * POISSON_MEAN_MAX. */
double poisson_draw(double mean, uint64_t stream);

#endif
