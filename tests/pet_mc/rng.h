/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: xoshiro256+ (Blackman and Vigna 2018), a stream for each pair of numbers, so that a sum over streams does not
 * depend on the threads that compute them. */
#ifndef TOMONODE_TESTS_PET_MC_RNG_H
#define TOMONODE_TESTS_PET_MC_RNG_H

#include <math.h>
#include <stdint.h>

struct rng {
	uint64_t s[4];
};

static inline struct rng rng_stream(uint64_t seed, uint64_t stream)
{
	struct rng g;
	uint64_t x = seed * 0xd1342543de82ef95u + stream * 0xaf251af3b0f025b5u + 1;

	for (int i = 0; i < 4; i++) { /* SplitMix64 */
		uint64_t z = x += 0x9e3779b97f4a7c15u;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		g.s[i] = z ^ (z >> 31);
	}
	return g;
}

/* Return a number in (0, 1). */
static inline double rng_uniform(struct rng *g)
{
	uint64_t *s = g->s, r = s[0] + s[3], t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = (s[3] << 45) | (s[3] >> 19);
	return ((double)(r >> 11) + 0.5) * 0x1p-53;
}

/* Sample a point of the unit disc; return its squared distance from the middle, which is uniform in (0, 1). */
static inline double rng_disc(struct rng *g, double *ret_u, double *ret_v)
{
	double s;

	do {
		*ret_u = 2 * rng_uniform(g) - 1;
		*ret_v = 2 * rng_uniform(g) - 1;
		s = *ret_u * *ret_u + *ret_v * *ret_v;
	} while (s >= 1 || s == 0);
	return s;
}

/* Return a number of the normal distribution (Marsaglia and Bray 1964). */
static inline double rng_normal(struct rng *g)
{
	double u, v, s = rng_disc(g, &u, &v);

	return u * sqrt(-2 * log(s) / s);
}

#endif
