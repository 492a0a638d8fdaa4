#pragma once
#include <cuda_runtime.h>
static inline void __pipeline_memcpy_async(void *to, const void *from, size_t n) { memcpy(to, from, n); }
static inline void __pipeline_commit() {}
static inline void __pipeline_wait_prior(int) {}
