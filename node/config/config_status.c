/* SPDX-License-Identifier: Apache-2.0 */
/* config_status.c - the keys of the status page, and what they must be together. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "node/base/network.h"
#include "node/config/config_internal.h"
#include "node/config/config_read.h"

static const struct key_choice status_actions[] = {
	{"loopback", STATUS_ACTIONS_LOOPBACK}, {"always", STATUS_ACTIONS_ALWAYS}, {"never", STATUS_ACTIONS_NEVER}, {NULL, 0}};

static const struct key_choice status_languages[] = {{"auto", LANGUAGE_AUTO}, {"en", LANGUAGE_EN}, {"de", LANGUAGE_DE},
						     {"es", LANGUAGE_ES},     {"pt", LANGUAGE_PT}, {NULL, 0}};

const struct key config_status_keys[CONFIG_STATUS_KEYS] = {
	{"enabled", AS_BOOL(status_conf, enabled), .fallback = "true", .meaning = "serve the status page"},
	{"bind", AS_ADDRESS(status_conf, bind), .fallback = "127.0.0.1",
	 .meaning = "address to listen on; any other than a loopback address makes the page visible to the network"},
	{"port", AS_INT(status_conf, port, 1, 65535), .zero = "any free port (printed in the log)", .fallback = "11180",
	 .meaning = "port to listen on"},
	{"host", AS_HOST(status_conf, host), .fallback = "",
	 .meaning = "host name that browsers may use in the page's URL, besides `localhost` and addresses; empty: none"},
	{"actions", AS_CHOICE(status_conf, actions, status_actions), .fallback = "loopback",
	 .meaning =
		 "who may retry and cancel cases on the page: `loopback`: everyone if `bind` is a loopback address, else "
		 "nobody; `always`: everyone who can reach the page; `never`: nobody. With `trusted_header` the first two mean "
		 "everyone whose group is in `may_act` or `may_administer`"},
	{"thumbnails", AS_BOOL(status_conf, thumbnails), .fallback = "true",
	 .meaning = "make a small picture of each result's middle slice and show it on the page; show reports of results"},
	{"show_patient", AS_BOOL(status_conf, show_patient), .fallback = "false",
	 .meaning = "show the patient's name and ID, which are read from the images each time the page is loaded"},
	{"language", AS_CHOICE(status_conf, language, status_languages), .fallback = "auto",
	 .meaning =
		 "language of the page for browsers in which none was chosen at its foot; `auto`: the one that the browser prefers"},
	{"viewer_url", AS_TEXT(status_conf, viewer_url, VIEWER_PATTERN_SIZE - 1), .fallback = "",
	 .meaning = "address of a result in the site's viewer, to which the page then has a link: `{study}` and `{series}` are "
		    "replaced by UIDs, `{accession}` by the accession number, as in `https://viewer.example.org/?study={study}`"},
	{"trusted_header", AS_NAME(status_conf, trusted_header), .fallback = "",
	 .meaning = "header of a request with the name of the person, set by a web server in front of the node that knows the "
		    "accounts, such as `X-Remote-User`; empty: there are no persons"},
	{"trusted_groups", AS_NAME(status_conf, trusted_groups), .fallback = "X-Remote-Groups",
	 .meaning = "header with the groups of this person, separated by commas"},
	{"trusted_from", AS_NAMES(status_conf, trusted_from, KEY_NETWORK, 0, CONFIG_NAMES_MAX), .fallback = "",
	 .meaning = "with `trusted_header`: addresses or networks of these web servers; requests from others are refused"},
	{"may_look", AS_NAMES(status_conf, may_look, KEY_TEXT, 0, CONFIG_NAMES_MAX), .fallback = "",
	 .meaning = "groups whose persons may see the pages, pictures and reports"},
	{"may_act", AS_NAMES(status_conf, may_act, KEY_TEXT, 0, CONFIG_NAMES_MAX), .fallback = "",
	 .meaning = "groups whose persons may also retry, reconstruct again and cancel cases"},
	{"may_administer", AS_NAMES(status_conf, may_administer, KEY_TEXT, 0, CONFIG_NAMES_MAX), .fallback = "",
	 .meaning = "groups whose persons may also state that images with different names are of one patient"},
};

/* The name of a header: a letter, then letters, digits and '-'. An underscore is not allowed, because some web servers take it
 * for
 * '-' (CGI, RFC 3875 section 4.1.18), so that a client could send the header under another name. */
static bool is_header(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-')
			return false;
	return isalpha((unsigned char)name[0]);
}

static void report_problem(struct config_reader *r, const char *key, const char *value, const char *allowed)
{
	config_problem(r, r->text->files[0], 1, "key '%s' of status: \"%s\"; allowed: %s", key, value, allowed);
}

static void finish_header(struct config_reader *r, const char *key, const char *name)
{
	static const char *const others[] = {"Host",	       "Origin",	 "Content-Type",
					     "Content-Length", "Sec-Fetch-Site", "Transfer-Encoding",
					     "Connection",     "Authorization"};

	if (!is_header(name))
		report_problem(r, key, name, "a letter, then letters, digits and '-'");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcasecmp(name, others[i]))
			report_problem(r, key, name, "a header that has no other meaning");
}

static void finish_groups(struct config_reader *r, const char *key, const struct config_names *groups)
{
	for (size_t i = 0; i < groups->n; i++) {
		const char *name = groups->name[i];

		if (strchr(name, ',') || name[0] == ' ' || name[strlen(name) - 1] == ' ')
			report_problem(r, key, name, "names without a comma, and without a blank at either end");
	}
}

/* A numeric address, or a network that contains neither every address nor every IPv4 address. These are ::ffff:0:0/96, so
 * `::/64` contains them, too. */
static bool is_trustworthy(const char *text)
{
	struct network net, ipv4;

	return network_parse(text, &net) && network_parse("0.0.0.0/0", &ipv4) && !net.zone[0] && net.bits > 0 &&
	       !(net.bits <= ipv4.bits && network_contains(&net, &ipv4));
}

static void finish_trusted(struct config_reader *r, const struct status_conf *s)
{
	finish_header(r, "trusted_header", s->trusted_header);
	finish_header(r, "trusted_groups", s->trusted_groups);
	if (!strcasecmp(s->trusted_header, s->trusted_groups))
		report_problem(r, "trusted_groups", s->trusted_groups, "another header than trusted_header");
	if (s->trusted_from.n == 0)
		report_problem(r, "trusted_from", "", "with trusted_header at least one address");
	for (size_t i = 0; i < s->trusted_from.n; i++)
		if (!is_trustworthy(s->trusted_from.name[i]))
			report_problem(
				r, "trusted_from", s->trusted_from.name[i],
				"a numeric address, or a network as `10.1.0.0/16` that does not contain every address, without "
				"zone");
	if (s->may_look.n + s->may_act.n + s->may_administer.n == 0)
		report_problem(r, "may_look", "",
			       "with trusted_header at least one group in may_look, may_act or may_administer");
}

void config_finish_status(struct config_reader *r)
{
	const struct status_conf *s = &r->config->status;

	if (s->enabled && s->port > 0 && s->port == r->config->node.port)
		config_problem(r, r->text->files[0], 1, "key 'port' of status: %d, which is a DICOM port; allowed: another port",
			       s->port);
	if (s->viewer_url[0] && !viewer_pattern_valid(s->viewer_url))
		report_problem(r, "viewer_url", s->viewer_url, VIEWER_PATTERN_FORM);
	finish_groups(r, "may_look", &s->may_look);
	finish_groups(r, "may_act", &s->may_act);
	finish_groups(r, "may_administer", &s->may_administer);
	if (s->trusted_header[0])
		finish_trusted(r, s);
	else if (s->trusted_from.n + s->may_look.n + s->may_act.n + s->may_administer.n > 0)
		report_problem(r, "trusted_header", "",
			       "a header, if there is trusted_from, may_look, may_act or may_administer");
}

bool config_status_may_act(const struct config *c)
{
	if (c->status.actions == STATUS_ACTIONS_LOOPBACK)
		return c->status.trusted_header[0] || config_is_loopback(c->status.bind);
	return c->status.actions == STATUS_ACTIONS_ALWAYS;
}

void config_warn_status(const struct config *c, void (*report)(void *ctx, const char *warning), void *ctx)
{
	const struct status_conf *s = &c->status;
	char text[400];

	if (!s->enabled || config_is_loopback(s->bind))
		return;
	if (s->trusted_header[0])
		snprintf(text, sizeof(text),
			 "the status page listens on %s without encryption: whoever can send from an address in trusted_from can "
			 "be any person, and whoever can read the network between sees %s",
			 s->bind, s->show_patient ? "patients' names" : "the cases");
	else
		snprintf(text, sizeof(text),
			 "the status page listens on %s without password or encryption: anybody on the network sees %s%s",
			 s->bind, s->show_patient ? "patients' names" : "the cases",
			 config_status_may_act(c) ? " and may cancel them" : "");
	report(ctx, text);
}
