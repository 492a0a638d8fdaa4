/* SPDX-License-Identifier: Apache-2.0 */
/* receiver_alone.c - the receiver without the rest of the node, for system tests and benchmarks.
 *
 * receiver_alone [--aet AET] [--bind ADDRESS] [--max-associations N] [--acse S] [--dimse S] [--max-pdu N] [--reserve BYTES]
 * [--grace S]
 *                [--file-limit BYTES] [--free FILE] [--check-called] [--known AET[@HOST]]... SPOOL
 * --free: the free space of every file system is the number in this file: bytes, an uint64_t of this machine.
 * prints the port that it listens on, then a dot to standard output for each wake-up of the node, until SIGTERM.
 */
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dicom/core/dataset.h"
#include "dicom/pixels/start.h"
#include "node/base/log.h"
#include "node/receive/receiver.h"
#include "node/store/spool.h"

#define PEERS_MAX 8

static const struct option options[] = {
	{"aet", required_argument, NULL, 'a'},
	{"bind", required_argument, NULL, 'b'},
	{"max-associations", required_argument, NULL, 'm'},
	{"acse", required_argument, NULL, 's'},
	{"dimse", required_argument, NULL, 'd'},
	{"reserve", required_argument, NULL, 'r'},
	{"grace", required_argument, NULL, 'g'},
	{"file-limit", required_argument, NULL, 'f'},
	{"free", required_argument, NULL, 'F'},
	{"check-called", no_argument, NULL, 'c'},
	{"known", required_argument, NULL, 'k'},
	{"max-pdu", required_argument, NULL, 'p'},
	{NULL, 0, NULL, 0},
};

static const _Atomic uint64_t *free_bytes; /* in a mapped file, so that processes without access to files read it */

static void map_free_bytes(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*free_bytes), PROT_READ, MAP_SHARED, fd, 0);

	if (p != MAP_FAILED)
		free_bytes = p;
	if (fd >= 0)
		close(fd);
}

/* Called by the receiver in place of that of the C library. */
int statvfs(const char *path, struct statvfs *ret)
{
	(void)path;
	*ret = (struct statvfs){.f_frsize = 1, .f_bavail = free_bytes ? atomic_load(free_bytes) : 1ull << 50};
	return 0;
}

static void add_peer(struct config *c, const char *text)
{
	struct peer_conf *p = &c->peers[c->n_peers];
	const char *at = strchr(text, '@');

	if (c->n_peers == PEERS_MAX)
		return;
	snprintf(p->name, sizeof(p->name), "peer%zu", c->n_peers);
	snprintf(p->aet, sizeof(p->aet), "%.*s", at ? (int)(at - text) : 16, text);
	snprintf(p->host, sizeof(p->host), "%s", at ? at + 1 : "");
	c->node.require_known_peer = true;
	c->n_peers++;
}

int main(int argc, char **argv)
{
	struct peer_conf peers[PEERS_MAX] = {0};
	struct config c = {.peers = peers};
	struct rlimit limit;
	struct err err = {0};
	struct listen_sockets sockets;
	int o, port, grace = 2, wake[2], rc;
	char byte;
	pid_t pid;

	strcpy(c.node.aet, "TOMONODE");
	strcpy(c.node.bind, "127.0.0.1");
	c.node.max_pdu = 131072;
	c.node.acse_timeout = c.node.dimse_timeout = 30;
	c.node.max_associations = 16;
	c.node.plain = true;
	c.node.peer_window = 60;
	log_start(LOG_TO_STDERR, LOG_LOCAL0, LOG_DEBUG, "receiver");
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (o) {
		case 'a':
			snprintf(c.node.aet, sizeof(c.node.aet), "%s", optarg);
			break;
		case 'b':
			snprintf(c.node.bind, sizeof(c.node.bind), "%s", optarg);
			break;
		case 'm':
			c.node.max_associations = atoi(optarg);
			break;
		case 's':
			c.node.acse_timeout = atoi(optarg);
			break;
		case 'd':
			c.node.dimse_timeout = atoi(optarg);
			break;
		case 'p':
			c.node.max_pdu = atoi(optarg);
			break;
		case 'r':
			c.node.reserve = strtoull(optarg, NULL, 10);
			break;
		case 'g':
			grace = atoi(optarg);
			break;
		case 'c':
			c.node.check_called = true;
			break;
		case 'k':
			add_peer(&c, optarg);
			break;
		case 'f':
			limit.rlim_cur = limit.rlim_max = strtoull(optarg, NULL, 10);
			setrlimit(RLIMIT_FSIZE, &limit);
			signal(SIGXFSZ, SIG_IGN);
			break;
		case 'F':
			map_free_bytes(optarg);
			break;
		default:
			return 2;
		}
	}
	if (optind != argc - 1)
		return 2;
	snprintf(c.node.spool, sizeof(c.node.spool), "%s", argv[optind]);
	if (dicom_start(&err) < 0 || spool_prepare(c.node.spool, &err) < 0 || listen_open(&c, NULL, &sockets, &err) < 0 ||
	    pipe(wake) < 0) {
		fprintf(stderr, "receiver_alone: %s\n", err.msg);
		return 1;
	}
	port = sockets.list[0].port;
	pid = fork();
	if (pid == 0) {
		close(wake[0]);
		rc = receiver_run(&sockets, &c, wake[1], grace, NULL, &err);
		if (rc < 0)
			fprintf(stderr, "receiver_alone: %s\n", err.msg);
		dicom_stop();
		return rc < 0;
	}
	/* The receiver's process stops when this process has ended, as it does when a node dies. */
	listen_close(&sockets);
	close(wake[1]);
	printf("%d %ld\n", port, (long)pid);
	fflush(stdout);
	while (read(wake[0], &byte, 1) == 1) {
		putchar('.');
		fflush(stdout);
	}
	waitpid(pid, &rc, 0);
	return WIFEXITED(rc) ? WEXITSTATUS(rc) : 1;
}
