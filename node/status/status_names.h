/* Patients' names for the status page, where the configuration wants them shown. They are kept nowhere but in the images and,
 * while the page runs, in memory: a process of its own reads the header of a case's first image (node/status/cmd_names.c), when
 * the case is to be shown, and a header that kills it costs that name.
 */
#ifndef TOMONODE_NODE_STATUS_NAMES_H
#define TOMONODE_NODE_STATUS_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct status;

#define STATUS_NAMES_MAX 256	    /* kept; of more, the oldest are forgotten */
#define STATUS_NAMES_PENDING_MAX 32 /* at a time */

struct status_name { /* what the process answers */
	int64_t job;
	char name[200], id[72]; /* UTF-8, or what the image had; "" not known */
};

struct status_name_request {
	int64_t job;
	char file[128]; /* relative to the spool */
};

struct status_names {
	struct status_name list[STATUS_NAMES_MAX];
	size_t n;
	int64_t pending[STATUS_NAMES_PENDING_MAX]; /* 0: answered */
	size_t n_pending;
	int fd;	      /* to the process; -1: there is none */
	pid_t pid;    /* of it */
	double until; /* on clock_seconds(): then it is killed */
};

void status_names_begin(struct status_names *names);
void status_names_end(struct status_names *names);
/* Start the process for the cases shown that have no name yet; it is answered for by status_names_receive(). */
void status_names_request(struct status_names *names, const struct status *s);
/* Take what has come; call it when `fd` is readable and now and then. */
void status_names_receive(struct status_names *names);
const struct status_name *status_names_find(const struct status_names *names, int64_t job); /* NULL: not known (yet) */

#endif
