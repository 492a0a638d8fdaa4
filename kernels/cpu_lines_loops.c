/* cpu_lines_loops.c - the inner loops of stacks of parallel beams, for each instruction set. */
#include "kernels/cpu_lines.h"

/* May lie anywhere in memory of floats. */
typedef float vector4 __attribute__((vector_size(16), aligned(4), may_alias));

#define LINES(name) baseline_lines_##name
#define LINES_TARGET
#define baseline_lines_table baseline_lines
#define LINES_VECTOR vector4
#define LINES_FLOATS 4
#include "kernels/cpu_lines_body.h"

#ifdef __x86_64__
typedef float vector8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float vector16 __attribute__((vector_size(64), aligned(4), may_alias));

#define LINES(name) avx2_lines_##name
#define LINES_TARGET __attribute__((target("avx2,fma")))
#define avx2_lines_table avx2_lines
#define LINES_VECTOR vector8
#define LINES_FLOATS 8
#include "kernels/cpu_lines_body.h"

#define LINES(name) avx512_lines_##name
#define LINES_TARGET __attribute__((target("avx512f,avx2,fma,prefer-vector-width=512")))
#define avx512_lines_table avx512_lines
#define LINES_VECTOR vector16
#define LINES_FLOATS 16
#include "kernels/cpu_lines_body.h"
#endif
