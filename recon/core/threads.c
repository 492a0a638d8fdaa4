/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - set and get the number of threads that OpenMP starts for the calling thread. */
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

int threads_now(void)
{
#ifdef _OPENMP
	return omp_get_max_threads();
#else
	return 1;
#endif
}
