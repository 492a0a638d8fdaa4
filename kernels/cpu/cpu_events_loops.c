/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_events_loops.c - the inner loops of list mode, for each instruction set; the compiler vectorises them. */
#include "kernels/cpu/cpu_events.h"

#define EVENTS(name) baseline_events_##name
#define EVENTS_TARGET
#define baseline_events_table baseline_events
#include "kernels/cpu/cpu_events_body.h"

#ifdef __x86_64__
#define EVENTS(name) avx2_events_##name
#define EVENTS_TARGET __attribute__((target("avx2,fma")))
#define avx2_events_table avx2_events
#include "kernels/cpu/cpu_events_body.h"

#define EVENTS(name) avx512_events_##name
#ifdef __clang__ /* clang does not support prefer-vector-width here and would ignore the whole attribute */
#define EVENTS_TARGET __attribute__((target("avx512f,avx2,fma")))
#else
#define EVENTS_TARGET __attribute__((target("avx512f,avx2,fma,prefer-vector-width=512")))
#endif
#define avx512_events_table avx512_events
#include "kernels/cpu/cpu_events_body.h"
#endif
