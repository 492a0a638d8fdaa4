/* SPDX-License-Identifier: Apache-2.0 */
/* destination_check.c - check the destinations: TLS, times, fallback, and what each kind has besides. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "node/config/config_read.h"

static void finish_fallback(struct config_reader *r, const struct destination_conf *d, struct config_place place)
{
	if (!d->fallback[0])
		return;
	if (!strcmp(d->fallback, d->name))
		config_problem(r, place.file, place.line,
			       "key 'fallback' of destination '%s': \"%s\"; allowed: another destination", d->name, d->fallback);
	else if (!config_destination(r->config, d->fallback))
		config_unknown_name(r, place, "destination", d->name, "fallback", d->fallback, SECTION_DESTINATIONS);
}

void config_finish_fallbacks(struct config_reader *r)
{
	for (size_t i = 0; i < r->config->n_destinations; i++)
		finish_fallback(r, &r->config->destinations[i], r->places[SECTION_DESTINATIONS][i]);
}

static void finish_tls(struct config_reader *r, const struct destination_conf *d, struct config_place place)
{
	const struct node_conf *node = &r->config->node;

	if (!d->authorities[0] && !node->tls_authorities[0])
		config_problem(r, place.file, place.line,
			       "key 'authorities' of destination '%s': \"\"; allowed: with TLS an absolute path, here or as "
			       "node.tls_authorities",
			       d->name);
	if (d->key[0] && !d->certificate[0])
		config_problem(r, place.file, place.line,
			       "key 'certificate' of destination '%s': \"\"; allowed: an absolute path, because `key` is set",
			       d->name);
}

/* Set what follows from the URL. */
static void finish_stow(struct config_reader *r, struct destination_conf *d, struct config_place place)
{
	struct err err = {0};
	struct url url;

	if (url_parse(d->url, &url, &err) < 0) {
		config_problem(r, place.file, place.line, "key 'url' of destination '%s': %s", d->name, err.msg);
		return;
	}
	snprintf(d->host, sizeof(d->host), "%s", url.host);
	d->port = url.port;
	d->tls = url.tls;
	d->verify_name = true;
	if (!url.tls && (d->certificate[0] || d->key[0] || d->authorities[0] || d->crl[0]))
		config_problem(
			r, place.file, place.line,
			"key 'url' of destination '%s': http has no encryption, but `certificate`, `key`, `authorities` or "
			"`crl` is set; allowed: an https URL, or none of these keys",
			d->name);
	if (!url.tls && d->credentials[0] && !url_is_local(&url))
		config_problem(
			r, place.file, place.line,
			"key 'credentials' of destination '%s': they would be sent without encryption to %s; allowed: with an "
			"https URL, or with a host of this machine",
			d->name, d->host);
}

static void finish_folder(struct config_reader *r, struct destination_conf *d, struct config_place place)
{
	const char *spool = r->config->node.spool;
	size_t n = strlen(spool);

	if (!d->path[0]) /* an entry of another kind had none */
		config_problem(r, place.file, place.line,
			       "key 'path' of destination '%s' is missing; allowed: an absolute path of a folder", d->name);
	else if (n > 0 && !strncmp(d->path, spool, n) && (d->path[n] == '/' || !d->path[n]))
		config_problem(r, place.file, place.line,
			       "key 'path' of destination '%s': %s is in the node's own spool; allowed: another folder", d->name,
			       d->path);
}

/* Clear what an entry of another kind has inherited from one of kind dicom. */
static void clear_dicom(struct destination_conf *d)
{
	d->aet[0] = d->host[0] = d->tls_name[0] = '\0';
	d->port = 0;
	d->tls = d->commitment = false;
}

static bool reaches_listener(const char *host, const char *bind)
{
	bool here = config_is_loopback(host) || !strcasecmp(host, "localhost");

	return !strcasecmp(host, bind) ||
	       (here && (config_is_loopback(bind) || !bind[0] || !strcmp(bind, "0.0.0.0") || !strcmp(bind, "::")));
}

/* A node that sends to itself stores its own results: they would be "delivered", and no archive would have them. */
static void finish_address(struct config_reader *r, const struct destination_conf *d, struct config_place place)
{
	struct listener_conf list[LISTENERS_MAX];
	size_t n = config_listeners(r->config, list);

	for (size_t i = 0; i < n && d->host[0]; i++)
		if (list[i].port == d->port && reaches_listener(d->host, list[i].bind))
			config_problem(r, place.file, place.line,
				       "key 'host' of destination '%s': %s port %d is where this node listens (%s); allowed: "
				       "another application",
				       d->name, d->host, d->port, list[i].name);
}

void config_finish_destinations(struct config_reader *r)
{
	static void (*const of_kind[DESTINATION_KIND_COUNT])(struct config_reader * r, struct destination_conf * d,
							     struct config_place place) = {
		[DESTINATION_STOW] = finish_stow,
		[DESTINATION_FOLDER] = finish_folder,
	};

	for (size_t i = 0; i < r->config->n_destinations; i++) {
		struct destination_conf *d = &r->config->destinations[i];
		struct config_place place = r->places[SECTION_DESTINATIONS][i];

		finish_fallback(r, d, place);
		if (d->kind != DESTINATION_DICOM)
			clear_dicom(d);
		if (of_kind[d->kind])
			of_kind[d->kind](r, d, place);
		finish_address(r, d, place);
		if (d->tls)
			finish_tls(r, d, place);
		if (d->retry_cap < d->retry_first)
			config_problem(r, place.file, place.line,
				       "key 'retry_cap' of destination '%s': %g; allowed: at least retry_first, %g s", d->name,
				       d->retry_cap, d->retry_first);
	}
}
