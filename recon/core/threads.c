/* threads.c - the number of threads of the calling thread's parallel regions: a variable that OpenMP keeps for each thread. */
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
