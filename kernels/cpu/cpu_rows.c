/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_rows.c - the row loops for the instruction sets for which the compiler vectorises well by itself; and the selection of the
 * table. One binary runs on every processor: device_open() selects the table for it. The loops for AVX-512 are in a file of their
 * own, because they use permute instructions in place of gathers. */
#include "kernels/cpu/cpu_events.h"
#include "kernels/cpu/cpu_lines.h"
#include "kernels/cpu/cpu_paths.h"

#include <math.h>

typedef float vector4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int bits4 __attribute__((vector_size(16)));

#define ROWS(name) baseline_##name
#define ROWS_NAME "baseline"
#define ROWS_TARGET
#define ROWS_LANES 4
#define ROWS_VECTOR vector4
#define ROWS_BITS bits4
#include "kernels/cpu/cpu_rows_body.h"
#undef ROWS
#undef ROWS_NAME
#undef ROWS_TARGET
#undef ROWS_LANES
#undef ROWS_VECTOR
#undef ROWS_BITS

#ifdef __x86_64__
typedef float vector8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int bits8 __attribute__((vector_size(32)));

#define ROWS(name) avx2_##name
#define ROWS_NAME "avx2"
#define ROWS_TARGET __attribute__((target("avx2,fma")))
#define ROWS_LANES 8
#define ROWS_VECTOR vector8
#define ROWS_BITS bits8
#include "kernels/cpu/cpu_rows_body.h"
#endif

const struct cpu_rows *cpu_rows_at(int index)
{
	const struct cpu_rows *found[3];
	int n = 0;

	found[n++] = &baseline_table;
#ifdef __x86_64__
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		found[n++] = &avx2_table;
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma"))
		found[n++] = &cpu_rows_avx512;
#endif
	return index >= 0 && index < n ? found[index] : NULL;
}

const struct cpu_rows *cpu_rows_best(void)
{
	const struct cpu_rows *best = NULL, *next;

	for (int i = 0; (next = cpu_rows_at(i)); i++)
		best = next;
	return best;
}
