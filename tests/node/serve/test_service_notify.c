/* SPDX-License-Identifier: Apache-2.0 */
/* What a service manager hears, over sockets of the test's own: a path, an abstract name, and names that are neither. */
#include "node/serve/service_notify.h"
#include "tests/test.h"

static int listen_at(const struct service_notify *n)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&n->address, n->size), 0);
	return fd;
}

static void heard(const char *name)
{
	struct service_notify n;
	struct err err = {0};
	char text[32] = "";
	int fd;

	assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
	assert_int_equal(service_notify_read_address(&n, &err), 0);
	assert_null(getenv("NOTIFY_SOCKET")); /* for whoever is started now */
	assert_int_equal(service_notify_send(&n, SERVICE_READY, &err), name[0] == '@' ? -ECONNREFUSED : -ENOENT);
	assert_non_null(strstr(err.msg, "READY=1"));
	fd = listen_at(&n);
	assert_int_equal(service_notify_send(&n, SERVICE_READY, &err), 0);
	assert_int_equal(recv(fd, text, sizeof(text) - 1, 0), 7);
	assert_string_equal(text, "READY=1");
	assert_int_equal(service_notify_send(&n, SERVICE_STOPPING, &err), 0);
	assert_int_equal(recv(fd, text, sizeof(text) - 1, 0), 10);
	assert_string_equal(text, "STOPPING=1");
	close(fd);
}

TEST(at_a_path)
{
	char dir[64], name[100];

	test_folder(dir, sizeof(dir));
	snprintf(name, sizeof(name), "%s/notify", dir);
	heard(name);
}

TEST(at_an_abstract_name)
{
	char name[64];

	snprintf(name, sizeof(name), "@tomonode-test-notify-%ld", (long)getpid());
	heard(name);
}

TEST(nobody_or_nowhere)
{
	char longer[200];
	struct service_notify n;
	struct err err = {0};

	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(service_notify_read_address(&n, &err), 0);
	assert_int_equal(service_notify_send(&n, SERVICE_READY, &err), 0);
	setenv("NOTIFY_SOCKET", "", 1);
	assert_int_equal(service_notify_read_address(&n, &err), 0);
	assert_int_equal(n.size, 0);
	setenv("NOTIFY_SOCKET", "vsock:2:1234", 1);
	assert_error(service_notify_read_address(&n, &err), &err, EAFNOSUPPORT, "vsock:2:1234");
	assert_null(getenv("NOTIFY_SOCKET"));
	memset(longer, 'a', sizeof(longer));
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	setenv("NOTIFY_SOCKET", longer, 1);
	assert_int_equal(service_notify_read_address(&n, &err), -ENAMETOOLONG);
	assert_int_equal(n.size, 0);
}
