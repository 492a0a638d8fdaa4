/* How many threads the functions of recon/ start for what one thread asks of them. */
#ifndef TOMONODE_RECON_THREADS_H
#define TOMONODE_RECON_THREADS_H

/* For calls from this thread, from now on: at most n, the caller among them (less than 1: one). Callers that share out their work
 * themselves, a view to a thread, say so here, lest each of them starts a thread a processor. Devices have a number of their own.
 */
void threads_limit(int n);

#endif
