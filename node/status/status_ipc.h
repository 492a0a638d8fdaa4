/* SPDX-License-Identifier: Apache-2.0 */
/* Messages over a socket pair between the HTTP process and the process that reads the journal.
 *
 * The HTTP process has no data and may open no file. It can request only the pages below; a request is a structure of fixed size
 * whose members are checked again by the receiver. The process that reads the journal parses no data from the network.
 */
#ifndef TOMONODE_NODE_STATUS_IPC_H
#define TOMONODE_NODE_STATUS_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/base/language.h"
#include "node/status/status_filter.h"
#include "node/status/status_request.h"

enum status_type {
	STATUS_TYPE_HTML,
	STATUS_TYPE_JSON,
	STATUS_TYPE_METRICS,
	STATUS_TYPE_TEXT,
	STATUS_TYPE_PNG,
	STATUS_TYPE_SLICE,
	STATUS_TYPE_REPORT
};
#define STATUS_TYPES 7

struct status_request {
	enum status_page page;
	int64_t job, number;	       /* number: STATUS_SLICE: a slice; STATUS_COMPARE: the other case; otherwise 0 */
	char choice[CONFIG_NAME_SIZE]; /* STATUS_REDO: the protocol; STATUS_SWEEP: the number of a sweep; STATUS_SAME:
					  status_names_seen() */
	struct status_filter filter;   /* STATUS_CASES: which ones */
	char token[STATUS_TOKEN_SIZE]; /* to be put into the page's forms */
	enum language language;	       /* of the reply, if it is a page */
	struct status_person person;   /* of the request; the role of a request without person is ADMINISTER if there are none */
	char refused[900];	       /* STATUS_REFUSED: what was refused, with texts from the network */
};

struct status_reply {
	int code;    /* HTTP status; 303: redirect to the page of the case `job`, or, if that is 0, to the overview */
	int64_t job; /* 0 with other codes */
	enum status_type type;
	size_t n;
	char *bytes; /* n bytes; the receiver frees them; NULL: none */
};

#define STATUS_REPLY_MAX (16u << 20) /* bytes */

int status_ipc_pair(int ret_fd[2]); /* -1: see errno */
/* Send a request and wait for the whole reply. 1: it came; 0: not within `seconds`: *late is set, and further calls send nothing
 * until status_ipc_drop() has dropped it; -1: the other end is closed, or there is no memory: close the socket. */
int status_ipc_request(int fd, const struct status_request *q, double seconds, bool *late, struct status_reply *ret_answer);
/* Drop a reply that came too late, if it is there, and clear *late. false: as -1 above. */
bool status_ipc_drop(int fd, double seconds, bool *late);
/* Receive a request. 1: received; 0: none is available; -1: the other end is closed, or the request is invalid. */
int status_ipc_receive(int fd, struct status_request *ret_question);
/* Send a reply. false: it could not be sent completely within `seconds`. */
bool status_ipc_reply(int fd, const struct status_reply *answer, double seconds);

#endif
