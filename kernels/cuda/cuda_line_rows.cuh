/* SPDX-License-Identifier: Apache-2.0 */
/* Private to cuda_line_rows*.cu: stacks of parallel beams on the CUDA device without a table (kernels/line_rows.h). */
#ifndef TOMONODE_KERNELS_CUDA_LINE_ROWS_CUH
#define TOMONODE_KERNELS_CUDA_LINE_ROWS_CUH

#include "kernels/cuda/cuda_paths.cuh"
#include "kernels/line_rows.h"

#define ROWS_UNIT 4294967296.0 /* 2^32: positions are 64-bit integers in units of 2^-32 pixels: the upper half is the pixel */

struct rows_job {
	struct scan scan;
	struct grid grid;
	const struct scan_view *views;
	const struct row_view *rays; /* one per view */
	const float *x;		     /* forward, stacks: the image */
	const float *image, *turned; /* forward, one slice: padded copies; rows of n[0] + 2 and of n[1] + 2 */
	const float *y;		     /* back: the bins */
	float *ret;
	int n_views, column;
	int first_ray, n_rays; /* the radial bins with a ray */
	bool add, inside;      /* inside: the image is in the field of view */
};

/* The rows of a ray with whole entries: those in which pixels first and first + 1 are in the padded row. */
static __device__ void rows_of_ray(const struct rows_job &job, const struct row_view &w, const struct row_range &range,
				   long long low, long long slope, int *ret_from, int *ret_to)
{
	const bool joseph = w.model == PROJECTION_JOSEPH;
	const long long unit = 1ll << 32, least = joseph ? -(unit >> 1) : -unit, most = w.width * unit - (joseph ? unit >> 1 : 0);
	int from = job.inside && !joseph ? 0 : (int)ceil(range.begin), to = job.inside && !joseph ? w.n : (int)floor(range.end);

	if (!(range.begin < range.end)) {
		from = to = 0;
	} else if (slope == 0) {
		to = low >= least && low < most ? to : from;
	} else {
		const double a = (double)(least - low) / (double)slope, b = (double)(most - low) / (double)slope;

		from = max(from, (int)fmax(fmin(fmin(a, b) - 1, 1e9), -1e9));
		to = min(to, (int)fmax(fmin(fmax(a, b) + 2, 1e9), -1e9));
		while (from < to && !(low + from * slope >= least && low + from * slope < most))
			from++;
		while (to > from && !(low + (to - 1) * slope >= least && low + (to - 1) * slope < most))
			to--;
	}
	*ret_from = from;
	*ret_to = to > from ? to : from;
}

struct rows_job cuda_rows_job(const struct projection *a, const struct cuda_rows *rows);

/* For a sweep: the distance of the rays of a pass, radial bins (lines_stride()); and the counter of cuda_blocks_wait(). */
int cuda_rows_stride(const struct cuda_rows *rows, unsigned **ret_arrived);

/* cuda_line_rows_stack.cu */
int cuda_rows_forward_stack(struct projection *a, struct rows_job job, struct err *err);

#endif
