/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_box.cu - describe arrays to the copy engine. The function that does it belongs to the driver's library, which the program
 * is not linked with, so its address is looked up. */
#include "kernels/cuda/cuda_box.cuh"

#include <cudaTypedefs.h>
#include <stdint.h>

#define BOX_PITCH 16 /* bytes: the array and its rows are aligned to it */

static __global__ void probe_kernel(void)
{
}

/* Return whether the code that runs on a device with this compute capability was compiled with boxes: __CUDA_ARCH__ >= 900. */
static bool code_has_boxes(int major)
{
	static const int compiled[] = {__CUDA_ARCH_LIST__};
	struct cudaFuncAttributes about;

	if (major > 9) /* the driver compiles the newest code that fits */
		return cudaFuncGetAttributes(&about, probe_kernel) == cudaSuccess && about.ptxVersion >= 90;
	for (int arch : compiled)
		if (arch >= 900 && arch < 1000)
			return major == 9;
	return false;
}

void *cuda_box_encoder(int major)
{
	enum cudaDriverEntryPointQueryResult result;
	void *function = NULL;

	if (!code_has_boxes(major))
		return NULL;
	if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result) !=
		    cudaSuccess ||
	    result != cudaDriverEntryPointSuccess)
		return NULL;
	return function;
}

bool cuda_box_map(const struct device *dev, const float *array, const int n[3], const int box[2], CUtensorMap *ret)
{
	const size_t row = (size_t)n[0] * sizeof(float);
	const cuuint64_t size[3] = {(cuuint64_t)n[0], (cuuint64_t)n[1], (cuuint64_t)n[2]}, pitch[2] = {row, row * (size_t)n[1]};
	const cuuint32_t part[3] = {(cuuint32_t)box[0], (cuuint32_t)box[1], 1}, step[3] = {1, 1, 1};
	PFN_cuTensorMapEncodeTiled_v12000 encode = (PFN_cuTensorMapEncodeTiled_v12000)cuda_state(dev)->box_encoder;

	if (!encode || box[0] < 4 || box[0] > CUDA_BOX_MOST || box[1] < 1 || box[1] > CUDA_BOX_MOST || box[0] % 4 ||
	    row % BOX_PITCH || (uintptr_t)array % BOX_PITCH)
		return false;
	return encode(ret, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, (void *)array, size, pitch, part, step,
		      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
		      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}
