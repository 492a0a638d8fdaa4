/* SPDX-License-Identifier: Apache-2.0 */
/* Restrict a process that handles data from outside: at its start it drops every right that its role does not need.
 *
 * Three layers, each of which works without the others:
 *   privileges   no capabilities, no new privileges (PR_SET_NO_NEW_PRIVS), no core file, limits of descriptors and memory
 *   files        Landlock: only the role's part of the spool, the journal and the system's libraries can be opened
 *   calls        seccomp: a list of allowed system calls. Other calls fail with EPERM; calls that only an intruder would make
 *                (exec, tracing, mounting, kernel modules) end the process
 *
 * - Call sandbox_enter() once, while the process has one thread and before it reads a byte from outside: later threads inherit
 * the layers, and no layer can be removed. A worker on the GPU calls it after its device is open and tested: threads that the
 * driver has started by then have the limits on calls, but not those on files.
 * - node.sandbox: `auto` uses the layers that this machine supports; `on` fails unless all are supported; `off` does nothing.
 *   Under `auto`, a build with an address or thread sanitizer is not restricted: its runtime traces itself and reserves terabytes
 *   of addresses.
 * - A worker whose device is a GPU has a list of forbidden calls instead (networks, other programs, and the like), because the
 * driver's closed library may need any other call. Its files are restricted only under `on`, because drivers differ in what they
 * open late.
 */
#ifndef TOMONODE_NODE_SANDBOX_H
#define TOMONODE_NODE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"
#include "node/config/config.h"

enum sandbox_role {
	SANDBOX_LISTENER, /* accepts connections and forks, reads no data: restricts privileges and calls, which its associations
			     inherit */
	SANDBOX_ASSOCIATION, /* in a process forked by a listener: restricts files, and more calls */
	SANDBOX_INDEX,	     /* reads instances */
	SANDBOX_WORKER,	     /* reads instances, writes results; detail: its device */
	SANDBOX_DELIVER,     /* reads results, connects to destinations; also for requests of storage commitment */
	SANDBOX_NAMES,	     /* reads patients' names in instances for the status page */
	SANDBOX_HTTP,	     /* accepts connections of browsers; opens no file of the node */
	SANDBOX_SEAT,	     /* accepts the connection of a pilot, sends it instances, writes results */
	SANDBOX_REPORT,	     /* reads results, for reports on the status page */
	SANDBOX_CASE,	     /* of a pilot: reads instances, writes results, without a journal; detail: its device */
	SANDBOX_FOLDER,	     /* reads results, writes them to the folders of destinations; no network */
	SANDBOX_ALERT,	     /* connects to the web service of `alerts`; opens no file of the spool */
	SANDBOX_EXEC,	     /* executes the program of `alerts`, which connects to where it likes; opens no file of the spool */
	SANDBOX_STEPS,	     /* starts the programs of `steps`, in folders of its caller; detail: the folder that these are in */
	SANDBOX_STEP,	     /* of sandbox_enter_step(): such a program */
};
#define SANDBOX_ROLES 15

/* What this machine supports. */
struct sandbox_support {
	bool calls;	/* seccomp filters */
	int files;	/* version of Landlock's ABI; 0: none; 1: not usable (it forbids renames between folders) */
	bool sanitizer; /* this build cannot be sandboxed */
};

const char *sandbox_role_name(enum sandbox_role role); /* "listener", ... */
void sandbox_probe(struct sandbox_support *ret_support);
/* Check whether sandbox_enter() can do all that `config` requires. 0: yes. 1: `auto`, and ret_missing names the layers that are
 * missing. Negative: `on`, and a layer is missing. */
int sandbox_check(const struct config *config, char *ret_missing, size_t size, struct err *err);

/* Restrict this process. detail: for SANDBOX_WORKER and SANDBOX_CASE the device's name ("cuda:0"), for SANDBOX_STEPS a folder,
 * otherwise NULL. On failure some layers may already be in force: end the process. */
int sandbox_enter(enum sandbox_role role, const struct config *config, const char *detail, struct err *err);

/* Restrict a process that was forked by one of role SANDBOX_STEPS, and then executes the program of a step: it reads the system,
 * the step's files and `in`, and writes to `out` and `scratch`; it has no sockets, and makes threads, but no processes. With `gpu` it
 * also uses the device files of GPUs, and reads what their driver does: its list of calls is then that of a worker on a GPU, less
 * sockets and signals; its files are restricted under `auto`, too. */
struct sandbox_step {
	const struct step_conf *step;
	const char *in, *out, *scratch; /* folders */
};
int sandbox_enter_step(const struct config *config, const struct sandbox_step *step, struct err *err);

#endif
