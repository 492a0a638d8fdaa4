/* SPDX-License-Identifier: Apache-2.0 */
/* config_alerts.c - the keys of the section `alerts`, and what they must fulfil together. */
#include "node/base/url.h"
#include "node/config/config_internal.h"
#include "node/config/config_read.h"

const struct key config_alerts_keys[CONFIG_ALERTS_KEYS] = {
	{"url", AS_TEXT(alerts_conf, url, URL_SIZE - 1), .fallback = "",
	 .meaning = "web service that gets the messages, as `https://HOST[:PORT]/PATH`, by POST of JSON; empty: none"},
	{"exec", AS_PATH(alerts_conf, exec), .fallback = "",
	 .meaning =
		 "instead of `url`: program that gets each message as a mail without its receiver on its standard input; exit code 0: "
		 "taken; empty: none"},
	{"exec_files", AS_NAMES(alerts_conf, exec_files, KEY_PATH, 0, CONFIG_NAMES_MAX), .fallback = "",
	 .meaning = "files and folders that it reads or executes beside those of the system below `/usr`"},
	{"authorities", AS_PATH(alerts_conf, authorities), .fallback = "",
	 .meaning = "trusted certificates (PEM) for checking that of the service; empty: those of the system"},
	{"credentials", AS_PATH(alerts_conf, credentials), .fallback = "",
	 .meaning = "file with one line: a bearer token, or `USER:PASSWORD`; no other user may be able to read it; only with "
		    "https, or to a loopback address; empty: none"},
	{"timeout", AS_REAL(alerts_conf, timeout, 1, 300), .unit = "s", .fallback = "10",
	 .meaning =
		 "longest time of an attempt; a failed one is repeated after 5 s, then twice as long each time, up to 5 minutes"},
	{"delay", AS_REAL(alerts_conf, delay, 0, 3600), .unit = "s", .fallback = "10",
	 .meaning = "time that a trouble must last before it is told"},
	{"settle", AS_REAL(alerts_conf, settle, 0, 86400), .unit = "s", .fallback = "60",
	 .meaning = "time without it after which a trouble is told to be solved; one that comes back before has not ended"},
	{"interval", AS_REAL(alerts_conf, interval, 0, 86400), .unit = "s", .fallback = "60",
	 .meaning = "shortest time between two messages; what happens in between is joined into the next one"},
	{"most", AS_INT(alerts_conf, most, 1, 200), .fallback = "20",
	 .meaning = "number of troubles that a message lists; of further ones it gives the number"},
};

bool config_tells_alerts(const struct config *c)
{
	return c->alerts.url[0] || c->alerts.exec[0];
}

void config_finish_alerts(struct config_reader *r)
{
	const struct alerts_conf *a = &r->config->alerts;
	struct err err = {0};
	struct url url;

	if (a->exec[0] && a->url[0])
		config_problem(r, r->text->files[0], 1, "key 'exec' of alerts: \"%s\", with url = \"%s\"; allowed: one of both",
			       a->exec, a->url);
	if (a->exec_files.n > 0 && !a->exec[0])
		config_problem(r, r->text->files[0], 1, "key 'exec_files' of alerts: \"%s\", without exec; allowed: with exec",
			       a->exec_files.name[0]);
	if (!a->url[0])
		return;
	if (url_parse(a->url, &url, &err) < 0)
		config_problem(r, r->text->files[0], 1, "key 'url' of alerts: %s", err.msg);
	else if (!url.tls && a->credentials[0] && !url_is_local(&url))
		config_problem(
			r, r->text->files[0], 1,
			"key 'credentials' of alerts: \"%s\", with %s; allowed: credentials with https, or to this machine",
			a->credentials, a->url);
}
