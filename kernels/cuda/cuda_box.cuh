/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the CUDA device: boxes of an array in device memory are copied into shared memory by the copy engine, without
 * registers and without work of the threads (compute capability 9.0 and later). Elements outside the array are 0 in the box.
 * - The array has three axes, x fastest. A box is [rows][columns] of one z, densely packed; it begins at any y, also below 0, and
 *   at any x that is a multiple of 4: with another x the copy is an illegal instruction (seen on an H200).
 * - A copy signals a barrier in shared memory: the thread that starts copies announces their bytes (cuda_box_expect()), before or
 *   after; this is one of the arrivals that the barrier counts. The phase before must have ended when a copy starts. Readers wait
 *   for the phase of the barrier: its parity is 0 for the first use, 1 for the second, and so on.
 * - A box in shared memory begins at a multiple of CUDA_BOX_ALIGN bytes. Readers must have finished before it is written again.
 */
#ifndef TOMONODE_KERNELS_CUDA_BOX_CUH
#define TOMONODE_KERNELS_CUDA_BOX_CUH

#include <cuda.h>

#include "kernels/cuda/cuda.cuh"

#define CUDA_BOX_ALIGN 128
#define CUDA_BOX_MOST 256						     /* columns, rows */
#define CUDA_BOX_FLOATS(columns, rows) (((columns) * (rows) + 31) / 32 * 32) /* room for a box */

/* Return false if the device cannot copy such boxes: its compute capability, or rows whose length is no multiple of
 * 16 bytes. n: size of the array; box: columns (a multiple of 4) and rows, each at most CUDA_BOX_MOST. */
bool cuda_box_map(const struct device *dev, const float *array, const int n[3], const int box[2], CUtensorMap *ret);

typedef unsigned long long cuda_barrier;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
static __device__ __forceinline__ unsigned cuda_box_address(const void *shared)
{
	return (unsigned)__cvta_generic_to_shared(shared);
}

/* Let a barrier count `arrivals` in each phase. A __syncthreads() must follow before it is used. */
static __device__ __forceinline__ void cuda_barrier_init(cuda_barrier *b, unsigned arrivals)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(cuda_box_address(b)), "r"(arrivals) : "memory");
	asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrive. Threads that wait for the end of the phase see all that this thread has written before, and may overwrite what it has
 * read. Each thread arrives for itself: racecheck of CUDA 13.0 does not follow one lane that arrives for its whole warp. */
static __device__ __forceinline__ void cuda_barrier_arrive(cuda_barrier *b)
{
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(cuda_box_address(b)) : "memory");
}

/* Wait for the end of a phase with this parity. */
static __device__ __forceinline__ void cuda_barrier_wait(cuda_barrier *b, unsigned parity)
{
	unsigned done;

	do {
		asm volatile("{\n\t.reg .pred p;\n\t"
			     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
			     "selp.u32 %0, 1, 0, p;\n\t}"
			     : "=r"(done)
			     : "r"(cuda_box_address(b)), "r"(parity)
			     : "memory");
	} while (!done);
}

/* Arrive at the barrier, whose phase ends when so many bytes have also been copied. */
static __device__ __forceinline__ void cuda_box_expect(cuda_barrier *b, unsigned bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(cuda_box_address(b)), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void cuda_box_copy(const CUtensorMap *map, int x, int y, int z, float *to, cuda_barrier *b)
{
	asm volatile(
		"cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
			"r"(cuda_box_address(to)),
		"l"(map), "r"(x), "r"(y), "r"(z), "r"(cuda_box_address(b))
		: "memory");
}

/* Let copies from shared memory read what this thread has written there; then synchronise with the thread that starts them. */
static __device__ __forceinline__ void cuda_box_written(void)
{
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Start to copy a box from shared memory; what is outside the array is not copied. */
static __device__ __forceinline__ void cuda_box_store(const CUtensorMap *map, int x, int y, int z, const float *from)
{
	asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(map), "r"(x), "r"(y),
		     "r"(z), "r"(cuda_box_address(from))
		     : "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Wait until shared memory has been read by all copies that this thread has started. */
static __device__ __forceinline__ void cuda_box_stores_read(void)
{
	asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
#endif

#endif
