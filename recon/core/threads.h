/* SPDX-License-Identifier: Apache-2.0 */
/* Limit the number of threads that the functions of recon/ start for a calling thread. */
#ifndef TOMONODE_RECON_THREADS_H
#define TOMONODE_RECON_THREADS_H

/* Set the limit for later calls from this thread: at most n threads, including the calling thread (n < 1: one). A program whose
 * own threads each process a view sets the limit, because otherwise every one of them would start as many threads as there are
 * processors. The limit does not apply to devices, which have their own. */
void threads_limit(int n);
int threads_now(void); /* the limit of the calling thread */

#endif
