/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that are compiled a second time for AVX2, and the choice between both when they are called.
 *
 * FOR_AVX2(type, name, parameters, arguments) defines the static function `name`, which is name_loop(), a static inline function
 * with __attribute__((always_inline)):
 *
 *     FOR_AVX2(void, add, (int n, const float *x, float *sum), (n, x, sum))
 */
#ifndef TOMONODE_KERNELS_AVX2_H
#define TOMONODE_KERNELS_AVX2_H

#ifdef __x86_64__
#define FOR_AVX2(type, name, parameters, arguments)                                                                              \
	__attribute__((target("avx2"))) static type name##_avx2 parameters                                                       \
	{                                                                                                                        \
		return name##_loop arguments;                                                                                    \
	}                                                                                                                        \
	static type name parameters                                                                                              \
	{                                                                                                                        \
		return __builtin_cpu_supports("avx2") ? name##_avx2 arguments : name##_loop arguments;                           \
	}
#else
#define FOR_AVX2(type, name, parameters, arguments)                                                                              \
	static type name parameters                                                                                              \
	{                                                                                                                        \
		return name##_loop arguments;                                                                                    \
	}
#endif

#endif
