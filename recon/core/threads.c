/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - the number of threads for parallel regions of the calling thread, stored in OpenMP's per-thread setting. */
#include "recon/core/threads.h"

#ifdef _OPENMP
#include <omp.h>
#endif

void threads_limit(int n)
{
#ifdef _OPENMP
	omp_set_num_threads(n < 1 ? 1 : n);
#else
	(void)n;
#endif
}
