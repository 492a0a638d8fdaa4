/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the CUDA device: transaxial paths with time of flight (cuda_tof.cu). */
#ifndef TOMONODE_KERNELS_CUDA_TOF_CUH
#define TOMONODE_KERNELS_CUDA_TOF_CUH

#include "kernels/cuda/cuda_paths.cuh"

size_t cuda_tof_bytes(const struct projection_spec *spec); /* device memory in addition to the paths */
/* ENOTSUP: too many TOF bins contribute to one point. On error *ret is NULL or must be freed. */
int cuda_tof_create(struct projection *a, const struct projection_spec *spec, struct cuda_tof **ret, struct err *err);
void cuda_tof_free(struct cuda_tof *t); /* accepts NULL */
int cuda_tof_forward(struct projection *a, const float *x, bool add, float *y, struct err *err);
/* Adds to x. fixed: used in place of x, or NULL. */
int cuda_tof_back(struct projection *a, const float *y, const struct cuda_fixed *fixed, float *x, struct err *err);

#endif
