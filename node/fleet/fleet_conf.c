/* SPDX-License-Identifier: Apache-2.0 */
#include "node/fleet/fleet_conf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

struct slurm_options fleet_conf_options(const struct slurm_conf *s)
{
	return (struct slurm_options){.partition = s->partition,
				      .account = s->account,
				      .gres = s->gres,
				      .constraint = s->constraint,
				      .time = s->time,
				      .memory = s->memory,
				      .cpus = s->cpus,
				      .output = s->output};
}

int fleet_conf_address(const struct config *config, char *ret_text, size_t size, struct err *err)
{
	char own[100] = "";

	if (config->cluster.advertise[0]) {
		snprintf(ret_text, size, "%s", config->cluster.advertise);
		return 0;
	}
	if (gethostname(own, sizeof(own) - 1) < 0 || !own[0])
		return err_set(err, EINVAL, "the name of this machine is unknown: set advertise of cluster");
	snprintf(ret_text, size, "%s:%d", own, config->cluster.port);
	return 0;
}

const char *fleet_conf_shared_spool(const struct config *config)
{
	return config->cluster.shared_spool ? config->node.spool : "";
}

int fleet_conf_new_id(char ret_id[FLEET_ID_SIZE], struct err *err)
{
	unsigned char bytes[6];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_set(err, EIO, "no random numbers: %s", strerror(errno));
	snprintf(ret_id, FLEET_ID_SIZE, FLEET_ID_PREFIX "%02x%02x%02x%02x%02x%02x", bytes[0], bytes[1], bytes[2], bytes[3],
		 bytes[4], bytes[5]);
	return 0;
}

bool fleet_conf_is_id(const char *text)
{
	const size_t n = strlen(FLEET_ID_PREFIX);

	return !strncmp(text, FLEET_ID_PREFIX, n) && strlen(text) == n + 12 && strspn(text + n, "0123456789abcdef") == 12;
}

enum fleet_controller fleet_conf_check(const struct config *config, char ret_text[FLEET_TEXT_SIZE])
{
	struct slurm_options options = fleet_conf_options(&config->slurm);
	struct slurm_reply reply = slurm_test(&options);
	struct fleet fleet = {.replied = reply.state};

	snprintf(fleet.reply, sizeof(fleet.reply), "%s", reply.text);
	return fleet_describe(&fleet, 0, ret_text);
}
