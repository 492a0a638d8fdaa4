/* What a process that handles data from outside may still do: each role gives up, at its start, all that it will not need.
 *
 * Layers, each of which stands alone where another one is missing:
 *   privileges   no capabilities, no new privileges (PR_SET_NO_NEW_PRIVS), no core file, limits of descriptors and memory
 *   files        Landlock: the role's part of the spool, the journal, the system's libraries; nothing else can be opened
 *   calls        seccomp: a list of allowed system calls. What is not on it answers EPERM; what only an intruder would try
 *                (another program, tracing, mounting, kernel modules) ends the process
 *
 * - One call for a process, while it has one thread, before it touches a byte from outside: all threads inherit the layers,
 *   none can be taken back. A worker on the GPU calls it when its device is open and tested: helper threads that the driver
 *   has by then have the limits of calls, but not of files.
 * - node.sandbox: `auto` takes the layers that this machine has; `on` refuses to work without all of them; `off` does nothing.
 *   A build with an address or thread sanitizer counts as `off` under `auto`: its run time traces itself and reserves
 *   terabytes.
 * - A worker whose device is the GPU has a looser list of calls: the driver's library is closed and may ask for what it likes,
 *   but for networks and other programs. Its files are fenced in under `on` alone: drivers differ in what they open late.
 */
#ifndef TOMONODE_NODE_SANDBOX_H
#define TOMONODE_NODE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"
#include "node/config/config.h"

enum sandbox_role {
	SANDBOX_LISTENER, /* accepts and forks, reads nothing: privileges and calls, which its associations inherit, no files */
	SANDBOX_ASSOCIATION, /* in a process forked by a listener: files, and fewer calls */
	SANDBOX_INDEX,	     /* reads instances */
	SANDBOX_WORKER,	     /* reads instances, writes results; detail: its device */
	SANDBOX_DELIVER,     /* reads results, connects to destinations; also who asks them for commitments */
	SANDBOX_NAMES,	     /* reads patients' names in instances for the status page */
	SANDBOX_HTTP,	     /* accepts and talks to browsers: no file of ours at all */
};
#define SANDBOX_ROLES 7

/* What this machine can do. */
struct sandbox_support {
	bool calls;	/* seccomp filters */
	int files;	/* Landlock's ABI; 0: none, below 2: cannot be used (no renames between folders) */
	bool sanitizer; /* this build cannot be sandboxed */
};

const char *sandbox_role_name(enum sandbox_role role); /* "listener", ... */
void sandbox_probe(struct sandbox_support *ret_support);
/* Would sandbox_enter() do all that `config` asks for? Negative: with node.sandbox = on it would refuse, and why. 0: yes. 1: with
 * auto, and ret_missing says what is left out. */
int sandbox_check(const struct config *config, char *ret_missing, size_t size, struct err *err);

/* detail: of SANDBOX_WORKER the device's name ("cuda:0"); else NULL. What was decided here is not undone on failure: end the
 * process.
 */
int sandbox_enter(enum sandbox_role role, const struct config *config, const char *detail, struct err *err);

#endif
