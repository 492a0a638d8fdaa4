/* SPDX-License-Identifier: Apache-2.0 */
/* Exit codes of all commands. docs/commands.md lists them for scripts. */
#ifndef TOMONODE_NODE_EXIT_CODE_H
#define TOMONODE_NODE_EXIT_CODE_H

enum exit_code {
	CODE_OK = 0,
	CODE_FAILED = 1,     /* any failure that has no code of its own; output that cannot be written */
	CODE_USAGE = 2,	     /* unknown option or missing argument */
	CODE_CONFIG = 3,     /* the configuration has problems (each is printed) */
	CODE_INPUT = 4,	     /* the input data were refused; the message says why */
	CODE_MEMORY = 5,     /* the plan does not fit the memory limit */
	CODE_DEVICE = 6,     /* the device does not exist or failed */
	CODE_PEER = 7,	     /* a peer or web service could not be reached, or refused the request */
	CODE_NOT_FOUND = 8,  /* no such job, destination, protocol, file */
	CODE_BUSY = 9,	     /* another process uses the spool or the port, or the machine does not have the address yet */
	CODE_CANCELLED = 10, /* ended early: SIGINT (Ctrl-C), SIGTERM, or stopped by the node */
};

#endif
