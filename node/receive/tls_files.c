/* SPDX-License-Identifier: Apache-2.0 */
#include "node/receive/tls_files.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "node/deliver/destination.h"
#include "node/web/http_credentials.h"

struct tls_conf listener_tls(const struct listener_conf *l)
{
	return (struct tls_conf){.certificate = l->certificate,
				 .key = l->key,
				 .authorities = l->client_certificate ? l->authorities : "",
				 .crl = l->client_certificate ? l->crl : "",
				 .server = true,
				 .client_certificate = l->client_certificate};
}

static void report_validity(const struct tls_context *context, const struct tls_conf *conf, const char *whose,
			    const struct tls_files_report *report)
{
	struct node_certificate c = {.listener = conf->server};

	snprintf(c.whose, sizeof(c.whose), "%s", whose);
	snprintf(c.file, sizeof(c.file), "%s", conf->certificate);
	if (tls_validity(context, &c.from, &c.until))
		report->validity(report->ctx, &c);
	c.crl = true;
	c.from = 0;
	snprintf(c.file, sizeof(c.file), "%s", conf->crl);
	if (tls_crl_until(context, &c.until))
		report->validity(report->ctx, &c);
}

static void report_unusable(const struct tls_conf *conf, const char *whose, const char *reason,
			    const struct tls_files_report *report)
{
	struct node_certificate c = {.listener = conf->server};

	snprintf(c.whose, sizeof(c.whose), "%s", whose);
	snprintf(c.file, sizeof(c.file), "%s", conf->certificate);
	snprintf(c.unusable, sizeof(c.unusable), "%.399s", reason);
	report->validity(report->ctx, &c);
}

/* Report a key that every user of the machine can read. Reading by its group is accepted, because it may be intended. */
static void check_key(const struct tls_conf *conf, const char *whose, const struct tls_files_report *report)
{
	const char *file = conf->key && conf->key[0] ? conf->key : conf->certificate;
	struct stat st;
	char text[700];

	if (!report->open_key || !file || !file[0] || stat(file, &st) < 0 || !(st.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)))
		return;
	snprintf(text, sizeof(text),
		 "%s: the private key in %s is not protected: other users of this machine can %s it (mode %04o). Run chmod 600, "
		 "so that only the user of the node can read it, and replace the key if others may have read it",
		 whose, file, st.st_mode & S_IROTH ? "read" : "change", (unsigned)st.st_mode & 07777);
	report->open_key(report->ctx, text);
}

static int check_one(const struct tls_conf *conf, const char *what, const char *name, const struct tls_files_report *report,
		     struct err *err)
{
	struct tls_context *context = NULL;
	char whose[CONFIG_NAME_SIZE + 16], text[600];
	struct err why = {0};

	snprintf(whose, sizeof(whose), "%s '%s'", what, name);
	if (tls_create(conf, &context, &why) < 0) {
		snprintf(text, sizeof(text), "%s: %s", whose, why.msg);
		if (report->problem)
			report->problem(report->ctx, text);
		if (report->validity)
			report_unusable(conf, whose, why.msg, report);
		return err_set(err, ENOKEY, "%s", text);
	}
	if (report->validity)
		report_validity(context, conf, whose, report);
	check_key(conf, whose, report);
	tls_free(context);
	return 0;
}

static int check_credentials(const struct destination_conf *d, const struct tls_files_report *report, struct err *err)
{
	struct http_credentials credentials;
	char text[600];
	struct err why = {0};
	int ret = http_credentials_read(d->credentials, &credentials, &why);

	http_credentials_clear(&credentials);
	if (ret == 0)
		return 0;
	snprintf(text, sizeof(text), "destination '%s': %s", d->name, why.msg);
	if (report->problem)
		report->problem(report->ctx, text);
	return err_set(err, ENOKEY, "%s", text);
}

int tls_files_check(const struct config *config, const struct tls_files_report *report, struct err *err)
{
	struct listener_conf list[LISTENERS_MAX];
	size_t n = config_listeners(config, list);
	int ret = 0;

	for (size_t i = 0; i < n; i++) {
		struct tls_conf conf = listener_tls(&list[i]);

		if (list[i].tls && check_one(&conf, "listener", list[i].name, report, ret == 0 ? err : NULL) < 0)
			ret = -ENOKEY;
	}
	if (config->cluster.port > 0 && config->cluster.certificate[0]) {
		const struct tls_conf conf = {.certificate = config->cluster.certificate,
					      .key = config->cluster.key,
					      .authorities = config->cluster.authorities,
					      .server = true,
					      .client_certificate = true};

		if (check_one(&conf, "port of", "cluster", report, ret == 0 ? err : NULL) < 0)
			ret = -ENOKEY;
	}
	for (size_t i = 0; i < config->n_destinations; i++) {
		const struct destination_conf *d = &config->destinations[i];
		struct scu_peer peer = destination_peer(config, d);

		if (d->tls && check_one(&peer.tls, "destination", d->name, report, ret == 0 ? err : NULL) < 0)
			ret = -ENOKEY;
		if (d->credentials[0] && check_credentials(d, report, ret == 0 ? err : NULL) < 0)
			ret = -ENOKEY;
	}
	return ret;
}
