/* SPDX-License-Identifier: Apache-2.0 */
#include "node/alert/alert_send.h"

#include <errno.h>
#include <string.h>

#include "node/alert/alert_internal.h"
#include "node/sandbox/sandbox.h"
#include "node/web/http_client.h"

#define ANSWER_MAX 65536

static int open_client(const struct config *config, struct http_client **ret, struct err *err)
{
	const struct alerts_conf *a = &config->alerts;
	const struct http_target target = {.url = a->url,
					   .authorities = a->authorities,
					   .credentials = a->credentials,
					   .connect_timeout = a->timeout,
					   .idle_timeout = a->timeout,
					   .answer_max = ANSWER_MAX};

	return http_client_open(&target, ret, err);
}

int alert_check(const struct config *config, struct err *err)
{
	struct http_client *client = NULL;
	int ret = config->alerts.exec[0] ? alert_exec_check(&config->alerts, err) : open_client(config, &client, err);

	http_client_close(client);
	return ret;
}

static int post_message(const struct config *config, const char *text, struct err *err)
{
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	const struct http_body body = {.data = text, .size = strlen(text)};
	const struct http_request request = {.headers = headers, .body = &body, .total_timeout = config->alerts.timeout};
	struct http_answer answer;
	struct http_client *client = NULL;
	int ret = open_client(config, &client, err);

	if (ret == 0)
		ret = http_client_send(client, &request, &answer, err);
	if (ret == 0 && (answer.status < 200 || answer.status > 299))
		ret = err_set(err, EACCES, "%s answered with status %d", http_client_name(client), answer.status);
	if (ret == 0)
		ret = answer.status;
	http_client_close(client);
	return ret;
}

int alert_send(const struct config *config, const char *text, bool fenced, struct err *err)
{
	int ret = 0;

	if (config->alerts.exec[0])
		return alert_exec(config, text, err);
	if (fenced)
		ret = sandbox_enter(SANDBOX_ALERT, config, NULL, err);
	return ret < 0 ? ret : post_message(config, text, err);
}
