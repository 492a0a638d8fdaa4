/* SPDX-License-Identifier: Apache-2.0 */
/* Limit the number of threads that the functions of recon/ start for a calling thread. */
#ifndef TOMONODE_RECON_THREADS_H
#define TOMONODE_RECON_THREADS_H

/* Set the limit for later calls from this thread: at most n threads, the caller included (n < 1: one). Callers that distribute
 * work themselves, one view per thread, set it so that not each of them starts one thread per processor. Devices have their own
 * limit. */
void threads_limit(int n);

#endif
