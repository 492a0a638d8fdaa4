/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG-LS objects sent to a peer that accepts only uncompressed transfer syntaxes (DCMTK's storescp): a frame that cannot be
 * decoded ends the association before the last fragment, so that the peer stores nothing. */
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>

#include "dicom/network/store_scu.h"
#include "dicom/pixels/jpegls.h"
#include "tests/dicom/pixels/pixels_fixture.h"
#include "tests/test.h"

#define JPEG_LS "1.2.840.10008.1.2.4.80"

static pid_t peer; /* also ended after a failed test */

static int connect_to(int port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = connect(fd, (struct sockaddr *)&a, sizeof(a));

	close(fd);
	return rc;
}

static int free_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(a);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	close(fd);
	return ntohs(a.sin_port);
}

/* Start storescp, which stores to `received`, and wait until it accepts connections. Return its process number; -1: not
 * installed. */
static pid_t start_peer(const char *received, int port)
{
	char number[8];
	char *argv[] = {"storescp", "-q", "-od", (char *)received, "+xe", number, NULL};

	snprintf(number, sizeof(number), "%d", port);
	if (posix_spawnp(&peer, argv[0], NULL, NULL, argv, environ) != 0)
		peer = 0;
	while (peer && connect_to(port) < 0) {
		if (waitpid(peer, NULL, WNOHANG) == peer)
			peer = 0;
		usleep(10000);
	}
	return peer > 0;
}

static void end_peer(void)
{
	if (peer > 0) {
		kill(peer, SIGTERM);
		waitpid(peer, NULL, 0);
		peer = 0;
	}
}

static int end_all(void **state)
{
	end_peer();
	return folder_remove(state);
}

/* Write an object, of which frame `damaged` has no code stream; -1: all are sound. */
static const char *write_object(int frames, int damaged)
{
	struct dicom_file *file = header(N_ROWS, N_COLUMNS, frames);
	struct dicom_writer *w = NULL;
	struct err err = {0};
	size_t size = jpegls_bound(N_COLUMNS, N_ROWS), used;
	unsigned char *code = malloc(size);
	uint16_t values[N];

	assert_non_null(code);
	ok(dicom_writer_open(in_folder("object.dcm"), file, &(struct dicom_writer_options){.jpegls = true}, &w, &err), &err);
	for (int f = 0; f < frames; f++) {
		for (int k = 0; k < N; k++)
			values[k] = value_at(f, k);
		ok(jpegls_encode(values, N_COLUMNS, N_ROWS, 12, code, size, &used, &err), &err);
		if (f == damaged)
			memset(code, 0x5a, used);
		ok(dicom_writer_fragment(w, code, used, &err), &err);
	}
	ok(dicom_writer_close(w, &err), &err);
	free(code);
	return in_folder("object.dcm");
}

static int send_object(int port, const char *path, uint16_t *ret_status, struct err *err)
{
	struct scu_peer to = {.host = "127.0.0.1",
			      .port = port,
			      .called = "TEST",
			      .calling = "SENDER",
			      .max_pdu = 131072,
			      .connect_timeout = 20,
			      .acse_timeout = 20,
			      .dimse_timeout = 20};
	struct scu_context context = {MG_PROCESSING, JPEG_LS};
	struct scu *scu = NULL;
	int r = scu_open(&to, &context, 1, &scu, err);

	if (r == 0)
		r = scu_store(scu, path, ret_status, err);
	if (scu && r < 0 && r != -ENOTSUP) /* after an error the association is not used any more */
		assert_int_equal(scu_store(scu, path, ret_status, NULL), -ENOTCONN);
	scu_close(scu);
	return r;
}

TEST(test_frames)
{
	int port = free_port(), before;
	char received[256];

	snprintf(received, sizeof(received), "%s", in_folder("received"));
	assert_int_equal(mkdir(received, 0700), 0);
	if (!start_peer(received, port)) {
		rmdir(received);
		skip_because("storescp is not installed");
	}
	before = folder_entries();
	for (int damaged = -1; damaged <= N_FRAMES; damaged++) { /* at last an object of one frame, which is damaged */
		bool one = damaged == N_FRAMES;
		struct err err = {0};
		uint16_t status = 0xffff;
		int r = send_object(port, write_object(one ? 1 : N_FRAMES, one ? 0 : damaged), &status, &err);
		char *argv[] = {"rm", "-r", received, NULL};
		pid_t rm;

		if (damaged < 0) {
			ok(r, &err);
			assert_int_equal(status, 0);
			assert_true(rmdir(received) < 0); /* something is stored */
			assert_int_equal(posix_spawnp(&rm, argv[0], NULL, NULL, argv, environ), 0);
			assert_int_equal(waitpid(rm, NULL, 0), rm);
		} else {
			assert_true(r < 0);
			assert_int_equal(status, 0xffff);
			assert_non_null(strstr(err.msg, "cannot be decoded"));
			assert_int_equal(rmdir(received), 0); /* nothing is stored */
		}
		assert_int_equal(mkdir(received, 0700), 0);
		unlink(in_folder("object.dcm"));
	}
	assert_int_equal(folder_entries(), before);
	rmdir(received);
	end_peer();
}

/* Objects that cannot be decoded for sending: refused before anything is sent. */
TEST(test_not_for_sending)
{
	static const struct {
		unsigned rows, frames, bits;
		bool behind; /* an element behind the pixel data */
		int code;
		const char *says;
	} cases[] = {
		{8, 1, 8, false, ENOTSUP, "pixels of 8 bits cannot be decoded for sending, only 16 bits"},
		{8, 1, 16, true, ENOTSUP, "an object with elements after the pixel data cannot be decoded for sending"},
		{16384, 8, 16, false, EFBIG, "8 frames of 16384 x 16384: more than 4 GiB"}, /* 4 GiB */
	};
	int port = free_port();

	if (!start_peer(folder, port))
		skip_because("storescp is not installed");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};
		uint16_t status = 0xffff;
		struct bytes b;

		add_meta(&b, JPEG_LS);
		b.n = 132;
		add_text(&b, 0x00020002, "UI", MG_PROCESSING " ");
		add_text(&b, 0x00020003, "UI", "1.2.3.4 ");
		add_text(&b, 0x00020010, "UI", JPEG_LS);
		add_description(&b, cases[i].rows, cases[i].rows, cases[i].frames, cases[i].bits, cases[i].bits,
				cases[i].bits - 1);
		add_header(&b, PIXELS, "OB", 0xffffffff);
		add_item(&b, 0xfffee000, 0);
		for (unsigned f = 0; f < cases[i].frames; f++)
			add_fragments(&b, "abcd", 4, 4);
		add_item(&b, 0xfffee0dd, 0);
		if (cases[i].behind)
			add_text(&b, 0x7fe10010, "LO", "AB");
		assert_error(send_object(port, save(&b, b.n), &status, &err), &err, cases[i].code, cases[i].says);
	}
	end_peer();
	unlink(in_folder("bytes.dcm"));
}

TESTS_SETUP(folder_make, end_all);
