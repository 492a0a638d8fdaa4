/* What the process that speaks HTTP and the one that reads the journal say to each other, over a socket pair.
 *
 * The first knows nothing and may open nothing: all it can ask for is what stands here, and a request is a structure of numbers
 * that are checked again. The second parses nothing that came from the network.
 */
#ifndef TOMONODE_NODE_STATUS_IPC_H
#define TOMONODE_NODE_STATUS_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/status/status_request.h"

enum status_type { STATUS_TYPE_HTML, STATUS_TYPE_JSON, STATUS_TYPE_METRICS, STATUS_TYPE_TEXT, STATUS_TYPE_PNG };
#define STATUS_TYPES 5

struct status_request {
	enum status_page page;
	int64_t job;
	char token[STATUS_TOKEN_SIZE]; /* for the page's forms */
};

struct status_reply {
	int code; /* of HTTP; 303: to where the cases are */
	enum status_type type;
	size_t n;
	char *bytes; /* the receiver's to free; NULL: none */
};

#define STATUS_REPLY_MAX (16u << 20)

int status_ipc_pair(int ret_fd[2]);
/* Whole or not at all: false: the other end is gone, or does not answer within `seconds`, and the channel is of no more use. */
bool status_ipc_request(int fd, const struct status_request *q, double seconds, struct status_reply *ret_answer);
/* 1: a question; 0: none now; -1: the other end is gone or mad. */
int status_ipc_receive(int fd, struct status_request *ret_question);
bool status_ipc_reply(int fd, const struct status_reply *answer, double seconds);

#endif
