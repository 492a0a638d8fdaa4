/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_prior.c - penalties on differences between neighbours. A line is a row of voxels along the fastest axis; it is computed in
 * pieces. This file is compiled without contraction to fused multiply-add, so that every instruction set computes the same bits.
 * The padding of columns is neither read nor written. */
#include "kernels/cpu/cpu.h"

#define PIECE 512	    /* voxels */
#define WORTH_THREADS 32768 /* smallest number of floats for which several threads are faster than one */

/* A neighbour that the voxels [first, end) of a piece have. */
struct neighbour {
	ptrdiff_t step; /* its distance in memory, floats */
	int first, end;
	float weight;
};

struct piece {
	const float *x; /* the first voxel */
	int n_neighbours;
	struct neighbour neighbour[PRIOR_NEIGHBOURS - 1];
};

#define PRIOR(name) baseline_##name
#define PRIOR_TARGET
#include "kernels/cpu/cpu_prior_body.h"

#ifdef __x86_64__
#define PRIOR(name) avx2_##name
#define PRIOR_TARGET __attribute__((target("avx2")))
#include "kernels/cpu/cpu_prior_body.h"

#define PRIOR(name) avx512_##name
#ifdef __clang__ /* clang does not support prefer-vector-width here and would ignore the whole attribute */
#define PRIOR_TARGET __attribute__((target("avx512f,avx2")))
#else
#define PRIOR_TARGET __attribute__((target("avx512f,avx2,prefer-vector-width=512")))
#endif
#include "kernels/cpu/cpu_prior_body.h"
#endif

typedef void sums_fn(const struct prior *prior, const struct piece *piece, bool ratio, int n, float *num, float *den);

/* Return the function for the instruction set of the device. */
static sums_fn *choose_sums(const struct device *dev)
{
#ifdef __x86_64__
	if (cpu_state(dev)->rows == cpu_rows_at(2))
		return avx512_sums;
	if (cpu_state(dev)->rows == cpu_rows_at(1))
		return avx2_sums;
#endif
	(void)dev;
	return baseline_sums;
}

/* One call, with the axes in their order in memory. */
struct job {
	const struct prior *prior;
	sums_fn *sums;
	bool ratio;
	int axis[3]; /* the axis of the grid that is fastest, second, slowest */
	int n[3];
	size_t step[3];
	int halo[3][2]; /* voxels of x before the first and after the last along each */
	float weight[PRIOR_NEIGHBOURS];
};

static struct job job_of(const struct prior *prior, const struct device *dev, const struct grid *g, const int halo[2], bool ratio)
{
	const int order[2][3] = {{0, 1, 2}, {2, 0, 1}};
	struct job job = {.prior = prior, .sums = choose_sums(dev), .ratio = ratio};

	for (int i = 0; i < 3; i++) {
		job.axis[i] = order[g->z_fastest][i];
		job.n[i] = g->n[job.axis[i]];
		job.step[i] = grid_step(g, job.axis[i]);
		for (int end = 0; halo && job.axis[i] == 2 && end < 2; end++)
			job.halo[i][end] = halo[end];
	}
	prior_weights(prior, g, job.weight);
	return job;
}

static bool has_voxel(const struct job *job, int axis, int at)
{
	return at >= -job->halo[axis][0] && at < job->n[axis] + job->halo[axis][1];
}

/* List the neighbours of the piece of n voxels from voxel i of line (j, k). */
static void find_neighbours(const struct job *job, int i, int n, int j, int k, struct piece *piece)
{
	const int of_axis[3] = {1, 3, 9};

	for (int m = 0; m < PRIOR_NEIGHBOURS; m++) {
		int d[3] = {m % 3 - 1, m / 3 % 3 - 1, m / 9 - 1}, index = PRIOR_NEIGHBOURS / 2;

		for (int c = 0; c < 3; c++)
			index += d[c] * of_axis[job->axis[c]];
		if (job->weight[index] == 0 || !has_voxel(job, 1, j + d[1]) || !has_voxel(job, 2, k + d[2]))
			continue;
		piece->neighbour[piece->n_neighbours++] = (struct neighbour){
			.step = d[2] * (ptrdiff_t)job->step[2] + d[1] * (ptrdiff_t)job->step[1] + d[0],
			.first = i == 0 && d[0] < 0 ? 1 : 0,
			.end = i + n == job->n[0] && d[0] > 0 ? n - 1 : n,
			.weight = job->weight[index],
		};
	}
}

static void line_sums(const struct job *job, const float *x, int j, int k, float *num, float *den)
{
	size_t at = (size_t)k * job->step[2] + (size_t)j * job->step[1];

	for (int i = 0; i < job->n[0]; i += PIECE) {
		int n = cpu_min(PIECE, job->n[0] - i);
		struct piece piece = {.x = x + at + i};

		find_neighbours(job, i, n, j, k, &piece);
		job->sums(job->prior, &piece, job->ratio, n, num + at + i, den ? den + at + i : NULL);
	}
}

int cpu_prior_sums(const struct prior *prior, const struct buf *x, const struct grid *grid, const int halo[2], bool ratio,
		   struct buf *num, struct buf *den, struct err *err)
{
	int r = device_check_prior(prior, x, grid, halo, num, den, err);
	int threads = x->n < WORTH_THREADS ? 1 : cpu_state(x->dev)->threads;
	struct job job;
	const float *from;

	(void)threads;
	if (r < 0)
		return r;
	job = job_of(prior, x->dev, grid, halo, ratio);
	from = x->mem + (halo ? (size_t)halo[0] * grid_step(grid, 2) : 0);
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static) if (threads > 1)
	for (int k = 0; k < job.n[2]; k++)
		for (int j = 0; j < job.n[1]; j++)
			line_sums(&job, from, j, k, num->mem, den ? den->mem : NULL);
	return 0;
}
