/* SPDX-License-Identifier: Apache-2.0 */
/* pet_list_pairs.c - the detectors of regular rings; a reader of all pairs of detectors, or of a sample of them. */
#include "recon/pet/pet_list.h"

#include <math.h>

#include "recon/pet/michelogram_pairs.h"

/* Return a random number that depends only on its arguments. */
static uint32_t hash_index(uint32_t seed, size_t i)
{
	uint64_t x = ((uint64_t)seed << 32) + i + 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)(x >> 32);
}

static void begin_row(struct pet_list_pairs *p)
{
	p->second = p->first + 1 + (p->stride > 1 ? hash_index(p->seed, p->first) % p->stride : 0);
}

static int rewind_pairs(void *ctx, struct err *err)
{
	struct pet_list_pairs *p = ctx;

	(void)err;
	p->first = 0;
	begin_row(p);
	return 0;
}

static int read_pairs(void *ctx, struct event *ret, size_t most, size_t *ret_n, struct err *err)
{
	struct pet_list_pairs *p = ctx;
	size_t n = 0;

	(void)err;
	while (n < most && p->first + 1 < p->n) {
		float m = p->second < p->n && p->factor ? p->factor(p->ctx, p->first, p->second) : 1;

		if (p->second >= p->n) {
			p->first++;
			begin_row(p);
			continue;
		}
		if (m != 0)
			ret[n++] = (struct event){{(int32_t)p->first, (int32_t)p->second}, 0, m};
		p->second += p->stride;
	}
	*ret_n = n;
	return 0;
}

struct pet_list_reader pet_list_pairs_reader(struct pet_list_pairs *pairs)
{
	return (struct pet_list_reader){pairs, rewind_pairs, read_pairs};
}

int pet_list_detectors(const struct michelogram *m, float *ret, struct err *err)
{
	const struct pet_scanner *s = &m->scanner;
	struct michelogram_index index;
	double radius = s->radius + s->interaction_depth, first;
	int r = michelogram_index_init(m, &index, err);

	if (r < 0)
		return r;
	first = m->angle_offset - 90;
	for (int i = 0; i < s->rings * s->detectors; i++) {
		double turn = (first + i % s->detectors * 360.0 / s->detectors) * M_PI / 180;

		ret[3 * (size_t)i] = (float)(radius * cos(turn));
		ret[3 * (size_t)i + 1] = (float)(radius * sin(turn));
		ret[3 * (size_t)i + 2] = (float)((i / s->detectors - 0.5 * (s->rings - 1)) * s->ring_spacing);
	}
	return 0;
}
