#pragma once
#include <cuda_runtime.h>
typedef uint64_t cuuint64_t; typedef uint32_t cuuint32_t;
struct CUtensorMap { const float *base; uint64_t size[3], pitch[2]; uint32_t box[3]; };
enum CUresult { CUDA_SUCCESS = 0 };
enum { CU_TENSOR_MAP_DATA_TYPE_FLOAT32, CU_TENSOR_MAP_INTERLEAVE_NONE = 0, CU_TENSOR_MAP_SWIZZLE_NONE = 0, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE = 0, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0 };
namespace emu {
struct barrier { unsigned phase : 1, expected : 15, pending : 15; int tx; };
void barrier_init(void *b, unsigned n); void barrier_arrive(void *b); void barrier_expect(void *b, unsigned bytes); void barrier_wait(void *b, unsigned parity); 
void box_copy(const CUtensorMap *m, int x, int y, int z, float *to, void *b);
void box_store(const CUtensorMap *m, int x, int y, int z, const float *from);
}
