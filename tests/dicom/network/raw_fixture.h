/* SPDX-License-Identifier: Apache-2.0 */
/* PDUs as bytes on a socket, for peers that do what DCMTK would not (PS3.8 9.3). */
#ifndef TOMONODE_TESTS_RAW_FIXTURE_H
#define TOMONODE_TESTS_RAW_FIXTURE_H

#include <poll.h>
#include <sys/socket.h>

#include "tests/test.h"

static inline size_t put_item(uint8_t *p, uint8_t type, const void *value, size_t n)
{
	p[0] = type;
	p[1] = 0;
	p[2] = (uint8_t)(n >> 8);
	p[3] = (uint8_t)n;
	memcpy(p + 4, value, n);
	return n + 4;
}

static inline size_t put_pdu(uint8_t *p, uint8_t control, const void *value, size_t n)
{
	p[0] = 4;
	p[1] = 0;
	for (int i = 0; i < 4; i++) {
		p[2 + i] = (uint8_t)((n + 6) >> (24 - 8 * i));
		p[6 + i] = (uint8_t)((n + 2) >> (24 - 8 * i));
	}
	p[10] = 1; /* context */
	p[11] = control;
	memcpy(p + 12, value, n);
	return n + 12;
}

static inline void send_all(int fd, const uint8_t *p, size_t n)
{
	assert_int_equal(send(fd, p, n, MSG_NOSIGNAL), n);
}

/* Read one PDU from the socket, and keep the first `size` bytes behind its head. Return its type; 0: the connection is closed. */
static inline int read_pdu_body(int fd, int seconds, uint8_t *ret_body, size_t size)
{
	uint8_t b[6], skip[4096];
	size_t left, got = 0, kept = 0;
	struct pollfd pfd = {fd, POLLIN, 0};

	while (got < 6) {
		ssize_t n;

		if (poll(&pfd, 1, seconds * 1000) != 1)
			return -1;
		n = recv(fd, b + got, 6 - got, 0);
		if (n <= 0)
			return 0;
		got += (size_t)n;
	}
	left = (size_t)b[2] << 24 | (size_t)b[3] << 16 | (size_t)b[4] << 8 | b[5];
	while (left > 0) {
		ssize_t n = recv(fd, skip, left < sizeof(skip) ? left : sizeof(skip), 0);

		if (n <= 0)
			return 0;
		for (size_t i = 0; i < (size_t)n && kept < size; i++)
			ret_body[kept++] = skip[i];
		left -= (size_t)n;
	}
	return b[0];
}

static inline int read_pdu(int fd, int seconds)
{
	return read_pdu_body(fd, seconds, NULL, 0);
}

#endif
