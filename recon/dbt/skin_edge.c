/* SPDX-License-Identifier: Apache-2.0 */
/* skin_edge.c - blur small line integrals. Few bins of a view have small ones that are not air, and only these are computed.
 *
 * Rows are processed in blocks in place. A row keeps its old values for the next one, and the rows next to a block are copied
 * before any block changes them. */
#include "recon/dbt/skin_edge.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 64 /* rows */

struct rows {
	const float *line[3], *valid[3]; /* before, here, after; those beyond the view are those here */
	int n;
};

static float bin_intensity(float line, float valid)
{
	return valid < 0 ? 1 : expf(-line);
}

/* Return the blurred line integral of a bin. */
static float blur_bin(const struct rows *r, int u)
{
	static const float weight[3] = {0.25f, 0.5f, 0.25f};
	float own = expf(-r->line[1][u]), sum = 0;

	for (int k = 0; k < 3; k++)
		for (int d = -1; d <= 1; d++) {
			int i = u + d < 0 || u + d >= r->n ? u : u + d;
			float valid = r->valid[k][i];

			sum += weight[k] * weight[d + 1] *
			       ((k == 1 && i == u) || valid == 0 ? own : bin_intensity(r->line[k][i], valid));
		}
	return fmaxf(0, -logf(sum));
}

static void soften_row(const struct rows *r, float *line)
{
	for (int u = 0; u < r->n; u++) {
		float y = r->line[1][u], part = (SKIN_EDGE_NONE - y) / (SKIN_EDGE_NONE - SKIN_EDGE_FULL);

		if (!(r->valid[1][u] > 0 && y < SKIN_EDGE_NONE))
			continue;
		part = part < 1 ? part : 1;
		line[u] = y + part * (blur_bin(r, u) - y);
	}
}

/* Soften the rows [first, end). before, after: old values of the rows next to them; old: memory for two rows. */
static void soften_block(int n_u, int n_v, int first, int end, const float *before, const float *after, float *old, float *line,
			 const float *valid)
{
	size_t n = (size_t)n_u;
	const float *last = before;

	for (int v = first; v < end; v++) {
		float *here = line + (size_t)v * n, *copy = old + (size_t)(v % 2) * n;
		struct rows r = {.n = n_u};
		int above = v > 0 ? v - 1 : v, below = v < n_v - 1 ? v + 1 : v;

		memcpy(copy, here, n * sizeof(*copy));
		r.line[0] = above == v ? copy : last;
		r.line[1] = copy;
		r.line[2] = below == v ? copy : below == end ? after : here + n;
		r.valid[0] = valid + (size_t)above * n;
		r.valid[1] = valid + (size_t)v * n;
		r.valid[2] = valid + (size_t)below * n;
		soften_row(&r, here);
		last = copy;
	}
}

int skin_edge_soften(int n_u, int n_v, float *line, const float *valid, struct err *err)
{
	int blocks = (n_v + BLOCK - 1) / BLOCK;
	size_t n = (size_t)n_u;
	float *memory = malloc(4 * (size_t)blocks * n * sizeof(*memory)); /* of each block: row before, row after, two old rows */

	if (!memory)
		return err_set(err, ENOMEM, "skin edge: no memory for %d rows of %d bins", 4 * blocks, n_u);
	for (int b = 0; b < blocks; b++) {
		int first = b * BLOCK, end = first + BLOCK < n_v ? first + BLOCK : n_v;
		float *rows = memory + 4 * (size_t)b * n;

		if (first > 0)
			memcpy(rows, line + (size_t)(first - 1) * n, n * sizeof(*rows));
		if (end < n_v)
			memcpy(rows + n, line + (size_t)end * n, n * sizeof(*rows));
	}
#pragma omp parallel for schedule(static)
	for (int b = 0; b < blocks; b++) {
		int first = b * BLOCK, end = first + BLOCK < n_v ? first + BLOCK : n_v;
		float *rows = memory + 4 * (size_t)b * n;

		soften_block(n_u, n_v, first, end, rows, rows + n, rows + 2 * n, line, valid);
	}
	free(memory);
	return 0;
}
