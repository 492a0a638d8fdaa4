/* SPDX-License-Identifier: Apache-2.0 */
/* check_cluster.c - what Slurm, munge and the spool allow depends on the user: the tests run in the process of check_as_user.c.
 *
 * The listener of a running node is tested as a pilot would use it: with a secret of its own, which is made for the test. Only a
 * listener of this spool can complete the handshake.
 */
#include "node/command/check_cluster.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/version.h"
#include "node/cluster/link.h"
#include "node/command/check_paths.h"
#include "node/fleet/fleet_conf.h"
#include "node/receive/listen.h"

#define SLURM_MAJOR 22 /* the oldest version that is tested: 22.05 */
#define SLURM_MINOR 5
#define DIAL_SECONDS 5.0

/* ---- Slurm ---- */

/* Slurm that refuses the jobs is a problem; one that does not reply may do so later. */
static void say_state(const struct check_report *to, const struct config *config)
{
	const struct passwd *user = getpwuid(geteuid());
	char text[FLEET_TEXT_SIZE];
	enum fleet_controller state = fleet_conf_check(config, text);
	const char *hint = slurm_hint(text);

	if (state != FLEET_UP)
		check_say(to, state == FLEET_REFUSES ? FINDING_PROBLEM : FINDING_WARNING, "%s%s%s (tested as user %s)", text,
			  hint[0] ? ". " : "", hint, user ? user->pw_name : "without a name");
}

static void say_version(const struct check_report *to)
{
	char version[32] = "";
	struct slurm_reply r = slurm_version(version);
	int major = 0, minor = 0;

	if (r.state != FLEET_UP && r.unknown)
		check_say(to, FINDING_WARNING, "The version of Slurm is not known: %s", r.text);
	else if (r.state == FLEET_UP && sscanf(version, "%d.%d", &major, &minor) == 2 &&
		 (major < SLURM_MAJOR || (major == SLURM_MAJOR && minor < SLURM_MINOR)))
		check_say(to, FINDING_WARNING,
			  "Slurm %s is older than %d.%02d, the oldest version that this program is tested with", version,
			  SLURM_MAJOR, SLURM_MINOR);
}

static void say_program(const struct check_report *to, const char *program)
{
	char version[200], own[100];
	int ret = slurm_program_version(program, version, sizeof(version));

	snprintf(own, sizeof(own), "tomonode %s (revision %s,", TOMONODE_VERSION, TOMONODE_REVISION);
	if (ret == 0)
		check_say(
			to, FINDING_WARNING,
			"The version of slurm.program cannot be tested: '%s' does not exist on this machine. Where the jobs run it "
			"must be %s %s",
			program, TOMONODE_VERSION, TOMONODE_REVISION);
	else if (ret < 0)
		check_say(to, FINDING_WARNING, "slurm.program '%s --version' prints no version on this machine within %g s",
			  program, SLURM_PROGRAM_SECONDS);
	else if (strncmp(version, own, strlen(own)) != 0)
		check_say(to, FINDING_PROBLEM,
			  "slurm.program is '%s' on this machine, the node is version %s %s: its pilots would be refused",
			  version, TOMONODE_VERSION, TOMONODE_REVISION);
}

/* ---- the listener ---- */

/* The node does not run: can it listen? */
static void say_bind(const struct check_report *to, const struct cluster_conf *c)
{
	struct err err = {0};
	int fd = listen_on(c->bind, c->port, NULL, &err);

	if (fd < 0)
		check_say(to, FINDING_PROBLEM, "The node could not listen for pilots (bind and port of cluster): %s", err.msg);
	else
		close(fd);
}

/* Resolve HOST of HOST:PORT. false: reported. */
static bool resolves_host(const struct check_report *to, const char *address)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	const char *colon = strrchr(address, ':');
	char host[160];
	struct addrinfo *found = NULL;
	int code;

	if (!colon || address[0] == '[') /* an IPv6 address */
		return true;
	snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
	code = getaddrinfo(host, NULL, &hints, &found);
	if (code == 0)
		freeaddrinfo(found);
	else
		check_say(to, FINDING_PROBLEM,
			  "Pilots would connect to %s, but the name '%s' cannot be resolved here: %s. Set advertise of cluster",
			  address, host, gai_strerror(code));
	return code == 0;
}

/* The certificate of the pilots. false: it is needed and cannot be used here; reported. */
static bool read_certificate(const struct check_report *to, const struct config *config, struct tls_context **ret_tls)
{
	const struct tls_conf conf = {
		.certificate = config->slurm.certificate, .key = config->slurm.key, .authorities = config->slurm.authorities};
	struct err err = {0};

	if (!config->cluster.certificate[0])
		return true;
	if (!config->slurm.certificate[0])
		err_set(&err, ENOENT, "pilots need a certificate, and slurm has none");
	else if (tls_create(&conf, ret_tls, &err) == 0)
		return true;
	check_say(to, FINDING_WARNING, "Whether pilots reach this node cannot be tested: %s", err.msg);
	return false;
}

/* Wait until the node ends the connection: it has read the secret then, which can be removed. */
static void wait_for_end(struct link *link)
{
	const struct wire_message m = {.kind = WIRE_END, .text = "test"};
	double until = clock_seconds() + DIAL_SECONDS;
	struct wire_message reply = {0};
	const void *bytes;
	size_t n;
	int ret = link_send(link, &m, NULL);

	while (ret == 0 && clock_seconds() < until) {
		struct pollfd p = {.fd = link_fd(link), .events = link_events(link)};

		poll(&p, 1, 100);
		ret = link_flush(link, NULL);
		if (ret == 0)
			ret = link_receive(link, &reply, &bytes, &n, NULL);
		wire_clear(&reply);
	}
}

static void say_dial(const struct check_report *to, const char *address, const struct link_pilot *pilot)
{
	struct link *link = NULL;
	struct err err = {0};
	int ret = link_dial(address, pilot, 1, DIAL_SECONDS, &link, &err);

	if (ret == 0)
		wait_for_end(link);
	link_close(link);
	if (ret == -ECONNRESET)
		check_say(
			to, FINDING_PROBLEM,
			"Pilots would connect to %s, where another program listens, or another node: %s. Correct advertise or port "
			"of cluster",
			address, err.msg);
	else if (ret < 0)
		check_say(to, FINDING_PROBLEM,
			  "Pilots would connect to %s, where they do not reach this node: %s. Correct advertise, bind or port of "
			  "cluster, or a firewall",
			  address, err.msg);
}

/* The node runs: is it what pilots reach? */
static void say_reached(const struct check_report *to, const struct config *config, const char *address)
{
	char id[PILOT_ID_SIZE], secret[PILOT_SECRET_SIZE];
	struct tls_context *tls = NULL;
	struct err err = {0};

	if (!read_certificate(to, config, &tls))
		return;
	snprintf(id, sizeof(id), LINK_TEST_ID "%ld-%lld", (long)getpid(), (long long)time(NULL));
	if (pilot_secret_create(config->node.spool, id, secret, &err) < 0) {
		check_say(to, FINDING_WARNING, "Whether pilots reach this node at %s cannot be tested: %s", address, err.msg);
	} else {
		say_dial(to, address, &(struct link_pilot){id, secret, tls});
		explicit_bzero(secret, sizeof(secret));
		pilot_secret_remove(config->node.spool, id, NULL);
	}
	tls_free(tls);
}

static void say_listener(const struct check_report *to, const struct config *config, bool runs)
{
	char address[160];
	struct err err = {0};
	bool known = fleet_conf_address(config, address, sizeof(address), &err) == 0;

	if (!known)
		check_say(to, FINDING_PROBLEM, "%s", err.msg);
	if (!runs)
		say_bind(to, &config->cluster);
	if (known && resolves_host(to, address) && runs)
		say_reached(to, config, address);
}

void check_cluster(const struct config *config, bool runs, const struct check_report *to)
{
	say_listener(to, config, runs);
	if (config->node.executor & EXECUTOR_SLURM) {
		say_version(to);
		say_state(to, config);
		say_program(to, config->slurm.program);
	}
}
