/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_test_alert.c - `tomonode test-alert`: send a test message to the webhook or the program of the configuration and say what
 * became of it. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/alert/alert_json.h"
#include "node/alert/alert_send.h"
#include "node/command/commands.h"
#include "node/options/options.h"
#include "node/sandbox/user.h"

static const struct option_spec option_table[] = {
	{'c', "config", "FILE", "configuration file, applied over the embedded defaults", .type = OPTION_INTO_TEXT},
	{0},
};
static const struct command_spec spec = {
	.name = "test-alert",
	.usage = "[-c FILE] [--json]",
	.summary = "Send a test message to the webhook or the program of `alerts` in the configuration, and print its answer.",
	.text = "The message has \"test\": true and lists nothing (docs/alerts.md). Started as root, it becomes the node's user first: "
		"node.user, else that of the unit of systemd.",
	.options = option_table,
	.json = true,
	.examples = "tomonode test-alert\n",
};

static int report_outcome(const struct options *o, const struct config *config, int status, double ms, const struct err *err)
{
	bool program = config->alerts.exec[0];
	const char *name = program ? config->alerts.exec : config->alerts.url;
	int code = status >= 0 ? CODE_OK : err->code == ENOKEY || err->code == EINVAL ? CODE_CONFIG : CODE_PEER, ret;
	json_t *root;

	if (o->json) {
		root = json_pack("{s:b, s:i, s:s, s:f}", "ok", status >= 0, "code", code, program ? "exec" : "url", name, "ms",
				 ms);
		if (root && status >= 0 && !program)
			json_object_set_new(root, "status", json_integer(status));
		if (root && status < 0)
			json_object_set_new(root, "error", json_string(err->msg));
		ret = options_json(root);
		return ret == CODE_OK ? code : ret;
	}
	if (status >= 0 && program)
		printf("%s: took the message in %.0f ms\n", name, ms);
	else if (status >= 0)
		printf("%s: answered with status %d after %.0f ms\n", name, status, ms);
	else
		fprintf(stderr, "tomonode test-alert: %s\n", err->msg);
	return code;
}

/* The node's user may read less than root, and its programs may do less. Say it if this process cannot become that user; an
 * unknown user is an error of the configuration. */
static int become_user(const struct config *config, struct err *err)
{
	struct err why = {0};

	if (user_become_tested(config->node.user, &why) == 0)
		return 0;
	if (why.code == ENOKEY)
		return err_set(err, ENOKEY, "%s", why.msg);
	fprintf(stderr, "tomonode test-alert: sent as user %ld, not as the node's user: %s\n", (long)geteuid(), why.msg);
	return 0;
}

int cmd_test_alert(int argc, char **argv)
{
	struct config *config = NULL;
	const char *path = NULL;
	struct err err = {0};
	char *text = NULL;
	struct options o;
	double began;
	int code, status;

	options_begin(&o, &spec, argc, argv);
	o.into = &path;
	if (options_next(&o) == OPTION_STOP)
		return o.code;
	code = options_config(&o, path, &config);
	if (code != CODE_OK)
		return code;
	if (!config_tells_alerts(config)) {
		code = options_fail(&o, CODE_NOT_FOUND, "no webhook: neither url nor exec of alerts is set in %s",
				    config->path[0] ? config->path : "the embedded defaults");
		goto out;
	}
	if (become_user(config, &err) < 0) {
		code = options_fail(&o, CODE_CONFIG, "%s", err.msg);
		goto out;
	}
	text = alert_test_text(config, clock_wall());
	began = clock_seconds();
	status = text ? alert_check(config, &err) : err_set(&err, ENOMEM, "no memory");
	if (status == 0)
		status = alert_send(config, text, false, &err);
	code = report_outcome(&o, config, status, 1e3 * (clock_seconds() - began), &err);
out:
	free(text);
	config_free(config);
	return code;
}
