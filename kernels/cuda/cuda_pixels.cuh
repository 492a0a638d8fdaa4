/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the CUDA device: how the backprojections of a stack divide an image. A block of PIXELS_THREADS threads has a tile of
 * pixels, and up to 8 x wide slices of each: neighbouring threads have neighbouring slices of a pixel, so they read adjacent
 * bins; the pixels of a tile meet the same rays, so most bins are read from the level-1 cache. */
#ifndef TOMONODE_KERNELS_CUDA_PIXELS_CUH
#define TOMONODE_KERNELS_CUDA_PIXELS_CUH

#include "kernels/cuda/cuda.cuh"

#define PIXELS_THREADS 256
#define PIXELS_VIEWS 64 /* views whose constants a block has in shared memory at a time */

struct pixel_tiles {
	int wide;	/* slices of a thread: 1 or 4 */
	int lanes_log2; /* threads of a pixel */
	int width_log2; /* pixels of a tile along x */
};

static inline struct pixel_tiles pixel_tiles_of(int slices)
{
	struct pixel_tiles t;
	int lanes;

	t.wide = slices % 4 ? 1 : 4;
	lanes = (slices + t.wide - 1) / t.wide;
	t.lanes_log2 = lanes > 4 ? 3 : lanes > 2 ? 2 : lanes > 1;
	t.width_log2 = t.lanes_log2 == 0 ? 5 : t.lanes_log2 == 1 ? 4 : 3;
	return t;
}

static inline __host__ __device__ int pixel_tiles_height(struct pixel_tiles t)
{
	return (PIXELS_THREADS >> t.lanes_log2) >> t.width_log2;
}

static inline dim3 pixel_tiles_blocks(struct pixel_tiles t, const struct grid *g, int slices)
{
	const int width = 1 << t.width_log2, height = pixel_tiles_height(t), deep = t.wide << t.lanes_log2;

	return dim3((unsigned)((g->n[0] + width - 1) / width), (unsigned)((g->n[1] + height - 1) / height),
		    (unsigned)((slices + deep - 1) / deep));
}

/* The pixel of a thread and its first slice. */
struct tile_pixel {
	int x0, y0; /* first pixel of the tile */
	int dx, dy; /* relative to it */
	int z;
};

static inline __device__ struct tile_pixel tile_pixel_of(struct pixel_tiles t)
{
	const int lane = (int)threadIdx.x & ((1 << t.lanes_log2) - 1), pixel = (int)threadIdx.x >> t.lanes_log2;
	struct tile_pixel p;

	p.x0 = (int)blockIdx.x << t.width_log2;
	p.y0 = (int)blockIdx.y * pixel_tiles_height(t);
	p.dx = pixel & ((1 << t.width_log2) - 1);
	p.dy = pixel >> t.width_log2;
	p.z = (((int)blockIdx.z << t.lanes_log2) + lane) * t.wide;
	return p;
}

/* floor() of a float in +-2^21, in two steps that need no conversion: the first returns the integer + PIXELS_MAGIC as a float. */
#define PIXELS_MAGIC 12582912.f /* 1.5 x 2^23: its last bit is 1 */

static inline __device__ float pixels_floor(float x)
{
	return __fadd_rd(x, PIXELS_MAGIC);
}

static inline __device__ int pixels_whole(float floored)
{
	return __float_as_int(floored) - 0x4b400000;
}

/* Write a thread's WIDE slices from z on, and 0 into the padding after the last. */
template <int WIDE>
static __device__ __forceinline__ void put_slices(float *column, int z, int slices, int padded, const float value[WIDE], bool add)
{
#pragma unroll
	for (int c = 0; c < WIDE; c++)
		column[z + c] = add ? column[z + c] + value[c] : value[c];
	for (int c = z + WIDE; !add && z + WIDE >= slices && c < padded; c++)
		column[c] = 0;
}

#endif
