/* SPDX-License-Identifier: Apache-2.0 */
/* Copy files over one TLS connection of the loopback interface, and print how long it took:
 *	tls_copy [--repeat N] FOLDER FILE...
 * The least work with which files reach another process safely, for comparison with pilots (tests/gpu/executors.py): one process
 * reads and sends, this one receives, computes the digest of the received bytes, writes FOLDER/INDEX.part, syncs it, renames it,
 * and syncs the folder at the end. The cipher is that of pilots. Timed from the request to the last sync, after the handshake;
 * the files are in the page cache from the second repeat on. Prints one line of JSON: bytes, and the seconds of each repeat. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/digest.h"

#define BLOCK ((size_t)1 << 20)

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static X509 *make_certificate(EVP_PKEY *key)
{
	X509 *x = X509_new();

	must(x && X509_set_pubkey(x, key) && X509_gmtime_adj(X509_getm_notBefore(x), -60) &&
		     X509_gmtime_adj(X509_getm_notAfter(x), 3600) && X509_sign(x, key, EVP_sha256()),
	     "certificate");
	return x;
}

static SSL *open_connection(int fd, bool sender)
{
	SSL_CTX *context = SSL_CTX_new(sender ? TLS_server_method() : TLS_client_method());
	SSL *ssl;

	must(context && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) &&
		     SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256"),
	     "TLS");
	if (sender) {
		EVP_PKEY *key = EVP_EC_gen("P-256");
		X509 *x = make_certificate(key);

		must(SSL_CTX_use_certificate(context, x) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1, "certificate");
		X509_free(x);
		EVP_PKEY_free(key);
	}
	ssl = SSL_new(context);
	must(ssl && SSL_set_fd(ssl, fd) && (sender ? SSL_accept(ssl) : SSL_connect(ssl)) == 1, "handshake");
	SSL_CTX_free(context);
	return ssl;
}

static void remove_copies(const char *folder, int n)
{
	char path[500];

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%.400s/%d", folder, i);
		unlink(path);
	}
}

/* Send all files each time one byte arrives. */
static void send_files(SSL *ssl, char **files, int n)
{
	char *block = malloc(BLOCK), request;

	must(block != NULL, "memory");
	while (SSL_read(ssl, &request, 1) == 1)
		for (int i = 0; i < n; i++) {
			int fd = open(files[i], O_RDONLY | O_CLOEXEC);
			size_t done;
			ssize_t got;

			must(fd >= 0, files[i]);
			while ((got = read(fd, block, BLOCK)) > 0)
				must(SSL_write_ex(ssl, block, (size_t)got, &done) == 1, "send");
			must(got == 0, files[i]);
			close(fd);
		}
	free(block);
}

static void receive_file(SSL *ssl, const char *folder, int index, off_t bytes, char *block, struct digest *digest)
{
	char path[500], part[520], hex[DIGEST_SIZE];
	int fd;

	snprintf(path, sizeof(path), "%.400s/%d", folder, index);
	snprintf(part, sizeof(part), "%s.part", path);
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(fd >= 0, part);
	digest_begin(digest);
	while (bytes > 0) {
		size_t want = (size_t)bytes < BLOCK ? (size_t)bytes : BLOCK, have = 0, n;

		for (; have < want; have += n)
			must(SSL_read_ex(ssl, block + have, want - have, &n) == 1, "receive");
		digest_add(digest, block, want);
		must(write(fd, block, want) == (ssize_t)want, part);
		bytes -= (off_t)want;
	}
	digest_end(digest, hex);
	must(fsync(fd) == 0 && close(fd) == 0 && rename(part, path) == 0, path);
}

static void receive_files(SSL *ssl, const char *folder, const off_t *bytes, int n, char *block, struct digest *digest)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	must(SSL_write(ssl, "g", 1) == 1, "request");
	for (int i = 0; i < n; i++)
		receive_file(ssl, folder, i, bytes[i], block, digest);
	must(fd >= 0 && fsync(fd) == 0, folder);
	close(fd);
}

static void connect_pair(int ret_fds[2])
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ret_fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(fd >= 0 && ret_fds[0] >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 1) == 0 &&
		     getsockname(fd, (struct sockaddr *)&a, &n) == 0 && connect(ret_fds[0], (struct sockaddr *)&a, n) == 0,
	     "loopback");
	ret_fds[1] = accept(fd, NULL, NULL);
	must(ret_fds[1] >= 0, "accept");
	close(fd);
}

static void copy(const char *folder, char **files, int n, int repeat)
{
	off_t *bytes = calloc((size_t)n, sizeof(bytes[0])), all = 0;
	struct digest *digest = digest_create();
	char *block = malloc(BLOCK);
	int fds[2];
	pid_t child;
	SSL *ssl;

	must(bytes && digest && block, "memory");
	for (int i = 0; i < n; i++) {
		struct stat st;

		must(stat(files[i], &st) == 0, files[i]);
		bytes[i] = st.st_size;
		all += st.st_size;
	}
	connect_pair(fds);
	child = fork();
	must(child >= 0, "fork");
	if (child == 0) {
		close(fds[1]);
		send_files(open_connection(fds[0], true), files, n);
		exit(0);
	}
	close(fds[0]);
	ssl = open_connection(fds[1], false);
	printf("{\"bytes\": %lld, \"seconds\": [", (long long)all);
	for (int r = 0; r < repeat; r++) {
		double began = clock_seconds();

		receive_files(ssl, folder, bytes, n, block, digest);
		printf("%s%.6f", r ? ", " : "", clock_seconds() - began);
		remove_copies(folder, n);
	}
	puts("]}");
	SSL_free(ssl);
	close(fds[1]);
	waitpid(child, NULL, 0);
	digest_free(digest);
	free(block);
	free(bytes);
}

int main(int argc, char **argv)
{
	int at = 1, repeat = 1;

	if (argc > 2 && !strcmp(argv[1], "--repeat")) {
		repeat = atoi(argv[2]);
		at = 3;
	}
	if (argc - at < 2 || repeat < 1) {
		fprintf(stderr, "usage: tls_copy [--repeat N] FOLDER FILE...\n");
		return 2;
	}
	copy(argv[at], argv + at + 1, argc - at - 1, repeat);
	return 0;
}
